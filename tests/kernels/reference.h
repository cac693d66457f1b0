/* reference.h: what the tests of kernels share.
 *
 * A test computes a case with every table that this processor runs. The results are
 * compared with a plain reference in double precision, within a stated bound, and with
 * each other bit by bit. Buffers have exactly the size that a kernel may touch, so that the
 * address sanitizer sees one step too far. */
#ifndef SHOAL_TESTS_KERNELS_REFERENCE_H
#define SHOAL_TESTS_KERNELS_REFERENCE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernels.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define REF_UNUSED __attribute__((unused))

/* Sizes at which vectors, blocks and their remainders meet. */
static const uint32_t ref_sizes[] REF_UNUSED = {1, 2, 15, 16, 17, 31, 33, 64, 97};

enum { REF_TABLES_MAX = 4 };

/* The tables that can run here; the baseline is always the first. */
static inline int ref_tables(const shoal_kernels *tables[REF_TABLES_MAX]) {
  static const char *names[REF_TABLES_MAX] = {"baseline", "avx2", "avx512", "neon"};
  int count = 0;
  for (int i = 0; i < REF_TABLES_MAX; i++) {
    const shoal_kernels *table = shoal_kernels_named(names[i]);
    if (table != NULL) tables[count++] = table;
  }
  return count;
}

/* A stream of numbers that is the same in every run. */
static uint32_t ref_state = 1;

static inline uint32_t ref_next(void) {
  ref_state = ref_state * 1664525u + 1013904223u;
  return ref_state >> 8;
}

static inline float ref_uniform(float low, float high) {
  return low + (high - low) * (float)ref_next() * (1.0f / 16777216);
}

static inline void *ref_alloc(size_t bytes) {
  void *p = malloc(bytes > 0 ? bytes : 1);
  assert_non_null(p);
  return p;
}

static inline float *ref_floats(size_t count) { return ref_alloc(count * sizeof(float)); }

static inline float *ref_random(size_t count, float low, float high) {
  float *p = ref_floats(count);
  for (size_t i = 0; i < count; i++) p[i] = ref_uniform(low, high);
  return p;
}

static inline float *ref_filled(size_t count, float value) {
  float *p = ref_floats(count);
  for (size_t i = 0; i < count; i++) p[i] = value;
  return p;
}

static inline float *ref_copy(size_t count, const float *from) {
  float *p = ref_floats(count);
  if (count > 0) memcpy(p, from, count * sizeof *p);
  return p;
}

static inline double *ref_doubles(size_t count) {
  double *p = ref_alloc(count * sizeof *p);
  for (size_t i = 0; i < count; i++) p[i] = 0;
  return p;
}

/* Scratch as the kernels want it: aligned to 64 bytes, with nothing in it that helps. */
static inline float *ref_scratch(size_t count) {
  void *p = NULL;
  assert_int_equal(posix_memalign(&p, 64, count > 0 ? count * sizeof(float) : 1), 0);
  memset(p, 0xff, count * sizeof(float)); /* not numbers */
  return p;
}

/* |got - expected| <= bound * (floor + |expected|) for each; bound is the relative error. */
static inline void ref_close(const char *what, size_t count, const float *got, const double *expected,
                             double floor, double bound) {
  for (size_t i = 0; i < count; i++) {
    double error = fabs((double)got[i] - expected[i]);
    if (!(error <= bound * (floor + fabs(expected[i]))))
      fail_msg("%s[%zu]: %.9g, expected %.9g: error %.3g", what, i, (double)got[i], expected[i], error);
  }
}

/* The same bits, or both NaN: which NaN an operation makes is the processor's choice. */
static inline void ref_same(const char *what, const char *table, size_t count, const float *got,
                            const float *expected) {
  for (size_t i = 0; i < count; i++) {
    if (memcmp(got + i, expected + i, sizeof *got) != 0 && !(isnan(got[i]) && isnan(expected[i])))
      fail_msg("%s[%zu]: %s gives %a, baseline %a", what, i, table, (double)got[i], (double)expected[i]);
  }
}

/* The result of table number `index`: the first is kept and compared with the reference,
 * the others must be the same as the first. Takes `got`. */
static inline void ref_check(const char *what, const shoal_kernels *table, size_t count, float *got,
                             float **kept, const double *expected, double floor, double bound) {
  if (*kept == NULL) {
    ref_close(what, count, got, expected, floor, bound);
    *kept = got;
  } else {
    ref_same(what, table->name, count, got, *kept);
    free(got);
  }
}

#endif
