/* model_foreign.c: lines as people know them from Keras and PyTorch, said in the words of a model text.
 *
 * Used for the last half of error sentences only: a line that cannot be read, but is a call or a word of those
 * libraries, is answered with the line that was meant. One table has their names; a template says what
 * becomes of their arguments. Nothing here changes what a model text means. */
#include <stdio.h>
#include <string.h>

#include "nn/model_internal.h"

typedef enum kind {
  LAYER,
  RECURRENT,
  LOSS,
  OPTIMIZER,
  SETTING,
  RATE,    /* stands behind the optimiser, whichever that is */
  FLAG,    /* of shoal train */
  PROGRAM, /* code around the layers, which has no counterpart */
} kind;

/* A template is words and fields. A field is '$', a letter for what it takes, the argument's number, and its
 * names behind a colon. `?word` before a field makes both disappear where the argument is left out. Letters:
 * n a number, k a kind of pooling, w a window, s a stride, p a padding, a an activation, i an input's
 * shape; u, at the end, says nothing, for the argument can only be what it is here anyway (as_usual). Number 9 is
 * no place. The example is shown where the arguments cannot be translated. */
#define RATE_FIELD " ?rate $n9:lr|learning_rate|rate"
#define MOMENTUM_FIELD " ?momentum $n9:momentum"
#define BETA_FIELDS " ?beta1 $n9:beta_1|beta1 ?beta2 $n9:beta_2|beta2"
#define EPS_FIELD " ?eps $n9:epsilon|eps"
static const struct {
  kind kind;
  const char *theirs; /* names, with spaces between */
  const char *ours;   /* or NULL: only the example */
  const char *example;
} table[] = {
    /* PyTorch's names begin with their input's size; the row behind them is for those who leave it out. */
    {LAYER, "Linear", "dense $n1:out_features", "dense 128 relu"},
    {LAYER, "Dense LazyLinear fc fully_connected FullyConnected hidden output",
     "dense $n0:units|out_features", "dense 128 relu"},
    {LAYER, "Conv2d", "conv $n1:out_channels $w2:kernel_size ?stride $s3:stride ?pad $p4:padding|pad",
     "conv 20 5x5 relu"},
    {LAYER, "Conv2D Convolution2D LazyConv2d conv convolution",
     "conv $n0:filters|out_channels $w1:kernel_size|kernel ?stride $s2:strides|stride ?pad $p3:padding|pad",
     "conv 20 5x5 relu"},
    {LAYER, "MaxPool2d MaxPooling2D max_pool2d max_pool maxpool MaxPooling",
     "pool max $w0:kernel_size|pool_size ?stride $w1:stride|strides ?pad $p2:padding", "pool max 2x2"},
    {LAYER, "AvgPool2d AveragePooling2D avg_pool2d avg_pool avgpool AveragePooling",
     "pool average $w0:kernel_size|pool_size ?stride $w1:stride|strides ?pad $p2:padding",
     "pool average 2x2"},
    {LAYER, "pool", "pool $k0 $w1:kernel_size|pool_size ?stride $w2:stride|strides ?pad $p3:padding|pad",
     "pool max 2x2"},
    {LAYER,
     "GlobalAveragePooling2D GlobalAvgPool2D AdaptiveAvgPool2d AdaptiveAvgPool GlobalAveragePooling "
     "global_avg_pool global_average_pool",
     "global-pool average $u:output_size", NULL},
    {LAYER, "GlobalMaxPooling2D GlobalMaxPool2D AdaptiveMaxPool2d", "global-pool max $u:output_size", NULL},
    {LAYER, "Dropout Dropout1d Dropout2d SpatialDropout2D", "dropout $n0:p|rate", "dropout 0.5"},
    {LAYER, "BatchNorm1d BatchNorm2d BatchNormalization BatchNorm batch_norm bn", "batchnorm", NULL},
    {LAYER, "LayerNorm LayerNormalization layer_norm", "layernorm", NULL},
    {LAYER, "Flatten", "flatten", NULL},
    {LAYER, "Reshape Unflatten view", NULL, "reshape 3x8x8"},
    {LAYER, "Embedding", "embed $n0:num_embeddings|input_dim $n1:embedding_dim|output_dim",
     "embed 10000 200"},
    {RECURRENT, "LSTM", "lstm $n0:units|hidden_size", "lstm 200"},
    {RECURRENT, "GRU", "gru $n0:units|hidden_size", "gru 64"},
    {RECURRENT, "SimpleRNN RNN", "rnn $n0:units|hidden_size ? $a2:nonlinearity|activation", "rnn 64"},
    {LAYER, "RepeatVector", "repeat $n0:n", "repeat 8"},
    {LAYER, "Add", NULL, "add a"},
    {LAYER, "Concatenate cat", NULL, "concat a b"},
    {LAYER, "Input InputLayer input_shape", "input $i0:shape|input_shape", "input 1x28x28"},
    {LAYER, "ReLU", "relu", NULL},
    {LAYER, "Sigmoid", "sigmoid", NULL},
    {LAYER, "Tanh", "tanh", NULL},
    {LAYER, "Softmax LogSoftmax log_softmax", "softmax", NULL},
    {LAYER, "LeakyReLU leaky_relu", "leaky-relu $u:negative_slope", NULL},
    {LAYER, "ELU", "elu $u:alpha", NULL},
    {LAYER, "GELU", "gelu", NULL},
    {LAYER, "SiLU Swish", "silu", NULL},
    {LAYER, "Softplus", "softplus", NULL},
    {LAYER, "Identity", "identity", NULL},
    {LAYER, "Activation act nonlinearity", "$a0:activation", "relu"},
    {LOSS,
     "CrossEntropyLoss CategoricalCrossentropy categorical_crossentropy SparseCategoricalCrossentropy "
     "sparse_categorical_crossentropy crossentropy cross_entropy cross softmax ce NLLLoss nll_loss nll "
     "log_loss",
     "loss cross-entropy", NULL},
    {LOSS,
     "BCELoss BCEWithLogitsLoss bce bce_loss bce_with_logits binary_cross_entropy binary_crossentropy "
     "BinaryCrossentropy binary_cross_entropy_with_logits logistic",
     "loss binary-cross-entropy", NULL},
    {LOSS, "MSELoss mse mse_loss MeanSquaredError mean_squared_error mean_squared squared l2 L2Loss rmse",
     "loss mean-squared", NULL},
    {LOSS, "L1Loss mae l1 l1_loss MeanAbsoluteError mean_absolute_error mean_absolute absolute",
     "loss mean-absolute", NULL},
    {LOSS, "HuberLoss huber_loss Huber SmoothL1Loss smooth_l1 smooth_l1_loss",
     "loss huber ?delta $n9:delta|beta", NULL},
    {SETTING, "momentum", "optimizer momentum rate 0.01 momentum $n0",
     "optimizer momentum rate 0.01 momentum 0.9"},
    {OPTIMIZER, "SGD", "optimizer sgd" RATE_FIELD, "optimizer sgd rate 0.1"},
    {OPTIMIZER, "Momentum", "optimizer momentum" RATE_FIELD MOMENTUM_FIELD, "optimizer momentum rate 0.02"},
    {OPTIMIZER, "Nesterov", "optimizer nesterov" RATE_FIELD MOMENTUM_FIELD, "optimizer nesterov rate 0.02"},
    {OPTIMIZER, "Adam", "optimizer adam" RATE_FIELD BETA_FIELDS EPS_FIELD, "optimizer adam rate 0.001"},
    {OPTIMIZER, "NAdam RAdam Adamax", NULL, "optimizer adam rate 0.001"},
    {OPTIMIZER, "AdamW", "optimizer adamw" RATE_FIELD BETA_FIELDS EPS_FIELD, "optimizer adamw rate 0.001"},
    {OPTIMIZER, "RMSprop", "optimizer rmsprop" RATE_FIELD " ?beta2 $n9:alpha|rho|beta2" EPS_FIELD,
     "optimizer rmsprop rate 0.001"},
    {OPTIMIZER, "Adagrad", "optimizer adagrad" RATE_FIELD EPS_FIELD, "optimizer adagrad rate 0.01"},
    {RATE, "lr learning_rate", "rate $n0", "rate 0.1"},
    {SETTING, "batch_size bs batch", "batch $n0", "batch 64"},
    {SETTING, "num_epochs n_epochs max_epochs epoch epochs", "epochs $n0", "epochs 10"},
    {SETTING, "weight_decay wd l2_regularization l2", "l2 $n0", "l2 0.0001"},
    {SETTING, "patience EarlyStopping early_stopping", "early-stop $n0:patience", "early-stop 3"},
    {SETTING,
     "clip_grad_norm clip_grad_norm_ max_grad_norm gradient_clip gradient_clip_val grad_clip clipnorm "
     "clip_norm clip",
     "clip $n0:max_norm", "clip 1"},
    {SETTING, "manual_seed random_seed random_state set_seed set_random_seed seed", "seed $n0:seed",
     "seed 1"},
    {SETTING, "CosineAnnealingLR CosineDecay", "schedule cosine ?to $n9:eta_min", NULL},
    {SETTING, "StepLR", "schedule step every $n1:step_size ?factor $n2:gamma",
     "schedule step every 10 factor 0.1"},
    {SETTING, "ExponentialLR ExponentialDecay", "schedule exponential $n1:gamma",
     "schedule exponential 0.95"},
    {SETTING, "class_weight", NULL, "class-weights balanced"},
    {SETTING, "RandomFlip RandomHorizontalFlip", "augment flip", NULL},
    {SETTING, "RandomCrop", "augment crop $n9:padding", "augment crop 4"},
    {SETTING, "RandomTranslation data_augmentation ImageDataGenerator", NULL, "augment flip crop 4"},
    {FLAG, "validation_split val_split valid_split", "--valid $n0", "--valid 0.1"},
    {FLAG, "data dataset", NULL, "--data SET"},
    {PROGRAM, "Sequential Model compile fit import from class def forward return super backward", NULL, NULL},
};
enum {
  TABLE_COUNT = sizeof table / sizeof table[0],
  LINE_MAX_BYTES = 300,
  ARGUMENTS_MAX = 12,
  VALUE_MAX = 40
};
static const unsigned ALL_KINDS = ~0u;

