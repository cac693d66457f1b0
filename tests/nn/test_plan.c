/* The plan: memory is shared, and sharing never shows. */
#include "rig.h"
#include "synthetic.h"

enum { SAMPLES = 19 };

static const char *const NETS[] = {
    "input 2x9x9\na: conv 5 3x3 pad 1 tanh\nb: conv 5 3x3 pad 1 relu\nadd a\npool max 2x2\nbatchnorm "
    "gelu\ndropout 0.3\n"
    "dense 11 elu\nlayernorm\ndense 4 softmax\ndense 3\nloss mean-squared\nshards 1\n",
    "input tokens 6\nembed 13 7\na: lstm 5 layers 2 bidirectional\ndropout 0.2\ngru 6\nconcat a\nrnn "
    "4\ndense 5\n"
    "loss cross-entropy\n",
    "input 9\na: dense 8 silu\nb: dense 8 sigmoid\nc: dense 8 softplus from a\nadd a b\nconcat c a\nreshape "
    "2x3x4\n"
    "conv 3 2x2 leaky-relu\nglobal-pool min\nrepeat 3\nrnn 4 last\ndense 2\nloss huber\n",
    ("x: input 9\na: lookup 13 7 of 4 tanh\nb: dense 8\ndense 5 from x\nlayernorm\nconcat a b x\n"
     "dense 3\nloss mean-squared\n"),
};

/* One training step on a block that first holds `rubbish` in every byte. */
static double step(rig *r, int rubbish, uint32_t n) {
  memset(r->exec.block, rubbish, r->plan->floats * sizeof(float));
  memset(r->gradient, 0, r->graph->weights_count * sizeof(float));
  r->exec.fresh = false;
  r->exec.n = r->exec.round_n = n;
  synthetic made_up = {.graph = r->graph, .seed = 2};
  shoal_batch batch = shoal_exec_batch(&r->exec);
  synthetic_fetch(&made_up, 0, 0, n, &batch);
  shoal_sums sums = {0};
  shoal_exec_forward(&r->exec);
  shoal_exec_loss(&r->exec, &sums);
  if (r->plan->training) shoal_exec_backward(&r->exec);
  return sums.loss;
}

/* Bytes of 0xff are NaN in every float: whatever is read before it is written would show. */
static void nothing_is_read_before_it_is_written(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof NETS / sizeof NETS[0]; i++) {
    rig r;
    rig_open(&r, NETS[i], shoal_kernels_get(), SHOAL_PLAN_TRAIN, SAMPLES);
    size_t bytes = r.graph->weights_count * sizeof(float);
    float *clean = malloc(bytes);
    assert_non_null(clean);
    for (uint32_t n = 1; n <= SAMPLES; n += 9) {
      double loss = step(&r, 0, n);
      memcpy(clean, r.gradient, bytes);
      assert_true(loss == step(&r, 0xff, n));
      assert_memory_equal(clean, r.gradient, bytes);
    }
    free(clean);
    rig_close(&r);
  }
}

static void inference_agrees_whatever_the_block_held(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof NETS / sizeof NETS[0]; i++) {
    rig r;
    rig_open(&r, NETS[i], shoal_kernels_get(), SHOAL_PLAN_INFER, SAMPLES);
    assert_true(step(&r, 0, SAMPLES) == step(&r, 0xff, SAMPLES));
    rig_close(&r);
  }
}

static void buffers_whose_times_do_not_meet_share_memory(void **unused) {
  (void)unused;
  rig r;
  rig_open(&r,
           "input 1000\ndense 1000 tanh\ndense 1000 tanh\ndense 1000 tanh\ndense 1000 tanh\ndense 2\nloss "
           "mean-squared\n",
           shoal_kernels_get(), SHOAL_PLAN_INFER, SAMPLES);
  /* Two rows of activations at a time, and a packed panel of weights. */
  size_t activations = 0;
  for (uint32_t i = 0; i < r.graph->nodes_count; i++)
    activations += shoal_shape_floats(&r.graph->nodes[i].shape, SAMPLES);
  size_t scratch = shoal_kernels_get()->gemm_scratch(SAMPLES, 1000, 1000);
  assert_true(r.plan->floats < activations / 3 + scratch + 4096);
  rig_close(&r);
}

/* Sizes that the text may have, and a batch that flags may have, but not both. */
static void what_no_memory_could_hold_is_refused(void **unused) {
  (void)unused;
  static const char *const nets[] = {
      "input 2\nrepeat 1000000\ndense 1\nloss mean-squared\n", /* rows past 32 bits */
      "input 1\ndense 1000000000 no-bias\ngelu\ndense 1\nloss mean-squared\n",
  };
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
    shoal_model *model;
    shoal_graph *graph;
    shoal_plan *plan;
    shoal_error err = {0};
    shoal_device device = shoal_device_with(shoal_kernels_get());
    if (shoal_model_parse(&model, "test", nets[i], strlen(nets[i]), &err) != SHOAL_OK)
      fail_msg("%s", err.text);
    if (shoal_graph_create(&graph, model, &err) != SHOAL_OK) fail_msg("%s", err.text);
    for (int training = 0; training < 2; training++) {
      assert_int_equal(shoal_plan_create(&plan, graph, &device, training, SHOAL_BATCH_MAX, &err),
                       SHOAL_LIMIT);
      assert_null(plan);
      assert_non_null(strstr(err.text, "try a smaller --batch"));
    }
    shoal_graph_destroy(graph);
    shoal_model_destroy(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_read_before_it_is_written),
      cmocka_unit_test(inference_agrees_whatever_the_block_held),
      cmocka_unit_test(buffers_whose_times_do_not_meet_share_memory),
      cmocka_unit_test(what_no_memory_could_hold_is_refused),
  };
  return RUN_TESTS(tests);
}
