/* sqlite.c: SQLite behind db.h.
 *
 * The file is in WAL mode: a reader beside the server, such as a backup, never stops it, and a transaction is
 * one write to the end of the log. What a transaction costs is the flush of that log to the disk, so only the
 * durable ones wait for it (synchronous=FULL); they carry along all relaxed ones before them. Whatever the
 * mode, a crash of the program loses nothing, and a loss of power never leaves half of a transaction. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/lock.h"
#include "base/text.h"
#include "store/driver.h"

static const int BUSY_MS = 5000; /* how long another process may hold the file */

typedef struct kept {
  const char *sql;
  sqlite3_stmt *statement;
} kept;

typedef struct sqlite_db {
  shoal_db db;
  sqlite3 *handle;
  char *path;
  int claim; /* a lock on PATH.lock: SQLite's own are held for a moment only */
  bool full; /* synchronous=FULL is set, not NORMAL */
  kept statements[SHOAL_DB_STATEMENTS_MAX];
  size_t statements_count;
  sqlite3_stmt *running; /* between start and end */
} sqlite_db;

static sqlite_db *self(shoal_db *db) { return (sqlite_db *)db; }

/* What SQLite's last error means to the caller. */
static shoal_status trouble(sqlite_db *s, shoal_error *err) {
  int code = sqlite3_extended_errcode(s->handle);
  const char *text = sqlite3_errmsg(s->handle);
  switch (code) {
  case SQLITE_CONSTRAINT_UNIQUE:
  case SQLITE_CONSTRAINT_PRIMARYKEY: return shoal_fail(err, SHOAL_CONFLICT, "%s: %s", s->path, text);
  case SQLITE_CONSTRAINT_FOREIGNKEY: return shoal_fail(err, SHOAL_NOT_FOUND, "%s: %s", s->path, text);
  default: break;
  }
  switch (code & 0xff) {
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT:
    return shoal_fail(
        err, SHOAL_CORRUPT,
        "%s is damaged or not a SQLite database (%s); put a copy of it back that is whole, or move it "
        "away to begin with an empty store",
        s->path, text);
  case SQLITE_CONSTRAINT: return shoal_fail(err, SHOAL_INVALID, "%s: %s", s->path, text);
  case SQLITE_NOMEM: return shoal_fail(err, SHOAL_NO_MEMORY, "%s: not enough memory", s->path);
  case SQLITE_TOOBIG: return shoal_fail(err, SHOAL_LIMIT, "%s: the text is too long", s->path);
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return shoal_fail(err, SHOAL_IO,
                      "%s: another program has been using the store for more than %d s; end it", s->path,
                      BUSY_MS / 1000);
  default: return shoal_fail(err, SHOAL_IO, "%s: %s", s->path, text);
  }
}

