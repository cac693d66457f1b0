/* augment.c: see augment.h. */
#include "data/augment.h"

#include <string.h>

#include "base/random.h"

shoal_augmented shoal_augment_draw(const shoal_augment *augment, uint64_t seed, uint64_t epoch,
                                   uint64_t number) {
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_AUGMENT, epoch, number);
  uint64_t places = 2 * (uint64_t)augment->crop + 1;
  return (shoal_augmented){.flipped = augment->flip && shoal_random_below(key, 0, 2) == 1,
                           .down = (int32_t)shoal_random_below(key, 1, places) - (int32_t)augment->crop,
                           .right = (int32_t)shoal_random_below(key, 2, places) - (int32_t)augment->crop};
}

static uint32_t within(int64_t at, uint32_t size) {
  return at < 0 ? 0 : at >= size ? size - 1 : (uint32_t)at;
}

void shoal_augment_pixels(const shoal_augmented *how, const uint8_t *plane, uint32_t h, uint32_t w,
                          uint32_t y, uint32_t x, uint32_t count, uint8_t *out) {
  const uint8_t *row = plane + (size_t)within((int64_t)y + how->down, h) * w;
  for (uint32_t i = 0; i < count; i++) {
    int64_t at = how->flipped ? (int64_t)w - 1 - x - i : (int64_t)x + i;
    out[i] = row[within(at + how->right, w)];
  }
}
