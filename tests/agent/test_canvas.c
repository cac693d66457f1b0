#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/canvas.h"

enum { WIDTH = 40, HEIGHT = 20 };

static uint8_t pixels[HEIGHT][WIDTH];

static void show(const shoal_canvas *canvas) { shoal_canvas_pixels(canvas, WIDTH, HEIGHT, pixels[0]); }

static uint32_t count_of(uint8_t colour) {
  uint32_t count = 0;
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) count += pixels[y][x] == colour;
  return count;
}

static void the_json_names_every_shape(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_text text;
  shoal_canvas_init(&canvas);
  shoal_text_init(&text);
  shoal_canvas_view(&canvas, -1, 1, 0, 0.1f);
  shoal_canvas_line(&canvas, SHOAL_INK_LINE, 0.1f, (const float[][2]){{0, 0}, {1, 0.3f}}, 2);
  shoal_canvas_area(&canvas, SHOAL_INK_GOAL, (const float[][2]){{0, 0}, {1, 0}, {0, 1}}, 3);
  shoal_canvas_disc(&canvas, SHOAL_INK_ACCENT, -0.5f, 2, 0.25f);
  shoal_canvas_json(&canvas, &text);
  assert_string_equal(text.bytes,
                      "{\"view\":[-1,1,0,0.1],\"shapes\":["
                      "{\"form\":\"line\",\"ink\":\"line\",\"width\":0.1,\"points\":[0,0,1,0.3]},"
                      "{\"form\":\"area\",\"ink\":\"goal\",\"points\":[0,0,1,0,0,1]},"
                      "{\"form\":\"disc\",\"ink\":\"accent\",\"width\":0.25,\"points\":[-0.5,2]}]}");
  shoal_text_release(&text);
  shoal_canvas_release(&canvas);
}

static void a_box_covers_its_pixels_and_no_other(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, WIDTH, 0, HEIGHT);
  shoal_canvas_box(&canvas, SHOAL_INK_BODY, 3, 10, 2, 7);
  show(&canvas);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) {
      bool inside = x >= 3 && x < 10 && HEIGHT - 1 - y >= 2 && HEIGHT - 1 - y < 7;
      assert_int_equal(pixels[y][x], inside ? 1 + SHOAL_INK_BODY : 0);
    }
  shoal_canvas_release(&canvas);
}

static void a_polygon_may_be_hollow(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, WIDTH, 0, HEIGHT);
  /* An arch: its middle stays empty. */
  shoal_canvas_area(
      &canvas, SHOAL_INK_LINE,
      (const float[][2]){{5, 0}, {5, 10}, {20, 10}, {20, 0}, {15, 0}, {15, 5}, {10, 5}, {10, 0}}, 8);
  show(&canvas);
  assert_int_equal(count_of(1 + SHOAL_INK_LINE), 15 * 10 - 5 * 5);
  assert_int_equal(pixels[HEIGHT - 1][12], 0);
  assert_int_equal(pixels[HEIGHT - 1][7], 1 + SHOAL_INK_LINE);
  shoal_canvas_release(&canvas);
}

static void discs_and_lines_have_their_size(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, WIDTH, 0, HEIGHT);
  shoal_canvas_disc(&canvas, SHOAL_INK_GOAL, 10, 10, 8);
  show(&canvas);
  assert_in_range(count_of(1 + SHOAL_INK_GOAL), 190, 212); /* 201 */
  shoal_canvas_view(&canvas, 0, WIDTH, 0, HEIGHT);
  shoal_canvas_line(&canvas, SHOAL_INK_ACCENT, 4, (const float[][2]){{5, 10}, {35, 10}}, 2);
  show(&canvas);
  assert_in_range(count_of(1 + SHOAL_INK_ACCENT), 120 + 8, 120 + 16); /* with round ends */
  shoal_canvas_view(&canvas, 0, WIDTH, 0, HEIGHT);
  shoal_canvas_line(&canvas, SHOAL_INK_ACCENT, 0, (const float[][2]){{5, 10.3f}, {35, 10.3f}}, 2);
  show(&canvas);
  assert_in_range(count_of(1 + SHOAL_INK_ACCENT), 30, 32); /* thin ones are still seen */
  shoal_canvas_release(&canvas);
}

static void later_shapes_lie_above(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, WIDTH, 0, HEIGHT);
  shoal_canvas_box(&canvas, SHOAL_INK_BODY, 0, 10, 0, 10);
  shoal_canvas_box(&canvas, SHOAL_INK_GOAL, 5, 10, 0, 10);
  show(&canvas);
  assert_int_equal(count_of(1 + SHOAL_INK_BODY), 50);
  assert_int_equal(count_of(1 + SHOAL_INK_GOAL), 50);
  shoal_canvas_release(&canvas);
}

static void the_view_keeps_its_proportions(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, 1, 0, 1); /* a square, in the middle of a wide picture */
  shoal_canvas_box(&canvas, SHOAL_INK_BODY, 0, 1, 0, 1);
  show(&canvas);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++)
      assert_int_equal(pixels[y][x], x >= 10 && x < 30 ? 1 + SHOAL_INK_BODY : 0);
  shoal_canvas_release(&canvas);
}

static void shapes_from_nowhere_do_no_harm(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, 0, 1, 0, 1);
  static const float wild[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e6f, 1e6f, 1e-30f, 0.5f};
  enum { WILD = sizeof wild / sizeof *wild };
  for (int a = 0; a < WILD; a++)
    for (int b = 0; b < WILD; b++) {
      const float points[3][2] = {{wild[a], wild[b]}, {0, wild[a]}, {wild[b], 1}};
      shoal_canvas_line(&canvas, SHOAL_INK_LINE, 0.1f, points, 3);
      shoal_canvas_area(&canvas, SHOAL_INK_BODY, points, 3);
      shoal_canvas_disc(&canvas, SHOAL_INK_GOAL, wild[a], wild[b], 0.2f);
    }
  show(&canvas);
  shoal_text text;
  shoal_text_init(&text);
  shoal_canvas_json(&canvas, &text);
  assert_null(strstr(text.bytes, "nan"));
  assert_null(strstr(text.bytes, "inf"));
  shoal_text_release(&text);
  shoal_canvas_release(&canvas);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_json_names_every_shape),
      cmocka_unit_test(a_box_covers_its_pixels_and_no_other),
      cmocka_unit_test(a_polygon_may_be_hollow),
      cmocka_unit_test(discs_and_lines_have_their_size),
      cmocka_unit_test(later_shapes_lie_above),
      cmocka_unit_test(the_view_keeps_its_proportions),
      cmocka_unit_test(shapes_from_nowhere_do_no_harm),
  };
  return RUN_TESTS(tests);
}
