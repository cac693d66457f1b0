/* owner_node.c: see owner_node.h.
 *
 * What the core wants of the disk is done before anything of it is sent. */
#include "cluster/owner_node.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/room.h"
#include "cluster/job.h"
#include "cluster/keep.h"
#include "cluster/node.h"
#include "cluster/shares.h"
#include "proto/chief.h"
#include "proto/owner.h"

enum { CONNECTIONS_MAX = 4096 };

typedef struct node {
  const shoal_owner_node_config *config;
  shoal_net *net;
  shoal_line chief;
  uint64_t chief_instance; /* the one that it was welcomed by last; 0: none yet */
  shoal_told refusals;
  /* What the chief told, and what follows from it. */
  shoal_text job_text;
  shoal_job job;
  shoal_model *model;
  shoal_graph *graph;
  shoal_shares shares;
  shoal_slice slice;
  shoal_owner *owner;
  shoal_keep keep;
  int keep_lock;
  bool not_kept; /* the last record, and that was said */
  bool ended;
  shoal_status failed;
  shoal_error error;
} node;

/* ---- the job ---- */

static void forget_job(node *n) {
  shoal_keep_unlock(&n->keep, &n->keep_lock);
  shoal_owner_destroy(n->owner);
  shoal_shares_release(&n->shares);
  shoal_graph_destroy(n->graph);
  shoal_model_destroy(n->model);
  shoal_job_release(&n->job);
  shoal_text_release(&n->job_text);
  n->owner = NULL;
  n->graph = NULL;
  n->model = NULL;
}

static shoal_status learn_job(node *n, const char *text, size_t length, shoal_error *err) {
  forget_job(n);
  shoal_status status = shoal_job_parse(&n->job, text, length, err);
  if (status != SHOAL_OK) return status;
  shoal_text_add(&n->job_text, text, length);
  if (n->config->slice >= n->job.owners_count)
    return shoal_fail(err, SHOAL_INVALID, "this is parameter server %u, but the job has only %u",
                      n->config->slice, n->job.owners_count);
  const shoal_kernels *kernels = shoal_kernels_get();
  if (kernels == NULL) return shoal_fail(err, SHOAL_UNSUPPORTED, "SHOAL_KERNELS names unknown kernels");
  status = shoal_model_parse(&n->model, "the job's model", n->job.model.bytes, n->job.model.length, err);
  if (status == SHOAL_OK) status = shoal_graph_create(&n->graph, n->model, err);
  if (status == SHOAL_OK) status = shoal_shares_init(&n->shares, n->graph, n->job.owners_count, err);
  if (status != SHOAL_OK) return status;
  n->slice = n->shares.slices[n->config->slice];
  uint64_t digest = shoal_job_digest(&n->job);
  shoal_owner_config config = {.graph = n->graph,
                               .kernels = kernels,
                               .slice = n->slice,
                               .slice_index = n->config->slice,
                               .parts = n->job.parts,
                               .rounds = n->job.rounds,
                               .job_digest = digest,
                               .mode = n->job.mode,
                               .guarded = n->job.guarded,
                               .format = n->job.format,
                               .rule = n->job.rule};
  n->keep.job_digest = digest;
  status = shoal_keep_lock(&n->keep, &n->keep_lock, err);
  return status == SHOAL_OK ? shoal_owner_create(&n->owner, &config, err) : status;
}

/* ---- the disk ---- */

static uint32_t pieces_of(const node *n, shoal_keep_piece pieces[SHOAL_PIECES_MAX]) {
  const shoal_owner_state *state = shoal_owner_state_of(n->owner);
  float *floats[SHOAL_PIECES_MAX] = {state->weights, state->slot1, state->slot2, state->centre};
  uint32_t count = 0;
  for (uint32_t i = 0; i < SHOAL_PIECES_MAX; i++)
    if (floats[i] != NULL) pieces[count++] = (shoal_keep_piece){floats[i], n->slice.count * sizeof(float)};
  return count;
}

