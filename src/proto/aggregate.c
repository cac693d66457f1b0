/* aggregate.c: see aggregate.h.
 *
 * Vectors are walked in blocks of columns. A block of every group is loaded into rows, with the
 * scale of its contributions and the group's mean applied, so nothing is ever copied as a whole and the
 * rows stay in the cache. Distances and norms are square sums of blocks by the kernels, added in double. */
#include "proto/aggregate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "base/text.h"

enum { BLOCK = 256, CLIP_STEPS = 3 };
static const double NORM_MAX = 1e18; /* squares of twice that are still far from a float's end */
static const float CENTRE_KEPT = 0.9f;
static const double FAR = 2; /* radii from the centre, for a verdict */

static const char *const names[] = {
    [SHOAL_RULE_MEAN] = "mean", [SHOAL_RULE_MEDIAN] = "median",         [SHOAL_RULE_TRIMMED] = "trimmed",
    [SHOAL_RULE_KRUM] = "krum", [SHOAL_RULE_MULTI_KRUM] = "multi-krum", [SHOAL_RULE_CLIP] = "clip",
};
enum { NAMES_COUNT = sizeof names / sizeof names[0] };

/* ---- rules as text ---- */

static shoal_status no_rule(const char *text, shoal_error *err) {
  return shoal_fail(
      err, SHOAL_INVALID,
      "'%s' is no rule; there are mean, median, trimmed:SHARE (below 0.5), krum:F, multi-krum:F "
      "(F liars at most) and clip, and each with /S for groups of S before it (S up to %d)",
      text, SHOAL_RULE_BUCKET_MAX);
}

/* What stands behind the colon; rules without a number have none. */
static bool read_number(shoal_rule *rule, const char *word, size_t length) {
  uint64_t whole;
  switch (rule->kind) {
  case SHOAL_RULE_TRIMMED:
    return word != NULL && shoal_read_f64(word, length, &rule->share) && rule->share >= 0 &&
           rule->share < 0.5;
  case SHOAL_RULE_KRUM:
  case SHOAL_RULE_MULTI_KRUM:
    if (word == NULL || !shoal_read_u64(word, length, &whole) || whole > SHOAL_RULE_BAD_MAX) return false;
    rule->bad = (uint32_t)whole;
    return true;
  default: return word == NULL;
  }
}

shoal_status shoal_rule_parse(const char *text, shoal_rule *out, shoal_error *err) {
  *out = (shoal_rule){.bucket = 1};
  size_t length = strcspn(text, "/"), name = strcspn(text, ":/");
  if (text[length] == '/') {
    uint64_t bucket;
    const char *word = text + length + 1;
    if (!shoal_read_u64(word, strlen(word), &bucket) || bucket == 0 || bucket > SHOAL_RULE_BUCKET_MAX)
      return no_rule(text, err);
    out->bucket = (uint32_t)bucket;
  }
  const char *number = name < length ? text + name + 1 : NULL;
  for (int kind = 0; kind < NAMES_COUNT; kind++) {
    if (strlen(names[kind]) != name || strncmp(text, names[kind], name) != 0) continue;
    out->kind = (shoal_rule_kind)kind;
    return read_number(out, number, number != NULL ? length - name - 1 : 0) ? SHOAL_OK : no_rule(text, err);
  }
  return no_rule(text, err);
}

const char *shoal_rule_text(const shoal_rule *rule, char out[SHOAL_RULE_TEXT_MAX]) {
  char number[24] = "", bucket[16] = "";
  if (rule->kind == SHOAL_RULE_TRIMMED) snprintf(number, sizeof number, ":%g", rule->share);
  if (rule->kind == SHOAL_RULE_KRUM || rule->kind == SHOAL_RULE_MULTI_KRUM)
    snprintf(number, sizeof number, ":%u", rule->bad);
  if (rule->bucket > 1) snprintf(bucket, sizeof bucket, "/%u", rule->bucket);
  snprintf(out, SHOAL_RULE_TEXT_MAX, "%s%s%s", names[rule->kind], number, bucket);
  return out;
}

static const char MORE_PARTS[] = "have more parts in a round: 'shards N' in the model's text, or a larger "
                                 "batch; in mode local:H more workers";

static uint32_t groups_of(const shoal_rule *rule, uint32_t contributions) {
  uint32_t size = rule->bucket > 1 ? rule->bucket : 1;
  return (contributions + size - 1) / size;
}

