/* spawn.c: see spawn.h.
 *
 * Ending takes steps, GRACE_S apart, for those who still run: nothing, the lifeline let go where
 * there is one, SIGTERM, SIGKILL. */
#include "cli/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/cli.h"

static const double FIRST_WAIT_S = 0.2, LONGEST_WAIT_S = 5, STEADY_S = 10, GRACE_S = 3, LOOK_S = 0.05;
static const double REACHED_S = 300; /* no try to reach a machine takes longer */
enum { LINE_MAX_BYTES = 4096, NOT_ENDED = -1, CANNOT_RUN = 127, TRIES_MAX = 5 };

typedef struct child {
  char name[32];
  char *program; /* or NULL */
  char *network; /* a file, or NULL */
  char *words[SHOAL_SPAWN_ARGUMENTS_MAX];
  shoal_spawn_output output;
  bool has_lifeline, leads, vital, works;
  int lost;
  uint32_t lost_tries;
  pid_t pid;          /* 0: not running */
  uint32_t tries;     /* that ended within STEADY_S of their start, in a row */
  uint32_t unreached; /* tries in a row that did not get to its machine */
  bool is_given_up;
  double started, next_start, wait_s;
  int lifeline, lines; /* our ends of its pipes, or -1 */
  char line[LINE_MAX_BYTES];
  size_t line_length;
} child;

struct shoal_spawn {
  shoal_spawn_calls calls;
  bool has_failed;
  child *children;
  struct pollfd *polled; /* as many */
  uint32_t count, max;
  pthread_t thread;
  bool running;
  atomic_bool ending;
  atomic_int leader_status; /* or NOT_ENDED */
  _Atomic(const char *) to_leader;
};

shoal_status shoal_spawn_create(shoal_spawn **out, uint32_t max, const shoal_spawn_calls *calls,
                                shoal_error *err) {
  *out = NULL;
  shoal_spawn *s = calloc(1, sizeof *s);
  child *children = calloc(max, sizeof *children);
  struct pollfd *polled = calloc(max, sizeof *polled);
  if (s == NULL || children == NULL || polled == NULL) {
    free(s);
    free(children);
    free(polled);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  }
  s->calls = *calls;
  s->children = children;
  s->polled = polled;
  s->max = max;
  atomic_init(&s->leader_status, NOT_ENDED);
  *out = s;
  return SHOAL_OK;
}

static char *copy(const char *word) {
  char *own = strdup(word);
  SHOAL_ASSERT(own != NULL);
  return own;
}

void shoal_spawn_add(shoal_spawn *s, const shoal_spawn_process *process) {
  SHOAL_ASSERT(s->count < s->max && !s->running);
  child *c = &s->children[s->count++];
  c->output = process->output;
  c->has_lifeline = process->lifeline;
  c->leads = process->leads;
  c->vital = process->vital;
  c->works = process->works;
  c->lost = process->lost;
  c->lost_tries = process->lost_tries;
  c->wait_s = FIRST_WAIT_S;
  c->lifeline = c->lines = -1;
  snprintf(c->name, sizeof c->name, "%s", process->name);
  if (process->program != NULL) c->program = copy(process->program);
  uint32_t count = 0;
  c->words[count++] = copy(process->program != NULL ? process->program : "shoal");
  for (const char *const *word = process->words; *word != NULL; word++) {
    SHOAL_ASSERT(count + 1 < SHOAL_SPAWN_ARGUMENTS_MAX);
    c->words[count++] = copy(*word);
  }
}

void shoal_spawn_in_network(shoal_spawn *s, const char *path) {
  SHOAL_ASSERT(s->count > 0 && !s->running);
  s->children[s->count - 1].network = copy(path);
}

/* ---- starting ---- */

static void enter_network(const char *path) {
  int network = open(path, O_RDONLY | O_CLOEXEC);
  if (network < 0 || setns(network, CLONE_NEWNET) != 0) _exit(1);
}

/* The child's ends of its pipes; -1 where it has none. */
typedef struct pipe_ends {
  int input, output;
} pipe_ends;

/* In one piece: several processes write there at a time. */
static void complain(const char *what, const char *program) {
  const char *parts[] = {what, program, "\n"};
  struct iovec pieces[3];
  for (int i = 0; i < 3; i++) pieces[i] = (struct iovec){(char *)(uintptr_t)parts[i], strlen(parts[i])};
  ssize_t ignored = writev(STDERR_FILENO, pieces, 3);
  (void)ignored;
}

