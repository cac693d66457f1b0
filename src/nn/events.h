/* events.h: metrics as a TensorBoard event file.
 *
 * A file is a run of records: length (u64), its masked CRC-32C, an Event message in
 * protocol-buffer encoding, and the message's masked CRC-32C.
 *
 * Ownership: create, then destroy. Threads: none. A write that fails is reported by the
 * next flush and by destroy's caller, never by stopping a training. */
#ifndef SHOAL_NN_EVENTS_H
#define SHOAL_NN_EVENTS_H

#include <stdint.h>

#include "base/status.h"

typedef struct shoal_events shoal_events;

/* Makes the folder and a new file events.out.tfevents.<time>.<host>.<pid> in it. */
shoal_status shoal_events_create(shoal_events **out, const char *folder, shoal_error *err);
void shoal_events_scalar(shoal_events *events, const char *tag, uint64_t step, double value);
shoal_status shoal_events_flush(shoal_events *events, shoal_error *err);
void shoal_events_destroy(shoal_events *events);

#endif
