/* gif.h: an animated GIF (version 89a) as bytes, picture by picture.
 *
 * begin, then add for every picture, then end; each adds to `out`, which may be written away and cleared
 * between calls. A picture that is not the first may be only the part of it that changed. It is shown again
 * from the beginning after its end.
 *
 * Ownership: none; when memory runs out, out->failed is set. Threads: none. */
#ifndef SHOAL_AGENT_GIF_H
#define SHOAL_AGENT_GIF_H

#include "agent/picture.h"

enum { SHOAL_GIF_TICKS = 100, SHOAL_GIF_TICKS_MAX = 65535 }; /* in a second; that a picture can stay */

void shoal_gif_begin(shoal_text *out, uint32_t width, uint32_t height, const uint8_t rgb[SHOAL_COLOURS][3]);
void shoal_gif_add(shoal_text *out, const shoal_part *part, uint32_t ticks);
void shoal_gif_end(shoal_text *out);

#endif
