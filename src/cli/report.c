/* report.c: see report.h. The parts stand in the order of a run: start, rounds, epochs, end. */
#include "cli/report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "train/event_log.h"
#include "train/metric.h"

static const double WAITING_S = 2; /* and so many times as long as a round takes: */
static const double WAITING_ROUNDS = 10;

/* ---- life --------------------------------------------------------------------------- */

shoal_status shoal_report_init(shoal_report *report, double started, bool json, bool quiet,
                               const char *log_dir, shoal_error *err) {
  *report = (shoal_report){.json = json, .started = started};
  shoal_text_init(&report->line);
  if (!quiet && !json)
    report->text = stdout;
  else if (!quiet && shoal_terminal_of(stderr).is_terminal)
    report->text = stderr;
  shoal_progress_init(&report->progress, report->text, report->started);
  return log_dir ? shoal_events_create(&report->events, log_dir, err) : SHOAL_OK;
}

void shoal_report_release(shoal_report *report) {
  shoal_progress_clear(&report->progress);
  if (report->events) shoal_events_destroy(report->events);
  free(report->train_points);
  free(report->held_points);
  shoal_text_release(&report->line);
}

static const shoal_train_state *state_of(const shoal_report *report) {
  return shoal_trainer_state(report->plan->trainer);
}

void shoal_report_note(shoal_report *report, const char *format, ...) {
  if (!report->text) return;
  shoal_progress_clear(&report->progress);
  va_list args;
  va_start(args, format);
  vfprintf(report->text, format, args);
  va_end(args);
  fputc('\n', report->text);
  fflush(report->text);
}

/* Opens a JSON line with its event; close_line prints it. */
static void open_line(shoal_report *report, shoal_json *json, const char *event) {
  shoal_text_clear(&report->line);
  shoal_json_init(json, &report->line);
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "event", event);
}

static void close_line(shoal_report *report, shoal_json *json) {
  shoal_json_close(json, '}');
  shoal_cli_print_line(&report->line);
}

/* The number that follows a word in a text, or false. */
static bool number_after(const char *text, const char *word, int64_t *out) {
  const char *at = strstr(text, word);
  if (at == NULL) return false;
  at += strlen(word);
  size_t digits = strspn(at, "0123456789");
  uint64_t number;
  if (!shoal_read_u64(at, digits, &number) || number > INT32_MAX) return false;
  *out = (int64_t)number;
  return true;
}

