/* sim_swarm.c: see sim_swarm.h. */
#include "cli/sim_swarm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/human.h"
#include "base/pool.h"
#include "cli/cli.h"
#include "sim/swarm.h"

enum { TASKS_A_TURN = 64, TOLD_MAX = 10 };

/* ---- one swarm, measured ---- */

static shoal_swarm_sim config_of(const shoal_sim_swarm *o) {
  shoal_swarm_way way = o->baseline == NULL                ? SHOAL_SWARM_PEERS
                        : strcmp(o->baseline, "tree") == 0 ? SHOAL_SWARM_TREE
                                                           : SHOAL_SWARM_SERVER;
  return (shoal_swarm_sim){.seed = o->seed,
                           .members = (uint32_t)o->members,
                           .bytes = o->bytes,
                           .chunk_bytes = o->chunk_bytes,
                           .rate = o->rate,
                           .server_rate = o->server_rate,
                           .latency_s = o->latency_ms / 1e3,
                           .mixed = o->mixed,
                           .churn = o->churn,
                           .killed = o->killed,
                           .corrupt = o->corrupt,
                           .server_leaves = o->server_leaves,
                           .neighbours = (uint32_t)o->neighbours,
                           .slots = (uint32_t)o->slots,
                           .pieces = (uint32_t)o->pieces,
                           .way = way};
}

static void print_swarm(const shoal_swarm_result *r, double seconds) {
  printf("%s\n", r->what);
  printf("  last member has all   %10s   %.3f times the least possible (%s)\n",
         shoal_human_seconds(r->last_s).text, r->last_s / r->bound_s, shoal_human_seconds(r->bound_s).text);
  printf("  in the middle, first  %10s   %s\n", shoal_human_seconds(r->median_s).text,
         shoal_human_seconds(r->first_s).text);
  printf("  server sent           %10.3f   copies\n", r->copies);
  printf("  members               %10s   with everything; %u left, %u joined, %u were exposed\n",
         shoal_human_count(r->finished).text, r->left, r->joined, r->exposed);
  printf("  sent by all           %10s   of it %.2f%% small messages\n",
         shoal_human_bytes(r->sent_bytes).text, 100 * r->small_bytes / r->sent_bytes);
  printf("  chunks that came twice %9s   bad %llu, late questions %llu, \"not now\" %llu\n",
         shoal_human_count(r->twice).text, (unsigned long long)r->bad, (unsigned long long)r->late,
         (unsigned long long)r->not_now);
  printf("simulated in %s\n", shoal_human_seconds(seconds).text);
}

static void print_swarm_json(const shoal_sim_swarm *o, const shoal_swarm_result *r, double seconds) {
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_int(&json, "members", r->members);
  shoal_json_text(&json, "way", o->baseline != NULL ? o->baseline : "peers");
  shoal_json_int(&json, "seed", (int64_t)o->seed);
  shoal_json_int(&json, "bytes", (int64_t)o->bytes);
  shoal_json_int(&json, "chunks", r->chunks);
  shoal_json_real(&json, "last_s", r->last_s);
  shoal_json_real(&json, "median_s", r->median_s);
  shoal_json_real(&json, "first_s", r->first_s);
  shoal_json_real(&json, "bound_s", r->bound_s);
  shoal_json_real(&json, "ratio", r->last_s / r->bound_s);
  shoal_json_real(&json, "server_copies", r->copies);
  shoal_json_int(&json, "finished", r->finished);
  shoal_json_int(&json, "left", r->left);
  shoal_json_int(&json, "joined", r->joined);
  shoal_json_int(&json, "exposed", r->exposed);
  shoal_json_real(&json, "sent_bytes", r->sent_bytes);
  shoal_json_real(&json, "small_bytes", r->small_bytes);
  shoal_json_int(&json, "twice", (int64_t)r->twice);
  shoal_json_int(&json, "bad", (int64_t)r->bad);
  shoal_json_int(&json, "late", (int64_t)r->late);
  shoal_json_int(&json, "messages", (int64_t)r->messages);
  shoal_json_text(&json, "violated",
                  r->violated == SHOAL_SWARM_WELL ? "" : shoal_swarm_rule_name(r->violated));
  shoal_json_text(&json, "text", r->text);
  shoal_json_real(&json, "seconds", seconds);
  shoal_cli_event_end(&json);
}

static int run_one(const shoal_sim_swarm *o) {
  shoal_swarm_sim config = config_of(o);
  shoal_swarm_result result;
  double started = shoal_clock_seconds();
  shoal_swarm_live(&config, &result);
  double seconds = shoal_clock_seconds() - started;
  if (o->json)
    print_swarm_json(o, &result, seconds);
  else
    print_swarm(&result, seconds);
  if (result.violated == SHOAL_SWARM_WELL) return SHOAL_EXIT_OK;
  fprintf(stderr, "shoal sim: seed %llu breaks the rule '%s': %s\n", (unsigned long long)o->seed,
          shoal_swarm_rule_name(result.violated), result.text);
  return SHOAL_EXIT_FAILED;
}

/* ---- many, drawn ---- */

typedef struct session {
  const shoal_sim_swarm *options;
  uint64_t first;
  shoal_swarm_result results[TASKS_A_TURN];
  uint64_t lives, violations, members, left, joined, exposed, bad, twice, messages;
  uint64_t broken[SHOAL_SWARM_RULES];
  double seconds;
  uint64_t told_seeds[TOLD_MAX];
  shoal_swarm_result told[TOLD_MAX];
} session;

