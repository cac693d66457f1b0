/* rollout.c: see rollout.h.
 *
 * Bytes of a rollout, with rows = steps x envs; what follows from `ends` is not said again: a last
 * observation for each row that is SHOAL_TRUNCATED, an episode for each that is not SHOAL_GOES_ON.
 *
 *   offset  bytes  what
 *        0      8  "shoalro1"
 *        8      8  number of the unit
 *       16      8  version of the policy
 *       24      4  stream
 *       28      4  envs
 *       32      4  steps
 *       36      4  memory floats
 *       40      4  observation
 *       44      4  choices
 *       48      4  action width
 *       52      4  bytes of the stream's state
 *       56         ends, a byte a row; actions, a byte each for up to 256 choices, else 4; observations,
 *                  log_probs, rewards, memory, last observations, returns, 4 each; lengths, 4 each; state
 *               4  CRC-32C of everything before
 *
 * Bytes of a unit: "shoalun1", number (8), version (8), seed (8), stream (4), bytes of the state (4), state,
 * CRC-32C (4). */
#include "agent/rollout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bytes.h"
#include "base/assert.h"
#include "base/hash.h"

static const char MAGIC[8] = "shoalro1", UNIT_MAGIC[8] = "shoalun1";
enum { BYTE_CHOICES_MAX = 256 };
static const uint64_t FLOATS_MAX = (uint64_t)1 << 31;

static uint32_t rows_of(const shoal_rollout_shape *shape) { return shape->steps * shape->envs; }

bool shoal_rollout_is_of(const shoal_rollout *rollout, const shoal_rollout_shape *shape) {
  const shoal_rollout_shape *own = &rollout->shape;
  return own->kind == shape->kind && own->envs == shape->envs && own->steps == shape->steps &&
         own->memory_floats == shape->memory_floats;
}

/* ---- memory ---- */

static float *floats(size_t count) { return calloc(count + 1, sizeof(float)); }

