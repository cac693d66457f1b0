/* store.c: opening, the tables, and what every call does. The statements of each subject are in a file of
 * their own: jobs.c, curves.c, things.c, tokens.c, audit.c. What is kept while the database is away is posts.c's.
 *
 * One text of SQL serves both databases. Numbers of rows come from the table `counters`, since the two have
 * different words for that, and a number that was given once never comes again. NULL stands for NAN.
 *
 * Which calls wait for the disk: those that change what a person or the server later relies on (jobs and
 * their states, models, data sets, tokens). A job that was said to be finished must not be found running
 * after a loss of power. Points, logs, contributions, progress and the audit log are relaxed: the last second
 * of them may go with the power, and a job that is resumed writes its points again from its last checkpoint.
 * */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"

/* What leads from version i to i + 1 of the tables. An older store goes through all that are missing, in one
 * transaction. A step that was released never changes. */
static const char *const MIGRATIONS[] = {
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL);"
    "CREATE TABLE jobs (id BIGINT PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL, state BIGINT NOT NULL,"
    "  reason TEXT NOT NULL, private BIGINT NOT NULL, spec TEXT NOT NULL, progress TEXT NOT NULL,"
    "  created DOUBLE PRECISION NOT NULL, started DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION NOT "
    "NULL);"
    "CREATE INDEX jobs_by_state ON jobs (state, id);"
    "CREATE TABLE points (job BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, kind BIGINT NOT NULL,"
    "  step BIGINT NOT NULL, time DOUBLE PRECISION, loss DOUBLE PRECISION, metric DOUBLE PRECISION,"
    "  samples_per_s DOUBLE PRECISION, held_out_loss DOUBLE PRECISION, held_out_metric DOUBLE PRECISION,"
    "  PRIMARY KEY (job, kind, step));"
    "CREATE TABLE logs (job BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, number BIGINT NOT NULL,"
    "  time DOUBLE PRECISION NOT NULL, text TEXT NOT NULL, PRIMARY KEY (job, number));"
    "CREATE TABLE contributions (job BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,"
    "  worker TEXT NOT NULL, units BIGINT NOT NULL, samples BIGINT NOT NULL, seconds DOUBLE PRECISION NOT "
    "NULL,"
    "  PRIMARY KEY (job, worker));"
    "CREATE TABLE things (kind BIGINT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, content TEXT NOT "
    "NULL,"
    "  created DOUBLE PRECISION NOT NULL, PRIMARY KEY (kind, name));"
    "CREATE TABLE tokens (id BIGINT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, role TEXT NOT NULL,"
    "  name TEXT NOT NULL, job BIGINT REFERENCES jobs (id) ON DELETE CASCADE,"
    "  created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL);"
    "CREATE INDEX tokens_by_job ON tokens (job);"
    "CREATE TABLE audit (number BIGINT PRIMARY KEY, time DOUBLE PRECISION NOT NULL, who TEXT NOT NULL,"
    "  what TEXT NOT NULL);"
    "INSERT INTO counters (name, value) VALUES ('job', 0), ('token', 0), ('audit', 0);",
    "CREATE TABLE standings (id BIGINT PRIMARY KEY, who TEXT NOT NULL UNIQUE, agreed BIGINT NOT NULL,"
    "  wrong BIGINT NOT NULL, banned BIGINT NOT NULL, reason TEXT NOT NULL, job BIGINT NOT NULL,"
    "  changed DOUBLE PRECISION NOT NULL);"
    "CREATE INDEX standings_by_ban ON standings (banned, id);"
    "INSERT INTO counters (name, value) VALUES ('standing', 0);",
    "CREATE TABLE units (job BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, unit BIGINT NOT NULL,"
    "  trial BIGINT NOT NULL, worker TEXT NOT NULL, time DOUBLE PRECISION NOT NULL, summary TEXT NOT NULL,"
    "  curve TEXT NOT NULL, PRIMARY KEY (job, unit));",
};
enum { VERSION = sizeof MIGRATIONS / sizeof *MIGRATIONS };

/* ---- opening ---- */

