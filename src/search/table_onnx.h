/* table_onnx.h: a model of `shoal search` as an ONNX file that takes raw rows.
 *
 * One input of batch x 1 for every column that the model looks at, called like it: numbers as double, NaN
 * where missing; dates as double, seconds since 1970 in UTC, NaN where missing; categories as string, ""
 * or one of the usual marks ("NA", "?") where missing. Whatever is not a category of the training rows is
 * unseen. Of free text, which ONNX cannot take apart, the input is "NAME.hashed", batch x 64: its words and
 * threes of letters as rows.h has them, int64, -1 where there are fewer.
 *
 * Outputs: "label" (batch, string) and "probabilities" (batch x classes, float), or "value" (batch x 1,
 * double) in the target's own units. Metadata: "shoal.inputs" (JSON: input, column, kind, unit),
 * "shoal.target", "shoal.problem", "shoal.classes" (JSON).
 *
 * The columns are turned into vectors by the same arithmetic as encoder.c, in double up to the vector,
 * with few operators for a network however many columns there are. Opset 17, with texts 18, and version 3
 * of "ai.onnx.ml" for categories.
 *
 * Threads: any, on different paths. */
#ifndef SHOAL_SEARCH_TABLE_ONNX_H
#define SHOAL_SEARCH_TABLE_ONNX_H

#include "search/predictor.h"

/* Written atomically. */
shoal_status shoal_predictor_onnx(const shoal_predictor *predictor, const char *path, shoal_error *err);

#endif
