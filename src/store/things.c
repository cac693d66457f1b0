/* things.c: the store's models and data sets. See store.h. */
#include <stdlib.h>

#include "base/assert.h"
#include "store/store_internal.h"

static const char *const NAMES[SHOAL_THINGS] = {"model", "data set"};

static const char *name_of(shoal_thing kind) {
  SHOAL_ASSERT((unsigned)kind < SHOAL_THINGS);
  return NAMES[kind];
}

void shoal_thing_rows_free(shoal_thing_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].name);
    free(rows[i].owner);
    free(rows[i].content);
    rows[i].name = rows[i].owner = rows[i].content = NULL;
  }
}

static void release(void *rows, size_t count) { shoal_thing_rows_free(rows, count); }

static bool read_thing(shoal_db *db, void *to) {
  shoal_thing_row *row = to;
  *row = (shoal_thing_row){.name = shoal_store_copy(db, 0),
                           .owner = shoal_store_copy(db, 1),
                           .content = shoal_store_copy(db, 2),
                           .created = shoal_db_get_real(db, 3)};
  return row->name && row->owner && row->content;
}

static const shoal_store_shape SHAPE = {sizeof(shoal_thing_row), read_thing, release};

static shoal_status no_thing(shoal_thing kind, const char *name, shoal_error *err) {
  return shoal_fail(err, SHOAL_NOT_FOUND, "there is no %s '%.100s'", name_of(kind), name);
}

static shoal_status write_thing(shoal_store *store, const char *sql, shoal_thing kind,
                                const shoal_thing_row *row, shoal_error *err) {
  const char *name = shoal_store_or(row->name, "");
  shoal_status status = shoal_store_check_key("the name", name, err);
  if (status != SHOAL_OK) return status;
  const shoal_db_value values[] = {
      shoal_db_integer(kind), shoal_db_text(name), shoal_db_text(shoal_store_or(row->owner, "")),
      shoal_db_text(shoal_store_or(row->content, "")), shoal_db_real(row->created)};
  status =
      shoal_store_change(store, SHOAL_DB_DURABLE, sql, values, sizeof values / sizeof *values, NULL, err);
  return status == SHOAL_CONFLICT
             ? shoal_fail(err, status, "there is a %s '%.100s' already", name_of(kind), name)
             : status;
}

#define INSERT "INSERT INTO things (kind, name, owner, content, created) VALUES ($1, $2, $3, $4, $5)"

shoal_status shoal_store_add_thing(shoal_store *store, shoal_thing kind, const shoal_thing_row *row,
                                   shoal_error *err) {
  return write_thing(store, INSERT, kind, row, err);
}

shoal_status shoal_store_put_thing(shoal_store *store, shoal_thing kind, const shoal_thing_row *row,
                                   shoal_error *err) {
  return write_thing(store,
                     INSERT " ON CONFLICT (kind, name) DO UPDATE SET owner = excluded.owner,"
                            " content = excluded.content, created = excluded.created",
                     kind, row, err);
}

shoal_status shoal_store_thing(shoal_store *store, shoal_thing kind, const char *name, shoal_thing_row *out,
                               shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_integer(kind), shoal_db_text(name)};
  size_t count;
  shoal_status status = shoal_store_read(
      store, &SHAPE, "SELECT name, owner, content, created FROM things WHERE kind = $1 AND name = $2", values,
      2, out, 1, &count, err);
  return status == SHOAL_OK && count == 0 ? no_thing(kind, name, err) : status;
}

shoal_status shoal_store_things(shoal_store *store, shoal_thing kind, shoal_thing_row *out, size_t max,
                                size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_integer(kind), shoal_db_number(max)};
  return shoal_store_read(store, &SHAPE,
                          "SELECT name, owner, content, created FROM things WHERE kind = $1"
                          " ORDER BY name COLLATE \"C\" LIMIT $2",
                          values, 2, out, max, count, err);
}

shoal_status shoal_store_delete_thing(shoal_store *store, shoal_thing kind, const char *name,
                                      shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_integer(kind), shoal_db_text(name)};
  uint64_t changed;
  shoal_status status = shoal_store_change(
      store, SHOAL_DB_DURABLE, "DELETE FROM things WHERE kind = $1 AND name = $2", values, 2, &changed, err);
  return status == SHOAL_OK && changed == 0 ? no_thing(kind, name, err) : status;
}
