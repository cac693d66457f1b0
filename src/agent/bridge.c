/* bridge.c: see bridge.h; gym_bridge.py is the other half, and says what the messages are.
 *
 * The memory that both have, each part at a multiple of ALIGNMENT:
 *   actions        count x action_width floats
 *   observations   count x observation floats
 *   lasts          likewise
 *   rewards        count floats
 *   ends           count bytes
 *
 * Opening a name starts a process, which tells what the environment is; it then waits for a vector. Every
 * vector has a process of its own, so that threads step at the same time; when the vector goes, the process
 * waits for another one, since a new one needs a while for its imports. A process that dies closes its socket,
 * which is how a step hears of it. One that was asked and has not answered is not waited for: it is killed. */
#include "agent/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/vector.h"
#include "base/assert.h"
#include "base/clock.h"

extern char **environ;
extern const unsigned char shoal_gym_bridge[]; /* gym_bridge.py, by embed.cmake */
extern const size_t shoal_gym_bridge_length;

static const char PREFIX[] = "gym:";
static const double START_S = 300, STEP_S = 300, END_S = 2; /* longest waits */
static const double LOOK_S = 0.05;                          /* how often it is seen whether to give up */
enum {
  MESSAGE_MAX = 4096,
  NAME_MAX_BYTES = 1024,
  ALIGNMENT = 64,
  OBSERVATION_MAX = 1 << 20,
  CHOICES_MAX = 1024, /* also in gym_bridge.py */
  WIDTH_MAX = 1024,
  COUNT_MAX = 1 << 16,
  BARS_MAX = 96,
  NUMBERED_MAX = 24, /* bars that all have their numbers */
  SPARES_MAX = 64,
  /* The process's own numbers of what it is given, and where ours are out of their way. */
  ITS_SOCKET = 3,
  ITS_MEMORY = 4,
  ITS_TEXT = 5,
  OURS_FROM = 10,
};

typedef struct shoal_bridge shoal_bridge;

typedef struct process {
  pid_t pid; /* 0: none */
  int socket, memory;
  bool busy;                  /* was asked, and has not answered */
  const shoal_bridge *bridge; /* NULL while it is opened for the first time */
} process;
static const process NO_PROCESS = {.socket = -1, .memory = -1};

struct shoal_bridge {
  shoal_env_kind kind;
  char *name;
  uint32_t users;
  process spares[SPARES_MAX]; /* have the environment open, and no vector */
  uint32_t spares_count;
  const shoal_interrupt *interrupt; /* read and written as a whole */
  shoal_bridge *next;
};

/* What is open now. The lock is held while a name is opened: who wants the same one waits for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shoal_bridge *bridges;

static const volatile sig_atomic_t *stop_flag; /* read and written as a whole */

/* What draw is given. */
typedef struct seen {
  const float *floats;
  uint32_t count;
} seen;

struct shoal_bridged {
  const shoal_env_kind *kind;
  uint32_t count;
  process process;
  bool made; /* it has its environments */
  void *memory;
  size_t memory_bytes;
  float *actions, *observations, *lasts, *rewards;
  uint8_t *ends;
  seen *seen;
  shoal_status status; /* of the first failure */
  shoal_error err;
};

/* ---- the process -------------------------------------------------------------------- */

static const char *python(void) {
  const char *named = getenv("SHOAL_PYTHON");
  return named && named[0] ? named : "python3";
}

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* The same at a number that is not one of the process's own. */
static int move_up(int fd) {
  int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, OURS_FROM);
  if (fd >= 0) close(fd);
  return up;
}

/* The Python text as a file that is nowhere. */
static int open_text(void) {
  int fd = move_up(memfd_create("gym_bridge.py", MFD_CLOEXEC));
  if (fd < 0) return -1;
  size_t done = 0;
  while (done < shoal_gym_bridge_length) {
    ssize_t n = write(fd, shoal_gym_bridge + done, shoal_gym_bridge_length - done);
    if (n <= 0) break;
    done += (size_t)n;
  }
  if (done == shoal_gym_bridge_length && lseek(fd, 0, SEEK_SET) == 0) return fd;
  close(fd);
  return -1;
}

