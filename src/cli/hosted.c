/* hosted.c: see hosted.h. */
#include "cli/hosted.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json_at.h"
#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/found.h"
#include "cli/played.h"
#include "cli/stop.h"
#include "server/spec.h"
#include "train/training.h"

enum { NAME_MAX_BYTES = SHOAL_SPEC_NAME_MAX + 1, PATH_MAX_BYTES = 64, REASON_MAX_BYTES = 300 };
enum { COMPARED_BYTES = 64 << 10 };

/* One line for every word: "  watch it    shoal job watch 7 --server ...". The token is not repeated. */
typedef struct advice {
  const char *what, *verb;
} advice;

static void tell_advice(const shoal_hosted *h, const advice *lines, size_t count) {
  if (!h->text) return;
  shoal_text server;
  shoal_text_init(&server);
  shoal_remote_add_server(&server, h->api, h->options);
  for (size_t i = 0; i < count; i++)
    fprintf(h->text, "  %-10s  shoal job %s %" PRIu64 "%s\n", lines[i].what, lines[i].verb, h->job,
            server.bytes ? server.bytes : "");
  if (h->api->link_is_secret) fprintf(h->text, "  (" SHOAL_LINK_IS ")\n");
  fflush(h->text);
  shoal_text_release(&server);
}

void shoal_hosted_tell_commands(const shoal_hosted *h) {
  static const advice lines[] = {{"watch it", "watch"}, {"stop it", "stop"}, {"get it", "get"}};
  if (h->text) fprintf(h->text, "the job continues\n");
  tell_advice(h, lines, sizeof lines / sizeof *lines);
}

/* How to go on with a job that ended before it was finished. */
static void tell_how_to_go_on(const shoal_hosted *h, const cJSON *job) {
  static const advice lines[] = {{"continue", "resume"}, {"get it", "get"}};
  const cJSON *files = cJSON_GetObjectItemCaseSensitive(job, "files");
  bool has_model = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(files, "model"));
  if (!h->text && strcmp(shoal_text_at(job, "state"), "stopped") == 0)
    shoal_cli_warn(h->command, "job %" PRIu64 " was stopped; 'shoal job resume %" PRIu64 "' continues it%s",
                   h->job, h->job, has_model ? ", and 'shoal job get' brings what there is" : "");
  tell_advice(h, lines, has_model ? 2 : 1);
}

/* ---- the model ---- */

typedef struct getting {
  shoal_progress progress;
  double all;
} getting;

static void show(void *self, uint64_t done) {
  getting *g = self;
  double now = shoal_clock_seconds();
  if (!shoal_progress_due(&g->progress, now)) return;
  shoal_progress_view view = {.share = g->all > 0 ? (double)done / g->all : 0,
                              .per_s = NAN,
                              .loss = NAN,
                              .metric = NAN,
                              .eta_s = NAN};
  shoal_progress_show(&g->progress, &view, now);
}

/* A name from a server becomes the name of a file: no path, nothing hidden. */
static void file_name(const cJSON *job, char out[NAME_MAX_BYTES + 24]) {
  char name[NAME_MAX_BYTES];
  shoal_plain_at(job, "name", name, sizeof name);
  for (char *c = name; *c; c++)
    if (*c == '/' || *c == '\\') *c = '-';
  snprintf(out, NAME_MAX_BYTES + 24, "%s%s.safetensors", name[0] == '.' || !name[0] ? "model" : "", name);
}

static shoal_status fetch_model(const shoal_hosted *h, const cJSON *job, const char *out, shoal_error *err) {
  char path[PATH_MAX_BYTES];
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64 "/model", h->job);
  getting g = {.all = 4 * shoal_number_at(job, "weights")};
  shoal_progress_init(&g.progress, h->text, shoal_clock_seconds());
  shoal_status status = shoal_fetch_file(h->api->fetch, path, out, &g, show, err);
  shoal_progress_clear(&g.progress);
  return status;
}

static bool has_same_bytes(const char *path, const char *other) {
  FILE *a = fopen(path, "rb"), *b = fopen(other, "rb");
  bool same = a && b;
  static char one[COMPARED_BYTES], two[COMPARED_BYTES];
  for (size_t got = 1; same && got > 0;) {
    got = fread(one, 1, sizeof one, a);
    same = fread(two, 1, sizeof two, b) == got && memcmp(one, two, got) == 0;
  }
  same = same && !ferror(a) && !ferror(b);
  if (a) fclose(a);
  if (b) fclose(b);
  return same;
}

