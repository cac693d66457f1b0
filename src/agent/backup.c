/* backup.c: see backup.h. */
#include "agent/backup.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static size_t bytes_of(const shoal_kept *kept) { return kept->count * (kept->bytes ? 1 : sizeof(float)); }

shoal_status shoal_backup_init(shoal_backup *backup, const shoal_kept *what, uint32_t count,
                               shoal_error *err) {
  SHOAL_ASSERT(count <= SHOAL_KEPT_MAX);
  *backup = (shoal_backup){.count = count};
  size_t bytes = 1;
  for (uint32_t i = 0; i < count; i++) {
    backup->what[i] = what[i];
    bytes += bytes_of(&what[i]);
  }
  backup->bytes = malloc(bytes);
  return backup->bytes ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_backup_release(shoal_backup *backup) {
  free(backup->bytes);
  *backup = (shoal_backup){0};
}

void shoal_backup_take(shoal_backup *backup) {
  char *to = backup->bytes;
  for (uint32_t i = 0; i < backup->count; i++) {
    size_t bytes = bytes_of(&backup->what[i]);
    memcpy(to, backup->what[i].at, bytes);
    to += bytes;
  }
}

void shoal_backup_restore(const shoal_backup *backup) {
  const char *from = backup->bytes;
  for (uint32_t i = 0; i < backup->count; i++) {
    size_t bytes = bytes_of(&backup->what[i]);
    memcpy(backup->what[i].at, from, bytes);
    from += bytes;
  }
}

uint32_t shoal_brain_kept(shoal_brain *net, const char *const names[4], shoal_kept *out) {
  size_t count = shoal_brain_weights_count(net);
  out[0] = (shoal_kept){.name = names[0], .at = shoal_brain_weights(net), .count = count};
  out[1] = (shoal_kept){.name = names[1], .at = shoal_brain_slot(net, 0), .count = count};
  out[2] = (shoal_kept){.name = names[2], .at = shoal_brain_slot(net, 1), .count = count};
  out[3] =
      (shoal_kept){.name = names[3], .at = shoal_brain_steps(net), .count = sizeof(uint64_t), .bytes = true};
  return 4;
}
