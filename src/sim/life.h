/* life.h: one whole training of simulated machines, from its first HELLO to its last round.
 *
 * A life runs the real cores of a chief, of parameter servers and of workers in a virtual world
 * (world.h) full of faults, all of it drawn from one seed: the same seed is the same life, on every
 * machine. Checkers (check.h) watch what the cores say and do; the first that finds something wrong
 * ends the life, and the report says what it saw.
 *
 * A `sabotage` breaks one rule on purpose, between a core and the world around it, so that each
 * checker can be shown to catch what it is there for.
 *
 * Some lives are guarded: an auditor is among their nodes, and liars of several kinds may be among their workers.
 *
 * With costs there are no faults: the life measures how long a training takes in that world.
 *
 * Ownership: everything is the caller's. Threads: lives are independent of each other. */
#ifndef SHOAL_SIM_LIFE_H
#define SHOAL_SIM_LIFE_H

#include "base/text.h"
#include "proto/mode.h"
#include "sim/world.h"

typedef enum shoal_sim_checker {
  SHOAL_SIM_NOTHING,   /* is wrong */
  SHOAL_SIM_SAMPLES,   /* every part of a round is in it once */
  SHOAL_SIM_LEASES,    /* a lease has one holder; no worker has two of one unit */
  SHOAL_SIM_VERSIONS,  /* versions grow within a generation, generations always */
  SHOAL_SIM_BITS,      /* every version is what one machine makes */
  SHOAL_SIM_STALENESS, /* nothing is applied that was computed from too old a version */
  SHOAL_SIM_DIFFERS,   /* results of one unit that differ are told, and only those */
  SHOAL_SIM_DURABLE,   /* a version that was told to be safe is never lost */
  SHOAL_SIM_DEADLOCK,  /* when the faults are over, the training ends */
  SHOAL_SIM_MEMORY,    /* outboxes, connections, lease book and disks stay within bounds */
  SHOAL_SIM_GUARD,     /* no newcomer's lie counts, who always lies is banned, nobody honest is */
  SHOAL_SIM_CHECKERS,
} shoal_sim_checker;

typedef enum shoal_sim_fault {
  SHOAL_FAULT_CUT,       /* a connection breaks */
  SHOAL_FAULT_CRASH,     /* a process dies, and starts again later */
  SHOAL_FAULT_POWER,     /* a machine loses its power: nobody is told */
  SHOAL_FAULT_TORN,      /* one of these two, while something is being written */
  SHOAL_FAULT_PARTITION, /* some nodes cannot reach the others for a while */
  SHOAL_FAULT_SLOW,      /* a worker computes 2 to 50 times as slowly for a while */
  SHOAL_FAULT_CLOCK,     /* a node's clock jumps */
  SHOAL_FAULT_LEAVE,     /* a worker leaves, for good or for a while */
  SHOAL_FAULT_JOIN,      /* a worker joins in the middle */
  SHOAL_FAULT_LIAR,      /* a worker that computes wrong results, in every unit */
  SHOAL_FAULT_TWICE,     /* a message comes twice */
  SHOAL_FAULT_LATE,      /* a message is overtaken */
  SHOAL_FAULT_FULL,      /* a parameter server's disk does not take a version */
  SHOAL_FAULTS,
} shoal_sim_fault;

/* How a worker lies. All but the first two only in guarded lives. */
typedef enum shoal_sim_lie {
  SHOAL_LIE_NONE,
  SHOAL_LIE_ALWAYS,    /* in every unit */
  SHOAL_LIE_SOMETIMES, /* in one of ten */
  SHOAL_LIE_TRUSTED,   /* in every unit, once it is proven */
  SHOAL_LIE_LAST,      /* in the last three rounds of the training */
  SHOAL_LIE_PAIR,      /* in every unit, and all such workers tell the same lie */
  SHOAL_LIE_DIGEST,    /* reports what is right, and sends something else */
  SHOAL_LIE_STRANGER,  /* works honestly, and sends contributions for which it has no lease beside */
  SHOAL_LIES,
} shoal_sim_lie;

