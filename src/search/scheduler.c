/* scheduler.c: see scheduler.h.
 *
 * Results wait in the table of units until their turn: before unit k is chosen, those of units
 * 0 .. k - window - 1 are taken in, in this order, and nothing else. What has been taken in is what the
 * rungs know:
 *
 *   top     the best third of a rung's trials, the worst of them at hand
 *   rest    the others, the best of them at hand
 *   ready   those that were among the top when they came there and have not gone on, the best at hand; who
 *           has dropped out of the top since is passed over
 *
 * All three are heaps, so a result costs the logarithm of the trials. Only at the end is more taken in:
 * `taken` runs ahead of k - window until there is something to promote. */
#include "search/scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "search/parzen.h"

enum {
  THIRD = 3,
  ENOUGH = 12, /* results of a rung for the model to begin */
  BY_CHANCE_EVERY = 10,
};
#define NONE UINT32_MAX

typedef struct trial {
  shoal_values values;
  double key[SHOAL_RUNGS_MAX]; /* of each rung that was taken in: the smaller the better */
  bool in_top[SHOAL_RUNGS_MAX];
  uint32_t given;    /* the highest rung that a unit was given out for */
  uint32_t finished; /* the highest rung that was taken in; NONE: none yet */
  bool failed;
} trial;

typedef struct unit {
  uint64_t trial; /* from 0 */
  uint32_t rung;
  bool reported;
  double score;
} unit;

/* Trials by their key at one rung; worst_first turns it around. */
typedef struct heap {
  uint64_t *at;
  uint64_t count, room;
  bool worst_first;
} heap;

typedef struct rung {
  heap top, rest, ready;
  uint64_t count;   /* trials that finished it */
  uint64_t *sorted; /* the best first; only for the model */
  uint64_t room;
} rung;

struct shoal_scheduler {
  shoal_scheduler_config config;
  uint64_t grid; /* points; only by grid */
  unit *units;
  uint64_t units_count, units_room;
  trial *trials;
  uint64_t trials_count, trials_room;
  rung rungs[SHOAL_RUNGS_MAX];
  uint64_t taken;              /* units whose results have been taken in */
  uint64_t barrier;            /* so many must have been before the next unit */
  bool last_round;             /* nothing is left to promote: the best of every rung goes on */
  const shoal_values **points; /* for the model: room for those of all trials */
  uint64_t points_room;
};

static const char *const names[] = {"grid", "random", "halving", "model"};

const char *shoal_scheduler_name(shoal_scheduler_kind kind) { return names[kind]; }

bool shoal_scheduler_parse(const char *word, shoal_scheduler_kind *out) {
  for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(word, names[i]) != 0) continue;
    *out = (shoal_scheduler_kind)i;
    return true;
  }
  return false;
}

/* Room for one more in an array; NULL when memory is out. */
static void *room_for(void *at, uint64_t count, uint64_t *room, size_t size) {
  if (count < *room) return at;
  uint64_t more = *room ? 2 * *room : 64;
  void *grown = realloc(at, more * size);
  if (grown != NULL) *room = more;
  return grown;
}

/* ---- heaps -------------------------------------------------------------------------- */

/* Whether a comes before b: the better key, then the lower number. */
static bool better(const shoal_scheduler *s, uint32_t r, uint64_t a, uint64_t b) {
  double x = s->trials[a].key[r], y = s->trials[b].key[r];
  return x != y ? x < y : a < b;
}

static bool above(const shoal_scheduler *s, uint32_t r, const heap *h, uint64_t i, uint64_t k) {
  return h->worst_first ? better(s, r, h->at[k], h->at[i]) : better(s, r, h->at[i], h->at[k]);
}

static void swap(heap *h, uint64_t i, uint64_t k) {
  uint64_t held = h->at[i];
  h->at[i] = h->at[k];
  h->at[k] = held;
}

static bool heap_add(const shoal_scheduler *s, uint32_t r, heap *h, uint64_t t) {
  uint64_t *at = room_for(h->at, h->count, &h->room, sizeof *at);
  if (at == NULL) return false;
  h->at = at;
  h->at[h->count] = t;
  for (uint64_t i = h->count++; i > 0 && above(s, r, h, i, (i - 1) / 2); i = (i - 1) / 2)
    swap(h, i, (i - 1) / 2);
  return true;
}

