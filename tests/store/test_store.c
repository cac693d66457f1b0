/* The store, on SQLite in a file or on the PostgreSQL server that SHOAL_TEST_STORE names.
 *
 * SHOAL_TEST_STORE_RESTART is then the command that restarts that server (see tools/postgres run). */
#include "store/store.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "nn/in_folder.h"
#include "store/db.h"

/* ---- a store of one's own ---- */

static const char *where;

static bool on_server(void) { return getenv("SHOAL_TEST_STORE") != NULL; }

static void script(const char *sql) {
  shoal_db *db;
  shoal_error err;
  if (shoal_db_open(&db, where, &err) != SHOAL_OK || shoal_db_script(db, sql, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  shoal_db_close(db);
}

static int enter(void **state) {
  where = on_server() ? getenv("SHOAL_TEST_STORE") : "store.db";
  if (on_server()) script("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  return enter_folder(state);
}

static shoal_store *open_store(void) {
  shoal_store *store;
  shoal_error err;
  if (shoal_store_open(&store, where, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return store;
}

static shoal_store *open_again(shoal_store *store) {
  shoal_store_close(store);
  return open_store();
}

static shoal_error err;

#define OK(call)                                                 \
  do {                                                           \
    if ((call) != SHOAL_OK) fail_msg("%s: %s", #call, err.text); \
  } while (0)

#define FAILS(call, status, word)                                                       \
  do {                                                                                  \
    assert_int_equal(call, status);                                                     \
    if (strstr(err.text, word) == NULL) fail_msg("'%s' is not in: %s", word, err.text); \
  } while (0)

static uint64_t add_job(shoal_store *store, const char *name, shoal_job_state state) {
  uint64_t id;
  shoal_job_row row = {
      .name = (char *)name, .host = "Ann", .state = state, .spec = "{\"x\":1}", .created = 1};
  OK(shoal_store_add_job(store, &row, &id, &err));
  return id;
}

static size_t count_of(const char *table) {
  shoal_db *db;
  char sql[80];
  bool row;
  snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM %s", table);
  OK(shoal_db_open(&db, where, &err));
  OK(shoal_db_start(db, sql, NULL, 0, &err));
  OK(shoal_db_step(db, &row, &err));
  assert_true(row);
  size_t count = (size_t)shoal_db_get_number(db, 0);
  shoal_db_end(db);
  shoal_db_close(db);
  return count;
}

/* ---- jobs ---- */

static const char *const STRANGE =
    "quotes ' \" \\ `; DROP TABLE jobs; -- %s $1 ?1\n\t\r üñî 漢字 🐟 \x01\x7f end";

static void a_job_comes_back_as_it_went_in(void **state) {
  (void)state;
  shoal_store *store = open_store();
  assert_string_equal(shoal_store_kind(store), on_server() ? "postgresql" : "sqlite");
  shoal_job_row in = {.name = (char *)STRANGE,
                      .host = "",
                      .state = SHOAL_JOB_STOPPED,
                      .reason = (char *)STRANGE,
                      .is_private = true,
                      .spec = (char *)STRANGE,
                      .progress = "[]",
                      .created = 1763212345.678901,
                      .started = 1e-300,
                      .ended = 0.1 + 0.2};
  uint64_t id = 0;
  OK(shoal_store_add_job(store, &in, &id, &err));
  assert_int_equal(id, 1);
  store = open_again(store);
  shoal_job_row out;
  OK(shoal_store_job(store, id, &out, &err));
  assert_int_equal(out.id, 1);
  assert_string_equal(out.name, STRANGE);
  assert_string_equal(out.host, "");
  assert_int_equal(out.state, SHOAL_JOB_STOPPED);
  assert_string_equal(out.reason, STRANGE);
  assert_true(out.is_private);
  assert_string_equal(out.spec, STRANGE);
  assert_string_equal(out.progress, "[]");
  assert_true(out.created == in.created && out.started == in.started && out.ended == in.ended);
  shoal_job_rows_free(&out, 1);
  assert_int_equal(add_job(store, "second", SHOAL_JOB_WAITING), 2);
  OK(shoal_store_job(store, 2, &out, &err));
  assert_string_equal(out.progress, "{}");
  assert_string_equal(out.reason, "");
  assert_false(out.is_private);
  shoal_job_rows_free(&out, 1);
  shoal_store_close(store);
}

static void what_is_not_there_is_said(void **state) {
  (void)state;
  shoal_store *store = open_store();
  shoal_job_row job;
  shoal_point point = {.step = 1};
  shoal_contribution worker = {.worker = "Ann"};
  const uint64_t numbers[] = {0, 7, INT64_MAX, UINT64_MAX};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    uint64_t id = numbers[i];
    FAILS(shoal_store_job(store, id, &job, &err), SHOAL_NOT_FOUND, "there is no job ");
    FAILS(shoal_store_set_job_state(store, id, SHOAL_JOB_FAILED, "", 0, 0, &err), SHOAL_NOT_FOUND, "no job");
    FAILS(shoal_store_set_job_progress(store, id, "{}", &err), SHOAL_NOT_FOUND, "no job");
    FAILS(shoal_store_delete_job(store, id, &err), SHOAL_NOT_FOUND, "no job");
    FAILS(shoal_store_add_points(store, id, &point, 1, &err), SHOAL_NOT_FOUND, "no job");
    FAILS(shoal_store_add_log(store, id, 1, "x", &err), SHOAL_NOT_FOUND, "no job");
    FAILS(shoal_store_add_contributions(store, id, &worker, 1, &err), SHOAL_NOT_FOUND, "no job");
    FAILS(shoal_store_delete_token(store, id, &err), SHOAL_NOT_FOUND, "there is no token");
  }
  FAILS(shoal_store_job(store, 7, &job, &err), SHOAL_NOT_FOUND, "there is no job 7");
  shoal_thing_row thing;
  FAILS(shoal_store_thing(store, SHOAL_THING_MODEL, "m", &thing, &err), SHOAL_NOT_FOUND,
        "there is no model 'm'");
  FAILS(shoal_store_delete_thing(store, SHOAL_THING_DATASET, "d", &err), SHOAL_NOT_FOUND, "data set 'd'");
  shoal_token_row token;
  FAILS(shoal_store_token(store, "0123", &token, &err), SHOAL_NOT_FOUND, "no such token");
  assert_int_equal(shoal_store_job(store, 7, &job, NULL), SHOAL_NOT_FOUND);
  OK(shoal_store_cut_points(store, 7, 1, &err));
  OK(shoal_store_add_points(store, 7, NULL, 0, &err));
  shoal_store_close(store);
}

static void states_have_names(void **state) {
  (void)state;
  shoal_job_state parsed;
  for (int i = 0; i < SHOAL_JOB_STATES; i++) {
    assert_true(shoal_job_state_parse(shoal_job_state_name((shoal_job_state)i), &parsed));
    assert_int_equal(parsed, i);
  }
  assert_string_equal(shoal_job_state_name(SHOAL_JOB_WAITING), "waiting");
  assert_false(shoal_job_state_parse("asleep", &parsed));
  assert_false(shoal_job_state_parse("", &parsed));
}

static void a_state_is_set_and_times_of_0_leave_what_was(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "a", SHOAL_JOB_WAITING), other = add_job(store, "b", SHOAL_JOB_WAITING);
  OK(shoal_store_set_job_state(store, id, SHOAL_JOB_RUNNING, "enough workers", 5, 0, &err));
  OK(shoal_store_set_job_progress(store, id, "{\"epoch\":3}", &err));
  OK(shoal_store_set_job_state(store, id, SHOAL_JOB_FINISHED, NULL, 0, 9, &err));
  store = open_again(store);
  shoal_job_row row;
  OK(shoal_store_job(store, id, &row, &err));
  assert_int_equal(row.state, SHOAL_JOB_FINISHED);
  assert_string_equal(row.reason, "");
  assert_string_equal(row.progress, "{\"epoch\":3}");
  assert_true(row.started == 5 && row.ended == 9 && row.created == 1);
  shoal_job_rows_free(&row, 1);
  OK(shoal_store_job(store, other, &row, &err));
  assert_int_equal(row.state, SHOAL_JOB_WAITING);
  assert_true(row.started == 0 && row.ended == 0);
  shoal_job_rows_free(&row, 1);
  shoal_store_close(store);
}

static void jobs_are_listed_from_the_newest_and_by_state(void **state) {
  (void)state;
  shoal_store *store = open_store();
  for (int i = 0; i < 10; i++) add_job(store, "x", i % 2 == 0 ? SHOAL_JOB_RUNNING : SHOAL_JOB_FAILED);
  shoal_job_row rows[20];
  size_t count;
  OK(shoal_store_jobs(store, -1, 0, rows, 20, &count, &err));
  assert_int_equal(count, 10);
  for (size_t i = 0; i < count; i++) assert_int_equal(rows[i].id, 10 - i);
  shoal_job_rows_free(rows, count);
  OK(shoal_store_jobs(store, -1, 8, rows, 3, &count, &err));
  assert_int_equal(count, 3);
  assert_int_equal(rows[0].id, 7);
  shoal_job_rows_free(rows, count);
  OK(shoal_store_jobs(store, SHOAL_JOB_RUNNING, 6, rows, 20, &count, &err));
  assert_int_equal(count, 3);
  assert_int_equal(rows[0].id, 5);
  assert_int_equal(rows[2].id, 1);
  shoal_job_rows_free(rows, count);
  OK(shoal_store_jobs(store, SHOAL_JOB_WAITING, 0, rows, 20, &count, &err));
  assert_int_equal(count, 0);
  OK(shoal_store_jobs(store, -1, 1, rows, 20, &count, &err));
  assert_int_equal(count, 0);
  OK(shoal_store_jobs(store, -1, 0, NULL, 0, &count, &err));
  assert_int_equal(count, 0);
  shoal_store_close(store);
}

static void a_deleted_job_takes_everything_along_and_its_number_is_not_used_again(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id[2], token;
  for (int i = 0; i < 2; i++) {
    id[i] = add_job(store, "x", SHOAL_JOB_STOPPED);
    shoal_point point = {.kind = 1, .step = 4};
    shoal_contribution worker = {.worker = "Ann", .units = 1};
    shoal_token_row invitation = {.role = "volunteer", .name = "Bob", .job = id[i]};
    snprintf(invitation.hash, sizeof invitation.hash, "%d", i);
    OK(shoal_store_add_points(store, id[i], &point, 1, &err));
    OK(shoal_store_add_log(store, id[i], 1, "line", &err));
    OK(shoal_store_add_contributions(store, id[i], &worker, 1, &err));
    OK(shoal_store_add_tokens(store, &invitation, 1, &token, &err));
  }
  OK(shoal_store_delete_job(store, id[1], &err));
  FAILS(shoal_store_delete_job(store, id[1], &err), SHOAL_NOT_FOUND, "no job 2");
  const char *const tables[] = {"jobs", "points", "logs", "contributions", "tokens"};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) assert_int_equal(count_of(tables[i]), 1);
  store = open_again(store);
  assert_int_equal(add_job(store, "x", SHOAL_JOB_WAITING), 3);
  shoal_store_close(store);
}

/* ---- curves, logs, contributions ---- */

static void points_come_back_in_order_and_nothing_is_kept_as_nothing(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING);
  const shoal_point in[] = {
      {.kind = 0, .step = 30, .time = 3, .loss = NAN, .metric = 0.1, .samples_per_s = INFINITY},
      {.kind = 0, .step = 10, .time = 1, .loss = 0.1 + 0.2, .metric = NAN, .samples_per_s = 5e-324},
      {.kind = 1, .step = 30, .time = NAN, .loss = -INFINITY, .held_out_loss = 1.5, .held_out_metric = NAN},
      {.kind = 0, .step = 20, .time = 2, .loss = 1, .held_out_loss = NAN, .held_out_metric = NAN},
  };
  OK(shoal_store_add_points(store, id, in, 4, &err));
  assert_int_equal(count_of("points WHERE loss IS NULL"), 1);
  assert_int_equal(count_of("points WHERE time IS NULL"), 1);
  shoal_point out[9];
  size_t count;
  OK(shoal_store_points(store, id, 0, out, 9, &count, &err));
  assert_int_equal(count, 3);
  assert_int_equal(out[0].step, 10);
  assert_int_equal(out[1].step, 20);
  assert_int_equal(out[2].step, 30);
  assert_true(out[0].loss == 0.1 + 0.2 && isnan(out[0].metric) && out[0].samples_per_s == 5e-324);
  assert_true(out[2].time == 3 && isnan(out[2].loss) && isinf(out[2].samples_per_s));
  assert_true(isnan(out[1].held_out_loss) && isnan(out[1].held_out_metric) && out[0].held_out_loss == 0);
  OK(shoal_store_points(store, id, 1, out, 9, &count, &err));
  assert_int_equal(count, 1);
  assert_true(out[0].kind == 1 && isnan(out[0].time) && out[0].loss == -INFINITY &&
              out[0].held_out_loss == 1.5);
  const shoal_point again = {.kind = 0, .step = 20, .loss = 7, .metric = NAN};
  OK(shoal_store_add_points(store, id, &again, 1, &err));
  OK(shoal_store_points(store, id, 0, out, 2, &count, &err));
  assert_int_equal(count, 2);
  assert_true(out[0].step == 20 && out[0].loss == 7 && isnan(out[0].metric));
  assert_int_equal(out[1].step, 30); /* the last two of three */
  shoal_store_close(store);
}

static void what_lies_behind_a_step_is_cut_off(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING), other = add_job(store, "y", SHOAL_JOB_RUNNING);
  shoal_point points[20], out[20];
  size_t count;
  for (uint32_t i = 0; i < 20; i++) points[i] = (shoal_point){.kind = i % 2, .step = i / 2};
  OK(shoal_store_add_points(store, id, points, 20, &err));
  OK(shoal_store_add_points(store, other, points, 20, &err));
  OK(shoal_store_cut_points(store, id, 4, &err));
  for (uint32_t kind = 0; kind < 2; kind++) {
    OK(shoal_store_points(store, id, kind, out, 20, &count, &err));
    assert_int_equal(count, 5);
    assert_int_equal(out[4].step, 4);
    OK(shoal_store_points(store, other, kind, out, 20, &count, &err));
    assert_int_equal(count, 10);
  }
  OK(shoal_store_cut_points(store, id, UINT64_MAX, &err));
  OK(shoal_store_cut_points(store, id, 0, &err));
  OK(shoal_store_points(store, id, 0, out, 20, &count, &err));
  assert_int_equal(count, 1);
  shoal_store_close(store);
}

static void points_for_a_job_that_is_not_there_leave_nothing_of_the_call(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING);
  char name[SHOAL_STORE_KEY_MAX + 2];
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = 0;
  const shoal_contribution rows[] = {{.worker = "Ann", .units = 1}, {.worker = name, .units = 1}};
  FAILS(shoal_store_add_contributions(store, id, rows, 2, &err), SHOAL_LIMIT,
        "a worker's name has 1001 bytes");
  shoal_contribution out[3];
  size_t count;
  OK(shoal_store_contributions(store, id, out, 3, &count, &err));
  assert_int_equal(count, 0);
  shoal_store_close(store);
}

