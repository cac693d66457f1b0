/* agent_spec.c: see agent_spec.h. */
#include "server/agent_spec.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_trainer.h"
#include "agent/bridge.h"
#include "server/spec_read.h"

enum { ENV_NAME_MAX = 100, ALGORITHM_NAME_MAX = 32, ROLLOUT_BYTES_MAX = 16 << 20 };
enum { WEIGHTS_MAX = 4 << 20 }; /* of a network; a learner has it a dozen times */
static const uint64_t steps_max = 1000000000000000;
static const double replay_bytes_max = 1 << 30, versions_bytes_max = 256 << 20, course_bytes_max = 1 << 30;

static const char *const fields[] = {"kind",    "name",    "env",          "algorithm",  "seed",
                                     "seconds", "steps",   "until_solved", "exact",      "settings",
                                     "body",    "private", "workers_min",  "workers_max"};

/* ---- reading ---- */

typedef struct reading {
  shoal_spec_reader in;
  shoal_agent_spec *spec;
} reading;

static shoal_status wrong(const reading *r, const char *field, const char *text) {
  return shoal_spec_wrong(&r->in, field, text);
}

/* Strangers' names bring in no Python. */
static shoal_status refuse_bridged(const char *name, shoal_error *err) {
  char plain[ENV_NAME_MAX + 1];
  shoal_text_plain(plain, sizeof plain, name, strlen(name));
  return shoal_fail(
      err, SHOAL_INVALID,
      "\"env\" %s is played by Python, and volunteers run nothing but environments that are built "
      "in (GET /api/v1/envs); 'shoal agent train' trains it on one machine",
      plain);
}

static shoal_status read_env(reading *r) {
  shoal_text name = {0};
  shoal_status status = shoal_spec_read_text(&r->in, "env", ENV_NAME_MAX, &name);
  if (status == SHOAL_OK && name.length == 0)
    status = wrong(r, "env", "is missing: where to act, as 'shoal agent list' has it");
  else if (status == SHOAL_OK && shoal_env_is_bridged(name.bytes))
    status = shoal_spec_blame(&r->in, "env", refuse_bridged(name.bytes, r->in.err));
  else if (status == SHOAL_OK)
    status = shoal_spec_blame(&r->in, "env", shoal_env_need(&r->spec->kind, name.bytes, r->in.err));
  shoal_text_release(&name);
  return status;
}

/* What suits the environment, under the algorithm that is said or the usual one. */
static shoal_status read_algorithm(reading *r) {
  shoal_algorithm algorithm = SHOAL_ALGORITHMS;
  shoal_text name = {0};
  shoal_status status = shoal_spec_read_text(&r->in, "algorithm", ALGORITHM_NAME_MAX, &name);
  if (status == SHOAL_OK && name.length > 0 && !shoal_algorithm_parse(name.bytes, &algorithm)) {
    char names[SHOAL_ALGORITHM_NAMES_MAX], text[SHOAL_ALGORITHM_NAMES_MAX + 16];
    shoal_algorithm_names(names);
    snprintf(text, sizeof text, "must be %s", names);
    status = wrong(r, "algorithm", text);
  }
  if (status == SHOAL_OK)
    status = shoal_spec_blame(&r->in, "algorithm",
                              shoal_agent_defaults(r->spec->kind, algorithm, &r->spec->settings, r->in.err));
  shoal_text_release(&name);
  return status;
}

/* A value of JSON as `--set` has it; false: it is none, or too long. */
static bool word_of(const cJSON *item, char out[SHOAL_AGENT_WORD_MAX]) {
  int length = -1;
  if (cJSON_IsString(item))
    length = snprintf(out, SHOAL_AGENT_WORD_MAX, "%s", item->valuestring);
  else if (cJSON_IsBool(item))
    length = snprintf(out, SHOAL_AGENT_WORD_MAX, "%s", cJSON_IsTrue(item) ? "yes" : "no");
  else if (cJSON_IsNumber(item) && item->valuedouble == floor(item->valuedouble))
    length = snprintf(out, SHOAL_AGENT_WORD_MAX, "%.0f", item->valuedouble);
  else if (cJSON_IsNumber(item))
    length = snprintf(out, SHOAL_AGENT_WORD_MAX, "%.9g", item->valuedouble);
  return length >= 0 && length < SHOAL_AGENT_WORD_MAX;
}

