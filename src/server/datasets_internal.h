/* datasets_internal.h: what datasets.c and datasets_check.c share. */
#ifndef SHOAL_SERVER_DATASETS_INTERNAL_H
#define SHOAL_SERVER_DATASETS_INTERNAL_H

#include "data/named.h"
#include "server/datasets.h"

/* The manifest of a draft or an uploaded set, in its folder, as shoal_kept_write leaves it. */
#define SHOAL_SET_MANIFEST ".manifest"

/* The files in the order that --data wants them in: of two CSV files, the one for test last. */
void shoal_set_files_order(shoal_set_files *files, const char *kind);

/* Reads the files as that kind and adds a description (JSON) to *out: all that DATASET has, but for name,
 * owner, built_in and created. named: the catalogue's entry where it is one of those, else NULL. Errors
 * name files without their folder; SHOAL_INVALID says that the files are wrong. */
shoal_status shoal_set_describe(shoal_set_files *files, const shoal_set_said *said,
                                const shoal_named_set *named, shoal_text *out, shoal_error *err);

#endif
