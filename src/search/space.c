/* space.c: see space.h.
 *
 * A table says of each setting what it may be. A text is read word by word, each with its place, into a
 * copy that takes the space's place when all of it was good. */
#include "search/space.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "nn/model.h"
#include "search/encoder.h"
#include "search/exact.h"

enum { LINE_MAX = 8192 };
#define POINTS_MAX ((uint64_t)1 << 63)

/* What a setting may be: words, or numbers from least to most. */
typedef struct known {
  const char *name;
  const char *const *words; /* in the order of their enum, and a NULL; NULL: numbers */
  bool whole;
  double least, most;
} known;

#define WORDS(...) \
  .words = (const char *const[]) { __VA_ARGS__, NULL }

static const known settings[SHOAL_SETTINGS] = {
    [SHOAL_SET_LAYERS] = {"layers", NULL, true, 1, SHOAL_HIDDEN_MAX},
    [SHOAL_SET_WIDTH] = {"width", NULL, true, 1, SHOAL_WIDTH_MAX},
    [SHOAL_SET_SHAPE] = {"shape", WORDS("brick", "funnel", "triangle", "diamond", "hourglass", "stairs")},
    [SHOAL_SET_RESIDUAL] = {"residual", WORDS("no", "yes")},
    [SHOAL_SET_ACTIVATION] = {"activation", .words = shoal_activation_words},
    [SHOAL_SET_DROPOUT] = {"dropout", NULL, false, 0, 0.95},
    [SHOAL_SET_NORMALISE] = {"normalise", WORDS("none", "batch", "layer")},
    [SHOAL_SET_OPTIMIZER] = {"optimizer", .words = shoal_optimizer_words},
    [SHOAL_SET_RATE] = {"rate", NULL, false, 1e-9, 100},
    [SHOAL_SET_BATCH] = {"batch", NULL, true, 1, SHOAL_BATCH_MAX},
    [SHOAL_SET_DECAY] = {"decay", NULL, false, 0, 100},
    [SHOAL_SET_NUMBERS] = {"numbers", .words = shoal_number_ways},
    [SHOAL_SET_PIECES] = {"pieces", NULL, true, 2, 128},
    [SHOAL_SET_CATEGORIES] = {"categories", .words = shoal_category_ways},
    [SHOAL_SET_EMBEDDING] = {"embedding", NULL, true, 1, 1024},
    [SHOAL_SET_BALANCE] = {"balance", WORDS("no", "yes")},
    [SHOAL_SET_TOPOLOGY] = {"topology", NULL, true, 0, SHOAL_TOPOLOGIES_MAX - 1},
};

bool shoal_setting_is_word(shoal_setting_id id) { return settings[id].words != NULL; }

/* ---- values and the unit cube ------------------------------------------------------- */

uint64_t shoal_setting_values(const shoal_setting *setting) {
  if (setting->is_choice) return setting->choices_count;
  if (setting->whole) return (uint64_t)(setting->max - setting->min) + 1;
  return setting->min == setting->max ? 1 : 0;
}

static double number_of_choice(const shoal_setting *setting, uint32_t choice) {
  double number;
  const char *word = setting->choices[choice];
  return shoal_read_f64(word, strlen(word), &number) ? number : NAN;
}

bool shoal_setting_ordered(const shoal_setting *setting) {
  if (!setting->is_choice) return strcmp(setting->name, settings[SHOAL_SET_TOPOLOGY].name) != 0;
  for (uint32_t i = 0; i + 1 < setting->choices_count; i++)
    if (!(number_of_choice(setting, i) < number_of_choice(setting, i + 1))) return false;
  return setting->choices_count > 0 && !isnan(number_of_choice(setting, 0));
}

static double within(const shoal_setting *setting, double value) {
  return value < setting->min ? setting->min : value > setting->max ? setting->max : value;
}

/* The number with the fewest digits, three or more, that is not further off than that. */
static double rounded(double value, double most_off) {
  for (int digits = 3; digits < 17; digits++) {
    char text[40];
    double near;
    int length = snprintf(text, sizeof text, "%.*g", digits, value);
    if (shoal_read_f64(text, (size_t)length, &near) && fabs(near - value) <= most_off) return near;
  }
  return value;
}

double shoal_space_from_unit(const shoal_setting *setting, double u) {
  SHOAL_ASSERT(u >= 0 && u < 1);
  if (setting->is_choice) return floor(u * setting->choices_count);
  double min = setting->min, max = setting->max;
  if (min == max) return min;
  /* Whole numbers share the range up to the next one behind it. */
  double end = setting->whole ? max + 1 : max;
  double value = setting->log ? min * shoal_exact_exp(u * shoal_exact_log(end / min)) : min + u * (end - min);
  if (setting->whole) return within(setting, floor(value));
  return within(setting, rounded(value, setting->log ? value * 0.005 : (max - min) * 0.001));
}

