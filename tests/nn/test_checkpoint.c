#include "check.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "nn/checkpoint.h"
#include "nn/in_folder.h"
#include "nn/synthetic.h"

static const char small_net[] = "input 1x6x6\nconv 3 3x3 relu\nbatchnorm\ndense 4\nloss cross-entropy\n"
                                "optimizer adam\nbatch 8\nepochs 3\n";
static const char text_net[] = "input tokens 5 carry\nembed 7 4\nlstm 6\ndense 7\nloss cross-entropy\n"
                               "optimizer momentum\nbatch 4\n";

/* A model with its trainer. */
typedef struct training {
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *trainer;
  shoal_train_state *state;
  synthetic data;
  shoal_source source;
} training;

static void begin(training *t, const char *text) {
  shoal_error err = {0};
  if (shoal_model_parse(&t->model, "test.net", text, strlen(text), &err) != SHOAL_OK ||
      shoal_graph_create(&t->graph, t->model, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  shoal_trainer_config config = {.graph = t->graph,
                                 .threads = 1,
                                 .batch = t->model->recipe.batch,
                                 .samples = 5 * t->model->recipe.batch};
  if (shoal_trainer_create(&t->trainer, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  t->state = shoal_trainer_state(t->trainer);
  t->data = (synthetic){t->graph, 1};
  t->source = synthetic_source(&t->data, config.samples);
}

static void end(training *t) {
  shoal_trainer_destroy(t->trainer);
  shoal_graph_destroy(t->graph);
  shoal_model_destroy(t->model);
}

static void rounds(training *t, int count) {
  for (int i = 0; i < count; i++) {
    shoal_result result;
    shoal_error err;
    if (shoal_trainer_round(t->trainer, &t->source, &result, &err) != SHOAL_OK) fail_msg("%s", err.text);
  }
}

static void save(const training *t, const char *path, const char *data_json) {
  shoal_error err;
  if (shoal_checkpoint_save(path, t->graph, t->state, data_json, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void check_same_state(const shoal_train_state *a, const shoal_train_state *b) {
  size_t bytes = a->weights_count * sizeof(float);
  assert_int_equal(a->epoch, b->epoch);
  assert_int_equal(a->round, b->round);
  assert_int_equal(a->step, b->step);
  assert_int_equal(a->sums.correct, b->sums.correct);
  assert_memory_equal(&a->sums.loss, &b->sums.loss, sizeof a->sums.loss);
  assert_memory_equal(&a->sums.weight, &b->sums.weight, sizeof a->sums.weight);
  assert_memory_equal(&a->sums.square, &b->sums.square, sizeof a->sums.square);
  assert_memory_equal(a->weights, b->weights, bytes);
  if (a->slot1) assert_memory_equal(a->slot1, b->slot1, bytes);
  if (a->slot2) assert_memory_equal(a->slot2, b->slot2, bytes);
  assert_int_equal(a->carry_count, b->carry_count);
  if (a->carry) assert_memory_equal(a->carry, b->carry, a->carry_count * sizeof(float));
}

/* ---- round trips -------------------------------------------------------------------- */

/* Three rounds, a checkpoint and four rounds are the same as seven rounds, to the bit;
 * in the middle of an epoch and across its end. */
static void a_resumed_training_goes_on_to_the_same_bits(void **state) {
  (void)state;
  static const char *const nets[] = {small_net, text_net};
  for (int i = 0; i < 2; i++) {
    training straight, before, after;
    begin(&straight, nets[i]);
    rounds(&straight, 7);

    begin(&before, nets[i]);
    rounds(&before, 3);
    save(&before, "c", NULL);

    begin(&after, nets[i]);
    shoal_checkpoint checkpoint;
    shoal_error err = {0};
    assert_int_equal(shoal_checkpoint_load(&checkpoint, "c", &err), SHOAL_OK);
    if (shoal_checkpoint_resume(&checkpoint, after.graph, after.state, &err) != SHOAL_OK)
      fail_msg("%s", err.text);
    check_same_state(after.state, before.state);
    rounds(&after, 4);
    check_same_state(after.state, straight.state);

    shoal_checkpoint_release(&checkpoint);
    end(&straight);
    end(&before);
    end(&after);
  }
}

static void the_model_and_what_was_fitted_come_back(void **state) {
  (void)state;
  training t;
  begin(&t, small_net);
  save(&t, "c", "{\"classes\":[\"a\",\"\xc3\xa9\\n\"]}");
  shoal_checkpoint checkpoint;
  shoal_error err;
  assert_int_equal(shoal_checkpoint_load(&checkpoint, "c", &err), SHOAL_OK);
  assert_string_equal(checkpoint.data_json, "{\"classes\":[\"a\",\"\xc3\xa9\\n\"]}");
  assert_string_equal(checkpoint.path, "c");
  shoal_text written, read;
  shoal_text_init(&written);
  shoal_text_init(&read);
  shoal_model_write(t.model, &written);
  shoal_model_write(checkpoint.model, &read);
  assert_string_equal(written.bytes, read.bytes);
  shoal_text_release(&written);
  shoal_text_release(&read);
  shoal_checkpoint_release(&checkpoint);
  shoal_checkpoint_release(&checkpoint);

  save(&t, "c", NULL);
  assert_int_equal(shoal_checkpoint_load(&checkpoint, "c", &err), SHOAL_OK);
  assert_null(checkpoint.data_json);
  shoal_checkpoint_release(&checkpoint);
  end(&t);
}

static void positions_are_exact(void **state) {
  (void)state;
  static const double reals[] = {0.1,  1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.123456789,
                                 -0.0, 0,       1e22};
  training a, b;
  begin(&a, small_net);
  begin(&b, small_net);
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
    a.state->sums.loss = reals[i];
    a.state->sums.weight = -reals[i];
    a.state->step = ((uint64_t)1 << 53) - 1 - i;
    a.state->sums.correct = i;
    save(&a, "c", NULL);
    shoal_checkpoint checkpoint;
    assert_int_equal(shoal_checkpoint_load(&checkpoint, "c", NULL), SHOAL_OK);
    assert_int_equal(shoal_checkpoint_resume(&checkpoint, b.graph, b.state, NULL), SHOAL_OK);
    check_same_state(a.state, b.state);
    shoal_checkpoint_release(&checkpoint);
  }
  end(&a);
  end(&b);
}

/* ---- files that do not fit ---------------------------------------------------------- */

/* What a test changes in the tables of a good checkpoint before it is written again. */
typedef struct tables {
  shoal_tensor *tensors;
  size_t tensors_count;
  shoal_meta *meta;
  size_t meta_count;
} tables;

static shoal_tensor *tensor_called(const tables *t, const char *name) {
  for (size_t i = 0; i < t->tensors_count; i++) {
    if (strcmp(t->tensors[i].name, name) == 0) return &t->tensors[i];
  }
  fail_msg("no tensor %s", name);
  return NULL;
}

static shoal_meta *meta_called(const tables *t, const char *key) {
  for (size_t i = 0; i < t->meta_count; i++) {
    if (strcmp(t->meta[i].key, key) == 0) return &t->meta[i];
  }
  fail_msg("no metadata %s", key);
  return NULL;
}

static const float other_values[1024];
static void rename_weight(tables *t) { tensor_called(t, "dense1.weight")->name = "dense1.weigth"; }
static void rename_slot(tables *t) { tensor_called(t, "optimizer.2.conv1.bias")->name = "x"; }
static void change_weight(tables *t) { tensor_called(t, "conv1.bias")->data = other_values; }
static void change_statistic(tables *t) { tensor_called(t, "batchnorm1.variance")->data = other_values; }
static void turn_weight(tables *t) {
  shoal_tensor *tensor = tensor_called(t, "dense1.weight");
  tensor->dims[0] = 4;
  tensor->dims[1] = 48;
}
static void flatten_slot(tables *t) {
  shoal_tensor *tensor = tensor_called(t, "optimizer.1.dense1.weight");
  tensor->dims_count = 1;
  tensor->dims[0] = 192;
}
static void flatten_to_scalar(tables *t) {
  shoal_tensor *tensor = tensor_called(t, "dense1.bias");
  tensor->dims_count = 0;
  tensor->bytes = 4;
}
static void change_type(tables *t) { tensor_called(t, "dense1.bias")->dtype = SHOAL_I32; }
static void drop_model(tables *t) { meta_called(t, "shoal.model")->key = "model"; }
static void break_model(tables *t) { meta_called(t, "shoal.model")->value = "input 1x6x6\ndens 4\n"; }
static void change_version(tables *t) { meta_called(t, "shoal.version")->value = "2"; }
static void drop_checksum(tables *t) { meta_called(t, "shoal.weights_sha256")->key = "sum"; }
static void drop_position(tables *t) { meta_called(t, "shoal.position")->key = "position"; }
static void break_position(tables *t) { meta_called(t, "shoal.position")->value = "{\"epoch\":"; }
static void list_position(tables *t) { meta_called(t, "shoal.position")->value = "[]"; }
static void negative_position(tables *t) {
  meta_called(t, "shoal.position")->value =
      "{\"epoch\":-1,\"round\":0,\"step\":0,\"correct\":0,\"counted\":0,"
      "\"loss_sum\":0,\"weight_sum\":0,\"square_sum\":0}";
}
static void wordy_position(tables *t) {
  meta_called(t, "shoal.position")->value = "{\"epoch\":0,\"round\":0,\"step\":0,\"correct\":0,\"counted\":0,"
                                            "\"loss_sum\":\"0\",\"weight_sum\":0,\"square_sum\":0}";
}

static shoal_status load_and_resume(const training *t, const char *path, shoal_error *err) {
  shoal_checkpoint checkpoint;
  shoal_status status = shoal_checkpoint_load(&checkpoint, path, err);
  if (status != SHOAL_OK) return status;
  status = shoal_checkpoint_resume(&checkpoint, t->graph, t->state, err);
  shoal_checkpoint_release(&checkpoint);
  return status;
}

static void a_file_that_does_not_fit_says_what_is_wrong(void **state) {
  (void)state;
  static const struct {
    void (*change)(tables *t);
    const char *says;
  } cases[] = {
      {rename_weight, "bad: tensor 'dense1.weight' (48x4) is missing"},
      {rename_slot, "bad: tensor 'optimizer.2.conv1.bias' (3) is missing"},
      {change_weight, "bad: the weights do not match their checksum; the file is damaged"},
      {change_statistic, "bad: the weights do not match their checksum; the file is damaged"},
      {turn_weight, "bad: tensor 'dense1.weight' is 4x48, but the model needs 48x4"},
      {flatten_slot, "bad: tensor 'optimizer.1.dense1.weight' is 192, but the model needs 48x4"},
      {flatten_to_scalar, "bad: tensor 'dense1.bias' is a single value, but the model needs 4"},
      {change_type, "bad: tensor 'dense1.bias' does not hold 32-bit floats"},
      {drop_model, "bad: a safetensors file, but not one that Shoal wrote"},
      {break_model, "bad:2:1: "},
      {change_version, "bad: a checkpoint of version '2'; this Shoal reads version 1"},
      {drop_checksum, "bad: the weights do not match their checksum"},
      {drop_position, "bad: where the training stood"},
      {break_position, "bad: where the training stood"},
      {list_position, "bad: where the training stood"},
      {negative_position, "bad: where the training stood"},
      {wordy_position, "bad: where the training stood"},
  };
  training t;
  begin(&t, small_net);
  rounds(&t, 2);
  save(&t, "good", NULL);
  shoal_error err = {0};
  if (load_and_resume(&t, "good", &err) != SHOAL_OK) fail_msg("%s", err.text);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_safetensors *good;
    assert_int_equal(shoal_safetensors_load(&good, "good", &err), SHOAL_OK);
    tables changed = {good->tensors, good->tensors_count, good->meta, good->meta_count};
    cases[i].change(&changed);
    assert_int_equal(shoal_safetensors_save("bad", changed.tensors, changed.tensors_count, changed.meta,
                                            changed.meta_count, &err),
                     SHOAL_OK);
    shoal_safetensors_destroy(good);
    err.text[0] = 0;
    if (load_and_resume(&t, "bad", &err) == SHOAL_OK ||
        strncmp(err.text, cases[i].says, strlen(cases[i].says)))
      fail_msg("case %zu: \"%s\" is not \"%s\"", i, err.text, cases[i].says);
  }
  end(&t);
}

/* One byte of the weights' data is enough. */
static void a_flipped_bit_is_noticed(void **state) {
  (void)state;
  training t;
  begin(&t, small_net);
  save(&t, "c", NULL);
  shoal_safetensors *file;
  assert_int_equal(shoal_safetensors_load(&file, "c", NULL), SHOAL_OK);
  uint8_t *bytes;
  size_t length, data_bytes = 0;
  for (size_t i = 0; i < file->tensors_count; i++) data_bytes += file->tensors[i].bytes;
  shoal_safetensors_destroy(file);
  assert_int_equal(shoal_file_read("c", 1 << 20, false, &bytes, &length, NULL), SHOAL_OK);
  bytes[length - data_bytes] ^= 1;
  FILE *out = fopen("c", "wb");
  assert_int_equal(fwrite(bytes, 1, length, out), length);
  fclose(out);
  free(bytes);
  shoal_error err;
  assert_int_equal(load_and_resume(&t, "c", &err), SHOAL_CORRUPT);
  assert_string_equal(err.text, "c: the weights do not match their checksum; the file is damaged");
  end(&t);
}

static void another_model_s_weights_are_refused_by_name(void **state) {
  (void)state;
  training a, b;
  begin(&a, small_net);
  begin(&b, text_net);
  save(&a, "c", NULL);
  shoal_error err;
  assert_int_equal(load_and_resume(&b, "c", &err), SHOAL_CORRUPT);
  assert_string_equal(err.text, "c: tensor 'embed1.table' (7x4) is missing");
  end(&a);
  end(&b);
}

/* ---- failing disks ------------------------------------------------------------------ */

static void a_failed_save_keeps_the_old_checkpoint(void **state) {
  (void)state;
  training t;
  begin(&t, small_net);
  save(&t, "c", NULL);
  rounds(&t, 1);
  shoal_error err;
  limit_files(4096);
  assert_int_equal(shoal_checkpoint_save("c", t.graph, t.state, NULL, &err), SHOAL_IO);
  assert_int_equal(shoal_checkpoint_save("d", t.graph, t.state, NULL, &err), SHOAL_IO);
  limit_files(0);
  assert_int_equal(files_here(), 1);
  assert_int_equal(load_and_resume(&t, "c", &err), SHOAL_OK);
  assert_int_equal(t.state->step, 0);
  assert_int_equal(shoal_checkpoint_save("/dev/full", t.graph, t.state, NULL, &err), SHOAL_FULL);
  assert_non_null(strstr(err.text, "/dev/full: no space left"));
  end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_resumed_training_goes_on_to_the_same_bits),
      IN_FOLDER(the_model_and_what_was_fitted_come_back),
      IN_FOLDER(positions_are_exact),
      IN_FOLDER(a_file_that_does_not_fit_says_what_is_wrong),
      IN_FOLDER(a_flipped_bit_is_noticed),
      IN_FOLDER(another_model_s_weights_are_refused_by_name),
      IN_FOLDER(a_failed_save_keeps_the_old_checkpoint),
  };
  return RUN_TESTS(tests);
}
