/* api_agent.c: the routes of agents: what actors ask, and what people look at.
 *
 * Who asks for a unit when there is none waits for a little, in a list that every turn of the loop goes
 * through: a learner that is slower than its actors would else be asked thousands of times a second. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "server/agent_curve.h"
#include "server/api.h"
#include "server/folders.h"
#include "wire/http_read.h"

enum { WAITING_MAX = 4096, POINTS_AT_ONCE = 10000, PICTURES_MAX = 1001, CHECKPOINTS_MAX = 256 };
static const double HOLD_S = 1;     /* how long a question for a unit is held */
static const double LOOK_S = 0.01;  /* how often those who wait are thought of */
static const double MOMENT_S = 0.6; /* of an episode, before its picture is taken */

/* ---- what there is ---- */

static void write_algorithms_for(const shoal_env_kind *kind, shoal_json *json) {
  shoal_agent_settings settings;
  shoal_json_open(json, "algorithms", '[');
  for (int i = 0; i < SHOAL_ALGORITHMS; i++)
    if (shoal_agent_defaults(kind, (shoal_algorithm)i, &settings, NULL) == SHOAL_OK)
      shoal_json_text(json, NULL, shoal_algorithm_name((shoal_algorithm)i));
  shoal_json_close(json, ']');
  if (shoal_agent_defaults(kind, SHOAL_ALGORITHMS, &settings, NULL) == SHOAL_OK)
    shoal_json_text(json, "usual", shoal_algorithm_name(settings.algorithm));
}

/* How it looks a moment after an episode has begun, for who chooses among them. */
static void write_picture(const shoal_env_kind *kind, shoal_json *json) {
  enum { SEED = 3, HOLD = 2, ACTIONS_MAX = 64 };
  float actions[ACTIONS_MAX] = {0}, reward;
  uint8_t end;
  shoal_vector *vector;
  shoal_canvas canvas;
  shoal_text picture = {0};
  if (kind->action_width > ACTIONS_MAX || shoal_vector_create(&vector, kind, 1, NULL) != SHOAL_OK) return;
  shoal_canvas_init(&canvas);
  shoal_vector_reset(vector, SEED);
  for (uint32_t step = 0; step < (uint32_t)(MOMENT_S * kind->pace); step++) {
    if (kind->choices > 0) actions[0] = (float)(step / HOLD % kind->choices);
    shoal_vector_step(vector, actions, &reward, &end);
  }
  kind->draw(shoal_vector_state(vector, 0), &canvas);
  shoal_canvas_json(&canvas, &picture);
  if (!canvas.failed && !picture.failed) shoal_json_raw(json, "picture", picture.bytes, picture.length);
  shoal_text_release(&picture);
  shoal_canvas_release(&canvas);
  shoal_vector_destroy(vector);
}

static void write_env(const shoal_env_kind *kind, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "name", kind->name);
  shoal_json_text(json, "says", kind->says);
  shoal_json_real(json, "goal", kind->solved);
  shoal_json_int(json, "limit", kind->limit);
  shoal_json_int(json, "observation", kind->observation);
  if (kind->choices > 0)
    shoal_json_int(json, "actions", kind->choices);
  else
    shoal_json_null(json, "actions");
  write_algorithms_for(kind, json);
  write_picture(kind, json);
  shoal_json_close(json, '}');
}

void shoal_api_list_envs(const shoal_api_call *call) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "envs", '[');
  for (int i = 0; shoal_env_kinds[i] != NULL; i++) write_env(shoal_env_kinds[i], &json);
  shoal_json_close(&json, ']');
  shoal_json_open(&json, "algorithms", '[');
  for (int i = 0; i < SHOAL_ALGORITHMS; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "name", shoal_algorithm_name((shoal_algorithm)i));
    shoal_json_text(&json, "says", shoal_algorithm_says((shoal_algorithm)i));
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_api_json(call, 200, &text);
}

/* ---- for actors ---- */

/* Of a job that is not open: it may go on, or is over for good. */
static void answer_closed(const shoal_api_call *call) {
  shoal_job_row row;
  if (!shoal_api_may_see(call, call->id)) return;
  bool stopped = false;
  if (shoal_store_job(call->api->store, call->id, &row, NULL) == SHOAL_OK) {
    stopped = row.state == SHOAL_JOB_STOPPED;
    shoal_job_rows_free(&row, 1);
  }
  shoal_api_error(call, stopped ? 409 : 410, stopped ? "the training is stopped" : "the training is over");
}

