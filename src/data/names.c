/* names.c: a pool of names, end to end, and a hash table of their numbers with linear probing. */
#include "data/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "data/limits.h"

void shoal_names_init(shoal_names *names) { *names = (shoal_names){0}; }

void shoal_names_release(shoal_names *names) {
  free(names->starts);
  free(names->slots);
  shoal_text_release(&names->pool);
  shoal_names_init(names);
}

const char *shoal_names_at(const shoal_names *names, uint32_t number) {
  SHOAL_ASSERT(number < names->count);
  return names->pool.bytes + names->starts[number];
}

/* FNV-1a, then a multiplication that brings the high bits down. */
static size_t hash_of(const char *name, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
  return (size_t)((hash * 0x9e3779b97f4a7c15u) >> 20);
}

/* The slot that holds the name, or the empty one where it would go. */
static size_t slot_of(const shoal_names *names, const char *name, size_t length) {
  size_t mask = names->slots_count - 1, slot = hash_of(name, length) & mask;
  for (; names->slots[slot] != SHOAL_NO_NAME; slot = (slot + 1) & mask) {
    const char *there = shoal_names_at(names, names->slots[slot]);
    if (strncmp(there, name, length) == 0 && there[length] == 0) break;
  }
  return slot;
}

static void fill_slots(shoal_names *names) {
  for (size_t i = 0; i < names->slots_count; i++) names->slots[i] = SHOAL_NO_NAME;
  for (uint32_t i = 0; i < names->count; i++) {
    const char *name = shoal_names_at(names, i);
    names->slots[slot_of(names, name, strlen(name))] = i;
  }
}

/* Room for one more; the hash table stays at most half full. */
static bool reserve(shoal_names *names) {
  if (names->count < names->capacity) return true;
  uint32_t capacity = names->capacity ? names->capacity * 2 : 32;
  if (capacity < names->capacity) return false;
  size_t *starts = realloc(names->starts, capacity * sizeof *starts);
  if (starts) names->starts = starts;
  size_t slots_count = (size_t)capacity * 2;
  uint32_t *slots = realloc(names->slots, slots_count * sizeof *slots);
  if (slots) names->slots = slots;
  if (!starts || !slots) return false;
  names->capacity = capacity;
  names->slots_count = slots_count;
  fill_slots(names);
  return true;
}

uint32_t shoal_names_find(const shoal_names *names, const char *name, size_t length) {
  return names->count ? names->slots[slot_of(names, name, length)] : SHOAL_NO_NAME;
}

uint32_t shoal_names_add(shoal_names *names, const char *name, size_t length) {
  uint32_t number = shoal_names_find(names, name, length);
  if (number != SHOAL_NO_NAME) return number;
  size_t start = names->pool.length;
  if (names->count >= SHOAL_NO_NAME - 1 || !reserve(names)) return SHOAL_NO_NAME;
  shoal_text_add(&names->pool, name, length);
  shoal_text_add(&names->pool, "", 1);
  if (names->pool.failed) return SHOAL_NO_NAME;
  size_t slot = slot_of(names, name, length);
  names->starts[names->count] = start;
  names->slots[slot] = names->count;
  return names->count++;
}

bool shoal_names_reorder(shoal_names *names, const uint32_t *order) {
  if (names->count == 0) return true;
  size_t *starts = malloc(names->capacity * sizeof *starts);
  if (!starts) return false;
  for (uint32_t i = 0; i < names->count; i++) starts[i] = names->starts[order[i]];
  free(names->starts);
  names->starts = starts;
  fill_slots(names);
  return true;
}

shoal_status shoal_names_fail_column(const shoal_names *columns, const char *file, const char *name,
                                     shoal_error *err) {
  enum { SHOWN_BYTES_MAX = 400 };
  const char **names = calloc(columns->count + (size_t)1, sizeof *names);
  for (uint32_t i = 0; names && i < columns->count; i++) names[i] = shoal_names_at(columns, i);
  const char *nearest = names ? shoal_nearest(name, strlen(name), names, columns->count) : NULL;
  shoal_text list = {0};
  uint32_t shown = 0;
  while (shown < columns->count && list.length < SHOWN_BYTES_MAX) {
    shoal_text_addf(&list, "%s'%.60s'", shown > 0 ? ", " : "", shoal_names_at(columns, shown));
    shown++;
  }
  if (shown < columns->count) shoal_text_addf(&list, " and %u more", columns->count - shown);
  if (nearest)
    shoal_fail(err, SHOAL_INVALID, "%s: no column is called '%.60s'; did you mean '%.60s'?", file, name,
               nearest);
  else
    shoal_fail(err, SHOAL_INVALID, "%s: no column is called '%.60s'; there %s %s", file, name,
               columns->count == 1 ? "is" : "are", list.failed || list.length == 0 ? "none" : list.bytes);
  shoal_text_release(&list);
  free(names);
  return SHOAL_INVALID;
}

void shoal_names_write(const shoal_names *names, shoal_json *json, const char *key) {
  shoal_json_open(json, key, '[');
  for (uint32_t i = 0; i < names->count; i++) shoal_json_text(json, NULL, shoal_names_at(names, i));
  shoal_json_close(json, ']');
}

shoal_status shoal_names_read(shoal_names *names, const cJSON *array, uint32_t max, const char *what,
                              shoal_error *err) {
  if (!cJSON_IsArray(array)) return shoal_fail(err, SHOAL_CORRUPT, "%s: not a list", what);
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    if (!cJSON_IsString(item) || strlen(item->valuestring) > SHOAL_NAME_BYTES_MAX ||
        !shoal_utf8_valid(item->valuestring, strlen(item->valuestring)))
      return shoal_fail(err, SHOAL_CORRUPT, "%s: item %u is not a name", what, names->count + 1);
    if (names->count >= max) return shoal_fail(err, SHOAL_LIMIT, "%s: more than %u", what, max);
    uint32_t expected = names->count;
    uint32_t number = shoal_names_add(names, item->valuestring, strlen(item->valuestring));
    if (number == SHOAL_NO_NAME) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    if (number != expected)
      return shoal_fail(err, SHOAL_CORRUPT, "%s: '%.100s' stands there twice", what, item->valuestring);
  }
  return SHOAL_OK;
}
