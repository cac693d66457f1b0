/* rehearsal.h: what dqn and sac share: lessons drawn from a memory of what was lived through (replay.h).
 *
 * A round's rollouts go into memory; then as many updates are due as the settings ask for with every step of
 * an environment. For each a batch is drawn, and scaled as networks see it. A round whose updates come to
 * something that is not finite is taken back: memory, and all that the algorithm has named.
 *
 * Networks are recurrent nowhere here: a step that is drawn by itself has lost what came before it.
 *
 * Ownership: init, then release. Threads: those of the learner. */
#ifndef SHOAL_AGENT_REHEARSAL_H
#define SHOAL_AGENT_REHEARSAL_H

#include "agent/backup.h"
#include "agent/replay.h"

typedef struct shoal_rehearsal {
  shoal_replay *replay;
  shoal_replay_batch batch; /* that was drawn */
  float *seen, *seen_next;  /* its observations, scaled; the second lie right behind the first */
  float rate;               /* of this round */
  uint64_t updates;         /* in all, before the one at hand */
  shoal_backup backup;      /* before a round */
} shoal_rehearsal;

/* The settings that are the same for both. */
void shoal_rehearsal_defaults(const shoal_env_kind *kind, shoal_agent_settings *settings);

/* SHOAL_INVALID: the settings are out of range, or the policy's network is recurrent. */
shoal_status shoal_rehearsal_init(shoal_rehearsal *rehearsal, const shoal_learner *learner, shoal_error *err);
void shoal_rehearsal_release(shoal_rehearsal *rehearsal);
/* What a round changes beside the memory: it is borrowed, and stays in its place. */
shoal_status shoal_rehearsal_guard(shoal_rehearsal *rehearsal, const shoal_kept *what, uint32_t count,
                                   shoal_error *err);
/* Memory and the count of updates, for a file; returns how many. */
uint32_t shoal_rehearsal_kept(shoal_rehearsal *rehearsal, shoal_kept *out);

/* Takes the rollouts, and updates as often as is due; `update` finds a batch drawn, and says false where
 * something is not finite. Returns how many updates there were in `done`. SHOAL_INVALID, or SHOAL_STOPPED
 * where the learner was interrupted: all is as it was. */
typedef bool (*shoal_rehearsal_update)(shoal_learner *learner);
shoal_status shoal_rehearsal_round(shoal_rehearsal *rehearsal, shoal_learner *learner,
                                   shoal_rollout *const *rollouts, uint32_t count,
                                   shoal_rehearsal_update update, uint64_t *done, shoal_error *err);

#endif
