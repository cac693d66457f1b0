/* jobs_train.c: what jobs.c leaves to trainings: a runner (runner.h), its points, notes and workers. */
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

/* Puts points into the store, in their order. Where one goes back, or a runner begins, what the store has
 * from there on never was. The end of an epoch has the step of its last round, which stays. */
static void store_points(shoal_jobs *jobs, shoal_open_job *job, const shoal_point *points, size_t count) {
  shoal_store *store = jobs->config.store;
  for (size_t i = 0, next; i < count; i = next) {
    const shoal_point *first = &points[i];
    if (first->step < job->last_step)
      (void)shoal_store_cut_points(store, job->id, first->kind == 0 ? first->step - 1 : first->step, NULL);
    for (next = i + 1; next < count && points[next].step >= points[next - 1].step;) next++;
    (void)shoal_store_add_points(store, job->id, first, next - i, NULL);
    job->last_step = points[next - 1].step;
  }
}

static void take_points(shoal_jobs *jobs, shoal_open_job *job) {
  size_t count;
  while ((count = shoal_runner_take_points(job->runner, jobs->points, SHOAL_POINTS_AT_ONCE)) > 0) {
    store_points(jobs, job, jobs->points, count);
    jobs->config.calls.points(jobs->config.calls.self, job, jobs->points, count);
  }
}

static void take_notes(shoal_jobs *jobs, shoal_open_job *job) {
  double time;
  char *text;
  while (shoal_runner_take_note(job->runner, &time, &text)) {
    shoal_jobs_add_line(jobs, job, time, text);
    free(text);
  }
}

/* What is credited of a worker already; NULL: there is no room for more names. */
static shoal_worker_sum *credited_of(shoal_open_job *job, const shoal_worker_sum *sum) {
  uint32_t i = 0;
  while (i < job->credited_count && strcmp(job->credited[i].name, sum->name) != 0) i++;
  if (i == SHOAL_JOB_SUMS_MAX) return NULL;
  if (i == job->credited_count) {
    job->credited[i] = (shoal_worker_sum){0};
    memcpy(job->credited[i].name, sum->name, sizeof sum->name);
    job->credited_count++;
  }
  return &job->credited[i];
}

/* Samples that so many parts have, on average: what is counted in parts adds up without a loss. */
static uint64_t samples_of(const shoal_open_job *job, uint64_t parts) {
  return (uint64_t)((double)parts * job->view.part_samples + 0.5);
}

/* Puts into the store what workers have done since the last time. */
static void credit(shoal_jobs *jobs, shoal_open_job *job) {
  static shoal_contribution rows[SHOAL_JOB_SUMS_MAX];
  static shoal_worker_sum sums[SHOAL_JOB_SUMS_MAX], *places[SHOAL_JOB_SUMS_MAX];
  uint32_t count = shoal_runner_sums(job->runner, sums, SHOAL_JOB_SUMS_MAX);
  size_t rows_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    shoal_worker_sum *known = sums[i].parts > 0 ? credited_of(job, &sums[i]) : NULL;
    if (known == NULL || sums[i].parts <= known->parts) continue;
    places[rows_count] = &sums[i];
    rows[rows_count++] =
        (shoal_contribution){.worker = sums[i].name,
                             .units = sums[i].units - known->units,
                             .samples = samples_of(job, sums[i].parts) - samples_of(job, known->parts),
                             .seconds = fmax(0, sums[i].seconds - known->seconds)};
  }
  if (rows_count == 0 ||
      shoal_store_add_contributions(jobs->config.store, job->id, rows, rows_count, NULL) != SHOAL_OK)
    return; /* what the store did not take is credited with the next */
  for (size_t i = 0; i < rows_count; i++) *credited_of(job, places[i]) = *places[i];
}

/* What a chief learns of somebody is kept, and a ban is all jobs'. */
static void take_lessons(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_runner_lesson lesson;
  while (shoal_runner_take_lesson(job->runner, &lesson))
    if (shoal_standings_learn(jobs->standings, &lesson.standing, lesson.name, lesson.why, job->id))
      shoal_jobs_teach(jobs, &lesson.standing);
}

static void look_at_peers(shoal_jobs *jobs, shoal_open_job *job) {
  credit(jobs, job);
  take_lessons(jobs, job);
  job->peers_count = shoal_runner_peers(job->runner, job->peers, SHOAL_JOB_PEERS_MAX);
}

