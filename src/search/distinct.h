/* distinct.h: the different values of a column, counted as they stream by.
 *
 * Up to a limit every value is kept with its count; beyond it new ones are not kept (those known are still
 * counted), and their number becomes an estimate (HyperLogLog, off by 2% or so). Values are told apart by
 * 64-bit hashes.
 *
 * Ownership: init, then release. Threads: none. */
#ifndef SHOAL_SEARCH_DISTINCT_H
#define SHOAL_SEARCH_DISTINCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/names.h"

typedef struct shoal_distinct_value {
  uint64_t hash; /* 0: an empty place */
  uint64_t count;
  uint32_t text; /* where it begins in the pool, from 1; 0: too long to be kept */
} shoal_distinct_value;

typedef struct shoal_distinct {
  uint32_t limit;         /* values */
  size_t text_bytes_max;  /* of all their texts */
  uint32_t count, places; /* a power of two, or 0 */
  shoal_distinct_value *values;
  shoal_text pool;    /* texts with a zero behind each */
  uint8_t *registers; /* of the estimate; NULL up to the limit */
  bool counts_only;   /* the values were dropped: only how many is still of interest */
} shoal_distinct;

void shoal_distinct_init(shoal_distinct *distinct, uint32_t limit, size_t text_bytes_max);
void shoal_distinct_release(shoal_distinct *distinct);
bool shoal_distinct_add(shoal_distinct *distinct, const char *text, size_t length); /* false without memory */
uint64_t shoal_distinct_count(const shoal_distinct *distinct);
/* Past the limit: forgets the values, and goes on with the estimate alone. */
void shoal_distinct_drop(shoal_distinct *distinct);

/* The most frequent ones first, at most `max`, of texts of at most `bytes_max`; ties by text. `counts` may
 * be NULL, or gets an array to be freed. False without memory. */
bool shoal_distinct_most(const shoal_distinct *distinct, uint32_t max, size_t bytes_max, shoal_names *out,
                         uint64_t **counts);

/* Quick, and the same on every machine. */
uint64_t shoal_hash_text(const char *text, size_t length);

#endif
