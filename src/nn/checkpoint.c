/* checkpoint.c: a training state as tensors and metadata, and back.
 *
 * Loading trusts nothing: every tensor is looked up by the name, and compared with the
 * shape, that the graph asks for before a value is copied. */
#include "nn/checkpoint.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"

static const char VERSION[] = "1";
static const char CARRY[] = "state.carry";
enum { SLOTS = 2, META_MAX = 6, EXACT_INTEGERS_BITS = 53 };

/* ---- saving ------------------------------------------------------------------------- */

/* Where a training stands, field by field. */
static const struct {
  const char *key;
  size_t offset; /* in shoal_train_state */
  bool real;     /* a double; else an uint64_t */
} position_fields[] = {
#define FIELD(name, real) \
  { #name, offsetof(shoal_train_state, name), real }
    FIELD(epoch, false),   FIELD(round, false),   FIELD(step, false),      FIELD(correct, false),
    FIELD(counted, false), FIELD(loss_sum, true), FIELD(weight_sum, true), FIELD(square_sum, true),
#undef FIELD
};
enum { POSITION_FIELDS = sizeof position_fields / sizeof position_fields[0] };

static void write_position(const shoal_train_state *state, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  for (int i = 0; i < POSITION_FIELDS; i++) {
    const void *from = (const char *)state + position_fields[i].offset;
    if (position_fields[i].real)
      shoal_json_real(&json, position_fields[i].key, *(const double *)from);
    else
      shoal_json_int(&json, position_fields[i].key, *(const int64_t *)from);
  }
  shoal_json_close(&json, '}');
}

static shoal_tensor param_tensor(const shoal_param *param, const char *name, const float *vector) {
  shoal_tensor tensor = {.name = name,
                         .dtype = SHOAL_F32,
                         .dims_count = param->dims_count,
                         .data = vector + param->offset,
                         .bytes = param->count * sizeof(float)};
  for (uint32_t d = 0; d < param->dims_count; d++) tensor.dims[d] = param->dims[d];
  return tensor;
}

/* Slots are "optimizer.1.<name>" and "optimizer.2.<name>". */
static void slot_name(shoal_text *out, int slot, const char *param) {
  shoal_text_clear(out);
  shoal_text_addf(out, "optimizer.%d.%s", slot + 1, param);
}

/* Lists the tensors of the state; `names` keeps the slots' names. False without memory. */
static bool list_tensors(const shoal_graph *graph, const shoal_train_state *state, shoal_tensor *tensors,
                         shoal_text *names, size_t *tensors_count) {
  const float *slots[SLOTS] = {state->slot1, state->slot2};
  size_t count = 0;
  for (uint32_t p = 0; p < graph->params_count; p++)
    tensors[count++] = param_tensor(&graph->params[p], graph->params[p].name, state->weights);
  for (int s = 0; s < SLOTS; s++) {
    for (uint32_t p = 0; p < graph->params_count && slots[s]; p++) {
      const shoal_param *param = &graph->params[p];
      if (param->kind == SHOAL_PARAM_STATISTIC) continue;
      shoal_text *name = &names[count];
      slot_name(name, s, param->name);
      if (name->failed) return false;
      tensors[count++] = param_tensor(param, name->bytes, slots[s]);
    }
  }
  if (state->carry)
    tensors[count++] = (shoal_tensor){.name = CARRY,
                                      .dtype = SHOAL_F32,
                                      .dims_count = 1,
                                      .dims = {state->carry_count},
                                      .data = state->carry,
                                      .bytes = state->carry_count * sizeof(float)};
  *tensors_count = count;
  return true;
}

/* Of what going on needs beside the weights: the optimiser's slots and the carried state. */
static bool state_sha256(const shoal_graph *graph, const shoal_train_state *state,
                         char out[SHOAL_SHA256_HEX]) {
  const float *slots[SLOTS] = {state->slot1, state->slot2};
  shoal_sha256 *hash = shoal_sha256_create();
  if (!hash) return false;
  for (int s = 0; s < SLOTS; s++)
    for (uint32_t p = 0; p < graph->params_count && slots[s]; p++) {
      const shoal_param *param = &graph->params[p];
      if (param->kind == SHOAL_PARAM_STATISTIC) continue;
      shoal_sha256_add(hash, slots[s] + param->offset, param->count * sizeof(float));
    }
  if (state->carry) shoal_sha256_add(hash, state->carry, state->carry_count * sizeof(float));
  uint8_t digest[SHOAL_SHA256_BYTES];
  shoal_sha256_finish(hash, digest);
  shoal_sha256_destroy(hash);
  shoal_hex(digest, sizeof digest, out);
  return true;
}

uint64_t shoal_checkpoint_bytes(const shoal_graph *graph, const shoal_train_state *state,
                                const char *data_json) {
  /* The model's text and hashes; a tensor's line of JSON. */
  enum { HEAD_BYTES = 16 << 10, TENSOR_BYTES = 256 };
  uint64_t vectors = 1 + (state->slot1 != NULL) + (state->slot2 != NULL);
  return vectors * (state->weights_count * sizeof(float) + (uint64_t)graph->params_count * TENSOR_BYTES) +
         (state->carry ? state->carry_count * sizeof(float) : 0) +
         (data_json ? 2 * strlen(data_json) : 0) + /* quotes inside are escaped */
         HEAD_BYTES;
}

shoal_status shoal_checkpoint_save(const char *path, const shoal_graph *graph, const shoal_train_state *state,
                                   const char *data_json, shoal_error *err) {
  size_t tensors_max = (size_t)graph->params_count * (1 + SLOTS) + 1;
  shoal_tensor *tensors = calloc(tensors_max, sizeof *tensors);
  shoal_text *names = calloc(tensors_max, sizeof *names); /* zeroed is initialised */
  shoal_text model, position;
  shoal_text_init(&model);
  shoal_text_init(&position);
  char weights_sha256[SHOAL_SHA256_HEX], rest_sha256[SHOAL_SHA256_HEX];

  shoal_model_write(graph->model, &model);
  write_position(state, &position);
  shoal_graph_weights_sha256(graph, state->weights, weights_sha256);
  shoal_meta meta[META_MAX];
  size_t tensors_count, meta_count = 0;
  shoal_status status;
  if (!tensors || !names || !list_tensors(graph, state, tensors, names, &tensors_count) || model.failed ||
      position.failed || !state_sha256(graph, state, rest_sha256)) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  } else {
    meta[meta_count++] = (shoal_meta){"shoal.version", VERSION};
    meta[meta_count++] = (shoal_meta){"shoal.model", model.bytes};
    meta[meta_count++] = (shoal_meta){"shoal.position", position.bytes};
    meta[meta_count++] = (shoal_meta){"shoal.weights_sha256", weights_sha256};
    meta[meta_count++] = (shoal_meta){"shoal.state_sha256", rest_sha256};
    if (data_json) meta[meta_count++] = (shoal_meta){"shoal.data", data_json};
    status = shoal_safetensors_save(path, tensors, tensors_count, meta, meta_count, err);
  }
  for (size_t i = 0; names && i < tensors_max; i++) shoal_text_release(&names[i]);
  free(names);
  free(tensors);
  shoal_text_release(&model);
  shoal_text_release(&position);
  return status;
}

