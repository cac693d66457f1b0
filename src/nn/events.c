/* events.c: scalars as TensorBoard's records.
 *
 *   offset  bytes  what
 *   0       8      n, the message's length, little-endian
 *   8       4      masked CRC-32C of those 8 bytes
 *   12      n      an Event message
 *   12 + n  4      masked CRC-32C of the message
 *
 * Event: 1 wall time (double), 2 step, 3 file version (text), 5 summary.
 * Summary: 1 value. Value: 1 tag, 2 simple value (float). */
#include "nn/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "nn/protobuf.h"

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum { NAMES_TRIED_MAX = 1000 };

struct shoal_events {
  shoal_text path;
  FILE *file;
  int error;                                /* errno of the first write that failed */
  shoal_text value, summary, event, record; /* kept for their memory */
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

void shoal_events_scalar(shoal_events *events, const char *tag, uint64_t step, double value) {
  shoal_text_clear(&events->value);
  shoal_protobuf_text(&events->value, VALUE_TAG, tag);
  shoal_protobuf_float(&events->value, VALUE_SIMPLE, (float)value);
  shoal_text_clear(&events->summary);
  shoal_protobuf_message(&events->summary, SUMMARY_VALUE, &events->value);
  shoal_text_clear(&events->event);
  shoal_protobuf_double(&events->event, EVENT_WALL_TIME, shoal_clock_wall_seconds());
  shoal_protobuf_int(&events->event, EVENT_STEP, (int64_t)step);
  shoal_protobuf_message(&events->event, EVENT_SUMMARY, &events->summary);
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
  free(events);
}