/* Arguments that change nothing here: for any value, and for these values alone. */
static const char harmless[] =
    "name dtype device inplace dim axis start_dim inputs x input_shape input_dim in_features in_channels "
    "input_size num_features normalized_shape batch_first return_sequences batch_input_shape batch_size seed "
    "data_format input_length from_logits params T_max last_epoch verbose monitor restore_best_weights "
    "foreach fused num_layers bidirectional";
static const char as_usual[] =
    "groups=1 dilation=1 dilation=1x1 dilation_rate=1 dilation_rate=1x1 padding_mode=zeros ceil_mode=False "
    "return_indices=False count_include_pad=True output_size=1 output_size=1x1 negative_slope=0.01 alpha=1 "
    "negative_slope=1e-2 alpha=1.0 beta=1 approximate=none affine=True elementwise_affine=True center=True "
    "scale=True track_running_stats=True eps=1e-5 eps=1e-05 epsilon=1e-5 momentum=0.1 momentum=0 "
    "momentum=0.0 dampening=0 nesterov=False amsgrad=False centered=False maximize=False dropout=0 "
    "dropout=0.0 "
    "recurrent_dropout=0 activation=tanh recurrent_activation=sigmoid recurrent_initializer=orthogonal "
    "bias_initializer=zeros bias=True use_bias=True return_state=False go_backwards=False stateful=False "
    "unroll=False mask_zero=False sparse=False reduction=mean label_smoothing=0 label_smoothing=0.0 p=0.5 "
    "weight_decay=0 mode=min mode=max mode=auto min_delta=0 norm_type=2";

