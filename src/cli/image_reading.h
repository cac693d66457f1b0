/* image_reading.h: shows how far the reading of a data set of many image files is.
 *
 * Ownership: plain storage of the caller's, which stays where it is from begin to end. Threads: one. */
#ifndef SHOAL_CLI_IMAGE_READING_H
#define SHOAL_CLI_IMAGE_READING_H

#include "cli/progress.h"
#include "data/dataset.h"

typedef struct shoal_image_reading {
  shoal_progress progress;
  double started;
} shoal_image_reading;

/* Sets the progress callback in `options`. Nothing is shown if `stream` is NULL. */
void shoal_image_reading_begin(shoal_image_reading *reading, shoal_dataset_options *options, FILE *stream);
/* Call this when the data set is open, or with NULL if it could not be opened. Removes the line, and prints what was
 * done to the images. */
void shoal_image_reading_end(shoal_image_reading *reading, const shoal_dataset *dataset);

#endif
