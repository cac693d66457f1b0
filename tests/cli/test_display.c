#include "check.h"

#include <math.h>
#include <string.h>

#include "base/human.h"
#include "cli/chart.h"
#include "cli/progress.h"
#include "cli/svg.h"

static void counts_have_commas(void **state) {
  (void)state;
  assert_string_equal(shoal_human_count(0).text, "0");
  assert_string_equal(shoal_human_count(999).text, "999");
  assert_string_equal(shoal_human_count(12345).text, "12,345");
  assert_string_equal(shoal_human_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
}

static void amounts_have_prefixes(void **state) {
  (void)state;
  assert_string_equal(shoal_human_bytes(0).text, "0 B");
  assert_string_equal(shoal_human_bytes(812).text, "812 B");
  assert_string_equal(shoal_human_bytes(1234).text, "1.2 kB");
  assert_string_equal(shoal_human_bytes(999.9e6).text, "1.0 GB");
  assert_string_equal(shoal_human_bytes(123e9).text, "123 GB");
  assert_string_equal(shoal_human_amount(13.2e6, "FLOP").text, "13.2 MFLOP");
  assert_string_equal(shoal_human_amount(12, "").text, "12");
}

static void times_are_as_exact_as_they_need_to_be(void **state) {
  (void)state;
  assert_string_equal(shoal_human_seconds(0.42).text, "0.42s");
  assert_string_equal(shoal_human_seconds(7.31).text, "7.3s");
  assert_string_equal(shoal_human_seconds(9.97).text, "10s");
  assert_string_equal(shoal_human_seconds(59.6).text, "1m 00s");
  assert_string_equal(shoal_human_seconds(192).text, "3m 12s");
  assert_string_equal(shoal_human_seconds(7500).text, "2h 05m");
  assert_string_equal(shoal_human_seconds(273600).text, "3d 4h");
  assert_string_equal(shoal_human_seconds(NAN).text, "?");
  assert_string_equal(shoal_human_seconds(INFINITY).text, "?");
}

static void numbers_have_about_four_figures(void **state) {
  (void)state;
  assert_string_equal(shoal_human_number(0).text, "0.0000");
  assert_string_equal(shoal_human_number(0.33123).text, "0.3312");
  assert_string_equal(shoal_human_number(12.3456).text, "12.346");
  assert_string_equal(shoal_human_number(117.29).text, "117.29");
  assert_string_equal(shoal_human_number(1e-7).text, "1e-07");
  assert_string_equal(shoal_human_number(NAN).text, "nan");
}

static void floats_lose_no_bit_and_gain_no_figures(void **state) {
  (void)state;
  assert_true(shoal_human_float(0.02f) == 0.02);
  assert_true(shoal_human_float(0.1f) == 0.1);
  assert_true(isnan(shoal_human_float(NAN)));
  for (float value = 1e-30f; value < 1e30f; value *= 1.37f)
    assert_true((float)shoal_human_float(value) == value);
}

static void words_are_quoted_for_the_shell_only_where_needed(void **state) {
  (void)state;
  static const struct {
    const char *word, *quoted;
  } cases[] = {
      {"plain-1.0/x", "plain-1.0/x"}, {"two words", "'two words'"}, {"it's", "'it'\\''s'"}, {"", "''"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_text out;
    shoal_text_init(&out);
    shoal_human_quote(&out, cases[i].word);
    assert_string_equal(out.bytes, cases[i].quoted);
    shoal_text_release(&out);
  }
}

static void the_progress_line_never_outgrows_the_terminal(void **state) {
  (void)state;
  shoal_progress_view view = {.epoch = 3,
                              .epochs = 6,
                              .share = 0.62,
                              .per_s = 12345,
                              .unit = "samples",
                              .loss = 0.3312,
                              .metric_name = "accuracy",
                              .metric = 0.879,
                              .eta_s = 12};
  shoal_text line;
  shoal_text_init(&line);
  shoal_progress_line(&line, &view, 79, true);
  assert_string_equal(line.bytes,
                      "epoch 3/6 [====>  ] 62%  12,345 samples/s  loss 0.3312  accuracy 0.879  eta 12s");
  for (uint32_t width = 13; width < 200; width++) {
    shoal_text_clear(&line);
    shoal_progress_line(&line, &view, width, true);
    assert_in_range(line.length, 1, width);
  }
  view.per_s = view.loss = view.eta_s = NAN;
  view.metric_name = NULL;
  shoal_text_clear(&line);
  shoal_progress_line(&line, &view, 79, false);
  assert_string_equal(line.bytes, "epoch 3/6 62%");
  static const struct {
    double per_s;
    const char *shown;
  } slow[] = {
      {2.5, "2 trainings/s"}, {1.5, "1 training/s"}, {0.4, "24 trainings/min"}, {0.01, "36 trainings/h"}};
  for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
    view.per_s = slow[i].per_s;
    view.unit = "trainings";
    shoal_text_clear(&line);
    shoal_progress_line(&line, &view, 79, false);
    assert_non_null(strstr(line.bytes, slow[i].shown));
  }
  shoal_text_release(&line);
}

static void a_chart_keeps_to_its_size(void **state) {
  (void)state;
  shoal_chart_point train[50], test[50];
  for (int i = 0; i < 50; i++) {
    train[i] = (shoal_chart_point){i + 1, 1.0 / (i + 1)};
    test[i] = (shoal_chart_point){i + 1, i == 7 ? NAN : 1.2 / (i + 1)};
  }
  shoal_text out;
  shoal_text_init(&out);
  for (uint32_t width = 30; width < 120; width += 7) {
    shoal_chart chart = {.line = {"train", train, 50},
                         .marks = {"test", test, 50},
                         .x_name = "epoch",
                         .width = width,
                         .height = 12};
    shoal_text_clear(&out);
    shoal_chart_draw(&chart, &out);
    size_t lines = 0;
    for (const char *line = out.bytes; *line; lines++) {
      size_t length = strcspn(line, "\n");
      assert_in_range(length, 1, width);
      line += length + 1;
    }
    assert_int_equal(lines, 12);
    assert_non_null(strchr(out.bytes, 'o'));
    assert_non_null(strchr(out.bytes, '*'));
  }
  shoal_text_release(&out);
}

static void a_chart_of_nothing_is_nothing(void **state) {
  (void)state;
  shoal_chart_point one = {1, 1};
  shoal_chart chart = {.line = {"train", &one, 1}, .x_name = "epoch", .width = 80, .height = 12};
  shoal_text out;
  shoal_text_init(&out);
  shoal_chart_draw(&chart, &out);
  assert_int_equal(out.length, 0);
  shoal_text_release(&out);
}

static void a_flat_curve_and_strange_values_are_drawn(void **state) {
  (void)state;
  static const double heights[] = {0, 1, -5, 1e-300, 1e300};
  for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++) {
    shoal_chart_point flat[3] = {{1, heights[i]}, {2, heights[i]}, {3, heights[i]}};
    shoal_chart chart = {
        .line = {"train", flat, 3}, .x_name = "epoch", .width = 60, .height = 10, .utf8 = true};
    shoal_text out;
    shoal_text_init(&out);
    shoal_chart_draw(&chart, &out);
    assert_true(out.length > 0);
    shoal_text_release(&out);
  }
}

