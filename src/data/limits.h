/* limits.h: how large data may be.
 *
 * A size that stands in a file is checked against these before it is used for anything. */
#ifndef SHOAL_DATA_LIMITS_H
#define SHOAL_DATA_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#define SHOAL_DATA_FILE_BYTES_MAX ((size_t)4 << 30)    /* after gunzip */
#define SHOAL_TABLE_VALUES_MAX ((uint64_t)512 << 20)   /* numbers in a table */
#define SHOAL_FITTED_JSON_BYTES_MAX ((size_t)64 << 20) /* in a checkpoint */

enum {
  SHOAL_CSV_COLUMNS_MAX = 16384,
  SHOAL_CSV_CELL_BYTES_MAX = 1 << 20,
  SHOAL_CLASSES_MAX = 65536,         /* of a table's target */
  SHOAL_NAME_BYTES_MAX = 4096,       /* a column, a class, a word of a text */
  SHOAL_VOCABULARY_MAX = 1 << 22,    /* distinct words or characters */
  SHOAL_IMAGE_VALUES_MAX = 1 << 26,  /* channels x height x width */
  SHOAL_IMAGE_CHANNELS_MAX = 64,     /* each with a mean and a deviation of its own */
  SHOAL_IMAGE_CLASSES_MAX = 256,     /* a label is a byte */
  SHOAL_IMAGE_FILE_SIDE_MAX = 65535, /* pixels of a PNG or JPEG file */
  SHOAL_IMAGE_FILE_PIXELS_MAX = 1 << 26,
  SHOAL_IMAGE_FILE_BYTES_MAX = 1 << 28,
  SHOAL_DOWNLOAD_SECONDS_STALLED = 30, /* without a byte, a download has failed */
};

#endif