/* Its standard output is our standard error: what an environment prints must not get among what we print. It
 * has a process group of its own, so that Ctrl-C is for us alone, who then end it. */
static int spawn(pid_t *pid, int socket, int memory, int text) {
  char boot[80];
  snprintf(boot, sizeof boot, "exec(compile(open(%d).read(), 'gym_bridge.py', 'exec'))", ITS_TEXT);
  char *words[] = {(char *)python(), "-c", boot, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed) return failed;
  failed = posix_spawnattr_init(&attributes);
  if (failed) {
    posix_spawn_file_actions_destroy(&actions);
    return failed;
  }
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, socket, ITS_SOCKET);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, memory, ITS_MEMORY);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, text, ITS_TEXT);
  if (!failed) failed = posix_spawnp(pid, words[0], &actions, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

static shoal_status start(process *p, shoal_error *err) {
  *p = NO_PROCESS;
  int ends[2] = {-1, -1}, text = -1, failed = 0;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) failed = errno;
  p->socket = ends[0];
  int theirs = move_up(ends[1]);
  p->memory = move_up(memfd_create("shoal", MFD_CLOEXEC));
  text = open_text();
  if (!failed && (theirs < 0 || p->memory < 0 || text < 0)) failed = errno;
  if (!failed) failed = spawn(&p->pid, theirs, p->memory, text);
  close_fd(&theirs);
  close_fd(&text);
  if (!failed) return SHOAL_OK;
  close_fd(&p->socket);
  close_fd(&p->memory);
  p->pid = 0;
  return shoal_fail(err, SHOAL_IO,
                    "cannot run '%s': %s; it needs Python 3 with the package gymnasium, and SHOAL_PYTHON may "
                    "name one that has it",
                    python(), strerror(failed));
}

/* And what it has started. */
static void kill_all(const process *p) {
  if (kill(-p->pid, SIGKILL) != 0) kill(p->pid, SIGKILL);
}

/* Waits until it has ended, but not for ever. */
static int await_end(process *p, double seconds) {
  double until = shoal_clock_seconds() + seconds;
  int status = 0;
  while (waitpid(p->pid, &status, WNOHANG) == 0) {
    if (shoal_clock_seconds() > until) {
      kill_all(p);
      waitpid(p->pid, &status, 0);
      break;
    }
    shoal_clock_sleep(0.002);
  }
  p->pid = 0;
  return status;
}

/* The end of its socket tells it to close its environments and to go. */
static void end(process *p) {
  close_fd(&p->socket);
  close_fd(&p->memory);
  if (p->pid != 0 && p->busy) kill_all(p);
  if (p->pid != 0) await_end(p, END_S);
}

static shoal_status died(process *p, shoal_error *err) {
  close_fd(&p->socket);
  int status = await_end(p, END_S);
  if (WIFSIGNALED(status))
    return shoal_fail(err, SHOAL_IO, "its Python process died of signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
  return shoal_fail(err, SHOAL_IO, "its Python process ended with status %d; what it said stands above",
                    WEXITSTATUS(status));
}

/* ---- messages ----------------------------------------------------------------------- */

void shoal_env_stop_by(const volatile sig_atomic_t *stop) {
  __atomic_store_n(&stop_flag, stop, __ATOMIC_RELEASE);
}

void shoal_env_interrupt(const shoal_env_kind *kind, const shoal_interrupt *interrupt) {
  if (kind->bridge) __atomic_store_n(&kind->bridge->interrupt, interrupt, __ATOMIC_RELEASE);
}

static bool is_to_give_up(const process *p) {
  const volatile sig_atomic_t *stop = __atomic_load_n(&stop_flag, __ATOMIC_ACQUIRE);
  if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED)) return true;
  return p->bridge && shoal_interrupted(__atomic_load_n(&p->bridge->interrupt, __ATOMIC_ACQUIRE));
}

