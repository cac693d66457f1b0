/* store.h: what the server keeps: jobs, their curves, logs and helpers, models, data sets, tokens,
 * the audit log.
 *
 * One set of statements on two databases: SQLite in a file, PostgreSQL by URL. A call is a transaction: it is
 * done as a whole or not at all, and says why not. What a call has done outlives a crash of the program. Jobs
 * and their states, models, data sets and tokens outlive a loss of power too; it may take the last second or
 * so of progress, points, logs, contributions and the audit log with it, which therefore cost no wait for the
 * disk. Files (weights, data) are not in here but beside it, in the server's folder.
 *
 * When the database fails (PostgreSQL is restarted, or does not answer; a disk is full) the store is unavailable: it
 * tries again by itself until all is well, in a thread of its own, and calls are refused at once with
 * SHOAL_UNAVAILABLE, but for the first, which waits for a moment. What the server has to say of what it does
 * is taken all the same, kept, and written down, in order, when the store is back: states of jobs, progress,
 * points, logs, contributions, units, standings and the audit log. Of states and progress only the newest is
 * kept; of the rest, as much as fits into SHOAL_STORE_DUE_BYTES_MAX. Kept changes are lost if the server ends
 * before the store is back, and may be written twice if the connection is lost during their commit. SHOAL_IO
 * from a change says that nobody knows whether it was done.
 *
 * Texts are UTF-8 of any length (SHOAL_INVALID if not UTF-8); those that rows are found by, the names of
 * things and of workers, are at most SHOAL_STORE_KEY_MAX bytes (SHOAL_LIMIT). What the store keeps for
 * others, such as a job's description, is JSON that it does not look into. Where a text goes in, NULL is as
 * good as "". Times are seconds since 1970. A number of rows is at most what the caller has room for.
 *
 * Ownership: open, then close. Rows that come back own their texts: shoal_job_rows_free and its like give
 * them back; a call that failed leaves none. Texts that go in are borrowed for the call. Threads: any, one
 * call at a time (there is a lock). A call waits for the disk or the server: at worst 5 s for a file that
 * another program holds or for a statement, once, since the store is unavailable then. */
#ifndef SHOAL_STORE_STORE_H
#define SHOAL_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_store shoal_store;

enum { SHOAL_STORE_KEY_MAX = 1000, SHOAL_STORE_LOG_LINES_MAX = 2000, SHOAL_STORE_AUDIT_MAX = 100000 };

/* "postgresql://..." or "postgres://...", else the path of a SQLite file. Makes the tables that are missing;
 * a store that a newer shoal has written is refused. An error never shows a URL's password. */
shoal_status shoal_store_open(shoal_store **out, const char *where, shoal_error *err);
void shoal_store_close(shoal_store *store);
/* Makes the store this server's until it is closed or the process ends. SHOAL_CONFLICT: another server has
 * it. Others may still read and write; only a second claim is refused. Where the connection was lost in
 * between and another server has claimed it since, calls fail. */
shoal_status shoal_store_claim(shoal_store *store, shoal_error *err);
/* "sqlite" or "postgresql". */
const char *shoal_store_kind(const shoal_store *store);

/* How the store is. */
typedef struct shoal_store_state {
  bool up;
  double since;       /* when it went away, by shoal_clock_seconds */
  char reason[256];   /* why it is, or was last, away; may name folders and hosts */
  uint64_t failures;  /* changes that it could not make at once, since it was opened */
  uint64_t due, lost; /* changes that are kept now; and those that never got there */
} shoal_store_state;
void shoal_store_health(shoal_store *store, shoal_store_state *out);

/* SHOAL_NOT_FOUND says that there is no such row, or no such job to add to; SHOAL_CONFLICT that there is one
 * by that name already. Numbers of jobs, tokens and audit rows go up by one and are never given again. */

/* ---- jobs ---- */

typedef enum shoal_job_state {
  SHOAL_JOB_WAITING, /* for as many workers as it wants at least */
  SHOAL_JOB_RUNNING,
  SHOAL_JOB_STOPPED, /* by its host; can be resumed */
  SHOAL_JOB_FINISHED,
  SHOAL_JOB_FAILED, /* `reason` says why; can be resumed when that is mended */
  SHOAL_JOB_STATES,
} shoal_job_state;
const char *shoal_job_state_name(shoal_job_state state); /* "waiting" */
bool shoal_job_state_parse(const char *word, shoal_job_state *out);

typedef struct shoal_job_row {
  uint64_t id; /* from 1 */
  char *name, *host;
  shoal_job_state state;
  char *reason; /* why it is in that state; "" for none */
  bool is_private;
  char *spec;                     /* JSON: what was submitted */
  char *progress;                 /* JSON: how far it is; "{}" at first */
  double created, started, ended; /* 0: not yet */
} shoal_job_row;
void shoal_job_rows_free(shoal_job_row *rows, size_t count); /* the texts, not the array */

/* Gives it a number; what `row` has as id does not matter. */
shoal_status shoal_store_add_job(shoal_store *store, const shoal_job_row *row, uint64_t *id,
                                 shoal_error *err);
