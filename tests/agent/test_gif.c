/* What is written as GIF reads back, pixel for pixel, whatever the pixels are. */
#include "agent/gif.h"

#include "base/random.h"
#include "film.h"

static const shoal_key KEY = {{7, 9}};

static void fill(uint8_t *pixels, size_t count, uint32_t colours, uint64_t seed) {
  for (size_t i = 0; i < count; i++) pixels[i] = (uint8_t)shoal_random_below(KEY, (seed << 32) + i, colours);
}

/* One picture there and back. */
static void check_picture(uint32_t width, uint32_t height, const uint8_t *pixels) {
  uint8_t rgb[SHOAL_COLOURS][3];
  shoal_colours(false, rgb);
  shoal_text out;
  shoal_text_init(&out);
  shoal_gif_begin(&out, width, height, rgb);
  shoal_part part = {0, 0, width, height, width, pixels};
  shoal_gif_add(&out, &part, 7);
  shoal_gif_end(&out);
  assert_false(out.failed);
  film f;
  read_gif(&f, (const uint8_t *)out.bytes, out.length);
  assert_int_equal(f.width, width);
  assert_int_equal(f.height, height);
  assert_int_equal(f.count, 1);
  assert_int_equal(f.ticks[0], 7);
  assert_true(f.loops);
  assert_int_equal(f.colours, 1 << SHOAL_COLOUR_BITS);
  assert_memory_equal(f.rgb, rgb, sizeof rgb);
  assert_memory_equal(f.pictures[0], pixels, (size_t)width * height);
  film_release(&f);
  shoal_text_release(&out);
}

/* Sizes on both sides of where codes grow and where the table is full; noise fills it soonest. */
static void pixels_come_back_at_every_size(void **state) {
  (void)state;
  static uint8_t pixels[512 * 512];
  for (uint32_t colours = 1; colours <= SHOAL_COLOURS; colours = colours < 4 ? colours + 1 : 3 * colours) {
    fill(pixels, sizeof pixels, colours, colours);
    for (uint32_t count = 1; count < 300; count++) check_picture(count, 1, pixels);
    for (uint32_t count = 3900; count < 4300; count += 7) check_picture(count, 1, pixels);
    check_picture(64, 129, pixels);
    check_picture(512, 512, pixels);
  }
}

static void a_plain_picture_is_small(void **state) {
  (void)state;
  static uint8_t pixels[400 * 300];
  uint8_t rgb[SHOAL_COLOURS][3];
  shoal_colours(true, rgb);
  shoal_text out;
  shoal_text_init(&out);
  shoal_part part = {0, 0, 400, 300, 400, pixels};
  shoal_gif_add(&out, &part, 1);
  assert_true(out.length < 1500);
  shoal_text_release(&out);
}

static void a_part_lies_where_it_belongs(void **state) {
  (void)state;
  enum { WIDTH = 20, HEIGHT = 16 };
  uint8_t first[WIDTH * HEIGHT], second[WIDTH * HEIGHT], rgb[SHOAL_COLOURS][3];
  fill(first, sizeof first, SHOAL_COLOURS, 1);
  memcpy(second, first, sizeof second);
  for (int y = 5; y < 9; y++)
    for (int x = 3; x < 17; x++) second[y * WIDTH + x] ^= 1;
  shoal_colours(false, rgb);
  shoal_text out;
  shoal_text_init(&out);
  shoal_gif_begin(&out, WIDTH, HEIGHT, rgb);
  shoal_part whole = {0, 0, WIDTH, HEIGHT, WIDTH, first};
  shoal_part part = {3, 5, 14, 4, WIDTH, second + 5 * WIDTH + 3};
  shoal_gif_add(&out, &whole, 2);
  shoal_gif_add(&out, &part, 65535);
  shoal_gif_end(&out);
  film f;
  read_gif(&f, (const uint8_t *)out.bytes, out.length);
  assert_int_equal(f.count, 2);
  assert_int_equal(f.ticks[1], 65535);
  assert_int_equal(f.drawn[1], 14 * 4);
  assert_memory_equal(f.pictures[0], first, sizeof first);
  assert_memory_equal(f.pictures[1], second, sizeof second);
  film_release(&f);
  shoal_text_release(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pixels_come_back_at_every_size),
      cmocka_unit_test(a_plain_picture_is_small),
      cmocka_unit_test(a_part_lies_where_it_belongs),
  };
  return RUN_TESTS(tests);
}