static shoal_status read_version(shoal_db *db, uint64_t *version, shoal_error *err) {
  bool row;
  shoal_status status = shoal_db_start(db, "SELECT version FROM store_version", NULL, 0, err);
  if (status != SHOAL_OK) return status;
  status = shoal_db_step(db, &row, err);
  *version = status == SHOAL_OK && row ? shoal_db_get_number(db, 0) : 0;
  shoal_db_end(db);
  return status;
}

static shoal_status migrate(shoal_db *db, shoal_error *err) {
  uint64_t version;
  shoal_status status =
      shoal_db_script(db, "CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)", err);
  if (status == SHOAL_OK) status = read_version(db, &version, err);
  if (status != SHOAL_OK) return status;
  if (version > VERSION)
    return shoal_fail(
        err, SHOAL_UNSUPPORTED,
        "%s: its tables are of version %llu, written by a newer shoal, and this one knows no more "
        "than version %d: use the newer program",
        shoal_db_label(db), (unsigned long long)version, VERSION);
  if (version == VERSION) return SHOAL_OK;
  for (uint64_t v = version; v < VERSION && status == SHOAL_OK; v++) {
    status = shoal_db_script(db, MIGRATIONS[v], err);
  }
  if (status == SHOAL_OK) status = shoal_db_run(db, "DELETE FROM store_version", NULL, 0, NULL, err);
  const shoal_db_value now = shoal_db_integer(VERSION);
  if (status == SHOAL_OK)
    status = shoal_db_run(db, "INSERT INTO store_version (version) VALUES ($1)", &now, 1, NULL, err);
  return status;
}

static shoal_status set_up(shoal_db *db, shoal_error *err) {
  shoal_status status = shoal_db_begin(db, SHOAL_DB_ALONE, err);
  if (status != SHOAL_OK) return status;
  status = migrate(db, err);
  if (status == SHOAL_OK) return shoal_db_commit(db, err);
  shoal_db_rollback(db);
  return status;
}

