/* spec_read.c: see spec_read.h. */
#include "server/spec_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/human.h"

static const double whole_max = 9007199254740992.0; /* larger ones are not exact as numbers of JSON */

shoal_status shoal_spec_blame(const shoal_spec_reader *r, const char *field, shoal_status status) {
  if (status != SHOAL_OK) snprintf(r->fault->field, sizeof r->fault->field, "%s", field);
  return status;
}

shoal_status shoal_spec_wrong(const shoal_spec_reader *r, const char *field, const char *text) {
  return shoal_spec_blame(r, field, shoal_fail(r->err, SHOAL_INVALID, "\"%s\" %s", field, text));
}

shoal_status shoal_spec_check_fields(const shoal_spec_reader *r, const char *const *fields, size_t count,
                                     const char *what) {
  if (!cJSON_IsObject(r->json)) return shoal_fail(r->err, SHOAL_INVALID, "the body is no JSON object");
  for (const cJSON *item = r->json->child; item != NULL; item = item->next) {
    bool known = false;
    for (size_t i = 0; i < count && !known; i++) known = strcmp(item->string, fields[i]) == 0;
    if (known) continue;
    char field[32], text[64];
    shoal_text_plain(field, sizeof field, item->string, strlen(item->string));
    snprintf(text, sizeof text, "is no field of %s", what);
    return shoal_spec_wrong(r, field, text);
  }
  return SHOAL_OK;
}

const cJSON *shoal_spec_find(const shoal_spec_reader *r, const char *field) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->json, field);
  return cJSON_IsNull(item) ? NULL : item;
}

shoal_status shoal_spec_read_text(const shoal_spec_reader *r, const char *field, size_t most,
                                  shoal_text *out) {
  const cJSON *item = shoal_spec_find(r, field);
  if (item == NULL) return SHOAL_OK;
  if (!cJSON_IsString(item)) return shoal_spec_wrong(r, field, "must be a text");
  if (strlen(item->valuestring) > most) {
    char text[64];
    snprintf(text, sizeof text, "is too long: at most %zu bytes", most);
    return shoal_spec_wrong(r, field, text);
  }
  shoal_text_addf(out, "%s", item->valuestring);
  return out->failed ? shoal_fail(r->err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

/* A bound as people read it: 0, 0.5, 9,007,199,254,740,992. */
static shoal_human bound_text(double bound) {
  shoal_human out;
  if (bound >= 0 && bound <= whole_max && bound == floor(bound)) return shoal_human_count((uint64_t)bound);
  snprintf(out.text, sizeof out.text, "%g", bound);
  return out;
}

shoal_status shoal_spec_read_number(const shoal_spec_reader *r, const char *field, double least, double most,
                                    bool whole, double *out) {
  const cJSON *item = shoal_spec_find(r, field);
  if (item == NULL) return SHOAL_OK;
  char text[128];
  snprintf(text, sizeof text, "must be a %snumber from %s to %s", whole ? "whole " : "",
           bound_text(least).text, bound_text(most).text);
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most) ||
      (whole && item->valuedouble != floor(item->valuedouble)))
    return shoal_spec_wrong(r, field, text);
  *out = item->valuedouble;
  return SHOAL_OK;
}

shoal_status shoal_spec_read_u32(const shoal_spec_reader *r, const char *field, uint32_t least, uint32_t most,
                                 uint32_t *out) {
  double value = *out;
  shoal_status status = shoal_spec_read_number(r, field, least, most, true, &value);
  *out = (uint32_t)value;
  return status;
}

shoal_status shoal_spec_read_u64(const shoal_spec_reader *r, const char *field, uint64_t *out) {
  double value = (double)*out;
  shoal_status status = shoal_spec_read_number(r, field, 0, whole_max, true, &value);
  *out = (uint64_t)value;
  return status;
}

shoal_status shoal_spec_read_flag(const shoal_spec_reader *r, const char *field, bool *out) {
  const cJSON *item = shoal_spec_find(r, field);
  if (item == NULL) return SHOAL_OK;
  if (!cJSON_IsBool(item)) return shoal_spec_wrong(r, field, "must be true or false");
  *out = cJSON_IsTrue(item);
  return SHOAL_OK;
}

shoal_status shoal_spec_read_name(const shoal_spec_reader *r, const char *usual, shoal_text *name) {
  shoal_status status = shoal_spec_read_text(r, "name", SHOAL_SPEC_NAME_MAX, name);
  if (status != SHOAL_OK) return status;
  if (shoal_spec_find(r, "name") == NULL) shoal_text_addf(name, "%s", usual);
  if (name->failed) return shoal_fail(r->err, SHOAL_NO_MEMORY, "out of memory");
  if (shoal_spec_name_is_good(name->bytes != NULL ? name->bytes : "")) return SHOAL_OK;
  return shoal_spec_wrong(r, "name", "must have 1 to 64 bytes, none of them / \\ : * ? \" < > | % #");
}

shoal_status shoal_spec_read_names(const shoal_spec_reader *r, shoal_text *name, shoal_text *data) {
  /* Whether there is such a set is for datasets.h to say. */
  shoal_status status = shoal_spec_read_text(r, "data", SHOAL_SPEC_NAME_MAX, data);
  if (status == SHOAL_OK && data->length == 0)
    status = shoal_spec_wrong(r, "data", "must be the name of a data set");
  return status == SHOAL_OK ? shoal_spec_read_name(r, data->bytes, name) : status;
}

shoal_status shoal_spec_read_workers(const shoal_spec_reader *r, uint32_t *least, uint32_t *most) {
  shoal_status status = shoal_spec_read_u32(r, "workers_min", 1, SHOAL_SPEC_WORKERS_MAX, least);
  if (status == SHOAL_OK) status = shoal_spec_read_u32(r, "workers_max", 1, SHOAL_SPEC_WORKERS_MAX, most);
  if (status == SHOAL_OK && *most < *least)
    status = shoal_spec_wrong(r, "workers_max", "must not be less than \"workers_min\"");
  return status;
}