static void add_subject(shoal_json *json, const char *text) {
  static const struct {
    const char *word, *role;
  } names[] = {{"parameter server ", "ps"}, {"ps ", "ps"}, {"worker ", "worker"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    int64_t index;
    if (!number_after(text, names[i].word, &index)) continue;
    shoal_json_text(json, "role", names[i].role);
    shoal_json_int(json, "index", index);
    return;
  }
}

void shoal_report_event(shoal_report *report, const char *text) {
  shoal_report_note(report, "%s", text);
  if (report->json) shoal_report_event_line(report, text);
}

void shoal_report_event_line(shoal_report *report, const char *text) {
  shoal_json json;
  open_line(report, &json, "note");
  shoal_json_text(&json, "text", text);
  add_subject(&json, text);
  close_line(report, &json);
}

/* ---- the start ---------------------------------------------------------------------- */

/* What the rate would be without a warm-up. */
static float whole_rate(const shoal_report_plan *plan, const shoal_train_state *state) {
  shoal_recipe recipe = plan->graph->model->recipe;
  recipe.warmup_epochs = 0;
  return shoal_recipe_rate_at(&recipe, state->epoch, state->round, shoal_trainer_rounds(plan->trainer));
}

static void start_json(shoal_report *report) {
  const shoal_report_plan *plan = report->plan;
  const shoal_recipe *recipe = &plan->graph->model->recipe;
  const shoal_train_state *state = state_of(report);
  shoal_json json;
  open_line(report, &json, "start");
  shoal_json_text(&json, "model", plan->model_name);
  shoal_json_text(&json, "data", plan->data_name);
  shoal_json_text(&json, "out", plan->out_path);
  shoal_json_int(&json, "weights", (int64_t)plan->graph->trainable);
  shoal_json_int(&json, "train_samples", (int64_t)plan->train_samples);
  shoal_json_int(&json, "valid_samples", (int64_t)plan->valid_samples);
  shoal_json_int(&json, "test_samples", (int64_t)plan->test_samples);
  shoal_json_int(&json, "epochs", recipe->epochs);
  shoal_json_int(&json, "batch", recipe->batch);
  shoal_json_int(&json, "seed", (int64_t)recipe->seed);
  shoal_json_text(&json, "optimizer", shoal_optimizer_words[recipe->optimizer]);
  shoal_json_real(&json, "rate", shoal_human_float(whole_rate(plan, state)));
  shoal_json_int(&json, "threads", plan->threads);
  shoal_json_int(&json, "shards", shoal_trainer_shards(plan->trainer));
  shoal_json_text(&json, "kernels", shoal_kernels_get()->name);
  shoal_json_int(&json, "memory_bytes", (int64_t)shoal_engine_memory(shoal_trainer_engine(plan->trainer)));
  shoal_json_text(&json, "together", plan->together != NULL ? plan->together : "alone");
  shoal_json_bool(&json, "resumed", plan->resumed_from != NULL);
  shoal_json_int(&json, "epoch", (int64_t)state->epoch);
  shoal_json_int(&json, "step", (int64_t)state->step);
  close_line(report, &json);
}

static void start_text(shoal_report *report) {
  const shoal_report_plan *plan = report->plan;
  const shoal_recipe *recipe = &plan->graph->model->recipe;
  const shoal_train_state *state = state_of(report);
  shoal_text *line = &report->line;
  shoal_text_clear(line);
  shoal_text_addf(line, "%s: %s weights\n", plan->model_name, shoal_human_count(plan->graph->trainable).text);
  shoal_text_addf(line, "%s: %s training", plan->data_name, shoal_human_count(plan->train_samples).text);
  if (plan->valid_samples)
    shoal_text_addf(line, ", %s validation", shoal_human_count(plan->valid_samples).text);
  if (plan->test_samples) shoal_text_addf(line, ", %s test", shoal_human_count(plan->test_samples).text);
  shoal_text_addf(line, " %s\n%s at rate %g", plan->is_text ? "tokens" : "samples",
                  shoal_optimizer_words[recipe->optimizer], (double)whole_rate(plan, state));
  if ((float)state->epoch < recipe->warmup_epochs)
    shoal_text_addf(line, " after a warm-up of %g epoch%s", (double)recipe->warmup_epochs,
                    recipe->warmup_epochs == 1 ? "" : "s");
  shoal_text_addf(line, ", batch %u, %u thread%s, %s kernels, %s\n", recipe->batch, plan->threads,
                  plan->threads == 1 ? "" : "s", shoal_kernels_get()->name,
                  shoal_human_bytes((double)shoal_engine_memory(shoal_trainer_engine(plan->trainer))).text);
  if (plan->together != NULL) shoal_text_addf(line, "%s\n", plan->together);
  if (plan->resumed_from && state->epoch >= recipe->epochs)
    shoal_text_addf(line, "%s epochs are done, nothing is left to do; to continue, add --epochs %llu\n",
                    shoal_human_count(state->epoch).text, (unsigned long long)state->epoch * 2);
  else if (plan->resumed_from)
    shoal_text_addf(line, "continuing from %s at epoch %s, round %s\n", plan->resumed_from,
                    shoal_human_count(state->epoch + 1).text, shoal_human_count(state->round + 1).text);
  if (!line->failed) shoal_report_note(report, "%s", line->bytes);
}

/* From here on time counts as training. */
static void start_clock(shoal_report *report, double now) {
  report->clock_started = report->epoch_started = report->mark_time = now;
  report->clock_rounds = report->rounds_done;
  report->clock_samples = report->mark_samples = report->samples_done;
}

void shoal_report_start(shoal_report *report, const shoal_report_plan *plan) {
  report->plan = plan;
  report->unit = shoal_metric_unit(plan->graph, &report->unit_rows);
  if (report->json) start_json(report);
  if (report->text) start_text(report);
  if (report->events && plan->task) shoal_event_log_start(report->events, plan->task, plan->held_out_source);
  report->samples_per_s = NAN;
  report->step_seen = state_of(report)->step;
  shoal_eta_start(&report->eta, plan->valid_samples ? plan->valid_samples : plan->test_samples,
                  plan->graph->model->recipe.batch);
  start_clock(report, shoal_clock_seconds());
}

/* ---- rounds ------------------------------------------------------------------------- */

static void measure_rate(shoal_report *report, double now) {
  double elapsed = now - report->mark_time;
  if (elapsed <= 0) return;
  double fresh = (double)(report->samples_done - report->mark_samples) / elapsed;
  report->samples_per_s = isnan(report->samples_per_s) ? fresh : 0.8 * report->samples_per_s + 0.2 * fresh;
  report->mark_time = now;
  report->mark_samples = report->samples_done;
}

static void show_progress(shoal_report *report, double now) {
  const shoal_graph *graph = report->plan->graph;
  const shoal_train_state *state = state_of(report);
  uint64_t rounds = shoal_trainer_rounds(report->plan->trainer);
  uint64_t epochs = graph->model->recipe.epochs;
  shoal_result so_far = shoal_trainer_epoch_result(report->plan->trainer);
  uint64_t all = epochs * rounds, left = all > state->step ? all - state->step : 0;
  shoal_progress_view view = {
      .epoch = state->epoch + 1,
      .epochs = epochs,
      .share = (double)state->round / (double)rounds,
      .per_s = report->samples_per_s * report->unit_rows,
      .unit = report->unit,
      .loss = so_far.loss,
      .metric_name = shoal_metric_name(graph),
      .metric = shoal_metric_value(graph, &so_far),
      .eta_s = shoal_eta_left(&report->eta, left, rounds, now),
  };
  shoal_progress_show(&report->progress, &view, now);
}

/* At most about a thousand points an epoch: a small network does that many rounds in a blink. */
static void log_round(shoal_report *report, const shoal_result *round) {
  const shoal_train_state *state = state_of(report);
  uint64_t every = shoal_trainer_rounds(report->plan->trainer) / 1000 + 1;
  if (state->step % every != 0) return;
  shoal_events_scalar(report->events, "loss/round", state->step, round->loss);
  shoal_events_scalar(report->events, "rate", state->step, shoal_trainer_rate(report->plan->trainer));
}

/* Samples from the start of the training to a round; the last one of an epoch has fewer. */
static uint64_t samples_until(const shoal_report *report, uint64_t step) {
  uint64_t rounds = shoal_trainer_rounds(report->plan->trainer);
  return step / rounds * report->plan->train_positions +
         step % rounds * report->plan->graph->model->recipe.batch;
}

/* A cluster may report several batches as one round, and go back to earlier ones after a crash. */
static void count_round(shoal_report *report) {
  uint64_t step = state_of(report)->step, from = report->step_seen < step ? report->step_seen : step - 1;
  report->rounds_done += step - from;
  report->samples_done += samples_until(report, step) - samples_until(report, from);
  report->step_seen = step;
}

/* A round that took much longer than the others has waited for somebody: that is no time of training. */
static void leave_out_waiting(shoal_report *report, double now) {
  double waited = now - report->told_at;
  uint64_t rounds = report->rounds_done - report->clock_rounds;
  bool unlike_others =
      rounds > 0 && waited > WAITING_ROUNDS * (report->told_at - report->clock_started) / (double)rounds;
  if (waited < WAITING_S || !unlike_others) return;
  report->clock_started += waited;
  report->epoch_started += waited;
  report->mark_time += waited;
}

void shoal_report_round(shoal_report *report, const shoal_result *round) {
  const shoal_train_state *state = state_of(report);
  uint64_t rounds = shoal_trainer_rounds(report->plan->trainer);
  bool epoch_is_over = state->round == 0;
  uint64_t place = epoch_is_over ? rounds - 1 : state->round - 1;
  bool first = report->rounds_done == 0;
  double now = shoal_clock_seconds();
  if (!first && report->plan->runs_ahead) leave_out_waiting(report, now);
  report->told_at = now;
  uint64_t done = report->rounds_done;
  count_round(report);
  shoal_eta_round(&report->eta, report->rounds_done - done, epoch_is_over, now);
  if (report->events) log_round(report, round);

  size_t bucket = (size_t)(place * SHOAL_REPORT_BUCKETS / rounds);
  report->bucket_sum[bucket] += round->loss;
  report->bucket_count[bucket]++;

  if (first) report->first_update_s = now - report->started;
  if (first && report->plan->runs_ahead) start_clock(report, now); /* what was before may have been waiting */
  if (epoch_is_over) {
    measure_rate(report, now);
    report->training_s += now - report->epoch_started;
    if (report->plan->runs_ahead) report->epoch_ended = now;
  } else if (shoal_progress_due(&report->progress, now)) {
    measure_rate(report, now);
    show_progress(report, now);
  }
}

/* ---- epochs ------------------------------------------------------------------------- */

static void keep_points(shoal_report *report, double epoch, double train, double held_out) {
  if (report->points_count == report->points_capacity) {
    size_t capacity = report->points_capacity ? report->points_capacity * 2 : 64;
    shoal_chart_point *train_points = realloc(report->train_points, capacity * sizeof *train_points);
    if (train_points) report->train_points = train_points;
    shoal_chart_point *held_points = realloc(report->held_points, capacity * sizeof *held_points);
    if (held_points) report->held_points = held_points;
    if (!train_points || !held_points) return; /* the chart at the end does without */
    report->points_capacity = capacity;
  }
  report->train_points[report->points_count] = (shoal_chart_point){epoch, train};
  report->held_points[report->points_count] = (shoal_chart_point){epoch, held_out};
  report->points_count++;
}

static void epoch_json(shoal_report *report, const shoal_result *train, const shoal_result *held_out,
                       double seconds) {
  const shoal_report_plan *plan = report->plan;
  const shoal_train_state *state = state_of(report);
  shoal_json json;
  open_line(report, &json, "epoch");
  shoal_json_int(&json, "epoch", (int64_t)state->epoch);
  shoal_json_int(&json, "step", (int64_t)state->step);
  shoal_metric_json(&json, "", plan->graph, train);
  if (held_out) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s_", plan->held_out);
    shoal_metric_json(&json, prefix, plan->graph, held_out);
  }
  shoal_json_real(&json, "rate", shoal_human_float(shoal_trainer_rate(plan->trainer)));
  shoal_json_real(&json, "samples_per_s", report->samples_per_s);
  shoal_json_real(&json, "seconds", seconds);
  close_line(report, &json);
}

