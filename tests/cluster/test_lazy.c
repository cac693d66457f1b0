/* Ten workers whose data comes in chunks, each with a store of its own: with `shuffle lanes` each fetches
 * little more than a tenth in an epoch, and the weights are those of one machine that has everything. */
#include "data/chunked.h"

#include <pthread.h>

#include "cluster/chief_node.h"
#include "cluster/owner_node.h"
#include "cluster/worker_node.h"
#include "data/idx.h"

enum { SIDE = 128, IMAGES = 6450, WORKERS = 10, PEERS_MAX = 32 };

/* Ten parts of 16 images; a chunk has 64 images. */
static const char NET[] = "input 1x128x128\npool average 4x4\ndense 10\nloss cross-entropy\n"
                          "optimizer sgd rate 0.05\nbatch 160\nshards 10\nepochs 1\nseed 7\n";

static void add_idx(chunked *c, const char *name, int dims_count, const uint32_t *dims) {
  size_t head = 4 + 4 * (size_t)dims_count, values = 1;
  for (int i = 0; i < dims_count; i++) values *= dims[i];
  uint8_t *bytes = malloc(head + values);
  uint32_t state = 1 + c->files_count;
  bytes[0] = bytes[1] = 0;
  bytes[2] = 8;
  bytes[3] = (uint8_t)dims_count;
  for (int i = 0; i < dims_count; i++)
    for (int k = 0; k < 4; k++) bytes[4 + 4 * i + k] = (uint8_t)(dims[i] >> (24 - 8 * k));
  for (size_t i = 0; i < values; i++) {
    state = state * 1664525 + 1013904223;
    bytes[head + i] = (uint8_t)(dims_count == 1 ? (state >> 24) % 10 : state >> 24);
  }
  shoal_cut cut = {.bytes = head + values};
  shoal_idx_cut(&cut, bytes, head);
  add_file(c, name, bytes, cut);
}

typedef struct world {
  chunked data;
  shoal_manifest *manifest;
  shoal_model *model;
  shoal_task task;
  shoal_job job;
  char (*owners)[SHOAL_ADDRESS_MAX];
  volatile sig_atomic_t stop;
} world;

