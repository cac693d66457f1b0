/* model.h: a network and how to train it, as a person writes it: one layer a line.
 *
 *   # comment
 *   input  1x28x28                      image (channels x height x width)
 *   input  784                          vector
 *   input  sequence 20x8                20 steps of 8 features
 *   input  tokens 20 [carry]            20 token numbers; carry: recurrent state goes on
 *                                       from batch to batch (a continuous text)
 *   [NAME:] LAYER ARGUMENTS... [ACTIVATION] [from NAME]
 *
 *   dense N [no-bias] [init I]          last axis of vector or sequence; flattens an image
 *   conv N KHxKW [stride S|SHxSW] [pad P|PHxPW|same] [no-bias] [init I]
 *   pool max|min|average KHxKW [stride S|SHxSW] [pad P|PHxPW]   stride defaults to the window
 *   global-pool max|min|average         image -> vector of channels
 *   flatten                             anything -> vector
 *   reshape N | CxHxW | sequence TxF    same number of values
 *   embed V N [init I]                  tokens -> sequence; V words, N values each
 *   lookup V N of C [init I]            directly below a vector's input, whose last C values are
 *                                       numbers of rows, 0 to V - 1: the others as they are, then N
 *                                       learned values for each of the C. All else counts as 0
 *   rnn|lstm|gru N [layers K] [bidirectional] [last] [init I]
 *                                       sequence -> sequence, or vector with last
 *   repeat T                            vector -> sequence of T equal steps
 *   dropout P
 *   batchnorm [batch] | layernorm       batch: over the whole batch, which is one shard then
 *   add NAME...                         the line above (or `from`) plus the named lines
 *   concat NAME...                      the line above, then the named ones, along channels/features
 *   an activation alone                 identity sigmoid tanh relu leaky-relu elu gelu silu softplus softmax
 *
 *   loss cross-entropy|binary-cross-entropy|mean-squared|mean-absolute|huber [delta D] [sum-steps]
 *   optimizer sgd|momentum|nesterov|adagrad|rmsprop|adam|adamw [rate R] [momentum M] [beta1 B]
 *             [beta2 B] [eps E]
 *   schedule constant | step [from E] [every N] [factor F] | exponential F | cosine [to R]
 *   warmup EPOCHS [scale BATCH]         scale: the linear scaling rule, rate *= batch / BATCH
 *   batch N    epochs N    seed N    shards N    l2 X    clip NORM    early-stop PATIENCE
 *   shuffle all | lanes                 lanes: a part of the rounds keeps to its part of the data
 * (data/lanes.h)
 *   augment none | [flip] [crop N]      images of training: mirrored, moved by up to N pixels, at random
 *   class-weights balanced | W0 W1 ...
 *
 * Where an activation is given on a layer's line it is applied last; rnn's is its own,
 * tanh or relu. An initialiser is zero, normal S, uniform S, xavier, he or lecun; without
 * one it follows the activation. Options stand in any order after the arguments. `from`,
 * add and concat refer to names of earlier lines; every layer's output must be used.
 * Layers stand between input and loss, settings anywhere, each at most once.
 *
 * Ownership: parse gives a model that the caller destroys; everything in it lives as
 * long as it does. Threads: read-only after set-up. */
#ifndef SHOAL_NN_MODEL_H
#define SHOAL_NN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"
#include "kernels/kernels.h"

enum {
  SHOAL_LAYERS_MAX = 1024,
  SHOAL_LAYER_INPUTS_MAX = 16,
  SHOAL_CLASS_WEIGHTS_MAX = 1024,
  SHOAL_AUGMENT_CROP_MAX = 1024,
  SHOAL_MODEL_BYTES_MAX = 1 << 20,
  SHOAL_BATCH_MAX = 1 << 24,
  SHOAL_SHARDS_MAX = 256,          /* each has a gradient of its own */
  SHOAL_LOOKUP_ROWS_MAX = 1 << 24, /* floats hold every number below it */
};
/* More values than this in one tensor of one sample, or in all weights, is refused. */
#define SHOAL_VALUES_MAX ((uint64_t)1 << 31)

typedef enum shoal_shape_kind { SHOAL_VECTOR, SHOAL_IMAGE, SHOAL_SEQUENCE, SHOAL_TOKENS } shoal_shape_kind;

