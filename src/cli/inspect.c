/* inspect.c: shoal inspect: what a model consists of and what it costs. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/learner.h"
#include "base/human.h"
#include "base/json.h"
#include "base/json_at.h"
#include "cli/agent.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/tables.h"
#include "nn/checkpoint.h"
#include "nn/op.h"
#include "search/predictor.h"

typedef struct inspect_options {
  const char *path;
  uint64_t batch, threads; /* batch 0: as the recipe says */
  bool json;
} inspect_options;

/* One layer of the text. */
typedef struct row {
  const char *name;
  char *words; /* the layer's line without its name; owned */
  char shape[SHOAL_SHAPE_TEXT_MAX];
  uint64_t weights, flops;
} row;

typedef struct inspection {
  shoal_checkpoint checkpoint; /* or zero */
  shoal_model *own_model;      /* or NULL */
  shoal_model *model;          /* one of the two */
  shoal_graph *graph;
  row *rows; /* one a layer */
  shoal_text recipe;
  uint32_t batch;
  uint32_t shards;
  size_t memory_bytes;
  char sha256[65];
  uint64_t epoch, round, step;
} inspection;

static bool parse(inspect_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "batch",
       .value = "N",
       .whole = &o->batch,
       .whole_min = 1,
       .whole_max = SHOAL_BATCH_MAX,
       .help = "plan memory for this many samples a round; by default the recipe's"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "and for this many threads; by default one for every processor"},
      {.name = "json", .flag = &o->json, .help = "one line of JSON"},
  };
  const shoal_usage usage = {
      .command = "inspect",
      .synopses = (const char *[]){"MODEL.net [OPTION...]", "MODEL.safetensors [OPTION...]", NULL},
      .about = "Lists the layers of a model with their output shapes, weights and floating point operations "
               "(FLOPs, for one sample), the recipe, and the memory that training would reserve. Of a "
               "checkpoint also where its training stands. Of a model of 'shoal search': what it predicts, "
               "its columns with their kinds, its networks and scores. Of an agent: its environment, how it "
               "was trained and how far, and its layers.",
      .operand = "MODEL.net or MODEL.safetensors",
      .operands_min = 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal inspect examples/lenet5.net\n"
                  "  shoal inspect lenet5.safetensors --batch 512 --json\n"
                  "  shoal inspect best.safetensors\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  o->path = operands.at[0];
  return true;
}

/* ---- looking ------------------------------------------------------------------------ */

/* A safetensors file has its JSON header behind eight bytes of length. */
static bool is_checkpoint(const char *path) {
  size_t length = strlen(path);
  static const char suffix[] = ".safetensors";
  if (length >= sizeof suffix - 1 && strcmp(path + length - (sizeof suffix - 1), suffix) == 0) return true;
  char start[9] = {0};
  FILE *file = fopen(path, "rb");
  size_t got = file ? fread(start, 1, sizeof start, file) : 0;
  if (file) fclose(file);
  return got == sizeof start && start[8] == '{';
}

/* The state itself cannot be loaded here: it depends on the number of training samples. */
static void read_position(inspection *i) {
  const char *text = shoal_safetensors_meta(i->checkpoint.file, "shoal.position");
  cJSON *position = text ? cJSON_Parse(text) : NULL;
  i->epoch = shoal_whole_at(position, "epoch");
  i->round = shoal_whole_at(position, "round");
  i->step = shoal_whole_at(position, "step");
  cJSON_Delete(position);
}

