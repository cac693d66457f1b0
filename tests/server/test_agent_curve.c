/* test_agent_curve.c: points are served as they came, and what lies beyond the learner's file is cut off. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "server/agent_curve.h"

static char path[64];
static shoal_error err;

static void add(const char *lines) {
  shoal_text text = {0};
  shoal_text_addf(&text, "%s", lines);
  assert_int_equal(shoal_agent_curve_add(path, &text, &err), SHOAL_OK);
  shoal_text_release(&text);
}

static uint64_t read_from(uint64_t from, uint64_t most, const char *wanted) {
  shoal_text text = {0};
  shoal_json json;
  uint64_t next;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '[');
  assert_int_equal(shoal_agent_curve_read(path, from, most, &json, &next, &err), SHOAL_OK);
  shoal_json_close(&json, ']');
  assert_string_equal(text.bytes, wanted);
  shoal_text_release(&text);
  return next;
}

static int begin(void **state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/shoal-curve-%d.jsonl", (int)getpid());
  unlink(path);
  return 0;
}

static int end(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

static void points_are_numbered_from_the_first(void **state) {
  (void)state;
  assert_int_equal(read_from(0, 10, "[]"), 0);
  add("{\"steps\":1}\n{\"steps\":2}\n");
  add("");
  add("{\"steps\":3}\n");
  assert_int_equal(read_from(0, 10, "[{\"steps\":1},{\"steps\":2},{\"steps\":3}]"), 3);
  assert_int_equal(read_from(1, 1, "[{\"steps\":2}]"), 2);
  assert_int_equal(read_from(3, 10, "[]"), 3);
  assert_int_equal(read_from(9, 10, "[]"), 3);
}

static void a_line_that_is_not_whole_counts_for_nothing(void **state) {
  (void)state;
  add("{\"steps\":1,\"seconds\":2}\n{\"steps\":2,\"sec");
  assert_int_equal(read_from(0, 10, "[{\"steps\":1,\"seconds\":2}]"), 1);
  double seconds;
  assert_int_equal(shoal_agent_curve_cut(path, 100, &seconds, &err), SHOAL_OK);
  assert_float_equal(seconds, 2, 0);
  add("{\"steps\":5,\"seconds\":3}\n");
  assert_int_equal(read_from(0, 10, "[{\"steps\":1,\"seconds\":2},{\"steps\":5,\"seconds\":3}]"), 2);
}

static void what_was_torn_spoils_nothing_that_comes_after_it(void **state) {
  (void)state;
  static const char glued[] = "{\"steps\":3,\"sec{\"steps\":4,\"seconds\":4}\n";
  static const char whole[] =
      "[{\"steps\":1,\"seconds\":2},{\"steps\":5,\"seconds\":5},{\"steps\":9,\"seconds\":9}]";
  double seconds;
  add("{\"steps\":1,\"seconds\":2}\n{\"steps\":2,\"sec");
  add("{\"steps\":5,\"seconds\":5}\n");
  add(glued);
  add("{\"steps\":9,\"seconds\":9}\n");
  assert_int_equal(read_from(0, 10, whole), 3);
  assert_int_equal(read_from(1, 1, "[{\"steps\":5,\"seconds\":5}]"), 2);
  assert_int_equal(shoal_agent_curve_cut(path, 9, &seconds, &err), SHOAL_OK);
  assert_float_equal(seconds, 9, 0);
  assert_int_equal(read_from(0, 10, whole), 3);
  assert_int_equal(shoal_agent_curve_cut(path, 5, &seconds, &err), SHOAL_OK);
  assert_int_equal(read_from(0, 10, "[{\"steps\":1,\"seconds\":2},{\"steps\":5,\"seconds\":5}]"), 2);
}

/* A limit on the size of files is as good as a full disk. */
static void what_does_not_fit_leaves_the_file_as_it_was(void **state) {
  (void)state;
  struct rlimit before, tight;
  struct stat file;
  shoal_text lines = {0};
  add("{\"steps\":1,\"seconds\":2}\n");
  shoal_text_addf(&lines, "{\"steps\":2,\"seconds\":3}\n");
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  tight = before;
  tight.rlim_cur = 30; /* the first line, and a little of the second */
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
  shoal_status status = shoal_agent_curve_add(path, &lines, &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_not_equal(status, SHOAL_OK);
  assert_int_equal(stat(path, &file), 0);
  assert_int_equal(file.st_size, strlen("{\"steps\":1,\"seconds\":2}\n"));
  add(lines.bytes);
  assert_int_equal(read_from(0, 10, "[{\"steps\":1,\"seconds\":2},{\"steps\":2,\"seconds\":3}]"), 2);
  shoal_text_release(&lines);
}

static void what_lies_beyond_is_cut_off(void **state) {
  (void)state;
  double seconds;
  assert_int_equal(shoal_agent_curve_cut(path, 100, &seconds, &err), SHOAL_OK);
  assert_false(shoal_file_exists(path));
  add("{\"steps\":10,\"seconds\":1}\n{\"steps\":20,\"seconds\":2.5}\n{\"steps\":30,\"seconds\":4}\n");
  assert_int_equal(shoal_agent_curve_cut(path, 20, &seconds, &err), SHOAL_OK);
  assert_float_equal(seconds, 2.5, 0);
  assert_int_equal(read_from(0, 10, "[{\"steps\":10,\"seconds\":1},{\"steps\":20,\"seconds\":2.5}]"), 2);
  assert_int_equal(shoal_agent_curve_cut(path, 0, &seconds, &err), SHOAL_OK);
  assert_float_equal(seconds, 0, 0);
  assert_int_equal(read_from(0, 10, "[]"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(points_are_numbered_from_the_first, begin, end),
      cmocka_unit_test_setup_teardown(a_line_that_is_not_whole_counts_for_nothing, begin, end),
      cmocka_unit_test_setup_teardown(what_was_torn_spoils_nothing_that_comes_after_it, begin, end),
      cmocka_unit_test_setup_teardown(what_does_not_fit_leaves_the_file_as_it_was, begin, end),
      cmocka_unit_test_setup_teardown(what_lies_beyond_is_cut_off, begin, end),
  };
  return RUN_TESTS(tests);
}
