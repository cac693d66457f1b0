/* follow.c: see follow.h. */
#include "cli/follow.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/human.h"
#include "base/json_at.h"
#include "cli/found.h"
#include "cli/played.h"

enum { PATH_MAX_BYTES = 64, NAME_MAX_BYTES = 128, LINE_MAX_BYTES = 400 };
static const double AGAIN_S = 1;     /* before a broken connection is made again */
static const double GIVE_UP_S = 600; /* without a server */

typedef struct following {
  const shoal_follow_config *config;
  shoal_progress progress;
  cJSON *job;           /* as it was told last */
  uint64_t epochs_told; /* so many */
  cJSON *early;         /* epochs that came before the job said what they are measured by; or NULL */
  char held_out[16];
  shoal_found found; /* of a search: the best that was told */
  shoal_played played;
  double score;                 /* of an agent: the best that was told */
  uint64_t points, point_steps; /* those that were heard, and how far the last one was */
  bool point_scored;            /* and whether it had a score */
} following;

static bool is_ended(const cJSON *job) {
  const char *state = shoal_text_at(job, "state");
  return strcmp(state, "finished") == 0 || strcmp(state, "stopped") == 0 || strcmp(state, "failed") == 0;
}

static bool stops(const following *f) { return __atomic_load_n(f->config->stop, __ATOMIC_RELAXED) != 0; }

/* ---- lines ---- */

static void print_line(following *f, const char *line) {
  if (!f->config->text) return;
  shoal_progress_clear(&f->progress);
  fprintf(f->config->text, "%s\n", line);
  fflush(f->config->text);
}

static void add_result(shoal_text *out, const char *part, double loss, const char *name, double metric) {
  if (!isfinite(loss)) return;
  shoal_text_addf(out, "  %s loss %s", part, shoal_human_number(loss).text);
  if (isfinite(metric) && name[0]) shoal_text_addf(out, " %s %s", name, shoal_human_number(metric).text);
}

static void print_epoch(following *f, const cJSON *epoch) {
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(f->job, "progress");
  const cJSON *spec = cJSON_GetObjectItemCaseSensitive(f->job, "spec");
  char metric[32];
  shoal_plain_at(progress, "metric_name", metric, sizeof metric);
  shoal_text line;
  shoal_text_init(&line);
  shoal_text_addf(&line, "epoch %s", shoal_human_count(shoal_whole_at(epoch, "epoch")).text);
  if (shoal_whole_at(spec, "epochs") > 0)
    shoal_text_addf(&line, "/%s", shoal_human_count(shoal_whole_at(spec, "epochs")).text);
  add_result(&line, "train", shoal_number_at(epoch, "loss"), metric, shoal_number_at(epoch, "metric"));
  add_result(&line, f->held_out[0] ? f->held_out : "held out", shoal_number_at(epoch, "held_out_loss"),
             metric, shoal_number_at(epoch, "held_out_metric"));
  if (!line.failed) print_line(f, line.bytes);
  shoal_text_release(&line);
}

/* What an epoch's numbers are called stands in the job, once that is computed. */
static bool knows_words(const following *f) {
  return strcmp(shoal_text_at(f->job, "state"), "waiting") != 0 &&
         shoal_text_at(cJSON_GetObjectItemCaseSensitive(f->job, "progress"), "metric_name")[0] != 0;
}

/* Each once, whether it was heard live or asked for later. */
static void tell_epoch(following *f, const cJSON *epoch) {
  uint64_t number = shoal_whole_at(epoch, "epoch");
  if (number <= f->epochs_told) return;
  f->epochs_told = number;
  if (f->config->json) shoal_remote_event("epoch", epoch);
  print_epoch(f, epoch);
}

/* An epoch that is told live may come a moment before the job that it is of. */
static void hear_epoch(following *f, cJSON *epoch) {
  if (!knows_words(f) && !f->early) f->early = cJSON_CreateArray();
  if (!knows_words(f) && f->early && cJSON_AddItemToArray(f->early, epoch)) return;
  tell_epoch(f, epoch);
  cJSON_Delete(epoch);
}

