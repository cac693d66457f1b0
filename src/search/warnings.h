/* warnings.h: what a person should know of columns once the target is known.
 *
 * A column that alone tells the target (nearly) always: it may not be known yet when a prediction is
 * wanted. A column that says the same as another one, value for value. Looked for in at most some ten
 * thousand rows. The warnings stand in the profile's columns.
 *
 * Threads: none. */
#ifndef SHOAL_SEARCH_WARNINGS_H
#define SHOAL_SEARCH_WARNINGS_H

#include "search/split.h"

shoal_status shoal_warn_leaks(shoal_profile *profile, const shoal_rows *rows, uint32_t target,
                              shoal_problem problem, shoal_error *err);

#endif