static shoal_status await(process *p, double seconds, shoal_error *err) {
  struct pollfd polled = {p->socket, POLLIN, 0};
  double until = shoal_clock_seconds() + seconds;
  for (;;) {
    double left = until - shoal_clock_seconds(), wait = left < LOOK_S ? left : LOOK_S;
    int ready = poll(&polled, 1, wait > 0 ? (int)(1000 * wait) + 1 : 0);
    if (ready > 0) return SHOAL_OK;
    if (ready < 0 && errno != EINTR) return shoal_fail(err, SHOAL_IO, "%s", strerror(errno));
    if (is_to_give_up(p)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    if (left <= 0)
      return shoal_fail(err, SHOAL_IO, "its Python process has said nothing for %.0f seconds", seconds);
  }
}

/* What a refusal says. */
static shoal_status refused(const char *message, size_t length, shoal_error *err) {
  char text[SHOAL_ERROR_TEXT_MAX];
  shoal_text_plain(text, sizeof text, message + 1, length - 1);
  switch (message[0]) {
  case 'n': return shoal_fail(err, SHOAL_NOT_FOUND, "%s", text);
  case 'u': return shoal_fail(err, SHOAL_UNSUPPORTED, "%s", text);
  case 'x': return shoal_fail(err, SHOAL_IO, "%s (its traceback stands above)", text);
  default: return shoal_fail(err, SHOAL_IO, "its Python process answers nonsense");
  }
}

/* Asks, and takes the answer: the letter and `length` bytes, or a refusal. */
static shoal_status ask(process *p, const void *message, size_t message_length, double seconds, char letter,
                        void *out, size_t length, shoal_error *err) {
  if (p->pid == 0) return shoal_fail(err, SHOAL_IO, "its Python process has ended");
  ssize_t n;
  do n = send(p->socket, message, message_length, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n < 0) return died(p, err);
  p->busy = true;
  shoal_status status = await(p, seconds, err);
  if (status != SHOAL_OK) return status;
  char answer[MESSAGE_MAX];
  do n = recv(p->socket, answer, sizeof answer, 0);
  while (n < 0 && errno == EINTR);
  p->busy = false;
  if (n <= 0) return died(p, err);
  if (answer[0] != letter || (size_t)n != 1 + length) return refused(answer, (size_t)n, err);
  if (length > 0) memcpy(out, answer + 1, length);
  return SHOAL_OK;
}

/* ---- kinds -------------------------------------------------------------------------- */

static float squash(float x) { return isfinite(x) ? x / (1 + fabsf(x)) : 0; }

/* The digits, each a line through corners of two squares that stand one on the other: 01 above, 23 in the
 * middle, 45 below. */
static const char *const DIGITS[10] = {"01540",  "15",     "013245", "0132354", "02315",
                                       "102354", "104532", "015",    "0154023", "320154"};

static void draw_digit(shoal_canvas *canvas, char digit, float left, float bottom, float side) {
  const char *way = DIGITS[digit - '0'];
  float points[8][2];
  uint32_t count = (uint32_t)strlen(way);
  for (uint32_t i = 0; i < count; i++) {
    points[i][0] = left + (float)((way[i] - '0') % 2) * side;
    points[i][1] = bottom + (float)(2 - (way[i] - '0') / 2) * side;
  }
  shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.25f * side, (const float(*)[2])points, count);
}

/* Its middle is at x. */
static void draw_number(shoal_canvas *canvas, uint32_t number, float x, float bottom, float side) {
  char digits[12];
  int count = snprintf(digits, sizeof digits, "%u", number);
  float left = x - (1.6f * (float)count - 0.6f) * side / 2;
  for (int i = 0; i < count; i++) draw_digit(canvas, digits[i], left + 1.6f * (float)i * side, bottom, side);
}

