/* block.h: large blocks of memory, used over and over.
 *
 * malloc asks the system for every large block and gives it back, and the system clears each page when
 * it is touched again: for messages of many megabytes that costs more than sending them. Here a few
 * blocks that were given back are kept for the next who asks, and large ones are asked for in huge
 * pages.
 *
 * Ownership: take, then give. Threads: any. */
#ifndef SHOAL_BASE_BLOCK_H
#define SHOAL_BASE_BLOCK_H

#include <stddef.h>

/* At least so many bytes, on a boundary of 64; their contents are anything. *bytes is what give needs.
 * NULL: no memory. */
void *shoal_block_take(size_t least_bytes, size_t *bytes);
void shoal_block_give(void *block, size_t bytes);

#endif
