#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"

/* Every test starts in an empty folder of its own, which is removed afterwards. */
static char folder[] = "/tmp/shoal-test-file-XXXXXX";

static int enter_folder(void **state) {
  (void)state;
  memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
  return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void put(const char *path, const void *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

static void check_content(const char *path, const void *bytes, size_t length) {
  uint8_t *got;
  size_t got_length;
  shoal_error err;
  assert_int_equal(shoal_file_read(path, SIZE_MAX, false, &got, &got_length, &err), SHOAL_OK);
  assert_int_equal(got_length, length);
  assert_memory_equal(got, bytes, length);
  assert_int_equal(got[length], 0);
  free(got);
}

static int files_here(void) {
  int count = 0;
  DIR *here = opendir(".");
  for (struct dirent *entry; (entry = readdir(here));) count += entry->d_name[0] != '.';
  closedir(here);
  return count;
}

/* ---- reading ------------------------------------------------------------------------ */

static void a_file_is_read_whole_up_to_its_limit(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 2, 100, 65535, 65536, 65537, 300000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uint8_t *bytes = malloc(sizes[i] + 1);
    for (size_t j = 0; j < sizes[i]; j++) bytes[j] = (uint8_t)(j * 7 + j / 251);
    put("plain", bytes, sizes[i]);
    for (int gunzip = 0; gunzip <= 1; gunzip++) {
      uint8_t *got;
      size_t length;
      shoal_error err;
      assert_int_equal(shoal_file_read("plain", sizes[i], gunzip, &got, &length, &err), SHOAL_OK);
      assert_int_equal(length, sizes[i]);
      assert_memory_equal(got, bytes, length);
      assert_int_equal(got[length], 0);
      free(got);
      if (sizes[i] == 0) continue;
      assert_int_equal(shoal_file_read("plain", sizes[i] - 1, gunzip, &got, &length, &err), SHOAL_LIMIT);
      assert_non_null(strstr(err.text, "plain: larger than the limit"));
      assert_null(got);
    }
    free(bytes);
  }
}

static void a_compressed_file_is_unpacked_within_its_limit(void **state) {
  (void)state;
  enum { LENGTH = 1000000 };
  uint8_t *bytes = calloc(1, LENGTH), *got;
  for (size_t i = 0; i < LENGTH; i++) bytes[i] = (uint8_t)(i % 1000 < 3 ? i : 0);
  gzFile gz = gzopen("packed.gz", "wb");
  assert_int_equal(gzwrite(gz, bytes, LENGTH), LENGTH);
  gzclose(gz);

  size_t length, packed_length;
  shoal_error err;
  assert_int_equal(shoal_file_read("packed.gz", LENGTH, true, &got, &length, &err), SHOAL_OK);
  assert_int_equal(length, LENGTH);
  assert_memory_equal(got, bytes, LENGTH);
  free(got);
  assert_int_equal(shoal_file_read("packed.gz", LENGTH - 1, true, &got, &length, &err), SHOAL_LIMIT);

  /* Without gunzip the packed bytes come as they are. Cut anywhere, they are an error. */
  uint8_t *packed;
  assert_int_equal(shoal_file_read("packed.gz", LENGTH, false, &packed, &packed_length, &err), SHOAL_OK);
  assert_true(packed_length < LENGTH / 10 && packed[0] == 0x1f && packed[1] == 0x8b);
  for (size_t cut = 20; cut < packed_length; cut += 997) {
    put("cut.gz", packed, cut);
    assert_int_equal(shoal_file_read("cut.gz", LENGTH, true, &got, &length, &err), SHOAL_CORRUPT);
    assert_string_equal(err.text, "cut.gz: the compressed data ends too early");
  }
  packed[packed_length / 2] ^= 0x55;
  put("bad.gz", packed, packed_length);
  assert_int_equal(shoal_file_read("bad.gz", LENGTH, true, &got, &length, &err), SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "bad.gz: "));
  free(packed);
  free(bytes);
}

