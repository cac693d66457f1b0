/* predict.c: shoal predict: what a trained model says about samples, or how it goes on with
 * a text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/loaded.h"
#include "cli/tables.h"
#include "data/image_file.h"
#include "data/image_list.h"
#include "data/named.h"
#include "nn/loss.h"
#include "search/predictor.h"
#include "train/generate.h"

typedef struct predict_options {
  shoal_operands operands; /* the model, then images besides --input */
  const char *model, *input, *output;
  shoal_loaded_data data;
  uint64_t count, threads;
  shoal_generate_options text;
  bool json;
} predict_options;

static bool is_image(const char *path) { return shoal_image_file_at(path) || shoal_image_list_is_flat(path); }

/* Nothing is there, and it is neither like the name of a data set nor of a kind, as chars:FILE is. */
static bool is_missing(const char *path) {
  return !shoal_file_exists(path) && !shoal_folder_exists(path) && !strchr(path, ':') &&
         !shoal_named_nearest(path);
}

static bool parse(predict_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "Samples"},
      {.name = "data",
       .value = "SET",
       .text = &o->data.data,
       .help = "predict samples whose answers are known: a data set as for 'shoal eval'"},
      {.name = "input",
       .value = "FILE",
       .text = &o->input,
       .help = "predict samples that have no answers: one or more PNG or JPEG files, a folder of them, "
               "FILE.csv without the target column, or IDX images"},
      {.name = "split",
       .value = "PART",
       .text = &o->data.split,
       .choices = shoal_split_names,
       .help = "of --data: train, valid or test; test by default"},
      {.name = "target",
       .value = "COLUMN",
       .text = &o->data.target,
       .help = "CSV: the column with the answers"},
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data.data_dir,
       .help = "where named sets are kept; ~/.local/share/shoal by default"},
      {.name = "count",
       .value = "N",
       .whole = &o->count,
       .whole_min = 1,
       .whole_max = UINT64_MAX,
       .help = "only the first N samples"},

      {.name = "Text"},
      {.name = "prompt",
       .value = "TEXT",
       .text = &o->text.prompt,
       .help = "let a text model continue this text"},
      {.name = "length",
       .value = "N",
       .whole = &o->text.length,
       .whole_min = 1,
       .whole_max = 10000000,
       .help = "words or characters to add; 200 by default"},
      {.name = "temperature",
       .value = "T",
       .real = &o->text.temperature,
       .real_min = 0,
       .real_max = 100,
       .help = "0 always takes the likeliest, 1 chooses as the model says (the default), more is wilder"},
      {.name = "seed",
       .value = "N",
       .whole = &o->text.seed,
       .whole_max = UINT64_MAX,
       .help = "another seed writes another text; 1 by default"},

      {.name = "Output"},
      {.name = "output", .value = "FILE", .text = &o->output, .help = "write there and not on the terminal"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor"},
      {.name = "json", .flag = &o->json, .help = "one line of JSON for every sample"},
  };
  const shoal_usage usage = {
      .command = "predict",
      .synopses = (const char *[]){"MODEL.safetensors --data SET [OPTION...]",
                                   "MODEL.safetensors --input FILE [FILE...] [OPTION...]",
                                   "MODEL.safetensors --prompt TEXT [OPTION...]", NULL},
      .about = "Prints what the model says about each sample: a class with its probability and the next "
               "likely ones, or numbers. A text model continues a given text. A model of 'shoal search' "
               "takes raw rows of a table, FILE.csv, and answers with CSV: a line for every row, the "
               "prediction and of classes the probability of each.",
      .operand = "MODEL.safetensors",
      .operands_min = 1,
      .operands_max = SHOAL_OPERANDS_MAX,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal predict lenet5.safetensors --data fashion-mnist --count 5\n"
                  "  shoal predict lenet5.safetensors --input shirt.png shoe.jpg\n"
                  "  shoal predict wine.safetensors --input new.csv --output answers.txt\n"
                  "  shoal predict best.safetensors --input new-rows.csv --output answers.csv\n"
                  "  shoal predict shakespeare.safetensors --prompt ROMEO: --length 400 --temperature 0.8\n",
  };
  if (!shoal_cli_parse(&usage, argc, argv, &o->operands, status)) return false;
  o->model = o->operands.at[0];
  o->data.more = o->operands.at + 1;
  o->data.more_count = o->operands.count - 1;
  int asked = (o->data.data != NULL) + (o->input != NULL) + (o->text.prompt != NULL);
  if (asked == 1 && (o->data.more_count == 0 || (o->input && (is_image(o->input) || is_missing(o->input)))))
    return true;
  shoal_error err;
  if (asked == 1)
    shoal_fail(&err, SHOAL_INVALID,
               "unexpected argument '%.60s'; several files can be given to --input when they "
               "are PNG or JPEG files",
               o->operands.at[1]);
  else
    shoal_fail(&err, SHOAL_INVALID, "give %s of --data, --input and --prompt", asked ? "only one" : "one");
  *status = shoal_cli_misused("predict", &err);
  return false;
}

