/* node.h: what chief, parameter servers and workers have in common: the limits of their nets, and how they
 * take what the chief says.
 *
 * Ownership: everything is borrowed. Threads: none. */
#ifndef SHOAL_NET_NODE_H
#define SHOAL_NET_NODE_H

#include "base/text.h"
#include "net/line.h"

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

/* Who was refused lately and why: who tries again every few seconds need not be told of each time. Zeros at
 * the start. */
enum { SHOAL_NODE_REFUSALS_MAX = 8 };
typedef struct shoal_node_refusals {
  struct {
    uint64_t digest; /* of who and why */
    double at;
  } last[SHOAL_NODE_REFUSALS_MAX];
  uint32_t next;
} shoal_node_refusals;
/* Whether it is to be told now: for the first time, or after a minute again. */
bool shoal_node_tell_refusal(shoal_node_refusals *refusals, const char *who, const char *why, double now);

/* Whether a WELCOME tells the job that is known already. */
bool shoal_node_same_job(const shoal_text *known, const shoal_message *welcome);
/* A sentence that may quote what came from outside: takes the controls out of it. */
void shoal_node_plain_error(shoal_error *err);

#endif
