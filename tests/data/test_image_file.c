#include "pictures.h"

#include "base/file.h"
#include "data/image_file.h"
#include "data/limits.h"

static shoal_image_file read_good(const char *path, uint32_t w, uint32_t h, uint32_t c) {
  shoal_image_file image;
  shoal_error err = {0};
  if (shoal_image_file_read(&image, path, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(image.w, w);
  assert_int_equal(image.h, h);
  assert_int_equal(image.c, c);
  return image;
}

static void check_pixels(const char *path, uint32_t w, uint32_t h, uint32_t c, const uint8_t *expected) {
  shoal_image_file image = read_good(path, w, h, c);
  assert_memory_equal(image.pixels, expected, (size_t)w * h * c);
  shoal_image_file_release(&image);
}

static void check_refused(const char *path, const char *why) {
  shoal_image_file image = {.pixels = (uint8_t *)&image}; /* what nobody has set must not be released */
  shoal_error err = {0};
  assert_int_not_equal(shoal_image_file_read(&image, path, &err), SHOAL_OK);
  assert_null(image.pixels);
  CHECK_SAYS(&err, path, why);
}

static void every_kind_of_png_becomes_bytes(void **state) {
  (void)state;
  const uint8_t grey[6] = {0, 50, 100, 150, 200, 255};
  put_png("grey.png", &(png_case){.w = 3, .h = 2, .type = PNG_COLOR_TYPE_GRAY, .depth = 8}, grey);
  check_pixels("grey.png", 3, 2, 1, grey);
  put_png("interlaced.png",
          &(png_case){.w = 3, .h = 2, .type = PNG_COLOR_TYPE_GRAY, .depth = 8, .interlaced = true}, grey);
  check_pixels("interlaced.png", 3, 2, 1, grey);

  const uint8_t bits[2] = {0xa0, 0x40}; /* 101, 010 */
  put_png("bits.png", &(png_case){.w = 3, .h = 2, .type = PNG_COLOR_TYPE_GRAY, .depth = 1}, bits);
  check_pixels("bits.png", 3, 2, 1, (const uint8_t[]){255, 0, 255, 0, 255, 0});

  const uint8_t wide[12] = {0x12, 0xff, 0x34, 0x00, 0xff, 0xff, 0, 1, 0x80, 0x7f, 0x7f, 0x80};
  put_png("wide.png", &(png_case){.w = 2, .h = 1, .type = PNG_COLOR_TYPE_RGB, .depth = 16}, wide);
  check_pixels("wide.png", 2, 1, 3, (const uint8_t[]){0x12, 0x34, 0xff, 0, 0x80, 0x7f});

  const png_color colours[3] = {{1, 2, 3}, {10, 20, 30}, {200, 100, 0}};
  const uint8_t alphas[1] = {0}, indexes[2] = {0x12, 0x00}; /* 4 bits each */
  png_case palette = {
      .w = 2, .h = 1, .type = PNG_COLOR_TYPE_PALETTE, .depth = 4, .palette = colours, .colours = 3};
  put_png("palette.png", &palette, indexes);
  check_pixels("palette.png", 2, 1, 3, (const uint8_t[]){10, 20, 30, 200, 100, 0});
  palette.palette_alpha = alphas;
  palette.alphas = 1;
  put_png("clear.png", &palette, (const uint8_t[]){0x01});
  check_pixels("clear.png", 2, 1, 3, (const uint8_t[]){255, 255, 255, 10, 20, 30});

  const uint8_t alpha[8] = {200, 100, 0, 255, 200, 100, 0, 51}; /* a fifth of it over white */
  put_png("alpha.png", &(png_case){.w = 2, .h = 1, .type = PNG_COLOR_TYPE_RGB_ALPHA, .depth = 8}, alpha);
  check_pixels("alpha.png", 2, 1, 3, (const uint8_t[]){200, 100, 0, 244, 224, 204});
  put_png("grey-alpha.png", &(png_case){.w = 2, .h = 1, .type = PNG_COLOR_TYPE_GRAY_ALPHA, .depth = 8},
          (const uint8_t[]){40, 255, 40, 0});
  check_pixels("grey-alpha.png", 2, 1, 1, (const uint8_t[]){40, 255});
}

/* A ramp, so that JPEG has little to lose. */
static void ramp(uint8_t *rows, uint32_t w, uint32_t h, uint32_t c) {
  for (uint32_t i = 0; i < w * h * c; i++) rows[i] = (uint8_t)(i / c % w * 4 + i / c / w * 2 + i % c * 20);
}

static void jpeg_files_become_bytes(void **state) {
  (void)state;
  static uint8_t rows[32 * 24 * 3];
  for (int progressive = 0; progressive < 2; progressive++)
    for (uint32_t c = 1; c <= 3; c += 2) {
      ramp(rows, 32, 24, c);
      put_jpeg("ramp.JPG", 32, 24, (int)c, progressive, rows);
      shoal_image_file image = read_good("ramp.JPG", 32, 24, c);
      for (uint32_t i = 0; i < 32 * 24 * c; i++) assert_in_range(abs(image.pixels[i] - rows[i]), 0, 8);
      shoal_image_file_release(&image);
    }
}

/* Cuts a file at every length, or a few of them, and expects an error each time. */
static void check_cut(const char *path, const char *why) {
  uint8_t *bytes;
  size_t length;
  shoal_error err;
  assert_int_equal(shoal_file_read(path, 1 << 20, false, &bytes, &length, &err), SHOAL_OK);
  for (size_t cut = 0; cut < length - 2; cut += 7) {
    put("cut", bytes, cut);
    check_refused("cut", cut > 8 ? why : "");
  }
  free(bytes);
}

static void broken_files_are_refused_by_name(void **state) {
  (void)state;
  static uint8_t rows[64 * 64 * 4];
  ramp(rows, 64, 64, 3);
  put_plain_png("whole.png", 64, 64, 3, rows);
  check_cut("whole.png", "the PNG is broken");
  put_jpeg("whole.jpg", 64, 64, 3, false, rows);
  check_cut("whole.jpg", "the JPEG is broken");
  put_jpeg("progressive.jpg", 64, 64, 3, true, rows);
  check_cut("progressive.jpg", "the JPEG is broken");
  put_jpeg("print.jpg", 64, 64, 4, false, rows);
  check_refused("print.jpg", "CMYK");
  put_text("words.png", "these are words");
  check_refused("words.png", "not a PNG or JPEG file");
  put_text("empty.jpg", "");
  check_refused("empty.jpg", "not a PNG or JPEG file");
  check_refused("absent.png", "no such file");
}

/* Files that are small and announce what would take gigabytes. */
static void announced_sizes_are_limited(void **state) {
  (void)state;
  uint8_t row[8] = {0}, *bytes;
  size_t length;
  shoal_error err;
  put_plain_png("bomb.png", 2, 2, 1, row);
  assert_int_equal(shoal_file_read("bomb.png", 1 << 20, false, &bytes, &length, &err), SHOAL_OK);
  static const uint32_t sizes[][2] = {{60000, 60000}, {70000, 1}, {1, 0x7fffffff}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int b = 0; b < 8; b++) bytes[16 + b] = (uint8_t)(sizes[i][b / 4] >> (24 - b % 4 * 8));
    uint32_t sum = (uint32_t)crc32(0, bytes + 12, 17);
    for (int b = 0; b < 4; b++) bytes[29 + b] = (uint8_t)(sum >> (24 - b * 8));
    put("bomb.png", bytes, length);
    check_refused("bomb.png", i == 0 ? "60000x60000 pixels; at most 64 million" : "");
  }
  free(bytes);
  put_jpeg("bomb.jpg", 2, 2, 1, false, row);
  assert_int_equal(shoal_file_read("bomb.jpg", 1 << 20, false, &bytes, &length, &err), SHOAL_OK);
  for (size_t i = 2; i + 9 < length; i++)
    if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) memset(bytes + i + 5, 0xea, 4);
  put("bomb.jpg", bytes, length);
  free(bytes);
  check_refused("bomb.jpg", "60138x60138 pixels; at most 64 million");
}

