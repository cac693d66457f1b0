/* links.c: see links.h.
 *
 * All is done by ip and tc, which read their commands from a file descriptor (-batch). Names have this process's number in them (shoal-PID, the bridge,
 * and shoal-PID-MACHINE), so that two runs at a time do not meet, and what a run left that was killed can be
 * told from what is in use. */
#include "cli/links.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

enum { MACHINES_A_NET = 250 };
static const double BURST_S = 0.002;          /* what a bucket holds, as time at its rate */
static const double BURST_BYTES_MIN = 131072; /* more than the largest packet that a link is handed */
static const double QUEUE_MS = 100;

struct shoal_links {
  uint32_t machines;
  int number;    /* in names */
  uint32_t net;  /* 10.NET.x.y */
  uint32_t made; /* namespaces, so far */
  bool bridge;
  long neighbours; /* the kernel's limit as it was; 0: not changed */
};

static void add_name(shoal_text *out, const shoal_links *l, uint32_t machine) {
  shoal_text_addf(out, "shoal-%d-%u", l->number, machine);
}

shoal_links_text shoal_links_here(const shoal_links *l) {
  shoal_links_text out;
  snprintf(out.text, sizeof out.text, "10.%u.0.1", l->net);
  return out;
}

shoal_links_text shoal_links_address(const shoal_links *l, uint32_t machine) {
  shoal_links_text out;
  snprintf(out.text, sizeof out.text, "10.%u.%u.%u", l->net, 1 + machine / MACHINES_A_NET,
           1 + machine % MACHINES_A_NET);
  return out;
}

shoal_links_text shoal_links_network(const shoal_links *l, uint32_t machine) {
  shoal_links_text out;
  snprintf(out.text, sizeof out.text, "/run/netns/shoal-%d-%u", l->number, machine);
  return out;
}

/* ---- running ip and tc ---- */

/* In the child: the commands are its standard input, what it says its standard error. */
static void become(char *const *words, int input, int output) {
  dup2(input, 0);
  dup2(output, 2);
  int nothing = open("/dev/null", O_WRONLY);
  if (nothing >= 0) dup2(nothing, 1);
  execvp(words[0], words);
  _exit(127);
}

/* An unnamed file with the text in it, to be read from its beginning. */
static int file_with(const shoal_text *text) {
  FILE *file = tmpfile();
  if (file == NULL) return -1;
  int fd = dup(fileno(file));
  fclose(file);
  if (fd < 0) return -1;
  bool whole = text == NULL || write(fd, text->bytes, text->length) == (ssize_t)text->length;
  if (whole && lseek(fd, 0, SEEK_SET) == 0) return fd;
  close(fd);
  return -1;
}

static shoal_status run(char *const *words, const shoal_text *input, shoal_error *err) {
  int in = file_with(input), out = file_with(NULL), status = -1;
  pid_t pid = in >= 0 && out >= 0 ? fork() : -1;
  if (pid == 0) become(words, in, out);
  if (pid > 0)
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  char said[200] = "";
  ssize_t length = out >= 0 ? pread(out, said, sizeof said - 1, 0) : 0;
  said[length > 0 ? length : 0] = '\0';
  said[strcspn(said, "\n")] = '\0';
  if (in >= 0) close(in);
  if (out >= 0) close(out);
  if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return SHOAL_OK;
  if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return shoal_fail(err, SHOAL_NOT_FOUND, "links of a given rate need the program %s (Debian: iproute2)",
                      words[0]);
  return shoal_fail(err, SHOAL_IO, "cannot make links of a given rate: %s: %s", words[0],
                    said[0] != '\0' ? said : strerror(errno));
}

/* Takes the text. */
static shoal_status run_batch(char *program, const char *network, shoal_text *commands, shoal_error *err) {
  char *words[8] = {program};
  uint32_t count = 1;
  if (network != NULL) {
    words[count++] = "-n";
    words[count++] = (char *)(uintptr_t)network;
  }
  words[count++] = "-batch";
  words[count] = "-";
  shoal_status status =
      commands->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : run(words, commands, err);
  shoal_text_release(commands);
  return status;
}

/* ---- what others left ---- */

/* Whether this is a name of ours and its process is gone, or it is an earlier one's with our number. */
static bool is_left_over(const char *name) {
  int pid, length = 0;
  if (sscanf(name, "shoal-%d%n", &pid, &length) != 1 || pid <= 0) return false;
  if (name[length] != '\0' && name[length] != '-') return false;
  return pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH);
}

/* A command for everything left over that a folder lists. */
static void add_removals(shoal_text *out, const char *folder, const char *command) {
  DIR *names = opendir(folder);
  if (names == NULL) return;
  for (const struct dirent *entry; (entry = readdir(names)) != NULL;)
    if (is_left_over(entry->d_name)) shoal_text_addf(out, "%s %s\n", command, entry->d_name);
  closedir(names);
}

/* A run that was killed leaves its machines and its switch behind. Another may be doing the same just now,
 * so what fails is passed over. */
static void remove_left_overs(void) {
  shoal_text commands;
  shoal_text_init(&commands);
  add_removals(&commands, "/run/netns", "netns del");
  add_removals(&commands, "/sys/class/net", "link del");
  if (commands.length > 0 && !commands.failed)
    run((char *[]){"ip", "-force", "-batch", "-", NULL}, &commands, NULL);
  shoal_text_release(&commands);
}

/* ---- neighbours ---- */

static const char NEIGHBOURS[] = "/proc/sys/net/ipv4/neigh/default/gc_thresh3";

