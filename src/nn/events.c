/* events.c: events as TensorBoard's records: curves and tensors first, then the graph of a network, then trials.
 *
 *   offset  bytes  what
 *   0       8      n, the message's length, little-endian
 *   8       4      masked CRC-32C of those 8 bytes
 *   12      n      an Event message
 *   12 + n  4      masked CRC-32C of the message */
#include "nn/events.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "nn/op.h"
#include "nn/protobuf.h"

enum { NAMES_TRIED_MAX = 1000, NAME_MAX_BYTES = 256, PRODUCER = 22 };

/* Event, Summary, its Value, and that one's SummaryMetadata and TensorProto. */
enum { EVENT_WALL_TIME = 1 /* double */, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_GRAPH = 4 };
enum { EVENT_SUMMARY = 5, SUMMARY_VALUE = 1 /* repeated */ };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2 /* float */, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 /* bytes */ };
enum { CLASS_TENSOR = 2, CLASS_BLOBS = 3 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4 /* little-endian */, TENSOR_TEXT = 8 };
enum { TYPE_FLOAT = 1, TYPE_DOUBLE = 2, TYPE_TEXT = 7 };
enum { SHAPE_DIM = 2 /* repeated */, DIM_SIZE = 1 };
/* GraphDef, NodeDef and AttrValue. */
enum { GRAPH_NODE = 1 /* repeated */, GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1 };
enum { NODE_NAME = 1, NODE_KIND = 2, NODE_INPUT = 3 /* repeated */, NODE_ATTRIBUTE = 5 /* a map */ };
enum { MAP_KEY = 1, MAP_VALUE = 2 };
enum { ATTRIBUTE_LIST = 1, ATTRIBUTE_TEXT = 2, LIST_SHAPE = 7 };
/* HParamsPluginData (whose version, 0, is left out), and what is in it; at the end google's Value. */
enum { HPARAMS_EXPERIMENT = 2, HPARAMS_START = 3, HPARAMS_END = 4 };
enum { EXPERIMENT_ABOUT = 1, EXPERIMENT_TIME = 3 /* double */, EXPERIMENT_PARAM = 4, EXPERIMENT_METRIC = 5 };
enum { PARAM_NAME = 1, PARAM_TYPE = 4, PARAM_IS_TEXT = 1, PARAM_IS_NUMBER = 3 };
enum { METRIC_NAME = 1, METRIC_TAG = 2 /* of the name */, METRIC_SHOWN = 3 };
enum { START_PARAM = 1 /* a map */, START_GROUP = 4, START_TIME = 5 /* double */ };
enum { END_STATUS = 1, END_TIME = 2 /* double */, STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { GOOGLE_NUMBER = 2 /* double */, GOOGLE_TEXT = 3 };

struct shoal_events {
  shoal_text path;
  FILE *file;
  int error;            /* errno of the first write that failed */
  shoal_protobuf event; /* the one being written */
};

/* Stored checksums are turned and shifted, so that one over data with checksums in it
 * does not come out as something simple. */
static uint32_t masked_crc(const void *bytes, size_t length) {
  uint32_t crc = shoal_crc32c(0, bytes, length);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void write_bytes(shoal_events *events, const void *bytes, size_t length) {
  if (!events->error && fwrite(bytes, 1, length, events->file) != length) events->error = errno;
}

static void write_event(shoal_events *events) {
  const shoal_text *event = &events->event.text;
  shoal_protobuf_close(&events->event, events->event.depth);
  if (event->failed && !events->error) events->error = ENOMEM;
  uint64_t length = event->length;
  uint32_t length_crc = masked_crc(&length, sizeof length), event_crc = masked_crc(event->bytes, length);
  write_bytes(events, &length, sizeof length);
  write_bytes(events, &length_crc, sizeof length_crc);
  write_bytes(events, event->bytes, length);
  write_bytes(events, &event_crc, sizeof event_crc);
}

static shoal_protobuf *begin_event(shoal_events *events) {
  shoal_text_clear(&events->event.text);
  shoal_protobuf_double(&events->event, EVENT_WALL_TIME, shoal_clock_wall_seconds());
  return &events->event;
}

/* A file of its own for this run: where the name is taken, a number follows it. */
static int open_file(shoal_events *events, const char *folder) {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  for (int i = 0; i < NAMES_TRIED_MAX; i++) {
    shoal_text_clear(&events->path);
    shoal_text_addf(&events->path, "%s/events.out.tfevents.%010lld.%s.%ld", folder,
                    (long long)shoal_clock_wall_seconds(), host, (long)getpid());
    if (i > 0) shoal_text_addf(&events->path, ".%d", i);
    if (events->path.failed) return ENOMEM;
    events->file = fopen(events->path.bytes, "wbxe");
    if (events->file) return 0;
    if (errno != EEXIST) return errno;
  }
  return EEXIST;
}

shoal_status shoal_events_create(shoal_events **out, const char *folder, shoal_error *err) {
  *out = NULL;
  shoal_status status = shoal_make_folder(folder, err);
  if (status != SHOAL_OK) return status;
  shoal_events *events = calloc(1, sizeof *events); /* zeroed texts are initialised */
  if (!events) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", folder);
  int number = open_file(events, folder);
  if (number) {
    status = shoal_fail(err, SHOAL_IO, "%s: cannot write an event file here: %s", folder, strerror(number));
    shoal_events_destroy(events);
    return status;
  }
  shoal_protobuf_text(begin_event(events), EVENT_FILE_VERSION, "brain.Event:2");
  write_event(events);
  *out = events;
  return SHOAL_OK;
}

/* ---- values ---- */

/* Begins an event whose summary has one value. */
static shoal_protobuf *begin_value(shoal_events *events, const char *tag, uint64_t step) {
  shoal_protobuf *out = begin_event(events);
  shoal_protobuf_int(out, EVENT_STEP, (int64_t)step);
  shoal_protobuf_open(out, EVENT_SUMMARY);
  shoal_protobuf_open(out, SUMMARY_VALUE);
  shoal_protobuf_text(out, VALUE_TAG, tag);
  return out;
}

void shoal_events_scalar(shoal_events *events, const char *tag, uint64_t step, double value) {
  shoal_protobuf_float(begin_value(events, tag, step), VALUE_SIMPLE, (float)value);
  write_event(events);
}

static void write_shape(shoal_protobuf *out, uint32_t field, const int64_t *sizes, uint32_t count) {
  shoal_protobuf_open(out, field);
  for (uint32_t i = 0; i < count; i++) {
    shoal_protobuf_open(out, SHAPE_DIM);
    shoal_protobuf_int(out, DIM_SIZE, sizes[i]);
    shoal_protobuf_close(out, 1);
  }
  shoal_protobuf_close(out, 1);
}

static shoal_protobuf *begin_tensor(shoal_events *events, const char *tag, uint64_t step, int type,
                                    const int64_t *sizes, uint32_t count) {
  shoal_protobuf *out = begin_value(events, tag, step);
  shoal_protobuf_open(out, VALUE_TENSOR);
  shoal_protobuf_int(out, TENSOR_TYPE, type);
  write_shape(out, TENSOR_SHAPE, sizes, count);
  return out;
}

/* Ends the tensor; what its plugin gets may follow. */
static void open_plugin(shoal_protobuf *out, const char *name) {
  shoal_protobuf_close(out, 1);
  shoal_protobuf_open(out, VALUE_METADATA);
  shoal_protobuf_open(out, METADATA_PLUGIN);
  shoal_protobuf_text(out, PLUGIN_NAME, name);
}

static void write_tensor(shoal_events *events, const char *plugin, int data_class) {
  open_plugin(&events->event, plugin);
  shoal_protobuf_close(&events->event, 1);
  shoal_protobuf_int(&events->event, METADATA_CLASS, data_class);
  write_event(events);
}

/* Rows of left edge, right edge, count. */
void shoal_events_histogram(shoal_events *events, const char *tag, uint64_t step, const float *values,
                            size_t count) {
  enum { BUCKETS = SHOAL_EVENTS_BUCKETS };
  double least = INFINITY, most = -INFINITY, counts[BUCKETS] = {0};
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    least = fmin(least, values[i]);
    most = fmax(most, values[i]);
  }
  if (least > most) return;
  double range = most - least, width = range / BUCKETS;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    double place = width > 0 ? (values[i] - least) / width : BUCKETS;
    counts[(int)fmin(place, BUCKETS - 1)]++;
  }
  shoal_protobuf *out = begin_tensor(events, tag, step, TYPE_DOUBLE, (const int64_t[]){BUCKETS, 3}, 2);
  shoal_protobuf_bytes_head(out, TENSOR_CONTENT, BUCKETS * 3 * sizeof(double));
  for (int i = 0; i < BUCKETS; i++) {
    const double row[] = {least + range * i / BUCKETS, least + range * (i + 1) / BUCKETS, counts[i]};
    shoal_text_add(&out->text, row, sizeof row);
  }
  write_tensor(events, "histograms", CLASS_TENSOR);
}

