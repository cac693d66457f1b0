/* message.h: what the parts of a training say to each other, and how it looks on a wire.
 *
 * A message is a header of 64 bytes, the same for every kind, and a payload whose meaning is the
 * kind's. docs/wire.md has the table of offsets. All numbers are little-endian. What comes
 * from outside is checked here, field by field, before anybody sees it.
 *
 *   kind      from, to        says
 *   HELLO     all to chief    who I am (payload: a name, as plain text)
 *             worker, owner   likewise, and whom I look for: slice, the job's digest in round, and what
 *                             WELCOME had in lease
 *   WELCOME   chief to all    what the job is (payload: JSON); generation; lease: a number of this chief
 *   REFUSE    chief to all    why not (payload: text)
 *             owner, any      likewise, to a HELLO that is for another
 *             all to chief    I leave before the end, and why (payload: text; none when it was stopped)
 *   ASK       worker, chief   give me `count` more units
 *   LEASE     chief, worker   compute this: lease, round, parts shard .. shard + count - 1, version;
 *                             payload: recurrent state
 *   WAIT      chief, worker   a new generation: what you had is void
 *   DONE      worker, chief   a unit's digest (in version); payload: sums, recurrent state
 *   RETURN    worker, chief   I will not finish this lease
 *   PULL      any, owner      send me slice `slice` at `version` or later; count = 1: optimiser's slots too
 *   WEIGHTS   owner, any      here it is
 *   PUSH      worker, owner   the sum of parts shard .. shard + count - 1 of a round, computed from
 *                             `version`, as far as it belongs to slice `slice`; lease, where it is guarded
 *   SQUARES   owner, chief    sums of squares of the round's gradient, a double a run, for clipping
 *   SCALE     chief, owner    what the round's gradient is multiplied by (payload: a float)
 *   APPLIED   owner, chief    slice `slice` has come to `version` (payload: the leases whose contributions the rule has
 *                             cut or left out, 8 bytes each)
 *   SAVE      chief, owner    keep `version` safe on disk, beside `round`, the version that is safe now (payload:
 *                             beside these versions, 8 bytes each; none: beside `round` alone)
 *   SAVED     owner, chief    it is, or `count` = 1: too late, 2: the disk did not take it (payload: why); lease,
 *                             round: bytes it has received and sent
 *   RESTORE   chief, owner    go back to `version`; a new generation begins
 *   RESTORED  owner, chief    done, or `count` = 1: I have no such version
 *   GIVE      chief, owner    then here it is: weights and slots
 *   BEAT      all             I am alive
 *   END       chief to all    the job is over (payload: text)
 *   REGISTER  worker, server  what I am and whom I want to work for (payload: JSON)
 *   ASSIGN    server, worker  the job that you work for now, or why there is none (payload: JSON)
 *   REPORT    worker, server  what I am doing (payload: JSON)
 *   HAVE      peer, peer      I have chunks shard .. shard + count - 1 (payload: a bit each, lowest first; none:
 *                             all of them)
 *   WANT      peer, peer      send me chunk `shard`, or with UINT32_MAX the one that it is best to send; lease:
 *                             my number for the question; count = 1: nobody else gives it to me
 *   CHUNK     peer, peer      chunk `shard`, to the question `lease` (payload: its bytes; none: not now)
 *   PEERS     server, worker  who else has the data (payload: JSON)
 *   BLAME     worker, server  what a peer sent as chunk `shard` was not it (payload: the peer's name)
 *   GOT       owner, chief    a contribution has come under `lease`: round, shard, count, its digest in version
 *                             (payload: a double, its sum of squares)
 *   ACCEPT    chief, owner    what came under `lease` counts, times the float whose bits are in version, unless 0
 *   REJECT    chief, owner    it does not
 *
 * Ownership: a message owns its payload, a blob shared by counting; shoal_message_release
 * gives it back. Threads: blobs may be shared between threads, a message has one owner. */
#ifndef SHOAL_PROTO_MESSAGE_H
#define SHOAL_PROTO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
  SHOAL_WIRE_VERSION = 1,
  SHOAL_HEADER_BYTES = 64,
  SHOAL_TEXT_PAYLOAD_MAX = 1 << 20, /* of messages whose payload is text or JSON */
};

