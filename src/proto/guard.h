/* guard.h: which results count: those that have come are compared, and who lied is found.
 *
 * The chief tells the guard of every lease that it gives, of every report (DONE), and of every contribution
 * that has come to an owner (GOT). A result is whole when it was reported and is with all owners, and fits: a
 * worker names a contribution by its proof (proof.h), and owners must have found the same. Of a whole result
 * the guard rules whether it counts.
 *
 *   audits     Results of one unit are equal to the last bit, if they are honest. A newcomer's counts when
 *              one by somebody proven, who vouches for it, or by the chief's own auditor, is equal. A proven
 *              worker's counts at once. A share of all (trust.h) is drawn: only the auditor's word ends the
 *              matter, who computes them again and goes on when the round is over; those who vouch for each
 *              other can be in league. When that could not be done in time, or nothing was drawn for long,
 *              the worker's next unit counts only when the auditor has checked it; or, since one auditor may
 *              have too many workers, when it did not come for a while and somebody proven vouches. In the
 *              last rounds what is drawn counts when it was checked, and in the very last as much as costs
 *              little time. Of results that differ the auditor's is right, so nobody outvotes it, and the
 *              others are lies. An auditor that never comes holds up nothing for ever.
 *   limits     A result with values that are not finite, or with a norm above 8 times the median of those
 *              that counted, counts only when it was checked. Without audits (where results of one unit
 *              differ anyway) the first is refused, and the second scaled down; what two workers
 *              find not to be finite is not.
 *
 * A lease goes under a ticket: its number, and 32 bits that only the guard can make. Who has not got the
 * lease cannot name it.
 *
 * Results of somebody who turns out to lie, and those it has vouched for, are in versions that were made
 * since the auditor agreed with it last: shoal_guard_unchecked says since which round, so that the chief can
 * go back there.
 *
 * Ownership: create, then destroy; blobs are shared by counting. Threads: one. Time comes from the caller. */
#ifndef SHOAL_PROTO_GUARD_H
#define SHOAL_PROTO_GUARD_H

#include "nn/tree.h"
#include "proto/lease.h"
#include "proto/message.h"
#include "proto/trust.h"

typedef struct shoal_guard shoal_guard;

enum { SHOAL_GUARD_AUDITOR = 0 }; /* who: the chief's own */

typedef struct shoal_guard_config {
  uint32_t units_max; /* open at a time */
  uint32_t holders_max;
  uint32_t owners;
  uint32_t parts; /* of a round: unit / parts is its round */
  bool audits;
  /* All are known (trust.h), and this share of their units is computed again; with 1 none counts before that.
   * 0: strangers. */
  double recheck;
  uint32_t people_max; /* standings, and who is remembered for other reasons */
  uint64_t secret[2];
} shoal_guard_config;

typedef enum shoal_ruling_kind {
  SHOAL_RULING_WHOLE,    /* the lease has its result */
  SHOAL_RULING_COUNTS,   /* and that is the unit's: sums, report, scale, finite */
  SHOAL_RULING_COUNTED,  /* it does already; the owner of `slice` asks for it again */
  SHOAL_RULING_FORGET,   /* what owners have under the ticket will not count */
  SHOAL_RULING_FREE,     /* the lease ends without a result */
  SHOAL_RULING_AGREED,   /* a result was checked, and was right */
  SHOAL_RULING_WRONG,    /* or was a lie: `why`. Who did it is banned already */
  SHOAL_RULING_REJECTED, /* a result that does not count, or not as it is: `why` */
} shoal_ruling_kind;

typedef struct shoal_ruling {
  shoal_ruling_kind kind;
  uint64_t ticket, lease, peer, who, unit, proof;
  uint32_t slice;     /* COUNTED */
  uint32_t count;     /* parts of the unit */
  bool credits;       /* AGREED: the auditor's result counted, and this one did the same work */
  bool finite;        /* COUNTS: if not, owners are not to have it */
  float scale;        /* COUNTS: 1, or less */
  shoal_sums sums;    /* COUNTS */
  shoal_blob *report; /* COUNTS: the payload of DONE; the receiver's */
  const char *why;    /* a constant */
} shoal_ruling;

shoal_status shoal_guard_create(shoal_guard **out, const shoal_guard_config *config, shoal_error *err);
void shoal_guard_destroy(shoal_guard *guard);
shoal_trust *shoal_guard_trust(shoal_guard *guard);

/* How near the training is to where it may end. */
typedef struct shoal_guard_end {
  uint64_t rounds_left; /* behind the unit's; 0: it is in the last */
  double share;         /* of units of the last that the auditor checks before they count */
} shoal_guard_end;

