/* aggregate.h: one vector from many, some of which may be lies.
 *
 * A rule takes the n contributions of a round, each a vector of the same length, and gives one that
 * stands for them all. The mean is moved anywhere by a single liar; the others bound what liars can
 * do, at the price of what is lost when honest contributions differ (bench/attacks has the figures):
 *
 *   mean           of all
 *   median         coordinate by coordinate; of an even number the mean of the middle two
 *   trimmed:SHARE  coordinate by coordinate the mean without the SHARE largest and the SHARE smallest
 *   krum:F         the contribution that is nearest to its n - F - 2 nearest (Blanchard et al. 2017)
 *   multi-krum:F   the mean of the n - F - 2 best by that score
 *   clip           centred clipping (Karimireddy, He, Jaggi 2021): from a centre, one step by the mean of the
 *                  contributions' differences to it, each cut to a radius, three times. The radius is the
 *                  median of the distances, the lower one of an even number, so with fewer liars than half
 *                  it is at most an honest distance. The centre is the running mean of earlier results
 *                  (momentum 0.9): units are pure functions, so the memory is here and not in workers.
 *   RULE/S         bucketing (Karimireddy, He, Jaggi 2022): contributions are first put into random groups
 *                  of S and the means of the groups go to RULE. Helps where honest contributions differ
 *                  much, with few liars: one is enough to spoil a group.
 *
 * Always, before any rule: what has a NaN, an Inf or a norm above 1e18 is left out, and what has a
 * norm above 8 times the round's median is scaled down to that. A contribution left out so counts as
 * one of the F found.
 *
 * Results depend on the arguments alone: every sum has a fixed order, so all machines get the same bits.
 *
 * Ownership: create, then destroy; kernels and vectors are borrowed. Threads: one.
 * After create nothing is allocated. */
#ifndef SHOAL_PROTO_AGGREGATE_H
#define SHOAL_PROTO_AGGREGATE_H

#include "base/status.h"
#include "kernels/kernels.h"

typedef enum shoal_rule_kind {
  SHOAL_RULE_MEAN,
  SHOAL_RULE_MEDIAN,
  SHOAL_RULE_TRIMMED,
  SHOAL_RULE_KRUM,
  SHOAL_RULE_MULTI_KRUM,
  SHOAL_RULE_CLIP,
} shoal_rule_kind;

enum {
  SHOAL_RULE_BAD_MAX = 1000,
  SHOAL_RULE_BUCKET_MAX = 64,
  SHOAL_RULE_TEXT_MAX = 64,
  SHOAL_RULE_ADVICE_MAX = 320
};

/* Zeros are the mean of all. */
typedef struct shoal_rule {
  shoal_rule_kind kind;
  double share;    /* TRIMMED: cut from each end; below 0.5 */
  uint32_t bad;    /* KRUM, MULTI_KRUM: F */
  uint32_t bucket; /* S; 0 and 1 are without */
} shoal_rule;

/* From the words above, and back. */
shoal_status shoal_rule_parse(const char *text, shoal_rule *out, shoal_error *err);
const char *shoal_rule_text(const shoal_rule *rule, char out[SHOAL_RULE_TEXT_MAX]);

/* Whether the rule can work on so many contributions a round. The error says how many it needs. */
shoal_status shoal_rule_check(const shoal_rule *rule, uint32_t contributions, shoal_error *err);

/* Whether the rule leaves out none of so many contributions a round, and so does nothing against liars that the
 * mean does not: then `out` says so, and what would help. Of the mean nobody expects more. */
bool shoal_rule_is_idle(const shoal_rule *rule, uint32_t contributions, char out[SHOAL_RULE_ADVICE_MAX]);

/* What became of a contribution. A group's verdict is that of all in it. */
typedef enum shoal_verdict {
  SHOAL_VERDICT_USED,
  SHOAL_VERDICT_CLIPPED,    /* scaled down: its norm, or more than twice the radius from clip's centre */
  SHOAL_VERDICT_LEFT_OUT,   /* Krum took others: of krum all but one, so this alone accuses nobody */
  SHOAL_VERDICT_NOT_FINITE, /* NaN, Inf or beyond all bounds; or it was NULL */
} shoal_verdict;

typedef struct shoal_aggregate shoal_aggregate;

typedef struct shoal_aggregate_config {
  shoal_rule rule;
  const shoal_kernels *kernels;
  uint32_t contributions; /* of a round */
  size_t count;           /* floats of each */
} shoal_aggregate_config;

/* Fails as shoal_rule_check does. */
shoal_status shoal_aggregate_create(shoal_aggregate **out, const shoal_aggregate_config *config,
                                    shoal_error *err);
void shoal_aggregate_destroy(shoal_aggregate *aggregate);

/* Writes the result, of the size of one contribution, to `out`, which is none of them, and a shoal_verdict
 * on each to `verdicts` (may be NULL). A NULL among the contributions is one that is missing. The
 * seed is the round's, and decides who is in a group with whom. Returns how many were not left out as
 * NOT_FINITE; with 0 the result is zeros and the centre stays. */
uint32_t shoal_aggregate_run(shoal_aggregate *aggregate, const float *const *contributions, uint64_t seed,
                             float *out, uint8_t *verdicts);

/* What a rule remembers from round to round, to be kept beside the weights and written back: `count` floats,
 * zeros at first. NULL for rules that remember nothing: all but clip. */
float *shoal_aggregate_centre(shoal_aggregate *aggregate);

/* ---- limits on norms, across rounds ---- */

enum { SHOAL_NORMS_KEPT = 100, SHOAL_NORMS_LEAST = 10 };
#define SHOAL_NORM_TIMES 8.0

/* The norms of the last accepted contributions; zeros at first. */
typedef struct shoal_norms {
  double ring[SHOAL_NORMS_KEPT];
  uint64_t added;
} shoal_norms;

void shoal_norms_add(shoal_norms *norms, double norm);
/* 8 times the median of those kept; infinity before there are 10. */
double shoal_norms_limit(const shoal_norms *norms);

#endif
