/* jobs_search.c: what jobs.c leaves to searches: a searcher (searcher.h), its trials and remarks. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "server/jobs_internal.h"

/* ---- looking at what runs ---- */

static void take_trials(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_text row = {0};
  while (shoal_searcher_take_news(job->searcher, &row)) {
    jobs->config.calls.trial(jobs->config.calls.self, job, &row);
    shoal_text_clear(&row);
  }
  shoal_text_release(&row);
}

static void take_remarks(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_text lines = {0};
  if (shoal_searcher_take_notes(job->searcher, &lines)) {
    char *rest = lines.bytes;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
      if (line[0] != 0) shoal_jobs_add_line(jobs, job, shoal_clock_wall_seconds(), line);
  }
  shoal_text_release(&lines);
}

/* The searcher has ended: what becomes of the job? */
static void conclude(shoal_jobs *jobs, shoal_open_job *job) {
  const shoal_searcher_view *found = &job->found;
  if (found->error[0] != 0)
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_FAILED, found->error, found->error);
  else if (found->finished)
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_FINISHED, "finished", "");
  else
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_STOPPED, "stopped", "");
}

/* What was found before stays known until the searcher knows it, too: it may never come to that. */
static void look_at_found(shoal_open_job *job) {
  shoal_searcher_view before = job->found, *found = &job->found;
  shoal_searcher_look(job->searcher, found);
  if (found->metric != NULL) return;
  found->search.trials = before.search.trials;
  found->search.finished_units = before.search.finished_units;
  found->search.best = before.search.best;
  found->search.best_score = before.search.best_score;
  found->metric = before.metric;
  found->higher_is_better = before.higher_is_better;
  found->members = before.members;
  found->test_score = before.test_score;
  found->valid_score = before.valid_score;
  found->estimate = before.estimate;
  found->test_rows = before.test_rows;
}

static void look(shoal_jobs *jobs, shoal_open_job *job, double now) {
  shoal_searcher_phase before = job->found.phase;
  uint64_t units = job->found.search.finished_units, trials = job->found.search.trials;
  shoal_searcher_tick(job->searcher, job->workers + job->helpers > 0);
  look_at_found(job);
  take_trials(jobs, job);
  take_remarks(jobs, job);
  if (job->found.phase == SHOAL_SEARCHER_ENDED) {
    shoal_searcher_wait(job->searcher);
    conclude(jobs, job);
    return;
  }
  bool changed = before != job->found.phase || units != job->found.search.finished_units ||
                 trials != job->found.search.trials;
  shoal_jobs_goes_on(jobs, job, job->workers + job->helpers, changed, now);
}

shoal_searcher *shoal_jobs_searcher(shoal_jobs *jobs, uint64_t id) {
  shoal_open_job *job = shoal_jobs_find(jobs, id);
  return job != NULL ? job->searcher : NULL;
}

static void see_off(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_searcher_wait(job->searcher);
  look_at_found(job);
  take_trials(jobs, job);
  shoal_jobs_store_details(jobs, job);
}

/* ---- from beginning to end ---- */

static void recall(shoal_open_job *job, const cJSON *details) {
  const cJSON *json = cJSON_GetObjectItemCaseSensitive(details, "search");
  shoal_searcher_view *found = &job->found;
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "metric");
  shoal_score_kind metric;
  found->spent_s = fmax(0, shoal_jobs_real_in(json, "spent_s")); /* 0 of NaN */
  found->search.trials = shoal_jobs_count_in(json, "trials");
  found->search.finished_units = shoal_jobs_count_in(json, "units");
  found->search.best_score = shoal_jobs_real_in(json, "best_score");
  found->search.best = isfinite(found->search.best_score) ? shoal_jobs_count_in(json, "best") : 0;
  found->members = (uint32_t)shoal_jobs_count_in(json, "members");
  found->test_score = shoal_jobs_real_in(json, "test_score");
  found->valid_score = shoal_jobs_real_in(json, "valid_score");
  shoal_estimate_read(&found->estimate, json);
  found->test_rows = shoal_jobs_count_in(json, "test_rows");
  if (!cJSON_IsString(name) || !shoal_score_parse(name->valuestring, &metric)) return;
  found->metric = shoal_score_name(metric);
  found->higher_is_better = shoal_score_higher_is_better(metric);
}

static shoal_status start_with(shoal_jobs *jobs, shoal_open_job *job, const char *folder, const char *data,
                               shoal_error *err) {
  const shoal_searcher_config config = {.id = job->id,
                                        .spec = &job->search,
                                        .folder = folder,
                                        .data = data,
                                        .threads = jobs->config.threads,
                                        .spent_s = job->found.spent_s,
                                        .lease_s = jobs->config.lease_s,
                                        .store = jobs->config.store,
                                        .secret = &jobs->secret,
                                        .self = jobs,
                                        .changed = shoal_jobs_wake};
  return shoal_searcher_start(&job->searcher, &config, err);
}

static shoal_status start(shoal_jobs *jobs, shoal_open_job *job, const char *folder, shoal_error *err) {
  shoal_text data = {0};
  shoal_status status = shoal_datasets_path(jobs->config.datasets, job->spec.data.bytes, &data, err);
  if (status == SHOAL_OK) status = start_with(jobs, job, folder, data.bytes, err);
  shoal_text_release(&data);
  return status;
}

static bool has_begun(const shoal_open_job *job) { return job->searcher != NULL; }

static bool is_ready(const shoal_open_job *job) { return job->found.phase == SHOAL_SEARCHER_OPEN; }

static void stop(shoal_open_job *job) { shoal_searcher_stop(job->searcher); }

static void end(shoal_open_job *job) { shoal_searcher_abandon(job->searcher); }

