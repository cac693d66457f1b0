/* lease.h: which worker has which unit of work, and until when.
 *
 * A unit is a number whose meaning is the job's; its result is a pure function of it. Units
 * are offered, leased to workers who ask, and finished by the first result. A lease has one
 * holder and a deadline; a unit whose leases are all overdue is leased again to a worker who
 * has nothing else to do, so a unit can have several leases, but never two of one worker. A
 * second result must be equal to the first; that is checked by its digest.
 *
 * How long a unit may take is learnt: `patience` times the median of the last results.
 *
 * With lanes, a worker keeps to those that it has begun with, since it has their data: a lane is whose unit
 * it had last. Who asks gets a unit of its own lanes first, then one of a lane whose holder is gone, or, when
 * it has no lane yet, one that nobody ever had. Everything else waits for the one it is meant for: a lane of
 * who has at least two more, and one that nobody had, for some times the median, or for some seconds; one of
 * anybody else, who may be fetching its data, for a good deal longer. So do leases before they are overdue.
 *
 * Time comes from the caller and only grows. Nothing here reads a clock, allocates after
 * create, or depends on anything but the calls made.
 *
 * Ownership: create, then destroy. Threads: one. */
#ifndef SHOAL_PROTO_LEASE_H
#define SHOAL_PROTO_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_lease_book shoal_lease_book;

typedef struct shoal_lease_rules {
  uint32_t units_max;   /* known at a time, finished ones included until they are forgotten */
  uint32_t holders_max; /* leases of one unit at a time */
  double patience;      /* an overdue lease has lasted so many times the median */
  double first_s;       /* how long a lease lasts before any result is known */
  double least_s;       /* and never less than this */
  uint32_t lanes;       /* 0: none; else unit n is in lane n % lanes */
} shoal_lease_rules;

typedef struct shoal_lease {
  uint64_t id; /* from 1; never used again */
  uint64_t unit;
  uint64_t worker;
  double since, deadline;
} shoal_lease;

typedef enum shoal_lease_outcome {
  SHOAL_LEASE_FIRST,   /* the unit is finished by this result */
  SHOAL_LEASE_AGREES,  /* it was finished before, with an equal result */
  SHOAL_LEASE_DIFFERS, /* it was finished before, with another result: somebody is wrong */
  SHOAL_LEASE_STRANGE, /* no such lease, unit or holder any more: the result is not wanted */
} shoal_lease_outcome;

typedef struct shoal_lease_counts {
  uint32_t free, leased, finished; /* units */
  uint64_t again;                  /* leases given on a unit that somebody already had, since create */
} shoal_lease_counts;

shoal_status shoal_lease_book_create(shoal_lease_book **out, const shoal_lease_rules *rules,
                                     shoal_error *err);
void shoal_lease_book_destroy(shoal_lease_book *book);

/* A new unit; false when the book is full. A unit that the book knows is the caller's bug. */
bool shoal_lease_offer(shoal_lease_book *book, uint64_t unit);

/* A lease for a worker who asks: of the free unit with the lowest number (with lanes, see above), or
 * else of the unit that is overdue for longest. False when there is nothing for this worker now. */
bool shoal_lease_take(shoal_lease_book *book, uint64_t worker, double now, shoal_lease *out);

/* A lease of this very unit, at once, whoever else has it, also when it is finished: for who shall check
 * it. Lanes stay whose they are, and it does not count as leased again. False: the book does not know the
 * unit, the worker has it already, or holders_max have it. */
bool shoal_lease_join(shoal_lease_book *book, uint64_t worker, uint64_t unit, double now, shoal_lease *out);

/* A result has come in under a lease. */
shoal_lease_outcome shoal_lease_finish(shoal_lease_book *book, uint64_t lease, uint64_t worker, uint64_t unit,
                                       uint64_t digest, double now);

/* Ends one lease, or all of a worker's, without a result; their units are free again unless
 * others have them. */
void shoal_lease_return(shoal_lease_book *book, uint64_t lease, uint64_t worker);
void shoal_lease_drop(shoal_lease_book *book, uint64_t worker);

/* Forgets all units below this number, or with UINT64_MAX all of them: results for them are
 * strange from now on. */
void shoal_lease_forget(shoal_lease_book *book, uint64_t below);

bool shoal_lease_has_free(const shoal_lease_book *book); /* a unit that nobody has */
/* Whether there may be something for somebody now: a free unit, or an overdue one. */
bool shoal_lease_has_any(shoal_lease_book *book, double now);
/* When a unit becomes overdue next after `now` that may be leased again, or a free one may leave its lane,
 * for a timer; infinity when none will. What is overdue already waits for a worker, not for the time. */
double shoal_lease_next_deadline(shoal_lease_book *book, double now);
bool shoal_lease_find(const shoal_lease_book *book, uint64_t lease, shoal_lease *out); /* a running one */
/* Who has the unit: writes up to `most` workers and returns how many. */
uint32_t shoal_lease_holders(const shoal_lease_book *book, uint64_t unit, uint64_t *workers, uint32_t most);
/* Whether the worker holds a lease now, and the last of its leases. A walk over all leases. */
bool shoal_lease_held(const shoal_lease_book *book, uint64_t worker, shoal_lease *out);
/* How long the last results took, in the middle; 0 before there is one. */
double shoal_lease_median(const shoal_lease_book *book);
shoal_lease_counts shoal_lease_count(const shoal_lease_book *book);

#endif
