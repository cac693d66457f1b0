/* Pictures of characters: as large as they may be, in proportion, and of the right colours. */
#include "cli/screen.h"

#include <string.h>

#include "check.h"

static void fit(float across, float down, uint32_t columns, uint32_t rows, uint32_t wanted_columns,
                uint32_t wanted_rows) {
  shoal_canvas canvas;
  shoal_screen_form form = {0};
  shoal_canvas_init(&canvas);
  shoal_canvas_view(&canvas, -across / 2, across / 2, 0, down);
  shoal_screen_fit(&canvas, columns, rows, &form);
  assert_int_equal(form.columns, wanted_columns);
  assert_int_equal(form.rows, wanted_rows);
  shoal_canvas_release(&canvas);
}

/* A character is twice as high as it is wide. */
static void a_picture_keeps_its_proportions(void **state) {
  (void)state;
  fit(2, 1, 80, 40, 80, 20);
  fit(1, 1, 80, 40, 80, 40);
  fit(1, 1, 80, 20, 40, 20);
  fit(1, 2, 80, 20, 20, 20);
  fit(4, 1, 79, 22, 79, 10);
  fit(1000, 1, 80, 20, 80, 1);
  fit(1, 1000, 80, 20, 8, 20); /* eight columns at least */
  fit(1, 1, 0, 0, 8, 4);
}

/* The left half is body, the lower right quarter goal. */
static void draw(shoal_text *out, shoal_screen_colours colours, uint32_t columns, uint32_t rows) {
  shoal_canvas canvas;
  shoal_screen_form form = {columns, rows, colours, true};
  shoal_canvas_init(&canvas);
  shoal_text_init(out);
  shoal_canvas_view(&canvas, 0, (float)columns, 0, 2 * (float)rows);
  shoal_canvas_box(&canvas, SHOAL_INK_BODY, 0, (float)columns / 2, 0, 2 * (float)rows);
  shoal_canvas_box(&canvas, SHOAL_INK_GOAL, (float)columns / 2, (float)columns, 0, (float)rows);
  shoal_screen_picture(out, &canvas, &form);
  assert_false(out->failed);
  shoal_canvas_release(&canvas);
}

static void letters_stand_for_inks(void **state) {
  (void)state;
  shoal_text out;
  draw(&out, SHOAL_COLOURS_NONE, 8, 4);
  assert_string_equal(out.bytes, "####    \n####    \n####++++\n####++++\n");
  shoal_text_release(&out);
}

static void a_half_block_has_two_colours(void **state) {
  (void)state;
  shoal_text out;
  draw(&out, SHOAL_COLOURS_ALL, 4, 1);
  assert_string_equal(out.bytes,
                      "\x1b[48;2;99;203;210m  "
                      "\x1b[48;2;127;212;157m\x1b[38;2;18;34;41m\xe2\x96\x80\xe2\x96\x80\x1b[0m\n");
  shoal_text_release(&out);
  draw(&out, SHOAL_COLOURS_256, 4, 1);
  assert_string_equal(out.bytes,
                      "\x1b[48;5;80m  \x1b[48;5;115m\x1b[38;5;16m\xe2\x96\x80\xe2\x96\x80\x1b[0m\n");
  shoal_text_release(&out);
}

static void an_edge_inside_a_pixel_is_mixed(void **state) {
  (void)state;
  shoal_canvas canvas;
  shoal_screen_form form = {2, 1, SHOAL_COLOURS_ALL, true};
  shoal_text out;
  shoal_canvas_init(&canvas);
  shoal_text_init(&out);
  shoal_canvas_view(&canvas, 0, 2, 0, 2);
  shoal_canvas_box(&canvas, SHOAL_INK_BODY, 0, 1.5f, 0, 2);
  shoal_screen_picture(&out, &canvas, &form);
  assert_string_equal(out.bytes, "\x1b[48;2;99;203;210m \x1b[48;2;59;119;126m \x1b[0m\n");
  shoal_text_release(&out);
  shoal_canvas_release(&canvas);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_picture_keeps_its_proportions),
      cmocka_unit_test(letters_stand_for_inks),
      cmocka_unit_test(a_half_block_has_two_colours),
      cmocka_unit_test(an_edge_inside_a_pixel_is_mixed),
  };
  return RUN_TESTS(tests);
}
