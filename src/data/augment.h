/* augment.h: training images, flipped and moved at random.
 *
 * How an image is changed is a pure function of seed, epoch and the image's number: whoever computes it, on
 * whatever machine and in whatever order, comes to the same bytes. What moves in from beyond the border is the
 * border's own colour.
 *
 * Threads: any. */
#ifndef SHOAL_DATA_AUGMENT_H
#define SHOAL_DATA_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "nn/model.h"

/* One image of one epoch. */
typedef struct shoal_augmented {
  bool flipped;        /* left and right change places */
  int32_t down, right; /* pixels that the window moves by */
} shoal_augmented;

shoal_augmented shoal_augment_draw(const shoal_augment *augment, uint64_t seed, uint64_t epoch,
                                   uint64_t number);
/* Pixels x .. x + count - 1 of row y of the changed image; `plane` is a channel of the image, h x w. */
void shoal_augment_pixels(const shoal_augmented *how, const uint8_t *plane, uint32_t h, uint32_t w,
                          uint32_t y, uint32_t x, uint32_t count, uint8_t *out);

#endif
