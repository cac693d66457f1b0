/* engine.h: the step engine: samples and weights go in, a gradient comes out, and new weights follow from it.
 *
 * Whatever computes with a network does it here: the trainer (trainer.h), the networks of agents (agent/brain.h), those
 * of searches (search/forward.h) and the ranks of MPI (cluster/ranks.h).
 *
 *   pass    A stretch of samples is cut into shards. Crews take shards and work them off tile by tile: fetch, forward,
 *           loss or judge, backward. A crew is one thread or, where there are more threads than shards, a few that
 *           share the work inside a shard (exec.h).
 *   apply   The shards' gradients are added in the order of tree.h and cut to a norm, and the optimiser moves the
 *           weights. A worker or a rank does that for some runs of the flat vector only (optimizer.h).
 *
 * How many threads there are does not change a bit. After create nothing is allocated, except what users take.
 *
 * Weights, gradients, the optimiser's vectors and carried state are memory of the engine's device (device/device.h);
 * shoal_engine_take gives such memory. Sources and judges work on the host, and the engine copies where that is not the
 * same.
 *
 * Ownership: create, then destroy, which gives back all that was taken. Graph, device and pool are borrowed and outlive the
 * engine. Threads: one caller; the threads inside are the engine's own or the pool's. */
#ifndef SHOAL_NN_ENGINE_H
#define SHOAL_NN_ENGINE_H

#include "base/pool.h"
#include "nn/optimizer.h"
#include "nn/plan.h"
#include "nn/source.h"
#include "nn/tree.h"
#include "nn/used_rows.h"

typedef struct shoal_engine shoal_engine;

typedef struct shoal_engine_config {
  const shoal_graph *graph;
  const shoal_device *device; /* NULL: the processor */
  shoal_plan_use use;         /* passes may ask for this and for what is less */
  uint32_t tile, infer_tile;  /* samples at once, at most: for gradients, and without them */
  uint32_t threads;           /* of its own, at most */
  /* About how many a pass has: the number of threads is chosen for it. 0: the caller works alone. */
  uint32_t shards;
  shoal_pool *pool;           /* in place of threads of its own: each thread of the pool is a crew. Or NULL */
  const float *class_weights; /* of the host, one a class, or NULL */
  bool times;                 /* keep what shoal_engine_times tells */
} shoal_engine_config;

shoal_status shoal_engine_create(shoal_engine **out, const shoal_engine_config *config, shoal_error *err);
void shoal_engine_destroy(shoal_engine *engine);

/* So many floats of the device for the engine's lifetime, with anything or with zeros in them. Returns NULL when memory is
 * short. All later calls return NULL then, so a caller may take everything and ask has_memory once. */
float *shoal_engine_take(shoal_engine *engine, size_t floats);
float *shoal_engine_take_zeros(shoal_engine *engine, size_t floats);
/* The host's copy of such memory, which place and gather bring up to date: the memory itself where it is the host's. */
float *shoal_engine_mirror(shoal_engine *engine, float *of, size_t floats);
void shoal_engine_place(const shoal_engine *engine, float *to, const float *from, size_t floats);
void shoal_engine_gather(const shoal_engine *engine, float *to, const float *from, size_t floats);
void shoal_engine_zero(const shoal_engine *engine, float *memory, size_t floats);
bool shoal_engine_has_memory(const shoal_engine *engine);
size_t shoal_engine_memory(const shoal_engine *engine); /* bytes in all */
uint32_t shoal_engine_threads(const shoal_engine *engine);
const shoal_plan *shoal_engine_plan(const shoal_engine *engine, shoal_plan_use use);

/* ---- pass ---- */

/* A tile, for judges and watchers. Pointers are the host's; values are steps x n x features. */
typedef struct shoal_tile {
  uint32_t shard, crew;
  uint32_t first, n;           /* samples of the pass */
  const float *outputs;        /* for a judge: of the last node, without the output's activation */
  float *gradient;             /* of these, for a judge to write, maybe over the outputs */
  const float *input_gradient; /* for a watcher of a pass that has it */
} shoal_tile;

typedef void (*shoal_tile_task)(void *self, const shoal_tile *tile);

