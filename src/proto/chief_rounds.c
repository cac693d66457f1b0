/* chief_rounds.c: see chief.h: rounds are closed, versions made safe, and all go back to one.
 *
 * Results of rounds that wait for an earlier one are kept.
 *
 * A contribution or a report that is lost on the way shows only in that nothing comes any more: owners
 * and reports stay apart. How long that may take is a guess, and a wrong one takes all back for nothing:
 * so the limit grows with what units and saves have taken, and doubles each time that it was reached. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "nn/tree.h"
#include "proto/chief_internal.h"

/* Making a version safe takes at most one part in so many of the time. */
static const double SAVING_SHARE = 30;
static const double SAVING_LOST_S = 120; /* an owner that writes may hold up its round so long */
static const double SILENT_BEATS = 1.5;  /* who has missed one does not answer */
static const double UNITS_APART = 3;     /* what is on its way may take as long as so many units */
static const double SAVES_APART = 2;     /* and as so many saves */

/* ---- going back ---- */

void shoal_chief_forget_squares(owner_entry *owner) {
  shoal_blob_release(owner->squares);
  owner->squares = NULL;
}

void shoal_chief_ask_to_restore(shoal_chief *c, uint32_t slice) {
  shoal_chief_say(c, c->owners[slice].peer,
                  (shoal_message){.kind = SHOAL_MSG_RESTORE, .version = c->now.version, .slice = slice});
}

/* The peer of a slice's owner, or NULL. */
const peer_entry *shoal_chief_owner_of(shoal_chief *c, uint32_t slice) {
  return c->owners[slice].peer != 0 ? shoal_chief_find(c, c->owners[slice].peer) : NULL;
}

const shoal_chief_state *shoal_chief_newest(const shoal_chief *c) {
  return c->rest.version > c->safe.version ? &c->rest : &c->safe;
}

void shoal_chief_go_back(shoal_chief *c, const char *name, const char *why, bool undoes) {
  uint64_t generation = c->now.generation + 1;
  if (undoes) c->rest = (shoal_chief_state){0}; /* it may rest on lies */
  const shoal_chief_state *to = shoal_chief_newest(c);
  bool resting = c->paused && to->version == c->now.version;
  c->now = *to;
  c->now.generation = c->safe.generation = generation;
  c->not_saved = UINT64_MAX;
  c->offered = c->now.version;
  c->begun = false;
  c->moved = c->time;
  c->saving = c->announced = c->ended = false;
  c->paused = resting;
  shoal_lease_forget(c->book, UINT64_MAX);
  memset(c->here, 0, (size_t)c->window * c->round_units * sizeof *c->here);
  if (c->guard != NULL) shoal_guard_back(c->guard, c->now.version);
  if (c->carry != NULL)
    memcpy(c->carry, to == &c->rest ? c->rest_carry : c->safe_carry, c->carry_count * sizeof *c->carry);
  for (uint32_t s = 0; s < c->config.owners; s++) {
    c->owners[s].ready = false;
    shoal_chief_forget_squares(&c->owners[s]);
  }
  /* What workers had is void; they ask again when they hear of the new generation. */
  for (uint32_t i = 0; i < c->peers_count; i++) {
    shoal_chief_set_wants(c, &c->peers[i], 0);
    if (c->peers[i].role == SHOAL_ROLE_WORKER)
      shoal_chief_say(c, c->peers[i].peer, (shoal_message){.kind = SHOAL_MSG_WAIT});
  }
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].peer != 0) shoal_chief_ask_to_restore(c, s);
  shoal_chief_event event = {
      .kind = SHOAL_CHIEF_BACK, .version = c->now.version, .state = c->safe, .text = why, .undoes = undoes};
  if (name != NULL) memcpy(event.name, name, sizeof event.name);
  shoal_chief_tell(c, event);
}

/* `who` is the cause, or NULL. */
void shoal_chief_go_back_for(shoal_chief *c, const peer_entry *who, const char *why) {
  shoal_chief_go_back(c, who != NULL ? who->name : NULL, why, false);
}

void shoal_chief_fall_back(shoal_chief *c, const shoal_chief_state *state, const float *carry, double now) {
  c->time = now;
  uint64_t generation = c->now.generation;
  c->safe = *state;
  c->rest = (shoal_chief_state){0};
  if (c->carry != NULL && carry != NULL) memcpy(c->safe_carry, carry, c->carry_count * sizeof *carry);
  c->now.generation = generation;
  shoal_chief_ring_cut(c);
  shoal_chief_go_back_for(c, NULL, "a parameter server has lost what it kept");
}

