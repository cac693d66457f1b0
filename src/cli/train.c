/* train.c: shoal train: trains a network from its text, or goes on from a checkpoint.
 *
 * The run in short: read the model and the data, reserve memory, then the loop of train/training.h, and
 * a report of what it does. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/learner.h"
#include "base/clock.h"
#include "base/human.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/image_reading.h"
#include "cli/lifeline.h"
#include "cli/recipe_options.h"
#include "cli/report.h"
#include "cli/stop.h"
#include "cli/train.h"
#include "cli/train_mpi.h"
#include "nn/checkpoint.h"
#include "search/predictor.h"
#include "train/metric.h"
#include "train/training.h"

/* ---- options ------------------------------------------------------------------------ */

/* A run that goes on cannot change these and still be the same run. */
static const bool fixed[SHOAL_RECIPE_SETTINGS] = {
    [SHOAL_RECIPE_OPTIMIZER] = true, [SHOAL_RECIPE_BATCH] = true,   [SHOAL_RECIPE_SEED] = true,
    [SHOAL_RECIPE_SHARDS] = true,    [SHOAL_RECIPE_SHUFFLE] = true, [SHOAL_RECIPE_AUGMENT] = true,
};

typedef struct train_options {
  shoal_cluster_options cluster;
  const char *model, *data, *target, *valid, *data_dir, *out, *resume, *log_dir;
  const char *settings[SHOAL_RECIPE_SETTINGS]; /* as given, or NULL */
  double valid_share, save_every_s;
  uint64_t threads;
  bool json, quiet;
} train_options;

/* Without `status`, err gets what would have been printed. */
static bool parse(train_options *o, int argc, char **argv, int *status, shoal_error *err) {
  const shoal_option data[] = {
      {.name = "Data"},
      {.name = "data",
       .value = "SET",
       .text = &o->data,
       .help = "what to train on: a name from 'shoal data list', a folder of PNG or JPEG files with a "
               "subfolder for each class (also below train/ and test/), a folder of IDX or CIFAR-10 files, "
               "FILE.csv, text:FILE, chars:FILE, toy:reverse or toy:wave"},
      {.name = "target",
       .value = "COLUMN",
       .text = &o->target,
       .help = "CSV: the column to predict, by name or number; the last one by default"},
      {.name = "valid",
       .value = "SHARE",
       .text = &o->valid,
       .help = "hold out this share of the training samples for validation, such as 0.1"},
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data_dir,
       .help = "where named sets are kept; ~/.local/share/shoal by default"},
  };
  const shoal_option own[] = {
      {.name = "Run"},
      {.name = "out",
       .value = "FILE",
       .text = &o->out,
       .help = "where the model is saved after every epoch; by default the model's name with "
               ".safetensors, in this folder"},
      {.name = "resume",
       .value = "FILE",
       .text = &o->resume,
       .help =
           "continue from a checkpoint; the weights at the end are those of a run that was never stopped, "
           "bit for bit. "
           "--epochs can be raised"},
      {.name = "save-every",
       .value = "SECONDS",
       .real = &o->save_every_s,
       .real_min = 0,
       .real_max = 1e6,
       .help = "save every SECONDS seconds as well, within an epoch"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "the most threads to use; by default one for every processor. The result does "
               "not depend on it"},
      {.name = "log-dir",
       .value = "FOLDER",
       .text = &o->log_dir,
       .help = "write a TensorBoard event file into this folder: curves, the graph, weights, gradients and "
               "samples"},
      {.name = "json", .flag = &o->json, .help = "print events as JSON lines"},
      {.name = "quiet", .flag = &o->quiet, .help = "print nothing but errors"},
  };
  enum { RECIPE = sizeof data / sizeof data[0], OWN = RECIPE + SHOAL_RECIPE_LINES(SHOAL_RECIPE_SETTINGS) };
  enum { CLUSTER = OWN + sizeof own / sizeof own[0], ALL = CLUSTER + SHOAL_CLUSTER_OPTIONS };
  shoal_option options[ALL];
  memcpy(options, data, sizeof data);
  shoal_recipe_declare(o->settings, SHOAL_RECIPE_SETTINGS, options + RECIPE);
  memcpy(options + OWN, own, sizeof own);
  shoal_cluster_declare(&o->cluster, options + CLUSTER);
  const shoal_usage usage = {
      .command = "train",
      .synopses =
          (const char *[]){"MODEL.net --data SET [OPTION...]", "--resume FILE --data SET [OPTION...]", NULL},
      .about = "Trains the network that MODEL.net describes. The model is saved after every epoch; Ctrl-C "
               "saves it too and says how to continue. The same seed gives the same weights to the last bit, "
               "with any number of threads.",
      .operand = "MODEL.net",
      .operands_max = 1,
      .options = options,
      .options_count = ALL,
      .examples = "  shoal train examples/lenet5.net --data fashion-mnist\n"
                  "  shoal train examples/lenet5.net --data fashion-mnist --workers 2 --ps 1\n"
                  "  shoal train lenet5.net --data mnist --epochs 3 --optimizer adam --rate 0.001\n"
                  "  shoal train table.net --data wine.csv --target quality --valid 0.1 --early-stop 5\n"
                  "  shoal train --resume lenet5.safetensors --data fashion-mnist --epochs 20\n",
  };
  shoal_operands operands;
  bool parsed = status != NULL ? shoal_cli_parse(&usage, argc, argv, &operands, status)
                               : shoal_options_parse(&usage, argc, argv, &operands, err) == SHOAL_PARSED;
  if (parsed) o->model = operands.at[0];
  return parsed;
}