/* The model as text has a line a layer, then the recipe. */
static shoal_status describe_layers(inspection *i, shoal_error *err) {
  uint32_t count = i->model->layers_count;
  i->rows = calloc(count, sizeof *i->rows);
  shoal_text text;
  shoal_text_init(&text);
  shoal_model_write(i->model, &text);
  shoal_status status = !i->rows || text.failed ? SHOAL_NO_MEMORY : SHOAL_OK;
  const char *at = text.bytes;
  for (uint32_t l = 0; l < count && status == SHOAL_OK; l++) {
    const shoal_layer *layer = &i->model->layers[l];
    row *r = &i->rows[l];
    size_t length = strcspn(at, "\n");
    size_t skipped = layer->named ? strlen(layer->name) + 2 : 0;
    r->name = layer->name;
    r->words = strndup(at + skipped, length - skipped);
    if (!r->words) status = SHOAL_NO_MEMORY;
    shoal_shape_text(&layer->shape, r->shape);
    at += length + (at[length] == '\n');
  }
  if (status == SHOAL_OK) shoal_text_addf(&i->recipe, "%s", at);
  shoal_text_release(&text);
  if (status != SHOAL_OK || i->recipe.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");

  for (uint32_t n = 0; n < i->graph->nodes_count; n++) {
    const shoal_node *node = &i->graph->nodes[n];
    row *r = &i->rows[node->layer];
    r->flops += shoal_node_flops(i->graph, node).forward;
    for (int p = 0; p < SHOAL_NODE_PARAMS_MAX; p++) {
      if (node->params[p] != SHOAL_NO_PARAM &&
          i->graph->params[node->params[p]].kind != SHOAL_PARAM_STATISTIC)
        r->weights += i->graph->params[node->params[p]].count;
    }
  }
  return SHOAL_OK;
}

/* What training would reserve is known by reserving it. */
static shoal_status plan(inspection *i, const inspect_options *o, shoal_error *err) {
  i->batch = o->batch ? (uint32_t)o->batch : i->model->recipe.batch;
  shoal_trainer_config config = {
      .graph = i->graph, .threads = (uint32_t)o->threads, .batch = i->batch, .samples = i->batch};
  shoal_trainer *trainer;
  shoal_status status = shoal_trainer_create(&trainer, &config, err);
  if (status != SHOAL_OK) return status;
  i->memory_bytes = shoal_engine_memory(shoal_trainer_engine(trainer));
  i->shards = shoal_trainer_shards(trainer);
  if (i->checkpoint.file) {
    float *weights = shoal_trainer_state(trainer)->weights;
    status = shoal_checkpoint_weights(&i->checkpoint, i->graph, weights, err);
    if (status == SHOAL_OK) shoal_graph_weights_sha256(i->graph, weights, i->sha256);
    read_position(i);
  }
  shoal_trainer_destroy(trainer);
  return status;
}

static shoal_status look(inspection *i, const inspect_options *o, shoal_error *err) {
  shoal_status status;
  if (is_checkpoint(o->path)) {
    status = shoal_checkpoint_load(&i->checkpoint, o->path, err);
    i->model = i->checkpoint.model;
  } else {
    status = shoal_model_load(&i->own_model, o->path, err);
    i->model = i->own_model;
  }
  if (status == SHOAL_OK) status = shoal_graph_create(&i->graph, i->model, err);
  if (status == SHOAL_OK) status = describe_layers(i, err);
  if (status == SHOAL_OK) status = plan(i, o, err);
  return status;
}

static void release(inspection *i) {
  for (uint32_t l = 0; i->rows && l < i->model->layers_count; l++) free(i->rows[l].words);
  free(i->rows);
  shoal_text_release(&i->recipe);
  shoal_graph_destroy(i->graph);
  shoal_model_destroy(i->own_model);
  shoal_checkpoint_release(&i->checkpoint);
}

/* ---- printing ----------------------------------------------------------------------- */

static void print_json(const inspection *i, const inspect_options *o) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_json json;
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "model", o->path);
  shoal_json_open(&json, "layers", '[');
  for (uint32_t l = 0; l < i->model->layers_count; l++) {
    const row *r = &i->rows[l];
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "name", r->name);
    shoal_json_text(&json, "op", i->model->layers[l].op->word);
    shoal_json_text(&json, "text", r->words);
    shoal_json_text(&json, "output", r->shape);
    shoal_json_int(&json, "weights", (int64_t)r->weights);
    shoal_json_int(&json, "flops", (int64_t)r->flops);
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_int(&json, "weights", (int64_t)i->graph->trainable);
  shoal_json_int(&json, "flops_forward", (int64_t)shoal_graph_flops(i->graph, false));
  shoal_json_int(&json, "flops_training", (int64_t)shoal_graph_flops(i->graph, true));
  shoal_json_int(&json, "batch", i->batch);
  shoal_json_int(&json, "threads", (int64_t)o->threads);
  shoal_json_int(&json, "shards", i->shards);
  shoal_json_int(&json, "memory_bytes", (int64_t)i->memory_bytes);
  shoal_json_text(&json, "recipe", i->recipe.bytes);
  if (i->checkpoint.file) {
    shoal_json_int(&json, "epoch", (int64_t)i->epoch);
    shoal_json_int(&json, "round", (int64_t)i->round);
    shoal_json_int(&json, "step", (int64_t)i->step);
    shoal_json_text(&json, "weights_sha256", i->sha256);
  }
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static int widest(int width, const char *text) {
  int length = (int)strlen(text);
  return length > width ? length : width;
}