shoal_status shoal_store_open(shoal_store **out, const char *where, shoal_error *err) {
  *out = NULL;
  shoal_store *store = calloc(1, sizeof *store);
  if (store == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  shoal_status status = shoal_db_open(&store->db, where, err);
  if (status == SHOAL_OK) status = set_up(store->db, err);
  if (status != SHOAL_OK) {
    shoal_db_close(store->db);
    free(store);
    shoal_error_prefix(err, "cannot open the store: ");
    return status;
  }
  pthread_mutex_init(&store->lock, NULL);
  shoal_store_init_outbox(store);
  *out = store;
  return SHOAL_OK;
}

void shoal_store_close(shoal_store *store) {
  if (store == NULL) return;
  shoal_store_release_outbox(store);
  shoal_db_close(store->db);
  pthread_mutex_destroy(&store->lock);
  free(store);
}

shoal_status shoal_store_claim(shoal_store *store, shoal_error *err) {
  pthread_mutex_lock(&store->lock);
  shoal_status status = store->away ? shoal_store_refuse(store, err) : shoal_db_claim(store->db, err);
  pthread_mutex_unlock(&store->lock);
  return status;
}

const char *shoal_store_kind(const shoal_store *store) { return shoal_db_kind(store->db); }

/* ---- what every call does ---- */

/* Returns true if a call may begin again whose beginning the database failed: the store is back. */
static bool begins_again(shoal_store *store, shoal_status status, const shoal_error *why) {
  if (status != SHOAL_IO) return false;
  shoal_store_lose(store, why);
  return shoal_store_comes_back(store);
}

/* The status and the error of a call that failed: a store that is away says so in its own words. */
static shoal_status come_to(shoal_store *store, shoal_status status, const shoal_error *why,
                            shoal_error *err) {
  if (status == SHOAL_IO && store->away) return shoal_store_refuse(store, err);
  if (err != NULL) *err = *why;
  return status;
}

shoal_status shoal_store_begin(shoal_store *store, shoal_db_mode mode, shoal_error *err) {
  shoal_error why = {0};
  pthread_mutex_lock(&store->lock);
  shoal_status status = store->away ? SHOAL_IO : shoal_db_begin(store->db, mode, &why);
  if (!store->away && begins_again(store, status, &why)) status = shoal_db_begin(store->db, mode, &why);
  if (status == SHOAL_OK) return status;
  store->health.failures++;
  status = come_to(store, status, &why, err);
  pthread_mutex_unlock(&store->lock);
  return status;
}

/* A commit that was lost may have been done: it stays SHOAL_IO, so that nobody just repeats it. */
shoal_status shoal_store_end(shoal_store *store, shoal_status status, shoal_error *err) {
  shoal_error why = {0};
  bool whole = status == SHOAL_OK;
  if (whole)
    status = shoal_db_commit(store->db, &why);
  else
    shoal_db_rollback(store->db);
  if (whole && err != NULL && status != SHOAL_OK) *err = why;
  if (status == SHOAL_IO) {
    store->health.failures++;
    shoal_store_lose(store, err != NULL ? err : &why);
    if (!whole) status = shoal_store_refuse(store, err);
  }
  pthread_mutex_unlock(&store->lock);
  return status;
}

shoal_status shoal_store_change(shoal_store *store, shoal_db_mode mode, const char *sql,
                                const shoal_db_value *values, size_t count, uint64_t *changed,
                                shoal_error *err) {
  shoal_status status = shoal_store_begin(store, mode, err);
  if (status != SHOAL_OK) return status;
  return shoal_store_end(store, shoal_db_run(store->db, sql, values, count, changed, err), err);
}

shoal_status shoal_store_next_number(shoal_store *store, const char *kind, uint64_t *out, shoal_error *err) {
  const shoal_db_value name = shoal_db_text(kind);
  bool row = false;
  shoal_status status = shoal_db_start(
      store->db, "UPDATE counters SET value = value + 1 WHERE name = $1 RETURNING value", &name, 1, err);
  if (status != SHOAL_OK) return status;
  status = shoal_db_step(store->db, &row, err);
  if (status == SHOAL_OK && row) *out = shoal_db_get_number(store->db, 0);
  shoal_db_end(store->db);
  if (status == SHOAL_OK && !row)
    return shoal_fail(err, SHOAL_CORRUPT, "the store has lost its counter of the kind '%s'", kind);
  return status;
}

/* The rows of the statement that was started. */
static shoal_status read_rows(shoal_db *db, const shoal_store_shape *shape, char *out, size_t max,
                              size_t *count, shoal_error *err) {
  for (;;) {
    bool row;
    shoal_status status = shoal_db_step(db, &row, err);
    if (status != SHOAL_OK || !row || *count == max) return status;
    void *to = out + *count * shape->bytes;
    memset(to, 0, shape->bytes);
    ++*count;
    if (!shape->read(db, to)) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  }
}

shoal_status shoal_store_read(shoal_store *store, const shoal_store_shape *shape, const char *sql,
                              const shoal_db_value *values, size_t values_count, void *out, size_t max,
                              size_t *count, shoal_error *err) {
  shoal_error why = {0};
  *count = 0;
  pthread_mutex_lock(&store->lock);
  shoal_status status = store->away ? SHOAL_IO : shoal_db_start(store->db, sql, values, values_count, &why);
  if (!store->away && begins_again(store, status, &why))
    status = shoal_db_start(store->db, sql, values, values_count, &why);
  if (status == SHOAL_OK) {
    status = read_rows(store->db, shape, out, max, count, &why);
    shoal_db_end(store->db);
    if (status == SHOAL_IO) shoal_store_lose(store, &why);
  }
  if (status != SHOAL_OK) status = come_to(store, status, &why, err);
  pthread_mutex_unlock(&store->lock);
  if (status != SHOAL_OK) {
    if (shape->release != NULL) shape->release(out, *count);
    *count = 0;
  }
  return status;
}

char *shoal_store_copy(shoal_db *db, int column) { return strdup(shoal_db_get_text(db, column)); }

const char *shoal_store_or(const char *text, const char *otherwise) {
  return text != NULL ? text : otherwise;
}

shoal_status shoal_store_check_key(const char *what, const char *name, shoal_error *err) {
  if (strlen(name) <= SHOAL_STORE_KEY_MAX) return SHOAL_OK;
  return shoal_fail(err, SHOAL_LIMIT, "%s has %zu bytes; at most %d are allowed", what, strlen(name),
                    SHOAL_STORE_KEY_MAX);
}
