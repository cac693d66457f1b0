/* coach.c: see coach.h.
 *
 * The thread inside runs the loop of training.c with actors outside of it (agent_trainer.h). `lock` guards
 * all but what is set at the start; it is taken before the trainer's own, and never while a round is learned
 * from. The trainer is there from when the course is open until it is over; before, actors wait, and
 * afterwards nothing is to do. */
#include "agent/coach.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_trainer.h"
#include "agent/coach_internal.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"

enum { ACTORS_MAX = 1024, POINTS_MAX = 8192 };
static const double LEASE_S = 30, SAVE_EVERY_S = 30;
/* Points and checkpoints come often at first, when most is learned; then so many for each second so far. */
static const double POINT_EVERY_S = 0.05, POINTS_SHARE = 0.004;
static const double CHECKPOINT_EVERY_S = 0.25, CHECKPOINTS_SHARE = 0.05;

typedef struct heard {
  char name[SHOAL_ACTOR_NAME_MAX];
  double at; /* 0: nobody */
} heard;

struct shoal_coach {
  shoal_coach_config config;
  char *file, *folder, *policy;
  shoal_learner *learner;
  shoal_rollout_shape shape;
  shoal_actor
      *doubter; /* tries where streams stand after rollouts; NULL: actors are believed. Under the lock */
  volatile sig_atomic_t stop;
  pthread_t thread;
  bool has_thread;

  pthread_mutex_t clock; /* guards these two; nothing else is locked meanwhile */
  double counted, since; /* seconds until the clock stood still, or went on last; 0: it stands still */

  pthread_mutex_t lock;
  pthread_cond_t news; /* a round was learned from, or it is over */
  shoal_agent_trainer *trainer;
  bool ended;
  shoal_coach_view view; /* its error, training and bytes */
  heard actors[ACTORS_MAX];
  shoal_training_view *points; /* a ring */
  uint64_t points_count;
  double point_at, checkpoint_at;
  shoal_text last_policy; /* once the trainer is gone */
  uint64_t last_version;
};

/* ---- what the thread inside says ------------------------------------------------------ */

static void opened(void *self, shoal_agent_trainer *trainer) {
  shoal_coach *c = self;
  pthread_mutex_lock(&c->lock);
  c->trainer = trainer;
  pthread_cond_broadcast(&c->news);
  pthread_mutex_unlock(&c->lock);
}

static void closes(void *self) {
  shoal_coach *c = self;
  pthread_mutex_lock(&c->lock);
  c->last_version = shoal_agent_trainer_policy(c->trainer, &c->last_policy);
  shoal_agent_trainer_course(c->trainer, &c->view.course);
  c->trainer = NULL;
  c->ended = true;
  pthread_cond_broadcast(&c->news);
  pthread_mutex_unlock(&c->lock);
}

/* The same policy may be told of twice, by its round and at the end. */
static bool is_noted(const shoal_coach *c, const shoal_training_view *view) {
  const shoal_training_view *last = &c->points[(c->points_count + POINTS_MAX - 1) % POINTS_MAX];
  return c->points_count > 0 && last->round.steps == view->round.steps && last->scored == view->scored &&
         last->evaluation.episodes == view->evaluation.episodes;
}

static void note_point(shoal_coach *c, const shoal_training_view *view) {
  if (is_noted(c, view) || (!view->scored && view->seconds < c->point_at)) return;
  c->points[c->points_count++ % POINTS_MAX] = *view;
  c->point_at = view->seconds + fmax(POINT_EVERY_S, POINTS_SHARE * view->seconds);
}

/* ---- checkpoints ---- */

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

uint32_t shoal_coach_checkpoints(const char *folder, uint64_t *out, uint32_t most) {
  DIR *dir = opendir(folder);
  uint32_t count = 0;
  for (struct dirent *entry; dir && count < most && (entry = readdir(dir)) != NULL;) {
    const char *dot = strchr(entry->d_name, '.');
    if (dot && strcmp(dot, ".safetensors") == 0 &&
        shoal_read_u64(entry->d_name, (size_t)(dot - entry->d_name), &out[count]))
      count++;
  }
  if (dir) closedir(dir);
  qsort(out, count, sizeof *out, by_number);
  return count;
}