/* Puts a file in its place; another that is there is kept, and nothing is written over. */
static shoal_status put_in_place(const shoal_hosted *h, const char *fresh, const char *out,
                                 shoal_error *err) {
  bool there = shoal_file_exists(out);
  if (there && has_same_bytes(fresh, out)) {
    remove(fresh);
    return SHOAL_OK;
  }
  shoal_text aside = {0};
  errno = EEXIST;
  bool moved = !there || (shoal_cli_place_aside(out, &aside) && rename(out, aside.bytes) == 0);
  if (!moved || rename(fresh, out) != 0) {
    shoal_text_release(&aside);
    return shoal_fail(err, SHOAL_IO, "the model is in %s, and cannot be moved to %s: %s", fresh, out,
                      strerror(errno));
  }
  if (there && h->text) fprintf(h->text, "what was in %s is in %s now\n", out, aside.bytes);
  shoal_text_release(&aside);
  return SHOAL_OK;
}

/* Under a name that the server chose, nothing of this folder may be lost. */
static shoal_status fetch_under_name(const shoal_hosted *h, const cJSON *job, const char *out,
                                     shoal_error *err) {
  char fresh[NAME_MAX_BYTES + 32];
  snprintf(fresh, sizeof fresh, "%s.new", out);
  shoal_status status = fetch_model(h, job, fresh, err);
  return status == SHOAL_OK ? put_in_place(h, fresh, out, err) : status;
}

shoal_status shoal_hosted_check_out(const char *out, shoal_error *err) {
  shoal_writer *writer;
  if (out && shoal_folder_exists(out))
    return shoal_fail(err, SHOAL_INVALID, "--out: %s is a folder; give the name of a file in it", out);
  shoal_status status = shoal_writer_create(&writer, out ? out : "model.safetensors", err);
  if (status == SHOAL_OK)
    shoal_writer_abandon(writer);
  else
    shoal_error_prefix(err, "%s: ", out ? "--out" : "a model cannot be saved in this folder");
  return status;
}

shoal_status shoal_hosted_get(const shoal_hosted *h, const cJSON *job, shoal_error *err) {
  char name[NAME_MAX_BYTES + 24];
  file_name(job, name);
  const char *out = h->out ? h->out : name;
  shoal_status status = h->out ? fetch_model(h, job, out, err) : fetch_under_name(h, job, out, err);
  if (status != SHOAL_OK) return status;
  bool is_agent = strcmp(shoal_text_at(job, "kind"), "agent") == 0;
  if (h->text && is_agent)
    fprintf(h->text, "the agent is in %s; 'shoal agent play' shows it\n", out);
  else if (h->text)
    fprintf(h->text, "the model is in %s\n", out);
  cJSON *line = cJSON_CreateObject();
  if (h->json && line) {
    cJSON_AddStringToObject(line, "file", out);
    shoal_remote_event("model", line);
  }
  cJSON_Delete(line);
  return SHOAL_OK;
}

/* ---- watching ---- */

/* What a search has come to. */
static void tell_found(const shoal_hosted *h, const cJSON *job) {
  shoal_found found;
  shoal_found_read(&found, job);
  if (!found.is_search || found.trials == 0) return;
  fprintf(h->text, "; %s trial%s", shoal_human_count(found.trials).text, found.trials == 1 ? "" : "s");
  if (found.best > 0)
    fprintf(h->text, ", the best with validation %s %s", found.metric, shoal_human_number(found.score).text);
  const cJSON *search = cJSON_GetObjectItemCaseSensitive(job, "search");
  uint64_t members = shoal_whole_at(search, "members"), rows = shoal_whole_at(search, "test_rows");
  double test = shoal_number_at(search, "test_score");
  if (members == 0) return;
  if (members == 1)
    fprintf(h->text, "\nthe model is made of the best one");
  else
    fprintf(h->text, "\nthe model is made of %s of them", shoal_human_count(members).text);
  if (isfinite(test) && rows > 0)
    fprintf(h->text, ": test %s %s on %s row%s", found.metric, shoal_human_number(test).text,
            shoal_human_count(rows).text, rows == 1 ? "" : "s");
}

