/* When a volunteer works and when it steps aside. */
#include "check.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "work/manners.h"

static void hours_of_the_day_may_pass_midnight(void **state) {
  (void)state;
  static const struct {
    const char *hours;
    uint32_t hour, minute;
    bool works;
  } cases[] = {
      {"22-7", 22, 0, true},         {"22-7", 21, 59, false},      {"22-7", 23, 59, true},
      {"22-7", 0, 0, true},          {"22-7", 6, 59, true},        {"22-7", 7, 0, false},
      {"22-7", 12, 0, false},        {"8-17", 7, 59, false},       {"8-17", 8, 0, true},
      {"8-17", 16, 59, true},        {"8-17", 17, 0, false},       {"8-17", 0, 0, false},
      {"22:30-6:15", 22, 29, false}, {"22:30-6:15", 22, 30, true}, {"22:30-6:15", 6, 14, true},
      {"22:30-6:15", 6, 15, false},  {"18-24", 23, 59, true},      {"18-24", 0, 0, false},
      {"0-24", 3, 0, true},          {"9-9", 3, 0, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_manners_rules rules = {0};
    shoal_manners_mood mood = {0};
    shoal_error err;
    if (shoal_manners_read_hours(cases[i].hours, &rules, &err) != SHOAL_OK) fail_msg("%s", err.text);
    shoal_manners_sight sight = {.minute = cases[i].hour * 60 + cases[i].minute, .others_load = NAN};
    shoal_manners_reason expected = cases[i].works ? SHOAL_MANNERS_WORKS : SHOAL_MANNERS_HOURS;
    if (shoal_manners_decide(&rules, &sight, 1, &mood) != expected) fail_msg("case %zu", i);
  }
}

static void hours_that_are_none_are_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"",      "7",      "7-",   "-7",    "25-7", "7-25", "24:01-7",
                                      "7:5-9", "7:60-9", "7-9x", "7 - 9", "a-b",  "7:-9", "7-9-11"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    shoal_manners_rules rules = {0};
    shoal_error err;
    if (shoal_manners_read_hours(wrong[i], &rules, &err) != SHOAL_INVALID) fail_msg("taken: %s", wrong[i]);
    assert_non_null(strstr(err.text, "--hours"));
  }
}

static void sizes_are_read(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t bytes;
  } cases[] = {{"512M", 512ull << 20},
               {"512MB", 512ull << 20},
               {"4g", 4ull << 30},
               {"1.5G", 3ull << 29},
               {"1T", 1ull << 40},
               {"65536K", 64ull << 20},
               {"4", 0},
               {"63M", 0},
               {"", 0},
               {"M", 0},
               {"4GiB", 0},
               {"-4G", 0},
               {"4 G", 0},
               {"1..5G", 0},
               {"4Gx", 0},
               {"9999999T", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t bytes = 0;
    shoal_error err;
    shoal_status status = shoal_manners_read_memory(cases[i].text, &bytes, &err);
    if ((status == SHOAL_OK) != (cases[i].bytes > 0) || bytes != cases[i].bytes)
      fail_msg("'%s': %llu", cases[i].text, (unsigned long long)bytes);
  }
}

static void it_pauses_soon_and_goes_on_late(void **state) {
  (void)state;
  const shoal_manners_rules rules = {.pause_load = 1};
  /* At which second, how busy the others are, and what it does. */
  static const struct {
    double at, load;
    bool works;
  } steps[] = {
      {10, NAN, true},  {11, 0.1, true},   {12, 3, true},    {14, 3, true}, /* not at once */
      {15, 0.9, true},  {16, 3, true},     {19, 3, true},                   /* it was calm between */
      {20, 3, false},   {21, 0.9, false},  {60, 0.9, false},                /* less, but not calm */
      {61, 0.5, false}, {80, 0.5, false},  {81, 0.5, true},                 /* calm for long enough */
      {82, 3, true},    {86, 3, false},    {87, 0.1, false}, {95, 0.8, false},
      {96, 0.1, false}, {115, 0.1, false}, {116, 0.1, true},
  };
  shoal_manners_mood mood = {0};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    shoal_manners_sight sight = {.others_load = steps[i].load};
    shoal_manners_reason reason = shoal_manners_decide(&rules, &sight, steps[i].at, &mood);
    if (reason != (steps[i].works ? SHOAL_MANNERS_WORKS : SHOAL_MANNERS_LOAD))
      fail_msg("at %g: %d", steps[i].at, reason);
  }
  /* Whoever does not want it is not paused by anything. */
  const shoal_manners_rules never = {0};
  mood = (shoal_manners_mood){0};
  for (int i = 1; i < 100; i++)
    assert_int_equal(shoal_manners_decide(&never, &(shoal_manners_sight){.others_load = 64}, i, &mood), 0);
}

static void the_battery_is_spared(void **state) {
  (void)state;
  shoal_manners_rules rules = {.pause_load = 1};
  shoal_manners_mood mood = {0};
  shoal_manners_sight sight = {.others_load = 0, .battery = true};
  assert_int_equal(shoal_manners_decide(&rules, &sight, 1, &mood), SHOAL_MANNERS_BATTERY);
  sight.battery = false;
  assert_int_equal(shoal_manners_decide(&rules, &sight, 2, &mood), SHOAL_MANNERS_WORKS);
  rules.on_battery = true;
  sight.battery = true;
  assert_int_equal(shoal_manners_decide(&rules, &sight, 3, &mood), SHOAL_MANNERS_WORKS);
  /* The hours go before it: the reason that lasts longest is told. */
  rules = (shoal_manners_rules){.has_hours = true, .from_minute = 60, .to_minute = 120};
  assert_int_equal(shoal_manners_decide(&rules, &sight, 4, &mood), SHOAL_MANNERS_HOURS);
}

