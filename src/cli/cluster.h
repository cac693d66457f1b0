/* cluster.h: shoal train on more than one process: which role this one has, and the others.
 *
 *   --workers N --ps K       this process is the chief and starts the others on this machine, as processes or,
 *                            with --transport threads, as threads of its own
 *   --job-name ROLE ...      this process is one of a cluster that is started by hand: the chief,
 *                            a parameter server (ps) or a worker; without --chief-host, worker 0
 *                            is the chief as well
 *
 * Ownership: open, then close. Threads: one caller. */
#ifndef SHOAL_CLI_CLUSTER_H
#define SHOAL_CLI_CLUSTER_H

#include "base/hash.h"
#include "cli/links.h"
#include "cli/options.h"
#include "cli/report.h"
#include "data/task.h"
#include "net/notes.h"
#include "nn/rounds.h"
#include "proto/chief.h"

#include <signal.h>

typedef struct shoal_cluster_options {
  uint64_t workers, ps; /* on this machine; ps UINT64_MAX: not given */
  const char *mode, *wire, *transport;
  const char *ps_hosts, *worker_hosts, *chief_host, *job_name;
  uint64_t task_index;
  const char *state_dir;
  const char *certificate, *key, *fingerprint;
  char fingerprint_digits[SHOAL_SHA256_HEX]; /* the same without colons; made by shoal_cluster_role */
  bool lifeline;
  double pretend_s; /* for benchmarks: a worker waits so long instead of computing a batch */
  /* Not from the command line. */
  double save_s;            /* how often a version is made safe within an epoch; 0: a default */
  const shoal_links *links; /* machine 0 .. ps - 1 are parameter servers, then workers; NULL: loopback */
} shoal_cluster_options;

enum { SHOAL_CLUSTER_OPTIONS = 17 };
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
/* Whether a word is HOST:PORT. */
bool shoal_cluster_is_address(const char *word, size_t length);

/* "2 workers, 1 parameter server, mode sync"; nothing for one that is alone. */
void shoal_cluster_describe(const shoal_cluster_options *options, shoal_role role, shoal_text *out);

/* Where the data is, for workers. */
typedef struct shoal_cluster_data {
  const char *data, *target, *data_dir;
  double valid_share;
  uint32_t threads;
} shoal_cluster_data;

/* A worker or parameter server, until it is over. */
shoal_status shoal_cluster_serve(const shoal_cluster_options *options, const shoal_cluster_data *data,
                                 const shoal_notes *notes, const volatile sig_atomic_t *stop,
                                 shoal_error *err);

typedef struct shoal_cluster shoal_cluster;

/* The chief's side: listens, starts the others where asked, and makes rounds. */
shoal_status shoal_cluster_open(shoal_cluster **out, const shoal_cluster_options *options,
                                const shoal_cluster_data *data, shoal_task *task, const char *out_path,
                                const shoal_notes *notes, const volatile sig_atomic_t *stop,
                                shoal_rounds *rounds, shoal_error *err);
/* Rounds that an earlier chief of the same job had made safe, where this one goes on; 0: none. */
uint64_t shoal_cluster_went_on(const shoal_cluster *cluster);
/* What is known of workers and parameter servers; returns how many were written. */
uint32_t shoal_cluster_peers(shoal_cluster *cluster, shoal_chief_peer *out, uint32_t max);
/* The same as a table for people or JSON lines. */
void shoal_cluster_report(shoal_cluster *cluster, shoal_report *report);
/* forget: the training is finished or saved, and nothing is kept to go on from. */
void shoal_cluster_close(shoal_cluster *cluster, const char *reason, bool forget);

#endif