double shoal_space_to_unit(const shoal_setting *setting, double value) {
  if (setting->is_choice) return (value + 0.5) / setting->choices_count;
  double min = setting->min, max = setting->max;
  if (min == max) return 0.5;
  double end = setting->whole ? max + 1 : max, middle = setting->whole ? value + 0.5 : value;
  double u = setting->log ? shoal_exact_log(middle / min) / shoal_exact_log(end / min)
                          : (middle - min) / (end - min);
  const double below_one = 1 - 0x1p-53;
  return u < 0 ? 0 : u > below_one ? below_one : u;
}

double shoal_values_number(const shoal_space *space, const shoal_values *values, shoal_setting_id id) {
  const shoal_setting *setting = &space->settings[id];
  return setting->is_choice ? number_of_choice(setting, (uint32_t)values->of[id]) : values->of[id];
}

const char *shoal_values_word(const shoal_space *space, const shoal_values *values, shoal_setting_id id) {
  const shoal_setting *setting = &space->settings[id];
  SHOAL_ASSERT(setting->is_choice && values->of[id] < setting->choices_count);
  return setting->choices[(uint32_t)values->of[id]];
}

uint32_t shoal_values_choice(const shoal_space *space, const shoal_values *values, shoal_setting_id id) {
  const char *word = shoal_values_word(space, values, id);
  uint32_t i = 0;
  while (strcmp(settings[id].words[i], word) != 0) i++;
  return i;
}

bool shoal_values_matter(const shoal_space *space, const shoal_values *values, shoal_setting_id id) {
  bool explicit = space->topologies_count > 0;
  switch (id) {
  case SHOAL_SET_LAYERS:
  case SHOAL_SET_WIDTH:
  case SHOAL_SET_RESIDUAL:
  case SHOAL_SET_ACTIVATION: return !explicit;
  case SHOAL_SET_SHAPE: return !explicit && shoal_values_number(space, values, SHOAL_SET_LAYERS) > 1;
  case SHOAL_SET_PIECES: return shoal_values_choice(space, values, SHOAL_SET_NUMBERS) == SHOAL_PIECES;
  case SHOAL_SET_EMBEDDING: return shoal_values_choice(space, values, SHOAL_SET_CATEGORIES) == SHOAL_LOOKUP;
  case SHOAL_SET_TOPOLOGY: return explicit;
  default: return true;
  }
}

uint32_t shoal_space_layers(const shoal_space *space, uint32_t topology,
                            shoal_plain_layer out[SHOAL_HIDDEN_MAX]) {
  SHOAL_ASSERT(topology < space->topologies_count);
  uint32_t count = 0;
  for (const char *at = space->topologies[topology]; at != NULL && count < SHOAL_HIDDEN_MAX; count++) {
    SHOAL_ASSERT(sscanf(at, " %u %15[^,]", &out[count].width, out[count].activation) == 2);
    at = strchr(at, ',');
    if (at != NULL) at++;
  }
  return count;
}

/* ---- the grid ----------------------------------------------------------------------- */

/* How many values a setting has in a grid: of a whole range with log the doublings and the end. */
static uint64_t steps_of(const shoal_setting *setting) {
  if (setting->is_choice || !setting->whole || !setting->log) return shoal_setting_values(setting);
  uint64_t steps = 1;
  for (double value = setting->min; value < setting->max; value *= 2) steps++;
  return steps;
}

static double step_at(const shoal_setting *setting, uint64_t step) {
  if (setting->is_choice) return (double)step;
  return within(setting, setting->log ? ldexp(setting->min, (int)step) : setting->min + (double)step);
}

static double first_of(const shoal_setting *setting) { return setting->is_choice ? 0 : setting->min; }

/* Whether others matter or not by this setting's value. */
static bool decides(uint32_t id) {
  return id == SHOAL_SET_LAYERS || id == SHOAL_SET_NUMBERS || id == SHOAL_SET_CATEGORIES;
}

/* How many points there are for the settings from `id` on, where those before it have these values;
 * POINTS_MAX: too many. The settings that decide nothing only multiply. */
