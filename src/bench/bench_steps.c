/* bench_steps.c: where the time of a training round goes, step by step.
 *
 * Times are thread time: what each step took on all threads together. What is missing to
 * all threads' time is waiting: for the slowest thread, and between the parts of a round.
 * GFLOP/s are a thread's while it works on the step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "cli/progress.h"
#include "nn/op.h"

enum { NAME_MAX = 96 };

typedef struct row {
  char name[NAME_MAX];
  const char *pass;
  double seconds;
  double flops; /* 0: nothing that is counted */
} row;

static bool alone_in_layer(const shoal_graph *graph, uint32_t node) {
  for (uint32_t i = 0; i < graph->nodes_count; i++)
    if (i != node && graph->nodes[i].layer == graph->nodes[node].layer) return false;
  return true;
}

/* The layer's name; of a layer with several nodes, that of the node's parameters, or the name
 * and what the node does: "lstm1.2", "conv1 tanh". */
static void name_node(const shoal_graph *graph, uint32_t index, char out[NAME_MAX]) {
  const shoal_node *node = &graph->nodes[index];
  const char *layer = graph->model->layers[node->layer].name;
  if (node->params[0] != SHOAL_NO_PARAM) {
    const char *name = graph->params[node->params[0]].name, *role = strrchr(name, '.');
    snprintf(out, NAME_MAX, "%.*s", (int)(role ? role - name : (ptrdiff_t)strlen(name)), name);
  } else if (alone_in_layer(graph, index)) {
    snprintf(out, NAME_MAX, "%s", layer);
  } else {
    snprintf(out, NAME_MAX, "%s %s", layer, shoal_node_word(node));
  }
}

static row row_of(const shoal_bench_steps *s, const shoal_work_time *time) {
  static const char *const names[] = {
      [SHOAL_WORK_FETCH] = "fetching samples",   [SHOAL_WORK_LOSS] = "loss",
      [SHOAL_WORK_CLEAR] = "clearing gradients", [SHOAL_WORK_SUM] = "summing gradients",
      [SHOAL_WORK_UPDATE] = "updating weights",
  };
  row r = {.pass = "", .seconds = time->seconds};
  if (time->work != SHOAL_WORK_FORWARD && time->work != SHOAL_WORK_BACKWARD) {
    snprintf(r.name, sizeof r.name, "%s", names[time->work]);
    return r;
  }
  bool forward = time->work == SHOAL_WORK_FORWARD;
  shoal_flops flops = shoal_node_flops(s->graph, &s->graph->nodes[time->node]);
  name_node(s->graph, time->node, r.name);
  r.pass = forward ? "forward" : "backward";
  r.flops = (double)(forward ? flops.forward : flops.input_gradient + flops.weight_gradient);
  r.flops *= (double)s->batch * (double)s->rounds;
  return r;
}

/* Gives rows that the caller frees, and how many there are. */
static row *make_rows(const shoal_bench_steps *s, uint32_t *count, shoal_error *err) {
  uint32_t times_count = shoal_engine_times(shoal_trainer_engine(s->trainer), NULL);
  shoal_work_time *times = calloc(times_count, sizeof *times);
  row *rows = calloc(times_count + 1, sizeof *rows);
  if (!times || !rows) {
    shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    free(times);
    free(rows);
    return NULL;
  }
  shoal_engine_times(shoal_trainer_engine(s->trainer), times);
  double working = 0;
  *count = 0;
  for (uint32_t i = 0; i < times_count; i++) {
    working += times[i].seconds;
    bool of_node = times[i].work == SHOAL_WORK_FORWARD || times[i].work == SHOAL_WORK_BACKWARD;
    if (of_node && shoal_node_is(&s->graph->nodes[times[i].node], SHOAL_OP_INPUT)) continue;
    rows[(*count)++] = row_of(s, &times[i]);
  }
  free(times);
  double waiting = s->seconds * s->threads - working;
  rows[(*count)++] = (row){.name = "waiting", .pass = "", .seconds = waiting > 0 ? waiting : 0};
  return rows;
}

static double gflops_of(const row *r) { return r->seconds > 0 ? r->flops / r->seconds / 1e9 : 0; }

static double ms_of(const shoal_bench_steps *s, const row *r) { return 1e3 * r->seconds / (double)s->rounds; }

static double time_share(const shoal_bench_steps *s, const row *r) {
  return r->seconds / (s->seconds * s->threads);
}

shoal_status shoal_bench_steps_print(const shoal_bench_steps *s, shoal_error *err) {
  uint32_t count;
  row *rows = make_rows(s, &count, err);
  if (!rows) return SHOAL_NO_MEMORY;
  int width = 4;
  for (uint32_t i = 0; i < count; i++)
    if ((int)strlen(rows[i].name) > width) width = (int)strlen(rows[i].name);
  shoal_terminal terminal = shoal_terminal_of(stdout);
  const char *bold = terminal.colour ? "\x1b[1m" : "", *off = terminal.colour ? "\x1b[0m" : "";
  printf("\nms/round is summed over threads; GFLOP/s and the share of the peak are one thread's. "
         "Convolutions count as\n"
         "if done directly, so Winograd's way can show more than the peak.\n");
  printf("\n%s%-*s  %-8s  %9s  %6s  %8s  %6s%s\n", bold, width, "step", "pass", "ms/round", "time", "GFLOP/s",
         "peak", off);
  for (uint32_t i = 0; i < count; i++) {
    const row *r = &rows[i];
    printf("%-*s  %-8s  %9.3f  %5.1f%%", width, r->name, r->pass, ms_of(s, r), 100 * time_share(s, r));
    if (r->flops > 0) printf("  %8.1f  %5.0f%%", gflops_of(r), 100 * gflops_of(r) / s->peak_gflops);
    printf("\n");
  }
  free(rows);
  return SHOAL_OK;
}

shoal_status shoal_bench_steps_json(const shoal_bench_steps *s, shoal_json *json, shoal_error *err) {
  uint32_t count;
  row *rows = make_rows(s, &count, err);
  if (!rows) return SHOAL_NO_MEMORY;
  shoal_json_open(json, "steps", '[');
  for (uint32_t i = 0; i < count; i++) {
    const row *r = &rows[i];
    double gflops = r->flops > 0 ? gflops_of(r) : NAN; /* which JSON calls null */
    shoal_json_open(json, NULL, '{');
    shoal_json_text(json, "step", r->name);
    shoal_json_text(json, "pass", r->pass);
    shoal_json_real(json, "ms", ms_of(s, r));
    shoal_json_real(json, "time_share", time_share(s, r));
    shoal_json_real(json, "gflops", gflops);
    shoal_json_real(json, "peak_share", gflops / s->peak_gflops);
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
  free(rows);
  return SHOAL_OK;
}
