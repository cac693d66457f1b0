/* Rules against plain references in double, and what must hold whatever liars send. */
#include "proto/aggregate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

enum { MOST = 70, LONG = 700 };

/* Vectors and what a run makes of them. */
typedef struct round_of {
  uint32_t n;
  size_t count;
  float data[MOST][LONG];
  const float *at[MOST];
  float out[LONG];
  uint8_t verdicts[MOST];
} round_of;

static shoal_rule rule_of(const char *text) {
  shoal_rule rule;
  assert_int_equal(shoal_rule_parse(text, &rule, NULL), SHOAL_OK);
  return rule;
}

/* Contributions around a common vector, as honest ones are. */
static round_of *draw(uint32_t n, size_t count, uint64_t seed) {
  round_of *r = calloc(1, sizeof *r);
  assert_non_null(r);
  r->n = n;
  r->count = count;
  for (uint32_t i = 0; i < n; i++) {
    r->at[i] = r->data[i];
    for (size_t c = 0; c < count; c++)
      r->data[i][c] = shoal_random_normal(shoal_key_make(seed, SHOAL_FOR_TOY, 0, 0), c) +
                      0.5f * shoal_random_normal(shoal_key_make(seed, SHOAL_FOR_TOY, 1, i), c);
  }
  return r;
}

static shoal_aggregate *make(const char *rule, const round_of *r, const char *kernels) {
  const shoal_aggregate_config config = {.rule = rule_of(rule),
                                         .kernels =
                                             kernels ? shoal_kernels_named(kernels) : shoal_kernels_get(),
                                         .contributions = r->n,
                                         .count = r->count};
  shoal_aggregate *a;
  shoal_error err;
  if (shoal_aggregate_create(&a, &config, &err) != SHOAL_OK) fail_msg("%s: %s", rule, err.text);
  return a;
}

static uint32_t run(const char *rule, round_of *r) {
  shoal_aggregate *a = make(rule, r, NULL);
  uint32_t used = shoal_aggregate_run(a, r->at, 7, r->out, r->verdicts);
  shoal_aggregate_destroy(a);
  return used;
}

static void assert_near(double got, double want, const char *what) {
  if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want)))) fail_msg("%s: %.9g instead of %.9g", what, got, want);
}

/* ---- references ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double trimmed_column(const round_of *r, size_t c, uint32_t cut) {
  double column[MOST], sum = 0;
  for (uint32_t i = 0; i < r->n; i++) column[i] = r->data[i][c];
  qsort(column, r->n, sizeof *column, compare);
  for (uint32_t i = cut; i < r->n - cut; i++) sum += column[i];
  return sum / (r->n - 2 * cut);
}

static double distance2(const float *x, const float *y, size_t count) {
  double sum = 0;
  for (size_t c = 0; c < count; c++) sum += ((double)x[c] - y[c]) * ((double)x[c] - y[c]);
  return sum;
}

/* Krum's scores, and the numbers of the contributions from the best to the worst. */
static void krum_order(const round_of *r, uint32_t bad, uint32_t order[MOST]) {
  double scores[MOST];
  for (uint32_t i = 0; i < r->n; i++) {
    double others[MOST];
    for (uint32_t j = 0; j < r->n; j++) others[j] = distance2(r->data[i], r->data[j], r->count);
    qsort(others, r->n, sizeof *others, compare);
    scores[i] = 0;
    for (uint32_t j = 1; j <= r->n - bad - 2; j++) scores[i] += others[j]; /* others[0] is itself */
    order[i] = i;
  }
  for (uint32_t i = 0; i < r->n; i++)
    for (uint32_t j = i + 1; j < r->n; j++)
      if (scores[order[j]] < scores[order[i]]) {
        uint32_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
      }
}