static void the_oldest_lines_of_a_log_go(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING), other = add_job(store, "y", SHOAL_JOB_RUNNING);
  OK(shoal_store_add_log(store, other, 1, STRANGE, &err));
  for (int i = 1; i <= SHOAL_STORE_LOG_LINES_MAX + 10; i++) {
    char text[32];
    snprintf(text, sizeof text, "line %d", i);
    OK(shoal_store_add_log(store, id, i, text, &err));
  }
  static shoal_log_row rows[SHOAL_STORE_LOG_LINES_MAX + 100];
  size_t count;
  OK(shoal_store_logs(store, id, 0, rows, SHOAL_STORE_LOG_LINES_MAX + 100, &count, &err));
  assert_int_equal(count, SHOAL_STORE_LOG_LINES_MAX);
  assert_int_equal(rows[0].number, 11);
  assert_string_equal(rows[0].text, "line 11");
  assert_true(rows[0].time == 11);
  shoal_log_rows_free(rows, count);
  OK(shoal_store_logs(store, id, 5, rows, 3, &count, &err)); /* the last three */
  assert_int_equal(count, 3);
  assert_int_equal(rows[0].number, SHOAL_STORE_LOG_LINES_MAX + 8);
  assert_int_equal(rows[2].number, SHOAL_STORE_LOG_LINES_MAX + 10);
  shoal_log_rows_free(rows, count);
  OK(shoal_store_logs(store, id, SHOAL_STORE_LOG_LINES_MAX + 9, rows, 3, &count, &err));
  assert_int_equal(count, 1);
  shoal_log_rows_free(rows, count);
  OK(shoal_store_logs(store, id, UINT64_MAX, rows, 3, &count, &err));
  assert_int_equal(count, 0);
  OK(shoal_store_logs(store, other, 0, rows, 3, &count, &err));
  assert_int_equal(count, 1);
  assert_int_equal(rows[0].number, 1);
  assert_string_equal(rows[0].text, STRANGE);
  shoal_log_rows_free(rows, count);
  shoal_store_close(store);
}

