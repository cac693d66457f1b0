/* volunteers.h: the workers of a server: who is there, what each does, and the connections to their jobs.
 *
 * A volunteer has a control connection ("/work"), where it says what it is and is told which job it works for. To
 * work it connects to the job's chief and parameter server ("/jobs/7/chief", "/jobs/7/ps/0"); what is said there
 * is passed on, as it is, to the threads of this process that run the job. A name that two have gets a number.
 *
 * Ownership: create, then destroy; net, jobs and match are borrowed. Threads: the net's. */
#ifndef SHOAL_SERVER_VOLUNTEERS_H
#define SHOAL_SERVER_VOLUNTEERS_H

#include "net/net.h"
#include "server/access.h"
#include "server/jobs.h"

enum { SHOAL_VOLUNTEER_NAME_MAX = 48 };

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
  uint64_t samples;              /* in this connection's life */
  double samples_per_s, seen_at; /* measured over the last seconds */
  uint64_t seen_samples, seen_parts;
} shoal_volunteer;

typedef struct shoal_volunteers shoal_volunteers;

typedef struct shoal_volunteers_calls {
  void *self;
  void (*changed)(void *self, const shoal_volunteer *volunteer);
  void (*gone)(void *self, uint64_t id);
} shoal_volunteers_calls;

shoal_status shoal_volunteers_create(shoal_volunteers **out, uint32_t max, shoal_jobs *jobs,
                                     const shoal_volunteers_calls *calls, shoal_error *err);
void shoal_volunteers_destroy(shoal_volunteers *volunteers);
void shoal_volunteers_use(shoal_volunteers *volunteers, shoal_net *net); /* before anything else */

/* A WebSocket asks for a path: 0, or the HTTP status that refuses it. The caller is a volunteer at least. */
int shoal_volunteers_admit(shoal_volunteers *volunteers, uint64_t peer, const char *path, const char *address,
                           const shoal_caller *caller);
/* What the net tells. */
void shoal_volunteers_opened(shoal_volunteers *volunteers, uint64_t peer);
void shoal_volunteers_received(shoal_volunteers *volunteers, uint64_t peer, shoal_message *message);
void shoal_volunteers_closed(shoal_volunteers *volunteers, uint64_t peer, const char *reason);

/* A job has come or changed, or is gone: who works for what is decided anew. */
void shoal_volunteers_put_job(shoal_volunteers *volunteers, const shoal_open_job *job);
void shoal_volunteers_drop_job(shoal_volunteers *volunteers, uint64_t id);
/* Beats, and tells those whose job can now be worked for. Returns when it wants to be called again. */
double shoal_volunteers_tick(shoal_volunteers *volunteers, double now);

uint32_t shoal_volunteers_count(const shoal_volunteers *volunteers, uint32_t *idle);
/* One after another; NULL first, NULL at the end. */
const shoal_volunteer *shoal_volunteers_next(const shoal_volunteers *volunteers,
                                             const shoal_volunteer *after);
const shoal_volunteer *shoal_volunteers_find(const shoal_volunteers *volunteers, uint64_t id); /* or NULL */
/* A WORKER of the API. */
void shoal_volunteers_write(const shoal_volunteers *volunteers, const shoal_volunteer *volunteer,
                            shoal_json *json);

#endif
