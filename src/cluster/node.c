/* node.c: see node.h. */
#include "cluster/node.h"

#include <string.h>

#include "base/clock.h"
#include "proto/chief.h"

const uint64_t shoal_node_payload_max = (uint64_t)4 << 30;
const double shoal_node_turn_s = 0.25;
static const double HELLO_S = 10, STALL_S = 60, GOODBYE_S = 0.5;

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

shoal_message shoal_node_refuse(const char *text) {
  return (shoal_message){.kind = SHOAL_MSG_REFUSE, .payload = shoal_blob_of(text, strlen(text))};
}

void shoal_node_leave(shoal_net *net, const shoal_line *chief, const char *why) {
  const uint64_t peer = chief->peer;
  const double until = shoal_clock_seconds() + GOODBYE_S;
  shoal_net_send(net, peer, shoal_node_refuse(why));
  shoal_net_close(net, peer, "it leaves");
  while (chief->peer == peer && shoal_clock_seconds() < until) shoal_net_run(net, 0.05);
}

bool shoal_node_is_hopeless(const shoal_net *net, uint64_t peer, const shoal_line *line, const char *who,
                            const char *reason, shoal_error *err) {
  if (line->peer != peer || !shoal_net_is_hopeless(net) || strchr(line->address, '/') != NULL) return false;
  bool named = strstr(reason, line->address) != NULL;
  shoal_fail(err, SHOAL_INVALID, "cannot work with %s%s%s: %s", who, named ? "" : " at ",
             named ? "" : line->address, reason);
  return true;
}

shoal_status shoal_node_hear_end(const shoal_message *end, const shoal_notes *notes, shoal_error *err) {
  char said[SHOAL_NODE_TEXT_MAX];
  shoal_node_text(end, said);
  bool over = end->count == SHOAL_ENDS_OVER;
  shoal_status status = over ? SHOAL_OK
                             : shoal_fail(err, SHOAL_STOPPED,
                                          "the chief was stopped%s%s; start the chief, the workers and the "
                                          "parameter servers again to continue the training",
                                          said[0] != 0 ? ": " : "", said);
  if (over)
    shoal_note(notes, "the training is over%s%s", said[0] != 0 ? ": " : "", said);
  else
    shoal_note(notes, "%s", err->text);
  return status;
}

bool shoal_node_same_job(const shoal_text *known, const shoal_message *welcome) {
  size_t length;
  const char *text = shoal_node_payload(welcome, &length);
  return known->length == length && length > 0 && memcmp(known->bytes, text, length) == 0;
}

void shoal_node_plain_error(shoal_error *err) {
  shoal_text_plain(err->text, sizeof err->text, err->text, strlen(err->text));
}
