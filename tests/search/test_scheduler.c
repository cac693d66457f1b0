/* The scheduler: the same units whatever the order of results; halving; the model; the end of a search. */
#include "search/scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "check.h"

typedef struct setup {
  shoal_space space;
  shoal_scheduler_config config;
} setup;

static void set_up(setup *s, shoal_scheduler_kind kind, uint64_t trials, uint32_t window) {
  shoal_space_usual(&s->space, 30000, 14);
  s->config = (shoal_scheduler_config){.space = &s->space,
                                       .kind = kind,
                                       .seed = 5,
                                       .trials = trials,
                                       .window = window,
                                       .rungs = 4,
                                       .epochs = {1, 3, 9, 27},
                                       .higher_is_better = true};
}

static void narrow(setup *s, const char *text) {
  shoal_error err = {0};
  if (shoal_space_parse(&s->space, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static shoal_scheduler *create(const setup *s) {
  shoal_scheduler *scheduler;
  shoal_error err = {0};
  if (shoal_scheduler_create(&scheduler, &s->config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return scheduler;
}

/* A result as a pure function of the unit: how good the trial is, with less noise at each rung; some fail. */
static double result_of(const shoal_unit *unit) {
  shoal_key key = shoal_key_make(unit->trial, SHOAL_FOR_SIMULATION, 0, 0);
  if (shoal_random_below(key, 100 + unit->rung, 12) == 0) return NAN;
  return shoal_random_uniform(key, 0) + 0.3 * shoal_random_uniform(key, 1 + unit->rung) / (1 + unit->rung);
}

typedef struct history {
  shoal_unit *units;
  uint64_t count;
} history;

/* Runs with so many workers, each of which ends in a random order, until there is nothing more or `most`
 * units. */
static history run(const setup *s, uint32_t workers, uint64_t dice, uint64_t most) {
  history h = {.units = calloc(most, sizeof *h.units)};
  shoal_scheduler *scheduler = create(s);
  shoal_key key = shoal_key_make(dice, SHOAL_FOR_SIMULATION, 7, 0);
  shoal_unit running[64];
  uint32_t busy = 0;
  bool none = false;
  for (uint64_t step = 0; h.count < most || busy > 0; step++) {
    bool ask = h.count < most && busy < workers && !none && shoal_random_below(key, 2 * step, 3) > 0;
    shoal_next next = SHOAL_NEXT_WAITS;
    if (ask) next = shoal_scheduler_next(scheduler, &running[busy], NULL);
    none = next == SHOAL_NEXT_NONE;
    if (none && busy == 0) break;
    if (next == SHOAL_NEXT_UNIT) {
      assert_int_equal(running[busy].number, h.count);
      h.units[h.count++] = running[busy++];
      continue;
    }
    if (busy == 0) continue;
    uint64_t who = shoal_random_below(key, 2 * step + 1, busy);
    shoal_scheduler_report(scheduler, running[who].number, result_of(&running[who]));
    running[who] = running[--busy];
    none = false;
  }
  shoal_scheduler_destroy(scheduler);
  return h;
}

static void assert_same(const history *a, const history *b) {
  assert_int_equal(a->count, b->count);
  for (uint64_t i = 0; i < a->count; i++) {
    assert_int_equal(a->units[i].trial, b->units[i].trial);
    assert_int_equal(a->units[i].rung, b->units[i].rung);
    assert_int_equal(a->units[i].epochs_from, b->units[i].epochs_from);
    assert_int_equal(a->units[i].epochs_to, b->units[i].epochs_to);
    assert_memory_equal(&a->units[i].values, &b->units[i].values, sizeof a->units[i].values);
  }
}

static void any_order_and_number_of_workers_gives_the_same_units(void **state) {
  (void)state;
  for (uint32_t kind = SHOAL_BY_GRID; kind <= SHOAL_BY_MODEL; kind++) {
    for (uint32_t window = 1; window <= 9; window += 4) {
      setup s;
      set_up(&s, kind, 60, window);
      if (kind == SHOAL_BY_GRID)
        narrow(&s,
               "layers 1..3\nwidth 8..64 log\nshape brick funnel\ndropout 0 0.1\nrate 0.1\nnumbers standard\n"
               "categories label\ndecay 0\nnormalise none\nbatch 64\nresidual no\nactivation relu silu");
      history first = run(&s, 1, 0, 1000);
      assert_true(first.count >= 40 && first.count < 1000);
      for (uint64_t dice = 1; dice < 12; dice++) {
        history again = run(&s, 1 + (uint32_t)dice % window, dice, 1000);
        assert_same(&first, &again);
        free(again.units);
      }
      free(first.units);
      shoal_space_release(&s.space);
    }
  }
}

static void a_unit_knows_nothing_of_results_within_the_window(void **state) {
  (void)state;
  /* Two histories that differ in the result of one unit agree until the window has passed, but not for
   * ever. */
  for (uint32_t kind = SHOAL_BY_HALVING; kind <= SHOAL_BY_MODEL; kind++) {
    uint32_t soon = 0;
    for (uint64_t at = 30; at < 60; at++) {
      setup s;
      set_up(&s, kind, 0, 6);
      shoal_scheduler *a = create(&s), *b = create(&s);
      uint64_t differs = 0;
      for (uint64_t k = 0; k < 100 && differs == 0; k++) {
        shoal_unit x, y;
        assert_int_equal(shoal_scheduler_next(a, &x, NULL), SHOAL_NEXT_UNIT);
        assert_int_equal(shoal_scheduler_next(b, &y, NULL), SHOAL_NEXT_UNIT);
        if (x.trial != y.trial || memcmp(&x.values, &y.values, sizeof x.values) != 0) differs = k;
        shoal_scheduler_report(a, k, result_of(&x));
        shoal_scheduler_report(b, k, k == at ? 2 : result_of(&y));
      }
      assert_true(differs == 0 || differs > at + 6);
      soon += differs == at + 7;
      shoal_scheduler_destroy(a);
      shoal_scheduler_destroy(b);
      shoal_space_release(&s.space);
    }
    assert_true(soon > 5);
  }
}

static void it_waits_when_the_oldest_result_is_missing(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_CHANCE, 0, 3);
  shoal_scheduler *scheduler = create(&s);
  shoal_unit unit;
  for (uint64_t k = 0; k <= 3; k++)
    assert_int_equal(shoal_scheduler_next(scheduler, &unit, NULL), SHOAL_NEXT_UNIT);
  for (uint64_t k = 1; k <= 3; k++) shoal_scheduler_report(scheduler, k, 0.5);
  assert_int_equal(shoal_scheduler_next(scheduler, &unit, NULL), SHOAL_NEXT_WAITS);
  shoal_scheduler_report(scheduler, 0, 0.5);
  assert_int_equal(shoal_scheduler_next(scheduler, &unit, NULL), SHOAL_NEXT_UNIT);
  assert_int_equal(unit.number, 4);
  assert_true(shoal_scheduler_unit(scheduler, 2, &unit));
  assert_int_equal(unit.trial, 3);
  assert_false(shoal_scheduler_unit(scheduler, 5, &unit));
  shoal_scheduler_destroy(scheduler);
  shoal_space_release(&s.space);
}

static void a_third_goes_on_and_the_best_of_them(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_HALVING, 3000, 8);
  history h = run(&s, 8, 3, 100000);
  uint64_t rungs[4] = {0}, failed[4] = {0};
  double sum[4] = {0};
  for (uint64_t i = 0; i < h.count; i++) {
    const shoal_unit *u = &h.units[i];
    assert_int_equal(u->epochs_from, u->rung ? s.config.epochs[u->rung - 1] : 0);
    assert_int_equal(u->epochs_to, s.config.epochs[u->rung]);
    rungs[u->rung]++;
    failed[u->rung] += isnan(result_of(u));
    sum[u->rung] += shoal_random_uniform(shoal_key_make(u->trial, SHOAL_FOR_SIMULATION, 0, 0), 0);
    for (uint32_t r = 0; r < u->rung; r++) { /* what failed never goes on */
      shoal_unit before = *u;
      before.rung = r;
      assert_false(isnan(result_of(&before)));
    }
  }
  assert_int_equal(rungs[0], 3000);
  for (uint32_t r = 1; r < 4; r++) {
    double share = (double)rungs[r] / (double)(rungs[r - 1] - failed[r - 1]);
    assert_true(share > 0.3 && share < 0.45);
    assert_true(sum[r] / (double)rungs[r] > sum[r - 1] / (double)rungs[r - 1] + 0.03);
  }
  free(h.units);
  shoal_space_release(&s.space);
}

static void a_trial_gets_each_rung_once_and_in_order(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_MODEL, 300, 5);
  history h = run(&s, 5, 9, 10000);
  uint32_t next[301] = {0};
  for (uint64_t i = 0; i < h.count; i++) {
    assert_in_range(h.units[i].trial, 1, 300);
    assert_int_equal(h.units[i].rung, next[h.units[i].trial]++);
  }
  free(h.units);
  shoal_space_release(&s.space);
}

/* Whether the best of every rung, of those that have not failed, has come to the last one. */
static void assert_best_are_trained(const history *h, uint32_t rungs) {
  for (uint32_t r = 0; r < rungs; r++) {
    const shoal_unit *best = NULL;
    for (uint64_t i = 0; i < h->count; i++) {
      const shoal_unit *u = &h->units[i];
      bool failed = false;
      for (uint64_t k = 0; k < h->count; k++)
        failed |= h->units[k].trial == u->trial && isnan(result_of(&h->units[k]));
      if (u->rung == r && !failed && (best == NULL || result_of(u) > result_of(best))) best = u;
    }
    if (best == NULL) continue;
    bool last = false;
    for (uint64_t i = 0; i < h->count; i++)
      last |= h->units[i].trial == best->trial && h->units[i].rung == rungs - 1;
    assert_true(last);
  }
}

static void a_short_search_ends_with_a_fully_trained_network(void **state) {
  (void)state;
  for (uint64_t trials = 1; trials <= 40; trials++) {
    setup s;
    set_up(&s, trials % 2 ? SHOAL_BY_HALVING : SHOAL_BY_MODEL, trials, 1 + trials % 7);
    history h = run(&s, 1 + trials % 3, trials, 1000);
    assert_true(h.count >= trials && h.count < 3 * trials + 12);
    assert_best_are_trained(&h, 4);
    free(h.units);
    shoal_space_release(&s.space);
  }
}

static void all_failing_ends(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_MODEL, 30, 4);
  shoal_scheduler *scheduler = create(&s);
  shoal_unit unit;
  uint64_t count = 0;
  while (shoal_scheduler_next(scheduler, &unit, NULL) == SHOAL_NEXT_UNIT) {
    shoal_scheduler_report(scheduler, unit.number, count++ % 2 ? NAN : INFINITY);
    assert_int_equal(unit.rung, 0);
  }
  assert_int_equal(count, 30);
  assert_int_equal(shoal_scheduler_next(scheduler, &unit, NULL), SHOAL_NEXT_NONE);
  shoal_scheduler_destroy(scheduler);
  shoal_space_release(&s.space);
}

/* Units of a search that is extended when it has given out so many units (as they would be with `before`
 * trials). */
static history run_extended(const setup *s, uint64_t before, uint64_t at, bool at_end, uint64_t after,
                            uint32_t workers, uint64_t dice) {
  setup first = *s;
  first.config.space = &s->space;
  first.config.trials = before;
  history h = {.units = calloc(2000, sizeof *h.units)};
  shoal_scheduler *scheduler = create(&first);
  shoal_key key = shoal_key_make(dice, SHOAL_FOR_SIMULATION, 8, 0);
  shoal_unit running[64];
  uint32_t busy = 0;
  bool extended = false;
  for (uint64_t step = 0;; step++) {
    assert_true(step < 100000);
    /* Sooner or later, where nothing more would come without it. */
    if (h.count == at && !extended && (!at_end || shoal_random_below(key, 1000000 + step, 6) == 0)) {
      shoal_scheduler_extend(scheduler, after);
      extended = true;
    }
    shoal_next next = SHOAL_NEXT_WAITS;
    if (busy < workers && shoal_random_below(key, 2 * step, 3) > 0)
      next = shoal_scheduler_next(scheduler, &running[busy], NULL);
    if (next == SHOAL_NEXT_UNIT) {
      h.units[h.count++] = running[busy++];
      continue;
    }
    if (next == SHOAL_NEXT_NONE && busy == 0 && extended) break;
    if (busy == 0) continue;
    uint64_t who = shoal_random_below(key, 2 * step + 1, busy);
    shoal_scheduler_report(scheduler, running[who].number, result_of(&running[who]));
    running[who] = running[--busy];
  }
  assert_true(extended);
  shoal_scheduler_destroy(scheduler);
  return h;
}

static void an_extended_search_keeps_what_it_did_and_repeats(void **state) {
  (void)state;
  for (uint32_t kind = SHOAL_BY_CHANCE; kind <= SHOAL_BY_MODEL; kind++) {
    setup s;
    set_up(&s, kind, 40, 5);
    history whole = run(&s, 3, 1, 1000);
    /* In the midst, in the end phase, and when all was done. */
    uint64_t moments[] = {20, whole.count - 3, whole.count};
    for (uint32_t m = 0; m < 3; m++) {
      history once = run_extended(&s, 40, moments[m], m == 2, 80, 3, 1);
      for (uint64_t i = 0; i < moments[m]; i++) assert_int_equal(once.units[i].trial, whole.units[i].trial);
      assert_true(once.count >= 80);
      for (uint64_t dice = 2; dice < 10; dice++) {
        history again = run_extended(&s, 40, moments[m], m == 2, 80, 1 + (uint32_t)dice % 5, dice);
        assert_same(&once, &again);
        free(again.units);
      }
      free(once.units);
    }
    /* Before the end is reached, the number of trials makes no difference. */
    setup more = s;
    more.config.space = &more.space;
    more.config.trials = 80;
    history longer = run(&more, 2, 4, 1000);
    uint64_t k = 0;
    while (k < longer.count && longer.units[k].trial <= 40) k++;
    assert_true(k >= 40);
    for (uint64_t i = 0; i < k && i < whole.count; i++)
      assert_memory_equal(&longer.units[i].values, &whole.units[i].values, sizeof whole.units[i].values);
    free(longer.units);
    free(whole.units);
    shoal_space_release(&s.space);
  }
}

static void a_search_without_end_can_be_brought_to_one(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_HALVING, 0, 5);
  history once = run_extended(&s, 0, 25, false, 1, 3, 1);
  for (uint64_t i = 25; i < once.count; i++) assert_true(once.units[i].rung > 0);
  assert_best_are_trained(&once, 4);
  for (uint64_t dice = 2; dice < 10; dice++) {
    history again = run_extended(&s, 0, 25, false, 1, 1 + (uint32_t)dice % 5, dice);
    assert_same(&once, &again);
    free(again.units);
  }
  free(once.units);
  shoal_space_release(&s.space);
}

