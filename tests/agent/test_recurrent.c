/* Policies that remember: states across rollouts however a round is put together, the same bits for any
 * number of threads and after files, and a task that nobody solves without a memory. */
#include <math.h>
#include <string.h>

#include "agent/actor_critic.h"
#include "lessons.h"

enum { ENVS = 2, STEPS = 12 };

static shoal_learner_config config_of(const char *env, shoal_algorithm algorithm, const char *body) {
  shoal_learner_config config = {.kind = shoal_env_find(env), .seed = 5, .threads = 1};
  shoal_error err = {0};
  lessons_must(shoal_agent_defaults(config.kind, algorithm, &config.settings, &err), &err);
  snprintf(config.settings.body, sizeof config.settings.body, "%s", body);
  return config;
}

static shoal_learner_config short_config(uint32_t streams, uint32_t steps) {
  shoal_learner_config config = config_of("CartPole-NoVelocity", SHOAL_VTRACE, "gru 8");
  config.settings.streams = streams;
  config.settings.envs = ENVS;
  config.settings.steps = steps;
  return config;
}

static void play_on(lessons *l, uint32_t stretch) {
  shoal_error err = {0};
  shoal_play_unit *unit = &l->units[0];
  unit->number = stretch;
  lessons_must(shoal_actor_play(l->actor, unit, l->rollouts[stretch], &err), &err);
  shoal_text_clear(&unit->state);
  shoal_text_add(&unit->state, l->rollouts[stretch]->state.bytes, l->rollouts[stretch]->state.length);
}

static void send_policy(lessons *l) {
  shoal_text bytes = {0};
  shoal_error err = {0};
  shoal_policy_write(shoal_learner_policy(l->learner), &bytes);
  lessons_must(shoal_policy_read(shoal_actor_policy(l->actor), bytes.bytes, bytes.length, &err), &err);
  shoal_text_release(&bytes);
}

static void look_at(lessons *l, shoal_rollout *const *rollouts, uint32_t count) {
  shoal_actor_critic_begin(l->learner, rollouts, count);
  shoal_actor_critic_ratios(l->learner);
  shoal_actor_critic_values(l->learner);
}

/* Values of step t of the count-th rollout, and of the long one. */
static void assert_same_values(const shoal_actor_critic *parts, const shoal_actor_critic *whole,
                               uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    const float *part = parts->values + (size_t)k * (STEPS + 1) * ENVS;
    assert_memory_equal(part, whole->values + (size_t)k * STEPS * ENVS, (STEPS + 1) * ENVS * sizeof *part);
  }
}

/* Rollouts of one stream, all in one round, as it happens where actors do not wait for each other. */
static void a_round_with_a_stream_several_times_has_the_values_of_one_long_rollout(void **state) {
  (void)state;
  enum { PARTS = 3 };
  shoal_learner_config parts_config = short_config(PARTS, STEPS),
                       whole_config = short_config(1, PARTS * STEPS);
  lessons parts, whole;
  lessons_begin(&parts, &parts_config);
  lessons_begin(&whole, &whole_config);
  send_policy(&parts);
  send_policy(&whole);
  for (uint32_t k = 0; k < PARTS; k++) play_on(&parts, k);
  play_on(&whole, 0);
  look_at(&parts, parts.rollouts, PARTS);
  look_at(&whole, whole.rollouts, 1);
  const shoal_actor_critic *m = parts.learner->mind;
  assert_same_values(m, whole.learner->mind, PARTS);
  for (uint32_t sample = 0; sample < m->samples; sample++) assert_true(fabsf(m->log_ratios[sample]) < 1e-5f);
  lessons_end(&parts);
  lessons_end(&whole);
}

/* One after the other, each in a round of its own; only what is learned in between is left out. */
static void a_stream_goes_on_from_round_to_round(void **state) {
  (void)state;
  enum { PARTS = 2 };
  shoal_learner_config parts_config = short_config(PARTS, STEPS),
                       whole_config = short_config(1, PARTS * STEPS);
  lessons parts, whole;
  lessons_begin(&parts, &parts_config);
  lessons_begin(&whole, &whole_config);
  send_policy(&parts);
  send_policy(&whole);
  for (uint32_t k = 0; k < PARTS; k++) play_on(&parts, k);
  play_on(&whole, 0);
  look_at(&whole, whole.rollouts, 1);
  look_at(&parts, parts.rollouts, 1);
  shoal_actor_critic_end(parts.learner);
  look_at(&parts, parts.rollouts + 1, 1);
  const shoal_actor_critic *m = parts.learner->mind, *of_whole = whole.learner->mind;
  assert_memory_equal(m->values, of_whole->values + STEPS * ENVS, (STEPS + 1) * ENVS * sizeof *m->values);
  lessons_end(&parts);
  lessons_end(&whole);
}

/* A rollout that was refused leaves a gap: what comes behind it begins with nothing, as a stream does. */
static void behind_a_gap_it_begins_with_nothing(void **state) {
  (void)state;
  shoal_learner_config config = short_config(3, STEPS);
  lessons l, fresh;
  lessons_begin(&l, &config);
  lessons_begin(&fresh, &config);
  send_policy(&l);
  for (uint32_t k = 0; k < 3; k++) play_on(&l, k);
  shoal_rollout *const with_gap[] = {l.rollouts[0], l.rollouts[2]};
  look_at(&l, with_gap, 2);
  look_at(&fresh, with_gap + 1, 1);
  const shoal_actor_critic *m = l.learner->mind, *of_fresh = fresh.learner->mind;
  assert_memory_equal(m->values + (STEPS + 1) * ENVS, of_fresh->values,
                      (STEPS + 1) * ENVS * sizeof *m->values);
  lessons_end(&l);
  lessons_end(&fresh);
}

