/* The space of a search: its text, its errors, its grid, and values on their way. */
#include "search/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"
#include "nn/model.h"
#include "search/exact.h"

static shoal_space usual(void) {
  shoal_space space;
  shoal_space_usual(&space, 30000, 14);
  return space;
}

static void parse(shoal_space *space, const char *text) {
  shoal_error err = {0};
  if (shoal_space_parse(space, "space.txt", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void refuse(const char *text, const char *expected) {
  shoal_space space = usual();
  shoal_text before, after;
  shoal_text_init(&before);
  shoal_text_init(&after);
  shoal_space_write(&space, &before);
  shoal_error err = {0};
  assert_int_not_equal(shoal_space_parse(&space, "space.txt", text, strlen(text), &err), SHOAL_OK);
  if (strstr(err.text, expected) == NULL) fail_msg("'%s' does not have '%s'", err.text, expected);
  shoal_space_write(&space, &after);
  assert_string_equal(before.bytes, after.bytes);
  shoal_text_release(&before);
  shoal_text_release(&after);
  shoal_space_release(&space);
}

static void lines_become_ranges_and_choices(void **state) {
  (void)state;
  shoal_space space = usual();
  parse(&space, "# mine\r\nlayers 1..4\n width\t32..512 log # wide\nrate 1e-4..1e-2 log\ndropout 0..0.5\n"
                "activation relu silu\noptimizer adamw\nbatch 64 256\n\n");
  assert_false(space.settings[SHOAL_SET_LAYERS].is_choice);
  assert_true(space.settings[SHOAL_SET_LAYERS].whole);
  assert_true(space.settings[SHOAL_SET_LAYERS].max == 4);
  assert_true(space.settings[SHOAL_SET_WIDTH].log);
  assert_true(space.settings[SHOAL_SET_RATE].min == 1e-4);
  assert_false(space.settings[SHOAL_SET_RATE].whole);
  assert_int_equal(space.settings[SHOAL_SET_ACTIVATION].choices_count, 2);
  assert_string_equal(space.settings[SHOAL_SET_ACTIVATION].choices[1], "silu");
  assert_int_equal(space.settings[SHOAL_SET_OPTIMIZER].choices_count, 1);
  shoal_values values = {0};
  values.of[SHOAL_SET_BATCH] = 1;
  assert_true(shoal_values_number(&space, &values, SHOAL_SET_BATCH) == 256);
  assert_true(shoal_setting_ordered(&space.settings[SHOAL_SET_BATCH]));
  assert_false(shoal_setting_ordered(&space.settings[SHOAL_SET_ACTIVATION]));
  shoal_space_release(&space);
}

/* All of a kind in the order of its table, and no more. */
static void check_choices(shoal_setting_id id, const char *name, const char *const *words) {
  shoal_space space = usual();
  shoal_text line = {0}, error = {0};
  uint32_t count = 0;
  shoal_text_addf(&error, "unknown choice 'quite-another'; it is one of ");
  for (; words[count] != NULL; count++) {
    shoal_text_addf(&line, "%s %s", count > 0 ? "" : name, words[count]);
    shoal_text_addf(&error, "%s%s", count > 0 ? ", " : "", words[count]);
  }
  parse(&space, line.bytes);
  assert_int_equal(space.settings[id].choices_count, count);
  shoal_text_clear(&line);
  shoal_text_addf(&line, "%s quite-another", name);
  refuse(line.bytes, error.bytes);
  shoal_text_release(&line);
  shoal_text_release(&error);
  shoal_space_release(&space);
}

static void every_optimiser_and_activation_of_the_models_may_be_searched(void **state) {
  (void)state;
  check_choices(SHOAL_SET_OPTIMIZER, "optimizer", shoal_optimizer_words);
  check_choices(SHOAL_SET_ACTIVATION, "activation", shoal_activation_words);
}

static void errors_name_the_place_and_what_to_do(void **state) {
  (void)state;
  refuse("layers 1..4\n  widht 3", "space.txt:2:3: unknown setting 'widht'; did you mean 'width'?");
  refuse("lr 0.1", "unknown setting 'lr'; did you mean 'rate'?");
  refuse("batch_size 32", "did you mean 'batch'?");
  refuse("units 64", "did you mean 'width'?");
  refuse("hidden 64", "did you mean 'width'?");
  refuse("batchnorm yes", "did you mean 'normalise'?");
  refuse("normalise batchnorm", "did you mean 'batch'?");
  refuse("layers 1-4", "expected a number, a range like 1..4 or choices, found '1-4'; write 1..4");
  refuse("rate 1e-4-1e-2", "; write 1e-4..1e-2");
  refuse("dropout 50%", "; write 0.5");
  refuse("colour red", "unknown setting 'colour'; it is one of layers, width");
  refuse("activation relu sillu", "space.txt:1:17: activation: unknown choice 'sillu'; did you mean 'silu'?");
  refuse("width 4..2", "upside down");
  refuse("width 1.5", "whole numbers");
  refuse("width 1..x", "expected a number");
  refuse("width 1 .. 4", "on either side");
  refuse("width 0..4", "from 1 to 65536");
  refuse("dropout 0..0.5 log", "begins above 0");
  refuse("dropout 0.1 log", "log belongs to a range");
  refuse("rate 1e-3..1e-2 lg", "expected 'log'");
  refuse("rate 1e-3..1e-2 log 3", "expected 'log' or the end");
  refuse("rate 0.1 0.2..0.3", "a range stands alone");
  refuse("rate", "missing");
  refuse("shape", "missing");
  refuse("shape 1..2", "words, not numbers");
  refuse("layers 1\nlayers 2", "space.txt:2:1: layers: this setting has a line above");
  refuse("layers 1 1", "twice");
  refuse("batch 64 064", "'064' stands here twice");
  refuse("activation relu, silu", "no commas");
  refuse("rate 0.000000000000001", "from 1e-09");
  refuse("rate 0.00100000000000001", "too long");
  refuse("rate nan", "expected a number");
  refuse("rate \xc3\xa9", "0xc3");
  refuse("topology 64", "the activation is missing");
  refuse("topology 64 rely", "did you mean 'relu'?");
  refuse("topology relu 64", "expected the width of a layer");
  refuse("topology 64 relu 32 relu", "expected a comma");
  refuse("topology 64 relu,", "expected the width");
  refuse("topology none at all", "after 'none'");
  refuse("combine 1..20 64 relu tanh", "more than 100,000");
  refuse("combine 1..2 64 relu relu", "twice");
  refuse("combine 1..2 64", "the activation is missing");
  refuse("combine x 64 relu", "expected a number");
}

static void topologies_are_read_and_combined(void **state) {
  (void)state;
  shoal_space space = usual();
  parse(&space, "topology 64 relu , 32 tanh\ncombine 1..3 64 relu tanh\n");
  assert_int_equal(space.topologies_count, 1 + 2 + 4 + 8);
  assert_string_equal(space.topologies[0], "64 relu, 32 tanh");
  assert_string_equal(space.topologies[1], "64 relu");
  assert_string_equal(space.topologies[4], "64 relu, 64 tanh");
  assert_string_equal(space.topologies[14], "64 tanh, 64 tanh, 64 tanh");
  shoal_plain_layer layers[SHOAL_HIDDEN_MAX];
  assert_int_equal(shoal_space_layers(&space, 0, layers), 2);
  assert_int_equal(layers[1].width, 32);
  assert_string_equal(layers[1].activation, "tanh");
  shoal_values values = {0};
  assert_false(shoal_values_matter(&space, &values, SHOAL_SET_LAYERS));
  assert_true(shoal_values_matter(&space, &values, SHOAL_SET_TOPOLOGY));
  parse(&space, "rate 0.1"); /* says nothing of them */
  assert_int_equal(space.topologies_count, 15);
  parse(&space, "topology none");
  assert_int_equal(space.topologies_count, 0);
  shoal_space_release(&space);
}

/* A line of a setting by chance. */
static const char *random_line(shoal_key key, uint64_t i) {
  static const char *const lines[] = {"layers 2",
                                      "layers 1..64",
                                      "width 7..9000 log",
                                      "width 1 2 3",
                                      "shape stairs hourglass",
                                      "residual yes",
                                      "activation identity softmax gelu",
                                      "dropout 0.125",
                                      "dropout 0..0.333333333333",
                                      "normalise layer",
                                      "optimizer sgd momentum",
                                      "rate 0.00012345..0.7 log",
                                      "batch 1..16777216 log",
                                      "decay 0",
                                      "numbers robust",
                                      "pieces 2..128",
                                      "categories label one-hot",
                                      "embedding 1..3",
                                      "balance no yes",
                                      "topology 3 elu, 4 leaky-relu",
                                      "combine 2 5 relu silu"};
  return lines[shoal_random_below(key, i, sizeof lines / sizeof *lines)];
}

static void a_written_space_reads_back_from_any_other(void **state) {
  (void)state;
  for (uint64_t round = 0; round < 500; round++) {
    shoal_key key = shoal_key_make(round, SHOAL_FOR_SIMULATION, 0, 0);
    shoal_space space = usual(), other;
    shoal_space_usual(&other, 100, 3);
    parse(&other, "topology 1 relu\nshape stairs");
    for (uint64_t i = 0; i < 8; i++) parse(&space, random_line(key, i));
    shoal_text once, again;
    shoal_text_init(&once);
    shoal_text_init(&again);
    shoal_space_write(&space, &once);
    parse(&other, once.bytes);
    shoal_space_write(&other, &again);
    assert_string_equal(once.bytes, again.bytes);
    for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
      const shoal_setting *a = &space.settings[id], *b = &other.settings[id];
      assert_true(a->is_choice == b->is_choice && a->whole == b->whole && a->log == b->log &&
                  a->min == b->min && a->max == b->max && a->choices_count == b->choices_count);
    }
    shoal_text_release(&once);
    shoal_text_release(&again);
    shoal_space_release(&space);
    shoal_space_release(&other);
  }
}

static void the_unit_cube_goes_to_values_and_back(void **state) {
  (void)state;
  shoal_space space = usual();
  parse(&space,
        "width 3..1000 log\nlayers 2..9\nrate 1e-5..1 log\ndropout 0..0.5\nembedding 4\ndecay 0.3..0.3\n"
        "combine 1..4 8 relu tanh");
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
    const shoal_setting *setting = &space.settings[id];
    double last = -INFINITY;
    for (uint64_t i = 0; i < 2000; i++) {
      double u = (double)i / 2000;
      double value = shoal_space_from_unit(setting, u);
      assert_true(value >= last); /* and so within the ends, below */
      last = value;
      double back = shoal_space_to_unit(setting, value);
      assert_true(back >= 0 && back < 1);
      assert_true(setting->is_choice || setting->min == setting->max || setting->whole ||
                  fabs(back - u) < 0.003);
      if (setting->is_choice || setting->whole) assert_true(shoal_space_from_unit(setting, back) == value);
    }
    double least = setting->is_choice ? 0 : setting->min;
    double most = setting->is_choice ? setting->choices_count - 1 : setting->max;
    assert_true(shoal_space_from_unit(setting, 0) == least);
    double highest = shoal_space_from_unit(setting, 1 - 0x1p-53);
    assert_true(fabs(highest - most) <= 0.006 * most);
    if (setting->is_choice || setting->whole) assert_true(highest == most);
  }
  /* Of a log range half is below the geometric middle. */
  uint32_t below = 0;
  for (uint64_t i = 0; i < 1000; i++)
    below += shoal_space_from_unit(&space.settings[SHOAL_SET_RATE], (double)i / 1000) < 0.00316;
  assert_in_range(below, 495, 505);
  shoal_space_release(&space);
}

static void exact_functions_are_right(void **state) {
  (void)state;
  for (int i = -2000; i <= 2000; i++) {
    double x = i * 0.31;
    assert_true(fabs(shoal_exact_exp(x) / exp(x) - 1) < 1e-12);
    double y = exp(i * 0.05);
    assert_true(fabs(shoal_exact_log(y) - log(y)) < 1e-14 * fmax(1, fabs(log(y))));
  }
}

static void fix_all(shoal_space *space) {
  parse(space,
        "layers 1\nwidth 8\nshape brick\nresidual no\nactivation relu\ndropout 0\nnormalise none\n"
        "optimizer adamw\nrate 0.01\nbatch 32\ndecay 0\nnumbers standard\npieces 8\ncategories one-hot\n"
        "embedding 4\nbalance no\ntopology none");
}

static void the_grid_has_every_point_once(void **state) {
  (void)state;
  shoal_space space = usual();
  assert_int_equal(shoal_space_grid(&space), 0);
  assert_string_equal(shoal_space_endless(&space), "dropout");
  fix_all(&space);
  assert_int_equal(shoal_space_grid(&space), 1);
  parse(&space, "layers 1..3\nshape brick funnel\nnumbers standard pieces\npieces 4 8 16\nrate 0.1 0.2\n"
                "width 10..50 log\ncategories lookup label\nembedding 2..3");
  /* layers and shape: 1 + 2 * 2; numbers and pieces: 1 + 3; categories and embedding: 2 + 1; width 10 20
   * 40 50 */
  uint64_t points = shoal_space_grid(&space);
  assert_int_equal(points, 5 * 4 * 3 * 2 * 4);
  char **seen = calloc(points, sizeof *seen);
  for (uint64_t i = 0; i < points; i++) {
    shoal_values values;
    shoal_space_grid_at(&space, i, &values);
    shoal_text text;
    shoal_json json;
    shoal_json_begin(&json, &text);
    shoal_values_write(&space, &values, &json, NULL);
    seen[i] = text.bytes;
    for (uint64_t k = 0; k < i; k++) assert_string_not_equal(seen[k], seen[i]);
  }
  assert_string_equal(
      seen[0], "{\"layers\":1,\"width\":10,\"residual\":\"no\",\"activation\":\"relu\",\"dropout\":0,"
               "\"normalise\":\"none\",\"optimizer\":\"adamw\",\"rate\":0.1,\"batch\":32,\"decay\":0,"
               "\"numbers\":\"standard\",\"categories\":\"lookup\",\"embedding\":2,\"balance\":\"no\"}");
  assert_non_null(strstr(seen[1], "\"embedding\":3"));
  for (uint64_t i = 0; i < points; i++) free(seen[i]);
  free(seen);
  parse(&space, "combine 1..2 8 relu tanh");
  assert_int_equal(shoal_space_grid(&space), 6 * 4 * 3 * 2);
  shoal_space_release(&space);
}

static void a_grid_of_too_many_points_has_no_number(void **state) {
  (void)state;
  shoal_space space = usual();
  fix_all(&space);
  parse(&space,
        "width 1..65536\nbatch 1..16777216\nlayers 1..64\npieces 2..128\nnumbers pieces\nembedding 1..1024\n"
        "categories lookup\nshape brick funnel stairs diamond");
  assert_int_equal(shoal_space_grid(&space), 0);
  assert_null(shoal_space_endless(&space));
  parse(&space, "pieces 2..3");
  uint64_t points = shoal_space_grid(&space);
  assert_true(points > (uint64_t)1 << 58);
  shoal_values values;
  shoal_space_grid_at(&space, points - 1, &values);
  assert_true(values.of[SHOAL_SET_WIDTH] == 65536 && values.of[SHOAL_SET_EMBEDDING] == 1024);
  shoal_space_release(&space);
}

static shoal_values random_values(const shoal_space *space, uint64_t seed) {
  shoal_values values;
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_SIMULATION, 1, 0);
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
    values.of[id] = shoal_space_from_unit(&space->settings[id], shoal_random_uniform(key, id));
  return values;
}

