/* image_file.h: one PNG or JPEG file as rows of bytes, and fitted to the size that a model takes.
 *
 * Files are decoded by libpng and libjpeg-turbo. What comes out is grey (one channel) or red, green and blue:
 *   palettes become colours; 1, 2 and 4 bits become 8; of 16 bits the higher 8 are kept
 *   what is transparent lies on white
 *   JPEG: the exact integer transform, with smooth chroma; the library's vector code and its plain code give the
 *   same bytes
 * Colour profiles, gamma and the orientation that a camera notes (EXIF) are not looked at. JPEG files of four
 * colours (CMYK) are refused.
 *
 * Fitting takes the largest part around the centre that has the proportions wanted, and averages it down, or
 * up, with a triangle as wide as a step (bilinear with antialiasing), in whole numbers. So a file gives the same
 * bytes on every machine; one that has the size already keeps its bytes.
 *
 * Sizes in a file are compared with the limits before anything is allocated for them.
 *
 * Ownership: decode, then release; a failure leaves nothing to release. Threads: any. */
#ifndef SHOAL_DATA_IMAGE_FILE_H
#define SHOAL_DATA_IMAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_image_file {
  uint32_t w, h, c; /* c: 1 or 3 */
  uint8_t *pixels;  /* h x w x c */
} shoal_image_file;

/* Whether a file is one by its name: it ends in .png, .jpg or .jpeg, in small or large letters. */
bool shoal_image_file_is(const char *name);
/* The same, or by its first bytes, whatever its name: then also one of a format that is not read. */
bool shoal_image_file_at(const char *path);

/* `name` is the file, for the error. */
shoal_status shoal_image_file_decode(shoal_image_file *out, const char *name, const uint8_t *bytes,
                                     size_t length, shoal_error *err);
shoal_status shoal_image_file_read(shoal_image_file *out, const char *path, shoal_error *err);
void shoal_image_file_release(shoal_image_file *image);

/* Writes c x h x w bytes, channel after channel; c is 1 or 3. The image may be made grey for that. */
shoal_status shoal_image_file_fit(shoal_image_file *image, uint32_t c, uint32_t h, uint32_t w, uint8_t *out,
                                  shoal_error *err);

#endif
