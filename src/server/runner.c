/* runner.c: see runner.h.
 *
 * The thread inside opens the data, starts chief and parameter server, runs the loop and saves. What others want to
 * see of it is under the lock: the view, points and notes that wait to be taken. */
#include "server/runner.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cluster/chief_node.h"
#include "cluster/owner_node.h"
#include "cluster/worker_node.h"
#include "nn/events.h"
#include "nn/onnx.h"
#include "server/folders.h"
#include "train/eta.h"
#include "train/event_log.h"
#include "train/metric.h"

enum {
  CURVE_POINTS = 1000,
  NOTES_MAX = 256,
  LESSONS_MAX = 256,
  OWNERS = 1,
  SUMS_MAX = SHOAL_SPEC_WORKERS_MAX + 24,
};
static const double SAVE_S = 2;       /* how often a version is made safe within an epoch */
static const double RATE_S = 1;       /* over which the rate is measured */
static const double EVALUATION_S = 1; /* how often evaluation.json is written while epochs pass */

typedef struct note {
  struct note *next;
  double time;
  char *text;
} note;

struct shoal_runner {
  shoal_runner_config config;
  char *folder, *data; /* the config's, copied */
  pthread_t thread, owner_thread, auditor_thread;
  bool owner_runs, auditor_runs;
  volatile sig_atomic_t stop, owner_stop, auditor_stop;
  shoal_standing *standings; /* the config's, copied */

  /* The thread's own. */
  shoal_task task;
  shoal_checkpoint from;
  shoal_training_config plan;
  shoal_training training;
  shoal_job job;
  shoal_text out_path, state_folder, log_folder;
  char chief_at[16], owner_at[16];
  shoal_events *events; /* or NULL */
  shoal_class_eval evaluation;
  uint64_t evaluated_step; /* that evaluation.json is of; UINT64_MAX: none yet */
  bool evaluation_failed;  /* the last one was not written, and that was said */
  double evaluated_at;
  uint32_t rows;
  uint64_t last_step;
  double bucket_loss, bucket_metric; /* sums over the rounds since the last point */
  uint32_t bucket_count, stride;
  double mark_time;
  uint64_t mark_samples, samples_done;

  pthread_mutex_t lock;
  shoal_chief_node *node; /* NULL before and after */
  bool abandoned;
  shoal_worker_sum *sums; /* once it is gone: what its workers had done */
  uint32_t sums_count;
  shoal_runner_view view;
  shoal_eta eta;
  shoal_point *points;
  size_t points_count, points_capacity;
  shoal_runner_lesson lessons[LESSONS_MAX]; /* a ring; the newest takes the place of one about the same */
  uint32_t lessons_first, lessons_count;
  note *notes, **notes_end;
  uint32_t notes_count;
};

/* ---- what is told ---- */

static void tell(shoal_runner *r) { r->config.changed(r->config.self); }

/* A text for those who host: where things are on this machine is none of their business. What is left of a path is the
 * name of the set and of the file, "iris/iris.csv", or a file of the job's. */
static void cut_folders(const shoal_runner *r, char *text) {
  const char *data = r->data;
  bool is_text = strncmp(data, "text:", 5) == 0 || strncmp(data, "chars:", 6) == 0;
  if (is_text) data = strchr(data, ':') + 1;
  shoal_text inside = {0};
  shoal_text_addf(&inside, "/sets/%s", r->config.spec->data.bytes);
  const char *name = inside.failed ? NULL : strstr(data, inside.bytes);
  char *sets = name != NULL ? strndup(data, (size_t)(strchr(name + 1, '/') - data)) : NULL;
  if (sets != NULL) shoal_cut_folder(text, sets);
  shoal_cut_folder(text, r->folder);
  free(sets);
  shoal_text_release(&inside);
}

static void add_note(shoal_runner *r, const char *text) {
  note *n = malloc(sizeof *n);
  char *copy = strdup(text);
  if (n == NULL || copy == NULL) {
    free(n);
    free(copy);
    return;
  }
  cut_folders(r, copy);
  *n = (note){.time = shoal_clock_wall_seconds(), .text = copy};
  pthread_mutex_lock(&r->lock);
  if (r->notes_count < NOTES_MAX) {
    *r->notes_end = n;
    r->notes_end = &n->next;
    r->notes_count++;
    n = NULL;
  }
  pthread_mutex_unlock(&r->lock);
  if (n != NULL) { /* nobody takes them: the newest is the one that can be spared */
    free(copy);
    free(n);
  }
  tell(r);
}