static void clip_reference(const round_of *r, const double *centre, double *out) {
  memcpy(out, centre, r->count * sizeof *out);
  for (int step = 0; step < 3; step++) {
    double distance[MOST], sorted[MOST], sum[LONG] = {0};
    for (uint32_t i = 0; i < r->n; i++) {
      distance[i] = 0;
      for (size_t c = 0; c < r->count; c++)
        distance[i] += (r->data[i][c] - out[c]) * (r->data[i][c] - out[c]);
      sorted[i] = distance[i] = sqrt(distance[i]);
    }
    qsort(sorted, r->n, sizeof *sorted, compare);
    double radius = sorted[(r->n - 1) / 2];
    for (uint32_t i = 0; i < r->n; i++)
      for (size_t c = 0; c < r->count; c++)
        sum[c] += (distance[i] > radius ? radius / distance[i] : 1) * (r->data[i][c] - out[c]);
    for (size_t c = 0; c < r->count; c++) out[c] += sum[c] / r->n;
  }
}

/* ---- tests ---- */

static const uint32_t counts[] = {1, 2, 3, 4, 5, 7, 8, 13, 14, 31, 64, 70};
static const size_t lengths[] = {1, 16, 255, 256, 257, 700};
enum { COUNTS = sizeof counts / sizeof counts[0], LENGTHS = sizeof lengths / sizeof lengths[0] };

static void columns_are_those_of_a_plain_sort(void **state) {
  (void)state;
  const struct {
    const char *rule;
    double share; /* below 0: the median */
  } cases[] = {{"mean", 0}, {"median", -1}, {"trimmed:0.2", 0.2}, {"trimmed:0.49", 0.49}, {"trimmed:0", 0}};
  for (uint32_t n = 0; n < COUNTS; n++)
    for (uint32_t l = 0; l < LENGTHS; l++)
      for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        round_of *r = draw(counts[n], lengths[l], n + l);
        for (uint32_t i = 0; r->count == 1 && i < r->n; i++) r->data[i][0] += 5; /* norms within the limit */
        assert_int_equal(run(cases[k].rule, r), r->n);
        uint32_t cut = cases[k].share < 0 ? (r->n - 1) / 2 : (uint32_t)(cases[k].share * r->n);
        for (size_t c = 0; c < r->count; c++)
          assert_near(r->out[c], trimmed_column(r, c, cut), cases[k].rule);
        for (uint32_t i = 0; i < r->n; i++) assert_int_equal(r->verdicts[i], SHOAL_VERDICT_USED);
        free(r);
      }
}

static void krum_takes_the_nearest_to_its_nearest(void **state) {
  (void)state;
  for (uint32_t n = 3; n <= 31; n++) {
    uint32_t bad = (n - 3) / 2, order[MOST];
    round_of *r = draw(n, 300, n);
    krum_order(r, bad, order);
    char rule[32];
    snprintf(rule, sizeof rule, "krum:%u", bad);
    run(rule, r);
    assert_memory_equal(r->out, r->data[order[0]], r->count * sizeof(float));
    for (uint32_t i = 0; i < n; i++)
      assert_int_equal(r->verdicts[i], i == order[0] ? SHOAL_VERDICT_USED : SHOAL_VERDICT_LEFT_OUT);
    snprintf(rule, sizeof rule, "multi-krum:%u", bad);
    run(rule, r);
    for (size_t c = 0; c < r->count; c++) {
      double sum = 0;
      for (uint32_t k = 0; k < n - bad - 2; k++) sum += r->data[order[k]][c];
      assert_near(r->out[c], sum / (n - bad - 2), rule);
    }
    free(r);
  }
}

static void clipping_is_as_written_and_remembers(void **state) {
  (void)state;
  for (uint32_t n = 0; n < COUNTS; n++) {
    round_of *r = draw(counts[n], 513, n);
    double centre[LONG] = {0}, want[LONG];
    shoal_aggregate *a = make("clip", r, NULL);
    for (uint64_t turn = 0; turn < 3; turn++) {
      assert_int_equal(shoal_aggregate_run(a, r->at, turn, r->out, r->verdicts), r->n);
      clip_reference(r, centre, want);
      for (size_t c = 0; c < r->count; c++) {
        assert_near(r->out[c], want[c], "clip");
        centre[c] = 0.9 * centre[c] + 0.1 * want[c];
        assert_near(shoal_aggregate_centre(a)[c], centre[c], "centre");
      }
      round_of *next = draw(counts[n], 513, 100 + n + turn);
      memcpy(r->data, next->data, sizeof r->data);
      free(next);
    }
    shoal_aggregate_destroy(a);
    free(r);
  }
}

