/* pendulum.c: see pendulum.h. */
#include "agent/envs/pendulum/pendulum.h"

#include <math.h>

static const double DT = 0.05, TURN_MAX = 8;
static const float TORQUE_MAX = 2;

typedef struct pendulum {
  double angle, turn; /* from straight up */
  double torque;      /* the last one, for the picture */
} pendulum;

/* Python's remainder has the divisor's sign. */
static double normalised(double angle) {
  double rest = fmod(angle + M_PI, 2 * M_PI);
  if (rest < 0) rest += 2 * M_PI;
  return rest - M_PI;
}

/* Squares as pow has them, which are not always x * x to the last bit, as NumPy's are; the compiler must
 * not know that they are squares. */
static const volatile double TWO = 2;
static double square(double x) { return pow(x, TWO); }
static float square_of_float(float x) { return powf(x, (float)TWO); }

static void reset(void *state, shoal_pcg64 *random) {
  pendulum *p = state;
  p->angle = shoal_pcg64_uniform(random, -M_PI, M_PI);
  p->turn = shoal_pcg64_uniform(random, -1, 1);
  p->torque = 0;
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  (void)randoms;
  pendulum *all = states;
  for (uint32_t i = 0; i < count; i++) {
    pendulum *p = &all[i];
    float torque = (float)shoal_env_cut((double)actions[i], (double)-TORQUE_MAX, (double)TORQUE_MAX);
    double cost =
        square(normalised(p->angle)) + 0.1 * square(p->turn) + (double)(0.001f * square_of_float(torque));
    p->turn =
        shoal_env_cut(p->turn + (15.0 * sin(p->angle) + (double)(3.0f * torque)) * DT, -TURN_MAX, TURN_MAX);
    p->angle += p->turn * DT;
    p->torque = (double)torque;
    rewards[i] = (float)-cost;
    ended[i] = false;
  }
}

static void observe(const void *states, uint32_t count, float *out) {
  const pendulum *all = states;
  for (uint32_t i = 0; i < count; i++, out += 3) {
    out[0] = (float)cos(all[i].angle);
    out[1] = (float)sin(all[i].angle);
    out[2] = (float)all[i].turn;
  }
}

/* The torque is an arc around the hinge. */
static void draw_torque(double torque, shoal_canvas *canvas) {
  enum { POINTS = 12 };
  float arc[POINTS][2], length = (float)shoal_env_cut(torque, -2, 2);
  for (int i = 0; i < POINTS; i++) {
    float at = length * (float)i / (POINTS - 1);
    arc[i][0] = -0.35f * sinf(at);
    arc[i][1] = 0.35f * cosf(at);
  }
  shoal_canvas_line(canvas, SHOAL_INK_ACCENT, 0.05f, (const float(*)[2])arc, POINTS);
}

static void draw(const void *state, shoal_canvas *canvas) {
  const pendulum *p = state;
  float x = -(float)sin(p->angle), y = (float)cos(p->angle);
  shoal_canvas_view(canvas, -1.4f, 1.4f, -1.4f, 1.4f);
  shoal_canvas_disc(canvas, SHOAL_INK_GOAL, 0, 1.25f, 0.06f);
  shoal_canvas_line(canvas, SHOAL_INK_BODY, 0.2f, (const float[][2]){{0, 0}, {x, y}}, 2);
  draw_torque(p->torque, canvas);
  shoal_canvas_disc(canvas, SHOAL_INK_LINE, 0, 0, 0.06f);
}

const shoal_env_kind shoal_env_pendulum = {
    .name = "Pendulum-v1",
    .says = "swing a pendulum up with a weak motor, and hold it there",
    .observation = 3,
    .action_width = 1,
    .action_low = -2,
    .action_high = 2,
    .limit = 200,
    .solved = (double)NAN,
    .pace = 30,
    .bytes = sizeof(pendulum),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};
