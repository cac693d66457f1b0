/* job.h: what a simulated training computes, and what one machine would have made of it.
 *
 * Most lives need no neural network: a unit's gradient is a pure function of the round, the part
 * and the weights, made of hashes. Some compute real ones with a trainer. Either way the job knows
 * the weights of every version as one machine makes them, where the mode promises to equal it.
 *
 * In a life with `counts` one weight of every slice is a counter: minus the sum of a number that each
 * part has. A part's gradient there is its number, and one part adds the counter itself: so when every
 * part is in a round once, and only then, the sum is zero and the counter stays, whatever the rate. In
 * async mode, where a round is one contribution, the counter goes down by the round's number and the
 * one behind it by one, both times the rate: which round it was is their ratio.
 *
 * Ownership: create, then destroy. Threads: one. */
#ifndef SHOAL_SIM_JOB_H
#define SHOAL_SIM_JOB_H

#include "nn/trainer.h"
#include "nn/tree.h"
#include "proto/mode.h"
#include "proto/slice.h"
#include "proto/worker.h"

enum { SHOAL_SIM_OWNERS_MAX = 64 };

typedef enum shoal_sim_net {
  SHOAL_SIM_CHEAP,
  SHOAL_SIM_DENSE,
  SHOAL_SIM_CLIPPED,
  SHOAL_SIM_RECURRENT
} shoal_sim_net;

typedef struct shoal_sim_job_config {
  uint64_t seed;
  shoal_sim_net net;
  shoal_mode mode;
  shoal_wire_format format;
  uint32_t owners;
  uint32_t parts; /* with CHEAP; a trainer has its own */
  uint64_t rounds, epochs;
  uint32_t recipe; /* with CHEAP: 0 plain descent, 1 momentum, 2 Adam, 3 momentum with clipping */
  bool carry;      /* with CHEAP: recurrent state */
  bool light;      /* no reference: for measuring, and where nothing is equal anyway */
} shoal_sim_job_config;

typedef struct shoal_sim_job {
  shoal_sim_job_config config;
  shoal_model *model;
  shoal_graph *graph;
  size_t weights_count;
  shoal_slice slices[SHOAL_SIM_OWNERS_MAX];
  uint32_t parts;
  uint64_t rounds, end; /* in an epoch, in all */
  uint32_t slots;       /* vectors of the optimiser's state that an owner keeps */
  size_t carry_floats;
  bool counts; /* there are counters */
  bool exact;  /* versions equal one machine's: `versions` and `sums` are there */
  float *first;
  float *versions;       /* end + 1 vectors */
  shoal_sums *sums;      /* of every round */
  shoal_sums *part_sums; /* of the unit at hand */
  shoal_trainer *trainer;
  shoal_source source;
  float *scratch; /* a vector a part of a unit; the sum of a unit is in the first */
} shoal_sim_job;

shoal_sim_job *shoal_sim_job_create(const shoal_sim_job_config *config);
void shoal_sim_job_destroy(shoal_sim_job *job);

/* Computes a unit; the result's blobs are the caller's. */
shoal_work_result shoal_sim_job_compute(shoal_sim_job *job, const shoal_work_unit *unit,
                                        const float *weights);

/* The place of a slice's counter; false when the slice has none. */
bool shoal_sim_job_counter(const shoal_sim_job *job, uint32_t slice, size_t *place);
/* What the counter is after every round. */
float shoal_sim_job_counted(const shoal_sim_job *job);
/* In async mode, where it is followed by a second one: which round changed the two by this much. */
double shoal_sim_job_round(double change, double change_of_second);

/* A hash of floats, by their bits. */
uint64_t shoal_sim_hash(const float *values, size_t count);

#endif
