/* secret.h: a secret, and what only its holder can compute.
 *
 * Nobody who lacks the secret can guess the signature of anything, nor find two texts with the same number.
 *
 * Ownership: a plain value. Threads: any, once it is drawn. */
#ifndef SHOAL_BASE_SECRET_H
#define SHOAL_BASE_SECRET_H

#include "base/hash.h"
#include "base/status.h"

typedef struct shoal_secret {
  uint8_t bytes[32];
} shoal_secret;

/* So many bytes that nobody can predict. */
shoal_status shoal_draw(void *out, size_t length, shoal_error *err);
shoal_status shoal_secret_draw(shoal_secret *out, shoal_error *err);
/* The secret that this file keeps. A file that does not exist is made, with a new secret; only its owner can read it. */
shoal_status shoal_secret_keep(shoal_secret *out, const char *path, shoal_error *err);

/* HMAC-SHA-256. */
void shoal_secret_sign(const shoal_secret *secret, const void *bytes, size_t length,
                       uint8_t out[SHOAL_SHA256_BYTES]);
/* The signature's first eight bytes as a number, which is never 0. */
uint64_t shoal_secret_number(const shoal_secret *secret, const void *bytes, size_t length);

#endif
