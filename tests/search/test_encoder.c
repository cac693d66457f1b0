#include "table.h"

#include <math.h>

#include "base/random.h"

static shoal_encoder *fit(const table *t, const shoal_encoding_choice *choice, const shoal_row_list *list) {
  shoal_encoder *encoder;
  shoal_error err;
  if (shoal_encoder_fit(&encoder, &t->profile, choice, &t->target, t->rows, list, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  return encoder;
}

static void near(double found, double wanted) {
  if (!(fabs(found - wanted) < 1e-5)) fail_msg("%.8g, not %.8g", found, wanted);
}

/* A column of numbers with two missing at the end, and a target. */
static void open_numbers(table *t, const double *numbers, int count) {
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "x,y\n");
  for (int i = 0; i < count; i++) shoal_text_addf(&csv, "%g,%d.5\n", numbers[i], i);
  for (int i = 0; i < 2; i++) shoal_text_addf(&csv, ",%d.5\n", count + i);
  table_open(t, csv.bytes, "y", "x=number y=number");
  shoal_text_release(&csv);
}

static void standard_numbers_have_mean_0_and_deviation_1(void **state) {
  (void)state;
  table t;
  const double numbers[] = {1, 2, 3, 4, 10000};
  open_numbers(&t, numbers, 5);
  shoal_row_list first_four = {.at = (uint64_t[]){0, 1, 2, 3, 5}, .count = 5};
  const shoal_encoding_choice choice = {.numbers = SHOAL_STANDARD};
  shoal_encoder *e = fit(&t, &choice, &first_four);
  assert_int_equal(shoal_encoder_values(e), 2); /* the number, and whether it is missing */
  float out[2];
  for (uint64_t r = 0; r < 4; r++) {
    shoal_encoder_row(e, t.rows, r, out);
    near(out[0], ((double)r + 1 - 2.5) / sqrt(1.25));
    near(out[1], 0);
  }
  shoal_encoder_row(e, t.rows, 4, out); /* far outside what it was fitted on */
  near(out[0], SHOAL_SCALED_MAX);
  shoal_encoder_row(e, t.rows, 5, out);
  near(out[0], 0);
  near(out[1], 1);
  assert_int_equal(shoal_encoder_column(e, 1), 0);
  shoal_encoder_destroy(e);
  table_close(&t);
}

static void nothing_missing_in_training_means_no_value_for_it(void **state) {
  (void)state;
  table t;
  const double numbers[] = {1, 2, 3, 4};
  open_numbers(&t, numbers, 4);
  shoal_row_list list = {.at = (uint64_t[]){0, 1, 2, 3}, .count = 4};
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.numbers = SHOAL_ROBUST}, &list);
  assert_int_equal(shoal_encoder_values(e), 1);
  float out[1];
  shoal_encoder_row(e, t.rows, 1, out);
  near(out[0], (2 - 2.5) / (1.5 / 1.349));
  shoal_encoder_row(e, t.rows, 4, out);
  near(out[0], 0);
  shoal_encoder_destroy(e);
  table_close(&t);
}

static void quantiles_become_normal(void **state) {
  (void)state;
  table t;
  double numbers[401];
  for (int i = 0; i < 401; i++) numbers[i] = exp(i / 20.0);
  open_numbers(&t, numbers, 401);
  shoal_row_list list = all_rows(&t);
  list.count = 401;
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.numbers = SHOAL_QUANTILE}, &list);
  double sum = 0, squares = 0, last = -10;
  for (uint64_t r = 0; r < 401; r++) {
    float out[1];
    shoal_encoder_row(e, t.rows, r, out);
    assert_true((double)out[0] >= last);
    last = (double)out[0];
    sum += last;
    squares += last * last;
  }
  assert_true(fabs(sum / 401) < 0.02 && fabs(squares / 401 - 1) < 0.05);
  free(list.at);
  shoal_encoder_destroy(e);
  table_close(&t);
}