typedef struct argument {
  char key[VALUE_MAX], value[VALUE_MAX]; /* no key: by its place */
  const char *raw;                       /* the value as written */
  int raw_length;
  bool is_said; /* in the translation */
} argument;

/* The call that is translated. */
typedef struct call {
  int row;
  const char *name; /* as written */
  size_t name_length;
  bool is_called; /* with brackets */
  /* Something that no model text has: brackets, '=', commas, quotes, names of arguments, a window of one number,
   * another's word for an activation. */
  bool has_marks;
  argument arguments[ARGUMENTS_MAX];
  size_t count;
} call;

/* ---- names -------------------------------------------------------------------------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The row of a name, or -1. Letters may be large or small, but Conv2d is PyTorch's and Conv2D is Keras's, and
 * `add` without a capital is the method of a model. */
static int find_row(const char *name, size_t length, unsigned kinds) {
  for (int i = 0; i < TABLE_COUNT; i++) {
    if (!(kinds & 1u << table[i].kind) || !shoal_word_listed(table[i].theirs, name, length)) continue;
    bool is_other = (strcmp(table[i].theirs, "Conv2d") == 0 && name[length - 1] == 'D') ||
                    (strcmp(table[i].theirs, "Add") == 0 && name[0] == 'a');
    if (!is_other) return i;
  }
  return -1;
}

static const char *skip_spaces(const char *at) { return at + strspn(at, " \t"); }

/* ---- the call in a line ------------------------------------------------------------- */

/* A value without quotes, and a tuple as sizes: "(3, 3)" is "3x3". Answers where it ends. */
static const char *read_value(const char *at, bool in_brackets, char out[VALUE_MAX]) {
  size_t used = 0;
  int depth = 0;
  for (; *at; at++) {
    if (*at == '(' || *at == '[') depth++;
    if ((*at == ')' || *at == ']') && depth-- == 0) break;
    bool ends = depth == 0 && (*at == ',' || (!in_brackets && (*at == ' ' || *at == '\t')));
    if (ends) break;
    char c = *at == ',' ? 'x' : *at;
    if (!strchr(" \t'\"()[]", c) && used + 1 < VALUE_MAX) out[used++] = c;
  }
  if (used > 1 && out[used - 1] == 'x' && is_digit(out[used - 2])) used--; /* "(784,)" */
  out[used] = 0;
  return at;
}

