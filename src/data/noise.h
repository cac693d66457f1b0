/* noise.h: made-up samples of whatever shape a model takes, to measure speed with.
 *
 * There is nothing to learn from them. Sample number k is a pure function of k, the same on every
 * machine, copied out of a small table of random numbers: a fetch costs little, and there can be as
 * many samples as a measurement needs.
 *
 * Ownership: create, then destroy. Threads: any may fetch. */
#ifndef SHOAL_DATA_NOISE_H
#define SHOAL_DATA_NOISE_H

#include "nn/model.h"
#include "nn/source.h"

#define SHOAL_NOISE_SAMPLES_MAX ((uint64_t)1 << 50)

typedef struct shoal_noise shoal_noise;

shoal_status shoal_noise_create(shoal_noise **out, const shoal_model *model, shoal_error *err);
void shoal_noise_destroy(shoal_noise *noise);

/* Samples first .. first + n - 1. */
void shoal_noise_fetch(const shoal_noise *noise, uint64_t first, uint32_t n, const shoal_batch *into);

#endif