typedef enum shoal_sim_sabotage {
  SHOAL_SABOTAGE_NONE,
  SHOAL_SABOTAGE_PART_TWICE,      /* a contribution is also sent as its neighbour's, in lives with counters */
  SHOAL_SABOTAGE_TWO_HOLDERS,     /* a lease is also given to another worker */
  SHOAL_SABOTAGE_SAME_GENERATION, /* the chief does not keep that it went back */
  SHOAL_SABOTAGE_FLIP_BIT,        /* a contribution arrives with a bit changed */
  SHOAL_SABOTAGE_OLD_WEIGHTS,     /* leases allow a version that is too old */
  SHOAL_SABOTAGE_BLIND,           /* the chief sees the same digest everywhere */
  SHOAL_SABOTAGE_NO_FLUSH,        /* parameter servers do not flush what they keep */
  SHOAL_SABOTAGE_SHORT_MEMORY,    /* parameter servers keep the newest version only */
  SHOAL_SABOTAGE_IN_PLACE,        /* the chief writes over its last record */
  SHOAL_SABOTAGE_LOST_DONE,       /* reports of one unit never arrive */
  SHOAL_SABOTAGE_FLOOD,           /* the chief says everything a hundred times */
  SHOAL_SABOTAGE_ECHO,            /* workers ask for weights, and again, before there was an answer */
  SHOAL_SABOTAGE_GULLIBLE,        /* the chief takes every stranger for proven, in guarded lives */
  SHOAL_SABOTAGE_SLANDER,         /* the auditor lies, in guarded lives */
  SHOAL_SABOTAGES,
} shoal_sim_sabotage;

/* A world to measure in. */
typedef struct shoal_sim_costs {
  uint32_t owners, parts;
  uint64_t rounds;                 /* of one epoch */
  shoal_world_link server, worker; /* links of chief and parameter servers, and of workers */
  double part_s;                   /* computing one part; in local mode one unit */
  double part_spread;              /* each unit takes up to this share longer */
  double push_bytes, pull_bytes;   /* of a contribution and of the weights; 0: what they are */
  double byte_s;                   /* a parameter server's time for a byte of a contribution */
} shoal_sim_costs;

typedef struct shoal_sim_config {
  uint64_t seed;
  uint32_t workers;       /* 0: drawn */
  uint32_t owners;        /* 0: drawn */
  const shoal_mode *mode; /* NULL: drawn */
  bool slow_disks;        /* false: drawn, one life in twenty */
  bool guarded;           /* false: drawn, one life in four */
  shoal_sim_lie lie;      /* in guarded lives, of workers 1 .. liars; NONE: drawn */
  uint32_t liars;
  double recheck; /* in audited lives: the share of known workers' units that is checked; 0: drawn, 1 or 0 */
  bool calm;      /* nothing goes wrong but lies; it ends when all liars are banned */
  uint64_t
      agreed; /* of workers 1 .. proven, or with proven 0 of all, when the life begins: 0 for newcomers */
  uint32_t proven;
  uint64_t end; /* rounds; 0: drawn */
  shoal_sim_sabotage sabotage;
  const shoal_sim_costs *costs; /* NULL: drawn, and faults */
  shoal_text *log;              /* what happened, a line each; or NULL */
  bool trace;                   /* messages too */
} shoal_sim_config;

typedef struct shoal_sim_report {
  shoal_sim_checker violated;
  char text[512]; /* what was wrong */
  char what[160]; /* the life in a line: mode, nodes, rounds */
  uint32_t workers, owners;
  uint64_t faults[SHOAL_FAULTS];
  uint64_t backs; /* times that all went back to a safe version, starts of the chief included */
  uint64_t rounds, leases, differs;
  uint64_t again; /* leases given on a unit that somebody already had */
  uint64_t messages, bytes;
  double virtual_s; /* until the last round was safe */
  /* guarded lives */
  bool guarded;
  uint64_t units, checks;                /* that counted; leases given to check somebody else's */
  uint64_t lies, lies_used, lies_stayed; /* told; that counted; that were not undone before the end */
  uint64_t banned, liars;
  uint64_t caught_after; /* units of worker 1, from its first lie on, when it was banned; 0: it was not */
} shoal_sim_report;

enum { SHOAL_SIM_WORKERS_MAX = 20000 };

void shoal_sim_live(const shoal_sim_config *config, shoal_sim_report *report);

const char *shoal_sim_checker_name(shoal_sim_checker checker);
const char *shoal_sim_fault_name(shoal_sim_fault fault);

#endif