static train_options default_options(void) {
  return (train_options){.threads = shoal_cli_threads(),
                         .cluster = {.ps = UINT64_MAX, .task_index = UINT64_MAX}};
}

/* ---- a run -------------------------------------------------------------------------- */

typedef struct run {
  double started;
  train_options options;
  shoal_checkpoint from;  /* what --resume loaded, or zero */
  shoal_model *own_model; /* what MODEL.net gave, or NULL when going on */
  shoal_model *model;     /* one of the two */
  bool had_early_stop;    /* the checkpoint's run: only then is a best file beside it its own */
  shoal_task task;
  shoal_role role;
  shoal_cluster *cluster; /* the chief's side, or NULL */
  shoal_chief_ending ending;
  shoal_train_mpi *mpi; /* this rank, or NULL */
  shoal_training_config config;
  shoal_training training;
  shoal_text out_path, together;
  char machine[HOST_NAME_MAX + 1]; /* its name */
  shoal_report_plan plan;
  shoal_report report;
} run;

static bool ends_with(const char *word, const char *end) {
  size_t length = strlen(word), end_length = strlen(end);
  return length >= end_length && strcmp(word + length - end_length, end) == 0;
}

/* ---- setting up --------------------------------------------------------------------- */

/* What can be said without looking at data. */
static shoal_status check_options(train_options *o, shoal_error *err) {
  if (!o->model && !o->resume)
    return shoal_fail(
        err, SHOAL_INVALID,
        "MODEL.net is missing: the text that describes the network; or --resume FILE, to continue");
  const char *given = o->resume ? o->resume : o->model;
  if (ends_with(given, ".safetensors") && shoal_predictor_is(given))
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s is a model of 'shoal search'; continue with shoal search FILE.csv --resume --out %s", given,
        given);
  if (ends_with(given, ".safetensors") && shoal_agent_is(given))
    return shoal_fail(err, SHOAL_INVALID, "%s is an agent; continue with shoal agent train --resume --out %s",
                      given, given);
  if (o->model && !o->resume && ends_with(o->model, ".safetensors"))
    return shoal_fail(err, SHOAL_INVALID, "%s is a checkpoint; to continue from it, write --resume %s",
                      o->model, o->model);
  if (o->valid) {
    bool is_number = shoal_read_f64(o->valid, strlen(o->valid), &o->valid_share);
    if (!is_number || o->valid_share < 0 || o->valid_share > 0.9)
      return shoal_fail(err, SHOAL_INVALID, "--valid: '%s' is not a share from 0 to 0.9", o->valid);
  }
  return SHOAL_OK;
}

