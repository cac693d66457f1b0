/* launch.c: shoal launch: starts the processes of a training on other machines, over ssh.
 *
 * A file names the processes, one a line. Each is `shoal train` in a role of its own; the words for
 * shoal train on this command line go to all of them, and what a role does not need it ignores. They
 * hold on to this process by their standard input (lifeline.h): it carries Ctrl-C to the chief, and
 * when it ends, so do they, however this process or the connection came to its end. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/spawn.h"
#include "cli/stop.h"
#include "cli/train.h"

enum {
  PROCESSES_MAX = 2048,
  WORDS_MAX = 32, /* of a line, its role and address included */
  ROLE_WORDS_MAX = 16,
  SSH_WORDS_MAX = SHOAL_SPAWN_ARGUMENTS_MAX - 4,
  FILE_BYTES_MAX = 1 << 20,
  SSH_FAILED = 255,
  TRIES = 60, /* some five minutes: a machine that starts anew is back by then */
  TRIES_MAX = 1000000,
};
static const double LOOK_S = 0.05;

typedef enum role { CHIEF, PS, WORKER, ROLES } role;
static const char *const role_names[ROLES] = {"chief", "ps", "worker"};

/* A line of the file. */
typedef struct process {
  role role;
  uint32_t index, line;
  uint32_t words_count;
  char *words[WORDS_MAX]; /* the role, the address, then options; they point into the file's text */
} process;

typedef struct launch {
  const char *hosts, *program, *ssh, *dir;
  uint64_t tries;
  char **words; /* those of the command line that are for shoal train; they point into argv */
  int words_count;
  char *text; /* the file, cut into words */
  process *processes;
  uint32_t count, counts[ROLES];
  const char *chief_host; /* or NULL: worker 0 */
  shoal_text ps_hosts, worker_hosts;
  char *ssh_text; /* --ssh, cut into words */
  char *ssh_words[SSH_WORDS_MAX];
  uint32_t ssh_words_count;
  shoal_spawn *spawn;
  shoal_error failure; /* why the work cannot go on; written before has_failed */
  atomic_bool has_failed;
} launch;

/* ---- the command line --------------------------------------------------------------- */

/* Takes the words that are not ours out of argv, which keeps the others; returns how many those are. */
static int take_train_words(launch *l, int argc, char **argv) {
  static const char *const own[] = {"--hosts", "--dir", "--program", "--ssh", "--tries"};
  int kept = 0;
  bool for_us = true;
  for (int i = 0; i < argc; i++) {
    bool ours = false, has_value = false;
    if (strcmp(argv[i], "--") == 0) for_us = false;
    for (size_t k = 0; for_us && k < sizeof own / sizeof own[0]; k++) {
      size_t length = strlen(own[k]);
      if (strncmp(argv[i], own[k], length) != 0 || (argv[i][length] != 0 && argv[i][length] != '=')) continue;
      ours = true;
      has_value = argv[i][length] == '=';
    }
    bool help = for_us && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0);
    if (!ours && !help) {
      l->words[l->words_count++] = argv[i];
      continue;
    }
    argv[kept++] = argv[i];
    if (ours && !has_value && i + 1 < argc) argv[kept++] = argv[++i];
  }
  return kept;
}

