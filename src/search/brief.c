/* brief.c: a search's brief as JSON, and back; see trial.h. */
#include <stdio.h>
#include <string.h>

#include "base/json_at.h"
#include "search/trial.h"

enum { VERSION = 1 };

void shoal_brief_init(shoal_brief *brief) {
  *brief = (shoal_brief){.split = {.time_column = UINT32_MAX}};
  shoal_profile_init(&brief->profile);
  shoal_target_init(&brief->target);
}

void shoal_brief_release(shoal_brief *brief) {
  shoal_profile_release(&brief->profile);
  shoal_target_release(&brief->target);
  shoal_space_release(&brief->space);
  shoal_brief_init(brief);
}

/* A whole number of 64 bits, which JSON's doubles cannot hold. */
static void write_u64(shoal_json *json, const char *key, uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
  shoal_json_text(json, key, digits);
}

void shoal_brief_write(const shoal_brief *brief, shoal_text *out) {
  shoal_json json;
  shoal_text space;
  shoal_text_init(&space);
  shoal_space_write(&brief->space, &space);
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "version", VERSION);
  shoal_profile_write(&brief->profile, &json, "profile");
  shoal_target_write(&brief->target, &json, "target");
  shoal_json_open(&json, "split", '{');
  write_u64(&json, "seed", brief->split.seed);
  shoal_json_real(&json, "test_share", brief->split.test_share);
  shoal_json_real(&json, "valid_share", brief->split.valid_share);
  shoal_json_int(&json, "folds", brief->split.folds);
  if (brief->split.time_column != UINT32_MAX) shoal_json_int(&json, "time_column", brief->split.time_column);
  shoal_json_close(&json, '}');
  shoal_json_text_n(&json, "space", space.bytes ? space.bytes : "", space.length);
  shoal_json_text(&json, "metric", shoal_score_name(brief->metric));
  shoal_json_int(&json, "epochs", brief->epochs);
  shoal_json_int(&json, "patience", brief->patience);
  write_u64(&json, "epoch_rows", brief->epoch_rows);
  write_u64(&json, "seed", brief->seed);
  shoal_json_close(&json, '}');
  out->failed |= space.failed;
  shoal_text_release(&space);
}

/* ---- reading ------------------------------------------------------------------------ */

static const double SHARE_MAX = 0x1.fffffffffffffp-1; /* the largest below 1: not all rows may be held back */

static bool read_u64(const cJSON *json, const char *key, uint64_t *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsString(item) && shoal_read_u64(item->valuestring, strlen(item->valuestring), out);
}

static bool read_split(shoal_brief *brief, const cJSON *json) {
  shoal_split_options *split = &brief->split;
  if (!read_u64(json, "seed", &split->seed) ||
      !shoal_read_real_at(json, "test_share", 0, SHARE_MAX, &split->test_share) ||
      !shoal_read_real_at(json, "valid_share", 0, SHARE_MAX, &split->valid_share) ||
      !shoal_read_u32_at(json, "folds", UINT32_MAX - 1, &split->folds) || split->folds > SHOAL_FOLDS_MAX)
    return false;
  if (!cJSON_HasObjectItem(json, "time_column")) return true;
  if (!shoal_read_u32_at(json, "time_column", UINT32_MAX - 1, &split->time_column) ||
      split->time_column >= brief->profile.columns_count)
    return false;
  shoal_column_kind kind = brief->profile.columns[split->time_column].kind;
  return kind == SHOAL_NUMBER || kind == SHOAL_DATE;
}

static bool read_settings(shoal_brief *brief, const cJSON *json) {
  const cJSON *metric = cJSON_GetObjectItemCaseSensitive(json, "metric");
  return read_split(brief, cJSON_GetObjectItemCaseSensitive(json, "split")) && cJSON_IsString(metric) &&
         shoal_score_parse(metric->valuestring, &brief->metric) &&
         shoal_score_fits(brief->metric, brief->target.problem) &&
         shoal_read_u32_at(json, "epochs", UINT32_MAX - 1, &brief->epochs) && brief->epochs >= 1 &&
         brief->epochs <= SHOAL_CURVE_MAX &&
         shoal_read_u32_at(json, "patience", UINT32_MAX - 1, &brief->patience) &&
         read_u64(json, "epoch_rows", &brief->epoch_rows) && read_u64(json, "seed", &brief->seed);
}

static shoal_status read_space(shoal_brief *brief, const cJSON *json, shoal_error *err) {
  const cJSON *space = cJSON_GetObjectItemCaseSensitive(json, "space");
  if (!cJSON_IsString(space)) return shoal_fail(err, SHOAL_CORRUPT, "the search's brief has no 'space'");
  shoal_space_usual(&brief->space, brief->profile.rows, brief->profile.columns_count);
  return shoal_space_parse(&brief->space, "the search's space", space->valuestring,
                           strlen(space->valuestring), err);
}

shoal_status shoal_brief_read(shoal_brief *out, const char *text, size_t length, shoal_error *err) {
  shoal_brief_init(out);
  cJSON *json = cJSON_ParseWithLength(text, length);
  uint32_t version;
  shoal_status status = SHOAL_OK;
  if (!cJSON_IsObject(json) || !shoal_read_u32_at(json, "version", UINT32_MAX - 1, &version))
    status = shoal_fail(err, SHOAL_CORRUPT, "the search's brief is not JSON of Shoal's");
  else if (version != VERSION)
    status = shoal_fail(err, SHOAL_UNSUPPORTED,
                        "the search's brief is of version %u; this Shoal reads version %d", version, VERSION);
  if (status == SHOAL_OK)
    status = shoal_profile_from_json(&out->profile, cJSON_GetObjectItemCaseSensitive(json, "profile"), err);
  if (status == SHOAL_OK)
    status =
        shoal_target_read(&out->target, cJSON_GetObjectItemCaseSensitive(json, "target"), &out->profile, err);
  if (status == SHOAL_OK && !read_settings(out, json))
    status = shoal_fail(err, SHOAL_CORRUPT,
                        "the search's brief is damaged: parts, metric, epochs or seed do not fit");
  if (status == SHOAL_OK) status = read_space(out, json, err);
  cJSON_Delete(json);
  if (status != SHOAL_OK) shoal_brief_release(out);
  return status;
}