shoal_status shoal_train_check(int argc, char **argv, shoal_error *err) {
  train_options o = default_options();
  shoal_role role;
  if (!parse(&o, argc, argv, NULL, err)) return SHOAL_INVALID;
  shoal_status status = shoal_cluster_role(&o.cluster, &role, err);
  if (status == SHOAL_OK && role != SHOAL_SERVES) status = check_options(&o, err);
  if (status == SHOAL_OK && role != SHOAL_SERVES && !o.data)
    status = shoal_fail(err, SHOAL_INVALID, "--data is missing: it says what to train on");
  return status;
}

/* A run that goes on takes its model from the checkpoint; a MODEL.net beside it may only
 * say the same. */
static shoal_status check_same_model(const run *r, shoal_error *err) {
  shoal_model *given;
  shoal_status status = shoal_model_load(&given, r->options.model, err);
  if (status != SHOAL_OK) return status;
  given->recipe = r->from.model->recipe;
  shoal_text a, b;
  shoal_text_init(&a);
  shoal_text_init(&b);
  shoal_model_write(given, &a);
  shoal_model_write(r->from.model, &b);
  bool same = !a.failed && !b.failed && strcmp(a.bytes, b.bytes) == 0;
  shoal_text_release(&a);
  shoal_text_release(&b);
  shoal_model_destroy(given);
  if (!same)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s is not the network in %s; leave it out to continue with the checkpoint's own",
                      r->options.model, r->options.resume);
  return SHOAL_OK;
}

/* Applies a flag. A fixed setting may be given again when a run goes on, but not changed. */
static shoal_status apply_setting(run *r, int setting, shoal_error *err) {
  const char *name = shoal_recipe_settings[setting];
  const char *value = r->options.settings[setting];
  char flag[32];
  snprintf(flag, sizeof flag, "--%s", name);
  shoal_recipe before = r->model->recipe;
  shoal_status status = shoal_model_set(r->model, flag, name, value, err);
  if (status != SHOAL_OK || !r->options.resume || !fixed[setting]) return status;
  const shoal_recipe *after = &r->model->recipe;
  bool same = before.optimizer == after->optimizer && before.momentum == after->momentum &&
              before.beta2 == after->beta2 && before.eps == after->eps && before.batch == after->batch &&
              before.seed == after->seed && before.shards == after->shards &&
              before.shuffle == after->shuffle && before.augment.flip == after->augment.flip &&
              before.augment.crop == after->augment.crop;
  if (!same)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s cannot change when a run is resumed, because it would not be the same run any more; "
        "leave it out, or start over without --resume",
        flag);
  r->model->recipe = before; /* --optimizer would have reset the rate */
  return SHOAL_OK;
}

static shoal_status read_model(run *r, shoal_error *err, bool *misused) {
  const train_options *o = &r->options;
  shoal_status status;
  if (o->resume) {
    status = shoal_checkpoint_load(&r->from, o->resume, err);
    if (status == SHOAL_OK && o->model) status = check_same_model(r, err);
    r->model = r->from.model;
    r->had_early_stop = r->model && r->model->recipe.early_stop > 0;
  } else {
    status = shoal_model_load(&r->own_model, o->model, err);
    r->model = r->own_model;
  }
  for (int i = 0; i < SHOAL_RECIPE_SETTINGS && status == SHOAL_OK; i++) {
    if (!o->settings[i]) continue;
    status = apply_setting(r, i, err);
    *misused = status != SHOAL_OK;
  }
  return status;
}