static void pieces_rise_from_0_to_1_one_after_the_other(void **state) {
  (void)state;
  table t;
  const double numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, -100, 200};
  open_numbers(&t, numbers, 11);
  shoal_row_list list = all_rows(&t);
  list.count = 9;
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.numbers = SHOAL_PIECES, .pieces = 4}, &list);
  assert_int_equal(shoal_encoder_values(e), 4); /* edges 0 2 4 6 8 */
  const double mean[] = {7.5 / 9, 5.5 / 9, 3.5 / 9, 1.5 / 9};
  float out[4];
  shoal_encoder_row(e, t.rows, 3, out);
  const double three[] = {1, 0.5, 0, 0};
  for (int j = 0; j < 4; j++) near(out[j], three[j] - mean[j]);
  shoal_encoder_row(e, t.rows, 9, out); /* far below: bounded */
  const double below[] = {-1, 0, 0, 0};
  for (int j = 0; j < 4; j++) near(out[j], below[j] - mean[j]);
  shoal_encoder_row(e, t.rows, 10, out);
  const double above[] = {1, 1, 1, 2};
  for (int j = 0; j < 4; j++) near(out[j], above[j] - mean[j]);
  shoal_encoder_row(e, t.rows, 11, out); /* missing */
  for (int j = 0; j < 4; j++) near(out[j], 0);
  free(list.at);
  shoal_encoder_destroy(e);
  table_close(&t);
}

/* Nine tenths are 0: the pieces are for the rest. */
static void a_frequent_value_does_not_take_all_pieces(void **state) {
  (void)state;
  table t;
  double numbers[1000];
  for (int i = 0; i < 1000; i++) numbers[i] = i < 900 ? 0 : i;
  open_numbers(&t, numbers, 1000);
  shoal_row_list list = all_rows(&t);
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.numbers = SHOAL_PIECES, .pieces = 16}, &list);
  assert_in_range(shoal_encoder_values(e), 15, 18);
  free(list.at);
  shoal_encoder_destroy(e);
  table_close(&t);
}

/* a 6 times, b 4 times, c once, missing twice. */
static const char categories[] =
    "k,y\na,1.5\na,2.5\na,3.5\na,4.5\na,5.5\na,6.5\nb,7.5\nb,8.5\nb,9.5\nb,10.5\n"
    "c,11.5\n,12.5\n,13.5\n";

static void categories_have_slots(void **state) {
  (void)state;
  table t;
  table_open(&t, categories, "y", "k=category y=number");
  shoal_row_list list = all_rows(&t);
  /* One-hot: unseen (c is too rare), missing, a, b. */
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.categories = SHOAL_ONE_HOT}, &list);
  assert_int_equal(shoal_encoder_values(e), 4);
  const uint32_t slot[] = {2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 0, 1, 1};
  float out[4];
  for (uint64_t r = 0; r < 13; r++) {
    shoal_encoder_row(e, t.rows, r, out);
    for (uint32_t j = 0; j < 4; j++) assert_true(out[j] == (j == slot[r] ? 1.0f : 0.0f));
  }
  shoal_encoder_destroy(e);
  e = fit(&t, &(shoal_encoding_choice){.categories = SHOAL_LOOKUP}, &list);
  assert_int_equal(shoal_encoder_values(e), 1);
  assert_int_equal(shoal_encoder_lookups(e), 1);
  assert_int_equal(shoal_encoder_vocabulary(e), 4);
  for (uint64_t r = 0; r < 13; r++) {
    shoal_encoder_row(e, t.rows, r, out);
    assert_true(out[0] == (float)slot[r]);
  }
  shoal_encoder_destroy(e);
  e = fit(&t, &(shoal_encoding_choice){.categories = SHOAL_LABEL}, &list);
  double sum = 0, squares = 0;
  for (uint64_t r = 0; r < 13; r++) {
    shoal_encoder_row(e, t.rows, r, out);
    sum += (double)out[0];
    squares += (double)out[0] * (double)out[0];
  }
  near(sum, 0);
  near(squares, 13);
  shoal_encoder_destroy(e);
  /* Fitted without c and missing ones: both are unseen, for which one-hot has no value. */
  list.count = 10;
  e = fit(&t, &(shoal_encoding_choice){.categories = SHOAL_ONE_HOT}, &list);
  assert_int_equal(shoal_encoder_values(e), 2);
  for (uint64_t r = 10; r < 13; r++) {
    shoal_encoder_row(e, t.rows, r, out);
    assert_true(out[0] == 0 && out[1] == 0);
  }
  shoal_encoder_destroy(e);
  e = fit(&t, &(shoal_encoding_choice){.categories = SHOAL_ONE_HOT, .one_hot_max = 2}, &list);
  assert_int_equal(shoal_encoder_lookups(e), 1);
  shoal_encoder_destroy(e);
  free(list.at);
  table_close(&t);
}

