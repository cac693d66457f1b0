/* The speed of a machine is measured once a day, and for every machine: a home folder may be shared. */
#include "cli/speed.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <utime.h>

#include "nn/in_folder.h"

static double measure(void) {
  double speed = 0;
  shoal_error err;
  if (shoal_speed_measure("speed", 1, &speed, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_true(speed > 0);
  return speed;
}

/* Writes a number that no machine has behind what the speed was kept for, with `from` in it made `to`. */
static void keep_impossible(const char *from, const char *to) {
  char text[512] = "";
  FILE *file = fopen("speed", "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  char *number = strrchr(text, ' '), *at = strstr(text, from);
  assert_true(number != NULL && at != NULL && strlen(from) == strlen(to));
  memcpy(at, to, strlen(to));
  file = fopen("speed", "w");
  fprintf(file, "%.*s 123456789\n", (int)(number - text), text);
  fclose(file);
}

static void it_is_kept_for_the_next_time(void **state) {
  (void)state;
  measure();
  keep_impossible(" ", " ");
  assert_true(measure() == 123456789);
}

static void it_is_measured_again_after_a_day(void **state) {
  (void)state;
  measure();
  keep_impossible(" ", " ");
  const struct utimbuf before = {time(NULL) - 2 * 86400, time(NULL) - 2 * 86400};
  assert_int_equal(utime("speed", &before), 0);
  assert_true(measure() < 123456789);
}

static void another_machine_measures_for_itself(void **state) {
  (void)state;
  measure();
  keep_impossible(": ", "! "); /* another word at the end of the processor's name */
  assert_true(measure() < 123456789);
  keep_impossible(" 1 ", " 2 "); /* for two threads */
  assert_true(measure() < 123456789);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(it_is_kept_for_the_next_time),
      IN_FOLDER(it_is_measured_again_after_a_day),
      IN_FOLDER(another_machine_measures_for_itself),
  };
  return RUN_TESTS(tests);
}
