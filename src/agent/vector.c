/* vector.c: see vector.h. A step goes over the environments in blocks that stay in the nearest cache while
 * they are moved, looked at and, where an episode has ended, begun anew. */
#include "agent/vector.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bridge.h"
#include "base/assert.h"
#include "base/hash.h"

enum { BLOCK = 256, HEAD_BYTES = 16 };

struct shoal_vector {
  const shoal_env_kind *kind;
  uint32_t count;
  uint8_t *states;
  shoal_pcg64 *randoms;
  uint32_t *elapsed;
  float *observations, *last; /* count x observation each */
  shoal_bridged *bridged; /* where the kind has a bridge: it has them all, and what is above is not used */
};

/* Zeros that begin at a cache line. */
static void *zeros(size_t count, size_t size) {
  size_t bytes = (count * size + 63) / 64 * 64;
  void *memory = aligned_alloc(64, bytes);
  return memory ? memset(memory, 0, bytes) : NULL;
}

shoal_status shoal_vector_create(shoal_vector **out, const shoal_env_kind *kind, uint32_t count,
                                 shoal_error *err) {
  *out = NULL;
  if (count < 1 || count > SHOAL_VECTOR_COUNT_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%u environments are asked for; 1 to %d are possible", count,
                      SHOAL_VECTOR_COUNT_MAX);
  shoal_vector *v = calloc(1, sizeof *v);
  if (!v) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  v->kind = kind;
  v->count = count;
  v->states = zeros(count, kind->bytes);
  v->randoms = zeros(count, sizeof *v->randoms);
  v->elapsed = zeros(count, sizeof *v->elapsed);
  v->observations = zeros(count, kind->observation * sizeof(float));
  v->last = zeros(count, kind->observation * sizeof(float));
  if (!v->states || !v->randoms || !v->elapsed || !v->observations || !v->last) {
    shoal_vector_destroy(v);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for %u environments; try fewer", count);
  }
  shoal_status status = kind->bridge ? shoal_bridged_create(&v->bridged, kind, count, err) : SHOAL_OK;
  if (status == SHOAL_OK) {
    shoal_vector_reset(v, 0);
    status = shoal_vector_check(v, err);
  }
  if (status != SHOAL_OK) {
    shoal_vector_destroy(v);
    return status;
  }
  *out = v;
  return SHOAL_OK;
}

static void *state_at(const shoal_vector *v, uint32_t index) { return v->states + index * v->kind->bytes; }

static float *row(const shoal_vector *v, float *rows, uint32_t index) {
  return rows + (size_t)index * v->kind->observation;
}

void shoal_vector_destroy(shoal_vector *vector) {
  if (!vector) return;
  for (uint32_t i = 0; vector->states && vector->kind->release && i < vector->count; i++)
    vector->kind->release(state_at(vector, i));
  shoal_bridged_destroy(vector->bridged);
  free(vector->states);
  free(vector->randoms);
  free(vector->elapsed);
  free(vector->observations);
  free(vector->last);
  free(vector);
}

shoal_status shoal_vector_check(const shoal_vector *vector, shoal_error *err) {
  return vector->bridged ? shoal_bridged_check(vector->bridged, err) : SHOAL_OK;
}

void shoal_vector_reset(shoal_vector *vector, uint64_t seed) {
  if (vector->bridged) {
    shoal_bridged_reset(vector->bridged, seed);
    return;
  }
  for (uint32_t i = 0; i < vector->count; i++) {
    shoal_pcg64_seed(&vector->randoms[i], seed + i);
    vector->kind->reset(state_at(vector, i), &vector->randoms[i]);
    vector->elapsed[i] = 0;
  }
  vector->kind->observe(vector->states, vector->count, vector->observations);
}

static void begin_anew(shoal_vector *v, uint32_t index) {
  float *now = row(v, v->observations, index);
  memcpy(row(v, v->last, index), now, v->kind->observation * sizeof *now);
  v->kind->reset(state_at(v, index), &v->randoms[index]);
  v->elapsed[index] = 0;
  v->kind->observe(state_at(v, index), 1, now);
}

/* Without branches: which episodes end cannot be foreseen. */
static void tell_ends(const bool *ended, uint32_t *elapsed, uint32_t limit, uint32_t count, uint8_t *ends) {
  for (uint32_t i = 0; i < count; i++) {
    elapsed[i]++;
    uint8_t late = elapsed[i] >= limit, by_itself = ended[i];
    ends[i] = (uint8_t)(by_itself * SHOAL_TERMINATED | (late & ~by_itself) * SHOAL_TRUNCATED);
  }
}

