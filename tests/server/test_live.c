/* Who watches a job hears of that job and of no other, until it leaves or its token is good no more. */
#include "server/live.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "wire/http.h"

/* What would go to the net comes here: this file's are taken in the place of wire/http.c's. */
static char pushed[4096];
static uint64_t ended[8];
static size_t ended_count;

void shoal_http_push(shoal_net *net, uint64_t id, const void *bytes, size_t length) {
  (void)net;
  size_t at = strlen(pushed);
  snprintf(pushed + at, sizeof pushed - at, "%llu<%.*s>", (unsigned long long)id, (int)length,
           (const char *)bytes);
}

void shoal_http_end(shoal_net *net, uint64_t id) {
  (void)net;
  ended[ended_count++] = id;
}

static shoal_live *begin(void) {
  shoal_live *live;
  pushed[0] = 0;
  ended_count = 0;
  assert_int_equal(shoal_live_create(&live, NULL), SHOAL_OK);
  return live;
}

static void send(shoal_live *live, uint64_t job, const char *event, const char *data) {
  shoal_text text = {0};
  shoal_text_addf(&text, "%s", data);
  shoal_live_send(live, NULL, job, event, &text);
  shoal_text_release(&text);
}

static void watchers_hear_of_what_they_watch(void **state) {
  (void)state;
  shoal_live *live = begin();
  const shoal_caller anybody = {0};
  assert_false(shoal_live_watched(live, 7));
  assert_true(shoal_live_join(live, 1, 7, &anybody) && shoal_live_join(live, 2, 0, &anybody) &&
              shoal_live_join(live, 3, 7, &anybody));
  assert_true(shoal_live_watched(live, 7) && shoal_live_watched(live, 0) && !shoal_live_watched(live, 8));
  send(live, 7, "job", "{}");
  assert_string_equal(pushed, "1<event: job\ndata: {}\n\n>3<event: job\ndata: {}\n\n>");
  pushed[0] = 0;
  send(live, 0, "server", "[1]");
  assert_string_equal(pushed, "2<event: server\ndata: [1]\n\n>");
  pushed[0] = 0;
  send(live, 8, "job", "{}");
  assert_string_equal(pushed, "");
  shoal_live_destroy(live);
}

static void only_admins_hear_of_the_audit_log(void **state) {
  (void)state;
  shoal_live *live = begin();
  const shoal_caller host = {.level = SHOAL_HOST}, admin = {.level = SHOAL_ADMIN};
  assert_true(shoal_live_join(live, 1, 0, &host) && shoal_live_join(live, 2, 0, &admin) &&
              shoal_live_join(live, 3, 7, &admin));
  shoal_text text = {0};
  shoal_text_addf(&text, "{}");
  shoal_live_tell_admins(live, NULL, "audit", &text);
  shoal_text_release(&text);
  assert_string_equal(pushed, "2<event: audit\ndata: {}\n\n>");
  shoal_live_destroy(live);
}

static void who_has_left_hears_no_more(void **state) {
  (void)state;
  shoal_live *live = begin();
  const shoal_caller anybody = {0};
  for (uint64_t request = 1; request <= 3; request++)
    assert_true(shoal_live_join(live, request, 7, &anybody));
  shoal_live_leave(live, 1);
  shoal_live_leave(live, 1);
  shoal_live_leave(live, 99);
  send(live, 7, "log", "1");
  assert_null(strstr(pushed, "1<"));
  assert_non_null(strstr(pushed, "2<"));
  assert_non_null(strstr(pushed, "3<"));
  assert_int_equal(ended_count, 0);
  shoal_live_destroy(live);
}

static void there_are_only_so_many(void **state) {
  (void)state;
  shoal_live *live = begin();
  const shoal_caller anybody = {0};
  for (uint64_t i = 0; i < SHOAL_LIVE_WATCHERS_MAX; i++)
    assert_true(shoal_live_join(live, i + 1, 0, &anybody));
  assert_false(shoal_live_join(live, 1000, 0, &anybody));
  shoal_live_leave(live, 5);
  assert_true(shoal_live_join(live, 1000, 0, &anybody));
  shoal_live_destroy(live);
}

static void streams_end_with_their_token(void **state) {
  (void)state;
  shoal_live *live = begin();
  const shoal_caller mine = {.token = 4}, other = {.token = 5}, short_lived = {.token = 6, .expires = 100};
  assert_true(shoal_live_join(live, 1, 7, &mine) && shoal_live_join(live, 2, 7, &other) &&
              shoal_live_join(live, 3, 0, &mine) && shoal_live_join(live, 4, 0, &short_lived));
  shoal_live_close_token(live, NULL, 4);
  assert_int_equal(ended_count, 2);
  assert_int_equal(ended[0] + ended[1], 4);
  assert_true(shoal_live_watched(live, 7));
  shoal_live_tick(live, NULL, 10, 99);
  assert_int_equal(ended_count, 2);
  shoal_live_tick(live, NULL, 12, 100);
  assert_int_equal(ended_count, 3);
  assert_int_equal(ended[2], 4);
  assert_false(shoal_live_watched(live, 0));
  shoal_live_destroy(live);
}

static void silence_is_filled_with_comments_now_and_then(void **state) {
  (void)state;
  shoal_live *live = begin();
  const shoal_caller anybody = {0};
  assert_true(shoal_live_join(live, 1, 0, &anybody));
  shoal_live_tick(live, NULL, 100, 0);
  shoal_live_tick(live, NULL, 101, 0);
  assert_string_equal(pushed, "1<:\n\n>");
  shoal_live_tick(live, NULL, 120, 0);
  assert_string_equal(pushed, "1<:\n\n>1<:\n\n>");
  shoal_live_destroy(live);
}

static void changes_are_told_once_in_their_order(void **state) {
  (void)state;
  shoal_changes changes = {0};
  for (uint64_t id = 1; id <= 200; id++) shoal_changes_add(&changes, id);
  shoal_changes_add(&changes, 7);
  assert_int_equal(changes.count, 200);
  shoal_changes_remove(&changes, 2);
  shoal_changes_remove(&changes, 2);
  assert_int_equal(changes.count, 199);
  assert_true(changes.ids[0] == 1 && changes.ids[1] == 3 && changes.ids[198] == 200);
  shoal_changes_release(&changes);
  assert_int_equal(changes.count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(watchers_hear_of_what_they_watch),
      cmocka_unit_test(only_admins_hear_of_the_audit_log),
      cmocka_unit_test(who_has_left_hears_no_more),
      cmocka_unit_test(there_are_only_so_many),
      cmocka_unit_test(streams_end_with_their_token),
      cmocka_unit_test(silence_is_filled_with_comments_now_and_then),
      cmocka_unit_test(changes_are_told_once_in_their_order),
  };
  return RUN_TESTS(tests);
}