/* A lease of `count` parts was given; returns its ticket, or 0 when the unit has results enough. */
uint64_t shoal_guard_leased(shoal_guard *guard, const shoal_lease *lease, uint32_t count, uint64_t who,
                            const shoal_guard_end *end);
/* Of a ticket: the lease and its unit; false when there is no such one, or it is another's. */
bool shoal_guard_find(const shoal_guard *guard, uint64_t ticket, uint64_t peer, uint64_t *lease,
                      uint64_t *unit);
/* The report is shared. */
void shoal_guard_done(shoal_guard *guard, uint64_t ticket, uint64_t proof, const shoal_sums *sums,
                      shoal_blob *report, double now);
/* The owner's rule has left out, or cut down, what counts under a ticket: whose it was. False: no such
 * ticket. */
bool shoal_guard_cut(shoal_guard *guard, uint64_t ticket, uint64_t *peer);
/* False: no such ticket; the owner may forget it. */
bool shoal_guard_got(shoal_guard *guard, uint64_t ticket, uint32_t slice, uint64_t proof, double squares);
/* A lease was given back, or a peer is gone: what is not whole will not be. */
void shoal_guard_returned(shoal_guard *guard, uint64_t ticket);
void shoal_guard_gone(shoal_guard *guard, uint64_t peer);

/* Whether somebody may have another unit: of a newcomer's no more wait for a check than would prove it. */
bool shoal_guard_may_have(const shoal_guard *guard, uint64_t who);
/* A unit that this one should check, now; false: none. */
bool shoal_guard_wants(const shoal_guard *guard, uint64_t who, double now, uint64_t *unit);

/* Rounds below these are closed, and applied by all owners. */
void shoal_guard_close(shoal_guard *guard, uint64_t closed, uint64_t applied);
/* All go back to this version: nothing is under way any more. Of rulings that wait only WRONG stays: who has
 * lied has lied. */
void shoal_guard_back(shoal_guard *guard, uint64_t version);

/* Gives up what was reported `patience_s` ago and is not with all owners, and waits no longer for an auditor
 * that does not come. */
void shoal_guard_tick(shoal_guard *guard, double now, double patience_s);
double shoal_guard_next_tick(const shoal_guard *guard, double now, double patience_s);

bool shoal_guard_pending(const shoal_guard *guard); /* a check of a round that is over is still under way */
/* The first round with a result of theirs since the auditor agreed last; UINT64_MAX: none. */
uint64_t shoal_guard_unchecked(const shoal_guard *guard, uint64_t who);
/* The same, of all who are not banned. */
uint64_t shoal_guard_unchecked_of_all(const shoal_guard *guard);
/* The same, of those who are: what they did was not undone before a crash. */
uint64_t shoal_guard_unchecked_of_banned(const shoal_guard *guard);
/* What somebody did, or with who = 0 all who are banned, is undone as far as it can be. */
void shoal_guard_undone(shoal_guard *guard, uint64_t who);
/* How many who are not banned have it in rounds first .. last. */
uint32_t shoal_guard_unchecked_in(const shoal_guard *guard, uint64_t first, uint64_t last);

/* What a guard must remember of somebody to undo, after a crash, what was done before. */
typedef struct shoal_guard_person {
  uint64_t who;
  uint64_t unchecked, unchecked_last; /* rounds; UINT64_MAX for none */
  uint32_t unaudited;                 /* units in these that count */
  uint32_t owed;                      /* 1: a check was drawn and could not be done */
} shoal_guard_person;
/* Writes those of whom there is something to remember. Where there are more than `max`, *others is the first
 * unchecked round of the rest, who are then told from nobody else; else UINT64_MAX. Returns how many. */
uint32_t shoal_guard_people(const shoal_guard *guard, shoal_guard_person *out, uint32_t max,
                            uint64_t *others);
/* For a new guard, which starts at `version`. */
void shoal_guard_remember(shoal_guard *guard, const shoal_guard_person *people, uint32_t count,
                          uint64_t others, uint64_t version);

/* Results of a unit of this round differ, and the auditor has not said yet who is right. */
bool shoal_guard_disputes(const shoal_guard *guard, uint64_t round);

/* Drain until false, after every call. */
bool shoal_guard_next(shoal_guard *guard, shoal_ruling *out);
bool shoal_guard_has_more(const shoal_guard *guard);

typedef struct shoal_guard_counts {
  uint64_t units;  /* that count */
  uint64_t checks; /* leases given for a check */
  uint64_t agreed, wrong, rejected;
} shoal_guard_counts;
shoal_guard_counts shoal_guard_count(const shoal_guard *guard);

#endif
