/* Units of a job are what the trainer of one machine does: parts of its rounds in sync mode, whole
 * rounds in local mode; and what is no unit of the job, or not its data, is refused. */
#include "nn/in_folder.h"

#include "cluster/compute.h"
#include "nn/optimizer.h"
#include "nn/tree.h"

enum { ROWS = 190, EPOCHS = 2, SHARDS = 5 };

static const char TABLE[] = "input 2\ndense 8 tanh\ndense 1\nloss mean-squared\noptimizer sgd rate 0.05\n"
                            "batch 20\nepochs 2\nshards 5\nseed 3\n";
static const char TEXT[] = "input tokens 6 carry\nembed 5 4\nlstm 6\ndense 5\nloss cross-entropy\n"
                           "optimizer sgd rate 0.1\nbatch 10\nepochs 2\nshards 5\nseed 3\n";

static void write_table(const char *path, double more) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "a,b,y\n");
  for (int i = 0; i < ROWS; i++) {
    double a = (i * 37 % 101) / 101.0, b = (i * 53 % 97) / 97.0;
    fprintf(file, "%.4f,%.4f,%.4f\n", a, b, 3 * a - 2 * b + more * (i == 5));
  }
  assert_int_equal(fclose(file), 0);
}

static void write_text(const char *path) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int i = 0; i < 900; i++) fputc(i % 23 == 22 ? '\n' : "abcd"[i * i * 7 % 11 % 4], file);
  assert_int_equal(fclose(file), 0);
}

/* One machine with this model and data. */
typedef struct machine {
  shoal_model *model;
  shoal_task task;
  const char *data;
} machine;

