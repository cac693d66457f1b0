/* loss.h: the facts of every loss, a row each, in the order of their enum. The list of them is in loss.c. */
#ifndef SHOAL_NN_LOSS_H
#define SHOAL_NN_LOSS_H

#include "nn/model.h"

/* What is to be foretold of a sample, or of each step. */
typedef enum shoal_target_kind {
  SHOAL_TARGET_CLASSES, /* the right one of several classes: a label */
  SHOAL_TARGET_TWO,     /* 0 or 1 for each output */
  SHOAL_TARGET_NUMBER,  /* a number for each output */
} shoal_target_kind;

typedef struct shoal_loss_row {
  shoal_target_kind targets;  /* of classes and of two, answers are right or wrong: there is an accuracy */
  shoal_activation output;    /* it computes this activation itself, and takes what comes before it */
  shoal_element_loss element; /* not for classes */
  bool has_delta;             /* takes `delta`: where it turns from square to straight */
} shoal_loss_row;

extern const shoal_loss_row shoal_loss_rows[];

static inline shoal_target_kind shoal_targets_of(const shoal_recipe *recipe) {
  return shoal_loss_rows[recipe->loss].targets;
}

#endif
