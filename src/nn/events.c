/* events.c: events as TensorBoard's records.
 *
 *   offset  bytes  what
 *   0       8      n, the message's length, little-endian
 *   8       4      masked CRC-32C of those 8 bytes
 *   12      n      an Event message: events_fields.h
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
#include "nn/events_fields.h"

enum { NAMES_TRIED_MAX = 1000 };

struct shoal_events {
  shoal_text path;
  FILE *file;
  int error;                                                        /* errno of the first write that failed */
  shoal_text value, summary, event, record, tensor, part, metadata; /* kept for their memory */
};

static void add_u32(shoal_text *out, uint32_t value) {
  uint8_t bytes[4];
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (8 * i));
  shoal_text_add(out, bytes, sizeof bytes);
}

/* Stored checksums are turned and shifted, so that one over data with checksums in it
 * does not come out as something simple. */
static uint32_t masked_crc(const void *bytes, size_t length) {
  uint32_t crc = shoal_crc32c(0, bytes, length);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Writes events->event as a record. */
static void write_record(shoal_events *events) {
  shoal_text *record = &events->record;
  const shoal_text *event = &events->event;
  shoal_text_clear(record);
  add_u32(record, (uint32_t)event->length);
  add_u32(record, (uint32_t)((uint64_t)event->length >> 32));
  if (!record->failed) add_u32(record, masked_crc(record->bytes, record->length));
  shoal_text_add(record, event->bytes, event->length);
  add_u32(record, masked_crc(event->bytes, event->length));
  if (events->error) return;
  if (event->failed || record->failed)
    events->error = ENOMEM;
  else if (fwrite(record->bytes, 1, record->length, events->file) != record->length)
    events->error = errno;
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
  shoal_protobuf_double(&events->event, EVENT_WALL_TIME, shoal_clock_wall_seconds());
  shoal_protobuf_text(&events->event, EVENT_FILE_VERSION, "brain.Event:2");
  write_record(events);
  *out = events;
  return SHOAL_OK;
}

/* ---- values ---- */

/* Writes events->value as the only one of an event. */
static void write_value(shoal_events *events, uint64_t step) {
  shoal_text_clear(&events->summary);
  shoal_protobuf_message(&events->summary, SUMMARY_VALUE, &events->value);
  shoal_text_clear(&events->event);
  shoal_protobuf_double(&events->event, EVENT_WALL_TIME, shoal_clock_wall_seconds());
  shoal_protobuf_int(&events->event, EVENT_STEP, (int64_t)step);
  shoal_protobuf_message(&events->event, EVENT_SUMMARY, &events->summary);
  write_record(events);
}

void shoal_events_scalar(shoal_events *events, const char *tag, uint64_t step, double value) {
  shoal_text_clear(&events->value);
  shoal_protobuf_text(&events->value, VALUE_TAG, tag);
  shoal_protobuf_float(&events->value, VALUE_SIMPLE, (float)value);
  write_value(events, step);
}

void shoal_events_value(shoal_events *events, const char *tag, uint64_t step, const char *plugin,
                        int data_class, const shoal_text *content, const shoal_text *tensor) {
  shoal_text *data = &events->part, *metadata = &events->metadata;
  shoal_text_clear(data);
  shoal_protobuf_text(data, PLUGIN_NAME, plugin);
  if (content != NULL) shoal_protobuf_message(data, PLUGIN_CONTENT, content);
  shoal_text_clear(metadata);
  shoal_protobuf_message(metadata, METADATA_PLUGIN, data);
  if (data_class != CLASS_UNKNOWN) shoal_protobuf_int(metadata, METADATA_CLASS, data_class);
  shoal_text_clear(&events->value);
  shoal_protobuf_text(&events->value, VALUE_TAG, tag);
  shoal_protobuf_message(&events->value, VALUE_TENSOR, tensor);
  shoal_protobuf_message(&events->value, VALUE_METADATA, metadata);
  write_value(events, step);
}

void shoal_events_shape(shoal_text *out, const int64_t *sizes, uint32_t count) {
  shoal_text dim = {0};
  for (uint32_t i = 0; i < count; i++) {
    shoal_text_clear(&dim);
    shoal_protobuf_int(&dim, DIM_SIZE, sizes[i]);
    shoal_protobuf_message(out, SHAPE_DIM, &dim);
  }
  shoal_text_release(&dim);
}

/* Begins events->tensor. */
static void begin_tensor(shoal_events *events, int type, const int64_t *sizes, uint32_t count) {
  shoal_text_clear(&events->tensor);
  shoal_text_clear(&events->part);
  shoal_events_shape(&events->part, sizes, count);
  shoal_protobuf_int(&events->tensor, TENSOR_TYPE, type);
  shoal_protobuf_message(&events->tensor, TENSOR_SHAPE, &events->part);
}

/* ---- distributions ---- */

typedef struct buckets {
  double least, most, count[SHOAL_EVENTS_BUCKETS];
} buckets;

static bool fill_buckets(buckets *b, const float *values, size_t count) {
  *b = (buckets){.least = INFINITY, .most = -INFINITY};
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    b->least = fmin(b->least, values[i]);
    b->most = fmax(b->most, values[i]);
  }
  double width = (b->most - b->least) / SHOAL_EVENTS_BUCKETS;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    double place = width > 0 ? (values[i] - b->least) / width : SHOAL_EVENTS_BUCKETS;
    b->count[(int)fmin(place, SHOAL_EVENTS_BUCKETS - 1)]++;
  }
  return b->least <= b->most;
}

