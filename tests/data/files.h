/* files.h: what the tests of src/data share: a folder of their own, small files, models.
 *
 * Everything that looks for files by the environment (cache, data folder, home) is pointed
 * into that folder, so no test sees or leaves anything outside it. */
#ifndef SHOAL_TESTS_DATA_FILES_H
#define SHOAL_TESTS_DATA_FILES_H

#include "check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/status.h"
#include "nn/model.h"

static char folder[] = "/tmp/shoal-test-data-XXXXXX";

static inline int enter_folder(void **state) {
  (void)state;
  memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  char cache[64], home[64];
  snprintf(cache, sizeof cache, "%s/cache", folder);
  snprintf(home, sizeof home, "%s/home", folder);
  setenv("XDG_CACHE_HOME", cache, 1);
  setenv("HOME", home, 1);
  unsetenv("XDG_DATA_HOME");
  unsetenv("SHOAL_DATA");
  unsetenv("SHOAL_DATA_MIRROR");
  return 0;
}

static inline int leave_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

static inline void put(const char *path, const void *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

static inline void put_text(const char *path, const char *text) { put(path, text, strlen(text)); }

static inline void put_gzip(const char *path, const void *bytes, size_t length) {
  gzFile file = gzopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(length ? gzwrite(file, bytes, (unsigned)length) : 0, length);
  assert_int_equal(gzclose(file), Z_OK);
}

/* An IDX file; with values NULL, value i is i * 7 + seed. Returns its length. */
static inline size_t make_idx(uint8_t *out, int dims_count, const uint32_t *dims, uint8_t seed) {
  size_t values = 1, length = 4;
  out[0] = out[1] = 0;
  out[2] = 8;
  out[3] = (uint8_t)dims_count;
  for (int i = 0; i < dims_count; i++) {
    for (int shift = 24; shift >= 0; shift -= 8) out[length++] = (uint8_t)(dims[i] >> shift);
    values *= dims[i];
  }
  for (size_t i = 0; i < values; i++) out[length++] = (uint8_t)(i * 7 + seed);
  return length;
}

/* The folder of real data, or NULL: $SHOAL_SHARED_DATA, or ../shared/data beside the source. */
static inline const char *shared_data(void) {
  static char path[4096];
  const char *given = getenv("SHOAL_SHARED_DATA");
  snprintf(path, sizeof path, "%s", given ? given : SHOAL_SOURCE_DIR "/../shared/data");
  return access(path, R_OK) == 0 ? path : NULL;
}

static inline shoal_model *model_of(const char *text) {
  shoal_model *model;
  shoal_error err;
  if (shoal_model_parse(&model, "test.net", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  return model;
}

/* The error's sentence must hold every one of the words, which end with NULL. */
static inline void check_says(const shoal_error *err, const char *const *words) {
  for (; *words; words++) {
    if (!strstr(err->text, *words)) fail_msg("'%s' is not in: %s", *words, err->text);
  }
}
#define CHECK_SAYS(err, ...) check_says(err, (const char *const[]){__VA_ARGS__, NULL})

#endif