/* The training that is open and that the caller may play for; answers when there is none. */
static shoal_open_job *find_agent(const shoal_api_call *call) {
  shoal_open_job *job = shoal_jobs_find(call->api->jobs, call->id);
  if (job == NULL || !shoal_access_may_see(&call->caller, call->id, job->is_private, job->host)) {
    answer_closed(call);
    return NULL;
  }
  if (job->agent_runner != NULL && !job->stopping) return job;
  shoal_api_error(call, 409,
                  job->kind != SHOAL_JOB_AGENT ? "this job trains no agent"
                  : job->stopping              ? "the training is being stopped"
                                               : "the training has not begun; ask again");
  return NULL;
}

void shoal_api_agent_brief(const shoal_api_call *call) {
  const shoal_open_job *job = find_agent(call);
  if (job == NULL) return;
  shoal_text text;
  shoal_error err;
  shoal_text_init(&text);
  shoal_status status = shoal_agent_runner_brief(job->agent_runner, &text, &err);
  shoal_api_finish(call, 200, status, &text, &err);
}

bool shoal_api_play_refuses(const shoal_api_call *call) {
  const shoal_open_job *job = find_agent(call);
  if (job == NULL) return true;
  if (shoal_agent_runner_rollout_max(job->agent_runner) > 0) return false;
  shoal_api_error(call, 409, "the training is being prepared; ask again");
  return true;
}

uint64_t shoal_api_play_room(shoal_api *api, const char *name) {
  uint64_t id;
  const shoal_open_job *job = shoal_read_u64(name, strlen(name), &id) ? shoal_jobs_find(api->jobs, id) : NULL;
  return job != NULL && job->agent_runner != NULL ? shoal_agent_runner_rollout_max(job->agent_runner) : 0;
}

/* Who plays, from the query. */
typedef struct player {
  char said[SHOAL_NAME_MAX];  /* its name, as it says it */
  char actor[SHOAL_NAME_MAX]; /* that it has here, where two of one name are told apart */
  uint64_t who;               /* its number of standings.h */
  uint64_t known;             /* version of the policy that it has; UINT64_MAX: none */
  uint64_t life;              /* of the training that it plays for; 0: it does not say */
  uint64_t cannot;            /* number of a unit that it cannot play; UINT64_MAX: none */
  uint32_t units_max;         /* that it may hold */
} player;

/* Somebody who is none of the volunteers here has the name that it says, but no volunteer's: that one would
 * be blamed for it. */
static void name_stranger(const shoal_api_call *call, player *p) {
  enum { MARK = 8 };
  char name[SHOAL_NAME_MAX - MARK];
  shoal_text_plain(name, sizeof name, p->said, strlen(p->said));
  if (shoal_volunteers_are_at(call->api->volunteers, call->id, p->said))
    snprintf(p->actor, sizeof p->actor, "%s #%06x", name, (unsigned)(p->who & 0xffffff));
  else
    snprintf(p->actor, sizeof p->actor, "%s", p->said);
}

/* False, and answered: the query is wrong. */
static bool read_player(const shoal_api_call *call, player *p) {
  uint64_t number;
  if (!shoal_query_value(call->request->query, "worker", p->said, sizeof p->said) || p->said[0] == 0) {
    shoal_api_error_at(call, 400, "worker must be the name of who asks, at most 63 bytes", "worker", 0, 0);
    return false;
  }
  if (!shoal_api_number(call, "version", UINT64_MAX - 1, UINT64_MAX, &p->known) ||
      !shoal_api_number(call, "number", UINT64_MAX - 1, 0, &number) ||
      !shoal_api_number(call, "life", UINT64_MAX - 1, 0, &p->life) ||
      !shoal_api_number(call, "cannot", UINT64_MAX - 1, UINT64_MAX, &p->cannot))
    return false;
  shoal_text_plain(p->said, sizeof p->said, p->said, strlen(p->said));
  const shoal_volunteer *volunteer = shoal_volunteers_recognise(
      call->api->volunteers, call->id, number, p->said, call->request->address, &call->caller);
  p->who = shoal_standings_meet(shoal_jobs_standings(call->api->jobs), call->caller.token, p->said,
                                call->request->address);
  p->units_max = 1 + (volunteer != NULL && volunteer->threads > 0 ? volunteer->threads : 1);
  if (volunteer != NULL)
    snprintf(p->actor, sizeof p->actor, "%s", volunteer->name);
  else
    name_stranger(call, p);
  return true;
}

