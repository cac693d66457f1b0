/* lanes.h: the order of samples with `shuffle lanes`, as a pure function.
 *
 * Samples lie in blocks, of about a chunk each. In every epoch the blocks are shuffled and laid in a row;
 * the row is cut into lanes, one for each part of a round, as long as what that part takes in all rounds.
 * In a lane samples are shuffled within windows of a few blocks. So whoever computes one part of every
 * round reads the blocks of one lane and, at a time, those of one window; and every sample is there exactly
 * once an epoch.
 *
 *   blocks, shuffled   | 7      | 2      | 0      | 5      | 1      | ...
 *   lanes              | lane 0           | lane 1           | ...
 *   windows            | w0     | w1      | w0     | w1      | ...
 *
 * Samples are numbered in the order in which they are stored. Which lane a position of the epoch belongs to
 * is the caller's: parts of rounds, or whole rounds.
 *
 * Ownership: create, then destroy; the configuration is copied. Threads: any, once created. */
#ifndef SHOAL_DATA_LANES_H
#define SHOAL_DATA_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_lanes shoal_lanes;

/* Who gets which rows of a round. */
typedef struct shoal_deal {
  uint32_t lanes;
  /* Lane v has rows starts[v] .. starts[v + 1] - 1 of a whole round, and of the last one likewise: lanes +
   * 1 numbers each, from 0 to the round's rows. */
  const uint32_t *starts, *last_starts;
  const uint32_t *lane_of_round; /* or: lanes have whole rounds */
} shoal_deal;

typedef struct shoal_lanes_config {
  uint64_t seed;
  uint64_t samples;
  uint32_t batch;
  const uint64_t *blocks; /* block b has samples blocks[b] .. blocks[b + 1] - 1: blocks_count + 1 numbers */
  uint64_t blocks_count;
  shoal_deal deal;
} shoal_lanes_config;

shoal_status shoal_lanes_create(shoal_lanes **out, const shoal_lanes_config *config, shoal_error *err);
void shoal_lanes_destroy(shoal_lanes *lanes);

/* The samples at n positions of an epoch, from `first` on. */
void shoal_lanes_at(shoal_lanes *lanes, uint64_t epoch, uint64_t first, uint32_t n, uint64_t *samples);
/* The blocks that the lane of a position reads from that position's window on, in its order: at most
 * `most`. */
uint32_t shoal_lanes_ahead(shoal_lanes *lanes, uint64_t epoch, uint64_t position, uint64_t *blocks,
                           uint32_t most);
/* The first position of an epoch that is in the same lane as this one. */
uint64_t shoal_lanes_first(const shoal_lanes *lanes, uint64_t position);

#endif
