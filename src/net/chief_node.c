/* chief_node.c: see chief_node.h.
 *
 * The thread inside has the core, the network and the disk. The caller's side and it share what
 * stands under the lock: a queue of news, the wish for a gathering, and a copy of the peers.
 *
 *   gathering   NOT_WANTED -> WANTED by the caller -> PULLING when the core rests -> GATHERED when
 *               all slices are in -> NOT_WANTED by the caller, who has copied them; then the core
 *               goes on */
#include "net/chief_node.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/file.h"
#include "net/keep.h"
#include "net/line.h"
#include "net/net.h"
#include "proto/slice.h"

enum { PEERS_SHOWN_MAX = 1024, NEWS_TEXT_MAX = 256, RECORD = 0, CONNECTIONS_BESIDE = 4096 };
static const uint64_t PAYLOAD_MAX = (uint64_t)4 << 30;
static const double HELLO_S = 10, STALL_S = 60, TURN_S = 0.25, LOST_S = 5, FLUSH_S = 3;
static const double QUIET_S = 5, QUIET_AGAIN_S = 30; /* when nothing happens, say why */
/* How long gathering may take; after a signal, with all parameter servers here and without. */
static const double GATHER_S = SHOAL_LINE_GIVE_UP_S, GATHER_STOPPED_S = 60, MISSING_S = 2;
static const shoal_lease_rules LEASES = {.holders_max = 3, .patience = 3, .first_s = 60, .least_s = 1};

typedef enum news_kind { NEWS_ROUND, NEWS_NOTE, NEWS_FAILED } news_kind;

typedef struct news {
  news_kind kind;
  uint64_t version;
  shoal_sums round, epoch;
  char text[NEWS_TEXT_MAX];
} news;

typedef enum gathering { NOT_WANTED, WANTED, PULLING, GATHERED } gathering;

struct shoal_chief_node {
  shoal_chief_node_config config;
  shoal_train_state *state; /* the trainer's; arrays are written by the caller's side alone */
  shoal_text job_text;
  shoal_slice *slices;
  uint32_t slots; /* vectors beside the weights that owners have */
  uint64_t went_on;

  /* The thread's own. */
  shoal_net *net;
  shoal_chief *chief;
  shoal_keep keep;
  shoal_chief_state base; /* of the trainer's state: where all can go back to */
  float *base_carry;
  float *gathered[3]; /* weights and slots, while they come */
  bool *arrived;
  bool started, resting, pulling;
  uint64_t rest_version;
  shoal_sums rest_sums;
  double progress_at, said_at; /* when a round was last closed, and why none was */
  double peers_at;

  /* Shared. */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  news *news;
  size_t news_first, news_count, news_size;
  gathering gathering;
  bool goes_on; /* the caller has what it wanted of a rest */
  bool quit;
  bool complete; /* all parameter servers are here */
  shoal_chief_peer *peers;
  uint32_t peers_count;
};

/* ---- news ---- */

/* Under the lock. Rounds that do not fit are forgotten: they are only for the eye. */
static void add_news(shoal_chief_node *n, const news *item) {
  if (n->news_count == n->news_size) {
    size_t size = n->news_size == 0 ? 256 : 2 * n->news_size;
    news *bigger = calloc(size, sizeof *bigger);
    if (bigger == NULL) return;
    for (size_t i = 0; i < n->news_count; i++) bigger[i] = n->news[(n->news_first + i) % n->news_size];
    free(n->news);
    n->news = bigger;
    n->news_size = size;
    n->news_first = 0;
  }
  n->news[(n->news_first + n->news_count++) % n->news_size] = *item;
}

static void tell(shoal_chief_node *n, const news *item) {
  pthread_mutex_lock(&n->lock);
  add_news(n, item);
  pthread_cond_broadcast(&n->changed);
  pthread_mutex_unlock(&n->lock);
}

