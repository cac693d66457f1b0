#include "files.h"

#include <dirent.h>

#include "base/hash.h"
#include "data/named.h"

static bool installed(const char *program) {
  char command[64];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
  return system(command) == 0;
}

static int files_in(const char *path) {
  DIR *there = opendir(path);
  int count = 0;
  for (struct dirent *entry; there && (entry = readdir(there));)
    count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  if (there) closedir(there);
  return count;
}

static void mirror_here(void) {
  char url[64];
  snprintf(url, sizeof url, "file://%s/mirror", folder);
  setenv("SHOAL_DATA_MIRROR", url, 1);
  mkdir("mirror", 0777);
  mkdir("mirror/small", 0777);
}

/* A set of two files, "alpha" and "beta", the first zipped. */
static shoal_named_set small_set(char hashes[2][SHOAL_SHA256_HEX]) {
  shoal_sha256_hex("alpha", 5, hashes[0]);
  shoal_sha256_hex("beta", 4, hashes[1]);
  return (shoal_named_set){.name = "small",
                           .url = "http://nowhere.invalid",
                           .files_count = 2,
                           .files = {{"a.gz", hashes[0]}, {"b", hashes[1]}}};
}

static void every_entry_is_complete(void **state) {
  (void)state;
  for (size_t i = 0; i < shoal_named_count(); i++) {
    const shoal_named_set *set = shoal_named_at(i);
    assert_ptr_equal(shoal_named_set_of(set->name), set);
    assert_non_null(set->what);
    assert_non_null(set->source);
    assert_non_null(set->url);
    assert_true(set->files_count > 0 && set->files_count <= SHOAL_NAMED_FILES_MAX);
    for (uint32_t k = 0; k < set->files_count; k++) {
      assert_non_null(set->files[k].name);
      assert_true(set->archive || strlen(set->files[k].sha256) == 64);
    }
    assert_true(!set->archive || strlen(set->archive_sha256) == 64);
  }
  assert_null(shoal_named_at(shoal_named_count()));
  assert_null(shoal_named_set_of("nist"));
  assert_string_equal(shoal_named_nearest("fashion-minst"), "fashion-mnist");
}

static void sets_are_found_in_their_places_in_order(void **state) {
  (void)state;
  const shoal_named_set *set = shoal_named_set_of("mnist");
  static const char *const places[] = {"data/mnist", "home/.local/share/shoal/mnist", "mine/mnist"};
  char expected[3][128];
  snprintf(expected[0], sizeof expected[0], "./data/mnist");
  snprintf(expected[1], sizeof expected[1], "%s/home/.local/share/shoal/mnist", folder);
  snprintf(expected[2], sizeof expected[2], "mine/mnist");
  setenv("SHOAL_DATA", "mine", 1);
  for (int i = 0; i < 3; i++) { /* each place goes before the one of the turn before */
    char command[256];
    snprintf(command, sizeof command, "mkdir -p %s && touch %s/train-images-idx3-ubyte%s", places[i],
             places[i], i == 1 ? ".gz" : "");
    assert_int_equal(system(command), 0);
    char *found = shoal_named_find(set, NULL);
    assert_string_equal(found, expected[i]);
    free(found);
  }
  unsetenv("SHOAL_DATA");
  assert_int_equal(system("mkdir -p given/mnist && touch given/mnist/train-images-idx3-ubyte"), 0);
  char *found = shoal_named_find(set, "given");
  assert_string_equal(found, "given/mnist");
  free(found);
}

static void a_missing_set_says_where_and_how(void **state) {
  (void)state;
  char *found;
  shoal_error err;
  shoal_named_set nowhere = *shoal_named_set_of("fashion-mnist");
  nowhere.name = "nowhere"; /* the real one may be installed */
  setenv("SHOAL_DATA", "mine", 1);
  assert_int_equal(shoal_named_locate(&nowhere, NULL, &found, &err), SHOAL_NOT_FOUND);
  assert_null(found);
  CHECK_SAYS(&err, "nowhere", "train-images-idx3-ubyte.gz", "mine/nowhere", "home/.local/share/shoal/nowhere",
             "./data/nowhere", "/usr/share/datasets/nowhere", "shoal data get nowhere",
             "apt install dataset-fashion-mnist");
}

static void note_progress(void *context, const char *file, uint64_t bytes) {
  (void)file;
  uint64_t *most = context;
  if (bytes > *most) *most = bytes;
}