/* On a terminal a row of a table, whose heading stands above the first; elsewhere a line that
 * explains itself, because others come between. A narrow terminal gets the losses only. */
enum { TABLE_WIDTH = 64 };

static void add_pair(shoal_report *report, const char *loss, const char *metric) {
  shoal_text_addf(&report->line, "  %10s", loss);
  if (shoal_terminal_of(report->text).width > TABLE_WIDTH) shoal_text_addf(&report->line, "  %10s", metric);
}

static void epoch_heading(shoal_report *report) {
  const char *metric = shoal_metric_name(report->plan->graph);
  bool colour = shoal_terminal_of(report->text).colour;
  shoal_text_addf(&report->line, "%s%7s", colour ? "\x1b[1m" : "", "epoch");
  add_pair(report, "train loss", metric);
  if (report->plan->held_out) {
    char name[32];
    snprintf(name, sizeof name, "%s loss", report->plan->held_out);
    add_pair(report, name, metric);
  }
  shoal_text_addf(&report->line, "  %7s%s\n", "time", colour ? "\x1b[0m" : "");
}

static void epoch_row(shoal_report *report, const shoal_result *train, const shoal_result *held_out,
                      double seconds) {
  const shoal_graph *graph = report->plan->graph;
  char epoch[96];
  snprintf(epoch, sizeof epoch, "%s/%s", shoal_human_count(state_of(report)->epoch).text,
           shoal_human_count(graph->model->recipe.epochs).text);
  shoal_text_addf(&report->line, "%7s", epoch);
  add_pair(report, shoal_human_number(train->loss).text,
           shoal_human_number(shoal_metric_value(graph, train)).text);
  if (held_out)
    add_pair(report, shoal_human_number(held_out->loss).text,
             shoal_human_number(shoal_metric_value(graph, held_out)).text);
  shoal_text_addf(&report->line, "  %7s", shoal_human_seconds(seconds).text);
}

