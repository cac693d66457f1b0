/* swarm.h: whole swarms in virtual time: every member is the real core (proto/swarm.h).
 *
 * A swarm is a server, members that want everything it has, and links (swarm_links.h). In a measured swarm
 * rates are given and nothing goes wrong unless it is asked for; a drawn one follows from its seed: small,
 * with members that leave without a word and others that join in the middle, members that send corrupted
 * chunks, members who cannot be reached by others, members that have some of it already or want only a part,
 * slow links, and a server that leaves once everything is somewhere else.
 *
 * Rules are checked by what is sent and kept, not by what the cores think.
 *
 * For comparison the same links also carry two other ways: everybody asks one server, and a tree in which
 * each node that has the whole set sends it whole to another, so that their number doubles every turn.
 *
 * Ownership: plain values. Threads: any number of swarms at a time, one thread each. Memory that is short
 * ends the program. */
#ifndef SHOAL_SIM_SWARM_H
#define SHOAL_SIM_SWARM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

typedef enum shoal_swarm_rule {
  SHOAL_SWARM_WELL,
  SHOAL_SWARM_COMPLETE, /* everybody honest who is there ends with all that it wants */
  SHOAL_SWARM_PURE,     /* no chunk is kept, given on or reported as here that is not what it should be */
  SHOAL_SWARM_SLOTS,    /* nobody sends to more peers at a time than it has slots */
  SHOAL_SWARM_MEMORY,   /* questions, letters under way and neighbours stay within bounds */
  SHOAL_SWARM_UPLOAD, /* where nothing went wrong, and there are chunks and slots enough to share (16, 2), the
                           server has sent at most 1.5 copies */
  SHOAL_SWARM_RULES,
} shoal_swarm_rule;

typedef enum shoal_swarm_sabotage {
  SHOAL_SWARM_INTACT,
  SHOAL_SWARM_GULLIBLE, /* what arrives is not compared */
  SHOAL_SWARM_EAGER,    /* "sent" is said at once */
  SHOAL_SWARM_HOLE,     /* one chunk never gets through */
  SHOAL_SWARM_SPOILT,   /* all ask the server for certain chunks, and say that nobody else gives them */
  SHOAL_SWARM_ECHO,     /* every letter of a member is sent a hundred times */
  SHOAL_SWARM_SABOTAGES,
} shoal_swarm_sabotage;

typedef enum shoal_swarm_way { SHOAL_SWARM_PEERS, SHOAL_SWARM_TREE, SHOAL_SWARM_SERVER } shoal_swarm_way;

typedef struct shoal_swarm_sim {
  uint64_t seed;
  bool drawn; /* all that follows is, but the sabotage */
  uint32_t members;
  uint64_t bytes, chunk_bytes;
  double rate;        /* bytes a second, up and down */
  double server_rate; /* 0: the same */
  double latency_s;
  bool mixed;          /* rates of members by shoal_swarm_mix */
  double churn;        /* this share of the members leaves during the transfer, and as many join */
  double killed;       /* this share leaves at the same moment, when half of the data has arrived */
  double corrupt;      /* this share sends corrupted chunks */
  bool on_demand;      /* every chunk is needed now, as units of a training ask; member 1 cannot be reached */
  bool server_leaves;  /* once every chunk is with an honest member */
  uint32_t neighbours; /* 0: 40 */
  uint32_t slots;      /* 0: 12 */
  uint32_t pieces;     /* of a chunk on a link; 0: 4 */
  shoal_swarm_way way;
  shoal_swarm_sabotage sabotage;
} shoal_swarm_sim;

typedef struct shoal_swarm_result {
  shoal_swarm_rule violated;
  char text[256]; /* what was wrong */
  char what[256]; /* the swarm in a line */
  uint32_t members, finished, left, joined, exposed;
  uint32_t chunks;
  double first_s, median_s, last_s; /* until a member had everything, from its joining */
  double bound_s; /* no way could be faster, for the last of those who were there from the start: the data
                     leaves the server once, comes down the slowest link, and is sent as often as it comes */
  double copies;  /* that the server sent */
  double sent_bytes, small_bytes; /* by all; of these, in small messages */
  uint64_t twice, bad, late, not_now, strange, messages;
} shoal_swarm_result;

enum { SHOAL_SWARM_MEMBERS_MAX = 20000 };

void shoal_swarm_live(const shoal_swarm_sim *config, shoal_swarm_result *result);
const char *shoal_swarm_rule_name(shoal_swarm_rule rule);

/* Broadband as in "Analyzing and Improving a BitTorrent Network's Performance Mechanisms" (Bharambe, Herley,
 * Padmanabhan, INFOCOM 2006), after measurements of Gnutella's members, with the figures that its simulator
 * is started with: bits a second down and up, and the share of members that have them. */
typedef struct shoal_swarm_mix {
  double share, down_bits_s, up_bits_s;
} shoal_swarm_mix;
enum { SHOAL_SWARM_MIXES = 4 };
extern const shoal_swarm_mix shoal_swarm_mixes[SHOAL_SWARM_MIXES];

#endif