static void files_are_fetched_and_checked(void **state) {
  (void)state;
  if (!installed("curl")) skip();
  char hashes[2][SHOAL_SHA256_HEX];
  shoal_named_set set = small_set(hashes);
  mirror_here();
  put_gzip("mirror/small/a.gz", "alpha", 5);
  put_text("mirror/small/b", "beta");
  uint64_t most = 0;
  shoal_error err;
  if (shoal_named_get(&set, "got", note_progress, &most, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_true(most > 0);
  assert_int_equal(files_in("got/small"), 2); /* and nothing temporary */
  assert_int_equal(shoal_named_verify(&set, "got/small", &err), SHOAL_OK);

  /* What is there is not fetched again; what is damaged is. */
  assert_int_equal(unlink("mirror/small/a.gz"), 0);
  put_text("got/small/b", "BETA");
  assert_int_equal(shoal_named_verify(&set, "got/small", &err), SHOAL_CORRUPT);
  CHECK_SAYS(&err, "got/small/b", "SHA-256");
  assert_int_equal(shoal_named_get(&set, "got", NULL, NULL, &err), SHOAL_OK);
  assert_int_equal(shoal_named_verify(&set, "got/small", &err), SHOAL_OK);
  assert_int_equal(unlink("got/small/b"), 0);
  assert_int_equal(shoal_named_verify(&set, "got/small", &err), SHOAL_NOT_FOUND);
  CHECK_SAYS(&err, "b is missing");
}

static void a_wrong_or_absent_file_leaves_nothing_behind(void **state) {
  (void)state;
  if (!installed("curl")) skip();
  char hashes[2][SHOAL_SHA256_HEX];
  shoal_named_set set = small_set(hashes);
  mirror_here();
  put_gzip("mirror/small/a.gz", "ALPHA", 5);
  shoal_error err;
  assert_int_equal(shoal_named_get(&set, "got", NULL, NULL, &err), SHOAL_CORRUPT);
  CHECK_SAYS(&err, "SHA-256", hashes[0], "got/small yourself");
  assert_int_equal(files_in("got/small"), 0);
  assert_int_equal(unlink("mirror/small/a.gz"), 0);
  assert_int_equal(shoal_named_get(&set, "got", NULL, NULL, &err), SHOAL_IO);
  CHECK_SAYS(&err, "downloading file://", "mirror/small/a.gz", "for want of a network", "got/small yourself");
  assert_int_equal(files_in("got/small"), 0);
}

static void without_a_program_the_user_is_told_what_to_do(void **state) {
  (void)state;
  char *path = strdup(getenv("PATH"));
  setenv("PATH", folder, 1);
  shoal_error err;
  shoal_status status = shoal_named_get(shoal_named_set_of("ptb"), "got", NULL, NULL, &err);
  setenv("PATH", path, 1);
  free(path);
  assert_int_equal(status, SHOAL_UNSUPPORTED);
  CHECK_SAYS(&err, "neither curl nor wget", "https://", "ptb.train.txt", "got/ptb yourself");
}

static void an_archive_is_unpacked(void **state) {
  (void)state;
  if (!installed("curl") || !installed("tar")) skip();
  mirror_here();
  assert_int_equal(system("mkdir inside && printf alpha >inside/a && printf beta >inside/b && "
                          "printf junk >inside/c && tar -czf mirror/small/all.tar.gz inside"),
                   0);
  char hash[SHOAL_SHA256_HEX];
  FILE *file = fopen("mirror/small/all.tar.gz", "rb");
  uint8_t bytes[4096];
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  shoal_sha256_hex(bytes, length, hash);
  shoal_named_set set = {.name = "small",
                         .url = "http://nowhere.invalid",
                         .archive = "all.tar.gz",
                         .archive_sha256 = hash,
                         .archive_folder = "inside",
                         .files_count = 2,
                         .files = {{"a", NULL}, {"b", NULL}}};
  shoal_error err;
  if (shoal_named_get(&set, "got", NULL, NULL, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(files_in("got/small"), 2);
  assert_int_equal(system("test \"$(cat got/small/a got/small/b)\" = alphabeta"), 0);

  /* One that lacks a file changes nothing. */
  assert_int_equal(system("rm -r got/small && printf x >>mirror/small/all.tar.gz"), 0);
  assert_int_equal(shoal_named_get(&set, "got", NULL, NULL, &err), SHOAL_CORRUPT);
  assert_int_equal(files_in("got/small"), 0);
  set.files[1].name = "absent";
  assert_int_equal(truncate("mirror/small/all.tar.gz", (off_t)length), 0);
  assert_int_equal(shoal_named_get(&set, "got", NULL, NULL, &err), SHOAL_IO);
  CHECK_SAYS(&err, "tar could not unpack");
  assert_int_equal(files_in("got/small"), 0);
}

static void known_checksums_are_those_of_the_real_files(void **state) {
  (void)state;
  const char *shared = shared_data();
  if (!shared) skip();
  static const char *const names[] = {"mnist", "ptb"};
  for (int i = 0; i < 2; i++) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", shared, names[i]);
    shoal_error err;
    if (shoal_named_verify(shoal_named_set_of(names[i]), path, &err) != SHOAL_OK) fail_msg("%s", err.text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_entry_is_complete),
      IN_FOLDER(sets_are_found_in_their_places_in_order),
      IN_FOLDER(a_missing_set_says_where_and_how),
      IN_FOLDER(files_are_fetched_and_checked),
      IN_FOLDER(a_wrong_or_absent_file_leaves_nothing_behind),
      IN_FOLDER(without_a_program_the_user_is_told_what_to_do),
      IN_FOLDER(an_archive_is_unpacked),
      cmocka_unit_test(known_checksums_are_those_of_the_real_files),
  };
  return RUN_TESTS(tests);
}
