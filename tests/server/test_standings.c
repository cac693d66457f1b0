/* Who has earned trust on a server, and who is banned: over jobs and restarts. */
#include "nn/in_folder.h"

#include "base/text.h"
#include "server/standings.h"

static const shoal_secret SECRET = {{7}};
static const char HOME[] = "10.0.0.7", ELSEWHERE[] = "10.0.0.8";

typedef struct world {
  shoal_store *store;
  shoal_standings *standings;
} world;

static world open_world(void) {
  world w;
  shoal_error err;
  if (shoal_store_open(&w.store, "store.sqlite", &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_standings_open(&w.standings, w.store, &SECRET, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return w;
}

static void close_world(world *w) {
  shoal_standings_close(w->standings);
  shoal_store_close(w->store);
}

/* The number of the only ban there is; 0 without one. */
static uint64_t ban_of(world *w) {
  shoal_standing_row rows[2];
  size_t count;
  assert_int_equal(shoal_store_standings(w->store, true, 0, rows, 2, &count, NULL), SHOAL_OK);
  assert_true(count <= 1);
  uint64_t id = count > 0 ? rows[0].id : 0;
  if (count > 0) assert_string_equal(rows[0].reason, "anna: its result was wrong");
  shoal_standing_rows_free(rows, count);
  return id;
}

static void ban(world *w, uint64_t who) {
  const shoal_standing liar = {.who = who, .agreed = 3, .wrong = 1, .banned = true};
  assert_true(shoal_standings_learn(w->standings, &liar, "anna", "its result was wrong", 7));
  /* No news, whichever machine of the same invitation it is told of. */
  assert_false(shoal_standings_learn(w->standings, &liar, "another", "its result was wrong", 7));
}

static void somebody_is_a_token_or_a_name_and_an_address(void **state) {
  (void)state;
  world w = open_world();
  uint64_t anna = shoal_standings_meet(w.standings, 0, "anna", HOME);
  assert_int_equal(shoal_standings_meet(w.standings, 0, "anna", HOME), anna);
  assert_true(shoal_standings_meet(w.standings, 0, "anna", ELSEWHERE) != anna);
  assert_true(shoal_standings_meet(w.standings, 0, "bob", HOME) != anna);
  uint64_t token = shoal_standings_meet(w.standings, 3, "anna", HOME);
  assert_true(token != anna);
  assert_int_equal(shoal_standings_meet(w.standings, 3, "bob", ELSEWHERE), token);
  close_world(&w);
}

static void a_ban_outlives_the_server_until_it_is_lifted(void **state) {
  (void)state;
  world w = open_world();
  assert_false(shoal_standings_is_banned(w.standings, 3, "anna", HOME));
  ban(&w, shoal_standings_meet(w.standings, 3, "anna", HOME));
  close_world(&w);

  w = open_world();
  assert_true(shoal_standings_is_banned(w.standings, 3, "another name", ELSEWHERE));
  assert_false(shoal_standings_is_banned(w.standings, 4, "anna", HOME));
  assert_false(shoal_standings_is_banned(w.standings, 0, "anna", HOME));
  shoal_standing lifted;
  assert_int_equal(shoal_standings_lift(w.standings, ban_of(&w) + 1, "token 1 (Ann)", &lifted, NULL),
                   SHOAL_NOT_FOUND);
  assert_int_equal(shoal_standings_lift(w.standings, ban_of(&w), "token 1 (Ann)", &lifted, NULL), SHOAL_OK);
  assert_false(lifted.banned);
  close_world(&w);

  w = open_world();
  assert_false(shoal_standings_is_banned(w.standings, 3, "anna", HOME));
  assert_int_equal(ban_of(&w), 0);
  close_world(&w);
}

static void a_chief_that_has_not_heard_of_a_ban_does_not_lift_it(void **state) {
  (void)state;
  world w = open_world();
  uint64_t anna = shoal_standings_meet(w.standings, 0, "anna", HOME);
  ban(&w, anna);
  const shoal_standing fine = {.who = anna, .agreed = 4};
  assert_false(shoal_standings_learn(w.standings, &fine, "anna", "", 8));
  assert_true(shoal_standings_is_banned(w.standings, 0, "anna", HOME));
  close_world(&w);
}

static void what_was_agreed_is_told_to_later_jobs(void **state) {
  (void)state;
  world w = open_world();
  const shoal_standing good = {.who = shoal_standings_meet(w.standings, 0, "anna", HOME), .agreed = 40};
  assert_false(shoal_standings_learn(w.standings, &good, "anna", "", 7));
  close_world(&w);
  w = open_world();
  uint32_t count;
  const shoal_standing *all = shoal_standings_all(w.standings, &count);
  assert_int_equal(count, 1);
  assert_int_equal(all[0].who, good.who);
  assert_int_equal(all[0].agreed, 40);
  close_world(&w);
}

static uint64_t agreed_in_store(world *w) {
  shoal_standing_row rows[2];
  size_t count;
  assert_int_equal(shoal_store_standings(w->store, false, 0, rows, 2, &count, NULL), SHOAL_OK);
  uint64_t agreed = count > 0 ? rows[0].agreed : 0;
  shoal_standing_rows_free(rows, count);
  return agreed;
}

static void what_agrees_is_known_at_once_and_stored_together(void **state) {
  (void)state;
  world w = open_world();
  uint64_t anna = shoal_standings_meet(w.standings, 0, "anna", HOME);
  for (int i = 0; i < 5; i++) shoal_standings_agreed(w.standings, anna);
  shoal_standings_agreed(w.standings, 12345); /* nobody that is known */
  assert_int_equal(shoal_standings_get(w.standings, anna).agreed, 5);
  assert_int_equal(agreed_in_store(&w), 0);
  shoal_standings_flush(w.standings);
  assert_int_equal(agreed_in_store(&w), 5);
  shoal_standings_agreed(w.standings, anna);
  close_world(&w); /* the last one, too */
  w = open_world();
  assert_int_equal(shoal_standings_get(w.standings, anna).agreed, 6);
  close_world(&w);
}

/* Wrong chunks: two others must say so, and then it is doubted, in jobs to come too, and by chiefs that do not know. */
static void who_is_blamed_by_two_is_doubted_and_not_banned(void **state) {
  (void)state;
  world w = open_world();
  uint64_t anna = shoal_standings_meet(w.standings, 0, "anna", HOME);
  uint64_t bob = shoal_standings_meet(w.standings, 0, "bob", HOME);
  uint64_t carl = shoal_standings_meet(w.standings, 0, "carl", HOME);
  const shoal_standing good = {.who = anna, .agreed = 40};
  shoal_standings_learn(w.standings, &good, "anna", "", 7);
  shoal_standing told;
  assert_false(shoal_standings_blame(w.standings, anna, anna, &told));
  assert_false(shoal_standings_blame(w.standings, anna, 12345, &told)); /* by nobody that is known */
  for (int i = 0; i < 5; i++) assert_false(shoal_standings_blame(w.standings, anna, bob, &told));
  assert_true(shoal_standings_blame(w.standings, anna, carl, &told));
  assert_true(told.who == anna && told.doubted == 40 && !told.banned);
  assert_false(shoal_standings_is_banned(w.standings, 0, "anna", HOME));
  const shoal_standing later = {.who = anna, .agreed = 41};
  shoal_standings_learn(w.standings, &later, "anna", "", 7);
  uint32_t count;
  const shoal_standing *all = shoal_standings_all(w.standings, &count);
  assert_int_equal(count, 3);
  assert_true(all[0].agreed == 41 && all[0].doubted == 40);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(somebody_is_a_token_or_a_name_and_an_address),
      IN_FOLDER(a_ban_outlives_the_server_until_it_is_lifted),
      IN_FOLDER(a_chief_that_has_not_heard_of_a_ban_does_not_lift_it),
      IN_FOLDER(what_was_agreed_is_told_to_later_jobs),
      IN_FOLDER(what_agrees_is_known_at_once_and_stored_together),
      IN_FOLDER(who_is_blamed_by_two_is_doubted_and_not_banned),
  };
  return RUN_TESTS(tests);
}
