/* lease.c: see lease.h.
 *
 * Units live in a table in order of their numbers; leases in a table without order. Both are
 * small (a round or two of units, a few leases each), so every question is a walk. */
#include "proto/lease.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { DURATIONS = 31 };

typedef struct unit {
  uint64_t number;
  bool finished;
  uint64_t digest; /* of the first result */
  uint32_t leases; /* running ones */
  double deadline; /* the latest of theirs */
} unit;

struct shoal_lease_book {
  shoal_lease_rules rules;
  unit *units;
  uint32_t units_count;
  shoal_lease *leases;
  uint32_t leases_count, leases_max;
  uint64_t last_id, again;
  double durations[DURATIONS]; /* of the last results, the oldest overwritten next */
  uint32_t durations_count, durations_next;
};

shoal_status shoal_lease_book_create(shoal_lease_book **out, const shoal_lease_rules *rules,
                                     shoal_error *err) {
  SHOAL_ASSERT(rules->units_max > 0 && rules->holders_max > 0 && rules->patience >= 1);
  *out = NULL;
  shoal_lease_book *book = calloc(1, sizeof *book);
  uint64_t leases_max = (uint64_t)rules->units_max * rules->holders_max;
  unit *units = calloc(rules->units_max, sizeof *units);
  shoal_lease *leases = calloc(leases_max, sizeof *leases);
  if (book == NULL || units == NULL || leases == NULL || leases_max > UINT32_MAX) {
    free(book);
    free(units);
    free(leases);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a book of %u units", rules->units_max);
  }
  book->rules = *rules;
  book->units = units;
  book->leases = leases;
  book->leases_max = (uint32_t)leases_max;
  *out = book;
  return SHOAL_OK;
}

void shoal_lease_book_destroy(shoal_lease_book *book) {
  if (book == NULL) return;
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
  for (uint32_t i = 0; i < book->leases_count; i++)
    if (book->leases[i].id == id) return &book->leases[i];
  return NULL;
}

static bool holds(const shoal_lease_book *book, uint64_t worker, uint64_t number) {
  for (uint32_t i = 0; i < book->leases_count; i++)
    if (book->leases[i].worker == worker && book->leases[i].unit == number) return true;
  return false;
}

static void end_lease(shoal_lease_book *book, shoal_lease *lease) {
  unit *u = find_unit(book, lease->unit);
  *lease = book->leases[--book->leases_count];
  u->leases--;
  u->deadline = -INFINITY;
  for (uint32_t i = 0; i < book->leases_count; i++)
    if (book->leases[i].unit == u->number) u->deadline = fmax(u->deadline, book->leases[i].deadline);
}

