/* host_search.h: shoal host TABLE: a search that a server is asked for, as its own JSON
 * (server/search_spec.h).
 *
 * Ownership: everything is borrowed, but what is read, which is released. Threads: one. */
#ifndef SHOAL_CLI_HOST_SEARCH_H
#define SHOAL_CLI_HOST_SEARCH_H

#include "cli/options.h"
#include "cli/search_said.h"

/* What is said of a search and of nothing else; NULL, 0 or a negative share where it is not. */
typedef struct shoal_host_search {
  const char *budget, *space, *metric, *problem, *scheduler, *time_column, *columns, *dialect, *test;
  uint64_t trials, folds;
  double test_share;
  /* What shoal_host_search_read makes of it. */
  double budget_s;
  uint8_t *space_text;
  char *columns_words; /* what the names in `said` point at */
  shoal_column_said said[SHOAL_COLUMNS_SAID_MAX];
  size_t said_count;
} shoal_host_search;

enum { SHOAL_HOST_SEARCH_OPTIONS = 13 }; /* a heading among them */
/* Writes the options' lines of the table. */
void shoal_host_search_declare(shoal_host_search *search, shoal_option lines[SHOAL_HOST_SEARCH_OPTIONS]);
/* The first option of a search that was given; NULL: none. */
const char *shoal_host_search_given(const shoal_host_search *search);

/* Times, columns, and the space's text. */
shoal_status shoal_host_search_read(shoal_host_search *search, shoal_error *err);
void shoal_host_search_release(shoal_host_search *search);
/* The fields, into an object that is open. */
void shoal_host_search_write(const shoal_host_search *search, shoal_json *json);

#endif
