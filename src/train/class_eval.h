/* class_eval.h: a classifier on the samples of a source, class by class (confusion.h), in the pass that gives the
 * loss and the accuracy.
 *
 * Only samples with one answer that is a class, or a class of each output, are judged so. Text models, whose
 * answers are tokens, and numbers are not: perplexity or error says what there is to say.
 *
 * Ownership: init, then release; in between the struct stays where it is. All else is borrowed. Threads: one caller. */
#ifndef SHOAL_TRAIN_CLASS_EVAL_H
#define SHOAL_TRAIN_CLASS_EVAL_H

#include "data/dataset.h"
#include "nn/trainer.h"
#include "train/confusion.h"

/* Models with more outputs are not judged class by class, nor those whose batch has more of them in all: the batch
 * is whatever the model's file says. */
enum { SHOAL_CLASS_EVAL_MAX = 65536, SHOAL_CLASS_EVAL_BATCH_MAX = 1 << 26 };

typedef struct shoal_class_eval {
  const shoal_graph *graph;
  const shoal_dataset *dataset;
  const shoal_source *source; /* what was evaluated last; NULL: nothing yet */
  shoal_result result;
  bool has_classes; /* else only the result */
  shoal_confusion confusion;
  shoal_confusion_words words; /* the names of classes, and samples as data/sample.h shows them */
  float *outputs;              /* of a batch; the rest for one fetch */
  float *targets;              /* with binary cross-entropy; NULL without, where there are labels */
  int32_t labels[SHOAL_FETCH_MAX];
  float weight[SHOAL_FETCH_MAX];
} shoal_class_eval;

/* batch: the trainer's. */
shoal_status shoal_class_eval_init(shoal_class_eval *out, const shoal_graph *graph,
                                   const shoal_dataset *dataset, uint32_t batch, shoal_error *err);
void shoal_class_eval_release(shoal_class_eval *evaluation);

/* The same result to the last bit as shoal_trainer_evaluate. */
shoal_result shoal_class_eval_run(shoal_class_eval *evaluation, shoal_trainer *trainer,
                                  const shoal_source *source);

#endif
