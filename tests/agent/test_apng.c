/* What is written as APNG reads back: chunks, their sums and order, and the pixels. */
#include "agent/apng.h"

#include "base/random.h"
#include "film.h"

static const shoal_key KEY = {{3, 4}};

static void fill(uint8_t *pixels, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++)
    pixels[i] = (uint8_t)shoal_random_below(KEY, (seed << 32) + i, SHOAL_COLOURS);
}

static void pictures_come_back_with_their_times(void **state) {
  (void)state;
  enum { WIDTH = 33, HEIGHT = 17, COUNT = 5 };
  static uint8_t pictures[COUNT][WIDTH * HEIGHT];
  uint8_t rgb[SHOAL_COLOURS][3];
  shoal_colours(true, rgb);
  shoal_text out, count;
  shoal_text_init(&out);
  shoal_text_init(&count);
  shoal_apng_begin(&out, WIDTH, HEIGHT, rgb);
  uint32_t sequence = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    if (i > 0) memcpy(pictures[i], pictures[i - 1], sizeof pictures[i]);
    uint32_t x = 2 * i, y = i, width = i == 0 ? WIDTH : 9, height = i == 0 ? HEIGHT : 11;
    if (i == 0)
      fill(pictures[0], sizeof pictures[0], 0);
    else
      for (uint32_t row = y; row < y + height; row++)
        fill(pictures[i] + row * WIDTH + x, width, 100 * i + row);
    shoal_part part = {x, y, width, height, WIDTH, pictures[i] + y * WIDTH + x};
    shoal_apng_add(&out, &sequence, &part, 20 * i + 1);
  }
  shoal_apng_end(&out);
  shoal_apng_count(&count, COUNT);
  assert_false(out.failed || count.failed);
  assert_memory_equal(out.bytes + SHOAL_APNG_COUNT_AT + 4, "acTL", 4);
  memcpy(out.bytes + SHOAL_APNG_COUNT_AT, count.bytes, count.length);
  film f;
  read_apng(&f, (const uint8_t *)out.bytes, out.length);
  assert_int_equal(f.count, COUNT);
  assert_true(f.loops);
  assert_true(f.width == WIDTH && f.height == HEIGHT);
  assert_int_equal(f.colours, SHOAL_COLOURS);
  assert_memory_equal(f.rgb, rgb, sizeof rgb);
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_int_equal(f.ticks[i], 20 * i + 1);
    assert_memory_equal(f.pictures[i], pictures[i], sizeof pictures[i]);
  }
  film_release(&f);
  shoal_text_release(&out);
  shoal_text_release(&count);
}

static void a_single_picture_is_a_whole_file(void **state) {
  (void)state;
  uint8_t pixel = 5, rgb[SHOAL_COLOURS][3];
  shoal_colours(false, rgb);
  shoal_text out;
  shoal_text_init(&out);
  uint32_t sequence = 0;
  shoal_part part = {0, 0, 1, 1, 1, &pixel};
  shoal_apng_begin(&out, 1, 1, rgb);
  shoal_apng_add(&out, &sequence, &part, 1000);
  shoal_apng_end(&out);
  film f;
  read_apng(&f, (const uint8_t *)out.bytes, out.length);
  assert_int_equal(f.count, 1);
  assert_int_equal(f.pictures[0][0], 5);
  film_release(&f);
  shoal_text_release(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pictures_come_back_with_their_times),
      cmocka_unit_test(a_single_picture_is_a_whole_file),
  };
  return RUN_TESTS(tests);
}