static void tell_note(shoal_chief_node *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell_note(shoal_chief_node *n, const char *format, ...) {
  news item = {.kind = NEWS_NOTE};
  va_list list;
  va_start(list, format);
  vsnprintf(item.text, sizeof item.text, format, list);
  va_end(list);
  tell(n, &item);
}

/* ---- the disk ---- */

static void write_record(shoal_chief_node *n, shoal_chief_state state) {
  const float *carry = shoal_chief_safe_carry(n->chief);
  size_t carry_bytes = carry != NULL ? n->config.job->parts *
                                           shoal_trainer_carry_floats(n->config.task->trainer) * sizeof *carry
                                     : 0;
  const shoal_piece pieces[] = {{&state, sizeof state}, {(void *)(uintptr_t)carry, carry_bytes}};
  shoal_error err;
  while (shoal_keep_write(&n->keep, RECORD, pieces, 2, &err) != SHOAL_OK) {
    /* Nothing may be sent before this is on disk, or a generation could come twice. */
    tell_note(n, "cannot keep the state of the training: %s; trying again", err.text);
    shoal_clock_sleep(1);
    pthread_mutex_lock(&n->lock);
    bool quit = n->quit;
    pthread_mutex_unlock(&n->lock);
    if (quit) return;
  }
}

/* ---- going back ---- */

/* The slice's weights, then its slots, of the trainer's state; in local mode the outer momentum is
 * zero. */
static void give(shoal_chief_node *n, uint32_t s) {
  const shoal_slice *slice = &n->slices[s];
  size_t bytes = slice->count * sizeof(float);
  const float *parts[3] = {n->state->weights, n->state->slot1, n->state->slot2};
  shoal_blob *blob = shoal_blob_create((1 + n->slots) * bytes);
  SHOAL_ASSERT(blob != NULL);
  for (uint32_t i = 0; i <= n->slots; i++) {
    bool has = i == 0 || n->config.job->mode.kind != SHOAL_LOCAL;
    if (has)
      memcpy(shoal_blob_bytes(blob) + i * bytes, parts[i] + slice->offset, bytes);
    else
      memset(shoal_blob_bytes(blob) + i * bytes, 0, bytes);
  }
  shoal_chief_give(n->chief, s, blob);
}

static void handle_lack(shoal_chief_node *n, const shoal_chief_event *event) {
  pthread_mutex_lock(&n->lock); /* the caller may be taking what was gathered */
  uint64_t base = n->base.version;
  if (event->version == base)
    give(n, event->slice);
  else
    shoal_chief_fall_back(n->chief, &n->base, n->base_carry, shoal_clock_seconds());
  pthread_mutex_unlock(&n->lock);
  if (event->version != base)
    tell_note(n, "parameter server %u has lost what it kept of round %llu; going back to round %llu",
              event->slice, (unsigned long long)event->version, (unsigned long long)base);
}

/* ---- gathering ---- */

static void pull_slice(shoal_chief_node *n, uint32_t s) {
  uint64_t peer = shoal_chief_owner(n->chief, s);
  if (peer == 0) return;
  shoal_net_send(n->net, peer,
                 (shoal_message){.kind = SHOAL_MSG_PULL,
                                 .generation = shoal_chief_generation(n->chief),
                                 .version = n->rest_version,
                                 .slice = s,
                                 .count = 1});
}

static void pull_missing(shoal_chief_node *n) {
  for (uint32_t s = 0; s < n->config.job->owners_count; s++)
    if (!n->arrived[s]) pull_slice(n, s);
}

/* Goes on after a rest when the caller said so; starts to gather when that is wanted and all rest. */
static void heed_caller(shoal_chief_node *n) {
  pthread_mutex_lock(&n->lock);
  bool goes_on = n->goes_on;
  if (goes_on) n->resting = n->pulling = false;
  bool wanted = n->gathering == WANTED, begin = wanted && n->resting;
  if (begin) n->gathering = PULLING;
  n->goes_on = false;
  pthread_mutex_unlock(&n->lock);
  if (goes_on) shoal_chief_go_on(n->chief, shoal_clock_seconds());
  if (wanted && !n->resting) shoal_chief_rest(n->chief, shoal_clock_seconds());
  if (!begin) return;
  n->pulling = true;
  memset(n->arrived, 0, n->config.job->owners_count * sizeof *n->arrived);
  pull_missing(n);
}

static void copy_peers(shoal_chief_node *n, double now) {
  pthread_mutex_lock(&n->lock);
  n->peers_count = 0;
  while (n->peers_count < PEERS_SHOWN_MAX &&
         shoal_chief_peer_at(n->chief, n->peers_count, now, &n->peers[n->peers_count]))
    n->peers_count++;
  n->complete = shoal_chief_running(n->chief);
  pthread_mutex_unlock(&n->lock);
}

static void take_weights(shoal_chief_node *n, const shoal_message *m) {
  uint32_t s = m->slice;
  if (s >= n->config.job->owners_count || m->payload == NULL || n->arrived[s]) return;
  size_t bytes = n->slices[s].count * sizeof(float);
  if (m->version != n->rest_version || m->generation != shoal_chief_generation(n->chief) ||
      shoal_blob_length(m->payload) != (1 + n->slots) * bytes)
    return;
  for (uint32_t i = 0; i <= n->slots; i++)
    memcpy(n->gathered[i] + n->slices[s].offset, shoal_blob_bytes(m->payload) + i * bytes, bytes);
  n->arrived[s] = true;
  for (uint32_t other = 0; other < n->config.job->owners_count; other++)
    if (!n->arrived[other]) return;
  n->pulling = false;
  copy_peers(n, shoal_clock_seconds());
  pthread_mutex_lock(&n->lock);
  n->gathering = GATHERED;
  pthread_cond_broadcast(&n->changed);
  pthread_mutex_unlock(&n->lock);
}

/* ---- what the core tells ---- */

static void handle_peer_event(shoal_chief_node *n, const shoal_chief_event *event) {
  switch (event->kind) {
  case SHOAL_CHIEF_JOINED: tell_note(n, "%s is here", event->name); break;
  case SHOAL_CHIEF_LOST: tell_note(n, "lost %s: %s", event->name, event->text); break;
  case SHOAL_CHIEF_LATE: tell_note(n, "%s is late; another takes over its unit", event->name); break;
  case SHOAL_CHIEF_DIFFERS:
    tell_note(n, "%s computed something else than another worker did; it was not used", event->name);
    break;
  default: break;
  }
}

static void handle_event(shoal_chief_node *n, const shoal_chief_event *event) {
  news item = {.version = event->version, .round = event->sums, .epoch = event->state.epoch};
  switch (event->kind) {
  case SHOAL_CHIEF_ROUND:
    n->progress_at = n->said_at = shoal_clock_seconds();
    item.kind = NEWS_ROUND;
    tell(n, &item);
    break;
  case SHOAL_CHIEF_REST:
    n->resting = true;
    n->rest_version = event->version;
    n->rest_sums = event->state.epoch;
    pthread_mutex_lock(&n->lock);
    if (n->gathering == PULLING) n->gathering = WANTED; /* all went back meanwhile: again */
    n->pulling = false;
    pthread_mutex_unlock(&n->lock);
    break;
  case SHOAL_CHIEF_BACK:
    n->resting = false;
    write_record(n, event->state);
    if (n->started)
      tell_note(n, "going back to round %llu: %s", (unsigned long long)event->version, event->text);
    n->started = true;
    break;
  case SHOAL_CHIEF_SAFE: write_record(n, event->state); break;
  case SHOAL_CHIEF_LACKS: handle_lack(n, event); break;
  case SHOAL_CHIEF_FAILED:
    item.kind = NEWS_FAILED;
    tell(n, &item);
    break;
  default:
    handle_peer_event(n, event);
    if (event->kind == SHOAL_CHIEF_JOINED && n->pulling) pull_missing(n);
    break;
  }
}

/* Events first: what must be on disk is there before anything is sent. */
static void post(shoal_chief_node *n) {
  shoal_chief_event event;
  while (shoal_chief_next_event(n->chief, &event)) handle_event(n, &event);
  shoal_letter letter;
  while (shoal_outbox_take(shoal_chief_outbox(n->chief), &letter))
    shoal_net_send(n->net, letter.peer, letter.message);
}

static void opened(void *self, uint64_t peer, const char *address) { (void)self, (void)peer, (void)address; }

static void received(void *self, uint64_t peer, shoal_message *m) {
  shoal_chief_node *n = self;
  if (n->pulling && m->kind == SHOAL_MSG_WEIGHTS && m->slice < n->config.job->owners_count &&
      shoal_chief_owner(n->chief, m->slice) == peer)
    take_weights(n, m);
  shoal_chief_receive(n->chief, peer, m, shoal_clock_seconds());
  post(n);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  shoal_chief_node *n = self;
  char why[64]; /* the core keeps the pointer in an event, which post handles at once */
  snprintf(why, sizeof why, "%s", reason);
  shoal_chief_gone(n->chief, peer, why, shoal_clock_seconds());
  post(n);
}

/* ---- who is waited for ---- */

static void say_missing(shoal_chief_node *n, double now) {
  const shoal_job *job = n->config.job;
  for (uint32_t s = 0; s < job->owners_count; s++)
    if (shoal_chief_owner(n->chief, s) == 0)
      tell_note(n, "waiting for parameter server %u at %s", s, job->owners[s]);
  if (shoal_chief_workers(n->chief) == 0) tell_note(n, "waiting for a worker");
  shoal_chief_peer peer;
  for (uint32_t i = 0; shoal_chief_peer_at(n->chief, i, now, &peer); i++) {
    if (peer.held_s > QUIET_S)
      tell_note(n, "waiting for %s, which has had its unit for %.0f s", peer.name, peer.held_s);
    else if (peer.silent_s > QUIET_S)
      tell_note(n, "waiting for %s, silent for %.0f s", peer.name, peer.silent_s);
    else if (peer.rounds_behind > 0)
      tell_note(n, "waiting for %s, %llu rounds behind", peer.name, (unsigned long long)peer.rounds_behind);
  }
}

static void say_why_nothing_happens(shoal_chief_node *n, double now) {
  bool first = n->said_at == n->progress_at, nothing_to_do = n->resting && !n->pulling;
  if (nothing_to_do || now - n->said_at < (first ? QUIET_S : QUIET_AGAIN_S)) return;
  n->said_at = now;
  say_missing(n, now);
}

/* ---- the thread ---- */

static bool quits(shoal_chief_node *n) {
  pthread_mutex_lock(&n->lock);
  bool quit = n->quit;
  pthread_mutex_unlock(&n->lock);
  return quit;
}

static void *run(void *self) {
  shoal_chief_node *n = self;
  n->progress_at = n->said_at = shoal_clock_seconds();
  while (!quits(n)) {
    double now = shoal_clock_seconds();
    shoal_chief_tick(n->chief, now);
    post(n);
    heed_caller(n);
    post(n);
    if (now - n->peers_at >= TURN_S) {
      n->peers_at = now;
      copy_peers(n, now);
      say_why_nothing_happens(n, now);
    }
    shoal_net_run(n->net, fmin(TURN_S, fmax(0, shoal_chief_next_tick(n->chief) - now)));
  }
  return NULL;
}

/* ---- the caller's side ---- */

static void go_to(shoal_chief_node *n, uint64_t version, const shoal_sums *epoch) {
  const shoal_job *job = n->config.job;
  shoal_train_state *state = n->state;
  state->step = shoal_job_step(job, version);
  state->epoch = version / job->rounds;
  state->round = state->step - state->epoch * job->inner_rounds;
  state->loss_sum = epoch->loss;
  state->weight_sum = epoch->weight;
  state->square_sum = epoch->square;
  state->counted = epoch->counted;
  state->correct = epoch->correct;
}

static void wait_a_little(shoal_chief_node *n) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 100000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&n->changed, &n->lock, &until);
}

