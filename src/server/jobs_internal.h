/* jobs_internal.h: what jobs.c, jobs_json.c and the files of the kinds of jobs share. */
#ifndef SHOAL_SERVER_JOBS_INTERNAL_H
#define SHOAL_SERVER_JOBS_INTERNAL_H

#include <cjson/cJSON.h>

#include "server/jobs.h"

enum { SHOAL_POINTS_AT_ONCE = 256 };

struct shoal_jobs {
  shoal_jobs_config config;
  shoal_secret secret; /* of this folder of jobs: standings' numbers and the tickets of units come from it */
  shoal_standings *standings;
  struct shoal_agent_audit *audit;
  shoal_open_job *first;
  shoal_point points[SHOAL_POINTS_AT_ONCE];
  double next_look;
  bool closing;
};

/* What a kind of job does in its own way; jobs_train.c, jobs_search.c and jobs_agent.c. */
typedef struct shoal_job_ways {
  /* How far it was, from what the store has of it, until what runs it knows better. */
  void (*recall)(shoal_open_job *job, const cJSON *details);
  shoal_status (*start)(shoal_jobs *jobs, shoal_open_job *job, const char *folder, shoal_error *err);
  bool (*has_begun)(const shoal_open_job *job);
  bool (*is_ready)(const shoal_open_job *job);
  /* These are for jobs that have begun. */
  void (*look)(shoal_jobs *jobs, shoal_open_job *job, double now); /* closes it when it has ended */
  void (*stop)(shoal_open_job *job);                               /* for good, as far as is known */
  void (*end)(shoal_open_job *job);                                /* since the server ends */
  void (*see_off)(shoal_jobs *jobs, shoal_open_job *job);          /* waits for the end, and keeps what was */
  void (*destroy)(shoal_open_job *job);
  /* Of one that is to go on: whether it can (NULL: always), whether there is more to do, and what that
   * changes. */
  shoal_status (*check)(shoal_jobs *jobs, uint64_t id, const shoal_any_spec *spec, shoal_error *err);
  bool (*has_more)(const shoal_job_more *more);
  const char *wants; /* what has_more looks for, for people */
  shoal_status (*add_more)(shoal_any_spec *spec, const shoal_job_more *more, const shoal_job_row *row,
                           shoal_error *err);
  void (*pulse)(const shoal_open_job *job, shoal_job_pulse *out);
  /* How far it has come, into an object. */
  void (*write)(const shoal_open_job *job, bool with_model, shoal_json *json);
} shoal_job_ways;

extern const shoal_job_ways shoal_train_ways, shoal_search_ways, shoal_agent_ways;
const shoal_job_ways *shoal_job_ways_of(shoal_job_kind kind);

/* A number in what was stored of a job; 0, or NAN, where there is none. */
uint64_t shoal_jobs_count_in(const cJSON *json, const char *key);
double shoal_jobs_real_in(const cJSON *json, const char *key);
/* How far an open job has come, into an object: what the store keeps of it. */
void shoal_jobs_write_details(const shoal_open_job *job, bool with_model, shoal_json *json);

/* ---- of jobs.c, for the kinds ---- */

void shoal_jobs_store_details(shoal_jobs *jobs, shoal_open_job *job);
void shoal_jobs_add_line(shoal_jobs *jobs, shoal_open_job *job, double time, const char *text);
/* It goes on, with so many who work for it; changed: watchers want to know. */
void shoal_jobs_goes_on(shoal_jobs *jobs, shoal_open_job *job, uint32_t workers, bool changed, double now);
/* It has ended: a last line for its log, its state, and it is open no more. */
void shoal_jobs_conclude(shoal_jobs *jobs, shoal_open_job *job, shoal_job_state state, const char *line,
                         const char *reason);
void shoal_jobs_set_state(shoal_jobs *jobs, shoal_open_job *job, shoal_job_state state, const char *reason);
/* All that runs is told of somebody's standing. */
void shoal_jobs_teach(shoal_jobs *jobs, const shoal_standing *standing);
shoal_status shoal_jobs_folder_of(const shoal_jobs *jobs, uint64_t id, shoal_text *out, shoal_error *err);
/* Who checks what is played; by shoal_jobs_open. */
shoal_status shoal_jobs_open_audit(shoal_jobs *jobs, shoal_error *err);
/* For what runs: from any thread; self is the jobs. */
void shoal_jobs_wake(void *self);
/* SHOAL_CONFLICT: the data set is gone. */
shoal_status shoal_jobs_no_data(uint64_t id, const char *data, shoal_error *err);
/* Room for standings of workers, for the rows of a job. */
enum { SHOAL_JOB_PEERS_MAX = SHOAL_SPEC_WORKERS_MAX + 8, SHOAL_JOB_SUMS_MAX = SHOAL_SPEC_WORKERS_MAX + 24 };

#endif
