/* predictor.c: see predictor.h.
 *
 * A model file may come from anywhere. What it asks for is bounded by what it holds: weights are only
 * reserved when all of their tensors are there, and networks are of the kinds of layers that a search
 * makes, whose values follow from their weights. */
#include "search/predictor.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "nn/loss.h"
#include "nn/safetensors.h"
#include "search/trial_internal.h"

enum {
  VERSION = 2,
  VERSION_INLINE = 1, /* profile and encoders in the metadata */
  CHUNK_ROWS = 1024,
  NODE_VALUES_MAX = 1 << 24, /* of one row, in all nodes of a network */
  NAME_BYTES_MAX = 160,
};
static const size_t profile_bytes_max = (size_t)256 << 20;
static const char META[] = "shoal.predictor", PROFILE[] = "profile";
/* The tensors of an encoder. */
static const char FEATURES[] = "encoder.features", SLOTS[] = "encoder.slots", NUMBERS[] = "encoder.numbers";

typedef struct member {
  shoal_trial_net net;
  double share;
  uint64_t trial;
} member;

struct shoal_predictor {
  shoal_profile profile;
  shoal_target target;
  shoal_score_kind metric;
  shoal_scores valid, test;
  shoal_estimate estimate;
  uint64_t test_rows;
  uint32_t count;
  member members[SHOAL_MEMBERS_MAX];
};

/* ---- building ----------------------------------------------------------------------- */

static shoal_status copy_profile(shoal_profile *out, const shoal_profile *profile, shoal_error *err) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_profile_write(profile, &json, NULL);
  cJSON *parsed = text.failed ? NULL : cJSON_Parse(text.bytes);
  shoal_text_release(&text);
  if (parsed == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_profile_from_json(out, parsed, err);
  cJSON_Delete(parsed);
  return status;
}

static shoal_predictor *new_predictor(shoal_score_kind metric) {
  shoal_predictor *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->metric = metric;
  shoal_profile_init(&p->profile);
  shoal_target_init(&p->target);
  shoal_scores_none(&p->valid);
  shoal_scores_none(&p->test);
  p->estimate = (shoal_estimate){NAN, NAN};
  return p;
}

