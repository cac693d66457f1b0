/* owner_node.c: see owner_node.h. */
#include "net/owner_node.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "net/job.h"
#include "net/keep.h"
#include "proto/chief.h"
#include "proto/owner.h"

enum { CONNECTIONS_MAX = 4096 };
static const uint64_t PAYLOAD_MAX = (uint64_t)4 << 30;
static const double HELLO_S = 10, STALL_S = 60, TURN_S = 0.25;

typedef struct node {
  const shoal_owner_node_config *config;
  shoal_net *net;
  shoal_line chief;
  double said_at; /* that there is no chief; 0: not said */
  bool refused;   /* by the chief, on this connection */
  /* What the chief told, and what follows from it. */
  shoal_text job_text;
  shoal_job job;
  shoal_model *model;
  shoal_graph *graph;
  shoal_run *runs;
  shoal_slice slice;
  shoal_owner *owner;
  shoal_keep keep;
  bool ended;
  shoal_status failed;
  shoal_error error;
} node;

/* ---- the job ---- */

static void forget_job(node *n) {
  shoal_owner_destroy(n->owner);
  free(n->runs);
  shoal_graph_destroy(n->graph);
  shoal_model_destroy(n->model);
  shoal_job_release(&n->job);
  shoal_text_release(&n->job_text);
  n->owner = NULL;
  n->runs = NULL;
  n->graph = NULL;
  n->model = NULL;
}

static shoal_status cut_slice(node *n, shoal_error *err) {
  size_t runs_count = shoal_optimizer_runs(n->graph, NULL);
  shoal_slice *slices = calloc(n->job.owners_count, sizeof *slices);
  n->runs = calloc(runs_count, sizeof *n->runs);
  if (slices == NULL || n->runs == NULL) {
    free(slices);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the job");
  }
  shoal_optimizer_runs(n->graph, n->runs);
  shoal_slices_cut(n->runs, runs_count, n->graph->weights_count, n->job.owners_count, slices);
  n->slice = slices[n->config->slice];
  free(slices);
  return SHOAL_OK;
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
  if (status == SHOAL_OK) status = cut_slice(n, err);
  if (status != SHOAL_OK) return status;
  uint64_t digest = shoal_job_digest(&n->job);
  shoal_owner_config config = {.graph = n->graph,
                               .kernels = kernels,
                               .runs = n->runs,
                               .slice = n->slice,
                               .slice_index = n->config->slice,
                               .parts = n->job.parts,
                               .rounds = n->job.rounds,
                               .job_digest = digest,
                               .mode = n->job.mode};
  n->keep.job_digest = digest;
  return shoal_owner_create(&n->owner, &config, err);
}

/* ---- the disk ---- */

static uint32_t pieces_of(const node *n, shoal_piece pieces[3]) {
  const shoal_owner_state *state = shoal_owner_state_of(n->owner);
  float *floats[3] = {state->weights, state->slot1, state->slot2};
  uint32_t count = 0;
  while (count < 3 && floats[count] != NULL) {
    pieces[count] = (shoal_piece){floats[count], n->slice.count * sizeof(float)};
    count++;
  }
  return count;
}

/* A record that cannot be written is tried again a little later; until then the round waits. */
static void save(node *n) {
  shoal_piece pieces[3];
  uint32_t count = pieces_of(n, pieces);
  uint64_t version = shoal_owner_state_of(n->owner)->version;
  shoal_error err;
  if (shoal_keep_write(&n->keep, version, pieces, count, &err) != SHOAL_OK) {
    shoal_note(&n->config->notes, "cannot keep round %llu: %s; trying again", (unsigned long long)version,
               err.text);
    shoal_clock_sleep(1);
    return;
  }
  shoal_keep_only(&n->keep, shoal_owner_safe(n->owner), version);
  shoal_owner_saved(n->owner);
}

static void restore(node *n, uint64_t version) {
  shoal_piece pieces[3];
  uint32_t count = pieces_of(n, pieces);
  bool found = shoal_keep_read(&n->keep, version, pieces, count, NULL) == SHOAL_OK;
  /* Later ones belong to a past that did not happen. */
  shoal_keep_only(&n->keep, 0, version);
  shoal_owner_restored(n->owner, found);
}

/* ---- the network ---- */

static void post(node *n) {
  shoal_letter letter;
  uint64_t version;
  if (n->owner == NULL) return;
  if (shoal_owner_restore(n->owner, &version)) restore(n, version);
  if (shoal_owner_save(n->owner)) save(n);
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
  if (!shoal_line_opened(&n->chief, peer, shoal_clock_seconds())) return;
  n->refused = false;
  say_hello(n);
}

