/* A lock is one process's, says whose, and goes with it. */
#include "base/lock.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../nn/in_folder.h"

static void one_has_it_until_it_is_given_back(void **state) {
  (void)state;
  int lock, second;
  long holder;
  shoal_error err;
  assert_int_equal(shoal_lock_take(&lock, "lock", &holder, &err), SHOAL_OK);
  assert_int_equal(shoal_lock_take(&second, "lock", &holder, &err), SHOAL_CONFLICT);
  assert_int_equal(second, SHOAL_NO_LOCK);
  assert_int_equal(holder, getpid());
  shoal_lock_give(second);
  shoal_lock_give(lock);
  assert_int_equal(shoal_lock_take(&second, "lock", &holder, &err), SHOAL_OK);
  shoal_lock_give(second);
  assert_int_equal(shoal_lock_take(&lock, "no/such/lock", &holder, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "no/such/lock"));
}

static void it_goes_with_a_process_that_is_killed(void **state) {
  (void)state;
  int ready[2], lock;
  long holder;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    bool taken = shoal_lock_take(&lock, "lock", &holder, NULL) == SHOAL_OK;
    if (!taken || write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(shoal_lock_take(&lock, "lock", &holder, NULL), SHOAL_CONFLICT);
  assert_int_equal(holder, child);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_int_equal(shoal_lock_take(&lock, "lock", &holder, NULL), SHOAL_OK);
  shoal_lock_give(lock);
  close(ready[0]);
  close(ready[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(one_has_it_until_it_is_given_back),
      IN_FOLDER(it_goes_with_a_process_that_is_killed),
  };
  return RUN_TESTS(tests);
}
