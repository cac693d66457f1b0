/* search_worker.h: computes units of a server's search, over HTTP.
 *
 * The table is here already. Threads take units (POST units), get the trial's state where there is one,
 * train, put the new state, and report; a thread beside them beats for all that is being computed, and stops
 * what the server does not want any more. A server that goes away is waited for: what was computed is
 * reported when it is back.
 *
 * Ownership: open, then close; link and texts are borrowed until then. Threads: any for unit; one for the
 * rest. */
#ifndef SHOAL_WORK_SEARCH_WORKER_H
#define SHOAL_WORK_SEARCH_WORKER_H

#include <signal.h>

#include "cluster/worker_node.h"
#include "wire/link.h"
#include "wire/notes.h"

typedef struct shoal_search_worker shoal_search_worker;

typedef struct shoal_search_worker_config {
  const shoal_link *link;
  uint64_t job;
  const char *name;   /* of this worker */
  const char *table;  /* the CSV file; of two, the first */
  const char *folder; /* for states of trials; made, and removed in the end */
  uint32_t threads;
  shoal_worker_count *count; /* units and so on are added there */
  shoal_notes notes;
  const volatile sig_atomic_t *stop;
} shoal_search_worker_config;

/* Asks for the brief, as often as it takes, and reads the table. */
shoal_status shoal_search_worker_open(shoal_search_worker **out, const shoal_search_worker_config *config,
                                      shoal_error *err);
void shoal_search_worker_close(shoal_search_worker *worker);

/* Until the search is over (SHOAL_OK), `stop` is set (SHOAL_STOPPED), or something is wrong that waiting will
 * not mend. */
shoal_status shoal_search_worker_run(shoal_search_worker *worker, shoal_error *err);

/* One unit, as POST units gives it; also of one that came another way. SHOAL_OK also when the server did not
 * want the result any more; SHOAL_NOT_FOUND: the search is over. */
shoal_status shoal_search_worker_unit(shoal_search_worker *worker, const char *json, size_t length,
                                      shoal_error *err);

#endif