static bool parse(launch *l, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "hosts",
       .value = "FILE",
       .text = &l->hosts,
       .help =
           "the processes, one a line: ROLE HOST:PORT [OPTION...], the role being chief, ps or worker; '#' "
           "begins a comment; the options are for that process alone, such as --threads 4; without a "
           "chief the first worker is the chief too"},
      {.name = "dir",
       .value = "FOLDER",
       .text = &l->dir,
       .help = "where they run, on every machine; by default where a login leads"},
      {.name = "program", .value = "PATH", .text = &l->program, .help = "of Shoal on the other machines"},
      {.name = "ssh",
       .value = "COMMAND",
       .text = &l->ssh,
       .help =
           "what runs a command elsewhere, given a host and the command as two more words; by default ssh "
           "-o BatchMode=yes -o ServerAliveInterval=10"},
      {.name = "tries",
       .value = "N",
       .whole = &l->tries,
       .whole_min = 1,
       .whole_max = TRIES_MAX,
       .help = "how often a machine that ssh does not reach is tried in a row, every 5 seconds, before it "
               "is given up; 60 by default"},
  };
  const shoal_usage usage = {
      .command = "launch",
      .synopses = (const char *[]){"--hosts FILE MODEL.net --data SET [OPTION...]", NULL},
      .about =
          "Trains on many machines: starts a chief, parameter servers and workers over ssh. What is not "
          "listed here is passed on to 'shoal train' on every machine. Files are those of the machine "
          "that reads them: the model's text and --out are the chief's. The chief's output and exit "
          "status are passed through; lines of the others begin with their name. A process that dies is "
          "started "
          "again; when a machine that is needed cannot be reached, all ends with status 1. Ctrl-C ends all "
          "in order, with the model saved.",
      .operand = "MODEL.net",
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples =
          "  shoal launch --hosts hosts.txt lenet5.net --data fashion-mnist\n"
          "  shoal launch --hosts hosts.txt --dir net --ssh 'ssh -p 2222' lenet5.net --data mnist --json\n",
  };
  shoal_operands operands;
  argc = take_train_words(l, argc, argv);
  return shoal_cli_parse(&usage, argc, argv, &operands, status);
}

/* What the file says must not be said again. */
static shoal_status check_words(const launch *l, shoal_error *err) {
  static const char *const taken[] = {"--job-name",   "--task-index", "--ps-hosts", "--worker-hosts",
                                      "--chief-host", "--workers",    "--ps",       "--lifeline"};
  if (l->hosts == NULL)
    return shoal_fail(err, SHOAL_INVALID, "--hosts is missing: a file with a line for every process");
  for (int i = 0; i < l->words_count; i++) {
    size_t length = strcspn(l->words[i], "=");
    for (size_t k = 0; k < sizeof taken / sizeof taken[0]; k++)
      if (strlen(taken[k]) == length && strncmp(l->words[i], taken[k], length) == 0)
        return shoal_fail(err, SHOAL_INVALID, "%s: the file of --hosts says who does what; leave it out",
                          taken[k]);
  }
  return SHOAL_OK;
}

/* Cuts a text into words at spaces and tabs; returns how many there are, `max` of them written. */
static uint32_t cut_words(char *text, char **words, uint32_t max) {
  uint32_t count = 0;
  for (;;) {
    text += strspn(text, " \t\r");
    if (*text == 0) return count;
    if (count < max) words[count] = text;
    count++;
    text += strcspn(text, " \t\r");
    if (*text != 0) *text++ = 0;
  }
}

