/* Sets in chunks: fetched, kept, mended, removed; and manifests that nobody should trust. */
#include "data/chunks.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/time.h>

#include "base/json.h"
#include "files.h"

enum { FILES_MAX = 4 };

/* What a server has, and what it was asked for. */
typedef struct server {
  struct {
    const char *name;
    uint8_t *bytes;
    size_t length;
  } files[FILES_MAX];
  int files_count;
  int asked, fails_after; /* chunks; -1: never */
  bool lies;
  uint64_t done, all;
  volatile sig_atomic_t stop;
} server;

static uint8_t pattern(size_t i, int seed) { return (uint8_t)(i * 31 + (i >> 9) + (size_t)seed); }

static void add_file(server *s, const char *name, size_t length) {
  uint8_t *bytes = malloc(length + 1);
  for (size_t i = 0; i < length; i++) bytes[i] = pattern(i, s->files_count + (int)length);
  s->files[s->files_count].name = name;
  s->files[s->files_count].bytes = bytes;
  s->files[s->files_count++].length = length;
}

static void release(server *s) {
  for (int i = 0; i < s->files_count; i++) free(s->files[i].bytes);
}

static shoal_manifest *manifest_of(const server *s, const char *name, const char *kind) {
  shoal_text text;
  shoal_json json;
  shoal_text_init(&text);
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", name);
  shoal_json_text(&json, "kind", kind);
  shoal_json_int(&json, "chunk_bytes", SHOAL_CHUNK_BYTES);
  shoal_json_open(&json, "files", '[');
  for (int i = 0; i < s->files_count; i++) {
    char sha256[SHOAL_SHA256_HEX];
    shoal_sha256_hex(s->files[i].bytes, s->files[i].length, sha256);
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "name", s->files[i].name);
    shoal_json_int(&json, "bytes", (int64_t)s->files[i].length);
    shoal_json_text(&json, "sha256", sha256);
    shoal_json_open(&json, "chunks", '[');
    for (size_t at = 0; at < s->files[i].length; at += SHOAL_CHUNK_BYTES) {
      size_t left = s->files[i].length - at;
      shoal_sha256_hex(s->files[i].bytes + at, left < SHOAL_CHUNK_BYTES ? left : SHOAL_CHUNK_BYTES, sha256);
      shoal_json_text(&json, NULL, sha256);
    }
    shoal_json_close(&json, ']');
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_manifest *m = malloc(sizeof *m);
  shoal_error err;
  if (shoal_manifest_parse(m, text.bytes, text.length, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_text_release(&text);
  return m;
}

static void forget(shoal_manifest *m) {
  shoal_manifest_release(m);
  free(m);
}

static shoal_status get(void *self, const char *sha256, uint8_t *into, size_t bytes, shoal_error *err) {
  server *s = self;
  if (s->fails_after >= 0 && s->asked >= s->fails_after) return shoal_fail(err, SHOAL_IO, "gone");
  s->asked++;
  for (int i = 0; i < s->files_count; i++)
    for (size_t at = 0; at < s->files[i].length; at += SHOAL_CHUNK_BYTES) {
      char hex[SHOAL_SHA256_HEX];
      size_t left = s->files[i].length - at, length = left < SHOAL_CHUNK_BYTES ? left : SHOAL_CHUNK_BYTES;
      shoal_sha256_hex(s->files[i].bytes + at, length, hex);
      if (strcmp(hex, sha256) != 0 || length != bytes) continue;
      memcpy(into, s->files[i].bytes + at, length);
      if (s->lies) into[length / 2] ^= 1;
      return SHOAL_OK;
    }
  return shoal_fail(err, SHOAL_NOT_FOUND, "no such chunk");
}

static void progress(void *self, uint64_t done, uint64_t all) {
  server *s = self;
  assert_true(done > s->done || done <= SHOAL_CHUNK_BYTES);
  s->done = done;
  s->all = all;
}

static shoal_status open_set(server *s, const shoal_manifest *m, uint64_t cache_bytes_max,
                             shoal_chunk_set *set, shoal_error *err) {
  shoal_chunk_options options = {.cache = "cache", .cache_bytes_max = cache_bytes_max, .stop = &s->stop};
  shoal_chunk_source source = {s, get, progress};
  return shoal_chunk_set_open(set, m, &options, &source, err);
}

static void must_open(server *s, const shoal_manifest *m, uint64_t max, shoal_chunk_set *set) {
  shoal_error err;
  if (open_set(s, m, max, set, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void check_file(const server *s, int file, const char *path) {
  uint8_t *bytes = malloc(s->files[file].length + 1);
  FILE *from = fopen(path, "rb");
  if (!from) fail_msg("%s is missing", path);
  assert_int_equal(fread(bytes, 1, s->files[file].length + 1, from), s->files[file].length);
  fclose(from);
  assert_memory_equal(bytes, s->files[file].bytes, s->files[file].length);
  free(bytes);
}

static const uint64_t PLENTY = (uint64_t)1 << 30;

static void a_set_is_fetched_once_and_checked_every_time(void **state) {
  (void)state;
  server s = {.fails_after = -1};
  add_file(&s, "one.csv", 2 * SHOAL_CHUNK_BYTES + 5);
  shoal_manifest *m = manifest_of(&s, "mine", "csv");
  shoal_chunk_set set;
  must_open(&s, m, PLENTY, &set);
  assert_int_equal(s.asked, 3);
  assert_int_equal(s.done, s.all);
  check_file(&s, 0, set.data.bytes);
  char path[300];
  snprintf(path, sizeof path, "%s", set.data.bytes);
  shoal_chunk_set_close(&set);
  must_open(&s, m, PLENTY, &set);
  assert_int_equal(s.asked, 3);
  shoal_chunk_set_close(&set);
  /* A damaged chunk is fetched again, and that one alone; so is a file that became shorter. */
  int fd = open(path, O_WRONLY);
  assert_int_equal(pwrite(fd, "damage", 6, SHOAL_CHUNK_BYTES + 10), 6);
  close(fd);
  must_open(&s, m, PLENTY, &set);
  assert_int_equal(s.asked, 4);
  check_file(&s, 0, path);
  shoal_chunk_set_close(&set);
  assert_int_equal(truncate(path, 2 * SHOAL_CHUNK_BYTES), 0);
  must_open(&s, m, PLENTY, &set);
  assert_int_equal(s.asked, 5);
  check_file(&s, 0, path);
  shoal_chunk_set_close(&set);
  forget(m);
  release(&s);
}

static void an_interrupted_fetch_goes_on_where_it_was(void **state) {
  (void)state;
  server s = {.fails_after = 3};
  add_file(&s, "train.txt", 2 * SHOAL_CHUNK_BYTES);
  add_file(&s, "test.txt", 3 * SHOAL_CHUNK_BYTES - 1);
  shoal_manifest *m = manifest_of(&s, "book", "text");
  shoal_chunk_set set;
  shoal_error err;
  assert_int_equal(open_set(&s, m, PLENTY, &set, &err), SHOAL_IO);
  assert_string_equal(err.text, "gone");
  shoal_chunk_set_close(&set);
  s.stop = 1;
  s.fails_after = -1;
  assert_int_equal(open_set(&s, m, PLENTY, &set, &err), SHOAL_STOPPED);
  shoal_chunk_set_close(&set);
  s.stop = 0;
  s.asked = 0;
  must_open(&s, m, PLENTY, &set);
  assert_int_equal(s.asked, 2);
  assert_int_equal(strncmp(set.data.bytes, "text:cache/sets/", 16), 0);
  char path[400];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", set.data.bytes + 5, s.files[i].name);
    check_file(&s, i, path);
  }
  shoal_chunk_set_close(&set);
  forget(m);
  release(&s);
}

static void a_server_that_lies_is_not_believed(void **state) {
  (void)state;
  server s = {.fails_after = -1, .lies = true};
  add_file(&s, "a.csv", 100);
  shoal_manifest *m = manifest_of(&s, "mine", "csv");
  shoal_chunk_set set;
  shoal_error err;
  assert_int_equal(open_set(&s, m, PLENTY, &set, &err), SHOAL_CORRUPT);
  shoal_chunk_set_close(&set);
  /* Chunks that are what they are called, of a file that is not. */
  s.lies = false;
  memset(m->files[0].sha256, 'a', 64);
  assert_int_equal(open_set(&s, m, PLENTY, &set, &err), SHOAL_CORRUPT);
  CHECK_SAYS(&err, "a.csv", "not the file");
  shoal_chunk_set_close(&set);
  forget(m);
  release(&s);
}

static int sets_here(void) {
  int count = 0;
  DIR *here = opendir("cache/sets");
  for (struct dirent *entry; (entry = readdir(here));) count += strlen(entry->d_name) == 64;
  closedir(here);
  return count;
}

static void the_set_that_was_not_used_for_longest_makes_room(void **state) {
  (void)state;
  enum { SETS = 3 };
  server s[SETS];
  shoal_manifest *m[SETS];
  shoal_chunk_set set, second;
  const uint64_t two = 2 * SHOAL_CHUNK_BYTES + 100000;
  for (int i = 0; i < SETS; i++) {
    s[i] = (server){.fails_after = -1};
    add_file(&s[i], "a.csv", SHOAL_CHUNK_BYTES - (size_t)i);
    m[i] = manifest_of(&s[i], "mine", "csv");
  }
  must_open(&s[0], m[0], two, &set);
  shoal_chunk_set_close(&set);
  usleep(20000);
  must_open(&s[1], m[1], two, &set);
  shoal_chunk_set_close(&set);
  usleep(20000);
  must_open(&s[0], m[0], two, &set); /* used again, and kept in use: the second must go */
  must_open(&s[2], m[2], two, &second);
  shoal_chunk_set_close(&second);
  assert_int_equal(sets_here(), 2);
  assert_int_equal(s[0].asked, 1);
  must_open(&s[1], m[1], two, &second);
  assert_int_equal(s[1].asked, 2);
  /* Both places are in use. */
  shoal_error err;
  shoal_chunk_set third;
  assert_int_equal(open_set(&s[2], m[2], two, &third, &err), SHOAL_LIMIT);
  CHECK_SAYS(&err, "cache");
  shoal_chunk_set_close(&third);
  shoal_chunk_set_close(&set);
  shoal_chunk_set_close(&second);
  assert_int_equal(open_set(&s[2], m[2], 1000, &third, &err), SHOAL_LIMIT);
  shoal_chunk_set_close(&third);
  for (int i = 0; i < SETS; i++) {
    forget(m[i]);
    release(&s[i]);
  }
}

static void what_data_would_be(void **state) {
  (void)state;
  static const struct {
    const char *kind, *begins, *ends;
    int files;
  } cases[] = {
      {"idx", "cache/sets/", "", 2},
      {"cifar", "cache/sets/", "", 1},
      {"csv", "cache/sets/", "/file0", 1},
      {"csv", "cache/sets/", "/file1", 2},
      {"text", "text:cache/sets/", "/file0", 1},
      {"chars", "chars:cache/sets/", "/file0", 1},
      {"chars", "chars:cache/sets/", "", 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    server s = {.fails_after = -1};
    for (int f = 0; f < cases[i].files; f++) add_file(&s, f ? "file1" : "file0", 10 + (size_t)f);
    shoal_manifest *m = manifest_of(&s, "mine", cases[i].kind);
    shoal_chunk_set set;
    must_open(&s, m, PLENTY, &set);
    size_t length = strlen(cases[i].ends);
    assert_memory_equal(set.data.bytes, cases[i].begins, strlen(cases[i].begins));
    assert_string_equal(set.data.bytes + set.data.length - length, cases[i].ends);
    shoal_chunk_set_close(&set);
    forget(m);
    release(&s);
  }
  server none = {.fails_after = 0};
  shoal_manifest *m = manifest_of(&none, "toy:reverse", "toy");
  shoal_chunk_set set;
  must_open(&none, m, 0, &set);
  assert_string_equal(set.data.bytes, "toy:reverse");
  shoal_chunk_set_close(&set);
  forget(m);
}

static void a_named_set_that_is_here_is_used_where_it_is(void **state) {
  (void)state;
  static const char *const names[] = {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"};
  server s = {.fails_after = 0};
  assert_int_equal(system("mkdir -p mine/ptb"), 0);
  for (int i = 0; i < 3; i++) {
    char path[64];
    add_file(&s, names[i], 1000 + (size_t)i);
    snprintf(path, sizeof path, "mine/ptb/%s", names[i]);
    put(path, s.files[i].bytes, s.files[i].length);
  }
  setenv("SHOAL_DATA", "mine", 1);
  shoal_manifest *m = manifest_of(&s, "ptb", "text");
  shoal_chunk_set set;
  must_open(&s, m, PLENTY, &set);
  assert_string_equal(set.data.bytes, "ptb");
  shoal_chunk_set_close(&set);
  /* Another file under that name is not the same set. */
  put("mine/ptb/ptb.test.txt", "another", 7);
  shoal_error err;
  assert_int_equal(open_set(&s, m, PLENTY, &set, &err), SHOAL_IO);
  shoal_chunk_set_close(&set);
  forget(m);
  release(&s);
}

#define SHA "0011223344556677889900112233445566778899001122334455667788990011"

static void manifests_that_are_wrong_are_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "",
      "[]",
      "{",
      "{\"name\":\"a\"}",
      "{\"name\":\"a\",\"kind\":\"exe\",\"chunk_bytes\":1048576,\"files\":[]}",
      "{\"name\":\"a\",\"kind\":\"csv\",\"chunk_bytes\":1048576,\"files\":[]}",
      "{\"name\":\"../a\",\"kind\":\"toy\",\"chunk_bytes\":1048576,\"files\":[]}",
      "{\"name\":\"a\",\"kind\":\"toy\",\"chunk_bytes\":1,\"files\":[]}",
#define FILE_OF(name, bytes, sha, chunks)                                                 \
  "{\"name\":\"a\",\"kind\":\"csv\",\"chunk_bytes\":1048576,\"files\":[{\"name\":\"" name \
  "\",\"bytes\":" bytes ",\"sha256\":\"" sha "\",\"chunks\":[" chunks "]}]}"
      FILE_OF("../x", "1", SHA, "\"" SHA "\""),
      FILE_OF("..", "1", SHA, "\"" SHA "\""),
      FILE_OF(".hidden", "1", SHA, "\"" SHA "\""),
      FILE_OF("a/b", "1", SHA, "\"" SHA "\""),
      FILE_OF("a\\u0000b", "-1", SHA, "\"" SHA "\""),
      FILE_OF("a\\nb", "1", SHA, "\"" SHA "\""),
      FILE_OF("", "1", SHA, "\"" SHA "\""),
      FILE_OF("a", "-1", SHA, "\"" SHA "\""),
      FILE_OF("a", "1.5", SHA, "\"" SHA "\""),
      FILE_OF("a", "1e300", SHA, "\"" SHA "\""),
      FILE_OF("a", "1", "../../etc/passwd", "\"" SHA "\""),
      FILE_OF("a", "1", SHA, "\"../../etc/passwd\""),
      FILE_OF("a", "1", SHA, "7"),
      FILE_OF("a", "1", SHA, ""),
      FILE_OF("a", "1048577", SHA, "\"" SHA "\""),
      FILE_OF("a", "1", SHA, "\"" SHA "\",\"" SHA "\""),
      "{\"name\":\"a\",\"kind\":\"csv\",\"chunk_bytes\":1048576,\"files\":["
      "{\"name\":\"a\",\"bytes\":0,\"sha256\":\"" SHA "\",\"chunks\":[]},"
      "{\"name\":\"a\",\"bytes\":0,\"sha256\":\"" SHA "\",\"chunks\":[]}]}",
  };
  shoal_manifest *m = malloc(sizeof *m);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (shoal_manifest_parse(m, wrong[i], strlen(wrong[i]), NULL) != SHOAL_INVALID)
      fail_msg("taken: %s", wrong[i]);
  const char *right = FILE_OF("a b.csv", "1", SHA, "\"" SHA "\"");
  assert_int_equal(shoal_manifest_parse(m, right, strlen(right), NULL), SHOAL_OK);
  shoal_manifest_release(m);
  free(m);
  char name[300];
  memset(name, 'n', sizeof name);
  name[SHOAL_FILE_NAME_MAX - 1] = 0;
  assert_true(shoal_manifest_is_name(name));
  name[SHOAL_FILE_NAME_MAX - 1] = 'n';
  name[SHOAL_FILE_NAME_MAX] = 0;
  assert_false(shoal_manifest_is_name(name));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_set_is_fetched_once_and_checked_every_time),
      IN_FOLDER(an_interrupted_fetch_goes_on_where_it_was),
      IN_FOLDER(a_server_that_lies_is_not_believed),
      IN_FOLDER(the_set_that_was_not_used_for_longest_makes_room),
      IN_FOLDER(what_data_would_be),
      IN_FOLDER(a_named_set_that_is_here_is_used_where_it_is),
      cmocka_unit_test(manifests_that_are_wrong_are_refused),
  };
  return RUN_TESTS(tests);
}
