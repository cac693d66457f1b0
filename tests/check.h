/* check.h: cmocka and the headers that it wants first. */
#ifndef SHOAL_TESTS_CHECK_H
#define SHOAL_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RUN_TESTS(tests) cmocka_run_group_tests(tests, NULL, NULL)

#endif
