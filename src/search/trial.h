/* trial.h: one trial trained from rung to rung: what a worker of a search computes.
 *
 * A brief has all that workers need besides the file: what the columns are, target, parts, space, epochs,
 * seed. It is JSON on its way to them. A bench is the brief put to work on this machine: rows, split, and
 * encoded rows, which trials with the same encoding share.
 *
 * A trial's state (weights, optimiser, the best epoch's weights, curve; for every fold) is one safetensors
 * file. The result of a unit is a pure function of brief, file, values and the state before it.
 *
 * Ownership: open, then close. Threads: shoal_trial_run from many at once, each with a state file of its
 * own. */
#ifndef SHOAL_SEARCH_TRIAL_H
#define SHOAL_SEARCH_TRIAL_H

#include "nn/graph.h"
#include "search/encoder.h"
#include "search/scheduler.h"
#include "search/score.h"

typedef struct shoal_brief {
  shoal_profile profile;
  shoal_target target;
  shoal_split_options split;
  shoal_space space;
  shoal_score_kind metric;
  uint32_t epochs;     /* of a whole training */
  uint32_t patience;   /* epochs without a better score after which a training is over; 0: never */
  uint64_t epoch_rows; /* 0: all; of a long table an epoch is a part */
  uint64_t seed;
} shoal_brief;
void shoal_brief_init(shoal_brief *brief);
void shoal_brief_release(shoal_brief *brief);
void shoal_brief_write(const shoal_brief *brief, shoal_text *out);
shoal_status shoal_brief_read(shoal_brief *out, const char *json, size_t length, shoal_error *err);

/* Into how many parts the held-out rows of a fold are dealt, row by row in turn: part p of fold f is part
 * f * parts + p. Ten in all, or five of scores that cannot be averaged over small parts: all others together must
 * choose nearly as all would, and the more parts the more a choice between equals sways the estimate. */
uint32_t shoal_parts_of_fold(const shoal_table_split *split, shoal_score_kind metric);

typedef struct shoal_bench shoal_bench;
typedef struct shoal_bench_options {
  const shoal_brief *brief;
  const char *path;    /* the CSV file */
  shoal_rows *rows;    /* of that file, read already, taken over also on failure; NULL: it is read here */
  const char *folder;  /* for temporary files; NULL: the usual one */
  uint64_t keep_bytes; /* of encoded rows; 0: a fourth of the memory */
  void (*progress)(void *self, uint64_t bytes, uint64_t of); /* of reading; or NULL */
  void *self;
  const volatile sig_atomic_t *stop;
} shoal_bench_options;
shoal_status shoal_bench_open(shoal_bench **out, const shoal_bench_options *options, shoal_error *err);
void shoal_bench_close(shoal_bench *bench);
const shoal_rows *shoal_bench_rows(const shoal_bench *bench);
const shoal_table_split *shoal_bench_split(const shoal_bench *bench);

enum { SHOAL_CURVE_MAX = 1024 };

typedef struct shoal_curve_point {
  uint32_t epoch;
  double train_loss, score; /* mean over the folds */
} shoal_curve_point;

/* A trial's score on a part of the held-out rows at the epoch that all other parts found best: what an estimate
 * is made from that had no say in choosing (estimate.h). */
typedef struct shoal_trial_part {
  double others; /* the mean score of the other parts at that epoch; NaN: there is none */
  double own;    /* this part's, likewise */
} shoal_trial_part;
enum { SHOAL_PARTS_MAX = SHOAL_FOLDS_MAX };

typedef struct shoal_trial_result {
  bool failed;         /* it exploded: error says how */
  double score;        /* of the metric, the best epoch's so far (mean over the folds) */
  shoal_scores scores; /* all metrics, of that epoch */
  uint32_t best_epoch, epochs;
  bool over;            /* by patience: more epochs change nothing */
  uint64_t weights;     /* of one network */
  double seconds;       /* of this unit; no part of what must agree */
  uint32_t parts_count; /* 0: of an older Shoal */
  shoal_trial_part parts[SHOAL_PARTS_MAX];
  uint32_t curve_count;
  shoal_curve_point curve[SHOAL_CURVE_MAX]; /* since the trial's beginning */
  char sha256[SHOAL_SHA256_HEX];            /* of the best weights */
  char error[256];
} shoal_trial_result;
void shoal_trial_result_write(const shoal_trial_result *result, shoal_json *json, const char *key);
shoal_status shoal_trial_result_read(shoal_trial_result *out, const cJSON *json, shoal_error *err);

/* state: the trial's file. With epochs_from > 0 it must be there, with that many epochs, or with more up
 * to epochs_to (a checkpoint of this same unit, from which it continues). Written again at the end, and
 * every `save_every_s` on the way. SHOAL_STOPPED when `stop` is set: the state has been saved. A training
 * that explodes is no error but a result that says so. */
typedef struct shoal_trial_options {
  const shoal_unit *unit;
  const char *state;
  double save_every_s;                                       /* 0: at the end only */
  void (*epoch)(void *self, const shoal_curve_point *point); /* or NULL */
  void (*saved)(void *self);                                 /* or NULL: a checkpoint was written */
  void *self;
  const volatile sig_atomic_t *stop;
} shoal_trial_options;
shoal_status shoal_trial_run(shoal_bench *bench, const shoal_trial_options *options, shoal_trial_result *out,
                             shoal_error *err);

/* How many rows a unit has learned from, those of all folds, each as often as there were epochs. */
uint64_t shoal_trial_samples(const shoal_brief *brief, const shoal_table_split *split, const shoal_unit *unit,
                             const shoal_trial_result *result);

/* The networks of a trial at their best epoch, one for each fold. */
typedef struct shoal_trial_net {
  shoal_encoder *encoder;
  shoal_model *model;
  shoal_graph *graph;
  float *weights; /* aligned to 64 bytes */
} shoal_trial_net;
shoal_status shoal_trial_load(shoal_bench *bench, const shoal_values *values, uint64_t trial,
                              const char *state, shoal_trial_net out[SHOAL_FOLDS_MAX], uint32_t *count,
                              shoal_error *err);
void shoal_trial_net_release(shoal_trial_net *net);
/* Probabilities (rows x classes) or standardised numbers for rows of a list (NULL: all). */
shoal_status shoal_trial_net_predict(const shoal_trial_net *net, const shoal_rows *rows,
                                     const shoal_row_list *list, float *out, shoal_error *err);

#endif