static uint64_t points_from(const shoal_space *space, shoal_values *values, uint32_t id) {
  uint64_t product = 1;
  for (; id < SHOAL_SETTINGS; id++) {
    const shoal_setting *setting = &space->settings[id];
    uint64_t steps = shoal_values_matter(space, values, id) ? steps_of(setting) : 1;
    if (!decides(id) || steps == 1) {
      values->of[id] = first_of(setting);
      if (!shoal_mul_u64(product, steps, &product) || product >= POINTS_MAX) return POINTS_MAX;
      continue;
    }
    uint64_t sum = 0;
    for (uint64_t step = 0; step < steps && sum < POINTS_MAX; step++) {
      values->of[id] = step_at(setting, step);
      sum += points_from(space, values, id + 1);
    }
    return !shoal_mul_u64(product, sum, &product) || product >= POINTS_MAX ? POINTS_MAX : product;
  }
  return product;
}

const char *shoal_space_endless(const shoal_space *space) {
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
    if (steps_of(&space->settings[id]) == 0) return space->settings[id].name;
  return NULL;
}

static shoal_values first_values(const shoal_space *space) {
  shoal_values values;
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) values.of[id] = first_of(&space->settings[id]);
  return values;
}

uint64_t shoal_space_grid(const shoal_space *space) {
  if (shoal_space_endless(space) != NULL) return 0;
  shoal_values values = first_values(space);
  uint64_t points = points_from(space, &values, 0);
  return points < POINTS_MAX ? points : 0;
}

void shoal_space_grid_at(const shoal_space *space, uint64_t i, shoal_values *out) {
  *out = first_values(space);
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
    const shoal_setting *setting = &space->settings[id];
    uint64_t steps = shoal_values_matter(space, out, id) ? steps_of(setting) : 1, step = 0;
    for (;;) {
      shoal_values rest = *out;
      rest.of[id] = step_at(setting, step);
      uint64_t points = points_from(space, &rest, id + 1);
      uint64_t skipped = decides(id) ? i >= points : i / points;
      step += skipped;
      i -= skipped * points;
      SHOAL_ASSERT(step < steps);
      if (skipped == 0 || !decides(id)) break;
    }
    out->of[id] = step_at(setting, step);
  }
}

/* ---- what is usual ------------------------------------------------------------------ */

static void set_words(shoal_space *space, shoal_setting_id id, const char *words) {
  shoal_setting *setting = &space->settings[id];
  *setting = (shoal_setting){.name = settings[id].name, .is_choice = true, .whole = settings[id].whole};
  for (const char *at = words; *at != 0;) {
    size_t length = strcspn(at, " ");
    SHOAL_ASSERT(length < SHOAL_CHOICE_BYTES && setting->choices_count < SHOAL_CHOICES_MAX);
    memcpy(setting->choices[setting->choices_count++], at, length);
    at += length + (at[length] == ' ');
  }
}

static void set_range(shoal_space *space, shoal_setting_id id, double min, double max, bool log) {
  space->settings[id] = (shoal_setting){
      .name = settings[id].name, .whole = settings[id].whole, .log = log, .min = min, .max = max};
}

void shoal_space_usual(shoal_space *out, uint64_t rows, uint32_t columns) {
  *out = (shoal_space){0};
  bool small = rows < 3000, middle = rows < 15000;
  double widest = small ? 128 : middle ? 256 : rows < 500000 ? 512 : 1024;
  double narrowest = small ? 16 : middle ? 32 : 64;
  if (columns > 200 && widest < 512) widest *= 2;
  set_range(out, SHOAL_SET_LAYERS, 1, small ? 3 : 4, false);
  set_range(out, SHOAL_SET_WIDTH, narrowest, widest, true);
  set_words(out, SHOAL_SET_SHAPE, "brick funnel diamond triangle");
  set_words(out, SHOAL_SET_RESIDUAL, "no yes");
  set_words(out, SHOAL_SET_ACTIVATION, "relu silu");
  set_range(out, SHOAL_SET_DROPOUT, small ? 0.1 : 0, small ? 0.6 : 0.5, false);
  set_words(out, SHOAL_SET_NORMALISE, "none batch layer");
  set_words(out, SHOAL_SET_OPTIMIZER, "adamw");
  set_range(out, SHOAL_SET_RATE, 3e-4, small ? 2e-2 : 1e-2, true);
  set_words(out, SHOAL_SET_BATCH,
            rows < 1000     ? "16 32 64"
            : small         ? "32 64 128"
            : middle        ? "64 128 256"
            : rows < 200000 ? "128 256 512"
                            : "256 512 1024");
  set_range(out, SHOAL_SET_DECAY, small ? 1e-3 : 1e-5, small ? 1 : 0.1, true);
  set_words(out, SHOAL_SET_NUMBERS, "standard quantile pieces");
  set_range(out, SHOAL_SET_PIECES, small ? 4 : 8, small ? 16 : middle ? 64 : 128, true);
  /* A label's order means nothing to a network: it is there for who asks. */
  set_words(out, SHOAL_SET_CATEGORIES, "one-hot lookup");
  set_range(out, SHOAL_SET_EMBEDDING, 2, small ? 8 : 16, true);
  set_words(out, SHOAL_SET_BALANCE, "no");
  set_range(out, SHOAL_SET_TOPOLOGY, 0, 0, false);
}

