/* spec.c: see spec.h. */
#include "server/spec.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "nn/trainer.h"
#include "proto/codec.h"
#include "proto/mode.h"

/* Fields that are settings of the model's recipe, in the order in which they are applied: an optimiser
 * brings its own rate. */
static const struct {
  const char *field, *setting;
} settings[] = {
    {"optimizer", "optimizer"}, {"rate", "rate"},
    {"schedule", "schedule"},   {"l2", "l2"},
    {"clip", "clip"},           {"epochs", "epochs"},
    {"batch", "batch"},         {"seed", "seed"},
    {"shuffle", "shuffle"},     {"early_stop", "early-stop"},
};
enum { SETTINGS = sizeof settings / sizeof settings[0], VALUE_MAX = 256 };

static const char *const others[] = {"name", "model",       "data",        "target",  "valid", "mode",
                                     "wire", "workers_min", "workers_max", "private", "guard", "rule"};
enum { OTHERS = sizeof others / sizeof others[0] };

/* ---- names and places ---- */

bool shoal_spec_name_is_good(const char *name) {
  size_t length = strlen(name);
  if (length == 0 || length > SHOAL_SPEC_NAME_MAX || name[0] == '.' || name[0] == ' ' ||
      name[length - 1] == ' ' || !shoal_utf8_valid(name, length))
    return false;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)name[i];
    if (c < ' ' || c == 127 || strchr("/\\:*?\"<>|%#", c) != NULL) return false;
  }
  return true;
}

void shoal_spec_place(const char *name, const shoal_error *err, uint32_t *line, uint32_t *column,
                      const char **text) {
  *line = *column = 0;
  *text = err->text;
  size_t length = strlen(name);
  unsigned at_line, at_column;
  int used = 0;
  if (strncmp(err->text, name, length) != 0 ||
      sscanf(err->text + length, ":%u:%u: %n", &at_line, &at_column, &used) != 2 || used == 0)
    return;
  *line = at_line;
  *column = at_column;
  *text = err->text + length + used;
}

/* ---- reading ---- */

typedef struct reading {
  shoal_spec *spec;
  const cJSON *json;
  shoal_spec_fault *fault;
  shoal_error *err;
} reading;

static shoal_status wrong(reading *r, const char *field, const char *text) {
  snprintf(r->fault->field, sizeof r->fault->field, "%s", field);
  return shoal_fail(r->err, SHOAL_INVALID, "\"%s\" %s", field, text);
}

/* Nothing, as for null, leaves *out NULL. */
static shoal_status read_text(reading *r, const char *field, const char **out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->json, field);
  *out = NULL;
  if (item == NULL || cJSON_IsNull(item)) return SHOAL_OK;
  if (!cJSON_IsString(item)) return wrong(r, field, "must be a text");
  *out = item->valuestring;
  return SHOAL_OK;
}

static shoal_status read_whole(reading *r, const char *field, uint32_t least, uint32_t most, uint32_t *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->json, field);
  if (item == NULL || cJSON_IsNull(item)) return SHOAL_OK;
  char text[64];
  snprintf(text, sizeof text, "must be a whole number from %u to %u", least, most);
  if (!cJSON_IsNumber(item)) return wrong(r, field, text);
  double value = item->valuedouble;
  if (!(value >= least && value <= most) || value != floor(value)) return wrong(r, field, text);
  *out = (uint32_t)value;
  return SHOAL_OK;
}

static shoal_status check_fields(reading *r) {
  for (const cJSON *item = r->json->child; item != NULL; item = item->next) {
    bool known = false;
    for (size_t i = 0; i < SETTINGS && !known; i++) known = strcmp(item->string, settings[i].field) == 0;
    for (size_t i = 0; i < OTHERS && !known; i++) known = strcmp(item->string, others[i]) == 0;
    if (known) continue;
    char field[32];
    shoal_text_plain(field, sizeof field, item->string, strlen(item->string));
    return wrong(r, field, "is no field of a job");
  }
  return SHOAL_OK;
}

static shoal_status read_model(reading *r) {
  const char *text;
  shoal_status status = read_text(r, "model", &text);
  if (status != SHOAL_OK) return status;
  if (text == NULL) return wrong(r, "model", "is missing: the text of the network");
  if (strlen(text) > SHOAL_SPEC_MODEL_MAX) return wrong(r, "model", "is longer than 1 MB");
  status = shoal_model_parse(&r->spec->parsed, "model", text, strlen(text), r->err);
  if (status == SHOAL_OK) return SHOAL_OK;
  const char *reason;
  snprintf(r->fault->field, sizeof r->fault->field, "model");
  shoal_spec_place("model", r->err, &r->fault->line, &r->fault->column, &reason);
  return status;
}

