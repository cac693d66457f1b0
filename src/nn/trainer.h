/* trainer.h: trains and evaluates on this machine, round by round.
 *
 * A round's batch is cut into V shards; V follows from the batch and the model alone. The engine
 * (engine.h) computes their gradients, adds them up in a fixed order and lets the optimiser step, so
 * any number of threads gives the same bits.
 * After create nothing is allocated.
 *
 * Ownership: model, graph and sources are borrowed and outlive the trainer.
 * Threads: one caller; the threads inside are the trainer's own. */
#ifndef SHOAL_NN_TRAINER_H
#define SHOAL_NN_TRAINER_H

#include "nn/engine.h"

typedef struct shoal_trainer shoal_trainer;

/* Everything that changes while training, and so everything that a checkpoint keeps.
 * The pointers are the host's memory and belong to the trainer; loading a checkpoint writes through them. */
typedef struct shoal_train_state {
  uint64_t epoch;  /* epochs finished */
  uint64_t round;  /* rounds finished in this epoch */
  uint64_t step;   /* rounds finished in all */
  shoal_sums sums; /* over this epoch's rounds so far */
  size_t weights_count;
  float *weights;
  float *slot1, *slot2; /* of the optimiser; NULL where it keeps none */
  size_t carry_count;
  float *carry; /* recurrent state of every stream; NULL without */
} shoal_train_state;

typedef struct shoal_result {
  double loss;     /* mean */
  double accuracy; /* cross-entropy and binary; NaN else */
  double rmse;     /* mean squared, absolute, Huber; NaN else */
  double answers;  /* counted: samples, or the steps of sequences */
  bool finite;     /* false when a loss was NaN or infinite */
} shoal_result;

typedef struct shoal_trainer_config {
  const shoal_graph *graph;
  const shoal_device *device; /* NULL: the processor */
  uint32_t threads;
  uint32_t batch;             /* rows of a round at most */
  uint64_t samples;           /* in a training epoch; 0 to only evaluate and predict */
  const float *class_weights; /* one a class, or NULL; borrowed */
  bool times;                 /* keep what shoal_engine_times tells */
} shoal_trainer_config;

shoal_status shoal_trainer_create(shoal_trainer **out, const shoal_trainer_config *config, shoal_error *err);
void shoal_trainer_destroy(shoal_trainer *trainer);

shoal_train_state *shoal_trainer_state(shoal_trainer *trainer);
shoal_engine *shoal_trainer_engine(const shoal_trainer *trainer);
/* On a device with memory of its own the state is there: place brings what was written to the host's arrays to it, and
 * gather brings it back. Epoch, round, step and sums are up to date without
 * either call. */
void shoal_trainer_place(shoal_trainer *trainer);
void shoal_trainer_gather(shoal_trainer *trainer);
uint64_t shoal_trainer_rounds(const shoal_trainer *trainer); /* in an epoch */
uint32_t shoal_trainer_shards(const shoal_trainer *trainer);
/* The same before there is a trainer. */
uint32_t shoal_trainer_shards_of(const shoal_graph *graph, uint32_t batch);
/* The row at which shard `shard` <= shards of a round with `rows` rows begins. */
uint32_t shoal_trainer_shard_start(const shoal_trainer *trainer, uint32_t rows, uint32_t shard);

/* One round: the next batch of the epoch, gradient, update. At the end of an epoch the
 * position moves on to the next and the running sums are kept until its first round.
 * *out is this round's result. A loss that is not finite fails with SHOAL_INVALID and
 * leaves the weights as they were before the round. */
shoal_status shoal_trainer_round(shoal_trainer *trainer, const shoal_source *source, shoal_result *out,
                                 shoal_error *err);

/* The gradient of the last such round, of the mean loss and before clipping, weights_count floats; NULL before the
 * first. It stays until anything else is computed with gradients. */
const float *shoal_trainer_last_gradient(const shoal_trainer *trainer);

/* A round's work in steps, for training across machines: begin, the gradients of some shards (parts), judge their sums
 * added up over all shards, which fails when the loss is not a number, apply, and end.
 * Parts first .. first + count - 1 are computed at these weights, memory of the device (NULL: the trainer's), and the
 * trainer's recurrent state: each gradient, memory of the device, and sums are what the round would have added up.
 * Nothing but the shards' recurrent state changes. */
void shoal_trainer_begin_round(shoal_trainer *trainer);
void shoal_trainer_parts(shoal_trainer *trainer, const float *weights, const shoal_source *source,
                         uint64_t epoch, uint64_t round, uint32_t first, uint32_t count,
                         float *const *gradients, shoal_sums *sums);
shoal_status shoal_trainer_judge_round(const shoal_trainer *trainer, const shoal_sums *sums,
                                       shoal_result *out, shoal_error *err);
/* What the round's update is; for shoal_engine_apply. */
shoal_apply shoal_trainer_apply(const shoal_trainer *trainer);
void shoal_trainer_end_round(shoal_trainer *trainer, const shoal_sums *sums);

/* Parts first .. first + count - 1 of a round, a node of tree.h, added up, at these weights. The gradient
 * has zeros between parameters; like the weights it is aligned to 64 bytes. On a device with memory of its own the
 * trainer's weights are these afterwards. */
void shoal_trainer_node(shoal_trainer *trainer, const float *weights, const shoal_source *source,
                        uint64_t epoch, uint64_t round, uint32_t first, uint32_t count, float *gradient,
                        shoal_sums *sums);

/* The recurrent state of a shard, for a process that computes its next round elsewhere: the same number
 * of floats for any shard (0 without recurrent state), out of the trainer's state or into it; NULL: zeros. */
size_t shoal_trainer_carry_floats(const shoal_trainer *trainer);
void shoal_trainer_get_carry(const shoal_trainer *trainer, uint32_t shard, float *out);
void shoal_trainer_set_carry(shoal_trainer *trainer, uint32_t shard, const float *carry);

/* A result from sums, wherever they were added up. */
shoal_result shoal_trainer_result(const shoal_trainer *trainer, const shoal_sums *sums);

/* The mean over this epoch's rounds so far. */
shoal_result shoal_trainer_epoch_result(const shoal_trainer *trainer);
/* The rate that the coming round will use. */
float shoal_trainer_rate(const shoal_trainer *trainer);

/* Loss and metric over all of a source, in order (epoch 0), dropout off. */
shoal_result shoal_trainer_evaluate(shoal_trainer *trainer, const shoal_source *source);
/* The same, and `watch->batch` is called after each batch with its outputs in `watch->outputs`, which has room
 * for one batch, laid out as by shoal_trainer_predict. */
typedef struct shoal_trainer_watch {
  void *self;
  float *outputs;
  void (*batch)(void *self, uint64_t first, uint32_t n);
} shoal_trainer_watch;
shoal_result shoal_trainer_evaluate_each(shoal_trainer *trainer, const shoal_source *source,
                                         const shoal_trainer_watch *watch);

/* Outputs for n samples from position `first`, with the output activation applied:
 * n rows (VECTOR), or steps x n rows (SEQUENCE) of output features. n <= batch. With a
 * carrying model the recurrent state is kept from call to call; reset clears it. */
void shoal_trainer_predict(shoal_trainer *trainer, const shoal_source *source, uint64_t first, uint32_t n,
                           float *out);
void shoal_trainer_reset_carry(shoal_trainer *trainer);

#endif
