/* chunks.c: see chunks.h; the manifest is in manifest.c.
 *
 * A file is gone through once, chunk by chunk: what is on disk is read and hashed, and where it is not what it
 * should be, the chunk is asked for, hashed and written. So checking, resuming and mending are the
 * same thing. Two processes that want one set at the same time: the second waits for the first. */
#include "data/chunks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "data/named.h"

static const double WAIT_S = 0.1; /* between two looks at a lock */

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static shoal_status fail_errno(const char *path, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
}

/* The text of a path, for the caller to free; NULL without memory. */
__attribute__((format(printf, 1, 2))) static char *path_of(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *path = NULL;
  if (vasprintf(&path, format, arguments) < 0) path = NULL;
  va_end(arguments);
  return path;
}

char *shoal_chunk_cache(void) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && cache[0] == '/') return path_of("%s/shoal", cache);
  return home && home[0] ? path_of("%s/.cache/shoal", home) : NULL;
}

/* ---- opening under way ---- */

typedef struct opening {
  const shoal_manifest *manifest;
  const shoal_chunk_options *options;
  const shoal_chunk_source *source;
  char *sets, *folder, *lock_path;
  int lock;
  uint8_t *chunk;
  uint64_t done; /* bytes that are here and right */
} opening;

static bool stops(const opening *o) {
  return o->options->stop != NULL && __atomic_load_n(o->options->stop, __ATOMIC_RELAXED) != 0;
}

/* ---- removing what was not used for longest ---- */

typedef struct kept {
  char id[SHOAL_SHA256_HEX];
  uint64_t bytes;
  struct timespec used;
} kept;

static uint64_t folder_bytes(const char *folder) {
  uint64_t bytes = 0;
  DIR *here = opendir(folder);
  for (struct dirent *entry; here && (entry = readdir(here));) {
    struct stat about;
    if (fstatat(dirfd(here), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode))
      bytes += (uint64_t)about.st_blocks * 512;
  }
  if (here) closedir(here);
  return bytes;
}

static void remove_folder(const char *folder) {
  DIR *here = opendir(folder);
  for (struct dirent *entry; here && (entry = readdir(here));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      unlinkat(dirfd(here), entry->d_name, 0);
  if (here) closedir(here);
  rmdir(folder);
}

static bool is_id(const char *name) {
  return strlen(name) == SHOAL_SHA256_HEX - 1 && strspn(name, "0123456789abcdef") == SHOAL_SHA256_HEX - 1;
}

static int by_use(const void *a, const void *b) {
  const kept *one = a, *other = b;
  if (one->used.tv_sec != other->used.tv_sec) return one->used.tv_sec < other->used.tv_sec ? -1 : 1;
  return one->used.tv_nsec < other->used.tv_nsec ? -1 : one->used.tv_nsec > other->used.tv_nsec;
}

static size_t list_sets(const opening *o, kept **out, uint64_t *bytes) {
  size_t count = 0, capacity = 0;
  *out = NULL;
  *bytes = 0;
  DIR *here = opendir(o->sets);
  for (struct dirent *entry; here && (entry = readdir(here));) {
    if (!is_id(entry->d_name)) continue;
    if (count == capacity) {
      capacity = capacity ? 2 * capacity : 16;
      kept *larger = realloc(*out, capacity * sizeof *larger);
      if (!larger) break;
      *out = larger;
    }
    kept *set = &(*out)[count];
    char *folder = path_of("%s/%s", o->sets, entry->d_name);
    char *lock = path_of("%s/%s.lock", o->sets, entry->d_name);
    struct stat about = {0};
    if (lock) stat(lock, &about);
    memcpy(set->id, entry->d_name, SHOAL_SHA256_HEX);
    set->used = about.st_mtim;
    set->bytes = folder ? folder_bytes(folder) : 0;
    *bytes += set->bytes;
    count++;
    free(folder);
    free(lock);
  }
  if (here) closedir(here);
  return count;
}

/* One that somebody uses stays. True: it is gone. */
static bool remove_set(const opening *o, const char *id) {
  char *folder = path_of("%s/%s", o->sets, id), *lock_path = path_of("%s/%s.lock", o->sets, id);
  bool removed = false;
  if (folder && lock_path && strcmp(folder, o->folder) != 0) {
    int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
      remove_folder(folder);
      unlink(lock_path);
      removed = true;
    }
    if (lock >= 0) close(lock);
  }
  free(folder);
  free(lock_path);
  return removed;
}

