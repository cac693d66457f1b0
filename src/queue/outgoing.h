/* outgoing.h: messages on their way to a broker, until it has confirmed them. Pure bookkeeping.
 *
 * A letter waits, is sent under a tag, and is gone when that is confirmed. One that is refused (its queue
 * is full) rests for a while, longer each time, then waits again. When the connection is lost all that were
 * sent wait again, before the others.
 *
 * Ownership: init, then release; letters are the outgoing's. Threads: one at a time; what a letter says
 * never changes, so it can be read meanwhile, until it is confirmed. Time: what the caller passes in. */
#ifndef SHOAL_QUEUE_OUTGOING_H
#define SHOAL_QUEUE_OUTGOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct shoal_letter {
  struct shoal_letter *next;
  uint64_t number; /* from 1, in the order of adding */
  uint64_t tag;    /* when it is sent */
  double rests_until, rest_s;
  size_t length;
  char *queue; /* behind the bytes */
  unsigned char bytes[];
} shoal_letter;

typedef struct shoal_letters {
  shoal_letter *first;
  shoal_letter **end;
  uint64_t count, bytes;
} shoal_letters;

typedef struct shoal_outgoing {
  shoal_letters waiting, sent, refused;
  uint64_t added;
} shoal_outgoing;

void shoal_outgoing_init(shoal_outgoing *outgoing);
void shoal_outgoing_release(shoal_outgoing *outgoing);
uint64_t shoal_outgoing_count(const shoal_outgoing *outgoing);
uint64_t shoal_outgoing_bytes(const shoal_outgoing *outgoing);

/* Copies the message. False: out of memory. */
bool shoal_outgoing_add(shoal_outgoing *outgoing, const char *queue, const void *bytes, size_t length);
/* The one to be sent next; NULL: none now. */
const shoal_letter *shoal_outgoing_next(shoal_outgoing *outgoing, double now);
/* It was, under a tag that is larger than all before since the connection was made. */
void shoal_outgoing_sent(shoal_outgoing *outgoing, uint64_t tag);
/* The letter with that tag, or all up to it. Return how many there were. */
uint64_t shoal_outgoing_confirm(shoal_outgoing *outgoing, uint64_t tag, bool and_before);
uint64_t shoal_outgoing_refuse(shoal_outgoing *outgoing, uint64_t tag, bool and_before, double now);
void shoal_outgoing_lost(shoal_outgoing *outgoing);

/* When a refused one is to be tried again; INFINITY: none was refused. */
double shoal_outgoing_due(const shoal_outgoing *outgoing);
/* Whether any of the first so many that were added is still here. */
bool shoal_outgoing_has(const shoal_outgoing *outgoing, uint64_t added);

#endif