shoal_status shoal_rule_check(const shoal_rule *rule, uint32_t contributions, shoal_error *err) {
  if (rule->kind != SHOAL_RULE_KRUM && rule->kind != SHOAL_RULE_MULTI_KRUM) return SHOAL_OK;
  uint32_t groups = groups_of(rule, contributions), least = 2 * rule->bad + 3;
  if (groups >= least) return SHOAL_OK;
  char text[SHOAL_RULE_TEXT_MAX];
  return shoal_fail(
      err, SHOAL_INVALID,
      "rule %s needs at least 2 x %u + 3 = %u %s a round, and there are %u: name fewer liars, or %s",
      shoal_rule_text(rule, text), rule->bad, least, rule->bucket > 1 ? "groups" : "contributions", groups,
      MORE_PARTS);
}

/* How many of so many sorted are cut off at each end. */
static uint32_t cut_of(const shoal_rule *rule, uint32_t groups) {
  switch (rule->kind) {
  case SHOAL_RULE_MEDIAN: return (groups - 1) / 2;
  case SHOAL_RULE_TRIMMED: return (uint32_t)(rule->share * groups + 1e-9);
  default: return 0;
  }
}

bool shoal_rule_is_idle(const shoal_rule *rule, uint32_t contributions, char out[SHOAL_RULE_ADVICE_MAX]) {
  uint32_t groups = groups_of(rule, contributions);
  bool cuts = rule->kind == SHOAL_RULE_MEDIAN || rule->kind == SHOAL_RULE_TRIMMED;
  bool is_idle = groups > 0 && cuts && cut_of(rule, groups) == 0;
  if (rule->kind == SHOAL_RULE_CLIP) is_idle = groups == 1;
  if (!is_idle) return false;
  char text[SHOAL_RULE_TEXT_MAX];
  snprintf(
      out, SHOAL_RULE_ADVICE_MAX,
      "a round has %u contribution%s%s, of which rule %s leaves out none: it does no more than mean; %s%s",
      contributions, contributions == 1 ? "" : "s", rule->bucket > 1 ? " before they are grouped" : "",
      shoal_rule_text(rule, text), rule->kind == SHOAL_RULE_TRIMMED ? "cut off a larger share, or " : "",
      MORE_PARTS);
  return true;
}

/* ---- memory ---- */

struct shoal_aggregate {
  shoal_aggregate_config config;
  const float *const *contributions; /* of the round at hand */
  uint32_t present, groups;          /* likewise: those not left out, and the groups they make */
  uint32_t *order;                   /* contribution numbers of those present, group after group */
  float *scales;                     /* one a contribution */
  double *norms;                     /* one a contribution */
  double *sorted;                    /* room to sort any of these */
  float *rows;                       /* a block of each group */
  float *apart;                      /* a block: difference of two rows */
  float *step;                       /* a block: sum of such */
  double *distances;                 /* groups x groups, or one a group */
  float *factors;                    /* one a group */
  bool *taken;                       /* one a group */
  float *centre;                     /* or NULL */
};

/* Zeroed, and never of no bytes. */
static void *room(size_t count, size_t size, bool *ok) {
  void *made = calloc(count + 1, size);
  if (made == NULL) *ok = false;
  return made;
}

shoal_status shoal_aggregate_create(shoal_aggregate **out, const shoal_aggregate_config *config,
                                    shoal_error *err) {
  *out = NULL;
  uint32_t n = config->contributions, groups = groups_of(&config->rule, n);
  shoal_status status = shoal_rule_check(&config->rule, n, err);
  if (status != SHOAL_OK) return status;
  bool ok = true, pairs = config->rule.kind == SHOAL_RULE_KRUM || config->rule.kind == SHOAL_RULE_MULTI_KRUM;
  shoal_aggregate *a = room(1, sizeof *a, &ok);
  if (a == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a rule");
  a->config = *config;
  a->order = room(n, sizeof *a->order, &ok);
  a->scales = room(n, sizeof *a->scales, &ok);
  a->norms = room(n, sizeof *a->norms, &ok);
  a->sorted = room(n, sizeof *a->sorted, &ok);
  a->rows = aligned_alloc(64, (size_t)(groups + 1) * BLOCK * sizeof *a->rows);
  ok &= a->rows != NULL;
  if (a->rows != NULL) memset(a->rows, 0, (size_t)groups * BLOCK * sizeof *a->rows);
  a->apart = room(BLOCK, sizeof *a->apart, &ok);
  a->step = room(BLOCK, sizeof *a->step, &ok);
  a->distances = room(pairs ? (size_t)groups * groups : groups, sizeof *a->distances, &ok);
  a->factors = room(groups, sizeof *a->factors, &ok);
  a->taken = room(groups, sizeof *a->taken, &ok);
  if (config->rule.kind == SHOAL_RULE_CLIP) a->centre = room(config->count, sizeof *a->centre, &ok);
  if (!ok) {
    shoal_aggregate_destroy(a);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a rule on %u contributions of %zu weights",
                      n, config->count);
  }
  *out = a;
  return SHOAL_OK;
}

