/* The failures of the system that agents come from, each with a test that it is gone:
 *
 *   every message resends all earlier data          messages are as large as what was played, and no larger
 *   the solved test compares floats for equality    a mean at the goal or above it is enough
 *   late workers never get the model                the first unit comes with the newest policy
 *   parsing under a lock is the bottleneck          messages are bytes, and read while others are served
 *   data grows without bound                        after thousands of rounds there is no more than before
 *
 * What needs a broker is in tests/server/agent_queue.py. */
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/training.h"
#include "lessons.h"
#include "stranger.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void must(shoal_status status, const shoal_error *err) {
  if (status != SHOAL_OK) fail_msg("%s", err->text);
}

static shoal_coach_config coach_config(const shoal_env_kind *kind, shoal_algorithm algorithm) {
  shoal_coach_config config = {.lease_s = 60};
  shoal_error err = {0};
  config.learner = (shoal_learner_config){.kind = kind, .seed = 3, .threads = 1};
  must(shoal_agent_defaults(kind, algorithm, &config.learner.settings, &err), &err);
  return config;
}

static shoal_coach *start(const shoal_coach_config *config) {
  shoal_coach *coach;
  shoal_error err = {0};
  must(shoal_coach_start(&coach, config, &err), &err);
  return coach;
}

static void finish(shoal_coach *coach) {
  shoal_coach_stop(coach);
  shoal_coach_wait(coach);
  shoal_coach_view view;
  shoal_coach_look(coach, &view);
  assert_string_equal(view.error, "");
  shoal_coach_destroy(coach);
}

static shoal_coach_view look(shoal_coach *coach) {
  shoal_coach_view view;
  shoal_coach_look(coach, &view);
  return view;
}

/* Plays until so many rounds were learned from, and nothing more is to be learned from. */
static void play_until(stranger *s, uint64_t rounds, void (*each)(stranger *s, void *self), void *self) {
  uint32_t streams = 4;
  double deadline = shoal_clock_seconds() + STRANGER_PATIENCE_S;
  while (look(s->coach).course.units < rounds * streams) {
    assert_true(stranger_take(s));
    stranger_play(s);
    if (each) each(s, self);
  }
  while (look(s->coach).course.rounds < rounds) {
    assert_true(shoal_clock_seconds() < deadline);
    shoal_clock_sleep(0.001);
  }
}

/* ---- every message resends all earlier data ------------------------------------------- */

typedef struct sizes {
  size_t unit, policy; /* of the first that were sent */
  uint64_t messages;
} sizes;

/* A head and a checksum, each step once, each episode that ended within it, and where the stream stands. */
static size_t wanted_bytes(const shoal_rollout *r) {
  const shoal_env_kind *kind = r->shape.kind;
  size_t rows = (size_t)r->shape.envs * r->shape.steps, seen = kind->observation * sizeof(float);
  size_t head = 8 + 2 * 8 + 8 * 4, step = 1 + 1 + seen + 2 * sizeof(float);
  return head + rows * step + r->shape.envs * seen + r->lasts_count * seen + r->episodes_count * 8u +
         r->state.length + 4;
}

static void measure(stranger *s, void *self) {
  sizes *all = self;
  assert_int_equal(s->bytes.length, wanted_bytes(s->rollout));
  if (s->policy.length > 0 && all->policy == 0) all->policy = s->policy.length;
  if (s->policy.length > 0) assert_int_equal(s->policy.length, all->policy);
  bool first = all->messages++ < 4; /* a stream's first unit has no state */
  if (!first && all->unit == 0) all->unit = s->unit.length;
  if (!first) assert_int_equal(s->unit.length, all->unit);
}

static void a_message_has_what_was_played_and_nothing_of_before(void **state) {
  (void)state;
  static const shoal_algorithm algorithms[] = {SHOAL_VTRACE, SHOAL_CLONE};
  for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
    shoal_coach_config config = coach_config(shoal_env_find("CartPole-v1"), algorithms[i]);
    config.learner.settings.streams = 4;
    shoal_coach *coach = start(&config);
    stranger s;
    sizes all = {0};
    stranger_begin(&s, coach, "actor");
    play_until(&s, 30, measure, &all);
    assert_int_equal(all.messages, s.played);
    assert_true(all.messages >= 120 && all.unit > 0 && all.policy > 0);
    stranger_end(&s);
    finish(coach);
  }
}

/* ---- the solved test compares floats for equality ------------------------------------- */

