/* speed.h: how fast this machine trains, in one number: batches of 64 of LeNet-5 a second.
 *
 * Measured in a fraction of a second, and kept in a file for the next time; it is measured again after a day,
 * and when program, kernels, threads, processor or host are others: a home folder may be shared. For telling
 * machines apart, not for a benchmark: that is shoal bench.
 *
 * Threads: one caller. */
#ifndef SHOAL_CLI_SPEED_H
#define SHOAL_CLI_SPEED_H

#include <stdint.h>

#include "base/status.h"

/* `file` may be NULL: nothing is kept then. */
shoal_status shoal_speed_measure(const char *file, uint32_t threads, double *batches_per_s, shoal_error *err);

#endif