static shoal_learner_config clone_config(void) {
  shoal_learner_config config = config_of("CartPole-NoVelocity", SHOAL_CLONE, "gru 8;dense 8 relu");
  for (char *at = config.settings.body; *at; at++)
    if (*at == ';') *at = '\n';
  config.settings.streams = 2;
  config.settings.envs = 4;
  config.settings.steps = 50;
  config.settings.keep_steps = 2000;
  config.settings.minibatch = 128;
  return config;
}

/* Mean of what each action of the episodes that ended cost, as their actor saw it; and how many of them are
 * longer than a sequence. */
static double played_loss(const lessons *l, uint32_t *longer) {
  double sum = 0;
  uint32_t count = 0;
  *longer = 0;
  for (uint32_t k = 0; k < l->config.settings.streams; k++) {
    const shoal_rollout *r = l->rollouts[k];
    for (uint32_t e = 0; e < r->shape.envs; e++) {
      double of_episode = 0;
      for (uint32_t t = 0, length = 0; t < r->shape.steps; t++) {
        uint32_t row = t * r->shape.envs + e;
        of_episode -= (double)r->log_probs[row];
        length++;
        if (r->ends[row] == SHOAL_GOES_ON) continue;
        sum += of_episode;
        count += length;
        *longer += length > SHOAL_SEQUENCE_MAX;
        of_episode = length = 0;
      }
    }
  }
  return sum / count;
}

/* Where nothing is changed by learning, what is imitated is as likely as it was when it was played: sequences
 * have the states that the actor had. */
static void cloning_sees_what_the_actor_remembered(void **state) {
  (void)state;
  shoal_learner_config config = clone_config();
  config.settings.steps = 400;
  config.settings.rate = 0;
  config.settings.minibatch = config.settings.keep_steps = 10000;
  config.settings.scale_observations = false;
  lessons l;
  uint32_t longer;
  lessons_begin(&l, &config);
  lessons_rounds(&l, 1);
  double loss = played_loss(&l, &longer);
  assert_true(longer > 5);
  assert_float_equal(l.view.loss, loss, 1e-6);
  lessons_end(&l);
}

static void cloning_is_the_same_with_any_number_of_threads(void **state) {
  (void)state;
  shoal_learner_config config = clone_config();
  lessons_check_threads(&config, 12);
}

static void cloning_goes_on_from_a_file(void **state) {
  (void)state;
  shoal_learner_config config = clone_config();
  lessons_check_files(&config, 8);
}

/* What is learned from memory's single steps cannot remember, and says so. */
static void who_cannot_remember_says_so(void **state) {
  (void)state;
  static const struct {
    const char *env;
    shoal_algorithm algorithm;
    const char *text; /* clone imitates choices alone */
  } cases[] = {{"CartPole-v1", SHOAL_DQN, "use ppo, vtrace or clone"},
               {"Pendulum-v1", SHOAL_SAC, "use ppo or vtrace"}};
  for (int i = 0; i < 2; i++) {
    shoal_learner_config config = config_of(cases[i].env, cases[i].algorithm, "gru 8");
    shoal_learner *learner;
    shoal_error err = {0};
    assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_INVALID);
    assert_non_null(strstr(err.text, cases[i].text));
  }
}

/* The best score of 100 episodes within so many steps. */
static double best_of(shoal_algorithm algorithm, const char *body, uint64_t steps, double enough) {
  shoal_learner_config config = config_of("CartPole-NoVelocity", algorithm, body);
  for (char *at = config.settings.body; *at; at++)
    if (*at == ';') *at = '\n';
  lessons l;
  double best = 0;
  lessons_begin(&l, &config);
  while (shoal_learner_steps(l.learner) < steps && best < enough) {
    lessons_rounds(&l, 4);
    best = fmax(best, lessons_score(&l, 100));
  }
  lessons_end(&l);
  return best;
}

static void without_velocities_memory_is_needed_and_enough(void **state) {
  (void)state;
  double goal = shoal_env_find("CartPole-NoVelocity")->solved;
  assert_true(best_of(SHOAL_PPO, "gru 32;dense 32 tanh", 400000, goal) >= goal);
  assert_true(best_of(SHOAL_VTRACE, "gru 32;dense 32 tanh", 400000, goal) >= goal);
  assert_true(best_of(SHOAL_CLONE, "gru 32;dense 32 relu", 1000000, goal) >= goal);
  assert_true(best_of(SHOAL_PPO, "dense 64 tanh;dense 64 tanh", 400000, goal) < goal / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_round_with_a_stream_several_times_has_the_values_of_one_long_rollout),
      cmocka_unit_test(a_stream_goes_on_from_round_to_round),
      cmocka_unit_test(behind_a_gap_it_begins_with_nothing),
      cmocka_unit_test(cloning_sees_what_the_actor_remembered),
      cmocka_unit_test(cloning_is_the_same_with_any_number_of_threads),
      cmocka_unit_test(cloning_goes_on_from_a_file),
      cmocka_unit_test(who_cannot_remember_says_so),
      cmocka_unit_test(without_velocities_memory_is_needed_and_enough),
  };
  return RUN_TESTS(tests);
}