static void free_topologies(char **topologies, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) free(topologies[i]);
  free(topologies);
}

void shoal_space_release(shoal_space *space) {
  free_topologies(space->topologies, space->topologies_count);
  *space = (shoal_space){0};
}

/* ---- reading ------------------------------------------------------------------------ */

typedef struct word {
  const char *text;
  size_t length;
} word;

typedef struct reading {
  const char *name, *line_start;
  uint32_t line;
  const char *rest, *line_end; /* words still to come */
  word at;                     /* the current one; of length 0 at the line's end */
  const char *head;            /* what the line is about, or NULL */
  bool seen[SHOAL_SETTINGS];
  shoal_space space; /* as it will be */
  uint32_t room;     /* for topologies */
  shoal_error *err;
  shoal_status status;
} reading;

static bool fail_with(reading *r, shoal_status status, const char *format, va_list args) {
  char sentence[SHOAL_ERROR_TEXT_MAX / 2];
  vsnprintf(sentence, sizeof sentence, format, args);
  r->status = shoal_fail(r->err, status, "%s:%u:%zu: %s%s%s", r->name, r->line,
                         (size_t)(r->at.text - r->line_start) + 1, r->head ? r->head : "",
                         r->head ? ": " : "", sentence);
  return false;
}

/* At the current word. Answers false. */
__attribute__((format(printf, 2, 3))) static bool fail(reading *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_with(r, SHOAL_INVALID, format, args);
  va_end(args);
  return false;
}

__attribute__((format(printf, 2, 3))) static bool fail_limit(reading *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_with(r, SHOAL_LIMIT, format, args);
  va_end(args);
  return false;
}

static bool fail_memory(reading *r) {
  r->status = shoal_fail(r->err, SHOAL_NO_MEMORY, "%s: out of memory while reading the space", r->name);
  return false;
}

enum { QUOTE_MAX = 64 };

/* "'word'" or "the end of the line". Returns out. */
static const char *quote(const reading *r, char out[QUOTE_MAX]) {
  enum { SHOWN = 40 };
  if (r->at.length == 0)
    snprintf(out, QUOTE_MAX, "the end of the line");
  else
    snprintf(out, QUOTE_MAX, "'%.*s%s'", (int)(r->at.length < SHOWN ? r->at.length : SHOWN), r->at.text,
             r->at.length > SHOWN ? "..." : "");
  return out;
}

/* What users of other programs write, for a setting or a choice. */
static const shoal_synonyms synonyms[] = {
    {"rate", "lr learning-rate learning-rate-init"},
    {"batch", "batch-size bs minibatch"},
    {"width", "units hidden hidden-size hidden-units hidden-dim neurons"},
    {"layers", "num-layers n-layers depth hidden-layers"},
    {"normalise", "batchnorm layernorm batch-norm normalize normalization norm"},
    {"decay", "weight-decay wd l2 alpha"},
    {"dropout", "dropout-rate drop"},
    {"activation", "act nonlinearity"},
    {"optimizer", "optim opt solver"},
    {"residual", "skip skip-connections"},
    {"balance", "class-weight class-weights"},
    {"batch", "batchnorm"},
    {"layer", "layernorm"},
    {"none", "no off false"},
    {"no", "off false none"},
    {"yes", "on true"},
};