void shoal_aggregate_destroy(shoal_aggregate *a) {
  if (a == NULL) return;
  free(a->order);
  free(a->scales);
  free(a->norms);
  free(a->sorted);
  free(a->rows);
  free(a->apart);
  free(a->step);
  free(a->distances);
  free(a->factors);
  free(a->taken);
  free(a->centre);
  free(a);
}

float *shoal_aggregate_centre(shoal_aggregate *a) { return a->centre; }

/* ---- norms ---- */

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The lower one of two middles: with fewer liars than half never above all of the honest. */
static double lower_median(double *values, uint32_t count) {
  qsort(values, count, sizeof *values, compare_reals);
  return values[(count - 1) / 2];
}

/* Its square sum is finite only where all of a vector is. */
static double norm_of(const shoal_aggregate *a, const float *x) {
  double norm = x != NULL ? sqrt(shoal_square_sum(a->config.kernels, a->config.count, x)) : INFINITY;
  return norm <= NORM_MAX ? norm : INFINITY;
}

/* Who is in, and how far each is scaled down. */
static void weigh(shoal_aggregate *a) {
  a->present = 0;
  for (uint32_t i = 0; i < a->config.contributions; i++) {
    a->norms[i] = norm_of(a, a->contributions[i]);
    if (!isfinite(a->norms[i])) continue;
    a->sorted[a->present] = a->norms[i];
    a->order[a->present++] = i;
  }
  if (a->present == 0) return;
  double limit = SHOAL_NORM_TIMES * lower_median(a->sorted, a->present);
  for (uint32_t p = 0; p < a->present; p++) {
    uint32_t i = a->order[p];
    a->scales[i] = a->norms[i] > limit ? (float)(limit / a->norms[i]) : 1;
  }
}

void shoal_norms_add(shoal_norms *norms, double norm) {
  norms->ring[norms->added++ % SHOAL_NORMS_KEPT] = norm;
}

double shoal_norms_limit(const shoal_norms *norms) {
  if (norms->added < SHOAL_NORMS_LEAST) return INFINITY;
  uint32_t count = norms->added < SHOAL_NORMS_KEPT ? (uint32_t)norms->added : SHOAL_NORMS_KEPT;
  double sorted[SHOAL_NORMS_KEPT];
  memcpy(sorted, norms->ring, count * sizeof *sorted);
  return SHOAL_NORM_TIMES * lower_median(sorted, count);
}

/* ---- groups ---- */

/* Shuffles those present where they go into groups. */
static void deal(shoal_aggregate *a, uint64_t seed) {
  a->groups = groups_of(&a->config.rule, a->present);
  if (a->config.rule.bucket <= 1) return;
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_BUCKETS, 0, 0);
  for (uint32_t i = a->present; i > 1; i--) {
    uint32_t j = (uint32_t)shoal_random_below(key, i, i), swapped = a->order[i - 1];
    a->order[i - 1] = a->order[j];
    a->order[j] = swapped;
  }
}

static uint32_t group_start(const shoal_aggregate *a, uint32_t group) {
  uint32_t size = a->config.rule.bucket > 1 ? a->config.rule.bucket : 1;
  uint64_t start = (uint64_t)group * size;
  return start < a->present ? (uint32_t)start : a->present;
}

static float *row_of(const shoal_aggregate *a, uint32_t group) { return a->rows + (size_t)group * BLOCK; }

static void load_row(shoal_aggregate *a, uint32_t group, size_t first, size_t length) {
  uint32_t start = group_start(a, group), size = group_start(a, group + 1) - start;
  float *row = row_of(a, group);
  for (uint32_t m = 0; m < size; m++) {
    uint32_t i = a->order[start + m];
    const float *x = a->contributions[i] + first;
    float factor = a->scales[i] / (float)size;
    if (m == 0 && factor == 1) {
      memcpy(row, x, length * sizeof *row);
      continue;
    }
    if (m == 0) memset(row, 0, length * sizeof *row);
    a->config.kernels->add_scaled(length, row, factor, x, row);
  }
}