static void contributions_add_up_and_are_ordered(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING), other = add_job(store, "y", SHOAL_JOB_RUNNING);
  const shoal_contribution first[] = {{"b", 1, 10, 0.5}, {"a", 2, 20, 0.25}, {"B", 1, 10, 1}, {"a", 1, 1, 1}};
  const shoal_contribution second[] = {{"b", 4, 5000000000, 1}};
  OK(shoal_store_add_contributions(store, id, first, 4, &err));
  OK(shoal_store_add_contributions(store, id, first, 1, &err));
  OK(shoal_store_add_contributions(store, other, second, 1, &err));
  shoal_contribution out[9];
  size_t count;
  OK(shoal_store_contributions(store, id, out, 9, &count, &err));
  assert_int_equal(count, 3);
  assert_string_equal(out[0].worker, "a");
  assert_true(out[0].units == 3 && out[0].samples == 21 && out[0].seconds == 1.25);
  assert_string_equal(out[1].worker, "b");
  assert_true(out[1].units == 2 && out[1].samples == 20 && out[1].seconds == 1);
  assert_string_equal(out[2].worker, "B");
  shoal_contributions_free(out, count);
  OK(shoal_store_contributions(store, 0, out, 2, &count, &err));
  assert_int_equal(count, 2);
  assert_string_equal(out[0].worker, "b");
  assert_true(out[0].units == 6 && out[0].samples == 5000000020 && out[0].seconds == 2);
  shoal_contributions_free(out, count);
  shoal_store_close(store);
}

/* ---- things, tokens, audit ---- */

static void things_have_names_of_their_own_kind(void **state) {
  (void)state;
  shoal_store *store = open_store();
  const char *const names[] = {"b", "B", "a", "ä", "aa"}, *const sorted[] = {"B", "a", "aa", "b", "ä"};
  for (int i = 0; i < 5; i++) {
    shoal_thing_row row = {
        .name = (char *)names[i], .owner = "Ann", .content = (char *)STRANGE, .created = i};
    OK(shoal_store_add_thing(store, SHOAL_THING_MODEL, &row, &err));
    FAILS(shoal_store_add_thing(store, SHOAL_THING_MODEL, &row, &err), SHOAL_CONFLICT, "there is a model");
  }
  shoal_thing_row data = {.name = "b", .owner = "Bob", .content = "{}", .created = 9}, rows[9];
  OK(shoal_store_add_thing(store, SHOAL_THING_DATASET, &data, &err));
  store = open_again(store);
  size_t count;
  OK(shoal_store_things(store, SHOAL_THING_MODEL, rows, 9, &count, &err));
  assert_int_equal(count, 5);
  for (int i = 0; i < 5; i++) assert_string_equal(rows[i].name, sorted[i]);
  assert_string_equal(rows[0].content, STRANGE);
  assert_string_equal(rows[0].owner, "Ann");
  assert_true(rows[0].created == 1);
  shoal_thing_rows_free(rows, count);
  OK(shoal_store_things(store, SHOAL_THING_MODEL, rows, 2, &count, &err));
  assert_int_equal(count, 2);
  shoal_thing_rows_free(rows, count);
  OK(shoal_store_delete_thing(store, SHOAL_THING_MODEL, "b", &err));
  FAILS(shoal_store_thing(store, SHOAL_THING_MODEL, "b", rows, &err), SHOAL_NOT_FOUND, "model 'b'");
  OK(shoal_store_thing(store, SHOAL_THING_DATASET, "b", rows, &err));
  assert_string_equal(rows[0].owner, "Bob");
  shoal_thing_rows_free(rows, 1);
  char name[SHOAL_STORE_KEY_MAX + 2];
  memset(name, 'n', sizeof name);
  name[SHOAL_STORE_KEY_MAX + 1] = 0;
  data.name = name;
  FAILS(shoal_store_add_thing(store, SHOAL_THING_MODEL, &data, &err), SHOAL_LIMIT, "at most 1000");
  name[SHOAL_STORE_KEY_MAX] = 0;
  OK(shoal_store_add_thing(store, SHOAL_THING_MODEL, &data, &err));
  shoal_store_close(store);
}

