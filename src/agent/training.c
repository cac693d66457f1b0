/* training.c: see training.h.
 *
 * The course and the last versions of the policy are shared, under one lock. A thread takes a unit, and plays
 * it with the player of its stream, whose environments stand where the unit begins; a stream has one unit at
 * a time, so its player has one thread. Each version is there as bytes until no unit can ask for it any more.
 *
 * Everything that takes a while asks must_end whether to go on: players at every step, the learner before
 * every update, scores at every step, and whoever waits for Python. */
#include "agent/training.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent_trainer.h"
#include "agent/bridge.h"
#include "agent/bytes.h"
#include "agent/policy.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/random.h"
#include "base/room.h"
#include "base/thread.h"

enum { VERSIONS_LEAST = SHOAL_LAG_MAX + 2, VERSIONS_MOST = SHOAL_CHECKED_LAG_MAX + 2 };
enum { RECENT = 100, NEAR_EPISODES = 25 };
enum { REFUSED_ROUNDS_MAX = 8 };
enum { SCORE_PARTS = 10, FIRST_PARTS = 2, PART_EPISODES = SHOAL_SCORE_EPISODES / SCORE_PARTS };
static const double LEASE_S = 1e9; /* threads are not lost */
static const char ACTOR[] = "thread";
/* How near the goal recent returns are, as a share of its size, and how many steps for each step of a score
 * lie between two scores then. What is learned is often better than what is played to learn. */
static const struct { double within, cost; } nearness[] = {{0.2, 1}, {0.5, 4}, {1, 8}, {INFINITY, 50}};
static const double PROMISING = 0.1;  /* of the goal's size: how near the first parts of a score must be */
static const double ROUNDING = 1e-12; /* of the goal's size */
static const uint64_t SCORE_STREAM = (uint64_t)1 << 32; /* beyond those that are learned from */
static const double SCORE_SHARE = 0.1;   /* of the seconds: what the last score is left at most */
static const double SCORE_MARGIN = 2;    /* for what it is expected to take */
static const double FIRST_EPISODE_S = 1; /* at least: how much longer the first of the last score may take */
static const double RATE_S = 1;          /* how long steps are counted for their rate, at least */
static const long WAIT_NS = 100000000;

typedef struct shoal_agent_trainer trainer;

typedef struct player {
  trainer *trainer;
  shoal_actor *actor;
  uint64_t version; /* that its policy is; UINT64_MAX: none yet */
  shoal_play_unit unit;
} player;

/* Who scores. */
typedef struct judge {
  shoal_policy *policy;
  uint64_t version; /* likewise */
} judge;

struct shoal_agent_trainer {
  const shoal_training_options *o;
  const shoal_agent_trainer_outside *outside; /* NULL: threads of its own play */
  shoal_course *course;
  pthread_mutex_t lock;
  pthread_cond_t changed;             /* a rollout came in, a version is there, or it is over */
  shoal_text versions[VERSIONS_MOST]; /* version v in place v % kept */
  uint32_t kept;
  uint64_t newest;
  bool over;        /* also read without the lock */
  bool time_is_up;  /* to learn; likewise */
  bool scores_last; /* nobody plays any more, and the policy is scored for the last time */
  shoal_interrupt interrupt;
  shoal_status failed; /* a player's */
  shoal_error error;
  player *players;    /* one a stream */
  pthread_t *threads; /* that play while the caller's learns */
  uint32_t threads_count;

  double begun, saved;
  bool full;             /* the last save found no room, and that was said */
  double seconds_before; /* of earlier sessions, where they count */
  uint64_t steps_before; /* of earlier sessions */
  double rated_seconds;  /* when steps were last counted for the rate, and how many there were */
  uint64_t rated_steps;
  float recent[RECENT]; /* returns, a ring */
  uint64_t episodes;
  uint32_t refused_rounds;         /* one after the other */
  uint64_t scored_at, score_steps; /* learner's steps at the last score; what the score took */
  uint64_t scores;
  double score_s; /* what a score of all episodes may take; INFINITY: not known yet */
  judge *judges;  /* a thread of the pool each */
  uint32_t judges_count;
  shoal_training_view view;
};

/* ---- versions ----------------------------------------------------------------------- */

static shoal_status publish(trainer *t, shoal_error *err) {
  shoal_policy *policy = shoal_learner_policy(t->o->learner);
  t->newest = shoal_policy_state_of(policy)->version;
  shoal_text *bytes = &t->versions[t->newest % t->kept];
  shoal_text_clear(bytes);
  shoal_policy_write(policy, bytes);
  return bytes->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a version of the policy")
                       : SHOAL_OK;
}

