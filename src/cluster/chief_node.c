/* chief_node.c: see chief_node.h.
 *
 * The thread inside has the core, the network and the disk. The caller's side and it share what
 * stands under the lock: a queue of news, the wish for a gathering, and a copy of the peers.
 *
 *   gathering   NOT_WANTED -> WANTED by the caller -> PULLING when the core rests -> GATHERED when
 *               all slices are in -> NOT_WANTED by the caller, who has copied them; then the core
 *               goes on */
#include "cluster/chief_node.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/human.h"
#include "base/secret.h"
#include "cluster/keep.h"
#include "cluster/node.h"
#include "cluster/shares.h"
#include "wire/line.h"

enum { BANNED_AT_ONCE = 64, STANDINGS_TOLD_MAX = 64 };
enum { PEERS_SHOWN_MAX = 1024, NEWS_TEXT_MAX = 512, RECORD = 0, CONNECTIONS_BESIDE = 4096 };
static const double LOST_S = 5, FLUSH_S = 3;
static const double QUIET_S = 4.5, QUIET_AGAIN_S = 30; /* when nothing happens, say why: before LOST_S */
static const double SILENT_S = 3;                      /* beats are more frequent */
static const double RECORD_AGAIN_S = 1;                /* when the disk takes nothing */
/* How long gathering may take; after a signal, with all here who are needed and without. */
static const double GATHER_S = SHOAL_LINE_GIVE_UP_S, GATHER_STOPPED_S = 60, MISSING_S = 2;
static const shoal_lease_rules LEASES = {.holders_max = 3, .patience = 3, .first_s = 60, .least_s = 1};

typedef enum news_kind { NEWS_ROUND, NEWS_NOTE, NEWS_WARNING, NEWS_FAILED } news_kind;

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
  shoal_shares shares;
  uint32_t slots;      /* vectors beside the weights that owners have */
  size_t carry_floats; /* recurrent state of a part that the chief has; 0: none */
  uint64_t went_on;

  /* The thread's own. */
  shoal_net *net;
  shoal_chief *chief;
  shoal_keep keep;
  int keep_lock;
  bool *not_kept;         /* the last record of each parameter server, then the chief's; and that was said */
  bool record_due;        /* the last version that is safe is not in the chief's record */
  shoal_chief_state last; /* that was to be in it */
  double record_at;       /* when writing it is tried again */
  float *gathered[3];     /* weights and slots, while they come; the caller's once GATHERED */
  bool *arrived;
  bool started, resting, pulling;
  uint64_t rest_version;
  shoal_sums rest_sums;
  double progress_at, said_at; /* when a round was last closed, and why none was */
  double peers_at;
  bool waited;                     /* and that was said */
  char waited_for[SHOAL_NAME_MAX]; /* for somebody who was silent; "" for anything else */
  shoal_told refusals;
  shoal_chief_guard guard;
  uint64_t banned[BANNED_AT_ONCE]; /* peers whose connections end once they have been told why */
  uint32_t banned_count;

  /* Shared. */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  news *news;
  size_t news_first, news_count, news_size;
  shoal_error given_up; /* what shoal_chief_node_fail was told first; SHOAL_OK: nothing */
  gathering gathering;
  uint64_t gathered_version; /* what was gathered, beside the weights and slots */
  shoal_sums gathered_sums;
  float *gathered_carry;
  shoal_chief_state base; /* of the trainer's state: where all can go back to */
  float *base_carry;
  uint64_t safe_version; /* that is on all disks */
  bool base_undone;      /* all have gone back from there, since somebody lied: it is no place to go to */
  bool goes_on;          /* the caller has what it wanted of a rest */
  bool quit;
  bool complete;                  /* all parameter servers are here, and workers to finish the round */
  shoal_chief_peer *peers, *past; /* who is here, and who was */
  uint32_t peers_count, past_count;
  uint64_t units, checks, rejected;             /* of audits */
  shoal_standing standings[STANDINGS_TOLD_MAX]; /* that the core is to be told */
  uint32_t standings_count;
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

__attribute__((format(printf, 3, 4))) static void tell_text(shoal_chief_node *n, news_kind kind,
                                                            const char *format, ...) {
  news item = {.kind = kind};
  va_list list;
  va_start(list, format);
  vsnprintf(item.text, sizeof item.text, format, list);
  va_end(list);
  tell(n, &item);
}