void shoal_events_image(shoal_events *events, const char *tag, uint64_t step, uint32_t width, uint32_t height,
                        const shoal_text *png) {
  char number[16];
  shoal_protobuf *out = begin_tensor(events, tag, step, TYPE_TEXT, (const int64_t[]){3}, 1);
  snprintf(number, sizeof number, "%u", width);
  shoal_protobuf_text(out, TENSOR_TEXT, number);
  snprintf(number, sizeof number, "%u", height);
  shoal_protobuf_text(out, TENSOR_TEXT, number);
  shoal_protobuf_bytes_head(out, TENSOR_TEXT, png->length);
  shoal_text_add(&out->text, png->bytes, png->length);
  out->text.failed |= png->failed;
  write_tensor(events, "images", CLASS_BLOBS);
}

void shoal_events_text(shoal_events *events, const char *tag, uint64_t step, const char *text) {
  shoal_protobuf *out = begin_tensor(events, tag, step, TYPE_TEXT, NULL, 0);
  shoal_protobuf_text(out, TENSOR_TEXT, text);
  write_tensor(events, "text", CLASS_TENSOR);
}

/* ---- the graph: a layer is a group, "conv1", of nodes, "conv1/conv", and parameters, "conv1/weight" ---- */

typedef char node_name[NAME_MAX_BYTES];