shoal_status shoal_predictor_create(shoal_predictor **out, const shoal_profile *profile,
                                    const shoal_target *target, shoal_score_kind metric, shoal_error *err) {
  *out = NULL;
  shoal_predictor *p = new_predictor(metric);
  if (p == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = copy_profile(&p->profile, profile, err);
  if (status == SHOAL_OK) status = shoal_target_copy(&p->target, target, err);
  if (status == SHOAL_OK)
    *out = p;
  else
    shoal_predictor_destroy(p);
  return status;
}

shoal_status shoal_predictor_add(shoal_predictor *p, shoal_trial_net *net, double share, uint64_t trial,
                                 shoal_error *err) {
  if (p->count == SHOAL_MEMBERS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "more than %d networks in a model", SHOAL_MEMBERS_MAX);
  p->members[p->count++] = (member){*net, share, trial};
  *net = (shoal_trial_net){0};
  return SHOAL_OK;
}

void shoal_predictor_destroy(shoal_predictor *p) {
  if (p == NULL) return;
  for (uint32_t i = 0; i < p->count; i++) shoal_trial_net_release(&p->members[i].net);
  shoal_target_release(&p->target);
  shoal_profile_release(&p->profile);
  free(p);
}

void shoal_predictor_set_valid(shoal_predictor *p, const shoal_scores *scores) { p->valid = *scores; }
const shoal_scores *shoal_predictor_valid(const shoal_predictor *p) { return &p->valid; }

void shoal_predictor_set_estimate(shoal_predictor *p, const shoal_estimate *estimate) {
  p->estimate = *estimate;
}
const shoal_estimate *shoal_predictor_estimate(const shoal_predictor *p) { return &p->estimate; }

void shoal_predictor_set_test(shoal_predictor *p, const shoal_scores *scores, uint64_t rows) {
  p->test = *scores;
  p->test_rows = rows;
}

const shoal_scores *shoal_predictor_test(const shoal_predictor *p, uint64_t *rows) {
  *rows = p->test_rows;
  return &p->test;
}

const shoal_profile *shoal_predictor_profile(const shoal_predictor *p) { return &p->profile; }
const shoal_target *shoal_predictor_target(const shoal_predictor *p) { return &p->target; }
shoal_score_kind shoal_predictor_metric(const shoal_predictor *p) { return p->metric; }
uint32_t shoal_predictor_members(const shoal_predictor *p) { return p->count; }

uint64_t shoal_predictor_trial(const shoal_predictor *p, uint32_t i) { return p->members[i].trial; }

const shoal_trial_net *shoal_predictor_member(const shoal_predictor *p, uint32_t i, double *share) {
  if (share) *share = p->members[i].share;
  return &p->members[i].net;
}

/* ---- saving ------------------------------------------------------------------------- */

static bool hash_packed(const shoal_encoder_packed *p, char out[SHOAL_SHA256_HEX]) {
  const shoal_tensor lists[] = {
      shoal_tensor_vector(FEATURES, SHOAL_I32, p->features_count * SHOAL_FEATURE_WORDS, p->features),
      shoal_tensor_vector(SLOTS, SHOAL_I32, p->slots_count, p->slots),
      shoal_tensor_vector(NUMBERS, SHOAL_F64, p->numbers_count, p->numbers)};
  return shoal_tensor_sha256(lists, sizeof lists / sizeof lists[0], out);
}

static void write_member(const member *m, const shoal_encoder_packed *packed, shoal_json *json) {
  shoal_text text;
  char sha256[SHOAL_SHA256_HEX], encoder_sha256[SHOAL_SHA256_HEX] = "";
  shoal_text_init(&text);
  shoal_model_write(m->net.model, &text);
  shoal_graph_weights_sha256(m->net.graph, m->net.weights, sha256);
  shoal_json_open(json, NULL, '{');
  shoal_json_real(json, "share", m->share);
  shoal_json_int(json, "trial", (int64_t)m->trial);
  shoal_json_text_n(json, "model", text.bytes ? text.bytes : "", text.length);
  shoal_json_text(json, "sha256", sha256);
  json->out->failed |= !hash_packed(packed, encoder_sha256);
  shoal_json_text(json, "encoder_sha256", encoder_sha256);
  shoal_encoder_write_choice(m->net.encoder, json, "encoder");
  shoal_json_close(json, '}');
  json->out->failed |= text.failed;
  shoal_text_release(&text);
}

static void write_meta(const shoal_predictor *p, const shoal_encoder_packed *packed, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "version", VERSION);
  shoal_json_text(&json, "metric", shoal_score_name(p->metric));
  shoal_json_open(&json, "scores", '{');
  shoal_scores_write(&p->valid, p->target.problem, &json, "");
  shoal_json_close(&json, '}');
  shoal_estimate_write(&p->estimate, &json);
  if (p->test_rows > 0) {
    shoal_json_open(&json, "test_scores", '{');
    shoal_scores_write(&p->test, p->target.problem, &json, "");
    shoal_json_close(&json, '}');
    shoal_json_int(&json, "test_rows", (int64_t)p->test_rows);
  }
  shoal_target_write(&p->target, &json, "target");
  shoal_json_open(&json, "members", '[');
  for (uint32_t i = 0; i < p->count; i++) write_member(&p->members[i], &packed[i], &json);
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
}

static void tensor_name(char out[NAME_BYTES_MAX], uint32_t number, const char *param) {
  snprintf(out, NAME_BYTES_MAX, "%u.%s", number, param);
}

/* The tensors of a file in the making. */
typedef struct tensor_list {
  shoal_tensor *at;
  char (*names)[NAME_BYTES_MAX];
  size_t count;
} tensor_list;

/* Under its name, with the network's number in front. */
static void add_tensor(tensor_list *list, uint32_t number, shoal_tensor tensor) {
  tensor_name(list->names[list->count], number, tensor.name);
  tensor.name = list->names[list->count];
  list->at[list->count++] = tensor;
}