static uint64_t heap_take(const shoal_scheduler *s, uint32_t r, heap *h) {
  uint64_t first = h->at[0];
  h->at[0] = h->at[--h->count];
  for (uint64_t i = 0;;) {
    uint64_t child = 2 * i + 1;
    if (child >= h->count) return first;
    if (child + 1 < h->count && above(s, r, h, child + 1, child)) child++;
    if (!above(s, r, h, child, i)) return first;
    swap(h, i, child);
    i = child;
  }
}

/* ---- create and destroy ------------------------------------------------------------- */

static shoal_status check(const shoal_scheduler_config *config, shoal_error *err) {
  if (config->window < 1 || config->window > SHOAL_WINDOW_MAX)
    return shoal_fail(err, SHOAL_INVALID, "the window is %u; it must be from 1 to %d", config->window,
                      SHOAL_WINDOW_MAX);
  if (config->rungs < 1 || config->rungs > SHOAL_RUNGS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "there are %u rungs; there must be from 1 to %d", config->rungs,
                      SHOAL_RUNGS_MAX);
  for (uint32_t r = 0; r < config->rungs; r++)
    if (config->epochs[r] <= (r > 0 ? config->epochs[r - 1] : 0))
      return shoal_fail(err, SHOAL_INVALID, "rung %u has %u epochs in all; it must be more than before it",
                        r + 1, config->epochs[r]);
  const char *endless = shoal_space_endless(config->space);
  if (config->kind != SHOAL_BY_GRID) return SHOAL_OK;
  if (endless != NULL)
    return shoal_fail(err, SHOAL_INVALID,
                      "a grid needs choices, but %s is a range of numbers without end; write some, as in "
                      "`%s 0.001 0.003 0.01`, or search by random, halving or model",
                      endless, endless);
  if (shoal_space_grid(config->space) == 0)
    return shoal_fail(err, SHOAL_LIMIT, "the grid has more points than can be counted; give fewer choices");
  return SHOAL_OK;
}

shoal_status shoal_scheduler_create(shoal_scheduler **out, const shoal_scheduler_config *config,
                                    shoal_error *err) {
  *out = NULL;
  shoal_status status = check(config, err);
  if (status != SHOAL_OK) return status;
  shoal_scheduler *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a search");
  s->config = *config;
  if (config->kind == SHOAL_BY_GRID) s->grid = shoal_space_grid(config->space);
  for (uint32_t r = 0; r < SHOAL_RUNGS_MAX; r++) s->rungs[r].top.worst_first = true;
  *out = s;
  return SHOAL_OK;
}

void shoal_scheduler_destroy(shoal_scheduler *s) {
  if (s == NULL) return;
  for (uint32_t r = 0; r < SHOAL_RUNGS_MAX; r++) {
    free(s->rungs[r].top.at);
    free(s->rungs[r].rest.at);
    free(s->rungs[r].ready.at);
    free(s->rungs[r].sorted);
  }
  free(s->points);
  free(s->units);
  free(s->trials);
  free(s);
}

/* ---- taking results in -------------------------------------------------------------- */

static bool by_rungs(const shoal_scheduler *s) {
  return s->config.kind == SHOAL_BY_HALVING || s->config.kind == SHOAL_BY_MODEL;
}

/* Into the rung's order, for the model. */
static bool sort_in(shoal_scheduler *s, uint32_t r, uint64_t t) {
  rung *g = &s->rungs[r];
  uint64_t *sorted = room_for(g->sorted, g->count, &g->room, sizeof *sorted);
  if (sorted == NULL) return false;
  g->sorted = sorted;
  uint64_t low = 0, high = g->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (better(s, r, sorted[middle], t))
      low = middle + 1;
    else
      high = middle;
  }
  memmove(sorted + low + 1, sorted + low, (g->count - low) * sizeof *sorted);
  sorted[low] = t;
  return true;
}