shoal_status shoal_rollout_create(shoal_rollout **out, const shoal_rollout_shape *shape, shoal_error *err) {
  *out = NULL;
  const shoal_env_kind *kind = shape->kind;
  uint64_t rows = (uint64_t)shape->envs * shape->steps;
  uint64_t widest = kind->observation > kind->action_width ? kind->observation : kind->action_width;
  if (rows == 0 || rows > SHOAL_ROLLOUT_ROWS_MAX || (rows + shape->envs) * widest > FLOATS_MAX ||
      (uint64_t)shape->envs * shape->memory_floats > FLOATS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%u environments of %u steps are too much for one rollout of %s",
                      shape->envs, shape->steps, kind->name);
  shoal_rollout *r = calloc(1, sizeof *r);
  if (r == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a rollout");
  r->shape = *shape;
  r->observations = floats((rows + shape->envs) * kind->observation);
  r->actions = floats(rows * kind->action_width);
  r->log_probs = floats(rows);
  r->rewards = floats(rows);
  r->ends = calloc(rows, sizeof *r->ends);
  r->memory = floats((size_t)shape->envs * shape->memory_floats);
  r->last_rows = calloc(rows, sizeof *r->last_rows);
  r->lasts = floats(rows * kind->observation);
  r->returns = floats(rows);
  r->lengths = calloc(rows, sizeof *r->lengths);
  shoal_text_init(&r->state);
  if (r->observations == NULL || r->actions == NULL || r->log_probs == NULL || r->rewards == NULL ||
      r->ends == NULL || r->memory == NULL || r->last_rows == NULL || r->lasts == NULL ||
      r->returns == NULL || r->lengths == NULL) {
    shoal_rollout_destroy(r);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a rollout");
  }
  *out = r;
  return SHOAL_OK;
}

void shoal_rollout_destroy(shoal_rollout *r) {
  if (r == NULL) return;
  free(r->observations);
  free(r->actions);
  free(r->log_probs);
  free(r->rewards);
  free(r->ends);
  free(r->memory);
  free(r->last_rows);
  free(r->lasts);
  free(r->returns);
  free(r->lengths);
  shoal_text_release(&r->state);
  free(r);
}

/* ---- writing ---- */

static bool in_bytes(const shoal_env_kind *kind) {
  return kind->choices > 0 && kind->choices <= BYTE_CHOICES_MAX;
}

static void put_actions(shoal_text *out, const shoal_rollout *r) {
  size_t count = (size_t)rows_of(&r->shape) * r->shape.kind->action_width;
  if (!in_bytes(r->shape.kind)) {
    shoal_put_f32s(out, r->actions, count);
    return;
  }
  uint8_t bytes[512];
  for (size_t done = 0; done < count;) {
    size_t part = count - done < sizeof bytes ? count - done : sizeof bytes;
    for (size_t i = 0; i < part; i++) bytes[i] = (uint8_t)r->actions[done + i];
    shoal_text_add(out, bytes, part);
    done += part;
  }
}

static void put_checksum(shoal_text *out, size_t start) {
  if (!out->failed) shoal_put_u32(out, shoal_crc32c(0, out->bytes + start, out->length - start));
}

void shoal_rollout_write(const shoal_rollout *r, shoal_text *out) {
  const shoal_rollout_shape *shape = &r->shape;
  const shoal_env_kind *kind = shape->kind;
  size_t start = out->length, rows = rows_of(shape);
  shoal_text_add(out, MAGIC, sizeof MAGIC);
  shoal_put_u64(out, r->number);
  shoal_put_u64(out, r->version);
  const uint32_t words[] = {r->stream,         shape->envs,   shape->steps,       shape->memory_floats,
                            kind->observation, kind->choices, kind->action_width, (uint32_t)r->state.length};
  shoal_text_add(out, words, sizeof words);
  shoal_text_add(out, r->ends, rows);
  put_actions(out, r);
  shoal_put_f32s(out, r->observations, (rows + shape->envs) * kind->observation);
  shoal_put_f32s(out, r->log_probs, rows);
  shoal_put_f32s(out, r->rewards, rows);
  shoal_put_f32s(out, r->memory, (size_t)shape->envs * shape->memory_floats);
  shoal_put_f32s(out, r->lasts, (size_t)r->lasts_count * kind->observation);
  shoal_put_f32s(out, r->returns, r->episodes_count);
  if (r->episodes_count > 0) shoal_text_add(out, r->lengths, r->episodes_count * sizeof *r->lengths);
  if (r->state.length > 0) shoal_text_add(out, r->state.bytes, r->state.length);
  put_checksum(out, start);
}

void shoal_play_unit_write(const shoal_play_unit *unit, shoal_text *out) {
  size_t start = out->length;
  shoal_text_add(out, UNIT_MAGIC, sizeof UNIT_MAGIC);
  shoal_put_u64(out, unit->number);
  shoal_put_u64(out, unit->version);
  shoal_put_u64(out, unit->seed);
  shoal_put_u32(out, unit->stream);
  shoal_put_u32(out, (uint32_t)unit->state.length);
  if (unit->state.length > 0) shoal_text_add(out, unit->state.bytes, unit->state.length);
  put_checksum(out, start);
}

/* ---- reading ---- */

static shoal_status refused(shoal_error *err, const char *what) {
  return shoal_fail(err, SHOAL_INVALID, "a rollout's bytes: %s", what);
}

/* Opens bytes that begin with a magic and end with their checksum; the reader sees what lies between. */
static bool open_bytes(shoal_reader *r, const void *bytes, size_t length, const char magic[8]) {
  uint32_t crc;
  if (length < 8 + sizeof crc || memcmp(bytes, magic, 8) != 0) return false;
  memcpy(&crc, (const uint8_t *)bytes + length - sizeof crc, sizeof crc);
  if (shoal_crc32c(0, bytes, length - sizeof crc) != crc) return false;
  *r = shoal_reader_of((const uint8_t *)bytes + 8, length - 8 - sizeof crc);
  return true;
}

/* The parts of a rollout, still in the bytes; floats there have no alignment. */
typedef struct parts {
  uint64_t number, version;
  uint32_t stream, lasts_count, episodes_count, state_bytes;
  const uint8_t *ends, *actions, *observations, *log_probs, *rewards, *memory, *lasts, *returns, *lengths,
      *state;
} parts;

static bool get_head(shoal_reader *in, const shoal_rollout_shape *shape, parts *p) {
  const shoal_env_kind *kind = shape->kind;
  p->number = shoal_get_u64(in);
  p->version = shoal_get_u64(in);
  p->stream = shoal_get_u32(in);
  const uint32_t wanted[] = {shape->envs,       shape->steps,  shape->memory_floats,
                             kind->observation, kind->choices, kind->action_width};
  const uint8_t *words = shoal_get(in, sizeof wanted);
  p->state_bytes = shoal_get_u32(in);
  return !in->failed && memcmp(words, wanted, sizeof wanted) == 0;
}

static bool count_ends(parts *p, uint32_t rows) {
  for (uint32_t i = 0; i < rows; i++) {
    if (p->ends[i] > SHOAL_TRUNCATED) return false;
    p->episodes_count += p->ends[i] != SHOAL_GOES_ON;
    p->lasts_count += p->ends[i] == SHOAL_TRUNCATED;
  }
  return true;
}

/* The length of everything after the ends follows from them. */
static bool get_body(shoal_reader *in, const shoal_rollout_shape *shape, parts *p) {
  const shoal_env_kind *kind = shape->kind;
  size_t rows = rows_of(shape), seen = kind->observation * sizeof(float);
  p->actions = shoal_get(in, rows * kind->action_width * (in_bytes(kind) ? 1 : sizeof(float)));
  p->observations = shoal_get(in, (rows + shape->envs) * seen);
  p->log_probs = shoal_get(in, rows * sizeof(float));
  p->rewards = shoal_get(in, rows * sizeof(float));
  p->memory = shoal_get(in, (size_t)shape->envs * shape->memory_floats * sizeof(float));
  p->lasts = shoal_get(in, p->lasts_count * seen);
  p->returns = shoal_get(in, p->episodes_count * sizeof(float));
  p->lengths = shoal_get(in, p->episodes_count * sizeof(uint32_t));
  p->state = shoal_get(in, p->state_bytes);
  return !in->failed && in->left == 0;
}

static bool are_choices(const shoal_env_kind *kind, size_t count, const uint8_t *bytes) {
  for (size_t i = 0; i < count; i++) {
    float choice = bytes[i];
    if (!in_bytes(kind)) memcpy(&choice, bytes + i * sizeof choice, sizeof choice);
    if (!(choice >= 0 && choice < (float)kind->choices) || choice != floorf(choice)) return false;
  }
  return true;
}

static bool are_lengths(const shoal_env_kind *kind, uint32_t count, const uint8_t *bytes) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t length;
    memcpy(&length, bytes + i * sizeof length, sizeof length);
    if (length == 0 || (kind->limit > 0 && length > kind->limit)) return false;
  }
  return true;
}