/* A setting's value as a line of the model's text would have it. */
static shoal_status apply_setting(reading *r, size_t index) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->json, settings[index].field);
  if (item == NULL || cJSON_IsNull(item)) return SHOAL_OK;
  char value[VALUE_MAX];
  if (cJSON_IsNumber(item))
    snprintf(value, sizeof value, "%.17g", item->valuedouble);
  else if (cJSON_IsString(item) && strlen(item->valuestring) < sizeof value)
    snprintf(value, sizeof value, "%s", item->valuestring);
  else
    return wrong(r, settings[index].field, "must be a number or a short text");
  shoal_status status =
      shoal_model_set(r->spec->parsed, settings[index].field, settings[index].setting, value, r->err);
  if (status != SHOAL_OK) snprintf(r->fault->field, sizeof r->fault->field, "%s", settings[index].field);
  return status;
}

static shoal_status read_names(reading *r) {
  shoal_spec *spec = r->spec;
  const char *name, *data, *target;
  shoal_status status = read_text(r, "name", &name);
  if (status == SHOAL_OK) status = read_text(r, "data", &data);
  if (status == SHOAL_OK) status = read_text(r, "target", &target);
  if (status != SHOAL_OK) return status;
  /* Whether there is such a set is for datasets.h to say. */
  if (data == NULL || data[0] == 0 || strlen(data) > SHOAL_SPEC_NAME_MAX)
    return wrong(r, "data", "must be the name of a data set");
  if (name == NULL) name = data;
  if (!shoal_spec_name_is_good(name))
    return wrong(r, "name", "must have 1 to 64 characters, none of them / \\ : * ? \" < > | % #");
  if (target != NULL && strlen(target) > 1000) return wrong(r, "target", "is too long");
  shoal_text_addf(&spec->name, "%s", name);
  shoal_text_addf(&spec->data, "%s", data);
  if (target != NULL) shoal_text_addf(&spec->target, "%s", target);
  return SHOAL_OK;
}

/* Whether volunteers are believed, and how what they send becomes one. How many parts a rule needs is seen when the job
 * starts. */
static shoal_status read_guard(reading *r, shoal_mode_kind mode) {
  const cJSON *guard = cJSON_GetObjectItemCaseSensitive(r->json, "guard");
  const char *rule;
  shoal_error why;
  if (guard != NULL && !cJSON_IsNull(guard) && !cJSON_IsBool(guard))
    return wrong(r, "guard", "must be true or false");
  r->spec->guarded = !cJSON_IsFalse(guard);
  shoal_status status = read_text(r, "rule", &rule);
  if (status != SHOAL_OK || rule == NULL) return status;
  if (shoal_rule_parse(rule, &r->spec->rule, &why) != SHOAL_OK) return wrong(r, "rule", why.text);
  bool is_mean = r->spec->rule.kind == SHOAL_RULE_MEAN && r->spec->rule.bucket <= 1;
  if (mode == SHOAL_ASYNC && !is_mean)
    return wrong(r, "rule", "has nothing to compare in mode async, where contributions come one by one");
  return SHOAL_OK;
}

static shoal_status read_way(reading *r) {
  shoal_spec *spec = r->spec;
  const char *mode, *wire;
  shoal_mode parsed;
  shoal_wire_format format;
  shoal_status status = read_text(r, "mode", &mode);
  if (status == SHOAL_OK) status = read_text(r, "wire", &wire);
  if (status != SHOAL_OK) return status;
  if (mode == NULL) mode = "sync";
  if (wire == NULL) wire = "f32";
  if (strlen(mode) >= sizeof spec->mode || shoal_mode_parse(mode, &parsed, NULL) != SHOAL_OK)
    return wrong(r, "mode", "must be sync, stale:N, async or local:H");
  if (strlen(wire) >= sizeof spec->wire || !shoal_codec_named(wire, &format))
    return wrong(r, "wire", "must be f32, bf16, int8 or topk");
  status = read_guard(r, parsed.kind);
  if (status != SHOAL_OK) return status;
  snprintf(spec->mode, sizeof spec->mode, "%s", mode);
  snprintf(spec->wire, sizeof spec->wire, "%s", wire);
  return SHOAL_OK;
}

static shoal_status read_numbers(reading *r) {
  shoal_spec *spec = r->spec;
  const cJSON *valid = cJSON_GetObjectItemCaseSensitive(r->json, "valid");
  if (valid != NULL && !cJSON_IsNull(valid)) {
    if (!cJSON_IsNumber(valid) || !(valid->valuedouble >= 0 && valid->valuedouble <= 0.9))
      return wrong(r, "valid", "must be a share from 0 to 0.9");
    spec->valid_share = valid->valuedouble;
  }
  const cJSON *private = cJSON_GetObjectItemCaseSensitive(r->json, "private");
  if (private != NULL && !cJSON_IsBool(private)) return wrong(r, "private", "must be true or false");
  spec->is_private = cJSON_IsTrue(private);
  shoal_status status = read_whole(r, "workers_min", 1, SHOAL_SPEC_WORKERS_MAX, &spec->workers_min);
  if (status == SHOAL_OK)
    status = read_whole(r, "workers_max", 1, SHOAL_SPEC_WORKERS_MAX, &spec->workers_max);
  if (status == SHOAL_OK && spec->workers_max < spec->workers_min)
    return wrong(r, "workers_max", "must not be less than \"workers_min\"");
  return status;
}

