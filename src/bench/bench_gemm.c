/* bench_gemm.c: shoal bench gemm: matrix products of the sizes that networks have.
 *
 * A layer with a matrix computes three products for its rows, transposed as the layers in
 * nn/ have them:
 *   forward          y  (rows x out) = x (rows x in) * w (in x out)
 *   input gradient   dx (rows x in)  = dy (rows x out) * w^T
 *   weight gradient  dw (in x out)  += x^T * dy
 * So a product whose a is transposed is added to what c holds, and no other is.
 *
 * The same numbers are multiplied again and again, so what fits in a cache lies there. Of
 * five windows the median counts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/progress.h"

enum { WINDOWS = 5, PRODUCTS_BETWEEN_PEAKS = 8 };

typedef struct layer {
  const char *name;
  uint32_t in, out;
  uint32_t rows[6]; /* 0 ends */
} layer;

static const layer layers[] = {
    {"dense 800x500", 800, 500, {16, 32, 64, 128, 512}},
    {"dense 500x10", 500, 10, {16, 32, 64, 128, 512}},
    {"lstm 200, input", 200, 800, {600, 150}},
    {"lstm 200, one step", 200, 800, {20, 10, 5}},
    {"dense 200x10000", 200, 10000, {600, 300, 150}},
    {"dense 784x100", 784, 100, {100}},
    {"dense 512x512", 512, 512, {256}},
};

static const uint32_t squares[] = {1, 17, 31, 33, 64, 256, 1024};

enum {
  LAYERS_COUNT = sizeof layers / sizeof layers[0],
  SQUARES_COUNT = sizeof squares / sizeof squares[0],
  PRODUCTS_MAX = LAYERS_COUNT * 5 * 3 + SQUARES_COUNT,
};

typedef struct product {
  const char *layer, *pass;
  uint32_t m, n, k;
  bool ta, tb;
  double gflops;
} product;

static uint32_t list_products(product out[PRODUCTS_MAX]) {
  uint32_t count = 0;
  for (int i = 0; i < LAYERS_COUNT; i++) {
    const layer *l = &layers[i];
    for (const uint32_t *rows = l->rows; *rows != 0; rows++) {
      SHOAL_ASSERT(count + 3 <= PRODUCTS_MAX);
      out[count++] = (product){l->name, "forward", *rows, l->out, l->in, false, false, 0};
      out[count++] = (product){l->name, "input gradient", *rows, l->in, l->out, false, true, 0};
      out[count++] = (product){l->name, "weight gradient", l->in, l->out, *rows, true, false, 0};
    }
  }
  for (int i = 0; i < SQUARES_COUNT; i++) {
    SHOAL_ASSERT(count < PRODUCTS_MAX);
    out[count++] = (product){"square", "", squares[i], squares[i], squares[i], false, false, 0};
  }
  return count;
}

/* ---- measuring ---------------------------------------------------------------------- */

/* What one thread multiplies. */
typedef struct matrices {
  float *a, *b, *c, *scratch;
} matrices;

typedef struct session {
  const shoal_kernels *kernels;
  uint32_t threads;
  shoal_pool *pool;
  matrices *each;  /* one a thread */
  double *seconds; /* one a thread: of the last window */
  const product *now;
  uint64_t calls; /* in a window */
} session;

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static float *floats(size_t count) { return aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64); }

static float *noise(size_t count, uint64_t which) {
  float *made = floats(count);
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, which, 0);
  for (size_t i = 0; made && i < count; i++) made[i] = shoal_random_uniform(key, i % 65536) - 0.5f;
  return made;
}