/* In a process with the chief, that one tells who comes and goes, and what it hears. */
static bool is_alone(const node *n) { return n->config->chief[0] != '#'; }

/* Said once, until a record is kept again. */
static void say_kept(node *n, uint64_t version, const char *why) {
  bool not_kept = why != NULL;
  if (not_kept == n->not_kept) return;
  n->not_kept = not_kept;
  if (is_alone(n) && not_kept)
    shoal_note(&n->config->notes, "cannot keep round %llu: %s; trying again", (unsigned long long)version,
               why);
  else if (is_alone(n))
    shoal_note(&n->config->notes, "round %llu is kept", (unsigned long long)version);
}

/* A record that cannot be written is the chief's to worry about, which asks again. */
static void save(node *n) {
  shoal_keep_piece pieces[SHOAL_PIECES_MAX];
  uint32_t count = pieces_of(n, pieces);
  uint64_t version = shoal_owner_state_of(n->owner)->version;
  shoal_error err;
  uint64_t keeps[SHOAL_OWNER_KEEPS_MAX]; /* nobody goes back to any other, so that there is room */
  shoal_keep_these(&n->keep, keeps, shoal_owner_keeps(n->owner, keeps));
  bool kept = shoal_keep_write(&n->keep, version, pieces, count, &err) == SHOAL_OK;
  say_kept(n, version, kept ? NULL : err.text);
  if (!kept) {
    shoal_owner_not_saved(n->owner, err.text);
    return;
  }
  shoal_owner_saved(n->owner);
}

/* A record is written beside the last one, and the one before that goes first. */
static void warn_of_little_room(const node *n, uint32_t records) {
  uint64_t room, bytes = 0;
  shoal_keep_piece pieces[SHOAL_PIECES_MAX];
  for (uint32_t i = 0, count = pieces_of(n, pieces); i < count; i++) bytes += pieces[i].length;
  if (!is_alone(n) || !shoal_room_at(n->config->folder, &room) || room >= records * bytes) return;
  shoal_note(&n->config->notes, "%s: %s are needed there, but only %s are free; free some space",
             n->config->folder, shoal_human_bytes((double)(records * bytes)).text,
             shoal_human_bytes((double)room).text);
}

static void restore(node *n, uint64_t version) {
  shoal_keep_piece pieces[SHOAL_PIECES_MAX];
  uint32_t count = pieces_of(n, pieces);
  bool found = shoal_keep_read(&n->keep, version, pieces, count, NULL) == SHOAL_OK;
  /* Later ones belong to a past that did not happen. */
  shoal_keep_only(&n->keep, 0, version);
  shoal_owner_restored(n->owner, found);
  warn_of_little_room(n, found ? SHOAL_KEEP_RECORDS - 1 : SHOAL_KEEP_RECORDS);
}

/* ---- the network ---- */

/* Does what the core wants of the disk, and sends what it has to say. */
static void post(node *n) {
  shoal_letter letter;
  uint64_t version;
  if (n->owner == NULL) return;
  if (shoal_owner_restore(n->owner, &version)) restore(n, version);
  while (shoal_owner_save(n->owner)) save(n);
  while (shoal_outbox_take(shoal_owner_outbox(n->owner), &letter)) {
    if (letter.peer == n->chief.peer) n->chief.beat.said = shoal_clock_seconds();
    if (letter.message.kind == SHOAL_MSG_SAVED)
      shoal_net_moved(n->net, &letter.message.lease, &letter.message.round);
    shoal_net_send(n->net, letter.peer, letter.message);
  }
}

static void say_hello(node *n) {
  shoal_message hello = {.kind = SHOAL_MSG_HELLO,
                         .count = SHOAL_ROLE_OWNER,
                         .slice = n->config->slice,
                         .payload = shoal_blob_of(n->config->name, strlen(n->config->name))};
  if (n->owner != NULL) {
    shoal_message_release(&hello);
    hello = shoal_owner_hello(n->owner, n->config->name);
  }
  shoal_net_send(n->net, n->chief.peer, hello);
}

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  node *n = self;
  if (shoal_line_opened(&n->chief, peer, shoal_clock_seconds())) say_hello(n);
}

