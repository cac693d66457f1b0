/* net_internal.h: a connection, shared by the files that make it up.
 *
 *   net.c         the loop, the ports, the calls of libwebsockets
 *   net_dial.c    a connection that was dialled, until it is open
 *   net_tls.c     TLS of a connection that was dialled
 *   net_peer.c    one connection: bytes to messages, the queue of what is to be sent, its end
 *   net_bytes.c   bytes of a connection that is open, in and out
 *   net_frames.c  frames of a WebSocket
 *   net_thread.c  messages to another loop of this process, without bytes
 *   http.c        requests of HTTP and their answers; http_read.c reads heads, http_write.c writes them
 *
 * libwebsockets sees all connections as raw sockets and hands over their bytes; it speaks TLS with those who
 * connect, and nothing with those that are dialled. Its own HTTP and WebSocket are not used. With those who
 * connect, it would ask the kernel over and over between a request and its answer whether there is more to
 * read, guess the lengths of bodies, and stop the program where it does not know what to do. With those that
 * are dialled, it would copy all that is sent, and know nothing but WebSocket over TLS.
 *
 * States of a connection, and what takes it to the next:
 *
 *   DIALING    on its way (net_dial.c)               -> OPEN once through
 *   ACCEPTED   connected to us, its wire not known   -> OPEN when its first bytes are raw, SERVING when HTTP
 *   SERVING    requests of HTTP                      -> OPEN after an upgrade, LINGERING after the last
 *   OPEN       messages both ways                    -> FLUSHING by shoal_net_close
 *   FLUSHING   sends what is queued, hears nothing   -> LINGERING when all is sent
 *   LINGERING  has said that it is done; waits for the other side to close, since closing with
 *              unread bytes would make the kernel throw away what was sent
 *   ENDED      from anywhere; in the net's list, the loop tells `closed` and frees it
 *
 * A connection in ENDED may still have its wsi: the loop closes it, outside all callbacks. */
#ifndef SHOAL_WIRE_NET_INTERNAL_H
#define SHOAL_WIRE_NET_INTERNAL_H

#include <libwebsockets.h>
#include <openssl/ssl.h>

#include "base/text.h"
#include "wire/http.h"
#include "wire/http_read.h"

enum {
  READ_BYTES = 256 << 10,     /* libwebsockets reads at most so much at once */
  TURN_BYTES = 4 << 20,       /* a connection moves about so much, then it is the next one's turn */
  FRAGMENT_BYTES = 128 << 10, /* copied at once, to be masked or encrypted */
  REASON_MAX = 256,
  CLOSE_TEXT_MAX = 120, /* of a WebSocket's goodbye */
  FRAME_HEAD_MAX = 14,
  CONTROL_MAX = 125, /* bytes in a WebSocket's ping or goodbye */
  HOST_MAX = 256,
  FINGERPRINT_DIGITS = 64,
};

typedef enum net_state { DIALING, ACCEPTED, OPEN, FLUSHING, LINGERING, SERVING, ENDED } net_state;

/* A message in the queue, and how much of it is sent. Before its payload goes its header, and before that, on
 * a WebSocket, the head of its frame. Or all is in `head`: a frame without a message. `head` has its mask on
 * already; the payload, which may be somebody else's too, gets it in a copy. */
typedef struct net_out {
  struct net_out *next;
  shoal_message message;
  size_t head_length;
  size_t length, sent; /* with the head */
  uint8_t head[FRAME_HEAD_MAX + CONTROL_MAX];
  uint8_t mask[4]; /* 0 without one */
} net_out;

/* A frame that is coming in. */
typedef struct net_frame {
  uint8_t head[FRAME_HEAD_MAX];
  size_t filled;       /* bytes of the head */
  bool in_payload;     /* the head is whole */
  bool in_message;     /* more fragments are to come */
  uint64_t came, left; /* of the payload */
  uint8_t mask[4];
  uint8_t control[CONTROL_MAX];
  size_t control_filled;
} net_frame;

typedef struct net_http net_http;
typedef struct net_dial net_dial;
typedef struct net_tls net_tls;

typedef struct net_peer {
  shoal_net *net;
  struct lws *wsi; /* NULL once libwebsockets let go of it */
  uint64_t number;
  net_state state;
  shoal_wire wire;
  bool dialed;
  bool tls;                /* libwebsockets', with one who connected */
  net_tls *secure;         /* ours, with one that was dialled; NULL without */
  net_dial *dial;          /* while DIALING */
  bool thread;             /* the other end is in this process; there is no wsi */
  uint64_t mate_net, mate; /* then: its loop, and its number there */
  bool heard;              /* a whole header came */
  bool answered;           /* or an answer of HTTP, to a dial that asked */
  double heard_at;         /* the last sign of life: bytes came, or bytes that had waited were taken */
  double told_at;          /* up to when the owner of the net knows of such signs */
  char address[HOST_MAX + 8];
  char reason[REASON_MAX]; /* why it ends; the first one stays */
  bool hopeless;           /* shoal_net_is_hopeless */
  bool asks_why;           /* shoal_way */
  double since;            /* when it connected, was upgraded, or began to linger */
  net_http *http;          /* while SERVING and after */
  net_frame frame;         /* of a WebSocket */
  bool parted;             /* it was told that nothing more comes */

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
  struct lws_vhost *dialing; /* what dials go out from */
  SSL_CTX *tls;              /* of those with TLS; made when first needed */
  char interface[HOST_MAX];  /* libwebsockets keeps a pointer to it */
  net_peer **peers;          /* by number % slots; the last slot is for dials without a place */
  uint32_t slots, *unused, unused_count;
  uint64_t serial;
  net_peer *ended;
  bool hopeless; /* the peer that `closed` is told of */
  lws_sorted_usec_list_t timer;
  double swept, sweep_s;
  uint64_t moved_in, moved_out;
  uint8_t fragment[FRAGMENT_BYTES];
};

