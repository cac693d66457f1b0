/* worker_node.c: see worker_node.h.
 *
 * Two threads: this one has the network and the core; the other has the trainer and one unit at a
 * time. They meet at `state`, under the lock: the loop gives a unit when it is IDLE, the other
 * makes it DONE and wakes the loop. Units that take less than SHORT_S are computed between two turns of
 * the loop, by this thread: what one thread computes and another sends crosses from one processor's
 * cache to the other's, which costs more than sending it.
 *
 * A unit's DONE for the chief waits until its contributions have left for the parameter servers:
 * what the chief counts as done should not die with this process. */
#include "cluster/worker_node.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "cluster/node.h"
#include "cluster/shares.h"
#include "proto/chief.h"

enum { CONNECTIONS_MAX = SHOAL_OWNERS_MAX + 8 };
static const double SHORT_S = 0.1;
static const double PATIENCE_S = 5; /* a parameter server may be started a little later */

typedef enum computing { IDLE, GIVEN, DONE, QUIT } computing;

typedef struct node {
  const shoal_worker_node_config *config;
  shoal_net *net;
  shoal_line chief;
  uint64_t chief_instance; /* what its WELCOME said */
  /* What the chief told, and what follows from it. */
  shoal_text job_text;
  shoal_job job;
  shoal_compute compute;
  shoal_shares shares;
  shoal_line *owners;
  shoal_worker *core;
  shoal_outbox held; /* letters to the chief, until those to the owners are out */
  bool ended, refused, leaves;
  shoal_status failed;
  shoal_error error;
  /* The other thread. */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  computing state;
  shoal_work_unit unit;
  const float *weights;
  shoal_work_result result;
  shoal_status unit_status; /* of waiting for the unit's data */
  shoal_error unit_error;
  volatile sig_atomic_t abandoned; /* the unit is not wanted any more: nobody waits for its data */
  uint64_t units;                  /* that it has computed, where that matters */
  double unit_s;                   /* how long the last one took, once its data was here */
} node;

/* ---- the other thread ---- */

static shoal_blob *zeros(size_t bytes) {
  shoal_blob *blob = shoal_blob_create(bytes);
  SHOAL_ASSERT(blob != NULL);
  memset(shoal_blob_bytes(blob), 0, bytes);
  return blob;
}

/* What a pretender sends is right in size, not in value. */
static void pretend(node *n) {
  size_t carry = n->unit.count * shoal_trainer_carry_floats(n->compute.task.trainer) * sizeof(float);
  n->result = (shoal_work_result){.gradient = zeros(n->compute.task.graph->weights_count * sizeof(float)),
                                  .sums = {.loss = 1, .weight = 1, .counted = 1}};
  if (carry > 0 && n->job.mode.kind != SHOAL_LOCAL) n->result.carry = zeros(carry);
  shoal_clock_sleep(n->config->pretend_s * shoal_compute_batches(&n->compute, &n->unit));
}

static void compute_unit(node *n) {
  n->unit_status = shoal_compute_wait(&n->compute, &n->unit, &n->abandoned, &n->unit_error);
  if (n->unit_status != SHOAL_OK) return;
  shoal_compute_expect(&n->compute, &n->unit);
  double started = shoal_clock_seconds();
  if (n->config->pretend_s > 0)
    pretend(n);
  else
    shoal_compute_unit(&n->compute, &n->unit, n->weights, &n->result);
  n->unit_s = shoal_clock_seconds() - started;
  if (n->config->faulty_from > 0 && ++n->units >= n->config->faulty_from)
    shoal_blob_bytes(n->result.gradient)[2] ^= 0x40; /* the highest bit of the first number's fraction */
}

static void *computer(void *self) {
  node *n = self;
  pthread_mutex_lock(&n->lock);
  for (;;) {
    while (n->state != GIVEN && n->state != QUIT) pthread_cond_wait(&n->changed, &n->lock);
    if (n->state == QUIT) break;
    pthread_mutex_unlock(&n->lock);
    compute_unit(n);
    pthread_mutex_lock(&n->lock);
    n->state = DONE;
    pthread_cond_broadcast(&n->changed);
    shoal_net_wake(n->net);
  }
  pthread_mutex_unlock(&n->lock);
  return NULL;
}

