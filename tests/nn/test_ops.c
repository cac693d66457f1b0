/* Every row of the table of operations is whole, and its words lead back to it. */
#include "check.h"

#include <string.h>

#include "nn/op.h"

static void words_are_unique_and_lead_to_their_rows(void **state) {
  (void)state;
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const shoal_op *op = shoal_ops[i];
    assert_ptr_equal(shoal_op_named(op->word, strlen(op->word)), op->is_inner ? NULL : op);
    for (uint32_t j = 0; j < i; j++) assert_string_not_equal(op->word, shoal_ops[j]->word);
  }
  assert_null(shoal_op_named("dens", 4));
  assert_null(shoal_op_named("", 0));
}

/* A row that makes nodes can compute, learn and be exported. One that only stands for a line makes nodes of others. */
static void rows_are_whole(void **state) {
  (void)state;
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const shoal_op *op = shoal_ops[i];
    bool learns = op->backward != NULL || shoal_op_is(op, SHOAL_OP_PASSES_GRADIENT | SHOAL_OP_INPUT);
    assert_true(op->forward != NULL ? op->onnx != NULL && learns : op->lower != NULL && op->backward == NULL);
    assert_true((op->read == NULL) == (op->write == NULL));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_are_unique_and_lead_to_their_rows),
      cmocka_unit_test(rows_are_whole),
  };
  return RUN_TESTS(tests);
}
