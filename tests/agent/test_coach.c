/* The coach: actors that have nothing but bytes train with it; what is lost is given again, what is garbage
 * is refused, and a training goes on from its file. */
#include "agent/coach.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "check.h"
#include "stranger.h"

static void must(shoal_status status, const shoal_error *err) {
  if (status != SHOAL_OK) fail_msg("%s", err->text);
}

static shoal_coach_config config_of(shoal_algorithm algorithm) {
  shoal_coach_config config = {.until_solved = true, .lease_s = 5};
  shoal_error err = {0};
  config.learner = (shoal_learner_config){.kind = shoal_env_find("CartPole-v1"), .seed = 3, .threads = 1};
  must(shoal_agent_defaults(config.learner.kind, algorithm, &config.learner.settings, &err), &err);
  config.learner.steps_all = config.steps = config.learner.settings.budget;
  return config;
}

static shoal_coach *start(const shoal_coach_config *config) {
  shoal_coach *coach;
  shoal_error err = {0};
  must(shoal_coach_start(&coach, config, &err), &err);
  return coach;
}

static shoal_coach_view look(shoal_coach *coach) {
  shoal_coach_view view;
  shoal_coach_look(coach, &view);
  return view;
}

static void finish(shoal_coach *coach) {
  shoal_coach_stop(coach);
  shoal_coach_wait(coach);
  shoal_coach_destroy(coach);
}

/* ---- tests ---- */

static void solve_with_two(shoal_algorithm algorithm, bool exact) {
  shoal_coach_config config = config_of(algorithm);
  config.exact = exact;
  config.seconds = PATIENCE_S;
  shoal_coach *coach = start(&config);
  stranger two[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    stranger_begin(&two[i], coach, i == 0 ? "first" : "second");
    assert_int_equal(pthread_create(&threads[i], NULL, stranger_run, &two[i]), 0);
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  shoal_coach_wait(coach);
  shoal_coach_view view = look(coach);
  assert_string_equal(view.error, "");
  assert_true(view.ended && view.solved);
  assert_int_equal(view.training.evaluation.episodes, SHOAL_SCORE_EPISODES);
  assert_true(view.training.evaluation.mean >= 475);
  assert_true(two[0].played > 0 && two[1].played > 0);
  assert_true(view.bytes_in > 0 && view.bytes_out > 0);
  shoal_text news = {0};
  uint64_t count = shoal_coach_news(coach, 0, &news);
  assert_true(count > 0 && strstr(news.bytes, "\"solved\":true") != NULL);
  shoal_text_release(&news);
  for (int i = 0; i < 2; i++) stranger_end(&two[i]);
  shoal_coach_destroy(coach);
}

static void two_actors_with_nothing_but_bytes_solve_cartpole(void **state) {
  (void)state;
  solve_with_two(SHOAL_VTRACE, false);
}

static void exact_rounds_solve_it_as_well(void **state) {
  (void)state;
  solve_with_two(SHOAL_PPO, true);
}

/* Its unit goes to another, and what it sends in later does not count. */
static void a_lost_actors_unit_is_given_again(void **state) {
  (void)state;
  shoal_coach_config config = config_of(SHOAL_VTRACE);
  config.until_solved = false;
  config.learner.settings.streams = 1;
  shoal_coach *coach = start(&config);
  stranger gone, here;
  stranger_begin(&gone, coach, "gone");
  stranger_begin(&here, coach, "here");
  assert_true(stranger_take(&gone));
  assert_int_equal(look(coach).actors, 1);
  shoal_text unit = {0}, policy = {0};
  assert_int_equal(shoal_coach_take(coach, "here", UINT64_MAX, &unit, &policy), SHOAL_COACH_WAITS);
  shoal_coach_lost(coach, "gone");
  assert_true(stranger_take(&here));
  assert_int_equal(here.unit.length, gone.unit.length);
  assert_memory_equal(here.unit.bytes, gone.unit.bytes, gone.unit.length);
  assert_true(stranger_play(&here));
  assert_false(stranger_play(&gone));
  assert_int_equal(look(coach).course.given_again, 1);
  assert_int_equal(look(coach).course.late, 1);
  shoal_text_release(&unit);
  shoal_text_release(&policy);
  stranger_end(&gone);
  stranger_end(&here);
  finish(coach);
}

/* An actor that says nothing is lost by itself. */
static void a_silent_actors_unit_is_given_again(void **state) {
  (void)state;
  shoal_coach_config config = config_of(SHOAL_VTRACE);
  config.until_solved = false;
  config.learner.settings.streams = 1;
  config.lease_s = 0.2;
  shoal_coach *coach = start(&config);
  stranger gone, here;
  stranger_begin(&gone, coach, "gone");
  stranger_begin(&here, coach, "here");
  assert_true(stranger_take(&gone));
  assert_true(stranger_take(&here));
  assert_memory_equal(here.unit.bytes, gone.unit.bytes, gone.unit.length);
  assert_true(stranger_play(&here));
  stranger_end(&gone);
  stranger_end(&here);
  finish(coach);
}

static void garbage_is_refused(void **state) {
  (void)state;
  shoal_coach_config config = config_of(SHOAL_VTRACE);
  shoal_coach *coach = start(&config);
  stranger s;
  stranger_begin(&s, coach, "liar");
  assert_true(stranger_take(&s));
  shoal_error err = {0};
  shoal_text bytes = {0};
  bool counted = true;
  assert_int_equal(shoal_coach_done(coach, "liar", "garbage", 7, &counted, &err), SHOAL_INVALID);
  assert_false(counted);
  assert_int_equal(shoal_coach_done(coach, "liar", s.unit.bytes, s.unit.length, &counted, &err),
                   SHOAL_INVALID);
  shoal_rollout_write(s.rollout, &bytes); /* sound, but of no unit that it was given */
  s.rollout->number = 77;
  shoal_text_clear(&bytes);
  shoal_rollout_write(s.rollout, &bytes);
  assert_int_equal(shoal_coach_done(coach, "liar", bytes.bytes, bytes.length, &counted, &err), SHOAL_OK);
  assert_false(counted);
  for (size_t cut = 0; cut < bytes.length; cut += 1 + bytes.length / 50)
    assert_int_equal(shoal_coach_done(coach, "liar", bytes.bytes, cut, &counted, &err), SHOAL_INVALID);
  assert_int_equal(look(coach).course.units, 0);
  shoal_text_release(&bytes);
  stranger_end(&s);
  finish(coach);
}

static void a_brief_from_strangers_is_checked(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "",
      "[]",
      "{}",
      "{\"env\":\"gym:CartPole-v1\",\"head\":\"categorical\",\"body\":\"\",\"envs\":1,\"steps\":1}",
      "{\"env\":\"CartPole-v1\",\"head\":\"horned\",\"body\":\"\",\"envs\":1,\"steps\":1}",
      "{\"env\":\"CartPole-v1\",\"head\":\"greedy\",\"body\":\"\",\"envs\":0,\"steps\":1}",
      "{\"env\":\"CartPole-v1\",\"head\":\"greedy\",\"body\":\"\",\"envs\":1,\"steps\":1e9}"};
  shoal_actor_brief brief;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_not_equal(shoal_actor_brief_read(&brief, wrong[i], strlen(wrong[i]), NULL), SHOAL_OK);
}

