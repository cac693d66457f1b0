/* jobs.c: the store's jobs. See store.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "store/store_internal.h"

#define COLUMNS "id, name, host, state, reason, private, spec, progress, created, started, ended"

static const char *const NAMES[SHOAL_JOB_STATES] = {"waiting", "running", "stopped", "finished", "failed"};

const char *shoal_job_state_name(shoal_job_state state) {
  SHOAL_ASSERT((unsigned)state < SHOAL_JOB_STATES);
  return NAMES[state];
}

bool shoal_job_state_parse(const char *word, shoal_job_state *out) {
  for (int i = 0; i < SHOAL_JOB_STATES; i++) {
    if (strcmp(word, NAMES[i]) != 0) continue;
    *out = (shoal_job_state)i;
    return true;
  }
  return false;
}

void shoal_job_rows_free(shoal_job_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    free(rows[i].name);
    free(rows[i].host);
    free(rows[i].reason);
    free(rows[i].spec);
    free(rows[i].progress);
    rows[i].name = rows[i].host = rows[i].reason = rows[i].spec = rows[i].progress = NULL;
  }
}

static void release(void *rows, size_t count) { shoal_job_rows_free(rows, count); }

static bool read_job(shoal_db *db, void *to) {
  shoal_job_row *row = to;
  uint64_t state = shoal_db_get_number(db, 3);
  *row = (shoal_job_row){.id = shoal_db_get_number(db, 0),
                         .name = shoal_store_copy(db, 1),
                         .host = shoal_store_copy(db, 2),
                         .state = state < SHOAL_JOB_STATES ? (shoal_job_state)state : SHOAL_JOB_FAILED,
                         .reason = shoal_store_copy(db, 4),
                         .is_private = shoal_db_get_integer(db, 5) != 0,
                         .spec = shoal_store_copy(db, 6),
                         .progress = shoal_store_copy(db, 7),
                         .created = shoal_db_get_real(db, 8),
                         .started = shoal_db_get_real(db, 9),
                         .ended = shoal_db_get_real(db, 10)};
  return row->name && row->host && row->reason && row->spec && row->progress;
}

static const shoal_store_shape SHAPE = {sizeof(shoal_job_row), read_job, release};

static shoal_status no_job(uint64_t id, shoal_error *err) {
  return shoal_fail(err, SHOAL_NOT_FOUND, "there is no job %" PRIu64, id);
}

shoal_status shoal_store_add_job(shoal_store *store, const shoal_job_row *row, uint64_t *id,
                                 shoal_error *err) {
  shoal_status status = shoal_store_begin(store, SHOAL_DB_DURABLE, err);
  if (status != SHOAL_OK) return status;
  uint64_t number = 0;
  status = shoal_store_next_number(store, "job", &number, err);
  const shoal_db_value values[] = {
      shoal_db_number(number),
      shoal_db_text(shoal_store_or(row->name, "")),
      shoal_db_text(shoal_store_or(row->host, "")),
      shoal_db_integer(row->state),
      shoal_db_text(shoal_store_or(row->reason, "")),
      shoal_db_integer(row->is_private),
      shoal_db_text(shoal_store_or(row->spec, "{}")),
      shoal_db_text(shoal_store_or(row->progress, "{}")),
      shoal_db_real(row->created),
      shoal_db_real(row->started),
      shoal_db_real(row->ended),
  };
  if (status == SHOAL_OK)
    status = shoal_db_run(
        store->db, "INSERT INTO jobs (" COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        values, sizeof values / sizeof *values, NULL, err);
  status = shoal_store_end(store, status, err);
  if (status == SHOAL_OK) *id = number;
  return status;
}

shoal_status shoal_store_job(shoal_store *store, uint64_t id, shoal_job_row *out, shoal_error *err) {
  const shoal_db_value value = shoal_db_number(id);
  size_t count;
  shoal_status status = shoal_store_read(store, &SHAPE, "SELECT " COLUMNS " FROM jobs WHERE id = $1", &value,
                                         1, out, 1, &count, err);
  return status == SHOAL_OK && count == 0 ? no_job(id, err) : status;
}

shoal_status shoal_store_jobs(shoal_store *store, int state, uint64_t before, shoal_job_row *out, size_t max,
                              size_t *count, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(before > 0 ? before : UINT64_MAX), shoal_db_number(max),
                                   shoal_db_integer(state)};
  if (state < 0)
    return shoal_store_read(store, &SHAPE,
                            "SELECT " COLUMNS " FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2", values, 2,
                            out, max, count, err);
  return shoal_store_read(
      store, &SHAPE, "SELECT " COLUMNS " FROM jobs WHERE id < $1 AND state = $3 ORDER BY id DESC LIMIT $2",
      values, 3, out, max, count, err);
}

/* A change of one job. */
static shoal_status change(shoal_store *store, shoal_db_mode mode, const char *sql,
                           const shoal_db_value *values, size_t count, uint64_t id, shoal_error *err) {
  uint64_t changed;
  shoal_status status = shoal_store_change(store, mode, sql, values, count, &changed, err);
  return status == SHOAL_OK && changed == 0 ? no_job(id, err) : status;
}

