/* spawn.c: see spawn.h. */
#include "cli/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"

static const double FIRST_WAIT_S = 0.2, LONGEST_WAIT_S = 5, STEADY_S = 10, GRACE_S = 3, LOOK_S = 0.05;

typedef struct child {
  char name[32];
  char *words[SHOAL_SPAWN_ARGUMENTS_MAX];
  pid_t pid; /* 0: not running */
  double started, next_start, wait_s;
} child;

struct shoal_spawn {
  shoal_notes notes;
  child *children;
  uint32_t count, max;
  pthread_t thread;
  bool running;
  atomic_bool ending;
};

shoal_status shoal_spawn_create(shoal_spawn **out, uint32_t max, const shoal_notes *notes, shoal_error *err) {
  *out = calloc(1, sizeof **out);
  child *children = calloc(max, sizeof *children);
  if (*out == NULL || children == NULL) {
    free(*out);
    free(children);
    *out = NULL;
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  }
  **out = (shoal_spawn){.notes = *notes, .children = children, .max = max};
  return SHOAL_OK;
}

void shoal_spawn_add(shoal_spawn *s, const char *name, const char *const *words) {
  SHOAL_ASSERT(s->count < s->max && !s->running);
  child *c = &s->children[s->count++];
  snprintf(c->name, sizeof c->name, "%s", name);
  uint32_t count = 0;
  c->words[count++] = strdup("shoal");
  for (; *words != NULL; words++) {
    SHOAL_ASSERT(count + 1 < SHOAL_SPAWN_ARGUMENTS_MAX);
    c->words[count++] = strdup(*words);
  }
  c->wait_s = FIRST_WAIT_S;
}

/* Between fork and exec only what a signal handler may do. */
static void become(const child *c, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1); /* it died before that was said */
  int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) {
    dup2(nothing, 0);
    dup2(nothing, 1);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execv("/proc/self/exe", c->words);
  _exit(127);
}

static void start_child(shoal_spawn *s, child *c, double now) {
  pid_t parent = getpid();
  c->pid = fork();
  if (c->pid == 0) become(c, parent);
  if (c->pid < 0) {
    shoal_note(&s->notes, "cannot start %s: %s", c->name, strerror(errno));
    c->pid = 0;
    c->next_start = now + LONGEST_WAIT_S;
    return;
  }
  c->started = now;
}

static void look_after(shoal_spawn *s, child *c, double now) {
  int status;
  if (c->pid == 0) {
    if (!atomic_load(&s->ending) && now >= c->next_start) start_child(s, c, now);
    return;
  }
  if (waitpid(c->pid, &status, WNOHANG) != c->pid) return;
  c->pid = 0;
  if (atomic_load(&s->ending) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    c->next_start = INFINITY; /* it was told that the training is over */
    return;
  }
  c->wait_s = now - c->started > STEADY_S ? FIRST_WAIT_S : fmin(2 * c->wait_s, LONGEST_WAIT_S);
  c->next_start = now + c->wait_s;
  if (WIFSIGNALED(status))
    shoal_note(&s->notes, "%s died of signal %d; starting it again", c->name, WTERMSIG(status));
  else
    shoal_note(&s->notes, "%s ended with status %d; starting it again", c->name, WEXITSTATUS(status));
}

static bool any_runs(const shoal_spawn *s) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->children[i].pid != 0) return true;
  return false;
}

/* The thread that forks must live as long as the children: they die with it. */
static void *watch(void *self) {
  shoal_spawn *s = self;
  double ending_since = INFINITY;
  bool stopped = false;
  while (!atomic_load(&s->ending) || any_runs(s)) {
    double now = shoal_clock_seconds();
    for (uint32_t i = 0; i < s->count; i++) look_after(s, &s->children[i], now);
    if (atomic_load(&s->ending) && isinf(ending_since)) ending_since = now;
    if (now - ending_since > GRACE_S) {
      for (uint32_t i = 0; i < s->count; i++)
        if (s->children[i].pid != 0) kill(s->children[i].pid, stopped ? SIGKILL : SIGTERM);
      stopped = true;
      ending_since = now;
    }
    shoal_clock_sleep(LOOK_S);
  }
  return NULL;
}

shoal_status shoal_spawn_start(shoal_spawn *s, shoal_error *err) {
  /* Signals are for the thread that runs the training. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  s->running = pthread_create(&s->thread, NULL, watch, s) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return s->running ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
}

void shoal_spawn_end(shoal_spawn *s) {
  if (s == NULL) return;
  atomic_store(&s->ending, true);
  if (s->running) pthread_join(s->thread, NULL);
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t w = 0; w < SHOAL_SPAWN_ARGUMENTS_MAX; w++) free(s->children[i].words[w]);
  free(s->children);
  free(s);
}
