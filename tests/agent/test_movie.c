/* A movie is there, whole, after its end and not before; times add up, and failures are named. */
#include "agent/movie.h"

#include <sys/stat.h>

#include "../nn/in_folder.h"
#include "base/file.h"
#include "film.h"

enum { WIDTH = 40, HEIGHT = 20 };

/* A box at place x of ten. */
static void draw(shoal_canvas *canvas, float x) {
  shoal_canvas_view(canvas, 0, 10, 0, 5);
  shoal_canvas_box(canvas, SHOAL_INK_BODY, x, x + 1, 1, 3);
}

static void read_film(film *f, const char *path, shoal_movie_format format) {
  uint8_t *bytes;
  size_t length;
  assert_int_equal(shoal_file_read(path, 1 << 24, false, &bytes, &length, NULL), SHOAL_OK);
  (format == SHOAL_MOVIE_GIF ? read_gif : read_apng)(f, bytes, length);
  free(bytes);
}

/* Adds pictures at these places, so long each, and reads the film. */
static void make_film(film *f, shoal_movie_format format, const float *places, uint32_t count,
                      double seconds) {
  shoal_movie_config config = {format, WIDTH, HEIGHT, false};
  shoal_movie *movie;
  shoal_movie_view view;
  shoal_canvas canvas;
  shoal_error err;
  shoal_canvas_init(&canvas);
  assert_int_equal(shoal_movie_create(&movie, "film", &config, &err), SHOAL_OK);
  for (uint32_t i = 0; i < count; i++) {
    draw(&canvas, places[i]);
    shoal_movie_add(movie, &canvas, seconds);
  }
  assert_false(shoal_file_exists("film"));
  assert_int_equal(shoal_movie_finish(movie, &view, &err), SHOAL_OK);
  assert_int_equal(files_here(), 1);
  read_film(f, "film", format);
  struct stat about;
  assert_int_equal(stat("film", &about), 0);
  assert_int_equal(view.bytes, about.st_size);
  assert_int_equal(view.pictures, f->count);
  assert_true(f->width == WIDTH && f->height == HEIGHT && f->loops);
  assert_int_equal(unlink("film"), 0);
  shoal_canvas_release(&canvas);
}

static uint32_t all_ticks(const film *f) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < f->count; i++) sum += f->ticks[i];
  return sum;
}

static void both_formats_show_the_same_pictures(void **state) {
  (void)state;
  const float places[] = {0, 1.3f, 2, 7.1f, 3};
  film gif, apng;
  make_film(&gif, SHOAL_MOVIE_GIF, places, 5, 0.04);
  make_film(&apng, SHOAL_MOVIE_APNG, places, 5, 0.04);
  assert_int_equal(gif.count, 5);
  assert_int_equal(apng.count, 5);
  shoal_canvas canvas;
  uint8_t wanted[WIDTH * HEIGHT], scratch[4 * WIDTH * HEIGHT];
  shoal_canvas_init(&canvas);
  for (uint32_t i = 0; i < 5; i++) {
    draw(&canvas, places[i]);
    shoal_picture_draw(&canvas, WIDTH, HEIGHT, scratch, wanted);
    assert_memory_equal(gif.pictures[i], wanted, sizeof wanted);
    assert_memory_equal(apng.pictures[i], wanted, sizeof wanted);
    assert_int_equal(gif.ticks[i], 4);
    assert_int_equal(apng.ticks[i], 40);
    if (i > 0) assert_true(gif.drawn[i] < WIDTH * HEIGHT);
  }
  shoal_canvas_release(&canvas);
  film_release(&gif);
  film_release(&apng);
}

static void times_that_are_no_whole_ticks_add_up(void **state) {
  (void)state;
  float places[30];
  for (int i = 0; i < 30; i++) places[i] = (float)i / 4;
  film f;
  make_film(&f, SHOAL_MOVIE_GIF, places, 30, 1.0 / 30);
  assert_int_equal(f.count, 30);
  assert_int_equal(all_ticks(&f), 100);
  film_release(&f);
}

/* Viewers show a GIF's picture for two hundredths at least: more of them a second would be slow motion. */
static void pictures_that_come_too_fast_are_left_out(void **state) {
  (void)state;
  float places[40];
  for (int i = 0; i < 40; i++) places[i] = (float)i / 5;
  film f;
  make_film(&f, SHOAL_MOVIE_GIF, places, 40, 0.005);
  assert_in_range(all_ticks(&f), 20, 22);
  assert_in_range(f.count, 9, 11);
  for (uint32_t i = 0; i < f.count; i++) assert_in_range(f.ticks[i], 2, 3);
  film_release(&f);
}