static shoal_status read_setting(reading *r, const cJSON *item) {
  shoal_agent_said *said = &r->spec->said[r->spec->said_count];
  if (strcmp(item->string, "body") == 0)
    return wrong(r, "settings", "has a body, which is a field of its own");
  if (strlen(item->string) >= SHOAL_AGENT_WORD_MAX || !word_of(item, said->value))
    return wrong(r, "settings",
                 "has a name that is too long, or a value that is no text, number, true or false");
  snprintf(said->name, sizeof said->name, "%s", item->string);
  shoal_status status = shoal_agent_set(&r->spec->settings, said->name, said->value, r->in.err);
  r->spec->said_count += status == SHOAL_OK;
  return shoal_spec_blame(&r->in, "settings", status);
}

static shoal_status read_settings(reading *r) {
  const cJSON *map = shoal_spec_find(&r->in, "settings");
  if (map == NULL) return SHOAL_OK;
  if (!cJSON_IsObject(map)) return wrong(r, "settings", "must be an object, as in {\"rate\": 0.001}");
  if (cJSON_GetArraySize(map) > SHOAL_AGENT_SAID_MAX) return wrong(r, "settings", "says too much");
  r->spec->said = calloc((size_t)cJSON_GetArraySize(map) + 1, sizeof *r->spec->said);
  if (r->spec->said == NULL) return shoal_fail(r->in.err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = SHOAL_OK;
  for (const cJSON *item = map->child; item != NULL && status == SHOAL_OK; item = item->next)
    status = read_setting(r, item);
  return status;
}

static shoal_status read_body(reading *r) {
  shoal_text *body = &r->spec->body;
  shoal_status status = shoal_spec_read_text(&r->in, "body", sizeof r->spec->settings.body - 1, body);
  if (status == SHOAL_OK && body->length > 0) memcpy(r->spec->settings.body, body->bytes, body->length + 1);
  return status;
}

static shoal_status read_numbers(reading *r) {
  shoal_agent_spec *s = r->spec;
  const shoal_spec_reader *in = &r->in;
  shoal_status status = shoal_spec_read_flag(in, "private", &s->is_private);
  if (status == SHOAL_OK) status = shoal_spec_read_flag(in, "until_solved", &s->until_solved);
  if (status == SHOAL_OK) status = shoal_spec_read_flag(in, "exact", &s->exact);
  if (status == SHOAL_OK) status = shoal_spec_read_u64(in, "seed", &s->seed);
  if (status == SHOAL_OK)
    status = shoal_spec_read_number(in, "seconds", 0, SHOAL_AGENT_SECONDS_MAX, false, &s->seconds);
  if (status == SHOAL_OK) status = shoal_spec_read_u64(in, "steps", &s->steps);
  if (status == SHOAL_OK && s->steps > steps_max)
    status = wrong(r, "steps", "must be at most 1,000,000,000,000,000");
  if (status == SHOAL_OK) status = shoal_spec_read_workers(in, &s->workers_min, &s->workers_max);
  return status;
}

static shoal_status read_all(reading *r) {
  shoal_status status =
      shoal_spec_check_fields(&r->in, fields, sizeof fields / sizeof fields[0], "a training of an agent");
  if (status == SHOAL_OK) status = read_env(r);
  if (status == SHOAL_OK) status = shoal_spec_read_name(&r->in, r->spec->kind->name, &r->spec->name);
  if (status == SHOAL_OK) status = read_algorithm(r);
  if (status == SHOAL_OK) status = read_settings(r);
  if (status == SHOAL_OK) status = read_body(r);
  if (status == SHOAL_OK) status = read_numbers(r);
  return status;
}

shoal_status shoal_agent_spec_parse(shoal_agent_spec *out, const char *json, size_t length,
                                    shoal_spec_fault *fault, shoal_error *err) {
  shoal_agent_spec spec = {
      .seed = 1, .until_solved = true, .workers_min = 1, .workers_max = SHOAL_SPEC_WORKERS_MAX};
  *fault = (shoal_spec_fault){0};
  cJSON *tree = cJSON_ParseWithLength(json, length);
  if (tree == NULL) return shoal_fail(err, SHOAL_INVALID, "the body is no JSON");
  reading r = {{tree, fault, err}, &spec};
  shoal_status status = read_all(&r);
  cJSON_Delete(tree);
  if (status == SHOAL_OK)
    *out = spec;
  else
    shoal_agent_spec_release(&spec);
  return status;
}

void shoal_agent_spec_release(shoal_agent_spec *spec) {
  shoal_text_release(&spec->name);
  shoal_text_release(&spec->body);
  free(spec->said);
  spec->said = NULL;
  spec->said_count = 0;
}

/* ---- writing ---- */

void shoal_agent_spec_write(const shoal_agent_spec *spec, shoal_json *json) {
  shoal_json_text(json, "kind", "agent");
  shoal_json_text(json, "name", spec->name.bytes);
  shoal_json_text(json, "env", spec->kind->name);
  shoal_json_text(json, "algorithm", shoal_algorithm_name(spec->settings.algorithm));
  shoal_json_int(json, "seed", (int64_t)spec->seed);
  shoal_json_real(json, "seconds", spec->seconds);
  shoal_json_int(json, "steps", (int64_t)spec->steps);
  shoal_json_bool(json, "until_solved", spec->until_solved);
  shoal_json_bool(json, "exact", spec->exact);
  shoal_json_open(json, "settings", '{');
  for (size_t i = 0; i < spec->said_count; i++)
    shoal_json_text(json, spec->said[i].name, spec->said[i].value);
  shoal_json_close(json, '}');
  if (spec->body.length > 0) shoal_json_text(json, "body", spec->body.bytes);
  shoal_json_int(json, "workers_min", spec->workers_min);
  shoal_json_int(json, "workers_max", spec->workers_max);
  shoal_json_bool(json, "private", spec->is_private);
}

/* ---- what follows from it ---- */

uint64_t shoal_agent_spec_steps(const shoal_agent_spec *spec) {
  return spec->steps > 0 ? spec->steps : spec->settings.budget;
}

shoal_learner_config shoal_agent_spec_learner(const shoal_agent_spec *spec, uint32_t threads) {
  shoal_learner_config config = {.kind = spec->kind,
                                 .settings = spec->settings,
                                 .seed = spec->seed,
                                 .steps_all = shoal_agent_spec_steps(spec),
                                 .threads = threads};
  if (config.settings.lag_max > SHOAL_CHECKED_LAG_MAX) config.settings.lag_max = SHOAL_CHECKED_LAG_MAX;
  return config;
}

uint64_t shoal_agent_rollout_bytes_max(const shoal_rollout_shape *shape) {
  enum {
    HEAD = 4096,
    ROW = 24,
    STREAM_ROW = 128
  }; /* what else a row, and an environment's state, may have */
  const shoal_env_kind *kind = shape->kind;
  uint64_t rows = ((uint64_t)shape->steps + 1) * shape->envs, number = sizeof(float);
  uint64_t row = ROW + number * (2 * (uint64_t)kind->observation + kind->action_width);
  uint64_t state = kind->bytes + STREAM_ROW + number * 2 * shape->memory_floats +
                   number * (uint64_t)kind->limit * kind->action_width;
  return HEAD + rows * row + shape->envs * state;
}

/* Rows that dqn and sac keep: what was seen, twice, and some numbers. */
static double replay_bytes(const shoal_agent_spec *spec) {
  bool keeps = spec->settings.algorithm == SHOAL_DQN || spec->settings.algorithm == SHOAL_SAC;
  double row = 2.0 * spec->kind->observation + spec->kind->action_width + 4;
  return keeps ? spec->settings.memory * row * sizeof(float) : 0;
}

static shoal_status check_replay(const shoal_agent_spec *spec, shoal_error *err) {
  if (replay_bytes(spec) <= replay_bytes_max) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "memory: %u steps are more than a GB; keep fewer",
                    spec->settings.memory);
}

