/* lifeline.c: see lifeline.h. */
#include "cli/lifeline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

enum { LONGEST_S = 180 }; /* a chief may need some time to gather and save */

/* Reads a line into `out`, cut to its size; false at the end of the input. */
static bool read_line(char *out, size_t size) {
  size_t length = 0;
  for (;;) {
    char byte;
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    if (byte == '\n') break;
    if (length + 1 < size) out[length++] = byte;
  }
  out[length] = 0;
  return true;
}

static void *hold(void *self) {
  (void)self;
  int signal = 0;
  while (signal == 0) {
    char line[16];
    if (!read_line(line, sizeof line) || strcmp(line, "SIGTERM") == 0)
      signal = SIGTERM;
    else if (strcmp(line, "SIGINT") == 0)
      signal = SIGINT;
  }
  kill(getpid(), signal);
  shoal_clock_sleep(LONGEST_S);
  kill(getpid(), SIGKILL);
  return NULL;
}

shoal_status shoal_lifeline_hold(shoal_error *err) {
  /* The signal must reach the thread that runs the training. */
  pthread_t thread;
  bool started = shoal_thread_start(&thread, hold, NULL) == 0;
  if (started) pthread_detach(thread);
  return started ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
}
