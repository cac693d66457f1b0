/* jobs.h: the jobs of a server: submitted, waiting, running, stopped; what the store knows and what runs now.
 *
 * A job is a training, a search, or the training of an agent. It is open while it waits for workers or runs;
 * open ones are in memory, with what runs it (runner.h, searcher.h or agent_runner.h) once they have had as
 * many workers as they want at least. All others are in the store alone. A server that starts takes up the
 * open ones where they were.
 *
 * Ownership: open, then close; store and data sets are borrowed. Threads: one. */
#ifndef SHOAL_SERVER_JOBS_H
#define SHOAL_SERVER_JOBS_H

#include "server/access.h"
#include "server/agent_runner.h"
#include "server/any_spec.h"
#include "server/datasets.h"
#include "server/runner.h"
#include "server/searcher.h"
#include "server/standings.h"
#include "server/timeline.h"

typedef struct shoal_jobs shoal_jobs;

enum { SHOAL_JOBS_OPEN_MAX = 256 };

/* An open job. */
typedef struct shoal_open_job {
  uint64_t id;
  char *name, *host;
  shoal_job_kind kind;
  shoal_spec spec; /* of other kinds than trainings: name, data, workers_min and workers_max alone */
  shoal_search_spec search;
  shoal_agent_spec agent;
  bool is_private;
  shoal_job_state state;
  double created, started;
  /* What runs it; NULL: it has not had enough workers yet, or is of another kind. */
  shoal_runner *runner;
  shoal_searcher *searcher;
  shoal_agent_runner *agent_runner;
  bool starts_later;                  /* it is to begin as soon as the store is back */
  char failure[SHOAL_ERROR_TEXT_MAX]; /* why it could not be started; "": nothing was wrong */
  shoal_searcher_view found;          /* of a search, as last looked at */
  shoal_agent_view played;            /* of an agent, likewise */
  uint64_t checked, lies;             /* of an agent: rollouts that were played again; that were none */
  double score_told;                  /* of an agent: the best that its log has; NAN: none */
  uint16_t port;                      /* "#:port" is its chief's; 0 without a runner */
  bool stopping; /* the store has it as stopped already, so that a server which ends now does not resume it */
  uint32_t workers;        /* that are assigned now; set by whoever assigns them */
  uint32_t paused;         /* of all that are here; likewise */
  uint32_t paused_told;    /* to those who watch */
  uint32_t helpers;        /* who compute units of a search from a queue; set by offers.h */
  shoal_runner_view view;  /* as last looked at */
  shoal_chief_peer *peers; /* likewise */
  uint32_t peers_count;
  shoal_worker_sum *credited; /* what the store has of this runner's workers; of an agent: what it has not */
  uint32_t credited_count;
  uint64_t last_step; /* of the points that were taken; UINT64_MAX: none yet */
  shoal_timeline timeline;
  uint64_t lines; /* the number of the last that its log was told */
  double credited_at;
  double stored_at; /* when its progress was last put into the store */
  struct shoal_open_job *next;
} shoal_open_job;

/* What happened, for those who watch. */
typedef struct shoal_jobs_calls {
  void *self;
  void (*changed)(void *self, const shoal_open_job *job); /* any of it, a few times a second at most */
  void (*closed)(void *self, uint64_t id);                /* it is not open any more */
  void (*deleted)(void *self, uint64_t id, bool is_private);
  void (*points)(void *self, const shoal_open_job *job, const shoal_point *points, size_t count);
  void (*line)(void *self, const shoal_open_job *job, const shoal_log_row *line);
  void (*trial)(void *self, const shoal_open_job *job, const shoal_text *row); /* JSON */
  /* Of an agent's curves: one line of JSON. */
  void (*played)(void *self, const shoal_open_job *job, const char *point, size_t length);
  void (*wake)(void *self);                                      /* from any thread: tick is due */
  bool (*is_here)(void *self, uint64_t job, const char *worker); /* whether it works for the job now */
  void (*banned)(void *self); /* somebody who plays for an agent has lied, and gets no work any more */
} shoal_jobs_calls;

typedef struct shoal_jobs_config {
  shoal_store *store;
  shoal_datasets *datasets;
  const char *folder;    /* FOLDER/ID is a job's */
  const char *named_dir; /* or NULL */
  uint32_t threads;      /* to evaluate with */
  double lease_s;        /* of units of searches and agents, without a beat; 0: the usual one */
  shoal_jobs_calls calls;
} shoal_jobs_config;

shoal_status shoal_jobs_open(shoal_jobs **out, const shoal_jobs_config *config, shoal_error *err);
/* Asks all that runs for its end, and starts nothing any more. Workers' messages must go on coming in until
 * shoal_jobs_are_ending is false: the end of a job that is in order waits for the end of its round. */
void shoal_jobs_end(shoal_jobs *jobs);
/* That was asked for: what ends now is not over, and continues when the server is back. */
bool shoal_jobs_are_closing(const shoal_jobs *jobs);
bool shoal_jobs_are_ending(shoal_jobs *jobs);
/* Ends all that runs, what is not at its end by now without its last round; all are open again when the
 * server starts again. */
void shoal_jobs_close(shoal_jobs *jobs);

/* Looks at what runs; moves jobs from state to state. Returns when it wants to be called again. */
double shoal_jobs_tick(shoal_jobs *jobs, double now);