/* Every step earns a tenth, which no float is, and an episode has six of them. */
static void still_reset(void *state, shoal_pcg64 *random) {
  (void)random;
  *(int *)state = 0;
}
static void still_step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                       float *rewards, bool *ended) {
  (void)states, (void)actions, (void)randoms;
  for (uint32_t i = 0; i < count; i++) {
    rewards[i] = 0.1f;
    ended[i] = false;
  }
}
static void still_observe(const void *states, uint32_t count, float *out) {
  (void)states;
  for (uint32_t i = 0; i < count; i++) out[i] = 1;
}
static const shoal_env_kind still = {.name = "Still",
                                     .observation = 1,
                                     .choices = 2,
                                     .action_width = 1,
                                     .limit = 6,
                                     .solved = NAN,
                                     .bytes = sizeof(int),
                                     .reset = still_reset,
                                     .step = still_step,
                                     .observe = still_observe};

static shoal_learner_config still_config(const shoal_env_kind *kind) {
  shoal_learner_config config = {.kind = kind, .seed = 3, .threads = 1};
  shoal_error err = {0};
  must(shoal_agent_defaults(kind, SHOAL_PPO, &config.settings, &err), &err);
  memcpy(config.settings.body, "dense 4 tanh", sizeof "dense 4 tanh");
  config.settings.streams = 1;
  config.settings.envs = 32;
  config.settings.steps = 6;
  config.settings.epochs = 1;
  return config;
}

/* Whether a training in which every episode earns the same is told to have reached a goal. */
static bool is_solved(double goal) {
  shoal_env_kind kind = still;
  kind.solved = goal;
  shoal_learner_config config = still_config(&kind);
  shoal_learner *learner;
  shoal_training_view view;
  shoal_error err = {0};
  must(shoal_learner_create(&learner, &config, &err), &err);
  const shoal_training_options options = {
      .learner = learner, .config = config, .threads = 1, .steps = 400, .until_solved = true};
  must(shoal_train_agent(&options, &view, &err), &err);
  assert_int_equal(view.evaluation.episodes, SHOAL_SCORE_EPISODES);
  shoal_learner_destroy(learner);
  return view.solved;
}

static void a_mean_at_the_goal_or_above_is_solved_and_one_below_is_not(void **state) {
  (void)state;
  double earned = 0;
  for (int i = 0; i < 6; i++) earned += (double)0.1f;
  assert_true(is_solved(earned)); /* however the mean of a hundred of them is rounded */
  assert_true(is_solved(nextafter(earned, 1)));
  assert_true(is_solved(earned - 1e-6));
  assert_true(is_solved(earned - 0.3));
  assert_true(is_solved(-1000));
  assert_false(is_solved(earned + 1e-6));
  assert_false(is_solved(earned + 0.3));
  assert_false(is_solved(NAN));
}

/* ---- late workers never get the model ------------------------------------------------- */

static void check_late(bool exact, shoal_algorithm algorithm) {
  shoal_coach_config config = coach_config(shoal_env_find("CartPole-v1"), algorithm);
  config.learner.settings.streams = 4;
  config.exact = exact;
  shoal_coach *coach = start(&config);
  stranger early, late;
  stranger_begin(&early, coach, "early");
  play_until(&early, 5, NULL, NULL);
  uint64_t newest;
  shoal_text bytes = {0};
  shoal_error err = {0};
  shoal_play_unit unit = {0};
  shoal_coach_policy(coach, &newest, &bytes);
  assert_int_equal(newest, 5);
  stranger_begin(&late, coach, "late");
  assert_true(stranger_take(&late));
  must(shoal_play_unit_read(&unit, late.unit.bytes, late.unit.length, &err), &err);
  assert_int_equal(unit.version, newest);
  assert_int_equal(late.policy.length, bytes.length);
  assert_memory_equal(late.policy.bytes, bytes.bytes, bytes.length);
  assert_true(stranger_play(&late));
  assert_int_equal(late.rollout->version, newest);
  shoal_text_release(&bytes);
  shoal_text_release(&unit.state);
  stranger_end(&early);
  stranger_end(&late);
  finish(coach);
}

static void a_late_actors_first_unit_comes_with_the_newest_policy(void **state) {
  (void)state;
  check_late(false, SHOAL_VTRACE);
  check_late(true, SHOAL_PPO);
}

/* ---- parsing under a lock is the bottleneck ------------------------------------------- */

/* Hands in the same large rollout over and over, which nobody asked for: it is read every time. */
typedef struct flood {
  shoal_coach *coach;
  const shoal_text *bytes;
  _Atomic bool ends;
  _Atomic uint64_t handed_in;
} flood;

