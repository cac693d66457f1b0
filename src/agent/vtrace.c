/* vtrace.c: an actor-critic for rollouts that an older policy has played.
 *
 * How much likelier or less likely each action has become since is part of the targets (advantage.h), so
 * actors need not wait while the learner learns. The round is then gone over several times, as ppo does it,
 * and no further than settings.ratio_clip from the policy that the round began with: without that bound a
 * policy which does all right is carried away by what is left, noise. */
#include <math.h>
#include <string.h>

#include "agent/actor_critic.h"

void shoal_vtrace_defaults(const shoal_env_kind *kind, shoal_agent_settings *s) {
  shoal_ppo_defaults(kind, s);
  s->lag = 1;
  s->epochs = 4;
  s->rate = 3e-4f;
}

static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  return shoal_actor_critic_learn(learner, rollouts, count, true, view, err);
}

const shoal_algorithm_ops shoal_vtrace = {.spec = shoal_actor_critic_spec,
                                          .create = shoal_actor_critic_create,
                                          .destroy = shoal_actor_critic_destroy,
                                          .round = learn,
                                          .kept = shoal_actor_critic_kept,
                                          .output_scale = 0.01f};