static void dates_have_parts(void **state) {
  (void)state;
  table t;
  table_open(&t,
             "when,y\n2024-01-01,1.5\n2024-04-02,2.5\n2024-07-03,3.5\n2025-10-04,4.5\n2023-12-31,5.5\n"
             "2024-02-29,6.5\n,7.5\n",
             "y", "when=date y=number");
  shoal_row_list list = all_rows(&t);
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){0}, &list);
  /* Time, missing, year, day, month (2), weekday (2); no hour, since it is always 0. */
  assert_int_equal(shoal_encoder_values(e), 8);
  float out[8];
  shoal_encoder_row(e, t.rows, 0, out); /* a Monday in January */
  near(out[4], 0);
  near(out[5], 1);
  near(out[6], sin(2 * M_PI / 7));
  near(out[7], cos(2 * M_PI / 7));
  shoal_encoder_row(e, t.rows, 3, out); /* a Saturday in October */
  near(out[4], -1);
  near(out[5], 0);
  near(out[6], sin(2 * M_PI * 6 / 7));
  shoal_encoder_row(e, t.rows, 6, out);
  for (int j = 0; j < 8; j++) near(out[j], j == 1);
  free(list.at);
  shoal_encoder_destroy(e);
  table_close(&t);
}

static void texts_have_one_length_and_equal_ones_equal_values(void **state) {
  (void)state;
  table t;
  table_open(&t, "note,y\nthe red house,1.5\na blue boat,2.5\nthe red house,3.5\n,4.5\n", "y",
             "note=text y=number");
  shoal_row_list list = all_rows(&t);
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.text_values = 32}, &list);
  assert_int_equal(shoal_encoder_values(e), 32);
  float out[4][32];
  for (uint64_t r = 0; r < 4; r++) shoal_encoder_row(e, t.rows, r, out[r]);
  assert_memory_equal(out[0], out[2], sizeof out[0]);
  assert_memory_not_equal(out[0], out[1], sizeof out[0]);
  double length[4] = {0};
  for (int r = 0; r < 4; r++)
    for (int j = 0; j < 32; j++) length[r] += (double)out[r][j] * (double)out[r][j];
  near(length[0], length[1]);
  assert_true(length[3] == 0);
  free(list.at);
  shoal_encoder_destroy(e);
  table_close(&t);
}

static const char mixed[] =
    "n,k,when,note,y\n1.5,a,2024-01-01,the red house,1.5\n2,a,2024-04-02,a blue boat,2.5\n3,b,2024-07-03,two "
    "words,3.5\n"
    ",b,2025-10-04,the end,4.5\n9,b,2023-12-31,red boat,5.5\n4,a,,,6.5\n5,,2024-05-05 10:30,house,7.5\n";

