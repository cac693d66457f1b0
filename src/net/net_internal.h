/* net_internal.h: a connection, shared by the files of net/.
 *
 *   net.c            the loop, the ports, the calls of libwebsockets
 *   net_peer.c       one connection: bytes to messages, the queue of what is to be sent, its end
 *   net_raw.c        bytes of a raw connection, in and out
 *   net_websocket.c  bytes of a WebSocket that was dialed, in and out
 *   net_frames.c     frames of a WebSocket that was accepted
 *   net_thread.c     messages to another loop of this process, without bytes
 *   http.c           requests of HTTP and their answers; http_read.c reads heads, http_write.c writes them
 *
 * libwebsockets sees all who connect as raw sockets, with or without TLS, and hands over their bytes. Its own HTTP
 * is not used for them: between a request and its answer it would ask the kernel over and over whether there
 * is more to read, guess the lengths of bodies, and stop the program where it does not know what to do.
 *
 * States of a connection, and what takes it to the next:
 *
 *   DIALING    connecting                            -> OPEN once through
 *   ACCEPTED   connected to us, its wire not known   -> OPEN when its first bytes are raw, SERVING when HTTP
 *   SERVING    requests of HTTP                      -> OPEN when it becomes a WebSocket, LINGERING after the last
 *   OPEN       messages both ways                    -> FLUSHING by shoal_net_close
 *   FLUSHING   sends what is queued, hears nothing   -> LINGERING when all is sent
 *   LINGERING  has said that it is done; waits for the other side to close, since closing with
 *              unread bytes would make the kernel throw away what was sent
 *   ENDED      from anywhere; in the net's list, the loop tells `closed` and frees it
 *
 * A connection in ENDED may still have its wsi: the loop closes it, outside all callbacks. */
#ifndef SHOAL_NET_INTERNAL_H
#define SHOAL_NET_INTERNAL_H

#include <libwebsockets.h>

#include "base/text.h"
#include "net/http.h"
#include "net/http_read.h"

enum {
  READ_BYTES = 256 << 10,     /* libwebsockets reads at most so much at once */
  TURN_BYTES = 4 << 20,       /* a connection moves about so much, then it is the next one's turn */
  FRAGMENT_BYTES = 128 << 10, /* of a WebSocket message */
  REASON_MAX = 256,
  CLOSE_TEXT_MAX = 120, /* of a WebSocket's goodbye */
  FRAME_HEAD_MAX = 14,
  CONTROL_MAX = 125, /* bytes in a WebSocket's ping or goodbye */
  HOST_MAX = 256,
  FINGERPRINT_DIGITS = 64,
};

typedef enum net_state { DIALING, ACCEPTED, OPEN, FLUSHING, LINGERING, SERVING, ENDED } net_state;

/* A message in the queue, and how much of it is sent. Before its payload goes its header, and before that, to a
 * WebSocket that was accepted, the head of its frame. Or all is in `head`: a frame without a message. */
typedef struct net_out {
  struct net_out *next;
  shoal_message message;
  size_t head_length;
  size_t length, sent; /* with the head */
  uint8_t head[FRAME_HEAD_MAX + CONTROL_MAX];
} net_out;

/* A frame that is coming in. */
typedef struct net_frame {
  uint8_t head[FRAME_HEAD_MAX];
  size_t filled;   /* bytes of the head */
  bool in_payload; /* the head is whole */
  bool in_message; /* more fragments are to come */
  uint64_t left;   /* of the payload */
  uint8_t mask[4]; /* turned, so that its first byte is for the next one to come */
  uint8_t control[CONTROL_MAX];
  size_t control_filled;
} net_frame;

typedef struct net_http net_http;

typedef struct net_peer {
  shoal_net *net;
  struct lws *wsi; /* NULL once libwebsockets let go of it */
  uint64_t number;
  net_state state;
  shoal_wire wire;
  bool dialed, tls;
  bool thread;             /* the other end is in this process; there is no wsi */
  uint64_t mate_net, mate; /* then: its loop, and its number there */
  bool heard;              /* a whole header came */
  double heard_at;         /* the last sign of life: bytes came, or bytes that had waited were taken */
  double told_at;          /* up to when the owner of the net knows of such signs */
  char address[HOST_MAX + 8];
  char fingerprint[FINGERPRINT_DIGITS + 1]; /* wanted of a dialed server; empty for none */
  char reason[REASON_MAX];                  /* why it ends; the first one stays */
  double since;                             /* when it connected, became a WebSocket, or began to linger */
  char *token;                              /* what a dial says, or NULL */
  net_http *http;                           /* while SERVING and after */
  net_frame frame;                          /* of a WebSocket that was accepted */

  /* Coming in: `filled` bytes of the header, then of the payload. */
  uint8_t header[SHOAL_HEADER_BYTES];
  size_t filled;
  bool in_payload;
  shoal_message message;
  double message_since; /* when its first byte came; 0 between messages */

  /* Going out. */
  net_out *first, *last;
  uint64_t queued;
  double moved; /* when something was last sent, or the queue began */
  bool full;    /* the socket did not take all: when it takes more, the other end took some */

  struct net_peer *next_ended;
} net_peer;

