/* used_rows.h: which rows of the tables of embeddings a gradient has.
 *
 * A round uses some words of a vocabulary, and the gradient of all other rows is zero. A set of rows belongs to one
 * gradient vector and says which of its rows may be other than zero, so that what is made ready, added up and applied
 * are these rows and not the whole table. Adding zeros changes no bit, so neither does leaving them out.
 *
 * Ownership: create, then destroy. Threads: a set has one user at a time; reading is free. */
#ifndef SHOAL_NN_USED_ROWS_H
#define SHOAL_NN_USED_ROWS_H

#include "device/device.h"
#include "nn/graph.h"

typedef struct shoal_used_rows shoal_used_rows;

/* *out stays NULL where the graph has no such table. */
shoal_status shoal_used_rows_create(shoal_used_rows **out, const shoal_graph *graph, shoal_error *err);
void shoal_used_rows_destroy(shoal_used_rows *rows);

/* Call this when the gradient was written by anything but a pass with this set: the next clear or unite then treats every
 * row as used. NULL is fine. */
void shoal_used_rows_forget(shoal_used_rows *rows);
/* Makes the tables in the gradient zero; afterwards no row is in use. */
void shoal_used_rows_clear(shoal_used_rows *rows, const shoal_device *device, float *gradient);
/* Marks the rows of these tokens as used, in every table, of which each token is a row. `tokens` is the host's memory. */
void shoal_used_rows_use(shoal_used_rows *rows, const int32_t *tokens, size_t count);
/* The set of a sum becomes the union of the parts' sets. Rows that were in use before and are in no part become zero in
 * `sum`. The parts must be known: nothing was forgotten since they were cleared. */
void shoal_used_rows_unite(shoal_used_rows *rows, shoal_used_rows *const *parts, uint32_t parts_count,
                           const shoal_device *device, float *sum);

/* Goes through the parts of a run that are rows in use, neighbours together. Set *at to 0 before the first call. Returns
 * false when there are no more; otherwise *stretch is the next part. The run must be of a table with `by_rows`, and the
 * set must be known. With `rows` NULL the whole run is one part. */
bool shoal_used_rows_next(const shoal_used_rows *rows, const shoal_run *run, size_t *at, shoal_run *stretch);

#endif
