/* chunk_cache.c: see chunk_cache.h.
 *
 * Who uses a set has its lock shared; who would remove it needs it alone. */
#include "data/chunk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "data/chunk_store.h"

static const double WAIT_S = 0.1; /* between two looks at a lock */

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

char *shoal_chunk_cache(void) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && cache[0] == '/') return shoal_path("%s/shoal", cache);
  return home && home[0] ? shoal_path("%s/.cache/shoal", home) : NULL;
}

/* ---- taking under way ---- */

typedef struct taking {
  const shoal_cache_place *place;
  const shoal_manifest *manifest;
  char *sets, *folder, *lock_path;
  int lock;
} taking;

static bool stops(const taking *t) {
  return t->place->stop != NULL && __atomic_load_n(t->place->stop, __ATOMIC_RELAXED) != 0;
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

static bool is_id(const char *name) {
  return strlen(name) == SHOAL_SHA256_HEX - 1 && strspn(name, "0123456789abcdef") == SHOAL_SHA256_HEX - 1;
}

static int by_use(const void *a, const void *b) {
  const kept *one = a, *other = b;
  if (one->used.tv_sec != other->used.tv_sec) return one->used.tv_sec < other->used.tv_sec ? -1 : 1;
  return one->used.tv_nsec < other->used.tv_nsec ? -1 : one->used.tv_nsec > other->used.tv_nsec;
}

static size_t list_sets(const taking *t, kept **out, uint64_t *bytes) {
  size_t count = 0, capacity = 0;
  *out = NULL;
  *bytes = 0;
  DIR *here = opendir(t->sets);
  for (struct dirent *entry; here && (entry = readdir(here));) {
    if (!is_id(entry->d_name)) continue;
    if (count == capacity) {
      capacity = capacity ? 2 * capacity : 16;
      kept *larger = realloc(*out, capacity * sizeof *larger);
      if (!larger) break;
      *out = larger;
    }
    kept *set = &(*out)[count];
    char *folder = shoal_path("%s/%s", t->sets, entry->d_name);
    char *lock = shoal_path("%s/%s.lock", t->sets, entry->d_name);
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
static bool remove_set(const taking *t, const char *id) {
  char *folder = shoal_path("%s/%s", t->sets, id), *lock_path = shoal_path("%s/%s.lock", t->sets, id);
  bool removed = false;
  if (folder && lock_path && strcmp(folder, t->folder) != 0) {
    int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
      (void)shoal_remove_folder(folder, NULL);
      unlink(lock_path);
      removed = true;
    }
    if (lock >= 0) close(lock);
  }
  free(folder);
  free(lock_path);
  return removed;
}

static shoal_status make_room(const taking *t, shoal_error *err) {
  kept *sets;
  uint64_t bytes, mine = folder_bytes(t->folder), wanted = t->manifest->bytes;
  size_t count = list_sets(t, &sets, &bytes);
  uint64_t after = bytes + (wanted > mine ? wanted - mine : 0);
  if (count > 0) qsort(sets, count, sizeof *sets, by_use);
  for (size_t i = 0; i < count && after > t->place->bytes_max; i++)
    if (remove_set(t, sets[i].id)) after -= sets[i].bytes;
  free(sets);
  if (after <= t->place->bytes_max) return SHOAL_OK;
  return shoal_fail(err, SHOAL_LIMIT,
                    "%s: %s needs %llu MB, and the cache may have %llu MB, other sets in use among them",
                    t->place->cache, t->manifest->name, (unsigned long long)(wanted >> 20),
                    (unsigned long long)(t->place->bytes_max >> 20));
}

/* ---- taking ---- */

static shoal_status lock_set(taking *t, shoal_error *err) {
  for (;;) {
    t->lock = open(t->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (t->lock < 0) return shoal_fail_errno(t->lock_path, err);
    while (flock(t->lock, LOCK_SH | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return shoal_fail_errno(t->lock_path, err);
      if (stops(t)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
      shoal_clock_sleep(WAIT_S); /* somebody removes it */
    }
    /* Between opening and locking, somebody may have removed it. */
    struct stat mine, there;
    if (fstat(t->lock, &mine) == 0 && stat(t->lock_path, &there) == 0 && mine.st_ino == there.st_ino)
      return SHOAL_OK;
    close(t->lock);
  }
}

shoal_status shoal_chunk_cache_take(shoal_cached_set *out, const shoal_cache_place *place,
                                    const shoal_manifest *manifest, shoal_error *err) {
  taking t = {.place = place, .manifest = manifest, .lock = -1};
  char id[SHOAL_SHA256_HEX];
  shoal_manifest_id(manifest, id);
  t.sets = shoal_path("%s/sets", place->cache);
  t.folder = shoal_path("%s/sets/%s", place->cache, id);
  t.lock_path = shoal_path("%s/sets/%s.lock", place->cache, id);
  shoal_status status = t.sets && t.folder && t.lock_path ? SHOAL_OK : fail_memory(err);
  if (status == SHOAL_OK) status = shoal_make_folder(t.sets, err);
  if (status == SHOAL_OK) status = lock_set(&t, err);
  if (status == SHOAL_OK) status = shoal_make_folder(t.folder, err);
  if (status == SHOAL_OK) (void)futimens(t.lock, NULL);
  if (status == SHOAL_OK) status = make_room(&t, err);
  *out = (shoal_cached_set){.folder = t.folder, .lock = t.lock};
  free(t.sets);
  free(t.lock_path);
  return status;
}

void shoal_chunk_cache_leave(shoal_cached_set *set) {
  if (set->lock >= 0) close(set->lock);
  free(set->folder);
  *set = (shoal_cached_set){.lock = -1};
}
