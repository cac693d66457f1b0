/* loss.h: the facts of every loss, a row each, in the order of their enum. The list of them is in loss.c. */
#ifndef SHOAL_NN_LOSS_H
#define SHOAL_NN_LOSS_H

#include "nn/model.h"

typedef struct shoal_loss_row {
  shoal_activation output;    /* it computes this activation itself, and takes what comes before it */
  bool counts_right;          /* answers are right or wrong: there is an accuracy; else an error */
  shoal_element_loss element; /* of all but cross-entropy */
  bool has_delta;             /* takes `delta`: where it turns from square to straight */
} shoal_loss_row;

extern const shoal_loss_row shoal_loss_rows[];

#endif
