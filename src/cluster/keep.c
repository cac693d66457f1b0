/* keep.c: see keep.h.
 *
 * A file is called JOB.WHO.VERSION, the job's digest in hexadecimal. Its bytes:
 *
 *   0   8  "SHLKEEP1"
 *   8   8  digest of the job
 *   16  8  version
 *   24  8  how many pieces
 *   32     the pieces, one after the other
 *   end 32 SHA-256 of all before
 *
 * The lock is the file JOB.WHO.lock, with the number of the process that has it, and flock on it. Who gives
 * it back removes the file first; who gets a lock on a file that was removed meanwhile tries again. */
#include "cluster/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/room.h"
#include "base/text.h"

enum { HEAD_BYTES = 32 };
static const char MAGIC[8] = "SHLKEEP1";
static const double LOCK_WAIT_S = 1, LOCK_TRY_S = 0.05; /* who was just killed may take a moment to go */

static void path_of(const shoal_keep *keep, uint64_t version, shoal_text *out) {
  shoal_text_init(out);
  shoal_text_addf(out, "%s/%016" PRIx64 ".%s.%" PRIu64, keep->folder, keep->job_digest, keep->who, version);
}

static void head_of(const shoal_keep *keep, uint64_t version, uint32_t count, uint8_t head[HEAD_BYTES]) {
  const uint64_t numbers[3] = {keep->job_digest, version, count};
  memcpy(head, MAGIC, sizeof MAGIC);
  memcpy(head + sizeof MAGIC, numbers, sizeof numbers);
}

/* The checksum of head and pieces. */
static bool sum_up(const uint8_t head[HEAD_BYTES], const shoal_keep_piece *pieces, uint32_t count,
                   uint8_t out[SHOAL_SHA256_BYTES]) {
  shoal_sha256 *hash = shoal_sha256_create();
  if (hash == NULL) return false;
  shoal_sha256_add(hash, head, HEAD_BYTES);
  for (uint32_t i = 0; i < count; i++) shoal_sha256_add(hash, pieces[i].bytes, pieces[i].length);
  shoal_sha256_finish(hash, out);
  shoal_sha256_destroy(hash);
  return true;
}

/* ---- the lock ---- */

static void lock_path_of(const shoal_keep *keep, shoal_text *out) {
  shoal_text_init(out);
  shoal_text_addf(out, "%s/%016" PRIx64 ".%s.lock", keep->folder, keep->job_digest, keep->who);
}

typedef enum taken { TAKEN, BUSY, AGAIN, FAILED } taken;

/* One try. BUSY: *holder is the process that has it, 0 when it has not said yet. */
static taken try_lock(const char *path, int *lock, long *holder) {
  char text[24] = {0};
  struct stat about;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return FAILED;
  bool busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (busy) {
    *holder = pread(fd, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
    close(fd);
    return BUSY;
  }
  if (fstat(fd, &about) != 0 || about.st_nlink == 0) {
    close(fd);
    return AGAIN;
  }
  int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length) {
    /* A full disk: the lock holds all the same, only without a name. */
  }
  *lock = fd;
  return TAKEN;
}

