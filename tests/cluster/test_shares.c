/* The weights of a graph, cut among owners: all of them, once; and shares that no message could hold are
 * refused. */
#include "cluster/shares.h"

#include <string.h>

#include "check.h"

static const char MODEL[] = "input 20\ndense 300 tanh\ndense 700 tanh\ndense 3\nloss cross-entropy\n";

/* A graph and its shares. */
typedef struct cut {
  shoal_model *model;
  shoal_graph *graph;
  shoal_shares shares;
} cut;

static void make(cut *c, uint32_t owners) {
  shoal_error err;
  *c = (cut){0};
  if (shoal_model_parse(&c->model, "model", MODEL, strlen(MODEL), &err) != SHOAL_OK ||
      shoal_graph_create(&c->graph, c->model, &err) != SHOAL_OK ||
      shoal_shares_init(&c->shares, c->graph, owners, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

static void release(cut *c) {
  shoal_shares_release(&c->shares);
  shoal_shares_release(&c->shares); /* twice is fine */
  shoal_graph_destroy(c->graph);
  shoal_model_destroy(c->model);
}

static void every_weight_has_one_owner(void **state) {
  (void)state;
  for (uint32_t owners = 1; owners <= 9; owners++) {
    cut c;
    make(&c, owners);
    assert_int_equal(c.shares.slices_count, owners);
    size_t next = 0, runs = 0;
    for (uint32_t s = 0; s < owners; s++) {
      assert_int_equal(c.shares.slices[s].offset, next);
      assert_int_equal(c.shares.slices[s].first_run, runs);
      next += c.shares.slices[s].count;
      runs += c.shares.slices[s].runs_count;
    }
    assert_int_equal(next, c.graph->weights_count);
    assert_int_equal(runs, c.graph->runs_count);
    release(&c);
  }
}

static void a_share_that_no_message_holds_is_refused(void **state) {
  (void)state;
  cut c;
  shoal_error err;
  make(&c, 1);
  uint64_t bytes = c.graph->weights_count * sizeof(float);
  assert_int_equal(shoal_shares_fit(&c.shares, 1, bytes, &err), SHOAL_OK);
  assert_int_equal(shoal_shares_fit(&c.shares, 3, 3 * bytes, &err), SHOAL_OK);
  assert_int_equal(shoal_shares_fit(&c.shares, 3, 3 * bytes - 1, &err), SHOAL_LIMIT);
  /* As large as such a model would be. */
  c.shares.slices[0].count = 425000000;
  assert_int_equal(shoal_shares_fit(&c.shares, 3, (uint64_t)4 << 30, &err), SHOAL_LIMIT);
  assert_string_equal(err.text, "parameter server 0 would hold 5.1 GB, and a message at most 4.3 GB; add "
                                "parameter servers (--ps)");
  release(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_weight_has_one_owner),
      cmocka_unit_test(a_share_that_no_message_holds_is_refused),
  };
  return RUN_TESTS(tests);
}