/* A centre written into another one's makes it go on as the first would have. */
static void a_centre_can_be_kept_and_given_back(void **state) {
  (void)state;
  round_of *r = draw(9, 300, 1), *later = draw(9, 300, 2);
  shoal_aggregate *a = make("clip/2", r, NULL), *b = make("clip/2", r, NULL);
  shoal_aggregate_run(a, r->at, 1, r->out, NULL);
  memcpy(shoal_aggregate_centre(b), shoal_aggregate_centre(a), r->count * sizeof(float));
  shoal_aggregate_run(a, later->at, 2, r->out, NULL);
  shoal_aggregate_run(b, later->at, 2, later->out, NULL);
  assert_memory_equal(r->out, later->out, r->count * sizeof(float));
  shoal_aggregate_destroy(a);
  shoal_aggregate_destroy(b);
  a = make("median", r, NULL);
  assert_null(shoal_aggregate_centre(a));
  shoal_aggregate_destroy(a);
  free(r);
  free(later);
}

static const char *const all_rules[] = {"mean",          "median",   "trimmed:0.3",    "krum:2",
                                        "multi-krum:2",  "clip",     "mean/2",         "median/2",
                                        "trimmed:0.2/3", "krum:1/2", "multi-krum:1/2", "clip/2"};
enum { RULES = sizeof all_rules / sizeof all_rules[0] };

/* Whatever is chosen or averaged of equal ones is that one. Clip comes near: it starts from afar. */
static void equal_contributions_give_the_same_again(void **state) {
  (void)state;
  for (int k = 0; k < RULES; k++) {
    round_of *r = draw(11, 300, 3);
    for (uint32_t i = 1; i < r->n; i++) memcpy(r->data[i], r->data[0], sizeof r->data[0]);
    assert_int_equal(run(all_rules[k], r), 11);
    for (size_t c = 0; c < r->count; c++) assert_near(r->out[c], r->data[0][c], all_rules[k]);
    free(r);
  }
}

/* Coordinates with many equal values, zeros of both signs among them. */
static void ties_are_no_trouble(void **state) {
  (void)state;
  for (int k = 0; k < RULES; k++) {
    round_of *r = draw(12, 300, 4);
    for (uint32_t i = 0; i < r->n; i++)
      for (size_t c = 0; c < r->count; c++)
        r->data[i][c] = (float)((i * 7 + c) % 3) - 1 + ((i + c) % 2 ? 0.0f : -0.0f);
    run(all_rules[k], r);
    for (size_t c = 0; c < r->count; c++) assert_true(r->out[c] >= -1 && r->out[c] <= 1);
    if (strcmp(all_rules[k], "median") == 0)
      for (size_t c = 0; c < r->count; c++) assert_near(r->out[c], trimmed_column(r, c, 5), "median");
    free(r);
  }
}

static void what_is_not_finite_is_left_out_always(void **state) {
  (void)state;
  const float poison[] = {NAN, INFINITY, -INFINITY, 3e38f, 2e18f};
  for (int k = 0; k < RULES; k++)
    for (size_t p = 0; p < sizeof poison / sizeof poison[0]; p++) {
      round_of *r = draw(12, 300, 5);
      r->data[4][299] = poison[p];
      r->at[9] = NULL;
      assert_int_equal(run(all_rules[k], r), 10);
      for (size_t c = 0; c < r->count; c++) assert_true(fabsf(r->out[c]) < 10);
      for (uint32_t i = 0; i < r->n; i++)
        assert_int_equal(r->verdicts[i] == SHOAL_VERDICT_NOT_FINITE, i == 4 || i == 9);
      free(r);
    }
}

static void nothing_left_is_zeros(void **state) {
  (void)state;
  for (int k = 0; k < RULES; k++) {
    round_of *r = draw(12, 300, 5);
    for (uint32_t i = 0; i < r->n; i++) r->data[i][i] = NAN;
    memset(r->out, 1, sizeof r->out);
    assert_int_equal(run(all_rules[k], r), 0);
    for (size_t c = 0; c < r->count; c++) assert_true(r->out[c] == 0);
    free(r);
  }
}

