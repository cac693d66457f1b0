/* Trainings that are to end now: by a signal, or because their seconds are used up, whatever they are at. */
#include "agent/interrupt.h"

#include <pthread.h>
#include <signal.h>

#include "../nn/in_folder.h"
#include "agent/training.h"
#include "base/clock.h"
#include "lessons.h"
#include "toys.h"

/* ---- a round that is given up ------------------------------------------------------- */

typedef struct patience {
  uint32_t asked, until; /* how often it was asked; when the answer becomes yes */
} patience;

static bool is_out_of_patience(void *self) {
  patience *p = self;
  return ++p->asked > p->until;
}

static shoal_learner_config config_of(const char *env, shoal_algorithm algorithm) {
  shoal_error err = {0};
  shoal_learner_config config = {.kind = shoal_env_find(env), .seed = 5, .threads = 1, .steps_all = 100000};
  lessons_must(shoal_agent_defaults(config.kind, algorithm, &config.settings, &err), &err);
  config.settings.streams = 2;
  config.settings.envs = 4;
  config.settings.steps = 32;
  config.settings.epochs = 3;
  config.settings.minibatch = 64;
  config.settings.warmup = 64;
  config.settings.memory = 1000;
  config.settings.updates = 0.1f;
  return config;
}

static const struct {
  const char *env;
  shoal_algorithm algorithm;
} cases[] = {{"CartPole-v1", SHOAL_PPO},    {"CartPole-NoVelocity", SHOAL_PPO}, {"Pendulum-v1", SHOAL_PPO},
             {"CartPole-v1", SHOAL_VTRACE}, {"CartPole-v1", SHOAL_DQN},         {"Pendulum-v1", SHOAL_SAC},
             {"CartPole-v1", SHOAL_CLONE}};
enum { CASES = sizeof cases / sizeof cases[0], ROUNDS = 4 };

/* It is as if it had never been, wherever it was given up. */
static void a_round_that_is_given_up_leaves_no_trace(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    lessons straight, interrupted;
    shoal_error err = {0};
    shoal_learner_config config = config_of(cases[i].env, cases[i].algorithm);
    lessons_begin(&straight, &config);
    lessons_begin(&interrupted, &config);
    lessons_rounds(&straight, ROUNDS);
    lessons_rounds(&interrupted, ROUNDS);
    lessons_play(&straight);
    lessons_play(&interrupted);
    for (uint32_t until = 0; until < 3; until += 2) {
      patience p = {.until = until};
      const shoal_interrupt interrupt = {is_out_of_patience, &p};
      shoal_learner_interrupt(interrupted.learner, &interrupt);
      assert_int_equal(shoal_learner_round(interrupted.learner, interrupted.rollouts, config.settings.streams,
                                           &interrupted.view, &err),
                       SHOAL_STOPPED);
      assert_int_equal(p.asked, until + 1);
      lessons_assert_same(&straight, &interrupted, false);
    }
    shoal_learner_interrupt(interrupted.learner, NULL);
    lessons_must(shoal_learner_round(straight.learner, straight.rollouts, config.settings.streams,
                                     &straight.view, &err),
                 &err);
    lessons_must(shoal_learner_round(interrupted.learner, interrupted.rollouts, config.settings.streams,
                                     &interrupted.view, &err),
                 &err);
    lessons_assert_same(&straight, &interrupted, true);
    lessons_end(&straight);
    lessons_end(&interrupted);
  }
}

static void a_unit_that_is_given_up_can_be_played_again(void **state) {
  (void)state;
  lessons straight, interrupted;
  shoal_error err = {0};
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO);
  lessons_begin(&straight, &config);
  lessons_begin(&interrupted, &config);
  lessons_play(&straight);
  lessons_play(&interrupted);
  patience p = {.until = 20};
  const shoal_interrupt interrupt = {is_out_of_patience, &p};
  shoal_actor_interrupt(interrupted.actor, &interrupt);
  shoal_play_unit unit = interrupted.units[0];
  unit.number = interrupted.number;
  assert_int_equal(shoal_actor_play(interrupted.actor, &unit, interrupted.rollouts[0], &err), SHOAL_STOPPED);
  shoal_actor_interrupt(interrupted.actor, NULL);
  lessons_play(&straight);
  lessons_play(&interrupted);
  for (uint32_t i = 0; i < config.settings.streams; i++) {
    const shoal_rollout *a = straight.rollouts[i], *b = interrupted.rollouts[i];
    assert_memory_equal(a->observations, b->observations,
                        (size_t)33 * config.settings.envs * config.kind->observation * sizeof(float));
    assert_memory_equal(a->rewards, b->rewards, (size_t)32 * config.settings.envs * sizeof(float));
  }
  lessons_end(&straight);
  lessons_end(&interrupted);
}

/* ---- an environment that takes its time --------------------------------------------- */

enum { STEP_US = 2000, EPISODE_STEPS = 4 };
static uint32_t slow_steps; /* that were made */

