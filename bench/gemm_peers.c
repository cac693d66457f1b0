/* gemm_peers.c: our matrix product beside those of other libraries, one thread each.
 *
 *   gemm_peers [SECONDS] < SHAPES
 *
 * SHAPES has lines "m n k ta tb": c (m x n) = a (m x k) * b (k x n), rows after one another,
 * a or b stored transposed where ta or tb is 1. A product whose a is transposed is added to
 * what c holds, as in `shoal bench gemm`. Every shape is measured for SECONDS, 0.5 by default.
 *
 * A round gives every library the same short time, one after the other, so that whatever else
 * the machine does meets all of them. A line of JSON a shape and library says the median and
 * the best of the rounds, and the median of "ours by theirs" of the same round, which is fairer
 * on a machine that has other work.
 * Before measuring, results are compared with ours.
 *
 * bench/gemm builds this with the libraries that are there: HAVE_OPENBLAS, HAVE_ONEDNN,
 * HAVE_LIBXSMM. libxsmm makes code for one product of small matrices: large ones are not what
 * it is for, and b it cannot read transposed, so it is given the time to transpose it. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/kernels.h"
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif
#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif
#ifdef HAVE_LIBXSMM
#include <libxsmm.h>
#endif

enum { ROUNDS = 31 };

typedef struct shape {
  uint32_t m, n, k;
  int ta, tb;
  float *a, *b, *c;
} shape;

/* prepare may answer false: the library has nothing for this shape. */
typedef struct library {
  const char *name;
  bool (*prepare)(const shape *s);
  void (*multiply)(const shape *s);
} library;

static void die(const char *what) {
  fprintf(stderr, "gemm_peers: %s\n", what);
  exit(1);
}

static float *floats(size_t count) {
  float *made = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
  if (made == NULL) die("out of memory");
  return made;
}

/* Of this thread: what other programs take of the processor does not count. */
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- ours ---- */

static shoal_gemm ours;

static bool ours_prepare(const shape *s) {
  free(ours.scratch);
  ours = (shoal_gemm){.m = s->m,
                      .n = s->n,
                      .k = s->k,
                      .a = s->a,
                      .a_row = s->ta ? 1 : s->k,
                      .a_col = s->ta ? s->m : 1,
                      .b = s->b,
                      .b_row = s->tb ? 1 : s->n,
                      .b_col = s->tb ? s->k : 1,
                      .c = s->c,
                      .c_row = s->n,
                      .accumulate = s->ta,
                      .scratch = floats(shoal_kernels_get()->gemm_scratch(s->m, s->n, s->k))};
  return true;
}

static void ours_multiply(const shape *s) {
  (void)s;
  shoal_kernels_get()->gemm(&ours);
}

/* ---- OpenBLAS ---- */

#ifdef HAVE_OPENBLAS
static bool openblas_prepare(const shape *s) {
  (void)s;
  openblas_set_num_threads(1);
  return true;
}

static void openblas_multiply(const shape *s) {
  cblas_sgemm(CblasRowMajor, s->ta ? CblasTrans : CblasNoTrans, s->tb ? CblasTrans : CblasNoTrans, (int)s->m,
              (int)s->n, (int)s->k, 1, s->a, (int)(s->ta ? s->m : s->k), s->b, (int)(s->tb ? s->k : s->n),
              s->ta ? 1 : 0, s->c, (int)s->n);
}
#endif

/* ---- oneDNN: the function in the way of BLAS, and the primitive ---- */

#ifdef HAVE_ONEDNN
static bool onednn_prepare(const shape *s) {
  (void)s;
  return true;
}

static void onednn_multiply(const shape *s) {
  dnnl_sgemm(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1, s->a, s->ta ? s->m : s->k, s->b,
             s->tb ? s->k : s->n, s->ta ? 1 : 0, s->c, s->n);
}

static struct {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t args[3];
} matmul;

static void must(dnnl_status_t status) {
  if (status != dnnl_success) die("oneDNN refuses");
}

static void matmul_memory(int arg, uint32_t rows, uint32_t cols, int transposed, float *data,
                          dnnl_memory_desc_t *desc) {
  dnnl_dims_t dims = {rows, cols}, strides = {transposed ? 1 : cols, transposed ? rows : 1};
  must(dnnl_memory_desc_init_by_strides(desc, 2, dims, dnnl_f32, strides));
  dnnl_memory_t memory;
  must(dnnl_memory_create(&memory, desc, matmul.engine, data));
  int place = arg == DNNL_ARG_SRC ? 0 : arg == DNNL_ARG_WEIGHTS ? 1 : 2;
  matmul.args[place] = (dnnl_exec_arg_t){arg, memory};
}