/* Where there are too many, the one goes whose neighbours are nearest to each other. */
static void thin_out(const char *folder) {
  enum { MOST = 4 * SHOAL_COACH_CHECKPOINTS };
  uint64_t steps[MOST];
  uint32_t count = shoal_coach_checkpoints(folder, steps, MOST);
  while (count > SHOAL_COACH_CHECKPOINTS) {
    uint32_t least = 1;
    for (uint32_t i = 2; i + 1 < count; i++)
      if (steps[i + 1] - steps[i - 1] < steps[least + 1] - steps[least - 1]) least = i;
    char *path = shoal_path("%s/%" PRIu64 ".safetensors", folder, steps[least]);
    if (path) unlink(path);
    free(path);
    memmove(steps + least, steps + least + 1, (--count - least) * sizeof *steps);
  }
}

/* One that cannot be written costs nothing but itself. */
static void write_checkpoint(shoal_coach *c, bool due) {
  double now = shoal_clock_seconds();
  if (c->folder == NULL || (!due && now < c->checkpoint_at)) return;
  double pause = fmax(CHECKPOINT_EVERY_S, CHECKPOINTS_SHARE * c->view.training.seconds);
  c->checkpoint_at = now + fmin(pause, c->config.save_every_s);
  char *path = shoal_path("%s/%" PRIu64 ".safetensors", c->folder, shoal_learner_steps(c->learner));
  if (path && shoal_learner_save(c->learner, path, false, NULL) == SHOAL_OK) thin_out(c->folder);
  free(path);
  if (c->policy) (void)shoal_learner_save(c->learner, c->policy, false, NULL);
}

/* ---- time ---- */

static double seconds_of(shoal_coach *c) {
  pthread_mutex_lock(&c->clock);
  double seconds = c->counted + (c->since > 0 ? shoal_clock_seconds() - c->since : 0);
  pthread_mutex_unlock(&c->clock);
  return seconds;
}

static double elapsed(void *self) { return seconds_of(self); }

void shoal_coach_pause(shoal_coach *c, bool paused) {
  double now = shoal_clock_seconds();
  pthread_mutex_lock(&c->clock);
  if (c->since > 0) c->counted += now - c->since;
  c->since = paused ? 0 : now;
  pthread_mutex_unlock(&c->clock);
}

static void round_done(void *self, const shoal_training_view *view) {
  shoal_coach *c = self;
  pthread_mutex_lock(&c->lock);
  c->view.training = *view;
  note_point(c, view);
  pthread_cond_broadcast(&c->news);
  pthread_mutex_unlock(&c->lock);
  write_checkpoint(c, false);
  if (c->config.changed) c->config.changed(c->config.self);
}

static void warn(void *self, const char *text) {
  const shoal_coach *c = self;
  if (c->config.warn) c->config.warn(c->config.self, text);
}

static void *learn(void *self) {
  shoal_coach *c = self;
  shoal_error err = {0};
  shoal_training_view last;
  const shoal_training_options options = {.learner = c->learner,
                                          .config = c->config.learner,
                                          .seconds = c->config.seconds,
                                          .steps = c->config.steps,
                                          .until_solved = c->config.until_solved,
                                          .out = c->file,
                                          .save_every_s = c->config.save_every_s,
                                          .stop = &c->stop,
                                          .self = c,
                                          .round = round_done,
                                          .warn = warn,
                                          .elapsed = elapsed};
  const shoal_agent_trainer_outside outside = {.eager = !c->config.exact,
                                               .checked = c->config.checked,
                                               .lease_s = c->config.lease_s,
                                               .self = c,
                                               .opened = opened,
                                               .closes = closes};
  shoal_status status = shoal_train_outside(&options, &outside, &last, &err);
  write_checkpoint(c, true);
  pthread_mutex_lock(&c->lock);
  c->view.training = last;
  c->view.finished = status == SHOAL_OK;
  c->view.solved = status == SHOAL_OK && last.solved;
  if (status != SHOAL_OK && status != SHOAL_STOPPED) {
    snprintf(c->view.error, sizeof c->view.error, "%s", err.text);
    c->view.status = status;
  } else {
    note_point(c, &last);
  }
  c->view.ended = c->ended = true;
  pthread_cond_broadcast(&c->news);
  pthread_mutex_unlock(&c->lock);
  if (c->config.changed) c->config.changed(c->config.self);
  return NULL;
}

/* ---- for actors ----------------------------------------------------------------------- */

