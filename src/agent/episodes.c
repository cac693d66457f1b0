/* episodes.c: see episodes.h.
 *
 * A step is a row: observation | action. The kept episodes' rows are one block without gaps, in the order in
 * which they came; who leaves, the later ones close up. Every environment of every stream is a lane with room
 * for the episode that it is in. */
#include "agent/episodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

enum { RECENT = 100, LENGTH_MAX = 100000, FLOATS_MAX = 1 << 30 };

typedef struct episode {
  uint32_t first, length; /* rows */
  float total;            /* return */
} episode;

typedef struct lane {
  uint32_t length;
  uint8_t whole; /* nothing of the episode is missing so far */
  uint8_t begun; /* the expected observation is one */
} lane;

/* What a file keeps beside the rows. */
typedef struct tally {
  uint32_t kept, steps;
  uint64_t ended, dropped;
  float worst;
  float recent[RECENT]; /* returns; number i of all that ended is in i % RECENT */
} tally;

struct shoal_episodes {
  shoal_episodes_config config;
  uint32_t observation, row_floats, lanes_count, length_max;
  float *rows;       /* keep_steps */
  episode *episodes; /* keep_steps at most: every one has a step */
  lane *lanes;
  float *lane_rows; /* lanes x length_max */
  float *expected;  /* lanes x observation: what the next rollout must begin with */
  tally *tally;
};

/* ---- set-up ------------------------------------------------------------------------- */

static bool measure(shoal_episodes *e) {
  const shoal_episodes_config *c = &e->config;
  e->observation = c->kind->observation;
  e->row_floats = c->kind->observation + c->kind->action_width;
  e->length_max = c->kind->limit > 0 ? c->kind->limit : LENGTH_MAX;
  if (e->length_max > c->keep_steps) e->length_max = c->keep_steps;
  uint64_t lanes, rows, floats, kept;
  if (!shoal_mul_u64(c->streams, c->envs, &lanes) || lanes > UINT32_MAX) return false;
  e->lanes_count = (uint32_t)lanes;
  return shoal_mul_u64(lanes, e->length_max, &rows) && shoal_mul_u64(rows, e->row_floats, &floats) &&
         floats <= FLOATS_MAX && shoal_mul_u64(c->keep_steps, e->row_floats, &kept) && kept <= FLOATS_MAX;
}

static bool reserve(shoal_episodes *e) {
  size_t row = e->row_floats * sizeof(float);
  e->rows = calloc(e->config.keep_steps, row);
  e->episodes = calloc(e->config.keep_steps, sizeof *e->episodes);
  e->lanes = calloc(e->lanes_count, sizeof *e->lanes);
  e->lane_rows = calloc((size_t)e->lanes_count * e->length_max, row);
  e->expected = calloc(e->lanes_count, e->observation * sizeof(float));
  e->tally = calloc(1, sizeof *e->tally);
  for (uint32_t i = 0; e->lanes && i < e->lanes_count; i++) e->lanes[i].whole = 1;
  return e->rows && e->episodes && e->lanes && e->lane_rows && e->expected && e->tally;
}

shoal_status shoal_episodes_create(shoal_episodes **out, const shoal_episodes_config *config,
                                   shoal_error *err) {
  *out = NULL;
  const shoal_episodes_config *c = config;
  if (c->streams == 0 || c->envs == 0 || c->steps == 0 || c->keep_steps == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "keeping episodes needs at least one each: streams (%u), envs (%u), steps (%u), "
                      "keep_steps (%u)",
                      c->streams, c->envs, c->steps, c->keep_steps);
  shoal_episodes *e = calloc(1, sizeof *e);
  if (e == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  e->config = *config;
  shoal_status status = SHOAL_OK;
  if (!measure(e))
    status = shoal_fail(err, SHOAL_LIMIT, "keep_steps of %u with %u x %u environments is too large",
                        c->keep_steps, c->streams, c->envs);
  else if (!reserve(e))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u kept steps; lower `keep_steps`",
                        c->keep_steps);
  if (status != SHOAL_OK) {
    shoal_episodes_destroy(e);
    return status;
  }
  *out = e;
  return SHOAL_OK;
}

