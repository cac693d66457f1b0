/* search_record.c: the folder of a search: what it was asked for, and what has come out so far. */
#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_at.h"
#include "base/lock.h"
#include "base/room.h"
#include "search/search_internal.h"

/* What small trials take: nobody knows yet how large they will be. */
static const uint64_t room_bytes_min = 4 << 20;
static const size_t record_bytes_max = (size_t)256 << 20;
static const size_t journal_bytes_max = (size_t)4 << 30;

static void path_of(const shoal_search *s, const char *name, shoal_text *out) {
  shoal_text_init(out);
  shoal_text_addf(out, "%s/%s", s->options->folder, name);
}

void shoal_search_state_path(const shoal_search *s, uint64_t trial, shoal_text *out) {
  shoal_text_addf(out, "%s/%llu.safetensors", s->states.bytes, (unsigned long long)trial);
}

shoal_status shoal_search_lock(shoal_search *s, shoal_error *err) {
  shoal_status status = shoal_make_folder(s->options->folder, err);
  if (status != SHOAL_OK) return status;
  shoal_text path;
  long holder;
  path_of(s, "lock", &path);
  status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                       : shoal_lock_take(&s->lock, path.bytes, &holder, err);
  if (status == SHOAL_CONFLICT)
    shoal_fail(err, SHOAL_CONFLICT, "%s: process %ld searches there; stop it, or give another --out",
               s->options->folder, holder);
  shoal_text_release(&path);
  return status;
}

/* ---- what was asked for ---- */

static void write_rules(const shoal_search *s, shoal_text *out) {
  const shoal_scheduler_config *rules = &s->rules.scheduler;
  shoal_json json;
  shoal_json_begin(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "scheduler", shoal_scheduler_name(rules->kind));
  shoal_json_int(&json, "window", rules->window);
  shoal_json_open(&json, "rungs", '[');
  for (uint32_t r = 0; r < rules->rungs; r++) shoal_json_int(&json, NULL, rules->epochs[r]);
  shoal_json_close(&json, ']');
  shoal_json_open(&json, "limits", '[');
  for (uint32_t i = 0; i < s->limits_count; i++) {
    shoal_json_open(&json, NULL, '[');
    shoal_json_int(&json, NULL, (int64_t)s->limits[i].units);
    shoal_json_int(&json, NULL, (int64_t)s->limits[i].trials);
    shoal_json_close(&json, ']');
  }
  shoal_json_close(&json, ']');
  if (s->test) shoal_json_text(&json, "test", s->test);
  shoal_json_close(&json, '}');
}

shoal_status shoal_search_write_file(const shoal_search *s, const char *name, const shoal_text *text,
                                     shoal_error *err) {
  shoal_text path;
  path_of(s, name, &path);
  shoal_status status = text->failed || path.failed
                            ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                            : shoal_file_write(path.bytes, text->bytes, text->length, err);
  shoal_text_release(&path);
  return status;
}

static shoal_status write_record(shoal_search *s, shoal_error *err) {
  shoal_text text;
  shoal_text_init(&text);
  write_rules(s, &text);
  shoal_status status = shoal_search_write_file(s, "search.json", &text, err);
  shoal_text_release(&text);
  return status;
}

static shoal_status write_brief(shoal_search *s, shoal_error *err) {
  shoal_text text;
  shoal_text_init(&text);
  shoal_brief_write(&s->brief, &text);
  shoal_status status = shoal_search_write_file(s, "brief.json", &text, err);
  shoal_text_release(&text);
  return status;
}

/* What an earlier search left goes to FOLDER/previous, where only one is kept. */
static shoal_status move_aside(shoal_search *s, shoal_error *err) {
  static const char *const names[] = {"search.json",  "brief.json", "journal.jsonl",
                                      "insight.json", "trials.csv", "trials"};
  shoal_text from, to;
  path_of(s, "search.json", &from);
  bool any = !from.failed && shoal_file_exists(from.bytes);
  shoal_text_release(&from);
  if (!any) return SHOAL_OK;
  path_of(s, "previous", &to);
  shoal_status status =
      to.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : shoal_remove_folder(to.bytes, err);
  if (status == SHOAL_OK) status = shoal_make_folder(to.bytes, err);
  shoal_text_release(&to);
  for (size_t i = 0; i < sizeof names / sizeof names[0] && status == SHOAL_OK; i++) {
    path_of(s, names[i], &from);
    shoal_text_init(&to);
    shoal_text_addf(&to, "%s/previous/%s", s->options->folder, names[i]);
    if (from.failed || to.failed)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    else if (rename(from.bytes, to.bytes) != 0 && errno != ENOENT)
      status = shoal_fail(err, SHOAL_IO, "%s: %s", to.bytes, strerror(errno));
    shoal_text_release(&from);
    shoal_text_release(&to);
  }
  return status;
}

