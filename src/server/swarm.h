/* swarm.h: the swarms of a server: who has a data set, or parts of it, and who gets them from whom.
 *
 * There is a swarm for every data set that volunteers work with, and one of its own for every private job, so
 * that its members are known to each other alone. The server is a member that has everything (proto/swarm.h).
 * It names to every member up to SHOAL_SWARM_NEIGHBOURS_MAX others, chosen at random, with a key for each
 * pair; when a is named to b, b is named to a. A member that two people have blamed for wrong chunks is named
 * to nobody any more; who comes again, or with several machines, counts once.
 *
 * What members report (who got how much from whom) is for people to look at; nothing is decided by it.
 *
 * Ownership: create, then destroy; net is borrowed. Threads: the net's. Chunks are read by whoever made it,
 * a few at a time. */
#ifndef SHOAL_SERVER_SWARM_H
#define SHOAL_SERVER_SWARM_H

#include "base/json.h"
#include "data/manifest.h"
#include "wire/net.h"

typedef struct shoal_swarms shoal_swarms;

typedef struct shoal_swarms_calls {
  void *self;
  /* The manifest of a set; the caller releases it. */
  shoal_status (*manifest)(void *self, const char *set, shoal_manifest *out, shoal_error *err);
  /* Begins to read a chunk, by its hash: shoal_swarms_take gets it under the ticket, at once or later.
   * False: not now; it is asked for again in the next turn. */
  bool (*read)(void *self, const char *sha256, uint64_t ticket);
  /* A member says that another sent it something else. */
  void (*blamed)(void *self, const char *set, const char *who, const char *by, uint32_t chunk);
} shoal_swarms_calls;

shoal_status shoal_swarms_create(shoal_swarms **out, shoal_net *net, const shoal_swarms_calls *calls,
                                 shoal_error *err);
void shoal_swarms_destroy(shoal_swarms *swarms);

/* A connection for the data of a set asks to be let in: 0, or the HTTP status that refuses it. `job`: the
 * private job that it is for, 0 where that is not private. address: host, without the port. */
int shoal_swarms_admit(shoal_swarms *swarms, uint64_t peer, const char *set, uint64_t job,
                       const char *address);
/* What the net tells of those that were let in. With a HELLO the caller may say who it is: the name, where it
 * knows it better (NULL: as it says), and a number that is the same for all connections of one person (0: it
 * is somebody of its own). The message is taken over. */
void shoal_swarms_received(shoal_swarms *swarms, uint64_t peer, shoal_message *message, const char *name,
                           uint64_t person);
void shoal_swarms_closed(shoal_swarms *swarms, uint64_t peer);

/* The set is deleted: who comes under its name from now on comes for another one. */
void shoal_swarms_forget(shoal_swarms *swarms, const char *set);

/* What was read under a ticket; NULL: it cannot be. Taken over. */
void shoal_swarms_take(shoal_swarms *swarms, uint64_t ticket, shoal_blob *chunk);

/* Returns when it wants to be called again. */
double shoal_swarms_tick(shoal_swarms *swarms, double now);

/* {"set","chunks","bytes","sent":by the server,"copies":of the set,"received":by all members,
 *  "members":[{"id","name","here":chunks,"cells":"0..9" for up to 100 parts of the set, how much of each is
 *              there,"from_server","from_peers","to_peers","blamed"}],
 *  "flows":[{"from":id, 0 for the server,"to":id,"bytes"}]}
 * A set without a swarm has no members. At most 200 members and the 2000 largest flows to them are
 * written. */
void shoal_swarms_write(const shoal_swarms *swarms, const char *set, uint64_t job, shoal_json *json);

/* Bytes of chunks that the server has sent, and that members have reported, since it was started. */
void shoal_swarms_moved(const shoal_swarms *swarms, uint64_t *sent, uint64_t *received);

#endif