static void epoch_line(shoal_report *report, const shoal_result *train, const shoal_result *held_out,
                       double seconds) {
  const shoal_report_plan *plan = report->plan;
  shoal_text *line = &report->line;
  uint32_t epochs = plan->graph->model->recipe.epochs;
  int digits = (int)strlen(shoal_human_count(epochs).text);
  shoal_text_addf(line, "epoch %*s/%s  train ", digits, shoal_human_count(state_of(report)->epoch).text,
                  shoal_human_count(epochs).text);
  shoal_metric_text(line, plan->graph, train);
  if (held_out) {
    shoal_text_addf(line, "  %s ", plan->held_out);
    shoal_metric_text(line, plan->graph, held_out);
  }
  shoal_text_addf(line, "  %s", shoal_human_seconds(seconds).text);
}

static void epoch_text(shoal_report *report, const shoal_result *train, const shoal_result *held_out,
                       double seconds) {
  shoal_text_clear(&report->line);
  if (!report->progress.is_terminal) {
    epoch_line(report, train, held_out, seconds);
  } else {
    if (report->points_count <= 1) epoch_heading(report);
    epoch_row(report, train, held_out, seconds);
  }
  if (!report->line.failed) shoal_report_note(report, "%s", report->line.bytes);
}

static void log_epoch(shoal_report *report, const char *part, const shoal_result *result) {
  const shoal_graph *graph = report->plan->graph;
  uint64_t step = state_of(report)->step;
  char tag[64];
  snprintf(tag, sizeof tag, "loss/%s", part);
  shoal_events_scalar(report->events, tag, step, result->loss);
  snprintf(tag, sizeof tag, "%s/%s", shoal_metric_name(graph), part);
  shoal_events_scalar(report->events, tag, step, shoal_metric_value(graph, result));
}

