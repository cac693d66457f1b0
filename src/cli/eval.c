/* eval.c: shoal eval: how good a trained model is on a part of a data set. */
#include <stdio.h>

#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/classes.h"
#include "cli/cli.h"
#include "cli/loaded.h"
#include "cli/tables.h"
#include "search/predictor.h"
#include "train/class_eval.h"
#include "train/metric.h"

typedef struct eval_options {
  const char *model;
  shoal_loaded_data data;
  uint64_t batch, threads; /* batch 0: as in training */
  bool json;
} eval_options;

static bool parse(eval_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "data",
       .value = "SET",
       .text = &o->data.data,
       .help = "what to evaluate on: a name from 'shoal data list', a folder (also of PNG or JPEG files, a "
               "subfolder for each class), FILE.csv, text:FILE or "
               "chars:FILE; for a model of 'shoal search' FILE.csv with the answers in it"},
      {.name = "target",
       .value = "COLUMN",
       .text = &o->data.target,
       .help = "CSV: the column with the answers; by default the one that training used"},
      {.name = "split",
       .value = "PART",
       .text = &o->data.split,
       .choices = shoal_split_names,
       .help = "train, valid or test; by default test, or valid where there is no test, or train"},
      {.name = "valid",
       .value = "SHARE",
       .real = &o->data.valid_share,
       .real_max = 0.9,
       .help = "the share that training held out for validation"},
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data.data_dir,
       .help = "where named sets are kept; ~/.local/share/shoal by default"},
      {.name = "batch",
       .value = "N",
       .whole = &o->batch,
       .whole_min = 1,
       .whole_max = SHOAL_BATCH_MAX,
       .help = "samples at once; by default as in training"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor"},
      {.name = "json", .flag = &o->json, .help = "one line of JSON"},
  };
  const shoal_usage usage = {
      .command = "eval",
      .synopses = (const char *[]){"MODEL.safetensors --data SET [OPTION...]",
                                   "MODEL.safetensors --data FILE.csv [--json]", NULL},
      .about =
          "Evaluates a trained model and prints its loss and its accuracy, perplexity or error; for a "
          "classifier also precision, recall and F1 of every class, the confusion matrix, and the samples "
          "with the worst answers, numbered as in 'shoal predict'. Scales, "
          "class names and vocabulary are those of the training. A model of 'shoal search' takes raw rows "
          "of a table: all its scores are printed, how many rows were scored, and why others were not.",
      .operand = "MODEL.safetensors",
      .operands_min = 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal eval lenet5.safetensors --data fashion-mnist\n"
                  "  shoal eval lenet5.safetensors --data fashion-mnist --split train --json\n"
                  "  shoal eval best.safetensors --data new-rows.csv\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  o->model = operands.at[0];
  return true;
}

static const char *file_of(const void *self, uint64_t sample) {
  const shoal_class_eval *e = self;
  return shoal_dataset_sample_file(e->dataset, e->source, sample);
}

static void show_file(const void *self, uint64_t sample, shoal_json *json) {
  const char *file = file_of(self, sample);
  if (file) shoal_json_text(json, "file", file);
}

static void print_json(const shoal_class_eval *e, shoal_split split, double seconds) {
  shoal_text line;
  shoal_json json;
  shoal_confusion_words words = e->words;
  words.show = show_file; /* a person who wants to see others has 'shoal predict' */
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_text(&json, "split", shoal_split_names[split]);
  shoal_metric_json(&json, "", e->graph, &e->result);
  shoal_json_int(&json, "samples", (int64_t)e->result.answers);
  shoal_json_real(&json, "seconds", seconds);
  if (e->has_classes) shoal_confusion_write(&e->confusion, &words, &json);
  shoal_cli_event_end(&json);
}

/* The first of those that are most wrong, as pictures, on a terminal that can show them. */
static void add_pictures(const shoal_class_eval *e, const shoal_terminal *terminal, shoal_text *out) {
  enum { PICTURES = 3, COLUMNS = 24, NEEDED = PICTURES * (COLUMNS + 2) };
  if (!terminal->is_terminal || !terminal->utf8 || terminal->width < NEEDED) return;
  shoal_sample_picture pictures[PICTURES];
  uint32_t count = 0, wanted = e->confusion.worst_count < PICTURES ? e->confusion.worst_count : PICTURES;
  while (count < wanted && shoal_sample_picture_of(&pictures[count], e->dataset, e->source,
                                                   e->confusion.worst[count].sample, 2 * COLUMNS))
    count++;
  if (count > 0) shoal_text_addf(out, "\n");
  shoal_classes_pictures(out, pictures, count, COLUMNS, terminal->colour);
  for (uint32_t i = 0; i < count; i++) shoal_sample_picture_release(&pictures[i]);
}

