/* agent_runner.c: see agent_runner.h.
 *
 * The thread inside makes what is in the folder fit together, starts the coach, and waits for its end.
 * `mutex` guards the phase and what is beside it; the coach has locks of its own, and stays until destroy. */
#include "server/agent_runner.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/libm_digest.h"
#include "base/file.h"
#include "base/secret.h"
#include "base/thread.h"
#include "server/agent_curve.h"
#include "server/folders.h"

enum { CHECKPOINTS_SEEN_MAX = 4 * SHOAL_COACH_CHECKPOINTS };
static const double SAVE_EVERY_S = 5;

struct shoal_agent_runner {
  shoal_agent_runner_config config;
  shoal_agent_view before;
  char *folder, *file, *model, *onnx, *checkpoints, *curve;
  pthread_t thread;
  bool joined;
  uint64_t life;
  char math[SHOAL_LIBM_DIGEST_MAX];
  double spent_s; /* in earlier lives; the thread's alone */

  pthread_mutex_t mutex;
  shoal_agent_phase phase;
  bool wants_end;
  shoal_error error; /* its text is "" without one */
  char remark[SHOAL_ERROR_TEXT_MAX];
  uint32_t remarks;
  uint64_t went_on;
  shoal_coach *coach;

  uint64_t points_seen; /* the loop's alone, as is the rest */
  bool paused;
};

/* ---- what is in the folder ---- */

static void drop_checkpoints(const shoal_agent_runner *r, uint64_t beyond) {
  uint64_t steps[CHECKPOINTS_SEEN_MAX];
  uint32_t count = shoal_coach_checkpoints(r->checkpoints, steps, CHECKPOINTS_SEEN_MAX);
  for (uint32_t i = 0; i < count; i++) {
    char *path =
        steps[i] > beyond ? shoal_path("%s/%" PRIu64 ".safetensors", r->checkpoints, steps[i]) : NULL;
    if (path != NULL) unlink(path);
    free(path);
  }
}

