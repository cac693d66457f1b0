/* coach_internal.h: between coach.c and brief.c. Threads: none. */
#ifndef SHOAL_AGENT_COACH_INTERNAL_H
#define SHOAL_AGENT_COACH_INTERNAL_H

#include "agent/coach.h"

void shoal_actor_brief_write(const shoal_learner_config *config, const shoal_policy_spec *spec, bool exact,
                             uint64_t life, shoal_text *out);

#endif