/* The table ends in NULL. */
static bool fail_unknown(reading *r, const char *thing, const char *const *table) {
  char found[QUOTE_MAX];
  size_t count = 0;
  while (table[count] != NULL) count++;
  const char *near =
      shoal_synonym(r->at.text, r->at.length, synonyms, sizeof synonyms / sizeof synonyms[0], table, count);
  if (!near) near = shoal_nearest(r->at.text, r->at.length, table, count);
  if (near) return fail(r, "unknown %s %s; did you mean '%s'?", thing, quote(r, found), near);
  char list[400];
  size_t used = 0;
  for (size_t i = 0; i < count && used < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", table[i]);
  if (r->at.length == 0) return fail(r, "the %s is missing; it is one of %s", thing, list);
  return fail(r, "unknown %s %s; it is one of %s", thing, quote(r, found), list);
}

static void advance(reading *r) {
  while (r->rest < r->line_end && (*r->rest == ' ' || *r->rest == '\t')) r->rest++;
  const char *start = r->rest;
  /* A comma is a word of its own. */
  if (r->rest < r->line_end && *r->rest == ',')
    r->rest++;
  else
    while (r->rest < r->line_end && *r->rest != ' ' && *r->rest != '\t' && *r->rest != ',') r->rest++;
  r->at = (word){start, (size_t)(r->rest - start)};
}

static bool at_word(const reading *r, const char *text) {
  return r->at.length == strlen(text) && memcmp(r->at.text, text, r->at.length) == 0;
}

/* The next line, up to a comment; false when there is none or it holds what no text does. */
static bool next_line(reading *r, const char **next, const char *end) {
  r->head = NULL;
  if (*next == end) return false;
  r->line++;
  r->line_start = r->rest = *next;
  const char *newline = memchr(*next, '\n', (size_t)(end - *next));
  r->line_end = newline ? newline : end;
  *next = newline ? newline + 1 : end;
  if (r->line_end > r->line_start && r->line_end[-1] == '\r') r->line_end--;
  r->at = (word){r->line_start, 0};
  if (r->line_end - r->line_start > LINE_MAX)
    return fail_limit(r, "the line is longer than 8,192 characters");
  const char *comment = memchr(r->line_start, '#', (size_t)(r->line_end - r->line_start));
  if (comment) r->line_end = comment;
  for (const char *c = r->line_start; c < r->line_end; c++) {
    r->at.text = c;
    if (*c != '\t' && (*c < ' ' || *c > '~'))
      return fail(r, "found the byte 0x%02x; outside of comments only plain ASCII is allowed",
                  (unsigned char)*c);
  }
  advance(r);
  return true;
}

/* "; write 0.5" for "50%", "; write 1..4" for "1-4", or nothing. Returns out. */
static const char *meant(word part, char out[QUOTE_MAX]) {
  const char *text = part.text;
  double number;
  out[0] = 0;
  for (size_t i = 1; i < part.length; i++) {
    size_t rest = part.length - i - 1;
    if (!shoal_read_f64(text, i, &number)) continue;
    if (text[i] == '%' && rest == 0)
      snprintf(out, QUOTE_MAX, "; write %.10g", number / 100);
    else if ((text[i] == '-' || text[i] == ':') && shoal_read_f64(text + i + 1, rest, &number))
      snprintf(out, QUOTE_MAX, "; write %.*s..%.*s", (int)i, text, (int)rest, text + i + 1);
  }
  return out;
}

/* A number of a setting, which is a part of the current word. */
static bool read_number(reading *r, shoal_setting_id id, word part, double *out) {
  const known *k = &settings[id];
  char found[QUOTE_MAX], advice[QUOTE_MAX];
  if (!shoal_read_f64(part.text, part.length, out))
    return fail(r, "expected a number, a range like 1..4 or choices, found %s%s", quote(r, found),
                meant(part, advice));
  if (k->whole && *out != floor(*out)) return fail(r, "expected whole numbers, found %s", quote(r, found));
  if (*out < k->least || *out > k->most)
    return fail(r, "expected numbers from %.10g to %.10g, found %s", k->least, k->most, quote(r, found));
  return true;
}

/* Where ".." stands in the current word, or NULL. */
static const char *dots(const reading *r) {
  for (size_t i = 0; i + 1 < r->at.length; i++)
    if (r->at.text[i] == '.' && r->at.text[i + 1] == '.') return r->at.text + i;
  return NULL;
}

/* LEAST..MOST, the current word. */
static bool read_bounds(reading *r, shoal_setting_id id, double *min, double *max) {
  const char *middle = dots(r), *end = r->at.text + r->at.length;
  if (middle == r->at.text || middle + 2 == end)
    return fail(r, "a range has a number on either side, without spaces, as in 1..4");
  if (!read_number(r, id, (word){r->at.text, (size_t)(middle - r->at.text)}, min) ||
      !read_number(r, id, (word){middle + 2, (size_t)(end - middle - 2)}, max))
    return false;
  char found[QUOTE_MAX];
  return *min <= *max ||
         fail(r, "the range %s is upside down; write the smaller number first", quote(r, found));
}

static bool read_range(reading *r, shoal_setting_id id) {
  shoal_setting range = {.name = settings[id].name, .whole = settings[id].whole};
  if (!read_bounds(r, id, &range.min, &range.max)) return false;
  advance(r);
  range.log = at_word(r, "log");
  if (range.log) {
    if (range.min <= 0) return fail(r, "a range with log begins above 0");
    advance(r);
  }
  char found[QUOTE_MAX];
  if (r->at.length > 0)
    return fail(r, "expected 'log' or the end of the line after a range, found %s", quote(r, found));
  r->space.settings[id] = range;
  return true;
}

/* The current word as one of a setting's, or NULL. */
static const char *find_known(const reading *r, shoal_setting_id id) {
  for (const char *const *known_word = settings[id].words; *known_word != NULL; known_word++)
    if (at_word(r, *known_word)) return *known_word;
  return NULL;
}

static bool read_choices(reading *r, shoal_setting_id id) {
  shoal_setting list = {.name = settings[id].name, .is_choice = true, .whole = settings[id].whole};
  char found[QUOTE_MAX];
  do {
    double number = 0;
    if (at_word(r, "..")) return fail(r, "a range has a number on either side, without spaces, as in 1..4");
    if (dots(r) != NULL) return fail(r, "a range stands alone; write it without other choices");
    if (at_word(r, ",")) return fail(r, "choices have spaces between them, no commas");
    if (shoal_setting_is_word(id) && find_known(r, id) == NULL)
      return fail_unknown(r, "choice", settings[id].words);
    if (!shoal_setting_is_word(id) && at_word(r, "log"))
      return fail(r, "log belongs to a range, as in 1e-4..1e-2 log");
    if (!shoal_setting_is_word(id) && !read_number(r, id, r->at, &number)) return false;
    if (r->at.length >= SHOAL_CHOICE_BYTES)
      return fail(r, "%s is too long; at most %d characters", quote(r, found), SHOAL_CHOICE_BYTES - 1);
    if (list.choices_count == SHOAL_CHOICES_MAX)
      return fail_limit(r, "more than %d choices; write a range", SHOAL_CHOICES_MAX);
    for (uint32_t i = 0; i < list.choices_count; i++)
      if (at_word(r, list.choices[i]) || (!shoal_setting_is_word(id) && number_of_choice(&list, i) == number))
        return fail(r, "%s stands here twice", quote(r, found));
    memcpy(list.choices[list.choices_count++], r->at.text, r->at.length);
    advance(r);
  } while (r->at.length > 0);
  r->space.settings[id] = list;
  return true;
}

static bool read_setting(reading *r, shoal_setting_id id) {
  if (r->seen[id]) return fail(r, "this setting has a line above already");
  r->seen[id] = true;
  advance(r);
  if (r->at.length == 0)
    return fail(r, shoal_setting_is_word(id) ? "the choices are missing"
                                             : "the range or the choices are missing, as in 1..4");
  if (dots(r) == NULL) return read_choices(r, id);
  if (!shoal_setting_is_word(id)) return read_range(r, id);
  return fail(r, "this setting has words, not numbers: %s and so on", settings[id].words[0]);
}

/* ---- topologies --------------------------------------------------------------------- */

static bool add_topology(reading *r, const char *text) {
  shoal_space *space = &r->space;
  if (space->topologies_count == SHOAL_TOPOLOGIES_MAX) return fail_limit(r, "more than 100,000 topologies");
  if (space->topologies_count == r->room) {
    uint32_t room = r->room ? 2 * r->room : 16;
    char **grown = realloc(space->topologies, room * sizeof *grown);
    if (grown == NULL) return fail_memory(r);
    space->topologies = grown;
    r->room = room;
  }
  char *copy = strdup(text);
  if (copy == NULL) return fail_memory(r);
  space->topologies[space->topologies_count++] = copy;
  return true;
}

static bool read_width(reading *r, uint32_t *out) {
  double number;
  char found[QUOTE_MAX];
  if (!shoal_read_f64(r->at.text, r->at.length, &number) || number != floor(number) || number < 1 ||
      number > SHOAL_WIDTH_MAX)
    return fail(r, "expected the width of a layer, a whole number from 1 to %d, found %s", SHOAL_WIDTH_MAX,
                quote(r, found));
  *out = (uint32_t)number;
  advance(r);
  return true;
}

static bool read_activation(reading *r, const char **out) {
  *out = find_known(r, SHOAL_SET_ACTIVATION);
  if (*out == NULL) return fail_unknown(r, "activation", shoal_activation_words);
  advance(r);
  return true;
}

/* The words after `topology`: none, or WIDTH ACTIVATION, WIDTH ACTIVATION, ... */
static bool read_topology(reading *r) {
  char text[SHOAL_HIDDEN_MAX * 24];
  size_t used = 0;
  char found[QUOTE_MAX];
  if (at_word(r, "none")) {
    advance(r);
    return r->at.length == 0 ||
           fail(r, "expected the end of the line after 'none', found %s", quote(r, found));
  }
  for (uint32_t layers = 0;; layers++) {
    uint32_t width = 0;
    const char *activation = NULL;
    if (layers == SHOAL_HIDDEN_MAX) return fail_limit(r, "more than %d layers", SHOAL_HIDDEN_MAX);
    if (!read_width(r, &width) || !read_activation(r, &activation)) return false;
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s%u %s", layers ? ", " : "", width, activation);
    if (r->at.length == 0) return add_topology(r, text);
    if (!at_word(r, ",")) return fail(r, "expected a comma and the next layer, found %s", quote(r, found));
    advance(r);
  }
}

/* All ways to give `layers` layers one of the activations each; the last layer's changes fastest. */
static bool add_combinations(reading *r, uint32_t layers, uint32_t width, const char *const *activations,
                             uint32_t count) {
  uint32_t digits[SHOAL_HIDDEN_MAX] = {0};
  for (;;) {
    char text[SHOAL_HIDDEN_MAX * 24];
    size_t used = 0;
    for (uint32_t i = 0; i < layers; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%u %s", i ? ", " : "", width,
                               activations[digits[i]]);
    if (!add_topology(r, text)) return false;
    uint32_t last = layers;
    while (last > 0 && ++digits[last - 1] == count) digits[--last] = 0;
    if (last == 0) return true;
  }
}

/* The words after `combine`: LAYERS WIDTH ACTIVATION... */
static bool read_combine(reading *r) {
  double least, most;
  uint32_t width, count = 0;
  const char *activations[SHOAL_ACTIVATION_WORDS];
  if (dots(r) != NULL ? !read_bounds(r, SHOAL_SET_LAYERS, &least, &most)
                      : !read_number(r, SHOAL_SET_LAYERS, r->at, &least))
    return false;
  if (dots(r) == NULL) most = least;
  advance(r);
  if (!read_width(r, &width)) return false;
  do {
    if (count == SHOAL_ACTIVATION_WORDS) return fail(r, "an activation stands here twice");
    if (!read_activation(r, &activations[count])) return false;
    for (uint32_t i = 0; i < count; i++)
      if (activations[i] == activations[count]) return fail(r, "'%s' stands here twice", activations[i]);
    count++;
  } while (r->at.length > 0);
  for (uint32_t layers = (uint32_t)least; layers <= most; layers++)
    if (!add_combinations(r, layers, width, activations, count)) return false;
  return true;
}

/* ---- a whole text ------------------------------------------------------------------- */

static bool read_line(reading *r) {
  static const char *const others[] = {"topology", "combine"};
  const char *names[SHOAL_SETTINGS + 2] = {[SHOAL_SETTINGS] = others[1]};
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) names[id] = settings[id].name;
  for (uint32_t id = 0; id < SHOAL_SET_TOPOLOGY; id++) {
    if (!at_word(r, names[id])) continue;
    r->head = names[id];
    return read_setting(r, (shoal_setting_id)id);
  }
  bool topology = at_word(r, others[0]);
  if (!topology && !at_word(r, others[1])) return fail_unknown(r, "setting", names);
  r->head = others[topology ? 0 : 1];
  r->seen[SHOAL_SET_TOPOLOGY] = true;
  advance(r);
  return topology ? read_topology(r) : read_combine(r);
}

