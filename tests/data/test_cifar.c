#include "files.h"

#include "data/cifar.h"

enum { RECORD = 3073 };

static void put_batch(const char *name, int records, int seed) {
  uint8_t *bytes = malloc((size_t)records * RECORD);
  assert_non_null(bytes);
  for (int i = 0; i < records * RECORD; i++)
    bytes[i] = (uint8_t)(i % RECORD == 0 ? (i / RECORD + seed) % 10 : i * 3 + seed);
  put(name, bytes, (size_t)records * RECORD);
  free(bytes);
}

static void put_all(void) {
  char name[32];
  for (int i = 1; i <= 5; i++) {
    snprintf(name, sizeof name, "data_batch_%d.bin", i);
    put_batch(name, i + 1, i); /* 2 + 3 + 4 + 5 + 6 records */
  }
  put_batch("test_batch.bin", 3, 7);
}

static void batches_are_numbered_through(void **state) {
  (void)state;
  assert_false(shoal_cifar_is_folder("."));
  put_all();
  assert_true(shoal_cifar_is_folder("."));
  shoal_images images;
  shoal_images_init(&images);
  shoal_error err;
  assert_int_equal(shoal_cifar_open(&images, ".", NULL, &err), SHOAL_OK);
  assert_int_equal(images.training, 20);
  assert_int_equal(images.test, 3);
  assert_int_equal(images.classes, 10);
  assert_int_equal(images.c * 10000 + images.h * 100 + images.w, 33232);
  assert_int_equal(shoal_images_label(&images, 0), 1);
  assert_int_equal(shoal_images_label(&images, 2), 2); /* the first of the second file */
  assert_int_equal(shoal_images_label(&images, 19), (5 + 5) % 10);
  assert_int_equal(shoal_images_label(&images, 20), 7);
  assert_int_equal(shoal_images_at(&images, 3)[10], (uint8_t)((RECORD + 11) * 3 + 2));
  shoal_images_release(&images);
}

static void check_refused(const char *file, const char *why) {
  shoal_images images;
  shoal_images_init(&images);
  shoal_error err;
  assert_int_not_equal(shoal_cifar_open(&images, ".", NULL, &err), SHOAL_OK);
  CHECK_SAYS(&err, file, why);
  shoal_images_release(&images);
}

static void malformed_batches_are_refused(void **state) {
  (void)state;
  put_all();
  assert_int_equal(truncate("data_batch_3.bin", 4 * RECORD - 1), 0);
  check_refused("data_batch_3.bin", "not a whole number of records");
  put("data_batch_3.bin", "", 0);
  check_refused("data_batch_3.bin", "not a whole number of records");
  uint8_t record[RECORD] = {10};
  put("data_batch_3.bin", record, RECORD);
  check_refused("data_batch_3.bin", "record 1 has the label 10");
  unlink("data_batch_3.bin");
  check_refused("data_batch_3.bin", "no such file");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(batches_are_numbered_through),
      IN_FOLDER(malformed_batches_are_refused),
  };
  return RUN_TESTS(tests);
}
