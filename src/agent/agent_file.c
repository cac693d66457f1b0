/* agent_file.c: an agent in one safetensors file.
 *
 * Metadata: "shoal.agent" (the version of this format), "shoal.agent.env", "shoal.agent.settings" (lines
 * "name value", settings.c), "shoal.agent.state" (JSON: seed, steps, what was planned, the last score),
 * "shoal.agent.sha256" (of all tensors, in their order). Tensors: "policy", a version's bytes as policy.h
 * writes them; in a whole file also what the learner and its algorithm keep, each under its name, and
 * "notes", where the streams of the training stand.
 *
 * Loading trusts nothing: tensors are looked up by the names and sizes that the settings ask for, and the
 * policy's bytes are checked by the policy. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bridge.h"
#include "agent/learner_internal.h"
#include "base/hash.h"
#include "base/json.h"
#include "nn/safetensors.h"

static const char VERSION[] = "1", POLICY[] = "policy", NOTES[] = "notes";
static const char META_VERSION[] = "shoal.agent", META_ENV[] = "shoal.agent.env",
                  META_SETTINGS[] = "shoal.agent.settings", META_STATE[] = "shoal.agent.state",
                  META_SHA256[] = "shoal.agent.sha256";
enum { META_COUNT = 5, TENSORS_MAX = SHOAL_KEPT_MAX + 2 };
static const double WHOLE_MAX = 9007199254740992.0; /* 2^53: all below are exact */

/* ---- saving ------------------------------------------------------------------------- */

static shoal_tensor tensor_of(const shoal_kept *kept) {
  return (shoal_tensor){.name = kept->name,
                        .dtype = kept->bytes ? SHOAL_U8 : SHOAL_F32,
                        .dims_count = 1,
                        .dims = {kept->count},
                        .data = kept->at,
                        .bytes = kept->count * (kept->bytes ? 1 : sizeof(float))};
}

static shoal_tensor tensor_of_text(const char *name, const shoal_text *text) {
  const shoal_kept kept = {.name = name, .at = text->bytes, .count = text->length, .bytes = true};
  return tensor_of(&kept);
}

static bool hash_tensors(const shoal_tensor *tensors, size_t count, char out[SHOAL_SHA256_HEX]) {
  shoal_sha256 *hash = shoal_sha256_create();
  if (hash == NULL) return false;
  for (size_t i = 0; i < count; i++) shoal_sha256_add(hash, tensors[i].data, tensors[i].bytes);
  uint8_t digest[SHOAL_SHA256_BYTES];
  shoal_sha256_finish(hash, digest);
  shoal_sha256_destroy(hash);
  shoal_hex(digest, sizeof digest, out);
  return true;
}

static void write_state(const shoal_learner *learner, bool whole, shoal_text *out) {
  char seed[24];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)learner->config.seed);
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "seed", seed);
  shoal_json_int(&json, "steps", (int64_t)learner->steps);
  shoal_json_int(&json, "steps_all", (int64_t)learner->config.steps_all);
  shoal_json_real(&json, "return_mean", learner->return_mean);
  shoal_json_bool(&json, "whole", whole);
  shoal_json_close(&json, '}');
}

/* Floats first, so that all lie in the file at multiples of their size. */
static size_t list_tensors(shoal_learner *learner, const shoal_text *policy, bool whole, shoal_tensor *out) {
  shoal_kept kept[SHOAL_KEPT_MAX];
  uint32_t kept_count = whole ? shoal_learner_kept(learner, kept) : 0;
  size_t count = 0;
  for (int bytes = 0; bytes < 2; bytes++)
    for (uint32_t i = 0; i < kept_count; i++)
      if (kept[i].bytes == bytes) out[count++] = tensor_of(&kept[i]);
  out[count++] = tensor_of_text(POLICY, policy);
  if (whole) out[count++] = tensor_of_text(NOTES, &learner->notes);
  return count;
}

