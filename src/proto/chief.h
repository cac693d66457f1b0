/* chief.h: the core that runs one training: who computes what, what is finished, what is safe.
 *
 * Workers and owners connect to it (HELLO). A round has parts; the chief cuts them into units
 * (nodes of nn/tree.h, as large as keeps all workers busy), leases these to workers who ask, adds
 * up what they report in the order of the tree, and so knows the loss of every round; the
 * gradients themselves go to the owners. At the end of an epoch, or when the driver asks, it
 * rests: nothing is leased until the driver has what it wants of that version.
 *
 * From time to time, and before every rest, it has the owners keep a version safe. Where a disk does not take
 * one, the training goes on and another is tried later; a rest is told all the same. When an owner
 * comes back without its memory, or the chief itself does, all go back to the last safe version, or to that
 * of a later rest, which the driver has in memory,
 * and a new generation begins: what belongs to an older one is dropped. Since every unit is a
 * pure function of the version it starts from, the training ends with the same bits. (In async
 * mode it does not: contributions between the safe version and the crash count again.)
 *
 * Recurrent state goes with the leases: a part's state as its last round left it.
 *
 * Guarded (guard.h), a result counts when the guard says so: owners hold what comes, say GOT, and use it at
 * ACCEPT. A worker that lies is banned: told REFUSE, and not taken again. When results of theirs were used that the
 * auditor has not checked, all go back to the newest safe version from before the first of them;
 * SHOAL_SAFE_RING safe versions are kept for that: the newest one, one from before everything unchecked, and
 * between them those that would save most. A chief that starts again knows them from shoal_chief_memory. An
 * auditor is a worker whose HELLO has the key of the config in lease: it gets units to check and no others,
 * and does not count among the workers. With audits the last round of a training is finished when the auditor
 * has checked it, or a share of it where that would take long.
 *
 * Fields of HELLO: count = role; workers: shard = threads, round = 0, version = a number that stands for who
 * it is, 0: its name does; owners: slice = which, and version,
 * generation, round = digest of the job and lease = 1 when they still have these in memory;
 * payload: a name for people, of which only what can be printed is kept. A peer that says HELLO and is not taken
 * hears REFUSE, and the driver is told. What a worker has done counts under its name, however often it comes
 * back: of as many names as there may be workers.
 *
 * After every call the driver takes all events, then all letters of the outbox. Events wait in a queue
 * of SHOAL_CHIEF_EVENTS_MAX. When it is full, ROUND, JOINED, REFUSED, LEFT, LOST, LATE, AGAIN, AUDITED and
 * REJECTED are dropped, which are for the eye; any other takes the place of the oldest. Who was silent for too long is always told:
 * the chief gives up no more peers in one tick than there is room for.
 *
 * Time comes from the caller. Ownership: create, then destroy; what functions take or borrow stands
 * beside them. Threads: one. */
#ifndef SHOAL_PROTO_CHIEF_H
#define SHOAL_PROTO_CHIEF_H

#include "nn/tree.h"
#include "proto/beat.h"
#include "proto/lease.h"
#include "proto/mode.h"
#include "proto/outbox.h"
#include "proto/trust.h"

enum {
  SHOAL_ROLE_WORKER = 1,
  SHOAL_ROLE_OWNER = 2,
  SHOAL_ROLE_AUDITOR = 4,    /* in reports only */
  SHOAL_REFUSED_FOR_NOW = 1, /* `count` of REFUSE: it may pass; 0: it will not */
  SHOAL_SAVED_LATE = 1,      /* `count` of SAVED: the owner was past that version already */
  SHOAL_SAVED_NOT = 2,       /* the owner's disk did not take it */
  SHOAL_NAME_MAX = 64,
  SHOAL_CHIEF_EVENTS_MAX = 256,
  SHOAL_SAFE_RING = 4,
};

/* What a chief must remember to continue after a crash: written by the driver when it says SAFE. */
typedef struct shoal_chief_state {
  uint64_t generation;
  uint64_t version; /* rounds finished in all */
  shoal_sums epoch; /* sums over the finished rounds of the epoch at hand */
} shoal_chief_state;

/* How a guarded training is guarded; zeros: it is not. */
typedef struct shoal_chief_guard {
  bool on;
  bool audits;        /* results are compared: in modes sync and local, in any format but topk */
  bool may_end_early; /* at the end of any epoch: its last round is checked as the training's is */
  double recheck;     /* with audits: the share of units that is checked of known workers; 0: strangers */
  uint64_t secret[2]; /* random, for this chief alone */
  uint64_t key;       /* random; whose HELLO has it is the auditor */
  const shoal_standing *standings; /* that are known; borrowed for create */
  uint32_t standings_count;
} shoal_chief_guard;