static void *hand_in(void *self) {
  flood *f = self;
  while (!f->ends) {
    bool counted;
    if (shoal_coach_done(f->coach, "flood", f->bytes->bytes, f->bytes->length, &counted, NULL) != SHOAL_OK)
      break;
    f->handed_in++;
  }
  return NULL;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Seconds that half of all questions take at most. */
static double usual_answer_s(shoal_coach *coach) {
  enum { ASKED = 201 };
  double took[ASKED];
  for (int i = 0; i < ASKED; i++) {
    shoal_coach_view view;
    double begun = shoal_clock_seconds();
    shoal_coach_look(coach, &view);
    took[i] = shoal_clock_seconds() - begun;
    shoal_clock_sleep(0.0005);
  }
  qsort(took, ASKED, sizeof *took, by_size);
  return took[ASKED / 2];
}

static double usual_reading_s(const shoal_rollout_shape *shape, const shoal_text *bytes) {
  enum { TIMES = 9 };
  double took[TIMES];
  for (int i = 0; i < TIMES; i++) {
    shoal_rollout *rollout;
    shoal_error err = {0};
    double begun = shoal_clock_seconds();
    must(shoal_rollout_create(&rollout, shape, &err), &err);
    must(shoal_rollout_read(rollout, bytes->bytes, bytes->length, &err), &err);
    took[i] = shoal_clock_seconds() - begun;
    shoal_rollout_destroy(rollout);
  }
  qsort(took, TIMES, sizeof *took, by_size);
  return took[TIMES / 2];
}

/* Were they read under the lock, it would be held all but always, and who asks would wait for a whole
 * reading and more. */
static void rollouts_are_read_while_others_are_served(void **state) {
  (void)state;
  shoal_coach_config config = coach_config(shoal_env_find("CartPole-v1"), SHOAL_PPO);
  config.learner.settings.streams = 1;
  config.learner.settings.envs = 1024;
  config.learner.settings.steps = 256;
  memcpy(config.learner.settings.body, "dense 4 tanh", sizeof "dense 4 tanh");
  shoal_coach *coach = start(&config);
  stranger s;
  stranger_begin(&s, coach, "actor");
  shoal_text bytes = {0};
  s.rollout->number = 77; /* that is no unit's */
  shoal_rollout_write(s.rollout, &bytes);
  assert_false(bytes.failed);
  double reading_s = usual_reading_s(&s.rollout->shape, &bytes);
  flood f = {.coach = coach, .bytes = &bytes};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, hand_in, &f), 0);
  while (f.handed_in < 2) shoal_clock_sleep(0.001);
  double answer_s = usual_answer_s(coach);
  f.ends = true;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_int_equal(look(coach).course.late, f.handed_in);
  if (!(answer_s < reading_s / 4)) fail_msg("%g s, where reading takes %g s", answer_s, reading_s);
  shoal_text_release(&bytes);
  stranger_end(&s);
  finish(coach);
}

/* ---- data grows without bound --------------------------------------------------------- */

