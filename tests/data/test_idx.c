#include "files.h"

#include "data/idx.h"

static void a_file_round_trips(void **state) {
  (void)state;
  uint8_t bytes[512];
  const uint32_t dims[] = {3, 2, 4, 5};
  for (int count = 1; count <= 4; count++) {
    size_t length = make_idx(bytes, count, dims, 11);
    shoal_idx idx;
    shoal_error err;
    assert_int_equal(shoal_idx_parse(&idx, "f", bytes, length, &err), SHOAL_OK);
    assert_int_equal(idx.dims_count, count);
    assert_memory_equal(idx.dims, dims, (size_t)count * sizeof *dims);
    assert_ptr_equal(idx.values, bytes + 4 + 4 * count);
    uint64_t values = 1;
    for (int i = 1; i < count; i++) values *= dims[i];
    assert_true(idx.sample_values == values);
  }
}

static void malformed_files_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
    const char *why;
  } cases[] = {
      {"", 0, "not an IDX file"},
      {"\0\0\x08", 3, "not an IDX file"},
      {"\1\0\x08\1\0\0\0\1x", 9, "not an IDX file"},
      {"\0\1\x08\1\0\0\0\1x", 9, "not an IDX file"},
      {"\0\0\x0d\1\0\0\0\1xxxx", 12, "type 0x0d"},
      {"\0\0\x08\0", 4, "0 dimensions"},
      {"\0\0\x08\5\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1x", 25, "5 dimensions"},
      {"\0\0\x08\2\0\0\0\1\0\0\0", 11, "ends inside its header"},
      {"\0\0\x08\1\0\0\0\0", 8, "dimension 1 is zero"},
      {"\0\0\x08\2\0\0\0\1\0\0\0\0", 12, "dimension 2 is zero"},
      {"\0\0\x08\1\0\0\0\3ab", 10, "announces 3 values, but 2 follow"},
      {"\0\0\x08\1\0\0\0\3abcd", 12, "announces 3 values, but 4 follow"},
      {"\0\0\x08\2\0\0\0\1\x7f\xff\xff\xff", 12, "more than"},
      {"\0\0\x08\4\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20, "more than"},
      {"\0\0\x08\1\xff\xff\xff\xff", 8, "announces 4294967295 values"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_idx idx;
    shoal_error err;
    assert_int_not_equal(
        shoal_idx_parse(&idx, "some.idx", (const uint8_t *)cases[i].bytes, cases[i].length, &err), SHOAL_OK);
    CHECK_SAYS(&err, "some.idx", cases[i].why);
  }
}

static void put_idx(const char *path, bool zipped, int dims_count, const uint32_t *dims, uint8_t seed) {
  uint8_t bytes[4096];
  size_t length = make_idx(bytes, dims_count, dims, seed);
  if (zipped)
    put_gzip(path, bytes, length);
  else
    put(path, bytes, length);
}

static void a_folder_holds_training_and_test(void **state) {
  (void)state;
  const uint32_t train[] = {6, 4, 5}, test[] = {2, 4, 5};
  put_idx("train-images-idx3-ubyte", false, 3, train, 1);
  put_idx("train-labels-idx1-ubyte.gz", true, 1, train, 0);
  put_idx("t10k-images.idx3-ubyte", false, 3, test, 2);
  put_idx("t10k-labels-idx1-ubyte", false, 1, test, 9);
  assert_true(shoal_idx_is_folder("."));
  shoal_images images;
  shoal_images_init(&images);
  shoal_error err;
  assert_int_equal(shoal_idx_open_folder(&images, ".", NULL, &err), SHOAL_OK);
  assert_int_equal(images.training, 6);
  assert_int_equal(images.test, 2);
  assert_int_equal(images.c * 10000 + images.h * 100 + images.w, 10405);
  assert_true(images.labeled);
  assert_int_equal(images.classes, 36); /* the largest label is 5 * 7 */
  assert_int_equal(shoal_images_at(&images, 5)[19], (uint8_t)(119 * 7 + 1));
  assert_int_equal(shoal_images_at(&images, 7)[0], (uint8_t)(20 * 7 + 2));
  assert_int_equal(shoal_images_label(&images, 5), 35);
  assert_int_equal(shoal_images_label(&images, 7), 16);
  shoal_images_release(&images);
}

static void check_refused(const char *word, const char *why) {
  shoal_images images;
  shoal_images_init(&images);
  shoal_error err;
  assert_int_not_equal(shoal_idx_open_folder(&images, ".", NULL, &err), SHOAL_OK);
  CHECK_SAYS(&err, word, why);
  shoal_images_release(&images);
}

static void folders_that_do_not_fit_together_are_refused(void **state) {
  (void)state;
  const uint32_t six[] = {6, 4, 5}, five[] = {5, 4, 5}, wide[] = {2, 4, 6};
  check_refused("train-images-idx3", "missing");
  put_idx("train-images-idx3-ubyte", false, 3, six, 1);
  check_refused("train-labels-idx1", "missing");
  put_idx("train-labels-idx1-ubyte", false, 1, five, 1);
  check_refused("train-labels-idx1-ubyte", "5 labels for the 6 images");
  put_idx("train-labels-idx1-ubyte", false, 3, six, 1);
  check_refused("train-labels-idx1-ubyte", "labels have one");
  put_idx("train-labels-idx1-ubyte", false, 1, six, 1);
  put_idx("t10k-labels-idx1-ubyte", false, 1, wide, 1);
  check_refused("t10k-images-idx3", "missing");
  put_idx("t10k-images-idx3-ubyte", false, 3, wide, 1);
  check_refused("t10k-images-idx3-ubyte", "images of 1x4x6, where the training images are 1x4x5");
  put_idx("t10k-images-idx3-ubyte", false, 1, wide, 1);
  check_refused("t10k-images-idx3-ubyte", "1 dimension");
}

static void one_file_takes_its_labels_from_beside_it(void **state) {
  (void)state;
  const uint32_t dims[] = {6, 4, 5};
  put_idx("some-images-idx3-ubyte.gz", true, 3, dims, 1);
  put_idx("some-labels-idx1-ubyte", false, 1, dims, 0);
  assert_true(shoal_idx_is_images("some-images-idx3-ubyte.gz"));
  assert_false(shoal_idx_is_images("some-labels-idx1-ubyte"));
  assert_false(shoal_idx_is_images("absent"));
  for (int unlabeled = 0; unlabeled < 2; unlabeled++) {
    shoal_images images;
    shoal_images_init(&images);
    shoal_error err;
    assert_int_equal(shoal_idx_open_file(&images, "./some-images-idx3-ubyte.gz", unlabeled, true, &err),
                     SHOAL_OK);
    assert_int_equal(images.training, 0);
    assert_int_equal(images.test, 6);
    assert_int_equal(images.labeled, !unlabeled);
    assert_int_equal(shoal_images_label(&images, 3), unlabeled ? 0 : 21);
    shoal_images_release(&images);
  }
}

static void mean_and_deviation_are_those_of_the_training_part(void **state) {
  (void)state;
  const uint32_t dims[] = {100, 2, 3, 5}; /* two channels */
  uint8_t bytes[4096];
  put("train-images-idx3-ubyte", bytes, make_idx(bytes, 4, dims, 3));
  put("train-labels-idx1-ubyte", bytes, make_idx(bytes, 1, dims, 0));
  for (int held = 0; held < 2; held++) {
    shoal_images images;
    shoal_images_init(&images);
    shoal_error err;
    assert_int_equal(shoal_idx_open_folder(&images, ".", NULL, &err), SHOAL_OK);
    shoal_parts parts;
    shoal_parts_init(&parts, 100, 0, held ? 0.3 : 0);
    shoal_images_fit(&images, &parts);
    for (uint32_t c = 0; c < 2; c++) {
      double sum = 0, squares = 0, n = 0;
      for (uint64_t i = 0; i < parts.count[SHOAL_TRAIN]; i++) {
        const uint8_t *plane = shoal_images_at(&images, shoal_parts_number(&parts, SHOAL_TRAIN, i)) + c * 15;
        for (int k = 0; k < 15; k++, n++) {
          sum += plane[k] / 255.0;
          squares += plane[k] / 255.0 * (plane[k] / 255.0);
        }
      }
      double mean = sum / n, variance = squares / n - mean * mean;
      assert_true(images.mean[c] - mean < 1e-12 && mean - images.mean[c] < 1e-12);
      double square = images.deviation[c] * images.deviation[c];
      assert_true(square - variance < 1e-12 && variance - square < 1e-12);
    }
    shoal_images_release(&images);
  }
}

static void a_written_folder_is_read_again_with_the_names_of_its_classes(void **state) {
  (void)state;
  const uint32_t train[] = {6, 3, 4, 5}, test[] = {2, 3, 4, 5};
  const char *sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  put_idx("train-images-idx3-ubyte", false, 4, train, 1);
  put_idx("train-labels-idx1-ubyte", false, 1, train, 0);
  put_idx("t10k-images-idx3-ubyte", false, 4, test, 2);
  put_idx("t10k-labels-idx1-ubyte", false, 1, test, 9);
  shoal_images images, again;
  shoal_names names, read;
  char said[SHOAL_SHA256_HEX] = "";
  shoal_error err;
  shoal_images_init(&images);
  shoal_images_init(&again);
  shoal_names_init(&names);
  shoal_names_init(&read);
  assert_int_equal(shoal_idx_open_folder(&images, ".", NULL, &err), SHOAL_OK);
  assert_int_equal(shoal_idx_read_about(&images, ".", &read, said, &err), SHOAL_OK); /* there is none */
  assert_int_equal(read.count, 0);
  for (char name[] = "0"; names.count < 40; name[0]++) shoal_names_add(&names, name, 1);
  assert_int_equal(mkdir("packed", 0700), 0);
  assert_int_equal(shoal_idx_write_folder(&images, &names, sha256, "packed", &err), SHOAL_OK);
  assert_int_equal(shoal_idx_open_folder(&again, "packed", NULL, &err), SHOAL_OK);
  assert_int_equal(shoal_idx_read_about(&again, "packed", &read, said, &err), SHOAL_OK);
  assert_string_equal(said, sha256);
  assert_int_equal(read.count, 40);
  assert_string_equal(shoal_names_at(&read, 2), "2");
  assert_int_equal(again.classes, 40); /* labels are below 36 */
  assert_true(again.training == 6 && again.test == 2 && again.c == 3 && again.h == 4 && again.w == 5);
  for (uint64_t i = 0; i < 8; i++) {
    assert_memory_equal(shoal_images_at(&again, i), shoal_images_at(&images, i), 60);
    assert_int_equal(shoal_images_label(&again, i), shoal_images_label(&images, i));
  }
  static const char *const wrong[] = {"{\"classes\":[\"a\",\"b\"]}", "{\"classes\":7}", "[]", "{"};
  static const char *const why[] = {"2 names for 40 classes", "classes", "not an object", "not an object"};
  for (int i = 0; i < 4; i++) {
    shoal_names_release(&read);
    shoal_names_init(&read);
    put_text("packed/about.json", wrong[i]);
    assert_int_not_equal(shoal_idx_read_about(&again, "packed", &read, said, &err), SHOAL_OK);
    CHECK_SAYS(&err, "about.json", why[i]);
  }
  shoal_names_release(&read);
  shoal_names_release(&names);
  shoal_images_release(&images);
  shoal_images_release(&again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_round_trips),
      cmocka_unit_test(malformed_files_are_refused),
      IN_FOLDER(a_folder_holds_training_and_test),
      IN_FOLDER(folders_that_do_not_fit_together_are_refused),
      IN_FOLDER(one_file_takes_its_labels_from_beside_it),
      IN_FOLDER(a_written_folder_is_read_again_with_the_names_of_its_classes),
      IN_FOLDER(mean_and_deviation_are_those_of_the_training_part),
  };
  return RUN_TESTS(tests);
}
