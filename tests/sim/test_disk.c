/* What a crash leaves on a disk: with a careful writer the old record or the new one, with others
 * something that is noticed. */
#include <string.h>

#include "check.h"
#include "sim/disk.h"

static const char OLD[] = "the old record", NEW[] = "the new record, which is longer";

static bool holds(const shoal_disk *disk, uint64_t name, const char *text) {
  shoal_blob *blob = shoal_disk_read(disk, name);
  bool same = blob != NULL && shoal_blob_length(blob) == strlen(text) &&
              memcmp(shoal_blob_bytes(blob), text, strlen(text)) == 0;
  shoal_blob_release(blob);
  return same;
}

static bool finds(const shoal_disk *disk, uint64_t name) {
  shoal_blob *blob = shoal_disk_read(disk, name);
  shoal_blob_release(blob);
  return blob != NULL;
}

static void write(shoal_disk *disk, uint64_t name, const char *text) {
  shoal_disk_begin(disk, name, text, strlen(text));
  shoal_disk_finish(disk);
}

static void a_careful_write_leaves_the_old_or_the_new(void **state) {
  (void)state;
  bool old = false, new = false;
  for (int power = 0; power < 2; power++)
    for (int done = 0; done <= 20; done++)
      for (int luck = 0; luck < 4; luck++) {
        shoal_disk disk = {.care = SHOAL_DISK_CAREFUL};
        write(&disk, 1, OLD);
        shoal_disk_begin(&disk, 1, NEW, strlen(NEW));
        assert_true(shoal_disk_crash(&disk, power == 1, done / 20.0, luck / 4.0));
        assert_true(holds(&disk, 1, OLD) || holds(&disk, 1, NEW));
        old |= holds(&disk, 1, OLD);
        new |= holds(&disk, 1, NEW);
        shoal_disk_release(&disk);
      }
  assert_true(old && new);
}

static void what_is_finished_with_care_stays(void **state) {
  (void)state;
  shoal_disk disk = {.care = SHOAL_DISK_CAREFUL};
  write(&disk, 1, OLD);
  assert_false(shoal_disk_crash(&disk, true, 0, 0.3));
  assert_true(holds(&disk, 1, OLD));
  shoal_disk_release(&disk);
}

static void without_a_flush_the_power_takes_it(void **state) {
  (void)state;
  shoal_disk disk = {.care = SHOAL_DISK_NO_FLUSH};
  write(&disk, 1, OLD);
  shoal_disk_crash(&disk, false, 0, 0.3);
  assert_true(holds(&disk, 1, OLD)); /* the system still had it */
  write(&disk, 2, OLD);
  shoal_disk_crash(&disk, true, 0, 0.3);
  assert_false(finds(&disk, 1));
  assert_false(finds(&disk, 2));
  shoal_disk_release(&disk);
}

static void a_write_in_place_tears_the_old_record(void **state) {
  (void)state;
  for (int done = 0; done <= 20; done++) {
    shoal_disk disk = {.care = SHOAL_DISK_IN_PLACE};
    write(&disk, 1, OLD);
    assert_true(holds(&disk, 1, OLD));
    shoal_disk_begin(&disk, 1, NEW, strlen(NEW));
    shoal_disk_crash(&disk, false, done / 20.0, 0.5);
    assert_false(finds(&disk, 1));
    shoal_disk_release(&disk);
  }
}

static void records_are_kept_and_dropped_by_name(void **state) {
  (void)state;
  shoal_disk disk = {.care = SHOAL_DISK_CAREFUL};
  for (uint64_t name = 0; name < 20; name++) write(&disk, name, name % 2 == 0 ? OLD : NEW);
  shoal_disk_only(&disk, 5, 9);
  assert_int_equal(disk.count, 5);
  assert_false(finds(&disk, 4));
  assert_true(holds(&disk, 5, NEW) && holds(&disk, 8, OLD));
  shoal_disk_only(&disk, 1, 0);
  assert_int_equal(disk.count, 0);
  shoal_disk_release(&disk);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_careful_write_leaves_the_old_or_the_new),
      cmocka_unit_test(what_is_finished_with_care_stays),
      cmocka_unit_test(without_a_flush_the_power_takes_it),
      cmocka_unit_test(a_write_in_place_tears_the_old_record),
      cmocka_unit_test(records_are_kept_and_dropped_by_name),
  };
  return RUN_TESTS(tests);
}
