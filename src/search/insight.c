/* insight.c: see insight.h.
 *
 * Every dimension is cut into cells: a choice or a whole number is one, a range of reals has some. A tree
 * splits between cells; its leaves are boxes of them. What a setting explains on its own is the variance,
 * over its cells, of the mean prediction over all others: each leaf adds its value, times its volume in
 * the other dimensions, to the cells that it covers. */
#include "search/insight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum {
  CELLS = 16,
  TREES = 32,
  DEPTH = 12,
  LEAF = 3,                        /* trials at least */
  DIMENSIONS = SHOAL_SETTINGS + 1, /* the last one is the rung */
  RUNG = SHOAL_SETTINGS,
};

typedef struct sample {
  uint8_t cell[DIMENSIONS];
  double rank; /* 0: the worst, 1: the best */
} sample;

typedef struct box {
  uint8_t from[DIMENSIONS], to[DIMENSIONS]; /* cells; to is behind the last */
} box;

typedef struct forest {
  uint8_t cells[DIMENSIONS]; /* how many */
  const sample *samples;
  uint32_t *drawn; /* the samples of this tree, in the order of its leaves */
  shoal_key key;
  uint64_t rolls;
  double marginal[DIMENSIONS][CELLS];
  double sum, square; /* of the predictions, over the volume */
} forest;

typedef struct split {
  uint32_t dimension;
  uint8_t at; /* cells below it go left */
  double gain;
} split;

/* ---- trees -------------------------------------------------------------------------- */

static void add_leaf(forest *f, const box *b, double value) {
  double volume = 1;
  for (uint32_t d = 0; d < DIMENSIONS; d++) volume *= (double)(b->to[d] - b->from[d]) / f->cells[d];
  f->sum += volume * value;
  f->square += volume * value * value;
  for (uint32_t d = 0; d < DIMENSIONS; d++) {
    double others = volume * f->cells[d] / (b->to[d] - b->from[d]);
    for (uint32_t c = b->from[d]; c < b->to[d]; c++) f->marginal[d][c] += others * value;
  }
}

/* The cut of a dimension that leaves the least squared error, if it is better than what is known. */
static void try_dimension(const forest *f, const box *b, uint32_t first, uint32_t count, uint32_t d,
                          split *best) {
  double sums[CELLS] = {0}, all = 0;
  uint32_t counts[CELLS] = {0};
  for (uint32_t i = first; i < first + count; i++) {
    const sample *s = &f->samples[f->drawn[i]];
    sums[s->cell[d]] += s->rank;
    counts[s->cell[d]]++;
    all += s->rank;
  }
  double left = 0;
  uint32_t on_left = 0;
  for (uint32_t c = b->from[d]; c + 1u < b->to[d]; c++) {
    left += sums[c];
    on_left += counts[c];
    uint32_t on_right = count - on_left;
    if (on_left < LEAF || on_right < LEAF) continue;
    double right = all - left;
    double gain = left * left / on_left + right * right / on_right - all * all / count;
    if (gain > best->gain) *best = (split){d, (uint8_t)(c + 1), gain};
  }
}

static split find_split(forest *f, const box *b, uint32_t first, uint32_t count) {
  split best = {.gain = 1e-9};
  for (uint32_t d = 0; d < DIMENSIONS; d++) {
    /* One in three is not looked at, so that trees differ. */
    bool looked_at = shoal_random_below(f->key, f->rolls++, 3) > 0;
    if (looked_at && b->to[d] - b->from[d] > 1) try_dimension(f, b, first, count, d, &best);
  }
  return best;
}

static void grow(forest *f, box b, uint32_t first, uint32_t count, uint32_t depth) {
  split s = {0};
  if (depth < DEPTH && count >= 2 * LEAF) s = find_split(f, &b, first, count);
  if (s.at == 0) {
    double sum = 0;
    for (uint32_t i = first; i < first + count; i++) sum += f->samples[f->drawn[i]].rank;
    add_leaf(f, &b, sum / count);
    return;
  }
  uint32_t middle = first;
  for (uint32_t i = first; i < first + count; i++) {
    uint32_t here = f->drawn[i];
    if (f->samples[here].cell[s.dimension] >= s.at) continue;
    f->drawn[i] = f->drawn[middle];
    f->drawn[middle++] = here;
  }
  box left = b, right = b;
  left.to[s.dimension] = right.from[s.dimension] = s.at;
  grow(f, left, first, middle - first, depth + 1);
  grow(f, right, middle, first + count - middle, depth + 1);
}

