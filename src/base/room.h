/* room.h: how much room there is on the disk that a file goes to, and waiting for it.
 *
 * A caller that is about to write a large file checks the room first, so that a full disk is found before hours
 * of work, not after. A caller whose result must not be lost waits until somebody has made room, and tries again.
 *
 * Threads: any. */
#ifndef SHOAL_BASE_ROOM_H
#define SHOAL_BASE_ROOM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* The bytes that this user may still write on the disk of the file or folder at `path`, which need not be there yet.
 * Returns false if that cannot be determined: for a device, a pipe, or a file in a folder that does not exist. */
bool shoal_room_at(const char *path, uint64_t *bytes);

/* Whether two files or folders are on the same disk; false where that cannot be determined. */
bool shoal_room_is_shared(const char *path, const char *other);

/* Returns SHOAL_FULL if fewer than `bytes` bytes are free; the error says what to do. */
shoal_status shoal_room_check(const char *path, uint64_t bytes, shoal_error *err);

/* Waits until `bytes` bytes are free, and for at least one second; with `bytes` 0 it waits just that second.
 * Returns false if `stop` (may be NULL) was set, or if the free space cannot be determined, as for a device. */
bool shoal_room_wait(const char *path, uint64_t bytes, const volatile sig_atomic_t *stop);

#endif
