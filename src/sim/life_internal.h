/* life_internal.h: what the files of a life share: its nodes, their connections, its plan.
 *
 *   life.c       the plan, drawn from the seed; the loop
 *   nodes.c      what all nodes do: start, stop, connections, beats, inbox, posting
 *   roles.c      chief, owner, worker: drivers of the cores, as thin as real ones
 *   faults.c     what goes wrong
 *   lies.c       what liars do
 *   sabotage.c   what is broken on purpose
 *   check*.c     what must hold
 *
 * A node handles one happening at a time. While it writes to its disk or works on a message it is
 * busy: happenings wait in its inbox, and what its core wants to say stays in the outbox until it
 * is free again. So nothing is said before what it rests on is kept. */
#ifndef SHOAL_SIM_LIFE_INTERNAL_H
#define SHOAL_SIM_LIFE_INTERNAL_H

#include "proto/beat.h"
#include "proto/chief.h"
#include "proto/owner.h"
#include "proto/worker.h"
#include "sim/check.h"
#include "sim/disk.h"
#include "sim/job.h"
#include "sim/life.h"

typedef struct shoal_life shoal_life;

enum { SHOAL_SIM_TICK_MS = 250, SHOAL_SIM_LIARS_MAX = 4 };

typedef enum shoal_sim_role { SHOAL_SIM_CHIEF, SHOAL_SIM_OWNER, SHOAL_SIM_WORKER } shoal_sim_role;

/* A connection that a node dials again whenever it is gone. */
typedef struct shoal_sim_route {
  uint32_t to;
  uint64_t connection; /* 0: none, not even dialling */
  bool open;
  double retry_at, wait_s;
} shoal_sim_route;

/* Both ends of a connection; end 0 dialled. */
typedef struct shoal_sim_line {
  shoal_beat beat[2];
  bool open[2];
  uint32_t role, slice; /* as HELLO told */
  shoal_check_line check;
} shoal_sim_line;

/* What a worker computes. */
typedef struct shoal_sim_task {
  bool running;
  shoal_work_unit unit;
  const float *weights;
} shoal_sim_task;

typedef struct shoal_sim_node {
  uint32_t number;
  shoal_sim_role role;
  uint32_t index; /* an owner's slice, a worker's number */
  char name[24];
  bool up, gone, joined; /* gone: will not come back; joined: after the start */
  union {
    shoal_chief *chief;
    shoal_owner *owner;
    shoal_worker *worker;
  };
  double clock_shift, clock_last;
  shoal_sim_route *routes;
  uint32_t routes_count;
  uint64_t *lines; /* open connections */
  uint32_t lines_count, lines_size;
  /* busy */
  bool busy, writing;
  double busy_s; /* asked for during this happening */
  double write_began, write_s;
  shoal_happening *inbox; /* a ring */
  uint32_t inbox_first, inbox_count, inbox_size;
  shoal_disk disk;
  /* a worker */
  double slow;
  shoal_sim_lie lie;
  bool auditor;
  bool lying;                                /* in the unit at hand */
  uint64_t units_done, lies_told, first_lie; /* first_lie: units_done then */
  uint64_t lies_seen, lies_generation; /* reports of lies that reached the chief in time, in one generation */
  bool banned;
  shoal_sim_task task;
  uint64_t note_version, note_digest; /* of what it computed last */
  /* the chief */
  double tick_at; /* when it will be woken */
  bool ticked;    /* just now */
  bool resting;
  uint64_t rest_version;
  bool pulled[SHOAL_SIM_OWNERS_MAX]; /* which slices are here of the rest at hand */
  uint32_t pulled_count;
  uint64_t safe_pending; /* a version that is safe once the write is done, plus 1 */
  uint64_t recorded;     /* that is being written */
  shoal_blob *pulling[SHOAL_SIM_OWNERS_MAX],
      *held[SHOAL_SIM_OWNERS_MAX]; /* slices of the rest at hand, and of the last */
  uint64_t held_version;
} shoal_sim_node;

/* Everything about a life that does not change while it is lived. */
typedef struct shoal_sim_plan {
  shoal_sim_job_config job;
  uint32_t owners, workers, workers_first, workers_max, units;
  shoal_world_link server, worker;
  shoal_world_rules rules;
  shoal_beat_rules beat;
  shoal_lease_rules leases;
  double part_s, part_spread, byte_s, eval_s;
  double write_s, slice_write_s; /* a record of the chief's, of an owner's */
  double lost_s, save_s;
  double fault_gap_s, calm_s, limit_s; /* between faults; when they end; when the life must have ended */
  double rests;                        /* share of the chief's ticks that ask for a rest */
  uint32_t liars, slow;
  double full_s; /* disks of parameter servers are full so long, then not, by turns; 0: never */
  bool quiet, slow_disks;
  bool guarded, audited;
  double recheck;
  shoal_sim_lie lies[SHOAL_SIM_LIARS_MAX]; /* of workers 1, 2 ... */
} shoal_sim_plan;

