/* remote.c: see remote.h. */
#include "cli/remote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

shoal_status shoal_remote_open(shoal_remote *remote, const shoal_remote_options *o,
                               const volatile sig_atomic_t *stop, shoal_error *err) {
  remote->fetch = NULL;
  shoal_status status =
      shoal_link_open(&remote->link, o->server ? o->server : SHOAL_DEFAULT_SERVER, o->token_file, err);
  if (status != SHOAL_OK) return status;
  return shoal_fetch_create(&remote->fetch, &(shoal_fetch_config){.link = &remote->link, .stop = stop}, err);
}

void shoal_remote_close(shoal_remote *remote) {
  shoal_fetch_destroy(remote->fetch);
  explicit_bzero(remote, sizeof *remote);
}

/* Somebody who starts without a server is helped along. */
static void add_advice(shoal_error *err) {
  if (err == NULL) return;
  char text[SHOAL_ERROR_TEXT_MAX / 2];
  shoal_text_plain(text, sizeof text, err->text, strlen(err->text));
  shoal_fail(err, SHOAL_IO, "%s; is there a server? 'shoal serve' starts one, --server says where it is",
             text);
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
  shoal_reply_release(&reply);
  shoal_text_release(&whole);
  return status;
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

void shoal_remote_event(const char *name, const cJSON *data) {
  char *text = cJSON_PrintUnformatted(data);
  if (text) printf("{\"event\":\"%s\",\"data\":%s}\n", name, text);
  fflush(stdout);
  cJSON_free(text);
}
