/* hash.h: SHA-256 for names and fingerprints, CRC-32C for event files, a digest for results.
 *
 * Ownership: a shoal_sha256 is created and destroyed by the caller. Threads: one each. */
#ifndef SHOAL_BASE_HASH_H
#define SHOAL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { SHOAL_SHA256_BYTES = 32, SHOAL_SHA256_HEX = 65 };

typedef struct shoal_sha256 shoal_sha256;

shoal_sha256 *shoal_sha256_create(void); /* NULL without memory */
void shoal_sha256_add(shoal_sha256 *hash, const void *bytes, size_t length);
void shoal_sha256_finish(shoal_sha256 *hash, uint8_t out[SHOAL_SHA256_BYTES]); /* once, at the end; or: */
void shoal_sha256_finish_hex(shoal_sha256 *hash, char out[SHOAL_SHA256_HEX]);
void shoal_sha256_destroy(shoal_sha256 *hash);

void shoal_sha256_of(const void *bytes, size_t length, uint8_t out[SHOAL_SHA256_BYTES]); /* all at once */
/* The same as lower-case hexadecimal with a final zero. */
void shoal_sha256_hex(const void *bytes, size_t length, char out[SHOAL_SHA256_HEX]);
void shoal_hex(const uint8_t *bytes, size_t length, char *out); /* out: 2 * length + 1 */

/* Quick, for telling results apart where nobody means harm: tens of gigabytes a second. */
uint64_t shoal_digest(const void *bytes, size_t length);

uint32_t shoal_crc32c(uint32_t crc, const void *bytes, size_t length); /* start with 0 */

#endif
