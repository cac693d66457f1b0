/* hash.c: SHA-256 is OpenSSL's, which uses the processor's own instructions; CRC-32C is too small a
 * job for a library. */
#include "base/hash.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct shoal_sha256 {
  EVP_MD_CTX *context;
};

shoal_sha256 *shoal_sha256_create(void) {
  shoal_sha256 *hash = malloc(sizeof *hash);
  if (!hash) return NULL;
  hash->context = EVP_MD_CTX_new();
  if (!hash->context || !EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL)) {
    shoal_sha256_destroy(hash);
    return NULL;
  }
  return hash;
}

void shoal_sha256_add(shoal_sha256 *hash, const void *bytes, size_t length) {
  int done = EVP_DigestUpdate(hash->context, bytes, length);
  SHOAL_ASSERT(done);
}

void shoal_sha256_finish(shoal_sha256 *hash, uint8_t out[SHOAL_SHA256_BYTES]) {
  int done = EVP_DigestFinal_ex(hash->context, out, NULL);
  SHOAL_ASSERT(done);
}

void shoal_sha256_destroy(shoal_sha256 *hash) {
  if (!hash) return;
  EVP_MD_CTX_free(hash->context);
  free(hash);
}

void shoal_sha256_of(const void *bytes, size_t length, uint8_t out[SHOAL_SHA256_BYTES]) {
  int done = EVP_Digest(bytes, length, out, NULL, EVP_sha256(), NULL);
  SHOAL_ASSERT(done);
}

void shoal_sha256_hex(const void *bytes, size_t length, char out[SHOAL_SHA256_HEX]) {
  uint8_t digest[SHOAL_SHA256_BYTES];
  shoal_sha256_of(bytes, length, digest);
  shoal_hex(digest, sizeof digest, out);
}

void shoal_hex(const uint8_t *bytes, size_t length, char *out) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < length; i++) {
    *out++ = digits[bytes[i] >> 4];
    *out++ = digits[bytes[i] & 15];
  }
  *out = 0;
}

/* Half a byte at a time: event files are small, and a table of sixteen needs no set-up.
 * Entry n is the remainder of n times x^32 by Castagnoli's polynomial, bits reversed. */
uint32_t shoal_crc32c(uint32_t crc, const void *bytes, size_t length) {
  static const uint32_t table[16] = {
      0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
      0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
  };
  const uint8_t *byte = bytes;
  crc = ~crc;
  for (size_t i = 0; i < length; i++) {
    crc ^= byte[i];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

/* Eight chains, so that the multiplications of one word need not wait for those of the last. */
uint64_t shoal_digest(const void *bytes, size_t length) {
  enum { CHAINS = 8 };
  static const uint64_t FACTOR = 0x9e3779b97f4a7c15u;
  uint64_t chains[CHAINS];
  for (int c = 0; c < CHAINS; c++) chains[c] = FACTOR * (uint64_t)(c + 1) ^ length;
  const uint8_t *at = bytes;
  size_t left = length;
  for (; left >= sizeof chains; left -= sizeof chains, at += sizeof chains) {
    uint64_t words[CHAINS];
    memcpy(words, at, sizeof words);
    for (int c = 0; c < CHAINS; c++) {
      chains[c] = (chains[c] ^ words[c]) * FACTOR;
      chains[c] ^= chains[c] >> 32;
    }
  }
  uint64_t rest[CHAINS] = {0}, digest = 0;
  memcpy(rest, at, left);
  for (int c = 0; c < CHAINS; c++) {
    digest = (digest ^ chains[c]) * FACTOR;
    digest = (digest ^ digest >> 29 ^ rest[c]) * FACTOR;
  }
  return digest ^ digest >> 32;
}
