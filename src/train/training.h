/* training.h: the loop of a training: round after round, evaluation and a saved model after every epoch.
 *
 * Who makes the rounds (nn/rounds.h), and who is told, is the caller's. The whole state is saved
 * under `out`, atomically. When `stop` is set the loop ends after the round at hand, so a run that is stopped or
 * killed continues and ends with the same weights, bit for bit.
 *
 * Early stopping keeps a second file, `out` with ".best" in its name: the state after the epoch
 * with the lowest validation loss. At the end it takes the place of `out`. How long ago the
 * best epoch was follows from the two files alone, so that too survives a kill.
 *
 * A model that is at `out` before the first save is moved aside, to `out` with ".previous" in its name, and
 * takes the place of one that was moved there earlier. One of this same training (the same model, recipe and
 * data, such as a crash leaves behind) never takes the place of another's: it goes to ".previous-2" or on.
 *
 * There must be room for the model where it is saved: less than one takes is an error at the start, less than all
 * files of the run take is a warning, and a save for
 * which there is none keeps the file that is there. While it trains, that is a warning, given once
 * until a save succeeds again; at the end it waits until somebody has made room, or `stop` is set.
 *
 * Nothing slow stands before the first round: no evaluation, no checksum of the data.
 *
 * Ownership: init, then release, in whatever state init left it; config and task are borrowed. Threads: one,
 * but `stop` may be set by a signal or another thread. */
#ifndef SHOAL_TRAIN_TRAINING_H
#define SHOAL_TRAIN_TRAINING_H

#include <signal.h>

#include "base/text.h"
#include "nn/checkpoint.h"
#include "nn/rounds.h"
#include "train/class_eval.h"
#include "train/task.h"

typedef struct shoal_training_calls {
  void *self;
  void (*round)(void *self, const shoal_result *round);
  /* held_out is NULL without samples for it. The model is saved, or was not long ago. */
  void (*epoch)(void *self, const shoal_result *train, const shoal_result *held_out);
  /* Something that a person should know and that does not end the training. */
  void (*warn)(void *self, const char *text);
  /* A model was at `out` before the first save; now it is in `place`. */
  void (*moved_aside)(void *self, const char *place);
} shoal_training_calls;

typedef struct shoal_training_config {
  shoal_task *task;      /* ready */
  const char *out;       /* "model.safetensors" */
  const char *resumed;   /* the checkpoint's path when going on from one, else NULL */
  bool had_early_stop;   /* the checkpoint's run: only then is a best file beside it its own */
  double save_every_s;   /* within an epoch; 0: only after epochs */
  const char *state_dir; /* where who makes the rounds keeps files on this machine, or NULL */
  uint64_t state_bytes;  /* that these will need */
  shoal_training_calls calls;
  shoal_class_eval *evaluation; /* gets what is held out, class by class, and at the end the test; or NULL */
  const volatile sig_atomic_t *stop;
} shoal_training_config;

typedef struct shoal_training {
  const shoal_training_config *config;
  shoal_train_state *state; /* the trainer's */
  shoal_rounds rounds;      /* who makes them: this process, unless the caller puts in another */
  shoal_text best_path;
  double saved_at;
  uint64_t saved_step;  /* UINT64_MAX: nothing saved yet */
  bool save_failed;     /* the last one, and that was said */
  uint64_t record_step; /* where a cluster's record has led; 0: nowhere */
  double best_loss;
  uint64_t best_epoch;   /* 0: none yet */
  shoal_result held_out; /* of the last epoch; its loss is NAN before the first */
} shoal_training;

/* How the loop ended. */
typedef enum shoal_outcome {
  SHOAL_FINISHED,
  SHOAL_STOPPED_EARLY,
  SHOAL_INTERRUPTED,
  SHOAL_CUT_OFF,  /* by `stop`, while there was nothing that could be saved */
  SHOAL_EXPLODED, /* the loss or the weights are not numbers */
  SHOAL_BROKEN,   /* in a round, for another reason */
} shoal_outcome;

/* Checks that a file can be made at `out`, and that there is room for it: better known now than after an hour. */
shoal_status shoal_training_init(shoal_training *out, const shoal_training_config *config, shoal_error *err);
void shoal_training_release(shoal_training *training);

/* Where it begins: `from` is what `resumed` holds, or NULL for a new training. */
shoal_status shoal_training_begin(shoal_training *training, const shoal_checkpoint *from, shoal_error *err);
/* The state has come from a cluster's record, in which an earlier process of this same training left it: a
 * model at `out` that is not further on is its own, and need not be moved aside; so is its best epoch. */
shoal_status shoal_training_goes_on(shoal_training *training, shoal_error *err);
/* err says what was wrong for the last three. */
shoal_outcome shoal_training_loop(shoal_training *training, shoal_error *err);
/* Has the last state on disk. Waits for room as long as `stop` is not set; then SHOAL_FULL, and err says what
 * there is instead. */
shoal_status shoal_training_save(shoal_training *training, shoal_error *err);
/* Puts the best epoch's state, file and weights, in the place of the last one's. Nobody else may be reading
 * the trainer's state. */
shoal_status shoal_training_keep_best(shoal_training *training, shoal_error *err);

/* Validation samples, or test samples, or NULL. */
const shoal_source *shoal_training_held_out(const shoal_training *training);
/* The results that a finished training ends with. */
typedef struct shoal_training_results {
  shoal_result train, held_out, test;
  bool has_held_out, has_test;
} shoal_training_results;
shoal_training_results shoal_training_evaluate(const shoal_training *training);

/* "model.best.safetensors" for "model.safetensors" and "best". */
void shoal_training_path(shoal_text *out, const char *path, const char *word);

#endif
