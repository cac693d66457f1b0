/* train.c: shoal train: trains a network from its text, or goes on from a checkpoint.
 *
 * The run in short: read the model and the data, reserve memory, then round after round.
 * After every epoch the held-out samples are evaluated and the whole state is saved under
 * --out, atomically. A signal ends the run after the round at hand, with the state saved,
 * so a run that is stopped or killed goes on to the same bits.
 *
 * Early stopping keeps a second file, OUT with ".best" in its name: the state after the epoch
 * with the lowest validation loss. At the end it takes the place of OUT. How long ago the
 * best epoch was follows from the two files alone, so that too survives a kill.
 *
 * Nothing slow stands before the first round: no evaluation, no checksum of the data. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/human.h"
#include "cli/lifeline.h"
#include "cli/metric.h"
#include "cli/report.h"
#include "cli/stop.h"
#include "cli/train.h"
#include "cli/train_mpi.h"
#include "data/task.h"
#include "nn/checkpoint.h"

/* ---- options ------------------------------------------------------------------------ */

/* The settings of a recipe that have a flag of the same name, in the order in which they are
 * applied: an optimiser brings its own rate, so it comes first. A run that goes on cannot
 * change the fixed ones and still be the same run. */
enum { OPTIMIZER, RATE, SCHEDULE, L2, CLIP, EPOCHS, BATCH, SEED, SHARDS, EARLY_STOP, SETTINGS };
static const struct {
  const char *name;
  bool fixed;
} settings[SETTINGS] = {
    [OPTIMIZER] = {"optimizer", true}, [RATE] = {"rate", false},
    [SCHEDULE] = {"schedule", false},  [L2] = {"l2", false},
    [CLIP] = {"clip", false},          [EPOCHS] = {"epochs", false},
    [BATCH] = {"batch", true},         [SEED] = {"seed", true},
    [SHARDS] = {"shards", true},       [EARLY_STOP] = {"early-stop", false},
};

typedef struct train_options {
  shoal_cluster_options cluster;
  const char *model, *data, *target, *valid, *data_dir, *out, *resume, *log_dir;
  const char *settings[SETTINGS]; /* as given, or NULL */
  double valid_share, save_every_s;
  uint64_t threads;
  bool json, quiet;
} train_options;