/* One or two left of twelve: rules that want more do what they can. */
static void few_left_are_enough(void **state) {
  (void)state;
  for (int k = 0; k < RULES; k++)
    for (uint32_t left = 1; left <= 3; left++) {
      round_of *r = draw(12, 300, 6);
      for (uint32_t i = left; i < r->n; i++) r->at[i] = NULL;
      assert_int_equal(run(all_rules[k], r), left);
      for (size_t c = 0; c < r->count; c++) {
        float least = r->data[0][c], most = least;
        for (uint32_t i = 1; i < left; i++) {
          least = fminf(least, r->data[i][c]);
          most = fmaxf(most, r->data[i][c]);
        }
        if (strncmp(all_rules[k], "clip", 4) != 0)
          assert_true(r->out[c] >= least - 1e-6f && r->out[c] <= most + 1e-6f);
      }
      free(r);
    }
}

/* Even the mean: 8 times the median norm is the most that one can add. */
static void a_huge_contribution_is_scaled_down(void **state) {
  (void)state;
  round_of *r = draw(5, 300, 8);
  double norms[5];
  for (uint32_t i = 0; i < 5; i++) {
    if (i == 2)
      for (size_t c = 0; c < r->count; c++) r->data[i][c] *= 1e6f;
    norms[i] = 0;
    for (size_t c = 0; c < r->count; c++) norms[i] += (double)r->data[i][c] * r->data[i][c];
    norms[i] = sqrt(norms[i]);
  }
  double sorted[5], scale;
  memcpy(sorted, norms, sizeof sorted);
  qsort(sorted, 5, sizeof *sorted, compare);
  scale = 8 * sorted[2] / norms[2];
  run("mean", r);
  for (uint32_t i = 0; i < 5; i++)
    assert_int_equal(r->verdicts[i], i == 2 ? SHOAL_VERDICT_CLIPPED : SHOAL_VERDICT_USED);
  for (size_t c = 0; c < r->count; c++) {
    double sum = 0;
    for (uint32_t i = 0; i < 5; i++) sum += (i == 2 ? scale : 1) * r->data[i][c];
    assert_near(r->out[c], sum / 5, "mean");
  }
  free(r);
}

/* With f liars of n, at random places, whatever they say: each coordinate is between honest ones. */
static void liars_cannot_leave_the_honest_range(void **state) {
  (void)state;
  const char *const rules[] = {"median", "trimmed:0.4"};
  for (uint64_t seed = 0; seed < 200; seed++) {
    uint32_t n = 3 + (uint32_t)(seed % 28);
    for (int k = 0; k < 2; k++) {
      round_of *r = draw(n, 60, seed);
      uint32_t bad = k == 0 ? (n - 1) / 2 : (uint32_t)(0.4 * n), shift = (uint32_t)seed % n;
      bool lies[MOST] = {false};
      for (uint32_t b = 0; b < bad; b++) {
        uint32_t i = (b + shift) % n;
        lies[i] = true;
        for (size_t c = 0; c < r->count; c++)
          r->data[i][c] = seed % 3 == 0   ? 1e6f * ((c + b) % 2 ? 1 : -1)
                          : seed % 3 == 1 ? -5 * r->data[i][c]
                                          : 3e37f;
      }
      run(rules[k], r);
      for (size_t c = 0; c < r->count; c++) {
        float least = INFINITY, most = -INFINITY;
        for (uint32_t i = 0; i < n; i++)
          if (!lies[i]) {
            least = fminf(least, r->data[i][c]);
            most = fmaxf(most, r->data[i][c]);
          }
        if (!(r->out[c] >= least && r->out[c] <= most))
          fail_msg("%s: seed %d leaves the range", rules[k], (int)seed);
      }
      free(r);
    }
  }
}

