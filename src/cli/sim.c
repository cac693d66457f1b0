/* sim.c: shoal sim: trainings of simulated machines, full of faults, watched by checkers.
 *
 * Lives are independent of each other, so threads take seeds. A life that broke a rule is told with
 * the command that lives it again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"
#include "base/pool.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/sim_swarm.h"
#include "sim/life.h"
#include "sim/swarm.h"

enum { TASKS_A_TURN = 64, TOLD_MAX = 10, SEEDS_DEFAULT = 1000 };
#define NOT_GIVEN UINT64_MAX

typedef struct options {
  uint64_t seeds, seed, workers, threads;
  const char *mode_text;
  shoal_mode mode;
  bool json, verbose, trace;
  shoal_sim_swarm swarm;
} options;

typedef struct violation {
  uint64_t seed;
  shoal_sim_report report;
} violation;

typedef struct session {
  const options *options;
  uint64_t first; /* seed of the turn's first task */
  shoal_sim_report *reports;
  /* sums over all lives so far */
  uint64_t lives, violations, backs, rounds, leases, again, differs, messages;
  uint64_t faults[SHOAL_FAULTS], broken[SHOAL_SIM_CHECKERS];
  double virtual_s, seconds;
  violation told[TOLD_MAX];
} session;

static const shoal_sim_swarm USUAL = {
    .bytes = 1000000000, .chunk_bytes = 1 << 20, .rate = 100e6, .latency_ms = 1};

/* A flag that does not apply to what is simulated; NULL: there is none. */
static const char *find_astray(const options *o) {
  const shoal_sim_swarm *s = &o->swarm;
  bool spreads = s->members > 0 || s->swarms > 0, measures = s->members > 0;
  const struct {
    bool given;
    const char *flag;
  } flags[] = {
      {spreads && o->seeds != 0, "--seeds"},
      {spreads && o->workers != 0, "--workers"},
      {spreads && o->mode_text != NULL, "--mode"},
      {spreads && o->verbose, "--verbose"},
      {spreads && o->trace, "--trace"},
      {!measures && s->bytes != USUAL.bytes, "--bytes"},
      {!measures && s->chunk_bytes != USUAL.chunk_bytes, "--chunk-bytes"},
      {!measures && s->rate != USUAL.rate, "--rate"},
      {!measures && s->server_rate != 0, "--server-rate"},
      {!measures && s->mixed, "--mixed"},
      {!measures && s->latency_ms != USUAL.latency_ms, "--latency"},
      {!measures && s->churn != 0, "--churn"},
      {!measures && s->killed != 0, "--kill"},
      {!measures && s->corrupt != 0, "--corrupt"},
      {!measures && s->server_leaves, "--server-leaves"},
      {!measures && s->neighbours != 0, "--neighbours"},
      {!measures && s->slots != 0, "--slots"},
      {!measures && s->pieces != 0, "--pieces"},
      {!measures && s->baseline != NULL, "--baseline"},
  };
  for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
    if (flags[i].given) return flags[i].flag;
  return NULL;
}

