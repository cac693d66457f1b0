/* assert.c: the end of a process that met a bug; abort leaves a core to look at. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void shoal_assert_failed(const char *file, int line, const char *condition) {
  fprintf(stderr, "%s:%d: this is a bug in shoal: '%s' does not hold\n", file, line, condition);
  abort();
}
