/* Rollouts: how a stream is played, what is told of it, and its bytes. */
#include "agent/rollout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "toys.h"

enum { ENVS = 7, STEPS = 12, LIMIT = 9 };

/* ---- a walk along a line: it ends beyond 3, and else after nine steps ---- */

typedef struct walk {
  double x;
  uint32_t steps;
} walk;

static void reset_walk(void *state, shoal_pcg64 *random) {
  *(walk *)state = (walk){.x = shoal_pcg64_uniform(random, -1, 1)};
}

static void step_walk(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                      float *rewards, bool *ended) {
  walk *walks = states;
  for (uint32_t i = 0; i < count; i++) {
    walks[i].x += 0.5 * actions[i] - 0.4 + shoal_pcg64_uniform(&randoms[i], -0.3, 0.3);
    walks[i].steps++;
    rewards[i] = (float)walks[i].x;
    ended[i] = walks[i].x > 3;
  }
}

static void observe_walk(const void *states, uint32_t count, float *out) {
  const walk *walks = states;
  for (uint32_t i = 0; i < count; i++) {
    out[2 * i] = (float)walks[i].x;
    out[2 * i + 1] = (float)walks[i].steps;
  }
}

static void release_walk(void *state) { (void)state; }

static const shoal_env_kind WALK = {.name = "Walk-v0",
                                    .observation = 2,
                                    .choices = 5,
                                    .action_width = 1,
                                    .limit = LIMIT,
                                    .bytes = sizeof(walk),
                                    .reset = reset_walk,
                                    .step = step_walk,
                                    .observe = observe_walk};
/* The same with real numbers; as something that owns more than its bytes; and as what cannot be carried. */
static const shoal_env_kind GLIDE = {.name = "Glide-v0",
                                     .observation = 2,
                                     .action_width = 1,
                                     .action_low = -1,
                                     .action_high = 4,
                                     .limit = LIMIT,
                                     .bytes = sizeof(walk),
                                     .reset = reset_walk,
                                     .step = step_walk,
                                     .observe = observe_walk};
static const shoal_env_kind OWNS = {.name = "Owns-v0",
                                    .observation = 2,
                                    .choices = 5,
                                    .action_width = 1,
                                    .limit = LIMIT,
                                    .bytes = sizeof(walk),
                                    .reset = reset_walk,
                                    .step = step_walk,
                                    .observe = observe_walk,
                                    .release = release_walk};
static const shoal_env_kind STAYS = {.name = "Stays-v0",
                                     .observation = 2,
                                     .choices = 5,
                                     .action_width = 1,
                                     .bytes = sizeof(walk),
                                     .reset = reset_walk,
                                     .step = step_walk,
                                     .observe = observe_walk,
                                     .release = release_walk};

/* ---- actors ---- */

static const struct {
  const shoal_env_kind *kind;
  shoal_head head;
  const char *body;
} SPECS[] = {{&WALK, SHOAL_HEAD_CATEGORICAL, "dense 8 tanh"},
             {&WALK, SHOAL_HEAD_CATEGORICAL, "lstm 6"},
             {&WALK, SHOAL_HEAD_GREEDY, "gru 4"},
             {&GLIDE, SHOAL_HEAD_GAUSSIAN, "lstm 3"},
             {&GLIDE, SHOAL_HEAD_SQUASHED, "dense 8 relu"},
             {&OWNS, SHOAL_HEAD_GREEDY, "gru 4"}};
enum { SPECS_COUNT = sizeof SPECS / sizeof SPECS[0] };