static void tokens_are_found_by_their_hash(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t job = add_job(store, "x", SHOAL_JOB_WAITING), id;
  shoal_token_row in = {.role = "host", .name = (char *)STRANGE, .created = 3, .expires = 4}, rows[9];
  memset(in.hash, 'f', SHOAL_TOKEN_HASH_HEX - 1);
  OK(shoal_store_add_tokens(store, &in, 1, &id, &err));
  assert_int_equal(id, 1);
  FAILS(shoal_store_add_tokens(store, &in, 1, &id, &err), SHOAL_CONFLICT, "such a token already");
  in.hash[0] = '0';
  in.job = 77;
  FAILS(shoal_store_add_tokens(store, &in, 1, &id, &err), SHOAL_NOT_FOUND, "there is no job 77");
  in.job = job;
  OK(shoal_store_add_tokens(store, &in, 1, &id, &err));
  store = open_again(store);
  OK(shoal_store_token(store, in.hash, rows, &err));
  assert_int_equal(rows[0].id, id);
  assert_string_equal(rows[0].hash, in.hash);
  assert_string_equal(rows[0].role, "host");
  assert_string_equal(rows[0].name, STRANGE);
  assert_true(rows[0].job == job && rows[0].created == 3 && rows[0].expires == 4);
  shoal_token_rows_free(rows, 1);
  OK(shoal_store_token_by_id(store, id, rows, &err));
  assert_string_equal(rows[0].hash, in.hash);
  shoal_token_rows_free(rows, 1);
  FAILS(shoal_store_token_by_id(store, 77, rows, &err), SHOAL_NOT_FOUND, "there is no token 77");
  size_t count;
  OK(shoal_store_tokens(store, 0, rows, 9, &count, &err));
  assert_int_equal(count, 2);
  assert_true(rows[0].id == 1 && rows[0].job == 0 && rows[1].id == id);
  shoal_token_rows_free(rows, count);
  OK(shoal_store_tokens(store, 1, rows, 9, &count, &err));
  assert_true(count == 1 && rows[0].id == id);
  shoal_token_rows_free(rows, count);
  OK(shoal_store_delete_token(store, 1, &err));
  FAILS(shoal_store_delete_token(store, 1, &err), SHOAL_NOT_FOUND, "there is no token 1");
  OK(shoal_store_tokens(store, 0, rows, 9, &count, &err));
  assert_int_equal(count, 1);
  shoal_token_rows_free(rows, count);
  in.hash[0] = '1';
  in.expires = 0;
  OK(shoal_store_add_tokens(store, &in, 1, &id, &err));
  OK(shoal_store_purge_tokens(store, 3.9, &err));
  assert_int_equal(count_of("tokens"), 2);
  OK(shoal_store_purge_tokens(store, 4, &err));
  OK(shoal_store_tokens(store, 0, rows, 9, &count, &err));
  assert_true(count == 1 && rows[0].id == id);
  shoal_token_rows_free(rows, count);
  shoal_store_close(store);
}

static void a_thing_is_put_in_the_place_of_another(void **state) {
  (void)state;
  shoal_store *store = open_store();
  shoal_thing_row row = {.name = "a", .owner = "Ann", .content = "one", .created = 1}, out;
  OK(shoal_store_put_thing(store, SHOAL_THING_MODEL, &row, &err));
  row.content = "two";
  row.created = 2;
  OK(shoal_store_put_thing(store, SHOAL_THING_MODEL, &row, &err));
  OK(shoal_store_put_thing(store, SHOAL_THING_DATASET, &row, &err));
  assert_int_equal(count_of("things"), 2);
  OK(shoal_store_thing(store, SHOAL_THING_MODEL, "a", &out, &err));
  assert_string_equal(out.content, "two");
  assert_true(out.created == 2);
  shoal_thing_rows_free(&out, 1);
  shoal_store_close(store);
}

static void a_store_is_claimed_by_one_server(void **state) {
  (void)state;
  shoal_store *first = open_store(), *second = open_store();
  OK(shoal_store_claim(first, &err));
  OK(shoal_store_claim(first, &err));
  FAILS(shoal_store_claim(second, &err), SHOAL_CONFLICT, "another server");
  add_job(second, "x", SHOAL_JOB_WAITING); /* it can be used all the same */
  shoal_store_close(first);
  shoal_status status = SHOAL_CONFLICT;
  for (int i = 0; i < 100 && status == SHOAL_CONFLICT; i++) { /* PostgreSQL ends a session a moment later */
    status = shoal_store_claim(second, &err);
    if (status == SHOAL_CONFLICT) shoal_clock_sleep(0.05);
  }
  assert_int_equal(status, SHOAL_OK);
  shoal_store_close(second);
}

static void the_oldest_rows_of_the_audit_log_go(void **state) {
  (void)state;
  shoal_store *store = open_store();
  for (int i = 0; i < 3; i++) OK(shoal_store_add_audit(store, i, "x", "y", &err));
  char sql[96];
  snprintf(sql, sizeof sql, "UPDATE counters SET value = %d WHERE name = 'audit'", SHOAL_STORE_AUDIT_MAX + 1);
  script(sql);
  OK(shoal_store_add_audit(store, 9, "x", "y", &err));
  assert_int_equal(count_of("audit"), 2); /* the third and the one that was added */
  shoal_store_close(store);
}

static void the_audit_log_is_read_backwards(void **state) {
  (void)state;
  shoal_store *store = open_store();
  for (int i = 1; i <= 5; i++) OK(shoal_store_add_audit(store, i, STRANGE, "POST /api/v1/jobs: 201", &err));
  store = open_again(store);
  shoal_audit_row rows[9];
  size_t count;
  OK(shoal_store_audit(store, 0, rows, 2, &count, &err));
  assert_int_equal(count, 2);
  assert_true(rows[0].number == 5 && rows[1].number == 4 && rows[0].time == 5);
  assert_string_equal(rows[0].who, STRANGE);
  assert_string_equal(rows[0].what, "POST /api/v1/jobs: 201");
  shoal_audit_rows_free(rows, count);
  OK(shoal_store_audit(store, 4, rows, 9, &count, &err));
  assert_int_equal(count, 3);
  assert_int_equal(rows[0].number, 3);
  shoal_audit_rows_free(rows, count);
  OK(shoal_store_audit(store, 1, rows, 9, &count, &err));
  assert_int_equal(count, 0);
  shoal_store_close(store);
}

static void long_texts_are_kept_and_bytes_that_are_no_text_refused(void **state) {
  (void)state;
  shoal_store *store = open_store();
  size_t length = 1 << 20;
  char *text = malloc(length + 1);
  assert_non_null(text);
  for (size_t i = 0; i < length; i++) text[i] = "'\"\n\\a%$"[i % 7];
  text[length] = 0;
  shoal_job_row row = {.name = text, .host = text, .reason = text, .spec = text, .progress = text}, out;
  uint64_t id;
  OK(shoal_store_add_job(store, &row, &id, &err));
  OK(shoal_store_job(store, id, &out, &err));
  assert_string_equal(out.spec, text);
  assert_string_equal(out.name, text);
  shoal_job_rows_free(&out, 1);
  OK(shoal_store_add_log(store, id, 1, text, &err));
  OK(shoal_store_add_audit(store, 1, text, text, &err));
  text[5] = (char)0xff;
  FAILS(shoal_store_set_job_progress(store, id, text, &err), SHOAL_INVALID, "not UTF-8");
  FAILS(shoal_store_add_job(store, &row, &id, &err), SHOAL_INVALID, "not UTF-8");
  OK(shoal_store_set_job_progress(store, id, "{}", &err));
  assert_int_equal(add_job(store, "x", SHOAL_JOB_WAITING), 2);
  free(text);
  shoal_store_close(store);
}

