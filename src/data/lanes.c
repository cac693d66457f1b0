/* lanes.c: see lanes.h.
 *
 * What an epoch's shuffled blocks are is a table, made when the epoch is first asked for. There are two of
 * them, for even and odd epochs: who is ahead asks for the next epoch while others are in this one. */
#include "data/lanes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "data/order.h"

enum { WINDOW_BLOCKS = 4, TABLES = 2 };
enum { KEY_BLOCKS = 1, KEY_WINDOWS = 2 }; /* 0 is the order of `shuffle all` */

typedef struct table {
  bool made;
  uint64_t epoch;
  uint64_t *order; /* block at each place of the row */
  uint64_t *ends;  /* where it ends in the row */
} table;

struct shoal_lanes {
  uint64_t seed, samples, rounds, blocks_count, window;
  uint32_t batch, count;
  uint64_t *blocks;
  uint64_t *begins;                 /* of lanes in the row: count + 1 */
  uint32_t *starts, *last_starts;   /* or */
  uint32_t *lane_of_round, *before; /* before: rounds of the same lane before this one */
  pthread_rwlock_t lock;
  table tables[TABLES];
};

/* Where a position is: its lane, and its place in that. */
typedef struct spot {
  uint32_t lane;
  uint64_t place;
} spot;

static void *copy_of(const void *from, size_t count, size_t each) {
  void *copy = malloc(count * each + 1);
  if (copy != NULL && count > 0) memcpy(copy, from, count * each);
  return copy;
}

static uint64_t rows_of(const shoal_lanes *l, uint64_t round) {
  uint64_t left = l->samples - round * l->batch;
  return left < l->batch ? left : l->batch;
}

/* How long each lane is, and so where it begins. */
static void measure_lanes(shoal_lanes *l) {
  memset(l->begins, 0, ((size_t)l->count + 1) * sizeof *l->begins);
  for (uint32_t v = 0; v < l->count && l->starts != NULL; v++)
    l->begins[v + 1] =
        (l->rounds - 1) * (l->starts[v + 1] - l->starts[v]) + l->last_starts[v + 1] - l->last_starts[v];
  for (uint64_t r = 0; r < l->rounds && l->lane_of_round != NULL; r++) {
    uint32_t v = l->lane_of_round[r];
    l->before[r] = (uint32_t)(l->begins[v + 1] / l->batch);
    l->begins[v + 1] += rows_of(l, r);
  }
  for (uint32_t v = 0; v < l->count; v++) l->begins[v + 1] += l->begins[v];
  SHOAL_ASSERT(l->begins[l->count] == l->samples);
}

static bool reserve(shoal_lanes *l, const shoal_lanes_config *config) {
  const shoal_deal *deal = &config->deal;
  bool parts = deal->lane_of_round == NULL;
  l->blocks = copy_of(config->blocks, l->blocks_count + 1, sizeof *l->blocks);
  l->begins = malloc(((size_t)l->count + 1) * sizeof *l->begins);
  if (parts) {
    l->starts = copy_of(deal->starts, (size_t)l->count + 1, sizeof *l->starts);
    l->last_starts = copy_of(deal->last_starts, (size_t)l->count + 1, sizeof *l->last_starts);
  } else {
    l->lane_of_round = copy_of(deal->lane_of_round, l->rounds, sizeof *l->lane_of_round);
    l->before = malloc(l->rounds * sizeof *l->before);
  }
  bool ok = l->blocks && l->begins && (parts ? l->starts && l->last_starts : l->lane_of_round && l->before);
  for (int i = 0; i < TABLES; i++) {
    l->tables[i].order = malloc(l->blocks_count * sizeof *l->tables[i].order);
    l->tables[i].ends = malloc(l->blocks_count * sizeof *l->tables[i].ends);
    ok = ok && l->tables[i].order && l->tables[i].ends;
  }
  return ok;
}