static void an_encoder_survives_json(void **state) {
  (void)state;
  table t;
  table_open(&t, mixed, "y", "n=number k=category when=date note=text y=number");
  shoal_row_list list = all_rows(&t);
  for (int way = 0; way < 12; way++) {
    shoal_encoding_choice choice = {.numbers = (shoal_number_way)(way % 4),
                                    .categories = (shoal_category_way)(way / 4)};
    if (choice.numbers == SHOAL_PIECES) choice.pieces = 3;
    shoal_encoder *e = fit(&t, &choice, &list), *again;
    shoal_text text, second;
    shoal_json json;
    shoal_error err;
    shoal_json_begin(&json, &text);
    shoal_encoder_write(e, &json, NULL);
    cJSON *parsed = cJSON_Parse(text.bytes);
    if (shoal_encoder_read(&again, &t.profile, parsed, &err) != SHOAL_OK) fail_msg("%s", err.text);
    shoal_json_begin(&json, &second);
    shoal_encoder_write(again, &json, NULL);
    assert_string_equal(text.bytes, second.bytes);
    uint32_t values = shoal_encoder_values(e);
    assert_int_equal(shoal_encoder_values(again), values);
    float *a = malloc(values * sizeof *a), *b = malloc(values * sizeof *b);
    for (uint64_t r = 0; r < list.count; r++) {
      shoal_encoder_row(e, t.rows, r, a);
      shoal_encoder_row(again, t.rows, r, b);
      assert_memory_equal(a, b, values * sizeof *a);
    }
    free(a);
    free(b);
    cJSON_Delete(parsed);
    shoal_text_release(&text);
    shoal_text_release(&second);
    shoal_encoder_destroy(e);
    shoal_encoder_destroy(again);
  }
  free(list.at);
  table_close(&t);
}

/* The encoder that the vectors make, or NULL; the choice is that of another one. */
static shoal_encoder *unpack(const table *t, const shoal_encoder *choice,
                             const shoal_encoder_packed *packed) {
  shoal_text text;
  shoal_json json;
  shoal_encoder *out;
  shoal_json_begin(&json, &text);
  shoal_encoder_write_choice(choice, &json, NULL);
  cJSON *parsed = cJSON_Parse(text.bytes);
  shoal_status status = shoal_encoder_unpack(&out, &t->profile, parsed, packed, NULL);
  assert_int_equal(status == SHOAL_OK, out != NULL);
  cJSON_Delete(parsed);
  shoal_text_release(&text);
  return out;
}

static void an_encoder_survives_packing(void **state) {
  (void)state;
  table t;
  table_open(&t, mixed, "y", "n=number k=category when=date note=text y=number");
  shoal_row_list list = all_rows(&t);
  for (int way = 0; way < 12; way++) {
    shoal_encoding_choice choice = {.numbers = (shoal_number_way)(way % 4),
                                    .categories = (shoal_category_way)(way / 4)};
    if (choice.numbers == SHOAL_PIECES) choice.pieces = 3;
    shoal_encoder *e = fit(&t, &choice, &list);
    shoal_encoder_packed packed;
    shoal_text text, second;
    shoal_json json;
    assert_int_equal(shoal_encoder_pack(&packed, e, NULL), SHOAL_OK);
    shoal_encoder *again = unpack(&t, e, &packed);
    assert_non_null(again);
    shoal_json_begin(&json, &text);
    shoal_encoder_write(e, &json, NULL);
    shoal_json_begin(&json, &second);
    shoal_encoder_write(again, &json, NULL);
    assert_string_equal(text.bytes, second.bytes);
    shoal_text_release(&text);
    shoal_text_release(&second);
    shoal_encoder_packed_release(&packed);
    shoal_encoder_destroy(e);
    shoal_encoder_destroy(again);
  }
  free(list.at);
  table_close(&t);
}

/* What is not refused must be safe to use. */
static int try_packed(const table *t, const shoal_encoder *choice, const shoal_encoder_packed *packed) {
  shoal_encoder *e = unpack(t, choice, packed);
  if (e == NULL) return 1;
  float *out = malloc(shoal_encoder_values(e) * sizeof *out);
  for (uint64_t r = 0; r < shoal_rows_count(t->rows); r++) shoal_encoder_row(e, t->rows, r, out);
  free(out);
  shoal_encoder_destroy(e);
  return 0;
}

