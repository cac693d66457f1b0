/* search_check.h: whether a search fits its table, before it is submitted.
 *
 * What a profile tells without reading the rows: whether the columns that are named are there, whether the
 * metric can judge such a target, whether the space is one, and has an end where it must. What only the rows
 * tell (a class with one row, too many classes) is told by shoal_searcher_try, or when the search begins.
 *
 * Threads: any. */
#ifndef SHOAL_SERVER_SEARCH_CHECK_H
#define SHOAL_SERVER_SEARCH_CHECK_H

#include "server/search_spec.h"

/* The profile may have been read with or without what the spec says of columns. */
shoal_status shoal_search_check(const shoal_search_spec *spec, const shoal_profile *profile,
                                shoal_spec_fault *fault, shoal_error *err);

#endif