/* The same, kept until the database takes it; of several the last. */
static shoal_status post(shoal_store *store, shoal_db_mode mode, const char *sql,
                         const shoal_db_value *values, size_t count, uint64_t id, shoal_error *err) {
  uint64_t changed = 0;
  shoal_post *change = shoal_post_create(mode, 1);
  shoal_post_keep_latest(change);
  shoal_post_add(&change, sql, values, count);
  shoal_status status = shoal_store_post(store, change, &changed, err);
  return status == SHOAL_OK && changed == 0 ? no_job(id, err) : status;
}

shoal_status shoal_store_set_job_state(shoal_store *store, uint64_t id, shoal_job_state state,
                                       const char *reason, double started, double ended, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(id), shoal_db_integer(state),
                                   shoal_db_text(shoal_store_or(reason, "")), shoal_db_real(started),
                                   shoal_db_real(ended)};
  return post(store, SHOAL_DB_DURABLE,
              "UPDATE jobs SET state = $2, reason = $3,"
              " started = CASE WHEN $4 <> 0 THEN $4 ELSE started END,"
              " ended = CASE WHEN $5 <> 0 THEN $5 ELSE ended END WHERE id = $1",
              values, sizeof values / sizeof *values, id, err);
}

shoal_status shoal_store_set_job_progress(shoal_store *store, uint64_t id, const char *progress,
                                          shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(id), shoal_db_text(shoal_store_or(progress, "{}"))};
  return post(store, SHOAL_DB_RELAXED, "UPDATE jobs SET progress = $2 WHERE id = $1", values, 2, id, err);
}

shoal_status shoal_store_set_job_spec(shoal_store *store, uint64_t id, const char *spec, shoal_error *err) {
  const shoal_db_value values[] = {shoal_db_number(id), shoal_db_text(shoal_store_or(spec, "{}"))};
  return change(store, SHOAL_DB_DURABLE, "UPDATE jobs SET spec = $2 WHERE id = $1", values, 2, id, err);
}

typedef struct state_count {
  uint64_t state, count;
} state_count;

static bool read_count(shoal_db *db, void *to) {
  *(state_count *)to = (state_count){shoal_db_get_number(db, 0), shoal_db_get_number(db, 1)};
  return true;
}

shoal_status shoal_store_count_jobs(shoal_store *store, bool with_private, const char *own,
                                    uint64_t counts[SHOAL_JOB_STATES], shoal_error *err) {
  static const char all[] = "SELECT state, COUNT(*) FROM jobs GROUP BY state ORDER BY state";
  static const char open[] =
      "SELECT state, COUNT(*) FROM jobs WHERE private = 0 GROUP BY state ORDER BY state";
  static const char open_and_own[] =
      "SELECT state, COUNT(*) FROM jobs WHERE private = 0 OR host = $1 GROUP BY state ORDER BY state";
  static const shoal_store_shape shape = {sizeof(state_count), read_count, NULL};
  state_count rows[SHOAL_JOB_STATES];
  size_t found;
  bool some = !with_private && own != NULL;
  const shoal_db_value host = shoal_db_text(shoal_store_or(own, ""));
  const char *sql = with_private ? all : some ? open_and_own : open;
  shoal_status status =
      shoal_store_read(store, &shape, sql, &host, some ? 1 : 0, rows, SHOAL_JOB_STATES, &found, err);
  if (status != SHOAL_OK) return status;
  memset(counts, 0, SHOAL_JOB_STATES * sizeof *counts);
  for (size_t i = 0; i < found; i++)
    if (rows[i].state < SHOAL_JOB_STATES) counts[rows[i].state] = rows[i].count;
  return SHOAL_OK;
}

shoal_status shoal_store_delete_job(shoal_store *store, uint64_t id, shoal_error *err) {
  const shoal_db_value value = shoal_db_number(id);
  return change(store, SHOAL_DB_DURABLE, "DELETE FROM jobs WHERE id = $1", &value, 1, id, err);
}
