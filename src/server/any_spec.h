/* any_spec.h: what a host submits, whatever kind of job it is.
 *
 * "kind" in the JSON says which; without it, it is a training. What all kinds have is asked for here, the
 * rest is in the spec of the kind.
 *
 * Ownership: parse, then release. Threads: none. */
#ifndef SHOAL_SERVER_ANY_SPEC_H
#define SHOAL_SERVER_ANY_SPEC_H

#include "server/agent_spec.h"
#include "server/search_spec.h"
#include "server/spec.h"

typedef enum shoal_job_kind { SHOAL_JOB_TRAIN, SHOAL_JOB_SEARCH, SHOAL_JOB_AGENT } shoal_job_kind;

const char *shoal_job_kind_name(shoal_job_kind kind); /* "train" */
/* What a job's JSON is of; what is no kind is a training, whose spec will say so. */
shoal_job_kind shoal_job_kind_of(const char *json, size_t length);

typedef struct shoal_any_spec {
  shoal_job_kind kind;
  shoal_spec train; /* or */
  shoal_search_spec search;
  shoal_agent_spec agent;
} shoal_any_spec;

shoal_status shoal_any_spec_parse(shoal_any_spec *out, const char *json, size_t length,
                                  shoal_spec_fault *fault, shoal_error *err);
void shoal_any_spec_release(shoal_any_spec *spec);
/* All fields, into an object that is open. */
void shoal_any_spec_write(const shoal_any_spec *spec, shoal_json *json);

const char *shoal_any_spec_name(const shoal_any_spec *spec);
const char *shoal_any_spec_data(const shoal_any_spec *spec); /* "" where it needs none */
bool shoal_any_spec_is_private(const shoal_any_spec *spec);

#endif
