/* Exec: data that is mostly zeros is multiplied in another way, with the same bits. */
#include "rig.h"
#include "synthetic.h"

enum { SAMPLES = 70, TILES = 3, STEPS = 5 };

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
  if (tile % 3 == 2) return;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < values; j++) {
      float *x = &batch->x[(size_t)i * values + j];
      if ((i + 7 * tile + 3 * (j / 10)) % 10 != j % 10) *x = 0;
    }
}

/* A few steps down the gradient, tiles of different sizes; `weights` is what they lead to. */
static void train(const char *text, const shoal_kernels *kernels, shoal_team *team, char sha256[65]) {
  rig r;
  rig_open(&r, text, kernels, SHOAL_PLAN_TRAIN, SAMPLES);
  memset(r.exec.block, 0xff, r.plan->floats * sizeof(float));
  synthetic data = {r.graph, 5};
  r.exec.team = team;
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

static void a_team_leaves_out_zeros_to_the_same_bits(void **unused) {
  (void)unused;
  static const char net[] = "input 300\ndense 200 relu\ndense 2\nloss cross-entropy\n";
  shoal_error err = {0};
  char alone[65], together[65];
  size_t scratch = shoal_kernels_get()->gemm_scratch(UINT32_MAX, UINT32_MAX, UINT32_MAX);
  train(net, shoal_kernels_get(), NULL, alone);
  for (uint32_t threads = 2; threads < 6; threads++) {
    shoal_team *team;
    assert_int_equal(shoal_team_create(&team, threads, (shoal_pool_place){0, 1, threads}, scratch, &err),
                     SHOAL_OK);
    train(net, shoal_kernels_get(), team, together);
    assert_string_equal(together, alone);
    shoal_team_destroy(team);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zeros_may_be_left_out_or_multiplied),
      cmocka_unit_test(a_team_leaves_out_zeros_to_the_same_bits),
  };
  return RUN_TESTS(tests);
}