static void open_machine(machine *m, const char *model, const char *data) {
  shoal_error err;
  shoal_dataset_options options = {.data = data};
  m->data = data;
  m->task = (shoal_task){0};
  if (shoal_model_parse(&m->model, "model", model, strlen(model), &err) != SHOAL_OK ||
      shoal_task_open(&m->task, m->model, &options, &err) != SHOAL_OK ||
      shoal_task_ready(&m->task, 2, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

static void close_machine(machine *m) {
  shoal_task_close(&m->task);
  shoal_model_destroy(m->model);
}

/* The job of training what that machine does. */
static shoal_job job_of(const machine *m, const char *mode, uint32_t workers) {
  shoal_job job = {.samples = m->task.sources[SHOAL_TRAIN].samples};
  shoal_model_write(m->model, &job.model);
  shoal_text_addf(&job.data, "%s", m->data);
  shoal_task_fingerprint(&m->task, job.fitted_sha256);
  assert_int_equal(shoal_mode_parse(mode, &job.mode, NULL), SHOAL_OK);
  snprintf(job.mode_text, sizeof job.mode_text, "%s", mode);
  shoal_job_cut(&job, shoal_trainer_shards(m->task.trainer), shoal_trainer_rounds(m->task.trainer), workers);
  return job;
}

static void open_compute(shoal_compute *c, const shoal_job *job, uint32_t threads) {
  shoal_error err;
  const shoal_compute_options options = {.threads = threads};
  if (shoal_compute_open(c, job, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void next_round(machine *m) {
  shoal_result result;
  shoal_error err;
  assert_int_equal(shoal_trainer_round(m->task.trainer, &m->task.sources[SHOAL_TRAIN], &result, &err),
                   SHOAL_OK);
}

static float *copy_weights(const machine *m) {
  const shoal_train_state *state = shoal_trainer_state(m->task.trainer);
  float *copy = aligned_alloc(64, (state->weights_count * sizeof *copy + 63) / 64 * 64);
  assert_non_null(copy);
  memcpy(copy, state->weights, state->weights_count * sizeof *copy);
  return copy;
}

/* Weights after a step with this gradient. */
static void step(const machine *m, uint64_t round, float *weights, const float *gradient) {
  const shoal_graph *graph = m->task.graph;
  shoal_update update = shoal_optimizer_update(&m->model->recipe, m->model->recipe.rate, round + 1);
  for (uint32_t i = 0; i < graph->runs_count; i++)
    shoal_optimizer_apply(shoal_kernels_get(), &update, &graph->runs[i], weights, weights, gradient, NULL,
                          NULL);
}

/* Round after round, computed elsewhere from the weights and the recurrent state of the last one: the
 * machine's own rounds come to the same bits. Parts are computed by two computers in turn, in nodes of this
 * width, and added as a tree. */
static void follow_rounds(const char *model, const char *data, uint32_t width) {
  machine m;
  open_machine(&m, model, data);
  shoal_job job = job_of(&m, "sync", 2);
  assert_int_equal(job.parts, SHARDS);
  shoal_compute computers[2];
  for (uint32_t i = 0; i < 2; i++) open_compute(&computers[i], &job, i + 1);
  size_t count = shoal_trainer_state(m.task.trainer)->weights_count;
  size_t carry_floats = shoal_trainer_carry_floats(m.task.trainer);
  float *weights = copy_weights(&m), *sums[SHARDS];
  shoal_blob *carry[SHARDS] = {NULL};
  for (uint32_t p = 0; p < SHARDS; p++) sums[p] = calloc(count, sizeof *weights);

  uint64_t samples = 0;
  for (uint64_t round = 0; round < EPOCHS * job.rounds; round++) {
    shoal_sums epoch[SHARDS];
    for (uint32_t first = 0; first < SHARDS; first += width) {
      shoal_work_unit unit = {
          .round = round, .first = first, .count = shoal_tree_count(SHARDS, first, width)};
      shoal_work_result result;
      bool goes_on = carry_floats > 0 && round % job.rounds > 0;
      if (goes_on) unit.carry = carry[first];
      shoal_compute *c = &computers[(first / width + round) % 2];
      assert_true(shoal_compute_has(c, &unit));
      samples += shoal_compute_samples(c, &unit);
      shoal_compute_unit(c, &unit, weights, &result);
      memcpy(sums[first], shoal_blob_bytes(result.gradient), count * sizeof *weights);
      shoal_blob_release(result.gradient);
      epoch[first] = result.sums;
      assert_int_equal(result.carry != NULL, carry_floats > 0);
      shoal_blob_release(carry[first]);
      carry[first] = result.carry;
    }
    shoal_tree_add_sums(epoch, SHARDS, width);
    for (uint32_t w = width; w < SHARDS; w *= 2)
      for (uint32_t p = 0; p + w < SHARDS; p += 2 * w)
        for (size_t i = 0; i < count; i++) sums[p][i] += sums[p + w][i];
    step(&m, round, weights, sums[0]);
    next_round(&m);
    const shoal_train_state *state = shoal_trainer_state(m.task.trainer);
    assert_memory_equal(state->weights, weights, count * sizeof *weights);
    if (round % job.rounds == 0) assert_true(state->sums.loss == epoch[0].loss);
  }
  assert_int_equal(samples, EPOCHS * job.samples);
  for (uint32_t p = 0; p < SHARDS; p++) {
    shoal_blob_release(carry[p]);
    free(sums[p]);
  }
  for (uint32_t i = 0; i < 2; i++) shoal_compute_close(&computers[i]);
  free(weights);
  shoal_job_release(&job);
  close_machine(&m);
}

static void parts_of_rounds_add_up_to_the_rounds_of_one_machine(void **state) {
  (void)state;
  write_table("table.csv", 0);
  for (uint32_t width = 1; width <= 8; width *= 2) follow_rounds(TABLE, "table.csv", width);
}

static void recurrent_state_goes_with_the_parts(void **state) {
  (void)state;
  write_text("text.txt");
  for (uint32_t width = 1; width <= 4; width *= 2) follow_rounds(TEXT, "chars:text.txt", width);
}

/* A unit of local mode starts from given weights with nothing else, so one replica with plain gradient
 * descent, which has nothing else, does what one machine does. */
static void one_local_replica_makes_plain_rounds(void **state) {
  (void)state;
  static const char *const modes[] = {"local:1", "local:3", "local:4", "local:1000"};
  write_table("table.csv", 0);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    machine m;
    open_machine(&m, TABLE, "table.csv");
    shoal_job job = job_of(&m, modes[i], 1);
    shoal_compute c;
    open_compute(&c, &job, 1);
    shoal_train_state *own = shoal_trainer_state(m.task.trainer);
    for (uint64_t round = 0; round < EPOCHS * job.rounds; round++) {
      float *before = copy_weights(&m);
      const shoal_work_unit unit = {.round = round, .count = 1};
      shoal_work_result result;
      assert_true(shoal_compute_has(&c, &unit));
      shoal_compute_unit(&c, &unit, before, &result);
      double loss = own->round == 0 ? 0 : own->sums.loss;
      uint64_t first, rounds = shoal_job_unit(&job, round, 0, &first);
      assert_int_equal(first, own->round);
      for (uint64_t k = 0; k < rounds; k++) next_round(&m);
      const float *change = (const float *)(const void *)shoal_blob_bytes(result.gradient);
      for (size_t k = 0; k < own->weights_count; k++) assert_true(change[k] == own->weights[k] - before[k]);
      shoal_blob_release(result.gradient);
      if (loss == 0) assert_true(result.sums.loss == own->sums.loss);
      free(before);
    }
    shoal_compute_close(&c);
    shoal_job_release(&job);
    close_machine(&m);
  }
}

static void the_same_unit_is_the_same_whoever_computes_it_and_whatever_came_before(void **state) {
  (void)state;
  static const char *const modes[] = {"sync", "async", "local:4"};
  write_text("text.txt");
  machine m;
  open_machine(&m, TEXT, "chars:text.txt");
  float *weights = copy_weights(&m);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    shoal_job job = job_of(&m, modes[i], 2);
    shoal_compute one, other;
    open_compute(&one, &job, 1);
    open_compute(&other, &job, 3);
    const shoal_work_unit before = {.round = 0, .first = 0, .count = 1},
                          unit = {.round = 1, .first = 1, .count = 1};
    shoal_work_result result, again;
    shoal_compute_unit(&other, &before, weights, &again);
    shoal_blob_release(again.gradient);
    shoal_blob_release(again.carry);
    shoal_compute_unit(&one, &unit, weights, &result);
    shoal_compute_unit(&other, &unit, weights, &again);
    if (result.digest != again.digest) fail_msg("%s", modes[i]);
    assert_memory_equal(&result.sums, &again.sums, sizeof result.sums);
    shoal_blob_release(result.gradient);
    shoal_blob_release(result.carry);
    shoal_blob_release(again.gradient);
    shoal_blob_release(again.carry);
    shoal_compute_close(&one);
    shoal_compute_close(&other);
    shoal_job_release(&job);
  }
  free(weights);
  close_machine(&m);
}

static void what_is_no_unit_of_the_job_is_told(void **state) {
  (void)state;
  write_text("text.txt");
  machine m;
  open_machine(&m, TEXT, "chars:text.txt");
  shoal_job job = job_of(&m, "sync", 2), local = job_of(&m, "local:4", 2);
  shoal_compute c, replica;
  open_compute(&c, &job, 1);
  open_compute(&replica, &local, 1);
  size_t carry = 2 * shoal_trainer_carry_floats(m.task.trainer) * sizeof(float);
  shoal_blob *right = shoal_blob_create(carry), *wrong = shoal_blob_create(carry - 4);
  const uint64_t end = EPOCHS * job.rounds;
  assert_true(
      shoal_compute_has(&c, &(shoal_work_unit){.round = end - 1, .first = 2, .count = 2, .carry = right}));
  assert_false(
      shoal_compute_has(&c, &(shoal_work_unit){.round = end - 1, .first = 2, .count = 2, .carry = wrong}));
  assert_false(shoal_compute_has(&c, &(shoal_work_unit){.round = end, .first = 2, .count = 2}));
  assert_false(shoal_compute_has(&c, &(shoal_work_unit){.round = UINT64_MAX, .first = 2, .count = 2}));
  assert_false(shoal_compute_has(&c, &(shoal_work_unit){.round = 0, .first = 1, .count = 2}));
  assert_false(shoal_compute_has(&c, &(shoal_work_unit){.round = 0, .first = 0, .count = 0}));
  assert_false(shoal_compute_has(&c, &(shoal_work_unit){.round = 0, .first = SHARDS, .count = 1}));
  assert_false(shoal_compute_has(&c, &(shoal_work_unit){.round = 0, .first = 0, .count = UINT32_MAX}));
  assert_true(shoal_compute_has(&replica, &(shoal_work_unit){.round = 0, .first = 1, .count = 1}));
  assert_false(shoal_compute_has(&replica, &(shoal_work_unit){.round = 0, .first = 0, .count = 2}));
  shoal_blob_release(right);
  shoal_blob_release(wrong);
  shoal_compute_close(&c);
  shoal_compute_close(&replica);
  shoal_job_release(&job);
  shoal_job_release(&local);
  close_machine(&m);
}

/* Opening must fail with this in the message. */
static void refuse(const shoal_job *job, const char *data, const char *text) {
  shoal_compute c;
  shoal_error err;
  const shoal_compute_options options = {.data = data, .threads = 1};
  assert_int_not_equal(shoal_compute_open(&c, job, &options, &err), SHOAL_OK);
  if (strstr(err.text, text) == NULL) fail_msg("%s", err.text);
  shoal_compute_close(&c);
}

static void other_data_and_other_cuts_are_refused(void **state) {
  (void)state;
  write_table("table.csv", 0);
  write_table("other.csv", 0.5);
  machine m;
  open_machine(&m, TABLE, "table.csv");
  shoal_job job = job_of(&m, "sync", 2);
  refuse(&job, "other.csv", "other.csv is not the data that the chief trains on");
  refuse(&job, "nowhere.csv", "nowhere.csv");
  job.samples++;
  refuse(&job, NULL, "table.csv is not the data that the chief trains on");
  job.samples--;
  job.parts++;
  refuse(&job, NULL, "another way");
  job.parts--;
  job.inner_rounds++;
  refuse(&job, NULL, "another way");
  job.inner_rounds--;
  shoal_text_clear(&job.model);
  shoal_text_addf(&job.model, "input 2\nhocus pocus\n");
  refuse(&job, NULL, "the job's model:2");
  shoal_job_release(&job);
  close_machine(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(parts_of_rounds_add_up_to_the_rounds_of_one_machine),
      IN_FOLDER(recurrent_state_goes_with_the_parts),
      IN_FOLDER(one_local_replica_makes_plain_rounds),
      IN_FOLDER(the_same_unit_is_the_same_whoever_computes_it_and_whatever_came_before),
      IN_FOLDER(what_is_no_unit_of_the_job_is_told),
      IN_FOLDER(other_data_and_other_cuts_are_refused),
  };
  return RUN_TESTS(tests);
}
