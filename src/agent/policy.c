/* policy.c: see policy.h.
 *
 * Rows go through in tiles that have room at hand, so that acting allocates nothing. Random numbers of row i
 * at a step are blocks i * blocks, i * blocks + 1, ... of that step (base/random.h).
 *
 * Bytes of a version:
 *
 *   offset  bytes  what
 *        0      8  "shoalpo1"
 *        8     32  SHA-256 of the spec, as a text
 *       40      8  version
 *       48      8  observations seen
 *       56      4  epsilon
 *       60      4  hold
 *       64      8  count of weights
 *       72      4 each: means, then scales, an observation's numbers each; then the weights
 *              32  SHA-256 of everything before */
#include "agent/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bytes.h"
#include "agent/exact_math.h"
#include "agent/likelihood.h"
#include "base/assert.h"
#include "base/hash.h"

static const char MAGIC[8] = "shoalpo1";
enum { TILE = 256, BODY_MAX = 1 << 16 };
static const float OUTPUT_MAX = 1e6f, NOISE_MAX = 10;

struct shoal_policy {
  shoal_policy_spec spec;
  char *body; /* spec.body */
  shoal_brain *net;
  shoal_policy_state state;
  uint32_t outputs, state_floats, memory_floats;
  uint32_t blocks; /* of random numbers, a row's */
  uint8_t fingerprint[SHOAL_SHA256_BYTES];
  /* Of a tile: */
  float *scaled, *raw, *recurrent;
  /* Of a row: */
  double *probs;
  float *noise, *deviations;
};

/* ---- set-up ---- */

static bool chooses(shoal_head head) { return head == SHOAL_HEAD_CATEGORICAL || head == SHOAL_HEAD_GREEDY; }

uint32_t shoal_policy_outputs(const shoal_policy_spec *spec) {
  switch (spec->head) {
  case SHOAL_HEAD_GREEDY: return spec->kind->choices + (spec->duelling ? 1 : 0);
  case SHOAL_HEAD_GAUSSIAN: return spec->kind->action_width;
  case SHOAL_HEAD_SQUASHED: return 2 * spec->kind->action_width;
  default: return spec->kind->choices;
  }
}

/* What a row keeps from step to step beside the recurrent state: how long yet, and what. */
static uint32_t held_floats(const shoal_policy_spec *spec) {
  switch (spec->head) {
  case SHOAL_HEAD_GREEDY: return 2;
  case SHOAL_HEAD_GAUSSIAN:
  case SHOAL_HEAD_SQUASHED: return 1 + spec->kind->action_width;
  default: return 0;
  }
}

static shoal_status check_spec(const shoal_policy_spec *spec, shoal_error *err) {
  const shoal_env_kind *kind = spec->kind;
  if (chooses(spec->head) != (kind->choices > 0))
    return shoal_fail(err, SHOAL_INVALID, "%s has %s, and the policy acts with %s", kind->name,
                      kind->choices > 0 ? "choices" : "continuous actions",
                      chooses(spec->head) ? "choices" : "real numbers");
  if (strlen(spec->body) > BODY_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "the body of a policy has more than %d bytes", BODY_MAX);
  return SHOAL_OK;
}

static bool write_fingerprint(shoal_policy *p) {
  const shoal_env_kind *kind = p->spec.kind;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "%s %u %u %u\nhead %d%s\n%s\n", kind->name, kind->observation, kind->choices,
                  kind->action_width, (int)p->spec.head, p->spec.duelling ? " duelling" : "", p->body);
  bool ok = !text.failed;
  if (ok) shoal_sha256_of(text.bytes, text.length, p->fingerprint);
  shoal_text_release(&text);
  return ok;
}

