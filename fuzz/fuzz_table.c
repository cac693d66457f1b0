/* fuzz_table.c: any bytes as a table: how it is written, what its columns hold, its rows, and all of it as
 * JSON and back. What is taken must keep what the headers promise; what is refused must say which file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "search/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_column(const shoal_profile *profile, const shoal_column *column) {
  SHOAL_ASSERT(column->name[0] && shoal_utf8_valid(column->name, strlen(column->name)));
  SHOAL_ASSERT(column->missing <= profile->rows && column->distinct <= profile->rows);
  SHOAL_ASSERT(shoal_utf8_valid(column->warning, strlen(column->warning)));
  SHOAL_ASSERT(shoal_utf8_valid(column->unit, strlen(column->unit)));
  if (column->kind == SHOAL_NUMBER || column->kind == SHOAL_DATE) SHOAL_ASSERT(column->min <= column->max);
  uint64_t counted = 0;
  for (uint32_t i = 0; i < column->categories.count; i++) {
    const char *name = shoal_names_at(&column->categories, i);
    SHOAL_ASSERT(shoal_utf8_valid(name, strlen(name)) && column->category_counts[i] > 0);
    counted += column->category_counts[i];
  }
  SHOAL_ASSERT(counted <= profile->rows);
}

/* Out as JSON, in again, and out: the same text. */
static void check_json(const shoal_profile *profile) {
  shoal_text first, second;
  shoal_json json;
  shoal_json_begin(&json, &first);
  shoal_profile_write(profile, &json, NULL);
  cJSON *parsed = first.failed ? NULL : cJSON_ParseWithLength(first.bytes, first.length);
  SHOAL_ASSERT(parsed);
  shoal_profile again;
  shoal_error err;
  SHOAL_ASSERT(shoal_profile_from_json(&again, parsed, &err) == SHOAL_OK);
  shoal_json_begin(&json, &second);
  shoal_profile_write(&again, &json, NULL);
  SHOAL_ASSERT(first.length == second.length && memcmp(first.bytes, second.bytes, first.length) == 0);
  cJSON_Delete(parsed);
  shoal_text_release(&first);
  shoal_text_release(&second);
  shoal_profile_release(&again);
}

static void check_rows(const shoal_profile *profile, const char *path) {
  shoal_rows *rows;
  shoal_error err = {0};
  shoal_rows_options options = {.path = path, .profile = profile, .target = profile->columns_count - 1};
  shoal_status status = shoal_rows_open(&rows, &options, &err);
  if (status != SHOAL_OK) {
    SHOAL_ASSERT(!rows && strstr(err.text, path));
    return;
  }
  SHOAL_ASSERT(shoal_rows_count(rows) == profile->rows);
  for (uint64_t r = 0; r < profile->rows; r++) {
    shoal_rows_digest(rows, r);
    for (uint32_t c = 0; c < profile->columns_count; c++) {
      uint32_t category = shoal_rows_category(rows, r, c), count;
      SHOAL_ASSERT(category >= SHOAL_UNSEEN || category < profile->columns[c].categories.count);
      double number = shoal_rows_number(rows, r, c);
      SHOAL_ASSERT(isnan(number) || (number >= profile->columns[c].min && number <= profile->columns[c].max));
      shoal_rows_text(rows, r, c, &count);
      SHOAL_ASSERT(count <= SHOAL_TEXT_HASHES);
    }
  }
  shoal_rows_close(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  if (length >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
    return 0; /* a small gzip file can be a very large table */
  int fd = memfd_create("table", 0);
  SHOAL_ASSERT(fd >= 0);
  SHOAL_ASSERT(length == 0 || write(fd, bytes, length) == (ssize_t)length);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  shoal_profile profile;
  shoal_error err = {0};
  shoal_profile_options options = {.path = path};
  shoal_status status = shoal_profile_read(&profile, &options, &err);
  if (status == SHOAL_OK) {
    SHOAL_ASSERT(profile.rows > 0 && profile.columns_count > 0);
    for (uint32_t i = 0; i < profile.columns_count; i++) check_column(&profile, &profile.columns[i]);
    check_json(&profile);
    check_rows(&profile, path);
    shoal_profile_release(&profile);
  } else {
    SHOAL_ASSERT(strstr(err.text, path) || status == SHOAL_NO_MEMORY);
  }
  close(fd);
  return 0;
}