static shoal_status read_all(reading *r) {
  if (!cJSON_IsObject(r->json)) return shoal_fail(r->err, SHOAL_INVALID, "the body is no JSON object");
  shoal_status status = check_fields(r);
  if (status == SHOAL_OK) status = read_names(r);
  if (status == SHOAL_OK) status = read_model(r);
  for (size_t i = 0; i < SETTINGS && status == SHOAL_OK; i++) status = apply_setting(r, i);
  if (status == SHOAL_OK) status = read_way(r);
  if (status == SHOAL_OK) status = read_numbers(r);
  if (status != SHOAL_OK) return status;
  shoal_model_write(r->spec->parsed, &r->spec->model);
  bool failed =
      r->spec->model.failed || r->spec->name.failed || r->spec->data.failed || r->spec->target.failed;
  return failed ? shoal_fail(r->err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

shoal_status shoal_spec_parse(shoal_spec *out, const char *json, size_t length, shoal_spec_fault *fault,
                              shoal_error *err) {
  shoal_spec spec = {.workers_min = 1, .workers_max = SHOAL_SPEC_WORKERS_MAX};
  *fault = (shoal_spec_fault){0};
  cJSON *tree = cJSON_ParseWithLength(json, length);
  if (tree == NULL) return shoal_fail(err, SHOAL_INVALID, "the body is no JSON");
  reading r = {&spec, tree, fault, err};
  shoal_status status = read_all(&r);
  cJSON_Delete(tree);
  if (status == SHOAL_OK)
    *out = spec;
  else
    shoal_spec_release(&spec);
  return status;
}

void shoal_spec_release(shoal_spec *spec) {
  shoal_model_destroy(spec->parsed);
  shoal_text_release(&spec->name);
  shoal_text_release(&spec->model);
  shoal_text_release(&spec->data);
  shoal_text_release(&spec->target);
  spec->parsed = NULL;
}

/* ---- writing ---- */

void shoal_spec_write(const shoal_spec *spec, bool with_model, shoal_json *json) {
  const shoal_recipe *recipe = &spec->parsed->recipe;
  shoal_json_text(json, "name", spec->name.bytes);
  if (with_model) shoal_json_text(json, "model", spec->model.bytes);
  shoal_json_text(json, "data", spec->data.bytes);
  if (spec->target.length > 0) shoal_json_text(json, "target", spec->target.bytes);
  shoal_json_real(json, "valid", spec->valid_share);
  shoal_json_int(json, "epochs", recipe->epochs);
  shoal_json_int(json, "batch", recipe->batch);
  shoal_json_text(json, "mode", spec->mode);
  char rule[SHOAL_RULE_TEXT_MAX];
  shoal_json_text(json, "wire", spec->wire);
  shoal_json_bool(json, "guard", spec->guarded);
  shoal_json_text(json, "rule", shoal_rule_text(&spec->rule, rule));
  shoal_json_int(json, "workers_min", spec->workers_min);
  shoal_json_int(json, "workers_max", spec->workers_max);
  shoal_json_bool(json, "private", spec->is_private);
}

void shoal_spec_write_recipe(const shoal_recipe *recipe, shoal_json *json) {
  static const char *const schedules[] = {"constant", "step", "exponential", "cosine"};
  shoal_json_open(json, "recipe", '{');
  shoal_json_text(json, "optimizer", shoal_optimizer_name(recipe->optimizer));
  shoal_json_real(json, "rate", shoal_human_float(shoal_recipe_rate(recipe)));
  shoal_json_int(json, "batch", recipe->batch);
  shoal_json_int(json, "epochs", recipe->epochs);
  shoal_json_text(json, "schedule", schedules[recipe->schedule]);
  shoal_json_int(json, "seed", (int64_t)recipe->seed);
  shoal_json_int(json, "early_stop", recipe->early_stop);
  shoal_json_close(json, '}');
}

uint32_t shoal_spec_contributions(const shoal_spec *spec) {
  shoal_mode mode;
  shoal_graph *graph;
  if (shoal_mode_parse(spec->mode, &mode, NULL) != SHOAL_OK) return 0;
  if (mode.kind == SHOAL_LOCAL)
    return spec->workers_min < SHOAL_SHARDS_MAX ? spec->workers_min : SHOAL_SHARDS_MAX;
  if (shoal_graph_create(&graph, spec->parsed, NULL) != SHOAL_OK) return 0;
  uint32_t shards = shoal_trainer_shards_of(graph, spec->parsed->recipe.batch);
  shoal_graph_destroy(graph);
  return shards;
}

shoal_status shoal_spec_set_epochs(shoal_spec *spec, uint32_t epochs, shoal_error *err) {
  char value[16];
  snprintf(value, sizeof value, "%u", epochs);
  shoal_status status = shoal_model_set(spec->parsed, "epochs", "epochs", value, err);
  if (status != SHOAL_OK) return status;
  shoal_text_clear(&spec->model);
  shoal_model_write(spec->parsed, &spec->model);
  return spec->model.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}
