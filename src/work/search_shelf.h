/* search_shelf.h: the searches that a trusted worker has open, each with its table and brief.
 *
 * Units that come through a queue are of any search of any server. To open one takes its data, which comes by
 * HTTP in chunks into the cache (data/chunk_store.h) and travels once, and a pass over the table; so the few
 * that were used last are kept. A server that is away is waited for.
 *
 * Ownership: create, then destroy, when all that was taken is given back; texts are borrowed until then.
 * Threads: any for take and give. */
#ifndef SHOAL_WORK_SEARCH_SHELF_H
#define SHOAL_WORK_SEARCH_SHELF_H

#include "work/search_worker.h"

typedef struct shoal_search_shelf shoal_search_shelf;

typedef struct shoal_search_shelf_config {
  const char *name; /* of this worker */
  const char *cache, *data_dir;
  uint64_t cache_bytes_max;
  uint32_t threads;
  shoal_worker_count *count;
  shoal_notes notes;
  const volatile sig_atomic_t *stop;
} shoal_search_shelf_config;

shoal_status shoal_search_shelf_create(shoal_search_shelf **out, const shoal_search_shelf_config *config,
                                       shoal_error *err);
void shoal_search_shelf_destroy(shoal_search_shelf *shelf); /* NULL is fine */

/* The worker for a job of that server, whose data is that set; it is opened where it is not, and lent until
 * it is given back. SHOAL_NOT_FOUND: the search is over. SHOAL_STOPPED: `stop` was set. */
shoal_status shoal_search_shelf_take(shoal_search_shelf *shelf, const shoal_link *link, uint64_t job,
                                     const char *data, shoal_search_worker **out, shoal_error *err);
void shoal_search_shelf_give(shoal_search_shelf *shelf, shoal_search_worker *worker, bool over);

/* Whether one is being opened. */
bool shoal_search_shelf_opens(shoal_search_shelf *shelf);
/* Bytes of data that came since it was created. */
uint64_t shoal_search_shelf_fetched(shoal_search_shelf *shelf);

#endif