/* Those of the widest values first: then all lie in the file at multiples of their size. */
static void list_tensors(const shoal_predictor *p, const shoal_encoder_packed *packed,
                         const shoal_text *profile, tensor_list *list) {
  for (uint32_t i = 0; i < p->count; i++)
    add_tensor(list, i, shoal_tensor_vector(NUMBERS, SHOAL_F64, packed[i].numbers_count, packed[i].numbers));
  for (uint32_t i = 0; i < p->count; i++) {
    const shoal_trial_net *net = &p->members[i].net;
    uint64_t words = packed[i].features_count * SHOAL_FEATURE_WORDS;
    add_tensor(list, i, shoal_tensor_vector(FEATURES, SHOAL_I32, words, packed[i].features));
    add_tensor(list, i, shoal_tensor_vector(SLOTS, SHOAL_I32, packed[i].slots_count, packed[i].slots));
    for (uint32_t k = 0; k < net->graph->params_count; k++) {
      const shoal_param *param = &net->graph->params[k];
      add_tensor(list, i,
                 shoal_tensor_of(param->name, SHOAL_F32, param->dims_count, param->dims,
                                 net->weights + param->offset));
    }
  }
  list->at[list->count++] = shoal_tensor_vector(PROFILE, SHOAL_U8, profile->length, profile->bytes);
}

static shoal_status save(const shoal_predictor *p, const char *path, const shoal_encoder_packed *packed,
                         shoal_error *err) {
  size_t tensors_max = 1;
  for (uint32_t i = 0; i < p->count; i++) tensors_max += 3 + p->members[i].net.graph->params_count;
  tensor_list list = {.at = calloc(tensors_max, sizeof *list.at),
                      .names = calloc(tensors_max, sizeof *list.names)};
  shoal_text meta_text = {0}, profile = {0};
  shoal_json json;
  shoal_json_init(&json, &profile);
  shoal_profile_write(&p->profile, &json, NULL);
  write_meta(p, packed, &meta_text);
  shoal_status status;
  if (list.at == NULL || list.names == NULL || meta_text.failed || profile.failed) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  } else if (profile.length > profile_bytes_max) {
    status = shoal_fail(err, SHOAL_LIMIT,
                        "%s: names and categories of the columns take %zu bytes; %zu is the most: leave "
                        "columns out",
                        path, profile.length, profile_bytes_max);
  } else {
    list_tensors(p, packed, &profile, &list);
    const shoal_meta meta = {META, meta_text.bytes};
    status = shoal_safetensors_save(path, list.at, list.count, &meta, 1, err);
  }
  free(list.at);
  free(list.names);
  shoal_text_release(&meta_text);
  shoal_text_release(&profile);
  return status;
}

shoal_status shoal_predictor_save(const shoal_predictor *p, const char *path, shoal_error *err) {
  shoal_encoder_packed *packed = calloc(p->count + 1, sizeof *packed);
  if (packed == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < p->count && status == SHOAL_OK; i++)
    status = shoal_encoder_pack(&packed[i], p->members[i].net.encoder, err);
  if (status == SHOAL_OK) status = save(p, path, packed, err);
  for (uint32_t i = 0; i < p->count; i++) shoal_encoder_packed_release(&packed[i]);
  free(packed);
  return status;
}

/* ---- loading ------------------------------------------------------------------------ */

bool shoal_predictor_is(const char *path) { return shoal_safetensors_has(path, META); }

/* What is being read. */
typedef struct loader {
  const char *path;
  const shoal_safetensors *file;
  shoal_predictor *predictor;
  bool is_inline; /* of VERSION_INLINE */
  shoal_error *err;
} loader;

