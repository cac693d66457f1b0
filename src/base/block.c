/* block.c: see block.h. */
#include "base/block.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { KEPT_MAX = 8, ALIGNMENT = 64 };
static const size_t LARGE_BYTES = 128 << 10, HUGE_BYTES = 2 << 20; /* less is malloc's own business */
static const size_t KEPT_BYTES_MAX = (size_t)512 << 20;

static struct {
  pthread_mutex_t lock;
  struct {
    void *block;
    size_t bytes;
  } kept[KEPT_MAX];
  size_t count, bytes;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A kept block that fits without wasting more than a quarter; the newest first, which is the warmest. */
static void *take_kept(size_t least, size_t *bytes) {
  void *found = NULL;
  pthread_mutex_lock(&store.lock);
  for (size_t i = store.count; i > 0 && found == NULL; i--) {
    size_t has = store.kept[i - 1].bytes;
    if (has < least || has - least > least / 4) continue;
    found = store.kept[i - 1].block;
    *bytes = has;
    store.bytes -= has;
    store.count--;
    for (size_t k = i - 1; k < store.count; k++) store.kept[k] = store.kept[k + 1];
  }
  pthread_mutex_unlock(&store.lock);
  return found;
}

void *shoal_block_take(size_t least, size_t *bytes) {
  if (least > SIZE_MAX / 2) return NULL;
  size_t alignment =
      least >= 4 * HUGE_BYTES ? HUGE_BYTES : ALIGNMENT; /* rounding up wastes a quarter at most */
  *bytes = (least + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (least >= LARGE_BYTES) {
    void *kept = take_kept(least, bytes);
    if (kept != NULL) return kept;
    *bytes = (least + alignment - 1) / alignment * alignment;
  }
  void *made = aligned_alloc(alignment, *bytes);
  if (made != NULL && alignment == HUGE_BYTES) madvise(made, *bytes, MADV_HUGEPAGE);
  return made;
}

void shoal_block_give(void *block, size_t bytes) {
  if (block == NULL || bytes < LARGE_BYTES) {
    free(block);
    return;
  }
  bool keep = false;
  pthread_mutex_lock(&store.lock);
  if (store.count < KEPT_MAX && store.bytes + bytes <= KEPT_BYTES_MAX) {
    store.kept[store.count].block = block;
    store.kept[store.count++].bytes = bytes;
    store.bytes += bytes;
    keep = true;
  }
  pthread_mutex_unlock(&store.lock);
  if (!keep) free(block);
}