/* The last name with a bracket behind it that is in the table and in no named argument, or else the first name of the
 * line. */
static bool find_call(call *c, const char *line, unsigned kinds) {
  c->row = -1;
  bool is_first = true;
  int depth = 0;
  for (const char *at = line; *at;) {
    size_t length = shoal_name_length(at);
    if (length == 0) {
      char unused[VALUE_MAX];
      depth += (*at == '(') - (*at == ')');
      at = *at == '=' && depth > 0 ? read_value(at + 1, true, unused) : at + 1;
      continue;
    }
    const char *behind = skip_spaces(at + length);
    bool is_called = *behind == '(';
    bool has_number = *behind == ':' && is_digit(*skip_spaces(behind + 1)); /* `dense: 10` */
    bool is_label = *behind == ':' && is_first && !has_number;
    bool is_before = *behind == '.' || is_label;
    /* A bare `mse` or `l2` is a loss where one is expected, or where it is the whole line. */
    bool is_loss =
        is_called || kinds != ALL_KINDS || (*behind == 0 && find_row(at, length, kinds & ~(1u << LOSS)) < 0);
    unsigned here = is_loss ? kinds : kinds & ~(1u << LOSS);
    int row = is_called || (is_first && !is_before) ? find_row(at, length, here) : -1;
    if (row >= 0) {
      *c = (call){
          .row = row, .name = at, .name_length = length, .is_called = is_called, .has_marks = is_called};
      if (table[row].kind == PROGRAM) return true;
    }
    if (!is_before) is_first = false;
    at += length;
  }
  return c->row >= 0;
}

/* Names of arguments that may stand before their value without '=', and those of them that are ours. */
static const char own_keys[] = "stride pad init from layers rate momentum beta1 beta2 eps";
static const char own_flags[] = "no-bias last bidirectional batch";
static const char bare_keys[] = "stride pad init from layers rate momentum beta1 beta2 eps betas activation "
                                "padding strides kernel kernel_size units filters lr learning_rate "
                                "weight_decay out_features out_channels hidden_size num_layers";

static void read_arguments(call *c) {
  const char *at = skip_spaces(c->name + c->name_length);
  bool in_brackets = *at == '(';
  if (*at == ':' || strpbrk(at, "()=,'\"[]")) c->has_marks = true;
  if (in_brackets || *at == '=' || *at == ':') at++;
  while (c->count < ARGUMENTS_MAX) {
    at += strspn(at, " \t,");
    if (*at == 0 || *at == ')' || *at == ']') return;
    argument *a = &c->arguments[c->count++];
    size_t length = shoal_name_length(at);
    const char *behind = skip_spaces(at + length);
    bool is_bare = !in_brackets && length > 0 && *behind != 0 && shoal_word_listed(bare_keys, at, length);
    if (length > 0 && length < VALUE_MAX && (*behind == '=' || is_bare)) {
      memcpy(a->key, at, length);
      at = skip_spaces(behind + (*behind == '='));
      if (!is_bare || !shoal_word_listed(own_keys, a->key, length)) c->has_marks = true;
    } else if (!in_brackets && length == 4 && memcmp(at, "same", length) == 0) { /* `conv 20 3x3 same` */
      memcpy(a->key, "padding", sizeof "padding");
      c->has_marks = true;
    }
    a->raw = at;
    at = read_value(at, in_brackets, a->value);
    a->raw_length = (int)(at - a->raw);
  }
}

/* ---- their arguments in our words --------------------------------------------------- */

static argument *find_argument(call *c, const char *keys) {
  for (size_t i = 0; i < c->count; i++)
    if (shoal_word_listed(keys, c->arguments[i].key, strlen(c->arguments[i].key))) return &c->arguments[i];
  return NULL;
}

static const char *named(call *c, const char *keys) {
  argument *a = find_argument(c, keys);
  if (a) a->is_said = true;
  return a ? a->value : NULL;
}

/* The value of a number's place, or of one of the names; NULL where it is left out. */
static const char *value_of(call *c, unsigned number, const char *keys) {
  const char *value = named(c, keys);
  for (size_t i = 0; !value && i < c->count && c->arguments[i].key[0] == 0; i++)
    if (i == number) value = c->arguments[i].value;
  return value;
}

