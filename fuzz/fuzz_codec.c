/* fuzz_codec.c: a byte for the format, two for how many values, and any bytes after them: first
 * as what came over a wire, then as the bits of values and residuals to be sent. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "proto/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { HEAD_BYTES = 3, COUNT_MAX = 5000 };

static bool all_finite(const float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    if ((bits & 0x7fffffff) >= 0x7f800000) return false;
  }
  return true;
}

/* Memory of just this size, so that a sanitizer sees a step beyond it. */
static void *get(size_t bytes) {
  void *memory = calloc(1, bytes > 0 ? bytes : 1);
  SHOAL_ASSERT(memory != NULL);
  return memory;
}

/* What is taken is finite, and in formats that round once it makes the same bytes again. */
static void receive(shoal_wire_format format, size_t count, const uint8_t *bytes, size_t length) {
  float *values = get(count * sizeof *values);
  uint8_t *in = get(length), *again = get(shoal_codec_bytes(format, count));
  if (length > 0) memcpy(in, bytes, length);
  shoal_error err = {0};
  shoal_status status = shoal_codec_decode(format, count, in, length, values, &err);
  if (status == SHOAL_OK) {
    SHOAL_ASSERT(all_finite(values, count) && length <= shoal_codec_bytes(format, count));
    size_t again_length = shoal_codec_encode(format, count, values, NULL, again);
    if (format == SHOAL_WIRE_F32 || format == SHOAL_WIRE_BF16)
      SHOAL_ASSERT(again_length == length && (length == 0 || memcmp(again, in, length) == 0));
    SHOAL_ASSERT(shoal_codec_decode(format, count, again, again_length, values, NULL) == SHOAL_OK);
  } else {
    SHOAL_ASSERT(status == SHOAL_INVALID && err.text[0] != 0);
  }
  free(again);
  free(in);
  free(values);
}

/* What is sent is taken at the other end where all values were finite, and only there; the
 * residual is finite in any case. */
static void send(shoal_wire_format format, const uint8_t *bytes, size_t length) {
  size_t count = length / (2 * sizeof(float)), each = count * sizeof(float);
  float *values = get(each), *residual = get(each), *got = get(each);
  uint8_t *out = get(shoal_codec_bytes(format, count));
  if (count > 0) {
    memcpy(values, bytes, each);
    memcpy(residual, bytes + each, each);
  }
  size_t sent = shoal_codec_encode(format, count, values, residual, out);
  SHOAL_ASSERT(sent <= shoal_codec_bytes(format, count));
  bool taken = shoal_codec_decode(format, count, out, sent, got, NULL) == SHOAL_OK;
  SHOAL_ASSERT(taken == all_finite(values, count));
  if (format != SHOAL_WIRE_F32) SHOAL_ASSERT(all_finite(residual, count));
  free(out);
  free(got);
  free(residual);
  free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  if (length < HEAD_BYTES) return 0;
  shoal_wire_format format = (shoal_wire_format)(bytes[0] % SHOAL_WIRE_FORMATS);
  size_t count = (bytes[1] | (size_t)bytes[2] << 8) % (COUNT_MAX + 1);
  receive(format, count, bytes + HEAD_BYTES, length - HEAD_BYTES);
  send(format, bytes + HEAD_BYTES, length - HEAD_BYTES);
  return 0;
}
