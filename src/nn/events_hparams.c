/* events_hparams.c: trials that are compared, as TensorBoard's plugin "hparams" wants them: messages in the metadata of
 * values whose tensor is empty. */
#include "base/clock.h"
#include "nn/events_fields.h"

/* Closes the message that is open in an HParamsPluginData, writes that, and releases it. */
static void write_data(shoal_events *events, const char *tag, shoal_protobuf *data) {
  shoal_protobuf_close(data, 1);
  shoal_events_begin_tensor(events, tag, 0, TYPE_FLOAT, (const int64_t[]){0}, 1);
  shoal_events_write_tensor(events, "hparams", CLASS_UNKNOWN, &data->text);
  shoal_text_release(&data->text);
}

void shoal_events_experiment(shoal_events *events, const char *about, const shoal_events_param *params,
                             uint32_t params_count, const char *const *metrics, uint32_t metrics_count) {
  static const int types[] = {[SHOAL_EVENTS_NUMBER] = PARAM_IS_NUMBER,
                              [SHOAL_EVENTS_TEXT] = PARAM_IS_TEXT,
                              [SHOAL_EVENTS_TRUTH] = PARAM_IS_TRUTH};
  shoal_protobuf out = {0};
  shoal_protobuf_open(&out, HPARAMS_EXPERIMENT);
  shoal_protobuf_text(&out, EXPERIMENT_ABOUT, about);
  shoal_protobuf_double(&out, EXPERIMENT_TIME, shoal_clock_wall_seconds());
  for (uint32_t i = 0; i < params_count; i++) {
    shoal_protobuf_open(&out, EXPERIMENT_PARAM);
    shoal_protobuf_text(&out, PARAM_NAME, params[i].name);
    shoal_protobuf_int(&out, PARAM_TYPE, types[params[i].kind]);
    shoal_protobuf_close(&out, 1);
  }
  for (uint32_t i = 0; i < metrics_count; i++) {
    shoal_protobuf_open(&out, EXPERIMENT_METRIC);
    shoal_protobuf_open(&out, METRIC_NAME);
    shoal_protobuf_text(&out, METRIC_TAG, metrics[i]);
    shoal_protobuf_close(&out, 1);
    shoal_protobuf_text(&out, METRIC_SHOWN, metrics[i]);
    shoal_protobuf_close(&out, 1);
  }
  write_data(events, "_hparams_/experiment", &out);
}

static void add_param(shoal_protobuf *out, const shoal_events_param *param) {
  shoal_protobuf_open(out, START_PARAM);
  shoal_protobuf_text(out, MAP_KEY, param->name);
  shoal_protobuf_open(out, MAP_VALUE);
  switch (param->kind) {
  case SHOAL_EVENTS_NUMBER: shoal_protobuf_double(out, GOOGLE_NUMBER, param->number); break;
  case SHOAL_EVENTS_TEXT: shoal_protobuf_text(out, GOOGLE_TEXT, param->text); break;
  case SHOAL_EVENTS_TRUTH: shoal_protobuf_int(out, GOOGLE_TRUTH, param->number != 0); break;
  }
  shoal_protobuf_close(out, 2);
}

void shoal_events_trial_start(shoal_events *events, const char *name, double time,
                              const shoal_events_param *params, uint32_t params_count) {
  shoal_protobuf out = {0};
  shoal_protobuf_open(&out, HPARAMS_START);
  for (uint32_t i = 0; i < params_count; i++) add_param(&out, &params[i]);
  shoal_protobuf_text(&out, START_GROUP, name);
  shoal_protobuf_double(&out, START_TIME, time);
  write_data(events, "_hparams_/session_start_info", &out);
}

void shoal_events_trial_end(shoal_events *events, double time, bool success) {
  shoal_protobuf out = {0};
  shoal_protobuf_open(&out, HPARAMS_END);
  shoal_protobuf_int(&out, END_STATUS, success ? STATUS_SUCCESS : STATUS_FAILURE);
  shoal_protobuf_double(&out, END_TIME, time);
  write_data(events, "_hparams_/session_end_info", &out);
}
