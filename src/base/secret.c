/* secret.c: see secret.h. */
#include "base/secret.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/file.h"

shoal_status shoal_draw(void *out, size_t length, shoal_error *err) {
  if (getrandom(out, length, 0) == (ssize_t)length) return SHOAL_OK;
  return shoal_fail(err, SHOAL_IO, "the system has no random numbers to give");
}

shoal_status shoal_secret_draw(shoal_secret *out, shoal_error *err) {
  return shoal_draw(out->bytes, sizeof out->bytes, err);
}

static shoal_status read_secret(shoal_secret *out, const char *path, shoal_error *err) {
  uint8_t *bytes;
  size_t length;
  shoal_status status = shoal_file_read(path, sizeof out->bytes + 1, false, &bytes, &length, err);
  if (status != SHOAL_OK) return status;
  if (length == sizeof out->bytes)
    memcpy(out->bytes, bytes, length);
  else
    status =
        shoal_fail(err, SHOAL_CORRUPT, "%s: must have %zu bytes, but has %zu; delete it to get a new one",
                   path, sizeof out->bytes, length);
  free(bytes);
  return status;
}

shoal_status shoal_secret_keep(shoal_secret *out, const char *path, shoal_error *err) {
  if (shoal_file_exists(path)) return read_secret(out, path, err);
  shoal_writer *writer;
  shoal_status status = shoal_secret_draw(out, err);
  if (status == SHOAL_OK) status = shoal_writer_create_secret(&writer, path, err);
  if (status != SHOAL_OK) return status;
  shoal_writer_add(writer, out->bytes, sizeof out->bytes);
  return shoal_writer_commit(writer, err);
}

void shoal_secret_sign(const shoal_secret *secret, const void *bytes, size_t length,
                       uint8_t out[SHOAL_SHA256_BYTES]) {
  const uint8_t *done = HMAC(EVP_sha256(), secret->bytes, sizeof secret->bytes, bytes, length, out, NULL);
  SHOAL_ASSERT(done != NULL);
}

uint64_t shoal_secret_number(const shoal_secret *secret, const void *bytes, size_t length) {
  uint8_t signature[SHOAL_SHA256_BYTES];
  uint64_t number;
  shoal_secret_sign(secret, bytes, length, signature);
  memcpy(&number, signature, sizeof number);
  return number != 0 ? number : 1;
}