/* Bars are counted from 0, as in Gymnasium; where they are many, only some have room for their numbers. */
static void draw_numbers(shoal_canvas *canvas, uint32_t bars, float width) {
  uint32_t every = 1;
  float side = fminf(0.04f, 0.25f * width * (bars > 10 ? 1 : 1.5f));
  if (bars > NUMBERED_MAX) {
    every = bars > 2 * NUMBERED_MAX ? 10 : 5;
    side = 0.03f;
  }
  for (uint32_t i = 0; i < bars; i += every)
    draw_number(canvas, i, ((float)i + 0.5f) * width, -1 - 3.5f * side, side);
}

/* What is seen, as bars around a line: these environments' own pictures stay in Python. A bar of 1 or -1 ends
 * at the faint lines, half the way up and down; none is longer than all of it. */
static void draw(const void *state, shoal_canvas *canvas) {
  const seen *s = state;
  uint32_t bars = s->count < BARS_MAX ? s->count : BARS_MAX;
  float width = 3.0f / (float)bars;
  shoal_canvas_view(canvas, 0, 3, -1.2f, 1);
  for (int i = -1; i <= 1; i += 2)
    shoal_canvas_box(canvas, SHOAL_INK_FAINT, 0, 3, 0.5f * (float)i - 0.005f, 0.5f * (float)i + 0.005f);
  shoal_canvas_box(canvas, SHOAL_INK_LINE, 0, 3, -0.005f, 0.005f);
  draw_numbers(canvas, bars, width);
  for (uint32_t i = 0; i < bars; i++) {
    float value = squash(s->floats[i]), left = ((float)i + 0.15f) * width, right = left + 0.7f * width;
    if (value >= 0)
      shoal_canvas_box(canvas, SHOAL_INK_BODY, left, right, 0, value);
    else
      shoal_canvas_box(canvas, SHOAL_INK_ACCENT, left, right, value, 0);
  }
}

/* vector.h asks the bridge instead. That there is a release says that the bytes are not all there is. */
static void reset_nothing(void *state, shoal_pcg64 *random) { (void)state, (void)random; }
static void step_nothing(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                         float *rewards, bool *ended) {
  (void)states, (void)actions, (void)randoms;
  memset(rewards, 0, count * sizeof *rewards);
  memset(ended, true, count * sizeof *ended);
}
static void observe_nothing(const void *states, uint32_t count, float *out) {
  (void)states, (void)count, (void)out;
}
static void release_nothing(void *state) { (void)state; }

typedef struct __attribute__((packed)) kind_message {
  uint32_t observation, choices, action_width;
  float low, high;
  double solved, pace;
} kind_message;

static shoal_status check_kind(const kind_message *m, shoal_error *err) {
  if (m->observation > OBSERVATION_MAX)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "an observation is %u numbers, and %d are the most",
                      m->observation, OBSERVATION_MAX);
  if (m->action_width > WIDTH_MAX)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "an action is %u numbers, and %d are the most", m->action_width,
                      WIDTH_MAX);
  bool bounded = m->choices > 0 || (isfinite(m->low) && isfinite(m->high) && m->low < m->high);
  if (m->observation == 0 || m->action_width == 0 || m->choices > CHOICES_MAX || !bounded ||
      (m->choices > 0 && m->action_width != 1))
    return shoal_fail(err, SHOAL_UNSUPPORTED, "there is nothing to see or to do in it");
  return SHOAL_OK;
}

/* Starts a process and has it open the environment; bridge: NULL the first time. */
static shoal_status open_process(const char *name, const shoal_bridge *bridge, process *p, kind_message *out,
                                 shoal_error *err) {
  char message[1 + NAME_MAX_BYTES];
  size_t length = strlen(name) - (sizeof PREFIX - 1);
  message[0] = bridge ? 'q' : 'o';
  memcpy(message + 1, name + sizeof PREFIX - 1, length);
  shoal_status status = start(p, err);
  p->bridge = bridge;
  if (status == SHOAL_OK) status = ask(p, message, 1 + length, START_S, 'k', out, sizeof *out, err);
  if (status == SHOAL_OK) status = check_kind(out, err);
  if (status != SHOAL_OK) end(p);
  return status;
}