/* A network that takes what the encoder gives, and answers what the target asks. */
static bool check_model(const loader *l, const shoal_trial_net *net) {
  const shoal_model *model = net->model;
  const shoal_target *target = &l->predictor->target;
  const shoal_encoder *encoder = net->encoder;
  uint64_t values = 0;
  uint32_t lookups = 0;
  for (uint32_t i = 0; i < model->layers_count; i++) {
    const shoal_layer *layer = &model->layers[i];
    if (layer->shape.kind != SHOAL_VECTOR) return false;
    values += shoal_shape_values(&layer->shape);
    if (layer->columns == 0) continue; /* all but lookup */
    lookups = layer->columns;
    if (layer->vocabulary != shoal_encoder_vocabulary(encoder)) return false;
  }
  bool number = target->problem == SHOAL_REGRESSION;
  return values <= NODE_VALUES_MAX && lookups == shoal_encoder_lookups(encoder) &&
         model->layers[0].shape.features == shoal_encoder_values(encoder) &&
         model->layers[model->layers_count - 1].shape.features == shoal_target_width(target) &&
         shoal_targets_of(&model->recipe) == (number ? SHOAL_TARGET_NUMBER : SHOAL_TARGET_CLASSES);
}

/* The tensors of a network, all there and of the right shape, before memory is reserved for them. */
static shoal_status check_tensors(const loader *l, uint32_t number, const shoal_graph *graph) {
  char name[NAME_BYTES_MAX];
  for (uint32_t k = 0; k < graph->params_count; k++) {
    const shoal_param *param = &graph->params[k];
    tensor_name(name, number, param->name);
    const shoal_tensor wanted = shoal_tensor_of(name, SHOAL_F32, param->dims_count, param->dims, NULL);
    if (!shoal_tensor_fits(shoal_safetensors_find(l->file, name), &wanted))
      return shoal_fail(l->err, SHOAL_CORRUPT, "%s: tensor '%s' is missing or does not fit its network",
                        l->path, name);
  }
  return SHOAL_OK;
}

static shoal_status read_weights(const loader *l, uint32_t number, shoal_trial_net *net, const char *sha256) {
  shoal_status status = check_tensors(l, number, net->graph);
  if (status != SHOAL_OK) return status;
  char name[NAME_BYTES_MAX], found[SHOAL_SHA256_HEX];
  net->weights = shoal_trial_net_reserve(net->graph);
  if (net->weights == NULL) return shoal_fail(l->err, SHOAL_NO_MEMORY, "%s: out of memory", l->path);
  for (uint32_t k = 0; k < net->graph->params_count; k++) {
    const shoal_param *param = &net->graph->params[k];
    tensor_name(name, number, param->name);
    const shoal_tensor *tensor = shoal_safetensors_find(l->file, name);
    memcpy(net->weights + param->offset, tensor->data, tensor->bytes);
    for (size_t i = 0; i < param->count; i++)
      if (!isfinite(net->weights[param->offset + i]))
        return shoal_fail(l->err, SHOAL_CORRUPT, "%s: tensor '%s' holds something that is no number", l->path,
                          name);
  }
  shoal_graph_weights_sha256(net->graph, net->weights, found);
  if (strcmp(found, sha256) != 0)
    return shoal_fail(l->err, SHOAL_CORRUPT,
                      "%s: the weights of network %u do not match their checksum; the file is damaged",
                      l->path, number + 1);
  return SHOAL_OK;
}

/* A copy of a vector, whose length in values must be a multiple of `each`; where it lies in the file is the file's
 * choice, and need not suit its type. */
static shoal_status copy_vector(const loader *l, uint32_t number, const char *name, shoal_dtype dtype,
                                uint32_t each, void **out, uint64_t *count) {
  char full[NAME_BYTES_MAX];
  tensor_name(full, number, name);
  const shoal_tensor *found = shoal_safetensors_find(l->file, full);
  if (found == NULL || found->dtype != dtype || found->dims_count != 1 || found->dims[0] % each != 0)
    return shoal_fail(l->err, SHOAL_CORRUPT, "the tensor '%s' is missing or does not fit", full);
  *out = malloc(found->bytes + 1);
  if (*out == NULL) return shoal_fail(l->err, SHOAL_NO_MEMORY, "out of memory");
  if (found->bytes > 0) memcpy(*out, found->data, found->bytes);
  *count = found->dims[0] / each;
  return SHOAL_OK;
}