/* The learner goes on from its file: what came after that never was. *steps: that it has. */
static shoal_status go_back(shoal_agent_runner *r, uint64_t *steps, shoal_error *err) {
  shoal_agent_file *file = calloc(1, sizeof *file);
  if (file == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = SHOAL_OK;
  if (shoal_file_exists(r->file)) status = shoal_agent_open(r->file, file, NULL, err);
  double seconds = 0;
  if (status == SHOAL_OK) status = shoal_agent_curve_cut(r->curve, file->steps, &seconds, err);
  if (status == SHOAL_OK) drop_checkpoints(r, file->steps);
  r->spent_s = fmax(r->before.seconds, seconds);
  *steps = file->steps;
  unlink(r->onnx); /* of a policy before */
  free(file);
  return status;
}

/* For other runtimes; without it the training is no less finished. */
static void save_onnx(const shoal_agent_runner *r, char remark[SHOAL_ERROR_TEXT_MAX]) {
  shoal_agent_file *file = calloc(1, sizeof *file);
  shoal_policy *policy = NULL;
  shoal_error err = {0};
  if (file == NULL || !shoal_file_exists(r->model)) { /* nothing was learned */
    free(file);
    return;
  }
  shoal_status status = shoal_agent_open(r->model, file, &policy, &err);
  if (status == SHOAL_OK) status = shoal_policy_onnx(policy, r->onnx, &err);
  if (status != SHOAL_OK) {
    unlink(r->onnx);
    shoal_error_prefix(&err, "the policy is not there as ONNX: ");
    shoal_cut_folder(err.text, r->folder);
    memcpy(remark, err.text, SHOAL_ERROR_TEXT_MAX);
  }
  shoal_policy_destroy(policy);
  free(file);
}

/* ---- the thread inside ---- */

static void changed(shoal_agent_runner *r) { r->config.changed(r->config.self); }

static void coach_changed(void *self) { changed(self); }

static void coach_warns(void *self, const char *text) {
  shoal_agent_runner *r = self;
  pthread_mutex_lock(&r->mutex);
  snprintf(r->remark, sizeof r->remark, "%s", text);
  shoal_cut_folder(r->remark, r->folder);
  r->remarks++;
  pthread_mutex_unlock(&r->mutex);
  changed(r);
}

static shoal_status start_coach(shoal_agent_runner *r, shoal_coach **out, shoal_error *err) {
  const shoal_agent_spec *spec = r->config.spec;
  const shoal_coach_config config = {.learner = shoal_agent_spec_learner(spec, r->config.threads),
                                     .exact = spec->exact,
                                     .checked = spec->kind->release == NULL,
                                     .lease_s = r->config.lease_s,
                                     .seconds = spec->seconds,
                                     .seconds_before = r->spent_s,
                                     .steps = shoal_agent_spec_steps(spec),
                                     .until_solved = spec->until_solved,
                                     .file = r->file,
                                     .policy = r->model,
                                     .folder = r->checkpoints,
                                     .save_every_s = SAVE_EVERY_S,
                                     .self = r,
                                     .changed = coach_changed,
                                     .warn = coach_warns};
  return shoal_coach_start(out, &config, err);
}

static void *run(void *self) {
  shoal_agent_runner *r = self;
  shoal_coach *coach = NULL;
  shoal_error err = {0};
  char remark[SHOAL_ERROR_TEXT_MAX] = "";
  uint64_t went_on = 0;
  shoal_status status = go_back(r, &went_on, &err);
  if (status == SHOAL_OK) status = start_coach(r, &coach, &err);
  pthread_mutex_lock(&r->mutex);
  r->coach = coach;
  r->went_on = went_on;
  if (status == SHOAL_OK) r->phase = SHOAL_AGENT_OPEN;
  bool stops = r->wants_end;
  pthread_mutex_unlock(&r->mutex);
  changed(r);
  if (coach != NULL) {
    if (stops) shoal_coach_stop(coach);
    shoal_coach_wait(coach);
    save_onnx(r, remark);
  }
  shoal_cut_folder(err.text, r->folder);
  pthread_mutex_lock(&r->mutex);
  r->phase = SHOAL_AGENT_ENDED;
  if (status != SHOAL_OK) r->error = err;
  memcpy(r->remark, remark, sizeof remark);
  r->remarks += remark[0] != 0;
  pthread_mutex_unlock(&r->mutex);
  changed(r);
  return NULL;
}

/* ---- beginning and end ---- */

static void release(shoal_agent_runner *r) {
  shoal_coach_destroy(r->coach);
  pthread_mutex_destroy(&r->mutex);
  free(r->folder);
  free(r->file);
  free(r->model);
  free(r->onnx);
  free(r->checkpoints);
  free(r->curve);
  free(r);
}

static bool name_files(shoal_agent_runner *r, const char *folder) {
  r->folder = strdup(folder);
  r->file = shoal_path("%s/agent.safetensors", folder);
  r->model = shoal_path("%s/model.safetensors", folder);
  r->onnx = shoal_path("%s/model.onnx", folder);
  r->checkpoints = shoal_path("%s/checkpoints", folder);
  r->curve = shoal_path("%s/curve.jsonl", folder);
  return r->folder && r->file && r->model && r->onnx && r->checkpoints && r->curve;
}

/* A number that JSON has exactly, and that is not 0. */
static shoal_status draw_life(uint64_t *out, shoal_error *err) {
  uint64_t drawn = 0;
  shoal_status status = shoal_draw(&drawn, sizeof drawn, err);
  *out = (drawn >> 11) + 1;
  return status;
}

shoal_status shoal_agent_runner_start(shoal_agent_runner **out, const shoal_agent_runner_config *config,
                                      shoal_error *err) {
  uint64_t life = 0;
  shoal_status status = draw_life(&life, err);
  if (status != SHOAL_OK) return status;
  shoal_agent_runner *r = calloc(1, sizeof *r);
  if (r == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  r->config = *config;
  r->life = life;
  shoal_libm_digest(r->math);
  r->before = *config->before;
  r->remarks = r->before.remarks;
  pthread_mutex_init(&r->mutex, NULL);
  if (!name_files(r, config->folder)) {
    release(r);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  int failure = shoal_thread_start(&r->thread, run, r);
  if (failure != 0) {
    release(r);
    return shoal_fail(err, SHOAL_LIMIT, "a thread could not be started: %s", strerror(failure));
  }
  *out = r;
  return SHOAL_OK;
}

/* The coach, once it is open; NULL before. */
static shoal_coach *coach_of(shoal_agent_runner *r, shoal_agent_phase *phase) {
  pthread_mutex_lock(&r->mutex);
  shoal_coach *coach = r->coach;
  if (phase != NULL) *phase = r->phase;
  pthread_mutex_unlock(&r->mutex);
  return coach;
}

void shoal_agent_runner_stop(shoal_agent_runner *r) {
  pthread_mutex_lock(&r->mutex);
  r->wants_end = true;
  shoal_coach *coach = r->coach;
  pthread_mutex_unlock(&r->mutex);
  if (coach != NULL) shoal_coach_stop(coach);
}

void shoal_agent_runner_wait(shoal_agent_runner *r) {
  if (!r->joined) pthread_join(r->thread, NULL);
  r->joined = true;
}

void shoal_agent_runner_destroy(shoal_agent_runner *r) { release(r); }

/* ---- what is told ---- */

static void look_at_coach(shoal_agent_runner *r, shoal_coach *coach, shoal_agent_view *out) {
  const shoal_agent_view *before = &r->before;
  shoal_coach_view view;
  shoal_coach_look(coach, &view);
  const shoal_training_view *t = &view.training;
  uint64_t steps[CHECKPOINTS_SEEN_MAX];
  snprintf(out->error, sizeof out->error, "%s", view.error);
  shoal_cut_folder(out->error, r->folder);
  out->finished = view.finished;
  out->steps = t->round.steps;
  out->episodes = before->episodes + t->episodes;
  shoal_coach_policy(coach, &out->version, NULL);
  out->seconds = view.seconds;
  if (!isnan(t->return_mean)) {
    out->return_mean = t->return_mean;
    out->return_deviation = t->return_deviation;
  }
  out->steps_per_second = t->steps_per_second;
  out->lag = t->round.lag;
  out->refused = t->round.refused > before->refused ? t->round.refused : before->refused;
  out->lost = before->lost + view.course.late;
  out->given_again = before->given_again + view.course.given_again;
  if (!isnan(t->evaluation.mean)) {
    out->score = t->evaluation.mean;
    out->score_deviation = t->evaluation.deviation;
    out->score_episodes = t->evaluation.episodes;
    out->solved = t->solved;
    out->scored = true;
  }
  out->actors = view.actors;
  out->running = view.course.running;
  out->checkpoints = shoal_coach_checkpoints(r->checkpoints, steps, CHECKPOINTS_SEEN_MAX);
  out->waiting = view.waiting;
  out->bytes_in = before->bytes_in + view.bytes_in;
  out->bytes_out = before->bytes_out + view.bytes_out;
}

void shoal_agent_runner_look(shoal_agent_runner *r, shoal_agent_view *out) {
  shoal_agent_phase phase;
  shoal_coach *coach = coach_of(r, &phase);
  *out = r->before;
  pthread_mutex_lock(&r->mutex);
  out->went_on = r->went_on;
  memcpy(out->remark, r->remark, sizeof out->remark);
  out->remarks = r->remarks;
  pthread_mutex_unlock(&r->mutex);
  out->error[0] = 0;
  out->finished = out->scored = false;
  if (phase != SHOAL_AGENT_BEGINS && out->went_on == 0) { /* what was scored before is gone */
    out->score = out->score_deviation = out->return_mean = out->return_deviation = NAN;
    out->score_episodes = 0;
    out->solved = false;
  }
  out->actors = 0;
  out->running = out->waiting = 0;
  out->steps_per_second = 0;
  if (coach != NULL) look_at_coach(r, coach, out);
  out->phase = phase;
  if (phase == SHOAL_AGENT_ENDED && coach == NULL)
    snprintf(out->error, sizeof out->error, "%s", r->error.text);
}

void shoal_agent_runner_tick(shoal_agent_runner *r, bool is_played) {
  shoal_coach *coach = coach_of(r, NULL);
  if (coach == NULL || r->paused == !is_played) return;
  r->paused = !is_played;
  shoal_coach_pause(coach, r->paused);
}

bool shoal_agent_runner_take_points(shoal_agent_runner *r, shoal_text *lines) {
  shoal_coach *coach = coach_of(r, NULL);
  shoal_text_clear(lines);
  if (coach == NULL) return false;
  uint64_t seen = shoal_coach_news(coach, r->points_seen, lines);
  if (lines->failed || lines->length == 0) return false;
  r->points_seen = seen;
  (void)shoal_agent_curve_add(r->curve, lines, NULL); /* a full disk costs points, and no training */
  return true;
}

/* ---- for actors ---- */

static shoal_status open_coach(shoal_agent_runner *r, shoal_coach **out, shoal_error *err) {
  *out = coach_of(r, NULL);
  if (*out != NULL) return SHOAL_OK;
  return shoal_fail(err, SHOAL_CONFLICT, "the training is being prepared; ask again");
}

shoal_status shoal_agent_runner_brief(shoal_agent_runner *r, shoal_text *json, shoal_error *err) {
  shoal_coach *coach;
  shoal_status status = open_coach(r, &coach, err);
  if (status != SHOAL_OK) return status;
  shoal_coach_brief(coach, r->life, json);
  return json->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

uint64_t shoal_agent_runner_life(const shoal_agent_runner *r) { return r->life; }

const char *shoal_agent_runner_math(const shoal_agent_runner *r) {
  return r->config.spec->kind->release == NULL ? r->math : NULL;
}

shoal_status shoal_agent_runner_take(shoal_agent_runner *r, const char *actor, uint32_t units_max,
                                     uint64_t known, shoal_coach_next *next, shoal_text *unit,
                                     shoal_text *policy, shoal_error *err) {
  shoal_coach *coach;
  shoal_status status = open_coach(r, &coach, err);
  if (status != SHOAL_OK) return status;
  shoal_coach_bound(coach, actor, units_max);
  shoal_agent_runner_tick(r, true); /* now, and not when somebody looks again */
  *next = shoal_coach_take(coach, actor, known, unit, policy);
  return SHOAL_OK;
}

shoal_status shoal_agent_runner_done(shoal_agent_runner *r, const char *actor, const void *bytes,
                                     size_t length, shoal_agent_done *out, shoal_error *err) {
  const shoal_agent_settings *settings = &r->config.spec->settings;
  shoal_coach *coach;
  *out = (shoal_agent_done){0};
  shoal_status status = open_coach(r, &coach, err);
  if (status != SHOAL_OK) return status;
  out->seconds = shoal_coach_silent(coach, actor);
  status = shoal_coach_done(coach, actor, bytes, length, &out->counted, err);
  if (out->counted) out->steps = (uint64_t)settings->envs * settings->steps;
  return status;
}

shoal_status shoal_agent_runner_refuse(shoal_agent_runner *r, const char *actor, const void *bytes,
                                       size_t length, shoal_error *err) {
  shoal_coach *coach;
  shoal_status status = open_coach(r, &coach, err);
  return status == SHOAL_OK ? shoal_coach_refuse(coach, actor, bytes, length, err) : status;
}

void shoal_agent_runner_give_up(shoal_agent_runner *r, const char *actor, uint64_t number) {
  shoal_coach *coach = coach_of(r, NULL);
  if (coach != NULL) shoal_coach_give_up(coach, actor, number);
}

bool shoal_agent_runner_evidence(shoal_agent_runner *r, const void *bytes, size_t length, shoal_text *brief,
                                 shoal_text *unit, shoal_text *policy) {
  shoal_coach *coach = coach_of(r, NULL);
  if (coach == NULL || !shoal_coach_evidence(coach, bytes, length, unit, policy)) return false;
  shoal_text_clear(brief);
  shoal_coach_brief(coach, 0, brief);
  return !brief->failed;
}

void shoal_agent_runner_lost(shoal_agent_runner *r, const char *actor) {
  shoal_coach *coach = coach_of(r, NULL);
  if (coach != NULL) shoal_coach_lost(coach, actor);
}

void shoal_agent_runner_lied(shoal_agent_runner *r, const char *actor) {
  shoal_coach *coach = coach_of(r, NULL);
  if (coach != NULL) shoal_coach_lied(coach, actor);
}

uint64_t shoal_agent_runner_rollout_max(shoal_agent_runner *r) {
  shoal_coach *coach = coach_of(r, NULL);
  if (coach == NULL) return 0;
  const shoal_rollout_shape shape = shoal_coach_shape(coach);
  return shoal_agent_rollout_bytes_max(&shape);
}
