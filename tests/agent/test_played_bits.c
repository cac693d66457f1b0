/* test_played_bits.c: what is played comes to the same bits on every machine, or to others only where the C
 * library's sines are others (libm_digest.h): then those environments are skipped here, and say so. */
#include <stdio.h>
#include <string.h>

#include "agent/libm_digest.h"
#include "agent/rollout.h"
#include "base/hash.h"
#include "check.h"

enum { ENVS = 3, STEPS = 300 };
static const char MATH[] = "671bc4581569d7f2";

/* Environments that call a library of their own (LunarLander) are left out. */
static const struct {
  const char *env, *digest;
  bool asks_libm;
} known[] = {
    {"Acrobot-v1", "3b5b45e17b139125", true},          {"CartPole-v1", "773c101cdfc818fe", true},
    {"CartPole-v0", "051052130bb94fb2", true},         {"Maze-v0", "31ce8e2e70e5ba9e", false},
    {"MountainCar-v0", "a71e07d0a6baf838", true},      {"MountainCarContinuous-v0", "a3e52103649a3dac", true},
    {"CartPole-NoVelocity", "e79ef3702dcde6c7", true}, {"Pendulum-v1", "793a0085a55bf941", true},
    {"Snake-v0", "b62f3ec9b06aaaab", false},
};

static void play(const shoal_env_kind *kind, char out[SHOAL_SHA256_HEX]) {
  const shoal_policy_spec spec = {.kind = kind,
                                  .head = kind->choices > 0 ? SHOAL_HEAD_CATEGORICAL : SHOAL_HEAD_GAUSSIAN,
                                  .body = "dense 8 tanh"};
  const shoal_play_unit unit = {.seed = 3};
  shoal_actor *actor;
  shoal_rollout *rollout;
  shoal_text bytes = {0};
  shoal_error err;
  assert_int_equal(shoal_actor_create(&actor, &spec, ENVS, STEPS, &err), SHOAL_OK);
  const shoal_rollout_shape shape = {kind, ENVS, STEPS,
                                     shoal_policy_memory_floats(shoal_actor_policy(actor))};
  assert_int_equal(shoal_rollout_create(&rollout, &shape, &err), SHOAL_OK);
  assert_int_equal(shoal_actor_play(actor, &unit, rollout, &err), SHOAL_OK);
  shoal_rollout_write(rollout, &bytes);
  shoal_sha256_hex(bytes.bytes, bytes.length, out);
  shoal_text_release(&bytes);
  shoal_rollout_destroy(rollout);
  shoal_actor_destroy(actor);
}

static void compare(bool asks_libm) {
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    char digest[SHOAL_SHA256_HEX];
    if (known[i].asks_libm != asks_libm) continue;
    play(shoal_env_find(known[i].env), digest);
    digest[16] = 0;
    if (strcmp(digest, known[i].digest) != 0)
      fail_msg("%s: %s, and should be %s", known[i].env, digest, known[i].digest);
  }
}

static void every_environment_that_is_checked_is_here(void **state) {
  (void)state;
  for (int i = 0; shoal_env_kinds[i] != NULL; i++) {
    bool found = shoal_env_kinds[i]->release != NULL;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
      found |= strcmp(known[k].env, shoal_env_kinds[i]->name) == 0;
    if (!found) fail_msg("%s has no digest here", shoal_env_kinds[i]->name);
  }
}

static void without_sines_the_bits_are_the_same_everywhere(void **state) {
  (void)state;
  compare(false);
}

static void with_sines_they_are_the_same_where_these_are(void **state) {
  (void)state;
  char math[SHOAL_LIBM_DIGEST_MAX], again[SHOAL_LIBM_DIGEST_MAX];
  shoal_libm_digest(math);
  shoal_libm_digest(again);
  assert_string_equal(math, again);
  if (strcmp(math, MATH) != 0) {
    print_message(
        "this C library's sines are %s, and not %s: what is played here cannot be checked by who has "
        "those\n",
        math, MATH);
    skip();
  }
  compare(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_environment_that_is_checked_is_here),
      cmocka_unit_test(without_sines_the_bits_are_the_same_everywhere),
      cmocka_unit_test(with_sines_they_are_the_same_where_these_are),
  };
  return RUN_TESTS(tests);
}
