/* room.c: see room.h. */
#include "base/room.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/human.h"

static bool disk_of(const char *path, struct statvfs *out) {
  struct stat there;
  bool is_there = stat(path, &there) == 0, is_folder = is_there && S_ISDIR(there.st_mode);
  if (is_there && !is_folder && !S_ISREG(there.st_mode)) return false;
  char *real = realpath(path, NULL);
  if (!real) real = strdup(path);
  if (!real) return false;
  char *slash = strrchr(real, '/');
  if (slash && !is_folder) slash[slash == real] = 0;
  bool known = statvfs(slash ? real : ".", out) == 0 && out->f_blocks > 0;
  free(real);
  return known;
}

bool shoal_room_at(const char *path, uint64_t *bytes) {
  struct statvfs disk;
  if (!disk_of(path, &disk)) return false;
  *bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
  return true;
}

bool shoal_room_is_shared(const char *path, const char *other) {
  struct statvfs disk, others;
  return disk_of(path, &disk) && disk_of(other, &others) && disk.f_fsid == others.f_fsid;
}

shoal_status shoal_room_check(const char *path, uint64_t bytes, shoal_error *err) {
  uint64_t room;
  if (!shoal_room_at(path, &room) || room >= bytes) return SHOAL_OK;
  return shoal_fail(err, SHOAL_FULL,
                    "%s: this needs %s, but only %s are free there; free some space or choose another place",
                    path, shoal_human_bytes((double)bytes).text, shoal_human_bytes((double)room).text);
}

static bool is_set(const volatile sig_atomic_t *stop) {
  return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

bool shoal_room_wait(const char *path, uint64_t bytes, const volatile sig_atomic_t *stop) {
  uint64_t room;
  if (!shoal_room_at(path, &room)) return false;
  double begun = shoal_clock_seconds();
  while (!is_set(stop)) {
    shoal_clock_sleep(0.1);
    bool may_do = bytes == 0 || !shoal_room_at(path, &room) || room >= bytes;
    if (may_do && shoal_clock_seconds() - begun >= 1) return true;
  }
  return false;
}
