/* api.h: the routes of a server: which path and method may be asked for by whom, and what answers.
 *
 * docs/openapi.json describes the same routes; a test compares the two.
 *
 * Ownership: everything is borrowed. Threads: the net's. */
#ifndef SHOAL_SERVER_API_H
#define SHOAL_SERVER_API_H

#include "server/access.h"
#include "server/chores.h"
#include "server/jobs.h"
#include "server/live.h"
#include "server/offers.h"
#include "server/throughput.h"
#include "server/volunteers.h"
#include "wire/http.h"

/* Who asks, from the head of a request to its end. */
typedef struct shoal_api_pending {
  uint64_t id;
  shoal_caller caller;
  bool refused;
} shoal_api_pending;

enum { SHOAL_API_WEIGHTS_MAX = 1024, SHOAL_API_ABOUT_MAX = 128 };

/* How many weights a model has, by the digest of its text: counting them takes a graph. */
typedef struct shoal_api_weights {
  uint64_t digest, weights;
} shoal_api_weights;

/* What the routes work on. */
typedef struct shoal_api {
  shoal_net *net;
  shoal_store *store;
  shoal_access *access;
  shoal_datasets *datasets;
  shoal_jobs *jobs;
  shoal_volunteers *volunteers;
  shoal_offers *offers; /* NULL: there is no queue */
  shoal_live *live;
  shoal_chores *chores; /* what takes seconds */
  shoal_chores *tries;  /* whether models fit data, which do not wait for uploads to be checked */
  shoal_chores *reads;  /* files, chunks and states of trials, which do not wait for those */
  shoal_role_level open;
  double started;              /* wall time */
  const char *fingerprint;     /* of a certificate, or NULL */
  const char *url;             /* of this server, for links */
  shoal_throughput throughput; /* of public jobs */
  /* What the request at hand is about, for the audit log; "": its path says it. */
  char about[SHOAL_API_ABOUT_MAX];
  void *self;
  void (*log)(void *self, const char *what, const char *fields);
  /* A connection has one request at a time, and the numbers of its requests are equal modulo the connections
   * that the net may have and one more (wire/http.h). */
  shoal_api_pending *pending;
  uint32_t pending_max;
  struct shoal_api_waiting *waiting;                /* who asks for a unit to play, and there is none */
  shoal_api_weights weights[SHOAL_API_WEIGHTS_MAX]; /* by digest; zero to begin with */
} shoal_api;

enum { SHOAL_API_NAME_MAX = 192 };

/* A request on its way to a handler. */
typedef struct shoal_api_call {
  shoal_api *api;
  const shoal_request *request;
  shoal_caller caller;
  char names[2][SHOAL_API_NAME_MAX]; /* what stood where the route has a star */
  uint64_t id;                       /* the first of them as a number; 0 when it is none */
} shoal_api_call;

typedef struct shoal_route {
  shoal_method method;
  const char *path; /* "/api/v1/jobs/ * /stop" without the blanks */
  shoal_role_level level;
  uint64_t body_max;
  bool upload; /* the body goes into a file */
  void (*answer)(const shoal_api_call *call);
} shoal_route;

/* All of them, for the test that compares. */
const shoal_route *shoal_api_routes(size_t *count);

/* Makes room for the requests of `connections_max` connections; release gives it back. The rest is the caller's to
 * fill in. */
shoal_status shoal_api_reserve(shoal_api *api, uint32_t connections_max, shoal_error *err);
void shoal_api_release(shoal_api *api);

/* The calls of wire/http.h. Between begins and asked `pending` remembers who asks. */
uint64_t shoal_api_begins(shoal_api *api, const shoal_request *request, char **file);
void shoal_api_asked(shoal_api *api, const shoal_request *request);
void shoal_api_left(shoal_api *api, uint64_t id);
/* Answers those who wait for a unit to play. Returns when it wants to be called again. */
double shoal_api_tick(shoal_api *api, double now);
int shoal_api_admits(shoal_api *api, uint64_t peer, const shoal_request *request);

