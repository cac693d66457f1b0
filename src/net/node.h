/* node.h: what chief, parameter servers and workers have in common: the limits of their nets, and how they
 * take what the chief says.
 *
 * Ownership: everything is borrowed. Threads: none. */
#ifndef SHOAL_NET_NODE_H
#define SHOAL_NET_NODE_H

#include "base/text.h"
#include "net/net.h"

enum { SHOAL_NODE_TEXT_MAX = 200 };
extern const uint64_t shoal_node_payload_max; /* of any message: 4 GiB */
extern const double shoal_node_turn_s;        /* the longest that a node's loop waits */

shoal_net_config shoal_node_net(const shoal_net_calls *calls, uint32_t connections_max,
                                const char *certificate, const char *key);

/* A message's payload as text, with no zero behind it; "" without one. */
const char *shoal_node_payload(const shoal_message *message, size_t *length);
/* The same, as it may be shown to people: the beginning, without controls. */
void shoal_node_text(const shoal_message *message, char out[SHOAL_NODE_TEXT_MAX]);
/* Whether a WELCOME tells the job that is known already. */
bool shoal_node_same_job(const shoal_text *known, const shoal_message *welcome);
/* A sentence that may quote what came from outside: takes the controls out of it. */
void shoal_node_plain_error(shoal_error *err);

#endif