static void count_unit(const node *n) {
  shoal_worker_count *count = n->config->count;
  if (count == NULL) return;
  uint64_t samples = shoal_compute_samples(&n->compute, &n->unit);
  __atomic_fetch_add(&count->units, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&count->samples, samples, __ATOMIC_RELAXED);
}

static void finish_unit(node *n) {
  if (n->unit_status != SHOAL_OK) {
    shoal_blob_release(n->unit.carry);
    n->failed = n->unit_status;
    n->error = n->unit_error;
    return;
  }
  count_unit(n);
  shoal_worker_done(n->core, n->unit.lease, &n->result);
  shoal_blob_release(n->unit.carry);
}

/* Hands a finished unit to the core, and computes the next one or gives it to the other thread. */
static void turn(node *n) {
  if (n->core == NULL) return;
  pthread_mutex_lock(&n->lock);
  bool done = n->state == DONE;
  if (done) n->state = IDLE;
  bool idle = n->state == IDLE;
  pthread_mutex_unlock(&n->lock);
  if (done) finish_unit(n);
  if (!idle || !shoal_worker_next(n->core, &n->unit, &n->weights)) return;
  if (!shoal_compute_has(&n->compute, &n->unit)) {
    shoal_blob_release(n->unit.carry);
    n->failed = shoal_fail(&n->error, SHOAL_INVALID, "the chief asks for a unit that the job has not");
    return;
  }
  if (shoal_compute_wants(&n->compute, &n->unit) && n->unit_s < SHORT_S) {
    compute_unit(n);
    finish_unit(n);
    return;
  }
  pthread_mutex_lock(&n->lock);
  n->state = GIVEN;
  pthread_cond_broadcast(&n->changed);
  pthread_mutex_unlock(&n->lock);
}

static void wait_for_computer(node *n) {
  __atomic_store_n(&n->abandoned, 1, __ATOMIC_RELAXED);
  pthread_mutex_lock(&n->lock);
  while (n->state == GIVEN) pthread_cond_wait(&n->changed, &n->lock);
  bool done = n->state == DONE;
  n->state = IDLE;
  pthread_mutex_unlock(&n->lock);
  __atomic_store_n(&n->abandoned, 0, __ATOMIC_RELAXED);
  if (!done) return;
  shoal_blob_release(n->unit.carry);
  if (n->unit_status != SHOAL_OK) return;
  shoal_blob_release(n->result.gradient);
  shoal_blob_release(n->result.carry);
}

/* ---- the job ---- */

static void forget_job(node *n) {
  wait_for_computer(n);
  shoal_worker_destroy(n->core);
  shoal_compute_close(&n->compute);
  for (uint32_t s = 0; n->owners != NULL && s < n->job.owners_count; s++)
    if (n->owners[s].peer != 0) shoal_net_close(n->net, n->owners[s].peer, "the job is another");
  free(n->owners);
  shoal_shares_release(&n->shares);
  shoal_job_release(&n->job);
  shoal_text_release(&n->job_text);
  n->core = NULL;
  n->owners = NULL;
}

/* "/jobs/7/ps/0" is at the chief's host and port. A chief with a path is a server's, and a server does not
 * send its workers elsewhere. */
static shoal_status complete_address(const node *n, char address[SHOAL_ADDRESS_MAX], shoal_error *err) {
  if (address[0] != '/')
    return strchr(n->config->chief, '/') == NULL
               ? SHOAL_OK
               : shoal_fail(err, SHOAL_INVALID, "the server names a parameter server that is not its own");
  char whole[SHOAL_ADDRESS_MAX];
  int length =
      snprintf(whole, sizeof whole, "%.*s%s", (int)strcspn(n->config->chief, "/"), n->config->chief, address);
  if (length >= SHOAL_ADDRESS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "the address of a parameter server is too long");
  memcpy(address, whole, sizeof whole);
  return SHOAL_OK;
}

