/* cartpole.c: see cartpole.h.
 *
 * Made for many at once: plain loops without a branch, which the compiler turns into vectors, for several instruction
 * sets. None of them changes a bit, since multiply and add are never fused, and the order of operations is that of the
 * original.
 *
 * A pole that falls doubles an error every few steps, so sine and cosine must be the C library's to the last bit, as
 * NumPy's are. Angles are small, and a few terms of the series with what rounding took away tell them all but
 * always: where the exact value is so near the middle between two doubles that the library (which promises less
 * than 0.52 units) might take the other one, it is asked. That is one in five. */
#include "agent/envs/cartpole/cartpole.h"

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

static const double GRAVITY = 9.8, POLE_MASS = 0.1, TOTAL_MASS = 0.1 + 1.0, HALF_LENGTH = 0.5, PUSH = 10.0,
                    TAU = 0.02, X_MAX = 2.4, START = 0.05, SERIES_MAX = 0.25;
/* Half a unit by these is how far from a double a value may be that rounds to it for certain. */
static const double SURE_SINE = 1.075, SURE_COSINE = 1.16;
enum { BLOCK = 256 };
static const double ANGLE_MAX = 12 * 2 * M_PI / 360, POLE_MASS_LENGTH = 0.1 * 0.5;

typedef struct cart {
  double x, speed, angle, turn;
} cart;

static void reset(void *state, shoal_pcg64 *random) {
  cart *c = state;
  c->x = shoal_pcg64_uniform(random, -START, START);
  c->speed = shoal_pcg64_uniform(random, -START, START);
  c->angle = shoal_pcg64_uniform(random, -START, START);
  c->turn = shoal_pcg64_uniform(random, -START, START);
}

/* ---- one step --------------------------------------------------------------------------- */

/* Returns whether they are what the C library would say. The first term that is left out is below 2^-60 of the sum.
 * Pairs of terms are added up side by side, since each operation would wait for the one before it otherwise. */
static inline __attribute__((always_inline)) bool series(double x, double *sine, double *cosine) {
  double x2 = x * x, x4 = x2 * x2;
  double s3 = x2 * (1.0 / 120) - 1.0 / 6, s7 = x2 * (1.0 / 362880) - 1.0 / 5040;
  double s11 = x2 * (1.0 / 6227020800.0) - 1.0 / 39916800;
  double c2 = x2 * (1.0 / 24) - 0.5, c6 = x2 * (1.0 / 40320) - 1.0 / 720;
  double c10 = x2 * (1.0 / 479001600.0) - 1.0 / 3628800;
  double s_small = x * x2 * (s3 + x4 * (s7 + x4 * s11)), c_small = x2 * (c2 + x4 * (c6 + x4 * c10));
  double s = x + s_small, c = 1.0 + c_small;
  double s_rest = s_small - (s - x), c_rest = c_small - (c - 1.0); /* exact: what rounding took away */
  *sine = s;
  *cosine = c;
  return (fabs(x) <= SERIES_MAX) & (s + s_rest * SURE_SINE == s) & (c + c_rest * SURE_COSINE == c);
}

static inline __attribute__((always_inline)) void move(cart *c, double force, double sine, double cosine) {
  double push = (force + POLE_MASS_LENGTH * (c->turn * c->turn) * sine) / TOTAL_MASS;
  double turning = (GRAVITY * sine - cosine * push) /
                   (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS));
  double moving = push - POLE_MASS_LENGTH * turning * cosine / TOTAL_MASS;
  c->x += TAU * c->speed;
  c->speed += TAU * moving;
  c->angle += TAU * c->turn;
  c->turn += TAU * turning;
}

static inline __attribute__((always_inline)) double force_of(float action) {
  return action == 1.0f ? PUSH : -PUSH;
}

/* ---- many ------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void move_block(cart *carts, uint32_t count,
                                                             const float *actions, bool *ended) {
  double sines[BLOCK], cosines[BLOCK];
  bool sure[BLOCK];
  for (uint32_t i = 0; i < count; i++) sure[i] = series(carts[i].angle, &sines[i], &cosines[i]);
  for (uint32_t i = 0; i < count; i++) {
    if (sure[i]) continue;
    sines[i] = sin(carts[i].angle);
    cosines[i] = cos(carts[i].angle);
  }
  for (uint32_t i = 0; i < count; i++) move(&carts[i], force_of(actions[i]), sines[i], cosines[i]);
  for (uint32_t i = 0; i < count; i++) /* also over where something is no number */
    ended[i] = !((fabs(carts[i].x) <= X_MAX) & (fabs(carts[i].angle) <= ANGLE_MAX));
}

