#include "check.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "nn/in_folder.h"
#include "nn/safetensors.h"

/* ---- round trips -------------------------------------------------------------------- */

static const float floats[6] = {0, -1.5f, 3e38f, 1e-40f, INFINITY, -0.0f};
static const int64_t longs[2] = {INT64_MIN, 7};
static const int32_t ints[3] = {1, -2, INT32_MAX};
static const uint8_t bytes[5] = {0, 1, 2, 254, 255};

static const shoal_tensor tensors[] = {
    {.name = "weights", .dtype = SHOAL_F32, .dims_count = 2, .dims = {2, 3}, .data = floats, .bytes = 24},
    {.name = "long", .dtype = SHOAL_I64, .dims_count = 1, .dims = {2}, .data = longs, .bytes = 16},
    {.name = "empty", .dtype = SHOAL_F32, .dims_count = 2, .dims = {0, 9}, .data = "", .bytes = 0},
    {.name = "odd", .dtype = SHOAL_U8, .dims_count = 1, .dims = {5}, .data = bytes, .bytes = 5},
    {.name = "int", .dtype = SHOAL_I32, .dims_count = 3, .dims = {1, 3, 1}, .data = ints, .bytes = 12},
    {.name = "scalar", .dtype = SHOAL_F32, .dims_count = 0, .data = floats + 1, .bytes = 4},
};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

static void check_same(const shoal_tensor *a, const shoal_tensor *b) {
  assert_string_equal(a->name, b->name);
  assert_int_equal(a->dtype, b->dtype);
  assert_int_equal(a->dims_count, b->dims_count);
  assert_memory_equal(a->dims, b->dims, a->dims_count * sizeof a->dims[0]);
  assert_int_equal(a->bytes, b->bytes);
  assert_memory_equal(a->data, b->data, a->bytes);
}

static void what_is_saved_is_loaded(void **state) {
  (void)state;
  const shoal_meta meta[] = {{"text", "line\nwith \"quotes\", tab\t and \xc3\xa9"}, {"a", ""}};
  shoal_error err;
  assert_int_equal(shoal_safetensors_save("a.safetensors", tensors, TENSORS, meta, 2, &err), SHOAL_OK);
  shoal_safetensors *file;
  assert_int_equal(shoal_safetensors_load(&file, "a.safetensors", &err), SHOAL_OK);
  assert_int_equal(file->tensors_count, TENSORS);
  assert_int_equal(file->meta_count, 2);
  for (int i = 0; i < TENSORS; i++) check_same(shoal_safetensors_find(file, tensors[i].name), &tensors[i]);
  check_same(&file->tensors[0], &tensors[0]);
  assert_string_equal(shoal_safetensors_meta(file, "text"), meta[0].value);
  assert_string_equal(shoal_safetensors_meta(file, "a"), "");
  assert_null(shoal_safetensors_meta(file, "b"));
  assert_null(shoal_safetensors_find(file, "weight"));
  shoal_safetensors_destroy(file);
}

static void the_data_starts_at_a_multiple_of_64(void **state) {
  (void)state;
  char name[100];
  for (size_t length = 1; length < sizeof name; length++) {
    memset(name, 'x', length);
    name[length] = 0;
    shoal_tensor tensor = tensors[0];
    tensor.name = name;
    assert_int_equal(shoal_safetensors_save("a", &tensor, 1, NULL, 0, NULL), SHOAL_OK);
    uint8_t *all;
    size_t all_bytes;
    assert_int_equal(shoal_file_read("a", 1 << 20, false, &all, &all_bytes, NULL), SHOAL_OK);
    assert_int_equal((all_bytes - tensor.bytes) % 64, 0);
    assert_int_equal(8 + all[0] + 256u * all[1], all_bytes - tensor.bytes);
    free(all);
  }
}

static void a_file_without_tensors_or_metadata_is_one(void **state) {
  (void)state;
  shoal_error err;
  shoal_safetensors *file;
  assert_int_equal(shoal_safetensors_save("a", NULL, 0, NULL, 0, &err), SHOAL_OK);
  assert_int_equal(shoal_safetensors_load(&file, "a", &err), SHOAL_OK);
  assert_int_equal(file->tensors_count, 0);
  assert_null(shoal_safetensors_find(file, "x"));
  assert_null(shoal_safetensors_meta(file, "x"));
  shoal_safetensors_destroy(file);
}

