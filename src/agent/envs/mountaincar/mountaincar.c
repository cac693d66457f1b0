/* mountaincar.c: see mountaincar.h.
 *
 * The continuous one keeps its state in single precision, except for the first step of an episode: what
 * reset drew is a double, and NumPy goes on with the precision that it finds. Constants take that
 * precision, too. */
#include "agent/envs/mountaincar/mountaincar.h"

#include <math.h>

static const double X_MIN = -1.2, X_MAX = 0.6, SPEED_MAX = 0.07, GRAVITY = 0.0025;
static const double PUSH = 0.001, GOAL = 0.5;               /* with choices */
static const double POWER = 0.0015, CONTINUOUS_GOAL = 0.45; /* continuous */

typedef struct car {
  double x, speed;
} car;

typedef struct throttled {
  car car;
  double fresh; /* 1 after reset: x is a double */
} throttled;

static void reset(void *state, shoal_pcg64 *random) {
  *(car *)state = (car){.x = shoal_pcg64_uniform(random, -0.6, -0.4)};
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  (void)randoms;
  car *cars = states;
  for (uint32_t i = 0; i < count; i++) {
    car *c = &cars[i];
    double push = (double)shoal_env_choice(actions[i], 3) - 1;
    c->speed = shoal_env_cut(c->speed + (push * PUSH + cos(3 * c->x) * -GRAVITY), -SPEED_MAX, SPEED_MAX);
    c->x = shoal_env_cut(c->x + c->speed, X_MIN, X_MAX);
    if (c->x == X_MIN && c->speed < 0) c->speed = 0;
    ended[i] = c->x >= GOAL && c->speed >= 0;
    rewards[i] = -1.0f;
  }
}

static void observe_car(const car *c, float out[2]) {
  out[0] = (float)c->x;
  out[1] = (float)c->speed;
}

static void observe(const void *states, uint32_t count, float *out) {
  const car *cars = states;
  for (uint32_t i = 0; i < count; i++) observe_car(&cars[i], out + 2 * i);
}

/* ---- continuous ------------------------------------------------------------------------- */

static void reset_throttled(void *state, shoal_pcg64 *random) {
  throttled *t = state;
  reset(&t->car, random);
  t->fresh = 1;
}

/* Throttle within its bounds is a float and makes a float of what it is multiplied with; a bound that it is
 * cut to is a double. */
static double acceleration(float throttle, double slope) {
  if (throttle > 1.0f) return POWER - slope;
  if (!(throttle >= -1.0f)) return -POWER - slope;
  return (double)(throttle * (float)POWER - (float)slope);
}

static bool drive_double(car *c, float throttle) {
  c->speed = shoal_env_cut(c->speed + acceleration(throttle, GRAVITY * cos(3 * c->x)), -SPEED_MAX, SPEED_MAX);
  c->x = shoal_env_cut(c->x + c->speed, X_MIN, X_MAX);
  if (c->x == X_MIN && c->speed < 0) c->speed = 0;
  return c->x >= CONTINUOUS_GOAL && c->speed >= 0;
}

static bool drive_single(car *c, float throttle) {
  float x = (float)c->x, speed = (float)c->speed;
  speed += (float)acceleration(throttle, GRAVITY * cos((double)(3 * x)));
  speed = (float)shoal_env_cut((double)speed, (double)-(float)SPEED_MAX, (double)(float)SPEED_MAX);
  x += speed;
  x = (float)shoal_env_cut((double)x, (double)(float)X_MIN, (double)(float)X_MAX);
  if (x == (float)X_MIN && speed < 0) speed = 0;
  *c = (car){(double)x, (double)speed};
  return x >= (float)CONTINUOUS_GOAL && speed >= 0;
}

