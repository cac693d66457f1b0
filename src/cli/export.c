/* export.c: shoal export: a trained model in the format of another program. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/loaded.h"
#include "nn/onnx.h"
#include "search/table_onnx.h"

static shoal_status export_network(const char *path, const char *onnx, bool quiet, shoal_error *err) {
  shoal_loaded loaded;
  shoal_status status = shoal_loaded_open(&loaded, path, err);
  if (status == SHOAL_OK) status = shoal_loaded_ready(&loaded, 1, 1, err);
  if (status == SHOAL_OK) status = shoal_onnx_save(onnx, loaded.graph, shoal_loaded_weights(&loaded), err);
  if (status == SHOAL_OK && !quiet) {
    char shape[SHOAL_SHAPE_TEXT_MAX];
    printf("%s: ONNX, input batch x %s\n", onnx, shoal_shape_text(&loaded.graph->nodes[0].shape, shape));
  }
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

static shoal_status export_table(const char *path, const char *onnx, bool quiet, shoal_error *err) {
  shoal_predictor *predictor;
  shoal_status status = shoal_predictor_load(&predictor, path, err);
  if (status != SHOAL_OK) return status;
  status = shoal_predictor_onnx(predictor, onnx, err);
  if (status == SHOAL_OK && !quiet) {
    bool numbers = shoal_predictor_target(predictor)->problem == SHOAL_REGRESSION;
    printf("%s: ONNX, an input for each column, outputs %s\n", onnx,
           numbers ? "'value'" : "'label' and 'probabilities'");
    print_texts(shoal_predictor_profile(predictor));
  }
  shoal_predictor_destroy(predictor);
  return status;
}

static int run(int argc, char **argv) {
  const char *onnx = NULL;
  bool quiet = false;
  const shoal_option options[] = {
      {.name = "onnx",
       .value = "FILE",
       .text = &onnx,
       .help = "write ONNX (opset 17), which onnxruntime, OpenVINO, TensorRT and others read"},
      {.name = "quiet", .flag = &quiet, .help = "print nothing but errors"},
  };
  const shoal_usage usage = {
      .command = "export",
      .synopses = (const char *[]){"MODEL.safetensors --onnx FILE", NULL},
      .about = "Writes a trained model for use elsewhere. The input is called 'input', the output 'output', "
               "and the first axis of both is the batch. A model of 'shoal search' takes raw rows, one input "
               "for every column, and answers 'label' and 'probabilities', or 'value'; in place of a column "
               "NAME of free text it takes "
               "hashes of its words, 'NAME.hashed'. The weights alone can "
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
  if (!onnx) {
    shoal_fail(&err, SHOAL_INVALID, "--onnx FILE is missing: it says where to write");
    return shoal_cli_misused("export", &err);
  }

  const char *path = operands.at[0];
  shoal_status status = shoal_predictor_is(path) ? export_table(path, onnx, quiet, &err)
                                                 : export_network(path, onnx, quiet, &err);
  return status == SHOAL_OK ? shoal_cli_finish("export", SHOAL_EXIT_OK) : shoal_cli_failed("export", &err);
}

const shoal_command shoal_command_export = {"export", "write a trained model as ONNX", run};
