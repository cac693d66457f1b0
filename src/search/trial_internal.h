/* trial_internal.h: what bench.c, trial.c, trial_state.c and trial_net.c share. */
#ifndef SHOAL_SEARCH_TRIAL_INTERNAL_H
#define SHOAL_SEARCH_TRIAL_INTERNAL_H

#include "nn/trainer.h"
#include "search/forward.h"
#include "search/trial.h"

/* ---- bench.c ---- */

/* One encoding of one fold's rows, for all trials that want it. */
typedef struct shoal_encoding_entry shoal_encoding_entry;
struct shoal_encoding_entry {
  shoal_encoding_entry *next;
  shoal_encoding_choice choice;
  uint32_t fold;
  uint32_t users;
  bool ready, broken;  /* neither: somebody is at it */
  shoal_error trouble; /* why it is broken */
  uint64_t used_at;    /* a count of uses: the oldest goes first */
  uint64_t bytes;      /* kept */
  shoal_encoder *encoder;
  shoal_encoded *train, *valid;
};

shoal_status shoal_bench_take(shoal_bench *bench, const shoal_encoding_choice *choice, uint32_t fold,
                              shoal_encoding_entry **out, shoal_error *err);
void shoal_bench_give(shoal_bench *bench, shoal_encoding_entry *entry);

const shoal_brief *shoal_bench_brief(const shoal_bench *bench);
/* Of the validation rows of a fold: classes, or numbers in the target's units. */
const int32_t *shoal_bench_labels(const shoal_bench *bench, uint32_t fold);
const double *shoal_bench_right(const shoal_bench *bench, uint32_t fold);
/* The network of a fold as text. */
shoal_status shoal_bench_model(const shoal_bench *bench, const shoal_values *values, uint64_t trial,
                               uint32_t fold, const shoal_encoder *encoder, shoal_model **out,
                               shoal_text *text, shoal_error *err);
uint32_t shoal_bench_seed(const shoal_bench *bench, uint64_t trial, uint32_t fold);

/* ---- trial.c ---- */

typedef struct shoal_trial_fold {
  shoal_encoding_entry *entry;
  shoal_encoded *train; /* in the trial's order */
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *trainer;
  shoal_engine *forward;
  float *class_weights; /* or NULL */
  float *predicted;     /* of the validation rows */
  float *best;          /* weights of the best epoch */
} shoal_trial_fold;

typedef struct shoal_trial_work {
  shoal_bench *bench;
  const shoal_trial_options *options;
  shoal_trial_result *result; /* so far */
  uint32_t folds_count;
  shoal_trial_fold folds[SHOAL_FOLDS_MAX];
  char models_sha256[SHOAL_SHA256_HEX]; /* of the folds' texts */
} shoal_trial_work;

/* ---- trial_state.c ---- */

shoal_status shoal_trial_state_save(const shoal_trial_work *work, shoal_error *err);
/* SHOAL_NOT_FOUND: there is none, or it is another trial's. */
shoal_status shoal_trial_state_load(shoal_trial_work *work, shoal_error *err);
/* The best epoch's weights of every fold, from the state of this trial and these networks. */
shoal_status shoal_trial_state_best(const char *path, uint64_t trial, const char *models_sha256,
                                    shoal_trial_net *nets, uint32_t count, shoal_error *err);

/* ---- trial_net.c ---- */

/* Zeros for the graph's flat vector, aligned; NULL without memory. */
float *shoal_trial_net_reserve(const shoal_graph *graph);

#endif
