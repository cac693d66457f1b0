/* magic.h: what a file of another program is, by its first bytes, for sentences that refuse it.
 *
 * Threads: any. */
#ifndef SHOAL_BASE_MAGIC_H
#define SHOAL_BASE_MAGIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct shoal_magic {
  const char *what;       /* "a GIF image" */
  bool is_image, is_read; /* PNG and JPEG are */
} shoal_magic;

/* NULL where the first bytes tell nothing. Those of a text never do. */
const shoal_magic *shoal_magic_of(const uint8_t *bytes, size_t length);
/* The same of a file; NULL also where it is none, or cannot be read. */
const shoal_magic *shoal_magic_of_file(const char *path);

#endif
