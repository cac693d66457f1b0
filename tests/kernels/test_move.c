/* Layouts, tables and bytes: moves are exact. */
#include "kernels/reference.h"

static void layouts_turn_into_each_other(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (int t = 0; t < tables_count; t++)
    for (size_t f = 0; f < COUNT_OF(ref_sizes); f++)
      for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
        const uint32_t features = ref_sizes[f], samples = ref_sizes[n];
        const uint32_t lanes = shoal_lanes_for(samples) + (n % 2 == 0 ? 16 : 0);
        float *rows = ref_random((size_t)samples * features, -1, 1);
        float *in_lanes = ref_filled((size_t)features * lanes, NAN);
        float *back = ref_filled((size_t)samples * features, NAN);
        tables[t]->rows_to_lanes(features, lanes, samples, rows, in_lanes);
        for (uint32_t i = 0; i < features; i++)
          for (uint32_t lane = 0; lane < lanes; lane++)
            assert_true(in_lanes[(size_t)i * lanes + lane] ==
                        (lane < samples ? rows[(size_t)lane * features + i] : 0));
        tables[t]->lanes_to_rows(features, lanes, samples, in_lanes, back);
        ref_same("rows", tables[t]->name, (size_t)samples * features, back, rows);
        free(rows);
        free(in_lanes);
        free(back);
      }
}

static void lanes_that_are_no_whole_vectors_turn_into_rows(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (int t = 0; t < tables_count; t++)
    for (size_t f = 0; f < COUNT_OF(ref_sizes); f++)
      for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
        const uint32_t features = ref_sizes[f], lanes = ref_sizes[n];
        float *x = ref_random((size_t)features * lanes, -1, 1);
        float *y = ref_filled((size_t)features * lanes, NAN);
        tables[t]->lanes_to_rows(features, lanes, lanes, x, y);
        for (uint32_t i = 0; i < features; i++)
          for (uint32_t lane = 0; lane < lanes; lane++)
            assert_true(y[(size_t)lane * features + i] == x[(size_t)i * lanes + lane]);
        free(x);
        free(y);
      }
}

static void bytes_are_scaled_with_one_rounding(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  const float scale[3] = {1 / 255.0f, 0.017f, 2}, shift[3] = {-0.5f, 0, 3};
  for (int t = 0; t < tables_count; t++)
    for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
      const uint32_t samples = ref_sizes[n], lanes = shoal_lanes_for(samples), plane = 35;
      const uint8_t **images = ref_alloc(samples * sizeof *images);
      for (uint32_t i = 0; i < samples; i++) {
        uint8_t *image = ref_alloc(3 * plane);
        for (uint32_t p = 0; p < 3 * plane; p++) image[p] = (uint8_t)ref_next();
        images[i] = image;
      }
      float *y = ref_filled((size_t)3 * plane * lanes, NAN),
            *rows = ref_filled((size_t)3 * plane * samples, NAN);
      tables[t]->bytes_to_lanes(3, plane, lanes, samples, images, scale, shift, y);
      tables[t]->bytes_to_rows(3, plane, samples, images, scale, shift, rows);
      for (uint32_t p = 0; p < 3 * plane; p++)
        for (uint32_t lane = 0; lane < lanes; lane++) {
          const float expected =
              lane < samples ? fmaf(images[lane][p], scale[p / plane], shift[p / plane]) : 0;
          assert_true(y[(size_t)p * lanes + lane] == expected);
          if (lane < samples) assert_true(rows[(size_t)lane * 3 * plane + p] == expected);
        }
      for (uint32_t i = 0; i < samples; i++) free((void *)images[i]);
      free(images);
      free(y);
      free(rows);
    }
}

static void embeddings_are_fetched_and_their_gradients_added(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  enum { VOCABULARY = 5, ROWS = 11 };
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
    const uint32_t width = ref_sizes[n];
    float *table = ref_random((size_t)VOCABULARY * width, -1, 1),
          *dy = ref_random((size_t)ROWS * width, -1, 1);
    float *expected = ref_copy((size_t)VOCABULARY * width, table);
    int32_t ids[ROWS];
    for (int r = 0; r < ROWS; r++) {
      ids[r] = (int32_t)(ref_next() % VOCABULARY);
      for (uint32_t i = 0; i < width; i++)
        expected[(uint32_t)ids[r] * width + i] += dy[(uint32_t)r * width + i];
    }
    for (int t = 0; t < tables_count; t++) {
      float *y = ref_filled((size_t)ROWS * width, NAN), *d = ref_copy((size_t)VOCABULARY * width, table);
      tables[t]->embed_forward(ROWS, width, table, ids, y);
      for (int r = 0; r < ROWS; r++)
        ref_same("embedding", tables[t]->name, width, y + (uint32_t)r * width,
                 table + (uint32_t)ids[r] * width);
      tables[t]->embed_backward(ROWS, width, ids, dy, d);
      ref_same("embedding gradient", tables[t]->name, (size_t)VOCABULARY * width, d, expected);
      free(y);
      free(d);
    }
    free(table);
    free(dy);
    free(expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts_turn_into_each_other),
      cmocka_unit_test(lanes_that_are_no_whole_vectors_turn_into_rows),
      cmocka_unit_test(bytes_are_scaled_with_one_rounding),
      cmocka_unit_test(embeddings_are_fetched_and_their_gradients_added),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