static void values_survive_json_where_they_matter(void **state) {
  (void)state;
  shoal_space space = usual();
  for (uint64_t i = 0; i < 2000; i++) {
    if (i == 1000) parse(&space, "combine 1..3 16 relu silu elu\nrate 0.1 0.01");
    shoal_values values = random_values(&space, i), back;
    shoal_text text;
    shoal_json json;
    shoal_json_begin(&json, &text);
    shoal_values_write(&space, &values, &json, NULL);
    cJSON *tree = cJSON_Parse(text.bytes);
    shoal_error err = {0};
    if (shoal_values_read(&space, tree, &back, &err) != SHOAL_OK) fail_msg("%s", err.text);
    for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
      assert_int_equal(shoal_values_matter(&space, &values, id), shoal_values_matter(&space, &back, id));
      if (shoal_values_matter(&space, &values, id)) assert_true(values.of[id] == back.of[id]);
    }
    cJSON_Delete(tree);
    shoal_text_release(&text);
  }
  shoal_space_release(&space);
}

static void values_that_the_space_lacks_are_refused(void **state) {
  (void)state;
  static const char *const bad[] = {"[]",
                                    "3",
                                    "{\"widht\":3}",
                                    "{\"width\":1000000}",
                                    "{\"width\":64.5}",
                                    "{\"width\":\"64\"}",
                                    "{\"shape\":\"round\"}",
                                    "{\"shape\":1}",
                                    "{\"topology\":\"64 relu\"}",
                                    "{\"batch\":77}",
                                    "{\"rate\":null}"};
  shoal_space space = usual();
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cJSON *tree = cJSON_Parse(bad[i]);
    shoal_values values;
    shoal_error err = {0};
    assert_non_null(tree);
    assert_int_equal(shoal_values_read(&space, tree, &values, &err), SHOAL_INVALID);
    if (i == 2) assert_non_null(strstr(err.text, "did you mean 'width'?"));
    cJSON_Delete(tree);
  }
  shoal_space_release(&space);
}