/* The shape of one sample. VECTOR: features. IMAGE: c, h, w. SEQUENCE: steps of
 * features. TOKENS: steps of one number each. Fields that do not apply are 1, so
 * steps * features * c * h * w is always the number of values. */
typedef struct shoal_shape {
  shoal_shape_kind kind;
  uint32_t steps, features, c, h, w;
} shoal_shape;

shoal_shape shoal_vector_of(uint64_t features);
shoal_shape shoal_sequence_of(uint32_t steps, uint32_t features);
uint64_t shoal_shape_values(const shoal_shape *shape);
/* The channels of an image, the features of anything else. */
static inline uint32_t shoal_shape_channels(const shoal_shape *shape) {
  return shape->kind == SHOAL_IMAGE ? shape->c : shape->features;
}
bool shoal_shape_equal(const shoal_shape *a, const shoal_shape *b);
/* The shape's sizes in the order in which shoal_shape_text writes them; returns how many. */
enum { SHOAL_SHAPE_DIMS_MAX = 3 };
uint32_t shoal_shape_dims(const shoal_shape *shape, int64_t out[SHOAL_SHAPE_DIMS_MAX]);
enum { SHOAL_SHAPE_TEXT_MAX = 64 };
/* "1x28x28", "784", "sequence 20x8", "tokens 20". Returns out. */
const char *shoal_shape_text(const shoal_shape *shape, char out[SHOAL_SHAPE_TEXT_MAX]);

typedef enum shoal_init_kind {
  SHOAL_INIT_AUTO, /* he before relu, leaky-relu, elu, gelu, silu; lecun-uniform for embed, lookup
                      and recurrent nets (1/sqrt(width)); xavier-uniform else */
  SHOAL_INIT_ZERO,
  SHOAL_INIT_NORMAL,
  SHOAL_INIT_UNIFORM,
  SHOAL_INIT_XAVIER,
  SHOAL_INIT_HE,
  SHOAL_INIT_LECUN,
} shoal_init_kind;

struct shoal_op; /* nn/op.h */

typedef struct shoal_layer {
  const struct shoal_op *op;
  const char *name; /* as written, or made from the op and a count: "conv2" */
  bool named;       /* by the person */
  uint32_t line;    /* in the text, from 1 */
  uint32_t inputs_count;
  uint32_t inputs[SHOAL_LAYER_INPUTS_MAX]; /* indices of earlier layers */
  shoal_shape shape;                       /* of the output */
  shoal_activation activation;             /* applied last; IDENTITY when none. rnn: its own */
  uint32_t units;      /* dense, conv, embed, rnn, lstm, gru: outputs; lookup: of a row; repeat: steps */
  uint32_t vocabulary; /* embed, lookup: rows of the table */
  uint32_t columns;    /* lookup: how many of the input's last values are numbers of rows */
  uint32_t stack;      /* rnn, lstm, gru: layers, at least 1 */
  bool bidirectional, last, bias;
  bool whole_batch; /* batchnorm */
  shoal_pool_kind pool;
  shoal_window window; /* conv, pool; lanes is left 0 */
  float rate;          /* dropout */
  shoal_init_kind init;
  float init_scale; /* for NORMAL and UNIFORM */
} shoal_layer;

typedef enum shoal_loss_kind {
  SHOAL_CROSS_ENTROPY,
  SHOAL_BINARY_CROSS_ENTROPY,
  SHOAL_MEAN_SQUARED,
  SHOAL_MEAN_ABSOLUTE,
  SHOAL_HUBER,
} shoal_loss_kind;

typedef enum shoal_schedule_kind {
  SHOAL_SCHEDULE_CONSTANT,
  SHOAL_SCHEDULE_STEP,        /* from epoch `from` (counted from 1): factor^(1 + (epoch - from) / every) */
  SHOAL_SCHEDULE_EXPONENTIAL, /* factor^(epoch - 1) */
  SHOAL_SCHEDULE_COSINE,      /* from the rate to `to` over all rounds */
} shoal_schedule_kind;

/* How to train. From the text, then changed by flags. */
typedef enum shoal_shuffle_kind { SHOAL_SHUFFLE_ALL, SHOAL_SHUFFLE_LANES } shoal_shuffle_kind;

