/* store_internal.h: what the files of the store share. A call locks the store, does its statements, and ends.
 * */
#ifndef SHOAL_STORE_STORE_INTERNAL_H
#define SHOAL_STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "store/db.h"
#include "store/store.h"

typedef struct shoal_post shoal_post;

/* While `away`, the db is the mender's alone. */
struct shoal_store {
  shoal_db *db;
  pthread_mutex_t lock;
  bool away, closing, has_mender;
  pthread_t mender;
  pthread_cond_t news; /* it is away, it is back, it is closed */
  shoal_post *first;   /* what is due, the oldest first */
  shoal_post *last;    /* the newest of them */
  shoal_post *sending; /* one of them that the mender is writing */
  size_t due_bytes;
  shoal_store_state health;
  uint64_t audits; /* rows of the audit log that were added */
};

/* ---- posts.c: changes that are posted are taken in any case: done now, or kept and done as soon as the
 * database takes them ---- */

/* The changes that are kept take at most so much memory: about 90,000 points of curves. When there are more, the
 * oldest relaxed ones go, and then new ones are refused. */
enum { SHOAL_STORE_DUE_BYTES_MAX = 48 << 20 };

/* A transaction of at most so many statements. NULL: no memory, which all of these take and which
 * shoal_store_post tells. */
shoal_post *shoal_post_create(shoal_db_mode mode, size_t statements);
/* Of those with this statement and the same first value, a number, only the last need be kept. */
void shoal_post_keep_latest(shoal_post *post);
/* The sql is static; values are copied. */
void shoal_post_add(shoal_post **post, const char *sql, const shoal_db_value *values, size_t count);
/* Takes the post over. *changed (unless NULL): rows, by its last statement; 1 where that is not known yet. */
shoal_status shoal_store_post(shoal_store *store, shoal_post *post, uint64_t *changed, shoal_error *err);
/* One of one statement. */
shoal_status shoal_store_post_one(shoal_store *store, shoal_db_mode mode, const char *sql,
                                  const shoal_db_value *values, size_t count, uint64_t *changed,
                                  shoal_error *err);

void shoal_store_init_outbox(shoal_store *store);
/* Tries once more to hand over what is due. */
void shoal_store_release_outbox(shoal_store *store);
/* These with the lock. The database failed: the store is away. */
void shoal_store_lose(shoal_store *store, const shoal_error *err);
shoal_status shoal_store_refuse(const shoal_store *store, shoal_error *err); /* SHOAL_UNAVAILABLE */
/* Waits a moment; whether it is there again. */
bool shoal_store_comes_back(shoal_store *store);

/* ---- what every call does ---- */

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