static shoal_actor *make_actor(size_t which, const shoal_env_kind *kind, uint32_t steps) {
  shoal_actor *actor;
  shoal_error err = {0};
  shoal_policy_spec spec = {
      .kind = kind != NULL ? kind : SPECS[which].kind, .head = SPECS[which].head, .body = SPECS[which].body};
  if (shoal_actor_create(&actor, &spec, ENVS, steps, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_policy_state *state = shoal_policy_state_of(shoal_actor_policy(actor));
  state->epsilon = 0.7f;
  state->hold = 4;
  state->version = 21;
  return actor;
}

static shoal_rollout *make_rollout(shoal_actor *actor, const shoal_env_kind *kind, uint32_t steps) {
  shoal_rollout *rollout;
  shoal_rollout_shape shape = {.kind = kind,
                               .envs = ENVS,
                               .steps = steps,
                               .memory_floats = shoal_policy_memory_floats(shoal_actor_policy(actor))};
  assert_int_equal(shoal_rollout_create(&rollout, &shape, NULL), SHOAL_OK);
  return rollout;
}

static shoal_play_unit unit_of(uint64_t number, const shoal_text *state) {
  shoal_play_unit unit = {.number = number, .stream = 5, .version = 21, .seed = 99};
  shoal_text_init(&unit.state);
  if (state != NULL) shoal_text_add(&unit.state, state->bytes, state->length);
  return unit;
}

static void play(shoal_actor *actor, uint64_t number, const shoal_text *state, shoal_rollout *out) {
  shoal_play_unit unit = unit_of(number, state);
  shoal_error err = {0};
  if (shoal_actor_play(actor, &unit, out, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_text_release(&unit.state);
}

static void equal_rows(const float *whole, const float *part, uint32_t first, uint32_t steps,
                       uint32_t width) {
  assert_memory_equal(whole + (size_t)first * ENVS * width, part,
                      (size_t)steps * ENVS * width * sizeof *part);
}

/* ---- playing ---- */

static void a_stream_is_the_same_however_it_is_cut(void **unused) {
  (void)unused;
  for (size_t which = 0; which < SPECS_COUNT; which++) {
    const shoal_env_kind *kind = SPECS[which].kind;
    shoal_actor *long_actor = make_actor(which, NULL, 2 * STEPS), *actor = make_actor(which, NULL, STEPS),
                *stranger = make_actor(which, NULL, STEPS);
    shoal_rollout *whole = make_rollout(long_actor, kind, 2 * STEPS);
    shoal_rollout *first = make_rollout(actor, kind, STEPS), *second = make_rollout(actor, kind, STEPS),
                  *again = make_rollout(actor, kind, STEPS);
    play(long_actor, 3, NULL, whole);
    play(actor, 3, NULL, first);
    assert_true(first->state.length > 0 && first->episodes_count > 0);
    play(stranger, 1000, NULL, again); /* it has been elsewhere */
    play(stranger, 8, &first->state, second);
    play(actor, 8, &first->state, again); /* it stands there */
    assert_int_equal(second->state.length, whole->state.length);
    assert_memory_equal(second->state.bytes, whole->state.bytes, whole->state.length);
    assert_memory_equal(second->state.bytes, again->state.bytes, again->state.length);
    const shoal_rollout *parts[] = {first, second};
    uint32_t episodes = 0, lasts = 0;
    for (uint32_t p = 0; p < 2; p++) {
      equal_rows(whole->observations, parts[p]->observations, p * STEPS, STEPS + 1, 2);
      equal_rows(whole->actions, parts[p]->actions, p * STEPS, STEPS, 1);
      equal_rows(whole->log_probs, parts[p]->log_probs, p * STEPS, STEPS, 1);
      equal_rows(whole->rewards, parts[p]->rewards, p * STEPS, STEPS, 1);
      assert_memory_equal(whole->ends + p * STEPS * ENVS, parts[p]->ends, STEPS * ENVS);
      for (uint32_t i = 0; i < parts[p]->episodes_count; i++, episodes++)
        assert_true(whole->returns[episodes] == parts[p]->returns[i] &&
                    whole->lengths[episodes] == parts[p]->lengths[i]);
      for (uint32_t i = 0; i < parts[p]->lasts_count; i++, lasts++)
        assert_true(whole->last_rows[lasts] == parts[p]->last_rows[i] + p * STEPS * ENVS);
    }
    assert_true(episodes == whole->episodes_count && lasts == whole->lasts_count);
    assert_memory_equal(second->observations, again->observations, (STEPS + 1) * ENVS * 2 * sizeof(float));
    assert_memory_equal(second->memory, again->memory, (size_t)ENVS * second->shape.memory_floats * 4);
    shoal_rollout_destroy(whole);
    shoal_rollout_destroy(first);
    shoal_rollout_destroy(second);
    shoal_rollout_destroy(again);
    shoal_actor_destroy(long_actor);
    shoal_actor_destroy(actor);
    shoal_actor_destroy(stranger);
  }
}

/* Of every row: what follows from it is what the next one says. */
static void a_rollout_tells_what_happened(void **unused) {
  (void)unused;
  shoal_actor *actor = make_actor(2, NULL, 200);
  shoal_rollout *r = make_rollout(actor, &WALK, 200);
  play(actor, 0, NULL, r);
  assert_true(r->number == 0 && r->stream == 5 && r->version == 21);
  double returns[ENVS] = {0};
  uint32_t lengths[ENVS] = {0}, episodes = 0, lasts = 0, terminated = 0;
  for (uint32_t row = 0; row < 200 * ENVS; row++) {
    uint32_t e = row % ENVS;
    const float *seen = r->observations + 2 * (size_t)row, *next = seen + 2 * ENVS;
    assert_true(seen[1] == (float)lengths[e]);
    returns[e] += (double)r->rewards[row];
    lengths[e]++;
    if (r->ends[row] == SHOAL_GOES_ON) {
      assert_true(next[0] == r->rewards[row] && next[1] == (float)lengths[e]);
      continue;
    }
    terminated += r->ends[row] == SHOAL_TERMINATED;
    if (r->ends[row] == SHOAL_TERMINATED)
      assert_true(r->rewards[row] > 3);
    else
      assert_true(lengths[e] == LIMIT && r->rewards[row] <= 3);
    assert_true(next[1] == 0 && fabsf(next[0]) <= 1);
    assert_true(r->lengths[episodes] == lengths[e]);
    assert_true(fabs(r->returns[episodes] - returns[e]) < 1e-5);
    episodes++;
    if (r->ends[row] == SHOAL_TRUNCATED) {
      assert_int_equal(r->last_rows[lasts], row);
      assert_true(r->lasts[2 * lasts] == r->rewards[row] && r->lasts[2 * lasts + 1] == (float)LIMIT);
      lasts++;
    }
    returns[e] = 0;
    lengths[e] = 0;
  }
  assert_true(terminated > 5 && lasts > 5);
  assert_true(episodes == r->episodes_count && lasts == r->lasts_count);
  shoal_rollout_destroy(r);
  shoal_actor_destroy(actor);
}

static void memory_begins_with_the_episode(void **unused) {
  (void)unused;
  shoal_actor *actor = make_actor(1, NULL, 1);
  shoal_rollout *r = make_rollout(actor, &WALK, 1);
  bool begins[ENVS];
  memset(begins, true, sizeof begins);
  uint32_t begun = 0;
  for (uint64_t step = 0; step < 40; step++) {
    shoal_text state = r->state;
    shoal_text_init(&r->state);
    play(actor, step, step > 0 ? &state : NULL, r);
    shoal_text_release(&state);
    for (uint32_t e = 0; e < ENVS; e++) {
      bool zeros = true;
      for (uint32_t i = 0; i < r->shape.memory_floats; i++)
        zeros &= r->memory[(size_t)e * r->shape.memory_floats + i] == 0;
      assert_int_equal(zeros, begins[e]);
      begins[e] = r->ends[e] != SHOAL_GOES_ON;
      begun += begins[e];
    }
  }
  assert_true(begun > 10);
  shoal_rollout_destroy(r);
  shoal_actor_destroy(actor);
}

/* Five choices, nearly alike: a policy that drew from the same number at every step would repeat itself. */
static void every_step_draws_anew(void **unused) {
  (void)unused;
  shoal_actor *actor = make_actor(0, NULL, 200);
  shoal_rollout *r = make_rollout(actor, &WALK, 200);
  uint32_t same = 0;
  play(actor, 0, NULL, r);
  for (uint32_t row = ENVS; row < 200 * ENVS; row++) same += r->actions[row] == r->actions[row - ENVS];
  assert_true(same < 199 * ENVS / 2);
  shoal_rollout_destroy(r);
  shoal_actor_destroy(actor);
}

static void streams_and_seeds_differ(void **unused) {
  (void)unused;
  shoal_actor *actor = make_actor(0, NULL, STEPS);
  shoal_rollout *a = make_rollout(actor, &WALK, STEPS), *b = make_rollout(actor, &WALK, STEPS);
  shoal_play_unit units[] = {unit_of(0, NULL), unit_of(0, NULL), unit_of(0, NULL), unit_of(1, NULL)};
  units[1].stream++;
  units[2].seed++;
  assert_int_equal(shoal_actor_play(actor, &units[0], a, NULL), SHOAL_OK);
  for (int i = 1; i < 4; i++) {
    assert_int_equal(shoal_actor_play(actor, &units[i], b, NULL), SHOAL_OK);
    assert_memory_not_equal(a->observations, b->observations, ENVS * 2 * sizeof(float));
    assert_memory_not_equal(a->actions, b->actions, STEPS * ENVS * sizeof(float));
  }
  assert_int_equal(shoal_actor_play(actor, &units[0], b, NULL), SHOAL_OK);
  assert_memory_equal(a->observations, b->observations, (STEPS + 1) * ENVS * 2 * sizeof(float));
  shoal_rollout_destroy(a);
  shoal_rollout_destroy(b);
  shoal_actor_destroy(actor);
}

static void what_cannot_be_carried_goes_on_where_it_is_and_else_begins_anew(void **unused) {
  (void)unused;
  shoal_actor *long_actor = make_actor(0, &STAYS, 2 * STEPS), *actor = make_actor(0, &STAYS, STEPS),
              *stranger = make_actor(0, &STAYS, STEPS);
  shoal_rollout *whole = make_rollout(long_actor, &STAYS, 2 * STEPS);
  shoal_rollout *a = make_rollout(actor, &STAYS, STEPS), *b = make_rollout(actor, &STAYS, STEPS);
  play(long_actor, 3, NULL, whole);
  play(actor, 3, NULL, a);
  play(actor, 4, &a->state, b);
  equal_rows(whole->observations, b->observations, STEPS, STEPS + 1, 2);
  equal_rows(whole->actions, b->actions, STEPS, STEPS, 1);
  play(stranger, 4, &a->state, b);
  for (uint32_t e = 0; e < ENVS; e++) assert_true(b->observations[2 * e + 1] == 0);
  play(actor, 4, NULL, a);
  assert_memory_equal(a->observations, b->observations, (STEPS + 1) * ENVS * 2 * sizeof(float));
  shoal_rollout_destroy(whole);
  shoal_rollout_destroy(a);
  shoal_rollout_destroy(b);
  shoal_actor_destroy(long_actor);
  shoal_actor_destroy(actor);
  shoal_actor_destroy(stranger);
}

static void states_that_do_not_fit_are_refused(void **unused) {
  (void)unused;
  shoal_actor *actor = make_actor(1, NULL, STEPS), *other = make_actor(0, NULL, STEPS);
  shoal_rollout *r = make_rollout(actor, &WALK, STEPS), *small = make_rollout(other, &WALK, STEPS);
  shoal_error err = {0};
  play(actor, 0, NULL, r);
  shoal_play_unit unit = unit_of(1, &r->state);
  assert_int_equal(shoal_actor_play(other, &unit, small, &err), SHOAL_INVALID);
  size_t whole = unit.state.length;
  for (size_t length = 1; length < whole; length += 3) {
    unit.state.length = length;
    assert_int_equal(shoal_actor_play(actor, &unit, r, &err), SHOAL_INVALID);
  }
  unit.state.length = whole;
  float not_a_number = NAN;
  memcpy(unit.state.bytes + 36, &not_a_number, sizeof not_a_number);
  assert_int_equal(shoal_actor_play(actor, &unit, r, &err), SHOAL_INVALID);
  /* Anything else in the memory and the environments is taken, and played within bounds. */
  shoal_text_release(&unit.state);
  play(actor, 0, NULL, r);
  unit = unit_of(1, &r->state);
  memset(unit.state.bytes + 32, 0x41, 200);
  assert_int_equal(shoal_actor_play(actor, &unit, r, &err), SHOAL_OK);
  shoal_text_release(&unit.state);
  shoal_rollout_destroy(r);
  shoal_rollout_destroy(small);
  shoal_actor_destroy(actor);
  shoal_actor_destroy(other);
}

/* Where a stranger says that a stream stands, before others are to go on from there. */
static void states_of_strangers_are_tried(void **unused) {
  (void)unused;
  enum { RETURNS = 32, LENGTHS = RETURNS + 8 * ENVS, WALKS = LENGTHS + 4 * ENVS + 16 };
  shoal_actor *actor = make_actor(0, NULL, STEPS);
  shoal_rollout *r = make_rollout(actor, &WALK, STEPS);
  shoal_error err = {0};
  shoal_text state = {0};
  play(actor, 0, NULL, r);
  assert_int_equal(shoal_actor_check_state(actor, &state, &err), SHOAL_OK); /* to begin anew */
  assert_int_equal(shoal_actor_check_state(actor, &r->state, &err), SHOAL_OK);
  const double returned = 1e10;
  const uint32_t length = LIMIT;
  const double place = INFINITY;
  const struct {
    size_t at;
    const void *bytes;
    size_t count;
  } wrong[] = {{0, "x", 1},
               {RETURNS, &returned, sizeof returned},
               {LENGTHS, &length, sizeof length},
               {WALKS, &place, sizeof place}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    shoal_text_clear(&state);
    shoal_text_add(&state, r->state.bytes, r->state.length);
    memcpy(state.bytes + wrong[i].at, wrong[i].bytes, wrong[i].count);
    if (shoal_actor_check_state(actor, &state, &err) != SHOAL_INVALID) fail_msg("%zu is taken", i);
  }
  shoal_text_release(&state);
  shoal_rollout_destroy(r);
  shoal_actor_destroy(actor);
}

/* ---- bytes ---- */

static void rollouts_go_there_and_back(void **unused) {
  (void)unused;
  uint32_t lasts = 0;
  for (size_t which = 0; which < SPECS_COUNT; which++) {
    shoal_actor *actor = make_actor(which, NULL, STEPS);
    shoal_rollout *r = make_rollout(actor, SPECS[which].kind, STEPS),
                  *back = make_rollout(actor, SPECS[which].kind, STEPS);
    shoal_text bytes, again;
    shoal_error err = {0};
    shoal_text_init(&bytes);
    shoal_text_init(&again);
    play(actor, 7, NULL, r);
    assert_true(r->episodes_count > 0);
    lasts += r->lasts_count;
    shoal_rollout_write(r, &bytes);
    if (shoal_rollout_read(back, bytes.bytes, bytes.length, &err) != SHOAL_OK) fail_msg("%s", err.text);
    shoal_rollout_write(back, &again);
    assert_int_equal(bytes.length, again.length);
    assert_memory_equal(bytes.bytes, again.bytes, bytes.length);
    assert_true(back->number == 7 && back->version == 21 && back->stream == 5);
    assert_memory_equal(r->actions, back->actions, STEPS * ENVS * sizeof(float));
    assert_memory_equal(r->last_rows, back->last_rows, r->lasts_count * sizeof *r->last_rows);
    assert_memory_equal(r->lasts, back->lasts, r->lasts_count * 2 * sizeof *r->lasts);
    assert_true(back->lasts_count == r->lasts_count && back->episodes_count == r->episodes_count);
    for (size_t i = 0; i < bytes.length; i++) {
      bytes.bytes[i] ^= 0x20;
      assert_int_equal(shoal_rollout_read(back, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
      bytes.bytes[i] ^= 0x20;
      assert_int_equal(shoal_rollout_read(back, bytes.bytes, i, &err), SHOAL_INVALID);
    }
    assert_int_equal(back->number, 7);
    shoal_text_release(&bytes);
    shoal_text_release(&again);
    shoal_rollout_destroy(r);
    shoal_rollout_destroy(back);
    shoal_actor_destroy(actor);
  }
  assert_true(lasts > 0);
}

/* Bytes with a good checksum that say what cannot be. */
static void what_cannot_be_is_refused(void **unused) {
  (void)unused;
  shoal_actor *actor = make_actor(0, NULL, STEPS);
  shoal_rollout *r = make_rollout(actor, &WALK, STEPS), *back = make_rollout(actor, &WALK, STEPS);
  shoal_text bytes;
  shoal_error err = {0};
  shoal_text_init(&bytes);
  play(actor, 7, NULL, r);
  enum { ROWS = STEPS * ENVS, HEAD = 56 };
  static const struct {
    size_t at;
    uint32_t word;
    const char *says;
  } wrong[] = {
      {28, ENVS + 1, "shape"},
      {32, STEPS + 1, "shape"},
      {36, 1, "shape"},
      {40, 3, "shape"},
      {44, 4, "shape"},
      {48, 2, "shape"},
      {52, 0xffffffff, "too large"},
      {52, 1000, "length"},
      {HEAD, 0x03030303, "end"},
      {HEAD, 0x00ffffff, "end"},
      {HEAD + ROWS, 0x05050505, "action"},
      {HEAD + 2 * ROWS, 0x7fc00000, "observation"},
      {HEAD + 2 * ROWS + (ROWS + ENVS) * 8, 0x7f800000, "probability"},
      {HEAD + 2 * ROWS + (ROWS + ENVS) * 8 + ROWS * 4, 0xff800000, "reward"},
      /* Finite, but a sum of these is not: 1e10 and 3e38. */
      {HEAD + 2 * ROWS, 0x501502f9, "observation"},
      {HEAD + 2 * ROWS + (ROWS + ENVS) * 8, 0xff61b1e6, "probability"},
      {HEAD + 2 * ROWS + (ROWS + ENVS) * 8 + ROWS * 4, 0x7f61b1e6, "reward"},
      {HEAD + 2 * ROWS + (ROWS + ENVS) * 8 + ROWS * 4, 0x501502f9, "reward"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    shoal_text_clear(&bytes);
    shoal_rollout_write(r, &bytes);
    memcpy(bytes.bytes + wrong[i].at, &wrong[i].word, sizeof wrong[i].word);
    uint32_t crc = shoal_crc32c(0, bytes.bytes, bytes.length - 4);
    memcpy(bytes.bytes + bytes.length - 4, &crc, sizeof crc);
    assert_int_equal(shoal_rollout_read(back, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
    if (strstr(err.text, wrong[i].says) == NULL)
      fail_msg("%zu: '%s' has no '%s'", i, err.text, wrong[i].says);
  }
  static const uint32_t lengths[] = {0, LIMIT + 1};
  for (int i = 0; i < 2; i++) {
    uint32_t kept = r->lengths[0];
    r->lengths[0] = lengths[i];
    shoal_text_clear(&bytes);
    shoal_rollout_write(r, &bytes);
    assert_int_equal(shoal_rollout_read(back, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
    r->lengths[0] = kept;
  }
  shoal_text_release(&bytes);
  shoal_rollout_destroy(r);
  shoal_rollout_destroy(back);
  shoal_actor_destroy(actor);
}

static void units_go_there_and_back(void **unused) {
  (void)unused;
  shoal_text state, bytes;
  shoal_text_init(&state);
  shoal_text_init(&bytes);
  shoal_text_add(&state, "where\0it stands", 15);
  shoal_error err = {0};
  for (int with = 0; with < 2; with++) {
    shoal_play_unit unit = unit_of(12, with ? &state : NULL), back = unit_of(0, &state);
    shoal_text_clear(&bytes);
    shoal_play_unit_write(&unit, &bytes);
    for (size_t i = 0; i < bytes.length; i++) {
      bytes.bytes[i] ^= 0x04;
      assert_int_equal(shoal_play_unit_read(&back, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
      bytes.bytes[i] ^= 0x04;
      assert_int_equal(shoal_play_unit_read(&back, bytes.bytes, i, &err), SHOAL_INVALID);
    }
    assert_true(back.number == 0 && back.state.length == 15);
    assert_int_equal(shoal_play_unit_read(&back, bytes.bytes, bytes.length, &err), SHOAL_OK);
    assert_true(back.number == 12 && back.stream == 5 && back.version == 21 && back.seed == 99);
    assert_int_equal(back.state.length, unit.state.length);
    if (with) assert_memory_equal(back.state.bytes, unit.state.bytes, unit.state.length);
    shoal_text_release(&unit.state);
    shoal_text_release(&back.state);
  }
  shoal_text_release(&state);
  shoal_text_release(&bytes);
}

static void rollouts_that_are_too_large_are_refused(void **unused) {
  (void)unused;
  static const uint32_t sizes[][3] = {{0, 5, 0}, {5, 0, 0}, {1 << 16, 1 << 16, 0}, {1 << 20, 1, 1 << 20}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    shoal_rollout *rollout;
    shoal_error err = {0};
    shoal_rollout_shape shape = {
        .kind = &WALK, .envs = sizes[i][0], .steps = sizes[i][1], .memory_floats = sizes[i][2]};
    assert_int_equal(shoal_rollout_create(&rollout, &shape, &err), SHOAL_LIMIT);
    assert_null(rollout);
  }
}

/* ---- evaluation ---- */

/* Each step's reward is where it stands; the policy always takes the same choice. */
static void an_evaluation_is_the_mean_over_whole_episodes(void **unused) {
  (void)unused;
  shoal_policy *policy;
  shoal_error err = {0};
  shoal_policy_spec spec = {.kind = &WALK, .head = SHOAL_HEAD_GREEDY, .body = "gru 3"};
  assert_int_equal(shoal_policy_create(&policy, &spec, &err), SHOAL_OK);
  static const uint32_t counts[] = {1, 30, 100, 250};
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
    shoal_evaluation evaluation, again;
    assert_int_equal(shoal_evaluate_policy(policy, &WALK, counts[c], 17, NULL, &evaluation, &err), SHOAL_OK);
    assert_int_equal(shoal_evaluate_policy(policy, &WALK, counts[c], 17, NULL, &again, &err), SHOAL_OK);
    assert_true(evaluation.mean == again.mean && evaluation.deviation == again.deviation);
    /* By hand, an environment after the other. */
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY, steps = 0;
    uint32_t envs = counts[c] < 100 ? counts[c] : 100;
    for (uint32_t e = 0; e < envs; e++) {
      shoal_vector *vector;
      assert_int_equal(shoal_vector_create(&vector, &WALK, 1, &err), SHOAL_OK);
      shoal_vector_reset(vector, 17 + e);
      uint32_t share = counts[c] / envs + (e < counts[c] % envs);
      float memory[5] = {0}, action, reward;
      double total = 0;
      assert_int_equal(shoal_policy_memory_floats(policy), 5);
      for (uint32_t episode = 0; episode < share;) {
        uint8_t end;
        shoal_policy_act(policy, 1, shoal_vector_observations(vector), memory, (shoal_key){{0}}, 0, true,
                         &action, NULL);
        shoal_vector_step(vector, &action, &reward, &end);
        total += (double)reward;
        steps++;
        if (end == SHOAL_GOES_ON) continue;
        sum += total;
        squares += total * total;
        least = fmin(least, total);
        most = fmax(most, total);
        total = 0;
        memset(memory, 0, sizeof memory);
        episode++;
      }
      shoal_vector_destroy(vector);
    }
    assert_int_equal(evaluation.episodes, counts[c]);
    double mean = sum / counts[c];
    assert_true(fabs(evaluation.mean - mean) < 1e-6);
    assert_true(fabs(evaluation.deviation - sqrt(fmax(squares / counts[c] - mean * mean, 0))) < 1e-5);
    assert_true(evaluation.least == least && evaluation.most == most);
    assert_true(fabs(evaluation.mean_length - steps / counts[c]) < 1e-9);
  }
  shoal_policy_destroy(policy);
}

/* Each is worth as much as it has earned by then, and what an environment would have played after it does
 * not count. */
static void an_evaluation_ends_where_episodes_do_not(void **unused) {
  (void)unused;
  enum { ENVS_MAX = 100 };
  shoal_env_kind endless = treadmill;
  endless.limit = 0;
  shoal_policy *policy;
  shoal_error err = {0};
  shoal_policy_spec spec = {.kind = &endless, .head = SHOAL_HEAD_CATEGORICAL, .body = "dense 1 tanh"};
  assert_int_equal(shoal_policy_create(&policy, &spec, &err), SHOAL_OK);
  static const uint32_t counts[] = {3, ENVS_MAX + 50};
  for (int i = 0; i < 2; i++) {
    shoal_evaluation evaluation;
    assert_int_equal(shoal_evaluate_policy(policy, &endless, counts[i], 17, NULL, &evaluation, &err),
                     SHOAL_OK);
    assert_int_equal(evaluation.episodes, counts[i] < ENVS_MAX ? counts[i] : ENVS_MAX);
    assert_true(evaluation.mean == SHOAL_EVALUATION_STEPS_MAX && evaluation.deviation == 0);
    assert_true(evaluation.mean_length == SHOAL_EVALUATION_STEPS_MAX);
  }
  shoal_policy_destroy(policy);
}

static bool is_set(void *self) { return *(bool *)self; }

static void an_evaluation_is_stopped(void **unused) {
  (void)unused;
  shoal_policy *policy;
  shoal_evaluation evaluation;
  shoal_error err = {0};
  bool set = true;
  const shoal_interrupt stop = {is_set, &set};
  shoal_policy_spec spec = {.kind = &treadmill, .head = SHOAL_HEAD_CATEGORICAL, .body = "dense 1 tanh"};
  assert_int_equal(shoal_policy_create(&policy, &spec, &err), SHOAL_OK);
  assert_int_equal(shoal_evaluate_policy(policy, &treadmill, 10, 17, &stop, &evaluation, &err),
                   SHOAL_STOPPED);
  set = false;
  assert_int_equal(shoal_evaluate_policy(policy, &treadmill, 10, 17, &stop, &evaluation, &err), SHOAL_OK);
  shoal_policy_destroy(policy);
}

int main(void) {
  toys_used();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stream_is_the_same_however_it_is_cut),
      cmocka_unit_test(a_rollout_tells_what_happened),
      cmocka_unit_test(memory_begins_with_the_episode),
      cmocka_unit_test(every_step_draws_anew),
      cmocka_unit_test(streams_and_seeds_differ),
      cmocka_unit_test(what_cannot_be_carried_goes_on_where_it_is_and_else_begins_anew),
      cmocka_unit_test(states_that_do_not_fit_are_refused),
      cmocka_unit_test(states_of_strangers_are_tried),
      cmocka_unit_test(rollouts_go_there_and_back),
      cmocka_unit_test(what_cannot_be_is_refused),
      cmocka_unit_test(units_go_there_and_back),
      cmocka_unit_test(rollouts_that_are_too_large_are_refused),
      cmocka_unit_test(an_evaluation_is_the_mean_over_whole_episodes),
      cmocka_unit_test(an_evaluation_ends_where_episodes_do_not),
      cmocka_unit_test(an_evaluation_is_stopped),
  };
  return RUN_TESTS(tests);
}