static bool are_values(const uint8_t *bytes, size_t count) {
  return shoal_all_within(bytes, count, (float)SHOAL_ROLLOUT_VALUE_MAX);
}

static shoal_status check_parts(const shoal_rollout_shape *shape, const parts *p, shoal_error *err) {
  const shoal_env_kind *kind = shape->kind;
  size_t rows = rows_of(shape), actions = rows * kind->action_width;
  if (kind->choices > 0 ? !are_choices(kind, actions, p->actions) : !are_values(p->actions, actions))
    return refused(err, "an action is none");
  if (!are_values(p->observations, (rows + shape->envs) * kind->observation) ||
      !are_values(p->lasts, (size_t)p->lasts_count * kind->observation))
    return refused(err, "an observation is not finite, or beyond all measure");
  if (!are_values(p->log_probs, rows) || !are_values(p->rewards, rows) ||
      !are_values(p->returns, p->episodes_count))
    return refused(err, "a reward or a probability is not finite, or beyond all measure");
  if (!are_values(p->memory, (size_t)shape->envs * shape->memory_floats))
    return refused(err, "the policy's memory is not finite, or beyond all measure");
  if (!are_lengths(kind, p->episodes_count, p->lengths)) return refused(err, "an episode's length cannot be");
  return SHOAL_OK;
}