static bool matmul_prepare(const shape *s) {
  if (matmul.engine == NULL) {
    must(dnnl_engine_create(&matmul.engine, dnnl_cpu, 0));
    must(dnnl_stream_create(&matmul.stream, matmul.engine, dnnl_stream_default_flags));
  } else {
    dnnl_primitive_destroy(matmul.primitive);
    for (int i = 0; i < 3; i++) dnnl_memory_destroy(matmul.args[i].memory);
  }
  dnnl_memory_desc_t a, b, c;
  matmul_memory(DNNL_ARG_SRC, s->m, s->k, s->ta, s->a, &a);
  matmul_memory(DNNL_ARG_WEIGHTS, s->k, s->n, s->tb, s->b, &b);
  matmul_memory(DNNL_ARG_DST, s->m, s->n, 0, s->c, &c);
  dnnl_matmul_desc_t desc;
  must(dnnl_matmul_desc_init(&desc, &a, &b, NULL, &c));
  dnnl_primitive_attr_t attr;
  dnnl_post_ops_t post;
  must(dnnl_primitive_attr_create(&attr));
  must(dnnl_post_ops_create(&post));
  if (s->ta) must(dnnl_post_ops_append_sum(post, 1));
  must(dnnl_primitive_attr_set_post_ops(attr, post));
  dnnl_primitive_desc_t chosen;
  must(dnnl_primitive_desc_create(&chosen, &desc, attr, matmul.engine, NULL));
  must(dnnl_primitive_create(&matmul.primitive, chosen));
  dnnl_primitive_desc_destroy(chosen);
  dnnl_post_ops_destroy(post);
  dnnl_primitive_attr_destroy(attr);
  return true;
}

static void matmul_multiply(const shape *s) {
  (void)s;
  dnnl_primitive_execute(matmul.primitive, matmul.stream, 3, matmul.args);
  dnnl_stream_wait(matmul.stream);
}
#endif

/* ---- libxsmm: matrices lie in columns there, so c^T = b^T * a^T ---- */

#ifdef HAVE_LIBXSMM
static struct {
  libxsmm_smmfunction kernel;
  float *turned; /* b, when it was transposed */
} xsmm;

static bool xsmm_prepare(const shape *s) {
  int lda = (int)s->n, ldb = (int)(s->ta ? s->m : s->k), ldc = (int)s->n;
  float alpha = 1, beta = s->ta ? 1 : 0;
  int flags = s->ta ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  xsmm.kernel =
      libxsmm_smmdispatch((int)s->n, (int)s->m, (int)s->k, &lda, &ldb, &ldc, &alpha, &beta, &flags, NULL);
  free(xsmm.turned);
  xsmm.turned = s->tb ? floats((size_t)s->k * s->n) : NULL;
  return xsmm.kernel != NULL;
}

static void xsmm_multiply(const shape *s) {
  if (s->tb) libxsmm_otrans(xsmm.turned, s->b, sizeof(float), (int)s->k, (int)s->n, (int)s->k, (int)s->n);
  xsmm.kernel(s->tb ? xsmm.turned : s->b, s->a, s->c);
}
#endif

static const library libraries[] = {
    {"shoal", ours_prepare, ours_multiply},
#ifdef HAVE_OPENBLAS
    {"openblas", openblas_prepare, openblas_multiply},
#endif
#ifdef HAVE_ONEDNN
    {"onednn-sgemm", onednn_prepare, onednn_multiply},
    {"onednn-matmul", matmul_prepare, matmul_multiply},
#endif
#ifdef HAVE_LIBXSMM
    {"libxsmm", xsmm_prepare, xsmm_multiply},
#endif
};
enum { LIBRARIES_COUNT = sizeof libraries / sizeof libraries[0] };

/* ---- measuring ---- */

static float number(size_t i) { return (float)((i * 2654435761u >> 7) % 1021) / 1021 - 0.5f; }

static void open_shape(shape *s) {
  size_t a = (size_t)s->m * s->k, b = (size_t)s->k * s->n, c = (size_t)s->m * s->n;
  s->a = floats(a);
  s->b = floats(b);
  s->c = floats(c);
  for (size_t i = 0; i < a; i++) s->a[i] = number(i);
  for (size_t i = 0; i < b; i++) s->b[i] = number(i + 7);
}

static void close_shape(shape *s) {
  free(s->a);
  free(s->b);
  free(s->c);
}

static void start_c(const shape *s) {
  for (size_t i = 0; i < (size_t)s->m * s->n; i++) s->c[i] = number(i + 13);
}