static shoal_status copy_packed(const loader *l, uint32_t number, shoal_encoder_packed *out) {
  void *features = NULL, *slots = NULL, *numbers = NULL;
  shoal_status status =
      copy_vector(l, number, FEATURES, SHOAL_I32, SHOAL_FEATURE_WORDS, &features, &out->features_count);
  if (status == SHOAL_OK) status = copy_vector(l, number, SLOTS, SHOAL_I32, 1, &slots, &out->slots_count);
  if (status == SHOAL_OK)
    status = copy_vector(l, number, NUMBERS, SHOAL_F64, 1, &numbers, &out->numbers_count);
  out->features = features;
  out->slots = slots;
  out->numbers = numbers;
  return status;
}

static shoal_status read_packed(const loader *l, uint32_t number, const cJSON *json, shoal_encoder **out) {
  const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(json, "encoder_sha256");
  char found[SHOAL_SHA256_HEX];
  shoal_encoder_packed packed = {0};
  shoal_status status = copy_packed(l, number, &packed);
  if (status == SHOAL_OK && !hash_packed(&packed, found))
    status = shoal_fail(l->err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK && (!cJSON_IsString(sha256) || strcmp(sha256->valuestring, found) != 0))
    status =
        shoal_fail(l->err, SHOAL_CORRUPT, "its encoder does not match its checksum; the file is damaged");
  if (status == SHOAL_OK)
    status = shoal_encoder_unpack(out, &l->predictor->profile,
                                  cJSON_GetObjectItemCaseSensitive(json, "encoder"), &packed, l->err);
  shoal_encoder_packed_release(&packed);
  return status;
}

static shoal_status read_encoder(const loader *l, uint32_t number, const cJSON *json, shoal_encoder **out) {
  if (!l->is_inline) return read_packed(l, number, json, out);
  return shoal_encoder_read(out, &l->predictor->profile, cJSON_GetObjectItemCaseSensitive(json, "encoder"),
                            l->err);
}

static shoal_status read_member(const loader *l, const cJSON *json) {
  uint32_t number = l->predictor->count;
  const cJSON *share = cJSON_GetObjectItemCaseSensitive(json, "share");
  const cJSON *trial = cJSON_GetObjectItemCaseSensitive(json, "trial");
  const cJSON *model = cJSON_GetObjectItemCaseSensitive(json, "model");
  const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(json, "sha256");
  if (!cJSON_IsNumber(share) || !(share->valuedouble > 0 && share->valuedouble <= 1 + 1e-9) ||
      !cJSON_IsNumber(trial) || !(trial->valuedouble >= 0 && trial->valuedouble < 1e15) ||
      !cJSON_IsString(model) || !cJSON_IsString(sha256))
    return shoal_fail(l->err, SHOAL_CORRUPT, "%s: network %u is not described as it should be", l->path,
                      number + 1);
  member *m = &l->predictor->members[l->predictor->count++];
  m->share = share->valuedouble;
  m->trial = (uint64_t)trial->valuedouble;
  shoal_status status = read_encoder(l, number, json, &m->net.encoder);
  if (status == SHOAL_OK)
    status =
        shoal_model_parse(&m->net.model, "network", model->valuestring, strlen(model->valuestring), l->err);
  if (status != SHOAL_OK) {
    shoal_error_prefix(l->err, "%s: network %u: ", l->path, number + 1);
    return status;
  }
  if (!check_model(l, &m->net))
    return shoal_fail(l->err, SHOAL_CORRUPT, "%s: network %u does not fit the columns or the target", l->path,
                      number + 1);
  status = shoal_graph_create(&m->net.graph, m->net.model, l->err);
  return status == SHOAL_OK ? read_weights(l, number, &m->net, sha256->valuestring) : status;
}

static shoal_status read_members(const loader *l, const cJSON *array) {
  int count = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
  if (count < 1 || count > SHOAL_MEMBERS_MAX)
    return shoal_fail(l->err, SHOAL_CORRUPT, "%s: a model has 1 to %d networks; this has %d", l->path,
                      SHOAL_MEMBERS_MAX, count);
  double shares = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    shoal_status status = read_member(l, item);
    if (status != SHOAL_OK) return status;
    shares += l->predictor->members[l->predictor->count - 1].share;
  }
  if (fabs(shares - 1) > 1e-6)
    return shoal_fail(l->err, SHOAL_CORRUPT, "%s: the networks' shares add up to %g, not to 1", l->path,
                      shares);
  return SHOAL_OK;
}