static void hear(shoal_coach *c, const char *actor) {
  heard *found = &c->actors[0];
  char plain[SHOAL_ACTOR_NAME_MAX];
  shoal_text_plain(plain, sizeof plain, actor, strlen(actor));
  for (uint32_t i = 0; i < ACTORS_MAX; i++) {
    heard *h = &c->actors[i];
    if (h->at > 0 && strcmp(h->name, plain) == 0) {
      found = h;
      break;
    }
    if (h->at < found->at) found = h;
  }
  memcpy(found->name, plain, sizeof plain);
  found->at = shoal_clock_seconds();
}

static uint32_t count_actors(const shoal_coach *c) {
  uint32_t count = 0;
  double since = shoal_clock_seconds() - c->config.lease_s;
  for (uint32_t i = 0; i < ACTORS_MAX; i++) count += c->actors[i].at > 0 && c->actors[i].at >= since;
  return count;
}

shoal_rollout_shape shoal_coach_shape(const shoal_coach *c) { return c->shape; }

void shoal_coach_brief(shoal_coach *c, uint64_t life, shoal_text *json) {
  shoal_actor_brief_write(&c->config.learner, shoal_learner_spec(c->learner), c->config.exact, life, json);
}

shoal_coach_next shoal_coach_take(shoal_coach *c, const char *actor, uint64_t known, shoal_text *unit,
                                  shoal_text *policy) {
  shoal_text_clear(unit);
  shoal_text_clear(policy);
  pthread_mutex_lock(&c->lock);
  bool any = false, ended = c->ended;
  hear(c, actor);
  if (!ended && c->trainer) any = shoal_agent_trainer_take(c->trainer, actor, known, unit, policy);
  if (any) c->view.bytes_out += unit->length + policy->length;
  pthread_mutex_unlock(&c->lock);
  if (ended) return SHOAL_COACH_OVER;
  return any && !unit->failed && !policy->failed ? SHOAL_COACH_UNIT : SHOAL_COACH_WAITS;
}

/* With the lock: a unit that was not played goes to others. */
static void take_back(shoal_coach *c, const char *actor, const void *bytes, size_t length, bool failed) {
  uint64_t number, version;
  if (c->trainer && shoal_rollout_names(bytes, length, &number, &version))
    shoal_agent_trainer_back(c->trainer, number, actor, failed);
}

/* With the lock: takes a rollout in that was read with this status. */
static shoal_status take_in(shoal_coach *c, const char *actor, shoal_rollout *rollout, shoal_status status,
                            bool *counted, shoal_error *err) {
  if (status == SHOAL_OK && c->doubter) status = shoal_actor_check_state(c->doubter, &rollout->state, err);
  if (status == SHOAL_OK && c->trainer && counted)
    *counted = shoal_agent_trainer_done(c->trainer, rollout, actor);
  else
    shoal_rollout_destroy(rollout);
  return status;
}

/* counted: NULL where it does not count, whatever it is. */
static shoal_status hand_in(shoal_coach *c, const char *actor, const void *bytes, size_t length,
                            bool *counted, shoal_error *err) {
  shoal_rollout *rollout;
  shoal_status status = shoal_rollout_create(&rollout, &c->shape, err);
  if (status != SHOAL_OK) return status;
  status = shoal_rollout_read(rollout, bytes, length, err);
  pthread_mutex_lock(&c->lock);
  status = take_in(c, actor, rollout, status, counted, err);
  if (status == SHOAL_OK) {
    hear(c, actor);
    c->view.bytes_in += length;
  }
  if (status == SHOAL_INVALID || !counted) take_back(c, actor, bytes, length, status == SHOAL_INVALID);
  pthread_mutex_unlock(&c->lock);
  return status;
}

shoal_status shoal_coach_done(shoal_coach *c, const char *actor, const void *bytes, size_t length,
                              bool *counted, shoal_error *err) {
  *counted = false;
  return hand_in(c, actor, bytes, length, counted, err);
}

shoal_status shoal_coach_refuse(shoal_coach *c, const char *actor, const void *bytes, size_t length,
                                shoal_error *err) {
  return hand_in(c, actor, bytes, length, NULL, err);
}

void shoal_coach_give_up(shoal_coach *c, const char *actor, uint64_t number) {
  pthread_mutex_lock(&c->lock);
  if (c->trainer) shoal_agent_trainer_back(c->trainer, number, actor, true);
  pthread_mutex_unlock(&c->lock);
}