/* All are told before one is waited for. */
static void destroy(shoal_bridge *bridge) {
  for (uint32_t i = 0; i < bridge->spares_count; i++) close_fd(&bridge->spares[i].socket);
  for (uint32_t i = 0; i < bridge->spares_count; i++) end(&bridge->spares[i]);
  free(bridge->name);
  free(bridge);
}

static shoal_status create(shoal_bridge **out, const char *name, shoal_error *err) {
  kind_message m;
  process p;
  shoal_status status = open_process(name, NULL, &p, &m, err);
  if (status != SHOAL_OK) return status;
  shoal_bridge *bridge = calloc(1, sizeof *bridge);
  char *own = strdup(name);
  if (!bridge || !own) {
    free(bridge);
    free(own);
    end(&p);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  }
  bridge->name = own;
  p.bridge = bridge;
  bridge->spares[bridge->spares_count++] = p;
  bridge->kind = (shoal_env_kind){
      .name = bridge->name,
      .says = "an environment of Gymnasium's, in Python",
      .observation = m.observation,
      .choices = m.choices,
      .action_width = m.action_width,
      .action_low = m.low,
      .action_high = m.high,
      .solved = m.solved,
      .pace = isfinite(m.pace) && m.pace >= 1 && m.pace <= 1000 ? m.pace : 30,
      .bytes = sizeof(seen),
      .reset = reset_nothing,
      .step = step_nothing,
      .observe = observe_nothing,
      .draw = draw,
      .release = release_nothing,
      .bridge = bridge,
  };
  *out = bridge;
  return SHOAL_OK;
}

bool shoal_env_is_bridged(const char *name) { return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0; }

bool shoal_env_imports(const char *name) {
  if (!shoal_env_is_bridged(name)) return false;
  const char *id = name + sizeof PREFIX - 1;
  return memchr(id, ':', strcspn(id, "?")) != NULL;
}

static shoal_bridge *find(const char *name) {
  shoal_bridge *bridge = bridges;
  while (bridge && strcmp(bridge->name, name) != 0) bridge = bridge->next;
  return bridge;
}

shoal_status shoal_env_open(const char *name, const shoal_env_kind **out, shoal_error *err) {
  *out = NULL;
  if (!shoal_env_is_bridged(name)) return shoal_env_need(out, name, err);
  if (strlen(name) >= NAME_MAX_BYTES || !shoal_utf8_valid(name, strlen(name)))
    return shoal_fail(err, SHOAL_INVALID, "the name of an environment is too long, or no UTF-8");
  if (strcspn(name + sizeof PREFIX - 1, "?") == 0)
    return shoal_fail(
        err, SHOAL_INVALID,
        "'%s' has no name behind '%s': write it as Gymnasium has it, such as gym:LunarLander-v3", name,
        PREFIX);
  shoal_status status = SHOAL_OK;
  pthread_mutex_lock(&lock);
  shoal_bridge *bridge = find(name);
  if (!bridge) {
    status = create(&bridge, name, err);
    if (status == SHOAL_OK) {
      bridge->next = bridges;
      bridges = bridge;
    }
  }
  if (status == SHOAL_OK) {
    bridge->users++;
    *out = &bridge->kind;
  }
  pthread_mutex_unlock(&lock);
  if (status != SHOAL_OK) shoal_error_prefix(err, "%s: ", name);
  return status;
}

const shoal_env_kind *shoal_env_opened(const char *name) {
  if (!shoal_env_is_bridged(name)) return shoal_env_find(name);
  pthread_mutex_lock(&lock);
  const shoal_bridge *bridge = find(name);
  pthread_mutex_unlock(&lock);
  return bridge ? &bridge->kind : NULL;
}