static void the_grid_is_walked_once(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_GRID, 0, 4);
  shoal_scheduler *scheduler;
  shoal_error err = {0};
  assert_int_equal(shoal_scheduler_create(&scheduler, &s.config, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "dropout is a range"));
  narrow(&s,
         "combine 1..3 64 relu tanh\ndropout 0\nrate 0.1 0.2\nnumbers standard\ncategories label\ndecay 0\n"
         "normalise none\nbatch 64");
  history h = run(&s, 3, 2, 1000);
  assert_int_equal(h.count, 14 * 2);
  for (uint64_t i = 0; i < h.count; i++) {
    assert_int_equal(h.units[i].rung, 3);
    assert_int_equal(h.units[i].epochs_from, 0);
    assert_int_equal(h.units[i].epochs_to, 27);
  }
  free(h.units);
  shoal_space_release(&s.space);
}

/* How far a point is from the best one: numbers, whole numbers, words, and a setting that matters
 * sometimes. */
static double badness(const shoal_space *space, const shoal_values *v) {
  double rate = log(shoal_values_number(space, v, SHOAL_SET_RATE) / 0.003) / log(30);
  double width = log(shoal_values_number(space, v, SHOAL_SET_WIDTH) / 200) / log(8);
  double dropout = (shoal_values_number(space, v, SHOAL_SET_DROPOUT) - 0.2) / 0.5;
  double layers = (shoal_values_number(space, v, SHOAL_SET_LAYERS) - 3) / 3;
  double sum = rate * rate + width * width + dropout * dropout + 0.3 * layers * layers;
  if (strcmp(shoal_values_word(space, v, SHOAL_SET_ACTIVATION), "silu") != 0) sum += 0.1;
  if (strcmp(shoal_values_word(space, v, SHOAL_SET_NORMALISE), "layer") != 0) sum += 0.15;
  if (strcmp(shoal_values_word(space, v, SHOAL_SET_NUMBERS), "pieces") != 0) return sum + 0.2;
  double pieces = log(shoal_values_number(space, v, SHOAL_SET_PIECES) / 32) / log(8);
  return sum + pieces * pieces;
}

