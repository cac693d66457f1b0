/* distinct.c: see distinct.h. An open hash table, at most half full, then registers: each keeps, for its
 * part of the hashes, the longest run of leading zeros that was seen. */
#include "search/distinct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTER_BITS = 12, REGISTERS = 1 << REGISTER_BITS };

static const uint64_t FACTOR = 0x9e3779b97f4a7c15u;

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * FACTOR;
  return hash ^ hash >> 29;
}

/* A word of eight bytes, the first one lowest, on machines of either order. */
static uint64_t word_at(const char *text, size_t length) {
  uint64_t word = 0;
  for (size_t i = 0; i < length; i++) word |= (uint64_t)(unsigned char)text[i] << 8 * i;
  return word;
}

uint64_t shoal_hash_text(const char *text, size_t length) {
  uint64_t hash = mix(0x2545f4914f6cdd1du, length);
  for (; length >= 8; text += 8, length -= 8) hash = mix(hash, word_at(text, 8));
  hash = mix(hash, word_at(text, length));
  hash = mix(hash, hash >> 32);
  return hash * FACTOR ^ hash >> 31;
}

void shoal_distinct_init(shoal_distinct *distinct, uint32_t limit, size_t text_bytes_max) {
  *distinct = (shoal_distinct){.limit = limit, .text_bytes_max = text_bytes_max};
  shoal_text_init(&distinct->pool);
}

void shoal_distinct_release(shoal_distinct *distinct) {
  free(distinct->values);
  free(distinct->registers);
  shoal_text_release(&distinct->pool);
  *distinct = (shoal_distinct){0};
}

static shoal_distinct_value *place_of(const shoal_distinct *distinct, uint64_t hash) {
  uint32_t mask = distinct->places - 1, at = (uint32_t)(hash >> 20) & mask;
  while (distinct->values[at].hash && distinct->values[at].hash != hash) at = (at + 1) & mask;
  return &distinct->values[at];
}

static bool grow(shoal_distinct *distinct) {
  if (distinct->count * 2 < distinct->places) return true;
  shoal_distinct bigger = {.places = distinct->places ? distinct->places * 2 : 64};
  bigger.values = calloc(bigger.places, sizeof *bigger.values);
  if (!bigger.values) return false;
  for (uint32_t i = 0; i < distinct->places; i++) {
    const shoal_distinct_value *value = &distinct->values[i];
    if (value->hash) *place_of(&bigger, value->hash) = *value;
  }
  free(distinct->values);
  distinct->values = bigger.values;
  distinct->places = bigger.places;
  return true;
}

static void note(shoal_distinct *distinct, uint64_t hash) {
  uint32_t part = (uint32_t)(hash >> (64 - REGISTER_BITS));
  uint64_t rest = hash << REGISTER_BITS | 1u << (REGISTER_BITS - 1);
  uint8_t run = (uint8_t)(__builtin_clzll(rest) + 1);
  if (run > distinct->registers[part]) distinct->registers[part] = run;
}

/* From here on the number of values is an estimate. */
static bool begin_estimate(shoal_distinct *distinct) {
  distinct->registers = calloc(REGISTERS, 1);
  if (!distinct->registers) return false;
  for (uint32_t i = 0; i < distinct->places; i++) {
    if (distinct->values[i].hash) note(distinct, distinct->values[i].hash);
  }
  return true;
}

static uint32_t keep_text(shoal_distinct *distinct, const char *text, size_t length) {
  size_t at = distinct->pool.length;
  if (at + length + 1 > distinct->text_bytes_max || at >= UINT32_MAX - 1) return 0;
  shoal_text_add(&distinct->pool, text, length);
  shoal_text_add(&distinct->pool, "", 1);
  return (uint32_t)at + 1;
}

bool shoal_distinct_add(shoal_distinct *distinct, const char *text, size_t length) {
  uint64_t hash = shoal_hash_text(text, length);
  if (hash == 0) hash = 1;
  if (distinct->registers) note(distinct, hash);
  if (distinct->counts_only) return true;
  if (!grow(distinct)) return false;
  shoal_distinct_value *value = place_of(distinct, hash);
  if (value->hash) {
    value->count++;
    return true;
  }
  if (distinct->registers) return true;
  if (distinct->count == distinct->limit) {
    if (!begin_estimate(distinct)) return false;
    note(distinct, hash);
    return true;
  }
  *value = (shoal_distinct_value){.hash = hash, .count = 1, .text = keep_text(distinct, text, length)};
  distinct->count++;
  return !distinct->pool.failed;
}

void shoal_distinct_drop(shoal_distinct *distinct) {
  if (!distinct->registers || distinct->counts_only) return;
  free(distinct->values);
  distinct->values = NULL;
  distinct->places = 0;
  shoal_text_release(&distinct->pool);
  distinct->counts_only = true;
}

uint64_t shoal_distinct_count(const shoal_distinct *distinct) {
  if (!distinct->registers) return distinct->count;
  double sum = 0;
  for (int i = 0; i < REGISTERS; i++) sum += ldexp(1, -distinct->registers[i]);
  double estimate = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS * (double)REGISTERS / sum;
  return estimate > distinct->limit ? (uint64_t)estimate : (uint64_t)distinct->limit + 1;
}

/* ---- the most frequent -------------------------------------------------------------- */

typedef struct ranked {
  const char *text;
  uint64_t count;
} ranked;

static int by_count(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  return x->count > y->count ? -1 : x->count < y->count ? 1 : strcmp(x->text, y->text);
}

bool shoal_distinct_most(const shoal_distinct *distinct, uint32_t max, size_t bytes_max, shoal_names *out,
                         uint64_t **counts) {
  ranked *all = calloc(distinct->count ? distinct->count : 1, sizeof *all);
  uint32_t count = 0;
  bool good = all != NULL;
  for (uint32_t i = 0; good && i < distinct->places; i++) {
    const shoal_distinct_value *value = &distinct->values[i];
    if (!value->hash || !value->text) continue;
    const char *text = distinct->pool.bytes + value->text - 1;
    if (strlen(text) <= bytes_max) all[count++] = (ranked){text, value->count};
  }
  if (good) qsort(all, count, sizeof *all, by_count);
  if (count > max) count = max;
  if (good && counts) good = (*counts = calloc(count ? count : 1, sizeof **counts)) != NULL;
  for (uint32_t i = 0; good && i < count; i++) {
    good = shoal_names_add(out, all[i].text, strlen(all[i].text)) == i;
    if (counts) (*counts)[i] = all[i].count;
  }
  free(all);
  return good;
}