/* ---- loading ------------------------------------------------------------------------ */

shoal_status shoal_checkpoint_load(shoal_checkpoint *out, const char *path, shoal_error *err) {
  shoal_checkpoint loaded = {.path = strdup(path)};
  if (!loaded.path) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  shoal_status status = shoal_safetensors_load(&loaded.file, path, err);
  if (status != SHOAL_OK) goto fail;
  const char *version = shoal_safetensors_meta(loaded.file, "shoal.version");
  const char *model = shoal_safetensors_meta(loaded.file, "shoal.model");
  if (!version || !model) {
    status =
        shoal_fail(err, SHOAL_INVALID,
                   "%s: a safetensors file, but not one that Shoal wrote: it holds no 'shoal.model'", path);
    goto fail;
  }
  if (strcmp(version, VERSION) != 0) {
    status =
        shoal_fail(err, SHOAL_UNSUPPORTED, "%s: a checkpoint of version '%s'; this Shoal reads version %s",
                   path, version, VERSION);
    goto fail;
  }
  status = shoal_model_parse(&loaded.model, path, model, strlen(model), err);
  if (status != SHOAL_OK) goto fail;
  loaded.data_json = shoal_safetensors_meta(loaded.file, "shoal.data");
  *out = loaded;
  return SHOAL_OK;
fail:
  shoal_checkpoint_release(&loaded);
  return status;
}

void shoal_checkpoint_release(shoal_checkpoint *checkpoint) {
  shoal_model_destroy(checkpoint->model);
  shoal_safetensors_destroy(checkpoint->file);
  free(checkpoint->path);
  *checkpoint = (shoal_checkpoint){0};
}

enum { DIMS_TEXT_MAX = 256 };

/* "20x1x5x5", or "a single value". */
static const char *dims_text(const shoal_tensor *tensor, char out[DIMS_TEXT_MAX]) {
  int used = 0;
  for (uint32_t d = 0; d < tensor->dims_count; d++)
    used += snprintf(out + used, (size_t)(DIMS_TEXT_MAX - used), "%s%llu", d ? "x" : "",
                     (unsigned long long)tensor->dims[d]);
  if (used == 0) snprintf(out, DIMS_TEXT_MAX, "a single value");
  return out;
}

/* Copies the tensor called wanted->name when it has the shape of `wanted`. */
static shoal_status copy_tensor(const shoal_checkpoint *checkpoint, const shoal_tensor *wanted, float *to,
                                shoal_error *err) {
  const shoal_tensor *found = shoal_safetensors_find(checkpoint->file, wanted->name);
  char found_text[DIMS_TEXT_MAX], wanted_text[DIMS_TEXT_MAX];
  if (!found)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: tensor '%s' (%s) is missing", checkpoint->path, wanted->name,
                      dims_text(wanted, wanted_text));
  if (found->dtype != SHOAL_F32)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: tensor '%s' does not hold 32-bit floats", checkpoint->path,
                      wanted->name);
  if (found->dims_count != wanted->dims_count ||
      memcmp(found->dims, wanted->dims, wanted->dims_count * sizeof wanted->dims[0]) != 0)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: tensor '%s' is %s, but the model needs %s", checkpoint->path,
                      wanted->name, dims_text(found, found_text), dims_text(wanted, wanted_text));
  memcpy(to, found->data, found->bytes);
  return SHOAL_OK;
}

