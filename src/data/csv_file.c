/* csv_file.c: see csv_file.h. */
#include "data/csv_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/limits.h"

enum { PIECE_BYTES = 1 << 20 };

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static shoal_status fail_errno(shoal_error *err, const char *path, int number) {
  if (number == ENOENT) return shoal_fail(err, SHOAL_NOT_FOUND, "%s: no such file", path);
  if (number == EACCES)
    return shoal_fail(err, SHOAL_IO, "%s: may not be read; change its permissions (chmod +r)", path);
  return shoal_fail(err, number == ENOMEM ? SHOAL_NO_MEMORY : SHOAL_IO, "%s: %s", path, strerror(number));
}

/* ---- temporary files ---------------------------------------------------------------- */

static int unnamed_in(const char *folder) {
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
  shoal_text path;
  shoal_text_init(&path);
  shoal_text_addf(&path, "%s/shoal-XXXXXX", folder);
  fd = path.failed ? -1 : mkostemp(path.bytes, O_CLOEXEC);
  if (fd >= 0) unlink(path.bytes);
  shoal_text_release(&path);
  return fd;
}

shoal_status shoal_unnamed_file(const char *folder, int *fd, shoal_error *err) {
  const char *const usual[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
  *fd = folder ? unnamed_in(folder) : -1;
  for (size_t i = 0; !folder && *fd < 0 && i < sizeof usual / sizeof *usual; i++) {
    if (usual[i] && usual[i][0]) *fd = unnamed_in(usual[i]);
  }
  if (*fd >= 0) return SHOAL_OK;
  return shoal_fail(err, SHOAL_IO, "%s: cannot make a temporary file: %s", folder ? folder : "/tmp",
                    strerror(errno));
}

static shoal_status write_all(int fd, const void *bytes, size_t length, shoal_error *err) {
  for (const char *at = bytes; length > 0;) {
    ssize_t written = write(fd, at, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return shoal_fail(err, SHOAL_IO, "a temporary file: %s", strerror(errno));
    at += written;
    length -= (size_t)written;
  }
  return SHOAL_OK;
}

/* ---- opening ------------------------------------------------------------------------ */

static void unmap(shoal_csv_file *file) {
  if (file->length > 0) munmap((void *)file->bytes, file->length);
  file->bytes = "";
  file->length = 0;
}

/* Maps what fd holds, in the place of what was mapped before. */
static shoal_status map(shoal_csv_file *file, int fd, shoal_error *err) {
  struct stat about;
  void *mapped = NULL;
  if (fstat(fd, &about) != 0) return fail_errno(err, file->path, errno);
  if (about.st_size > 0) {
    mapped = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return fail_errno(err, file->path, errno);
  }
  unmap(file);
  if (!mapped) return SHOAL_OK;
  file->bytes = mapped;
  file->length = (size_t)about.st_size;
  return SHOAL_OK;
}

/* Takes over fd, a temporary file, in the place of what was there. */
static shoal_status replace(shoal_csv_file *file, int fd, shoal_status status, shoal_error *err) {
  if (status == SHOAL_OK) status = map(file, fd, err);
  if (status != SHOAL_OK) {
    close(fd);
    return status;
  }
  close(file->fd);
  file->fd = fd;
  return SHOAL_OK;
}

/* Reads all of the file for its hash; where `to` is not -1, into that as well. */
static shoal_status hash_all(shoal_csv_file *file, int to, shoal_error *err) {
  char *piece = malloc(PIECE_BYTES);
  shoal_sha256 *hash = shoal_sha256_create();
  shoal_status status = piece && hash ? SHOAL_OK : fail_memory(err);
  while (status == SHOAL_OK) {
    ssize_t got = read(file->fd, piece, PIECE_BYTES);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = fail_errno(err, file->path, errno);
    if (got <= 0) break;
    shoal_sha256_add(hash, piece, (size_t)got);
    if (to >= 0) status = write_all(to, piece, (size_t)got, err);
  }
  if (status == SHOAL_OK) shoal_sha256_finish_hex(hash, file->sha256);
  shoal_sha256_destroy(hash);
  free(piece);
  return status;
}

static shoal_status unzip(shoal_csv_file *file, int to, shoal_error *err) {
  int copy = dup(file->fd);
  gzFile zipped = copy >= 0 && lseek(copy, 0, SEEK_SET) == 0 ? gzdopen(copy, "rb") : NULL;
  if (!zipped) {
    if (copy >= 0) close(copy);
    return fail_errno(err, file->path, errno);
  }
  char *piece = malloc(PIECE_BYTES);
  shoal_status status = piece ? SHOAL_OK : fail_memory(err);
  for (uint64_t total = 0; status == SHOAL_OK;) {
    int got = gzread(zipped, piece, PIECE_BYTES), number;
    total += got > 0 ? (uint64_t)got : 0;
    if (got > 0) status = write_all(to, piece, (size_t)got, err);
    const char *what = gzerror(zipped, &number);
    if (status == SHOAL_OK && (got < 0 || number == Z_BUF_ERROR))
      status = shoal_fail(err, SHOAL_CORRUPT, "%s: the gzip file is damaged or not whole (%s); copy it again",
                          file->path, what);
    if (status == SHOAL_OK && total > SHOAL_DATA_FILE_BYTES_MAX)
      status = shoal_fail(err, SHOAL_LIMIT, "%s: more than %zu bytes when it is unzipped; unzip it yourself",
                          file->path, SHOAL_DATA_FILE_BYTES_MAX);
    if (got <= 0) break;
  }
  free(piece);
  gzclose(zipped);
  return status;
}

static shoal_status unzip_file(shoal_csv_file *file, shoal_error *err) {
  int fd;
  shoal_status status = shoal_unnamed_file(file->folder, &fd, err);
  if (status != SHOAL_OK) return status;
  return replace(file, fd, unzip(file, fd, err), err);
}

static shoal_status copy_file(shoal_csv_file *file, shoal_error *err) {
  int fd;
  shoal_status status = shoal_unnamed_file(file->folder, &fd, err);
  if (status != SHOAL_OK) return status;
  return replace(file, fd, hash_all(file, fd, err), err);
}

static shoal_status open_it(shoal_csv_file *file, shoal_error *err) {
  file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
  if (file->fd < 0) return fail_errno(err, file->path, errno);
  struct stat about;
  if (fstat(file->fd, &about) != 0) return fail_errno(err, file->path, errno);
  if (S_ISDIR(about.st_mode))
    return shoal_fail(err, SHOAL_INVALID, "%s: is a folder; name a CSV file in it", file->path);
  shoal_status status = S_ISREG(about.st_mode) ? hash_all(file, -1, err) : copy_file(file, err);
  if (status == SHOAL_OK) status = map(file, file->fd, err);
  if (status == SHOAL_OK && file->length > 2 && memcmp(file->bytes, "\x1f\x8b", 2) == 0)
    status = unzip_file(file, err);
  return status;
}

shoal_status shoal_csv_file_open(shoal_csv_file *out, const char *path, const char *folder,
                                 shoal_error *err) {
  *out =
      (shoal_csv_file){.fd = -1, .bytes = "", .path = strdup(path), .folder = folder ? strdup(folder) : NULL};
  shoal_status status = out->path && (out->folder || !folder) ? open_it(out, err) : fail_memory(err);
  if (status != SHOAL_OK) shoal_csv_file_close(out);
  return status;
}

void shoal_csv_file_close(shoal_csv_file *file) {
  if (!file->path) return;
  unmap(file);
  if (file->fd >= 0) close(file->fd);
  free(file->path);
  free(file->folder);
  *file = (shoal_csv_file){0};
}

/* ---- reading ------------------------------------------------------------------------ */

shoal_status shoal_csv_file_guess(const shoal_csv_file *file, const shoal_dialect_said *said,
                                  shoal_dialect *out, shoal_error *err) {
  return shoal_dialect_guess(out, said, file->path, file->bytes, file->length, err);
}

/* Writes a file in UTF-16 out in UTF-8. A piece does not end between the two halves of a character. */
static shoal_status convert(shoal_csv_file *file, shoal_encoding encoding, shoal_error *err) {
  int fd;
  shoal_status status = shoal_unnamed_file(file->folder, &fd, err);
  if (status != SHOAL_OK) return status;
  shoal_text text;
  shoal_text_init(&text);
  for (size_t at = 0; at < file->length && status == SHOAL_OK;) {
    size_t length = file->length - at < PIECE_BYTES ? file->length - at : PIECE_BYTES;
    size_t high = at + length - (encoding == SHOAL_UTF16_LE ? 1 : 2);
    if (length == PIECE_BYTES && ((unsigned char)file->bytes[high] & 0xfc) == 0xd8) length -= 2;
    shoal_text_clear(&text);
    shoal_encoding_decode(encoding, file->bytes + at, length, &text);
    status = text.failed ? fail_memory(err) : write_all(fd, text.bytes, text.length, err);
    at += length;
  }
  shoal_text_release(&text);
  return replace(file, fd, status, err);
}

shoal_status shoal_csv_file_read(shoal_csv_file *file, const shoal_dialect *dialect, shoal_csv *out,
                                 shoal_error *err) {
  *out = (shoal_csv){0};
  shoal_dialect now = *dialect;
  shoal_status status = SHOAL_OK;
  if (now.encoding == SHOAL_UTF16_LE || now.encoding == SHOAL_UTF16_BE) {
    status = convert(file, now.encoding, err);
    now.encoding = SHOAL_UTF8;
  }
  if (status == SHOAL_OK) status = shoal_csv_init(out, file->path, &now, file->bytes, file->length, err);
  out->repairs = true;
  out->forgets = true;
  return status;
}