static shoal_status read_profile(const loader *l, const cJSON *json) {
  shoal_profile *out = &l->predictor->profile;
  if (l->is_inline)
    return shoal_profile_from_json(out, cJSON_GetObjectItemCaseSensitive(json, "profile"), l->err);
  const shoal_tensor *tensor = shoal_safetensors_find(l->file, PROFILE);
  if (tensor == NULL || tensor->dtype != SHOAL_U8 || tensor->bytes > profile_bytes_max)
    return shoal_fail(l->err, SHOAL_CORRUPT, "the tensor '%s' is missing or too large", PROFILE);
  cJSON *parsed = cJSON_ParseWithLength(tensor->data, tensor->bytes);
  shoal_status status =
      parsed ? shoal_profile_from_json(out, parsed, l->err)
             : shoal_fail(l->err, SHOAL_CORRUPT, "the tensor '%s' is not JSON; the file is damaged", PROFILE);
  cJSON_Delete(parsed);
  return status;
}

static shoal_status read_predictor(loader *l, const cJSON *json) {
  shoal_predictor *p = l->predictor;
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(json, "version");
  const cJSON *metric = cJSON_GetObjectItemCaseSensitive(json, "metric");
  if (!cJSON_IsNumber(version))
    return shoal_fail(l->err, SHOAL_CORRUPT, "%s: '%s' is damaged", l->path, META);
  l->is_inline = version->valuedouble == VERSION_INLINE;
  if (version->valuedouble != VERSION && !l->is_inline)
    return shoal_fail(l->err, SHOAL_UNSUPPORTED,
                      "%s: a model of version %g; this Shoal reads versions %d and %d", l->path,
                      version->valuedouble, VERSION_INLINE, VERSION);
  shoal_status status = read_profile(l, json);
  if (status == SHOAL_OK)
    status =
        shoal_target_read(&p->target, cJSON_GetObjectItemCaseSensitive(json, "target"), &p->profile, l->err);
  if (status != SHOAL_OK) {
    shoal_error_prefix(l->err, "%s: ", l->path);
    return status;
  }
  if (!cJSON_IsString(metric) || !shoal_score_parse(metric->valuestring, &p->metric) ||
      !shoal_score_fits(p->metric, p->target.problem))
    return shoal_fail(l->err, SHOAL_CORRUPT, "%s: its metric is unknown or does not fit the target", l->path);
  shoal_scores_read(&p->valid, cJSON_GetObjectItemCaseSensitive(json, "scores"));
  shoal_estimate_read(&p->estimate, json);
  const cJSON *test_rows = cJSON_GetObjectItemCaseSensitive(json, "test_rows");
  if (cJSON_IsNumber(test_rows) && test_rows->valuedouble >= 1 && test_rows->valuedouble < 1e15) {
    shoal_scores_read(&p->test, cJSON_GetObjectItemCaseSensitive(json, "test_scores"));
    p->test_rows = (uint64_t)test_rows->valuedouble;
  }
  return read_members(l, cJSON_GetObjectItemCaseSensitive(json, "members"));
}

/* The file goes, in any case. */
static shoal_status load(shoal_predictor **out, const char *name, shoal_safetensors *file, shoal_error *err) {
  loader l = {.path = name, .file = file, .predictor = new_predictor(SHOAL_SCORE_ACCURACY), .err = err};
  const char *text = shoal_safetensors_meta(file, META);
  cJSON *json = text ? cJSON_Parse(text) : NULL;
  shoal_status status;
  if (l.predictor == NULL)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", name);
  else if (text == NULL)
    status =
        shoal_fail(err, SHOAL_INVALID, "%s: not a model of `shoal search`: it holds no '%s'", name, META);
  else if (!cJSON_IsObject(json))
    status = shoal_fail(err, SHOAL_CORRUPT, "%s: '%s' is not JSON; the file is damaged", name, META);
  else
    status = read_predictor(&l, json);
  cJSON_Delete(json);
  shoal_safetensors_destroy(file);
  if (status == SHOAL_OK)
    *out = l.predictor;
  else
    shoal_predictor_destroy(l.predictor);
  return status;
}

