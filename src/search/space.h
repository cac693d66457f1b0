/* space.h: what a search may try: settings, each with its choices or its range.
 *
 *   # one setting a line; what is not named keeps the choices of shoal_space_usual
 *   layers      1..4
 *   width       32..512 log          whole numbers, every factor equally likely
 *   shape       brick funnel triangle diamond
 *   rate        1e-4..1e-2 log
 *   dropout     0..0.5
 *   activation  relu silu            choices
 *   optimizer   adamw                one choice: fixed
 *   topology    64 relu, 32 tanh     an explicit network, layer by layer; may come many times. Where there
 *                                    are any, layers, width, shape, residual and activation are not searched
 *   combine     1..3 64 relu tanh    short for the topologies of 1, 2 and 3 layers of 64 with every
 *                                    combination of these activations
 *   topology    none                 back to layers, width and so on
 *
 * A value of a setting is a double: the number itself, or the number of the choice from 0. A setting whose
 * use depends on another (pieces: only with numbers pieces; embedding: only with categories lookup; shape:
 * only with more than one layer) has a value all the same.
 *
 * Ownership: usual or parse, then release. Threads: read-only after set-up. */
#ifndef SHOAL_SEARCH_SPACE_H
#define SHOAL_SEARCH_SPACE_H

#include <cjson/cJSON.h>

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

enum {
  SHOAL_CHOICES_MAX = 64,
  SHOAL_CHOICE_BYTES = 16,
  SHOAL_TOPOLOGIES_MAX = 100000,
  SHOAL_HIDDEN_MAX = 64, /* layers */
  SHOAL_WIDTH_MAX = 65536,
};

/* The settings, in this order in every space. */
typedef enum shoal_setting_id {
  SHOAL_SET_LAYERS,
  SHOAL_SET_WIDTH, /* of the widest layer */
  SHOAL_SET_SHAPE,
  SHOAL_SET_RESIDUAL, /* no yes */
  SHOAL_SET_ACTIVATION,
  SHOAL_SET_DROPOUT,
  SHOAL_SET_NORMALISE, /* none batch layer */
  SHOAL_SET_OPTIMIZER,
  SHOAL_SET_RATE,
  SHOAL_SET_BATCH,
  SHOAL_SET_DECAY,
  SHOAL_SET_NUMBERS, /* standard robust quantile pieces */
  SHOAL_SET_PIECES,
  SHOAL_SET_CATEGORIES, /* one-hot label lookup */
  SHOAL_SET_EMBEDDING,  /* learned values a category */
  SHOAL_SET_BALANCE,    /* no yes */
  SHOAL_SET_TOPOLOGY,   /* an index into topologies; one choice, 0, where there are none */
  SHOAL_SETTINGS,
} shoal_setting_id;

typedef enum shoal_net_shape {
  SHOAL_BRICK,    /* all layers of one width */
  SHOAL_FUNNEL,   /* from wide to narrow */
  SHOAL_TRIANGLE, /* from narrow to wide */
  SHOAL_DIAMOND,  /* narrow, wide, narrow */
  SHOAL_HOURGLASS,
  SHOAL_STAIRS, /* narrower every second layer */
  SHOAL_NET_SHAPES,
} shoal_net_shape;

typedef struct shoal_setting {
  const char *name;
  bool is_choice; /* else a range of numbers */
  uint32_t choices_count;
  char choices[SHOAL_CHOICES_MAX][SHOAL_CHOICE_BYTES]; /* words, or numbers as written */
  bool whole, log;                                     /* whole: of a range and of choices of numbers */
  double min, max;                                     /* of a range */
} shoal_setting;

typedef struct shoal_space {
  shoal_setting settings[SHOAL_SETTINGS];
  uint32_t topologies_count;
  char **topologies; /* "64 relu, 32 tanh" */
} shoal_space;

typedef struct shoal_values {
  double of[SHOAL_SETTINGS];
} shoal_values;

/* What is tried when nobody says anything: `rows` and `columns` of the table choose sensible sizes. */
void shoal_space_usual(shoal_space *out, uint64_t rows, uint32_t columns);
/* Changes a space by a text of the form above; `name` is what errors call it, "space.txt:3: ..." */
shoal_status shoal_space_parse(shoal_space *space, const char *name, const char *text, size_t length,
                               shoal_error *err);
void shoal_space_release(shoal_space *space);
/* As text that parses to the same space from any other. */
void shoal_space_write(const shoal_space *space, shoal_text *out);

/* How many points the grid has; 0: a range of reals, without end, also above 2^63. A range of whole
 * numbers with `log` has those that come from doubling, and its end. Settings that have no effect at a
 * point do not multiply it. */
uint64_t shoal_space_grid(const shoal_space *space);
/* The setting that has no end, for an error's text; or NULL. */
const char *shoal_space_endless(const shoal_space *space);
/* Number i of the grid, from 0: the last setting changes fastest. */
void shoal_space_grid_at(const shoal_space *space, uint64_t i, shoal_values *out);
/* A random point: from the unit cube, so that others can use their own numbers. u in [0, 1). Reals are
 * rounded to three digits or so; the middle of what becomes a value goes back to it. The same bits on
 * every machine. */
double shoal_space_from_unit(const shoal_setting *setting, double u);
double shoal_space_to_unit(const shoal_setting *setting, double value);
/* How many values there are; 0: reals. */
uint64_t shoal_setting_values(const shoal_setting *setting);
/* Whether a value of it is a word of a list, and no number. */
bool shoal_setting_is_word(shoal_setting_id setting);
/* Whether values that are near each other are alike: a range, or choices of ascending numbers. */
bool shoal_setting_ordered(const shoal_setting *setting);
/* The number that a value stands for, also where numbers are choices; the word. */
double shoal_values_number(const shoal_space *space, const shoal_values *values, shoal_setting_id setting);
const char *shoal_values_word(const shoal_space *space, const shoal_values *values, shoal_setting_id setting);
/* Which of all words of a setting it is: its value in the enum that they stand for, or of no and yes. */
uint32_t shoal_values_choice(const shoal_space *space, const shoal_values *values, shoal_setting_id setting);

typedef struct shoal_plain_layer {
  uint32_t width;
  char activation[SHOAL_CHOICE_BYTES];
} shoal_plain_layer;
/* The layers of a topology of this space; returns how many. */
uint32_t shoal_space_layers(const shoal_space *space, uint32_t topology,
                            shoal_plain_layer out[SHOAL_HIDDEN_MAX]);

/* {"layers":3,"shape":"funnel",...}; those that have no effect with these values are left out, and get
 * their first value when they are read. */
void shoal_values_write(const shoal_space *space, const shoal_values *values, shoal_json *json,
                        const char *key);
shoal_status shoal_values_read(const shoal_space *space, const cJSON *json, shoal_values *out,
                               shoal_error *err);
/* Whether a setting has any effect with these values. */
bool shoal_values_matter(const shoal_space *space, const shoal_values *values, shoal_setting_id setting);

#endif
