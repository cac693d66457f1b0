/* model_write.c: a model as text that parses to the same model.
 *
 * Layers first, then the settings, the defaults too: a checkpoint must mean the same when
 * a later version has other defaults. What is off, and a rate that nobody gave, is left out. */
#include <stdio.h>
#include <string.h>

#include "nn/model_internal.h"

/* The shortest decimal that reads back as the same float. */
static void add_real(shoal_text *out, const char *before, float value) {
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

/* " stride 2" or " stride 2x1". */
static void add_pair(shoal_text *out, const char *before, uint32_t h, uint32_t w) {
  if (h == w)
    shoal_text_addf(out, "%s%u", before, h);
  else
    shoal_text_addf(out, "%s%ux%u", before, h, w);
}

static void add_window(shoal_text *out, const shoal_layer *layer, uint32_t stride_h, uint32_t stride_w) {
  shoal_text_addf(out, " %ux%u", layer->k_h, layer->k_w);
  if (layer->stride_h != stride_h || layer->stride_w != stride_w)
    add_pair(out, " stride ", layer->stride_h, layer->stride_w);
  if (layer->pad_h || layer->pad_w) add_pair(out, " pad ", layer->pad_h, layer->pad_w);
}

static void add_arguments(shoal_text *out, const shoal_model *model, const shoal_layer *layer) {
  char shape[SHOAL_SHAPE_TEXT_MAX];
  switch (layer->op) {
  case SHOAL_LAYER_INPUT:
    shoal_text_addf(out, " %s%s", shoal_shape_text(&layer->shape, shape), model->carry ? " carry" : "");
    break;
  case SHOAL_LAYER_CONV:
    shoal_text_addf(out, " %u", layer->units);
    add_window(out, layer, 1, 1);
    break;
  case SHOAL_LAYER_POOL:
    shoal_text_addf(out, " %s", shoal_pool_words[layer->pool]);
    add_window(out, layer, layer->k_h, layer->k_w);
    break;
  case SHOAL_LAYER_GLOBAL_POOL: shoal_text_addf(out, " %s", shoal_pool_words[layer->pool]); break;
  case SHOAL_LAYER_RESHAPE: shoal_text_addf(out, " %s", shoal_shape_text(&layer->shape, shape)); break;
  case SHOAL_LAYER_EMBED: shoal_text_addf(out, " %u %u", layer->vocabulary, layer->units); break;
  case SHOAL_LAYER_LOOKUP:
    shoal_text_addf(out, " %u %u of %u", layer->vocabulary, layer->units, layer->columns);
    break;
  case SHOAL_LAYER_DENSE:
  case SHOAL_LAYER_RNN:
  case SHOAL_LAYER_LSTM:
  case SHOAL_LAYER_GRU:
  case SHOAL_LAYER_REPEAT: shoal_text_addf(out, " %u", layer->units); break;
  case SHOAL_LAYER_DROPOUT: add_real(out, " ", layer->rate); break;
  case SHOAL_LAYER_ADD:
  case SHOAL_LAYER_CONCAT:
    for (uint32_t k = 1; k < layer->inputs_count; k++)
      shoal_text_addf(out, " %s", model->layers[layer->inputs[k]].name);
    break;
  default: break;
  }
}

static void add_layer(shoal_text *out, const shoal_model *model, uint32_t index) {
  const shoal_layer *layer = &model->layers[index];
  bool alone = layer->op == SHOAL_LAYER_ACTIVATION;
  if (layer->named) shoal_text_addf(out, "%s: ", layer->name);
  shoal_text_addf(out, "%s",
                  alone ? shoal_activation_name(layer->activation) : shoal_layer_op_name(layer->op));
  add_arguments(out, model, layer);
  if (layer->stack > 1) shoal_text_addf(out, " layers %u", layer->stack);
  if (layer->bidirectional) shoal_text_addf(out, " bidirectional");
  if (layer->last) shoal_text_addf(out, " last");
  if ((layer->op == SHOAL_LAYER_DENSE || layer->op == SHOAL_LAYER_CONV) && !layer->bias)
    shoal_text_addf(out, " no-bias");
  if (layer->init != SHOAL_INIT_AUTO) shoal_text_addf(out, " init %s", shoal_init_words[layer->init]);
  if (layer->init == SHOAL_INIT_NORMAL || layer->init == SHOAL_INIT_UNIFORM)
    add_real(out, " ", layer->init_scale);
  if (!alone && layer->activation != SHOAL_ACT_IDENTITY)
    shoal_text_addf(out, " %s", shoal_activation_name(layer->activation));
  if (index > 0 && layer->inputs[0] != index - 1)
    shoal_text_addf(out, " from %s", model->layers[layer->inputs[0]].name);
  shoal_text_addf(out, "\n");
}

static void add_loss(shoal_text *out, const shoal_recipe *recipe) {
  shoal_text_addf(out, "loss %s", shoal_loss_name(recipe->loss));
  if (recipe->loss == SHOAL_HUBER) add_real(out, " delta ", recipe->huber_delta);
  shoal_text_addf(out, "%s\n", recipe->sum_steps ? " sum-steps" : "");
}

static void add_optimizer(shoal_text *out, const shoal_recipe *recipe) {
  shoal_update_kind kind = recipe->optimizer;
  bool adam = kind == SHOAL_ADAM || kind == SHOAL_ADAMW;
  shoal_text_addf(out, "optimizer %s", shoal_optimizer_name(kind));
  if (recipe->rate > 0) add_real(out, " rate ", recipe->rate);
  if (kind == SHOAL_MOMENTUM || kind == SHOAL_NESTEROV) add_real(out, " momentum ", recipe->momentum);
  if (adam) add_real(out, " beta1 ", recipe->momentum);
  if (adam || kind == SHOAL_RMSPROP) add_real(out, " beta2 ", recipe->beta2);
  if (adam || kind == SHOAL_RMSPROP || kind == SHOAL_ADAGRAD) add_real(out, " eps ", recipe->eps);
  shoal_text_addf(out, "\n");
}

static void add_schedule(shoal_text *out, const shoal_recipe *recipe) {
  shoal_text_addf(out, "schedule %s", shoal_schedule_words[recipe->schedule]);
  if (recipe->schedule == SHOAL_SCHEDULE_STEP) {
    shoal_text_addf(out, " from %u every %u", recipe->schedule_from, recipe->schedule_every);
    add_real(out, " factor ", recipe->schedule_factor);
  } else if (recipe->schedule == SHOAL_SCHEDULE_EXPONENTIAL) {
    add_real(out, " ", recipe->schedule_factor);
  } else if (recipe->schedule == SHOAL_SCHEDULE_COSINE) {
    add_real(out, " to ", recipe->schedule_to);
  }
  shoal_text_addf(out, "\n");
  if (recipe->warmup_epochs > 0 || recipe->scale_batch) {
    add_real(out, "warmup ", recipe->warmup_epochs);
    if (recipe->scale_batch) shoal_text_addf(out, " scale %u", recipe->scale_batch);
    shoal_text_addf(out, "\n");
  }
}

static void add_class_weights(shoal_text *out, const shoal_recipe *recipe) {
  if (!recipe->class_weights_balanced && !recipe->class_weights_count) return;
  shoal_text_addf(out, "class-weights%s", recipe->class_weights_balanced ? " balanced" : "");
  for (uint32_t i = 0; i < recipe->class_weights_count; i++) add_real(out, " ", recipe->class_weights[i]);
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
    add_real(out, "l2 ", recipe->l2);
    shoal_text_addf(out, "\n");
  }
  if (recipe->clip > 0) {
    add_real(out, "clip ", recipe->clip);
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