/* known: the version that the policy is, or UINT64_MAX. */
static shoal_status read_version(const trainer *t, uint64_t version, shoal_policy *policy, uint64_t *known,
                                 shoal_error *err) {
  if (*known == version) return SHOAL_OK;
  const shoal_text *bytes = &t->versions[version % t->kept];
  shoal_status status = shoal_policy_read(policy, bytes->bytes, bytes->length, err);
  if (status == SHOAL_OK) *known = version;
  return status;
}

/* ---- when it is over ---------------------------------------------------------------- */

static bool is_stopped(const trainer *t) {
  return t->o->stop && __atomic_load_n(t->o->stop, __ATOMIC_RELAXED);
}

static double elapsed(const trainer *t) {
  return t->o->elapsed ? t->o->elapsed(t->o->self) : shoal_clock_seconds() - t->begun;
}

/* The seconds that the last score is left. */
static double reserve_of(const trainer *t) {
  double score_s;
  __atomic_load(&t->score_s, &score_s, __ATOMIC_RELAXED);
  return fmin(SCORE_SHARE * (t->o->seconds - t->seconds_before), score_s);
}

/* Of learning. Once it is, it stays so: a score that takes less than expected gives no time back. */
static bool is_timed_out(trainer *t) {
  if (!(t->o->seconds > 0)) return false;
  if (__atomic_load_n(&t->time_is_up, __ATOMIC_RELAXED)) return true;
  if (elapsed(t) < t->o->seconds - reserve_of(t)) return false;
  __atomic_store_n(&t->time_is_up, true, __ATOMIC_RELAXED);
  return true;
}

/* The last score's time; that of its first episode is a little longer, so that there be one. */
static bool is_score_timed_out(const trainer *t, bool first) {
  double longer = first ? fmax(FIRST_EPISODE_S, SCORE_SHARE * (t->o->seconds - t->seconds_before)) : 0;
  return t->o->seconds > 0 && elapsed(t) >= t->o->seconds + longer;
}

static bool must_end(void *self) {
  trainer *t = self;
  if (is_stopped(t)) return true;
  if (t->scores_last) return is_score_timed_out(t, true);
  return __atomic_load_n(&t->over, __ATOMIC_RELAXED) || is_timed_out(t);
}

/* With the lock. */
static void set_over(trainer *t) {
  __atomic_store_n(&t->over, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&t->changed);
}

/* ---- playing ------------------------------------------------------------------------ */

static void fail(trainer *t, shoal_status status, const shoal_error *err) {
  if (t->failed == SHOAL_OK) {
    t->failed = status;
    t->error = *err;
  }
  set_over(t);
}

static shoal_status copy_unit(shoal_play_unit *to, const shoal_play_unit *from, shoal_error *err) {
  shoal_text state = to->state;
  *to = *from;
  to->state = state;
  shoal_text_clear(&to->state);
  shoal_text_add(&to->state, from->state.bytes, from->state.length);
  return to->state.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a unit") : SHOAL_OK;
}

/* With the lock: who has a unit and its version, if there is one to play; else NULL. */
static player *take(trainer *t) {
  const shoal_play_unit *unit;
  shoal_error err;
  if (t->over || !shoal_course_take(t->course, ACTOR, shoal_clock_seconds(), &unit)) return NULL;
  player *p = &t->players[unit->stream];
  shoal_status status = copy_unit(&p->unit, unit, &err);
  if (status == SHOAL_OK)
    status = read_version(t, p->unit.version, shoal_actor_policy(p->actor), &p->version, &err);
  if (status != SHOAL_OK) fail(t, status, &err);
  return status == SHOAL_OK ? p : NULL;
}

/* Without the lock: plays the unit; and with it again, hands it in. One that was given up is nobody's. */
static void play(player *p) {
  trainer *t = p->trainer;
  const shoal_rollout_shape shape = shoal_learner_shape(t->o->learner);
  shoal_rollout *rollout = NULL;
  shoal_error err;
  shoal_status status = shoal_rollout_create(&rollout, &shape, &err);
  if (status == SHOAL_OK) status = shoal_actor_play(p->actor, &p->unit, rollout, &err);
  pthread_mutex_lock(&t->lock);
  if (status == SHOAL_OK) {
    shoal_course_done(t->course, rollout, ACTOR, shoal_clock_seconds());
    pthread_cond_broadcast(&t->changed);
  } else {
    shoal_rollout_destroy(rollout);
    if (status != SHOAL_STOPPED) fail(t, status, &err);
  }
}

/* A unit of this round, by whatever thread of the pool is free. */
static void play_task(void *context, uint32_t task, uint32_t thread) {
  (void)task;
  (void)thread;
  trainer *t = context;
  pthread_mutex_lock(&t->lock);
  player *p = take(t);
  if (p) {
    pthread_mutex_unlock(&t->lock);
    play(p);
  }
  pthread_mutex_unlock(&t->lock);
}

