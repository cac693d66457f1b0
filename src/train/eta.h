/* eta.h: how long a training still takes, told from what it took so far.
 *
 * After each epoch there is a pause in which nothing is learned: held-out samples are scored, the model is
 * saved. The pauses that are to come are counted in, so that the estimate does not jump when one begins; until
 * the first was seen, a guess stands in its place.
 *
 * Ownership: plain storage. Threads: one at a time. */
#ifndef SHOAL_TRAIN_ETA_H
#define SHOAL_TRAIN_ETA_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shoal_eta {
  double rounds, seconds; /* that rounds took; what is long ago counts less */
  double pause_s;         /* NaN: none was seen yet */
  double pause_rounds;    /* then the pause is taken to last as long as this many rounds */
  double last;            /* when the last round was over; NaN: there was none */
  bool pauses;            /* it was the last of its epoch */
} shoal_eta;

/* held_out: samples that are scored after an epoch; batch: samples of a round. */
void shoal_eta_start(shoal_eta *eta, uint64_t held_out, uint64_t batch);
/* `rounds` rounds were done since the last call. `now` is monotonic. */
void shoal_eta_round(shoal_eta *eta, uint64_t rounds, bool ends_epoch, double now);
/* Returns the seconds that are left when `rounds_left` rounds remain and an epoch has `epoch_rounds` of them;
 * NaN before the first round was timed. */
double shoal_eta_left(const shoal_eta *eta, uint64_t rounds_left, uint64_t epoch_rounds, double now);

#endif
