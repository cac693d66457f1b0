/* swarm_words.c: see swarm_words.h. */
#include "cluster/swarm_words.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_at.h"
#include "wire/link.h"

static const double WHOLE_MAX = 9007199254740992.0; /* beyond, numbers of JSON are not exact */

/* ---- reading ---- */

static shoal_status wrong(const char *what, shoal_error *err) {
  return shoal_fail(err, SHOAL_INVALID, "%s cannot be read", what);
}

static cJSON *parse(const char *text, size_t length) {
  return shoal_utf8_valid(text, length) ? cJSON_ParseWithLength(text, length) : NULL;
}

static void read_name(const cJSON *json, char out[SHOAL_SWARM_NAME_MAX]) {
  const char *name = shoal_text_at(json, "name");
  shoal_text_plain(out, SHOAL_SWARM_NAME_MAX, name, strlen(name));
}

static bool is_hex(const char *text, size_t length) {
  return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* None, null and "" are no fingerprint. */
static bool read_fingerprint(const cJSON *json, char out[SHOAL_SHA256_HEX]) {
  const char *hex = shoal_text_at(json, "fingerprint");
  if (hex[0] != 0 && !is_hex(hex, SHOAL_SHA256_HEX - 1)) return false;
  snprintf(out, SHOAL_SHA256_HEX, "%s", hex);
  return true;
}

uint64_t shoal_swarm_set_of(const char *id) {
  char head[17];
  snprintf(head, sizeof head, "%s", id);
  return strtoull(head, NULL, 16);
}

void shoal_swarm_address(char out[SHOAL_SWARM_ADDRESS_MAX], const char *host, uint16_t port) {
  const char *form = strchr(host, ':') != NULL ? "[%.*s]:%u" : "%.*s:%u";
  snprintf(out, SHOAL_SWARM_ADDRESS_MAX, form, SHOAL_SWARM_HOST_MAX - 3, host, port);
}

/* "1.2.3.4:5" or "[::1]:5", in figures, and short enough to be kept whole. */
static bool is_address(const char *text) {
  char host[SHOAL_SWARM_HOST_MAX];
  const char *colon = strrchr(text, ':');
  uint64_t port;
  if (colon == NULL || strlen(text) >= SHOAL_SWARM_ADDRESS_MAX ||
      !shoal_read_u64(colon + 1, strlen(colon + 1), &port) || port == 0 || port > 65535)
    return false;
  bool bracketed = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
  const char *from = text + bracketed;
  size_t length = (size_t)(colon - from) - bracketed;
  if (length >= sizeof host) return false;
  memcpy(host, from, length);
  host[length] = 0;
  return shoal_link_is_numeric(host) && bracketed == (strchr(host, ':') != NULL);
}

shoal_status shoal_swarm_hello_read(shoal_swarm_hello *out, const char *text, size_t length,
                                    shoal_error *err) {
  cJSON *json = parse(text, length);
  uint64_t port = 0;
  *out = (shoal_swarm_hello){0};
  bool good = cJSON_IsObject(json) && shoal_read_whole_at(json, "port", 65535, &port) &&
              read_fingerprint(json, out->fingerprint);
  if (good) {
    const char *address = shoal_text_at(json, "address");
    read_name(json, out->name);
    out->port = (uint16_t)port;
    if (shoal_link_is_numeric(address)) snprintf(out->address, sizeof out->address, "%s", address);
  }
  cJSON_Delete(json);
  return good ? SHOAL_OK : wrong("a HELLO", err);
}

static bool read_neighbour(const cJSON *json, shoal_swarm_contact *out) {
  const char *key = shoal_text_at(json, "key");
  const cJSON *addresses = cJSON_GetObjectItemCaseSensitive(json, "addresses"), *item;
  *out = (shoal_swarm_contact){0};
  if (!cJSON_IsObject(json) || !shoal_read_whole_at(json, "id", WHOLE_MAX, &out->id) || out->id == 0 ||
      !is_hex(key, 16) || !read_fingerprint(json, out->fingerprint))
    return false;
  out->key = strtoull(key, NULL, 16);
  read_name(json, out->name);
  cJSON_ArrayForEach(item, addresses) {
    if (!cJSON_IsString(item) || !is_address(item->valuestring)) return false;
    if (out->addresses_count == SHOAL_SWARM_ADDRESSES_MAX) break;
    snprintf(out->addresses[out->addresses_count++], SHOAL_SWARM_ADDRESS_MAX, "%s", item->valuestring);
  }
  return true;
}

shoal_status shoal_swarm_contacts_read(shoal_swarm_contacts *out, const char *text, size_t length,
                                       shoal_error *err) {
  cJSON *json = parse(text, length);
  const cJSON *peers = cJSON_GetObjectItemCaseSensitive(json, "peers"), *item;
  out->count = 0;
  bool good = shoal_read_whole_at(json, "you", WHOLE_MAX, &out->you) && cJSON_IsArray(peers);
  cJSON_ArrayForEach(item, peers) {
    if (!good || out->count == SHOAL_SWARM_NEIGHBOURS_MAX) break;
    good = read_neighbour(item, &out->list[out->count++]);
  }
  cJSON_Delete(json);
  return good ? SHOAL_OK : wrong("a list of PEERS", err);
}

shoal_status shoal_swarm_report_read(shoal_swarm_report *out, const char *text, size_t length,
                                     shoal_error *err) {
  cJSON *json = parse(text, length);
  const cJSON *from = cJSON_GetObjectItemCaseSensitive(json, "from"), *item;
  *out = (shoal_swarm_report){0};
  bool good = shoal_read_whole_at(json, "to_peers", WHOLE_MAX, &out->to_peers) && cJSON_IsArray(from);
  cJSON_ArrayForEach(item, from) {
    if (!good || out->count > SHOAL_SWARM_NEIGHBOURS_MAX) break;
    shoal_swarm_flow *flow = &out->from[out->count++];
    good = cJSON_GetArraySize(item) == 2 &&
           shoal_read_whole(cJSON_GetArrayItem(item, 0), WHOLE_MAX, &flow->id) &&
           shoal_read_whole(cJSON_GetArrayItem(item, 1), WHOLE_MAX, &flow->bytes);
  }
  cJSON_Delete(json);
  return good ? SHOAL_OK : wrong("a REPORT", err);
}

/* ---- writing ---- */

static void write_fingerprint(shoal_json *json, const char *hex) {
  if (hex[0] != 0)
    shoal_json_text(json, "fingerprint", hex);
  else
    shoal_json_null(json, "fingerprint");
}

void shoal_swarm_hello_write(const shoal_swarm_hello *hello, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", hello->name);
  shoal_json_text(&json, "address", hello->address);
  shoal_json_int(&json, "port", hello->port);
  write_fingerprint(&json, hello->fingerprint);
  shoal_json_close(&json, '}');
}

void shoal_swarm_contacts_write(const shoal_swarm_contacts *peers, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "you", (int64_t)peers->you);
  shoal_json_open(&json, "peers", '[');
  for (uint32_t i = 0; i < peers->count; i++) {
    const shoal_swarm_contact *n = &peers->list[i];
    char key[17];
    snprintf(key, sizeof key, "%016" PRIx64, n->key);
    shoal_json_open(&json, NULL, '{');
    shoal_json_int(&json, "id", (int64_t)n->id);
    shoal_json_text(&json, "name", n->name);
    shoal_json_text(&json, "key", key);
    shoal_json_open(&json, "addresses", '[');
    for (uint32_t a = 0; a < n->addresses_count; a++) shoal_json_text(&json, NULL, n->addresses[a]);
    shoal_json_close(&json, ']');
    write_fingerprint(&json, n->fingerprint);
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
}

void shoal_swarm_report_write(const shoal_swarm_report *report, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "to_peers", (int64_t)report->to_peers);
  shoal_json_open(&json, "from", '[');
  for (uint32_t i = 0; i < report->count; i++) {
    shoal_json_open(&json, NULL, '[');
    shoal_json_int(&json, NULL, (int64_t)report->from[i].id);
    shoal_json_int(&json, NULL, (int64_t)report->from[i].bytes);
    shoal_json_close(&json, ']');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
}
