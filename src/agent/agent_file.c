/* agent_file.c: an agent in one safetensors file.
 *
 * Metadata: "shoal.agent" (the version of this format), "shoal.agent.env", "shoal.agent.settings" (lines
 * "name value", settings.c), "shoal.agent.state" (JSON: seed, steps, what was planned, the last score, and
 * the numbers of the policy), "shoal.agent.sha256" (of all tensors, in their order).
 *
 * Tensors, all floats that any reader of safetensors understands: the parameters of the policy's network
 * under their names, with "policy." before them ("policy.dense1.weight"), and what belongs to it:
 *
 *   policy.observation_mean, policy.observation_scale   (x - mean) * scale is what the network sees, cut to
 *                                                       +-10; where nothing is scaled: 0 and 1
 *   policy.log_deviations                               of actions that are real numbers (ppo, vtrace)
 *
 * In a whole file there is also what the learner and its algorithm keep, each under its name, and "notes",
 * where the streams of the training stand.
 *
 * Loading trusts nothing: tensors are looked up by the names and shapes that the settings ask for. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bridge.h"
#include "agent/bytes.h"
#include "agent/learner_internal.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_at.h"
#include "nn/graph.h"
#include "nn/safetensors.h"

static const char VERSION[] = "2", NOTES[] = "notes";
static const char META_VERSION[] = "shoal.agent", META_ENV[] = "shoal.agent.env",
                  META_SETTINGS[] = "shoal.agent.settings", META_STATE[] = "shoal.agent.state",
                  META_SHA256[] = "shoal.agent.sha256";
enum { META_COUNT = 5, PART_NAME_MAX = 160 };

/* ---- what a policy is made of -------------------------------------------------------- */

typedef struct part {
  char name[PART_NAME_MAX];
  shoal_tensor tensor; /* its data are the policy's, to be read or written */
} part;

typedef struct parts {
  part *list;
  uint32_t count;
} parts;

static void add_part(parts *to, shoal_tensor tensor) {
  part *p = &to->list[to->count++];
  int length = snprintf(p->name, sizeof p->name, "policy.%s", tensor.name);
  SHOAL_ASSERT(length > 0 && (size_t)length < sizeof p->name); /* names of layers are short */
  p->tensor = tensor;
  p->tensor.name = p->name;
}

static shoal_status list_parts(shoal_policy *policy, const shoal_env_kind *kind, parts *out,
                               shoal_error *err) {
  const shoal_graph *graph = shoal_policy_graph(policy);
  shoal_policy_state *state = shoal_policy_state_of(policy);
  *out = (parts){.list = calloc(graph->params_count + 3, sizeof *out->list)};
  if (out->list == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *param = &graph->params[i];
    add_part(out, shoal_tensor_of(param->name, SHOAL_F32, param->dims_count, param->dims,
                                  state->weights + param->offset));
  }
  add_part(out, shoal_tensor_vector("observation_mean", SHOAL_F32, kind->observation, state->mean));
  add_part(out, shoal_tensor_vector("observation_scale", SHOAL_F32, kind->observation, state->scale));
  size_t own = state->weights_count - graph->weights_count;
  const float *deviations = state->weights + graph->weights_count;
  if (own > 0) add_part(out, shoal_tensor_vector("log_deviations", SHOAL_F32, own, deviations));
  return SHOAL_OK;
}

/* ---- saving ------------------------------------------------------------------------- */

static size_t bytes_of(const shoal_kept *kept) { return kept->count * (kept->bytes ? 1 : sizeof(float)); }

static shoal_tensor tensor_of(const shoal_kept *kept) {
  size_t count = kept->grows ? kept->used : kept->count;
  return shoal_tensor_vector(kept->name, kept->bytes ? SHOAL_U8 : SHOAL_F32, count, kept->at);
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
  const shoal_policy_state *policy = shoal_policy_state_of(learner->policy);
  shoal_json_int(&json, "version", (int64_t)policy->version);
  shoal_json_int(&json, "seen", (int64_t)policy->seen);
  shoal_json_int(&json, "hold", policy->hold);
  shoal_json_real(&json, "epsilon", (double)policy->epsilon);
  shoal_json_close(&json, '}');
}

