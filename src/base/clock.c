/* clock.c: see clock.h. Two clocks of the system, as seconds. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double shoal_clock_seconds(void) { return seconds_of(CLOCK_MONOTONIC); }

double shoal_clock_wall_seconds(void) { return seconds_of(CLOCK_REALTIME); }

void shoal_clock_sleep(double seconds) {
  if (!(seconds > 0)) return;
  struct timespec left = {.tv_sec = (time_t)seconds};
  left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}