static void slow_step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                      float *rewards, bool *ended) {
  shoal_clock_sleep(1e-6 * STEP_US * count);
  __atomic_add_fetch(&slow_steps, count, __ATOMIC_RELAXED);
  treadmill_step(states, count, actions, randoms, rewards, ended);
}

static shoal_env_kind slow_kind(void) {
  shoal_env_kind slow = treadmill;
  slow.name = "Slow";
  slow.limit = EPISODE_STEPS;
  slow.solved = 1; /* any episode reaches that */
  slow.step = slow_step;
  return slow;
}

static shoal_learner_config slow_config(const shoal_env_kind *kind, shoal_algorithm algorithm) {
  shoal_learner_config config = config_of("CartPole-v1", algorithm);
  config.kind = kind;
  config.threads = 2;
  config.settings.envs = 1;
  config.settings.steps = 8;
  config.settings.lag = algorithm == SHOAL_VTRACE || algorithm == SHOAL_DQN;
  return config;
}

typedef struct run {
  shoal_training_options options;
  shoal_training_view view;
  shoal_error err;
  shoal_status status;
  double seconds;
} run;

static void train(run *r, const shoal_learner_config *config) {
  lessons_must(shoal_learner_create(&r->options.learner, config, &r->err), &r->err);
  r->options.config = *config;
  r->options.threads = config->threads;
  double begun = shoal_clock_seconds();
  r->status = shoal_train_agent(&r->options, &r->view, &r->err);
  r->seconds = shoal_clock_seconds() - begun;
  shoal_learner_destroy(r->options.learner);
}

/* A score of 100 such episodes takes longer than there is for it. On a busy machine there may be no time for even one: then
 * it is tried again. */
static void seconds_hold_for_the_last_score_too(void **state) {
  (void)state;
  static const shoal_algorithm algorithms[] = {SHOAL_PPO, SHOAL_VTRACE, SHOAL_DQN};
  shoal_env_kind slow = slow_kind();
  for (int i = 0; i < 3; i++) {
    shoal_learner_config config = slow_config(&slow, algorithms[i]);
    run r;
    int tries = 0;
    do {
      r = (run){.options = {.seconds = 1.5, .steps = 1000000000}};
      train(&r, &config);
      lessons_must(r.status, &r.err);
      assert_true(r.seconds > 1.3);
    } while (r.view.evaluation.episodes == 0 && ++tries < 100);
    assert_true(r.view.round.steps > 0);
    assert_in_range(r.view.evaluation.episodes, 1, SHOAL_SCORE_EPISODES - 1);
    assert_true(r.view.evaluation.mean == EPISODE_STEPS && r.view.evaluation.deviation == 0);
    assert_false(r.view.solved); /* of so few episodes nobody can tell */
  }
}

static void steps_end_it_with_a_whole_score_where_the_seconds_suffice(void **state) {
  (void)state;
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO);
  run timed = {.options = {.seconds = 100, .steps = 1024}}, free = {.options = {.steps = 1024}};
  train(&timed, &config);
  train(&free, &config);
  lessons_must(timed.status, &timed.err);
  assert_int_equal(timed.view.evaluation.episodes, SHOAL_SCORE_EPISODES);
  assert_true(timed.view.evaluation.mean == free.view.evaluation.mean);
  assert_true(timed.view.round.steps == 1024 && free.view.round.steps == 1024);
}

/* Nobody has so much time: what there is to tell is that there was none. */
static void an_episode_that_never_ends_is_not_waited_for(void **state) {
  (void)state;
  shoal_env_kind endless = slow_kind();
  endless.limit = 0;
  shoal_learner_config config = slow_config(&endless, SHOAL_PPO);
  run r = {.options = {.seconds = 0.3, .steps = 1000000000}};
  train(&r, &config);
  lessons_must(r.status, &r.err);
  assert_true(r.seconds > 0.2);
  assert_int_equal(r.view.evaluation.episodes, 0);
  assert_true(isnan(r.view.evaluation.mean));
  assert_false(r.view.solved || r.view.scored);
}

/* ---- signals ------------------------------------------------------------------------ */

static volatile sig_atomic_t stop;
static double stopped_at;

/* After so many steps of the slow environment. */
static void *stop_soon(void *self) {
  while (__atomic_load_n(&slow_steps, __ATOMIC_RELAXED) < *(const uint32_t *)self) shoal_clock_sleep(0.01);
  shoal_clock_sleep(0.2);
  stopped_at = shoal_clock_seconds();
  __atomic_store_n(&stop, SIGTERM, __ATOMIC_RELAXED);
  return NULL;
}