static long read_neighbours(void) {
  long limit = 0;
  FILE *file = fopen(NEIGHBOURS, "r");
  if (file == NULL || fscanf(file, "%ld", &limit) != 1) limit = 0;
  if (file != NULL) fclose(file);
  return limit;
}

static void write_neighbours(long limit) {
  FILE *file = fopen(NEIGHBOURS, "w");
  if (file == NULL) return;
  fprintf(file, "%ld", limit);
  fclose(file);
}

/* All namespaces together may know so many neighbours, often 1024. Past that connections between machines
 * fail for no reason that could be seen. */
static void allow_neighbours(shoal_links *l) {
  long wanted = (long)(l->machines + 1) * (l->machines + 1), limit = read_neighbours();
  if (limit <= 0 || limit >= wanted) return;
  l->neighbours = limit;
  write_neighbours(wanted);
}

/* ---- making ---- */

static void add_bucket(shoal_text *out, const char *device, double mbit) {
  double burst = fmax(BURST_BYTES_MIN, mbit * 1e6 / 8 * BURST_S);
  shoal_text_addf(out, "qdisc add dev %s root tbf rate %.0fkbit burst %.0f latency %.0fms\n", device,
                  mbit * 1000, burst, QUEUE_MS);
}

static shoal_status make_switch(shoal_links *l, shoal_error *err) {
  shoal_text commands;
  shoal_text_init(&commands);
  shoal_text_addf(&commands, "link add shoal-%d type bridge\n", l->number);
  shoal_text_addf(&commands, "addr add %s/16 dev shoal-%d\n", shoal_links_here(l).text, l->number);
  shoal_text_addf(&commands, "link set shoal-%d up\n", l->number);
  shoal_status status = run_batch("ip", NULL, &commands, err);
  l->bridge = status == SHOAL_OK;
  return status;
}

/* The switch's end of a machine's link. */
static void device_name(char out[SHOAL_LINKS_TEXT_MAX], const shoal_links *l, uint32_t machine) {
  snprintf(out, SHOAL_LINKS_TEXT_MAX, "sh%d-%u", l->number % 1000000, machine);
}

static shoal_status make_machine(shoal_links *l, uint32_t machine, double mbit, shoal_error *err) {
  shoal_text commands, name;
  char device[SHOAL_LINKS_TEXT_MAX];
  shoal_text_init(&commands);
  shoal_text_init(&name);
  add_name(&name, l, machine);
  device_name(device, l, machine);
  shoal_text_addf(&commands, "netns add %s\n", name.bytes);
  shoal_text_addf(&commands, "link add %s type veth peer name eth0 netns %s\n", device, name.bytes);
  shoal_text_addf(&commands, "link set %s master shoal-%d up\n", device, l->number);
  shoal_status status = run_batch("ip", NULL, &commands, err);
  l->made = machine + 1; /* or a part of it */
  if (status == SHOAL_OK) {
    shoal_text_addf(&commands, "addr add %s/16 dev eth0\n", shoal_links_address(l, machine).text);
    shoal_text_addf(&commands, "link set eth0 up\nlink set lo up\n");
    status = run_batch("ip", name.bytes, &commands, err);
  }
  if (status == SHOAL_OK) {
    add_bucket(&commands, device, mbit);
    status = run_batch("tc", NULL, &commands, err);
  }
  if (status == SHOAL_OK) {
    add_bucket(&commands, "eth0", mbit);
    status = run_batch("tc", name.bytes, &commands, err);
  }
  shoal_text_release(&commands);
  shoal_text_release(&name);
  return status;
}

shoal_status shoal_links_open(shoal_links **out, uint32_t machines, double mbit, shoal_error *err) {
  *out = NULL;
  if (geteuid() != 0)
    return shoal_fail(err, SHOAL_UNSUPPORTED,
                      "links of a given rate are network namespaces, which need root: run this as root");
  if (machines > SHOAL_LINKS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%u machines with links of their own; %d are possible", machines,
                      SHOAL_LINKS_MAX);
  remove_left_overs();
  shoal_links *l = calloc(1, sizeof *l);
  if (l == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  *l = (shoal_links){.machines = machines, .number = getpid(), .net = 64 + (uint32_t)getpid() % 128};
  allow_neighbours(l);
  shoal_status status = make_switch(l, err);
  for (uint32_t m = 0; m < machines && status == SHOAL_OK; m++) status = make_machine(l, m, mbit, err);
  if (status != SHOAL_OK) {
    shoal_links_close(l);
    return status;
  }
  *out = l;
  return SHOAL_OK;
}

void shoal_links_close(shoal_links *l) {
  if (l == NULL) return;
  for (uint32_t m = 0; m < l->made; m++) {
    char name[SHOAL_LINKS_TEXT_MAX], device[SHOAL_LINKS_TEXT_MAX];
    snprintf(name, sizeof name, "shoal-%d-%u", l->number, m);
    device_name(device, l, m);
    /* The link first: a namespace takes its end away some time after it was deleted, and the next run wants the
     * name. */
    run((char *[]){"ip", "link", "del", device, NULL}, NULL, NULL);
    run((char *[]){"ip", "netns", "del", name, NULL}, NULL, NULL);
  }
  char bridge[SHOAL_LINKS_TEXT_MAX];
  snprintf(bridge, sizeof bridge, "shoal-%d", l->number);
  if (l->bridge) run((char *[]){"ip", "link", "del", bridge, NULL}, NULL, NULL);
  if (l->neighbours > 0) write_neighbours(l->neighbours);
  free(l);
}