static bool enter_top(shoal_scheduler *s, uint32_t r, uint64_t t) {
  s->trials[t].in_top[r] = true;
  bool goes_on = s->trials[t].given > r;
  return heap_add(s, r, &s->rungs[r].top, t) && (goes_on || heap_add(s, r, &s->rungs[r].ready, t));
}

/* One more has finished the rung: it may enter the top for another, or beside it. */
static bool rank(shoal_scheduler *s, uint32_t r, uint64_t t) {
  rung *g = &s->rungs[r];
  if (s->config.kind == SHOAL_BY_MODEL && !sort_in(s, r, t)) return false;
  g->count++;
  if (!heap_add(s, r, &g->rest, t)) return false;
  if (g->top.count < g->count / THIRD) return enter_top(s, r, heap_take(s, r, &g->rest));
  if (g->top.count == 0 || !better(s, r, g->rest.at[0], g->top.at[0])) return true;
  uint64_t out = heap_take(s, r, &g->top), in = heap_take(s, r, &g->rest);
  s->trials[out].in_top[r] = false;
  return heap_add(s, r, &g->rest, out) && enter_top(s, r, in);
}

static bool take_in(shoal_scheduler *s) {
  const unit *u = &s->units[s->taken];
  trial *t = &s->trials[u->trial];
  s->taken++;
  t->finished = u->rung;
  t->failed = !isfinite(u->score);
  if (t->failed || !by_rungs(s)) return true;
  t->key[u->rung] = s->config.higher_is_better ? -u->score : u->score;
  return rank(s, u->rung, u->trial);
}

/* ---- choosing ----------------------------------------------------------------------- */

static bool may_begin(const shoal_scheduler *s) {
  if (s->config.kind == SHOAL_BY_GRID && s->trials_count == s->grid) return false;
  return s->config.trials == 0 || s->trials_count < s->config.trials;
}

/* The best trial that is ready to leave a rung, the highest rung first. */
static bool promotion(shoal_scheduler *s, uint64_t *out) {
  for (uint32_t r = s->config.rungs - 1; r-- > 0;) {
    heap *ready = &s->rungs[r].ready;
    while (ready->count > 0) {
      uint64_t t = heap_take(s, r, ready);
      /* One that has dropped out comes again when it returns to the top. */
      if (!s->trials[t].in_top[r] || s->trials[t].given > r || s->trials[t].failed) continue;
      *out = t;
      return true;
    }
  }
  return false;
}

/* The best of a rung that has not failed since; UINT64_MAX: none. */
static uint64_t best_of(const shoal_scheduler *s, uint32_t r) {
  uint64_t best = UINT64_MAX;
  for (uint64_t t = 0; t < s->trials_count; t++) {
    const trial *this = &s->trials[t];
    if (this->failed || this->finished == NONE || this->finished < r) continue;
    if (best == UINT64_MAX || better(s, r, t, best)) best = t;
  }
  return best;
}

/* In the last round: the best trial of a rung that is neither at the last one nor on its way. */
static bool finalist(const shoal_scheduler *s, uint64_t *out) {
  for (uint32_t r = s->config.rungs - 1; r-- > 0;) {
    uint64_t t = best_of(s, r);
    if (t == UINT64_MAX || s->trials[t].finished + 1 == s->config.rungs) continue;
    if (s->trials[t].given > s->trials[t].finished) continue;
    *out = t;
    return true;
  }
  return false;
}

static bool room_for_unit(shoal_scheduler *s) {
  unit *units = room_for(s->units, s->units_count, &s->units_room, sizeof *units);
  if (units != NULL) s->units = units;
  trial *trials = room_for(s->trials, s->trials_count, &s->trials_room, sizeof *trials);
  if (trials != NULL) s->trials = trials;
  if (units == NULL || trials == NULL) return false;
  if (s->config.kind != SHOAL_BY_MODEL) return true;
  const shoal_values **points = room_for(s->points, s->trials_count, &s->points_room, sizeof *points);
  if (points != NULL) s->points = points;
  return points != NULL;
}