bool shoal_coach_evidence(shoal_coach *c, const void *bytes, size_t length, shoal_text *unit,
                          shoal_text *policy) {
  uint64_t number, version;
  shoal_text_clear(unit);
  shoal_text_clear(policy);
  if (!shoal_rollout_names(bytes, length, &number, &version)) return false;
  pthread_mutex_lock(&c->lock);
  bool there = c->trainer && shoal_agent_trainer_evidence(c->trainer, number, version, unit, policy);
  pthread_mutex_unlock(&c->lock);
  return there;
}

double shoal_coach_silent(shoal_coach *c, const char *actor) {
  char plain[SHOAL_ACTOR_NAME_MAX];
  double seconds = 0;
  shoal_text_plain(plain, sizeof plain, actor, strlen(actor));
  pthread_mutex_lock(&c->lock);
  for (uint32_t i = 0; i < ACTORS_MAX; i++)
    if (c->actors[i].at > 0 && strcmp(c->actors[i].name, plain) == 0)
      seconds = shoal_clock_seconds() - c->actors[i].at;
  pthread_mutex_unlock(&c->lock);
  return seconds;
}

static void forget(shoal_coach *c, const char *actor) {
  char plain[SHOAL_ACTOR_NAME_MAX];
  shoal_text_plain(plain, sizeof plain, actor, strlen(actor));
  for (uint32_t i = 0; i < ACTORS_MAX; i++)
    if (strcmp(c->actors[i].name, plain) == 0) c->actors[i] = (heard){0};
}

void shoal_coach_lost(shoal_coach *c, const char *actor) {
  pthread_mutex_lock(&c->lock);
  forget(c, actor);
  if (c->trainer) shoal_agent_trainer_lost(c->trainer, actor);
  pthread_mutex_unlock(&c->lock);
}

void shoal_coach_lied(shoal_coach *c, const char *actor) {
  pthread_mutex_lock(&c->lock);
  forget(c, actor);
  if (c->trainer) shoal_agent_trainer_lied(c->trainer, actor);
  pthread_mutex_unlock(&c->lock);
}

void shoal_coach_bound(shoal_coach *c, const char *actor, uint32_t most) {
  pthread_mutex_lock(&c->lock);
  if (c->trainer) shoal_agent_trainer_bound(c->trainer, actor, most);
  pthread_mutex_unlock(&c->lock);
}

void shoal_coach_policy(shoal_coach *c, uint64_t *version, shoal_text *bytes) {
  if (bytes) shoal_text_clear(bytes);
  pthread_mutex_lock(&c->lock);
  if (c->trainer) {
    *version = shoal_agent_trainer_policy(c->trainer, bytes);
  } else {
    *version = c->last_version;
    if (bytes) shoal_text_add(bytes, c->last_policy.bytes, c->last_policy.length);
  }
  pthread_mutex_unlock(&c->lock);
}

/* ---- beginning and end -------------------------------------------------------------------- */

/* Until there are units, and a policy. */
static void wait_until_open(shoal_coach *c) {
  pthread_mutex_lock(&c->lock);
  while (c->trainer == NULL && !c->ended) pthread_cond_wait(&c->news, &c->lock);
  pthread_mutex_unlock(&c->lock);
}

static shoal_status start_thread(shoal_coach *c, shoal_error *err) {
  int failure = shoal_thread_start(&c->thread, learn, c);
  if (failure) return shoal_fail(err, SHOAL_LIMIT, "a thread could not be started: %s", strerror(failure));
  c->has_thread = true;
  wait_until_open(c);
  return SHOAL_OK;
}

/* Copies of what was lent, and what is usual. */
static shoal_status keep_config(shoal_coach *c, const shoal_coach_config *config, shoal_error *err) {
  c->config = *config;
  if (!(c->config.lease_s > 0)) c->config.lease_s = LEASE_S;
  if (!(c->config.save_every_s > 0)) c->config.save_every_s = SAVE_EVERY_S;
  c->file = config->file ? strdup(config->file) : NULL;
  c->folder = config->folder ? strdup(config->folder) : NULL;
  c->policy = config->policy ? strdup(config->policy) : NULL;
  c->points = calloc(POINTS_MAX, sizeof *c->points);
  if ((config->file && !c->file) || (config->folder && !c->folder) || (config->policy && !c->policy) ||
      !c->points)
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a training");
  return c->folder ? shoal_make_folder(c->folder, err) : SHOAL_OK;
}

