/* topology.c: see topology.h. */
#include "search/topology.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "nn/model.h"

static const double NARROWEST = 0.25; /* of the widest layer */
static const double WARMUP = 0.05;    /* of all epochs */

/* What a trial's layers have in common. */
typedef struct style {
  const char *normalise; /* "batchnorm", "layernorm" or NULL */
  double dropout;
} style;

/* ---- widths ------------------------------------------------------------------------- */

/* How wide layer i of n is, as a share of the widest. */
static double share_of(shoal_net_shape shape, uint32_t i, uint32_t n) {
  double place = n > 1 ? (double)i / (n - 1) : 0;       /* 0 at the first layer, 1 at the last */
  double from_middle = n > 1 ? fabs(2 * place - 1) : 0; /* 1 at both ends */
  /* With an even number of layers the two in the middle are the widest, or the narrowest. */
  double inner = n > 2 && n % 2 == 0 ? 1.0 / (n - 1) : 0;
  from_middle = (from_middle - inner) / (1 - inner);
  switch (shape) {
  case SHOAL_FUNNEL: return 1 - place * (1 - NARROWEST);
  case SHOAL_TRIANGLE: return NARROWEST + place * (1 - NARROWEST);
  case SHOAL_DIAMOND:
    if (n == 2) return i == 0 ? NARROWEST : 1; /* there is no other way to be narrow, then wide */
    return 1 - from_middle * (1 - NARROWEST);
  case SHOAL_HOURGLASS:
    if (n == 2) return i == 0 ? 1 : NARROWEST;
    return NARROWEST + from_middle * (1 - NARROWEST);
  case SHOAL_STAIRS: {
    double stairs = (n - 1) / 2;
    return stairs > 0 ? 1 - (i / 2) / stairs * (1 - NARROWEST) : 1;
  }
  default: return 1;
  }
}

uint32_t shoal_topology_widths(shoal_net_shape shape, uint32_t layers, uint32_t width,
                               uint32_t out[SHOAL_HIDDEN_MAX]) {
  SHOAL_ASSERT(layers >= 1 && layers <= SHOAL_HIDDEN_MAX && width >= 1);
  for (uint32_t i = 0; i < layers; i++) {
    double share = layers > 1 ? share_of(shape, i, layers) : 1;
    out[i] = (uint32_t)fmax(1, floor(width * share + 0.5));
  }
  return layers;
}

/* ---- layers ------------------------------------------------------------------------- */

static void add_dropout(const style *s, shoal_text *out) {
  if (s->dropout > 0) shoal_text_addf(out, "dropout %.9g\n", s->dropout);
}

static void add_plain(const style *s, uint32_t width, const char *activation, shoal_text *out) {
  if (s->normalise != NULL)
    shoal_text_addf(out, "dense %u\n%s\n%s\n", width, s->normalise, activation);
  else
    shoal_text_addf(out, "dense %u %s\n", width, activation);
  add_dropout(s, out);
}

/* Block i: what comes in, plus what two layers make of it. The line before it is named `from`. */
static void add_block(const style *s, uint32_t i, uint32_t width, const char *activation, const char *from,
                      shoal_text *out) {
  if (s->normalise != NULL) shoal_text_addf(out, "%s\n", s->normalise);
  shoal_text_addf(out, "dense %u %s\n", width, activation);
  add_dropout(s, out);
  shoal_text_addf(out, "dense %u\nblock%u: add %s\n", width, i, from);
}

static void add_residual(const style *s, const uint32_t *widths, uint32_t layers, const char *activation,
                         shoal_text *out) {
  char from[32];
  for (uint32_t i = 0; i < layers; i++) {
    snprintf(from, sizeof from, "block%u", i);
    if (i == 0 || widths[i] != widths[i - 1]) {
      snprintf(from, sizeof from, "way%u", i + 1);
      shoal_text_addf(out, "%s: dense %u\n", from, widths[i]);
    }
    add_block(s, i + 1, widths[i], activation, from, out);
  }
  if (s->normalise != NULL) shoal_text_addf(out, "%s\n", s->normalise);
  shoal_text_addf(out, "%s\n", activation);
}

static uint32_t whole(const shoal_space *space, const shoal_values *values, shoal_setting_id id) {
  return (uint32_t)shoal_values_number(space, values, id);
}