/* The next piece of news, or false when there is none. Notes are told on the way. */
static bool take_news(shoal_chief_node *n, news *out) {
  while (n->news_count > 0) {
    *out = n->news[n->news_first];
    n->news_first = (n->news_first + 1) % n->news_size;
    n->news_count--;
    if (out->kind != NEWS_NOTE) return true;
    pthread_mutex_unlock(&n->lock);
    shoal_note(&n->config.notes, "%s", out->text);
    pthread_mutex_lock(&n->lock);
  }
  return false;
}

static shoal_status failed_in(uint64_t version, shoal_error *err) {
  return shoal_fail(err, SHOAL_INVALID,
                    "the loss is not a number in round %llu; try a lower --rate or --clip 1",
                    (unsigned long long)version + 1);
}

static shoal_status next(void *self, shoal_result *out, shoal_error *err) {
  shoal_chief_node *n = self;
  news item;
  pthread_mutex_lock(&n->lock);
  bool found = take_news(n, &item);
  while (!found && !*n->config.stop) {
    wait_a_little(n);
    found = take_news(n, &item);
  }
  pthread_mutex_unlock(&n->lock);
  if (!found) return shoal_fail(err, SHOAL_STOPPED, "stopped while waiting for a round");
  *out = shoal_trainer_result(n->config.task->trainer, &item.round);
  if (item.kind == NEWS_FAILED) return failed_in(item.version, err);
  go_to(n, item.version, &item.epoch);
  return SHOAL_OK;
}