/* A thread that plays while the learner learns. */
static void *play_on(void *context) {
  trainer *t = context;
  pthread_mutex_lock(&t->lock);
  while (!t->over) {
    player *p = take(t);
    if (p) {
      pthread_mutex_unlock(&t->lock);
      play(p);
    } else if (!t->over) {
      pthread_cond_wait(&t->changed, &t->lock);
    }
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

static bool plays_apart(const trainer *t) { return t->outside || t->o->config.settings.lag > 0; }

/* Waits for a round of those who play apart; a signal is seen soon, too. */
static shoal_rollout *const *wait_for_round(trainer *t, uint32_t *count) {
  shoal_rollout *const *round;
  pthread_mutex_lock(&t->lock);
  while ((round = shoal_course_round(t->course, count)) == NULL && !t->over && !is_stopped(t) &&
         !is_timed_out(t)) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&t->changed, &t->lock, &until);
  }
  pthread_mutex_unlock(&t->lock);
  return round;
}

static shoal_rollout *const *play_round(trainer *t, uint32_t *count) {
  if (plays_apart(t)) return wait_for_round(t, count);
  uint32_t streams = t->o->config.settings.streams;
  shoal_pool_run(shoal_learner_pool(t->o->learner), streams, play_task, t);
  return shoal_course_round(t->course, count);
}

/* ---- the score ---------------------------------------------------------------------- */

static double recent_mean(const trainer *t, uint64_t of) {
  uint64_t count = t->episodes < of ? t->episodes : of;
  double sum = 0;
  for (uint64_t i = 0; i < count; i++) sum += t->recent[(t->episodes - 1 - i) % RECENT];
  return count > 0 ? sum / (double)count : NAN;
}

static double recent_deviation(const trainer *t, double mean) {
  uint64_t count = t->episodes < RECENT ? t->episodes : RECENT;
  double squares = 0;
  for (uint64_t i = 0; i < count; i++) squares += (t->recent[i] - mean) * (t->recent[i] - mean);
  return count > 0 ? sqrt(squares / (double)count) : NAN;
}

/* Follows from steps and returns alone. */
static bool score_is_due(const trainer *t) {
  double goal = t->o->config.kind->solved, away = INFINITY;
  double since = (double)(shoal_learner_steps(t->o->learner) - t->scored_at);
  if (t->o->until_solved && t->episodes >= NEAR_EPISODES && !isnan(goal))
    away = (goal - recent_mean(t, NEAR_EPISODES)) / fmax(fabs(goal), 1e-9);
  int level = 0;
  while (away > nearness[level].within) level++;
  bool far = isinf(nearness[level].within);
  return (!far || t->scores > 0) && since >= nearness[level].cost * (double)t->score_steps;
}

/* A score is made of parts, each with a seed of its own, so that threads can share it: ten of ten episodes,
 * or as the last one a hundred of one each, since that may have to end early. */
typedef struct score_parts {
  trainer *trainer;
  uint32_t episodes;    /* of a part */
  uint32_t from, count; /* the first that is played now; how many, from the first of all, are done */
  shoal_evaluation at[SHOAL_SCORE_EPISODES];
  shoal_status status[SHOAL_SCORE_EPISODES];
  shoal_error error; /* of a part, a failure rather than the end of the time; under the trainer's lock */
} score_parts;

/* A part of the last score; the first one has more time. */
static bool must_end_late(void *self) { return is_stopped(self) || is_score_timed_out(self, false); }