void shoal_chief_give(shoal_chief *c, uint32_t slice, shoal_blob *state) {
  SHOAL_ASSERT(slice < c->config.owners);
  shoal_chief_say(
      c, c->owners[slice].peer,
      (shoal_message){.kind = SHOAL_MSG_GIVE, .version = c->now.version, .slice = slice, .payload = state});
}

void shoal_chief_take_restored(shoal_chief *c, uint32_t slice, const shoal_message *m) {
  if (m->version != c->now.version) return;
  c->owners[slice].ready = m->count == 0;
  if (m->count == 0 && c->saving)
    shoal_chief_ask_to_save(c, slice); /* that it had been asked before, it has forgotten */
  c->owners[slice].applied = m->version;
  if (m->count != 0)
    shoal_chief_tell(
        c, (shoal_chief_event){.kind = SHOAL_CHIEF_LACKS, .version = c->now.version, .slice = slice});
}

/* ---- safe versions ---- */

void shoal_chief_ask_to_save(shoal_chief *c, uint32_t slice) {
  c->owners[slice].saved = false;
  shoal_chief_say(c, c->owners[slice].peer,
                  (shoal_message){.kind = SHOAL_MSG_SAVE,
                                  .version = c->saving_version,
                                  .round = c->safe.version,
                                  .slice = slice,
                                  .payload = shoal_chief_versions(c)});
}

static void start_saving(shoal_chief *c, uint64_t version) {
  c->saving = true;
  c->saving_version = version;
  for (uint32_t s = 0; s < c->config.owners; s++) shoal_chief_ask_to_save(c, s);
}

static void note_saving_state(shoal_chief *c) {
  if (!c->saving || c->saving_version != c->now.version) return;
  c->saving_since = c->time;
  c->saving_state = c->now;
  if (c->carry != NULL) memcpy(c->saving_carry, c->carry, c->carry_count * sizeof *c->carry);
}

/* Whether owners may be writing: before the chief has come to the version that is to be kept they are not
 * held up by it. */
static bool writing(const shoal_chief *c) { return c->saving && c->now.version >= c->saving_version; }

/* Returns how long it took. */
static double end_saving(shoal_chief *c) {
  double took = writing(c) ? c->time - c->saving_since : 0;
  c->saving = false;
  c->next_save = c->time + fmax(c->config.save_s, SAVING_SHARE * took);
  return took;
}

/* A version is safe when all owners have it, and the chief too has come to it. */
static void finish_saving(shoal_chief *c) {
  if (!writing(c)) return;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (!c->owners[s].saved) return;
  double took = end_saving(c);
  c->lost_s = fmax(c->config.lost_s, SAVES_APART * took);
  c->safe = c->saving_state;
  if (c->carry != NULL) memcpy(c->safe_carry, c->saving_carry, c->carry_count * sizeof *c->carry);
  shoal_chief_ring_add(c);
  shoal_chief_tell(
      c, (shoal_chief_event){.kind = SHOAL_CHIEF_SAFE, .version = c->safe.version, .state = c->safe});
}

/* A version that no owner can be past when it is asked to keep it. In async mode they may be ahead of the
 * chief by what all workers have under way. */
static uint64_t version_to_save(const shoal_chief *c) {
  uint64_t newest = c->now.version;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].applied > newest) newest = c->owners[s].applied;
  return newest + 1 + (c->config.mode.kind == SHOAL_ASYNC ? c->workers_count : c->config.mode.stale);
}

/* From time to time; what lies behind the next rest is left to it. */
static void save_sometimes(shoal_chief *c) {
  if (c->saving || c->time < c->next_save || !shoal_chief_running(c)) return;
  uint64_t version = version_to_save(c);
  if (version <= shoal_chief_epoch_end(c)) start_saving(c, version);
}

void shoal_chief_take_saved(shoal_chief *c, uint32_t slice, const shoal_message *m) {
  if (!c->saving || m->version != c->saving_version) return;
  if (m->count != 0) { /* it was too late, or the disk is full; another time */
    if (m->count == SHOAL_SAVED_NOT) c->not_saved = m->version;
    end_saving(c);
    return;
  }
  c->owners[slice].saved = true;
  finish_saving(c);
}

