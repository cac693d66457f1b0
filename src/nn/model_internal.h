/* model_internal.h: what the files that read and write model texts share.
 *
 *   model_words.c     bytes -> lines and words with their places; numbers; error texts
 *   model.c           layer lines, names and references; parse, load and set
 *   ops/              what a line means to its operation (op.h)
 *   model_settings.c  the lines that are not layers: loss, optimizer, batch, ...
 *   model_shapes.c    what shape comes out of a layer, and whether one can
 *   model_foreign.c   lines of other libraries -> what to write instead, for errors
 *
 * Reading functions answer false after putting the error into the words, or without one where
 * memory ran out; the caller hands the false on. Nothing a text contains may reach an assert. */
#ifndef SHOAL_NN_MODEL_INTERNAL_H
#define SHOAL_NN_MODEL_INTERNAL_H

#include "base/human.h"
#include "nn/model.h"

enum {
  SHOAL_LINE_BYTES_MAX = 32768,   /* room for SHOAL_CLASS_WEIGHTS_MAX numbers */
  SHOAL_LINE_NAME_BYTES_MAX = 32, /* so short that a written model fits SHOAL_MODEL_BYTES_MAX */
  SHOAL_STACK_MAX = 32,           /* `layers K` of a recurrent line */
  SHOAL_FIELDS_MAX = 4,           /* of a setting's line, its kind aside */
};

/* ---- words -------------------------------------------------------------------------- */

/* A word of the text with its place. length is 0 at the end of a line. */
typedef struct shoal_word {
  const char *text;
  uint32_t length;
  uint32_t line, column; /* from 1 */
} shoal_word;

/* Walks over a text line by line and over a line word by word. */
typedef struct shoal_words {
  const char *name;            /* what errors call the text */
  bool is_flag;                /* one value from the command line: errors give no line and column */
  const char *next, *text_end; /* the lines still to come */
  const char *line_start;
  const char *rest, *line_end; /* the words still to come; a comment is already cut off */
  uint32_t line;
  shoal_word word; /* the current word */
  shoal_word head; /* the word that says what this line is, put before its errors */
  shoal_error *err;
  shoal_status status;
} shoal_words;

void shoal_words_init(shoal_words *w, const char *name, const char *text, size_t length, shoal_error *err);
/* Goes to the first word of the next line. False at the end of the text, and with status
 * set when the line holds bytes that no model text has. */
bool shoal_words_next_line(shoal_words *w);
void shoal_words_advance(shoal_words *w);
bool shoal_words_accept(shoal_words *w, const char *text); /* advances when the word is text */
bool shoal_word_is(shoal_word word, const char *text);
/* The word's index in a table of words, which ends with a NULL as all of them do; or -1. */
int shoal_word_find(shoal_word word, const char *const *table);

/* How many of the characters at the front can be a line's name: letters, digits, '_' and '-', from a letter on. */
size_t shoal_name_length(const char *text);

