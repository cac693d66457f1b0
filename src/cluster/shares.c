/* shares.c: see shares.h. */
#include "cluster/shares.h"

#include <stdlib.h>

shoal_status shoal_shares_init(shoal_shares *out, const shoal_graph *graph, uint32_t owners,
                               shoal_error *err) {
  *out = (shoal_shares){.slices_count = owners};
  out->slices = calloc(owners, sizeof *out->slices);
  if (out->slices == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory to cut %zu weights", graph->weights_count);
  shoal_slices_cut(graph->runs, graph->runs_count, graph->weights_count, owners, out->slices);
  return SHOAL_OK;
}

void shoal_shares_release(shoal_shares *shares) {
  free(shares->slices);
  *shares = (shoal_shares){0};
}

shoal_status shoal_shares_fit(const shoal_shares *shares, uint32_t vectors, uint64_t message_bytes_max,
                              shoal_error *err) {
  for (uint32_t s = 0; s < shares->slices_count; s++) {
    double bytes = (double)vectors * (double)shares->slices[s].count * sizeof(float);
    if (bytes > (double)message_bytes_max)
      return shoal_fail(err, SHOAL_LIMIT,
                        "parameter server %u would hold %.1f GB, and a message at most %.1f GB; add "
                        "parameter servers (--ps)",
                        s, bytes / 1e9, (double)message_bytes_max / 1e9);
  }
  return SHOAL_OK;
}