/* Loads a block of every group; returns its length, 0 past the end. */
static size_t load(shoal_aggregate *a, size_t first) {
  size_t left = a->config.count - first, length = left < BLOCK ? left : BLOCK;
  for (uint32_t g = 0; length > 0 && g < a->groups; g++) load_row(a, g, first, length);
  return length;
}

/* The mean of rows first .. end - 1, in this order. */
static void mean_of_rows(const shoal_aggregate *a, uint32_t first, uint32_t end, size_t length, float *out) {
  memcpy(out, row_of(a, first), length * sizeof *out);
  for (uint32_t g = first + 1; g < end; g++) a->config.kernels->add(length, out, row_of(a, g), out);
  for (size_t c = 0; c < length; c++) out[c] /= (float)(end - first);
}

/* ---- mean, median, trimmed mean ---- */

/* A few columns at once; compilers do not make such vectors of a loop with choices in it by themselves. */
typedef float columns __attribute__((vector_size(16), may_alias));
typedef int32_t column_masks __attribute__((vector_size(16), may_alias));
enum { COLUMNS = 4 };

/* Of every column the smaller goes to `low` and the larger to `high`. */
static void order_rows(float *low, float *high) {
  for (size_t c = 0; c < BLOCK; c += COLUMNS) {
    columns x = *(columns *)(low + c), y = *(columns *)(high + c);
    column_masks swap = y < x, bits = ((column_masks)x ^ (column_masks)y) & swap;
    *(column_masks *)(low + c) = (column_masks)x ^ bits;
    *(column_masks *)(high + c) = (column_masks)y ^ bits;
  }
}