static bool parse(options *o, int argc, char **argv, int *status) {
  const shoal_option table[] = {
      {.name = "seeds",
       .value = "N",
       .whole = &o->seeds,
       .whole_min = 1,
       .whole_max = 1000000000,
       .help = "how many lives, from seed 0 on, or from --seed; 1000 by default"},
      {.name = "seed",
       .value = "S",
       .whole = &o->seed,
       .whole_min = 0,
       .whole_max = NOT_GIVEN - 1,
       .help = "this life alone, unless --seeds says more: the same seed is the same life"},
      {.name = "workers",
       .value = "W",
       .whole = &o->workers,
       .whole_min = 1,
       .whole_max = SHOAL_SIM_WORKERS_MAX,
       .help = "of every life; by default a few, drawn from the seed"},
      {.name = "mode",
       .value = "MODE",
       .text = &o->mode_text,
       .help = "sync, stale:N, async or local:H; by default drawn from the seed"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor"},
      {.name = "verbose", .flag = &o->verbose, .help = "of one life: what happened in it"},
      {.name = "trace", .flag = &o->trace, .help = "of one life: its messages too"},
      {.name = "json", .flag = &o->json, .help = "one line of JSON at the end"},
      {.name = "Spreading data instead of training"},
      {.name = "swarms",
       .value = "N",
       .whole = &o->swarm.swarms,
       .whole_min = 1,
       .whole_max = 1000000000,
       .help = "so many small swarms full of faults, from seed 0 on, or from --seed"},
      {.name = "swarm",
       .value = "N",
       .whole = &o->swarm.members,
       .whole_min = 1,
       .whole_max = SHOAL_SWARM_MEMBERS_MAX,
       .help = "one swarm of N members, measured: how long until the last has everything"},
      {.name = "bytes",
       .value = "B",
       .whole = &o->swarm.bytes,
       .whole_min = 1,
       .whole_max = (uint64_t)1 << 40,
       .help = "size of the data; 1000000000 by default"},
      {.name = "chunk-bytes",
       .value = "B",
       .whole = &o->swarm.chunk_bytes,
       .whole_min = 65536,
       .whole_max = 1 << 30,
       .help = "of a chunk; 1048576 by default, as in a real swarm"},
      {.name = "rate",
       .value = "R",
       .real = &o->swarm.rate,
       .real_min = 1000,
       .real_max = 1e12,
       .help = "bytes a second of every link, up and down; 100e6 by default"},
      {.name = "server-rate",
       .value = "R",
       .real = &o->swarm.server_rate,
       .real_min = 1000,
       .real_max = 1e12,
       .help = "of the server; by default the same"},
      {.name = "mixed",
       .flag = &o->swarm.mixed,
       .help = "members' links as measured among file sharers: 784/128 kbit/s (20%), 1500/384 (40%), "
               "3000/1000 (25%), 10000/5000 (15%)"},
      {.name = "latency",
       .value = "MS",
       .real = &o->swarm.latency_ms,
       .real_min = 0,
       .real_max = 10000,
       .help = "milliseconds that every message takes; 1 by default"},
      {.name = "churn",
       .value = "X",
       .real = &o->swarm.churn,
       .real_min = 0,
       .real_max = 1,
       .help = "this share of the members leaves while the data spreads, and as many join"},
      {.name = "kill",
       .value = "X",
       .real = &o->swarm.killed,
       .real_min = 0,
       .real_max = 0.99,
       .help = "this share of the members dies at once, in the middle"},
      {.name = "corrupt",
       .value = "X",
       .real = &o->swarm.corrupt,
       .real_min = 0,
       .real_max = 0.99,
       .help = "this share of the members sends corrupted chunks"},
      {.name = "server-leaves",
       .flag = &o->swarm.server_leaves,
       .help = "the server dies as soon as the members have everything between them"},
      {.name = "neighbours",
       .value = "N",
       .whole = &o->swarm.neighbours,
       .whole_min = 2,
       .whole_max = 1000,
       .help = "of a member at most; 40 by default"},
      {.name = "slots",
       .value = "N",
       .whole = &o->swarm.slots,
       .whole_min = 1,
       .whole_max = 1000,
       .help = "peers that one sends to at a time; 12 by default"},
      {.name = "pieces",
       .value = "N",
       .whole = &o->swarm.pieces,
       .whole_min = 1,
       .whole_max = 64,
       .help = "that a chunk is cut into on a simulated link, where transfers take turns; 4 by default"},
      {.name = "baseline",
       .value = "WAY",
       .text = &o->swarm.baseline,
       .choices = (const char *const[]){"tree", "server", NULL},
       .help = "for comparison: tree: whoever has everything sends it on as a whole, so that their number "
               "doubles every turn; server: everybody asks the server"},
  };
  const shoal_usage usage = {
      .command = "sim",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about =
          "Trains on simulated machines, in virtual time: the real chief, parameter servers and workers "
          "on a network that is slow, breaks, and falls apart, with machines that crash in the middle of "
          "a write, workers that come, go, dawdle or lie, and clocks that jump. Checkers watch that "
          "every sample counts once, that the weights are those of one machine to the last bit, that "
          "nothing safe is lost, and that the training ends. Status 1 when one of them finds fault. "
          "With --swarm or --swarms data is spread instead, from a server and from member to member: the "
          "checkers watch that everybody ends with everything, that nothing corrupted is kept or given on, "
          "that nobody sends to too many at a time, and that the server sends little more than one copy.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal sim --seeds 200\n"
                  "  shoal sim --seed 42 --verbose\n"
                  "  shoal sim --seed 1 --workers 500 --mode sync\n"
                  "  shoal sim --seeds 200 --mode stale:2 --json\n"
                  "  shoal sim --swarms 2000\n"
                  "  shoal sim --swarm 1000 --bytes 1000000000 --rate 100e6\n"
                  "  shoal sim --swarm 1000 --mixed --churn 0.3 --corrupt 0.2\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  shoal_error err;
  if (o->mode_text != NULL && shoal_mode_parse(o->mode_text, &o->mode, &err) != SHOAL_OK) {
    *status = shoal_cli_misused("sim", &err);
    return false;
  }
  if (o->swarm.members > 0 && o->swarm.swarms > 0) {
    shoal_fail(&err, SHOAL_INVALID,
               "--swarm is one that is measured, --swarms are many that are drawn: give one");
    *status = shoal_cli_misused("sim", &err);
    return false;
  }
  const char *astray = find_astray(o);
  if (astray != NULL) {
    bool spreads = o->swarm.members > 0 || o->swarm.swarms > 0;
    shoal_fail(&err, SHOAL_INVALID, "%s is %s: leave it out", astray,
               spreads ? "for trainings, and not for --swarm or --swarms" : "for --swarm alone");
    *status = shoal_cli_misused("sim", &err);
    return false;
  }
  if (o->seeds == 0) o->seeds = o->seed != NOT_GIVEN ? 1 : SEEDS_DEFAULT;
  if (o->seed == NOT_GIVEN) o->seed = 0;
  if ((o->verbose || o->trace) && o->seeds != 1) {
    shoal_fail(&err, SHOAL_INVALID, "--verbose and --trace are for one life: give it with --seed");
    *status = shoal_cli_misused("sim", &err);
    return false;
  }
  return true;
}

/* ---- living ---- */

static shoal_sim_config config_of(const options *o, uint64_t seed) {
  return (shoal_sim_config){.seed = seed,
                            .workers = (uint32_t)o->workers,
                            .mode = o->mode_text != NULL ? &o->mode : NULL,
                            .trace = o->trace};
}

static void live_task(void *context, uint32_t task, uint32_t thread) {
  (void)thread;
  session *s = context;
  shoal_sim_config config = config_of(s->options, s->first + task);
  shoal_sim_live(&config, &s->reports[task]);
}

static void add_report(session *s, uint64_t seed, const shoal_sim_report *r) {
  s->lives++;
  s->backs += r->backs;
  s->rounds += r->rounds;
  s->leases += r->leases;
  s->again += r->again;
  s->differs += r->differs;
  s->messages += r->messages;
  s->virtual_s += r->virtual_s;
  for (int f = 0; f < SHOAL_FAULTS; f++) s->faults[f] += r->faults[f];
  if (r->violated == SHOAL_SIM_NOTHING) return;
  s->broken[r->violated]++;
  if (s->violations < TOLD_MAX) s->told[s->violations] = (violation){.seed = seed, .report = *r};
  s->violations++;
}

static void show_progress(session *s, shoal_progress *progress, double started) {
  double now = shoal_clock_seconds(), seconds = now - started;
  if (!shoal_progress_due(progress, now)) return;
  double per_s = (double)s->lives / seconds;
  shoal_progress_view view = {.share = (double)s->lives / (double)s->options->seeds,
                              .per_s = per_s,
                              .unit = "seeds",
                              .loss = NAN,
                              .metric_name = s->violations > 0 ? "violations" : NULL,
                              .metric = (double)s->violations,
                              .eta_s = (double)(s->options->seeds - s->lives) / per_s};
  shoal_progress_show(progress, &view, now);
}

static shoal_status live_all(session *s, shoal_error *err) {
  const options *o = s->options;
  shoal_pool *pool;
  shoal_status status = shoal_pool_create(&pool, (uint32_t)o->threads, err);
  if (status != SHOAL_OK) return status;
  s->reports = calloc(TASKS_A_TURN, sizeof *s->reports);
  if (s->reports == NULL) status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the reports");
  double started = shoal_clock_seconds();
  shoal_progress progress;
  shoal_progress_init(&progress, o->json ? NULL : stderr, started);
  for (uint64_t done = 0; status == SHOAL_OK && done < o->seeds;) {
    uint32_t tasks = (uint32_t)(o->seeds - done < TASKS_A_TURN ? o->seeds - done : TASKS_A_TURN);
    s->first = o->seed + done;
    shoal_pool_run(pool, tasks, live_task, s);
    for (uint32_t i = 0; i < tasks; i++) add_report(s, s->first + i, &s->reports[i]);
    done += tasks;
    show_progress(s, &progress, started);
  }
  shoal_progress_clear(&progress);
  s->seconds = shoal_clock_seconds() - started;
  free(s->reports);
  shoal_pool_destroy(pool);
  return status;
}

/* One life, with its log. */
static void live_one(session *s) {
  const options *o = s->options;
  shoal_text log;
  shoal_text_init(&log);
  shoal_sim_config config = config_of(o, o->seed);
  config.log = o->verbose || o->trace ? &log : NULL;
  shoal_sim_report report;
  double started = shoal_clock_seconds();
  shoal_sim_live(&config, &report);
  s->seconds = shoal_clock_seconds() - started;
  if (!o->json && log.bytes != NULL) fputs(log.bytes, stdout);
  if (!o->json) printf("%s\n", report.what);
  add_report(s, o->seed, &report);
  shoal_text_release(&log);
}

/* ---- telling ---- */

static void add_replay(shoal_text *out, const options *o, uint64_t seed) {
  shoal_text_addf(out, "shoal sim --seed %llu", (unsigned long long)seed);
  if (o->workers > 0) shoal_text_addf(out, " --workers %llu", (unsigned long long)o->workers);
  shoal_cli_add_option(out, "mode", o->mode_text);
}

static void print_violations(const session *s) {
  shoal_text line;
  shoal_text_init(&line);
  for (uint64_t i = 0; i < s->violations && i < TOLD_MAX; i++) {
    const violation *v = &s->told[i];
    fprintf(stderr,
            "shoal sim: seed %llu breaks the rule '%s': %s\n  (%s)\n  again: ", (unsigned long long)v->seed,
            shoal_sim_checker_name(v->report.violated), v->report.text, v->report.what);
    add_replay(&line, s->options, v->seed);
    fprintf(stderr, "%s --verbose\n", line.bytes);
    shoal_text_clear(&line);
  }
  if (s->violations > TOLD_MAX)
    fprintf(stderr, "shoal sim: and %llu more\n", (unsigned long long)(s->violations - TOLD_MAX));
  shoal_text_release(&line);
}

static void print_verdict(const session *s) {
  if (s->violations == 0)
    printf("\nAll well: no rule was broken in %s %s.\n", shoal_human_count(s->lives).text,
           s->lives == 1 ? "life" : "lives");
  else
    printf("\nNot well: %s of %s lives broke a rule.\n", shoal_human_count(s->violations).text,
           shoal_human_count(s->lives).text);
}

static void print_row(const char *name, uint64_t count) {
  printf("  %-24s %14s\n", name, shoal_human_count(count).text);
}

static void print_table(const session *s) {
  printf("%s lives in %s, %s of virtual time\n", shoal_human_count(s->lives).text,
         shoal_human_seconds(s->seconds).text, shoal_human_seconds(s->virtual_s).text);
  print_row("rounds", s->rounds);
  print_row("leases", s->leases);
  print_row("leased again", s->again);
  print_row("messages", s->messages);
  print_row("times gone back", s->backs - (s->backs < s->lives ? s->backs : s->lives));
  print_row("results that differ", s->differs);
  printf("faults\n");
  for (int f = 0; f < SHOAL_FAULTS; f++) print_row(shoal_sim_fault_name(f), s->faults[f]);
  printf("rules broken\n");
  for (int c = 1; c < SHOAL_SIM_CHECKERS; c++) print_row(shoal_sim_checker_name(c), s->broken[c]);
}

/* Under its name, with underscores. */
static void add_fault(shoal_json *json, shoal_sim_fault fault, uint64_t count) {
  char key[64];
  snprintf(key, sizeof key, "%s", shoal_sim_fault_name(fault));
  for (char *at = key; *at != '\0'; at++)
    if (*at == ' ') *at = '_';
  shoal_json_int(json, key, (int64_t)count);
}

static void print_json(const session *s) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_json json;
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "lives", (int64_t)s->lives);
  shoal_json_int(&json, "violations", (int64_t)s->violations);
  shoal_json_real(&json, "seconds", s->seconds);
  shoal_json_real(&json, "virtual_seconds", s->virtual_s);
  shoal_json_int(&json, "rounds", (int64_t)s->rounds);
  shoal_json_int(&json, "leases", (int64_t)s->leases);
  shoal_json_int(&json, "leased_again", (int64_t)s->again);
  shoal_json_int(&json, "messages", (int64_t)s->messages);
  shoal_json_int(&json, "times_back", (int64_t)s->backs);
  shoal_json_int(&json, "results_that_differ", (int64_t)s->differs);
  shoal_json_open(&json, "faults", '{');
  for (int f = 0; f < SHOAL_FAULTS; f++) add_fault(&json, f, s->faults[f]);
  shoal_json_close(&json, '}');
  shoal_json_open(&json, "broken", '[');
  for (uint64_t i = 0; i < s->violations && i < TOLD_MAX; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_int(&json, "seed", (int64_t)s->told[i].seed);
    shoal_json_text(&json, "rule", shoal_sim_checker_name(s->told[i].report.violated));
    shoal_json_text(&json, "text", s->told[i].report.text);
    shoal_text replay;
    shoal_text_init(&replay);
    add_replay(&replay, s->options, s->told[i].seed);
    shoal_json_text(&json, "replay", replay.bytes);
    shoal_text_release(&replay);
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static int run(int argc, char **argv) {
  options o = {.seed = NOT_GIVEN, .threads = shoal_cli_threads(), .swarm = USUAL};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  if (o.swarm.members > 0 || o.swarm.swarms > 0) {
    o.swarm.seed = o.seed;
    o.swarm.threads = o.threads;
    o.swarm.json = o.json;
    return shoal_sim_swarm_run(&o.swarm);
  }
  session *s = calloc(1, sizeof *s);
  shoal_error err;
  shoal_status status = SHOAL_OK;
  if (s == NULL) {
    shoal_fail(&err, SHOAL_NO_MEMORY, "not enough memory");
    return shoal_cli_failed("sim", &err);
  }
  s->options = &o;
  if (o.seeds == 1)
    live_one(s);
  else
    status = live_all(s, &err);
  if (status != SHOAL_OK) {
    free(s);
    return shoal_cli_failed("sim", &err);
  }
  if (o.json)
    print_json(s);
  else
    print_table(s);
  print_violations(s);
  if (!o.json) print_verdict(s);
  exit_status = s->violations > 0 ? SHOAL_EXIT_FAILED : SHOAL_EXIT_OK;
  free(s);
  return shoal_cli_finish("sim", exit_status);
}

const shoal_command shoal_command_sim = {"sim", "train on simulated machines full of faults, and check", run};
