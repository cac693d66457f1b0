/* policy.h: from what is seen to what is done: a network, how its outputs become an action, and how
 * observations are scaled before it sees them.
 *
 * The part of a learner that actors have. A version of it travels as bytes (shoal_policy_write), the same
 * everywhere, with all that acting needs; who reads them trusts nothing in them.
 *
 * Actions are drawn from numbers that are a function of the key, the step and the row, so that a rollout is a
 * function of its unit.
 *
 * Ownership: create, then destroy. Threads: one at a time. */
#ifndef SHOAL_AGENT_POLICY_H
#define SHOAL_AGENT_POLICY_H

#include "agent/brain.h"
#include "agent/env.h"
#include "base/random.h"
#include "base/text.h"

typedef enum shoal_head {
  SHOAL_HEAD_CATEGORICAL, /* an output for each choice: logits */
  SHOAL_HEAD_GREEDY,   /* values of choices; a random one with probability epsilon, kept for `hold` steps */
  SHOAL_HEAD_GAUSSIAN, /* means; deviations are parameters of their own, at the end of the weights */
  SHOAL_HEAD_SQUASHED, /* all means, then all logs of deviations; tanh, then scaled to the action's bounds */
} shoal_head;

/* Logs of deviations are cut to these bounds before they are used, under GAUSSIAN and SQUASHED. */
#define SHOAL_LOG_DEVIATION_MIN (-20.0f)
#define SHOAL_LOG_DEVIATION_MAX 2.0f
/* And scaled observations to this, up and down. */
#define SHOAL_SEEN_MAX 10.0f

typedef struct shoal_policy_spec {
  const shoal_env_kind *kind;
  shoal_head head;
  bool duelling;    /* GREEDY: outputs are advantages and, last, a value */
  const char *body; /* see brain.h; copied */
} shoal_policy_spec;

/* What changes from version to version. */
typedef struct shoal_policy_state {
  uint64_t version;
  float epsilon; /* GREEDY */
  uint32_t hold; /* steps that a random choice (GREEDY) or noise (GAUSSIAN, SQUASHED) is kept; 1: anew */
  uint64_t seen; /* observations that the scaling was made from; 0: none, they are taken as they are */
  float *mean, *scale; /* a number of the observation each; x becomes (x - mean) * scale, cut to +-10 */
  float *weights;      /* the network's, then GAUSSIAN's logs of deviations */
  size_t weights_count;
} shoal_policy_state;

enum { SHOAL_HOLD_MAX = 1 << 20 };

typedef struct shoal_policy shoal_policy;

/* Outputs that the network of such a policy has: an action's choices, and so on. */
uint32_t shoal_policy_outputs(const shoal_policy_spec *spec);

/* SHOAL_INVALID: the head does not suit the actions, or the body does not suit the observations. The weights
 * are some network's of seed 0, deviations are 1. */
shoal_status shoal_policy_create(shoal_policy **out, const shoal_policy_spec *spec, shoal_error *err);
void shoal_policy_destroy(shoal_policy *policy);
shoal_policy_state *shoal_policy_state_of(shoal_policy *policy); /* owned; may be written between calls */
const shoal_policy_spec *shoal_policy_spec_of(const shoal_policy *policy);
bool shoal_policy_remembers(const shoal_policy *policy); /* its network is recurrent */
/* Where in its weights each parameter of the network is: names and shapes, for files. */
const struct shoal_graph *shoal_policy_graph(const shoal_policy *policy);
/* A row's memory: first the recurrent state, as brain.h has it, then what is held. */
uint32_t shoal_policy_memory_floats(const shoal_policy *policy);

/* Actions for n rows. memory: n x memory floats, zeros where an episode begins; NULL where there are none.
 * greedy: the most likely, or the mean. log_probs: of the actions as they were drawn, SQUASHED: as they were
 * before they were scaled to the bounds (between -1 and 1); 0 under GREEDY; may be NULL. Whatever the weights
 * are, all of it is finite, and a row's outcome does not depend on the others. */
void shoal_policy_act(shoal_policy *policy, uint32_t n, const float *observations, float *memory,
                      shoal_key key, uint64_t step, bool greedy, float *actions, float *log_probs);

/* Scaled observations, as the network sees them. */
void shoal_policy_scale(const shoal_policy *policy, uint32_t n, const float *observations, float *out);

/* A version as bytes (little-endian, with its own SHA-256 at the end), and back. SHOAL_INVALID: it is not for
 * this spec, or damaged. */
void shoal_policy_write(const shoal_policy *policy, shoal_text *out);
shoal_status shoal_policy_read(shoal_policy *policy, const void *bytes, size_t length, shoal_error *err);

/* What it does when it is greedy, as an ONNX file for others: from "observation" (batch x numbers, as the
 * environment gives them) to "action": a choice each (int64), or batch x numbers. SHOAL_UNSUPPORTED: it is
 * recurrent. */
shoal_status shoal_policy_onnx(const shoal_policy *policy, const char *path, shoal_error *err);

#endif