static bool is_number(const char *value) {
  double number;
  return shoal_read_f64(value, strlen(value), &number) && number >= 0;
}

static bool is_bare_number(const call *c, size_t i) {
  return i < c->count && c->arguments[i].key[0] == 0 && is_number(c->arguments[i].value);
}

static void remove_argument(call *c, size_t i) {
  c->count--;
  memmove(c->arguments + i, c->arguments + i + 1, (c->count - i) * sizeof *c->arguments);
}

/* The argument that changes something and is not in the translation, or NULL. */
static const argument *find_unsaid(const call *c) {
  for (const argument *a = c->arguments; a < c->arguments + c->count; a++) {
    char pair[VALUE_MAX * 2];
    size_t length = (size_t)snprintf(pair, sizeof pair, "%s=%s", a->key, a->value), key = strlen(a->key);
    bool is_lost = key > 0 && !a->is_said && strcmp(a->value, "None") != 0;
    if (is_lost && !shoal_word_listed(harmless, a->key, key) && !shoal_word_listed(as_usual, pair, length))
      return a;
  }
  return NULL;
}

static bool is_pair(const char *value) {
  size_t first = strspn(value, "0123456789"),
         second = value[first] == 'x' ? strspn(value + first + 1, "0123456789") : 0;
  return first > 0 && second > 0 && value[first + 1 + second] == 0;
}

/* The word that is the value but for the case of its letters, or NULL. */
static const char *find_listed(const char *value, const char *const *words) {
  while (*words != NULL && !shoal_word_listed(*words, value, strlen(value))) words++;
  return *words;
}

static const char *find_activation(const char *value) {
  static const char *const others[][2] = {{"swish", "silu"}, {"linear", "identity"}, {"logistic", "sigmoid"}};
  const char *dot = strrchr(value, '.'); /* tf.nn.relu */
  if (dot) value = dot + 1;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (strcmp(value, others[i][0]) == 0) value = others[i][1];
  return find_listed(value, shoal_activation_words);
}

/* Keras puts the channels last. */
static bool put_shape(const char *value, char *out, size_t size) {
  unsigned a, b, c;
  char rest;
  int count = sscanf(value, "%6ux%6ux%6u%c", &a, &b, &c, &rest);
  if (count == 1 && value[strspn(value, "0123456789")] == 0)
    snprintf(out, size, "%u", a);
  else if (count == 2 && is_pair(value))
    snprintf(out, size, "1x%ux%u` or `input sequence %ux%u", a, b, a, b);
  else if (count == 3)
    snprintf(out, size, "%ux%ux%u", c < a ? c : a, c < a ? a : b, c < a ? b : c);
  else
    return false;
  return true;
}

/* What a field of the template says, or "" for what needs no saying; false where it cannot be said. */
static bool put_value(char letter, const char *value, char *out, size_t size) {
  bool is_one = is_number(value), is_size = is_one || is_pair(value);
  const char *pool = shoal_word_listed("avg mean", value, strlen(value)) ? "average" : value, *word;
  snprintf(out, size, "%s", value);
  switch (letter) {
  case 'n': return is_one;
  case 'w':
    if (is_one) snprintf(out, size, "%sx%s", value, value);
    return is_size;
  case 's':
    if (strcmp(value, "1") == 0 || strcmp(value, "1x1") == 0) out[0] = 0;
    return is_size;
  case 'p':
    if (strcmp(value, "valid") == 0 || strcmp(value, "0") == 0) out[0] = 0;
    return is_size || out[0] == 0 || strcmp(value, "same") == 0;
  case 'i': return put_shape(value, out, size);
  default:
    word = letter == 'a' ? find_activation(value) : find_listed(pool, shoal_pool_words);
    if (word) snprintf(out, size, "%s", word);
    return word != NULL;
  }
}

/* The first number gets the name that it has where names are given. */
static void give_name(call *c, const char *key) {
  for (argument *a = c->arguments; a < c->arguments + c->count; a++) {
    if (a->key[0] || !(is_number(a->value) || is_pair(a->value))) continue;
    memcpy(a->key, key, strlen(key) + 1);
    return;
  }
}

