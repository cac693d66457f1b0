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

#define SHOAL_STATUSES(X)         \
  X(OK, "ok")                     \
  X(INVALID, "bad input")         \
  X(NOT_FOUND, "not found")       \
  X(CORRUPT, "corrupt data")      \
  X(LIMIT, "over a limit")        \
  X(IO, "input or output failed") \
  X(NO_MEMORY, "out of memory")   \
  X(UNSUPPORTED, "not supported")

typedef enum shoal_status {
#define SHOAL_STATUS_ENUM(name, text) SHOAL_##name,
  SHOAL_STATUSES(SHOAL_STATUS_ENUM)
#undef SHOAL_STATUS_ENUM
} shoal_status;

enum { SHOAL_ERROR_TEXT_MAX = 1024 };

typedef struct shoal_error {
  shoal_status status;
  char text[SHOAL_ERROR_TEXT_MAX];
} shoal_error;

/* The fixed text of a status, for logs. */
const char *shoal_status_text(shoal_status status);

/* Writes the sentence into err (when not NULL) and returns status, so that
 * `return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));` reads as one step. */
shoal_status shoal_fail(shoal_error *err, shoal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts text before what err already says: "model.net: " + "line 3: ...". */
void shoal_error_prefix(shoal_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
