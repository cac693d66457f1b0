/* loss.c: see loss.h. */
#include "nn/loss.h"

#include "nn/model_internal.h"

#define EACH_LOSS(X)                                                                                       \
  X(SHOAL_CROSS_ENTROPY, "cross-entropy", .output = SHOAL_ACT_SOFTMAX, .counts_right = true)               \
  X(SHOAL_BINARY_CROSS_ENTROPY, "binary-cross-entropy", .output = SHOAL_ACT_SIGMOID, .counts_right = true, \
    .element = SHOAL_LOSS_BINARY)                                                                          \
  X(SHOAL_MEAN_SQUARED, "mean-squared", .element = SHOAL_LOSS_SQUARED)                                     \
  X(SHOAL_MEAN_ABSOLUTE, "mean-absolute", .element = SHOAL_LOSS_ABSOLUTE)                                  \
  X(SHOAL_HUBER, "huber", .element = SHOAL_LOSS_HUBER, .has_delta = true)

const char *const shoal_loss_words[] = {EACH_LOSS(SHOAL_WORD_OF) NULL};
const shoal_loss_row shoal_loss_rows[] = {EACH_LOSS(SHOAL_ROW_OF)};
