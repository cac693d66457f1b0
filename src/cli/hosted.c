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
#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "server/spec.h"
#include "train/training.h"

enum { NAME_MAX_BYTES = SHOAL_SPEC_NAME_MAX + 1, PATH_MAX_BYTES = 64, REASON_MAX_BYTES = 300 };

/* The token is not repeated. */
void shoal_hosted_tell_commands(const shoal_hosted *h) {
  if (!h->text) return;
  shoal_text server;
  shoal_text_init(&server);
  if (h->options->server) {
    shoal_text_addf(&server, " --server %s://%s", h->api->link.tls ? "https" : "http", h->api->link.address);
    if (h->api->link.token[0] || h->api->link.fingerprint[0]) shoal_text_addf(&server, "/...");
  }
  const char *at = server.bytes ? server.bytes : "";
  fprintf(h->text,
          "the job goes on\n"
          "  watch it    shoal job watch %" PRIu64 "%s\n"
          "  stop it     shoal job stop %" PRIu64 "%s\n"
          "  get it      shoal job get %" PRIu64 "%s\n",
          h->job, at, h->job, at, h->job, at);
  fflush(h->text);
  shoal_text_release(&server);
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
  shoal_remote_plain(job, "name", name, sizeof name);
  for (char *c = name; *c; c++)
    if (*c == '/' || *c == '\\') *c = '-';
  snprintf(out, NAME_MAX_BYTES + 24, "%s%s.safetensors", name[0] == '.' || !name[0] ? "model" : "", name);
}

static shoal_status fetch_model(const shoal_hosted *h, const cJSON *job, const char *out, shoal_error *err) {
  char path[PATH_MAX_BYTES];
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64 "/model", h->job);
  getting g = {.all = 4 * shoal_remote_number(job, "weights")};
  shoal_progress_init(&g.progress, h->text, shoal_clock_seconds());
  shoal_status status = shoal_fetch_file(h->api->fetch, path, out, &g, show, err);
  shoal_progress_clear(&g.progress);
  return status;
}

/* Puts a file in its place; one that is there is kept, as shoal train keeps it. */
static shoal_status put_in_place(const shoal_hosted *h, const char *fresh, const char *out,
                                 shoal_error *err) {
  shoal_text aside = {0};
  shoal_training_path(&aside, out, "previous");
  bool moves = shoal_file_exists(out);
  if (aside.failed || (moves && rename(out, aside.bytes) != 0) || rename(fresh, out) != 0) {
    shoal_text_release(&aside);
    return shoal_fail(err, SHOAL_IO, "the model is in %s, and cannot be moved to %s: %s", fresh, out,
                      strerror(errno));
  }
  if (moves && h->text) fprintf(h->text, "what was in %s is in %s now\n", out, aside.bytes);
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

shoal_status shoal_hosted_get(const shoal_hosted *h, const cJSON *job, shoal_error *err) {
  char name[NAME_MAX_BYTES + 24];
  file_name(job, name);
  const char *out = h->out ? h->out : name;
  shoal_status status = h->out ? fetch_model(h, job, out, err) : fetch_under_name(h, job, out, err);
  if (status != SHOAL_OK) return status;
  if (h->text) fprintf(h->text, "the model is in %s\n", out);
  cJSON *line = cJSON_CreateObject();
  if (h->json && line) {
    cJSON_AddStringToObject(line, "file", out);
    shoal_remote_event("model", line);
  }
  cJSON_Delete(line);
  return SHOAL_OK;
}

/* ---- watching ---- */

static void tell_end(const shoal_hosted *h, const cJSON *job) {
  char state[16], reason[REASON_MAX_BYTES], metric[32], held_out[16];
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(job, "progress");
  shoal_remote_plain(job, "state", state, sizeof state);
  shoal_remote_plain(job, "reason", reason, sizeof reason);
  shoal_remote_plain(progress, "metric_name", metric, sizeof metric);
  shoal_remote_plain(progress, "held_out", held_out, sizeof held_out);
  if (h->json) shoal_remote_event("end", job);
  if (!h->text) return;
  fprintf(h->text, "job %" PRIu64 " is %s%s%s", h->job, state, reason[0] ? ": " : "", reason);
  double seconds = shoal_remote_number(job, "ended") - shoal_remote_number(job, "started");
  if (isfinite(seconds)) fprintf(h->text, ", after %s", shoal_human_seconds(seconds).text);
  double value = shoal_remote_number(progress, "held_out_metric");
  if (isfinite(value) && held_out[0])
    fprintf(h->text, "; %s %s %s", held_out, metric, shoal_human_number(value).text);
  fputc('\n', h->text);
  fflush(h->text);
}

shoal_status shoal_hosted_watch(const shoal_hosted *h, int *exit_status, shoal_error *err) {
  cJSON *job;
  const shoal_follow_config config = {
      .api = h->api, .job = h->job, .text = h->text, .json = h->json, .stop = shoal_stop_flag()};
  shoal_status status = shoal_follow(&config, &job, err);
  if (status == SHOAL_STOPPED) {
    if (h->text) fputc('\n', h->text);
    shoal_hosted_tell_commands(h);
    *exit_status = SHOAL_EXIT_OK;
    return SHOAL_OK;
  }
  if (status != SHOAL_OK) return status;
  tell_end(h, job);
  bool failed = strcmp(shoal_remote_text(job, "state"), "failed") == 0;
  bool finished = strcmp(shoal_remote_text(job, "state"), "finished") == 0;
  if (finished) status = shoal_hosted_get(h, job, err);
  if (failed) {
    char reason[REASON_MAX_BYTES];
    status = shoal_fail(err, SHOAL_INVALID, "the job failed: %s",
                        shoal_remote_plain(job, "reason", reason, sizeof reason));
  }
  cJSON_Delete(job);
  *exit_status = SHOAL_EXIT_OK;
  return status;
}
