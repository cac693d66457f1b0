/* bench_losses.c: shoal bench train --losses: ten rounds on one batch, for other libraries to repeat.
 *
 * What the rounds begin with goes to a safetensors file: every parameter under its name, in the order of the model and with
 * the shape that it has in a checkpoint, and the batch:
 *
 *   batch.x        f32  samples x channels x height x width, samples x features, or steps x samples x features
 *   batch.tokens   i32  steps x samples, in place of x
 *   batch.labels   i32  samples, or steps x samples; of cross-entropy
 *   batch.targets  f32  samples x features, or steps x samples x features; of all other losses
 *
 * Recurrent state begins with zeros in every round. */
#include <stdlib.h>

#include "bench/bench.h"
#include "cli/networks.h"
#include "data/noise.h"
#include "nn/loss.h"
#include "nn/safetensors.h"

typedef struct session {
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *trainer;
  shoal_noise *data;
  uint32_t batch;
  void *input, *lanes, *answers; /* lanes: an image's values, as a source gives them */
  shoal_tensor *tensors;         /* all of the file */
  size_t tensors_count;
} session;

static void close_session(session *s) {
  shoal_trainer_destroy(s->trainer);
  shoal_noise_destroy(s->data);
  shoal_graph_destroy(s->graph);
  shoal_model_destroy(s->model);
  free(s->input);
  free(s->lanes);
  free(s->answers);
  free(s->tensors);
}

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  (void)epoch; /* of one batch, always the same */
  shoal_noise_fetch(self, first, n, into);
}

static shoal_status open_session(session *s, const shoal_bench_losses *config, shoal_error *err) {
  shoal_status status = shoal_network_named(&s->model, config->net, err);
  if (status == SHOAL_OK) s->model->carry = false;
  if (status == SHOAL_OK) status = shoal_graph_create(&s->graph, s->model, err);
  if (status == SHOAL_OK) status = shoal_noise_create(&s->data, s->model, err);
  if (status != SHOAL_OK) return status;
  s->batch = config->batch != 0 ? config->batch : s->model->recipe.batch;
  const shoal_trainer_config trainer = {
      .graph = s->graph, .threads = config->threads, .batch = s->batch, .samples = s->batch};
  return shoal_trainer_create(&s->trainer, &trainer, err);
}

/* ---- the file ---- */

/* Dimensions of 0 are left out. */
static void add_tensor(session *s, const char *name, shoal_dtype dtype, const void *data,
                       const uint32_t dims[4]) {
  uint32_t shape[4], count = 0;
  for (int i = 0; i < 4; i++)
    if (dims[i] > 0) shape[count++] = dims[i];
  s->tensors[s->tensors_count++] = shoal_tensor_of(name, dtype, count, shape, data);
}

static void add_batch(session *s) {
  const shoal_shape *in = &s->graph->nodes[0].shape, *out = &s->graph->nodes[s->graph->nodes_count - 1].shape;
  uint32_t n = s->batch, lanes = shoal_lanes_for(n);
  uint32_t in_steps = in->kind == SHOAL_SEQUENCE || in->kind == SHOAL_TOKENS ? in->steps : 0,
           out_steps = out->kind == SHOAL_SEQUENCE ? out->steps : 0;
  bool image = in->kind == SHOAL_IMAGE, tokens = in->kind == SHOAL_TOKENS,
       labels = shoal_targets_of(&s->model->recipe) == SHOAL_TARGET_CLASSES;
  const shoal_batch into = {.x = tokens  ? NULL
                                 : image ? s->lanes
                                         : s->input,
                            .tokens = tokens ? s->input : NULL,
                            .labels = labels ? s->answers : NULL,
                            .targets = labels ? NULL : s->answers};
  shoal_noise_fetch(s->data, 0, n, &into);
  uint64_t values = shoal_shape_values(in);
  for (uint64_t i = 0; image && i < values * n; i++)
    ((float *)s->input)[i] = ((float *)s->lanes)[i % values * lanes + i / values];
  if (image)
    add_tensor(s, "batch.x", SHOAL_F32, s->input, (uint32_t[]){n, in->c, in->h, in->w});
  else if (tokens)
    add_tensor(s, "batch.tokens", SHOAL_I32, s->input, (uint32_t[]){in_steps, n, 0, 0});
  else
    add_tensor(s, "batch.x", SHOAL_F32, s->input, (uint32_t[]){in_steps, n, in->features, 0});
  if (labels)
    add_tensor(s, "batch.labels", SHOAL_I32, s->answers, (uint32_t[]){out_steps, n, 0, 0});
  else
    add_tensor(s, "batch.targets", SHOAL_F32, s->answers, (uint32_t[]){out_steps, n, out->features, 0});
}

static shoal_status write_file(session *s, const char *path, shoal_error *err) {
  const shoal_shape *in = &s->graph->nodes[0].shape, *out = &s->graph->nodes[s->graph->nodes_count - 1].shape;
  s->input = calloc(shoal_shape_values(in) * s->batch, sizeof(float));
  s->lanes = calloc(shoal_shape_floats(in, s->batch), sizeof(float));
  s->answers = calloc(shoal_shape_values(out) * s->batch, sizeof(float));
  s->tensors = calloc(s->graph->params_count + 2, sizeof *s->tensors);
  if (!s->input || !s->lanes || !s->answers || !s->tensors)
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  const float *weights = shoal_trainer_state(s->trainer)->weights;
  for (uint32_t i = 0; i < s->graph->params_count; i++) {
    const shoal_param *param = &s->graph->params[i];
    s->tensors[s->tensors_count++] =
        shoal_tensor_of(param->name, SHOAL_F32, param->dims_count, param->dims, weights + param->offset);
  }
  add_batch(s);
  return shoal_safetensors_save(path, s->tensors, s->tensors_count, NULL, 0, err);
}

shoal_status shoal_bench_losses_run(const shoal_bench_losses *config, double losses[SHOAL_BENCH_LOSSES],
                                    shoal_error *err) {
  session s = {0};
  shoal_status status = open_session(&s, config, err);
  if (status == SHOAL_OK) status = write_file(&s, config->path, err);
  const shoal_source source = {.self = s.data, .samples = s.batch, .fetch = fetch};
  for (int i = 0; status == SHOAL_OK && i < SHOAL_BENCH_LOSSES; i++) {
    shoal_result round;
    status = shoal_trainer_round(s.trainer, &source, &round, err);
    losses[i] = round.loss;
  }
  close_session(&s);
  return status;
}
