/* task.c: see task.h. */
#include "train/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "nn/loss.h"

shoal_status shoal_task_open(shoal_task *task, const shoal_model *model, const shoal_dataset_options *options,
                             shoal_error *err) {
  *task = (shoal_task){.model = model};
  const shoal_recipe *recipe = &model->recipe;
  shoal_status status = shoal_dataset_open(&task->dataset, options, model, err);
  for (int split = 0; split < SHOAL_SPLITS && status == SHOAL_OK; split++) {
    if (shoal_dataset_samples(task->dataset, (shoal_split)split) == 0) continue;
    status = shoal_dataset_source(task->dataset, (shoal_split)split, recipe->batch, recipe->seed,
                                  &task->sources[split], err);
  }
  if (status != SHOAL_OK) return status;
  if (task->sources[SHOAL_TRAIN].samples == 0)
    return shoal_fail(err, SHOAL_INVALID, "%s has no training samples", options->data);
  shoal_dataset_augment(task->dataset, &task->sources[SHOAL_TRAIN], &recipe->augment);
  shoal_dataset_fitted(task->dataset, &task->fitted);
  return task->fitted.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

/* Balanced weights are inverse to how often a class occurs, scaled so that their mean over
 * the training samples is 1: the rate then means what it did without them. */
static void balance(const shoal_dataset *dataset, uint32_t classes, float *weights) {
  uint64_t samples = 0, present = 0;
  for (uint32_t c = 0; c < classes; c++) {
    uint64_t count = shoal_dataset_class_count(dataset, c);
    samples += count;
    present += count > 0;
  }
  for (uint32_t c = 0; c < classes; c++) {
    uint64_t count = shoal_dataset_class_count(dataset, c);
    if (count > 0) weights[c] = (float)((double)samples / ((double)present * (double)count));
  }
}

shoal_status shoal_task_check(shoal_task *task, shoal_error *err) {
  const shoal_recipe *recipe = &task->model->recipe;
  uint32_t classes = shoal_dataset_classes(task->dataset);
  if (!recipe->class_weights_balanced && recipe->class_weights_count == 0) return SHOAL_OK;
  if (classes == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "class-weights needs data with classes; this data has numbers to predict");
  uint32_t weights = recipe->class_weights_balanced ? classes : recipe->class_weights_count;
  if (weights < classes)
    return shoal_fail(err, SHOAL_INVALID, "class-weights has %u weights, but the data has %u classes",
                      weights, classes);
  free(task->class_weights);
  task->class_weights = calloc(weights, sizeof *task->class_weights);
  if (task->class_weights == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (recipe->class_weights_balanced)
    balance(task->dataset, classes, task->class_weights);
  else
    memcpy(task->class_weights, recipe->class_weights, weights * sizeof *task->class_weights);
  return SHOAL_OK;
}

/* Parts of rounds keep to lanes of the data. */
static shoal_status deal_parts(shoal_task *task, shoal_error *err) {
  const shoal_trainer *trainer = task->trainer;
  uint32_t batch = task->model->recipe.batch, lanes = shoal_trainer_shards(trainer);
  uint64_t rounds = shoal_trainer_rounds(trainer);
  uint32_t last = (uint32_t)(task->sources[SHOAL_TRAIN].samples - (rounds - 1) * batch);
  uint32_t starts[SHOAL_SHARDS_MAX + 1], last_starts[SHOAL_SHARDS_MAX + 1];
  for (uint32_t v = 0; v <= lanes; v++) {
    starts[v] = shoal_trainer_shard_start(trainer, batch, v);
    last_starts[v] = shoal_trainer_shard_start(trainer, last, v);
  }
  const shoal_deal deal = {.lanes = lanes, .starts = starts, .last_starts = last_starts};
  return shoal_dataset_deal(task->dataset, &task->sources[SHOAL_TRAIN], batch, &deal, err);
}

shoal_status shoal_task_deal_rounds(shoal_task *task, uint32_t lanes, const uint32_t *lane_of_round,
                                    shoal_error *err) {
  const shoal_deal deal = {.lanes = lanes, .lane_of_round = lane_of_round};
  return shoal_dataset_deal(task->dataset, &task->sources[SHOAL_TRAIN], task->model->recipe.batch, &deal,
                            err);
}

shoal_status shoal_task_ready(shoal_task *task, uint32_t threads, shoal_error *err) {
  shoal_status status = shoal_graph_create(&task->graph, task->model, err);
  if (status == SHOAL_OK) status = shoal_task_check(task, err);
  if (status != SHOAL_OK) return status;
  shoal_trainer_config config = {.graph = task->graph,
                                 .threads = threads,
                                 .batch = task->model->recipe.batch,
                                 .samples = task->sources[SHOAL_TRAIN].samples,
                                 .class_weights = task->class_weights};
  status = shoal_trainer_create(&task->trainer, &config, err);
  bool lanes = task->model->recipe.shuffle == SHOAL_SHUFFLE_LANES;
  return status == SHOAL_OK && lanes ? deal_parts(task, err) : status;
}

void shoal_task_close(shoal_task *task) {
  shoal_trainer_destroy(task->trainer);
  shoal_graph_destroy(task->graph);
  free(task->class_weights);
  shoal_text_release(&task->fitted);
  shoal_dataset_close(task->dataset);
  *task = (shoal_task){0};
}

void shoal_task_fingerprint(const shoal_task *task, char out[SHOAL_SHA256_HEX]) {
  static const char images[] = "{\"kind\":\"images\"", names[] = ",\"classes\":"; /* the last of its keys */
  const char *text = task->fitted.bytes, *end = NULL;
  if (strncmp(text, images, sizeof images - 1) == 0) end = strstr(text, names);
  shoal_sha256_hex(text, end != NULL ? (size_t)(end - text) : task->fitted.length, out);
}

void shoal_task_notes(const shoal_task *task, void (*note)(void *self, const char *text), void *self) {
  const shoal_model *model = task->model;
  char text[512];
  bool is_text = shoal_dataset_is_text(task->dataset);
  uint64_t samples = shoal_dataset_samples(task->dataset, SHOAL_TRAIN);
  if (model->recipe.batch > samples) {
    snprintf(text, sizeof text,
             "the batch size %s is larger than the %s training %s, so every epoch is a single round; a "
             "smaller batch gives more updates per epoch",
             shoal_human_count(model->recipe.batch).text, shoal_human_count(samples).text,
             is_text ? "tokens" : "samples");
    note(self, text);
  }
  uint32_t outputs = model->layers[model->layers_count - 1].shape.features;
  uint32_t classes = shoal_dataset_classes(task->dataset);
  bool counts = shoal_targets_of(&model->recipe) == SHOAL_TARGET_CLASSES && !is_text;
  if (!counts || classes == 0 || outputs <= classes) return;
  const shoal_human more = shoal_human_count(outputs - classes);
  snprintf(
      text, sizeof text,
      "the model has %s outputs, the data %s classes: the last %s will never be right; `dense %u` at the "
      "end has as many",
      shoal_human_count(outputs).text, shoal_human_count(classes).text,
      outputs - classes == 1 ? "output" : more.text, classes);
  note(self, text);
}
