/* units.c: the store's results of searches, unit by unit. See store.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "store/store_internal.h"

void shoal_unit_rows_free(shoal_unit_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].worker);
    free(rows[i].summary);
    free(rows[i].curve);
    rows[i].worker = rows[i].summary = rows[i].curve = NULL;
  }
}

static void release(void *rows, size_t count) { shoal_unit_rows_free(rows, count); }

static bool read_unit(shoal_db *db, void *to) {
  shoal_unit_row *row = to;
  *row = (shoal_unit_row){.unit = shoal_db_get_number(db, 0),
                          .trial = shoal_db_get_number(db, 1),
                          .worker = shoal_store_copy(db, 2),
                          .time = shoal_db_get_real(db, 3),
                          .summary = shoal_store_copy(db, 4)};
  return row->worker && row->summary;
}

static bool read_whole(shoal_db *db, void *to) {
  shoal_unit_row *row = to;
  if (!read_unit(db, row)) return false;
  row->curve = shoal_store_copy(db, 5);
  return row->curve != NULL;
}

static const shoal_store_shape SHAPE = {sizeof(shoal_unit_row), read_unit, release};
static const shoal_store_shape WHOLE = {sizeof(shoal_unit_row), read_whole, release};

shoal_status shoal_store_add_unit(shoal_store *store, uint64_t job, const shoal_unit_row *row,
                                  shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(job),
                                   shoal_db_number(row->unit),
                                   shoal_db_number(row->trial),
                                   shoal_db_text(shoal_store_or(row->worker, "")),
                                   shoal_db_real(row->time),
                                   shoal_db_text(shoal_store_or(row->summary, "{}")),
                                   shoal_db_text(shoal_store_or(row->curve, "[]"))};
  shoal_status status = shoal_store_post_one(store, SHOAL_DB_RELAXED,
                                             "INSERT INTO units (job, unit, trial, worker, time, summary, "
                                             "curve) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                                             values, sizeof values / sizeof *values, NULL, err);
  if (status == SHOAL_NOT_FOUND) return shoal_fail(err, status, "there is no job %" PRIu64, job);
  if (status == SHOAL_CONFLICT)
    return shoal_fail(err, status, "unit %" PRIu64 " of job %" PRIu64 " has a result", row->unit, job);
  return status;
}

shoal_status shoal_store_units(shoal_store *store, uint64_t job, uint64_t first, shoal_unit_row *out,
                               size_t max, size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(job), shoal_db_number(first), shoal_db_number(max)};
  return shoal_store_read(store, &SHAPE,
                          "SELECT unit, trial, worker, time, summary FROM units WHERE job = $1 AND unit >= $2"
                          " ORDER BY unit LIMIT $3",
                          values, 3, out, max, count, err);
}

shoal_status shoal_store_trial(shoal_store *store, uint64_t job, uint64_t trial, shoal_unit_row *out,
                               shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(job), shoal_db_number(trial)};
  size_t count;
  shoal_status status =
      shoal_store_read(store, &WHOLE,
                       "SELECT unit, trial, worker, time, summary, curve FROM units WHERE job = $1"
                       " AND trial = $2 ORDER BY unit DESC LIMIT 1",
                       values, 2, out, 1, &count, err);
  if (status == SHOAL_OK && count == 0)
    return shoal_fail(err, SHOAL_NOT_FOUND, "job %" PRIu64 " has no result of a trial %" PRIu64, job, trial);
  return status;
}
