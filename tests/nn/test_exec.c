/* Exec: data that is mostly zeros is multiplied in another way, with the same bits, and so are products that threads
 * share. */
#include "base/random.h"
#include "nn/op.h"
#include "rig.h"
#include "synthetic.h"

enum { SAMPLES = 70, TILES = 3, STEPS = 5, THREADS_MAX = 5 };

static const char *const NETS[] = {
    "input 108\ndense 64 relu\ndense 32 relu\ndense 2\nloss cross-entropy\n",
    "input 57\ndense 37 tanh\ndense 3\nloss mean-squared\n",
    "input 40\ndense 150 no-bias\nloss cross-entropy\n",
    "x: input 90\na: dense 40 tanh\nb: dense 33 gelu from x\nconcat a x\ndense 3\nloss mean-squared\n",
};

static uint32_t sparse_calls;

static void counted_gemm_sparse(const shoal_gemm *gemm, const shoal_sparse *a) {
  sparse_calls++;
  shoal_kernels_get()->gemm_sparse(gemm, a);
}

static bool never_sparse(uint32_t m, uint32_t k, const float *a, uint32_t most, shoal_sparse *out) {
  (void)m, (void)k, (void)a, (void)most, (void)out;
  return false;
}

/* Categories of ten values each, one of them set; every third tile is as `synthetic` made it. */
static void make_one_hot(const shoal_graph *graph, uint32_t n, uint32_t tile, const shoal_batch *batch) {
  uint32_t values = graph->nodes[0].shape.features;
  if (tile % 3 == 2 || graph->nodes[0].shape.kind != SHOAL_VECTOR) return;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < values; j++) {
      float *x = &batch->x[(size_t)i * values + j];
      if ((i + 7 * tile + 3 * (j / 10)) % 10 != j % 10) *x = 0;
    }
}

enum { TEAM_SCRATCH = 1 << 19 }; /* floats; more than any product or convolution here needs */

/* The threads that share the work on a tile. */
typedef struct team {
  shoal_pool *pool;
  float *scratch;
  size_t scratch_floats;
} team;

static void team_open(team *t, uint32_t threads) {
  t->scratch_floats = TEAM_SCRATCH;
  t->scratch = rig_floats((threads - 1) * t->scratch_floats);
  assert_int_equal(shoal_pool_create(&t->pool, threads, NULL), SHOAL_OK);
}

static void team_close(team *t) {
  shoal_pool_destroy(t->pool);
  free(t->scratch);
}

static shoal_exec exec_of(const team *t) {
  return (shoal_exec){.team = t->pool, .team_scratch = t->scratch, .scratch_floats = t->scratch_floats};
}

/* A few steps down the gradient, tiles of different sizes; `weights` is what they lead to. */
static void train(const char *text, const shoal_kernels *kernels, const team *with, char sha256[65]) {
  rig r;
  rig_open(&r, text, kernels, SHOAL_PLAN_TRAIN, SAMPLES);
  memset(r.exec.block, 0xff, r.plan->floats * sizeof(float));
  synthetic data = {r.graph, 5};
  for (uint32_t i = 0; with != NULL && i < r.graph->nodes_count; i++) {
    const shoal_node *node = &r.graph->nodes[i];
    for (int back = 0; back < 2 && node->op->scratch != NULL; back++)
      assert_true(node->op->scratch(node, kernels, SAMPLES, back) <= with->scratch_floats);
  }
  if (with != NULL) {
    r.exec.team = with->pool;
    r.exec.team_scratch = with->scratch;
    r.exec.scratch_floats = with->scratch_floats;
  }
  r.exec.round_n = TILES * SAMPLES;
  for (uint32_t s = 0; s < STEPS; s++) {
    shoal_exec_clear(r.plan, r.gradient, NULL);
    for (uint32_t tile = 0; tile < TILES; tile++) {
      shoal_sums sums = {0};
      r.exec.fresh = tile == 0;
      r.exec.n = SAMPLES - 9 * tile;
      shoal_batch batch = shoal_exec_batch(&r.exec);
      synthetic_fetch(&data, 0, (uint64_t)s * TILES * SAMPLES + tile * SAMPLES, r.exec.n, &batch);
      make_one_hot(r.graph, r.exec.n, s + tile, &batch);
      shoal_exec_forward(&r.exec);
      shoal_exec_loss(&r.exec, &sums);
      shoal_exec_backward(&r.exec);
    }
    for (size_t i = 0; i < r.graph->weights_count; i++) r.weights[i] -= 0.1f * r.gradient[i];
  }
  shoal_graph_weights_sha256(r.graph, r.weights, sha256);
  rig_close(&r);
}

static void zeros_may_be_left_out_or_multiplied(void **unused) {
  (void)unused;
  shoal_kernels leaves_out = *shoal_kernels_get(), multiplies = leaves_out;
  leaves_out.gemm_sparse = counted_gemm_sparse;
  multiplies.gemm_sparse = counted_gemm_sparse;
  multiplies.sparse_rows = never_sparse;
  for (size_t i = 0; i < sizeof NETS / sizeof *NETS; i++) {
    char with[65], without[65];
    sparse_calls = 0;
    train(NETS[i], &multiplies, NULL, with);
    assert_int_equal(sparse_calls, 0);
    train(NETS[i], &leaves_out, NULL, without);
    uint32_t layers = i == 3 ? 2 : 1, tiles = 0;
    for (uint32_t s = 0; s < STEPS; s++)
      for (uint32_t tile = 0; tile < TILES; tile++) tiles += (s + tile) % 3 != 2;
    assert_int_equal(sparse_calls, 2 * layers * tiles);
    assert_string_equal(with, without);
  }
}