/* Fills a template; false where an argument is missing or cannot be said. */
static bool fill(call *c, const char *template, shoal_text *out) {
  char optional[VALUE_MAX] = ""; /* the word that disappears with the next field, and a space */
  bool is_optional = false;
  for (const char *at = template; *at; at += *at == ' ') {
    int length = (int)strcspn(at, " ");
    const char *space = out->length > 0 ? " " : "";
    if (at[0] == '?') {
      is_optional = true;
      snprintf(optional, sizeof optional, "%.*s%s", length - 1, at + 1, length > 1 ? " " : "");
    } else if (at[0] != '$') {
      shoal_text_addf(out, "%s%.*s", space, length, at);
    } else {
      char keys[VALUE_MAX * 2] = "", said[VALUE_MAX * 2] = "";
      if (at[1] == 'u') {
        give_name(c, at + 3);
        return true;
      }
      if (length > 4) snprintf(keys, sizeof keys, "%.*s", length - 4, at + 4);
      const char *value = value_of(c, (unsigned)(at[2] - '0'), keys);
      bool good = value ? put_value(at[1], value, said, sizeof said) : is_optional;
      if (value && !is_optional && strchr("wk", at[1])) /* `conv 20 5`, `pool avg 2x2`, `pool 2x2` */
        c->has_marks |= strcmp(value, said) != 0 || (at[1] == 'k' && is_digit(value[0]));
      if (!good && value && is_optional && find_activation(value)) { /* `conv 20 5 tanh` */
        good = true;
        said[0] = 0;
      }
      if (!good || (!said[0] && !is_optional)) return false;
      if (said[0]) shoal_text_addf(out, "%s%s%s", space, optional, said);
      is_optional = false;
      optional[0] = 0;
    }
    at += length;
  }
  return true;
}

static bool is_false(const char *value) { return value && (value[0] == 'F' || value[0] == 'f'); }
static bool is_true(const char *value) { return value && (value[0] == 'T' || value[0] == 't'); }

/* What many layers take: an activation, by name or among the others, and whether there is a bias. */
static void add_common(call *c, shoal_text *out) {
  if (is_false(named(c, "bias|use_bias"))) shoal_text_addf(out, " no-bias");
  for (size_t i = 0; i < c->count && table[c->row].kind == LAYER; i++) {
    argument *a = &c->arguments[i];
    bool may_be = a->key[0] == 0 || strcmp(a->key, "activation") == 0;
    const char *word = may_be ? find_activation(a->value) : NULL;
    if (!word) continue;
    a->is_said = true;
    if (word == shoal_activation_words[SHOAL_ACT_IDENTITY]) continue;
    if (!shoal_word_listed(word, a->value, strlen(a->value))) c->has_marks = true;
    shoal_text_addf(out, " %s", word);
    return;
  }
}

/* How the weights begin, and what is said in our words already. */
static void add_own(call *c, shoal_text *out) {
  for (size_t i = 0; i < c->count; i++) {
    argument *a = &c->arguments[i];
    bool is_init =
             shoal_word_listed("kernel_initializer embeddings_initializer init", a->key, strlen(a->key)),
         is_own = strcmp(a->key, "init") == 0 || strcmp(a->key, "from") == 0;
    const char *init = is_init ? shoal_init_meant(a->value, strlen(a->value)) : NULL;
    a->is_said |= init || is_own;
    if (init) shoal_text_addf(out, " init %s", init);
    if (is_own && !init) shoal_text_addf(out, " %s %s", a->key, a->value);
    if (is_own && is_bare_number(c, i + 1)) shoal_text_addf(out, " %s", c->arguments[i + 1].value);
    if (!a->key[0] && shoal_word_listed(own_flags, a->value, strlen(a->value)))
      shoal_text_addf(out, " %s", a->value);
  }
}

/* Keras adds the sum of squares to the loss, and not half of it: its factor is half of ours. */
static void add_regularizer(call *c, shoal_text *out) {
  argument *a = find_argument(c, "kernel_regularizer");
  const char *at = a ? a->value : "", *number = NULL;
  double factor;
  for (; *at; at++) /* `l2(0.01)`, `L2(l2=0.01)` */
    if ((*at == 'l' || *at == 'L') && at[1] == '2') number = at + 2;
  if (number) number += strspn(number, "l=");
  if (!number || strstr(a->value, "l1") || !shoal_read_f64(number, strlen(number), &factor)) return;
  a->is_said = true;
  shoal_text_addf(out, "` and `l2 %g", 2 * factor);
}

/* PyTorch's recurrent layers begin with their input's size, and give all steps; Keras's give the last alone. */
static bool fill_recurrent(call *c, const char *template, const char *line, shoal_text *out) {
  bool is_torch = is_bare_number(c, 1) || find_argument(c, "hidden_size|input_size");
  if (is_torch && c->arguments[0].key[0] == 0) remove_argument(c, 0);
  if (!fill(c, template, out)) return false;
  const char *layers = named(c, "num_layers|layers");
  if (!layers && is_torch && is_bare_number(c, 1)) layers = c->arguments[1].value;
  if (layers && is_number(layers)) shoal_text_addf(out, " layers %s", layers);
  if (strstr(line, "Bidirectional(") || is_true(named(c, "bidirectional")))
    shoal_text_addf(out, " bidirectional");
  if (c->is_called && !is_torch && !is_true(named(c, "return_sequences"))) shoal_text_addf(out, " last");
  return true;
}

