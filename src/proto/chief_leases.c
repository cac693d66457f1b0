/* chief_leases.c: see chief.h: who gets which unit.
 *
 * A unit is a node of a round's tree: number round * parts + first part. Rounds are offered when a worker has
 * nothing else to do, the rounds version .. version + stale at most (in async mode, where a round is one
 * unit, as many as there is room for); how wide the round's nodes are is decided then. */
#include <string.h>

#include "base/assert.h"
#include "nn/tree.h"
#include "proto/chief_internal.h"

enum { HOLDERS_TOLD_MAX = 8 };
static const double LATE_AGAIN_S = 60; /* of a worker that is late every few rounds it is told so often */

/* Whether an owner has made a version of which a part was not reported: its worker was lost between
 * the two. Nobody can compute that part again, since the version that it starts from is gone. (In async
 * mode any version will do.) */
bool shoal_chief_unreported(const shoal_chief *c) {
  if (c->config.mode.kind == SHOAL_ASYNC) return false;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].applied > c->now.version) return true;
  return false;
}

/* The oldest version that a unit of this round may be computed from. */
static uint64_t version_for(const shoal_chief *c, uint64_t round) {
  if (c->config.mode.kind == SHOAL_ASYNC) return 0;
  return round > c->config.mode.stale ? round - c->config.mode.stale : 0;
}

/* How wide a round's units are: such that the last worker is done soonest, if all are equal; of
 * those the widest, since every unit costs a transfer. */
static uint32_t choose_width(const shoal_chief *c) {
  uint32_t parts = c->config.parts, workers = shoal_chief_workers(c), best = 1, best_time = UINT32_MAX;
  if (c->config.mode.kind == SHOAL_LOCAL) return 1; /* changes of the weights are no sums */
  /* Who keeps to its lane, and rules that compare contributions, want them apart. */
  if (c->config.single || c->config.leases.lanes > 0) return 1;
  if (c->config.mode.kind == SHOAL_ASYNC) workers = 1;
  if (workers == 0) workers = 1;
  for (uint32_t width = 1;; width *= 2) {
    uint32_t units = (parts + width - 1) / width, turns = (units + workers - 1) / workers;
    uint32_t time = turns * (width < parts ? width : parts);
    if (time <= best_time) {
      best = width;
      best_time = time;
    }
    if (width >= parts) return best;
  }
}

/* Nothing of the next epoch before the driver has had this one's end. */
static bool may_offer(const shoal_chief *c) {
  return !c->rest_wanted && c->offered < c->now.version + c->window &&
         c->offered < shoal_chief_epoch_end(c) && c->offered < c->config.end;
}

static void offer(shoal_chief *c) {
  open_round *round = shoal_chief_round_of(c, c->offered);
  round->width = choose_width(c);
  for (uint32_t first = 0; first < c->config.parts; first += round->width) {
    bool room = shoal_lease_offer(c->book, c->offered * c->config.parts + first);
    SHOAL_ASSERT(room);
  }
  c->offered++;
  c->begun = true;
}

/* The recurrent state that parts of a round start from; zeros at the start of an epoch. */
static shoal_blob *carry_for(const shoal_chief *c, uint64_t round, uint32_t first, uint32_t count) {
  if (c->carry == NULL || round % c->config.rounds == 0) return NULL;
  return shoal_blob_of(c->carry + first * c->config.carry_floats,
                       count * c->config.carry_floats * sizeof(float));
}

/* Says who is late when a unit is leased again. */
static void tell_late(shoal_chief *c, const shoal_lease *lease) {
  uint64_t workers[HOLDERS_TOLD_MAX];
  uint32_t count = shoal_lease_holders(c->book, lease->unit, workers, HOLDERS_TOLD_MAX);
  for (uint32_t i = 0; i < count; i++) {
    peer_entry *peer = shoal_chief_find(c, workers[i]);
    bool known =
        peer == NULL || peer->late || (peer->late_since > 0 && c->time < peer->late_since + LATE_AGAIN_S);
    if (known || workers[i] == lease->worker) continue;
    peer->late = true;
    peer->late_since = c->time;
    shoal_chief_tell_of(c, SHOAL_CHIEF_LATE, peer, "");
  }
}

