/* protobuf.c: see protobuf.h. */
#include "nn/protobuf.h"

#include <string.h>

enum { KIND_VARINT = 0, KIND_64_BITS = 1, KIND_BYTES = 2, KIND_32_BITS = 5 };

/* Seven bits a byte, the lowest first; the top bit says that more follow. */
static void add_varint(shoal_text *out, uint64_t value) {
  uint8_t bytes[10];
  size_t count = 0;
  do {
    bytes[count] = value & 0x7f;
    value >>= 7;
    if (value) bytes[count] |= 0x80;
    count++;
  } while (value);
  shoal_text_add(out, bytes, count);
}

static void add_key(shoal_text *out, uint32_t field, uint32_t kind) { add_varint(out, field << 3 | kind); }

static void add_little_endian(shoal_text *out, uint64_t bits, size_t length) {
  uint8_t bytes[8];
  for (size_t i = 0; i < length; i++) bytes[i] = (uint8_t)(bits >> (8 * i));
  shoal_text_add(out, bytes, length);
}

void shoal_protobuf_int(shoal_text *out, uint32_t field, int64_t value) {
  add_key(out, field, KIND_VARINT);
  add_varint(out, (uint64_t)value);
}

void shoal_protobuf_float(shoal_text *out, uint32_t field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  add_key(out, field, KIND_32_BITS);
  add_little_endian(out, bits, sizeof bits);
}

void shoal_protobuf_double(shoal_text *out, uint32_t field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  add_key(out, field, KIND_64_BITS);
  add_little_endian(out, bits, sizeof bits);
}

void shoal_protobuf_bytes_head(shoal_text *out, uint32_t field, uint64_t length) {
  add_key(out, field, KIND_BYTES);
  add_varint(out, length);
}

void shoal_protobuf_text(shoal_text *out, uint32_t field, const char *value) {
  size_t length = strlen(value);
  shoal_protobuf_bytes_head(out, field, length);
  shoal_text_add(out, value, length);
}

void shoal_protobuf_message(shoal_text *out, uint32_t field, const shoal_text *message) {
  out->failed |= message->failed;
  shoal_protobuf_bytes_head(out, field, message->length);
  shoal_text_add(out, message->bytes, message->length);
}
