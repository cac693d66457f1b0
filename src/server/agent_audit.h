/* agent_audit.h: rollouts that volunteers hand in, played again by the server: who lied is found.
 *
 * A rollout is a function of its unit and the policy, to the last bit, so one that differs is a lie, or comes
 * from a machine that computes wrongly. Who is new is checked until some have agreed, then a share that falls
 * with their number (trust.h), drawn from a secret. Checks are done one after the other by a thread of their
 * own, and a training waits for none of them: what is believed, or goes to be checked, counts at once. Only
 * few checks wait, two of one who plays, so that no more than that can be learned from a newcomer before it is
 * found out: a rollout that is drawn and finds no room, or cannot be checked, does not count, and its unit is
 * played again.
 *
 * Ownership: create, then destroy; a case's texts are taken over. Threads: one calls; `judged` comes from
 * tick and destroy, `wake` from the thread inside. */
#ifndef SHOAL_SERVER_AGENT_AUDIT_H
#define SHOAL_SERVER_AGENT_AUDIT_H

#include "agent/coach.h"
#include "proto/trust.h"

typedef struct shoal_agent_audit shoal_agent_audit;

enum { SHOAL_AGENT_AUDITS_MAX = 8 };

/* A rollout, and what it takes to play it again. */
typedef struct shoal_agent_case {
  uint64_t job, who; /* who: its number of standings.h */
  char name[SHOAL_ACTOR_NAME_MAX];
  shoal_text brief, unit, policy, rollout;
} shoal_agent_case;

typedef enum shoal_agent_verdict {
  SHOAL_AGENT_AGREES,
  SHOAL_AGENT_LIES,
  SHOAL_AGENT_UNKNOWN, /* it could not be played again */
} shoal_agent_verdict;

typedef struct shoal_agent_audit_calls {
  void *self;
  void (*wake)(void *self); /* tick is due */
  void (*judged)(void *self, const shoal_agent_case *tried, shoal_agent_verdict verdict);
} shoal_agent_audit_calls;

shoal_status shoal_agent_audit_create(shoal_agent_audit **out, const shoal_agent_audit_calls *calls,
                                      shoal_error *err);
/* Waits for the check at hand; others are judged unknown. */
void shoal_agent_audit_destroy(shoal_agent_audit *audit);
void shoal_agent_audit_tick(shoal_agent_audit *audit);

/* What is to become of a rollout of theirs. Asked once for each. */
typedef enum shoal_agent_draw {
  SHOAL_AGENT_BELIEVED,
  SHOAL_AGENT_CHECKED,
  SHOAL_AGENT_NO_ROOM
} shoal_agent_draw;
shoal_agent_draw shoal_agent_audit_draw(shoal_agent_audit *audit, const shoal_standing *standing);
/* *tried is empty afterwards. */
void shoal_agent_audit_add(shoal_agent_audit *audit, shoal_agent_case *tried);
void shoal_agent_case_release(shoal_agent_case *tried);

/* Plays it again; slow. */
shoal_agent_verdict shoal_agent_case_try(const shoal_agent_case *tried);

#endif
