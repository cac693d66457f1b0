/* chief_node.h: a chief: the chief core on a network and a disk, as a maker of rounds.
 *
 * A thread of its own runs the cluster: leases, connections, records on disk. Whoever runs the
 * training asks it for round after round (nn/rounds.h) and has all slices gathered into the
 * trainer's state at the end of an epoch; while it evaluates and saves, the cluster goes on. At
 * the end of an epoch the cluster waits to be asked.
 *
 * What is kept on disk is one record, written before a new generation begins and when a version is
 * safe. While a disk, its own or a parameter server's, does not take it, a warning says so, and the training
 * goes on: what is gathered then comes from memory. A chief that was killed and is started again with the same
 * job continues from its record, and can still undo what a liar did before.
 *
 * Ownership: create, end, then destroy. The task is borrowed: while the node lives, nobody writes its
 * trainer's weights, slots and recurrent state except gather, for the thread inside gives them to parameter
 * servers that have lost theirs. Threads: one caller; the thread inside is the node's own. */
#ifndef SHOAL_CLUSTER_CHIEF_NODE_H
#define SHOAL_CLUSTER_CHIEF_NODE_H

#include <signal.h>

#include "cluster/job.h"
#include "nn/rounds.h"
#include "proto/chief.h"
#include "train/task.h"
#include "wire/notes.h"

typedef struct shoal_chief_node shoal_chief_node;

typedef struct shoal_chief_node_config {
  const char *listen;            /* host:port */
  const char *certificate, *key; /* or NULL */
  shoal_task *task;              /* its trainer's state is what to start from */
  const shoal_job *job;
  const char *folder; /* where the record is kept */
  double save_s;      /* how often a version is made safe within an epoch */
  uint32_t workers_max;
  shoal_notes notes; /* told from within next and gather */
  double recheck;    /* in a guarded job of known workers: the share of units that is checked; 0: strangers */
  /* In a guarded job: what is known of people, borrowed for create; and what is learnt, told from the thread inside with
   * the events AUDITED and BANNED. NULL: nobody wants to know. */
  const shoal_standing *standings;
  uint32_t standings_count;
  void *self;
  void (*learnt)(void *self, const shoal_chief_event *event);
  const volatile sig_atomic_t *stop;
} shoal_chief_node_config;

shoal_status shoal_chief_node_create(shoal_chief_node **out, const shoal_chief_node_config *config,
                                     shoal_error *err);

/* next answers SHOAL_STOPPED once `stop` is set and no round is there; gather when parameter servers are then
 * missing for some seconds: the weights stay as they were gathered last. */
shoal_rounds shoal_chief_node_rounds(shoal_chief_node *node);
/* The version that an earlier chief of this job had made safe, from which this one continues; 0: none. */
uint64_t shoal_chief_node_went_on(const shoal_chief_node *node);
/* Whether what is safe on all disks is older than what was gathered last; *safe: which version is. */
bool shoal_chief_node_is_behind(shoal_chief_node *node, uint64_t *safe);
/* The bytes that records will still need, of the chief and of all parameter servers. */
uint64_t shoal_chief_node_room(const shoal_chief_node *node);
/* What is known of workers and parameter servers; returns how many were written. */
uint32_t shoal_chief_node_peers(shoal_chief_node *node, shoal_chief_peer *out, uint32_t max);
/* Workers that have done something and are gone (shoal_chief_past_at); likewise. */
uint32_t shoal_chief_node_past(shoal_chief_node *node, shoal_chief_peer *out, uint32_t max);

/* The key by which the chief of a guarded job knows its auditor (worker_node.h); 0: results cannot be compared. */
uint64_t shoal_chief_node_key(const shoal_chief_node *node);
/* Units that count, that were computed again, contributions that were rejected. From any thread. */
void shoal_chief_node_audits(shoal_chief_node *node, uint64_t *units, uint64_t *checks, uint64_t *rejected);
/* A standing has changed elsewhere (shoal_chief_set_standing). From any thread. */
void shoal_chief_node_set_standing(shoal_chief_node *node, const shoal_standing *standing);

/* Has a note told from within next and gather; from any thread. */
void shoal_chief_node_note(shoal_chief_node *node, const char *text);
/* The others cannot work: next and gather answer with this error, the first that came, once they have nothing
 * else to tell. Its status is neither SHOAL_INVALID, which is a loss that is not a number, nor SHOAL_STOPPED.
 * From any thread. */
void shoal_chief_node_fail(shoal_chief_node *node, const shoal_error *err);

/* Ends the thread, and tells all how the training ends, with this text. What is over, or has not begun, needs
 * its records no more: they are removed. */
void shoal_chief_node_end(shoal_chief_node *node, shoal_chief_ending how, const char *text);
void shoal_chief_node_destroy(shoal_chief_node *node); /* after end */

#endif
