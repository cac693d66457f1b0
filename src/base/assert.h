/* assert.h: checks for bugs, on in release builds too.
 *
 * Never for input: a file, flag or peer cannot make one of these fail. */
#ifndef SHOAL_BASE_ASSERT_H
#define SHOAL_BASE_ASSERT_H

_Noreturn void shoal_assert_failed(const char *file, int line, const char *condition);

#define SHOAL_ASSERT(condition) ((condition) ? (void)0 : shoal_assert_failed(__FILE__, __LINE__, #condition))

#endif
