/* outbox.h: what a core wants to be sent, in order.
 *
 * A core never sends: it puts messages for peers into its outbox, and whoever drives it (an event
 * loop, MPI, the simulator) takes them out. Peers are numbers that the driver gave out.
 *
 * Ownership: the outbox owns the messages in it; take hands one over. Threads: one. */
#ifndef SHOAL_PROTO_OUTBOX_H
#define SHOAL_PROTO_OUTBOX_H

#include "proto/message.h"

typedef struct shoal_letter {
  uint64_t peer;
  shoal_message message;
} shoal_letter;

typedef struct shoal_outbox {
  shoal_letter *letters; /* a ring of `size` */
  uint32_t size, first, count;
} shoal_outbox;

void shoal_outbox_release(shoal_outbox *box);
/* Takes over the message's payload. Out of memory ends the program: nothing else can be told. */
void shoal_outbox_put(shoal_outbox *box, uint64_t peer, shoal_message message);
bool shoal_outbox_take(shoal_outbox *box, shoal_letter *out);

#endif
