#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"

static void a_true_condition_costs_nothing(void **state) {
  (void)state;
  SHOAL_ASSERT(1 + 1 == 2);
}

static void a_false_condition_names_itself_and_aborts(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    SHOAL_ASSERT(1 + 1 == 3);
    _exit(0);
  }
  close(ends[1]);
  char said[512] = {0};
  assert_true(read(ends[0], said, sizeof said - 1) > 0);
  close(ends[0]);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  assert_non_null(strstr(said, "test_assert.c:"));
  assert_non_null(strstr(said, "1 + 1 == 3"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_true_condition_costs_nothing),
      cmocka_unit_test(a_false_condition_names_itself_and_aborts),
  };
  return RUN_TESTS(tests);
}
