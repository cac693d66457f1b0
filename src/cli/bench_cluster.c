/* bench_cluster.c: see bench_cluster.h.
 *
 * The chief runs in this process, parameter servers and workers are processes of their own, started
 * as the roles by hand are. Parameter servers tell how many bytes they have moved when they make a
 * version safe; so a run ends with a gathering, which makes the last version safe, and the bytes until
 * then are divided by the batches until then. */
#include "cli/bench_cluster.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "cli/cluster.h"
#include "cli/spawn.h"
#include "net/chief_node.h"
#include "nn/optimizer.h"
#include "proto/codec.h"

enum {
  ROUNDS_IN_EPOCH = 1000000, /* more than are run */
  ROUNDS_LEAST = 4,          /* measured, however long they take */
  PORT = 7700,               /* of every parameter server that has a machine of its own */
  PEERS_MAX = 1024,
  SHARDS_A_WORKER_MAX = 8,
  SHARD_ROWS_LEAST = 32, /* as training would cut a batch of images */
};
static const double LOOK_S = 0.1, PEERS_S = 0.6, PATIENCE_S = 120;

/* ---- signals ---- */

static volatile sig_atomic_t stop, stop_signal, timed_out;

static void on_signal(int number) {
  if (number == SIGALRM)
    timed_out = 1;
  else
    stop_signal = number;
  stop = 1;
}

int shoal_bench_signal(void) { return stop_signal; }

void shoal_bench_catch_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    /* A second Ctrl-C ends the process at once; its children die with it. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(numbers[i], &action, NULL);
  }
}

/* ---- a run ---- */

typedef struct session {
  const shoal_bench_cluster *config;
  shoal_mode mode;
  uint32_t batches_a_step; /* batches of a worker in one of the trainer's rounds */
  shoal_task task;
  shoal_job job;
  char folder[SHOAL_LINKS_TEXT_MAX];
  char chief[SHOAL_ADDRESS_MAX];
  shoal_chief_node *node;
  shoal_rounds rounds;
  shoal_spawn *spawn;
  shoal_chief_peer *peers;
} session;

/* Whole shards for every worker: a power of two each, so that units are nodes of the tree. Those who
 * wait need no more than one. */
static uint32_t choose_shards(const shoal_bench_cluster *c) {
  uint32_t each = 1;
  if (c->wait_s > 0) return c->workers;
  while (2 * each <= SHARDS_A_WORKER_MAX && 2 * each * c->workers <= SHOAL_SHARDS_MAX &&
         2 * each * SHARD_ROWS_LEAST <= c->batch)
    each *= 2;
  return each * c->workers;
}

static shoal_status open_task(session *s, shoal_error *err) {
  const shoal_bench_cluster *c = s->config;
  shoal_recipe *recipe = &c->model->recipe;
  bool together = s->mode.kind == SHOAL_SYNC || s->mode.kind == SHOAL_STALE;
  s->batches_a_step = together ? c->workers : 1;
  recipe->batch = c->batch * s->batches_a_step;
  recipe->shards = together ? choose_shards(c) : 0;
  recipe->epochs = 1;
  recipe->early_stop = 0;
  uint64_t rounds = ROUNDS_IN_EPOCH;
  if (s->mode.kind == SHOAL_LOCAL) rounds *= (uint64_t)s->mode.local * c->workers;
  char data[64];
  snprintf(data, sizeof data, "toy:noise:%llu", (unsigned long long)rounds * recipe->batch);
  shoal_text_addf(&s->job.data, "%s", data);
  const shoal_dataset_options options = {.data = data};
  shoal_status status = shoal_task_open(&s->task, c->model, &options, err);
  return status == SHOAL_OK ? shoal_task_ready(&s->task, 1, err) : status;
}