void shoal_episodes_destroy(shoal_episodes *e) {
  if (e == NULL) return;
  free(e->rows);
  free(e->episodes);
  free(e->lanes);
  free(e->lane_rows);
  free(e->expected);
  free(e->tally);
  free(e);
}

uint32_t shoal_episodes_kept(shoal_episodes *e, shoal_kept *out) {
  size_t keep = e->config.keep_steps, lane_rows = (size_t)e->lanes_count * e->length_max;
  uint32_t n = 0;
  out[n++] = (shoal_kept){.name = "episodes.rows", .at = e->rows, .count = keep * e->row_floats};
  out[n++] = (shoal_kept){
      .name = "episodes.list", .at = e->episodes, .count = keep * sizeof *e->episodes, .bytes = true};
  out[n++] = (shoal_kept){
      .name = "episodes.lanes", .at = e->lanes, .count = e->lanes_count * sizeof *e->lanes, .bytes = true};
  out[n++] = (shoal_kept){.name = "episodes.open", .at = e->lane_rows, .count = lane_rows * e->row_floats};
  out[n++] = (shoal_kept){
      .name = "episodes.expected", .at = e->expected, .count = (size_t)e->lanes_count * e->observation};
  out[n++] = (shoal_kept){.name = "episodes.tally", .at = e->tally, .count = sizeof *e->tally, .bytes = true};
  return n;
}

/* ---- what is kept ------------------------------------------------------------------- */

/* The one that leaves first: of the lowest returns the oldest. */
static uint32_t lowest(const shoal_episodes *e) {
  uint32_t low = 0;
  for (uint32_t i = 1; i < e->tally->kept; i++)
    if (e->episodes[i].total < e->episodes[low].total) low = i;
  return low;
}

static void drop(shoal_episodes *e, uint32_t which) {
  episode gone = e->episodes[which];
  uint32_t after = gone.first + gone.length;
  memmove(e->rows + (size_t)gone.first * e->row_floats, e->rows + (size_t)after * e->row_floats,
          (size_t)(e->tally->steps - after) * e->row_floats * sizeof *e->rows);
  e->tally->steps -= gone.length;
  e->tally->kept--;
  for (uint32_t i = which; i < e->tally->kept; i++) {
    e->episodes[i] = e->episodes[i + 1];
    e->episodes[i].first -= gone.length;
  }
}

/* Steps of kept episodes that are no better than this return. */
static uint32_t steps_below(const shoal_episodes *e, float total) {
  uint32_t steps = 0;
  for (uint32_t i = 0; i < e->tally->kept; i++)
    if (e->episodes[i].total <= total) steps += e->episodes[i].length;
  return steps;
}

static void keep(shoal_episodes *e, const float *rows, uint32_t length, float total) {
  uint32_t room = e->config.keep_steps - e->tally->steps;
  if (room < length && room + steps_below(e, total) < length) return;
  while (e->config.keep_steps - e->tally->steps < length) drop(e, lowest(e));
  episode *new = &e->episodes[e->tally->kept++];
  *new = (episode){.first = e->tally->steps, .length = length, .total = total};
  memcpy(e->rows + (size_t) new->first * e->row_floats, rows, (size_t)length * e->row_floats * sizeof *rows);
  e->tally->steps += length;
}

void shoal_episodes_raise(shoal_episodes *e, double bar, uint32_t steps_least) {
  while (e->tally->kept > 0) {
    uint32_t low = lowest(e);
    if (e->episodes[low].total >= bar) return;
    if (e->tally->steps - e->episodes[low].length < steps_least) return;
    drop(e, low);
  }
}

/* ---- what comes in ------------------------------------------------------------------ */

/* Whether what may come from a file is within its bounds. */
static bool sound(const shoal_episodes *e) {
  uint32_t steps = 0;
  if (e->tally->kept > e->config.keep_steps || e->tally->steps > e->config.keep_steps) return false;
  for (uint32_t i = 0; i < e->tally->kept; i++) {
    const episode *one = &e->episodes[i];
    if (one->first != steps || one->length == 0 || one->length > e->tally->steps - steps) return false;
    steps += one->length;
  }
  for (uint32_t i = 0; i < e->lanes_count; i++)
    if (e->lanes[i].length > e->length_max) return false;
  return steps == e->tally->steps;
}

