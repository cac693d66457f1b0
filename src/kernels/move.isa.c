/* move.isa.c: data on its way between layouts, tables and formats. */
#include "kernels/isa.h"
#include "kernels/simd.h"

#include <string.h>

void ISA(embed_forward)(uint32_t rows, uint32_t width, const float *table, const int32_t *ids, float *y) {
  for (uint32_t r = 0; r < rows; r++)
    memcpy(y + (size_t)r * width, table + (size_t)ids[r] * width, sizeof *y * width);
}

void ISA(embed_backward)(uint32_t rows, uint32_t width, const int32_t *ids, const float *dy, float *dtable) {
  for (uint32_t r = 0; r < rows; r++, dy += width) {
    float *to = dtable + (size_t)ids[r] * width;
    for (uint32_t i = 0; i < width; i += 16)
      vf_store_some(to + i, width - i,
                    vf_add(vf_load_some(to + i, width - i), vf_load_some(dy + i, width - i)));
  }
}

static uint32_t at_most_16(uint32_t n) { return n < 16 ? n : 16; }

/* Both ways in tiles of 16 features by 16 samples, turned over in registers. */
void ISA(lanes_to_rows)(uint32_t features, uint32_t lanes, uint32_t samples, const float *x, float *y) {
  for (uint32_t group = 0; group < samples; group += 16)
    for (uint32_t f = 0; f < features; f += 16) {
      vf tile[16];
      for (uint32_t i = 0; i < 16; i++)
        tile[i] =
            f + i < features ? vf_load_some(x + (size_t)(f + i) * lanes + group, lanes - group) : vf_zero();
      vf_transpose(tile);
      for (uint32_t i = 0; i < at_most_16(samples - group); i++)
        vf_store_some(y + (size_t)(group + i) * features + f, features - f, tile[i]);
    }
}

void ISA(rows_to_lanes)(uint32_t features, uint32_t lanes, uint32_t samples, const float *x, float *y) {
  for (uint32_t group = 0; group < lanes; group += 16)
    for (uint32_t f = 0; f < features; f += 16) {
      vf tile[16];
      for (uint32_t i = 0; i < 16; i++)
        tile[i] = group + i < samples ? vf_load_some(x + (size_t)(group + i) * features + f, features - f)
                                      : vf_zero();
      vf_transpose(tile);
      for (uint32_t i = 0; i < at_most_16(features - f); i++)
        vf_store(y + (size_t)(f + i) * lanes + group, tile[i]);
    }
}

void ISA(copy_rows)(size_t rows, size_t width, const float *x, size_t x_row, float *y, size_t y_row) {
  for (size_t r = 0; r < rows; r++) memcpy(y + r * y_row, x + r * x_row, width * sizeof *y);
}

void ISA(swap_rows)(uint32_t a, uint32_t b, uint32_t width, const float *x, float *y) {
  for (uint32_t i = 0; i < a; i++)
    for (uint32_t j = 0; j < b; j++)
      memcpy(y + ((size_t)j * a + i) * width, x + ((size_t)i * b + j) * width, width * sizeof *y);
}

void ISA(zero)(size_t count, float *x) { memset(x, 0, count * sizeof *x); }

static int32_t row_number(float value, uint32_t rows) {
  if (!(value >= 0 && value < (float)rows)) return 0; /* nor does a NaN get past this */
  int32_t row = (int32_t)value;
  return (float)row == value ? row : 0;
}

void ISA(row_numbers)(uint32_t n, uint32_t columns, const float *x, size_t x_row, uint32_t rows,
                      int32_t *ids) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t c = 0; c < columns; c++) *ids++ = row_number(x[i * x_row + c], rows);
}

void ISA(bytes_to_lanes)(uint32_t channels, uint32_t plane, uint32_t lanes, uint32_t samples,
                         const uint8_t *const *images, const float *scale, const float *shift, float *y) {
  for (uint32_t c = 0; c < channels; c++) {
    const vf by = vf_set(scale[c]), plus = vf_set(shift[c]);
    for (uint32_t group = 0; group < lanes; group += 16) {
      const uint32_t in_use = group < samples ? at_most_16(samples - group) : 0;
      for (uint32_t i = 0; i < plane; i++) {
        const size_t pixel = (size_t)c * plane + i;
        float value[16] = {0};
        for (uint32_t lane = 0; lane < in_use; lane++) value[lane] = images[group + lane][pixel];
        vf_store(y + pixel * lanes + group, vf_keep(vf_fma(vf_load(value), by, plus), in_use));
      }
    }
  }
}

void ISA(bytes_to_rows)(uint32_t channels, uint32_t plane, uint32_t samples, const uint8_t *const *images,
                        const float *scale, const float *shift, float *y) {
  for (uint32_t sample = 0; sample < samples; sample++)
    for (uint32_t c = 0; c < channels; c++, y += plane) {
      const uint8_t *image = images[sample] + (size_t)c * plane;
      for (uint32_t i = 0; i < plane; i++) y[i] = __builtin_fmaf(image[i], scale[c], shift[c]);
    }
}
