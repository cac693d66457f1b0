/* disk.c: see disk.h. */
#include "sim/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

enum { CHECK_BYTES = 4 };

/* A careful write goes through these shares of its time: data and its flush, then the rename and
 * the flush of the folder, during which either name may be what a crash leaves. */
static const double RENAMED = 0.9;

void shoal_disk_release(shoal_disk *disk) {
  for (uint32_t i = 0; i < disk->count; i++) shoal_blob_release(disk->records[i].bytes);
  free(disk->records);
  shoal_blob_release(disk->writing);
  *disk = (shoal_disk){.care = disk->care};
}

static shoal_disk_record *find(const shoal_disk *disk, uint64_t name) {
  for (uint32_t i = 0; i < disk->count; i++)
    if (disk->records[i].name == name) return &disk->records[i];
  return NULL;
}

static void put(shoal_disk *disk, uint64_t name, shoal_blob *bytes, bool flushed) {
  shoal_disk_record *record = find(disk, name);
  if (record == NULL) {
    if (disk->count == disk->size) {
      disk->size = disk->size == 0 ? 8 : 2 * disk->size;
      disk->records = realloc(disk->records, disk->size * sizeof *disk->records);
      SHOAL_ASSERT(disk->records != NULL);
    }
    record = &disk->records[disk->count++];
    *record = (shoal_disk_record){.name = name};
  }
  shoal_blob_release(record->bytes);
  record->bytes = bytes;
  record->flushed = flushed;
}

static uint32_t check_of(const uint8_t *bytes, size_t length) {
  return shoal_crc32c(0, bytes, length) ^ 0x5a5a5a5au; /* so that no bytes at all are no record */
}

void shoal_disk_begin(shoal_disk *disk, uint64_t name, const void *bytes, size_t length) {
  SHOAL_ASSERT(disk->writing == NULL);
  disk->writing = shoal_blob_create(length + CHECK_BYTES);
  SHOAL_ASSERT(disk->writing != NULL);
  uint32_t check = check_of(bytes, length);
  memcpy(shoal_blob_bytes(disk->writing), bytes, length);
  memcpy(shoal_blob_bytes(disk->writing) + length, &check, sizeof check);
  disk->writing_name = name;
}

void shoal_disk_finish(shoal_disk *disk) {
  SHOAL_ASSERT(disk->writing != NULL);
  put(disk, disk->writing_name, disk->writing, disk->care != SHOAL_DISK_NO_FLUSH);
  disk->writing = NULL;
}

/* What a write leaves of itself when only a share of its bytes came to the disk. */
static shoal_blob *torn(shoal_blob *whole, double share) {
  return shoal_blob_of(shoal_blob_bytes(whole), (size_t)(share * (double)(shoal_blob_length(whole) - 1)));
}

bool shoal_disk_crash(shoal_disk *disk, bool power, double done, double luck) {
  bool interrupted = disk->writing != NULL;
  if (interrupted) {
    shoal_blob *bytes = disk->writing;
    disk->writing = NULL;
    if (disk->care == SHOAL_DISK_IN_PLACE) {
      put(disk, disk->writing_name, torn(bytes, done), true);
      shoal_blob_release(bytes);
    } else if (done >= RENAMED && luck < 0.5) {
      put(disk, disk->writing_name, bytes, disk->care == SHOAL_DISK_CAREFUL);
    } else {
      shoal_blob_release(bytes);
    }
  }
  for (uint32_t i = 0; power && i < disk->count; i++) {
    shoal_disk_record *record = &disk->records[i];
    if (record->flushed) continue;
    shoal_blob *left = torn(record->bytes, luck);
    shoal_blob_release(record->bytes);
    record->bytes = left;
    record->flushed = true;
  }
  return interrupted;
}

shoal_blob *shoal_disk_read(const shoal_disk *disk, uint64_t name) {
  const shoal_disk_record *record = find(disk, name);
  if (record == NULL || shoal_blob_length(record->bytes) < CHECK_BYTES) return NULL;
  size_t length = shoal_blob_length(record->bytes) - CHECK_BYTES;
  uint32_t check;
  memcpy(&check, shoal_blob_bytes(record->bytes) + length, sizeof check);
  if (check != check_of(shoal_blob_bytes(record->bytes), length)) return NULL;
  return shoal_blob_of(shoal_blob_bytes(record->bytes), length);
}

void shoal_disk_only(shoal_disk *disk, uint64_t first, uint64_t last) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < disk->count; i++)
    if (disk->records[i].name >= first && disk->records[i].name <= last)
      disk->records[kept++] = disk->records[i];
    else
      shoal_blob_release(disk->records[i].bytes);
  disk->count = kept;
}

void shoal_disk_these(shoal_disk *disk, const uint64_t *names, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < disk->count; i++) {
    bool stays = false;
    for (uint32_t k = 0; k < count; k++) stays |= names[k] == disk->records[i].name;
    if (stays)
      disk->records[kept++] = disk->records[i];
    else
      shoal_blob_release(disk->records[i].bytes);
  }
  disk->count = kept;
}
