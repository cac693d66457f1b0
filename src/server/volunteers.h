/* volunteers.h: the workers of a server: who is there, what each does, and the connections to their jobs.
 *
 * A volunteer has a control connection ("/work"), where it says what it is and is told which job it works
 * for. To work it connects to the job's chief and parameter server ("/jobs/7/chief", "/jobs/7/ps/0"); what
 * is said there is passed on, as it is, to the threads of this process that run the job. Its data comes from
 * the swarm, which it joins over a connection of its own ("/jobs/7/data"), open to those who may work for
 * the job (server/swarm.h). A name that two have gets a number.
 *
 * Ownership: create, then destroy; net, jobs and swarms are borrowed. Threads: the net's. */
#ifndef SHOAL_SERVER_VOLUNTEERS_H
#define SHOAL_SERVER_VOLUNTEERS_H

#include "server/access.h"
#include "server/jobs.h"
#include "server/swarm.h"
#include "wire/http.h"

enum { SHOAL_VOLUNTEER_NAME_MAX = SHOAL_NAME_MAX };

typedef struct shoal_volunteer {
  uint64_t id, peer; /* peer: of the control connection */
  char name[SHOAL_VOLUNTEER_NAME_MAX], address[64], version[24], kernels[16], state[16], text[160];
  shoal_caller caller;
  uint32_t cores, threads;
  uint64_t memory_bytes;
  double speed, since; /* since: wall time */
  bool registered;
  uint64_t job;                  /* that it is assigned to; 0: none */
  bool told;                     /* of that */
  uint64_t chief;                /* the peer of its connection to the job's chief; 0: none */
  uint64_t swarm;                /* likewise, for the job's data */
  uint64_t samples;              /* in this connection's life */
  double samples_per_s, seen_at; /* measured over the last seconds */
  uint64_t seen_parts, credited; /* credited: samples of searches since then */
} shoal_volunteer;

typedef struct shoal_volunteers shoal_volunteers;

typedef struct shoal_volunteers_calls {
  void *self;
  void (*changed)(void *self, const shoal_volunteer *volunteer);
  void (*gone)(void *self, uint64_t id);
} shoal_volunteers_calls;

/* At most `max` of them at a time. */
shoal_status shoal_volunteers_create(shoal_volunteers **out, uint32_t max, shoal_net *net, shoal_jobs *jobs,
                                     const shoal_volunteers_calls *calls, shoal_error *err);
void shoal_volunteers_destroy(shoal_volunteers *volunteers);
/* One says that another sent it a wrong chunk, by the names that they have here: shoal_jobs_blame. */
void shoal_volunteers_blame(shoal_volunteers *volunteers, const char *who, const char *by);
/* Where data comes from; without it "/jobs/7/data" is not there. */
void shoal_volunteers_use_swarms(shoal_volunteers *volunteers, shoal_swarms *swarms);

/* A WebSocket asks for a path: 0, or the HTTP status that refuses it. The caller is a volunteer at least.
 * Those for a job may say in the query which volunteer they are of, by the number that ASSIGN told:
 * "/jobs/7/chief?worker=3". */
int shoal_volunteers_admit(shoal_volunteers *volunteers, uint64_t peer, const shoal_request *request,
                           const shoal_caller *caller);
/* Who is called that has learned from so many samples for a search. */
void shoal_volunteers_credit(shoal_volunteers *volunteers, uint64_t job, const char *name, uint64_t samples);
/* Who it is that asks over HTTP for a job: the volunteer of this number (0: it says none), or one of this
 * name, from this address and with this token; NULL: none of those who were given the job. */
const shoal_volunteer *shoal_volunteers_recognise(shoal_volunteers *volunteers, uint64_t job, uint64_t number,
                                                  const char *name, const char *address,
                                                  const shoal_caller *caller);
/* A token is good no more: its connections are closed. */
void shoal_volunteers_close_token(shoal_volunteers *volunteers, uint64_t token);
/* What the net tells. */
void shoal_volunteers_opened(shoal_volunteers *volunteers, uint64_t peer);
void shoal_volunteers_received(shoal_volunteers *volunteers, uint64_t peer, shoal_message *message);
void shoal_volunteers_closed(shoal_volunteers *volunteers, uint64_t peer, const char *reason);

/* A job has come or changed, or is gone: who works for what is decided anew. */
void shoal_volunteers_put_job(shoal_volunteers *volunteers, const shoal_open_job *job);
void shoal_volunteers_drop_job(shoal_volunteers *volunteers, uint64_t id);
/* Somebody was banned: it gets no work any more. */
void shoal_volunteers_turn_away(shoal_volunteers *volunteers);
/* A ban was lifted: those who get no work are offered it again. */
void shoal_volunteers_reconsider(shoal_volunteers *volunteers);
/* Beats, and tells those whose job can now be worked for. Returns when it wants to be called again. */
double shoal_volunteers_tick(shoal_volunteers *volunteers, double now);

/* Those who are here, and how many of them are in these states. One whose job waits for more is idle. */
uint32_t shoal_volunteers_count(const shoal_volunteers *volunteers, uint32_t *idle, uint32_t *paused);
/* One after another; NULL first, NULL at the end. */
const shoal_volunteer *shoal_volunteers_next(const shoal_volunteers *volunteers,
                                             const shoal_volunteer *after);
const shoal_volunteer *shoal_volunteers_find(const shoal_volunteers *volunteers, uint64_t id); /* or NULL */
/* A data set is deleted: shoal_swarms_forget. */
void shoal_volunteers_forget_set(shoal_volunteers *volunteers, const char *set);
/* Whether somebody of that name works for a job now. */
bool shoal_volunteers_are_at(const shoal_volunteers *volunteers, uint64_t job, const char *name);
/* The swarm that a job's data comes from, as shoal_swarms_write does; one that is not open has none. */
void shoal_volunteers_write_swarm(const shoal_volunteers *volunteers, uint64_t job, shoal_json *json);
/* A WORKER of the API; where it comes from is for admins alone. */
void shoal_volunteers_write(const shoal_volunteers *volunteers, const shoal_volunteer *volunteer,
                            bool with_address, shoal_json *json);

#endif