static shoal_status find_owners(node *n, shoal_error *err) {
  shoal_status status = shoal_shares_init(&n->shares, n->compute.task.graph, n->job.owners_count, err);
  if (status != SHOAL_OK) return status;
  n->owners = calloc(n->job.owners_count, sizeof *n->owners);
  if (n->owners == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the job");
  for (uint32_t s = 0; s < n->job.owners_count; s++) {
    if (s == 0 && n->config->ps != NULL) {
      snprintf(n->job.owners[s], sizeof n->job.owners[s], "%s", n->config->ps);
      status = SHOAL_OK;
    } else {
      status = complete_address(n, n->job.owners[s], err);
    }
    if (status != SHOAL_OK) return status;
    shoal_line_init(&n->owners[s], n->job.owners[s], shoal_clock_seconds());
  }
  return SHOAL_OK;
}

static shoal_status learn_job(node *n, const char *text, size_t length, shoal_error *err) {
  forget_job(n);
  shoal_status status = shoal_job_parse(&n->job, text, length, err);
  if (status != SHOAL_OK) return status;
  shoal_text_add(&n->job_text, text, length);
  status = shoal_compute_open(&n->compute, &n->job, &n->config->compute, err);
  if (status == SHOAL_OK) status = find_owners(n, err);
  if (status != SHOAL_OK) return status;
  shoal_worker_config config = {.name = n->config->name,
                                .units = 1, /* two would hide transfers, but double the lag */
                                .threads = n->config->compute.threads,
                                .slices = n->shares.slices,
                                .owners = n->job.owners_count,
                                .weights_count = n->compute.task.graph->weights_count,
                                .mode = n->job.mode,
                                .format = n->job.format,
                                .guarded = n->job.guarded,
                                .key = n->config->key};
  return shoal_worker_create(&n->core, &config, err);
}

/* ---- the network ---- */

static bool contributions_are_out(const node *n) {
  for (uint32_t s = 0; s < n->job.owners_count; s++)
    if (shoal_net_queued(n->net, n->owners[s].peer) > 0) return false;
  return true;
}

static void post(node *n) {
  if (n->core == NULL) return;
  double now = shoal_clock_seconds();
  shoal_letter letter;
  while (shoal_outbox_take(shoal_worker_outbox(n->core), &letter)) {
    if (letter.peer == n->chief.peer) {
      shoal_outbox_put(&n->held, letter.peer, letter.message);
      continue;
    }
    for (uint32_t s = 0; s < n->job.owners_count; s++)
      if (n->owners[s].peer == letter.peer) n->owners[s].beat.said = now;
    shoal_net_send(n->net, letter.peer, letter.message);
  }
  if (n->held.count == 0 || !contributions_are_out(n)) return;
  while (shoal_outbox_take(&n->held, &letter)) shoal_net_send(n->net, letter.peer, letter.message);
  n->chief.beat.said = now;
}

/* In a process with the chief, that one tells who comes and goes; with a server's, who runs the worker. */
static bool is_alone(const node *n) {
  return !n->config->beside_chief && n->config->chief[0] != '#' && strchr(n->config->chief, '/') == NULL;
}

/* Says which parameter server it wants, and of which training, so that a wrong one can say so. */
static void greet_owner(node *n, uint32_t slice, uint64_t peer) {
  const char *name = n->config->name;
  shoal_net_send(n->net, peer,
                 (shoal_message){.kind = SHOAL_MSG_HELLO,
                                 .count = SHOAL_ROLE_WORKER,
                                 .slice = slice,
                                 .round = shoal_job_digest(&n->job),
                                 .lease = n->chief_instance,
                                 .payload = shoal_blob_of(name, strlen(name))});
  shoal_worker_owner(n->core, slice, peer);
}

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  node *n = self;
  double now = shoal_clock_seconds();
  if (shoal_line_opened(&n->chief, peer, now)) {
    if (n->core != NULL)
      shoal_worker_chief(n->core, peer, false);
    else
      shoal_net_send(n->net, peer,
                     shoal_worker_hello(n->config->name, n->config->compute.threads, n->config->key));
  }
  for (uint32_t s = 0; n->owners != NULL && s < n->job.owners_count; s++)
    if (shoal_line_opened(&n->owners[s], peer, now)) greet_owner(n, s, peer);
  post(n);
}