/* All are here for the first time. Where somebody may turn out to lie, the beginning too must be somewhere to go back
 * to. */
void shoal_chief_begin(shoal_chief *c) {
  c->next_save = c->time + c->config.save_s;
  if (!c->config.guard.audits || c->saving || c->offered > c->now.version) return;
  start_saving(c, c->now.version);
  note_saving_state(c);
}

/* ---- rounds ---- */

void shoal_chief_keep(shoal_chief *c, uint64_t number, uint32_t first, const shoal_sums *sums,
                      shoal_blob *report) {
  open_round *round = shoal_chief_round_of(c, number);
  uint32_t count = shoal_tree_count(c->config.parts, first, round->width);
  round->here[first] = true;
  round->sums[first] = *sums;
  if (c->carry == NULL) return;
  float *carry = c->config.guard.audits ? c->next_carry : c->carry;
  memcpy(carry + first * c->config.carry_floats, shoal_blob_bytes(report) + sizeof *sums,
         count * c->config.carry_floats * sizeof(float));
}

/* Closes the round at hand when all its units are in; false when they are not. */
static bool close_round(shoal_chief *c) {
  if (c->now.version == c->offered) return false;
  open_round *round = shoal_chief_round_of(c, c->now.version);
  for (uint32_t first = 0; first < c->config.parts; first += round->width)
    if (!round->here[first]) return false;
  if (c->guard != NULL && shoal_guard_disputes(c->guard, c->now.version)) return false;
  memset(round->here, 0, c->round_units * sizeof *round->here);
  if (c->carry != NULL && c->config.guard.audits)
    memcpy(c->carry, c->next_carry, c->carry_count * sizeof *c->carry);
  shoal_tree_add_sums(round->sums, c->config.parts, round->width);
  const shoal_sums sums = round->sums[0];
  if (!isfinite(sums.loss)) {
    c->ended = true;
    shoal_chief_tell(
        c, (shoal_chief_event){.kind = SHOAL_CHIEF_FAILED, .version = c->now.version, .sums = sums});
    return false;
  }
  if (c->now.version % c->config.rounds == 0) c->now.epoch = (shoal_sums){0};
  shoal_sums_add(&c->now.epoch, &sums);
  c->now.version++;
  c->moved = c->time;
  shoal_lease_forget(c->book, c->now.version * c->config.parts);
  shoal_chief_guard_close(c);
  shoal_chief_tell(c,
                   (shoal_chief_event){
                       .kind = SHOAL_CHIEF_ROUND, .version = c->now.version, .sums = sums, .state = c->now});
  note_saving_state(c);
  finish_saving(c);
  bool epoch_is_over = c->now.version % c->config.rounds == 0;
  if (c->now.version == c->offered && (epoch_is_over || c->rest_wanted)) {
    c->paused = true;
    c->announced = false;
  } else if (!epoch_is_over) {
    save_sometimes(c);
  }
  return true;
}

void shoal_chief_close_rounds(shoal_chief *c) {
  while (!c->paused && !c->ended && close_round(c)) {
  }
}

/* Clipping: with the squares of all slices the norm is known, and each owner its factor. They are
 * added run after run, as on one machine. */
void shoal_chief_take_squares(shoal_chief *c, uint32_t slice, shoal_message *m) {
  if (m->payload == NULL) return;
  shoal_chief_forget_squares(&c->owners[slice]);
  c->owners[slice].squares = m->payload;
  c->owners[slice].squares_round = m->round;
  m->payload = NULL;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].squares == NULL || c->owners[s].squares_round != m->round) return;
  double total = 0;
  for (uint32_t s = 0; s < c->config.owners; s++) {
    const double *squares = (const double *)(const void *)shoal_blob_bytes(c->owners[s].squares);
    size_t count = shoal_blob_length(c->owners[s].squares) / sizeof *squares;
    for (size_t i = 0; i < count; i++) total += squares[i];
  }
  double norm = sqrt(total);
  float scale = norm > (double)c->config.clip ? (float)((double)c->config.clip / norm) : 1;
  for (uint32_t s = 0; s < c->config.owners; s++)
    shoal_chief_say(c, c->owners[s].peer,
                    (shoal_message){.kind = SHOAL_MSG_SCALE,
                                    .round = m->round,
                                    .slice = s,
                                    .payload = shoal_blob_of(&scale, sizeof scale)});
}

