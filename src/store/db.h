/* db.h: one connection to a database, SQLite or PostgreSQL, as far as the store needs it.
 *
 * A statement is text with $1, $2, ... for its values, which means the same to both. It is prepared when it
 * is first used and kept. There is one at a time: start it, step through its rows, end it.
 *
 * A connection to a server can be lost, or the server stops answering. What is done then fails with SHOAL_IO,
 * and so does all that follows, at once, until `mend` has opened it again.
 *
 * An error names the file or server, never a password. SHOAL_CONFLICT: a row with that key is there already.
 * SHOAL_NOT_FOUND: a row that this one refers to is not there. SHOAL_INVALID: a value is not allowed there.
 * SHOAL_CORRUPT: the file is damaged or no database.
 *
 * Ownership: open, then close; texts that go in are borrowed for the call, texts that come out are valid
 * until the next step. Threads: one at a time. */
#ifndef SHOAL_STORE_DB_H
#define SHOAL_STORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_db shoal_db;

typedef enum shoal_db_type { SHOAL_DB_INTEGER, SHOAL_DB_REAL, SHOAL_DB_TEXT } shoal_db_type;

typedef struct shoal_db_value {
  shoal_db_type type;
  int64_t integer;
  double real;      /* NAN is kept as NULL */
  const char *text; /* UTF-8 */
} shoal_db_value;

static inline shoal_db_value shoal_db_integer(int64_t value) {
  return (shoal_db_value){.type = SHOAL_DB_INTEGER, .integer = value};
}
/* A number that is too large for the database becomes the largest: nothing has it. */
static inline shoal_db_value shoal_db_number(uint64_t value) {
  return shoal_db_integer(value > INT64_MAX ? INT64_MAX : (int64_t)value);
}
static inline shoal_db_value shoal_db_real(double value) {
  return (shoal_db_value){.type = SHOAL_DB_REAL, .real = value};
}
static inline shoal_db_value shoal_db_text(const char *value) {
  return (shoal_db_value){.type = SHOAL_DB_TEXT, .text = value};
}

/* How a transaction ends. */
typedef enum shoal_db_mode {
  SHOAL_DB_DURABLE, /* once committed it outlives a loss of power */
  SHOAL_DB_RELAXED, /* a loss of power may take it away again, as a whole; a crash does not */
  SHOAL_DB_ALONE,   /* durable, and nobody else's transaction of this kind runs at the same time */
} shoal_db_mode;

/* "postgresql://..." or "postgres://...", else the path of a SQLite file, which is made when it is not there.
 * */
shoal_status shoal_db_open(shoal_db **out, const char *where, shoal_error *err);
void shoal_db_close(shoal_db *db);
const char *shoal_db_kind(const shoal_db *db);  /* "sqlite" or "postgresql" */
const char *shoal_db_label(const shoal_db *db); /* which database it is, for errors */

/* Makes the database this connection's, as far as others claim it too. SHOAL_CONFLICT: another has it. */
shoal_status shoal_db_claim(shoal_db *db, shoal_error *err);

/* Opens a connection that was lost again, and claims the database again where it was claimed. */
shoal_status shoal_db_mend(shoal_db *db, shoal_error *err);

shoal_status shoal_db_begin(shoal_db *db, shoal_db_mode mode, shoal_error *err);
/* After a failure nothing was done, unless the error says that this is not known. */
shoal_status shoal_db_commit(shoal_db *db, shoal_error *err);
void shoal_db_rollback(shoal_db *db);

/* One or more statements without values and rows. */
shoal_status shoal_db_script(shoal_db *db, const char *sql, shoal_error *err);

shoal_status shoal_db_start(shoal_db *db, const char *sql, const shoal_db_value *values, size_t count,
                            shoal_error *err);
shoal_status shoal_db_step(shoal_db *db, bool *row, shoal_error *err); /* row: false behind the last */
void shoal_db_end(shoal_db *db);
/* Start, step, end, for a statement without rows; *changed (unless NULL) is how many rows it has changed. */
shoal_status shoal_db_run(shoal_db *db, const char *sql, const shoal_db_value *values, size_t count,
                          uint64_t *changed, shoal_error *err);

/* Columns of the row that was stepped to, from 0. */
int64_t shoal_db_get_integer(shoal_db *db, int column);
uint64_t shoal_db_get_number(shoal_db *db, int column); /* below 0: 0 */
double shoal_db_get_real(shoal_db *db, int column);     /* NULL: NAN */
const char *shoal_db_get_text(shoal_db *db, int column);

#endif