static void fail(node *n, shoal_status status) {
  n->failed = status;
  n->ended = true;
}

static void hear_chief(node *n, shoal_message *m) {
  const char *text = m->payload != NULL ? (const char *)shoal_blob_bytes(m->payload) : "";
  size_t length = m->payload != NULL ? shoal_blob_length(m->payload) : 0;
  if (m->kind == SHOAL_MSG_REFUSE) {
    char reason[256];
    snprintf(reason, sizeof reason, "it refuses: %.*s", (int)(length < 200 ? length : 200), text);
    n->refused = true;
    shoal_line_say_missing("the chief", reason, &n->config->notes, &n->said_at, shoal_clock_seconds());
    shoal_line_refused(&n->chief, n->net);
  }
  if (m->kind == SHOAL_MSG_END) {
    n->ended = true;
    if (n->owner != NULL) shoal_keep_only(&n->keep, 1, 0);
  }
  if (m->kind == SHOAL_MSG_WELCOME && n->said_at != 0) {
    shoal_note(&n->config->notes, "the chief is here");
    n->said_at = 0;
  }
  bool same = n->job_text.length == length && length > 0 && memcmp(n->job_text.bytes, text, length) == 0;
  if (m->kind == SHOAL_MSG_WELCOME && !same) {
    shoal_status status = learn_job(n, text, length, &n->error);
    if (status != SHOAL_OK) fail(n, status);
  }
}

static void received(void *self, uint64_t peer, shoal_message *m) {
  node *n = self;
  bool from_chief = shoal_line_heard(&n->chief, peer, shoal_clock_seconds());
  if (from_chief) hear_chief(n, m);
  if (m->kind == SHOAL_MSG_BEAT && !from_chief)
    shoal_net_send(n->net, peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
  if (n->owner != NULL && n->failed == SHOAL_OK)
    shoal_owner_receive(n->owner, peer, m);
  else
    shoal_message_release(m);
  post(n);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  node *n = self;
  bool was_open = n->chief.open;
  double now = shoal_clock_seconds();
  if (shoal_line_closed(&n->chief, peer, now) && !n->ended) {
    if (was_open && !n->refused)
      shoal_note(&n->config->notes, "lost the chief: %s; trying again", reason);
    else if (!n->refused)
      shoal_line_say_missing("the chief", reason, &n->config->notes, &n->said_at, now);
  }
  if (n->owner != NULL) shoal_owner_gone(n->owner, peer);
}

shoal_status shoal_owner_node_run(const shoal_owner_node_config *config, shoal_error *err) {
  node n = {.config = config, .keep = {.folder = config->folder}};
  char who[24];
  snprintf(who, sizeof who, "ps%u", config->slice);
  n.keep.who = who;
  shoal_net_config net = {.calls = {&n, opened, received, closed},
                          .payload_max = PAYLOAD_MAX,
                          .connections_max = CONNECTIONS_MAX,
                          .hello_s = HELLO_S,
                          .stall_s = STALL_S,
                          .certificate = config->certificate,
                          .key = config->key};
  shoal_status status = shoal_make_folder(config->folder, err);
  if (status == SHOAL_OK) status = shoal_net_create(&n.net, &net, err);
  if (status != SHOAL_OK) return status;
  uint16_t port;
  status = shoal_net_listen(n.net, config->listen, &port, err);
  shoal_line_init(&n.chief, config->chief, shoal_clock_seconds());
  while (status == SHOAL_OK && !n.ended && !__atomic_load_n(config->stop, __ATOMIC_RELAXED)) {
    double now = shoal_clock_seconds();
    shoal_line_tick(&n.chief, n.net, &config->way, now);
    post(&n);
    shoal_net_run(n.net, fmin(TURN_S, fmax(0, shoal_line_next(&n.chief) - now)));
    if (!n.chief.open && now - n.chief.down_since > SHOAL_LINE_GIVE_UP_S)
      status = shoal_fail(err, SHOAL_IO, "no chief at %s for %d minutes; giving up", config->chief,
                          SHOAL_LINE_GIVE_UP_S / 60);
  }
  if (n.failed != SHOAL_OK) {
    status = n.failed;
    if (err != NULL) *err = n.error;
  }
  shoal_net_destroy(n.net);
  forget_job(&n);
  return status;
}
