/* fuzz_predictor.c: any bytes are refused, or make a model that answers for any row. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"
#include "search/predictor.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A row whose cells are all missing, and one whose cells are all the same. */
static void answer(const shoal_predictor *predictor) {
  const shoal_profile *profile = shoal_predictor_profile(predictor);
  const shoal_target *target = shoal_predictor_target(predictor);
  uint32_t columns = profile->columns_count;
  const char **cells = calloc(2 * (size_t)columns, sizeof *cells);
  double *out = calloc(2 * (size_t)(target->classes.count + 1), sizeof *out);
  shoal_rows *rows = NULL;
  SHOAL_ASSERT(cells != NULL && out != NULL);
  for (uint32_t c = 0; c < columns; c++) cells[columns + c] = "2024";
  if (shoal_rows_of_cells(&rows, profile, target->column, cells, 2, NULL) == SHOAL_OK)
    SHOAL_ASSERT(shoal_predictor_run(predictor, rows, NULL, 1, out, NULL) == SHOAL_OK);
  shoal_rows_close(rows);
  free(cells);
  free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_predictor *predictor;
  if (shoal_predictor_parse(&predictor, "fuzz", bytes, length, NULL) != SHOAL_OK) return 0;
  answer(predictor);
  shoal_predictor_destroy(predictor);
  return 0;
}
