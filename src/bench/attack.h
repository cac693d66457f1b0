/* attack.h: a training in one process with some bad workers, to see what defends it.
 *
 * There are 14 workers, 10 honest and 4 bad. A round has a part for each: 32 samples of the worker's
 * own share of the data. The bad ones send something else than their part's gradient; a rule of
 * proto/aggregate.h makes one gradient of all 14, and a momentum optimiser applies it. With audits, units
 * are computed again as proto/trust.h draws them and compared bit for bit: whose differs is banned,
 * others compute its parts from then on, and where it was trusted by then the training goes back to
 * the newest safe version from before its last unit that was found right. The last round is audited as a whole.
 *
 * The attacks:
 *   none     the bad ones are honest
 *   noise    uniform noise, with 5 times the norm of the honest gradient
 *   flip     -3 times the honest gradient
 *   labels   the gradient with label y turned into 9 - y
 *   alie     a little is enough (Baruch et al. 2019): per coordinate the honest mean less 1.5 deviations
 *   inner    inner-product manipulation (Xie et al. 2020): -0.5 times the honest mean
 *   copy     what it had sent in its first round, again and again
 *   traitor  honest for the first quarter of the training and until it is trusted, then as flip
 *
 * Data is dealt evenly, or unevenly: sorted by class and cut into 28 pieces, two for each worker.
 * The same case gives the same bits, always.
 *
 * Ownership: open, then close. Threads: shoal_attack_run may be called by many at once. */
#ifndef SHOAL_BENCH_ATTACK_H
#define SHOAL_BENCH_ATTACK_H

#include <signal.h>

#include "data/dataset.h"
#include "nn/graph.h"
#include "proto/aggregate.h"

enum { SHOAL_ATTACK_WORKERS = 14, SHOAL_ATTACK_BAD = 4, SHOAL_ATTACK_ROWS = 32 };

typedef enum shoal_attack_kind {
  SHOAL_ATTACK_NONE,
  SHOAL_ATTACK_NOISE,
  SHOAL_ATTACK_FLIP,
  SHOAL_ATTACK_LABELS,
  SHOAL_ATTACK_ALIE,
  SHOAL_ATTACK_INNER,
  SHOAL_ATTACK_COPY,
  SHOAL_ATTACK_TRAITOR,
  SHOAL_ATTACKS
} shoal_attack_kind;

extern const char *const shoal_attack_names[SHOAL_ATTACKS];

/* A data set and the network that is trained on it. */
typedef struct shoal_attack_data {
  shoal_model *model;
  shoal_graph *graph;
  shoal_dataset *dataset;
  shoal_source train, test;
  uint32_t *dealt[2]; /* positions of samples, worker after worker: even, uneven */
  uint32_t each;      /* samples of a worker */
} shoal_attack_data;

shoal_status shoal_attack_open(shoal_attack_data *out, const char *data, const char *data_dir,
                               shoal_error *err);
void shoal_attack_close(shoal_attack_data *data);

typedef struct shoal_attack_case {
  shoal_attack_kind attack;
  shoal_rule rule;
  bool audits, uneven;
  uint64_t epochs, seed;
} shoal_attack_case;

typedef struct shoal_attack_result {
  double accuracy; /* on the test part */
  uint64_t rounds; /* that were computed, those done again included */
  uint64_t units;  /* computed by workers, and those audited of them */
  uint64_t audits;
  uint64_t lies_kept;   /* contributions of liars in the weights at the end */
  uint64_t went_back;   /* times, */
  uint64_t rounds_lost; /* and the rounds that were done again for it */
  uint32_t banned;      /* workers, of them honest ones: */
  uint32_t banned_honest;
  char sha256[65]; /* of the weights */
} shoal_attack_result;

/* SHOAL_STOPPED when *stop is not 0. */
shoal_status shoal_attack_run(const shoal_attack_data *data, const shoal_attack_case *what,
                              const volatile sig_atomic_t *stop, shoal_attack_result *out, shoal_error *err);

#endif
