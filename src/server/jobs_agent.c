/* jobs_agent.c: what jobs.c leaves to agents: what runs them (agent_runner.h), points, credits, checks. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/human.h"
#include "server/agent_audit.h"
#include "server/jobs_internal.h"

static const double CREDIT_S = 1; /* how often the store hears of what was played */

/* A line of its log, of what happens now. */
__attribute__((format(printf, 3, 4))) static void tell(shoal_jobs *jobs, shoal_open_job *job,
                                                       const char *format, ...) {
  char line[SHOAL_ERROR_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  shoal_jobs_add_line(jobs, job, shoal_clock_wall_seconds(), line);
}

/* ---- credits ---- */

/* Who plays may hand in hundreds of units a second: they are summed up, and go to the store together. */
static shoal_worker_sum *sum_of(shoal_open_job *job, const char *worker) {
  for (uint32_t i = 0; i < job->credited_count; i++)
    if (strcmp(job->credited[i].name, worker) == 0) return &job->credited[i];
  if (job->credited_count == SHOAL_JOB_SUMS_MAX) return NULL;
  shoal_worker_sum *sum = &job->credited[job->credited_count++];
  *sum = (shoal_worker_sum){0};
  snprintf(sum->name, sizeof sum->name, "%s", worker);
  return sum;
}

static void note_play(shoal_open_job *job, const char *worker, const shoal_agent_done *done) {
  shoal_worker_sum *sum = sum_of(job, worker);
  if (sum == NULL) return;
  sum->units++;
  sum->parts += done->steps;
  sum->seconds += done->seconds;
}

static void credit(shoal_jobs *jobs, shoal_open_job *job) {
  static shoal_contribution rows[SHOAL_JOB_SUMS_MAX];
  for (uint32_t i = 0; i < job->credited_count; i++) {
    const shoal_worker_sum *sum = &job->credited[i];
    rows[i] = (shoal_contribution){
        .worker = (char *)sum->name, .units = sum->units, .samples = sum->parts, .seconds = sum->seconds};
  }
  if (job->credited_count > 0 &&
      shoal_store_add_contributions(jobs->config.store, job->id, rows, job->credited_count, NULL) == SHOAL_OK)
    job->credited_count = 0;
  shoal_standings_flush(jobs->standings);
  job->credited_at = shoal_clock_seconds();
}

/* ---- who comes and goes ---- */

/* An agent that is open and not about to end; NULL: none. Trainings have this of their chief. */
static shoal_open_job *find_open(shoal_jobs *jobs, uint64_t id) {
  shoal_open_job *job = shoal_jobs_find(jobs, id);
  return job != NULL && job->kind == SHOAL_JOB_AGENT && !job->stopping && !jobs->closing ? job : NULL;
}

void shoal_jobs_joined(shoal_jobs *jobs, uint64_t id, const char *worker) {
  shoal_open_job *job = find_open(jobs, id);
  if (job != NULL) tell(jobs, job, "%s is here", worker);
}

void shoal_jobs_lost(shoal_jobs *jobs, uint64_t id, const char *worker) {
  const shoal_open_job *played = shoal_jobs_find(jobs, id);
  shoal_open_job *job = find_open(jobs, id);
  if (played != NULL && played->agent_runner != NULL) shoal_agent_runner_lost(played->agent_runner, worker);
  if (job != NULL) tell(jobs, job, "%s left", worker);
}

/* ---- what is handed in ---- */

/* Environments that own more than their bytes are a library's, whose next version may compute another way. */
static shoal_agent_draw draw(shoal_jobs *jobs, const shoal_open_job *job, const shoal_job_player *player) {
  const shoal_standing standing = shoal_standings_get(jobs->standings, player->who);
  if (job->agent.kind->release != NULL) return SHOAL_AGENT_BELIEVED;
  return shoal_agent_audit_draw(jobs->audit, &standing);
}

/* What is needed to play it again. False: it is not there. */
static bool gather_case(const shoal_open_job *job, const shoal_job_player *player, const void *bytes,
                        size_t length, shoal_agent_case *out) {
  out->job = job->id;
  out->who = player->who;
  snprintf(out->name, sizeof out->name, "%s", player->name);
  shoal_text_add(&out->rollout, bytes, length);
  return shoal_agent_runner_evidence(job->agent_runner, bytes, length, &out->brief, &out->unit,
                                     &out->policy) &&
         !out->rollout.failed;
}

shoal_status shoal_jobs_hand_in(shoal_jobs *jobs, shoal_open_job *job, const shoal_job_player *player,
                                const void *bytes, size_t length, uint64_t *steps, shoal_error *err) {
  shoal_agent_case tried = {0};
  shoal_agent_done done = {0};
  shoal_agent_draw drawn = draw(jobs, job, player);
  bool checks = drawn == SHOAL_AGENT_CHECKED && gather_case(job, player, bytes, length, &tried);
  shoal_status status =
      drawn == SHOAL_AGENT_BELIEVED || checks
          ? shoal_agent_runner_done(job->agent_runner, player->name, bytes, length, &done, err)
          : shoal_agent_runner_refuse(job->agent_runner, player->name, bytes, length, err);
  *steps = done.steps;
  if (done.counted) note_play(job, player->name, &done);
  if (done.counted && checks)
    shoal_agent_audit_add(jobs->audit, &tried);
  else
    shoal_agent_case_release(&tried);
  return status;
}

void shoal_jobs_give_up(shoal_open_job *job, const shoal_job_player *player, uint64_t number) {
  shoal_agent_runner_give_up(job->agent_runner, player->name, number);
}

/* A rollout was played again. */
static void judged(void *self, const shoal_agent_case *tried, shoal_agent_verdict verdict) {
  shoal_jobs *jobs = self;
  shoal_open_job *job = shoal_jobs_find(jobs, tried->job);
  shoal_standing standing = shoal_standings_get(jobs->standings, tried->who);
  if (verdict == SHOAL_AGENT_UNKNOWN || standing.banned) return;
  if (job != NULL) job->checked++;
  if (verdict == SHOAL_AGENT_AGREES) {
    shoal_standings_agreed(jobs->standings, tried->who);
    return;
  }
  standing.wrong++;
  standing.banned = true;
  if (!shoal_standings_learn(jobs->standings, &standing, tried->name,
                             "what it said to have played is not what the unit comes to", tried->job))
    return;
  shoal_jobs_teach(jobs, &standing);
  if (job != NULL) {
    job->lies++;
    tell(jobs, job, "%s gets no more work: it did not play what it said to have played", tried->name);
    if (job->agent_runner != NULL) shoal_agent_runner_lied(job->agent_runner, tried->name);
  }
  if (!jobs->closing) jobs->config.calls.banned(jobs->config.calls.self);
}

shoal_status shoal_jobs_open_audit(shoal_jobs *jobs, shoal_error *err) {
  const shoal_agent_audit_calls calls = {.self = jobs, .wake = shoal_jobs_wake, .judged = judged};
  return shoal_agent_audit_create(&jobs->audit, &calls, err);
}

/* ---- looking at what runs ---- */

static void take_points(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_text lines = {0};
  if (shoal_agent_runner_take_points(job->agent_runner, &lines)) {
    char *rest = lines.bytes;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
      if (line[0] != 0) jobs->config.calls.played(jobs->config.calls.self, job, line, strlen(line));
  }
  shoal_text_release(&lines);
}

/* A better score than before is worth a line of the log. */
static void tell_score(shoal_jobs *jobs, shoal_open_job *job, const shoal_agent_view *before) {
  const shoal_agent_view *played = &job->played;
  if (isnan(played->score) || (played->score <= job->score_told && played->solved == before->solved)) return;
  job->score_told = fmax(played->score, job->score_told); /* which may be NAN */
  tell(jobs, job, "score %.6g +- %.3g over %" PRIu64 " episodes, after %s steps%s", played->score,
       played->score_deviation, played->score_episodes, shoal_human_count(played->steps).text,
       played->solved ? ": solved" : "");
}

/* What runs it has begun: from where, if it had a life before. */
static void tell_begin(shoal_jobs *jobs, shoal_open_job *job, const shoal_agent_view *before) {
  const shoal_agent_view *played = &job->played;
  if (before->phase != SHOAL_AGENT_BEGINS || played->phase == SHOAL_AGENT_BEGINS || played->error[0] != 0)
    return;
  if (played->went_on > 0)
    tell(jobs, job, "continuing from %s steps", shoal_human_count(played->went_on).text);
  else if (before->steps > 0)
    tell(jobs, job, "beginning anew: the %s steps before had not been saved yet",
         shoal_human_count(before->steps).text);
  if (played->went_on == 0) job->score_told = NAN;
}

/* The training has ended: what becomes of the job? */
static void conclude(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_agent_view *played = &job->played;
  char line[96];
  played->actors = 0;
  played->running = played->waiting = 0;
  snprintf(line, sizeof line, "finished after %s steps: %s", shoal_human_count(played->steps).text,
           isnan(job->agent.kind->solved) ? "there is no goal"
           : !played->scored              ? "there was no time for a score"
           : played->solved               ? "solved"
                                          : "not solved");
  if (played->error[0] != 0)
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_FAILED, played->error, played->error);
  else if (played->finished)
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_FINISHED, line, "");
  else
    shoal_jobs_conclude(jobs, job, SHOAL_JOB_STOPPED, "stopped", "");
}

