/* agent_play.c: shoal agent play: a trained agent at what it has learnt, for people to watch. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bridge.h"
#include "agent/learner.h"
#include "agent/movie.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/agent.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "cli/stop.h"

static const char COMMAND[] = "agent play";
static const double BREATH_S = 0.05; /* how soon a signal is looked at */
static const double LINGER_S = 0.7;  /* how long the last picture of an episode stays */
enum { EPISODES_WATCHED = 5, MOVIE_SIDE = 480, MOVIE_SIDE_LEAST = 120 };

typedef struct play_options {
  const char *file, *env, *gif, *apng, *size, *theme;
  uint64_t episodes, seed;
  double speed;
  bool random, json;
} play_options;

static const char *const themes[] = {"light", "dark", NULL};

static bool parse(play_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "episodes",
       .value = "N",
       .whole = &o->episodes,
       .whole_min = 1,
       .whole_max = 1000000,
       .help = "how many; by default 5, and 1 in a file"},
      {.name = "seed",
       .value = "N",
       .whole = &o->seed,
       .whole_max = UINT64_MAX,
       .help = "which episodes: the same seed gives the same ones; 0 by default"},
      {.name = "gif",
       .value = "FILE",
       .text = &o->gif,
       .help = "write an animated GIF instead of showing it"},
      {.name = "apng",
       .value = "FILE",
       .text = &o->apng,
       .help = "likewise an animated PNG, which is smaller and has finer steps of time"},
      {.name = "size",
       .value = "WxH",
       .text = &o->size,
       .help = "pixels of a GIF or PNG; by default what suits the environment"},
      {.name = "theme",
       .value = "NAME",
       .text = &o->theme,
       .choices = themes,
       .help =
           "light or dark; by default light in a file, and in a terminal what it says of itself, or dark"},
      {.name = "speed",
       .value = "X",
       .real = &o->speed,
       .real_min = 0.01,
       .real_max = 1000,
       .help = "2 is twice as fast as the environment's own pace"},
      {.name = "env",
       .value = "NAME",
       .text = &o->env,
       .help =
           "play here instead of where it was trained: a name of 'shoal agent list', or gym:NAME for one of "
           "Gymnasium's"},
      {.name = "random", .flag = &o->random, .help = "an agent that does anything, in --env"},
      {.name = "json", .flag = &o->json, .help = "a line of JSON an episode, and one at the end"},
  };
  const shoal_usage usage = {
      .command = COMMAND,
      .synopses = (const char *[]){"AGENT.safetensors [OPTION...]", "--random --env NAME [OPTION...]", NULL},
      .about =
          "Plays episodes with a trained agent, which always does what it thinks best, and draws them in "
          "the terminal, at the environment's pace. Where the output is no terminal, a line says what "
          "an episode came to. Environments of Gymnasium's (gym:NAME) are drawn as bars, one for each "
          "number of what the agent sees.",
      .operand = "AGENT.safetensors",
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal agent play cartpole.safetensors\n"
                  "  shoal agent play cartpole.safetensors --gif cartpole.gif --size 400x200\n"
                  "  shoal agent play --random --env MountainCar-v0 --speed 4\n"
                  "  shoal agent play lander.safetensors --episodes 100 --json\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  o->file = operands.count > 0 ? operands.at[0] : NULL;
  return true;
}

static shoal_status read_size(const char *text, uint32_t *width, uint32_t *height, shoal_error *err) {
  const char *by = strchr(text, 'x');
  uint64_t w, h;
  bool right = by && shoal_read_u64(text, (size_t)(by - text), &w) &&
               shoal_read_u64(by + 1, strlen(by + 1), &h) && w >= SHOAL_MOVIE_SIDE_MIN &&
               w <= SHOAL_MOVIE_SIDE_MAX && h >= SHOAL_MOVIE_SIDE_MIN && h <= SHOAL_MOVIE_SIDE_MAX;
  if (!right)
    return shoal_fail(err, SHOAL_INVALID, "--size %s: must be WIDTHxHEIGHT, each %d to %d, such as 400x300",
                      text, SHOAL_MOVIE_SIDE_MIN, SHOAL_MOVIE_SIDE_MAX);
  *width = (uint32_t)w;
  *height = (uint32_t)h;
  return SHOAL_OK;
}