static void destroy(shoal_open_job *job) { shoal_searcher_destroy(job->searcher); }

/* ---- going on ---- */

/* Whether the table of a search is still the one that it began with. */
static shoal_status check_table(shoal_jobs *jobs, uint64_t id, const char *data, shoal_error *err) {
  shoal_set_table table = {0};
  shoal_text folder = {0}, record = {0};
  shoal_brief brief;
  shoal_scheduler_kind scheduler;
  shoal_status status = shoal_datasets_table(jobs->config.datasets, data, &table, err);
  if (status == SHOAL_OK) status = shoal_jobs_folder_of(jobs, id, &folder, err);
  shoal_text_addf(&record, "%s/search.json", folder.bytes != NULL ? folder.bytes : "");
  bool has_both = table.profile.length > 0 && !record.failed && shoal_file_exists(record.bytes);
  if (status == SHOAL_OK && has_both &&
      shoal_search_recorded(folder.bytes, &brief, &scheduler, NULL) == SHOAL_OK) {
    cJSON *profile = cJSON_Parse(table.profile.bytes);
    const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(profile, "sha256");
    if (cJSON_IsString(sha256) && strcmp(sha256->valuestring, brief.profile.sha256) != 0)
      status = shoal_fail(err, SHOAL_CONFLICT,
                          "the data set '%s' is not the one that job %" PRIu64
                          " began with: upload that again, or begin a new search",
                          data, id);
    cJSON_Delete(profile);
    shoal_brief_release(&brief);
  }
  shoal_set_table_release(&table);
  shoal_text_release(&folder);
  shoal_text_release(&record);
  return status;
}

static shoal_status check(shoal_jobs *jobs, uint64_t id, const shoal_any_spec *spec, shoal_error *err) {
  const char *data = spec->search.data.bytes;
  shoal_status status = check_table(jobs, id, data, err);
  bool gone = status == SHOAL_NOT_FOUND || status == SHOAL_INVALID;
  return gone ? shoal_jobs_no_data(id, data, err) : status;
}

static bool has_more(const shoal_job_more *more) { return more->budget_s > 0 || more->trials > 0; }

static shoal_status add_more(shoal_any_spec *spec, const shoal_job_more *more, const shoal_job_row *row,
                             shoal_error *err) {
  cJSON *json = cJSON_Parse(row->progress);
  const cJSON *search = cJSON_GetObjectItemCaseSensitive(json, "search");
  uint64_t done = shoal_jobs_count_in(search, "trials");
  double spent_s = fmax(0, shoal_jobs_real_in(search, "spent_s"));
  cJSON_Delete(json);
  bool has_all = more->trials == done && row->state == SHOAL_JOB_FINISHED && more->budget_s == 0;
  if (more->trials > 0 && (more->trials < done || has_all))
    return shoal_fail(err, SHOAL_INVALID,
                      "%" PRIu64 " trials are done already; \"trials\" is how many in all", done);
  if (more->trials > 0 && more->trials < spec->search.trials)
    return shoal_fail(err, SHOAL_INVALID, "\"trials\" must not be less than %" PRIu64, spec->search.trials);
  if (more->trials > 0) spec->search.trials = more->trials;
  if (more->budget_s > 0) spec->search.budget_s = more->budget_s + spent_s;
  return SHOAL_OK;
}

/* ---- for the API ---- */

static const char *phase_name(shoal_searcher_phase phase) {
  static const char *const names[] = {"reads", "tries", "gathers", "ended"};
  return names[phase];
}

static void pulse(const shoal_open_job *job, shoal_job_pulse *out) {
  out->step = job->found.search.finished_units;
}

static void write_details(const shoal_open_job *job, bool with_model, shoal_json *json) {
  (void)with_model;
  const shoal_searcher_view *found = &job->found;
  shoal_json_open(json, "spec", '{');
  shoal_search_spec_write(&job->search, json);
  shoal_json_close(json, '}');
  shoal_json_open(json, "search", '{');
  shoal_json_text(json, "phase", phase_name(found->phase));
  shoal_json_real(json, "share", found->search.share);
  shoal_json_real(json, "spent_s", found->spent_s);
  shoal_json_real(json, "left_s", found->phase == SHOAL_SEARCHER_OPEN ? found->search.left_s : NAN);
  shoal_json_int(json, "trials", (int64_t)found->search.trials);
  shoal_json_int(json, "units", (int64_t)found->search.finished_units);
  shoal_json_int(json, "best", (int64_t)found->search.best);
  shoal_json_real(json, "best_score", found->search.best > 0 ? found->search.best_score : NAN);
  shoal_json_text(json, "metric", found->metric != NULL ? found->metric : "");
  shoal_json_bool(json, "higher_is_better", found->higher_is_better);
  shoal_json_int(json, "members", found->members);
  shoal_json_real(json, "valid_score", found->valid_score);
  shoal_json_real(json, "estimate", found->estimate.score);
  shoal_json_real(json, "estimate_error", found->estimate.error);
  shoal_json_real(json, "test_score", found->test_score);
  shoal_json_int(json, "test_rows", (int64_t)found->test_rows);
  shoal_json_close(json, '}');
}

const shoal_job_ways shoal_search_ways = {.recall = recall,
                                          .start = start,
                                          .has_begun = has_begun,
                                          .is_ready = is_ready,
                                          .look = look,
                                          .stop = stop,
                                          .end = end,
                                          .see_off = see_off,
                                          .destroy = destroy,
                                          .check = check,
                                          .has_more = has_more,
                                          .wants = "\"budget_s\" or \"trials\"",
                                          .add_more = add_more,
                                          .pulse = pulse,
                                          .write = write_details};