/* Of every stream as many may be there as course.h says. */
static shoal_status check_rollouts(const shoal_rollout_shape *shape, const shoal_agent_settings *settings,
                                   bool exact, shoal_error *err) {
  uint32_t streams = settings->streams;
  uint64_t bytes = shoal_agent_rollout_bytes_max(shape);
  if (bytes > ROLLOUT_BYTES_MAX)
    return shoal_fail(
        err, SHOAL_INVALID,
        "a rollout of %u envs x %u steps has more than %d MB; set fewer of them, and more streams",
        shape->envs, shape->steps, ROLLOUT_BYTES_MAX >> 20);
  double room = exact ? settings->lag + 1.0 : 2.0;
  if (room * streams * (double)bytes <= course_bytes_max) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "rollouts of %u streams x %u envs x %u steps are more than %.0f MB; set fewer of them",
                    streams, shape->envs, shape->steps, course_bytes_max / (1 << 20));
}

/* As many versions of the policy are kept as rollouts may be behind. */
static shoal_status check_weights(uint64_t weights, uint32_t lag_max, shoal_error *err) {
  if ((double)weights * sizeof(float) * (lag_max + 2) > versions_bytes_max)
    return shoal_fail(err, SHOAL_INVALID,
                      "%u versions of a policy of %" PRIu64
                      " weights are more than %.0f MB; choose a smaller "
                      "body, or set a smaller lag_max",
                      lag_max + 2, weights, versions_bytes_max / (1 << 20));
  if (weights <= WEIGHTS_MAX) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "the body has %" PRIu64 " weights, and may have %d; choose a smaller one", weights,
                    WEIGHTS_MAX);
}

