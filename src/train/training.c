/* training.c: see training.h. */
#include "train/training.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/room.h"

enum { ASIDE_MAX = 99 };                 /* models that are moved aside under names of their own */
static const double SAVE_EPOCHS_S = 0.5; /* epochs shorter than this are not all saved */

/* ---- rounds of this process alone ---- */

static shoal_status own_round(void *self, shoal_result *out, shoal_error *err) {
  shoal_training *t = self;
  shoal_task *task = t->config->task;
  return shoal_trainer_round(task->trainer, &task->sources[SHOAL_TRAIN], out, err);
}

static shoal_status own_gather(void *self, shoal_error *err) {
  const shoal_training *t = self;
  (void)err;
  shoal_trainer_gather(t->config->task->trainer);
  return SHOAL_OK;
}

static shoal_status resume(shoal_training *t, const shoal_checkpoint *from, shoal_error *err) {
  shoal_status status = shoal_checkpoint_resume(from, t->config->task->graph, t->state, err);
  if (status == SHOAL_OK) shoal_trainer_place(t->config->task->trainer);
  return status;
}

/* Has a checkpoint's file read by `use`. */
static shoal_status with_file(shoal_training *t, const char *path,
                              shoal_status (*use)(shoal_training *, const shoal_checkpoint *, shoal_error *),
                              shoal_error *err) {
  shoal_checkpoint file;
  shoal_status status = shoal_checkpoint_load(&file, path, err);
  if (status != SHOAL_OK) return status;
  status = use(t, &file, err);
  shoal_checkpoint_release(&file);
  return status;
}

static bool stops(const shoal_training *t) { return __atomic_load_n(t->config->stop, __ATOMIC_RELAXED) != 0; }

/* ---- files ---- */

void shoal_training_path(shoal_text *out, const char *path, const char *word) {
  static const char end[] = ".safetensors";
  size_t length = strlen(path), end_length = sizeof end - 1;
  if (length >= end_length && strcmp(path + length - end_length, end) == 0) length -= end_length;
  shoal_text_addf(out, "%.*s.%s%s", (int)length, path, word, end);
}

/* What one file of the state takes. */
static uint64_t bytes_of(const shoal_training *t) {
  const shoal_task *task = t->config->task;
  return shoal_checkpoint_bytes(task->graph, t->state, task->fitted.bytes);
}

