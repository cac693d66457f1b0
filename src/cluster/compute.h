/* compute.h: units of a job, computed on this machine.
 *
 * The model comes from the job; the data is opened here, and must be what the chief has. A unit
 * is a pure function of the job, its numbers, the weights and the recurrent state it starts from.
 * In local mode every unit starts its optimiser and its recurrent state afresh for that reason.
 * In stale and async mode, where results are not exact anyway, a gradient much longer than usual is
 * scaled down: with momentum, and applied late, it would do harm that others then run into.
 *
 * With a store the data comes as it is needed: shoal_compute_wants asks for what a unit needs,
 * shoal_compute_wait waits for it, shoal_compute_expect asks for what the same part of later rounds will
 * need.
 *
 * Ownership: open, then close; the job is borrowed. Threads: one caller. */
#ifndef SHOAL_CLUSTER_COMPUTE_H
#define SHOAL_CLUSTER_COMPUTE_H

#include "cluster/job.h"
#include "proto/worker.h"
#include "train/task.h"

typedef struct shoal_compute {
  const shoal_job *job;
  shoal_model *model;
  shoal_task task;
  double usual_norm; /* of gradients, in stale and async mode; 0 before the first */
} shoal_compute;

/* What is given here goes before what the job says of the data: paths differ between machines. */
typedef struct shoal_compute_options {
  const char *data, *target, *data_dir; /* or NULL */
  uint32_t threads;
  shoal_chunk_store *store;          /* where the data comes to, and then `data` is that store's; or NULL */
  const volatile sig_atomic_t *stop; /* ends waiting for the store in open; or NULL */
} shoal_compute_options;

shoal_status shoal_compute_open(shoal_compute *out, const shoal_job *job,
                                const shoal_compute_options *options, shoal_error *err);
void shoal_compute_close(shoal_compute *compute);

/* Whether the job has such a unit: what comes from outside is asked first. */
bool shoal_compute_has(const shoal_compute *compute, const shoal_work_unit *unit);
/* How many batches it has, or which share of one. */
double shoal_compute_batches(const shoal_compute *compute, const shoal_work_unit *unit);
/* How many samples it has. */
uint64_t shoal_compute_samples(const shoal_compute *compute, const shoal_work_unit *unit);
/* Asks for the data of a unit that the job has; true when it is here. */
bool shoal_compute_wants(const shoal_compute *compute, const shoal_work_unit *unit);
shoal_status shoal_compute_wait(const shoal_compute *compute, const shoal_work_unit *unit,
                                const volatile sig_atomic_t *stop, shoal_error *err);
/* And for what comes after it. */
void shoal_compute_expect(const shoal_compute *compute, const shoal_work_unit *unit);
/* Its result, whose blobs are the caller's. */
void shoal_compute_unit(shoal_compute *compute, const shoal_work_unit *unit, const float *weights,
                        shoal_work_result *out);

#endif
