/* agent_queue.h: a training of an agent through a broker: the learner's side, and what both sides say.
 *
 * Queues, where NAME is the training's:
 *
 *   shoal.agent.NAME.units         to whoever is free: at most one for each stream, dropped after a lease
 *   shoal.agent.NAME.rollouts      to the learner; when it is full, actors wait
 *   shoal.agent.NAME.policy.ACTOR  the newest policy, for one actor: one message, and a newer one replaces it
 *
 * Messages, little-endian:
 *
 *   offset  bytes  what
 *        0      1  its type, shoal_agent_say
 *        1      8  the learner's life: drawn when it starts; 0: an actor that has heard of none
 *        9      1  the length of the actor's name, which follows; 0 from the learner
 *                  ROLLOUT, UNIT: as in rollout.h; POLICY: 4 the brief's length, the brief, the policy
 *
 * An actor says hello until it has brief and policy, and whenever it had nothing else to say for a second:
 * the learner sends the newest policy to all whom it has heard within a lease, and at once to one that knows
 * of another life. Units and rollouts of another life are dropped. What is lost costs a lease.
 *
 * Ownership: what goes in is borrowed for the call. Threads: the caller's; `round` and `warn` come from the coach's. */
#ifndef SHOAL_CLI_AGENT_QUEUE_H
#define SHOAL_CLI_AGENT_QUEUE_H

#include <signal.h>

#include "agent/coach.h"
#include "queue/queue.h"

enum { SHOAL_AGENT_NAME_MAX = 48, SHOAL_AGENT_ACTOR_MAX = 48 }; /* with their zeros */

typedef enum shoal_agent_say {
  SHOAL_SAY_HELLO = 1,
  SHOAL_SAY_ROLLOUT,
  SHOAL_SAY_BYE,
  SHOAL_SAY_UNIT,
  SHOAL_SAY_POLICY,
  SHOAL_SAY_OVER,
} shoal_agent_say;

typedef struct shoal_agent_message {
  shoal_agent_say say;
  uint64_t life;
  char actor[SHOAL_AGENT_ACTOR_MAX];
  const uint8_t *body; /* lent */
  size_t length;
} shoal_agent_message;

/* Clears the text first; the body may be added to it afterwards. actor NULL: the learner. */
void shoal_agent_message_begin(shoal_text *out, shoal_agent_say say, uint64_t life, const char *actor);
bool shoal_agent_message_read(shoal_agent_message *out, const void *bytes, size_t length);

typedef struct shoal_agent_names {
  char units[SHOAL_QUEUE_NAME_MAX], rollouts[SHOAL_QUEUE_NAME_MAX];
} shoal_agent_names;
/* SHOAL_INVALID: letters, digits, '-', '_' and '.', and not too many. */
shoal_status shoal_agent_names_of(shoal_agent_names *out, const char *name, shoal_error *err);
void shoal_agent_policy_queue(char out[SHOAL_QUEUE_NAME_MAX], const char *name, const char *actor);

typedef struct shoal_agent_queue_config {
  const char *url, *name;
  const char *command; /* for remarks */
  shoal_coach_config coach;
  const volatile sig_atomic_t *stop;
  void *self;
  void (*round)(void *self, const shoal_training_view *view, uint32_t actors); /* from the coach's thread */
  void (*warn)(void *self, const char *text); /* from the coach's thread: of a disk without room */
  /* From the caller's: there has been nobody to play for a while (0), or somebody came after that. */
  void (*actors)(void *self, uint32_t actors);
} shoal_agent_queue_config;

/* The learner, until it is over. SHOAL_STOPPED: by `stop`; all is saved. SHOAL_CONFLICT: there is a learner
 * of that name. */
shoal_status shoal_agent_queue_train(const shoal_agent_queue_config *config, shoal_training_view *out,
                                     shoal_error *err);

#endif
