/* check.h: cmocka and the headers that it wants first. */
#ifndef SHOAL_TESTS_CHECK_H
#define SHOAL_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

/* By when something must have happened: much longer than it takes, on a slow machine that is busy, too. */
enum { PATIENCE_S = 300 };

/* Waits for a condition. */
#define EVENTUALLY(condition)                                                                         \
  for (double eventually = shoal_clock_seconds() + PATIENCE_S; !(condition); shoal_clock_sleep(0.01)) \
    if (shoal_clock_seconds() > eventually) fail_msg("it never came: %s", #condition)

#define RUN_TESTS(tests) cmocka_run_group_tests(tests, NULL, NULL)

#endif