/* Copies what was gathered into the trainer's state. The thread waits meanwhile, at rest. */
static void take_gathered(shoal_chief_node *n) {
  shoal_train_state *state = n->state;
  const shoal_job *job = n->config.job;
  float *parts[3] = {state->weights, state->slot1, state->slot2};
  bool local = job->mode.kind == SHOAL_LOCAL;
  for (uint32_t i = 0; i <= (local ? 0 : n->slots); i++)
    memcpy(parts[i], n->gathered[i], state->weights_count * sizeof(float));
  const float *carry = shoal_chief_carry(n->chief);
  size_t carry_floats = shoal_trainer_carry_floats(n->config.task->trainer);
  for (uint32_t part = 0; carry != NULL && part < job->parts; part++)
    shoal_trainer_set_carry(n->config.task->trainer, part, carry + part * carry_floats);
  if (carry != NULL) memcpy(n->base_carry, carry, job->parts * carry_floats * sizeof *carry);
  n->base = (shoal_chief_state){.version = n->rest_version, .epoch = n->rest_sums};
  go_to(n, n->rest_version, &n->rest_sums);
}

static shoal_status gather(void *self, shoal_error *err) {
  shoal_chief_node *n = self;
  const double started = shoal_clock_seconds();
  double stopped = *n->config.stop ? started : INFINITY, now = started;
  news item = {0};
  bool failed = false;
  pthread_mutex_lock(&n->lock);
  n->gathering = WANTED;
  shoal_net_wake(n->net);
  /* Rounds that are told meanwhile are part of what is gathered. */
  while (n->gathering != GATHERED && !failed && now < started + GATHER_S &&
         now < stopped + (n->complete ? GATHER_STOPPED_S : MISSING_S)) {
    wait_a_little(n);
    now = shoal_clock_seconds();
    if (*n->config.stop && isinf(stopped)) stopped = now;
    while (!failed && take_news(n, &item)) failed = item.kind == NEWS_FAILED;
  }
  bool gathered = n->gathering == GATHERED;
  while (gathered && take_news(n, &item)) {
  }
  if (gathered) take_gathered(n);
  n->gathering = NOT_WANTED;
  n->goes_on = gathered;
  pthread_mutex_unlock(&n->lock);
  shoal_net_wake(n->net);
  if (gathered) return SHOAL_OK;
  if (failed) return failed_in(item.version, err);
  if (!isinf(stopped))
    return shoal_fail(err, SHOAL_STOPPED,
                      "stopped while not all parameter servers were here; what was kept in %s stays, and the "
                      "same command goes on from there",
                      n->config.folder);
  return shoal_fail(err, SHOAL_IO,
                    "the weights could not be gathered from the parameter servers within %.0f s", GATHER_S);
}