static void explain(const forest *f, double shares[DIMENSIONS]) {
  double all = f->square - f->sum * f->sum, of[DIMENSIONS];
  for (uint32_t d = 0; d < DIMENSIONS; d++) {
    of[d] = 0;
    for (uint32_t c = 0; c < f->cells[d]; c++)
      of[d] += (f->marginal[d][c] - f->sum) * (f->marginal[d][c] - f->sum) / f->cells[d];
  }
  all -= of[RUNG];
  for (uint32_t d = 0; d < DIMENSIONS; d++)
    if (all > 1e-12) shares[d] += of[d] / all / TREES;
}

/* ---- samples ------------------------------------------------------------------------ */

typedef struct scored {
  double score;
  uint32_t trial;
} scored;

static int by_score(const void *a, const void *b) {
  const scored *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  return (x->trial > y->trial) - (x->trial < y->trial);
}

static uint8_t cells_of(const shoal_setting *setting) {
  uint64_t values = shoal_setting_values(setting);
  return (uint8_t)(values == 0 || values > CELLS ? CELLS : values);
}

/* Samples with ranks, equal scores with equal ones. sorted is the worst first. */
static void fill(forest *f, sample *samples, const shoal_space *space, const shoal_evidence *trials,
                 const scored *sorted, uint32_t count) {
  uint32_t rungs = 1;
  for (uint32_t i = 0; i < count; i++)
    if (trials[i].rung < CELLS && trials[i].rung + 1 > rungs) rungs = trials[i].rung + 1;
  for (uint32_t d = 0; d < SHOAL_SETTINGS; d++) f->cells[d] = cells_of(&space->settings[d]);
  f->cells[RUNG] = (uint8_t)rungs;
  double rank = 0;
  for (uint32_t i = 0; i < count; i++) {
    const shoal_evidence *trial = &trials[sorted[i].trial];
    sample *s = &samples[sorted[i].trial];
    if (i > 0 && sorted[i].score != sorted[i - 1].score) rank = (double)i / (count - 1);
    s->rank = rank;
    for (uint32_t d = 0; d < SHOAL_SETTINGS; d++)
      s->cell[d] = (uint8_t)(shoal_space_to_unit(&space->settings[d], trial->values->of[d]) * f->cells[d]);
    s->cell[RUNG] = (uint8_t)(trial->rung < rungs ? trial->rung : rungs - 1);
  }
  f->samples = samples;
}

static void grow_all(forest *f, uint32_t count, double shares[DIMENSIONS]) {
  for (uint32_t tree = 0; tree < TREES; tree++) {
    f->key = shoal_key_make(tree, SHOAL_FOR_SEARCH, 2, 0);
    f->rolls = 0;
    f->sum = f->square = 0;
    memset(f->marginal, 0, sizeof f->marginal);
    for (uint32_t i = 0; i < count; i++)
      f->drawn[i] = (uint32_t)shoal_random_below(f->key, f->rolls++, count);
    box whole = {.from = {0}};
    memcpy(whole.to, f->cells, sizeof whole.to);
    grow(f, whole, 0, count, 0);
    explain(f, shares);
  }
}

/* The trials by score, the worst first; owned by the caller. NULL: out of memory. */
static scored *sort(const shoal_evidence *trials, uint32_t count, bool higher_is_better) {
  scored *sorted = calloc(count ? count : 1, sizeof *sorted);
  if (sorted == NULL) return NULL;
  for (uint32_t i = 0; i < count; i++)
    sorted[i] = (scored){higher_is_better ? trials[i].score : -trials[i].score, i};
  qsort(sorted, count, sizeof *sorted, by_score);
  return sorted;
}

static shoal_status no_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory while looking at the trials of a search");
}

static uint32_t newest(const shoal_evidence **trials, uint64_t count) {
  if (count <= SHOAL_EVIDENCE_MAX) return (uint32_t)count;
  *trials += count - SHOAL_EVIDENCE_MAX;
  return SHOAL_EVIDENCE_MAX;
}

