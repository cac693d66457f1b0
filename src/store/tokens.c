/* tokens.c: the store's tokens. See store.h. A token for all jobs has NULL as its job. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/store_internal.h"

#define COLUMNS "id, hash, role, name, COALESCE(job, 0), created, expires"

void shoal_token_rows_free(shoal_token_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].role);
    free(rows[i].name);
    rows[i].role = rows[i].name = NULL;
  }
}

static void release(void *rows, size_t count) { shoal_token_rows_free(rows, count); }

static bool read_token(shoal_db *db, void *to) {
  shoal_token_row *row = to;
  *row = (shoal_token_row){.id = shoal_db_get_number(db, 0),
                           .role = shoal_store_copy(db, 2),
                           .name = shoal_store_copy(db, 3),
                           .job = shoal_db_get_number(db, 4),
                           .created = shoal_db_get_real(db, 5),
                           .expires = shoal_db_get_real(db, 6)};
  snprintf(row->hash, sizeof row->hash, "%s", shoal_db_get_text(db, 1));
  return row->role && row->name;
}

static const shoal_store_shape SHAPE = {sizeof(shoal_token_row), read_token, release};

static shoal_status no_token(uint64_t id, shoal_error *err) {
  return shoal_fail(err, SHOAL_NOT_FOUND, "there is no token %" PRIu64, id);
}

/* Inside a transaction. */
static shoal_status insert_token(shoal_store *store, const shoal_token_row *row, uint64_t *number,
                                 shoal_error *err) {
  shoal_status status = shoal_store_next_number(store, "token", number, err);
  if (status != SHOAL_OK) return status;
  char hash[SHOAL_TOKEN_HASH_HEX];
  snprintf(hash, sizeof hash, "%s", row->hash);
  const shoal_db_value values[] = {shoal_db_number(*number),
                                   shoal_db_text(hash),
                                   shoal_db_text(shoal_store_or(row->role, "")),
                                   shoal_db_text(shoal_store_or(row->name, "")),
                                   shoal_db_number(row->job),
                                   shoal_db_real(row->created),
                                   shoal_db_real(row->expires)};
  status = shoal_db_run(store->db,
                        "INSERT INTO tokens (id, hash, role, name, job, created, expires)"
                        " VALUES ($1, $2, $3, $4, NULLIF($5, 0), $6, $7)",
                        values, sizeof values / sizeof *values, NULL, err);
  if (status == SHOAL_NOT_FOUND) shoal_fail(err, status, "there is no job %" PRIu64, row->job);
  if (status == SHOAL_CONFLICT) shoal_fail(err, status, "there is such a token already");
  return status;
}

shoal_status shoal_store_add_tokens(shoal_store *store, const shoal_token_row *rows, size_t count,
                                    uint64_t *ids, shoal_error *err) {
  shoal_status status = shoal_store_begin(store, SHOAL_DB_DURABLE, err);
  if (status != SHOAL_OK) return status;
  for (size_t i = 0; i < count && status == SHOAL_OK; i++)
    status = insert_token(store, &rows[i], &ids[i], err);
  return shoal_store_end(store, status, err);
}

shoal_status shoal_store_token(shoal_store *store, const char *hash, shoal_token_row *out, shoal_error *err) {
  const shoal_db_value value = shoal_db_text(hash);
  size_t count;
  shoal_status status = shoal_store_read(store, &SHAPE, "SELECT " COLUMNS " FROM tokens WHERE hash = $1",
                                         &value, 1, out, 1, &count, err);
  return status == SHOAL_OK && count == 0 ? shoal_fail(err, SHOAL_NOT_FOUND, "there is no such token")
                                          : status;
}

shoal_status shoal_store_token_by_id(shoal_store *store, uint64_t id, shoal_token_row *out,
                                     shoal_error *err) {
  const shoal_db_value value = shoal_db_number(id);
  size_t count;
  shoal_status status = shoal_store_read(store, &SHAPE, "SELECT " COLUMNS " FROM tokens WHERE id = $1",
                                         &value, 1, out, 1, &count, err);
  return status == SHOAL_OK && count == 0 ? no_token(id, err) : status;
}

shoal_status shoal_store_tokens(shoal_store *store, uint64_t after, shoal_token_row *out, size_t max,
                                size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(max), shoal_db_number(after)};
  return shoal_store_read(store, &SHAPE, "SELECT " COLUMNS " FROM tokens WHERE id > $2 ORDER BY id LIMIT $1",
                          values, 2, out, max, count, err);
}

shoal_status shoal_store_purge_tokens(shoal_store *store, double now, shoal_error *err) {
  const shoal_db_value value = shoal_db_real(now);
  return shoal_store_change(store, SHOAL_DB_DURABLE, "DELETE FROM tokens WHERE expires > 0 AND expires <= $1",
                            &value, 1, NULL, err);
}

shoal_status shoal_store_discard_token(shoal_store *store, uint64_t id, shoal_error *err) {
  const shoal_db_value value = shoal_db_number(id);
  return shoal_store_post_one(store, SHOAL_DB_DURABLE, "DELETE FROM tokens WHERE id = $1", &value, 1, NULL,
                              err);
}

shoal_status shoal_store_delete_token(shoal_store *store, uint64_t id, shoal_error *err) {
  const shoal_db_value value = shoal_db_number(id);
  uint64_t changed;
  shoal_status status = shoal_store_change(store, SHOAL_DB_DURABLE, "DELETE FROM tokens WHERE id = $1",
                                           &value, 1, &changed, err);
  return status == SHOAL_OK && changed == 0 ? no_token(id, err) : status;
}
