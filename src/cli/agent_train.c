/* agent_train.c: shoal agent train: from an environment to an agent that acts in it. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/bridge.h"
#include "agent/training.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "cli/agent.h"
#include "cli/agent_options.h"
#include "cli/agent_queue.h"
#include "cli/cli.h"
#include "cli/hosted.h"
#include "cli/played.h"
#include "cli/queue_url.h"
#include "cli/stop.h"
#include "nn/events.h"

static const char COMMAND[] = "agent train";
static const uint64_t usual_seed = 1;
static const double save_every_s = 30, tell_every_s = 1, log_every_s = 0.2;
static const double queue_save_every_s = 5, queue_lease_s = 10;
enum { URL_BYTES = 512 };

typedef struct train_command {
  shoal_agent_options said;
  const char *out, *queue, *name, *log_dir;
  char *url;           /* the queue's, with its password */
  const char *operand; /* a word that belongs to no option, and is one too many */
  uint64_t seed, threads;
  bool resume, json, quiet;
  bool misused; /* what went wrong is on the command line */
  shoal_text out_made;
  shoal_text kept; /* the other name of what was at `out` */
  const shoal_env_kind *kind;
  shoal_learner_config config;
  uint64_t steps_before; /* that the file has, with --resume */
  shoal_learner *learner;
  pthread_mutex_t shown; /* with --queue, rounds and actors are told from two threads */
  shoal_progress progress;
  uint32_t actors;
  double told;           /* when a line of JSON was printed last */
  shoal_events *events;  /* or NULL */
  double logged;         /* when something was last written there */
  uint64_t scored_steps; /* of the last score there */
} train_command;

/* What actors call the training. */
static const char *name_of(const train_command *c) { return c->name ? c->name : "agent"; }

/* ---- the command line --------------------------------------------------------------- */

