/* api_submit.c: POST /api/v1/jobs: a training, a search or an agent, checked as far as that can be done at
 * once.
 *
 * A search is compared with its table: first with what was found when that was uploaded, at once, unless it is
 * to be read in another way; then with its rows, by the thread of chores, as the search itself begins. A
 * training is compared with its data by a thread of its own kind, as its runner does when it begins. Tables and
 * texts that take long to read are left to the search, or the training. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/api.h"
#include "server/folders.h"
#include "server/search_check.h"

enum { TRIED_BYTES_MAX = 32 << 20 };

/* A search or a training on its way from the request to its answer. */
typedef struct submission {
  shoal_kept_call kept;
  shoal_any_spec spec;
  shoal_set_table table;
  shoal_text data;  /* all files of the set, for shoal_searcher_try */
  bool anew, tries; /* the table must be read in another way than it was; its rows are looked at */
  bool compares;    /* it is only to be compared, and this is the answer where it fits: */
  shoal_text checked;
  shoal_spec_fault fault;
  shoal_status status;
  shoal_error err;
} submission;

static void release(submission *s) {
  shoal_api_release_call(&s->kept);
  shoal_any_spec_release(&s->spec);
  shoal_set_table_release(&s->table);
  shoal_text_release(&s->data);
  shoal_text_release(&s->checked);
  free(s);
}

static void answer_fault(const shoal_api_call *call, const shoal_spec_fault *fault, const shoal_error *err) {
  shoal_api_error_at(call, fault->field[0] != 0 ? 422 : 400, err->text, fault->field, fault->line,
                     fault->column);
}

static void submit(const shoal_api_call *call, shoal_any_spec *spec) {
  uint64_t id;
  shoal_error err;
  if (shoal_jobs_submit(call->api->jobs, spec, call->caller.name, &id, &err) != SHOAL_OK) {
    shoal_api_failed_full(call, &err);
    return;
  }
  const shoal_open_job *job = shoal_jobs_find(call->api->jobs, id);
  shoal_api_about(call, "%" PRIu64 " %s", id, job != NULL ? job->name : "");
  shoal_api_answer_job(call, 201, id);
}

/* ---- searches ---- */

/* As the table was read when it became a data set. */
static shoal_status check_known(submission *s) {
  shoal_profile profile;
  cJSON *json = cJSON_Parse(s->table.profile.bytes);
  shoal_status status = shoal_profile_from_json(&profile, json, &s->err);
  cJSON_Delete(json);
  if (status != SHOAL_OK) return status;
  status = shoal_search_check(&s->spec.search, &profile, &s->fault, &s->err);
  shoal_profile_release(&profile);
  return status;
}

/* As it is said to be now. */
static shoal_status check_anew(submission *s) {
  const shoal_search_spec *spec = &s->spec.search;
  shoal_profile profile;
  shoal_profile_options options = {.path = s->table.path.bytes,
                                   .said = spec->columns,
                                   .said_count = spec->columns_count,
                                   .seed = spec->seed};
  shoal_profile_init(&profile);
  shoal_status status = shoal_dialect_say(&options.dialect, "dialect",
                                          spec->dialect.bytes != NULL ? spec->dialect.bytes : "", &s->err);
  if (status == SHOAL_OK) status = shoal_profile_read(&profile, &options, &s->err);
  if (status == SHOAL_OK)
    status = shoal_search_check(spec, &profile, &s->fault, &s->err);
  else if (status == SHOAL_INVALID || status == SHOAL_CORRUPT)
    snprintf(s->fault.field, sizeof s->fault.field, "%s",
             spec->columns_count > 0    ? "columns"
             : spec->dialect.length > 0 ? "dialect"
                                        : "data");
  shoal_profile_release(&profile);
  return status;
}

