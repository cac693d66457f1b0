/* dump.c: what this engine computes, as safetensors, for the Python tests to compare.
 *
 *   train MODEL IN OUT       IN: every parameter under its name; "x" or "tokens"; "labels" or
 *                            "targets"; perhaps "weight". All are samples first, as PyTorch has
 *                            them. OUT: "output" of the first batch; "loss" and "gradient.NAME"
 *                            on it; then "losses" and "after.NAME" of ten rounds.
 *   init MODEL CHECKPOINT    fresh weights, with biases, scales and statistics moved away from
 *                            0 and 1, so that a mistake in them shows
 *   predict CHECKPOINT IN OUT   "output" of all samples
 *   copy IN OUT              a safetensors file, read and written again
 *   events FOLDER            an event file with the tags and values that test_events.py knows
 *   scores IN                IN: "probability" (rows x classes) and "labels", or "predicted" and "right";
 *                            all scores as JSON on standard output
 *   play NAME SEED IN OUT    IN: "actions" (steps x environments x width) for environments of that name and
 *                            seed. OUT: "first" observations, and of every step "observations", "lasts" (of
 *                            episodes that ended in it), "rewards" and "ends"
 *   image FILE               a PNG or JPEG file as PNM (P5 or P6) on standard output
 *   fit FILE C H W           the same, fitted to C channels of H x W: the bytes, channel after channel
 *
 * A failure ends the program with a sentence; nothing is released then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nn/gradient.h"
#include "agent/bridge.h"
#include "agent/vector.h"
#include "base/assert.h"
#include "data/image_file.h"
#include "nn/checkpoint.h"
#include "nn/events.h"
#include "search/score.h"

enum { ROUNDS = 10, NAME_MAX_BYTES = 256 };

static void check(shoal_status status, const shoal_error *err) {
  if (status == SHOAL_OK) return;
  fprintf(stderr, "interop_dump: %s\n", err->text);
  exit(1);
}

static void *take(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  SHOAL_ASSERT(memory);
  return memory;
}

/* ---- data --------------------------------------------------------------------------- */

/* The samples of a file; arrays that it does not have are NULL. */
typedef struct samples {
  const shoal_graph *graph;
  uint64_t count;
  float *x, *targets, *weight;
  int32_t *tokens, *labels;
} samples;

/* A copy of the tensor's bytes, aligned, or NULL. Sets the number of samples. */
static void *tensor_copy(const shoal_safetensors *file, const char *name, shoal_dtype dtype,
                         uint64_t *count) {
  const shoal_tensor *tensor = shoal_safetensors_find(file, name);
  if (!tensor) return NULL;
  SHOAL_ASSERT(tensor->dtype == dtype && tensor->dims_count > 0);
  *count = tensor->dims[0];
  return memcpy(take(tensor->bytes, 1), tensor->data, tensor->bytes);
}

static void load_samples(samples *s, const shoal_graph *graph, const shoal_safetensors *file) {
  *s = (samples){.graph = graph};
  s->x = tensor_copy(file, "x", SHOAL_F32, &s->count);
  s->tokens = tensor_copy(file, "tokens", SHOAL_I32, &s->count);
  s->labels = tensor_copy(file, "labels", SHOAL_I32, &s->count);
  s->targets = tensor_copy(file, "targets", SHOAL_F32, &s->count);
  s->weight = tensor_copy(file, "weight", SHOAL_F32, &s->count);
}

/* From samples x steps x features to steps x n x features, four bytes a value. */
static void to_time(const void *from, void *to, uint64_t first, uint32_t n, uint32_t steps,
                    uint32_t features) {
  size_t row = features * sizeof(float);
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t t = 0; t < steps; t++)
      memcpy((char *)to + ((size_t)t * n + i) * row, (const char *)from + ((first + i) * steps + t) * row,
             row);
  }
}

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  (void)epoch;
  const samples *s = self;
  const shoal_shape *in = &s->graph->nodes[0].shape;
  const shoal_shape *out = &s->graph->nodes[s->graph->nodes_count - 1].shape;
  uint32_t values = (uint32_t)shoal_shape_values(in), lanes = shoal_lanes_for(n);
  if (in->kind == SHOAL_IMAGE) {
    memset(into->x, 0, (size_t)values * lanes * sizeof(float));
    for (uint32_t e = 0; e < values; e++) {
      for (uint32_t i = 0; i < n; i++) into->x[(size_t)e * lanes + i] = s->x[(first + i) * values + e];
    }
  } else if (into->x) {
    to_time(s->x, into->x, first, n, in->steps, in->features);
  }
  if (into->tokens) to_time(s->tokens, into->tokens, first, n, in->steps, 1);
  if (into->labels && s->labels) to_time(s->labels, into->labels, first, n, out->steps, 1);
  if (into->targets && s->targets) to_time(s->targets, into->targets, first, n, out->steps, out->features);
  for (uint32_t row = 0; into->weight && row < n * out->steps; row++) into->weight[row] = 1;
  if (into->weight && s->weight) to_time(s->weight, into->weight, first, n, out->steps, 1);
  for (uint32_t i = 0; into->ids && i < n; i++) into->ids[i] = first + i;
}