static void print_table(const inspection *i) {
  int name = 5, words = 5, shape = 6, weights = 7;
  for (uint32_t l = 0; l < i->model->layers_count; l++) {
    name = widest(name, i->rows[l].name);
    words = widest(words, i->rows[l].words);
    shape = widest(shape, i->rows[l].shape);
    weights = widest(weights, shoal_human_count(i->rows[l].weights).text);
  }
  shoal_terminal terminal = shoal_terminal_of(stdout);
  const char *bold = terminal.colour ? "\x1b[1m" : "", *off = terminal.colour ? "\x1b[0m" : "";
  printf("%s%-*s  %-*s  %-*s  %*s  %9s%s\n", bold, name, "layer", words, "text", shape, "output", weights,
         "weights", "FLOPs", off);
  for (uint32_t l = 0; l < i->model->layers_count; l++) {
    const row *r = &i->rows[l];
    printf("%-*s  %-*s  %-*s  %*s  %9s\n", name, r->name, words, r->words, shape, r->shape, weights,
           r->weights ? shoal_human_count(r->weights).text : "",
           r->flops ? shoal_human_amount((double)r->flops, "").text : "");
  }
}

static void print_text(const inspection *i, const inspect_options *o) {
  print_table(i);
  printf("\n%-9s %s\n", "weights", shoal_human_count(i->graph->trainable).text);
  printf("%-9s %s a sample forward, %s in training\n", "cost",
         shoal_human_amount((double)shoal_graph_flops(i->graph, false), "FLOP").text,
         shoal_human_amount((double)shoal_graph_flops(i->graph, true), "FLOP").text);
  printf("%-9s %s to train with batch %u in %u shard%s on %llu thread%s\n", "memory",
         shoal_human_bytes((double)i->memory_bytes).text, i->batch, i->shards, i->shards == 1 ? "" : "s",
         (unsigned long long)o->threads, o->threads == 1 ? "" : "s");
  const char *label = "recipe";
  for (const char *at = i->recipe.bytes; at && *at;) {
    int length = (int)strcspn(at, "\n");
    printf("%-9s %.*s\n", label, length, at);
    label = "";
    at += length + (at[length] == '\n');
  }
  if (i->checkpoint.file) {
    printf("%-9s after %s of %s epochs", "position", shoal_human_count(i->epoch).text,
           shoal_human_count(i->model->recipe.epochs).text);
    if (i->round) printf(" and %s rounds", shoal_human_count(i->round).text);
    printf(", %s rounds in all\n%-9s %s\n", shoal_human_count(i->step).text, "sha256", i->sha256);
  }
}

static int inspect_table(const inspect_options *o) {
  shoal_error err;
  shoal_tables_options options = {.model = o->path, .json = o->json};
  if (shoal_tables_inspect(&options, &err) != SHOAL_OK) return shoal_cli_failed("inspect", &err);
  return shoal_cli_finish("inspect", SHOAL_EXIT_OK);
}

static int run(int argc, char **argv) {
  inspect_options o = {.threads = shoal_cli_threads()};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  if (shoal_predictor_is(o.path)) return inspect_table(&o);
  if (shoal_agent_is(o.path)) return shoal_cli_agent_inspect(o.path, o.json);
  inspection i = {0};
  shoal_error err;
  if (look(&i, &o, &err) != SHOAL_OK) {
    exit_status = shoal_cli_failed("inspect", &err);
  } else {
    if (o.json)
      print_json(&i, &o);
    else
      print_text(&i, &o);
    exit_status = shoal_cli_finish("inspect", SHOAL_EXIT_OK);
  }
  release(&i);
  return exit_status;
}

const shoal_command shoal_command_inspect = {"inspect", "the layers of a model, their weights and costs",
                                             run};
