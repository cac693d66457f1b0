/* owner.h: the owner of a slice: a parameter server's core.
 *
 * It takes contributions (PUSH), adds those of a round in the order of nn/tree.h, steps the
 * optimiser, and so makes version after version, which it gives to whoever asks (PULL). A pull of
 * a version that is not there yet waits for it. Slots are only for the chief. A second contribution for the
 * same part is dropped; the chief compares their digests. With gradient clipping the sums of squares go to
 * the chief (SQUARES), and the round waits for its answer (SCALE); in async mode, where a contribution is a
 * whole batch's, workers clip.
 *
 * Guarded, it believes nobody: what comes under a lease is held (held.h), the chief is told of it (GOT), and
 * it counts at ACCEPT and is forgotten at REJECT. What comes without a lease never counts.
 *
 * With a rule other than the mean (aggregate.h) units are single parts; a round's contributions are kept
 * apart until all are there, and what is applied is as many times the rule's result. Guarded, APPLIED then
 * names the leases whose contributions the rule has cut or left out.
 *
 * It keeps nothing on disk itself: when the chief says SAVE, shoal_owner_save tells the driver
 * what to keep; after RESTORE, shoal_owner_restore asks for it back; what the driver has not, the
 * chief may have. Where the disk does not take a version, the chief is told so, and rounds go on; it asks again.
 * Messages of another generation than its own are dropped.
 *
 * Ownership: create, then destroy; graph and kernels are borrowed. Threads: one. */
#ifndef SHOAL_PROTO_OWNER_H
#define SHOAL_PROTO_OWNER_H

#include "proto/aggregate.h"
#include "proto/mode.h"
#include "proto/outbox.h"
#include "proto/slice.h"

typedef struct shoal_owner shoal_owner;

typedef struct shoal_owner_config {
  const shoal_graph *graph; /* its recipe too */
  const shoal_kernels *kernels;
  shoal_slice slice;
  uint32_t slice_index;
  uint32_t parts;  /* of a round */
  uint64_t rounds; /* in an epoch, for the rate */
  uint64_t job_digest;
  shoal_mode mode;
  bool guarded;
  shoal_wire_format format; /* guarded: in another nothing is taken */
  shoal_rule rule;
} shoal_owner_config;

enum { SHOAL_OWNER_KEEPS_MAX = 8 };

/* What a version is made of. Pointers are to `slice.count` floats, NULL where there is none. They are the
 * owner's, and change with every new version and with RESTORE: they hold until the next call of receive or
 * saved. */
typedef struct shoal_owner_state {
  uint64_t version;
  float *weights, *slot1, *slot2;
  float *centre; /* what the rule remembers */
} shoal_owner_state;

shoal_status shoal_owner_create(shoal_owner **out, const shoal_owner_config *config, shoal_error *err);
void shoal_owner_destroy(shoal_owner *owner);

/* For the first weights, for saving and for restoring. The struct stays where it is until destroy. */
shoal_owner_state *shoal_owner_state_of(shoal_owner *owner);
uint64_t shoal_owner_generation(const shoal_owner *owner);

/* The HELLO for a chief. */
shoal_message shoal_owner_hello(const shoal_owner *owner, const char *name);
/* A message has come from a peer; its payload is taken over. Answers are in the outbox. */
void shoal_owner_receive(shoal_owner *owner, uint64_t peer, shoal_message *message);
void shoal_owner_gone(shoal_owner *owner, uint64_t peer);
shoal_outbox *shoal_owner_outbox(shoal_owner *owner);

/* Whether the state as it is now is to be kept safe; then the driver does so before it posts the outbox or
 * gives the owner anything else, and says when that is done, or why it could not be. */
bool shoal_owner_save(const shoal_owner *owner);
/* What is to stay beside it, other records can go: writes up to SHOAL_OWNER_KEEPS_MAX versions, the one at
 * hand among them, and returns how many. */
uint32_t shoal_owner_keeps(const shoal_owner *owner, uint64_t versions[SHOAL_OWNER_KEEPS_MAX]);
void shoal_owner_saved(shoal_owner *owner);
void shoal_owner_not_saved(shoal_owner *owner, const char *why);

/* Whether a version is to be brought back; the driver writes it into the state, or has none. From RESTORE
 * until then weights and slots are undefined, and nobody gets them. */
bool shoal_owner_restore(const shoal_owner *owner, uint64_t *version);
void shoal_owner_restored(shoal_owner *owner, bool found);

#endif
