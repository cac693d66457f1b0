/* cluster.h: shoal train on more than one process: what this one does in its role, and the others.
 *
 *   --workers N --ps K       this process is the chief and starts the others on this machine, as processes or,
 *                            with --transport threads, as threads of its own
 *   --job-name ROLE ...      this process is one of a cluster that is started by hand: the chief,
 *                            a parameter server (ps) or a worker; without --chief-host, worker 0
 *                            is the chief as well
 *
 * Members on this machine that cannot work are given up in the end, and the rounds fail with the reason when
 * there is no going on without them.
 *
 * Ownership: open, then close. Threads: one caller. */
#ifndef SHOAL_CLI_CLUSTER_H
#define SHOAL_CLI_CLUSTER_H

#include "cli/cluster_options.h"
#include "cli/links.h"
#include "cli/report.h"
#include "nn/rounds.h"
#include "proto/chief.h"
#include "train/task.h"
#include "wire/notes.h"

#include <signal.h>

/* Where the data is, for workers. */
typedef struct shoal_cluster_data {
  const char *data, *target, *data_dir;
  double valid_share;
  uint32_t threads;
} shoal_cluster_data;

/* A worker or parameter server, until it is over. SHOAL_STOPPED: the chief was stopped, which was noted. */
shoal_status shoal_cluster_serve(const shoal_cluster_options *options, const shoal_cluster_data *data,
                                 const shoal_notes *notes, const volatile sig_atomic_t *stop,
                                 shoal_error *err);

typedef struct shoal_cluster shoal_cluster;

typedef struct shoal_cluster_config {
  const shoal_cluster_options *options; /* copied; the words they point to are borrowed until close */
  shoal_cluster_data data;              /* its words as well */
  shoal_task *task;                     /* borrowed until close */
  const char *out_path;                 /* the state folder's name is made of it when none was given */
  shoal_notes notes;                    /* told from within the rounds' functions */
  const volatile sig_atomic_t *stop;
  double save_s;            /* how often a version is made safe within an epoch; 0: a default */
  const shoal_links *links; /* machine 0 .. ps - 1 are parameter servers, then workers; NULL: loopback */
} shoal_cluster_config;

/* The chief's side: listens, starts the others where asked, and makes rounds. */
shoal_status shoal_cluster_open(shoal_cluster **out, const shoal_cluster_config *config, shoal_rounds *rounds,
                                shoal_error *err);
/* Where chief and parameter servers keep what they need to continue. */
const char *shoal_cluster_state_dir(const shoal_cluster *cluster);
/* The bytes that they will still need there, on this machine. */
uint64_t shoal_cluster_room(const shoal_cluster *cluster);
/* Whether what they keep is older than what was gathered last, for want of room; *safe: of which round it is. */
bool shoal_cluster_is_behind(shoal_cluster *cluster, uint64_t *safe);
/* Rounds that an earlier chief of the same job had made safe, from which this one continues; 0: none. */
uint64_t shoal_cluster_went_on(const shoal_cluster *cluster);
/* What is known of workers and parameter servers; returns how many were written. */
uint32_t shoal_cluster_peers(shoal_cluster *cluster, shoal_chief_peer *out, uint32_t max);
/* The same as a table for people or JSON lines. */
void shoal_cluster_report(shoal_cluster *cluster, shoal_report *report);
/* How it ends decides whether something is kept to continue from (proto/chief.h). */
void shoal_cluster_close(shoal_cluster *cluster, shoal_chief_ending how, const char *reason);

#endif