static shoal_status cut_ssh(launch *l, shoal_error *err) {
  l->ssh_text = strdup(l->ssh);
  if (l->ssh_text == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  l->ssh_words_count = cut_words(l->ssh_text, l->ssh_words, SSH_WORDS_MAX);
  if (l->ssh_words_count == 0 || l->ssh_words_count > SSH_WORDS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "--ssh: a command of 1 to %d words", SSH_WORDS_MAX);
  return SHOAL_OK;
}

/* ---- the file ----------------------------------------------------------------------- */

static shoal_status read_role(const char *word, role *out, shoal_error *err) {
  for (uint32_t i = 0; i < ROLES; i++)
    if (strcmp(word, role_names[i]) == 0) {
      *out = (role)i;
      return SHOAL_OK;
    }
  const char *near = shoal_nearest(word, strlen(word), role_names, ROLES);
  if (near != NULL)
    return shoal_fail(err, SHOAL_INVALID, "unknown role '%s'; did you mean '%s'?", word, near);
  return shoal_fail(err, SHOAL_INVALID,
                    "unknown role '%s'; a line is ROLE HOST:PORT, the role being chief, ps or worker, as in "
                    "`worker node1:7001`",
                    word);
}

static shoal_status check_address(const launch *l, const process *p, shoal_error *err) {
  if (p->words_count < 2) return shoal_fail(err, SHOAL_INVALID, "%s: HOST:PORT is missing", p->words[0]);
  const char *address = p->words[1];
  if (shoal_cluster_check_address(address, strlen(address), err) != SHOAL_OK) return SHOAL_INVALID;
  if (strchr(address, ',') != NULL || address[0] == '-')
    return shoal_fail(err, SHOAL_INVALID, "'%s' is not HOST:PORT", address);
  for (uint32_t i = 0; i < l->count; i++)
    if (strcmp(l->processes[i].words[1], address) == 0)
      return shoal_fail(err, SHOAL_INVALID, "%s is taken by line %u", address, l->processes[i].line);
  return SHOAL_OK;
}

static shoal_status read_line(launch *l, char *line, uint32_t number, shoal_error *err) {
  line[strcspn(line, "#")] = 0;
  process p = {.line = number};
  p.words_count = cut_words(line, p.words, WORDS_MAX);
  if (p.words_count == 0) return SHOAL_OK;
  if (p.words_count > WORDS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "more than %d words in a line", WORDS_MAX);
  if (l->count == PROCESSES_MAX) return shoal_fail(err, SHOAL_LIMIT, "more than %d processes", PROCESSES_MAX);
  shoal_status status = read_role(p.words[0], &p.role, err);
  if (status == SHOAL_OK) status = check_address(l, &p, err);
  if (status != SHOAL_OK) return status;
  p.index = l->counts[p.role]++;
  if (p.role == CHIEF && p.index > 0) return shoal_fail(err, SHOAL_INVALID, "a second chief");
  if (p.role == CHIEF) l->chief_host = p.words[1];
  shoal_text *list = p.role == PS ? &l->ps_hosts : &l->worker_hosts;
  if (p.role != CHIEF) shoal_text_addf(list, p.index == 0 ? "%s" : ",%s", p.words[1]);
  l->processes[l->count++] = p;
  return SHOAL_OK;
}

static shoal_status read_hosts(launch *l, shoal_error *err) {
  uint8_t *bytes;
  size_t length;
  shoal_status status = shoal_file_read(l->hosts, FILE_BYTES_MAX, false, &bytes, &length, err);
  if (status != SHOAL_OK) return status;
  l->text = (char *)bytes;
  l->processes = calloc(PROCESSES_MAX, sizeof *l->processes);
  if (l->processes == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  if (memchr(bytes, 0, length) != NULL)
    return shoal_fail(err, SHOAL_INVALID, "%s is not a text file", l->hosts);
  uint32_t number = 1;
  for (char *line = l->text; line != NULL && status == SHOAL_OK; number++) {
    char *end = strchr(line, '\n');
    if (end != NULL) *end = 0;
    status = read_line(l, line, number, err);
    if (status != SHOAL_OK) shoal_error_prefix(err, "%s:%u: ", l->hosts, number);
    line = end != NULL ? end + 1 : NULL;
  }
  if (status != SHOAL_OK) return status;
  for (uint32_t i = PS; i < ROLES; i++)
    if (l->counts[i] == 0)
      return shoal_fail(err, SHOAL_INVALID, "%s: there is no line '%s HOST:PORT', and one at least is needed",
                        l->hosts, role_names[i]);
  if (l->ps_hosts.failed || l->worker_hosts.failed)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  return SHOAL_OK;
}

/* ---- what they run ------------------------------------------------------------------ */

static bool leads(const launch *l, const process *p) {
  return p->role == CHIEF || (l->chief_host == NULL && p->role == WORKER && p->index == 0);
}

/* The words after "train" for a process: its role, those for all, its own. Returns how many; `number` is
 * room for its index. */
static int words_for(const launch *l, const process *p, bool own, char number[16], char **words) {
  int count = 0;
  snprintf(number, 16, "%u", p->index);
  const char *role_words[ROLE_WORDS_MAX] = {"--lifeline",
                                            "--job-name",
                                            role_names[p->role],
                                            "--task-index",
                                            number,
                                            "--ps-hosts",
                                            l->ps_hosts.bytes,
                                            "--worker-hosts",
                                            l->worker_hosts.bytes,
                                            l->chief_host != NULL ? "--chief-host" : NULL,
                                            l->chief_host};
  for (; role_words[count] != NULL; count++) words[count] = (char *)(uintptr_t)role_words[count];
  for (int i = 0; i < l->words_count; i++) words[count++] = l->words[i];
  for (uint32_t i = 2; own && i < p->words_count; i++) words[count++] = p->words[i];
  return count;
}

/* What shoal train would say to its words; *in_file: the file's own words are at fault. */
static shoal_status check_process(const launch *l, const process *p, char **words, bool *in_file,
                                  shoal_error *err) {
  char number[16];
  shoal_status status = shoal_train_check(words_for(l, p, true, number, words), words, err);
  if (status == SHOAL_OK) return SHOAL_OK;
  *in_file = shoal_train_check(words_for(l, p, false, number, words), words, NULL) == SHOAL_OK;
  if (*in_file) shoal_error_prefix(err, "%s:%u: ", l->hosts, p->line);
  return status;
}

/* A command for the shell of the other machine. A shell stays there and says by its status which signal has ended
 * the process (128 + N): ssh itself would say no more than of a connection that was lost. */
static void write_command(const launch *l, const process *p, char **words, shoal_text *out) {
  char number[16];
  int count = words_for(l, p, true, number, words);
  shoal_text script = {0};
  if (l->dir != NULL) {
    shoal_text_addf(&script, "cd ");
    shoal_human_quote(&script, l->dir);
    shoal_text_addf(&script, " && ");
  }
  shoal_human_quote(&script, l->program);
  shoal_text_addf(&script, " train");
  for (int i = 0; i < count; i++) {
    shoal_text_addf(&script, " ");
    shoal_human_quote(&script, words[i]);
  }
  shoal_text_addf(&script, "; exit $?");
  shoal_text_addf(out, "exec sh -c ");
  shoal_human_quote(out, script.failed ? "" : script.bytes);
  out->failed |= script.failed;
  shoal_text_release(&script);
}

/* "node1" of "node1:7000", "::1" of "[::1]:7000". */
static void write_host(const char *address, shoal_text *out) {
  size_t length = (size_t)(strrchr(address, ':') - address);
  bool brackets = length > 2 && address[0] == '[' && address[length - 1] == ']';
  shoal_text_add(out, address + brackets, length - 2 * brackets);
}

static shoal_status add_process(launch *l, const process *p, char **words, shoal_error *err) {
  shoal_text command = {0}, host = {0};
  write_command(l, p, words, &command);
  write_host(p->words[1], &host);
  shoal_status status = SHOAL_OK;
  if (command.failed || host.failed) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  } else {
    const char *ssh[SHOAL_SPAWN_ARGUMENTS_MAX] = {0};
    for (uint32_t i = 1; i < l->ssh_words_count; i++) ssh[i - 1] = l->ssh_words[i];
    ssh[l->ssh_words_count - 1] = host.bytes;
    ssh[l->ssh_words_count] = command.bytes;
    char name[32];
    snprintf(name, sizeof name, "%s %u", role_names[p->role], p->index);
    shoal_spawn_add(l->spawn,
                    &(shoal_spawn_process){.name = name,
                                           .program = l->ssh_words[0],
                                           .words = ssh,
                                           .output = leads(l, p) ? SHOAL_OUTPUT_ALL : SHOAL_OUTPUT_NAMED,
                                           .lifeline = true,
                                           .leads = leads(l, p),
                                           .vital = p->role == PS,
                                           .works = p->role == WORKER,
                                           .lost = SSH_FAILED,
                                           .lost_tries = (uint32_t)l->tries});
  }
  shoal_text_release(&command);
  shoal_text_release(&host);
  return status;
}

static void note(void *self, const char *text) {
  (void)self;
  shoal_cli_warn("launch", "%s", text);
}

static void work_failed(void *self, const shoal_error *err) {
  launch *l = self;
  l->failure = *err;
  atomic_store(&l->has_failed, true);
}

/* All are looked at before the first is started. */
static shoal_status start(launch *l, bool *misused, shoal_error *err) {
  char **words = calloc((size_t)l->words_count + ROLE_WORDS_MAX + WORDS_MAX, sizeof *words);
  shoal_status status = words != NULL ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  for (uint32_t i = 0; i < l->count && status == SHOAL_OK; i++) {
    bool in_file = true;
    status = check_process(l, &l->processes[i], words, &in_file, err);
    *misused = !in_file;
  }
  const shoal_spawn_calls calls = {.notes = {.note = note}, .self = l, .failed = work_failed};
  if (status == SHOAL_OK) status = shoal_spawn_create(&l->spawn, l->count, &calls, err);
  for (uint32_t i = 0; i < l->count && status == SHOAL_OK; i++)
    status = add_process(l, &l->processes[i], words, err);
  free(words);
  return status == SHOAL_OK ? shoal_spawn_start(l->spawn, err) : status;
}

/* ---- the run ------------------------------------------------------------------------ */

/* Has the chief end the training when a signal asks for it or the work has failed; once. */
static bool end_training(launch *l) {
  int number = shoal_stop_signal();
  bool failed = atomic_load(&l->has_failed);
  if (number == 0 && !failed) return false;
  shoal_spawn_tell_leader(l->spawn, number == SIGINT ? "SIGINT" : "SIGTERM");
  if (failed)
    shoal_cli_failed("launch", &l->failure);
  else
    shoal_cli_warn("launch",
                   "the chief saves the model and ends the others; a second signal ends all at once");
  return true;
}

static const char *chief_address(const launch *l) {
  for (uint32_t i = 0; i < l->count; i++)
    if (leads(l, &l->processes[i])) return l->processes[i].words[1];
  return "";
}

static int wait_for_chief(launch *l) {
  int status;
  bool told = false;
  while (!shoal_spawn_leader_ended(l->spawn, &status)) {
    if (!told) told = end_training(l);
    shoal_clock_sleep(LOOK_S);
  }
  /* Told to end before it was ready to save, it dies of that. */
  bool was_ended = told && atomic_load(&l->has_failed) && (status == 128 + SIGTERM || status == SSH_FAILED);
  if (status > 128 && status < SSH_FAILED && !told)
    shoal_cli_warn(
        "launch",
        "the chief was ended by signal %d on its machine, %s; what was trained by then is kept, and the "
        "same command continues it",
        status - 128, chief_address(l));
  if (status == SSH_FAILED && !was_ended)
    shoal_cli_warn(
        "launch",
        "the chief's machine, %s, could not be reached, or was lost; look whether ssh gets there; what was "
        "trained there by then, if anything, is kept, and the same command continues it",
        chief_address(l));
  return was_ended ? SHOAL_EXIT_FAILED : status;
}

static void release(launch *l) {
  shoal_spawn_end(l->spawn);
  shoal_text_release(&l->ps_hosts);
  shoal_text_release(&l->worker_hosts);
  free(l->processes);
  free(l->text);
  free(l->ssh_text);
  free(l->words);
}

static int run(int argc, char **argv) {
  launch l = {.program = "shoal",
              .ssh = "ssh -o BatchMode=yes -o ServerAliveInterval=10",
              .tries = TRIES,
              .words = calloc((size_t)argc + 1, sizeof(char *))};
  shoal_error err;
  int status;
  if (l.words == NULL) {
    shoal_fail(&err, SHOAL_NO_MEMORY, "not enough memory");
    return shoal_cli_failed("launch", &err);
  }
  if (!parse(&l, argc, argv, &status)) {
    release(&l);
    return status;
  }
  bool misused = true;
  shoal_status started = check_words(&l, &err);
  if (started == SHOAL_OK) started = cut_ssh(&l, &err);
  if (started == SHOAL_OK) {
    misused = false;
    started = read_hosts(&l, &err);
  }
  shoal_stop_catch();
  if (started == SHOAL_OK) started = start(&l, &misused, &err);
  if (started == SHOAL_OK)
    status = wait_for_chief(&l);
  else
    status = misused ? shoal_cli_misused("launch", &err) : shoal_cli_failed("launch", &err);
  release(&l);
  return status;
}

const shoal_command shoal_command_launch = {"launch", "train on many machines, over ssh", run};