/* The layer in whose group a node is shown. An activation that was moved behind a pool is shown with that, or the two
 * groups would seem to lead to each other. */
static uint32_t layer_of(const shoal_graph *graph, uint32_t index) {
  const shoal_node *node = &graph->nodes[index];
  return node->op == shoal_activation_op ? graph->nodes[node->inputs[0]].layer : node->layer;
}

/* Nodes of the same layer and kind are numbered. */
static void name_node(const shoal_graph *graph, uint32_t index, node_name out) {
  const char *layer = graph->model->layers[layer_of(graph, index)].name;
  const char *word = shoal_node_word(&graph->nodes[index]);
  uint32_t before = 0;
  for (uint32_t i = 0; i < index; i++)
    before +=
        layer_of(graph, i) == layer_of(graph, index) && strcmp(shoal_node_word(&graph->nodes[i]), word) == 0;
  int length = snprintf(out, NAME_MAX_BYTES, "%.200s/%s", layer, word);
  if (before > 0) snprintf(out + length, (size_t)(NAME_MAX_BYTES - length), "_%u", before + 1);
}

/* "conv1.weight" is in the group conv1. */
static void name_param(const shoal_param *param, node_name out) {
  snprintf(out, NAME_MAX_BYTES, "%.250s", param->name);
  char *dot = strrchr(out, '.');
  if (dot != NULL) *dot = '/';
}

