/* queue_volunteer.h: a trusted worker: takes units of searches from a broker's queue (server/offers.h) and
 * computes them.
 *
 * What comes through the queue says whose unit it is; all else goes by HTTP to that server: the unit is
 * claimed, then its message acknowledged, then its data fetched where it is not here, then it is computed and
 * reported (search_worker.h). So a worker that is lost before the claim leaves the message in the queue, and
 * one that is lost after it a lease that runs out. Messages are received only while a core is free. A broker
 * that is away is waited for while what is here is computed; a server that is away, too.
 *
 * While its owner's rules say so (manners.h) it takes no more; what it has begun it finishes.
 *
 * Ownership: run blocks; everything in the config is borrowed. Threads: one, and one for
 * every core. */
#ifndef SHOAL_WORK_QUEUE_VOLUNTEER_H
#define SHOAL_WORK_QUEUE_VOLUNTEER_H

#include "work/volunteer.h"

/* Until it is told to stop, or with `once` the first search that it worked for is over. SHOAL_INVALID: the
 * URL, or the broker refuses it. */
shoal_status shoal_queue_volunteer_run(const shoal_work_config *config, shoal_error *err);

#endif