shoal_status shoal_predictor_load(shoal_predictor **out, const char *path, shoal_error *err) {
  *out = NULL;
  shoal_safetensors *file;
  shoal_status status = shoal_safetensors_load(&file, path, err);
  return status == SHOAL_OK ? load(out, path, file, err) : status;
}

shoal_status shoal_predictor_parse(shoal_predictor **out, const char *name, const uint8_t *bytes,
                                   size_t length, shoal_error *err) {
  *out = NULL;
  shoal_safetensors *file;
  shoal_status status = shoal_safetensors_parse(&file, name, bytes, length, err);
  return status == SHOAL_OK ? load(out, name, file, err) : status;
}

/* ---- predicting --------------------------------------------------------------------- */

typedef struct pass {
  const shoal_predictor *predictor;
  const shoal_rows *rows;
  const uint64_t *at;
  uint64_t count;
  uint32_t width;
  double *out;
  atomic_int status;
  shoal_error *errors; /* one a thread */
} pass;

/* The networks' answers for some rows, added up in the order of the networks. */
static void chunk_task(void *context, uint32_t task, uint32_t thread) {
  pass *p = context;
  if (atomic_load(&p->status) != SHOAL_OK) return;
  uint64_t first = (uint64_t)task * CHUNK_ROWS, left = p->count - first;
  shoal_row_list list = {(uint64_t *)(p->at + first), left < CHUNK_ROWS ? left : CHUNK_ROWS};
  size_t values = (size_t)list.count * p->width;
  double *out = p->out + first * p->width;
  float *one = malloc((values + 1) * sizeof *one);
  shoal_status status = one ? SHOAL_OK : shoal_fail(&p->errors[thread], SHOAL_NO_MEMORY, "out of memory");
  memset(out, 0, values * sizeof *out);
  for (uint32_t i = 0; i < p->predictor->count && status == SHOAL_OK; i++) {
    const member *m = &p->predictor->members[i];
    status = shoal_trial_net_predict(&m->net, p->rows, &list, one, &p->errors[thread]);
    for (size_t v = 0; v < values && status == SHOAL_OK; v++) out[v] += m->share * (double)one[v];
  }
  const shoal_target *target = &p->predictor->target;
  for (size_t v = 0; v < values && target->problem == SHOAL_REGRESSION; v++)
    out[v] = out[v] * target->deviation + target->mean;
  free(one);
  int none = SHOAL_OK;
  if (status != SHOAL_OK) atomic_compare_exchange_strong(&p->status, &none, (int)status);
}