shoal_status shoal_store_job(shoal_store *store, uint64_t id, shoal_job_row *out, shoal_error *err);
/* The newest first, those with a smaller number than `before` (0: all). state < 0: any. */
shoal_status shoal_store_jobs(shoal_store *store, int state, uint64_t before, shoal_job_row *out, size_t max,
                              size_t *count, shoal_error *err);
/* How many there are in each state; private ones are counted with_private, or when they are `own`'s, a
 * host's (NULL: nobody's). */
shoal_status shoal_store_count_jobs(shoal_store *store, bool with_private, const char *own,
                                    uint64_t counts[SHOAL_JOB_STATES], shoal_error *err);
/* Sets the state, the reason, and started or ended where they are not 0. */
shoal_status shoal_store_set_job_state(shoal_store *store, uint64_t id, shoal_job_state state,
                                       const char *reason, double started, double ended, shoal_error *err);
shoal_status shoal_store_set_job_progress(shoal_store *store, uint64_t id, const char *progress,
                                          shoal_error *err);
/* Replaces the description of a job that continues with more epochs. */
shoal_status shoal_store_set_job_spec(shoal_store *store, uint64_t id, const char *spec, shoal_error *err);
/* With its points, logs, contributions, and the tokens that invite to it. */
shoal_status shoal_store_delete_job(shoal_store *store, uint64_t id, shoal_error *err);

/* ---- a job's curves, log and contributions ---- */

/* A point of the curves: kind 0 a round (or the mean of some), kind 1 the end of an epoch. */
typedef struct shoal_point {
  uint32_t kind;
  uint64_t step;
  double time, loss, metric, samples_per_s;
  double held_out_loss, held_out_metric; /* NAN where there is none, as for all of these */
} shoal_point;
/* A point at a step that has one takes its place. */
shoal_status shoal_store_add_points(shoal_store *store, uint64_t job, const shoal_point *points, size_t count,
                                    shoal_error *err);
/* In the order of their steps; where there are more than `max`, the last ones. */
shoal_status shoal_store_points(shoal_store *store, uint64_t job, uint32_t kind, shoal_point *out, size_t max,
                                size_t *count, shoal_error *err);
/* A run that went back, or was resumed from an earlier checkpoint: what lies behind `step` never was. Points
 * at `step` itself stay. Nothing to cut is no error. */
shoal_status shoal_store_cut_points(shoal_store *store, uint64_t job, uint64_t step, shoal_error *err);

typedef struct shoal_log_row {
  uint64_t number; /* grows within a job */
  double time;
  char *text;
} shoal_log_row;
void shoal_log_rows_free(shoal_log_row *rows, size_t count);
/* The oldest go when there are more than SHOAL_STORE_LOG_LINES_MAX. */
shoal_status shoal_store_add_log(shoal_store *store, uint64_t job, double time, const char *text,
                                 shoal_error *err);
/* The last `max` of those with a greater number than `after`, oldest first. */
shoal_status shoal_store_logs(shoal_store *store, uint64_t job, uint64_t after, shoal_log_row *out,
                              size_t max, size_t *count, shoal_error *err);

typedef struct shoal_contribution {
  char *worker; /* its name */
  uint64_t units, samples;
  double seconds; /* that it computed */
} shoal_contribution;
void shoal_contributions_free(shoal_contribution *rows, size_t count);
/* What was done since the last call, added to what is there. A worker may stand in it more than once. */
shoal_status shoal_store_add_contributions(shoal_store *store, uint64_t job, const shoal_contribution *rows,
                                           size_t count, shoal_error *err);
/* Of one job, or of all (job 0) added up by name; those who did most samples first, then by name. */
shoal_status shoal_store_contributions(shoal_store *store, uint64_t job, shoal_contribution *out, size_t max,
                                       size_t *count, shoal_error *err);

/* ---- what units of a search came to ---- */

typedef struct shoal_unit_row {
  uint64_t unit, trial;
  char *worker;
  double time;
  char *summary, *curve; /* JSON */
} shoal_unit_row;
void shoal_unit_rows_free(shoal_unit_row *rows, size_t count);
/* Once and for good: SHOAL_CONFLICT when there is a result of that unit. */
shoal_status shoal_store_add_unit(shoal_store *store, uint64_t job, const shoal_unit_row *row,
                                  shoal_error *err);
/* In the order of their numbers, from `first` on, without their curves, which are NULL. */
shoal_status shoal_store_units(shoal_store *store, uint64_t job, uint64_t first, shoal_unit_row *out,
                               size_t max, size_t *count, shoal_error *err);

/* The last unit of a trial, with its curve. SHOAL_NOT_FOUND. */
shoal_status shoal_store_trial(shoal_store *store, uint64_t job, uint64_t trial, shoal_unit_row *out,
                               shoal_error *err);

/* ---- things with a name: models, data sets ---- */

typedef enum shoal_thing { SHOAL_THING_MODEL, SHOAL_THING_DATASET, SHOAL_THINGS } shoal_thing;

