/* replay.c: see replay.h.
 *
 * A transition is one row of floats, so that drawing one touches a cache line or two:
 *
 *   observation | next observation | action | reward | discount
 *
 * The ring has `capacity` rows and those of a round more. What may be drawn are the newest `capacity` rows; a
 * round overwrites rows that are older than these, so taking it back is a matter of setting `written` back.
 *
 * Every environment of every stream is a lane. Its open windows are those that wait for more steps, the
 * oldest first, each a row as well: observation | action | reward so far | discount so far. The lane also
 * has the observation that its next step must begin with: when a rollout begins with another one, there
 * was a gap. */
#include "agent/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/human.h"

enum { ROWS_MAX = 1 << 28, FLOATS_MAX = 1 << 30, PATIENCE = 20 };

/* What a file keeps of a replay beside its floats. */
typedef struct tally {
  uint64_t written; /* transitions, in all */
  uint64_t steps;   /* of environments, in all */
  uint64_t ended;   /* episodes, by themselves */
  uint64_t warm_at; /* steps after which there was enough to learn from; 0: not yet */
} tally;

struct shoal_replay {
  shoal_replay_config config;
  uint32_t observation, action, lanes;
  uint32_t rows_count; /* of the ring */
  size_t row_floats, open_floats, lane_floats;
  float *rows;
  float *lane_rows;     /* lanes x (observation that is expected, n_step x open window) */
  uint32_t *open_count; /* lanes */
  uint8_t *begun;       /* lanes: the expected observation is one */
  tally now, before;    /* before the last round */
  float *lane_rows_before;
  uint32_t *open_before;
  uint8_t *begun_before;
};

/* ---- set-up ------------------------------------------------------------------------- */

static bool reserve(shoal_replay *r) {
  size_t lane_floats = r->lane_floats * r->lanes;
  r->rows = calloc(r->rows_count, r->row_floats * sizeof *r->rows);
  r->lane_rows = calloc(lane_floats, sizeof *r->lane_rows);
  r->lane_rows_before = calloc(lane_floats, sizeof *r->lane_rows_before);
  r->open_count = calloc(r->lanes, sizeof *r->open_count);
  r->open_before = calloc(r->lanes, sizeof *r->open_before);
  r->begun = calloc(r->lanes, 1);
  r->begun_before = calloc(r->lanes, 1);
  return r->rows && r->lane_rows && r->lane_rows_before && r->open_count && r->open_before && r->begun &&
         r->begun_before;
}

/* Works out the sizes; false when they are more than anybody means. */
static bool measure(shoal_replay *r) {
  const shoal_replay_config *c = &r->config;
  r->observation = c->kind->observation;
  r->action = c->kind->action_width;
  r->row_floats = 2 * (size_t)r->observation + r->action + 2;
  r->open_floats = (size_t)r->observation + r->action + 2;
  r->lane_floats = r->observation + c->n_step * r->open_floats;
  uint64_t lanes, each = (uint64_t)c->steps + c->n_step, round, rows, floats, open;
  if (!shoal_mul_u64(c->streams, c->envs, &lanes) || lanes > ROWS_MAX) return false;
  if (!shoal_mul_u64(lanes, each, &round) || !shoal_add_u64(round, c->capacity, &rows)) return false;
  if (rows > ROWS_MAX || !shoal_mul_u64(rows, r->row_floats, &floats) || floats > FLOATS_MAX) return false;
  if (!shoal_mul_u64(lanes, r->lane_floats, &open) || open > FLOATS_MAX) return false;
  r->lanes = (uint32_t)lanes;
  r->rows_count = (uint32_t)rows;
  return true;
}