/* The runner has ended: what becomes of the job? */
static void conclude(shoal_jobs *jobs, shoal_open_job *job) {
  const shoal_runner_view *view = &job->view;
  bool cut = view->error[0] == 0 && (view->outcome == SHOAL_INTERRUPTED || view->outcome == SHOAL_CUT_OFF);
  if (cut)
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_STOPPED, "stopped", "");
  else if (view->finished)
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_FINISHED, "finished",
                        view->outcome == SHOAL_STOPPED_EARLY ? "early stopping" : "");
  else
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_FAILED, view->error, view->error);
}

static void look(shoal_jobs *jobs, shoal_open_job *job, double now) {
  shoal_progress_view before = job->view.progress;
  shoal_runner_phase phase = job->view.phase;
  shoal_runner_view view;
  shoal_runner_look(job->runner, &view);
  if (view.phase != SHOAL_RUNNER_PREPARING) job->view = view; /* until then, what was known before */
  if (job->workers == 0) {                                    /* what was measured last is true no more */
    job->view.progress.samples_per_s = 0;
    job->view.progress.eta_s = NAN;
  }
  take_points(jobs, job);
  take_notes(jobs, job);
  look_at_peers(jobs, job);
  if (job->view.phase == SHOAL_RUNNER_ENDED) {
    shoal_runner_wait(job->runner);
    conclude(jobs, job);
    return;
  }
  double left = job->view.progress.eta_s; /* which goes down while held-out samples are scored, too */
  bool changed = before.step != job->view.progress.step || phase != job->view.phase ||
                 (isfinite(left) && floor(before.eta_s) != floor(left));
  shoal_jobs_goes_on(jobs, job, job->workers, changed, now);
}

/* Waits for a runner that was told to stop, and keeps what it had to tell. */
static void see_off(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_runner_wait(job->runner);
  shoal_runner_look(job->runner, &job->view);
  take_points(jobs, job);
  take_notes(jobs, job);
  look_at_peers(jobs, job);
  shoal_jobs_store_details(jobs, job);
  if (job->view.finished)
    shoal_jobs_set_state(jobs, job, SHOAL_JOB_FINISHED, "");
  else if (job->stopping)
    shoal_jobs_add_line(jobs, job, shoal_clock_wall_seconds(), "stopped");
}

/* ---- from beginning to end ---- */

static void recall(shoal_open_job *job, const cJSON *details) {
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(details, "progress");
  shoal_runner_view *view = &job->view;
  view->progress = (shoal_progress_view){
      .loss = NAN, .metric = NAN, .held_out_loss = NAN, .held_out_metric = NAN, .eta_s = NAN};
  view->weights = shoal_jobs_count_in(details, "weights");
  view->samples = shoal_jobs_count_in(details, "samples");
  view->rounds = shoal_jobs_count_in(details, "rounds");
  view->progress.epoch = shoal_jobs_count_in(progress, "epoch");
  view->progress.round = shoal_jobs_count_in(progress, "round");
  view->progress.step = shoal_jobs_count_in(progress, "step");
  view->progress.steps = view->rounds * job->spec.parsed->recipe.epochs;
}

/* A pair of ports that no open job has; 0: none is left. */
static uint16_t find_port(const shoal_jobs *jobs) {
  for (uint16_t port = 1; port < 2 * SHOAL_JOBS_OPEN_MAX; port += 2) {
    bool taken = false;
    for (const shoal_open_job *job = jobs->first; job != NULL; job = job->next) taken |= job->port == port;
    if (!taken) return port;
  }
  return 0;
}

static shoal_status start_with(shoal_jobs *jobs, shoal_open_job *job, const char *folder, const char *data,
                               shoal_error *err) {
  job->port = find_port(jobs);
  if (job->port == 0) return shoal_fail(err, SHOAL_LIMIT, "%d jobs run already", SHOAL_JOBS_OPEN_MAX);
  uint32_t standings_count;
  const shoal_standing *standings = shoal_standings_all(jobs->standings, &standings_count);
  const shoal_runner_config config = {.id = job->id,
                                      .spec = &job->spec,
                                      .folder = folder,
                                      .data = data,
                                      .data_dir = jobs->config.named_dir,
                                      .threads = jobs->config.threads,
                                      .port = job->port,
                                      .standings = standings,
                                      .standings_count = standings_count,
                                      .self = jobs,
                                      .changed = shoal_jobs_wake};
  return shoal_runner_start(&job->runner, &config, err);
}

static shoal_status start(shoal_jobs *jobs, shoal_open_job *job, const char *folder, shoal_error *err) {
  shoal_text data = {0};
  shoal_status status = shoal_datasets_path(jobs->config.datasets, job->spec.data.bytes, &data, err);
  if (status == SHOAL_OK) status = start_with(jobs, job, folder, data.bytes, err);
  shoal_text_release(&data);
  return status;
}

static bool has_begun(const shoal_open_job *job) { return job->runner != NULL; }