/* Not being heard would take it minutes. */
static void train_until_stopped(run *r, const shoal_learner_config *config, uint32_t steps) {
  pthread_t thread;
  stop = 0;
  slow_steps = 0;
  r->options.stop = &stop;
  assert_int_equal(pthread_create(&thread, NULL, stop_soon, &steps), 0);
  train(r, config);
  double ended = shoal_clock_seconds();
  pthread_join(thread, NULL);
  assert_int_equal(r->status, SHOAL_STOPPED);
  if (ended - stopped_at > 50) fail_msg("%g seconds", ended - stopped_at);
}

static void a_signal_ends_playing(void **state) {
  (void)state;
  shoal_env_kind slow = slow_kind();
  for (int apart = 0; apart < 2; apart++) {
    shoal_learner_config config = slow_config(&slow, apart ? SHOAL_VTRACE : SHOAL_PPO);
    config.settings.steps = 65536; /* minutes */
    run r = {.options = {.steps = 1000000000, .out = "agent.safetensors"}};
    train_until_stopped(&r, &config, 10);
    assert_int_equal(r.view.round.steps, 0);
    assert_int_equal(access("agent.safetensors", R_OK), 0);
  }
}

static void a_signal_ends_learning(void **state) {
  (void)state;
  static const shoal_algorithm algorithms[] = {SHOAL_PPO, SHOAL_VTRACE, SHOAL_CLONE, SHOAL_DQN, SHOAL_SAC};
  for (int i = 0; i < 5; i++) {
    bool real = algorithms[i] == SHOAL_SAC;
    shoal_learner_config config = config_of(real ? "Pendulum-v1" : "CartPole-v1", algorithms[i]);
    config.settings.steps = 4096;
    config.settings.epochs = 1000; /* minutes */
    config.settings.updates = 1000;
    config.settings.keep_share = 0;
    run r = {.options = {.steps = 1000000000}};
    train_until_stopped(&r, &config, 0);
  }
}

static void a_signal_ends_a_score(void **state) {
  (void)state;
  shoal_env_kind endless = slow_kind();
  endless.limit = 0;
  shoal_learner_config config = slow_config(&endless, SHOAL_PPO);
  run r = {.options = {.steps = 16, .out = "agent.safetensors"}};
  train_until_stopped(&r, &config, 16 + 10);
  assert_int_equal(r.view.round.steps, 16);
  assert_int_equal(access("agent.safetensors", R_OK), 0);
}

/* Playing is cut short by the seconds; what comes of it later is the same as without that. */
static void what_seconds_cut_short_is_taken_up_again(void **state) {
  (void)state;
  shoal_error err = {0};
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO);
  shoal_learner *straight, *halves;
  shoal_training_view view;
  lessons_must(shoal_learner_create(&straight, &config, &err), &err);
  shoal_training_options options = {.learner = straight, .config = config, .threads = 1, .steps = 256 * 200};
  double begun = shoal_clock_seconds();
  lessons_must(shoal_train_agent(&options, &view, &err), &err);
  double took_s = shoal_clock_seconds() - begun; /* long under a sanitizer */
  double part_s = took_s / 8;
  int parts = 0;
  uint64_t steps = 0;
  for (; steps < 256 * 200; parts++) {
    assert_true(parts < 1000);
    lessons_must(shoal_learner_create(&halves, &config, &err), &err);
    if (parts > 0) lessons_must(shoal_learner_load(halves, "halves", &err), &err);
    options = (shoal_training_options){.learner = halves,
                                       .config = config,
                                       .threads = 1,
                                       .steps = 256 * 200,
                                       .seconds = part_s,
                                       .out = "halves"};
    lessons_must(shoal_train_agent(&options, &view, &err), &err);
    steps = shoal_learner_steps(halves);
    bool too_soon =
        steps == 256 * 200 && parts < 2; /* the machine was busier while it was measured: once more */
    if (steps < 256 * 200 || too_soon) shoal_learner_destroy(halves);
    if (!too_soon) continue;
    part_s /= 8;
    parts = -1;
    steps = 0;
  }
  assert_true(parts > 2);
  const shoal_policy_state *a = shoal_policy_state_of(shoal_learner_policy(straight));
  const shoal_policy_state *b = shoal_policy_state_of(shoal_learner_policy(halves));
  assert_memory_equal(a->weights, b->weights, a->weights_count * sizeof(float));
  shoal_learner_destroy(straight);
  shoal_learner_destroy(halves);
}

int main(void) {
  toys_used();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_round_that_is_given_up_leaves_no_trace),
      cmocka_unit_test(a_unit_that_is_given_up_can_be_played_again),
      cmocka_unit_test(seconds_hold_for_the_last_score_too),
      cmocka_unit_test(steps_end_it_with_a_whole_score_where_the_seconds_suffice),
      cmocka_unit_test(an_episode_that_never_ends_is_not_waited_for),
      IN_FOLDER(a_signal_ends_playing),
      cmocka_unit_test(a_signal_ends_learning),
      IN_FOLDER(a_signal_ends_a_score),
      IN_FOLDER(what_seconds_cut_short_is_taken_up_again),
  };
  return RUN_TESTS(tests);
}