shoal_status shoal_insight_find(shoal_insight *out, const shoal_space *space, const shoal_evidence *trials,
                                uint64_t given, bool higher_is_better, shoal_error *err) {
  *out = (shoal_insight){0};
  uint32_t count = newest(&trials, given);
  if (count < SHOAL_EVIDENCE_LEAST) return SHOAL_OK;
  forest f = {.drawn = calloc(count, sizeof *f.drawn)};
  sample *samples = calloc(count, sizeof *samples);
  scored *sorted = sort(trials, count, higher_is_better);
  bool ok = f.drawn != NULL && samples != NULL && sorted != NULL;
  if (ok && sorted[0].score != sorted[count - 1].score) {
    double shares[DIMENSIONS] = {0};
    fill(&f, samples, space, trials, sorted, count);
    grow_all(&f, count, shares);
    memcpy(out->share, shares, sizeof out->share);
    out->known = true;
  }
  free(f.drawn);
  free(samples);
  free(sorted);
  return ok ? SHOAL_OK : no_memory(err);
}

/* ---- lessons ------------------------------------------------------------------------ */

static const double BY_CHANCE = 0.01;
enum { GROUP_LEAST = 8, BEST_LEAST = 3, BEST_MAX = 20, THRESHOLDS = 16 };
/* Worse as a rule: so many standard deviations from chance, and in so many pairs of such a trial and another. */
static const double FAR = 3, PAIRS = 0.65;

/* How a setting's large and small values are called. */
typedef struct wording {
  const char *above, *below, *behind; /* behind the number */
} wording;

static wording wording_of(shoal_setting_id id) {
  switch (id) {
  case SHOAL_SET_LAYERS: return (wording){"more than ", "fewer than ", " layers"};
  case SHOAL_SET_WIDTH: return (wording){"wider than ", "narrower than ", ""};
  case SHOAL_SET_PIECES: return (wording){"more than ", "fewer than ", " pieces"};
  case SHOAL_SET_EMBEDDING: return (wording){"more than ", "fewer than ", " learned values a category"};
  case SHOAL_SET_DROPOUT: return (wording){"a dropout above ", "a dropout below ", ""};
  case SHOAL_SET_RATE: return (wording){"a rate above ", "a rate below ", ""};
  case SHOAL_SET_BATCH: return (wording){"a batch above ", "a batch below ", ""};
  case SHOAL_SET_DECAY: return (wording){"a decay above ", "a decay below ", ""};
  default: return (wording){"above ", "below ", ""};
  }
}

/* The trials for which a setting matters, the best first: each one's value and score. */
typedef struct seen {
  uint32_t count;
  double *value, *score, *sorted; /* sorted: the values alone, ascending */
  double *place; /* among those that were trained as long: near 0 the best, near 1 the worst */
} seen;

/* Which of them a sentence is about: those with a value above, below or equal to a number. */
typedef enum side { ABOVE, BELOW, EQUAL } side;

typedef struct group {
  side side;
  double number;
  uint32_t count;
  double best, best_other;
  bool telling;      /* none of the best is in it, and that is not by chance */
  double far, pairs; /* as a rule: how far from chance, and the share of pairs in which the other is better */
} group;

static bool is_in(const group *g, double value) {
  return g->side == ABOVE ? value > g->number : g->side == BELOW ? value < g->number : value == g->number;
}

static group look_at(const seen *s, side where, double number) {
  group g = {.side = where, .number = number};
  uint32_t best = s->count / 10;
  best = best < BEST_LEAST ? BEST_LEAST : best > BEST_MAX ? BEST_MAX : best;
  uint32_t among_best = 0, others = 0;
  double places = 0, all = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    bool in = is_in(&g, s->value[i]);
    places += in ? s->place[i] : 0;
    all += s->place[i];
    if (in && g.count++ == 0) g.best = s->score[i];
    if (!in && others++ == 0) g.best_other = s->score[i];
    among_best += in && i < best;
  }
  if (g.count < GROUP_LEAST || others < GROUP_LEAST) return g;
  g.pairs = 0.5 + places / g.count - (all - places) / others; /* of two samples' ranks: Mann and Whitney */
  g.far = (g.pairs - 0.5) / sqrt((double)s->count / (12.0 * g.count * others));
  if (among_best > 0) return g;
  /* How likely it is that `best` trials by chance are all among the others. */
  double likely = 1;
  for (uint32_t i = 0; i < best && i < others; i++) likely *= (double)(others - i) / (s->count - i);
  g.telling = likely < BY_CHANCE;
  return g;
}