struct shoal_life {
  shoal_sim_config config;
  shoal_sim_plan plan;
  shoal_sim_job *job;
  shoal_world *world;
  shoal_sim_node *nodes; /* chief, owners, workers */
  uint32_t nodes_count;
  shoal_sim_line *lines; /* by number of connection - 1 */
  uint64_t lines_size;
  shoal_check check;
  shoal_sim_report *report;
  bool ended, calm;
  shoal_standing *standings; /* of workers, as a server would keep them */
  uint32_t partitions;       /* going on */
};

/* What shoal_world_wake is asked for with. */
enum {
  SHOAL_TAG_TICK = 1, /* connections and beats */
  SHOAL_TAG_CHIEF,    /* the chief's own deadline */
  SHOAL_TAG_FREE,     /* no longer busy */
  SHOAL_TAG_COMPUTED,
  SHOAL_TAG_GO_ON, /* the driver has what it wanted of a rest */
  /* of nobody, with a node's number above */
  SHOAL_TAG_FAULT,
  SHOAL_TAG_RESTART,
  SHOAL_TAG_HEAL,
  SHOAL_TAG_RECOVER, /* from being slow */
  SHOAL_TAG_CALM,
};
#define SHOAL_TAG(kind, node) ((uint64_t)(kind) | (uint64_t)(node) << 32)

/* ---- nodes.c ---- */
shoal_sim_node *shoal_life_node(shoal_life *life, uint32_t number);
double shoal_life_clock(shoal_life *life, shoal_sim_node *node); /* the node's own, never going back */
shoal_sim_line *shoal_life_line(shoal_life *life, uint64_t connection);
void shoal_life_start_node(shoal_life *life, shoal_sim_node *node);
void shoal_life_stop_node(shoal_life *life, shoal_sim_node *node, bool silently);
/* A happening of a node: now, or when it is free. Takes it over. */
void shoal_life_happens(shoal_life *life, shoal_happening *happening);
/* Asks for time before the node goes on: of a processor, or of the disk. */
void shoal_life_work(shoal_sim_node *node, double seconds);
void shoal_life_write(shoal_life *life, shoal_sim_node *node, uint64_t name, const void *bytes,
                      size_t length);
void shoal_life_send(shoal_life *life, shoal_sim_node *node, uint64_t connection, shoal_packet packet);
/* Closes a connection and tells the core; nothing when it is closed. */
void shoal_life_hang_up(shoal_life *life, shoal_sim_node *node, uint64_t connection);
shoal_outbox *shoal_life_outbox(shoal_sim_node *node);
void shoal_life_log(shoal_life *life, const shoal_sim_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- roles.c ---- */
void shoal_role_start(shoal_life *life, shoal_sim_node *node);
void shoal_role_stop(shoal_sim_node *node);
void shoal_role_opened(shoal_life *life, shoal_sim_node *node, uint64_t connection);
void shoal_role_gone(shoal_life *life, shoal_sim_node *node, uint64_t connection);
void shoal_role_receive(shoal_life *life, shoal_sim_node *node, uint64_t connection, shoal_packet *packet);
void shoal_role_woken(shoal_life *life, shoal_sim_node *node, uint64_t tag);
void shoal_role_tick(shoal_life *life, shoal_sim_node *node);
/* After every call of a core: what it asks its driver for. */
void shoal_role_drive(shoal_life *life, shoal_sim_node *node);
void shoal_role_written(shoal_life *life, shoal_sim_node *node);

/* ---- faults.c ---- */
void shoal_faults_start(shoal_life *life);
void shoal_faults_woken(shoal_life *life, uint64_t tag);
void shoal_faults_write(shoal_life *life, shoal_sim_node *node); /* one has begun */
bool shoal_faults_full(shoal_life *life,
                       const shoal_sim_node *node); /* there is no room for one; counts it */

/* ---- lies.c ---- */
/* A worker has computed a unit, and says what it says of it. */
void shoal_lies_result(shoal_life *life, shoal_sim_node *node, shoal_work_result *result);
/* What a liar is about to say. */
void shoal_lies_letter(shoal_life *life, shoal_sim_node *node, uint64_t connection, shoal_packet *packet);
uint64_t shoal_lies_who(const shoal_sim_node *node);
/* What a server would keep: standings outlive the chief. */
void shoal_lies_keep(shoal_life *life, const shoal_standing *standing);

/* ---- sabotage.c ---- */
shoal_disk_care shoal_sabotage_care(const shoal_life *life, const shoal_sim_node *node);
bool shoal_sabotage_keeps(const shoal_life *life, const shoal_chief_event *event);
/* What a node is about to say; false: it never says it. */
bool shoal_sabotage_letter(shoal_life *life, shoal_sim_node *node, uint64_t connection, shoal_packet *packet);
void shoal_sabotage_outbox(shoal_life *life, shoal_sim_node *node);

#endif
