/* event_log.h: what a training writes for TensorBoard beside its curves.
 *
 * At the start: the graph, the model's text, and the first held-out images, by their classes. After epochs, at most
 * about a hundred times in a run: how the weights and the last round's gradient are distributed, parameter by
 * parameter; what the model says of some held-out samples, as a table; or what a text model writes.
 *
 * The gradient is known where this process has made the round. In a cluster and under MPI others do: there are
 * only weights then. Nothing that is written changes the training.
 *
 * Ownership: everything is borrowed. Threads: the training's. */
#ifndef SHOAL_TRAIN_EVENT_LOG_H
#define SHOAL_TRAIN_EVENT_LOG_H

#include "nn/events.h"
#include "train/task.h"

/* The task is ready; held_out may be NULL. */
void shoal_event_log_start(shoal_events *events, const shoal_task *task, const shoal_source *held_out);
void shoal_event_log_epoch(shoal_events *events, const shoal_task *task, const shoal_source *held_out);

#endif