static shoal_status check(const play_options *o, shoal_error *err) {
  uint32_t width, height;
  if (o->random && o->file)
    return shoal_fail(err, SHOAL_INVALID, "--random plays without an agent: leave out %s", o->file);
  if (o->random && !o->env) return shoal_fail(err, SHOAL_INVALID, "--random needs --env, which says where");
  if (!o->random && !o->file)
    return shoal_fail(err, SHOAL_INVALID,
                      "say which agent plays: a file of 'shoal agent train', or --random");
  if (o->gif && o->apng) return shoal_fail(err, SHOAL_INVALID, "give one of --gif and --apng");
  if (o->size && !o->gif && !o->apng)
    return shoal_fail(err, SHOAL_INVALID, "--size is for --gif and --apng; in a terminal the window decides");
  return o->size ? read_size(o->size, &width, &height, err) : SHOAL_OK;
}

/* ---- who plays, and where ----------------------------------------------------------- */

typedef struct player {
  const play_options *options;
  const shoal_env_kind *kind, *trained_in; /* open; the second is NULL where it is not needed */
  shoal_policy *policy;                    /* NULL: it does anything */
  shoal_vector *vector;
  float *action, *memory;
  uint64_t steps;
  shoal_canvas canvas;
  shoal_movie *movie;
  shoal_screen screen;
  bool watched; /* in the terminal */
  double next_picture;
  /* returns so far */
  uint64_t episodes;
  double sum, sum_of_squares, least, most;
} player;

static shoal_status same_kind(const player *p, shoal_error *err) {
  const shoal_env_kind *a = p->trained_in, *b = p->kind;
  if (a->observation == b->observation && a->choices == b->choices && a->action_width == b->action_width)
    return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "%s was trained in %s and cannot play %s: it sees or does something else",
                    p->options->file, a->name, b->name);
}

/* A name in a file may have Python import a module. That is the user's to say. */
static shoal_status check_import(const play_options *o, const shoal_agent_file *file, shoal_error *err) {
  if (!shoal_env_imports(file->env) || (o->env && strcmp(o->env, file->env) == 0)) return SHOAL_OK;
  return shoal_fail(
      err, SHOAL_INVALID,
      "%s was trained in %s, for which Python imports a module; if you trust that, say so: --env %s", o->file,
      file->env, file->env);
}

static shoal_status open_agent(player *p, shoal_error *err) {
  const play_options *o = p->options;
  shoal_agent_file file;
  shoal_status status = shoal_agent_open(o->file, &file, NULL, err);
  if (status == SHOAL_OK) status = check_import(o, &file, err);
  if (status == SHOAL_OK) status = shoal_env_open(file.env, &p->trained_in, err);
  if (status == SHOAL_OK) status = shoal_agent_open(o->file, &file, &p->policy, err);
  if (status == SHOAL_OK) status = shoal_env_open(o->env ? o->env : file.env, &p->kind, err);
  return status == SHOAL_OK ? same_kind(p, err) : status;
}

static shoal_status open_player(player *p, const play_options *o, shoal_error *err) {
  *p = (player){.options = o, .least = INFINITY, .most = -INFINITY};
  shoal_canvas_init(&p->canvas);
  shoal_status status = o->random ? shoal_env_open(o->env, &p->kind, err) : open_agent(p, err);
  if (status == SHOAL_OK) status = shoal_vector_create(&p->vector, p->kind, 1, err);
  if (status != SHOAL_OK) return status;
  p->action = calloc(p->kind->action_width, sizeof *p->action);
  p->memory = calloc(1 + (p->policy ? shoal_policy_memory_floats(p->policy) : 0), sizeof *p->memory);
  if (!p->action || !p->memory) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  shoal_vector_reset(p->vector, o->seed);
  shoal_vector_watch(p->vector, &p->canvas);
  return shoal_vector_check(p->vector, err);
}

