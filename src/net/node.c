/* node.c: see node.h. */
#include "net/node.h"

#include <string.h>

#include "net/line.h"

const uint64_t shoal_node_payload_max = (uint64_t)4 << 30;
const double shoal_node_turn_s = 0.25;
static const double HELLO_S = 10, STALL_S = 60;

/* Whoever connects is a line (line.h): it beats all the time, and after silence_s has given up by itself. */
shoal_net_config shoal_node_net(const shoal_net_calls *calls, uint32_t connections_max,
                                const char *certificate, const char *key) {
  return (shoal_net_config){.calls = *calls,
                            .payload_max = shoal_node_payload_max,
                            .connections_max = connections_max,
                            .hello_s = HELLO_S,
                            .stall_s = STALL_S,
                            .idle_s = 2 * shoal_line_beat.silence_s,
                            .certificate = certificate,
                            .key = key};
}

const char *shoal_node_payload(const shoal_message *m, size_t *length) {
  *length = m->payload != NULL ? shoal_blob_length(m->payload) : 0;
  return m->payload != NULL ? (const char *)shoal_blob_bytes(m->payload) : "";
}

void shoal_node_text(const shoal_message *m, char out[SHOAL_NODE_TEXT_MAX]) {
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  shoal_text_plain(out, SHOAL_NODE_TEXT_MAX, text, length);
}

bool shoal_node_same_job(const shoal_text *known, const shoal_message *welcome) {
  size_t length;
  const char *text = shoal_node_payload(welcome, &length);
  return known->length == length && length > 0 && memcmp(known->bytes, text, length) == 0;
}

void shoal_node_plain_error(shoal_error *err) {
  shoal_text_plain(err->text, sizeof err->text, err->text, strlen(err->text));
}
