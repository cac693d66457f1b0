/* search_log.c: see search_log.h. */
#include "cli/search_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "nn/events.h"

struct shoal_search_log {
  const shoal_search *search;
  shoal_text folder;
  uint32_t *written; /* epochs of each trial, from 1, that are in files, and 1 more; 0: it is in none */
  uint64_t written_count;
};

enum { TAG_MAX = 64 };

static const char *metric_of(const shoal_search_log *log) {
  return shoal_score_name(shoal_search_brief(log->search)->metric);
}

/* "accuracy/best": what trials are compared by. */
static const char *tag_of(const shoal_search_log *log, const char *what, char out[TAG_MAX]) {
  snprintf(out, TAG_MAX, "%s/%s", metric_of(log), what);
  return out;
}

/* ---- settings ---- */

/* Those that differ, or could. With values NULL only their names and kinds; else those that have an effect. */
static uint32_t list_params(const shoal_space *space, const shoal_values *values,
                            shoal_events_param out[SHOAL_SETTINGS]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < SHOAL_SETTINGS; i++) {
    shoal_setting_id id = (shoal_setting_id)i;
    bool topology = id == SHOAL_SET_TOPOLOGY, word = topology || shoal_setting_is_word(id);
    if (values ? !shoal_values_matter(space, values, id) : topology && space->topologies_count == 0) continue;
    shoal_events_param *param = &out[count++];
    *param = (shoal_events_param){.name = space->settings[id].name, .is_text = word};
    if (values && topology) param->text = space->topologies[(uint32_t)values->of[id]];
    if (values && word && !topology) param->text = shoal_values_word(space, values, id);
    if (values && !word) param->number = shoal_values_number(space, values, id);
  }
  return count;
}

/* ---- trials ---- */