static void fail(node *n, shoal_status status) {
  shoal_node_plain_error(&n->error);
  n->failed = status;
  n->ended = true;
}

static void take_welcome(node *n, const shoal_message *m) {
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  n->chief_instance = m->lease;
  if (shoal_line_waited(&n->chief)) shoal_note(&n->config->notes, "the chief is here");
  if (shoal_node_same_job(&n->job_text, m)) return;
  shoal_status status = learn_job(n, text, length, &n->error);
  if (status != SHOAL_OK)
    fail(n, status);
  else if (is_alone(n))
    shoal_note(&n->config->notes, "joined the training of the chief at %s", n->config->chief);
}

static void hear_end(node *n, const shoal_message *m) {
  const shoal_notes nobody = {0};
  n->ended = true;
  if (n->owner != NULL && m->count != SHOAL_ENDS_STOPPED) shoal_keep_only(&n->keep, 1, 0);
  n->failed = shoal_node_hear_end(m, is_alone(n) ? &n->config->notes : &nobody, &n->error);
}

/* Why who says HELLO here is at the wrong place; false: it is not. Workers say which parameter server they
 * want, and of which job (docs/wire.md); others look for a chief. */
static bool is_refused(const node *n, const shoal_message *m, char why[SHOAL_NODE_TEXT_MAX]) {
  bool wants_chief = m->count != SHOAL_ROLE_WORKER || m->round == 0;
  bool other_job = n->owner != NULL && m->round != n->keep.job_digest;
  bool other_chief =
      n->chief.open && n->chief_instance != 0 && m->lease != 0 && m->lease != n->chief_instance;
  if (wants_chief)
    snprintf(why, SHOAL_NODE_TEXT_MAX, "this is ps %u, not the chief", n->config->slice);
  else if (m->slice != n->config->slice)
    snprintf(why, SHOAL_NODE_TEXT_MAX, "this is ps %u, not ps %u", n->config->slice, m->slice);
  else if (other_job || other_chief)
    snprintf(why, SHOAL_NODE_TEXT_MAX, "this is ps %u of another training, whose chief is at %.100s",
             n->config->slice, n->config->chief);
  return wants_chief || m->slice != n->config->slice || other_job || other_chief;
}

/* Whether a worker only has not heard yet that the chief beside this parameter server is a new one: it will, and comes
 * again. */
static bool is_behind(const node *n, const shoal_message *m) {
  return !is_alone(n) && n->owner != NULL && m->count == SHOAL_ROLE_WORKER && m->slice == n->config->slice &&
         m->round == n->keep.job_digest;
}

static void hear_hello(node *n, uint64_t peer, const shoal_message *m) {
  char why[SHOAL_NODE_TEXT_MAX], name[SHOAL_NODE_TEXT_MAX];
  if (!is_refused(n, m, why)) return;
  shoal_node_text(m, name);
  if (!is_behind(n, m) && shoal_told_is_due(&n->refusals, name, why, shoal_clock_seconds()))
    shoal_note(&n->config->notes, "refused %.64s at %s: %s", name, shoal_net_address(n->net, peer), why);
  shoal_net_send(n->net, peer, shoal_node_refuse(why));
}

static void hear_chief(node *n, shoal_message *m) {
  if (m->kind == SHOAL_MSG_REFUSE) {
    char said[SHOAL_NODE_TEXT_MAX], reason[SHOAL_NODE_TEXT_MAX + SHOAL_ADDRESS_MAX + 16];
    shoal_node_text(m, said);
    snprintf(reason, sizeof reason, "%s refuses: %s", n->config->chief, said);
    if (m->count != SHOAL_REFUSED_FOR_NOW) {
      fail(n, shoal_fail(&n->error, SHOAL_INVALID, "the chief at %s", reason));
      return;
    }
    shoal_line_say_waiting(&n->chief, "the chief", reason, true, &n->config->notes, shoal_clock_seconds());
    shoal_line_refused(&n->chief, n->net);
  }
  if (m->kind == SHOAL_MSG_END) hear_end(n, m);
  if (m->kind == SHOAL_MSG_WELCOME) take_welcome(n, m);
}