static double best_after(shoal_scheduler_kind kind, uint64_t seed, uint64_t trials) {
  setup s;
  set_up(&s, kind, trials, 4);
  s.config.seed = seed;
  s.config.higher_is_better = false;
  s.config.rungs = 1;
  shoal_scheduler *scheduler = create(&s);
  shoal_unit unit;
  double best = INFINITY;
  while (shoal_scheduler_next(scheduler, &unit, NULL) == SHOAL_NEXT_UNIT) {
    double bad = badness(&s.space, &unit.values);
    best = fmin(best, bad);
    shoal_scheduler_report(scheduler, unit.number, bad);
  }
  shoal_scheduler_destroy(scheduler);
  shoal_space_release(&s.space);
  return best;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void the_model_beats_chance(void **state) {
  (void)state;
  enum { SEEDS = 41 };
  static const uint64_t trials[] = {50, 100, 300};
  for (uint32_t t = 0; t < 3; t++) {
    double chance[SEEDS], model[SEEDS];
    uint32_t wins = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      chance[seed] = best_after(SHOAL_BY_CHANCE, seed, trials[t]);
      model[seed] = best_after(SHOAL_BY_MODEL, seed, trials[t]);
      wins += model[seed] < chance[seed];
    }
    qsort(chance, SEEDS, sizeof *chance, by_value);
    qsort(model, SEEDS, sizeof *model, by_value);
    print_message("%llu trials: random %.4f, model %.4f, better in %u of %d\n", (unsigned long long)trials[t],
                  chance[SEEDS / 2], model[SEEDS / 2], wins, SEEDS);
    assert_true(model[SEEDS / 2] < (trials[t] >= 100 ? 0.5 : 0.8) * chance[SEEDS / 2]);
    assert_true(wins * 3 > SEEDS * 2);
  }
}

