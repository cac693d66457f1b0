/* A guarded training with liars, over the network of one process: chief, parameter server, the auditor and honest
 * workers are the real ones, and liars are worker cores whose results are changed before they are sent. The weights are
 * those of one machine to the last bit, every liar is banned, and nobody else is. */
#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "cluster/chief_node.h"
#include "cluster/compute.h"
#include "cluster/owner_node.h"
#include "cluster/shares.h"
#include "cluster/worker_node.h"
#include "nn/in_folder.h"
#include "proto/worker.h"

enum { ROWS = 480, EPOCHS = 6, HONEST = 3, LIARS = 3, PEERS_MAX = 16, NAMES_MAX = 16 };

#define MODEL                                                                          \
  "input 2\ndense 16 tanh\ndense 1\nloss mean-squared\noptimizer momentum rate 0.05\n" \
  "batch 24\nepochs 6\nshards 6\nseed 3\n"
static const char SHUFFLED[] = MODEL, IN_LANES[] = MODEL "shuffle lanes\n";

typedef struct world {
  shoal_model *model;
  shoal_task task;
  shoal_job job;
  volatile sig_atomic_t stop;
  uint64_t key;
  pthread_mutex_t lock;
  char banned[NAMES_MAX][SHOAL_NAME_MAX];
  uint32_t banned_count, audits;
  uint64_t rejected;
} world;

static void write_table(void) {
  FILE *file = fopen("table.csv", "w");
  assert_non_null(file);
  fprintf(file, "a,b,y\n");
  for (int i = 0; i < ROWS; i++) {
    double a = (i * 37 % 101) / 101.0, b = (i * 53 % 97) / 97.0;
    fprintf(file, "%.4f,%.4f,%.4f\n", a, b, 3 * a - 2 * b);
  }
  assert_int_equal(fclose(file), 0);
}