static void close_player(player *p) {
  shoal_screen_release(&p->screen);
  shoal_movie_abandon(p->movie);
  shoal_canvas_release(&p->canvas);
  free(p->action);
  free(p->memory);
  shoal_vector_destroy(p->vector);
  shoal_policy_destroy(p->policy);
  shoal_env_close(p->trained_in);
  shoal_env_close(p->kind);
}

/* ---- showing ------------------------------------------------------------------------ */

static void draw(player *p) { p->kind->draw(shoal_vector_state(p->vector, 0), &p->canvas); }

/* Sides that have the canvas's proportions, the longer one MOVIE_SIDE pixels. */
static void choose_size(const shoal_canvas *canvas, uint32_t *width, uint32_t *height) {
  double across = (double)canvas->right - (double)canvas->left;
  double down = (double)canvas->top - (double)canvas->bottom, longer = fmax(across, down);
  *width = (uint32_t)fmax(round(MOVIE_SIDE * across / longer), MOVIE_SIDE_LEAST);
  *height = (uint32_t)fmax(round(MOVIE_SIDE * down / longer), MOVIE_SIDE_LEAST);
}

static shoal_status open_show(player *p, shoal_error *err) {
  const play_options *o = p->options;
  shoal_terminal terminal = shoal_terminal_of(stdout);
  bool filmed = o->gif || o->apng;
  p->watched = terminal.is_terminal && !filmed && !o->json;
  bool dark = o->theme ? strcmp(o->theme, "dark") == 0 : p->watched && shoal_screen_is_dark();
  draw(p);
  if (p->watched) shoal_screen_init(&p->screen, stdout, dark);
  p->next_picture = shoal_clock_seconds();
  if (!filmed) return SHOAL_OK;
  shoal_movie_config config = {.format = o->gif ? SHOAL_MOVIE_GIF : SHOAL_MOVIE_APNG, .dark = dark};
  choose_size(&p->canvas, &config.width, &config.height);
  shoal_status status = o->size ? read_size(o->size, &config.width, &config.height, err) : SHOAL_OK;
  return status == SHOAL_OK ? shoal_movie_create(&p->movie, o->gif ? o->gif : o->apng, &config, err) : status;
}

/* Until it is time for the next picture, or a signal has come. */
static void keep_pace(player *p, double seconds) {
  double now = shoal_clock_seconds();
  p->next_picture = fmax(p->next_picture + seconds, now - seconds); /* who is late does not hurry for ever */
  while (now < p->next_picture && *shoal_stop_flag() == 0) {
    shoal_clock_sleep(fmin(p->next_picture - now, BREATH_S));
    now = shoal_clock_seconds();
  }
}

/* How an episode ended is on the canvas already: the next one has begun by then. */
static void show(player *p, uint64_t step, double reward, double sum, bool ended) {
  double seconds = 1 / (p->kind->pace * p->options->speed);
  if (!p->movie && !p->watched) return;
  if (!ended) draw(p);
  if (p->movie) shoal_movie_add(p->movie, &p->canvas, seconds);
  if (!p->watched) return;
  char line[160];
  snprintf(line, sizeof line, "episode %llu/%llu  step %llu  reward %.5g  return %.5g",
           (unsigned long long)(p->episodes + 1), (unsigned long long)p->options->episodes,
           (unsigned long long)step, reward, sum);
  shoal_screen_show(&p->screen, &p->canvas, line);
  keep_pace(p, seconds);
}