static bool reserve(shoal_policy *p) {
  uint32_t observation = p->spec.kind->observation, width = p->spec.kind->action_width;
  shoal_policy_state *s = &p->state;
  s->weights_count = shoal_brain_weights_count(p->net) + (p->spec.head == SHOAL_HEAD_GAUSSIAN ? width : 0);
  s->mean = calloc(observation, sizeof *s->mean);
  s->scale = calloc(observation, sizeof *s->scale);
  s->weights = calloc(s->weights_count, sizeof *s->weights);
  p->scaled = calloc((size_t)TILE * observation, sizeof *p->scaled);
  p->raw = calloc((size_t)TILE * p->outputs, sizeof *p->raw);
  p->recurrent = calloc((size_t)TILE * p->state_floats + 1, sizeof *p->recurrent);
  p->probs = calloc(p->outputs, sizeof *p->probs);
  p->noise = calloc(width, sizeof *p->noise);
  p->deviations = calloc(width, sizeof *p->deviations);
  return s->mean != NULL && s->scale != NULL && s->weights != NULL && p->scaled != NULL && p->raw != NULL &&
         p->recurrent != NULL && p->probs != NULL && p->noise != NULL && p->deviations != NULL;
}

shoal_status shoal_policy_create(shoal_policy **out, const shoal_policy_spec *spec, shoal_error *err) {
  *out = NULL;
  shoal_status status = check_spec(spec, err);
  if (status != SHOAL_OK) return status;
  const shoal_env_kind *kind = spec->kind;
  shoal_policy *p = calloc(1, sizeof *p);
  if (p == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a policy");
  p->spec = *spec;
  p->outputs = shoal_policy_outputs(spec);
  p->blocks = (kind->action_width + 1) / 2;
  p->spec.body = p->body = strdup(spec->body);
  if (p->body == NULL) {
    shoal_policy_destroy(p);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a policy");
  }
  shoal_brain_config config = {.name = "policy",
                               .body = p->body,
                               .inputs = kind->observation,
                               .outputs = p->outputs,
                               .steps = 1,
                               .output_scale = 1,
                               .runs_only = true};
  status = shoal_brain_create(&p->net, &config, err);
  if (status == SHOAL_OK) {
    p->state_floats = shoal_brain_state_floats(p->net);
    p->memory_floats = p->state_floats + held_floats(spec);
    if (!reserve(p) || !write_fingerprint(p))
      status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a policy");
  }
  if (status != SHOAL_OK) {
    shoal_policy_destroy(p);
    return status;
  }
  for (uint32_t i = 0; i < kind->observation; i++) p->state.scale[i] = 1;
  memcpy(p->state.weights, shoal_brain_weights(p->net), shoal_brain_weights_count(p->net) * sizeof(float));
  p->state.hold = 1;
  *out = p;
  return SHOAL_OK;
}

void shoal_policy_destroy(shoal_policy *p) {
  if (p == NULL) return;
  shoal_brain_destroy(p->net);
  free(p->state.mean);
  free(p->state.scale);
  free(p->state.weights);
  free(p->scaled);
  free(p->raw);
  free(p->recurrent);
  free(p->probs);
  free(p->noise);
  free(p->deviations);
  free(p->body);
  free(p);
}

const shoal_policy_spec *shoal_policy_spec_of(const shoal_policy *p) { return &p->spec; }
bool shoal_policy_remembers(const shoal_policy *p) { return p->state_floats > 0; }
const struct shoal_graph *shoal_policy_graph(const shoal_policy *p) { return shoal_brain_graph(p->net); }
shoal_policy_state *shoal_policy_state_of(shoal_policy *p) { return &p->state; }
uint32_t shoal_policy_memory_floats(const shoal_policy *p) { return p->memory_floats; }

/* ---- acting ---- */

/* A NaN becomes 0. */
static float cut(float x, float low, float high) {
  if (x < low) return low;
  if (x > high) return high;
  return x == x ? x : 0;
}

void shoal_policy_scale(const shoal_policy *p, uint32_t n, const float *observations, float *out) {
  uint32_t width = p->spec.kind->observation;
  if (p->state.seen == 0) {
    memcpy(out, observations, (size_t)n * width * sizeof *out);
    return;
  }
  for (uint32_t i = 0; i < n; i++, observations += width, out += width)
    for (uint32_t k = 0; k < width; k++)
      out[k] = cut((observations[k] - p->state.mean[k]) * p->state.scale[k], -SHOAL_SEEN_MAX, SHOAL_SEEN_MAX);
}

/* A row on its way through a head. */
typedef struct row {
  const float *raw; /* the network's outputs */
  float *held;      /* floats of its memory; NULL where there are none */
  shoal_key key;
  uint64_t step, block; /* where its random numbers are */
  bool greedy;
  float *action;
  float log_prob;
} row;

static uint32_t largest(uint32_t count, const float *values) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (values[i] > values[best]) best = i;
  return best;
}