/* A metric that cannot be written is no reason to stop a training. */
static void flush_events(shoal_report *report) {
  shoal_error err;
  if (shoal_events_flush(report->events, &err) == SHOAL_OK) return;
  shoal_progress_clear(&report->progress);
  shoal_cli_warn("train", "%s; no more metrics are written, but the training continues", err.text);
  shoal_events_destroy(report->events);
  report->events = NULL;
}

void shoal_report_epoch(shoal_report *report, const shoal_result *train, const shoal_result *held_out) {
  double now = shoal_clock_seconds();
  double seconds = now - report->epoch_started;
  keep_points(report, (double)state_of(report)->epoch, train->loss, held_out ? held_out->loss : NAN);
  if (report->events) {
    log_epoch(report, "train", train);
    if (held_out) log_epoch(report, report->plan->held_out, held_out);
    const shoal_report_plan *plan = report->plan;
    if (plan->task) shoal_event_log_epoch(report->events, plan->task, plan->held_out_source);
    flush_events(report);
  }
  if (report->json) epoch_json(report, train, held_out, seconds);
  if (report->text) epoch_text(report, train, held_out, seconds);

  /* What was spent on evaluating and saving does not count as training, unless others trained on. */
  report->epoch_started = report->plan->runs_ahead ? report->epoch_ended : now;
  if (!report->plan->runs_ahead) {
    report->mark_time = now;
    report->mark_samples = report->samples_done;
  }
  report->told_at = now;
  bool is_last = state_of(report)->epoch >= report->plan->graph->model->recipe.epochs;
  if (!is_last) {
    memset(report->bucket_sum, 0, sizeof report->bucket_sum);
    memset(report->bucket_count, 0, sizeof report->bucket_count);
  }
}

/* ---- the end ------------------------------------------------------------------------ */

