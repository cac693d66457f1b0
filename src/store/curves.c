/* curves.c: the points, logs and contributions of the store's jobs. See store.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "store/store_internal.h"

/* What a row refers to is not there: that can only be the job. */
static shoal_status for_job(shoal_status status, uint64_t job, shoal_error *err) {
  return status == SHOAL_NOT_FOUND ? shoal_fail(err, status, "there is no job %" PRIu64, job) : status;
}

/* ---- points ---- */

static bool read_point(shoal_db *db, void *to) {
  *(shoal_point *)to = (shoal_point){.kind = (uint32_t)shoal_db_get_number(db, 0),
                                     .step = shoal_db_get_number(db, 1),
                                     .time = shoal_db_get_real(db, 2),
                                     .loss = shoal_db_get_real(db, 3),
                                     .metric = shoal_db_get_real(db, 4),
                                     .samples_per_s = shoal_db_get_real(db, 5),
                                     .held_out_loss = shoal_db_get_real(db, 6),
                                     .held_out_metric = shoal_db_get_real(db, 7)};
  return true;
}

static const shoal_store_shape POINT = {sizeof(shoal_point), read_point, NULL};

static void add_point(shoal_post **post, uint64_t job, const shoal_point *point) {
  const shoal_db_value values[] = {
      shoal_db_number(job),
      shoal_db_integer(point->kind),
      shoal_db_number(point->step),
      shoal_db_real(point->time),
      shoal_db_real(point->loss),
      shoal_db_real(point->metric),
      shoal_db_real(point->samples_per_s),
      shoal_db_real(point->held_out_loss),
      shoal_db_real(point->held_out_metric),
  };
  shoal_post_add(post,
                 "INSERT INTO points (job, kind, step, time, loss, metric, samples_per_s, held_out_loss,"
                 " held_out_metric) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
                 " ON CONFLICT (job, kind, step) DO UPDATE SET time = excluded.time, loss = excluded.loss,"
                 " metric = excluded.metric, samples_per_s = excluded.samples_per_s,"
                 " held_out_loss = excluded.held_out_loss, held_out_metric = excluded.held_out_metric",
                 values, sizeof values / sizeof *values);
}

shoal_status shoal_store_add_points(shoal_store *store, uint64_t job, const shoal_point *points, size_t count,
                                    shoal_error *err) {
  shoal_post *post = shoal_post_create(SHOAL_DB_RELAXED, count);
  for (size_t i = 0; i < count; i++) add_point(&post, job, &points[i]);
  return for_job(shoal_store_post(store, post, NULL, err), job, err);
}

shoal_status shoal_store_points(shoal_store *store, uint64_t job, uint32_t kind, shoal_point *out, size_t max,
                                size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(job), shoal_db_integer(kind), shoal_db_number(max)};
  return shoal_store_read(
      store, &POINT,
      "SELECT kind, step, time, loss, metric, samples_per_s, held_out_loss, held_out_metric FROM ("
      "SELECT kind, step, time, loss, metric, samples_per_s, held_out_loss, held_out_metric"
      " FROM points WHERE job = $1 AND kind = $2 ORDER BY step DESC LIMIT $3) AS newest ORDER BY step",
      values, 3, out, max, count, err);
}

shoal_status shoal_store_cut_points(shoal_store *store, uint64_t job, uint64_t step, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(job), shoal_db_number(step)};
  return shoal_store_post_one(store, SHOAL_DB_RELAXED, "DELETE FROM points WHERE job = $1 AND step > $2",
                              values, 2, NULL, err);
}

/* ---- logs ---- */

void shoal_log_rows_free(shoal_log_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].text);
    rows[i].text = NULL;
  }
}

static void release_logs(void *rows, size_t count) { shoal_log_rows_free(rows, count); }

static bool read_log(shoal_db *db, void *to) {
  shoal_log_row *row = to;
  *row = (shoal_log_row){.number = shoal_db_get_number(db, 0),
                         .time = shoal_db_get_real(db, 1),
                         .text = shoal_store_copy(db, 2)};
  return row->text != NULL;
}

static const shoal_store_shape LOG = {sizeof(shoal_log_row), read_log, release_logs};