static void on_warning(void *self, const char *text) { add_note(self, text); }

static void add_point(shoal_runner *r, const shoal_point *point) {
  pthread_mutex_lock(&r->lock);
  if (r->points_count == r->points_capacity) {
    size_t capacity = r->points_capacity > 0 ? 2 * r->points_capacity : 64;
    shoal_point *grown = realloc(r->points, capacity * sizeof *grown);
    if (grown != NULL) {
      r->points = grown;
      r->points_capacity = capacity;
    }
  }
  if (r->points_count < r->points_capacity) r->points[r->points_count++] = *point;
  pthread_mutex_unlock(&r->lock);
}

static void set_phase(shoal_runner *r, shoal_runner_phase phase) {
  pthread_mutex_lock(&r->lock);
  r->view.phase = phase;
  pthread_mutex_unlock(&r->lock);
  tell(r);
}

/* ---- what the loop tells ---- */

static double metric_of(const shoal_runner *r, const shoal_result *result) {
  return shoal_metric_value(r->task.graph, result);
}

static void measure_rate(shoal_runner *r, uint64_t rounds) {
  double now = shoal_clock_seconds();
  r->samples_done += rounds * r->rows;
  if (r->mark_time == 0) r->mark_time = now;
  if (now - r->mark_time < RATE_S) return;
  double rate = (double)(r->samples_done - r->mark_samples) / (now - r->mark_time);
  pthread_mutex_lock(&r->lock);
  r->view.progress.samples_per_s = rate;
  pthread_mutex_unlock(&r->lock);
  r->mark_time = now;
  r->mark_samples = r->samples_done;
}

static void fill_bucket(shoal_runner *r, const shoal_result *round) {
  r->bucket_loss += round->loss;
  r->bucket_metric += metric_of(r, round);
  if (++r->bucket_count < r->stride) return;
  double loss = r->bucket_loss / r->bucket_count, metric = r->bucket_metric / r->bucket_count;
  pthread_mutex_lock(&r->lock);
  r->view.progress.loss = loss;
  r->view.progress.metric = metric;
  double rate = r->view.progress.samples_per_s;
  pthread_mutex_unlock(&r->lock);
  add_point(r, &(shoal_point){.kind = 0,
                              .step = r->training.state->step,
                              .time = shoal_clock_wall_seconds(),
                              .loss = loss,
                              .metric = metric,
                              .samples_per_s = rate,
                              .held_out_loss = NAN,
                              .held_out_metric = NAN});
  if (r->events != NULL) {
    shoal_events_scalar(r->events, "loss", r->training.state->step, loss);
    shoal_events_scalar(r->events, shoal_metric_name(r->task.graph), r->training.state->step, metric);
  }
  r->bucket_loss = r->bucket_metric = 0;
  r->bucket_count = 0;
}

static void show_position(shoal_runner *r) {
  const shoal_train_state *state = r->training.state;
  pthread_mutex_lock(&r->lock);
  shoal_progress_view *p = &r->view.progress;
  p->epoch = state->epoch;
  p->round = state->round;
  p->step = state->step;
  pthread_mutex_unlock(&r->lock);
}

static void note_round(shoal_runner *r, uint64_t rounds) {
  pthread_mutex_lock(&r->lock);
  shoal_eta_round(&r->eta, rounds, r->training.state->round == 0, shoal_clock_seconds());
  pthread_mutex_unlock(&r->lock);
}

static void on_round(void *self, const shoal_result *round) {
  shoal_runner *r = self;
  uint64_t step = r->training.state->step;
  if (step <= r->last_step) r->bucket_count = 0, r->bucket_loss = r->bucket_metric = 0; /* it went back */
  uint64_t rounds = step > r->last_step ? step - r->last_step : 0;
  measure_rate(r, rounds);
  note_round(r, rounds);
  fill_bucket(r, round);
  r->last_step = step;
  show_position(r);
}