void shoal_env_close(const shoal_env_kind *kind) {
  if (!kind || !kind->bridge) return;
  shoal_bridge *bridge = kind->bridge;
  pthread_mutex_lock(&lock);
  SHOAL_ASSERT(bridge->users > 0);
  bool last = --bridge->users == 0;
  for (shoal_bridge **at = &bridges; last; at = &(*at)->next) {
    if (*at != bridge) continue;
    *at = bridge->next;
    break;
  }
  pthread_mutex_unlock(&lock);
  if (last) destroy(bridge);
}

/* ---- environments ------------------------------------------------------------------- */

/* Takes `bytes` of the memory that is counted in *place; NULL base: only counts. */
static void *take_part(void *base, size_t *place, size_t bytes) {
  void *part = base ? (char *)base + *place : NULL;
  *place += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return part;
}

static size_t lay_out(shoal_bridged *b, void *base) {
  size_t place = 0, rows = b->count;
  b->actions = take_part(base, &place, rows * b->kind->action_width * sizeof(float));
  b->observations = take_part(base, &place, rows * b->kind->observation * sizeof(float));
  b->lasts = take_part(base, &place, rows * b->kind->observation * sizeof(float));
  b->rewards = take_part(base, &place, rows * sizeof(float));
  b->ends = take_part(base, &place, rows);
  return place;
}

static shoal_status map_memory(shoal_bridged *b, shoal_error *err) {
  b->memory_bytes = lay_out(b, NULL);
  if (ftruncate(b->process.memory, (off_t)b->memory_bytes) != 0)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u environments", b->count);
  void *memory = mmap(NULL, b->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->process.memory, 0);
  if (memory == MAP_FAILED)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u environments", b->count);
  b->memory = memory;
  lay_out(b, memory);
  b->seen = calloc(b->count, sizeof *b->seen);
  if (!b->seen) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  for (uint32_t i = 0; i < b->count; i++)
    b->seen[i] = (seen){b->observations + (size_t)i * b->kind->observation, b->kind->observation};
  return SHOAL_OK;
}

static bool is_alive(process *p) {
  if (waitpid(p->pid, NULL, WNOHANG) == 0) return true;
  p->pid = 0;
  end(p);
  return false;
}

static bool take_spare(shoal_bridge *bridge, process *out) {
  for (;;) {
    pthread_mutex_lock(&lock);
    bool any = bridge->spares_count > 0;
    if (any) *out = bridge->spares[--bridge->spares_count];
    pthread_mutex_unlock(&lock);
    if (!any || is_alive(out)) return any;
  }
}

/* A process that is of no use any more here, but may be to the next vector. */
static void give_spare(shoal_bridge *bridge, process *p) {
  pthread_mutex_lock(&lock);
  if (bridge->spares_count < SPARES_MAX) {
    bridge->spares[bridge->spares_count++] = *p;
    *p = NO_PROCESS;
  }
  pthread_mutex_unlock(&lock);
}

/* One that waits for a vector, or a new one. */
static shoal_status take_process(shoal_bridge *bridge, process *out, shoal_error *err) {
  if (take_spare(bridge, out)) return SHOAL_OK;
  kind_message m;
  shoal_status status = open_process(bridge->name, bridge, out, &m, err);
  if (status != SHOAL_OK) return status;
  const shoal_env_kind *kind = &bridge->kind;
  if (m.observation == kind->observation && m.choices == kind->choices &&
      m.action_width == kind->action_width)
    return SHOAL_OK;
  end(out);
  return shoal_fail(err, SHOAL_CONFLICT, "what is seen or done in it is not the same each time");
}

static shoal_status make(shoal_bridged *b, shoal_error *err) {
  shoal_status status = take_process(b->kind->bridge, &b->process, err);
  if (status == SHOAL_OK) status = map_memory(b, err);
  if (status != SHOAL_OK) return status;
  uint32_t numbers[3] = {b->count, b->kind->observation, b->kind->action_width};
  char message[1 + sizeof numbers] = {'m'};
  memcpy(message + 1, numbers, sizeof numbers);
  return ask(&b->process, message, sizeof message, START_S, 'd', NULL, 0, err);
}