void shoal_chief_not_late(shoal_chief *c, peer_entry *worker) {
  if (!worker->late) return;
  shoal_chief_event event = {
      .kind = SHOAL_CHIEF_AGAIN, .peer = worker->peer, .seconds = c->time - worker->late_since, .text = ""};
  memcpy(event.name, worker->name, sizeof event.name);
  worker->late = false;
  shoal_chief_tell(c, event);
}

uint32_t shoal_chief_count_of(shoal_chief *c, uint64_t unit) {
  return shoal_tree_count(c->config.parts, (uint32_t)(unit % c->config.parts),
                          shoal_chief_round_of(c, unit / c->config.parts)->width);
}

/* Something to check, in a guarded training. */
static bool find_check(shoal_chief *c, const peer_entry *worker, shoal_lease *lease) {
  uint64_t unit;
  return c->guard != NULL && shoal_guard_wants(c->guard, worker->who, c->time, &unit) &&
         shoal_lease_join(c->book, worker->peer, unit, c->time, lease);
}

/* The auditor gets what is to be checked, and nothing else; others get that when there is nothing new to do.
 * */
static bool find_work(shoal_chief *c, const peer_entry *worker, shoal_lease *lease) {
  if (worker->auditor) return find_check(c, worker, lease);
  if (c->guard != NULL && !shoal_guard_may_have(c->guard, worker->who)) return false;
  if (!shoal_lease_has_free(c->book) && may_offer(c)) offer(c);
  bool again = !shoal_lease_has_free(c->book);
  /* With lanes who checks another's unit would have to fetch its data: that is left to the auditor. */
  if (again && c->config.leases.lanes == 0 && find_check(c, worker, lease)) return true;
  if (!shoal_lease_take(c->book, worker->peer, c->time, lease)) return false;
  if (again) tell_late(c, lease);
  return true;
}

static bool serve_one(shoal_chief *c, peer_entry *worker) {
  shoal_lease lease;
  if (!find_work(c, worker, &lease)) return false;
  uint64_t round = lease.unit / c->config.parts, ticket = lease.id;
  uint32_t first = (uint32_t)(lease.unit % c->config.parts), count = shoal_chief_count_of(c, lease.unit);
  shoal_guard_end end = shoal_chief_guard_end(c, lease.unit);
  if (c->guard != NULL) ticket = shoal_guard_leased(c->guard, &lease, count, worker->who, &end);
  if (ticket == 0) {
    shoal_lease_return(c->book, lease.id, worker->peer);
    return false;
  }
  shoal_chief_set_wants(c, worker, worker->wants - 1);
  shoal_chief_say(c, worker->peer,
                  (shoal_message){.kind = SHOAL_MSG_LEASE,
                                  .lease = ticket,
                                  .round = round,
                                  .shard = first,
                                  .count = count,
                                  .version = version_for(c, round),
                                  .payload = carry_for(c, round, first, count)});
  return true;
}

/* Whether there may be something for somebody. */
static bool may_lease(const shoal_chief *c) {
  return may_offer(c) || shoal_lease_has_any(c->book, c->time) || c->guard != NULL;
}

/* Everybody gets one before anybody gets two. What owners have made already needs nobody's work: a
 * report is on its way, or was lost. */
void shoal_chief_serve(shoal_chief *c) {
  if (c->paused || c->ended || !shoal_chief_running(c) || shoal_chief_unreported(c)) return;
  for (bool served = true; served;) {
    served = false;
    for (uint32_t i = 0; i < c->peers_count && c->wanting > 0 && may_lease(c); i++)
      if (c->peers[i].wants > 0) served |= serve_one(c, &c->peers[i]);
  }
}