/* The loss by epochs, or by rounds where there was only one epoch. */
static void draw_chart(shoal_report *report) {
  shoal_terminal terminal = shoal_terminal_of(report->text);
  shoal_chart chart = {.width = terminal.width < 100 ? terminal.width - 1 : 99,
                       .height = 12,
                       .utf8 = terminal.utf8,
                       .colour = terminal.colour};
  shoal_chart_point rounds[SHOAL_REPORT_BUCKETS];
  shoal_chart_point held;
  size_t held_count = report->plan->held_out ? report->points_count : 0;
  if (report->points_count >= 2) {
    chart.x_name = "epoch";
    chart.line = (shoal_series){"train loss", report->train_points, report->points_count};
    chart.marks = (shoal_series){"", report->held_points, held_count};
  } else {
    uint64_t rounds_count = shoal_trainer_rounds(report->plan->trainer);
    size_t count = 0;
    for (size_t i = 0; i < SHOAL_REPORT_BUCKETS; i++) {
      if (report->bucket_count[i])
        rounds[count++] = (shoal_chart_point){1 + (double)(i * rounds_count / SHOAL_REPORT_BUCKETS),
                                              report->bucket_sum[i] / report->bucket_count[i]};
    }
    chart.x_name = "round";
    chart.line = (shoal_series){"train loss", rounds, count};
    if (held_count > 0) {
      held = (shoal_chart_point){(double)rounds_count, report->held_points[0].y};
      chart.marks = (shoal_series){"", &held, 1};
    }
  }
  char marks_name[32];
  snprintf(marks_name, sizeof marks_name, "%s loss", report->plan->held_out ? report->plan->held_out : "");
  chart.marks.name = marks_name;

  shoal_text *out = &report->line;
  shoal_text_clear(out);
  shoal_chart_draw(&chart, out);
  if (out->length > 0 && !out->failed) fprintf(report->text, "\n%s", out->bytes);
}

static void weights_sha256(const shoal_report *report, char sha256[SHOAL_SHA256_HEX]) {
  shoal_graph_weights_sha256(report->plan->graph, state_of(report)->weights, sha256);
}

/* What every last line has. */
static void add_position(shoal_report *report, shoal_json *json) {
  const shoal_train_state *state = state_of(report);
  char sha256[SHOAL_SHA256_HEX];
  weights_sha256(report, sha256);
  shoal_json_int(json, "epoch", (int64_t)state->epoch);
  shoal_json_int(json, "round", (int64_t)state->round);
  shoal_json_int(json, "step", (int64_t)state->step);
  shoal_json_text(json, "weights_sha256", sha256);
  shoal_json_text(json, "out", report->plan->out_path);
  shoal_json_real(json, "first_update_s", report->rounds_done > 0 ? report->first_update_s : NAN);
  shoal_json_real(json, "seconds", shoal_clock_seconds() - report->started);
}

void shoal_report_interrupted(shoal_report *report, const char *signal, const char *resume) {
  const shoal_train_state *state = state_of(report);
  shoal_result so_far = shoal_trainer_epoch_result(report->plan->trainer);
  if (report->json) {
    shoal_json json;
    open_line(report, &json, "interrupted");
    shoal_json_text(&json, "signal", signal);
    shoal_metric_json(&json, "", report->plan->graph, &so_far);
    add_position(report, &json);
    shoal_json_text(&json, "resume", resume);
    close_line(report, &json);
  }
  shoal_report_note(report,
                    "\nStopped by %s after %s of %s rounds of epoch %s; saved in %s\n\nTo continue:\n  %s",
                    signal, shoal_human_count(state->round).text,
                    shoal_human_count(shoal_trainer_rounds(report->plan->trainer)).text,
                    shoal_human_count(state->epoch + 1).text, report->plan->out_path, resume);
}

