/* fuzz_http_read.c: any bytes as the head of a request, as a body in chunks, as a range and as a query; and as the
 * answer to a request for a WebSocket. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/http.h"
#include "wire/http_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_path(const char *path) {
  SHOAL_ASSERT(path[0] == '/' && strstr(path, "..") == NULL && strstr(path, "//") == NULL);
  for (; *path != 0; path++) SHOAL_ASSERT((unsigned char)*path >= ' ' && *path != 127);
}

static void read_head(const uint8_t *bytes, size_t length) {
  char *text = malloc(length + 5);
  SHOAL_ASSERT(text != NULL);
  memcpy(text, bytes, length);
  memcpy(text + length, "\r\n\r\n", 5);
  shoal_http_head head;
  const char *why = NULL;
  int status = shoal_http_head_read(&head, text, length + 4, &why);
  if (status == 0) {
    uint64_t first, end;
    check_path(head.path);
    if (shoal_http_range(head.range, 1000, &first, &end) == SHOAL_RANGE_PART)
      SHOAL_ASSERT(first < end && end <= 1000);
    char value[16];
    (void)shoal_query_value(head.query, "state", value, sizeof value);
  } else {
    SHOAL_ASSERT(status >= 400 && status < 600 && why != NULL);
  }
  free(text);
}

static void read_reply(const uint8_t *bytes, size_t length) {
  char *text = malloc(length + 4);
  SHOAL_ASSERT(text != NULL);
  memcpy(text, bytes, length);
  memcpy(text + length, "\r\n\r\n", 4);
  shoal_http_reply reply;
  if (shoal_http_reply_read(&reply, text, length + 4) == NULL) {
    SHOAL_ASSERT(reply.status >= 100 && reply.status <= 999 && reply.websocket == (reply.status == 101));
    if (reply.websocket) SHOAL_ASSERT(strlen(reply.accept) + strlen(reply.protocol) <= length);
  }
  free(text);
}

/* Chunks give the same body whether they come at once or byte by byte. */
static void read_chunks(const uint8_t *bytes, size_t length) {
  size_t bodies[2] = {0, 0};
  shoal_chunks_result results[2];
  for (int way = 0; way < 2; way++) {
    shoal_http_chunks chunks = {0};
    size_t at = 0;
    results[way] = SHOAL_CHUNKS_MORE;
    while (at < length && results[way] == SHOAL_CHUNKS_MORE) {
      size_t used = 0, count = 0, given = way == 0 ? length - at : 1;
      results[way] = shoal_http_chunks_take(&chunks, bytes + at, given, &used, &count);
      SHOAL_ASSERT(used <= given && count <= used && (used > 0 || results[way] != SHOAL_CHUNKS_MORE));
      bodies[way] += count;
      at += used;
    }
  }
  SHOAL_ASSERT(results[0] == results[1] && (results[0] == SHOAL_CHUNKS_BAD || bodies[0] == bodies[1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  if (length > SHOAL_HTTP_HEAD_MAX - 8) return 0;
  read_head(bytes, length);
  read_reply(bytes, length);
  read_chunks(bytes, length);
  return 0;
}
