/* csv_file.h: a CSV file of any length, to be read row by row with bounded memory.
 *
 * The file is mapped, and the reader gives back what is behind it. A gzip file, one in UTF-16 and one that
 * is no plain file (a pipe) are first written out to a temporary file that has no name any more. A plain
 * file that another program cuts short while it is read ends the process.
 *
 * Ownership: open, then close; a reader must be released before. Threads: none. */
#ifndef SHOAL_DATA_CSV_FILE_H
#define SHOAL_DATA_CSV_FILE_H

#include "base/hash.h"
#include "data/csv.h"

typedef struct shoal_csv_file {
  char *path, *folder;
  const char *bytes;
  size_t length;
  int fd;
  char sha256[SHOAL_SHA256_HEX]; /* of the file as it lies there */
} shoal_csv_file;

/* A temporary file in `folder` (NULL: $TMPDIR, /var/tmp or /tmp), which is gone when it is closed. */
shoal_status shoal_unnamed_file(const char *folder, int *fd, shoal_error *err);

/* Fails on folders, on what is not there or cannot be read. On failure *out is closed. */
shoal_status shoal_csv_file_open(shoal_csv_file *out, const char *path, const char *folder, shoal_error *err);
void shoal_csv_file_close(shoal_csv_file *file); /* closing what is closed, or all zero, does nothing */

/* Guesses what is not said, and makes a reader that begins at the first row. */
shoal_status shoal_csv_file_guess(const shoal_csv_file *file, const shoal_dialect_said *said,
                                  shoal_dialect *out, shoal_error *err);
shoal_status shoal_csv_file_read(shoal_csv_file *file, const shoal_dialect *dialect, shoal_csv *out,
                                 shoal_error *err);

#endif