/* Where the model goes. */
static shoal_status choose_places(run *r, shoal_error *err) {
  const train_options *o = &r->options;
  if (o->out || o->resume) {
    shoal_text_addf(&r->out_path, "%s", o->out ? o->out : o->resume);
  } else {
    const char *slash = strrchr(o->model, '/');
    const char *name = slash ? slash + 1 : o->model;
    int length = (int)strlen(name) - (ends_with(name, ".net") ? (int)strlen(".net") : 0);
    shoal_text_addf(&r->out_path, "%.*s.safetensors", length, name);
  }
  if (r->out_path.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  return shoal_cli_spare_inputs(r->out_path.bytes, (const char *const[]){o->model, o->data}, 2, err);
}

static shoal_status open_task(run *r, shoal_error *err) {
  const train_options *o = &r->options;
  shoal_dataset_options options = {
      .data = o->data, .target = o->target, .valid_share = o->valid_share, .data_dir = o->data_dir};
  shoal_image_reading reading;
  shoal_image_reading_begin(&reading, &options, o->quiet || o->json ? NULL : stdout);
  shoal_status status = shoal_task_open(&r->task, r->model, &options, err);
  shoal_image_reading_end(&reading, r->task.dataset);
  if (status != SHOAL_OK) return status;
  if (r->model->recipe.early_stop > 0 && r->task.sources[SHOAL_VALID].samples == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "early stopping needs validation samples, and %s has none; add --valid 0.1 to hold out "
                      "a tenth of the training samples",
                      o->data);
  /* What was fitted now is what was fitted then, or the run would not be the same run. */
  bool same = !r->from.data_json || strcmp(r->from.data_json, r->task.fitted.bytes) == 0;
  if (!same)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s is not what %s was trained on: scales, classes or words differ; give the same --data, "
        "--target and --valid as before",
        o->data, o->resume);
  return shoal_task_ready(&r->task, (uint32_t)o->threads, err);
}

/* ---- what the loop tells ------------------------------------------------------------ */

static void tell_round(void *self, const shoal_result *round) {
  run *r = self;
  shoal_report_round(&r->report, round);
}

static void tell_epoch(void *self, const shoal_result *train, const shoal_result *held_out) {
  run *r = self;
  shoal_report_epoch(&r->report, train, held_out);
}

/* For people on stderr, whatever else they want to see; for programs an event. */
static void tell_warning(void *self, const char *text) {
  run *r = self;
  shoal_progress_clear(&r->report.progress);
  shoal_cli_warn("train", "%s", text);
  if (r->options.json) shoal_report_event_line(&r->report, text);
}

static void tell_moved_aside(void *self, const char *place) {
  run *r = self;
  shoal_report_note(&r->report, "the model that was in %s is now in %s\n", r->out_path.bytes, place);
}

static shoal_status open_training(run *r, shoal_error *err) {
  r->config = (shoal_training_config){
      .task = &r->task,
      .out = r->out_path.bytes,
      .resumed = r->options.resume,
      .had_early_stop = r->had_early_stop,
      .save_every_s = r->options.save_every_s,
      .calls = {r, tell_round, tell_epoch, tell_warning, tell_moved_aside},
      .stop = shoal_stop_flag(),
  };
  shoal_status status = shoal_training_init(&r->training, &r->config, err);
  if (status != SHOAL_OK) return status;
  return shoal_training_begin(&r->training, r->options.resume ? &r->from : NULL, err);
}

static shoal_status set_up(run *r, shoal_error *err, bool *misused) {
  *misused = true;
  shoal_status status = check_options(&r->options, err);
  if (status != SHOAL_OK) return status;
  *misused = false;
  status = read_model(r, err, misused);
  if (status == SHOAL_OK && !r->options.data) {
    *misused = true;
    return shoal_fail(err, SHOAL_INVALID,
                      "--data is missing: it says what to train on; 'shoal data list' shows the named sets");
  }
  bool leads = shoal_train_mpi_leads(r->mpi); /* only who leads has files */
  if (status == SHOAL_OK && leads) status = choose_places(r, err);
  if (status == SHOAL_OK) status = open_task(r, err);
  if (status == SHOAL_OK && leads) status = open_training(r, err);
  if (status == SHOAL_OK)
    status =
        shoal_report_init(&r->report, r->started, r->options.json, r->options.quiet, r->options.log_dir, err);
  return status;
}

static void release(run *r) {
  bool over = r->ending == SHOAL_ENDS_OVER;
  shoal_cluster_close(r->cluster, r->ending,
                      over ? "the training has ended" : shoal_stop_name(shoal_stop_signal()));
  shoal_report_release(&r->report);
  shoal_train_mpi_close(r->mpi);
  shoal_task_close(&r->task);
  shoal_model_destroy(r->own_model);
  shoal_checkpoint_release(&r->from);
  shoal_training_release(&r->training);
  shoal_text_release(&r->out_path);
  shoal_text_release(&r->together);
}

/* ---- the end ------------------------------------------------------------------------ */