/* ---- files from elsewhere ----------------------------------------------------------- */

/* A file with this header and so many zero bytes of data. */
static shoal_status parse(const char *header, size_t data_bytes, shoal_safetensors **file, shoal_error *err) {
  size_t length = strlen(header);
  uint8_t *all = calloc(1, 8 + length + data_bytes + 1);
  for (int i = 0; i < 8; i++) all[i] = (uint8_t)((uint64_t)length >> (8 * i));
  memcpy(all + 8, header, length);
  shoal_status status = shoal_safetensors_parse(file, "x.safetensors", all, 8 + length + data_bytes, err);
  free(all);
  return status;
}

#define T(name, type, shape, offsets) \
  "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void spaces_order_and_empty_tensors_do_not_matter(void **state) {
  (void)state;
  shoal_safetensors *file;
  shoal_error err;
  const char *header = "{ " T("b", "F32", "[2]", "[4,12]") " , " T("e", "F32", "[0]", "[4,4]") ",\n" T(
      "a", "I32", "[]", "[0,4]") ", \"__metadata__\":{}}   ";
  assert_int_equal(parse(header, 12, &file, &err), SHOAL_OK);
  assert_int_equal(file->tensors_count, 3);
  assert_string_equal(file->tensors[0].name, "a");
  assert_string_equal(file->tensors[1].name, "e");
  assert_string_equal(file->tensors[2].name, "b");
  shoal_safetensors_destroy(file);
}

