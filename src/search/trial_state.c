/* trial_state.c: a trial's state in one safetensors file; its result as JSON.
 *
 * Tensors, for fold 0 and so on: "0.weights", "0.slot1", "0.slot2" (of the optimiser, where it has them),
 * "0.best". Each is the flat vector of the graph, padding included: nobody else reads these files.
 * Metadata "shoal.trial": JSON with version, trial, the SHA-256 of the networks' texts, the result so far,
 * and each fold's position. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_at.h"
#include "nn/checkpoint.h"
#include "search/trial_internal.h"

enum { VERSION = 1, VECTORS = 4, NAME_MAX_BYTES = 24 };
static const char META[] = "shoal.trial";
static const double seconds_max = 1e8; /* that somebody may say a unit took */
static const char *const vector_names[VECTORS] = {"weights", "slot1", "slot2", "best"};

/* ---- results ------------------------------------------------------------------------ */

void shoal_trial_result_write(const shoal_trial_result *r, shoal_json *json, const char *key) {
  shoal_json_open(json, key, '{');
  shoal_json_bool(json, "failed", r->failed);
  shoal_json_real(json, "score", r->score);
  shoal_json_open(json, "scores", '{');
  shoal_scores_write(&r->scores, isnan(r->scores.of[SHOAL_SCORE_RMSE]) ? SHOAL_BINARY : SHOAL_REGRESSION,
                     json, "");
  shoal_json_close(json, '}');
  shoal_json_int(json, "best_epoch", r->best_epoch);
  shoal_json_int(json, "epochs", r->epochs);
  shoal_json_bool(json, "over", r->over);
  shoal_json_int(json, "weights", (int64_t)r->weights);
  shoal_json_real(json, "seconds", r->seconds);
  shoal_json_open(json, "parts", '[');
  for (uint32_t i = 0; i < r->parts_count; i++) {
    shoal_json_open(json, NULL, '[');
    shoal_json_real(json, NULL, r->parts[i].others);
    shoal_json_real(json, NULL, r->parts[i].own);
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, ']');
  shoal_json_open(json, "curve", '[');
  for (uint32_t i = 0; i < r->curve_count; i++) {
    shoal_json_open(json, NULL, '[');
    shoal_json_int(json, NULL, r->curve[i].epoch);
    shoal_json_real(json, NULL, r->curve[i].train_loss);
    shoal_json_real(json, NULL, r->curve[i].score);
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, ']');
  shoal_json_text(json, "sha256", r->sha256);
  shoal_json_text(json, "error", r->error);
  shoal_json_close(json, '}');
}

/* Text from strangers that is shown to people. */
static bool read_text(const cJSON *json, const char *key, char *out, size_t size) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  if (!cJSON_IsString(item)) return false;
  shoal_text_plain(out, size, item->valuestring, strlen(item->valuestring));
  return true;
}

static bool read_curve(shoal_trial_result *r, const cJSON *array) {
  if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > SHOAL_CURVE_MAX) return false;
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    shoal_curve_point *p = &r->curve[r->curve_count];
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 3) return false;
    if (!cJSON_IsNumber(item->child) || item->child->valuedouble != r->curve_count + 1) return false;
    p->epoch = ++r->curve_count;
    if (!shoal_safetensors_real(item->child->next, &p->train_loss) ||
        !shoal_safetensors_real(item->child->next->next, &p->score))
      return false;
  }
  return true;
}

/* Older results have none. */
static bool read_parts(shoal_trial_result *r, const cJSON *array) {
  if (array == NULL) return true;
  if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > SHOAL_PARTS_MAX) return false;
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    shoal_trial_part *part = &r->parts[r->parts_count++];
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 ||
        !shoal_safetensors_real(item->child, &part->others) ||
        !shoal_safetensors_real(item->child->next, &part->own))
      return false;
  }
  return true;
}

