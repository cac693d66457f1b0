/* bench_scaling_print.c: the table of `shoal bench scaling`, for people and for programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "bench/bench_scaling.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/svg.h"

/* ---- what follows ---- */

static const shoal_scaling_row *row_of_one(const shoal_scaling *s, const char *mode) {
  for (size_t i = 0; i < s->rows_count; i++)
    if (s->rows[i].workers == 1 && strcmp(s->rows[i].mode, mode) == 0) return &s->rows[i];
  return NULL;
}

void shoal_scaling_derive(const shoal_scaling *s, shoal_scaling_row *row) {
  const shoal_scaling_row *one = row_of_one(s, row->mode);
  row->speedup = row->alone = row->efficiency = row->simulated_speedup = row->difference = NAN;
  if (row->ran) row->alone = row->speed.batches_per_s * s->batch_s;
  if (row->ran && one != NULL && one->ran) row->speedup = row->speed.batches_per_s / one->speed.batches_per_s;
  row->efficiency = row->speedup / row->workers;
  if (one != NULL) row->simulated_speedup = row->simulated_per_s / one->simulated_per_s;
  if (row->ran) row->difference = row->simulated_per_s / row->speed.batches_per_s - 1;
}

static const char *how(const shoal_scaling_row *row) {
  return !row->ran ? "simulated" : row->waited ? "waited" : "computed";
}

static shoal_human links_of(const shoal_scaling *s) {
  shoal_human out;
  snprintf(out.text, sizeof out.text, s->rate_mbit > 0 ? "%g Mbit/s" : "not shaped", s->rate_mbit);
  return out;
}

/* ---- for people ---- */

static shoal_human cell(const char *format, double value) {
  shoal_human out = {.text = "-"};
  if (!isnan(value)) snprintf(out.text, sizeof out.text, format, value);
  return out;
}

void shoal_scaling_print_head(const shoal_scaling *s) {
  printf("%s, batch %u a worker, %s, %s, %u parameter server%s, links %s\n", s->net, s->batch, s->transport,
         s->wire, s->ps, s->ps == 1 ? "" : "s", links_of(s).text);
  printf("one thread takes %.2f ms a batch: %.2f batches/s without a cluster\n", 1000 * s->batch_s,
         1 / s->batch_s);
  if (s->simulates)
    printf(
        "simulated: %s to and %s from a parameter server a unit, whose work takes %.2f ms; latency %g ms\n",
        shoal_human_bytes(s->push_bytes).text, shoal_human_bytes(s->pull_bytes).text,
        1000 * s->contribution_s, 1000 * s->latency_s);
  shoal_terminal terminal = shoal_terminal_of(stdout);
  const char *bold = terminal.colour ? "\x1b[1m" : "", *off = terminal.colour ? "\x1b[0m" : "";
  printf("\n%s%-10s %7s  %-9s %11s %8s %8s %10s %10s", bold, "mode", "workers", "how", "batches/s", "speedup",
         "alone", "efficiency", "bytes/s");
  if (s->simulates) printf(" %11s %8s %11s", "simulated/s", "speedup", "difference");
  printf("%s\n", off);
  fflush(stdout);
}

void shoal_scaling_print_row(const shoal_scaling *s, const shoal_scaling_row *row) {
  bool ran = row->ran;
  printf("%-10s %7u  %-9s %11s %8s %8s %10s %10s", row->mode, row->workers, how(row),
         cell("%.2f", ran ? row->speed.batches_per_s : NAN).text, cell("%.2f", row->speedup).text,
         cell("%.2f", row->alone).text, cell("%.0f%%", 100 * row->efficiency).text,
         ran ? shoal_human_bytes(row->speed.bytes_per_s).text : "-");
  if (s->simulates)
    printf(" %11s %8s %11s", cell("%.2f", row->simulated_per_s).text,
           cell("%.2f", row->simulated_speedup).text, cell("%+.1f%%", 100 * row->difference).text);
  printf("\n");
  fflush(stdout);
}

/* ---- for programs ---- */