/* What is done to images at random while they are trained on (data/augment.h). */
typedef struct shoal_augment {
  bool flip;
  uint32_t crop; /* pixels, in each direction; 0 is off */
} shoal_augment;

typedef struct shoal_recipe {
  shoal_loss_kind loss;
  float huber_delta; /* 1 */
  bool sum_steps;    /* sequences: sum the loss over the steps, not its mean */

  shoal_update_kind optimizer; /* sgd */
  float rate;                  /* 0 when not given: then what is usual for the optimiser */
  float momentum, beta2, eps;  /* 0 where it has none (nn/optimizer.h); beta1 is in momentum */
  float l2;                    /* 0; on weights, never on biases and normalisation */

  shoal_schedule_kind schedule;
  uint32_t schedule_from, schedule_every; /* step: 1, 1 */
  float schedule_factor;                  /* step 0.1; exponential */
  float schedule_to;                      /* cosine: 0 */
  float warmup_epochs;                    /* 0 */
  uint32_t scale_batch;                   /* linear scaling rule; 0 is off */

  uint32_t batch;      /* 64 */
  uint32_t epochs;     /* 10 */
  uint64_t seed;       /* 1 */
  uint32_t shards;     /* 0: chosen from batch and model alone */
  float clip;          /* gradient norm; 0 is off */
  uint32_t early_stop; /* epochs without improvement; 0 is off */
  shoal_shuffle_kind shuffle;
  shoal_augment augment;
  bool class_weights_balanced;
  uint32_t class_weights_count;
  float class_weights[SHOAL_CLASS_WEIGHTS_MAX];
} shoal_recipe;

typedef struct shoal_model {
  uint32_t layers_count;
  shoal_layer *layers; /* layers[0] is the input, the last one feeds the loss */
  bool carry;          /* recurrent state goes on from batch to batch */
  shoal_recipe recipe;
  bool rate_set;      /* by shoal_model_set: another optimizer keeps it */
  shoal_arena memory; /* of the layers and their names */
} shoal_model;

/* `name` is what errors call the text: "lenet5.net:3:8: ...". */
shoal_status shoal_model_parse(shoal_model **out, const char *name, const char *text, size_t length,
                               shoal_error *err);
/* A body: layers alone, which stand between the lines `input` and `output` that the caller has. Errors count
 * lines in the body; what is no layer is refused there. */
shoal_status shoal_model_parse_body(shoal_model **out, const char *name, const char *input, const char *body,
                                    const char *output, shoal_error *err);
shoal_status shoal_model_load(shoal_model **out, const char *path, shoal_error *err);
void shoal_model_destroy(shoal_model *model);

/* Changes one setting as a line of the text would: set(model, "optimizer", "adam rate 0.01"),
 * set(model, "epochs", "6"), and set(model, "rate", "0.1") for the rate alone. What an
 * optimizer line does not say takes that optimiser's default, except a rate set alone.
 * Errors call the place by `where`, such as "--epochs"; after one the model is unchanged. */
shoal_status shoal_model_set(shoal_model *model, const char *where, const char *key, const char *value,
                             shoal_error *err);

/* The model as text that parses to the same model, line numbers aside: for checkpoints. */
void shoal_model_write(const shoal_model *model, shoal_text *out);

/* The words of the smallest embedding that the tokens go into: the most that data may have.
 * 0 for a model without one. */
uint32_t shoal_model_vocabulary(const shoal_model *model);
/* True if a layer computes with the whole batch of a round, which is then one shard of at most SHOAL_FETCH_MAX samples. */
bool shoal_model_takes_whole_batch(const shoal_model *model);

/* The rate before schedule, warm-up and scaling: the recipe's, or its optimiser's default. */
float shoal_recipe_rate(const shoal_recipe *recipe);
/* The rate of a round, everything included; the same bits on every machine. epoch and
 * round count from 0; rounds are those of an epoch. */
float shoal_recipe_rate_at(const shoal_recipe *recipe, uint64_t epoch, uint64_t round, uint64_t rounds);

/* The names as they stand in the text, in the order of their enum and with a NULL behind them. */
extern const char *const shoal_activation_words[];
extern const char *const shoal_loss_words[];
extern const char *const shoal_optimizer_words[];
extern const char *const shoal_schedule_words[];
enum { SHOAL_ACTIVATION_WORDS = SHOAL_ACT_SOFTMAX + 1 };

#endif
