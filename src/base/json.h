/* json.h: JSON written piece by piece into a shoal_text.
 *
 * Commas and quotes take care of themselves; NaN and infinities become null.
 * cJSON parses what is read, json_at.h takes the fields. Ownership: the text is the caller's. */
#ifndef SHOAL_BASE_JSON_H
#define SHOAL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

typedef struct shoal_json {
  shoal_text *out;
  bool comma; /* a value was written at this level */
} shoal_json;

void shoal_json_init(shoal_json *json, shoal_text *out);
void shoal_json_begin(shoal_json *json, shoal_text *out); /* likewise, with a text that is new */
/* key is NULL inside arrays and for the outermost value. */
void shoal_json_open(shoal_json *json, const char *key, char bracket); /* '{' or '[' */
void shoal_json_close(shoal_json *json, char bracket);                 /* '}' or ']' */
void shoal_json_text(shoal_json *json, const char *key, const char *value);
void shoal_json_text_n(shoal_json *json, const char *key, const char *value, size_t length);
void shoal_json_real(shoal_json *json, const char *key, double value); /* shortest that reads back */
void shoal_json_int(shoal_json *json, const char *key, int64_t value);
void shoal_json_bool(shoal_json *json, const char *key, bool value);
void shoal_json_null(shoal_json *json, const char *key);
/* A value that is JSON already. */
void shoal_json_raw(shoal_json *json, const char *key, const char *value, size_t length);

#endif
