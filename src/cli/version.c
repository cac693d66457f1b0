/* version.c: which Shoal this is, and what it makes of this machine. */
#include <cjson/cJSON.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <zlib.h>

#include "base/json.h"
#include "cli/cli.h"
#include "kernels/kernels.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "another architecture"
#endif

static void print_json(const char *kernels, uint32_t processors) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_json json;
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "version", SHOAL_VERSION);
  shoal_json_text(&json, "kernels", kernels);
  shoal_json_int(&json, "processors", processors);
  shoal_json_text(&json, "architecture", ARCHITECTURE);
  shoal_json_text(&json, "compiler", COMPILER);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static int run(int argc, char **argv) {
  bool as_json = false;
  const shoal_option options[] = {
      {.name = "json", .flag = &as_json, .help = "one line of JSON"},
  };
  const shoal_usage usage = {
      .command = "version",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about = "Prints the version, the numeric kernels that were chosen for this processor, and what "
               "Shoal was built with. The environment variable SHOAL_KERNELS (baseline, avx2, "
               "avx512 or neon) chooses other kernels: they differ in speed only.",
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal version\n"
                  "  SHOAL_KERNELS=baseline shoal version\n",
  };
  shoal_operands operands;
  int status;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, &status)) return status;

  const shoal_kernels *kernels = shoal_kernels_get();
  const char *kernels_name = kernels ? kernels->name : "none: SHOAL_KERNELS names none that runs here";
  uint32_t processors = shoal_cli_threads();
  if (as_json) {
    print_json(kernels_name, processors);
  } else {
    printf("shoal " SHOAL_VERSION "\n");
    printf("kernels   %s\n", kernels_name);
    printf("machine   %s, %u processor%s\n", ARCHITECTURE, processors, processors == 1 ? "" : "s");
    printf("compiler  %s\n", COMPILER);
    printf("with      zlib %s, %s, cJSON %s\n", zlibVersion(), OpenSSL_version(OPENSSL_VERSION),
           cJSON_Version());
  }
  return shoal_cli_finish("version", SHOAL_EXIT_OK);
}

const shoal_command shoal_command_version = {"version", "the version and what this machine offers", run};
