#include "pictures.h"

#include "data/image_list.h"

static void make_class(const char *path, int images, uint8_t value) {
  char command[256], name[256];
  snprintf(command, sizeof command, "mkdir -p %s", path);
  assert_int_equal(system(command), 0);
  uint8_t rows[4] = {value, value, value, value};
  for (int i = 0; i < images; i++) {
    snprintf(name, sizeof name, "%s/%02d.png", path, i);
    put_plain_png(name, 2, 2, 1, rows);
  }
}

static shoal_status list_classes(shoal_image_list *list, const shoal_names *known, uint32_t classes,
                                 shoal_error *err) {
  shoal_names none;
  shoal_names_init(&none);
  shoal_image_list_init(list);
  return shoal_image_list_classes(list, "set", known ? known : &none, classes, err);
}

static void check_refused(const char *word, const char *why) {
  shoal_image_list list;
  shoal_error err;
  assert_int_not_equal(list_classes(&list, NULL, 0, &err), SHOAL_OK);
  CHECK_SAYS(&err, word, why);
  shoal_image_list_release(&list);
}

static void classes_are_numbered_by_their_names(void **state) {
  (void)state;
  make_class("set/dog", 2, 20);
  make_class("set/cat", 3, 10);
  make_class("set/.hidden", 1, 99);
  make_class("elsewhere", 1, 30);
  put_text("set/readme.txt", "about");
  put_text("set/cat/.thumbs.png", "hidden");
  assert_int_equal(symlink("../../elsewhere/00.png", "set/dog/link.png"), 0);
  assert_int_equal(mkdir("set/dog/folder.png", 0700), 0);
  assert_true(shoal_image_list_is_folder("set"));
  assert_false(shoal_image_list_is_folder("elsewhere"));
  assert_true(shoal_image_list_is_flat("elsewhere"));
  shoal_image_list list;
  shoal_error err;
  shoal_text note = {0};
  shoal_images images;
  shoal_images_init(&images);
  images.h = images.w = 2;
  assert_int_equal(list_classes(&list, NULL, 0, &err), SHOAL_OK);
  assert_int_equal(list.count, 6);
  assert_string_equal(shoal_names_at(&list.classes, 0), "cat");
  assert_string_equal(shoal_names_at(&list.classes, 1), "dog");
  assert_string_equal(list.entries[5].path, "set/dog/link.png");
  assert_int_equal(shoal_image_list_decode(&list, &images, NULL, NULL, &note, &err), SHOAL_OK);
  assert_int_equal(images.classes, 2);
  assert_int_equal(images.training, 6);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(shoal_images_label(&images, (uint64_t)i), i >= 3);
    assert_int_equal(shoal_images_at(&images, (uint64_t)i)[3], i < 3 ? 10 : i < 5 ? 20 : 30);
  }
  assert_non_null(strstr(note.bytes, "skipped 2 files"));
  assert_non_null(strstr(note.bytes, "set/readme.txt"));
  assert_non_null(strstr(note.bytes, "set/dog/folder.png"));
  assert_null(strstr(note.bytes, "hidden"));
  shoal_text_release(&note);
  shoal_images_release(&images);
  shoal_image_list_release(&list);
}

static void one_file_in_five_is_held_out_and_the_first_of_a_class_never(void **state) {
  (void)state;
  make_class("set/a", 1, 1);
  make_class("set/b", 60, 2);
  make_class("set/c", 60, 3);
  shoal_image_list list, again;
  shoal_error err;
  assert_int_equal(list_classes(&list, NULL, 0, &err), SHOAL_OK);
  assert_int_equal(list_classes(&again, NULL, 0, &err), SHOAL_OK);
  assert_string_equal(list.sha256, again.sha256);
  assert_int_equal(shoal_image_list_hold_out(&list, false, &err), SHOAL_OK);
  assert_in_range(list.count - list.training, 14, 34);
  for (uint64_t i = 0; i < list.count; i++) assert_int_equal(list.entries[i].is_test, i >= list.training);
  assert_string_equal(list.entries[0].path, "set/a/00.png");
  assert_string_equal(list.entries[1].path, "set/b/00.png");
  char before[sizeof list.sha256];
  memcpy(before, list.sha256, sizeof before);
  shoal_image_list_release(&list);
  shoal_image_list_release(&again);
  /* Another file is another set. */
  make_class("set/c", 61, 3);
  assert_int_equal(list_classes(&again, NULL, 0, &err), SHOAL_OK);
  assert_string_not_equal(before, again.sha256);
  shoal_image_list_release(&again);
}

