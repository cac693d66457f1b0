/* sample.h: a sample of a data set as people see it: an image as a picture, a row of a table column by column.
 *
 * Samples are named by their position in a source (nn/source.h) of the data set, in its epoch 0.
 *
 * Ownership: a picture is the caller's, to release. Threads: any. */
#ifndef SHOAL_DATA_SAMPLE_H
#define SHOAL_DATA_SAMPLE_H

#include "base/json.h"
#include "data/dataset.h"

/* The longest side of pictures for a page or a terminal, and the columns of a row that are shown. */
enum { SHOAL_SAMPLE_SIDE = 64, SHOAL_SAMPLE_COLUMNS = 64 };

typedef struct shoal_sample_picture {
  uint32_t width, height, channels; /* 1: grey, 3: red, green, blue */
  uint8_t *pixels;                  /* rows from the top */
} shoal_sample_picture;

/* An image, made smaller where a side is longer than side_max. False where samples are no images, or too large
 * to be drawn, or memory is short. */
bool shoal_sample_picture_of(shoal_sample_picture *out, const shoal_dataset *dataset,
                             const shoal_source *source, uint64_t position, uint32_t side_max);
void shoal_sample_picture_release(shoal_sample_picture *picture);

/* Adds to an open object "image", a PNG as an address that browsers show, or "values", an object with the first
 * columns of a row, in their own units; nothing for samples of other kinds. */
void shoal_sample_write(const shoal_dataset *dataset, const shoal_source *source, uint64_t position,
                        shoal_json *json);

#endif
