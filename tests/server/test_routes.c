/* test_routes.c: docs/openapi.json and the routes of server/api.c are the same. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "check.h"
#include "server/api.h"

static const char *const methods[] = {"get", "post", "put", "delete"};

/* "/api/v1/jobs/{id}/stop" as the routes have it: with a star for every name in braces. */
static void with_stars(const char *path, char *out, size_t size) {
  size_t length = 0;
  while (*path != 0 && length + 1 < size) {
    if (*path == '{') {
      out[length++] = '*';
      path += strcspn(path, "}");
      if (*path != 0) path++;
    } else {
      out[length++] = *path++;
    }
  }
  out[length] = 0;
}

static const shoal_route *find(const char *method, const char *path) {
  size_t count;
  const shoal_route *routes = shoal_api_routes(&count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(methods[routes[i].method], method) == 0 && strcmp(routes[i].path, path) == 0)
      return &routes[i];
  return NULL;
}

static void every_route_is_described(void **state) {
  (void)state;
  uint8_t *bytes;
  size_t length, count, described = 0;
  shoal_error err;
  assert_int_equal(
      shoal_file_read(SHOAL_SOURCE_DIR "/docs/openapi.json", 1 << 20, false, &bytes, &length, &err),
      SHOAL_OK);
  cJSON *json = cJSON_ParseWithLength((const char *)bytes, length);
  assert_non_null(json);
  for (const cJSON *path = cJSON_GetObjectItem(json, "paths")->child; path != NULL; path = path->next) {
    char stars[256];
    with_stars(path->string, stars, sizeof stars);
    for (const cJSON *method = path->child; method != NULL; method = method->next) {
      const shoal_route *route = find(method->string, stars);
      if (route == NULL)
        fail_msg("%s %s is described, and there is no such route", method->string, path->string);
      assert_string_equal(cJSON_GetObjectItem(method, "x-role")->valuestring,
                          shoal_role_level_name(route->level));
      assert_int_equal(cJSON_HasObjectItem(method, "requestBody"),
                       route->body_max > 0 && strstr(stars, "/stop") == NULL);
      described++;
    }
  }
  (void)shoal_api_routes(&count);
  assert_int_equal(described, count);
  cJSON_Delete(json);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_route_is_described)};
  return RUN_TESTS(tests);
}