/* Without `status`, err gets what would have been printed. */
static bool parse(train_options *o, int argc, char **argv, int *status, shoal_error *err) {
  const shoal_option own[] = {
      {.name = "Data"},
      {.name = "data",
       .value = "SET",
       .text = &o->data,
       .help = "what to train on: a name from 'shoal data list', a folder of IDX or CIFAR-10 files, "
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

      {.name = "Recipe (what the model's text says, unless given here)"},
      {.name = "epochs", .value = "N", .text = &o->settings[EPOCHS], .help = "passes over the data"},
      {.name = "batch", .value = "N", .text = &o->settings[BATCH], .help = "samples of a round"},
      {.name = "seed", .value = "N", .text = &o->settings[SEED], .help = "of all random numbers"},
      {.name = "optimizer",
       .value = "WORDS",
       .text = &o->settings[OPTIMIZER],
       .help = "as in the model's text: adam, \"momentum rate 0.1 momentum 0.9\""},
      {.name = "rate", .value = "R", .text = &o->settings[RATE], .help = "the learning rate"},
      {.name = "schedule",
       .value = "WORDS",
       .text = &o->settings[SCHEDULE],
       .help = "how the rate changes: cosine, \"step every 10 factor 0.5\""},
      {.name = "l2", .value = "X", .text = &o->settings[L2], .help = "weight decay"},
      {.name = "clip",
       .value = "NORM",
       .text = &o->settings[CLIP],
       .help = "scale gradients down to this norm; helps when the loss explodes"},
      {.name = "shards",
       .value = "N",
       .text = &o->settings[SHARDS],
       .help = "parts of a round that threads can share; part of the result's last bits"},
      {.name = "early-stop",
       .value = "N",
       .text = &o->settings[EARLY_STOP],
       .help = "stop when the validation loss has not improved for N epochs, and keep the best weights"},

      {.name = "Run"},
      {.name = "out",
       .value = "FILE",
       .text = &o->out,
       .help = "where the model is saved after every epoch; by default the model's name with "
               ".safetensors, in this folder"},
      {.name = "resume",
       .value = "FILE",
       .text = &o->resume,
       .help = "go on from a checkpoint, to the same bits as if never stopped; --epochs can be raised"},
      {.name = "save-every",
       .value = "S",
       .real = &o->save_every_s,
       .real_min = 0,
       .real_max = 1e6,
       .help = "save after so many seconds too, within an epoch"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor; the result does not depend on it"},
      {.name = "log-dir",
       .value = "FOLDER",
       .text = &o->log_dir,
       .help = "write metrics for TensorBoard into a new file there"},
      {.name = "json", .flag = &o->json, .help = "print events as JSON lines"},
      {.name = "quiet", .flag = &o->quiet, .help = "print nothing but errors"},
  };
  enum { OWN = sizeof own / sizeof own[0], ALL = OWN + SHOAL_CLUSTER_OPTIONS };
  shoal_option options[ALL];
  memcpy(options, own, sizeof own);
  shoal_cluster_declare(&o->cluster, options + OWN);
  const shoal_usage usage = {
      .command = "train",
      .synopses =
          (const char *[]){"MODEL.net --data SET [OPTION...]", "--resume FILE --data SET [OPTION...]", NULL},
      .about = "Trains the network that MODEL.net describes. The model is saved after every epoch; Ctrl-C "
               "saves it too and says how to go on. The same seed gives the same weights to the last bit, "
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
  return (train_options){.threads = shoal_cli_threads(), .cluster = {.ps = UINT64_MAX}};
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
  shoal_train_state *state; /* the trainer's */
  shoal_role role;
  shoal_cluster *cluster; /* the chief's side, or NULL */
  bool cluster_is_done;   /* it need not keep anything to go on from */
  shoal_train_mpi *mpi;   /* this rank, or NULL */
  shoal_rounds rounds;    /* who makes them */
  shoal_text out_path, best_path, together;
  shoal_report_plan plan;
  shoal_report report;
  double saved_at;
  uint64_t saved_step; /* UINT64_MAX: nothing saved yet */
  double best_loss;
  uint64_t best_epoch; /* 0: none yet */
} run;

static bool ends_with(const char *word, const char *end) {
  size_t length = strlen(word), end_length = strlen(end);
  return length >= end_length && strcmp(word + length - end_length, end) == 0;
}

/* ---- setting up --------------------------------------------------------------------- */

/* What can be said without looking at any file. */
static shoal_status check_options(train_options *o, shoal_error *err) {
  if (!o->model && !o->resume)
    return shoal_fail(err, SHOAL_INVALID, "MODEL.net is missing: shoal train MODEL.net --data SET");
  if (o->model && !o->resume && ends_with(o->model, ".safetensors"))
    return shoal_fail(err, SHOAL_INVALID, "%s is a checkpoint; to go on from it, write --resume %s", o->model,
                      o->model);
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
                      "%s is not the network in %s; leave it out to go on with the checkpoint's own",
                      r->options.model, r->options.resume);
  return SHOAL_OK;
}

/* Applies a flag. A fixed setting may be given again when a run goes on, but not changed. */
static shoal_status apply_setting(run *r, int setting, shoal_error *err) {
  const char *name = settings[setting].name;
  const char *value = r->options.settings[setting];
  char flag[32];
  snprintf(flag, sizeof flag, "--%s", name);
  shoal_recipe before = r->model->recipe;
  shoal_status status = shoal_model_set(r->model, flag, name, value, err);
  if (status != SHOAL_OK || !r->options.resume || !settings[setting].fixed) return status;
  const shoal_recipe *after = &r->model->recipe;
  bool same = before.optimizer == after->optimizer && before.momentum == after->momentum &&
              before.beta2 == after->beta2 && before.eps == after->eps && before.batch == after->batch &&
              before.seed == after->seed && before.shards == after->shards;
  if (!same)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s cannot change when a run goes on, because it would not be the same run any more; "
                      "leave it out, or start anew without --resume",
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
  for (int i = 0; i < SETTINGS && status == SHOAL_OK; i++) {
    if (!o->settings[i]) continue;
    status = apply_setting(r, i, err);
    *misused = status != SHOAL_OK;
  }
  return status;
}

/* "model.best.safetensors" for "model.safetensors" and "best". */
static void add_path_called(shoal_text *out, const char *path, const char *word) {
  size_t length = strlen(path);
  if (ends_with(path, ".safetensors")) length -= strlen(".safetensors");
  shoal_text_addf(out, "%.*s.%s.safetensors", (int)length, path, word);
}

/* Where the model goes, and whether a file can be made there: better known now than after
 * an hour. */
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
  const char *out = r->out_path.bytes;
  add_path_called(&r->best_path, out, "best");
  if (r->best_path.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");

  struct stat model, target;
  if (o->model && stat(o->model, &model) == 0 && stat(out, &target) == 0 && model.st_ino == target.st_ino &&
      model.st_dev == target.st_dev)
    return shoal_fail(err, SHOAL_INVALID, "--out %s would overwrite the model's text; choose another name",
                      out);
  shoal_writer *writer;
  shoal_status status = shoal_writer_create(&writer, out, err);
  if (status == SHOAL_OK)
    shoal_writer_abandon(writer);
  else
    shoal_error_prefix(err, "cannot save the model: ");
  return status;
}

static shoal_status open_task(run *r, shoal_error *err) {
  const train_options *o = &r->options;
  shoal_dataset_options options = {
      .data = o->data, .target = o->target, .valid_share = o->valid_share, .data_dir = o->data_dir};
  shoal_status status = shoal_task_open(&r->task, r->model, &options, err);
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
  status = shoal_task_ready(&r->task, (uint32_t)o->threads, err);
  if (status == SHOAL_OK) r->state = shoal_trainer_state(r->task.trainer);
  return status;
}

static shoal_status save(run *r, const char *path, shoal_error *err) {
  return shoal_checkpoint_save(path, r->task.graph, r->state, r->task.fitted.bytes, err);
}

/* Loads the state of the best epoch, if there is such a file beside the checkpoint. */
static shoal_status load_best(run *r, bool *found, shoal_error *err) {
  shoal_text path;
  shoal_text_init(&path);
  add_path_called(&path, r->options.resume, "best");
  *found = r->had_early_stop && !path.failed && shoal_file_exists(path.bytes);
  shoal_status status = SHOAL_OK;
  if (*found) {
    shoal_checkpoint best;
    status = shoal_checkpoint_load(&best, path.bytes, err);
    if (status == SHOAL_OK) {
      status = shoal_checkpoint_resume(&best, r->task.graph, r->state, err);
      shoal_checkpoint_release(&best);
    }
  }
  shoal_text_release(&path);
  return status;
}

/* Early stopping goes on where it was: from the best epoch so far, which has a file of its own,
 * or from this one, when the checkpoint is what an earlier run kept. */
static shoal_status recall_best(run *r, shoal_error *err) {
  if (r->model->recipe.early_stop == 0) return SHOAL_OK;
  bool found;
  shoal_status status = load_best(r, &found, err);
  if (status == SHOAL_OK && !found) status = shoal_checkpoint_resume(&r->from, r->task.graph, r->state, err);
  bool at_end_of_epoch = r->state->epoch > 0 && r->state->round == 0;
  if (status != SHOAL_OK || !at_end_of_epoch) return status;
  r->best_loss = shoal_trainer_evaluate(r->task.trainer, &r->task.sources[SHOAL_VALID]).loss;
  r->best_epoch = r->state->epoch;
  return save(r, r->best_path.bytes, err);
}

static shoal_status load_state(run *r, shoal_error *err) {
  if (!r->options.resume) {
    if (r->model->recipe.early_stop > 0) unlink(r->best_path.bytes); /* an earlier run's */
    return SHOAL_OK;
  }
  shoal_status status = recall_best(r, err);
  if (status == SHOAL_OK) status = shoal_checkpoint_resume(&r->from, r->task.graph, r->state, err);
  if (status != SHOAL_OK) return status;
  uint64_t rounds = shoal_trainer_rounds(r->task.trainer);
  bool fits = r->state->round < rounds && r->state->step / rounds == r->state->epoch &&
              r->state->step % rounds == r->state->round;
  if (!fits)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s was not trained on this data: it did %llu rounds in %llu epochs and %llu rounds, "
                      "but an epoch of %s has %llu; give the same --data and --valid as before",
                      r->options.resume, (unsigned long long)r->state->step,
                      (unsigned long long)r->state->epoch, (unsigned long long)r->state->round,
                      r->options.data, (unsigned long long)rounds);
  r->saved_step = r->state->step;
  return SHOAL_OK;
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
  if (status == SHOAL_OK && leads) status = load_state(r, err);
  if (status == SHOAL_OK)
    status =
        shoal_report_init(&r->report, r->started, r->options.json, r->options.quiet, r->options.log_dir, err);
  return status;
}

static void release(run *r) {
  shoal_cluster_close(r->cluster, "the training has ended", r->cluster_is_done);
  shoal_report_release(&r->report);
  shoal_train_mpi_close(r->mpi);
  shoal_task_close(&r->task);
  shoal_model_destroy(r->own_model);
  shoal_checkpoint_release(&r->from);
  shoal_text_release(&r->out_path);
  shoal_text_release(&r->best_path);
  shoal_text_release(&r->together);
}

static const double SAVE_EPOCHS_S = 0.5; /* epochs shorter than this are not all saved */

/* ---- saving ------------------------------------------------------------------------- */

/* Before the first save of a new training: a model that another one left at the same place is
 * moved aside and not lost. */
static void keep_previous(run *r) {
  const char *path = r->out_path.bytes;
  bool goes_on = r->options.resume && strcmp(r->options.resume, path) == 0;
  bool first = r->saved_step == UINT64_MAX;
  struct stat there;
  if (goes_on || !first || stat(path, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0) return;
  shoal_text previous;
  shoal_text_init(&previous);
  add_path_called(&previous, path, "previous");
  if (!previous.failed && rename(path, previous.bytes) == 0)
    shoal_report_note(&r->report, "the model that was in %s is now in %s\n", path, previous.bytes);
  shoal_text_release(&previous);
}

/* During the run a save that fails is a warning: the disk may have room again later, and the
 * last try, at the end, decides. */
static void save_now(run *r) {
  shoal_error err;
  r->saved_at = shoal_clock_seconds();
  keep_previous(r);
  if (save(r, r->out_path.bytes, &err) == SHOAL_OK) {
    r->saved_step = r->state->step;
    return;
  }
  shoal_progress_clear(&r->report.progress);
  shoal_cli_warn("train", "cannot save the model: %s; training goes on and will try again", err.text);
}

static shoal_status save_at_end(run *r, shoal_error *err) {
  if (r->saved_step == r->state->step) return SHOAL_OK;
  keep_previous(r);
  shoal_status status = save(r, r->out_path.bytes, err);
  if (status != SHOAL_OK)
    shoal_error_prefix(err, "cannot save the model: ");
  else
    r->saved_step = r->state->step;
  return status;
}

/* ---- the loop ----------------------------------------------------------------------- */

/* How the loop ended. */
typedef enum outcome {
  FINISHED,
  STOPPED_EARLY,
  INTERRUPTED,
  CUT_OFF,  /* by a signal, while there was nothing that could be saved */
  EXPLODED, /* the loss or the weights are not numbers */
  FAILED,   /* in a round, for another reason */
} outcome;

static const shoal_source *held_out_source(const run *r) {
  return r->task.sources[SHOAL_VALID].samples  ? &r->task.sources[SHOAL_VALID]
         : r->task.sources[SHOAL_TEST].samples ? &r->task.sources[SHOAL_TEST]
                                               : NULL;
}

/* Whether early stopping has waited long enough. */
static bool end_of_patience(run *r, double loss) {
  uint32_t patience = r->model->recipe.early_stop;
  if (patience == 0) return false;
  bool better = loss < r->best_loss || (isnan(r->best_loss) && !isnan(loss));
  if (r->best_epoch == 0 || better) {
    shoal_error err;
    if (save(r, r->best_path.bytes, &err) != SHOAL_OK) {
      shoal_progress_clear(&r->report.progress);
      shoal_cli_warn("train", "cannot save the best weights: %s", err.text);
      return false;
    }
    r->best_loss = loss;
    r->best_epoch = r->state->epoch;
  }
  return r->state->epoch >= r->best_epoch + patience;
}

static void end_epoch(run *r, shoal_result *held_out, bool *stop_early) {
  shoal_result train = shoal_trainer_epoch_result(r->task.trainer);
  const shoal_source *source = held_out_source(r);
  if (source) *held_out = shoal_trainer_evaluate(r->task.trainer, source);
  *stop_early = end_of_patience(r, held_out->loss);
  /* Before the report: who reads of an epoch can rely on a checkpoint not much older. Epochs of
   * milliseconds would spend their time waiting for the disk. */
  if (r->saved_step == UINT64_MAX || shoal_clock_seconds() - r->saved_at >= SAVE_EPOCHS_S) save_now(r);
  shoal_report_epoch(&r->report, &train, source ? held_out : NULL);
}

/* A finite loss can still give an update that is not: such weights must not replace a good file. */
static bool weights_are_finite(const run *r, shoal_error *err) {
  const shoal_train_state *state = r->state;
  for (size_t i = 0; i < state->weights_count; i++) {
    if (isfinite(state->weights[i])) continue;
    shoal_fail(err, SHOAL_INVALID,
               "the weights are not numbers any more after round %s; try a lower --rate or --clip 1",
               shoal_human_count(state->step).text);
    return false;
  }
  return true;
}

/* Rounds of this process alone. */
static shoal_status own_round(void *self, shoal_result *out, shoal_error *err) {
  run *r = self;
  return shoal_trainer_round(r->task.trainer, &r->task.sources[SHOAL_TRAIN], out, err);
}

static shoal_status nothing_to_gather(void *self, shoal_error *err) {
  (void)self, (void)err;
  return SHOAL_OK;
}

static outcome broken(shoal_status status) { return status == SHOAL_INVALID ? EXPLODED : FAILED; }

static outcome loop(run *r, shoal_result *held_out, shoal_error *err) {
  const shoal_recipe *recipe = &r->model->recipe;
  r->saved_at = shoal_clock_seconds();
  while (r->state->epoch < recipe->epochs) {
    const uint64_t before = r->state->step;
    shoal_result round;
    shoal_status status = r->rounds.next(r->rounds.self, &round, err);
    if (status != SHOAL_OK && status != SHOAL_STOPPED) return broken(status);
    if (status == SHOAL_OK) shoal_report_round(&r->report, &round);
    bool epoch_is_over = status == SHOAL_OK && r->state->round == 0, stop_early = false;
    bool save_is_due =
        r->options.save_every_s > 0 && shoal_clock_seconds() - r->saved_at >= r->options.save_every_s;
    bool may_save = epoch_is_over || save_is_due || shoal_stop_signal() != 0;
    if (may_save) status = r->rounds.gather(r->rounds.self, err);
    if (status == SHOAL_STOPPED) return CUT_OFF;
    if (status != SHOAL_OK) return broken(status);
    /* A cluster comes to rest where it can: further on, or back where a crash has led it. */
    epoch_is_over = r->state->round == 0 && r->state->step > before;
    if (may_save && !weights_are_finite(r, err)) return EXPLODED;
    if (epoch_is_over)
      end_epoch(r, held_out, &stop_early);
    else if (save_is_due)
      save_now(r);
    if (stop_early) return STOPPED_EARLY;
    if (may_save && shoal_stop_signal() != 0 && r->state->epoch < recipe->epochs) return INTERRUPTED;
  }
  return FINISHED;
}

/* ---- the end ------------------------------------------------------------------------ */

/* " --data iris.csv --target species" */
static void add_data_options(const run *r, shoal_text *out) {
  shoal_cli_add_option(out, "data", r->options.data);
  shoal_cli_add_option(out, "target", r->options.target);
  shoal_cli_add_option(out, "data-dir", r->options.data_dir);
}

static int interrupted(run *r) {
  const train_options *o = &r->options;
  shoal_error err;
  if (save_at_end(r, &err) != SHOAL_OK) return shoal_cli_failed("train", &err);
  shoal_text resume;
  shoal_text_init(&resume);
  shoal_human_quote(&resume, program_invocation_name);
  shoal_text_addf(&resume, " train --resume ");
  shoal_human_quote(&resume, r->out_path.bytes);
  add_data_options(r, &resume);
  shoal_cli_add_option(&resume, "valid", o->valid);
  shoal_cli_add_option(&resume, "log-dir", o->log_dir);
  int number = shoal_stop_signal();
  shoal_report_interrupted(&r->report, shoal_stop_name(number), resume.failed ? "" : resume.bytes);
  shoal_text_release(&resume);
  return 128 + number;
}

static int cut_off(run *r, const shoal_error *err) {
  shoal_progress_clear(&r->report.progress);
  shoal_cli_failed("train", err);
  return 128 + shoal_stop_signal();
}

static void say_what_is_saved(const run *r) {
  if (r->saved_step == UINT64_MAX)
    fprintf(stderr, "Nothing was saved.\n");
  else
    fprintf(stderr, "%s still holds the model after %s rounds.\n", r->out_path.bytes,
            shoal_human_count(r->saved_step).text);
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
  else
    fprintf(stderr, "What was kept in %s stays, and the same command goes on from there.\n",
            shoal_cluster_state_dir(r->cluster));
  return SHOAL_EXIT_FAILED;
}

/* Puts the best epoch's state, file and weights, in the place of the last one's. */
static shoal_status keep_best(run *r, shoal_error *err) {
  /* The best is on disk already. A cluster's thread reads the state that is written here: it ends first. */
  shoal_cluster_close(r->cluster, "the training has ended", true);
  r->cluster = NULL;
  shoal_checkpoint best;
  shoal_status status = shoal_checkpoint_load(&best, r->best_path.bytes, err);
  if (status != SHOAL_OK) return status;
  status = shoal_checkpoint_resume(&best, r->task.graph, r->state, err);
  shoal_checkpoint_release(&best);
  if (status == SHOAL_OK && rename(r->best_path.bytes, r->out_path.bytes) != 0)
    status = shoal_fail(err, SHOAL_IO, "%s: %s", r->out_path.bytes, strerror(errno));
  if (status == SHOAL_OK) r->saved_step = r->state->step;
  return status;
}

static int finished(run *r, bool stopped_early, const shoal_result *last_held_out) {
  shoal_error err;
  shoal_result held_out = *last_held_out;
  bool held_out_is_known = r->report.rounds_done > 0;
  shoal_report_end end = {.stopped_early = stopped_early, .best_epoch = r->best_epoch};
  if (r->best_epoch > 0) {
    if (keep_best(r, &err) != SHOAL_OK) return shoal_cli_failed("train", &err);
    held_out_is_known = false;
  } else if (save_at_end(r, &err) != SHOAL_OK) {
    return shoal_cli_failed("train", &err);
  }

  shoal_result train = shoal_trainer_epoch_result(r->task.trainer), test;
  const shoal_source *source = held_out_source(r);
  end.train = &train;
  if (source) {
    if (!held_out_is_known) held_out = shoal_trainer_evaluate(r->task.trainer, source);
    end.held_out = &held_out;
  }
  if (r->task.sources[SHOAL_TEST].samples > 0 && source == &r->task.sources[SHOAL_TEST]) {
    end.test = &held_out;
  } else if (r->task.sources[SHOAL_TEST].samples > 0) {
    test = shoal_trainer_evaluate(r->task.trainer, &r->task.sources[SHOAL_TEST]);
    end.test = &test;
  }
  shoal_text data_options;
  shoal_text_init(&data_options);
  add_data_options(r, &data_options);
  end.data_options = data_options.failed ? "" : data_options.bytes;
  shoal_report_end_of_run(&r->report, &end);
  shoal_text_release(&data_options);
  return shoal_cli_finish("train", SHOAL_EXIT_OK);
}

static void start_report(run *r) {
  shoal_cluster_describe(&r->options.cluster, r->role, &r->together);
  const char *file = r->options.resume ? r->options.resume : r->options.model;
  const char *slash = strrchr(file, '/');
  r->plan = (shoal_report_plan){
      .graph = r->task.graph,
      .trainer = r->task.trainer,
      .model_name = slash ? slash + 1 : file,
      .data_name = r->options.data,
      .out_path = r->out_path.bytes,
      .is_text = shoal_dataset_is_text(r->task.dataset),
      .train_positions = r->task.sources[SHOAL_TRAIN].samples,
      .train_samples = shoal_dataset_samples(r->task.dataset, SHOAL_TRAIN),
      .valid_samples = shoal_dataset_samples(r->task.dataset, SHOAL_VALID),
      .test_samples = shoal_dataset_samples(r->task.dataset, SHOAL_TEST),
      .threads = (uint32_t)r->options.threads,
      .together = r->together.length > 0 ? r->together.bytes : NULL,
      .resumed_from = r->options.resume,
      .held_out = r->task.sources[SHOAL_VALID].samples  ? "valid"
                  : r->task.sources[SHOAL_TEST].samples ? "test"
                                                        : NULL,
  };
  shoal_report_start(&r->report, &r->plan);
}

/* ---- many processes ----------------------------------------------------------------- */

static void note_in_report(void *self, const char *text) {
  run *r = self;
  shoal_report_event(&r->report, text);
}

static shoal_cluster_data cluster_data(const train_options *o) {
  return (shoal_cluster_data){.data = o->data,
                              .target = o->target,
                              .data_dir = o->data_dir,
                              .valid_share = o->valid_share,
                              .threads = (uint32_t)o->threads};
}

static shoal_status open_cluster(run *r, shoal_error *err) {
  const shoal_notes notes = {.self = r, .note = note_in_report};
  const shoal_cluster_config config = {.options = &r->options.cluster,
                                       .data = cluster_data(&r->options),
                                       .task = &r->task,
                                       .out_path = r->out_path.bytes,
                                       .notes = notes,
                                       .stop = shoal_stop_flag()};
  shoal_status status = shoal_cluster_open(&r->cluster, &config, &r->rounds, err);
  if (status != SHOAL_OK || shoal_cluster_went_on(r->cluster) == 0) return status;
  status = r->rounds.gather(r->rounds.self, err);
  if (status == SHOAL_OK)
    shoal_note(&notes, "going on from round %s, where this training was cut off",
               shoal_human_count(r->state->step).text);
  return status;
}

static void note_on_stderr(void *self, const char *text) {
  const train_options *o = self;
  if (!o->quiet)
    fprintf(stderr, "%s %llu: %s\n", o->cluster.job_name, (unsigned long long)o->cluster.task_index, text);
}

/* A worker or parameter server. */
static int serve(train_options *o) {
  shoal_error err;
  const shoal_cluster_data data = cluster_data(o);
  const shoal_notes notes = {.self = o, .note = note_on_stderr};
  shoal_stop_catch();
  if (shoal_cluster_serve(&o->cluster, &data, &notes, shoal_stop_flag(), &err) == SHOAL_OK)
    return shoal_stop_signal() != 0 ? 128 + shoal_stop_signal() : SHOAL_EXIT_OK;
  shoal_error_prefix(&err, "%s %llu: ", o->cluster.job_name, (unsigned long long)o->cluster.task_index);
  return shoal_cli_failed("train", &err);
}

static int run_training(run *r) {
  shoal_error err;
  int status = SHOAL_EXIT_FAILED;
  shoal_result held_out = {.loss = NAN};
  start_report(r);
  if (r->role != SHOAL_MPI)
    r->rounds = (shoal_rounds){.self = r, .next = own_round, .gather = nothing_to_gather};
  if (r->role == SHOAL_CHIEF && open_cluster(r, &err) != SHOAL_OK)
    return err.status == SHOAL_STOPPED ? cut_off(r, &err)
           : r->cluster != NULL        ? failed(r, &err)
                                       : shoal_cli_failed("train", &err);
  outcome how = loop(r, &held_out, &err);
  if (r->cluster != NULL) shoal_cluster_report(r->cluster, &r->report);
  switch (how) {
  case FINISHED: status = finished(r, false, &held_out); break;
  case STOPPED_EARLY: status = finished(r, true, &held_out); break;
  case INTERRUPTED: status = interrupted(r); break;
  case CUT_OFF: status = cut_off(r, &err); break;
  case EXPLODED: status = exploded(r, &err); break;
  case FAILED: status = failed(r, &err); break;
  }
  bool keeps = how == CUT_OFF || how == FAILED;
  r->cluster_is_done = how == EXPLODED || (!keeps && r->saved_step == r->state->step);
  return status;
}

static int train(int argc, char **argv) {
  run r = {.started = shoal_clock_seconds(), .options = default_options(), .saved_step = UINT64_MAX};
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
  if (r.mpi)
    ready = shoal_train_mpi_join(r.mpi, ready, &r.task, (uint32_t)r.options.threads, &r.rounds, &err);
  if (ready != SHOAL_OK) {
    status = !shoal_train_mpi_speaks(r.mpi) ? SHOAL_EXIT_FAILED
             : misused                      ? shoal_cli_misused("train", &err)
                                            : shoal_cli_failed("train", &err);
    release(&r);
    return status;
  }
  if (leads) {
    shoal_stop_catch();
    status = run_training(&r);
  } else {
    status = shoal_train_mpi_follow(r.mpi);
  }
  release(&r);
  return status;
}

const shoal_command shoal_command_train = {"train", "train a network, or go on from a checkpoint", train};