/* Keeps what is known of every class beside the model. Without it the job is no less good. */
static void save_evaluation(shoal_runner *r) {
  const shoal_class_eval *e = &r->evaluation;
  const shoal_train_state *state = r->training.state;
  if (!e->has_classes || e->source == NULL) return;
  shoal_text text = {0}, path = {0};
  shoal_json json;
  shoal_error err;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "split", e->source == &r->task.sources[SHOAL_VALID] ? "valid" : "test");
  shoal_json_int(&json, "epoch", (int64_t)state->epoch);
  shoal_json_int(&json, "step", (int64_t)state->step);
  shoal_json_int(&json, "samples", (int64_t)e->result.answers);
  shoal_metric_json(&json, "", r->task.graph, &e->result);
  shoal_confusion_write(&e->confusion, &e->words, &json);
  shoal_json_close(&json, '}');
  shoal_text_addf(&path, "%s/evaluation.json", r->config.folder);
  shoal_status status = text.failed || path.failed
                            ? shoal_fail(&err, SHOAL_NO_MEMORY, "out of memory")
                            : shoal_file_write(path.bytes, text.bytes, text.length, &err);
  if (status != SHOAL_OK && !r->evaluation_failed) add_note(r, err.text);
  r->evaluation_failed = status != SHOAL_OK;
  r->evaluated_step = state->step;
  r->evaluated_at = shoal_clock_seconds();
  shoal_text_release(&text);
  shoal_text_release(&path);
}

static void on_epoch(void *self, const shoal_result *train, const shoal_result *held_out) {
  shoal_runner *r = self;
  shoal_point point = {.kind = 1,
                       .step = r->training.state->step,
                       .time = shoal_clock_wall_seconds(),
                       .loss = train->loss,
                       .metric = metric_of(r, train),
                       .held_out_loss = held_out != NULL ? held_out->loss : NAN,
                       .held_out_metric = held_out != NULL ? metric_of(r, held_out) : NAN};
  pthread_mutex_lock(&r->lock);
  point.samples_per_s = r->view.progress.samples_per_s;
  r->view.progress.held_out_loss = point.held_out_loss;
  r->view.progress.held_out_metric = point.held_out_metric;
  pthread_mutex_unlock(&r->lock);
  add_point(r, &point);
  show_position(r);
  if (shoal_clock_seconds() - r->evaluated_at >= EVALUATION_S) save_evaluation(r);
  if (r->events != NULL && held_out != NULL) {
    shoal_events_scalar(r->events, "held-out loss", point.step, point.held_out_loss);
    shoal_events_scalar(r->events, "held-out metric", point.step, point.held_out_metric);
  }
  if (r->events != NULL) {
    shoal_event_log_epoch(r->events, &r->task, shoal_training_held_out(&r->training));
    (void)shoal_events_flush(r->events, NULL);
  }
  tell(r);
}

static void on_moved_aside(void *self, const char *place) { (void)self, (void)place; }

/* ---- setting up ---- */

/* Under the lock: whoever waits for a round or for weights waits no more. */
static void give_up(shoal_chief_node *node) {
  shoal_error err;
  shoal_fail(&err, SHOAL_STOPPED, "the server was stopped");
  shoal_chief_node_fail(node, &err);
}

static shoal_status make_paths(shoal_runner *r, shoal_error *err) {
  shoal_text_addf(&r->out_path, "%s/model.safetensors", r->config.folder);
  shoal_text_addf(&r->state_folder, "%s/state", r->config.folder);
  shoal_text_addf(&r->log_folder, "%s/events", r->config.folder);
  snprintf(r->chief_at, sizeof r->chief_at, "#:%u", r->config.port);
  snprintf(r->owner_at, sizeof r->owner_at, "#:%u", r->config.port + 1);
  if (r->out_path.failed || r->state_folder.failed || r->log_folder.failed)
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  return shoal_make_folder(r->state_folder.bytes, err);
}

static void describe(shoal_runner *r) {
  const shoal_task *task = &r->task;
  const shoal_source *held_out = shoal_training_held_out(&r->training);
  uint64_t rounds = shoal_trainer_rounds(task->trainer), samples = task->sources[SHOAL_TRAIN].samples;
  r->rows = task->model->recipe.batch;
  uint64_t steps = rounds * task->model->recipe.epochs;
  r->stride = (uint32_t)(1 + steps / CURVE_POINTS);
  r->last_step = r->training.state->step;
  pthread_mutex_lock(&r->lock);
  shoal_eta_start(&r->eta, held_out != NULL ? held_out->samples : 0, r->rows);
  r->view.weights = task->graph->trainable;
  r->view.samples = samples;
  r->view.memory_bytes = shoal_engine_memory(shoal_trainer_engine(task->trainer));
  r->view.rounds = rounds;
  r->view.progress.steps = steps;
  r->view.progress.metric_name = shoal_metric_name(task->graph);
  r->view.progress.held_out = held_out == NULL                          ? NULL
                              : held_out == &task->sources[SHOAL_VALID] ? "valid"
                                                                        : "test";
  pthread_mutex_unlock(&r->lock);
  show_position(r);
}