/* Who is believed, over all jobs. */
shoal_standings *shoal_jobs_standings(shoal_jobs *jobs);
/* Somebody blames another for a wrong chunk, by their numbers: shoal_standings_blame, also in what runs. */
void shoal_jobs_blame(shoal_jobs *jobs, uint64_t who, uint64_t by);
/* Lifts a ban, here and in what runs: shoal_standings_lift. */
shoal_status shoal_jobs_lift_ban(shoal_jobs *jobs, uint64_t id, const char *by, shoal_error *err);

shoal_open_job *shoal_jobs_first(shoal_jobs *jobs);
shoal_open_job *shoal_jobs_find(shoal_jobs *jobs, uint64_t id); /* NULL: not open */
/* Whether it was started: it has something that runs it. */
bool shoal_open_job_has_begun(const shoal_open_job *job);
/* Whether workers can compute for it now. */
bool shoal_open_job_is_ready(const shoal_open_job *job);
/* How it goes, in numbers that all kinds have. */
typedef struct shoal_job_pulse {
  uint64_t step;        /* rounds that are done, of a search units */
  double loss;          /* NAN: none */
  double samples_per_s; /* of an agent: steps of its environments */
} shoal_job_pulse;
shoal_job_pulse shoal_open_job_pulse(const shoal_open_job *job);
/* It has as many workers as it wants at least: starts it, if it does not run. */
void shoal_jobs_start(shoal_jobs *jobs, shoal_open_job *job);

/* The spec is taken over on success. */
shoal_status shoal_jobs_submit(shoal_jobs *jobs, shoal_any_spec *spec, const char *host, uint64_t *id,
                               shoal_error *err);
/* SHOAL_CONFLICT where its state does not allow that. What was asked outlives the server from then on. */
shoal_status shoal_jobs_stop(shoal_jobs *jobs, uint64_t id, shoal_error *err);
/* What there is more to do than when it was submitted; 0: as it was. */
typedef struct shoal_job_more {
  uint32_t epochs; /* of a training, in all */
  double budget_s; /* of a search, from now on */
  uint64_t trials; /* of a search, in all */
  double seconds;  /* of an agent, from now on */
  uint64_t steps;  /* of an agent, in all */
} shoal_job_more;
shoal_status shoal_jobs_resume(shoal_jobs *jobs, uint64_t id, const shoal_job_more *more, shoal_error *err);
/* A search that is open, or NULL. */
shoal_searcher *shoal_jobs_searcher(shoal_jobs *jobs, uint64_t id);
/* A worker has finished a unit of a search. */
void shoal_jobs_credit_unit(shoal_jobs *jobs, uint64_t id, const char *worker, uint64_t samples,
                            double seconds);
/* Somebody who plays for an agent, as the server knows it. */
typedef struct shoal_job_player {
  uint64_t who;     /* its number of standings.h */
  const char *name; /* under which it is credited */
} shoal_job_player;
/* It hands in a rollout: counted, credited, and played again where it is its turn (agent_audit.h). *steps is
 * what counts; 0: it was late, or could not be checked as it should. SHOAL_INVALID: it is no rollout. */
shoal_status shoal_jobs_hand_in(shoal_jobs *jobs, shoal_open_job *job, const shoal_job_player *player,
                                const void *bytes, size_t length, uint64_t *steps, shoal_error *err);
/* It cannot play its unit of this number, and gives it back. */
void shoal_jobs_give_up(shoal_open_job *job, const shoal_job_player *player, uint64_t number);
/* A volunteer works for a job from now on. */
void shoal_jobs_joined(shoal_jobs *jobs, uint64_t id, const char *worker);
/* A volunteer that works for a job is gone, or works for another now. */
void shoal_jobs_lost(shoal_jobs *jobs, uint64_t id, const char *worker);
/* A job that needs a data set, or may yet: one that is open, and one that was stopped or has failed and
 * can continue; 0: none. */
shoal_status shoal_jobs_needing(shoal_jobs *jobs, const char *data, uint64_t *id, shoal_error *err);
shoal_status shoal_jobs_delete(shoal_jobs *jobs, uint64_t id, shoal_error *err);

/* A JOB of the API; with_model: with the model's text. */
shoal_status shoal_jobs_write(shoal_jobs *jobs, uint64_t id, bool with_model, shoal_json *json,
                              shoal_error *err);
/* The newest first, as summaries, into an array that is open; *next is the smallest number, 0 when there
 * are no more. Those that the caller may not see are left out. */
shoal_status shoal_jobs_list(shoal_jobs *jobs, int state, uint64_t before, size_t max,
                             const shoal_caller *caller, shoal_json *json, uint64_t *next, shoal_error *err);
/* Private ones are for their host, those invited to them, and admins. One that is not there is private. */
bool shoal_jobs_is_private(shoal_jobs *jobs, uint64_t id);
/* How many rounds an epoch of it has; 0: not known yet. */
uint64_t shoal_jobs_rounds(shoal_jobs *jobs, uint64_t id);
/* A point of the curves, the end of an epoch, which has so many rounds, and a line of the log, as the API has
 * them. */
void shoal_jobs_write_round(const shoal_point *point, shoal_json *json);
void shoal_jobs_write_epoch(const shoal_point *point, uint64_t rounds, shoal_json *json);
void shoal_jobs_write_line(const shoal_log_row *line, shoal_json *json);
/* Who has done what for a job: {"workers":[...]} */
shoal_status shoal_jobs_workers(shoal_jobs *jobs, uint64_t id, shoal_json *json, shoal_error *err);
/* "FOLDER/7/model.safetensors"; SHOAL_NOT_FOUND when there is none yet. */
shoal_status shoal_jobs_file(shoal_jobs *jobs, uint64_t id, const char *name, shoal_text *out,
                             shoal_error *err);

#endif
