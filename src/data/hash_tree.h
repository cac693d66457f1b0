/* hash_tree.h: one hash over many, such that each of them can be checked alone.
 *
 * The leaves are hashes, of chunks. Two neighbours of a level make a node of the next one up, SHA-256 of a
 * byte 1, the left one and the right one; the last of an odd number goes up as it is. What is left at the
 * top is the root.
 *
 *        root
 *       /    \
 *      a      c        a = H(1, 0th, 1st), root = H(1, a, 2nd)
 *     / \     |
 *    0   1    2
 *
 * The path of a leaf is its neighbours from the bottom to the top, those that there are: with it, and the
 * number of leaves, a leaf is checked against the root without the others.
 *
 * Threads: any; nothing is kept. */
#ifndef SHOAL_DATA_HASH_TREE_H
#define SHOAL_DATA_HASH_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

enum { SHOAL_HASH_PATH_MAX = 64 };

/* Of no leaves the root is SHA-256 of nothing. */
void shoal_hash_tree_root(const uint8_t (*leaves)[SHOAL_SHA256_BYTES], uint64_t count,
                          uint8_t out[SHOAL_SHA256_BYTES]);
/* Writes the path of leaf `index` < count; returns its length, of at most SHOAL_HASH_PATH_MAX hashes. */
uint32_t shoal_hash_tree_path(const uint8_t (*leaves)[SHOAL_SHA256_BYTES], uint64_t count, uint64_t index,
                              uint8_t (*path)[SHOAL_SHA256_BYTES]);
/* Whether the leaf stands at that place in a tree with that root. All of it may come from outside. */
bool shoal_hash_tree_check(const uint8_t root[SHOAL_SHA256_BYTES], uint64_t count, uint64_t index,
                           const uint8_t leaf[SHOAL_SHA256_BYTES], const uint8_t (*path)[SHOAL_SHA256_BYTES],
                           uint32_t path_count);

#endif
