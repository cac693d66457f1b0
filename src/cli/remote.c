/* remote.c: see remote.h. */
#include "cli/remote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum { ANSWER_BYTES_MAX = 64 << 20 };

void shoal_remote_declare(shoal_remote_options *o, shoal_option lines[SHOAL_REMOTE_OPTIONS]) {
  lines[0] = (shoal_option){
      .name = "server",
      .value = "LINK",
      .text = &o->server,
      .help = "the server's link, with a token where it wants one; " SHOAL_DEFAULT_SERVER " by default"};
  lines[1] = (shoal_option){
      .name = "token-file",
      .value = "FILE",
      .text = &o->token_file,
      .help = "where the token is, for a link without one; or put it into the environment as SHOAL_TOKEN"};
}

shoal_status shoal_remote_open_link(shoal_link *out, const char *text, const char *token_file,
                                    shoal_error *err) {
  const char *lost = strstr(text, "/t=");
  if (lost && !memchr(text, '#', (size_t)(lost - text)))
    return shoal_fail(err, SHOAL_INVALID,
                      "the link lacks '#': it looks like http://192.168.1.5:8080/#t=TOKEN, and a shell needs "
                      "quotes around it");
  return shoal_link_open(out, text, token_file, err);
}

shoal_status shoal_remote_open(shoal_remote *remote, const shoal_remote_options *o,
                               const volatile sig_atomic_t *stop, shoal_error *err) {
  remote->fetch = NULL;
  shoal_status status =
      shoal_remote_open_link(&remote->link, o->server ? o->server : SHOAL_DEFAULT_SERVER, o->token_file, err);
  if (status != SHOAL_OK) return status;
  remote->link_is_secret =
      o->server && (strstr(o->server, "#t=") || strstr(o->server, "&t=") || remote->link.fingerprint[0]);
  return shoal_fetch_create(&remote->fetch, &(shoal_fetch_config){.link = &remote->link, .stop = stop}, err);
}

void shoal_remote_close(shoal_remote *remote) {
  shoal_fetch_destroy(remote->fetch);
  explicit_bzero(remote, sizeof *remote);
}

/* Adds words to what err says. */
static void add_words(shoal_error *err, const char *words) {
  char text[SHOAL_ERROR_TEXT_MAX / 2];
  shoal_text_plain(text, sizeof text, err->text, strlen(err->text));
  shoal_fail(err, err->status, "%s; %s", text, words);
}

void shoal_remote_suggest_scheme(const shoal_link *link, const shoal_reply *reply, shoal_error *err) {
  if (err == NULL || reply->status != 0) return;
  if (link->tls && strncmp(err->text, "no TLS", 6) == 0)
    add_words(err, "if the server has no TLS, its link begins with http://");
  else if (!link->tls && reply->reached)
    add_words(err, "if the server has TLS, its link begins with https://");
}

/* Somebody who starts without a server is helped along. */
static void add_advice(shoal_error *err) {
  bool is_there = err && strncmp(err->text, "no TLS", 6) == 0;
  if (err && !is_there)
    add_words(err, "is there a server? 'shoal serve' starts one, --server says where it is");
}

shoal_status shoal_remote_ask(shoal_remote *remote, const char *method, const char *path, const char *json,
                              cJSON **out, shoal_error *err) {
  shoal_text whole;
  shoal_reply reply = {0};
  *out = NULL;
  shoal_text_init(&whole);
  shoal_text_addf(&whole, "/api/v1%s", path);
  const shoal_ask ask = {.method = method, .path = whole.bytes, .json = json, .answer_max = ANSWER_BYTES_MAX};
  shoal_status status = whole.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                     : shoal_fetch_ask(remote->fetch, &ask, &reply, err);
  if (status == SHOAL_OK && reply.body.length > 0) {
    bool valid = shoal_utf8_valid(reply.body.bytes, reply.body.length);
    *out = valid ? cJSON_ParseWithLength(reply.body.bytes, reply.body.length) : NULL;
    if (!cJSON_IsObject(*out)) {
      cJSON_Delete(*out);
      *out = NULL;
      status = shoal_fail(err, SHOAL_CORRUPT, "%s is not a shoal server: its answer is no JSON",
                          remote->link.address);
    }
  }
  if (status == SHOAL_IO && !reply.reached) add_advice(err);
  if (status == SHOAL_IO || status == SHOAL_CORRUPT) shoal_remote_suggest_scheme(&remote->link, &reply, err);
  shoal_reply_release(&reply);
  shoal_text_release(&whole);
  return status;
}

