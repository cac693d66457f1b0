/* apng.h: an animated PNG as bytes, picture by picture.
 *
 * begin, then add for every picture, then end; each adds to `out`, which may be written away and cleared
 * between calls. A picture that is not the first may be only the part of it that changed. It is shown again
 * from the beginning after its end; who knows only PNG sees the first picture. How many pictures there are
 * stands in front of them: that chunk is put right at the end (shoal_apng_count).
 *
 * Ownership: none; when memory runs out, out->failed is set. Threads: none. */
#ifndef SHOAL_AGENT_APNG_H
#define SHOAL_AGENT_APNG_H

#include "agent/picture.h"

enum { SHOAL_APNG_TICKS = 1000, SHOAL_APNG_TICKS_MAX = 65535 }; /* in a second; that a picture can stay */
enum { SHOAL_APNG_COUNT_AT = 33 };                              /* where the chunk of the count stands */

void shoal_apng_begin(shoal_text *out, uint32_t width, uint32_t height, const uint8_t rgb[SHOAL_COLOURS][3]);
/* `sequence` counts chunks: 0 before the first picture, and this function's own from then on. */
void shoal_apng_add(shoal_text *out, uint32_t *sequence, const shoal_part *part, uint32_t ticks);
void shoal_apng_end(shoal_text *out);
/* The chunk that says how many pictures there are. */
void shoal_apng_count(shoal_text *out, uint32_t pictures);

#endif