static void what_does_not_move_is_shown_longer(void **state) {
  (void)state;
  const float places[] = {1, 1, 1, 2, 2, 1};
  film f;
  make_film(&f, SHOAL_MOVIE_APNG, places, 6, 0.1);
  assert_int_equal(f.count, 3);
  assert_int_equal(f.ticks[0], 300);
  assert_int_equal(f.ticks[1], 200);
  assert_int_equal(f.ticks[2], 100);
  assert_memory_equal(f.pictures[0], f.pictures[2], WIDTH * HEIGHT);
  film_release(&f);
}

/* Between two equal pictures one was left out: there is a film all the same. */
static void a_picture_like_the_one_before_is_no_trouble(void **state) {
  (void)state;
  shoal_movie_config config = {SHOAL_MOVIE_GIF, WIDTH, HEIGHT, true};
  shoal_movie *movie;
  shoal_movie_view view;
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  assert_int_equal(shoal_movie_create(&movie, "film", &config, NULL), SHOAL_OK);
  const float places[] = {1, 2, 1};
  const double seconds[] = {0.1, 0.001, 0.1};
  for (int i = 0; i < 3; i++) {
    draw(&canvas, places[i]);
    shoal_movie_add(movie, &canvas, seconds[i]);
  }
  assert_int_equal(shoal_movie_finish(movie, &view, NULL), SHOAL_OK);
  film f;
  read_film(&f, "film", SHOAL_MOVIE_GIF);
  assert_int_equal(f.count, 2);
  assert_int_equal(f.drawn[1], 1);
  assert_memory_equal(f.pictures[0], f.pictures[1], WIDTH * HEIGHT);
  film_release(&f);
  shoal_canvas_release(&canvas);
}

static void an_abandoned_movie_leaves_no_trace(void **state) {
  (void)state;
  shoal_movie_config config = {SHOAL_MOVIE_APNG, WIDTH, HEIGHT, false};
  shoal_movie *movie;
  shoal_movie_view view;
  shoal_error err;
  shoal_movie_abandon(NULL);
  assert_int_equal(shoal_movie_create(&movie, "film", &config, &err), SHOAL_OK);
  shoal_movie_abandon(movie);
  assert_int_equal(files_here(), 0);
  assert_int_equal(shoal_movie_create(&movie, "film", &config, &err), SHOAL_OK);
  assert_int_equal(shoal_movie_finish(movie, &view, &err), SHOAL_INVALID);
  assert_string_equal(err.text, "film: there was nothing to show");
  assert_int_equal(files_here(), 0);
}

static void what_cannot_be_written_says_why(void **state) {
  (void)state;
  shoal_movie_config config = {SHOAL_MOVIE_APNG, WIDTH, HEIGHT, false};
  shoal_movie *movie;
  shoal_error err;
  assert_int_equal(shoal_movie_create(&movie, "no/film", &config, &err), SHOAL_NOT_FOUND);
  assert_non_null(strstr(err.text, "no/film: its folder does not exist"));
  assert_int_equal(shoal_movie_create(&movie, "/dev/null", &config, &err), SHOAL_UNSUPPORTED);
  assert_non_null(strstr(err.text, "/dev/null: must be a file"));
  config.width = SHOAL_MOVIE_SIDE_MAX + 1;
  assert_int_equal(shoal_movie_create(&movie, "film", &config, &err), SHOAL_INVALID);
  assert_string_equal(err.text, "film: a picture of 4097x20 pixels; each side has 16 to 4096");
  assert_null(movie);
  assert_int_equal(files_here(), 0);
}

static void a_full_disk_is_told_at_the_end(void **state) {
  (void)state;
  for (int format = SHOAL_MOVIE_GIF; format <= SHOAL_MOVIE_APNG; format++) {
    shoal_movie_config config = {(shoal_movie_format)format, 400, 200, false};
    shoal_movie *movie;
    shoal_movie_view view;
    shoal_canvas canvas;
    shoal_error err;
    shoal_canvas_init(&canvas);
    assert_int_equal(shoal_movie_create(&movie, "film", &config, &err), SHOAL_OK);
    limit_files(2048);
    for (int i = 0; i < 200; i++) {
      draw(&canvas, (float)(i % 90) / 10);
      shoal_movie_add(movie, &canvas, 0.1);
    }
    assert_int_equal(shoal_movie_finish(movie, &view, &err), SHOAL_IO);
    limit_files(0);
    assert_non_null(strstr(err.text, "film"));
    assert_int_equal(files_here(), 0);
    shoal_canvas_release(&canvas);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(both_formats_show_the_same_pictures),
      IN_FOLDER(times_that_are_no_whole_ticks_add_up),
      IN_FOLDER(pictures_that_come_too_fast_are_left_out),
      IN_FOLDER(what_does_not_move_is_shown_longer),
      IN_FOLDER(a_picture_like_the_one_before_is_no_trouble),
      IN_FOLDER(an_abandoned_movie_leaves_no_trace),
      IN_FOLDER(what_cannot_be_written_says_why),
      IN_FOLDER(a_full_disk_is_told_at_the_end),
  };
  return RUN_TESTS(tests);
}
