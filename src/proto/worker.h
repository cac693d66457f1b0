/* worker.h: the core of a worker: asks, pulls, lets compute, pushes, tells.
 *
 * It asks the chief for as many units as it has threads. For a unit it needs the weights of some
 * version from every owner; when they are there, the driver computes the gradient, and the core
 * cuts it into slices for the owners and reports to the chief.
 *
 * Ownership: create, then destroy. Threads: one; computing is the driver's, wherever it likes. */
#ifndef SHOAL_PROTO_WORKER_H
#define SHOAL_PROTO_WORKER_H

#include "nn/sums.h"
#include "proto/mode.h"
#include "proto/outbox.h"
#include "proto/slice.h"

typedef struct shoal_worker shoal_worker;

typedef struct shoal_worker_config {
  const char *name;
  uint32_t units;            /* at a time */
  const shoal_slice *slices; /* borrowed; one an owner */
  uint32_t owners;
  size_t weights_count;
  shoal_mode mode;
} shoal_worker_config;

/* A unit whose weights are there. */
typedef struct shoal_work_unit {
  uint64_t lease, round; /* the round of all */
  uint32_t shard;
  uint64_t version; /* of the weights */
} shoal_work_unit;

shoal_status shoal_worker_create(shoal_worker **out, const shoal_worker_config *config, shoal_error *err);
void shoal_worker_destroy(shoal_worker *worker);

/* Connections: the chief's, and the owners' by slice. A lost chief loses all leases. */
void shoal_worker_chief(shoal_worker *worker, uint64_t peer);
void shoal_worker_owner(shoal_worker *worker, uint32_t slice, uint64_t peer);
void shoal_worker_gone(shoal_worker *worker, uint64_t peer);

void shoal_worker_receive(shoal_worker *worker, uint64_t peer, shoal_message *message);
shoal_outbox *shoal_worker_outbox(shoal_worker *worker);

/* The next unit that can be computed now; *weights stays as it is until it is done. */
bool shoal_worker_next(shoal_worker *worker, shoal_work_unit *out, const float **weights);
/* It is computed: weights_count floats. Every unit that was handed out must come back here; false
 * when nobody wants it any more. */
bool shoal_worker_done(shoal_worker *worker, uint64_t lease, const float *gradient, const shoal_sums *sums,
                       uint64_t digest);
bool shoal_worker_ended(const shoal_worker *worker); /* the chief said END */

#endif
