/* file.h: whole files in, whole files out.
 *
 * A file is written beside its place under a temporary name, flushed to disk and
 * renamed, so a reader sees the old file or the new one and never a part.
 *
 * Ownership: shoal_file_read gives bytes that the caller frees with free().
 * Threads: any, on different paths. */
#ifndef SHOAL_BASE_FILE_H
#define SHOAL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The whole file with a zero byte after its end. Larger than limit_bytes is an error.
 * A file that starts with gzip's magic is decompressed when gunzip is set, and the
 * limit holds for what comes out. */
shoal_status shoal_file_read(const char *path, size_t limit_bytes, bool gunzip, uint8_t **out, size_t *length,
                             shoal_error *err);

/* A file being written. Nothing appears at `path` until commit succeeds. */
typedef struct shoal_writer shoal_writer;

shoal_status shoal_writer_create(shoal_writer **out, const char *path, shoal_error *err);
/* The same for a secret: nobody but the owner may ever read the file (mode 0600). */
shoal_status shoal_writer_create_secret(shoal_writer **out, const char *path, shoal_error *err);
/* After a failed write the writer stays failed and commit says why. */
void shoal_writer_add(shoal_writer *writer, const void *bytes, size_t length);
/* Writes over what was added before, from byte `offset` on. SHOAL_UNSUPPORTED: it goes to a pipe or a device. */
shoal_status shoal_writer_patch(shoal_writer *writer, uint64_t offset, const void *bytes, size_t length,
                                shoal_error *err);
/* Flush, fsync, rename, and destroy the writer, whether or not it succeeded. */
shoal_status shoal_writer_commit(shoal_writer *writer, shoal_error *err);
/* Remove what was written and destroy the writer. NULL is fine. */
void shoal_writer_abandon(shoal_writer *writer);
/* A whole file at once. */
shoal_status shoal_file_write(const char *path, const void *bytes, size_t length, shoal_error *err);

bool shoal_file_exists(const char *path);
bool shoal_folder_exists(const char *path);
shoal_status shoal_make_folder(const char *path, shoal_error *err); /* with its parents */
/* With all that is in it; links are removed and not followed. One that is not there is fine. */
shoal_status shoal_remove_folder(const char *path, shoal_error *err);

/* The text of a path, for the caller to free; NULL without memory. */
char *shoal_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "PATH: what errno says": SHOAL_NOT_FOUND, SHOAL_FULL, SHOAL_NO_MEMORY or SHOAL_IO. */
shoal_status shoal_fail_errno(const char *path, shoal_error *err);

#endif
