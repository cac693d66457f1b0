/* stage.c: see stage.h.
 *
 * Environments that own more than their bytes are vectors of one each, so that each can be reset by itself;
 * when an episode ends, the vector's own reset is followed by one with the next episode's seed.
 *
 * Their bytes:
 *
 *   offset  bytes  what
 *        0      8  "shoaltr1"
 *        8      8  seed
 *       16      4  count
 *       20      4  action width
 *       24         of each: number of the episode (4), steps (4), its actions: a byte each for up to 256
 *                  choices, else 4 */
#include "agent/stage.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bytes.h"
#include "base/assert.h"
#include "base/random.h"

static const char MAGIC[8] = "shoaltr1";
enum { HEAD_BYTES = 24, BYTE_CHOICES_MAX = 256, TRAIL_STEPS_MAX = 1 << 16 };

/* What an environment has been through since its episode began. */
typedef struct trail {
  shoal_vector *vector; /* of one */
  uint32_t episode, steps;
  float *actions; /* limit x width */
} trail;

struct shoal_stage {
  const shoal_env_kind *kind;
  uint32_t count;
  shoal_vector *vector; /* of all; NULL: each has its own */
  trail *trails;
  uint64_t seed;
  float *observations, *last;
  float *action; /* one, while it is played again */
};

static bool needs_trails(const shoal_env_kind *kind) {
  return kind->release != NULL && kind->bridge == NULL && kind->limit > 0 && kind->limit <= TRAIL_STEPS_MAX;
}

static bool in_bytes(const shoal_env_kind *kind) {
  return kind->choices > 0 && kind->choices <= BYTE_CHOICES_MAX;
}

static size_t action_bytes(const shoal_env_kind *kind) {
  return kind->action_width * (in_bytes(kind) ? 1 : sizeof(float));
}

static shoal_status create_trails(shoal_stage *s, shoal_error *err) {
  const shoal_env_kind *kind = s->kind;
  s->trails = calloc(s->count, sizeof *s->trails);
  s->observations = calloc((size_t)s->count * kind->observation, sizeof *s->observations);
  s->last = calloc((size_t)s->count * kind->observation, sizeof *s->last);
  s->action = calloc(kind->action_width, sizeof *s->action);
  bool ok = s->trails != NULL && s->observations != NULL && s->last != NULL && s->action != NULL;
  for (uint32_t i = 0; ok && i < s->count; i++) {
    s->trails[i].actions = calloc((size_t)kind->limit * kind->action_width, sizeof(float));
    ok = s->trails[i].actions != NULL;
    shoal_status status = ok ? shoal_vector_create(&s->trails[i].vector, kind, 1, err) : SHOAL_OK;
    if (status != SHOAL_OK) return status;
  }
  return ok ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u environments", s->count);
}

shoal_status shoal_stage_create(shoal_stage **out, const shoal_env_kind *kind, uint32_t count,
                                shoal_error *err) {
  *out = NULL;
  if (count < 1 || count > SHOAL_VECTOR_COUNT_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%u environments are asked for; 1 to %d are possible", count,
                      SHOAL_VECTOR_COUNT_MAX);
  shoal_stage *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u environments", count);
  s->kind = kind;
  s->count = count;
  shoal_status status =
      needs_trails(kind) ? create_trails(s, err) : shoal_vector_create(&s->vector, kind, count, err);
  if (status != SHOAL_OK) {
    shoal_stage_destroy(s);
    return status;
  }
  shoal_stage_reset(s, 0);
  *out = s;
  return SHOAL_OK;
}

void shoal_stage_destroy(shoal_stage *s) {
  if (s == NULL) return;
  for (uint32_t i = 0; s->trails != NULL && i < s->count; i++) {
    shoal_vector_destroy(s->trails[i].vector);
    free(s->trails[i].actions);
  }
  shoal_vector_destroy(s->vector);
  free(s->trails);
  free(s->observations);
  free(s->last);
  free(s->action);
  free(s);
}

/* ---- playing ---- */

static void look(shoal_stage *s, uint32_t i) {
  size_t width = s->kind->observation;
  memcpy(s->observations + i * width, shoal_vector_observations(s->trails[i].vector), width * sizeof(float));
}

static void begin(shoal_stage *s, uint32_t i, uint32_t episode) {
  shoal_key key = shoal_key_make(s->seed, SHOAL_FOR_EPISODES, i, episode);
  s->trails[i].episode = episode;
  s->trails[i].steps = 0;
  shoal_vector_reset(s->trails[i].vector, shoal_random_u64(key, 0));
}

/* A step of one environment; the observation that follows is only taken over by `look`. */
static uint8_t act(shoal_stage *s, uint32_t i, const float *action, float *reward) {
  trail *t = &s->trails[i];
  uint32_t width = s->kind->action_width;
  uint8_t end;
  SHOAL_ASSERT(t->steps < s->kind->limit);
  memcpy(t->actions + (size_t)t->steps++ * width, action, width * sizeof *action);
  shoal_vector_step(t->vector, action, reward, &end);
  return end;
}

void shoal_stage_reset(shoal_stage *s, uint64_t seed) {
  s->seed = seed;
  if (s->vector != NULL) {
    shoal_vector_reset(s->vector, seed);
    return;
  }
  for (uint32_t i = 0; i < s->count; i++) {
    begin(s, i, 0);
    look(s, i);
  }
}

