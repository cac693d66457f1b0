/* stop.c: see stop.h. */
#include "cli/stop.h"

#include <unistd.h>

static const struct {
  int number;
  const char *name;
} signals[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
enum { SIGNALS_COUNT = sizeof signals / sizeof signals[0] };

static volatile sig_atomic_t stop;

static void on_signal(int number) { stop = number; }

/* A signal that has come says more than the deadline. */
static void on_deadline(int number) {
  sig_atomic_t none = 0;
  __atomic_compare_exchange_n(&stop, &none, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* SA_RESETHAND puts the default action back, so a second Ctrl-C ends the process at once. */
void shoal_stop_catch(void) {
  for (int i = 0; i < SIGNALS_COUNT; i++) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    sigaction(signals[i].number, NULL, &before);
    /* nohup means that the end of the terminal is none of this process's business. */
    bool keep_ignoring = signals[i].number == SIGHUP && before.sa_handler == SIG_IGN;
    if (!keep_ignoring) sigaction(signals[i].number, &action, NULL);
  }
}

int shoal_stop_signal(void) {
  int number = stop;
  return number == SIGALRM ? 0 : number;
}

const char *shoal_stop_name(int number) {
  for (int i = 0; i < SIGNALS_COUNT; i++)
    if (signals[i].number == number) return signals[i].name;
  return "a signal";
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
