/* movie.h: canvases one after the other, as an animated GIF or PNG in a file.
 *
 * Pictures go to the file as they come, under a temporary name; it is there, whole, after finish. Only what
 * changed from picture to picture is written. Pictures that come faster than the format can show them
 * (fifty a second in a GIF) are left out, and those that do not differ are shown longer instead.
 *
 * Ownership: create, then finish or abandon. Threads: one at a time. */
#ifndef SHOAL_AGENT_MOVIE_H
#define SHOAL_AGENT_MOVIE_H

#include "agent/picture.h"
#include "base/status.h"

typedef struct shoal_movie shoal_movie;

typedef enum shoal_movie_format { SHOAL_MOVIE_GIF, SHOAL_MOVIE_APNG } shoal_movie_format;

enum { SHOAL_MOVIE_SIDE_MIN = 16, SHOAL_MOVIE_SIDE_MAX = 4096 };

typedef struct shoal_movie_config {
  shoal_movie_format format;
  uint32_t width, height;
  bool dark;
} shoal_movie_config;

/* SHOAL_UNSUPPORTED: an APNG into a pipe, which cannot be gone back in. */
shoal_status shoal_movie_create(shoal_movie **out, const char *path, const shoal_movie_config *config,
                                shoal_error *err);
/* A picture that stays for so long. What goes wrong is told by finish. */
void shoal_movie_add(shoal_movie *movie, const shoal_canvas *canvas, double seconds);

typedef struct shoal_movie_view {
  uint32_t pictures;
  double seconds;
  uint64_t bytes;
} shoal_movie_view;

/* Writes what is left, puts the file in its place and destroys the movie, whether or not that succeeded.
 * SHOAL_INVALID: there was no picture. */
shoal_status shoal_movie_finish(shoal_movie *movie, shoal_movie_view *out, shoal_error *err);
void shoal_movie_abandon(shoal_movie *movie); /* NULL is fine */

#endif
