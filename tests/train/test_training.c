/* A model that is at a training's place before its first save is never lost: another training's is moved
 * aside, and one that this same training has written does not push aside another's. Saves that fail on the way are
 * told once. */
#include "nn/in_folder.h"

#include <math.h>
#include <sys/stat.h>

#include "base/file.h"
#include "train/training.h"

enum { ROWS = 60, BATCH = 20, ROUNDS = ROWS / BATCH };

static const char OUT[] = "m.safetensors", FIRST[] = "m.previous.safetensors",
                  SECOND[] = "m.previous-2.safetensors";

static void write_table(void) {
  FILE *file = fopen("t.csv", "w");
  assert_non_null(file);
  fprintf(file, "a,b,y\n");
  for (int i = 0; i < ROWS; i++) fprintf(file, "%d,%d,%d\n", i % 7, i % 5, 3 * (i % 7) - 2 * (i % 5));
  assert_int_equal(fclose(file), 0);
}

/* One process of a training: a place for what it tells, and when it is to end. */
typedef struct process {
  shoal_model *model;
  shoal_task task;
  shoal_training_config config;
  shoal_training training;
  volatile sig_atomic_t stop;
  uint64_t rounds_left;
  int moved;
  int warned;         /* times */
  const char *hidden; /* a folder that is gone after the first round; or NULL */
} process;

static void on_round(void *self, const shoal_result *round) {
  (void)round;
  process *p = self;
  p->stop = --p->rounds_left == 0;
  if (p->hidden != NULL && p->training.state->step == 1) assert_int_equal(rename(p->hidden, "hidden"), 0);
}

static void on_epoch(void *self, const shoal_result *train, const shoal_result *held_out) {
  (void)self, (void)train, (void)held_out;
}

static void on_warning(void *self, const char *text) {
  process *p = self;
  if (p->hidden == NULL) fail_msg("%s", text);
  p->warned++;
}

static void on_moved_aside(void *self, const char *place) {
  process *p = self;
  assert_true(shoal_file_exists(place));
  p->moved++;
}

