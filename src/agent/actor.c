/* actor.c: plays units; see rollout.h.
 *
 * A stream is a function of the training's seed, its own number, and the unit that it began with:
 * environments are reset from these, and step s of the stream draws its actions from block s of their random
 * numbers. So it is the same however it is cut into units.
 *
 * Bytes of a stream's state:
 *
 *   offset  bytes  what
 *        0      8  "shoalst1"
 *        8      8  number of the unit that the stream began with
 *       16      8  steps since
 *       24      4  envs
 *       28      4  memory floats
 *       32         the policy's memory, envs x memory floats, 4 each
 *                  returns of the running episodes, 8 each; their lengths, 4 each
 *                  the environments, as stage.h has them; where they cannot be carried, what they
 *                  observe, so that the actor that stands there knows it again */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bytes.h"
#include "agent/rollout.h"
#include "agent/stage.h"
#include "base/assert.h"

static const char MAGIC[8] = "shoalst1";

struct shoal_actor {
  shoal_rollout_shape shape;
  shoal_policy *policy;
  shoal_stage *stage;
  uint64_t begun, steps; /* of the stream at hand */
  float *memory;
  double *returns; /* of running episodes */
  uint32_t *lengths;
  uint8_t *saved; /* the stage's bytes */
  size_t saved_bytes;
  const shoal_interrupt *interrupt;
  shoal_text last; /* where the stream stands after the last unit; empty: nowhere to go on from */
};