/* *field: what is at fault when this fails. */
static shoal_status open_task(shoal_task *task, const shoal_spec *spec, const char *path,
                              const char *data_dir, const char **field, shoal_error *err) {
  bool no_target = false;
  const shoal_dataset_options data = {.data = path,
                                      .no_target = &no_target,
                                      .target = spec->target.length > 0 ? spec->target.bytes : NULL,
                                      .valid_share = spec->valid_share,
                                      .data_dir = data_dir};
  shoal_status status = shoal_task_open(task, spec->parsed, &data, err);
  *field = no_target ? "target" : "data";
  if (status != SHOAL_OK) return status;
  *field = "early_stop";
  if (spec->parsed->recipe.early_stop > 0 && task->sources[SHOAL_VALID].samples == 0)
    return shoal_fail(err, SHOAL_INVALID, "early stopping needs validation samples: set \"valid\" to 0.1");
  *field = "model";
  return shoal_task_check(task, err);
}

shoal_status shoal_runner_try(const shoal_spec *spec, const char *data, const char *data_dir,
                              shoal_spec_fault *fault, shoal_error *err) {
  shoal_task task;
  const char *field = "";
  shoal_status status = open_task(&task, spec, data, data_dir, &field, err);
  bool at_fault = status == SHOAL_INVALID || status == SHOAL_NOT_FOUND || status == SHOAL_CORRUPT ||
                  status == SHOAL_UNSUPPORTED || status == SHOAL_LIMIT;
  snprintf(fault->field, sizeof fault->field, "%s", at_fault ? field : "");
  shoal_task_close(&task);
  return status;
}

/* From the model that was saved last, if there is one; the chief's record may lead further. */
static shoal_status open_training(shoal_runner *r, shoal_error *err) {
  const shoal_spec *spec = r->config.spec;
  const char *field;
  shoal_status status = open_task(&r->task, spec, r->config.data, r->config.data_dir, &field, err);
  if (status == SHOAL_OK) status = shoal_task_ready(&r->task, r->config.threads, err);
  r->evaluated_step = UINT64_MAX;
  if (status == SHOAL_OK)
    status = shoal_class_eval_init(&r->evaluation, r->task.graph, r->task.dataset, spec->parsed->recipe.batch,
                                   err);
  if (status != SHOAL_OK) return status;
  bool goes_on = shoal_file_exists(r->out_path.bytes);
  if (goes_on) status = shoal_checkpoint_load(&r->from, r->out_path.bytes, err);
  if (status != SHOAL_OK) return status;
  r->plan = (shoal_training_config){
      .task = &r->task,
      .out = r->out_path.bytes,
      .resumed = goes_on ? r->out_path.bytes : NULL,
      .had_early_stop = goes_on && r->from.model->recipe.early_stop > 0,
      .calls = {r, on_round, on_epoch, on_warning, on_moved_aside},
      .evaluation = &r->evaluation,
      .stop = &r->stop,
  };
  status = shoal_training_init(&r->training, &r->plan, err);
  if (status == SHOAL_OK) status = shoal_training_begin(&r->training, goes_on ? &r->from : NULL, err);
  if (status == SHOAL_OK) describe(r);
  return status;
}

/* ---- who is believed ---- */

static shoal_runner_lesson *lesson_about(shoal_runner *r, uint64_t who) {
  for (uint32_t i = 0; i < r->lessons_count; i++) {
    shoal_runner_lesson *lesson = &r->lessons[(r->lessons_first + i) % LESSONS_MAX];
    if (lesson->standing.who == who) return lesson;
  }
  return NULL;
}

/* A new lesson; when there is no room, a ban takes the place of an audit, and an audit is not told. */
static shoal_runner_lesson *add_lesson(shoal_runner *r, bool is_ban) {
  shoal_runner_lesson *lesson = NULL;
  if (r->lessons_count < LESSONS_MAX)
    lesson = &r->lessons[(r->lessons_first + r->lessons_count++) % LESSONS_MAX];
  for (uint32_t i = 0; lesson == NULL && is_ban && i < LESSONS_MAX; i++)
    if (!r->lessons[i].standing.banned) lesson = &r->lessons[i];
  if (lesson != NULL) *lesson = (shoal_runner_lesson){0};
  return lesson;
}

