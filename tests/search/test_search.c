#include "brief.h"

#include <math.h>
#include <signal.h>

#include "search/search.h"

static volatile sig_atomic_t stop;

/* What calls told. */
typedef struct told {
  uint32_t left_out;
} told;

static void warn(void *self, const char *text) {
  told *t = self;
  t->left_out += strncmp(text, "trial ", strlen("trial ")) == 0;
}

static shoal_search_options options_of(const char *place, uint64_t trials) {
  return (shoal_search_options){.path = "t.csv",
                                .target = "y",
                                .space = small_space,
                                .space_name = "space",
                                .scheduler = SHOAL_BY_CHANCE,
                                .test_share = 0.2,
                                .epochs = 2,
                                .trials = trials,
                                .threads = 2,
                                .seed = 1,
                                .folder = place};
}

static shoal_search *open_search(const shoal_search_options *options, told *t) {
  shoal_search *search;
  shoal_error err;
  const shoal_search_calls calls = {.self = t, .warn = warn, .remark = warn};
  if (shoal_search_open(&search, options, &calls, &stop, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return search;
}

/* A number whose last rows, by the time in another column, are far from the others. */
static void put_late_giants(void) {
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "time,y\n");
  for (uint32_t i = 0; i < 100; i++)
    shoal_text_addf(&csv, "%u.5,%u.25\n", i, i < 60 ? i * 7 % 60 : 100000 + i);
  put("t.csv", csv.bytes, csv.length);
  shoal_text_release(&csv);
}

static void the_target_is_fitted_to_the_rows_to_learn_from(void **state) {
  (void)state;
  told t = {0};
  put_late_giants();
  for (uint32_t folds = 1; folds <= 3; folds += 2) {
    shoal_search_options options = options_of(folds == 1 ? "one" : "three", 1);
    options.time_column = "time";
    options.valid_share = 0.25;
    options.folds = folds;
    shoal_search *search = open_search(&options, &t);
    const shoal_target *target = &shoal_search_brief(search)->target;
    const shoal_table_split *split = shoal_search_split(search);
    assert_int_equal(split->folds, folds);
    assert_int_equal(split->train[folds - 1].count, 60);
    assert_true(fabs(target->mean - 29.75) < 1e-9);
    assert_true(fabs(target->deviation - sqrt((60.0 * 60 - 1) / 12)) < 1e-9);
    shoal_search_close(search);
  }
}

/* As a worker has it: the parts are the server's, though it never saw the mean of all rows. */
static void a_worker_has_the_parts_of_the_server(void **state) {
  (void)state;
  told t = {0};
  put_table("t.csv", 500, true, 0);
  shoal_search_options options = options_of("o", 1);
  shoal_search *search = open_search(&options, &t);
  shoal_text json;
  shoal_brief brief;
  shoal_text_init(&json);
  shoal_brief_write(shoal_search_brief(search), &json);
  assert_int_equal(shoal_brief_read(&brief, json.bytes, json.length, NULL), SHOAL_OK);
  assert_true(brief.target.mean == shoal_search_brief(search)->target.mean);
  assert_true(brief.target.deviation == shoal_search_brief(search)->target.deviation);
  shoal_bench *bench = bench_of(&brief, "t.csv");
  const shoal_table_split *mine = shoal_bench_split(bench), *other = shoal_search_split(search);
  assert_int_equal(mine->folds, other->folds);
  for (uint32_t f = 0; f < mine->folds; f++) {
    assert_int_equal(mine->train[f].count, other->train[f].count);
    assert_memory_equal(mine->train[f].at, other->train[f].at, mine->train[f].count * sizeof(uint64_t));
  }
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
  shoal_text_release(&json);
  shoal_search_close(search);
}

static void a_damaged_state_costs_its_trial_alone(void **state) {
  (void)state;
  told t = {0};
  shoal_search_end end;
  shoal_error err;
  shoal_predictor *predictor;
  put_table("t.csv", 500, false, 0);
  shoal_search_options options = options_of("o", 3);
  shoal_search *search = open_search(&options, &t);
  if (shoal_search_run(search, &err) != SHOAL_OK) fail_msg("%s", err.text);
  put_text("o/trials/1.safetensors", "no state at all");
  assert_int_equal(unlink("o/trials/2.safetensors"), 0);
  if (shoal_search_finish(search, "m", &end, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(t.left_out, 2);
  assert_int_equal(end.members, 1);
  assert_int_equal(shoal_predictor_load(&predictor, "m", NULL), SHOAL_OK);
  assert_int_equal(shoal_predictor_trial(predictor, 0), 3);
  shoal_predictor_destroy(predictor);
  assert_int_equal(unlink("o/trials/3.safetensors"), 0);
  assert_int_equal(shoal_search_finish(search, "m", &end, &err), SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "1.safetensors"));
  shoal_search_close(search);
}

static void refuse(const shoal_search_options *options, const char *word) {
  shoal_search *search;
  shoal_error err;
  told t = {0};
  const shoal_search_calls calls = {.self = &t, .warn = warn, .remark = warn};
  assert_int_not_equal(shoal_search_open(&search, options, &calls, &stop, &err), SHOAL_OK);
  if (strstr(err.text, word) == NULL) fail_msg("'%s' is not in: %s", word, err.text);
  assert_int_not_equal(access(options->folder, F_OK), 0);
}

static void nothing_is_made_before_all_is_known_to_be_good(void **state) {
  (void)state;
  put_table("t.csv", 500, false, 0);
  put_text("bad.csv", "a,b,colour,y\n1,2,red,maybe\n");
  shoal_search_options options = options_of("o", 2);
  options.target = "yy";
  refuse(&options, "yy");
  options = options_of("o", 2);
  options.path = "none.csv";
  refuse(&options, "none.csv");
  options = options_of("o", 2);
  options.space = "layers many\n";
  refuse(&options, "space:1");
  options = options_of("o", 2);
  options.test = "bad.csv";
  refuse(&options, "maybe");
  options = options_of("o", 2);
  options.scheduler = SHOAL_BY_GRID;
  options.space = "rate 1e-4..1e-2\n";
  refuse(&options, "a grid needs choices");
  options = options_of("o", 2);
  options.resume = true;
  refuse(&options, "no search to continue");
}

static void what_a_search_began_with_is_told(void **state) {
  (void)state;
  told t = {0};
  shoal_brief brief;
  shoal_scheduler_kind scheduler;
  shoal_error err;
  put_table("t.csv", 500, false, 0);
  assert_int_equal(shoal_search_recorded("o", &brief, &scheduler, &err), SHOAL_NOT_FOUND);
  shoal_search_options options = options_of("o", 2);
  options.seed = 77;
  shoal_search_close(open_search(&options, &t));
  if (shoal_search_recorded("o", &brief, &scheduler, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(scheduler, SHOAL_BY_CHANCE);
  assert_int_equal(brief.seed, 77);
  assert_int_equal(brief.epochs, 2);
  shoal_brief_release(&brief);
}

static void a_result_of_too_many_epochs_is_refused(void **state) {
  (void)state;
  told t = {0};
  shoal_taken taken;
  shoal_error err;
  bool counts;
  put_table("t.csv", 500, false, 0);
  shoal_search_options options = options_of("o", 2);
  shoal_search *search = open_search(&options, &t);
  assert_int_equal(shoal_search_take(search, "anna", &taken, &err), SHOAL_NEXT_UNIT);
  shoal_trial_result *result = calloc(1, sizeof *result);
  *result = (shoal_trial_result){.score = 1, .best_epoch = 1, .epochs = taken.unit.epochs_to + 1};
  assert_int_equal(shoal_search_done(search, taken.unit.number, "anna", result, &counts, &err),
                   SHOAL_INVALID);
  assert_false(counts);
  result->epochs = taken.unit.epochs_to;
  assert_int_equal(shoal_search_done(search, taken.unit.number, "anna", result, &counts, &err), SHOAL_OK);
  assert_true(counts);
  free(result);
  shoal_search_close(search);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(the_target_is_fitted_to_the_rows_to_learn_from),
      IN_FOLDER(a_worker_has_the_parts_of_the_server),
      IN_FOLDER(a_damaged_state_costs_its_trial_alone),
      IN_FOLDER(nothing_is_made_before_all_is_known_to_be_good),
      IN_FOLDER(what_a_search_began_with_is_told),
      IN_FOLDER(a_result_of_too_many_epochs_is_refused),
  };
  return RUN_TESTS(tests);
}
