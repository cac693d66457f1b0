/* search_log.h: a search as event files for TensorBoard, whose page "HParams" compares trials.
 *
 *   FOLDER/          the experiment: which settings there are, and by what trials are judged
 *   FOLDER/trial-7/  trial 7: its settings, loss and score after every epoch, its best score, and how it ended
 *
 * A trial that is trained further gets another file in its folder, with what is new; how many epochs are there is in
 * FOLDER/trial-7/epochs. A search that goes on with --resume writes what is missing.
 *
 * Ownership: open, then close; the search is borrowed. Threads: one at a time. */
#ifndef SHOAL_CLI_SEARCH_LOG_H
#define SHOAL_CLI_SEARCH_LOG_H

#include "search/search.h"

typedef struct shoal_search_log shoal_search_log;

shoal_status shoal_search_log_open(shoal_search_log **out, const char *folder, const shoal_search *search,
                                   shoal_error *err);
void shoal_search_log_close(shoal_search_log *log); /* may be NULL */
/* A trial has finished a rung. */
shoal_status shoal_search_log_trial(shoal_search_log *log, const shoal_board_trial *trial, shoal_error *err);

#endif