shoal_status shoal_search_begin_record(shoal_search *s, shoal_error *err) {
  shoal_status status = move_aside(s, err);
  if (status == SHOAL_OK) status = shoal_make_folder(s->states.bytes, err);
  if (status == SHOAL_OK) status = shoal_room_check(s->states.bytes, room_bytes_min, err);
  if (status == SHOAL_OK) status = write_brief(s, err);
  if (status == SHOAL_OK) status = write_record(s, err);
  return status;
}

static shoal_status read_rungs(shoal_search *s, const cJSON *json, shoal_error *err) {
  shoal_scheduler_config *rules = &s->rules.scheduler;
  int rungs = cJSON_GetArraySize(json);
  if (!cJSON_IsArray(json) || rungs < 1 || rungs > SHOAL_RUNGS_MAX)
    return shoal_fail(err, SHOAL_CORRUPT, "\"rungs\" is not a list of 1 to %d numbers", SHOAL_RUNGS_MAX);
  double before = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, json) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble > before && item->valuedouble <= s->brief.epochs))
      return shoal_fail(err, SHOAL_CORRUPT, "\"rungs\" do not ascend to the epochs of a training");
    before = item->valuedouble;
    rules->epochs[rules->rungs++] = (uint32_t)before;
  }
  return SHOAL_OK;
}

static shoal_status read_limits(shoal_search *s, const cJSON *json, shoal_error *err) {
  const cJSON *item;
  cJSON_ArrayForEach(item, json) {
    shoal_search_limit *limit = &s->limits[s->limits_count];
    if (s->limits_count == SHOAL_SEARCH_LIMITS_MAX || cJSON_GetArraySize(item) != 2 ||
        !shoal_read_whole(cJSON_GetArrayItem(item, 0), (uint64_t)1e15, &limit->units) ||
        !shoal_read_whole(cJSON_GetArrayItem(item, 1), (uint64_t)1e15, &limit->trials))
      return shoal_fail(err, SHOAL_CORRUPT, "\"limits\" are not pairs of numbers");
    s->limits_count++;
  }
  if (s->limits_count == 0) return shoal_fail(err, SHOAL_CORRUPT, "\"limits\" are missing");
  s->rules.scheduler.trials = s->limits[0].trials;
  return SHOAL_OK;
}

static shoal_status parse_rules(shoal_search *s, const cJSON *json, shoal_error *err) {
  const cJSON *kind = cJSON_GetObjectItemCaseSensitive(json, "scheduler");
  const cJSON *window = cJSON_GetObjectItemCaseSensitive(json, "window");
  const cJSON *test = cJSON_GetObjectItemCaseSensitive(json, "test");
  shoal_scheduler_config *rules = &s->rules.scheduler;
  if (!cJSON_IsString(kind) || !shoal_scheduler_parse(kind->valuestring, &rules->kind))
    return shoal_fail(err, SHOAL_CORRUPT, "\"scheduler\" is not known");
  if (!cJSON_IsNumber(window) || !(window->valuedouble >= 1 && window->valuedouble <= SHOAL_WINDOW_MAX))
    return shoal_fail(err, SHOAL_CORRUPT, "\"window\" is not a number from 1 to %d", SHOAL_WINDOW_MAX);
  rules->window = (uint32_t)window->valuedouble;
  rules->seed = s->brief.seed;
  rules->higher_is_better = shoal_score_higher_is_better(s->brief.metric);
  if (cJSON_IsString(test) && (s->test = strdup(test->valuestring)) == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = read_limits(s, cJSON_GetObjectItemCaseSensitive(json, "limits"), err);
  if (status != SHOAL_OK) return status;
  return read_rungs(s, cJSON_GetObjectItemCaseSensitive(json, "rungs"), err);
}

static shoal_status parse_record(shoal_search *s, const char *text, size_t length, shoal_error *err) {
  cJSON *json = cJSON_ParseWithLength(text, length);
  if (json == NULL) return shoal_fail(err, SHOAL_CORRUPT, "it is not JSON");
  shoal_status status = parse_rules(s, json, err);
  cJSON_Delete(json);
  return status;
}

static shoal_status parse_brief(shoal_search *s, const char *text, size_t length, shoal_error *err) {
  return shoal_brief_read(&s->brief, text, length, err);
}

static shoal_status read_with(shoal_search *s, const char *name,
                              shoal_status (*parse)(shoal_search *, const char *, size_t, shoal_error *),
                              shoal_error *err) {
  shoal_text path;
  uint8_t *text;
  size_t length;
  path_of(s, name, &path);
  shoal_status status = path.failed
                            ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                            : shoal_file_read(path.bytes, record_bytes_max, false, &text, &length, err);
  if (status == SHOAL_OK) {
    status = parse(s, (const char *)text, length, err);
    if (status != SHOAL_OK) shoal_error_prefix(err, "%s: ", path.bytes);
    free(text);
  }
  shoal_text_release(&path);
  return status;
}

shoal_status shoal_search_read_record(shoal_search *s, shoal_error *err) {
  shoal_text path;
  path_of(s, "search.json", &path);
  bool there = !path.failed && shoal_file_exists(path.bytes);
  shoal_text_release(&path);
  if (!there)
    return shoal_fail(err, SHOAL_NOT_FOUND, "%s: there is no search to continue; leave out --resume",
                      s->options->folder);
  shoal_status status = read_with(s, "brief.json", parse_brief, err);
  return status == SHOAL_OK ? read_with(s, "search.json", parse_record, err) : status;
}

shoal_status shoal_search_recorded(const char *folder, shoal_brief *brief, shoal_scheduler_kind *scheduler,
                                   shoal_error *err) {
  const shoal_search_options options = {.folder = folder};
  shoal_search *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->options = &options;
  shoal_brief_init(&s->brief);
  shoal_status status = shoal_search_read_record(s, err);
  if (status == SHOAL_OK) {
    *brief = s->brief;
    *scheduler = s->rules.scheduler.kind;
  } else {
    shoal_brief_release(&s->brief);
  }
  free(s->test);
  free(s);
  return status;
}

/* ---- what has come out ---- */

typedef struct kept {
  uint64_t unit;
  shoal_trial_result *result;
} kept;

typedef struct kept_list {
  kept *at;
  size_t count, capacity;
} kept_list;

static void release_list(kept_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->at[i].result);
  free(list->at);
}

