/* job.c: see job.h. */
#include "cluster/job.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_at.h"
#include "nn/model.h"
#include "proto/codec.h"

static const double WHOLE_MAX = 9007199254740992.0; /* every whole number up to it is a double */

/* Without addresses, and what follows from the rest, it is what tells a job from others. */
static bool has_rule(const shoal_job *job) {
  return job->rule.kind != SHOAL_RULE_MEAN || job->rule.bucket > 1;
}

static void write_job(const shoal_job *job, bool addresses, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "model", job->model.bytes);
  shoal_json_text(&json, "data", job->data.bytes);
  if (job->target.length > 0) shoal_json_text(&json, "target", job->target.bytes);
  shoal_json_real(&json, "valid", job->valid_share);
  shoal_json_text(&json, "fitted", job->fitted_sha256);
  shoal_json_int(&json, "samples", (int64_t)job->samples);
  shoal_json_text(&json, "mode", job->mode_text);
  shoal_json_text(&json, "wire", shoal_codec_name(job->format));
  shoal_json_int(&json, "parts", job->parts);
  shoal_json_int(&json, "rounds", (int64_t)job->rounds);
  shoal_json_int(&json, "inner_rounds", (int64_t)job->inner_rounds);
  if (job->lanes > 0) shoal_json_int(&json, "lanes", job->lanes);
  if (addresses && job->fitted.length > 0) shoal_json_text(&json, "fitted_text", job->fitted.bytes);
  char rule[SHOAL_RULE_TEXT_MAX];
  if (job->guarded) shoal_json_bool(&json, "guard", true);
  if (has_rule(job)) shoal_json_text(&json, "rule", shoal_rule_text(&job->rule, rule));
  shoal_json_open(&json, "ps", '[');
  for (uint32_t s = 0; s < job->owners_count; s++)
    shoal_json_text(&json, NULL, addresses ? job->owners[s] : "");
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
}

/* A rule compares whole contributions of one round. */
static shoal_status check_rule(const shoal_job *job, shoal_error *err) {
  if (!has_rule(job)) return SHOAL_OK;
  if (job->owners_count > 1)
    return shoal_fail(
        err, SHOAL_INVALID,
        "a rule other than mean needs one parameter server, and there are %u: each would see only a "
        "part of a contribution",
        job->owners_count);
  if (job->mode.kind == SHOAL_ASYNC)
    return shoal_fail(
        err, SHOAL_INVALID,
        "in mode async contributions come one by one, and a rule has nothing to compare: take sync, "
        "stale:N or local:H");
  return shoal_rule_check(&job->rule, job->parts, err);
}

bool shoal_job_is_audited(const shoal_job *job) {
  return job->guarded && (job->mode.kind == SHOAL_SYNC || job->mode.kind == SHOAL_LOCAL) &&
         job->format != SHOAL_WIRE_TOPK;
}

shoal_status shoal_job_make(shoal_job *out, const shoal_task *task, const shoal_job_plan *plan,
                            shoal_error *err) {
  *out = (shoal_job){.valid_share = plan->valid_share};
  const char *mode = plan->mode != NULL ? plan->mode : "sync";
  shoal_status status = shoal_mode_parse(mode, &out->mode, err);
  if (status != SHOAL_OK) return status;
  if (plan->wire != NULL && !shoal_codec_named(plan->wire, &out->format))
    return shoal_fail(err, SHOAL_INVALID, "'%s' is no wire format", plan->wire);
  snprintf(out->mode_text, sizeof out->mode_text, "%s", mode);
  shoal_model_write(task->model, &out->model);
  shoal_text_addf(&out->data, "%s", plan->data);
  if (plan->target != NULL) shoal_text_addf(&out->target, "%s", plan->target);
  shoal_task_fingerprint(task, out->fitted_sha256);
  if (shoal_dataset_is_images(task->dataset))
    shoal_text_add(&out->fitted, task->fitted.bytes, task->fitted.length);
  out->samples = task->sources[SHOAL_TRAIN].samples;
  out->owners = calloc(plan->owners_count, sizeof *out->owners);
  if (out->model.failed || out->data.failed || out->target.failed || out->fitted.failed ||
      out->owners == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  out->owners_count = plan->owners_count;
  memcpy(out->owners, plan->owners, plan->owners_count * sizeof *out->owners);
  shoal_job_cut(out, shoal_trainer_shards(task->trainer), shoal_trainer_rounds(task->trainer), plan->workers);
  out->guarded = plan->guarded;
  out->rule = plan->rule;
  status = check_rule(out, err);
  if (status != SHOAL_OK) return status;
  bool keeps = out->mode.kind == SHOAL_SYNC || out->mode.kind == SHOAL_LOCAL;
  out->lanes = keeps && task->model->recipe.shuffle == SHOAL_SHUFFLE_LANES ? out->parts : 0;
  return SHOAL_OK;
}

void shoal_job_write(const shoal_job *job, shoal_text *json) { write_job(job, true, json); }

/* ---- reading ---- */

static bool copy_text(const cJSON *json, const char *key, bool needed, shoal_text *out) {
  const char *text = shoal_find_text(json, key);
  if (text == NULL) return !needed;
  shoal_text_addf(out, "%s", text);
  return !out->failed;
}

static bool whole_of(const cJSON *json, const char *key, uint64_t least, uint64_t most, uint64_t *out) {
  return shoal_read_whole_at(json, key, most, out) && *out >= least;
}

static bool read_owners(shoal_job *job, const cJSON *json) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "ps"), *item;
  int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
  if (count < 1 || count > SHOAL_OWNERS_MAX) return false;
  job->owners = calloc((size_t)count, sizeof *job->owners);
  if (job->owners == NULL) return false;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= SHOAL_ADDRESS_MAX) return false;
    memcpy(job->owners[job->owners_count++], item->valuestring, strlen(item->valuestring) + 1);
  }
  return true;
}

