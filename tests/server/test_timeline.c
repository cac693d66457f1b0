/* Leases become bars: begun, ended, again; and only the last few hundred. */
#include "server/timeline.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void see(shoal_timeline *t, const char *worker, shoal_message_kind kind, uint64_t lease,
                uint64_t round, double now) {
  const shoal_message message = {.kind = kind, .lease = lease, .round = round, .shard = 2, .count = 3};
  shoal_timeline_see(t, worker, &message, now);
}

static cJSON *write(const shoal_timeline *t) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_timeline_write(t, &json);
  shoal_json_close(&json, '}');
  assert_false(text.failed);
  cJSON *tree = cJSON_Parse(text.bytes);
  shoal_text_release(&text);
  assert_non_null(tree);
  return tree;
}

static shoal_timeline *begin(void) {
  shoal_timeline *t = calloc(1, sizeof *t);
  assert_non_null(t);
  return t;
}

static void a_lease_is_a_bar_from_its_beginning_to_its_end(void **state) {
  (void)state;
  shoal_timeline *t = begin();
  see(t, "ann", SHOAL_MSG_LEASE, 1, 9, 100.5);
  see(t, "bob", SHOAL_MSG_LEASE, 2, 10, 101);
  see(t, "cy", SHOAL_MSG_LEASE, 3, 11, 102);
  see(t, "ann", SHOAL_MSG_BEAT, 1, 9, 103);
  see(t, "ann", SHOAL_MSG_DONE, 1, 9, 104);
  see(t, "bob", SHOAL_MSG_RETURN, 2, 10, 105);
  see(t, "dan", SHOAL_MSG_DONE, 77, 9, 106); /* of which nothing is known */
  cJSON *tree = write(t);
  char *text = cJSON_PrintUnformatted(tree);
  assert_string_equal(
      text,
      "{\"units\":["
      "{\"round\":9,\"first\":2,\"count\":3,\"worker\":\"ann\",\"start\":100.5,\"end\":104,\"again\":false},"
      "{\"round\":10,\"first\":2,\"count\":3,\"worker\":\"bob\",\"start\":101,\"end\":105,\"again\":false},"
      "{\"round\":11,\"first\":2,\"count\":3,\"worker\":\"cy\",\"start\":102,\"end\":null,\"again\":false}]"
      "}");
  assert_int_equal(t->again, 0);
  cJSON_free(text);
  cJSON_Delete(tree);
  free(t);
}

static void a_unit_that_somebody_still_has_is_leased_again(void **state) {
  (void)state;
  shoal_timeline *t = begin();
  see(t, "ann", SHOAL_MSG_LEASE, 1, 9, 100);
  see(t, "bob", SHOAL_MSG_LEASE, 2, 9, 110);
  assert_int_equal(t->again, 1);
  assert_true(!t->bars[0].again && t->bars[1].again);
  see(t, "bob", SHOAL_MSG_DONE, 2, 9, 111);
  assert_true(t->bars[0].end == 0 && t->bars[1].end == 111);
  see(t, "ann", SHOAL_MSG_RETURN, 1, 9, 112);
  see(t, "cy", SHOAL_MSG_LEASE, 3, 9, 113); /* nobody has it now */
  assert_int_equal(t->again, 1);
  free(t);
}

static void the_oldest_make_room(void **state) {
  (void)state;
  shoal_timeline *t = begin();
  for (uint64_t i = 0; i < SHOAL_TIMELINE_BARS + 20; i++) see(t, "ann", SHOAL_MSG_LEASE, i, i, 100);
  see(t, "ann", SHOAL_MSG_DONE, 5, 5, 200); /* of a bar that is gone */
  cJSON *tree = write(t);
  const cJSON *units = cJSON_GetObjectItemCaseSensitive(tree, "units");
  assert_int_equal(cJSON_GetArraySize(units), SHOAL_TIMELINE_BARS);
  const cJSON *unit;
  double round = 20;
  cJSON_ArrayForEach(unit, units) {
    assert_true(cJSON_GetObjectItemCaseSensitive(unit, "round")->valuedouble == round++);
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(unit, "end")));
  }
  cJSON_Delete(tree);
  free(t);
}

static void a_name_that_is_too_long_is_cut(void **state) {
  (void)state;
  shoal_timeline *t = begin();
  char name[200];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  see(t, name, SHOAL_MSG_LEASE, 1, 1, 100);
  assert_int_equal(strlen(t->bars[0].worker), SHOAL_TIMELINE_NAME_MAX - 1);
  free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_lease_is_a_bar_from_its_beginning_to_its_end),
      cmocka_unit_test(a_unit_that_somebody_still_has_is_leased_again),
      cmocka_unit_test(the_oldest_make_room),
      cmocka_unit_test(a_name_that_is_too_long_is_cut),
  };
  return RUN_TESTS(tests);
}
