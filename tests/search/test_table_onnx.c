#include "brief.h"

#include "nn/onnx_check.h"
#include "search/table_onnx.h"

/* That ONNX Runtime answers the same is for tests/interop. Here: what goes in and comes out, and that the
 * file is whole. */

static const char lookup_space[] =
    "layers 2\nwidth 16\nshape brick\nresidual yes\nactivation silu\ndropout 0.1\nnormalise batch\n"
    "optimizer adamw\nrate 0.01\nbatch 32\ndecay 1e-4\nnumbers quantile\ncategories lookup\n"
    "embedding 4\nbalance no\n";

/* Two networks of one trial each. */
static shoal_predictor *predictor_of(const char *path, const char *space) {
  shoal_brief brief;
  shoal_error err;
  shoal_predictor *predictor;
  brief_of(&brief, path, 1, space);
  shoal_bench *bench = bench_of(&brief, path);
  assert_int_equal(shoal_predictor_create(&predictor, &brief.profile, &brief.target, brief.metric, &err),
                   SHOAL_OK);
  for (uint64_t trial = 1; trial <= 2; trial++) {
    shoal_unit unit = unit_of(&brief, trial, 0, 2);
    shoal_trial_net nets[SHOAL_FOLDS_MAX];
    uint32_t count;
    free(run_unit(bench, &unit, "state"));
    if (shoal_trial_load(bench, &unit.values, trial, "state", nets, &count, &err) != SHOAL_OK)
      fail_msg("%s", err.text);
    assert_int_equal(shoal_predictor_add(predictor, &nets[0], (double)trial / 3, trial, &err), SHOAL_OK);
    unlink("state");
  }
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
  return predictor;
}

static checked *export_and_check(const char *path, const char *space) {
  static checked c;
  shoal_error err;
  shoal_predictor *predictor = predictor_of(path, space);
  if (shoal_predictor_onnx(predictor, "m.onnx", &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_predictor_destroy(predictor);
  check_onnx_file("m.onnx", &c);
  return &c;
}

static size_t count_of(const char *ops, const char *op) {
  size_t count = 0, length = strlen(op);
  for (const char *at = ops; (at = strstr(at, op)); at += length)
    count += (at == ops || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0);
  return count;
}

static void every_column_is_an_input_of_classes(void **state) {
  (void)state;
  put_table("t.csv", 300, false, 0);
  const checked *c = export_and_check("t.csv", small_space);
  assert_string_equal(c->inputs, "a,b,colour");
  assert_string_equal(c->outputs, "label,probabilities");
  assert_string_equal(c->meta, "shoal.inputs,shoal.target,shoal.problem,shoal.classes");
  assert_true(c->opset == 17 && c->opset_tables == 3);
  assert_int_equal(count_of(c->ops, "LabelEncoder"), 2); /* the colours, and the answer */
  assert_int_equal(count_of(c->ops, "Softmax"), 2);
  assert_int_equal(count_of(c->ops, "IsNaN"), 1);
}

static void numbers_are_answered_by_a_value(void **state) {
  (void)state;
  put_table("t.csv", 300, true, 0);
  const checked *c = export_and_check("t.csv", lookup_space);
  assert_string_equal(c->outputs, "value");
  assert_string_equal(c->meta, "shoal.inputs,shoal.target,shoal.problem");
  assert_int_equal(count_of(c->ops, "LabelEncoder"), 1);
  assert_true(is_known(c, "shoal/0/lookup1.table") && is_known(c, "shoal/1/lookup1.table"));
}

/* Columns with the names of outputs and of values inside, dates, texts. */
static void put_odd_table(const char *path) {
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "value,shoal/0/dense1.weight,value (2),day,note,y\n");
  for (int i = 0; i < 300; i++)
    shoal_text_addf(&csv, "%d.5,%d,%d.25,20%02d-%02d-%02d,the %d words of row %d are not those of %d,%s\n",
                    i * 7 % 101, i * 3 % 97, i * 11 % 89, i % 23, i % 12 + 1, i % 28 + 1, i * 5 % 50, i,
                    i * 13 % 300, i * 7 % 101 > 50 ? "yes" : "no");
  put(path, csv.bytes, csv.length);
  shoal_text_release(&csv);
}

static void names_never_meet_and_texts_are_hashed_before(void **state) {
  (void)state;
  put_odd_table("t.csv");
  const checked *c = export_and_check("t.csv", small_space);
  assert_string_equal(c->inputs, "value (2),column shoal/0/dense1.weight,value (2) (2),day,note.hashed");
  assert_int_equal(c->opset, 18);
  assert_int_equal(count_of(c->ops, "ScatterElements"), 1); /* both networks have the same vector */
  assert_int_equal(count_of(c->ops, "Sin"), 1);
}

static void a_failed_export_leaves_the_old_file(void **state) {
  (void)state;
  shoal_error err;
  put_table("t.csv", 300, false, 0);
  shoal_predictor *predictor = predictor_of("t.csv", small_space);
  put_text("m.onnx", "old");
  assert_int_equal(shoal_predictor_onnx(predictor, "/dev/full", &err), SHOAL_FULL);
  assert_int_equal(shoal_predictor_onnx(predictor, "nowhere/m.onnx", &err), SHOAL_NOT_FOUND);
  CHECK_SAYS(&err, "nowhere/m.onnx");
  uint8_t *content;
  size_t length;
  assert_int_equal(shoal_file_read("m.onnx", 100, false, &content, &length, &err), SHOAL_OK);
  assert_string_equal((char *)content, "old");
  free(content);
  shoal_predictor_destroy(predictor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(every_column_is_an_input_of_classes),
      IN_FOLDER(numbers_are_answered_by_a_value),
      IN_FOLDER(names_never_meet_and_texts_are_hashed_before),
      IN_FOLDER(a_failed_export_leaves_the_old_file),
  };
  return RUN_TESTS(tests);
}