shoal_rounds shoal_chief_node_rounds(shoal_chief_node *n) {
  return (shoal_rounds){.self = n, .next = next, .gather = gather};
}

void shoal_chief_node_note(shoal_chief_node *n, const char *text) { tell_note(n, "%s", text); }

uint64_t shoal_chief_node_went_on(const shoal_chief_node *n) { return n->went_on; }

uint32_t shoal_chief_node_peers(shoal_chief_node *n, shoal_chief_peer *out, uint32_t max) {
  pthread_mutex_lock(&n->lock);
  uint32_t count = n->peers_count < max ? n->peers_count : max;
  memcpy(out, n->peers, count * sizeof *out);
  pthread_mutex_unlock(&n->lock);
  return count;
}

/* ---- create and end ---- */

static shoal_status reserve(shoal_chief_node *n, shoal_error *err) {
  const shoal_graph *graph = n->config.task->graph;
  const shoal_job *job = n->config.job;
  size_t weights = graph->weights_count, runs_count = shoal_optimizer_runs(graph, NULL);
  size_t carry = job->parts * shoal_trainer_carry_floats(n->config.task->trainer);
  n->slots = job->mode.kind == SHOAL_LOCAL ? 1 : shoal_optimizer_slots(graph->model->recipe.optimizer);
  shoal_run *runs = calloc(runs_count, sizeof *runs);
  n->slices = calloc(job->owners_count, sizeof *n->slices);
  n->arrived = calloc(job->owners_count, sizeof *n->arrived);
  n->peers = calloc(PEERS_SHOWN_MAX, sizeof *n->peers);
  n->base_carry = calloc(carry + 1, sizeof *n->base_carry);
  bool ok =
      runs != NULL && n->slices != NULL && n->arrived != NULL && n->peers != NULL && n->base_carry != NULL;
  for (uint32_t i = 0; i <= n->slots; i++) {
    n->gathered[i] = calloc(weights, sizeof(float));
    ok &= n->gathered[i] != NULL;
  }
  if (ok) {
    shoal_optimizer_runs(graph, runs);
    shoal_slices_cut(runs, runs_count, weights, job->owners_count, n->slices);
  }
  free(runs);
  return ok ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
}

