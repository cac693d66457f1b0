/* node.h: what chief, parameter servers and workers have in common: the limits of their nets, and how they
 * take what the chief says.
 *
 * Ownership: everything is borrowed. Threads: none. */
#ifndef SHOAL_CLUSTER_NODE_H
#define SHOAL_CLUSTER_NODE_H

#include "base/text.h"
#include "wire/line.h"

enum { SHOAL_NODE_TEXT_MAX = 200 };
extern const uint64_t shoal_node_payload_max; /* of any message: 4 GiB */
extern const double shoal_node_turn_s;        /* the longest that a node's loop waits */

shoal_net_config shoal_node_net(const shoal_net_calls *calls, uint32_t connections_max,
                                const char *certificate, const char *key);

/* A message's payload as text, with no zero behind it; "" without one. */
const char *shoal_node_payload(const shoal_message *message, size_t *length);
/* The same, as it may be shown to people: the beginning, without controls. */
void shoal_node_text(const shoal_message *message, char out[SHOAL_NODE_TEXT_MAX]);
/* A REFUSE with this text. */
shoal_message shoal_node_refuse(const char *text);

/* Tells the chief at the end of this line that this one leaves before the end, and why ("" when it was
 * stopped), and runs the net until that is heard, or half a second long. */
void shoal_node_leave(shoal_net *net, const shoal_line *chief, const char *why);

/* Returns true if a connection of this line was closed for a reason that dialling again will not change; err
 * gets the reason. A line whose address has a path leads to a server, which may be restarted behind a proxy; for
 * such lines this is always false. Called from within `closed`. */
bool shoal_node_is_hopeless(const shoal_net *net, uint64_t peer, const shoal_line *line, const char *who,
                            const char *reason, shoal_error *err);

/* What END says, as a note to people. SHOAL_STOPPED when the chief was stopped and the training is not over: then
 * err gets that too. */
shoal_status shoal_node_hear_end(const shoal_message *end, const shoal_notes *notes, shoal_error *err);

/* Whether a WELCOME tells the job that is known already. */
bool shoal_node_same_job(const shoal_text *known, const shoal_message *welcome);
/* A sentence that may quote what came from outside: takes the controls out of it. */
void shoal_node_plain_error(shoal_error *err);

#endif
