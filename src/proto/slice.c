/* slice.c: see slice.h. */
#include "proto/slice.h"

/* The first run that begins at or behind share `index` of `slices` of the vector. */
static size_t first_run_of(const shoal_run *runs, size_t runs_count, size_t weights_count, uint32_t index,
                           uint32_t slices) {
  size_t start = (size_t)((double)weights_count * index / slices), run = 0;
  while (run < runs_count && runs[run].offset < start) run++;
  return run;
}

void shoal_slices_cut(const shoal_run *runs, size_t runs_count, size_t weights_count, uint32_t slices,
                      shoal_slice *out) {
  for (uint32_t s = 0; s < slices; s++) {
    size_t first = first_run_of(runs, runs_count, weights_count, s, slices);
    size_t end = first_run_of(runs, runs_count, weights_count, s + 1, slices);
    size_t start = first < runs_count ? runs[first].offset : weights_count;
    size_t stop = end < runs_count ? runs[end].offset : weights_count;
    out[s] =
        (shoal_slice){.offset = start, .count = stop - start, .first_run = first, .runs_count = end - first};
  }
}
