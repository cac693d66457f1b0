/* movie.c: see movie.h. The newest picture is held back until it is known how long it is shown. */
#include "agent/movie.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/apng.h"
#include "agent/gif.h"
#include "base/file.h"

/* Times are counted in the format's ticks. */
static const struct {
  uint32_t ticks_per_second, least, most; /* least: viewers take shorter ones for a mistake, and slow down */
} formats[] = {
    [SHOAL_MOVIE_GIF] = {SHOAL_GIF_TICKS, 2, SHOAL_GIF_TICKS_MAX},
    [SHOAL_MOVIE_APNG] = {SHOAL_APNG_TICKS, 10, SHOAL_APNG_TICKS_MAX},
};

struct shoal_movie {
  shoal_movie_config config;
  shoal_writer *writer;
  char *path;
  uint8_t *shown, *held, *drawn, *scratch; /* in the file last; not yet; the newest */
  bool holds;
  double seconds;      /* until the end of the picture held */
  uint64_t held_since; /* ticks */
  uint32_t pictures, sequence;
  uint64_t bytes_count;
  bool failed;
  shoal_text bytes;
};

static shoal_status no_memory(shoal_error *err, const char *path) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "%s: not enough memory for pictures", path);
}

static void write_away(shoal_movie *movie) {
  movie->failed = movie->failed || movie->bytes.failed;
  if (!movie->failed) shoal_writer_add(movie->writer, movie->bytes.bytes, movie->bytes.length);
  movie->bytes_count += movie->bytes.length;
  shoal_text_clear(&movie->bytes);
}

/* How many pictures there are, where the beginning of the file says so. */
static shoal_status write_count(shoal_movie *movie, shoal_error *err) {
  if (movie->config.format != SHOAL_MOVIE_APNG) return SHOAL_OK;
  shoal_apng_count(&movie->bytes, movie->pictures);
  shoal_status status = movie->bytes.failed
                            ? no_memory(err, movie->path)
                            : shoal_writer_patch(movie->writer, SHOAL_APNG_COUNT_AT, movie->bytes.bytes,
                                                 movie->bytes.length, err);
  shoal_text_clear(&movie->bytes);
  return status;
}

static shoal_status check(const shoal_movie_config *config, const char *path, shoal_error *err) {
  uint32_t least = config->width < config->height ? config->width : config->height;
  uint32_t most = config->width < config->height ? config->height : config->width;
  if (least >= SHOAL_MOVIE_SIDE_MIN && most <= SHOAL_MOVIE_SIDE_MAX) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "%s: a picture of %ux%u pixels; each side has %d to %d", path,
                    config->width, config->height, SHOAL_MOVIE_SIDE_MIN, SHOAL_MOVIE_SIDE_MAX);
}

static shoal_status begin(shoal_movie *movie, shoal_error *err) {
  const shoal_movie_config *config = &movie->config;
  size_t pixels = (size_t)config->width * config->height;
  movie->shown = malloc(pixels);
  movie->held = malloc(pixels);
  movie->drawn = malloc(pixels);
  movie->scratch = malloc(4 * pixels);
  if (!movie->shown || !movie->held || !movie->drawn || !movie->scratch) return no_memory(err, movie->path);
  uint8_t rgb[SHOAL_COLOURS][3];
  shoal_colours(config->dark, rgb);
  if (config->format == SHOAL_MOVIE_GIF)
    shoal_gif_begin(&movie->bytes, config->width, config->height, rgb);
  else
    shoal_apng_begin(&movie->bytes, config->width, config->height, rgb);
  write_away(movie);
  return write_count(movie, err); /* at once, so that it is not at the end that this turns out impossible */
}

shoal_status shoal_movie_create(shoal_movie **out, const char *path, const shoal_movie_config *config,
                                shoal_error *err) {
  *out = NULL;
  shoal_status status = check(config, path, err);
  if (status != SHOAL_OK) return status;
  shoal_movie *movie = calloc(1, sizeof *movie);
  char *own_path = strdup(path);
  if (!movie || !own_path) {
    free(movie);
    free(own_path);
    return no_memory(err, path);
  }
  movie->config = *config;
  movie->path = own_path;
  shoal_text_init(&movie->bytes);
  status = shoal_writer_create(&movie->writer, path, err);
  if (status == SHOAL_OK) status = begin(movie, err);
  if (status != SHOAL_OK) {
    shoal_movie_abandon(movie);
    return status;
  }
  *out = movie;
  return SHOAL_OK;
}

static uint64_t ticks_now(const shoal_movie *movie) {
  return (uint64_t)llround(movie->seconds * formats[movie->config.format].ticks_per_second);
}

static void swap(uint8_t **a, uint8_t **b) {
  uint8_t *other = *a;
  *a = *b;
  *b = other;
}

/* Puts the picture held into the file. */
static void let_go(shoal_movie *movie) {
  const shoal_movie_config *config = &movie->config;
  uint64_t now = ticks_now(movie), ticks = now - movie->held_since;
  uint64_t least = formats[config->format].least, most = formats[config->format].most;
  shoal_part part;
  const uint8_t *before = movie->pictures > 0 ? movie->shown : NULL;
  if (!shoal_picture_changed(before, movie->held, config->width, config->height, &part))
    part.width = part.height = 1;   /* one that was between the two was left out */
  if (ticks < least) ticks = least; /* the last one may be */
  if (ticks > most) ticks = most;
  if (config->format == SHOAL_MOVIE_GIF)
    shoal_gif_add(&movie->bytes, &part, (uint32_t)ticks);
  else
    shoal_apng_add(&movie->bytes, &movie->sequence, &part, (uint32_t)ticks);
  write_away(movie);
  movie->pictures++;
  swap(&movie->shown, &movie->held);
  movie->held_since = now;
  movie->holds = false;
}

void shoal_movie_add(shoal_movie *movie, const shoal_canvas *canvas, double seconds) {
  const shoal_movie_config *config = &movie->config;
  size_t pixels = (size_t)config->width * config->height;
  shoal_picture_draw(canvas, config->width, config->height, movie->scratch, movie->drawn);
  bool same = movie->holds && memcmp(movie->drawn, movie->held, pixels) == 0;
  bool short_time = ticks_now(movie) - movie->held_since < formats[config->format].least;
  if (movie->holds && !same && !short_time) let_go(movie);
  swap(&movie->held, &movie->drawn);
  movie->holds = true;
  if (seconds > 0) movie->seconds += seconds;
}

shoal_status shoal_movie_finish(shoal_movie *movie, shoal_movie_view *out, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  if (movie->holds) let_go(movie);
  if (movie->config.format == SHOAL_MOVIE_GIF)
    shoal_gif_end(&movie->bytes);
  else
    shoal_apng_end(&movie->bytes);
  write_away(movie);
  *out = (shoal_movie_view){movie->pictures, movie->seconds, movie->bytes_count};
  if (movie->failed)
    status = no_memory(err, movie->path);
  else if (movie->pictures == 0)
    status = shoal_fail(err, SHOAL_INVALID, "%s: there was nothing to show", movie->path);
  else
    status = write_count(movie, err);
  if (status == SHOAL_OK) {
    status = shoal_writer_commit(movie->writer, err);
    movie->writer = NULL;
  }
  shoal_movie_abandon(movie);
  return status;
}

void shoal_movie_abandon(shoal_movie *movie) {
  if (!movie) return;
  shoal_writer_abandon(movie->writer);
  free(movie->path);
  free(movie->shown);
  free(movie->held);
  free(movie->drawn);
  free(movie->scratch);
  shoal_text_release(&movie->bytes);
  free(movie);
}
