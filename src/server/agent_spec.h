/* agent_spec.h: what a host submits to be learned: an environment, an algorithm, how long; JSON, checked
 * field by field.
 *
 * {"kind":"agent","env","name","algorithm","seed","seconds","steps","until_solved","exact",
 * "settings":{"rate":"0.001"},"body","private","workers_min","workers_max"}; all but "env" may be left out.
 * Environments are those that are built in: a name can have nothing else run. The JSON that is written is
 * the JSON that is read.
 *
 * Ownership: parse, then release. Threads: none. */
#ifndef SHOAL_SERVER_AGENT_SPEC_H
#define SHOAL_SERVER_AGENT_SPEC_H

#include "agent/learner.h"
#include "server/spec.h"

enum { SHOAL_AGENT_SAID_MAX = 64, SHOAL_AGENT_WORD_MAX = 64, SHOAL_AGENT_SECONDS_MAX = 100000000 };

/* A setting that the host has said, as it is written back. */
typedef struct shoal_agent_said {
  char name[SHOAL_AGENT_WORD_MAX], value[SHOAL_AGENT_WORD_MAX];
} shoal_agent_said;

typedef struct shoal_agent_spec {
  shoal_text name, body; /* body: empty for the usual one */
  const shoal_env_kind *kind;
  shoal_agent_settings settings; /* what is said, and what is usual; the algorithm among them */
  shoal_agent_said *said;
  size_t said_count;
  uint64_t seed;
  double seconds; /* 0: no limit */
  uint64_t steps; /* in all; 0: settings.budget */
  bool until_solved, exact, is_private;
  uint32_t workers_min, workers_max;
} shoal_agent_spec;

shoal_status shoal_agent_spec_parse(shoal_agent_spec *out, const char *json, size_t length,
                                    shoal_spec_fault *fault, shoal_error *err);
void shoal_agent_spec_release(shoal_agent_spec *spec);
/* The fields of the object, into one that is open. */
void shoal_agent_spec_write(const shoal_agent_spec *spec, shoal_json *json);

/* Steps after which the training ends. */
uint64_t shoal_agent_spec_steps(const shoal_agent_spec *spec);
/* What a learner is made of. What is too old to be checked (agent_audit.h) is not learned from. */
shoal_learner_config shoal_agent_spec_learner(const shoal_agent_spec *spec, uint32_t threads);
/* Whether there can be such a training here: sees what it would take, then makes a learner, and leaves nothing
 * behind. */
shoal_status shoal_agent_spec_try(const shoal_agent_spec *spec, shoal_spec_fault *fault, shoal_error *err);
/* Bytes that a rollout of this shape can have at most. */
uint64_t shoal_agent_rollout_bytes_max(const shoal_rollout_shape *shape);

#endif
