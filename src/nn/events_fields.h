/* events_fields.h: the numbers of the fields in TensorBoard's messages, and how a summary becomes a record: for the
 * files that write events (events.c, events_graph.c, events_hparams.c) alone. */
#ifndef SHOAL_NN_EVENTS_FIELDS_H
#define SHOAL_NN_EVENTS_FIELDS_H

#include "nn/events.h"
#include "nn/protobuf.h"

/* Event, Summary, its Value, and that one's SummaryMetadata and TensorProto. */
enum { EVENT_WALL_TIME = 1 /* double */, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_GRAPH = 4 };
enum { EVENT_SUMMARY = 5, SUMMARY_VALUE = 1 /* repeated */ };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2 /* float */, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 /* bytes */ };
enum { CLASS_UNKNOWN = 0, CLASS_TENSOR = 2, CLASS_BLOBS = 3 };
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
enum { PARAM_NAME = 1, PARAM_TYPE = 4, PARAM_IS_TEXT = 1, PARAM_IS_TRUTH = 2, PARAM_IS_NUMBER = 3 };
enum { METRIC_NAME = 1, METRIC_TAG = 2 /* of the name */, METRIC_SHOWN = 3 };
enum { START_PARAM = 1 /* a map */, START_GROUP = 4, START_TIME = 5 /* double */ };
enum { END_STATUS = 1, END_TIME = 2 /* double */, STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { GOOGLE_NUMBER = 2 /* double */, GOOGLE_TEXT = 3, GOOGLE_TRUTH = 4 };

/* Begins an event, with its wall time; write closes what is open in it and makes a record of it. */
shoal_protobuf *shoal_events_begin(shoal_events *events);
void shoal_events_write(shoal_events *events);

/* Begins an event with one tensor; the caller adds its data. shoal_events_write_tensor then adds the plugin's name and
 * `content`, which may be NULL, and writes the event. */
shoal_protobuf *shoal_events_begin_tensor(shoal_events *events, const char *tag, uint64_t step, int type,
                                          const int64_t *sizes, uint32_t count);
void shoal_events_write_tensor(shoal_events *events, const char *plugin, int data_class,
                               const shoal_text *content);
/* A shape as a field; a size of -1 is any. */
void shoal_events_shape(shoal_protobuf *out, uint32_t field, const int64_t *sizes, uint32_t count);

#endif