shoal_status shoal_bridged_create(shoal_bridged **out, const shoal_env_kind *kind, uint32_t count,
                                  shoal_error *err) {
  SHOAL_ASSERT(kind->bridge != NULL);
  *out = NULL;
  if (count == 0 || count > COUNT_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%s: %u environments; there may be 1 to %d", kind->name, count,
                      COUNT_MAX);
  shoal_bridged *b = calloc(1, sizeof *b);
  if (!b) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  b->kind = kind;
  b->count = count;
  b->process = NO_PROCESS;
  shoal_status status = make(b, err);
  if (status != SHOAL_OK) {
    shoal_error_prefix(err, "%s: ", kind->name);
    shoal_bridged_destroy(b);
    return status;
  }
  b->made = true;
  *out = b;
  return SHOAL_OK;
}

void shoal_bridged_destroy(shoal_bridged *b) {
  if (!b) return;
  if (b->made && b->status == SHOAL_OK) give_spare(b->kind->bridge, &b->process);
  end(&b->process);
  if (b->memory) munmap(b->memory, b->memory_bytes);
  free(b->seen);
  free(b);
}

/* ---- playing ------------------------------------------------------------------------ */

static shoal_status check_finite(const shoal_bridged *b, shoal_error *err) {
  size_t floats = (size_t)b->count * b->kind->observation;
  bool finite = true;
  for (size_t i = 0; i < floats; i++)
    finite &= isfinite(b->observations[i]) != 0 && isfinite(b->lasts[i]) != 0;
  for (uint32_t i = 0; i < b->count; i++) finite &= isfinite(b->rewards[i]) != 0;
  return finite ? SHOAL_OK
                : shoal_fail(err, SHOAL_INVALID,
                             "it gave an observation or a reward that is not a finite number");
}

/* From here on nothing is asked any more. */
static void fail_with(shoal_bridged *b, shoal_status status) {
  b->status = status;
  shoal_error_prefix(&b->err, "%s: ", b->kind->name);
  memset(b->memory, 0, b->memory_bytes);
}

static void play(shoal_bridged *b, const void *message, size_t length) {
  if (b->status != SHOAL_OK) return;
  shoal_status status = ask(&b->process, message, length, STEP_S, 'd', NULL, 0, &b->err);
  if (status == SHOAL_OK) status = check_finite(b, &b->err);
  if (status != SHOAL_OK) fail_with(b, status);
}

void shoal_bridged_reset(shoal_bridged *b, uint64_t seed) {
  char message[1 + sizeof seed] = {'r'};
  memcpy(message + 1, &seed, sizeof seed);
  if (b->status == SHOAL_OK) memset(b->rewards, 0, b->count * sizeof *b->rewards);
  play(b, message, sizeof message);
}

void shoal_bridged_step(shoal_bridged *b, const float *actions, float *rewards, uint8_t *ends) {
  memcpy(b->actions, actions, (size_t)b->count * b->kind->action_width * sizeof *actions);
  play(b, "s", 1);
  for (uint32_t i = 0; i < b->count; i++) {
    rewards[i] = b->rewards[i];
    ends[i] = b->status != SHOAL_OK || b->ends[i] > SHOAL_TRUNCATED ? SHOAL_TRUNCATED : b->ends[i];
  }
}

const float *shoal_bridged_observations(const shoal_bridged *b) { return b->observations; }

const float *shoal_bridged_lasts(const shoal_bridged *b) { return b->lasts; }

const void *shoal_bridged_state(const shoal_bridged *b, uint32_t index) { return &b->seen[index]; }

void shoal_bridged_draw_last(const shoal_bridged *b, uint32_t index, shoal_canvas *canvas) {
  uint32_t width = b->kind->observation;
  const seen last = {.floats = b->lasts + (size_t)index * width, .count = width};
  draw(&last, canvas);
}

shoal_status shoal_bridged_check(const shoal_bridged *b, shoal_error *err) {
  if (b->status != SHOAL_OK && err) *err = b->err;
  return b->status;
}