shoal_status shoal_coach_start(shoal_coach **out, const shoal_coach_config *config, shoal_error *err) {
  *out = NULL;
  shoal_coach *c = calloc(1, sizeof *c);
  if (c == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a training");
  pthread_mutex_init(&c->clock, NULL);
  pthread_mutex_init(&c->lock, NULL);
  c->counted = config->seconds_before;
  pthread_cond_init(&c->news, NULL);
  c->view.training.return_mean = c->view.training.return_deviation = c->view.training.evaluation.mean = NAN;
  shoal_status status = keep_config(c, config, err);
  if (status == SHOAL_OK) status = shoal_learner_create(&c->learner, &config->learner, err);
  if (status == SHOAL_OK && c->file && !config->anew && shoal_file_exists(c->file))
    status = shoal_learner_load(c->learner, c->file, err);
  if (status == SHOAL_OK && config->checked)
    status = shoal_actor_create(&c->doubter, shoal_learner_spec(c->learner), config->learner.settings.envs,
                                config->learner.settings.steps, err);
  if (status == SHOAL_OK) {
    c->shape = shoal_learner_shape(c->learner);
    c->view.training.round.steps = shoal_learner_steps(c->learner);
    c->since = shoal_clock_seconds();
    status = start_thread(c, err);
  }
  if (status != SHOAL_OK) {
    shoal_coach_stop(c);
    shoal_coach_wait(c);
    shoal_coach_destroy(c);
    return status;
  }
  *out = c;
  return SHOAL_OK;
}

void shoal_coach_stop(shoal_coach *c) { __atomic_store_n(&c->stop, 1, __ATOMIC_RELAXED); }

void shoal_coach_wait(shoal_coach *c) {
  if (c->has_thread) pthread_join(c->thread, NULL);
  c->has_thread = false;
}

void shoal_coach_destroy(shoal_coach *c) {
  if (c == NULL) return;
  shoal_learner_destroy(c->learner);
  shoal_actor_destroy(c->doubter);
  shoal_text_release(&c->last_policy);
  pthread_cond_destroy(&c->news);
  pthread_mutex_destroy(&c->lock);
  pthread_mutex_destroy(&c->clock);
  free(c->points);
  free(c->file);
  free(c->folder);
  free(c->policy);
  free(c);
}

/* ---- what is told ------------------------------------------------------------------------- */

void shoal_coach_look(shoal_coach *c, shoal_coach_view *out) {
  pthread_mutex_lock(&c->lock);
  if (c->trainer) shoal_agent_trainer_course(c->trainer, &c->view.course);
  uint64_t learned = c->view.course.rounds * c->config.learner.settings.streams;
  c->view.waiting = c->view.course.units > learned ? c->view.course.units - learned : 0;
  c->view.seconds = seconds_of(c);
  c->view.actors = count_actors(c);
  *out = c->view;
  pthread_mutex_unlock(&c->lock);
}

static void write_point(shoal_json *json, const shoal_training_view *view) {
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "steps", (int64_t)view->round.steps);
  shoal_json_real(json, "seconds", view->seconds);
  shoal_json_real(json, "return_mean", view->return_mean);
  shoal_json_real(json, "return_deviation", view->return_deviation);
  shoal_json_real(json, "steps_per_second", view->steps_per_second);
  shoal_json_real(json, "lag", view->round.lag);
  if (view->scored) {
    shoal_json_real(json, "score", view->evaluation.mean);
    shoal_json_real(json, "score_deviation", view->evaluation.deviation);
    shoal_json_bool(json, "solved", view->solved);
  }
  shoal_json_close(json, '}');
}

uint64_t shoal_coach_news(shoal_coach *c, uint64_t from, shoal_text *out) {
  pthread_mutex_lock(&c->lock);
  uint64_t count = c->points_count, oldest = count > POINTS_MAX ? count - POINTS_MAX : 0;
  for (uint64_t i = from > oldest ? from : oldest; i < count; i++) {
    shoal_json json;
    shoal_json_init(&json, out);
    write_point(&json, &c->points[i % POINTS_MAX]);
    shoal_text_add(out, "\n", 1);
  }
  pthread_mutex_unlock(&c->lock);
  return count;
}
