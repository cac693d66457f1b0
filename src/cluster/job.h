/* job.h: a training as data: what the chief tells those who join.
 *
 * Workers and parameter servers need nothing but the chief's address: the model's text with its
 * recipe, where the data is, how rounds are cut and applied, and who owns which slice all come
 * with WELCOME, as JSON (docs/wire.md). What comes from outside is checked here.
 *
 * In local mode the epoch's rounds are dealt out to units: `rounds` and `parts` are then those of
 * the outer rounds, and shoal_job_unit says which inner rounds a unit has.
 *
 * Ownership: a job owns its texts; init by make or parse, then release. Threads: none. */
#ifndef SHOAL_CLUSTER_JOB_H
#define SHOAL_CLUSTER_JOB_H

#include "base/hash.h"
#include "base/text.h"
#include "proto/aggregate.h"
#include "proto/message.h"
#include "proto/mode.h"
#include "train/task.h"

enum { SHOAL_OWNERS_MAX = 1024, SHOAL_ADDRESS_MAX = 280, SHOAL_MODE_TEXT_MAX = 32 };

typedef struct shoal_job {
  shoal_text model; /* its text, with the recipe */
  shoal_text data;  /* as given to --data */
  shoal_text target;
  double valid_share;
  char fitted_sha256[SHOAL_SHA256_HEX]; /* of what the data set had fitted: the same data, or not */
  shoal_text fitted; /* that itself, of images, for who has only a part of them; else empty */
  uint64_t samples;  /* of training */
  char mode_text[SHOAL_MODE_TEXT_MAX];
  shoal_mode mode;
  shoal_wire_format format;
  uint32_t parts;        /* of a round, as chief and owners count them */
  uint64_t rounds;       /* in an epoch, likewise */
  uint64_t inner_rounds; /* in an epoch: batches */
  uint32_t lanes;        /* with `shuffle lanes`: who computes a part keeps to it; 0: it does not matter */
  bool guarded;          /* nobody is believed: proto/guard.h */
  shoal_rule rule;
  uint32_t owners_count;
  char (*owners)[SHOAL_ADDRESS_MAX]; /* host:port, by slice */
} shoal_job;

/* What a job is made of, beside the task. */
typedef struct shoal_job_plan {
  const char *data, *target; /* as given to --data and --target; target may be NULL */
  double valid_share;
  const char *mode, *wire; /* "sync", "f32"; NULL: these */
  char (*owners)[SHOAL_ADDRESS_MAX];
  uint32_t owners_count, workers; /* workers that are expected, for local mode */
  bool guarded;
  shoal_rule rule; /* with another than the mean there is one owner */
} shoal_job_plan;
/* *out is filled in any case, and released by the caller. */
shoal_status shoal_job_make(shoal_job *out, const shoal_task *task, const shoal_job_plan *plan,
                            shoal_error *err);
void shoal_job_write(const shoal_job *job, shoal_text *json);
/* *out is filled on success only. */
shoal_status shoal_job_parse(shoal_job *out, const char *json, size_t length, shoal_error *err);
void shoal_job_release(shoal_job *job);

/* Sets parts and rounds from the mode, the shards of a batch, its rounds, and how many workers are
 * expected: the replicas of local mode. */
void shoal_job_cut(shoal_job *job, uint32_t shards, uint64_t inner_rounds, uint32_t workers);
/* Which inner rounds of the epoch a unit of local mode has: *first and how many. */
uint64_t shoal_job_unit(const shoal_job *job, uint64_t round, uint32_t part, uint64_t *first);
/* How many inner rounds of all are done at a version. */
uint64_t shoal_job_step(const shoal_job *job, uint64_t version);
/* And back; false when no version is exactly there. */
bool shoal_job_version(const shoal_job *job, uint64_t step, uint64_t *version);

/* Whether results of one unit are equal, so that they can be compared: not where they depend on when they
 * were computed, or on units before. */
bool shoal_job_is_audited(const shoal_job *job);

/* Tells one job from another: of everything but the addresses, which may change. */
uint64_t shoal_job_digest(const shoal_job *job);

#endif
