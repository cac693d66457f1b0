/* The throughput of the last hour: a point every two seconds, the oldest go first. */
#include "server/throughput.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "check.h"

static cJSON *write(const shoal_throughput *t) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_throughput_write(t, &json);
  shoal_json_close(&json, '}');
  assert_false(text.failed);
  cJSON *tree = cJSON_Parse(text.bytes);
  shoal_text_release(&text);
  assert_non_null(tree);
  return tree;
}

static void check_point(const cJSON *point, double time, double rate) {
  assert_true(cJSON_GetArrayItem(point, 0)->valuedouble == time);
  assert_true(cJSON_GetArrayItem(point, 1)->valuedouble == rate);
}

static void the_last_points_are_told_in_their_order(void **state) {
  (void)state;
  shoal_throughput *t = calloc(1, sizeof *t);
  assert_non_null(t);
  cJSON *tree = write(t);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "points")), 0);
  cJSON_Delete(tree);
  const int more = 5;
  for (int i = 0; i < SHOAL_THROUGHPUT_POINTS + more; i++) shoal_throughput_add(t, 1000 + 2 * i, i);
  tree = write(t);
  const cJSON *points = cJSON_GetObjectItem(tree, "points");
  assert_int_equal(cJSON_GetArraySize(points), SHOAL_THROUGHPUT_POINTS);
  check_point(cJSON_GetArrayItem(points, 0), 1000 + 2 * more, more);
  check_point(cJSON_GetArrayItem(points, SHOAL_THROUGHPUT_POINTS - 1),
              1000 + 2 * (SHOAL_THROUGHPUT_POINTS + more - 1), SHOAL_THROUGHPUT_POINTS + more - 1);
  cJSON_Delete(tree);
  free(t);
}

static void a_point_is_due_now_and_then_also_when_the_clock_was_set_back(void **state) {
  (void)state;
  shoal_throughput *t = calloc(1, sizeof *t);
  assert_non_null(t);
  assert_true(shoal_throughput_is_due(t, 5000));
  shoal_throughput_add(t, 5000, 1);
  assert_false(shoal_throughput_is_due(t, 5001.9));
  assert_true(shoal_throughput_is_due(t, 5002));
  assert_false(shoal_throughput_is_due(t, 4999));
  assert_true(shoal_throughput_is_due(t, 1400));
  free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_last_points_are_told_in_their_order),
      cmocka_unit_test(a_point_is_due_now_and_then_also_when_the_clock_was_set_back),
  };
  return RUN_TESTS(tests);
}
