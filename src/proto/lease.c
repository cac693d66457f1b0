/* lease.c: see lease.h.
 *
 * Units live in a table in order of their numbers; leases in a table without order, found by their
 * number. The leases of one unit are a list through that table. There may be thousands of workers who
 * ask again and again while there is nothing to give, so the two answers to that are at hand: how many
 * units are free, and when one becomes overdue that may be leased once more. With lanes they are three more:
 * how many units of each lane are free, how many of lanes that nobody has, and since when the oldest of the
 * others. Dropping a worker and forgetting rounds walk over everything: they are rare. */
#include "proto/lease.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "proto/places.h"

enum { DURATIONS = 31 };
/* Medians that a free unit waits for who its lane is meant for: when another has too few lanes, and when
 * not. A lane that nobody had, or whose holder has just begun and may be fetching its data, waits so long at
 * least; and a lease lasts. */
static const double WAITS = 2.5, WAITS_LONG = 10, FRESH_S = 5, LANE_LEAST_S = 5;
enum { SETTLED = 8 }; /* units of a lane that its holder has done */
#define NONE UINT32_MAX

typedef struct unit {
  uint64_t number;
  bool finished;
  uint64_t digest; /* of the first result */
  uint32_t leases; /* running ones */
  uint32_t first;  /* of them, in the table of leases; or NONE */
  double deadline; /* the latest of theirs */
  double since;    /* it is free: when somebody first asked; NAN before that */
} unit;

typedef struct lane {
  uint64_t holder; /* 0: nobody who is here */
  bool begun;      /* somebody had it */
  uint64_t done;   /* units of it that its holder has done */
  uint32_t free;   /* units */
  uint32_t next;   /* of the same holder, or NONE */
} lane;

typedef struct entry {
  shoal_lease lease;
  uint32_t next; /* of the same unit, or NONE */
} entry;

struct shoal_lease_book {
  shoal_lease_rules rules;
  unit *units;
  uint32_t units_count;
  uint32_t free_from;              /* no unit before this place is free */
  uint32_t free, leased, finished; /* units */
  entry *leases;
  uint32_t leases_count, leases_max;
  shoal_places places; /* of leases, by their numbers */
  double soonest;      /* when a unit is overdue that may be leased again; only if soonest_known */
  bool soonest_known;
  uint64_t last_id, again;
  double durations[DURATIONS]; /* of the last results, the oldest overwritten next */
  uint32_t durations_count, durations_next;
  lane *lanes;
  shoal_places holders;   /* of lanes: each one's first */
  shoal_places held;      /* how many each has */
  uint32_t fresh, orphan; /* free units of lanes that nobody ever had, and whose holder is gone */
  bool unstamped;         /* a free unit may have no time yet */
  double oldest;          /* since when the unit is free that is so for longest; only if oldest_known */
  bool oldest_known;
};

shoal_status shoal_lease_book_create(shoal_lease_book **out, const shoal_lease_rules *rules,
                                     shoal_error *err) {
  SHOAL_ASSERT(rules->units_max > 0 && rules->holders_max > 0 && rules->patience >= 1);
  *out = NULL;
  uint64_t leases_max = (uint64_t)rules->units_max * rules->holders_max;
  shoal_lease_book *book = leases_max < NONE / 4 ? calloc(1, sizeof *book) : NULL;
  bool ok = book != NULL;
  if (ok) {
    book->rules = *rules;
    book->leases_max = (uint32_t)leases_max;
    book->units = calloc(rules->units_max, sizeof *book->units);
    book->leases = calloc(leases_max, sizeof *book->leases);
    ok =
        book->units != NULL && book->leases != NULL && shoal_places_init(&book->places, (uint32_t)leases_max);
  }
  if (ok && rules->lanes > 0) {
    book->lanes = calloc(rules->lanes, sizeof *book->lanes);
    ok = book->lanes != NULL && shoal_places_init(&book->holders, rules->lanes) &&
         shoal_places_init(&book->held, rules->lanes);
  }
  if (!ok) {
    shoal_lease_book_destroy(book);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a book of %u units", rules->units_max);
  }
  *out = book;
  return SHOAL_OK;
}

void shoal_lease_book_destroy(shoal_lease_book *book) {
  if (book == NULL) return;
  shoal_places_release(&book->places);
  shoal_places_release(&book->holders);
  shoal_places_release(&book->held);
  free(book->lanes);
  free(book->units);
  free(book->leases);
  free(book);
}