/* " --data iris.csv --target species" */
static void add_data_options(const run *r, shoal_text *out) {
  shoal_cli_add_option(out, "data", r->options.data);
  shoal_cli_add_option(out, "target", r->options.target);
  shoal_cli_add_option(out, "data-dir", r->options.data_dir);
}

/* The command that goes on. Over ssh it is one of the machine that started this one. */
static void add_resume_command(const run *r, shoal_text *out) {
  const train_options *o = &r->options;
  bool launched = o->cluster.lifeline;
  if (r->mpi) shoal_text_addf(out, "mpirun -n %u ", shoal_train_mpi_ranks(r->mpi));
  shoal_human_quote(out, program_invocation_name);
  shoal_text_addf(out, launched ? " launch --hosts FILE --resume " : " train --resume ");
  shoal_human_quote(out, r->out_path.bytes);
  add_data_options(r, out);
  shoal_cli_add_option(out, "valid", o->valid);
  shoal_cli_add_option(out, "log-dir", o->log_dir);
  shoal_cluster_add_options(&o->cluster, !launched, out);
}

static int interrupted(run *r) {
  static const volatile sig_atomic_t never = 0;
  shoal_error err;
  /* Who has pressed Ctrl-C can make room, or press it again, which ends the process. */
  if (shoal_stop_signal() == SIGINT) r->config.stop = &never;
  if (shoal_training_save(&r->training, &err) != SHOAL_OK) return shoal_cli_failed("train", &err);
  shoal_text resume;
  shoal_text_init(&resume);
  add_resume_command(r, &resume);
  int number = shoal_stop_signal();
  shoal_report_interrupted(&r->report, shoal_stop_name(number), resume.failed ? "" : resume.bytes);
  uint64_t safe;
  if (r->cluster != NULL && shoal_cluster_is_behind(r->cluster, &safe))
    shoal_report_note(&r->report,
                      "The same command again would continue from round %s: the state in %s is older",
                      shoal_human_count(safe).text, shoal_cluster_state_dir(r->cluster));
  else if (r->cluster != NULL)
    shoal_report_note(&r->report, "Or run the same command again: it continues from the state in %s",
                      shoal_cluster_state_dir(r->cluster));
  shoal_text_release(&resume);
  return 128 + number;
}

/* No round was made, neither now nor by an earlier process of the same training. */
static bool nothing_was_done(const run *r) {
  return r->report.rounds_done == 0 && (r->cluster == NULL || shoal_cluster_went_on(r->cluster) == 0);
}

static int cut_off(run *r, const shoal_error *err) {
  shoal_progress_clear(&r->report.progress);
  shoal_error nothing;
  shoal_fail(&nothing, SHOAL_STOPPED, "stopped before the first round; nothing was trained");
  shoal_cli_failed("train", nothing_was_done(r) ? &nothing : err);
  return 128 + shoal_stop_signal();
}

static void say_what_is_saved(const run *r) {
  if (r->training.saved_step == UINT64_MAX)
    fprintf(stderr, "Nothing was saved.\n");
  else
    fprintf(stderr, "%s still holds the model after %s rounds.\n", r->out_path.bytes,
            shoal_human_count(r->training.saved_step).text);
}

static int exploded(run *r, const shoal_error *err) {
  shoal_progress_clear(&r->report.progress);
  shoal_cli_failed("train", err);
  fprintf(stderr, "The rate was %g. ", (double)shoal_trainer_rate(r->task.trainer));
  say_what_is_saved(r);
  return SHOAL_EXIT_FAILED;
}

/* A cluster has records to go on from; without one there is the model that was saved last. */
static int failed(run *r, const shoal_error *err) {
  shoal_progress_clear(&r->report.progress);
  shoal_cli_failed("train", err);
  if (r->cluster == NULL)
    say_what_is_saved(r);
  else if (!nothing_was_done(r))
    fprintf(stderr, "What was kept in %s stays, and the same command continues from there.\n",
            shoal_cluster_state_dir(r->cluster));
  return SHOAL_EXIT_FAILED;
}