/* ---- what is lost on the way ---- */

/* The first owner that has not made a version whose parts were all reported; `owners` when all have. */
static uint32_t first_behind(const shoal_chief *c) {
  uint32_t s = 0;
  while (s < c->config.owners && c->owners[s].applied >= c->now.version) s++;
  return s;
}

static bool behind(const shoal_chief *c) { return first_behind(c) < c->config.owners; }

/* How long they may be apart before that is believed. An owner tells of a version that it keeps only when
 * it has kept it. What a worker still sends to a slow owner takes about as long as what it got from there,
 * which is part of the time of its unit. */
double shoal_chief_lost_limit(const shoal_chief *c) {
  double limit = fmax(c->lost_s, UNITS_APART * shoal_lease_median(c->book));
  return writing(c) ? fmax(limit, SAVING_LOST_S) : limit;
}

/* Both happen for a moment in every round. When they last, something was lost on the way. */
double shoal_chief_apart_until(const shoal_chief *c) {
  bool apart = shoal_chief_running(c) && (behind(c) || shoal_chief_unreported(c));
  return apart ? c->moved + shoal_chief_lost_limit(c) : INFINITY;
}

/* Owners and reports have been apart for too long. An owner that is silent as well has lost nothing yet. */
void shoal_chief_go_back_apart(shoal_chief *c) {
  uint32_t slice = first_behind(c);
  c->lost_s = 2 * shoal_chief_lost_limit(c); /* or it was only slow */
  /* Perhaps an owner wrote for longer than its workers bore its silence: the training gets on first. */
  c->next_save = fmax(c->next_save, c->time + c->lost_s);
  const peer_entry *owner = slice < c->config.owners ? shoal_chief_owner_of(c, slice) : NULL;
  if (owner == NULL)
    shoal_chief_go_back_for(c, NULL, "a report was lost on the way");
  else if (c->time > owner->beat.heard + SILENT_BEATS * c->config.beat.every_s)
    shoal_chief_go_back_for(c, owner, "does not answer");
  else
    shoal_chief_go_back_for(c, owner, "did not get a contribution, or is too slow");
}

/* ---- rests ---- */

/* A rest is told when every owner has made its last version and keeps it safe. Where a disk does not take it, the
 * driver gets it from the owners' memory, and saves it where it can. */
void shoal_chief_announce(shoal_chief *c) {
  if (c->rest_wanted && !c->paused && c->now.version == c->offered) {
    c->paused = true;
    c->announced = false;
  }
  if (!c->paused || c->announced || c->ended || !shoal_chief_running(c) || behind(c)) return;
  if (c->saving && c->saving_version <= c->now.version) return;
  if (c->guard != NULL && shoal_guard_pending(c->guard)) return; /* what it finds may change the version */
  c->saving = false; /* a later version, which will not be made before the rest */
  if (c->safe.version != c->now.version && c->not_saved != c->now.version) {
    start_saving(c, c->now.version);
    note_saving_state(c);
    return;
  }
  c->announced = true;
  shoal_chief_tell(
      c, (shoal_chief_event){
             .kind = SHOAL_CHIEF_REST, .version = c->now.version, .sums = c->now.epoch, .state = c->now});
}

void shoal_chief_rest(shoal_chief *c, double now) {
  c->time = now;
  c->rest_wanted = true;
  shoal_chief_announce(c);
}

void shoal_chief_go_on(shoal_chief *c, double now) {
  c->time = now;
  if (!c->paused) return; /* what the driver has is of a version that did not stay */
  c->rest = c->now;
  if (c->carry != NULL) memcpy(c->rest_carry, c->carry, c->carry_count * sizeof *c->carry);
  c->rest_wanted = c->paused = c->announced = false;
  shoal_chief_serve(c);
}

void shoal_chief_recorded(shoal_chief *c, uint64_t version) { c->recorded = version; }

void shoal_chief_end(shoal_chief *c, shoal_chief_ending how, const char *text) {
  c->ended = true;
  for (uint32_t i = 0; i < c->peers_count && how != SHOAL_ENDS_SILENTLY; i++)
    shoal_chief_say(
        c, c->peers[i].peer,
        (shoal_message){.kind = SHOAL_MSG_END, .count = how, .payload = shoal_blob_of(text, strlen(text))});
}
