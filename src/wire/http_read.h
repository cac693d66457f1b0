/* http_read.h: what a request of HTTP/1.0 or 1.1 says: its head, a body that comes in chunks, a query; and
 * what the answer to a request for a WebSocket says.
 *
 * Read strictly: what one reader could take for this and another for that (two lengths, a length beside
 * chunks, folded lines, white space before a colon, a bare CR or LF) is refused, since a proxy in between
 * may be the other reader. No socket, no clock, nothing reserved.
 *
 * Ownership: the texts of a head lie in the bytes that were read, which are written to. Threads: none. */
#ifndef SHOAL_WIRE_HTTP_READ_H
#define SHOAL_WIRE_HTTP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  SHOAL_HTTP_METHOD_MAX = 15, /* characters of a method */
  SHOAL_HTTP_HEAD_MAX = 16 << 10,
  SHOAL_HTTP_FIELDS_MAX = 100,
};

typedef struct shoal_http_head {
  const char *method; /* "GET" */
  char *path;         /* decoded: begins with "/", never with "..", "//", "/./", control characters */
  char *query;        /* as it came; "" without one */
  bool is_1_1;
  bool keep; /* the connection may stay open after the answer */
  /* "" where missing. */
  char *host, *origin, *authorization, *content_type, *accept_encoding, *if_none_match, *range, *if_range;
  bool chunked;
  uint64_t length; /* of the body, unless it comes in chunks */
  bool waits;      /* sends the body only after 100 Continue */
  bool websocket;  /* wants to be one; then: */
  char *key, *version, *protocols;
} shoal_http_head;

/* Reads a head, which ends with an empty line. 0, or the status to refuse it with and why. */
int shoal_http_head_read(shoal_http_head *head, char *text, size_t length, const char **why);

/* What answers a request for a WebSocket. */
typedef struct shoal_http_reply {
  int status;
  bool websocket; /* only for 101: it is one from here on; then: */
  char *accept, *protocol;
} shoal_http_reply;

/* Reads the head of such an answer, which ends with an empty line. NULL, or what is wrong with it. Of another
 * answer than 101 only the status is looked at. */
const char *shoal_http_reply_read(shoal_http_reply *reply, char *text, size_t length);

/* Is the word one of those in a list with commas? In any case, as HTTP's are. */
bool shoal_http_list_has(const char *list, const char *word);

/* A body in chunks. Begins with all zero. */
typedef struct shoal_http_chunks {
  int state;
  uint64_t left; /* of the chunk */
  unsigned digits, trailer_bytes, line_bytes;
} shoal_http_chunks;

typedef enum shoal_chunks_result {
  SHOAL_CHUNKS_MORE,
  SHOAL_CHUNKS_END,
  SHOAL_CHUNKS_BAD
} shoal_chunks_result;

/* Takes bytes up to and with the next piece of the body: *used of them; the piece is *count bytes before
 * that. */
shoal_chunks_result shoal_http_chunks_take(shoal_http_chunks *chunks, const uint8_t *bytes, size_t length,
                                           size_t *used, size_t *count);

/* Which bytes of `size` a Range asks for. */
typedef enum shoal_range_result { SHOAL_RANGE_ALL, SHOAL_RANGE_PART, SHOAL_RANGE_NONE } shoal_range_result;
/* "bytes=5-9", "bytes=5-", "bytes=-5". ALL: none was asked for, or one that is not understood, or several.
 * PART: from *first up to *end. NONE: there are no such bytes. */
shoal_range_result shoal_http_range(const char *range, uint64_t size, uint64_t *first, uint64_t *end);

/* The value of a name in a query, percent signs decoded, into out; false: not there, or too long. */
bool shoal_query_value(const char *query, const char *name, char *out, size_t size);

#endif
