/* in_folder.h: every test starts in an empty folder of its own, which is removed afterwards. */
#ifndef SHOAL_TESTS_IN_FOLDER_H
#define SHOAL_TESTS_IN_FOLDER_H

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

static char test_folder[] = "/tmp/shoal-test-XXXXXX";

static inline int enter_folder(void **state) {
  (void)state;
  memcpy(test_folder + sizeof test_folder - 7, "XXXXXX", 6);
  return mkdtemp(test_folder) && chdir(test_folder) == 0 ? 0 : -1;
}

static inline int leave_folder(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", test_folder);
  return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static inline int files_here(void) {
  int count = 0;
  DIR *here = opendir(".");
  for (struct dirent *entry; (entry = readdir(here));) count += entry->d_name[0] != '.';
  closedir(here);
  return count;
}

/* As if the disk were full after so many bytes of a file; 0 ends it. */
static inline void limit_files(rlim_t bytes) {
  struct rlimit limit;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes ? bytes : limit.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

#endif
