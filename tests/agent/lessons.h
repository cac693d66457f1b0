/* lessons.h: a learner and its actor in one thread, round after round, and what any learner must hold to. */
#ifndef SHOAL_TESTS_AGENT_LESSONS_H
#define SHOAL_TESTS_AGENT_LESSONS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/learner_internal.h"
#include "check.h"

enum { LESSONS_STREAMS_MAX = 8 };

typedef struct lessons {
  shoal_learner_config config;
  shoal_learner *learner;
  shoal_actor *actor;
  shoal_rollout *rollouts[LESSONS_STREAMS_MAX];
  shoal_play_unit units[LESSONS_STREAMS_MAX];
  uint64_t number;
  shoal_round_view view;
} lessons;

static void lessons_must(shoal_status status, const shoal_error *err) {
  if (status != SHOAL_OK) fail_msg("%s", err->text);
}

static void lessons_begin(lessons *l, const shoal_learner_config *config) {
  shoal_error err = {0};
  const shoal_agent_settings *s = &config->settings;
  assert_true(s->streams <= LESSONS_STREAMS_MAX);
  *l = (lessons){.config = *config};
  lessons_must(shoal_learner_create(&l->learner, config, &err), &err);
  lessons_must(shoal_actor_create(&l->actor, shoal_learner_spec(l->learner), s->envs, s->steps, &err), &err);
  shoal_rollout_shape shape = {.kind = config->kind,
                               .envs = s->envs,
                               .steps = s->steps,
                               .memory_floats = shoal_policy_memory_floats(shoal_learner_policy(l->learner))};
  for (uint32_t i = 0; i < s->streams; i++) {
    lessons_must(shoal_rollout_create(&l->rollouts[i], &shape, &err), &err);
    shoal_text_init(&l->units[i].state);
  }
}

static inline void lessons_end(lessons *l) {
  for (uint32_t i = 0; i < l->config.settings.streams; i++) {
    shoal_rollout_destroy(l->rollouts[i]);
    shoal_text_release(&l->units[i].state);
  }
  shoal_actor_destroy(l->actor);
  shoal_learner_destroy(l->learner);
}

static void lessons_play(lessons *l) {
  shoal_error err = {0};
  shoal_text bytes;
  shoal_text_init(&bytes);
  shoal_policy_write(shoal_learner_policy(l->learner), &bytes);
  lessons_must(shoal_policy_read(shoal_actor_policy(l->actor), bytes.bytes, bytes.length, &err), &err);
  shoal_text_release(&bytes);
  for (uint32_t i = 0; i < l->config.settings.streams; i++) {
    shoal_play_unit *unit = &l->units[i];
    unit->number = l->number++;
    unit->stream = i;
    unit->seed = l->config.seed;
    lessons_must(shoal_actor_play(l->actor, unit, l->rollouts[i], &err), &err);
    shoal_text_clear(&unit->state);
    shoal_text_add(&unit->state, l->rollouts[i]->state.bytes, l->rollouts[i]->state.length);
  }
}

static inline void lessons_rounds(lessons *l, uint32_t rounds) {
  shoal_error err = {0};
  for (uint32_t i = 0; i < rounds; i++) {
    lessons_play(l);
    lessons_must(shoal_learner_round(l->learner, l->rollouts, l->config.settings.streams, &l->view, &err),
                 &err);
  }
}

static inline double lessons_score(lessons *l, uint32_t episodes) {
  shoal_error err = {0};
  shoal_evaluation score;
  lessons_must(shoal_evaluate_policy(shoal_learner_policy(l->learner), l->config.kind, episodes, 1234, NULL,
                                     &score, &err),
               &err);
  return score.mean;
}

/* Everything that is kept of both is equal; but for what is remembered, where that is not asked for: of a
 * round that was taken back, there are traces beyond what can be drawn. */
static inline void lessons_assert_same(lessons *a, lessons *b, bool rows) {
  shoal_kept of_a[SHOAL_KEPT_MAX], of_b[SHOAL_KEPT_MAX];
  uint32_t count = a->learner->ops->kept(a->learner, of_a);
  assert_int_equal(b->learner->ops->kept(b->learner, of_b), count);
  for (uint32_t i = 0; i < count; i++) {
    size_t bytes = of_a[i].count * (of_a[i].bytes ? 1 : sizeof(float));
    assert_int_equal(of_a[i].count, of_b[i].count);
    if (!rows && strcmp(of_a[i].name, "replay.rows") == 0) continue;
    if (memcmp(of_a[i].at, of_b[i].at, bytes) != 0) fail_msg("%s differs", of_a[i].name);
  }
  shoal_policy_state *state_a = shoal_policy_state_of(shoal_learner_policy(a->learner));
  shoal_policy_state *state_b = shoal_policy_state_of(shoal_learner_policy(b->learner));
  assert_memory_equal(state_a->weights, state_b->weights, state_a->weights_count * sizeof(float));
  assert_float_equal(state_a->epsilon, state_b->epsilon, 0);
}

/* ---- what any learner must hold to ---- */

static inline void lessons_check_threads(const shoal_learner_config *config, uint32_t rounds) {
  lessons one, many;
  shoal_learner_config other = *config;
  other.threads = 3;
  lessons_begin(&one, config);
  lessons_begin(&many, &other);
  lessons_rounds(&one, rounds);
  lessons_rounds(&many, rounds);
  lessons_assert_same(&one, &many, true);
  lessons_end(&one);
  lessons_end(&many);
}

static inline void lessons_check_files(const shoal_learner_config *config, uint32_t rounds) {
  lessons straight, loaded;
  shoal_error err = {0};
  char path[] = "/tmp/shoal-test-agent-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  lessons_begin(&straight, config);
  lessons_begin(&loaded, config);
  lessons_rounds(&straight, rounds);
  lessons_must(shoal_learner_save(straight.learner, path, true, &err), &err);
  lessons_must(shoal_learner_load(loaded.learner, path, &err), &err);
  unlink(path);
  lessons_assert_same(&straight, &loaded, true);
  for (uint32_t i = 0; i < config->settings.streams; i++)
    shoal_text_add(&loaded.units[i].state, straight.units[i].state.bytes, straight.units[i].state.length);
  loaded.number = straight.number;
  lessons_rounds(&straight, rounds);
  lessons_rounds(&loaded, rounds);
  lessons_assert_same(&straight, &loaded, true);
  lessons_end(&straight);
  lessons_end(&loaded);
}

/* A round that is spoilt gives SHOAL_INVALID, and it is as if it had never been. */
static inline void lessons_check_spoilt(const shoal_learner_config *config, uint32_t rounds,
                                        void (*spoil)(shoal_rollout *rollout), const char *text) {
  lessons straight, spoilt;
  shoal_error err = {0};
  lessons_begin(&straight, config);
  lessons_begin(&spoilt, config);
  lessons_rounds(&straight, rounds);
  lessons_rounds(&spoilt, rounds);
  lessons_play(&straight);
  lessons_play(&spoilt);
  spoil(spoilt.rollouts[0]);
  assert_int_equal(
      shoal_learner_round(spoilt.learner, spoilt.rollouts, config->settings.streams, &spoilt.view, &err),
      SHOAL_INVALID);
  if (strstr(err.text, text) == NULL) fail_msg("%s", err.text);
  lessons_assert_same(&straight, &spoilt, false);
  lessons_rounds(&straight, rounds);
  lessons_rounds(&spoilt, rounds);
  lessons_assert_same(&straight, &spoilt, true);
  lessons_end(&straight);
  lessons_end(&spoilt);
}

#endif
