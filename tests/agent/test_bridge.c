/* Environments of another process are stepped by the rules of vector.h, and whatever that process does, an
 * error comes of it and no hang. fake_gym.py is that process here; tests/interop has the real Gymnasium. */
#include "agent/bridge.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../nn/in_folder.h"
#include "agent/training.h"
#include "base/clock.h"

enum { COUNT = 4 };

/* A Python that runs the stand-in, whatever it is told to run. */
static int with_fake(void **state) {
  if (enter_folder(state) != 0) return -1;
  FILE *file = fopen("python", "w");
  if (!file) return -1;
  fprintf(file, "#!/bin/sh\nexec python3 -B %s/tests/agent/fake_gym.py\n", SHOAL_SOURCE_DIR);
  if (fclose(file) != 0 || chmod("python", 0700) != 0) return -1;
  char path[128];
  snprintf(path, sizeof path, "%s/python", test_folder);
  return setenv("SHOAL_PYTHON", path, 1);
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, with_fake, leave_folder)

static const shoal_env_kind *open_kind(const char *name) {
  const shoal_env_kind *kind;
  shoal_error err;
  if (shoal_env_open(name, &kind, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return kind;
}

static shoal_vector *make_vector(const shoal_env_kind *kind, uint32_t count) {
  shoal_vector *vector;
  shoal_error err;
  if (shoal_vector_create(&vector, kind, count, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return vector;
}

static pid_t process_of(const shoal_vector *vector) { return (pid_t)shoal_vector_observations(vector)[0]; }

static bool is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

static void a_built_in_name_needs_no_python(void **state) {
  (void)state;
  const shoal_env_kind *kind;
  shoal_error err;
  setenv("SHOAL_PYTHON", "/nowhere/python", 1);
  assert_int_equal(shoal_env_open("CartPole-v1", &kind, &err), SHOAL_OK);
  assert_ptr_equal(kind, shoal_env_find("CartPole-v1"));
  shoal_env_close(kind);
  shoal_env_close(NULL);
  assert_int_equal(shoal_env_open("CartPoel-v1", &kind, &err), SHOAL_NOT_FOUND);
  assert_non_null(strstr(err.text, "did you mean 'CartPole-v1'?"));
  assert_null(kind);
}

static void names_say_whether_python_runs_and_imports(void **state) {
  (void)state;
  assert_false(shoal_env_is_bridged("CartPole-v1"));
  assert_true(shoal_env_is_bridged("gym:CartPole-v1"));
  assert_false(shoal_env_imports("CartPole-v1"));
  assert_false(shoal_env_imports("gym:CartPole-v1"));
  assert_false(shoal_env_imports("gym:CartPole-v1?render_mode=a:b"));
  assert_true(shoal_env_imports("gym:my_module:Env-v0"));
}

static void a_kind_is_what_the_process_says(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  assert_string_equal(kind->name, "gym:counts");
  assert_int_equal(kind->observation, 3);
  assert_int_equal(kind->choices, 5);
  assert_int_equal(kind->action_width, 1);
  assert_int_equal(kind->limit, 0);
  assert_true(kind->solved == 12.5 && kind->pace == 20);
  const shoal_env_kind *again = open_kind("gym:counts"), *real = open_kind("gym:real");
  assert_ptr_equal(again, kind);
  assert_int_equal(real->choices, 0);
  assert_int_equal(real->action_width, 2);
  assert_true(real->action_low == -2 && real->action_high == 3 && isnan(real->solved) && real->pace == 30);
  shoal_env_close(again);
  shoal_env_close(kind);
  shoal_env_close(real);
}

/* What environment i has seen after so many steps since seed s. */
static void check_seen(const float *seen, float episode, float step) {
  assert_true(seen[1] == episode);
  assert_true(seen[2] == step);
}

static void episodes_end_and_begin_by_the_rules_of_vectors(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  shoal_vector *vector = make_vector(kind, COUNT);
  shoal_vector_reset(vector, 1000);
  for (uint32_t i = 0; i < COUNT; i++)
    check_seen(shoal_vector_observations(vector) + 3 * i, 1000 + (float)i, 0);
  for (uint32_t step = 1; step <= 30; step++) {
    float actions[COUNT], rewards[COUNT];
    uint8_t ends[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) actions[i] = (float)((step + i) % 5);
    shoal_vector_step(vector, actions, rewards, ends);
    for (uint32_t i = 0; i < COUNT; i++) {
      uint32_t length = i % 2 == 0 ? 4 : 6, at = (step - 1) % length + 1;
      float episode = 1000 + (float)i + 100 * (float)((step - 1) / length);
      assert_true(rewards[i] == actions[i] * (float)at);
      if (at < length) {
        assert_int_equal(ends[i], SHOAL_GOES_ON);
        check_seen(shoal_vector_observations(vector) + 3 * i, episode, (float)at);
      } else {
        assert_int_equal(ends[i], i % 2 == 0 ? SHOAL_TERMINATED : SHOAL_TRUNCATED);
        check_seen(shoal_vector_last(vector, i), episode, (float)length);
        check_seen(shoal_vector_observations(vector) + 3 * i, episode + 100, 0);
      }
    }
  }
  assert_int_equal(shoal_vector_check(vector, NULL), SHOAL_OK);
  assert_int_equal(shoal_vector_bytes(vector), 0);
  shoal_vector_destroy(vector);
  shoal_env_close(kind);
}

static void a_process_serves_one_vector_after_the_other(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  pid_t pid = 0;
  for (uint32_t count = 6; count > 0; count -= 2) { /* fewer each time */
    shoal_vector *vector = make_vector(kind, count);
    assert_true(pid == 0 || pid == process_of(vector));
    pid = process_of(vector);
    shoal_vector_reset(vector, 50);
    float actions[6] = {1, 1, 1, 1, 1, 1}, rewards[6];
    uint8_t ends[6];
    shoal_vector_step(vector, actions, rewards, ends);
    for (uint32_t i = 0; i < count; i++) {
      check_seen(shoal_vector_observations(vector) + 3 * i, 50 + (float)i, 1);
      assert_true(rewards[i] == 1);
    }
    shoal_vector_destroy(vector);
    assert_false(is_gone(pid));
  }
  shoal_env_close(kind);
  assert_true(is_gone(pid));
}

static void one_that_died_while_it_waited_is_replaced(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  shoal_vector *vector = make_vector(kind, 1);
  pid_t pid = process_of(vector);
  shoal_vector_destroy(vector);
  assert_int_equal(kill(pid, SIGKILL), 0);
  siginfo_t dead;
  assert_int_equal(waitid(P_PID, (id_t)pid, &dead, WEXITED | WNOWAIT), 0);
  vector = make_vector(kind, 1);
  assert_int_not_equal(process_of(vector), pid);
  shoal_vector_destroy(vector);
  shoal_env_close(kind);
}

static void vectors_have_processes_of_their_own(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  shoal_vector *a = make_vector(kind, 1), *b = make_vector(kind, 2);
  assert_int_not_equal(process_of(a), process_of(b));
  shoal_vector_destroy(a);
  float actions[2] = {1, 2}, rewards[2];
  uint8_t ends[2];
  shoal_vector_step(b, actions, rewards, ends);
  assert_true(rewards[0] == 1 && rewards[1] == 2);
  shoal_vector_destroy(b);
  shoal_env_close(kind);
}

static void it_is_drawn_as_bars(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  shoal_vector *vector = make_vector(kind, 2);
  shoal_canvas canvas;
  uint8_t pixels[60 * 40];
  uint32_t painted = 0;
  shoal_canvas_init(&canvas);
  kind->draw(shoal_vector_state(vector, 1), &canvas);
  shoal_canvas_pixels(&canvas, 60, 40, pixels);
  for (size_t i = 0; i < sizeof pixels; i++) painted += pixels[i] == 1 + SHOAL_INK_BODY;
  assert_true(painted > 100 && painted < sizeof pixels);
  shoal_canvas_release(&canvas);
  shoal_vector_destroy(vector);
  shoal_env_close(kind);
}

/* ---- what goes wrong ---- */

static void what_cannot_be_opened_says_why(void **state) {
  (void)state;
  static const struct {
    const char *name;
    shoal_status status;
    const char *text;
  } cases[] = {
      {"gym:refused", SHOAL_UNSUPPORTED, "gym:refused: its actions are strange"},
      {"gym:missing", SHOAL_NOT_FOUND, "gym:missing: there is none"},
      {"gym:raises", SHOAL_IO, "gym:raises: ValueError: no (its traceback stands above)"},
      {"gym:nonsense", SHOAL_IO, "gym:nonsense: its Python process answers nonsense"},
      {"gym:short", SHOAL_IO, "gym:short: its Python process answers nonsense"},
      {"gym:silent", SHOAL_IO, "gym:silent: its Python process ended with status 0"},
      {"gym:huge", SHOAL_UNSUPPORTED, "gym:huge: an observation is 1073741824 numbers"},
      {"gym:wide", SHOAL_UNSUPPORTED, "gym:wide: an action is 1048576 numbers"},
      {"gym:nothing", SHOAL_UNSUPPORTED, "gym:nothing: there is nothing to see"},
      {"gym:boundless", SHOAL_UNSUPPORTED, "gym:boundless: there is nothing to see or to do"},
      {"gym:many", SHOAL_UNSUPPORTED, "gym:many: "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const shoal_env_kind *kind;
    shoal_error err;
    assert_int_equal(shoal_env_open(cases[i].name, &kind, &err), cases[i].status);
    if (!strstr(err.text, cases[i].text)) fail_msg("'%s' is not '%s'", err.text, cases[i].text);
    assert_null(kind);
  }
}

static void a_python_that_cannot_run_is_named(void **state) {
  (void)state;
  const shoal_env_kind *kind;
  shoal_error err;
  setenv("SHOAL_PYTHON", "/nowhere/python", 1);
  assert_int_equal(shoal_env_open("gym:counts", &kind, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "gym:counts: cannot run '/nowhere/python': No such file"));
  assert_non_null(strstr(err.text, "SHOAL_PYTHON"));
  setenv("SHOAL_PYTHON", "false", 1);
  assert_int_equal(shoal_env_open("gym:counts", &kind, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "ended with status 1"));
}

static void too_long_a_name_is_refused(void **state) {
  (void)state;
  char name[3000];
  memset(name, 'x', sizeof name);
  memcpy(name, "gym:", 4);
  name[sizeof name - 1] = 0;
  const shoal_env_kind *kind;
  shoal_error err;
  assert_int_equal(shoal_env_open(name, &kind, &err), SHOAL_INVALID);
  assert_int_equal(shoal_env_open("gym:\xff", &kind, &err), SHOAL_INVALID);
}

static void a_name_that_is_missing_is_told_without_python(void **state) {
  (void)state;
  const shoal_env_kind *kind;
  shoal_error err;
  setenv("SHOAL_PYTHON", "/nowhere/python", 1);
  assert_int_equal(shoal_env_open("gym:", &kind, &err), SHOAL_INVALID);
  assert_string_equal(err.text, "'gym:' has no name behind 'gym:': write it as Gymnasium has it, such as "
                                "gym:LunarLander-v3");
  assert_int_equal(shoal_env_open("gym:?a=1", &kind, &err), SHOAL_INVALID);
}

/* Steps until the failure, and some more. */
static void check_failure(shoal_vector *vector, const char *text) {
  float actions[COUNT] = {1, 1, 1, 1}, rewards[COUNT];
  uint8_t ends[COUNT];
  for (int step = 0; step < 6; step++) shoal_vector_step(vector, actions, rewards, ends);
  shoal_vector_reset(vector, 1);
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_int_equal(ends[i], SHOAL_TRUNCATED);
    assert_true(rewards[i] == 0);
    assert_true(shoal_vector_observations(vector)[3 * i] == 0 && shoal_vector_last(vector, i)[0] == 0);
  }
  shoal_error err;
  assert_int_not_equal(shoal_vector_check(vector, &err), SHOAL_OK);
  if (!strstr(err.text, text)) fail_msg("'%s' is not '%s'", err.text, text);
}

static void whatever_it_does_in_a_step_is_an_error_and_no_hang(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"gym:exits", "gym:exits: its Python process ended with status 7"},
      {"gym:dies", "gym:dies: its Python process died of signal 11"},
      {"gym:fails", "gym:fails: RuntimeError: the world ended (its traceback stands above)"},
      {"gym:nan", "gym:nan: it gave an observation or a reward that is not a finite number"},
      {"gym:inf", "gym:inf: it gave an observation or a reward that is not a finite number"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const shoal_env_kind *kind = open_kind(cases[i][0]);
    shoal_vector *vector = make_vector(kind, COUNT);
    check_failure(vector, cases[i][1]);
    shoal_vector_destroy(vector);
    shoal_env_close(kind);
  }
}

static void a_process_that_is_killed_between_steps_is_told(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  shoal_vector *vector = make_vector(kind, COUNT);
  assert_int_equal(kill(process_of(vector), SIGKILL), 0);
  check_failure(vector, "gym:counts: its Python process died of signal 9");
  shoal_vector_destroy(vector);
  vector = make_vector(kind, COUNT); /* the kind is none the worse for it */
  assert_int_equal(shoal_vector_check(vector, NULL), SHOAL_OK);
  shoal_vector_destroy(vector);
  shoal_env_close(kind);
}

typedef struct killer {
  pid_t pid;
  int signal;
} killer;

static void *kill_later(void *self) {
  const killer *k = self;
  shoal_clock_sleep(0.2);
  kill(k->pid, k->signal);
  return NULL;
}

/* ---- who does not want to wait any more ---- */

static volatile sig_atomic_t stop;

static void *stop_later(void *self) {
  (void)self;
  shoal_clock_sleep(0.2);
  __atomic_store_n(&stop, SIGTERM, __ATOMIC_RELAXED);
  return NULL;
}

static void a_signal_ends_waiting_for_python(void **state) {
  (void)state;
  const shoal_env_kind *kind, *hangs = open_kind("gym:hangs");
  shoal_error err;
  pthread_t thread;
  stop = 0;
  shoal_env_stop_by(&stop);
  shoal_vector *vector = make_vector(hangs, COUNT);
  pid_t pid = process_of(vector);
  assert_int_equal(pthread_create(&thread, NULL, stop_later, NULL), 0);
  check_failure(vector, "gym:hangs: stopped");
  assert_int_equal(shoal_vector_check(vector, &err), SHOAL_STOPPED);
  pthread_join(thread, NULL);
  shoal_vector_destroy(vector);
  assert_true(is_gone(pid));
  assert_int_equal(shoal_env_open("gym:sleeps", &kind, &err), SHOAL_STOPPED);
  shoal_env_stop_by(NULL);
  shoal_env_close(hangs);
}

static bool is_late(void *self) { return shoal_clock_seconds() > *(double *)self; }

static void what_is_interrupted_is_one_kind_alone(void **state) {
  (void)state;
  const shoal_env_kind *hangs = open_kind("gym:hangs"), *other = open_kind("gym:counts");
  double until = INFINITY;
  const shoal_interrupt interrupt = {is_late, &until};
  shoal_env_interrupt(hangs, &interrupt);
  shoal_vector *vector = make_vector(hangs, COUNT);
  until = shoal_clock_seconds() + 0.3;
  check_failure(vector, "gym:hangs: stopped");
  shoal_vector_destroy(vector);
  shoal_env_interrupt(hangs, NULL);
  vector = make_vector(other, COUNT);
  assert_int_equal(shoal_vector_check(vector, NULL), SHOAL_OK);
  shoal_vector_destroy(vector);
  shoal_env_close(hangs);
  shoal_env_close(other);
}

/* ---- trainings ---- */

typedef struct training {
  shoal_status status;
  shoal_error err;
  shoal_training_view view;
  uint64_t steps;
} training;

static training train_in(const char *name, shoal_algorithm algorithm, double seconds) {
  training t = {0};
  const shoal_env_kind *kind = open_kind(name);
  shoal_learner *learner;
  shoal_learner_config config = {.kind = kind, .seed = 1, .threads = 2};
  if (shoal_agent_defaults(kind, algorithm, &config.settings, &t.err) != SHOAL_OK) fail_msg("%s", t.err.text);
  config.settings.streams = 2;
  config.settings.envs = 2;
  config.settings.steps = 16;
  config.settings.warmup = 16;
  if (shoal_learner_create(&learner, &config, &t.err) != SHOAL_OK) fail_msg("%s", t.err.text);
  const shoal_training_options options = {.learner = learner,
                                          .config = config,
                                          .threads = 2,
                                          .seconds = seconds,
                                          .steps = 1000000000,
                                          .out = "agent.safetensors",
                                          .stop = &stop};
  t.status = shoal_train_agent(&options, &t.view, &t.err);
  t.steps = shoal_learner_steps(learner);
  shoal_learner_destroy(learner);
  shoal_env_close(kind);
  return t;
}

/* Whether nobody waits for those who play (ppo), or they play while it learns (vtrace, dqn). */
static const shoal_algorithm algorithms[] = {SHOAL_PPO, SHOAL_VTRACE, SHOAL_DQN};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

static void what_was_learned_before_python_died_is_saved(void **state) {
  (void)state;
  for (int i = 0; i < ALGORITHMS; i++) {
    stop = 0;
    unlink("agent.safetensors");
    training t = train_in("gym:lasts", algorithms[i], 0);
    assert_int_equal(t.status, SHOAL_IO);
    if (!strstr(t.err.text, "its Python process ended with status 7") ||
        !strstr(t.err.text, "is saved in agent.safetensors"))
      fail_msg("%s", t.err.text);
    shoal_agent_file file;
    assert_int_equal(shoal_agent_open("agent.safetensors", &file, NULL, &t.err), SHOAL_OK);
    assert_true(file.whole && file.steps > 0 && file.steps == t.steps);
  }
}

static void where_nothing_was_learned_an_older_file_stays(void **state) {
  (void)state;
  stop = 0;
  FILE *file = fopen("agent.safetensors", "w");
  assert_true(fputs("an older one", file) > 0 && fclose(file) == 0);
  training t = train_in("gym:fails", SHOAL_PPO, 0);
  assert_int_equal(t.status, SHOAL_IO);
  assert_null(strstr(t.err.text, "saved"));
  char text[32];
  file = fopen("agent.safetensors", "r");
  assert_string_equal(fgets(text, sizeof text, file), "an older one");
  fclose(file);
}

static void seconds_end_a_training_whose_python_hangs(void **state) {
  (void)state;
  for (int i = 0; i < ALGORITHMS; i++) {
    stop = 0;
    training t = train_in("gym:hangs", algorithms[i], 1);
    if (t.status != SHOAL_OK) fail_msg("%s", t.err.text);
    assert_int_equal(t.view.evaluation.episodes, 0);
  }
}

static void a_signal_ends_a_training_whose_python_hangs(void **state) {
  (void)state;
  for (int i = 0; i < ALGORITHMS; i++) {
    pthread_t thread;
    stop = 0;
    assert_int_equal(pthread_create(&thread, NULL, stop_later, NULL), 0);
    training t = train_in("gym:hangs", algorithms[i], 0);
    pthread_join(thread, NULL);
    assert_int_equal(t.status, SHOAL_STOPPED);
  }
}

/* Stopped, it can say nothing; the step waits, until it is killed. */
static void a_process_that_is_killed_during_a_step_is_told(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  shoal_vector *vector = make_vector(kind, COUNT);
  killer k = {process_of(vector), SIGKILL};
  pthread_t thread;
  assert_int_equal(kill(k.pid, SIGSTOP), 0);
  assert_int_equal(pthread_create(&thread, NULL, kill_later, &k), 0);
  check_failure(vector, "gym:counts: its Python process died of signal 9");
  pthread_join(thread, NULL);
  shoal_vector_destroy(vector);
  shoal_env_close(kind);
}

static void too_many_environments_are_an_error(void **state) {
  (void)state;
  const shoal_env_kind *kind = open_kind("gym:counts");
  shoal_vector *vector;
  shoal_error err;
  assert_int_equal(shoal_vector_create(&vector, kind, 77, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "gym:counts: MemoryError: too many"));
  assert_int_equal(shoal_vector_create(&vector, kind, 0, &err), SHOAL_LIMIT);
  shoal_env_close(kind);
}

static void *open_and_close(void *self) {
  const shoal_env_kind *kind;
  if (shoal_env_open("gym:counts", &kind, NULL) != SHOAL_OK) return NULL;
  shoal_vector *vector = NULL;
  if (shoal_vector_create(&vector, kind, 2, NULL) == SHOAL_OK) *(bool *)self = true;
  shoal_vector_destroy(vector);
  shoal_env_close(kind);
  return NULL;
}

static void threads_may_open_the_same_name(void **state) {
  (void)state;
  pthread_t threads[4];
  bool done[4] = {false};
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &done[i]), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    assert_true(done[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FAKE(a_built_in_name_needs_no_python),
      WITH_FAKE(names_say_whether_python_runs_and_imports),
      WITH_FAKE(a_kind_is_what_the_process_says),
      WITH_FAKE(episodes_end_and_begin_by_the_rules_of_vectors),
      WITH_FAKE(a_process_serves_one_vector_after_the_other),
      WITH_FAKE(one_that_died_while_it_waited_is_replaced),
      WITH_FAKE(vectors_have_processes_of_their_own),
      WITH_FAKE(it_is_drawn_as_bars),
      WITH_FAKE(what_cannot_be_opened_says_why),
      WITH_FAKE(a_python_that_cannot_run_is_named),
      WITH_FAKE(too_long_a_name_is_refused),
      WITH_FAKE(a_name_that_is_missing_is_told_without_python),
      WITH_FAKE(whatever_it_does_in_a_step_is_an_error_and_no_hang),
      WITH_FAKE(a_process_that_is_killed_between_steps_is_told),
      WITH_FAKE(a_process_that_is_killed_during_a_step_is_told),
      WITH_FAKE(a_signal_ends_waiting_for_python),
      WITH_FAKE(what_is_interrupted_is_one_kind_alone),
      WITH_FAKE(what_was_learned_before_python_died_is_saved),
      WITH_FAKE(where_nothing_was_learned_an_older_file_stays),
      WITH_FAKE(seconds_end_a_training_whose_python_hangs),
      WITH_FAKE(a_signal_ends_a_training_whose_python_hangs),
      WITH_FAKE(too_many_environments_are_an_error),
      WITH_FAKE(threads_may_open_the_same_name),
  };
  return RUN_TESTS(tests);
}
