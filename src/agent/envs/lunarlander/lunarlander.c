/* lunarlander.c: see lunarlander.h: the rules around the world of body.h, with the original's numbers and
 * in its order of operations. Engines push off centre by a little, at random. */
#include "agent/envs/lunarlander/lunarlander.h"

#include <math.h>
#include <string.h>

#include "agent/envs/lunarlander/body.h"

enum { OBSERVATION = 8, POINTS = SHOAL_LANDER_GROUND_POINTS };

static const double SCALE = 30, WIDTH = 600 / 30.0, HEIGHT = 400 / 30.0, FPS = 50;
static const double MAIN_POWER = 13, SIDE_POWER = 0.6, MAIN_Y = 4, SIDE_AWAY = 12, SIDE_HEIGHT = 14,
                    LEG_DOWN = 18, START_FORCE = 1000;

typedef struct lander {
  shoal_lander_body *body; /* NULL: out of memory, and every step ends the episode */
  double ground[POINTS][2];
  double shaping; /* how good the last state was; NAN before the first */
  float seen[OBSERVATION];
  float main, side; /* the engines' power in the last step; side is negative to the left */
} lander;

/* ---- engines ---------------------------------------------------------------------------- */

typedef struct burn {
  double main, side, direction; /* power; the side engines' is to the left where direction is -1 */
} burn;

static burn burn_of_choice(uint32_t choice) {
  return (burn){.main = choice == 2, .side = choice == 1 || choice == 3, .direction = (double)choice - 2};
}

static burn burn_of_throttles(const float action[2]) {
  double main = shoal_env_cut((double)action[0], -1, 1), side = shoal_env_cut((double)action[1], -1, 1);
  burn b = {0};
  if (main > 0) b.main = (main + 1.0) * 0.5;
  if (fabs(side) > 0.5) {
    b.side = fabs(side);
    b.direction = side > 0 ? 1 : -1;
  }
  return b;
}

static void push(lander *l, const burn *b, shoal_pcg64 *random) {
  shoal_lander_view view;
  shoal_lander_body_look(l->body, &view);
  double tip[2] = {sin((double)view.angle), cos((double)view.angle)}, aside[2] = {-tip[1], tip[0]};
  double off[2];
  for (int i = 0; i < 2; i++) off[i] = shoal_pcg64_uniform(random, -1.0, 1.0) / SCALE;
  if (b->main > 0) {
    double x = tip[0] * (MAIN_Y / SCALE + 2 * off[0]) + aside[0] * off[1];
    double y = -tip[1] * (MAIN_Y / SCALE + 2 * off[0]) - aside[1] * off[1];
    shoal_lander_body_push(l->body, (double[2]){-x * MAIN_POWER * b->main, -y * MAIN_POWER * b->main},
                           (double[2]){(double)view.x + x, (double)view.y + y});
  }
  if (b->side > 0) {
    double away = 3 * off[1] + b->direction * SIDE_AWAY / SCALE;
    double x = tip[0] * off[0] + aside[0] * away, y = -tip[1] * off[0] - aside[1] * away;
    shoal_lander_body_push(l->body, (double[2]){-x * SIDE_POWER * b->side, -y * SIDE_POWER * b->side},
                           (double[2]){(double)view.x + x - tip[0] * 17 / SCALE,
                                       (double)view.y + y + tip[1] * SIDE_HEIGHT / SCALE});
  }
}

/* ---- episodes --------------------------------------------------------------------------- */

/* Returns the reward. */
static double act(lander *l, const burn *b, shoal_pcg64 *random, bool *ended) {
  push(l, b, random);
  shoal_lander_body_step(l->body);
  shoal_lander_view view;
  shoal_lander_body_look(l->body, &view);
  double s[OBSERVATION] = {
      ((double)view.x - WIDTH / 2) / (WIDTH / 2),
      ((double)view.y - (HEIGHT / 4 + LEG_DOWN / SCALE)) / (HEIGHT / 2),
      (double)view.speed_x * (WIDTH / 2) / FPS,
      (double)view.speed_y * (HEIGHT / 2) / FPS,
      (double)view.angle,
      20.0 * (double)view.turn / FPS,
      view.legs_down[0],
      view.legs_down[1],
  };
  for (int i = 0; i < OBSERVATION; i++) l->seen[i] = (float)s[i];
  double shaping = -100 * sqrt(s[0] * s[0] + s[1] * s[1]) - 100 * sqrt(s[2] * s[2] + s[3] * s[3]) -
                   100 * fabs(s[4]) + 10 * s[6] + 10 * s[7];
  double reward = isnan(l->shaping) ? 0 : shaping - l->shaping;
  l->shaping = shaping;
  l->main = (float)b->main;
  l->side = (float)(b->side * b->direction);
  reward -= b->main * 0.30;
  reward -= b->side * 0.03;
  *ended = false;
  if (view.crashed || fabs(s[0]) >= 1.0) {
    *ended = true;
    reward = -100;
  }
  if (!view.awake) {
    *ended = true;
    reward = 100;
  }
  return reward;
}

static void draw_ground(lander *l, shoal_pcg64 *random) {
  double heights[POINTS + 1];
  for (int i = 0; i <= POINTS; i++) heights[i] = shoal_pcg64_uniform(random, 0, HEIGHT / 2);
  for (int i = POINTS / 2 - 2; i <= POINTS / 2 + 2; i++) heights[i] = HEIGHT / 4;
  for (int i = 0; i < POINTS; i++) {
    double before = heights[i > 0 ? i - 1 : POINTS];
    l->ground[i][0] = WIDTH / (POINTS - 1) * i;
    l->ground[i][1] = 0.33 * (before + heights[i] + heights[i + 1]);
  }
}