shoal_status shoal_lanes_create(shoal_lanes **out, const shoal_lanes_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->samples > 0 && config->batch > 0 && config->blocks_count > 0 &&
               config->deal.lanes > 0);
  *out = NULL;
  shoal_lanes *l = calloc(1, sizeof *l);
  if (l == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  pthread_rwlock_init(&l->lock, NULL);
  l->seed = config->seed;
  l->samples = config->samples;
  l->batch = config->batch;
  l->rounds = (config->samples + config->batch - 1) / config->batch;
  l->blocks_count = config->blocks_count;
  l->count = config->deal.lanes;
  l->window = (WINDOW_BLOCKS * config->samples + config->blocks_count - 1) / config->blocks_count;
  if (!reserve(l, config)) {
    shoal_lanes_destroy(l);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  measure_lanes(l);
  *out = l;
  return SHOAL_OK;
}

void shoal_lanes_destroy(shoal_lanes *l) {
  if (l == NULL) return;
  for (int i = 0; i < TABLES; i++) {
    free(l->tables[i].order);
    free(l->tables[i].ends);
  }
  pthread_rwlock_destroy(&l->lock);
  free(l->blocks);
  free(l->begins);
  free(l->starts);
  free(l->last_starts);
  free(l->lane_of_round);
  free(l->before);
  free(l);
}

/* ---- an epoch's row of blocks ---- */

static void make_table(const shoal_lanes *l, table *t, uint64_t epoch) {
  shoal_order order;
  uint64_t end = 0;
  shoal_order_init_key(&order, l->blocks_count, shoal_key_make(l->seed, SHOAL_FOR_ORDER, epoch, KEY_BLOCKS));
  for (uint64_t i = 0; i < l->blocks_count; i++) {
    uint64_t block = shoal_order_at(&order, i);
    end += l->blocks[block + 1] - l->blocks[block];
    t->order[i] = block;
    t->ends[i] = end;
  }
  t->epoch = epoch;
  t->made = true;
}

/* The table of an epoch, with the lock for reading, which the caller gives back. */
static const table *lock_table(shoal_lanes *l, uint64_t epoch) {
  table *t = &l->tables[epoch % TABLES];
  for (;;) {
    pthread_rwlock_rdlock(&l->lock);
    if (t->made && t->epoch == epoch) return t;
    pthread_rwlock_unlock(&l->lock);
    pthread_rwlock_wrlock(&l->lock);
    if (!t->made || t->epoch != epoch) make_table(l, t, epoch);
    pthread_rwlock_unlock(&l->lock);
  }
}

/* The place of the row in which a sample of the row is: the first that ends behind it. */
static uint64_t find_place(const shoal_lanes *l, const table *t, uint64_t at) {
  uint64_t low = 0, high = l->blocks_count - 1;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (t->ends[middle] > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* ---- positions ---- */

static spot spot_of(const shoal_lanes *l, uint64_t position) {
  uint64_t round = position / l->batch;
  uint32_t row = (uint32_t)(position % l->batch);
  if (l->lane_of_round != NULL)
    return (spot){l->lane_of_round[round], (uint64_t)l->before[round] * l->batch + row};
  const uint32_t *starts = round + 1 < l->rounds ? l->starts : l->last_starts;
  uint32_t v = 0;
  while (row >= starts[v + 1]) v++;
  return (spot){v, round * (l->starts[v + 1] - l->starts[v]) + row - starts[v]};
}

/* The order within a window; *last: which it is, to be made once for its samples. */
typedef struct window {
  bool made;
  uint32_t lane;
  uint64_t number;
  shoal_order order;
} window;

static void enter_window(const shoal_lanes *l, uint64_t epoch, const spot *s, window *w) {
  uint64_t number = s->place / l->window, length = l->begins[s->lane + 1] - l->begins[s->lane];
  if (w->made && w->lane == s->lane && w->number == number) return;
  uint64_t left = length - number * l->window;
  uint64_t key = KEY_WINDOWS + ((uint64_t)s->lane << 40) + number;
  *w = (window){.made = true, .lane = s->lane, .number = number};
  shoal_order_init_key(&w->order, left < l->window ? left : l->window,
                       shoal_key_make(l->seed, SHOAL_FOR_ORDER, epoch, key));
}

void shoal_lanes_at(shoal_lanes *l, uint64_t epoch, uint64_t first, uint32_t n, uint64_t *samples) {
  SHOAL_ASSERT(first <= l->samples && n <= l->samples - first);
  const table *t = lock_table(l, epoch);
  window w = {0};
  for (uint32_t i = 0; i < n; i++) {
    spot s = spot_of(l, first + i);
    enter_window(l, epoch, &s, &w);
    uint64_t at = l->begins[s.lane] + w.number * l->window + shoal_order_at(&w.order, s.place % l->window);
    uint64_t place = find_place(l, t, at), block = t->order[place];
    samples[i] = l->blocks[block + 1] - (t->ends[place] - at);
  }
  pthread_rwlock_unlock(&l->lock);
}

uint32_t shoal_lanes_ahead(shoal_lanes *l, uint64_t epoch, uint64_t position, uint64_t *blocks,
                           uint32_t most) {
  spot s = spot_of(l, position);
  uint64_t at = l->begins[s.lane] + s.place / l->window * l->window, end = l->begins[s.lane + 1];
  uint32_t count = 0;
  const table *t = lock_table(l, epoch);
  for (uint64_t place = find_place(l, t, at); at < end && count < most; place++) {
    if (t->ends[place] <= at) continue; /* an empty one */
    blocks[count++] = t->order[place];
    at = t->ends[place];
  }
  pthread_rwlock_unlock(&l->lock);
  return count;
}

uint64_t shoal_lanes_first(const shoal_lanes *l, uint64_t position) {
  spot s = spot_of(l, position);
  if (l->lane_of_round == NULL) {
    bool in_first = l->rounds > 1 && l->starts[s.lane + 1] > l->starts[s.lane];
    return in_first ? l->starts[s.lane] : position - s.place;
  }
  uint64_t round = 0;
  while (l->lane_of_round[round] != s.lane) round++;
  return round * l->batch;
}
