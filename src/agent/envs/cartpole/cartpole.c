/* cartpole.c: see cartpole.h.
 *
 * Made for many at once: plain loops without a branch, which the compiler turns into vectors, for several
 * instruction sets. None of them changes a bit, since multiply and add are never fused, and the order of
 * operations is that of the original.
 *
 * A pole that falls doubles an error every few steps, so sine and cosine must be the C library's to the
 * last bit, as NumPy's are. Angles are small, and a few terms of the series with what rounding took away
 * tell them all but always: where the exact value is so near the middle between two doubles that the
 * library (whose error is below 0.52 units) might take the other one, it is asked: one time in ten. */
#include "agent/envs/cartpole/cartpole.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/kernels.h"

static const double GRAVITY = 9.8, POLE_MASS = 0.1, TOTAL_MASS = 0.1 + 1.0, HALF_LENGTH = 0.5, PUSH = 10.0,
                    TAU = 0.02, X_MAX = 2.4, START = 0.05, SERIES_MAX = 0.25;
/* How wrong the C library may be beyond half a unit in the last place, and how wrong a small term is by
 * itself. */
static const double LIBRARY = 0.02 * 0x1p-52, TERM = 1.5 * 0x1p-52;
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

/* Sine and cosine, and whether the C library is to be asked, which may say something else. The first term
 * that is left out is below 2^-60 of the sum. Pairs of terms are added up side by side, since each
 * operation would wait for the one before it otherwise. */
typedef struct waves {
  double sine, cosine;
  bool ask;
} waves;

static inline __attribute__((always_inline)) waves series(double x) {
  double x2 = x * x, x4 = x2 * x2;
  double s3 = x2 * (1.0 / 120) - 1.0 / 6, s7 = x2 * (1.0 / 362880) - 1.0 / 5040;
  double s11 = x2 * (1.0 / 6227020800.0) - 1.0 / 39916800;
  double c2 = x2 * (1.0 / 24) - 0.5, c6 = x2 * (1.0 / 40320) - 1.0 / 720;
  double c10 = x2 * (1.0 / 479001600.0) - 1.0 / 3628800;
  double s_small = x * x2 * (s3 + x4 * (s7 + x4 * s11)), c_small = x2 * (c2 + x4 * (c6 + x4 * c10));
  double s = x + s_small, c = 1.0 + c_small;
  double s_rest = s_small - (s - x), c_rest = c_small - (c - 1.0); /* exact: what rounding took away */
  double s_wrong = fabs(s) * LIBRARY + fabs(s_small) * TERM, c_wrong = LIBRARY / 2 - c_small * TERM;
  bool sure = (fabs(x) <= SERIES_MAX) & (s + (s_rest + s_wrong) == s) & (s + (s_rest - s_wrong) == s) &
              (c + (c_rest + c_wrong) == c) & (c + (c_rest - c_wrong) == c);
  return (waves){s, c, !sure};
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

/* The numbers of those that are marked with 1. Without branches, which could not be foreseen; and the marks
 * are as wide as what they come from, which makes for simpler vectors. */
static inline __attribute__((always_inline)) uint32_t list(const uint64_t *marked, uint32_t count,
                                                           uint16_t *out) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) {
    out[found] = (uint16_t)i;
    found += (uint32_t)marked[i];
  }
  return found;
}

static inline __attribute__((always_inline)) void move_block(cart *carts, uint32_t count,
                                                             const float *actions, bool *ended) {
  double sines[BLOCK], cosines[BLOCK];
  uint64_t ask[BLOCK];
  uint16_t asked[BLOCK];
  for (uint32_t i = 0; i < count; i++) {
    waves w = series(carts[i].angle);
    sines[i] = w.sine;
    cosines[i] = w.cosine;
    ask[i] = w.ask;
  }
  for (uint32_t a = 0, n = list(ask, count, asked); a < n; a++) {
    double angle = carts[asked[a]].angle;
    sines[asked[a]] = sin(angle);
    cosines[asked[a]] = cos(angle);
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

typedef enum isa { UNKNOWN, PLAIN, AVX2, AVX512 } isa;

/* The instruction set that the kernels have, so that one setting decides for all. */
static isa isa_of_kernels(void) {
  static _Atomic int known = UNKNOWN;
  int found = atomic_load_explicit(&known, memory_order_relaxed);
  if (found != UNKNOWN) return (isa)found;
  const shoal_kernels *kernels = shoal_kernels_get();
  const char *name = kernels ? kernels->name : "";
  found = strcmp(name, "avx512") == 0 ? AVX512 : strcmp(name, "avx2") == 0 ? AVX2 : PLAIN;
  atomic_store_explicit(&known, found, memory_order_relaxed);
  return (isa)found;
}

static void move_many(cart *carts, uint32_t count, const float *actions, bool *ended) {
  switch (isa_of_kernels()) {
  case AVX512: move_avx512(carts, count, actions, ended); break;
  case AVX2: move_avx2(carts, count, actions, ended); break;
  default: move_plain(carts, count, actions, ended); break;
  }
}

static void round_many(const cart *carts, uint32_t count, float *out) {
  if (isa_of_kernels() == PLAIN)
    round_plain(carts, count, out);
  else
    round_avx2(carts, count, out);
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
