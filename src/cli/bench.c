/* bench.c: shoal bench: how fast this machine trains, as a share of what it could do.
 *
 * Data is made up in memory, so that only training is measured. The ceiling is what the
 * processors reach with multiply-adds from registers alone, measured in the same run. Of
 * five windows the median counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/random.h"
#include "cli/cli.h"
#include "cli/human.h"
#include "nn/trainer.h"

static const struct {
  const char *name, *text;
} networks[] = {
    {"lenet5", "input 1x28x28\nconv 20 5x5 tanh\npool max 2x2\nconv 50 5x5 tanh\npool max 2x2\n"
               "dense 500 tanh\ndense 10\nloss cross-entropy\noptimizer sgd rate 0.025\nbatch 512\n"},
    {"mlp",
     "input 784\ndense 100 sigmoid\ndense 10\nloss cross-entropy\noptimizer sgd rate 0.5\nbatch 100\n"},
    {"lstm-ptb", "input tokens 30 carry\nembed 10000 200\nlstm 200 layers 2\ndense 10000\n"
                 "loss cross-entropy\noptimizer sgd rate 0.05\nbatch 20\n"},
};
enum { NETWORKS_COUNT = sizeof networks / sizeof networks[0] };

typedef struct bench_options {
  const char *net;
  uint64_t batch, threads; /* batch 0: the network's own */
  double seconds;
  bool json;
} bench_options;

typedef struct bench_result {
  double batches_per_s, gflops, peak_gflops, first_update_s, resident_mb;
} bench_result;

static bool parse(bench_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "net",
       .value = "NET",
       .text = &o->net,
       .help = "lenet5, mlp, lstm-ptb, or the file of a model; lenet5 by default"},
      {.name = "batch",
       .value = "N",
       .whole = &o->batch,
       .whole_min = 1,
       .whole_max = SHOAL_BATCH_MAX,
       .help = "samples of a round; by default what the model says"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor"},
      {.name = "seconds",
       .value = "S",
       .real = &o->seconds,
       .real_min = 0.05,
       .real_max = 3600,
       .help = "how long to measure; 5 by default"},
      {.name = "json", .flag = &o->json, .help = "one line of JSON"},
  };
  const shoal_usage usage = {
      .command = "bench",
      .synopses = (const char *[]){"train [OPTION...]", NULL},
      .about = "Measures how fast this machine trains a network on made-up data: rounds a second, and the "
               "share of the processors' peak that this is.",
      .operand = "what to measure: train",
      .operands_min = 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal bench train\n"
                  "  shoal bench train --net lstm-ptb --batch 20 --threads 2 --seconds 10 --json\n"
                  "  shoal bench train --net examples/lenet5.net\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  if (strcmp(operands.at[0], "train") != 0) {
    shoal_error err;
    shoal_fail(&err, SHOAL_INVALID, "unknown measurement '%s'; there is: train", operands.at[0]);
    *status = shoal_cli_misused("bench", &err);
    return false;
  }
  return true;
}

/* ---- made-up data ------------------------------------------------------------------- */

enum { NOISE_COUNT = 1 << 16, ROUNDS_IN_EPOCH = 1000 };

typedef struct noise {
  const shoal_graph *graph;
  uint32_t classes, vocabulary;
  float values[NOISE_COUNT];
  uint32_t numbers[NOISE_COUNT];
} noise;

static noise *make_noise(const shoal_graph *graph) {
  noise *made = malloc(sizeof *made);
  if (!made) return NULL;
  made->graph = graph;
  made->classes = graph->nodes[graph->nodes_count - 1].shape.features;
  made->vocabulary = shoal_model_vocabulary(graph->model);
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, 0, 0);
  for (uint32_t i = 0; i < NOISE_COUNT; i++) {
    made->values[i] = shoal_random_uniform(key, 2 * i) - 0.5f;
    made->numbers[i] = shoal_random_u32(key, 2 * i + 1);
  }
  return made;
}

/* Copies `count` values from the noise, starting at a place that depends on `first`. */
static void fill(const noise *from, uint64_t first, float *to, size_t count) {
  size_t at = (size_t)(first * 97) % NOISE_COUNT;
  while (count > 0) {
    size_t part = NOISE_COUNT - at < count ? NOISE_COUNT - at : count;
    memcpy(to, from->values + at, part * sizeof *to);
    to += part;
    count -= part;
    at = 0;
  }
}