shoal_status shoal_space_parse(shoal_space *space, const char *name, const char *text, size_t length,
                               shoal_error *err) {
  reading r = {.name = name, .line_start = text, .space = *space, .err = err};
  r.space.topologies = NULL; /* the text's own replace those that there are */
  r.space.topologies_count = 0;
  const char *next = text, *end = text + length;
  if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) next += 3;
  while (r.status == SHOAL_OK && next_line(&r, &next, end))
    if (r.at.length > 0) read_line(&r);
  if (r.status != SHOAL_OK) {
    free_topologies(r.space.topologies, r.space.topologies_count);
    return r.status;
  }
  if (r.seen[SHOAL_SET_TOPOLOGY]) {
    uint32_t count = r.space.topologies_count;
    free_topologies(space->topologies, space->topologies_count);
    set_range(&r.space, SHOAL_SET_TOPOLOGY, 0, count > 0 ? count - 1 : 0, false);
  } else {
    r.space.topologies = space->topologies;
    r.space.topologies_count = space->topologies_count;
  }
  *space = r.space;
  return SHOAL_OK;
}

static const char *shortest(double value, char out[40]) {
  for (int digits = 6; digits <= 17; digits++) {
    double back;
    int length = snprintf(out, 40, "%.*g", digits, value);
    if (shoal_read_f64(out, (size_t)length, &back) && back == value) break;
  }
  return out;
}

