#include "check.h"

#include <float.h>
#include <math.h>

#include "nn/model.h"

static const shoal_recipe plain = {
    .batch = 64, .epochs = 10, .rate = 0.5f, .schedule_from = 1, .schedule_every = 1};

static void assert_near(double found, double expected) {
  if (!(fabs(found - expected) <= 1e-7 * fabs(expected)))
    fail_msg("expected %.9g, found %.9g", expected, found);
}

static void every_optimiser_has_a_rate_of_its_own(void **state) {
  (void)state;
  static const float rates[] = {0.1f, 0.05f, 0.05f, 0.01f, 0.001f, 0.001f, 0.001f};
  for (int kind = SHOAL_SGD; kind <= SHOAL_ADAMW; kind++) {
    shoal_recipe recipe = {.optimizer = (shoal_update_kind)kind};
    assert_true(shoal_recipe_rate(&recipe) == rates[kind]);
    recipe.rate = 0.25f;
    assert_true(shoal_recipe_rate(&recipe) == 0.25f);
  }
}

static void a_constant_rate_stays(void **state) {
  (void)state;
  assert_true(shoal_recipe_rate_at(&plain, 0, 0, 100) == 0.5f);
  assert_true(shoal_recipe_rate_at(&plain, 9, 99, 100) == 0.5f);
}

static void steps_begin_at_their_epoch_and_repeat(void **state) {
  (void)state;
  shoal_recipe recipe = plain;
  recipe.schedule = SHOAL_SCHEDULE_STEP;
  recipe.schedule_from = 5;
  recipe.schedule_every = 2;
  recipe.schedule_factor = 0.5f;
  static const float expected[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.25f, 0.25f, 0.125f, 0.125f, 0.0625f};
  for (uint64_t epoch = 0; epoch < sizeof expected / sizeof expected[0]; epoch++) {
    assert_true(shoal_recipe_rate_at(&recipe, epoch, 0, 100) == expected[epoch]);
    assert_true(shoal_recipe_rate_at(&recipe, epoch, 99, 100) == expected[epoch]);
  }
}

static void an_exponential_rate_falls_every_epoch(void **state) {
  (void)state;
  shoal_recipe recipe = plain;
  recipe.schedule = SHOAL_SCHEDULE_EXPONENTIAL;
  recipe.schedule_factor = 0.9f;
  for (int epoch = 0; epoch < 50; epoch++)
    assert_near(shoal_recipe_rate_at(&recipe, (uint64_t)epoch, 7, 100), 0.5 * pow(0.9f, epoch));
}

static void a_cosine_goes_from_the_rate_to_the_last_one(void **state) {
  (void)state;
  shoal_recipe recipe = plain;
  recipe.schedule = SHOAL_SCHEDULE_COSINE;
  recipe.schedule_to = 0.125f;
  for (uint64_t round = 0; round < 1000; round++) {
    double expected = 0.125 + 0.375 * 0.5 * (1 + cos(acos(-1) * (double)round / 1000));
    assert_near(shoal_recipe_rate_at(&recipe, round / 100, round % 100, 100), expected);
  }
  assert_true(shoal_recipe_rate_at(&recipe, 0, 0, 100) == 0.5f);
  assert_true(shoal_recipe_rate_at(&recipe, 5, 0, 100) == 0.3125f);
  assert_true(shoal_recipe_rate_at(&recipe, 10, 0, 100) == 0.125f);
  assert_true(shoal_recipe_rate_at(&recipe, 500, 0, 100) == 0.125f); /* trained on past the end */
}

static void a_warm_up_climbs_in_equal_steps(void **state) {
  (void)state;
  shoal_recipe recipe = plain;
  recipe.warmup_epochs = 2;
  for (uint64_t round = 0; round < 300; round++) {
    double expected = round < 200 ? 0.5 * (double)(round + 1) / 200 : 0.5;
    assert_near(shoal_recipe_rate_at(&recipe, round / 100, round % 100, 100), expected);
  }
  recipe.warmup_epochs = 0.25f;
  assert_true(shoal_recipe_rate_at(&recipe, 0, 0, 4) == 0.5f); /* one round long */
  recipe.warmup_epochs = 1;
  recipe.schedule = SHOAL_SCHEDULE_STEP;
  recipe.schedule_factor = 0.5f;
  assert_true(shoal_recipe_rate_at(&recipe, 0, 1, 4) == 0.125f); /* half way up to half the rate */
}

static void the_rate_grows_with_the_batch_where_asked(void **state) {
  (void)state;
  shoal_recipe recipe = plain;
  recipe.scale_batch = 16;
  assert_true(shoal_recipe_rate_at(&recipe, 0, 0, 100) == 2);
  recipe.scale_batch = 256;
  assert_true(shoal_recipe_rate_at(&recipe, 0, 0, 100) == 0.125f);
}

static void no_recipe_gives_a_rate_that_is_not_finite(void **state) {
  (void)state;
  shoal_recipe recipe = plain;
  recipe.rate = 1e9f;
  recipe.schedule = SHOAL_SCHEDULE_EXPONENTIAL;
  recipe.schedule_factor = 1e9f;
  recipe.epochs = 1000000000;
  assert_true(shoal_recipe_rate_at(&recipe, 999999999, 0, 1) == FLT_MAX);
  recipe.schedule_factor = 1e-9f;
  assert_true(shoal_recipe_rate_at(&recipe, 999999999, 0, 1) == 0);
}

/* The same bits on every machine: these were computed once and must never change. */
static void known_rates_keep_their_bits(void **state) {
  (void)state;
  shoal_recipe recipe = {.batch = 96, .epochs = 7, .rate = 0.0123f, .warmup_epochs = 0.7f, .scale_batch = 50};
  recipe.schedule = SHOAL_SCHEDULE_COSINE;
  recipe.schedule_to = 1e-5f;
  assert_true(shoal_recipe_rate_at(&recipe, 0, 0, 313) == 0x1.c416c4p-14f);
  assert_true(shoal_recipe_rate_at(&recipe, 1, 17, 313) == 0x1.6dad54p-6f);
  assert_true(shoal_recipe_rate_at(&recipe, 3, 200, 313) == 0x1.6afb08p-7f);
  assert_true(shoal_recipe_rate_at(&recipe, 6, 312, 313) == 0x1.4ff392p-17f);
  recipe.schedule = SHOAL_SCHEDULE_EXPONENTIAL;
  recipe.schedule_factor = 0.97f;
  assert_true(shoal_recipe_rate_at(&recipe, 101, 0, 313) == 0x1.1d8e92p-10f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_optimiser_has_a_rate_of_its_own),
      cmocka_unit_test(a_constant_rate_stays),
      cmocka_unit_test(steps_begin_at_their_epoch_and_repeat),
      cmocka_unit_test(an_exponential_rate_falls_every_epoch),
      cmocka_unit_test(a_cosine_goes_from_the_rate_to_the_last_one),
      cmocka_unit_test(a_warm_up_climbs_in_equal_steps),
      cmocka_unit_test(the_rate_grows_with_the_batch_where_asked),
      cmocka_unit_test(no_recipe_gives_a_rate_that_is_not_finite),
      cmocka_unit_test(known_rates_keep_their_bits),
  };
  return RUN_TESTS(tests);
}
