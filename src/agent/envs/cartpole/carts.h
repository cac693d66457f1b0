/* carts.h: the state of CartPole and its one step, for the files of this folder.
 *
 * The order of operations is the original's, and multiply and add are never fused in it: a pole that falls
 * doubles an error every few steps. Threads: any, on carts of their own. */
#ifndef SHOAL_AGENT_ENVS_CARTPOLE_CARTS_H
#define SHOAL_AGENT_ENVS_CARTPOLE_CARTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cart {
  double x, speed, angle, turn;
} cart;

enum { CARTS_BLOCK = 256 }; /* that are moved together, and stay in the nearest cache meanwhile */

static const double GRAVITY = 9.8, POLE_MASS = 0.1, TOTAL_MASS = 0.1 + 1.0, HALF_LENGTH = 0.5, PUSH = 10.0,
                    TAU = 0.02, X_MAX = 2.4, POLE_MASS_LENGTH = 0.1 * 0.5, ANGLE_MAX = 12 * 2 * M_PI / 360;

/* How far the C library's sine and cosine may be from the exact value beyond half a unit in the last place,
 * for angles up to SERIES_MAX. glibc's were compared with a longer arithmetic: sines were at most 0.0225
 * units off (without fused instructions), below SINE_SMALL less than half of the angle's square, and
 * cosines 0.0013. */
static const double SERIES_MAX = 0.25, SINE_SMALL = 0.125;
static const double SINE_UNITS = 0.03 * 0x1p-55, COSINE_UNITS = 0.003 * 0x1p-53;
/* A small sine is x less a term of about x^3 / 6. The library rounds five times on the way to that term,
 * which is less than 2.5 units of it (1.6 were seen), and then once more. */
static const double SINE_TERM = 2.5 * 0x1p-52;

static inline __attribute__((always_inline)) double cart_force(float action) {
  return action == 1.0f ? PUSH : -PUSH;
}

static inline __attribute__((always_inline)) void cart_move(cart *c, double force, double sine,
                                                            double cosine) {
  double push = (force + POLE_MASS_LENGTH * (c->turn * c->turn) * sine) / TOTAL_MASS;
  double turning = (GRAVITY * sine - cosine * push) /
                   (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS));
  double moving = push - POLE_MASS_LENGTH * turning * cosine / TOTAL_MASS;
  c->x += TAU * c->speed;
  c->speed += TAU * moving;
  c->angle += TAU * c->turn;
  c->turn += TAU * turning;
}

/* Also over where something is no number. */
static inline __attribute__((always_inline)) bool cart_ended(const cart *c) {
  return !((fabs(c->x) <= X_MAX) & (fabs(c->angle) <= ANGLE_MAX));
}

#ifdef __x86_64__
/* For processors with AVX-512 (F, DQ, BW and VL): as many as eight divides are moved, any number is rounded
 * to floats. `seen`: of those that are moved, rounded. */
void shoal_carts_move_avx512(cart *carts, uint32_t count, const float *actions, bool *ended, float *seen);
void shoal_carts_round_avx512(const cart *carts, uint32_t count, float *out);
#endif

#endif