/* Between fork and exec only what a signal handler may do. */
static void become(const child *c, const pipe_ends *pipes, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1); /* it died before that was said */
  if (c->network != NULL) enter_network(c->network);
  int nothing = open("/dev/null", O_RDWR);
  dup2(pipes->input >= 0 ? pipes->input : nothing, STDIN_FILENO);
  if (c->output == SHOAL_OUTPUT_ERRORS) dup2(nothing, STDOUT_FILENO);
  if (pipes->output >= 0) {
    dup2(pipes->output, STDOUT_FILENO);
    dup2(pipes->output, STDERR_FILENO);
  }
  if (nothing > STDERR_FILENO) close(nothing);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (c->program == NULL)
    execv("/proc/self/exe", c->words);
  else
    execvp(c->program, c->words);
  complain("cannot run ", c->words[0]);
  _exit(CANNOT_RUN);
}

static void close_end(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* Makes the pipes, ours in the child's entry; all close when somebody else is started. */
static bool make_pipes(child *c, pipe_ends *theirs) {
  int ends[2];
  *theirs = (pipe_ends){-1, -1};
  if (c->has_lifeline) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    theirs->input = ends[0];
    c->lifeline = ends[1];
  }
  if (c->output == SHOAL_OUTPUT_NAMED) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    theirs->output = ends[1];
    c->lines = ends[0];
    fcntl(c->lines, F_SETFL, O_NONBLOCK);
  }
  return true;
}

static void start_child(shoal_spawn *s, child *c, double now) {
  pid_t parent = getpid();
  pipe_ends theirs;
  c->pid = make_pipes(c, &theirs) ? fork() : -1;
  if (c->pid == 0) become(c, &theirs, parent);
  int failed = errno;
  close_end(&theirs.input);
  close_end(&theirs.output);
  c->line_length = 0;
  c->started = now;
  if (c->pid > 0) return;
  shoal_note(&s->calls.notes, "cannot start %s: %s", c->name, strerror(failed));
  close_end(&c->lifeline);
  close_end(&c->lines);
  c->pid = 0;
  c->next_start = now + LONGEST_WAIT_S;
}

/* ---- what they print ---- */

static void print_line(const child *c, const char *line, size_t length) {
  size_t name = strlen(c->name);
  bool named = length > name && memcmp(line, c->name, name) == 0 && line[name] == ':'; /* by itself */
  if (named)
    fprintf(stderr, "%.*s\n", (int)length, line);
  else
    fprintf(stderr, "%s: %.*s\n", c->name, (int)length, line);
}

/* Prints the whole lines that have come, and at the end what is left. */
static void print_lines(child *c, bool at_end) {
  size_t from = 0;
  for (const char *end; (end = memchr(c->line + from, '\n', c->line_length - from)) != NULL;) {
    size_t length = (size_t)(end - c->line) - from;
    print_line(c, c->line + from, length > 0 && end[-1] == '\r' ? length - 1 : length);
    from += length + 1;
  }
  c->line_length -= from;
  memmove(c->line, c->line + from, c->line_length);
  if (c->line_length == 0 || !(at_end || c->line_length == sizeof c->line)) return;
  print_line(c, c->line, c->line_length);
  c->line_length = 0;
}

static void read_lines(child *c) {
  ssize_t got;
  while ((got = read(c->lines, c->line + c->line_length, sizeof c->line - c->line_length)) > 0) {
    c->line_length += (size_t)got;
    print_lines(c, false);
  }
  if (got == 0) close_end(&c->lines);
}

/* Waits a little, or until somebody has said something. */
static void wait_for_lines(shoal_spawn *s) {
  for (uint32_t i = 0; i < s->count; i++) s->polled[i] = (struct pollfd){s->children[i].lines, POLLIN, 0};
  if (poll(s->polled, s->count, (int)(1000 * LOOK_S)) <= 0) return;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->polled[i].revents != 0) read_lines(&s->children[i]);
}

/* ---- looking after ---- */

static bool can_go_on_without(const shoal_spawn *s, const child *lost) {
  for (uint32_t i = 0; i < s->count && !lost->vital; i++)
    if (s->children[i].works && !s->children[i].is_given_up) return true;
  return false;
}

/* how: "ends at once each time", what: "status 1" */
static void give_up(shoal_spawn *s, child *c, const char *how, const char *what) {
  shoal_error err;
  shoal_fail(&err, SHOAL_IO, "%s %s (%s); giving up", c->name, how, what);
  c->is_given_up = true;
  if (can_go_on_without(s, c)) {
    shoal_note(&s->calls.notes, "%s", err.text);
  } else if (!s->has_failed) {
    s->has_failed = true;
    s->calls.failed(s->calls.self, &err);
  }
}

/* After an end that nobody asked for: why another try is of no use; NULL: there is one. */
static const char *judge(child *c, bool exited, int code, double lasted_s, char how[64]) {
  bool lost = exited && c->lost != 0 && code == c->lost;
  c->tries = lasted_s > STEADY_S || lost ? 0 : c->tries + 1;
  if (!lost || lasted_s > REACHED_S) c->unreached = 0;
  c->unreached += lost;
  if (exited && (code == SHOAL_EXIT_USAGE || code == CANNOT_RUN)) return "cannot run";
  if (c->tries == TRIES_MAX) return "ends at once each time";
  if (!lost || c->unreached < c->lost_tries) return NULL;
  snprintf(how, 64, "could not be reached in %u tries in a row", c->unreached);
  return how;
}

