/* protobuf.h: protocol-buffer messages written field by field into a shoal_text.
 *
 * A message is its fields one after the other, each a key (number and kind) and a value.
 * A message inside another is written into a text of its own first, then added as bytes.
 *
 * Ownership: the text is the caller's, and tells when memory ran out. Threads: none. */
#ifndef SHOAL_NN_PROTOBUF_H
#define SHOAL_NN_PROTOBUF_H

#include "base/text.h"

void shoal_protobuf_int(shoal_text *out, uint32_t field, int64_t value);
void shoal_protobuf_float(shoal_text *out, uint32_t field, float value);
void shoal_protobuf_double(shoal_text *out, uint32_t field, double value);
void shoal_protobuf_text(shoal_text *out, uint32_t field, const char *value);
void shoal_protobuf_message(shoal_text *out, uint32_t field, const shoal_text *message);

/* Only what goes before bytes that the caller writes elsewhere. */
void shoal_protobuf_bytes_head(shoal_text *out, uint32_t field, uint64_t length);

#endif
