/* thread.h: threads that no signal reaches: signals are the business of the thread that was there first.
 *
 * Ownership: whoever starts a thread joins or detaches it. Threads: any. */
#ifndef SHOAL_BASE_THREAD_H
#define SHOAL_BASE_THREAD_H

#include <pthread.h>

/* 0, or the number of an error. */
int shoal_thread_start(pthread_t *out, void *(*run)(void *), void *self);

#endif
