/* How far an agent's training is: what a server says of it, and what people read of that. */
#include "cli/played.h"

#include <math.h>
#include <string.h>

#include "check.h"

static shoal_played read(const char *json) {
  shoal_played played;
  cJSON *job = cJSON_Parse(json);
  assert_non_null(job);
  shoal_played_read(&played, job);
  cJSON_Delete(job);
  return played;
}

static void another_job_is_no_agent(void **state) {
  (void)state;
  assert_false(read("{\"kind\":\"train\",\"agent\":{\"steps\":3}}").is_agent);
  assert_false(read("{}").is_agent);
  assert_false(read("[]").is_agent);
}

static void a_running_job_is_worth_what_it_earns_and_one_that_ended_its_score(void **state) {
  (void)state;
  static const char running[] =
      "{\"kind\":\"agent\",\"state\":\"running\",\"spec\":{\"env\":\"CartPole-v1\",\"algorithm\":\"ppo\","
      "\"seconds\":100,\"until_solved\":false},\"agent\":{\"steps\":1000,\"steps_all\":4000,\"seconds\":10,"
      "\"steps_per_second\":100,\"return_mean\":20.5,\"return_deviation\":3,\"score\":15,\"goal\":475,"
      "\"actors\":2,\"lag\":0.5,\"solved\":false}}";
  shoal_played p = read(running);
  assert_true(p.is_agent && p.runs && !p.solved && !p.until_solved);
  assert_string_equal(p.env, "CartPole-v1");
  assert_true(p.steps == 1000 && p.actors == 2 && p.goal == 475);
  assert_true(shoal_played_worth(&p) == 20.5);
  assert_true(p.share == 0.25);
  assert_true(p.left_s == 30); /* of steps, which end before the seconds do */
  p.runs = false;
  assert_true(shoal_played_worth(&p) == 15);
  p.score = NAN;
  assert_true(shoal_played_worth(&p) == 20.5);
}

static void what_is_missing_or_wrong_is_not_known(void **state) {
  (void)state;
  shoal_played p = read("{\"kind\":\"agent\",\"state\":\"waiting\",\"spec\":{\"env\":7,\"steps\":\"many\"},"
                        "\"agent\":{\"steps\":-3,\"return_mean\":null,\"score\":\"good\"}}");
  assert_true(p.is_agent && p.steps == 0 && p.share == 0);
  assert_true(isnan(shoal_played_worth(&p)) && isnan(p.left_s));
  assert_string_equal(p.env, "");
  p = read("{\"kind\":\"agent\"}");
  assert_true(isnan(p.left_s) && p.until_solved);
}

static void the_line_says_what_is_known(void **state) {
  (void)state;
  char said[256] = "";
  FILE *file = tmpfile();
  assert_non_null(file);
  shoal_progress progress;
  shoal_progress_init(&progress, file, 0);
  shoal_played p = {.steps = 81920,
                    .steps_per_second = 54210,
                    .return_mean = 187.25,
                    .return_deviation = 60,
                    .lag = 0.8,
                    .actors = 1,
                    .left_s = 12,
                    .until_solved = true};
  shoal_played_show(&progress, &p, 1000);
  shoal_played_show(&progress, &p, 1000.5); /* not due */
  p = (shoal_played){.steps = 5, .steps_per_second = NAN, .return_mean = NAN, .lag = NAN, .left_s = NAN};
  shoal_played_show(&progress, &p, 2000);
  rewind(file);
  assert_non_null(fgets(said, sizeof said, file));
  assert_string_equal(said,
                      "81,920 steps  54,210/s  return 187.2 +- 60  lag 0.8  1 actor  12s left at most\n");
  assert_non_null(fgets(said, sizeof said, file));
  assert_string_equal(said, "5 steps\n");
  assert_null(fgets(said, sizeof said, file));
  fclose(file);
}

static void returns_have_the_figures_that_matter(void **state) {
  (void)state;
  const struct {
    double value;
    const char *text;
  } cases[] = {{475, "475"},      {500, "500"},       {0, "0"},     {-1234, "-1,234"}, {474.96, "475.0"},
               {-98.25, "-98.2"}, {0.62345, "0.623"}, {9.5, "9.5"}, {1e20, "1e+20"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_string_equal(shoal_played_number(cases[i].value).text, cases[i].text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(another_job_is_no_agent),
      cmocka_unit_test(a_running_job_is_worth_what_it_earns_and_one_that_ended_its_score),
      cmocka_unit_test(what_is_missing_or_wrong_is_not_known),
      cmocka_unit_test(the_line_says_what_is_known),
      cmocka_unit_test(returns_have_the_figures_that_matter),
  };
  return RUN_TESTS(tests);
}
