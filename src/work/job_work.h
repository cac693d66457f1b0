/* job_work.h: work for one job of a server, in a thread of its own, from its data to its end.
 *
 * The thread joins the swarm that has the job's data (cluster/swarm_node.h) and keeps what it gets in the cache
 * (data/chunk_store.h), computes units (cluster/worker_node.h; search_worker.h), and gives others what it has,
 * until the job is over, something is wrong that waiting will not mend, or it is told to leave. A job that
 * trains an agent has no data, and no swarm (agent_worker.h).
 *
 * Ownership: start, then end; the config's texts are copied, the link and the count are borrowed until
 * the end. Threads: one caller; the thread inside is its own. */
#ifndef SHOAL_WORK_JOB_WORK_H
#define SHOAL_WORK_JOB_WORK_H

#include "cluster/worker_node.h"
#include "wire/link.h"

typedef struct shoal_job_work shoal_job_work;

/* What units of the job are. */
typedef enum shoal_job_work_kind {
  SHOAL_JOB_WORK_TRAIN,
  SHOAL_JOB_WORK_SEARCH,
  SHOAL_JOB_WORK_AGENT
} shoal_job_work_kind;

typedef struct shoal_job_work_config {
  const shoal_link *link;
  uint64_t job;
  uint64_t number;    /* that the server has given it */
  const char *worker; /* its name */
  shoal_job_work_kind kind;
  const char *data; /* the set's name on the server; "" where there is none */
  uint32_t threads;
  const char *cache, *data_dir; /* data_dir may be NULL */
  uint64_t cache_bytes_max;
  bool alone;    /* gets its data from the server alone, and gives it to nobody */
  bool all_data; /* fetches all of it, not only what its units need */
  shoal_worker_count *count;
} shoal_job_work_config;

typedef enum shoal_job_work_phase {
  SHOAL_JOB_WORK_FETCHING, /* until its first unit is computed, while data is missing */
  SHOAL_JOB_WORK_COMPUTING,
  SHOAL_JOB_WORK_OVER
} shoal_job_work_phase;

enum { SHOAL_JOB_WORK_NOTE_MAX = 256 };

typedef struct shoal_job_work_view {
  shoal_job_work_phase phase;
  uint64_t bytes_done, bytes_all;             /* of the data that it wants */
  bool is_here;                               /* all of the set was here before it began */
  uint64_t from_server, from_peers, to_peers; /* bytes of data, since it began */
  uint64_t notes;                             /* how many there were so far */
  char note[SHOAL_JOB_WORK_NOTE_MAX];         /* the last one */
  shoal_status status; /* once it is over: SHOAL_OK when the job was, or it was told to leave */
  shoal_error error;
  bool job_over; /* and whether the job was, before it was told to leave */
} shoal_job_work_view;

shoal_status shoal_job_work_start(shoal_job_work **out, const shoal_job_work_config *config,
                                  shoal_error *err);
void shoal_job_work_look(shoal_job_work *job_work, shoal_job_work_view *out);
/* It ends soon: with the unit that is being computed. */
void shoal_job_work_leave(shoal_job_work *job_work);
void shoal_job_work_end(shoal_job_work *job_work); /* leaves, and waits for it */

#endif
