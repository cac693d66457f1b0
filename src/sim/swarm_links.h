/* swarm_links.h: virtual time, and the links of a great many nodes that send each other large things.
 *
 * Leaner than world.h, for swarms of 10,000: there are no connections to open, nothing is reordered, and a
 * node's latency is the same to everybody. A node has a rate up and a rate down. Large messages leave in
 * pieces: a node's transfers take turns on its uplink, a piece each; a piece passes the receiver's downlink
 * when that is free; a transfer sends its next piece when its last one has passed there, so who sends to a
 * slow or busy receiver has time for others. Small messages go at once, behind what is under way on the same
 * way; their bytes are added to the next piece up and down.
 *
 * Ownership: create, then destroy; messages sent are taken over, messages told are handed over. Threads:
 * one. */
#ifndef SHOAL_SIM_SWARM_LINKS_H
#define SHOAL_SIM_SWARM_LINKS_H

#include "proto/message.h"

typedef struct shoal_links shoal_links;

typedef enum shoal_links_kind {
  SHOAL_LINKS_LETTER, /* a message has come to `to`; the caller's now */
  SHOAL_LINKS_SENT,   /* a transfer of `from` to `to` has passed the receiver's link */
  SHOAL_LINKS_TIMER,  /* of node `to`, with what it was set for */
} shoal_links_kind;

typedef struct shoal_links_event {
  shoal_links_kind kind;
  uint32_t from, to;
  uint32_t what;
  shoal_message message;
} shoal_links_event;

/* Ends the program when memory is short, as all of the simulator. */
shoal_links *shoal_links_create(uint32_t nodes, double piece_bytes);
void shoal_links_destroy(shoal_links *links);

void shoal_links_set(shoal_links *links, uint32_t node, double up, double down, double latency_s);
/* A message of so many bytes, small, or large: that is a transfer, and is told when it is SENT. */
void shoal_links_send(shoal_links *links, uint32_t from, uint32_t to, shoal_message message, double bytes,
                      bool large);
void shoal_links_timer(shoal_links *links, uint32_t node, double at, uint32_t what);
/* Transfers between the two end in the middle. */
void shoal_links_cut(shoal_links *links, uint32_t a, uint32_t b);

bool shoal_links_next(shoal_links *links, shoal_links_event *out); /* false: nothing will ever happen */
double shoal_links_now(const shoal_links *links);
uint32_t shoal_links_transfers(const shoal_links *links, uint32_t node); /* under way from it */
uint64_t shoal_links_waiting(const shoal_links *links);                  /* small messages under way */
double shoal_links_moved(const shoal_links *links, uint32_t node);       /* bytes that have left it */

#endif