typedef struct shoal_chief_config {
  uint32_t parts;  /* of a round */
  uint64_t rounds; /* in an epoch */
  uint64_t end;    /* rounds in all */
  shoal_mode mode;
  float clip;      /* 0 for none */
  uint32_t owners; /* one a slice */
  uint32_t workers_max;
  shoal_beat_rules beat;
  double lost_s; /* owners and reports so long apart, and something was lost on the way: go back. Longer
                    while a version is made safe, where that took long, and where units take long */
  double save_s; /* how often a version is made safe, at most; seldom when that takes long */
  shoal_lease_rules leases;
  const char *job;     /* what WELCOME carries; borrowed */
  uint64_t job_digest; /* tells it from another */
  uint64_t instance;   /* tells this chief from another of the same job; WELCOME says it in `lease`; or 0 */
  shoal_chief_guard guard;
  bool single; /* units are single parts, whatever it costs: a rule wants them apart */
  shoal_chief_state start;
  size_t carry_floats; /* recurrent state of a part, 0 for none */
  const float *carry;  /* of all parts at the start; borrowed for the call; NULL: zeros */
  const void *memory;  /* shoal_chief_memory of an earlier chief, kept with `start`; likewise; NULL: none */
} shoal_chief_config;

typedef enum shoal_chief_event_kind {
  SHOAL_CHIEF_ROUND, /* a round is finished: version, sums */
  SHOAL_CHIEF_REST, /* all owners have `version`, and it is safe or a disk does not take it; shoal_chief_go_on is
                          awaited */
  SHOAL_CHIEF_SAFE,   /* a version is safe with all owners: keep `state`, the carry and the memory, then it
                          counts */
  SHOAL_CHIEF_BACK,   /* all go back to `version`, or start there: why is in `text`, after `name`
                          where somebody is the cause; `state`, which is of the safe version, carry and memory must
                          be kept before anything is sent, so that no generation comes twice */
  SHOAL_CHIEF_LACKS,  /* the owner of `slice` has not the version that it should go back to: see
                          shoal_chief_give */
  SHOAL_CHIEF_JOINED, /* a peer: name, and its role in `text`; `twin`: there is another worker of this name */
  SHOAL_CHIEF_REFUSED, /* a peer that is not taken: name, and why in `text` */
  SHOAL_CHIEF_LEFT,    /* a peer that said so itself: name, and why in `text`, or ""; the driver closes the
                          connection */
  SHOAL_CHIEF_LOST,    /* a peer: name, and why in `text`; it may be only silent: the driver closes the
                          connection, if it is still open */
  SHOAL_CHIEF_LATE, /* a worker: name; one of its units is overdue and was leased again. Told once until it has
                          finished a unit, and of one that is late again and again once a minute */
  SHOAL_CHIEF_AGAIN, /* a worker of whom that was told: name; it has reported a unit, after so many `seconds` */
  SHOAL_CHIEF_DIFFERS, /* a worker's result differs from another's: its name */
  SHOAL_CHIEF_FAILED,  /* the loss is no number: version */
  SHOAL_CHIEF_AUDITED, /* a worker's unit was checked and is right: name, standing */
  SHOAL_CHIEF_BANNED, /* a worker's is not: name, why in `text`, standing; it is told, then the driver closes the
                          connection */
  SHOAL_CHIEF_REJECTED, /* a worker's contribution was not used, or not as it was: name, why in `text` */
} shoal_chief_event_kind;

typedef struct shoal_chief_event {
  shoal_chief_event_kind kind;
  uint64_t version;
  uint64_t peer; /* of whom it tells, as given to shoal_chief_receive; 0: nobody */
  uint32_t slice;
  double seconds; /* AGAIN */
  shoal_sums sums;
  shoal_chief_state state;
  bool twin;
  bool undoes; /* BACK: further than the newest safe version, since somebody lied */
  shoal_standing standing;
  char name[SHOAL_NAME_MAX];
  const char *text; /* or NULL; a constant, but of LOST and LEFT what shoal_chief_gone or _left was given */
} shoal_chief_event;

/* What is known of a peer, for people. */
typedef struct shoal_chief_peer {
  char name[SHOAL_NAME_MAX];
  uint32_t role, slice, threads;
  uint64_t parts_done;                 /* that were wanted */
  uint64_t parts_before;               /* a worker: the same, of its name's earlier connections */
  uint64_t units_done, units_before;   /* likewise the leases that these parts came in */
  double seconds_done, seconds_before; /* and how long it had them */
  uint64_t rounds_behind;              /* an owner: finished rounds that it has not applied */
  uint64_t bytes_in, bytes_out;        /* an owner: what it has moved, when it last said so */
  double unit_s;                       /* a worker: how long its last unit took; 0 before */
  double held_s;                       /* a worker: how long it has had the unit at hand; 0: it has none */
  double silent_s;
  shoal_standing standing; /* a worker of a guarded training; else zeros */
  uint64_t rejected; /* contributions that were refused, or that a limit or the owner's rule cut or left out;
                              likewise, of its name's earlier connections too */
} shoal_chief_peer;