static shoal_status trial_folder(const shoal_search_log *log, uint64_t trial, shoal_text *out,
                                 shoal_error *err) {
  shoal_text_addf(out, "%s/trial-%" PRIu64, log->folder.bytes, trial);
  return out->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

/* The place of a trial in log->written; NULL: no memory. */
static uint32_t *written_of(shoal_search_log *log, uint64_t trial) {
  if (trial >= log->written_count) {
    uint64_t count = 2 * trial + 16;
    uint32_t *grown = realloc(log->written, count * sizeof *grown);
    if (grown == NULL) return NULL;
    for (uint64_t i = log->written_count; i < count; i++) grown[i] = 0;
    log->written = grown;
    log->written_count = count;
  }
  return &log->written[trial];
}

/* FOLDER/trial-7/epochs says how many epochs the files beside it have, for a search that goes on. */
static void read_written(const char *folder, uint32_t *written) {
  char *path = shoal_path("%s/epochs", folder);
  uint8_t *bytes = NULL;
  size_t length;
  uint64_t epochs;
  if (path && shoal_file_read(path, SHOAL_GROUPED_MAX, false, &bytes, &length, NULL) == SHOAL_OK &&
      shoal_read_u64((const char *)bytes, length, &epochs) && epochs < UINT32_MAX)
    *written = (uint32_t)epochs + 1;
  free(bytes);
  free(path);
}

static shoal_status note_written(const char *folder, uint32_t epochs, shoal_error *err) {
  char *path = shoal_path("%s/epochs", folder), number[16];
  int length = snprintf(number, sizeof number, "%u", epochs);
  shoal_status status = path ? shoal_file_write(path, number, (size_t)length, err)
                             : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  free(path);
  return status;
}

/* Seconds since 1970 of a time of the board. */
static double wall_time(double clock) { return shoal_clock_wall_seconds() - (shoal_clock_seconds() - clock); }

static void write_trial(const shoal_search_log *log, const shoal_board_trial *trial, uint32_t written,
                        shoal_events *events) {
  const shoal_trial_result *result = trial->result;
  char tag[TAG_MAX], name[32];
  if (written == 0) {
    shoal_events_param params[SHOAL_SETTINGS];
    uint32_t count = list_params(&shoal_search_brief(log->search)->space, &trial->values, params);
    snprintf(name, sizeof name, "trial %" PRIu64, trial->trial);
    shoal_events_trial_start(events, name, wall_time(trial->begun), params, count);
  }
  for (uint32_t i = 0; i < result->curve_count; i++) {
    const shoal_curve_point *point = &result->curve[i];
    if (point->epoch < written) continue;
    shoal_events_scalar(events, "loss/train", point->epoch, point->train_loss);
    shoal_events_scalar(events, tag_of(log, "valid", tag), point->epoch, point->score);
  }
  if (!result->failed) shoal_events_scalar(events, tag_of(log, "best", tag), result->epochs, result->score);
  shoal_events_scalar(events, "weights", result->epochs, (double)result->weights);
  if (result->failed) shoal_events_text(events, "error", result->epochs, result->error);
  shoal_events_trial_end(events, wall_time(trial->ended), !result->failed);
}

shoal_status shoal_search_log_trial(shoal_search_log *log, const shoal_board_trial *trial, shoal_error *err) {
  uint32_t *written = written_of(log, trial->trial);
  if (written == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (trial->result == NULL || trial->result->epochs < *written) return SHOAL_OK;
  shoal_text folder = {0};
  shoal_events *events = NULL;
  shoal_status status = trial_folder(log, trial->trial, &folder, err);
  if (status == SHOAL_OK) status = shoal_events_create(&events, folder.bytes, err);
  if (status == SHOAL_OK) {
    write_trial(log, trial, *written, events);
    status = shoal_events_flush(events, err);
    *written = trial->result->epochs + 1;
  }
  if (status == SHOAL_OK) status = note_written(folder.bytes, trial->result->epochs, err);
  shoal_events_destroy(events);
  shoal_text_release(&folder);
  return status;
}

/* ---- open and close ---- */

static shoal_status write_experiment(const shoal_search_log *log, shoal_error *err) {
  const shoal_brief *brief = shoal_search_brief(log->search);
  shoal_events_param params[SHOAL_SETTINGS];
  uint32_t count = list_params(&brief->space, NULL, params);
  char best[TAG_MAX], valid[TAG_MAX];
  const char *const metrics[] = {tag_of(log, "best", best), tag_of(log, "valid", valid), "loss/train",
                                 "weights"};
  shoal_events *events;
  shoal_status status = shoal_events_create(&events, log->folder.bytes, err);
  if (status != SHOAL_OK) return status;
  shoal_events_experiment(events, "shoal search", params, count, metrics, sizeof metrics / sizeof metrics[0]);
  status = shoal_events_flush(events, err);
  shoal_events_destroy(events);
  return status;
}

/* Trials of before, of a search that goes on, as far as they are not there already. */
static shoal_status write_earlier(shoal_search_log *log, shoal_error *err) {
  const shoal_board *board = shoal_search_board(log->search);
  shoal_status status = SHOAL_OK;
  for (uint64_t i = 1; i <= shoal_board_trials(board) && status == SHOAL_OK; i++) {
    const shoal_board_trial *trial = shoal_board_trial_at(board, i);
    uint32_t *written = written_of(log, i);
    shoal_text folder = {0};
    if (written == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    status = trial_folder(log, i, &folder, err);
    if (status == SHOAL_OK) read_written(folder.bytes, written);
    if (status == SHOAL_OK) status = shoal_search_log_trial(log, trial, err);
    shoal_text_release(&folder);
  }
  return status;
}

shoal_status shoal_search_log_open(shoal_search_log **out, const char *folder, const shoal_search *search,
                                   shoal_error *err) {
  shoal_search_log *log = calloc(1, sizeof *log);
  *out = log;
  if (log == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  log->search = search;
  shoal_text_addf(&log->folder, "%s", folder);
  shoal_status status =
      log->folder.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : write_experiment(log, err);
  if (status == SHOAL_OK) status = write_earlier(log, err);
  return status;
}

void shoal_search_log_close(shoal_search_log *log) {
  if (log == NULL) return;
  shoal_text_release(&log->folder);
  free(log->written);
  free(log);
}
