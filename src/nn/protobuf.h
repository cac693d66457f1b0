/* protobuf.h: protocol-buffer messages written field by field into a shoal_text.
 *
 * A message is its fields one after the other, each a key (number and kind) and a value. The fields of a message
 * inside another stand between open and close:
 *
 *     shoal_protobuf_open(out, TENSOR_SHAPE);
 *     shoal_protobuf_int(out, SHAPE_SIZE, 3);
 *     shoal_protobuf_close(out, 1);
 *
 * Ownership: zeroed is initialised; release the text, which tells when memory ran out. Threads: none. */
#ifndef SHOAL_NN_PROTOBUF_H
#define SHOAL_NN_PROTOBUF_H

#include "base/text.h"

enum { SHOAL_PROTOBUF_DEPTH_MAX = 8 };

typedef struct shoal_protobuf {
  shoal_text text;
  size_t starts[SHOAL_PROTOBUF_DEPTH_MAX]; /* of the messages that are open */
  uint32_t depth;
} shoal_protobuf;

void shoal_protobuf_int(shoal_protobuf *out, uint32_t field, int64_t value);
void shoal_protobuf_float(shoal_protobuf *out, uint32_t field, float value);
void shoal_protobuf_double(shoal_protobuf *out, uint32_t field, double value);
void shoal_protobuf_text(shoal_protobuf *out, uint32_t field, const char *value);
void shoal_protobuf_open(shoal_protobuf *out, uint32_t field);
void shoal_protobuf_close(shoal_protobuf *out, uint32_t count); /* the last that were opened */

/* Only what goes before bytes that the caller adds, or writes elsewhere. */
void shoal_protobuf_bytes_head(shoal_protobuf *out, uint32_t field, uint64_t length);

#endif
