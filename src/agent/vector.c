/* vector.c: see vector.h. A step goes over the environments in blocks that stay in the nearest cache while
 * they are moved, looked at and, where an episode has ended, begun anew. */
#include "agent/vector.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bridge.h"
#include "base/assert.h"
#include "base/hash.h"

enum { BLOCK = 256, HEAD_BYTES = 16 };
static const uint64_t NOW_FIRST = (uint64_t)1 << 32; /* episodes that are loaded began before that */

struct shoal_vector {
  const shoal_env_kind *kind;
  uint32_t count;
  uint8_t *states;
  shoal_pcg64 *randoms;
  uint64_t now;    /* counts steps */
  uint64_t *begun; /* what `now` was when each one's episode began */
  uint64_t *due;   /* by block: no episode of it is out of time before; few steps need to look closer */
  float *observations, *last; /* count x observation each */
  shoal_canvas *ending;       /* see shoal_vector_watch */
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
  v->now = NOW_FIRST;
  v->states = zeros(count, kind->bytes);
  v->randoms = zeros(count, sizeof *v->randoms);
  v->begun = zeros(count, sizeof *v->begun);
  v->due = zeros((count + BLOCK - 1) / BLOCK, sizeof *v->due);
  v->observations = zeros(count, kind->observation * sizeof(float));
  v->last = zeros(count, kind->observation * sizeof(float));
  if (!v->states || !v->randoms || !v->begun || !v->due || !v->observations || !v->last) {
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
  free(vector->begun);
  free(vector->due);
  free(vector->observations);
  free(vector->last);
  free(vector);
}

shoal_status shoal_vector_check(const shoal_vector *vector, shoal_error *err) {
  return vector->bridged ? shoal_bridged_check(vector->bridged, err) : SHOAL_OK;
}

/* In the next step, at every block. */
static void look_closer(shoal_vector *v) {
  memset(v->due, v->kind->limit ? 0 : 0xff, (v->count + BLOCK - 1) / BLOCK * sizeof *v->due);
}

void shoal_vector_reset(shoal_vector *vector, uint64_t seed) {
  if (vector->bridged) {
    shoal_bridged_reset(vector->bridged, seed);
    return;
  }
  for (uint32_t i = 0; i < vector->count; i++) {
    shoal_pcg64_seed(&vector->randoms[i], seed + i);
    vector->kind->reset(state_at(vector, i), &vector->randoms[i]);
    vector->begun[i] = vector->now;
  }
  look_closer(vector);
  vector->kind->observe(vector->states, vector->count, vector->observations);
}

static void begin_anew(shoal_vector *v, uint32_t index) {
  float *now = row(v, v->observations, index), *last = row(v, v->last, index);
  for (uint32_t i = 0; i < v->kind->observation; i++) last[i] = now[i];
  if (v->kind->reset_seen)
    v->kind->reset_seen(state_at(v, index), &v->randoms[index], now);
  else
    v->kind->reset(state_at(v, index), &v->randoms[index]);
  v->begun[index] = v->now;
}

static void look_at(shoal_vector *v, uint32_t index) {
  v->kind->observe(state_at(v, index), 1, row(v, v->observations, index));
}

/* Cuts off those of a block that have no time left, and finds out when the next one may have none. */
static void cut_off(shoal_vector *v, uint32_t first, uint32_t count, uint8_t *ends) {
  uint64_t limit = v->kind->limit, next = v->now + limit;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t due = v->begun[first + i] + limit;
    if (ends[i] != SHOAL_GOES_ON) continue;
    if (due <= v->now)
      ends[i] = SHOAL_TRUNCATED;
    else if (due < next)
      next = due;
  }
  v->due[first / BLOCK] = next;
}

/* A bit for each of eight ends that is none of SHOAL_GOES_ON, the first one lowest. */
static uint64_t bits_of_eight(const uint8_t *ends) {
  uint64_t eight, lowest = 0x0101010101010101, gather = 0x0102040810204080;
  memcpy(&eight, ends, sizeof eight);
  return ((eight | eight >> 1) & lowest) * gather >> 56;
}