/* ---- where it goes ------------------------------------------------------------------ */

/* Lines go to standard output, or to a file that appears when it is complete. */
typedef struct output {
  shoal_writer *file; /* or NULL */
} output;

static void emit(void *context, const char *text, size_t length) {
  output *out = context;
  if (out->file) {
    shoal_writer_add(out->file, text, length);
    return;
  }
  fwrite(text, 1, length, stdout);
  fflush(stdout); /* text that is being written can be watched */
}

static void emit_line(output *out, shoal_text *line) {
  shoal_text_add(line, "\n", 1);
  if (!line->failed && out->file)
    shoal_writer_add(out->file, line->bytes, line->length);
  else if (!line->failed)
    fwrite(line->bytes, 1, line->length, stdout);
  shoal_text_clear(line);
}

/* ---- text --------------------------------------------------------------------------- */

static void collect(void *context, const char *text, size_t length) { shoal_text_add(context, text, length); }

/* As it comes, or whole in a line of JSON. */
static shoal_status write_text(const predict_options *o, const shoal_generate_model *from, output *out,
                               shoal_error *err) {
  if (!o->json) return shoal_generate(from, &o->text, emit, out, err);
  shoal_text text, line;
  shoal_text_init(&text);
  shoal_text_init(&line);
  shoal_status status = shoal_generate(from, &o->text, collect, &text, err);
  if (status == SHOAL_OK) {
    shoal_json json;
    shoal_json_init(&json, &line);
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "prompt", o->text.prompt);
    shoal_json_text_n(&json, "text", text.bytes, text.length);
    shoal_json_close(&json, '}');
    emit_line(out, &line);
  }
  shoal_text_release(&text);
  shoal_text_release(&line);
  return status;
}

static shoal_status predict_text(const predict_options *o, const shoal_loaded *loaded, output *out,
                                 shoal_error *err) {
  const char *fitted = loaded->checkpoint.data_json;
  shoal_dataset *vocabulary = NULL;
  float *weights = calloc(loaded->graph->weights_count, sizeof *weights);
  shoal_status status = SHOAL_OK;
  if (loaded->checkpoint.model->layers[0].shape.kind != SHOAL_TOKENS)
    status = shoal_fail(err, SHOAL_INVALID,
                        "%s is no text model: its input is not tokens; use --data or --input", o->model);
  else if (!fitted)
    status = shoal_fail(err, SHOAL_CORRUPT, "%s has no vocabulary: it was saved without its data", o->model);
  else if (!weights)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) status = shoal_dataset_open_fitted(&vocabulary, fitted, err);
  if (status == SHOAL_OK) status = shoal_checkpoint_weights(&loaded->checkpoint, loaded->graph, weights, err);
  const shoal_generate_model from = {
      .name = o->model, .graph = loaded->graph, .weights = weights, .vocabulary = vocabulary};
  if (status == SHOAL_OK) status = write_text(o, &from, out, err);
  shoal_dataset_close(vocabulary);
  free(weights);
  return status;
}

/* ---- samples ------------------------------------------------------------------------ */

enum { TOP = 3, NAME_WIDTH = 14 };

/* What is known about the samples at hand. */
typedef struct answers {
  const shoal_graph *graph;
  const shoal_dataset *dataset;
  const shoal_source *source;
  bool labelled;
  uint32_t file_columns;       /* of the longest file's name */
  uint32_t n, steps, features; /* of this batch */
  const float *values;         /* steps x n x features */
  const int32_t *labels;       /* steps x n; for classes */
  const float *targets;        /* steps x n x features; for numbers */
} answers;

static bool has_classes(const answers *a) {
  return shoal_targets_of(&a->graph->model->recipe) == SHOAL_TARGET_CLASSES;
}

/* Binary cross-entropy with one output: the probability of the second of two classes. */
static bool has_two_classes(const answers *a) {
  return shoal_targets_of(&a->graph->model->recipe) == SHOAL_TARGET_TWO && a->features == 1 && a->steps == 1;
}

static const char *class_name(const answers *a, uint32_t index, char buffer[16]) {
  const char *name = shoal_dataset_class_name(a->dataset, index);
  if (name) return name;
  snprintf(buffer, 16, "%u", index);
  return buffer;
}

