/* json_at.c: see json_at.h. */
#include "base/json_at.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

static const uint64_t EXACT_MAX = ((uint64_t)1 << 53) - 1;

static const cJSON *at(const cJSON *json, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(json, key);
}

const char *shoal_find_text(const cJSON *json, const char *key) {
  return cJSON_GetStringValue(at(json, key));
}

const char *shoal_text_at(const cJSON *json, const char *key) {
  const char *text = shoal_find_text(json, key);
  return text != NULL ? text : "";
}

double shoal_number_at(const cJSON *json, const char *key) {
  const cJSON *item = at(json, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

uint64_t shoal_whole_at(const cJSON *json, const char *key) {
  double number = shoal_number_at(json, key);
  return number >= 0 && number < 1e18 ? (uint64_t)number : 0;
}

const char *shoal_plain_at(const cJSON *json, const char *key, char *out, size_t size) {
  const char *text = shoal_text_at(json, key);
  shoal_text_plain(out, size, text, strlen(text));
  return out;
}

bool shoal_read_whole(const cJSON *item, uint64_t most, uint64_t *out) {
  double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
  if (most > EXACT_MAX) most = EXACT_MAX;
  if (!(number >= 0 && number <= (double)most) || floor(number) != number) return false;
  *out = (uint64_t)number;
  return true;
}

bool shoal_read_whole_at(const cJSON *json, const char *key, uint64_t most, uint64_t *out) {
  return shoal_read_whole(at(json, key), most, out);
}

bool shoal_read_u32_at(const cJSON *json, const char *key, uint32_t most, uint32_t *out) {
  uint64_t number;
  if (!shoal_read_whole_at(json, key, most, &number)) return false;
  *out = (uint32_t)number;
  return true;
}

bool shoal_read_real_at(const cJSON *json, const char *key, double least, double most, double *out) {
  *out = shoal_number_at(json, key);
  return isfinite(*out) && *out >= least && *out <= most;
}

bool shoal_read_flag_at(const cJSON *json, const char *key, bool *out) {
  const cJSON *item = at(json, key);
  *out = cJSON_IsTrue(item);
  return cJSON_IsBool(item);
}
