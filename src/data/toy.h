/* toy.h: data made up on the spot, to try recurrent networks on.
 *
 * reverse: a sequence of random tokens, to be said backwards.
 * wave:    frequency, phase and amplitude of a sine, to be drawn step by step.
 *
 * Sample number k is a pure function of k: the same on every machine. */
#ifndef SHOAL_DATA_TOY_H
#define SHOAL_DATA_TOY_H

#include <stdint.h>

enum { SHOAL_TOY_TRAINING = 60000, SHOAL_TOY_TEST = 2000, SHOAL_TOY_WAVE_INPUTS = 3 };

/* Token t of the sample; the answer to step t is token steps - 1 - t. */
int32_t shoal_toy_token(uint64_t number, uint32_t step, uint32_t alphabet);

/* Frequency in periods over all steps (1 to 3), phase in half turns (-1 to 1), amplitude
 * (0.25 to 1). */
void shoal_toy_wave_input(uint64_t number, float out[SHOAL_TOY_WAVE_INPUTS]);
/* amplitude * sin(2 pi frequency step / steps + pi phase) */
float shoal_toy_wave(const float input[SHOAL_TOY_WAVE_INPUTS], uint32_t step, uint32_t steps);

#endif