static shoal_status script(shoal_db *db, const char *sql, shoal_error *err) {
  sqlite_db *s = self(db);
  return sqlite3_exec(s->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? SHOAL_OK : trouble(s, err);
}

static void close_db(shoal_db *db) {
  sqlite_db *s = self(db);
  for (size_t i = 0; i < s->statements_count; i++) sqlite3_finalize(s->statements[i].statement);
  sqlite3_close(s->handle);
  shoal_lock_give(s->claim);
  free(s->path);
  free(s);
}

static const char *label(const shoal_db *db) { return ((const sqlite_db *)db)->path; }

static shoal_status claim(shoal_db *db, shoal_error *err) {
  sqlite_db *s = self(db);
  long holder;
  shoal_text path = {0};
  if (s->claim != SHOAL_NO_LOCK) return SHOAL_OK;
  shoal_text_addf(&path, "%s.lock", s->path);
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                    : shoal_lock_take(&s->claim, path.bytes, &holder, err);
  shoal_text_release(&path);
  if (status == SHOAL_CONFLICT)
    return shoal_fail(err, status, "another server (pid %ld) uses %s", holder, s->path);
  return status;
}

/* A file is there again by itself. */
static shoal_status mend(shoal_db *db, shoal_error *err) {
  (void)db;
  (void)err;
  return SHOAL_OK;
}

static shoal_status begin(shoal_db *db, shoal_db_mode mode, shoal_error *err) {
  sqlite_db *s = self(db);
  bool full = mode != SHOAL_DB_RELAXED;
  if (full != s->full) {
    shoal_status status = script(db, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", err);
    if (status != SHOAL_OK) return status;
    s->full = full;
  }
  return script(db, "BEGIN IMMEDIATE", err); /* there is one writer at a time anyway */
}

static shoal_status commit(shoal_db *db, shoal_error *err) {
  shoal_status status = script(db, "COMMIT", err);
  if (status != SHOAL_OK) db->driver->rollback(db);
  return status;
}

static void rollback(shoal_db *db) {
  sqlite_db *s = self(db);
  if (!sqlite3_get_autocommit(s->handle)) sqlite3_exec(s->handle, "ROLLBACK", NULL, NULL, NULL);
}

static shoal_status prepared(sqlite_db *s, const char *sql, sqlite3_stmt **out, shoal_error *err) {
  for (size_t i = 0; i < s->statements_count; i++) {
    if (s->statements[i].sql != sql && strcmp(s->statements[i].sql, sql) != 0) continue;
    *out = s->statements[i].statement;
    return SHOAL_OK;
  }
  SHOAL_ASSERT(s->statements_count < SHOAL_DB_STATEMENTS_MAX);
  if (sqlite3_prepare_v3(s->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK)
    return trouble(s, err);
  s->statements[s->statements_count++] = (kept){.sql = sql, .statement = *out};
  return SHOAL_OK;
}

static int bind(sqlite3_stmt *statement, size_t number, const shoal_db_value *v) {
  char name[32];
  snprintf(name, sizeof name, "$%zu", number);
  int place = sqlite3_bind_parameter_index(statement, name);
  SHOAL_ASSERT(place > 0);
  switch (v->type) {
  case SHOAL_DB_INTEGER: return sqlite3_bind_int64(statement, place, v->integer);
  case SHOAL_DB_REAL:
    return isnan(v->real) ? sqlite3_bind_null(statement, place)
                          : sqlite3_bind_double(statement, place, v->real);
  default: return sqlite3_bind_text64(statement, place, v->text, strlen(v->text), SQLITE_STATIC, SQLITE_UTF8);
  }
}

static void end(shoal_db *db) {
  sqlite_db *s = self(db);
  if (s->running == NULL) return;
  sqlite3_reset(s->running);
  sqlite3_clear_bindings(s->running);
  s->running = NULL;
}

static shoal_status start(shoal_db *db, const char *sql, const shoal_db_value *values, size_t count,
                          shoal_error *err) {
  sqlite_db *s = self(db);
  SHOAL_ASSERT(s->running == NULL);
  shoal_status status = prepared(s, sql, &s->running, err);
  if (status != SHOAL_OK) {
    s->running = NULL;
    return status;
  }
  for (size_t i = 0; i < count; i++) {
    if (bind(s->running, i + 1, &values[i]) == SQLITE_OK) continue;
    status = trouble(s, err);
    end(db);
    return status;
  }
  return SHOAL_OK;
}

static shoal_status step(shoal_db *db, bool *row, shoal_error *err) {
  sqlite_db *s = self(db);
  int code = sqlite3_step(s->running);
  *row = code == SQLITE_ROW;
  return code == SQLITE_ROW || code == SQLITE_DONE ? SHOAL_OK : trouble(s, err);
}

static uint64_t changed(shoal_db *db) { return (uint64_t)sqlite3_changes64(self(db)->handle); }

static int64_t get_integer(shoal_db *db, int column) {
  return sqlite3_column_int64(self(db)->running, column);
}

static double get_real(shoal_db *db, int column) {
  sqlite3_stmt *statement = self(db)->running;
  return sqlite3_column_type(statement, column) == SQLITE_NULL ? NAN
                                                               : sqlite3_column_double(statement, column);
}

static const char *get_text(shoal_db *db, int column) {
  const unsigned char *text = sqlite3_column_text(self(db)->running, column);
  return text != NULL ? (const char *)text : "";
}

static const shoal_db_driver driver = {
    .kind = "sqlite",
    .close = close_db,
    .label = label,
    .claim = claim,
    .mend = mend,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .script = script,
    .start = start,
    .step = step,
    .end = end,
    .changed = changed,
    .get_integer = get_integer,
    .get_real = get_real,
    .get_text = get_text,
};

/* The order of PostgreSQL's collation "C", so that one ORDER BY serves both. */
static int compare_bytes(void *context, int length, const void *bytes, int other_length, const void *other) {
  (void)context;
  int order = memcmp(bytes, other, (size_t)(length < other_length ? length : other_length));
  return order != 0 ? order : (length > other_length) - (length < other_length);
}

static shoal_status set_up(sqlite_db *s, shoal_error *err) {
  sqlite3_extended_result_codes(s->handle, 1);
  sqlite3_busy_timeout(s->handle, BUSY_MS);
  if (sqlite3_create_collation(s->handle, "C", SQLITE_UTF8, NULL, compare_bytes) != SQLITE_OK)
    return trouble(s, err);
  s->full = true;
  return script(&s->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON", err);
}

shoal_status shoal_sqlite_open(shoal_db **out, const char *path, shoal_error *err) {
  if (path[0] == 0) return shoal_fail(err, SHOAL_INVALID, "a store needs the name of a file, or a URL");
  sqlite_db *s = calloc(1, sizeof *s);
  if (s != NULL) s->path = strdup(path);
  if (s == NULL || s->path == NULL) {
    free(s);
    return shoal_fail(err, SHOAL_NO_MEMORY, "%s: not enough memory", path);
  }
  s->db.driver = &driver;
  s->claim = SHOAL_NO_LOCK;
  /* The caller has a lock, so SQLite needs none of its own. */
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  shoal_status status = SHOAL_OK;
  if (sqlite3_open_v2(path, &s->handle, flags, NULL) != SQLITE_OK)
    status = s->handle != NULL ? trouble(s, err) : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  if (status == SHOAL_OK) status = set_up(s, err);
  if (status != SHOAL_OK) {
    close_db(&s->db);
    return status;
  }
  *out = &s->db;
  return SHOAL_OK;
}