/* What makes it so large, and what to change. */
static shoal_status too_large(const shoal_replay *r, shoal_error *err) {
  const shoal_replay_config *c = &r->config;
  double each = (double)r->row_floats * sizeof(float),
         most = fmin(ROWS_MAX, FLOATS_MAX / (double)r->row_floats);
  double round = (double)c->streams * c->envs * ((double)c->steps + c->n_step), fits = floor(most - round);
  if (fits < 1 || fits >= c->capacity)
    return shoal_fail(
        err, SHOAL_LIMIT,
        "a round of %u streams of %u environments, %u steps each, is too large to be remembered "
        "where an observation is %s numbers (%s a step); lower streams, envs, steps or n_step",
        c->streams, c->envs, c->steps, shoal_human_count(r->observation).text, shoal_human_bytes(each).text);
  return shoal_fail(err, SHOAL_LIMIT,
                    "memory: %s steps are %s, since an observation is %s numbers (%s a step); keep fewer: %s "
                    "is the most (--set memory=N)",
                    shoal_human_count(c->capacity).text, shoal_human_bytes(each * c->capacity).text,
                    shoal_human_count(r->observation).text, shoal_human_bytes(each).text,
                    shoal_human_count((uint64_t)fits).text);
}

shoal_status shoal_replay_create(shoal_replay **out, const shoal_replay_config *config, shoal_error *err) {
  *out = NULL;
  const shoal_replay_config *c = config;
  if (c->capacity == 0 || c->streams == 0 || c->envs == 0 || c->steps == 0 || c->n_step == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "a memory needs at least one each: memory (%u), streams (%u), envs (%u), steps (%u), "
                      "n_step (%u)",
                      c->capacity, c->streams, c->envs, c->steps, c->n_step);
  shoal_replay *replay = calloc(1, sizeof *replay);
  if (replay == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  replay->config = *config;
  if (!measure(replay)) {
    shoal_status status = too_large(replay, err);
    free(replay);
    return status;
  }
  if (!reserve(replay)) {
    shoal_human bytes =
        shoal_human_bytes((double)replay->rows_count * (double)replay->row_floats * sizeof(float));
    shoal_replay_destroy(replay);
    return shoal_fail(err, SHOAL_NO_MEMORY,
                      "not enough memory for %s steps to remember, which are %s; keep fewer "
                      "(--set memory=N)",
                      shoal_human_count(c->capacity).text, bytes.text);
  }
  *out = replay;
  return SHOAL_OK;
}

void shoal_replay_destroy(shoal_replay *replay) {
  if (replay == NULL) return;
  free(replay->rows);
  free(replay->lane_rows);
  free(replay->lane_rows_before);
  free(replay->open_count);
  free(replay->open_before);
  free(replay->begun);
  free(replay->begun_before);
  free(replay);
}

uint32_t shoal_replay_kept(shoal_replay *r, shoal_kept *out) {
  uint32_t n = 0;
  uint64_t rows = r->now.written < r->rows_count ? r->now.written : r->rows_count;
  out[n++] = (shoal_kept){.name = "replay.rows",
                          .at = r->rows,
                          .count = r->rows_count * r->row_floats,
                          .grows = true,
                          .used = (size_t)rows * r->row_floats};
  out[n++] = (shoal_kept){.name = "replay.lanes", .at = r->lane_rows, .count = r->lanes * r->lane_floats};
  out[n++] = (shoal_kept){
      .name = "replay.open", .at = r->open_count, .count = r->lanes * sizeof *r->open_count, .bytes = true};
  out[n++] = (shoal_kept){.name = "replay.begun", .at = r->begun, .count = r->lanes, .bytes = true};
  out[n++] = (shoal_kept){.name = "replay.tally", .at = &r->now, .count = sizeof r->now, .bytes = true};
  return n;
}

/* ---- what comes in ------------------------------------------------------------------ */

/* The last observation of the episode that was cut off in this row. `at` goes on through the list. */
static const float *last_of(const shoal_rollout *rollout, uint32_t row, uint32_t *at) {
  SHOAL_ASSERT(*at < rollout->lasts_count && rollout->last_rows[*at] == row);
  return rollout->lasts + (size_t)(*at)++ * rollout->shape.kind->observation;
}

/* Whether counts that may come from a file are within their bounds. */
static bool sound(const shoal_replay *r) {
  for (uint32_t lane = 0; lane < r->lanes; lane++)
    if (r->open_count[lane] >= r->config.n_step) return false;
  const tally *t = &r->now;
  return t->written <= t->steps && t->warm_at <= t->steps && t->steps < UINT64_MAX / 2 &&
         (t->warm_at == 0 || t->written > 0);
}

/* ---- windows ------------------------------------------------------------------------ */

static float *expected_of(shoal_replay *r, uint32_t lane) { return r->lane_rows + lane * r->lane_floats; }

static float *open_of(shoal_replay *r, uint32_t lane, uint32_t i) {
  return expected_of(r, lane) + r->observation + i * r->open_floats;
}

/* Closes the oldest windows of a lane: they become transitions to what was seen next. */
static void close_windows(shoal_replay *r, uint32_t lane, uint32_t count, const float *next, bool over) {
  uint32_t o = r->observation, a = r->action;
  for (uint32_t i = 0; i < count; i++) {
    const float *open = open_of(r, lane, i);
    float *row = r->rows + r->now.written++ % r->rows_count * r->row_floats;
    memcpy(row, open, o * sizeof *row);
    memcpy(row + o, next, o * sizeof *row);
    memcpy(row + 2 * o, open + o, (a + 1) * sizeof *row); /* action and reward */
    row[2 * o + a + 1] = over ? 0 : open[o + a + 1];
  }
  r->open_count[lane] -= count;
  memmove(open_of(r, lane, 0), open_of(r, lane, count), r->open_count[lane] * r->open_floats * sizeof(float));
}

static void open_window(shoal_replay *r, uint32_t lane, const float *observation, const float *action) {
  float *open = open_of(r, lane, r->open_count[lane]++);
  memcpy(open, observation, r->observation * sizeof *open);
  memcpy(open + r->observation, action, r->action * sizeof *open);
  open[r->observation + r->action] = 0;
  open[r->observation + r->action + 1] = 1;
}

static void add_reward(shoal_replay *r, uint32_t lane, float reward) {
  for (uint32_t i = 0; i < r->open_count[lane]; i++) {
    float *sums = open_of(r, lane, i) + r->observation + r->action;
    sums[0] += sums[1] * reward;
    sums[1] *= r->config.discount;
  }
}

/* The lane's environment goes on from what is expected, or else there was a gap before this rollout. */
static void go_on(shoal_replay *r, uint32_t lane, const float *observation) {
  const float *expected = expected_of(r, lane);
  if (r->begun[lane] && memcmp(expected, observation, r->observation * sizeof *expected) != 0)
    close_windows(r, lane, r->open_count[lane], expected, false);
  r->begun[lane] = 1;
}

static void add_step(shoal_replay *r, uint32_t lane, const shoal_rollout *rollout, uint32_t row,
                     uint32_t *at) {
  const float *seen = rollout->observations + (size_t)row * r->observation;
  const float *next = seen + (size_t)rollout->shape.envs * r->observation;
  open_window(r, lane, seen, rollout->actions + (size_t)row * r->action);
  add_reward(r, lane, rollout->rewards[row]);
  switch ((shoal_end)rollout->ends[row]) {
  case SHOAL_TERMINATED:
    close_windows(r, lane, r->open_count[lane], next, true);
    r->now.ended++;
    break;
  case SHOAL_TRUNCATED: close_windows(r, lane, r->open_count[lane], last_of(rollout, row, at), false); break;
  case SHOAL_GOES_ON:
    if (r->open_count[lane] == r->config.n_step) close_windows(r, lane, 1, next, false);
    break;
  }
}

static void add_rollout(shoal_replay *r, const shoal_rollout *rollout) {
  uint32_t envs = rollout->shape.envs, steps = rollout->shape.steps, at = 0;
  uint32_t first = rollout->stream * envs;
  SHOAL_ASSERT(rollout->stream < r->config.streams && envs == r->config.envs && steps == r->config.steps);
  for (uint32_t e = 0; e < envs; e++) go_on(r, first + e, rollout->observations + (size_t)e * r->observation);
  for (uint32_t row = 0; row < envs * steps; row++) add_step(r, first + row % envs, rollout, row, &at);
  const float *after = rollout->observations + (size_t)envs * steps * r->observation;
  for (uint32_t e = 0; e < envs; e++)
    memcpy(expected_of(r, first + e), after + (size_t)e * r->observation, r->observation * sizeof *after);
  r->now.steps += (uint64_t)envs * steps;
}

/* Enough is what was asked for, or so many steps that more of them would not bring it. */
static void warm_up(shoal_replay *r) {
  uint64_t patience = PATIENCE * (uint64_t)r->config.warmup;
  if (r->now.warm_at > 0 || r->now.steps < r->config.warmup || r->now.written == 0) return;
  if (r->now.ended >= r->config.ended || r->now.steps >= patience) r->now.warm_at = r->now.steps;
}

static void copy_lanes(const shoal_replay *r, float *rows, const float *from, uint32_t *open,
                       const uint32_t *open_from, uint8_t *begun, const uint8_t *begun_from) {
  memcpy(rows, from, r->lanes * r->lane_floats * sizeof *rows);
  memcpy(open, open_from, r->lanes * sizeof *open);
  memcpy(begun, begun_from, r->lanes);
}

shoal_status shoal_replay_add(shoal_replay *r, shoal_rollout *const *rollouts, uint32_t count,
                              shoal_error *err) {
  SHOAL_ASSERT(count <= r->config.streams);
  if (!sound(r))
    return shoal_fail(err, SHOAL_CORRUPT, "the memory of transitions was read from a damaged file");
  r->before = r->now;
  copy_lanes(r, r->lane_rows_before, r->lane_rows, r->open_before, r->open_count, r->begun_before, r->begun);
  for (uint32_t i = 0; i < count; i++) add_rollout(r, rollouts[i]);
  warm_up(r);
  return SHOAL_OK;
}

void shoal_replay_undo(shoal_replay *r) {
  r->now = r->before;
  copy_lanes(r, r->lane_rows, r->lane_rows_before, r->open_count, r->open_before, r->begun, r->begun_before);
}

/* ---- what goes out ------------------------------------------------------------------ */

uint32_t shoal_replay_count(const shoal_replay *r) {
  return r->now.written < r->config.capacity ? (uint32_t)r->now.written : r->config.capacity;
}

uint64_t shoal_replay_steps(const shoal_replay *r) { return r->now.steps; }

uint64_t shoal_replay_lessons(const shoal_replay *r) {
  return r->now.warm_at > 0 ? r->now.steps - r->now.warm_at : 0;
}

void shoal_replay_draw(const shoal_replay *r, shoal_key key, shoal_replay_batch *batch) {
  uint32_t count = shoal_replay_count(r), o = r->observation, a = r->action;
  SHOAL_ASSERT(count > 0);
  for (uint32_t i = 0; i < batch->n; i++) {
    uint64_t number = r->now.written - 1 - shoal_random_below(key, i, count);
    const float *row = r->rows + number % r->rows_count * r->row_floats;
    memcpy(batch->observations + (size_t)i * o, row, o * sizeof *row);
    memcpy(batch->nexts + (size_t)i * o, row + o, o * sizeof *row);
    memcpy(batch->actions + (size_t)i * a, row + 2 * o, a * sizeof *row);
    batch->rewards[i] = row[2 * o + a];
    batch->discounts[i] = row[2 * o + a + 1];
  }
}

bool shoal_replay_batch_init(shoal_replay_batch *batch, const shoal_env_kind *kind, uint32_t n) {
  *batch = (shoal_replay_batch){.n = n};
  batch->observations = calloc(n, kind->observation * sizeof(float));
  batch->nexts = calloc(n, kind->observation * sizeof(float));
  batch->actions = calloc(n, kind->action_width * sizeof(float));
  batch->rewards = calloc(n, sizeof(float));
  batch->discounts = calloc(n, sizeof(float));
  return batch->observations && batch->nexts && batch->actions && batch->rewards && batch->discounts;
}

void shoal_replay_batch_release(shoal_replay_batch *batch) {
  free(batch->observations);
  free(batch->nexts);
  free(batch->actions);
  free(batch->rewards);
  free(batch->discounts);
  *batch = (shoal_replay_batch){0};
}