/* Those among 64 at most. Which ones cannot be foreseen, so there is a branch for each that ended, and none
 * for the others. */
static uint64_t bits_of_ended(const uint8_t *ends, uint32_t count) {
  uint64_t bits = 0;
  uint32_t i = 0;
  for (; i + 8 <= count; i += 8) bits |= bits_of_eight(ends + i) << i;
  for (; i < count; i++) bits |= (uint64_t)(ends[i] != SHOAL_GOES_ON) << i;
  return bits;
}

/* Their generators are called into the cache: among many environments they have long left it. */
static uint32_t list_ended(shoal_vector *v, uint32_t first, uint32_t count, const uint8_t *ends,
                           uint32_t out[BLOCK]) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i += 64) {
    uint64_t bits = bits_of_ended(ends + i, count - i < 64 ? count - i : 64);
    for (; bits; bits &= bits - 1) {
      out[found] = first + i + (uint32_t)__builtin_ctzll(bits);
      __builtin_prefetch(&v->randoms[out[found++]], 1);
    }
  }
  return found;
}

/* All are begun before one is looked at: a state that was only just written is slow to read. */
static void begin_those_that_ended(shoal_vector *v, uint32_t first, uint32_t count, const uint8_t *ends) {
  uint32_t ended[BLOCK], n = list_ended(v, first, count, ends, ended);
  for (uint32_t i = 0; i < n; i++) begin_anew(v, ended[i]);
  for (uint32_t i = 0; !v->kind->reset_seen && i < n; i++) look_at(v, ended[i]);
}

static void step_block(shoal_vector *v, uint32_t first, uint32_t count, const float *actions, float *rewards,
                       uint8_t *ends) {
  const shoal_env_kind *kind = v->kind;
  float *seen = row(v, v->observations, first);
  bool ended[BLOCK];
  if (kind->step_seen) {
    kind->step_seen(state_at(v, first), count, actions, v->randoms + first, rewards, ended, seen);
  } else {
    kind->step(state_at(v, first), count, actions, v->randoms + first, rewards, ended);
    kind->observe(state_at(v, first), count, seen);
  }
  for (uint32_t i = 0; i < count; i++) ends[i] = ended[i] ? SHOAL_TERMINATED : SHOAL_GOES_ON;
  if (v->due[first / BLOCK] <= v->now) cut_off(v, first, count, ends);
  if (v->ending && first == 0 && ends[0] != SHOAL_GOES_ON) kind->draw(state_at(v, 0), v->ending);
  begin_those_that_ended(v, first, count, ends);
}

void shoal_vector_step(shoal_vector *vector, const float *actions, float *rewards, uint8_t *ends) {
  if (vector->bridged) {
    shoal_bridged_step(vector->bridged, actions, rewards, ends);
    if (vector->ending && ends[0] != SHOAL_GOES_ON)
      shoal_bridged_draw_last(vector->bridged, 0, vector->ending);
    return;
  }
  vector->now++;
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

void shoal_vector_watch(shoal_vector *vector, shoal_canvas *canvas) { vector->ending = canvas; }

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
  size_t each = vector->kind->bytes + sizeof *vector->randoms + sizeof(uint32_t);
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
  for (size_t i = 0; i < n; i++, to += sizeof(uint32_t)) {
    uint32_t elapsed = (uint32_t)(vector->now - vector->begun[i]);
    memcpy(to, &elapsed, sizeof elapsed);
  }
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
  for (size_t i = 0; i < n; i++) {
    uint32_t steps;
    memcpy(&steps, elapsed + i * sizeof steps, sizeof steps);
    vector->begun[i] = vector->now - steps;
  }
  look_closer(vector);
  vector->kind->observe(vector->states, vector->count, vector->observations);
  return true;
}
