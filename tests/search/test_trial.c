#include "brief.h"

#include <math.h>
#include <pthread.h>

/* All that must agree. */
static void same(const shoal_trial_result *a, const shoal_trial_result *b) {
  assert_string_equal(a->sha256, b->sha256);
  assert_true(a->score == b->score);
  assert_memory_equal(&a->scores, &b->scores, sizeof a->scores);
  assert_int_equal(a->epochs, b->epochs);
  assert_int_equal(a->best_epoch, b->best_epoch);
  assert_int_equal(a->curve_count, b->curve_count);
  assert_memory_equal(a->curve, b->curve, a->curve_count * sizeof *a->curve);
  assert_int_equal(a->parts_count, b->parts_count);
  assert_memory_equal(a->parts, b->parts, a->parts_count * sizeof *a->parts);
}

static void it_learns(void **state) {
  (void)state;
  shoal_brief brief;
  put_table("t.csv", 2000, false, 0);
  brief_of(&brief, "t.csv", 1, small_space);
  brief.epochs = 12;
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit unit = unit_of(&brief, 1, 0, 12);
  shoal_trial_result *r = run_unit(bench, &unit, "s");
  assert_false(r->failed);
  enum { PARTS = 10 };
  assert_int_equal(r->parts_count, PARTS);
  for (uint32_t p = 0; p < PARTS; p++) { /* its own rows had no say: they are near the others */
    assert_true(fabs(r->parts[p].own - r->score) < 0.2 && fabs(r->parts[p].others - r->score) < 0.05);
    assert_true(r->parts[p].own != r->parts[p].others);
  }
  assert_true(r->score > 0.9 && r->score == r->curve[r->best_epoch - 1].score);
  assert_true(r->score == r->scores.of[SHOAL_SCORE_ACCURACY] && r->scores.of[SHOAL_SCORE_AUC] > 0.95);
  assert_int_equal(r->epochs, 12);
  assert_true(r->curve[11].train_loss < r->curve[0].train_loss);
  free(r);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void check_rungs(uint32_t folds, bool numbers) {
  shoal_brief brief;
  put_table("t.csv", 400, numbers, 0);
  brief_of(&brief, "t.csv", folds, small_space);
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit whole = unit_of(&brief, 1, 0, 6), first = unit_of(&brief, 1, 0, 3),
             second = unit_of(&brief, 1, 3, 6);
  shoal_unit other = unit_of(&brief, 2, 0, 6);
  shoal_trial_result *a = run_unit(bench, &whole, "a"), *b = run_unit(bench, &first, "b"),
                     *c = run_unit(bench, &second, "b"), *d = run_unit(bench, &second, "b"),
                     *e = run_unit(bench, &other, "e");
  assert_int_equal(b->epochs, 3);
  same(a, c);
  same(a, d); /* a unit that is done twice */
  assert_string_not_equal(a->sha256, e->sha256);
  free(a);
  free(b);
  free(c);
  free(d);
  free(e);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void rungs_add_up(void **state) {
  (void)state;
  check_rungs(1, false);
}
static void rungs_of_folds_add_up(void **state) {
  (void)state;
  check_rungs(3, false);
}
static void rungs_of_numbers_add_up(void **state) {
  (void)state;
  check_rungs(1, true);
}

/* ---- interrupted ---- */

typedef struct interruption {
  int saves, at;
  volatile sig_atomic_t stop;
  const char *state;
} interruption;

static void copy_state(void *self) {
  interruption *i = self;
  if (i->saves++ != i->at) return;
  assert_int_equal(link(i->state, "copy"), 0); /* it is replaced, not written over */
}

static void a_lost_unit_goes_on_from_any_checkpoint(void **state) {
  (void)state;
  shoal_brief brief;
  put_table("t.csv", 400, false, 0);
  brief_of(&brief, "t.csv", 3, small_space);
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit unit = unit_of(&brief, 1, 0, 6);
  shoal_trial_result *whole = run_unit(bench, &unit, "a"), *r = malloc(sizeof *r);
  static const int at[] = {0, 3, 17, 40}; /* within an epoch, of one fold or another */
  for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
    interruption i = {.at = at[k], .state = "b"};
    const shoal_trial_options options = {
        .unit = &unit, .state = "b", .save_every_s = 1e-9, .saved = copy_state, .self = &i};
    assert_int_equal(shoal_trial_run(bench, &options, r, NULL), SHOAL_OK);
    assert_true(i.saves > at[k]);
    same(whole, r);
    shoal_trial_result *again = run_unit(bench, &unit, "copy");
    same(whole, again);
    free(again);
    unlink("copy");
    unlink("b");
  }
  free(r);
  free(whole);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void stop_now(void *self, const shoal_curve_point *point) {
  interruption *i = self;
  if ((int)point->epoch == i->at) i->stop = 1;
}

static void a_stopped_unit_goes_on(void **state) {
  (void)state;
  shoal_brief brief;
  put_table("t.csv", 400, false, 0);
  brief_of(&brief, "t.csv", 1, small_space);
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit unit = unit_of(&brief, 1, 0, 6);
  shoal_trial_result *whole = run_unit(bench, &unit, "a"), *r = malloc(sizeof *r);
  interruption i = {.at = 2};
  const shoal_trial_options options = {
      .unit = &unit, .state = "b", .epoch = stop_now, .self = &i, .stop = &i.stop};
  assert_int_equal(shoal_trial_run(bench, &options, r, NULL), SHOAL_STOPPED);
  assert_int_equal(r->epochs, 2);
  shoal_trial_result *again = run_unit(bench, &unit, "b");
  same(whole, again);
  free(again);
  free(r);
  free(whole);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

/* ---- the same anywhere ---- */

typedef struct thread_work {
  shoal_bench *bench;
  const shoal_unit *unit;
  char state[16];
  shoal_trial_result *result;
} thread_work;

static void *run_thread(void *context) {
  thread_work *w = context;
  w->result = run_unit(w->bench, w->unit, w->state);
  return NULL;
}

static void threads_and_memory_change_nothing(void **state) {
  (void)state;
  enum { THREADS = 4 };
  shoal_brief brief;
  put_table("t.csv", 400, false, 0);
  brief_of(&brief, "t.csv", 1, small_space);
  shoal_bench *bench = bench_of(&brief, "t.csv"), *small;
  const shoal_bench_options options = {.brief = &brief, .path = "t.csv", .keep_bytes = 1};
  assert_int_equal(shoal_bench_open(&small, &options, NULL), SHOAL_OK);
  shoal_unit unit = unit_of(&brief, 1, 0, 6);
  thread_work work[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    work[i] = (thread_work){.bench = i % 2 ? small : bench, .unit = &unit};
    snprintf(work[i].state, sizeof work[i].state, "state%d", i);
    assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &work[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    same(work[0].result, work[i].result);
  }
  for (int i = 0; i < THREADS; i++) free(work[i].result);
  shoal_bench_close(bench);
  shoal_bench_close(small);
  shoal_brief_release(&brief);
}

/* ---- results ---- */

static void an_explosion_is_a_result(void **state) {
  (void)state;
  shoal_brief brief;
  put_table("t.csv", 400, true, 0);
  brief_of(&brief, "t.csv", 1,
           "layers 2\nwidth 16\nshape brick\nresidual no\nactivation relu\ndropout 0\nnormalise "
           "none\noptimizer momentum\n"
           "rate 100\nbatch 32\ndecay 0\nnumbers standard\ncategories one-hot\nbalance no\n");
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit unit = unit_of(&brief, 1, 0, 6);
  shoal_trial_result *r = run_unit(bench, &unit, "a");
  assert_true(r->failed && isnan(r->score));
  assert_non_null(strstr(r->error, "epoch"));
  free(r);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void patience_ends_a_trial(void **state) {
  (void)state;
  shoal_brief brief;
  put_table("t.csv", 400, false, 0);
  brief_of(&brief, "t.csv", 1, small_space);
  brief.epochs = 60;
  brief.patience = 4;
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit unit = unit_of(&brief, 1, 0, 30), next = unit_of(&brief, 1, 30, 60);
  shoal_trial_result *r = run_unit(bench, &unit, "a"), *s;
  assert_true(r->over);
  assert_int_equal(r->epochs, r->best_epoch + 4);
  s = run_unit(bench, &next, "a");
  same(r, s);
  free(r);
  free(s);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void balanced_weights_find_more_of_a_rare_class(void **state) {
  (void)state;
  double found[2];
  for (int balance = 0; balance < 2; balance++) {
    shoal_brief brief;
    put_table("t.csv", 3000, false, 12); /* "yes" by chance alone: nothing to learn but how often */
    char text[sizeof small_space + 8];
    size_t kept = (size_t)(strstr(small_space, "balance") - small_space);
    snprintf(text, sizeof text, "%.*sbalance %s\n", (int)kept, small_space, balance ? "yes" : "no");
    brief_of(&brief, "t.csv", 1, text);
    shoal_bench *bench = bench_of(&brief, "t.csv");
    shoal_unit unit = unit_of(&brief, 1, 0, 6);
    shoal_trial_result *r = run_unit(bench, &unit, "a");
    unlink("a");
    found[balance] = r->scores.of[SHOAL_SCORE_F1];
    free(r);
    shoal_bench_close(bench);
    shoal_brief_release(&brief);
  }
  assert_true(found[0] == 0 && found[1] > 0);
}

static void another_trials_state_is_refused(void **state) {
  (void)state;
  shoal_brief brief;
  shoal_error err;
  put_table("t.csv", 400, false, 0);
  brief_of(&brief, "t.csv", 1, small_space);
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit unit = unit_of(&brief, 1, 0, 3), next = unit_of(&brief, 2, 3, 6),
             late = unit_of(&brief, 1, 4, 6);
  shoal_trial_result *r = run_unit(bench, &unit, "a");
  shoal_trial_options options = {.unit = &next, .state = "a"};
  assert_int_equal(shoal_trial_run(bench, &options, r, &err), SHOAL_NOT_FOUND);
  CHECK_SAYS(&err, "a", "another");
  options.unit = &late;
  assert_int_equal(shoal_trial_run(bench, &options, r, &err), SHOAL_CONFLICT);
  shoal_trial_net nets[SHOAL_FOLDS_MAX];
  uint32_t count;
  assert_int_equal(shoal_trial_load(bench, &unit.values, 1, "a", nets, &count, &err), SHOAL_OK);
  shoal_trial_net_release(&nets[0]);
  assert_int_equal(shoal_trial_load(bench, &unit.values, 2, "a", nets, &count, &err), SHOAL_NOT_FOUND);
  options.state = "nowhere";
  assert_int_equal(shoal_trial_run(bench, &options, r, &err), SHOAL_NOT_FOUND);
  put_text("a", "not safetensors");
  options.state = "a";
  assert_int_equal(shoal_trial_run(bench, &options, r, &err), SHOAL_CORRUPT);
  free(r);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void results_survive_json(void **state) {
  (void)state;
  shoal_brief brief;
  put_table("t.csv", 400, true, 0);
  brief_of(&brief, "t.csv", 1, small_space);
  shoal_bench *bench = bench_of(&brief, "t.csv");
  shoal_unit unit = unit_of(&brief, 1, 0, 6);
  shoal_trial_result *r = run_unit(bench, &unit, "a"), *again = malloc(sizeof *again);
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_trial_result_write(r, &json, NULL);
  cJSON *parsed = cJSON_Parse(text.bytes);
  assert_int_equal(shoal_trial_result_read(again, parsed, NULL), SHOAL_OK);
  assert_string_equal(r->sha256, again->sha256);
  assert_memory_equal(r->curve, again->curve, sizeof r->curve);
  assert_true(r->score == again->score && r->scores.of[SHOAL_SCORE_MAE] == again->scores.of[SHOAL_SCORE_MAE]);
  cJSON_DeleteItemFromObject(parsed, "epochs");
  assert_int_equal(shoal_trial_result_read(again, parsed, NULL), SHOAL_CORRUPT);
  cJSON_Delete(parsed);
  shoal_text_release(&text);
  free(r);
  free(again);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void a_brief_travels(void **state) {
  (void)state;
  shoal_brief brief, again;
  shoal_error err;
  shoal_text text, second;
  put_table("t.csv", 400, false, 0);
  brief_of(&brief, "t.csv", 3, small_space);
  brief.seed = UINT64_MAX - 5;
  shoal_text_init(&text);
  shoal_text_init(&second);
  shoal_brief_write(&brief, &text);
  if (shoal_brief_read(&again, text.bytes, text.length, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_brief_write(&again, &second);
  assert_string_equal(text.bytes, second.bytes);
  shoal_bench *here = bench_of(&brief, "t.csv"), *there = bench_of(&again, "t.csv");
  shoal_unit a = unit_of(&brief, 1, 0, 3), b = unit_of(&again, 1, 0, 3);
  shoal_trial_result *r = run_unit(here, &a, "a"), *s = run_unit(there, &b, "b");
  same(r, s);
  free(r);
  free(s);
  shoal_bench_close(here);
  shoal_bench_close(there);
  shoal_brief_release(&again);
  for (size_t cut = 0; cut < text.length; cut += 97)
    assert_int_not_equal(shoal_brief_read(&again, text.bytes, cut, &err), SHOAL_OK);
  shoal_brief_release(&brief);
  shoal_text_release(&text);
  shoal_text_release(&second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(it_learns),
      IN_FOLDER(rungs_add_up),
      IN_FOLDER(rungs_of_folds_add_up),
      IN_FOLDER(rungs_of_numbers_add_up),
      IN_FOLDER(a_lost_unit_goes_on_from_any_checkpoint),
      IN_FOLDER(a_stopped_unit_goes_on),
      IN_FOLDER(threads_and_memory_change_nothing),
      IN_FOLDER(an_explosion_is_a_result),
      IN_FOLDER(patience_ends_a_trial),
      IN_FOLDER(balanced_weights_find_more_of_a_rare_class),
      IN_FOLDER(another_trials_state_is_refused),
      IN_FOLDER(results_survive_json),
      IN_FOLDER(a_brief_travels),
  };
  return RUN_TESTS(tests);
}