/* ---- the disk ---- */

static bool quits(shoal_chief_node *n) {
  pthread_mutex_lock(&n->lock);
  bool quit = n->quit;
  pthread_mutex_unlock(&n->lock);
  return quit;
}

/* Of the recurrent state of all parts. */
static size_t carry_bytes(const shoal_chief_node *n) {
  return n->config.job->parts * n->carry_floats * sizeof(float);
}

/* A record could not be written, a parameter server's or the chief's: said once, until all are. */
static void say_not_kept(shoal_chief_node *n, uint32_t slice, uint64_t version, const char *why) {
  char who[32] = "the chief";
  if (slice < n->config.job->owners_count) snprintf(who, sizeof who, "ps %u", slice);
  if (n->not_kept[slice]) return;
  n->not_kept[slice] = true;
  tell_text(n, NEWS_WARNING,
            "%s cannot keep round %s: %s; the training continues and will try again, but a crash would "
            "take it back to round %s",
            who, shoal_human_count(version).text, why, shoal_human_count(n->safe_version).text);
}

static void say_kept(shoal_chief_node *n, uint64_t version) {
  bool said = false;
  for (uint32_t i = 0; i <= n->config.job->owners_count; i++) {
    said |= n->not_kept[i];
    n->not_kept[i] = false;
  }
  if (said)
    tell_text(n, NEWS_WARNING, "there is room again: round %s is kept", shoal_human_count(version).text);
}

/* Writes the last state that the core told. */
static shoal_status write_record(shoal_chief_node *n, shoal_error *err) {
  const float *carry = shoal_chief_safe_carry(n->chief);
  shoal_blob *memory = shoal_chief_memory(n->chief);
  const shoal_keep_piece pieces[] = {
      {&n->last, sizeof n->last},
      {(void *)(uintptr_t)carry, carry_bytes(n)},
      {memory != NULL ? shoal_blob_bytes(memory) : NULL, memory != NULL ? shoal_blob_length(memory) : 0}};
  shoal_status status = shoal_keep_write(&n->keep, RECORD, pieces, 3, err);
  shoal_blob_release(memory);
  n->record_due = status != SHOAL_OK;
  n->record_at = shoal_clock_seconds() + RECORD_AGAIN_S;
  if (status != SHOAL_OK) return status;
  shoal_chief_recorded(n->chief, n->last.version);
  pthread_mutex_lock(&n->lock);
  n->safe_version = n->last.version;
  pthread_mutex_unlock(&n->lock);
  return SHOAL_OK;
}

/* Where the disk does not take it, what belongs to the record that is there stays too. */
static void keep_safe(shoal_chief_node *n) {
  shoal_error err;
  if (write_record(n, &err) == SHOAL_OK)
    say_kept(n, n->last.version);
  else
    say_not_kept(n, n->config.job->owners_count, n->last.version, err.text);
}

/* Nothing may be sent before this is on disk, or a generation could come twice. */
static void keep_generation(shoal_chief_node *n) {
  shoal_error err;
  bool waits = false;
  while (write_record(n, &err) != SHOAL_OK && !quits(n)) {
    if (!waits)
      tell_text(n, NEWS_WARNING, "cannot keep the state of the training: %s; waiting until there is room",
                err.text);
    waits = true;
    pthread_mutex_lock(&n->lock);
    n->complete = false; /* nobody is asked for anything now */
    pthread_mutex_unlock(&n->lock);
    shoal_clock_sleep(RECORD_AGAIN_S);
  }
  if (waits && !n->record_due) tell_text(n, NEWS_WARNING, "there is room again: the training continues");
}

/* ---- going back ---- */

/* The slice's weights, then its slots, of the trainer's state; in local mode the outer momentum is
 * zero. */
