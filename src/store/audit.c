/* audit.c: the store's audit log. See store.h. */
#include <stdlib.h>

#include "store/store_internal.h"

void shoal_audit_rows_free(shoal_audit_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].who);
    free(rows[i].what);
    rows[i].who = rows[i].what = NULL;
  }
}

static void release(void *rows, size_t count) { shoal_audit_rows_free(rows, count); }

static bool read_audit(shoal_db *db, void *to) {
  shoal_audit_row *row = to;
  *row = (shoal_audit_row){.number = shoal_db_get_number(db, 0),
                           .time = shoal_db_get_real(db, 1),
                           .who = shoal_store_copy(db, 2),
                           .what = shoal_store_copy(db, 3)};
  return row->who && row->what;
}

static const shoal_store_shape SHAPE = {sizeof(shoal_audit_row), read_audit, release};

shoal_status shoal_store_add_audit(shoal_store *store, double time, const char *who, const char *what,
                                   shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_real(time), shoal_db_text(shoal_store_or(who, "")),
                                   shoal_db_text(shoal_store_or(what, ""))};
  const shoal_db_value kept = shoal_db_integer(SHOAL_STORE_AUDIT_MAX);
  shoal_post *post = shoal_post_create(SHOAL_DB_RELAXED, 3);
  shoal_post_add(&post, "UPDATE counters SET value = value + 1 WHERE name = 'audit'", NULL, 0);
  shoal_post_add(&post,
                 "INSERT INTO audit (number, time, who, what)"
                 " SELECT value, $1, $2, $3 FROM counters WHERE name = 'audit'",
                 values, 3);
  shoal_post_add(&post,
                 "DELETE FROM audit WHERE number <= (SELECT value FROM counters WHERE name = 'audit') - $1",
                 &kept, 1);
  shoal_status status = shoal_store_post(store, post, NULL, err);
  __atomic_add_fetch(&store->audits, 1, __ATOMIC_RELAXED);
  return status;
}

uint64_t shoal_store_audits(const shoal_store *store) {
  return __atomic_load_n(&store->audits, __ATOMIC_RELAXED);
}

shoal_status shoal_store_audit(shoal_store *store, uint64_t before, shoal_audit_row *out, size_t max,
                               size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(before > 0 ? before : UINT64_MAX), shoal_db_number(max)};
  return shoal_store_read(store, &SHAPE,
                          "SELECT number, time, who, what FROM audit WHERE number < $1"
                          " ORDER BY number DESC LIMIT $2",
                          values, 2, out, max, count, err);
}