static void a_pause_is_told_with_its_figures(void **state) {
  (void)state;
  static const struct {
    const char *text;
    shoal_manners_reason reason;
    shoal_manners_rules rules;
    double load;
  } cases[] = {
      {"", SHOAL_MANNERS_WORKS, {.pause_load = 1.5}, 1.6},
      {"load 1.6, more than 1.5", SHOAL_MANNERS_LOAD, {.pause_load = 1.5}, 1.52},
      {"load 0.3 now, more than 1.5 before", SHOAL_MANNERS_LOAD, {.pause_load = 1.5}, 0.3},
      {"on battery", SHOAL_MANNERS_BATTERY, {0}, NAN},
      {"outside the hours 22-6", SHOAL_MANNERS_HOURS, {true, 22 * 60, 6 * 60, 0, false}, 0},
      {"outside the hours 8:05-17:30", SHOAL_MANNERS_HOURS, {true, 8 * 60 + 5, 17 * 60 + 30, 0, false}, 0},
      {"outside the hours 0-24", SHOAL_MANNERS_HOURS, {true, 0, 0, 0, false}, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[SHOAL_MANNERS_TEXT_MAX];
    const shoal_manners_sight sight = {.others_load = cases[i].load};
    shoal_manners_describe(cases[i].reason, &cases[i].rules, &sight, text);
    assert_string_equal(text, cases[i].text);
  }
}

static void this_machine_is_seen(void **state) {
  (void)state;
  shoal_manners_watch watch = {0};
  shoal_manners_sight sight;
  shoal_manners_look(&watch, 100, &sight);
  assert_true(isnan(sight.others_load));
  assert_true(sight.minute < 1440);
  shoal_clock_sleep(0.2);
  shoal_manners_look(&watch, 101.5, &sight);
  assert_true(sight.others_load >= 0 && sight.others_load < 10000);
  assert_true(shoal_manners_memory() > 1 << 20);
}

/* A process that is kept busy, and is called `shoal COMMAND`: a shell under that name, which runs a script of
 * the command's. */
static pid_t start_busy(const char *folder, const char *command) {
  char script[300];
  snprintf(script, sizeof script, "%s/%s", folder, command);
  FILE *file = fopen(script, "w");
  assert_non_null(file);
  fputs("while :; do :; done\n", file);
  fclose(file);
  pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (chdir(folder) == 0) execl("./shoal", "./shoal", command, (char *)NULL);
  _exit(1);
}

static unsigned long long ticks_of(pid_t pid) {
  char path[64], line[1024] = "";
  unsigned long long user = 0, system = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  sscanf(strrchr(line, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
  return user + system;
}

static bool has_seen(const shoal_manners_watch *watch, pid_t pid) {
  for (uint32_t i = 0; i < watch->seen_count; i++)
    if (watch->seen[i].pid == pid) return true;
  return false;
}

/* Other programs may be as busy as they like meanwhile: what is compared is what the kernel counted for each. */
static void what_other_volunteers_use_does_not_count(void **state) {
  (void)state;
  enum { ENOUGH = 40 };
  char folder[] = "/tmp/shoal-manners-XXXXXX", path[300];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/shoal", folder);
  assert_int_equal(symlink("/bin/sh", path), 0);
  static const char *const commands[] = {"work", "train"};
  for (size_t i = 0; i < 2; i++) {
    bool counts = strcmp(commands[i], "work") != 0; /* as others' */
    shoal_manners_watch watch = {0};
    shoal_manners_sight sight;
    pid_t child = start_busy(folder, commands[i]);
    EVENTUALLY(ticks_of(child) >= 2);
    shoal_manners_look(&watch, 100, &sight);
    unsigned long long before = ticks_of(child);
    EVENTUALLY(ticks_of(child) >= before + ENOUGH);
    shoal_manners_look(&watch, 200, &sight);
    double ticks = (double)sysconf(_SC_CLK_TCK) * 100 * sight.shoal_load;
    bool is_nice = getpriority(PRIO_PROCESS, 0) > 0; /* then it is nobody's load anyway */
    if (!counts && !is_nice && ticks < ENOUGH) fail_msg("only %g ticks are Shoal's", ticks);
    if (has_seen(&watch, child) == counts) fail_msg("shoal %s counts as the wrong kind", commands[i]);
    /* One that ends takes nothing back. */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    shoal_manners_look(&watch, 300, &sight);
    assert_true(sight.others_load >= 0 && sight.others_load < 10000 && sight.shoal_load < 10000);
    snprintf(path, sizeof path, "%s/%s", folder, commands[i]);
    unlink(path);
  }
  snprintf(path, sizeof path, "%s/shoal", folder);
  unlink(path);
  rmdir(folder);
}

static void it_takes_the_last_place(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    shoal_manners_step_back();
    bool last = getpriority(PRIO_PROCESS, 0) == 19 && sched_getscheduler(0) == SCHED_IDLE;
    _exit(last ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hours_of_the_day_may_pass_midnight),
      cmocka_unit_test(hours_that_are_none_are_refused),
      cmocka_unit_test(sizes_are_read),
      cmocka_unit_test(it_pauses_soon_and_goes_on_late),
      cmocka_unit_test(the_battery_is_spared),
      cmocka_unit_test(this_machine_is_seen),
      cmocka_unit_test(a_pause_is_told_with_its_figures),
      cmocka_unit_test(what_other_volunteers_use_does_not_count),
      cmocka_unit_test(it_takes_the_last_place),
  };
  return RUN_TESTS(tests);
}
