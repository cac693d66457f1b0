/* ppo.c: proximal policy optimisation.
 *
 * A round's advantages are computed once (GAE); then the round is gone over several times in minibatches,
 * with a loss that stops rewarding a change once the policy has moved further from the one that played than
 * settings.ratio_clip. */
#include <math.h>
#include <string.h>

#include "agent/actor_critic.h"

/* A bridged environment begins anew with every unit, and a lander is carried by playing its episode again:
 * their units are long. A lander's reward for landing comes late, and hovering is a trap for who does not
 * look that far ahead. */
void shoal_ppo_defaults(const shoal_env_kind *kind, shoal_agent_settings *s) {
  bool lands = strncmp(kind->name, "LunarLander", strlen("LunarLander")) == 0;
  if (kind->bridge != NULL || lands) {
    s->envs = 4;
    s->steps = lands ? 1024 : 512;
    s->entropy = 0.01f;
  }
  if (lands) {
    s->discount = 0.999f;
    s->lambda = 0.98f;
  }
}

static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  return shoal_actor_critic_learn(learner, rollouts, count, false, view, err);
}

const shoal_algorithm_ops shoal_ppo = {.spec = shoal_actor_critic_spec,
                                       .create = shoal_actor_critic_create,
                                       .destroy = shoal_actor_critic_destroy,
                                       .round = learn,
                                       .kept = shoal_actor_critic_kept,
                                       .output_scale = 0.01f};