/* Most go on: eight at a time are passed over. */
static void begin_those_that_ended(shoal_vector *v, uint32_t first, uint32_t count, const uint8_t *ends) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t eight = 1;
    if (i + sizeof eight <= count) memcpy(&eight, ends + i, sizeof eight);
    if (eight == 0)
      i += sizeof eight - 1;
    else if (ends[i] != SHOAL_GOES_ON)
      begin_anew(v, first + i);
  }
}

static void step_block(shoal_vector *v, uint32_t first, uint32_t count, const float *actions, float *rewards,
                       uint8_t *ends) {
  const shoal_env_kind *kind = v->kind;
  bool ended[BLOCK];
  kind->step(state_at(v, first), count, actions, v->randoms + first, rewards, ended);
  kind->observe(state_at(v, first), count, row(v, v->observations, first));
  tell_ends(ended, v->elapsed + first, kind->limit ? kind->limit : UINT32_MAX, count, ends);
  begin_those_that_ended(v, first, count, ends);
}

void shoal_vector_step(shoal_vector *vector, const float *actions, float *rewards, uint8_t *ends) {
  if (vector->bridged) {
    shoal_bridged_step(vector->bridged, actions, rewards, ends);
    return;
  }
  for (uint32_t first = 0; first < vector->count; first += BLOCK) {
    uint32_t count = vector->count - first < BLOCK ? vector->count - first : BLOCK;
    step_block(vector, first, count, actions + (size_t)first * vector->kind->action_width, rewards + first,
               ends + first);
  }
}

const float *shoal_vector_observations(const shoal_vector *vector) {
  return vector->bridged ? shoal_bridged_observations(vector->bridged) : vector->observations;
}

const float *shoal_vector_last(const shoal_vector *vector, uint32_t index) {
  SHOAL_ASSERT(index < vector->count);
  const float *lasts = vector->bridged ? shoal_bridged_lasts(vector->bridged) : vector->last;
  return lasts + (size_t)index * vector->kind->observation;
}

const void *shoal_vector_state(const shoal_vector *vector, uint32_t index) {
  SHOAL_ASSERT(index < vector->count);
  return vector->bridged ? shoal_bridged_state(vector->bridged, index) : state_at(vector, index);
}

/* ---- bytes ------------------------------------------------------------------------------ */

static void write_head(const shoal_vector *v, uint8_t out[HEAD_BYTES]) {
  uint64_t name = shoal_digest(v->kind->name, strlen(v->kind->name));
  uint32_t bytes = (uint32_t)v->kind->bytes;
  memcpy(out, &name, sizeof name);
  memcpy(out + 8, &v->count, sizeof v->count);
  memcpy(out + 12, &bytes, sizeof bytes);
}

size_t shoal_vector_bytes(const shoal_vector *vector) {
  if (vector->kind->release) return 0;
  size_t each = vector->kind->bytes + sizeof *vector->randoms + sizeof *vector->elapsed;
  return HEAD_BYTES + vector->count * each;
}

void shoal_vector_save(const shoal_vector *vector, void *bytes) {
  if (vector->kind->release) return;
  size_t n = vector->count;
  uint8_t *to = bytes;
  write_head(vector, to);
  to += HEAD_BYTES;
  memcpy(to, vector->states, n * vector->kind->bytes);
  to += n * vector->kind->bytes;
  memcpy(to, vector->randoms, n * sizeof *vector->randoms);
  to += n * sizeof *vector->randoms;
  memcpy(to, vector->elapsed, n * sizeof *vector->elapsed);
}

bool shoal_vector_load(shoal_vector *vector, const void *bytes, size_t length) {
  size_t n = vector->count, wanted = shoal_vector_bytes(vector);
  uint8_t head[HEAD_BYTES];
  write_head(vector, head);
  if (wanted == 0 || length != wanted || memcmp(bytes, head, sizeof head) != 0) return false;
  const uint8_t *states = (const uint8_t *)bytes + HEAD_BYTES;
  const uint8_t *randoms = states + n * vector->kind->bytes, *elapsed = randoms + n * sizeof *vector->randoms;
  for (size_t i = 0; vector->kind->limit && i < n; i++) {
    uint32_t steps;
    memcpy(&steps, elapsed + i * sizeof steps, sizeof steps);
    if (steps >= vector->kind->limit) return false;
  }
  memcpy(vector->states, states, n * vector->kind->bytes);
  memcpy(vector->randoms, randoms, n * sizeof *vector->randoms);
  memcpy(vector->elapsed, elapsed, n * sizeof *vector->elapsed);
  vector->kind->observe(vector->states, vector->count, vector->observations);
  return true;
}