static bool is_worse_as_a_rule(const group *g) { return g->far > FAR && g->pairs > PAIRS; }

static void write_lesson(const char *name, const char *what, const char *verdict, const group *g, uint32_t of,
                         shoal_json *json) {
  shoal_text text;
  shoal_text_init(&text);
  if (g->telling)
    shoal_text_addf(&text, "%s %s: best of %u such trials %.4g, best of the other %u %.4g", what, verdict,
                    g->count, g->best, of - g->count, g->best_other);
  else
    shoal_text_addf(
        &text,
        "%s is usually worse here: in pairs of one of these %u trials and one of the %u others that were "
        "trained as long, the other trial wins %.0f%% of the time",
        what, g->count, of - g->count, 100 * g->pairs);
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "setting", name);
  shoal_json_text(json, "text", text.failed ? "" : text.bytes);
  shoal_json_close(json, '}');
  shoal_text_release(&text);
}

/* The widest group above a threshold that tells something, and the widest below one. Returns how many those are. */
static uint32_t write_bounds(const shoal_setting *setting, shoal_setting_id id, const seen *s,
                             shoal_json *json) {
  wording words = wording_of(id);
  uint32_t lessons = 0;
  for (side where = ABOVE; where <= BELOW; where++) {
    group told = {0}; /* the first that tells something of the best, else what is worst as a rule */
    for (uint32_t i = 1; i < THRESHOLDS && !told.telling; i++) {
      uint32_t place = (uint32_t)((uint64_t)s->count * (where == ABOVE ? i : THRESHOLDS - i) / THRESHOLDS);
      group g = look_at(s, where, s->sorted[place]);
      if (g.telling || (is_worse_as_a_rule(&g) && g.far > told.far)) told = g;
    }
    if (told.count == 0) continue;
    char what[80];
    snprintf(what, sizeof what, "%s%.3g%s", where == ABOVE ? words.above : words.below, told.number,
             words.behind);
    write_lesson(setting->name, what, where == ABOVE ? "brings nothing here" : "falls short here", &told,
                 s->count, json);
    lessons++;
  }
  return lessons;
}

static uint32_t write_choices(const shoal_space *space, shoal_setting_id id, const seen *s,
                              shoal_json *json) {
  const shoal_setting *setting = &space->settings[id];
  uint64_t values = shoal_setting_values(setting);
  uint32_t lessons = 0;
  for (uint64_t v = 0; v < values && v < SHOAL_CHOICES_MAX; v++) {
    group g = look_at(s, EQUAL, (double)v);
    if (!g.telling && !is_worse_as_a_rule(&g)) continue;
    char what[120];
    const char *word = id == SHOAL_SET_TOPOLOGY ? space->topologies[v] : setting->choices[v];
    snprintf(what, sizeof what, "%s %.90s", setting->name, word);
    write_lesson(setting->name, what, "falls behind here", &g, s->count, json);
    lessons++;
  }
  return lessons;
}

static int by_number(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The place of each trial among those of its rung; s is the best first. */
static void find_places(seen *s, const uint32_t *rungs) {
  enum { RUNGS = 32 };
  uint32_t counts[RUNGS] = {0}, before[RUNGS] = {0};
  for (uint32_t i = 0; i < s->count; i++) counts[rungs[i] % RUNGS]++;
  for (uint32_t i = 0; i < s->count; i++) {
    uint32_t rung = rungs[i] % RUNGS;
    s->place[i] = (before[rung]++ + 0.5) / counts[rung];
  }
}

/* Returns how many. */
static uint32_t write_lessons(const shoal_space *space, const shoal_evidence *trials,
                              const scored *worst_first, uint32_t count, seen *s, uint32_t *rungs,
                              shoal_json *json) {
  uint32_t lessons = 0;
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
    const shoal_setting *setting = &space->settings[id];
    bool ordered = shoal_setting_ordered(setting);
    s->count = 0;
    if (shoal_setting_values(setting) == 1) continue;
    for (uint32_t i = count; i-- > 0;) {
      const shoal_evidence *trial = &trials[worst_first[i].trial];
      if (!shoal_values_matter(space, trial->values, (shoal_setting_id)id)) continue;
      double value =
          ordered ? shoal_values_number(space, trial->values, (shoal_setting_id)id) : trial->values->of[id];
      s->value[s->count] = s->sorted[s->count] = value;
      rungs[s->count] = trial->rung;
      s->score[s->count++] = trial->score;
    }
    if (s->count < SHOAL_EVIDENCE_LEAST) continue;
    find_places(s, rungs);
    qsort(s->sorted, s->count, sizeof *s->sorted, by_number);
    lessons += ordered ? write_bounds(setting, (shoal_setting_id)id, s, json)
                       : write_choices(space, (shoal_setting_id)id, s, json);
  }
  return lessons;
}

