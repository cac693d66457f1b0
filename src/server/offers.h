/* offers.h: units of searches for trusted workers, through a RabbitMQ broker (queue/queue.h).
 *
 * A unit that is offered is leased from its search (search/board.h) and sent as a message to the queue
 * SHOAL_UNITS_QUEUE:
 *
 *   {"server":"http://HOST:PORT","token":"...","job":7,"data":"adult","unit":{as POST units gives it}}
 *
 * Everything else goes by HTTP, as for volunteers. The token is good for that job alone, is kept in the job's
 * folder, so that a server that was killed goes on with it, and is deleted when the job is over; it is ""
 * where none is needed.
 *
 *   offered --- its message leaves the queue ---> taken --- a worker's first beat ---> claimed
 *      |                                            |                                    |
 *      +-- nobody receives: given back              +-- no claim within a lease          +-- no beat: lost
 *
 * While an offer waits in the queue the server beats for it, so its lease cannot run out there. Which ones
 * wait follows from the queue's length: messages are taken in the order in which they were sent. Who has
 * taken one has a lease's time to claim it, and beats from then on. Who comes with a second copy of the
 * message (a broker gives them at least once) is told that the unit is somebody else's. What is lost is
 * offered again by the search, as its next attempt; what a broker may have lost with its disk is sent again
 * after every reconnect.
 *
 * A job that has as many workers as it wants at most, volunteers among them, turns others away. Whom a broker
 * gives a message to cannot be chosen, so it is offered again a second later.
 *
 * There are always some more offers than workers that wait. Where nobody receives and nobody computes there
 * are none, so that the units are free for volunteers.
 *
 * Ownership: create, then destroy; all but the texts, which are copied, is borrowed. Threads: one; `wake` and
 * `log` are also called by the thread inside, which talks to the broker. */
#ifndef SHOAL_SERVER_OFFERS_H
#define SHOAL_SERVER_OFFERS_H

#include "server/access.h"
#include "server/jobs.h"

#define SHOAL_UNITS_QUEUE "shoal.units"

typedef struct shoal_offers shoal_offers;

typedef struct shoal_offers_config {
  const char *queue;       /* the broker's URL */
  const char *url;         /* how workers reach this server */
  const char *fingerprint; /* of its certificate, or NULL */
  shoal_role_level open;   /* what those without a token may do */
  const char *folder;      /* FOLDER/ID is a job's */
  double lease_s;          /* of searches */
  shoal_jobs *jobs;
  shoal_access *access;
  shoal_store *store;
  void *self;
  void (*wake)(void *self); /* tick is due */
  void (*log)(void *self, const char *text);
} shoal_offers_config;

/* SHOAL_INVALID: the URL, or the broker refuses user or password. A broker that cannot be reached is waited
 * for. */
shoal_status shoal_offers_create(shoal_offers **out, const shoal_offers_config *config, shoal_error *err);
void shoal_offers_destroy(shoal_offers *offers); /* NULL is fine */

/* Returns when it wants to be called again. */
double shoal_offers_tick(shoal_offers *offers, double now);

/* A worker beats for a unit, "" for one that does not say its name. False: another worker has claimed
 * this offer, or the job has as many workers as it wants at most and this one is none of them; then the
 * unit is free again. */
bool shoal_offers_claim(shoal_offers *offers, uint64_t job, uint64_t unit, uint32_t attempt,
                        const char *worker);
/* A unit has its result, or its worker gave up. */
void shoal_offers_over(shoal_offers *offers, uint64_t job, uint64_t unit);

#endif
