/* event_log.c: see event_log.h. */
#include "train/event_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "base/png.h"
#include "data/sample.h"
#include "nn/loss.h"
#include "train/generate.h"
#include "train/metric.h"

/* Files stay within some 20 MB, however long a training is and however many parameters it has. */
enum { LOGGED_MAX = 100, HISTOGRAMS_MAX = 20000, SAMPLES = 8, PICTURE_SIDE = 256, WORDS = 100 };

/* Unless memory ran out for the text, which is released. */
static void log_text(shoal_events *events, const shoal_task *task, const char *tag, shoal_text *text) {
  if (!text->failed) shoal_events_text(events, tag, shoal_trainer_state(task->trainer)->step, text->bytes);
  shoal_text_release(text);
}

/* ---- samples ---- */

/* The name of a class, without what Markdown and tags read in their own way. */
typedef struct class_name {
  char text[64];
} class_name;

static class_name name_of(const shoal_dataset *dataset, uint32_t index) {
  class_name n;
  const char *name = shoal_dataset_class_name(dataset, index);
  if (name == NULL)
    snprintf(n.text, sizeof n.text, "%u", index);
  else
    shoal_text_plain(n.text, sizeof n.text, name, strlen(name));
  for (char *c = n.text; *c; c++)
    if (*c == '|') *c = '/';
  return n;
}

static bool has_labels(const shoal_task *task) {
  return shoal_targets_of(&task->model->recipe) == SHOAL_TARGET_CLASSES;
}

static uint32_t samples_of(const shoal_task *task, const shoal_source *source) {
  uint32_t most = task->model->recipe.batch < SAMPLES ? task->model->recipe.batch : SAMPLES;
  return source->samples < most ? (uint32_t)source->samples : most;
}

/* The i-th of n that are shown: from all over the data, since a folder's classes come one after the other. */
static uint64_t sample_at(const shoal_source *source, uint32_t i, uint32_t n) {
  return source->samples / n * i + source->samples % n * i / n;
}

static void log_pictures(shoal_events *events, const shoal_task *task, const shoal_source *source) {
  uint64_t step = shoal_trainer_state(task->trainer)->step;
  uint32_t n = samples_of(task, source);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t sample = sample_at(source, i, n);
    int32_t label = 0;
    const shoal_batch into = {.labels = &label};
    shoal_sample_picture picture;
    if (!shoal_sample_picture_of(&picture, task->dataset, source, sample, PICTURE_SIDE)) return;
    source->fetch(source->self, 0, sample, 1, &into);
    char tag[96];
    snprintf(tag, sizeof tag, "samples/%llu is %s", (unsigned long long)sample,
             name_of(task->dataset, (uint32_t)label).text);
    shoal_text png = {0};
    shoal_png_write(&png, picture.width, picture.height,
                    picture.channels == 3 ? SHOAL_PNG_RGB : SHOAL_PNG_GREY, picture.pixels);
    shoal_events_image(events, tag, step, picture.width, picture.height, &png);
    shoal_text_release(&png);
    shoal_sample_picture_release(&picture);
  }
}

static void add_numbers(shoal_text *out, const float *row, uint32_t features) {
  for (uint32_t i = 0; i < features && i < SAMPLES; i++)
    shoal_text_addf(out, "%s%s", i > 0 ? " " : "", shoal_human_number(row[i]).text);
}

static void add_row(shoal_text *out, const shoal_task *task, uint64_t sample, const float *said,
                    int32_t label, const float *target) {
  uint32_t features = shoal_graph_output(task->graph)->features;
  bool two = shoal_targets_of(&task->model->recipe) == SHOAL_TARGET_TWO && features == 1;
  shoal_text_addf(out, "\n| %llu | ", (unsigned long long)sample);
  if (has_labels(task) || two) {
    /* A single output is the probability of the second of two classes. */
    const float both[] = {1 - said[0], said[0]}, *probability = two ? both : said;
    uint32_t guess = shoal_likeliest(probability, two ? 2 : features);
    uint32_t truth = two ? target[0] > 0.5f : (uint32_t)label;
    shoal_text_addf(out, "%s | %s%s | %.4f |", name_of(task->dataset, truth).text,
                    name_of(task->dataset, guess).text, guess == truth ? "" : " (wrong)",
                    (double)probability[guess]);
    return;
  }
  add_numbers(out, target, features);
  shoal_text_addf(out, " | ");
  add_numbers(out, said, features);
  shoal_text_addf(out, " | |");
}