/* ---- many threads, crashes, other versions ---- */

enum { THREADS = 8, EACH = 25 };

static void *hammer(void *store) {
  shoal_error mine;
  for (int i = 0; i < EACH; i++) {
    uint64_t id;
    shoal_job_row row = {.name = "thread", .created = 1}, out;
    const shoal_point points[] = {{.step = 1}, {.step = 2}};
    const shoal_contribution worker = {.worker = "all", .samples = 1};
    bool good = shoal_store_add_job(store, &row, &id, &mine) == SHOAL_OK &&
                shoal_store_add_points(store, id, points, 2, &mine) == SHOAL_OK &&
                shoal_store_add_log(store, 1, 1, "x", &mine) == SHOAL_OK &&
                shoal_store_add_contributions(store, 1, &worker, 1, &mine) == SHOAL_OK &&
                shoal_store_job(store, id, &out, &mine) == SHOAL_OK;
    if (!good) return strdup(mine.text);
    shoal_job_rows_free(&out, 1);
  }
  return NULL;
}

static void threads_and_two_servers_do_not_get_in_each_others_way(void **state) {
  (void)state;
  shoal_store *stores[2] = {open_store(), open_store()};
  add_job(stores[0], "first", SHOAL_JOB_RUNNING);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, hammer, stores[0]), 0);
  for (int i = 0; i < THREADS; i++) {
    void *trouble;
    pthread_join(threads[i], &trouble);
    if (trouble != NULL) fail_msg("%s", (char *)trouble);
  }
  assert_int_equal(add_job(stores[1], "last", SHOAL_JOB_RUNNING), THREADS * EACH + 2);
  shoal_contribution out;
  size_t count;
  OK(shoal_store_contributions(stores[1], 1, &out, 1, &count, &err));
  assert_int_equal(out.samples, THREADS * EACH);
  shoal_contributions_free(&out, 1);
  assert_int_equal(count_of("logs"), THREADS * EACH);
  assert_int_equal(count_of("points"), 2 * THREADS * EACH);
  for (int i = 0; i < 2; i++) shoal_store_close(stores[i]);
}

enum { BATCH = 20000 };

static shoal_point batch[BATCH];

/* A process of its own that adds one batch after the other until it is killed. */
static pid_t writer(int *ready) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    shoal_store *store;
    if (shoal_store_open(&store, where, NULL) != SHOAL_OK || write(ends[1], "x", 1) != 1) _exit(1);
    for (uint64_t round = 0;; round++) {
      for (uint64_t i = 0; i < BATCH; i++) batch[i].step = round * BATCH + i;
      if (shoal_store_add_points(store, 1, batch, BATCH, NULL) != SHOAL_OK) _exit(1);
    }
  }
  close(ends[1]);
  *ready = ends[0];
  return child;
}

static void a_writer_that_is_killed_leaves_all_of_a_call_or_nothing(void **state) {
  (void)state;
  shoal_store *store = open_store();
  add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_store_close(store);
  for (int i = 0; i < 6; i++) {
    int ready, how;
    char byte;
    pid_t child = writer(&ready);
    assert_int_equal(read(ready, &byte, 1), 1);
    close(ready);
    shoal_clock_sleep(0.01 + 0.033 * i);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(count_of("points") % BATCH, 0);
  }
  store = open_store();
  OK(shoal_store_set_job_state(store, 1, SHOAL_JOB_FAILED, "killed", 0, 1, &err));
  shoal_store_close(store);
}

static void a_store_of_a_newer_version_is_refused(void **state) {
  (void)state;
  shoal_store *store = open_store();
  add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_store_close(store);
  script("UPDATE store_version SET version = 1000");
  FAILS(shoal_store_open(&store, where, &err), SHOAL_UNSUPPORTED,
        "of version 1000, written by a newer shoal");
  assert_null(store);
  if (!on_server()) assert_non_null(strstr(err.text, "store.db"));
  assert_int_equal(count_of("jobs"), 1);
  script("UPDATE store_version SET version = 3");
  shoal_store_close(open_store());
}

/* Version 1 had no standings, version 2 no units. */
static void a_store_of_an_older_version_is_brought_up(void **state) {
  (void)state;
  shoal_store *store = open_store();
  add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_store_close(store);
  script("DROP TABLE standings");
  script("DROP TABLE units");
  script("DELETE FROM counters WHERE name = 'standing'");
  script("UPDATE store_version SET version = 1");
  store = open_store();
  const shoal_standing_row anna = {.who = "token 1", .agreed = 1};
  OK(shoal_store_put_standing(store, &anna, &err));
  assert_int_equal(count_of("jobs"), 1);
  shoal_store_close(store);
}

static void standings_are_kept_and_bans_lifted(void **state) {
  (void)state;
  shoal_store *store = open_store();
  shoal_standing_row rows[4];
  size_t count;
  OK(shoal_store_put_standing(store, &(shoal_standing_row){.who = "token 1", .agreed = 3, .changed = 5},
                              &err));
  OK(shoal_store_put_standing(store, &(shoal_standing_row){.who = "bob at 10.0.0.7", .agreed = 1}, &err));
  OK(shoal_store_put_standing(
      store,
      &(shoal_standing_row){
          .who = "bob at 10.0.0.7", .agreed = 9, .wrong = 1, .banned = true, .reason = "lied", .job = 4},
      &err));
  store = open_again(store);
  OK(shoal_store_standings(store, false, 0, rows, 4, &count, &err));
  assert_int_equal(count, 2);
  assert_string_equal(rows[0].who, "token 1");
  assert_int_equal(rows[0].agreed, 3);
  assert_false(rows[0].banned);
  assert_int_equal(rows[1].id, 2);
  assert_int_equal(rows[1].agreed, 9);
  assert_true(rows[1].banned);
  assert_string_equal(rows[1].reason, "lied");
  shoal_standing_rows_free(rows, count);
  OK(shoal_store_standings(store, true, 0, rows, 4, &count, &err));
  assert_int_equal(count, 1);
  shoal_standing_rows_free(rows, count);
  FAILS(shoal_store_lift_ban(store, 1, 7, &err), SHOAL_NOT_FOUND, "there is no ban 1");
  OK(shoal_store_ban(store, 2, &rows[0], &err));
  assert_int_equal(rows[0].job, 4);
  shoal_standing_rows_free(rows, 1);
  OK(shoal_store_lift_ban(store, 2, 7, &err));
  FAILS(shoal_store_ban(store, 2, &rows[0], &err), SHOAL_NOT_FOUND, "there is no ban 2");
  OK(shoal_store_standings(store, false, 1, rows, 4, &count, &err));
  assert_int_equal(count, 1);
  assert_int_equal(rows[0].agreed, 0); /* a newcomer again */
  assert_int_equal(rows[0].wrong, 1);
  shoal_standing_rows_free(rows, count);
  shoal_store_close(store);
}

