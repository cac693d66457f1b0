/* spec_read.h: fields of a job's JSON, read one by one: what specs of all kinds have in common.
 *
 * Every error names the field, in its text and in the fault. A field that is not there, or null, leaves
 * what *out has.
 *
 * Ownership: everything is borrowed for the call. Threads: none. */
#ifndef SHOAL_SERVER_SPEC_READ_H
#define SHOAL_SERVER_SPEC_READ_H

#include <cjson/cJSON.h>

#include "server/spec.h"

typedef struct shoal_spec_reader {
  const cJSON *json;
  shoal_spec_fault *fault;
  shoal_error *err;
} shoal_spec_reader;

/* SHOAL_INVALID: "FIELD" text. */
shoal_status shoal_spec_wrong(const shoal_spec_reader *reader, const char *field, const char *text);
/* What an error of something else is about; returns the status. */
shoal_status shoal_spec_blame(const shoal_spec_reader *reader, const char *field, shoal_status status);

/* That it is an object with none but these fields; what: "a job". */
shoal_status shoal_spec_check_fields(const shoal_spec_reader *reader, const char *const *fields, size_t count,
                                     const char *what);
const cJSON *shoal_spec_find(const shoal_spec_reader *reader,
                             const char *field); /* NULL: not there, or null */
/* At most so many bytes. */
shoal_status shoal_spec_read_text(const shoal_spec_reader *reader, const char *field, size_t most,
                                  shoal_text *out);
shoal_status shoal_spec_read_number(const shoal_spec_reader *reader, const char *field, double least,
                                    double most, bool whole, double *out);
shoal_status shoal_spec_read_u32(const shoal_spec_reader *reader, const char *field, uint32_t least,
                                 uint32_t most, uint32_t *out);
shoal_status shoal_spec_read_u64(const shoal_spec_reader *reader, const char *field, uint64_t *out);
shoal_status shoal_spec_read_flag(const shoal_spec_reader *reader, const char *field, bool *out);

/* "name", which is `usual` unless it is given. */
shoal_status shoal_spec_read_name(const shoal_spec_reader *reader, const char *usual, shoal_text *name);
/* "name", which is "data" unless it is given, and "data"; "workers_min" and "workers_max". */
shoal_status shoal_spec_read_names(const shoal_spec_reader *reader, shoal_text *name, shoal_text *data);
shoal_status shoal_spec_read_workers(const shoal_spec_reader *reader, uint32_t *least, uint32_t *most);

#endif