/* False, and answered: it is banned, or plays for a life of the training that is over. */
static bool check_player(const shoal_api_call *call, const shoal_open_job *job, const player *p) {
  if (shoal_api_bans(call, p->who)) return false;
  if (p->life == 0 || p->life == shoal_agent_runner_life(job->agent_runner)) return true;
  shoal_api_error_at(call, 409, "the training has begun another life since; ask for its brief anew", "life",
                     0, 0);
  return false;
}

/* False, and answered: what it plays would look like a lie, though it is none. */
static bool check_math(const shoal_api_call *call, const shoal_open_job *job) {
  char said[SHOAL_NAME_MAX];
  const char *ours = shoal_agent_runner_math(job->agent_runner);
  if (ours == NULL || !shoal_query_value(call->request->query, "math", said, sizeof said) ||
      strcmp(said, ours) == 0)
    return true;
  shoal_api_error_at(
      call, 409,
      "this machine's C library does its math otherwise than the server's, in last bits: what it "
      "plays could not be checked",
      "math", 0, 0);
  return false;
}

/* Takes a rollout in. False, and answered: it is none. */
static bool take_rollout(const shoal_api_call *call, shoal_open_job *job, const player *p) {
  shoal_blob *body = call->request->body;
  const shoal_job_player played_by = {.who = p->who, .name = p->actor};
  uint64_t steps;
  shoal_error err;
  if (p->cannot != UINT64_MAX) shoal_jobs_give_up(job, &played_by, p->cannot);
  if (body == NULL || shoal_blob_length(body) == 0) return true;
  shoal_status status = shoal_jobs_hand_in(call->api->jobs, job, &played_by, shoal_blob_bytes(body),
                                           shoal_blob_length(body), &steps, &err);
  if (status != SHOAL_OK) {
    if (status == SHOAL_INVALID)
      shoal_api_error(call, 400, err.text);
    else
      shoal_api_failed(call, &err);
    return false;
  }
  if (steps > 0) shoal_volunteers_credit(call->api->volunteers, call->id, p->actor, steps);
  return true;
}

/* The length of the unit, the unit, and the policy, which may be empty. */
static void answer_unit(const shoal_api_call *call, const shoal_text *unit, const shoal_text *policy) {
  uint32_t length = (uint32_t)unit->length;
  shoal_blob *body = shoal_blob_create(sizeof length + unit->length + policy->length);
  if (body == NULL) {
    shoal_api_error(call, 503, "the server has not the memory for that now; try again");
    return;
  }
  uint8_t *at = shoal_blob_bytes(body);
  memcpy(at, &length, sizeof length);
  memcpy(at + sizeof length, unit->bytes, unit->length);
  if (policy->length > 0) memcpy(at + sizeof length + unit->length, policy->bytes, policy->length);
  shoal_api_answer(call, &(shoal_answer){.status = 200, .type = "application/octet-stream", .body = body});
}

/* Answers with a unit, or with why there will be none. False: there is none just now. */
static bool give_unit(const shoal_api_call *call, const shoal_open_job *job, const player *p) {
  shoal_text unit = {0}, policy = {0};
  shoal_coach_next next;
  shoal_error err;
  bool answered = true;
  if (shoal_agent_runner_take(job->agent_runner, p->actor, p->units_max, p->known, &next, &unit, &policy,
                              &err) != SHOAL_OK)
    shoal_api_failed(call, &err);
  else if (next == SHOAL_COACH_UNIT)
    answer_unit(call, &unit, &policy);
  else if (next == SHOAL_COACH_OVER && shoal_jobs_are_closing(call->api->jobs))
    shoal_api_error(call, 503, "the server is being stopped; the training continues when it is back");
  else if (next == SHOAL_COACH_OVER)
    shoal_api_error(call, 410, "the training is over");
  else
    answered = false;
  shoal_text_release(&unit);
  shoal_text_release(&policy);
  return answered;
}

/* ---- those who wait ---- */

typedef struct shoal_api_waiting {
  struct shoal_api_waiting *next;
  shoal_kept_call kept;
  player player;
  double until;
} waiting;

static void release_waiting(waiting *w) {
  shoal_api_release_call(&w->kept);
  free(w);
}

/* At the end of the list: who has waited longest is thought of first. */
static void hold(const shoal_api_call *call, const player *p) {
  waiting **at = &call->api->waiting;
  uint32_t count = 0;
  for (; *at != NULL; at = &(*at)->next) count++;
  waiting *w = count < WAITING_MAX ? calloc(1, sizeof *w) : NULL;
  if (w == NULL || !shoal_api_keep_call(&w->kept, call)) {
    if (w != NULL) release_waiting(w);
    shoal_api_empty(call, 204);
    return;
  }
  w->player = *p;
  w->until = shoal_clock_seconds() + HOLD_S;
  *at = w;
}