static void tell_early(following *f) {
  const cJSON *epoch;
  cJSON_ArrayForEach(epoch, f->early) tell_epoch(f, epoch);
  cJSON_Delete(f->early);
  f->early = NULL;
}

static void show_search(following *f, double now) {
  const shoal_found *found = &f->found;
  const shoal_progress_view view = {.share = found->share,
                                    .per_s = NAN,
                                    .loss = NAN,
                                    .metric_name = found->metric,
                                    .metric = found->score,
                                    .eta_s = found->left_s};
  shoal_progress_show(&f->progress, &view, now);
}

static void show_progress(following *f) {
  double now = shoal_clock_seconds();
  if (!shoal_progress_due(&f->progress, now)) return;
  if (f->found.is_search) {
    show_search(f, now);
    return;
  }
  if (f->played.is_agent) {
    shoal_played_show(&f->progress, &f->played, now);
    return;
  }
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(f->job, "progress");
  const cJSON *spec = cJSON_GetObjectItemCaseSensitive(f->job, "spec");
  double rounds = shoal_number_at(f->job, "rounds");
  double rate = shoal_number_at(progress, "samples_per_s");
  char metric[32];
  shoal_progress_view view = {
      .epoch = shoal_whole_at(progress, "epoch") + 1,
      .epochs = shoal_whole_at(spec, "epochs"),
      .share = rounds > 0 ? shoal_number_at(progress, "round") / rounds : 0,
      .per_s = rate > 0 ? rate : NAN, /* 0 is not measured yet */
      .unit = "samples",
      .loss = shoal_number_at(progress, "loss"),
      .metric_name = shoal_plain_at(progress, "metric_name", metric, sizeof metric),
      .metric = shoal_number_at(progress, "metric"),
      .eta_s = shoal_number_at(progress, "eta_s"),
  };
  if (view.epochs > 0 && view.epoch > view.epochs) view.epoch = view.epochs;
  if (!isfinite(view.share)) view.share = 0;
  shoal_progress_show(&f->progress, &view, now);
}

/* ---- searches ---- */

static void print_best(following *f, uint64_t epochs) {
  char line[LINE_MAX_BYTES];
  const shoal_found *found = &f->found;
  int used = snprintf(line, sizeof line, "trial %s  %s %s", shoal_human_count(found->best).text,
                      found->metric, shoal_human_number(found->score).text);
  if (epochs > 0)
    snprintf(line + used, sizeof line - (size_t)used, "  after %s epochs", shoal_human_count(epochs).text);
  print_line(f, line);
}

/* The best that was told stays, until a trial, or the server, has a better one. */
static void look_at_search(following *f) {
  shoal_found before = f->found;
  shoal_found_read(&f->found, f->job);
  if (!f->found.is_search) return;
  bool news = before.best == 0 ? f->found.best > 0 : shoal_found_is_better(&before, f->found.score);
  if (news) {
    print_best(f, 0);
  } else if (before.best > 0) {
    f->found.best = before.best;
    f->found.score = before.score;
  }
}

static void hear_trial(following *f, const cJSON *row) {
  const cJSON *result = cJSON_GetObjectItemCaseSensitive(row, "result");
  double score = shoal_number_at(result, "score");
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(result, "failed")) || f->found.metric[0] == 0 ||
      !shoal_found_is_better(&f->found, score))
    return;
  f->found.best = shoal_whole_at(row, "trial");
  f->found.score = score;
  print_best(f, shoal_whole_at(result, "epochs"));
}

/* ---- agents ---- */

static void print_score(following *f, const cJSON *point, double score) {
  char line[LINE_MAX_BYTES];
  bool solved = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(point, "solved"));
  double deviation = shoal_number_at(point, "score_deviation");
  snprintf(line, sizeof line, "score %s +- %s after %s steps%s", shoal_played_number(score).text,
           shoal_played_number(isfinite(deviation) ? deviation : 0).text,
           shoal_human_count(shoal_whole_at(point, "steps")).text, solved ? ": solved" : "");
  print_line(f, line);
}