shoal_status shoal_actor_create(shoal_actor **out, const shoal_policy_spec *spec, uint32_t envs,
                                uint32_t steps, shoal_error *err) {
  *out = NULL;
  shoal_actor *a = calloc(1, sizeof *a);
  if (a == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for an actor");
  shoal_status status = shoal_policy_create(&a->policy, spec, err);
  if (status == SHOAL_OK) status = shoal_stage_create(&a->stage, spec->kind, envs, err);
  if (status == SHOAL_OK) {
    uint32_t floats = shoal_policy_memory_floats(a->policy);
    a->shape =
        (shoal_rollout_shape){.kind = spec->kind, .envs = envs, .steps = steps, .memory_floats = floats};
    a->memory = calloc((size_t)envs * floats + 1, sizeof *a->memory);
    a->returns = calloc(envs, sizeof *a->returns);
    a->lengths = calloc(envs, sizeof *a->lengths);
    if (a->memory == NULL || a->returns == NULL || a->lengths == NULL)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for an actor");
  }
  if (status != SHOAL_OK) {
    shoal_actor_destroy(a);
    return status;
  }
  *out = a;
  return SHOAL_OK;
}

void shoal_actor_destroy(shoal_actor *a) {
  if (a == NULL) return;
  shoal_policy_destroy(a->policy);
  shoal_stage_destroy(a->stage);
  free(a->memory);
  free(a->returns);
  free(a->lengths);
  free(a->saved);
  shoal_text_release(&a->last);
  free(a);
}

shoal_policy *shoal_actor_policy(shoal_actor *a) { return a->policy; }

void shoal_actor_interrupt(shoal_actor *a, const shoal_interrupt *interrupt) { a->interrupt = interrupt; }

/* ---- where a stream stands ---- */

static size_t memory_count(const shoal_actor *a) { return (size_t)a->shape.envs * a->shape.memory_floats; }

static void begin(shoal_actor *a, const shoal_play_unit *unit) {
  shoal_key key = shoal_key_make(unit->seed, SHOAL_FOR_EPISODES, unit->stream, unit->number);
  a->begun = unit->number;
  a->steps = 0;
  memset(a->memory, 0, memory_count(a) * sizeof *a->memory);
  memset(a->returns, 0, a->shape.envs * sizeof *a->returns);
  memset(a->lengths, 0, a->shape.envs * sizeof *a->lengths);
  shoal_stage_reset(a->stage, shoal_random_u64(key, 0));
}

static bool are_values(const float *values, size_t count) {
  return shoal_all_within(values, count, (float)SHOAL_ROLLOUT_VALUE_MAX);
}

/* Whether these may be the returns and lengths of episodes that have not ended. */
static bool are_running(const shoal_actor *a) {
  uint32_t limit = a->shape.kind->limit;
  for (uint32_t i = 0; i < a->shape.envs; i++)
    if (!(fabs(a->returns[i]) <= SHOAL_ROLLOUT_VALUE_MAX) || (limit > 0 && a->lengths[i] >= limit))
      return false;
  return true;
}

static shoal_status load(shoal_actor *a, const shoal_text *state, shoal_error *err) {
  shoal_reader r = shoal_reader_of(state->bytes, state->length);
  const uint8_t *magic = shoal_get(&r, sizeof MAGIC);
  a->begun = shoal_get_u64(&r);
  a->steps = shoal_get_u64(&r);
  uint32_t envs = shoal_get_u32(&r), memory_floats = shoal_get_u32(&r);
  if (r.failed || memcmp(magic, MAGIC, sizeof MAGIC) != 0 || envs != a->shape.envs ||
      memory_floats != a->shape.memory_floats)
    return shoal_fail(err, SHOAL_INVALID, "the unit's state is of another training");
  shoal_get_into(&r, a->memory, memory_count(a) * sizeof *a->memory);
  shoal_get_into(&r, a->returns, envs * sizeof *a->returns);
  shoal_get_into(&r, a->lengths, envs * sizeof *a->lengths);
  if (r.failed || !are_values(a->memory, memory_count(a)) || !are_running(a))
    return shoal_fail(err, SHOAL_INVALID, "the unit's state is damaged");
  if (!shoal_stage_load(a->stage, r.at, r.left))
    return shoal_fail(err, SHOAL_INVALID, "the unit's state does not fit %s", a->shape.kind->name);
  if (!are_values(shoal_stage_observations(a->stage), (size_t)envs * a->shape.kind->observation))
    return shoal_fail(err, SHOAL_INVALID, "the unit's state is none that %s can be in", a->shape.kind->name);
  return SHOAL_OK;
}

shoal_status shoal_actor_check_state(shoal_actor *a, const shoal_text *state, shoal_error *err) {
  shoal_text_clear(&a->last);
  return state->length > 0 && shoal_stage_bytes(a->stage) > 0 ? load(a, state, err) : SHOAL_OK;
}

/* Adds where the environments are, or else what they observe. */
static void save_stage(shoal_actor *a, shoal_text *out) {
  size_t bytes = shoal_stage_bytes(a->stage);
  if (bytes > a->saved_bytes) {
    uint8_t *larger = realloc(a->saved, 2 * bytes);
    out->failed |= larger == NULL;
    if (larger == NULL) return;
    a->saved = larger;
    a->saved_bytes = 2 * bytes;
  }
  if (bytes > 0) {
    shoal_stage_save(a->stage, a->saved);
    shoal_text_add(out, a->saved, bytes);
  } else {
    shoal_put_f32s(out, shoal_stage_observations(a->stage),
                   (size_t)a->shape.envs * a->shape.kind->observation);
  }
}

static void save(shoal_actor *a, shoal_text *out) {
  shoal_text_clear(out);
  shoal_text_add(out, MAGIC, sizeof MAGIC);
  shoal_put_u64(out, a->begun);
  shoal_put_u64(out, a->steps);
  shoal_put_u32(out, a->shape.envs);
  shoal_put_u32(out, a->shape.memory_floats);
  shoal_put_f32s(out, a->memory, memory_count(a));
  shoal_text_add(out, a->returns, a->shape.envs * sizeof *a->returns);
  shoal_text_add(out, a->lengths, a->shape.envs * sizeof *a->lengths);
  save_stage(a, out);
  if (!out->failed) shoal_text_add(&a->last, out->bytes, out->length);
}

static bool stands_there(const shoal_actor *a, const shoal_text *state) {
  return state->length > 0 && !a->last.failed && state->length == a->last.length &&
         memcmp(state->bytes, a->last.bytes, state->length) == 0;
}

/* Puts the environments where the unit begins. */
static shoal_status take_place(shoal_actor *a, const shoal_play_unit *unit, shoal_error *err) {
  bool there = stands_there(a, &unit->state);
  shoal_text_clear(&a->last);
  if (there) return SHOAL_OK;
  if (unit->state.length > 0 && shoal_stage_bytes(a->stage) > 0) return load(a, &unit->state, err);
  begin(a, unit);
  return SHOAL_OK;
}

/* ---- playing ---- */

/* What the step that wrote row `first` and the rows behind it means for the episodes. */
static void note_ends(shoal_actor *a, uint32_t first, shoal_rollout *out) {
  uint32_t width = a->shape.kind->observation, memory = a->shape.memory_floats;
  for (uint32_t e = 0; e < a->shape.envs; e++) {
    uint32_t row = first + e;
    a->returns[e] += (double)out->rewards[row];
    a->lengths[e]++;
    if (out->ends[row] == SHOAL_GOES_ON) continue;
    out->returns[out->episodes_count] = (float)a->returns[e];
    out->lengths[out->episodes_count++] = a->lengths[e];
    a->returns[e] = 0;
    a->lengths[e] = 0;
    memset(a->memory + (size_t)e * memory, 0, memory * sizeof *a->memory);
    if (out->ends[row] != SHOAL_TRUNCATED) continue;
    out->last_rows[out->lasts_count] = row;
    memcpy(out->lasts + (size_t)out->lasts_count++ * width, shoal_stage_last(a->stage, e),
           width * sizeof(float));
  }
}

static void see(const shoal_actor *a, uint32_t t, shoal_rollout *out) {
  size_t count = (size_t)a->shape.envs * a->shape.kind->observation;
  memcpy(out->observations + t * count, shoal_stage_observations(a->stage), count * sizeof(float));
}

shoal_status shoal_actor_play(shoal_actor *a, const shoal_play_unit *unit, shoal_rollout *out,
                              shoal_error *err) {
  SHOAL_ASSERT(shoal_rollout_is_of(out, &a->shape));
  shoal_status status = take_place(a, unit, err);
  if (status != SHOAL_OK) return status;
  out->number = unit->number;
  out->version = shoal_policy_state_of(a->policy)->version;
  out->stream = unit->stream;
  out->lasts_count = out->episodes_count = 0;
  memcpy(out->memory, a->memory, memory_count(a) * sizeof *out->memory);
  shoal_key key = shoal_key_make(unit->seed, SHOAL_FOR_ACTING, unit->stream, a->begun);
  for (uint32_t t = 0; t < a->shape.steps; t++) {
    if (shoal_interrupted(a->interrupt)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    uint32_t row = t * a->shape.envs;
    float *actions = out->actions + (size_t)row * a->shape.kind->action_width;
    see(a, t, out);
    shoal_policy_act(a->policy, a->shape.envs, shoal_stage_observations(a->stage), a->memory, key, a->steps++,
                     false, actions, out->log_probs + row);
    shoal_stage_step(a->stage, actions, out->rewards + row, out->ends + row);
    note_ends(a, row, out);
  }
  see(a, a->shape.steps, out);
  status = shoal_stage_check(a->stage, err);
  if (status != SHOAL_OK) return status;
  save(a, &out->state);
  if (out->state.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a rollout");
  return SHOAL_OK;
}
