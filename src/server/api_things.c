/* api_things.c: the routes of models, data sets and chunks. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json_at.h"
#include "nn/graph.h"
#include "server/api.h"
#include "server/page_files.h"
#include "server/reads.h"

enum { THINGS_MAX = 1000, LINE_MAX = 256 };

/* ---- models ---- */

static const shoal_example_model *built_in(const char *name) {
  for (size_t i = 0; i < shoal_example_models_count; i++)
    if (strcmp(shoal_example_models[i].name, name) == 0) return &shoal_example_models[i];
  return NULL;
}

/* 0 for a text that is wrong. */
static uint64_t count_weights(const char *text) {
  shoal_model *model;
  shoal_graph *graph;
  if (shoal_model_parse(&model, "model", text, strlen(text), NULL) != SHOAL_OK) return 0;
  uint64_t weights = 0;
  if (shoal_graph_create(&graph, model, NULL) == SHOAL_OK) {
    weights = graph->trainable;
    shoal_graph_destroy(graph);
  }
  shoal_model_destroy(model);
  return weights;
}

/* Likewise, remembered by the text. */
static uint64_t weights_of(shoal_api *api, const char *text) {
  uint64_t digest = shoal_digest(text, strlen(text)) | 1;
  shoal_api_weights *place = &api->weights[(digest >> 1) % SHOAL_API_WEIGHTS_MAX];
  if (place->digest != digest) *place = (shoal_api_weights){digest, count_weights(text)};
  return place->weights;
}

static void write_model(shoal_api *api, shoal_json *json, const char *name, const char *owner,
                        bool is_built_in, double created, const char *text, bool with_text) {
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "name", name);
  shoal_json_text(json, "owner", owner);
  shoal_json_bool(json, "built_in", is_built_in);
  shoal_json_real(json, "created", created);
  shoal_json_int(json, "weights", (int64_t)weights_of(api, text));
  if (with_text) shoal_json_text(json, "text", text);
  shoal_json_close(json, '}');
}