static void log_samples(shoal_events *events, const shoal_task *task, const shoal_source *source) {
  uint32_t n = samples_of(task, source), features = shoal_graph_output(task->graph)->features;
  float *said = calloc(2 * (size_t)features, sizeof *said), *target = said + features;
  if (said == NULL) return;
  int32_t label = 0;
  const shoal_batch into = {.labels = has_labels(task) ? &label : NULL,
                            .targets = has_labels(task) ? NULL : target};
  shoal_text table = {0};
  shoal_text_addf(&table, "| sample | it is | the model says | probability |\n| --- | --- | --- | --- |");
  for (uint32_t i = 0; i < n; i++) {
    uint64_t sample = sample_at(source, i, n);
    shoal_trainer_predict(task->trainer, source, sample, 1, said);
    source->fetch(source->self, 0, sample, 1, &into);
    add_row(&table, task, sample, said, label, target);
  }
  log_text(events, task, "samples", &table);
  free(said);
}

/* ---- what a text model writes ---- */

static void collect(void *context, const char *text, size_t length) { shoal_text_add(context, text, length); }

/* Not every model can write on: a text that reads both ways cannot. */
static void log_writing(shoal_events *events, const shoal_task *task) {
  const shoal_train_state *state = shoal_trainer_state(task->trainer);
  const shoal_generate_model from = {
      .name = "the model", .graph = task->graph, .weights = state->weights, .vocabulary = task->dataset};
  shoal_text prompt = {0}, said = {0};
  shoal_dataset_opening(task->dataset, &prompt);
  const shoal_generate_options options = {
      .prompt = prompt.bytes, .length = WORDS, .temperature = 0.8, .seed = task->model->recipe.seed};
  shoal_text_addf(&said, "```\n");
  if (prompt.length > 0 && !prompt.failed &&
      shoal_generate(&from, &options, collect, &said, NULL) == SHOAL_OK) {
    shoal_text_addf(&said, "```\n");
    log_text(events, task, "writes", &said);
  }
  shoal_text_release(&prompt);
  shoal_text_release(&said);
}

/* ---- the whole ---- */

void shoal_event_log_start(shoal_events *events, const shoal_task *task, const shoal_source *held_out) {
  shoal_text text = {0};
  shoal_events_graph(events, task->graph);
  shoal_text_addf(&text, "```\n");
  shoal_model_write(task->model, &text);
  shoal_text_addf(&text, "```\n");
  log_text(events, task, "model", &text);
  if (held_out != NULL && has_labels(task)) log_pictures(events, task, held_out);
}

static void log_histograms(shoal_events *events, const shoal_task *task) {
  const shoal_train_state *state = shoal_trainer_state(task->trainer);
  const float *gradient = shoal_trainer_last_gradient(task->trainer);
  for (uint32_t i = 0; i < task->graph->params_count; i++) {
    const shoal_param *param = &task->graph->params[i];
    char tag[300];
    snprintf(tag, sizeof tag, "weights/%.250s", param->name);
    shoal_events_histogram(events, tag, state->step, state->weights + param->offset, param->count);
    snprintf(tag, sizeof tag, "gradients/%.250s", param->name);
    if (gradient != NULL && param->kind != SHOAL_PARAM_STATISTIC)
      shoal_events_histogram(events, tag, state->step, gradient + param->offset, param->count);
  }
}

void shoal_event_log_epoch(shoal_events *events, const shoal_task *task, const shoal_source *held_out) {
  uint64_t epoch = shoal_trainer_state(task->trainer)->epoch, epochs = task->model->recipe.epochs;
  uint64_t logged = HISTOGRAMS_MAX / (2 * (uint64_t)task->graph->params_count + 1) + 1;
  if (logged > LOGGED_MAX) logged = LOGGED_MAX;
  if (epoch % (epochs / logged + 1) != 0 && epoch < epochs) return;
  log_histograms(events, task);
  bool has_answers =
      shoal_graph_output(task->graph)->kind == SHOAL_VECTOR; /* one a sample: a class or numbers */
  if (shoal_dataset_is_text(task->dataset))
    log_writing(events, task);
  else if (held_out != NULL && has_answers)
    log_samples(events, task, held_out);
}