/* Whether a point comes after the last that was told: a score may come at the same steps. */
static bool is_new_point(const following *f, const cJSON *point) {
  uint64_t steps = shoal_whole_at(point, "steps");
  bool scored = isfinite(shoal_number_at(point, "score"));
  return steps > f->point_steps || (steps == f->point_steps && scored && !f->point_scored);
}

/* A point of the curves: each once, whether it was heard live or asked for later. */
static void tell_point(following *f, const cJSON *point) {
  double score = shoal_number_at(point, "score");
  f->points++;
  f->point_steps = shoal_whole_at(point, "steps");
  f->point_scored = isfinite(score);
  if (f->config->json) shoal_remote_event("point", point);
  if (!isfinite(score) || score <= f->score) return;
  f->score = score;
  print_score(f, point, score);
}

static void catch_up_points(following *f) {
  char path[PATH_MAX_BYTES];
  cJSON *answer;
  snprintf(path, sizeof path, "/jobs/%" PRIu64 "/points?from=%" PRIu64, f->config->job, f->points);
  if (shoal_remote_ask(f->config->api, "GET", path, NULL, &answer, NULL) != SHOAL_OK) return;
  const cJSON *point;
  cJSON_ArrayForEach(point, cJSON_GetObjectItemCaseSensitive(answer, "points")) {
    if (is_new_point(f, point)) tell_point(f, point);
  }
  uint64_t next = shoal_whole_at(answer, "next");
  if (next > 0) f->points = next;
  cJSON_Delete(answer);
}

/* ---- what the server tells ---- */

static void say_state(following *f, const cJSON *before) {
  const char *state = shoal_text_at(f->job, "state");
  if (strcmp(shoal_text_at(before, "state"), state) == 0 &&
      strcmp(shoal_text_at(before, "reason"), shoal_text_at(f->job, "reason")) == 0)
    return;
  char reason[LINE_MAX_BYTES / 2], line[LINE_MAX_BYTES], word[16];
  shoal_plain_at(f->job, "reason", reason, sizeof reason);
  shoal_plain_at(f->job, "state", word, sizeof word);
  snprintf(line, sizeof line, "job %" PRIu64 " is %s%s%s", f->config->job, word, reason[0] ? ": " : "",
           reason);
  if (!is_ended(f->job)) print_line(f, line); /* the end is told by who asked */
}

/* Takes the job over. */
static void take_job(following *f, cJSON *job) {
  cJSON *before = f->job;
  f->job = job;
  shoal_plain_at(cJSON_GetObjectItemCaseSensitive(job, "progress"), "held_out", f->held_out,
                 sizeof f->held_out);
  say_state(f, before);
  cJSON_Delete(before);
  look_at_search(f);
  shoal_played_read(&f->played, job);
  if (knows_words(f)) tell_early(f);
  if (strcmp(shoal_text_at(job, "state"), "running") == 0) show_progress(f);
}

/* Of an agent, scores and the end are told here in lines of their own. */
static bool is_told_anyway(const following *f, const char *line) {
  static const char score[] = "score ", end[] = "finished after ";
  return f->played.is_agent &&
         (strncmp(line, score, sizeof score - 1) == 0 || strncmp(line, end, sizeof end - 1) == 0);
}

static void hear_line(following *f, const cJSON *log) {
  char line[LINE_MAX_BYTES];
  shoal_plain_at(log, "text", line, sizeof line);
  if (!is_told_anyway(f, line)) print_line(f, line);
}

