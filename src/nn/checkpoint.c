/* checkpoint.c: a training state as tensors and metadata, and back.
 *
 * Loading trusts nothing: every tensor is looked up by the name, and compared with the
 * shape, that the graph asks for before a value is copied. */
#include "nn/checkpoint.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_at.h"
#include "nn/onnx.h"

static const char VERSION[] = "1";

/* ---- a state as tensors ------------------------------------------------------------- */

/* The tensors of a state's vectors, those that are there: the parameters, the optimiser's slots, what is carried. */
typedef struct listing {
  shoal_tensor *tensors; /* whose data lies in the state */
  size_t count;
  shoal_arena memory;
} listing;

/* A slot's are "optimizer.1.<name>" and "optimizer.2.<name>". */
static const char *tensor_name(listing *l, const shoal_param *param, int slot) {
  if (slot == 0) return param->name;
  size_t size = strlen(param->name) + sizeof "optimizer.1.";
  char *name = shoal_arena_take(&l->memory, size);
  if (name) snprintf(name, size, "optimizer.%d.%s", slot, param->name);
  return name;
}

/* False without memory. Released either way. */
static bool list_tensors(listing *l, const shoal_graph *graph, const shoal_train_state *state) {
  const float *vectors[] = {state->weights, state->slot1, state->slot2};
  enum { VECTORS = sizeof vectors / sizeof vectors[0] };
  *l = (listing){0};
  shoal_arena_init(&l->memory, SIZE_MAX);
  l->tensors = shoal_arena_array(&l->memory, (size_t)graph->params_count * VECTORS + 1, sizeof *l->tensors);
  if (!l->tensors) return false;
  for (int v = 0; v < VECTORS; v++) {
    for (uint32_t p = 0; p < graph->params_count && vectors[v]; p++) {
      const shoal_param *param = &graph->params[p];
      if (v > 0 && param->kind == SHOAL_PARAM_STATISTIC) continue;
      shoal_tensor *tensor = &l->tensors[l->count++];
      *tensor = shoal_tensor_of(tensor_name(l, param, v), SHOAL_F32, param->dims_count, param->dims,
                                vectors[v] + param->offset);
      if (!tensor->name) return false;
    }
  }
  if (state->carry)
    l->tensors[l->count++] = shoal_tensor_vector("state.carry", SHOAL_F32, state->carry_count, state->carry);
  return true;
}

/* Of all but the weights, which have a checksum of their own and come first. False without memory. */
static bool state_sha256(const listing *l, const shoal_graph *graph, char out[SHOAL_SHA256_HEX]) {
  return shoal_tensor_sha256(l->tensors + graph->params_count, l->count - graph->params_count, out);
}

/* ---- saving ------------------------------------------------------------------------- */

/* Where a training stands, field by field. */
static const struct {
  const char *key;
  size_t offset; /* in shoal_train_state */
  bool real;     /* a double; else an uint64_t */
} position_fields[] = {
    {"epoch", offsetof(shoal_train_state, epoch), false},
    {"round", offsetof(shoal_train_state, round), false},
    {"step", offsetof(shoal_train_state, step), false},
    {"correct", offsetof(shoal_train_state, sums.correct), false},
    {"counted", offsetof(shoal_train_state, sums.counted), false},
    {"loss_sum", offsetof(shoal_train_state, sums.loss), true},
    {"weight_sum", offsetof(shoal_train_state, sums.weight), true},
    {"square_sum", offsetof(shoal_train_state, sums.square), true},
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
  listing l;
  shoal_text model = {0}, position = {0};
  char weights_sha256[SHOAL_SHA256_HEX], rest_sha256[SHOAL_SHA256_HEX];

  shoal_model_write(graph->model, &model);
  write_position(state, &position);
  shoal_graph_weights_sha256(graph, state->weights, weights_sha256);
  shoal_status status;
  if (!list_tensors(&l, graph, state) || model.failed || position.failed ||
      !state_sha256(&l, graph, rest_sha256)) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  } else {
    const shoal_meta meta[] = {{"shoal.version", VERSION},          {"shoal.model", model.bytes},
                               {"shoal.position", position.bytes},  {"shoal.weights_sha256", weights_sha256},
                               {"shoal.state_sha256", rest_sha256}, {"shoal.data", data_json}};
    size_t meta_count = sizeof meta / sizeof meta[0] - (data_json ? 0 : 1);
    status = shoal_safetensors_save(path, l.tensors, l.count, meta, meta_count, err);
  }
  shoal_arena_release(&l.memory);
  shoal_text_release(&model);
  shoal_text_release(&position);
  return status;
}

/* ---- loading ------------------------------------------------------------------------ */

static shoal_status read_model(shoal_checkpoint *loaded, shoal_error *err) {
  const char *version = shoal_safetensors_meta(loaded->file, "shoal.version");
  const char *model = shoal_safetensors_meta(loaded->file, "shoal.model");
  if (!version || !model)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s: a safetensors file, but not one that Shoal wrote: it holds no 'shoal.model'",
                      loaded->path);
  if (strcmp(version, VERSION) != 0)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s: a checkpoint of version '%s'; this Shoal reads version %s",
                      loaded->path, version, VERSION);
  loaded->data_json = shoal_safetensors_meta(loaded->file, "shoal.data");
  return shoal_model_parse(&loaded->model, loaded->path, model, strlen(model), err);
}