/* False: it waits on. */
static bool settle_waiting(waiting *w, double now) {
  const shoal_api_call *call = &w->kept.call;
  const shoal_open_job *job = find_agent(call);
  if (job == NULL || !check_player(call, job, &w->player) || give_unit(call, job, &w->player)) return true;
  if (now < w->until) return false;
  shoal_api_empty(call, 204);
  return true;
}

/* Where there is nothing for one, there is nothing for others of the same job either. */
double shoal_api_tick(shoal_api *api, double now) {
  uint64_t empty = 0;
  for (waiting **at = &api->waiting, *w; (w = *at) != NULL;) {
    uint64_t job = w->kept.call.id;
    if ((job == empty && now < w->until) || !settle_waiting(w, now)) {
      empty = job;
      at = &w->next;
      continue;
    }
    *at = w->next;
    release_waiting(w);
  }
  return api->waiting != NULL ? now + LOOK_S : INFINITY;
}

void shoal_api_play_left(shoal_api *api, uint64_t id) {
  waiting **at = &api->waiting;
  while (*at != NULL && (*at)->kept.request.id != id) at = &(*at)->next;
  waiting *w = *at;
  if (w == NULL) return;
  *at = w->next;
  release_waiting(w);
}

void shoal_api_play_release(shoal_api *api) {
  while (api->waiting != NULL) shoal_api_play_left(api, api->waiting->kept.request.id);
}

void shoal_api_play(const shoal_api_call *call) {
  player p;
  shoal_open_job *job = find_agent(call);
  if (job == NULL || !read_player(call, &p) || !check_player(call, job, &p) || !check_math(call, job)) return;
  if (!take_rollout(call, job, &p)) return;
  if (!give_unit(call, job, &p)) hold(call, &p);
}

/* ---- for people ---- */

/* Where a file of the job's is, or would be; answers when the caller may not see it. */
static bool find_path(const shoal_api_call *call, const char *name, shoal_text *path) {
  shoal_error err;
  if (!shoal_api_may_see(call, call->id)) return false;
  shoal_status status = shoal_jobs_file(call->api->jobs, call->id, name, path, &err);
  if (status == SHOAL_OK || status == SHOAL_NOT_FOUND) return true;
  shoal_api_failed(call, &err);
  return false;
}

void shoal_api_job_points(const shoal_api_call *call) {
  uint64_t from, next;
  shoal_text path = {0}, text;
  shoal_json json;
  shoal_error err;
  if (shoal_api_number(call, "from", UINT64_MAX / 2, 0, &from) && find_path(call, "curve.jsonl", &path)) {
    shoal_json_begin(&json, &text);
    shoal_json_open(&json, NULL, '{');
    shoal_json_open(&json, "points", '[');
    shoal_status status = shoal_agent_curve_read(path.bytes, from, POINTS_AT_ONCE, &json, &next, &err);
    shoal_json_close(&json, ']');
    shoal_json_int(&json, "next", (int64_t)next);
    shoal_json_close(&json, '}');
    shoal_api_finish(call, 200, status, &text, &err);
  }
  shoal_text_release(&path);
}

static void write_checkpoint(const char *folder, uint64_t steps, shoal_json *json) {
  struct stat file;
  char *path = shoal_path("%s/%" PRIu64 ".safetensors", folder, steps);
  if (path != NULL && stat(path, &file) == 0) {
    shoal_json_open(json, NULL, '{');
    shoal_json_int(json, "steps", (int64_t)steps);
    shoal_json_int(json, "bytes", file.st_size);
    shoal_json_real(json, "time", (double)file.st_mtim.tv_sec + (double)file.st_mtim.tv_nsec * 1e-9);
    shoal_json_close(json, '}');
  }
  free(path);
}

void shoal_api_list_checkpoints(const shoal_api_call *call) {
  shoal_text folder = {0}, text;
  shoal_json json;
  if (find_path(call, "checkpoints", &folder)) {
    uint64_t steps[CHECKPOINTS_MAX];
    uint32_t count = shoal_coach_checkpoints(folder.bytes, steps, CHECKPOINTS_MAX);
    shoal_api_list_begin(&json, &text, "checkpoints");
    for (uint32_t i = 0; i < count; i++) write_checkpoint(folder.bytes, steps[i], &json);
    shoal_api_list_end(call, &json);
  }
  shoal_text_release(&folder);
}

