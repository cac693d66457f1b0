/* file.c: whole files, read into memory and written so that no part of one is ever seen.
 *
 * For data sets, models and checkpoints: up to gigabytes, a few at a time. A writer collects
 * small pieces in a buffer; large ones go straight to the system. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/text.h"

/* One sentence for a failed system call on `path`, with advice where there is any. */
static shoal_status fail_errno(shoal_error *err, const char *path, int number) {
  switch (number) {
  case ENOENT: return shoal_fail(err, SHOAL_NOT_FOUND, "%s: no such file or folder", path);
  case ENOSPC:
    return shoal_fail(err, SHOAL_FULL,
                      "%s: no space left on device; free some space there or choose another place", path);
  case EDQUOT:
    return shoal_fail(err, SHOAL_FULL,
                      "%s: disk quota exceeded; remove some files there or choose another place", path);
  case ENOMEM: return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  default: return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(number));
  }
}

/* ---- reading ------------------------------------------------------------------------ */

enum { READ_BYTES_AT_ONCE = 1 << 30, READ_BYTES_FIRST = 64 << 10 };

/* Where bytes come from: a descriptor, or zlib on top of it. zlib passes on as it is what
 * does not start with gzip's magic. */
typedef struct source {
  const char *path;
  int fd;
  gzFile gz; /* owns fd when not NULL */
} source;