/* Stops the program when a library computes something else than we do. */
static void compare(const shape *s, const library *l, const float *expected) {
  start_c(s);
  l->multiply(s);
  for (size_t i = 0; i < (size_t)s->m * s->n; i++) {
    if (fabsf(s->c[i] - expected[i]) <= 1e-4f * sqrtf((float)s->k) + 1e-5f) continue;
    fprintf(stderr, "gemm_peers: %s, %u x %u x %u: element %zu is %g and not %g\n", l->name, s->m, s->n, s->k,
            i, (double)s->c[i], (double)expected[i]);
    exit(1);
  }
}

static double time_calls(const shape *s, const library *l, uint64_t calls) {
  double start = now();
  for (uint64_t i = 0; i < calls; i++) l->multiply(s);
  return now() - start;
}

/* How many calls take about `seconds`; warms up as well. */
static uint64_t count_calls(const shape *s, const library *l, double seconds) {
  uint64_t calls = 1;
  double tried;
  while ((tried = time_calls(s, l, calls)) < seconds / 4) calls *= 2;
  calls = (uint64_t)((double)calls * seconds / tried);
  return calls > 0 ? calls : 1;
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double values[ROUNDS]) {
  qsort(values, ROUNDS, sizeof *values, compare_reals);
  return values[ROUNDS / 2];
}

static void print_line(const shape *s, const library *l, double rates[ROUNDS], double ratios[ROUNDS]) {
  double gflops = median(rates), best = rates[ROUNDS - 1]; /* they are sorted now */
  printf("{\"library\":\"%s\",\"m\":%u,\"n\":%u,\"k\":%u,\"ta\":%d,\"tb\":%d,\"gflops\":%.2f,"
         "\"best_gflops\":%.2f,\"ours_by_this\":%.3f}\n",
         l->name, s->m, s->n, s->k, s->ta, s->tb, gflops, best, median(ratios));
}

static void measure(const shape *s, double seconds) {
  bool has[LIBRARIES_COUNT];
  uint64_t calls[LIBRARIES_COUNT];
  double rates[LIBRARIES_COUNT][ROUNDS], flops = 2.0 * s->m * s->n * s->k;
  size_t count = (size_t)s->m * s->n;
  float *expected = floats(count);
  for (int i = 0; i < LIBRARIES_COUNT; i++) {
    const library *l = &libraries[i];
    has[i] = l->prepare(s);
    if (!has[i]) continue;
    if (i == 0) {
      start_c(s);
      l->multiply(s);
      memcpy(expected, s->c, count * sizeof *expected);
    }
    compare(s, l, expected);
    calls[i] = count_calls(s, l, seconds / ROUNDS / LIBRARIES_COUNT);
  }
  for (int r = 0; r < ROUNDS; r++)
    for (int i = 0; i < LIBRARIES_COUNT; i++)
      if (has[i]) rates[i][r] = flops * (double)calls[i] / time_calls(s, &libraries[i], calls[i]) / 1e9;
  double ratios[LIBRARIES_COUNT][ROUNDS]; /* before the rates are sorted */
  for (int i = 0; i < LIBRARIES_COUNT; i++)
    for (int r = 0; r < ROUNDS && has[i]; r++) ratios[i][r] = rates[0][r] / rates[i][r];
  for (int i = 0; i < LIBRARIES_COUNT; i++)
    if (has[i]) print_line(s, &libraries[i], rates[i], ratios[i]);
  fflush(stdout);
  free(expected);
}

int main(int argc, char **argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 0.5;
  if (argc > 2 || seconds <= 0) die("usage: gemm_peers [SECONDS] < SHAPES");
  if (shoal_kernels_get() == NULL) die("SHOAL_KERNELS names kernels that cannot run here");
  /* OpenMP reads its number of threads before main begins. */
  const char *threads = getenv("OMP_NUM_THREADS");
  if (threads == NULL || strcmp(threads, "1") != 0) {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
    die("cannot start again with OMP_NUM_THREADS=1");
  }
  shape s;
  int got;
  while ((got = scanf("%u %u %u %d %d", &s.m, &s.n, &s.k, &s.ta, &s.tb)) == 5) {
    if (s.m < 1 || s.n < 1 || s.k < 1 || s.m > 100000 || s.n > 100000 || s.k > 100000)
      die("a size is not in 1 .. 100000");
    open_shape(&s);
    measure(&s, seconds);
    close_shape(&s);
  }
  if (got != EOF) die("a line is not: m n k ta tb");
  return 0;
}