static void what_cannot_be_read_says_why(void **state) {
  (void)state;
  uint8_t *got;
  size_t length;
  shoal_error err;
  assert_int_equal(shoal_file_read("absent", 100, false, &got, &length, &err), SHOAL_NOT_FOUND);
  assert_string_equal(err.text, "absent: no such file or folder");
  assert_int_equal(shoal_file_read(".", 100, true, &got, &length, &err), SHOAL_INVALID);
  assert_string_equal(err.text, ".: is a folder, not a file");
}

static void endless_input_stops_at_the_limit(void **state) {
  (void)state;
  uint8_t *got;
  size_t length;
  assert_int_equal(shoal_file_read("/dev/zero", 1 << 20, false, &got, &length, NULL), SHOAL_LIMIT);
  assert_int_equal(shoal_file_read("/dev/zero", 1 << 20, true, &got, &length, NULL), SHOAL_LIMIT);
}

/* ---- writing ------------------------------------------------------------------------ */

static void nothing_appears_before_commit(void **state) {
  (void)state;
  shoal_writer *writer;
  shoal_error err;
  put("model", "old", 3);
  assert_int_equal(shoal_writer_create(&writer, "model", &err), SHOAL_OK);
  shoal_writer_add(writer, "new", 3);
  check_content("model", "old", 3);
  assert_int_equal(shoal_writer_commit(writer, &err), SHOAL_OK);
  check_content("model", "new", 3);
  assert_int_equal(files_here(), 1);
}

static void an_abandoned_file_leaves_no_trace(void **state) {
  (void)state;
  shoal_writer *writer;
  assert_int_equal(shoal_writer_create(&writer, "model", NULL), SHOAL_OK);
  shoal_writer_add(writer, "new", 3);
  shoal_writer_abandon(writer);
  shoal_writer_abandon(NULL);
  assert_int_equal(files_here(), 0);
}

static void pieces_of_any_size_come_out_in_order(void **state) {
  (void)state;
  enum { LENGTH = 400000 };
  uint8_t *bytes = malloc(LENGTH);
  for (size_t i = 0; i < LENGTH; i++) bytes[i] = (uint8_t)(i * 31 + i / 253);
  static const size_t pieces[] = {1, 1000, 65535, 1, 65536, 0, 65537, 7, 150000};
  shoal_writer *writer;
  assert_int_equal(shoal_writer_create(&writer, "model", NULL), SHOAL_OK);
  size_t at = 0;
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    shoal_writer_add(writer, bytes + at, pieces[i]);
    at += pieces[i];
  }
  shoal_writer_add(writer, bytes + at, LENGTH - at);
  assert_int_equal(shoal_writer_commit(writer, NULL), SHOAL_OK);
  check_content("model", bytes, LENGTH);
  free(bytes);
}

static void what_was_written_can_be_written_over_in_a_file(void **state) {
  (void)state;
  shoal_writer *writer;
  shoal_error err;
  assert_int_equal(shoal_writer_create(&writer, "file", &err), SHOAL_OK);
  shoal_writer_add(writer, "one two", 7);
  assert_int_equal(shoal_writer_patch(writer, 4, "2", 1, &err), SHOAL_OK);
  shoal_writer_add(writer, " three", 6);
  assert_int_equal(shoal_writer_patch(writer, 0, "ONE", 3, &err), SHOAL_OK);
  assert_int_equal(shoal_writer_commit(writer, &err), SHOAL_OK);
  check_content("file", "ONE 2wo three", 13);
  assert_int_equal(shoal_writer_create(&writer, "/dev/null", &err), SHOAL_OK);
  assert_int_equal(shoal_writer_patch(writer, 0, "x", 1, &err), SHOAL_UNSUPPORTED);
  assert_non_null(strstr(err.text, "/dev/null: must be a file"));
  shoal_writer_abandon(writer);
}

