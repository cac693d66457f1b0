/* cluster_options.h: what shoal train is told about a cluster, and which role this process has in it.
 *
 * Ownership: options point to words of the command line; a list of addresses is read, then freed (`at`).
 * Threads: none. */
#ifndef SHOAL_CLI_CLUSTER_OPTIONS_H
#define SHOAL_CLI_CLUSTER_OPTIONS_H

#include "base/hash.h"
#include "base/text.h"
#include "cli/options.h"
#include "cluster/job.h"

enum { SHOAL_CLUSTER_WORKERS_MAX = 16384 };

typedef struct shoal_cluster_options {
  uint64_t workers, ps; /* on this machine; ps UINT64_MAX: not given */
  const char *mode, *wire, *transport;
  const char *ps_hosts, *worker_hosts, *chief_host, *job_name;
  uint64_t task_index; /* UINT64_MAX: not given, until shoal_cluster_role has looked */
  const char *state_dir;
  const char *certificate, *key, *fingerprint;
  char fingerprint_digits[SHOAL_SHA256_HEX]; /* the same without colons; made by shoal_cluster_role */
  double recheck;                            /* the share of units that is computed twice */
  bool lifeline;
  double pretend_s; /* for benchmarks: a worker waits this long instead of computing a batch */
} shoal_cluster_options;

enum { SHOAL_CLUSTER_OPTIONS = 18 };
/* Writes the options' lines of the table. */
void shoal_cluster_declare(shoal_cluster_options *options, shoal_option lines[SHOAL_CLUSTER_OPTIONS]);

typedef enum shoal_role {
  SHOAL_ALONE,  /* no cluster */
  SHOAL_MPI,    /* a rank of MPI */
  SHOAL_CHIEF,  /* runs the training; may start the others, or compute too */
  SHOAL_SERVES, /* a worker or a parameter server, until the chief ends it */
} shoal_role;

/* What the options ask for; SHOAL_INVALID when they don't go together. */
shoal_status shoal_cluster_role(shoal_cluster_options *options, shoal_role *out, shoal_error *err);
/* Whether this is the transport; it is tcp when none was named. */
bool shoal_cluster_uses(const shoal_cluster_options *options, const char *transport);

/* "2 workers, 1 parameter server, mode sync"; nothing for one that is alone. */
void shoal_cluster_describe(const shoal_cluster_options *options, shoal_role role, shoal_text *out);

/* " --workers 2 --mode async": what a command needs that continues with the same cluster; with `roles` false
 * without who is who, for a command that knows it from elsewhere. */
void shoal_cluster_add_options(const shoal_cluster_options *options, bool roles, shoal_text *out);

/* ---- addresses ---- */

/* SHOAL_INVALID when a word is not HOST:PORT, with the reason. */
shoal_status shoal_cluster_check_address(const char *word, size_t length, shoal_error *err);

typedef struct shoal_addresses {
  char (*at)[SHOAL_ADDRESS_MAX];
  uint32_t count;
} shoal_addresses;

/* A list with commas, the value of `flag`. *out is to be freed whatever comes of it. */
shoal_status shoal_addresses_read(const char *flag, const char *list, shoal_addresses *out, shoal_error *err);

#endif