typedef struct net_event net_event;

struct shoal_net {
  shoal_net_config config;
  /* For other threads, under net_thread.c's lock. */
  shoal_net *next_net;
  uint64_t id;
  uint16_t thread_port; /* 0: does not listen */
  net_event *inbox, **inbox_end;
  bool woken; /* and the inbox not yet emptied */

  char *certificate, *key;
  struct lws_context *context;
  struct lws_vhost *plain, *secure; /* what dials go out from; `secure` is made when first needed */
  char interface[HOST_MAX];         /* libwebsockets keeps a pointer to it */
  net_peer **peers;                 /* by number % slots; the last slot is for dials without a place */
  uint32_t slots, *unused, unused_count;
  uint64_t serial;
  net_peer *ended;
  lws_sorted_usec_list_t timer;
  double swept, sweep_s;
  uint64_t moved_in, moved_out;
  uint8_t fragment[LWS_PRE + FRAGMENT_BYTES];
};

/* ---- net_peer.c ---- */

net_peer *net_peer_create(shoal_net *net, net_state state); /* NULL when out of memory */
net_peer *net_peer_find(const shoal_net *net, uint64_t number);
void net_peer_free(net_peer *peer);
void net_peer_open(net_peer *peer, shoal_wire wire);
void net_peer_lives(net_peer *peer);  /* there was a sign of life */
void net_peer_linger(net_peer *peer); /* all is sent: says so to the socket, and waits for the other side */
/* Ends it, once; the reason is a printf format. */
void net_peer_end(net_peer *peer, const char *reason, ...) __attribute__((format(printf, 2, 3)));
/* What came in. Ends the peer when it is no message; the callback `received` is called from here. */
void net_peer_take(net_peer *peer, const uint8_t *bytes, size_t length);
/* Where the rest of a payload that is under way belongs, for reading it there; 0 bytes when none is. */
size_t net_peer_room(net_peer *peer, uint8_t **at);
void net_peer_took(net_peer *peer, size_t length); /* so much was put there */
void net_peer_sent(net_peer *peer, size_t length); /* so many bytes from the queue's front are gone */
bool net_peer_sends(const net_peer *peer);         /* has it something to send, and may it? */
void net_peer_send_soon(net_peer *peer);           /* at once inside this process, else when the socket can */
void net_peer_check(net_peer *peer, double now);   /* ends it when it was too slow; tells `moving` */

/* ---- net_thread.c ---- */

/* A loop that begins, and one that ends. */
void net_thread_join(shoal_net *net);
void net_thread_leave(shoal_net *net);
bool net_thread_listen(shoal_net *net, uint16_t port); /* from 1; false: somebody else does */
bool net_thread_dial(net_peer *peer, uint16_t port);   /* false: nobody listens */
void net_thread_send(net_peer *peer);                  /* all that is queued */
void net_thread_close(net_peer *peer);                 /* tells the other end */
void net_thread_receive(shoal_net *net);               /* handles what has come */
void net_thread_wake_others(void);                     /* those who have something in their inbox */

/* ---- net_raw.c, net_websocket.c ---- */

void net_raw_receive(net_peer *peer, const uint8_t *bytes, size_t length);
void net_raw_send(net_peer *peer); /* also of a WebSocket that was accepted */
void net_websocket_receive(net_peer *peer, const uint8_t *bytes, size_t length);
void net_websocket_send(net_peer *peer);

/* ---- net_frames.c ---- */

size_t net_frame_head(uint8_t head[FRAME_HEAD_MAX], uint64_t length);  /* of a message; returns its bytes */
void net_frame_receive(net_peer *peer, uint8_t *bytes, size_t length); /* the bytes are written to */
void net_frame_goodbye(net_peer *peer);
/* What a WebSocket's key is answered with. */
enum { FRAME_ACCEPT_MAX = 32 };
void net_frame_accept(const char *key, char out[FRAME_ACCEPT_MAX]);

/* ---- http_write.c ---- */

/* What goes before the body of an answer. */
typedef struct net_http_reply {
  const shoal_answer *answer;
  int status; /* which may be another than the answer's */
  bool is_1_1, keep;
  bool chunked, has_length, is_file;
  uint64_t first, end, size; /* of a file or a body: the part that is sent, and all */
} net_http_reply;

void net_http_write_head(shoal_text *out, const net_http_reply *reply);
void net_http_write_error(shoal_text *out, int status, const char *why); /* as JSON */

/* ---- http.c ---- */

void net_http_begin(net_peer *peer); /* the first bytes are HTTP */
void net_http_receive(net_peer *peer, uint8_t *bytes, size_t length);
void net_http_writeable(net_peer *peer);
void net_http_check(net_peer *peer, double now); /* ends it or answers 408 when it was too slow */
uint64_t net_http_left(const net_peer *peer);    /* the number that `left` is to be told for, or 0 */
void net_http_free(net_http *http);

#endif
