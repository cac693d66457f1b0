/* proof.h: what a result is told by, where somebody may mean harm.
 *
 * 64 bits of a SHA-256: nobody finds another contribution with the same proof, as one could with the quick
 * digest of base/hash.h. Of a slice it is taken over the bytes as they travel; of a whole contribution over the proofs
 * of its slices, in their order. Owners and workers must come to the same number.
 *
 * Ownership: everything is borrowed. Threads: any. */
#ifndef SHOAL_PROTO_PROOF_H
#define SHOAL_PROTO_PROOF_H

#include <stddef.h>
#include <stdint.h>

uint64_t shoal_proof(const void *bytes, size_t length);
/* Of numbers, then of bytes behind them (length 0: none). */
uint64_t shoal_proof_join(const uint64_t *numbers, uint32_t count, const void *bytes, size_t length);

#endif