void shoal_space_write(const shoal_space *space, shoal_text *out) {
  for (uint32_t id = 0; id < SHOAL_SET_TOPOLOGY; id++) {
    const shoal_setting *setting = &space->settings[id];
    char min[40], max[40];
    shoal_text_addf(out, "%-11s", setting->name);
    if (!setting->is_choice)
      shoal_text_addf(out, " %s..%s%s", shortest(setting->min, min), shortest(setting->max, max),
                      setting->log ? " log" : "");
    for (uint32_t i = 0; i < setting->choices_count; i++) shoal_text_addf(out, " %s", setting->choices[i]);
    shoal_text_add(out, "\n", 1);
  }
  if (space->topologies_count == 0) shoal_text_addf(out, "topology    none\n");
  for (uint32_t i = 0; i < space->topologies_count; i++)
    shoal_text_addf(out, "topology    %s\n", space->topologies[i]);
}

/* ---- values as JSON ----------------------------------------------------------------- */

void shoal_values_write(const shoal_space *space, const shoal_values *values, shoal_json *json,
                        const char *key) {
  shoal_json_open(json, key, '{');
  for (uint32_t i = 0; i < SHOAL_SETTINGS; i++) {
    shoal_setting_id id = (shoal_setting_id)i;
    if (!shoal_values_matter(space, values, id)) continue;
    if (id == SHOAL_SET_TOPOLOGY)
      shoal_json_text(json, settings[id].name, space->topologies[(uint32_t)values->of[id]]);
    else if (shoal_setting_is_word(id))
      shoal_json_text(json, settings[id].name, shoal_values_word(space, values, id));
    else
      shoal_json_real(json, settings[id].name, shoal_values_number(space, values, id));
  }
  shoal_json_close(json, '}');
}