static void damaged_vectors_are_refused_or_harmless(void **state) {
  (void)state;
  static const int32_t words[] = {-1, 0, 1, 7, 1000, INT32_MAX, INT32_MIN};
  static const double numbers[] = {-1, 1e300, NAN, INFINITY};
  table t;
  int refused = 0;
  table_open(&t, mixed, "y", "n=number k=category when=date note=text y=number");
  shoal_row_list list = all_rows(&t);
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.numbers = SHOAL_PIECES, .pieces = 3}, &list);
  shoal_encoder_packed packed;
  assert_int_equal(shoal_encoder_pack(&packed, e, NULL), SHOAL_OK);
  for (uint64_t i = 0; i < packed.features_count * SHOAL_FEATURE_WORDS + packed.slots_count; i++) {
    uint64_t features = packed.features_count * SHOAL_FEATURE_WORDS;
    int32_t *word = i < features ? &packed.features[i] : &packed.slots[i - features], before = *word;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
      *word = words[k];
      refused += try_packed(&t, e, &packed);
    }
    *word = before;
  }
  for (uint64_t i = 0; i < packed.numbers_count; i += i < 100 ? 1 : 997) {
    double before = packed.numbers[i];
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
      packed.numbers[i] = numbers[k];
      refused += try_packed(&t, e, &packed);
    }
    packed.numbers[i] = before;
  }
  assert_true(refused > 100);
  shoal_encoder_packed less = packed;
  less.numbers_count--;
  assert_int_equal(try_packed(&t, e, &less), 1);
  less = packed;
  less.slots_count--;
  assert_int_equal(try_packed(&t, e, &less), 1);
  less = packed;
  less.features_count--;
  assert_int_equal(try_packed(&t, e, &less), 1);
  shoal_encoder_packed_release(&packed);
  shoal_encoder_destroy(e);
  free(list.at);
  table_close(&t);
}

/* Every value of the JSON in turn is made something else; what is not refused must be safe to use. */
static void damage(cJSON *item, const shoal_profile *profile, cJSON *root, const shoal_rows *rows,
                   int *refused) {
  static const double numbers[] = {-1, 1e9, 0.5, 1e300};
  for (; item; item = item->next) {
    if (item->child) damage(item->child, profile, root, rows, refused);
    if (!cJSON_IsNumber(item)) continue;
    double before = item->valuedouble;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
      item->valuedouble = numbers[i];
      shoal_encoder *e;
      if (shoal_encoder_read(&e, profile, root, NULL) != SHOAL_OK) {
        ++*refused;
        continue;
      }
      float *out = malloc(shoal_encoder_values(e) * sizeof *out);
      for (uint64_t r = 0; r < shoal_rows_count(rows); r++) shoal_encoder_row(e, rows, r, out);
      free(out);
      shoal_encoder_destroy(e);
    }
    item->valuedouble = before;
  }
}

static void damaged_json_is_refused_or_harmless(void **state) {
  (void)state;
  table t;
  table_open(&t, mixed, "y", "n=number k=category when=date note=skip y=number");
  shoal_row_list list = all_rows(&t);
  shoal_encoder *e = fit(&t, &(shoal_encoding_choice){.numbers = SHOAL_PIECES, .pieces = 3}, &list);
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_encoder_write(e, &json, NULL);
  cJSON *parsed = cJSON_Parse(text.bytes);
  int refused = 0;
  damage(parsed->child, &t.profile, parsed, t.rows, &refused);
  assert_true(refused > 20);
  cJSON_Delete(parsed);
  shoal_text_release(&text);
  shoal_encoder_destroy(e);
  free(list.at);
  table_close(&t);
}

