/* Records on disk: whole or not there, one job's apart from another's. */
#include "nn/in_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/keep.h"

enum { BIG = 300, SMALL = 8 };
static const char PATH[] = "state/00000000000004d2.ps0.7";

typedef struct record {
  uint8_t big[BIG];
  uint64_t small;
} record;

static shoal_keep keep_of(const char *who, uint64_t digest) {
  return (shoal_keep){.folder = "state", .who = who, .job_digest = digest};
}

static void fill(record *r, uint8_t seed) {
  for (uint32_t i = 0; i < BIG; i++) r->big[i] = (uint8_t)(seed + 3 * i);
  r->small = seed;
}

static void write_record(const shoal_keep *keep, uint64_t version, uint8_t seed) {
  record r;
  fill(&r, seed);
  const shoal_keep_piece pieces[] = {{r.big, BIG}, {NULL, 0}, {&r.small, SMALL}};
  shoal_error err;
  assert_int_equal(shoal_keep_write(keep, version, pieces, 3, &err), SHOAL_OK);
}

static shoal_status read_record(const shoal_keep *keep, uint64_t version, record *out) {
  *out = (record){.small = 99};
  const shoal_keep_piece pieces[] = {{out->big, BIG}, {NULL, 0}, {&out->small, SMALL}};
  shoal_error err;
  return shoal_keep_read(keep, version, pieces, 3, &err);
}

static bool has(const shoal_keep *keep, uint64_t version, uint8_t seed) {
  record got, wanted;
  fill(&wanted, seed);
  return read_record(keep, version, &got) == SHOAL_OK && memcmp(got.big, wanted.big, BIG) == 0 &&
         got.small == wanted.small;
}

static void a_record_reads_back(void **state) {
  (void)state;
  shoal_keep keep = keep_of("ps0", 1234);
  record out;
  assert_int_not_equal(read_record(&keep, 7, &out), SHOAL_OK); /* not even the folder is there */
  write_record(&keep, 7, 1);
  assert_true(has(&keep, 7, 1));
  write_record(&keep, 7, 2);
  assert_true(has(&keep, 7, 2));
  struct stat about;
  assert_int_equal(stat(PATH, &about), 0);
  assert_int_equal(about.st_size, 32 + BIG + SMALL + 32); /* as docs/formats.md says */
}

static void records_of_others_are_not_found(void **state) {
  (void)state;
  shoal_keep keep = keep_of("ps0", 1234), other_job = keep_of("ps0", 1235), other = keep_of("ps00", 1234);
  record out;
  write_record(&keep, 7, 1);
  assert_int_not_equal(read_record(&keep, 8, &out), SHOAL_OK);
  assert_int_not_equal(read_record(&other_job, 7, &out), SHOAL_OK);
  assert_int_not_equal(read_record(&other, 7, &out), SHOAL_OK);
  /* Nor is one under the name of another. */
  assert_int_equal(rename(PATH, "state/00000000000004d3.ps0.7"), 0);
  assert_int_equal(read_record(&other_job, 7, &out), SHOAL_NOT_FOUND);
  assert_int_equal(rename("state/00000000000004d3.ps0.7", "state/00000000000004d2.ps0.8"), 0);
  assert_int_equal(read_record(&keep, 8, &out), SHOAL_NOT_FOUND);
}

static void pieces_of_another_length_are_not_found(void **state) {
  (void)state;
  shoal_keep keep = keep_of("ps0", 1234);
  uint8_t bytes[BIG + SMALL + 1];
  write_record(&keep, 7, 1);
  const shoal_keep_piece more[] = {{bytes, BIG}, {NULL, 0}, {bytes, SMALL + 1}};
  const shoal_keep_piece fewer[] = {{bytes, BIG + SMALL}, {NULL, 0}};
  assert_int_equal(shoal_keep_read(&keep, 7, more, 3, NULL), SHOAL_NOT_FOUND);
  assert_int_equal(shoal_keep_read(&keep, 7, fewer, 2, NULL), SHOAL_NOT_FOUND);
}