/* How a training ends, as END says it in `count`. */
typedef enum shoal_chief_ending {
  SHOAL_ENDS_OVER,     /* it needs nothing any more of what was kept for it */
  SHOAL_ENDS_UNBEGUN,  /* the chief was stopped before there was anything to keep */
  SHOAL_ENDS_STOPPED,  /* the chief was stopped: the training can continue from what was kept */
  SHOAL_ENDS_SILENTLY, /* nobody is told: the others wait for a chief that continues */
} shoal_chief_ending;

typedef struct shoal_chief shoal_chief;

shoal_status shoal_chief_create(shoal_chief **out, const shoal_chief_config *config, shoal_error *err);
void shoal_chief_destroy(shoal_chief *chief);

/* A message has come from a peer; its payload is taken over, the struct itself stays the caller's. */
void shoal_chief_receive(shoal_chief *chief, uint64_t peer, shoal_message *message, double now);
/* A connection is closed. `why` is borrowed until the event that tells of it has been taken. */
void shoal_chief_gone(shoal_chief *chief, uint64_t peer, const char *why, double now);
/* A peer says that it leaves, and why. Borrowed likewise. Its connection need not be told as closed. */
void shoal_chief_left(shoal_chief *chief, uint64_t peer, const char *why, double now);
void shoal_chief_tick(shoal_chief *chief, double now);
double shoal_chief_next_tick(const shoal_chief *chief); /* when to call tick at the latest */

/* Asks for a rest as soon as the round at hand is finished. */
void shoal_chief_rest(shoal_chief *chief, double now);
/* The driver has what it wanted while at rest: the weights and slots, for shoal_chief_give. Until then, when an
 * owner was lost and is back, the rest is told again. */
void shoal_chief_go_on(shoal_chief *chief, double now);
/* The driver has kept the state of this version, as SAFE or BACK told it. Until then owners keep what an earlier one
 * needs: the driver may come back with that. */
void shoal_chief_recorded(shoal_chief *chief, uint64_t version);
/* Tells all peers that the chief ends, and how; what they still say is not heard. */
void shoal_chief_end(shoal_chief *chief, shoal_chief_ending how, const char *text);
/* What an owner lacks: the slice's weights, then its slots, of the version that LACKS told. The blob is taken. */
void shoal_chief_give(shoal_chief *chief, uint32_t slice, shoal_blob *state);
/* An owner lost what it kept, and nobody has the safe version any more: all go back to an earlier
 * one that the driver has. Both are borrowed for the call; carry may be NULL: then it stays. */
void shoal_chief_fall_back(shoal_chief *chief, const shoal_chief_state *state, const float *carry,
                           double now);

shoal_outbox *shoal_chief_outbox(shoal_chief *chief);
bool shoal_chief_next_event(shoal_chief *chief, shoal_chief_event *out);

/* Recurrent state of all parts: of the safe version, and of the one at hand. NULL without. Borrowed
 * until the next call that may change it: receive, tick or fall_back. */
const float *shoal_chief_safe_carry(const shoal_chief *chief);
const float *shoal_chief_carry(const shoal_chief *chief);

/* What a chief with audits must remember beside its state, to undo after a crash what was done before it:
 * safe versions, and since when whose results are unchecked. Bytes for the same program; of the length that
 * shoal_chief_memory_bytes says of its config, 0 and NULL without audits. The blob is the caller's. */
shoal_blob *shoal_chief_memory(const shoal_chief *chief);
size_t shoal_chief_memory_bytes(const shoal_chief_config *config);

/* For reports. */
uint64_t shoal_chief_version(const shoal_chief *chief);
uint64_t shoal_chief_generation(const shoal_chief *chief);
uint32_t shoal_chief_workers(const shoal_chief *chief);
bool shoal_chief_running(const shoal_chief *chief); /* all owners are here and at one version */
shoal_lease_counts shoal_chief_leases(const shoal_chief *chief);
uint64_t shoal_chief_owner(const shoal_chief *chief, uint32_t slice); /* its peer, or 0 */
/* Of a guarded training since it was created: units that count, units that were computed again, and
 * contributions that were rejected as shoal_chief_peer has it. */
void shoal_chief_audits(const shoal_chief *chief, uint64_t *units, uint64_t *checks, uint64_t *rejected);
/* A standing has changed elsewhere: who is banned or doubted there is so here, and a ban may have been
 * lifted. */
void shoal_chief_set_standing(shoal_chief *chief, const shoal_standing *standing, double now);
/* Peer `index`, from 0; false when there are not so many. */
bool shoal_chief_peer_at(const shoal_chief *chief, uint32_t index, double now, shoal_chief_peer *out);
/* Workers that have done something and are here no more: name, role, and what is called _before. Likewise
 * from 0. */
bool shoal_chief_past_at(const shoal_chief *chief, uint32_t index, shoal_chief_peer *out);

#endif
