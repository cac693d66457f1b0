/* retry.c: see retry.h. */
#include "work/retry.h"

#include <math.h>

#include "base/clock.h"

static const double FIRST_PAUSE_S = 0.2, LONGEST_PAUSE_S = 5, TURN_S = 0.05;

bool shoal_retry_stops(const shoal_retry *a) {
  return __atomic_load_n(a->stop, __ATOMIC_RELAXED) != 0 ||
         (a->ends != NULL && __atomic_load_n(a->ends, __ATOMIC_RELAXED) != 0);
}

shoal_status shoal_retry_pause(const shoal_retry *a, double seconds, shoal_error *err) {
  double end = shoal_clock_seconds() + seconds;
  for (double left = seconds; !shoal_retry_stops(a) && left > 0; left = end - shoal_clock_seconds())
    shoal_clock_sleep(fmin(left, TURN_S));
  return shoal_retry_stops(a) ? shoal_fail(err, SHOAL_STOPPED, "stopped") : SHOAL_OK;
}

double shoal_retry_longer(double pause_s) {
  return pause_s > 0 ? fmin(2 * pause_s, LONGEST_PAUSE_S) : FIRST_PAUSE_S;
}

shoal_status shoal_retry_reach(const shoal_retry *a, shoal_fetch **out, shoal_error *err) {
  const shoal_fetch_config config = {.link = a->link, .stop = a->stop};
  return shoal_fetch_create(out, &config, err);
}

bool shoal_retry_is_passing(const shoal_reply *reply, shoal_status status) {
  return status != SHOAL_OK && status != SHOAL_STOPPED && status != SHOAL_NO_MEMORY &&
         (reply->status == 0 || reply->status == 429 || reply->status >= 500);
}