shoal_status shoal_training_init(shoal_training *out, const shoal_training_config *config, shoal_error *err) {
  *out = (shoal_training){.config = config,
                          .state = shoal_trainer_state(config->task->trainer),
                          .saved_step = UINT64_MAX,
                          .held_out = {.loss = NAN}};
  out->rounds = (shoal_rounds){.self = out, .next = own_round, .gather = own_gather};
  shoal_training_path(&out->best_path, config->out, "best");
  if (out->best_path.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_writer *writer;
  shoal_status status = shoal_writer_create(&writer, config->out, err);
  if (status == SHOAL_OK) shoal_writer_abandon(writer);
  if (status == SHOAL_OK) status = shoal_room_check(config->out, bytes_of(out), err);
  if (status != SHOAL_OK) shoal_error_prefix(err, "cannot save the model: ");
  return status;
}

void shoal_training_release(shoal_training *t) { shoal_text_release(&t->best_path); }

/* Whether the checkpoint that it went on from is the file that it saves to. */
static bool goes_on_in_place(const shoal_training *t) {
  return t->config->resumed && strcmp(t->config->resumed, t->config->out) == 0;
}

/* Whether the file is a model of this training: the same network, recipe and data. *step: how far it is; or NULL. */
static bool is_our_own(const shoal_training *t, const char *path, uint64_t *step) {
  const shoal_task *task = t->config->task;
  shoal_checkpoint there;
  if (shoal_checkpoint_load(&there, path, NULL) != SHOAL_OK) return false;
  shoal_text its = {0}, ours = {0};
  shoal_model_write(there.model, &its);
  shoal_model_write(task->model, &ours);
  shoal_train_state stood = {0};
  bool same = !its.failed && !ours.failed && strcmp(its.bytes, ours.bytes) == 0 && there.data_json != NULL &&
              strcmp(there.data_json, task->fitted.bytes) == 0 &&
              shoal_checkpoint_position(&there, &stood, NULL) == SHOAL_OK;
  if (step) *step = stood.step;
  shoal_text_release(&its);
  shoal_text_release(&ours);
  shoal_checkpoint_release(&there);
  return same;
}

/* Where the model goes that is at `out`. One of our own leaves those of others where they are. */
static void find_place_aside(const shoal_training *t, bool own, shoal_text *out) {
  char word[32] = "previous";
  for (int number = 2; number <= ASIDE_MAX + 1; number++) {
    shoal_text_clear(out);
    shoal_training_path(out, t->config->out, word);
    if (out->failed || !own || !shoal_file_exists(out->bytes) || is_our_own(t, out->bytes, NULL)) return;
    snprintf(word, sizeof word, "previous-%d", number);
  }
}

/* Before the first save of a training that does not go on from this very file. */
static void keep_previous(shoal_training *t) {
  const char *path = t->config->out;
  struct stat there;
  if (goes_on_in_place(t) || t->saved_step != UINT64_MAX) return;
  if (stat(path, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0) return;
  uint64_t step;
  bool own = is_our_own(t, path, &step);
  if (own && step <= t->record_step) return;
  shoal_text place = {0};
  find_place_aside(t, own, &place);
  if (!place.failed && rename(path, place.bytes) == 0)
    t->config->calls.moved_aside(t->config->calls.self, place.bytes);
  shoal_text_release(&place);
}

/* While there is no room, the file that is there stays where it is. */
static shoal_status save_to(shoal_training *t, const char *path, shoal_error *err) {
  const shoal_task *task = t->config->task;
  shoal_status status = shoal_room_check(path, bytes_of(t), err);
  if (status != SHOAL_OK) return status;
  if (path == t->config->out) keep_previous(t);
  return shoal_checkpoint_save(path, task->graph, t->state, task->fitted.bytes, err);
}

static shoal_status save_once(shoal_training *t, shoal_error *err) {
  if (t->saved_step == t->state->step) return SHOAL_OK;
  shoal_status status = save_to(t, t->config->out, err);
  if (status != SHOAL_OK)
    shoal_error_prefix(err, "cannot save the model: ");
  else
    t->saved_step = t->state->step;
  return status;
}

__attribute__((format(printf, 2, 3))) static void warn(shoal_training *t, const char *format, ...) {
  char text[SHOAL_ERROR_TEXT_MAX + 256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  t->config->calls.warn(t->config->calls.self, text);
}

shoal_status shoal_training_save(shoal_training *t, shoal_error *err) {
  shoal_status status = save_once(t, err);
  if (status != SHOAL_FULL) return status;
  char left[SHOAL_ERROR_TEXT_MAX] = "without a model"; /* what there is where this state cannot be saved */
  if (t->saved_step != UINT64_MAX)
    snprintf(left, sizeof left, "with the model after %s rounds in %s", shoal_human_count(t->saved_step).text,
             t->config->out);
  if (!stops(t))
    warn(t, "%s; waiting until there is room. If you stop the training now, it ends %s", err->text, left);
  while (status == SHOAL_FULL && shoal_room_wait(t->config->out, bytes_of(t), t->config->stop))
    status = save_once(t, err);
  if (status == SHOAL_OK) warn(t, "there is room again: the model is saved in %s", t->config->out);
  if (status == SHOAL_FULL) {
    shoal_error why = *err;
    shoal_fail(err, SHOAL_FULL, "%s; it ends %s", why.text, left);
  }
  return status;
}

/* A model and what takes its place are there at the same time, and with early stopping the best one. What is kept of a
 * cluster may lie on the same disk. */
static void warn_of_little_room(shoal_training *t) {
  const char *state_dir = t->config->state_dir;
  uint64_t files = (goes_on_in_place(t) ? 1 : 2) + (t->config->task->model->recipe.early_stop > 0);
  uint64_t bytes = bytes_of(t), state = t->config->state_bytes, room;
  bool shared = state_dir && shoal_room_is_shared(t->config->out, state_dir);
  char beside[SHOAL_ERROR_TEXT_MAX] = "";
  if (shared)
    snprintf(beside, sizeof beside, ", and %s for %s", shoal_human_bytes((double)state).text, state_dir);
  if (shoal_room_at(t->config->out, &room) && room < files * bytes + (shared ? state : 0))
    warn(
        t,
        "%s: saving needs room for %llu cop%s of the model, %s each%s, but only %s are free there; free some "
        "space",
        t->config->out, (unsigned long long)files, files == 1 ? "y" : "ies",
        shoal_human_bytes((double)bytes).text, beside, shoal_human_bytes((double)room).text);
  if (state_dir && !shared && shoal_room_at(state_dir, &room) && room < state)
    warn(t, "%s: the state of the training needs %s, but only %s are free there; free some space", state_dir,
         shoal_human_bytes((double)state).text, shoal_human_bytes((double)room).text);
}

/* During the run a save that fails is a warning: the disk may have room again later, and the last try, at the end,
 * decides. While saves keep failing, the warning would say the same after every epoch. */
static void save_now(shoal_training *t) {
  shoal_error err;
  t->saved_at = shoal_clock_seconds();
  bool failed = save_once(t, &err) != SHOAL_OK;
  if (failed && !t->save_failed) warn(t, "%s; the training continues and will try again", err.text);
  t->save_failed = failed;
}

/* ---- where it begins ---- */

/* Early stopping goes on where it was: from the best epoch so far, which has a file of its own beside the
 * checkpoint, or from this one, when the checkpoint is what an earlier run kept. */
static shoal_status recall_best(shoal_training *t, const shoal_checkpoint *from, shoal_error *err) {
  shoal_task *task = t->config->task;
  if (task->model->recipe.early_stop == 0) return SHOAL_OK;
  shoal_text path = {0};
  shoal_training_path(&path, t->config->resumed, "best");
  bool found = t->config->had_early_stop && !path.failed && shoal_file_exists(path.bytes);
  shoal_status status = found ? with_file(t, path.bytes, resume, err) : resume(t, from, err);
  shoal_text_release(&path);
  bool at_end_of_epoch = t->state->epoch > 0 && t->state->round == 0;
  if (status != SHOAL_OK || !at_end_of_epoch) return status;
  t->best_loss = shoal_trainer_evaluate(task->trainer, &task->sources[SHOAL_VALID]).loss;
  t->best_epoch = t->state->epoch;
  return save_to(t, t->best_path.bytes, err);
}

shoal_status shoal_training_begin(shoal_training *t, const shoal_checkpoint *from, shoal_error *err) {
  shoal_task *task = t->config->task;
  if (from == NULL) return SHOAL_OK;
  shoal_status status = recall_best(t, from, err);
  if (status == SHOAL_OK) status = resume(t, from, err);
  if (status != SHOAL_OK) return status;
  uint64_t rounds = shoal_trainer_rounds(task->trainer);
  const shoal_train_state *state = t->state;
  bool fits =
      state->round < rounds && state->step / rounds == state->epoch && state->step % rounds == state->round;
  if (!fits)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s was not trained on this data: it did %llu rounds in %llu epochs and %llu rounds, "
                      "but an epoch of this data has %llu; give the same data and validation share as before",
                      t->config->resumed, (unsigned long long)state->step, (unsigned long long)state->epoch,
                      (unsigned long long)state->round, (unsigned long long)rounds);
  if (goes_on_in_place(t)) t->saved_step = state->step;
  return SHOAL_OK;
}

/* How good the best epoch was that is on disk: in a trainer of its own, since the state is a cluster's. */
static shoal_status weigh_best(shoal_training *t, const shoal_checkpoint *best, shoal_error *err) {
  const shoal_task *task = t->config->task;
  const shoal_trainer_config config = {.graph = task->graph,
                                       .threads = 1,
                                       .batch = task->model->recipe.batch,
                                       .class_weights = task->class_weights};
  shoal_trainer *trainer;
  shoal_status status = shoal_trainer_create(&trainer, &config, err);
  if (status != SHOAL_OK) return status;
  shoal_train_state *state = shoal_trainer_state(trainer);
  status = shoal_checkpoint_weights(best, task->graph, state->weights, err);
  if (status == SHOAL_OK) status = shoal_checkpoint_position(best, state, err);
  if (status == SHOAL_OK) {
    t->best_epoch = state->epoch;
    t->best_loss = shoal_trainer_evaluate(trainer, &task->sources[SHOAL_VALID]).loss;
  }
  shoal_trainer_destroy(trainer);
  return status;
}

shoal_status shoal_training_goes_on(shoal_training *t, shoal_error *err) {
  t->record_step = t->state->step;
  if (t->config->task->model->recipe.early_stop == 0 || !shoal_file_exists(t->best_path.bytes))
    return SHOAL_OK;
  return with_file(t, t->best_path.bytes, weigh_best, err);
}

/* ---- the loop ---- */

const shoal_source *shoal_training_held_out(const shoal_training *t) {
  const shoal_source *sources = t->config->task->sources;
  return sources[SHOAL_VALID].samples > 0  ? &sources[SHOAL_VALID]
         : sources[SHOAL_TEST].samples > 0 ? &sources[SHOAL_TEST]
                                           : NULL;
}

static shoal_result evaluate(const shoal_training *t, const shoal_source *source) {
  shoal_trainer *trainer = t->config->task->trainer;
  return t->config->evaluation != NULL ? shoal_class_eval_run(t->config->evaluation, trainer, source)
                                       : shoal_trainer_evaluate(trainer, source);
}

/* Whether early stopping has waited long enough. */
static bool end_of_patience(shoal_training *t) {
  uint32_t patience = t->config->task->model->recipe.early_stop;
  double loss = t->held_out.loss;
  if (patience == 0) return false;
  bool better = loss < t->best_loss || (isnan(t->best_loss) && !isnan(loss));
  if (t->best_epoch == 0 || better) {
    shoal_error err;
    if (save_to(t, t->best_path.bytes, &err) != SHOAL_OK) {
      warn(t, "cannot save the best weights: %s", err.text);
      return false;
    }
    t->best_loss = loss;
    t->best_epoch = t->state->epoch;
  }
  return t->state->epoch >= t->best_epoch + patience;
}

static bool end_epoch(shoal_training *t) {
  shoal_trainer *trainer = t->config->task->trainer;
  shoal_result train = shoal_trainer_epoch_result(trainer);
  const shoal_source *source = shoal_training_held_out(t);
  if (source) t->held_out = evaluate(t, source);
  bool stop_early = end_of_patience(t);
  /* Before the report: who reads of an epoch can rely on a checkpoint not much older. Epochs of
   * milliseconds would spend their time waiting for the disk. */
  if (t->saved_step == UINT64_MAX || shoal_clock_seconds() - t->saved_at >= SAVE_EPOCHS_S) save_now(t);
  t->config->calls.epoch(t->config->calls.self, &train, source ? &t->held_out : NULL);
  return stop_early;
}

/* A finite loss can still give an update that is not: such weights must not replace a good file. */
static bool weights_are_finite(const shoal_training *t, shoal_error *err) {
  for (size_t i = 0; i < t->state->weights_count; i++) {
    if (isfinite(t->state->weights[i])) continue;
    shoal_fail(err, SHOAL_INVALID,
               "the weights are not numbers any more after round %llu; try a lower --rate or --clip 1",
               (unsigned long long)t->state->step);
    return false;
  }
  return true;
}

shoal_outcome shoal_training_loop(shoal_training *t, shoal_error *err) {
  const shoal_recipe *recipe = &t->config->task->model->recipe;
  const uint64_t epochs = recipe->epochs;
  const double every_s = t->config->save_every_s;
  t->saved_at = shoal_clock_seconds();
  /* A new training has no best epoch yet: what is there is an earlier one's. */
  bool is_new = t->config->resumed == NULL && t->record_step == 0;
  if (is_new && recipe->early_stop > 0) unlink(t->best_path.bytes);
  warn_of_little_room(t);
  while (t->state->epoch < epochs) {
    const uint64_t before = t->state->step;
    shoal_result round;
    shoal_status status = t->rounds.next(t->rounds.self, &round, err);
    if (status == SHOAL_OK) t->config->calls.round(t->config->calls.self, &round);
    bool epoch_is_over = status == SHOAL_OK && t->state->round == 0, stop_early = false;
    bool save_is_due = every_s > 0 && shoal_clock_seconds() - t->saved_at >= every_s;
    bool may_save = epoch_is_over || save_is_due || stops(t);
    bool comes_to_rest = status == SHOAL_OK || status == SHOAL_STOPPED;
    if (comes_to_rest && may_save) status = t->rounds.gather(t->rounds.self, err);
    if (status == SHOAL_STOPPED) return SHOAL_CUT_OFF;
    if (status != SHOAL_OK) return status == SHOAL_INVALID ? SHOAL_EXPLODED : SHOAL_BROKEN;
    /* A cluster comes to rest where it can: further on, or back where a crash has led it. */
    epoch_is_over = t->state->round == 0 && t->state->step > before;
    if (may_save && !weights_are_finite(t, err)) return SHOAL_EXPLODED;
    if (epoch_is_over)
      stop_early = end_epoch(t);
    else if (save_is_due)
      save_now(t);
    if (stop_early) return SHOAL_STOPPED_EARLY;
    if (may_save && stops(t) && t->state->epoch < epochs) return SHOAL_INTERRUPTED;
  }
  return SHOAL_FINISHED;
}

/* ---- the end ---- */

shoal_status shoal_training_keep_best(shoal_training *t, shoal_error *err) {
  shoal_status status = with_file(t, t->best_path.bytes, resume, err);
  if (status == SHOAL_OK && rename(t->best_path.bytes, t->config->out) != 0)
    status = shoal_fail_errno(t->config->out, err);
  if (status == SHOAL_OK) t->saved_step = t->state->step;
  return status;
}

shoal_training_results shoal_training_evaluate(const shoal_training *t) {
  const shoal_task *task = t->config->task;
  const shoal_source *source = shoal_training_held_out(t), *test = &task->sources[SHOAL_TEST];
  shoal_training_results r = {.train = shoal_trainer_epoch_result(task->trainer), .held_out = t->held_out};
  bool is_known = t->best_epoch == 0 && !isnan(t->held_out.loss);
  r.has_held_out = source != NULL;
  r.has_test = test->samples > 0;
  if (source && !is_known) r.held_out = evaluate(t, source);
  if (r.has_test) r.test = source == test ? r.held_out : evaluate(t, test);
  return r;
}
