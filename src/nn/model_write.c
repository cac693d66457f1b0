/* model_write.c: a model as text that parses to the same model.
 *
 * Layers first, then the settings, the defaults too: a checkpoint must mean the same when
 * a later version has other defaults. What is off, and a rate that nobody gave, is left out. */
#include <stdio.h>
#include <string.h>

#include "nn/model_internal.h"
#include "nn/op.h"

void shoal_write_real(shoal_text *out, const char *before, float value) {
  char text[32];
  double read;
  snprintf(text, sizeof text, "%.0f", (double)value);
  if (value >= 1e6f || !shoal_read_f64(text, strlen(text), &read) || (float)read != value) {
    for (int digits = 1; digits <= 9; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, (double)value);
      if (shoal_read_f64(text, strlen(text), &read) && (float)read == value) break;
    }
  }
  shoal_text_addf(out, "%s%s", before, text);
}

static void add_layer(shoal_text *out, const shoal_model *model, uint32_t index) {
  const shoal_layer *layer = &model->layers[index];
  bool alone = layer->op->is_inner; /* a line of an activation begins with its name */
  if (layer->named) shoal_text_addf(out, "%s: ", layer->name);
  shoal_text_addf(out, "%s", alone ? shoal_activation_name(layer->activation) : layer->op->word);
  if (layer->op->write != NULL) layer->op->write(model, layer, out);
  if ((layer->op->options & SHOAL_TAKES(NO_BIAS)) && !layer->bias) shoal_text_addf(out, " no-bias");
  if (layer->init != SHOAL_INIT_AUTO) shoal_text_addf(out, " init %s", shoal_init_words[layer->init]);
  if (layer->init == SHOAL_INIT_NORMAL || layer->init == SHOAL_INIT_UNIFORM)
    shoal_write_real(out, " ", layer->init_scale);
  if (!alone && layer->activation != SHOAL_ACT_IDENTITY)
    shoal_text_addf(out, " %s", shoal_activation_name(layer->activation));
  if (index > 0 && layer->inputs[0] != index - 1)
    shoal_text_addf(out, " from %s", model->layers[layer->inputs[0]].name);
  shoal_text_addf(out, "\n");
}

static void add_loss(shoal_text *out, const shoal_recipe *recipe) {
  shoal_text_addf(out, "loss %s", shoal_loss_name(recipe->loss));
  if (recipe->loss == SHOAL_HUBER) shoal_write_real(out, " delta ", recipe->huber_delta);
  shoal_text_addf(out, "%s\n", recipe->sum_steps ? " sum-steps" : "");
}

static void add_optimizer(shoal_text *out, const shoal_recipe *recipe) {
  shoal_update_kind kind = recipe->optimizer;
  bool adam = kind == SHOAL_ADAM || kind == SHOAL_ADAMW;
  shoal_text_addf(out, "optimizer %s", shoal_optimizer_name(kind));
  if (recipe->rate > 0) shoal_write_real(out, " rate ", recipe->rate);
  if (kind == SHOAL_MOMENTUM || kind == SHOAL_NESTEROV) shoal_write_real(out, " momentum ", recipe->momentum);
  if (adam) shoal_write_real(out, " beta1 ", recipe->momentum);
  if (adam || kind == SHOAL_RMSPROP) shoal_write_real(out, " beta2 ", recipe->beta2);
  if (adam || kind == SHOAL_RMSPROP || kind == SHOAL_ADAGRAD) shoal_write_real(out, " eps ", recipe->eps);
  shoal_text_addf(out, "\n");
}

static void add_schedule(shoal_text *out, const shoal_recipe *recipe) {
  shoal_text_addf(out, "schedule %s", shoal_schedule_words[recipe->schedule]);
  if (recipe->schedule == SHOAL_SCHEDULE_STEP) {
    shoal_text_addf(out, " from %u every %u", recipe->schedule_from, recipe->schedule_every);
    shoal_write_real(out, " factor ", recipe->schedule_factor);
  } else if (recipe->schedule == SHOAL_SCHEDULE_EXPONENTIAL) {
    shoal_write_real(out, " ", recipe->schedule_factor);
  } else if (recipe->schedule == SHOAL_SCHEDULE_COSINE) {
    shoal_write_real(out, " to ", recipe->schedule_to);
  }
  shoal_text_addf(out, "\n");
  if (recipe->warmup_epochs > 0 || recipe->scale_batch) {
    shoal_write_real(out, "warmup ", recipe->warmup_epochs);
    if (recipe->scale_batch) shoal_text_addf(out, " scale %u", recipe->scale_batch);
    shoal_text_addf(out, "\n");
  }
}

static void add_class_weights(shoal_text *out, const shoal_recipe *recipe) {
  if (!recipe->class_weights_balanced && !recipe->class_weights_count) return;
  shoal_text_addf(out, "class-weights%s", recipe->class_weights_balanced ? " balanced" : "");
  for (uint32_t i = 0; i < recipe->class_weights_count; i++)
    shoal_write_real(out, " ", recipe->class_weights[i]);
  shoal_text_addf(out, "\n");
}

void shoal_model_write(const shoal_model *model, shoal_text *out) {
  const shoal_recipe *recipe = &model->recipe;
  for (uint32_t i = 0; i < model->layers_count; i++) add_layer(out, model, i);
  add_loss(out, recipe);
  add_optimizer(out, recipe);
  add_schedule(out, recipe);
  shoal_text_addf(out, "batch %u\nepochs %u\nseed %llu\n", recipe->batch, recipe->epochs,
                  (unsigned long long)recipe->seed);
  if (recipe->shards) shoal_text_addf(out, "shards %u\n", recipe->shards);
  if (recipe->l2 > 0) {
    shoal_write_real(out, "l2 ", recipe->l2);
    shoal_text_addf(out, "\n");
  }
  if (recipe->clip > 0) {
    shoal_write_real(out, "clip ", recipe->clip);
    shoal_text_addf(out, "\n");
  }
  if (recipe->early_stop) shoal_text_addf(out, "early-stop %u\n", recipe->early_stop);
  if (recipe->shuffle != SHOAL_SHUFFLE_ALL)
    shoal_text_addf(out, "shuffle %s\n", shoal_shuffle_words[recipe->shuffle]);
  if (recipe->augment.flip || recipe->augment.crop) {
    shoal_text_addf(out, "augment%s", recipe->augment.flip ? " flip" : "");
    if (recipe->augment.crop) shoal_text_addf(out, " crop %u", recipe->augment.crop);
    shoal_text_addf(out, "\n");
  }
  add_class_weights(out, recipe);
}