/* Of this process alone: the machine may be busy. */
static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void it_is_fast(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_HALVING, 0, 64);
  shoal_scheduler *scheduler = create(&s);
  shoal_unit unit;
  double begun = cpu_seconds();
  for (uint64_t k = 0; k < 100000; k++) {
    assert_int_equal(shoal_scheduler_next(scheduler, &unit, NULL), SHOAL_NEXT_UNIT);
    shoal_scheduler_report(scheduler, k, result_of(&unit));
  }
  double took = cpu_seconds() - begun;
  print_message("halving: 100,000 units in %.3f s\n", took);
  shoal_scheduler_destroy(scheduler);
  s.config.kind = SHOAL_BY_MODEL;
  s.config.rungs = 1;
  scheduler = create(&s);
  for (uint64_t k = 0; k < 5000; k++) {
    assert_int_equal(shoal_scheduler_next(scheduler, &unit, NULL), SHOAL_NEXT_UNIT);
    shoal_scheduler_report(scheduler, k, result_of(&unit));
  }
  begun = cpu_seconds();
  for (uint64_t k = 5000; k < 5200; k++) {
    assert_int_equal(shoal_scheduler_next(scheduler, &unit, NULL), SHOAL_NEXT_UNIT);
    shoal_scheduler_report(scheduler, k, result_of(&unit));
  }
  double proposal_ms = (cpu_seconds() - begun) * 5;
  print_message("model: %.3f ms a proposal\n", proposal_ms);
  shoal_scheduler_destroy(scheduler);
  shoal_space_release(&s.space);
  assert_true(took < 10 && proposal_ms < 20); /* for builds that check everything, on slow machines */
}