/* The picture shown last, for a moment. */
static void linger(player *p) {
  if (p->movie) shoal_movie_add(p->movie, &p->canvas, LINGER_S);
  if (p->watched) keep_pace(p, LINGER_S);
}

/* ---- playing ------------------------------------------------------------------------ */

static void act(player *p) {
  const shoal_env_kind *kind = p->kind;
  shoal_key key = shoal_key_make(p->options->seed, SHOAL_FOR_ACTING, 0, 0);
  if (p->policy) {
    shoal_policy_act(p->policy, 1, shoal_vector_observations(p->vector), p->memory, key, p->steps, true,
                     p->action, NULL);
  } else if (kind->choices > 0) {
    p->action[0] = (float)shoal_random_below(key, p->steps, kind->choices);
  } else {
    for (uint32_t i = 0; i < kind->action_width; i++)
      p->action[i] = kind->action_low + (kind->action_high - kind->action_low) *
                                            shoal_random_uniform(key, p->steps * kind->action_width + i);
  }
  p->steps++;
}

typedef struct episode {
  double sum;
  uint64_t steps;
  uint8_t end; /* SHOAL_GOES_ON: a signal has come before it ended */
} episode;

/* An episode that has no limit is cut off here, as it is when it is scored. */
static void cut_off(player *p, episode *e) {
  if (p->kind->limit > 0 || e->end != SHOAL_GOES_ON || e->steps < SHOAL_EVALUATION_STEPS_MAX) return;
  e->end = SHOAL_TRUNCATED;
  shoal_vector_reset(p->vector, p->options->seed + p->episodes + 1);
}

static episode play_episode(player *p) {
  episode e = {.end = SHOAL_GOES_ON};
  if (p->policy) memset(p->memory, 0, shoal_policy_memory_floats(p->policy) * sizeof *p->memory);
  show(p, 0, 0, 0, false);
  while (e.end == SHOAL_GOES_ON && *shoal_stop_flag() == 0) {
    float reward;
    act(p);
    shoal_vector_step(p->vector, p->action, &reward, &e.end);
    e.sum += (double)reward;
    e.steps++;
    show(p, e.steps, (double)reward, e.sum, e.end != SHOAL_GOES_ON);
    cut_off(p, &e);
  }
  linger(p);
  return e;
}

static void count(player *p, const episode *e) {
  p->episodes++;
  p->sum += e->sum;
  p->sum_of_squares += e->sum * e->sum;
  p->least = fmin(p->least, e->sum);
  p->most = fmax(p->most, e->sum);
}

static const char *end_name(const episode *e) { return e->end == SHOAL_TERMINATED ? "ended" : "cut off"; }

static void tell(const player *p, const episode *e) {
  shoal_text line;
  if (p->options->json) {
    shoal_json json;
    shoal_cli_event_begin(&json, &line, "episode");
    shoal_json_int(&json, "episode", (int64_t)p->episodes);
    shoal_json_real(&json, "return", e->sum);
    shoal_json_int(&json, "steps", (int64_t)e->steps);
    shoal_json_bool(&json, "terminated", e->end == SHOAL_TERMINATED);
    shoal_cli_event_end(&json);
  } else if (!p->watched) {
    shoal_text_init(&line);
    shoal_text_addf(&line, "episode %llu  return %.5g  %s steps, then %s", (unsigned long long)p->episodes,
                    e->sum, shoal_human_count(e->steps).text, end_name(e));
    shoal_cli_print_line(&line);
    shoal_text_release(&line);
  }
}

/* Whole episodes; SHOAL_STOPPED when a signal came between. */
static shoal_status play(player *p, shoal_error *err) {
  while (p->episodes < p->options->episodes) {
    episode e = play_episode(p);
    shoal_status status = shoal_vector_check(p->vector, err);
    if (status != SHOAL_OK) return status;
    if (e.end == SHOAL_GOES_ON) return SHOAL_STOPPED;
    count(p, &e);
    tell(p, &e);
  }
  return SHOAL_OK;
}