shoal_status shoal_store_add_log(shoal_store *store, uint64_t job, double time, const char *text,
                                 shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(job), shoal_db_real(time),
                                   shoal_db_text(shoal_store_or(text, ""))};
  const shoal_db_value kept[] = {shoal_db_number(job), shoal_db_integer(SHOAL_STORE_LOG_LINES_MAX)};
  shoal_post *post = shoal_post_create(SHOAL_DB_RELAXED, 2);
  shoal_post_add(&post,
                 "INSERT INTO logs (job, number, time, text)"
                 " SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3 FROM logs WHERE job = $1",
                 values, 3);
  shoal_post_add(&post,
                 "DELETE FROM logs WHERE job = $1"
                 " AND number <= (SELECT MAX(number) FROM logs WHERE job = $1) - $2",
                 kept, 2);
  return for_job(shoal_store_post(store, post, NULL, err), job, err);
}

shoal_status shoal_store_logs(shoal_store *store, uint64_t job, uint64_t after, shoal_log_row *out,
                              size_t max, size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(job), shoal_db_number(after), shoal_db_number(max)};
  return shoal_store_read(
      store, &LOG,
      "SELECT number, time, text FROM (SELECT number, time, text FROM logs"
      " WHERE job = $1 AND number > $2 ORDER BY number DESC LIMIT $3) AS newest ORDER BY number",
      values, 3, out, max, count, err);
}

/* ---- contributions ---- */

void shoal_contributions_free(shoal_contribution *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].worker);
    rows[i].worker = NULL;
  }
}

static void release_contributions(void *rows, size_t count) { shoal_contributions_free(rows, count); }

static bool read_contribution(shoal_db *db, void *to) {
  shoal_contribution *row = to;
  *row = (shoal_contribution){.worker = shoal_store_copy(db, 0),
                              .units = shoal_db_get_number(db, 1),
                              .samples = shoal_db_get_number(db, 2),
                              .seconds = shoal_db_get_real(db, 3)};
  return row->worker != NULL;
}

static const shoal_store_shape CONTRIBUTION = {sizeof(shoal_contribution), read_contribution,
                                               release_contributions};

shoal_status shoal_store_add_contributions(shoal_store *store, uint64_t job, const shoal_contribution *rows,
                                           size_t count, shoal_error *err) {
  for (size_t i = 0; i < count; i++) {
    shoal_status status = shoal_store_check_key("a worker's name", shoal_store_or(rows[i].worker, ""), err);
    if (status != SHOAL_OK) return status;
  }
  shoal_post *post = shoal_post_create(SHOAL_DB_RELAXED, count);
  for (size_t i = 0; i < count; i++) {
    const shoal_db_value values[] = {shoal_db_number(job), shoal_db_text(shoal_store_or(rows[i].worker, "")),
                                     shoal_db_number(rows[i].units), shoal_db_number(rows[i].samples),
                                     shoal_db_real(rows[i].seconds)};
    shoal_post_add(&post,
                   "INSERT INTO contributions (job, worker, units, samples, seconds)"
                   " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (job, worker) DO UPDATE SET"
                   " units = contributions.units + excluded.units,"
                   " samples = contributions.samples + excluded.samples,"
                   " seconds = contributions.seconds + excluded.seconds",
                   values, sizeof values / sizeof *values);
  }
  return for_job(shoal_store_post(store, post, NULL, err), job, err);
}

shoal_status shoal_store_contributions(shoal_store *store, uint64_t job, shoal_contribution *out, size_t max,
                                       size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(max), shoal_db_number(job)};
  if (job != 0)
    return shoal_store_read(store, &CONTRIBUTION,
                            "SELECT worker, units, samples, seconds FROM contributions WHERE job = $2"
                            " ORDER BY samples DESC, worker COLLATE \"C\" LIMIT $1",
                            values, 2, out, max, count, err);
  return shoal_store_read(
      store, &CONTRIBUTION,
      "SELECT worker, CAST(SUM(units) AS BIGINT), CAST(SUM(samples) AS BIGINT), SUM(seconds)"
      " FROM contributions GROUP BY worker ORDER BY 3 DESC, worker COLLATE \"C\" LIMIT $1",
      values, 1, out, max, count, err);
}
