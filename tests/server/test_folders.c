/* Folders are cut out of texts, names of files stay. */
#include "server/folders.h"

#include <stdio.h>

#include "check.h"

static const char *without(const char *text, const char *folder) {
  static char out[200];
  snprintf(out, sizeof out, "%s", text);
  shoal_cut_folder(out, folder);
  return out;
}

static const char *without_path(const char *text, const char *path, int levels) {
  static char out[200];
  snprintf(out, sizeof out, "%s", text);
  shoal_cut_path(out, path, levels);
  return out;
}

static void a_folder_goes_wherever_it_is_named(void **state) {
  (void)state;
  assert_string_equal(without("/srv/a/b.csv: bad, see /srv/a/c.csv", "/srv/a"), "b.csv: bad, see c.csv");
  assert_string_equal(without("/srv/a: is gone", "/srv/a"), "is gone");
  assert_string_equal(without("/srv/ab/b.csv", "/srv/a"), "/srv/ab/b.csv");
  assert_string_equal(without("nothing of it", "/srv/a"), "nothing of it");
  assert_string_equal(without("as it was", ""), "as it was");
}

static void of_a_path_some_names_stay(void **state) {
  (void)state;
  assert_string_equal(without_path("/srv/sets/wine/w.csv:3: bad", "/srv/sets/wine/w.csv", 1), "w.csv:3: bad");
  assert_string_equal(without_path("/srv/sets/wine/w.csv:3: bad", "/srv/sets/wine/w.csv", 2),
                      "wine/w.csv:3: bad");
  assert_string_equal(without_path("w.csv: bad", "w.csv", 1), "w.csv: bad");
  assert_string_equal(without_path("w.csv: bad", "w.csv", 9), "w.csv: bad");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_folder_goes_wherever_it_is_named),
      cmocka_unit_test(of_a_path_some_names_stay),
  };
  return RUN_TESTS(tests);
}