/* The choice whose stretch of the probabilities, laid end to end, holds a random number. */
static uint32_t draw(uint32_t count, const double *weights, double sum, const row *r) {
  uint32_t words[4];
  shoal_random_block(r->key, r->step, r->block, words);
  double left = ((double)words[0] + 0.5) * 0x1p-32 * sum;
  for (uint32_t i = 0; i + 1 < count; i++) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return count - 1;
}

static void act_categorical(shoal_policy *p, row *r) {
  uint32_t count = p->spec.kind->choices, choice = largest(count, r->raw);
  double most = r->raw[choice], sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += p->probs[i] = shoal_exact_exp(r->raw[i] - most);
  if (!r->greedy) choice = draw(count, p->probs, sum, r);
  *r->action = (float)choice;
  r->log_prob = (float)(r->raw[choice] - (most + shoal_exact_log(sum)));
}

static float held_for(const shoal_policy *p) { return p->state.hold > 1 ? (float)(p->state.hold - 1) : 0; }

/* Memory may come from elsewhere: what is held is cut to what can be. */
static void act_greedy(shoal_policy *p, row *r) {
  uint32_t count = p->spec.kind->choices, words[4];
  r->log_prob = 0;
  *r->action = (float)largest(count, r->raw);
  if (r->greedy) return;
  if (r->held[0] >= 1) {
    r->held[0] -= 1;
    *r->action = floorf(cut(r->held[1], 0, (float)(count - 1)));
    return;
  }
  shoal_random_block(r->key, r->step, r->block, words);
  if ((double)words[0] * 0x1p-32 >= (double)p->state.epsilon) return;
  *r->action = (float)((uint64_t)words[1] * count >> 32);
  r->held[0] = held_for(p);
  r->held[1] = *r->action;
}

static float normal_of(uint32_t high, uint32_t low) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return (float)shoal_normal_quantile(((double)(bits >> 12) + 0.5) * 0x1p-52);
}

/* Noise for a row, new or held, into p->noise. */
static void make_noise(shoal_policy *p, row *r) {
  uint32_t width = p->spec.kind->action_width, words[4];
  if (r->greedy) {
    memset(p->noise, 0, width * sizeof *p->noise);
    return;
  }
  if (r->held[0] >= 1) {
    r->held[0] -= 1;
    for (uint32_t i = 0; i < width; i++) p->noise[i] = cut(r->held[1 + i], -NOISE_MAX, NOISE_MAX);
    return;
  }
  for (uint32_t i = 0; i < width; i++) {
    if (i % 2 == 0) shoal_random_block(r->key, r->step, r->block + i / 2, words);
    p->noise[i] = normal_of(words[i % 2 * 2], words[i % 2 * 2 + 1]);
  }
  if (p->state.hold <= 1) return;
  r->held[0] = held_for(p);
  memcpy(r->held + 1, p->noise, width * sizeof *p->noise);
}

static void cut_deviations(shoal_policy *p, const float *logs) {
  for (uint32_t i = 0; i < p->spec.kind->action_width; i++)
    p->deviations[i] = cut(logs[i], SHOAL_LOG_DEVIATION_MIN, SHOAL_LOG_DEVIATION_MAX);
}