/* Has the model on disk, the best one where there is such. */
static shoal_status save_result(run *r, shoal_error *err) {
  if (r->training.best_epoch == 0) return shoal_training_save(&r->training, err);
  /* The best is on disk already. A cluster's thread reads the state that is written here: it ends first. */
  shoal_cluster_close(r->cluster, SHOAL_ENDS_OVER, "the training has ended");
  r->cluster = NULL;
  return shoal_training_keep_best(&r->training, err);
}

/* What the model of a text can go on from: the text's own first words, unless it looks ahead. */
static void add_prompt(const run *r, shoal_text *out) {
  for (uint32_t l = 0; l < r->model->layers_count; l++)
    if (r->model->layers[l].bidirectional) return;
  shoal_dataset_opening(r->task.dataset, out);
}

static int finished(run *r, bool stopped_early) {
  shoal_error err;
  if (save_result(r, &err) != SHOAL_OK) return shoal_cli_failed("train", &err);
  shoal_training_results results = shoal_training_evaluate(&r->training);
  bool has_valid = r->task.sources[SHOAL_VALID].samples > 0;
  shoal_report_end end = {.stopped_early = stopped_early,
                          .best_epoch = r->training.best_epoch,
                          .train = &results.train,
                          .held_out = has_valid ? &results.held_out : NULL,
                          .test = results.has_test ? &results.test : NULL};
  shoal_text data_options, prompt;
  shoal_text_init(&data_options);
  shoal_text_init(&prompt);
  add_data_options(r, &data_options);
  add_prompt(r, &prompt);
  end.data_options = data_options.failed ? "" : data_options.bytes;
  end.prompt = prompt.failed || prompt.length == 0 ? NULL : prompt.bytes;
  shoal_report_end_of_run(&r->report, &end);
  shoal_text_release(&data_options);
  shoal_text_release(&prompt);
  return shoal_cli_finish("train", SHOAL_EXIT_OK);
}

static void say_who_is_too_many(run *r, uint32_t ranks) {
  char text[200] = "";
  uint32_t shards = shoal_trainer_shards(r->task.trainer);
  if (shoal_train_mpi_was_forgotten(r->mpi))
    snprintf(text, sizeof text, "this process is alone: mpirun -n N in front of the command starts N ranks");
  else if (ranks > shards)
    snprintf(text, sizeof text,
             "%u ranks, but a round has %u shards: the others compute nothing; see --shards", ranks, shards);
  if (text[0] != 0) shoal_report_event(&r->report, text);
}

static void note_in_report(void *self, const char *text) {
  run *r = self;
  shoal_report_event(&r->report, text);
}

static void start_report(run *r) {
  shoal_cluster_describe(&r->options.cluster, r->role, &r->together);
  uint32_t ranks = shoal_train_mpi_ranks(r->mpi);
  if (r->mpi) shoal_text_addf(&r->together, "%u rank%s of MPI", ranks, ranks == 1 ? "" : "s");
  const char *file = r->options.resume ? r->options.resume : r->options.model;
  const char *slash = strrchr(file, '/');
  r->plan = (shoal_report_plan){
      .graph = r->task.graph,
      .trainer = r->task.trainer,
      .task = &r->task,
      .held_out_source = shoal_training_held_out(&r->training),
      .model_name = slash ? slash + 1 : file,
      .data_name = r->options.data,
      .out_path = r->out_path.bytes,
      .is_text = shoal_dataset_is_text(r->task.dataset),
      .train_positions = r->task.sources[SHOAL_TRAIN].samples,
      .train_samples = shoal_dataset_samples(r->task.dataset, SHOAL_TRAIN),
      .valid_samples = shoal_dataset_samples(r->task.dataset, SHOAL_VALID),
      .test_samples = shoal_dataset_samples(r->task.dataset, SHOAL_TEST),
      .threads = r->role == SHOAL_CHIEF ? (uint32_t)r->options.threads
                                        : shoal_engine_threads(shoal_trainer_engine(r->task.trainer)),
      .together = r->together.length > 0 ? r->together.bytes : NULL,
      .runs_ahead = r->role == SHOAL_CHIEF,
      .where = r->options.cluster.lifeline && gethostname(r->machine, sizeof r->machine - 1) == 0 ? r->machine
                                                                                                  : NULL,
      .resumed_from = r->options.resume,
      .held_out = r->task.sources[SHOAL_VALID].samples  ? "valid"
                  : r->task.sources[SHOAL_TEST].samples ? "test"
                                                        : NULL,
  };
  shoal_report_start(&r->report, &r->plan);
  const char *images = shoal_dataset_note(r->task.dataset); /* for people it was said before */
  if (r->options.json && images) shoal_report_event(&r->report, images);
  say_who_is_too_many(r, ranks);
  shoal_task_notes(&r->task, note_in_report, r);
}