static void put(const char *path, const uint8_t *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

/* What a crash, or a disk, can leave: too short, too long, a zeroed end, any bit another. */
static void a_torn_record_is_not_found(void **state) {
  (void)state;
  shoal_keep keep = keep_of("ps0", 1234);
  write_record(&keep, 7, 1);
  uint8_t *bytes;
  size_t length;
  shoal_error err;
  record out;
  assert_int_equal(shoal_file_read(PATH, SIZE_MAX / 2, false, &bytes, &length, &err), SHOAL_OK);
  for (size_t cut = 0; cut < length; cut++) {
    put(PATH, bytes, cut);
    assert_int_equal(read_record(&keep, 7, &out), SHOAL_NOT_FOUND);
    assert_int_equal(out.small, 99); /* nothing is filled in */
  }
  uint8_t *torn = calloc(length + 1, 1);
  memcpy(torn, bytes, length);
  put(PATH, torn, length + 1);
  assert_int_equal(read_record(&keep, 7, &out), SHOAL_NOT_FOUND);
  for (size_t i = 0; i < length; i++) {
    torn[i] = (uint8_t)(bytes[i] ^ 1 << i % 8);
    put(PATH, torn, length);
    assert_int_equal(read_record(&keep, 7, &out), SHOAL_NOT_FOUND);
    torn[i] = bytes[i];
  }
  put(PATH, torn, length);
  assert_true(has(&keep, 7, 1));
  free(torn);
  free(bytes);
}

static void a_full_disk_leaves_the_old_record(void **state) {
  (void)state;
  shoal_keep keep = keep_of("ps0", 1234);
  write_record(&keep, 7, 1);
  record r;
  fill(&r, 2);
  const shoal_keep_piece pieces[] = {{r.big, BIG}, {NULL, 0}, {&r.small, SMALL}};
  shoal_error err;
  for (rlim_t bytes = 1; bytes < 32 + BIG + SMALL + 32; bytes += 53) {
    limit_files(bytes);
    shoal_status status = shoal_keep_write(&keep, 7, pieces, 3, &err);
    limit_files(0);
    assert_int_equal(status, SHOAL_IO);
    assert_true(has(&keep, 7, 1));
  }
  assert_int_equal(shoal_keep_write(&keep, 7, pieces, 3, &err), SHOAL_OK);
  assert_true(has(&keep, 7, 2));
}

static void only_removes_what_is_outside_and_ours(void **state) {
  (void)state;
  shoal_keep keep = keep_of("ps1", 1234), longer = keep_of("ps11", 1234), other_job = keep_of("ps1", 5);
  for (uint64_t version = 0; version < 12; version++) write_record(&keep, version, (uint8_t)version);
  write_record(&longer, 1, 1);
  write_record(&other_job, 1, 1);
  put("state/notes.txt", (const uint8_t *)"mine", 4);
  put("state/00000000000004d2.ps1.x", (const uint8_t *)"mine", 4);
  shoal_keep_only(&keep, 3, 10);
  for (uint64_t version = 0; version < 12; version++)
    assert_int_equal(has(&keep, version, (uint8_t)version), version >= 3 && version <= 10);
  shoal_keep_only(&keep, 5, 5);
  assert_true(has(&keep, 5, 5));
  assert_false(has(&keep, 6, 6));
  shoal_keep_only(&keep, 1, 0);
  assert_false(has(&keep, 5, 5));
  assert_true(has(&longer, 1, 1));
  assert_true(has(&other_job, 1, 1));
  assert_int_equal(access("state/notes.txt", F_OK), 0);
  assert_int_equal(access("state/00000000000004d2.ps1.x", F_OK), 0);
  shoal_keep nowhere = {.folder = "no-such-folder", .who = "ps1", .job_digest = 1};
  shoal_keep_only(&nowhere, 1, 0);
}

static void a_folder_is_made_with_its_parents(void **state) {
  (void)state;
  shoal_keep keep = {.folder = "a/b/c", .who = "chief", .job_digest = 1};
  write_record(&keep, 0, 1);
  assert_true(has(&keep, 0, 1));
  put("file", (const uint8_t *)"", 0);
  keep.folder = "file";
  const shoal_keep_piece none = {NULL, 0};
  shoal_error err;
  assert_int_not_equal(shoal_keep_write(&keep, 0, &none, 1, &err), SHOAL_OK);
  assert_non_null(strstr(err.text, "file"));
}

static int open_files(void) {
  int count = 0;
  DIR *files = opendir("/proc/self/fd");
  assert_non_null(files);
  while (readdir(files) != NULL) count++;
  closedir(files);
  return count;
}

static void nothing_stays_open(void **state) {
  (void)state;
  char name[300];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  shoal_keep keep = keep_of("ps0", 1234), too_long = keep_of(name, 1234);
  write_record(&keep, 7, 1);
  int before = open_files();
  shoal_keep_only(&too_long, 1, 0);
  shoal_keep_only(&keep, 7, 7);
  assert_int_equal(open_files(), before);
  assert_true(has(&keep, 7, 1));
}

static void a_lock_keeps_others_of_the_same_job_out(void **state) {
  (void)state;
  shoal_keep keep = keep_of("chief", 1234), other = keep_of("chief", 1235), ps = keep_of("ps0", 1234);
  int lock, second, third, fourth;
  shoal_error err;
  assert_int_equal(shoal_keep_lock(&keep, &lock, &err), SHOAL_OK);
  assert_int_equal(shoal_keep_lock(&keep, &second, &err), SHOAL_INVALID);
  char process[64];
  snprintf(process, sizeof process, "state is in use by process %ld: another training", (long)getpid());
  assert_non_null(strstr(err.text, process));
  assert_int_equal(second, SHOAL_KEEP_UNLOCKED);
  assert_int_equal(shoal_keep_lock(&other, &third, &err), SHOAL_OK);
  assert_int_equal(shoal_keep_lock(&ps, &fourth, &err), SHOAL_OK);
  shoal_keep_unlock(&keep, &lock);
  assert_int_equal(shoal_keep_lock(&keep, &second, &err), SHOAL_OK);
  shoal_keep_unlock(&keep, &second);
  shoal_keep_unlock(&other, &third);
  shoal_keep_unlock(&ps, &fourth);
  assert_int_equal(rmdir("state"), 0); /* nothing of it stays */
}

static void a_lock_dies_with_its_process(void **state) {
  (void)state;
  shoal_keep keep = keep_of("chief", 1234);
  int lock, ready[2];
  shoal_error err;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    bool ok = shoal_keep_lock(&keep, &lock, NULL) == SHOAL_OK && write(ready[1], "x", 1) == 1;
    while (ok) pause();
    _exit(1);
  }
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(shoal_keep_lock(&keep, &lock, &err), SHOAL_INVALID);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_int_equal(shoal_keep_lock(&keep, &lock, &err), SHOAL_OK);
  shoal_keep_unlock(&keep, &lock);
  close(ready[0]);
  close(ready[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_record_reads_back),
      IN_FOLDER(records_of_others_are_not_found),
      IN_FOLDER(pieces_of_another_length_are_not_found),
      IN_FOLDER(a_torn_record_is_not_found),
      IN_FOLDER(a_full_disk_leaves_the_old_record),
      IN_FOLDER(only_removes_what_is_outside_and_ours),
      IN_FOLDER(a_folder_is_made_with_its_parents),
      IN_FOLDER(nothing_stays_open),
      IN_FOLDER(a_lock_keeps_others_of_the_same_job_out),
      IN_FOLDER(a_lock_dies_with_its_process),
  };
  return RUN_TESTS(tests);
}
