/* hash.c: SHA-256 is OpenSSL's, which uses the processor's own instructions; CRC-32C is too small a
 * job for a library. */
#include "base/hash.h"

#include <openssl/evp.h>
#include <pthread.h>
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

void shoal_sha256_finish_hex(shoal_sha256 *hash, char out[SHOAL_SHA256_HEX]) {
  uint8_t digest[SHOAL_SHA256_BYTES];
  shoal_sha256_finish(hash, digest);
  shoal_hex(digest, sizeof digest, out);
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

/* Eight bytes at a time. Entry [k][n] is the remainder of n times x^(32 + 8 k) by Castagnoli's polynomial, bits
 * reversed. */
enum { CRC_SLICES = 8 };
static uint32_t crc_table[CRC_SLICES][256];

static void fill_crc_table(void) {
  static const uint32_t POLYNOMIAL = 0x82f63b78;
  for (uint32_t n = 0; n < 256; n++) {
    uint32_t rest = n;
    for (int bit = 0; bit < 8; bit++) rest = rest >> 1 ^ (rest & 1 ? POLYNOMIAL : 0);
    crc_table[0][n] = rest;
  }
  for (int k = 1; k < CRC_SLICES; k++)
    for (uint32_t n = 0; n < 256; n++) {
      uint32_t before = crc_table[k - 1][n];
      crc_table[k][n] = before >> 8 ^ crc_table[0][before & 255];
    }
}

uint32_t shoal_crc32c(uint32_t crc, const void *bytes, size_t length) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_crc_table);
  const uint8_t *at = bytes;
  crc = ~crc;
  for (; length >= CRC_SLICES; length -= CRC_SLICES, at += CRC_SLICES) {
    uint32_t low =
        crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
    crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
          crc_table[4][low >> 24] ^ crc_table[3][at[4]] ^ crc_table[2][at[5]] ^ crc_table[1][at[6]] ^
          crc_table[0][at[7]];
  }
  for (; length > 0; length--) crc = crc >> 8 ^ crc_table[0][(crc ^ *at++) & 255];
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
