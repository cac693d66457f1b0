/* agent_audit.c: see agent_audit.h. */
#include "server/agent_audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "server/chores.h"

enum { STANDINGS_MAX = 16, AT_ONCE = 2 }; /* AT_ONCE: of one who plays */

/* A check on its way to the thread and back. */
typedef struct check {
  shoal_agent_audit *audit;
  shoal_agent_case tried;
  shoal_agent_verdict verdict;
  struct check *next;
} check;

struct shoal_agent_audit {
  shoal_agent_audit_calls calls;
  shoal_chores *chores;
  shoal_trust *trust; /* for its draws alone */
  uint64_t asked;
  check *first; /* all that are under way */
  uint32_t count;
};

/* ---- playing again ---- */

typedef struct stage {
  shoal_actor_brief brief;
  shoal_actor *actor;
  shoal_rollout *rollout;
  shoal_play_unit unit;
  shoal_text bytes;
} stage;

static shoal_status open_stage(stage *s, const shoal_agent_case *tried) {
  shoal_status status = shoal_actor_brief_read(&s->brief, tried->brief.bytes, tried->brief.length, NULL);
  if (status == SHOAL_OK)
    status = shoal_actor_create(&s->actor, &s->brief.spec, s->brief.envs, s->brief.steps, NULL);
  if (status != SHOAL_OK) return status;
  shoal_policy *policy = shoal_actor_policy(s->actor);
  const shoal_rollout_shape shape = {s->brief.spec.kind, s->brief.envs, s->brief.steps,
                                     shoal_policy_memory_floats(policy)};
  status = shoal_rollout_create(&s->rollout, &shape, NULL);
  if (status == SHOAL_OK)
    status = shoal_play_unit_read(&s->unit, tried->unit.bytes, tried->unit.length, NULL);
  if (status == SHOAL_OK) status = shoal_policy_read(policy, tried->policy.bytes, tried->policy.length, NULL);
  return status;
}

shoal_agent_verdict shoal_agent_case_try(const shoal_agent_case *tried) {
  shoal_agent_verdict verdict = SHOAL_AGENT_UNKNOWN;
  stage *s = calloc(1, sizeof *s);
  if (s == NULL) return verdict;
  if (open_stage(s, tried) == SHOAL_OK &&
      shoal_actor_play(s->actor, &s->unit, s->rollout, NULL) == SHOAL_OK) {
    shoal_rollout_write(s->rollout, &s->bytes);
    bool same = s->bytes.length == tried->rollout.length &&
                memcmp(s->bytes.bytes, tried->rollout.bytes, s->bytes.length) == 0;
    if (!s->bytes.failed) verdict = same ? SHOAL_AGENT_AGREES : SHOAL_AGENT_LIES;
  }
  shoal_rollout_destroy(s->rollout);
  shoal_actor_destroy(s->actor);
  shoal_text_release(&s->unit.state);
  shoal_text_release(&s->bytes);
  free(s);
  return verdict;
}

void shoal_agent_case_release(shoal_agent_case *tried) {
  shoal_text_release(&tried->brief);
  shoal_text_release(&tried->unit);
  shoal_text_release(&tried->policy);
  shoal_text_release(&tried->rollout);
}

/* ---- checks ---- */

static void run(void *self) {
  check *c = self;
  c->verdict = shoal_agent_case_try(&c->tried);
}

static void unlink_check(shoal_agent_audit *a, const check *c) {
  check **at = &a->first;
  while (*at != c) at = &(*at)->next;
  *at = c->next;
  a->count--;
}

static void done(void *self, bool ran) {
  check *c = self;
  shoal_agent_audit *a = c->audit;
  unlink_check(a, c);
  a->calls.judged(a->calls.self, &c->tried, ran ? c->verdict : SHOAL_AGENT_UNKNOWN);
  shoal_agent_case_release(&c->tried);
  free(c);
}

static uint32_t count_of(const shoal_agent_audit *a, uint64_t who) {
  uint32_t count = 0;
  for (const check *c = a->first; c != NULL; c = c->next) count += c->tried.who == who;
  return count;
}

shoal_agent_draw shoal_agent_audit_draw(shoal_agent_audit *a, const shoal_standing *standing) {
  shoal_trust_put(a->trust, standing);
  if (!shoal_trust_audits(a->trust, standing->who, a->asked++)) return SHOAL_AGENT_BELIEVED;
  bool room = a->count < SHOAL_AGENT_AUDITS_MAX && count_of(a, standing->who) < AT_ONCE;
  return room ? SHOAL_AGENT_CHECKED : SHOAL_AGENT_NO_ROOM;
}

void shoal_agent_audit_add(shoal_agent_audit *a, shoal_agent_case *tried) {
  check *c = calloc(1, sizeof *c);
  if (c != NULL) {
    *c = (check){.audit = a, .tried = *tried, .next = a->first};
    const shoal_chore chore = {.subject = "", .self = c, .run = run, .done = done};
    if (shoal_chores_add(a->chores, &chore)) {
      a->first = c;
      a->count++;
      *tried = (shoal_agent_case){0};
      return;
    }
  }
  free(c);
  shoal_agent_case_release(tried);
  *tried = (shoal_agent_case){0};
}

void shoal_agent_audit_tick(shoal_agent_audit *a) { shoal_chores_tick(a->chores); }

shoal_status shoal_agent_audit_create(shoal_agent_audit **out, const shoal_agent_audit_calls *calls,
                                      shoal_error *err) {
  uint64_t seed;
  shoal_status status = shoal_draw(&seed, sizeof seed, err);
  if (status != SHOAL_OK) return status;
  shoal_agent_audit *a = calloc(1, sizeof *a);
  if (a == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  a->calls = *calls;
  status = shoal_trust_create(&a->trust, STANDINGS_MAX, seed, err);
  if (status == SHOAL_OK) status = shoal_chores_create(&a->chores, calls->self, calls->wake, err);
  if (status != SHOAL_OK) {
    shoal_agent_audit_destroy(a);
    return status;
  }
  *out = a;
  return SHOAL_OK;
}

void shoal_agent_audit_destroy(shoal_agent_audit *a) {
  if (a == NULL) return;
  shoal_chores_destroy(a->chores);
  shoal_trust_destroy(a->trust);
  free(a);
}