static bool hear(void *self, const char *name, const char *data) {
  following *f = self;
  cJSON *json = shoal_utf8_valid(data, strlen(data)) ? cJSON_Parse(data) : NULL;
  if (!json) return true;
  bool passed_on = strcmp(name, "job") == 0 || strcmp(name, "log") == 0 || strcmp(name, "workers") == 0 ||
                   strcmp(name, "rounds") == 0 || strcmp(name, "trial") == 0;
  if (f->config->json && passed_on) shoal_remote_event(name, json);
  if (strcmp(name, "epoch") == 0) {
    hear_epoch(f, json);
    return true;
  } else if (strcmp(name, "trial") == 0) {
    hear_trial(f, json);
  } else if (strcmp(name, "point") == 0) {
    tell_point(f, json);
  } else if (strcmp(name, "log") == 0) {
    hear_line(f, json);
  } else if (strcmp(name, "job") == 0 && cJSON_IsObject(json)) {
    take_job(f, json);
    return !is_ended(f->job);
  }
  cJSON_Delete(json);
  return true;
}

static shoal_status ask_job(following *f, shoal_error *err) {
  char path[PATH_MAX_BYTES];
  cJSON *job;
  snprintf(path, sizeof path, "/jobs/%" PRIu64, f->config->job);
  shoal_status status = shoal_remote_ask(f->config->api, "GET", path, NULL, &job, err);
  if (status == SHOAL_OK && job == NULL)
    status = shoal_fail(err, SHOAL_CORRUPT, "the server tells nothing of the job");
  if (status == SHOAL_OK) take_job(f, job);
  return status;
}

/* Epochs that ended, and points that were made, while nobody watched. */
static void catch_up(following *f) {
  char path[PATH_MAX_BYTES];
  cJSON *history;
  if (f->played.is_agent) {
    catch_up_points(f);
    return;
  }
  snprintf(path, sizeof path, "/jobs/%" PRIu64 "/history", f->config->job);
  if (shoal_remote_ask(f->config->api, "GET", path, NULL, &history, NULL) != SHOAL_OK) return;
  const cJSON *epoch;
  cJSON_ArrayForEach(epoch, cJSON_GetObjectItemCaseSensitive(history, "epochs")) tell_epoch(f, epoch);
  cJSON_Delete(history);
}

/* Whether it may be better in a while. Who was never told of the job has the wrong address, or no server. */
static bool is_passing(const following *f, shoal_status status) {
  return f->job != NULL && (status == SHOAL_IO || status == SHOAL_CORRUPT);
}

shoal_status shoal_follow(const shoal_follow_config *config, cJSON **out, shoal_error *err) {
  following f = {.config = config, .score = -INFINITY};
  char path[PATH_MAX_BYTES];
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64 "/live", config->job);
  shoal_progress_init(&f.progress, config->text, shoal_clock_seconds());
  double lost_at = 0;
  bool said = false;
  shoal_status status = SHOAL_OK;
  while (status == SHOAL_OK) {
    shoal_status way = ask_job(&f, err);
    if (way == SHOAL_OK) {
      lost_at = 0;
      said = false;
      catch_up(&f);
      if (is_ended(f.job)) break;
      way = shoal_fetch_events(config->api->fetch, path, &f, hear, err);
      if (way == SHOAL_OK && is_ended(f.job)) continue; /* asks once more, for the last numbers */
    }
    double now = shoal_clock_seconds();
    if (lost_at == 0) lost_at = now;
    if (stops(&f))
      status = shoal_fail(err, SHOAL_STOPPED, "stopped");
    else if ((way != SHOAL_OK && !is_passing(&f, way)) || now - lost_at > GIVE_UP_S)
      status = way;
    else if (way != SHOAL_OK && !said)
      print_line(&f, "lost the server; trying again");
    said = said || way != SHOAL_OK;
    for (double until = now + AGAIN_S; status == SHOAL_OK && shoal_clock_seconds() < until && !stops(&f);)
      shoal_clock_sleep(0.05);
  }
  tell_early(&f);
  shoal_progress_clear(&f.progress);
  *out = status == SHOAL_OK ? f.job : NULL;
  if (status != SHOAL_OK) cJSON_Delete(f.job);
  return status;
}