/* From the chief's thread. */
static void learn(void *self, const shoal_chief_event *event) {
  shoal_runner *r = self;
  pthread_mutex_lock(&r->lock);
  shoal_runner_lesson *lesson = lesson_about(r, event->standing.who);
  if (lesson == NULL) lesson = add_lesson(r, event->kind == SHOAL_CHIEF_BANNED);
  if (lesson != NULL && !lesson->standing.banned) { /* else who lied is told already */
    lesson->standing = event->standing;
    memcpy(lesson->name, event->name, sizeof lesson->name);
    if (event->kind == SHOAL_CHIEF_BANNED) snprintf(lesson->why, sizeof lesson->why, "%s", event->text);
  }
  pthread_mutex_unlock(&r->lock);
  if (event->kind == SHOAL_CHIEF_BANNED) tell(r);
}

bool shoal_runner_take_lesson(shoal_runner *r, shoal_runner_lesson *out) {
  pthread_mutex_lock(&r->lock);
  bool found = r->lessons_count > 0;
  if (found) {
    *out = r->lessons[r->lessons_first];
    r->lessons_first = (r->lessons_first + 1) % LESSONS_MAX;
    r->lessons_count--;
  }
  pthread_mutex_unlock(&r->lock);
  return found;
}

void shoal_runner_teach(shoal_runner *r, const shoal_standing *standing) {
  pthread_mutex_lock(&r->lock);
  if (r->node != NULL) shoal_chief_node_set_standing(r->node, standing);
  pthread_mutex_unlock(&r->lock);
}

/* The server's own worker: it computes again what others have computed, when there is nothing else to do for the
 * processor, and so knows who lies. */
static void *run_auditor(void *self) {
  shoal_runner *r = self;
  shoal_error err;
  const struct sched_param none = {0};
  (void)sched_setscheduler(0, SCHED_IDLE, &none); /* and with it what this thread starts */
  const shoal_worker_node_config config = {
      .chief = r->chief_at,
      .ps = r->owner_at,
      .name = "auditor",
      .key = shoal_chief_node_key(r->node),
      .compute = {.data = r->config.data, .data_dir = r->config.data_dir, .threads = 1},
      .beside_chief = true,
      .notes = {.self = r, .note = on_warning},
      .stop = &r->auditor_stop};
  if (shoal_worker_node_run(&config, &err) != SHOAL_OK) shoal_chief_node_fail(r->node, &err);
  return NULL;
}

static shoal_status start_auditor(shoal_runner *r, shoal_error *err) {
  bool audited = shoal_job_is_audited(&r->job);
  pthread_mutex_lock(&r->lock);
  r->view.audited = audited;
  pthread_mutex_unlock(&r->lock);
  if (!audited) return SHOAL_OK;
  if (pthread_create(&r->auditor_thread, NULL, run_auditor, r) != 0)
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  r->auditor_runs = true;
  return SHOAL_OK;
}

static void *run_owner(void *self) {
  shoal_runner *r = self;
  shoal_error err;
  const shoal_owner_node_config config = {.listen = r->owner_at,
                                          .chief = r->chief_at,
                                          .name = "ps 0",
                                          .folder = r->state_folder.bytes,
                                          .notes = {.self = r, .note = on_warning},
                                          .stop = &r->owner_stop};
  if (shoal_owner_node_run(&config, &err) != SHOAL_OK) shoal_chief_node_fail(r->node, &err);
  return NULL;
}

static void warn_of_rule(shoal_runner *r) {
  char advice[SHOAL_RULE_ADVICE_MAX], text[SHOAL_RULE_ADVICE_MAX + 16];
  if (!shoal_rule_is_idle(&r->job.rule, r->job.parts, advice)) return;
  snprintf(text, sizeof text, "warning: %s", advice);
  add_note(r, text);
}

