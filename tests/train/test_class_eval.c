/* A classifier is judged class by class, unless that would take memory without bounds. */
#include "nn/in_folder.h"

#include "train/class_eval.h"
#include "train/task.h"

static void a_batch_without_bounds_is_not_judged_by_class(void **state) {
  (void)state;
  static const char text[] = "input 2\ndense 2\nloss cross-entropy\nbatch 20\n";
  const shoal_dataset_options data = {.data = "t.csv"};
  shoal_model *model;
  shoal_task task;
  shoal_class_eval e;
  shoal_error err;
  FILE *file = fopen("t.csv", "w");
  assert_non_null(file);
  fprintf(file, "a,b,y\n");
  for (int i = 0; i < 40; i++) fprintf(file, "%d,%d,%s\n", i % 7, i % 5, i % 2 ? "odd" : "even");
  assert_int_equal(fclose(file), 0);
  if (shoal_model_parse(&model, "model", text, strlen(text), &err) != SHOAL_OK ||
      shoal_task_open(&task, model, &data, &err) != SHOAL_OK || shoal_task_ready(&task, 1, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  static const struct {
    uint32_t batch;
    bool judged;
  } cases[] = {{20, true}, {SHOAL_CLASS_EVAL_BATCH_MAX, false}, {UINT32_MAX, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(shoal_class_eval_init(&e, task.graph, task.dataset, cases[i].batch, &err), SHOAL_OK);
    assert_true(e.has_classes == cases[i].judged && (e.outputs != NULL) == cases[i].judged);
    shoal_class_eval_release(&e);
  }
  shoal_task_close(&task);
  shoal_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {IN_FOLDER(a_batch_without_bounds_is_not_judged_by_class)};
  return RUN_TESTS(tests);
}
