/* far.h: a device for tests, whose memory the host cannot touch.
 *
 * Its memory is pages that nobody may read or write. Kernels are the processor's: pages open when one begins and close
 * when it returns, and copies do the same. Any other access crashes at once, and a kernel that gets memory of the host
 * fails the test. Where a copy is missing, a tensor holds NaN, or what an earlier tile left there.
 *
 * Ownership: one at a time, open, then close, which fails the test where memory was not given back. Threads: one. */
#ifndef SHOAL_TESTS_DEVICE_FAR_H
#define SHOAL_TESTS_DEVICE_FAR_H

#include "device/device.h"

typedef enum far_fault {
  FAR_SOUND,
  FAR_DROPS_COPY_IN, /* copy number `at`, from 0, does not happen */
  FAR_DROPS_COPY_OUT,
} far_fault;

const shoal_device *far_open(far_fault fault, uint64_t at);
void far_close(void);

/* How many copies the last device made, in and out. */
typedef struct far_counts {
  uint64_t in, out;
} far_counts;
far_counts far_last_count(void);

#endif
