/* bytes.c: see bytes.h. */
#include "data/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

enum { COPY_BYTES_MIN = 1 << 20 };

static const uint8_t nothing[1];

static shoal_status fail_errno(shoal_error *err, const char *path, int number) {
  if (number == ENOENT) return shoal_fail(err, SHOAL_NOT_FOUND, "%s: no such file", path);
  return shoal_fail(err, number == ENOMEM ? SHOAL_NO_MEMORY : SHOAL_IO, "%s: %s", path, strerror(number));
}

static bool map(shoal_bytes *out, int fd, size_t length) {
  void *mapped = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return false;
  *out = (shoal_bytes){.data = mapped, .length = length, .mapped = mapped};
  return true;
}

/* ---- the unzipped copy -------------------------------------------------------------- */

/* Where the copy of a file belongs; NULL when there is no such place. */
static char *copy_path(const char *path, const struct stat *about) {
  char *real = realpath(path, NULL);
  shoal_text text;
  shoal_text_init(&text);
  char *out = NULL;
  if (!real) goto end;
  char key[SHOAL_SHA256_HEX];
  shoal_text_addf(&text, "%s %" PRIdMAX " %" PRIdMAX ".%09ld", real, (intmax_t)about->st_size,
                  (intmax_t)about->st_mtim.tv_sec, (long)about->st_mtim.tv_nsec);
  if (text.failed) goto end;
  shoal_sha256_hex(text.bytes, text.length, key);

  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  shoal_text_clear(&text);
  if (cache && cache[0] == '/')
    shoal_text_addf(&text, "%s/shoal/%.32s.raw", cache, key);
  else if (home && home[0] == '/')
    shoal_text_addf(&text, "%s/.cache/shoal/%.32s.raw", home, key);
  if (text.length > 0 && !text.failed) {
    out = text.bytes;
    text.bytes = NULL;
  }
end:
  free(real);
  shoal_text_release(&text);
  return out;
}

/* Maps the copy if it is there, ours, and as long as gzip's last four bytes say. */
static bool map_copy(shoal_bytes *out, const char *path, uint32_t unzipped_bytes, size_t limit_bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat about;
  bool good = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
              about.st_size >= COPY_BYTES_MIN && (uint64_t)about.st_size <= limit_bytes &&
              (uint32_t)about.st_size == unzipped_bytes && map(out, fd, (size_t)about.st_size);
  close(fd);
  return good;
}

static void *write_copy(void *context) {
  const shoal_bytes *bytes = context;
  char *folder = strdup(bytes->copy_path);
  if (!folder) return NULL;
  *strrchr(folder, '/') = 0;
  shoal_writer *writer;
  if (shoal_make_folder(folder, NULL) == SHOAL_OK &&
      shoal_writer_create(&writer, bytes->copy_path, NULL) == SHOAL_OK) {
    shoal_writer_add(writer, bytes->data, bytes->length);
    shoal_writer_commit(writer, NULL);
  }
  free(folder);
  return NULL;
}

/* ---- files -------------------------------------------------------------------------- */

static shoal_status open_gzip(shoal_bytes *out, const char *path, int fd, const struct stat *about,
                              size_t limit_bytes, shoal_error *err) {
  uint8_t last[4];
  char *copy = NULL;
  if (pread(fd, last, sizeof last, about->st_size - 4) == sizeof last) {
    copy = copy_path(path, about);
    uint32_t unzipped = last[0] | (uint32_t)last[1] << 8 | (uint32_t)last[2] << 16 | (uint32_t)last[3] << 24;
    if (copy && map_copy(out, copy, unzipped, limit_bytes)) {
      free(copy);
      return SHOAL_OK;
    }
  }
  shoal_status status = shoal_file_read(path, limit_bytes, true, &out->owned, &out->length, err);
  if (status != SHOAL_OK) {
    free(copy);
    return status;
  }
  out->data = out->owned;
  out->copy_path = copy;
  if (copy && out->length >= COPY_BYTES_MIN)
    out->copying = pthread_create(&out->thread, NULL, write_copy, out) == 0;
  return SHOAL_OK;
}

shoal_status shoal_bytes_open(shoal_bytes *out, const char *path, size_t limit_bytes, shoal_error *err) {
  *out = (shoal_bytes){.data = nothing};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(err, path, errno);
  shoal_status status = SHOAL_OK;
  struct stat about;
  uint8_t magic[2] = {0};
  if (fstat(fd, &about) != 0) {
    status = fail_errno(err, path, errno);
  } else if (!S_ISREG(about.st_mode)) {
    /* A pipe, say: it can be read once, from the front. */
    status = shoal_file_read(path, limit_bytes, true, &out->owned, &out->length, err);
    if (status == SHOAL_OK) out->data = out->owned;
  } else if (pread(fd, magic, sizeof magic, 0) == sizeof magic && magic[0] == 0x1f && magic[1] == 0x8b) {
    status = open_gzip(out, path, fd, &about, limit_bytes, err);
  } else if ((uint64_t)about.st_size > limit_bytes) {
    status = shoal_fail(err, SHOAL_LIMIT, "%s: larger than the limit of %zu bytes", path, limit_bytes);
  } else if (about.st_size > 0 && !map(out, fd, (size_t)about.st_size)) {
    status = fail_errno(err, path, errno);
  }
  close(fd);
  return status;
}

typedef struct opening {
  shoal_bytes *out;
  const char *path;
  size_t limit_bytes;
  shoal_status status;
  shoal_error err;
  bool started;
  pthread_t thread;
} opening;

static void *open_one(void *context) {
  opening *one = context;
  one->status = shoal_bytes_open(one->out, one->path, one->limit_bytes, &one->err);
  return NULL;
}

shoal_status shoal_bytes_open_all(shoal_bytes *out, const char *const *paths, size_t count,
                                  size_t limit_bytes, shoal_error *err) {
  opening *all = calloc(count, sizeof *all);
  if (!all) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (size_t i = 0; i < count; i++) {
    all[i] = (opening){.out = &out[i], .path = paths[i], .limit_bytes = limit_bytes};
    all[i].started = i > 0 && pthread_create(&all[i].thread, NULL, open_one, &all[i]) == 0;
  }
  for (size_t i = 0; i < count; i++) {
    if (!all[i].started) open_one(&all[i]);
  }
  shoal_status status = SHOAL_OK;
  for (size_t i = 0; i < count; i++) {
    if (all[i].started) pthread_join(all[i].thread, NULL);
    if (all[i].status != SHOAL_OK && status == SHOAL_OK) {
      status = all[i].status;
      if (err) *err = all[i].err;
    }
  }
  for (size_t i = 0; i < count && status != SHOAL_OK; i++) shoal_bytes_close(&out[i]);
  free(all);
  return status;
}

void shoal_bytes_close(shoal_bytes *bytes) {
  if (bytes->copying) pthread_join(bytes->thread, NULL);
  if (bytes->mapped) munmap(bytes->mapped, bytes->length);
  free(bytes->owned);
  free(bytes->copy_path);
  *bytes = (shoal_bytes){.data = nothing};
}
