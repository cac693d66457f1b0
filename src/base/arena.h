/* arena.h: one block of memory handed out from front to back.
 *
 * Everything taken from an arena lives until the arena is released.
 * A growing arena chains blocks, for parsers and set-up; memory is zeroed.
 *
 * Ownership: the caller owns the arena struct; init, then release. Threads: none. */
#ifndef SHOAL_BASE_ARENA_H
#define SHOAL_BASE_ARENA_H

#include <stddef.h>

typedef struct shoal_arena_block shoal_arena_block;

typedef struct shoal_arena {
  shoal_arena_block *last; /* newest block; older ones are chained behind it */
  size_t block_bytes;      /* the least size of a new block */
  size_t used_bytes;       /* handed out in total, each rounded up to 64 */
  size_t limit_bytes;      /* never hands out more than this */
} shoal_arena;

void shoal_arena_init(shoal_arena *arena, size_t limit_bytes);
void shoal_arena_release(shoal_arena *arena);

/* Zeroed memory aligned to 64 bytes, or NULL past the limit or without memory. */
void *shoal_arena_take(shoal_arena *arena, size_t bytes);

/* The same for count elements of size bytes; NULL also when the product overflows. */
void *shoal_arena_array(shoal_arena *arena, size_t count, size_t size);

/* A copy of length bytes of text with a final zero, or NULL. */
char *shoal_arena_text(shoal_arena *arena, const char *text, size_t length);

#endif