static void hear_end(node *n, const shoal_message *m) {
  const shoal_notes nobody = {0};
  n->ended = true;
  n->failed = shoal_node_hear_end(m, is_alone(n) ? &n->config->notes : &nobody, &n->error);
}

static void hear_chief(node *n, uint64_t peer, const shoal_message *m) {
  if (m->kind == SHOAL_MSG_REFUSE) {
    char reason[SHOAL_NODE_TEXT_MAX];
    shoal_node_text(m, reason);
    n->refused = true;
    n->failed = shoal_fail(&n->error, SHOAL_INVALID, "the chief at %s refuses: %s", n->config->chief, reason);
  }
  if (m->kind == SHOAL_MSG_END) hear_end(n, m);
  if (m->kind != SHOAL_MSG_WELCOME) return;
  n->chief_instance = m->lease;
  if (shoal_line_waited(&n->chief)) shoal_note(&n->config->notes, "the chief is here");
  if (shoal_node_same_job(&n->job_text, m) && n->core != NULL) return;
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  n->failed = learn_job(n, text, length, &n->error);
  if (n->failed != SHOAL_OK) {
    shoal_node_plain_error(&n->error);
    return;
  }
  shoal_worker_chief(n->core, peer, true);
  if (is_alone(n)) shoal_note(&n->config->notes, "joined the training of the chief at %s", n->config->chief);
}

/* A parameter server that belongs elsewhere says so; it may be another one a little later. */
static void hear_owner(node *n, uint32_t slice, const shoal_message *m) {
  shoal_line *line = &n->owners[slice];
  char who[SHOAL_ADDRESS_MAX + 32], said[SHOAL_NODE_TEXT_MAX], reason[SHOAL_NODE_TEXT_MAX + 16];
  if (m->kind != SHOAL_MSG_REFUSE) {
    if (!line->refused && shoal_line_waited(line)) shoal_note(&n->config->notes, "ps %u is here", slice);
    return;
  }
  shoal_node_text(m, said);
  snprintf(reason, sizeof reason, "it refuses: %s", said);
  snprintf(who, sizeof who, "ps %u at %s", slice, line->address);
  shoal_line_say_waiting(line, who, reason, false, &n->config->notes, shoal_clock_seconds());
  shoal_line_refused(line, n->net);
}

static void received(void *self, uint64_t peer, shoal_message *m) {
  node *n = self;
  double now = shoal_clock_seconds();
  if (shoal_line_heard(&n->chief, peer, now)) hear_chief(n, peer, m);
  for (uint32_t s = 0; n->owners != NULL && s < n->job.owners_count; s++)
    if (shoal_line_heard(&n->owners[s], peer, now)) hear_owner(n, s, m);
  if (n->core != NULL && n->failed == SHOAL_OK)
    shoal_worker_receive(n->core, peer, m);
  else
    shoal_message_release(m);
  post(n);
}

static void say_owner_closed(node *n, uint32_t slice, const char *reason, double now) {
  shoal_line *line = &n->owners[slice];
  char who[32];
  bool lost = line->open && line->heard;
  snprintf(who, sizeof who, "ps %u", slice);
  bool hopeless = shoal_node_is_hopeless(n->net, line->peer, line, who, reason, &n->error);
  if (hopeless) n->failed = n->error.status;
  bool may_pass = lost ? n->config->beside_chief : now - line->down_since < PATIENCE_S && !line->open;
  if (hopeless || may_pass) return;
  shoal_line_say_closed(line, who, reason, false, &n->config->notes, now);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  node *n = self;
  double now = shoal_clock_seconds();
  bool tells = !n->ended && !n->leaves && n->failed == SHOAL_OK;
  if (tells && shoal_node_is_hopeless(n->net, peer, &n->chief, "the chief", reason, &n->error))
    n->failed = n->error.status;
  else if (peer == n->chief.peer && tells)
    shoal_line_say_closed(&n->chief, "the chief", reason, true, &n->config->notes, now);
  shoal_line_closed(&n->chief, peer, now);
  for (uint32_t s = 0; n->owners != NULL && s < n->job.owners_count; s++) {
    if (peer == n->owners[s].peer && tells) say_owner_closed(n, s, reason, now);
    shoal_line_closed(&n->owners[s], peer, now);
  }
  if (n->core != NULL) shoal_worker_gone(n->core, peer);
}