shoal_status shoal_trial_result_read(shoal_trial_result *out, const cJSON *json, shoal_error *err) {
  memset(out, 0, sizeof *out);
  const cJSON *scores = cJSON_GetObjectItemCaseSensitive(json, "scores");
  bool good = cJSON_IsObject(scores) && shoal_read_flag_at(json, "failed", &out->failed) &&
              shoal_safetensors_real(cJSON_GetObjectItemCaseSensitive(json, "score"), &out->score) &&
              shoal_read_u32_at(json, "best_epoch", UINT32_MAX, &out->best_epoch) &&
              shoal_read_u32_at(json, "epochs", UINT32_MAX, &out->epochs) &&
              shoal_read_flag_at(json, "over", &out->over) &&
              shoal_read_whole_at(json, "weights", UINT64_MAX, &out->weights) &&
              shoal_safetensors_real(cJSON_GetObjectItemCaseSensitive(json, "seconds"), &out->seconds) &&
              read_parts(out, cJSON_GetObjectItemCaseSensitive(json, "parts")) &&
              read_curve(out, cJSON_GetObjectItemCaseSensitive(json, "curve")) &&
              read_text(json, "sha256", out->sha256, sizeof out->sha256) &&
              read_text(json, "error", out->error, sizeof out->error);
  bool brief = out->curve_count == 0; /* the curve may be kept elsewhere */
  if (good) good = (brief || out->epochs == out->curve_count) && out->best_epoch <= out->epochs;
  if (good) good = out->failed || out->best_epoch == 0 || isfinite(out->score);
  if (good) good = out->seconds >= 0 && out->seconds <= seconds_max;
  if (!good) return shoal_fail(err, SHOAL_CORRUPT, "a trial's result is damaged");
  shoal_scores_read(&out->scores, scores);
  return SHOAL_OK;
}

/* ---- saving ------------------------------------------------------------------------- */

static void write_position(const shoal_train_state *state, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "epoch", (int64_t)state->epoch);
  shoal_json_int(json, "round", (int64_t)state->round);
  shoal_json_int(json, "step", (int64_t)state->step);
  shoal_json_int(json, "counted", (int64_t)state->sums.counted);
  shoal_json_int(json, "correct", (int64_t)state->sums.correct);
  shoal_json_real(json, "loss_sum", state->sums.loss);
  shoal_json_real(json, "weight_sum", state->sums.weight);
  shoal_json_real(json, "square_sum", state->sums.square);
  shoal_json_close(json, '}');
}

static void write_meta(const shoal_trial_work *w, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "version", VERSION);
  shoal_json_int(&json, "trial", (int64_t)w->options->unit->trial);
  shoal_json_text(&json, "models", w->models_sha256);
  shoal_trial_result_write(w->result, &json, "result");
  shoal_json_open(&json, "folds", '[');
  for (uint32_t f = 0; f < w->folds_count; f++)
    write_position(shoal_trainer_state(w->folds[f].trainer), &json);
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
}

static void vectors_of(const shoal_trial_fold *fold, float *out[VECTORS]) {
  const shoal_train_state *state = shoal_trainer_state(fold->trainer);
  out[0] = state->weights;
  out[1] = state->slot1;
  out[2] = state->slot2;
  out[3] = fold->best;
}

shoal_status shoal_trial_state_save(const shoal_trial_work *w, shoal_error *err) {
  shoal_tensor tensors[SHOAL_FOLDS_MAX * VECTORS];
  char names[SHOAL_FOLDS_MAX * VECTORS][NAME_MAX_BYTES];
  size_t count = 0;
  for (uint32_t f = 0; f < w->folds_count; f++) {
    float *vectors[VECTORS];
    size_t floats = w->folds[f].graph->weights_count;
    vectors_of(&w->folds[f], vectors);
    for (int v = 0; v < VECTORS; v++) {
      if (vectors[v] == NULL) continue;
      snprintf(names[count], NAME_MAX_BYTES, "%u.%s", f, vector_names[v]);
      tensors[count] = shoal_tensor_vector(names[count], SHOAL_F32, floats, vectors[v]);
      count++;
    }
  }
  shoal_text text;
  shoal_text_init(&text);
  write_meta(w, &text);
  const shoal_meta meta = {META, text.bytes};
  shoal_status status = text.failed
                            ? shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", w->options->state)
                            : shoal_safetensors_save(w->options->state, tensors, count, &meta, 1, err);
  shoal_text_release(&text);
  return status;
}

/* ---- loading ------------------------------------------------------------------------ */

static bool copy_vector(const shoal_safetensors *file, uint32_t fold, int vector, size_t floats, float *to) {
  char name[NAME_MAX_BYTES];
  snprintf(name, sizeof name, "%u.%s", fold, vector_names[vector]);
  const shoal_tensor *found = shoal_safetensors_find(file, name);
  if (found == NULL || found->dtype != SHOAL_F32 || found->bytes != floats * sizeof *to) return false;
  memcpy(to, found->data, found->bytes);
  return true;
}

static bool all_finite(const float *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(values[i])) return false;
  return true;
}