static void targets_are_found(void **state) {
  (void)state;
  table t;
  table_open(&t, "x,y\n1.5,yes\n2.5,no\n3.5,yes\n4.5,\n", "y", "x=number");
  assert_int_equal(t.target.problem, SHOAL_BINARY);
  assert_string_equal(shoal_names_at(&t.target.classes, 0), "no");
  assert_int_equal(shoal_target_label(&t.target, t.rows, 0), 1);
  assert_int_equal(shoal_target_label(&t.target, t.rows, 1), 0);
  assert_int_equal(shoal_target_label(&t.target, t.rows, 3), -1);
  table_close(&t);
  table_open(&t, "x,y\n1.5,10\n2.5,9\n3.5,2\n4.5,9\n", "y", "x=number y=number");
  assert_int_equal(t.target.problem, SHOAL_MULTICLASS);
  assert_string_equal(shoal_names_at(&t.target.classes, 0), "2"); /* by number, not by name */
  assert_int_equal(shoal_target_label(&t.target, t.rows, 0), 2);
  assert_int_equal(shoal_target_label(&t.target, t.rows, 3), 1);
  table_close(&t);
  table_open(&t, "x,y\n1.5,1\n2.5,2\n3.5,4.5\n", "y", "x=number y=number");
  assert_int_equal(t.target.problem, SHOAL_REGRESSION);
  near(t.target.mean, 2.5);
  near(shoal_target_value(&t.target, t.rows, 1), -0.5 / t.target.deviation);
  table_close(&t);
}

static void targets_survive_json(void **state) {
  (void)state;
  static const char *const tables[] = {"x,y\n1.5,yes\n2.5,no\n3.5,yes\n", "x,y\n1.5,1.5\n2.5,2\n3.5,4.5\n",
                                       "x,y\n1.5,10\n2.5,9\n3.5,2\n"};
  for (int i = 0; i < 3; i++) {
    table t;
    shoal_target again;
    shoal_text text;
    shoal_json json;
    table_open(&t, tables[i], "y", i == 2 ? "y=number" : "x=number");
    if (i == 0) t.target.positive = 0;
    shoal_json_begin(&json, &text);
    shoal_target_write(&t.target, &json, NULL);
    cJSON *parsed = cJSON_Parse(text.bytes);
    assert_int_equal(shoal_target_read(&again, parsed, &t.profile, NULL), SHOAL_OK);
    assert_int_equal(again.problem, t.target.problem);
    assert_int_equal(again.positive, t.target.positive);
    for (uint64_t r = 0; r < 3; r++) {
      if (again.problem == SHOAL_REGRESSION)
        assert_true(shoal_target_value(&again, t.rows, r) == shoal_target_value(&t.target, t.rows, r));
      else
        assert_int_equal(shoal_target_label(&again, t.rows, r), shoal_target_label(&t.target, t.rows, r));
    }
    shoal_target_release(&again);
    cJSON_DeleteItemFromObject(parsed, "positive"); /* as in files of before */
    assert_int_equal(shoal_target_read(&again, parsed, &t.profile, NULL), SHOAL_OK);
    assert_int_equal(again.positive, 1);
    shoal_target_release(&again);
    cJSON_DeleteItemFromObject(parsed, "column");
    assert_int_equal(shoal_target_read(&again, parsed, &t.profile, NULL), SHOAL_CORRUPT);
    cJSON_Delete(parsed);
    shoal_text_release(&text);
    table_close(&t);
  }
}

enum { KEPT_ROWS = 7 };

