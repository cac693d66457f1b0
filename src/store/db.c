/* db.c: see db.h. Chooses the driver by the address, and checks what is the same for both. */
#include "store/db.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "store/driver.h"

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

shoal_status shoal_db_open(shoal_db **out, const char *where, shoal_error *err) {
  *out = NULL;
  bool url = begins(where, "postgresql://") || begins(where, "postgres://");
  if (!url && strstr(where, "://") != NULL)
    return shoal_fail(err, SHOAL_INVALID, "'%.*s://...' is neither a path (for SQLite) nor postgresql://",
                      (int)(strstr(where, "://") - where), where);
  return url ? shoal_postgres_open(out, where, err) : shoal_sqlite_open(out, where, err);
}

void shoal_db_close(shoal_db *db) {
  if (db != NULL) db->driver->close(db);
}

const char *shoal_db_kind(const shoal_db *db) { return db->driver->kind; }

const char *shoal_db_label(const shoal_db *db) { return db->driver->label(db); }

shoal_status shoal_db_claim(shoal_db *db, shoal_error *err) { return db->driver->claim(db, err); }

shoal_status shoal_db_mend(shoal_db *db, shoal_error *err) { return db->driver->mend(db, err); }

shoal_status shoal_db_begin(shoal_db *db, shoal_db_mode mode, shoal_error *err) {
  return db->driver->begin(db, mode, err);
}

shoal_status shoal_db_commit(shoal_db *db, shoal_error *err) { return db->driver->commit(db, err); }

void shoal_db_rollback(shoal_db *db) { db->driver->rollback(db); }

shoal_status shoal_db_script(shoal_db *db, const char *sql, shoal_error *err) {
  return db->driver->script(db, sql, err);
}

/* PostgreSQL takes no other texts, so SQLite does not get them either. */
static shoal_status check_texts(const shoal_db_value *values, size_t count, shoal_error *err) {
  for (size_t i = 0; i < count; i++) {
    const shoal_db_value *v = &values[i];
    if (v->type == SHOAL_DB_TEXT && !shoal_utf8_valid(v->text, strlen(v->text)))
      return shoal_fail(err, SHOAL_INVALID, "a text for the store is not UTF-8");
  }
  return SHOAL_OK;
}

shoal_status shoal_db_start(shoal_db *db, const char *sql, const shoal_db_value *values, size_t count,
                            shoal_error *err) {
  SHOAL_ASSERT(count <= SHOAL_DB_VALUES_MAX);
  shoal_status status = check_texts(values, count, err);
  return status == SHOAL_OK ? db->driver->start(db, sql, values, count, err) : status;
}

shoal_status shoal_db_step(shoal_db *db, bool *row, shoal_error *err) {
  return db->driver->step(db, row, err);
}

void shoal_db_end(shoal_db *db) { db->driver->end(db); }

shoal_status shoal_db_run(shoal_db *db, const char *sql, const shoal_db_value *values, size_t count,
                          uint64_t *changed, shoal_error *err) {
  shoal_status status = shoal_db_start(db, sql, values, count, err);
  if (status != SHOAL_OK) return status;
  bool row = true;
  while (status == SHOAL_OK && row) status = shoal_db_step(db, &row, err);
  shoal_db_end(db);
  if (status == SHOAL_OK && changed != NULL) *changed = db->driver->changed(db);
  return status;
}

int64_t shoal_db_get_integer(shoal_db *db, int column) { return db->driver->get_integer(db, column); }

uint64_t shoal_db_get_number(shoal_db *db, int column) {
  int64_t value = shoal_db_get_integer(db, column);
  return value < 0 ? 0 : (uint64_t)value;
}

double shoal_db_get_real(shoal_db *db, int column) { return db->driver->get_real(db, column); }

const char *shoal_db_get_text(shoal_db *db, int column) { return db->driver->get_text(db, column); }