static bool read_folds(shoal_trial_work *w, const shoal_safetensors *file, const cJSON *array) {
  if (!cJSON_IsArray(array) || (uint32_t)cJSON_GetArraySize(array) != w->folds_count) return false;
  const cJSON *item = array->child;
  for (uint32_t f = 0; f < w->folds_count; f++, item = item->next) {
    shoal_trial_fold *fold = &w->folds[f];
    shoal_train_state *state = shoal_trainer_state(fold->trainer);
    float *vectors[VECTORS];
    vectors_of(fold, vectors);
    for (int v = 0; v < VECTORS; v++)
      if (vectors[v] && !copy_vector(file, f, v, fold->graph->weights_count, vectors[v])) return false;
    if (!shoal_checkpoint_read_position(state, item) || state->round >= shoal_trainer_rounds(fold->trainer))
      return false;
    if (state->epoch < w->result->epochs || state->epoch > (uint64_t)w->result->epochs + 1) return false;
  }
  return true;
}

/* The file's JSON, when it is of this trial and these networks. */
static shoal_status read_meta(const shoal_safetensors *file, const char *path, uint64_t trial,
                              const char *models_sha256, cJSON **out, shoal_error *err) {
  const char *text = shoal_safetensors_meta(file, META);
  cJSON *json = text ? cJSON_Parse(text) : NULL;
  uint32_t version;
  uint64_t found;
  const cJSON *models = cJSON_GetObjectItemCaseSensitive(json, "models");
  *out = json;
  if (!cJSON_IsObject(json) || !shoal_read_u32_at(json, "version", UINT32_MAX, &version) ||
      version != VERSION || !shoal_read_whole_at(json, "trial", UINT64_MAX, &found) ||
      !cJSON_IsString(models))
    return shoal_fail(err, SHOAL_CORRUPT, "%s: not the state of a trial", path);
  if (found != trial || strcmp(models->valuestring, models_sha256) != 0)
    return shoal_fail(err, SHOAL_NOT_FOUND,
                      "%s: the state of another trial, of other settings or of another table", path);
  return SHOAL_OK;
}

static shoal_status read_state(shoal_trial_work *w, const shoal_safetensors *file, shoal_error *err) {
  cJSON *json;
  uint64_t trial = w->options->unit->trial;
  shoal_status status = read_meta(file, w->options->state, trial, w->models_sha256, &json, err);
  if (status == SHOAL_OK)
    status = shoal_trial_result_read(w->result, cJSON_GetObjectItemCaseSensitive(json, "result"), err);
  if (status == SHOAL_OK && w->result->curve_count != w->result->epochs)
    status = shoal_fail(err, SHOAL_CORRUPT, "%s: the curve of trial %llu is damaged", w->options->state,
                        (unsigned long long)trial);
  if (status == SHOAL_OK && !read_folds(w, file, cJSON_GetObjectItemCaseSensitive(json, "folds")))
    status = shoal_fail(err, SHOAL_CORRUPT, "%s: the state of trial %llu is damaged", w->options->state,
                        (unsigned long long)trial);
  cJSON_Delete(json);
  return status;
}

shoal_status shoal_trial_state_load(shoal_trial_work *w, shoal_error *err) {
  if (!shoal_file_exists(w->options->state))
    return shoal_fail(err, SHOAL_NOT_FOUND, "%s: there is no such state of trial %llu", w->options->state,
                      (unsigned long long)w->options->unit->trial);
  shoal_safetensors *file;
  shoal_status status = shoal_safetensors_load(&file, w->options->state, err);
  if (status != SHOAL_OK) return status;
  status = read_state(w, file, err);
  shoal_safetensors_destroy(file);
  return status;
}

shoal_status shoal_trial_state_best(const char *path, uint64_t trial, const char *models_sha256,
                                    shoal_trial_net *nets, uint32_t count, shoal_error *err) {
  shoal_safetensors *file;
  cJSON *json = NULL;
  uint32_t best_epoch = 0;
  shoal_status status = shoal_safetensors_load(&file, path, err);
  if (status != SHOAL_OK) return status;
  status = read_meta(file, path, trial, models_sha256, &json, err);
  if (status == SHOAL_OK && (!shoal_read_u32_at(cJSON_GetObjectItemCaseSensitive(json, "result"),
                                                "best_epoch", UINT32_MAX, &best_epoch) ||
                             best_epoch == 0))
    status = shoal_fail(err, SHOAL_NOT_FOUND, "%s: trial %llu has not finished an epoch", path,
                        (unsigned long long)trial);
  for (uint32_t f = 0; f < count && status == SHOAL_OK; f++)
    if (!copy_vector(file, f, VECTORS - 1, nets[f].graph->weights_count, nets[f].weights) ||
        !all_finite(nets[f].weights, nets[f].graph->weights_count))
      status = shoal_fail(err, SHOAL_CORRUPT, "%s: the weights of fold %u are damaged", path, f + 1);
  cJSON_Delete(json);
  shoal_safetensors_destroy(file);
  return status;
}