static shoal_status describe_job(session *s, shoal_error *err) {
  const shoal_bench_cluster *c = s->config;
  shoal_job *job = &s->job;
  job->mode = s->mode;
  snprintf(job->mode_text, sizeof job->mode_text, "%s", c->mode);
  if (!shoal_codec_named(c->wire, &job->format))
    return shoal_fail(err, SHOAL_INVALID, "unknown wire format '%s'; there are f32, bf16, int8 and topk",
                      c->wire);
  shoal_model_write(c->model, &job->model);
  shoal_task_fingerprint(&s->task, job->fitted_sha256);
  job->samples = s->task.sources[SHOAL_TRAIN].samples;
  job->owners_count = c->ps;
  job->owners = calloc(c->ps, sizeof *job->owners);
  if (job->model.failed || job->data.failed || job->owners == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < c->ps; i++) {
    if (c->links != NULL)
      snprintf(job->owners[i], SHOAL_ADDRESS_MAX, "%s:%d", shoal_links_address(c->links, i).text, PORT);
    else
      snprintf(job->owners[i], SHOAL_ADDRESS_MAX, "127.0.0.1:%u", shoal_cluster_free_port());
  }
  snprintf(s->chief, sizeof s->chief, "%s:%u",
           c->links != NULL ? shoal_links_here(c->links).text : "127.0.0.1", shoal_cluster_free_port());
  shoal_job_cut(job, shoal_trainer_shards(s->task.trainer), shoal_trainer_rounds(s->task.trainer),
                c->workers);
  return SHOAL_OK;
}

/* ---- processes ---- */

static void add_process(session *s, const char *role, uint32_t index, const char *ps_list, double wait_s) {
  const shoal_bench_cluster *c = s->config;
  char name[32], number[16], wait[32];
  snprintf(name, sizeof name, "%s %u", role, index);
  snprintf(number, sizeof number, "%u", index);
  snprintf(wait, sizeof wait, "%.9g", wait_s);
  const char *words[] = {"train",
                         "--job-name",
                         role,
                         "--task-index",
                         number,
                         "--ps-hosts",
                         ps_list,
                         "--chief-host",
                         s->chief,
                         "--state-dir",
                         s->folder,
                         "--threads",
                         "1",
                         "--quiet",
                         wait_s > 0 ? "--pretend" : NULL,
                         wait_s > 0 ? wait : NULL,
                         NULL};
  shoal_spawn_add(s->spawn, name, words);
  bool is_ps = strcmp(role, "ps") == 0;
  if (c->links != NULL)
    shoal_spawn_in_network(s->spawn, shoal_links_network(c->links, is_ps ? index : c->ps + index).text);
}

static void no_note(void *self, const char *text) { (void)self, (void)text; }

static shoal_status start_processes(session *s, shoal_error *err) {
  const shoal_bench_cluster *c = s->config;
  const shoal_notes notes = {.note = no_note};
  shoal_status status = shoal_spawn_create(&s->spawn, c->ps + c->workers, &notes, err);
  if (status != SHOAL_OK) return status;
  shoal_text list;
  shoal_text_init(&list);
  for (uint32_t i = 0; i < c->ps; i++) shoal_text_addf(&list, i == 0 ? "%s" : ",%s", s->job.owners[i]);
  if (list.failed) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  } else {
    for (uint32_t i = 0; i < c->ps; i++) add_process(s, "ps", i, list.bytes, 0);
    for (uint32_t i = 0; i < c->workers; i++)
      add_process(s, "worker", i, list.bytes, c->wait_s * s->batches_a_step);
    status = shoal_spawn_start(s->spawn, err);
  }
  shoal_text_release(&list);
  return status;
}

