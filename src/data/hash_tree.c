/* hash_tree.c: see hash_tree.h.
 *
 * Going up level by level, where the last of an odd number stays as it is, gives the same tree as cutting
 * from the top: on the left the largest power of two below the count. So it can be done without a level's
 * memory. */
#include "data/hash_tree.h"

#include <string.h>

#include "base/assert.h"

typedef const uint8_t (*hashes)[SHOAL_SHA256_BYTES];

static void join(const uint8_t *left, const uint8_t *right, uint8_t out[SHOAL_SHA256_BYTES]) {
  uint8_t bytes[1 + 2 * SHOAL_SHA256_BYTES] = {1};
  memcpy(bytes + 1, left, SHOAL_SHA256_BYTES);
  memcpy(bytes + 1 + SHOAL_SHA256_BYTES, right, SHOAL_SHA256_BYTES);
  shoal_sha256_of(bytes, sizeof bytes, out);
}

/* The largest power of two below count > 1. */
static uint64_t left_of(uint64_t count) {
  uint64_t left = 1;
  while (left < count - left) left *= 2;
  return left;
}

void shoal_hash_tree_root(hashes leaves, uint64_t count, uint8_t out[SHOAL_SHA256_BYTES]) {
  if (count == 0) {
    shoal_sha256_of("", 0, out);
  } else if (count == 1) {
    memcpy(out, leaves[0], SHOAL_SHA256_BYTES);
  } else {
    uint8_t left[SHOAL_SHA256_BYTES], right[SHOAL_SHA256_BYTES];
    uint64_t middle = left_of(count);
    shoal_hash_tree_root(leaves, middle, left);
    shoal_hash_tree_root(leaves + middle, count - middle, right);
    join(left, right, out);
  }
}

uint32_t shoal_hash_tree_path(hashes leaves, uint64_t count, uint64_t index,
                              uint8_t (*path)[SHOAL_SHA256_BYTES]) {
  SHOAL_ASSERT(index < count);
  if (count == 1) return 0;
  uint64_t middle = left_of(count);
  bool is_left = index < middle;
  uint32_t steps = is_left ? shoal_hash_tree_path(leaves, middle, index, path)
                           : shoal_hash_tree_path(leaves + middle, count - middle, index - middle, path);
  if (is_left)
    shoal_hash_tree_root(leaves + middle, count - middle, path[steps]);
  else
    shoal_hash_tree_root(leaves, middle, path[steps]);
  return steps + 1;
}

bool shoal_hash_tree_check(const uint8_t root[SHOAL_SHA256_BYTES], uint64_t count, uint64_t index,
                           const uint8_t leaf[SHOAL_SHA256_BYTES], hashes path, uint32_t path_count) {
  uint8_t hash[SHOAL_SHA256_BYTES];
  uint32_t step = 0;
  if (index >= count) return false;
  memcpy(hash, leaf, sizeof hash);
  for (; count > 1; count = count / 2 + count % 2, index /= 2) {
    if (index % 2 == 0 && index + 1 == count) continue; /* goes up as it is */
    if (step == path_count) return false;
    if (index % 2 == 1)
      join(path[step], hash, hash);
    else
      join(hash, path[step], hash);
    step++;
  }
  return step == path_count && memcmp(hash, root, sizeof hash) == 0;
}
