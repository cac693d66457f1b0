/* http.h: HTTP on the port of a net (net.h): requests in, answers out.
 *
 * HTTP/1.1 and 1.0, with or without TLS. Connections stay open for more requests, which are answered one
 * after the other. Requests come to the calls of shoal_net_config.http, in the thread of the loop. Every one
 * of them is answered once, at once or later, by its number; a number whose other end is gone may still be
 * answered, and nothing happens. What is no HTTP, or larger or slower than allowed, is answered here (400,
 * 408, 413, 431, 501, 505), with an error as JSON, and never comes to `asked`.
 *
 * Slow is: a head that is not whole hello_s after its first byte; a body of which nothing came for stall_s,
 * or that took so long and comes with less than 1000 bytes a second; who takes nothing of an answer for
 * stall_s. A connection without a request is closed after hello_s, between two requests after three times
 * that.
 *
 * Ownership: a request, its texts and its body are lent for the call (shoal_blob_share keeps a body); an
 * answer's texts too, its body is taken over. Threads: the loop's. */
#ifndef SHOAL_WIRE_HTTP_H
#define SHOAL_WIRE_HTTP_H

#include "wire/net.h"

typedef enum shoal_method {
  SHOAL_GET, /* HEAD is a GET whose body is not sent */
  SHOAL_POST,
  SHOAL_PUT,
  SHOAL_DELETE,
  SHOAL_METHOD_OTHER,
} shoal_method;

typedef struct shoal_request {
  uint64_t id; /* never used again; of one connection all are equal modulo connections_max + 1 */
  shoal_method method;
  /* "/api/v1/jobs/7": percent signs decoded, UTF-8, never with "..", "//", control characters or a zero. */
  const char *path;
  const char *query;   /* "state=running&before=3", as it came; "" without one */
  const char *address; /* who asks: host, without the port */
  /* Headers, "" where missing. */
  const char *host, *origin, *authorization, *content_type, *accept_encoding, *if_none_match;
  shoal_blob *body;      /* NULL: none, or in a file */
  const char *body_file; /* or NULL; removed after the call unless it was moved away */
  uint64_t body_bytes;
} shoal_request;

typedef struct shoal_answer {
  int status;
  const char *type; /* "application/json"; NULL without a body */
  shoal_blob *body; /* or */
  const char *file; /* a file to be sent as it is now, or the part that was asked for; 404 without one; or */
  bool stream;      /* stays open, and shoal_http_push sends more */
  const char *download;   /* the name under which a browser saves it, or NULL */
  const char *encoding;   /* "gzip", or NULL */
  const char *etag;       /* or NULL; the caller compares it with if_none_match */
  bool immutable;         /* may be kept for ever; else it is asked for again */
  uint32_t retry_after_s; /* 0: not said */
  const char *allow;      /* with 405: the methods that the path takes; or NULL */
} shoal_answer;

typedef struct shoal_http_calls {
  void *self;
  /* The head is here. Returns how many bytes of a body are taken; more is answered with 413 and not
   * read. *file, NULL at first, may be set to a path (malloced, taken over) where the body is put; else it is
   * kept in memory. May answer at once: a body is then not waited for, and the connection closed. */
  uint64_t (*begins)(void *self, const shoal_request *request, char **file);
  /* All of it is here. */
  void (*asked)(void *self, const shoal_request *request);
  /* Nobody waits for the answer any more, or the stream's other end is gone. Told once for every number that
   * `begins` saw and that was neither answered nor, as a stream, ended; never from inside a call of this
   * header. */
  void (*left)(void *self, uint64_t id);
  /* A WebSocket wants to open, with this path and authorization; it will be this peer. 0: it may, and
   * `opened` is told next (net.h); else the status that it is refused with. The request has no number. */
  int (*admits)(void *self, uint64_t peer, const shoal_request *request);
} shoal_http_calls;

void shoal_http_answer(shoal_net *net, uint64_t id, const shoal_answer *answer);
/* More of a stream; one that does not take it, so that more than 1 MiB waits, is closed. */
void shoal_http_push(shoal_net *net, uint64_t id, const void *bytes, size_t length);
void shoal_http_end(shoal_net *net, uint64_t id); /* the stream is over */

#endif
