/* checked.h: arithmetic on sizes that come from outside. Each answers false on overflow. */
#ifndef SHOAL_BASE_CHECKED_H
#define SHOAL_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool shoal_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool shoal_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

#endif