static size_t bytes_in_use(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void wait_for_version(shoal_coach *coach, uint64_t version) {
  double deadline = shoal_clock_seconds() + STRANGER_PATIENCE_S;
  while (look(coach).training.round.version < version) {
    assert_true(shoal_clock_seconds() < deadline && !look(coach).ended);
    shoal_clock_sleep(0.01);
  }
}

/* Every round is scored, so every round has its point in the curves. */
static void a_coach_has_no_more_after_thousands_of_rounds(void **state) {
  (void)state;
  enum { POINTS_MAX = 8192, MORE = 6000, SLACK = 64 << 10 };
  shoal_env_kind kind = still;
  kind.limit = 1;
  kind.solved = 0.105; /* which is near, and never reached */
  shoal_coach_config config = {.learner = still_config(&kind), .until_solved = true};
  config.learner.settings.steps = 1;
  shoal_coach *coach = start(&config);
  shoal_learner *same = NULL; /* no brief names this environment */
  shoal_error err = {0};
  must(shoal_learner_create(&same, &config.learner, &err), &err);
  stranger s;
  pthread_t thread;
  stranger_begin_with(&s, coach, "actor", shoal_learner_spec(same), config.learner.settings.envs, 1);
  assert_int_equal(pthread_create(&thread, NULL, stranger_run, &s), 0);
  wait_for_version(coach, POINTS_MAX + 1000);
  size_t before = bytes_in_use();
  wait_for_version(coach, POINTS_MAX + 1000 + MORE);
  size_t after = bytes_in_use();
  if (!SANITIZED && after > before + SLACK) fail_msg("%zu bytes, and then %zu", before, after);
  shoal_text news = {0};
  uint64_t count = shoal_coach_news(coach, 0, &news), lines = 0;
  for (size_t i = 0; i < news.length; i++) lines += news.bytes[i] == '\n';
  assert_true(count > POINTS_MAX + 1000);
  assert_int_equal(lines, POINTS_MAX);
  shoal_text_release(&news);
  shoal_coach_stop(coach);
  pthread_join(thread, NULL);
  stranger_end(&s);
  finish(coach);
  shoal_learner_destroy(same);
}

/* Whoever asks is counted, but not for ever, and not without end. */
static void strangers_who_ask_cost_no_memory(void **state) {
  (void)state;
  enum { ASKING = 5000, HEARD_MAX = 1024, SLACK = 64 << 10 };
  shoal_coach_config config = coach_config(shoal_env_find("CartPole-v1"), SHOAL_VTRACE);
  shoal_coach *coach = start(&config);
  shoal_text unit = {0}, policy = {0};
  char name[32];
  size_t before = 0;
  for (uint32_t i = 0; i < ASKING; i++) {
    snprintf(name, sizeof name, "actor %u", i);
    shoal_coach_take(coach, name, UINT64_MAX, &unit, &policy);
    if (i == 10) before = bytes_in_use();
  }
  if (!SANITIZED) assert_true(bytes_in_use() <= before + SLACK);
  assert_true(look(coach).actors <= HEARD_MAX);
  assert_int_equal(look(coach).course.running, config.learner.settings.streams);
  shoal_text_release(&unit);
  shoal_text_release(&policy);
  finish(coach);
}

/* While nobody learns, two rollouts of a stream wait and no more: actors are told that nothing is to do. */
static void rollouts_that_nobody_learns_from_do_not_pile_up(void **state) {
  (void)state;
  enum { STREAMS = 3 };
  shoal_course_config config = {.shape = {.kind = &still, .envs = 1, .steps = 1},
                                .streams = STREAMS,
                                .eager = true,
                                .seed = 1,
                                .lease_s = 10};
  shoal_course *course;
  assert_int_equal(shoal_course_create(&course, &config, NULL), SHOAL_OK);
  uint32_t given = 0;
  for (int asked = 0; asked < 1000; asked++) {
    const shoal_play_unit *unit;
    if (!shoal_course_take(course, "actor", 0, &unit)) continue;
    shoal_rollout *rollout;
    assert_int_equal(shoal_rollout_create(&rollout, &config.shape, NULL), SHOAL_OK);
    rollout->number = unit->number;
    rollout->stream = unit->stream;
    assert_true(shoal_course_done(course, rollout, "actor", 0));
    given++;
  }
  assert_int_equal(given, 2 * STREAMS);
  shoal_course_destroy(course);
}

/* Each algorithm, long after its memory is full. */
static void a_learner_has_no_more_after_many_rounds(void **state) {
  (void)state;
  enum { SLACK = 16 << 10 };
  static const struct {
    const char *env, *body;
    shoal_algorithm algorithm;
  } cases[] = {{"CartPole-v1", "dense 8 tanh", SHOAL_PPO},
               {"CartPole-v1", "gru 8", SHOAL_VTRACE},
               {"CartPole-v1", "dense 8 tanh", SHOAL_DQN},
               {"Pendulum-v1", "dense 8 tanh", SHOAL_SAC},
               {"CartPole-v1", "dense 8 tanh", SHOAL_CLONE}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_learner_config config = {.kind = shoal_env_find(cases[i].env), .seed = 5, .threads = 1};
    shoal_error err = {0};
    must(shoal_agent_defaults(config.kind, cases[i].algorithm, &config.settings, &err), &err);
    shoal_agent_settings *s = &config.settings;
    snprintf(s->body, sizeof s->body, "%s", cases[i].body);
    s->streams = 2;
    s->envs = 2;
    s->steps = 16;
    s->memory = s->keep_steps = 500;
    s->minibatch = s->batch = 32;
    s->warmup = 100;
    s->updates = 0.02f;
    s->epochs = 1;
    lessons l;
    lessons_begin(&l, &config);
    lessons_rounds(&l, 50);
    size_t before = bytes_in_use();
    lessons_rounds(&l, 400);
    size_t after = bytes_in_use();
    if (!SANITIZED && after > before + SLACK)
      fail_msg("%s: %zu bytes, and then %zu", shoal_algorithm_name(cases[i].algorithm), before, after);
    lessons_end(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_message_has_what_was_played_and_nothing_of_before),
      cmocka_unit_test(a_mean_at_the_goal_or_above_is_solved_and_one_below_is_not),
      cmocka_unit_test(a_late_actors_first_unit_comes_with_the_newest_policy),
      cmocka_unit_test(rollouts_are_read_while_others_are_served),
      cmocka_unit_test(a_coach_has_no_more_after_thousands_of_rounds),
      cmocka_unit_test(strangers_who_ask_cost_no_memory),
      cmocka_unit_test(rollouts_that_nobody_learns_from_do_not_pile_up),
      cmocka_unit_test(a_learner_has_no_more_after_many_rounds),
  };
  return RUN_TESTS(tests);
}