static void play_rounds(shoal_coach *coach, const char *name, uint64_t rounds) {
  stranger s;
  stranger_begin(&s, coach, name);
  double deadline = shoal_clock_seconds() + PATIENCE_S;
  while (look(coach).course.rounds < rounds) {
    assert_true(shoal_clock_seconds() < deadline && stranger_take(&s));
    stranger_play(&s);
  }
  stranger_end(&s);
}

static void a_training_goes_on_from_its_file(void **state) {
  (void)state;
  char folder[] = "/tmp/shoal-test-coach-XXXXXX";
  assert_non_null(mkdtemp(folder));
  char *file = shoal_path("%s/agent.safetensors", folder), *old = shoal_path("%s/old", folder);
  shoal_coach_config config = config_of(SHOAL_VTRACE);
  config.until_solved = false;
  config.file = file;
  config.folder = old;
  shoal_coach *coach = start(&config);
  play_rounds(coach, "before", 3);
  shoal_coach_stop(coach);
  shoal_coach_wait(coach);
  shoal_coach_view before = look(coach);
  assert_string_equal(before.error, "");
  assert_true(before.training.round.steps > 0 && shoal_file_exists(file));
  char *checkpoint = shoal_path("%s/%llu.safetensors", old, (unsigned long long)before.training.round.steps);
  assert_true(shoal_file_exists(checkpoint));
  shoal_text episode = {0};
  shoal_error err = {0};
  must(shoal_coach_episode(checkpoint, 5, 20, &episode, &err), &err);
  assert_non_null(strstr(episode.bytes, "\"rewards\":[1,1,"));
  assert_non_null(strstr(episode.bytes, "\"pictures\":[{\"view\":"));
  shoal_text_release(&episode);
  assert_int_not_equal(shoal_coach_episode("/nowhere", 5, 20, &episode, &err), SHOAL_OK);
  free(checkpoint);
  shoal_coach_destroy(coach);

  coach = start(&config);
  play_rounds(coach, "after", before.course.rounds + 2);
  shoal_coach_stop(coach);
  shoal_coach_wait(coach);
  assert_true(look(coach).training.round.version >= before.training.round.version + 2);
  assert_true(look(coach).training.round.steps > before.training.round.steps);
  shoal_coach_destroy(coach);

  config.anew = true;
  coach = start(&config);
  play_rounds(coach, "anew", 1);
  assert_true(look(coach).course.rounds < before.course.rounds);
  finish(coach);
  shoal_remove_folder(folder, NULL);
  free(file);
  free(old);
}