static const char *const flags[] = {
    "data",   "target", "valid",      "epochs",    "batch",   "seed",    "optimizer", "rate",
    "l2",     "clip",   "early_stop", "schedule",  "shuffle", "mode",    "wire",      "private",
    "name",   "rule",   "columns",    "dialect",   "metric",  "problem", "space",     "scheduler",
    "trials", "folds",  "env",        "algorithm", "seconds", "steps",   "exact"};
enum { FLAGS = sizeof flags / sizeof *flags };

static void put_dashes(char *word, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (word[i] == '_') word[i] = '-';
}

/* "set --valid to 0.1" is "give --valid 0.1". */
static void give_flags(char *text) {
  for (char *at = text; (at = strstr(at, "set --")) != NULL; at++) {
    size_t flag = strcspn(at + 4, " ");
    char *rest = at + 4 + flag;
    if (strncmp(rest, " to ", 4) != 0) continue;
    memmove(at + 5, at + 4, flag);
    memcpy(at, "give ", 5);
    memmove(at + 5 + flag, rest + 3, strlen(rest + 3) + 1);
  }
}

void shoal_remote_say_flags(char *text) {
  for (size_t i = 0; i < FLAGS; i++) {
    char quoted[24];
    size_t length = (size_t)snprintf(quoted, sizeof quoted, "\"%s\"", flags[i]);
    for (char *at = text; (at = strstr(at, quoted)) != NULL; at += length) {
      memmove(at + 2, at + 1, length - 2); /* "name" is as long as --name */
      memcpy(at, "--", 2);
      put_dashes(at, length);
    }
  }
  give_flags(text);
}

void shoal_remote_blame_flags(shoal_error *err) {
  shoal_remote_say_flags(err->text);
  for (size_t i = 0; i < FLAGS; i++) {
    size_t length = strlen(flags[i]);
    if (strncmp(err->text, flags[i], length) != 0 || err->text[length] != ':') continue;
    shoal_error_prefix(err, "--");
    put_dashes(err->text, length + 2);
    return;
  }
}

const char *shoal_remote_text(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsString(item) ? item->valuestring : "";
}

double shoal_remote_number(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

uint64_t shoal_remote_whole(const cJSON *json, const char *key) {
  double number = shoal_remote_number(json, key);
  return number >= 0 && number < 1e18 ? (uint64_t)number : 0;
}

const char *shoal_remote_plain(const cJSON *json, const char *key, char *out, size_t size) {
  const char *text = shoal_remote_text(json, key);
  shoal_text_plain(out, size, text, strlen(text));
  return out;
}

void shoal_remote_add_server(shoal_text *out, const shoal_remote *remote, const shoal_remote_options *o) {
  if (o->server && remote->link_is_secret)
    shoal_text_addf(out, " --server 'LINK'");
  else if (o->server)
    shoal_text_addf(out, " --server %s://%s", remote->link.tls ? "https" : "http", remote->link.address);
  shoal_cli_add_option(out, "token-file", o->token_file);
}

void shoal_remote_event(const char *name, const cJSON *data) {
  char *text = cJSON_PrintUnformatted(data);
  if (text) printf("{\"event\":\"%s\",\"data\":%s}\n", name, text);
  fflush(stdout);
  cJSON_free(text);
}