static bool find_word(const shoal_space *space, shoal_setting_id id, const char *wanted, double *out) {
  const shoal_setting *setting = &space->settings[id];
  uint32_t count = id == SHOAL_SET_TOPOLOGY ? space->topologies_count : setting->choices_count;
  for (uint32_t i = 0; i < count; i++) {
    const char *here = id == SHOAL_SET_TOPOLOGY ? space->topologies[i] : setting->choices[i];
    *out = i;
    if (strcmp(here, wanted) == 0) return true;
  }
  return false;
}

static bool find_number(const shoal_setting *setting, double number, double *out) {
  *out = number;
  if (!setting->is_choice)
    return number >= setting->min && number <= setting->max && (!setting->whole || number == floor(number));
  for (uint32_t i = 0; i < setting->choices_count; i++) {
    *out = i;
    if (number_of_choice(setting, i) == number) return true;
  }
  return false;
}

shoal_status shoal_values_read(const shoal_space *space, const cJSON *json, shoal_values *out,
                               shoal_error *err) {
  if (!cJSON_IsObject(json)) return shoal_fail(err, SHOAL_INVALID, "values: expected an object of settings");
  const char *names[SHOAL_SETTINGS];
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) names[id] = settings[id].name;
  *out = first_values(space);
  for (const cJSON *item = json->child; item != NULL; item = item->next) {
    uint32_t i = 0;
    while (i < SHOAL_SETTINGS && strcmp(item->string, names[i]) != 0) i++;
    if (i == SHOAL_SETTINGS) {
      const char *near = shoal_nearest(item->string, strlen(item->string), names, SHOAL_SETTINGS);
      return shoal_fail(err, SHOAL_INVALID, "values: unknown setting '%.40s'%s%s%s", item->string,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    shoal_setting_id id = (shoal_setting_id)i;
    bool in_words = shoal_setting_is_word(id) || id == SHOAL_SET_TOPOLOGY;
    bool good =
        in_words ? cJSON_IsString(item) && find_word(space, id, item->valuestring, &out->of[i])
                 : cJSON_IsNumber(item) && find_number(&space->settings[i], item->valuedouble, &out->of[i]);
    if (!good) return shoal_fail(err, SHOAL_INVALID, "values: %s is not one that the space has", names[i]);
  }
  return SHOAL_OK;
}
