/* world.h: virtual time, and a network of nodes in it.
 *
 * Nodes have links with a rate and a latency; a connection is a stream between two nodes, as TCP
 * is: what is sent on it arrives in order, or the connection breaks. A message leaves when the
 * sender's link is free, takes bytes / rate to leave, and as long again on the receiver's link when
 * that is busy with others; so many who send to one share its link. A node's messages leave one after
 * the other, or, where nothing goes wrong and times must be right, in pieces, its connections by turns.
 *
 * Faults are the caller's to order: nodes go down with or without a word, connections are cut,
 * groups of nodes lose each other without noticing. What is under way then is lost or held up as
 * on real machines: what had not left a node that goes down never leaves it; what waits for a
 * partition to end arrives when it does. Some kinds of message may also come twice, or late.
 *
 * The world knows nothing of the cores: it tells what happens, one happening after the other, in
 * order of time, the same for the same calls and seed.
 *
 * Ownership: create, then destroy; packets sent are taken over, packets told are handed over.
 * Threads: one. */
#ifndef SHOAL_SIM_WORLD_H
#define SHOAL_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

typedef struct shoal_world shoal_world;

typedef struct shoal_world_link {
  double rate;                /* bytes a second, each way */
  double latency_s, jitter_s; /* to any other node: latency, and up to so much more */
} shoal_world_link;

typedef struct shoal_world_rules {
  uint64_t seed;
  double piece_bytes; /* connections of a node take turns after so many bytes; 0: after a message */
  /* Bytes that floats count for, as if the model were so much larger: contributions, and weights. */
  double push_scale, pull_scale; /* 1 for themselves */
  /* Shares of the messages of kinds PUSH, DONE, PULL and WEIGHTS: */
  double twice; /* come a second time, later */
  double late;  /* are overtaken by others of their connection */
} shoal_world_rules;

/* A message under way, and what the simulator notes about it beside. */
typedef struct shoal_packet {
  shoal_message message;
  uint64_t version; /* PUSH: of the weights that it was computed from */
  uint64_t digest;  /* DONE: of what was computed, whatever the message says */
} shoal_packet;

typedef enum shoal_happening_kind {
  SHOAL_WORLD_ARRIVED, /* a packet, at `node` */
  SHOAL_WORLD_OPENED,  /* a connection: told to both ends, the one that was dialled first */
  SHOAL_WORLD_CLOSED,  /* it is gone for `node`, or could not be made */
  SHOAL_WORLD_WOKEN,   /* what shoal_world_wake asked for */
} shoal_happening_kind;

typedef struct shoal_happening {
  shoal_happening_kind kind;
  uint32_t node;
  uint64_t connection;
  uint64_t tag;
  shoal_packet packet;
} shoal_happening;

enum { SHOAL_WORLD_NOBODY = UINT32_MAX };

shoal_world *shoal_world_create(const shoal_world_rules *rules, uint32_t nodes_max);
void shoal_world_destroy(shoal_world *world);

double shoal_world_now(const shoal_world *world);
/* The next happening, and time moves on to it; false when nothing will ever happen. */
bool shoal_world_next(shoal_world *world, shoal_happening *out);

/* ---- nodes: numbers from 0 in the order of adding; down at first ---- */
uint32_t shoal_world_add(shoal_world *world, const shoal_world_link *link);
void shoal_world_up(shoal_world *world, uint32_t node);
/* All its connections end. A process that dies closes them, a machine without power says nothing. */
void shoal_world_down(shoal_world *world, uint32_t node, bool silently);
/* A wake that was asked for before the node last went down is not told. NOBODY: the caller's own. */
void shoal_world_wake(shoal_world *world, uint32_t node, double at, uint64_t tag);

/* ---- connections: numbers from 1, never used again ---- */
uint64_t shoal_world_dial(shoal_world *world, uint32_t from, uint32_t to);
void shoal_world_send(shoal_world *world, uint64_t connection, uint32_t from, shoal_packet packet);
/* One end closes: the other hears of it behind all that was sent. */
void shoal_world_close(shoal_world *world, uint64_t connection, uint32_t node);
/* Breaks in the middle: what is under way is lost, both ends hear of it. False: it was not open. */
bool shoal_world_cut(shoal_world *world, uint64_t connection);
uint32_t shoal_world_other(const shoal_world *world, uint64_t connection, uint32_t node);
uint64_t shoal_world_connections(const shoal_world *world); /* the last number */

/* Nodes of different groups cannot reach each other; all are in group 0 at first. */
void shoal_world_group(shoal_world *world, uint32_t node, uint32_t group);

typedef struct shoal_world_counts {
  uint64_t messages, bytes; /* that arrived */
  uint64_t lost;            /* messages that never did */
  uint64_t twice, late;
  uint64_t under_way_max; /* messages on one way of one connection at a time */
} shoal_world_counts;

shoal_world_counts shoal_world_count(const shoal_world *world);

/* Random numbers of the world's own, for the caller too: so that everything comes from one seed. */
uint64_t shoal_world_draw(shoal_world *world, uint64_t below);
double shoal_world_share(shoal_world *world); /* [0, 1) */

#endif
