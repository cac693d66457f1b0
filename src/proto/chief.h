/* chief.h: the core that runs one training: who computes what, what is finished, what is safe.
 *
 * Workers and owners connect to it (HELLO). It cuts rounds into units, leases them to workers who
 * ask, adds up what they report in the order of the parts, and so knows the loss of every round;
 * the gradients themselves go to the owners. At the end of an epoch it stops leasing until the
 * driver has what it wants of that version.
 *
 * From time to time it has the owners keep a version safe. When an owner comes back without its
 * memory, or the chief itself does, all go back to the last safe version, and a new generation
 * begins: what belongs to an older one is dropped. Since every unit is a pure function of the
 * version it starts from, the training ends with the same bits.
 *
 * Fields of HELLO: count = role, slice = which (owners), version, generation and lease = 1 when an
 * owner still has them in memory; payload: a name for people to read.
 *
 * Time comes from the caller. Ownership: create, then destroy. Threads: one. */
#ifndef SHOAL_PROTO_CHIEF_H
#define SHOAL_PROTO_CHIEF_H

#include "nn/sums.h"
#include "proto/lease.h"
#include "proto/mode.h"
#include "proto/outbox.h"

enum { SHOAL_ROLE_WORKER = 1, SHOAL_ROLE_OWNER = 2, SHOAL_NAME_MAX = 64 };

/* What a chief must remember to go on after a crash: written by the driver when it says SAFE. */
typedef struct shoal_chief_state {
  uint64_t generation;
  uint64_t version; /* rounds finished in all */
  shoal_sums epoch; /* sums over the finished rounds of the epoch at hand */
} shoal_chief_state;

typedef struct shoal_chief_config {
  uint32_t parts;  /* of a round */
  uint64_t rounds; /* in an epoch */
  uint64_t end;    /* rounds in all */
  shoal_mode mode;
  float clip;      /* 0 for none */
  uint32_t owners; /* one a slice */
  uint32_t workers_max;
  double silence_s; /* a peer that says nothing for so long is lost */
  double lost_s;    /* an owner so long behind a finished round will never finish it: go back */
  double save_s;    /* how often a version is made safe */
  shoal_lease_rules leases;
  const char *job; /* what WELCOME carries; borrowed */
  shoal_chief_state start;
} shoal_chief_config;

typedef enum shoal_chief_event_kind {
  SHOAL_CHIEF_ROUND,   /* a round is finished: version, sums */
  SHOAL_CHIEF_EPOCH,   /* an epoch is: version, sums of all of it; shoal_chief_go_on is awaited */
  SHOAL_CHIEF_SAFE,    /* a version is safe with all owners: keep `state`, and then it counts */
  SHOAL_CHIEF_BACK,    /* all go back to the safe version, or start there: why is in `text`; `state`
                          must be kept before anything is sent, so that no generation comes twice */
  SHOAL_CHIEF_JOINED,  /* a peer: name, and its role in `text` */
  SHOAL_CHIEF_LOST,    /* a peer: name, and why in `text` */
  SHOAL_CHIEF_DIFFERS, /* a worker's result differs from another's: its name */
  SHOAL_CHIEF_END,     /* the last round is finished */
  SHOAL_CHIEF_FAILED,  /* the loss is no number: version */
} shoal_chief_event_kind;

typedef struct shoal_chief_event {
  shoal_chief_event_kind kind;
  uint64_t version;
  shoal_sums sums;
  shoal_chief_state state;
  char name[SHOAL_NAME_MAX];
  const char *text;
} shoal_chief_event;

typedef struct shoal_chief shoal_chief;

shoal_status shoal_chief_create(shoal_chief **out, const shoal_chief_config *config, shoal_error *err);
void shoal_chief_destroy(shoal_chief *chief);

void shoal_chief_receive(shoal_chief *chief, uint64_t peer, shoal_message *message, double now);
void shoal_chief_gone(shoal_chief *chief, uint64_t peer, const char *why, double now);
void shoal_chief_tick(shoal_chief *chief, double now);
double shoal_chief_next_tick(const shoal_chief *chief); /* when to call tick at the latest */
/* The driver has what it wanted at the end of an epoch. */
void shoal_chief_go_on(shoal_chief *chief, double now);

shoal_outbox *shoal_chief_outbox(shoal_chief *chief);
bool shoal_chief_next_event(shoal_chief *chief, shoal_chief_event *out);

/* For reports. */
uint64_t shoal_chief_version(const shoal_chief *chief);
uint64_t shoal_chief_generation(const shoal_chief *chief);
uint32_t shoal_chief_workers(const shoal_chief *chief);
bool shoal_chief_running(const shoal_chief *chief); /* all owners are here and at one version */
shoal_lease_counts shoal_chief_leases(const shoal_chief *chief);

#endif