typedef struct shoal_pass {
  shoal_plan_use use;
  const shoal_source *source;
  uint64_t epoch, first;              /* the first sample's position in the source */
  uint32_t n;                         /* samples in all: gradients are means over them */
  uint32_t shards;                    /* which are cut into so many, */
  uint32_t first_shard, shards_count; /* of which these are computed */
  const float *weights;
  float *const *gradients;      /* one a computed shard, overwritten; NULL without training */
  shoal_used_rows *const *rows; /* of each of these, kept from pass to pass; or NULL */
  bool input_only;  /* only the input's gradient is wanted: what is in `gradients` is of no use afterwards */
  shoal_sums *sums; /* of the loss, one a computed shard, overwritten; NULL: there are no answers */
  float *out;       /* gets the outputs with their activation, steps x n x features; or NULL */
  void *self;
  /* Writes the outputs' gradient in place of the loss, or NULL. Called from several threads. */
  shoal_tile_task judge;
  shoal_tile_task watch; /* called at the end of each tile, from several threads, or NULL */
  float *carry; /* recurrent state of `carry_rows` streams, as many as samples at least; NULL: from zeros, */
  uint32_t carry_rows;
  const float *state; /* or from these, packed, on the host, a row a sample, */
  float *state_after; /* and where they are left, or NULL */
} shoal_pass;

void shoal_engine_pass(shoal_engine *engine, const shoal_pass *pass);
/* The sample at which shard `shard` <= shards of n samples begins. Images are cut at whole vectors of samples. */
uint32_t shoal_engine_shard_start(const shoal_graph *graph, uint32_t n, uint32_t shards, uint32_t shard);

/* ---- apply ---- */

/* The squares of the gradients of the graph's runs, of the host, which apply writes with `clip`. */
double *shoal_engine_squares(const shoal_engine *engine);

/* Adds gradients in the order of tree.h, for some runs: one a part of the round. A part is NULL where an earlier one
 * includes it already; then total is parts[0]. `copy`, unless NULL, gets the sum as well, for other cores to read. */
typedef struct shoal_addends {
  uint32_t first_run, runs_count;
  float *const *parts;
  uint32_t parts_count;
  float *total, *copy;
  shoal_used_rows *const
      *rows; /* of the parts, as the last pass left them; for apply only, without `copy`; or NULL */
  shoal_used_rows *total_rows; /* of the sum, kept from round to round; with a single part, that part's set */
} shoal_addends;
void shoal_engine_add(shoal_engine *engine, const shoal_addends *addends);

typedef struct shoal_apply {
  shoal_addends addends; /* `copy` gets the new weights */
  shoal_update update;
  float clip;       /* the longest that the gradient may be; 0: as it is */
  bool finite_only; /* SHOAL_INVALID, with nothing changed, where the gradient is not finite; needs `clip` */
  /* Between the squares of these runs and the update: all ranks tell each other theirs. NULL: these runs are all. */
  shoal_status (*agree)(void *self, shoal_error *err);
  void *self;
  float *weights, *slot1, *slot2;
} shoal_apply;
shoal_status shoal_engine_apply(shoal_engine *engine, const shoal_apply *apply, shoal_error *err);

/* ---- times ---- */

/* What threads spend their time on in training passes and in apply. */
typedef enum shoal_work {
  SHOAL_WORK_CLEAR, /* the shards' gradients */
  SHOAL_WORK_FETCH,
  SHOAL_WORK_FORWARD,
  SHOAL_WORK_LOSS,
  SHOAL_WORK_BACKWARD,
  SHOAL_WORK_SUM, /* of them, and its norm for clipping */
  SHOAL_WORK_UPDATE,
} shoal_work;

typedef struct shoal_work_time {
  shoal_work work;
  uint32_t node;  /* FORWARD and BACKWARD: of the graph */
  double seconds; /* summed over threads */
} shoal_work_time;

/* How long the work took since create or the last reset, with config.times. Writes a row for each node and
 * direction, and one for each other kind of work, in the order of a round, and returns how many there are; rows may
 * be NULL. */
uint32_t shoal_engine_times(const shoal_engine *engine, shoal_work_time *rows);
void shoal_engine_times_reset(shoal_engine *engine);

#endif
