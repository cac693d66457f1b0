/* posts.c: what the database did not take, until it takes it. See store_internal.h.
 *
 * While the store is away its connection belongs to a thread of its own, the mender: nobody else touches it,
 * so the lock is free while the mender waits for the database. Everybody else is refused at once, but for
 * changes that are posted: these wait in a list, the oldest first. The mender opens the connection again,
 * writes something to see that this is possible, hands over the list, and only then is the store back: nobody
 * reads what is older than what was posted. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/driver.h"
#include "store/store_internal.h"

static const double AGAIN_S = 0.5; /* between the mender's attempts */
static const double BLINK_S = 1;   /* how long a call waits for a store that may be back at once */

typedef struct posted_statement {
  const char *sql;
  size_t count;
  shoal_db_value values[SHOAL_DB_VALUES_MAX]; /* texts are copies */
} posted_statement;

struct shoal_post {
  shoal_post *next;
  shoal_db_mode mode;
  bool latest;  /* one of the same statement and the same first value takes its place */
  size_t bytes; /* of memory, with its texts */
  size_t count, room;
  posted_statement statements[];
};

/* ---- a change that is posted ---- */

static void free_post(shoal_post *post) {
  if (post == NULL) return;
  for (size_t i = 0; i < post->count; i++)
    for (size_t v = 0; v < post->statements[i].count; v++)
      if (post->statements[i].values[v].type == SHOAL_DB_TEXT)
        free((char *)post->statements[i].values[v].text);
  free(post);
}

shoal_post *shoal_post_create(shoal_db_mode mode, size_t statements) {
  size_t bytes = sizeof(shoal_post) + statements * sizeof(posted_statement);
  shoal_post *post = calloc(1, bytes);
  if (post == NULL) return NULL;
  post->mode = mode;
  post->bytes = bytes;
  post->room = statements;
  return post;
}

void shoal_post_keep_latest(shoal_post *post) {
  if (post != NULL) post->latest = true;
}

void shoal_post_add(shoal_post **post, const char *sql, const shoal_db_value *values, size_t count) {
  shoal_post *p = *post;
  if (p == NULL) return;
  SHOAL_ASSERT(p->count < p->room && count <= SHOAL_DB_VALUES_MAX);
  posted_statement *s = &p->statements[p->count++];
  *s = (posted_statement){.sql = sql};
  for (; s->count < count; s->count++) {
    shoal_db_value *v = &s->values[s->count];
    *v = values[s->count];
    if (v->type != SHOAL_DB_TEXT) continue;
    p->bytes += strlen(v->text) + 1;
    if ((v->text = strdup(v->text)) != NULL) continue;
    free_post(p);
    *post = NULL;
    return;
  }
}

/* One transaction; *changed: rows, by the last statement. */
static shoal_status run(shoal_db *db, const shoal_post *post, uint64_t *changed, shoal_error *err) {
  shoal_status status = shoal_db_begin(db, post->mode, err);
  if (status != SHOAL_OK) return status;
  for (size_t i = 0; i < post->count && status == SHOAL_OK; i++) {
    const posted_statement *s = &post->statements[i];
    status = shoal_db_run(db, s->sql, s->values, s->count, changed, err);
  }
  if (status == SHOAL_OK) return shoal_db_commit(db, err);
  shoal_db_rollback(db);
  return status;
}

/* Whether the database is at fault, and not what it was asked. */
static bool is_database(shoal_status status) {
  return status == SHOAL_IO || status == SHOAL_NO_MEMORY || status == SHOAL_CORRUPT;
}

/* ---- the list ---- */

static void take_out(shoal_store *store, shoal_post *post) {
  shoal_post **at = &store->first, *before = NULL;
  for (; *at != post; at = &before->next) before = *at;
  *at = post->next;
  if (store->last == post) store->last = before;
  store->due_bytes -= post->bytes;
  store->health.due--;
}

static bool replaces(const shoal_post *post, const shoal_post *old) {
  return post->latest && old->latest && post->statements[0].sql == old->statements[0].sql &&
         post->statements[0].values[0].integer == old->statements[0].values[0].integer;
}

/* The oldest that the new one makes needless, or that may be lost when there are too many; NULL: none. The one
 * that is under way stays. */
static shoal_post *find_needless(const shoal_store *store, const shoal_post *post) {
  for (shoal_post *old = post->latest ? store->first : NULL; old != NULL; old = old->next)
    if (old != store->sending && replaces(post, old)) return old;
  if (store->due_bytes + post->bytes <= SHOAL_STORE_DUE_BYTES_MAX) return NULL;
  for (shoal_post *old = store->first; old != NULL; old = old->next)
    if (old != store->sending && old->mode == SHOAL_DB_RELAXED) return old;
  return NULL;
}

/* Takes the post over; false: there is no room. */
static bool put(shoal_store *store, shoal_post *post) {
  for (shoal_post *old; (old = find_needless(store, post)) != NULL; free_post(old)) {
    if (!replaces(post, old)) store->health.lost++;
    take_out(store, old);
  }
  if (store->due_bytes + post->bytes > SHOAL_STORE_DUE_BYTES_MAX) {
    free_post(post);
    store->health.lost++;
    return false;
  }
  *(store->last != NULL ? &store->last->next : &store->first) = post;
  store->last = post;
  store->due_bytes += post->bytes;
  store->health.due++;
  return true;
}

/* ---- the mender ---- */