static shoal_status keep_result(void *to, uint64_t unit, const shoal_trial_result *result, shoal_error *err) {
  kept_list *list = to;
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 64;
    kept *at = realloc(list->at, capacity * sizeof *at);
    if (at == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    list->at = at;
    list->capacity = capacity;
  }
  shoal_trial_result *copy = malloc(sizeof *copy);
  if (copy == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  *copy = *result;
  list->at[list->count++] = (kept){.unit = unit, .result = copy};
  return SHOAL_OK;
}

/* {"unit":7,"result":{...}} */
static shoal_status keep_line(kept_list *list, const char *line, size_t length, shoal_error *err) {
  shoal_trial_result result;
  cJSON *json = cJSON_ParseWithLength(line, length);
  const cJSON *unit = cJSON_GetObjectItemCaseSensitive(json, "unit");
  shoal_status status =
      cJSON_IsNumber(unit) && unit->valuedouble >= 0 && unit->valuedouble < 1e15
          ? shoal_trial_result_read(&result, cJSON_GetObjectItemCaseSensitive(json, "result"), err)
          : shoal_fail(err, SHOAL_CORRUPT, "it is no record of a unit");
  if (status == SHOAL_OK) status = keep_result(list, (uint64_t)unit->valuedouble, &result, err);
  cJSON_Delete(json);
  return status;
}

/* All whole lines; *whole is where the last of them ends: a process that was killed may have left half of
 * one. */
static shoal_status read_journal(const char *path, kept_list *list, size_t *whole, shoal_error *err) {
  uint8_t *text;
  size_t length, line = 1;
  *whole = 0;
  if (!shoal_file_exists(path)) return SHOAL_OK;
  shoal_status status = shoal_file_read(path, journal_bytes_max, false, &text, &length, err);
  if (status != SHOAL_OK) return status;
  const char *at = (const char *)text, *end = at + length;
  while (status == SHOAL_OK) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) break;
    status = keep_line(list, at, (size_t)(stop - at), err);
    if (status != SHOAL_OK) shoal_error_prefix(err, "%s: line %zu: ", path, line);
    at = stop + 1;
    line++;
  }
  *whole = (size_t)(at - (const char *)text);
  free(text);
  return status;
}

static int by_unit(const void *a, const void *b) {
  uint64_t x = ((const kept *)a)->unit, y = ((const kept *)b)->unit;
  return (x > y) - (x < y);
}

/* Units are given out as they were then, with the limits that there were; those whose result was lost are
 * given back. */