/* The rate is a name's, or the first number: PyTorch's parameters stand before it. */
static bool fill_optimizer(call *c, shoal_text *out) {
  static const char *const lines[][2] = {{"weight_decay", "l2"}, {"clipnorm|global_clipnorm", "clip"}};
  bool is_sgd = strcmp(table[c->row].theirs, "SGD") == 0;
  if (!find_argument(c, "lr|learning_rate|rate")) give_name(c, "lr");
  if (is_sgd && !find_argument(c, "momentum")) give_name(c, "momentum");
  argument *betas = find_argument(c, "betas"), *momentum = is_sgd ? find_argument(c, "momentum") : NULL;
  char *second = betas ? strchr(betas->value, 'x') : NULL;
  if (second && c->count < ARGUMENTS_MAX) {
    argument *b = &c->arguments[c->count++];
    *b = *betas;
    snprintf(b->key, sizeof b->key, "beta2");
    snprintf(b->value, sizeof b->value, "%s", second + 1);
    snprintf(betas->key, sizeof betas->key, "beta1");
    *second = 0;
  }
  if (momentum && is_number(momentum->value) && strcmp(momentum->value, "0") != 0)
    c->row += is_true(named(c, "nesterov")) ? 2 : 1; /* the next rows */
  if (!fill(c, table[c->row].ours, out)) return false;
  for (int i = 0; i < 2; i++) {
    const char *value = named(c, lines[i][0]);
    if (value && is_number(value) && strcmp(value, "0") != 0)
      shoal_text_addf(out, "` and `%s %s", lines[i][1], value);
  }
  return true;
}

/* A shape without brackets of its own: `input (1, 28, 28)` and `input 28, 28`. */
static void join_shape(call *c) {
  char shape[VALUE_MAX] = "";
  size_t used = 0;
  for (size_t i = 0; i < c->count; i++) {
    const argument *a = &c->arguments[i];
    if (a->key[0] || !is_number(a->value)) return;
    used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%s", used ? "x" : "", a->value);
    if (used >= sizeof shape) return;
  }
  if (c->count < 2) return;
  memcpy(c->arguments[0].value, shape, sizeof shape);
  c->count = 1;
  c->has_marks = true;
}

/* Arguments of a layer that stand in another order than ours: `conv 5x5 20`, `dense relu 10`, and
 * `dense 784 10`, with the input's size before the outputs. */
static void put_in_order(call *c) {
  argument *first = &c->arguments[0], second = c->arguments[1];
  if (c->count < 2 || first->key[0] || second.key[0]) return;
  bool is_dense = strncmp(table[c->row].ours, "dense $n0", 9) == 0;
  bool is_turned = !is_pair(second.value) && (is_pair(first->value) || find_activation(first->value));
  if (is_turned) c->arguments[1] = *first;
  if (!is_turned && !(is_dense && is_number(first->value) && is_number(second.value))) return;
  *first = second;
  c->has_marks = true;
}

static bool translate(call *c, const char *line, shoal_text *out) {
  const char *ours = table[c->row].ours;
  if (!ours) return false;
  if (table[c->row].kind == OPTIMIZER) {
    if (is_bare_number(c, 0)) c->has_marks = true; /* `adam 0.001` */
    return fill_optimizer(c, out);
  }
  if (strncmp(ours, "input ", 6) == 0) join_shape(c);
  if (strncmp(ours, "dense", 5) == 0 || strncmp(ours, "conv", 4) == 0 || strncmp(ours, "pool $k", 7) == 0)
    put_in_order(c);
  if (!c->is_called && strncmp(ours, "conv $n0", 8) == 0 && is_bare_number(c, 1) && is_bare_number(c, 2)) {
    c->has_marks = true;
    if (strcmp(c->arguments[1].value, c->arguments[2].value) != 0) return false; /* `conv 1 20 5` */
    remove_argument(c, 2);
  }
  bool is_recurrent = table[c->row].kind == RECURRENT;
  if (is_recurrent ? !fill_recurrent(c, ours, line, out) : !fill(c, ours, out)) return false;
  if (is_recurrent || (table[c->row].kind == LAYER && strchr(ours, '$') && ours[0] != '$'))
    add_common(c, out);
  if (is_recurrent || table[c->row].kind == LAYER) add_own(c, out);
  add_regularizer(c, out);
  return true;
}