/* Zeros left out; images with fewer vectors of samples than threads, by Winograd's way and directly; rows. */
static const char *const TEAM_NETS[] = {
    "input 300\ndense 200 relu\ndense 2\nloss cross-entropy\n",
    "input 8x9x9\nconv 9 3x3 pad 1 relu\nconv 17 5x5 pad 2\nbatchnorm tanh\nconv 8 3x3 pad 1 no-bias\n"
    "pool max 2x2\ndense 3\nloss cross-entropy\n",
    "x: input 3x16x16\na: conv 8 3x3 stride 2 pad 1 relu\nb: conv 8 3x3 stride 2 pad 1 from x\nconcat a\n"
    "conv 8 3x3 pad 1\nadd a\nlayernorm\npool average 2x2\ndense 3\nloss mean-squared\n",
    "x: input sequence 9x24\na: dense 40 softmax\nb: layernorm from x\nconcat a\ngru 40\ndropout "
    "0.2\ndense 3\n"
    "loss mean-squared\n",
};

static void a_team_computes_the_same_bits(void **unused) {
  (void)unused;
  static const uint32_t threads[] = {2, 3, 5, 16, 80};
  for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
    team shared;
    team_open(&shared, threads[i]);
    for (size_t net = 0; net < sizeof TEAM_NETS / sizeof *TEAM_NETS; net++) {
      char alone[65], together[65];
      train(TEAM_NETS[net], shoal_kernels_get(), NULL, alone);
      train(TEAM_NETS[net], shoal_kernels_get(), &shared, together);
      if (strcmp(together, alone) != 0)
        fail_msg("%u threads compute something else:\n%s", threads[i], TEAM_NETS[net]);
    }
    team_close(&shared);
  }
}

static float *noise(size_t count, uint64_t which) {
  float *made = rig_floats(count);
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, which, 0);
  for (size_t i = 0; i < count; i++) made[i] = shoal_random_uniform(key, i) - 0.5f;
  return made;
}

typedef struct product_case {
  uint32_t m, n, k;
} product_case;

/* Layouts and starts are counted through: a and b turned or not, zero, bias or what c holds. */
enum { VARIANTS = 12 };

static void check_product(const shoal_kernels *kernels, const team teams[THREADS_MAX], product_case t,
                          int variant) {
  const size_t c_row = t.n + 3, c_count = (t.m - 1) * c_row + t.n;
  bool a_turned = variant % 2 == 1, b_turned = variant / 2 % 2 == 1;
  float *a = noise((size_t)t.m * t.k, 0), *b = noise((size_t)t.k * t.n, 1), *bias = noise(t.n, 2);
  float *start = noise(c_count, 3), *alone = rig_floats(c_count), *together = rig_floats(c_count);
  shoal_gemm g = {.m = t.m,
                  .n = t.n,
                  .k = t.k,
                  .a = a,
                  .a_row = a_turned ? 1 : t.k,
                  .a_col = a_turned ? t.m : 1,
                  .b = b,
                  .b_row = b_turned ? 1 : t.n,
                  .b_col = b_turned ? t.k : 1,
                  .c = alone,
                  .c_row = c_row,
                  .bias = variant / 4 == 1 ? bias : NULL,
                  .accumulate = variant / 4 == 2,
                  .scratch = rig_floats(kernels->gemm_scratch(t.m, t.n, t.k))};
  memcpy(alone, start, c_count * sizeof *alone);
  kernels->gemm(&g);
  g.c = together;
  for (int i = 0; i < THREADS_MAX; i++) {
    memcpy(together, start, c_count * sizeof *together);
    shoal_exec exec = exec_of(&teams[i]);
    shoal_call_gemm(&(shoal_call){.exec = &exec, .kernels = kernels, .scratch = g.scratch}, g);
    assert_memory_equal(together, alone, c_count * sizeof *alone);
  }
  free(a);
  free(b);
  free(bias);
  free(start);
  free(alone);
  free(together);
  free(g.scratch);
}

static void a_team_multiplies_to_the_same_bits(void **unused) {
  (void)unused;
  /* Shared by rows, by columns, with fewer bands than threads, and too small to be shared. */
  static const product_case cases[] = {{70, 31, 97},  {20, 800, 50},   {800, 20, 50}, {1, 640, 300},
                                       {640, 1, 300}, {101, 103, 107}, {13, 33, 600}, {200, 650, 20},
                                       {300, 512, 1}, {64, 64, 0},     {3, 5, 7}};
  const shoal_kernels *kernels = shoal_kernels_get();
  assert_non_null(kernels);
  team teams[THREADS_MAX];
  for (uint32_t i = 0; i < THREADS_MAX; i++) team_open(&teams[i], i + 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int variant = 0; variant < VARIANTS; variant++) check_product(kernels, teams, cases[i], variant);
  for (int i = 0; i < THREADS_MAX; i++) team_close(&teams[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zeros_may_be_left_out_or_multiplied),
      cmocka_unit_test(a_team_computes_the_same_bits),
      cmocka_unit_test(a_team_multiplies_to_the_same_bits),
  };
  return RUN_TESTS(tests);
}