/* The point of a new trial. */
static void choose_point(shoal_scheduler *s, uint64_t t, shoal_values *out) {
  const shoal_space *space = s->config.space;
  shoal_key key = shoal_key_make(s->config.seed, SHOAL_FOR_SEARCH, t, 0);
  if (s->config.kind == SHOAL_BY_GRID) {
    shoal_space_grid_at(space, t, out);
    return;
  }
  uint32_t r = s->config.rungs;
  while (r > 0 && s->rungs[r - 1].count < ENOUGH) r--;
  shoal_key dice = shoal_key_make(s->config.seed, SHOAL_FOR_SEARCH, t, 1);
  if (s->config.kind != SHOAL_BY_MODEL || r == 0 || shoal_random_below(dice, 0, BY_CHANCE_EVERY) == 0) {
    shoal_parzen_random(space, key, out);
    return;
  }
  const rung *g = &s->rungs[r - 1];
  for (uint64_t i = 0; i < g->count; i++) s->points[i] = &s->trials[g->sorted[i]].values;
  shoal_parzen_propose(space, s->points, g->count, key, out);
}

static void describe(const shoal_scheduler *s, uint64_t number, shoal_unit *out) {
  const unit *u = &s->units[number];
  bool first = u->rung == 0 || !by_rungs(s);
  *out = (shoal_unit){.number = number,
                      .trial = u->trial + 1,
                      .rung = u->rung,
                      .epochs_from = first ? 0 : s->config.epochs[u->rung - 1],
                      .epochs_to = s->config.epochs[u->rung],
                      .values = s->trials[u->trial].values};
}

static shoal_next give(shoal_scheduler *s, uint64_t t, uint32_t r, shoal_unit *out) {
  s->trials[t].given = r;
  s->units[s->units_count] = (unit){.trial = t, .rung = r};
  describe(s, s->units_count++, out);
  return SHOAL_NEXT_UNIT;
}

static shoal_next give_new(shoal_scheduler *s, shoal_unit *out) {
  uint64_t t = s->trials_count;
  shoal_values values;
  choose_point(s, t, &values);
  s->trials[t] = (trial){.values = values, .finished = NONE};
  s->trials_count++;
  return give(s, t, by_rungs(s) ? 0 : s->config.rungs - 1, out);
}

static shoal_next no_memory(shoal_error *err) {
  shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for the trials of a search");
  return SHOAL_NEXT_WAITS;
}

shoal_next shoal_scheduler_next(shoal_scheduler *s, shoal_unit *out, shoal_error *err) {
  uint64_t k = s->units_count, wanted = k > s->config.window ? k - s->config.window : 0;
  if (wanted < s->barrier) wanted = s->barrier;
  if (!room_for_unit(s)) return no_memory(err);
  for (;;) {
    for (; s->taken < wanted;) {
      if (!s->units[s->taken].reported) return SHOAL_NEXT_WAITS;
      if (!take_in(s)) return no_memory(err);
    }
    uint64_t t;
    if (by_rungs(s) && promotion(s, &t)) return give(s, t, s->trials[t].finished + 1, out);
    if (may_begin(s)) return give_new(s, out);
    if (!by_rungs(s)) return SHOAL_NEXT_NONE;
    if (s->last_round && finalist(s, &t)) return give(s, t, s->trials[t].finished + 1, out);
    if (s->taken == k && s->last_round) return SHOAL_NEXT_NONE;
    if (s->taken == k)
      s->last_round = true;
    else
      wanted = s->taken + 1;
  }
}

void shoal_scheduler_report(shoal_scheduler *s, uint64_t number, double score) {
  SHOAL_ASSERT(number < s->units_count && !s->units[number].reported);
  s->units[number].score = score;
  s->units[number].reported = true;
}

void shoal_scheduler_extend(shoal_scheduler *s, uint64_t trials) {
  bool ended = !may_begin(s);
  s->config.trials = trials;
  if (!ended || !may_begin(s)) return;
  /* How much has been taken in at an end depends on who asked when; all of it does not. */
  s->barrier = s->units_count;
  s->last_round = false;
}

bool shoal_scheduler_unit(const shoal_scheduler *s, uint64_t number, shoal_unit *out) {
  if (number >= s->units_count) return false;
  describe(s, number, out);
  return true;
}

uint64_t shoal_scheduler_units(const shoal_scheduler *s) { return s->units_count; }