/* ---- for handlers ---- */

/* Every answer goes through here: what changes something is written down with the status that it came to. */
void shoal_api_answer(const shoal_api_call *call, const shoal_answer *answer);
/* What the audit log should have beside the path of this request, such as a name that stands in its body. Before the
 * answer. */
void shoal_api_about(const shoal_api_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void shoal_api_error(const shoal_api_call *call, int status, const char *text);
/* 404, 409, 422, 413 or 503, as the error says; what is nobody's but the server's own trouble is logged
 * whole and answered with 500. */
void shoal_api_failed(const shoal_api_call *call, const shoal_error *err);
/* Likewise, but SHOAL_LIMIT says that there are too many of something now: 429. */
void shoal_api_failed_full(const shoal_api_call *call, const shoal_error *err);
/* The JSON when status says so, else the error; the text is released. */
void shoal_api_finish(const shoal_api_call *call, int http_status, shoal_status status, shoal_text *text,
                      const shoal_error *err);
/* The answer with a copy of these bytes as its body; 503 without the memory for it. */
void shoal_api_bytes(const shoal_api_call *call, const void *bytes, size_t length,
                     const shoal_answer *answer);
/* The body as a JSON object; NULL, and answered, when it is none. The caller deletes it. */
struct cJSON *shoal_api_body(const shoal_api_call *call);
void shoal_api_error_at(const shoal_api_call *call, int status, const char *text, const char *field,
                        uint32_t line, uint32_t column);
/* Takes the text's bytes over; *text is empty then. */
void shoal_api_json(const shoal_api_call *call, int status, shoal_text *text);
void shoal_api_empty(const shoal_api_call *call, int status);
/* {"KEY":[...]}: begin, write the rows, end, which answers with 200. */
void shoal_api_list_begin(shoal_json *json, shoal_text *text, const char *key);
void shoal_api_list_end(const shoal_api_call *call, shoal_json *json);
/* Whether the caller may see, or change, a job; answers 404 or 403 when not. */
bool shoal_api_may_see(const shoal_api_call *call, uint64_t job);
/* Whether somebody, by the number of standings.h, is banned; answers 403 then. */
bool shoal_api_bans(const shoal_api_call *call, uint64_t who);
bool shoal_api_may_change(const shoal_api_call *call, uint64_t job);
/* A whole number of the query; `otherwise` when it is not there; false, and answered, when it is wrong. */
bool shoal_api_number(const shoal_api_call *call, const char *name, uint64_t most, uint64_t otherwise,
                      uint64_t *out);
/* What GET /server answers. caller NULL: what anybody may know, for all who watch. */
void shoal_api_server_json(const shoal_api *api, const shoal_caller *caller, shoal_json *json);

/* Answers with a job as the API has it, or with why not. */
void shoal_api_answer_job(const shoal_api_call *call, int status, uint64_t id);

/* A call whose answer comes after its request is gone: what is left of that. */
typedef struct shoal_kept_call {
  shoal_api_call call;
  shoal_request request;
  char *path, *address;
} shoal_kept_call;
/* False: no memory. Release it in any case. */
bool shoal_api_keep_call(shoal_kept_call *out, const shoal_api_call *call);
void shoal_api_release_call(shoal_kept_call *kept);

/* ---- handlers, by subject ---- */

void shoal_api_list_jobs(const shoal_api_call *call); /* api_jobs.c */
void shoal_api_show_job(const shoal_api_call *call);
void shoal_api_stop_job(const shoal_api_call *call);
void shoal_api_resume_job(const shoal_api_call *call);
void shoal_api_delete_job(const shoal_api_call *call);
void shoal_api_job_history(const shoal_api_call *call);
void shoal_api_job_workers(const shoal_api_call *call);
void shoal_api_job_timeline(const shoal_api_call *call);
void shoal_api_job_swarm(const shoal_api_call *call);
void shoal_api_job_log(const shoal_api_call *call);
void shoal_api_job_model(const shoal_api_call *call);
void shoal_api_job_onnx(const shoal_api_call *call);
void shoal_api_job_evaluation(const shoal_api_call *call);
void shoal_api_job_events(const shoal_api_call *call);
void shoal_api_job_live(const shoal_api_call *call);
void shoal_api_job_brief(const shoal_api_call *call);
void shoal_api_submit_job(const shoal_api_call *call); /* api_submit.c */
/* Compares a model with a data set, and answers with `checked` where it fits, which is taken over. target may be
 * NULL. */
void shoal_api_compare(const shoal_api_call *call, const char *model, const char *data, const char *target,
                       shoal_text *checked);

void shoal_api_search_brief(const shoal_api_call *call); /* api_search.c */
void shoal_api_take_unit(const shoal_api_call *call);
void shoal_api_beat_unit(const shoal_api_call *call);
void shoal_api_fail_unit(const shoal_api_call *call);
void shoal_api_finish_unit(const shoal_api_call *call);
void shoal_api_get_state(const shoal_api_call *call);
void shoal_api_put_state(const shoal_api_call *call);
void shoal_api_list_trials(const shoal_api_call *call);
void shoal_api_show_trial(const shoal_api_call *call);
void shoal_api_trials_csv(const shoal_api_call *call);
void shoal_api_job_insight(const shoal_api_call *call);
void shoal_api_predict(const shoal_api_call *call);
void shoal_api_list_envs(const shoal_api_call *call); /* api_agent.c */
void shoal_api_agent_brief(const shoal_api_call *call);
void shoal_api_play(const shoal_api_call *call);
/* Before a body comes: true, and answered, where nobody can hand in a rollout now. */
bool shoal_api_play_refuses(const shoal_api_call *call);
uint64_t shoal_api_play_room(shoal_api *api, const char *job);
void shoal_api_play_left(shoal_api *api, uint64_t id);
void shoal_api_play_release(shoal_api *api);
void shoal_api_job_points(const shoal_api_call *call);
void shoal_api_list_checkpoints(const shoal_api_call *call);
void shoal_api_get_checkpoint(const shoal_api_call *call);
void shoal_api_play_episode(const shoal_api_call *call);
void shoal_api_profile_dataset(const shoal_api_call *call); /* api_tables.c */

void shoal_api_list_models(const shoal_api_call *call); /* api_things.c */
void shoal_api_show_model(const shoal_api_call *call);
void shoal_api_put_model(const shoal_api_call *call);
void shoal_api_delete_model(const shoal_api_call *call);
void shoal_api_check_model(const shoal_api_call *call);
void shoal_api_list_datasets(const shoal_api_call *call);
void shoal_api_show_dataset(const shoal_api_call *call);
void shoal_api_seal_dataset(const shoal_api_call *call);
void shoal_api_delete_dataset(const shoal_api_call *call);
void shoal_api_upload_file(const shoal_api_call *call);
void shoal_api_dataset_manifest(const shoal_api_call *call);
void shoal_api_chunk(const shoal_api_call *call);

void shoal_api_server(const shoal_api_call *call); /* api_server.c */
void shoal_api_live(const shoal_api_call *call);
void shoal_api_list_workers(const shoal_api_call *call);
void shoal_api_throughput(const shoal_api_call *call);
void shoal_api_contributions(const shoal_api_call *call);
void shoal_api_list_tokens(const shoal_api_call *call);
void shoal_api_make_token(const shoal_api_call *call);
void shoal_api_delete_token(const shoal_api_call *call);
void shoal_api_list_bans(const shoal_api_call *call);
void shoal_api_lift_ban(const shoal_api_call *call);
void shoal_api_audit(const shoal_api_call *call);
void shoal_api_metrics(const shoal_api_call *call);
void shoal_api_alive(const shoal_api_call *call);
void shoal_api_ready(const shoal_api_call *call);
void shoal_api_page(const shoal_api_call *call);

#endif
