/* swarm.h: one member of a swarm that spreads a data set: what to ask of whom, and whom to give what.
 *
 * A data set is `chunks` pieces, numbered from 0. Members tell their neighbours what they have (HAVE), ask
 * them for what they want (WANT) and answer (CHUNK). The server is a member that has everything and is
 * everybody's neighbour.
 *
 * Who asks. Urgent chunks come first, then those that fewest neighbours have, ties by the seed. Every
 * neighbour that has something wanted has a question, the quick ones several, so that no one's uplink
 * rests. A question that is late is asked elsewhere too, and so are the last chunks; when one of the
 * answers is there, HAVE takes the other questions back. Who sent a chunk that was not it is never asked
 * again. The server is asked for whichever chunk it has given least (by members who want everything), and
 * for chunks that no neighbour has; where it says "not now" a while has to pass before it is asked for a
 * certain chunk with "nobody else gives it to me".
 *
 * Who answers. A peer is sent one chunk at a time, at most `slots` peers at a time; those who ask take
 * turns, one chunk a turn. A member with a slow uplink sends to fewer, so that a chunk is whole sooner and
 * can be passed on; receivers that are slow themselves do not count. The server gives every chunk once
 * before it gives any twice: after that it says "not now" as long as somebody who is here has the chunk, or
 * has got it by the time that the question's turn comes, unless nobody else gives it; and of its own accord
 * gives again what hardly anybody has got on with.
 *
 * The driver does what needs bytes: it compares hashes and reads from disk. After every call it takes all
 * events (shoal_swarm_next) and then all letters (shoal_swarm_outbox), and it calls tick when next_tick has
 * come. Peers are its own numbers, above 0; it has settled with them who they are (HELLO) before it says
 * join. Nothing that a peer sends can do more harm than to waste what was sent: what makes no sense is
 * dropped and counted, and memory follows from the limits of the configuration.
 *
 * Time comes from the caller. Ownership: create, then destroy; blobs are handed over where it says so.
 * Threads: one. */
#ifndef SHOAL_PROTO_SWARM_H
#define SHOAL_PROTO_SWARM_H

#include "proto/outbox.h"

/* HELLO's count, of a member to a member. */
enum { SHOAL_ROLE_PEER = 3 };
enum { SHOAL_SWARM_CHUNKS_MAX = 1 << 24, SHOAL_SWARM_AHEAD_MAX = 64 };

typedef struct shoal_swarm shoal_swarm;

/* Where a number is 0, the default beside it is taken. */
typedef struct shoal_swarm_config {
  uint32_t chunks;      /* 1 .. SHOAL_SWARM_CHUNKS_MAX */
  uint64_t chunk_bytes; /* of the largest; an answer with more is a bad chunk */
  bool serves;          /* the server: has everything */
  bool wants_all;
  bool alone;         /* will never have a neighbour but the server, and asks it for everything */
  uint32_t peers_max; /* neighbours, the server included: 41 */
  uint32_t slots;     /* peers that are sent a chunk at the same time, at most: 12 */
  uint32_t ahead;     /* questions to one peer at most, asked and taken: 16 */
  double patience_s;  /* a question that waits so long, and long for this peer, is asked elsewhere too: 5 */
  double have_s;      /* what one has got is told at most so much later: 0.05 */
  uint64_t seed;
} shoal_swarm_config;

shoal_status shoal_swarm_create(shoal_swarm **out, const shoal_swarm_config *config, shoal_error *err);
void shoal_swarm_destroy(shoal_swarm *swarm);

/* A neighbour is there; false when there are peers_max already, or memory is short: then the driver closes
 * it. Leave is for one that is gone, or is to be forgotten; it is nothing for one that is not here. */
bool shoal_swarm_join(shoal_swarm *swarm, uint64_t peer, bool is_server, double now);
void shoal_swarm_leave(shoal_swarm *swarm, uint64_t peer, double now);

/* A chunk is on disk, without anybody having sent it. Neighbours who are here already are told. */
void shoal_swarm_has(shoal_swarm *swarm, uint32_t chunk, double now);
/* A chunk is wanted, or now urgently; one that is here, or beyond the last, is nothing. */
void shoal_swarm_want(shoal_swarm *swarm, uint32_t chunk, bool urgent, double now);
void shoal_swarm_want_all(shoal_swarm *swarm, double now);

