/* swarm_internal.h: what the files of proto/swarm.h share: swarm.c (who is here, what is here, what is told),
 * swarm_ask.c (what is asked of whom) and swarm_give.c (who is given what).
 *
 * What holds after every call, of a member's chunks:
 *
 *   1. A chunk is here, or wanted, or neither, never both; `open` are the wanted ones that have not arrived
 *      and that nobody is asked for, or only those who are late with it.
 *   2. asked[c] is the number of questions for c that wait for an answer.
 *   3. holders[c] is the number of neighbours that have c: without the server, and without bad ones.
 *   4. A peer is in the line of those who ask exactly when it has a question and is not being given a chunk.
 *
 * Threads: one. */
#ifndef SHOAL_PROTO_SWARM_INTERNAL_H
#define SHOAL_PROTO_SWARM_INTERNAL_H

#include "proto/places.h"
#include "proto/swarm.h"

#define SHOAL_SWARM_ANY UINT32_MAX

/* One that waits for an answer. */
typedef struct shoal_swarm_question {
  uint64_t number;
  double since;
  uint32_t chunk;  /* or SHOAL_SWARM_ANY */
  bool late, sole; /* sole: said with "nobody else gives it to me" */
} shoal_swarm_question;

/* One of a peer's, that waits for its turn. */
typedef struct shoal_swarm_demand {
  uint64_t number;
  uint32_t chunk;
  bool sole; /* nobody else gives it to the peer */
} shoal_swarm_demand;

typedef struct shoal_swarm_neighbour {
  uint64_t id;
  bool is_server, bad;
  uint64_t *bits; /* what it has */
  uint32_t has;
  uint64_t got_bytes, given_bytes;
  /* questions to it */
  shoal_swarm_question *asked;
  uint32_t asked_count;
  bool slow;          /* one of them is late: it gets no more before it has answered */
  double wait_s;      /* from question to answer, about; 0: not known */
  double gap_s;       /* from answer to answer while it was asked, about; 0: not known */
  double answered_at; /* last */
  double rest_until;  /* it said "not now" */
  double rest_s;
  /* questions by it, oldest first */
  shoal_swarm_demand *asks;
  uint32_t asks_first, asks_count;
  bool known;                      /* it has stood in the line before */
  bool giving, under_way, in_line; /* under way: its bytes are in the outbox, or have left it */
  uint64_t giving_number;
  double giving_since;
  uint64_t sent_before;                          /* chunks that had left when this one began */
  struct shoal_swarm_neighbour *before, *behind; /* in the line */
} shoal_swarm_neighbour;

typedef struct shoal_swarm_fresh {
  uint32_t *chunks;
  uint32_t count;
  double due;  /* when they are told; infinity: there are none */
  double told; /* when some were, last */
} shoal_swarm_fresh;

struct shoal_swarm {
  shoal_swarm_config config;
  uint32_t words; /* of 64 chunks */
  uint64_t *here;
  uint32_t *holders;
  shoal_swarm_counts counts;
  shoal_outbox outbox;
  shoal_swarm_neighbour **neighbours;
  uint32_t neighbours_count;
  uint32_t usable; /* of them: not the server, not bad */
  shoal_places places;
  shoal_swarm_event *events; /* a ring */
  uint32_t events_size, events_first, events_count;
  /* asking */
  uint64_t *wanted, *urgent, *arrived, *open;
  uint32_t open_count, urgent_count, arrived_count;
  uint16_t *asked;
  uint64_t questions;        /* numbers given out */
  double refused_since;      /* the server has said "not now" and given nothing since; infinity: it gives */
  double got_at;             /* when a chunk came last, from anybody */
  double check_at;           /* when late questions are looked for next */
  double wait_s;             /* from question to answer, over all neighbours, about */
  shoal_swarm_fresh fresh;   /* to be told to neighbours */
  shoal_swarm_fresh reports; /* and to the server */
  /* giving */
  shoal_swarm_neighbour *line_first, *line_last;
  uint32_t giving;
  uint32_t line_count;
  uint64_t sent;     /* chunks that have left */
  double sent_rate;  /* chunks a second that the uplink lets through, about; 0: not known */
  double room_at;    /* when there will be room for one more though none has left; infinity: not by itself */
  uint64_t *lacking; /* server: chunks that nobody here has */
  uint32_t lacking_count;
  uint64_t held;        /* server: the sum of holders */
  double *given_at;     /* server: when each was given last */
  double give_s;        /* how long it takes to give a chunk, about */
  uint32_t again;       /* server: chunks that it gave again of its own accord */
  double stuck_look_at; /* server: when to look again for what does not spread */
  uint32_t stuck_next;  /* server: from which chunk on */
};

static inline bool shoal_bit(const uint64_t *bits, uint32_t i) { return bits[i / 64] >> (i % 64) & 1; }
static inline void shoal_bit_set(uint64_t *bits, uint32_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }
static inline void shoal_bit_clear(uint64_t *bits, uint32_t i) { bits[i / 64] &= ~((uint64_t)1 << (i % 64)); }

/* swarm.c */
shoal_swarm_neighbour *shoal_swarm_find(const shoal_swarm *s, uint64_t peer); /* NULL: not here */
void shoal_swarm_say(shoal_swarm *s, const shoal_swarm_neighbour *to, shoal_message message);
void shoal_swarm_tell(shoal_swarm *s, shoal_swarm_event event);
void shoal_swarm_say_one(shoal_swarm *s, const shoal_swarm_neighbour *to, uint32_t chunk); /* HAVE */
/* A peer has sent something else than it said. */
void shoal_swarm_expose(shoal_swarm *s, uint64_t peer, uint32_t chunk);
void shoal_swarm_set_here(shoal_swarm *s, uint32_t chunk, double now);

/* swarm_ask.c */
void shoal_swarm_ask(shoal_swarm *s, shoal_swarm_neighbour *n, double now);
void shoal_swarm_ask_all(shoal_swarm *s, double now);
void shoal_swarm_answered(shoal_swarm *s, shoal_swarm_neighbour *n, shoal_message *m, double now);
void shoal_swarm_drop_questions(shoal_swarm *s, shoal_swarm_neighbour *n);
void shoal_swarm_take_back(shoal_swarm *s, uint32_t chunk, double now);
void shoal_swarm_open(shoal_swarm *s, uint32_t chunk);   /* it can be asked for, if it is wanted */
void shoal_swarm_close(shoal_swarm *s, uint32_t chunk);  /* it need not be asked for */
bool shoal_swarm_check_late(shoal_swarm *s, double now); /* whether some are */

/* swarm_give.c */
void shoal_swarm_pump(shoal_swarm *s, double now); /* gives to those in line, as far as there is room */
void shoal_swarm_asked(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_message *m, double now);
/* It has said HAVE: what it asked for and has now need not be given. */
void shoal_swarm_forget_asks(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_message *have);
void shoal_swarm_stop_giving(shoal_swarm *s, shoal_swarm_neighbour *n, double now); /* it leaves */
/* The server: a neighbour has a chunk, or has it no more. */
void shoal_swarm_lack(shoal_swarm *s, uint32_t chunk, bool lacking);

#endif