bool shoal_lease_offer(shoal_lease_book *book, uint64_t number) {
  if (book->units_count == book->rules.units_max) return false;
  uint32_t place = place_of(book, number);
  unit *u = &book->units[place];
  SHOAL_ASSERT(place == book->units_count || u->number != number);
  memmove(u + 1, u, (book->units_count - place) * sizeof *u);
  *u = (unit){.number = number, .deadline = -INFINITY};
  book->units_count++;
  return true;
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double time_allowed(const shoal_lease_book *book) {
  if (book->durations_count == 0) return fmax(book->rules.first_s, book->rules.least_s);
  double sorted[DURATIONS];
  memcpy(sorted, book->durations, book->durations_count * sizeof *sorted);
  qsort(sorted, book->durations_count, sizeof *sorted, compare_reals);
  return fmax(book->rules.patience * sorted[book->durations_count / 2], book->rules.least_s);
}

/* The unit that is overdue for longest and that this worker does not have, or NULL. */
static unit *overdue_unit(const shoal_lease_book *book, uint64_t worker, double now) {
  unit *best = NULL;
  for (uint32_t i = 0; i < book->units_count; i++) {
    unit *u = &book->units[i];
    if (u->finished || u->leases == 0 || u->leases >= book->rules.holders_max) continue;
    bool overdue = u->deadline <= now && (best == NULL || u->deadline < best->deadline);
    if (overdue && !holds(book, worker, u->number)) best = u;
  }
  return best;
}

static unit *free_unit(const shoal_lease_book *book) {
  for (uint32_t i = 0; i < book->units_count; i++)
    if (!book->units[i].finished && book->units[i].leases == 0) return &book->units[i];
  return NULL;
}

bool shoal_lease_has_free(const shoal_lease_book *book) { return free_unit(book) != NULL; }

bool shoal_lease_take(shoal_lease_book *book, uint64_t worker, double now, shoal_lease *out) {
  unit *u = free_unit(book);
  if (u == NULL) {
    u = overdue_unit(book, worker, now);
    if (u == NULL) return false;
    book->again++;
  }
  SHOAL_ASSERT(book->leases_count < book->leases_max);
  shoal_lease *lease = &book->leases[book->leases_count++];
  *lease = (shoal_lease){.id = ++book->last_id,
                         .unit = u->number,
                         .worker = worker,
                         .since = now,
                         .deadline = now + time_allowed(book)};
  u->leases++;
  u->deadline = fmax(u->deadline, lease->deadline);
  *out = *lease;
  return true;
}

shoal_lease_outcome shoal_lease_finish(shoal_lease_book *book, uint64_t id, uint64_t worker, uint64_t number,
                                       uint64_t digest, double now) {
  shoal_lease *lease = find_lease(book, id);
  if (lease == NULL || lease->worker != worker || lease->unit != number) return SHOAL_LEASE_STRANGE;
  unit *u = find_unit(book, number);
  book->durations[book->durations_next] = now - lease->since;
  book->durations_next = (book->durations_next + 1) % DURATIONS;
  if (book->durations_count < DURATIONS) book->durations_count++;
  end_lease(book, lease);
  if (u->finished) return u->digest == digest ? SHOAL_LEASE_AGREES : SHOAL_LEASE_DIFFERS;
  u->finished = true;
  u->digest = digest;
  return SHOAL_LEASE_FIRST;
}

void shoal_lease_return(shoal_lease_book *book, uint64_t id, uint64_t worker) {
  shoal_lease *lease = find_lease(book, id);
  if (lease != NULL && lease->worker == worker) end_lease(book, lease);
}

void shoal_lease_drop(shoal_lease_book *book, uint64_t worker) {
  for (uint32_t i = 0; i < book->leases_count;)
    if (book->leases[i].worker == worker)
      end_lease(book, &book->leases[i]);
    else
      i++;
}

void shoal_lease_forget(shoal_lease_book *book, uint64_t below) {
  bool all = below == UINT64_MAX;
  for (uint32_t i = 0; i < book->leases_count;)
    if (all || book->leases[i].unit < below)
      book->leases[i] = book->leases[--book->leases_count];
    else
      i++;
  uint32_t gone = all ? book->units_count : place_of(book, below);
  book->units_count -= gone;
  memmove(book->units, book->units + gone, book->units_count * sizeof *book->units);
}

double shoal_lease_next_deadline(const shoal_lease_book *book, double now) {
  double next = INFINITY;
  for (uint32_t i = 0; i < book->units_count; i++) {
    const unit *u = &book->units[i];
    if (!u->finished && u->leases > 0 && u->deadline > now) next = fmin(next, u->deadline);
  }
  return next;
}

bool shoal_lease_held(const shoal_lease_book *book, uint64_t worker, shoal_lease *out) {
  const shoal_lease *last = NULL;
  for (uint32_t i = 0; i < book->leases_count; i++)
    if (book->leases[i].worker == worker && (last == NULL || book->leases[i].id > last->id))
      last = &book->leases[i];
  if (last == NULL) return false;
  *out = *last;
  return true;
}

shoal_lease_counts shoal_lease_count(const shoal_lease_book *book) {
  shoal_lease_counts counts = {.again = book->again};
  for (uint32_t i = 0; i < book->units_count; i++) {
    const unit *u = &book->units[i];
    if (u->finished)
      counts.finished++;
    else if (u->leases > 0)
      counts.leased++;
    else
      counts.free++;
  }
  return counts;
}
