/* json.c: see json.h. One flag is enough state: whether a value stands before the next at this level. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void shoal_json_init(shoal_json *json, shoal_text *out) { *json = (shoal_json){.out = out}; }

void shoal_json_begin(shoal_json *json, shoal_text *out) {
  shoal_text_init(out);
  shoal_json_init(json, out);
}

static void add_quoted(shoal_text *out, const char *value, size_t length) {
  const unsigned char *text = (const unsigned char *)value;
  shoal_text_add(out, "\"", 1);
  for (size_t i = 0; i < length;) {
    size_t bytes = text[i] ? shoal_utf8_character(value + i, length - i) : 1;
    if (bytes == 0) {
      /* A path or a name may hold any bytes; JSON may not. */
      shoal_text_add(out, "\xef\xbf\xbd", 3); /* U+FFFD, the replacement character */
      i++;
      continue;
    }
    if (text[i] == '"' || text[i] == '\\')
      shoal_text_addf(out, "\\%c", text[i]);
    else if (text[i] == '\n')
      shoal_text_add(out, "\\n", 2);
    else if (text[i] == '\t')
      shoal_text_add(out, "\\t", 2);
    else if (text[i] < 0x20)
      shoal_text_addf(out, "\\u%04x", text[i]);
    else
      shoal_text_add(out, text + i, bytes);
    i += bytes;
  }
  shoal_text_add(out, "\"", 1);
}

/* What comes before a value: a comma after the last one, then the key. */
static void begin(shoal_json *json, const char *key) {
  if (json->comma) shoal_text_add(json->out, ",", 1);
  json->comma = true;
  if (key) {
    add_quoted(json->out, key, strlen(key));
    shoal_text_add(json->out, ":", 1);
  }
}

void shoal_json_open(shoal_json *json, const char *key, char bracket) {
  SHOAL_ASSERT(bracket == '{' || bracket == '[');
  begin(json, key);
  shoal_text_add(json->out, &bracket, 1);
  json->comma = false;
}

void shoal_json_close(shoal_json *json, char bracket) {
  SHOAL_ASSERT(bracket == '}' || bracket == ']');
  shoal_text_add(json->out, &bracket, 1);
  json->comma = true;
}

void shoal_json_text(shoal_json *json, const char *key, const char *value) {
  shoal_json_text_n(json, key, value, strlen(value));
}

void shoal_json_text_n(shoal_json *json, const char *key, const char *value, size_t length) {
  begin(json, key);
  add_quoted(json->out, value, length);
}

void shoal_json_real(shoal_json *json, const char *key, double value) {
  begin(json, key);
  if (!isfinite(value)) {
    shoal_text_add(json->out, "null", 4);
    return;
  }
  /* 15 digits are often enough, 17 always. */
  char digits[40];
  for (int precision = 15; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (strtod(digits, NULL) == value) break;
  }
  shoal_text_add(json->out, digits, strlen(digits));
}

void shoal_json_int(shoal_json *json, const char *key, int64_t value) {
  begin(json, key);
  shoal_text_addf(json->out, "%lld", (long long)value);
}

void shoal_json_bool(shoal_json *json, const char *key, bool value) {
  begin(json, key);
  shoal_text_addf(json->out, "%s", value ? "true" : "false");
}

void shoal_json_null(shoal_json *json, const char *key) { shoal_json_raw(json, key, "null", 4); }

void shoal_json_raw(shoal_json *json, const char *key, const char *value, size_t length) {
  begin(json, key);
  shoal_text_add(json->out, value, length);
}
