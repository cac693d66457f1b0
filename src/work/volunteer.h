/* volunteer.h: a volunteer's connection to a server: registers, is told which job to work for, reports.
 *
 * The server says ASSIGN whenever it wants something else of this machine; the volunteer then leaves what it
 * was doing and begins the other (job_work.h). It steps aside when its owner's rules say so (manners.h), and comes
 * back by itself. A connection that breaks is made again, for ever; meanwhile the work goes on.
 *
 * What happens is told to the caller, who shows it.
 *
 * Ownership: run blocks; everything in the config is borrowed. Threads: one, and the job's. */
#ifndef SHOAL_WORK_VOLUNTEER_H
#define SHOAL_WORK_VOLUNTEER_H

#include <signal.h>

#include "work/job_work.h"
#include "work/manners.h"

typedef enum shoal_work_state {
  SHOAL_WORK_AWAY, /* not connected and without work */
  SHOAL_WORK_IDLE,
  SHOAL_WORK_FETCHING,
  SHOAL_WORK_COMPUTING,
  SHOAL_WORK_PAUSED,
  SHOAL_WORK_STATES,
} shoal_work_state;
const char *shoal_work_state_name(shoal_work_state state);

enum { SHOAL_WORK_TEXT_MAX = 256 };
#define SHOAL_WORK_JOB_OVER "its job is over; waiting for another"

/* What is told, many times a second. */
typedef struct shoal_work_view {
  shoal_work_state state;
  const char *text;       /* why there is no work, or what there is; never NULL */
  bool connected, leaves; /* leaves: it is on its way out, and looks for nothing any more */
  uint64_t job;           /* 0: none */
  const char *job_name, *host;
  uint64_t bytes_done, bytes_all;             /* of the data that comes */
  bool is_here;                               /* nothing comes: this machine has all of it */
  uint64_t from_server, from_peers, to_peers; /* bytes of data, of all jobs so far */
  uint64_t units, samples;                    /* in all */
  double samples_per_s;
} shoal_work_view;

typedef struct shoal_work_config {
  const shoal_link *link;
  const char *queue; /* a broker's URL instead, for queue_volunteer.h; or NULL */
  const char *name;
  uint32_t cores, threads;
  uint64_t memory_bytes;
  double speed;
  uint64_t job;     /* that it chose; 0: any */
  const char *host; /* or NULL */
  shoal_manners_rules rules;
  const char *cache, *data_dir;
  uint64_t cache_bytes_max;
  bool alone, all_data; /* as in job_work.h */
  bool once;            /* ends after the first job */
  const volatile sig_atomic_t *stop;
  void *self;
  void (*shows)(void *self, const shoal_work_view *view, double now);
  void (*notes)(void *self, const char *text); /* something happened */
  void (*left)(void *self);                    /* once, at the end; the process may end right after it */
} shoal_work_config;

/* Until it is told to stop, has done its one job, or the server refuses it for good. */
shoal_status shoal_work_run(const shoal_work_config *config, shoal_error *err);

#endif