/* Where the trainer's state stands, as the chief counts. */
static shoal_status find_base(shoal_chief_node *n, shoal_error *err) {
  const shoal_train_state *state = n->state;
  const shoal_job *job = n->config.job;
  if (!shoal_job_version(job, state->step, &n->base.version))
    return shoal_fail(err, SHOAL_INVALID,
                      "mode %s cannot go on from round %llu of an epoch; take a checkpoint of the end of one",
                      job->mode_text, (unsigned long long)state->round);
  n->base.epoch = (shoal_sums){.loss = state->loss_sum,
                               .weight = state->weight_sum,
                               .square = state->square_sum,
                               .counted = state->counted,
                               .correct = state->correct};
  size_t carry = shoal_trainer_carry_floats(n->config.task->trainer);
  for (uint32_t part = 0; carry > 0 && job->mode.kind != SHOAL_LOCAL && part < job->parts; part++)
    shoal_trainer_get_carry(n->config.task->trainer, part, n->base_carry + part * carry);
  return SHOAL_OK;
}

static shoal_status create_core(shoal_chief_node *n, shoal_error *err) {
  const shoal_job *job = n->config.job;
  const shoal_recipe *recipe = &n->config.task->model->recipe;
  size_t carry = job->mode.kind == SHOAL_LOCAL ? 0 : shoal_trainer_carry_floats(n->config.task->trainer);
  shoal_chief_config config = {
      .parts = job->parts,
      .rounds = job->rounds,
      .end = recipe->epochs * job->rounds,
      .mode = job->mode,
      .clip = recipe->clip,
      .owners = job->owners_count,
      .workers_max = n->config.workers_max,
      .beat = shoal_line_beat,
      .lost_s = LOST_S,
      .save_s = n->config.save_s,
      .leases = LEASES,
      .job = n->job_text.bytes,
      .job_digest = n->keep.job_digest,
      .start = n->base,
      .carry_floats = carry,
      .carry = n->base_carry,
  };
  float *kept_carry = calloc(job->parts * carry + 1, sizeof *kept_carry);
  if (kept_carry == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  shoal_chief_state kept;
  const shoal_piece pieces[] = {{&kept, sizeof kept}, {kept_carry, job->parts * carry * sizeof *kept_carry}};
  bool found = shoal_keep_read(&n->keep, RECORD, pieces, 2, NULL) == SHOAL_OK;
  if (found && kept.version >= n->base.version && kept.version <= config.end) {
    config.start = kept;
    config.carry = kept_carry;
    n->went_on = kept.version;
  }
  shoal_status status = shoal_chief_create(&n->chief, &config, err);
  free(kept_carry);
  return status;
}

void shoal_chief_node_destroy(shoal_chief_node *n) {
  if (n == NULL) return;
  shoal_net_destroy(n->net);
  shoal_chief_destroy(n->chief);
  shoal_text_release(&n->job_text);
  for (int i = 0; i < 3; i++) free(n->gathered[i]);
  free(n->slices);
  free(n->arrived);
  free(n->peers);
  free(n->base_carry);
  free(n->news);
  pthread_cond_destroy(&n->changed);
  pthread_mutex_destroy(&n->lock);
  free(n);
}

static shoal_status start(shoal_chief_node *n, shoal_error *err) {
  const shoal_chief_node_config *config = &n->config;
  shoal_job_write(config->job, &n->job_text);
  if (n->job_text.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  n->keep =
      (shoal_keep){.folder = config->folder, .who = "chief", .job_digest = shoal_job_digest(config->job)};
  shoal_status status = shoal_make_folder(config->folder, err);
  if (status == SHOAL_OK) status = reserve(n, err);
  if (status == SHOAL_OK) status = find_base(n, err);
  if (status == SHOAL_OK) status = create_core(n, err);
  if (status != SHOAL_OK) return status;
  shoal_net_config net = {.calls = {n, opened, received, closed},
                          .payload_max = PAYLOAD_MAX,
                          .connections_max =
                              config->workers_max + config->job->owners_count + CONNECTIONS_BESIDE,
                          .hello_s = HELLO_S,
                          .stall_s = STALL_S,
                          .certificate = config->certificate,
                          .key = config->key};
  status = shoal_net_create(&n->net, &net, err);
  uint16_t port;
  if (status == SHOAL_OK) status = shoal_net_listen(n->net, config->listen, &port, err);
  if (status == SHOAL_OK && pthread_create(&n->thread, NULL, run, n) != 0)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  return status;
}

shoal_status shoal_chief_node_create(shoal_chief_node **out, const shoal_chief_node_config *config,
                                     shoal_error *err) {
  *out = NULL;
  shoal_chief_node *n = calloc(1, sizeof *n);
  if (n == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  n->config = *config;
  n->state = shoal_trainer_state(config->task->trainer);
  pthread_mutex_init(&n->lock, NULL);
  pthread_cond_init(&n->changed, NULL);
  shoal_status status = start(n, err);
  if (status != SHOAL_OK) {
    shoal_chief_node_destroy(n);
    return status;
  }
  *out = n;
  return SHOAL_OK;
}

void shoal_chief_node_end(shoal_chief_node *n, const char *text, bool forget) {
  pthread_mutex_lock(&n->lock);
  n->quit = true;
  pthread_mutex_unlock(&n->lock);
  shoal_net_wake(n->net);
  pthread_join(n->thread, NULL);
  if (forget) shoal_chief_end(n->chief, text);
  post(n);
  /* They hang up when they have heard it. */
  shoal_chief_peer peer;
  double deadline = shoal_clock_seconds() + FLUSH_S;
  while (forget && shoal_chief_peer_at(n->chief, 0, 0, &peer) && shoal_clock_seconds() < deadline)
    shoal_net_run(n->net, 0.05);
  if (forget) shoal_keep_only(&n->keep, 1, 0);
}
