/* board.c: see board.h.
 *
 * A unit is open from when the scheduler has given it out until it has a result; there are hardly more of
 * them than the window is wide, in a list by their numbers. An open unit is leased, or waits for the next
 * who asks. */
#include "search/board.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const double LEASE_S = 30;

enum { RESUMED_ATTEMPT_MAX = 1000000 }; /* of one from before a restart; none gets that far */

typedef struct open_unit {
  uint64_t number;
  bool leased;
  uint32_t attempt; /* how often it was given out */
  uint32_t lost;    /* how many of those count */
  double deadline;  /* of the lease */
} open_unit;

struct shoal_board {
  shoal_board_config config;
  shoal_scheduler *scheduler;
  open_unit *open; /* by number */
  size_t open_count, open_room;
  shoal_board_trial **trials;
  size_t trials_count, trials_room;
  shoal_board_trial *spare; /* for the next trial; or NULL */
  uint64_t *aside;          /* units that nobody was told of yet */
  size_t aside_count, aside_room;
  uint64_t finals[SHOAL_CANDIDATES_MAX + 1]; /* the best that are trained to their end, the best first */
  size_t finals_count;
  uint64_t *spent; /* trials whose states nobody was told yet to drop */
  size_t spent_count, spent_room;
  uint64_t late;
};

const char *shoal_trial_state_name(shoal_trial_state state) {
  static const char *const names[] = {"waits", "runs", "rests", "done", "failed"};
  return names[state];
}