/* ---- many processes ----------------------------------------------------------------- */

static shoal_cluster_data cluster_data(const train_options *o) {
  return (shoal_cluster_data){.data = o->data,
                              .target = o->target,
                              .data_dir = o->data_dir,
                              .valid_share = o->valid_share,
                              .threads = (uint32_t)o->threads};
}

static shoal_status open_cluster(run *r, shoal_error *err) {
  const shoal_notes notes = {.self = r, .note = note_in_report, .warn = tell_warning};
  const shoal_cluster_config config = {.options = &r->options.cluster,
                                       .data = cluster_data(&r->options),
                                       .task = &r->task,
                                       .out_path = r->out_path.bytes,
                                       .notes = notes,
                                       .stop = shoal_stop_flag()};
  shoal_status status = shoal_cluster_open(&r->cluster, &config, &r->training.rounds, err);
  if (status != SHOAL_OK) return status;
  r->config.state_dir = shoal_cluster_state_dir(r->cluster);
  r->config.state_bytes = shoal_cluster_room(r->cluster);
  if (shoal_cluster_went_on(r->cluster) == 0) return SHOAL_OK;
  status = r->training.rounds.gather(r->training.rounds.self, err);
  if (status == SHOAL_OK) status = shoal_training_goes_on(&r->training, err);
  if (status != SHOAL_OK) return status;
  shoal_note(&notes, "continuing from round %s, where this training was cut off; to start over, remove %s",
             shoal_human_count(r->training.state->step).text, shoal_cluster_state_dir(r->cluster));
  return SHOAL_OK;
}

static void note_on_stderr(void *self, const char *text) {
  const train_options *o = self;
  if (!o->quiet)
    fprintf(stderr, "%s %llu: %s\n", o->cluster.job_name, (unsigned long long)o->cluster.task_index, text);
}

/* The recipe is the chief's, whatever another's command line says. 'shoal launch' gives all words to all. */
static void say_what_is_ignored(const train_options *o, const shoal_notes *notes) {
  shoal_text flags;
  shoal_text_init(&flags);
  for (int i = 0; i < SHOAL_RECIPE_SETTINGS; i++)
    if (o->settings[i]) shoal_text_addf(&flags, " --%s", shoal_recipe_settings[i]);
  if (o->valid) shoal_text_addf(&flags, " --valid");
  if (o->out) shoal_text_addf(&flags, " --out");
  if (o->resume) shoal_text_addf(&flags, " --resume");
  if (o->log_dir) shoal_text_addf(&flags, " --log-dir");
  if (o->save_every_s > 0) shoal_text_addf(&flags, " --save-every");
  if (o->cluster.mode) shoal_text_addf(&flags, " --mode");
  if (o->cluster.wire) shoal_text_addf(&flags, " --wire");
  if (o->cluster.recheck > 0) shoal_text_addf(&flags, " --recheck");
  if (flags.length > 0 && !flags.failed && !o->cluster.lifeline)
    shoal_note(notes, "what the chief was told counts; ignored here:%s", flags.bytes);
  shoal_text_release(&flags);
}

/* A worker or parameter server. */
static int serve(train_options *o) {
  shoal_error err;
  const shoal_cluster_data data = cluster_data(o);
  const shoal_notes notes = {.self = o, .note = note_on_stderr};
  say_what_is_ignored(o, &notes);
  shoal_stop_catch();
  shoal_status status = shoal_cluster_serve(&o->cluster, &data, &notes, shoal_stop_flag(), &err);
  if (status == SHOAL_STOPPED) return SHOAL_EXIT_CHIEF_STOPPED;
  if (status == SHOAL_OK) return shoal_stop_signal() != 0 ? 128 + shoal_stop_signal() : SHOAL_EXIT_OK;
  shoal_error_prefix(&err, "%s %llu: ", o->cluster.job_name, (unsigned long long)o->cluster.task_index);
  return shoal_cli_failed("train", &err);
}

