/* fuzz_idx.c: any bytes as an IDX file. What is accepted must lie inside them. */
#include <string.h>

#include "base/assert.h"
#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_idx idx;
  shoal_error err = {0};
  if (shoal_idx_parse(&idx, "fuzz", bytes, length, &err) != SHOAL_OK) {
    SHOAL_ASSERT(strstr(err.text, "fuzz") && err.status != SHOAL_OK);
    return 0;
  }
  SHOAL_ASSERT(idx.dims_count >= 1 && idx.dims_count <= SHOAL_IDX_DIMS_MAX);
  uint64_t values = 1;
  for (uint32_t i = 0; i < idx.dims_count; i++) values *= idx.dims[i];
  SHOAL_ASSERT(values == idx.dims[0] * idx.sample_values);
  SHOAL_ASSERT(idx.values > bytes && idx.values + values == bytes + length);
  return 0;
}