void shoal_api_list_models(const shoal_api_call *call) {
  shoal_thing_row *rows = calloc(THINGS_MAX, sizeof *rows);
  size_t count = 0;
  shoal_error err = {.status = SHOAL_NO_MEMORY, .text = "out of memory"};
  if (rows == NULL ||
      shoal_store_things(call->api->store, SHOAL_THING_MODEL, rows, THINGS_MAX, &count, &err) != SHOAL_OK) {
    free(rows);
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_api_list_begin(&json, &text, "models");
  for (size_t i = 0; i < shoal_example_models_count; i++)
    write_model(call->api, &json, shoal_example_models[i].name, "", true, 0, shoal_example_models[i].text,
                false);
  for (size_t i = 0; i < count; i++)
    write_model(call->api, &json, rows[i].name, rows[i].owner, false, rows[i].created, rows[i].content,
                false);
  shoal_thing_rows_free(rows, count);
  free(rows);
  shoal_api_list_end(call, &json);
}

static void answer_model(const shoal_api_call *call, int status) {
  const shoal_example_model *example = built_in(call->names[0]);
  shoal_thing_row row;
  shoal_error err;
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  if (example != NULL) {
    write_model(call->api, &json, example->name, "", true, 0, example->text, true);
  } else {
    if (shoal_store_thing(call->api->store, SHOAL_THING_MODEL, call->names[0], &row, &err) != SHOAL_OK) {
      shoal_api_failed(call, &err);
      return;
    }
    write_model(call->api, &json, row.name, row.owner, false, row.created, row.content, true);
    shoal_thing_rows_free(&row, 1);
  }
  shoal_api_json(call, status, &text);
}

void shoal_api_show_model(const shoal_api_call *call) { answer_model(call, 200); }

/* Whether the caller may replace or delete what is there under the name; answers when not. *row is what is
 * there, the caller's to free; its name is NULL where nothing is. */
static bool may_change_model(const shoal_api_call *call, shoal_thing_row *row) {
  *row = (shoal_thing_row){0};
  shoal_error err;
  if (built_in(call->names[0]) != NULL) {
    shoal_api_error(call, 409, "a built-in model has this name");
    return false;
  }
  shoal_status status = shoal_store_thing(call->api->store, SHOAL_THING_MODEL, call->names[0], row, &err);
  if (status == SHOAL_NOT_FOUND) return true;
  if (status != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return false;
  }
  if (call->caller.level == SHOAL_ADMIN || shoal_access_owns(&call->caller, row->owner)) return true;
  shoal_thing_rows_free(row, 1);
  shoal_api_error(call, 403, "this model is somebody else's");
  return false;
}

static shoal_status check_text(const char *text, shoal_error *err) {
  shoal_model *model = NULL;
  shoal_status status = shoal_model_parse(&model, "model", text, strlen(text), err);
  shoal_model_destroy(model);
  return status;
}

void shoal_api_put_model(const shoal_api_call *call) {
  cJSON *json = shoal_api_body(call);
  if (json == NULL) return;
  const char *text = shoal_find_text(json, "text"), *reason;
  shoal_error err;
  uint32_t line, column;
  shoal_thing_row old;
  if (!shoal_spec_name_is_good(call->names[0])) {
    shoal_api_error_at(call, 422, "this is no name for a model", "name", 0, 0);
  } else if (text == NULL) {
    shoal_api_error_at(call, 422, "\"text\" is missing: the text of the network", "text", 0, 0);
  } else if (check_text(text, &err) != SHOAL_OK) {
    shoal_spec_place("model", &err, &line, &column, &reason);
    shoal_api_error_at(call, 422, reason, "text", line, column);
  } else if (may_change_model(call, &old)) {
    bool there = old.name != NULL;
    const shoal_thing_row row = {.name = (char *)call->names[0],
                                 .owner = there ? old.owner : (char *)call->caller.name,
                                 .content = (char *)text,
                                 .created = shoal_clock_wall_seconds()};
    if (shoal_store_put_thing(call->api->store, SHOAL_THING_MODEL, &row, &err) == SHOAL_OK)
      answer_model(call, there ? 200 : 201);
    else
      shoal_api_failed(call, &err);
    shoal_thing_rows_free(&old, 1);
  }
  cJSON_Delete(json);
}

void shoal_api_delete_model(const shoal_api_call *call) {
  shoal_thing_row row;
  shoal_error err;
  if (!may_change_model(call, &row)) return;
  shoal_thing_rows_free(&row, 1);
  if (shoal_store_delete_thing(call->api->store, SHOAL_THING_MODEL, call->names[0], &err) == SHOAL_OK)
    shoal_api_empty(call, 204);
  else
    shoal_api_failed(call, &err);
}

/* ---- checking a model ---- */

/* Line `number` of a text, without its comment and the blanks around it. */
static void copy_line(const char *text, uint32_t number, char out[LINE_MAX]) {
  for (uint32_t line = 1; line < number && text != NULL; line++) {
    text = strchr(text, '\n');
    if (text != NULL) text++;
  }
  size_t length = text != NULL ? strcspn(text, "\n#") : 0;
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t' || text[length - 1] == '\r'))
    length--;
  while (length > 0 && (*text == ' ' || *text == '\t')) text++, length--;
  if (length >= LINE_MAX) length = LINE_MAX - 1;
  if (length > 0) memcpy(out, text, length);
  out[length] = 0;
}

static uint64_t weights_of_layer(const shoal_graph *graph, uint32_t layer) {
  uint64_t weights = 0;
  for (uint32_t n = 0; n < graph->nodes_count; n++) {
    if (graph->nodes[n].layer != layer) continue;
    for (uint32_t p = 0; p < SHOAL_NODE_PARAMS_MAX; p++) {
      uint32_t param = graph->nodes[n].params[p];
      if (param != SHOAL_NO_PARAM && graph->params[param].kind != SHOAL_PARAM_STATISTIC)
        weights += graph->params[param].count;
    }
  }
  return weights;
}

static void write_layers(const shoal_model *model, const shoal_graph *graph, const char *text,
                         shoal_json *json) {
  char line[LINE_MAX], shape[SHOAL_SHAPE_TEXT_MAX];
  shoal_json_open(json, "layers", '[');
  for (uint32_t i = 0; i < model->layers_count; i++) {
    const shoal_layer *layer = &model->layers[i];
    copy_line(text, layer->line, line);
    shoal_json_open(json, NULL, '{');
    shoal_json_int(json, "line", layer->line);
    shoal_json_text(json, "text", line);
    if (layer->named)
      shoal_json_text(json, "name", layer->name);
    else
      shoal_json_null(json, "name");
    shoal_json_open(json, "inputs", '[');
    for (uint32_t k = 0; k < layer->inputs_count; k++) shoal_json_int(json, NULL, layer->inputs[k]);
    shoal_json_close(json, ']');
    shoal_json_text(json, "shape", shoal_shape_text(&layer->shape, shape));
    shoal_json_int(json, "weights", (int64_t)weights_of_layer(graph, i));
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
}

static void write_checked(const shoal_model *model, const shoal_graph *graph, const char *text,
                          shoal_json *json) {
  shoal_json_bool(json, "ok", true);
  shoal_json_int(json, "weights", (int64_t)graph->trainable);
  shoal_json_int(json, "flops_per_sample", (int64_t)shoal_graph_flops(graph, true));
  write_layers(model, graph, text, json);
  shoal_spec_write_recipe(&model->recipe, json);
}

static void write_fault(const shoal_error *err, shoal_json *json) {
  uint32_t line, column;
  const char *reason;
  shoal_spec_place("model", err, &line, &column, &reason);
  shoal_json_bool(json, "ok", false);
  shoal_json_open(json, "error", '{');
  shoal_json_int(json, "line", line);
  shoal_json_int(json, "column", column);
  shoal_json_text(json, "text", reason);
  shoal_json_close(json, '}');
}

void shoal_api_check_model(const shoal_api_call *call) {
  cJSON *body = shoal_api_body(call);
  if (body == NULL) return;
  const char *source = shoal_find_text(body, "text");
  shoal_text text;
  shoal_json json;
  shoal_error err;
  shoal_model *model = NULL;
  shoal_graph *graph = NULL;
  if (source == NULL) {
    shoal_api_error_at(call, 422, "\"text\" is missing: the text of the network", "text", 0, 0);
    cJSON_Delete(body);
    return;
  }
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_status status = shoal_model_parse(&model, "model", source, strlen(source), &err);
  if (status == SHOAL_OK) status = shoal_graph_create(&graph, model, &err);
  if (status == SHOAL_OK)
    write_checked(model, graph, source, &json);
  else
    write_fault(&err, &json);
  shoal_json_close(&json, '}');
  if (graph != NULL) shoal_graph_destroy(graph);
  shoal_model_destroy(model);
  /* Who could start a training hears whether it fits the data, too. */
  if (status == SHOAL_OK && shoal_find_text(body, "data") != NULL && call->caller.level >= SHOAL_HOST &&
      !text.failed)
    shoal_api_compare(call, source, shoal_find_text(body, "data"), shoal_find_text(body, "target"), &text);
  else
    shoal_api_json(call, 200, &text);
  cJSON_Delete(body);
}

/* ---- data sets ---- */

typedef shoal_status (*teller)(shoal_datasets *sets, const char *name, shoal_json *json, shoal_error *err);

static void answer_dataset(const shoal_api_call *call, int status, teller tell) {
  shoal_text text;
  shoal_json json;
  shoal_error err;
  shoal_json_begin(&json, &text);
  shoal_status told = tell(call->api->datasets, call->names[0], &json, &err);
  shoal_api_finish(call, status, told, &text, &err);
}

static shoal_status list_all(shoal_datasets *sets, const char *name, shoal_json *json, shoal_error *err) {
  (void)name;
  return shoal_datasets_list(sets, json, err);
}

void shoal_api_list_datasets(const shoal_api_call *call) { answer_dataset(call, 200, list_all); }
void shoal_api_show_dataset(const shoal_api_call *call) {
  answer_dataset(call, 200, shoal_datasets_describe);
}
void shoal_api_dataset_manifest(const shoal_api_call *call) {
  answer_dataset(call, 200, shoal_datasets_manifest);
}

/* An admin may change everybody's. */
static const char *owner_of(const shoal_api_call *call) {
  return call->caller.level == SHOAL_ADMIN ? NULL : call->caller.name;
}

/* False, and answered: it is being sealed. */
static bool is_at_rest(const shoal_api_call *call) {
  if (!shoal_chores_has(call->api->chores, call->names[0])) return true;
  shoal_api_error(call, 409, "its files are being checked; wait for that");
  return false;
}

void shoal_api_upload_file(const shoal_api_call *call) {
  const shoal_request *r = call->request;
  shoal_error err;
  if (r->body_file == NULL) {
    shoal_api_error(call, 400, "the body is missing: the file's bytes");
    return;
  }
  if (!is_at_rest(call)) return;
  if (shoal_datasets_uploaded(call->api->datasets, call->names[0], call->names[1], r->body_file,
                              call->caller.name, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", call->names[1]);
  shoal_json_int(&json, "bytes", (int64_t)r->body_bytes);
  shoal_json_close(&json, '}');
  shoal_api_json(call, 201, &text);
}

/* Sealing, from the request to its answer. Reading the files takes seconds, and is a chore. */
typedef struct sealing {
  shoal_kept_call kept;
  char *kind, *target, *dialect; /* target and dialect may be NULL */
  shoal_text folder, description;
  shoal_status status;
  shoal_error err;
} sealing;

static void release_sealing(sealing *s) {
  shoal_api_release_call(&s->kept);
  free(s->kind);
  free(s->target);
  free(s->dialect);
  shoal_text_release(&s->folder);
  shoal_text_release(&s->description);
  free(s);
}

static void check_draft(void *self) {
  sealing *s = self;
  const shoal_set_said said = {.kind = s->kind, .target = s->target, .dialect = s->dialect};
  s->status = shoal_datasets_check(s->folder.bytes, &said, &s->description, &s->err);
}

static void seal_draft(void *self, bool ran) {
  sealing *s = self;
  const shoal_api_call *call = &s->kept.call;
  if (!ran) s->status = shoal_fail(&s->err, SHOAL_STOPPED, "the server is being stopped");
  if (s->status == SHOAL_CORRUPT) s->err.status = SHOAL_INVALID; /* it is the caller's file */
  if (ran && s->status != SHOAL_OK && s->err.status == SHOAL_INVALID)
    shoal_datasets_refuse(call->api->datasets, call->names[0], owner_of(call), NULL);
  if (s->status == SHOAL_OK)
    s->status = shoal_datasets_seal(call->api->datasets, call->names[0], owner_of(call), s->description.bytes,
                                    &s->err);
  if (s->status == SHOAL_OK)
    answer_dataset(call, 201, shoal_datasets_describe);
  else
    shoal_api_failed(call, &s->err);
  release_sealing(s);
}

/* A copy; true also of NULL. */
static bool copy_text(const char *text, char **out) {
  *out = text != NULL ? strdup(text) : NULL;
  return text == NULL || *out != NULL;
}

static void begin_sealing(const shoal_api_call *call, const shoal_set_said *said) {
  sealing *s = calloc(1, sizeof *s);
  if (s == NULL) {
    shoal_api_error(call, 503, "out of memory");
    return;
  }
  bool kept = shoal_api_keep_call(&s->kept, call);
  bool copied = copy_text(said->kind, &s->kind) && copy_text(said->target, &s->target) &&
                copy_text(said->dialect, &s->dialect);
  const shoal_chore chore = {call->names[0], s, check_draft, seal_draft};
  if (!kept || !copied)
    shoal_api_error(call, 503, "out of memory");
  else if (shoal_datasets_draft(call->api->datasets, call->names[0], owner_of(call), &s->folder, &s->err) !=
           SHOAL_OK)
    shoal_api_failed(call, &s->err);
  else if (shoal_chores_add(call->api->chores, &chore))
    return;
  else
    shoal_api_error(call, 503, "too many data sets are being checked; try again");
  release_sealing(s);
}

void shoal_api_seal_dataset(const shoal_api_call *call) {
  cJSON *body = shoal_api_body(call);
  if (body == NULL) return;
  const shoal_set_said said = {.kind = shoal_find_text(body, "kind"),
                               .target = shoal_find_text(body, "target"),
                               .dialect = shoal_find_text(body, "dialect")};
  if (said.kind == NULL)
    shoal_api_error_at(call, 422, "\"kind\" is missing: csv, table, idx, cifar, text or chars", "kind", 0, 0);
  else if (is_at_rest(call))
    begin_sealing(call, &said);
  cJSON_Delete(body);
}

void shoal_api_delete_dataset(const shoal_api_call *call) {
  shoal_error err;
  if (!is_at_rest(call)) return;
  uint64_t job;
  shoal_status status = shoal_jobs_needing(call->api->jobs, call->names[0], &job, &err);
  if (status == SHOAL_OK && job != 0)
    status =
        shoal_fail(&err, SHOAL_CONFLICT,
                   "job %llu uses this data set, or can continue with it: let it finish, or delete it first",
                   (unsigned long long)job);
  if (status != SHOAL_OK)
    shoal_api_failed(call, &err);
  else if (shoal_datasets_delete(call->api->datasets, call->names[0], owner_of(call), &err) != SHOAL_OK)
    shoal_api_failed(call, &err);
  else {
    shoal_volunteers_forget_set(call->api->volunteers, call->names[0]);
    shoal_api_empty(call, 204);
  }
}

static void answer_chunk(void *self, uint64_t number, shoal_blob *chunk, const shoal_error *err) {
  (void)number;
  shoal_kept_call *kept = self;
  const shoal_answer answer = {
      .status = 200, .type = "application/octet-stream", .body = chunk, .immutable = true};
  if (chunk != NULL)
    shoal_api_answer(&kept->call, &answer);
  else
    shoal_api_failed(&kept->call, err);
  shoal_api_release_call(kept);
  free(kept);
}

void shoal_api_chunk(const shoal_api_call *call) {
  shoal_chunk_source source;
  shoal_error err;
  if (shoal_datasets_chunk(call->api->datasets, call->names[0], &source, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_kept_call *kept = calloc(1, sizeof *kept);
  if (kept != NULL && shoal_api_keep_call(kept, call) &&
      shoal_reads_begin(call->api->reads, &source, kept, 0, answer_chunk))
    return;
  shoal_chunk_source_release(&source);
  if (kept != NULL) shoal_api_release_call(kept);
  free(kept);
  shoal_api_error(call, 503, "too many chunks are being read; try again");
}