/* The distance to the honest mean stays of the order of the honest spread. */
static void krum_and_clip_stay_near_the_honest(void **state) {
  (void)state;
  const char *const rules[] = {"krum:4", "multi-krum:4", "clip"};
  for (int k = 0; k < 3; k++)
    for (int lie = 0; lie < 3; lie++) {
      round_of *r = draw(14, 300, 11);
      float mean[LONG] = {0};
      for (uint32_t i = 0; i < 10; i++)
        for (size_t c = 0; c < r->count; c++) mean[c] += r->data[i][c] / 10;
      for (uint32_t i = 10; i < 14; i++)
        for (size_t c = 0; c < r->count; c++)
          r->data[i][c] = lie == 0 ? 1e9f : lie == 1 ? -10 * mean[c] : mean[c] + 50;
      run(rules[k], r);
      double off = sqrt(distance2(r->out, mean, r->count)), spread = 0.5 * sqrt((double)r->count);
      if (off > 1.5 * spread) fail_msg("%s is %.1f spreads off", rules[k], off / spread);
      for (uint32_t i = 10; i < 14; i++) assert_int_not_equal(r->verdicts[i], SHOAL_VERDICT_USED);
      free(r);
    }
}

static void groups_follow_from_the_seed_alone(void **state) {
  (void)state;
  round_of *r = draw(10, 300, 12);
  float first[LONG];
  shoal_aggregate *a = make("median/3", r, NULL);
  shoal_aggregate_run(a, r->at, 1, first, NULL);
  shoal_aggregate_run(a, r->at, 2, r->out, NULL);
  assert_memory_not_equal(first, r->out, r->count * sizeof(float));
  shoal_aggregate_run(a, r->at, 1, r->out, NULL);
  assert_memory_equal(first, r->out, r->count * sizeof(float));
  shoal_aggregate_destroy(a);
  /* One group of all is their mean, whatever its rule. */
  run("median/10", r);
  for (size_t c = 0; c < r->count; c++) assert_near(r->out[c], trimmed_column(r, c, 0), "median/10");
  /* The mean of groups of equal size is the mean. */
  run("mean/5", r);
  for (size_t c = 0; c < r->count; c++) assert_near(r->out[c], trimmed_column(r, c, 0), "mean/5");
  free(r);
}

static void every_set_of_kernels_gives_the_same_bits(void **state) {
  (void)state;
  const char *const tables[] = {"avx2", "avx512", "neon"};
  for (int k = 0; k < RULES; k++)
    for (int t = 0; t < 3; t++) {
      if (shoal_kernels_named(tables[t]) == NULL) continue;
      round_of *r = draw(13, 700, 13);
      float plain[LONG];
      shoal_aggregate *a = make(all_rules[k], r, "baseline"), *b = make(all_rules[k], r, tables[t]);
      for (uint64_t turn = 0; turn < 2; turn++) {
        shoal_aggregate_run(a, r->at, turn, plain, NULL);
        shoal_aggregate_run(b, r->at, turn, r->out, NULL);
        assert_memory_equal(plain, r->out, r->count * sizeof(float));
      }
      shoal_aggregate_destroy(a);
      shoal_aggregate_destroy(b);
      free(r);
    }
}

static void words_are_understood_and_written_back(void **state) {
  (void)state;
  char text[SHOAL_RULE_TEXT_MAX];
  for (int k = 0; k < RULES; k++) {
    shoal_rule rule = rule_of(all_rules[k]);
    assert_string_equal(shoal_rule_text(&rule, text), all_rules[k]);
  }
  shoal_rule plain = rule_of("median/1"), none = {0};
  assert_string_equal(shoal_rule_text(&plain, text), "median");
  assert_string_equal(shoal_rule_text(&none, text), "mean");
}

static void other_words_are_refused_by_name(void **state) {
  (void)state;
  const char *const wrong[] = {
      "",         "Mean",        "means",        "mean:1",    "median:",    "trimmed",
      "trimmed:", "trimmed:0.5", "trimmed:-0.1", "trimmed:x", "krum",       "krum:-1",
      "krum:1.5", "krum:1001",   "krum:",        "clip:1",    "clip/",      "clip/0",
      "clip/65",  "clip/2/2",    "/2",           "clip/2x",   "multi-krum", "krum:2 "};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    shoal_rule rule;
    shoal_error err = {0};
    if (shoal_rule_parse(wrong[i], &rule, &err) != SHOAL_INVALID) fail_msg("'%s' is taken", wrong[i]);
    assert_non_null(strstr(err.text, wrong[i]));
  }
}