static shoal_status open_session(session *s, shoal_error *err) {
  const shoal_bench_cluster *c = s->config;
  SHOAL_ASSERT(c->workers > 0 && c->workers <= SHOAL_BENCH_WORKERS_MAX && c->ps > 0);
  const char *temporary = getenv("TMPDIR");
  if (temporary == NULL || strlen(temporary) > 40) temporary = "/tmp";
  snprintf(s->folder, sizeof s->folder, "%s/shoal-bench-XXXXXX", temporary);
  if (mkdtemp(s->folder) == NULL) {
    shoal_fail(err, SHOAL_IO, "%s: %s", s->folder, strerror(errno));
    s->folder[0] = '\0';
    return SHOAL_IO;
  }
  s->peers = calloc(PEERS_MAX, sizeof *s->peers);
  if (s->peers == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_mode_parse(c->mode, &s->mode, err);
  if (status == SHOAL_OK) status = open_task(s, err);
  if (status == SHOAL_OK) status = describe_job(s, err);
  if (status != SHOAL_OK) return status;
  const shoal_chief_node_config config = {.listen = s->chief,
                                          .task = &s->task,
                                          .job = &s->job,
                                          .folder = s->folder,
                                          .save_s = c->save_s,
                                          .workers_max = SHOAL_BENCH_WORKERS_MAX,
                                          .notes = {.note = no_note},
                                          .stop = &stop};
  status = shoal_chief_node_create(&s->node, &config, err);
  if (status != SHOAL_OK) return status;
  s->rounds = shoal_chief_node_rounds(s->node);
  return start_processes(s, err);
}

static void close_session(session *s) {
  if (s->node != NULL) shoal_chief_node_end(s->node, "the measurement is over", true);
  shoal_spawn_end(s->spawn);
  shoal_chief_node_destroy(s->node);
  shoal_task_close(&s->task);
  shoal_job_release(&s->job);
  free(s->peers);
  if (s->folder[0] != '\0') rmdir(s->folder); /* all have forgotten what they kept */
}

/* ---- measuring ---- */

static bool all_have_worked(session *s) {
  uint32_t count = shoal_chief_node_peers(s->node, s->peers, PEERS_MAX), busy = 0;
  for (uint32_t i = 0; i < count; i++)
    busy += s->peers[i].role == SHOAL_ROLE_WORKER && s->peers[i].parts_done > 0;
  return busy >= s->config->workers;
}

static double batches_done(const session *s) {
  return (double)shoal_trainer_state(s->task.trainer)->step * s->batches_a_step;
}

static shoal_status next_round(session *s, double *now, shoal_error *err) {
  shoal_result round;
  shoal_status status = s->rounds.next(s->rounds.self, &round, err);
  *now = shoal_clock_seconds();
  if (status == SHOAL_STOPPED && timed_out)
    return shoal_fail(err, SHOAL_IO, "the cluster of %u workers did not get going within %.0f s",
                      s->config->workers, PATIENCE_S);
  return status;
}

static shoal_status warm_up(session *s, double *now, shoal_error *err) {
  double ready_at = INFINITY, looked_at = 0;
  shoal_status status = SHOAL_OK;
  while (status == SHOAL_OK && !(*now - ready_at >= s->config->warm_up_s)) {
    status = next_round(s, now, err);
    if (!isinf(ready_at) || *now - looked_at < LOOK_S) continue;
    looked_at = *now;
    if (all_have_worked(s)) ready_at = *now;
  }
  return status;
}

/* In 0.6 s what the parameter servers last told has arrived and been copied. */
static shoal_status count_bytes(session *s, shoal_bench_speed *out, shoal_error *err) {
  shoal_status status = s->rounds.gather(s->rounds.self, err);
  if (status != SHOAL_OK) return status;
  double batches = batches_done(s), bytes = 0;
  shoal_clock_sleep(PEERS_S);
  uint32_t count = shoal_chief_node_peers(s->node, s->peers, PEERS_MAX);
  for (uint32_t i = 0; i < count; i++) bytes += (double)s->peers[i].bytes_in + (double)s->peers[i].bytes_out;
  /* The chief had given every parameter server what to start from. */
  const shoal_recipe *recipe = &s->config->model->recipe;
  uint32_t slots = s->mode.kind == SHOAL_LOCAL ? 1 : shoal_optimizer_slots(recipe->optimizer);
  bytes -= (double)(1 + slots) * (double)s->task.graph->weights_count * sizeof(float);
  out->bytes_a_batch = bytes / batches;
  out->bytes_per_s = out->bytes_a_batch * out->batches_per_s;
  return SHOAL_OK;
}

static shoal_status measure(session *s, shoal_bench_speed *out, shoal_error *err) {
  double now = shoal_clock_seconds();
  alarm((unsigned)PATIENCE_S);
  shoal_status status = warm_up(s, &now, err);
  double started = now, before = batches_done(s);
  alarm((unsigned)(PATIENCE_S + s->config->seconds));
  for (int rounds = 0; status == SHOAL_OK && (now - started < s->config->seconds || rounds < ROUNDS_LEAST);
       rounds++)
    status = next_round(s, &now, err);
  alarm(0);
  if (status != SHOAL_OK) return status;
  out->seconds = now - started;
  out->batches = batches_done(s) - before;
  out->batches_per_s = out->batches / out->seconds;
  return count_bytes(s, out, err);
}

shoal_status shoal_bench_cluster_run(const shoal_bench_cluster *config, shoal_bench_speed *out,
                                     shoal_error *err) {
  session s = {.config = config};
  *out = (shoal_bench_speed){0};
  if (stop_signal) return shoal_fail(err, SHOAL_STOPPED, "stopped");
  stop = timed_out = 0;
  shoal_bench_catch_signals();
  shoal_status status = open_session(&s, err);
  if (status == SHOAL_OK) status = measure(&s, out, err);
  close_session(&s);
  if (status == SHOAL_OK && stop_signal) status = shoal_fail(err, SHOAL_STOPPED, "stopped");
  return status;
}
