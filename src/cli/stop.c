/* stop.c: see stop.h. */
#include "cli/stop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static const struct {
  int number;
  const char *name;
} signals[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
enum { SIGNALS_COUNT = sizeof signals / sizeof signals[0] };

static const double SAME_WISH_S = 0.5;

static volatile sig_atomic_t stop;

static volatile double first_s[SIGNALS_COUNT]; /* when the first of its kind came; 0: not yet */
static const char *said = "";                  /* on the first signal */

/* Everything here is safe in a handler. The line of a progress bar is written over. */
static void say_once(void) {
  static const char clear[] = "\r\x1b[K";
  if (said[0] == 0 || stop != 0) return;
  ssize_t written = write(STDERR_FILENO, clear, sizeof clear - 1);
  if (written > 0) written = write(STDERR_FILENO, said, strlen(said));
  if (written > 0) (void)!write(STDERR_FILENO, "\n", 1);
}

static void on_signal(int number) {
  int before = errno, kind = 0;
  while (signals[kind].number != number) kind++;
  double now = shoal_clock_seconds();
  if (first_s[kind] == 0) {
    first_s[kind] = now;
    say_once();
    __atomic_store_n(&stop, number, __ATOMIC_RELAXED); /* other threads may look */
  } else if (now - first_s[kind] >= SAME_WISH_S) {
    signal(number, SIG_DFL);
    raise(number); /* comes when this handler has returned */
  }
  errno = before;
}

void shoal_stop_by(int number) {
  sig_atomic_t none = 0;
  __atomic_compare_exchange_n(&stop, &none, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* A signal that has come says more than the deadline. */
static void on_deadline(int number) { shoal_stop_by(number); }

void shoal_stop_catch(void) {
  for (int i = 0; i < SIGNALS_COUNT; i++) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    sigaction(signals[i].number, NULL, &before);
    /* nohup means that the end of the terminal is none of this process's business. */
    bool keep_ignoring = signals[i].number == SIGHUP && before.sa_handler == SIG_IGN;
    if (!keep_ignoring) sigaction(signals[i].number, &action, NULL);
  }
}

void shoal_stop_says(const char *text) { said = isatty(STDERR_FILENO) ? text : ""; }

int shoal_stop_signal(void) {
  int number = stop;
  return number == SIGALRM ? 0 : number;
}

const char *shoal_stop_name(int number) {
  for (int i = 0; i < SIGNALS_COUNT; i++)
    if (signals[i].number == number) return signals[i].name;
  return number == SIGPIPE ? "SIGPIPE" : "a signal";
}

const volatile sig_atomic_t *shoal_stop_flag(void) { return &stop; }

void shoal_stop_after(unsigned seconds) {
  struct sigaction action = {.sa_handler = on_deadline, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, NULL);
  alarm(seconds);
  sig_atomic_t late = SIGALRM; /* in one step: a signal that comes just now is not lost */
  if (seconds == 0) __atomic_compare_exchange_n(&stop, &late, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool shoal_stop_was_late(void) { return stop == SIGALRM; }