/* The likeliest classes, the first of equals first. */
static uint32_t find_top(const float *probability, uint32_t count, uint32_t top[TOP]) {
  uint32_t found = count < TOP ? count : TOP;
  for (uint32_t t = 0; t < found; t++) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
      bool taken = false;
      for (uint32_t u = 0; u < t; u++) taken = taken || top[u] == i;
      if (!taken && (best == UINT32_MAX || probability[i] > probability[best])) best = i;
    }
    top[t] = best;
  }
  return found;
}

/* The row of values of a step of a sample. */
static const float *row_of(const answers *a, const float *values, uint32_t step, uint32_t sample) {
  return values + ((size_t)step * a->n + sample) * a->features;
}

/* Classes of one row, as a list of the top ones; a single output is made two. */
static uint32_t rank(const answers *a, const float *row, uint32_t top[TOP], float probability[TOP]) {
  float two[2];
  uint32_t count = a->features;
  if (has_two_classes(a)) {
    two[0] = 1 - row[0];
    two[1] = row[0];
    row = two;
    count = 2;
  }
  uint32_t found = find_top(row, count, top);
  for (uint32_t t = 0; t < found; t++) probability[t] = row[top[t]];
  return found;
}

static uint32_t label_of(const answers *a, uint32_t sample) {
  return has_two_classes(a) ? a->targets[sample] > 0.5f : (uint32_t)a->labels[sample];
}

