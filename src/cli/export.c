/* export.c: shoal export: a trained model in the format of another program. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/loaded.h"
#include "nn/onnx.h"

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
               "and the first axis of both is the batch. The weights alone can be read by everything that "
               "reads safetensors, without an export.",
      .operand = "MODEL.safetensors",
      .operands_min = 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal export lenet5.safetensors --onnx lenet5.onnx\n",
  };
  shoal_operands operands;
  int exit_status;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, &exit_status)) return exit_status;
  shoal_error err;
  if (!onnx) {
    shoal_fail(&err, SHOAL_INVALID, "--onnx FILE is missing: it says where to write");
    return shoal_cli_misused("export", &err);
  }

  shoal_loaded loaded;
  shoal_status status = shoal_loaded_open(&loaded, operands.at[0], &err);
  if (status == SHOAL_OK) status = shoal_loaded_ready(&loaded, 1, 1, &err);
  if (status == SHOAL_OK) status = shoal_onnx_save(onnx, loaded.graph, shoal_loaded_weights(&loaded), &err);
  if (status == SHOAL_OK) {
    char shape[SHOAL_SHAPE_TEXT_MAX];
    if (!quiet)
      printf("%s: ONNX, input batch x %s\n", onnx, shoal_shape_text(&loaded.graph->nodes[0].shape, shape));
    exit_status = shoal_cli_finish("export", SHOAL_EXIT_OK);
  } else {
    exit_status = shoal_cli_failed("export", &err);
  }
  shoal_loaded_release(&loaded);
  return exit_status;
}

const shoal_command shoal_command_export = {"export", "write a trained model as ONNX", run};