void shoal_scaling_print_json(const shoal_scaling *s, const shoal_scaling_row *row) {
  shoal_text line;
  shoal_json json;
  shoal_text_init(&line);
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "net", s->net);
  shoal_json_int(&json, "batch", s->batch);
  shoal_json_text(&json, "mode", row->mode);
  shoal_json_text(&json, "transport", s->transport);
  shoal_json_text(&json, "wire", s->wire);
  shoal_json_int(&json, "ps", s->ps);
  shoal_json_int(&json, "workers", row->workers);
  shoal_json_text(&json, "how", how(row));
  shoal_json_text(&json, "links", links_of(s).text);
  shoal_json_real(&json, "batch_seconds", s->batch_s);
  shoal_json_real(&json, "batches_per_s", row->ran ? row->speed.batches_per_s : NAN);
  shoal_json_real(&json, "speedup", row->speedup);
  shoal_json_real(&json, "speedup_alone", row->alone);
  shoal_json_real(&json, "efficiency", row->efficiency);
  shoal_json_real(&json, "bytes_per_s", row->ran ? row->speed.bytes_per_s : NAN);
  shoal_json_real(&json, "simulated_batches_per_s", row->simulated_per_s);
  shoal_json_real(&json, "simulated_speedup", row->simulated_speedup);
  shoal_json_real(&json, "difference", row->difference);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static shoal_status write_file(const char *path, shoal_text *text, shoal_error *err) {
  shoal_status status = text->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                     : shoal_file_write(path, text->bytes, text->length, err);
  shoal_text_release(text);
  return status;
}

/* An empty cell for what is not known. */
static void add_cell(shoal_text *out, double value) {
  if (isnan(value))
    shoal_text_addf(out, ",");
  else
    shoal_text_addf(out, ",%.6g", value);
}

shoal_status shoal_scaling_write_csv(const shoal_scaling *s, const char *path, shoal_error *err) {
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv,
                  "net,batch,mode,transport,wire,ps,workers,how,links,batches_per_s,speedup,speedup_alone,"
                  "efficiency,bytes_per_s,simulated_batches_per_s,simulated_speedup,difference\n");
  for (size_t i = 0; i < s->rows_count; i++) {
    const shoal_scaling_row *row = &s->rows[i];
    const double cells[] = {row->ran ? row->speed.batches_per_s : NAN,
                            row->speedup,
                            row->alone,
                            row->efficiency,
                            row->ran ? row->speed.bytes_per_s : NAN,
                            row->simulated_per_s,
                            row->simulated_speedup,
                            row->difference};
    shoal_text_addf(&csv, "%s,%u,%s,%s,%s,%u,%u,%s,%s", s->net, s->batch, row->mode, s->transport, s->wire,
                    s->ps, row->workers, how(row), links_of(s).text);
    for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) add_cell(&csv, cells[c]);
    shoal_text_addf(&csv, "\n");
  }
  return write_file(path, &csv, err);
}

/* ---- the picture ---- */

/* A line for every mode, and one for every mode in the simulator. Rows of a mode stand together. */
typedef struct curves {
  shoal_chart_point *points; /* two a row */
  shoal_series *series;
  char (*names)[64];
  size_t series_count, points_count;
} curves;

static void add_curve(curves *c, const shoal_scaling *s, size_t first, size_t count, bool simulated) {
  shoal_series *series = &c->series[c->series_count];
  *series = (shoal_series){.name = c->names[c->series_count], .points = c->points + c->points_count};
  snprintf(c->names[c->series_count], sizeof *c->names, "%s%s", s->rows[first].mode,
           simulated ? ", simulated" : "");
  for (size_t i = first; i < first + count; i++) {
    double speedup = simulated ? s->rows[i].simulated_speedup : s->rows[i].speedup;
    if (isnan(speedup)) continue;
    c->points[c->points_count++] = (shoal_chart_point){s->rows[i].workers, speedup};
    series->count++;
  }
  c->series_count += series->count > 0;
}

shoal_status shoal_scaling_write_svg(const shoal_scaling *s, const char *path, shoal_error *err) {
  curves c = {.points = calloc(2 * s->rows_count, sizeof *c.points),
              .series = calloc(2 * s->rows_count, sizeof *c.series),
              .names = calloc(2 * s->rows_count, sizeof *c.names)};
  shoal_text svg;
  shoal_text_init(&svg);
  svg.failed = c.points == NULL || c.series == NULL || c.names == NULL;
  for (size_t first = 0, count; first < s->rows_count && !svg.failed; first += count) {
    count = 1;
    while (first + count < s->rows_count && strcmp(s->rows[first + count].mode, s->rows[first].mode) == 0)
      count++;
    add_curve(&c, s, first, count, false);
    add_curve(&c, s, first, count, true);
  }
  char title[160];
  snprintf(title, sizeof title, "%s, batch %u, %s, %s, links %s", s->net, s->batch, s->transport, s->wire,
           links_of(s).text);
  const shoal_svg plot = {.title = title,
                          .x_name = "workers",
                          .y_name = "speedup",
                          .series = c.series,
                          .series_count = c.series_count,
                          .ideal = true};
  if (!svg.failed) shoal_svg_draw(&plot, &svg);
  free(c.points);
  free(c.series);
  free(c.names);
  return write_file(path, &svg, err);
}