/* Up to `room` bytes into `to`; *got is 0 at the end. */
static shoal_status source_read(source *from, uint8_t *to, size_t room, size_t *got, shoal_error *err) {
  unsigned ask = room < READ_BYTES_AT_ONCE ? (unsigned)room : READ_BYTES_AT_ONCE;
  if (!from->gz) {
    ssize_t n;
    do {
      n = read(from->fd, to, ask);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return fail_errno(err, from->path, errno);
    *got = (size_t)n;
    return SHOAL_OK;
  }
  errno = 0;
  int n = gzread(from->gz, to, ask);
  int problem = Z_OK;
  if (n <= 0) gzerror(from->gz, &problem);
  if (problem == Z_ERRNO) return fail_errno(err, from->path, errno);
  if (problem == Z_MEM_ERROR) return fail_errno(err, from->path, ENOMEM);
  if (problem == Z_BUF_ERROR)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: the compressed data ends too early", from->path);
  if (n < 0) return shoal_fail(err, SHOAL_CORRUPT, "%s: the compressed data is damaged", from->path);
  *got = (size_t)n;
  return SHOAL_OK;
}

/* Reads to the end into a buffer that grows from `expected_bytes`. */
static shoal_status read_all(source *from, size_t expected_bytes, size_t limit_bytes, uint8_t **out,
                             size_t *length, shoal_error *err) {
  uint8_t *bytes = NULL;
  size_t capacity = 0, used = 0, got = 0;
  shoal_status status = SHOAL_OK;
  do {
    /* Room for one byte more than is wanted, to see that the end was reached, and a zero. */
    if (used + 2 > capacity) {
      if (capacity > SIZE_MAX / 2) {
        status = fail_errno(err, from->path, ENOMEM);
        break;
      }
      capacity = capacity ? capacity * 2 : expected_bytes + 2;
      if (limit_bytes < SIZE_MAX - 2 && capacity > limit_bytes + 2) capacity = limit_bytes + 2;
      uint8_t *larger = realloc(bytes, capacity);
      if (!larger) {
        status = fail_errno(err, from->path, ENOMEM);
        break;
      }
      bytes = larger;
    }
    status = source_read(from, bytes + used, capacity - 1 - used, &got, err);
    if (status != SHOAL_OK) break;
    used += got;
    if (used > limit_bytes) {
      status =
          shoal_fail(err, SHOAL_LIMIT, "%s: larger than the limit of %zu bytes", from->path, limit_bytes);
      break;
    }
  } while (got > 0);

  if (status != SHOAL_OK) {
    free(bytes);
    return status;
  }
  bytes[used] = 0;
  uint8_t *exact = realloc(bytes, used + 1);
  *out = exact ? exact : bytes;
  *length = used;
  return SHOAL_OK;
}

shoal_status shoal_file_read(const char *path, size_t limit_bytes, bool gunzip, uint8_t **out, size_t *length,
                             shoal_error *err) {
  *out = NULL;
  *length = 0;
  source from = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
  if (from.fd < 0) return fail_errno(err, path, errno);

  shoal_status status;
  struct stat about;
  size_t expected_bytes = READ_BYTES_FIRST;
  if (fstat(from.fd, &about) != 0) {
    status = fail_errno(err, path, errno);
    goto end;
  }
  if (S_ISDIR(about.st_mode)) {
    status = shoal_fail(err, SHOAL_INVALID, "%s: is a folder, not a file", path);
    goto end;
  }
  if (gunzip) {
    from.gz = gzdopen(from.fd, "rb");
    if (!from.gz) {
      status = fail_errno(err, path, ENOMEM);
      goto end;
    }
    gzbuffer(from.gz, READ_BYTES_FIRST);
  } else if (S_ISREG(about.st_mode)) {
    if ((uint64_t)about.st_size > limit_bytes) {
      status = shoal_fail(err, SHOAL_LIMIT, "%s: larger than the limit of %zu bytes", path, limit_bytes);
      goto end;
    }
    expected_bytes = (size_t)about.st_size;
  }
  status = read_all(&from, expected_bytes, limit_bytes, out, length, err);
end:
  if (from.gz)
    gzclose_r(from.gz);
  else
    close(from.fd);
  return status;
}

/* ---- writing ------------------------------------------------------------------------ */

enum { WRITE_BUFFER_BYTES = 64 << 10 };

static const char TEMPORARY[] = ".tmp.";

struct shoal_writer {
  char *path;      /* as the user gave it, for sentences */
  char *place;     /* what is replaced: `path` with its symbolic links followed */
  char *temporary; /* NULL when the target is written directly: a device, a pipe */
  int fd;
  size_t buffered_bytes;
  shoal_status status; /* of the first failure */
  shoal_error err;
  uint8_t buffer[WRITE_BUFFER_BYTES];
};

/* /dev/stdout can be a regular file, when the shell sent it there; that file must not be
 * replaced by another under its name. */
static bool is_stream(const char *path) {
  return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
         strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* Removes the temporary files of `place` that nobody holds: a program that was killed in the
 * middle of a write could not. A living writer has its file locked, on whatever machine. */
static void remove_abandoned(const char *place) {
  const char *slash = strrchr(place, '/');
  const char *name = slash ? slash + 1 : place;
  char *folder = slash ? strndup(place, (size_t)(slash - place) + 1) : strdup("./");
  DIR *here = folder ? opendir(folder) : NULL;
  size_t length = strlen(name);
  for (struct dirent *entry; here && (entry = readdir(here));) {
    if (strncmp(entry->d_name, name, length) != 0 || strncmp(entry->d_name + length, TEMPORARY, 5) != 0)
      continue;
    int fd = openat(dirfd(here), entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(here), entry->d_name, 0);
    close(fd);
  }
  if (here) closedir(here);
  free(folder);
}

/* Makes `place`.tmp.RANDOM and locks it. Between the two another program may take it for
 * abandoned and remove it: then it has no name any more, and the next try makes a new one. */
static int open_locked(const char *place, mode_t mode, char **name) {
  for (int tries = 0; tries < 100; tries++) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) random = (uint64_t)getpid();
    shoal_text text;
    shoal_text_init(&text);
    shoal_text_addf(&text, "%s%s%016" PRIx64, place, TEMPORARY, random);
    if (text.failed) {
      shoal_text_release(&text);
      errno = ENOMEM;
      return -1;
    }
    int fd = open(text.bytes, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    struct stat made;
    if ((fd < 0 && errno != EEXIST) ||
        (fd >= 0 && flock(fd, LOCK_EX) == 0 && fstat(fd, &made) == 0 && made.st_nlink > 0)) {
      int number = errno;
      if (fd >= 0) *name = text.bytes;
      if (fd < 0) shoal_text_release(&text);
      errno = number;
      return fd;
    }
    if (fd >= 0) close(fd);
    shoal_text_release(&text);
  }
  errno = EAGAIN;
  return -1;
}

/* A file that takes another's place has its mode, unless it is a secret. */
static shoal_status open_temporary(shoal_writer *writer, const struct stat *old, bool secret,
                                   shoal_error *err) {
  remove_abandoned(writer->place);
  writer->fd = open_locked(writer->place, secret ? 0600 : 0666, &writer->temporary);
  if (writer->fd < 0 && errno == ENOENT)
    return shoal_fail(err, SHOAL_NOT_FOUND, "%s: its folder does not exist; create it first", writer->path);
  if (writer->fd < 0) return fail_errno(err, writer->path, errno);
  if (old && !secret && fchmod(writer->fd, old->st_mode & 0777) != 0)
    return fail_errno(err, writer->path, errno);
  return SHOAL_OK;
}

static shoal_status create(shoal_writer **out, const char *path, bool secret, shoal_error *err) {
  *out = NULL;
  shoal_writer *writer = calloc(1, sizeof *writer);
  if (!writer) return fail_errno(err, path, ENOMEM);
  writer->fd = -1;
  writer->path = strdup(path);
  writer->place = realpath(path, NULL);
  if (!writer->place) writer->place = strdup(path);
  shoal_status status = SHOAL_OK;
  struct stat old;
  bool exists = stat(path, &old) == 0;
  size_t length = strlen(path);
  if (!writer->path || !writer->place) {
    status = fail_errno(err, path, ENOMEM);
  } else if (length == 0) {
    status = shoal_fail(err, SHOAL_INVALID, "a file to write needs a name");
  } else if ((exists && S_ISDIR(old.st_mode)) || path[length - 1] == '/') {
    status = shoal_fail(err, SHOAL_INVALID, "%s: is a folder; give the name of a file in it", path);
  } else if (exists && access(path, W_OK) != 0) {
    status = fail_errno(err, path, errno);
  } else if (exists && (!S_ISREG(old.st_mode) || is_stream(path))) {
    writer->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (writer->fd < 0) status = fail_errno(err, path, errno);
  } else {
    status = open_temporary(writer, exists ? &old : NULL, secret, err);
  }
  if (status != SHOAL_OK) {
    shoal_writer_abandon(writer);
    return status;
  }
  *out = writer;
  return SHOAL_OK;
}

shoal_status shoal_writer_create(shoal_writer **out, const char *path, shoal_error *err) {
  return create(out, path, false, err);
}

shoal_status shoal_writer_create_secret(shoal_writer **out, const char *path, shoal_error *err) {
  return create(out, path, true, err);
}

static void write_through(shoal_writer *writer, const uint8_t *bytes, size_t length) {
  while (length > 0 && writer->status == SHOAL_OK) {
    ssize_t n = write(writer->fd, bytes, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      writer->status = fail_errno(&writer->err, writer->path, errno);
      return;
    }
    bytes += n;
    length -= (size_t)n;
  }
}

static void flush(shoal_writer *writer) {
  write_through(writer, writer->buffer, writer->buffered_bytes);
  writer->buffered_bytes = 0;
}

void shoal_writer_add(shoal_writer *writer, const void *bytes, size_t length) {
  if (length == 0 || writer->status != SHOAL_OK) return;
  if (length > WRITE_BUFFER_BYTES - writer->buffered_bytes) flush(writer);
  if (length >= WRITE_BUFFER_BYTES) {
    write_through(writer, bytes, length);
    return;
  }
  memcpy(writer->buffer + writer->buffered_bytes, bytes, length);
  writer->buffered_bytes += length;
}

shoal_status shoal_writer_patch(shoal_writer *writer, uint64_t offset, const void *bytes, size_t length,
                                shoal_error *err) {
  if (!writer->temporary)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s: must be a file, and not a pipe or a device", writer->path);
  flush(writer);
  const uint8_t *from = bytes;
  while (length > 0 && writer->status == SHOAL_OK) {
    ssize_t n = pwrite(writer->fd, from, length, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      writer->status = fail_errno(&writer->err, writer->path, errno);
      break;
    }
    from += n;
    offset += (uint64_t)n;
    length -= (size_t)n;
  }
  if (writer->status != SHOAL_OK && err) *err = writer->err;
  return writer->status;
}

/* Makes the new name in the folder of `path` durable. A folder that may not be opened, or a
 * file system that has no such thing, is left alone: the file itself is in place by now. */
static int sync_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
  if (!folder) return ENOMEM;
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  free(folder);
  if (fd < 0) return 0;
  int number = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
  close(fd);
  return number;
}

