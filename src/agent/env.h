/* env.h: what an environment is. A new one is a folder under envs/ with these six functions.
 *
 *   size      `bytes` below: an environment's whole state is so many bytes that may be copied, saved and
 *             sent, unless `release` is set, which says that it owns more than that
 *   reset     begins an episode
 *   step      acts, in many environments at once
 *   observe   what an agent sees of them
 *   draw      a picture of one, for people
 *   release   gives back what a state owns; NULL where it owns nothing
 *
 * One that is very fast may have two more, reset_seen and step_seen, so that nobody reads a state again that
 * was at hand a moment ago.
 *
 * An environment knows nothing of time limits, of seeds, nor of what follows an episode: vector.h does. It
 * draws random numbers in `reset` and `step` from the generator that it is handed, and from nothing else,
 * so an episode is a function of seed and actions. States may come from elsewhere (vector.h, load): step,
 * observe and draw stay within bounds whatever the bytes are. The first reset finds a state that is all
 * zeros.
 *
 * An action is `action_width` floats. Where `choices` is set it is one float, a whole number below
 * that; else each is a real number, which the environment cuts to its own bounds.
 *
 * Ownership: kinds are constants; states belong to the caller. Threads: any, on states of their own. */
#ifndef SHOAL_AGENT_ENV_H
#define SHOAL_AGENT_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/canvas.h"
#include "agent/pcg64.h"
#include "base/status.h"

typedef struct shoal_env_kind {
  const char *name;     /* "CartPole-v1" */
  const char *says;     /* in a line: what is to be done */
  uint32_t observation; /* floats */
  uint32_t choices;     /* of a discrete action; 0: continuous */
  uint32_t action_width;
  float action_low, action_high; /* of a continuous one */
  uint32_t limit;                /* steps, after which an episode is cut off; 0: none */
  double solved; /* a mean return of 100 episodes that counts as solved; NAN: none is stated */
  double pace;   /* pictures a second that look natural */

  size_t bytes;
  void (*reset)(void *state, shoal_pcg64 *random);
  /* `count` states, one after the other; writes each one's reward and whether its episode ended (and not
   * because of time). */
  void (*step)(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
               bool *ended);
  void (*observe)(const void *states, uint32_t count, float *out);
  void (*draw)(const void *state, shoal_canvas *canvas);
  void (*release)(void *state);
  /* Optional, both or none: reset, or step, and what observe says after it. */
  void (*reset_seen)(void *state, shoal_pcg64 *random, float *seen);
  void (*step_seen)(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                    bool *ended, float *seen);

  struct shoal_bridge
      *bridge; /* set where the environment runs elsewhere (bridge.h), and vector.h asks there */
} shoal_env_kind;

/* All kinds that are built in, in the order of a list; NULL ends it. */
extern const shoal_env_kind *const shoal_env_kinds[];
const shoal_env_kind *shoal_env_find(const char *name); /* NULL: there is none */
/* Likewise, with a sentence: SHOAL_NOT_FOUND names what is near, SHOAL_UNSUPPORTED a library that this
 * program was built without. */
shoal_status shoal_env_need(const shoal_env_kind **out, const char *name, shoal_error *err);

/* For those with choices: which one an action is; 0 for what is none. */
static inline uint32_t shoal_env_choice(float action, uint32_t choices) {
  return action > 0 && action < (float)choices ? (uint32_t)action : 0;
}

/* A number cut to [low, high]; what is no number becomes low. */
static inline double shoal_env_cut(double value, double low, double high) {
  return value > high ? high : value >= low ? value : low;
}

#endif
