/* chief_internal.h: what the files of the chief share.
 *
 *   chief.c          create, reports, what is told, what comes in
 *   chief_peers.c    who comes and goes, and what was done under a name
 *   chief_leases.c   who gets which unit
 *   chief_rounds.c   rounds, safe versions, going back, rests
 *   chief_guard.c    in a guarded training: what counts, who is banned, what is undone */
#ifndef SHOAL_PROTO_CHIEF_INTERNAL_H
#define SHOAL_PROTO_CHIEF_INTERNAL_H

#include "proto/chief.h"
#include "proto/guard.h"
#include "proto/places.h"

enum { SHOAL_AUDITORS_MAX = 2 }; /* an old connection may be about to end */

typedef struct peer_entry {
  uint64_t peer;
  uint32_t role, slice, threads;
  uint32_t wants; /* worker: units that it has asked for and not got */
  uint64_t parts_done, parts_before, bytes_in, bytes_out;
  uint64_t who; /* worker: its number for the guard */
  bool auditor;
  uint64_t rejected; /* under its name */
  uint64_t units_done, units_before;
  double seconds_done, seconds_before;
  bool late;         /* worker: told so, and has finished nothing since */
  double late_since; /* when it was last told so; 0: never */
  double unit_s;
  shoal_beat beat;
  char name[SHOAL_NAME_MAX];
} peer_entry;

/* What those who left under a name had done. */
typedef struct past_entry {
  uint64_t parts, units, rejected;
  double seconds;
  char name[SHOAL_NAME_MAX];
} past_entry;

typedef struct owner_entry {
  uint64_t peer; /* 0: not here */
  bool ready;    /* at the version and generation of the job */
  uint64_t applied;
  bool saved;          /* has made the version `saving` safe */
  shoal_blob *squares; /* of round squares_round, a double a run; or NULL */
  uint64_t squares_round;
} owner_entry;

/* A round that was offered and is not closed yet. */
typedef struct open_round {
  uint32_t width; /* of its units */
  bool *here;     /* one a part, where a round has several units: the one that begins there is done */
  shoal_sums *sums;
} open_round;

/* A version that all can go back to. */
typedef struct safe_point {
  shoal_chief_state state;
  float *carry; /* or NULL */
} safe_point;

struct shoal_chief {
  shoal_chief_config config;
  shoal_chief_state now, safe, saving_state;
  shoal_lease_book *book;
  uint64_t offered;   /* rounds offered so far */
  bool begun;         /* some of them in this generation */
  open_round *rounds; /* a ring of `window` */
  bool *here;         /* theirs */
  shoal_sums *sums;
  uint32_t window;
  uint32_t round_units;                     /* the most that a round is cut into */
  size_t carry_count;                       /* floats of all parts */
  float *carry, *safe_carry, *saving_carry; /* NULL without */
  float *next_carry; /* with audits: of the round at hand, whose units may still be computed again */
  peer_entry *peers;
  uint32_t peers_count, workers_count;
  past_entry *past; /* names with something to remember, up to workers_max; nobody of them is here */
  uint32_t past_count;
  uint32_t wanting;         /* peers that want units */
  shoal_places peer_places; /* where a peer is */
  double beat_at;           /* no beat is due before, and nobody too silent */
  owner_entry *owners;
  bool rest_wanted; /* by the driver, until it says go on */
  bool paused;      /* nothing is leased, all that was is closed */
  bool announced;   /* and the driver knows */
  bool ended;
  shoal_chief_state
      rest; /* the last that the driver has in memory; all go back there where it is newer than `safe` */
  float *rest_carry;
  bool saving; /* version saving_version is being made safe */
  uint64_t saving_version;
  uint64_t not_saved;  /* the version that an owner's disk did not take; UINT64_MAX: none */
  uint64_t recorded;   /* the safe version that the driver has kept last */
  double saving_since; /* when the chief came to that version */
  double next_save;    /* infinite until all owners run for the first time */
  double time;
  double moved;                     /* when a round was closed or applied last, or all owners came together */
  double lost_s;                    /* config.lost_s or more: see lost_limit */
  shoal_guard *guard;               /* NULL: not guarded */
  safe_point ring[SHOAL_SAFE_RING]; /* guarded: safe versions, the newest last */
  uint32_t ring_count;
  shoal_chief_event events[SHOAL_CHIEF_EVENTS_MAX];
  uint32_t events_first, events_count;
  shoal_outbox outbox;
};

/* ---- chief.c ---- */
void shoal_chief_say(shoal_chief *chief, uint64_t peer, shoal_message message);
void shoal_chief_tell(shoal_chief *chief, shoal_chief_event event);
void shoal_chief_tell_of(shoal_chief *chief, shoal_chief_event_kind kind, const peer_entry *peer,
                         const char *text);