static void class_json(const answers *a, uint32_t sample, shoal_json *json) {
  uint32_t top[TOP] = {0};
  float probability[TOP] = {0};
  char buffer[16];
  uint32_t found = rank(a, row_of(a, a->values, 0, sample), top, probability);
  shoal_json_text(json, "class", class_name(a, top[0], buffer));
  shoal_json_int(json, "class_index", top[0]);
  shoal_json_real(json, "probability", shoal_human_float(probability[0]));
  shoal_json_open(json, "top", '[');
  for (uint32_t t = 0; t < found; t++) {
    shoal_json_open(json, NULL, '{');
    shoal_json_text(json, "class", class_name(a, top[t], buffer));
    shoal_json_real(json, "probability", shoal_human_float(probability[t]));
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
  if (a->labelled) {
    uint32_t label = label_of(a, sample);
    shoal_json_text(json, "label", class_name(a, label, buffer));
    shoal_json_bool(json, "correct", label == top[0]);
  }
}

static void class_text(const answers *a, uint32_t sample, shoal_text *line) {
  uint32_t top[TOP] = {0};
  float probability[TOP] = {0};
  char buffer[16];
  uint32_t found = rank(a, row_of(a, a->values, 0, sample), top, probability);
  shoal_text_addf(line, "%-*s %.3f", NAME_WIDTH, class_name(a, top[0], buffer), (double)probability[0]);
  for (uint32_t t = 1; t < found; t++)
    shoal_text_addf(line, "   %s %.3f", class_name(a, top[t], buffer), (double)probability[t]);
  if (!a->labelled) return;
  uint32_t label = label_of(a, sample);
  if (label == top[0])
    shoal_text_addf(line, "   right");
  else
    shoal_text_addf(line, "   wrong, it is %s", class_name(a, label, buffer));
}

/* The likeliest class of every step, and what they should have been. */
static void sequence_json(const answers *a, uint32_t sample, shoal_json *json) {
  char buffer[16];
  uint32_t top[TOP];
  shoal_json_open(json, "classes", '[');
  for (uint32_t s = 0; s < a->steps; s++) {
    find_top(row_of(a, a->values, s, sample), a->features, top);
    shoal_json_text(json, NULL, class_name(a, top[0], buffer));
  }
  shoal_json_close(json, ']');
  if (!a->labelled) return;
  shoal_json_open(json, "labels", '[');
  for (uint32_t s = 0; s < a->steps; s++)
    shoal_json_text(json, NULL, class_name(a, (uint32_t)a->labels[s * a->n + sample], buffer));
  shoal_json_close(json, ']');
}

static void sequence_text(const answers *a, uint32_t sample, shoal_text *line) {
  char buffer[16];
  uint32_t top[TOP], right = 0;
  for (uint32_t s = 0; s < a->steps; s++) {
    find_top(row_of(a, a->values, s, sample), a->features, top);
    shoal_text_addf(line, "%s%s", s ? " " : "", class_name(a, top[0], buffer));
    right += a->labelled && (uint32_t)a->labels[s * a->n + sample] == top[0];
  }
  if (a->labelled) shoal_text_addf(line, "   %u of %u right", right, a->steps);
}

static void numbers_json(const answers *a, const char *key, const float *values, uint32_t sample,
                         shoal_json *json) {
  shoal_json_open(json, key, '[');
  for (uint32_t s = 0; s < a->steps; s++) {
    for (uint32_t f = 0; f < a->features; f++)
      shoal_json_real(json, NULL, shoal_human_float(row_of(a, values, s, sample)[f]));
  }
  shoal_json_close(json, ']');
}

static void numbers_text(const answers *a, const float *values, uint32_t sample, shoal_text *line) {
  for (uint32_t s = 0; s < a->steps; s++) {
    for (uint32_t f = 0; f < a->features; f++)
      shoal_text_addf(line, "%s%.6g", s + f ? " " : "", (double)row_of(a, values, s, sample)[f]);
  }
}

static void add_json(const answers *a, uint64_t number, uint32_t sample, shoal_text *line) {
  shoal_json json;
  shoal_json_init(&json, line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "sample", (int64_t)number);
  const char *file = shoal_dataset_sample_file(a->dataset, a->source, number);
  if (file) shoal_json_text(&json, "file", file);
  if (has_two_classes(a) || (has_classes(a) && a->steps == 1)) {
    class_json(a, sample, &json);
  } else if (has_classes(a)) {
    sequence_json(a, sample, &json);
  } else {
    numbers_json(a, "values", a->values, sample, &json);
    if (a->labelled) numbers_json(a, "targets", a->targets, sample, &json);
  }
  shoal_json_close(&json, '}');
}

static void add_text(const answers *a, uint64_t number, uint32_t sample, shoal_text *line) {
  const char *file = shoal_dataset_sample_file(a->dataset, a->source, number);
  if (file)
    shoal_text_add_plain(line, file, a->file_columns + 2);
  else
    shoal_text_addf(line, "%-6llu ", (unsigned long long)number);
  if (has_two_classes(a) || (has_classes(a) && a->steps == 1)) {
    class_text(a, sample, line);
  } else if (has_classes(a)) {
    sequence_text(a, sample, line);
  } else {
    numbers_text(a, a->values, sample, line);
    if (a->labelled) {
      shoal_text_addf(line, "   it is ");
      numbers_text(a, a->targets, sample, line);
    }
  }
}

static shoal_status predict_all(const predict_options *o, shoal_loaded *loaded, const shoal_dataset *dataset,
                                const shoal_source *source, output *out, shoal_error *err) {
  const shoal_shape *shape = &loaded->graph->nodes[loaded->graph->nodes_count - 1].shape;
  uint32_t batch = o->data.batch;
  size_t rows = (size_t)batch * shape->steps;
  answers a = {.graph = loaded->graph,
               .dataset = dataset,
               .source = source,
               .labelled = o->input == NULL,
               .steps = shape->steps,
               .features = shape->features};
  bool classes = has_classes(&a);
  float *values = calloc(rows * shape->features, sizeof *values);
  float *targets = calloc(rows * shape->features, sizeof *targets);
  int32_t *labels = calloc(rows, sizeof *labels);
  shoal_text line;
  shoal_text_init(&line);
  shoal_status status = SHOAL_OK;
  if (!values || !targets || !labels) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  a.values = values;
  a.targets = targets;
  a.labels = labels;

  uint64_t count = source->samples < o->count ? source->samples : o->count;
  for (uint64_t i = 0; i < count; i++) {
    const char *file = shoal_dataset_sample_file(dataset, source, i);
    if (file == NULL) break;
    uint32_t columns = shoal_text_add_plain(&line, file, 0);
    if (columns > a.file_columns) a.file_columns = columns;
    shoal_text_clear(&line);
  }
  for (uint64_t first = 0; first < count && status == SHOAL_OK; first += batch) {
    a.n = count - first < batch ? (uint32_t)(count - first) : batch;
    shoal_trainer_predict(loaded->trainer, source, first, a.n, values);
    shoal_batch known = {.labels = classes ? labels : NULL, .targets = classes ? NULL : targets};
    if (a.labelled) source->fetch(source->self, 0, first, a.n, &known);
    for (uint32_t i = 0; i < a.n; i++) {
      if (o->json)
        add_json(&a, first + i, i, &line);
      else
        add_text(&a, first + i, i, &line);
      emit_line(out, &line);
    }
  }
  shoal_text_release(&line);
  free(values);
  free(targets);
  free(labels);
  return status;
}

static shoal_status fail_missing(const char *input, const char *model, const char *takes, shoal_error *err) {
  return shoal_fail(err, SHOAL_NOT_FOUND, "%.200s: no such file; %s %s", input, model, takes);
}

/* What to give to a model. */
static const char *taken_by(const shoal_loaded *loaded) {
  const char *fitted = loaded->checkpoint.data_json;
  shoal_dataset *kind = NULL;
  if (!fitted || shoal_dataset_open_fitted(&kind, fitted, NULL) != SHOAL_OK)
    return "takes samples like those it was trained on";
  const char *takes = shoal_dataset_is_text(kind)     ? "was trained on a text: give --prompt TEXT"
                      : shoal_dataset_is_images(kind) ? "was trained on images: give PNG or JPEG files"
                                                      : "was trained on a table: give FILE.csv";
  shoal_dataset_close(kind);
  return takes;
}

static shoal_status predict_samples(predict_options *o, shoal_loaded *loaded, output *out, shoal_error *err) {
  shoal_dataset *dataset = NULL;
  shoal_source source;
  shoal_split split;
  uint32_t batch = loaded->checkpoint.model->recipe.batch;
  o->data.batch = batch < SHOAL_FETCH_MAX ? batch : SHOAL_FETCH_MAX;
  o->data.text = o->json ? NULL : stderr;
  if (o->input) {
    o->data.data = o->input;
    o->data.unlabeled = true;
  }
  shoal_status status = shoal_loaded_source(loaded, &o->data, &dataset, &split, &source, err);
  if (status == SHOAL_NOT_FOUND && o->input && is_missing(o->input))
    status = fail_missing(o->input, o->model, taken_by(loaded), err);
  if (status == SHOAL_OK) status = shoal_loaded_ready(loaded, o->data.batch, (uint32_t)o->threads, err);
  if (status == SHOAL_OK) status = predict_all(o, loaded, dataset, &source, out, err);
  shoal_dataset_close(dataset);
  return status;
}

/* ---- rows of a table ---------------------------------------------------------------- */

static int predict_table(const predict_options *o) {
  shoal_error err;
  if (o->text.prompt || o->data.split || o->data.target) {
    shoal_fail(&err, SHOAL_INVALID,
               "%s takes raw rows: give --input FILE.csv, and not --prompt, --split or --target", o->model);
    return shoal_cli_misused("predict", &err);
  }
  const char *rows = o->input ? o->input : o->data.data;
  if (is_missing(rows)) {
    fail_missing(rows, o->model, "was trained on a table: give FILE.csv", &err);
    return shoal_cli_failed("predict", &err);
  }
  if (is_image(rows)) {
    shoal_fail(&err, SHOAL_INVALID, "%s has images, and %s was trained on a table: give --input FILE.csv",
               rows, o->model);
    return shoal_cli_misused("predict", &err);
  }
  shoal_tables_options options = {.model = o->model,
                                  .rows = rows,
                                  .output = o->output,
                                  .count = o->count,
                                  .threads = (uint32_t)o->threads,
                                  .json = o->json};
  if (shoal_tables_predict(&options, &err) != SHOAL_OK) return shoal_cli_failed("predict", &err);
  return shoal_cli_finish("predict", SHOAL_EXIT_OK);
}

/* ---- the command -------------------------------------------------------------------- */

static int run(int argc, char **argv) {
  predict_options o = {.threads = shoal_cli_threads(),
                       .count = UINT64_MAX,
                       .text = {.length = 200, .temperature = 1, .seed = 1}};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  if (shoal_predictor_is(o.model)) return predict_table(&o);
  shoal_error err;
  shoal_loaded loaded;
  output out = {0};
  shoal_status status = shoal_loaded_open(&loaded, o.model, &err);
  const char *const inputs[] = {o.model, o.data.data, o.input};
  if (status == SHOAL_OK) status = shoal_cli_spare_inputs(o.output, inputs, 3, &err);
  if (status == SHOAL_OK && o.output) status = shoal_writer_create(&out.file, o.output, &err);
  if (status == SHOAL_OK && o.text.prompt)
    status = predict_text(&o, &loaded, &out, &err);
  else if (status == SHOAL_OK)
    status = predict_samples(&o, &loaded, &out, &err);
  if (status == SHOAL_OK && out.file)
    status = shoal_writer_commit(out.file, &err);
  else
    shoal_writer_abandon(out.file);
  shoal_loaded_release(&loaded);
  if (status != SHOAL_OK) return shoal_cli_failed("predict", &err);
  return shoal_cli_finish("predict", SHOAL_EXIT_OK);
}

const shoal_command shoal_command_predict = {"predict", "what a trained model says about samples", run};