static void note_reason(shoal_store *store, const shoal_error *err) {
  shoal_text_plain(store->health.reason, sizeof store->health.reason, err->text, strlen(err->text));
}

static void wait_until(shoal_store *store, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  long ns = until.tv_nsec + (long)(seconds * 1e9);
  until.tv_sec += ns / 1000000000;
  until.tv_nsec = ns % 1000000000;
  pthread_cond_timedwait(&store->news, &store->lock, &until);
}

/* Hands over what is due. With the lock, which is given up while the database works. */
static shoal_status deliver(shoal_store *store, shoal_error *err) {
  while (store->first != NULL) {
    shoal_post *post = store->sending = store->first;
    pthread_mutex_unlock(&store->lock);
    shoal_status status = run(store->db, post, NULL, err);
    pthread_mutex_lock(&store->lock);
    store->sending = NULL;
    if (is_database(status)) return status;
    /* Its job may be deleted, or its first commit done, of which the connection brought no word. */
    bool needless = status == SHOAL_NOT_FOUND || status == SHOAL_CONFLICT;
    if (status != SHOAL_OK && !needless) store->health.lost++;
    take_out(store, post);
    free_post(post);
  }
  return SHOAL_OK;
}

/* Whether changes are possible again: a file can be read on a disk that is full. */
static shoal_status try_change(shoal_db *db, shoal_error *err) {
  shoal_status status = shoal_db_mend(db, err);
  if (status == SHOAL_OK) status = shoal_db_begin(db, SHOAL_DB_DURABLE, err);
  if (status != SHOAL_OK) return status;
  status = shoal_db_run(db, "UPDATE counters SET value = value + 0 WHERE name = 'job'", NULL, 0, NULL, err);
  if (status == SHOAL_OK) return shoal_db_commit(db, err);
  shoal_db_rollback(db);
  return status;
}

static void *mend(void *self) {
  shoal_store *store = self;
  shoal_error err;
  pthread_mutex_lock(&store->lock);
  for (bool last = false; !last;) {
    while (!store->away && !store->closing) pthread_cond_wait(&store->news, &store->lock);
    last = store->closing;
    if (!store->away) continue;
    pthread_mutex_unlock(&store->lock);
    shoal_status status = try_change(store->db, &err);
    pthread_mutex_lock(&store->lock);
    if (status == SHOAL_OK) status = deliver(store, &err);
    store->away = status != SHOAL_OK;
    if (store->away) {
      note_reason(store, &err);
      if (!store->closing) wait_until(store, AGAIN_S);
    } else {
      pthread_cond_broadcast(&store->news);
    }
  }
  pthread_mutex_unlock(&store->lock);
  return NULL;
}

/* ---- for the store ---- */

void shoal_store_init_outbox(shoal_store *store) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&store->news, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

void shoal_store_release_outbox(shoal_store *store) {
  pthread_mutex_lock(&store->lock);
  store->closing = true;
  pthread_cond_broadcast(&store->news);
  pthread_mutex_unlock(&store->lock);
  if (store->has_mender) pthread_join(store->mender, NULL);
  while (store->first != NULL) {
    shoal_post *post = store->first;
    take_out(store, post);
    free_post(post);
  }
  pthread_cond_destroy(&store->news);
}

void shoal_store_lose(shoal_store *store, const shoal_error *err) {
  if (store->away) return;
  if (!store->has_mender) store->has_mender = pthread_create(&store->mender, NULL, mend, store) == 0;
  if (!store->has_mender) return; /* the next call tries the database itself */
  store->away = true;
  store->health.since = shoal_clock_seconds();
  note_reason(store, err);
  pthread_cond_broadcast(&store->news);
}

shoal_status shoal_store_refuse(const shoal_store *store, shoal_error *err) {
  return shoal_fail(err, SHOAL_UNAVAILABLE, "the store is unavailable: %s", store->health.reason);
}

bool shoal_store_comes_back(shoal_store *store) {
  double deadline = shoal_clock_seconds() + BLINK_S, left;
  while (store->away && (left = deadline - shoal_clock_seconds()) > 0) wait_until(store, left);
  return !store->away;
}

shoal_status shoal_store_post(shoal_store *store, shoal_post *post, uint64_t *changed, shoal_error *err) {
  if (post == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  shoal_error why = {0};
  shoal_status status = SHOAL_IO;
  pthread_mutex_lock(&store->lock);
  if (!store->away) status = run(store->db, post, changed, &why);
  if (is_database(status)) shoal_store_lose(store, &why);
  if (is_database(status)) store->health.failures++;
  if (is_database(status) && store->away) {
    if (changed != NULL) *changed = 1; /* as far as is known */
    status = put(store, post) ? SHOAL_OK : shoal_store_refuse(store, &why);
  } else {
    free_post(post);
  }
  pthread_mutex_unlock(&store->lock);
  if (status != SHOAL_OK && err != NULL) *err = why;
  return status;
}

shoal_status shoal_store_post_one(shoal_store *store, shoal_db_mode mode, const char *sql,
                                  const shoal_db_value *values, size_t count, uint64_t *changed,
                                  shoal_error *err) {
  shoal_post *post = shoal_post_create(mode, 1);
  shoal_post_add(&post, sql, values, count);
  return shoal_store_post(store, post, changed, err);
}

void shoal_store_health(shoal_store *store, shoal_store_state *out) {
  pthread_mutex_lock(&store->lock);
  *out = store->health;
  out->up = !store->away;
  pthread_mutex_unlock(&store->lock);
}
