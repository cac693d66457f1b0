/* noise.c: see noise.h. */
#include "data/noise.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { TABLE_COUNT = 1 << 16, STRIDE = 131 }; /* between samples, or values of an image */

struct shoal_noise {
  shoal_shape input, output;
  uint32_t vocabulary;
  float values[TABLE_COUNT];
  uint32_t numbers[TABLE_COUNT];
};

shoal_status shoal_noise_create(shoal_noise **out, const shoal_model *model, shoal_error *err) {
  shoal_noise *noise = *out = malloc(sizeof *noise);
  if (noise == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  noise->input = model->layers[0].shape;
  noise->output = model->layers[model->layers_count - 1].shape;
  noise->vocabulary = shoal_model_vocabulary(model);
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, 0, 0);
  for (uint32_t i = 0; i < TABLE_COUNT; i++) {
    noise->values[i] = shoal_random_uniform(key, 2 * i) - 0.5f;
    noise->numbers[i] = shoal_random_u32(key, 2 * i + 1);
  }
  return SHOAL_OK;
}

void shoal_noise_destroy(shoal_noise *noise) { free(noise); }

/* Copies `count` values, from a place on; the table is a ring. */
static void copy(const shoal_noise *from, uint64_t place, float *to, size_t count) {
  while (count > 0) {
    size_t at = (size_t)(place % TABLE_COUNT);
    size_t part = TABLE_COUNT - at < count ? TABLE_COUNT - at : count;
    memcpy(to, from->values + at, part * sizeof *to);
    place += part;
    to += part;
    count -= part;
  }
}

/* Value v of neighbours lies side by side, there and here. */
static void fill_lanes(const shoal_noise *from, uint64_t first, uint32_t n, float *x) {
  uint32_t lanes = shoal_lanes_for(n);
  uint64_t values = shoal_shape_values(&from->input);
  for (uint64_t v = 0; v < values; v++) {
    copy(from, first + v * STRIDE, x + v * lanes, n);
    memset(x + v * lanes + n, 0, (lanes - n) * sizeof *x);
  }
}

/* Step after step, a row a sample. */
static void fill_rows(const shoal_noise *from, const shoal_shape *shape, uint64_t first, uint32_t n,
                      float *x) {
  for (uint32_t step = 0; step < shape->steps; step++)
    for (uint32_t i = 0; i < n; i++) {
      uint64_t place = (first + i) * STRIDE + (uint64_t)step * shape->features;
      copy(from, place, x + ((size_t)step * n + i) * shape->features, shape->features);
    }
}

static void fill_numbers(const shoal_noise *from, uint32_t steps, uint64_t first, uint32_t n, uint64_t shift,
                         uint32_t below, int32_t *to) {
  for (uint32_t step = 0; step < steps; step++)
    for (uint32_t i = 0; i < n; i++) {
      uint64_t place = (first + i) * STRIDE + step + shift;
      to[(size_t)step * n + i] = (int32_t)(from->numbers[place % TABLE_COUNT] % below);
    }
}

void shoal_noise_fetch(const shoal_noise *from, uint64_t first, uint32_t n, const shoal_batch *into) {
  const shoal_shape *input = &from->input, *output = &from->output;
  if (into->x && input->kind == SHOAL_IMAGE)
    fill_lanes(from, first, n, into->x);
  else if (into->x)
    fill_rows(from, input, first, n, into->x);
  if (into->tokens && from->vocabulary > 0)
    fill_numbers(from, input->steps, first, n, 0, from->vocabulary, into->tokens);
  if (into->labels) fill_numbers(from, output->steps, first, n, 1, output->features, into->labels);
  if (into->targets) fill_rows(from, output, first, n, into->targets);
  for (uint32_t i = 0; into->weight && i < n * output->steps; i++) into->weight[i] = 1;
  for (uint32_t i = 0; into->ids && i < n; i++) into->ids[i] = first + i;
}
