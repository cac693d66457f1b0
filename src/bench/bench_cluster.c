/* bench_cluster.c: see bench_cluster.h.
 *
 * The cluster is the one of `shoal train --workers`. Parameter servers tell how many bytes they have moved
 * when they make a version safe; so a run ends with a gathering, which makes the last version safe, and the
 * bytes until then are divided by the batches until then. */
#include "bench/bench_cluster.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "cli/cluster.h"
#include "cli/stop.h"
#include "nn/optimizer.h"

enum {
  ROUNDS_IN_EPOCH = 1000000, /* more than are run */
  ROUNDS_LEAST = 4,          /* measured, however long they take */
  PEERS_MAX = 1024,
  DATA_MAX = 64,
  SHARDS_A_WORKER_MAX = 8,
  SHARD_ROWS_LEAST = 32, /* as training would cut a batch of images */
};
static const double LOOK_S = 0.1, PEERS_S = 0.6, PATIENCE_S = 120;

/* ---- a run ---- */

typedef struct session {
  const shoal_bench_cluster *config;
  shoal_mode mode;
  uint32_t batches_a_step; /* batches of a worker in one of the trainer's rounds */
  shoal_task task;
  char folder[64];
  char data[DATA_MAX]; /* the name of the data, which workers read while the cluster is open */
  shoal_cluster *cluster;
  shoal_rounds rounds;
  shoal_chief_peer *peers;
} session;

/* Whole shards for every worker: a power of two each, so that units are nodes of the tree. Those who
 * wait need no more than one. */
static uint32_t choose_shards(const shoal_bench_cluster *c) {
  uint32_t each = 1;
  if (shoal_model_takes_whole_batch(c->model)) return 1;
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
  snprintf(s->data, sizeof s->data, "toy:noise:%llu", (unsigned long long)rounds * recipe->batch);
  const shoal_dataset_options options = {.data = s->data};
  shoal_status status = shoal_task_open(&s->task, c->model, &options, err);
  return status == SHOAL_OK ? shoal_task_ready(&s->task, 1, err) : status;
}

static void no_note(void *self, const char *text) { (void)self, (void)text; }

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
  if (status != SHOAL_OK) return status;
  const shoal_cluster_options options = {.workers = c->workers,
                                         .ps = c->ps,
                                         .mode = c->mode,
                                         .wire = c->wire,
                                         .transport = c->transport,
                                         .state_dir = s->folder,
                                         .pretend_s = c->wait_s * s->batches_a_step};
  const shoal_cluster_config config = {.options = &options,
                                       .data = {.data = s->data, .threads = 1},
                                       .task = &s->task,
                                       .notes = {.note = no_note},
                                       .stop = shoal_stop_flag(),
                                       .save_s = c->save_s,
                                       .links = c->links};
  return shoal_cluster_open(&s->cluster, &config, &s->rounds, err);
}

static void close_session(session *s) {
  shoal_cluster_close(s->cluster, SHOAL_ENDS_OVER, "the measurement is over");
  shoal_task_close(&s->task);
  free(s->peers);
  if (s->folder[0] != '\0') rmdir(s->folder); /* all have forgotten what they kept */
}

/* ---- measuring ---- */

static bool all_have_worked(session *s) {
  uint32_t count = shoal_cluster_peers(s->cluster, s->peers, PEERS_MAX), busy = 0;
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
  if (status == SHOAL_STOPPED && shoal_stop_was_late())
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
  uint32_t count = shoal_cluster_peers(s->cluster, s->peers, PEERS_MAX);
  for (uint32_t i = 0; i < count; i++) bytes += (double)s->peers[i].bytes_in + (double)s->peers[i].bytes_out;
  /* The chief had given every parameter server what to start from. */
  const shoal_recipe *recipe = &s->config->model->recipe;
  uint32_t slots = s->mode.kind == SHOAL_LOCAL ? 1 : shoal_optimizer_rows[recipe->optimizer].slots;
  bytes -= (double)(1 + slots) * (double)s->task.graph->weights_count * sizeof(float);
  out->bytes_a_batch = bytes / batches;
  out->bytes_per_s = out->bytes_a_batch * out->batches_per_s;
  return SHOAL_OK;
}

static shoal_status measure(session *s, shoal_bench_speed *out, shoal_error *err) {
  double now = shoal_clock_seconds();
  shoal_stop_after((unsigned)PATIENCE_S);
  shoal_status status = warm_up(s, &now, err);
  double started = now, before = batches_done(s);
  shoal_stop_after((unsigned)(PATIENCE_S + s->config->seconds));
  for (int rounds = 0; status == SHOAL_OK && (now - started < s->config->seconds || rounds < ROUNDS_LEAST);
       rounds++)
    status = next_round(s, &now, err);
  shoal_stop_after(0);
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
  if (shoal_stop_signal() != 0) return shoal_fail(err, SHOAL_STOPPED, "stopped");
  shoal_status status = open_session(&s, err);
  if (status == SHOAL_OK) status = measure(&s, out, err);
  close_session(&s);
  if (status == SHOAL_OK && shoal_stop_signal() != 0) status = shoal_fail(err, SHOAL_STOPPED, "stopped");
  return status;
}