static void add_double(shoal_text *out, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  add_u32(out, (uint32_t)bits);
  add_u32(out, (uint32_t)(bits >> 32));
}

/* Rows of left edge, right edge, count. */
void shoal_events_histogram(shoal_events *events, const char *tag, uint64_t step, const float *values,
                            size_t count) {
  buckets b;
  if (!fill_buckets(&b, values, count)) return;
  begin_tensor(events, TYPE_DOUBLE, (const int64_t[]){SHOAL_EVENTS_BUCKETS, 3}, 2);
  shoal_protobuf_bytes_head(&events->tensor, TENSOR_CONTENT, SHOAL_EVENTS_BUCKETS * 3 * sizeof(double));
  for (int i = 0; i < SHOAL_EVENTS_BUCKETS; i++) {
    add_double(&events->tensor, b.least + (b.most - b.least) * i / SHOAL_EVENTS_BUCKETS);
    add_double(&events->tensor, b.least + (b.most - b.least) * (i + 1) / SHOAL_EVENTS_BUCKETS);
    add_double(&events->tensor, b.count[i]);
  }
  shoal_events_value(events, tag, step, "histograms", CLASS_TENSOR, NULL, &events->tensor);
}

/* ---- pictures, texts, graphs ---- */

void shoal_events_image(shoal_events *events, const char *tag, uint64_t step, uint32_t width, uint32_t height,
                        const shoal_text *png) {
  char number[16];
  begin_tensor(events, TYPE_TEXT, (const int64_t[]){3}, 1);
  snprintf(number, sizeof number, "%u", width);
  shoal_protobuf_text(&events->tensor, TENSOR_TEXT, number);
  snprintf(number, sizeof number, "%u", height);
  shoal_protobuf_text(&events->tensor, TENSOR_TEXT, number);
  shoal_protobuf_message(&events->tensor, TENSOR_TEXT, png);
  shoal_events_value(events, tag, step, "images", CLASS_BLOBS, NULL, &events->tensor);
}

void shoal_events_text(shoal_events *events, const char *tag, uint64_t step, const char *text) {
  begin_tensor(events, TYPE_TEXT, NULL, 0);
  shoal_protobuf_text(&events->tensor, TENSOR_TEXT, text);
  shoal_events_value(events, tag, step, "text", CLASS_TENSOR, NULL, &events->tensor);
}

void shoal_events_graph_bytes(shoal_events *events, const shoal_text *graph) {
  shoal_text_clear(&events->event);
  shoal_protobuf_double(&events->event, EVENT_WALL_TIME, shoal_clock_wall_seconds());
  shoal_protobuf_message(&events->event, EVENT_GRAPH, graph);
  write_record(events);
}

shoal_status shoal_events_flush(shoal_events *events, shoal_error *err) {
  if (!events->error && fflush(events->file) != 0) events->error = errno;
  if (events->error) return shoal_fail(err, SHOAL_IO, "%s: %s", events->path.bytes, strerror(events->error));
  return SHOAL_OK;
}

void shoal_events_destroy(shoal_events *events) {
  if (!events) return;
  if (events->file) fclose(events->file);
  shoal_text_release(&events->path);
  shoal_text_release(&events->value);
  shoal_text_release(&events->summary);
  shoal_text_release(&events->event);
  shoal_text_release(&events->record);
  shoal_text_release(&events->tensor);
  shoal_text_release(&events->part);
  shoal_text_release(&events->metadata);
  free(events);
}
