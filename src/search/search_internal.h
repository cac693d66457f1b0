/* search_internal.h: what search.c, search_record.c and search_end.c share. */
#ifndef SHOAL_SEARCH_SEARCH_INTERNAL_H
#define SHOAL_SEARCH_SEARCH_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "search/search.h"

enum { SHOAL_SEARCH_LIMITS_MAX = 256 };

/* How many trials there may be, from when so many units had been given out. */
typedef struct shoal_search_limit {
  uint64_t units, trials;
} shoal_search_limit;

struct shoal_search {
  const shoal_search_options *options;
  shoal_search_calls calls;
  const volatile sig_atomic_t *stop; /* the caller's */

  shoal_brief brief;
  shoal_board_config rules;                           /* its space is the brief's */
  shoal_search_limit limits[SHOAL_SEARCH_LIMITS_MAX]; /* the first is the scheduler's own */
  uint32_t limits_count;
  char *test; /* a file of its own, or NULL */
  shoal_bench *bench;
  shoal_board *board;
  shoal_text states; /* FOLDER/trials */

  int lock;
  FILE *journal; /* or NULL: the caller has one of its own */

  double begun;
  volatile sig_atomic_t halt; /* units stop */
  bool waits_for_room;        /* a disk is full */
  double room_told;           /* when that was said last; 0: never */
  pthread_mutex_t mutex;      /* for everything below, the board and the journal */
  pthread_cond_t news;
  uint32_t busy;  /* threads that have not ended */
  bool exhausted; /* no unit will ever come any more */
  uint64_t finished_units;
  uint64_t best; /* the trial; 0: none yet */
  shoal_status status;
  shoal_error failure; /* of the first thread that failed */
};

/* ---- search_record.c: the folder ---- */

/* Makes a new folder's content; what an earlier search left there is moved aside. */
shoal_status shoal_search_begin_record(shoal_search *s, shoal_error *err);
/* Brief and rules of the search in the folder. */
shoal_status shoal_search_read_record(shoal_search *s, shoal_error *err);
/* The results in the journal, onto the new board; the journal is open for more. */
shoal_status shoal_search_replay(shoal_search *s, shoal_error *err);
/* After that: as many trials as the options say, from now on. */
shoal_status shoal_search_extend(shoal_search *s, shoal_error *err);
shoal_status shoal_search_keep(shoal_search *s, const shoal_unit *unit, const char *worker,
                               const shoal_trial_result *result, shoal_error *err);
shoal_status shoal_search_lock(shoal_search *s, shoal_error *err);
/* FOLDER/NAME, as a whole. */
shoal_status shoal_search_write_file(const shoal_search *s, const char *name, const shoal_text *text,
                                     shoal_error *err);

/* ---- search_insight.c ---- */

/* FOLDER/insight.json and trials.csv; rows, all or those of a list, are to judge by. */
shoal_status shoal_search_write_insight(const shoal_search *s, const shoal_predictor *predictor,
                                        const shoal_search_end *end, const shoal_rows *rows,
                                        const shoal_row_list *list, shoal_error *err);

#endif
