/* bench_envs.c: shoal bench envs: how many steps a second environments take, on one thread.
 *
 * Random actions, drawn beforehand; observations, rewards, ends and the resets of episodes that ended are all
 * counted in. Of five windows the median counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vector.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/progress.h"

enum { WINDOWS = 5, DRAWN_STEPS = 16, COUNT_MAX = 65536 };

typedef struct options {
  const char *env;
  uint64_t count;
  double seconds;
  bool json;
} options;

typedef struct session {
  const shoal_env_kind *kind;
  uint32_t count;
  shoal_vector *vector;
  float *actions; /* DRAWN_STEPS x count x width */
  float *rewards;
  uint8_t *ends;
  uint64_t step;
} session;

static void close_session(session *s) {
  shoal_vector_destroy(s->vector);
  free(s->actions);
  free(s->rewards);
  free(s->ends);
}

static shoal_status open_session(session *s, const shoal_env_kind *kind, uint32_t count, shoal_error *err) {
  *s = (session){.kind = kind, .count = count};
  shoal_status status = shoal_vector_create(&s->vector, kind, count, err);
  if (status != SHOAL_OK) return status;
  size_t drawn = (size_t)DRAWN_STEPS * count * kind->action_width;
  s->actions = malloc(drawn * sizeof *s->actions);
  s->rewards = malloc(count * sizeof *s->rewards);
  s->ends = malloc(count);
  if (!s->actions || !s->rewards || !s->ends) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, 0, 0);
  for (size_t i = 0; i < drawn; i++) {
    float u = shoal_random_uniform(key, i);
    s->actions[i] = kind->choices ? (float)(uint32_t)(u * (float)kind->choices)
                                  : kind->action_low + u * (kind->action_high - kind->action_low);
  }
  shoal_vector_reset(s->vector, 1);
  return SHOAL_OK;
}

/* Steps a second, over at least so many seconds. */
static double run_window(session *s, double seconds) {
  double start = shoal_clock_seconds(), now = start;
  uint64_t steps = 0;
  while (now - start < seconds) {
    for (int i = 0; i < 16; i++, steps++, s->step++)
      shoal_vector_step(s->vector, s->actions + s->step % DRAWN_STEPS * s->count * s->kind->action_width,
                        s->rewards, s->ends);
    now = shoal_clock_seconds();
  }
  return (double)steps * s->count / (now - start);
}

static shoal_status measure(const shoal_env_kind *kind, const options *o, double *rate, shoal_error *err) {
  session s;
  shoal_status status = open_session(&s, kind, (uint32_t)o->count, err);
  if (status == SHOAL_OK) {
    double rates[WINDOWS];
    run_window(&s, o->seconds / WINDOWS / 4);
    for (int i = 0; i < WINDOWS; i++) rates[i] = run_window(&s, o->seconds / WINDOWS);
    *rate = shoal_bench_median(rates, WINDOWS);
  }
  close_session(&s);
  return status;
}

static void print_json(const shoal_env_kind *kind, const options *o, double rate) {
  shoal_text line;
  shoal_json json;
  shoal_json_begin(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "env", kind->name);
  shoal_json_int(&json, "count", (int64_t)o->count);
  shoal_json_real(&json, "steps_per_s", rate);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static shoal_status run_all(const options *o, shoal_error *err) {
  const shoal_env_kind *only = NULL;
  shoal_status status = o->env ? shoal_env_need(&only, o->env, err) : SHOAL_OK;
  if (status == SHOAL_OK && !o->json)
    printf("%u environments on one thread\n\n%-26s  %14s\n", (unsigned)o->count, "environment", "steps/s");
  for (int i = 0; status == SHOAL_OK && shoal_env_kinds[i]; i++) {
    const shoal_env_kind *kind = shoal_env_kinds[i];
    if (only && kind != only) continue;
    double rate;
    char digits[SHOAL_GROUPED_MAX];
    status = measure(kind, o, &rate, err);
    if (status != SHOAL_OK) break;
    if (o->json)
      print_json(kind, o, rate);
    else
      printf("%-26s  %14s\n", kind->name, shoal_grouped((uint64_t)rate, digits));
  }
  return status;
}

int shoal_bench_envs(int argc, char **argv) {
  options o = {.count = 1024, .seconds = 1};
  const shoal_option table[] = {
      {.name = "env", .value = "NAME", .text = &o.env, .help = "only this one; all by default"},
      {.name = "count",
       .value = "N",
       .whole = &o.count,
       .whole_min = 1,
       .whole_max = COUNT_MAX,
       .help = "stepped together; 1024 by default"},
      shoal_bench_option_seconds(&o.seconds, "how long to measure each; 1 by default"),
      shoal_bench_option_json(&o.json, "JSON, one line an environment"),
  };
  const shoal_usage usage = {
      .command = "bench envs",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about = "Measures how many steps a second environments take on one thread, with random actions: "
               "observations, rewards, ends and the resets of episodes that ended are counted in.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal bench envs\n"
                  "  shoal bench envs --env CartPole-v1 --count 4096\n",
  };
  shoal_operands operands;
  int exit_status;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, &exit_status)) return exit_status;
  shoal_error err;
  if (run_all(&o, &err) != SHOAL_OK) return shoal_cli_failed("bench envs", &err);
  return shoal_cli_finish("bench envs", SHOAL_EXIT_OK);
}
