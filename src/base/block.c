/* block.c: see block.h. */
#include "base/block.h"

#include <pthread.h>
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

/* The lock is held. */
static void forget(size_t index) {
  store.bytes -= store.kept[index].bytes;
  store.count--;
  for (size_t k = index; k < store.count; k++) store.kept[k] = store.kept[k + 1];
}

/* A kept block that fits without wasting more than a quarter; the newest first, which is the warmest. */
static void *take_kept(size_t least, size_t *bytes) {
  void *found = NULL;
  pthread_mutex_lock(&store.lock);
  for (size_t i = store.count; i > 0 && found == NULL; i--) {
    size_t has = store.kept[i - 1].bytes;
    if (has < least || has - least > least / 4) continue;
    found = store.kept[i - 1].block;
    *bytes = has;
    forget(i - 1);
  }
  pthread_mutex_unlock(&store.lock);
  return found;
}

void *shoal_block_take(size_t least, size_t *bytes) {
  if (least > SIZE_MAX / 2) return NULL;
  size_t alignment = least >= HUGE_BYTES / 2 ? HUGE_BYTES : ALIGNMENT;
  *bytes = (least + alignment - 1) / alignment * alignment;
  void *kept = least >= LARGE_BYTES ? take_kept(*bytes, bytes) : NULL;
  if (kept != NULL) return kept;
  void *made = aligned_alloc(alignment, *bytes);
  if (made != NULL && alignment == HUGE_BYTES) madvise(made, *bytes, MADV_HUGEPAGE);
  return made;
}

void shoal_block_give(void *block, size_t bytes) {
  if (block == NULL || bytes < LARGE_BYTES) {
    free(block);
    return;
  }
  if (bytes > KEPT_BYTES_MAX) {
    free(block);
    return;
  }
  void *oldest[KEPT_MAX];
  size_t dropped = 0;
  pthread_mutex_lock(&store.lock);
  while (store.count == KEPT_MAX || store.bytes + bytes > KEPT_BYTES_MAX) {
    oldest[dropped++] = store.kept[0].block;
    forget(0);
  }
  store.kept[store.count].block = block;
  store.kept[store.count++].bytes = bytes;
  store.bytes += bytes;
  pthread_mutex_unlock(&store.lock);
  for (size_t i = 0; i < dropped; i++) free(oldest[i]);
}