static shoal_status open_session(session *s, const product *products, uint32_t count, shoal_error *err) {
  shoal_status status = shoal_pool_create(&s->pool, s->threads, err);
  if (status != SHOAL_OK) return status;
  size_t a = 0, b = 0, c = 0, scratch = 0;
  for (uint32_t i = 0; i < count; i++) {
    const product *p = &products[i];
    a = larger(a, (size_t)p->m * p->k);
    b = larger(b, (size_t)p->k * p->n);
    c = larger(c, (size_t)p->m * p->n);
    scratch = larger(scratch, s->kernels->gemm_scratch(p->m, p->n, p->k));
  }
  s->each = calloc(s->threads, sizeof *s->each);
  s->seconds = calloc(s->threads, sizeof *s->seconds);
  bool ok = s->each && s->seconds;
  for (uint32_t t = 0; ok && t < s->threads; t++) {
    s->each[t] = (matrices){noise(a, 0), noise(b, 1), noise(c, 2), floats(scratch)};
    ok = s->each[t].a && s->each[t].b && s->each[t].c && s->each[t].scratch;
  }
  return ok ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory; try fewer --threads");
}

static void close_session(session *s) {
  shoal_pool_destroy(s->pool);
  for (uint32_t t = 0; s->each && t < s->threads; t++) {
    free(s->each[t].a);
    free(s->each[t].b);
    free(s->each[t].c);
    free(s->each[t].scratch);
  }
  free(s->each);
  free(s->seconds);
}

static void window_task(void *context, uint32_t task, uint32_t thread) {
  (void)thread;
  session *s = context;
  const product *p = s->now;
  const matrices *x = &s->each[task];
  shoal_gemm gemm = {.m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .a = x->a,
                     .a_row = p->ta ? 1 : p->k,
                     .a_col = p->ta ? p->m : 1,
                     .b = x->b,
                     .b_row = p->tb ? 1 : p->n,
                     .b_col = p->tb ? p->k : 1,
                     .c = x->c,
                     .c_row = p->n,
                     .accumulate = p->ta,
                     .scratch = x->scratch};
  double start = shoal_clock_seconds();
  for (uint64_t i = 0; i < s->calls; i++) s->kernels->gemm(&gemm);
  s->seconds[task] = shoal_clock_seconds() - start;
}

/* A window on all threads: their mean time. */
static double run_window(session *s) {
  shoal_pool_run(s->pool, s->threads, window_task, s);
  double sum = 0;
  for (uint32_t t = 0; t < s->threads; t++) sum += s->seconds[t];
  return sum / s->threads;
}

static void measure_product(session *s, product *p, double seconds) {
  s->now = p;
  double window = seconds / WINDOWS, tried = 0;
  /* How many calls fill a window; this warms up as well. */
  for (s->calls = 1; (tried = run_window(s)) < window / 4; s->calls *= 2) {
  }
  s->calls = (uint64_t)((double)s->calls * window / tried);
  if (s->calls == 0) s->calls = 1;
  double flops = 2.0 * p->m * p->n * p->k * (double)s->calls, rates[WINDOWS], spent = 0;
  size_t count = 0;
  while (count < WINDOWS && spent < 2 * seconds) { /* a large product may take longer than it has */
    double took = run_window(s);
    rates[count++] = flops / took / 1e9;
    spent += took;
  }
  p->gflops = shoal_bench_median(rates, count);
}

static shoal_status measure(product *products, uint32_t count, uint32_t threads, double seconds,
                            shoal_peak *peak, shoal_error *err) {
  session s = {.kernels = shoal_kernels_get(), .threads = threads};
  if (!s.kernels)
    return shoal_fail(
        err, SHOAL_UNSUPPORTED,
        "SHOAL_KERNELS names kernels that are unknown or that this processor cannot run; unset it");
  shoal_status status = shoal_peak_open(peak, threads, err);
  if (status != SHOAL_OK) return status;
  status = open_session(&s, products, count, err);
  for (uint32_t i = 0; i < count && status == SHOAL_OK; i++) {
    if (i % PRODUCTS_BETWEEN_PEAKS == 0) shoal_peak_measure(peak);
    measure_product(&s, &products[i], seconds / count);
  }
  close_session(&s);
  shoal_peak_close(peak);
  return status;
}