/* All of these answer false, for `return shoal_words_fail(...)`. */
bool shoal_words_refuse(shoal_words *w, shoal_status status, shoal_word at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define shoal_words_fail(w, at, ...) shoal_words_refuse(w, SHOAL_INVALID, at, __VA_ARGS__)
#define shoal_words_over_limit(w, at, ...) shoal_words_refuse(w, SHOAL_LIMIT, at, __VA_ARGS__)
/* "expected FORMAT, found 'x'" */
bool shoal_words_expected(shoal_words *w, shoal_word at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "unknown THING 'x'; did you mean 'y'?", or the whole table when nothing is near. */
bool shoal_words_unknown(shoal_words *w, shoal_word at, const char *thing, const char *const *table);
/* The word of the table that is near, or NULL. */
const char *shoal_word_near(shoal_word word, const char *const *table);
/* The line must end here. */
bool shoal_words_end(shoal_words *w);

/* A piece of text by value, to be used within the same expression. */
typedef struct shoal_phrase {
  char text[512];
} shoal_phrase;

/* "'word'", shortened where long, or "the end of the line". */
shoal_phrase shoal_word_quote(const shoal_words *w, shoal_word word);
/* "a, b, c" */
shoal_phrase shoal_words_list(const char *const *table);
/* Where the line is one of Keras or PyTorch: "write `dense 128 relu`", the line that was meant, or "`conv` has no
 * `groups=2`"; else "". Errors end with it by themselves. */
shoal_phrase shoal_words_foreign(const shoal_words *w);

/* What `init` calls an initialiser that they call he_normal, or NULL. */
const char *shoal_init_meant(const char *word, size_t length);

/* Each takes the current word and advances. `what` completes "expected ...". */
bool shoal_words_u32(shoal_words *w, const char *what, uint32_t least, uint32_t most, uint32_t *out);
/* "5", "5x5" or "3x32x32": from `fewest` to `most` numbers, none below least. Returns how many; 0 after an error. */
uint32_t shoal_words_sizes(shoal_words *w, const char *what, uint32_t least, uint32_t fewest, uint32_t most,
                           uint32_t out[3]);

typedef enum shoal_range {
  SHOAL_RANGE_FROM_ZERO,
  SHOAL_RANGE_ABOVE_ZERO,
  SHOAL_RANGE_SHARE, /* from 0 to below 1 */
} shoal_range;
bool shoal_words_real(shoal_words *w, const char *what, shoal_range range, float *out);
/* A space and the shortest decimal that reads back as the same float. */
void shoal_write_real(shoal_text *out, float value);

/* A word, number or flag of a line, which reading and writing share; a list of them ends with {0}. Zero where the line
 * cannot say it means that it was not given. */
typedef struct shoal_field {
  const char *word; /* before the value; or NULL */
  const char *what; /* as errors call it */
  enum {
    SHOAL_FIELD_NONE,
    SHOAL_FIELD_KIND,
    SHOAL_FIELD_FLAG,
    SHOAL_FIELD_U32,
    SHOAL_FIELD_U64,
    SHOAL_FIELD_REAL,
  } type;
  size_t place, bytes;      /* in the recipe or in the layer */
  double usual;             /* of a setting where no line says it */
  uint32_t least, most;     /* of an U32; a FLAG is at least 1 */
  shoal_range range;        /* of a REAL */
  const char *const *kinds; /* the words of a KIND, in the order of its enum, and a NULL behind them */
} shoal_field;

#define SHOAL_FIELD(owner, said, called, kind, name, otherwise)                             \
  .word = said, .what = called, .type = SHOAL_FIELD_##kind, .place = offsetof(owner, name), \
  .bytes = sizeof((owner *)NULL)->name, .usual = otherwise
#define SHOAL_KIND_FIELD(owner, what, name, words) \
  { SHOAL_FIELD(owner, NULL, what, KIND, name, 0), .kinds = words }
#define SHOAL_FLAG_FIELD(owner, word, name) \
  { SHOAL_FIELD(owner, word, NULL, FLAG, name, 0), .least = 1 }
#define SHOAL_U32_FIELD(owner, word, what, name, usual, from, to) \
  { SHOAL_FIELD(owner, word, what, U32, name, usual), .least = from, .most = to }
#define SHOAL_REAL_FIELD(owner, word, what, name, usual, in) \
  { SHOAL_FIELD(owner, word, what, REAL, name, usual), .range = SHOAL_RANGE_##in }

/* What the arguments of many layers begin with: how many of something there are. */
#define SHOAL_COUNT_FIELD(what, name) SHOAL_U32_FIELD(shoal_layer, NULL, what, name, 0, 1, INT32_MAX)

/* The value alone, without the field's word. */
bool shoal_read_field(shoal_words *w, const shoal_field *field, void *owner);
bool shoal_field_is_zero(const shoal_field *field, const void *owner);
void shoal_write_fields(shoal_text *out, const shoal_field *fields, const void *owner);

/* ---- reading a model ---------------------------------------------------------------- */

/* The optimisers, the losses, the activations, the options and the settings are a list each: X(KIND, "word", facts of the
 * row...) for each kind, in the order of the enum. X is one of these: the enum, where it comes from the list, the list's
 * words, behind which stands a NULL, and its rows. */
#define SHOAL_KIND_OF(kind, ...) kind,
#define SHOAL_WORD_OF(kind, word, ...) [kind] = word,
#define SHOAL_ROW_OF(kind, word, ...) [kind] = {__VA_ARGS__},

/* The options of layers' lines and their words; any activation's name is one more. */
#define SHOAL_EACH_OPTION(X)                     \
  X(SHOAL_OPTION_STRIDE, "stride")               \
  X(SHOAL_OPTION_PAD, "pad")                     \
  X(SHOAL_OPTION_NO_BIAS, "no-bias")             \
  X(SHOAL_OPTION_INIT, "init")                   \
  X(SHOAL_OPTION_LAYERS, "layers")               \
  X(SHOAL_OPTION_BIDIRECTIONAL, "bidirectional") \
  X(SHOAL_OPTION_LAST, "last")                   \
  X(SHOAL_OPTION_BATCH, "batch")                 \
  X(SHOAL_OPTION_FROM, "from")
typedef enum shoal_option {
  SHOAL_EACH_OPTION(SHOAL_KIND_OF) SHOAL_OPTION_ACTIVATION,
  SHOAL_OPTIONS
} shoal_option;

/* An option of a row of nn/op.h: SHOAL_TAKES(STRIDE). */
#define SHOAL_TAKES(option) (1u << SHOAL_OPTION_##option)

/* The settings, in the order in which they are written, with the fields of their lines, whose macros model_settings.c
 * has: one without a word comes first, the others in any order. Class weights are read and written by themselves. */
#define SHOAL_EACH_SETTING(X)                                                                          \
  X(SHOAL_SETTING_LOSS, "loss", KIND("loss", loss, shoal_loss_words))                                  \
  X(SHOAL_SETTING_OPTIMIZER, "optimizer", KIND("optimizer", optimizer, shoal_optimizer_words))         \
  X(SHOAL_SETTING_SCHEDULE, "schedule", KIND("schedule", schedule, shoal_schedule_words))              \
  X(SHOAL_SETTING_WARMUP, "warmup", REAL(NULL, "a number of epochs", warmup_epochs, 0, FROM_ZERO),     \
    U32("scale", "the batch that the rate is meant for", scale_batch, 0, 1, SHOAL_BATCH_MAX))          \
  X(SHOAL_SETTING_BATCH, "batch", U32(NULL, "the samples of a round", batch, 64, 1, SHOAL_BATCH_MAX))  \
  X(SHOAL_SETTING_EPOCHS, "epochs", U32(NULL, "the number of epochs", epochs, 10, 1, EPOCHS_MAX))      \
  X(SHOAL_SETTING_SEED, "seed", {SHOAL_FIELD(shoal_recipe, NULL, "a seed", U64, seed, 1)})             \
  X(SHOAL_SETTING_SHARDS, "shards", U32(NULL, "the parts of a batch", shards, 0, 0, SHOAL_SHARDS_MAX)) \
  X(SHOAL_SETTING_L2, "l2", REAL(NULL, "the factor", l2, 0, FROM_ZERO))                                \
  X(SHOAL_SETTING_CLIP, "clip", REAL(NULL, "the largest norm of a gradient", clip, 0, FROM_ZERO))      \
  X(SHOAL_SETTING_EARLY_STOP, "early-stop",                                                            \
    U32(NULL, "the epochs to wait for a better one", early_stop, 0, 0, EPOCHS_MAX))                    \
  X(SHOAL_SETTING_SHUFFLE, "shuffle", KIND("shuffle", shuffle, shuffle_words))                         \
  X(SHOAL_SETTING_AUGMENT, "augment", FLAG("flip", augment.flip),                                      \
    U32("crop", "the pixels to move by", augment.crop, 0, 1, SHOAL_AUGMENT_CROP_MAX))                  \
  X(SHOAL_SETTING_CLASS_WEIGHTS, "class-weights", {0})
typedef enum shoal_setting { SHOAL_EACH_SETTING(SHOAL_KIND_OF) SHOAL_SETTINGS } shoal_setting;

/* A model being read, with the places that later errors may have to name. */
typedef struct shoal_reading {
  shoal_words words;
  shoal_model *model;
  bool layers_only; /* of a body: what else a text may have is refused */
  uint64_t weights; /* so far, statistics of batch normalisation included */

  /* Of the current line; length 0 where not written. */
  shoal_word size; /* of the last argument: a window, a shape, how many numbers lookup takes */
  shoal_word options[SHOAL_OPTIONS];         /* the option's own word */
  shoal_word inputs[SHOAL_LAYER_INPUTS_MAX]; /* the names; [0] only with `from` */

  shoal_word settings[SHOAL_SETTINGS]; /* the line's first word, when there was one */
  shoal_word heads[SHOAL_LAYERS_MAX];  /* of every layer */
  bool used[SHOAL_LAYERS_MAX];         /* by a later layer */
} shoal_reading;

/* Other tables of words, in the order of their enums. */
extern const char *const shoal_pool_words[];
extern const char *const shoal_setting_words[];

/* model_settings.c */
void shoal_recipe_init(shoal_recipe *recipe);
/* The words after the setting's own, to the end of the line. */
bool shoal_read_setting(shoal_reading *r, shoal_setting setting);
void shoal_write_settings(const shoal_recipe *recipe, shoal_text *out);
/* Whether loss and class weights fit the net's output. */
bool shoal_check_loss(shoal_reading *r);

/* model.c, for the lines of operations: the layer's shape, "784", "1x28x28" or "sequence 20x8". */
bool shoal_read_shape(shoal_reading *r, shoal_layer *layer);
void shoal_write_shape(const shoal_layer *layer, shoal_text *out);

/* model_shapes.c: gives the layer, whose inputs and arguments are set, its shape, and
 * counts its weights. */
bool shoal_infer_layer(shoal_reading *r, shoal_layer *layer);
/* A shape read from the text: refused when it holds too many values. */
bool shoal_check_values(shoal_reading *r, shoal_word at, const shoal_shape *shape);
bool shoal_too_many_values(shoal_reading *r, shoal_word at, const char *text);
bool shoal_count_weights(shoal_reading *r, uint64_t more);
/* a * b * c * d, or more than SHOAL_VALUES_MAX where that is too large. */
uint64_t shoal_product(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/* How errors call input k: "'a'", or "the line above"; and its place: its name, or else the layer. */
shoal_phrase shoal_input_text(const shoal_reading *r, uint32_t k);
shoal_word shoal_input_place(const shoal_reading *r, uint32_t k);
/* "needs NEEDED, but the line above gives 1x28x28; ADVICE" */
bool shoal_wrong_input(shoal_reading *r, const shoal_shape *in, const char *needed, const char *advice);

#endif