static void fit(shoal_image_file image, uint32_t c, uint32_t h, uint32_t w, uint8_t *out) {
  size_t count = (size_t)image.w * image.h * image.c;
  uint8_t *copy = malloc(count);
  shoal_error err;
  memcpy(copy, image.pixels, count);
  image.pixels = copy;
  assert_int_equal(shoal_image_file_fit(&image, c, h, w, out, &err), SHOAL_OK);
  free(copy);
}

static void what_fits_keeps_its_bytes(void **state) {
  (void)state;
  uint8_t rows[5 * 7 * 3], out[5 * 7 * 3];
  ramp(rows, 7, 5, 3);
  fit((shoal_image_file){7, 5, 3, rows}, 3, 5, 7, out);
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < 35; i++) assert_int_equal(out[k * 35 + i], rows[i * 3 + k]);
  fit((shoal_image_file){7, 5, 1, rows}, 3, 5, 7, out); /* grey becomes three equal channels */
  for (int i = 0; i < 105; i++) assert_int_equal(out[i], rows[i % 35]);
}

static void fitting_averages_crops_and_makes_grey(void **state) {
  (void)state;
  uint8_t out[64];
  /* One colour stays that colour, whatever the size. */
  static uint8_t even[61 * 47];
  memset(even, 201, sizeof even);
  for (uint32_t size = 1; size <= 8; size++) {
    fit((shoal_image_file){61, 47, 1, even}, 1, size, 8, out);
    for (uint32_t i = 0; i < size * 8; i++) assert_int_equal(out[i], 201);
  }
  fit((shoal_image_file){1, 1, 1, even}, 1, 8, 8, out);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(out[i], 201);
  /* Four values become two: a triangle of 1, 3, 3, 1 of which the border cuts off one end. */
  const uint8_t line[16] = {0, 70, 140, 210, 0, 70, 140, 210, 0, 70, 140, 210, 0, 70, 140, 210};
  fit((shoal_image_file){4, 4, 1, (uint8_t *)line}, 1, 2, 2, out);
  assert_int_equal(out[0], 50); /* (3 * 0 + 3 * 70 + 140) / 7 */
  assert_int_equal(out[1], 160);
  /* Of 6x2 the middle 2x2 is taken. */
  const uint8_t broad[12] = {9, 9, 1, 2, 9, 9, 9, 9, 3, 4, 9, 9};
  fit((shoal_image_file){6, 2, 1, (uint8_t *)broad}, 1, 2, 2, out);
  assert_memory_equal(out, ((const uint8_t[]){1, 2, 3, 4}), 4);
  /* Of 2x6 likewise. */
  const uint8_t high[12] = {9, 9, 9, 9, 1, 2, 3, 4, 9, 9, 9, 9};
  fit((shoal_image_file){2, 6, 1, (uint8_t *)high}, 1, 2, 2, out);
  assert_memory_equal(out, ((const uint8_t[]){1, 2, 3, 4}), 4);
  const uint8_t colours[9] = {255, 0, 0, 0, 255, 0, 0, 0, 255};
  fit((shoal_image_file){3, 1, 3, (uint8_t *)colours}, 1, 1, 3, out);
  assert_memory_equal(out, ((const uint8_t[]){76, 150, 29}), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(every_kind_of_png_becomes_bytes),  IN_FOLDER(jpeg_files_become_bytes),
      IN_FOLDER(broken_files_are_refused_by_name), IN_FOLDER(announced_sizes_are_limited),
      cmocka_unit_test(what_fits_keeps_its_bytes), cmocka_unit_test(fitting_averages_crops_and_makes_grey),
  };
  return RUN_TESTS(tests);
}