/* Opens an entry of a node's map of attributes, and its value: two messages. */
static void open_attribute(shoal_protobuf *out, const char *key) {
  shoal_protobuf_open(out, NODE_ATTRIBUTE);
  shoal_protobuf_text(out, MAP_KEY, key);
  shoal_protobuf_open(out, MAP_VALUE);
}

static void add_shape(shoal_protobuf *out, const int64_t *sizes, uint32_t count) {
  open_attribute(out, "_output_shapes");
  shoal_protobuf_open(out, ATTRIBUTE_LIST);
  write_shape(out, LIST_SHAPE, sizes, count);
  shoal_protobuf_close(out, 3);
}

static void open_node(shoal_protobuf *out, const char *name, const char *kind) {
  shoal_protobuf_open(out, GRAPH_NODE);
  shoal_protobuf_text(out, NODE_NAME, name);
  shoal_protobuf_text(out, NODE_KIND, kind);
}

static void add_param(shoal_protobuf *out, const shoal_param *param) {
  node_name name;
  int64_t sizes[4];
  name_param(param, name);
  for (uint32_t d = 0; d < param->dims_count; d++) sizes[d] = param->dims[d];
  open_node(out, name, "parameter");
  add_shape(out, sizes, param->dims_count);
  shoal_protobuf_close(out, 1);
}

static void add_node(shoal_protobuf *out, const shoal_graph *graph, uint32_t index) {
  const shoal_node *from = &graph->nodes[index];
  node_name name;
  name_node(graph, index, name);
  open_node(out, name, shoal_node_word(from));
  for (uint32_t i = 0; i < from->inputs_count; i++) {
    name_node(graph, from->inputs[i], name);
    shoal_protobuf_text(out, NODE_INPUT, name);
  }
  for (uint32_t p = 0; p < SHOAL_NODE_PARAMS_MAX; p++) {
    if (from->params[p] == SHOAL_NO_PARAM) continue;
    name_param(&graph->params[from->params[p]], name);
    shoal_protobuf_text(out, NODE_INPUT, name);
  }
  /* The first dimension is the samples'. */
  int64_t sizes[1 + SHOAL_SHAPE_DIMS_MAX] = {-1};
  char words[SHOAL_SHAPE_TEXT_MAX];
  add_shape(out, sizes, 1 + shoal_shape_dims(&from->shape, sizes + 1));
  open_attribute(out, "shape");
  shoal_protobuf_text(out, ATTRIBUTE_TEXT, shoal_shape_text(&from->shape, words));
  shoal_protobuf_close(out, 3);
}

static void add_loss(shoal_protobuf *out, const shoal_graph *graph) {
  const char *loss = shoal_loss_words[graph->model->recipe.loss];
  node_name name;
  snprintf(name, sizeof name, "loss/%s", loss);
  open_node(out, name, loss);
  name_node(graph, graph->nodes_count - 1, name);
  shoal_protobuf_text(out, NODE_INPUT, name);
  add_shape(out, NULL, 0);
  shoal_protobuf_close(out, 1);
}

void shoal_events_graph(shoal_events *events, const shoal_graph *graph) {
  shoal_protobuf *out = begin_event(events);
  shoal_protobuf_open(out, EVENT_GRAPH);
  for (uint32_t i = 0; i < graph->params_count; i++) add_param(out, &graph->params[i]);
  for (uint32_t i = 0; i < graph->nodes_count; i++) add_node(out, graph, i);
  add_loss(out, graph);
  shoal_protobuf_open(out, GRAPH_VERSIONS);
  shoal_protobuf_int(out, VERSIONS_PRODUCER, PRODUCER);
  write_event(events);
}