static void look(shoal_jobs *jobs, shoal_open_job *job, double now) {
  shoal_agent_view before = job->played, *played = &job->played;
  uint32_t workers = job->workers > before.actors ? job->workers : before.actors;
  shoal_agent_runner_tick(job->agent_runner, before.actors > 0 || before.running > 0);
  shoal_agent_runner_look(job->agent_runner, played);
  take_points(jobs, job);
  tell_begin(jobs, job, &before);
  tell_score(jobs, job, &before);
  if (played->remarks != before.remarks && played->remark[0] != 0) tell(jobs, job, "%s", played->remark);
  if (now - job->credited_at >= CREDIT_S) credit(jobs, job);
  if (played->phase == SHOAL_AGENT_ENDED) {
    shoal_agent_runner_wait(job->agent_runner);
    credit(jobs, job);
    conclude(jobs, job);
    return;
  }
  if (workers == 0) played->steps_per_second = 0; /* what was measured last is true no more */
  bool changed =
      before.phase != played->phase || before.steps != played->steps || before.actors != played->actors;
  shoal_jobs_goes_on(jobs, job, workers, changed, now);
}

static void see_off(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_agent_runner_wait(job->agent_runner);
  shoal_agent_runner_look(job->agent_runner, &job->played);
  take_points(jobs, job);
  credit(jobs, job);
  shoal_jobs_store_details(jobs, job);
  if (job->played.finished)
    shoal_jobs_set_state(jobs, job, SHOAL_JOB_FINISHED, "");
  else if (job->stopping)
    shoal_jobs_add_line(jobs, job, shoal_clock_wall_seconds(), "stopped");
}

