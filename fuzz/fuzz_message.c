/* fuzz_message.c: any 64 bytes as a message's header, as they are and again with a beginning and
 * a check that fit, which chance would not find. What is taken makes the same bytes again. */
#include <string.h>

#include "base/assert.h"
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { CHECK_AT = 60, PAYLOAD_MAX = 1 << 16 };

static void decode(const uint8_t *header) {
  shoal_message message = {0};
  uint64_t payload_length = 0;
  shoal_error err = {0};
  shoal_status status = shoal_message_decode(header, PAYLOAD_MAX, &message, &payload_length, &err);
  if (status != SHOAL_OK) {
    SHOAL_ASSERT((status == SHOAL_INVALID || status == SHOAL_UNSUPPORTED) && err.text[0] != 0);
    return;
  }
  SHOAL_ASSERT(message.kind > 0 && message.kind < SHOAL_MSG_KINDS && shoal_message_name(message.kind));
  SHOAL_ASSERT(message.format < SHOAL_WIRE_FORMATS && message.payload == NULL);
  SHOAL_ASSERT(payload_length <= SHOAL_TEXT_PAYLOAD_MAX);
  if (payload_length > 0) {
    message.payload = shoal_blob_create((size_t)payload_length);
    SHOAL_ASSERT(message.payload != NULL);
  }
  uint8_t again[SHOAL_HEADER_BYTES];
  shoal_message_encode(&message, again);
  SHOAL_ASSERT(memcmp(again, header, sizeof again) == 0);
  shoal_message_release(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  uint8_t header[SHOAL_HEADER_BYTES] = {0};
  memcpy(header, bytes, length < sizeof header ? length : sizeof header);
  decode(header);
  memcpy(header, (const uint8_t[]){'S', 'H', 'L', SHOAL_WIRE_VERSION}, 4);
  uint32_t hash = 2166136261u;
  for (unsigned i = 0; i < CHECK_AT; i++) hash = (hash ^ header[i]) * 16777619u;
  for (unsigned i = 0; i < 4; i++) header[CHECK_AT + i] = (uint8_t)(hash >> 8 * i);
  decode(header);
  return 0;
}