const char *shoal_init_meant(const char *word, size_t length) {
  static const shoal_synonyms meant[] = {
      {"he", "he he_normal HeNormal he_uniform HeUniform"},
      {"he", "kaiming kaiming_normal kaiming_normal_ kaiming_uniform kaiming_uniform_"},
      {"xavier", "xavier xavier_normal xavier_normal_ xavier_uniform xavier_uniform_"},
      {"xavier", "glorot glorot_normal GlorotNormal glorot_uniform GlorotUniform"},
      {"lecun", "lecun lecun_normal LecunNormal lecun_uniform LecunUniform"},
      {"zero", "zero zeros"},
      {"normal 0.05", "random_normal"},
      {"uniform 0.05", "random_uniform"},
  };
  for (const char *dot; (dot = memchr(word, '.', length)) != NULL; word = dot + 1) /* tf.initializers.Zeros */
    length -= (size_t)(dot + 1 - word);
  for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++)
    if (shoal_word_listed(meant[i].theirs, word, length)) return meant[i].ours;
  return NULL;
}

/* ---- the whole ---------------------------------------------------------------------- */

/* What a line may hold, by the word that it begins with. */
static unsigned kinds_of(const char *head, size_t length) {
  if (shoal_word_listed("loss criterion", head, length)) return 1u << LOSS;
  if (shoal_word_listed("optimizer optim", head, length)) return 1u << OPTIMIZER;
  return ALL_KINDS;
}

shoal_phrase shoal_words_foreign(const shoal_words *w) {
  shoal_phrase out = {""};
  size_t length = w->line_start ? (size_t)(w->line_end - w->line_start) : 0;
  if (length == 0 || length >= LINE_MAX_BYTES) return out;
  char line[LINE_MAX_BYTES];
  memcpy(line, w->line_start, length);
  line[length] = 0;
  const char *head = skip_spaces(line), *flag = w->is_flag ? w->name + strspn(w->name, "-") : NULL;
  size_t head_length = shoal_name_length(head);
  unsigned kinds = flag ? kinds_of(flag, strlen(flag)) : kinds_of(head, head_length);
  if (flag && kinds == ALL_KINDS) return out;
  bool has_head = !flag && kinds != ALL_KINDS;
  call c;
  if (!find_call(&c, has_head ? head + head_length : head, kinds)) return out;
  if (table[c.row].kind == PROGRAM) {
    snprintf(out.text, sizeof out.text,
             "a model is a text and not a program: one layer a line, from `input 1x28x28` to `loss "
             "cross-entropy`");
    return out;
  }
  if (has_head) { /* `loss: mse`, `Loss cross-entropy` */
    const char *own = kinds == 1u << LOSS ? "loss" : "optimizer";
    if (strcspn(head, " \t") != strlen(own) || strncmp(head, own, strlen(own)) != 0) c.has_marks = true;
  }
  read_arguments(&c);
  shoal_text ours = {0};
  bool good = translate(&c, line, &ours);
  if (!good && !c.is_called &&
      shoal_word_listed("Linear Conv2d", table[c.row].theirs, strlen(table[c.row].theirs))) {
    c.row++;
    shoal_text_clear(&ours);
    good = translate(&c, line, &ours);
  }
  const char *meant = good && !ours.failed ? ours.bytes : table[c.row].example;
  const char *word = meant && (has_head || flag) ? strchr(meant, ' ') + 1 : meant;
  /* A name that is ours as well, with nothing foreign behind it, is a mistake of another kind. */
  bool is_same = meant && strcspn(word, " ") == c.name_length && strncmp(c.name, word, c.name_length) == 0;
  bool is_told = meant && (c.has_marks || !is_same);
  const argument *unsaid = good ? find_unsaid(&c) : NULL;
  const char *format = table[c.row].kind == FLAG   ? "give `%s` to shoal train"
                       : table[c.row].kind == RATE ? "write `%s` behind the name on the `optimizer` line"
                       : good                      ? "write `%s`"
                                                   : "write a line like `%s`";
  /* Without a regularizer the network is the same. */
  if (is_told && (!unsaid || strstr(unsaid->key, "regularizer")))
    snprintf(out.text, sizeof out.text, format, flag ? word : meant);
  if (is_told && unsaid) {
    length = strlen(out.text);
    const char *owner =
        table[c.row].kind == LOSS || table[c.row].kind == OPTIMIZER ? strchr(meant, ' ') + 1 : meant;
    snprintf(out.text + length, sizeof out.text - length, "%s`%.*s` has no `%s=%.*s`", length ? "; " : "",
             (int)strcspn(owner, " `"), owner, unsaid->key, unsaid->raw_length, unsaid->raw);
  }
  shoal_text_release(&ours);
  return out;
}