static void settings_that_cannot_be_are_refused(void **state) {
  (void)state;
  setup s;
  set_up(&s, SHOAL_BY_HALVING, 0, 0);
  shoal_scheduler *scheduler;
  shoal_error err = {0};
  assert_int_equal(shoal_scheduler_create(&scheduler, &s.config, &err), SHOAL_INVALID);
  s.config.window = 1;
  s.config.rungs = 9;
  assert_int_equal(shoal_scheduler_create(&scheduler, &s.config, &err), SHOAL_INVALID);
  s.config.rungs = 4;
  s.config.epochs[2] = 3;
  assert_int_equal(shoal_scheduler_create(&scheduler, &s.config, &err), SHOAL_INVALID);
  shoal_scheduler_kind kind;
  assert_true(shoal_scheduler_parse("halving", &kind) && kind == SHOAL_BY_HALVING);
  assert_false(shoal_scheduler_parse("halve", &kind));
  assert_string_equal(shoal_scheduler_name(SHOAL_BY_CHANCE), "random");
  shoal_space_release(&s.space);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_order_and_number_of_workers_gives_the_same_units),
      cmocka_unit_test(a_unit_knows_nothing_of_results_within_the_window),
      cmocka_unit_test(it_waits_when_the_oldest_result_is_missing),
      cmocka_unit_test(a_third_goes_on_and_the_best_of_them),
      cmocka_unit_test(a_trial_gets_each_rung_once_and_in_order),
      cmocka_unit_test(a_short_search_ends_with_a_fully_trained_network),
      cmocka_unit_test(all_failing_ends),
      cmocka_unit_test(an_extended_search_keeps_what_it_did_and_repeats),
      cmocka_unit_test(a_search_without_end_can_be_brought_to_one),
      cmocka_unit_test(the_grid_is_walked_once),
      cmocka_unit_test(the_model_beats_chance),
      cmocka_unit_test(it_is_fast),
      cmocka_unit_test(settings_that_cannot_be_are_refused),
  };
  return RUN_TESTS(tests);
}
