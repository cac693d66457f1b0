/* spec.c: see spec.h. */
#include "server/spec.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "nn/trainer.h"
#include "proto/codec.h"
#include "proto/mode.h"
#include "server/spec_read.h"

/* Fields that are settings of the model's recipe, in the order in which they are applied: an optimiser
 * brings its own rate. */
static const struct {
  const char *field, *setting;
} settings[] = {
    {"optimizer", "optimizer"}, {"rate", "rate"},       {"schedule", "schedule"},     {"l2", "l2"},
    {"clip", "clip"},           {"epochs", "epochs"},   {"batch", "batch"},           {"seed", "seed"},
    {"shuffle", "shuffle"},     {"augment", "augment"}, {"early_stop", "early-stop"},
};
enum { SETTINGS = sizeof settings / sizeof settings[0], VALUE_MAX = 256, TARGET_MAX = 1000 };

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

void shoal_spec_name_shorten(char *to, size_t size, const char *from, size_t length) {
  static const char mark[] = "…";
  bool fits = length < size;
  shoal_text_plain(to, fits ? size : size + 1 - sizeof mark, from, length);
  if (!fits) memcpy(to + strlen(to), mark, sizeof mark);
}

void shoal_spec_place(const char *name, const shoal_error *err, uint32_t *line, uint32_t *column,
                      const char **text) {
  *line = *column = 0;
  *text = err != NULL ? err->text : "";
  if (err == NULL) return;
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
  shoal_spec_reader in;
  shoal_spec *spec;
} reading;

static shoal_status wrong(const reading *r, const char *field, const char *text) {
  return shoal_spec_wrong(&r->in, field, text);
}

static shoal_status check_fields(const reading *r) {
  const char *all[SETTINGS + OTHERS];
  for (size_t i = 0; i < SETTINGS; i++) all[i] = settings[i].field;
  memcpy(all + SETTINGS, others, sizeof others);
  return shoal_spec_check_fields(&r->in, all, SETTINGS + OTHERS, "a job");
}

static shoal_status read_model(reading *r) {
  const cJSON *item = shoal_spec_find(&r->in, "model");
  if (item == NULL) return wrong(r, "model", "is missing: the text of the network");
  if (!cJSON_IsString(item)) return wrong(r, "model", "must be a text");
  const char *text = item->valuestring, *reason;
  if (strlen(text) > SHOAL_SPEC_MODEL_MAX) return wrong(r, "model", "is longer than 1 MB");
  shoal_status status = shoal_model_parse(&r->spec->parsed, "model", text, strlen(text), r->in.err);
  if (status == SHOAL_OK) return SHOAL_OK;
  shoal_spec_place("model", r->in.err, &r->in.fault->line, &r->in.fault->column, &reason);
  return shoal_spec_blame(&r->in, "model", status);
}

/* A setting's value as a line of the model's text would have it. */
static shoal_status apply_setting(reading *r, size_t index) {
  const cJSON *item = shoal_spec_find(&r->in, settings[index].field);
  if (item == NULL) return SHOAL_OK;
  char value[VALUE_MAX];
  if (cJSON_IsNumber(item))
    snprintf(value, sizeof value, "%.17g", item->valuedouble);
  else if (cJSON_IsString(item) && strlen(item->valuestring) < sizeof value)
    snprintf(value, sizeof value, "%s", item->valuestring);
  else
    return wrong(r, settings[index].field, "must be a number or a short text");
  shoal_status status =
      shoal_model_set(r->spec->parsed, settings[index].field, settings[index].setting, value, r->in.err);
  return shoal_spec_blame(&r->in, settings[index].field, status);
}

static shoal_status read_names(reading *r) {
  shoal_status status = shoal_spec_read_names(&r->in, &r->spec->name, &r->spec->data);
  if (status == SHOAL_OK) status = shoal_spec_read_text(&r->in, "target", TARGET_MAX, &r->spec->target);
  return status;
}

/* A short word; *out is "" where it is not given. */
static shoal_status read_word(reading *r, const char *field, const char **out) {
  const cJSON *item = shoal_spec_find(&r->in, field);
  *out = cJSON_IsString(item) ? item->valuestring : "";
  return item == NULL || cJSON_IsString(item) ? SHOAL_OK : wrong(r, field, "must be a text");
}

/* Whether volunteers are believed, and how what they send becomes one. How many parts a rule needs is seen when the job
 * starts. */
static shoal_status read_guard(reading *r, shoal_mode_kind mode) {
  const char *rule;
  shoal_error why;
  shoal_status status = shoal_spec_read_flag(&r->in, "guard", &r->spec->guarded);
  if (status == SHOAL_OK) status = read_word(r, "rule", &rule);
  if (status != SHOAL_OK || shoal_spec_find(&r->in, "rule") == NULL) return status;
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
  shoal_status status = read_word(r, "mode", &mode);
  if (status == SHOAL_OK) status = read_word(r, "wire", &wire);
  if (status != SHOAL_OK) return status;
  if (shoal_spec_find(&r->in, "mode") == NULL) mode = "sync";
  if (shoal_spec_find(&r->in, "wire") == NULL) wire = "f32";
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
  shoal_status status = shoal_spec_read_number(&r->in, "valid", 0, 0.9, false, &spec->valid_share);
  if (status == SHOAL_OK) status = shoal_spec_read_flag(&r->in, "private", &spec->is_private);
  if (status == SHOAL_OK) status = shoal_spec_read_workers(&r->in, &spec->workers_min, &spec->workers_max);
  return status;
}

static shoal_status read_all(reading *r) {
  shoal_status status = check_fields(r);
  if (status == SHOAL_OK) status = read_names(r);
  if (status == SHOAL_OK) status = read_model(r);
  for (size_t i = 0; i < SETTINGS && status == SHOAL_OK; i++) status = apply_setting(r, i);
  if (status == SHOAL_OK) status = read_way(r);
  if (status == SHOAL_OK) status = read_numbers(r);
  if (status != SHOAL_OK) return status;
  shoal_model_write(r->spec->parsed, &r->spec->model);
  return r->spec->model.failed ? shoal_fail(r->in.err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

shoal_status shoal_spec_parse(shoal_spec *out, const char *json, size_t length, shoal_spec_fault *fault,
                              shoal_error *err) {
  shoal_spec spec = {.guarded = true, .workers_min = 1, .workers_max = SHOAL_SPEC_WORKERS_MAX};
  *fault = (shoal_spec_fault){0};
  cJSON *tree = cJSON_ParseWithLength(json, length);
  if (tree == NULL) return shoal_fail(err, SHOAL_INVALID, "the body is no JSON");
  reading r = {{tree, fault, err}, &spec};
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
  shoal_json_open(json, "recipe", '{');
  shoal_json_text(json, "optimizer", shoal_optimizer_words[recipe->optimizer]);
  shoal_json_real(json, "rate", shoal_human_float(shoal_recipe_rate(recipe)));
  shoal_json_int(json, "batch", recipe->batch);
  shoal_json_int(json, "epochs", recipe->epochs);
  shoal_json_text(json, "schedule", shoal_schedule_words[recipe->schedule]);
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
