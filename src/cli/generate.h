/* generate.h: lets a text model go on from a beginning.
 *
 * The model is built anew with one step and with carried state, and fed its own words.
 * Threads: none. */
#ifndef SHOAL_CLI_GENERATE_H
#define SHOAL_CLI_GENERATE_H

#include "base/text.h"
#include "cli/loaded.h"

typedef struct shoal_generate_options {
  const char *prompt;
  uint64_t length;    /* tokens to add */
  double temperature; /* 0: always the likeliest; 1: as the model says; more: wilder */
  uint64_t seed;
} shoal_generate_options;

/* Calls `write` with each piece of text as it comes, the prompt first. */
shoal_status shoal_generate(const shoal_loaded *loaded, const shoal_generate_options *options,
                            void (*write)(void *context, const char *text, size_t length), void *context,
                            shoal_error *err);

#endif