/* ---- from beginning to end ---- */

static void recall(shoal_open_job *job, const cJSON *details) {
  const cJSON *json = cJSON_GetObjectItemCaseSensitive(details, "agent");
  const cJSON *solved = cJSON_GetObjectItemCaseSensitive(json, "solved");
  job->checked = shoal_jobs_count_in(json, "checked");
  job->lies = shoal_jobs_count_in(json, "lies");
  job->played = (shoal_agent_view){.steps = shoal_jobs_count_in(json, "steps"),
                                   .episodes = shoal_jobs_count_in(json, "episodes"),
                                   .version = shoal_jobs_count_in(json, "version"),
                                   .seconds = fmax(0, shoal_jobs_real_in(json, "seconds")), /* 0 of NaN */
                                   .return_mean = shoal_jobs_real_in(json, "return_mean"),
                                   .return_deviation = shoal_jobs_real_in(json, "return_deviation"),
                                   .refused = shoal_jobs_count_in(json, "refused"),
                                   .lost = shoal_jobs_count_in(json, "lost"),
                                   .given_again = shoal_jobs_count_in(json, "given_again"),
                                   .score = shoal_jobs_real_in(json, "score"),
                                   .score_deviation = shoal_jobs_real_in(json, "score_deviation"),
                                   .score_episodes = shoal_jobs_count_in(json, "score_episodes"),
                                   .solved = cJSON_IsTrue(solved),
                                   .checkpoints = (uint32_t)shoal_jobs_count_in(json, "checkpoints"),
                                   .bytes_in = shoal_jobs_count_in(json, "bytes_in"),
                                   .bytes_out = shoal_jobs_count_in(json, "bytes_out")};
  job->score_told = job->played.score;
}

static shoal_status start(shoal_jobs *jobs, shoal_open_job *job, const char *folder, shoal_error *err) {
  const shoal_agent_runner_config config = {.spec = &job->agent,
                                            .folder = folder,
                                            .before = &job->played,
                                            .threads = jobs->config.threads,
                                            .lease_s = jobs->config.lease_s,
                                            .self = jobs,
                                            .changed = shoal_jobs_wake};
  return shoal_agent_runner_start(&job->agent_runner, &config, err);
}

static bool has_begun(const shoal_open_job *job) { return job->agent_runner != NULL; }

static bool is_ready(const shoal_open_job *job) { return job->played.phase == SHOAL_AGENT_OPEN; }

static void stop(shoal_open_job *job) { shoal_agent_runner_stop(job->agent_runner); }

static void destroy(shoal_open_job *job) { shoal_agent_runner_destroy(job->agent_runner); }

/* ---- going on ---- */

static bool has_more(const shoal_job_more *more) { return more->seconds > 0 || more->steps > 0; }

