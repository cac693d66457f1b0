/* remote.c: see remote.h. */
#include "cli/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/json_at.h"
#include "cli/cli.h"

enum { ANSWER_BYTES_MAX = 64 << 20 };
static const double PROBE_S = 3; /* for a server that may speak otherwise */

void shoal_remote_declare(shoal_remote_options *o, shoal_option lines[SHOAL_REMOTE_OPTIONS]) {
  lines[0] = (shoal_option){.name = "server",
                            .value = "LINK",
                            .text = &o->server,
                            .help = "the server's link, with a token if the server needs one; by default the "
                                    "environment variable SHOAL_LINK, or " SHOAL_DEFAULT_SERVER};
  lines[1] = (shoal_option){.name = "token-file",
                            .value = "FILE",
                            .text = &o->token_file,
                            .help = "where the token is, for a link without one"};
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

static void say_that_we_wait(void *self, const char *text) {
  shoal_remote *remote = self;
  if (!remote->has_waited) fprintf(stderr, "shoal: waiting: %s\n", text);
  remote->has_waited = true;
}

shoal_status shoal_remote_open(shoal_remote *remote, const shoal_remote_options *o,
                               const volatile sig_atomic_t *stop, shoal_error *err) {
  remote->fetch = NULL;
  remote->has_waited = false;
  const char *usual = shoal_link_usual();
  const char *server = o->server ? o->server : usual ? usual : SHOAL_DEFAULT_SERVER;
  shoal_status status = shoal_remote_open_link(&remote->link, server, o->token_file, err);
  if (status != SHOAL_OK && server == usual) shoal_error_prefix(err, "SHOAL_LINK: ");
  if (status != SHOAL_OK) return status;
  remote->link_is_secret =
      o->server && (strstr(o->server, "#t=") || strstr(o->server, "&t=") || remote->link.fingerprint[0]);
  const shoal_fetch_config config = {
      .link = &remote->link, .stop = stop, .self = remote, .waits = o->patient ? say_that_we_wait : NULL};
  return shoal_fetch_create(&remote->fetch, &config, err);
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

/* Whether somebody answers there with TLS where the link has none, or without where it has. The token stays here. */
static bool answers_otherwise(const shoal_link *link) {
  shoal_link other = *link;
  other.tls = !link->tls;
  other.token[0] = other.fingerprint[0] = 0;
  const shoal_fetch_config config = {.link = &other, .connect_s = PROBE_S, .silence_s = PROBE_S};
  shoal_fetch *fetch;
  shoal_error err;
  if (shoal_fetch_create(&fetch, &config, &err) != SHOAL_OK) return false;
  shoal_reply reply;
  shoal_status status = shoal_fetch_ask(fetch, &(shoal_ask){.path = "/healthz"}, &reply, &err);
  /* A certificate that is refused is one, too. */
  bool answers = reply.status != 0 || (other.tls && status == SHOAL_INVALID);
  shoal_reply_release(&reply);
  shoal_fetch_destroy(fetch);
  return answers;
}

shoal_status shoal_remote_check_scheme(const shoal_link *link, const shoal_reply *reply, shoal_error *err) {
  if (err == NULL) return SHOAL_IO;
  bool may_be = link->tls ? reply->no_tls : reply->reached;
  if (reply->status != 0 || !may_be) return err->status;
  if (answers_otherwise(link))
    return shoal_fail(err, SHOAL_INVALID, "%s answers %s TLS: its link begins with http%s://%s",
                      link->address, link->tls ? "without" : "with", link->tls ? "" : "s", link->address);
  add_words(err, link->tls ? "if the server has no TLS, its link begins with http://"
                           : "if the server has TLS, its link begins with https://");
  return err->status;
}

/* Somebody who starts without a server is helped along. */
static void add_advice(shoal_error *err) {
  if (err) add_words(err, "is there a server? 'shoal serve' starts one, --server says where it is");
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
  if (status == SHOAL_IO && !reply.reached && !reply.no_tls) add_advice(err);
  if (status == SHOAL_IO || status == SHOAL_CORRUPT)
    status = shoal_remote_check_scheme(&remote->link, &reply, err);
  shoal_reply_release(&reply);
  shoal_text_release(&whole);
  return status;
}

static const char *const flags[] = {
    "data",   "target", "valid",      "epochs",    "batch",   "seed",    "optimizer", "rate",
    "l2",     "clip",   "early_stop", "schedule",  "shuffle", "mode",    "wire",      "private",
    "name",   "rule",   "columns",    "dialect",   "metric",  "problem", "space",     "scheduler",
    "trials", "folds",  "env",        "algorithm", "seconds", "steps",   "exact",     "augment"};
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
