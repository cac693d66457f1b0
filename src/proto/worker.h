/* worker.h: the core of a worker: asks, pulls, lets compute, pushes, tells.
 *
 * It asks the chief for units. For a unit it needs the weights of some version from every owner;
 * when they are there, the driver computes what the unit asks for, and the core cuts it into
 * slices for the owners, in the wire format, and reports to the chief. What a lossy format leaves
 * out is kept and sent with the next unit; a gradient that is not finite, which owners refuse in such a
 * format, is reported with a loss that is no number. In a guarded training a contribution is a pure function of its
 * unit: nothing is kept for the next (but with topk), contributions go under their leases, and the report
 * has their proof (proof.h). The next version is pulled before its unit is leased.
 *
 * Ownership: create, then destroy. Threads: one; computing is the driver's, wherever it likes. */
#ifndef SHOAL_PROTO_WORKER_H
#define SHOAL_PROTO_WORKER_H

#include "nn/tree.h"
#include "proto/mode.h"
#include "proto/outbox.h"
#include "proto/slice.h"

typedef struct shoal_worker shoal_worker;

typedef struct shoal_worker_config {
  const char *name;
  uint32_t units;            /* at a time: 1, or 2 to pull for one while the other is computed */
  uint32_t threads;          /* told to the chief */
  const shoal_slice *slices; /* borrowed; one an owner */
  uint32_t owners;
  size_t weights_count;
  shoal_mode mode;
  shoal_wire_format format; /* of contributions */
  bool guarded;
  uint64_t key; /* the chief's, told to it in HELLO: this is its auditor. 0: a worker as others */
} shoal_worker_config;

/* A unit whose weights are there. */
typedef struct shoal_work_unit {
  uint64_t lease;        /* the worker's own number for it: a chief that starts anew counts from 1 again */
  uint64_t round;        /* of all */
  uint32_t first, count; /* parts of it */
  uint64_t version;      /* of the weights */
  shoal_blob *carry;     /* recurrent state of these parts, one after the other; NULL: zeros */
} shoal_work_unit;

/* What came of it. */
typedef struct shoal_work_result {
  shoal_blob *gradient; /* weights_count floats: the sum over the parts, or the change of the weights */
  shoal_sums sums;      /* over the parts, in the order of nn/tree.h */
  uint64_t digest;      /* of the gradient */
  shoal_blob *carry;    /* the new recurrent state, or NULL */
} shoal_work_result;

shoal_status shoal_worker_create(shoal_worker **out, const shoal_worker_config *config, shoal_error *err);
void shoal_worker_destroy(shoal_worker *worker);

/* The HELLO of a worker that does not know yet what the job is. */
shoal_message shoal_worker_hello(const char *name, uint32_t threads, uint64_t key);

/* Connections: the chief's, and the owners' by slice. A lost chief loses all leases. A new one is told
 * HELLO, unless it was told before. */
void shoal_worker_chief(shoal_worker *worker, uint64_t peer, bool told);
void shoal_worker_owner(shoal_worker *worker, uint32_t slice, uint64_t peer);
void shoal_worker_gone(shoal_worker *worker, uint64_t peer);

void shoal_worker_receive(shoal_worker *worker, uint64_t peer, shoal_message *message);
shoal_outbox *shoal_worker_outbox(shoal_worker *worker);

/* The next unit that can be computed now; its carry is the caller's to release, *weights stays as it
 * is until it is done. */
bool shoal_worker_next(shoal_worker *worker, shoal_work_unit *out, const float **weights);
/* It is computed; the result's blobs are taken over. Every unit that was handed out must come back here;
 * false when nobody wants it any more. */
bool shoal_worker_done(shoal_worker *worker, uint64_t lease, const shoal_work_result *result);

#endif
