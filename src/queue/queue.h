/* queue.h: messages between trusted processes through a broker, RabbitMQ.
 *
 * A shoal_queue is one connection. It is opened by URL, amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps://
 * for TLS, where the broker's certificate must be valid for the host. Once it was open it is kept: whenever
 * the broker goes away it is connected again, after pauses that grow from a tenth of a second to
 * `pause_s_max`, with the queues and receivers that it had. Nothing that is called fails because of that;
 * it only takes longer.
 *
 * A message is bytes, put into a queue by its name, and every message goes to one of those who receive from
 * that queue. It arrives at least once: what is sent waits in the outbox until the broker has it on disk,
 * and is sent again after a connection was lost; what was taken and not acknowledged when that happens
 * comes again, to whoever receives. So a receiver must not mind a message that comes twice, nor rely on the
 * order, which holds only while nothing is lost or refused. Messages and queues outlive the broker's
 * restart.
 *
 * Three things bound what may pile up: the outbox (shoal_queue_send waits, then says SHOAL_LIMIT), the
 * length of a queue (shoal_queue_spec), and the messages that a receiver is given before it acknowledges
 * (prefetch).
 *
 * Acknowledge early, within minutes. A broker closes the connection of who holds a message for 30 minutes,
 * and it is no judge of who is alive: work that takes long is a lease, and beats are messages
 * (search/board.h). Who wants one message at a time and none while it works, takes one, stops receiving,
 * then acknowledges:
 *
 *   shoal_queue_receive(queue, "units", 1, &err);
 *   while (!shoal_queue_take(queue, NULL, 1, &delivery)) ...;
 *   shoal_queue_receive(queue, "units", 0, &err);
 *   shoal_queue_acknowledge(queue, &delivery);
 *   ...work, then receive again...
 *
 * For the newest of something (a policy) to everyone, late joiners too: each who wants it has a queue of
 * its own with length_max = 1 and SHOAL_QUEUE_DROPS_OLDEST, and who publishes sends to each by name. A name
 * that stands for all of them would be a field of the spec; it is not there yet.
 *
 * Ownership: open, then close; what goes in is borrowed for the call; a delivery is released by who took
 * it.
 * Threads: the connection lives in a thread of its own, which runs all of `calls`; these may call what does
 * not wait: shoal_queue_take and shoal_queue_send with wait_s = 0, shoal_queue_acknowledge and
 * shoal_queue_look, and should be quick. Any number of other threads may call everything at once, but open
 * and close, which come before and after all else. Close takes a few seconds when the broker does not
 * answer. */
#ifndef SHOAL_QUEUE_QUEUE_H
#define SHOAL_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
  SHOAL_QUEUE_NAME_MAX = 128,               /* with its zero */
  SHOAL_QUEUE_MESSAGE_BYTES_MAX = 16 << 20, /* larger ones are not sent; those that come are thrown away */
  SHOAL_QUEUE_PREFETCH_MAX = 65535,
};

typedef struct shoal_queue shoal_queue;

/* What happens, as the thread inside sees it. Any may be NULL. Texts are lent for the call. */
typedef struct shoal_queue_calls {
  void *self;
  void (*connected)(void *self);               /* again; not for the first time, which is open */
  void (*lost)(void *self, const char *why);   /* also each time that connecting again fails */
  void (*arrived)(void *self);                 /* there is something to take; for loops that must be woken */
  void (*gone)(void *self, const char *queue); /* somebody deleted a queue that this one receives from */
} shoal_queue_calls;

typedef struct shoal_queue_config {
  const char *url;
  const char *name;    /* what the broker's lists call this connection; NULL: "shoal" */
  const char *ca_file; /* amqps: PEM file of who vouches for the broker; NULL: the system's */
  shoal_queue_calls calls;
  uint32_t outbox_max;       /* messages; 0: 10,000 */
  uint64_t outbox_bytes_max; /* 0: 64 MiB; one message always has room in an empty outbox */
  double pause_s_max;        /* 0: 10 */
} shoal_queue_config;

/* SHOAL_INVALID: the URL has not that form, or the broker refuses user, password or virtual host. SHOAL_IO:
 * it cannot be reached. SHOAL_UNSUPPORTED: built without librabbitmq. No error repeats the password. */
