/* protobuf.c: see protobuf.h. */
#include "nn/protobuf.h"

#include <string.h>

#include "base/assert.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie in memory");

enum { KIND_VARINT = 0, KIND_64_BITS = 1, KIND_BYTES = 2, KIND_32_BITS = 5, VARINT_MAX = 10 };

/* Seven bits a byte, the lowest first; the top bit says that more follow. Returns how many bytes it took. */
static size_t put_varint(uint8_t bytes[VARINT_MAX], uint64_t value) {
  size_t count = 0;
  for (; value > 0x7f; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
  bytes[count++] = (uint8_t)value;
  return count;
}

static void add_varint(shoal_protobuf *out, uint64_t value) {
  uint8_t bytes[VARINT_MAX];
  shoal_text_add(&out->text, bytes, put_varint(bytes, value));
}

static void add_key(shoal_protobuf *out, uint32_t field, uint32_t kind) {
  add_varint(out, field << 3 | kind);
}

void shoal_protobuf_int(shoal_protobuf *out, uint32_t field, int64_t value) {
  add_key(out, field, KIND_VARINT);
  add_varint(out, (uint64_t)value);
}

void shoal_protobuf_float(shoal_protobuf *out, uint32_t field, float value) {
  add_key(out, field, KIND_32_BITS);
  shoal_text_add(&out->text, &value, sizeof value);
}

void shoal_protobuf_double(shoal_protobuf *out, uint32_t field, double value) {
  add_key(out, field, KIND_64_BITS);
  shoal_text_add(&out->text, &value, sizeof value);
}

void shoal_protobuf_bytes_head(shoal_protobuf *out, uint32_t field, uint64_t length) {
  add_key(out, field, KIND_BYTES);
  add_varint(out, length);
}

void shoal_protobuf_text(shoal_protobuf *out, uint32_t field, const char *value) {
  size_t length = strlen(value);
  shoal_protobuf_bytes_head(out, field, length);
  shoal_text_add(&out->text, value, length);
}

void shoal_protobuf_open(shoal_protobuf *out, uint32_t field) {
  SHOAL_ASSERT(out->depth < SHOAL_PROTOBUF_DEPTH_MAX);
  add_key(out, field, KIND_BYTES);
  out->starts[out->depth++] = out->text.length;
}

/* A length takes as many bytes as it needs, so a message makes room for its own only now. */
void shoal_protobuf_close(shoal_protobuf *out, uint32_t count) {
  SHOAL_ASSERT(count <= out->depth);
  for (; count > 0; count--) {
    size_t start = out->starts[--out->depth], length = out->text.length - start;
    uint8_t head[VARINT_MAX];
    size_t head_length = put_varint(head, length);
    shoal_text_add(&out->text, head, head_length);
    if (out->text.failed) continue;
    memmove(out->text.bytes + start + head_length, out->text.bytes + start, length);
    memcpy(out->text.bytes + start, head, head_length);
  }
}
