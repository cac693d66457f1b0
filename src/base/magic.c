/* magic.c: see magic.h. */
#include "base/magic.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES_MAX = 16 };

/* What stands at the front, and what at a place behind it. */
#define FRONT(text) text, sizeof text - 1
static const struct {
  shoal_magic magic;
  const char *front;
  size_t front_length, place;
  const char *behind;
  size_t behind_length;
} table[] = {
    {{"a PNG image", true, true}, FRONT("\x89PNG\r\n\x1a\n"), 0, FRONT("")},
    {{"a JPEG image", true, true}, FRONT("\xff\xd8\xff"), 0, FRONT("")},
    {{"a GIF image", true, false}, FRONT("GIF8"), 5, FRONT("a")},
    {{"a WebP image", true, false}, FRONT("RIFF"), 8, FRONT("WEBP")},
    {{"a BMP image", true, false}, FRONT("BM"), 6, FRONT("\0\0\0\0")},
    {{"a TIFF image", true, false}, FRONT("II*\0"), 0, FRONT("")},
    {{"a TIFF image", true, false}, FRONT("MM\0*"), 0, FRONT("")},
    {{"an AVIF image", true, false}, FRONT("\0\0\0"), 4, FRONT("ftypavif")},
    {{"a HEIC image", true, false}, FRONT("\0\0\0"), 4, FRONT("ftyphei")},
    {{"a zip archive, as PyTorch and Keras write them", false, false}, FRONT("PK\3\4"), 0, FRONT("")},
    {{"an HDF5 file, as Keras writes them", false, false}, FRONT("\x89HDF\r\n\x1a\n"), 0, FRONT("")},
    {{"a pickle of Python's, as PyTorch writes them", false, false}, FRONT("\x80\x02\x8a\x0a"), 0, FRONT("")},
    {{"a pickle of Python's", false, false}, FRONT("\x80\x04\x95"), 0, FRONT("")},
    {{"a NumPy file", false, false}, FRONT("\x93NUMPY"), 0, FRONT("")},
    {{"a GGUF file", false, false}, FRONT("GGUF"), 5, FRONT("\0\0\0")},
    {{"a gzip file", false, false}, FRONT("\x1f\x8b\x08"), 0, FRONT("")},
};

const shoal_magic *shoal_magic_of(const uint8_t *bytes, size_t length) {
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (length >= table[i].front_length && length >= table[i].place + table[i].behind_length &&
        memcmp(bytes, table[i].front, table[i].front_length) == 0 &&
        memcmp(bytes + table[i].place, table[i].behind, table[i].behind_length) == 0)
      return &table[i].magic;
  return NULL;
}

const shoal_magic *shoal_magic_of_file(const char *path) {
  uint8_t bytes[BYTES_MAX];
  struct stat about;
  /* A pipe is not opened: what is read from it would be lost. */
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd >= 0 ? read(fd, bytes, sizeof bytes) : -1;
  if (fd >= 0) close(fd);
  return length > 0 ? shoal_magic_of(bytes, (size_t)length) : NULL;
}