static void give(shoal_chief_node *n, uint32_t s) {
  const shoal_slice *slice = &n->shares.slices[s];
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
  bool undone = n->base_undone;
  if (undone) {
    /* nothing that is here can be believed */
  } else if (event->version == base)
    give(n, event->slice);
  else
    shoal_chief_fall_back(n->chief, &n->base, n->base_carry, shoal_clock_seconds());
  pthread_mutex_unlock(&n->lock);
  if (undone) {
    shoal_error err;
    shoal_fail(
        &err, SHOAL_IO,
        "ps %u has lost what it kept, after a worker had lied: what it did since cannot be undone without; "
        "start the training again",
        event->slice);
    shoal_chief_node_fail(n, &err);
  } else if (event->version != base)
    tell_text(n, NEWS_NOTE, "ps %u has lost what it kept of round %s; going back to round %s", event->slice,
              shoal_human_count(event->version).text, shoal_human_count(base).text);
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
  shoal_standing standings[STANDINGS_TOLD_MAX];
  uint32_t standings_count = n->standings_count;
  memcpy(standings, n->standings, standings_count * sizeof *standings);
  n->standings_count = 0;
  bool wanted = n->gathering == WANTED, begin = wanted && n->resting;
  if (begin) n->gathering = PULLING;
  n->goes_on = false;
  pthread_mutex_unlock(&n->lock);
  for (uint32_t i = 0; i < standings_count; i++)
    shoal_chief_set_standing(n->chief, &standings[i], shoal_clock_seconds());
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
  n->past_count = 0;
  while (n->past_count < PEERS_SHOWN_MAX &&
         shoal_chief_past_at(n->chief, n->past_count, &n->past[n->past_count]))
    n->past_count++;
  n->complete = shoal_chief_running(n->chief) && shoal_chief_workers(n->chief) > 0;
  shoal_chief_audits(n->chief, &n->units, &n->checks, &n->rejected);
  pthread_mutex_unlock(&n->lock);
}

/* All weights are in: the caller may have them. */
static void hand_over(shoal_chief_node *n) {
  pthread_mutex_lock(&n->lock);
  n->gathered_version = n->rest_version;
  n->gathered_sums = n->rest_sums;
  if (n->carry_floats > 0) memcpy(n->gathered_carry, shoal_chief_carry(n->chief), carry_bytes(n));
  n->gathering = GATHERED;
  pthread_cond_broadcast(&n->changed);
  pthread_mutex_unlock(&n->lock);
}

static void take_weights(shoal_chief_node *n, const shoal_message *m) {
  uint32_t s = m->slice;
  if (s >= n->config.job->owners_count || m->payload == NULL || n->arrived[s]) return;
  const shoal_slice *slice = &n->shares.slices[s];
  size_t bytes = slice->count * sizeof(float);
  if (m->version != n->rest_version || m->generation != shoal_chief_generation(n->chief) ||
      shoal_blob_length(m->payload) != (1 + n->slots) * bytes)
    return;
  for (uint32_t i = 0; i <= n->slots; i++)
    memcpy(n->gathered[i] + slice->offset, shoal_blob_bytes(m->payload) + i * bytes, bytes);
  n->arrived[s] = true;
  for (uint32_t other = 0; other < n->config.job->owners_count; other++)
    if (!n->arrived[other]) return;
  n->pulling = false;
  copy_peers(n, shoal_clock_seconds());
  hand_over(n);
}

/* ---- what the core tells ---- */

static void handle_peer_event(shoal_chief_node *n, const shoal_chief_event *event) {
  switch (event->kind) {
  case SHOAL_CHIEF_JOINED:
    tell_text(n, NEWS_NOTE, "%s is here", event->name);
    if (event->twin)
      tell_text(n, NEWS_NOTE, "there are two of the name %s now, the second at %s; was it started twice?",
                event->name, shoal_net_address(n->net, event->peer));
    break;
  case SHOAL_CHIEF_REFUSED:
    if (shoal_told_is_due(&n->refusals, event->name, event->text, shoal_clock_seconds()))
      tell_text(n, NEWS_NOTE, "refused %s at %s: %s", event->name, shoal_net_address(n->net, event->peer),
                event->text);
    break;
  case SHOAL_CHIEF_LEFT:
    tell_text(n, NEWS_NOTE, "%s left%s%s", event->name, event->text[0] != 0 ? ": " : "", event->text);
    shoal_net_close(n->net, event->peer, "it left");
    break;
  case SHOAL_CHIEF_LOST:
    tell_text(n, NEWS_NOTE, "lost %s: %s", event->name, event->text);
    shoal_net_close(n->net, event->peer, event->text); /* it may be only silent; when it is back, it dials */
    break;
  case SHOAL_CHIEF_LATE:
    tell_text(n, NEWS_NOTE, "%s is late; another takes over its unit", event->name);
    break;
  case SHOAL_CHIEF_AGAIN:
    tell_text(n, NEWS_NOTE, "%s answers again after %.0f s", event->name, event->seconds);
    break;
  case SHOAL_CHIEF_DIFFERS:
    tell_text(n, NEWS_NOTE, "%s computed something else than another worker did; it was not used",
              event->name);
    break;
  case SHOAL_CHIEF_REJECTED:
    tell_text(n, NEWS_NOTE, "a contribution of %s was not used as it was: %s", event->name, event->text);
    break;
  case SHOAL_CHIEF_BANNED:
    if (n->config.recheck > 0)
      tell_text(n, NEWS_NOTE,
                "%s is dismissed: %s, as a second computation shows; its machine may have faulty memory",
                event->name, event->text);
    else
      tell_text(n, NEWS_NOTE, "%s is banned: %s", event->name, event->text);
    if (event->peer != 0 && n->banned_count < BANNED_AT_ONCE) n->banned[n->banned_count++] = event->peer;
    break;
  default: break;
  }
}

