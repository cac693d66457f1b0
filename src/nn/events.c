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

void shoal_events_write(shoal_events *events) {
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

shoal_protobuf *shoal_events_begin(shoal_events *events) {
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
  shoal_protobuf_text(shoal_events_begin(events), EVENT_FILE_VERSION, "brain.Event:2");
  shoal_events_write(events);
  *out = events;
  return SHOAL_OK;
}

/* ---- values ---- */

/* Begins an event whose summary has one value. */
static shoal_protobuf *begin_value(shoal_events *events, const char *tag, uint64_t step) {
  shoal_protobuf *out = shoal_events_begin(events);
  shoal_protobuf_int(out, EVENT_STEP, (int64_t)step);
  shoal_protobuf_open(out, EVENT_SUMMARY);
  shoal_protobuf_open(out, SUMMARY_VALUE);
  shoal_protobuf_text(out, VALUE_TAG, tag);
  return out;
}

void shoal_events_scalar(shoal_events *events, const char *tag, uint64_t step, double value) {
  shoal_protobuf_float(begin_value(events, tag, step), VALUE_SIMPLE, (float)value);
  shoal_events_write(events);
}

void shoal_events_shape(shoal_protobuf *out, uint32_t field, const int64_t *sizes, uint32_t count) {
  shoal_protobuf_open(out, field);
  for (uint32_t i = 0; i < count; i++) {
    shoal_protobuf_open(out, SHAPE_DIM);
    shoal_protobuf_int(out, DIM_SIZE, sizes[i]);
    shoal_protobuf_close(out, 1);
  }
  shoal_protobuf_close(out, 1);
}

shoal_protobuf *shoal_events_begin_tensor(shoal_events *events, const char *tag, uint64_t step, int type,
                                          const int64_t *sizes, uint32_t count) {
  shoal_protobuf *out = begin_value(events, tag, step);
  shoal_protobuf_open(out, VALUE_TENSOR);
  shoal_protobuf_int(out, TENSOR_TYPE, type);
  shoal_events_shape(out, TENSOR_SHAPE, sizes, count);
  return out;
}

void shoal_events_write_tensor(shoal_events *events, const char *plugin, int data_class,
                               const shoal_text *content) {
  shoal_protobuf *out = &events->event;
  shoal_protobuf_close(out, 1);
  shoal_protobuf_open(out, VALUE_METADATA);
  shoal_protobuf_open(out, METADATA_PLUGIN);
  shoal_protobuf_text(out, PLUGIN_NAME, plugin);
  if (content != NULL) shoal_protobuf_bytes(out, PLUGIN_CONTENT, content);
  shoal_protobuf_close(out, 1);
  if (data_class != CLASS_UNKNOWN) shoal_protobuf_int(out, METADATA_CLASS, data_class);
  shoal_events_write(events);
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

/* Rows of left edge, right edge, count. */
void shoal_events_histogram(shoal_events *events, const char *tag, uint64_t step, const float *values,
                            size_t count) {
  buckets b;
  if (!fill_buckets(&b, values, count)) return;
  double range = b.most - b.least;
  const int64_t sizes[] = {SHOAL_EVENTS_BUCKETS, 3};
  shoal_protobuf *out = shoal_events_begin_tensor(events, tag, step, TYPE_DOUBLE, sizes, 2);
  shoal_protobuf_bytes_head(out, TENSOR_CONTENT, SHOAL_EVENTS_BUCKETS * 3 * sizeof(double));
  for (int i = 0; i < SHOAL_EVENTS_BUCKETS; i++) {
    const double row[] = {b.least + range * i / SHOAL_EVENTS_BUCKETS,
                          b.least + range * (i + 1) / SHOAL_EVENTS_BUCKETS, b.count[i]};
    shoal_text_add(&out->text, row, sizeof row);
  }
  shoal_events_write_tensor(events, "histograms", CLASS_TENSOR, NULL);
}

/* ---- pictures, texts ---- */

void shoal_events_image(shoal_events *events, const char *tag, uint64_t step, uint32_t width, uint32_t height,
                        const shoal_text *png) {
  char number[16];
  shoal_protobuf *out = shoal_events_begin_tensor(events, tag, step, TYPE_TEXT, (const int64_t[]){3}, 1);
  snprintf(number, sizeof number, "%u", width);
  shoal_protobuf_text(out, TENSOR_TEXT, number);
  snprintf(number, sizeof number, "%u", height);
  shoal_protobuf_text(out, TENSOR_TEXT, number);
  shoal_protobuf_bytes(out, TENSOR_TEXT, png);
  shoal_events_write_tensor(events, "images", CLASS_BLOBS, NULL);
}

void shoal_events_text(shoal_events *events, const char *tag, uint64_t step, const char *text) {
  shoal_protobuf *out = shoal_events_begin_tensor(events, tag, step, TYPE_TEXT, NULL, 0);
  shoal_protobuf_text(out, TENSOR_TEXT, text);
  shoal_events_write_tensor(events, "text", CLASS_TENSOR, NULL);
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
  shoal_text_release(&events->event.text);
  free(events);
}