shoal_status shoal_writer_commit(shoal_writer *writer, shoal_error *err) {
  flush(writer);
  int number = 0;
  if (writer->status == SHOAL_OK) {
    if (writer->temporary && fsync(writer->fd) != 0) number = errno;
    if (close(writer->fd) != 0 && !number) number = errno;
    writer->fd = -1;
    if (!number && writer->temporary) {
      if (rename(writer->temporary, writer->place) != 0) {
        number = errno;
      } else {
        free(writer->temporary); /* it has become the file: nothing to remove any more */
        writer->temporary = NULL;
        number = sync_folder(writer->place);
      }
    }
    if (number) writer->status = fail_errno(&writer->err, writer->path, number);
  }
  shoal_status status = writer->status;
  if (status != SHOAL_OK && err) *err = writer->err;
  shoal_writer_abandon(writer);
  return status;
}

void shoal_writer_abandon(shoal_writer *writer) {
  if (!writer) return;
  if (writer->temporary) unlink(writer->temporary);
  if (writer->fd >= 0) close(writer->fd);
  free(writer->path);
  free(writer->place);
  free(writer->temporary);
  free(writer);
}

shoal_status shoal_file_write(const char *path, const void *bytes, size_t length, shoal_error *err) {
  shoal_writer *writer;
  shoal_status status = shoal_writer_create(&writer, path, err);
  if (status != SHOAL_OK) return status;
  shoal_writer_add(writer, bytes, length);
  return shoal_writer_commit(writer, err);
}