static void test_images_are_below_test(void **state) {
  (void)state;
  make_class("set/train/a", 3, 1);
  make_class("set/train/b", 3, 2);
  make_class("set/test/b", 2, 3);
  make_class("set/val/b", 2, 4);
  shoal_image_list list;
  shoal_error err;
  assert_int_equal(list_classes(&list, NULL, 0, &err), SHOAL_OK);
  assert_true(list.has_test);
  assert_int_equal(list.training, 6);
  assert_int_equal(list.count, 8);
  assert_int_equal(list.entries[7].label, 1);
  assert_non_null(strstr(list.other_names.bytes, "set/val"));
  shoal_image_list_release(&list);
  make_class("set/test/z", 1, 3);
  check_refused("set/test/z", "none of the classes that are trained on");
}

static void a_model_knows_its_classes_by_name_or_by_number(void **state) {
  (void)state;
  make_class("set/dog", 1, 1);
  make_class("set/1", 1, 1);
  shoal_names known;
  shoal_names_init(&known);
  shoal_image_list list;
  shoal_error err;
  shoal_names_add(&known, "1", 1);
  shoal_names_add(&known, "cat", 3);
  shoal_names_add(&known, "dog", 3);
  assert_int_equal(list_classes(&list, &known, 3, &err), SHOAL_OK);
  assert_int_equal(list.entries[0].label, 0); /* a name goes before a number */
  assert_int_equal(list.entries[1].label, 2);
  shoal_image_list_release(&list);
  make_class("set/2", 1, 1); /* as where a name has letters that a folder's cannot have */
  assert_int_equal(list_classes(&list, &known, 3, &err), SHOAL_OK);
  assert_int_equal(list.entries[1].label, 2);
  shoal_image_list_release(&list);
  make_class("set/3", 1, 1);
  assert_int_not_equal(list_classes(&list, &known, 3, &err), SHOAL_OK);
  CHECK_SAYS(&err, "set/3", "none of the classes");
  shoal_image_list_release(&list);
  assert_int_not_equal(list_classes(&list, NULL, 3, &err), SHOAL_OK);
  CHECK_SAYS(&err, "set/3", "call the folders 0 to 2");
  shoal_image_list_release(&list);
  shoal_names_release(&known);
}

static void what_is_wrong_is_named(void **state) {
  (void)state;
  make_class("set/caf\xe9", 1, 1);
  check_refused("set/caf\xe9", "the name of this folder is not UTF-8");
  assert_int_equal(system("rm -r set"), 0);
  make_class("set/a", 40, 1);
  check_refused("set", "there is only one class, 'a'");
  make_class("set/b", 40, 1);
  make_class("set/empty", 0, 1);
  check_refused("set/empty", "this class has no images");
  assert_int_equal(rmdir("set/empty"), 0);
  /* Of several broken files the first one is named, whichever thread finds one first. */
  put_text("set/a/35.png", "broken");
  put_text("set/b/01.png", "broken");
  assert_int_equal(symlink("nowhere", "set/b/02.png.jpg"), 0);
  shoal_image_list list;
  shoal_error err;
  shoal_text note = {0};
  shoal_images images;
  shoal_images_init(&images);
  assert_int_equal(list_classes(&list, NULL, 0, &err), SHOAL_OK);
  assert_int_not_equal(shoal_image_list_decode(&list, &images, NULL, NULL, &note, &err), SHOAL_OK);
  CHECK_SAYS(&err, "set/a/35.png", "not a PNG or JPEG file");
  images.h = images.w = 8192; /* 81 of them are 5 GB */
  assert_int_not_equal(shoal_image_list_decode(&list, &images, NULL, NULL, &note, &err), SHOAL_OK);
  CHECK_SAYS(&err, "81 images of 1x8192x8192", "smaller");
  shoal_images_release(&images);
  shoal_image_list_release(&list);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(classes_are_numbered_by_their_names),
      IN_FOLDER(one_file_in_five_is_held_out_and_the_first_of_a_class_never),
      IN_FOLDER(test_images_are_below_test),
      IN_FOLDER(a_model_knows_its_classes_by_name_or_by_number),
      IN_FOLDER(what_is_wrong_is_named),
  };
  return RUN_TESTS(tests);
}
