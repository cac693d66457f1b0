/* swarm_node.h: one member of a swarm, in a thread of its own: the core of proto/swarm.h on a network.
 *
 * It connects to the server, listens for other members and dials those that the server names. What it lacks
 * comes from whoever has it, and counts once the shelf has compared it with its hash; what it has it gives to
 * others. A member that sent anything else is left, never asked again, and reported to the server. Members
 * that cannot be dialled, and those that neither dial nor listen, are served by the server.
 *
 *   member to server    HELLO, then HAVE, WANT, BLAME, REPORT      at the address `server`
 *   server to member    PEERS, HAVE, CHUNK
 *   member to member    HELLO both ways: count = SHOAL_ROLE_PEER, round = the set, version = who I am,
 *                       lease = the pair's key (swarm_words.h); then HAVE, WANT, CHUNK. Who says the wrong
 *                       key is refused.
 *
 * In memory it has at most a chunk for every question that is open and every chunk that is being sent, and
 * one for every connection: a few dozen MiB.
 *
 * Ownership: start, then end; the config's texts and the shelf are borrowed until then. Threads: one caller;
 * the thread inside is the node's own, and the shelf's functions are called there. */
#ifndef SHOAL_CLUSTER_SWARM_NODE_H
#define SHOAL_CLUSTER_SWARM_NODE_H

#include "wire/net.h"
#include "wire/notes.h"

typedef struct shoal_swarm_node shoal_swarm_node;

/* Where chunks are kept. */
typedef struct shoal_shelf {
  void *self;
  uint32_t chunks;
  bool (*has)(void *self, uint32_t chunk);
  size_t (*length)(void *self, uint32_t chunk);
  /* SHOAL_CORRUPT: this is not that chunk. */
  shoal_status (*put)(void *self, uint32_t chunk, const void *bytes, size_t length, shoal_error *err);
  shoal_status (*read)(void *self, uint32_t chunk, void *into, shoal_error *err); /* `length` bytes */
  /* The next that is wanted and was not told yet; false: none. Urgent: somebody waits for it. NULL: all
   * are. */
  bool (*next_want)(void *self, uint32_t *chunk, bool *urgent);
  /* The node has given up, and why: nothing more comes. NULL: nobody wants to know. */
  void (*failed)(void *self, const shoal_error *err);
} shoal_shelf;

typedef struct shoal_swarm_node_config {
  const char *server; /* host:port/path */
  shoal_way way;      /* to it */
  const char *name;
  uint64_t set; /* which data this is: 64 bits of its hash */
  shoal_shelf shelf;
  bool all;                      /* wants every chunk, whatever else is wanted */
  bool alone;                    /* neither listens nor dials: all comes from the server */
  const char *listen;            /* ":0": any free port of all addresses; NULL is that */
  const char *certificate, *key; /* then members speak TLS; NULL for none */
  uint64_t seed;
  shoal_notes notes; /* called by the thread inside */
} shoal_swarm_node_config;

typedef struct shoal_swarm_view {
  uint64_t from_server, from_peers, to_peers; /* bytes of chunks; what was not right is not counted */
  uint32_t peers;                             /* that are connected */
  uint32_t bad;                               /* chunks that were not what their hash says */
  uint16_t port;                              /* where it listens; 0: nowhere */
  shoal_status status;                        /* SHOAL_OK: goes on */
  shoal_error error;
} shoal_swarm_view;

shoal_status shoal_swarm_node_start(shoal_swarm_node **out, const shoal_swarm_node_config *config,
                                    shoal_error *err);
/* What is wanted has changed; from any thread. */
void shoal_swarm_node_wake(shoal_swarm_node *node);
void shoal_swarm_node_look(shoal_swarm_node *node, shoal_swarm_view *out); /* from any thread */
/* Says goodbye, and waits for the thread. */
void shoal_swarm_node_end(shoal_swarm_node *node);

#endif