/* ---- results ------------------------------------------------------------------------ */

typedef struct results {
  shoal_tensor *tensors;
  size_t count, capacity;
} results;

static shoal_tensor *add_result(results *r, const char *prefix, const char *name, const float *data,
                                size_t count) {
  if (r->count == r->capacity) {
    r->capacity = 2 * r->capacity + 64;
    r->tensors = realloc(r->tensors, r->capacity * sizeof *r->tensors);
    SHOAL_ASSERT(r->tensors);
  }
  char *full = take(NAME_MAX_BYTES, 1);
  snprintf(full, NAME_MAX_BYTES, "%s%s", prefix, name);
  shoal_tensor *tensor = &r->tensors[r->count++];
  *tensor = (shoal_tensor){.name = full, .dims_count = 1, .dims = {count}, .bytes = count * sizeof *data};
  tensor->data = memcpy(take(count, sizeof *data), data, tensor->bytes);
  return tensor;
}

static void add_params(results *r, const char *prefix, const shoal_graph *graph, const float *vector) {
  for (uint32_t p = 0; p < graph->params_count; p++) {
    const shoal_param *param = &graph->params[p];
    shoal_tensor *tensor = add_result(r, prefix, param->name, vector + param->offset, param->count);
    tensor->dims_count = param->dims_count;
    for (uint32_t d = 0; d < param->dims_count; d++) tensor->dims[d] = param->dims[d];
  }
}

/* Outputs of n samples, samples first. */
static void add_outputs(results *r, const shoal_graph *graph, shoal_trainer *trainer,
                        const shoal_source *source, uint32_t n) {
  const shoal_shape *out = &graph->nodes[graph->nodes_count - 1].shape;
  size_t count = (size_t)n * out->steps * out->features;
  float *time = take(count, sizeof *time), *rows = take(count, sizeof *rows);
  shoal_trainer_predict(trainer, source, 0, n, time);
  for (uint32_t t = 0; t < out->steps; t++) {
    for (uint32_t i = 0; i < n; i++)
      memcpy(rows + ((size_t)i * out->steps + t) * out->features, time + ((size_t)t * n + i) * out->features,
             out->features * sizeof *rows);
  }
  shoal_tensor *tensor = add_result(r, "", "output", rows, count);
  tensor->dims_count = 3;
  tensor->dims[0] = n;
  tensor->dims[1] = out->steps;
  tensor->dims[2] = out->features;
}

static void save_results(const results *r, const char *path) {
  shoal_error err;
  check(shoal_safetensors_save(path, r->tensors, r->count, NULL, 0, &err), &err);
}

/* ---- commands ----------------------------------------------------------------------- */

static shoal_trainer *make_trainer(const shoal_graph *graph, uint32_t batch, uint64_t train_samples) {
  const shoal_recipe *recipe = &graph->model->recipe;
  shoal_trainer_config config = {.graph = graph,
                                 .threads = 2,
                                 .batch = batch,
                                 .samples = train_samples,
                                 .class_weights = recipe->class_weights_count ? recipe->class_weights : NULL};
  shoal_trainer *trainer;
  shoal_error err;
  check(shoal_trainer_create(&trainer, &config, &err), &err);
  return trainer;
}

static void read_weights(const shoal_safetensors *file, const shoal_graph *graph, float *weights) {
  for (uint32_t p = 0; p < graph->params_count; p++) {
    const shoal_param *param = &graph->params[p];
    const shoal_tensor *tensor = shoal_safetensors_find(file, param->name);
    if (!tensor || tensor->bytes != param->count * sizeof *weights) {
      fprintf(stderr, "interop_dump: parameter '%s' of %zu values is missing\n", param->name, param->count);
      exit(1);
    }
    memcpy(weights + param->offset, tensor->data, tensor->bytes);
  }
}

