/* The time that is left goes down as time goes by: it does not jump when an epoch ends and held-out samples are
 * scored, nor when a round had to wait for somebody. */
#include "check.h"

#include <math.h>

#include "train/eta.h"

enum { EPOCHS = 6, ROUNDS = 50 };
static const double ROUND_S = 0.1, PAUSE_S = 4;

static void check_near(double left, double right, double within) {
  if (!(fabs(left - right) <= within)) fail_msg("%.3f s are told, %.3f s are right", left, right);
}

/* With pauses as long as they are guessed, and with ones that are twice as long, which the first one shows. */
static void runs_smoothly(double guessed_s) {
  shoal_eta eta;
  const uint64_t all = EPOCHS * ROUNDS;
  const double end = EPOCHS * (ROUNDS * ROUND_S + PAUSE_S);
  shoal_eta_start(&eta, (uint64_t)(guessed_s / ROUND_S * 3 * 100), 100);
  double now = 0;
  assert_true(isnan(shoal_eta_left(&eta, all, ROUNDS, now)));
  for (uint64_t step = 1; step <= all; step++) {
    now += ROUND_S;
    bool ends_epoch = step % ROUNDS == 0;
    shoal_eta_round(&eta, 1, ends_epoch, now);
    bool knows_pause = step > ROUNDS || guessed_s == PAUSE_S;
    double left = shoal_eta_left(&eta, all - step, ROUNDS, now);
    if (step > 1 && knows_pause) check_near(left, end - now, 0.01);
    for (int i = 1; ends_epoch && knows_pause && i <= 4; i++) /* while held-out samples are scored */
      check_near(shoal_eta_left(&eta, all - step, ROUNDS, now + i * PAUSE_S / 4), end - now - i * PAUSE_S / 4,
                 0.01);
    if (ends_epoch) now += PAUSE_S;
  }
  check_near(shoal_eta_left(&eta, 0, ROUNDS, now + 100), 0, 0);
}

static void no_jump_at_an_evaluation(void **state) {
  (void)state;
  runs_smoothly(PAUSE_S);
  runs_smoothly(PAUSE_S / 2);
}

static void waiting_is_left_out(void **state) {
  (void)state;
  shoal_eta eta;
  shoal_eta_start(&eta, 0, 100);
  double now = 100;
  for (int i = 0; i < 20; i++) shoal_eta_round(&eta, 1, false, now += ROUND_S);
  now += 60; /* nobody was there */
  shoal_eta_round(&eta, 1, false, now);
  check_near(shoal_eta_left(&eta, 100, 1000, now), 10, 0.01);
  /* While one waits, no more than the round at hand goes by. */
  check_near(shoal_eta_left(&eta, 100, 1000, now + 30), 10 - ROUND_S, 0.01);
}

static void a_change_of_speed_is_followed(void **state) {
  (void)state;
  shoal_eta eta;
  shoal_eta_start(&eta, 0, 100);
  double now = 0;
  for (int i = 0; i < 1000; i++) shoal_eta_round(&eta, 1, false, now += ROUND_S);
  for (int i = 0; i < 1000; i++) shoal_eta_round(&eta, 2, false, now += ROUND_S); /* twice as many workers */
  check_near(shoal_eta_left(&eta, 1000, 10000, now), 1000 * ROUND_S / 2, 2.5);
  assert_true(isnan(shoal_eta_left(&eta, 10, 0, now)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_jump_at_an_evaluation),
      cmocka_unit_test(waiting_is_left_out),
      cmocka_unit_test(a_change_of_speed_is_followed),
  };
  return RUN_TESTS(tests);
}