static void step_throttled(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                           float *rewards, bool *ended) {
  (void)randoms;
  throttled *all = states;
  for (uint32_t i = 0; i < count; i++) {
    throttled *t = &all[i];
    ended[i] = t->fresh == 1 ? drive_double(&t->car, actions[i]) : drive_single(&t->car, actions[i]);
    t->car = (car){(double)(float)t->car.x, (double)(float)t->car.speed};
    t->fresh = 0;
    double action = (double)actions[i];
    rewards[i] = (float)((ended[i] ? 100.0 : 0.0) - action * action * 0.1);
  }
}

static void observe_throttled(const void *states, uint32_t count, float *out) {
  const throttled *all = states;
  for (uint32_t i = 0; i < count; i++) observe_car(&all[i].car, out + 2 * i);
}

/* ---- for people ------------------------------------------------------------------------- */

static float height(float x) { return sinf(3 * x) * 0.45f + 0.55f; }

static void draw_car(const car *c, float goal, shoal_canvas *canvas) {
  enum { POINTS = 30 };
  float ground[POINTS + 2][2];
  shoal_canvas_view(canvas, -1.3f, 0.7f, -0.05f, 1.3f);
  for (int i = 0; i < POINTS; i++) {
    ground[i][0] = -1.2f + 1.8f * (float)i / (POINTS - 1);
    ground[i][1] = height(ground[i][0]);
  }
  shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.015f, (const float(*)[2])ground, POINTS);
  float flag = height(goal);
  shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.01f, (const float[][2]){{goal, flag}, {goal, flag + 0.2f}}, 2);
  shoal_canvas_area(
      canvas, SHOAL_INK_GOAL,
      (const float[][2]){{goal, flag + 0.2f}, {goal + 0.1f, flag + 0.165f}, {goal, flag + 0.13f}}, 3);

  float x = (float)shoal_env_cut(c->x, X_MIN, X_MAX), y = height(x), slope = atanf(1.35f * cosf(3 * x));
  float along[2] = {cosf(slope), sinf(slope)}, up[2] = {-along[1], along[0]}, body[4][2];
  static const float corners[4][2] = {{-0.08f, 0.03f}, {0.08f, 0.03f}, {0.055f, 0.1f}, {-0.08f, 0.1f}};
  for (int i = 0; i < 4; i++) {
    body[i][0] = x + corners[i][0] * along[0] + corners[i][1] * up[0];
    body[i][1] = y + corners[i][0] * along[1] + corners[i][1] * up[1];
  }
  shoal_canvas_area(canvas, SHOAL_INK_BODY, (const float(*)[2])body, 4);
  for (int side = -1; side <= 1; side += 2) {
    float way = 0.05f * (float)side;
    shoal_canvas_disc(canvas, SHOAL_INK_ACCENT, x + way * along[0] + 0.025f * up[0],
                      y + way * along[1] + 0.025f * up[1], 0.025f);
  }
}

static void draw(const void *state, shoal_canvas *canvas) { draw_car(state, (float)GOAL, canvas); }

static void draw_throttled(const void *state, shoal_canvas *canvas) {
  const throttled *t = state;
  draw_car(&t->car, (float)CONTINUOUS_GOAL, canvas);
}

const shoal_env_kind shoal_env_mountaincar = {
    .name = "MountainCar-v0",
    .says = "rock a weak car back and forth until it gets up the hill",
    .observation = 2,
    .choices = 3,
    .action_width = 1,
    .limit = 200,
    .solved = -110,
    .pace = 30,
    .bytes = sizeof(car),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};

const shoal_env_kind shoal_env_mountaincar_continuous = {
    .name = "MountainCarContinuous-v0",
    .says = "the same with a throttle, and fuel that costs",
    .observation = 2,
    .action_width = 1,
    .action_low = -1,
    .action_high = 1,
    .limit = 999,
    .solved = 90,
    .pace = 30,
    .bytes = sizeof(throttled),
    .reset = reset_throttled,
    .step = step_throttled,
    .observe = observe_throttled,
    .draw = draw_throttled,
};
