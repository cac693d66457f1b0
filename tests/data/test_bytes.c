#include "files.h"

#include <dirent.h>

#include "data/bytes.h"

enum { LARGE = 3 << 20 };

static uint8_t *make_large(void) {
  uint8_t *bytes = malloc(LARGE);
  assert_non_null(bytes);
  for (uint32_t i = 0; i < LARGE; i++) bytes[i] = (uint8_t)(i * i >> 7);
  return bytes;
}

static int files_in(const char *path) {
  DIR *there = opendir(path);
  int count = 0;
  for (struct dirent *entry; there && (entry = readdir(there));) count += entry->d_name[0] != '.';
  if (there) closedir(there);
  return count;
}

static void check_bytes(const char *path, const void *bytes, size_t length, bool mapped) {
  shoal_bytes got;
  shoal_error err;
  if (shoal_bytes_open(&got, path, SIZE_MAX, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(got.length, length);
  assert_memory_equal(got.data, bytes, length);
  assert_int_equal(got.mapped != NULL, mapped);
  shoal_bytes_close(&got);
  shoal_bytes_close(&got);
}

static void plain_and_zipped_files_agree(void **state) {
  (void)state;
  const char text[] = "some bytes";
  put("plain", text, sizeof text);
  put_gzip("zipped", text, sizeof text);
  put("empty", "", 0);
  put_gzip("empty.gz", "", 0);
  check_bytes("plain", text, sizeof text, true);
  check_bytes("zipped", text, sizeof text, false);
  check_bytes("empty", "", 0, false);
  check_bytes("empty.gz", "", 0, false);
}

static void a_large_zipped_file_is_mapped_the_second_time(void **state) {
  (void)state;
  uint8_t *bytes = make_large();
  put_gzip("large.gz", bytes, LARGE);
  check_bytes("large.gz", bytes, LARGE, false);
  assert_int_equal(files_in("cache/shoal"), 1);
  check_bytes("large.gz", bytes, LARGE, true);

  /* Other content under the same name is not mistaken for the old. */
  bytes[5]++;
  put_gzip("large.gz", bytes, LARGE);
  check_bytes("large.gz", bytes, LARGE, false);
  free(bytes);
}

static void a_damaged_copy_is_not_used(void **state) {
  (void)state;
  uint8_t *bytes = make_large();
  put_gzip("large.gz", bytes, LARGE);
  check_bytes("large.gz", bytes, LARGE, false);
  assert_int_equal(system("truncate -s -1 cache/shoal/*"), 0);
  check_bytes("large.gz", bytes, LARGE, false);
  check_bytes("large.gz", bytes, LARGE, true); /* it was written again */
  free(bytes);
}

static void without_a_place_for_copies_it_still_works(void **state) {
  (void)state;
  uint8_t *bytes = make_large();
  put_gzip("large.gz", bytes, LARGE);
  put_text("cache", "a file where the folder should be");
  check_bytes("large.gz", bytes, LARGE, false);
  check_bytes("large.gz", bytes, LARGE, false);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  check_bytes("large.gz", bytes, LARGE, false);
  free(bytes);
}

static void bad_files_are_refused_by_name(void **state) {
  (void)state;
  uint8_t *bytes = make_large();
  shoal_bytes got;
  shoal_error err;
  assert_int_equal(shoal_bytes_open(&got, "absent", SIZE_MAX, &err), SHOAL_NOT_FOUND);
  CHECK_SAYS(&err, "absent", "no such file");
  mkdir("folder", 0777);
  assert_int_equal(shoal_bytes_open(&got, "folder", SIZE_MAX, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "folder");
  put("plain", bytes, LARGE);
  assert_int_equal(shoal_bytes_open(&got, "plain", LARGE - 1, &err), SHOAL_LIMIT);
  CHECK_SAYS(&err, "plain", "larger than the limit");
  put_gzip("large.gz", bytes, LARGE);
  assert_int_equal(shoal_bytes_open(&got, "large.gz", LARGE - 1, &err), SHOAL_LIMIT);
  CHECK_SAYS(&err, "large.gz", "larger than the limit");
  assert_int_equal(truncate("large.gz", 1000), 0);
  assert_int_equal(shoal_bytes_open(&got, "large.gz", SIZE_MAX, &err), SHOAL_CORRUPT);
  CHECK_SAYS(&err, "large.gz", "ends too early");
  free(bytes);
}

static void many_files_open_at_once_or_not_at_all(void **state) {
  (void)state;
  put_text("a", "alpha");
  put_text("b", "beta");
  put_gzip("c", "gamma", 5);
  shoal_bytes got[3];
  shoal_error err;
  const char *good[] = {"a", "b", "c"}, *bad[] = {"a", "absent", "c"};
  assert_int_equal(shoal_bytes_open_all(got, good, 3, SIZE_MAX, &err), SHOAL_OK);
  assert_memory_equal(got[1].data, "beta", 4);
  assert_memory_equal(got[2].data, "gamma", 5);
  for (int i = 0; i < 3; i++) shoal_bytes_close(&got[i]);
  assert_int_equal(shoal_bytes_open_all(got, bad, 3, SIZE_MAX, &err), SHOAL_NOT_FOUND);
  CHECK_SAYS(&err, "absent");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(plain_and_zipped_files_agree),  IN_FOLDER(a_large_zipped_file_is_mapped_the_second_time),
      IN_FOLDER(a_damaged_copy_is_not_used),    IN_FOLDER(without_a_place_for_copies_it_still_works),
      IN_FOLDER(bad_files_are_refused_by_name), IN_FOLDER(many_files_open_at_once_or_not_at_all),
  };
  return RUN_TESTS(tests);
}