typedef struct shoal_thing_row {
  char *name, *owner;
  char *content; /* a model's text; a data set's description, JSON */
  double created;
} shoal_thing_row;
void shoal_thing_rows_free(shoal_thing_row *rows, size_t count);
shoal_status shoal_store_add_thing(shoal_store *store, shoal_thing kind, const shoal_thing_row *row,
                                   shoal_error *err);
/* Likewise, but in the place of one that is there by that name. */
shoal_status shoal_store_put_thing(shoal_store *store, shoal_thing kind, const shoal_thing_row *row,
                                   shoal_error *err);
shoal_status shoal_store_thing(shoal_store *store, shoal_thing kind, const char *name, shoal_thing_row *out,
                               shoal_error *err);
/* By name, byte by byte. */
shoal_status shoal_store_things(shoal_store *store, shoal_thing kind, shoal_thing_row *out, size_t max,
                                size_t *count, shoal_error *err);
shoal_status shoal_store_delete_thing(shoal_store *store, shoal_thing kind, const char *name,
                                      shoal_error *err);

/* ---- tokens ---- */

enum { SHOAL_TOKEN_HASH_HEX = 65 };

typedef struct shoal_token_row {
  uint64_t id;                     /* from 1 */
  char hash[SHOAL_TOKEN_HASH_HEX]; /* SHA-256 of the token, hex; the token itself is nowhere */
  char *role, *name;
  uint64_t job;            /* of an invitation to one job; 0: to all */
  double created, expires; /* 0: never */
} shoal_token_row;
void shoal_token_rows_free(shoal_token_row *rows, size_t count);
/* All or none; gives each a number. SHOAL_NOT_FOUND: there is no such job; SHOAL_CONFLICT: there is such a hash. */
shoal_status shoal_store_add_tokens(shoal_store *store, const shoal_token_row *rows, size_t count,
                                    uint64_t *ids, shoal_error *err);
/* Whether it has expired is the caller's to see. */
shoal_status shoal_store_token(shoal_store *store, const char *hash, shoal_token_row *out, shoal_error *err);
shoal_status shoal_store_token_by_id(shoal_store *store, uint64_t id, shoal_token_row *out, shoal_error *err);
/* Those with a greater number than `after`, in the order of their numbers. */
shoal_status shoal_store_tokens(shoal_store *store, uint64_t after, shoal_token_row *out, size_t max,
                                size_t *count, shoal_error *err);
/* Those that have expired at `now` go. */
shoal_status shoal_store_purge_tokens(shoal_store *store, double now, shoal_error *err);
shoal_status shoal_store_delete_token(shoal_store *store, uint64_t id, shoal_error *err);
/* Deletes a token, now or when the store is back; one that is not there is no error. */
shoal_status shoal_store_discard_token(shoal_store *store, uint64_t id, shoal_error *err);

/* ---- standings: who is believed ---- */

typedef struct shoal_standing_row {
  uint64_t id;            /* from 1 */
  char *who;              /* "token 3", "anna at 10.0.0.7": one row each */
  uint64_t agreed, wrong; /* units that somebody else computed again */
  bool banned;
  char *reason; /* of a ban */
  uint64_t job; /* in which that happened; 0: none, or it is not there any more */
  double changed;
} shoal_standing_row;
void shoal_standing_rows_free(shoal_standing_row *rows, size_t count);
/* New, or in the place of what there was of the same `who`; row->id does not matter. A ban outlives a loss
 * of power. */
shoal_status shoal_store_put_standing(shoal_store *store, const shoal_standing_row *row, shoal_error *err);
/* In the order of their numbers, from after `after`; only those banned, or all. */
shoal_status shoal_store_standings(shoal_store *store, bool banned, uint64_t after, shoal_standing_row *out,
                                   size_t max, size_t *count, shoal_error *err);
/* Of a ban: SHOAL_NOT_FOUND when there is no such one. Who it was is unproven then, as at the first day. */
shoal_status shoal_store_ban(shoal_store *store, uint64_t id, shoal_standing_row *out, shoal_error *err);
shoal_status shoal_store_lift_ban(shoal_store *store, uint64_t id, double now, shoal_error *err);

/* ---- the audit log: who did what ---- */

typedef struct shoal_audit_row {
  uint64_t number;
  double time;
  char *who, *what; /* "token 3 (Ann)", "DELETE /api/v1/jobs/7: 204" */
} shoal_audit_row;
void shoal_audit_rows_free(shoal_audit_row *rows, size_t count);
/* The oldest go when there are more than SHOAL_STORE_AUDIT_MAX. */
shoal_status shoal_store_add_audit(shoal_store *store, double time, const char *who, const char *what,
                                   shoal_error *err);
/* How many were added since the store was opened. From any thread. */
uint64_t shoal_store_audits(const shoal_store *store);
/* The newest first, those with a smaller number than `before` (0: all). */
shoal_status shoal_store_audit(shoal_store *store, uint64_t before, shoal_audit_row *out, size_t max,
                               size_t *count, shoal_error *err);

#endif
