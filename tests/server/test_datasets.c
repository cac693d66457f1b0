/* Uploaded and named data sets: described as a training reads them, whole after any crash, chunks never
 * wrong. */
#include "data/files.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "data/chunk_store.h"
#include "data/dataset.h"
#include "server/datasets.h"

static const char WINE[] = "acid,sugar,quality\n7.4,1.9,good\n6.1,2,bad\n7,2.5,good\n5.9,1,bad\n8,,good\n";

typedef struct world {
  shoal_store *store;
  shoal_datasets *sets;
} world;

static void open_world(world *w, uint64_t bytes_max) {
  shoal_error err;
  if (shoal_store_open(&w->store, "store.sqlite", &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_datasets_config config = {
      .store = w->store, .folder = "server/data", .named_dir = "named", .bytes_max = bytes_max};
  if (shoal_datasets_open(&w->sets, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void close_world(world *w) {
  shoal_datasets_close(w->sets);
  shoal_store_close(w->store);
}

/* As a PUT does it. */
static shoal_status upload(world *w, const char *name, const char *file, const void *bytes, size_t length,
                           const char *owner, shoal_error *err) {
  char *path;
  shoal_status status = shoal_datasets_incoming(w->sets, name, file, &path, err);
  if (status != SHOAL_OK) return status;
  put(path, bytes, length);
  status = shoal_datasets_uploaded(w->sets, name, file, path, owner, err);
  if (status != SHOAL_OK) unlink(path);
  free(path);
  return status;
}

static void must_upload(world *w, const char *name, const char *file, const void *bytes, size_t length) {
  shoal_error err;
  if (upload(w, name, file, bytes, length, "Ann", &err) != SHOAL_OK) fail_msg("%s", err.text);
}

/* As a POST does it. */
static shoal_status seal(world *w, const char *name, const char *kind, const char *target, const char *owner,
                         shoal_error *err) {
  shoal_text draft = {0}, description = {0};
  shoal_status status = shoal_datasets_draft(w->sets, name, owner, &draft, err);
  if (status == SHOAL_OK)
    status = shoal_datasets_check(draft.bytes, &(shoal_set_said){.kind = kind, .target = target},
                                  &description, err);
  if (status == SHOAL_OK) status = shoal_datasets_seal(w->sets, name, owner, description.bytes, err);
  shoal_text_release(&draft);
  shoal_text_release(&description);
  return status;
}

static void must_seal(world *w, const char *name, const char *kind, const char *target) {
  shoal_error err;
  if (seal(w, name, kind, target, "Ann", &err) != SHOAL_OK) fail_msg("%s", err.text);
}

typedef shoal_status (*writes_json)(shoal_datasets *sets, const char *name, shoal_json *json,
                                    shoal_error *err);

static shoal_status describe_list(shoal_datasets *sets, const char *name, shoal_json *json,
                                  shoal_error *err) {
  (void)name;
  return shoal_datasets_list(sets, json, err);
}

/* What one of the calls writes, parsed. */
static cJSON *ask(world *w, writes_json call, const char *name) {
  shoal_text text = {0};
  shoal_json json;
  shoal_error err;
  shoal_json_init(&json, &text);
  if (call(w->sets, name, &json, &err) != SHOAL_OK) fail_msg("%s", err.text);
  cJSON *parsed = cJSON_Parse(text.bytes);
  if (parsed == NULL) fail_msg("no JSON: %s", text.bytes);
  shoal_text_release(&text);
  return parsed;
}

static const cJSON *at(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  if (item == NULL) fail_msg("no field '%s'", key);
  return item;
}

static void check_text(const cJSON *json, const char *key, const char *value) {
  assert_true(cJSON_IsString(at(json, key)));
  assert_string_equal(at(json, key)->valuestring, value);
}

static void check_number(const cJSON *json, const char *key, double value) {
  assert_true(cJSON_IsNumber(at(json, key)));
  assert_true(at(json, key)->valuedouble == value);
}

static void check_samples(const cJSON *json, double train, double valid, double test) {
  const cJSON *samples = at(json, "samples");
  check_number(samples, "train", train);
  check_number(samples, "valid", valid);
  check_number(samples, "test", test);
}

/* An array of texts, or of objects with that key, as "a b c". */
static void check_words(const cJSON *array, const char *key, const char *wanted) {
  shoal_text text = {0};
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    const cJSON *word = key != NULL ? at(item, key) : item;
    shoal_text_addf(&text, "%s%s", text.length > 0 ? " " : "", word->valuestring);
  }
  assert_string_equal(text.bytes != NULL ? text.bytes : "", wanted);
  shoal_text_release(&text);
}

/* What a training would find there. */
static void check_opens(world *w, const char *name, const char *net, const cJSON *described) {
  shoal_text path = {0};
  shoal_error err;
  shoal_dataset *data;
  assert_int_equal(shoal_datasets_path(w->sets, name, &path, &err), SHOAL_OK);
  shoal_model *model = model_of(net);
  shoal_dataset_options options = {.data = path.bytes, .data_dir = "named"};
  if (shoal_dataset_open(&data, &options, model, &err) != SHOAL_OK) fail_msg("%s: %s", path.bytes, err.text);
  check_samples(described, (double)shoal_dataset_samples(data, SHOAL_TRAIN),
                (double)shoal_dataset_samples(data, SHOAL_VALID),
                (double)shoal_dataset_samples(data, SHOAL_TEST));
  shoal_dataset_close(data);
  shoal_model_destroy(model);
  shoal_text_release(&path);
}

/* ---- kinds ---- */

static void a_table_is_described_as_a_training_reads_it(void **state) {
  (void)state;
  world w;
  open_world(&w, 0);
  must_upload(&w, "My wine", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "My wine", "csv", NULL);
  cJSON *set = ask(&w, shoal_datasets_describe, "My wine");
  check_text(set, "name", "My wine");
  check_text(set, "owner", "Ann");
  check_text(set, "kind", "csv");
  check_text(set, "shape", "2");
  check_text(set, "target", "quality");
  check_number(set, "bytes", sizeof WINE - 1);
  assert_true(cJSON_IsFalse(at(set, "built_in")));
  assert_true(at(set, "created")->valuedouble > 1.7e9);
  check_words(at(set, "columns"), "name", "acid sugar quality");
  check_words(at(set, "columns"), "kind", "number number class");
  check_words(at(set, "classes"), NULL, "bad good");
  check_words(at(set, "files"), "name", "wine.csv");
  check_number(at(set, "files")->child, "bytes", sizeof WINE - 1);
  check_opens(&w, "My wine", "input 2\ndense 2\nloss cross-entropy\n", set);
  cJSON_Delete(set);
  close_world(&w);
}

static void a_chosen_target_is_kept(void **state) {
  (void)state;
  world w;
  shoal_error err;
  shoal_text target = {0};
  open_world(&w, 0);
  must_upload(&w, "t", "t.csv", "a,b,c\n1,2,3\n4,5.5,6\n7,8,9\n", 26);
  assert_int_equal(seal(&w, "t", "csv", "d", "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "t.csv", "'d'");
  must_seal(&w, "t", "csv", "b");
  cJSON *set = ask(&w, shoal_datasets_describe, "t");
  check_words(at(set, "columns"), "name", "a b c");
  check_words(at(set, "columns"), "kind", "number number number");
  assert_true(cJSON_IsNull(at(set, "classes")));
  check_text(set, "target", "b");
  cJSON_Delete(set);
  assert_int_equal(shoal_datasets_target(w.sets, "t", &target, &err), SHOAL_OK);
  assert_string_equal(target.bytes, "b");
  shoal_text_release(&target);
  close_world(&w);
}

/* Rows "i,target(i)" as a table; what kind the target is taken for. */
static void check_target_kind(world *w, const char *name, const char *(*target)(int i), int rows,
                              const char *kind) {
  shoal_text text = {0};
  for (int i = 0; i < rows; i++) shoal_text_addf(&text, "%d,%s\n", i, target(i));
  must_upload(w, name, "t.csv", text.bytes, text.length);
  must_seal(w, name, "csv", NULL);
  cJSON *set = ask(w, shoal_datasets_describe, name);
  assert_string_equal(at(cJSON_GetArrayItem(at(set, "columns"), 1), "kind")->valuestring, kind);
  assert_int_equal(cJSON_IsArray(at(set, "classes")), strcmp(kind, "class") == 0);
  cJSON_Delete(set);
  shoal_text_release(&text);
}

static const char *digit(int i) {
  static const char *const digits[] = {"0", "1", "2", "3"};
  return digits[i % 4];
}
static const char *fraction(int i) { return i % 2 ? "0.5" : "1.5"; }
static const char *all_different(int i) {
  static char text[16];
  snprintf(text, sizeof text, "%d", 1000 + i);
  return text;
}

static void numbers_are_classes_when_they_are_whole_and_few(void **state) {
  (void)state;
  world w;
  open_world(&w, 0);
  check_target_kind(&w, "digits", digit, 40, "class");
  check_target_kind(&w, "fractions", fraction, 40, "number");
  check_target_kind(&w, "different", all_different, 40, "number");
  close_world(&w);
}

static void a_slip_in_a_column_of_numbers_is_found(void **state) {
  (void)state;
  world w;
  shoal_error err;
  shoal_text text = {0};
  open_world(&w, 0);
  for (int i = 0; i < 500; i++) shoal_text_addf(&text, i == 321 ? "%d,12.o\n" : "%d,%d.5\n", i, i);
  must_upload(&w, "t", "t.csv", text.bytes, text.length);
  assert_int_equal(seal(&w, "t", "csv", NULL, "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "t.csv:322:5: ", "12.o");
  shoal_text_release(&text);
  close_world(&w);
}

static void of_two_tables_the_one_for_test_is_the_second(void **state) {
  (void)state;
  world w;
  shoal_error err;
  shoal_text path = {0};
  open_world(&w, 0);
  must_upload(&w, "pair", "a-test.csv", "1,2,no\n", 7);
  must_upload(&w, "pair", "b-train.csv", "1,2,yes\n3,4,no\n5,6,yes\n", 23);
  must_seal(&w, "pair", "csv", NULL);
  assert_int_equal(shoal_datasets_path(w.sets, "pair", &path, &err), SHOAL_OK);
  assert_string_equal(path.bytes, "server/data/sets/pair/b-train.csv,server/data/sets/pair/a-test.csv");
  cJSON *set = ask(&w, shoal_datasets_describe, "pair"), *manifest = ask(&w, shoal_datasets_manifest, "pair");
  check_samples(set, 3, 0, 1);
  check_opens(&w, "pair", "input 2\ndense 2\nloss cross-entropy\n", set);
  check_words(at(manifest, "files"), "name", "b-train.csv a-test.csv");
  cJSON_Delete(set);
  cJSON_Delete(manifest);
  shoal_text_release(&path);
  must_upload(&w, "which", "a.csv", "1,2\n", 4);
  must_upload(&w, "which", "b.csv", "1,2\n", 4);
  assert_int_equal(seal(&w, "which", "csv", NULL, "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "b.csv", "'test'");
  close_world(&w);
}

static void upload_idx(world *w, const char *name) {
  static uint8_t bytes[4096];
  const uint32_t images[] = {5, 4, 6}, labels[] = {5}, test_images[] = {2, 4, 6}, test_labels[] = {2};
  must_upload(w, name, "train-images-idx3-ubyte", bytes, make_idx(bytes, 3, images, 1));
  must_upload(w, name, "train-labels-idx1-ubyte", bytes, make_idx(bytes, 1, labels, 0));
  must_upload(w, name, "t10k-images-idx3-ubyte", bytes, make_idx(bytes, 3, test_images, 1));
  must_upload(w, name, "t10k-labels-idx1-ubyte", bytes, make_idx(bytes, 1, test_labels, 0));
}

static void images_are_described(void **state) {
  (void)state;
  world w;
  shoal_error err;
  open_world(&w, 0);
  upload_idx(&w, "tiny");
  must_upload(&w, "tiny", "README.txt", "hello", 5);
  assert_int_equal(seal(&w, "tiny", "idx", NULL, "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "README.txt: ", "train-images-idx3-ubyte");
  assert_int_equal(shoal_datasets_delete(w.sets, "tiny", "Ann", &err), SHOAL_OK);
  upload_idx(&w, "tiny");
  must_seal(&w, "tiny", "idx", NULL);
  cJSON *set = ask(&w, shoal_datasets_describe, "tiny");
  check_samples(set, 5, 0, 2);
  check_text(set, "shape", "1x4x6");
  assert_int_equal(cJSON_GetArraySize(at(set, "classes")), 29); /* the largest label is 28 */
  assert_true(cJSON_IsNull(at(set, "columns")));
  check_opens(&w, "tiny", "input 1x4x6\nflatten\ndense 29\nloss cross-entropy\n", set);
  cJSON_Delete(set);
  close_world(&w);
}

static void photographs_are_described(void **state) {
  (void)state;
  enum { RECORD = 3073 };
  static uint8_t record[2 * RECORD];
  world w;
  shoal_error err;
  open_world(&w, 0);
  record[RECORD] = 9;
  for (int i = 1; i <= 5; i++) {
    char file[32];
    snprintf(file, sizeof file, "data_batch_%d.bin", i);
    must_upload(&w, "photos", file, record, sizeof record);
  }
  assert_int_equal(seal(&w, "photos", "cifar", NULL, "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "test_batch.bin");
  assert_null(strstr(err.text, "drafts"));
  must_upload(&w, "photos", "test_batch.bin", record, RECORD);
  must_seal(&w, "photos", "cifar", NULL);
  cJSON *set = ask(&w, shoal_datasets_describe, "photos");
  check_samples(set, 10, 0, 1);
  check_text(set, "shape", "3x32x32");
  check_words(at(set, "classes"), NULL, "airplane automobile bird cat deer dog frog horse ship truck");
  check_opens(&w, "photos", "input 3x32x32\nflatten\ndense 10\nloss cross-entropy\n", set);
  cJSON_Delete(set);
  close_world(&w);
}

static void texts_are_described(void **state) {
  (void)state;
  static const char net[] = "input tokens 4\nembed 60 3\ndense 60\nloss cross-entropy\n";
  static const char novel[] = "it was the best of times it was the worst of times it was the age of wisdom\n"
                              "it was the age of foolishness it was the epoch of belief\n";
  world w;
  shoal_error err;
  shoal_text path = {0};
  open_world(&w, 0);
  must_upload(&w, "novel", "novel.txt", novel, sizeof novel - 1);
  must_seal(&w, "novel", "text", NULL);
  must_upload(&w, "letters", "novel.txt", novel, sizeof novel - 1);
  must_seal(&w, "letters", "chars", NULL);
  must_upload(&w, "parts", "train.txt", novel, sizeof novel - 1);
  must_upload(&w, "parts", "test.txt", "it was the times", 16);
  must_seal(&w, "parts", "text", NULL);
  static const char *const names[] = {"novel", "letters", "parts"};
  static const char *const paths[] = {"text:server/data/sets/novel/novel.txt",
                                      "chars:server/data/sets/letters/novel.txt",
                                      "text:server/data/sets/parts"};
  for (int i = 0; i < 3; i++) {
    cJSON *set = ask(&w, shoal_datasets_describe, names[i]);
    check_text(set, "shape", "tokens");
    assert_true(at(set, "vocabulary")->valuedouble > 10);
    check_opens(&w, names[i], net, set);
    assert_int_equal(shoal_datasets_path(w.sets, names[i], &path, &err), SHOAL_OK);
    assert_string_equal(path.bytes, paths[i]);
    shoal_text_clear(&path);
    cJSON_Delete(set);
  }
  shoal_text_release(&path);
  must_upload(&w, "bad", "x.txt", "good words\nbad \xff words", 22);
  assert_int_equal(seal(&w, "bad", "text", NULL, "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "x.txt:2:5: ");
  must_upload(&w, "unknown", "train.txt", novel, sizeof novel - 1);
  must_upload(&w, "unknown", "test.txt", "it was\nxylophone", 16);
  assert_int_equal(seal(&w, "unknown", "text", NULL, "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "test.txt:2: ", "xylophone");
  close_world(&w);
}

static void what_is_wrong_is_said_with_its_place(void **state) {
  (void)state;
  static const struct {
    const char *kind, *text, *begins;
  } cases[] = {
      {"csv", "a,b\n1,2\nx,3\n", "t.csv:3:1: "},
      {"csv", "a,b\n1,2\n1,2,3\n", "t.csv:3: 3 cells"},
      {"csv", "a,b\n1,\n", "t.csv:2:3: the target"},
      {"csv", "a,b\n\"1,2\n", "t.csv:2:1: "},
      {"csv", "", "t.csv: there is nothing"},
      {"csv", "a\n1\n", "t.csv: has one column"},
      {"csv", "a,a\n1,2\n", "t.csv:1:3: a second column"},
      {"idx", "a,b\n1,2\n", "t.csv: is no file of"},
      {"text", "", "t.csv: there is no text"},
      {"chars", "x", "t.csv: too short"},
      {"movie", "x", "'movie' is no kind"},
  };
  world w;
  shoal_error err;
  open_world(&w, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    must_upload(&w, "t", "t.csv", cases[i].text, strlen(cases[i].text));
    shoal_status status = seal(&w, "t", cases[i].kind, NULL, "Ann", &err);
    if (status != SHOAL_INVALID || err.status != SHOAL_INVALID ||
        strncmp(err.text, cases[i].begins, strlen(cases[i].begins)) != 0)
      fail_msg("case %zu: %d, %s", i, status, err.text);
  }
  /* As long as it is not discarded, a draft can be mended. */
  must_upload(&w, "t", "t.csv", "a,b\n1,2\n3,4\n", 12);
  must_seal(&w, "t", "csv", NULL);
  close_world(&w);
}

/* ---- names, owners, limits ---- */

static int files_below(const char *path) {
  char command[256];
  snprintf(command, sizeof command, "find %s -type f | wc -l", path);
  FILE *pipe = popen(command, "r");
  int count = -1;
  assert_non_null(pipe);
  assert_int_equal(fscanf(pipe, "%d", &count), 1);
  pclose(pipe);
  return count;
}

static void bad_names_are_refused(void **state) {
  (void)state;
  static const char *const sets[] = {
      "",         ".",
      "..",       ".x",
      "a/b",      "../x",
      "a\\b",     "a:b",
      "toy:wave", "a\nb",
      "a%2fb",    "\xff",
      " a",       "0123456789012345678901234567890123456789012345678901234567890123456789"};
  static const char *const files[] = {"",     ".",   "..",  ".owner",   ".manifest", "a/b",
                                      "../x", "a b", "a:b", "\xc3\xa4", "a\n"};
  char long_name[SHOAL_DATASET_FILE_NAME_MAX + 2];
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  world w;
  shoal_error err;
  char *path;
  open_world(&w, 0);
  put("body", "x", 1);
  int before = files_below(".");
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    assert_int_equal(shoal_datasets_incoming(w.sets, sets[i], "a.csv", &path, &err), SHOAL_INVALID);
    assert_int_equal(shoal_datasets_uploaded(w.sets, sets[i], "a.csv", "body", "Ann", &err), SHOAL_INVALID);
    assert_int_equal(shoal_datasets_room(w.sets, sets[i], "a.csv"), 0);
    assert_int_not_equal(shoal_datasets_delete(w.sets, sets[i], NULL, &err), SHOAL_OK);
    assert_int_not_equal(seal(&w, sets[i], "csv", NULL, NULL, &err), SHOAL_OK);
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    assert_int_equal(shoal_datasets_incoming(w.sets, "good", files[i], &path, &err), SHOAL_INVALID);
    assert_int_equal(shoal_datasets_uploaded(w.sets, "good", files[i], "body", "Ann", &err), SHOAL_INVALID);
  }
  assert_false(shoal_datasets_file_is_good(long_name));
  assert_true(shoal_datasets_file_is_good(long_name + 1));
  assert_int_equal(files_below("."), before);
  close_world(&w);
}

/* Whatever the name is, nothing outside the drafts' folder changes. */
static void no_name_leaves_the_folder(void **state) {
  (void)state;
  static const char letters[] = "./\\a~ -%:\n\xc3\xa4";
  world w;
  shoal_error err;
  open_world(&w, 0);
  int outside = files_below("server/data/sets server/data/named store.sqlite");
  shoal_key key = shoal_key_make(7, SHOAL_FOR_SPLIT, 1, 0);
  uint64_t draw = 0;
  for (int i = 0; i < 300; i++) {
    char set[8] = {0}, file[8] = {0};
    for (int k = 0; k < 5; k++) {
      set[k] = letters[(size_t)(shoal_random_uniform(key, draw++) * (sizeof letters))];
      file[k] = letters[(size_t)(shoal_random_uniform(key, draw++) * (sizeof letters))];
    }
    put("body", "x", 1);
    if (shoal_datasets_uploaded(w.sets, set, file, "body", "Ann", &err) == SHOAL_OK) {
      char place[128];
      snprintf(place, sizeof place, "server/data/drafts/%s/%s", set, file);
      assert_true(shoal_file_exists(place));
      assert_null(strchr(set, '/'));
      assert_null(strchr(file, '/'));
      assert_true(set[0] != '.' && file[0] != '.');
    } else {
      assert_true(shoal_file_exists("body"));
    }
    assert_int_equal(files_below("server/data/sets server/data/named store.sqlite"), outside);
  }
  close_world(&w);
}

static void a_name_is_had_once(void **state) {
  (void)state;
  world w;
  shoal_error err;
  char *path;
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  assert_int_equal(upload(&w, "wine", "wine.csv", "1,2\n", 4, "Bob", &err), SHOAL_CONFLICT);
  assert_int_equal(seal(&w, "wine", "csv", NULL, "Bob", &err), SHOAL_CONFLICT);
  assert_int_equal(shoal_datasets_delete(w.sets, "wine", "Bob", &err), SHOAL_INVALID);
  must_seal(&w, "wine", "csv", NULL);
  assert_int_equal(shoal_datasets_incoming(w.sets, "wine", "wine.csv", &path, &err), SHOAL_CONFLICT);
  assert_int_equal(upload(&w, "wine", "wine.csv", "1,2\n", 4, "Ann", &err), SHOAL_CONFLICT);
  assert_int_equal(upload(&w, "mnist", "wine.csv", "1,2\n", 4, "Ann", &err), SHOAL_CONFLICT);
  assert_int_equal(shoal_datasets_delete(w.sets, "wine", "Bob", &err), SHOAL_INVALID);
  assert_int_equal(shoal_datasets_delete(w.sets, "wine", "Ann", &err), SHOAL_OK);
  assert_int_equal(shoal_datasets_delete(w.sets, "wine", "Ann", &err), SHOAL_NOT_FOUND);
  assert_int_equal(files_below("server/data/sets server/data/drafts"), 0);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  assert_int_equal(shoal_datasets_delete(w.sets, "wine", NULL, &err), SHOAL_OK); /* a draft, by an admin */
  assert_int_equal(shoal_datasets_delete(w.sets, "mnist", NULL, &err), SHOAL_INVALID);
  assert_int_equal(shoal_datasets_delete(w.sets, "toy:wave", NULL, &err), SHOAL_INVALID);
  close_world(&w);
}

static void a_file_that_comes_after_the_check_stops_the_sealing(void **state) {
  (void)state;
  world w;
  shoal_error err;
  shoal_text draft = {0}, description = {0};
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  assert_int_equal(shoal_datasets_draft(w.sets, "wine", "Ann", &draft, &err), SHOAL_OK);
  assert_int_equal(shoal_datasets_check(draft.bytes, &(shoal_set_said){.kind = "csv"}, &description, &err),
                   SHOAL_OK);
  must_upload(&w, "wine", "wine.csv", "not,a\ntable", 11);
  assert_int_equal(shoal_datasets_seal(w.sets, "wine", "Ann", description.bytes, &err), SHOAL_CONFLICT);
  assert_int_equal(shoal_datasets_seal(w.sets, "wine", "Ann", "{}", &err), SHOAL_INVALID);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "wine", "csv", NULL);
  shoal_text_release(&draft);
  shoal_text_release(&description);
  close_world(&w);
}

static void a_refused_draft_can_be_read_in_another_way(void **state) {
  (void)state;
  world w;
  shoal_error err;
  static const char table[] = "a;b;c\n1,5;x;y\n2,5;z;y\n3,5;x;y\n";
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", table, sizeof table - 1);
  assert_int_equal(seal(&w, "wine", "csv", NULL, "Ann", &err), SHOAL_INVALID);
  assert_int_equal(shoal_datasets_refuse(w.sets, "wine", "Bob", &err), SHOAL_CONFLICT);
  assert_int_equal(shoal_datasets_refuse(w.sets, "wine", "Ann", &err), SHOAL_OK);
  assert_true(shoal_file_exists("server/data/drafts/wine/wine.csv"));
  must_seal(&w, "wine", "table", NULL);
  assert_false(shoal_file_exists("server/data/sets/wine/.refused"));
  /* Another upload takes its place, and has all the room. */
  must_upload(&w, "beer", "old.csv", table, sizeof table - 1);
  assert_int_equal(shoal_datasets_refuse(w.sets, "beer", "Ann", &err), SHOAL_OK);
  assert_int_equal(upload(&w, "beer", "new.csv", table, sizeof table - 1, "Bob", &err), SHOAL_CONFLICT);
  must_upload(&w, "beer", "new.csv", table, sizeof table - 1);
  must_upload(&w, "beer", "test.csv", table, sizeof table - 1);
  assert_false(shoal_file_exists("server/data/drafts/beer/old.csv"));
  assert_true(shoal_file_exists("server/data/drafts/beer/new.csv"));
  close_world(&w);
}

static void a_table_says_how_it_is_written_and_what_it_has(void **state) {
  (void)state;
  world w;
  shoal_error err;
  shoal_set_table table;
  shoal_text draft = {0}, description = {0};
  static const char rows[] = "1;x\n2;y\n3;x\n4;y\n";
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", rows, sizeof rows - 1);
  assert_int_equal(shoal_datasets_draft(w.sets, "wine", "Ann", &draft, &err), SHOAL_OK);
  shoal_set_said said = {.kind = "table", .dialect = "header perhaps"};
  assert_int_equal(shoal_datasets_check(draft.bytes, &said, &description, &err), SHOAL_INVALID);
  said.dialect = "header no";
  assert_int_equal(shoal_datasets_check(draft.bytes, &said, &description, &err), SHOAL_OK);
  assert_int_equal(shoal_datasets_seal(w.sets, "wine", "Ann", description.bytes, &err), SHOAL_OK);
  assert_int_equal(shoal_datasets_table(w.sets, "wine", &table, &err), SHOAL_OK);
  assert_string_equal(table.path.bytes, "server/data/sets/wine/wine.csv");
  assert_string_equal(table.dialect.bytes, "header no");
  assert_non_null(strstr(table.profile.bytes, "\"rows\":4"));
  shoal_set_table_release(&table);
  assert_int_equal(shoal_datasets_table(w.sets, "toy:wave", &table, &err), SHOAL_INVALID);
  assert_int_equal(shoal_datasets_table(w.sets, "beer", &table, &err), SHOAL_NOT_FOUND);
  shoal_text_release(&draft);
  shoal_text_release(&description);
  close_world(&w);
}

static void a_discarded_draft_leaves_nothing_and_an_old_one_goes(void **state) {
  (void)state;
  world w;
  shoal_error err;
  double now = shoal_clock_wall_seconds();
  open_world(&w, 0);
  must_upload(&w, "wine", "test.csv", WINE, sizeof WINE - 1);
  must_upload(&w, "beer", "beer.csv", WINE, sizeof WINE - 1);
  assert_int_equal(shoal_datasets_discard(w.sets, "wine", "Bob", &err), SHOAL_CONFLICT);
  assert_int_equal(shoal_datasets_discard(w.sets, "wine", "Ann", &err), SHOAL_OK);
  assert_int_equal(shoal_datasets_discard(w.sets, "wine", "Ann", &err), SHOAL_NOT_FOUND);
  assert_false(shoal_file_exists("server/data/drafts/wine"));
  shoal_datasets_tidy(w.sets, now + 86000);
  assert_true(shoal_file_exists("server/data/drafts/beer/beer.csv"));
  shoal_datasets_tidy(w.sets, now + 87000);
  assert_int_equal(files_below("server/data/drafts"), 0);
  close_world(&w);
}

static void uploads_are_limited(void **state) {
  (void)state;
  world w;
  shoal_error err;
  open_world(&w, 100);
  static const char bytes[101];
  assert_int_equal(shoal_datasets_room(w.sets, "a", "x"), 100);
  assert_int_equal(upload(&w, "a", "x", bytes, 101, "Ann", &err), SHOAL_LIMIT);
  must_upload(&w, "a", "x", bytes, 60);
  assert_int_equal(shoal_datasets_room(w.sets, "a", "y"), 40);
  assert_int_equal(shoal_datasets_room(w.sets, "a", "x"), 100); /* it would take the other's place */
  assert_int_equal(upload(&w, "a", "y", bytes, 41, "Ann", &err), SHOAL_LIMIT);
  must_upload(&w, "a", "y", bytes, 40);
  must_upload(&w, "a", "x", bytes, 10);
  for (int i = 2; i < SHOAL_DATASET_FILES_MAX; i++) {
    char file[16];
    snprintf(file, sizeof file, "f%d", i);
    must_upload(&w, "a", file, bytes, 0);
  }
  assert_int_equal(upload(&w, "a", "one-more", bytes, 0, "Ann", &err), SHOAL_LIMIT);
  must_upload(&w, "a", "f2", bytes, 1);
  close_world(&w);
}

static void there_are_so_many_sets_at_most(void **state) {
  (void)state;
  world w;
  shoal_error err;
  open_world(&w, 0);
  for (int i = 0; i < SHOAL_DATASETS_MAX; i++) {
    char draft[64];
    snprintf(draft, sizeof draft, "server/data/drafts/d%d", i);
    assert_int_equal(mkdir(draft, 0777), 0);
  }
  assert_int_equal(upload(&w, "one-more", "x", "x", 1, "Ann", &err), SHOAL_LIMIT);
  assert_false(shoal_file_exists("server/data/drafts/one-more"));
  must_upload(&w, "d7", "x", "x", 1);
  close_world(&w);
}

/* ---- named sets and toys ---- */

static void put_mnist(uint32_t count) {
  static uint8_t bytes[1 << 16];
  const uint32_t images[] = {count, 28, 28}, labels[] = {count};
  mkdir("named", 0777);
  mkdir("named/mnist", 0777);
  put_gzip("named/mnist/train-images-idx3-ubyte.gz", bytes, make_idx(bytes, 3, images, 1));
  memset(bytes, 0, sizeof bytes);
  size_t length = make_idx(bytes, 1, labels, 0);
  for (size_t i = 8; i < length; i++) bytes[i] = (uint8_t)(i % 10);
  put("named/mnist/train-labels-idx1-ubyte", bytes, length);
}

static const cJSON *listed(const cJSON *list, const char *name) {
  const cJSON *item;
  cJSON_ArrayForEach(item, at(list, "datasets")) {
    if (strcmp(at(item, "name")->valuestring, name) == 0) return item;
  }
  return NULL;
}

static void built_in_sets_are_listed_with_the_others(void **state) {
  (void)state;
  world w;
  shoal_error err;
  shoal_text path = {0};
  put_mnist(20);
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "wine", "csv", NULL);
  must_upload(&w, "draft", "wine.csv", WINE, sizeof WINE - 1);
  for (int again = 0; again < 2; again++) { /* the second time from what was kept */
    cJSON *list = ask(&w, describe_list, "");
    const cJSON *mnist = listed(list, "mnist"), *toy = listed(list, "toy:wave");
    assert_non_null(mnist);
    assert_true(cJSON_IsTrue(at(mnist, "built_in")));
    check_text(mnist, "kind", "idx");
    check_text(mnist, "owner", "");
    check_samples(mnist, 20, 0, 0);
    check_words(at(mnist, "classes"), NULL, "0 1 2 3 4 5 6 7 8 9");
    check_words(at(mnist, "files"), "name", "train-images-idx3-ubyte.gz train-labels-idx1-ubyte");
    check_opens(&w, "mnist", "input 1x28x28\nflatten\ndense 10\nloss cross-entropy\n", mnist);
    assert_non_null(toy);
    check_text(toy, "kind", "toy");
    assert_true(cJSON_IsTrue(at(toy, "built_in")));
    assert_int_equal(cJSON_GetArraySize(at(toy, "files")), 0);
    assert_non_null(listed(list, "toy:reverse"));
    assert_true(cJSON_IsFalse(at(listed(list, "wine"), "built_in")));
    assert_null(listed(list, "draft"));
    cJSON_Delete(list);
  }
  put_mnist(30);
  cJSON *mnist = ask(&w, shoal_datasets_describe, "mnist"),
        *toy = ask(&w, shoal_datasets_manifest, "toy:wave");
  check_samples(mnist, 30, 0, 0);
  check_text(toy, "kind", "toy");
  assert_int_equal(cJSON_GetArraySize(at(toy, "files")), 0);
  assert_int_equal(shoal_datasets_path(w.sets, "mnist", &path, &err), SHOAL_OK);
  assert_string_equal(path.bytes, "mnist");
  cJSON_Delete(mnist);
  cJSON_Delete(toy);
  shoal_text_release(&path);
  close_world(&w);
}

/* ---- manifests and chunks ---- */

static shoal_manifest *manifest_of(world *w, const char *name) {
  cJSON *json = ask(w, shoal_datasets_manifest, name);
  char *text = cJSON_PrintUnformatted(json);
  shoal_manifest *manifest = malloc(sizeof *manifest);
  shoal_error err;
  if (shoal_manifest_parse(manifest, text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  cJSON_free(text);
  cJSON_Delete(json);
  return manifest;
}

static void forget_manifest(shoal_manifest *manifest) {
  shoal_manifest_release(manifest);
  free(manifest);
}

static shoal_status read_chunk(world *w, const char *sha256, shoal_blob **out, shoal_error *err) {
  shoal_chunk_source source;
  *out = NULL;
  shoal_status status = shoal_datasets_chunk(w->sets, sha256, &source, err);
  if (status != SHOAL_OK) return status;
  status = shoal_chunk_read(&source, out, err);
  shoal_chunk_source_release(&source);
  return status;
}

/* What a volunteer does: the manifest, then the chunks. */
static shoal_chunk_store *fetch_all(world *w, const shoal_manifest *manifest) {
  shoal_chunk_store_options options = {.cache = "cache", .cache_bytes_max = 1 << 30, .data_dir = "nowhere"};
  shoal_chunk_store *store;
  shoal_error err;
  if (shoal_chunk_store_open(&store, manifest, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  for (uint32_t i = 0; i < shoal_chunk_store_count(store); i++) {
    shoal_blob *chunk;
    shoal_status status = read_chunk(w, shoal_chunk_store_hash_of(store, i), &chunk, &err);
    if (status == SHOAL_OK)
      status = shoal_chunk_store_put(store, i, shoal_blob_bytes(chunk), shoal_blob_length(chunk), &err);
    if (status != SHOAL_OK) fail_msg("%s", err.text);
    shoal_blob_release(chunk);
  }
  assert_true(shoal_chunk_store_is_whole(store));
  return store;
}

static void check_file(const char *path, const void *bytes, size_t length) {
  uint8_t *got;
  size_t got_length;
  shoal_error err;
  if (shoal_file_read(path, 64 << 20, false, &got, &got_length, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(got_length, length);
  assert_memory_equal(got, bytes, length);
  free(got);
}

/* What comes out is the file. */
static void check_fetch(world *w, const char *name, const char *file, const void *bytes, size_t length) {
  shoal_manifest *manifest = manifest_of(w, name);
  shoal_chunk_store *store = fetch_all(w, manifest);
  assert_non_null(strstr(shoal_chunk_store_data(store), file));
  check_file(shoal_chunk_store_data(store), bytes, length);
  shoal_chunk_store_close(store);
  forget_manifest(manifest);
}

/* A table of exactly so many bytes. */
static char *table_of(size_t length) {
  char *text = malloc(length + 1);
  for (size_t i = 0; i < length; i++) text[i] = "12,3\n"[i % 5];
  memset(text + length - length % 5, '\n', length % 5);
  text[length] = 0;
  return text;
}

static void files_of_all_sizes_come_back_from_their_chunks(void **state) {
  (void)state;
  static const size_t sizes[] = {5,
                                 4999,
                                 SHOAL_CHUNK_BYTES - 1,
                                 SHOAL_CHUNK_BYTES,
                                 SHOAL_CHUNK_BYTES + 1,
                                 2 * SHOAL_CHUNK_BYTES + SHOAL_CHUNK_BYTES / 2};
  world w;
  open_world(&w, 0);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char name[16];
    char *text = table_of(sizes[i]);
    snprintf(name, sizeof name, "set%zu", i);
    must_upload(&w, name, "t.csv", text, sizes[i]);
    must_seal(&w, name, "csv", NULL);
    check_fetch(&w, name, "t.csv", text, sizes[i]);
    free(text);
  }
  close_world(&w);
}

/* Images are cut between images, so that a sample is in one chunk; zipped files are served unpacked. */
static void zipped_images_are_served_unpacked_and_cut_between_images(void **state) {
  (void)state;
  enum { COUNT = 3000 };
  const uint32_t images[3] = {COUNT, 28, 28}, labels[1] = {COUNT};
  uint8_t *pixels = malloc(16 + COUNT * 784), *classes = malloc(8 + COUNT);
  size_t pixels_length = make_idx(pixels, 3, images, 1), classes_length = make_idx(classes, 1, labels, 0);
  for (size_t i = 8; i < classes_length; i++) classes[i] %= 10;
  world w;
  open_world(&w, 0);
  assert_int_equal(system("mkdir -p named/mnist"), 0);
  put_gzip("named/mnist/train-images-idx3-ubyte.gz", pixels, pixels_length);
  put("named/mnist/train-labels-idx1-ubyte", classes, classes_length);
  char *zipped = NULL;
  size_t zipped_length;
  shoal_error err;
  assert_int_equal(shoal_file_read("named/mnist/train-images-idx3-ubyte.gz", 64 << 20, false,
                                   (uint8_t **)&zipped, &zipped_length, &err),
                   SHOAL_OK);
  must_upload(&w, "mine", "train-images-idx3-ubyte.gz", zipped, zipped_length);
  must_upload(&w, "mine", "train-labels-idx1-ubyte", classes, classes_length);
  must_seal(&w, "mine", "idx", NULL);
  cJSON *mine = ask(&w, shoal_datasets_describe, "mine");
  check_words(at(mine, "files"), "name", "train-images-idx3-ubyte train-labels-idx1-ubyte");
  cJSON_Delete(mine);
  for (int i = 0; i < 3; i++) {
    if (i == 2) assert_int_equal(system("rm -r server/data/named/mnist"), 0); /* it is unpacked again */
    shoal_manifest *manifest = manifest_of(&w, i == 1 ? "mine" : "mnist");
    assert_int_equal(manifest->files_count, 2);
    assert_string_equal(manifest->files[0].name, "train-images-idx3-ubyte");
    assert_int_equal(manifest->files[0].cut.head, 16);
    assert_int_equal(manifest->files[0].cut.record, 784);
    assert_int_equal(manifest->files[0].chunks_count, 1 + 3);
    assert_int_equal(manifest->files[1].cut.record, 0);
    shoal_chunk_store *store = fetch_all(&w, manifest);
    char path[512];
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", shoal_chunk_store_data(store));
    check_file(path, pixels, pixels_length);
    shoal_chunk_store_close(store);
    forget_manifest(manifest);
  }
  free(zipped);
  free(pixels);
  free(classes);
  close_world(&w);
}

static void a_broken_zip_is_refused(void **state) {
  (void)state;
  world w;
  open_world(&w, 0);
  shoal_error err;
  uint8_t *zipped;
  size_t length;
  put_gzip("wine.gz", WINE, sizeof WINE - 1);
  assert_int_equal(shoal_file_read("wine.gz", 1 << 20, false, &zipped, &length, &err), SHOAL_OK);
  must_upload(&w, "wine", "wine.csv.gz", zipped, length - 6);
  assert_int_equal(seal(&w, "wine", "csv", NULL, "Ann", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "wine.csv.gz", "unpacked");
  must_upload(&w, "wine", "wine.csv.gz", zipped, length);
  must_seal(&w, "wine", "csv", NULL);
  check_fetch(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  free(zipped);
  close_world(&w);
}

static void chunk_of(world *w, const char *name, char out[SHOAL_SHA256_HEX]) {
  cJSON *manifest = ask(w, shoal_datasets_manifest, name);
  const cJSON *first = at(at(manifest, "files")->child, "chunks")->child;
  snprintf(out, SHOAL_SHA256_HEX, "%s", first->valuestring);
  cJSON_Delete(manifest);
}

static shoal_status try_chunk(world *w, const char *sha256, shoal_error *err) {
  shoal_blob *bytes;
  shoal_status status = read_chunk(w, sha256, &bytes, err);
  assert_int_equal(status == SHOAL_OK, bytes != NULL);
  shoal_blob_release(bytes);
  return status;
}

static void chunks_are_found_after_a_restart(void **state) {
  (void)state;
  world w;
  shoal_error err;
  char mnist[SHOAL_SHA256_HEX], wine[SHOAL_SHA256_HEX];
  put_mnist(20);
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "wine", "csv", NULL);
  shoal_sha256_hex(WINE, sizeof WINE - 1, wine);
  assert_int_equal(try_chunk(&w, wine, &err), SHOAL_OK); /* the check has made its manifest */
  chunk_of(&w, "mnist", mnist);
  close_world(&w);
  open_world(&w, 0);
  assert_int_equal(try_chunk(&w, mnist, &err), SHOAL_OK);
  assert_int_equal(try_chunk(&w, wine, &err), SHOAL_OK);
  wine[0] = wine[0] == '0' ? '1' : '0';
  assert_int_equal(try_chunk(&w, wine, &err), SHOAL_NOT_FOUND);
  assert_int_equal(try_chunk(&w, "", &err), SHOAL_INVALID);
  assert_int_equal(try_chunk(&w, "../../../etc/passwd", &err), SHOAL_INVALID);
  memset(wine, 'A', 64);
  assert_int_equal(try_chunk(&w, wine, &err), SHOAL_INVALID);
  close_world(&w);
}

/* Changes one byte and leaves the times as they are, as a bad disk does. */
static void damage(const char *path) {
  struct stat about;
  assert_int_equal(stat(path, &about), 0);
  int fd = open(path, O_RDWR);
  assert_int_equal(pwrite(fd, "Z", 1, 1), 1);
  const struct timespec times[2] = {about.st_atim, about.st_mtim};
  assert_int_equal(futimens(fd, times), 0);
  close(fd);
}

static void a_damaged_file_is_never_sent(void **state) {
  (void)state;
  world w;
  shoal_error err;
  char chunk[SHOAL_SHA256_HEX];
  open_world(&w, 0);
  must_upload(&w, "one", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "one", "csv", NULL);
  chunk_of(&w, "one", chunk);
  assert_int_equal(try_chunk(&w, chunk, &err), SHOAL_OK);
  damage("server/data/sets/one/wine.csv");
  assert_int_equal(try_chunk(&w, chunk, &err), SHOAL_CORRUPT);
  CHECK_SAYS(&err, "sets/one/wine.csv", "damaged", "'one'");
  /* Another set has the same bytes, and they are good. */
  must_upload(&w, "two", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "two", "csv", NULL);
  chunk_of(&w, "two", chunk);
  assert_int_equal(try_chunk(&w, chunk, &err), SHOAL_OK);
  assert_int_equal(truncate("server/data/sets/two/wine.csv", 3), 0);
  assert_int_equal(try_chunk(&w, chunk, &err), SHOAL_CORRUPT);
  assert_int_equal(unlink("server/data/sets/two/wine.csv"), 0);
  assert_int_not_equal(try_chunk(&w, chunk, &err), SHOAL_OK);
  close_world(&w);
}

static void a_changed_file_has_a_new_manifest(void **state) {
  (void)state;
  world w;
  shoal_error err;
  char before[SHOAL_SHA256_HEX], after[SHOAL_SHA256_HEX];
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "wine", "csv", NULL);
  chunk_of(&w, "wine", before);
  put("server/data/sets/wine/wine.csv", "1,2\n3,4\n", 8);
  chunk_of(&w, "wine", after);
  assert_string_not_equal(before, after);
  assert_int_equal(try_chunk(&w, after, &err), SHOAL_OK);
  assert_int_equal(try_chunk(&w, before, &err), SHOAL_NOT_FOUND);
  assert_int_equal(shoal_datasets_delete(w.sets, "wine", "Ann", &err), SHOAL_OK);
  assert_int_equal(try_chunk(&w, after, &err), SHOAL_NOT_FOUND);
  close_world(&w);
}

/* A manifest that is kept may be cut short or be anything: then it is made again. */
static void a_spoilt_manifest_is_made_again(void **state) {
  (void)state;
  world w;
  char before[SHOAL_SHA256_HEX], after[SHOAL_SHA256_HEX];
  open_world(&w, 0);
  must_upload(&w, "wine", "wine.csv", WINE, sizeof WINE - 1);
  must_seal(&w, "wine", "csv", NULL);
  chunk_of(&w, "wine", before);
  for (off_t length = 0; length < 200; length += 13) {
    close_world(&w);
    assert_int_equal(truncate("server/data/sets/wine/.manifest", length), 0);
    open_world(&w, 0);
    chunk_of(&w, "wine", after);
    assert_string_equal(before, after);
  }
  close_world(&w);
}

/* ---- crashes ---- */

static void what_was_begun_is_settled_at_the_next_start(void **state) {
  (void)state;
  world w;
  shoal_error err;
  shoal_thing_row row;
  open_world(&w, 0);
  static const char *const names[] = {"moved", "gone", "stays"};
  for (int i = 0; i < 3; i++) {
    must_upload(&w, names[i], "wine.csv", WINE, sizeof WINE - 1);
    must_seal(&w, names[i], "csv", NULL);
  }
  /* Killed after the row, before the folder was moved. */
  assert_int_equal(rename("server/data/sets/moved", "server/data/drafts/moved"), 0);
  /* Killed in a deletion, after the row. And a folder of which this store knows nothing. */
  put("server/data/sets/gone/.deleted", "", 0);
  assert_int_equal(shoal_store_delete_thing(w.store, SHOAL_THING_DATASET, "gone", &err), SHOAL_OK);
  assert_int_equal(shoal_store_delete_thing(w.store, SHOAL_THING_DATASET, "stays", &err), SHOAL_OK);
  put("server/data/drafts/.incoming-0123", "half", 4);
  mkdir("server/data/drafts/.trash-0123", 0777);
  put("server/data/drafts/.trash-0123/x", "x", 1);
  close_world(&w);
  open_world(&w, 0);
  cJSON *manifest = ask(&w, shoal_datasets_manifest, "moved");
  cJSON_Delete(manifest);
  assert_false(shoal_file_exists("server/data/sets/gone"));
  assert_true(shoal_file_exists("server/data/sets/stays/wine.csv"));
  assert_int_equal(files_below("server/data/drafts"), 0);
  assert_int_equal(upload(&w, "stays", "x", "x", 1, "Ann", &err), SHOAL_CONFLICT);
  must_upload(&w, "gone", "x", "x", 1);
  /* A set whose files are gone says so, and can be deleted. */
  assert_int_equal(system("rm -r server/data/sets/moved"), 0);
  shoal_text path = {0};
  assert_int_equal(shoal_datasets_path(w.sets, "moved", &path, &err), SHOAL_CORRUPT);
  CHECK_SAYS(&err, "moved", "gone");
  assert_int_equal(shoal_datasets_delete(w.sets, "moved", "Ann", &err), SHOAL_OK);
  assert_int_equal(shoal_store_thing(w.store, SHOAL_THING_DATASET, "moved", &row, &err), SHOAL_NOT_FOUND);
  close_world(&w);
}

/* Uploads, seals and deletes until it is killed. */
static void make_and_delete(void) {
  world w;
  shoal_error err;
  open_world(&w, 0);
  for (int i = 0;; i = (i + 1) % 5) {
    char name[16];
    snprintf(name, sizeof name, "set%d", i);
    if (upload(&w, name, "train.csv", WINE, sizeof WINE - 1, "Ann", &err) == SHOAL_OK &&
        upload(&w, name, "test.csv", WINE, sizeof WINE - 1, "Ann", &err) == SHOAL_OK)
      seal(&w, name, "csv", NULL, "Ann", &err);
    snprintf(name, sizeof name, "set%d", (i + 3) % 5);
    shoal_datasets_delete(w.sets, name, "Ann", &err);
  }
}

static int check_folders(const char *where, world *w, bool are_sets) {
  int count = 0;
  DIR *here = opendir(where);
  assert_non_null(here);
  for (struct dirent *entry; (entry = readdir(here)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    assert_int_not_equal(entry->d_name[0], '.');
    count++;
    if (!are_sets) continue;
    cJSON *set = ask(w, shoal_datasets_describe, entry->d_name);
    check_samples(set, 5, 0, 5);
    check_words(at(set, "files"), "name", "train.csv test.csv");
    cJSON_Delete(set);
    check_opens(w, entry->d_name, "input 2\ndense 2\nloss cross-entropy\n",
                set = ask(w, shoal_datasets_describe, entry->d_name));
    cJSON_Delete(set);
    cJSON_Delete(ask(w, shoal_datasets_manifest, entry->d_name));
  }
  closedir(here);
  return count;
}

/* This machine may have some of the named ones. */
static int uploaded_in(const cJSON *list) {
  int count = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, at(list, "datasets")) count += cJSON_IsFalse(at(item, "built_in"));
  return count;
}

static void a_killed_server_leaves_drafts_and_whole_sets(void **state) {
  (void)state;
  shoal_key key = shoal_key_make(3, SHOAL_FOR_SPLIT, 1, 0);
  int sets_seen = 0;
  for (uint64_t i = 0; i < 30; i++) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) make_and_delete();
    shoal_clock_sleep(0.01 + 0.1 * shoal_random_uniform(key, i));
    int status;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    world w;
    open_world(&w, 0);
    check_folders("server/data/drafts", &w, false);
    int sets = check_folders("server/data/sets", &w, true);
    cJSON *list = ask(&w, describe_list, "");
    assert_int_equal(uploaded_in(list), sets);
    cJSON_Delete(list);
    sets_seen += sets;
    close_world(&w);
  }
  assert_true(sets_seen > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_table_is_described_as_a_training_reads_it),
      IN_FOLDER(a_chosen_target_is_kept),
      IN_FOLDER(numbers_are_classes_when_they_are_whole_and_few),
      IN_FOLDER(a_slip_in_a_column_of_numbers_is_found),
      IN_FOLDER(of_two_tables_the_one_for_test_is_the_second),
      IN_FOLDER(images_are_described),
      IN_FOLDER(photographs_are_described),
      IN_FOLDER(texts_are_described),
      IN_FOLDER(what_is_wrong_is_said_with_its_place),
      IN_FOLDER(bad_names_are_refused),
      IN_FOLDER(no_name_leaves_the_folder),
      IN_FOLDER(a_name_is_had_once),
      IN_FOLDER(a_file_that_comes_after_the_check_stops_the_sealing),
      IN_FOLDER(a_refused_draft_can_be_read_in_another_way),
      IN_FOLDER(a_table_says_how_it_is_written_and_what_it_has),
      IN_FOLDER(a_discarded_draft_leaves_nothing_and_an_old_one_goes),
      IN_FOLDER(uploads_are_limited),
      IN_FOLDER(there_are_so_many_sets_at_most),
      IN_FOLDER(built_in_sets_are_listed_with_the_others),
      IN_FOLDER(files_of_all_sizes_come_back_from_their_chunks),
      IN_FOLDER(zipped_images_are_served_unpacked_and_cut_between_images),
      IN_FOLDER(a_broken_zip_is_refused),
      IN_FOLDER(chunks_are_found_after_a_restart),
      IN_FOLDER(a_damaged_file_is_never_sent),
      IN_FOLDER(a_changed_file_has_a_new_manifest),
      IN_FOLDER(a_spoilt_manifest_is_made_again),
      IN_FOLDER(what_was_begun_is_settled_at_the_next_start),
      IN_FOLDER(a_killed_server_leaves_drafts_and_whole_sets),
  };
  return RUN_TESTS(tests);
}