/* ---- all of it ---------------------------------------------------------------------- */

static void write_importance(const shoal_space *space, const shoal_insight *insight, shoal_json *json) {
  bool written[SHOAL_SETTINGS] = {0};
  for (uint32_t i = 0; i < SHOAL_SETTINGS && insight->known; i++) {
    uint32_t next = SHOAL_SETTINGS;
    for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
      if (written[id] || shoal_setting_values(&space->settings[id]) == 1) continue;
      if (next == SHOAL_SETTINGS || insight->share[id] > insight->share[next]) next = id;
    }
    if (next == SHOAL_SETTINGS) return;
    written[next] = true;
    shoal_json_open(json, NULL, '{');
    shoal_json_text(json, "setting", space->settings[next].name);
    shoal_json_real(json, "share", floor(insight->share[next] * 10000 + 0.5) / 10000);
    shoal_json_close(json, '}');
  }
}

static void write_lessons_why(uint64_t trials, bool known, shoal_json *json) {
  char why[160];
  if (known)
    snprintf(why, sizeof why, "in %llu trials no setting made more of a difference than chance alone would",
             (unsigned long long)trials);
  else
    snprintf(why, sizeof why, "lessons need %d trials with scores that differ; there %s %llu",
             SHOAL_EVIDENCE_LEAST, trials == 1 ? "is" : "are", (unsigned long long)trials);
  shoal_json_text(json, "lessons_why", why);
}

shoal_status shoal_insight_write(const shoal_space *space, const shoal_evidence *trials, uint64_t given,
                                 bool higher_is_better, shoal_json *json, const char *key, shoal_error *err) {
  shoal_insight insight;
  shoal_status status = shoal_insight_find(&insight, space, trials, given, higher_is_better, err);
  if (status != SHOAL_OK) return status;
  uint32_t count = newest(&trials, given);
  scored *sorted = sort(trials, count, higher_is_better);
  double *numbers = calloc(count ? 4 * (size_t)count : 1, sizeof *numbers);
  uint32_t *rungs = calloc(count ? count : 1, sizeof *rungs);
  if (sorted != NULL && numbers != NULL && rungs != NULL) {
    seen s = {.value = numbers,
              .score = numbers + count,
              .sorted = numbers + 2 * (size_t)count,
              .place = numbers + 3 * (size_t)count};
    shoal_json_open(json, key, '{');
    shoal_json_int(json, "trials", (int64_t)given);
    shoal_json_open(json, "importance", '[');
    write_importance(space, &insight, json);
    shoal_json_close(json, ']');
    shoal_json_open(json, "lessons", '[');
    uint32_t lessons = insight.known ? write_lessons(space, trials, sorted, count, &s, rungs, json) : 0;
    shoal_json_close(json, ']');
    if (lessons == 0) write_lessons_why(given, insight.known, json);
    shoal_json_close(json, '}');
  } else {
    status = no_memory(err);
  }
  free(sorted);
  free(numbers);
  free(rungs);
  return status;
}

shoal_status shoal_insight_board(const shoal_space *space, const shoal_board *board, bool higher_is_better,
                                 shoal_json *json, const char *key, shoal_error *err) {
  uint64_t trials = shoal_board_trials(board), count = 0;
  shoal_evidence *evidence = calloc(trials ? trials : 1, sizeof *evidence);
  if (evidence == NULL) return no_memory(err);
  for (uint64_t t = 1; t <= trials; t++) {
    const shoal_board_trial *trial = shoal_board_trial_at(board, t);
    if (trial->result == NULL || trial->result->failed || !isfinite(trial->result->score)) continue;
    evidence[count++] = (shoal_evidence){&trial->values, trial->result->score, trial->rung};
  }
  shoal_status status = shoal_insight_write(space, evidence, count, higher_is_better, json, key, err);
  free(evidence);
  return status;
}
