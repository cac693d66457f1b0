/* fuzz_options.c: the command line. Each line of the input is one word of it. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#include "cli/options.h"

enum { WORDS_MAX = 64 };

static const char *const fruit[] = {"apple", "pear", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  bool flag = false;
  const char *text = NULL, *choice = NULL;
  uint64_t whole = 5;
  double real = 0.5;
  const shoal_option options[] = {
      {.name = "Heading"},
      {.name = "flag", .flag = &flag, .help = "a flag"},
      {.name = "text", .value = "TEXT", .text = &text, .help = "any text"},
      {.name = "choice", .value = "FRUIT", .text = &choice, .choices = fruit, .help = "a fruit"},
      {.name = "whole", .value = "N", .whole = &whole, .whole_min = 2, .whole_max = 10, .help = "a number"},
      {.name = "real", .value = "X", .real = &real, .real_min = -1, .real_max = 1, .help = "a number"},
  };
  const shoal_usage usage = {
      .command = "fuzz",
      .synopses = (const char *[]){"WORD...", NULL},
      .about = "Reads words.",
      .operand = "WORD",
      .operands_max = 2,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal fuzz\n",
  };

  char *copy = malloc(length + 1);
  SHOAL_ASSERT(copy);
  memcpy(copy, bytes, length);
  copy[length] = 0;
  char *words[WORDS_MAX + 1] = {NULL};
  int count = 0;
  for (char *at = copy; count < WORDS_MAX && at; count++) {
    words[count] = at;
    at = strchr(at, '\n');
    if (at) *at++ = 0;
  }

  shoal_operands operands;
  shoal_error err;
  shoal_parsed parsed = shoal_options_parse(&usage, count, words, &operands, &err);
  SHOAL_ASSERT(operands.count <= usage.operands_max);
  SHOAL_ASSERT(whole >= 2 && whole <= 10);
  SHOAL_ASSERT(real >= -1 && real <= 1);
  SHOAL_ASSERT(!choice || choice == fruit[0] || choice == fruit[1]);
  SHOAL_ASSERT(!text || text[0]);
  if (parsed == SHOAL_PARSED_WRONG) SHOAL_ASSERT(err.status == SHOAL_INVALID && strlen(err.text) > 0);

  shoal_text help;
  shoal_text_init(&help);
  shoal_options_help(&usage, (uint32_t)length, &help);
  shoal_text_release(&help);
  free(copy);
  return 0;
}