/* Sorts every column, by Batcher's network for any number of rows (Knuth, 5.2.2, algorithm M). */
static void sort_columns(const shoal_aggregate *a) {
  uint32_t n = a->groups, top = 1;
  while (2 * top < n) top *= 2;
  for (uint32_t p = top; p > 0; p /= 2) {
    uint32_t q = top, r = 0, d = p;
    for (;;) {
      for (uint32_t i = 0; i + d < n; i++)
        if ((i & p) == r) order_rows(row_of(a, i), row_of(a, i + d));
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
}

static void by_columns(shoal_aggregate *a, float *out) {
  uint32_t cut = cut_of(&a->config.rule, a->groups);
  for (size_t first = 0, length; (length = load(a, first)) > 0; first += length) {
    if (cut > 0) sort_columns(a);
    mean_of_rows(a, cut, a->groups - cut, length, out + first);
  }
}

/* ---- Krum ---- */

static double apart_squared(const shoal_aggregate *a, const float *x, const float *y, size_t length) {
  a->config.kernels->add_scaled(length, x, -1, y, a->apart);
  return shoal_square_sum(a->config.kernels, length, a->apart);
}

static void measure_pairs(shoal_aggregate *a) {
  uint32_t n = a->groups;
  memset(a->distances, 0, (size_t)n * n * sizeof *a->distances);
  for (size_t first = 0, length; (length = load(a, first)) > 0; first += length)
    for (uint32_t g = 0; g < n; g++)
      for (uint32_t h = g + 1; h < n; h++)
        a->distances[(size_t)g * n + h] += apart_squared(a, row_of(a, g), row_of(a, h), length);
  for (uint32_t g = 0; g < n; g++)
    for (uint32_t h = 0; h < g; h++) a->distances[(size_t)g * n + h] = a->distances[(size_t)h * n + g];
}

/* The sum of the squared distances to the nearest others. */
static double score_of(const shoal_aggregate *a, uint32_t group, uint32_t nearest) {
  uint32_t others = 0;
  for (uint32_t h = 0; h < a->groups; h++)
    if (h != group) a->sorted[others++] = a->distances[(size_t)group * a->groups + h];
  qsort(a->sorted, others, sizeof *a->sorted, compare_reals);
  double score = 0;
  for (uint32_t h = 0; h < nearest && h < others; h++) score += a->sorted[h];
  return score;
}

/* Takes the `count` groups with the lowest scores, which stand in norms; of equal ones the first. */
static void take_best(shoal_aggregate *a, uint32_t count) {
  memset(a->taken, 0, a->groups * sizeof *a->taken);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t best = UINT32_MAX;
    for (uint32_t g = 0; g < a->groups; g++)
      if (!a->taken[g] && (best == UINT32_MAX || a->norms[g] < a->norms[best])) best = g;
    a->taken[best] = true;
  }
}

static void by_krum(shoal_aggregate *a, float *out) {
  uint32_t missing = a->config.contributions - a->present, bad = a->config.rule.bad;
  bad = bad > missing ? bad - missing : 0;
  uint32_t near = a->groups > bad + 2 ? a->groups - bad - 2 : 1;
  measure_pairs(a);
  for (uint32_t g = 0; g < a->groups; g++) a->norms[g] = score_of(a, g, near);
  take_best(a, a->config.rule.kind == SHOAL_RULE_KRUM ? 1 : near);
  for (size_t first = 0, length; (length = load(a, first)) > 0; first += length) {
    uint32_t kept = 0;
    for (uint32_t g = 0; g < a->groups; g++) {
      if (!a->taken[g]) continue;
      if (kept != g) memcpy(row_of(a, kept), row_of(a, g), length * sizeof(float));
      kept++;
    }
    mean_of_rows(a, 0, kept, length, out + first);
  }
}

/* ---- centred clipping ---- */

/* How much of each group's difference to the centre counts. */
static void measure_from(shoal_aggregate *a, const float *centre) {
  memset(a->distances, 0, a->groups * sizeof *a->distances);
  for (size_t first = 0, length; (length = load(a, first)) > 0; first += length)
    for (uint32_t g = 0; g < a->groups; g++)
      a->distances[g] += apart_squared(a, row_of(a, g), centre + first, length);
  for (uint32_t g = 0; g < a->groups; g++) a->sorted[g] = a->distances[g] = sqrt(a->distances[g]);
  double radius = lower_median(a->sorted, a->groups);
  for (uint32_t g = 0; g < a->groups; g++)
    a->factors[g] = a->distances[g] > radius ? (float)(radius / a->distances[g]) : 1;
}

static void by_clipping(shoal_aggregate *a, float *out) {
  const shoal_kernels *k = a->config.kernels;
  memcpy(out, a->centre, a->config.count * sizeof *out);
  for (int s = 0; s < CLIP_STEPS; s++) {
    measure_from(a, out);
    for (size_t first = 0, length; (length = load(a, first)) > 0; first += length) {
      memset(a->step, 0, BLOCK * sizeof *a->step);
      for (uint32_t g = 0; g < a->groups; g++) {
        k->add_scaled(length, row_of(a, g), -1, out + first, a->apart);
        k->add_scaled(length, a->step, a->factors[g], a->apart, a->step);
      }
      for (size_t c = 0; c < length; c++) out[first + c] += a->step[c] / (float)a->groups;
    }
  }
  for (uint32_t g = 0; g < a->groups; g++) a->taken[g] = a->factors[g] * FAR >= 1;
  for (size_t c = 0; c < a->config.count; c++)
    a->centre[c] = CENTRE_KEPT * a->centre[c] + (1 - CENTRE_KEPT) * out[c];
}

/* ---- a round ---- */

static void tell(const shoal_aggregate *a, uint8_t *verdicts) {
  memset(verdicts, SHOAL_VERDICT_NOT_FINITE, a->config.contributions);
  bool clips = a->config.rule.kind == SHOAL_RULE_CLIP;
  for (uint32_t g = 0; g < a->groups; g++)
    for (uint32_t m = group_start(a, g); m < group_start(a, g + 1); m++) {
      uint32_t i = a->order[m];
      verdicts[i] = a->scales[i] < 1 ? SHOAL_VERDICT_CLIPPED : SHOAL_VERDICT_USED;
      if (!a->taken[g]) verdicts[i] = clips ? SHOAL_VERDICT_CLIPPED : SHOAL_VERDICT_LEFT_OUT;
    }
}

uint32_t shoal_aggregate_run(shoal_aggregate *a, const float *const *contributions, uint64_t seed, float *out,
                             uint8_t *verdicts) {
  a->contributions = contributions;
  weigh(a);
  deal(a, seed);
  for (uint32_t g = 0; g < a->groups; g++) a->taken[g] = true;
  if (a->present == 0) {
    memset(out, 0, a->config.count * sizeof *out);
  } else {
    switch (a->config.rule.kind) {
    case SHOAL_RULE_MEAN:
    case SHOAL_RULE_MEDIAN:
    case SHOAL_RULE_TRIMMED: by_columns(a, out); break;
    case SHOAL_RULE_KRUM:
    case SHOAL_RULE_MULTI_KRUM: by_krum(a, out); break;
    case SHOAL_RULE_CLIP: by_clipping(a, out); break;
    }
  }
  if (verdicts != NULL) tell(a, verdicts);
  return a->present;
}