shoal_status shoal_checkpoint_weights(const shoal_checkpoint *checkpoint, const shoal_graph *graph,
                                      float *weights, shoal_error *err) {
  memset(weights, 0, graph->weights_count * sizeof *weights); /* the padding */
  for (uint32_t p = 0; p < graph->params_count; p++) {
    const shoal_param *param = &graph->params[p];
    shoal_tensor wanted = param_tensor(param, param->name, weights);
    shoal_status status = copy_tensor(checkpoint, &wanted, weights + param->offset, err);
    if (status != SHOAL_OK) return status;
  }
  const char *expected = shoal_safetensors_meta(checkpoint->file, "shoal.weights_sha256");
  char actual[SHOAL_SHA256_HEX];
  shoal_graph_weights_sha256(graph, weights, actual);
  if (!expected || strcmp(expected, actual) != 0)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: the weights do not match their checksum; the file is damaged",
                      checkpoint->path);
  return SHOAL_OK;
}

static shoal_status read_slot(const shoal_checkpoint *checkpoint, const shoal_graph *graph, int slot,
                              float *into, shoal_error *err) {
  shoal_text name;
  shoal_text_init(&name);
  shoal_status status = SHOAL_OK;
  memset(into, 0, graph->weights_count * sizeof *into);
  for (uint32_t p = 0; p < graph->params_count && status == SHOAL_OK; p++) {
    const shoal_param *param = &graph->params[p];
    if (param->kind == SHOAL_PARAM_STATISTIC) continue;
    slot_name(&name, slot, param->name);
    if (name.failed) {
      status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", checkpoint->path);
      break;
    }
    shoal_tensor wanted = param_tensor(param, name.bytes, into);
    status = copy_tensor(checkpoint, &wanted, into + param->offset, err);
  }
  shoal_text_release(&name);
  return status;
}

static bool read_count(const cJSON *item, uint64_t *out) {
  double limit = (double)((uint64_t)1 << EXACT_INTEGERS_BITS);
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < limit)) return false;
  *out = (uint64_t)item->valuedouble;
  return (double)*out == item->valuedouble;
}

/* What JSON cannot say, NaN and infinity, was written as null. */
static bool read_real(const cJSON *item, double *out) {
  *out = cJSON_IsNumber(item) ? item->valuedouble : NAN;
  return cJSON_IsNumber(item) || cJSON_IsNull(item);
}

shoal_status shoal_checkpoint_position(const shoal_checkpoint *checkpoint, shoal_train_state *state,
                                       shoal_error *err) {
  const char *text = shoal_safetensors_meta(checkpoint->file, "shoal.position");
  cJSON *position = text ? cJSON_Parse(text) : NULL;
  shoal_train_state read = *state;
  bool whole = cJSON_IsObject(position);
  for (int i = 0; i < POSITION_FIELDS && whole; i++) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(position, position_fields[i].key);
    void *to = (char *)&read + position_fields[i].offset;
    whole = position_fields[i].real ? read_real(item, to) : read_count(item, to);
  }
  cJSON_Delete(position);
  if (!whole)
    return shoal_fail(err, SHOAL_CORRUPT,
                      "%s: where the training stood ('shoal.position') is missing or damaged",
                      checkpoint->path);
  *state = read;
  return SHOAL_OK;
}

shoal_status shoal_checkpoint_resume(const shoal_checkpoint *checkpoint, const shoal_graph *graph,
                                     shoal_train_state *state, shoal_error *err) {
  float *slots[SLOTS] = {state->slot1, state->slot2};
  shoal_status status = shoal_checkpoint_weights(checkpoint, graph, state->weights, err);
  for (int s = 0; s < SLOTS && status == SHOAL_OK; s++) {
    if (slots[s]) status = read_slot(checkpoint, graph, s, slots[s], err);
  }
  if (status == SHOAL_OK && state->carry) {
    shoal_tensor wanted = {.name = CARRY, .dims_count = 1, .dims = {state->carry_count}};
    status = copy_tensor(checkpoint, &wanted, state->carry, err);
  }
  char found[SHOAL_SHA256_HEX];
  const char *wanted = shoal_safetensors_meta(checkpoint->file, "shoal.state_sha256");
  if (status == SHOAL_OK && !state_sha256(graph, state, found))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", checkpoint->path);
  if (status == SHOAL_OK && (!wanted || strcmp(wanted, found) != 0))
    status = shoal_fail(err, SHOAL_CORRUPT,
                        "%s: the state of the training does not match its checksum; the file is damaged, "
                        "but its weights are whole and can still be evaluated",
                        checkpoint->path);
  return status == SHOAL_OK ? shoal_checkpoint_position(checkpoint, state, err) : status;
}
