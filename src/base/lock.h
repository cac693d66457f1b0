/* lock.h: a file that one process at a time has, with the number of that process in it.
 *
 * The lock is the kernel's (flock): it goes with the process that has it, however that ends. The file stays.
 *
 * Ownership: take, then give. Threads: any. */
#ifndef SHOAL_BASE_LOCK_H
#define SHOAL_BASE_LOCK_H

#include "base/status.h"

enum { SHOAL_NO_LOCK = -1 };

/* *lock is SHOAL_NO_LOCK after a failure. SHOAL_CONFLICT: another process has it, *holder, 0 when that is not
 * known; what it means is the caller's to say. */
shoal_status shoal_lock_take(int *lock, const char *path, long *holder, shoal_error *err);
void shoal_lock_give(int lock); /* SHOAL_NO_LOCK is fine */

#endif
