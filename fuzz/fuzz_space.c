/* fuzz_space.c: any text is refused with a sentence and changes nothing, or makes a space that survives
 * writing and reading, and whose points are values that survive JSON. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "search/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_point(const shoal_space *space, double u) {
  shoal_values values, back;
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
    values.of[id] = shoal_space_from_unit(&space->settings[id], u);
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_values_write(space, &values, &json, NULL);
  cJSON *tree = text.failed ? NULL : cJSON_Parse(text.bytes);
  SHOAL_ASSERT(tree != NULL && shoal_values_read(space, tree, &back, NULL) == SHOAL_OK);
  for (uint32_t id = 0; id < SHOAL_SET_TOPOLOGY; id++) /* of equal topologies the first is found */
    if (shoal_values_matter(space, &values, id)) SHOAL_ASSERT(values.of[id] == back.of[id]);
  cJSON_Delete(tree);
  shoal_text_release(&text);
}

static void check_grid(const shoal_space *space) {
  uint64_t points = shoal_space_grid(space);
  shoal_values values;
  if (points == 0) return;
  shoal_space_grid_at(space, points / 2, &values);
  shoal_space_grid_at(space, points - 1, &values);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_space space, other;
  shoal_space_usual(&space, 30000, 14);
  shoal_space_usual(&other, 500, 5);
  shoal_text before, after;
  shoal_text_init(&before);
  shoal_text_init(&after);
  shoal_space_write(&space, &before);
  shoal_error err = {0};
  shoal_status status = shoal_space_parse(&space, "input", (const char *)bytes, length, &err);
  SHOAL_ASSERT((status == SHOAL_OK) == (err.text[0] == 0));
  if (status == SHOAL_OK) {
    shoal_text_clear(&before);
    shoal_space_write(&space, &before);
    SHOAL_ASSERT(shoal_space_parse(&other, "again", before.bytes, before.length, NULL) == SHOAL_OK);
    for (double u = 0; u < 1; u += 0.24) check_point(&space, u);
    check_grid(&space);
  }
  shoal_space_write(status == SHOAL_OK ? &other : &space, &after);
  SHOAL_ASSERT(before.length == after.length && memcmp(before.bytes, after.bytes, after.length) == 0);
  shoal_text_release(&before);
  shoal_text_release(&after);
  shoal_space_release(&space);
  shoal_space_release(&other);
  return 0;
}