/* ---- trials that are compared, as the plugin "hparams" wants them: in the metadata of empty tensors ---- */

/* Begins an event with an HParamsPluginData, and a message in that. */
static shoal_protobuf *begin_trials(shoal_events *events, const char *tag, uint32_t field) {
  shoal_protobuf *out = begin_tensor(events, tag, 0, TYPE_FLOAT, (const int64_t[]){0}, 1);
  open_plugin(out, "hparams");
  shoal_protobuf_open(out, PLUGIN_CONTENT);
  shoal_protobuf_open(out, field);
  return out;
}

void shoal_events_experiment(shoal_events *events, const char *about, const shoal_events_param *params,
                             uint32_t params_count, const char *const *metrics, uint32_t metrics_count) {
  shoal_protobuf *out = begin_trials(events, "_hparams_/experiment", HPARAMS_EXPERIMENT);
  shoal_protobuf_text(out, EXPERIMENT_ABOUT, about);
  shoal_protobuf_double(out, EXPERIMENT_TIME, shoal_clock_wall_seconds());
  for (uint32_t i = 0; i < params_count; i++) {
    shoal_protobuf_open(out, EXPERIMENT_PARAM);
    shoal_protobuf_text(out, PARAM_NAME, params[i].name);
    shoal_protobuf_int(out, PARAM_TYPE, params[i].is_text ? PARAM_IS_TEXT : PARAM_IS_NUMBER);
    shoal_protobuf_close(out, 1);
  }
  for (uint32_t i = 0; i < metrics_count; i++) {
    shoal_protobuf_open(out, EXPERIMENT_METRIC);
    shoal_protobuf_open(out, METRIC_NAME);
    shoal_protobuf_text(out, METRIC_TAG, metrics[i]);
    shoal_protobuf_close(out, 1);
    shoal_protobuf_text(out, METRIC_SHOWN, metrics[i]);
    shoal_protobuf_close(out, 1);
  }
  write_event(events);
}

void shoal_events_trial_start(shoal_events *events, const char *name, double time,
                              const shoal_events_param *params, uint32_t params_count) {
  shoal_protobuf *out = begin_trials(events, "_hparams_/session_start_info", HPARAMS_START);
  for (uint32_t i = 0; i < params_count; i++) {
    shoal_protobuf_open(out, START_PARAM);
    shoal_protobuf_text(out, MAP_KEY, params[i].name);
    shoal_protobuf_open(out, MAP_VALUE);
    if (params[i].is_text)
      shoal_protobuf_text(out, GOOGLE_TEXT, params[i].text);
    else
      shoal_protobuf_double(out, GOOGLE_NUMBER, params[i].number);
    shoal_protobuf_close(out, 2);
  }
  shoal_protobuf_text(out, START_GROUP, name);
  shoal_protobuf_double(out, START_TIME, time);
  write_event(events);
}

void shoal_events_trial_end(shoal_events *events, double time, bool success) {
  shoal_protobuf *out = begin_trials(events, "_hparams_/session_end_info", HPARAMS_END);
  shoal_protobuf_int(out, END_STATUS, success ? STATUS_SUCCESS : STATUS_FAILURE);
  shoal_protobuf_double(out, END_TIME, time);
  write_event(events);
}

/* ---- the file ---- */

shoal_status shoal_events_flush(shoal_events *events, shoal_error *err) {
  if (!events->error && fflush(events->file) != 0) events->error = errno;
  int number = events->error;
  if (number == 0) return SHOAL_OK;
  return shoal_fail(err, number == ENOSPC || number == EDQUOT ? SHOAL_FULL : SHOAL_IO, "%s: %s",
                    events->path.bytes, strerror(number));
}

void shoal_events_destroy(shoal_events *events) {
  if (!events) return;
  if (events->file) fclose(events->file);
  shoal_text_release(&events->path);
  shoal_text_release(&events->event.text);
  free(events);
}
