/* parzen.h: new points of a space, near those that did well and far from those that did not.
 *
 * A tree of Parzen estimators (Bergstra et al. 2011) in the unit cube: for each setting one density of the
 * good points and one of the others; of some candidates drawn from the first, the one with the largest
 * quotient of both. Settings that have no effect at a point tell nothing there and are left out. A kernel
 * is a biweight, mirrored at the ends, so all is sums, products and quotients: the same bits on every
 * machine.
 *
 * Threads: any. */
#ifndef SHOAL_SEARCH_PARZEN_H
#define SHOAL_SEARCH_PARZEN_H

#include "base/random.h"
#include "search/space.h"

enum {
  SHOAL_PARZEN_GOOD_MAX = 32,
  SHOAL_PARZEN_OTHERS_MAX = 128,
  SHOAL_PARZEN_CANDIDATES = 32,
};

/* Points in the order of how good they are, the best first: 15% of them count as good, at least one and at
 * most GOOD_MAX; of the others OTHERS_MAX are taken evenly. count is at least 2. */
void shoal_parzen_propose(const shoal_space *space, const shoal_values *const *points, uint64_t count,
                          shoal_key key, shoal_values *out);
/* A point by chance; number i of the key's. */
void shoal_parzen_random(const shoal_space *space, shoal_key key, shoal_values *out);

#endif