shoal_status shoal_checkpoint_load(shoal_checkpoint *out, const char *path, shoal_error *err) {
  size_t length = strlen(path);
  if (length > 4 && strcmp(path + length - 4, ".net") == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s describes a network, but has no weights; train it first: shoal train %s --data SET",
                      path, path);
  shoal_checkpoint loaded = {.path = strdup(path)};
  if (!loaded.path) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  shoal_status status = shoal_onnx_refuse(path, err);
  if (status == SHOAL_OK) status = shoal_safetensors_load(&loaded.file, path, err);
  if (status == SHOAL_OK) status = read_model(&loaded, err);
  if (status == SHOAL_OK)
    *out = loaded;
  else
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

/* Copies the tensor called wanted->name to the place of its data, when it has the shape of `wanted`. */
static shoal_status copy_tensor(const shoal_checkpoint *checkpoint, const shoal_tensor *wanted,
                                shoal_error *err) {
  const shoal_tensor *found = shoal_safetensors_find(checkpoint->file, wanted->name);
  char found_text[DIMS_TEXT_MAX], wanted_text[DIMS_TEXT_MAX];
  if (!found)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: tensor '%s' (%s) is missing", checkpoint->path, wanted->name,
                      dims_text(wanted, wanted_text));
  if (found->dtype != SHOAL_F32)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: tensor '%s' does not hold 32-bit floats", checkpoint->path,
                      wanted->name);
  if (!shoal_tensor_fits(found, wanted))
    return shoal_fail(err, SHOAL_CORRUPT, "%s: tensor '%s' is %s, but the model needs %s", checkpoint->path,
                      wanted->name, dims_text(found, found_text), dims_text(wanted, wanted_text));
  memcpy((void *)wanted->data, found->data, found->bytes); /* in a state that may be written */
  return SHOAL_OK;
}

static bool has_sum(const shoal_checkpoint *checkpoint, const char *key, const char *sum) {
  const char *wanted = shoal_safetensors_meta(checkpoint->file, key);
  return wanted && strcmp(wanted, sum) == 0;
}

/* Fills the vectors that the state has: the weights, and when these are sound the others. */
static shoal_status read_vectors(const shoal_checkpoint *checkpoint, const shoal_graph *graph,
                                 const shoal_train_state *state, bool whole, shoal_error *err) {
  float *const vectors[] = {state->weights, state->slot1, state->slot2};
  for (size_t v = 0; v < sizeof vectors / sizeof vectors[0]; v++)
    if (vectors[v]) memset(vectors[v], 0, graph->weights_count * sizeof(float)); /* the padding */
  char sum[SHOAL_SHA256_HEX];
  size_t done = 0;
  listing l;
  shoal_status status = list_tensors(&l, graph, state) ? SHOAL_OK : SHOAL_NO_MEMORY;
  while (done < graph->params_count && status == SHOAL_OK)
    status = copy_tensor(checkpoint, &l.tensors[done++], err);
  if (status == SHOAL_OK) shoal_graph_weights_sha256(graph, state->weights, sum);
  if (status == SHOAL_OK && !has_sum(checkpoint, "shoal.weights_sha256", sum))
    status = shoal_fail(err, SHOAL_CORRUPT,
                        "%s: the weights do not match their checksum; the file is damaged", checkpoint->path);
  while (done < l.count && status == SHOAL_OK) status = copy_tensor(checkpoint, &l.tensors[done++], err);
  if (status == SHOAL_OK && whole && !state_sha256(&l, graph, sum)) status = SHOAL_NO_MEMORY;
  if (status == SHOAL_OK && whole && !has_sum(checkpoint, "shoal.state_sha256", sum))
    status = shoal_fail(err, SHOAL_CORRUPT,
                        "%s: the state of the training does not match its checksum; the file is damaged, "
                        "but its weights are whole and can still be evaluated",
                        checkpoint->path);
  if (status == SHOAL_NO_MEMORY) shoal_fail(err, status, "%s: out of memory", checkpoint->path);
  shoal_arena_release(&l.memory);
  return status;
}

shoal_status shoal_checkpoint_weights(const shoal_checkpoint *checkpoint, const shoal_graph *graph,
                                      float *weights, shoal_error *err) {
  return read_vectors(checkpoint, graph, &(shoal_train_state){.weights = weights}, false, err);
}

bool shoal_checkpoint_read_position(shoal_train_state *state, const cJSON *position) {
  bool whole = cJSON_IsObject(position);
  for (int i = 0; i < POSITION_FIELDS && whole; i++) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(position, position_fields[i].key);
    void *to = (char *)state + position_fields[i].offset;
    whole =
        position_fields[i].real ? shoal_safetensors_real(item, to) : shoal_read_whole(item, UINT64_MAX, to);
  }
  return whole;
}

shoal_status shoal_checkpoint_position(const shoal_checkpoint *checkpoint, shoal_train_state *state,
                                       shoal_error *err) {
  const char *text = shoal_safetensors_meta(checkpoint->file, "shoal.position");
  cJSON *position = text ? cJSON_Parse(text) : NULL;
  shoal_train_state read = *state;
  bool whole = shoal_checkpoint_read_position(&read, position);
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
  shoal_status status = read_vectors(checkpoint, graph, state, true, err);
  return status == SHOAL_OK ? shoal_checkpoint_position(checkpoint, state, err) : status;
}
