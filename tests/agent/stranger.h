/* stranger.h: an actor that has nothing of a training but bytes. */
#ifndef SHOAL_TESTS_AGENT_STRANGER_H
#define SHOAL_TESTS_AGENT_STRANGER_H

#include "agent/coach.h"
#include "base/clock.h"
#include "check.h"

static const double STRANGER_PATIENCE_S = PATIENCE_S;

typedef struct stranger {
  shoal_coach *coach;
  const char *name;
  shoal_actor *actor;
  shoal_rollout *rollout;
  shoal_text unit, policy, bytes; /* that came with the last unit; that were sent */
  uint64_t known, played;
} stranger;

static void stranger_must(shoal_status status, const shoal_error *err) {
  if (status != SHOAL_OK) fail_msg("%s", err->text);
}

/* With a policy that is known beforehand. */
static void stranger_begin_with(stranger *s, shoal_coach *coach, const char *name,
                                const shoal_policy_spec *spec, uint32_t envs, uint32_t steps) {
  shoal_error err = {0};
  *s = (stranger){.coach = coach, .name = name, .known = UINT64_MAX};
  stranger_must(shoal_actor_create(&s->actor, spec, envs, steps, &err), &err);
  shoal_rollout_shape shape = {.kind = spec->kind,
                               .envs = envs,
                               .steps = steps,
                               .memory_floats = shoal_policy_memory_floats(shoal_actor_policy(s->actor))};
  stranger_must(shoal_rollout_create(&s->rollout, &shape, &err), &err);
}

static void stranger_begin(stranger *s, shoal_coach *coach, const char *name) {
  shoal_error err = {0};
  shoal_text json = {0};
  shoal_actor_brief brief;
  shoal_coach_brief(coach, 0, &json);
  stranger_must(shoal_actor_brief_read(&brief, json.bytes, json.length, &err), &err);
  shoal_text_release(&json);
  stranger_begin_with(s, coach, name, &brief.spec, brief.envs, brief.steps);
}

static void stranger_end(stranger *s) {
  shoal_rollout_destroy(s->rollout);
  shoal_actor_destroy(s->actor);
  shoal_text_release(&s->unit);
  shoal_text_release(&s->policy);
  shoal_text_release(&s->bytes);
}

/* Waits for a unit; false: it is over. */
static bool stranger_take(stranger *s) {
  double deadline = shoal_clock_seconds() + STRANGER_PATIENCE_S;
  shoal_coach_next next;
  while ((next = shoal_coach_take(s->coach, s->name, s->known, &s->unit, &s->policy)) == SHOAL_COACH_WAITS) {
    assert_true(shoal_clock_seconds() < deadline);
    shoal_clock_sleep(0.001);
  }
  return next == SHOAL_COACH_UNIT;
}

/* Plays the unit that it has; whether its rollout counted. */
static bool stranger_play(stranger *s) {
  shoal_error err = {0};
  shoal_play_unit unit = {0};
  bool counted;
  stranger_must(shoal_play_unit_read(&unit, s->unit.bytes, s->unit.length, &err), &err);
  if (s->policy.length > 0)
    stranger_must(shoal_policy_read(shoal_actor_policy(s->actor), s->policy.bytes, s->policy.length, &err),
                  &err);
  else
    assert_int_equal(s->known, unit.version);
  s->known = unit.version;
  stranger_must(shoal_actor_play(s->actor, &unit, s->rollout, &err), &err);
  shoal_text_clear(&s->bytes);
  shoal_rollout_write(s->rollout, &s->bytes);
  stranger_must(shoal_coach_done(s->coach, s->name, s->bytes.bytes, s->bytes.length, &counted, &err), &err);
  s->played += counted;
  shoal_text_release(&unit.state);
  return counted;
}

/* A thread: plays until it is over. */
static void *stranger_run(void *self) {
  stranger *s = self;
  while (stranger_take(s)) stranger_play(s);
  return NULL;
}

#endif
