/* store_internal.h: what the files of the store share. A call locks the store, does its statements, and ends.
 * */
#ifndef SHOAL_STORE_STORE_INTERNAL_H
#define SHOAL_STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "store/db.h"
#include "store/store.h"

struct shoal_store {
  shoal_db *db;
  pthread_mutex_t lock;
};

/* Locks the store and begins a transaction; after a failure it is unlocked again. */
shoal_status shoal_store_begin(shoal_store *store, shoal_db_mode mode, shoal_error *err);
/* Commits when status is SHOAL_OK, else rolls back; unlocks; returns what came out. */
shoal_status shoal_store_end(shoal_store *store, shoal_status status, shoal_error *err);

/* A transaction of one statement. */
shoal_status shoal_store_change(shoal_store *store, shoal_db_mode mode, const char *sql,
                                const shoal_db_value *values, size_t count, uint64_t *changed,
                                shoal_error *err);
/* Inside a transaction: the next number of a kind ("job"), from 1, never given twice. */
shoal_status shoal_store_next_number(shoal_store *store, const char *kind, uint64_t *out, shoal_error *err);

/* How rows of a kind are read and given back. */
typedef struct shoal_store_shape {
  size_t bytes;
  bool (*read)(shoal_db *db, void *row);     /* false: no memory; then release can be called all the same */
  void (*release)(void *rows, size_t count); /* what they own */
} shoal_store_shape;

/* Reads what a statement gives, at most `max` rows, into an array of the caller's. After a failure none are
 * there. */
shoal_status shoal_store_read(shoal_store *store, const shoal_store_shape *shape, const char *sql,
                              const shoal_db_value *values, size_t values_count, void *out, size_t max,
                              size_t *count, shoal_error *err);

/* A copy of a column, or NULL without memory. */
char *shoal_store_copy(shoal_db *db, int column);
/* A text that may be missing. */
const char *shoal_store_or(const char *text, const char *otherwise);
/* Names that rows are found by: SHOAL_LIMIT when one is longer than SHOAL_STORE_KEY_MAX. */
shoal_status shoal_store_check_key(const char *what, const char *name, shoal_error *err);

#endif
