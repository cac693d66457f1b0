/* report.h: what a person, or a program that reads JSON, sees of a training.
 *
 * A report is told what happens and decides what to show: a progress line on a terminal,
 * plain lines elsewhere, JSON lines on standard output with --json, what TensorBoard shows
 * in event files with --log-dir (train/event_log.h). With --json the text for people goes to standard error, and
 * only when that is a terminal.
 *
 * Ownership: a report is plain storage of the caller's; init, then release. What the plan
 * points at outlives it. Threads: one. */
#ifndef SHOAL_CLI_REPORT_H
#define SHOAL_CLI_REPORT_H

#include "cli/chart.h"
#include "cli/progress.h"
#include "nn/events.h"
#include "nn/trainer.h"
#include "train/eta.h"
#include "train/task.h"

typedef struct shoal_report_plan {
  const shoal_graph *graph;
  shoal_trainer *trainer;
  const shoal_task *task; /* graph and trainer are its; NULL: event files have curves alone */
  const char *model_name, *data_name, *out_path;
  bool is_text;
  uint64_t train_positions;                            /* of the source, padding included */
  uint64_t train_samples, valid_samples, test_samples; /* of a text, its tokens */
  uint32_t threads;
  const char *together; /* who else takes part: "2 workers, 1 parameter server, mode sync"; or NULL */
  bool runs_ahead;      /* others train on while this process evaluates and saves, and are waited for first */
  const char *where;    /* the machine, if the reader of the report sits at another; or NULL */
  const char *resumed_from;            /* or NULL */
  const char *held_out;                /* what an epoch is judged on: "valid", "test" or NULL */
  const shoal_source *held_out_source; /* the same, or NULL */
} shoal_report_plan;

/* How a training ended. */
typedef struct shoal_report_end {
  const shoal_result *train, *held_out, *test; /* NULL where there is none */
  uint64_t best_epoch;                         /* whose weights were kept by early stopping; 0: not in use */
  bool stopped_early;
  const char *data_options; /* " --data fashion-mnist", for the commands to try next */
  const char *prompt;       /* of a text: something that its model can continue; or NULL */
} shoal_report_end;

enum { SHOAL_REPORT_BUCKETS = 256 };

typedef struct shoal_report {
  bool json;
  FILE *text; /* for people; NULL: nothing */
  const shoal_report_plan *plan;
  shoal_events *events; /* or NULL */
  shoal_progress progress;
  double started, epoch_started, epoch_ended;
  double first_update_s; /* from the start of the program to the first new weights */
  double training_s;     /* without evaluating and saving, unless others trained on meanwhile */
  uint64_t rounds_done;  /* in this session */
  uint64_t step_seen;    /* where the last round led */
  uint64_t samples_done;
  double told_at; /* when the last round or epoch was told */
  shoal_eta eta;
  double clock_started; /* when training itself began, and what had been done by then */
  uint64_t clock_rounds, clock_samples;
  const char *unit; /* what is counted for people: samples, or tokens, several per sample */
  uint32_t unit_rows;
  double samples_per_s;
  double mark_time; /* where the rate was measured last */
  uint64_t mark_samples;
  shoal_chart_point *train_points, *held_points; /* one an epoch */
  size_t points_count, points_capacity;
  double bucket_sum[SHOAL_REPORT_BUCKETS];     /* losses of this epoch's rounds, for a run that */
  uint32_t bucket_count[SHOAL_REPORT_BUCKETS]; /* has only one epoch to draw */
  shoal_text line;
} shoal_report;

/* started: when the program did, by shoal_clock_seconds. */
shoal_status shoal_report_init(shoal_report *report, double started, bool json, bool quiet,
                               const char *log_dir, shoal_error *err);
void shoal_report_release(shoal_report *report);

void shoal_report_start(shoal_report *report, const shoal_report_plan *plan);
/* After every round; cheap. */
void shoal_report_round(shoal_report *report, const shoal_result *round);
void shoal_report_epoch(shoal_report *report, const shoal_result *train, const shoal_result *held_out);
/* A signal came and the state was saved. `resume` is the command that continues. */
void shoal_report_interrupted(shoal_report *report, const char *signal, const char *resume);
void shoal_report_end_of_run(shoal_report *report, const shoal_report_end *end);
/* Something happened in a cluster: a line for people, an event of JSON. Whom it is about, "worker 2" or
 * "ps 0" in the text, is told in fields as well. */
void shoal_report_event(shoal_report *report, const char *text);
void shoal_report_event_line(shoal_report *report, const char *text); /* the latter alone */
/* One line for people between the others. */
void shoal_report_note(shoal_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
