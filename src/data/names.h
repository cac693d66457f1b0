/* names.h: a list of distinct names with their numbers: words of a vocabulary, classes,
 * columns of a table.
 *
 * Ownership: init, then release; names are copied in. Threads: read-only once filled. */
#ifndef SHOAL_DATA_NAMES_H
#define SHOAL_DATA_NAMES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

#define SHOAL_NO_NAME UINT32_MAX

typedef struct shoal_names {
  uint32_t count, capacity;
  size_t *starts; /* name i begins at pool.bytes + starts[i] and ends in a zero */
  shoal_text pool;
  uint32_t *slots;    /* a hash table: numbers, SHOAL_NO_NAME where empty */
  size_t slots_count; /* a power of two, or 0 */
} shoal_names;

void shoal_names_init(shoal_names *names);
void shoal_names_release(shoal_names *names);

/* The number of a name, which is added when it is new; SHOAL_NO_NAME without memory. */
uint32_t shoal_names_add(shoal_names *names, const char *name, size_t length);
/* SHOAL_NO_NAME when it is not there. */
uint32_t shoal_names_find(const shoal_names *names, const char *name, size_t length);
const char *shoal_names_at(const shoal_names *names, uint32_t number);
/* Puts name order[i] in place i; order is a permutation. False without memory. */
bool shoal_names_reorder(shoal_names *names, const uint32_t *order);

/* Fails with SHOAL_INVALID: no column is called `name`. The error suggests the nearest name or, if none is near,
 * lists as many columns as fit. */
shoal_status shoal_names_fail_column(const shoal_names *columns, const char *file, const char *name,
                                     shoal_error *err);

void shoal_names_write(const shoal_names *names, shoal_json *json, const char *key);
/* From a JSON array of different strings, at most `max`; `what` is for the error. */
shoal_status shoal_names_read(shoal_names *names, const cJSON *array, uint32_t max, const char *what,
                              shoal_error *err);

#endif