static shoal_status run_chunks(pass *p, uint32_t threads, shoal_error *err) {
  uint64_t tasks = (p->count + CHUNK_ROWS - 1) / CHUNK_ROWS;
  if (tasks > UINT32_MAX) return shoal_fail(err, SHOAL_LIMIT, "too many rows at once");
  if (threads > tasks) threads = tasks > 0 ? (uint32_t)tasks : 1;
  shoal_pool *pool;
  p->errors = calloc(threads, sizeof *p->errors);
  if (p->errors == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_pool_create(&pool, threads, err);
  if (status == SHOAL_OK) {
    shoal_pool_run(pool, (uint32_t)tasks, chunk_task, p);
    shoal_pool_destroy(pool);
    status = (shoal_status)atomic_load(&p->status);
    for (uint32_t t = 0; t < threads && status != SHOAL_OK; t++)
      if (p->errors[t].status == status && err) *err = p->errors[t];
  }
  free(p->errors);
  return status;
}

static uint64_t *all_rows(uint64_t count) {
  uint64_t *at = malloc((count + 1) * sizeof *at);
  for (uint64_t i = 0; at && i < count; i++) at[i] = i;
  return at;
}

shoal_status shoal_predictor_run(const shoal_predictor *p, const shoal_rows *rows, const shoal_row_list *list,
                                 uint32_t threads, double *out, shoal_error *err) {
  uint64_t count = list ? list->count : shoal_rows_count(rows);
  uint64_t *all = list ? NULL : all_rows(count);
  if (list == NULL && all == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  pass work = {.predictor = p,
               .rows = rows,
               .at = list ? list->at : all,
               .count = count,
               .width = shoal_target_width(&p->target),
               .out = out};
  atomic_init(&work.status, SHOAL_OK);
  shoal_status status = run_chunks(&work, threads > 0 ? threads : 1, err);
  free(all);
  return status;
}

uint32_t shoal_prediction_class(const shoal_target *target, const double *values) {
  uint32_t best = 0;
  for (uint32_t c = 1; c < target->classes.count; c++)
    if (values[c] > values[best]) best = c;
  return best;
}

void shoal_prediction_write(const shoal_target *target, const double *values, shoal_json *json) {
  if (target->problem == SHOAL_REGRESSION) {
    shoal_json_real(json, "value", values[0]);
    return;
  }
  uint32_t best = shoal_prediction_class(target, values);
  shoal_json_text(json, "class", shoal_names_at(&target->classes, best));
  shoal_json_real(json, "probability", values[best]);
  shoal_json_open(json, "probabilities", '{');
  for (uint32_t c = 0; c < target->classes.count; c++)
    shoal_json_real(json, shoal_names_at(&target->classes, c), values[c]);
  shoal_json_close(json, '}');
}

static shoal_status score_classes(const shoal_predictor *p, const shoal_rows *rows,
                                  const shoal_row_list *list, uint64_t count, const double *predicted,
                                  shoal_scores *out, shoal_error *err) {
  uint32_t classes = p->target.classes.count;
  float *probability = malloc((count * classes + 1) * sizeof *probability);
  int32_t *label = malloc((count + 1) * sizeof *label);
  shoal_status status = SHOAL_OK;
  if (probability == NULL || label == NULL) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  } else {
    for (uint64_t i = 0; i < count * classes; i++) probability[i] = (float)predicted[i];
    for (uint64_t i = 0; i < count; i++)
      label[i] = shoal_target_label(&p->target, rows, list ? list->at[i] : i);
    status = shoal_scores_classes(out, probability, label, count, classes, p->target.positive, err);
  }
  free(probability);
  free(label);
  return status;
}

static shoal_status score_numbers(const shoal_predictor *p, const shoal_rows *rows,
                                  const shoal_row_list *list, uint64_t count, const double *predicted,
                                  shoal_scores *out, shoal_error *err) {
  double *right = malloc((count + 1) * sizeof *right);
  if (right == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint64_t i = 0; i < count; i++)
    right[i] = shoal_rows_number(rows, list ? list->at[i] : i, p->target.column);
  shoal_scores_numbers(out, predicted, right, count);
  free(right);
  return SHOAL_OK;
}

shoal_status shoal_predictor_judge(const shoal_predictor *p, const shoal_rows *rows,
                                   const shoal_row_list *list, const double *predicted, shoal_scores *out,
                                   shoal_error *err) {
  shoal_scores_none(out);
  if (!shoal_rows_has_target(rows))
    return shoal_fail(err, SHOAL_INVALID, "the rows have no column '%s' to compare the predictions with",
                      p->profile.columns[p->target.column].name);
  uint64_t count = list ? list->count : shoal_rows_count(rows);
  return p->target.problem == SHOAL_REGRESSION ? score_numbers(p, rows, list, count, predicted, out, err)
                                               : score_classes(p, rows, list, count, predicted, out, err);
}

shoal_status shoal_predictor_scores(const shoal_predictor *p, const shoal_rows *rows,
                                    const shoal_row_list *list, uint32_t threads, shoal_scores *out,
                                    shoal_error *err) {
  uint64_t count = list ? list->count : shoal_rows_count(rows);
  double *predicted = malloc((count * shoal_target_width(&p->target) + 1) * sizeof *predicted);
  if (predicted == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_predictor_run(p, rows, list, threads, predicted, err);
  if (status == SHOAL_OK) status = shoal_predictor_judge(p, rows, list, predicted, out, err);
  free(predicted);
  return status;
}