/* Floats first, so that all lie in the file at multiples of their size. */
static size_t list_tensors(shoal_learner *learner, const parts *policy, bool whole, shoal_tensor *out) {
  shoal_kept kept[SHOAL_KEPT_MAX];
  uint32_t kept_count = whole ? shoal_learner_kept(learner, kept) : 0;
  size_t count = 0;
  for (uint32_t i = 0; i < policy->count; i++) out[count++] = policy->list[i].tensor;
  for (int bytes = 0; bytes < 2; bytes++)
    for (uint32_t i = 0; i < kept_count; i++)
      if (kept[i].bytes == bytes) out[count++] = tensor_of(&kept[i]);
  if (whole) out[count++] = shoal_tensor_vector(NOTES, SHOAL_U8, learner->notes.length, learner->notes.bytes);
  return count;
}

static shoal_status save(shoal_learner *learner, const parts *policy, bool whole, const char *path,
                         shoal_error *err) {
  shoal_text settings = {0}, state = {0};
  shoal_tensor *tensors = calloc(policy->count + SHOAL_KEPT_MAX + 1, sizeof *tensors);
  char sha256[SHOAL_SHA256_HEX];
  shoal_agent_settings_write(&learner->config.settings, &settings);
  write_state(learner, whole, &state);
  size_t count = tensors ? list_tensors(learner, policy, whole, tensors) : 0;
  shoal_status status;
  if (!tensors || settings.failed || state.failed || !shoal_tensor_sha256(tensors, count, sha256)) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  } else {
    const shoal_meta meta[META_COUNT] = {{META_VERSION, VERSION},
                                         {META_ENV, learner->config.kind->name},
                                         {META_SETTINGS, settings.bytes},
                                         {META_STATE, state.bytes},
                                         {META_SHA256, sha256}};
    status = shoal_safetensors_save(path, tensors, count, meta, META_COUNT, err);
  }
  free(tensors);
  shoal_text_release(&settings);
  shoal_text_release(&state);
  return status;
}

shoal_status shoal_learner_save(const shoal_learner *learner, const char *path, bool whole,
                                shoal_error *err) {
  parts policy;
  shoal_status status = list_parts(learner->policy, learner->config.kind, &policy, err);
  if (status == SHOAL_OK)
    status = save((shoal_learner *)learner, &policy, whole, path, err);
  else
    shoal_error_prefix(err, "%s: ", path);
  free(policy.list);
  return status;
}

/* ---- loading ------------------------------------------------------------------------ */

/* What a policy has beside its floats. */
typedef struct numbers {
  uint64_t version, seen, hold;
  double epsilon;
} numbers;

static bool read_numbers(const cJSON *json, numbers *out) {
  const cJSON *epsilon = cJSON_GetObjectItemCaseSensitive(json, "epsilon");
  out->epsilon = cJSON_IsNumber(epsilon) ? epsilon->valuedouble : -1;
  return shoal_read_whole_at(json, "version", UINT64_MAX, &out->version) &&
         shoal_read_whole_at(json, "seen", UINT64_MAX, &out->seen) &&
         shoal_read_whole_at(json, "hold", UINT64_MAX, &out->hold) && out->hold >= 1 &&
         out->hold <= SHOAL_HOLD_MAX && out->epsilon >= 0 && out->epsilon <= 1;
}

static bool read_state(const char *text, shoal_agent_file *file, numbers *policy) {
  cJSON *json = cJSON_Parse(text);
  const cJSON *seed = cJSON_GetObjectItemCaseSensitive(json, "seed");
  const cJSON *mean = cJSON_GetObjectItemCaseSensitive(json, "return_mean");
  bool read =
      cJSON_IsString(seed) && shoal_read_u64(seed->valuestring, strlen(seed->valuestring), &file->seed) &&
      shoal_read_whole_at(json, "steps", UINT64_MAX, &file->steps) &&
      shoal_read_whole_at(json, "steps_all", UINT64_MAX, &file->steps_all) && read_numbers(json, policy);
  file->return_mean = cJSON_IsNumber(mean) ? mean->valuedouble : NAN;
  file->whole = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "whole"));
  cJSON_Delete(json);
  return read;
}

/* Parameters have the name of their layer, and a dot behind it. */
static uint64_t count_weights(const shoal_safetensors *loaded) {
  static const char prefix[] = "policy.";
  uint64_t weights = 0;
  for (size_t i = 0; i < loaded->tensors_count; i++) {
    const shoal_tensor *tensor = &loaded->tensors[i];
    bool is_policy = strncmp(tensor->name, prefix, strlen(prefix)) == 0;
    if (is_policy && strchr(tensor->name + strlen(prefix), '.')) weights += tensor->bytes / sizeof(float);
  }
  return weights;
}

