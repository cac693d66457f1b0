/* Places, beside a plain array of what must be in it. */
#include <string.h>

#include "base/random.h"
#include "check.h"
#include "proto/places.h"

enum { KEYS = 64 };

static void random_lives_agree_with_an_array(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 200; seed++) {
    shoal_key key = shoal_key_make(seed, SHOAL_FOR_TOY, 1, 1);
    shoal_places places;
    uint32_t expected[KEYS] = {0};
    assert_true(shoal_places_init(&places, KEYS / 2));
    uint32_t count = 0;
    for (uint32_t step = 0; step < 2000; step++) {
      uint32_t which = (uint32_t)shoal_random_below(key, 2 * step, KEYS);
      uint64_t name = which % 3 == 0 ? which + 1 : (uint64_t)(which + 1) << 32; /* some crowd together */
      if (shoal_random_below(key, 2 * step + 1, 2) == 0 && (expected[which] != 0 || count < KEYS / 2)) {
        count += expected[which] == 0;
        expected[which] = step + 1;
        shoal_places_put(&places, name, step + 1);
      } else {
        count -= expected[which] != 0;
        expected[which] = 0;
        shoal_places_remove(&places, name);
      }
      for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t value = 0;
        uint64_t other = i % 3 == 0 ? i + 1 : (uint64_t)(i + 1) << 32;
        assert_int_equal(shoal_places_get(&places, other, &value), expected[i] != 0);
        assert_int_equal(value, expected[i]);
      }
    }
    shoal_places_clear(&places);
    uint32_t value;
    for (uint32_t i = 0; i < KEYS; i++) assert_false(shoal_places_get(&places, i + 1, &value));
    shoal_places_release(&places);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_lives_agree_with_an_array),
  };
  return RUN_TESTS(tests);
}
