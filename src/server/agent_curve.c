/* agent_curve.c: see agent_curve.h. */
#include "server/agent_curve.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* All of it; NULL and 0 bytes where there is no file. */
static shoal_status read_all(const char *path, char **out, size_t *length, shoal_error *err) {
  uint8_t *bytes = NULL;
  *out = NULL;
  *length = 0;
  if (!shoal_file_exists(path)) return SHOAL_OK;
  shoal_status status = shoal_file_read(path, SHOAL_CURVE_BYTES_MAX, false, &bytes, length, err);
  *out = (char *)bytes;
  return status;
}

/* Points are flat objects: what was torn has no end, and what was glued to it begins twice. */
static bool is_point(const char *line, size_t length) {
  return length >= 2 && line[0] == '{' && line[length - 1] == '}' &&
         memchr(line + 1, '{', length - 1) == NULL && memchr(line, 0, length) == NULL;
}

/* The next line that is a point, without its newline; NULL: there is none. */
static const char *next_point(const char **at, const char *end, size_t *length) {
  for (const char *newline; (newline = memchr(*at, '\n', (size_t)(end - *at))) != NULL;) {
    const char *line = *at;
    *length = (size_t)(newline - line);
    *at = newline + 1;
    if (is_point(line, *length)) return line;
  }
  return NULL;
}

static bool write_whole(int file, const char *bytes, size_t length) {
  for (ssize_t part; length > 0; bytes += part, length -= (size_t)part)
    if ((part = write(file, bytes, length)) <= 0) return false;
  return true;
}

/* Whether a line may begin at the end of the file; one that was torn is closed first. */
static bool ends_a_line(int file, off_t length) {
  char last = '\n';
  if (length > 0 && pread(file, &last, 1, length - 1) != 1) return false;
  return last == '\n' || write_whole(file, "\n", 1);
}

shoal_status shoal_agent_curve_add(const char *path, const shoal_text *lines, shoal_error *err) {
  if (lines->length == 0) return SHOAL_OK;
  int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return shoal_fail_errno(path, err);
  off_t before = lseek(file, 0, SEEK_END);
  shoal_status status = SHOAL_OK;
  if (before < 0 || !ends_a_line(file, before) || !write_whole(file, lines->bytes, lines->length)) {
    status = shoal_fail_errno(path, err);
    if (before >= 0) (void)!ftruncate(file, before);
  }
  close(file);
  return status;
}

/* Where a point is; false: it is none. */
static bool read_point(const char *line, size_t length, double *steps, double *seconds) {
  cJSON *json = cJSON_ParseWithLength(line, length);
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(json, "steps");
  const cJSON *t = cJSON_GetObjectItemCaseSensitive(json, "seconds");
  bool good = cJSON_IsNumber(s) && cJSON_IsNumber(t);
  *steps = good ? s->valuedouble : 0;
  *seconds = good ? t->valuedouble : 0;
  cJSON_Delete(json);
  return good;
}

shoal_status shoal_agent_curve_cut(const char *path, uint64_t steps, double *seconds, shoal_error *err) {
  char *bytes;
  size_t length, line_length, kept = 0;
  *seconds = 0;
  shoal_status status = read_all(path, &bytes, &length, err);
  if (status != SHOAL_OK || bytes == NULL) return status;
  const char *at = bytes, *end = bytes + length;
  for (const char *line; (line = next_point(&at, end, &line_length)) != NULL;) {
    double here, then;
    if (!read_point(line, line_length, &here, &then)) continue;
    if (here > (double)steps) break;
    kept = (size_t)(at - bytes);
    *seconds = then;
  }
  if (kept < length) status = shoal_file_write(path, bytes, kept, err);
  free(bytes);
  return status;
}

shoal_status shoal_agent_curve_read(const char *path, uint64_t from, uint64_t most, shoal_json *json,
                                    uint64_t *next, shoal_error *err) {
  char *bytes;
  size_t length, line_length;
  *next = 0;
  shoal_status status = read_all(path, &bytes, &length, err);
  if (status != SHOAL_OK || bytes == NULL) return status;
  const char *at = bytes, *end = bytes + length;
  while (*next < from + most) {
    const char *line = next_point(&at, end, &line_length);
    if (line == NULL) break;
    if ((*next)++ >= from) shoal_json_raw(json, NULL, line, line_length);
  }
  free(bytes);
  return SHOAL_OK;
}
