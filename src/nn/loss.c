/* loss.c: see loss.h. */
#include "nn/loss.h"

#include "nn/model_internal.h"

#define EACH_LOSS(X)                                                                                      \
  X(SHOAL_CROSS_ENTROPY, "cross-entropy", .targets = SHOAL_TARGET_CLASSES, .output = SHOAL_ACT_SOFTMAX)   \
  X(SHOAL_BINARY_CROSS_ENTROPY, "binary-cross-entropy", .targets = SHOAL_TARGET_TWO,                      \
    .output = SHOAL_ACT_SIGMOID, .element = SHOAL_LOSS_BINARY)                                            \
  X(SHOAL_MEAN_SQUARED, "mean-squared", .targets = SHOAL_TARGET_NUMBER, .element = SHOAL_LOSS_SQUARED)    \
  X(SHOAL_MEAN_ABSOLUTE, "mean-absolute", .targets = SHOAL_TARGET_NUMBER, .element = SHOAL_LOSS_ABSOLUTE) \
  X(SHOAL_HUBER, "huber", .targets = SHOAL_TARGET_NUMBER, .element = SHOAL_LOSS_HUBER, .has_delta = true)

const char *const shoal_loss_words[] = {EACH_LOSS(SHOAL_WORD_OF) NULL};
const shoal_loss_row shoal_loss_rows[] = {EACH_LOSS(SHOAL_ROW_OF)};
