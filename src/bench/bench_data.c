/* bench_data.c: shoal bench data: how long until every worker has a data set.
 *
 * A server and N workers, each a process with a link of the same rate (links.h, bench_data.h). Nobody can
 * have the data sooner than size / rate after the start: what is measured is how much longer it takes until
 * the last one has it, and how many copies of it the server has sent. Half of the workers can be killed on
 * the way, and some can give corrupted chunks: who is alive must end with the right data. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/human.h"
#include "bench/bench.h"
#include "bench/bench_data.h"
#include "cli/cli.h"
#include "cli/stop.h"

enum { COUNTS_MAX = 16 };
static const double LOOK_S = 0.01, READY_S = 30, PATIENCE = 4; /* times what it should take at most */
static const char *const ways[SHOAL_DATA_WAYS + 1] = {"swarm", "server", "tree", NULL};

typedef struct options {
  const char *workers_text, *way_text;
  double size_mb, rate_mbit, kill_share, bad_share;
  bool json;
  /* from the texts */
  uint32_t workers[COUNTS_MAX], counts;
  shoal_data_way way;
} options;

typedef struct session {
  const options *o;
  uint8_t *source;
  uint64_t bytes;
  shoal_specimen specimen;
  shoal_data_board *board;
  pid_t pids[1 + SHOAL_BENCH_DATA_WORKERS_MAX];
} session;

/* Those who give corrupted chunks are left by all others, and then get what they lack from the server alone:
 * what is measured is told of the others, with what the server had sent by then; and of all. */
typedef struct result {
  uint32_t alive, done, killed, bad_workers;
  double ideal_s, seconds, copies; /* until the last has it of those who give the right chunks */
  double all_seconds, all_copies;  /* until the last of all has it */
  double from_server, from_peers;  /* copies that came, of all */
  uint64_t bad, wrong;
  double processors; /* busy, of the machine, on average */
} result;

/* ---- options ---- */

static shoal_status read_options(options *o, shoal_error *err) {
  for (const char *from = o->workers_text;; from++) {
    size_t length = strcspn(from, ",");
    uint64_t count;
    if (!shoal_read_u64(from, length, &count) || count == 0 || count > SHOAL_BENCH_DATA_WORKERS_MAX ||
        o->counts == COUNTS_MAX)
      return shoal_fail(err, SHOAL_INVALID,
                        "--workers: '%s' is not a list such as 4,8,16 of numbers up to %d", o->workers_text,
                        SHOAL_BENCH_DATA_WORKERS_MAX);
    o->workers[o->counts++] = (uint32_t)count;
    from += length;
    if (*from == '\0') break;
  }
  for (int i = 0; i < SHOAL_DATA_WAYS; i++)
    if (strcmp(o->way_text, ways[i]) == 0) o->way = (shoal_data_way)i;
  if (o->way != SHOAL_DATA_SWARM && o->kill_share + o->bad_share > 0)
    return shoal_fail(err, SHOAL_INVALID, "--kill and --bad are for the swarm");
  return SHOAL_OK;
}

