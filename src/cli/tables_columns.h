/* tables_columns.h: the columns of a table for people: what each was taken for, a line a column.
 *
 * Ownership: nothing is kept. Threads: any. */
#ifndef SHOAL_CLI_TABLES_COLUMNS_H
#define SHOAL_CLI_TABLES_COLUMNS_H

#include "search/profile.h"

/* All columns: "  age   number   18 to 80, 11% missing", a line each; of more than 30 the target so, then the
 * others one behind the other, kind by kind. */
void shoal_tables_columns_text(const shoal_profile *profile, uint32_t target, shoal_text *out);
/* An array of objects, all columns: name, kind, use ("feature", "target" or "none"), missing, distinct, and of
 * numbers min and max. */
void shoal_tables_columns_json(const shoal_profile *profile, uint32_t target, shoal_json *json,
                               const char *key);

#endif
