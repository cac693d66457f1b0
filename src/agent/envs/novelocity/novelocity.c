/* novelocity.c: see novelocity.h. All but what is seen is CartPole-v1's. */
#include "agent/envs/novelocity/novelocity.h"

#include "agent/envs/cartpole/cartpole.h"
#include "base/assert.h"

enum { BYTES = 4 * sizeof(double), ALL = 4, POSITION = 0, ANGLE = 2, BLOCK = 64 };

static void reset(void *state, shoal_pcg64 *random) {
  SHOAL_ASSERT(shoal_env_cartpole_v1.bytes == BYTES && shoal_env_cartpole_v1.observation == ALL);
  shoal_env_cartpole_v1.reset(state, random);
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  shoal_env_cartpole_v1.step(states, count, actions, randoms, rewards, ended);
}

static void observe(const void *states, uint32_t count, float *out) {
  float all[BLOCK * ALL];
  for (uint32_t first = 0; first < count; first += BLOCK) {
    uint32_t n = count - first < BLOCK ? count - first : BLOCK;
    shoal_env_cartpole_v1.observe((const char *)states + (size_t)first * BYTES, n, all);
    for (uint32_t i = 0; i < n; i++) {
      *out++ = all[i * ALL + POSITION];
      *out++ = all[i * ALL + ANGLE];
    }
  }
}

static void draw(const void *state, shoal_canvas *canvas) { shoal_env_cartpole_v1.draw(state, canvas); }

const shoal_env_kind shoal_env_cartpole_no_velocity = {
    .name = "CartPole-NoVelocity",
    .says = "the same, and only positions are seen: it takes memory",
    .observation = 2,
    .choices = 2,
    .action_width = 1,
    .limit = 500,
    .solved = 475,
    .pace = 50,
    .bytes = BYTES,
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};
