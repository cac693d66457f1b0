/* events_fields.h: the numbers of the fields in TensorBoard's messages, and how a summary becomes a record: for the
 * files that write events (events.c, events_graph.c, events_hparams.c) alone.
 *
 *   Event            1 wall time (double), 2 step, 3 file version (text), 4 graph (a GraphDef, as bytes), 5 summary
 *   Summary          1 value, repeated
 *   Value            1 tag, 2 simple value (float), 8 tensor, 9 metadata
 *   SummaryMetadata  1 plugin data, 4 class of the data; plugin data: 1 plugin's name, 2 content (bytes)
 *   TensorProto      1 type, 2 shape, 4 content (bytes, little-endian), 8 texts
 *   TensorShape      2 dimension, repeated; dimension: 1 size
 *   GraphDef         1 node, repeated, 4 versions; versions: 1 producer
 *   NodeDef          1 name, 2 kind, 3 input, repeated, 5 attribute, a map: 1 key, 2 value
 *   AttrValue        1 list, 2 text; list: 7 shape
 *
 *   HParamsPluginData  1 version (0: left out), 2 experiment, 3 start of a session, 4 end of a session
 *   Experiment         1 description, 3 time (double), 4 parameter, repeated, 5 metric, repeated
 *   HParamInfo         1 name, 4 type
 *   MetricInfo         1 name, 3 shown name; name: 2 tag
 *   SessionStartInfo   1 parameter, a map: 1 key, 2 value; 4 group, 5 time (double)
 *   SessionEndInfo     1 status, 2 time (double)
 *   google's Value     2 number (double), 3 text, 4 truth */
#ifndef SHOAL_NN_EVENTS_FIELDS_H
#define SHOAL_NN_EVENTS_FIELDS_H

#include "nn/events.h"
#include "nn/protobuf.h"

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_GRAPH = 4, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_TEXT = 8, SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { TYPE_FLOAT = 1, TYPE_DOUBLE = 2, TYPE_TEXT = 7 };
enum { CLASS_UNKNOWN = 0, CLASS_TENSOR = 2, CLASS_BLOBS = 3 };
enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1 };
enum { NODE_NAME = 1, NODE_KIND = 2, NODE_INPUT = 3, NODE_ATTRIBUTE = 5, MAP_KEY = 1, MAP_VALUE = 2 };
enum { ATTRIBUTE_LIST = 1, ATTRIBUTE_TEXT = 2, LIST_SHAPE = 7 };
enum { HPARAMS_EXPERIMENT = 2, HPARAMS_START = 3, HPARAMS_END = 4 };
enum { EXPERIMENT_ABOUT = 1, EXPERIMENT_TIME = 3, EXPERIMENT_PARAM = 4, EXPERIMENT_METRIC = 5 };
enum { PARAM_NAME = 1, PARAM_TYPE = 4, PARAM_IS_TEXT = 1, PARAM_IS_TRUTH = 2, PARAM_IS_NUMBER = 3 };
enum { METRIC_NAME = 1, METRIC_SHOWN = 3, METRIC_TAG = 2 };
enum { START_PARAM = 1, START_GROUP = 4, START_TIME = 5, END_STATUS = 1, END_TIME = 2 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { GOOGLE_NUMBER = 2, GOOGLE_TEXT = 3, GOOGLE_TRUTH = 4 };

/* A shape; a size of -1 is any. */
void shoal_events_shape(shoal_text *out, const int64_t *sizes, uint32_t count);
/* One value with what a plugin wants beside it; content may be NULL. */
void shoal_events_value(shoal_events *events, const char *tag, uint64_t step, const char *plugin,
                        int data_class, const shoal_text *content, const shoal_text *tensor);
/* The graph's bytes, as an event. */
void shoal_events_graph_bytes(shoal_events *events, const shoal_text *graph);

#endif