static inline __attribute__((always_inline)) void move_all(cart *carts, uint32_t count, const float *actions,
                                                           bool *ended) {
  for (uint32_t done = 0; done < count; done += BLOCK)
    move_block(carts + done, count - done < BLOCK ? count - done : BLOCK, actions + done, ended + done);
}

static inline __attribute__((always_inline)) void round_all(const cart *carts, uint32_t count, float *out) {
  for (uint32_t i = 0; i < count; i++, out += 4) {
    out[0] = (float)carts[i].x;
    out[1] = (float)carts[i].speed;
    out[2] = (float)carts[i].angle;
    out[3] = (float)carts[i].turn;
  }
}

static void move_plain(cart *carts, uint32_t count, const float *actions, bool *ended) {
  move_all(carts, count, actions, ended);
}
static void round_plain(const cart *carts, uint32_t count, float *out) { round_all(carts, count, out); }

#ifdef __x86_64__
__attribute__((target("avx2"))) static void move_avx2(cart *carts, uint32_t count, const float *actions,
                                                      bool *ended) {
  move_all(carts, count, actions, ended);
}
__attribute__((target("avx2"))) static void round_avx2(const cart *carts, uint32_t count, float *out) {
  round_all(carts, count, out);
}
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) static void
move_avx512(cart *carts, uint32_t count, const float *actions, bool *ended) {
  move_all(carts, count, actions, ended);
}

/* The instruction set that the kernels have, so that one setting decides for all. */
static bool uses(const char *isa) {
  const shoal_kernels *kernels = shoal_kernels_get();
  return kernels && strcmp(kernels->name, isa) == 0;
}

static void move_many(cart *carts, uint32_t count, const float *actions, bool *ended) {
  if (uses("avx512"))
    move_avx512(carts, count, actions, ended);
  else if (uses("avx2"))
    move_avx2(carts, count, actions, ended);
  else
    move_plain(carts, count, actions, ended);
}

static void round_many(const cart *carts, uint32_t count, float *out) {
  if (uses("avx512") || uses("avx2"))
    round_avx2(carts, count, out);
  else
    round_plain(carts, count, out);
}
#else
static void move_many(cart *carts, uint32_t count, const float *actions, bool *ended) {
  move_plain(carts, count, actions, ended);
}
static void round_many(const cart *carts, uint32_t count, float *out) { round_plain(carts, count, out); }
#endif

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  (void)randoms;
  move_many(states, count, actions, ended);
  for (uint32_t i = 0; i < count; i++) rewards[i] = 1.0f;
}

static void observe(const void *states, uint32_t count, float *out) { round_many(states, count, out); }

/* ---- for people ------------------------------------------------------------------------- */

static void draw(const void *state, shoal_canvas *canvas) {
  const cart *c = state;
  float x = (float)c->x, tip_x = (float)sin(c->angle), tip_y = (float)cos(c->angle);
  shoal_canvas_view(canvas, -3.0f, 3.0f, -0.7f, 1.7f);
  shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.03f, (const float[][2]){{-2.4f, 0}, {2.4f, 0}}, 2);
  for (int side = -1; side <= 1; side += 2) {
    float end = 2.4f * (float)side;
    shoal_canvas_line(canvas, SHOAL_INK_FAINT, 0.04f, (const float[][2]){{end, -0.15f}, {end, 0.15f}}, 2);
  }
  shoal_canvas_box(canvas, SHOAL_INK_BODY, x - 0.3f, x + 0.3f, -0.15f, 0.15f);
  shoal_canvas_line(canvas, SHOAL_INK_ACCENT, 0.1f,
                    (const float[][2]){{x, 0.1f}, {x + 1.2f * tip_x, 0.1f + 1.2f * tip_y}}, 2);
  shoal_canvas_disc(canvas, SHOAL_INK_LINE, x, 0.1f, 0.05f);
}

const shoal_env_kind shoal_env_cartpole_v1 = {
    .name = "CartPole-v1",
    .says = "push a cart left or right so that the pole on it stays upright",
    .observation = 4,
    .choices = 2,
    .action_width = 1,
    .limit = 500,
    .solved = 475,
    .pace = 50,
    .bytes = sizeof(cart),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};

const shoal_env_kind shoal_env_cartpole_v0 = {
    .name = "CartPole-v0",
    .says = "the same for 200 steps",
    .observation = 4,
    .choices = 2,
    .action_width = 1,
    .limit = 200,
    .solved = 195,
    .pace = 50,
    .bytes = sizeof(cart),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};
