/* gather.h: what is gathered of one column, cell by cell, and what kind that makes it.
 *
 * Everything that any kind wants to know is gathered at once, since the kind is known at the end only:
 * numbers and their units, dates read with the day or the month first, different values, lengths.
 *
 * Ownership: init, then release. Threads: none. */
#ifndef SHOAL_SEARCH_GATHER_H
#define SHOAL_SEARCH_GATHER_H

#include "search/distinct.h"
#include "search/profile.h"

typedef struct shoal_moments {
  uint64_t count;
  double mean, squares, min, max; /* squares: of the deviations, added up */
} shoal_moments;

/* The first cell that is not of a kind. */
typedef struct shoal_misfit {
  uint64_t line; /* 0: there is none */
  char text[48];
} shoal_misfit;

enum { SHOAL_AS_NUMBER, SHOAL_AS_MONTH_FIRST, SHOAL_AS_DAY_FIRST, SHOAL_READINGS };

typedef struct shoal_gather {
  const shoal_dialect *dialect;
  uint32_t sample_max;
  uint64_t filled, missing;
  shoal_moments as[SHOAL_READINGS];             /* cells that can be read so */
  double *sample[SHOAL_READINGS];               /* of the rows of the sample; NaN where a cell cannot */
  shoal_misfit misfit[SHOAL_READINGS], largest; /* largest: the first that is too large */
  char unit[SHOAL_UNIT_BYTES];                  /* the first one that came */
  uint64_t fractions;                           /* numbers that are not whole */
  uint64_t codes;                               /* of digits alone, with a zero in front */
  uint64_t wide;                                /* whole, of more digits than a double holds */
  uint64_t steps;                               /* numbers that are one above the last one */
  uint64_t too_large; /* cells such as "inf" and "1e400": numbers that no double holds */
  double last;
  uint64_t bytes, words;
  bool keep_values; /* also of what looks like numbers */
  shoal_distinct distinct;
} shoal_gather;

void shoal_gather_init(shoal_gather *gather, const shoal_dialect *dialect, uint32_t columns,
                       uint32_t sample_max, bool keep_values);
void shoal_gather_release(shoal_gather *gather);
/* place: of the row in the sample, or -1. False without memory. */
bool shoal_gather_cell(shoal_gather *gather, const shoal_csv_cell *cell, int64_t place);

/* Fills in all of the column but its name: kind and used as guessed, or as said (NULL: nothing was). The
 * error, for a kind that the cells do not fit, has no name of the column in front. */
shoal_status shoal_gather_finish(const shoal_gather *gather, const shoal_column_said *said, uint32_t sampled,
                                 shoal_column *out, shoal_error *err);

#endif