static bool is_ready(const shoal_open_job *job) { return job->view.phase == SHOAL_RUNNER_OPEN; }

static void stop(shoal_open_job *job) { shoal_runner_stop(job->runner); }

static void destroy(shoal_open_job *job) { shoal_runner_destroy(job->runner); }

/* ---- going on ---- */

/* Without its data a job that goes on would fail, and what became of it before would be gone. */
static shoal_status check(shoal_jobs *jobs, uint64_t id, const shoal_any_spec *spec, shoal_error *err) {
  const char *data = spec->train.data.bytes;
  shoal_text path = {0};
  shoal_status status = shoal_datasets_path(jobs->config.datasets, data, &path, err);
  shoal_text_release(&path);
  bool gone = status == SHOAL_NOT_FOUND || status == SHOAL_INVALID;
  return gone ? shoal_jobs_no_data(id, data, err) : status;
}

static bool has_more(const shoal_job_more *more) { return more->epochs > 0; }

static shoal_status add_more(shoal_any_spec *spec, const shoal_job_more *more, const shoal_job_row *row,
                             shoal_error *err) {
  (void)row;
  if (more->epochs == 0) return SHOAL_OK;
  uint32_t epochs = spec->train.parsed->recipe.epochs;
  if (more->epochs < epochs)
    return shoal_fail(err, SHOAL_INVALID, "\"epochs\" must not be less than %u", epochs);
  return shoal_spec_set_epochs(&spec->train, more->epochs, err);
}

/* ---- for the API ---- */

static void write_progress(const shoal_open_job *job, shoal_json *json) {
  const shoal_progress_view *p = &job->view.progress;
  shoal_json_open(json, "progress", '{');
  shoal_json_int(json, "epoch", (int64_t)p->epoch);
  shoal_json_int(json, "round", (int64_t)p->round);
  shoal_json_int(json, "step", (int64_t)p->step);
  shoal_json_int(json, "steps", (int64_t)p->steps);
  shoal_json_real(json, "loss", p->loss);
  shoal_json_real(json, "metric", p->metric);
  shoal_json_text(json, "metric_name", p->metric_name != NULL ? p->metric_name : "");
  if (p->held_out != NULL)
    shoal_json_text(json, "held_out", p->held_out);
  else
    shoal_json_null(json, "held_out");
  shoal_json_real(json, "held_out_loss", p->held_out_loss);
  shoal_json_real(json, "held_out_metric", p->held_out_metric);
  shoal_json_real(json, "samples_per_s", p->samples_per_s);
  shoal_json_real(json, "eta_s", p->eta_s);
  shoal_json_int(json, "again", (int64_t)job->timeline.again);
  shoal_json_close(json, '}');
}

static void pulse(const shoal_open_job *job, shoal_job_pulse *out) {
  const shoal_progress_view *p = &job->view.progress;
  *out = (shoal_job_pulse){.step = p->step, .loss = p->loss, .samples_per_s = p->samples_per_s};
}

static void write_guard(const shoal_open_job *job, shoal_json *json) {
  shoal_json_open(json, "guard", '{');
  shoal_json_bool(json, "on", job->spec.guarded);
  shoal_json_bool(json, "audited", job->view.audited);
  shoal_json_int(json, "units", (int64_t)job->view.units);
  shoal_json_int(json, "checks", (int64_t)job->view.checks);
  shoal_json_int(json, "rejected", (int64_t)job->view.rejected);
  shoal_json_close(json, '}');
}

static void write_details(const shoal_open_job *job, bool with_model, shoal_json *json) {
  shoal_json_open(json, "spec", '{');
  shoal_spec_write(&job->spec, with_model, json);
  shoal_json_close(json, '}');
  shoal_spec_write_recipe(&job->spec.parsed->recipe, json);
  shoal_json_int(json, "weights", (int64_t)job->view.weights);
  shoal_json_int(json, "samples", (int64_t)job->view.samples);
  shoal_json_int(json, "rounds", (int64_t)job->view.rounds);
  write_progress(job, json);
  write_guard(job, json);
  if (job->view.sha256[0] != 0)
    shoal_json_text(json, "sha256", job->view.sha256);
  else
    shoal_json_null(json, "sha256");
}

const shoal_job_ways shoal_train_ways = {.recall = recall,
                                         .start = start,
                                         .has_begun = has_begun,
                                         .is_ready = is_ready,
                                         .look = look,
                                         .stop = stop,
                                         .end = stop,
                                         .see_off = see_off,
                                         .destroy = destroy,
                                         .check = check,
                                         .has_more = has_more,
                                         .wants = "\"epochs\"",
                                         .add_more = add_more,
                                         .pulse = pulse,
                                         .write = write_details};