shoal_status shoal_learner_save(const shoal_learner *learner, const char *path, bool whole,
                                shoal_error *err) {
  shoal_text policy = {0}, settings = {0}, state = {0};
  shoal_tensor tensors[TENSORS_MAX];
  char sha256[SHOAL_SHA256_HEX];
  shoal_policy_write(learner->policy, &policy);
  shoal_agent_settings_write(&learner->config.settings, &settings);
  write_state(learner, whole, &state);
  size_t count = list_tensors((shoal_learner *)learner, &policy, whole, tensors);
  shoal_status status;
  if (policy.failed || settings.failed || state.failed || !hash_tensors(tensors, count, sha256)) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  } else {
    const shoal_meta meta[META_COUNT] = {{META_VERSION, VERSION},
                                         {META_ENV, learner->config.kind->name},
                                         {META_SETTINGS, settings.bytes},
                                         {META_STATE, state.bytes},
                                         {META_SHA256, sha256}};
    status = shoal_safetensors_save(path, tensors, count, meta, META_COUNT, err);
  }
  shoal_text_release(&policy);
  shoal_text_release(&settings);
  shoal_text_release(&state);
  return status;
}

/* ---- loading ------------------------------------------------------------------------ */

static bool read_whole(const cJSON *json, const char *key, uint64_t *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= WHOLE_MAX)) return false;
  *out = (uint64_t)item->valuedouble;
  return (double)*out == item->valuedouble;
}

static bool read_state(const char *text, shoal_agent_file *file) {
  cJSON *json = cJSON_Parse(text);
  const cJSON *seed = cJSON_GetObjectItemCaseSensitive(json, "seed");
  const cJSON *mean = cJSON_GetObjectItemCaseSensitive(json, "return_mean");
  bool read = cJSON_IsString(seed) &&
              shoal_read_u64(seed->valuestring, strlen(seed->valuestring), &file->seed) &&
              read_whole(json, "steps", &file->steps) && read_whole(json, "steps_all", &file->steps_all);
  file->return_mean = cJSON_IsNumber(mean) ? mean->valuedouble : NAN;
  file->whole = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "whole"));
  cJSON_Delete(json);
  return read;
}

/* What the metadata says. */
static shoal_status read_meta(const shoal_safetensors *loaded, const char *path, shoal_agent_file *file,
                              shoal_error *err) {
  const char *version = shoal_safetensors_meta(loaded, META_VERSION);
  const char *env = shoal_safetensors_meta(loaded, META_ENV);
  const char *settings = shoal_safetensors_meta(loaded, META_SETTINGS);
  const char *state = shoal_safetensors_meta(loaded, META_STATE);
  const char *sha256 = shoal_safetensors_meta(loaded, META_SHA256);
  char found[SHOAL_SHA256_HEX];
  memset(file, 0, sizeof *file);
  if (!version || !env || !settings || !state || !sha256)
    return shoal_fail(err, SHOAL_INVALID, "%s: a safetensors file, but none with an agent of Shoal's in it",
                      path);
  if (strcmp(version, VERSION) != 0)
    return shoal_fail(err, SHOAL_UNSUPPORTED,
                      "%s: an agent's file of version '%.32s'; this Shoal reads version %s", path, version,
                      VERSION);
  if (!hash_tensors(loaded->tensors, loaded->tensors_count, found))
    return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  if (strcmp(found, sha256) != 0)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: the tensors do not match their checksum; the file is damaged",
                      path);
  shoal_text_plain(file->env, sizeof file->env, env, strlen(env));
  shoal_status status = shoal_agent_settings_read(&file->settings, settings, err);
  if (status == SHOAL_OK) status = shoal_agent_settings_check(&file->settings, err);
  if (status != SHOAL_OK) {
    shoal_error_prefix(err, "%s: ", path);
    return status;
  }
  file->algorithm = file->settings.algorithm;
  if (!read_state(state, file))
    return shoal_fail(err, SHOAL_CORRUPT, "%s: 'shoal.agent.state' is damaged", path);
  return SHOAL_OK;
}

static shoal_status read_policy(const shoal_safetensors *loaded, const char *path, shoal_policy *policy,
                                shoal_error *err) {
  const shoal_tensor *found = shoal_safetensors_find(loaded, POLICY);
  if (found == NULL || found->dtype != SHOAL_U8)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: its tensor 'policy' is missing or no bytes", path);
  shoal_status status = shoal_policy_read(policy, found->data, found->bytes, err);
  if (status != SHOAL_OK) shoal_error_prefix(err, "%s: ", path);
  return status;
}

