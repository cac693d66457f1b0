/* fuzz_image_file.c: any bytes as a PNG or JPEG file. What is accepted is within the limits and can be fitted. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "data/image_file.h"
#include "data/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_image_file image;
  shoal_error err = {0};
  if (shoal_image_file_decode(&image, "fuzz", bytes, length, &err) != SHOAL_OK) {
    SHOAL_ASSERT(strstr(err.text, "fuzz") && err.status != SHOAL_OK && image.pixels == NULL);
    return 0;
  }
  SHOAL_ASSERT(image.c == 1 || image.c == 3);
  SHOAL_ASSERT(image.w > 0 && image.h > 0 && (uint64_t)image.w * image.h <= SHOAL_IMAGE_FILE_PIXELS_MAX);
  uint32_t size = 1 + (uint32_t)(length % 40), c = length % 2 ? 1 : 3;
  uint8_t *out = malloc((size_t)c * size * 7);
  if (out) SHOAL_ASSERT(shoal_image_file_fit(&image, c, size, 7, out, &err) == SHOAL_OK);
  free(out);
  shoal_image_file_release(&image);
  return 0;
}
