/* search_spec.h: what a host submits to be searched: a table, what to predict, what to try; JSON, checked
 * field by field.
 *
 * {"kind":"search","name","data","target", and what `shoal search` has as options, each where it is not the
 * usual: "columns":{"zip":"category","id":"skip"},"dialect","metric","problem","space","scheduler","budget_s",
 * "trials","folds","valid","test_share","time_column","epochs","seed","private","workers_min",
 * "workers_max"}. The JSON that is written is the JSON that is read.
 *
 * Ownership: parse, then release. Threads: none. */
#ifndef SHOAL_SERVER_SEARCH_SPEC_H
#define SHOAL_SERVER_SEARCH_SPEC_H

#include <cjson/cJSON.h>

#include "search/search.h"
#include "server/spec.h"

enum { SHOAL_SEARCH_COLUMNS_SAID_MAX = 1000, SHOAL_SEARCH_SPACE_MAX = 1 << 20 };

typedef struct shoal_search_spec {
  shoal_text name, data, target, dialect, metric, problem, space, time_column;
  shoal_column_said *columns; /* names are this spec's */
  size_t columns_count;
  shoal_scheduler_kind scheduler;
  double budget_s; /* 0: no limit, then trials is not 0 */
  uint64_t trials, seed;
  uint32_t folds, epochs;
  double valid_share, test_share;
  uint32_t workers_min, workers_max;
  bool is_private;
} shoal_search_spec;

/* What a person says of columns: {"zip":"category","id":"skip"}; NULL or null says nothing. */
shoal_status shoal_columns_said_read(shoal_column_said **out, size_t *count, const cJSON *map,
                                     shoal_error *err);
void shoal_columns_said_release(shoal_column_said *said, size_t count);

shoal_status shoal_search_spec_parse(shoal_search_spec *out, const char *json, size_t length,
                                     shoal_spec_fault *fault, shoal_error *err);
void shoal_search_spec_release(shoal_search_spec *spec);
/* The fields of the object, into one that is open. */
void shoal_search_spec_write(const shoal_search_spec *spec, shoal_json *json);

#endif
