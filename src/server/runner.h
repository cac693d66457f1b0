/* runner.h: a job that runs in the server: its chief and parameter server as threads, and the loop.
 *
 * Workers reach them through the server, which passes messages on to the addresses "#:PORT" (the chief) and
 * "#:PORT+1" (the parameter server). What is kept of a job lies in its folder: model.safetensors, what is
 * known of every class of a classifier after its newest epoch (evaluation.json), the events for TensorBoard, and
 * records from which a server that was killed continues.
 *
 * Ownership: start, wait, then destroy; the spec is borrowed until then, texts are copied. Threads: one inside runs the
 * training; all calls are for one other thread. `changed` is called from inside, whenever there is something to look at. */
#ifndef SHOAL_SERVER_RUNNER_H
#define SHOAL_SERVER_RUNNER_H

#include "data/dataset.h"
#include "proto/chief.h"
#include "server/spec.h"
#include "store/store.h"
#include "train/training.h"

typedef struct shoal_runner shoal_runner;

typedef struct shoal_runner_config {
  uint64_t id;
  const shoal_spec *spec;
  const char *folder;              /* of the job; exists */
  const char *data;                /* as --data would have it, on this machine */
  const char *data_dir;            /* where named sets are; NULL: the usual place */
  uint32_t threads;                /* to evaluate with */
  uint16_t port;                   /* "#:port" and the next one */
  const shoal_standing *standings; /* that are known; copied */
  uint32_t standings_count;
  void *self;
  void (*changed)(void *self); /* from the thread inside */
} shoal_runner_config;

typedef enum shoal_runner_phase {
  SHOAL_RUNNER_PREPARING, /* reads the data */
  SHOAL_RUNNER_OPEN,      /* workers may come */
  SHOAL_RUNNER_ENDED,     /* shoal_runner_wait does not wait any more */
} shoal_runner_phase;

/* How far a job is. Numbers that are not known are NAN or 0. */
typedef struct shoal_progress_view {
  uint64_t epoch, round, step, steps; /* steps: all that there will be */
  double loss, metric;                /* the mean of the last rounds */
  double held_out_loss, held_out_metric;
  double samples_per_s, eta_s;
  const char *metric_name; /* "accuracy" */
  const char *held_out;    /* "valid", "test" or NULL */
} shoal_progress_view;

typedef struct shoal_runner_view {
  shoal_runner_phase phase;
  shoal_outcome outcome; /* once it ended */
  char error[SHOAL_ERROR_TEXT_MAX];
  bool finished; /* the last outcome was saved: nothing is left to do */
  uint64_t weights, samples, rounds;
  bool audited;                     /* units are computed again, to see who lies */
  uint64_t units, checks, rejected; /* guarded: shoal_chief_audits */
  double part_samples;              /* of what the chief counts as done, on average */
  uint64_t memory_bytes;            /* about what a worker needs */
  shoal_progress_view progress;
  char sha256[SHOAL_SHA256_HEX]; /* of the weights at the end */
} shoal_runner_view;

/* Whether a training fits its data (`data` and `data_dir` as in the config), as one that is started finds out,
 * in the same words. Reads the data: may take seconds. The field is "" where none is at fault. */
shoal_status shoal_runner_try(const shoal_spec *spec, const char *data, const char *data_dir,
                              shoal_spec_fault *fault, shoal_error *err);
shoal_status shoal_runner_start(shoal_runner **out, const shoal_runner_config *config, shoal_error *err);
/* Asks for the end, in order, with everything saved. */
void shoal_runner_stop(shoal_runner *runner);
/* After stop: does not wait for a round to close. A job that is not saved continues from its last safe version. */
void shoal_runner_abandon(shoal_runner *runner);
/* Waits for the end. What there is to take can still be taken. */
void shoal_runner_wait(shoal_runner *runner);
void shoal_runner_destroy(shoal_runner *runner); /* after wait */

void shoal_runner_look(shoal_runner *runner, shoal_runner_view *out);
/* New points of the curves, and lines of the log, since the last call. A point at a lower step than the one before
 * says that the training went back there. */
size_t shoal_runner_take_points(shoal_runner *runner, shoal_point *out, size_t max);
/* False: none. *text is the caller's. */
bool shoal_runner_take_note(shoal_runner *runner, double *time, char **text);
/* What the chief of a guarded job has learnt of somebody. */
typedef struct shoal_runner_lesson {
  shoal_standing standing;
  char name[SHOAL_NAME_MAX];
  char why[96]; /* of a ban, else "" */
} shoal_runner_lesson;
/* The next one; false: none. */
bool shoal_runner_take_lesson(shoal_runner *runner, shoal_runner_lesson *out);
/* And what was learnt elsewhere. */
void shoal_runner_teach(shoal_runner *runner, const shoal_standing *standing);
uint32_t shoal_runner_peers(shoal_runner *runner, shoal_chief_peer *out, uint32_t max);

/* What workers of a name have done for this runner, whether they are still here or not. */
typedef struct shoal_worker_sum {
  char name[SHOAL_NAME_MAX];
  uint64_t parts, units; /* units: the leases that the parts came in */
  double seconds;
} shoal_worker_sum;
/* Each name once; also after the end. Returns how many were written. */
uint32_t shoal_runner_sums(shoal_runner *runner, shoal_worker_sum *out, uint32_t max);

#endif