static void act_gaussian(shoal_policy *p, row *r) {
  uint32_t width = p->spec.kind->action_width;
  cut_deviations(p, p->state.weights + shoal_brain_weights_count(p->net));
  make_noise(p, r);
  for (uint32_t i = 0; i < width; i++)
    r->action[i] = (float)(r->raw[i] + shoal_exact_exp(p->deviations[i]) * p->noise[i]);
  r->log_prob = (float)shoal_likelihood_normal(width, r->raw, p->deviations, r->action).log_prob;
}

/* The density of a = tanh(u) is that of u over the slope of tanh, 1 - a^2: its logarithm is
 * 2 (log 2 - |u| - log(1 + e^(-2 |u|))), which holds for large u as well. */
static void act_squashed(shoal_policy *p, row *r) {
  const shoal_env_kind *kind = p->spec.kind;
  uint32_t width = kind->action_width;
  const double half_log_two_pi = 0.91893853320467274178, log_two = 0.69314718055994530942;
  double middle = 0.5 * ((double)kind->action_low + kind->action_high);
  double half = 0.5 * ((double)kind->action_high - kind->action_low), log_prob = 0;
  cut_deviations(p, r->raw + width);
  make_noise(p, r);
  for (uint32_t i = 0; i < width; i++) {
    double z = p->noise[i], u = r->raw[i] + shoal_exact_exp(p->deviations[i]) * z;
    double e = shoal_exact_exp(-2 * fabs(u)), tanh_u = (1 - e) / (1 + e);
    double log_slope = 2 * (log_two - fabs(u) - shoal_exact_log(1 + e));
    log_prob -= 0.5 * z * z + p->deviations[i] + half_log_two_pi + log_slope;
    r->action[i] = (float)(middle + half * (u < 0 ? -tanh_u : tanh_u));
  }
  r->log_prob = (float)log_prob;
}

static void act_row(shoal_policy *p, row *r) {
  switch (p->spec.head) {
  case SHOAL_HEAD_CATEGORICAL: act_categorical(p, r); break;
  case SHOAL_HEAD_GREEDY: act_greedy(p, r); break;
  case SHOAL_HEAD_GAUSSIAN: act_gaussian(p, r); break;
  case SHOAL_HEAD_SQUASHED: act_squashed(p, r); break;
  }
}

/* The network on a tile; its state is the front of each row's memory. */
static void run_net(shoal_policy *p, uint32_t n, const float *observations, float *memory) {
  size_t width = p->state_floats;
  float *state = width == 0 ? NULL : width == p->memory_floats ? memory : p->recurrent;
  shoal_policy_scale(p, n, observations, p->scaled);
  for (uint32_t i = 0; state == p->recurrent && i < n; i++)
    memcpy(state + i * width, memory + (size_t)i * p->memory_floats, width * sizeof *state);
  shoal_brain_run(p->net, p->state.weights, n, p->scaled, state, p->raw);
  for (uint32_t i = 0; state == p->recurrent && i < n; i++)
    memcpy(memory + (size_t)i * p->memory_floats, state + i * width, width * sizeof *state);
  for (size_t i = 0; i < (size_t)n * p->outputs; i++) p->raw[i] = cut(p->raw[i], -OUTPUT_MAX, OUTPUT_MAX);
}

void shoal_policy_act(shoal_policy *p, uint32_t n, const float *observations, float *memory, shoal_key key,
                      uint64_t step, bool greedy, float *actions, float *log_probs) {
  SHOAL_ASSERT(p->memory_floats == 0 || memory != NULL);
  uint32_t observation = p->spec.kind->observation, width = p->spec.kind->action_width;
  for (uint32_t first = 0; first < n; first += TILE) {
    uint32_t count = n - first < TILE ? n - first : TILE;
    float *tile_memory = p->memory_floats > 0 ? memory + (size_t)first * p->memory_floats : NULL;
    run_net(p, count, observations + (size_t)first * observation, tile_memory);
    for (uint32_t i = 0; i < count; i++) {
      row r = {.raw = p->raw + (size_t)i * p->outputs,
               .key = key,
               .step = step,
               .block = (uint64_t)(first + i) * p->blocks,
               .greedy = greedy,
               .action = actions + (size_t)(first + i) * width};
      if (p->memory_floats > p->state_floats)
        r.held = tile_memory + (size_t)i * p->memory_floats + p->state_floats;
      act_row(p, &r);
      if (log_probs != NULL) log_probs[first + i] = r.log_prob;
    }
  }
}

