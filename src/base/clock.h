/* clock.h: the time, for programs. Protocol cores never include this. */
#ifndef SHOAL_BASE_CLOCK_H
#define SHOAL_BASE_CLOCK_H

#include <stdint.h>

double shoal_clock_seconds(void);       /* monotonic */
double shoal_clock_wall_seconds(void);  /* since 1970 */
void shoal_clock_sleep(double seconds); /* at least that long, whatever signals come */

#endif