/* The policy that a file is for, as yet without its weights. */
static shoal_status create_policy(const shoal_agent_file *file, const char *path, shoal_policy **out,
                                  shoal_error *err) {
  const shoal_learner_config config = {.kind = shoal_env_opened(file->env), .settings = file->settings};
  const shoal_algorithm_ops *ops = shoal_algorithm_ops_of(file->algorithm);
  if (config.kind == NULL)
    return shoal_fail(err, SHOAL_NOT_FOUND,
                      "%s: an agent for '%s', which is not there; 'shoal agent list' tells what is", path,
                      file->env);
  shoal_policy_spec spec;
  shoal_status status = ops->spec(&config, &spec, err);
  if (status == SHOAL_OK) status = shoal_policy_create(out, &spec, err);
  if (status != SHOAL_OK) shoal_error_prefix(err, "%s: ", path);
  return status;
}

shoal_status shoal_agent_open(const char *path, shoal_agent_file *file, shoal_policy **policy,
                              shoal_error *err) {
  shoal_safetensors *loaded;
  shoal_policy *made = NULL;
  shoal_status status = shoal_safetensors_load(&loaded, path, err);
  if (status != SHOAL_OK) return status;
  status = read_meta(loaded, path, file, err);
  if (status == SHOAL_OK && policy) status = create_policy(file, path, &made, err);
  if (status == SHOAL_OK && policy) status = read_policy(loaded, path, made, err);
  shoal_safetensors_destroy(loaded);
  if (status != SHOAL_OK) {
    shoal_policy_destroy(made);
    return status;
  }
  if (policy) *policy = made;
  return SHOAL_OK;
}

/* All of it is there before anything is copied. */
static shoal_status find_kept(const shoal_safetensors *loaded, const char *path, const shoal_kept *kept,
                              uint32_t count, const shoal_tensor **found, shoal_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    const shoal_tensor wanted = tensor_of(&kept[i]);
    found[i] = shoal_safetensors_find(loaded, kept[i].name);
    if (found[i] == NULL || found[i]->dtype != wanted.dtype || found[i]->bytes != wanted.bytes)
      return shoal_fail(err, SHOAL_CORRUPT, "%s: its tensor '%s' is missing or does not fit these settings",
                        path, kept[i].name);
  }
  return SHOAL_OK;
}

static shoal_status check_same(const shoal_learner *learner, const char *path, const shoal_agent_file *file,
                               shoal_error *err) {
  if (strcmp(file->env, learner->config.kind->name) != 0 ||
      file->algorithm != learner->config.settings.algorithm)
    return shoal_fail(err, SHOAL_INVALID, "%s: it has %s in %s, and not %s in %s", path,
                      shoal_algorithm_name(file->algorithm), file->env,
                      shoal_algorithm_name(learner->config.settings.algorithm), learner->config.kind->name);
  if (!file->whole)
    return shoal_fail(err, SHOAL_INVALID, "%s: it has the policy alone, and training cannot go on from that",
                      path);
  return SHOAL_OK;
}

static shoal_status load(shoal_learner *learner, const shoal_safetensors *loaded, const char *path,
                         shoal_error *err) {
  shoal_agent_file *file = calloc(1, sizeof *file);
  if (file == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  shoal_kept kept[SHOAL_KEPT_MAX];
  const shoal_tensor *found[SHOAL_KEPT_MAX], *notes = shoal_safetensors_find(loaded, NOTES);
  uint32_t count = shoal_learner_kept(learner, kept);
  shoal_status status = read_meta(loaded, path, file, err);
  if (status == SHOAL_OK) status = check_same(learner, path, file, err);
  if (status == SHOAL_OK) status = find_kept(loaded, path, kept, count, found, err);
  if (status == SHOAL_OK) status = read_policy(loaded, path, learner->policy, err);
  for (uint32_t i = 0; status == SHOAL_OK && i < count; i++)
    if (found[i]->bytes > 0) memcpy(kept[i].at, found[i]->data, found[i]->bytes);
  if (status == SHOAL_OK) {
    learner->return_mean = file->return_mean;
    shoal_text_clear(&learner->notes);
    if (notes) shoal_text_add(&learner->notes, notes->data, notes->bytes);
    if (learner->notes.failed) status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  }
  free(file);
  return status;
}

shoal_status shoal_learner_load(shoal_learner *learner, const char *path, shoal_error *err) {
  shoal_safetensors *loaded;
  shoal_status status = shoal_safetensors_load(&loaded, path, err);
  if (status != SHOAL_OK) return status;
  status = load(learner, loaded, path, err);
  shoal_safetensors_destroy(loaded);
  return status;
}
