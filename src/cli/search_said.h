/* search_said.h: what the words of `shoal search` say of columns, and whether they agree with an earlier search.
 *
 * Ownership: stated at each. Threads: none. */
#ifndef SHOAL_CLI_SEARCH_SAID_H
#define SHOAL_CLI_SEARCH_SAID_H

#include "search/search.h"

enum { SHOAL_COLUMNS_SAID_MAX = 256 };

/* "age=number,zip=category,note=skip"; a name with a comma or an equals sign stands in quotes, as in a CSV
 * file: "a,b"=category. The names point into `words`, which is changed. */
shoal_status shoal_search_said_columns(char *words, shoal_column_said out[SHOAL_COLUMNS_SAID_MAX],
                                       size_t *count, shoal_error *err);

/* With --resume: that what is said again is what the search in options->folder began with; the error names what
 * differs. Options that are unset (NULL, 0, a negative share) were not said; those two say so themselves. */
shoal_status shoal_search_said_again(const shoal_search_options *options, bool scheduler_said, bool seed_said,
                                     shoal_error *err);

#endif
