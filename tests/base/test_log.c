#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pool.h"

/* Standard error goes into a file between begin and end. */
static FILE *captured;
static int standard_error;

static void capture_begin(void) {
  fflush(stderr);
  captured = tmpfile();
  assert_non_null(captured);
  standard_error = dup(STDERR_FILENO);
  dup2(fileno(captured), STDERR_FILENO);
}

static char *capture_end(void) {
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  fseek(captured, 0, SEEK_END);
  long length = ftell(captured);
  rewind(captured);
  char *said = calloc(1, (size_t)length + 1);
  assert_int_equal(fread(said, 1, (size_t)length, captured), length);
  fclose(captured);
  return said;
}

static void lines_above_the_level_are_left_out(void **state) {
  (void)state;
  capture_begin();
  shoal_log(SHOAL_LOG_ERROR, "disk %d is full", 3);
  shoal_log(SHOAL_LOG_WARN, "slow");
  shoal_log(SHOAL_LOG_INFO, "epoch 1");
  shoal_log(SHOAL_LOG_DEBUG, "hidden");
  shoal_log_set_level(SHOAL_LOG_DEBUG);
  shoal_log(SHOAL_LOG_DEBUG, "shown");
  shoal_log_set_level(SHOAL_LOG_ERROR);
  shoal_log(SHOAL_LOG_WARN, "hidden");
  shoal_log_set_level(SHOAL_LOG_INFO);
  char *said = capture_end();
  assert_string_equal(said, "error: disk 3 is full\nwarning: slow\nepoch 1\ndebug: shown\n");
  free(said);
}

static void an_over_long_line_is_cut_and_still_ends(void **state) {
  (void)state;
  char lengthy[10000];
  memset(lengthy, 'x', sizeof lengthy);
  lengthy[sizeof lengthy - 1] = 0;
  capture_begin();
  shoal_log(SHOAL_LOG_ERROR, "%s", lengthy);
  char *said = capture_end();
  size_t length = strlen(said);
  assert_true(length > 4000 && length < 5000);
  assert_int_equal(said[length - 1], '\n');
  free(said);
}

static void say(void *context, uint32_t task, uint32_t thread) {
  (void)context, (void)task, (void)thread;
  shoal_log(SHOAL_LOG_INFO, "one whole line from %s", "a thread");
}

static void lines_of_different_threads_do_not_mix(void **state) {
  (void)state;
  shoal_pool *pool;
  assert_int_equal(shoal_pool_create(&pool, 4, NULL), SHOAL_OK);
  capture_begin();
  shoal_pool_run(pool, 400, say, NULL);
  char *said = capture_end();
  shoal_pool_destroy(pool);
  int lines = 0;
  for (char *rest = said, *line; (line = strsep(&rest, "\n")) && rest; lines++)
    assert_string_equal(line, "one whole line from a thread");
  assert_int_equal(lines, 400);
  free(said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_above_the_level_are_left_out),
      cmocka_unit_test(an_over_long_line_is_cut_and_still_ends),
      cmocka_unit_test(lines_of_different_threads_do_not_mix),
  };
  return RUN_TESTS(tests);
}