static void live_task(void *context, uint32_t task, uint32_t thread) {
  (void)thread;
  session *s = context;
  shoal_swarm_live(&(shoal_swarm_sim){.seed = s->first + task, .drawn = true}, &s->results[task]);
}

static void add_result(session *s, uint64_t seed, const shoal_swarm_result *r) {
  s->lives++;
  s->members += r->members;
  s->left += r->left;
  s->joined += r->joined;
  s->exposed += r->exposed;
  s->bad += r->bad;
  s->twice += r->twice;
  s->messages += r->messages;
  if (r->violated == SHOAL_SWARM_WELL) return;
  s->broken[r->violated]++;
  if (s->violations < TOLD_MAX) {
    s->told_seeds[s->violations] = seed;
    s->told[s->violations] = *r;
  }
  s->violations++;
}

static shoal_status live_all(session *s, shoal_error *err) {
  const shoal_sim_swarm *o = s->options;
  shoal_pool *pool;
  shoal_status status = shoal_pool_create(&pool, (uint32_t)o->threads, err);
  if (status != SHOAL_OK) return status;
  double started = shoal_clock_seconds();
  for (uint64_t done = 0; done < o->swarms;) {
    uint32_t tasks = (uint32_t)(o->swarms - done < TASKS_A_TURN ? o->swarms - done : TASKS_A_TURN);
    s->first = o->seed + done;
    shoal_pool_run(pool, tasks, live_task, s);
    for (uint32_t i = 0; i < tasks; i++) add_result(s, s->first + i, &s->results[i]);
    done += tasks;
  }
  s->seconds = shoal_clock_seconds() - started;
  shoal_pool_destroy(pool);
  return SHOAL_OK;
}

static void print_row(const char *name, uint64_t count) {
  printf("  %-24s %14s\n", name, shoal_human_count(count).text);
}

static void print_session(const session *s) {
  if (s->lives == 1) printf("%s\n", s->results[0].what);
  printf("%s %s in %s\n", shoal_human_count(s->lives).text, s->lives == 1 ? "swarm" : "swarms",
         shoal_human_seconds(s->seconds).text);
  print_row("members", s->members);
  print_row("messages", s->messages);
  print_row("members that left", s->left);
  print_row("members that joined", s->joined);
  print_row("corrupt members exposed", s->exposed);
  print_row("bad chunks found", s->bad);
  print_row("chunks that came twice", s->twice);
  printf("rules broken\n");
  for (int r = 1; r < SHOAL_SWARM_RULES; r++) print_row(shoal_swarm_rule_name(r), s->broken[r]);
  if (s->violations == 0)
    printf("\nAll well: no rule was broken in %s %s.\n", shoal_human_count(s->lives).text,
           s->lives == 1 ? "swarm" : "swarms");
}

static void print_session_json(const session *s) {
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_int(&json, "swarms", (int64_t)s->lives);
  shoal_json_int(&json, "violations", (int64_t)s->violations);
  shoal_json_real(&json, "seconds", s->seconds);
  shoal_json_int(&json, "members", (int64_t)s->members);
  shoal_json_int(&json, "messages", (int64_t)s->messages);
  shoal_json_int(&json, "left", (int64_t)s->left);
  shoal_json_int(&json, "joined", (int64_t)s->joined);
  shoal_json_int(&json, "exposed", (int64_t)s->exposed);
  shoal_json_int(&json, "bad", (int64_t)s->bad);
  shoal_json_int(&json, "twice", (int64_t)s->twice);
  shoal_json_open(&json, "broken", '[');
  for (uint64_t i = 0; i < s->violations && i < TOLD_MAX; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_int(&json, "seed", (int64_t)s->told_seeds[i]);
    shoal_json_text(&json, "rule", shoal_swarm_rule_name(s->told[i].violated));
    shoal_json_text(&json, "text", s->told[i].text);
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_cli_event_end(&json);
}

static void print_violations(const session *s) {
  for (uint64_t i = 0; i < s->violations && i < TOLD_MAX; i++)
    fprintf(
        stderr,
        "shoal sim: swarm %llu breaks the rule '%s': %s\n  (%s)\n  again: shoal sim --swarms 1 --seed %llu\n",
        (unsigned long long)s->told_seeds[i], shoal_swarm_rule_name(s->told[i].violated), s->told[i].text,
        s->told[i].what, (unsigned long long)s->told_seeds[i]);
  if (s->violations > TOLD_MAX)
    fprintf(stderr, "shoal sim: and %llu more\n", (unsigned long long)(s->violations - TOLD_MAX));
}

static int run_many(const shoal_sim_swarm *o) {
  shoal_error err;
  session *s = calloc(1, sizeof *s);
  if (s == NULL) {
    shoal_fail(&err, SHOAL_NO_MEMORY, "not enough memory");
    return shoal_cli_failed("sim", &err);
  }
  s->options = o;
  shoal_status status = live_all(s, &err);
  if (status == SHOAL_OK && o->json) print_session_json(s);
  if (status == SHOAL_OK && !o->json) print_session(s);
  print_violations(s);
  int exit_status = s->violations > 0 ? SHOAL_EXIT_FAILED : SHOAL_EXIT_OK;
  free(s);
  return status == SHOAL_OK ? exit_status : shoal_cli_failed("sim", &err);
}

int shoal_sim_swarm_run(const shoal_sim_swarm *o) {
  return shoal_cli_finish("sim", o->swarms > 0 ? run_many(o) : run_one(o));
}
