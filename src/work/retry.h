/* retry.h: a worker that asks its server again and again: over which connection, when to stop, and how long
 * to wait for a server that is away.
 *
 * Ownership: everything is borrowed. Threads: any; what is made with it is the caller's alone. */
#ifndef SHOAL_WORK_RETRY_H
#define SHOAL_WORK_RETRY_H

#include <signal.h>

#include "wire/fetch.h"

typedef struct shoal_retry {
  const shoal_link *link;
  const volatile sig_atomic_t *stop; /* atomic */
  const volatile sig_atomic_t *ends; /* likewise, a second reason; NULL: none */
} shoal_retry;

bool shoal_retry_stops(const shoal_retry *retry);
/* Sleeps. SHOAL_STOPPED: it is to stop, at once. */
shoal_status shoal_retry_pause(const shoal_retry *retry, double seconds, shoal_error *err);
/* How long to wait for a server that is away, after a pause of so many seconds; 0: the first one. */
double shoal_retry_longer(double pause_s);
/* `stop` ends what is asked. */
shoal_status shoal_retry_reach(const shoal_retry *retry, shoal_fetch **out, shoal_error *err);
/* Whether asking again may help: the server is away, or busy. */
bool shoal_retry_is_passing(const shoal_reply *reply, shoal_status status);

#endif