static void a_unit_has_one_result(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t job = add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_unit_row rows[4];
  size_t count;
  for (uint64_t unit = 0; unit < 3; unit++)
    OK(shoal_store_add_unit(
        store, job,
        &(shoal_unit_row){
            .unit = 2 - unit, .trial = 1, .worker = "anna", .time = 5, .summary = "{}", .curve = "[1]"},
        &err));
  FAILS(shoal_store_add_unit(store, job, &(shoal_unit_row){.unit = 1, .trial = 1}, &err), SHOAL_CONFLICT,
        "unit 1 of job 1 has a result");
  FAILS(shoal_store_add_unit(store, job + 1, &(shoal_unit_row){.unit = 1}, &err), SHOAL_NOT_FOUND,
        "there is no job 2");
  store = open_again(store);
  OK(shoal_store_units(store, job, 1, rows, 4, &count, &err));
  assert_int_equal(count, 2);
  assert_int_equal(rows[0].unit, 1);
  assert_string_equal(rows[0].worker, "anna");
  assert_string_equal(rows[0].summary, "{}");
  assert_null(rows[0].curve);
  shoal_unit_rows_free(rows, count);
  OK(shoal_store_trial(store, job, 1, rows, &err));
  assert_int_equal(rows[0].unit, 2);
  assert_string_equal(rows[0].curve, "[1]");
  shoal_unit_rows_free(rows, 1);
  FAILS(shoal_store_trial(store, job, 2, rows, &err), SHOAL_NOT_FOUND, "no result of a trial 2");
  OK(shoal_store_delete_job(store, job, &err));
  assert_int_equal(count_of("units"), 0);
  shoal_store_close(store);
}

/* What is not a number is kept as nothing, and a line has a time. */
static void a_change_that_is_refused_does_not_take_the_store_away(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_store_state health;
  FAILS(shoal_store_add_log(store, id, NAN, "refused", &err), SHOAL_INVALID, "time");
  shoal_store_health(store, &health);
  assert_true(health.up);
  assert_int_equal(health.failures, 0);
  OK(shoal_store_add_log(store, id, 1, "taken", &err));
  assert_int_equal(count_of("logs"), 1);
  shoal_store_close(store);
}

/* ---- only SQLite ---- */

static void a_file_that_is_no_database_is_named(void **state) {
  (void)state;
  shoal_store *store;
  FILE *file = fopen("letter.txt", "w");
  assert_non_null(file);
  for (int i = 0; i < 1000; i++) fprintf(file, "Dear store, this is line %d.\n", i);
  fclose(file);
  FAILS(shoal_store_open(&store, "letter.txt", &err), SHOAL_CORRUPT,
        "letter.txt is damaged or not a SQLite database");
  assert_null(store);
  FAILS(shoal_store_open(&store, "no/such/folder/x.db", &err), SHOAL_IO, "no/such/folder/x.db: ");
  FAILS(shoal_store_open(&store, ".", &err), SHOAL_IO, ".: ");
  FAILS(shoal_store_open(&store, "", &err), SHOAL_INVALID, "name of a file");
}

static void a_damaged_file_is_named_when_the_damage_is_met(void **state) {
  (void)state;
  shoal_store *store = open_store();
  for (int i = 0; i < 500; i++) add_job(store, "a job with a name of some length", SHOAL_JOB_WAITING);
  shoal_store_close(store);
  struct stat info;
  assert_int_equal(stat("store.db", &info), 0);
  int file = open("store.db", O_WRONLY);
  assert_true(file >= 0);
  char garbage[4096];
  memset(garbage, 0xa5, sizeof garbage);
  for (off_t at = 8 * 4096; at < info.st_size; at += 4096)
    assert_int_equal(pwrite(file, garbage, sizeof garbage, at), sizeof garbage);
  close(file);
  shoal_status status = shoal_store_open(&store, where, &err);
  static shoal_job_row rows[500];
  size_t count;
  if (status == SHOAL_OK) status = shoal_store_jobs(store, -1, 0, rows, 500, &count, &err);
  assert_int_equal(status, SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "store.db is damaged"));
  shoal_store_close(store);
}

/* Waits until it is back, which must happen. */
static void await_store(shoal_store *store) {
  shoal_store_state health = {0};
  for (int i = 0; i < 6000 && !health.up; i++) {
    shoal_store_health(store, &health);
    if (!health.up) shoal_clock_sleep(0.05);
  }
  if (!health.up) fail_msg("the store stays away: %s", health.reason);
  assert_int_equal(health.due, 0);
}

static void what_a_full_disk_does_not_take_is_written_when_there_is_room(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_store_state health;
  shoal_job_row row;
  for (uint64_t i = 0; i < BATCH; i++) batch[i].step = i;
  limit_files(400000);
  OK(shoal_store_add_points(store, id, batch, 1, &err));
  OK(shoal_store_add_points(store, id, batch, BATCH, &err));
  /* What asks is refused, though a file on a full disk could be read: it would not say what was said last. */
  FAILS(shoal_store_job(store, id, &row, &err), SHOAL_UNAVAILABLE, "store.db: ");
  FAILS(shoal_store_set_job_spec(store, id, "{}", &err), SHOAL_UNAVAILABLE, "the store is unavailable: ");
  OK(shoal_store_set_job_state(store, id, SHOAL_JOB_STOPPED, "", 0, 8, &err));
  OK(shoal_store_set_job_state(store, id, SHOAL_JOB_FINISHED, "", 0, 9, &err));
  OK(shoal_store_add_log(store, id, 1, "finished", &err));
  OK(shoal_store_add_audit(store, 1, "ann", "POST", &err));
  OK(shoal_store_put_standing(store, &(shoal_standing_row){.who = "bob", .agreed = 3}, &err));
  shoal_store_health(store, &health);
  assert_false(health.up);
  assert_int_equal(health.due, 5); /* of the two states, the last */
  assert_true(health.failures >= 6);
  assert_non_null(strstr(health.reason, "store.db: "));
  limit_files(0);
  await_store(store);
  assert_int_equal(count_of("points"), BATCH);
  assert_int_equal(count_of("logs"), 1);
  assert_int_equal(count_of("audit"), 1);
  assert_int_equal(count_of("standings"), 1);
  OK(shoal_store_job(store, id, &row, &err));
  assert_int_equal(row.state, SHOAL_JOB_FINISHED);
  assert_true(row.ended == 9);
  shoal_job_rows_free(&row, 1);
  shoal_store_close(store);
}