/* And when to start it again, if ever. */
static void consider(shoal_spawn *s, child *c, int status, double now) {
  double lasted_s = now - c->started;
  bool exited = WIFEXITED(status);
  int code = exited ? WEXITSTATUS(status) : WTERMSIG(status);
  char what[32], how[64];
  snprintf(what, sizeof what, "%s %d", exited ? "status" : "signal", code);
  const char *useless = judge(c, exited, code, lasted_s, how);
  if (useless != NULL) {
    give_up(s, c, useless, what);
    return;
  }
  c->wait_s = lasted_s > STEADY_S ? FIRST_WAIT_S : fmin(2 * c->wait_s, LONGEST_WAIT_S);
  c->next_start = now + c->wait_s;
  bool elsewhere = c->lost != 0;
  if (c->unreached > 0)
    shoal_note(&s->calls.notes,
               "%s: its machine could not be reached, or was lost (%s); trying again in %.0fs, try %u of %u",
               c->name, what, ceil(c->wait_s), c->unreached + 1, c->lost_tries);
  else if (elsewhere && exited && code > 128)
    shoal_note(&s->calls.notes, "%s died of signal %d on its machine; starting it again", c->name,
               code - 128);
  else
    shoal_note(&s->calls.notes, "%s%s %s %s; starting it again",
               elsewhere && !exited ? "the connection to " : "", c->name, exited ? "ended with" : "died of",
               what);
}

static void bury(shoal_spawn *s, child *c, int status, double now) {
  c->pid = 0;
  close_end(&c->lifeline);
  if (c->lines >= 0) read_lines(c); /* but not until the end: a grandchild may hold the other one */
  print_lines(c, true);
  close_end(&c->lines);
  c->next_start = INFINITY;
  if (c->leads) {
    atomic_store(&s->leader_status, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    return;
  }
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  bool was_told_to = code == SHOAL_EXIT_OK || code == SHOAL_EXIT_CHIEF_STOPPED;
  if (!atomic_load(&s->ending) && !was_told_to) consider(s, c, status, now);
}

static void look_after(shoal_spawn *s, child *c, double now) {
  int status;
  if (c->pid == 0 && !atomic_load(&s->ending) && now >= c->next_start) start_child(s, c, now);
  if (c->pid != 0 && waitpid(c->pid, &status, WNOHANG) == c->pid) bury(s, c, status, now);
  if (!c->leads || c->lifeline < 0) return;
  const char *text = atomic_exchange(&s->to_leader, NULL);
  if (text == NULL) return;
  if (dprintf(c->lifeline, "%s\n", text) < 0) close_end(&c->lifeline); /* which says the same */
}

static bool any_runs(const shoal_spawn *s) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->children[i].pid != 0) return true;
  return false;
}

static void end_child(child *c, uint32_t step) {
  if (c->pid == 0) return;
  if (c->has_lifeline && step == 1)
    close_end(&c->lifeline);
  else
    kill(c->pid, step == (c->has_lifeline ? 2 : 1) ? SIGTERM : SIGKILL);
}

/* The thread that forks must live as long as the children: they die with it. */
static void *watch(void *self) {
  shoal_spawn *s = self;
  double step_since = INFINITY;
  uint32_t step = 0;
  while (!atomic_load(&s->ending) || any_runs(s)) {
    double now = shoal_clock_seconds();
    for (uint32_t i = 0; i < s->count; i++) look_after(s, &s->children[i], now);
    if (atomic_load(&s->ending) && isinf(step_since)) step_since = now;
    if (now - step_since > GRACE_S) {
      step++;
      step_since = now;
      for (uint32_t i = 0; i < s->count; i++) end_child(&s->children[i], step);
    }
    wait_for_lines(s);
  }
  return NULL;
}

shoal_status shoal_spawn_start(shoal_spawn *s, shoal_error *err) {
  s->running = shoal_thread_start(&s->thread, watch, s) == 0;
  return s->running ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
}

bool shoal_spawn_leader_ended(shoal_spawn *s, int *status) {
  *status = atomic_load(&s->leader_status);
  return *status != NOT_ENDED;
}

void shoal_spawn_tell_leader(shoal_spawn *s, const char *text) { atomic_store(&s->to_leader, text); }

void shoal_spawn_end(shoal_spawn *s) {
  if (s == NULL) return;
  atomic_store(&s->ending, true);
  if (s->running) pthread_join(s->thread, NULL);
  for (uint32_t i = 0; i < s->count; i++) {
    free(s->children[i].program);
    free(s->children[i].network);
    for (uint32_t w = 0; w < SHOAL_SPAWN_ARGUMENTS_MAX; w++) free(s->children[i].words[w]);
  }
  free(s->children);
  free(s->polled);
  free(s);
}
