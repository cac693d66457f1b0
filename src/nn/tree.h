/* tree.h: the sums of a round, and the order in which its parts are added.
 *
 * Sums of floats depend on their order, so it is fixed: neighbours first, then neighbours of
 * these sums, and so on. Of five parts that is ((0 + 1) + (2 + 3)) + 4. A node of this tree
 * covers parts first .. first + count - 1, where first is a multiple of a power of two, count is
 * that power, or what is left of the parts. Its sum is the same whoever adds it up, so one who
 * has all of a node's parts can add them and pass on the sum alone.
 *
 * Threads: any. */
#ifndef SHOAL_NN_TREE_H
#define SHOAL_NN_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* What samples add to the sums of a round or an evaluation. */
typedef struct shoal_sums {
  double loss, weight; /* of weighted sample losses, and of their weights */
  double square;       /* of squared errors (mean squared, absolute, Huber) */
  uint64_t counted;    /* answers with a weight above 0: one a sample, or one a step of a sequence */
  uint64_t correct;    /* the right ones among them */
} shoal_sums;

static inline void shoal_sums_add(shoal_sums *total, const shoal_sums *part) {
  total->loss += part->loss;
  total->weight += part->weight;
  total->square += part->square;
  total->counted += part->counted;
  total->correct += part->correct;
}

/* How many parts the node covers that begins at `first` and has up to `width` of them. */
static inline uint32_t shoal_tree_count(uint32_t parts, uint32_t first, uint32_t width) {
  return parts - first < width ? parts - first : width;
}

/* Whether there is such a node; *width is its power of two. */
static inline bool shoal_tree_is_node(uint32_t parts, uint32_t first, uint32_t count, uint32_t *width) {
  if (first >= parts || count == 0 || count > parts - first) return false;
  *width = 1;
  while (*width < count) *width *= 2;
  return first % *width == 0 && shoal_tree_count(parts, first, *width) == count;
}

/* Adds up the sums of nodes of this width, each at its first part, and leaves the result in sums[0]. */
static inline void shoal_tree_add_sums(shoal_sums *sums, uint32_t parts, uint32_t width) {
  for (; width < parts; width *= 2)
    for (uint32_t i = 0; i + width < parts; i += 2 * width) shoal_sums_add(&sums[i], &sums[i + width]);
}

#endif