/* What an agent has come to. */
static void tell_played(const shoal_hosted *h, const cJSON *job) {
  shoal_played p;
  shoal_text text;
  shoal_played_read(&p, job);
  if (!p.is_agent || p.steps == 0) return;
  shoal_text_init(&text);
  bool has_goal = isfinite(p.goal), scored = isfinite(p.score);
  shoal_text_addf(&text, "; %s after %s steps",
                  !has_goal  ? "ended"
                  : p.solved ? "solved"
                             : "not solved",
                  shoal_human_count(p.steps).text);
  if (isfinite(shoal_played_worth(&p))) {
    shoal_text_addf(&text, ": return");
    shoal_played_add(&text, shoal_played_worth(&p), scored ? p.score_deviation : p.return_deviation);
  }
  if (has_goal) shoal_text_addf(&text, " (goal %s)", shoal_played_number(p.goal).text);
  if (!text.failed) fprintf(h->text, "%s", text.bytes);
  shoal_text_release(&text);
}

/* Why a job has failed is left to the error that ends the command. */
static void tell_end(const shoal_hosted *h, const cJSON *job) {
  char state[16], reason[REASON_MAX_BYTES], metric[32], held_out[16];
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(job, "progress");
  shoal_plain_at(job, "state", state, sizeof state);
  shoal_plain_at(job, "reason", reason, sizeof reason);
  if (strcmp(state, "failed") == 0) reason[0] = 0;
  shoal_plain_at(progress, "metric_name", metric, sizeof metric);
  shoal_plain_at(progress, "held_out", held_out, sizeof held_out);
  if (h->json) shoal_remote_event("end", job);
  if (!h->text) return;
  fprintf(h->text, "job %" PRIu64 " is %s%s%s", h->job, state, reason[0] ? ": " : "", reason);
  double seconds = shoal_number_at(job, "ended") - shoal_number_at(job, "started");
  if (isfinite(seconds)) fprintf(h->text, ", after %s", shoal_human_seconds(seconds).text);
  double value = shoal_number_at(progress, "held_out_metric");
  if (isfinite(value) && held_out[0])
    fprintf(h->text, "; %s %s %s", held_out, metric, shoal_human_number(value).text);
  tell_found(h, job);
  tell_played(h, job);
  fputc('\n', h->text);
  fflush(h->text);
}

/* A signal came: what it means is said, whatever else is not. */
static void tell_left(const shoal_hosted *h) {
  if (!h->text) {
    shoal_cli_warn(h->command, "stopped watching by %s; job %" PRIu64 " continues",
                   shoal_stop_name(shoal_stop_signal()), h->job);
    return;
  }
  fputc('\n', h->text);
  shoal_hosted_tell_commands(h);
}

/* The model of a job that is finished. What goes wrong here can be mended, and nothing is lost. */
static shoal_status bring(const shoal_hosted *h, const cJSON *job, shoal_error *err) {
  shoal_status status = shoal_hosted_get(h, job, err);
  if (status == SHOAL_OK || status == SHOAL_STOPPED) return status;
  char text[SHOAL_ERROR_TEXT_MAX / 2];
  shoal_text_plain(text, sizeof text, err->text, strlen(err->text));
  return shoal_fail(err, status, "%s; the server keeps the model: 'shoal job get %" PRIu64 "' brings it",
                    text, h->job);
}

shoal_status shoal_hosted_watch(const shoal_hosted *h, int *exit_status, shoal_error *err) {
  cJSON *job;
  const shoal_follow_config config = {
      .api = h->api, .job = h->job, .text = h->text, .json = h->json, .stop = shoal_stop_flag()};
  *exit_status = SHOAL_EXIT_OK;
  shoal_status status = shoal_follow(&config, &job, err);
  if (status == SHOAL_STOPPED) {
    tell_left(h);
    *exit_status = 128 + shoal_stop_signal();
    return SHOAL_OK;
  }
  if (status != SHOAL_OK) return status;
  tell_end(h, job);
  const char *state = shoal_text_at(job, "state");
  if (strcmp(state, "finished") == 0) {
    status = bring(h, job, err);
  } else {
    tell_how_to_go_on(h, job);
    *exit_status = SHOAL_EXIT_FAILED;
  }
  if (strcmp(state, "failed") == 0) {
    char reason[REASON_MAX_BYTES];
    status = shoal_fail(err, SHOAL_INVALID, "the job failed: %s",
                        shoal_plain_at(job, "reason", reason, sizeof reason));
  }
  cJSON_Delete(job);
  return status;
}
