/* trust.h: who is believed, and whose work is computed a second time.
 *
 * Every worker has a standing under a number that stands for it. A newcomer is unproven: every unit
 * of it is computed again by somebody else and counts when both agree. After SHOAL_TRUST_PROVES of these it
 * is proven: its units count at once, and a share of them, drawn at random, is still computed again:
 *
 *   units agreed       0 .. 3   4     5     6     7    ...   37 and more
 *   share audited      1        1     1/2   1/3   1/4  ...   0.03
 *
 * Who checks may be in league with whom it checks, so some of it only the chief's own auditor may do: all
 * that is drawn of the proven, one in four of a newcomer's units, and the one by which it becomes proven.
 *
 * A result that was shown to be wrong bans it, at once and until somebody lifts that. Who is asked about a
 * unit cannot know whether it will be audited: that follows from a secret seed. Complaints of others prove
 * nothing: who is doubted is audited for a while as if it had only just been proven.
 *
 * There is room for a fixed number of standings. When it is full, the one that has least to lose makes room:
 * unproven before proven, few agreed before many; those banned stay.
 *
 * What is kept of a standing is plain values, for whoever stores them. Ownership: create, then destroy.
 * Threads: one. */
#ifndef SHOAL_PROTO_TRUST_H
#define SHOAL_PROTO_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { SHOAL_TRUST_PROVES = 4 };

typedef enum shoal_standing_word { SHOAL_UNPROVEN, SHOAL_PROVEN, SHOAL_BANNED } shoal_standing_word;

/* What is known of somebody, and worth keeping. */
typedef struct shoal_standing {
  uint64_t who;           /* never 0 */
  uint64_t agreed, wrong; /* units that were computed again */
  uint64_t doubted;       /* how many had agreed when it was doubted last; 0: it is not */
  bool banned;
} shoal_standing;

typedef struct shoal_trust shoal_trust;

shoal_status shoal_trust_create(shoal_trust **out, uint32_t standings_max, uint64_t seed, shoal_error *err);
void shoal_trust_destroy(shoal_trust *trust);
/* Treats all workers as proven, and audits the given share (more than 0) of their units. This is for machines of
 * one's own, which do not lie but may be faulty. */
void shoal_trust_know_all(shoal_trust *trust, double share);

/* Tells a standing that was kept, in the place of what is known; also one that an admin has lifted a ban
 * from. */
void shoal_trust_put(shoal_trust *trust, const shoal_standing *standing);
/* Of somebody unknown: nothing agreed, nothing wrong. */
shoal_standing shoal_trust_get(const shoal_trust *trust, uint64_t who);
/* One after the other, from 0, in no order; false when there are not so many. */
bool shoal_trust_at(const shoal_trust *trust, uint32_t index, shoal_standing *out);

shoal_standing_word shoal_standing_word_of(const shoal_standing *standing);
const char *shoal_standing_name(shoal_standing_word word); /* "proven" */
bool shoal_trust_proven(const shoal_trust *trust, uint64_t who);
bool shoal_trust_banned(const shoal_trust *trust, uint64_t who);

/* The share of units that is audited after `agreed` units agreed. */
double shoal_trust_share(uint64_t agreed);
/* Whether this unit of theirs is computed again. `unit` is a number that comes once: the same question has
 * the same answer, as long as the standing is the same. */
bool shoal_trust_audits(const shoal_trust *trust, uint64_t who, uint64_t unit);
/* True if only the auditor may recompute this unit. Stable for a given standing. */
bool shoal_trust_wants_auditor(const shoal_trust *trust, uint64_t who, uint64_t unit);

/* A second result was equal, or has shown the first to be wrong. */
void shoal_trust_agreed(shoal_trust *trust, uint64_t who);
void shoal_trust_wrong(shoal_trust *trust, uint64_t who);
/* Somebody has complained of it. */
void shoal_trust_doubt(shoal_trust *trust, uint64_t who);

#endif
