/* thread.c: see thread.h. A thread inherits the mask of who starts it. */
#include "base/thread.h"

#include <signal.h>

int shoal_thread_start(pthread_t *out, void *(*run)(void *), void *self) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(out, NULL, run, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failure;
}
