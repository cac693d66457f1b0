/* fuzz_policy.c: any bytes are refused as a version of a policy, or make one that acts. Once as they are, and
 * once with the right hash behind them, since a fuzzer does not find that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy.h"
#include "base/assert.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { ROWS = 3, HEADS = 4, SPEC_BYTES = 8 + SHOAL_SHA256_BYTES, SEEN = 2, WIDTH = 2 };

static const shoal_env_kind CHOICES = {
    .name = "Fuzz-v0", .observation = SEEN, .choices = 3, .action_width = 1};
static const shoal_env_kind NUMBERS = {
    .name = "Fuzz-v1", .observation = SEEN, .action_width = WIDTH, .action_low = -1, .action_high = 3};

static void act(shoal_policy *policy, const shoal_env_kind *kind) {
  static const float seen[ROWS][SEEN] = {{0, 0}, {1, -2}, {1e30f, -1e30f}};
  float actions[ROWS * WIDTH], log_probs[ROWS];
  float *memory = calloc(ROWS * (size_t)shoal_policy_memory_floats(policy) + 1, sizeof *memory);
  SHOAL_ASSERT(memory != NULL);
  for (uint64_t step = 0; step < 3; step++) {
    shoal_policy_act(policy, ROWS, seen[0], memory, (shoal_key){{1, 2}}, step, step == 2, actions, log_probs);
    for (uint32_t i = 0; i < ROWS * kind->action_width; i++) SHOAL_ASSERT(isfinite(actions[i]));
    for (int i = 0; i < ROWS; i++) SHOAL_ASSERT(isfinite(log_probs[i]));
  }
  free(memory);
}

static void try(shoal_policy *policy, const shoal_env_kind *kind, const void *bytes, size_t length) {
  shoal_error err = {0};
  if (shoal_policy_read(policy, bytes, length, &err) != SHOAL_OK) {
    SHOAL_ASSERT(err.status == SHOAL_INVALID && err.text[0] != 0);
    return;
  }
  act(policy, kind);
  shoal_text again;
  shoal_text_init(&again);
  shoal_policy_write(policy, &again);
  SHOAL_ASSERT(again.length == length && memcmp(again.bytes, bytes, length) == 0);
  shoal_text_release(&again);
}

/* With the first bytes of an honest version, which name the spec, and the hash of it all. */
static void seal(const shoal_policy *policy, const uint8_t *bytes, size_t length, shoal_text *out) {
  uint8_t hash[SHOAL_SHA256_BYTES];
  shoal_text honest;
  shoal_text_init(&honest);
  shoal_policy_write(policy, &honest);
  shoal_text_add(out, honest.bytes, SPEC_BYTES);
  shoal_text_add(out, bytes + SPEC_BYTES, length - SPEC_BYTES);
  shoal_sha256_of(out->bytes, out->length, hash);
  shoal_text_add(out, hash, sizeof hash);
  shoal_text_release(&honest);
}

/* The first byte chooses the head and the body; the rest are the bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  static shoal_policy *policies[2][HEADS]; /* made once, since that takes longer than all the rest */
  if (length < 1) return 0;
  shoal_head head = (shoal_head)(bytes[0] % HEADS);
  int recurrent = bytes[0] >> 7;
  const shoal_env_kind *kind = head <= SHOAL_HEAD_GREEDY ? &CHOICES : &NUMBERS;
  shoal_policy_spec spec = {.kind = kind, .head = head, .body = recurrent ? "gru 3" : "dense 4 tanh"};
  shoal_policy **policy = &policies[recurrent][head];
  if (*policy == NULL) SHOAL_ASSERT(shoal_policy_create(policy, &spec, NULL) == SHOAL_OK);
  try(*policy, kind, bytes + 1, length - 1);
  if (length - 1 < SPEC_BYTES) return 0;
  shoal_text sealed;
  shoal_text_init(&sealed);
  seal(*policy, bytes + 1, length - 1, &sealed);
  try(*policy, kind, sealed.bytes, sealed.length);
  shoal_text_release(&sealed);
  return 0;
}