static void what_is_kept_has_an_end_and_states_outlive_it(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_store_state health;
  shoal_job_row row;
  for (uint64_t i = 0; i < BATCH; i++) batch[i].step = i;
  limit_files(1);
  OK(shoal_store_set_job_state(store, id, SHOAL_JOB_FINISHED, "", 0, 9, &err));
  for (int i = 0; i < 6; i++) OK(shoal_store_add_points(store, id, batch, BATCH, &err));
  shoal_store_health(store, &health);
  assert_int_equal(health.due, 5); /* the state, and four times 20,000 points */
  assert_int_equal(health.lost, 2);
  enum { LONG = 1 << 20, LINES = 60 }; /* a few long texts are as much as many points */
  char *text = calloc(1, LONG);
  memset(text, 'x', LONG - 1);
  for (int i = 0; i < LINES; i++) OK(shoal_store_add_log(store, id, 1, text, &err));
  free(text);
  shoal_store_health(store, &health);
  assert_int_equal(health.due + health.lost, 1 + 6 + LINES);
  assert_in_range(health.due, 2, 48);
  limit_files(0);
  await_store(store);
  OK(shoal_store_job(store, id, &row, &err));
  assert_int_equal(row.state, SHOAL_JOB_FINISHED);
  shoal_job_rows_free(&row, 1);
  shoal_store_close(store);
}

static void what_is_kept_and_refused_then_does_not_hold_up_the_rest(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_store_state health;
  const shoal_unit_row unit = {.unit = 1, .trial = 1, .time = 1};
  OK(shoal_store_add_unit(store, id, &unit, &err));
  limit_files(1);
  OK(shoal_store_add_log(store, id, 1, "taken", &err));
  OK(shoal_store_add_log(store, id, NAN, "refused", &err));
  OK(shoal_store_add_unit(store, id, &unit, &err)); /* as after a commit of which no word came */
  OK(shoal_store_add_log(store, id, 2, "taken", &err));
  shoal_store_health(store, &health);
  assert_int_equal(health.due, 4);
  limit_files(0);
  await_store(store);
  shoal_store_health(store, &health);
  assert_int_equal(health.lost, 1); /* the line; of the unit nothing is lost */
  assert_int_equal(count_of("logs"), 2);
  assert_int_equal(count_of("units"), 1);
  shoal_store_close(store);
}

/* ---- only PostgreSQL ---- */

static void restart_server(void) { assert_int_equal(system(getenv("SHOAL_TEST_STORE_RESTART")), 0); }

/* A job, from a store that may have to find its server again. */
static void read_again(shoal_store *store, uint64_t id, shoal_job_row *row) {
  shoal_status status = shoal_store_job(store, id, row, &err);
  if (status == SHOAL_UNAVAILABLE) { /* a busy machine */
    await_store(store);
    status = shoal_store_job(store, id, row, &err);
  }
  assert_int_equal(status, SHOAL_OK);
}

static void a_restarted_server_is_found_again(void **state) {
  (void)state;
  shoal_store *store = open_store();
  uint64_t id = add_job(store, "x", SHOAL_JOB_RUNNING);
  shoal_job_row row;
  restart_server();
  OK(shoal_store_set_job_state(store, id, SHOAL_JOB_FINISHED, "", 0, 2, &err)); /* a transaction */
  await_store(store);
  restart_server();
  read_again(store, id, &row); /* and none */
  assert_int_equal(row.state, SHOAL_JOB_FINISHED);
  shoal_job_rows_free(&row, 1);
  shoal_store_close(store);
}

static void a_claim_is_made_again_when_the_server_was_restarted_or_calls_fail(void **state) {
  (void)state;
  shoal_store *first = open_store(), *second = open_store();
  uint64_t id = add_job(first, "x", SHOAL_JOB_RUNNING);
  shoal_job_row row;
  OK(shoal_store_claim(first, &err));
  restart_server();
  OK(shoal_store_set_job_state(first, id, SHOAL_JOB_FINISHED, "", 0, 2, &err));
  await_store(first);
  read_again(second, id, &row);
  shoal_job_rows_free(&row, 1);
  FAILS(shoal_store_claim(second, &err), SHOAL_CONFLICT, "another server");
  restart_server();
  read_again(second, id, &row); /* the second is quicker this time */
  shoal_job_rows_free(&row, 1);
  OK(shoal_store_claim(second, &err));
  shoal_store_state health = {0};
  assert_int_equal(shoal_store_job(first, id, &row, &err), SHOAL_UNAVAILABLE);
  for (int i = 0; i < 6000 && strstr(health.reason, "another server") == NULL; i++) {
    shoal_store_health(first, &health);
    shoal_clock_sleep(0.05);
  }
  for (int i = 0; i < 2; i++) {
    FAILS(shoal_store_job(first, id, &row, &err), SHOAL_UNAVAILABLE, "another server");
    FAILS(shoal_store_set_job_spec(first, id, "{}", &err), SHOAL_UNAVAILABLE, "another server");
  }
  shoal_store_close(second);
  await_store(first);
  OK(shoal_store_job(first, id, &row, &err));
  assert_int_equal(row.state, SHOAL_JOB_FINISHED);
  shoal_job_rows_free(&row, 1);
  shoal_store_close(first);
}

static void a_connection_lost_in_a_transaction_fails_it_and_the_next_is_whole(void **state) {
  (void)state;
  shoal_store_close(open_store());
  shoal_db *db;
  const shoal_db_value values[] = {shoal_db_text("a"), shoal_db_integer(1)};
  const char *insert = "INSERT INTO counters (name, value) VALUES ($1, $2)";
  OK(shoal_db_open(&db, where, &err));
  size_t before = count_of("counters");
  OK(shoal_db_begin(db, SHOAL_DB_DURABLE, &err));
  OK(shoal_db_run(db, insert, values, 2, NULL, &err));
  restart_server();
  FAILS(shoal_db_run(db, insert, values, 2, NULL, &err), SHOAL_IO, "PostgreSQL database postgres at ");
  shoal_db_rollback(db);
  assert_int_equal(count_of("counters"), before);
  FAILS(shoal_db_begin(db, SHOAL_DB_DURABLE, &err), SHOAL_IO, "PostgreSQL database postgres at ");
  OK(shoal_db_mend(db, &err));
  OK(shoal_db_begin(db, SHOAL_DB_DURABLE, &err));
  OK(shoal_db_run(db, insert, values, 2, NULL, &err));
  restart_server();
  FAILS(shoal_db_commit(db, &err), SHOAL_IO, "in the middle of a change");
  assert_int_equal(count_of("counters"), before);
  OK(shoal_db_mend(db, &err));
  OK(shoal_db_begin(db, SHOAL_DB_RELAXED, &err));
  OK(shoal_db_run(db, insert, values, 2, NULL, &err));
  OK(shoal_db_commit(db, &err));
  assert_int_equal(count_of("counters"), before + 1);
  shoal_db_close(db);
}

