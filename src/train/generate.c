/* generate.c: a text model writes on, one token at a time.
 *
 * The model is parsed again with an input of one token that carries its state, so that a step costs the
 * same however long the text has become. */
#include "train/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "nn/trainer.h"
#include "train/metric.h"

enum { PROMPT_TOKENS_MAX = 1 << 16 };

typedef struct writer {
  const shoal_generate_model *from;
  const shoal_generate_options *options;
  void (*write)(void *context, const char *text, size_t length);
  void *context;
  bool words;   /* words with spaces between, or characters as they come */
  bool in_line; /* something stands on this line */
} writer;

/* ---- the model, one step at a time -------------------------------------------------- */

/* The same model with `input tokens 1 carry` for its first line. */
static shoal_status one_step_model(shoal_model **out, const shoal_generate_model *from, shoal_error *err) {
  const shoal_model *model = from->graph->model;
  *out = NULL;
  for (uint32_t l = 0; l < model->layers_count; l++) {
    if (model->layers[l].bidirectional)
      return shoal_fail(err, SHOAL_INVALID,
                        "%s cannot write text: layer '%s' is bidirectional and would have to see the words "
                        "to come",
                        from->name, model->layers[l].name);
  }
  /* What was the first line becomes the new one's comment. */
  const shoal_layer *input = &model->layers[0];
  shoal_text text = {0};
  shoal_text_addf(&text, "%s%sinput tokens 1 carry # ", input->named ? input->name : "",
                  input->named ? ": " : "");
  shoal_model_write(model, &text);
  shoal_status status = text.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                    : shoal_model_parse(out, from->name, text.bytes, text.length, err);
  if (status != SHOAL_OK && !text.failed) shoal_error_prefix(err, "cannot write text one token at a time: ");
  shoal_text_release(&text);
  return status;
}

/* A source of one sample: the token that `self` points at. */
static void fetch_token(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                        const shoal_batch *into) {
  (void)epoch, (void)first, (void)n;
  if (into->tokens) *into->tokens = *(const int32_t *)self;
  if (into->labels) *into->labels = 0;
  if (into->weight) *into->weight = 1;
  if (into->ids) *into->ids = 0;
}

/* ---- choosing words ----------------------------------------------------------------- */

/* Draws with probabilities raised to the power 1 / temperature. They are divided by the
 * largest first, so that a low temperature cannot make all of them vanish. */
static uint32_t draw(const float *probability, uint32_t count, double temperature, double uniform) {
  uint32_t best = shoal_likeliest(probability, count);
  if (temperature <= 0 || !(probability[best] > 0)) return best;
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += pow(probability[i] / probability[best], 1 / temperature);
  double left = uniform * sum;
  for (uint32_t i = 0; i < count; i++) {
    left -= pow(probability[i] / probability[best], 1 / temperature);
    if (left < 0) return i;
  }
  return best;
}

/* ---- writing ------------------------------------------------------------------------ */

static bool has_words(const shoal_dataset *vocabulary) {
  for (uint32_t i = 0; i < shoal_dataset_classes(vocabulary); i++) {
    const char *name = shoal_dataset_class_name(vocabulary, i);
    if (name && strcmp(name, "<eos>") == 0) return true;
  }
  return false;
}

static void write_token(writer *w, int32_t token) {
  const char *name = shoal_dataset_class_name(w->from->vocabulary, (uint32_t)token);
  if (!name) return;
  if (w->words && strcmp(name, "<eos>") == 0) {
    w->write(w->context, "\n", 1);
    w->in_line = false;
    return;
  }
  if (w->words && w->in_line) w->write(w->context, " ", 1);
  w->write(w->context, name, strlen(name));
  w->in_line = true;
}

/* ---- the whole ---------------------------------------------------------------------- */

/* A model may give more values than there are words: those beyond are never chosen. */
static shoal_status write_on(writer *w, shoal_trainer *trainer, const shoal_graph *graph,
                             const int32_t *prompt, size_t prompt_count, shoal_error *err) {
  float *probability = malloc(shoal_graph_output(graph)->features * sizeof *probability);
  if (!probability) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  int32_t token = prompt[0];
  uint32_t words = shoal_dataset_classes(w->from->vocabulary);
  shoal_source source = {.self = &token, .samples = 1, .fetch = fetch_token};
  shoal_key key = shoal_key_make(w->options->seed, SHOAL_FOR_SAMPLING, 0, 0);
  shoal_trainer_reset_carry(trainer);
  for (uint64_t i = 0; i + 1 < prompt_count + w->options->length; i++) {
    write_token(w, token);
    shoal_trainer_predict(trainer, &source, 0, 1, probability);
    if (i + 1 < prompt_count)
      token = prompt[i + 1];
    else
      token = (int32_t)draw(probability, words, w->options->temperature, shoal_random_uniform(key, i));
  }
  write_token(w, token);
  if (w->in_line) w->write(w->context, "\n", 1);
  free(probability);
  return SHOAL_OK;
}

static shoal_status check_words(const shoal_generate_model *from, const shoal_graph *graph,
                                shoal_error *err) {
  uint32_t words = shoal_dataset_classes(from->vocabulary), known = shoal_model_vocabulary(graph->model);
  uint32_t outputs = shoal_graph_output(graph)->features;
  if (outputs >= words && known >= words) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "%s cannot write text: its data has %u words, but the model takes %u and gives %u values",
                    from->name, words, known, outputs);
}

shoal_status shoal_generate(const shoal_generate_model *from, const shoal_generate_options *options,
                            void (*write)(void *context, const char *text, size_t length), void *context,
                            shoal_error *err) {
  shoal_model *model = NULL;
  shoal_graph *graph = NULL;
  shoal_trainer *trainer = NULL;
  size_t prompt_count = 0;
  int32_t *prompt = calloc(PROMPT_TOKENS_MAX, sizeof *prompt);
  if (!prompt) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = one_step_model(&model, from, err);
  if (status == SHOAL_OK)
    status = shoal_dataset_encode(from->vocabulary, options->prompt, prompt, PROMPT_TOKENS_MAX, &prompt_count,
                                  err);
  if (status == SHOAL_OK && prompt_count == 0)
    status = shoal_fail(err, SHOAL_INVALID, "--prompt: there is no word in it to start from");
  if (status == SHOAL_OK) status = shoal_graph_create(&graph, model, err);
  if (status == SHOAL_OK) status = check_words(from, graph, err);
  const shoal_trainer_config config = {.graph = graph, .threads = 1, .batch = 1};
  if (status == SHOAL_OK) status = shoal_trainer_create(&trainer, &config, err);
  /* Weights do not depend on how many steps there are: those of one graph are the other's. */
  if (status == SHOAL_OK && !shoal_graph_same_params(from->graph, graph))
    status =
        shoal_fail(err, SHOAL_INVALID,
                   "%s cannot write text one token at a time: its weights depend on the steps", from->name);
  if (status == SHOAL_OK) {
    memcpy(shoal_trainer_state(trainer)->weights, from->weights, graph->weights_count * sizeof(float));
    writer w = {from, options, write, context, .words = has_words(from->vocabulary)};
    status = write_on(&w, trainer, graph, prompt, prompt_count, err);
  }
  shoal_trainer_destroy(trainer);
  free(prompt);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
  return status;
}
