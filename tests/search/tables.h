/* tables.h: what the tests of tables share: a folder of their own, small files, a profile of one. */
#ifndef SHOAL_TESTS_SEARCH_TABLES_H
#define SHOAL_TESTS_SEARCH_TABLES_H

#include "../data/files.h"

#include "search/rows.h"

static inline shoal_profile profile_of(const char *path) {
  shoal_profile profile;
  shoal_error err;
  if (shoal_profile_read(&profile, &(shoal_profile_options){.path = path}, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  return profile;
}

static inline const shoal_column *column_of(const shoal_profile *profile, const char *name) {
  uint32_t column;
  shoal_error err;
  if (shoal_profile_find(profile, name, &column, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return &profile->columns[column];
}

static inline void check_kind(const shoal_profile *profile, const char *name, shoal_column_kind kind) {
  const shoal_column *column = column_of(profile, name);
  if (column->kind != kind)
    fail_msg("'%s' is a %s, not a %s", name, shoal_column_kind_name(column->kind),
             shoal_column_kind_name(kind));
}

#endif
