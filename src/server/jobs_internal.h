/* jobs_internal.h: what jobs.c and jobs_json.c share. */
#ifndef SHOAL_SERVER_JOBS_INTERNAL_H
#define SHOAL_SERVER_JOBS_INTERNAL_H

#include <cjson/cJSON.h>

#include "server/jobs.h"

enum { SHOAL_POINTS_AT_ONCE = 256 };

struct shoal_jobs {
  shoal_jobs_config config;
  shoal_standings *standings;
  shoal_open_job *first;
  shoal_point points[SHOAL_POINTS_AT_ONCE];
  double next_look;
  bool closing;
};

/* A whole number in what was stored of a job; 0 where there is none. */
uint64_t shoal_jobs_count_in(const cJSON *json, const char *key);
/* How far an open job has come, into an object: what the store keeps of it. */
void shoal_jobs_write_details(const shoal_open_job *job, bool with_model, shoal_json *json);

#endif
