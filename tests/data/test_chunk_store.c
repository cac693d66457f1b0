/* Chunks on this machine: holes, what was left from before, what is damaged or wanted; and the cache. */
#include "data/chunk_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "chunked.h"

static const uint64_t PLENTY = (uint64_t)1 << 30;

static shoal_status open_store(const shoal_manifest *m, uint64_t cache_bytes_max, shoal_chunk_store **out,
                               shoal_error *err) {
  const shoal_chunk_store_options options = {.cache = "cache", .cache_bytes_max = cache_bytes_max};
  return shoal_chunk_store_open(out, m, &options, err);
}

static shoal_chunk_store *must_open(const shoal_manifest *m, uint64_t cache_bytes_max) {
  shoal_chunk_store *store;
  shoal_error err;
  if (open_store(m, cache_bytes_max, &store, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return store;
}

static void check_whole(const chunked *c, uint32_t file, const char *path) {
  size_t length = c->files[file].cut.bytes;
  uint8_t *bytes = malloc(length + 1);
  FILE *from = fopen(path, "rb");
  if (!from) fail_msg("%s is missing", path);
  assert_int_equal(fread(bytes, 1, length + 1, from), length);
  fclose(from);
  assert_memory_equal(bytes, c->files[file].bytes, length);
  free(bytes);
}

static void files_have_holes_until_chunks_come(void **state) {
  (void)state;
  chunked c = {0};
  add_plain(&c, "one.csv", 3 * SHOAL_CHUNK_BYTES + 5);
  shoal_manifest *m = manifest_of(&c, "mine", "csv");
  shoal_chunk_store *store = must_open(m, PLENTY);
  struct stat about;
  assert_int_equal(stat(shoal_chunk_store_data(store), &about), 0);
  assert_int_equal(about.st_size, 3 * SHOAL_CHUNK_BYTES + 5);
  assert_true(about.st_blocks * 512 < SHOAL_CHUNK_BYTES);
  assert_int_equal(shoal_chunk_store_count(store), 4);
  assert_int_equal(shoal_chunk_store_bytes_of(store, 3), 5);
  uint8_t *bytes = malloc(SHOAL_CHUNK_BYTES);
  assert_int_equal(shoal_chunk_store_read(store, 2, bytes, NULL), SHOAL_NOT_FOUND);
  assert_int_equal(shoal_chunk_store_read(store, 4, bytes, NULL), SHOAL_NOT_FOUND);
  put_chunk(&c, store, 2);
  assert_true(shoal_chunk_store_has(store, 2));
  assert_false(shoal_chunk_store_has(store, 1));
  assert_int_equal(shoal_chunk_store_read(store, 2, bytes, NULL), SHOAL_OK);
  assert_memory_equal(bytes, c.files[0].bytes + 2 * SHOAL_CHUNK_BYTES, SHOAL_CHUNK_BYTES);
  put_chunk(&c, store, 0);
  put_chunk(&c, store, 1);
  assert_false(shoal_chunk_store_is_whole(store));
  put_chunk(&c, store, 3);
  put_chunk(&c, store, 3);
  assert_true(shoal_chunk_store_is_whole(store));
  shoal_chunk_progress progress = shoal_chunk_store_progress(store);
  assert_int_equal(progress.bytes_here, m->bytes);
  assert_int_equal(progress.bytes_put, m->bytes);
  assert_int_equal(progress.chunks_put, 4);
  check_whole(&c, 0, shoal_chunk_store_data(store));
  shoal_chunk_store_close(store);
  free(bytes);
  forget_manifest(m);
  release_chunked(&c);
}

static void what_an_earlier_run_left_counts_unless_it_is_damaged(void **state) {
  (void)state;
  chunked c = {0};
  add_plain(&c, "train.txt", 2 * SHOAL_CHUNK_BYTES);
  add_plain(&c, "test.txt", 3 * SHOAL_CHUNK_BYTES - 1);
  shoal_manifest *m = manifest_of(&c, "book", "text");
  shoal_chunk_store *store = must_open(m, PLENTY);
  char path[400];
  assert_int_equal(strncmp(shoal_chunk_store_data(store), "text:cache/sets/", 16), 0);
  snprintf(path, sizeof path, "%s/test.txt", shoal_chunk_store_data(store) + 5);
  put_chunk(&c, store, 0);
  put_chunk(&c, store, 3);
  put_chunk(&c, store, 4);
  shoal_chunk_store_close(store);
  store = must_open(m, PLENTY);
  for (uint32_t i = 0; i < 5; i++) assert_int_equal(shoal_chunk_store_has(store, i), i == 0 || i >= 3);
  assert_int_equal(shoal_chunk_store_progress(store).chunks_put, 0);
  /* Damaged while it is open: read notices. */
  uint8_t *bytes = malloc(SHOAL_CHUNK_BYTES);
  int fd = open(path, O_WRONLY);
  assert_int_equal(pwrite(fd, "damage", 6, SHOAL_CHUNK_BYTES + 10), 6);
  close(fd);
  assert_int_equal(shoal_chunk_store_read(store, 3, bytes, NULL), SHOAL_CORRUPT);
  assert_false(shoal_chunk_store_has(store, 3));
  assert_int_equal(shoal_chunk_store_wait(store, 3, 1, NULL, NULL), SHOAL_CORRUPT);
  put_chunk(&c, store, 3);
  assert_int_equal(shoal_chunk_store_wait(store, 3, 1, NULL, NULL), SHOAL_OK);
  assert_int_equal(shoal_chunk_store_read(store, 3, bytes, NULL), SHOAL_OK);
  shoal_chunk_store_close(store);
  /* Damaged, and cut short, while it is closed. */
  fd = open(path, O_WRONLY);
  assert_int_equal(pwrite(fd, "damage", 6, SHOAL_CHUNK_BYTES + 10), 6);
  close(fd);
  assert_int_equal(truncate(path, 2 * SHOAL_CHUNK_BYTES), 0);
  store = must_open(m, PLENTY);
  for (uint32_t i = 0; i < 5; i++) assert_int_equal(shoal_chunk_store_has(store, i), i == 0);
  shoal_chunk_store_close(store);
  free(bytes);
  forget_manifest(m);
  release_chunked(&c);
}

static void what_is_not_what_its_name_says_is_not_taken(void **state) {
  (void)state;
  chunked c = {0};
  add_plain(&c, "a.csv", SHOAL_CHUNK_BYTES + 100);
  shoal_manifest *m = manifest_of(&c, "mine", "csv");
  shoal_chunk_store *store = must_open(m, PLENTY);
  shoal_error err;
  c.files[0].bytes[7] ^= 1;
  assert_int_equal(shoal_chunk_store_put(store, 0, c.files[0].bytes, SHOAL_CHUNK_BYTES, &err), SHOAL_CORRUPT);
  c.files[0].bytes[7] ^= 1;
  assert_int_equal(shoal_chunk_store_put(store, 0, c.files[0].bytes, 100, &err), SHOAL_CORRUPT);
  assert_int_equal(shoal_chunk_store_put(store, 1, c.files[0].bytes, SHOAL_CHUNK_BYTES, &err), SHOAL_CORRUPT);
  assert_int_equal(shoal_chunk_store_put(store, 2, c.files[0].bytes, 0, &err), SHOAL_INVALID);
  assert_false(shoal_chunk_store_has(store, 0));
  struct stat about;
  assert_int_equal(stat(shoal_chunk_store_data(store), &about), 0);
  assert_int_equal(about.st_blocks, 0);
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

static void check_next(shoal_chunk_store *store, uint32_t index, bool urgent) {
  uint32_t next;
  bool is_urgent;
  assert_true(shoal_chunk_store_next_want(store, &next, &is_urgent));
  assert_int_equal(next, index);
  assert_int_equal(is_urgent, urgent);
}

static bool nothing_new(shoal_chunk_store *store) {
  uint32_t next;
  bool urgent;
  return !shoal_chunk_store_next_want(store, &next, &urgent);
}

static void count_call(void *self) { ++*(int *)self; }

static void urgent_ones_are_told_first_and_each_once(void **state) {
  (void)state;
  chunked c = {0};
  add_plain(&c, "a.csv", 9 * SHOAL_CHUNK_BYTES);
  shoal_manifest *m = manifest_of(&c, "mine", "csv");
  int calls = 0;
  const shoal_chunk_store_options options = {
      .cache = "cache", .cache_bytes_max = PLENTY, .self = &calls, .wanted = count_call};
  shoal_chunk_store *store;
  assert_int_equal(shoal_chunk_store_open(&store, m, &options, NULL), SHOAL_OK);
  put_chunk(&c, store, 5);
  assert_true(nothing_new(store));
  shoal_chunk_store_want(store, 4, 4, false);
  assert_int_equal(calls, 1);
  shoal_chunk_store_want(store, 4, 2, false); /* known */
  shoal_chunk_store_want(store, 5, 1, true);  /* here */
  assert_int_equal(calls, 1);
  check_next(store, 4, false);
  shoal_chunk_store_want(store, 8, 1, true);
  shoal_chunk_store_want(store, 6, 1, true); /* stands in line, and becomes urgent */
  shoal_chunk_store_want(store, 4, 1, true); /* was told, and becomes urgent */
  assert_int_equal(calls, 4);
  check_next(store, 8, true);
  check_next(store, 6, true);
  check_next(store, 4, true);
  check_next(store, 7, false);
  assert_true(nothing_new(store));
  assert_int_equal(shoal_chunk_store_progress(store).bytes_wanted, 5 * SHOAL_CHUNK_BYTES);
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

static void waiting_ends_by_a_stop_or_a_failure(void **state) {
  (void)state;
  chunked c = {0};
  add_plain(&c, "a.csv", 100);
  shoal_manifest *m = manifest_of(&c, "mine", "csv");
  shoal_chunk_store *store = must_open(m, PLENTY);
  shoal_error err;
  volatile sig_atomic_t stop = 1;
  assert_int_equal(shoal_chunk_store_wait(store, 0, 1, &stop, &err), SHOAL_STOPPED);
  shoal_chunk_store_fail(store, SHOAL_IO, "the server is gone");
  assert_int_equal(shoal_chunk_store_wait(store, 0, 1, NULL, &err), SHOAL_IO);
  assert_string_equal(err.text, "the server is gone");
  put_chunk(&c, store, 0);
  assert_int_equal(shoal_chunk_store_wait(store, 0, 1, NULL, &err), SHOAL_OK);
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

/* One thread brings, several want and wait, others look and read. */
typedef struct asking {
  chunked *c;
  shoal_chunk_store *store;
  uint32_t number;
} asking;

static void *want_and_wait(void *self) {
  const asking *a = self;
  uint32_t count = shoal_chunk_store_count(a->store);
  uint8_t *bytes = malloc(SHOAL_CHUNK_BYTES);
  bool good = true;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t index = (i * 5 + a->number * 11) % count, length;
    shoal_chunk_store_want(a->store, index, 1, i % 2 == 0);
    if (i + 1 < count) shoal_chunk_store_want(a->store, (index + 1) % count, 1, false);
    good = good && shoal_chunk_store_wait(a->store, index, 1, NULL, NULL) == SHOAL_OK;
    good = good && shoal_chunk_store_has(a->store, index);
    good = good && shoal_chunk_store_read(a->store, index, bytes, NULL) == SHOAL_OK;
    const uint8_t *wanted = chunk_at(a->c, index, &length);
    good = good && memcmp(bytes, wanted, length) == 0;
  }
  free(bytes);
  return good ? self : NULL;
}

static void many_threads_want_wait_and_read(void **state) {
  (void)state;
  enum { THREADS = 4, FILES = 4 };
  static const char *const names[FILES] = {"a", "b", "c", "d"};
  chunked c = {0};
  for (int i = 0; i < FILES; i++) /* small chunks: records of half a MiB and a bit */
    add_file(&c, names[i], NULL, (shoal_cut){.bytes = 6 * 600000 + 16, .head = 16, .record = 600000});
  shoal_manifest *m = manifest_of(&c, "mine", "idx");
  shoal_chunk_store *store = must_open(m, PLENTY);
  assert_int_equal(shoal_chunk_store_count(store), FILES * 7);
  start_bringing(&c, store);
  pthread_t threads[THREADS];
  asking asks[THREADS];
  for (uint32_t i = 0; i < THREADS; i++) {
    asks[i] = (asking){&c, store, i};
    assert_int_equal(pthread_create(&threads[i], NULL, want_and_wait, &asks[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *good;
    pthread_join(threads[i], &good);
    assert_non_null(good);
  }
  stop_bringing(&c);
  assert_true(shoal_chunk_store_is_whole(store));
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

static void chunks_hold_whole_records(void **state) {
  (void)state;
  static const shoal_cut cuts[] = {
      {.bytes = 16 + 784 * 5000, .head = 16, .record = 784},
      {.bytes = 3073 * 1000, .record = 3073},
      {.bytes = 20 + 3 * ((uint64_t)3 << 20), .head = 20, .record = (uint64_t)3 << 20},
      {.bytes = 5, .head = 16, .record = 784},
      {.bytes = 3 * SHOAL_CHUNK_BYTES},
      {.bytes = 1},
      {.bytes = 0},
  };
  static const uint64_t counts[] = {1 + 4, 3, 1 + 9, 1, 3, 1, 0};
  for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
    const shoal_cut *cut = &cuts[k];
    uint64_t end = 0, count = shoal_cut_count(cut);
    assert_int_equal(count, counts[k]);
    for (uint64_t i = 0; i < count; i++) {
      uint32_t bytes;
      assert_int_equal(shoal_cut_chunk(cut, i, &bytes), end);
      assert_true(bytes > 0 && bytes <= SHOAL_CHUNK_BYTES);
      assert_int_equal(shoal_cut_find(cut, end), i);
      assert_int_equal(shoal_cut_find(cut, end + bytes - 1), i);
      bool whole = i < (cut->head > 0) || cut->record == 0 || cut->record > SHOAL_CHUNK_BYTES;
      assert_true(whole || (end - cut->head) % cut->record == 0);
      end += bytes;
    }
    assert_int_equal(end, cut->bytes);
  }
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
  chunked c[SETS];
  shoal_manifest *m[SETS];
  const uint64_t two = 2 * SHOAL_CHUNK_BYTES + 100000;
  for (int i = 0; i < SETS; i++) {
    c[i] = (chunked){0};
    add_plain(&c[i], "a.csv", SHOAL_CHUNK_BYTES - (size_t)i);
    m[i] = manifest_of(&c[i], "mine", "csv");
  }
  shoal_chunk_store *store, *second, *third;
  for (int i = 0; i < 2; i++) {
    store = must_open(m[i], two);
    put_chunk(&c[i], store, 0);
    shoal_chunk_store_close(store);
    usleep(20000);
  }
  store = must_open(m[0], two); /* used again, and kept in use: the second must go */
  assert_true(shoal_chunk_store_has(store, 0));
  second = must_open(m[2], two);
  put_chunk(&c[2], second, 0);
  shoal_chunk_store_close(second);
  assert_int_equal(sets_here(), 2);
  second = must_open(m[1], two);
  assert_false(shoal_chunk_store_has(second, 0));
  put_chunk(&c[1], second, 0);
  /* Both places are in use, one of them twice. */
  shoal_chunk_store *again = must_open(m[0], two);
  assert_true(shoal_chunk_store_has(again, 0));
  shoal_error err;
  assert_int_equal(open_store(m[2], two, &third, &err), SHOAL_LIMIT);
  CHECK_SAYS(&err, "cache");
  shoal_chunk_store_close(store);
  assert_int_equal(open_store(m[2], two, &third, &err), SHOAL_LIMIT);
  shoal_chunk_store_close(again);
  shoal_chunk_store_close(second);
  assert_int_equal(open_store(m[2], 1000, &third, &err), SHOAL_LIMIT);
  for (int i = 0; i < SETS; i++) {
    forget_manifest(m[i]);
    release_chunked(&c[i]);
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
    chunked c = {0};
    for (int f = 0; f < cases[i].files; f++) add_plain(&c, f ? "file1" : "file0", 10 + (size_t)f);
    shoal_manifest *m = manifest_of(&c, "mine", cases[i].kind);
    shoal_chunk_store *store = must_open(m, PLENTY);
    const char *data = shoal_chunk_store_data(store);
    assert_memory_equal(data, cases[i].begins, strlen(cases[i].begins));
    assert_string_equal(data + strlen(data) - strlen(cases[i].ends), cases[i].ends);
    shoal_chunk_store_close(store);
    forget_manifest(m);
    release_chunked(&c);
  }
  chunked none = {0};
  shoal_manifest *m = manifest_of(&none, "toy:reverse", "toy");
  shoal_chunk_store *store = must_open(m, 0);
  assert_string_equal(shoal_chunk_store_data(store), "toy:reverse");
  assert_true(shoal_chunk_store_is_whole(store));
  shoal_chunk_store_want(store, 0, 0, true);
  assert_int_equal(shoal_chunk_store_wait(store, 0, 0, NULL, NULL), SHOAL_OK);
  shoal_chunk_store_close(store);
  forget_manifest(m);
}

/* Files of 1000, 1001, ... bytes in a folder where named sets are looked for. */
static void make_named(chunked *c, const char *into, const char *const *names, int count, bool zipped) {
  assert_true(mkdir("mine", 0777) == 0 || errno == EEXIST);
  assert_int_equal(mkdir(into, 0777), 0);
  for (int i = 0; i < count; i++) {
    char path[64];
    add_plain(c, names[i], 1000 + (size_t)i);
    snprintf(path, sizeof path, "%s/%s%s", into, names[i], zipped ? ".gz" : "");
    (zipped ? put_gzip : put)(path, c->files[i].bytes, c->files[i].cut.bytes);
  }
  setenv("SHOAL_DATA", "mine", 1);
}

static void a_named_set_that_is_here_is_used_where_it_is(void **state) {
  (void)state;
  static const char *const names[] = {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"};
  chunked c = {0};
  make_named(&c, "mine/ptb", names, 3, false);
  shoal_manifest *m = manifest_of(&c, "ptb", "text");
  shoal_chunk_store *store = must_open(m, PLENTY);
  assert_string_equal(shoal_chunk_store_data(store), "ptb");
  assert_true(shoal_chunk_store_is_whole(store));
  uint8_t bytes[2000];
  assert_int_equal(shoal_chunk_store_read(store, 1, bytes, NULL), SHOAL_OK);
  assert_memory_equal(bytes, c.files[1].bytes, 1001);
  put_chunk(&c, store, 1);
  shoal_chunk_store_close(store);
  /* Another file under that name is not the same set. */
  put("mine/ptb/ptb.test.txt", "another", 7);
  store = must_open(m, PLENTY);
  assert_string_not_equal(shoal_chunk_store_data(store), "ptb");
  assert_false(shoal_chunk_store_has(store, 0));
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

/* What a server unpacks is the same set as what is zipped here. */
static void a_named_set_may_be_zipped_here(void **state) {
  (void)state;
  static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                      "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  chunked c = {0};
  make_named(&c, "mine/mnist", names, 4, true);
  shoal_manifest *m = manifest_of(&c, "mnist", "idx");
  shoal_chunk_store *store = must_open(m, PLENTY);
  assert_string_equal(shoal_chunk_store_data(store), "mnist");
  uint8_t bytes[2000];
  assert_int_equal(shoal_chunk_store_read(store, 2, bytes, NULL), SHOAL_OK);
  assert_memory_equal(bytes, c.files[2].bytes, 1002);
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

static void the_id_is_of_what_a_set_is(void **state) {
  (void)state;
  char ids[4][SHOAL_SHA256_HEX];
  for (int i = 0; i < 4; i++) {
    chunked c = {0};
    add_plain(&c, i == 2 ? "b.csv" : "a.csv", i == 3 ? 101 : 100);
    shoal_manifest *m = manifest_of(&c, i == 1 ? "hers" : "mine", "csv");
    shoal_manifest_id(m, ids[i]);
    forget_manifest(m);
    release_chunked(&c);
  }
  assert_string_equal(ids[0], ids[1]);
  assert_string_not_equal(ids[0], ids[2]);
  assert_string_not_equal(ids[0], ids[3]);
}

#define SHA "0011223344556677889900112233445566778899001122334455667788990011"

static void manifests_that_are_wrong_are_refused(void **state) {
  (void)state;
#define MANIFEST(name, kind, files, root)                                                  \
  "{\"name\":\"" name "\",\"kind\":\"" kind "\",\"chunk_bytes\":1048576,\"files\":[" files \
  "],\"root\":\"" root "\"}"
#define FILE_OF(name, bytes, sha, chunks)                                                                \
  MANIFEST("a", "csv",                                                                                   \
           "{\"name\":\"" name "\",\"bytes\":" bytes ",\"sha256\":\"" sha "\",\"chunks\":[" chunks "]}", \
           SHA)
  static const char *const wrong[] = {
      "",
      "[]",
      "{",
      "{\"name\":\"a\"}",
      MANIFEST("a", "exe", "", SHA),
      MANIFEST("a", "csv", "", SHA),
      MANIFEST("../a", "toy", "", SHA),
      MANIFEST("a", "toy", "", SHA), /* not the root of nothing */
      "{\"name\":\"a\",\"kind\":\"toy\",\"chunk_bytes\":1,\"files\":[]}",
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
      FILE_OF("a", "1,\"head\":-1", SHA, "\"" SHA "\""),
      FILE_OF("a", "1,\"head\":1048577", SHA, "\"" SHA "\""),
      FILE_OF("a", "1,\"record\":0.5", SHA, "\"" SHA "\""),
      FILE_OF("a", "17,\"head\":16,\"record\":1", SHA, "\"" SHA "\""), /* that would be two chunks */
      FILE_OF("a", "1", "../../etc/passwd", "\"" SHA "\""),
      FILE_OF("a", "1", SHA, "\"../../etc/passwd\""),
      FILE_OF("a", "1", SHA, "7"),
      FILE_OF("a", "1", SHA, ""),
      FILE_OF("a", "1048577", SHA, "\"" SHA "\""),
      FILE_OF("a", "1", SHA, "\"" SHA "\",\"" SHA "\""),
      FILE_OF("a", "1048577", SHA, "\"" SHA "\",\"" SHA "\""), /* another root */
      MANIFEST("a", "csv",
               "{\"name\":\"a\",\"bytes\":0,\"sha256\":\"" SHA "\",\"chunks\":[]},"
               "{\"name\":\"a\",\"bytes\":0,\"sha256\":\"" SHA "\",\"chunks\":[]}",
               SHA),
  };
  shoal_manifest *m = malloc(sizeof *m);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (shoal_manifest_parse(m, wrong[i], strlen(wrong[i]), NULL) != SHOAL_INVALID)
      fail_msg("taken: %s", wrong[i]);
  /* The root of one chunk is that chunk. */
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
      IN_FOLDER(files_have_holes_until_chunks_come),
      IN_FOLDER(what_an_earlier_run_left_counts_unless_it_is_damaged),
      IN_FOLDER(what_is_not_what_its_name_says_is_not_taken),
      IN_FOLDER(urgent_ones_are_told_first_and_each_once),
      IN_FOLDER(waiting_ends_by_a_stop_or_a_failure),
      IN_FOLDER(many_threads_want_wait_and_read),
      cmocka_unit_test(chunks_hold_whole_records),
      IN_FOLDER(the_set_that_was_not_used_for_longest_makes_room),
      IN_FOLDER(what_data_would_be),
      IN_FOLDER(a_named_set_that_is_here_is_used_where_it_is),
      IN_FOLDER(a_named_set_may_be_zipped_here),
      cmocka_unit_test(the_id_is_of_what_a_set_is),
      cmocka_unit_test(manifests_that_are_wrong_are_refused),
  };
  return RUN_TESTS(tests);
}