static void a_replaced_file_keeps_its_permissions_and_links(void **state) {
  (void)state;
  put("real", "old", 3);
  assert_int_equal(chmod("real", 0640), 0);
  assert_int_equal(symlink("real", "link"), 0);
  shoal_writer *writer;
  assert_int_equal(shoal_writer_create(&writer, "link", NULL), SHOAL_OK);
  shoal_writer_add(writer, "new", 3);
  assert_int_equal(shoal_writer_commit(writer, NULL), SHOAL_OK);
  check_content("real", "new", 3);
  struct stat about;
  assert_int_equal(lstat("link", &about), 0);
  assert_true(S_ISLNK(about.st_mode));
  assert_int_equal(stat("real", &about), 0);
  assert_int_equal(about.st_mode & 0777, 0640);
}

static void a_secret_is_for_its_owner_alone(void **state) {
  (void)state;
  struct stat about;
  mode_t before = umask(0);
  for (int exists = 0; exists < 2; exists++) {
    shoal_writer *writer;
    if (exists) assert_int_equal(chmod("secret", 0666), 0);
    assert_int_equal(shoal_writer_create_secret(&writer, "secret", NULL), SHOAL_OK);
    shoal_writer_add(writer, "abc", 3);
    assert_int_equal(shoal_writer_commit(writer, NULL), SHOAL_OK);
    assert_int_equal(stat("secret", &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    check_content("secret", "abc", 3);
  }
  umask(before);
}

static void a_full_disk_is_named_with_what_to_do(void **state) {
  (void)state;
  static const uint8_t much[100000];
  for (int pieces = 1; pieces <= 3; pieces++) {
    shoal_writer *writer;
    shoal_error err;
    assert_int_equal(shoal_writer_create(&writer, "/dev/full", &err), SHOAL_OK);
    for (int i = 0; i < pieces; i++) shoal_writer_add(writer, much, pieces == 1 ? 10 : sizeof much);
    assert_int_equal(shoal_writer_commit(writer, &err), SHOAL_FULL);
    assert_string_equal(err.text, "/dev/full: no space left on device; free some space there or "
                                  "choose another place");
  }
}

/* A limit on the size of files stands in for a disk that fills up during the write. */
static void a_failed_write_leaves_the_old_file_and_no_other(void **state) {
  (void)state;
  static const uint8_t much[200000];
  put("model", "old", 3);
  struct rlimit before, tight;
  getrlimit(RLIMIT_FSIZE, &before);
  tight = before;
  tight.rlim_cur = 100000;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  shoal_writer *writer;
  shoal_error err;
  assert_int_equal(shoal_writer_create(&writer, "model", &err), SHOAL_OK);
  shoal_writer_add(writer, much, sizeof much);
  shoal_writer_add(writer, much, sizeof much);
  shoal_status status = shoal_writer_commit(writer, &err);
  setrlimit(RLIMIT_FSIZE, &before);
  assert_int_equal(status, SHOAL_IO);
  assert_string_equal(err.text, "model: File too large");
  check_content("model", "old", 3);
  assert_int_equal(files_here(), 1);
}

static void a_device_is_written_and_not_replaced(void **state) {
  (void)state;
  shoal_writer *writer;
  assert_int_equal(shoal_writer_create(&writer, "/dev/null", NULL), SHOAL_OK);
  shoal_writer_add(writer, "gone", 4);
  assert_int_equal(shoal_writer_commit(writer, NULL), SHOAL_OK);
  struct stat about;
  assert_int_equal(stat("/dev/null", &about), 0);
  assert_true(S_ISCHR(about.st_mode));
}

static void places_that_cannot_be_written_say_why(void **state) {
  (void)state;
  shoal_writer *writer;
  shoal_error err;
  assert_int_equal(mkdir("runs", 0777), 0);
  assert_int_equal(shoal_writer_create(&writer, "runs", &err), SHOAL_INVALID);
  assert_string_equal(err.text, "runs: is a folder; give the name of a file in it");
  assert_null(writer);
  assert_int_equal(shoal_writer_create(&writer, "absent/", &err), SHOAL_INVALID);
  assert_int_equal(shoal_writer_create(&writer, "", &err), SHOAL_INVALID);
  assert_int_equal(shoal_writer_create(&writer, "absent/model", &err), SHOAL_NOT_FOUND);
  assert_string_equal(err.text, "absent/model: its folder does not exist; create it first");
  put("file", "", 0);
  assert_int_equal(shoal_writer_create(&writer, "file/model", &err), SHOAL_IO);
  assert_string_equal(err.text, "file/model: Not a directory");
}

/* ---- folders ------------------------------------------------------------------------ */

static void folders_are_made_with_their_parents(void **state) {
  (void)state;
  shoal_error err;
  assert_int_equal(shoal_make_folder("a/b//c/", &err), SHOAL_OK);
  assert_int_equal(shoal_make_folder("a/b/c", &err), SHOAL_OK);
  assert_true(shoal_file_exists("a/b/c"));
  assert_false(shoal_file_exists("a/b/d"));
  assert_int_equal(shoal_make_folder("/tmp", &err), SHOAL_OK);
  put("file", "", 0);
  assert_int_equal(shoal_make_folder("file", &err), SHOAL_INVALID);
  assert_string_equal(err.text, "file: is not a folder");
  assert_int_not_equal(shoal_make_folder("file/below", &err), SHOAL_OK);
  assert_int_not_equal(shoal_make_folder("", &err), SHOAL_OK);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

static void what_a_killed_process_left_is_removed(void **state) {
  (void)state;
  FILE *left = fopen("model.tmp.abcdef", "w"), *held = fopen("model.tmp.ghijkl", "w");
  assert_true(left != NULL && held != NULL);
  fclose(left);
  assert_int_equal(flock(fileno(held), LOCK_EX), 0);
  shoal_writer *writer = NULL;
  assert_int_equal(shoal_writer_create(&writer, "model", NULL), SHOAL_OK);
  assert_int_equal(shoal_writer_commit(writer, NULL), SHOAL_OK);
  assert_false(shoal_file_exists("model.tmp.abcdef"));
  assert_true(shoal_file_exists("model.tmp.ghijkl"));
  fclose(held);
}

/* Two writers of one file do not meet: the last to commit wins, whole. */
static void two_writers_of_one_file_do_not_meet(void **state) {
  (void)state;
  shoal_writer *first = NULL, *second = NULL;
  assert_int_equal(shoal_writer_create(&first, "model", NULL), SHOAL_OK);
  assert_int_equal(shoal_writer_create(&second, "model", NULL), SHOAL_OK);
  shoal_writer_add(first, "first", 5);
  shoal_writer_add(second, "second", 6);
  assert_int_equal(shoal_writer_commit(first, NULL), SHOAL_OK);
  assert_int_equal(shoal_writer_commit(second, NULL), SHOAL_OK);
  uint8_t *bytes = NULL;
  size_t length;
  assert_int_equal(shoal_file_read("model", 100, false, &bytes, &length, NULL), SHOAL_OK);
  assert_int_equal(length, 6);
  assert_memory_equal(bytes, "second", 6);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_file_is_read_whole_up_to_its_limit),
      IN_FOLDER(a_compressed_file_is_unpacked_within_its_limit),
      IN_FOLDER(what_cannot_be_read_says_why),
      IN_FOLDER(endless_input_stops_at_the_limit),
      IN_FOLDER(nothing_appears_before_commit),
      IN_FOLDER(an_abandoned_file_leaves_no_trace),
      IN_FOLDER(pieces_of_any_size_come_out_in_order),
      IN_FOLDER(what_was_written_can_be_written_over_in_a_file),
      IN_FOLDER(a_replaced_file_keeps_its_permissions_and_links),
      IN_FOLDER(a_secret_is_for_its_owner_alone),
      IN_FOLDER(a_full_disk_is_named_with_what_to_do),
      IN_FOLDER(a_failed_write_leaves_the_old_file_and_no_other),
      IN_FOLDER(a_device_is_written_and_not_replaced),
      IN_FOLDER(places_that_cannot_be_written_say_why),
      IN_FOLDER(what_a_killed_process_left_is_removed),
      IN_FOLDER(two_writers_of_one_file_do_not_meet),
      IN_FOLDER(folders_are_made_with_their_parents),
  };
  return RUN_TESTS(tests);
}
