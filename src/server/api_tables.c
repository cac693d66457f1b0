/* api_tables.c: POST /api/v1/datasets/NAME/profile: a table as it would be read with a person's
 * corrections. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "data/csv_file.h"
#include "server/api.h"
#include "server/folders.h"
#include "server/search_spec.h"

enum { PREVIEW_ROWS = 20, PREVIEW_CELL_MAX = 200 };

/* A request that waits for the thread of chores. */
typedef struct viewing {
  shoal_kept_call kept;
  shoal_set_table table;
  shoal_dialect_said dialect;
  shoal_column_said *columns;
  size_t columns_count;
  shoal_text answer;
  shoal_status status;
  shoal_error err;
} viewing;

static void release(viewing *v) {
  shoal_api_release_call(&v->kept);
  shoal_columns_said_release(v->columns, v->columns_count);
  shoal_set_table_release(&v->table);
  free(v);
}

static void write_row(const shoal_csv *csv, shoal_json *json) {
  shoal_json_open(json, NULL, '[');
  for (uint32_t c = 0; c < csv->cells_count; c++) {
    size_t length = csv->cells[c].length;
    while (length > PREVIEW_CELL_MAX) length = PREVIEW_CELL_MAX;
    while (length < csv->cells[c].length && length > 0 && (csv->cells[c].text[length] & 0xC0) == 0x80)
      length--; /* no half characters */
    shoal_json_text_n(json, NULL, csv->cells[c].text, length);
  }
  shoal_json_close(json, ']');
}

/* The first rows, the header apart. */
static shoal_status write_preview(const viewing *v, const shoal_dialect *dialect, shoal_json *json,
                                  shoal_error *err) {
  shoal_csv_file file;
  shoal_csv csv = {0};
  shoal_status status = shoal_csv_file_open(&file, v->table.path.bytes, NULL, err);
  if (status != SHOAL_OK) return status;
  status = shoal_csv_file_read(&file, dialect, &csv, err);
  bool more = true, skips = dialect->header;
  shoal_json_open(json, "preview", '[');
  for (uint32_t r = 0; r < PREVIEW_ROWS && status == SHOAL_OK && more;) {
    status = shoal_csv_next(&csv, &more, err);
    if (status != SHOAL_OK || !more) break;
    if (!skips) {
      write_row(&csv, json);
      r++;
    }
    skips = false;
  }
  shoal_json_close(json, ']');
  shoal_csv_release(&csv);
  shoal_csv_file_close(&file);
  return status;
}

static void view(void *self) {
  viewing *v = self;
  shoal_profile profile;
  shoal_json json;
  shoal_profile_init(&profile);
  const shoal_profile_options options = {.path = v->table.path.bytes,
                                         .dialect = v->dialect,
                                         .said = v->columns,
                                         .said_count = v->columns_count,
                                         .seed = 1};
  v->status = shoal_profile_read(&profile, &options, &v->err);
  if (v->status == SHOAL_OK) {
    shoal_json_begin(&json, &v->answer);
    shoal_json_open(&json, NULL, '{');
    shoal_profile_write(&profile, &json, "profile");
    v->status = write_preview(v, &profile.dialect, &json, &v->err);
    shoal_json_close(&json, '}');
  }
  shoal_profile_release(&profile);
}

static void answer(void *self, bool ran) {
  viewing *v = self;
  if (!ran) v->status = shoal_fail(&v->err, SHOAL_STOPPED, "the server is being stopped");
  if (v->status == SHOAL_CORRUPT || v->status == SHOAL_UNSUPPORTED) v->err.status = SHOAL_INVALID;
  if (v->status != SHOAL_OK) shoal_cut_path(v->err.text, v->table.path.bytes, 1);
  shoal_api_finish(&v->kept.call, 200, v->status, &v->answer, &v->err);
  release(v);
}

/* What the body says, and of the dialect else what was said of the set; answers when it is wrong. */
static bool read_body(const shoal_api_call *call, viewing *v) {
  if (v->table.dialect.length > 0)
    (void)shoal_dialect_say(&v->dialect, "dialect", v->table.dialect.bytes, NULL); /* it was good then */
  if (call->request->body == NULL || shoal_blob_length(call->request->body) == 0) return true;
  cJSON *body = shoal_api_body(call);
  if (body == NULL) return false;
  shoal_error err;
  const cJSON *dialect = cJSON_GetObjectItemCaseSensitive(body, "dialect");
  shoal_status status = shoal_columns_said_read(&v->columns, &v->columns_count,
                                                cJSON_GetObjectItemCaseSensitive(body, "columns"), &err);
  if (status != SHOAL_OK) {
    shoal_api_error_at(call, 422, err.text, "columns", 0, 0);
  } else if (cJSON_IsString(dialect) && dialect->valuestring[0] != 0) {
    v->dialect = (shoal_dialect_said){0};
    status = shoal_dialect_say(&v->dialect, "dialect", dialect->valuestring, &err);
    if (status != SHOAL_OK) shoal_api_error_at(call, 422, err.text, "dialect", 0, 0);
  }
  cJSON_Delete(body);
  return status == SHOAL_OK;
}

void shoal_api_profile_dataset(const shoal_api_call *call) {
  shoal_error err;
  viewing *v = calloc(1, sizeof *v);
  if (v == NULL) {
    shoal_api_error(call, 503, "out of memory");
    return;
  }
  const shoal_chore chore = {.subject = "", .self = v, .run = view, .done = answer};
  if (shoal_datasets_table(call->api->datasets, call->names[0], &v->table, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    release(v);
  } else if (!read_body(call, v)) {
    release(v);
  } else if (!shoal_api_keep_call(&v->kept, call) || !shoal_chores_add(call->api->chores, &chore)) {
    shoal_api_error(call, 503, "too many wait already; try again");
    release(v);
  }
}