static void fetch_image(const noise *from, const shoal_shape *shape, uint64_t first, uint32_t n, float *x) {
  uint32_t lanes = shoal_lanes_for(n);
  size_t values = (size_t)shape->c * shape->h * shape->w;
  fill(from, first, x, values * lanes);
  for (size_t v = 0; v < values && n < lanes; v++) memset(x + v * lanes + n, 0, (lanes - n) * sizeof *x);
}

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  (void)epoch;
  const noise *from = self;
  const shoal_shape *input = &from->graph->nodes[0].shape;
  const shoal_shape *output = &from->graph->nodes[from->graph->nodes_count - 1].shape;
  if (into->x && input->kind == SHOAL_IMAGE)
    fetch_image(from, input, first, n, into->x);
  else if (into->x)
    fill(from, first, into->x, (size_t)n * input->steps * input->features);
  for (uint32_t i = 0; into->tokens && i < n * input->steps; i++)
    into->tokens[i] = (int32_t)(from->numbers[(first * 31 + i) % NOISE_COUNT] % from->vocabulary);
  for (uint32_t i = 0; into->labels && i < n * output->steps; i++)
    into->labels[i] = (int32_t)(from->numbers[(first * 37 + i) % NOISE_COUNT] % from->classes);
  if (into->targets) fill(from, first * 41, into->targets, (size_t)n * output->steps * output->features);
  for (uint32_t i = 0; into->weight && i < n * output->steps; i++) into->weight[i] = 1;
  for (uint32_t i = 0; into->ids && i < n; i++) into->ids[i] = first + i;
}

/* ---- measuring ---------------------------------------------------------------------- */

enum { WINDOWS = 5, WARM_UP_ROUNDS = 3 };

typedef struct spinning {
  const shoal_kernels *kernels;
  uint64_t rounds;
  double flops[SHOAL_THREADS_MAX];
} spinning;

static void spin_task(void *context, uint32_t task, uint32_t thread) {
  (void)thread;
  spinning *s = context;
  s->flops[task] = s->kernels->spin(s->rounds);
}

/* One try of about 50 ms on all threads; *peak_gflops grows when it was better. */
static void measure_peak(shoal_pool *pool, spinning *s, double *peak_gflops) {
  uint32_t threads = shoal_pool_threads(pool);
  for (;;) {
    double start = shoal_clock_seconds();
    shoal_pool_run(pool, threads, spin_task, s);
    double seconds = shoal_clock_seconds() - start;
    if (seconds < 0.04 && s->rounds < UINT64_MAX / 4) {
      s->rounds *= 2;
      continue;
    }
    double flops = 0;
    for (uint32_t t = 0; t < threads; t++) flops += s->flops[t];
    if (flops / seconds / 1e9 > *peak_gflops) *peak_gflops = flops / seconds / 1e9;
    return;
  }
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static shoal_status measure_window(shoal_trainer *trainer, const shoal_source *source, double seconds,
                                   double *rate, shoal_error *err) {
  double start = shoal_clock_seconds(), now = start;
  uint64_t rounds = 0;
  while (now - start < seconds) {
    shoal_result round;
    shoal_status status = shoal_trainer_round(trainer, source, &round, err);
    if (status != SHOAL_OK) return status;
    now = shoal_clock_seconds();
    rounds++;
  }
  *rate = (double)rounds / (now - start);
  return SHOAL_OK;
}

/* Windows of training, with a look at the peak after each: other work on the machine then
 * slows down both. */
static shoal_status measure_speed(shoal_trainer *trainer, const shoal_source *source, const bench_options *o,
                                  double started, bench_result *out, shoal_error *err) {
  shoal_pool *pool;
  shoal_status status = shoal_pool_create(&pool, (uint32_t)o->threads, err);
  if (status != SHOAL_OK) return status;
  spinning spins = {.kernels = shoal_kernels_get(), .rounds = 1000};
  shoal_result round;
  for (int i = 0; i <= WARM_UP_ROUNDS && status == SHOAL_OK; i++) {
    status = shoal_trainer_round(trainer, source, &round, err);
    if (i == 0) out->first_update_s = shoal_clock_seconds() - started;
  }
  double rates[WINDOWS];
  for (int w = 0; w < WINDOWS && status == SHOAL_OK; w++) {
    status = measure_window(trainer, source, o->seconds / WINDOWS, &rates[w], err);
    measure_peak(pool, &spins, &out->peak_gflops);
  }
  shoal_pool_destroy(pool);
  if (status != SHOAL_OK) return status;
  qsort(rates, WINDOWS, sizeof rates[0], compare_reals);
  out->batches_per_s = rates[WINDOWS / 2];
  return SHOAL_OK;
}

static shoal_status load_network(shoal_model **out, const char *name, shoal_error *err) {
  for (int i = 0; i < NETWORKS_COUNT; i++) {
    if (strcmp(name, networks[i].name) == 0)
      return shoal_model_parse(out, name, networks[i].text, strlen(networks[i].text), err);
  }
  return shoal_model_load(out, name, err);
}

static shoal_status measure(bench_options *o, double started, bench_result *out, shoal_error *err) {
  shoal_model *model = NULL;
  shoal_graph *graph = NULL;
  shoal_trainer *trainer = NULL;
  noise *data = NULL;
  shoal_status status = load_network(&model, o->net, err);
  if (status == SHOAL_OK) status = shoal_graph_create(&graph, model, err);
  if (status != SHOAL_OK) goto end;
  if (o->batch == 0) o->batch = model->recipe.batch;
  shoal_trainer_config config = {.graph = graph,
                                 .threads = (uint32_t)o->threads,
                                 .batch = (uint32_t)o->batch,
                                 .samples = o->batch * ROUNDS_IN_EPOCH};
  status = shoal_trainer_create(&trainer, &config, err);
  if (status != SHOAL_OK) goto end;
  data = make_noise(graph);
  if (!data) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    goto end;
  }
  shoal_source source = {.self = data, .samples = config.samples, .fetch = fetch};
  status = measure_speed(trainer, &source, o, started, out, err);
  double flops = (double)shoal_graph_flops(graph, true) * (double)o->batch;
  out->gflops = out->batches_per_s * flops / 1e9;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  out->resident_mb = (double)usage.ru_maxrss * 1024 / 1e6;
end:
  shoal_trainer_destroy(trainer);
  free(data);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
  return status;
}

