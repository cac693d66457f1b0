/* proof.c: see proof.h. */
#include "proto/proof.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

uint64_t shoal_proof_join(const uint64_t *numbers, uint32_t count, const void *bytes, size_t length) {
  uint8_t sum[SHOAL_SHA256_BYTES], number[8];
  shoal_sha256 *hash = shoal_sha256_create();
  SHOAL_ASSERT(hash != NULL);
  for (uint32_t i = 0; i < count; i++) {
    for (unsigned k = 0; k < sizeof number; k++) number[k] = (uint8_t)(numbers[i] >> 8 * k);
    shoal_sha256_add(hash, number, sizeof number);
  }
  if (length > 0) shoal_sha256_add(hash, bytes, length);
  shoal_sha256_finish(hash, sum);
  shoal_sha256_destroy(hash);
  uint64_t proof = 0;
  for (unsigned k = 0; k < 8; k++) proof |= (uint64_t)sum[k] << 8 * k;
  return proof;
}

uint64_t shoal_proof(const void *bytes, size_t length) { return shoal_proof_join(NULL, 0, bytes, length); }