shoal_status shoal_keep_lock(const shoal_keep *keep, int *lock, shoal_error *err) {
  *lock = SHOAL_KEEP_UNLOCKED;
  shoal_status status = shoal_make_folder(keep->folder, err);
  if (status != SHOAL_OK) return status;
  shoal_text path;
  lock_path_of(keep, &path);
  if (path.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  long holder = 0;
  const double until = shoal_clock_seconds() + LOCK_WAIT_S;
  taken result = try_lock(path.bytes, lock, &holder);
  while ((result == BUSY && shoal_clock_seconds() < until) || result == AGAIN) {
    shoal_clock_sleep(LOCK_TRY_S);
    result = try_lock(path.bytes, lock, &holder);
  }
  if (result == FAILED) status = shoal_fail(err, SHOAL_IO, "%s: %s", path.bytes, strerror(errno));
  if (result == BUSY)
    status =
        shoal_fail(err, SHOAL_INVALID,
                   "%s is in use by process %ld: another training runs in this folder; wait for its end, "
                   "or give this one another --state-dir",
                   keep->folder, holder);
  shoal_text_release(&path);
  return status;
}

void shoal_keep_unlock(const shoal_keep *keep, int *lock) {
  if (*lock == SHOAL_KEEP_UNLOCKED) return;
  shoal_text path;
  lock_path_of(keep, &path);
  if (!path.failed) unlink(path.bytes);
  shoal_text_release(&path);
  close(*lock);
  *lock = SHOAL_KEEP_UNLOCKED;
}

/* ---- records ---- */

shoal_status shoal_keep_write(const shoal_keep *keep, uint64_t version, const shoal_keep_piece *pieces,
                              uint32_t count, shoal_error *err) {
  SHOAL_ASSERT(count <= SHOAL_PIECES_MAX);
  uint8_t head[HEAD_BYTES], sum[SHOAL_SHA256_BYTES];
  head_of(keep, version, count, head);
  if (!sum_up(head, pieces, count, sum)) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_make_folder(keep->folder, err);
  if (status != SHOAL_OK) return status;
  shoal_text path;
  path_of(keep, version, &path);
  shoal_writer *writer;
  uint64_t bytes = sizeof head + sizeof sum;
  for (uint32_t i = 0; i < count; i++) bytes += pieces[i].length;
  status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                       : shoal_room_check(path.bytes, bytes, err);
  if (status == SHOAL_OK) status = shoal_writer_create(&writer, path.bytes, err);
  if (status == SHOAL_OK) {
    shoal_writer_add(writer, head, sizeof head);
    for (uint32_t i = 0; i < count; i++) shoal_writer_add(writer, pieces[i].bytes, pieces[i].length);
    shoal_writer_add(writer, sum, sizeof sum);
    status = shoal_writer_commit(writer, err);
  }
  shoal_text_release(&path);
  return status;
}

/* Whether the bytes of a file are the record that is wanted. */
static bool is_record(const shoal_keep *keep, uint64_t version, const shoal_keep_piece *pieces,
                      uint32_t count, const uint8_t *bytes, size_t length) {
  size_t wanted = HEAD_BYTES + SHOAL_SHA256_BYTES;
  for (uint32_t i = 0; i < count; i++) wanted += pieces[i].length;
  uint8_t head[HEAD_BYTES], sum[SHOAL_SHA256_BYTES];
  head_of(keep, version, count, head);
  if (length != wanted || memcmp(bytes, head, sizeof head) != 0) return false;
  const shoal_keep_piece all = {.bytes = (void *)(bytes + HEAD_BYTES),
                                .length = length - HEAD_BYTES - SHOAL_SHA256_BYTES};
  return sum_up(head, &all, 1, sum) && memcmp(bytes + length - sizeof sum, sum, sizeof sum) == 0;
}

shoal_status shoal_keep_read(const shoal_keep *keep, uint64_t version, const shoal_keep_piece *pieces,
                             uint32_t count, shoal_error *err) {
  shoal_text path;
  path_of(keep, version, &path);
  uint8_t *bytes = NULL;
  size_t length = 0;
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                    : shoal_file_read(path.bytes, SIZE_MAX / 2, false, &bytes, &length, err);
  if (status == SHOAL_OK && !is_record(keep, version, pieces, count, bytes, length))
    status = shoal_fail(err, SHOAL_NOT_FOUND, "%s is not a whole record", path.bytes);
  if (status == SHOAL_OK) {
    const uint8_t *at = bytes + HEAD_BYTES;
    for (uint32_t i = 0; i < count; i++) {
      if (pieces[i].length > 0) memcpy(pieces[i].bytes, at, pieces[i].length);
      at += pieces[i].length;
    }
  }
  free(bytes);
  shoal_text_release(&path);
  return status;
}

/* Removes the records of which `stays` says no. */
static void sweep(const shoal_keep *keep, bool (*stays)(const void *self, uint64_t version),
                  const void *self) {
  char prefix[128];
  int length = snprintf(prefix, sizeof prefix, "%016" PRIx64 ".%s.", keep->job_digest, keep->who);
  bool fits = length >= 0 && (size_t)length < sizeof prefix;
  DIR *folder = fits ? opendir(keep->folder) : NULL;
  if (folder == NULL) return;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    uint64_t version;
    const char *rest = entry->d_name + length;
    if (strncmp(entry->d_name, prefix, (size_t)length) != 0 ||
        !shoal_read_u64(rest, strlen(rest), &version) || stays(self, version))
      continue;
    unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

typedef struct stretch {
  uint64_t first, last;
} stretch;

static bool is_within(const void *self, uint64_t version) {
  const stretch *s = self;
  return version >= s->first && version <= s->last;
}

void shoal_keep_only(const shoal_keep *keep, uint64_t first, uint64_t last) {
  sweep(keep, is_within, &(stretch){first, last});
}

typedef struct list {
  const uint64_t *versions;
  uint32_t count;
} list;

static bool is_listed(const void *self, uint64_t version) {
  const list *l = self;
  for (uint32_t i = 0; i < l->count; i++)
    if (l->versions[i] == version) return true;
  return false;
}

void shoal_keep_these(const shoal_keep *keep, const uint64_t *versions, uint32_t count) {
  sweep(keep, is_listed, &(list){versions, count});
}