static shoal_status give_again(shoal_search *s, uint64_t unit, uint32_t *limit, shoal_error *err) {
  while (shoal_board_units(s->board) <= unit) {
    for (; *limit < s->limits_count && s->limits[*limit].units <= shoal_board_units(s->board); (*limit)++)
      shoal_board_extend(s->board, s->limits[*limit].trials);
    shoal_taken taken;
    if (shoal_board_take(s->board, "here", 0, &taken, err) != SHOAL_NEXT_UNIT)
      return shoal_fail(err, SHOAL_CORRUPT, "%s: the journal's unit %llu is not one of this search",
                        s->options->folder, (unsigned long long)unit);
  }
  return SHOAL_OK;
}

static shoal_status report_again(shoal_search *s, kept_list *list, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  uint32_t limit = 1;
  for (size_t i = 0; i < list->count && status == SHOAL_OK; i++) {
    const kept *k = &list->at[i];
    if (i > 0 && k->unit == k[-1].unit) continue;
    status = give_again(s, k->unit, &limit, err);
    if (status == SHOAL_OK && shoal_board_done(s->board, k->unit, k->result, "here", 0)) s->finished_units++;
  }
  shoal_unit unit;
  for (uint64_t number = 0; number < shoal_board_units(s->board) && status == SHOAL_OK; number++)
    if (shoal_board_wants(s->board, number, &unit))
      shoal_board_failed(s->board, number, 1, "its result was lost", true, 0);
  for (; limit < s->limits_count; limit++) shoal_board_extend(s->board, s->limits[limit].trials);
  uint64_t best;
  if (status == SHOAL_OK && shoal_board_best(s->board, &best, 1) == 1) s->best = best;
  return status;
}

shoal_status shoal_search_extend(shoal_search *s, shoal_error *err) {
  uint64_t trials = s->options->trials;
  if (s->limits[s->limits_count - 1].trials == trials) return SHOAL_OK;
  if (s->limits_count == SHOAL_SEARCH_LIMITS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "a search can be extended %d times", SHOAL_SEARCH_LIMITS_MAX - 1);
  s->limits[s->limits_count++] = (shoal_search_limit){.units = shoal_board_units(s->board), .trials = trials};
  shoal_board_extend(s->board, trials);
  return write_record(s, err);
}

static shoal_status open_journal(shoal_search *s, const char *path, size_t whole, shoal_error *err) {
  s->journal = fopen(path, "a");
  if (s->journal == NULL || ftruncate(fileno(s->journal), (off_t)whole) != 0)
    return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
  return SHOAL_OK;
}

static shoal_status read_own_journal(shoal_search *s, kept_list *list, shoal_error *err) {
  shoal_text path;
  size_t whole = 0;
  path_of(s, "journal.jsonl", &path);
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                    : read_journal(path.bytes, list, &whole, err);
  if (status == SHOAL_OK) status = open_journal(s, path.bytes, whole, err);
  shoal_text_release(&path);
  return status;
}

shoal_status shoal_search_replay(shoal_search *s, shoal_error *err) {
  kept_list list = {0};
  const shoal_search_journal *other = s->options->journal;
  shoal_status status =
      other ? other->replay(other->self, keep_result, &list, err) : read_own_journal(s, &list, err);
  if (status == SHOAL_OK && list.count > 0) {
    qsort(list.at, list.count, sizeof *list.at, by_unit);
    status = report_again(s, &list, err);
  }
  release_list(&list);
  return status;
}

static shoal_status append(shoal_search *s, uint64_t unit, const shoal_trial_result *result,
                           shoal_error *err) {
  shoal_text line;
  shoal_json json;
  shoal_json_begin(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "unit", (int64_t)unit);
  shoal_trial_result_write(result, &json, "result");
  shoal_json_close(&json, '}');
  shoal_text_add(&line, "\n", 1);
  shoal_status status = SHOAL_OK;
  struct stat before = {.st_size = -1};
  if (line.failed) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  } else if (fstat(fileno(s->journal), &before) != 0 ||
             fwrite(line.bytes, 1, line.length, s->journal) != line.length || fflush(s->journal) != 0) {
    int number = errno;
    status = shoal_fail(err, number == ENOSPC || number == EDQUOT ? SHOAL_FULL : SHOAL_IO,
                        "%s/journal.jsonl: %s", s->options->folder, strerror(number));
    /* Of a line that was cut off nothing stays, so that another can follow. */
    __fpurge(s->journal);
    clearerr(s->journal);
    if (ftruncate(fileno(s->journal), before.st_size) != 0) status = SHOAL_IO;
  }
  shoal_text_release(&line);
  return status;
}

shoal_status shoal_search_keep(shoal_search *s, const shoal_unit *unit, const char *worker,
                               const shoal_trial_result *result, shoal_error *err) {
  const shoal_search_journal *other = s->options->journal;
  return other ? other->keep(other->self, unit, worker, result, err) : append(s, unit->number, result, err);
}