/* What is stopped can go on by the same command, from the records, as well as from the model that was saved. What failed,
 * or could not be saved, waits for somebody who mends that. */
static shoal_chief_ending ending_of(const run *r, shoal_outcome how) {
  bool stopped = how == SHOAL_INTERRUPTED || how == SHOAL_CUT_OFF;
  bool is_saved = r->training.saved_step == r->training.state->step;
  if (stopped) return nothing_was_done(r) ? SHOAL_ENDS_UNBEGUN : SHOAL_ENDS_STOPPED;
  return how == SHOAL_EXPLODED || nothing_was_done(r) || (how != SHOAL_BROKEN && is_saved)
             ? SHOAL_ENDS_OVER
             : SHOAL_ENDS_SILENTLY;
}

static int run_training(run *r) {
  shoal_error err;
  int status = SHOAL_EXIT_FAILED;
  start_report(r);
  if (r->role == SHOAL_CHIEF && open_cluster(r, &err) != SHOAL_OK) {
    bool stopped = err.status == SHOAL_STOPPED;
    r->ending = stopped ? ending_of(r, SHOAL_CUT_OFF) : SHOAL_ENDS_SILENTLY;
    return stopped              ? cut_off(r, &err)
           : r->cluster != NULL ? failed(r, &err)
                                : shoal_cli_failed("train", &err);
  }
  shoal_outcome how = shoal_training_loop(&r->training, &err);
  if (r->cluster != NULL && r->report.rounds_done > 0) shoal_cluster_report(r->cluster, &r->report);
  switch (how) {
  case SHOAL_FINISHED: status = finished(r, false); break;
  case SHOAL_STOPPED_EARLY: status = finished(r, true); break;
  case SHOAL_INTERRUPTED: status = interrupted(r); break;
  case SHOAL_CUT_OFF: status = cut_off(r, &err); break;
  case SHOAL_EXPLODED: status = exploded(r, &err); break;
  case SHOAL_BROKEN: status = failed(r, &err); break;
  }
  r->ending = ending_of(r, how);
  return status;
}

static int train(int argc, char **argv) {
  run r = {.started = shoal_clock_seconds(), .options = default_options()};
  int status;
  if (!parse(&r.options, argc, argv, &status, NULL)) return status;
  shoal_error err;
  if (shoal_cluster_role(&r.options.cluster, &r.role, &err) != SHOAL_OK)
    return shoal_cli_misused("train", &err);
  if (r.options.cluster.lifeline && shoal_lifeline_hold(&err) != SHOAL_OK)
    return shoal_cli_failed("train", &err);
  if (r.role == SHOAL_SERVES) return serve(&r.options);
  if (r.role == SHOAL_MPI && shoal_train_mpi_open(&r.mpi, &err) != SHOAL_OK)
    return shoal_cli_failed("train", &err);
  const bool leads = shoal_train_mpi_leads(r.mpi);
  if (!leads) {
    r.options.quiet = true;
    r.options.json = false;
    r.options.log_dir = NULL;
  }
  bool misused;
  shoal_status ready = set_up(&r, &err, &misused);
  if (r.mpi) ready = shoal_train_mpi_join(r.mpi, ready, &r.task, &r.training.rounds, &err);
  if (ready != SHOAL_OK) {
    status = !shoal_train_mpi_speaks(r.mpi) ? SHOAL_EXIT_FAILED
             : misused                      ? shoal_cli_misused("train", &err)
                                            : shoal_cli_failed("train", &err);
    release(&r);
    return status;
  }
  if (leads) {
    if (!r.options.quiet) shoal_stop_says("Stopping after this round; again ends at once.");
    shoal_stop_catch();
    status = run_training(&r);
  } else {
    status = shoal_train_mpi_follow(r.mpi);
  }
  release(&r);
  return status;
}

const shoal_command shoal_command_train = {"train", "train a network, or continue from a checkpoint", train};