static shoal_status open_cluster(shoal_runner *r, shoal_error *err) {
  const shoal_spec *spec = r->config.spec;
  char owners[OWNERS][SHOAL_ADDRESS_MAX];
  snprintf(owners[0], sizeof owners[0], "/jobs/%llu/ps/0", (unsigned long long)r->config.id);
  const shoal_job_plan plan = {.data = spec->data.bytes,
                               .target = spec->target.length > 0 ? spec->target.bytes : NULL,
                               .valid_share = spec->valid_share,
                               .mode = spec->mode,
                               .wire = spec->wire,
                               .owners = owners,
                               .owners_count = OWNERS,
                               .workers = spec->workers_min,
                               .guarded = spec->guarded,
                               .rule = spec->rule};
  shoal_status status = shoal_job_make(&r->job, &r->task, &plan, err);
  if (status != SHOAL_OK) return status;
  warn_of_rule(r);
  shoal_task_notes(&r->task, on_warning, r);
  pthread_mutex_lock(&r->lock);
  r->view.part_samples = (double)r->job.samples / ((double)r->job.rounds * r->job.parts);
  pthread_mutex_unlock(&r->lock);
  const shoal_chief_node_config chief = {.listen = r->chief_at,
                                         .task = &r->task,
                                         .job = &r->job,
                                         .folder = r->state_folder.bytes,
                                         .save_s = SAVE_S,
                                         .standings = r->config.standings,
                                         .standings_count = r->config.standings_count,
                                         .self = r,
                                         .learnt = learn,
                                         .workers_max = SHOAL_SPEC_WORKERS_MAX,
                                         .notes = {.self = r, .note = on_warning},
                                         .stop = &r->stop};
  shoal_chief_node *node;
  status = shoal_chief_node_create(&node, &chief, err);
  if (status != SHOAL_OK) return status;
  r->plan.state_dir = r->state_folder.bytes;
  r->plan.state_bytes = shoal_chief_node_room(node);
  pthread_mutex_lock(&r->lock);
  r->node = node;
  if (r->abandoned) give_up(node);
  pthread_mutex_unlock(&r->lock);
  if (pthread_create(&r->owner_thread, NULL, run_owner, r) != 0)
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  r->owner_runs = true;
  status = start_auditor(r, err);
  if (status != SHOAL_OK) return status;
  r->training.rounds = shoal_chief_node_rounds(node);
  if (shoal_chief_node_went_on(node) == 0) return SHOAL_OK;
  status = r->training.rounds.gather(r->training.rounds.self, err);
  if (status == SHOAL_OK) status = shoal_training_goes_on(&r->training, err);
  if (status != SHOAL_OK) return status;
  char text[96];
  snprintf(text, sizeof text, "continuing from round %llu, where this training was cut off",
           (unsigned long long)r->training.state->step);
  add_note(r, text);
  r->last_step = r->training.state->step;
  show_position(r);
  return SHOAL_OK;
}

/* ---- who did what ---- */

static void add_sum(shoal_worker_sum *out, uint32_t *count, uint32_t max, const shoal_chief_peer *p) {
  uint32_t i = 0;
  while (i < *count && strcmp(out[i].name, p->name) != 0) i++;
  if (i == max) return;
  if (i == *count) {
    out[i] = (shoal_worker_sum){0};
    memcpy(out[i].name, p->name, sizeof out[i].name);
    ++*count;
  }
  out[i].parts += p->parts_done + p->parts_before;
  out[i].units += p->units_done + p->units_before;
  out[i].seconds += p->seconds_done + p->seconds_before;
}

/* Of those who are here and those who were. */
static uint32_t sum_up(shoal_chief_node *node, shoal_worker_sum *out, uint32_t max) {
  shoal_chief_peer *peers = calloc(SUMS_MAX, sizeof *peers);
  uint32_t count = 0;
  if (peers == NULL) return 0;
  uint32_t found = shoal_chief_node_peers(node, peers, SUMS_MAX);
  for (uint32_t i = 0; i < found; i++)
    if (peers[i].role == SHOAL_ROLE_WORKER) add_sum(out, &count, max, &peers[i]);
  found = shoal_chief_node_past(node, peers, SUMS_MAX);
  for (uint32_t i = 0; i < found; i++) add_sum(out, &count, max, &peers[i]);
  free(peers);
  return count;
}

/* ---- the end ---- */

static void close_cluster(shoal_runner *r, const char *reason, bool forget) {
  shoal_chief_node *node = r->node;
  if (node == NULL) return;
  shoal_chief_node_end(node, forget ? SHOAL_ENDS_OVER : SHOAL_ENDS_SILENTLY, reason);
  __atomic_store_n(&r->owner_stop, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&r->auditor_stop, 1, __ATOMIC_RELAXED);
  if (r->auditor_runs) pthread_join(r->auditor_thread, NULL);
  r->auditor_runs = false;
  if (r->owner_runs) pthread_join(r->owner_thread, NULL);
  r->owner_runs = false;
  shoal_worker_sum *sums = calloc(SUMS_MAX, sizeof *sums);
  uint32_t sums_count = sums != NULL ? sum_up(node, sums, SUMS_MAX) : 0;
  pthread_mutex_lock(&r->lock);
  r->sums = sums;
  r->sums_count = sums_count;
  r->node = NULL;
  pthread_mutex_unlock(&r->lock);
  shoal_chief_node_destroy(node);
  rmdir(r->state_folder.bytes); /* when nothing is left in it */
}