/* As POST /models/check says what is wrong. */
static void answer_compared(submission *s) {
  const shoal_api_call *call = &s->kept.call;
  if (s->status == SHOAL_OK) {
    shoal_api_json(call, 200, &s->checked);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_bool(&json, "ok", false);
  shoal_json_open(&json, "error", '{');
  shoal_json_text(&json, "field", s->fault.field);
  shoal_json_text(&json, "text", s->err.text);
  shoal_json_close(&json, '}');
  shoal_json_close(&json, '}');
  shoal_api_json(call, 200, &text);
}

static void finish(submission *s) {
  const shoal_api_call *call = &s->kept.call;
  if (s->table.path.bytes != NULL) shoal_cut_path(s->err.text, s->table.path.bytes, 2);
  shoal_datasets_cut_folder(call->api->datasets, s->err.text);
  /* How much is held out is no matter of the model's text: submitting tells. */
  if (s->compares && strcmp(s->fault.field, "early_stop") == 0) s->status = SHOAL_OK;
  if (s->compares && (s->status == SHOAL_OK || s->fault.field[0] != 0))
    answer_compared(s);
  else if (s->status == SHOAL_OK)
    submit(call, &s->spec);
  else if (s->fault.field[0] != 0)
    answer_fault(call, &s->fault, &s->err);
  else
    shoal_api_failed(call, &s->err);
  release(s);
}

/* What only the rows tell. */
static shoal_status check_rows(submission *s) {
  const shoal_text *metric = &s->spec.search.metric;
  shoal_status status = shoal_searcher_try(&s->spec.search, s->data.bytes, &s->err);
  if (status != SHOAL_INVALID && status != SHOAL_CORRUPT && status != SHOAL_LIMIT) return status;
  bool is_metric = metric->length > 0 && strncmp(s->err.text, metric->bytes, metric->length) == 0;
  snprintf(s->fault.field, sizeof s->fault.field, "%s", is_metric ? "metric" : "target");
  return status;
}

/* A training's model and its data. */
static void run_try(void *self) {
  submission *s = self;
  const char *named_dir = shoal_datasets_named_dir(s->kept.call.api->datasets);
  s->status = shoal_runner_try(&s->spec.train, s->data.bytes, named_dir, &s->fault, &s->err);
}

static void run(void *self) {
  submission *s = self;
  s->status = s->anew ? check_anew(s) : SHOAL_OK;
  if (s->status == SHOAL_OK && s->tries) s->status = check_rows(s);
}

static void end(void *self, bool ran) {
  submission *s = self;
  if (!ran) s->status = shoal_fail(&s->err, SHOAL_STOPPED, "the server is being stopped");
  finish(s);
}

/* The table, and how it is read: as the spec says, or else as was said of the set. */
static shoal_status find_table(submission *s) {
  struct stat file;
  shoal_text *said = &s->spec.search.dialect;
  const shoal_text *before = &s->table.dialect;
  shoal_status status =
      shoal_datasets_table(s->kept.call.api->datasets, s->spec.search.data.bytes, &s->table, &s->err);
  if (status == SHOAL_NOT_FOUND || status == SHOAL_INVALID)
    snprintf(s->fault.field, sizeof s->fault.field, "data");
  if (status != SHOAL_OK) return status;
  bool as_before = said->length == 0 || (before->length > 0 && strcmp(said->bytes, before->bytes) == 0);
  s->anew = !as_before || s->table.profile.length == 0;
  status = shoal_datasets_path(s->kept.call.api->datasets, s->spec.search.data.bytes, &s->data, &s->err);
  if (status != SHOAL_OK) return status;
  s->tries = stat(s->table.path.bytes, &file) == 0 && file.st_size <= TRIED_BYTES_MAX;
  if (said->length == 0 && before->length > 0) shoal_text_addf(said, "%s", before->bytes);
  return said->failed ? shoal_fail(&s->err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

/* Takes the spec over. Returns NULL, after answering, when there is no memory. */
static submission *begin(const shoal_api_call *call, shoal_any_spec *spec) {
  submission *s = calloc(1, sizeof *s);
  if (s != NULL && shoal_api_keep_call(&s->kept, call)) {
    s->spec = *spec;
    return s;
  }
  shoal_any_spec_release(spec);
  if (s != NULL) release(s);
  shoal_api_error(call, 503, "out of memory");
  return NULL;
}

/* Has the thread of chores do it, or refuses it when too many wait there. */
static void hand_over(submission *s, shoal_chores *chores, const shoal_chore *chore) {
  if (shoal_chores_add(chores, chore)) return;
  shoal_api_error(&s->kept.call, 503, "too many wait already; try again");
  release(s);
}

/* The spec is taken over. */
static void submit_search(const shoal_api_call *call, shoal_any_spec *spec) {
  submission *s = begin(call, spec);
  if (s == NULL) return;
  s->status = find_table(s);
  if (s->status == SHOAL_OK && !s->anew) s->status = check_known(s);
  const shoal_chore chore = {.subject = s->spec.search.data.bytes, .self = s, .run = run, .done = end};
  if (s->status != SHOAL_OK || !(s->anew || s->tries))
    finish(s);
  else
    hand_over(s, call->api->chores, &chore);
}

/* ---- trainings ---- */

/* A file is looked at where that does not take long; folders are of images, which are not read as a whole. */
static bool is_quick(const char *data) {
  struct stat about;
  const char *colon = strchr(data, ':'), *path = colon != NULL ? colon + 1 : data;
  shoal_text file = {0};
  shoal_text_addf(&file, "%.*s", (int)strcspn(path, ","), path);
  bool is_long = !file.failed && stat(file.bytes, &about) == 0 && S_ISREG(about.st_mode) &&
                 about.st_size > TRIED_BYTES_MAX;
  shoal_text_release(&file);
  return !is_long;
}

static void try_training(submission *s) {
  shoal_api *api = s->kept.call.api;
  shoal_spec *spec = &s->spec.train;
  s->status = shoal_datasets_path(api->datasets, spec->data.bytes, &s->data, &s->err);
  if (s->status == SHOAL_OK && spec->target.length == 0)
    s->status = shoal_datasets_target(api->datasets, spec->data.bytes, &spec->target, &s->err);
  if (s->status == SHOAL_NOT_FOUND || s->status == SHOAL_INVALID)
    snprintf(s->fault.field, sizeof s->fault.field, "data");
  const shoal_chore chore = {.subject = "", .self = s, .run = run_try, .done = end};
  if (s->status != SHOAL_OK || !is_quick(s->data.bytes))
    finish(s);
  else
    hand_over(s, api->tries, &chore);
}

/* The spec is taken over. */
static void submit_training(const shoal_api_call *call, shoal_any_spec *spec) {
  submission *s = begin(call, spec);
  if (s != NULL) try_training(s);
}

void shoal_api_compare(const shoal_api_call *call, const char *model, const char *data, const char *target,
                       shoal_text *checked) {
  shoal_text text = {0};
  shoal_json json;
  shoal_any_spec spec;
  shoal_spec_fault fault;
  shoal_error err;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", "check");
  shoal_json_text(&json, "model", model);
  shoal_json_text(&json, "data", data);
  if (target != NULL) shoal_json_text(&json, "target", target);
  shoal_json_close(&json, '}');
  bool parsed =
      !text.failed && shoal_any_spec_parse(&spec, text.bytes, text.length, &fault, &err) == SHOAL_OK;
  submission *s = parsed ? begin(call, &spec) : NULL;
  shoal_text_release(&text);
  if (s != NULL) {
    s->compares = true;
    s->checked = *checked;
    *checked = (shoal_text){0};
    try_training(s);
  } else if (!parsed) { /* a name that no data set can have, say: submitting will tell */
    shoal_api_json(call, 200, checked);
  }
  shoal_text_release(checked);
}

/* ---- all ---- */

/* The spec is taken over. */
static void submit_agent(const shoal_api_call *call, shoal_any_spec *spec) {
  shoal_spec_fault fault = {0};
  shoal_error err;
  shoal_status status = shoal_agent_spec_try(&spec->agent, &fault, &err);
  if (status == SHOAL_OK)
    submit(call, spec);
  else if (fault.field[0] != 0)
    answer_fault(call, &fault, &err);
  else
    shoal_api_failed(call, &err);
  shoal_any_spec_release(spec);
}

void shoal_api_submit_job(const shoal_api_call *call) {
  shoal_blob *body = call->request->body;
  size_t length = body != NULL ? shoal_blob_length(body) : 0;
  shoal_any_spec spec;
  shoal_spec_fault fault;
  shoal_error err;
  if (call->caller.job != 0)
    shoal_api_error(call, 403, "this token is for one job only");
  else if (shoal_any_spec_parse(&spec, body != NULL ? (const char *)shoal_blob_bytes(body) : "", length,
                                &fault, &err) != SHOAL_OK)
    answer_fault(call, &fault, &err);
  else if (spec.kind == SHOAL_JOB_SEARCH)
    submit_search(call, &spec);
  else if (spec.kind == SHOAL_JOB_AGENT)
    submit_agent(call, &spec);
  else
    submit_training(call, &spec);
}
