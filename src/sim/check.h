/* check.h: what must hold in every life.
 *
 * Each rule is a function that is called where it can be broken: when a core has been called, when
 * a message leaves a core or reaches one, when the chief tells its driver something. They look at
 * what the cores do, not at what they think: the weights in a parameter server, the messages on the
 * wire, the records on the disks. The first rule that is broken is kept, with a sentence.
 *
 * Ownership: part of a life. Threads: the life's. */
#ifndef SHOAL_SIM_CHECK_H
#define SHOAL_SIM_CHECK_H

#include "proto/chief.h"
#include "sim/job.h"
#include "sim/life.h"

struct shoal_life;
struct shoal_sim_node;

enum { SHOAL_CHECK_LEASES = 8, SHOAL_CHECK_MADE = 256 };

/* What the chief has leased over a connection. */
typedef struct shoal_check_line {
  uint64_t generation;
  uint64_t lease[SHOAL_CHECK_LEASES], unit[SHOAL_CHECK_LEASES];
  uint32_t count;
} shoal_check_line;

/* Weights that an owner has sent as a version. */
typedef struct shoal_check_made {
  uint64_t hash, generation, version;
} shoal_check_made;

typedef struct shoal_check_slice {
  uint64_t generation, version; /* last seen */
  float counter, second;
  uint8_t *applied; /* async: rounds, of this generation */
  shoal_check_made made[SHOAL_CHECK_MADE];
  uint32_t made_next, made_count;
} shoal_check_slice;

typedef struct shoal_check_unit {
  uint64_t generation, round, digest; /* of the first result; generation 0: none */
} shoal_check_unit;

/* A lie that was sent. */
typedef struct shoal_check_lie_told {
  uint64_t lease, round;
} shoal_check_lie_told;

typedef struct shoal_check {
  shoal_check_slice slices[SHOAL_SIM_OWNERS_MAX];
  uint64_t starts;                             /* of the chief */
  uint64_t generation, generation_of, version; /* last said by the chief; by which start of it */
  uint64_t back_generation;                    /* told last by this start */
  uint64_t last_lease, lease_generation;
  uint64_t safe; /* the newest version that is safe */
  uint64_t kept; /* records that the chief has finished */
  shoal_check_unit *units;
  bool differs; /* the result at hand must be told to differ */
  uint64_t differs_told;
  double last_time;
  uint64_t standing;          /* happenings since time moved */
  uint64_t hurried;           /* ticks that the chief asked for at once, one after the other */
  shoal_check_lie_told *lies; /* guarded */
  uint32_t lies_count, lies_size;
  uint64_t taint; /* the first round in which a lie counts; UINT64_MAX: none */
  bool goes_back; /* the chief tells so, and has not kept it yet: to this version, in this generation */
  uint64_t goes_back_to, goes_back_in;
  uint64_t clean_from; /* generations before this one are of no interest */
} shoal_check;

void shoal_check_init(struct shoal_life *life);
void shoal_check_release(struct shoal_life *life);

/* A rule is broken. Only the first counts. */
void shoal_check_violated(struct shoal_life *life, shoal_sim_checker checker, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- check.c: rules about the order of things ---- */
/* leases: a LEASE goes out to a connection. */
void shoal_check_lease(struct shoal_life *life, uint64_t connection, const shoal_message *message);
/* versions: the chief says something. */
void shoal_check_said(struct shoal_life *life, const struct shoal_sim_node *chief,
                      const shoal_message *message);
/* versions and durable: all go back, or start; then, the chief has kept that. */
void shoal_check_back(struct shoal_life *life, const shoal_chief_event *event);
void shoal_check_kept(struct shoal_life *life);
/* differs: before a DONE reaches the chief, and when its events have been heard. */
void shoal_check_done(struct shoal_life *life, uint64_t connection, const shoal_packet *packet);
void shoal_check_differs(struct shoal_life *life);
/* leases: a worker gives one back. */
void shoal_check_return(struct shoal_life *life, uint64_t connection, const shoal_message *message);
/* leases: the chief has lost somebody: what it had is no longer its. */
void shoal_check_lost(struct shoal_life *life, uint64_t connection);
/* memory: before the outbox is emptied. */
void shoal_check_memory(struct shoal_life *life, struct shoal_sim_node *node);
/* deadlock: at every happening. */
void shoal_check_time(struct shoal_life *life);
/* deadlock: the chief asks for a tick later than now. */
void shoal_check_timer(struct shoal_life *life, bool later);
/* deadlock: nothing will ever happen. */
void shoal_check_stuck(struct shoal_life *life);

/* ---- check_guard.c: rules about liars ---- */
/* A lie is sent under a lease. */
void shoal_check_lie(struct shoal_life *life, const shoal_message *push);
/* The chief tells owners that something counts. */
void shoal_check_accept(struct shoal_life *life, const shoal_message *message);
/* A report has reached the chief. */
void shoal_check_lie_seen(struct shoal_life *life, struct shoal_sim_node *worker);
void shoal_check_banned(struct shoal_life *life, const shoal_chief_event *event);
/* Whether weights or sums that belong to this version must be one machine's. */
bool shoal_check_is_clean(const struct shoal_life *life, uint64_t generation, uint64_t version);
void shoal_check_liars(struct shoal_life *life); /* at the end */

/* ---- check_result.c: rules about what comes of it ---- */
/* samples and bits: after every call of an owner. */
void shoal_check_owner(struct shoal_life *life, struct shoal_sim_node *node);
/* bits: the chief tells a round's sums. */
void shoal_check_round(struct shoal_life *life, const shoal_chief_event *event);
/* bits: what the chief's driver got at a rest. */
void shoal_check_rest(struct shoal_life *life, const shoal_message *weights);
/* An owner sends weights. */
void shoal_check_weights(struct shoal_life *life, const shoal_message *message);
/* staleness: the version that a worker computes from, found by the weights themselves. */
uint64_t shoal_check_computed(struct shoal_life *life, const shoal_work_unit *unit, const float *weights);
/* staleness: a report that the chief will use. */
void shoal_check_report(struct shoal_life *life, const shoal_packet *packet);
/* staleness: before a PUSH reaches an owner. */
void shoal_check_push(struct shoal_life *life, struct shoal_sim_node *owner, const shoal_packet *packet);
/* durable: a version is safe; a record was looked for; the chief has started from `version`. */
void shoal_check_safe(struct shoal_life *life, uint64_t version);
void shoal_check_found(struct shoal_life *life, const struct shoal_sim_node *node, uint64_t version,
                       bool found);
void shoal_check_start(struct shoal_life *life, bool found, uint64_t version);
/* samples: the life is over. */
void shoal_check_end(struct shoal_life *life);

#endif