static void draw(const shoal_series *series, size_t count) {
  const shoal_svg plot = {
      .title = "t", .x_name = "x", .y_name = "y", .series = series, .series_count = count};
  shoal_text out;
  shoal_text_init(&out);
  shoal_svg_draw(&plot, &out);
  assert_non_null(strstr(out.bytes, "</svg>"));
  assert_null(strstr(out.bytes, "nan"));
  assert_null(strstr(out.bytes, "inf"));
  shoal_text_release(&out);
}

static void names_in_a_picture_find_places_wherever_curves_end(void **state) {
  (void)state;
  for (int i = 1; i <= 2000; i++) {
    shoal_chart_point ends[4] = {{10, i / 1000.0}, {10, i / 1000.0}, {10, i / 1000.0}, {10, 2 - i / 1000.0}};
    const shoal_series series[4] = {
        {"a", &ends[0], 1}, {"b", &ends[1], 1}, {"c", &ends[2], 1}, {"d", &ends[3], 1}};
    draw(series, 4);
  }
}

static void a_logarithmic_picture_has_a_scale_even_when_nothing_grows(void **state) {
  (void)state;
  shoal_chart_point flat[2] = {{1, 1}, {1000, 1}};
  draw(&(shoal_series){"a", flat, 2}, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_have_commas),
      cmocka_unit_test(amounts_have_prefixes),
      cmocka_unit_test(times_are_as_exact_as_they_need_to_be),
      cmocka_unit_test(numbers_have_about_four_figures),
      cmocka_unit_test(floats_lose_no_bit_and_gain_no_figures),
      cmocka_unit_test(words_are_quoted_for_the_shell_only_where_needed),
      cmocka_unit_test(the_progress_line_never_outgrows_the_terminal),
      cmocka_unit_test(a_chart_keeps_to_its_size),
      cmocka_unit_test(a_chart_of_nothing_is_nothing),
      cmocka_unit_test(a_flat_curve_and_strange_values_are_drawn),
      cmocka_unit_test(names_in_a_picture_find_places_wherever_curves_end),
      cmocka_unit_test(a_logarithmic_picture_has_a_scale_even_when_nothing_grows),
  };
  return RUN_TESTS(tests);
}