static double tick_lines(node *n, double now) {
  shoal_line_tick(&n->chief, n->net, &n->config->way, now);
  double next = shoal_line_next(&n->chief);
  for (uint32_t s = 0; n->owners != NULL && s < n->job.owners_count; s++) {
    shoal_line_tick(&n->owners[s], n->net, &n->config->way, now);
    next = fmin(next, shoal_line_next(&n->owners[s]));
  }
  return next;
}

/* It may be set by another thread, too. */
static bool stops(const node *n) { return __atomic_load_n(n->config->stop, __ATOMIC_RELAXED) != 0; }

static shoal_status loop(node *n, shoal_error *err) {
  while (!n->ended && n->failed == SHOAL_OK && !stops(n)) {
    double now = shoal_clock_seconds(), next = tick_lines(n, now);
    turn(n);
    post(n);
    shoal_net_run(n->net, fmin(shoal_node_turn_s, fmax(0, next - now)));
    if (!n->chief.open && now - n->chief.down_since > SHOAL_LINE_GIVE_UP_S)
      return shoal_fail(err, SHOAL_IO, "no chief at %s for %d minutes; giving up", n->config->chief,
                        SHOAL_LINE_GIVE_UP_S / 60);
  }
  if (n->failed == SHOAL_OK && !n->ended && is_alone(n)) shoal_note(&n->config->notes, "stopped");
  if (n->failed != SHOAL_OK && err != NULL) *err = n->error;
  return n->failed;
}

/* Tells the chief that this worker goes before the training is over, and why. */
static void leave(node *n) {
  if (n->ended || n->refused || !n->chief.open || n->config->beside_chief) return;
  n->leaves = true;
  shoal_node_leave(n->net, &n->chief, n->failed != SHOAL_OK ? n->error.text : "");
}

/* This thread, and those that it starts, are such that compute: one that is woken does not push aside who
 * woke it, a parameter server that may have others to answer. Who is more modest already stays so. */
static void compute_politely(void) {
  const struct sched_param none = {0};
  if (sched_getscheduler(0) == SCHED_OTHER) (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

shoal_status shoal_worker_node_run(const shoal_worker_node_config *config, shoal_error *err) {
  node n = {.config = config, .state = IDLE, .unit_s = INFINITY};
  compute_politely();
  const shoal_net_calls calls = {&n, opened, received, closed, NULL};
  shoal_net_config net = shoal_node_net(&calls, CONNECTIONS_MAX, NULL, NULL);
  shoal_status status = shoal_net_create(&n.net, &net, err);
  if (status != SHOAL_OK) return status;
  shoal_line_init(&n.chief, config->chief, shoal_clock_seconds());
  pthread_mutex_init(&n.lock, NULL);
  pthread_cond_init(&n.changed, NULL);
  if (pthread_create(&n.thread, NULL, computer, &n) != 0) {
    shoal_net_destroy(n.net);
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  }
  status = loop(&n, err);
  leave(&n);
  wait_for_computer(&n);
  pthread_mutex_lock(&n.lock);
  n.state = QUIT;
  pthread_cond_broadcast(&n.changed);
  pthread_mutex_unlock(&n.lock);
  pthread_join(n.thread, NULL);
  n.state = IDLE;
  shoal_outbox_release(&n.held);
  forget_job(&n);
  shoal_net_destroy(n.net);
  pthread_cond_destroy(&n.changed);
  pthread_mutex_destroy(&n.lock);
  return status;
}
