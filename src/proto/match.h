/* match.h: which worker works for which job.
 *
 * Workers are given to jobs first come, first served: every job, in the order of coming, gets as many as it
 * wants at least, if there are so many for it; then every job gets one after the other up to as many as it
 * wants at most. A worker that chose a job, or a host, goes nowhere else; a private job takes only workers that
 * were invited to it. When a job has fewer than its least, workers of jobs that wait, of later jobs which lack
 * some themselves, and workers that others have beyond theirs, are moved to it, but only if that gives it its
 * least: who works is not moved to where it would wait. A job that cannot begin yet waits, and holds nobody
 * whom another job could use. A worker stays where it is unless there is such a reason, and one call moves it at
 * most once.
 *
 * Where there is a choice, a job gets the fastest of the idle workers (of those who would go nowhere else
 * first) and gives away the slowest of its own. A paused worker counts for nothing.
 *
 * A core without I/O: what happens goes in, moves come out. The same calls in the same order give the same
 * moves. All memory is reserved at the start.
 *
 * Ownership: create, then destroy; names are copied. Threads: one. */
#ifndef SHOAL_PROTO_MATCH_H
#define SHOAL_PROTO_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_match shoal_match;

enum { SHOAL_MATCH_NAME_MAX = 64, SHOAL_MATCH_REASON_MAX = 160 };

typedef struct shoal_match_worker {
  uint64_t id;           /* the caller's, above 0 */
  uint64_t job;          /* the job that it chose, or was invited to, open or not; 0: any */
  bool invited;          /* to that job */
  const char *host;      /* the host that it chose; NULL: any */
  uint64_t memory_bytes; /* that it lends */
  double speed;          /* by which workers are compared; 0: not known */
  bool paused;           /* it cannot work now */
} shoal_match_worker;

typedef struct shoal_match_job {
  uint64_t id; /* above 0 */
  const char *name, *host;
  bool is_private;
  bool begun;            /* it works with fewer than its least, too, and keeps those */
  uint32_t least, most;  /* workers; 1 <= least <= most */
  uint64_t memory_bytes; /* that a worker needs */
} shoal_match_job;

typedef struct shoal_match_config {
  uint32_t workers_max, jobs_max; /* at a time, from 1 */
} shoal_match_config;

shoal_status shoal_match_create(shoal_match **out, const shoal_match_config *config, shoal_error *err);
void shoal_match_destroy(shoal_match *match);

/* A worker or job that is known is changed; one that is new is put behind the others. SHOAL_LIMIT: there are as
 * many as there may be. SHOAL_INVALID: numbers that cannot be. Then nothing has changed. Dropping what is not
 * there does nothing. */
shoal_status shoal_match_put_worker(shoal_match *match, const shoal_match_worker *worker, shoal_error *err);
void shoal_match_drop_worker(shoal_match *match, uint64_t id);
shoal_status shoal_match_put_job(shoal_match *match, const shoal_match_job *job, shoal_error *err);
void shoal_match_drop_job(shoal_match *match, uint64_t id);

/* The next worker that has another job than it was last told of: true, and the job, 0 for none. A new worker
 * has been told of none, so one that finds no job does not come up here. */
bool shoal_match_next(shoal_match *match, uint64_t *worker, uint64_t *job);

uint64_t shoal_match_job_of(const shoal_match *match, uint64_t worker);
uint32_t shoal_match_workers_of(const shoal_match *match, uint64_t job);
/* Why a worker has no job, for people: "no job is open; there will be work when somebody hosts one"; or
 * which it has: "works for job 7 (digits)". Long names are cut. Walks over all jobs. */
void shoal_match_reason(const shoal_match *match, uint64_t worker, char out[SHOAL_MATCH_REASON_MAX]);

#endif
