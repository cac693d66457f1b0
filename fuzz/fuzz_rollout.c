/* fuzz_rollout.c: any bytes as a rollout, as a unit, and as where a stream stands: refused, or taken and then
 * written again as the same bytes, or played. Once as they are and once with the right checksum behind
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rollout.h"
#include "base/assert.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { ENVS = 2, STEPS = 3 };

/* ---- an environment whose state may be anything ---- */

static void reset(void *state, shoal_pcg64 *random) { *(float *)state = (float)shoal_pcg64_double(random); }

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  float *at = states;
  for (uint32_t i = 0; i < count; i++) {
    at[i] += actions[i] - (float)shoal_pcg64_double(&randoms[i]);
    rewards[i] = at[i];
    ended[i] = at[i] > 3;
  }
}

static void observe(const void *states, uint32_t count, float *out) {
  memcpy(out, states, count * sizeof *out);
}

static const shoal_env_kind CHOICES = {.name = "Fuzz-v0",
                                       .observation = 1,
                                       .choices = 3,
                                       .action_width = 1,
                                       .limit = 5,
                                       .bytes = sizeof(float),
                                       .reset = reset,
                                       .step = step,
                                       .observe = observe};
static const shoal_env_kind NUMBERS = {.name = "Fuzz-v1",
                                       .observation = 1,
                                       .action_width = 1,
                                       .action_low = -1,
                                       .action_high = 1,
                                       .limit = 5,
                                       .bytes = sizeof(float),
                                       .reset = reset,
                                       .step = step,
                                       .observe = observe};

/* As if it owned more than its bytes: carried by what it has been through. */
static void release(void *state) { (void)state; }

static const shoal_env_kind OWNS = {.name = "Fuzz-v2",
                                    .observation = 1,
                                    .choices = 3,
                                    .action_width = 1,
                                    .limit = 5,
                                    .bytes = sizeof(float),
                                    .reset = reset,
                                    .step = step,
                                    .observe = observe,
                                    .release = release};

/* ---- what is tried ---- */

static void try_rollout(shoal_rollout *rollout, const void *bytes, size_t length) {
  shoal_error err = {0};
  if (shoal_rollout_read(rollout, bytes, length, &err) != SHOAL_OK) {
    SHOAL_ASSERT(err.status == SHOAL_INVALID && err.text[0] != 0);
    return;
  }
  shoal_text again;
  shoal_text_init(&again);
  shoal_rollout_write(rollout, &again);
  SHOAL_ASSERT(again.length == length && memcmp(again.bytes, bytes, length) == 0);
  SHOAL_ASSERT(rollout->lasts_count <= rollout->episodes_count && rollout->episodes_count <= ENVS * STEPS);
  shoal_text_release(&again);
}

static void try_unit(const void *bytes, size_t length) {
  shoal_play_unit unit = {0};
  shoal_text_init(&unit.state);
  if (shoal_play_unit_read(&unit, bytes, length, NULL) == SHOAL_OK) {
    shoal_text again;
    shoal_text_init(&again);
    shoal_play_unit_write(&unit, &again);
    SHOAL_ASSERT(again.length == length && memcmp(again.bytes, bytes, length) == 0);
    shoal_text_release(&again);
  }
  shoal_text_release(&unit.state);
}

static void try_state(shoal_actor *actor, shoal_rollout *rollout, const void *bytes, size_t length) {
  shoal_play_unit unit = {.number = 1};
  shoal_text_init(&unit.state);
  shoal_text_add(&unit.state, bytes, length);
  shoal_error err = {0};
  if (shoal_actor_play(actor, &unit, rollout, &err) == SHOAL_OK)
    for (int i = 0; i < ENVS * STEPS; i++) SHOAL_ASSERT(isfinite(rollout->actions[i]));
  else
    SHOAL_ASSERT(err.status == SHOAL_INVALID);
  shoal_text_release(&unit.state);
}

static const shoal_policy_spec SPECS[] = {
    {.kind = &CHOICES, .head = SHOAL_HEAD_CATEGORICAL, .body = "dense 2"},
    {.kind = &CHOICES, .head = SHOAL_HEAD_GREEDY, .body = "gru 2"},
    {.kind = &NUMBERS, .head = SHOAL_HEAD_GAUSSIAN, .body = "dense 2"},
    {.kind = &NUMBERS, .head = SHOAL_HEAD_SQUASHED, .body = "gru 2"},
    {.kind = &OWNS, .head = SHOAL_HEAD_CATEGORICAL, .body = "dense 2"},
};
enum { SPECS_COUNT = sizeof SPECS / sizeof SPECS[0] };

/* Made once, since that takes longer than all the rest. */
static shoal_actor *actors[SPECS_COUNT];
static shoal_rollout *rollouts[SPECS_COUNT];

static void make(int which) {
  if (rollouts[which] != NULL) return;
  SHOAL_ASSERT(shoal_actor_create(&actors[which], &SPECS[which], ENVS, STEPS, NULL) == SHOAL_OK);
  uint32_t memory_floats = shoal_policy_memory_floats(shoal_actor_policy(actors[which]));
  shoal_rollout_shape shape = {SPECS[which].kind, ENVS, STEPS, memory_floats};
  SHOAL_ASSERT(shoal_rollout_create(&rollouts[which], &shape, NULL) == SHOAL_OK);
}

/* The first byte chooses the policy; the rest are the bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  if (length < 1) return 0;
  int which = bytes[0] % SPECS_COUNT;
  make(which);
  shoal_text sealed;
  shoal_text_init(&sealed);
  shoal_text_add(&sealed, bytes + 1, length - 1);
  uint32_t crc = shoal_crc32c(0, sealed.bytes, sealed.length);
  shoal_text_add(&sealed, &crc, sizeof crc);
  try_rollout(rollouts[which], bytes + 1, length - 1);
  try_rollout(rollouts[which], sealed.bytes, sealed.length);
  try_unit(bytes + 1, length - 1);
  try_unit(sealed.bytes, sealed.length);
  try_state(actors[which], rollouts[which], bytes + 1, length - 1);
  shoal_text_release(&sealed);
  return 0;
}
