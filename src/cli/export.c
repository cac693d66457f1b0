/* export.c: shoal export: a trained model in the format of another program. */
#include <stdio.h>
#include <string.h>

#include "agent/bridge.h"
#include "agent/learner.h"
#include "cli/cli.h"
#include "cli/loaded.h"
#include "nn/onnx.h"
#include "search/table_onnx.h"

typedef struct export_options {
  const char *onnx;
  bool quiet, json;
} export_options;

static void begin_json(const export_options *o, const char *what, shoal_json *json, shoal_text *line) {
  shoal_cli_event_begin(json, line, NULL);
  shoal_json_text(json, "out", o->onnx);
  shoal_json_text(json, "format", "onnx");
  shoal_json_text(json, "model", what);
}

static void tell_network(const export_options *o, const shoal_graph *graph) {
  char shape[SHOAL_SHAPE_TEXT_MAX];
  shoal_shape_text(&graph->nodes[0].shape, shape);
  if (!o->quiet && !o->json) printf("%s: ONNX, input batch x %s\n", o->onnx, shape);
  if (!o->json) return;
  shoal_json json;
  shoal_text line;
  begin_json(o, "network", &json, &line);
  shoal_json_text(&json, "input", shape);
  shoal_cli_event_end(&json);
}

static shoal_status export_network(const char *path, const export_options *o, shoal_error *err) {
  shoal_loaded loaded;
  shoal_status status = shoal_loaded_open(&loaded, path, err);
  if (status == SHOAL_OK) status = shoal_loaded_ready(&loaded, 1, 1, err);
  if (status == SHOAL_OK) status = shoal_onnx_save(o->onnx, loaded.graph, shoal_loaded_weights(&loaded), err);
  if (status == SHOAL_OK) tell_network(o, loaded.graph);
  shoal_loaded_release(&loaded);
  return status;
}

/* ONNX cannot take texts apart: whoever calls the model does that before. */
static void print_texts(const shoal_profile *profile) {
  uint32_t texts = 0, first = 0;
  for (uint32_t c = 0; c < profile->columns_count; c++)
    if (profile->columns[c].used && profile->columns[c].kind == SHOAL_TEXT && texts++ == 0) first = c;
  if (texts == 0) return;
  char name[61];
  shoal_text_plain(name, sizeof name, profile->columns[first].name, strlen(profile->columns[first].name));
  if (texts > 1)
    printf("the %u columns of free text, such as '%s', are not taken as they are", texts, name);
  else
    printf("the free text '%s' is not taken as it is", name);
  printf(": in its place is an input '%s.hashed', 64 hashes of its words and parts of words; docs/formats.md "
         "has "
         "the function that makes them\n",
         name);
}

/* "hashed": columns of free text, in whose place hashes are taken. */
static void print_table_json(const export_options *o, const shoal_profile *profile, bool numbers) {
  shoal_json json;
  shoal_text line;
  begin_json(o, "table", &json, &line);
  shoal_json_open(&json, "outputs", '[');
  shoal_json_text(&json, NULL, numbers ? "value" : "label");
  if (!numbers) shoal_json_text(&json, NULL, "probabilities");
  shoal_json_close(&json, ']');
  shoal_json_open(&json, "hashed", '[');
  for (uint32_t c = 0; c < profile->columns_count; c++)
    if (profile->columns[c].used && profile->columns[c].kind == SHOAL_TEXT)
      shoal_json_text(&json, NULL, profile->columns[c].name);
  shoal_json_close(&json, ']');
  shoal_cli_event_end(&json);
}

static shoal_status export_table(const char *path, const export_options *o, shoal_error *err) {
  shoal_predictor *predictor;
  shoal_status status = shoal_predictor_load(&predictor, path, err);
  if (status != SHOAL_OK) return status;
  status = shoal_predictor_onnx(predictor, o->onnx, err);
  bool numbers = shoal_predictor_target(predictor)->problem == SHOAL_REGRESSION;
  if (status == SHOAL_OK && o->json) {
    print_table_json(o, shoal_predictor_profile(predictor), numbers);
  } else if (status == SHOAL_OK && !o->quiet) {
    printf("%s: ONNX, an input for each column, outputs %s\n", o->onnx,
           numbers ? "'value'" : "'label' and 'probabilities'");
    print_texts(shoal_predictor_profile(predictor));
  }
  shoal_predictor_destroy(predictor);
  return status;
}