static void end_json(shoal_report *report, const shoal_report_end *end) {
  const shoal_report_plan *plan = report->plan;
  shoal_json json;
  open_line(report, &json, "end");
  shoal_metric_json(&json, "", plan->graph, end->train);
  if (end->held_out && end->held_out != end->test)
    shoal_metric_json(&json, "valid_", plan->graph, end->held_out);
  if (end->test) shoal_metric_json(&json, "test_", plan->graph, end->test);
  if (end->best_epoch) {
    shoal_json_int(&json, "best_epoch", (int64_t)end->best_epoch);
    shoal_json_bool(&json, "stopped_early", end->stopped_early);
  }
  add_position(report, &json);
  close_line(report, &json);
}

/* Commands to try next, ready to be copied. */
static void suggest(shoal_report *report, const char *data_options, const char *prompt) {
  const char *path = report->plan->out_path;
  const char *dot = strrchr(path, '.');
  size_t stem = dot && strcmp(dot, ".safetensors") == 0 ? (size_t)(dot - path) : strlen(path);
  shoal_text program, name, model, onnx, first_words;
  shoal_text_init(&program);
  shoal_text_init(&name);
  shoal_text_init(&model);
  shoal_text_init(&onnx);
  shoal_text_init(&first_words);
  shoal_text_addf(&name, "%.*s.onnx", (int)stem, path);
  shoal_human_quote(&program, program_invocation_name);
  shoal_human_quote(&model, path);
  if (!name.failed) shoal_human_quote(&onnx, name.bytes);
  if (prompt) shoal_human_quote(&first_words, prompt);
  if (!program.failed && !name.failed && !model.failed && !onnx.failed && !first_words.failed) {
    const char *shoal = program.bytes;
    const char *where = report->plan->where;
    fprintf(report->text, "Next%s%s:\n  %s eval %s%s\n", where ? ", on " : "", where ? where : "", shoal,
            model.bytes, data_options);
    if (prompt)
      fprintf(report->text, "  %s predict %s --prompt %s --length 200\n", shoal, model.bytes,
              first_words.bytes);
    else if (!report->plan->is_text)
      fprintf(report->text, "  %s predict %s%s --count 5\n", shoal, model.bytes, data_options);
    fprintf(report->text, "  %s export %s --onnx %s\n", shoal, model.bytes, onnx.bytes);
  }
  shoal_text_release(&program);
  shoal_text_release(&name);
  shoal_text_release(&model);
  shoal_text_release(&onnx);
  shoal_text_release(&first_words);
}

static void end_text(shoal_report *report, const shoal_report_end *end) {
  const shoal_report_plan *plan = report->plan;
  FILE *text = report->text;
  draw_chart(report);

  const shoal_result *result = end->test ? end->test : end->held_out ? end->held_out : end->train;
  const char *part = end->test ? "test" : end->held_out ? "valid" : "train";
  shoal_text *line = &report->line;
  shoal_text_clear(line);
  shoal_metric_text(line, plan->graph, result);
  char sha256[SHOAL_SHA256_HEX];
  weights_sha256(report, sha256);
  double seconds = shoal_clock_seconds() - report->started;
  fprintf(text, "\n");
  if (end->best_epoch)
    fprintf(
        text, "%s the weights of epoch %s are kept, which had the lowest valid loss\n",
        end->stopped_early ? "stopped early:" : "early stopping:", shoal_human_count(end->best_epoch).text);
  fprintf(text, "%-7s %s\n", part, line->failed ? "" : line->bytes);
  fprintf(text, "%-7s %s\n", "model", plan->out_path);
  fprintf(text, "%-7s %s\n", "sha256", sha256);
  fprintf(text, "%-7s %s", "time", shoal_human_seconds(seconds).text);
  double done = (double)(report->samples_done - report->clock_samples) * report->unit_rows;
  if (report->training_s > 0 && done > 0)
    fprintf(text, ", %s %s/s in training", shoal_human_count((uint64_t)(done / report->training_s)).text,
            report->unit);

  fprintf(text, "\n\n");
  suggest(report, end->data_options, end->prompt);
  fflush(text);
}

void shoal_report_end_of_run(shoal_report *report, const shoal_report_end *end) {
  shoal_progress_clear(&report->progress);
  if (report->events && end->test) {
    log_epoch(report, "test", end->test);
    flush_events(report);
  }
  if (report->text) end_text(report, end);
  if (report->json) end_json(report, end);
}
