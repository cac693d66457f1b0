/* found.h: what a search on a server has come to, as the server's JSON of the job tells it.
 *
 * Threads: any. */
#ifndef SHOAL_CLI_FOUND_H
#define SHOAL_CLI_FOUND_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct shoal_found {
  bool is_search; /* false: it is something else, and there is nothing else to know */
  uint64_t trials;
  uint64_t best;   /* the trial; 0: none yet */
  double score;    /* of it, on the rows that judge; NaN */
  double test;     /* of the model that was made, on rows that nothing has learned from; NaN */
  double expected; /* of it on new rows; NaN */
  bool higher_is_better;
  char metric[32];               /* "accuracy"; "" before the table was read */
  double share, spent_s, left_s; /* of what it was asked for, 0 to 1; left_s NaN: no limit, or not known */
} shoal_found;

void shoal_found_read(shoal_found *out, const cJSON *job);
/* What the search is worth in a few words: "test accuracy 0.7151" of the model that was made, "expected accuracy
 * 0.7203" where no rows were kept for a test, or, until there is a model, "validation accuracy 0.7912" of the best
 * trial; "-" without any. */
const char *shoal_found_worth(const shoal_found *found, char *out, size_t size);
/* Whether a score is better than the best so far. */
bool shoal_found_is_better(const shoal_found *found, double score);

#endif