static void a_corrupt_header_is_refused_with_its_fault(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t data_bytes;
    const char *says;
  } cases[] = {
      {"", 0, "does not start with '{'"},
      {"[]", 0, "does not start with '{'"},
      {" {}", 0, "does not start with '{'"},
      {"{", 0, "not JSON"},
      {"{\"a\":}", 0, "not JSON"},
      {"{} {}", 0, "goes on after its JSON"},
      {"{}\n", 0, "goes on after its JSON"},
      {"{}", 1, "1 bytes at the end belong to no tensor"},
      {"{\"a\":5}", 0, "'a' is not described by an object"},
      {"{\"a\":{}}", 0, "'dtype' is missing"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, "'data_offsets' is missing"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 4, "'dtype' is given twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"extra\":1}}", 4, "unknown field 'extra'"},
      {"{\"a\":{\"dtype\":4}}", 4, "'dtype' is not a text"},
      {"{" T("a", "F16", "[2]", "[0,4]") "}", 4, "type 'F16'"},
      {"{" T("a", "F64", "[2]", "[0,8]") "}", 8, "has 8 bytes"},
      {"{" T("a", "f32", "[1]", "[0,4]") "}", 4, "type 'f32'"},
      {"{" T("a", "F32", "1", "[0,4]") "}", 4, "'shape' is not a list"},
      {"{" T("a", "F32", "[-1]", "[0,4]") "}", 4, "other than sizes"},
      {"{" T("a", "F32", "[0.5]", "[0,4]") "}", 4, "other than sizes"},
      {"{" T("a", "F32", "[\"1\"]", "[0,4]") "}", 4, "other than sizes"},
      {"{" T("a", "F32", "[1e300]", "[0,4]") "}", 4, "other than sizes"},
      {"{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "more than 8 dimensions"},
      {"{" T("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "its shape and type do not make"},
      {"{" T("a", "F32", "[4611686018427387904]", "[0,0]") "}", 0, "other than sizes"},
      {"{" T("a", "F32", "[2]", "[0,4]") "}", 4, "its shape and type do not make"},
      {"{" T("a", "F32", "[1]", "[0]") "}", 4, "not a pair of offsets"},
      {"{" T("a", "F32", "[1]", "[0,4,8]") "}", 4, "not a pair of offsets"},
      {"{" T("a", "F32", "[1]", "{}") "}", 4, "not a pair of offsets"},
      {"{" T("a", "F32", "[1]", "[-4,0]") "}", 4, "not a pair of offsets"},
      {"{" T("a", "F32", "[1]", "[4,0]") "}", 4, "outside the file's 4 bytes"},
      {"{" T("a", "F32", "[1]", "[4,8]") "}", 4, "outside the file's 4 bytes"},
      {"{" T("a", "F32", "[1]", "[9007199254740988,9007199254740992]") "}", 4, "not a pair of offsets"},
      {"{" T("a", "F32", "[1]", "[4,8]") "}", 8, "gap before tensor 'a'"},
      {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[8,12]") "}", 12, "gap before tensor 'b'"},
      {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[4,12]") "}", 12, "'b' overlaps 'a'"},
      {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[0,4]") "}", 4, "overlaps"},
      {"{" T("a", "F32", "[1]", "[0,4]") "," T("a", "F32", "[1]", "[4,8]") "}", 8, "'a' is there twice"},
      {"{\"__metadata__\":[]}", 0, "'__metadata__' is not an object"},
      {"{\"__metadata__\":{\"k\":1}}", 0, "metadata 'k' is not a text"},
      {"{\"__metadata__\":{\"k\":{}}}", 0, "metadata 'k' is not a text"},
      {"{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0, "metadata 'k' is given twice"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "'__metadata__' is given twice"},
      {"{\"a\":[[[]]]}", 0, "nests too deep"},
      {"{\"a\\u0000b\":{}}", 0, "zero character"},
      {"{\"a\nb\":{}}", 0, "byte 10 at offset 11"},
      {"{\"a\\", 0, "not JSON"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_safetensors *file = (void *)1;
    shoal_error err = {0};
    shoal_status status = parse(cases[i].header, cases[i].data_bytes, &file, &err);
    if (status == SHOAL_OK || strncmp(err.text, "x.safetensors: ", 15) || !strstr(err.text, cases[i].says))
      fail_msg("case %zu: \"%s\" does not say \"%s\"", i, err.text, cases[i].says);
    assert_null(file);
    assert_int_not_equal(parse(cases[i].header, cases[i].data_bytes, &file, NULL), SHOAL_OK);
  }
}

static void a_length_that_cannot_be_is_refused(void **state) {
  (void)state;
  shoal_error err;
  shoal_safetensors *file;
  const uint8_t all[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'},
                huge[10] = {2, 0, 0, 0, 0, 0, 0, 0x80, '{', '}'};
  for (size_t length = 0; length < 8; length++) {
    assert_int_equal(shoal_safetensors_parse(&file, "x", all, length, &err), SHOAL_CORRUPT);
    assert_string_equal(err.text, "x: too short for a safetensors file");
  }
  assert_int_equal(shoal_safetensors_parse(&file, "x", all, 10, &err), SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "cut short"));
  assert_int_equal(shoal_safetensors_parse(&file, "x", huge, 10, &err), SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "cut short"));

  size_t length = SHOAL_SAFETENSORS_HEADER_MAX + 1;
  char *header = malloc(length + 1);
  memset(header, ' ', length);
  header[0] = '{';
  header[1] = '}';
  header[length] = 0;
  assert_int_equal(parse(header, 0, &file, &err), SHOAL_LIMIT);
  assert_non_null(strstr(err.text, "is the most"));
  header[length - 1] = 0;
  assert_int_equal(parse(header, 0, &file, &err), SHOAL_OK);
  shoal_safetensors_destroy(file);
  memset(header + 1, ',', 2 << 20);
  assert_int_equal(parse(header, 0, &file, &err), SHOAL_LIMIT);
  assert_non_null(strstr(err.text, "more than 1048576 values"));
  free(header);
}

/* Cut at any place, or with any one byte of its header changed, a file is refused or still
 * makes sense; with sanitizers this shows that nothing outside it is touched. */
static void a_damaged_file_never_breaks_the_reader(void **state) {
  (void)state;
  const shoal_meta meta[] = {{"key", "value"}};
  assert_int_equal(shoal_safetensors_save("a", tensors, TENSORS, meta, 1, NULL), SHOAL_OK);
  uint8_t *all;
  size_t length;
  assert_int_equal(shoal_file_read("a", 1 << 20, false, &all, &length, NULL), SHOAL_OK);
  shoal_safetensors *file;
  for (size_t cut = 0; cut < length; cut++)
    assert_int_not_equal(shoal_safetensors_parse(&file, "x", all, cut, NULL), SHOAL_OK);
  static const uint8_t others[] = {0, ' ', '"', '{', '}', '[', ']', ',', ':', '0', '9', '\\', 0xff};
  for (size_t at = 0; at < length; at++) {
    uint8_t old = all[at];
    for (size_t i = 0; i < sizeof others; i++) {
      all[at] = others[i];
      if (shoal_safetensors_parse(&file, "x", all, length, NULL) == SHOAL_OK) {
        for (size_t t = 0; t < file->tensors_count; t++)
          assert_ptr_equal(shoal_safetensors_find(file, file->tensors[t].name), &file->tensors[t]);
        shoal_safetensors_destroy(file);
      }
    }
    all[at] = old;
  }
  free(all);
}

static void what_cannot_be_opened_says_why(void **state) {
  (void)state;
  shoal_safetensors *file;
  shoal_error err;
  assert_int_equal(shoal_safetensors_load(&file, "none", &err), SHOAL_NOT_FOUND);
  assert_string_equal(err.text, "none: no such file");
  assert_int_equal(shoal_safetensors_load(&file, ".", &err), SHOAL_INVALID);
  assert_string_equal(err.text, ".: is not a file");
  fclose(fopen("empty", "w"));
  assert_int_equal(shoal_safetensors_load(&file, "empty", &err), SHOAL_CORRUPT);
  assert_string_equal(err.text, "empty: too short for a safetensors file");
}

/* ---- failing disks ------------------------------------------------------------------ */

static void a_full_device_is_reported(void **state) {
  (void)state;
  shoal_error err;
  assert_int_equal(shoal_safetensors_save("/dev/full", tensors, TENSORS, NULL, 0, &err), SHOAL_FULL);
  assert_non_null(strstr(err.text, "/dev/full: no space left"));
}

static void a_failed_save_keeps_the_old_file_and_leaves_no_part(void **state) {
  (void)state;
  enum { LARGE = 1 << 20 };
  shoal_error err;
  shoal_tensor large = {.name = "large", .dtype = SHOAL_U8, .dims_count = 1, .dims = {LARGE}, .bytes = LARGE};
  void *zeros = calloc(1, LARGE);
  large.data = zeros;
  assert_int_equal(shoal_safetensors_save("a", tensors, TENSORS, NULL, 0, &err), SHOAL_OK);
  limit_files(LARGE / 2);
  assert_int_equal(shoal_safetensors_save("a", &large, 1, NULL, 0, &err), SHOAL_IO);
  assert_int_equal(shoal_safetensors_save("b", &large, 1, NULL, 0, &err), SHOAL_IO);
  limit_files(0);
  assert_int_equal(files_here(), 1);
  shoal_safetensors *file;
  assert_int_equal(shoal_safetensors_load(&file, "a", &err), SHOAL_OK);
  check_same(shoal_safetensors_find(file, "weights"), &tensors[0]);
  shoal_safetensors_destroy(file);
  free(zeros);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_is_saved_is_loaded),
      IN_FOLDER(the_data_starts_at_a_multiple_of_64),
      IN_FOLDER(a_file_without_tensors_or_metadata_is_one),
      IN_FOLDER(spaces_order_and_empty_tensors_do_not_matter),
      IN_FOLDER(a_corrupt_header_is_refused_with_its_fault),
      IN_FOLDER(a_length_that_cannot_be_is_refused),
      IN_FOLDER(a_damaged_file_never_breaks_the_reader),
      IN_FOLDER(what_cannot_be_opened_says_why),
      IN_FOLDER(a_full_device_is_reported),
      IN_FOLDER(a_failed_save_keeps_the_old_file_and_leaves_no_part),
  };
  return RUN_TESTS(tests);
}
