/* env.c: see env.h. A new environment has its line here. */
#include "agent/env.h"

#include <string.h>

#include "agent/envs/acrobot/acrobot.h"
#include "agent/envs/cartpole/cartpole.h"
#include "agent/envs/lunarlander/lunarlander.h"
#include "agent/envs/maze/maze.h"
#include "agent/envs/mountaincar/mountaincar.h"
#include "agent/envs/novelocity/novelocity.h"
#include "agent/envs/pendulum/pendulum.h"
#include "agent/envs/snake/snake.h"

const shoal_env_kind *const shoal_env_kinds[] = {
    &shoal_env_cartpole_v1,
    &shoal_env_cartpole_v0,
    &shoal_env_cartpole_no_velocity,
    &shoal_env_acrobot,
    &shoal_env_mountaincar,
    &shoal_env_mountaincar_continuous,
    &shoal_env_pendulum,
#ifdef SHOAL_BOX2D
    &shoal_env_lunarlander,
    &shoal_env_lunarlander_continuous,
#endif
    &shoal_env_snake,
    &shoal_env_maze,
    NULL,
};
enum { KINDS_COUNT = sizeof shoal_env_kinds / sizeof shoal_env_kinds[0] - 1 };

const shoal_env_kind *shoal_env_find(const char *name) {
  for (int i = 0; i < KINDS_COUNT; i++)
    if (strcmp(shoal_env_kinds[i]->name, name) == 0) return shoal_env_kinds[i];
  return NULL;
}

shoal_status shoal_env_need(const shoal_env_kind **out, const char *name, shoal_error *err) {
  *out = shoal_env_find(name);
  if (*out) return SHOAL_OK;
  if (strcmp(name, "LunarLander-v3") == 0 || strcmp(name, "LunarLanderContinuous-v3") == 0)
    return shoal_fail(
        err, SHOAL_UNSUPPORTED,
        "%s needs Box2D, which this program was built without; install it (Debian: libbox2d-dev) "
        "and build again",
        name);
  const char *names[KINDS_COUNT];
  for (int i = 0; i < KINDS_COUNT; i++) names[i] = shoal_env_kinds[i]->name;
  const char *near = shoal_nearest(name, strlen(name), names, KINDS_COUNT);
  char plain[80];
  shoal_text_plain(plain, sizeof plain, name, strlen(name));
  return near ? shoal_fail(err, SHOAL_NOT_FOUND, "unknown environment '%s'; did you mean '%s'?", plain, near)
              : shoal_fail(err, SHOAL_NOT_FOUND, "unknown environment '%s'; `shoal agent list` lists them",
                           plain);
}