/* The newest checkpoint of a folder, or none. */
static bool find_newest(const char *folder, uint64_t *steps) {
  uint64_t all[CHECKPOINTS_MAX];
  uint32_t count = shoal_coach_checkpoints(folder, all, CHECKPOINTS_MAX);
  if (count > 0) *steps = all[count - 1];
  return count > 0;
}

static void add_checkpoint(shoal_text *path, uint64_t steps) {
  shoal_text_addf(path, "/%" PRIu64 ".safetensors", steps);
}

static bool asks_newest(const shoal_api_call *call) { return strcmp(call->names[1], "newest") == 0; }

/* The file of the checkpoint in the path: its steps, or "newest"; answers when there is none. */
static bool find_checkpoint(const shoal_api_call *call, uint64_t *steps, shoal_text *path) {
  bool newest = asks_newest(call);
  if (!find_path(call, "checkpoints", path)) return false;
  bool found = newest ? find_newest(path->bytes, steps)
                      : shoal_read_u64(call->names[1], strlen(call->names[1]), steps);
  if (found) add_checkpoint(path, *steps);
  found = found && (newest || shoal_file_exists(path->bytes));
  if (!found)
    shoal_api_error(call, 404,
                    newest ? "there is no checkpoint yet" : "there is no such checkpoint, or no more");
  return found;
}

void shoal_api_get_checkpoint(const shoal_api_call *call) {
  shoal_text path = {0};
  uint64_t steps = 0;
  if (find_checkpoint(call, &steps, &path)) {
    char name[64];
    snprintf(name, sizeof name, "job-%" PRIu64 "-%" PRIu64 ".safetensors", call->id, steps);
    shoal_api_answer(
        call, &(shoal_answer){
                  .status = 200, .type = "application/octet-stream", .file = path.bytes, .download = name});
  }
  shoal_text_release(&path);
}

/* ---- an episode ---- */

/* A request that waits for a thread. */
typedef struct episode {
  shoal_kept_call kept;
  shoal_text path, answer;
  bool newest;
  uint64_t steps, seed;
  shoal_status status;
  shoal_error err;
} episode;

/* What was the newest may have been thinned out while the request waited: then there is a newer one. */
static bool find_newer(episode *e) {
  uint64_t steps;
  if (shoal_file_exists(e->path.bytes)) return false;
  *strrchr(e->path.bytes, '/') = 0;
  e->path.length = strlen(e->path.bytes);
  bool found = find_newest(e->path.bytes, &steps) && steps > e->steps;
  if (found) e->steps = steps;
  add_checkpoint(&e->path, e->steps);
  return found;
}

static void run_episode(void *self) {
  episode *e = self;
  do e->status = shoal_coach_episode(e->path.bytes, e->seed, PICTURES_MAX, &e->answer, &e->err);
  while (e->status != SHOAL_OK && e->newest && find_newer(e));
}

static void release_episode(episode *e) {
  shoal_api_release_call(&e->kept);
  shoal_text_release(&e->path);
  shoal_text_release(&e->answer);
  free(e);
}

static void end_episode(void *self, bool ran) {
  episode *e = self;
  if (!ran) e->status = shoal_fail(&e->err, SHOAL_STOPPED, "the server is being stopped");
  if (ran && e->status != SHOAL_OK && !shoal_file_exists(e->path.bytes)) /* thinned out meanwhile */
    e->status = shoal_fail(&e->err, SHOAL_NOT_FOUND, "there is no such checkpoint any more");
  if (e->status != SHOAL_OK) shoal_cut_path(e->err.text, e->path.bytes, 1);
  shoal_api_finish(&e->kept.call, 200, e->status, &e->answer, &e->err);
  release_episode(e);
}

void shoal_api_play_episode(const shoal_api_call *call) {
  uint64_t seed, steps = 0;
  shoal_text path = {0};
  if (!shoal_api_number(call, "seed", UINT64_MAX / 2, 1, &seed) || !find_checkpoint(call, &steps, &path)) {
    shoal_text_release(&path);
    return;
  }
  episode *e = calloc(1, sizeof *e);
  if (e == NULL) {
    shoal_text_release(&path);
    shoal_api_error(call, 503, "out of memory");
    return;
  }
  *e = (episode){.path = path, .newest = asks_newest(call), .steps = steps, .seed = seed};
  bool kept = shoal_api_keep_call(&e->kept, call);
  const shoal_chore chore = {.subject = "", .self = e, .run = run_episode, .done = end_episode};
  if (kept && !path.failed && shoal_chores_add(call->api->reads, &chore)) return;
  shoal_api_error(call, 503, "too many wait already; try again");
  release_episode(e);
}