static void open_with_rule(world *w, const char *model, const char *mode, const char *wire,
                           const char *rule) {
  shoal_error err;
  memset(w, 0, sizeof *w);
  pthread_mutex_init(&w->lock, NULL);
  write_table();
  const shoal_dataset_options options = {.data = "table.csv"};
  char owners[1][SHOAL_ADDRESS_MAX] = {"#:2"};
  shoal_job_plan plan = {.data = "table.csv",
                         .mode = mode,
                         .wire = wire,
                         .owners = owners,
                         .owners_count = 1,
                         .workers = HONEST,
                         .guarded = true};
  assert_int_equal(shoal_rule_parse(rule, &plan.rule, NULL), SHOAL_OK);
  if (shoal_model_parse(&w->model, "model", model, strlen(model), &err) != SHOAL_OK ||
      shoal_task_open(&w->task, w->model, &options, &err) != SHOAL_OK ||
      shoal_task_ready(&w->task, 1, &err) != SHOAL_OK ||
      shoal_job_make(&w->job, &w->task, &plan, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

static void open_world(world *w, const char *model, const char *mode, const char *wire) {
  open_with_rule(w, model, mode, wire, "mean");
}

static void close_world(world *w) {
  shoal_job_release(&w->job);
  shoal_task_close(&w->task);
  shoal_model_destroy(w->model);
  pthread_mutex_destroy(&w->lock);
}

static void no_note(void *self, const char *text) { (void)self, (void)text; }

static void learn(void *self, const shoal_chief_event *event) {
  world *w = self;
  pthread_mutex_lock(&w->lock);
  w->audits += event->kind == SHOAL_CHIEF_AUDITED;
  if (event->kind == SHOAL_CHIEF_BANNED && w->banned_count < NAMES_MAX)
    memcpy(w->banned[w->banned_count++], event->name, SHOAL_NAME_MAX);
  pthread_mutex_unlock(&w->lock);
}

/* ---- the honest ---- */

typedef struct worker {
  world *world;
  char name[SHOAL_NAME_MAX];
  bool auditor;
  pthread_t thread;
  shoal_status status;
  shoal_error err;
  uint64_t lies;
} worker;

static void *work(void *self) {
  worker *me = self;
  const shoal_worker_node_config config = {.chief = "#:1",
                                           .name = me->name,
                                           .key = me->auditor ? me->world->key : 0,
                                           .compute = {.threads = 1},
                                           .beside_chief = true,
                                           .notes = {.note = no_note},
                                           .stop = &me->world->stop};
  me->status = shoal_worker_node_run(&config, &me->err);
  return NULL;
}

static void *own(void *self) {
  world *w = self;
  const shoal_owner_node_config config = {.listen = "#:2",
                                          .chief = "#:1",
                                          .name = "ps 0",
                                          .folder = "ps",
                                          .notes = {.note = no_note},
                                          .stop = &w->stop};
  shoal_error err;
  return shoal_owner_node_run(&config, &err) == SHOAL_OK ? self : NULL;
}

/* ---- liars: a worker core on a net of its own ---- */

typedef struct liar {
  worker *me;
  shoal_net *net;
  uint64_t chief, owner;
  shoal_job job;
  shoal_compute compute;
  shoal_shares shares;
  shoal_worker *core;
  uint64_t units;
  bool over;
} liar;

static void post(liar *l) {
  shoal_letter letter;
  while (l->core != NULL && shoal_outbox_take(shoal_worker_outbox(l->core), &letter))
    shoal_net_send(l->net, letter.peer, letter.message);
}

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  liar *l = self;
  if (peer == l->chief) shoal_net_send(l->net, peer, shoal_worker_hello(l->me->name, 1, 0));
  if (peer == l->owner) {
    const char *name = l->me->name;
    shoal_net_send(l->net, peer,
                   (shoal_message){.kind = SHOAL_MSG_HELLO,
                                   .count = SHOAL_ROLE_WORKER,
                                   .round = shoal_job_digest(&l->job),
                                   .payload = shoal_blob_of(name, strlen(name))});
    shoal_worker_owner(l->core, 0, peer);
  }
  post(l);
}

static void learn_job(liar *l, const shoal_message *m) {
  const shoal_compute_options options = {.threads = 1};
  shoal_error err;
  if (shoal_job_parse(&l->job, (const char *)shoal_blob_bytes(m->payload), shoal_blob_length(m->payload),
                      &err) != SHOAL_OK ||
      shoal_compute_open(&l->compute, &l->job, &options, &err) != SHOAL_OK ||
      shoal_shares_init(&l->shares, l->compute.task.graph, 1, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  const shoal_worker_config config = {.name = l->me->name,
                                      .units = 1,
                                      .threads = 1,
                                      .slices = l->shares.slices,
                                      .owners = 1,
                                      .weights_count = l->compute.task.graph->weights_count,
                                      .mode = l->job.mode,
                                      .format = l->job.format,
                                      .guarded = true};
  assert_int_equal(shoal_worker_create(&l->core, &config, NULL), SHOAL_OK);
  shoal_worker_chief(l->core, l->chief, true);
  const shoal_way way = {.wire = SHOAL_WIRE_RAW};
  l->owner = shoal_net_dial(l->net, "#:2", &way);
}

static void received(void *self, uint64_t peer, shoal_message *m) {
  liar *l = self;
  l->over |= m->kind == SHOAL_MSG_END || m->kind == SHOAL_MSG_REFUSE;
  if (m->kind == SHOAL_MSG_WELCOME && l->core == NULL) learn_job(l, m);
  if (l->core != NULL && !l->over)
    shoal_worker_receive(l->core, peer, m);
  else
    shoal_message_release(m);
  post(l);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  (void)reason;
  liar *l = self;
  l->over |= peer == l->chief;
}

/* The first liar lies at once, the second after it has been honest for a while, the third sends what is not finite. */
static void tell_lie(liar *l, shoal_work_result *result) {
  float *gradient = (float *)(void *)shoal_blob_bytes(result->gradient);
  const char kind = l->me->name[0];
  if (kind == 't' && l->units <= 3 * SHOAL_TRUST_PROVES) return;
  l->me->lies++;
  gradient[0] = kind == 'n' ? (float)INFINITY : gradient[0] - 1;
}

static void compute(liar *l) {
  shoal_work_unit unit;
  const float *weights;
  while (l->core != NULL && !l->over && shoal_worker_next(l->core, &unit, &weights)) {
    shoal_work_result result;
    shoal_compute_unit(&l->compute, &unit, weights, &result);
    l->units++;
    tell_lie(l, &result);
    shoal_worker_done(l->core, unit.lease, &result);
    shoal_blob_release(unit.carry);
    post(l);
  }
}

static void *deceive(void *self) {
  liar l = {.me = self};
  const shoal_net_config config = {.calls = {&l, opened, received, closed, NULL},
                                   .payload_max = 1 << 24,
                                   .connections_max = 8,
                                   .hello_s = 60,
                                   .stall_s = 60};
  const shoal_way way = {.wire = SHOAL_WIRE_RAW};
  assert_int_equal(shoal_net_create(&l.net, &config, NULL), SHOAL_OK);
  l.chief = shoal_net_dial(l.net, "#:1", &way);
  while (!l.over && !__atomic_load_n(&l.me->world->stop, __ATOMIC_RELAXED)) {
    shoal_net_run(l.net, 0.02);
    compute(&l);
  }
  if (l.core != NULL) shoal_compute_close(&l.compute);
  shoal_worker_destroy(l.core);
  shoal_shares_release(&l.shares);
  shoal_job_release(&l.job);
  shoal_net_destroy(l.net);
  return NULL;
}

/* ---- the training ---- */

static const char *const LIAR_NAMES[LIARS] = {"at once", "trusted", "nan"};

static void wait_for(shoal_chief_node *node, uint32_t count) {
  shoal_chief_peer peers[PEERS_MAX];
  for (int i = 0; i < 100 * PATIENCE_S; i++) {
    if (shoal_chief_node_peers(node, peers, PEERS_MAX) >= count) return;
    shoal_clock_sleep(0.01);
  }
  fail_msg("not all have come");
}

/* `liars` of them; returns how many contributions were computed again, as a share. */
static double train_together(world *w, uint32_t liars) {
  worker workers[1 + HONEST + LIARS];
  shoal_error err;
  const shoal_chief_node_config config = {.listen = "#:1",
                                          .task = &w->task,
                                          .job = &w->job,
                                          .folder = "chief",
                                          .save_s = 0.05,
                                          .workers_max = HONEST + LIARS,
                                          .notes = {.note = no_note},
                                          .self = w,
                                          .learnt = learn,
                                          .stop = &w->stop};
  assert_int_equal(system("mkdir -p chief ps"), 0);
  shoal_chief_node *node;
  if (shoal_chief_node_create(&node, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  w->key = shoal_chief_node_key(node);
  assert_true(w->key != 0);
  for (uint32_t i = 0; i < 1 + HONEST + liars; i++) {
    worker *me = &workers[i];
    *me = (worker){.world = w, .auditor = i == 0};
    snprintf(me->name, sizeof me->name, "honest %u", i);
    if (i > HONEST) snprintf(me->name, sizeof me->name, "%s", LIAR_NAMES[i - HONEST - 1]);
    assert_int_equal(pthread_create(&me->thread, NULL, i > HONEST ? deceive : work, me), 0);
  }
  wait_for(node, 1 + HONEST + liars); /* without a parameter server nothing begins */
  pthread_t owner;
  assert_int_equal(pthread_create(&owner, NULL, own, w), 0);
  shoal_rounds rounds = shoal_chief_node_rounds(node);
  const shoal_train_state *state = shoal_trainer_state(w->task.trainer);
  while (state->epoch < EPOCHS) {
    shoal_result result;
    if (rounds.next(rounds.self, &result, &err) != SHOAL_OK) fail_msg("%s", err.text);
    if (state->round == 0 && rounds.gather(rounds.self, &err) != SHOAL_OK) fail_msg("%s", err.text);
  }
  uint64_t units, checks;
  shoal_chief_node_audits(node, &units, &checks, &w->rejected);
  shoal_chief_node_end(node, SHOAL_ENDS_OVER, "");
  __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
  shoal_chief_node_destroy(node);
  void *good;
  pthread_join(owner, &good);
  assert_non_null(good);
  for (uint32_t i = 0; i < 1 + HONEST + liars; i++) {
    pthread_join(workers[i].thread, NULL);
    if (workers[i].status != SHOAL_OK) fail_msg("%s: %s", workers[i].name, workers[i].err.text);
    bool lied = workers[i].lies > 0, banned = false;
    for (uint32_t k = 0; k < w->banned_count; k++) banned |= strcmp(w->banned[k], workers[i].name) == 0;
    if (banned != lied)
      fail_msg("%s told %llu lies and is %sbanned", workers[i].name, (unsigned long long)workers[i].lies,
               banned ? "" : "not ");
  }
  return (double)checks / (double)units;
}

static void check_bits_of_one_machine(const world *w, const char *model) {
  world alone;
  shoal_error err;
  open_world(&alone, model, "sync", "f32");
  const shoal_train_state *state = shoal_trainer_state(alone.task.trainer);
  while (state->epoch < EPOCHS) {
    shoal_result result;
    if (shoal_trainer_round(alone.task.trainer, &alone.task.sources[SHOAL_TRAIN], &result, &err) != SHOAL_OK)
      fail_msg("%s", err.text);
  }
  char expected[SHOAL_SHA256_HEX], found[SHOAL_SHA256_HEX];
  shoal_graph_weights_sha256(alone.task.graph, state->weights, expected);
  shoal_graph_weights_sha256(w->task.graph, shoal_trainer_state(w->task.trainer)->weights, found);
  assert_string_equal(found, expected);
  close_world(&alone);
}

static void without_liars_nobody_is_banned(void **state) {
  (void)state;
  world w;
  open_world(&w, SHUFFLED, "sync", "f32");
  double share = train_together(&w, 0);
  assert_int_equal(w.banned_count, 0);
  assert_true(w.audits >= HONEST * SHOAL_TRUST_PROVES && share > 0);
  check_bits_of_one_machine(&w, SHUFFLED);
  close_world(&w);
}

static void with_liars_the_bits_are_those_of_one_machine(void **state) {
  (void)state;
  world w;
  open_world(&w, SHUFFLED, "sync", "f32");
  train_together(&w, LIARS);
  check_bits_of_one_machine(&w, SHUFFLED);
  close_world(&w);
}

/* In fewer bits, and with local steps, results are compared as well. */
static void liars_are_banned_in_other_formats_and_modes(void **state) {
  (void)state;
  world w;
  open_world(&w, SHUFFLED, "sync", "int8");
  train_together(&w, 1);
  close_world(&w);
  open_world(&w, SHUFFLED, "local:2", "bf16");
  train_together(&w, 1);
  close_world(&w);
}

/* With lanes workers have only their own units' data; the auditor has all of it. */
static void with_lanes_liars_are_banned_too(void **state) {
  (void)state;
  world w;
  open_world(&w, IN_LANES, "sync", "f32");
  assert_true(w.job.lanes > 0);
  train_together(&w, LIARS);
  check_bits_of_one_machine(&w, IN_LANES);
  close_world(&w);
}

/* What a rule leaves out is told by the parameter server: of six it takes the best three. */
static void what_a_rule_leaves_out_is_rejected(void **state) {
  (void)state;
  world w;
  open_with_rule(&w, SHUFFLED, "sync", "f32", "multi-krum:1");
  train_together(&w, 0);
  uint64_t all = 3 * EPOCHS * w.job.rounds;
  assert_true(w.rejected >= all - 3 && w.rejected <= all); /* the last may not have been told yet */
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(without_liars_nobody_is_banned),
      IN_FOLDER(with_liars_the_bits_are_those_of_one_machine),
      IN_FOLDER(liars_are_banned_in_other_formats_and_modes),
      IN_FOLDER(with_lanes_liars_are_banned_too),
      IN_FOLDER(what_a_rule_leaves_out_is_rejected),
  };
  return RUN_TESTS(tests);
}