peer_entry *shoal_chief_find(shoal_chief *chief, uint64_t peer);
/* A worker has reported a unit, whether that counts or not, and so is no longer late. */
void shoal_chief_not_late(shoal_chief *chief, peer_entry *worker);
void shoal_chief_set_wants(shoal_chief *chief, peer_entry *peer, uint32_t wants);
bool shoal_chief_read_done(shoal_chief *chief, const shoal_message *message, uint32_t count,
                           shoal_sums *sums);

/* ---- chief_peers.c ---- */
void shoal_chief_take_hello(shoal_chief *chief, uint64_t peer, const shoal_message *message);
/* A peer is no longer here: `how` is LOST, LEFT or BANNED. */
void shoal_chief_lose(shoal_chief *chief, uint64_t peer, shoal_chief_event_kind how, const char *why);
void shoal_chief_beat_peers(shoal_chief *chief);

/* ---- chief_leases.c ---- */
void shoal_chief_serve(shoal_chief *chief);
uint32_t shoal_chief_count_of(shoal_chief *chief, uint64_t unit); /* its parts; of a round that is open */
bool shoal_chief_unreported(const shoal_chief *chief);

/* ---- chief_rounds.c ---- */
static inline open_round *shoal_chief_round_of(shoal_chief *c, uint64_t round) {
  return &c->rounds[round % c->window];
}
static inline uint64_t shoal_chief_epoch_end(const shoal_chief *c) {
  return (c->now.version / c->config.rounds + 1) * c->config.rounds;
}
/* The result of a unit counts: its sums and recurrent state. Rounds that are complete with it are not closed
 * yet. */
void shoal_chief_keep(shoal_chief *chief, uint64_t round, uint32_t first, const shoal_sums *sums,
                      shoal_blob *report);
void shoal_chief_close_rounds(shoal_chief *chief);
void shoal_chief_begin(shoal_chief *chief);
void shoal_chief_announce(shoal_chief *chief);
/* Where all can go back to: the safe version, or that of a later rest. */
const shoal_chief_state *shoal_chief_newest(const shoal_chief *chief);
/* All go back there. `name` is who caused it, or NULL. */
void shoal_chief_go_back(shoal_chief *chief, const char *name, const char *why, bool undoes);
void shoal_chief_go_back_for(shoal_chief *chief, const peer_entry *who, const char *why);
void shoal_chief_go_back_apart(shoal_chief *chief);
/* Until when owners and reports may be apart; infinity when they are not. */
double shoal_chief_apart_until(const shoal_chief *chief);
double shoal_chief_lost_limit(const shoal_chief *chief);
const peer_entry *shoal_chief_owner_of(shoal_chief *chief, uint32_t slice);
void shoal_chief_ask_to_save(shoal_chief *chief, uint32_t slice);
void shoal_chief_ask_to_restore(shoal_chief *chief, uint32_t slice);
void shoal_chief_take_saved(shoal_chief *chief, uint32_t slice, const shoal_message *message);
void shoal_chief_take_restored(shoal_chief *chief, uint32_t slice, const shoal_message *message);
void shoal_chief_take_squares(shoal_chief *chief, uint32_t slice, shoal_message *message);
void shoal_chief_forget_squares(owner_entry *owner);

/* ---- chief_guard.c ---- */
shoal_status shoal_chief_guard_create(shoal_chief *chief, shoal_error *err);
void shoal_chief_guard_destroy(shoal_chief *chief);
/* Who a worker is, by its HELLO and name; the auditor is SHOAL_GUARD_AUDITOR. */
uint64_t shoal_chief_guard_who(const shoal_chief *chief, const shoal_message *hello, const char *name,
                               bool *auditor);
const char *shoal_chief_guard_refusal(const shoal_chief *chief, uint64_t who, bool auditor);
void shoal_chief_guard_done(shoal_chief *chief, peer_entry *worker, const shoal_message *message);
void shoal_chief_guard_got(shoal_chief *chief, uint32_t slice, const shoal_message *message);
/* APPLIED names what the owner's rule has cut or left out. */
void shoal_chief_guard_cut(shoal_chief *chief, const shoal_message *message);
shoal_guard_end shoal_chief_guard_end(const shoal_chief *chief, uint64_t unit); /* of a unit's round */
void shoal_chief_guard_returned(shoal_chief *chief, const peer_entry *worker, uint64_t ticket);
/* Does what the guard has ruled, until it has no more to say. */
void shoal_chief_guard_settle(shoal_chief *chief);
void shoal_chief_guard_close(shoal_chief *chief); /* rounds were closed, or applied */
/* The safe version is a new one; the versions before it need not be kept any more. */
void shoal_chief_ring_add(shoal_chief *chief);
void shoal_chief_ring_cut(shoal_chief *chief);
shoal_blob *
shoal_chief_versions(const shoal_chief *chief); /* to stay beside a new one, for SAVE; NULL: the safe one */

#endif
