/* Counting class by class gives what one counts by hand, for few classes and for many, whatever the order; a table
 * fits its width, names of any length and script stay in line, pictures are as wide as they were asked to be. */
#include "check.h"

#include <string.h>

#include "cli/classes.h"
#include "train/confusion.h"

static const char *letter(const void *self, uint32_t index) {
  (void)self;
  static const char *const names[] = {"a", "b", "häuserzeile mit sehr vielen fenstern"};
  return index < 3 ? names[index] : NULL;
}

static const shoal_confusion_words words = {.name = letter};

static void add(shoal_confusion *c, uint64_t sample, uint32_t truth, uint32_t guess, double sure) {
  shoal_confusion_add(
      c, &(shoal_confusion_sample){sample, truth, guess, sure, truth == guess ? sure : 1 - sure});
}

static void by_hand(void **state) {
  (void)state;
  shoal_confusion c;
  assert_int_equal(shoal_confusion_init(&c, 4, false, NULL), SHOAL_OK);
  for (int pass = 0; pass < 2; pass++) { /* the same after clear */
    shoal_confusion_clear(&c);
    for (uint64_t i = 0; i < 6; i++) add(&c, i, 0, 0, 0.9);
    add(&c, 6, 0, 1, 0.6);
    add(&c, 7, 0, 1, 0.8);
    for (uint64_t i = 8; i < 12; i++) add(&c, i, 1, 1, 0.7);
    add(&c, 12, 2, 0, 0.8);
    add(&c, 13, 9, 0, 0.8); /* no class */
    shoal_confusion_finish(&c);
  }
  assert_int_equal(c.samples, 13);
  assert_int_equal(c.right, 10);
  assert_float_equal(c.of[0].precision, 6. / 7, 1e-15);
  assert_float_equal(c.of[0].recall, 6. / 8, 1e-15);
  assert_float_equal(c.of[1].f1, 2 * 4. / (4 + 6), 1e-15);
  assert_float_equal(c.of[2].f1, 0, 0);
  assert_float_equal(c.mean.recall, (6. / 8 + 1 + 0) / 3, 1e-15); /* the fourth class does not occur */
  assert_int_equal(c.worst_count, 3);
  assert_int_equal(c.worst[0].sample, 7);
  assert_int_equal(c.worst[1].sample, 12);
  uint64_t matrix[16];
  shoal_confusion_matrix(&c, matrix);
  const uint64_t wanted[16] = {6, 2, 0, 0, 0, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  assert_memory_equal(matrix, wanted, sizeof wanted);
  shoal_confusion_release(&c);
}

/* Many more wrong answers than different cells: the list is added up, and does not grow with them. */
static void many_classes(void **state) {
  (void)state;
  enum { CLASSES = 3000, ROUNDS = 200 };
  shoal_confusion c;
  assert_int_equal(shoal_confusion_init(&c, CLASSES, false, NULL), SHOAL_OK);
  for (uint64_t i = 0; i < (uint64_t)CLASSES * ROUNDS; i++)
    add(&c, i, (uint32_t)(i % CLASSES), (uint32_t)(i % CLASSES + 1) % CLASSES, 0.9);
  for (int i = 0; i < 5; i++) add(&c, 7, 2, 1, 0.9);
  shoal_confusion_finish(&c);
  assert_int_equal(c.cells_count, CLASSES + 1);
  assert_true(c.cells_capacity <= 4 * CLASSES);
  assert_false(c.failed);
  assert_int_equal(c.cells[0].count, ROUNDS);
  assert_int_equal(c.cells[CLASSES].count, 5);
  shoal_text text = {0};
  shoal_classes_text(&text, &c, &words,
                     &(shoal_classes_view){.unit = "samples", .place = "sample", .width = 80});
  assert_non_null(strstr(text.bytes, "The weakest of 3,000 classes"));
  assert_non_null(strstr(text.bytes, "Confused most:"));
  assert_null(strstr(text.bytes, "Confusion matrix:"));
  assert_true(text.length < 4000);
  shoal_text_release(&text);
  shoal_confusion_release(&c);
}

static void each_output(void **state) {
  (void)state;
  shoal_confusion c;
  assert_int_equal(shoal_confusion_init(&c, 3, true, NULL), SHOAL_OK);
  shoal_confusion_add_each(&c, 0, (const float[]){0.9f, 0.8f, 0.1f}, (const float[]){1, 1, 0});
  shoal_confusion_add_each(&c, 1, (const float[]){0.9f, 0.2f, 0.1f}, (const float[]){0, 1, 0});
  shoal_confusion_finish(&c);
  assert_int_equal(c.right, 1);
  assert_float_equal(c.of[0].precision, 0.5, 0);
  assert_float_equal(c.of[1].recall, 0.5, 0);
  assert_int_equal(c.cells_count, 0);
  assert_int_equal(c.worst_count, 1);
  shoal_confusion_release(&c);
}

static uint32_t columns_of(const char *line, const char *end) {
  uint32_t count = 0;
  for (; line < end; line++) count += ((unsigned char)*line & 0xc0) != 0x80;
  return count;
}

static void text_fits(void **state) {
  (void)state;
  shoal_confusion c;
  assert_int_equal(shoal_confusion_init(&c, 3, false, NULL), SHOAL_OK);
  for (uint64_t i = 0; i < 12345; i++) add(&c, i, i % 3, i % 7 % 3, 0.5);
  shoal_confusion_finish(&c);
  for (uint32_t width = 60; width <= 80; width += 20) {
    shoal_text text = {0};
    shoal_classes_text(&text, &c, &words,
                       &(shoal_classes_view){.unit = "rows", .place = "line", .width = width});
    assert_non_null(strstr(text.bytes, "Confusion matrix:"));
    assert_true(shoal_utf8_valid(text.bytes, text.length));
    const char *matrix = strstr(text.bytes, "Confusion matrix:"),
               *worst = strstr(text.bytes, "\nMost wrong:");
    for (const char *line = strchr(matrix, '\n') + 1; line < worst; line = strchr(line, '\n') + 1)
      assert_int_equal(columns_of(line, strchr(line, '\n')), 24 + 4 + 3 * 5); /* in line, the long name cut */
    shoal_text_release(&text);
  }
  shoal_text text = {0};
  shoal_classes_text(&text, &c, &words, &(shoal_classes_view){.unit = "rows", .place = "line", .width = 40});
  assert_null(strstr(text.bytes, "Confusion matrix:"));
  assert_non_null(strstr(text.bytes, "Confused most:"));
  shoal_text_release(&text);
  shoal_confusion_release(&c);
}

static const char *strange_file(const void *self, uint64_t sample) {
  (void)self;
  return sample == 0 ? "a\x1b[31m\xe9.png" : "h\xc3\xa4user.png";
}

static void names_of_files_are_plain_and_in_line(void **state) {
  (void)state;
  shoal_confusion c;
  shoal_text text = {0};
  assert_int_equal(shoal_confusion_init(&c, 2, false, NULL), SHOAL_OK);
  add(&c, 0, 0, 1, 0.9);
  add(&c, 1, 0, 1, 0.8);
  shoal_confusion_finish(&c);
  shoal_classes_text(
      &text, &c, &words,
      &(shoal_classes_view){.unit = "images", .place = "sample", .file = strange_file, .width = 80});
  assert_non_null(strstr(text.bytes, "\na?[31m?.png  b "));
  assert_non_null(strstr(text.bytes, "\nh\xc3\xa4user.png   b "));
  shoal_text_release(&text);
  shoal_confusion_release(&c);
}

static void a_matrix_with_missing_cells_is_not_shown(void **state) {
  (void)state;
  shoal_confusion c;
  assert_int_equal(shoal_confusion_init(&c, 3, false, NULL), SHOAL_OK);
  add(&c, 0, 0, 1, 0.9);
  shoal_confusion_finish(&c);
  for (int failed = 0; failed < 2; failed++) {
    shoal_text text = {0}, written = {0};
    shoal_json json;
    c.failed = failed; /* as when memory runs out */
    shoal_classes_text(&text, &c, &words,
                       &(shoal_classes_view){.unit = "rows", .place = "line", .width = 80});
    assert_true((strstr(text.bytes, "Confusion matrix:") == NULL) == failed);
    assert_true((strstr(text.bytes, "not enough memory") != NULL) == failed);
    shoal_json_init(&json, &written);
    shoal_json_open(&json, NULL, '{');
    shoal_confusion_write(&c, &words, &json);
    shoal_json_close(&json, '}');
    assert_non_null(strstr(written.bytes, "\"worst\""));
    assert_true((strstr(written.bytes, "\"matrix\"") == NULL) == failed);
    assert_true((strstr(written.bytes, "\"confused\"") == NULL) == failed);
    shoal_text_release(&written);
    shoal_text_release(&text);
  }
  shoal_confusion_release(&c);
}

static void pictures_have_their_size(void **state) {
  (void)state;
  uint8_t grey[20 * 10], rgb[8 * 8 * 3];
  memset(grey, 255, sizeof grey);
  memset(rgb, 0, sizeof rgb);
  const shoal_sample_picture pictures[] = {{20, 10, 1, grey}, {8, 8, 3, rgb}};
  shoal_text text = {0};
  shoal_classes_pictures(&text, pictures, 2, 12, false);
  uint32_t lines = 0;
  for (const char *line = text.bytes; *line; line = strchr(line, '\n') + 1, lines++)
    assert_int_equal(columns_of(line, strchr(line, '\n')), 12 + 2 + 12);
  assert_int_equal(lines, 6);
  shoal_text_clear(&text);
  shoal_classes_pictures(&text, pictures, 1, 2, true);
  assert_string_equal(text.bytes, "\x1b[38;2;255;255;255m\x1b[48;2;255;255;255m▀"
                                  "\x1b[38;2;255;255;255m\x1b[48;2;255;255;255m▀\x1b[0m\n");
  shoal_text_release(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand),
                                     cmocka_unit_test(many_classes),
                                     cmocka_unit_test(each_output),
                                     cmocka_unit_test(text_fits),
                                     cmocka_unit_test(names_of_files_are_plain_and_in_line),
                                     cmocka_unit_test(a_matrix_with_missing_cells_is_not_shown),
                                     cmocka_unit_test(pictures_have_their_size)};
  return RUN_TESTS(tests);
}
