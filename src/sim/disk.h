/* disk.h: a machine's disk, as far as a crash can be seen on it.
 *
 * A record is a name (a number) and bytes with a checksum. A careful writer writes beside the
 * place, flushes, renames, flushes the folder; a crash at any point leaves the old record or the
 * new one. Two careless ones are there to be caught: one that does not flush, so that what it
 * wrote is torn when the power fails, and one that writes over the old record, which is torn even
 * when only the process dies. A reader finds a whole record or none: a torn one fails its checksum.
 *
 * The contents of a page cache outlive the process, but not the power.
 *
 * Ownership: init, then release. Threads: one. */
#ifndef SHOAL_SIM_DISK_H
#define SHOAL_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

typedef enum shoal_disk_care { SHOAL_DISK_CAREFUL, SHOAL_DISK_NO_FLUSH, SHOAL_DISK_IN_PLACE } shoal_disk_care;

typedef struct shoal_disk_record {
  uint64_t name;
  shoal_blob *bytes; /* with the checksum behind */
  bool flushed;
} shoal_disk_record;

typedef struct shoal_disk {
  shoal_disk_care care;
  shoal_disk_record *records;
  uint32_t count, size;
  shoal_blob *writing; /* a write that has begun, or NULL */
  uint64_t writing_name;
} shoal_disk;

void shoal_disk_release(shoal_disk *disk);

/* Begins to write; one at a time. */
void shoal_disk_begin(shoal_disk *disk, uint64_t name, const void *bytes, size_t length);
/* The writer believes that it is kept. */
void shoal_disk_finish(shoal_disk *disk);
/* A crash when the write at hand, if any, had come so far (0 .. 1); `luck` (0 .. 1) decides what
 * the hardware leaves open. True: a write was interrupted. */
bool shoal_disk_crash(shoal_disk *disk, bool power, double done, double luck);

/* The bytes without their checksum, to be released; NULL when there is no whole record. */
shoal_blob *shoal_disk_read(const shoal_disk *disk, uint64_t name);
/* Removes the records that are not among these. */
void shoal_disk_these(shoal_disk *disk, const uint64_t *names, uint32_t count);
/* Removes the records outside first .. last; with first > last all. */
void shoal_disk_only(shoal_disk *disk, uint64_t first, uint64_t last);

#endif