static void print_text(const shoal_class_eval *e, shoal_split split, double seconds) {
  shoal_text line;
  shoal_text_init(&line);
  uint32_t rows;
  const char *unit = shoal_metric_unit(e->graph, &rows);
  shoal_text_addf(&line, "%s  ", shoal_split_names[split]);
  shoal_metric_text(&line, e->graph, &e->result);
  shoal_text_addf(&line, "  on %s %s in %s", shoal_human_count((uint64_t)e->result.answers).text, unit,
                  shoal_human_seconds(seconds).text);
  shoal_cli_print_line(&line);
  if (e->has_classes) {
    shoal_terminal terminal = shoal_terminal_of(stdout);
    const shoal_classes_view view = {
        .unit = unit, .place = "sample", .file = file_of, .width = terminal.width};
    shoal_classes_text(&line, &e->confusion, &e->words, &view);
    add_pictures(e, &terminal, &line);
    if (!line.failed) fwrite(line.bytes, 1, line.length, stdout);
  }
  shoal_text_release(&line);
}

/* A model of a search has its table's rows as the only part there is. */
static int eval_table(const eval_options *o) {
  shoal_error err;
  if (o->data.split || o->data.target || o->data.valid_share > 0 || o->batch) {
    shoal_fail(&err, SHOAL_INVALID,
               "%s takes raw rows and knows its target: leave out --split, --target, --valid and --batch",
               o->model);
    return shoal_cli_misused("eval", &err);
  }
  shoal_tables_options options = {
      .model = o->model, .rows = o->data.data, .threads = (uint32_t)o->threads, .json = o->json};
  if (shoal_tables_eval(&options, &err) != SHOAL_OK) return shoal_cli_failed("eval", &err);
  return shoal_cli_finish("eval", SHOAL_EXIT_OK);
}

static int run(int argc, char **argv) {
  eval_options o = {.threads = shoal_cli_threads()};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  shoal_error err;
  if (!o.data.data) {
    shoal_fail(&err, SHOAL_INVALID, "--data is missing: it says what to evaluate on");
    return shoal_cli_misused("eval", &err);
  }
  if (shoal_predictor_is(o.model)) return eval_table(&o);

  shoal_loaded loaded;
  shoal_class_eval evaluation = {0};
  shoal_dataset *dataset = NULL;
  shoal_split split = SHOAL_TEST;
  shoal_source source;
  o.data.text = o.json ? NULL : stderr;
  shoal_status status = shoal_loaded_open(&loaded, o.model, &err);
  if (status == SHOAL_OK) {
    o.data.batch = o.batch ? (uint32_t)o.batch : loaded.checkpoint.model->recipe.batch;
    status = shoal_loaded_source(&loaded, &o.data, &dataset, &split, &source, &err);
  }
  if (status == SHOAL_OK) status = shoal_loaded_ready(&loaded, o.data.batch, (uint32_t)o.threads, &err);
  if (status == SHOAL_OK)
    status = shoal_class_eval_init(&evaluation, loaded.graph, dataset, o.data.batch, &err);
  if (status == SHOAL_OK) {
    double start = shoal_clock_seconds();
    shoal_class_eval_run(&evaluation, loaded.trainer, &source);
    double seconds = shoal_clock_seconds() - start;
    if (o.json)
      print_json(&evaluation, split, seconds);
    else
      print_text(&evaluation, split, seconds);
    exit_status = shoal_cli_finish("eval", SHOAL_EXIT_OK);
  } else {
    exit_status = shoal_cli_failed("eval", &err);
  }
  shoal_class_eval_release(&evaluation);
  shoal_loaded_release(&loaded);
  shoal_dataset_close(dataset);
  return exit_status;
}

const shoal_command shoal_command_eval = {"eval", "how good a trained model is on a data set", run};
