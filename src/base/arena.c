/* arena.c: see arena.h. Blocks are chained, the newest in front; a request that fills a block of its own
 * goes behind it, so that small ones go on filling the newest. */
#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 64, BLOCK_BYTES = 64 << 10 };

struct shoal_arena_block {
  shoal_arena_block *older;
  char *next; /* aligned; everything from here to end is free and zero */
  char *end;
};

void shoal_arena_init(shoal_arena *arena, size_t limit_bytes) {
  *arena = (shoal_arena){.block_bytes = BLOCK_BYTES, .limit_bytes = limit_bytes};
}

void shoal_arena_release(shoal_arena *arena) {
  for (shoal_arena_block *block = arena->last; block;) {
    shoal_arena_block *older = block->older;
    free(block);
    block = older;
  }
  shoal_arena_init(arena, arena->limit_bytes);
}

static shoal_arena_block *block_create(size_t bytes) {
  size_t overhead = sizeof(shoal_arena_block) + ALIGN_BYTES;
  if (bytes > SIZE_MAX - overhead) return NULL;
  /* calloc, so that the pages of a large block stay untouched until they are used. */
  shoal_arena_block *block = calloc(1, bytes + overhead);
  if (!block) return NULL;
  uintptr_t start = (uintptr_t)(block + 1);
  block->next = (char *)(block + 1) + (-start & (ALIGN_BYTES - 1));
  block->end = block->next + bytes;
  return block;
}

void *shoal_arena_take(shoal_arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX - ALIGN_BYTES) return NULL;
  bytes = bytes ? (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES : ALIGN_BYTES;
  if (bytes > arena->limit_bytes - arena->used_bytes) return NULL;

  shoal_arena_block *block = arena->last;
  if (!block || bytes > (size_t)(block->end - block->next)) {
    bool alone = bytes >= arena->block_bytes;
    block = block_create(alone ? bytes : arena->block_bytes);
    if (!block) return NULL;
    if (alone && arena->last) {
      /* A request that fills a block goes behind the newest, which keeps its free part. */
      block->older = arena->last->older;
      arena->last->older = block;
    } else {
      block->older = arena->last;
      arena->last = block;
    }
  }
  void *taken = block->next;
  block->next += bytes;
  arena->used_bytes += bytes;
  return taken;
}

void *shoal_arena_array(shoal_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return shoal_arena_take(arena, bytes);
}

char *shoal_arena_text(shoal_arena *arena, const char *text, size_t length) {
  if (length == SIZE_MAX) return NULL;
  char *copy = shoal_arena_take(arena, length + 1);
  if (copy && length) memcpy(copy, text, length);
  return copy;
}
