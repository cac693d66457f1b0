/* fabric.h: processes that were started together, each of which can send to every other: the
 * ranks of MPI (fabric_mpi.c), or threads in a test.
 *
 * All ranks make the same calls in the same order. A call returns when all that it sends may be
 * overwritten and all that it receives is there. A rank whose call failed takes no further part:
 * it closes, which ends the others too, since they would wait for it for ever.
 *
 * Ownership: the bytes are the caller's; close releases what the fabric holds.
 * Threads: one caller a rank. */
#ifndef SHOAL_CLUSTER_FABRIC_H
#define SHOAL_CLUSTER_FABRIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What goes to a rank or comes from one. Those that are sent are only read. */
typedef struct shoal_piece {
  uint32_t rank; /* another one than its own */
  void *bytes;
  size_t length; /* the same at both ends, above 0 */
} shoal_piece;

typedef struct shoal_fabric {
  void *self;
  uint32_t rank, size;
  /* Sends and receives all of these at once. What one rank sends to another is received in the
   * order in which it was listed. */
  shoal_status (*exchange)(void *self, const shoal_piece *sends, uint32_t sends_count,
                           const shoal_piece *receives, uint32_t receives_count, shoal_error *err);
  /* The same bytes for all, from rank 0. */
  shoal_status (*broadcast)(void *self, void *bytes, size_t length, shoal_error *err);
  /* The last call. With MPI, after a failure, it does not return: every rank ends, this one too. */
  void (*close)(void *self);
} shoal_fabric;

/* Joins the other ranks that mpirun started. What speaks MPI is not part of this program but a module
 * beside it, shoal-mpi.so, which is loaded here. A process that mpirun did not start is rank 0 of 1. */
shoal_status shoal_fabric_open_mpi(shoal_fabric *out, shoal_error *err);

/* What the module has to offer, under this name. The version is checked first: a module of another
 * build than the program could expect other tables. */
typedef struct shoal_fabric_module {
  uint32_t version;
  shoal_status (*open)(shoal_fabric *out, shoal_error *err);
} shoal_fabric_module;

enum { SHOAL_FABRIC_VERSION = 1 };
#define SHOAL_FABRIC_MODULE "shoal_fabric_module_mpi"

#endif