static void train(const char *model_path, const char *in_path, const char *out_path) {
  shoal_error err;
  shoal_model *model;
  shoal_graph *graph;
  shoal_safetensors *in;
  check(shoal_model_load(&model, model_path, &err), &err);
  check(shoal_graph_create(&graph, model, &err), &err);
  check(shoal_safetensors_load(&in, in_path, &err), &err);
  samples data;
  load_samples(&data, graph, in);
  shoal_source source = {.self = &data, .samples = data.count, .fetch = fetch};
  uint32_t batch = model->recipe.batch;
  SHOAL_ASSERT(batch <= data.count);
  shoal_trainer *trainer = make_trainer(graph, batch, data.count);
  shoal_train_state *state = shoal_trainer_state(trainer);
  read_weights(in, graph, state->weights);

  results out = {0};
  add_outputs(&out, graph, trainer, &source, batch);
  float *gradient = take(graph->weights_count, sizeof *gradient), losses[ROUNDS];
  shoal_result result = gradient_of(trainer, &source, batch, gradient);
  add_result(&out, "", "loss", &(float){(float)result.loss}, 1);
  add_params(&out, "gradient.", graph, gradient);
  for (int i = 0; i < ROUNDS; i++) {
    check(shoal_trainer_round(trainer, &source, &result, &err), &err);
    losses[i] = (float)result.loss;
  }
  add_result(&out, "", "losses", losses, ROUNDS);
  add_params(&out, "after.", graph, state->weights);
  save_results(&out, out_path);
}

static void init(const char *model_path, const char *checkpoint_path) {
  shoal_error err;
  shoal_model *model;
  shoal_graph *graph;
  check(shoal_model_load(&model, model_path, &err), &err);
  check(shoal_graph_create(&graph, model, &err), &err);
  float *weights = take(graph->weights_count, sizeof *weights);
  shoal_graph_init_weights(graph, model->recipe.seed, weights);
  for (uint32_t p = 0; p < graph->params_count; p++) {
    const shoal_param *param = &graph->params[p];
    shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, p, 0);
    for (size_t e = 0; param->kind != SHOAL_PARAM_WEIGHT && e < param->count; e++)
      weights[param->offset + e] += shoal_random_uniform(key, e) - 0.3f;
  }
  shoal_train_state state = {.weights_count = graph->weights_count, .weights = weights};
  check(shoal_checkpoint_save(checkpoint_path, graph, &state, NULL, &err), &err);
}

static void predict(const char *checkpoint_path, const char *in_path, const char *out_path) {
  shoal_error err;
  shoal_checkpoint checkpoint;
  shoal_graph *graph;
  shoal_safetensors *in;
  check(shoal_checkpoint_load(&checkpoint, checkpoint_path, &err), &err);
  check(shoal_graph_create(&graph, checkpoint.model, &err), &err);
  check(shoal_safetensors_load(&in, in_path, &err), &err);
  samples data;
  load_samples(&data, graph, in);
  shoal_source source = {.self = &data, .samples = data.count, .fetch = fetch};
  shoal_trainer *trainer = make_trainer(graph, (uint32_t)data.count, 0);
  check(shoal_checkpoint_weights(&checkpoint, graph, shoal_trainer_state(trainer)->weights, &err), &err);
  results out = {0};
  add_outputs(&out, graph, trainer, &source, (uint32_t)data.count);
  save_results(&out, out_path);
}

static void copy(const char *in_path, const char *out_path) {
  shoal_error err;
  shoal_safetensors *in;
  check(shoal_safetensors_load(&in, in_path, &err), &err);
  check(shoal_safetensors_save(out_path, in->tensors, in->tensors_count, in->meta, in->meta_count, &err),
        &err);
}

static void write_events(const char *folder) {
  shoal_error err;
  shoal_events *events;
  check(shoal_events_create(&events, folder, &err), &err);
  for (uint64_t step = 0; step < 1000; step++) {
    shoal_events_scalar(events, "train/loss", step * step, 1.0 / (double)(step + 1));
    if (step % 100 == 0) shoal_events_scalar(events, "valid/accuracy", step, (double)step / 1000);
  }
  check(shoal_events_flush(events, &err), &err);
  shoal_events_destroy(events);
}

/* ---- scores ------------------------------------------------------------------------- */

static const void *data_of(const shoal_safetensors *file, const char *name) {
  const shoal_tensor *tensor = shoal_safetensors_find(file, name);
  return tensor ? tensor->data : NULL;
}

static double *doubles(const shoal_safetensors *file, const char *name, uint64_t count) {
  const float *from = data_of(file, name);
  double *out = take(count, sizeof *out);
  for (uint64_t i = 0; i < count; i++) out[i] = (double)from[i];
  return out;
}