/* A message has come: HAVE, WANT or CHUNK; others are dropped. Its payload is taken over, the struct stays
 * the caller's. */
void shoal_swarm_receive(shoal_swarm *swarm, uint64_t peer, shoal_message *message, double now);
void shoal_swarm_tick(shoal_swarm *swarm, double now);
double shoal_swarm_next_tick(const shoal_swarm *swarm); /* infinity: nothing to wait for */
shoal_outbox *shoal_swarm_outbox(shoal_swarm *swarm);

typedef enum shoal_swarm_event_kind {
  SHOAL_SWARM_ARRIVED, /* peer sent `payload` as `chunk`: compare its hash, keep it, and say
                          shoal_swarm_checked */
  SHOAL_SWARM_GIVE,    /* `peer` shall get `chunk`: read it and say shoal_swarm_give */
  SHOAL_SWARM_BAD,     /* what `peer` sent as `chunk` was not it: it is asked no more; report it, close it */
} shoal_swarm_event_kind;

typedef struct shoal_swarm_event {
  shoal_swarm_event_kind kind;
  uint64_t peer;
  uint32_t chunk;
  uint64_t question;   /* GIVE: what shoal_swarm_give wants back */
  shoal_blob *payload; /* ARRIVED: now the driver's */
} shoal_swarm_event;

bool shoal_swarm_next(shoal_swarm *swarm, shoal_swarm_event *out);

/* An arrived chunk was compared. Once for every ARRIVED, now or later; until then the chunk is asked of
 * nobody. What was good is told to others, so it must be readable by now. */
void shoal_swarm_checked(shoal_swarm *swarm, uint64_t peer, uint32_t chunk, bool good, double now);

/* Others say that what this peer sends is not right: what it has counts no more, so that the server gives it
 * to somebody else. It gets what it asks for by its number, not whichever is best to give. */
void shoal_swarm_distrust(shoal_swarm *swarm, uint64_t peer);

/* The bytes for a GIVE, once for each, at once or later; NULL where they cannot be read: "not now". The blob
 * is taken. CHUNK is then in the outbox, and the peer gets no other before shoal_swarm_sent: the driver says
 * that when what it has queued for this peer has left, or nearly (so little that more should be at hand). */
void shoal_swarm_give(shoal_swarm *swarm, uint64_t peer, uint64_t question, uint32_t chunk, shoal_blob *blob,
                      double now);
void shoal_swarm_sent(shoal_swarm *swarm, uint64_t peer, double now);

/* ---- for reports ---- */

typedef struct shoal_swarm_counts {
  uint32_t here, wanted;  /* chunks that are here; that are wanted and not here */
  uint32_t peers, giving; /* neighbours; those being sent a chunk */
  uint32_t asked;         /* questions that wait for an answer */
  uint64_t got, given;    /* chunks, since create */
  uint64_t got_bytes, given_bytes;
  uint64_t server_bytes; /* of got_bytes, from the server */
  uint64_t twice;        /* chunks that came although they were here or arrived already */
  uint64_t bad;          /* chunks that were not what they should be */
  uint64_t not_now;      /* answers of that kind that were given */
  uint64_t late;         /* questions that waited too long */
  uint64_t strange;      /* messages that made no sense */
} shoal_swarm_counts;

shoal_swarm_counts shoal_swarm_count(const shoal_swarm *swarm);
bool shoal_swarm_is_here(const shoal_swarm *swarm, uint32_t chunk);

typedef struct shoal_swarm_peer {
  uint64_t peer;
  bool is_server, bad;
  uint32_t has;                    /* chunks, as far as it has told */
  uint32_t asked, asks;            /* questions to it, and by it, that wait */
  uint64_t got_bytes, given_bytes; /* from it, to it */
} shoal_swarm_peer;

/* Neighbour `index`, from 0; false when there are not so many. */
bool shoal_swarm_peer_at(const shoal_swarm *swarm, uint32_t index, shoal_swarm_peer *out);
/* One bit for every chunk that the peer has, lowest first, (chunks + 7) / 8 bytes; NULL: no such peer. Until
 * the next call. With peer 0 of what is here. */
const uint8_t *shoal_swarm_bits(const shoal_swarm *swarm, uint64_t peer);

#endif
