/* One hash over many: the root is as written, each leaf is checked with its path, and nothing else passes. */
#include "data/hash_tree.h"

#include <string.h>

#include "check.h"

enum { LEAVES_MAX = 40 };

static uint8_t leaves[LEAVES_MAX][SHOAL_SHA256_BYTES];

static void make_leaves(void) {
  for (uint8_t i = 0; i < LEAVES_MAX; i++) shoal_sha256_of(&i, 1, leaves[i]);
}

typedef const uint8_t (*hashes)[SHOAL_SHA256_BYTES];

/* Level by level, as hash_tree.h says it. */
static void plain_root(uint64_t count, uint8_t out[SHOAL_SHA256_BYTES]) {
  uint8_t level[LEAVES_MAX][SHOAL_SHA256_BYTES];
  memcpy(level, leaves, sizeof level);
  while (count > 1) {
    uint64_t next = 0;
    for (uint64_t i = 0; i + 1 < count; i += 2) {
      uint8_t bytes[65] = {1};
      memcpy(bytes + 1, level[i], 32);
      memcpy(bytes + 33, level[i + 1], 32);
      shoal_sha256_of(bytes, sizeof bytes, level[next++]);
    }
    if (count % 2 == 1) memcpy(level[next++], level[count - 1], 32);
    count = next;
  }
  memcpy(out, level[0], SHOAL_SHA256_BYTES);
}

static void the_root_is_made_level_by_level(void **state) {
  (void)state;
  make_leaves();
  uint8_t root[SHOAL_SHA256_BYTES], wanted[SHOAL_SHA256_BYTES];
  for (uint64_t count = 1; count <= LEAVES_MAX; count++) {
    shoal_hash_tree_root((hashes)leaves, count, root);
    plain_root(count, wanted);
    assert_memory_equal(root, wanted, sizeof root);
  }
  shoal_hash_tree_root(NULL, 0, root);
  shoal_sha256_of("", 0, wanted);
  assert_memory_equal(root, wanted, sizeof root);
}

static void every_leaf_is_checked_alone(void **state) {
  (void)state;
  make_leaves();
  for (uint64_t count = 1; count <= LEAVES_MAX; count++) {
    uint8_t root[SHOAL_SHA256_BYTES], path[SHOAL_HASH_PATH_MAX][SHOAL_SHA256_BYTES];
    shoal_hash_tree_root((hashes)leaves, count, root);
    for (uint64_t i = 0; i < count; i++) {
      uint32_t steps = shoal_hash_tree_path((hashes)leaves, count, i, path);
      assert_true(shoal_hash_tree_check(root, count, i, leaves[i], (hashes)path, steps));
      /* Another leaf, place, count or path does not pass. */
      assert_false(shoal_hash_tree_check(root, count, i, leaves[(i + 1) % LEAVES_MAX], (hashes)path, steps));
      assert_false(shoal_hash_tree_check(root, count, count, leaves[i], (hashes)path, steps));
      assert_false(shoal_hash_tree_check(root, count, i, leaves[i], (hashes)path, steps + 1));
      if (steps > 0) {
        assert_false(shoal_hash_tree_check(root, count, i, leaves[i], (hashes)path, steps - 1));
        assert_false(shoal_hash_tree_check(root, count, i ^ 1, leaves[i], (hashes)path, steps));
        path[steps / 2][3] ^= 1;
        assert_false(shoal_hash_tree_check(root, count, i, leaves[i], (hashes)path, steps));
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_root_is_made_level_by_level),
      cmocka_unit_test(every_leaf_is_checked_alone),
  };
  return RUN_TESTS(tests);
}
