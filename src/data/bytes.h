/* bytes.h: what is in a file, unzipped, as memory to read.
 *
 * A plain file is mapped. A gzip file is unzipped; when that gives a megabyte or more, a
 * plain copy is left under $XDG_CACHE_HOME/shoal (by a thread, while the caller goes on),
 * and mapped the next time: unzipping Fashion-MNIST takes 0.15 s, mapping it no time at
 * all. A copy is named after path, size and time of the file; one that cannot be written
 * is done without; all of them may be deleted at any time.
 *
 * Ownership: open, then close; in between the struct must stay where it is, as the thread
 * reads it. The data are followed by no zero. A plain file that another
 * program cuts short while it is mapped ends the process. Threads: read-only after open. */
#ifndef SHOAL_DATA_BYTES_H
#define SHOAL_DATA_BYTES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_bytes {
  const uint8_t *data;
  size_t length;
  void *mapped;    /* or */
  uint8_t *owned;  /* from malloc */
  char *copy_path; /* where the thread, if there is one, leaves the copy */
  bool copying;
  pthread_t thread;
} shoal_bytes;

/* Larger than limit_bytes is an error. On failure *out is closed. */
shoal_status shoal_bytes_open(shoal_bytes *out, const char *path, size_t limit_bytes, shoal_error *err);
/* The same for many files at once, each on a thread. On failure all are closed. */
shoal_status shoal_bytes_open_all(shoal_bytes *out, const char *const *paths, size_t count,
                                  size_t limit_bytes, shoal_error *err);
/* Closing what is closed already, or all zero, does nothing. */
void shoal_bytes_close(shoal_bytes *bytes);

#endif
