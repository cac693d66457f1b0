/* brief.c: what an actor needs to begin, as JSON and back; see coach.h. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "agent/coach_internal.h"
#include "base/json.h"

enum { BRIEF_BYTES_MAX = 16 << 10, ENVS_MAX = 4096, STEPS_MAX = 65536 };
static const char *const heads[] = {[SHOAL_HEAD_CATEGORICAL] = "categorical",
                                    [SHOAL_HEAD_GREEDY] = "greedy",
                                    [SHOAL_HEAD_GAUSSIAN] = "gaussian",
                                    [SHOAL_HEAD_SQUASHED] = "squashed"};
enum { HEADS = sizeof heads / sizeof heads[0] };

void shoal_actor_brief_write(const shoal_learner_config *config, const shoal_policy_spec *spec, bool exact,
                             uint64_t life, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "env", config->kind->name);
  shoal_json_text(&json, "head", heads[spec->head]);
  shoal_json_bool(&json, "duelling", spec->duelling);
  shoal_json_text(&json, "body", config->settings.body);
  shoal_json_int(&json, "envs", config->settings.envs);
  shoal_json_int(&json, "steps", config->settings.steps);
  shoal_json_bool(&json, "exact", exact);
  if (life != 0) shoal_json_int(&json, "life", (int64_t)life);
  shoal_json_close(&json, '}');
}

static shoal_status wrong(const char *field, shoal_error *err) {
  return shoal_fail(err, SHOAL_INVALID, "a training's brief: '%s' is missing or out of range", field);
}

static shoal_status read_text(const cJSON *json, const char *field, char *out, size_t size,
                              shoal_error *err) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, field));
  if (text == NULL || strlen(text) >= size) return wrong(field, err);
  memcpy(out, text, strlen(text) + 1);
  return SHOAL_OK;
}

static shoal_status read_count(const cJSON *json, const char *field, uint32_t most, uint32_t *out,
                               shoal_error *err) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field);
  double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
  if (!(value >= 1 && value <= most) || floor(value) != value) return wrong(field, err);
  *out = (uint32_t)value;
  return SHOAL_OK;
}

static shoal_status read_head(const cJSON *json, shoal_policy_spec *spec, shoal_error *err) {
  char name[32];
  shoal_status status = read_text(json, "head", name, sizeof name, err);
  if (status != SHOAL_OK) return status;
  for (int i = 0; i < HEADS; i++)
    if (strcmp(heads[i], name) == 0) {
      spec->head = (shoal_head)i;
      return SHOAL_OK;
    }
  return wrong("head", err);
}

static shoal_status read_brief(shoal_actor_brief *out, const cJSON *json, shoal_error *err) {
  shoal_status status = read_text(json, "env", out->env, sizeof out->env, err);
  if (status == SHOAL_OK) status = shoal_env_need(&out->spec.kind, out->env, err);
  if (status == SHOAL_OK) status = read_text(json, "body", out->body, sizeof out->body, err);
  if (status == SHOAL_OK) status = read_head(json, &out->spec, err);
  if (status == SHOAL_OK) status = read_count(json, "envs", ENVS_MAX, &out->envs, err);
  if (status == SHOAL_OK) status = read_count(json, "steps", STEPS_MAX, &out->steps, err);
  out->spec.duelling = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "duelling"));
  out->exact = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "exact"));
  out->spec.body = out->body;
  return status;
}

shoal_status shoal_actor_brief_read(shoal_actor_brief *out, const char *bytes, size_t length,
                                    shoal_error *err) {
  *out = (shoal_actor_brief){0};
  if (length > BRIEF_BYTES_MAX || !shoal_utf8_valid(bytes, length))
    return shoal_fail(err, SHOAL_INVALID, "a training's brief: too long, or no UTF-8");
  cJSON *json = cJSON_ParseWithLength(bytes, length);
  if (json == NULL) return shoal_fail(err, SHOAL_INVALID, "a training's brief: it is no JSON");
  shoal_status status = read_brief(out, json, err);
  cJSON_Delete(json);
  return status;
}