static bool parse(train_command *c, int argc, char **argv, int *status) {
  const shoal_option own[] = {
      {.name = "seed",
       .value = "N",
       .whole = &c->seed,
       .whole_max = UINT64_MAX,
       .help = "the same seed, the same agent; 1 by default"},
      {.name = "threads",
       .value = "N",
       .whole = &c->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor"},
      {.name = "out", .value = "FILE", .text = &c->out, .help = "the agent; NAME.safetensors by default"},
      {.name = "resume", .flag = &c->resume, .help = "continue the training of this --out"},
      {.name = "queue",
       .value = "URL",
       .text = &c->queue,
       .help = "let 'shoal agent act' play, here and elsewhere, through this broker: "
               "amqp://USER:PASSWORD@HOST/VHOST"},
      {.name = "name",
       .value = "NAME",
       .text = &c->name,
       .help = "--queue: what actors call this training; 'agent' by default"},
      {.name = "log-dir",
       .value = "FOLDER",
       .text = &c->log_dir,
       .help = "write a TensorBoard event file into this folder: returns, episode lengths, losses, steps per "
               "second"},
      {.name = "json", .flag = &c->json, .help = "lines of JSON: some rounds, all scores, and the end"},
      {.name = "quiet", .flag = &c->quiet, .help = "print nothing but errors"},
  };
  enum { OWN = sizeof own / sizeof own[0], ALL = SHOAL_AGENT_OPTIONS + OWN };
  shoal_option options[ALL];
  shoal_agent_options_declare(&c->said, "a name of 'shoal agent list', or gym:NAME for one of Gymnasium's",
                              options);
  memcpy(options + SHOAL_AGENT_OPTIONS, own, sizeof own);
  const shoal_usage usage = {
      .command = COMMAND,
      .synopses = (const char *[]){"--env NAME [OPTION...]", "--resume --out FILE [OPTION...]", NULL},
      .about =
          "Trains an agent until it is solved: until the mean return of 100 episodes, played with what was "
          "learned and with nothing left to chance, reaches the environment's goal; or until the time or the "
          "steps are used up. Ctrl-C ends it, too; what was learned is saved.",
      .operand = "an argument",
      .operands_max = 1,
      .options = options,
      .options_count = ALL,
      .examples = "  shoal agent train --env CartPole-v1\n"
                  "  shoal agent train --env Acrobot-v1 --algorithm ppo --seed 3 --json\n"
                  "  shoal agent train --env CartPole-v1 --set rate=0.0005,epochs=5 --seconds 10\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  c->operand = operands.count > 0 ? operands.at[0] : NULL;
  return true;
}

/* NAME.safetensors, where a name may have signs in it that are no part of a file's. */
static shoal_status name_out(train_command *c, shoal_error *err) {
  if (c->out) return SHOAL_OK;
  shoal_text_addf(&c->out_made, "%s", c->said.env);
  for (size_t i = 0; i < c->out_made.length; i++)
    if (!isalnum((unsigned char)c->out_made.bytes[i]) && !strchr("-_.", c->out_made.bytes[i]))
      c->out_made.bytes[i] = '-';
  shoal_text_addf(&c->out_made, ".safetensors");
  if (c->out_made.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  c->out = c->out_made.bytes;
  return SHOAL_OK;
}

static shoal_status refuse_operand(const train_command *c, shoal_error *err) {
  bool is_env = shoal_env_find(c->operand) != NULL || shoal_env_is_bridged(c->operand);
  const char *meant = c->resume ? "--resume --out" : is_env ? "--env" : NULL;
  int shown = shoal_options_shown(c->operand);
  if (meant == NULL)
    return shoal_fail(err, SHOAL_INVALID, "unexpected argument '%.*s'; where to act is said by --env NAME",
                      shown, c->operand);
  return shoal_fail(err, SHOAL_INVALID, "unexpected argument '%.*s'; did you mean %s %.*s?", shown,
                    c->operand, meant, shown, c->operand);
}

/* What was said when the training began holds for all of it. */
static shoal_status check_words(const train_command *c, shoal_error *err) {
  if (c->operand) return refuse_operand(c, err);
  if (c->name && !c->queue)
    return shoal_fail(err, SHOAL_INVALID, "--name is for --queue, which is not given");
  if (c->queue && c->said.env && shoal_env_is_bridged(c->said.env))
    return shoal_fail(err, SHOAL_INVALID,
                      "--queue is for environments that are built in, and %s is played by Python",
                      c->said.env);
  if (!c->resume && c->said.env == NULL)
    return shoal_fail(err, SHOAL_INVALID,
                      "--env is missing: where to act; 'shoal agent list' tells what there is");
  if (!c->resume) return SHOAL_OK;
  const struct {
    const char *name;
    bool said;
  } fixed[] = {{"--set", c->said.set != NULL}, {"--model", c->said.model != NULL}};
  for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
    if (fixed[i].said)
      return shoal_fail(err, SHOAL_INVALID,
                        "%s cannot be changed with --resume: the training continues as it began",
                        fixed[i].name);
  if (c->out == NULL && c->said.env == NULL)
    return shoal_fail(err, SHOAL_INVALID, "--out is missing: the file of the training to continue");
  return SHOAL_OK;
}

/* ---- settings ----------------------------------------------------------------------- */

static shoal_status set(void *self, const char *name, const char *value, shoal_error *err) {
  return shoal_agent_set(self, name, value, err);
}

static shoal_status choose(train_command *c, shoal_error *err) {
  shoal_algorithm algorithm = SHOAL_ALGORITHMS;
  if (c->said.algorithm) shoal_algorithm_parse(c->said.algorithm, &algorithm);
  shoal_status status = shoal_env_open(c->said.env, &c->kind, err);
  c->misused = status == SHOAL_NOT_FOUND;
  if (status == SHOAL_OK) status = shoal_agent_defaults(c->kind, algorithm, &c->config.settings, err);
  shoal_agent_settings *settings = &c->config.settings;
  if (status == SHOAL_OK) status = shoal_agent_options_body(&c->said, c->kind, settings, err);
  if (status == SHOAL_OK) status = shoal_agent_options_each(&c->said, settings, set, err);
  c->misused = c->misused || status == SHOAL_INVALID;
  if (status == SHOAL_OK) status = name_out(c, err);
  c->config.seed = c->seed;
  c->config.steps_all = c->said.steps > 0 ? c->said.steps : c->config.settings.budget;
  return status;
}

/* What is said again must be what was said, and the end not behind us. */
static shoal_status compare(train_command *c, const shoal_agent_file *file, shoal_error *err) {
  const char *algorithm = shoal_algorithm_name(file->algorithm);
  c->misused = true;
  if (c->said.env && strcmp(c->said.env, file->env) != 0)
    return shoal_fail(err, SHOAL_INVALID, "%s is a training in %s, and not in %s", c->out, file->env,
                      c->said.env);
  if (c->said.algorithm && strcmp(c->said.algorithm, algorithm) != 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "--algorithm cannot be changed with --resume: %s is trained by %s; leave it out",
                      c->out, algorithm);
  if (c->seed != usual_seed && c->seed != file->seed)
    return shoal_fail(err, SHOAL_INVALID,
                      "--seed cannot be changed with --resume: that of %s is %llu; leave it out", c->out,
                      (unsigned long long)file->seed);
  if (c->said.steps > 0 && c->said.steps < file->steps && c->said.steps != file->steps_all)
    return shoal_fail(err, SHOAL_INVALID,
                      "--steps: %s has %s steps already, and --steps is how many in all: give more", c->out,
                      shoal_human_count(file->steps).text);
  c->misused = false;
  return SHOAL_OK;
}

/* All that the file says, and from the command line how long. */
static shoal_status choose_again(train_command *c, shoal_error *err) {
  shoal_agent_file *file = calloc(1, sizeof *file);
  shoal_status status = file ? name_out(c, err) : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK && !shoal_file_exists(c->out))
    status = shoal_fail(err, SHOAL_NOT_FOUND, "%s is not there: there is no training to continue", c->out);
  if (status == SHOAL_OK) status = shoal_agent_open(c->out, file, NULL, err);
  if (status == SHOAL_OK) status = compare(c, file, err);
  if (status == SHOAL_OK && !c->said.env && shoal_env_imports(file->env))
    status =
        shoal_fail(err, SHOAL_INVALID,
                   "%s is a training in %s, for which Python imports a module; if you trust that, say so: "
                   "--env %s",
                   c->out, file->env, file->env);
  if (status == SHOAL_OK) status = shoal_env_open(file->env, &c->kind, err);
  if (status == SHOAL_OK) {
    c->config.settings = file->settings;
    c->config.seed = file->seed;
    c->steps_before = file->steps;
    c->config.steps_all = c->said.steps > 0 ? c->said.steps : file->steps_all;
  }
  free(file);
  return status;
}

/* Nothing but agents is moved aside; an empty file has nothing to lose. */
static shoal_status check_there(train_command *c, shoal_error *err) {
  struct stat about;
  if (stat(c->out, &about) != 0 || about.st_size == 0 || shoal_agent_is(c->out)) return SHOAL_OK;
  c->misused = true;
  return shoal_fail(err, SHOAL_INVALID, "--out: %s is there and is no agent; choose another name", c->out);
}

static shoal_status open_learner(train_command *c, shoal_error *err) {
  shoal_status status = c->resume ? choose_again(c, err) : choose(c, err);
  if (status == SHOAL_OK) status = shoal_hosted_check_out(c->out, err);
  if (status == SHOAL_OK && !c->resume) status = check_there(c, err);
  if (status != SHOAL_OK) return status;
  c->config.kind = c->kind;
  c->config.threads = (uint32_t)c->threads;
  if (c->queue && c->resume) return SHOAL_OK; /* the coach reads the file */
  status = shoal_learner_create(&c->learner, &c->config, err);
  c->misused = (status == SHOAL_INVALID || status == SHOAL_LIMIT) && !c->resume;
  if (status == SHOAL_OK && c->resume) status = shoal_learner_load(c->learner, c->out, err);
  if (status == SHOAL_OK && !c->resume) shoal_cli_keep_previous(COMMAND, "agent", c->out, c->quiet, &c->kept);
  if (c->queue) shoal_learner_destroy(c->learner); /* there can be one; the coach makes its own */
  if (c->queue) c->learner = NULL;
  return status;
}

/* ---- what is shown ------------------------------------------------------------------ */

static void show_line(train_command *c, const shoal_training_view *view, double now) {
  uint64_t steps = view->round.steps;
  const shoal_played played = {.steps = steps,
                               .steps_per_second = view->steps_per_second,
                               .return_mean = view->return_mean,
                               .return_deviation = view->return_deviation,
                               .lag = c->queue ? view->round.lag : NAN,
                               .actors = c->actors,
                               .left_s =
                                   shoal_played_left(c->said.seconds, view->seconds, c->config.steps_all,
                                                     steps, view->steps_per_second),
                               .until_solved = !c->said.full};
  shoal_played_show(&c->progress, &played, now);
}

static void write_evaluation(shoal_json *json, const shoal_evaluation *evaluation) {
  static const shoal_evaluation none = {
      .mean = NAN, .deviation = NAN, .least = NAN, .most = NAN, .mean_length = NAN};
  if (evaluation->episodes == 0) evaluation = &none;
  shoal_json_int(json, "episodes", evaluation->episodes);
  shoal_json_real(json, "return_mean", evaluation->mean);
  shoal_json_real(json, "return_deviation", evaluation->deviation);
  shoal_json_real(json, "return_least", evaluation->least);
  shoal_json_real(json, "return_most", evaluation->most);
  shoal_json_real(json, "length_mean", evaluation->mean_length);
}

static void print_round(const shoal_training_view *view) {
  const shoal_round_view *round = &view->round;
  shoal_json json;
  shoal_text line;
  shoal_cli_event_begin(&json, &line, "round");
  shoal_json_int(&json, "version", (int64_t)round->version);
  shoal_json_int(&json, "steps", (int64_t)round->steps);
  shoal_json_real(&json, "seconds", view->seconds);
  shoal_json_real(&json, "steps_per_second", view->steps_per_second);
  shoal_json_int(&json, "episodes", (int64_t)view->episodes);
  shoal_json_real(&json, "return_mean", view->return_mean);
  shoal_json_real(&json, "return_deviation", view->return_deviation);
  shoal_json_real(&json, "loss", round->loss);
  shoal_json_real(&json, "value_loss", round->value_loss);
  shoal_json_real(&json, "entropy", round->entropy);
  shoal_json_real(&json, "divergence", round->divergence);
  shoal_json_real(&json, "clipped", round->clipped);
  shoal_json_real(&json, "rate", round->rate);
  shoal_json_real(&json, "epsilon", round->epsilon);
  shoal_json_real(&json, "lag", round->lag);
  shoal_json_int(&json, "refused", (int64_t)round->refused);
  shoal_cli_event_end(&json);
}

static void print_score(const shoal_training_view *view) {
  shoal_json json;
  shoal_text line;
  shoal_cli_event_begin(&json, &line, "score");
  shoal_json_int(&json, "steps", (int64_t)view->round.steps);
  shoal_json_real(&json, "seconds", view->seconds);
  write_evaluation(&json, &view->evaluation);
  shoal_json_bool(&json, "solved", view->solved);
  shoal_cli_event_end(&json);
}

/* Curves by steps of environments; what an algorithm has not is left out. */
static void log_round(train_command *c, const shoal_training_view *view) {
  const shoal_round_view *round = &view->round;
  const struct {
    const char *tag;
    double value;
  } curves[] = {{"return/played", view->return_mean},
                {"loss/policy", round->loss},
                {"loss/value", round->value_loss},
                {"policy/entropy", round->entropy},
                {"policy/divergence", round->divergence},
                {"policy/clipped", round->clipped},
                {"policy/lag", round->lag},
                {"rate", round->rate},
                {"epsilon", round->epsilon},
                {"episodes", (double)view->episodes},
                {"steps per second", view->steps_per_second}};
  for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
    if (isfinite(curves[i].value))
      shoal_events_scalar(c->events, curves[i].tag, round->steps, curves[i].value);
}

static void log_score(train_command *c, const shoal_evaluation *score, uint64_t steps) {
  if (score->episodes == 0 || steps == c->scored_steps) return;
  shoal_events_scalar(c->events, "return/scored", steps, score->mean);
  shoal_events_scalar(c->events, "length/scored", steps, score->mean_length);
  c->scored_steps = steps;
}

static void flush_events(train_command *c) {
  shoal_error err;
  if (shoal_events_flush(c->events, &err) == SHOAL_OK) return;
  shoal_progress_clear(&c->progress);
  shoal_cli_warn(COMMAND, "%s; no more curves are written, but the training continues", err.text);
  shoal_events_destroy(c->events);
  c->events = NULL;
}

/* A round may take a millisecond: a few points a second are enough, but every score is there. */
static void log_some(train_command *c, const shoal_training_view *view, double now) {
  if (c->events == NULL || (!view->scored && now - c->logged < log_every_s)) return;
  c->logged = now;
  log_round(c, view);
  if (view->scored) log_score(c, &view->evaluation, view->round.steps);
  flush_events(c);
}

static void round_done(void *self, const shoal_training_view *view) {
  train_command *c = self;
  double now = shoal_clock_seconds();
  log_some(c, view, now);
  if (!c->json) {
    show_line(c, view, now);
    return;
  }
  if (now - c->told >= tell_every_s) {
    print_round(view);
    c->told = now;
  }
  if (view->scored) print_score(view);
  if (ferror(stdout)) shoal_stop_by(SIGPIPE);
}

/* With --queue: rounds are told by the coach's thread, actors by this one. */
static void round_by_queue(void *self, const shoal_training_view *view, uint32_t actors) {
  train_command *c = self;
  pthread_mutex_lock(&c->shown);
  c->actors = actors;
  round_done(self, view);
  pthread_mutex_unlock(&c->shown);
}

static void actors_changed(void *self, uint32_t actors) {
  train_command *c = self;
  if (c->quiet) return;
  char url[URL_BYTES];
  shoal_queue_url_masked(c->url, url, sizeof url);
  pthread_mutex_lock(&c->shown);
  shoal_progress_clear(&c->progress);
  if (actors == 0)
    shoal_cli_warn(COMMAND, "waiting for actors: shoal agent act --queue %s --name %s", url, name_of(c));
  else
    shoal_cli_warn(COMMAND, "%u actor%s came", actors, actors == 1 ? "" : "s");
  pthread_mutex_unlock(&c->shown);
}

/* ---- the end ------------------------------------------------------------------------ */

static uint64_t steps_of(const train_command *c, const shoal_training_view *view) {
  return c->learner ? shoal_learner_steps(c->learner) : view->round.steps;
}

static void print_end_json(const train_command *c, const shoal_training_view *view, bool stopped) {
  static const shoal_evaluation none = {0};
  shoal_json json;
  shoal_text line;
  shoal_cli_event_begin(&json, &line, "end");
  shoal_json_text(&json, "env", c->kind->name);
  shoal_json_text(&json, "algorithm", shoal_algorithm_name(c->config.settings.algorithm));
  shoal_json_int(&json, "seed", (int64_t)c->config.seed);
  shoal_json_int(&json, "steps", (int64_t)steps_of(c, view));
  shoal_json_real(&json, "seconds", view->seconds);
  shoal_json_real(&json, "steps_per_second", view->steps_per_second);
  write_evaluation(&json, stopped && !view->scored ? &none : &view->evaluation);
  if (isnan(c->kind->solved) || (stopped && !view->scored))
    shoal_json_null(&json, "solved");
  else
    shoal_json_bool(&json, "solved", view->solved);
  shoal_json_bool(&json, "stopped", stopped);
  shoal_json_text(&json, "out", c->out);
  shoal_cli_event_end(&json);
}

static void print_end(const train_command *c, const shoal_training_view *view) {
  const shoal_evaluation *score = &view->evaluation;
  bool goal = !isnan(c->kind->solved);
  printf("%s after %s steps in %s",
         !goal          ? "done"
         : view->solved ? "solved"
                        : "not solved",
         shoal_human_count(steps_of(c, view)).text, shoal_human_seconds(view->seconds).text);
  if (score->episodes > 0)
    printf(": return %s +- %s over %u episode%s", shoal_played_number(score->mean).text,
           shoal_played_number(score->deviation).text, score->episodes, score->episodes == 1 ? "" : "s");
  bool few = !view->solved && score->episodes < SHOAL_SCORE_EPISODES && score->mean >= c->kind->solved;
  if (goal) printf(" (goal %s%s)", shoal_played_number(c->kind->solved).text, few ? ", too few to say" : "");
  printf("\n%s\n", c->out);
}

/* Whoever goes on with what is at its end already, should know. */
static void tell_idle(const train_command *c, const shoal_training_view *view) {
  if (!c->resume || c->quiet || steps_of(c, view) > c->steps_before) return;
  if (c->steps_before >= c->config.steps_all)
    shoal_cli_warn(COMMAND, "no step was made: %s has all of its %s; give a larger --steps N to continue",
                   c->out, shoal_human_count(c->config.steps_all).text);
  else
    shoal_cli_warn(COMMAND, "no step was made: the time was up; give more --seconds");
}

/* The command that goes on, with a word for the password. */
static void add_resume_command(const train_command *c, shoal_text *out) {
  char url[URL_BYTES];
  shoal_human_quote(out, program_invocation_name);
  shoal_text_addf(out, " agent train --resume");
  shoal_cli_add_option(out, "out", c->out);
  if (shoal_env_imports(c->kind->name)) shoal_cli_add_option(out, "env", c->kind->name);
  if (c->said.full) shoal_text_addf(out, " --full");
  shoal_cli_add_option(out, "log-dir", c->log_dir);
  if (c->queue) {
    shoal_queue_url_masked(c->url, url, sizeof url);
    shoal_cli_add_option(out, "queue", url);
    shoal_cli_add_option(out, "name", c->name);
  }
}

static int stopped(const train_command *c, const shoal_training_view *view, bool begun) {
  int status = shoal_cli_stopped(COMMAND);
  if (begun && c->json) print_end_json(c, view, true);
  if (!begun || c->json || c->quiet || !shoal_file_exists(c->out)) return status;
  shoal_text resume;
  shoal_text_init(&resume);
  add_resume_command(c, &resume);
  if (!resume.failed)
    fprintf(stderr, "%s steps are saved in %s; to continue:\n  %s\n",
            shoal_human_count(steps_of(c, view)).text, c->out, resume.bytes);
  shoal_text_release(&resume);
  return status;
}

/* ---- the command -------------------------------------------------------------------- */

static void begin_to_show(train_command *c) {
  shoal_progress_init(&c->progress, c->json || c->quiet ? NULL : stderr, shoal_clock_seconds());
  if (!c->quiet) shoal_stop_says("stopping; what was learned is saved");
}

static void tell_warning(void *self, const char *text) {
  train_command *c = self;
  pthread_mutex_lock(&c->shown);
  shoal_progress_clear(&c->progress);
  shoal_cli_warn(COMMAND, "%s", text);
  pthread_mutex_unlock(&c->shown);
}

static shoal_status train(train_command *c, shoal_training_view *view, shoal_error *err) {
  const shoal_training_options options = {
      .learner = c->learner,
      .config = c->config,
      .threads = (uint32_t)c->threads,
      .seconds = c->said.seconds,
      .steps = c->config.steps_all,
      .until_solved = !c->said.full,
      .out = c->out,
      .save_every_s = save_every_s,
      .stop = shoal_stop_flag(),
      .self = c,
      .round = round_done,
      .warn = tell_warning,
  };
  begin_to_show(c);
  shoal_status status = shoal_train_agent(&options, view, err);
  shoal_progress_clear(&c->progress);
  return status;
}

/* On-policy algorithms that wait for every round do so here, too; others take what comes. */
static bool is_exact(const shoal_agent_settings *settings) {
  return settings->lag == 0 && (settings->algorithm == SHOAL_PPO || settings->algorithm == SHOAL_CLONE);
}

static shoal_status train_by_queue(train_command *c, shoal_training_view *view, shoal_error *err) {
  const shoal_agent_queue_config config = {
      .url = c->url,
      .name = name_of(c),
      .command = COMMAND,
      .coach = {.learner = c->config,
                .exact = is_exact(&c->config.settings),
                .lease_s = queue_lease_s,
                .seconds = c->said.seconds,
                .steps = c->config.steps_all,
                .until_solved = !c->said.full,
                .anew = !c->resume,
                .file = c->out,
                .save_every_s = queue_save_every_s},
      .stop = shoal_stop_flag(),
      .self = c,
      .round = round_by_queue,
      .warn = tell_warning,
      .actors = actors_changed,
  };
  begin_to_show(c);
  shoal_status status = shoal_agent_queue_train(&config, view, err);
  shoal_progress_clear(&c->progress);
  return status;
}

static int finish(train_command *c, const shoal_training_view *view) {
  if (c->events) log_score(c, &view->evaluation, steps_of(c, view));
  if (c->events) flush_events(c);
  if (c->json)
    print_end_json(c, view, false);
  else if (!c->quiet)
    print_end(c, view);
  tell_idle(c, view);
  return shoal_cli_finish(COMMAND, SHOAL_EXIT_OK);
}

static void release(train_command *c) {
  shoal_events_destroy(c->events);
  pthread_mutex_destroy(&c->shown);
  shoal_queue_url_free(c->url);
  shoal_learner_destroy(c->learner);
  shoal_env_close(c->kind);
  shoal_text_release(&c->out_made);
  shoal_text_release(&c->kept);
}

int shoal_cli_agent_train(int argc, char **argv) {
  train_command c = {.seed = usual_seed, .threads = shoal_cli_threads()};
  shoal_training_view view = {0};
  shoal_error err;
  int exit_status;
  if (!parse(&c, argc, argv, &exit_status)) return exit_status;
  if (check_words(&c, &err) != SHOAL_OK) return shoal_cli_misused(COMMAND, &err);
  if (c.queue && (c.url = shoal_queue_url_take(c.queue, argc, argv)) == NULL) {
    shoal_fail(&err, SHOAL_NO_MEMORY, "not enough memory");
    return shoal_cli_failed(COMMAND, &err);
  }
  shoal_stop_catch();
  signal(SIGPIPE, SIG_IGN); /* where nobody reads any more, what was learned is saved */
  shoal_env_stop_by(shoal_stop_flag());
  pthread_mutex_init(&c.shown, NULL);
  shoal_status status = open_learner(&c, &err);
  if (status == SHOAL_OK && c.log_dir) status = shoal_events_create(&c.events, c.log_dir, &err);
  bool begun = status == SHOAL_OK;
  if (begun) status = c.queue ? train_by_queue(&c, &view, &err) : train(&c, &view, &err);
  if (status == SHOAL_OK)
    exit_status = finish(&c, &view);
  else if (status == SHOAL_STOPPED)
    exit_status = stopped(&c, &view, begun);
  else
    exit_status = !begun && c.misused ? shoal_cli_misused(COMMAND, &err) : shoal_cli_failed(COMMAND, &err);
  if (!c.resume) shoal_cli_drop_previous(c.out ? c.out : "", &c.kept);
  release(&c);
  return exit_status;
}