static void received(void *self, uint64_t peer, shoal_message *m) {
  node *n = self;
  bool from_chief = shoal_line_heard(&n->chief, peer, shoal_clock_seconds());
  if (from_chief) hear_chief(n, m);
  if (!from_chief && m->kind == SHOAL_MSG_HELLO) hear_hello(n, peer, m);
  bool beat = m->kind == SHOAL_MSG_BEAT; /* which says nothing to the core */
  if (beat && !from_chief) shoal_net_send(n->net, peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
  if (n->owner != NULL && n->failed == SHOAL_OK && !beat)
    shoal_owner_receive(n->owner, peer, m);
  else
    shoal_message_release(m);
  post(n);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  node *n = self;
  double now = shoal_clock_seconds();
  if (!n->ended && shoal_node_is_hopeless(n->net, peer, &n->chief, "the chief", reason, &n->error))
    fail(n, n->error.status);
  else if (peer == n->chief.peer && !n->ended)
    shoal_line_say_closed(&n->chief, "the chief", reason, true, &n->config->notes, now);
  shoal_line_closed(&n->chief, peer, now);
  if (n->owner == NULL) return;
  shoal_owner_gone(n->owner, peer);
  post(n);
}

/* Tells the chief, and people, that this parameter server goes before the training is over. */
static void leave(node *n, shoal_status status) {
  bool stopped = status == SHOAL_OK && !n->ended;
  if (!is_alone(n) || (!stopped && (n->failed == SHOAL_OK || n->failed == SHOAL_STOPPED))) return;
  if (stopped) shoal_note(&n->config->notes, "stopped");
  n->ended = true;
  if (n->chief.open) shoal_node_leave(n->net, &n->chief, n->failed != SHOAL_OK ? n->error.text : "");
}

shoal_status shoal_owner_node_run(const shoal_owner_node_config *config, shoal_error *err) {
  node n = {.config = config, .keep = {.folder = config->folder}, .keep_lock = SHOAL_KEEP_UNLOCKED};
  char who[24];
  snprintf(who, sizeof who, "ps%u", config->slice);
  n.keep.who = who;
  const shoal_net_calls calls = {&n, opened, received, closed, NULL};
  shoal_net_config net = shoal_node_net(&calls, CONNECTIONS_MAX, config->certificate, config->key);
  shoal_status status = shoal_make_folder(config->folder, err);
  if (status == SHOAL_OK) status = shoal_net_create(&n.net, &net, err);
  if (status != SHOAL_OK) return status;
  uint16_t port;
  status = shoal_net_listen(n.net, config->listen, &port, err);
  if (status == SHOAL_OK && is_alone(&n)) shoal_note(&config->notes, "listening on %s", config->listen);
  shoal_line_init(&n.chief, config->chief, shoal_clock_seconds());
  while (status == SHOAL_OK && !n.ended && !__atomic_load_n(config->stop, __ATOMIC_RELAXED)) {
    double now = shoal_clock_seconds();
    shoal_line_tick(&n.chief, n.net, &config->way, now);
    shoal_net_run(n.net, fmin(shoal_node_turn_s, fmax(0, shoal_line_next(&n.chief) - now)));
    if (!n.chief.open && now - n.chief.down_since > SHOAL_LINE_GIVE_UP_S)
      status = shoal_fail(err, SHOAL_IO, "no chief at %s for %d minutes; giving up", config->chief,
                          SHOAL_LINE_GIVE_UP_S / 60);
  }
  leave(&n, status);
  if (n.failed != SHOAL_OK) {
    status = n.failed;
    if (err != NULL) *err = n.error;
  }
  shoal_net_destroy(n.net);
  forget_job(&n);
  return status;
}