static void open_world(world *w, const char *mode, const char *shuffle) {
  shoal_error err;
  memset(w, 0, sizeof *w);
  add_idx(&w->data, "train-images-idx3-ubyte", 3, (const uint32_t[]){IMAGES, SIDE, SIDE});
  add_idx(&w->data, "train-labels-idx1-ubyte", 1, (const uint32_t[]){IMAGES});
  w->manifest = manifest_of(&w->data, "mine", "idx");
  assert_int_equal(system("mkdir -p whole"), 0);
  for (uint32_t i = 0; i < w->data.files_count; i++) {
    char path[128];
    snprintf(path, sizeof path, "whole/%s", w->data.files[i].name);
    put(path, w->data.files[i].bytes, w->data.files[i].cut.bytes);
  }
  w->model = model_of(NET);
  assert_int_equal(shoal_model_set(w->model, "shuffle", "shuffle", shuffle, &err), SHOAL_OK);
  const shoal_dataset_options options = {.data = "whole"};
  w->owners = calloc(1, sizeof *w->owners);
  snprintf(w->owners[0], sizeof w->owners[0], "#:2");
  const shoal_job_plan plan = {
      .data = "whole", .mode = mode, .owners = w->owners, .owners_count = 1, .workers = WORKERS};
  if (shoal_task_open(&w->task, w->model, &options, &err) != SHOAL_OK ||
      shoal_task_ready(&w->task, 1, &err) != SHOAL_OK ||
      shoal_job_make(&w->job, &w->task, &plan, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

static void close_world(world *w) {
  shoal_job_release(&w->job);
  shoal_task_close(&w->task);
  shoal_model_destroy(w->model);
  forget_manifest(w->manifest);
  release_chunked(&w->data);
  free(w->owners);
}

static void no_note(void *self, const char *text) { (void)self, (void)text; }

/* ---- those who work ---- */

typedef struct worker {
  world *world;
  uint32_t number;
  pthread_t thread;
  chunked supply; /* of this worker's store: the world's data */
  shoal_chunk_progress progress;
  shoal_status status;
  shoal_error err;
} worker;

static void *work(void *self) {
  worker *me = self;
  world *w = me->world;
  char cache[64], name[32];
  snprintf(cache, sizeof cache, "cache%u", me->number);
  snprintf(name, sizeof name, "worker %u", me->number);
  const shoal_chunk_store_options options = {.cache = cache, .cache_bytes_max = (uint64_t)1 << 30};
  shoal_chunk_store *store;
  me->status = shoal_chunk_store_open(&store, w->manifest, &options, &me->err);
  if (me->status != SHOAL_OK) return NULL;
  me->supply = w->data;
  start_bringing(&me->supply, store);
  const shoal_worker_node_config config = {
      .chief = "#:1",
      .name = name,
      .way = {.wire = SHOAL_WIRE_RAW},
      .compute = {.data = shoal_chunk_store_data(store), .threads = 1, .store = store, .stop = &w->stop},
      .beside_chief = true,
      .notes = {.note = no_note},
      .stop = &w->stop};
  me->status = shoal_worker_node_run(&config, &me->err);
  stop_bringing(&me->supply);
  me->progress = shoal_chunk_store_progress(store);
  shoal_chunk_store_close(store);
  return NULL;
}

static void *own(void *self) {
  world *w = self;
  const shoal_owner_node_config config = {.listen = "#:2",
                                          .chief = "#:1",
                                          .name = "ps 0",
                                          .folder = "ps",
                                          .way = {.wire = SHOAL_WIRE_RAW},
                                          .notes = {.note = no_note},
                                          .stop = &w->stop};
  shoal_error err;
  return shoal_owner_node_run(&config, &err) == SHOAL_OK ? self : NULL;
}

static void wait_for_workers(shoal_chief_node *node) {
  for (int i = 0; i < 100 * PATIENCE_S; i++) {
    shoal_chief_peer peers[PEERS_MAX];
    if (shoal_chief_node_peers(node, peers, PEERS_MAX) >= WORKERS) return;
    usleep(10000);
  }
  fail_msg("the workers did not come");
}

/* Trains an epoch with all of them. */
static void train_together(world *w, worker *workers) {
  shoal_error err;
  const shoal_chief_node_config config = {.listen = "#:1",
                                          .task = &w->task,
                                          .job = &w->job,
                                          .folder = "chief",
                                          .save_s = 3600,
                                          .workers_max = WORKERS,
                                          .notes = {.note = no_note},
                                          .stop = &w->stop};
  assert_int_equal(system("mkdir -p chief ps"), 0);
  shoal_chief_node *node;
  if (shoal_chief_node_create(&node, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  for (uint32_t i = 0; i < WORKERS; i++) {
    workers[i] = (worker){.world = w, .number = i};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  /* Without a parameter server nothing begins: all are here by then. */
  wait_for_workers(node);
  pthread_t owner;
  assert_int_equal(pthread_create(&owner, NULL, own, w), 0);
  shoal_rounds rounds = shoal_chief_node_rounds(node);
  const shoal_train_state *state = shoal_trainer_state(w->task.trainer);
  while (state->epoch < 1) {
    shoal_result result;
    if (rounds.next(rounds.self, &result, &err) != SHOAL_OK) fail_msg("%s", err.text);
  }
  if (rounds.gather(rounds.self, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_chief_node_end(node, SHOAL_ENDS_OVER, "");
  shoal_chief_node_destroy(node);
  void *good;
  pthread_join(owner, &good);
  assert_non_null(good);
  for (uint32_t i = 0; i < WORKERS; i++) {
    pthread_join(workers[i].thread, NULL);
    if (workers[i].status != SHOAL_OK) fail_msg("worker %u: %s", i, workers[i].err.text);
  }
}

static void check_weights_of_one_machine(const world *w, const char *shuffle) {
  world alone;
  shoal_error err;
  open_world(&alone, "sync", shuffle);
  const shoal_train_state *state = shoal_trainer_state(alone.task.trainer);
  while (state->epoch < 1) {
    shoal_result result;
    if (shoal_trainer_round(alone.task.trainer, &alone.task.sources[SHOAL_TRAIN], &result, &err) != SHOAL_OK)
      fail_msg("%s", err.text);
  }
  const shoal_train_state *together = shoal_trainer_state(w->task.trainer);
  assert_memory_equal(state->weights, together->weights, state->weights_count * sizeof(float));
  close_world(&alone);
}

/* The mean share of the data that workers fetched. */
static double shares_of(const worker *workers, const char *what) {
  double sum = 0;
  print_message("%s: share of the data that each of %d workers fetched in an epoch:", what, WORKERS);
  for (uint32_t i = 0; i < WORKERS; i++) {
    double share = (double)workers[i].progress.bytes_put / (double)workers[i].progress.bytes_all;
    print_message(" %.3f", share);
    sum += share;
  }
  print_message(" (mean %.3f)\n", sum / WORKERS);
  return sum / WORKERS;
}

static void with_lanes_each_fetches_little_more_than_its_part(void **state) {
  (void)state;
  world w;
  worker workers[WORKERS];
  open_world(&w, "sync", "lanes");
  assert_int_equal(w.job.lanes, 10);
  train_together(&w, workers);
  check_weights_of_one_machine(&w, "lanes");
  assert_true(shares_of(workers, "shuffle lanes") < 0.16);
  close_world(&w);
}

static void with_local_steps_too(void **state) {
  (void)state;
  world w;
  worker workers[WORKERS];
  open_world(&w, "local:2", "lanes");
  assert_int_equal(w.job.lanes, 10);
  train_together(&w, workers);
  assert_true(shares_of(workers, "shuffle lanes, local:2") < 0.2);
  close_world(&w);
}

static void without_lanes_everything_comes_and_the_bits_are_right(void **state) {
  (void)state;
  world w;
  worker workers[WORKERS];
  open_world(&w, "sync", "all");
  assert_int_equal(w.job.lanes, 0);
  train_together(&w, workers);
  check_weights_of_one_machine(&w, "all");
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(with_lanes_each_fetches_little_more_than_its_part),
      IN_FOLDER(with_local_steps_too),
      IN_FOLDER(without_lanes_everything_comes_and_the_bits_are_right),
  };
  return RUN_TESTS(tests);
}