static shoal_status make_room(const opening *o, shoal_error *err) {
  kept *sets;
  uint64_t bytes, mine = folder_bytes(o->folder), wanted = o->manifest->bytes;
  size_t count = list_sets(o, &sets, &bytes);
  uint64_t after = bytes + (wanted > mine ? wanted - mine : 0);
  if (count > 0) qsort(sets, count, sizeof *sets, by_use);
  for (size_t i = 0; i < count && after > o->options->cache_bytes_max; i++)
    if (remove_set(o, sets[i].id)) after -= sets[i].bytes;
  free(sets);
  if (after <= o->options->cache_bytes_max) return SHOAL_OK;
  return shoal_fail(err, SHOAL_LIMIT,
                    "%s: %s needs %llu MB, and the cache may have %llu MB, other sets in use among them",
                    o->options->cache, o->manifest->name, (unsigned long long)(wanted >> 20),
                    (unsigned long long)(o->options->cache_bytes_max >> 20));
}

/* ---- one file ---- */

static bool is_chunk(const uint8_t *bytes, size_t length, const char *sha256) {
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

static shoal_status get_chunk(opening *o, const char *sha256, size_t length, shoal_error *err) {
  if (stops(o)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
  shoal_status status = o->source->get(o->source->self, sha256, o->chunk, length, err);
  if (status == SHOAL_OK && !is_chunk(o->chunk, length, sha256))
    status = shoal_fail(err, SHOAL_CORRUPT, "%s: the server sent a chunk that is not what its name says",
                        o->manifest->name);
  return status;
}

/* Where a file is, and where it is made. */
typedef struct place {
  char *whole, *part;
  int fd;
  bool is_whole; /* fd is the whole file, which is not written to */
} place;

/* A whole file turns out not to be right: it is a part again. */
static shoal_status demote(place *p, shoal_error *err) {
  if (!p->is_whole) return SHOAL_OK;
  close(p->fd);
  p->is_whole = false;
  if (rename(p->whole, p->part) != 0) {
    p->fd = -1;
    return fail_errno(p->whole, err);
  }
  p->fd = open(p->part, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  return p->fd >= 0 ? SHOAL_OK : fail_errno(p->part, err);
}

/* Goes through a file's chunks; what is in the place is right afterwards. */
static shoal_status complete(opening *o, const shoal_manifest_file *file, place *p, shoal_error *err) {
  shoal_sha256 *hash = shoal_sha256_create();
  if (hash == NULL) return fail_memory(err);
  shoal_status status = SHOAL_OK;
  for (uint64_t i = 0; i < file->chunks_count && status == SHOAL_OK; i++) {
    uint64_t offset = i * SHOAL_CHUNK_BYTES, left = file->bytes - offset;
    size_t length = left < SHOAL_CHUNK_BYTES ? (size_t)left : SHOAL_CHUNK_BYTES;
    if (!read_at(p->fd, o->chunk, length, offset) || !is_chunk(o->chunk, length, file->chunks[i])) {
      status = demote(p, err);
      if (status == SHOAL_OK) status = get_chunk(o, file->chunks[i], length, err);
      if (status == SHOAL_OK && !write_at(p->fd, o->chunk, length, offset)) status = fail_errno(p->part, err);
    }
    if (status != SHOAL_OK) break;
    shoal_sha256_add(hash, o->chunk, length);
    o->done += length;
    if (o->source->progress) o->source->progress(o->source->self, o->done, o->manifest->bytes);
  }
  uint8_t digest[SHOAL_SHA256_BYTES];
  char hex[SHOAL_SHA256_HEX];
  shoal_sha256_finish(hash, digest);
  shoal_sha256_destroy(hash);
  shoal_hex(digest, sizeof digest, hex);
  if (status == SHOAL_OK && strcmp(hex, file->sha256) != 0)
    status = shoal_fail(err, SHOAL_CORRUPT, "%s: the chunks of %s are not the file that the manifest names",
                        o->manifest->name, file->name);
  return status;
}

/* A part becomes the whole, once it is on the disk. */
static shoal_status promote(const shoal_manifest_file *file, place *p, shoal_error *err) {
  if (p->is_whole) return SHOAL_OK;
  if (ftruncate(p->fd, (off_t)file->bytes) != 0 || fsync(p->fd) != 0) return fail_errno(p->part, err);
  return rename(p->part, p->whole) == 0 ? SHOAL_OK : fail_errno(p->whole, err);
}

static shoal_status bring_file(opening *o, const shoal_manifest_file *file, shoal_error *err) {
  place p = {.whole = path_of("%s/%s", o->folder, file->name),
             .part = path_of("%s/.%s.part", o->folder, file->name),
             .fd = -1};
  shoal_status status = p.whole && p.part ? SHOAL_OK : fail_memory(err);
  if (status == SHOAL_OK) {
    struct stat about;
    p.fd = open(p.whole, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    p.is_whole = p.fd >= 0;
    if (p.fd < 0) p.fd = open(p.part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (p.fd < 0)
      status = fail_errno(p.part, err);
    else if (p.is_whole && fstat(p.fd, &about) == 0 && (uint64_t)about.st_size != file->bytes)
      status = demote(&p, err);
  }
  if (status == SHOAL_OK) status = complete(o, file, &p, err);
  if (status == SHOAL_OK) status = promote(file, &p, err);
  if (p.fd >= 0) close(p.fd);
  free(p.whole);
  free(p.part);
  return status;
}

/* ---- the set ---- */

/* Of everything that makes a set what it is, but for its name. */
static void id_of(const shoal_manifest *m, char out[SHOAL_SHA256_HEX]) {
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "%s\n", m->kind);
  for (uint32_t i = 0; i < m->files_count; i++)
    shoal_text_addf(&text, "%s %s\n", m->files[i].sha256, m->files[i].name);
  shoal_sha256_hex(text.bytes ? text.bytes : "", text.length, out);
  shoal_text_release(&text);
}

static shoal_status lock_set(opening *o, shoal_error *err) {
  o->lock = open(o->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (o->lock < 0) return fail_errno(o->lock_path, err);
  while (flock(o->lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(o->lock_path, err);
    /* Somebody uses it: then it is whole, or somebody else makes it so. */
    if (flock(o->lock, LOCK_SH | LOCK_NB) == 0) break;
    if (stops(o)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    shoal_clock_sleep(WAIT_S);
  }
  /* Between opening and locking, somebody may have removed it. */
  struct stat mine, there;
  if (fstat(o->lock, &mine) == 0 && stat(o->lock_path, &there) == 0 && mine.st_ino == there.st_ino)
    return SHOAL_OK;
  close(o->lock);
  return lock_set(o, err);
}

static shoal_status prepare(opening *o, shoal_error *err) {
  char id[SHOAL_SHA256_HEX];
  id_of(o->manifest, id);
  o->sets = path_of("%s/sets", o->options->cache);
  o->folder = o->sets ? path_of("%s/%s", o->sets, id) : NULL;
  o->lock_path = o->sets ? path_of("%s/%s.lock", o->sets, id) : NULL;
  o->chunk = malloc(SHOAL_CHUNK_BYTES);
  if (!o->folder || !o->lock_path || !o->chunk) return fail_memory(err);
  shoal_status status = shoal_make_folder(o->sets, err);
  if (status == SHOAL_OK) status = lock_set(o, err);
  if (status == SHOAL_OK) status = shoal_make_folder(o->folder, err);
  if (status == SHOAL_OK) (void)futimens(o->lock, NULL);
  return status == SHOAL_OK ? make_room(o, err) : status;
}

/* As --data would say it. */
static void describe(const opening *o, shoal_text *out) {
  const shoal_manifest *m = o->manifest;
  bool is_text = strcmp(m->kind, "text") == 0 || strcmp(m->kind, "chars") == 0;
  if (is_text) shoal_text_addf(out, "%s:", m->kind);
  if ((is_text && m->files_count > 1) || strcmp(m->kind, "idx") == 0 || strcmp(m->kind, "cifar") == 0) {
    shoal_text_addf(out, "%s", o->folder);
    return;
  }
  for (uint32_t i = 0; i < m->files_count && i < 2; i++)
    shoal_text_addf(out, "%s%s/%s", i > 0 ? "," : "", o->folder, m->files[i].name);
}

/* ---- a set that is here already ---- */

static bool is_same_file(const char *folder, const shoal_manifest_file *file) {
  char *path = path_of("%s/%s", folder, file->name);
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  struct stat about;
  bool same = fd >= 0 && fstat(fd, &about) == 0 && (uint64_t)about.st_size == file->bytes;
  uint8_t *chunk = same ? malloc(SHOAL_CHUNK_BYTES) : NULL;
  for (uint64_t i = 0; i < file->chunks_count && same; i++) {
    uint64_t offset = i * SHOAL_CHUNK_BYTES, left = file->bytes - offset;
    size_t length = left < SHOAL_CHUNK_BYTES ? (size_t)left : SHOAL_CHUNK_BYTES;
    same = chunk && read_at(fd, chunk, length, offset) && is_chunk(chunk, length, file->chunks[i]);
  }
  free(chunk);
  if (fd >= 0) close(fd);
  free(path);
  return same;
}

static bool is_here_by_name(const shoal_manifest *m, const char *data_dir) {
  const shoal_named_set *set = shoal_named_set_of(m->name);
  char *folder = set ? shoal_named_find(set, data_dir) : NULL;
  bool same = folder != NULL;
  for (uint32_t i = 0; i < m->files_count && same; i++) same = is_same_file(folder, &m->files[i]);
  free(folder);
  return same;
}

shoal_status shoal_chunk_set_open(shoal_chunk_set *out, const shoal_manifest *manifest,
                                  const shoal_chunk_options *options, const shoal_chunk_source *source,
                                  shoal_error *err) {
  *out = (shoal_chunk_set){.lock = -1};
  shoal_text_init(&out->data);
  if (manifest->files_count == 0 || is_here_by_name(manifest, options->data_dir)) {
    shoal_text_addf(&out->data, "%s", manifest->name);
    return out->data.failed ? fail_memory(err) : SHOAL_OK;
  }
  opening o = {.manifest = manifest, .options = options, .source = source, .lock = -1};
  shoal_status status = prepare(&o, err);
  for (uint32_t i = 0; i < manifest->files_count && status == SHOAL_OK; i++)
    status = bring_file(&o, &manifest->files[i], err);
  if (status == SHOAL_OK && flock(o.lock, LOCK_SH) != 0) status = fail_errno(o.lock_path, err);
  if (status == SHOAL_OK) describe(&o, &out->data);
  if (status == SHOAL_OK && out->data.failed) status = fail_memory(err);
  if (status == SHOAL_OK)
    out->lock = o.lock;
  else if (o.lock >= 0)
    close(o.lock);
  free(o.sets);
  free(o.folder);
  free(o.lock_path);
  free(o.chunk);
  return status;
}

void shoal_chunk_set_close(shoal_chunk_set *set) {
  shoal_text_release(&set->data);
  if (set->lock >= 0) close(set->lock);
  set->lock = -1;
}