/* ---- net_peer.c ---- */

net_peer *net_peer_create(shoal_net *net, net_state state); /* NULL when out of memory */
net_peer *net_peer_find(const shoal_net *net, uint64_t number);
void net_peer_free(net_peer *peer);
void net_peer_open(net_peer *peer, shoal_wire wire);
void net_peer_lives(net_peer *peer);  /* there was a sign of life */
void net_peer_linger(net_peer *peer); /* all is sent: says so to the socket, and waits for the other side */
void net_peer_lost(net_peer *peer);   /* the other side closed: ends it, and says so */
/* Ends it, once; the reason is a printf format. */
void net_peer_end(net_peer *peer, const char *reason, ...) __attribute__((format(printf, 2, 3)));
/* What came in. Ends the peer when it is no message; the callback `received` is called from here. */
void net_peer_take(net_peer *peer, const uint8_t *bytes, size_t length);
/* Where the rest of a payload that is under way belongs, for reading it there; 0 bytes when none is. */
size_t net_peer_room(net_peer *peer, uint8_t **at);
void net_peer_took(net_peer *peer, size_t length); /* so much was put there */
void net_peer_sent(net_peer *peer, size_t length); /* `length` bytes from the queue's front are gone */
void net_peer_moved(net_peer *peer);               /* the socket took something */
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

/* ---- net_bytes.c ---- */

/* What came over an open connection, as it came from the socket; with TLS of ours, net_tls_receive is for
 * that. */
void net_bytes_receive(net_peer *peer, uint8_t *bytes, size_t length);
void net_bytes_take(net_peer *peer, uint8_t *bytes, size_t length); /* the same, decrypted */
void net_bytes_send(net_peer *peer);                                /* as much as the socket takes */

/* ---- net_frames.c ---- */

/* The head of a frame that is a message of so many bytes, into out->head. Masked: by one that dialled. False:
 * there are no random numbers for a mask. */
bool net_frame_begin(net_out *out, uint64_t length, bool masked);
/* Puts a mask on, or takes it off; `at` is the first byte's place in the frame. `to` may be `from`. */
void net_frame_mask(uint8_t *to, const uint8_t *from, size_t length, const uint8_t mask[4], uint64_t at);
void net_frame_receive(net_peer *peer, uint8_t *bytes, size_t length); /* the bytes are written to */
void net_frame_goodbye(net_peer *peer);                                /* puts one into the queue */
/* What a WebSocket's key is answered with. */
enum { FRAME_ACCEPT_MAX = 32 };
void net_frame_accept(const char *key, char out[FRAME_ACCEPT_MAX]);

/* ---- net_dial.c ---- */

/* What a side without TLS answers to its hello: a fatal alert, handshake_failure. */
static const uint8_t net_tls_refusal[] = {0x15, 3, 1, 0, 2, 2, 40};

/* "host:port", "[host]:port" or ":port". */
shoal_status net_split_address(const char *address, char host[HOST_MAX], uint16_t *port, shoal_error *err);
bool net_is_thread(const char *host);                                 /* "#:N" is a loop of this process */
void net_dial_connected(net_peer *peer);                              /* TCP is through */
void net_dial_agreed(net_peer *peer);                                 /* and TLS */
void net_dial_disagreed(net_peer *peer);                              /* or it failed */
void net_dial_receive(net_peer *peer, uint8_t *bytes, size_t length); /* the answer; decrypted */
void net_dial_writeable(net_peer *peer);
void net_dial_lost(net_peer *peer); /* the other side closed */
/* The same, of one that had said nothing, which may be because it speaks TLS. */
void net_dial_unheard(net_peer *peer, const char *why);
void net_dial_failed(net_peer *peer, const char *why, size_t length); /* libwebsockets could not connect */
void net_dial_free(net_dial *dial);

/* ---- net_tls.c ---- */

/* Makes a connection's side of TLS. A pinned server's certificate is not judged: its fingerprint will be. */
bool net_tls_begin(net_peer *peer, const char *host, bool pinned);
/* Says the first word; net_dial_agreed or net_dial_disagreed is called in the end. */
void net_tls_agree(net_peer *peer);
long net_tls_verified(const net_tls *tls); /* X509_V_OK, or what is wrong with the certificate */
bool net_tls_has_fingerprint(const net_tls *tls, const char *digits);
void net_tls_receive(net_peer *peer, const uint8_t *bytes, size_t length); /* as they came from the socket */
bool net_tls_write(net_peer *peer, const uint8_t *bytes, size_t length);   /* encrypts; false: it ended */
bool net_tls_flush(net_peer *peer);     /* gives to the socket what is encrypted; true: all of it */
bool net_tls_waits(const net_tls *tls); /* is there some that it did not take? */
void net_tls_finish(net_peer *peer);    /* says that it is over */
void net_tls_free(net_tls *tls);

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
