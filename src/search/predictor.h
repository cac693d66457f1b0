/* predictor.h: a model that takes raw rows: networks, how much each counts, and what turns cells into
 * vectors.
 *
 * In one safetensors file: metadata "shoal.predictor" (JSON: version, target, metric, scores, members with
 * model text and share), the profile as a tensor of bytes (JSON, too), and member by member tensors
 * "0.dense1.weight" and so on and the encoder's vectors, "0.encoder.numbers" and so on. Files of version 1
 * have profile and encoders in the metadata, which is too small for thousands of columns; they are read as
 * well. What `shoal search` leaves behind; `shoal eval` and `shoal predict` read it, `shoal export` writes
 * ONNX with the preprocessing inside.
 *
 * Ownership: build or load, then destroy. Threads: predict from many at once. */
#ifndef SHOAL_SEARCH_PREDICTOR_H
#define SHOAL_SEARCH_PREDICTOR_H

#include "search/trial.h"

enum { SHOAL_MEMBERS_MAX = 256 };

typedef struct shoal_predictor shoal_predictor;

/* Whether a file is one: for commands that take models of both kinds. False also where it cannot be read. */
bool shoal_predictor_is(const char *path);

/* Networks are moved in; shares add up to 1. profile and target are copied. */
shoal_status shoal_predictor_create(shoal_predictor **out, const shoal_profile *profile,
                                    const shoal_target *target, shoal_score_kind metric, shoal_error *err);
shoal_status shoal_predictor_add(shoal_predictor *predictor, shoal_trial_net *net, double share,
                                 uint64_t trial, shoal_error *err);
shoal_status shoal_predictor_save(const shoal_predictor *predictor, const char *path, shoal_error *err);
shoal_status shoal_predictor_load(shoal_predictor **out, const char *path, shoal_error *err);
/* From the bytes of a file; `name` is what errors call it. */
shoal_status shoal_predictor_parse(shoal_predictor **out, const char *name, const uint8_t *bytes,
                                   size_t length, shoal_error *err);
void shoal_predictor_destroy(shoal_predictor *predictor);

const shoal_profile *shoal_predictor_profile(const shoal_predictor *predictor);
const shoal_target *shoal_predictor_target(const shoal_predictor *predictor);
shoal_score_kind shoal_predictor_metric(const shoal_predictor *predictor);
/* All scores of the networks together on the rows that they were chosen by; NaN until they are set. */
void shoal_predictor_set_valid(shoal_predictor *predictor, const shoal_scores *scores);
const shoal_scores *shoal_predictor_valid(const shoal_predictor *predictor);
/* What the metric is expected to be on other rows: see estimate.h. NaN until it is set. */
void shoal_predictor_set_estimate(shoal_predictor *predictor, const shoal_estimate *estimate);
const shoal_estimate *shoal_predictor_estimate(const shoal_predictor *predictor);
/* Likewise on rows that nothing else has seen, and how many had an answer; 0: there are none, or the file is older. */
void shoal_predictor_set_test(shoal_predictor *predictor, const shoal_scores *scores, uint64_t rows);
const shoal_scores *shoal_predictor_test(const shoal_predictor *predictor, uint64_t *rows);
uint32_t shoal_predictor_members(const shoal_predictor *predictor);
/* One member, for export. */
const shoal_trial_net *shoal_predictor_member(const shoal_predictor *predictor, uint32_t i, double *share);
uint64_t shoal_predictor_trial(const shoal_predictor *predictor, uint32_t i); /* that it comes from */

/* Probabilities (rows x classes), or numbers in the target's own units (rows). */
shoal_status shoal_predictor_run(const shoal_predictor *predictor, const shoal_rows *rows,
                                 const shoal_row_list *list, uint32_t threads, double *out, shoal_error *err);
/* The class of a row's values that is likeliest. */
uint32_t shoal_prediction_class(const shoal_target *target, const double *values);
/* Adds to an open object: "value", or "class", "probability" and "probabilities", a member for each class. */
void shoal_prediction_write(const shoal_target *target, const double *values, shoal_json *json);
/* How good what shoal_predictor_run has given is. */
shoal_status shoal_predictor_judge(const shoal_predictor *predictor, const shoal_rows *rows,
                                   const shoal_row_list *list, const double *predicted, shoal_scores *out,
                                   shoal_error *err);
shoal_status shoal_predictor_scores(const shoal_predictor *predictor, const shoal_rows *rows,
                                    const shoal_row_list *list, uint32_t threads, shoal_scores *out,
                                    shoal_error *err);

#endif
