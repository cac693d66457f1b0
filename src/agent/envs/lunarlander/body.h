/* body.h: the lander's world in Box2D, a library of C++, as C.
 *
 * A world has the ground, the lander and its two legs on hinges with springs. Positions are metres, of a view
 * of 20 x 13.3; numbers become floats where Box2D takes them.
 *
 * Ownership: create, then destroy. Threads: one at a time for a world. */
#ifndef SHOAL_AGENT_ENVS_LUNARLANDER_BODY_H
#define SHOAL_AGENT_ENVS_LUNARLANDER_BODY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHOAL_LANDER_GROUND_POINTS = 11, SHOAL_LANDER_HULL_POINTS = 6, SHOAL_LANDER_LEG_POINTS = 4 };

typedef struct shoal_lander_body shoal_lander_body;

typedef struct shoal_lander_view {
  float x, y, speed_x, speed_y, angle, turn;
  bool legs_down[2];
  bool crashed; /* the hull has touched the ground */
  bool awake;
} shoal_lander_view;

/* Where the ground is (points from the left, y each), and the force that the lander starts with. NULL: out of
 * memory. */
shoal_lander_body *shoal_lander_body_create(const double ground[SHOAL_LANDER_GROUND_POINTS][2],
                                            const double force[2]);
void shoal_lander_body_destroy(shoal_lander_body *body);
void shoal_lander_body_push(shoal_lander_body *body, const double impulse[2], const double at[2]);
void shoal_lander_body_step(shoal_lander_body *body); /* a fiftieth of a second */
void shoal_lander_body_look(const shoal_lander_body *body, shoal_lander_view *out);
/* Outlines, for the picture. */
void shoal_lander_body_outline(const shoal_lander_body *body, float hull[SHOAL_LANDER_HULL_POINTS][2],
                               float legs[2][SHOAL_LANDER_LEG_POINTS][2]);

#ifdef __cplusplus
}
#endif

#endif