static bool parse(options *o, int argc, char **argv, int *status) {
  const shoal_option table[] = {
      {.name = "workers",
       .value = "LIST",
       .text = &o->workers_text,
       .help = "how many, with commas; 4,8,16,32 by default"},
      {.name = "size",
       .value = "MB",
       .real = &o->size_mb,
       .real_min = 1,
       .real_max = 16000,
       .help = "of the data, in millions of bytes; 1000 by default. It is kept in memory"},
      {.name = "rate",
       .value = "MBIT",
       .real = &o->rate_mbit,
       .real_min = 1,
       .real_max = 1e5,
       .help = "of every link, each way; 100 by default"},
      {.name = "way",
       .value = "WAY",
       .text = &o->way_text,
       .choices = ways,
       .help = "swarm; server: one server sends all to all; tree: who has all sends all to the next"},
      {.name = "kill",
       .value = "SHARE",
       .real = &o->kill_share,
       .real_min = 0,
       .real_max = 0.9,
       .help = "this share of the workers is killed when half of the time has passed"},
      {.name = "bad",
       .value = "SHARE",
       .real = &o->bad_share,
       .real_min = 0,
       .real_max = 0.9,
       .help = "this share of the workers gives corrupted chunks"},
      shoal_bench_option_json(&o->json, "print a JSON line for every row"),
  };
  const shoal_usage usage = {
      .command = "bench data",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about = "Measures how long it takes until every worker has a data set, and how much of that the "
               "server sends. "
               "Server and workers are processes in network namespaces with links of the same rate, which "
               "needs root, "
               "ip and tc.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal bench data --workers 8 --size 200 --rate 200\n"
                  "  shoal bench data --workers 16 --kill 0.5 --bad 0.2\n"
                  "  shoal bench data --workers 4,8 --size 100 --way tree\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  shoal_error err;
  if (read_options(o, &err) == SHOAL_OK) return true;
  *status = shoal_cli_misused("bench data", &err);
  return false;
}

/* ---- the data ---- */

static void *share(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return at != MAP_FAILED ? at : NULL;
}

static shoal_status open_session(session *s, shoal_error *err) {
  s->bytes = (uint64_t)(s->o->size_mb * 1e6);
  s->source = share(s->bytes);
  s->board = share(sizeof *s->board);
  if (s->source == NULL || s->board == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  return shoal_specimen_init(&s->specimen, s->source, s->bytes, err);
}

static void close_session(session *s) {
  shoal_specimen_release(&s->specimen);
  if (s->source != NULL) munmap(s->source, s->bytes);
  if (s->board != NULL) munmap(s->board, sizeof *s->board);
}

/* ---- processes ---- */

static shoal_status start(session *s, const shoal_data_run *run, shoal_error *err) {
  fflush(NULL);
  for (uint32_t i = 0; i <= run->workers; i++) {
    s->pids[i] = fork();
    if (s->pids[i] == 0) shoal_data_process(run, i);
    if (s->pids[i] < 0) return shoal_fail(err, SHOAL_IO, "cannot start a process: %s", strerror(errno));
  }
  return SHOAL_OK;
}

static void end(session *s, uint32_t workers) {
  static const double patience_s = 3;
  double until = shoal_clock_seconds() + patience_s;
  if (s->board != NULL) atomic_store(&s->board->over, 1);
  for (uint32_t i = 0; i <= workers; i++) {
    while (s->pids[i] > 0 && waitpid(s->pids[i], NULL, WNOHANG) == 0) {
      if (shoal_clock_seconds() > until) kill(s->pids[i], SIGKILL);
      shoal_clock_sleep(LOOK_S);
    }
    s->pids[i] = 0;
  }
}

static shoal_status look_for_failure(const session *s, uint32_t workers, shoal_error *err) {
  if (shoal_stop_signal() != 0) return shoal_fail(err, SHOAL_STOPPED, "stopped");
  for (uint32_t i = 0; i <= workers; i++)
    if (s->pids[i] > 0 && atomic_load(&s->board->slots[i].failed) != 0)
      return shoal_fail(err, SHOAL_IO, "%s %u: %s", i == 0 ? "the server, process" : "worker", i,
                        s->board->slots[i].text);
  return SHOAL_OK;
}

static shoal_status wait_until_ready(const session *s, uint32_t workers, shoal_error *err) {
  double until = shoal_clock_seconds() + READY_S;
  for (;;) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i <= workers; i++) ready += atomic_load(&s->board->slots[i].ready);
    if (ready == workers + 1) return SHOAL_OK;
    shoal_status status = look_for_failure(s, workers, err);
    if (status != SHOAL_OK) return status;
    if (shoal_clock_seconds() > until)
      return shoal_fail(err, SHOAL_IO, "only %u of %u processes were ready in time", ready, workers + 1);
    shoal_clock_sleep(LOOK_S);
  }
}

/* Every second worker of a row, until there are so many. */
static uint32_t kill_some(session *s, uint32_t workers, double share_of) {
  uint32_t wanted = (uint32_t)(share_of * workers + 0.5), killed = 0;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 1 + pass; i <= workers && killed < wanted; i += 2) {
      if (s->pids[i] <= 0) continue;
      kill(s->pids[i], SIGKILL);
      waitpid(s->pids[i], NULL, 0);
      s->pids[i] = 0;
      killed++;
    }
  return killed;
}