bool shoal_agent_is(const char *path) { return shoal_safetensors_has(path, META_VERSION); }

/* What the metadata says. */
static shoal_status read_meta(const shoal_safetensors *loaded, const char *path, shoal_agent_file *file,
                              numbers *policy, shoal_error *err) {
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
    return shoal_fail(
        err, SHOAL_UNSUPPORTED,
        "%s: an agent's file of version '%.32s'; this Shoal reads version %s: train it again, or "
        "use the Shoal that wrote it",
        path, version, VERSION);
  if (!shoal_tensor_sha256(loaded->tensors, loaded->tensors_count, found))
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
  file->weights = count_weights(loaded);
  if (!read_state(state, file, policy))
    return shoal_fail(err, SHOAL_CORRUPT, "%s: 'shoal.agent.state' is damaged", path);
  return SHOAL_OK;
}

/* All of it is sound before anything is copied. */
static shoal_status check_parts(const shoal_safetensors *loaded, const char *path, const parts *policy,
                                shoal_error *err) {
  for (uint32_t i = 0; i < policy->count; i++) {
    const shoal_tensor *wanted = &policy->list[i].tensor;
    const shoal_tensor *found = shoal_safetensors_find(loaded, wanted->name);
    if (!shoal_tensor_fits(found, wanted))
      return shoal_fail(err, SHOAL_CORRUPT, "%s: its tensor '%s' is missing or has another shape", path,
                        wanted->name);
    if (!shoal_all_finite(found->data, found->bytes / sizeof(float)))
      return shoal_fail(err, SHOAL_CORRUPT, "%s: not all numbers of '%s' are finite", path, wanted->name);
  }
  return SHOAL_OK;
}

static shoal_status read_policy(const shoal_safetensors *loaded, const char *path, const shoal_env_kind *kind,
                                const numbers *read, shoal_policy *policy, shoal_error *err) {
  parts all;
  shoal_status status = list_parts(policy, kind, &all, err);
  if (status == SHOAL_OK) status = check_parts(loaded, path, &all, err);
  for (uint32_t i = 0; status == SHOAL_OK && i < all.count; i++) {
    const shoal_tensor *found = shoal_safetensors_find(loaded, all.list[i].name);
    memcpy((void *)all.list[i].tensor.data, found->data, found->bytes);
  }
  free(all.list);
  if (status != SHOAL_OK) return status;
  shoal_policy_state *state = shoal_policy_state_of(policy);
  state->version = read->version;
  state->seen = read->seen;
  state->hold = (uint32_t)read->hold;
  state->epsilon = (float)read->epsilon;
  return SHOAL_OK;
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
  numbers read;
  shoal_status status = shoal_safetensors_load(&loaded, path, err);
  if (status != SHOAL_OK) return status;
  status = read_meta(loaded, path, file, &read, err);
  if (status == SHOAL_OK && policy) status = create_policy(file, path, &made, err);
  if (status == SHOAL_OK && policy)
    status = read_policy(loaded, path, shoal_env_opened(file->env), &read, made, err);
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
    size_t most = bytes_of(&kept[i]), least = kept[i].grows ? 0 : most;
    found[i] = shoal_safetensors_find(loaded, kept[i].name);
    if (found[i] == NULL || found[i]->dtype != tensor_of(&kept[i]).dtype || found[i]->bytes < least ||
        found[i]->bytes > most)
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
  numbers read;
  shoal_status status = read_meta(loaded, path, file, &read, err);
  if (status == SHOAL_OK) status = check_same(learner, path, file, err);
  if (status == SHOAL_OK) status = find_kept(loaded, path, kept, count, found, err);
  if (status == SHOAL_OK)
    status = read_policy(loaded, path, learner->config.kind, &read, learner->policy, err);
  for (uint32_t i = 0; status == SHOAL_OK && i < count; i++) {
    if (found[i]->bytes > 0) memcpy(kept[i].at, found[i]->data, found[i]->bytes);
    memset((char *)kept[i].at + found[i]->bytes, 0, bytes_of(&kept[i]) - found[i]->bytes);
  }
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