static void copy_parts(shoal_rollout *r, const parts *p) {
  const shoal_env_kind *kind = r->shape.kind;
  size_t rows = rows_of(&r->shape), actions = rows * kind->action_width;
  r->number = p->number;
  r->version = p->version;
  r->stream = p->stream;
  r->lasts_count = p->lasts_count;
  r->episodes_count = p->episodes_count;
  memcpy(r->ends, p->ends, rows);
  if (in_bytes(kind))
    for (size_t i = 0; i < actions; i++) r->actions[i] = p->actions[i];
  else
    memcpy(r->actions, p->actions, actions * sizeof(float));
  memcpy(r->observations, p->observations, (rows + r->shape.envs) * kind->observation * sizeof(float));
  memcpy(r->log_probs, p->log_probs, rows * sizeof(float));
  memcpy(r->rewards, p->rewards, rows * sizeof(float));
  memcpy(r->memory, p->memory, (size_t)r->shape.envs * r->shape.memory_floats * sizeof(float));
  memcpy(r->lasts, p->lasts, (size_t)p->lasts_count * kind->observation * sizeof(float));
  memcpy(r->returns, p->returns, p->episodes_count * sizeof(float));
  memcpy(r->lengths, p->lengths, p->episodes_count * sizeof(uint32_t));
  uint32_t lasts = 0;
  for (uint32_t i = 0; i < rows; i++)
    if (p->ends[i] == SHOAL_TRUNCATED) r->last_rows[lasts++] = i;
}

/* Replaces a text; it is as before when memory is short. */
static bool replace_text(shoal_text *text, const uint8_t *bytes, size_t length) {
  shoal_text fresh;
  shoal_text_init(&fresh);
  if (length > 0) shoal_text_add(&fresh, bytes, length);
  if (fresh.failed) {
    shoal_text_release(&fresh);
    return false;
  }
  shoal_text_release(text);
  *text = fresh;
  return true;
}

shoal_status shoal_rollout_read(shoal_rollout *r, const void *bytes, size_t length, shoal_error *err) {
  shoal_reader in;
  parts p = {0};
  uint32_t rows = rows_of(&r->shape);
  if (!open_bytes(&in, bytes, length, MAGIC)) return refused(err, "they are damaged, or something else");
  if (!get_head(&in, &r->shape, &p)) return refused(err, "they are of another shape or environment");
  if (p.state_bytes > SHOAL_STREAM_BYTES_MAX) return refused(err, "the stream's state is too large");
  p.ends = shoal_get(&in, rows);
  if (p.ends == NULL) return refused(err, "their length is wrong");
  if (!count_ends(&p, rows)) return refused(err, "an end is none");
  if (!get_body(&in, &r->shape, &p)) return refused(err, "their length is wrong");
  shoal_status status = check_parts(&r->shape, &p, err);
  if (status != SHOAL_OK) return status;
  if (!replace_text(&r->state, p.state, p.state_bytes))
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a rollout");
  copy_parts(r, &p);
  return SHOAL_OK;
}

bool shoal_rollout_names(const void *bytes, size_t length, uint64_t *number, uint64_t *version) {
  shoal_reader in = shoal_reader_of(bytes, length);
  const uint8_t *magic = shoal_get(&in, sizeof MAGIC);
  *number = shoal_get_u64(&in);
  *version = shoal_get_u64(&in);
  return !in.failed && memcmp(magic, MAGIC, sizeof MAGIC) == 0;
}

shoal_status shoal_play_unit_read(shoal_play_unit *unit, const void *bytes, size_t length, shoal_error *err) {
  shoal_reader in;
  if (!open_bytes(&in, bytes, length, UNIT_MAGIC))
    return shoal_fail(err, SHOAL_INVALID, "a unit's bytes: they are damaged, or something else");
  uint64_t number = shoal_get_u64(&in), version = shoal_get_u64(&in), seed = shoal_get_u64(&in);
  uint32_t stream = shoal_get_u32(&in), state_bytes = shoal_get_u32(&in);
  const uint8_t *state = shoal_get(&in, state_bytes);
  if (in.failed || in.left != 0 || state_bytes > SHOAL_STREAM_BYTES_MAX)
    return shoal_fail(err, SHOAL_INVALID, "a unit's bytes: their length is wrong");
  if (!replace_text(&unit->state, state, state_bytes))
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a unit");
  unit->number = number;
  unit->version = version;
  unit->seed = seed;
  unit->stream = stream;
  return SHOAL_OK;
}
