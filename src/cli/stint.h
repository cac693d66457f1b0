/* stint.h: work for one job of a server, in a thread of its own, from its data to its end.
 *
 * The thread joins the swarm that has the job's data (cluster/swarm_node.h) and keeps what it gets in the cache
 * (data/chunk_store.h), computes units (cluster/worker_node.h; search_worker.h), and gives others what it has,
 * until the job is over, something is wrong that waiting will not mend, or it is told to leave. A job that
 * trains an agent has no data, and no swarm (agent_worker.h).
 *
 * Ownership: start, then end; the config's texts are copied, the link and the count are borrowed until
 * the end. Threads: one caller; the thread inside is the stint's own. */
#ifndef SHOAL_CLI_STINT_H
#define SHOAL_CLI_STINT_H

#include "cluster/worker_node.h"
#include "wire/link.h"

typedef struct shoal_stint shoal_stint;

/* What units of the job are. */
typedef enum shoal_stint_kind { SHOAL_STINT_TRAIN, SHOAL_STINT_SEARCH, SHOAL_STINT_AGENT } shoal_stint_kind;

typedef struct shoal_stint_config {
  const shoal_link *link;
  uint64_t job;
  uint64_t number;    /* that the server has given it */
  const char *worker; /* its name */
  shoal_stint_kind kind;
  const char *data; /* the set's name on the server; "" where there is none */
  uint32_t threads;
  const char *cache, *data_dir; /* data_dir may be NULL */
  uint64_t cache_bytes_max;
  bool alone;    /* gets its data from the server alone, and gives it to nobody */
  bool all_data; /* fetches all of it, not only what its units need */
  shoal_worker_count *count;
} shoal_stint_config;

typedef enum shoal_stint_phase {
  SHOAL_STINT_FETCHING, /* until its first unit is computed, while data is missing */
  SHOAL_STINT_COMPUTING,
  SHOAL_STINT_OVER
} shoal_stint_phase;

enum { SHOAL_STINT_NOTE_MAX = 256 };

typedef struct shoal_stint_view {
  shoal_stint_phase phase;
  uint64_t bytes_done, bytes_all;             /* of the data that it wants */
  bool is_here;                               /* all of the set was here before it began */
  uint64_t from_server, from_peers, to_peers; /* bytes of data, since it began */
  uint64_t notes;                             /* how many there were so far */
  char note[SHOAL_STINT_NOTE_MAX];            /* the last one */
  shoal_status status; /* once it is over: SHOAL_OK when the job was, or it was told to leave */
  shoal_error error;
  bool job_over; /* and whether the job was, before it was told to leave */
} shoal_stint_view;

shoal_status shoal_stint_start(shoal_stint **out, const shoal_stint_config *config, shoal_error *err);
void shoal_stint_look(shoal_stint *stint, shoal_stint_view *out);
/* It ends soon: with the unit that is being computed. */
void shoal_stint_leave(shoal_stint *stint);
void shoal_stint_end(shoal_stint *stint); /* leaves, and waits for it */

#endif