static void tell_agent(const export_options *o, const shoal_env_kind *kind) {
  if (!o->quiet && !o->json)
    printf("%s: ONNX, from 'observation' (batch x %u) to 'action' (%s)\n", o->onnx, kind->observation,
           kind->choices > 0 ? "a choice" : "real numbers");
  if (!o->json) return;
  shoal_json json;
  shoal_text line;
  begin_json(o, "agent", &json, &line);
  shoal_json_text(&json, "env", kind->name);
  shoal_cli_event_end(&json);
}

static shoal_status export_agent(const char *path, const export_options *o, shoal_error *err) {
  shoal_agent_file file;
  shoal_policy *policy = NULL;
  const shoal_env_kind *kind = NULL;
  shoal_status status = shoal_agent_open(path, &file, NULL, err);
  if (status == SHOAL_OK && shoal_env_imports(file.env))
    status = shoal_fail(err, SHOAL_UNSUPPORTED,
                        "%s was trained in %s, for which Python imports a module: such an agent cannot be "
                        "exported",
                        path, file.env);
  if (status == SHOAL_OK) status = shoal_env_open(file.env, &kind, err);
  if (status == SHOAL_OK) status = shoal_agent_open(path, &file, &policy, err);
  if (status == SHOAL_OK) status = shoal_policy_onnx(policy, o->onnx, err);
  if (status == SHOAL_OK) tell_agent(o, kind);
  shoal_policy_destroy(policy);
  shoal_env_close(kind);
  return status;
}

static shoal_status export_any(const char *path, const export_options *o, shoal_error *err) {
  if (shoal_predictor_is(path)) return export_table(path, o, err);
  return shoal_agent_is(path) ? export_agent(path, o, err) : export_network(path, o, err);
}

static int run(int argc, char **argv) {
  export_options o = {0};
  const shoal_option options[] = {
      {.name = "onnx",
       .value = "FILE",
       .text = &o.onnx,
       .help = "write ONNX (opset 17), which onnxruntime, OpenVINO, TensorRT and others read"},
      {.name = "json", .flag = &o.json, .help = "one line of JSON"},
      {.name = "quiet", .flag = &o.quiet, .help = "print nothing but errors"},
  };
  const shoal_usage usage = {
      .command = "export",
      .synopses = (const char *[]){"MODEL.safetensors --onnx FILE", NULL},
      .about =
          "Writes a trained model for use elsewhere. The input is called 'input', the output 'output', "
          "and the first axis of both is the batch. A model of 'shoal search' takes raw rows, one input "
          "for every column, and answers 'label' and 'probabilities', or 'value'; in place of a column "
          "NAME of free text it takes "
          "hashes of its words, 'NAME.hashed'. An agent takes 'observation' and answers 'action', what it "
          "thinks best. The weights alone can "
          "be read by everything that reads safetensors, without an export.",
      .operand = "MODEL.safetensors",
      .operands_min = 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal export lenet5.safetensors --onnx lenet5.onnx\n"
                  "  shoal export best.safetensors --onnx best.onnx\n",
  };
  shoal_operands operands;
  int exit_status;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, &exit_status)) return exit_status;
  shoal_error err;
  if (!o.onnx) {
    shoal_fail(&err, SHOAL_INVALID, "--onnx FILE is missing: it says where to write");
    return shoal_cli_misused("export", &err);
  }

  const char *path = operands.at[0];
  shoal_status status = shoal_cli_spare_inputs(o.onnx, &path, 1, &err);
  if (status == SHOAL_OK) status = export_any(path, &o, &err);
  return status == SHOAL_OK ? shoal_cli_finish("export", SHOAL_EXIT_OK) : shoal_cli_failed("export", &err);
}

const shoal_command shoal_command_export = {"export", "write a trained model as ONNX", run};