/* The first field that is wrong, or NULL. */
static const char *read_fields(shoal_job *job, const cJSON *json, shoal_error *err) {
  const char *mode = shoal_find_text(json, "mode"), *wire = shoal_find_text(json, "wire"),
             *fitted = shoal_find_text(json, "fitted");
  uint64_t parts, lanes = 0;
  if (!copy_text(json, "model", true, &job->model)) return "model";
  if (!copy_text(json, "data", true, &job->data)) return "data";
  if (!copy_text(json, "target", false, &job->target)) return "target";
  if (!shoal_read_real_at(json, "valid", 0, 0.9, &job->valid_share)) return "valid";
  if (fitted == NULL || strlen(fitted) + 1 != sizeof job->fitted_sha256 ||
      strspn(fitted, "0123456789abcdef") + 1 != sizeof job->fitted_sha256)
    return "fitted";
  memcpy(job->fitted_sha256, fitted, sizeof job->fitted_sha256);
  if (!copy_text(json, "fitted_text", false, &job->fitted)) return "fitted_text";
  if (!whole_of(json, "samples", 1, (uint64_t)WHOLE_MAX, &job->samples)) return "samples";
  if (mode == NULL || strlen(mode) >= sizeof job->mode_text ||
      shoal_mode_parse(mode, &job->mode, err) != SHOAL_OK)
    return "mode";
  memcpy(job->mode_text, mode, strlen(mode) + 1);
  if (wire == NULL || !shoal_codec_named(wire, &job->format)) return "wire";
  if (!whole_of(json, "parts", 1, SHOAL_SHARDS_MAX, &parts)) return "parts";
  job->parts = (uint32_t)parts;
  if (!whole_of(json, "rounds", 1, (uint64_t)WHOLE_MAX, &job->rounds)) return "rounds";
  if (!whole_of(json, "inner_rounds", job->rounds, (uint64_t)WHOLE_MAX, &job->inner_rounds))
    return "inner_rounds";
  if (cJSON_HasObjectItem(json, "lanes") && !whole_of(json, "lanes", job->parts, job->parts, &lanes))
    return "lanes";
  job->lanes = (uint32_t)lanes;
  const char *rule = shoal_find_text(json, "rule");
  job->guarded = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "guard"));
  if (rule != NULL && shoal_rule_parse(rule, &job->rule, err) != SHOAL_OK) return "rule";
  if (!read_owners(job, json)) return "ps";
  return check_rule(job, err) == SHOAL_OK ? NULL : "rule";
}

shoal_status shoal_job_parse(shoal_job *out, const char *text, size_t length, shoal_error *err) {
  *out = (shoal_job){0};
  cJSON *json = shoal_utf8_valid(text, length) ? cJSON_ParseWithLength(text, length) : NULL;
  const char *wrong = cJSON_IsObject(json) ? read_fields(out, json, err) : "everything";
  cJSON_Delete(json);
  if (wrong == NULL) return SHOAL_OK;
  shoal_job_release(out);
  return shoal_fail(err, SHOAL_INVALID, "the chief sent a job that cannot be read: %s is wrong", wrong);
}

void shoal_job_release(shoal_job *job) {
  shoal_text_release(&job->model);
  shoal_text_release(&job->data);
  shoal_text_release(&job->target);
  shoal_text_release(&job->fitted);
  free(job->owners);
  *job = (shoal_job){0};
}

/* ---- rounds ---- */

void shoal_job_cut(shoal_job *job, uint32_t shards, uint64_t inner_rounds, uint32_t workers) {
  job->parts = shards;
  job->rounds = job->inner_rounds = inner_rounds;
  if (job->mode.kind != SHOAL_LOCAL) return;
  uint64_t replicas = workers < 1 ? 1 : workers < SHOAL_SHARDS_MAX ? workers : SHOAL_SHARDS_MAX;
  if (replicas > inner_rounds) replicas = inner_rounds;
  uint64_t at_once = replicas * job->mode.local;
  job->parts = (uint32_t)replicas;
  job->rounds = (inner_rounds + at_once - 1) / at_once;
  if (job->rounds * replicas > inner_rounds) job->rounds = inner_rounds / replicas;
}

/* Units share the epoch's rounds as equally as whole numbers allow. */
uint64_t shoal_job_unit(const shoal_job *job, uint64_t round, uint32_t part, uint64_t *first) {
  uint64_t unit = round % job->rounds * job->parts + part, units = job->rounds * job->parts;
  *first = unit * job->inner_rounds / units;
  return (unit + 1) * job->inner_rounds / units - *first;
}

uint64_t shoal_job_step(const shoal_job *job, uint64_t version) {
  return version / job->rounds * job->inner_rounds + version % job->rounds * job->inner_rounds / job->rounds;
}

bool shoal_job_version(const shoal_job *job, uint64_t step, uint64_t *version) {
  uint64_t epoch = step / job->inner_rounds, inner = step % job->inner_rounds;
  uint64_t round = (inner * job->rounds + job->inner_rounds - 1) / job->inner_rounds;
  *version = epoch * job->rounds + round;
  return shoal_job_step(job, *version) == step;
}

uint64_t shoal_job_digest(const shoal_job *job) {
  shoal_text json;
  shoal_text_init(&json);
  write_job(job, false, &json);
  uint64_t digest = shoal_digest(json.bytes, json.length);
  shoal_text_release(&json);
  return digest;
}