/* A round is finished after it was said what it waits for. */
static void say_goes_on(shoal_chief_node *n, uint64_t version) {
  if (n->waited_for[0] != 0)
    tell_text(n, NEWS_NOTE, "%s is back; round %s is finished", n->waited_for,
              shoal_human_count(version).text);
  else
    tell_text(n, NEWS_NOTE, "the training continues: round %s is finished", shoal_human_count(version).text);
  n->waited = false;
}

static void say_back(shoal_chief_node *n, const shoal_chief_event *event) {
  tell_text(n, NEWS_NOTE, "going back to round %s: %s%s%s", shoal_human_count(event->version).text,
            event->name, event->name[0] != 0 ? " " : "", event->text);
}

static void handle_event(shoal_chief_node *n, const shoal_chief_event *event) {
  news item = {.version = event->version, .round = event->sums, .epoch = event->state.epoch};
  switch (event->kind) {
  case SHOAL_CHIEF_ROUND:
    n->progress_at = n->said_at = shoal_clock_seconds();
    if (n->waited) say_goes_on(n, event->version);
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
    n->last = event->state;
    keep_generation(n);
    if (n->started) say_back(n, event);
    pthread_mutex_lock(&n->lock);
    if (event->undoes) n->base_undone |= event->version < n->base.version;
    pthread_mutex_unlock(&n->lock);
    n->started = true;
    break;
  case SHOAL_CHIEF_SAFE:
    n->last = event->state;
    keep_safe(n);
    break;
  case SHOAL_CHIEF_LACKS: handle_lack(n, event); break;
  case SHOAL_CHIEF_FAILED:
    item.kind = NEWS_FAILED;
    tell(n, &item);
    break;
  default:
    handle_peer_event(n, event);
    if (n->config.learnt != NULL && (event->kind == SHOAL_CHIEF_AUDITED || event->kind == SHOAL_CHIEF_BANNED))
      n->config.learnt(n->config.self, event);
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
  while (n->banned_count > 0) shoal_net_close(n->net, n->banned[--n->banned_count], "it is banned");
}

static void opened(void *self, uint64_t peer, const char *address) { (void)self, (void)peer, (void)address; }

static void received(void *self, uint64_t peer, shoal_message *m) {
  shoal_chief_node *n = self;
  if (n->pulling && m->kind == SHOAL_MSG_WEIGHTS && m->slice < n->config.job->owners_count &&
      shoal_chief_owner(n->chief, m->slice) == peer)
    take_weights(n, m);
  if (m->kind == SHOAL_MSG_SAVED && m->count == SHOAL_SAVED_NOT && m->slice < n->config.job->owners_count &&
      shoal_chief_owner(n->chief, m->slice) == peer) {
    char why[NEWS_TEXT_MAX / 2];
    size_t length;
    const char *text = shoal_node_payload(m, &length);
    shoal_text_plain(why, sizeof why, text, length);
    say_not_kept(n, m->slice, m->version, why);
  }
  if (m->kind == SHOAL_MSG_REFUSE) {
    char why[SHOAL_NODE_TEXT_MAX]; /* post handles at once the event that has it */
    shoal_node_text(m, why);
    shoal_chief_left(n->chief, peer, why, shoal_clock_seconds());
    post(n);
  }
  shoal_chief_receive(n->chief, peer, m, shoal_clock_seconds());
  post(n);
}

/* A message that takes longer than the silence which is allowed is a sign of life all the while. */
static void moving(void *self, uint64_t peer) {
  shoal_chief_node *n = self;
  shoal_chief_receive(n->chief, peer, &(shoal_message){.kind = SHOAL_MSG_BEAT}, shoal_clock_seconds());
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
      tell_text(n, NEWS_NOTE, "waiting for ps %u at %s", s, job->owners[s]);
  if (shoal_chief_workers(n->chief) == 0) tell_text(n, NEWS_NOTE, "waiting for a worker");
  shoal_chief_peer peer;
  for (uint32_t i = 0; shoal_chief_peer_at(n->chief, i, now, &peer); i++) {
    if (peer.held_s > QUIET_S)
      tell_text(n, NEWS_NOTE, "waiting for %s, which has had its unit for %.0f s", peer.name, peer.held_s);
    else if (peer.silent_s > SILENT_S) {
      tell_text(n, NEWS_NOTE, "waiting for %s, silent for %.0f s", peer.name, peer.silent_s);
      memcpy(n->waited_for, peer.name, sizeof n->waited_for);
    } else if (peer.rounds_behind > 0)
      tell_text(n, NEWS_NOTE, "waiting for %s, %llu rounds behind", peer.name,
                (unsigned long long)peer.rounds_behind);
  }
}

static void say_why_nothing_happens(shoal_chief_node *n, double now) {
  bool first = n->said_at == n->progress_at, nothing_to_do = n->resting && !n->pulling;
  if (nothing_to_do || now - n->said_at < (first ? QUIET_S : QUIET_AGAIN_S)) return;
  n->said_at = now;
  n->waited = shoal_chief_version(n->chief) > n->went_on || n->resting;
  n->waited_for[0] = 0;
  say_missing(n, now);
}

/* ---- the thread ---- */

static void *run(void *self) {
  shoal_chief_node *n = self;
  n->progress_at = n->said_at = shoal_clock_seconds();
  while (!quits(n)) {
    double now = shoal_clock_seconds();
    shoal_chief_tick(n->chief, now);
    post(n);
    heed_caller(n);
    post(n);
    if (n->record_due && now >= n->record_at) keep_safe(n);
    if (now - n->peers_at >= shoal_node_turn_s) {
      n->peers_at = now;
      copy_peers(n, now);
      say_why_nothing_happens(n, now);
    }
    shoal_net_run(n->net, fmin(shoal_node_turn_s, fmax(0, shoal_chief_next_tick(n->chief) - now)));
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
  state->sums = *epoch;
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
    if (out->kind != NEWS_NOTE && out->kind != NEWS_WARNING) return true;
    pthread_mutex_unlock(&n->lock);
    if (out->kind == NEWS_WARNING)
      shoal_warn(&n->config.notes, out->text);
    else
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

/* Under the lock: whether the others cannot work; err gets the reason. */
static bool is_given_up(const shoal_chief_node *n, shoal_error *err) {
  if (n->given_up.status == SHOAL_OK) return false;
  if (err != NULL) *err = n->given_up;
  return true;
}

static bool stops(const shoal_chief_node *n) {
  return __atomic_load_n(n->config.stop, __ATOMIC_RELAXED) != 0;
}

static shoal_status next(void *self, shoal_result *out, shoal_error *err) {
  shoal_chief_node *n = self;
  news item;
  pthread_mutex_lock(&n->lock);
  bool found = take_news(n, &item), given_up = false;
  while (!found && !stops(n) && !(given_up = is_given_up(n, err))) {
    wait_a_little(n);
    found = take_news(n, &item);
  }
  pthread_mutex_unlock(&n->lock);
  if (given_up) return n->given_up.status;
  if (!found) return shoal_fail(err, SHOAL_STOPPED, "stopped while waiting for a round");
  *out = shoal_trainer_result(n->config.task->trainer, &item.round);
  if (item.kind == NEWS_FAILED) return failed_in(item.version, err);
  go_to(n, item.version, &item.epoch);
  return SHOAL_OK;
}

/* Under the lock: copies what was gathered into the trainer's state. */
static void take_gathered(shoal_chief_node *n) {
  shoal_train_state *state = n->state;
  const shoal_job *job = n->config.job;
  float *parts[3] = {state->weights, state->slot1, state->slot2};
  bool local = job->mode.kind == SHOAL_LOCAL;
  for (uint32_t i = 0; i <= (local ? 0 : n->slots); i++)
    memcpy(parts[i], n->gathered[i], state->weights_count * sizeof(float));
  shoal_trainer_place(n->config.task->trainer);
  for (uint32_t part = 0; n->carry_floats > 0 && part < job->parts; part++)
    shoal_trainer_set_carry(n->config.task->trainer, part, n->gathered_carry + part * n->carry_floats);
  memcpy(n->base_carry, n->gathered_carry, carry_bytes(n));
  n->base_undone = false;
  n->base = (shoal_chief_state){.version = n->gathered_version, .epoch = n->gathered_sums};
  go_to(n, n->gathered_version, &n->gathered_sums);
}

static shoal_status not_gathered(const shoal_chief_node *n, bool stopped, bool complete, shoal_error *err) {
  static const char kept[] = "stays, and the same command continues from there";
  if (stopped && complete)
    return shoal_fail(err, SHOAL_STOPPED,
                      "the weights could not be gathered within %.0f s after the signal; what was kept in "
                      "%s %s",
                      GATHER_STOPPED_S, n->config.folder, kept);
  if (stopped)
    return shoal_fail(
        err, SHOAL_STOPPED,
        "stopped while there were no workers, or not all parameter servers; what was kept in %s %s",
        n->config.folder, kept);
  return shoal_fail(err, SHOAL_IO,
                    "the weights could not be gathered from the parameter servers within %.0f s", GATHER_S);
}

static shoal_status gather(void *self, shoal_error *err) {
  shoal_chief_node *n = self;
  const double started = shoal_clock_seconds();
  double stopped = stops(n) ? started : INFINITY, now = started;
  news item = {0};
  bool failed = false, given_up = false;
  pthread_mutex_lock(&n->lock);
  n->gathering = WANTED;
  shoal_net_wake(n->net);
  /* Rounds that are told meanwhile are part of what is gathered. */
  while (n->gathering != GATHERED && !failed && !(given_up = is_given_up(n, err)) &&
         now < started + GATHER_S && now < stopped + (n->complete ? GATHER_STOPPED_S : MISSING_S)) {
    wait_a_little(n);
    now = shoal_clock_seconds();
    if (stops(n) && isinf(stopped)) stopped = now;
    while (!failed && take_news(n, &item)) failed = item.kind == NEWS_FAILED;
  }
  bool gathered = n->gathering == GATHERED, complete = n->complete;
  while (gathered && take_news(n, &item)) {
  }
  if (gathered) take_gathered(n);
  n->gathering = NOT_WANTED;
  n->goes_on = gathered;
  pthread_mutex_unlock(&n->lock);
  shoal_net_wake(n->net);
  if (gathered) return SHOAL_OK;
  if (failed) return failed_in(item.version, err);
  if (given_up) return n->given_up.status;
  return not_gathered(n, !isinf(stopped), complete, err);
}

shoal_rounds shoal_chief_node_rounds(shoal_chief_node *n) {
  return (shoal_rounds){.self = n, .next = next, .gather = gather};
}

void shoal_chief_node_note(shoal_chief_node *n, const char *text) { tell_text(n, NEWS_NOTE, "%s", text); }

void shoal_chief_node_fail(shoal_chief_node *n, const shoal_error *err) {
  pthread_mutex_lock(&n->lock);
  if (n->given_up.status == SHOAL_OK) n->given_up = *err;
  pthread_cond_broadcast(&n->changed);
  pthread_mutex_unlock(&n->lock);
}

uint64_t shoal_chief_node_went_on(const shoal_chief_node *n) { return n->went_on; }

bool shoal_chief_node_is_behind(shoal_chief_node *n, uint64_t *safe) {
  pthread_mutex_lock(&n->lock);
  *safe = n->safe_version;
  bool behind = n->safe_version < n->base.version;
  pthread_mutex_unlock(&n->lock);
  return behind;
}

uint64_t shoal_chief_node_room(const shoal_chief_node *n) {
  bool undoes = shoal_job_is_audited(n->config.job);
  uint64_t records = SHOAL_KEEP_RECORDS + (undoes ? SHOAL_SAFE_RING : 0) - (n->went_on > 0);
  return records * (1 + n->slots) * n->state->weights_count * sizeof(float) + 2 * carry_bytes(n);
}

uint64_t shoal_chief_node_key(const shoal_chief_node *n) { return n->guard.audits ? n->guard.key : 0; }

void shoal_chief_node_audits(shoal_chief_node *n, uint64_t *units, uint64_t *checks, uint64_t *rejected) {
  pthread_mutex_lock(&n->lock);
  *units = n->units;
  *checks = n->checks;
  *rejected = n->rejected;
  pthread_mutex_unlock(&n->lock);
}

/* More than a few at once are not told: they come with the next job. */
void shoal_chief_node_set_standing(shoal_chief_node *n, const shoal_standing *standing) {
  pthread_mutex_lock(&n->lock);
  if (n->standings_count < STANDINGS_TOLD_MAX) n->standings[n->standings_count++] = *standing;
  pthread_mutex_unlock(&n->lock);
  shoal_net_wake(n->net);
}

uint32_t shoal_chief_node_past(shoal_chief_node *n, shoal_chief_peer *out, uint32_t max) {
  pthread_mutex_lock(&n->lock);
  uint32_t count = n->past_count < max ? n->past_count : max;
  memcpy(out, n->past, count * sizeof *out);
  pthread_mutex_unlock(&n->lock);
  return count;
}

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
  bool local = job->mode.kind == SHOAL_LOCAL;
  n->slots = local ? 1 : shoal_optimizer_rows[graph->model->recipe.optimizer].slots;
  n->carry_floats = local ? 0 : shoal_trainer_carry_floats(n->config.task->trainer);
  shoal_status status = shoal_shares_init(&n->shares, graph, job->owners_count, err);
  if (status == SHOAL_OK) status = shoal_shares_fit(&n->shares, 1 + n->slots, shoal_node_payload_max, err);
  if (status != SHOAL_OK) return status;
  n->arrived = calloc(job->owners_count, sizeof *n->arrived);
  n->not_kept = calloc(job->owners_count + 1, sizeof *n->not_kept);
  n->peers = calloc(PEERS_SHOWN_MAX, sizeof *n->peers);
  n->past = calloc(PEERS_SHOWN_MAX, sizeof *n->past);
  n->base_carry = calloc(1, carry_bytes(n) + 1);
  n->gathered_carry = calloc(1, carry_bytes(n) + 1);
  bool ok = n->arrived != NULL && n->not_kept != NULL && n->peers != NULL && n->past != NULL &&
            n->base_carry != NULL && n->gathered_carry != NULL;
  for (uint32_t i = 0; i <= n->slots; i++) {
    n->gathered[i] = calloc(graph->weights_count, sizeof(float));
    ok &= n->gathered[i] != NULL;
  }
  return ok ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
}

/* Where the trainer's state stands, as the chief counts. */
static shoal_status find_base(shoal_chief_node *n, shoal_error *err) {
  const shoal_train_state *state = n->state;
  const shoal_job *job = n->config.job;
  if (!shoal_job_version(job, state->step, &n->base.version))
    return shoal_fail(
        err, SHOAL_INVALID,
        "mode %s cannot continue from round %llu of an epoch; take a checkpoint of the end of one",
        job->mode_text, (unsigned long long)state->round);
  n->base.epoch = state->sums;
  for (uint32_t part = 0; n->carry_floats > 0 && part < job->parts; part++)
    shoal_trainer_get_carry(n->config.task->trainer, part, n->base_carry + part * n->carry_floats);
  return SHOAL_OK;
}

/* A number that no other chief has. */
static uint64_t new_instance(void) {
  const uint64_t here[2] = {(uint64_t)getpid(), (uint64_t)(1e6 * shoal_clock_wall_seconds())};
  return shoal_digest(here, sizeof here) | 1;
}

/* Secrets are the kernel's random numbers: who can guess them can lie. */
static bool plan_guard(shoal_chief_node *n, shoal_error *err) {
  uint64_t random[3];
  if (shoal_draw(random, sizeof random, err) != SHOAL_OK) return false;
  n->guard = (shoal_chief_guard){.on = true,
                                 .audits = shoal_job_is_audited(n->config.job),
                                 .recheck = n->config.recheck,
                                 .may_end_early = n->config.task->model->recipe.early_stop > 0,
                                 .secret = {random[0], random[1]},
                                 .key = random[2] | 1,
                                 .standings = n->config.standings,
                                 .standings_count = n->config.standings_count};
  return true;
}

/* From where an earlier chief of this job left off, if one did. */
static shoal_status create_from_record(shoal_chief_node *n, shoal_chief_config *config, shoal_error *err) {
  const size_t carry_length = carry_bytes(n), memory_length = shoal_chief_memory_bytes(config);
  float *carry = calloc(1, carry_length + 1);
  void *memory = calloc(1, memory_length + 1);
  shoal_status status = SHOAL_OK;
  if (carry == NULL || memory == NULL)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  shoal_chief_state kept;
  const shoal_keep_piece pieces[] = {{&kept, sizeof kept}, {carry, carry_length}, {memory, memory_length}};
  bool found = status == SHOAL_OK && shoal_keep_read(&n->keep, RECORD, pieces, 3, NULL) == SHOAL_OK;
  if (found && kept.version >= n->base.version && kept.version <= config->end) {
    config->start = kept;
    config->carry = carry;
    config->memory = memory_length > 0 ? memory : NULL;
    n->went_on = kept.version;
  }
  n->safe_version = config->start.version;
  if (status == SHOAL_OK) status = shoal_chief_create(&n->chief, config, err);
  free(carry);
  free(memory);
  return status;
}

static shoal_status create_core(shoal_chief_node *n, shoal_error *err) {
  const shoal_job *job = n->config.job;
  const shoal_recipe *recipe = &n->config.task->model->recipe;
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
      .instance = new_instance(),
      .start = n->base,
      .carry_floats = n->carry_floats,
      .carry = n->base_carry,
  };
  config.leases.lanes = job->lanes;
  if (job->guarded && !plan_guard(n, err)) return err != NULL ? err->status : SHOAL_IO;
  config.guard = n->guard;
  config.single = job->rule.kind != SHOAL_RULE_MEAN || job->rule.bucket > 1;
  return create_from_record(n, &config, err);
}

void shoal_chief_node_destroy(shoal_chief_node *n) {
  if (n == NULL) return;
  shoal_net_destroy(n->net);
  shoal_keep_unlock(&n->keep, &n->keep_lock);
  shoal_chief_destroy(n->chief);
  shoal_text_release(&n->job_text);
  for (int i = 0; i < 3; i++) free(n->gathered[i]);
  shoal_shares_release(&n->shares);
  free(n->arrived);
  free(n->not_kept);
  free(n->peers);
  free(n->past);
  free(n->base_carry);
  free(n->gathered_carry);
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
  shoal_status status = shoal_keep_lock(&n->keep, &n->keep_lock, err);
  if (status == SHOAL_OK) status = reserve(n, err);
  if (status == SHOAL_OK) status = find_base(n, err);
  if (status == SHOAL_OK) status = create_core(n, err);
  if (status != SHOAL_OK) return status;
  const shoal_net_calls calls = {n, opened, received, closed, moving};
  shoal_net_config net =
      shoal_node_net(&calls, config->workers_max + config->job->owners_count + CONNECTIONS_BESIDE,
                     config->certificate, config->key);
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
  n->keep_lock = SHOAL_KEEP_UNLOCKED;
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

void shoal_chief_node_end(shoal_chief_node *n, shoal_chief_ending how, const char *text) {
  pthread_mutex_lock(&n->lock);
  n->quit = true;
  pthread_mutex_unlock(&n->lock);
  shoal_net_wake(n->net);
  pthread_join(n->thread, NULL);
  copy_peers(n, shoal_clock_seconds());
  bool told = how != SHOAL_ENDS_SILENTLY;
  if (told) shoal_chief_end(n->chief, how, text);
  post(n);
  /* They hang up when they have heard it. */
  shoal_chief_peer peer;
  double deadline = shoal_clock_seconds() + FLUSH_S;
  while (told && shoal_chief_peer_at(n->chief, 0, 0, &peer) && shoal_clock_seconds() < deadline)
    shoal_net_run(n->net, 0.05);
  if (how == SHOAL_ENDS_OVER || how == SHOAL_ENDS_UNBEGUN) shoal_keep_only(&n->keep, 1, 0);
}
