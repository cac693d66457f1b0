/* keep.h: what chiefs and parameter servers keep on disk, to go on after a crash.
 *
 * A record is a few pieces of bytes under the name of who keeps it and a version. It is written
 * beside its place, flushed and renamed, and carries a checksum: a reader finds a whole record or
 * none. All records of a job lie in one folder; docs/formats.md has their layout.
 *
 * Who keeps records has a lock beside them for as long as it runs, so that no second training of the same job
 * takes them over in the same folder. The lock dies with its process.
 *
 * Ownership: the folder's name is borrowed. Threads: one a keep. */
#ifndef SHOAL_CLUSTER_KEEP_H
#define SHOAL_CLUSTER_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
  SHOAL_PIECES_MAX = 4,
  SHOAL_KEEP_RECORDS = 2, /* of a parameter server at once; more where lies may be undone */
};

typedef struct shoal_keep {
  const char *folder;
  const char *who;     /* "chief", "ps0" */
  uint64_t job_digest; /* records of another job are not found */
} shoal_keep;

typedef struct shoal_keep_piece {
  void *bytes;
  size_t length;
} shoal_keep_piece;

enum { SHOAL_KEEP_UNLOCKED = -1 };

/* Takes the lock; *lock is for shoal_keep_unlock. SHOAL_INVALID, with the other's process, when somebody has
 * it and keeps it for a second. Without locks in the file system there is none, and that is no failure. */
shoal_status shoal_keep_lock(const shoal_keep *keep, int *lock, shoal_error *err);
void shoal_keep_unlock(const shoal_keep *keep, int *lock); /* SHOAL_KEEP_UNLOCKED is fine, and comes of it */

shoal_status shoal_keep_write(const shoal_keep *keep, uint64_t version, const shoal_keep_piece *pieces,
                              uint32_t count, shoal_error *err);
/* Fills the pieces; SHOAL_NOT_FOUND when there is no whole record with pieces of these lengths. */
shoal_status shoal_keep_read(const shoal_keep *keep, uint64_t version, const shoal_keep_piece *pieces,
                             uint32_t count, shoal_error *err);
/* Removes this job's records of `who` but those of these versions. */
void shoal_keep_these(const shoal_keep *keep, const uint64_t *versions, uint32_t count);
/* Removes this job's records of `who` outside first .. last; with first > last all of them. */
void shoal_keep_only(const shoal_keep *keep, uint64_t first, uint64_t last);

#endif
