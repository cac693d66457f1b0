/* clone.h: imitates the best episodes so far (filtered cloning).
 *
 * Episodes whose return reaches a bar are kept, and the network is fitted to what was done in them by
 * cross-entropy, a few epochs over all that is kept; actors then play with the new weights. The bar begins
 * at a share of the way from the worst return to the environment's goal, and rises with the mean of what is
 * played: nobody learns from less than is reached already. What is kept is bounded.
 *
 * The algorithm's functions are in learner_internal.h; what is here is its part that can be tested. */
#ifndef SHOAL_AGENT_CLONE_H
#define SHOAL_AGENT_CLONE_H

#include "agent/episodes.h"

/* The return that an episode must reach to be kept. goal: NAN where none is stated. */
double shoal_clone_bar(const shoal_episodes_view *view, double goal, double share);

#endif
