/* status.h: how a function says that it could not do what it was asked.
 *
 * Three kinds of trouble are kept apart. A bug trips SHOAL_ASSERT (base/assert.h).
 * A failure of the world and bad input both return a shoal_status, and where the
 * caller passed a shoal_error it receives one sentence that a user can act on,
 * naming the file, line or field at fault.
 *
 * Ownership: a shoal_error is plain storage of the caller's. `err` may always be
 * NULL. Threads: none; each error belongs to one thread. */
#ifndef SHOAL_BASE_STATUS_H
#define SHOAL_BASE_STATUS_H

typedef enum shoal_status {
  SHOAL_OK,
  SHOAL_INVALID, /* bad input */
  SHOAL_NOT_FOUND,
  SHOAL_CONFLICT, /* there is one already */
  SHOAL_CORRUPT,
  SHOAL_LIMIT, /* more than is allowed */
  SHOAL_IO,
  SHOAL_FULL, /* no room on a disk: somebody may make some */
  SHOAL_NO_MEMORY,
  SHOAL_UNSUPPORTED,
  SHOAL_STOPPED,     /* on request, before it was done */
  SHOAL_UNAVAILABLE, /* not now: the same may be possible in a while */
} shoal_status;

enum { SHOAL_ERROR_TEXT_MAX = 1024 };

typedef struct shoal_error {
  shoal_status status;
  char text[SHOAL_ERROR_TEXT_MAX];
} shoal_error;

/* Writes the sentence into err (when not NULL) and returns status, so that
 * `return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));` reads as one step. */
shoal_status shoal_fail(shoal_error *err, shoal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts text before what err already says: "model.net: " + "line 3: ...". */
void shoal_error_prefix(shoal_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
