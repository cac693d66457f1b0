/* events_hparams.c: trials that are compared, as TensorBoard's plugin "hparams" wants them: messages in the metadata of
 * values whose tensor is empty. */
#include "base/clock.h"
#include "nn/events_fields.h"

/* Writes HParamsPluginData with one message in it. */
static void write_data(shoal_events *events, const char *tag, uint32_t field, const shoal_text *message) {
  shoal_text content = {0}, tensor = {0}, shape = {0};
  shoal_protobuf_message(&content, field, message);
  shoal_events_shape(&shape, (const int64_t[]){0}, 1);
  shoal_protobuf_int(&tensor, TENSOR_TYPE, TYPE_FLOAT);
  shoal_protobuf_message(&tensor, TENSOR_SHAPE, &shape);
  shoal_events_value(events, tag, 0, "hparams", CLASS_UNKNOWN, &content, &tensor);
  shoal_text_release(&content);
  shoal_text_release(&tensor);
  shoal_text_release(&shape);
}

void shoal_events_experiment(shoal_events *events, const char *about, const shoal_events_param *params,
                             uint32_t params_count, const char *const *metrics, uint32_t metrics_count) {
  static const int types[] = {[SHOAL_EVENTS_NUMBER] = PARAM_IS_NUMBER,
                              [SHOAL_EVENTS_TEXT] = PARAM_IS_TEXT,
                              [SHOAL_EVENTS_TRUTH] = PARAM_IS_TRUTH};
  shoal_text out = {0}, part = {0}, name = {0};
  shoal_protobuf_text(&out, EXPERIMENT_ABOUT, about);
  shoal_protobuf_double(&out, EXPERIMENT_TIME, shoal_clock_wall_seconds());
  for (uint32_t i = 0; i < params_count; i++) {
    shoal_text_clear(&part);
    shoal_protobuf_text(&part, PARAM_NAME, params[i].name);
    shoal_protobuf_int(&part, PARAM_TYPE, types[params[i].kind]);
    shoal_protobuf_message(&out, EXPERIMENT_PARAM, &part);
  }
  for (uint32_t i = 0; i < metrics_count; i++) {
    shoal_text_clear(&name);
    shoal_protobuf_text(&name, METRIC_TAG, metrics[i]);
    shoal_text_clear(&part);
    shoal_protobuf_message(&part, METRIC_NAME, &name);
    shoal_protobuf_text(&part, METRIC_SHOWN, metrics[i]);
    shoal_protobuf_message(&out, EXPERIMENT_METRIC, &part);
  }
  write_data(events, "_hparams_/experiment", HPARAMS_EXPERIMENT, &out);
  shoal_text_release(&out);
  shoal_text_release(&part);
  shoal_text_release(&name);
}

static void add_param(shoal_text *out, const shoal_events_param *param) {
  shoal_text value = {0}, entry = {0};
  switch (param->kind) {
  case SHOAL_EVENTS_NUMBER: shoal_protobuf_double(&value, GOOGLE_NUMBER, param->number); break;
  case SHOAL_EVENTS_TEXT: shoal_protobuf_text(&value, GOOGLE_TEXT, param->text); break;
  case SHOAL_EVENTS_TRUTH: shoal_protobuf_int(&value, GOOGLE_TRUTH, param->number != 0); break;
  }
  shoal_protobuf_text(&entry, MAP_KEY, param->name);
  shoal_protobuf_message(&entry, MAP_VALUE, &value);
  shoal_protobuf_message(out, START_PARAM, &entry);
  shoal_text_release(&value);
  shoal_text_release(&entry);
}

void shoal_events_trial_start(shoal_events *events, const char *name, double time,
                              const shoal_events_param *params, uint32_t params_count) {
  shoal_text out = {0};
  for (uint32_t i = 0; i < params_count; i++) add_param(&out, &params[i]);
  shoal_protobuf_text(&out, START_GROUP, name);
  shoal_protobuf_double(&out, START_TIME, time);
  write_data(events, "_hparams_/session_start_info", HPARAMS_START, &out);
  shoal_text_release(&out);
}

void shoal_events_trial_end(shoal_events *events, double time, bool success) {
  shoal_text out = {0};
  shoal_protobuf_int(&out, END_STATUS, success ? STATUS_SUCCESS : STATUS_FAILURE);
  shoal_protobuf_double(&out, END_TIME, time);
  write_data(events, "_hparams_/session_end_info", HPARAMS_END, &out);
  shoal_text_release(&out);
}