static float *rows_of(const shoal_episodes *e, uint32_t l) {
  return e->lane_rows + (size_t)l * e->length_max * e->row_floats;
}

static void add_row(shoal_episodes *e, uint32_t l, const float *seen, const float *done) {
  lane *at = &e->lanes[l];
  if (at->length == e->length_max) at->whole = 0;
  if (!at->whole) return;
  float *row = rows_of(e, l) + (size_t)at->length++ * e->row_floats;
  memcpy(row, seen, e->observation * sizeof *row);
  memcpy(row + e->observation, done, (e->row_floats - e->observation) * sizeof *row);
}

static void end_episode(shoal_episodes *e, uint32_t l, float total, uint32_t length, double bar) {
  lane *at = &e->lanes[l];
  tally *t = e->tally;
  if (t->ended == 0 || total < t->worst) t->worst = total;
  t->recent[t->ended++ % RECENT] = total;
  bool whole = at->whole && at->length == length;
  if (!whole) t->dropped++;
  if (whole && total >= bar) keep(e, rows_of(e, l), length, total);
  at->length = 0;
  at->whole = 1;
}

static void add_rollout(shoal_episodes *e, const shoal_rollout *rollout, double bar) {
  uint32_t envs = rollout->shape.envs, steps = rollout->shape.steps, first = rollout->stream * envs, k = 0;
  size_t o = e->observation, width = e->row_floats - o;
  SHOAL_ASSERT(rollout->stream < e->config.streams && envs == e->config.envs && steps == e->config.steps);
  for (uint32_t i = 0; i < envs; i++) {
    lane *at = &e->lanes[first + i];
    const float *expected = e->expected + (first + i) * o;
    if (at->begun && memcmp(expected, rollout->observations + i * o, o * sizeof *expected) != 0)
      at->whole = 0;
    at->begun = 1;
  }
  for (uint32_t row = 0; row < envs * steps; row++) {
    uint32_t l = first + row % envs;
    add_row(e, l, rollout->observations + row * o, rollout->actions + row * width);
    if (rollout->ends[row] == SHOAL_GOES_ON) continue;
    SHOAL_ASSERT(k < rollout->episodes_count);
    end_episode(e, l, rollout->returns[k], rollout->lengths[k], bar);
    k++;
  }
  memcpy(e->expected + first * o, rollout->observations + (size_t)envs * steps * o,
         envs * o * sizeof *e->expected);
}

shoal_status shoal_episodes_add(shoal_episodes *e, shoal_rollout *const *rollouts, uint32_t count, double bar,
                                shoal_error *err) {
  if (!sound(e)) return shoal_fail(err, SHOAL_CORRUPT, "the kept episodes were read from a damaged file");
  for (uint32_t i = 0; i < count; i++) add_rollout(e, rollouts[i], bar);
  return SHOAL_OK;
}

/* ---- what goes out ------------------------------------------------------------------ */

void shoal_episodes_look(const shoal_episodes *e, shoal_episodes_view *out) {
  const tally *t = e->tally;
  *out = (shoal_episodes_view){.kept = t->kept,
                               .steps = t->steps,
                               .least = NAN,
                               .most = NAN,
                               .ended = t->ended,
                               .dropped = t->dropped,
                               .recent = t->ended < RECENT ? (uint32_t)t->ended : RECENT,
                               .recent_mean = NAN,
                               .worst = t->ended > 0 ? t->worst : NAN};
  for (uint32_t i = 0; i < t->kept; i++) {
    out->least = fmin(out->least, e->episodes[i].total);
    out->most = fmax(out->most, e->episodes[i].total);
  }
  double sum = 0;
  for (uint32_t i = 0; i < out->recent; i++) sum += t->recent[i];
  if (out->recent > 0) out->recent_mean = sum / out->recent;
}

void shoal_episodes_episode(const shoal_episodes *e, uint32_t i, uint32_t *first, uint32_t *length) {
  SHOAL_ASSERT(i < e->tally->kept);
  *first = e->episodes[i].first;
  *length = e->episodes[i].length;
}

const float *shoal_episodes_step(const shoal_episodes *e, uint32_t i) {
  return e->rows + (size_t)i * e->row_floats;
}