static void print_scores(const char *in_path) {
  shoal_safetensors *in;
  shoal_error err;
  check(shoal_safetensors_load(&in, in_path, &err), &err);
  const shoal_tensor *probability = shoal_safetensors_find(in, "probability");
  shoal_scores scores;
  if (probability) {
    const int32_t *positive = data_of(in, "positive");
    check(shoal_scores_classes(&scores, probability->data, data_of(in, "labels"), probability->dims[0],
                               (uint32_t)probability->dims[1], positive ? (uint32_t)*positive : 1, &err),
          &err);
  } else {
    uint64_t rows = shoal_safetensors_find(in, "right")->dims[0];
    shoal_scores_numbers(&scores, doubles(in, "predicted", rows), doubles(in, "right", rows), rows);
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_scores_write(&scores, probability ? SHOAL_BINARY : SHOAL_REGRESSION, &json, "");
  shoal_json_close(&json, '}');
  puts(text.bytes);
}

/* ---- environments ------------------------------------------------------------------- */

static void play(const char *name, const char *seed, const char *in_path, const char *out_path) {
  shoal_error err;
  shoal_safetensors *in;
  const shoal_env_kind *kind;
  shoal_vector *vector;
  check(shoal_env_open(name, &kind, &err), &err);
  check(shoal_safetensors_load(&in, in_path, &err), &err);
  const shoal_tensor *actions = shoal_safetensors_find(in, "actions");
  SHOAL_ASSERT(actions && actions->dtype == SHOAL_F32 && actions->dims_count == 3);
  size_t steps = actions->dims[0], envs = actions->dims[1], width = actions->dims[2],
         seen = kind->observation;
  SHOAL_ASSERT(width == kind->action_width);
  check(shoal_vector_create(&vector, kind, (uint32_t)envs, &err), &err);
  shoal_vector_reset(vector, strtoull(seed, NULL, 10));

  results out = {0};
  add_result(&out, "", "first", shoal_vector_observations(vector), envs * seen);
  float *observations = take(steps * envs * seen, sizeof(float)),
        *lasts = take(steps * envs * seen, sizeof(float));
  float *rewards = take(steps * envs, sizeof(float)), *ends = take(steps * envs, sizeof(float));
  float *action = take(envs * width, sizeof(float));
  uint8_t *ended = take(envs, 1);
  for (size_t t = 0; t < steps; t++) {
    memcpy(action, (const float *)actions->data + t * envs * width, envs * width * sizeof *action);
    shoal_vector_step(vector, action, rewards + t * envs, ended);
    memcpy(observations + t * envs * seen, shoal_vector_observations(vector), envs * seen * sizeof(float));
    for (size_t e = 0; e < envs; e++) {
      size_t row = t * envs + e;
      ends[row] = ended[e];
      if (ended[e]) memcpy(lasts + row * seen, shoal_vector_last(vector, (uint32_t)e), seen * sizeof(float));
    }
  }
  add_result(&out, "", "observations", observations, steps * envs * seen);
  add_result(&out, "", "lasts", lasts, steps * envs * seen);
  add_result(&out, "", "rewards", rewards, steps * envs);
  add_result(&out, "", "ends", ends, steps * envs);
  check(shoal_vector_check(vector, &err), &err);
  save_results(&out, out_path);
  shoal_vector_destroy(vector);
  shoal_env_close(kind);
}

/* ---- image files -------------------------------------------------------------------- */

static void print_image(const char *path) {
  shoal_image_file image;
  shoal_error err;
  check(shoal_image_file_read(&image, path, &err), &err);
  printf("P%d %u %u 255\n", image.c == 1 ? 5 : 6, image.w, image.h);
  fwrite(image.pixels, 1, (size_t)image.w * image.h * image.c, stdout);
  shoal_image_file_release(&image);
}

static void print_fitted(const char *path, uint32_t c, uint32_t h, uint32_t w) {
  shoal_image_file image;
  shoal_error err;
  uint8_t *out = take((size_t)c * h * w, 1);
  check(shoal_image_file_read(&image, path, &err), &err);
  check(shoal_image_file_fit(&image, c, h, w, out, &err), &err);
  fwrite(out, 1, (size_t)c * h * w, stdout);
  shoal_image_file_release(&image);
  free(out);
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  if (strcmp(command, "train") == 0 && argc == 5)
    train(argv[2], argv[3], argv[4]);
  else if (strcmp(command, "init") == 0 && argc == 4)
    init(argv[2], argv[3]);
  else if (strcmp(command, "predict") == 0 && argc == 5)
    predict(argv[2], argv[3], argv[4]);
  else if (strcmp(command, "copy") == 0 && argc == 4)
    copy(argv[2], argv[3]);
  else if (strcmp(command, "events") == 0 && argc == 3)
    write_events(argv[2]);
  else if (strcmp(command, "scores") == 0 && argc == 3)
    print_scores(argv[2]);
  else if (strcmp(command, "play") == 0 && argc == 6)
    play(argv[2], argv[3], argv[4], argv[5]);
  else if (strcmp(command, "image") == 0 && argc == 3)
    print_image(argv[2]);
  else if (strcmp(command, "fit") == 0 && argc == 6)
    print_fitted(argv[2], (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]));
  else
    return fprintf(stderr, "usage: see the head of tests/interop/dump.c\n"), 2;
  return 0;
}