/* ---- bytes ---- */

void shoal_policy_write(const shoal_policy *p, shoal_text *out) {
  const shoal_policy_state *s = &p->state;
  size_t start = out->length;
  shoal_text_add(out, MAGIC, sizeof MAGIC);
  shoal_text_add(out, p->fingerprint, sizeof p->fingerprint);
  shoal_put_u64(out, s->version);
  shoal_put_u64(out, s->seen);
  shoal_put_f32(out, s->epsilon);
  shoal_put_u32(out, s->hold);
  shoal_put_u64(out, s->weights_count);
  shoal_put_f32s(out, s->mean, p->spec.kind->observation);
  shoal_put_f32s(out, s->scale, p->spec.kind->observation);
  shoal_put_f32s(out, s->weights, s->weights_count);
  if (out->failed) return;
  uint8_t hash[SHOAL_SHA256_BYTES];
  shoal_sha256_of(out->bytes + start, out->length - start, hash);
  shoal_text_add(out, hash, sizeof hash);
}

static shoal_status refused(shoal_error *err, const char *what) {
  return shoal_fail(err, SHOAL_INVALID, "a policy's bytes: %s", what);
}

shoal_status shoal_policy_read(shoal_policy *p, const void *bytes, size_t length, shoal_error *err) {
  shoal_policy_state *s = &p->state;
  uint32_t observation = p->spec.kind->observation;
  size_t floats = 2 * (size_t)observation + s->weights_count;
  shoal_reader r = shoal_reader_of(bytes, length);
  const uint8_t *magic = shoal_get(&r, sizeof MAGIC), *fingerprint = shoal_get(&r, SHOAL_SHA256_BYTES);
  uint64_t version = shoal_get_u64(&r), seen = shoal_get_u64(&r);
  float epsilon = shoal_get_f32(&r);
  uint32_t hold = shoal_get_u32(&r);
  uint64_t weights_count = shoal_get_u64(&r);
  if (r.failed || memcmp(magic, MAGIC, sizeof MAGIC) != 0)
    return refused(err, "they do not begin as one does");
  if (memcmp(fingerprint, p->fingerprint, SHOAL_SHA256_BYTES) != 0)
    return refused(err, "it is for another environment or has another network");
  const uint8_t *values = shoal_get(&r, floats * sizeof(float));
  const uint8_t *hash = shoal_get(&r, SHOAL_SHA256_BYTES);
  if (r.failed || r.left != 0 || weights_count != s->weights_count)
    return refused(err, "their length is wrong");
  uint8_t own[SHOAL_SHA256_BYTES];
  shoal_sha256_of(bytes, length - SHOAL_SHA256_BYTES, own);
  if (memcmp(hash, own, sizeof own) != 0) return refused(err, "they are damaged");
  if (!(epsilon >= 0 && epsilon <= 1)) return refused(err, "epsilon is not between 0 and 1");
  if (hold < 1 || hold > SHOAL_HOLD_MAX) return refused(err, "hold is 0 or far too large");
  if (!shoal_all_finite(values, floats)) return refused(err, "not all numbers are finite");
  s->version = version;
  s->seen = seen;
  s->epsilon = epsilon;
  s->hold = hold;
  memcpy(s->mean, values, observation * sizeof(float));
  memcpy(s->scale, values + observation * sizeof(float), observation * sizeof(float));
  memcpy(s->weights, values + 2 * (size_t)observation * sizeof(float), s->weights_count * sizeof(float));
  return SHOAL_OK;
}