static void a_rule_that_leaves_out_none_says_so(void **state) {
  (void)state;
  static const struct {
    const char *rule;
    uint32_t contributions;
    bool is_idle;
  } cases[] = {
      {"mean", 1, false},       {"median", 1, true},       {"median", 2, true},    {"median", 3, false},
      {"trimmed:0.2", 4, true}, {"trimmed:0.2", 5, false}, {"trimmed:0", 9, true}, {"median/2", 4, true},
      {"median/2", 5, false},   {"clip", 1, true},         {"clip", 2, false},     {"krum:0", 3, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_rule rule = rule_of(cases[i].rule);
    char text[SHOAL_RULE_ADVICE_MAX] = "";
    if (shoal_rule_is_idle(&rule, cases[i].contributions, text) != cases[i].is_idle)
      fail_msg("%s on %u", cases[i].rule, cases[i].contributions);
    assert_true((strstr(text, cases[i].rule) != NULL && strstr(text, "shards N") != NULL) ==
                cases[i].is_idle);
  }
}

static void too_many_liars_are_a_clear_error(void **state) {
  (void)state;
  shoal_error err;
  shoal_rule rule = rule_of("krum:4");
  assert_int_equal(shoal_rule_check(&rule, 11, &err), SHOAL_OK);
  assert_int_equal(shoal_rule_check(&rule, 10, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "at least 2 x 4 + 3 = 11 contributions a round, and there are 10"));
  rule = rule_of("multi-krum:4/2");
  const shoal_aggregate_config config = {
      .rule = rule, .kernels = shoal_kernels_get(), .contributions = 20, .count = 5};
  shoal_aggregate *a;
  assert_int_equal(shoal_aggregate_create(&a, &config, &err), SHOAL_INVALID);
  assert_null(a);
  assert_non_null(strstr(err.text, "11 groups a round, and there are 10"));
}

static void the_limit_on_norms_follows_the_last_hundred(void **state) {
  (void)state;
  shoal_norms norms = {0};
  for (int i = 0; i < 9; i++) shoal_norms_add(&norms, 1);
  assert_true(isinf(shoal_norms_limit(&norms)));
  shoal_norms_add(&norms, 1);
  assert_true(shoal_norms_limit(&norms) == 8);
  for (int i = 0; i < 49; i++) shoal_norms_add(&norms, 3);
  assert_true(shoal_norms_limit(&norms) == 24);
  for (int i = 0; i < 200; i++) shoal_norms_add(&norms, 0.5);
  assert_true(shoal_norms_limit(&norms) == 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns_are_those_of_a_plain_sort),
      cmocka_unit_test(krum_takes_the_nearest_to_its_nearest),
      cmocka_unit_test(clipping_is_as_written_and_remembers),
      cmocka_unit_test(a_centre_can_be_kept_and_given_back),
      cmocka_unit_test(equal_contributions_give_the_same_again),
      cmocka_unit_test(ties_are_no_trouble),
      cmocka_unit_test(what_is_not_finite_is_left_out_always),
      cmocka_unit_test(nothing_left_is_zeros),
      cmocka_unit_test(few_left_are_enough),
      cmocka_unit_test(a_huge_contribution_is_scaled_down),
      cmocka_unit_test(liars_cannot_leave_the_honest_range),
      cmocka_unit_test(krum_and_clip_stay_near_the_honest),
      cmocka_unit_test(groups_follow_from_the_seed_alone),
      cmocka_unit_test(every_set_of_kernels_gives_the_same_bits),
      cmocka_unit_test(words_are_understood_and_written_back),
      cmocka_unit_test(other_words_are_refused_by_name),
      cmocka_unit_test(a_rule_that_leaves_out_none_says_so),
      cmocka_unit_test(too_many_liars_are_a_clear_error),
      cmocka_unit_test(the_limit_on_norms_follows_the_last_hundred),
  };
  return RUN_TESTS(tests);
}
