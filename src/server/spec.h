/* spec.h: what a host submits: a training as JSON, checked field by field.
 *
 * What the fields of the recipe say (epochs, batch, rate ...) goes into the model's text, so that the text alone
 * is the training from then on. The JSON that is written is the JSON that is read.
 *
 * Ownership: parse, then release. Threads: none. */
#ifndef SHOAL_SERVER_SPEC_H
#define SHOAL_SERVER_SPEC_H

#include "base/json.h"
#include "base/text.h"
#include "nn/model.h"
#include "proto/aggregate.h"

enum { SHOAL_SPEC_NAME_MAX = 64, SHOAL_SPEC_MODEL_MAX = 1 << 20, SHOAL_SPEC_WORKERS_MAX = 1000 };

typedef struct shoal_spec {
  shoal_text name, model, data, target; /* target is empty for the last column */
  char mode[32], wire[8];
  double valid_share;
  bool guarded;    /* volunteers are not believed: proto/guard.h; so it is unless somebody says no */
  shoal_rule rule; /* how contributions become one: proto/aggregate.h */
  uint32_t workers_min, workers_max;
  bool is_private;
  shoal_model *parsed; /* what `model` says */
} shoal_spec;

/* What an error is about: the field, or "". With an error in the model's text, line and column are where, else 0. */
typedef struct shoal_spec_fault {
  char field[32];
  uint32_t line, column;
} shoal_spec_fault;

shoal_status shoal_spec_parse(shoal_spec *out, const char *json, size_t length, shoal_spec_fault *fault,
                              shoal_error *err);
void shoal_spec_release(shoal_spec *spec);
/* The fields of the object, into one that is open. with_model: its text too. */
void shoal_spec_write(const shoal_spec *spec, bool with_model, shoal_json *json);
/* How many contributions a round will have, which follows from the model and the batch, or in mode local from
 * the workers; 0: that cannot be said yet. */
uint32_t shoal_spec_contributions(const shoal_spec *spec);
/* {"optimizer","rate","batch","epochs","schedule","seed","early_stop"} as a member "recipe". */
void shoal_spec_write_recipe(const shoal_recipe *recipe, shoal_json *json);
/* Raises the epochs, for a training that goes on. */
shoal_status shoal_spec_set_epochs(shoal_spec *spec, uint32_t epochs, shoal_error *err);

/* A name for jobs, models, data sets and tokens: UTF-8 of 1 to SHOAL_SPEC_NAME_MAX bytes, without control characters
 * and / \\ : * ? " < > | % #, that neither begins with a dot nor begins or ends with a blank. */
bool shoal_spec_name_is_good(const char *name);
/* A default name: as shoal_text_plain, but where not all fits it ends in "…". `size` is above 4. */
void shoal_spec_name_shorten(char *to, size_t size, const char *from, size_t length);

/* Where an error of shoal_model_parse says the fault is: "name:3:8: text" becomes line 3, column 8 and the text. */
void shoal_spec_place(const char *name, const shoal_error *err, uint32_t *line, uint32_t *column,
                      const char **text);

#endif