void shoal_stage_step(shoal_stage *s, const float *actions, float *rewards, uint8_t *ends) {
  if (s->vector != NULL) {
    shoal_vector_step(s->vector, actions, rewards, ends);
    return;
  }
  size_t width = s->kind->observation;
  for (uint32_t i = 0; i < s->count; i++) {
    ends[i] = act(s, i, actions + (size_t)i * s->kind->action_width, &rewards[i]);
    if (ends[i] != SHOAL_GOES_ON) {
      memcpy(s->last + i * width, shoal_vector_last(s->trails[i].vector, 0), width * sizeof(float));
      begin(s, i, s->trails[i].episode + 1);
    }
    look(s, i);
  }
}

shoal_status shoal_stage_check(const shoal_stage *s, shoal_error *err) {
  return s->vector != NULL ? shoal_vector_check(s->vector, err) : SHOAL_OK;
}

const float *shoal_stage_observations(const shoal_stage *s) {
  return s->vector != NULL ? shoal_vector_observations(s->vector) : s->observations;
}

const float *shoal_stage_last(const shoal_stage *s, uint32_t index) {
  SHOAL_ASSERT(index < s->count);
  return s->vector != NULL ? shoal_vector_last(s->vector, index)
                           : s->last + (size_t)index * s->kind->observation;
}

/* ---- bytes ---- */

size_t shoal_stage_bytes(const shoal_stage *s) {
  if (s->vector != NULL) return shoal_vector_bytes(s->vector);
  size_t bytes = HEAD_BYTES;
  for (uint32_t i = 0; i < s->count; i++)
    bytes += 2 * sizeof(uint32_t) + s->trails[i].steps * action_bytes(s->kind);
  return bytes;
}

static void write_head(const shoal_stage *s, uint64_t seed, uint8_t out[HEAD_BYTES]) {
  memcpy(out, MAGIC, sizeof MAGIC);
  memcpy(out + 8, &seed, sizeof seed);
  memcpy(out + 16, &s->count, sizeof s->count);
  memcpy(out + 20, &s->kind->action_width, sizeof s->kind->action_width);
}

void shoal_stage_save(const shoal_stage *s, void *bytes) {
  if (s->vector != NULL) {
    shoal_vector_save(s->vector, bytes);
    return;
  }
  uint8_t *to = bytes;
  write_head(s, s->seed, to);
  to += HEAD_BYTES;
  for (uint32_t i = 0; i < s->count; i++) {
    const trail *t = &s->trails[i];
    const uint32_t words[2] = {t->episode, t->steps};
    size_t count = (size_t)t->steps * s->kind->action_width;
    memcpy(to, words, sizeof words);
    to += sizeof words;
    for (size_t k = 0; in_bytes(s->kind) && k < count; k++) to[k] = (uint8_t)t->actions[k];
    if (!in_bytes(s->kind)) memcpy(to, t->actions, count * sizeof(float));
    to += t->steps * action_bytes(s->kind);
  }
}

static void get_action(const shoal_env_kind *kind, const uint8_t *from, float *to) {
  if (!in_bytes(kind)) memcpy(to, from, kind->action_width * sizeof *to);
  for (uint32_t k = 0; in_bytes(kind) && k < kind->action_width; k++) to[k] = from[k];
}

/* Whether environment i is on the way: in this episode, and all its actions so far are the first of these. */
static bool is_on_the_way(const shoal_stage *s, uint32_t i, uint32_t episode, uint32_t steps,
                          const uint8_t *actions) {
  const trail *t = &s->trails[i];
  if (t->episode != episode || t->steps > steps) return false;
  uint32_t width = s->kind->action_width;
  for (uint32_t step = 0; step < t->steps; step++) {
    get_action(s->kind, actions + step * action_bytes(s->kind), s->action);
    if (memcmp(s->action, t->actions + (size_t)step * width, width * sizeof(float)) != 0) return false;
  }
  return true;
}

/* Plays what is left of a trail; `stood` says whether its seed is the stage's since before. */
static bool follow(shoal_stage *s, uint32_t i, bool stood, shoal_reader *r) {
  uint32_t episode = shoal_get_u32(r), steps = shoal_get_u32(r);
  if (r->failed || steps >= s->kind->limit) return false;
  size_t each = action_bytes(s->kind);
  const uint8_t *actions = shoal_get(r, steps * each);
  if (actions == NULL) return false;
  if (!stood || !is_on_the_way(s, i, episode, steps, actions)) begin(s, i, episode);
  uint8_t end = SHOAL_GOES_ON;
  float reward;
  while (s->trails[i].steps < steps && end == SHOAL_GOES_ON) {
    get_action(s->kind, actions + s->trails[i].steps * each, s->action);
    if (!shoal_all_finite(s->action, s->kind->action_width)) return false;
    end = act(s, i, s->action, &reward);
  }
  look(s, i);
  return end == SHOAL_GOES_ON;
}

bool shoal_stage_load(shoal_stage *s, const void *bytes, size_t length) {
  if (s->vector != NULL) return shoal_vector_load(s->vector, bytes, length);
  shoal_reader r = shoal_reader_of(bytes, length);
  uint8_t head[HEAD_BYTES];
  const uint8_t *given = shoal_get(&r, HEAD_BYTES);
  if (given == NULL) return false;
  uint64_t seed;
  memcpy(&seed, given + 8, sizeof seed);
  write_head(s, seed, head);
  if (memcmp(given, head, sizeof head) != 0) return false;
  bool stood = seed == s->seed;
  s->seed = seed;
  for (uint32_t i = 0; i < s->count; i++)
    if (!follow(s, i, stood, &r)) {
      shoal_stage_reset(s, seed);
      return false;
    }
  return r.left == 0;
}