/* Seconds that all processors were busy, from the kernel's account. */
static double busy_seconds(void) {
  unsigned long long user, nice, system, idle, wait, irq, soft;
  FILE *file = fopen("/proc/stat", "r");
  int got = file != NULL ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                                  &idle, &wait, &irq, &soft)
                         : 0;
  if (file != NULL) fclose(file);
  return got == 7 ? (double)(user + nice + system + irq + soft) / (double)sysconf(_SC_CLK_TCK) : NAN;
}

/* Of workers 1 .. last: how many are alive, how many of them have everything, and when the last got it. */
static uint32_t count_done(const session *s, uint32_t last, uint32_t *alive, double *at) {
  uint32_t done = 0;
  *alive = 0;
  *at = 0;
  for (uint32_t i = 1; i <= last; i++) {
    if (s->pids[i] <= 0) continue;
    (*alive)++;
    if (atomic_load(&s->board->slots[i].done) == 0) continue;
    done++;
    *at = fmax(*at, s->board->slots[i].done_at);
  }
  return done;
}

static double copies_sent(const session *s) {
  return (double)atomic_load(&s->board->slots[0].sent) / (double)s->bytes;
}

/* How long it should take at most, by the way it goes. */
static double longest(const options *o, uint32_t workers, double ideal_s) {
  if (o->way == SHOAL_DATA_SERVER) return ideal_s * workers;
  return o->way == SHOAL_DATA_TREE ? ideal_s * ceil(log2(workers + 1)) : ideal_s;
}

static shoal_status follow(session *s, uint32_t workers, result *r, shoal_error *err) {
  double busy = busy_seconds(), began = shoal_clock_seconds(), at;
  double until = began + READY_S + PATIENCE * longest(s->o, workers, r->ideal_s);
  bool kills = s->o->kill_share > 0;
  uint32_t honest;
  r->seconds = r->all_seconds = INFINITY;
  atomic_store(&s->board->go, 1);
  for (;;) {
    shoal_clock_sleep(LOOK_S);
    double now = shoal_clock_seconds();
    if (kills && now - began > r->ideal_s / 2) {
      r->killed = kill_some(s, workers, s->o->kill_share);
      kills = false;
    }
    if (!kills && isinf(r->seconds) && count_done(s, workers - r->bad_workers, &honest, &at) == honest) {
      r->seconds = at - began;
      r->copies = copies_sent(s);
      r->processors = (busy_seconds() - busy) / (now - began);
    }
    r->done = count_done(s, workers, &r->alive, &at);
    if (r->done == r->alive && !kills) break;
    shoal_status status = look_for_failure(s, workers, err);
    if (status != SHOAL_OK) return status;
    if (now > until) return SHOAL_OK;
  }
  r->all_seconds = at - began;
  return SHOAL_OK;
}

static void sum_up(const session *s, uint32_t workers, result *r) {
  shoal_clock_sleep(0.1); /* the last that they tell */
  r->all_copies = copies_sent(s);
  for (uint32_t i = 1; i <= workers; i++) {
    const shoal_data_slot *slot = &s->board->slots[i];
    r->from_server += (double)atomic_load(&slot->from_server) / (double)s->bytes;
    r->from_peers += (double)atomic_load(&slot->from_peers) / (double)s->bytes;
    r->bad += atomic_load(&slot->bad);
    r->wrong += atomic_load(&slot->wrong);
  }
}

