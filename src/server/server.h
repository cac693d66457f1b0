/* server.h: `shoal serve`: jobs, volunteers, REST, live updates and the page, on one port.
 *
 *   access.h       tokens and roles          jobs.h        jobs and their states
 *   datasets.h     data sets and chunks      runner.h      a job that runs
 *   volunteers.h   workers                   live.h        streams of events
 *   searcher.h     a search that runs        offers.h      its units, through a queue
 *   api.h          the routes                spec.h        what a host submits
 *
 * Ownership: everything is borrowed while it runs. Threads: run blocks; `stop` may be set by a signal. */
#ifndef SHOAL_SERVER_SERVER_H
#define SHOAL_SERVER_SERVER_H

#include <signal.h>

#include "server/access.h"

typedef struct shoal_server_config {
  const char *listen;            /* "127.0.0.1:8080" */
  const char *folder;            /* where everything is kept */
  const char *store;             /* a URL, or NULL: a SQLite file in the folder */
  const char *queue;             /* a broker's URL (offers.h), or NULL */
  const char *public_url;        /* how others reach this server; NULL: by where it listens */
  double lease_s;                /* of units of searches and agents, without a beat; 0: the usual one */
  const char *certificate, *key; /* or NULL */
  const char *named_dir;         /* where named data sets are; NULL: the usual place */
  const char *name;              /* in links, when it listens everywhere; NULL: an address of this machine */
  shoal_role_level open;         /* what those without a token may do */
  uint32_t threads;              /* to evaluate with */
  const volatile sig_atomic_t *stop;
  void *self;
  /* It listens: its address as a URL, and the link that gives an admin access, or NULL when there are admins
   * already or none is needed. */
  void (*ready)(void *self, const char *url, const char *admin_link);
  /* A line of the log: what, and fields as JSON members. Never with a secret. */
  void (*log)(void *self, const char *what, const char *fields);
  /* Every hour: makes the certificate again where that is due, and says whether it did. NULL: it stays. */
  bool (*renew)(void *self);
} shoal_server_config;

shoal_status shoal_server_run(const shoal_server_config *config, shoal_error *err);

#endif
