/* standings.c: the store's standings: who is believed, and who is banned. See store.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "store/store_internal.h"

#define COLUMNS "id, who, agreed, wrong, banned, reason, job, changed"

void shoal_standing_rows_free(shoal_standing_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].who);
    free(rows[i].reason);
    rows[i].who = rows[i].reason = NULL;
  }
}

static void release(void *rows, size_t count) { shoal_standing_rows_free(rows, count); }

static bool read_standing(shoal_db *db, void *to) {
  shoal_standing_row *row = to;
  *row = (shoal_standing_row){.id = shoal_db_get_number(db, 0),
                              .who = shoal_store_copy(db, 1),
                              .agreed = shoal_db_get_number(db, 2),
                              .wrong = shoal_db_get_number(db, 3),
                              .banned = shoal_db_get_integer(db, 4) != 0,
                              .reason = shoal_store_copy(db, 5),
                              .job = shoal_db_get_number(db, 6),
                              .changed = shoal_db_get_real(db, 7)};
  return row->who && row->reason;
}

static const shoal_store_shape SHAPE = {sizeof(shoal_standing_row), read_standing, release};

shoal_status shoal_store_put_standing(shoal_store *store, const shoal_standing_row *row, shoal_error *err) {
  const char *who = shoal_store_or(row->who, "");
  shoal_status status = shoal_store_check_key("the name", who, err);
  if (status != SHOAL_OK) return status;
  const shoal_db_value values[] = {shoal_db_text(who),
                                   shoal_db_number(row->agreed),
                                   shoal_db_number(row->wrong),
                                   shoal_db_integer(row->banned),
                                   shoal_db_text(shoal_store_or(row->reason, "")),
                                   shoal_db_number(row->job),
                                   shoal_db_real(row->changed)};
  shoal_post *post = shoal_post_create(row->banned ? SHOAL_DB_DURABLE : SHOAL_DB_RELAXED, 3);
  shoal_post_add(&post,
                 "UPDATE counters SET value = value + 1 WHERE name = 'standing'"
                 " AND NOT EXISTS (SELECT 1 FROM standings WHERE who = $1)",
                 values, 1);
  shoal_post_add(&post,
                 "INSERT INTO standings (who, agreed, wrong, banned, reason, job, changed, id)"
                 " SELECT $1, 0, 0, 0, '', 0, 0, value FROM counters WHERE name = 'standing'"
                 " AND NOT EXISTS (SELECT 1 FROM standings WHERE who = $1)",
                 values, 1);
  shoal_post_add(&post,
                 "UPDATE standings SET agreed = $2, wrong = $3, banned = $4, reason = $5, job = $6,"
                 " changed = $7 WHERE who = $1",
                 values, sizeof values / sizeof *values);
  return shoal_store_post(store, post, NULL, err);
}

shoal_status shoal_store_standings(shoal_store *store, bool banned, uint64_t after, shoal_standing_row *out,
                                   size_t max, size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(after), shoal_db_integer(banned), shoal_db_number(max)};
  return shoal_store_read(
      store, &SHAPE, "SELECT " COLUMNS " FROM standings WHERE id > $1 AND banned >= $2 ORDER BY id LIMIT $3",
      values, 3, out, max, count, err);
}

static shoal_status no_ban(uint64_t id, shoal_error *err) {
  return shoal_fail(err, SHOAL_NOT_FOUND, "there is no ban %" PRIu64, id);
}

shoal_status shoal_store_ban(shoal_store *store, uint64_t id, shoal_standing_row *out, shoal_error *err) {
  const shoal_db_value value = shoal_db_number(id);
  size_t count;
  shoal_status status =
      shoal_store_read(store, &SHAPE, "SELECT " COLUMNS " FROM standings WHERE id = $1 AND banned = 1",
                       &value, 1, out, 1, &count, err);
  return status == SHOAL_OK && count == 0 ? no_ban(id, err) : status;
}

shoal_status shoal_store_lift_ban(shoal_store *store, uint64_t id, double now, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(id), shoal_db_real(now)};
  uint64_t changed = 0;
  shoal_status status = shoal_store_change(
      store, SHOAL_DB_DURABLE,
      "UPDATE standings SET banned = 0, agreed = 0, changed = $2 WHERE id = $1 AND banned = 1", values, 2,
      &changed, err);
  return status == SHOAL_OK && changed == 0 ? no_ban(id, err) : status;
}