/* Where a unit is in the table, or where it would be. */
static uint32_t place_of(const shoal_lease_book *book, uint64_t number) {
  uint32_t low = 0, high = book->units_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (book->units[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static unit *find_unit(const shoal_lease_book *book, uint64_t number) {
  uint32_t place = place_of(book, number);
  return place < book->units_count && book->units[place].number == number ? &book->units[place] : NULL;
}

static shoal_lease *find_lease(const shoal_lease_book *book, uint64_t id) {
  uint32_t place;
  return shoal_places_get(&book->places, id, &place) ? &book->leases[place].lease : NULL;
}

static bool holds(const shoal_lease_book *book, uint64_t worker, const unit *u) {
  for (uint32_t i = u->first; i != NONE; i = book->leases[i].next)
    if (book->leases[i].lease.worker == worker) return true;
  return false;
}

/* ---- what is at hand ---- */

/* When a unit can be leased again without being free; infinity when it cannot. */
static double due(const shoal_lease_book *book, const unit *u) {
  return u->finished || u->leases == 0 || u->leases >= book->rules.holders_max ? INFINITY : u->deadline;
}

static bool is_free(const unit *u) { return !u->finished && u->leases == 0; }

static lane *lane_of(const shoal_lease_book *book, const unit *u) {
  return book->lanes != NULL ? &book->lanes[u->number % book->rules.lanes] : NULL;
}

/* Units of a lane that nobody has, whichever kind it is. */
static void count_unheld(shoal_lease_book *book, const lane *l, uint32_t more) {
  if (l->holder != 0) return;
  if (l->begun)
    book->orphan += more;
  else
    book->fresh += more;
}

static void count_lane(shoal_lease_book *book, const unit *u, int more) {
  lane *l = lane_of(book, u);
  if (l == NULL || !is_free(u)) return;
  l->free += (uint32_t)more;
  count_unheld(book, l, (uint32_t)more);
  book->oldest_known = false;
}

/* A unit is about to change, and has changed: the counts go with it. */
static void leave(shoal_lease_book *book, const unit *u) {
  count_lane(book, u, -1);
  book->finished -= u->finished;
  book->leased -= !u->finished && u->leases > 0;
  book->free -= !u->finished && u->leases == 0;
  if (due(book, u) <= book->soonest) book->soonest_known = false;
}

static void enter(shoal_lease_book *book, unit *u) {
  count_lane(book, u, 1);
  if (!is_free(u)) u->since = NAN;
  book->unstamped |= is_free(u) && isnan(u->since);
  book->finished += u->finished;
  book->leased += !u->finished && u->leases > 0;
  book->free += !u->finished && u->leases == 0;
  uint32_t place = (uint32_t)(u - book->units);
  if (!u->finished && u->leases == 0 && place < book->free_from) book->free_from = place;
  if (due(book, u) < book->soonest) book->soonest = due(book, u);
}

static double soonest(shoal_lease_book *book) {
  if (book->soonest_known) return book->soonest;
  book->soonest = INFINITY;
  for (uint32_t i = 0; i < book->units_count; i++)
    book->soonest = fmin(book->soonest, due(book, &book->units[i]));
  book->soonest_known = true;
  return book->soonest;
}

static void count_anew(shoal_lease_book *book) {
  book->free = book->leased = book->finished = book->free_from = 0;
  book->soonest_known = book->oldest_known = false;
  book->fresh = book->orphan = 0;
  for (uint32_t i = 0; i < book->rules.lanes; i++) book->lanes[i].free = 0;
  for (uint32_t i = 0; i < book->units_count; i++) enter(book, &book->units[i]);
}

/* ---- lanes ---- */

static uint32_t lanes_of(const shoal_lease_book *book, uint64_t worker) {
  uint32_t count = 0;
  shoal_places_get(&book->held, worker, &count);
  return count;
}

static void set_lanes_of(shoal_lease_book *book, uint64_t worker, uint32_t count) {
  if (count > 0)
    shoal_places_put(&book->held, worker, count);
  else
    shoal_places_remove(&book->held, worker);
}

static void unlink_lane(shoal_lease_book *book, lane *l) {
  uint32_t place = (uint32_t)(l - book->lanes), first = NONE;
  shoal_places_get(&book->holders, l->holder, &first);
  if (first != place) {
    uint32_t *link = &book->lanes[first].next;
    while (*link != place) link = &book->lanes[*link].next;
    *link = l->next;
  } else if (l->next != NONE) {
    shoal_places_put(&book->holders, l->holder, l->next);
  } else {
    shoal_places_remove(&book->holders, l->holder);
  }
  set_lanes_of(book, l->holder, lanes_of(book, l->holder) - 1);
}

/* The lane has this holder from now on; 0: nobody. */
static void hold_lane(shoal_lease_book *book, lane *l, uint64_t worker) {
  uint32_t first;
  if (l->holder == worker) return;
  count_unheld(book, l, -l->free);
  if (l->holder != 0) unlink_lane(book, l);
  l->holder = worker;
  l->begun = true;
  l->done = 0;
  l->next = NONE;
  count_unheld(book, l, l->free);
  if (worker == 0) return;
  if (shoal_places_get(&book->holders, worker, &first)) l->next = first;
  shoal_places_put(&book->holders, worker, (uint32_t)(l - book->lanes));
  set_lanes_of(book, worker, lanes_of(book, worker) + 1);
}

static void leave_lanes(shoal_lease_book *book, uint64_t worker) {
  uint32_t first;
  while (book->lanes != NULL && shoal_places_get(&book->holders, worker, &first))
    hold_lane(book, &book->lanes[first], 0);
}

static double oldest(shoal_lease_book *book) {
  if (book->oldest_known) return book->oldest;
  book->oldest = INFINITY;
  for (uint32_t i = 0; i < book->units_count; i++)
    if (is_free(&book->units[i])) book->oldest = fmin(book->oldest, book->units[i].since);
  book->oldest_known = true;
  return book->oldest;
}

static void stamp(shoal_lease_book *book, double now) {
  for (uint32_t i = 0; book->unstamped && i < book->units_count; i++)
    if (is_free(&book->units[i]) && isnan(book->units[i].since)) book->units[i].since = now;
  if (book->unstamped) book->oldest_known = false;
  book->unstamped = false;
}

/* How long a free unit of such a lane waits before somebody with too few lanes, or anybody, may have it. */
static double lane_wait(const shoal_lease_book *book, const lane *l, bool few, double median) {
  if (book->durations_count == 0) return book->rules.first_s;
  double wait = (few ? WAITS : WAITS_LONG) * median;
  return l->begun && (few || l->done >= SETTLED) ? wait : fmax(wait, FRESH_S);
}

/* Whether a worker with so many lanes may have a free unit of another's lane, or of nobody's. */
static bool may_have(const shoal_lease_book *book, const unit *u, uint32_t lanes, double median, double now) {
  const lane *l = lane_of(book, u);
  if (l->holder == 0 && (l->begun || lanes == 0)) return true;
  bool few = l->holder == 0 || lanes_of(book, l->holder) >= lanes + 2;
  return u->since + lane_wait(book, l, few, median) <= now;
}

static unit *free_unit_by_lane(shoal_lease_book *book, uint64_t worker, double now) {
  uint32_t lanes = lanes_of(book, worker), place = NONE;
  bool own = false;
  if (book->free == 0) return NULL;
  stamp(book, now);
  shoal_places_get(&book->holders, worker, &place);
  for (; place != NONE && !own; place = book->lanes[place].next) own = book->lanes[place].free > 0;
  double median = shoal_lease_median(book);
  bool at_once = book->orphan > 0 || (book->fresh > 0 && lanes == 0);
  if (!own && !at_once && oldest(book) + WAITS * median > now) return NULL;
  for (uint32_t i = book->free_from; i < book->units_count; i++) {
    unit *u = &book->units[i];
    bool is_own = lane_of(book, u)->holder == worker;
    if (is_free(u) && (own ? is_own : !is_own && may_have(book, u, lanes, median, now))) return u;
  }
  return NULL;
}

/* ---- leases come and go ---- */

static uint32_t *link_to(shoal_lease_book *book, unit *u, uint32_t place) {
  uint32_t *link = &u->first;
  while (*link != place) link = &book->leases[*link].next;
  return link;
}

/* Takes a lease that is in no list out of the table; the last one moves to its place. */
static void remove_lease(shoal_lease_book *book, uint32_t place) {
  uint32_t last = --book->leases_count;
  shoal_places_remove(&book->places, book->leases[place].lease.id);
  if (place == last) return;
  *link_to(book, find_unit(book, book->leases[last].lease.unit), last) = place;
  book->leases[place] = book->leases[last];
  shoal_places_put(&book->places, book->leases[place].lease.id, place);
}

static void end_lease(shoal_lease_book *book, uint32_t place) {
  unit *u = find_unit(book, book->leases[place].lease.unit);
  leave(book, u);
  *link_to(book, u, place) = book->leases[place].next;
  u->leases--;
  u->deadline = -INFINITY;
  for (uint32_t i = u->first; i != NONE; i = book->leases[i].next)
    u->deadline = fmax(u->deadline, book->leases[i].lease.deadline);
  remove_lease(book, place);
  enter(book, u);
}

static void add_lease(shoal_lease_book *book, unit *u, const shoal_lease *lease) {
  SHOAL_ASSERT(book->leases_count < book->leases_max);
  leave(book, u);
  uint32_t place = book->leases_count++;
  book->leases[place] = (entry){.lease = *lease, .next = u->first};
  shoal_places_put(&book->places, lease->id, place);
  u->first = place;
  u->leases++;
  u->deadline = fmax(u->deadline, lease->deadline);
  enter(book, u);
}

bool shoal_lease_offer(shoal_lease_book *book, uint64_t number) {
  if (book->units_count == book->rules.units_max) return false;
  uint32_t place = place_of(book, number);
  unit *u = &book->units[place];
  SHOAL_ASSERT(place == book->units_count || u->number != number);
  memmove(u + 1, u, (book->units_count - place) * sizeof *u);
  *u = (unit){.number = number, .first = NONE, .deadline = -INFINITY, .since = NAN};
  book->units_count++;
  enter(book, u);
  return true;
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double shoal_lease_median(const shoal_lease_book *book) {
  if (book->durations_count == 0) return 0;
  double sorted[DURATIONS];
  memcpy(sorted, book->durations, book->durations_count * sizeof *sorted);
  qsort(sorted, book->durations_count, sizeof *sorted, compare_reals);
  return sorted[book->durations_count / 2];
}

static double time_allowed(const shoal_lease_book *book) {
  double usual =
      book->durations_count == 0 ? book->rules.first_s : book->rules.patience * shoal_lease_median(book);
  if (book->lanes != NULL) usual = fmax(usual, LANE_LEAST_S);
  return fmax(usual, book->rules.least_s);
}

/* The unit that is overdue for longest and that this worker does not have, or NULL. */
static unit *overdue_unit(shoal_lease_book *book, uint64_t worker, double now) {
  unit *best = NULL;
  if (soonest(book) > now) return NULL;
  for (uint32_t i = 0; i < book->units_count; i++) {
    unit *u = &book->units[i];
    bool overdue = due(book, u) <= now && (best == NULL || u->deadline < best->deadline);
    if (overdue && !holds(book, worker, u)) best = u;
  }
  return best;
}

static unit *free_unit(shoal_lease_book *book) {
  if (book->free == 0) return NULL;
  while (book->units[book->free_from].finished || book->units[book->free_from].leases > 0) book->free_from++;
  return &book->units[book->free_from];
}

bool shoal_lease_has_free(const shoal_lease_book *book) { return book->free > 0; }

bool shoal_lease_has_any(shoal_lease_book *book, double now) {
  return book->free > 0 || soonest(book) <= now;
}

static void give(shoal_lease_book *book, unit *u, uint64_t worker, double now, shoal_lease *out) {
  *out = (shoal_lease){.id = ++book->last_id,
                       .unit = u->number,
                       .worker = worker,
                       .since = now,
                       .deadline = now + time_allowed(book)};
  add_lease(book, u, out);
}

bool shoal_lease_take(shoal_lease_book *book, uint64_t worker, double now, shoal_lease *out) {
  unit *u = book->lanes != NULL ? free_unit_by_lane(book, worker, now) : free_unit(book);
  if (u == NULL) {
    u = overdue_unit(book, worker, now);
    if (u == NULL) return false;
    book->again++;
  }
  if (book->lanes != NULL) hold_lane(book, lane_of(book, u), worker);
  give(book, u, worker, now, out);
  return true;
}

bool shoal_lease_join(shoal_lease_book *book, uint64_t worker, uint64_t number, double now,
                      shoal_lease *out) {
  unit *u = find_unit(book, number);
  if (u == NULL || u->leases >= book->rules.holders_max || holds(book, worker, u)) return false;
  give(book, u, worker, now, out);
  return true;
}

shoal_lease_outcome shoal_lease_finish(shoal_lease_book *book, uint64_t id, uint64_t worker, uint64_t number,
                                       uint64_t digest, double now) {
  const shoal_lease *lease = find_lease(book, id);
  if (lease == NULL || lease->worker != worker || lease->unit != number) return SHOAL_LEASE_STRANGE;
  unit *u = find_unit(book, number);
  book->durations[book->durations_next] = now - lease->since;
  book->durations_next = (book->durations_next + 1) % DURATIONS;
  if (book->durations_count < DURATIONS) book->durations_count++;
  if (book->lanes != NULL) lane_of(book, u)->done += lane_of(book, u)->holder == worker;
  uint32_t place;
  shoal_places_get(&book->places, id, &place);
  end_lease(book, place);
  if (u->finished) return u->digest == digest ? SHOAL_LEASE_AGREES : SHOAL_LEASE_DIFFERS;
  leave(book, u);
  u->finished = true;
  u->digest = digest;
  enter(book, u);
  return SHOAL_LEASE_FIRST;
}

void shoal_lease_return(shoal_lease_book *book, uint64_t id, uint64_t worker) {
  uint32_t place;
  if (shoal_places_get(&book->places, id, &place) && book->leases[place].lease.worker == worker)
    end_lease(book, place);
}

void shoal_lease_drop(shoal_lease_book *book, uint64_t worker) {
  for (uint32_t i = 0; i < book->leases_count;)
    if (book->leases[i].lease.worker == worker)
      end_lease(book, i);
    else
      i++;
  leave_lanes(book, worker);
}

void shoal_lease_forget(shoal_lease_book *book, uint64_t below) {
  if (below == UINT64_MAX) {
    book->units_count = book->leases_count = 0;
    shoal_places_clear(&book->places);
  }
  for (uint32_t i = 0; i < book->leases_count;)
    if (book->leases[i].lease.unit < below)
      end_lease(book, i);
    else
      i++;
  uint32_t gone = place_of(book, below);
  book->units_count -= gone;
  memmove(book->units, book->units + gone, book->units_count * sizeof *book->units);
  count_anew(book);
}

/* When the next free unit may go to somebody else; what may already waits for a worker. */
static double next_free_to_all(shoal_lease_book *book, double now) {
  double next = INFINITY;
  if (book->lanes == NULL || book->free == 0) return next;
  stamp(book, now);
  double median = shoal_lease_median(book);
  for (uint32_t i = book->free_from; i < book->units_count; i++)
    for (int few = 0; few < 2 && is_free(&book->units[i]); few++) {
      double at = book->units[i].since + lane_wait(book, lane_of(book, &book->units[i]), few, median);
      if (at > now) next = fmin(next, at);
    }
  return next;
}

double shoal_lease_next_deadline(shoal_lease_book *book, double now) {
  double next = soonest(book);
  if (next <= now) {
    next = INFINITY;
    for (uint32_t i = 0; i < book->units_count; i++) {
      double at = due(book, &book->units[i]);
      if (at > now) next = fmin(next, at);
    }
  }
  return fmin(next, next_free_to_all(book, now));
}

bool shoal_lease_find(const shoal_lease_book *book, uint64_t id, shoal_lease *out) {
  const shoal_lease *lease = find_lease(book, id);
  if (lease == NULL) return false;
  *out = *lease;
  return true;
}

uint32_t shoal_lease_holders(const shoal_lease_book *book, uint64_t number, uint64_t *workers,
                             uint32_t most) {
  const unit *u = find_unit(book, number);
  uint32_t count = 0;
  for (uint32_t i = u != NULL ? u->first : NONE; i != NONE && count < most; i = book->leases[i].next)
    workers[count++] = book->leases[i].lease.worker;
  return count;
}

bool shoal_lease_held(const shoal_lease_book *book, uint64_t worker, shoal_lease *out) {
  const shoal_lease *last = NULL;
  for (uint32_t i = 0; i < book->leases_count; i++) {
    const shoal_lease *lease = &book->leases[i].lease;
    if (lease->worker == worker && (last == NULL || lease->id > last->id)) last = lease;
  }
  if (last == NULL) return false;
  *out = *last;
  return true;
}

shoal_lease_counts shoal_lease_count(const shoal_lease_book *book) {
  return (shoal_lease_counts){
      .free = book->free, .leased = book->leased, .finished = book->finished, .again = book->again};
}