/* Whether it has ended because its time was used up; of that a little was left for its last score. */
static bool ended_by_time(const shoal_agent_spec *spec, const cJSON *agent, shoal_job_state state) {
  bool solved = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(agent, "solved"));
  return state == SHOAL_JOB_FINISHED && spec->seconds > 0 && !(solved && spec->until_solved) &&
         shoal_jobs_count_in(agent, "steps") < shoal_agent_spec_steps(spec);
}

/* It must have something left to do of both. */
static shoal_status add_more(shoal_any_spec *spec, const shoal_job_more *more, const shoal_job_row *row,
                             shoal_error *err) {
  cJSON *json = cJSON_Parse(row->progress);
  const cJSON *agent = cJSON_GetObjectItemCaseSensitive(json, "agent");
  uint64_t done = shoal_jobs_count_in(agent, "steps");
  double spent_s = fmax(0, shoal_jobs_real_in(agent, "seconds"));
  bool used_up = ended_by_time(&spec->agent, agent, row->state) && more->seconds == 0;
  cJSON_Delete(json);
  if (more->steps > 0) spec->agent.steps = more->steps;
  if (more->seconds > 0) spec->agent.seconds = fmin(spent_s + more->seconds, SHOAL_AGENT_SECONDS_MAX);
  if (shoal_agent_spec_steps(&spec->agent) <= done)
    return shoal_fail(err, SHOAL_INVALID,
                      "%" PRIu64 " steps are done already; \"steps\" is how many in all: give more", done);
  if (used_up || (spec->agent.seconds > 0 && spec->agent.seconds <= spent_s))
    return shoal_fail(err, SHOAL_INVALID,
                      "its %.0f seconds are used up; \"seconds\" is how many more: give some",
                      spec->agent.seconds);
  return SHOAL_OK;
}

/* ---- for the API ---- */

static void pulse(const shoal_open_job *job, shoal_job_pulse *out) {
  out->step = job->played.version;
  out->samples_per_s = job->played.steps_per_second;
}

static void write_details(const shoal_open_job *job, bool with_model, shoal_json *json) {
  const shoal_agent_view *played = &job->played;
  (void)with_model;
  shoal_json_open(json, "spec", '{');
  shoal_agent_spec_write(&job->agent, json);
  shoal_json_close(json, '}');
  shoal_json_open(json, "agent", '{');
  shoal_json_int(json, "steps", (int64_t)played->steps);
  shoal_json_int(json, "steps_all", (int64_t)shoal_agent_spec_steps(&job->agent));
  shoal_json_real(json, "seconds", played->seconds);
  shoal_json_int(json, "episodes", (int64_t)played->episodes);
  shoal_json_real(json, "return_mean", played->return_mean);
  shoal_json_real(json, "return_deviation", played->return_deviation);
  shoal_json_real(json, "steps_per_second", played->steps_per_second);
  shoal_json_real(json, "lag", played->lag);
  shoal_json_int(json, "refused", (int64_t)played->refused);
  shoal_json_int(json, "version", (int64_t)played->version);
  shoal_json_real(json, "score", played->score);
  shoal_json_real(json, "score_deviation", isnan(played->score) ? NAN : played->score_deviation);
  shoal_json_int(json, "score_episodes", isnan(played->score) ? 0 : (int64_t)played->score_episodes);
  shoal_json_bool(json, "solved", played->solved);
  shoal_json_real(json, "goal", job->agent.kind->solved);
  shoal_json_int(json, "actors", played->actors);
  shoal_json_int(json, "waiting", (int64_t)played->waiting);
  shoal_json_int(json, "lost", (int64_t)played->lost);
  shoal_json_int(json, "given_again", (int64_t)played->given_again);
  shoal_json_int(json, "checked", (int64_t)job->checked);
  shoal_json_int(json, "lies", (int64_t)job->lies);
  shoal_json_int(json, "bytes_in", (int64_t)played->bytes_in);
  shoal_json_int(json, "bytes_out", (int64_t)played->bytes_out);
  shoal_json_int(json, "checkpoints", played->checkpoints);
  shoal_json_close(json, '}');
}

const shoal_job_ways shoal_agent_ways = {.recall = recall,
                                         .start = start,
                                         .has_begun = has_begun,
                                         .is_ready = is_ready,
                                         .look = look,
                                         .stop = stop,
                                         .end = stop,
                                         .see_off = see_off,
                                         .destroy = destroy,
                                         .has_more = has_more,
                                         .wants = "\"seconds\" or \"steps\"",
                                         .add_more = add_more,
                                         .pulse = pulse,
                                         .write = write_details};
