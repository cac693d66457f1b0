/* class_eval.c: see class_eval.h. */
#include "train/class_eval.h"

#include <stdlib.h>

#include "data/sample.h"
#include "nn/loss.h"
#include "train/metric.h"

static const char *name_of(const void *self, uint32_t index) {
  const shoal_class_eval *e = self;
  return shoal_dataset_class_name(e->dataset, index);
}

static void show(const void *self, uint64_t sample, shoal_json *json) {
  const shoal_class_eval *e = self;
  shoal_sample_write(e->dataset, e->source, sample, json);
}

shoal_status shoal_class_eval_init(shoal_class_eval *out, const shoal_graph *graph,
                                   const shoal_dataset *dataset, uint32_t batch, shoal_error *err) {
  *out = (shoal_class_eval){
      .graph = graph, .dataset = dataset, .words = {.self = out, .name = name_of, .show = show}};
  const shoal_shape *output = shoal_graph_output(graph);
  uint32_t features = output->features;
  shoal_target_kind targets = shoal_targets_of(&graph->model->recipe);
  bool binary = targets == SHOAL_TARGET_TWO;
  out->has_classes =
      targets != SHOAL_TARGET_NUMBER && output->kind != SHOAL_SEQUENCE && features <= SHOAL_CLASS_EVAL_MAX &&
      (uint64_t)batch * features <= SHOAL_CLASS_EVAL_BATCH_MAX && !shoal_dataset_is_text(dataset);
  if (!out->has_classes) return SHOAL_OK;
  bool two = binary && features == 1;
  shoal_status status = shoal_confusion_init(&out->confusion, two ? 2 : features, binary && !two, err);
  if (status != SHOAL_OK) return status;
  out->outputs = malloc((size_t)batch * features * sizeof *out->outputs);
  if (binary) out->targets = malloc((size_t)SHOAL_FETCH_MAX * features * sizeof *out->targets);
  bool ok = out->outputs && (out->targets || !binary);
  return ok ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_class_eval_release(shoal_class_eval *e) {
  shoal_confusion_release(&e->confusion);
  free(e->outputs);
  free(e->targets);
  *e = (shoal_class_eval){0};
}

/* ---- running ---- */

static void add_sample(shoal_class_eval *e, uint64_t sample, const float *row, uint32_t i) {
  if (e->weight[i] == 0) return;
  if (e->confusion.each) {
    shoal_confusion_add_each(&e->confusion, sample, row, e->targets + (size_t)i * e->confusion.classes);
    return;
  }
  /* A single target: the output is the probability of the second of two classes. One half is not more than one
   * half: the first class, as the loss counts it. */
  const float two[] = {1 - row[0], row[0]};
  shoal_confusion_sample s = {.sample = sample};
  s.truth = e->targets ? e->targets[i] > 0.5f : (uint32_t)e->labels[i];
  if (e->targets) row = two;
  s.guess = shoal_likeliest(row, e->confusion.classes);
  if (s.truth >= e->confusion.classes) return;
  s.guess_probability = row[s.guess];
  s.truth_probability = row[s.truth];
  shoal_confusion_add(&e->confusion, &s);
}

static void on_batch(void *self, uint64_t first, uint32_t n) {
  shoal_class_eval *e = self;
  uint32_t features = shoal_graph_output(e->graph)->features;
  const shoal_batch known = {
      .labels = e->targets ? NULL : e->labels, .targets = e->targets, .weight = e->weight};
  for (uint32_t done = 0, some; done < n; done += some) {
    some = n - done < SHOAL_FETCH_MAX ? n - done : SHOAL_FETCH_MAX;
    e->source->fetch(e->source->self, 0, first + done, some, &known);
    for (uint32_t i = 0; i < some; i++)
      add_sample(e, first + done + i, e->outputs + (size_t)(done + i) * features, i);
  }
}

shoal_result shoal_class_eval_run(shoal_class_eval *e, shoal_trainer *trainer, const shoal_source *source) {
  const shoal_trainer_watch watch = {.self = e, .outputs = e->outputs, .batch = on_batch};
  e->source = source;
  if (e->has_classes) shoal_confusion_clear(&e->confusion);
  e->result = shoal_trainer_evaluate_each(trainer, source, e->has_classes ? &watch : NULL);
  if (e->has_classes) shoal_confusion_finish(&e->confusion);
  return e->result;
}