/* ---- the end ------------------------------------------------------------------------ */

static void print_json(const player *p, double mean, double deviation, const shoal_movie_view *movie) {
  const play_options *o = p->options;
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, "end");
  shoal_json_text(&json, "env", p->kind->name);
  shoal_json_int(&json, "episodes", (int64_t)p->episodes);
  shoal_json_int(&json, "steps", (int64_t)p->steps);
  shoal_json_real(&json, "return_mean", mean);
  shoal_json_real(&json, "return_deviation", deviation);
  shoal_json_real(&json, "return_min", p->episodes > 0 ? p->least : NAN);
  shoal_json_real(&json, "return_max", p->episodes > 0 ? p->most : NAN);
  if (movie) {
    shoal_json_text(&json, "out", o->gif ? o->gif : o->apng);
    shoal_json_int(&json, "pictures", movie->pictures);
    shoal_json_int(&json, "bytes", (int64_t)movie->bytes);
  }
  shoal_cli_event_end(&json);
}

static void print_text(const player *p, double mean, double deviation, const shoal_movie_view *movie) {
  const play_options *o = p->options;
  shoal_text line;
  shoal_text_init(&line);
  if (p->episodes > 0)
    shoal_text_addf(&line, "%s  mean return %.5g of %s episode%s", p->kind->name, mean,
                    shoal_human_count(p->episodes).text, p->episodes == 1 ? "" : "s");
  if (p->episodes > 1)
    shoal_text_addf(&line, " (%.5g to %.5g, deviation %.5g)", p->least, p->most, deviation);
  shoal_cli_print_line(&line);
  if (movie) {
    shoal_text_addf(&line, "%s  %s picture%s, %s, %s", o->gif ? o->gif : o->apng,
                    shoal_human_count(movie->pictures).text, movie->pictures == 1 ? "" : "s",
                    shoal_human_seconds(movie->seconds).text, shoal_human_bytes((double)movie->bytes).text);
    shoal_cli_print_line(&line);
  }
  shoal_text_release(&line);
}

/* What was filmed is kept when a signal ends it, too. */
static shoal_status conclude(player *p, shoal_error *err) {
  shoal_movie_view view;
  bool filmed = p->movie != NULL;
  shoal_screen_release(&p->screen);
  if (filmed) {
    shoal_movie *movie = p->movie;
    p->movie = NULL;
    shoal_status status = shoal_movie_finish(movie, &view, err);
    if (status != SHOAL_OK) return status;
  }
  double n = (double)p->episodes, mean = p->episodes > 0 ? p->sum / n : NAN;
  double deviation = sqrt(fmax(p->sum_of_squares / n - mean * mean, 0));
  (p->options->json ? print_json : print_text)(p, mean, deviation, filmed ? &view : NULL);
  return SHOAL_OK;
}

int shoal_cli_agent_play(int argc, char **argv) {
  play_options o = {.speed = 1};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  if (o.episodes == 0) o.episodes = o.gif || o.apng ? 1 : EPISODES_WATCHED;
  shoal_error err;
  if (check(&o, &err) != SHOAL_OK) return shoal_cli_misused(COMMAND, &err);
  shoal_stop_catch();
  shoal_env_stop_by(shoal_stop_flag());
  player p;
  shoal_status status = open_player(&p, &o, &err);
  if (status == SHOAL_OK) status = open_show(&p, &err);
  bool begun = status == SHOAL_OK;
  if (begun) status = play(&p, &err);
  bool stopped = status == SHOAL_STOPPED;
  if (stopped) status = SHOAL_OK;
  if (begun && status == SHOAL_OK) status = conclude(&p, &err);
  close_player(&p);
  if (status != SHOAL_OK) return shoal_cli_failed(COMMAND, &err);
  return stopped ? shoal_cli_stopped(COMMAND) : shoal_cli_finish(COMMAND, SHOAL_EXIT_OK);
}