static void start(process *p, uint64_t seed, const char *out, const shoal_checkpoint *from) {
  char text[256];
  snprintf(text, sizeof text,
           "input 2\ndense 4 tanh\ndense 1\nloss mean-squared\noptimizer sgd rate 0.01\n"
           "batch %d\nepochs 4\nseed %llu\n",
           BATCH, (unsigned long long)seed);
  *p = (process){.rounds_left = UINT64_MAX};
  shoal_error err;
  const shoal_dataset_options data = {.data = "t.csv"};
  if (shoal_model_parse(&p->model, "model", text, strlen(text), &err) != SHOAL_OK ||
      shoal_task_open(&p->task, p->model, &data, &err) != SHOAL_OK ||
      shoal_task_ready(&p->task, 1, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  p->config = (shoal_training_config){.task = &p->task,
                                      .out = out,
                                      .resumed = from ? from->path : NULL,
                                      .calls = {p, on_round, on_epoch, on_warning, on_moved_aside},
                                      .stop = &p->stop};
  if (shoal_training_init(&p->training, &p->config, &err) != SHOAL_OK ||
      shoal_training_begin(&p->training, from, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

/* Trains so many rounds, or to the end, and saves. */
static void train(process *p, uint64_t rounds) {
  shoal_error err;
  p->rounds_left = rounds;
  shoal_outcome outcome = shoal_training_loop(&p->training, &err);
  assert_true(outcome == SHOAL_FINISHED || outcome == SHOAL_INTERRUPTED);
  assert_int_equal(shoal_training_save(&p->training, &err), SHOAL_OK);
}

static void end(process *p) {
  shoal_training_release(&p->training);
  shoal_task_close(&p->task);
  shoal_model_destroy(p->model);
}

/* A whole process; returns how many models it has moved aside. */
static int run(uint64_t seed, uint64_t rounds) {
  process p;
  start(&p, seed, OUT, NULL);
  train(&p, rounds);
  end(&p);
  return p.moved;
}

static void saves_that_keep_failing_are_told_once(void **state) {
  (void)state;
  write_table();
  assert_int_equal(mkdir("there", 0700), 0);
  process p;
  start(&p, 1, "there/m.safetensors", NULL);
  p.hidden = "there";
  p.config.save_every_s = 1e-9; /* after every round */
  shoal_error err;
  assert_int_equal(shoal_training_loop(&p.training, &err), SHOAL_FINISHED);
  assert_int_equal(p.warned, 1);
  assert_int_equal(rename("hidden", "there"), 0);
  assert_int_equal(shoal_training_save(&p.training, &err), SHOAL_OK);
  end(&p);
}

/* The same after a crash: a cluster's record leads it to the given round. */
static int run_from_record(uint64_t seed, uint64_t step) {
  process p;
  start(&p, seed, OUT, NULL);
  shoal_train_state *state = p.training.state;
  state->step = step, state->epoch = step / ROUNDS, state->round = step % ROUNDS;
  assert_int_equal(shoal_training_goes_on(&p.training, NULL), SHOAL_OK);
  train(&p, UINT64_MAX);
  end(&p);
  return p.moved;
}

static uint64_t seed_in(const char *path) {
  shoal_checkpoint there;
  shoal_error err;
  if (shoal_checkpoint_load(&there, path, &err) != SHOAL_OK) fail_msg("%s", err.text);
  uint64_t seed = there.model->recipe.seed;
  shoal_checkpoint_release(&there);
  return seed;
}

static void another_training_s_model_is_moved_aside(void **state) {
  (void)state;
  write_table();
  assert_int_equal(run(1, UINT64_MAX), 0);
  assert_int_equal(run(2, UINT64_MAX), 1);
  assert_int_equal(seed_in(OUT), 2);
  assert_int_equal(seed_in(FIRST), 1);
  assert_int_equal(run(3, UINT64_MAX), 1);
  assert_int_equal(seed_in(FIRST), 2);
  assert_false(shoal_file_exists(SECOND));
}

static void after_a_crash_the_model_of_before_stays_where_it_was_moved(void **state) {
  (void)state;
  write_table();
  run(99, UINT64_MAX);
  run(1, 2 * ROUNDS);
  assert_int_equal(seed_in(FIRST), 99);
  assert_int_equal(run_from_record(1, 2 * ROUNDS + 1), 0);
  assert_int_equal(seed_in(OUT), 1);
  assert_int_equal(seed_in(FIRST), 99);
  assert_false(shoal_file_exists(SECOND));
}

static void a_crash_before_the_first_save_still_moves_it_aside(void **state) {
  (void)state;
  write_table();
  run(99, UINT64_MAX);
  assert_int_equal(run_from_record(1, 1), 1);
  assert_int_equal(seed_in(FIRST), 99);
}

static void a_finished_model_is_not_taken_for_the_start_of_the_next(void **state) {
  (void)state;
  write_table();
  run(1, UINT64_MAX);
  assert_int_equal(run_from_record(1, 1), 1);
  assert_int_equal(seed_in(FIRST), 1);
}

static void a_training_that_starts_anew_spares_the_model_of_another(void **state) {
  (void)state;
  write_table();
  run(99, UINT64_MAX);
  run(1, 2 * ROUNDS);
  for (int again = 0; again < 3; again++) {
    assert_int_equal(run(1, 2 * ROUNDS), 1);
    assert_int_equal(seed_in(FIRST), 99);
    assert_int_equal(seed_in(SECOND), 1);
  }
  assert_int_equal(files_here(), 4); /* with the table */
}

static void what_is_no_model_is_moved_aside_too(void **state) {
  (void)state;
  write_table();
  FILE *file = fopen(OUT, "w");
  assert_non_null(file);
  fprintf(file, "a letter");
  assert_int_equal(fclose(file), 0);
  assert_int_equal(run(1, UINT64_MAX), 1);
  assert_true(shoal_file_exists(FIRST));
}

static void going_on_into_another_file_moves_what_was_there(void **state) {
  (void)state;
  write_table();
  run(99, UINT64_MAX);
  process p;
  start(&p, 1, "other.safetensors", NULL);
  train(&p, ROUNDS);
  end(&p);
  shoal_checkpoint from;
  assert_int_equal(shoal_checkpoint_load(&from, "other.safetensors", NULL), SHOAL_OK);
  start(&p, 1, OUT, &from);
  train(&p, UINT64_MAX);
  end(&p);
  shoal_checkpoint_release(&from);
  assert_int_equal(p.moved, 1);
  assert_int_equal(seed_in(OUT), 1);
  assert_int_equal(seed_in(FIRST), 99);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(another_training_s_model_is_moved_aside),
      IN_FOLDER(after_a_crash_the_model_of_before_stays_where_it_was_moved),
      IN_FOLDER(a_crash_before_the_first_save_still_moves_it_aside),
      IN_FOLDER(a_finished_model_is_not_taken_for_the_start_of_the_next),
      IN_FOLDER(a_training_that_starts_anew_spares_the_model_of_another),
      IN_FOLDER(what_is_no_model_is_moved_aside_too),
      IN_FOLDER(going_on_into_another_file_moves_what_was_there),
      IN_FOLDER(saves_that_keep_failing_are_told_once),
  };
  return RUN_TESTS(tests);
}
