/* table.c: see table.h. */
#include "nn/ops/table.h"

#include <string.h>

#define ENTRY(name) &shoal_op_##name,
const shoal_op *const shoal_ops[] = {SHOAL_EACH_OP(ENTRY)};
const uint32_t shoal_ops_count = sizeof shoal_ops / sizeof shoal_ops[0];
_Static_assert(sizeof shoal_ops / sizeof shoal_ops[0] <= SHOAL_OPS_MAX, "make SHOAL_OPS_MAX larger");
const shoal_op *const shoal_activation_op = &shoal_op_activation;

const shoal_op *shoal_op_named(const char *word, size_t length) {
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const shoal_op *op = shoal_ops[i];
    if (!op->is_inner && strlen(op->word) == length && memcmp(op->word, word, length) == 0) return op;
  }
  return NULL;
}