static void add_hidden(const shoal_space *space, const shoal_values *values, shoal_text *out) {
  static const char *const normalise[] = {NULL, "batchnorm", "layernorm"};
  style s = {.normalise = normalise[shoal_values_choice(space, values, SHOAL_SET_NORMALISE)],
             .dropout = shoal_values_number(space, values, SHOAL_SET_DROPOUT)};
  if (space->topologies_count > 0) {
    shoal_plain_layer plain[SHOAL_HIDDEN_MAX];
    uint32_t count = shoal_space_layers(space, (uint32_t)values->of[SHOAL_SET_TOPOLOGY], plain);
    for (uint32_t i = 0; i < count; i++) add_plain(&s, plain[i].width, plain[i].activation, out);
    return;
  }
  uint32_t widths[SHOAL_HIDDEN_MAX];
  shoal_net_shape shape = (shoal_net_shape)shoal_values_choice(space, values, SHOAL_SET_SHAPE);
  uint32_t layers = shoal_topology_widths(shape, whole(space, values, SHOAL_SET_LAYERS),
                                          whole(space, values, SHOAL_SET_WIDTH), widths);
  const char *activation = shoal_values_word(space, values, SHOAL_SET_ACTIVATION);
  if (shoal_values_choice(space, values, SHOAL_SET_RESIDUAL))
    add_residual(&s, widths, layers, activation, out);
  else
    for (uint32_t i = 0; i < layers; i++) add_plain(&s, widths[i], activation, out);
}

/* ---- the whole ---------------------------------------------------------------------- */

shoal_encoding_choice shoal_topology_encoding(const shoal_space *space, const shoal_values *values) {
  shoal_encoding_choice choice = {
      .numbers = (shoal_number_way)shoal_values_choice(space, values, SHOAL_SET_NUMBERS),
      .categories = (shoal_category_way)shoal_values_choice(space, values, SHOAL_SET_CATEGORIES)};
  if (choice.numbers == SHOAL_PIECES) choice.pieces = whole(space, values, SHOAL_SET_PIECES);
  return choice;
}

static void add_recipe(const shoal_space *space, const shoal_values *values, const shoal_topology_io *io,
                       shoal_text *out) {
  uint64_t most = io->rows / 4 > 0 ? io->rows / 4 : 1;
  uint32_t batch = whole(space, values, SHOAL_SET_BATCH);
  shoal_text_addf(out, "optimizer %s rate %.9g\n", shoal_values_word(space, values, SHOAL_SET_OPTIMIZER),
                  shoal_values_number(space, values, SHOAL_SET_RATE));
  shoal_text_addf(out, "l2 %.9g\n", shoal_values_number(space, values, SHOAL_SET_DECAY));
  shoal_text_addf(out, "schedule cosine\nwarmup %.9g\n", WARMUP * io->epochs);
  shoal_text_addf(out, "batch %u\nepochs %u\nseed %llu\n", batch < most ? batch : (uint32_t)most, io->epochs,
                  (unsigned long long)io->seed);
  if (io->problem != SHOAL_REGRESSION && shoal_values_choice(space, values, SHOAL_SET_BALANCE))
    shoal_text_addf(out, "class-weights balanced\n");
}

shoal_status shoal_topology_write(const shoal_space *space, const shoal_values *values,
                                  const shoal_topology_io *io, shoal_text *out, shoal_error *err) {
  SHOAL_ASSERT(io->inputs > 0 && io->epochs > 0 && io->lookups <= io->inputs);
  bool number = io->problem == SHOAL_REGRESSION;
  shoal_text_addf(out, "input %u\n", io->inputs);
  if (io->lookups > 0) {
    bool chosen = shoal_values_matter(space, values, SHOAL_SET_EMBEDDING);
    uint32_t learned = chosen ? whole(space, values, SHOAL_SET_EMBEDDING) : SHOAL_EMBEDDING_USUAL;
    shoal_text_addf(out, "lookup %u %u of %u\n", io->vocabulary, learned, io->lookups);
  }
  add_hidden(space, values, out);
  shoal_text_addf(out, "dense %u\nloss %s\n", number ? 1 : io->classes,
                  number ? "mean-squared" : "cross-entropy");
  add_recipe(space, values, io, out);
  if (out->failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory while writing a network's text");
  return SHOAL_OK;
}
