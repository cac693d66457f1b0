#include "check.h"

#include <math.h>

#include "data/toy.h"

static void tokens_use_the_whole_alphabet_evenly(void **state) {
  (void)state;
  enum { ALPHABET = 7, SAMPLES = 2000, STEPS = 10 };
  uint32_t uses[ALPHABET] = {0};
  for (uint64_t number = 0; number < SAMPLES; number++) {
    for (uint32_t step = 0; step < STEPS; step++) {
      int32_t token = shoal_toy_token(number, step, ALPHABET);
      assert_in_range(token, 0, ALPHABET - 1);
      assert_int_equal(token, shoal_toy_token(number, step, ALPHABET));
      uses[token]++;
    }
  }
  for (int i = 0; i < ALPHABET; i++) assert_in_range(uses[i], 2600, 3100); /* 2857 expected */
}

static void a_wave_is_the_sine_of_its_inputs(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 500; number++) {
    float input[SHOAL_TOY_WAVE_INPUTS];
    shoal_toy_wave_input(number, input);
    assert_true(input[0] >= 1 && input[0] < 3 && input[1] >= -1 && input[1] < 1 && input[2] >= 0.25f &&
                input[2] < 1);
    for (uint32_t step = 0; step < 24; step++) {
      double pi = 3.14159265358979323846;
      double expected = input[2] * sin(2 * pi * input[0] * step / 24 + pi * input[1]);
      assert_true(fabs(shoal_toy_wave(input, step, 24) - expected) < 1e-6);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokens_use_the_whole_alphabet_evenly),
      cmocka_unit_test(a_wave_is_the_sine_of_its_inputs),
  };
  return RUN_TESTS(tests);
}
