/* searcher.h: a search that runs in the server.
 *
 * A thread reads the table, and at the end chooses the members, scores them, and writes model and insight. In
 * between units are given out and taken in by whoever calls: the routes that workers ask, and the queue.
 * Results are kept in the store, one row for each unit; states of trials, and what the search needs to continue,
 * in the job's folder.
 *
 * Whoever is given a unit is given a ticket with it, and nothing that is said of the unit counts without the ticket: it
 * names the taker and this attempt, and is signed with the server's secret. So tickets are good after a restart, too.
 *
 * Ownership: start, wait, then destroy; the spec is borrowed until then, texts are copied. Threads: all calls
 * from one, but `changed`, which comes from the thread inside. */
#ifndef SHOAL_SERVER_SEARCHER_H
#define SHOAL_SERVER_SEARCHER_H

#include <cjson/cJSON.h>

#include "base/secret.h"
#include "server/search_spec.h"
#include "store/store.h"

enum { SHOAL_LEASE_S = 30 }; /* of a unit whose worker says nothing */
enum { SHOAL_TICKET_CHARS = 48 };

typedef struct shoal_searcher shoal_searcher;

typedef struct shoal_searcher_config {
  uint64_t id;
  const shoal_search_spec *spec;
  const char *folder; /* of the job; exists */
  const char *data;   /* the CSV file */
  uint32_t threads;   /* to score with */
  double spent_s;     /* of the budget, before */
  double lease_s;     /* of a unit, without a beat; 0: SHOAL_LEASE_S */
  shoal_store *store;
  const shoal_secret *secret;
  void *self;
  void (*changed)(void *self);
} shoal_searcher_config;

typedef enum shoal_searcher_phase {
  SHOAL_SEARCHER_READS,
  SHOAL_SEARCHER_OPEN, /* units can be taken */
  SHOAL_SEARCHER_GATHERS,
  SHOAL_SEARCHER_ENDED,
} shoal_searcher_phase;

typedef struct shoal_searcher_view {
  shoal_searcher_phase phase;
  char error[SHOAL_ERROR_TEXT_MAX]; /* "" unless it ended with one */
  bool finished;                    /* to its end, and not because it was stopped */
  bool has_model;
  double spent_s;
  shoal_search_view search;
  const char *metric; /* "accuracy"; NULL while it reads, and where it could not be opened */
  bool higher_is_better;
  uint32_t members;        /* of the model; 0: there is none yet */
  double test_score;       /* of the model; NaN: there is none, or nothing to test it with */
  double valid_score;      /* of the model, on the rows that it was chosen by; NaN: there is none */
  shoal_estimate estimate; /* of the model, on other rows */
  uint64_t test_rows;
} shoal_searcher_view;

shoal_status shoal_searcher_start(shoal_searcher **out, const shoal_searcher_config *config,
                                  shoal_error *err);
/* Ends soon, with a model of what there is by then. */
void shoal_searcher_stop(shoal_searcher *searcher);
/* Ends at once: no model; what is there stays. */
void shoal_searcher_abandon(shoal_searcher *searcher);
void shoal_searcher_wait(shoal_searcher *searcher);
void shoal_searcher_destroy(shoal_searcher *searcher); /* after wait */

void shoal_searcher_look(shoal_searcher *searcher, shoal_searcher_view *out);
/* Overdue leases; whether it is over. The time since the last tick costs no budget while it has no workers. */
void shoal_searcher_tick(shoal_searcher *searcher, bool has_workers);

/* Whether a search could begin: reads the table as the search would, and leaves nothing behind. Slow. `data`
 * as above. */
shoal_status shoal_searcher_try(const shoal_search_spec *spec, const char *data, shoal_error *err);

/* What workers need; SHOAL_CONFLICT while it reads, or after its end. */
shoal_status shoal_searcher_brief(shoal_searcher *searcher, shoal_text *json, shoal_error *err);
/* *next is SHOAL_NEXT_UNIT with a unit as JSON, SHOAL_NEXT_WAITS (ask again), or SHOAL_NEXT_NONE: it is
 * over. `who` is the taker's number of standings.h; 0: machines that are trusted. */
shoal_status shoal_searcher_take(shoal_searcher *searcher, const char *worker, uint64_t who, shoal_next *next,
                                 shoal_taken *taken, shoal_text *json, shoal_error *err);
/* True if this attempt of the unit was given out with this ticket; *who gets the taker's number. */
bool shoal_searcher_gave(const shoal_searcher *searcher, uint64_t unit, uint32_t attempt, const char *ticket,
                         uint64_t *who);
bool shoal_searcher_beat(shoal_searcher *searcher, uint64_t unit, uint32_t attempt);
/* SHOAL_CONFLICT: late. SHOAL_INVALID: not what a result looks like. *samples is how many rows were learned
 * from for it, epoch by epoch. */
shoal_status shoal_searcher_done(shoal_searcher *searcher, uint64_t unit, const char *worker,
                                 const cJSON *result, uint64_t *samples, shoal_error *err);
void shoal_searcher_failed(shoal_searcher *searcher, uint64_t unit, uint32_t attempt, const char *why);
/* Nobody has begun it: it is free again, and that does not count as an attempt. */
void shoal_searcher_give_back(shoal_searcher *searcher, uint64_t unit, uint32_t attempt);
/* Whether the table is still being read: a caller that asks for anything else should ask again. */
bool shoal_searcher_reads(shoal_searcher *searcher);
/* Where the state of a trial is, or would be. */
void shoal_searcher_state_path(const shoal_searcher *searcher, uint64_t trial, shoal_text *out);
/* The trial whose state who holds this lease may write; 0: the lease is nobody's or somebody else's by now.
 * It counts as a beat. */
uint64_t shoal_searcher_held(shoal_searcher *searcher, uint64_t unit, uint32_t attempt);

/* Lines for the job's log since the last call, each with its newline. False: none. */
bool shoal_searcher_take_notes(shoal_searcher *searcher, shoal_text *lines);

/* What finished units came to, as the API has it; the next one. False: none. */
bool shoal_searcher_take_news(shoal_searcher *searcher, shoal_text *json);

#endif
