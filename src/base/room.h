/* room.h: how much room there is on the disk that a file goes to, and waiting for it.
 *
 * Whoever is about to write much asks first, so that a full disk is known before hours of work and not after
 * them. What must not be lost waits until somebody has made room, and tries again.
 *
 * Threads: any. */
#ifndef SHOAL_BASE_ROOM_H
#define SHOAL_BASE_ROOM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* The bytes that this user may still write on the disk of the file or folder at `path`, which need not be there yet.
 * Returns false if nobody knows: of a device, a pipe, or a file in a folder that is not there. */
bool shoal_room_at(const char *path, uint64_t *bytes);

/* SHOAL_FULL if there is less room than that; the error says what to do. */
shoal_status shoal_room_check(const char *path, uint64_t bytes, shoal_error *err);

/* Waits until there are so many bytes, but at least a second; with 0 just that second. Returns false if `stop`, which
 * may be NULL, has ended the wait, or if nobody knows the room: what a device refuses will never fit. */
bool shoal_room_wait(const char *path, uint64_t bytes, const volatile sig_atomic_t *stop);

#endif