/* From the texts alone, before anything is made that could be large. */
static shoal_status check_body(const shoal_learner_config *config, bool exact, shoal_error *err) {
  const shoal_env_kind *kind = config->kind;
  uint32_t outputs = kind->choices > 0 ? kind->choices + 1 : 2 * kind->action_width; /* at most */
  const shoal_brain_config brain = {.name = "policy",
                                    .body = config->settings.body,
                                    .inputs = kind->observation,
                                    .outputs = outputs,
                                    .steps = 1};
  uint64_t weights;
  shoal_rollout_shape shape = {.kind = kind, .envs = config->settings.envs, .steps = config->settings.steps};
  shoal_status status = shoal_brain_measure(&brain, &weights, &shape.memory_floats, err);
  if (status == SHOAL_OK) status = check_weights(weights, config->settings.lag_max, err);
  return status == SHOAL_OK ? check_rollouts(&shape, &config->settings, exact, err) : status;
}

static shoal_status try_learner(const shoal_learner_config *config, bool exact, shoal_error *err) {
  shoal_learner *learner = NULL;
  shoal_status status = check_body(config, exact, err);
  if (status == SHOAL_OK) status = shoal_learner_create(&learner, config, err);
  if (status == SHOAL_OK) {
    const shoal_rollout_shape shape = shoal_learner_shape(learner);
    status = check_rollouts(&shape, &config->settings, exact, err);
  }
  shoal_learner_destroy(learner);
  return status;
}

/* Whether all would be well with the usual body. */
static bool is_the_body(const shoal_agent_spec *spec) {
  shoal_agent_settings usual;
  shoal_learner_config config = shoal_agent_spec_learner(spec, 1);
  if (spec->body.length == 0 ||
      shoal_agent_defaults(spec->kind, spec->settings.algorithm, &usual, NULL) != SHOAL_OK)
    return false;
  memcpy(config.settings.body, usual.body, sizeof usual.body);
  return try_learner(&config, spec->exact, NULL) == SHOAL_OK;
}

shoal_status shoal_agent_spec_try(const shoal_agent_spec *spec, shoal_spec_fault *fault, shoal_error *err) {
  const shoal_learner_config config = shoal_agent_spec_learner(spec, 1);
  *fault = (shoal_spec_fault){0};
  shoal_status status = check_replay(spec, err), replay = status;
  if (status == SHOAL_OK) status = try_learner(&config, spec->exact, err);
  if (status == SHOAL_INVALID || status == SHOAL_LIMIT)
    snprintf(fault->field, sizeof fault->field, "%s",
             replay == SHOAL_OK && is_the_body(spec) ? "body" : "settings");
  return status;
}