/* An epoch has every row once; what is kept and what is encoded again are the same. */
static void the_source_gives_every_row_once(void **state) {
  (void)state;
  table t;
  table_open(&t, mixed, "y", "n=number k=category when=date note=text y=number");
  shoal_encoder *e =
      fit(&t, &(shoal_encoding_choice){0}, &(shoal_row_list){(uint64_t[]){0, 1, 2, 3, 4, 5, 6}, 7});
  shoal_encoded_options options = {
      .encoder = e, .target = &t.target, .rows = t.rows, .order = true, .seed = 5};
  shoal_encoded *fresh, *kept, *shared;
  assert_int_equal(shoal_encoded_create(&fresh, &options, NULL), SHOAL_OK);
  options.keep_bytes = 1 << 20;
  assert_int_equal(shoal_encoded_create(&kept, &options, NULL), SHOAL_OK);
  assert_int_equal(shoal_encoded_share(&shared, kept, 6, NULL), SHOAL_OK);
  shoal_encoded_destroy(kept); /* what is shared lives on */
  assert_int_equal(shoal_encoded_share(&kept, shared, 5, NULL), SHOAL_OK);
  uint32_t values = shoal_encoder_values(e);
  float *x = malloc(2 * KEPT_ROWS * values * sizeof *x), y[2][KEPT_ROWS], weight[KEPT_ROWS];
  uint64_t ids[3][KEPT_ROWS];
  for (uint64_t epoch = 0; epoch < 3; epoch++) {
    shoal_source a = shoal_encoded_source(fresh), b = shoal_encoded_source(kept),
                 c = shoal_encoded_source(shared);
    assert_int_equal(a.samples, KEPT_ROWS);
    shoal_batch into = {.x = x, .targets = y[0], .ids = ids[0], .weight = weight};
    a.fetch(a.self, epoch, 0, KEPT_ROWS, &into);
    into.x += KEPT_ROWS * values;
    into.targets = y[1];
    into.ids = ids[1];
    b.fetch(b.self, epoch, 0, KEPT_ROWS, &into);
    assert_memory_equal(x, x + KEPT_ROWS * values, KEPT_ROWS * values * sizeof *x);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    uint32_t seen = 0;
    for (int i = 0; i < KEPT_ROWS; i++) {
      seen |= 1u << ids[0][i];
      assert_true(y[0][i] == shoal_target_value(&t.target, t.rows, ids[0][i]) && weight[i] == 1);
    }
    assert_int_equal(seen, (1u << KEPT_ROWS) - 1);
    into.ids = ids[2];
    c.fetch(c.self, epoch, 0, KEPT_ROWS, &into);
  }
  free(x);
  shoal_encoded_destroy(fresh);
  shoal_encoded_destroy(kept);
  shoal_encoded_destroy(shared);
  shoal_encoder_destroy(e);
  table_close(&t);
}

static void a_long_table_goes_on_in_the_next_epoch(void **state) {
  (void)state;
  table t;
  table_open(&t, mixed, "y", "n=number k=category when=date note=text y=number");
  shoal_encoder *e =
      fit(&t, &(shoal_encoding_choice){0}, &(shoal_row_list){(uint64_t[]){0, 1, 2, 3, 4, 5, 6}, 7});
  const shoal_encoded_options options = {
      .encoder = e, .target = &t.target, .rows = t.rows, .order = true, .seed = 5, .epoch_rows = 3};
  shoal_encoded *encoded;
  assert_int_equal(shoal_encoded_create(&encoded, &options, NULL), SHOAL_OK);
  shoal_source source = shoal_encoded_source(encoded);
  assert_int_equal(source.samples, 3);
  int times[KEPT_ROWS] = {0};
  for (uint64_t epoch = 0; epoch < 7; epoch++) { /* 21 samples: three passes */
    uint64_t ids[3];
    source.fetch(source.self, epoch, 0, 3, &(shoal_batch){.ids = ids});
    for (int i = 0; i < 3; i++) times[ids[i]]++;
  }
  for (int r = 0; r < KEPT_ROWS; r++) assert_int_equal(times[r], 3);
  shoal_encoded_destroy(encoded);
  shoal_encoder_destroy(e);
  table_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(standard_numbers_have_mean_0_and_deviation_1),
      IN_FOLDER(nothing_missing_in_training_means_no_value_for_it),
      IN_FOLDER(quantiles_become_normal),
      IN_FOLDER(pieces_rise_from_0_to_1_one_after_the_other),
      IN_FOLDER(a_frequent_value_does_not_take_all_pieces),
      IN_FOLDER(categories_have_slots),
      IN_FOLDER(dates_have_parts),
      IN_FOLDER(texts_have_one_length_and_equal_ones_equal_values),
      IN_FOLDER(an_encoder_survives_json),
      IN_FOLDER(an_encoder_survives_packing),
      IN_FOLDER(damaged_vectors_are_refused_or_harmless),
      IN_FOLDER(damaged_json_is_refused_or_harmless),
      IN_FOLDER(targets_are_found),
      IN_FOLDER(targets_survive_json),
      IN_FOLDER(the_source_gives_every_row_once),
      IN_FOLDER(a_long_table_goes_on_in_the_next_epoch),
  };
  return RUN_TESTS(tests);
}