shoal_status shoal_board_create(shoal_board **out, const shoal_board_config *config, shoal_error *err) {
  *out = NULL;
  shoal_board *b = calloc(1, sizeof *b);
  if (b == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a search");
  b->config = *config;
  if (!(b->config.lease_s > 0)) b->config.lease_s = LEASE_S;
  shoal_status status = shoal_scheduler_create(&b->scheduler, &config->scheduler, err);
  if (status != SHOAL_OK) {
    shoal_board_destroy(b);
    return status;
  }
  *out = b;
  return SHOAL_OK;
}

void shoal_board_destroy(shoal_board *b) {
  if (b == NULL) return;
  for (uint64_t t = 0; t < b->trials_count; t++) {
    free(b->trials[t]->result);
    free(b->trials[t]);
  }
  free(b->trials);
  free(b->spare);
  free(b->open);
  free(b->aside);
  free(b->spent);
  shoal_scheduler_destroy(b->scheduler);
  free(b);
}

/* ---- units and trials --------------------------------------------------------------- */

static open_unit *find_open(const shoal_board *b, uint64_t number) {
  for (size_t i = 0; i < b->open_count; i++)
    if (b->open[i].number == number) return &b->open[i];
  return NULL;
}

static shoal_board_trial *trial_of(const shoal_board *b, uint64_t number) {
  shoal_unit unit;
  SHOAL_ASSERT(shoal_scheduler_unit(b->scheduler, number, &unit) && unit.trial <= b->trials_count);
  return b->trials[unit.trial - 1];
}

static void *grown(void *at, size_t *room, size_t size) {
  size_t more = *room ? 2 * *room : 16;
  void *now = realloc(at, more * size);
  if (now != NULL) *room = more;
  return now;
}

/* So that a unit, its trial and what may become of it have a place. */
static bool make_room(shoal_board *b) {
  if (b->open_count == b->open_room) {
    open_unit *open = grown(b->open, &b->open_room, sizeof *open);
    if (open == NULL) return false;
    b->open = open;
  }
  if (b->aside_room < b->aside_count + b->open_count + 1) {
    uint64_t *aside = grown(b->aside, &b->aside_room, sizeof *aside);
    if (aside == NULL) return false;
    b->aside = aside;
  }
  if (b->spent_room < b->spent_count + b->open_count + 1) {
    uint64_t *spent = grown(b->spent, &b->spent_room, sizeof *spent);
    if (spent == NULL) return false;
    b->spent = spent;
  }
  if (b->trials_count == b->trials_room) {
    shoal_board_trial **trials = grown(b->trials, &b->trials_room, sizeof *trials);
    if (trials == NULL) return false;
    b->trials = trials;
  }
  if (b->spare == NULL) b->spare = calloc(1, sizeof *b->spare);
  return b->spare != NULL;
}

static shoal_next no_memory(shoal_error *err) {
  shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for the trials of a search");
  return SHOAL_NEXT_WAITS;
}

/* The scheduler's next unit is open, and waits for who asks. */
static shoal_next open_next(shoal_board *b, shoal_error *err) {
  shoal_unit unit;
  if (!make_room(b)) return no_memory(err);
  shoal_next next = shoal_scheduler_next(b->scheduler, &unit, err);
  if (next != SHOAL_NEXT_UNIT) return next;
  if (unit.trial > b->trials_count) {
    *b->spare = (shoal_board_trial){.trial = unit.trial, .values = unit.values, .rung = UINT32_MAX};
    b->trials[b->trials_count++] = b->spare;
    b->spare = NULL;
  }
  shoal_board_trial *trial = b->trials[unit.trial - 1];
  trial->state = SHOAL_TRIAL_WAITS;
  trial->unit = unit.number;
  trial->worker[0] = 0;
  b->open[b->open_count++] = (open_unit){.number = unit.number};
  return SHOAL_NEXT_UNIT;
}

/* ---- results ------------------------------------------------------------------------ */

/* Only the used part of the curve, which is most of a result, is touched. */
static void copy_result(shoal_trial_result *to, const shoal_trial_result *from) {
  uint32_t count = from->curve_count < SHOAL_CURVE_MAX ? from->curve_count : SHOAL_CURVE_MAX;
  memcpy(to, from, offsetof(shoal_trial_result, curve));
  memcpy(to->curve, from->curve, count * sizeof *from->curve);
  memcpy(to->sha256, from->sha256, sizeof to->sha256);
  memcpy(to->error, from->error, sizeof to->error);
  to->curve_count = count;
}

static bool has_score(const shoal_board_trial *trial) {
  return trial->result != NULL && !trial->result->failed && isfinite(trial->result->score);
}

/* The better one first; equal ones by their rung, then by their number. */
static bool before(const shoal_board *b, uint64_t x, uint64_t y) {
  const shoal_board_trial *a = b->trials[x - 1], *c = b->trials[y - 1];
  if (a->result->score != c->result->score)
    return (a->result->score > c->result->score) == b->config.scheduler.higher_is_better;
  return a->rung != c->rung ? a->rung > c->rung : x < y;
}

/* Scores of trials that are trained to their end do not change any more: who is not among the best of them
 * now, will never be. */
static void rank_final(shoal_board *b, uint64_t trial) {
  size_t place = b->finals_count++;
  for (; place > 0 && before(b, trial, b->finals[place - 1]); place--)
    b->finals[place] = b->finals[place - 1];
  b->finals[place] = trial;
  if (b->finals_count > SHOAL_CANDIDATES_MAX) b->spent[b->spent_count++] = b->finals[--b->finals_count];
}

bool shoal_board_spent(shoal_board *b, uint64_t *trial) {
  if (b->spent_count == 0) return false;
  *trial = b->spent[--b->spent_count];
  return true;
}

static void set_worker(shoal_board_trial *trial, const char *worker) {
  shoal_text_plain(trial->worker, sizeof trial->worker, worker, strlen(worker));
}

/* The unit has its result: to its trial and to the scheduler. False: out of memory, nothing changed. */
static bool finish(shoal_board *b, open_unit *open, const shoal_trial_result *result, double now) {
  shoal_unit unit;
  SHOAL_ASSERT(shoal_scheduler_unit(b->scheduler, open->number, &unit));
  shoal_board_trial *trial = b->trials[unit.trial - 1];
  if (trial->result == NULL) trial->result = calloc(1, sizeof *trial->result);
  if (trial->result == NULL) return false;
  copy_result(trial->result, result);
  bool failed = result->failed || !isfinite(result->score);
  bool last = unit.rung + 1 == b->config.scheduler.rungs;
  trial->state = failed ? SHOAL_TRIAL_FAILED : last || result->over ? SHOAL_TRIAL_DONE : SHOAL_TRIAL_RESTS;
  trial->rung = unit.rung;
  trial->ended = now;
  if (isfinite(result->seconds)) trial->seconds += result->seconds;
  shoal_scheduler_report(b->scheduler, unit.number, failed ? NAN : result->score);
  if (failed)
    b->spent[b->spent_count++] = unit.trial;
  else if (last)
    rank_final(b, unit.trial);
  size_t place = (size_t)(open - b->open);
  memmove(open, open + 1, (--b->open_count - place) * sizeof *open);
  return true;
}

/* The unit, where it has no result yet; or NULL. One that was not given out since a restart is opened: those
 * that somebody may have are within the window. */
static open_unit *find_or_open(shoal_board *b, uint64_t number) {
  uint64_t units = shoal_scheduler_units(b->scheduler);
  if (number >= units && number - units > b->config.scheduler.window) return NULL;
  while (number >= shoal_scheduler_units(b->scheduler))
    if (open_next(b, NULL) != SHOAL_NEXT_UNIT) break;
  return find_open(b, number);
}

bool shoal_board_done(shoal_board *b, uint64_t number, const shoal_trial_result *result, const char *worker,
                      double now) {
  open_unit *open = find_or_open(b, number);
  if (open == NULL || !finish(b, open, result, now)) {
    b->late++;
    return false;
  }
  set_worker(trial_of(b, number), worker);
  return true;
}

/* ---- leases ------------------------------------------------------------------------- */

/* Three attempts came to nothing. False: out of memory; it stays as it is. */
static bool put_aside(shoal_board *b, open_unit *open, const char *why, double now) {
  shoal_trial_result *result = calloc(1, sizeof *result);
  if (result == NULL) return false;
  uint64_t number = open->number;
  result->failed = true;
  result->score = NAN;
  for (uint32_t i = 0; i < SHOAL_SCORES; i++) result->scores.of[i] = NAN;
  char plain[200];
  shoal_text_plain(plain, sizeof plain, why, strlen(why));
  snprintf(result->error, sizeof result->error, "set aside after %d attempts: %s", SHOAL_ATTEMPTS_MAX, plain);
  bool done = finish(b, open, result, now);
  if (done) b->aside[b->aside_count++] = number;
  free(result);
  return done;
}

/* A lease ends without a result. True: the unit is open no more. */
static bool lose(shoal_board *b, open_unit *open, const char *why, bool counts, double now) {
  shoal_board_trial *trial = trial_of(b, open->number);
  trial->state = SHOAL_TRIAL_WAITS;
  open->leased = false;
  open->lost += counts;
  return open->lost >= SHOAL_ATTEMPTS_MAX && put_aside(b, open, why, now);
}

double shoal_board_tick(shoal_board *b, double now) {
  double soonest = INFINITY;
  for (size_t i = 0; i < b->open_count;) {
    open_unit *open = &b->open[i];
    if (open->leased && open->deadline <= now && lose(b, open, "its workers were lost", true, now)) continue;
    if (open->leased) soonest = fmin(soonest, open->deadline);
    i++;
  }
  return soonest;
}

bool shoal_board_set_aside(shoal_board *b, uint64_t *unit) {
  if (b->aside_count == 0) return false;
  *unit = b->aside[0];
  memmove(b->aside, b->aside + 1, --b->aside_count * sizeof *b->aside);
  return true;
}

static open_unit *first_waiting(const shoal_board *b) {
  for (size_t i = 0; i < b->open_count; i++)
    if (!b->open[i].leased) return &b->open[i];
  return NULL;
}

shoal_next shoal_board_take(shoal_board *b, const char *worker, double now, shoal_taken *out,
                            shoal_error *err) {
  shoal_board_tick(b, now);
  open_unit *open = first_waiting(b);
  if (open == NULL) {
    shoal_next next = open_next(b, err);
    /* What others have may still be given out again. */
    if (next == SHOAL_NEXT_NONE && b->open_count > 0) return SHOAL_NEXT_WAITS;
    if (next != SHOAL_NEXT_UNIT) return next;
    open = &b->open[b->open_count - 1];
  }
  open->leased = true;
  open->attempt++;
  open->deadline = now + b->config.lease_s;
  shoal_board_trial *trial = trial_of(b, open->number);
  trial->state = SHOAL_TRIAL_RUNS;
  if (trial->rung == UINT32_MAX && open->attempt == 1) trial->begun = now;
  set_worker(trial, worker);
  out->attempt = open->attempt;
  SHOAL_ASSERT(shoal_scheduler_unit(b->scheduler, open->number, &out->unit));
  return SHOAL_NEXT_UNIT;
}

/* The unit, where this attempt holds the lease; or NULL. */
static open_unit *held(const shoal_board *b, uint64_t number, uint32_t attempt) {
  open_unit *open = find_open(b, number);
  return open != NULL && open->leased && open->attempt == attempt ? open : NULL;
}

bool shoal_board_unit(const shoal_board *b, uint64_t number, shoal_unit *out) {
  return shoal_scheduler_unit(b->scheduler, number, out);
}

bool shoal_board_wants(shoal_board *b, uint64_t number, shoal_unit *out) {
  return find_or_open(b, number) != NULL && shoal_scheduler_unit(b->scheduler, number, out);
}

/* Whether an attempt holds the unit, or may take it up again. The number comes from outside: a huge one would
 * leave none for the attempts after it. */
static bool may_hold(const open_unit *open, uint32_t attempt) {
  if (open->leased || attempt == open->attempt) return attempt == open->attempt && attempt > 0;
  return attempt > open->attempt && attempt <= RESUMED_ATTEMPT_MAX;
}

bool shoal_board_beat(shoal_board *b, uint64_t number, uint32_t attempt, double now) {
  open_unit *open = find_or_open(b, number);
  if (open == NULL || !may_hold(open, attempt)) return false;
  open->leased = true;
  open->attempt = attempt;
  open->deadline = now + b->config.lease_s;
  trial_of(b, number)->state = SHOAL_TRIAL_RUNS;
  return true;
}

void shoal_board_failed(shoal_board *b, uint64_t number, uint32_t attempt, const char *why, bool given_back,
                        double now) {
  open_unit *open = held(b, number, attempt);
  if (open != NULL) lose(b, open, why, !given_back, now);
}

/* ---- what there is ------------------------------------------------------------------ */

uint64_t shoal_board_trials(const shoal_board *b) { return b->trials_count; }

const shoal_board_trial *shoal_board_trial_at(const shoal_board *b, uint64_t trial) {
  SHOAL_ASSERT(trial >= 1 && trial <= b->trials_count);
  return b->trials[trial - 1];
}

/* Of the `count` first of a heap whose worst is at hand, the one at i sinks to its place. */
static void sink(const shoal_board *b, uint64_t *heap, uint64_t i, uint64_t count) {
  for (uint64_t child; (child = 2 * i + 1) < count; i = child) {
    if (child + 1 < count && before(b, heap[child], heap[child + 1])) child++;
    if (!before(b, heap[i], heap[child])) return;
    uint64_t kept = heap[i];
    heap[i] = heap[child];
    heap[child] = kept;
  }
}

uint64_t shoal_board_best(const shoal_board *b, uint64_t *out, uint64_t max) {
  /* The best so far are a heap with the worst of them on top, which a better one replaces. */
  uint64_t count = 0;
  for (uint64_t t = 1; t <= b->trials_count && max > 0; t++) {
    if (!has_score(b->trials[t - 1])) continue;
    if (count < max) {
      out[count++] = t;
      if (count == max)
        for (uint64_t i = count / 2; i-- > 0;) sink(b, out, i, count);
    } else if (before(b, t, out[0])) {
      out[0] = t;
      sink(b, out, 0, count);
    }
  }
  for (uint64_t i = count / 2; i-- > 0;) sink(b, out, i, count);
  for (uint64_t left = count; left > 1;) {
    uint64_t worst = out[0];
    out[0] = out[--left];
    out[left] = worst;
    sink(b, out, 0, left);
  }
  return count;
}

uint64_t shoal_board_late(const shoal_board *b) { return b->late; }

uint64_t shoal_board_running(const shoal_board *b) {
  uint64_t running = 0;
  for (size_t i = 0; i < b->open_count; i++) running += b->open[i].leased;
  return running;
}

void shoal_board_extend(shoal_board *b, uint64_t trials) { shoal_scheduler_extend(b->scheduler, trials); }
uint64_t shoal_board_units(const shoal_board *b) { return shoal_scheduler_units(b->scheduler); }
