/* fetch.h: asks a server over HTTP/1.1 and waits for the answer.
 *
 * For programs that have nothing else to do meanwhile: a request at a time, on a connection that is kept for
 * the next one. What comes is read strictly and within limits; a server that answers nonsense, or nothing, is
 * an error that says so. With TLS, the certificate is valid for the host or has the link's fingerprint.
 *
 * An answer of 200 to 299 is SHOAL_OK. Others become an error with the server's own sentence: 404 is
 * SHOAL_NOT_FOUND, 409 SHOAL_CONFLICT, 413 and 429 SHOAL_LIMIT, other 4xx SHOAL_INVALID, the rest
 * SHOAL_IO; 503 is asked again where the config says so. A connection that was kept and turns out to be closed
 * is made again, but for POST, which is sent once, and gets a new one unless it asks for the one that is there.
 *
 * Ownership: create, then destroy; the link is copied, all else is borrowed for the call. A reply is init'ed
 * by the call, whatever came of it, and released by the caller. Threads: one; `stop` may be set by any. */
#ifndef SHOAL_WIRE_FETCH_H
#define SHOAL_WIRE_FETCH_H

#include <signal.h>

#include "base/text.h"
#include "wire/link.h"

typedef struct shoal_fetch shoal_fetch;

typedef struct shoal_fetch_config {
  const shoal_link *link;
  double connect_s, silence_s;       /* 0: 10 and 60 seconds */
  const volatile sig_atomic_t *stop; /* ends any call soon, with SHOAL_STOPPED; or NULL */
  /* A server that answers 503 and says when to ask again (Retry-After) is asked again, for as long as it
   * takes, and this is told before each pause, with the server's sentence. NULL: that is an error. */
  void *self;
  void (*waits)(void *self, const char *text);
} shoal_fetch_config;

shoal_status shoal_fetch_create(shoal_fetch **out, const shoal_fetch_config *config, shoal_error *err);
void shoal_fetch_destroy(shoal_fetch *fetch);

typedef struct shoal_ask {
  const char *method; /* "GET", "POST", "PUT" or "DELETE"; NULL is GET */
  const char *path;   /* "/api/v1/jobs?state=running", names in it escaped */
  const char *json;   /* the body, or */
  const char *file;   /* a file that is the body, or */
  const void *bytes;  /* `bytes_count` bytes */
  size_t bytes_count;
  bool keeps; /* of a POST: over the connection that is there, or a new one where there is none; SHOAL_IO
                      * where the one that is there turns out to be closed */
  size_t answer_max; /* bytes of the answer's body; 0: 16 MiB */
  void *self;
  void (*sent)(void *self, uint64_t done, uint64_t all); /* of a file; or NULL */
  /* Gets the answer piece by piece; NULL: it is kept in the reply. Not SHOAL_OK: ends the call with that. */
  shoal_status (*take)(void *self, const void *bytes, size_t length, shoal_error *err);
} shoal_ask;

typedef struct shoal_reply {
  int status;      /* 0: none came */
  bool reached;    /* there was a connection */
  bool no_tls;     /* there was none: somebody is there, with whom TLS could not be agreed on */
  bool kept;       /* and it is there for the next one */
  shoal_text body; /* ends in a zero, though "" may be NULL */
} shoal_reply;

shoal_status shoal_fetch_ask(shoal_fetch *fetch, const shoal_ask *ask, shoal_reply *reply, shoal_error *err);
void shoal_reply_release(shoal_reply *reply);

/* GETs a path into a file, which appears when it is whole. came: may be NULL. */
shoal_status shoal_fetch_file(shoal_fetch *fetch, const char *path, const char *file, void *self,
                              void (*came)(void *self, uint64_t done), shoal_error *err);

/* GETs a stream of events (text/event-stream) and tells of each. Returns SHOAL_OK when the stream
 * ends or `event` answers false. */
typedef bool (*shoal_fetch_event)(void *self, const char *name, const char *data);
shoal_status shoal_fetch_events(shoal_fetch *fetch, const char *path, void *self, shoal_fetch_event event,
                                shoal_error *err);

/* Adds a name as it may stand in a path or a query. */
void shoal_fetch_escape(shoal_text *out, const char *name);

#endif