static shoal_status finish(shoal_runner *r, shoal_error *err) {
  shoal_training *t = &r->training;
  if (t->best_epoch > 0) close_cluster(r, "the training has ended", true);
  shoal_status status = t->best_epoch > 0 ? shoal_training_keep_best(t, err) : shoal_training_save(t, err);
  if (status != SHOAL_OK) return status;
  shoal_training_results results = shoal_training_evaluate(t);
  save_evaluation(r);
  pthread_mutex_lock(&r->lock);
  shoal_graph_weights_sha256(r->task.graph, t->state->weights, r->view.sha256);
  r->view.progress.loss = results.train.loss;
  r->view.progress.metric = metric_of(r, &results.train);
  if (results.has_held_out) {
    r->view.progress.held_out_loss = results.held_out.loss;
    r->view.progress.held_out_metric = metric_of(r, &results.held_out);
  }
  r->view.finished = true;
  pthread_mutex_unlock(&r->lock);
  return SHOAL_OK;
}

/* For other runtimes; without it the job is no less finished. */
static void save_onnx(shoal_runner *r) {
  shoal_text path = {0};
  shoal_error err;
  shoal_text_addf(&path, "%s/model.onnx", r->config.folder);
  if (!path.failed &&
      shoal_onnx_save(path.bytes, r->task.graph, r->training.state->weights, &err) != SHOAL_OK)
    add_note(r, err.text);
  shoal_text_release(&path);
}

/* The loop is over; says what became of the job. */
static shoal_status wind_up(shoal_runner *r, shoal_outcome how, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  bool done = how == SHOAL_FINISHED || how == SHOAL_STOPPED_EARLY;
  if (done) status = finish(r, err);
  if (how == SHOAL_INTERRUPTED) status = shoal_training_save(&r->training, err);
  if (how == SHOAL_INTERRUPTED && r->training.state->round == 0 &&
      r->evaluated_step != r->training.state->step)
    save_evaluation(r);
  if ((done || how == SHOAL_INTERRUPTED) && status == SHOAL_OK) save_onnx(r);
  if (done || how == SHOAL_INTERRUPTED) return status;
  if (how == SHOAL_CUT_OFF) return SHOAL_OK; /* the records stay */
  return err->status;
}

static void release(shoal_runner *r) {
  shoal_training_release(&r->training);
  shoal_class_eval_release(&r->evaluation);
  shoal_events_destroy(r->events);
  r->events = NULL;
  shoal_job_release(&r->job);
  shoal_checkpoint_release(&r->from);
  shoal_task_close(&r->task);
}

static shoal_status run_job(shoal_runner *r, shoal_outcome *how, shoal_error *err) {
  shoal_status status = make_paths(r, err);
  if (status == SHOAL_OK) status = open_training(r, err);
  if (status == SHOAL_OK) status = shoal_events_create(&r->events, r->log_folder.bytes, err);
  if (status == SHOAL_OK) shoal_event_log_start(r->events, &r->task, shoal_training_held_out(&r->training));
  if (status == SHOAL_OK) status = open_cluster(r, err);
  *how = status == SHOAL_STOPPED ? SHOAL_CUT_OFF : SHOAL_BROKEN;
  if (status == SHOAL_STOPPED) return SHOAL_OK;
  if (status != SHOAL_OK) return status;
  set_phase(r, SHOAL_RUNNER_OPEN);
  *how = shoal_training_loop(&r->training, err);
  return wind_up(r, *how, err);
}

static void *run(void *self) {
  shoal_runner *r = self;
  shoal_error err = {0};
  shoal_outcome how = SHOAL_BROKEN;
  shoal_status status = run_job(r, &how, &err);
  bool saved = status == SHOAL_OK && how != SHOAL_CUT_OFF && how != SHOAL_BROKEN;
  close_cluster(r, "the training has ended", saved || how == SHOAL_EXPLODED);
  release(r);
  cut_folders(r, err.text);
  pthread_mutex_lock(&r->lock);
  r->view.outcome = how;
  r->view.progress.samples_per_s = 0;
  if (status != SHOAL_OK) snprintf(r->view.error, sizeof r->view.error, "%s", err.text);
  pthread_mutex_unlock(&r->lock);
  set_phase(r, SHOAL_RUNNER_ENDED);
  return NULL;
}

