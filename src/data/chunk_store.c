/* chunk_store.c: see chunk_store.h; the folder and who uses it are in chunk_cache.c.
 *
 * What is known of a chunk is a few bits, under the lock; bytes are read, hashed and written without it.
 * Two queues hold what is to be told to who fetches; a chunk stands in each at most once, so they have room
 * for all. */
#include "data/chunk_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/text.h"
#include "data/bytes.h"
#include "data/chunk_cache.h"
#include "data/limits.h"
#include "data/named.h"

enum { HERE = 1, WANTED = 2, URGENT = 4, IN_LINE = 8, IN_URGENT_LINE = 16, LOST = 32 };
enum { LOOK_NS = 100000000 };

typedef struct line {
  uint32_t *chunks;
  uint32_t first, count;
} line;

typedef struct place {
  int fd;            /* in the cache, or -1 */
  shoal_bytes bytes; /* of a set that is here by its name */
} place;

struct shoal_chunk_store {
  const shoal_manifest *manifest;
  shoal_chunk_store_options options;
  shoal_text data;
  shoal_cached_set set;
  place *places; /* of files */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint8_t *flags; /* of chunks */
  line lines[2];  /* what is to be told: [1] what is urgent */
  shoal_chunk_progress progress;
  shoal_status failed;
  shoal_error why;
};

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static bool is_set(const volatile sig_atomic_t *stop) {
  return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

/* ---- chunks and files ---- */

/* The file of a chunk, and where in it the chunk is. */
static uint32_t file_of(const shoal_manifest *m, uint32_t index, uint64_t *offset, uint32_t *bytes) {
  uint32_t file = 0;
  while (index - m->files[file].first_chunk >= m->files[file].chunks_count) file++;
  *offset = shoal_cut_chunk(&m->files[file].cut, index - m->files[file].first_chunk, bytes);
  return file;
}

uint32_t shoal_chunk_store_count(const shoal_chunk_store *s) { return (uint32_t)s->manifest->chunks_count; }

uint32_t shoal_chunk_store_bytes_of(const shoal_chunk_store *s, uint32_t index) {
  uint64_t offset;
  uint32_t bytes;
  SHOAL_ASSERT(index < shoal_chunk_store_count(s));
  file_of(s->manifest, index, &offset, &bytes);
  return bytes;
}

const char *shoal_chunk_store_hash_of(const shoal_chunk_store *s, uint32_t index) {
  uint64_t offset;
  uint32_t bytes;
  SHOAL_ASSERT(index < shoal_chunk_store_count(s));
  const shoal_manifest_file *file = &s->manifest->files[file_of(s->manifest, index, &offset, &bytes)];
  return file->chunks[index - file->first_chunk];
}

const char *shoal_chunk_store_data(const shoal_chunk_store *s) { return s->data.bytes; }

const shoal_manifest *shoal_chunk_store_manifest(const shoal_chunk_store *s) { return s->manifest; }

static bool is_chunk(const void *bytes, size_t length, const char *sha256) {
  char got[SHOAL_SHA256_HEX];
  shoal_sha256_hex(bytes, length, got);
  return strcmp(got, sha256) == 0;
}

static bool read_at(int fd, uint8_t *to, size_t length, uint64_t offset) {
  while (length > 0) {
    ssize_t n = pread(fd, to, length, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    length -= (size_t)n;
    offset += (uint64_t)n;
  }
  return true;
}

static bool write_at(int fd, const uint8_t *from, size_t length, uint64_t offset) {
  while (length > 0) {
    ssize_t n = pwrite(fd, from, length, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    from += n;
    length -= (size_t)n;
    offset += (uint64_t)n;
  }
  return true;
}

/* ---- opening ---- */

static void count_here(shoal_chunk_store *s, uint32_t index, uint32_t bytes) {
  s->flags[index] = (uint8_t)((s->flags[index] | HERE) & ~LOST);
  s->progress.bytes_here += bytes;
  s->progress.chunks_here++;
}

/* Whether something was ever written there. Where the file system cannot tell, it says yes. */
static bool has_bytes(int fd, uint64_t offset, uint32_t bytes) {
  off_t at = lseek(fd, (off_t)offset, SEEK_DATA);
  return at >= 0 ? (uint64_t)at < offset + bytes : errno != ENXIO;
}

/* Compares what is on the disk. */
static shoal_status look_at_file(shoal_chunk_store *s, uint32_t number, uint8_t *buffer, shoal_error *err) {
  const shoal_manifest_file *file = &s->manifest->files[number];
  for (uint64_t c = 0; c < file->chunks_count; c++) {
    uint32_t bytes;
    uint64_t offset = shoal_cut_chunk(&file->cut, c, &bytes);
    if (is_set(s->options.stop)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    int fd = s->places[number].fd;
    if (has_bytes(fd, offset, bytes) && read_at(fd, buffer, bytes, offset) &&
        is_chunk(buffer, bytes, file->chunks[c]))
      count_here(s, (uint32_t)(file->first_chunk + c), bytes);
  }
  return SHOAL_OK;
}

static shoal_status open_file(shoal_chunk_store *s, uint32_t number, shoal_error *err) {
  const shoal_manifest_file *file = &s->manifest->files[number];
  shoal_text path;
  shoal_text_init(&path);
  shoal_text_addf(&path, "%s/%s", s->set.folder, file->name);
  shoal_status status = path.failed ? fail_memory(err) : SHOAL_OK;
  if (status == SHOAL_OK) {
    struct stat about;
    int fd = open(path.bytes, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    s->places[number].fd = fd;
    bool failed = fd < 0 || fstat(fd, &about) != 0 ||
                  ((uint64_t)about.st_size != file->cut.bytes && ftruncate(fd, (off_t)file->cut.bytes) != 0);
    if (failed) status = shoal_fail(err, SHOAL_IO, "%s: %s", path.bytes, strerror(errno));
  }
  shoal_text_release(&path);
  return status;
}

/* As --data would say it. */
static void describe(shoal_chunk_store *s) {
  const shoal_manifest *m = s->manifest;
  bool is_text = strcmp(m->kind, "text") == 0 || strcmp(m->kind, "chars") == 0;
  if (is_text) shoal_text_addf(&s->data, "%s:", m->kind);
  if ((is_text && m->files_count > 1) || strcmp(m->kind, "idx") == 0 || strcmp(m->kind, "cifar") == 0) {
    shoal_text_addf(&s->data, "%s", s->set.folder);
    return;
  }
  for (uint32_t i = 0; i < m->files_count && i < 2; i++)
    shoal_text_addf(&s->data, "%s%s/%s", i > 0 ? "," : "", s->set.folder, m->files[i].name);
}

static shoal_status open_cached(shoal_chunk_store *s, shoal_error *err) {
  const shoal_cache_place where = {s->options.cache, s->options.cache_bytes_max, s->options.stop};
  uint8_t *buffer = malloc(SHOAL_CHUNK_BYTES);
  shoal_status status = buffer ? shoal_chunk_cache_take(&s->set, &where, s->manifest, err) : fail_memory(err);
  for (uint32_t i = 0; i < s->manifest->files_count && status == SHOAL_OK; i++) {
    status = open_file(s, i, err);
    if (status == SHOAL_OK) status = look_at_file(s, i, buffer, err);
  }
  if (status == SHOAL_OK) describe(s);
  free(buffer);
  return status;
}

/* ---- a set that is here already ---- */

static bool is_same_file(const shoal_bytes *bytes, const shoal_manifest_file *file) {
  bool same = bytes->length == file->cut.bytes;
  for (uint64_t c = 0; c < file->chunks_count && same; c++) {
    uint32_t length;
    uint64_t offset = shoal_cut_chunk(&file->cut, c, &length);
    same = is_chunk(bytes->data + offset, length, file->chunks[c]);
  }
  return same;
}

/* Zipped or not. */
static bool open_same_file(shoal_chunk_store *s, const char *folder, uint32_t number) {
  const shoal_manifest_file *file = &s->manifest->files[number];
  shoal_bytes *bytes = &s->places[number].bytes;
  bool same = false;
  for (int zipped = 0; zipped < 2 && !same; zipped++) {
    shoal_text path;
    shoal_text_init(&path);
    shoal_text_addf(&path, "%s/%s%s", folder, file->name, zipped ? ".gz" : "");
    if (!path.failed && shoal_bytes_open(bytes, path.bytes, SHOAL_DATA_FILE_BYTES_MAX, NULL) == SHOAL_OK) {
      same = is_same_file(bytes, file);
      if (!same) shoal_bytes_close(bytes);
    }
    shoal_text_release(&path);
  }
  return same;
}

static bool open_named(shoal_chunk_store *s) {
  const shoal_manifest *m = s->manifest;
  const shoal_named_set *set = shoal_named_set_of(m->name);
  char *folder = set ? shoal_named_find(set, s->options.data_dir) : NULL;
  bool same = folder != NULL || m->files_count == 0;
  for (uint32_t i = 0; i < m->files_count && same; i++) same = open_same_file(s, folder, i);
  for (uint32_t i = 0; i < m->files_count && !same; i++) shoal_bytes_close(&s->places[i].bytes);
  for (uint32_t i = 0; i < m->chunks_count && same; i++) count_here(s, i, shoal_chunk_store_bytes_of(s, i));
  if (same) shoal_text_addf(&s->data, "%s", m->name);
  free(folder);
  return same;
}

static bool reserve(shoal_chunk_store *s) {
  size_t chunks = (size_t)s->manifest->chunks_count + 1;
  s->places = calloc((size_t)s->manifest->files_count + 1, sizeof *s->places);
  s->flags = calloc(chunks, sizeof *s->flags);
  for (int i = 0; i < 2; i++) s->lines[i].chunks = calloc(chunks, sizeof *s->lines[i].chunks);
  for (uint32_t i = 0; s->places && i < s->manifest->files_count; i++) s->places[i].fd = -1;
  return s->places && s->flags && s->lines[0].chunks && s->lines[1].chunks;
}

static void init_waiting(shoal_chunk_store *s) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

shoal_status shoal_chunk_store_open(shoal_chunk_store **out, const shoal_manifest *manifest,
                                    const shoal_chunk_store_options *options, shoal_error *err) {
  *out = NULL;
  shoal_chunk_store *s = calloc(1, sizeof *s);
  if (s == NULL) return fail_memory(err);
  s->manifest = manifest;
  s->options = *options;
  s->set.lock = -1;
  s->progress.bytes_all = manifest->bytes;
  shoal_text_init(&s->data);
  init_waiting(s);
  shoal_status status = reserve(s) ? SHOAL_OK : fail_memory(err);
  if (status == SHOAL_OK && !open_named(s)) status = open_cached(s, err);
  if (status == SHOAL_OK && s->data.failed) status = fail_memory(err);
  if (status == SHOAL_OK)
    *out = s;
  else
    shoal_chunk_store_close(s);
  return status;
}

void shoal_chunk_store_close(shoal_chunk_store *s) {
  if (s == NULL) return;
  for (uint32_t i = 0; s->places && i < s->manifest->files_count; i++) {
    if (s->places[i].fd >= 0) close(s->places[i].fd);
    shoal_bytes_close(&s->places[i].bytes);
  }
  shoal_chunk_cache_leave(&s->set);
  shoal_text_release(&s->data);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->lock);
  for (int i = 0; i < 2; i++) free(s->lines[i].chunks);
  free(s->flags);
  free(s->places);
  free(s);
}

/* ---- in and out ---- */

bool shoal_chunk_store_has(shoal_chunk_store *s, uint32_t index) {
  SHOAL_ASSERT(index < shoal_chunk_store_count(s));
  pthread_mutex_lock(&s->lock);
  bool here = s->flags[index] & HERE;
  pthread_mutex_unlock(&s->lock);
  return here;
}

bool shoal_chunk_store_is_whole(shoal_chunk_store *s) {
  return shoal_chunk_store_progress(s).chunks_here == shoal_chunk_store_count(s);
}

static shoal_status fail_lost(const shoal_chunk_store *s, uint32_t index, shoal_error *err) {
  return shoal_fail(err, SHOAL_CORRUPT, "%s: chunk %u was changed on the disk; start again to repair it",
                    s->manifest->name, index);
}

static void arrived(shoal_chunk_store *s, uint32_t index, uint32_t bytes) {
  pthread_mutex_lock(&s->lock);
  if (!(s->flags[index] & HERE)) {
    count_here(s, index, bytes);
    s->progress.bytes_put += bytes;
    s->progress.chunks_put++;
  }
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

shoal_status shoal_chunk_store_put(shoal_chunk_store *s, uint32_t index, const void *bytes, size_t length,
                                   shoal_error *err) {
  if (index >= shoal_chunk_store_count(s))
    return shoal_fail(err, SHOAL_INVALID, "%s has no chunk %u", s->manifest->name, index);
  uint64_t offset;
  uint32_t wanted, file = file_of(s->manifest, index, &offset, &wanted);
  if (length != wanted || !is_chunk(bytes, length, shoal_chunk_store_hash_of(s, index)))
    return shoal_fail(err, SHOAL_CORRUPT, "%s: chunk %u is not what its name says", s->manifest->name, index);
  if (shoal_chunk_store_has(s, index)) return SHOAL_OK;
  if (s->places[file].fd < 0)
    return shoal_fail(err, SHOAL_IO, "%s is used where it is on this machine, and is not written to",
                      s->manifest->name);
  if (!write_at(s->places[file].fd, bytes, length, offset))
    return shoal_fail(err, SHOAL_IO, "%s/%s: %s", s->set.folder, s->manifest->files[file].name,
                      strerror(errno));
  arrived(s, index, wanted);
  return SHOAL_OK;
}

static void lose(shoal_chunk_store *s, uint32_t index, uint32_t bytes) {
  pthread_mutex_lock(&s->lock);
  if (s->flags[index] & HERE) {
    s->flags[index] = (uint8_t)((s->flags[index] | LOST) & ~HERE);
    s->progress.bytes_here -= bytes;
    s->progress.chunks_here--;
  }
  pthread_mutex_unlock(&s->lock);
}

shoal_status shoal_chunk_store_read(shoal_chunk_store *s, uint32_t index, void *into, shoal_error *err) {
  if (index >= shoal_chunk_store_count(s) || !shoal_chunk_store_has(s, index))
    return shoal_fail(err, SHOAL_NOT_FOUND, "chunk %u of %s is not here", index, s->manifest->name);
  uint64_t offset;
  uint32_t bytes, file = file_of(s->manifest, index, &offset, &bytes);
  const place *p = &s->places[file];
  bool good = p->fd < 0 || read_at(p->fd, into, bytes, offset);
  if (p->fd < 0) memcpy(into, p->bytes.data + offset, bytes);
  if (good && is_chunk(into, bytes, shoal_chunk_store_hash_of(s, index))) return SHOAL_OK;
  lose(s, index, bytes);
  return fail_lost(s, index, err);
}

/* ---- what is wanted ---- */

static void add_to_line(shoal_chunk_store *s, uint32_t index, bool urgent) {
  uint8_t standing = urgent ? IN_URGENT_LINE : IN_LINE;
  line *l = &s->lines[urgent];
  if (s->flags[index] & standing) return;
  s->flags[index] |= standing;
  l->chunks[(l->first + l->count++) % shoal_chunk_store_count(s)] = index;
}

static bool take_from_line(shoal_chunk_store *s, bool urgent, uint32_t *index) {
  line *l = &s->lines[urgent];
  while (l->count > 0) {
    uint32_t next = l->chunks[l->first];
    l->first = (l->first + 1) % shoal_chunk_store_count(s);
    l->count--;
    s->flags[next] &= (uint8_t) ~(urgent ? IN_URGENT_LINE : IN_LINE);
    /* What became urgent meanwhile was told as such, or will be. */
    if (s->flags[next] & HERE || (!urgent && s->flags[next] & URGENT)) continue;
    *index = next;
    return true;
  }
  return false;
}

void shoal_chunk_store_want(shoal_chunk_store *s, uint32_t first, uint32_t count, bool urgent) {
  SHOAL_ASSERT(first <= shoal_chunk_store_count(s) && count <= shoal_chunk_store_count(s) - first);
  bool more = false;
  pthread_mutex_lock(&s->lock);
  for (uint32_t i = first; i < first + count; i++) {
    bool known = s->flags[i] & WANTED && (!urgent || s->flags[i] & URGENT);
    if (!(s->flags[i] & WANTED)) s->progress.bytes_wanted += shoal_chunk_store_bytes_of(s, i);
    s->flags[i] |= urgent ? WANTED | URGENT : WANTED;
    if (known || s->flags[i] & HERE) continue;
    add_to_line(s, i, urgent);
    more = true;
  }
  pthread_mutex_unlock(&s->lock);
  if (more && s->options.wanted) s->options.wanted(s->options.self);
}

bool shoal_chunk_store_next_want(shoal_chunk_store *s, uint32_t *index, bool *urgent) {
  pthread_mutex_lock(&s->lock);
  *urgent = take_from_line(s, true, index);
  bool found = *urgent || take_from_line(s, false, index);
  pthread_mutex_unlock(&s->lock);
  return found;
}

void shoal_chunk_store_fail(shoal_chunk_store *s, shoal_status status, const char *why) {
  pthread_mutex_lock(&s->lock);
  s->failed = status;
  if (status != SHOAL_OK) shoal_fail(&s->why, status, "%s", why);
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

/* The first that is not here, or first + count. */
static uint32_t first_missing(const shoal_chunk_store *s, uint32_t first, uint32_t count) {
  uint32_t i = first;
  while (i < first + count && s->flags[i] & HERE) i++;
  return i;
}

static void wait_a_little(shoal_chunk_store *s) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += LOOK_NS;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

shoal_status shoal_chunk_store_wait(shoal_chunk_store *s, uint32_t first, uint32_t count,
                                    const volatile sig_atomic_t *stop, shoal_error *err) {
  SHOAL_ASSERT(first <= shoal_chunk_store_count(s) && count <= shoal_chunk_store_count(s) - first);
  shoal_status status = SHOAL_OK;
  pthread_mutex_lock(&s->lock);
  for (uint32_t i; status == SHOAL_OK && (i = first_missing(s, first, count)) < first + count;) {
    status = s->failed;
    if (status != SHOAL_OK && err != NULL) *err = s->why;
    if (status == SHOAL_OK && s->flags[i] & LOST) status = fail_lost(s, i, err);
    if (status == SHOAL_OK && is_set(stop)) status = shoal_fail(err, SHOAL_STOPPED, "stopped");
    if (status == SHOAL_OK) wait_a_little(s);
  }
  pthread_mutex_unlock(&s->lock);
  return status;
}

shoal_chunk_progress shoal_chunk_store_progress(shoal_chunk_store *s) {
  pthread_mutex_lock(&s->lock);
  shoal_chunk_progress progress = s->progress;
  pthread_mutex_unlock(&s->lock);
  return progress;
}
