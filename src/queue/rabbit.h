/* rabbit.h: one connection to RabbitMQ, on librabbitmq, as far as queue.c needs it.
 *
 * Three channels: one receives, one sends with confirmation, and one asks. A question that the broker
 * refuses closes its channel, which is opened again; the others do not notice.
 *
 * A connection that is lost stays so: shoal_rabbit_lost says why, all functions then fail with SHOAL_IO,
 * and all that is left to do is shoal_rabbit_disconnect.
 *
 * Ownership: connect, then disconnect; what goes in is borrowed. Threads: one at a time. */
#ifndef SHOAL_QUEUE_RABBIT_H
#define SHOAL_QUEUE_RABBIT_H

#include "queue/queue.h"

typedef struct shoal_rabbit shoal_rabbit;

typedef struct shoal_rabbit_place {
  const char *url, *name, *ca_file; /* as in shoal_queue_config, without NULL for the name */
} shoal_rabbit_place;

/* Takes ten seconds at most, and what it takes to look up the host. */
shoal_status shoal_rabbit_connect(shoal_rabbit **out, const shoal_rabbit_place *place, shoal_error *err);
void shoal_rabbit_disconnect(shoal_rabbit *rabbit);        /* says goodbye, unless it is lost */
const char *shoal_rabbit_lost(const shoal_rabbit *rabbit); /* why; NULL: it is not */
int shoal_rabbit_socket(const shoal_rabbit *rabbit);       /* to wait for */

/* See the functions of the same names in queue.h. */
shoal_status shoal_rabbit_declare(shoal_rabbit *rabbit, const shoal_queue_spec *spec, shoal_error *err);
shoal_status shoal_rabbit_delete(shoal_rabbit *rabbit, const char *name, shoal_error *err);
shoal_status shoal_rabbit_count(shoal_rabbit *rabbit, const char *name, uint64_t *messages,
                                uint64_t *receivers, shoal_error *err);
/* The receiver's number is the caller's choice; it stands in the events. The queue must be there. */
shoal_status shoal_rabbit_receive(shoal_rabbit *rabbit, const char *name, uint32_t number, uint32_t prefetch,
                                  shoal_error *err);
shoal_status shoal_rabbit_receive_end(shoal_rabbit *rabbit, uint32_t number, shoal_error *err);

/* Neither waits for an answer; the tag is what CONFIRMED and REFUSED will name. */
shoal_status shoal_rabbit_send(shoal_rabbit *rabbit, const char *name, const void *bytes, size_t length,
                               uint64_t *tag);
shoal_status shoal_rabbit_acknowledge(shoal_rabbit *rabbit, uint64_t ticket);

typedef enum shoal_rabbit_kind {
  SHOAL_RABBIT_DELIVERED, /* number, ticket, again, bytes, length */
  SHOAL_RABBIT_OVERSIZED, /* one that was too large came, and has been thrown away */
  SHOAL_RABBIT_CONFIRMED, /* tag, and_before */
  SHOAL_RABBIT_REFUSED,   /* tag, and_before */
  SHOAL_RABBIT_RETURNED,  /* a message that will be confirmed had nowhere to go */
  SHOAL_RABBIT_GONE,      /* number: its queue was deleted */
  SHOAL_RABBIT_BLOCKED,   /* the broker is short of memory or disk: send nothing */
  SHOAL_RABBIT_UNBLOCKED,
} shoal_rabbit_kind;

typedef struct shoal_rabbit_event {
  shoal_rabbit_kind kind;
  uint32_t number;
  uint64_t ticket, tag;
  bool again, and_before;
  void *bytes; /* the caller's to free */
  size_t length;
} shoal_rabbit_event;

/* What has come; never waits. False: nothing more for now, or it is lost. Call it at least every few
 * seconds: it also says and hears the signs of life between the two ends. */
bool shoal_rabbit_next(shoal_rabbit *rabbit, shoal_rabbit_event *out);

#endif