/* ---- for the others ---- */

static void free_runner(shoal_runner *r) {
  free(r->standings);
  free(r->folder);
  free(r->data);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

shoal_status shoal_runner_start(shoal_runner **out, const shoal_runner_config *config, shoal_error *err) {
  shoal_runner *r = calloc(1, sizeof *r);
  if (r == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  r->config = *config;
  r->config.folder = r->folder = strdup(config->folder);
  r->config.data = r->data = strdup(config->data);
  r->standings = malloc((config->standings_count + 1) * sizeof *r->standings);
  if (r->standings != NULL && config->standings_count > 0)
    memcpy(r->standings, config->standings, config->standings_count * sizeof *r->standings);
  r->config.standings = r->standings;
  r->notes_end = &r->notes;
  r->view.progress = (shoal_progress_view){
      .loss = NAN, .metric = NAN, .held_out_loss = NAN, .held_out_metric = NAN, .eta_s = NAN};
  pthread_mutex_init(&r->lock, NULL);
  if (r->folder == NULL || r->data == NULL || r->standings == NULL ||
      pthread_create(&r->thread, NULL, run, r) != 0) {
    free_runner(r);
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  }
  *out = r;
  return SHOAL_OK;
}

void shoal_runner_stop(shoal_runner *r) { __atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED); }

void shoal_runner_abandon(shoal_runner *r) {
  pthread_mutex_lock(&r->lock);
  r->abandoned = true;
  if (r->node != NULL) give_up(r->node);
  pthread_mutex_unlock(&r->lock);
}

void shoal_runner_wait(shoal_runner *r) { pthread_join(r->thread, NULL); }

void shoal_runner_destroy(shoal_runner *r) {
  double time;
  char *text;
  while (shoal_runner_take_note(r, &time, &text)) free(text);
  free(r->points);
  free(r->sums);
  shoal_text_release(&r->out_path);
  shoal_text_release(&r->state_folder);
  shoal_text_release(&r->log_folder);
  free_runner(r);
}

void shoal_runner_look(shoal_runner *r, shoal_runner_view *out) {
  pthread_mutex_lock(&r->lock);
  shoal_runner_view *view = &r->view;
  if (r->node != NULL) shoal_chief_node_audits(r->node, &view->units, &view->checks, &view->rejected);
  *out = r->view;
  shoal_progress_view *p = &out->progress;
  uint64_t left = p->steps > p->step ? p->steps - p->step : 0;
  p->eta_s = view->phase == SHOAL_RUNNER_ENDED
                 ? NAN
                 : shoal_eta_left(&r->eta, left, view->rounds, shoal_clock_seconds());
  pthread_mutex_unlock(&r->lock);
}

size_t shoal_runner_take_points(shoal_runner *r, shoal_point *out, size_t max) {
  pthread_mutex_lock(&r->lock);
  size_t count = r->points_count < max ? r->points_count : max;
  if (count > 0) {
    memcpy(out, r->points, count * sizeof *out);
    memmove(r->points, r->points + count, (r->points_count - count) * sizeof *out);
    r->points_count -= count;
  }
  pthread_mutex_unlock(&r->lock);
  return count;
}

bool shoal_runner_take_note(shoal_runner *r, double *time, char **text) {
  pthread_mutex_lock(&r->lock);
  note *n = r->notes;
  if (n != NULL) {
    r->notes = n->next;
    if (r->notes == NULL) r->notes_end = &r->notes;
    r->notes_count--;
  }
  pthread_mutex_unlock(&r->lock);
  if (n == NULL) return false;
  *time = n->time;
  *text = n->text;
  free(n);
  return true;
}

uint32_t shoal_runner_peers(shoal_runner *r, shoal_chief_peer *out, uint32_t max) {
  pthread_mutex_lock(&r->lock);
  uint32_t count = r->node != NULL ? shoal_chief_node_peers(r->node, out, max) : 0;
  pthread_mutex_unlock(&r->lock);
  return count;
}

uint32_t shoal_runner_sums(shoal_runner *r, shoal_worker_sum *out, uint32_t max) {
  pthread_mutex_lock(&r->lock);
  uint32_t count = r->sums_count < max ? r->sums_count : max;
  if (r->node != NULL)
    count = sum_up(r->node, out, max);
  else if (count > 0)
    memcpy(out, r->sums, count * sizeof *out);
  pthread_mutex_unlock(&r->lock);
  return count;
}
