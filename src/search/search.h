/* search.h: a search: from a CSV file to a model that takes raw rows.
 *
 * Units (board.h), each a trial's next rung, are taken and reported by threads of this process
 * (shoal_search_run), or by workers anywhere for whom a server does it. What is finished is in the folder at
 * once:
 *
 *   FOLDER/brief.json        what workers need (trial.h)
 *   FOLDER/search.json       how trials are chosen
 *   FOLDER/journal.jsonl     the result of every unit, one a line
 *   FOLDER/trials/7.safetensors   the state of trial 7, as long as it can be of use: it may continue, or is one of
 *                            the best that are trained to their end (board.h)
 *   FOLDER/insight.json, trials.csv   at the end: what was learnt, and all trials
 *
 * so that a search which was stopped or killed continues, to the same trials, and one that has ended can be
 * extended. At the end the best trials together (ensemble.h) become a predictor.
 *
 * The budget is for everything, from reading to the last score. When it runs out, units at hand are stopped;
 * what they had begun counts when the search is resumed.
 *
 * Ownership: open, then close; options are borrowed until then. Threads: any for take, beat, done, fail and
 * look; one for all else. Calls come one at a time, from whatever thread something happened in. */
#ifndef SHOAL_SEARCH_SEARCH_H
#define SHOAL_SEARCH_SEARCH_H

#include "search/board.h"
#include "search/predictor.h"

/* Where the results of units are kept. */
typedef struct shoal_search_journal {
  void *self;
  /* A result that counts from now on, for good. */
  shoal_status (*keep)(void *self, const shoal_unit *unit, const char *worker,
                       const shoal_trial_result *result, shoal_error *err);
  /* All that were kept, in any order, each to `take`, whose failure ends it. */
  shoal_status (*replay)(void *self,
                         shoal_status (*take)(void *to, uint64_t unit, const shoal_trial_result *result,
                                              shoal_error *err),
                         void *to, shoal_error *err);
} shoal_search_journal;

typedef struct shoal_search_options {
  const char *path;
  const char *test; /* a file to judge the end by; NULL: test_share of the rows */
  const char *target;
  const shoal_problem *problem;   /* NULL: by the target */
  const shoal_score_kind *metric; /* NULL: the usual one */
  shoal_dialect_said dialect;
  const shoal_column_said *columns;
  size_t columns_count;
  const char *space;       /* a text as in space.h; or NULL */
  const char *space_name;  /* what errors call it */
  const char *time_column; /* parts by time; or NULL */
  shoal_scheduler_kind scheduler;
  uint32_t folds;     /* 0: 5 for tables of less than 2,000 rows, else hold-out */
  double valid_share; /* 0: a fifth */
  double test_share;  /* negative: a fifth; 0: none */
  uint32_t epochs;    /* 0: by the rows */
  uint64_t trials;    /* 0: as many as the time allows */
  double seconds;     /* 0: no limit */
  uint32_t threads;
  uint32_t window; /* 0: 16 */
  uint64_t seed;
  const char *folder;
  bool resume;                         /* continue what is in the folder */
  const shoal_search_journal *journal; /* NULL: FOLDER/journal.jsonl */
  double lease_s;                      /* of workers that may be lost; 0: there are none such */
} shoal_search_options;

typedef enum shoal_search_phase {
  SHOAL_SEARCH_READS,
  SHOAL_SEARCH_TRIES,
  SHOAL_SEARCH_GATHERS, /* chooses members, scores the test rows */
} shoal_search_phase;

typedef struct shoal_search_view {
  shoal_search_phase phase;
  double share;           /* of reading, or of the budget; NaN: not known */
  double seconds, left_s; /* since the beginning; NaN: no limit */
  uint64_t trials, finished_units;
  uint64_t best; /* trial; 0: none yet */
  double best_score;
} shoal_search_view;

typedef struct shoal_search_calls {
  void *self;
  void (*warn)(void *self, const char *text);   /* of columns: what stands in the profile, too */
  void (*remark)(void *self, const char *text); /* of rows and trials */
  /* Of a new search: what the columns are, before anything that may be wrong with them. */
  void (*read)(void *self, const shoal_profile *profile, uint32_t target);
  void (*progress)(void *self, const shoal_search_view *view); /* about ten times a second */
  /* A trial has finished a rung. */
  void (*finished)(void *self, const shoal_board_trial *trial, bool best);
} shoal_search_calls;

typedef struct shoal_search shoal_search;

/* Reads the table, chooses what was not said, or takes everything from the folder. */
shoal_status shoal_search_open(shoal_search **out, const shoal_search_options *options,
                               const shoal_search_calls *calls, const volatile sig_atomic_t *stop,
                               shoal_error *err);
void shoal_search_close(shoal_search *search);

/* What the search in a folder was asked for; the brief is the caller's to release, if this succeeds. */
shoal_status shoal_search_recorded(const char *folder, shoal_brief *brief, shoal_scheduler_kind *scheduler,
                                   shoal_error *err);

const shoal_brief *shoal_search_brief(const shoal_search *search);
const shoal_board *shoal_search_board(const shoal_search *search);
const shoal_table_split *shoal_search_split(const shoal_search *search);

/* For those who compute elsewhere; shoal_search_run does the same with threads of its own. SHOAL_NEXT_NONE
 * also when the budget is spent. */
shoal_next shoal_search_take(shoal_search *search, const char *worker, shoal_taken *out, shoal_error *err);
bool shoal_search_beat(shoal_search *search, uint64_t unit, uint32_t attempt);
/* *counts is false for a result that was late. */
shoal_status shoal_search_done(shoal_search *search, uint64_t unit, const char *worker,
                               const shoal_trial_result *result, bool *counts, shoal_error *err);
void shoal_search_failed(shoal_search *search, uint64_t unit, uint32_t attempt, const char *why,
                         bool given_back);
/* Ends overdue leases. True: there is nothing to do any more, and nobody does anything. */
bool shoal_search_tick(shoal_search *search);
/* So long nobody was there to take a unit: it costs no budget. */
void shoal_search_waited(shoal_search *search, double seconds);
/* Where the state of a trial is. */
void shoal_search_state_path(const shoal_search *search, uint64_t trial, shoal_text *out);
void shoal_search_look(shoal_search *search, shoal_search_view *out);

/* Tries until the budget or the trials are at their end, or `stop` is set (SHOAL_STOPPED). */
shoal_status shoal_search_run(shoal_search *search, shoal_error *err);

typedef struct shoal_search_end {
  uint32_t members;        /* different trials */
  double valid_score;      /* of the members together, on the validation rows, which is too optimistic */
  shoal_estimate estimate; /* of the members together, on other rows */
  bool has_test;
  shoal_scores test;
  uint64_t test_rows; /* that were scored */
} shoal_search_end;
/* Makes the model of the best trials so far and writes it to `out`. A trial whose state is missing or damaged
 * is left out, with a warning. SHOAL_NOT_FOUND: no trial has a score. */
shoal_status shoal_search_finish(shoal_search *search, const char *out, shoal_search_end *end,
                                 shoal_error *err);

/* All trials as a CSV file: number, state, settings, epochs, all scores, weights, seconds. */
void shoal_search_table(const shoal_search *search, shoal_text *out);

#endif
