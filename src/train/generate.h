/* generate.h: lets a text model go on from a beginning.
 *
 * The model is built anew with one step and with carried state, and fed its own words.
 * Threads: none. */
#ifndef SHOAL_TRAIN_GENERATE_H
#define SHOAL_TRAIN_GENERATE_H

#include "data/dataset.h"
#include "nn/graph.h"

typedef struct shoal_generate_options {
  const char *prompt;
  uint64_t length;    /* tokens to add */
  double temperature; /* 0: always the likeliest; 1: as the model says; more: wilder */
  uint64_t seed;
} shoal_generate_options;

/* The one who writes. */
typedef struct shoal_generate_model {
  const char *name;         /* for errors: the file it comes from */
  const shoal_graph *graph; /* of a model whose input is tokens */
  const float *weights;     /* of the graph */
  const shoal_dataset *vocabulary;
} shoal_generate_model;

/* Calls `write` with each piece of text as it comes, the prompt first. */
shoal_status shoal_generate(const shoal_generate_model *from, const shoal_generate_options *options,
                            void (*write)(void *context, const char *text, size_t length), void *context,
                            shoal_error *err);

#endif
