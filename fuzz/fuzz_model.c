/* fuzz_model.c: any text is refused with a sentence that names it, or makes a model that
 * survives writing and reading, and whose recipe gives rates for all times. */
#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "nn/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_same_layer(const shoal_layer *a, const shoal_layer *b) {
  SHOAL_ASSERT(a->op == b->op && a->named == b->named && strcmp(a->name, b->name) == 0);
  SHOAL_ASSERT(a->inputs_count == b->inputs_count);
  SHOAL_ASSERT(memcmp(a->inputs, b->inputs, sizeof a->inputs) == 0);
  SHOAL_ASSERT(shoal_shape_equal(&a->shape, &b->shape));
  SHOAL_ASSERT(a->activation == b->activation && a->units == b->units && a->vocabulary == b->vocabulary);
  SHOAL_ASSERT(a->columns == b->columns && a->stack == b->stack && a->bidirectional == b->bidirectional);
  SHOAL_ASSERT(a->last == b->last && a->bias == b->bias);
  SHOAL_ASSERT(a->pool == b->pool && a->window.k_h == b->window.k_h && a->window.k_w == b->window.k_w);
  SHOAL_ASSERT(a->window.stride_h == b->window.stride_h && a->window.stride_w == b->window.stride_w);
  SHOAL_ASSERT(a->window.pad_h == b->window.pad_h && a->window.pad_w == b->window.pad_w);
  SHOAL_ASSERT(a->rate == b->rate && a->init == b->init && a->init_scale == b->init_scale);
}

static void check_same_recipe(const shoal_recipe *a, const shoal_recipe *b) {
  SHOAL_ASSERT(a->loss == b->loss && a->huber_delta == b->huber_delta && a->sum_steps == b->sum_steps);
  SHOAL_ASSERT(a->optimizer == b->optimizer && a->rate == b->rate && a->momentum == b->momentum);
  SHOAL_ASSERT(a->beta2 == b->beta2 && a->eps == b->eps && a->l2 == b->l2);
  SHOAL_ASSERT(a->schedule == b->schedule && a->schedule_from == b->schedule_from);
  SHOAL_ASSERT(a->schedule_every == b->schedule_every && a->schedule_factor == b->schedule_factor);
  SHOAL_ASSERT(a->schedule_to == b->schedule_to && a->warmup_epochs == b->warmup_epochs);
  SHOAL_ASSERT(a->scale_batch == b->scale_batch && a->batch == b->batch && a->epochs == b->epochs);
  SHOAL_ASSERT(a->seed == b->seed && a->shards == b->shards && a->clip == b->clip);
  SHOAL_ASSERT(a->early_stop == b->early_stop && a->class_weights_balanced == b->class_weights_balanced);
  SHOAL_ASSERT(a->class_weights_count == b->class_weights_count);
  SHOAL_ASSERT(memcmp(a->class_weights, b->class_weights, sizeof a->class_weights) == 0);
}

static void check_rates(const shoal_recipe *recipe) {
  static const uint64_t epochs[] = {0, 1, 9, 1000000000};
  SHOAL_ASSERT(shoal_recipe_rate(recipe) > 0);
  for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
    float rate = shoal_recipe_rate_at(recipe, epochs[i], i, 10);
    SHOAL_ASSERT(rate >= 0 && rate <= FLT_MAX);
  }
}

/* A line of the text may also come as a flag. */
static void set_from(shoal_model *model, const uint8_t *bytes, size_t length) {
  char line[256] = "";
  const uint8_t *end = memchr(bytes, '\n', length);
  size_t count = end ? (size_t)(end - bytes) : length;
  memcpy(line, bytes, count < sizeof line ? count : sizeof line - 1);
  char *space = strchr(line, ' ');
  if (space) *space = 0;
  shoal_error err = {0};
  shoal_status status = shoal_model_set(model, "--flag", line, space ? space + 1 : "", &err);
  SHOAL_ASSERT((status == SHOAL_OK) == (err.text[0] == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_model *model, *again;
  shoal_error err;
  if (shoal_model_parse(&model, "fuzz", length ? (const char *)bytes : "", length, &err) != SHOAL_OK) {
    SHOAL_ASSERT(strncmp(err.text, "fuzz:", 5) == 0);
    return 0;
  }
  set_from(model, bytes, length);

  shoal_text text;
  shoal_text_init(&text);
  shoal_model_write(model, &text);
  SHOAL_ASSERT(!text.failed);
  SHOAL_ASSERT(shoal_model_parse(&again, "written", text.bytes, text.length, &err) == SHOAL_OK);
  SHOAL_ASSERT(model->layers_count == again->layers_count && model->carry == again->carry);
  for (uint32_t i = 0; i < model->layers_count; i++) {
    check_same_layer(&model->layers[i], &again->layers[i]);
    SHOAL_ASSERT(shoal_shape_values(&model->layers[i].shape) <= SHOAL_VALUES_MAX);
  }
  check_same_recipe(&model->recipe, &again->recipe);
  check_rates(&model->recipe);
  shoal_text_release(&text);
  shoal_model_destroy(again);
  shoal_model_destroy(model);
  return 0;
}
