/* encoded.c: rows as a source for the engine; see encoder.h.
 *
 * Kept vectors are counted: sources of several trials share them, each with its own order. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/order.h"
#include "search/encoder.h"

enum { GROUP = 64, AHEAD = 8 }; /* rows that are looked up at once, and asked for before their turn */

typedef struct kept {
  atomic_uint users;
  float *x;
  int32_t *labels;
  float *targets;
} kept;

struct shoal_encoded {
  shoal_encoded_options options;
  uint64_t count; /* rows */
  uint32_t values;
  kept *kept; /* or NULL */
};

static uint64_t row_at(const shoal_encoded *e, uint64_t i) {
  return e->options.list ? e->options.list->at[i] : i;
}

static void kept_leave(kept *k) {
  if (k == NULL || atomic_fetch_sub(&k->users, 1) != 1) return;
  free(k->x);
  free(k->labels);
  free(k->targets);
  free(k);
}

static int32_t label_of(const shoal_encoded *e, uint64_t i) {
  const shoal_target *target = e->options.target;
  if (target == NULL || target->problem == SHOAL_REGRESSION) return 0;
  int32_t label = shoal_target_label(target, e->options.rows, row_at(e, i));
  return label < 0 ? 0 : label;
}

static float target_of(const shoal_encoded *e, uint64_t i) {
  const shoal_target *target = e->options.target;
  if (target == NULL || target->problem != SHOAL_REGRESSION) return 0;
  float value = shoal_target_value(target, e->options.rows, row_at(e, i));
  return isnan(value) ? 0 : value;
}

static kept *keep(const shoal_encoded *e) {
  kept *k = calloc(1, sizeof *k);
  if (k == NULL) return NULL;
  atomic_init(&k->users, 1);
  k->x = malloc((size_t)e->count * e->values * sizeof *k->x + 1);
  k->labels = malloc((size_t)e->count * sizeof *k->labels + 1);
  k->targets = malloc((size_t)e->count * sizeof *k->targets + 1);
  if (!k->x || !k->labels || !k->targets) {
    kept_leave(k);
    return NULL;
  }
  for (uint64_t i = 0; i < e->count; i++) {
    shoal_encoder_row(e->options.encoder, e->options.rows, row_at(e, i), k->x + i * e->values);
    k->labels[i] = label_of(e, i);
    k->targets[i] = target_of(e, i);
  }
  return k;
}

uint64_t shoal_encoded_bytes(uint64_t rows, const shoal_encoder *encoder) {
  return rows * (shoal_encoder_values(encoder) * sizeof(float) + sizeof(int32_t) + sizeof(float));
}

shoal_status shoal_encoded_create(shoal_encoded **out, const shoal_encoded_options *options,
                                  shoal_error *err) {
  *out = NULL;
  shoal_encoded *e = calloc(1, sizeof *e);
  if (e == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  e->options = *options;
  e->count = options->list ? options->list->count : shoal_rows_count(options->rows);
  e->values = shoal_encoder_values(options->encoder);
  if (shoal_encoded_bytes(e->count, options->encoder) <= options->keep_bytes) {
    e->kept = keep(e);
    if (e->kept == NULL) {
      free(e);
      return shoal_fail(
          err, SHOAL_NO_MEMORY, "not enough memory for %llu rows of values",
          (unsigned long long)(options->list ? options->list->count : shoal_rows_count(options->rows)));
    }
  }
  *out = e;
  return SHOAL_OK;
}

void shoal_encoded_destroy(shoal_encoded *e) {
  if (e == NULL) return;
  kept_leave(e->kept);
  free(e);
}

shoal_status shoal_encoded_share(shoal_encoded **out, shoal_encoded *from, uint64_t seed, shoal_error *err) {
  *out = malloc(sizeof **out);
  if (*out == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  **out = *from;
  (*out)->options.seed = seed;
  if (from->kept) atomic_fetch_add(&from->kept->users, 1);
  return SHOAL_OK;
}

static void fetch_row(const shoal_encoded *e, uint64_t i, uint32_t to, const shoal_batch *into) {
  if (into->x) {
    float *x = into->x + (size_t)to * e->values;
    if (e->kept)
      memcpy(x, e->kept->x + i * e->values, e->values * sizeof *x);
    else
      shoal_encoder_row(e->options.encoder, e->options.rows, row_at(e, i), x);
  }
  if (into->labels) into->labels[to] = e->kept ? e->kept->labels[i] : label_of(e, i);
  if (into->targets) into->targets[to] = e->kept ? e->kept->targets[i] : target_of(e, i);
  if (into->weight) into->weight[to] = 1;
  if (into->ids) into->ids[to] = i;
}

static uint64_t epoch_samples(const shoal_encoded *e) {
  uint64_t most = e->options.order ? e->options.epoch_rows : 0;
  return most > 0 && most < e->count ? most : e->count;
}

/* Which rows stand at the n places from `first` of an epoch on. Passes over all rows follow each other;
 * an epoch is a stretch of them. */
static void find_rows(const shoal_encoded *e, uint64_t epoch, uint64_t first, uint32_t n, uint64_t *out) {
  if (!e->options.order) {
    for (uint32_t k = 0; k < n; k++) out[k] = first + k;
    return;
  }
  uint64_t at = first + epoch * epoch_samples(e);
  for (uint32_t k = 0; k < n;) {
    uint64_t left = e->count - at % e->count;
    uint32_t run = n - k < left ? n - k : (uint32_t)left;
    shoal_order order;
    shoal_order_init(&order, e->count, e->options.seed, at / e->count);
    shoal_order_many(&order, at % e->count, run, out + k);
    k += run;
    at += run;
  }
}

/* Asks for a kept row, which lies anywhere, before it is needed. */
static void fetch_ahead(const shoal_encoded *e, uint64_t i) {
  const float *x = e->kept->x + i * e->values;
  for (uint32_t k = 0; k < e->values; k += 16) __builtin_prefetch(x + k);
  __builtin_prefetch(e->kept->labels + i);
  __builtin_prefetch(e->kept->targets + i);
}

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  const shoal_encoded *e = self;
  uint64_t at[GROUP];
  for (uint32_t done = 0; done < n;) {
    uint32_t group = n - done < GROUP ? n - done : GROUP;
    find_rows(e, epoch, first + done, group, at);
    for (uint32_t k = 0; e->kept && k < AHEAD && k < group; k++) fetch_ahead(e, at[k]);
    for (uint32_t k = 0; k < group; k++) {
      if (e->kept && k + AHEAD < group) fetch_ahead(e, at[k + AHEAD]);
      fetch_row(e, at[k], done + k, into);
    }
    done += group;
  }
}

shoal_source shoal_encoded_source(const shoal_encoded *e) {
  return (shoal_source){.self = e, .samples = epoch_samples(e), .fetch = fetch};
}
