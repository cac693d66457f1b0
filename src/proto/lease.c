/* lease.c: see lease.h.
 *
 * Units live in a table in order of their numbers; leases in a table without order, found by their
 * number. The leases of one unit are a list through that table. There may be thousands of workers who
 * ask again and again while there is nothing to give, so the two answers to that are at hand: how many
 * units are free, and when one becomes overdue that may be leased once more. Dropping a worker and
 * forgetting rounds walk over everything: they are rare. */
#include "proto/lease.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "proto/places.h"

enum { DURATIONS = 31 };
#define NONE UINT32_MAX

typedef struct unit {
  uint64_t number;
  bool finished;
  uint64_t digest; /* of the first result */
  uint32_t leases; /* running ones */
  uint32_t first;  /* of them, in the table of leases; or NONE */
  double deadline; /* the latest of theirs */
} unit;

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

/* A unit is about to change, and has changed: the counts go with it. */
static void leave(shoal_lease_book *book, const unit *u) {
  book->finished -= u->finished;
  book->leased -= !u->finished && u->leases > 0;
  book->free -= !u->finished && u->leases == 0;
  if (due(book, u) <= book->soonest) book->soonest_known = false;
}

static void enter(shoal_lease_book *book, const unit *u) {
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
  book->soonest_known = false;
  for (uint32_t i = 0; i < book->units_count; i++) enter(book, &book->units[i]);
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
  *u = (unit){.number = number, .first = NONE, .deadline = -INFINITY};
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

bool shoal_lease_take(shoal_lease_book *book, uint64_t worker, double now, shoal_lease *out) {
  unit *u = free_unit(book);
  if (u == NULL) {
    u = overdue_unit(book, worker, now);
    if (u == NULL) return false;
    book->again++;
  }
  *out = (shoal_lease){.id = ++book->last_id,
                       .unit = u->number,
                       .worker = worker,
                       .since = now,
                       .deadline = now + time_allowed(book)};
  add_lease(book, u, out);
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

double shoal_lease_next_deadline(shoal_lease_book *book, double now) {
  double next = soonest(book);
  if (next > now) return next;
  next = INFINITY;
  for (uint32_t i = 0; i < book->units_count; i++) {
    double at = due(book, &book->units[i]);
    if (at > now) next = fmin(next, at);
  }
  return next;
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
