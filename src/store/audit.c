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
  shoal_status status = shoal_store_begin(store, SHOAL_DB_RELAXED, err);
  if (status != SHOAL_OK) return status;
  uint64_t number = 0;
  status = shoal_store_next_number(store, "audit", &number, err);
  const shoal_db_value values[] = {shoal_db_number(number), shoal_db_real(time),
                                   shoal_db_text(shoal_store_or(who, "")),
                                   shoal_db_text(shoal_store_or(what, ""))};
  if (status == SHOAL_OK)
    status = shoal_db_run(store->db, "INSERT INTO audit (number, time, who, what) VALUES ($1, $2, $3, $4)",
                          values, sizeof values / sizeof *values, NULL, err);
  if (status == SHOAL_OK && number > SHOAL_STORE_AUDIT_MAX) {
    const shoal_db_value last = shoal_db_number(number - SHOAL_STORE_AUDIT_MAX);
    status = shoal_db_run(store->db, "DELETE FROM audit WHERE number <= $1", &last, 1, NULL, err);
  }
  return shoal_store_end(store, status, err);
}

shoal_status shoal_store_audit(shoal_store *store, uint64_t before, shoal_audit_row *out, size_t max,
                               size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(before > 0 ? before : UINT64_MAX), shoal_db_number(max)};
  return shoal_store_read(store, &SHAPE,
                          "SELECT number, time, who, what FROM audit WHERE number < $1"
                          " ORDER BY number DESC LIMIT $2",
                          values, 2, out, max, count, err);
}