static void usual_spaces_fit_their_tables(void **state) {
  (void)state;
  shoal_space small, large;
  shoal_space_usual(&small, 800, 10);
  shoal_space_usual(&large, 32000, 14);
  assert_true(small.settings[SHOAL_SET_WIDTH].max < large.settings[SHOAL_SET_WIDTH].max);
  assert_true(small.settings[SHOAL_SET_DROPOUT].max > large.settings[SHOAL_SET_DROPOUT].max);
  assert_true(large.settings[SHOAL_SET_WIDTH].min == 64 && large.settings[SHOAL_SET_WIDTH].max == 512);
  assert_true(large.settings[SHOAL_SET_LAYERS].min == 1 && large.settings[SHOAL_SET_LAYERS].max == 4);
  static const uint64_t rows[] = {1, 999, 2999, 14999, 199999, 10000000};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    shoal_space space;
    shoal_space_usual(&space, rows[i], i % 2 ? 3 : 5000);
    for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
      const shoal_setting *s = &space.settings[id];
      assert_true(s->is_choice ? s->choices_count > 0 : s->min <= s->max && (!s->log || s->min > 0));
    }
    shoal_text text;
    shoal_text_init(&text);
    shoal_space_write(&space, &text);
    parse(&space, text.bytes); /* within what a text may say */
    shoal_text_release(&text);
    shoal_space_release(&space);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_become_ranges_and_choices),
      cmocka_unit_test(every_optimiser_and_activation_of_the_models_may_be_searched),
      cmocka_unit_test(errors_name_the_place_and_what_to_do),
      cmocka_unit_test(topologies_are_read_and_combined),
      cmocka_unit_test(a_written_space_reads_back_from_any_other),
      cmocka_unit_test(the_unit_cube_goes_to_values_and_back),
      cmocka_unit_test(exact_functions_are_right),
      cmocka_unit_test(the_grid_has_every_point_once),
      cmocka_unit_test(a_grid_of_too_many_points_has_no_number),
      cmocka_unit_test(values_survive_json_where_they_matter),
      cmocka_unit_test(values_that_the_space_lacks_are_refused),
      cmocka_unit_test(usual_spaces_fit_their_tables),
  };
  return RUN_TESTS(tests);
}
