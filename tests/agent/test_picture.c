/* A canvas becomes colours, with mixtures at its edges; what changed is found exactly. */
#include "agent/picture.h"

#include <string.h>

#include "check.h"

static void every_mixture_lies_between_its_two_colours(void **state) {
  (void)state;
  for (int dark = 0; dark < 2; dark++) {
    uint8_t rgb[SHOAL_COLOURS][3];
    memset(rgb, 0, sizeof rgb);
    shoal_colours(dark, rgb);
    uint32_t number = SHOAL_COLOURS_PLAIN;
    for (uint32_t a = 0; a < SHOAL_COLOURS_PLAIN; a++)
      for (uint32_t b = a + 1; b < SHOAL_COLOURS_PLAIN; b++)
        for (uint32_t quarters = 1; quarters < 4; quarters++, number++)
          for (int part = 0; part < 3; part++) {
            double wanted = ((4 - quarters) * rgb[a][part] + quarters * rgb[b][part]) / 4.0;
            assert_true(rgb[number][part] >= wanted - 1 && rgb[number][part] <= wanted + 1);
          }
    assert_int_equal(number, SHOAL_COLOURS);
  }
}

static void light_is_light_and_dark_is_dark(void **state) {
  (void)state;
  uint8_t light[SHOAL_COLOURS][3], dark[SHOAL_COLOURS][3];
  shoal_colours(false, light);
  shoal_colours(true, dark);
  assert_true(light[0][1] > 200 && dark[0][1] < 60);
  for (uint32_t ink = 1; ink < SHOAL_COLOURS_PLAIN; ink++) {
    assert_memory_not_equal(light[ink], light[0], 3);
    assert_memory_not_equal(dark[ink], dark[0], 3);
  }
}

static void an_edge_that_cuts_a_pixel_is_mixed(void **state) {
  (void)state;
  shoal_canvas canvas;
  uint8_t pixels[16], scratch[64];
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, 4, 0, 4);
  shoal_canvas_box(&canvas, SHOAL_INK_BODY, 0, 1.5f, 0, 4);
  shoal_picture_draw(&canvas, 4, 4, scratch, pixels);
  uint8_t rgb[SHOAL_COLOURS][3];
  shoal_colours(false, rgb);
  for (int y = 0; y < 4; y++) {
    const uint8_t *row = pixels + 4 * y;
    assert_int_equal(row[0], 1 + SHOAL_INK_BODY);
    assert_int_equal(row[2], 0);
    assert_int_equal(row[3], 0);
    assert_true(row[1] >= SHOAL_COLOURS_PLAIN);
    int half = (rgb[0][0] + rgb[1 + SHOAL_INK_BODY][0]) / 2;
    assert_true(rgb[row[1]][0] >= half - 1 && rgb[row[1]][0] <= half + 1);
  }
  shoal_canvas_release(&canvas);
}

static void where_four_colours_meet_there_is_still_a_colour(void **state) {
  (void)state;
  shoal_canvas canvas;
  uint8_t pixels[1], scratch[4];
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, 1, 0, 1);
  shoal_canvas_box(&canvas, SHOAL_INK_FAINT, 0, 0.5f, 0, 0.5f);
  shoal_canvas_box(&canvas, SHOAL_INK_GOAL, 0.5f, 1, 0, 0.5f);
  shoal_canvas_box(&canvas, SHOAL_INK_BODY, 0, 0.5f, 0.5f, 1);
  shoal_picture_draw(&canvas, 1, 1, scratch, pixels);
  assert_true(pixels[0] < SHOAL_COLOURS);
  shoal_canvas_release(&canvas);
}

static void the_part_that_changed_is_the_least_one(void **state) {
  (void)state;
  uint8_t before[6 * 5] = {0}, after[6 * 5] = {0};
  shoal_part part;
  assert_false(shoal_picture_changed(before, after, 6, 5, &part));
  assert_true(shoal_picture_changed(NULL, after, 6, 5, &part));
  assert_true(part.x == 0 && part.y == 0 && part.width == 6 && part.height == 5 && part.pixels == after);
  after[6 * 1 + 4] = 1;
  after[6 * 3 + 2] = 1;
  assert_true(shoal_picture_changed(before, after, 6, 5, &part));
  assert_true(part.x == 2 && part.y == 1 && part.width == 3 && part.height == 3 && part.stride == 6);
  assert_ptr_equal(part.pixels, after + 6 + 2);
  after[29] = 7;
  assert_true(shoal_picture_changed(before, after, 6, 5, &part));
  assert_true(part.x == 2 && part.y == 1 && part.width == 4 && part.height == 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_mixture_lies_between_its_two_colours),
      cmocka_unit_test(light_is_light_and_dark_is_dark),
      cmocka_unit_test(an_edge_that_cuts_a_pixel_is_mixed),
      cmocka_unit_test(where_four_colours_meet_there_is_still_a_colour),
      cmocka_unit_test(the_part_that_changed_is_the_least_one),
  };
  return RUN_TESTS(tests);
}