typedef struct warnings {
  uint32_t count; /* atomic */
  char first[SHOAL_ERROR_TEXT_MAX];
} warnings;

static void on_warning(void *self, const char *text) {
  warnings *w = self;
  if (w->count == 0) snprintf(w->first, sizeof w->first, "%s", text);
  __atomic_add_fetch(&w->count, 1, __ATOMIC_RELEASE);
}

/* Saves that fail for want of room are told of and end nothing; a device has none in the end either. */
static void a_full_disk_is_told(void **state) {
  (void)state;
  warnings told = {0};
  shoal_coach_config config = config_of(SHOAL_VTRACE);
  config.until_solved = false;
  config.anew = true;
  config.file = "/dev/full";
  config.save_every_s = 1e-6;
  config.self = &told;
  config.warn = on_warning;
  shoal_coach *coach = start(&config);
  for (uint64_t rounds = 1; __atomic_load_n(&told.count, __ATOMIC_ACQUIRE) == 0; rounds++)
    play_rounds(coach, "actor", rounds);
  assert_non_null(strstr(told.first, "no space left"));
  assert_non_null(strstr(told.first, "the training continues"));
  assert_false(look(coach).ended);
  shoal_coach_stop(coach);
  shoal_coach_wait(coach);
  assert_non_null(strstr(look(coach).error, "no space left"));
  assert_int_equal(look(coach).status, SHOAL_FULL);
  shoal_coach_destroy(coach);
}

static uint32_t count_files(const char *folder) {
  DIR *dir = opendir(folder);
  uint32_t count = 0;
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) count += entry->d_name[0] != '.';
  closedir(dir);
  return count;
}

/* The first and the last stay, and what lies closest together goes. */
static void checkpoints_are_thinned_out(void **state) {
  (void)state;
  char folder[] = "/tmp/shoal-test-coach-XXXXXX";
  assert_non_null(mkdtemp(folder));
  for (uint32_t i = 1; i <= SHOAL_COACH_CHECKPOINTS + 10; i++) {
    char *path = shoal_path("%s/%u.safetensors", folder, i <= 12 ? i : 100000 * i);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    free(path);
  }
  shoal_coach_config config = config_of(SHOAL_VTRACE);
  config.until_solved = false;
  config.folder = folder;
  shoal_coach *coach = start(&config);
  play_rounds(coach, "actor", 1);
  shoal_coach_stop(coach);
  shoal_coach_wait(coach);
  assert_int_equal(count_files(folder), SHOAL_COACH_CHECKPOINTS);
  char *first = shoal_path("%s/1.safetensors", folder), *third = shoal_path("%s/3.safetensors", folder);
  char *newest =
      shoal_path("%s/%llu.safetensors", folder, (unsigned long long)look(coach).training.round.steps);
  assert_true(shoal_file_exists(first) && shoal_file_exists(newest));
  assert_false(shoal_file_exists(third));
  shoal_coach_destroy(coach);
  shoal_remove_folder(folder, NULL);
  free(first);
  free(third);
  free(newest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_actors_with_nothing_but_bytes_solve_cartpole),
      cmocka_unit_test(exact_rounds_solve_it_as_well),
      cmocka_unit_test(a_lost_actors_unit_is_given_again),
      cmocka_unit_test(a_silent_actors_unit_is_given_again),
      cmocka_unit_test(garbage_is_refused),
      cmocka_unit_test(a_brief_from_strangers_is_checked),
      cmocka_unit_test(a_training_goes_on_from_its_file),
      cmocka_unit_test(a_full_disk_is_told),
      cmocka_unit_test(checkpoints_are_thinned_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
