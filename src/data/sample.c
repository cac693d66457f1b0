/* sample.c: see sample.h. What a network is given of a sample is scaled; here that is undone. */
#include "data/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/png.h"
#include "data/images.h"
#include "data/table.h"
#include "kernels/kernels.h"

enum { VALUES_MAX = 1 << 20 }; /* of an image that is drawn */

/* ---- images ---- */

/* One sample as the source gives it. Images for convolutions stand a lane apart. */
static float *fetch_one(const shoal_source *source, uint64_t position, size_t values) {
  size_t bytes = values * shoal_lanes_for(1) * sizeof(float);
  float *x = aligned_alloc(64, bytes);
  const shoal_batch into = {.x = x};
  if (x != NULL) source->fetch(source->self, 0, position, 1, &into);
  return x;
}

/* The mean of a rectangle of one channel, as the byte that it was. */
static uint8_t shrink(const shoal_images *images, const float *plane, size_t apart, uint32_t channel,
                      const uint32_t from[2], const uint32_t to[2]) {
  double sum = 0, count = 0;
  for (uint32_t y = from[1]; y < to[1]; y++)
    for (uint32_t x = from[0]; x < to[0]; x++, count++) sum += plane[((size_t)y * images->w + x) * apart];
  double byte = (sum / count - images->shift[channel]) / images->scale[channel];
  return (uint8_t)lround(fmin(fmax(byte, 0), 255));
}

static void draw(const shoal_sample_picture *to, const shoal_images *images, const float *x, size_t apart) {
  size_t plane = (size_t)images->h * images->w;
  for (uint32_t v = 0; v < to->height; v++) {
    for (uint32_t u = 0; u < to->width; u++) {
      const uint32_t begin[2] = {(uint32_t)((uint64_t)u * images->w / to->width),
                                 (uint32_t)((uint64_t)v * images->h / to->height)};
      const uint32_t end[2] = {(uint32_t)(((uint64_t)u + 1) * images->w / to->width),
                               (uint32_t)(((uint64_t)v + 1) * images->h / to->height)};
      for (uint32_t c = 0; c < to->channels; c++)
        to->pixels[((size_t)v * to->width + u) * to->channels + c] =
            shrink(images, x + c * plane * apart, apart, c, begin, end);
    }
  }
}

bool shoal_sample_picture_of(shoal_sample_picture *out, const shoal_dataset *dataset,
                             const shoal_source *source, uint64_t position, uint32_t side_max) {
  const shoal_images *images = shoal_dataset_images(dataset);
  *out = (shoal_sample_picture){0};
  if (images == NULL || (uint64_t)images->c * images->h * images->w > VALUES_MAX) return false;
  uint32_t side = images->w > images->h ? images->w : images->h;
  double factor = side > side_max ? (double)side_max / side : 1;
  out->width = (uint32_t)fmax(1, images->w * factor);
  out->height = (uint32_t)fmax(1, images->h * factor);
  out->channels = images->c == 3 ? 3 : 1;
  out->pixels = malloc((size_t)out->width * out->height * out->channels);
  float *x = fetch_one(source, position, (size_t)images->c * images->h * images->w);
  bool done = x != NULL && out->pixels != NULL;
  if (done) draw(out, images, x, shoal_dataset_is_in_lanes(dataset) ? shoal_lanes_for(1) : 1);
  free(x);
  if (!done) shoal_sample_picture_release(out);
  return done;
}

void shoal_sample_picture_release(shoal_sample_picture *picture) {
  free(picture->pixels);
  *picture = (shoal_sample_picture){0};
}

/* ---- for a page ---- */

static void write_picture(const shoal_sample_picture *picture, shoal_json *json) {
  shoal_text png = {0}, address = {0};
  shoal_png_write(&png, picture->width, picture->height,
                  picture->channels == 3 ? SHOAL_PNG_RGB : SHOAL_PNG_GREY, picture->pixels);
  shoal_png_address(&address, &png);
  if (!address.failed) shoal_json_text(json, "image", address.bytes);
  shoal_text_release(&png);
  shoal_text_release(&address);
}

static void write_row(const shoal_table *table, const shoal_source *source, uint64_t position,
                      shoal_json *json) {
  uint32_t count = table->columns.count;
  float *x = calloc(count, sizeof *x);
  const shoal_batch into = {.x = x};
  if (x == NULL) return;
  source->fetch(source->self, 0, position, 1, &into);
  shoal_json_open(json, "values", '{');
  for (uint32_t i = 0; i < count && i < SHOAL_SAMPLE_COLUMNS; i++) {
    /* The scaled number is a float: more figures than six would be its rounding. */
    char text[32];
    double value = x[i] * table->deviation[i] + table->mean[i];
    snprintf(text, sizeof text, "%.6g", fabs(value) < 1e-6 * table->deviation[i] ? 0 : value);
    if (shoal_read_f64(text, strlen(text), &value))
      shoal_json_real(json, shoal_names_at(&table->columns, i), value);
  }
  shoal_json_close(json, '}');
  free(x);
}

void shoal_sample_write(const shoal_dataset *dataset, const shoal_source *source, uint64_t position,
                        shoal_json *json) {
  const shoal_table *table = shoal_dataset_table(dataset);
  shoal_sample_picture picture;
  if (shoal_sample_picture_of(&picture, dataset, source, position, SHOAL_SAMPLE_SIDE)) {
    write_picture(&picture, json);
    shoal_sample_picture_release(&picture);
  } else if (table != NULL) {
    write_row(table, source, position, json);
  }
}
