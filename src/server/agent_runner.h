/* agent_runner.h: the training of an agent that runs in the server.
 *
 * A coach (agent/coach.h) learns, scores and saves in threads of its own; actors are whoever asks the routes.
 * What is in the job's folder is enough to go on after a crash: agent.safetensors is all of the learner,
 * model.safetensors the policy alone, checkpoints/STEPS.safetensors earlier ones, curve.jsonl the points of
 * the curves. At the end the policy is there as model.onnx, too, for other runtimes. A thread reads all that
 * and waits for the end, so that the loop never does.
 *
 * Ownership: start, wait, then destroy; the spec is borrowed until then, texts are copied. Threads: all calls
 * from one, but `changed`, which comes from threads inside. */
#ifndef SHOAL_SERVER_AGENT_RUNNER_H
#define SHOAL_SERVER_AGENT_RUNNER_H

#include "agent/coach.h"
#include "server/agent_spec.h"

typedef struct shoal_agent_runner shoal_agent_runner;

typedef enum shoal_agent_phase {
  SHOAL_AGENT_BEGINS, /* its files are read */
  SHOAL_AGENT_OPEN,   /* units can be taken */
  SHOAL_AGENT_ENDED,
} shoal_agent_phase;

/* How far it has come, over all lives of the server. */
typedef struct shoal_agent_view {
  shoal_agent_phase phase;
  char error[SHOAL_ERROR_TEXT_MAX];  /* "" unless it ended with one */
  char remark[SHOAL_ERROR_TEXT_MAX]; /* no room to save; at the end: why there is no model.onnx, or "" */
  uint32_t remarks;                  /* so far */
  bool finished;                     /* to its end, and not because it was stopped */
  uint64_t went_on;                  /* steps that it goes on from in this life of the server; 0: it began */
  uint64_t steps, episodes, version;
  double seconds; /* that count */
  double return_mean, return_deviation, steps_per_second, lag;
  uint64_t refused, lost;        /* rollouts: too old to learn from; too late, or asked for by nobody */
  uint64_t given_again;          /* units whose actor was gone or silent */
  double score, score_deviation; /* NAN: none yet */
  uint64_t score_episodes;       /* that it was taken of; one that begins badly ends before the hundredth */
  bool solved;                   /* by that score */
  bool scored;                   /* it is of this life of the server */
  uint32_t actors, checkpoints;
  uint64_t running; /* units that actors have */
  uint64_t waiting, bytes_in, bytes_out;
} shoal_agent_view;

typedef struct shoal_agent_runner_config {
  const shoal_agent_spec *spec;
  const char *folder;             /* of the job; exists */
  const shoal_agent_view *before; /* what was known of it; copied */
  uint32_t threads;               /* to learn with */
  double lease_s;                 /* of a unit; 0: the usual one */
  void *self;
  void (*changed)(void *self);
} shoal_agent_runner_config;

shoal_status shoal_agent_runner_start(shoal_agent_runner **out, const shoal_agent_runner_config *config,
                                      shoal_error *err);
void shoal_agent_runner_stop(shoal_agent_runner *runner); /* ends soon; all is saved */
void shoal_agent_runner_wait(shoal_agent_runner *runner);
void shoal_agent_runner_destroy(shoal_agent_runner *runner); /* after wait */

void shoal_agent_runner_look(shoal_agent_runner *runner, shoal_agent_view *out);
/* Time without anybody who plays costs no budget. */
void shoal_agent_runner_tick(shoal_agent_runner *runner, bool is_played);
/* Points of the curves since the last call, as lines of JSON; they are in the file by then. False: none. */
bool shoal_agent_runner_take_points(shoal_agent_runner *runner, shoal_text *lines);

/* ---- for actors; SHOAL_CONFLICT: it has not begun yet ---- */

/* As shoal_coach_brief, with the life of now. */
shoal_status shoal_agent_runner_brief(shoal_agent_runner *runner, shoal_text *json, shoal_error *err);
/* Drawn when it was started, from 1 to 2^53: one that goes on from what was saved comes to other units and
 * versions of the same numbers, and what was played for the life before is nothing to it. */
uint64_t shoal_agent_runner_life(const shoal_agent_runner *runner);
/* What the checks are computed with (agent/libm_digest.h): who has another must not play. NULL: they are of no
 * matter here, since nothing is checked. */
const char *shoal_agent_runner_math(const shoal_agent_runner *runner);
/* As shoal_coach_take, for an actor that may hold so many (shoal_coach_bound). */
shoal_status shoal_agent_runner_take(shoal_agent_runner *runner, const char *actor, uint32_t units_max,
                                     uint64_t known, shoal_coach_next *next, shoal_text *unit,
                                     shoal_text *policy, shoal_error *err);
/* What a rollout came to. */
typedef struct shoal_agent_done {
  bool counted;   /* false: late, or nobody asked for it */
  uint64_t steps; /* that were played, if it counts */
  double seconds; /* since its actor was heard of last */
} shoal_agent_done;
/* As shoal_coach_done. */
shoal_status shoal_agent_runner_done(shoal_agent_runner *runner, const char *actor, const void *bytes,
                                     size_t length, shoal_agent_done *out, shoal_error *err);
/* As shoal_coach_refuse. */
shoal_status shoal_agent_runner_refuse(shoal_agent_runner *runner, const char *actor, const void *bytes,
                                       size_t length, shoal_error *err);
/* As shoal_coach_give_up. */
void shoal_agent_runner_give_up(shoal_agent_runner *runner, const char *actor, uint64_t number);
/* As shoal_coach_evidence, and the brief. */
bool shoal_agent_runner_evidence(shoal_agent_runner *runner, const void *bytes, size_t length,
                                 shoal_text *brief, shoal_text *unit, shoal_text *policy);
void shoal_agent_runner_lost(shoal_agent_runner *runner, const char *actor);
void shoal_agent_runner_lied(shoal_agent_runner *runner, const char *actor); /* as shoal_coach_lied */
/* Bytes that a rollout may have; 0: it has not begun yet. */
uint64_t shoal_agent_runner_rollout_max(shoal_agent_runner *runner);

#endif
