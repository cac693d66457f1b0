/* The board: leases, attempts, late results, restarts; 500 trials with everything going wrong. */
#include "search/board.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

static shoal_space space;

static int make_space(void **state) {
  (void)state;
  shoal_space_usual(&space, 30000, 14);
  return 0;
}

static int release_space(void **state) {
  (void)state;
  shoal_space_release(&space);
  return 0;
}

static shoal_board *board_of(shoal_scheduler_kind kind, uint64_t trials, uint32_t window) {
  shoal_board_config config = {.scheduler = {.space = &space,
                                             .kind = kind,
                                             .seed = 3,
                                             .trials = trials,
                                             .window = window,
                                             .rungs = 3,
                                             .epochs = {1, 3, 9},
                                             .higher_is_better = true},
                               .lease_s = 10};
  shoal_board *board;
  shoal_error err = {0};
  if (shoal_board_create(&board, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return board;
}

/* What a worker comes to: a pure function of the unit. Some explode, some are over by patience. */
static void compute(const shoal_unit *unit, shoal_trial_result *out) {
  shoal_key key = shoal_key_make(unit->trial, SHOAL_FOR_SIMULATION, 0, 0);
  memset(out, 0, sizeof *out);
  out->failed = shoal_random_below(key, 50 + unit->rung, 20) == 0;
  out->score =
      out->failed ? NAN : shoal_random_uniform(key, 0) + 0.2 * shoal_random_uniform(key, 1 + unit->rung);
  out->over = shoal_random_below(key, 90, 5) == 0;
  out->epochs = unit->epochs_to;
  out->seconds = 1;
  out->curve_count = unit->epochs_to;
  for (uint32_t i = 0; i < out->curve_count; i++) out->curve[i] = (shoal_curve_point){i + 1, 0.5, out->score};
  snprintf(out->sha256, sizeof out->sha256, "%016llx", (unsigned long long)(unit->trial * 100 + unit->rung));
}

static shoal_taken take(shoal_board *board, const char *worker, double now) {
  shoal_taken taken;
  assert_int_equal(shoal_board_take(board, worker, now, &taken, NULL), SHOAL_NEXT_UNIT);
  return taken;
}

static bool done(shoal_board *board, const shoal_taken *taken, double now) {
  static shoal_trial_result result;
  compute(&taken->unit, &result);
  return shoal_board_done(board, taken->unit.number, &result, "anna", now);
}

static void an_overdue_unit_is_given_out_again(void **state) {
  (void)state;
  shoal_board *board = board_of(SHOAL_BY_CHANCE, 5, 4);
  shoal_taken a = take(board, "anna", 0);
  assert_int_equal(a.attempt, 1);
  assert_int_equal(shoal_board_trial_at(board, 1)->state, SHOAL_TRIAL_RUNS);
  assert_string_equal(shoal_board_trial_at(board, 1)->worker, "anna");
  assert_true(shoal_board_beat(board, a.unit.number, 1, 8));
  assert_true(shoal_board_tick(board, 12) == 18);
  assert_int_equal(shoal_board_running(board), 1);
  shoal_taken b = take(board, "bob", 19);
  assert_int_equal(b.unit.number, a.unit.number);
  assert_int_equal(b.attempt, 2);
  assert_false(shoal_board_beat(board, a.unit.number, 1, 20));
  assert_true(shoal_board_beat(board, a.unit.number, 2, 20));
  /* The first one's result comes all the same, and counts; the second one's is late. */
  assert_true(done(board, &a, 21));
  assert_false(done(board, &b, 22));
  assert_false(shoal_board_beat(board, a.unit.number, 2, 22));
  assert_int_equal(shoal_board_late(board), 1);
  const shoal_board_trial *trial = shoal_board_trial_at(board, 1);
  assert_true(trial->begun == 0 && trial->ended == 21 && trial->seconds == 1);
  assert_int_equal(trial->state, SHOAL_TRIAL_DONE);
  assert_int_equal(trial->result->curve_count, 9);
  assert_true(trial->result->curve[8].epoch == 9);
  shoal_board_destroy(board);
}

static void a_unit_that_fails_three_times_is_set_aside(void **state) {
  (void)state;
  shoal_board *board = board_of(SHOAL_BY_CHANCE, 2, 4);
  uint64_t aside;
  shoal_taken taken = take(board, "anna", 0);
  shoal_board_failed(board, 0, taken.attempt, "the disk is full", false, 1);
  assert_int_equal(shoal_board_trial_at(board, 1)->state, SHOAL_TRIAL_WAITS);
  taken = take(board, "bob", 2);
  assert_int_equal(taken.attempt, 2);
  shoal_board_failed(board, 0, 1, "said twice", false, 2); /* an old attempt's word does not count */
  shoal_board_failed(board, 0, 2, "going home", true, 3);  /* nor does who gives back */
  taken = take(board, "bob", 4);
  assert_int_equal(taken.attempt, 3);
  assert_true(isfinite(shoal_board_tick(board, 13)));
  assert_true(isinf(shoal_board_tick(board, 14)));
  assert_false(shoal_board_set_aside(board, &aside));
  taken = take(board, "carla", 15);
  assert_int_equal(taken.unit.number, 0);
  shoal_board_failed(board, 0, taken.attempt, "no memory", false, 16);
  const shoal_board_trial *trial = shoal_board_trial_at(board, 1);
  assert_int_equal(trial->state, SHOAL_TRIAL_FAILED);
  assert_string_equal(trial->result->error, "set aside after 3 attempts: no memory");
  assert_true(shoal_board_set_aside(board, &aside) && aside == 0);
  assert_false(shoal_board_set_aside(board, &aside));
  assert_false(done(board, &taken, 17));
  assert_int_equal(take(board, "carla", 18).unit.number, 1);
  shoal_board_destroy(board);
}

static void it_says_when_all_is_done(void **state) {
  (void)state;
  shoal_board *board = board_of(SHOAL_BY_CHANCE, 2, 4);
  shoal_taken a = take(board, "anna", 0), b = take(board, "bob", 0), c;
  assert_int_equal(shoal_board_take(board, "carla", 1, &c, NULL), SHOAL_NEXT_WAITS); /* one may be lost yet */
  assert_true(done(board, &b, 2));
  assert_int_equal(shoal_board_take(board, "carla", 3, &c, NULL), SHOAL_NEXT_WAITS);
  assert_true(done(board, &a, 4));
  assert_int_equal(shoal_board_take(board, "carla", 5, &c, NULL), SHOAL_NEXT_NONE);
  shoal_board_extend(board, 3);
  assert_int_equal(take(board, "carla", 5).unit.trial, 3);
  shoal_board_destroy(board);
}

static void strange_results_change_nothing(void **state) {
  (void)state;
  shoal_board *board = board_of(SHOAL_BY_CHANCE, 0, 4);
  static shoal_trial_result result;
  assert_false(shoal_board_done(board, 77, &result, "eve", 0));
  assert_false(shoal_board_done(board, UINT64_MAX, &result, "eve", 0));
  assert_int_equal(shoal_board_late(board), 2);
  assert_false(shoal_board_beat(board, 99, 1, 0));
  shoal_board_failed(board, 99, 1, "", false, 0);
  /* Unit 2 was not given out yet since a restart, but would be: it counts. */
  result.score = 0.5;
  assert_true(shoal_board_done(board, 2, &result, "anna\x1b[2J", 0));
  assert_string_equal(shoal_board_trial_at(board, 3)->worker, "anna?[2J");
  shoal_taken taken = take(board, "bob", 1);
  assert_int_equal(taken.unit.number, 0);
  shoal_board_destroy(board);
}

/* After a restart who computed something goes on with it, unless somebody else has it by now. */
static void a_beat_takes_a_lease_up_again(void **state) {
  (void)state;
  shoal_board *board = board_of(SHOAL_BY_CHANCE, 0, 4);
  shoal_unit unit;
  assert_true(shoal_board_beat(board, 2, 3, 0));
  assert_int_equal(shoal_board_running(board), 1);
  assert_true(shoal_board_beat(board, 2, 3, 5));
  assert_false(shoal_board_beat(board, 2, 2, 5));
  assert_false(shoal_board_beat(board, 1, 0, 5)); /* there is no attempt 0 */
  assert_false(shoal_board_beat(board, 1, 1000000000, 5));
  assert_false(shoal_board_beat(board, 1, UINT32_MAX, 5));
  assert_true(shoal_board_wants(board, 3, &unit) && unit.number == 3);
  assert_false(shoal_board_wants(board, 1000, &unit));
  /* Units that nobody speaks of are given out; the one that is held is not. */
  shoal_taken first = take(board, "bob", 6), second = take(board, "bob", 6);
  assert_true(first.unit.number == 0 && second.unit.number == 1);
  assert_false(shoal_board_beat(board, 0, 0, 7));
  /* A lease that ran out is good again while nobody else has the unit. */
  shoal_board_tick(board, 15.5);
  assert_int_equal(shoal_board_running(board), 2);
  assert_true(shoal_board_beat(board, 2, 3, 15.6));
  shoal_board_tick(board, 17);
  assert_int_equal(take(board, "carla", 17).unit.number, 0);
  assert_false(shoal_board_beat(board, 0, first.attempt, 18));
  shoal_board_destroy(board);
}

/* All that is ever told to be of no use, in the order of their telling. */
static uint64_t drain_spent(shoal_board *board, uint64_t *out, uint64_t at) {
  while (shoal_board_spent(board, &out[at])) at++;
  return at;
}

static void states_of_no_use_are_told_once(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    shoal_board *board = board_of(kind ? SHOAL_BY_HALVING : SHOAL_BY_CHANCE, 90, 4);
    static uint64_t spent[1000];
    uint64_t told = 0, kept = 0;
    shoal_taken taken;
    static shoal_trial_result result;
    while (shoal_board_take(board, "anna", 0, &taken, NULL) == SHOAL_NEXT_UNIT) {
      compute(&taken.unit, &result);
      result.failed = result.failed || taken.unit.trial % 30 == 0;
      assert_true(shoal_board_done(board, taken.unit.number, &result, "anna", 0));
      told = drain_spent(board, spent, told);
    }
    bool dropped[91] = {false};
    for (uint64_t i = 0; i < told; i++) {
      assert_true(spent[i] >= 1 && spent[i] <= 90 && !dropped[spent[i]]);
      dropped[spent[i]] = true;
    }
    uint64_t best[SHOAL_CANDIDATES_MAX], count = shoal_board_best(board, best, SHOAL_CANDIDATES_MAX);
    for (uint64_t i = 0; i < count; i++) assert_false(dropped[best[i]]);
    for (uint64_t t = 1; t <= shoal_board_trials(board); t++) {
      const shoal_board_trial *trial = shoal_board_trial_at(board, t);
      if (trial->state == SHOAL_TRIAL_FAILED) assert_true(dropped[t]);
      if (trial->state == SHOAL_TRIAL_RESTS) assert_false(dropped[t]); /* it may be promoted yet */
      kept += trial->state == SHOAL_TRIAL_DONE && trial->rung == 2 && !dropped[t];
    }
    assert_true(kept <= SHOAL_CANDIDATES_MAX);
    if (kind == 0) assert_int_equal(kept, SHOAL_CANDIDATES_MAX);
    shoal_board_destroy(board);
  }
}

static void the_best_come_first(void **state) {
  (void)state;
  shoal_board *board = board_of(SHOAL_BY_HALVING, 60, 4);
  shoal_taken taken;
  while (shoal_board_take(board, "anna", 0, &taken, NULL) == SHOAL_NEXT_UNIT) done(board, &taken, 0);
  uint64_t best[100], few[7];
  uint64_t count = shoal_board_best(board, best, 100);
  assert_true(count > 40 && count < 60);
  for (uint64_t i = 0; i + 1 < count; i++)
    assert_true(shoal_board_trial_at(board, best[i])->result->score >=
                shoal_board_trial_at(board, best[i + 1])->result->score);
  assert_int_equal(shoal_board_best(board, few, 7), 7);
  assert_memory_equal(few, best, sizeof few);
  assert_int_equal(shoal_board_best(board, few, 0), 0);
  uint32_t states[5] = {0};
  for (uint64_t t = 1; t <= 60; t++) states[shoal_board_trial_at(board, t)->state]++;
  assert_int_equal(states[SHOAL_TRIAL_WAITS] + states[SHOAL_TRIAL_RUNS], 0);
  assert_true(states[SHOAL_TRIAL_RESTS] > 20 && states[SHOAL_TRIAL_DONE] > 3 &&
              states[SHOAL_TRIAL_FAILED] > 0);
  shoal_board_destroy(board);
}

/* ---- everything going wrong --------------------------------------------------------- */

enum { UNITS_MAX = 4000, WORKERS = 4, TRIALS = 500 };

typedef struct story {
  uint64_t count; /* units with a result, each once */
  bool has[UNITS_MAX];
  shoal_unit units[UNITS_MAX];       /* as they were given out */
  shoal_trial_result *at[UNITS_MAX]; /* the journal: what is kept on disk */
} story;

static void keep(story *s, uint64_t unit, const shoal_trial_result *result) {
  assert_true(unit < UNITS_MAX);
  assert_false(s->has[unit]); /* nothing counts twice */
  s->has[unit] = true;
  s->count++;
  s->at[unit] = malloc(sizeof *result);
  *s->at[unit] = *result;
}

static void forget(story *s) {
  for (uint64_t i = 0; i < UNITS_MAX; i++) free(s->at[i]);
  free(s);
}

static story *undisturbed(shoal_scheduler_kind kind) {
  story *s = calloc(1, sizeof *s);
  shoal_board *board = board_of(kind, TRIALS, WORKERS);
  static shoal_trial_result result;
  shoal_taken taken;
  while (shoal_board_take(board, "anna", 0, &taken, NULL) == SHOAL_NEXT_UNIT) {
    compute(&taken.unit, &result);
    s->units[taken.unit.number] = taken.unit;
    keep(s, taken.unit.number, &result);
    assert_true(shoal_board_done(board, taken.unit.number, &result, "anna", 0));
  }
  shoal_board_destroy(board);
  return s;
}

typedef struct worker {
  bool busy, silent; /* silent: computes without a beat, and comes late */
  shoal_taken taken;
  double ends;
} worker;

typedef struct message {
  uint64_t unit;
  shoal_unit what;
  double arrives;
} message;

enum { MAIL = 256 };

typedef struct world {
  shoal_board *board;
  worker workers[WORKERS];
  message mail[MAIL]; /* results on their way */
  uint32_t mail_count;
  shoal_key key;
  uint64_t rolls;
  double now;
  story *journal;
  uint64_t kills, restarts, lost, doubled, late;
} world;

static bool chance(world *w, uint64_t one_in) { return shoal_random_below(w->key, w->rolls++, one_in) == 0; }

static void post(world *w, const shoal_unit *unit, double delay) {
  if (w->mail_count < MAIL)
    w->mail[w->mail_count++] = (message){.unit = unit->number, .what = *unit, .arrives = w->now + delay};
}

static void work(world *w, worker *one) {
  if (!one->busy) {
    if (shoal_board_take(w->board, "somebody", w->now, &one->taken, NULL) != SHOAL_NEXT_UNIT) return;
    one->busy = true;
    one->silent = chance(w, 15) && one->taken.attempt < 3;
    one->ends = w->now + (one->silent ? 15 : 1 + (double)shoal_random_below(w->key, w->rolls++, 6));
    w->journal->units[one->taken.unit.number] = one->taken.unit;
    return;
  }
  /* A third attempt is let alone: a unit that is lost three times is set aside, which this run shall not
   * see. */
  bool last = one->taken.attempt >= 3;
  if (!last && chance(w, 40)) {
    one->busy = false; /* killed, and another one is started */
    w->kills++;
    return;
  }
  if (!one->silent && !shoal_board_beat(w->board, one->taken.unit.number, one->taken.attempt, w->now)) {
    one->busy = chance(w, 2); /* stops at once, or does not hear of it */
    if (!one->busy) return;
  }
  if (w->now < one->ends) return;
  one->busy = false;
  if (!last && chance(w, 20)) {
    w->lost++;
    return;
  }
  post(w, &one->taken.unit, last ? 0 : (double)shoal_random_below(w->key, w->rolls++, 3));
  if (chance(w, 10)) {
    post(w, &one->taken.unit, (double)shoal_random_below(w->key, w->rolls++, 60));
    w->doubled++;
  }
}

static void deliver(world *w) {
  static shoal_trial_result result;
  for (uint32_t i = 0; i < w->mail_count;) {
    if (w->mail[i].arrives > w->now) {
      i++;
      continue;
    }
    message m = w->mail[i];
    w->mail[i] = w->mail[--w->mail_count];
    compute(&m.what, &result);
    if (shoal_board_done(w->board, m.unit, &result, "somebody", w->now))
      keep(w->journal, m.unit, &result);
    else
      w->late++;
  }
}

/* The board's process dies: what it knew is what was kept. Workers go on and do not know. */
static void restart(world *w, shoal_scheduler_kind kind) {
  shoal_board_destroy(w->board);
  w->board = board_of(kind, TRIALS, WORKERS);
  for (uint64_t unit = 0; unit < UNITS_MAX; unit++)
    if (w->journal->has[unit])
      assert_true(shoal_board_done(w->board, unit, w->journal->at[unit], "somebody", w->now));
  assert_int_equal(shoal_board_late(w->board), 0);
  w->restarts++;
}

static bool finished(world *w) {
  shoal_taken taken;
  if (shoal_board_running(w->board) > 0) return false;
  shoal_next next = shoal_board_take(w->board, "looker", w->now, &taken, NULL);
  if (next == SHOAL_NEXT_UNIT)
    shoal_board_failed(w->board, taken.unit.number, taken.attempt, "only looked", true, w->now);
  return next == SHOAL_NEXT_NONE;
}

static void five_hundred_trials_survive_everything(void **state) {
  (void)state;
  for (uint32_t kind = SHOAL_BY_CHANCE; kind <= SHOAL_BY_MODEL; kind++) {
    story *right = undisturbed(kind);
    for (uint64_t seed = 0; seed < 4; seed++) {
      world w = {.board = board_of(kind, TRIALS, WORKERS),
                 .key = shoal_key_make(seed, SHOAL_FOR_SIMULATION, kind, 0),
                 .journal = calloc(1, sizeof *w.journal)};
      while (!finished(&w)) {
        assert_true(w.now < 100000);
        w.now++;
        shoal_board_tick(w.board, w.now);
        for (uint32_t i = 0; i < WORKERS; i++) work(&w, &w.workers[i]);
        deliver(&w);
        if (chance(&w, 60)) restart(&w, kind);
      }
      uint64_t aside;
      assert_false(shoal_board_set_aside(w.board, &aside));
      assert_true(w.kills > 20 && w.restarts > 5 && w.lost > 5 && w.doubled > 5 && w.late > 5);
      assert_int_equal(shoal_board_trials(w.board), TRIALS);
      assert_int_equal(w.journal->count, right->count);
      for (uint64_t u = 0; u < right->count; u++) {
        assert_true(w.journal->has[u]);
        assert_int_equal(w.journal->units[u].trial, right->units[u].trial);
        assert_int_equal(w.journal->units[u].rung, right->units[u].rung);
        assert_memory_equal(&w.journal->units[u].values, &right->units[u].values,
                            sizeof right->units[u].values);
        assert_memory_equal(w.journal->at[u], right->at[u], sizeof *right->at[u]);
      }
      shoal_board_destroy(w.board);
      forget(w.journal);
    }
    forget(right);
  }
}

static void what_was_set_aside_stays_so_after_a_restart(void **state) {
  (void)state;
  shoal_board *board = board_of(SHOAL_BY_HALVING, 30, 3);
  story *journal = calloc(1, sizeof *journal);
  static shoal_trial_result result;
  shoal_taken taken;
  double now = 0;
  while (shoal_board_take(board, "anna", now++, &taken, NULL) == SHOAL_NEXT_UNIT) {
    journal->units[taken.unit.number] = taken.unit;
    if (taken.unit.trial % 7 == 3) { /* poison */
      shoal_board_failed(board, taken.unit.number, taken.attempt, "poison", false, now);
      uint64_t aside;
      while (shoal_board_set_aside(board, &aside))
        keep(journal, aside, shoal_board_trial_at(board, journal->units[aside].trial)->result);
      continue;
    }
    compute(&taken.unit, &result);
    assert_true(shoal_board_done(board, taken.unit.number, &result, "anna", now));
    keep(journal, taken.unit.number, &result);
  }
  assert_int_equal(journal->count, shoal_board_units(board));
  shoal_board *again = board_of(SHOAL_BY_HALVING, 30, 3);
  for (uint64_t u = 0; u < journal->count; u++)
    assert_true(shoal_board_done(again, u, journal->at[u], "anna", now));
  assert_int_equal(shoal_board_take(again, "anna", now, &taken, NULL), SHOAL_NEXT_NONE);
  for (uint64_t t = 1; t <= 30; t++) {
    assert_int_equal(shoal_board_trial_at(again, t)->state, shoal_board_trial_at(board, t)->state);
    assert_int_equal(shoal_board_trial_at(again, t)->rung, shoal_board_trial_at(board, t)->rung);
    if (t % 7 == 3) assert_int_equal(shoal_board_trial_at(again, t)->state, SHOAL_TRIAL_FAILED);
  }
  shoal_board_destroy(board);
  shoal_board_destroy(again);
  forget(journal);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_overdue_unit_is_given_out_again),
      cmocka_unit_test(a_unit_that_fails_three_times_is_set_aside),
      cmocka_unit_test(it_says_when_all_is_done),
      cmocka_unit_test(strange_results_change_nothing),
      cmocka_unit_test(a_beat_takes_a_lease_up_again),
      cmocka_unit_test(states_of_no_use_are_told_once),
      cmocka_unit_test(the_best_come_first),
      cmocka_unit_test(five_hundred_trials_survive_everything),
      cmocka_unit_test(what_was_set_aside_stays_so_after_a_restart),
  };
  return cmocka_run_group_tests(tests, make_space, release_space);
}