typedef enum shoal_message_kind {
  SHOAL_MSG_HELLO = 1,
  SHOAL_MSG_WELCOME,
  SHOAL_MSG_REFUSE,
  SHOAL_MSG_ASK,
  SHOAL_MSG_LEASE,
  SHOAL_MSG_WAIT,
  SHOAL_MSG_DONE,
  SHOAL_MSG_RETURN,
  SHOAL_MSG_PULL,
  SHOAL_MSG_WEIGHTS,
  SHOAL_MSG_PUSH,
  SHOAL_MSG_SQUARES,
  SHOAL_MSG_SCALE,
  SHOAL_MSG_APPLIED,
  SHOAL_MSG_SAVE,
  SHOAL_MSG_SAVED,
  SHOAL_MSG_RESTORE,
  SHOAL_MSG_RESTORED,
  SHOAL_MSG_GIVE,
  SHOAL_MSG_BEAT,
  SHOAL_MSG_END,
  SHOAL_MSG_REGISTER,
  SHOAL_MSG_ASSIGN,
  SHOAL_MSG_REPORT,
  SHOAL_MSG_HAVE,
  SHOAL_MSG_WANT,
  SHOAL_MSG_CHUNK,
  SHOAL_MSG_PEERS,
  SHOAL_MSG_BLAME,
  SHOAL_MSG_GOT,
  SHOAL_MSG_ACCEPT,
  SHOAL_MSG_REJECT,
  SHOAL_MSG_KINDS, /* one past the last */
} shoal_message_kind;

/* How floats travel in PUSH and WEIGHTS. */
typedef enum shoal_wire_format {
  SHOAL_WIRE_F32,
  SHOAL_WIRE_BF16,
  SHOAL_WIRE_INT8,
  SHOAL_WIRE_TOPK,
  SHOAL_WIRE_FORMATS,
} shoal_wire_format;

/* Bytes that several messages can share. */
typedef struct shoal_blob shoal_blob;

shoal_blob *shoal_blob_create(size_t length); /* aligned to 64 bytes; NULL when out of memory */
shoal_blob *shoal_blob_of(const void *bytes, size_t length); /* a copy; out of memory ends the program */
/* Bytes of another blob, which stays as long as its parts do. Whoever has made parts to be written to leaves
 * the whole alone. */
shoal_blob *shoal_blob_part(shoal_blob *whole, size_t offset, size_t length);
shoal_blob *shoal_blob_share(shoal_blob *blob);
void shoal_blob_release(shoal_blob *blob);   /* NULL is fine */
bool shoal_blob_is_shared(shoal_blob *blob); /* then it must not be written to any more */
uint8_t *shoal_blob_bytes(shoal_blob *blob);
size_t shoal_blob_length(const shoal_blob *blob);
void shoal_blob_shorten(shoal_blob *blob, size_t length);

typedef struct shoal_message {
  shoal_message_kind kind;
  shoal_wire_format format;
  uint64_t generation; /* how often the job was taken back */
  uint64_t lease;
  uint64_t round;
  uint64_t version;
  uint32_t shard, slice, count;
  shoal_blob *payload; /* or NULL for none */
} shoal_message;

void shoal_message_release(shoal_message *message);
const char *shoal_message_name(shoal_message_kind kind);
/* Whether its payload is floats: it then has one, even when there are none of them. */
bool shoal_message_has_floats(shoal_message_kind kind);

/* Writes the header of the message, with the length of its payload. */
void shoal_message_encode(const shoal_message *message, uint8_t header[SHOAL_HEADER_BYTES]);

/* Whether a message's header can begin with these bytes. */
bool shoal_message_may_begin(const uint8_t *bytes, size_t length);
/* A header from outside: fills *out (without its payload) and the payload's length, or says
 * what is wrong with it. payload_max is the most that the receiver takes. */
shoal_status shoal_message_decode(const uint8_t header[SHOAL_HEADER_BYTES], uint64_t payload_max,
                                  shoal_message *out, uint64_t *payload_length, shoal_error *err);

#endif