static void no_error_shows_a_password(void **state) {
  (void)state;
  const char *const urls[] = {
      "postgresql://ann:sesame@127.0.0.1:1/x",
      "postgresql://ann:sesame@127.0.0.1:port/x",
      "postgresql://ann:sesame%zz@127.0.0.1:1/x",
      "postgresql://ann:sesame",
      "postgresql://ann:sesame@h/x?nonsense=1",
      "postgresql://ann:ope/n@sesame@127.0.0.1:1/x",
      "postgresql://ann:ope/sesame@127.0.0.1/x",
      "postgres://ann:ope?sesame@127.0.0.1/x",
      "postgresql://[::1:sesame",
      "postgresql://127.0.0.1:1/x?user=ann&password=sesame",
  };
  for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
    shoal_store *store;
    assert_int_not_equal(shoal_store_open(&store, urls[i], &err), SHOAL_OK);
    assert_null(store);
    if (strstr(err.text, "sesame") != NULL) fail_msg("%s", err.text);
    assert_non_null(strstr(err.text, "PostgreSQL"));
  }
  char wrong[512];
  shoal_store *store;
  snprintf(wrong, sizeof wrong, "postgresql://shoal:sesame%s", strchr(where, '@'));
  FAILS(shoal_store_open(&store, wrong, &err), SHOAL_IO, "password authentication failed");
  assert_null(strstr(err.text, "sesame"));
}

/* ---- speed ---- */

enum { JOBS = 1000, POINTS = 100000, AUDITS = 100000, A_SECOND = 1 };

static double since;
static void start(void) { since = shoal_clock_seconds(); }
static void report(const char *what, double times) {
  double took = (shoal_clock_seconds() - since) / times;
  printf("%s: %-34s %9.3f ms\n", on_server() ? "postgresql" : "sqlite", what, 1e3 * took);
  assert_true(took < A_SECOND);
}

/* As many rows as a busy year leaves; the audit log by a statement of its own, to save time. */
static void fill(shoal_store *store) {
  start();
  for (int i = 0; i < JOBS; i++) add_job(store, "a job", (shoal_job_state)(i % SHOAL_JOB_STATES));
  report("add a job (durable)", JOBS);
  for (uint64_t i = 0; i < BATCH; i++) batch[i] = (shoal_point){.loss = 1, .metric = NAN, .samples_per_s = 5};
  start();
  for (uint64_t done = 0; done < POINTS; done += BATCH) {
    for (uint64_t i = 0; i < BATCH; i++) batch[i].step = done + i;
    OK(shoal_store_add_points(store, 1, batch, BATCH, &err));
  }
  report("add 1,000 points at once", POINTS / 1000.0);
  script("INSERT INTO audit (number, time, who, what)"
         " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
         " SELECT i, i, 'token 3 (Ann)', 'POST /api/v1/jobs: 201' FROM n;"
         "UPDATE counters SET value = 100000 WHERE name = 'audit'");
}

static void lists_are_quick_among_many_rows(void **state) {
  (void)state;
  shoal_store *store = open_store();
  fill(store);
  static shoal_job_row jobs[JOBS];
  static shoal_point points[2000];
  static shoal_audit_row audits[100];
  size_t count;
  start();
  OK(shoal_store_jobs(store, -1, 500, jobs, 50, &count, &err));
  report("list 50 jobs", 1);
  shoal_job_rows_free(jobs, count);
  start();
  OK(shoal_store_jobs(store, SHOAL_JOB_FAILED, 500, jobs, 50, &count, &err));
  report("list 50 jobs in a state", 1);
  assert_int_equal(count, 50);
  shoal_job_rows_free(jobs, count);
  start();
  OK(shoal_store_jobs(store, -1, 0, jobs, JOBS, &count, &err));
  report("list 1,000 jobs", 1);
  assert_int_equal(count, JOBS);
  shoal_job_rows_free(jobs, count);
  start();
  OK(shoal_store_points(store, 1, 0, points, 2000, &count, &err));
  report("2,000 points", 1);
  assert_int_equal(count, 2000);
  start();
  OK(shoal_store_audit(store, 50000, audits, 100, &count, &err));
  report("100 audit rows", 1);
  assert_int_equal(audits[0].number, 49999);
  shoal_audit_rows_free(audits, count);
  start();
  for (int i = 0; i < 100; i++) OK(shoal_store_add_audit(store, 1, "x", "y", &err));
  report("add an audit row", 100);
  start();
  for (int i = 0; i < 100; i++) OK(shoal_store_add_log(store, 1, 1, "a line", &err));
  report("add a line to a log", 100);
  start();
  for (int i = 0; i < 100; i++) OK(shoal_store_set_job_progress(store, 1, "{}", &err));
  report("set a job's progress", 100);
  start();
  for (int i = 0; i < 100; i++) OK(shoal_store_set_job_state(store, 1, SHOAL_JOB_RUNNING, "", 0, 0, &err));
  report("set a job's state (durable)", 100);
  start();
  OK(shoal_store_cut_points(store, 1, POINTS / 2, &err));
  report("cut 50,000 points", 1);
  start();
  OK(shoal_store_delete_job(store, 1, &err));
  report("delete a job with 50,000 points", 1);
  shoal_store_close(store);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave_folder)

int main(void) {
  const struct CMUnitTest both[] = {
      TEST(a_job_comes_back_as_it_went_in),
      TEST(what_is_not_there_is_said),
      TEST(states_have_names),
      TEST(a_state_is_set_and_times_of_0_leave_what_was),
      TEST(jobs_are_listed_from_the_newest_and_by_state),
      TEST(a_deleted_job_takes_everything_along_and_its_number_is_not_used_again),
      TEST(points_come_back_in_order_and_nothing_is_kept_as_nothing),
      TEST(what_lies_behind_a_step_is_cut_off),
      TEST(points_for_a_job_that_is_not_there_leave_nothing_of_the_call),
      TEST(the_oldest_lines_of_a_log_go),
      TEST(contributions_add_up_and_are_ordered),
      TEST(things_have_names_of_their_own_kind),
      TEST(tokens_are_found_by_their_hash),
      TEST(a_thing_is_put_in_the_place_of_another),
      TEST(a_store_is_claimed_by_one_server),
      TEST(the_audit_log_is_read_backwards),
      TEST(the_oldest_rows_of_the_audit_log_go),
      TEST(long_texts_are_kept_and_bytes_that_are_no_text_refused),
      TEST(threads_and_two_servers_do_not_get_in_each_others_way),
      TEST(a_writer_that_is_killed_leaves_all_of_a_call_or_nothing),
      TEST(a_store_of_a_newer_version_is_refused),
      TEST(a_store_of_an_older_version_is_brought_up),
      TEST(standings_are_kept_and_bans_lifted),
      TEST(a_unit_has_one_result),
      TEST(a_change_that_is_refused_does_not_take_the_store_away),
      TEST(lists_are_quick_among_many_rows),
  };
  const struct CMUnitTest sqlite[] = {
      TEST(a_file_that_is_no_database_is_named),
      TEST(a_damaged_file_is_named_when_the_damage_is_met),
      TEST(what_a_full_disk_does_not_take_is_written_when_there_is_room),
      TEST(what_is_kept_has_an_end_and_states_outlive_it),
      TEST(what_is_kept_and_refused_then_does_not_hold_up_the_rest),
  };
  const struct CMUnitTest postgres[] = {
      TEST(a_restarted_server_is_found_again),
      TEST(a_claim_is_made_again_when_the_server_was_restarted_or_calls_fail),
      TEST(a_connection_lost_in_a_transaction_fails_it_and_the_next_is_whole),
      TEST(no_error_shows_a_password),
  };
  int failed = RUN_TESTS(both);
  return failed + (on_server() ? RUN_TESTS(postgres) : RUN_TESTS(sqlite));
}