/* ---- folders ------------------------------------------------------------------------ */

bool shoal_file_exists(const char *path) { return access(path, F_OK) == 0; }

bool shoal_folder_exists(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

shoal_status shoal_make_folder(const char *path, shoal_error *err) {
  char *part = strdup(path);
  if (!part) return fail_errno(err, path, ENOMEM);
  /* Each parent in turn, from the front: cut the path at its slashes. */
  shoal_status status = SHOAL_OK;
  size_t length = strlen(path);
  for (size_t i = 1; i <= length && status == SHOAL_OK; i++) {
    if (path[i] != '/' && path[i] != 0) continue;
    part[i] = 0;
    if (mkdir(part, 0777) != 0 && errno != EEXIST) status = fail_errno(err, part, errno);
    part[i] = path[i];
  }
  free(part);
  if (status == SHOAL_OK && !shoal_folder_exists(path))
    status = shoal_fail(err, SHOAL_INVALID, "%s: is not a folder", path);
  return status;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
  (void)about, (void)kind, (void)where;
  return remove(path);
}

shoal_status shoal_remove_folder(const char *path, shoal_error *err) {
  if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) return SHOAL_OK;
  return fail_errno(err, path, errno);
}

char *shoal_path(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *path = NULL;
  if (vasprintf(&path, format, arguments) < 0) path = NULL;
  va_end(arguments);
  return path;
}

shoal_status shoal_fail_errno(const char *path, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
}