/* ---- printing ----------------------------------------------------------------------- */

/* Of one thread, which is what products are measured for. */
static double share_of(const product *p, const shoal_peak *peak) {
  return p->gflops * peak->threads / peak->gflops;
}

static double largest_share(const product *products, uint32_t count, const shoal_peak *peak) {
  double largest = 0;
  for (uint32_t i = 0; i < count; i++) largest = fmax(largest, share_of(&products[i], peak));
  return largest;
}

static void print_json(const product *p, const shoal_peak *peak, double largest) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_json json;
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "m", p->m);
  shoal_json_int(&json, "n", p->n);
  shoal_json_int(&json, "k", p->k);
  shoal_json_int(&json, "ta", p->ta);
  shoal_json_int(&json, "tb", p->tb);
  shoal_json_real(&json, "gflops", p->gflops);
  shoal_json_real(&json, "peak_share", share_of(p, peak));
  shoal_peak_doubt_json(peak, largest, &json);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static void print_text(const product *products, uint32_t count, const shoal_peak *peak) {
  printf("%s kernels, %u thread%s, peak %.1f GFLOP/s a thread\n\n", shoal_kernels_get()->name, peak->threads,
         peak->threads == 1 ? "" : "s", peak->gflops / peak->threads);
  shoal_terminal terminal = shoal_terminal_of(stdout);
  const char *bold = terminal.colour ? "\x1b[1m" : "", *off = terminal.colour ? "\x1b[0m" : "";
  printf("%s%-18s  %-15s  %5s  %5s  %5s  %-10s  %8s  %5s%s\n", bold, "layer", "product", "m", "n", "k",
         "transposed", "GFLOP/s", "peak", off);
  for (uint32_t i = 0; i < count; i++) {
    const product *p = &products[i];
    const char *transposed = p->ta ? "a" : p->tb ? "b" : "";
    printf("%-18s  %-15s  %5u  %5u  %5u  %-10s  %8.1f  %4.0f%%\n", p->layer, p->pass, p->m, p->n, p->k,
           transposed, p->gflops, 100 * share_of(p, peak));
  }
  char doubt[SHOAL_PEAK_DOUBT_MAX];
  if (shoal_peak_doubt(peak, largest_share(products, count, peak), doubt)) printf("\nwarning: %s\n", doubt);
}

typedef struct options {
  uint64_t threads;
  double seconds;
  bool json;
} options;

static bool parse(options *o, int argc, char **argv, int *status) {
  const shoal_option table[] = {
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "each computes products of its own; 1 by default"},
      shoal_bench_option_seconds(&o->seconds, "how long to measure; 5 by default"),
      shoal_bench_option_json(&o->json, "JSON, one line a product"),
  };
  const shoal_usage usage = {
      .command = "bench gemm",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about = "Measures matrix products of the sizes that networks have.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal bench gemm --seconds 20\n"
                  "  shoal bench gemm --threads 2 --json\n",
  };
  shoal_operands operands;
  return shoal_cli_parse(&usage, argc, argv, &operands, status);
}

int shoal_bench_gemm(int argc, char **argv) {
  options o = {.threads = 1, .seconds = 5};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  product products[PRODUCTS_MAX];
  uint32_t count = list_products(products), threads = (uint32_t)o.threads;
  shoal_peak peak;
  shoal_error err;
  if (measure(products, count, threads, o.seconds, &peak, &err) != SHOAL_OK)
    return shoal_cli_failed("bench gemm", &err);
  double largest = largest_share(products, count, &peak);
  for (uint32_t i = 0; i < count && o.json; i++) print_json(&products[i], &peak, largest);
  if (!o.json) print_text(products, count, &peak);
  return shoal_cli_finish("bench gemm", SHOAL_EXIT_OK);
}
