/* events.h: what TensorBoard shows of a training, as its event file: curves, distributions, pictures, texts, the
 * graph of a network, and the settings of trials that are compared.
 *
 * Ownership: create, then destroy. Threads: none. A write that fails is reported by the
 * next flush and by destroy's caller, never by stopping a training. */
#ifndef SHOAL_NN_EVENTS_H
#define SHOAL_NN_EVENTS_H

#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "nn/graph.h"

typedef struct shoal_events shoal_events;

/* Makes the folder and a new file events.out.tfevents.<time>.<host>.<pid> in it. */
shoal_status shoal_events_create(shoal_events **out, const char *folder, shoal_error *err);
void shoal_events_scalar(shoal_events *events, const char *tag, uint64_t step, double value);
/* How values are distributed, in SHOAL_EVENTS_BUCKETS buckets of equal width; those that are not finite are left
 * out. */
enum { SHOAL_EVENTS_BUCKETS = 30 };
void shoal_events_histogram(shoal_events *events, const char *tag, uint64_t step, const float *values,
                            size_t count);
/* A picture, as the bytes of a PNG. */
void shoal_events_image(shoal_events *events, const char *tag, uint64_t step, uint32_t width, uint32_t height,
                        const shoal_text *png);
/* A text, read as Markdown. */
void shoal_events_text(shoal_events *events, const char *tag, uint64_t step, const char *text);
/* The network: nodes by layer, with their kinds, shapes and parameters. */
void shoal_events_graph(shoal_events *events, const shoal_graph *graph);

/* Trials that are compared (the plugin "hparams"). A folder has the experiment, and below it a folder for each
 * trial with its start, curves and end. */
typedef struct shoal_events_param {
  const char *name;
  bool is_text;
  double number; /* one of the two is read */
  const char *text;
} shoal_events_param;

/* Which parameters there are (their values do not count) and which tags are what trials are judged by. */
void shoal_events_experiment(shoal_events *events, const char *about, const shoal_events_param *params,
                             uint32_t params_count, const char *const *metrics, uint32_t metrics_count);
/* Times are seconds since 1970. */
void shoal_events_trial_start(shoal_events *events, const char *name, double time,
                              const shoal_events_param *params, uint32_t params_count);
void shoal_events_trial_end(shoal_events *events, double time, bool success);

shoal_status shoal_events_flush(shoal_events *events, shoal_error *err); /* SHOAL_FULL: the disk is */
void shoal_events_destroy(shoal_events *events);

#endif