shoal_status shoal_queue_open(shoal_queue **out, const shoal_queue_config *config, shoal_error *err);
/* What is in the outbox is dropped: see shoal_queue_flush. What was taken and not acknowledged comes again,
 * to others. NULL is fine. */
void shoal_queue_close(shoal_queue *queue);

/* ---- queues ---- */

typedef enum shoal_queue_full {
  SHOAL_QUEUE_REFUSES,      /* what is sent to a full queue stays in the outbox, and is tried again */
  SHOAL_QUEUE_DROPS_OLDEST, /* makes room */
} shoal_queue_full;

/* Zero means without end. */
typedef struct shoal_queue_spec {
  const char *name;    /* UTF-8, not "", shorter than SHOAL_QUEUE_NAME_MAX; not "amq." and on */
  uint64_t length_max; /* messages that wait; those that are taken and not acknowledged do not count */
  uint64_t bytes_max;
  shoal_queue_full full;
  double message_s; /* a message that nobody has taken for so long is dropped */
  double
      unused_s; /* a queue that nobody has received from or declared for so long is deleted, with all in it */
} shoal_queue_spec;

/* Each of these four waits for the broker's answer, and for the connection where that is lost, for half a
 * minute in all: then SHOAL_IO. */

/* Makes the queue unless it is there, and again after every reconnect. SHOAL_CONFLICT: there is one of that
 * name that is bounded in another way. */
shoal_status shoal_queue_declare(shoal_queue *queue, const shoal_queue_spec *spec, shoal_error *err);
/* With all that is in it; one that is not there is fine. */
shoal_status shoal_queue_delete(shoal_queue *queue, const char *name, shoal_error *err);
/* Messages that wait, and those who receive. Either may be NULL. SHOAL_NOT_FOUND: there is no such queue. */
shoal_status shoal_queue_count(shoal_queue *queue, const char *name, uint64_t *messages, uint64_t *receivers,
                               shoal_error *err);
/* Messages of that queue can be taken from now on; so many at most are here and not acknowledged. 0: no more
 * come; those that are here can still be taken. SHOAL_NOT_FOUND: there is no such queue. */
shoal_status shoal_queue_receive(shoal_queue *queue, const char *name, uint32_t prefetch, shoal_error *err);

/* ---- messages ---- */

/* Into the outbox. Where that is full it waits at most so long, then SHOAL_LIMIT. A message to a queue that
 * is not there is dropped by the broker, and counted (shoal_queue_view.dropped). */
shoal_status shoal_queue_send(shoal_queue *queue, const char *name, const void *bytes, size_t length,
                              double wait_s, shoal_error *err);
/* Waits until all that was sent before has been confirmed by the broker. False: not within that time. */
bool shoal_queue_flush(shoal_queue *queue, double wait_s);

typedef struct shoal_delivery {
  char queue[SHOAL_QUEUE_NAME_MAX];
  void *bytes; /* never NULL, even without a byte */
  size_t length;
  bool again;                  /* it may have been delivered before */
  uint64_t connection, ticket; /* for shoal_queue_acknowledge */
} shoal_delivery;

/* The next message of that queue, NULL for any. Waits at most so long. False: none came. */
bool shoal_queue_take(shoal_queue *queue, const char *name, double wait_s, shoal_delivery *out);
/* It is done with, and the broker forgets it; once, at once or later. When the connection was lost since it
 * was taken this does nothing: it comes again. */
void shoal_queue_acknowledge(shoal_queue *queue, const shoal_delivery *delivery);
void shoal_delivery_release(shoal_delivery *delivery); /* before or after it is acknowledged */

typedef struct shoal_queue_view {
  bool connected;
  uint64_t connections; /* how often it was connected */
  uint64_t outbox, outbox_bytes, inbox;
  uint64_t sent;      /* by shoal_queue_send */
  uint64_t confirmed; /* of those */
  uint64_t refused;   /* times that a full queue said no */
  uint64_t dropped;   /* to a queue that was not there; counted as confirmed, too */
  uint64_t received;  /* that came, again or not */
  uint64_t oversized; /* that came and were thrown away */
} shoal_queue_view;
void shoal_queue_look(shoal_queue *queue, shoal_queue_view *out);

#endif
