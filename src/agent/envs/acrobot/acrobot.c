/* acrobot.c: see acrobot.h. The motion is chaotic: a last bit that differs is seen some hundred steps
 * later. So the order of operations is that of the original ("book" equations, one Runge-Kutta step of the
 * fourth order), and sine, cosine and squares are the C library's, as NumPy has them. What reset drew are
 * floats, and what is seen of them then are NumPy's sines and cosines of floats. */
#include "agent/envs/acrobot/acrobot.h"

#include <math.h>

enum { DIMS = 4 };

static const double MASS = 1, LENGTH = 1, CENTRE = 0.5, INERTIA = 1, GRAVITY = 9.8, DT = 0.2, START = 0.1;
static const double TURN_MAX[2] = {4 * M_PI, 9 * M_PI};

/* angle[0] of the first link from straight down, angle[1] of the second from the first; and how fast. */
typedef struct links {
  double angle[2], turn[2];
  double fresh; /* 1 after reset */
} links;

/* The square as pow has it, which is not always x * x to the last bit; the compiler must not know that it
 * is one. */
static double square(double x) {
  static const volatile double TWO = 2;
  return pow(x, TWO);
}

/* The constants follow from one another as they do there: all are exact, so their order does not matter. */
static void derive(const double s[DIMS], double torque, double out[DIMS]) {
  double cosine = cos(s[1]), sine = sin(s[1]);
  double d1 = MASS * CENTRE * CENTRE +
              MASS * (LENGTH * LENGTH + CENTRE * CENTRE + 2 * LENGTH * CENTRE * cosine) + INERTIA + INERTIA;
  double d2 = MASS * (CENTRE * CENTRE + LENGTH * CENTRE * cosine) + INERTIA;
  double phi2 = MASS * CENTRE * GRAVITY * cos(s[0] + s[1] - M_PI / 2);
  double phi1 = -MASS * LENGTH * CENTRE * square(s[3]) * sine -
                2 * MASS * LENGTH * CENTRE * s[3] * s[2] * sine +
                (MASS * CENTRE + MASS * LENGTH) * GRAVITY * cos(s[0] - M_PI / 2) + phi2;
  double a2 = (torque + d2 / d1 * phi1 - MASS * LENGTH * CENTRE * square(s[2]) * sine - phi2) /
              (MASS * CENTRE * CENTRE + INERTIA - square(d2) / d1);
  out[0] = s[2];
  out[1] = s[3];
  out[2] = -(d2 * a2 + phi1) / d1;
  out[3] = a2;
}

static void add(const double a[DIMS], double share, const double b[DIMS], double out[DIMS]) {
  for (int i = 0; i < DIMS; i++) out[i] = a[i] + share * b[i];
}

static void integrate(double s[DIMS], double torque) {
  double k1[DIMS], k2[DIMS], k3[DIMS], k4[DIMS], at[DIMS];
  derive(s, torque, k1);
  add(s, DT / 2, k1, at);
  derive(at, torque, k2);
  add(s, DT / 2, k2, at);
  derive(at, torque, k3);
  add(s, DT, k3, at);
  derive(at, torque, k4);
  for (int i = 0; i < DIMS; i++) s[i] += DT / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
}

/* To [-pi, pi], a turn at a time; a step turns a few times at most, unless the state came from elsewhere. */
static double wrap(double angle) {
  if (!(fabs(angle) < 100)) return 0;
  while (angle > M_PI) angle -= 2 * M_PI;
  while (angle < -M_PI) angle += 2 * M_PI;
  return angle;
}

static void reset(void *state, shoal_pcg64 *random) {
  links *l = state;
  for (int i = 0; i < 2; i++) l->angle[i] = (double)(float)shoal_pcg64_uniform(random, -START, START);
  for (int i = 0; i < 2; i++) l->turn[i] = (double)(float)shoal_pcg64_uniform(random, -START, START);
  l->fresh = 1;
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  (void)randoms;
  links *all = states;
  for (uint32_t i = 0; i < count; i++) {
    links *l = &all[i];
    double s[DIMS] = {l->angle[0], l->angle[1], l->turn[0], l->turn[1]};
    integrate(s, (double)shoal_env_choice(actions[i], 3) - 1);
    for (int j = 0; j < 2; j++) {
      l->angle[j] = wrap(s[j]);
      l->turn[j] = shoal_env_cut(s[2 + j], -TURN_MAX[j], TURN_MAX[j]);
    }
    l->fresh = 0;
    ended[i] = -cos(l->angle[0]) - cos(l->angle[1] + l->angle[0]) > 1.0;
    rewards[i] = ended[i] ? 0.0f : -1.0f;
  }
}

/* NumPy's cosine and sine of floats, near zero. */
static float small_cosine(float x) {
  float square_of_x = x * x;
  float sum = fmaf(0x1.98e616p-16f, square_of_x, -0x1.6c06dcp-10f);
  sum = fmaf(sum, square_of_x, 0x1.55553cp-05f);
  sum = fmaf(sum, square_of_x, -0.5f);
  return fmaf(sum, square_of_x, 1);
}

static float small_sine(float x) {
  float square_of_x = x * x;
  float sum = fmaf(0x1.7d3bbcp-19f, square_of_x, -0x1.a06bbap-13f);
  sum = fmaf(sum, square_of_x, 0x1.11119ap-07f);
  sum = fmaf(sum, square_of_x, -0x1.555556p-03f);
  return fmaf(sum * square_of_x, x, x);
}

static void observe(const void *states, uint32_t count, float *out) {
  const links *all = states;
  for (uint32_t i = 0; i < count; i++, out += 6) {
    const links *l = &all[i];
    for (int j = 0; j < 2; j++) {
      double angle = l->angle[j];
      out[2 * j] = l->fresh == 1 ? small_cosine((float)angle) : (float)cos(angle);
      out[2 * j + 1] = l->fresh == 1 ? small_sine((float)angle) : (float)sin(angle);
      out[4 + j] = (float)l->turn[j];
    }
  }
}

static void draw(const void *state, shoal_canvas *canvas) {
  const links *l = state;
  double both = l->angle[0] + l->angle[1];
  float x1 = (float)sin(l->angle[0]), y1 = -(float)cos(l->angle[0]);
  float x2 = x1 + (float)sin(both), y2 = y1 - (float)cos(both);
  shoal_canvas_view(canvas, -2.4f, 2.4f, -2.3f, 2.3f);
  shoal_canvas_line(canvas, SHOAL_INK_GOAL, 0.03f, (const float[][2]){{-2.2f, 1}, {2.2f, 1}}, 2);
  shoal_canvas_line(canvas, SHOAL_INK_BODY, 0.2f, (const float[][2]){{0, 0}, {x1, y1}}, 2);
  shoal_canvas_line(canvas, SHOAL_INK_ACCENT, 0.2f, (const float[][2]){{x1, y1}, {x2, y2}}, 2);
  shoal_canvas_disc(canvas, SHOAL_INK_LINE, 0, 0, 0.1f);
  shoal_canvas_disc(canvas, SHOAL_INK_LINE, x1, y1, 0.1f);
}

const shoal_env_kind shoal_env_acrobot = {
    .name = "Acrobot-v1",
    .says = "swing two links up with a motor between them",
    .observation = 6,
    .choices = 3,
    .action_width = 1,
    .limit = 500,
    .solved = -100,
    .pace = 15,
    .bytes = sizeof(links),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};