static void release(void *state) {
  lander *l = state;
  shoal_lander_body_destroy(l->body);
  l->body = NULL;
}

static void reset(void *state, shoal_pcg64 *random) {
  lander *l = state;
  release(l);
  *l = (lander){.shaping = (double)NAN};
  draw_ground(l, random);
  double force[2];
  for (int i = 0; i < 2; i++) force[i] = shoal_pcg64_uniform(random, -START_FORCE, START_FORCE);
  l->body = shoal_lander_body_create((const double(*)[2])l->ground, force);
  bool ended;
  if (l->body) act(l, &(burn){0}, random, &ended);
}

static void act_or_end(lander *l, const burn *b, shoal_pcg64 *random, float *reward, bool *ended) {
  *reward = 0;
  *ended = true;
  if (l->body) *reward = (float)act(l, b, random, ended);
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  lander *all = states;
  for (uint32_t i = 0; i < count; i++) {
    burn b = burn_of_choice(shoal_env_choice(actions[i], 4));
    act_or_end(&all[i], &b, &randoms[i], &rewards[i], &ended[i]);
  }
}

static void step_continuous(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                            float *rewards, bool *ended) {
  lander *all = states;
  for (uint32_t i = 0; i < count; i++) {
    burn b = burn_of_throttles(actions + 2 * (size_t)i);
    act_or_end(&all[i], &b, &randoms[i], &rewards[i], &ended[i]);
  }
}

static void observe(const void *states, uint32_t count, float *out) {
  const lander *all = states;
  for (uint32_t i = 0; i < count; i++) memcpy(out + (size_t)i * OBSERVATION, all[i].seen, sizeof all[i].seen);
}

/* ---- for people ------------------------------------------------------------------------- */

/* A flame between two points of the hull, away from it, as long as the engine is strong. */
static void draw_flame(shoal_canvas *canvas, const float a[2], const float b[2], float power) {
  if (power == 0) return;
  float x = (a[0] + b[0]) / 2, y = (a[1] + b[1]) / 2, out_x = a[1] - b[1], out_y = b[0] - a[0];
  float length = sqrtf(out_x * out_x + out_y * out_y);
  if (length > 0)
    shoal_canvas_area(canvas, SHOAL_INK_ACCENT,
                      (const float[][2]){{x - out_y / length * 0.2f, y + out_x / length * 0.2f},
                                         {x + out_y / length * 0.2f, y - out_x / length * 0.2f},
                                         {x + out_x / length * power, y + out_y / length * power}},
                      3);
}

static void draw(const void *state, shoal_canvas *canvas) {
  const lander *l = state;
  float ground[POINTS + 2][2], hull[SHOAL_LANDER_HULL_POINTS][2], legs[2][SHOAL_LANDER_LEG_POINTS][2];
  shoal_canvas_view(canvas, 0, (float)WIDTH, 0, (float)HEIGHT);
  for (int i = 0; i < POINTS; i++)
    for (int d = 0; d < 2; d++) ground[i][d] = (float)l->ground[i][d];
  ground[POINTS][0] = (float)WIDTH;
  ground[POINTS + 1][0] = 0;
  ground[POINTS][1] = ground[POINTS + 1][1] = 0;
  shoal_canvas_area(canvas, SHOAL_INK_FAINT, (const float(*)[2])ground, POINTS + 2);
  shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.08f, (const float(*)[2])ground, POINTS);
  for (int side = -1; side <= 1; side += 2) {
    const float *foot = ground[POINTS / 2 + side];
    float x = foot[0], y = foot[1];
    shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.06f, (const float[][2]){{x, y}, {x, y + 1.5f}}, 2);
    shoal_canvas_area(canvas, SHOAL_INK_GOAL,
                      (const float[][2]){{x, y + 1.5f}, {x + 0.8f, y + 1.25f}, {x, y + 1.0f}}, 3);
  }
  if (!l->body) return;
  shoal_lander_body_outline(l->body, hull, legs);
  draw_flame(canvas, hull[3], hull[2], l->main);
  draw_flame(canvas, hull[1], hull[0],
             l->side > 0 ? 0.6f * l->side : 0); /* what pushes right is on the left */
  draw_flame(canvas, hull[5], hull[4], l->side < 0 ? -0.6f * l->side : 0);
  for (int i = 0; i < 2; i++)
    shoal_canvas_area(canvas, SHOAL_INK_LINE, (const float(*)[2])legs[i], SHOAL_LANDER_LEG_POINTS);
  shoal_canvas_area(canvas, SHOAL_INK_BODY, (const float(*)[2])hull, SHOAL_LANDER_HULL_POINTS);
}

const shoal_env_kind shoal_env_lunarlander = {
    .name = "LunarLander-v3",
    .says = "bring a lander to rest between the flags",
    .observation = OBSERVATION,
    .choices = 4,
    .action_width = 1,
    .limit = 1000,
    .solved = 200,
    .pace = 50,
    .bytes = sizeof(lander),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
    .release = release,
};

const shoal_env_kind shoal_env_lunarlander_continuous = {
    .name = "LunarLanderContinuous-v3",
    .says = "the same with throttles",
    .observation = OBSERVATION,
    .action_width = 2,
    .action_low = -1,
    .action_high = 1,
    .limit = 1000,
    .solved = 200,
    .pace = 50,
    .bytes = sizeof(lander),
    .reset = reset,
    .step = step_continuous,
    .observe = observe,
    .draw = draw,
    .release = release,
};