static shoal_status measure(session *s, uint32_t workers, result *r, shoal_error *err) {
  const options *o = s->o;
  shoal_links *links;
  *r = (result){.ideal_s = (double)s->bytes * 8 / (o->rate_mbit * 1e6),
                .bad_workers = (uint32_t)(o->bad_share * workers + 0.5)};
  shoal_status status = shoal_links_open(&links, workers + 1, o->rate_mbit, err);
  if (status == SHOAL_UNSUPPORTED)
    shoal_error_prefix(err, "'shoal sim --swarm %u' says what to expect without that: ", workers);
  if (status != SHOAL_OK) return status;
  const shoal_data_run run = {.way = o->way,
                              .workers = workers,
                              .links = links,
                              .specimen = &s->specimen,
                              .bad = r->bad_workers,
                              .board = s->board};
  memset(s->board, 0, sizeof *s->board);
  memset(s->pids, 0, sizeof s->pids);
  status = start(s, &run, err);
  if (status == SHOAL_OK) status = wait_until_ready(s, workers, err);
  if (status == SHOAL_OK) status = follow(s, workers, r, err);
  if (status == SHOAL_OK) sum_up(s, workers, r);
  end(s, workers);
  shoal_links_close(links);
  return status;
}

/* ---- printing ---- */

static void print_head(const session *s) {
  double ideal_s = (double)s->bytes * 8 / (s->o->rate_mbit * 1e6);
  printf("%s over links of %g Mbit/s, as a %s: size / rate is %.1f s\n\n",
         shoal_human_bytes((double)s->bytes).text, s->o->rate_mbit, ways[s->o->way], ideal_s);
  printf("%8s %9s %9s %9s %14s %12s %12s\n", "workers", "have it", "seconds", "of ideal", "server copies",
         "bad chunks", "processors");
}

static void print_row(uint32_t workers, const result *r) {
  printf("%8u %4u of %-3u %8.1f %8.2fx %14.2f %12" PRIu64 " %12.2f\n", workers, r->done, r->alive, r->seconds,
         r->seconds / r->ideal_s, r->copies, r->bad, r->processors);
  if (r->wrong > 0) printf("         %" PRIu64 " WRONG CHUNKS WERE USED\n", r->wrong);
  fflush(stdout);
}

static void print_json(const session *s, uint32_t workers, const result *r) {
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_text(&json, "way", ways[s->o->way]);
  shoal_json_int(&json, "workers", workers);
  shoal_json_int(&json, "bytes", (int64_t)s->bytes);
  shoal_json_real(&json, "rate_mbit", s->o->rate_mbit);
  shoal_json_real(&json, "ideal_s", r->ideal_s);
  shoal_json_real(&json, "seconds", r->seconds);
  shoal_json_real(&json, "of_ideal", r->seconds / r->ideal_s);
  shoal_json_real(&json, "server_copies", r->copies);
  shoal_json_real(&json, "all_seconds", r->all_seconds);
  shoal_json_real(&json, "all_server_copies", r->all_copies);
  shoal_json_real(&json, "from_server", r->from_server);
  shoal_json_real(&json, "from_peers", r->from_peers);
  shoal_json_int(&json, "alive", r->alive);
  shoal_json_int(&json, "done", r->done);
  shoal_json_int(&json, "killed", r->killed);
  shoal_json_int(&json, "bad_workers", r->bad_workers);
  shoal_json_int(&json, "bad_chunks", (int64_t)r->bad);
  shoal_json_int(&json, "wrong_chunks", (int64_t)r->wrong);
  shoal_json_real(&json, "processors", r->processors);
  shoal_cli_event_end(&json);
}

int shoal_bench_data(int argc, char **argv) {
  options o = {.workers_text = "4,8,16,32", .way_text = "swarm", .size_mb = 1000, .rate_mbit = 100};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  session s = {.o = &o};
  shoal_error err;
  bool right = true;
  shoal_stop_catch();
  shoal_status status = open_session(&s, &err);
  if (status == SHOAL_OK && !o.json) print_head(&s);
  for (uint32_t i = 0; i < o.counts && status == SHOAL_OK; i++) {
    result r;
    status = measure(&s, o.workers[i], &r, &err);
    if (status != SHOAL_OK) break;
    right = right && r.done == r.alive && r.wrong == 0;
    if (o.json)
      print_json(&s, o.workers[i], &r);
    else
      print_row(o.workers[i], &r);
  }
  close_session(&s);
  if (status == SHOAL_STOPPED) return 128 + shoal_stop_signal();
  if (status != SHOAL_OK) return shoal_cli_failed("bench data", &err);
  return shoal_cli_finish("bench data", right ? SHOAL_EXIT_OK : SHOAL_EXIT_FAILED);
}