static shoal_status score_part(score_parts *parts, judge *by, uint32_t part, shoal_error *err) {
  trainer *t = parts->trainer;
  const shoal_interrupt late = {must_end_late, t};
  const shoal_interrupt *interrupt = t->scores_last && part > 0 ? &late : &t->interrupt;
  shoal_key key = shoal_key_make(t->o->config.seed, SHOAL_FOR_EPISODES, SCORE_STREAM + part, t->scores);
  if (shoal_interrupted(interrupt)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
  shoal_status status = read_version(t, t->newest, by->policy, &by->version, err);
  if (status != SHOAL_OK) return status;
  return shoal_evaluate_policy(by->policy, t->o->config.kind, parts->episodes, shoal_random_u64(key, 0),
                               interrupt, &parts->at[part], err);
}

static void score_task(void *context, uint32_t task, uint32_t thread) {
  score_parts *parts = context;
  trainer *t = parts->trainer;
  shoal_error err;
  uint32_t part = parts->from + task;
  parts->status[part] = score_part(parts, &t->judges[thread], part, &err);
  if (parts->status[part] == SHOAL_OK) return;
  pthread_mutex_lock(&t->lock);
  if (parts->error.status == SHOAL_OK || parts->error.status == SHOAL_STOPPED) parts->error = err;
  pthread_mutex_unlock(&t->lock);
}

/* Parts [from, to), by all threads unless these play or learn. */
static shoal_status play_parts(score_parts *parts, uint32_t from, uint32_t to, shoal_error *err) {
  trainer *t = parts->trainer;
  bool is_free = t->scores_last || !plays_apart(t);
  parts->from = from;
  shoal_pool_run(is_free ? shoal_learner_pool(t->o->learner) : NULL, to - from, score_task, parts);
  while (parts->count < to && parts->status[parts->count] == SHOAL_OK) parts->count++;
  if (parts->error.status != SHOAL_OK) *err = parts->error;
  return parts->error.status;
}

static void join_parts(const score_parts *parts, shoal_evaluation *out) {
  uint32_t count = parts->count;
  double mean = 0, squares = 0, length = 0;
  *out = (shoal_evaluation){.mean = NAN, .deviation = NAN, .least = NAN, .most = NAN, .mean_length = NAN};
  if (count == 0) return;
  for (uint32_t i = 0; i < count; i++) {
    const shoal_evaluation *part = &parts->at[i];
    mean += part->mean;
    length += part->mean_length / count;
    out->least = fmin(out->least, part->least);
    out->most = fmax(out->most, part->most);
  }
  mean /= count;
  for (uint32_t i = 0; i < count; i++) {
    double within = parts->at[i].deviation, off = parts->at[i].mean - mean;
    squares += (within * within + off * off) / count;
  }
  out->episodes = count * parts->episodes;
  out->mean = mean;
  out->deviation = sqrt(squares);
  out->mean_length = length;
}

/* A mean is rounded: of a hundred returns that are the goal it may be a little less. */
static bool reaches(double mean, double goal) { return mean >= goal - ROUNDING * fabs(goal); }

static void note_score(trainer *t, double seconds) {
  const shoal_evaluation *evaluation = &t->view.evaluation;
  t->scores++;
  t->scored_at = shoal_learner_steps(t->o->learner);
  t->view.scored = evaluation->episodes > 0;
  t->view.solved =
      evaluation->episodes == SHOAL_SCORE_EPISODES && reaches(evaluation->mean, t->o->config.kind->solved);
  if (evaluation->episodes == 0) return;
  double expected = SCORE_MARGIN * seconds * SHOAL_SCORE_EPISODES / evaluation->episodes;
  __atomic_store(&t->score_s, &expected, __ATOMIC_RELAXED);
  t->score_steps = (uint64_t)(evaluation->mean_length * FIRST_PARTS * PART_EPISODES);
  shoal_learner_scored(t->o->learner, evaluation->mean);
}

/* It ends after the first parts where these are not promising. */
static shoal_status score(trainer *t, shoal_error *err) {
  score_parts parts = {.trainer = t, .episodes = PART_EPISODES};
  double goal = t->o->config.kind->solved, begun = shoal_clock_seconds();
  shoal_evaluation first;
  shoal_status status = play_parts(&parts, 0, FIRST_PARTS, err);
  join_parts(&parts, &first);
  if (status == SHOAL_OK && first.mean >= goal - PROMISING * fabs(goal))
    status = play_parts(&parts, FIRST_PARTS, SCORE_PARTS, err);
  if (status != SHOAL_OK) return status;
  join_parts(&parts, &t->view.evaluation);
  note_score(t, shoal_clock_seconds() - begun);
  return SHOAL_OK;
}

/* All episodes; where the time does not suffice, those before the first that was not played to its end. */
static shoal_status score_last(trainer *t, shoal_error *err) {
  score_parts parts = {.trainer = t, .episodes = 1};
  double begun = shoal_clock_seconds();
  shoal_status status = play_parts(&parts, 0, SHOAL_SCORE_EPISODES, err);
  if (status != SHOAL_OK && (status != SHOAL_STOPPED || is_stopped(t))) return status;
  join_parts(&parts, &t->view.evaluation);
  note_score(t, shoal_clock_seconds() - begun);
  return SHOAL_OK;
}

/* ---- files -------------------------------------------------------------------------- */

/* The notes, little-endian: 8 the course's length, the course; then, until the end, versions that units may
 * ask for and that the learner has not itself any more: 8 number, 8 length, bytes. */
static shoal_status write_notes(trainer *t, shoal_error *err) {
  shoal_text course = {0}, *notes = shoal_learner_notes(t->o->learner);
  pthread_mutex_lock(&t->lock);
  shoal_course_write(t->course, &course);
  uint64_t oldest = shoal_course_oldest(t->course);
  pthread_mutex_unlock(&t->lock);
  shoal_text_clear(notes);
  shoal_put_u64(notes, course.length);
  shoal_text_add(notes, course.bytes, course.length);
  for (uint64_t version = oldest; version < t->newest; version++) {
    const shoal_text *bytes = &t->versions[version % t->kept];
    shoal_put_u64(notes, version);
    shoal_put_u64(notes, bytes->length);
    shoal_text_add(notes, bytes->bytes, bytes->length);
  }
  bool failed = course.failed || notes->failed;
  shoal_text_release(&course);
  return failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for where the streams stand") : SHOAL_OK;
}

static shoal_status read_notes(trainer *t, shoal_error *err) {
  const shoal_text *notes = shoal_learner_notes(t->o->learner);
  if (notes->length == 0) return SHOAL_OK;
  shoal_reader r = shoal_reader_of(notes->bytes, notes->length);
  uint64_t length = shoal_get_u64(&r);
  const uint8_t *course = length <= r.left ? shoal_get(&r, (size_t)length) : NULL;
  if (course == NULL) return shoal_fail(err, SHOAL_CORRUPT, "where the streams stand is damaged");
  shoal_status status = shoal_course_read(t->course, course, (size_t)length, err);
  while (status == SHOAL_OK && r.left > 0) {
    uint64_t version = shoal_get_u64(&r), bytes_length = shoal_get_u64(&r);
    const uint8_t *bytes = bytes_length <= r.left ? shoal_get(&r, (size_t)bytes_length) : NULL;
    if (bytes == NULL || version >= t->newest || t->newest - version >= t->kept)
      return shoal_fail(err, SHOAL_CORRUPT, "the older versions of the policy are damaged");
    shoal_text_clear(&t->versions[version % t->kept]);
    shoal_text_add(&t->versions[version % t->kept], bytes, (size_t)bytes_length);
  }
  return status;
}

static shoal_status save(trainer *t, shoal_error *err) {
  t->saved = shoal_clock_seconds();
  if (t->o->out == NULL) return SHOAL_OK;
  shoal_status status = write_notes(t, err);
  return status == SHOAL_OK ? shoal_learner_save(t->o->learner, t->o->out, true, err) : status;
}

static void warn(trainer *t, const shoal_error *err, const char *then) {
  char text[SHOAL_ERROR_TEXT_MAX + 128];
  snprintf(text, sizeof text, "%s; %s", err->text, then);
  if (t->o->warn) t->o->warn(t->o->self, text);
}

/* A full disk is no reason to end: there may be room next time, and at the end it waits for some. */
static shoal_status save_now_and_then(trainer *t, shoal_error *err) {
  shoal_status status = save(t, err);
  bool full = status == SHOAL_FULL;
  if (full && !t->full) warn(t, err, "the training continues and will try again");
  t->full = full;
  return full ? SHOAL_OK : status;
}

static shoal_status save_at_last(trainer *t, shoal_error *err) {
  shoal_status status = save(t, err);
  if (status == SHOAL_FULL && !is_stopped(t))
    warn(t, err,
         "waiting until there is room. If you stop the training now, the agent that was saved last is kept");
  while (status == SHOAL_FULL && shoal_room_wait(t->o->out, 0, t->o->stop)) status = save(t, err);
  return status;
}

/* ---- the loop ----------------------------------------------------------------------- */

static void note_episodes(trainer *t, shoal_rollout *const *rollouts, uint32_t count) {
  for (uint32_t k = 0; k < count; k++)
    for (uint32_t i = 0; i < rollouts[k]->episodes_count; i++)
      t->recent[t->episodes++ % RECENT] = rollouts[k]->returns[i];
}

/* Over the last second or more; in the first one over what there is of it. */
static void measure_rate(trainer *t) {
  uint64_t steps = shoal_learner_steps(t->o->learner);
  double since = t->view.seconds - t->rated_seconds;
  if (since >= RATE_S || t->rated_seconds == t->seconds_before)
    t->view.steps_per_second = (double)(steps - t->rated_steps) / fmax(since, 1e-9);
  if (since < RATE_S) return;
  t->rated_seconds = t->view.seconds;
  t->rated_steps = steps;
}

static void look(trainer *t) {
  shoal_training_view *view = &t->view;
  view->seconds = elapsed(t);
  view->episodes = t->episodes;
  view->return_mean = recent_mean(t, RECENT);
  view->return_deviation = recent_deviation(t, view->return_mean);
}

static bool is_over(trainer *t) {
  const shoal_training_options *o = t->o;
  if (o->steps > 0 && shoal_learner_steps(o->learner) >= o->steps) return true;
  if (is_timed_out(t)) return true;
  return o->until_solved && t->view.scored && t->view.solved;
}

/* Of those who play elsewhere one may lie, so that nothing can be learned from a round: it is refused. */
static shoal_status learn_or_refuse(trainer *t, shoal_rollout *const *rollouts, uint32_t count,
                                    shoal_round_view *view, shoal_error *err) {
  shoal_status status = shoal_learner_round(t->o->learner, rollouts, count, view, err);
  if (status == SHOAL_OK) {
    t->refused_rounds = 0;
    note_episodes(t, rollouts, count);
  }
  if (status != SHOAL_INVALID || !t->outside || ++t->refused_rounds == REFUSED_ROUNDS_MAX) return status;
  shoal_learner_refuse(t->o->learner, count, view);
  return SHOAL_OK;
}

static shoal_status learn_round(trainer *t, shoal_rollout *const *rollouts, uint32_t count,
                                shoal_error *err) {
  shoal_round_view view;
  shoal_status status = learn_or_refuse(t, rollouts, count, &view, err);
  if (status != SHOAL_OK) return status;
  t->view.round = view;
  t->view.scored = false;
  pthread_mutex_lock(&t->lock);
  status = publish(t, err);
  shoal_course_learned(t->course, t->newest);
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  if (status == SHOAL_OK && score_is_due(t)) status = score(t, err);
  look(t);
  measure_rate(t);
  if (status == SHOAL_OK && t->o->round) t->o->round(t->o->self, &t->view);
  return status;
}

/* A player's failure. */
static shoal_status failure_of(trainer *t, shoal_error *err) {
  pthread_mutex_lock(&t->lock);
  shoal_status status = t->failed;
  if (status != SHOAL_OK) *err = t->error;
  pthread_mutex_unlock(&t->lock);
  return status;
}

/* A round that was given up because the time is up is no failure. */
static shoal_status rounds(trainer *t, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  while (status == SHOAL_OK && !is_over(t)) {
    if (is_stopped(t)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    uint32_t count;
    shoal_rollout *const *round = play_round(t, &count);
    if (round && !must_end(t)) status = learn_round(t, round, count, err);
    shoal_status failure = failure_of(t, err);
    if (failure != SHOAL_OK) return failure;
    if (status == SHOAL_OK && t->o->save_every_s > 0 &&
        shoal_clock_seconds() - t->saved >= t->o->save_every_s)
      status = save_now_and_then(t, err);
  }
  return status == SHOAL_STOPPED && !is_stopped(t) ? SHOAL_OK : status;
}

/* Players go, and what they have played with is there for the last score. */
static void retire_players(trainer *t) {
  if (t->outside) return;
  pthread_mutex_lock(&t->lock);
  set_over(t);
  pthread_mutex_unlock(&t->lock);
  for (uint32_t i = 0; i < t->threads_count; i++) pthread_join(t->threads[i], NULL);
  t->threads_count = 0;
  for (uint32_t i = 0; t->players && i < t->o->config.settings.streams; i++) {
    shoal_actor_destroy(t->players[i].actor);
    t->players[i].actor = NULL;
  }
}

/* After a failure, what was learned is saved; where nothing was, an older file stays as it is. */
static shoal_status save_after(trainer *t, shoal_status status, shoal_error *err) {
  uint64_t steps = shoal_learner_steps(t->o->learner);
  shoal_error why = *err;
  if (steps == t->steps_before || t->o->out == NULL || save(t, err) != SHOAL_OK) {
    *err = why;
    return status;
  }
  return shoal_fail(err, status, "%s; what was learned until then, %s steps, is saved in %s", why.text,
                    shoal_human_count(steps).text, t->o->out);
}

/* A policy that was not scored since it changed is. */
static shoal_status finish(trainer *t, shoal_status status, shoal_error *err) {
  bool scored = t->view.scored && t->view.evaluation.episodes == SHOAL_SCORE_EPISODES;
  retire_players(t);
  t->scores_last = true;
  if (status == SHOAL_OK && !scored) status = score_last(t, err);
  look(t);
  t->view.steps_per_second = (double)(shoal_learner_steps(t->o->learner) - t->steps_before) /
                             fmax(t->view.seconds - t->seconds_before, 1e-9);
  if (status != SHOAL_OK && status != SHOAL_STOPPED) return save_after(t, status, err);
  shoal_status saved = save_at_last(t, err);
  return saved == SHOAL_OK ? status : saved;
}

/* ---- beginning and end -------------------------------------------------------------- */

/* Whoever plays elsewhere may be checked, as long as there is the version that it played with: so there are as
 * many as a rollout may be behind. */
static uint32_t versions_to_keep(const trainer *t) {
  uint32_t lag_max = t->o->config.settings.lag_max, wanted = VERSIONS_LEAST;
  if (t->outside && lag_max >= VERSIONS_LEAST - 2)
    wanted = lag_max < SHOAL_CHECKED_LAG_MAX ? lag_max + 2 : VERSIONS_MOST;
  return wanted;
}

static shoal_status create_course(trainer *t, shoal_error *err) {
  const shoal_agent_settings *settings = &t->o->config.settings;
  t->kept = versions_to_keep(t);
  const shoal_course_config config = {.shape = shoal_learner_shape(t->o->learner),
                                      .streams = settings->streams,
                                      .lag = settings->lag,
                                      .seed = t->o->config.seed,
                                      .eager = t->outside && t->outside->eager,
                                      .lease_s = t->outside ? t->outside->lease_s : LEASE_S,
                                      .behind_max = t->outside && t->outside->checked ? t->kept - 1 : 0};
  shoal_status status = shoal_course_create(&t->course, &config, err);
  if (status == SHOAL_OK) status = publish(t, err);
  return status == SHOAL_OK ? read_notes(t, err) : status;
}

static shoal_status create_players(trainer *t, shoal_error *err) {
  const shoal_agent_settings *settings = &t->o->config.settings;
  if (t->outside) return SHOAL_OK;
  t->players = calloc(settings->streams, sizeof *t->players);
  if (t->players == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for players");
  for (uint32_t i = 0; i < settings->streams; i++) {
    player *p = &t->players[i];
    p->trainer = t;
    p->version = UINT64_MAX;
    shoal_status status = shoal_actor_create(&p->actor, shoal_learner_spec(t->o->learner), settings->envs,
                                             settings->steps, err);
    if (status != SHOAL_OK) return status;
    shoal_actor_interrupt(p->actor, &t->interrupt);
  }
  return SHOAL_OK;
}

static shoal_status create_judges(trainer *t, shoal_error *err) {
  uint32_t count = shoal_pool_threads(shoal_learner_pool(t->o->learner));
  t->judges = calloc(count, sizeof *t->judges);
  if (t->judges == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for scores");
  for (; t->judges_count < count; t->judges_count++) {
    judge *j = &t->judges[t->judges_count];
    j->version = UINT64_MAX;
    shoal_status status = shoal_policy_create(&j->policy, shoal_learner_spec(t->o->learner), err);
    if (status != SHOAL_OK) return status;
  }
  return SHOAL_OK;
}

static shoal_status start_threads(trainer *t, shoal_error *err) {
  if (!plays_apart(t) || t->outside) return SHOAL_OK;
  uint32_t wanted = t->o->threads > 0 ? t->o->threads : 1;
  t->threads = calloc(wanted, sizeof *t->threads);
  if (t->threads == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for threads");
  int failure = 0;
  while (!failure && t->threads_count < wanted) {
    failure = shoal_thread_start(&t->threads[t->threads_count], play_on, t);
    t->threads_count += !failure;
  }
  if (!failure) return SHOAL_OK;
  return shoal_fail(err, SHOAL_LIMIT, "a thread could not be started: %s; ask for fewer", strerror(failure));
}

static void release(trainer *t) {
  retire_players(t);
  shoal_env_interrupt(t->o->config.kind, NULL);
  shoal_learner_interrupt(t->o->learner, NULL);
  for (uint32_t i = 0; t->players && i < t->o->config.settings.streams; i++)
    shoal_text_release(&t->players[i].unit.state);
  for (uint32_t i = 0; i < t->judges_count; i++) shoal_policy_destroy(t->judges[i].policy);
  free(t->threads);
  free(t->players);
  free(t->judges);
  shoal_course_destroy(t->course);
  for (uint32_t i = 0; i < VERSIONS_MOST; i++) shoal_text_release(&t->versions[i]);
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
}

/* Environments may take all the time there is, and more, to be made. */
static shoal_status start_playing(trainer *t, shoal_error *err) {
  shoal_status status = create_players(t, err);
  if (status == SHOAL_OK) status = start_threads(t, err);
  return status == SHOAL_STOPPED && !is_stopped(t) ? SHOAL_OK : status;
}

static shoal_status train(trainer *t, shoal_error *err) {
  const shoal_agent_trainer_outside *outside = t->outside;
  if (outside) outside->opened(outside->self, t);
  shoal_status status = start_playing(t, err);
  if (status == SHOAL_OK) status = rounds(t, err);
  status = finish(t, status, err);
  if (outside) outside->closes(outside->self);
  return status;
}

/* The policy, and what learning keeps beside it: about three times as much, or more with a memory of episodes. */
static shoal_status check_room(const shoal_training_options *o, shoal_error *err) {
  enum { TIMES = 4, HEAD_BYTES = 64 << 10 };
  if (o->out == NULL) return SHOAL_OK;
  uint64_t weights = shoal_policy_state_of(shoal_learner_policy(o->learner))->weights_count;
  return shoal_room_check(o->out, TIMES * weights * sizeof(float) + HEAD_BYTES, err);
}

shoal_status shoal_train_outside(const shoal_training_options *options,
                                 const shoal_agent_trainer_outside *outside, shoal_training_view *out,
                                 shoal_error *err) {
  shoal_error own;
  if (err == NULL) err = &own;
  trainer t = {.o = options,
               .outside = outside,
               .begun = shoal_clock_seconds(),
               .steps_before = shoal_learner_steps(options->learner),
               .scored_at = shoal_learner_steps(options->learner),
               .score_s = INFINITY};
  t.interrupt = (shoal_interrupt){must_end, &t};
  t.saved = t.begun;
  t.view.seconds = t.seconds_before = t.rated_seconds = elapsed(&t);
  t.view.round.steps = t.rated_steps = t.steps_before;
  t.view.return_mean = t.view.return_deviation = t.view.evaluation.mean = NAN;
  pthread_mutex_init(&t.lock, NULL);
  pthread_cond_init(&t.changed, NULL);
  shoal_env_interrupt(options->config.kind, &t.interrupt);
  shoal_learner_interrupt(options->learner, &t.interrupt);
  shoal_status status = create_course(&t, err);
  if (status == SHOAL_OK) status = create_judges(&t, err);
  if (status == SHOAL_OK) status = check_room(options, err);
  if (status == SHOAL_OK) status = train(&t, err);
  release(&t);
  *out = t.view;
  return status;
}

shoal_status shoal_train_agent(const shoal_training_options *options, shoal_training_view *out,
                               shoal_error *err) {
  return shoal_train_outside(options, NULL, out, err);
}

/* ---- those who play elsewhere --------------------------------------------------------- */

bool shoal_agent_trainer_take(trainer *t, const char *actor, uint64_t known, shoal_text *unit,
                              shoal_text *policy) {
  const shoal_play_unit *next;
  pthread_mutex_lock(&t->lock);
  bool any = shoal_course_take(t->course, actor, shoal_clock_seconds(), &next);
  if (any) {
    const shoal_text *version = &t->versions[next->version % t->kept];
    shoal_play_unit_write(next, unit);
    if (known != next->version) shoal_text_add(policy, version->bytes, version->length);
  }
  pthread_mutex_unlock(&t->lock);
  return any;
}

bool shoal_agent_trainer_done(trainer *t, shoal_rollout *rollout, const char *actor) {
  pthread_mutex_lock(&t->lock);
  bool counted = shoal_course_done(t->course, rollout, actor, shoal_clock_seconds());
  if (counted) pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  return counted;
}

bool shoal_agent_trainer_evidence(trainer *t, uint64_t number, uint64_t version, shoal_text *unit,
                                  shoal_text *policy) {
  const shoal_play_unit *given;
  pthread_mutex_lock(&t->lock);
  const shoal_text *bytes = &t->versions[version % t->kept];
  bool kept = version <= t->newest && t->newest - version < t->kept && bytes->length > 0;
  bool there = kept && shoal_course_unit(t->course, number, &given);
  if (there) {
    shoal_play_unit_write(given, unit);
    shoal_text_add(policy, bytes->bytes, bytes->length);
  }
  pthread_mutex_unlock(&t->lock);
  return there && !unit->failed && !policy->failed;
}

void shoal_agent_trainer_lost(trainer *t, const char *actor) {
  pthread_mutex_lock(&t->lock);
  shoal_course_lost(t->course, actor, shoal_clock_seconds());
  pthread_mutex_unlock(&t->lock);
}

void shoal_agent_trainer_back(trainer *t, uint64_t number, const char *actor, bool failed) {
  pthread_mutex_lock(&t->lock);
  shoal_course_back(t->course, number, actor, failed);
  pthread_mutex_unlock(&t->lock);
}

void shoal_agent_trainer_lied(trainer *t, const char *actor) {
  pthread_mutex_lock(&t->lock);
  shoal_course_lied(t->course, actor, shoal_clock_seconds());
  pthread_mutex_unlock(&t->lock);
}

void shoal_agent_trainer_bound(trainer *t, const char *actor, uint32_t most) {
  pthread_mutex_lock(&t->lock);
  shoal_course_bound(t->course, actor, most);
  pthread_mutex_unlock(&t->lock);
}

uint64_t shoal_agent_trainer_policy(trainer *t, shoal_text *bytes) {
  pthread_mutex_lock(&t->lock);
  uint64_t version = t->newest;
  const shoal_text *newest = &t->versions[version % t->kept];
  if (bytes) shoal_text_add(bytes, newest->bytes, newest->length);
  pthread_mutex_unlock(&t->lock);
  return version;
}

void shoal_agent_trainer_course(trainer *t, shoal_course_view *out) {
  pthread_mutex_lock(&t->lock);
  shoal_course_look(t->course, out);
  pthread_mutex_unlock(&t->lock);
}