/* ---- printing ----------------------------------------------------------------------- */

static void print_json(const bench_options *o, const bench_result *r) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_json json;
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "net", o->net);
  shoal_json_int(&json, "batch", (int64_t)o->batch);
  shoal_json_int(&json, "threads", (int64_t)o->threads);
  shoal_json_text(&json, "kernels", shoal_kernels_get()->name);
  shoal_json_real(&json, "batches_per_s", r->batches_per_s);
  shoal_json_real(&json, "samples_per_s", r->batches_per_s * (double)o->batch);
  shoal_json_real(&json, "gflops", r->gflops);
  shoal_json_real(&json, "peak_gflops", r->peak_gflops);
  shoal_json_real(&json, "peak_share", r->gflops / r->peak_gflops);
  shoal_json_real(&json, "resident_mb", r->resident_mb);
  shoal_json_real(&json, "first_update_s", r->first_update_s);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static void print_text(const bench_options *o, const bench_result *r) {
  printf("%s, batch %llu, %llu thread%s, %s kernels\n", o->net, (unsigned long long)o->batch,
         (unsigned long long)o->threads, o->threads == 1 ? "" : "s", shoal_kernels_get()->name);
  printf("%-13s %s batches/s, %s samples/s\n", "speed", shoal_human_number(r->batches_per_s).text,
         shoal_human_count((uint64_t)(r->batches_per_s * (double)o->batch)).text);
  printf("%-13s %.1f GFLOP/s, %.0f%% of the peak of %.1f\n", "arithmetic", r->gflops,
         100 * r->gflops / r->peak_gflops, r->peak_gflops);
  printf("%-13s %s\n", "first update", shoal_human_seconds(r->first_update_s).text);
  printf("%-13s %.0f MB\n", "memory", r->resident_mb);
}

static int run(int argc, char **argv) {
  double started = shoal_clock_seconds();
  bench_options o = {.net = networks[0].name, .threads = shoal_cli_threads(), .seconds = 5};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  bench_result result = {0};
  shoal_error err;
  if (measure(&o, started, &result, &err) != SHOAL_OK) return shoal_cli_failed("bench", &err);
  if (o.json)
    print_json(&o, &result);
  else
    print_text(&o, &result);
  return shoal_cli_finish("bench", SHOAL_EXIT_OK);
}

const shoal_command shoal_command_bench = {"bench", "how fast this machine trains", run};
