#include "brief.h"

#include <math.h>

#include "nn/safetensors.h"
#include "search/predictor.h"

typedef struct trained {
  shoal_brief brief;
  shoal_bench *bench;
  shoal_predictor *predictor;
} trained;

/* Two trials of one network each, a third and two thirds. */
static void train(trained *t, bool numbers, const char *space) {
  shoal_error err;
  put_table("t.csv", 600, numbers, 0);
  brief_of(&t->brief, "t.csv", 1, space);
  t->bench = bench_of(&t->brief, "t.csv");
  assert_int_equal(
      shoal_predictor_create(&t->predictor, &t->brief.profile, &t->brief.target, t->brief.metric, &err),
      SHOAL_OK);
  for (uint64_t trial = 1; trial <= 2; trial++) {
    shoal_unit unit = unit_of(&t->brief, trial, 0, 6);
    free(run_unit(t->bench, &unit, "state"));
    shoal_trial_net nets[SHOAL_FOLDS_MAX];
    uint32_t count;
    if (shoal_trial_load(t->bench, &unit.values, trial, "state", nets, &count, &err) != SHOAL_OK)
      fail_msg("%s", err.text);
    assert_int_equal(count, 1);
    assert_int_equal(shoal_predictor_add(t->predictor, &nets[0], (double)trial / 3, trial, &err), SHOAL_OK);
    unlink("state");
  }
}

static void end(trained *t) {
  shoal_predictor_destroy(t->predictor);
  shoal_bench_close(t->bench);
  shoal_brief_release(&t->brief);
}

static double *predict(const trained *t, const shoal_predictor *p, const shoal_rows *rows, uint32_t threads) {
  uint32_t width = t->brief.target.problem == SHOAL_REGRESSION ? 1 : t->brief.target.classes.count;
  double *out = malloc(shoal_rows_count(rows) * width * sizeof *out);
  shoal_error err;
  if (shoal_predictor_run(p, rows, NULL, threads, out, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return out;
}

static void check_file(bool numbers, const char *space) {
  trained t;
  shoal_error err;
  train(&t, numbers, space);
  const shoal_rows *rows = shoal_bench_rows(t.bench);
  assert_int_equal(shoal_predictor_save(t.predictor, "m.safetensors", &err), SHOAL_OK);
  assert_true(shoal_predictor_is("m.safetensors"));
  shoal_predictor *again;
  if (shoal_predictor_load(&again, "m.safetensors", &err) != SHOAL_OK) fail_msg("%s", err.text);
  double *a = predict(&t, t.predictor, rows, 1), *b = predict(&t, again, rows, 3);
  size_t bytes = shoal_rows_count(rows) * (numbers ? 1 : 2) * sizeof *a;
  assert_memory_equal(a, b, bytes);
  assert_int_equal(shoal_predictor_members(again), 2);
  /* The members' answers, by their shares. */
  float *one = malloc(bytes);
  double share, sum = 0;
  for (uint32_t i = 0; i < 2; i++) {
    const shoal_trial_net *net = shoal_predictor_member(again, i, &share);
    assert_int_equal(shoal_trial_net_predict(net, rows, NULL, one, &err), SHOAL_OK);
    sum += share * (double)one[5];
  }
  if (numbers) sum = sum * t.brief.target.deviation + t.brief.target.mean;
  assert_true(fabs(sum - a[5]) < 1e-12 * fabs(sum) + 1e-15);
  shoal_scores x, y;
  const shoal_row_list *test = &shoal_bench_split(t.bench)->test;
  assert_int_equal(shoal_predictor_scores(t.predictor, rows, test, 1, &x, &err), SHOAL_OK);
  assert_int_equal(shoal_predictor_scores(again, rows, test, 2, &y, &err), SHOAL_OK);
  assert_memory_equal(&x, &y, sizeof x);
  assert_true(numbers ? x.of[SHOAL_SCORE_R2] > 0.5 : x.of[SHOAL_SCORE_ACCURACY] > 0.8);
  free(one);
  free(a);
  free(b);
  shoal_predictor_destroy(again);
  end(&t);
}

static void a_file_answers_as_before(void **state) {
  (void)state;
  check_file(false, small_space);
}

static void a_file_of_numbers_answers_as_before(void **state) {
  (void)state;
  check_file(true, small_space);
}

static void a_file_with_learned_categories_answers_as_before(void **state) {
  (void)state;
  check_file(false,
             "layers 2\nwidth 16\nshape brick\nresidual yes\nactivation silu\ndropout 0.1\nnormalise batch\n"
             "optimizer adamw\nrate 0.01\nbatch 32\ndecay 1e-4\nnumbers quantile\ncategories lookup\n"
             "embedding 4\nbalance yes\n");
}

/* A member of version 1, which has all of its encoder in the metadata. */
static void write_inline_member(const cJSON *member, const shoal_trial_net *net, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_real(json, "share", cJSON_GetObjectItem(member, "share")->valuedouble);
  shoal_json_int(json, "trial", (int64_t)cJSON_GetObjectItem(member, "trial")->valuedouble);
  shoal_json_text(json, "model", cJSON_GetObjectItem(member, "model")->valuestring);
  shoal_json_text(json, "sha256", cJSON_GetObjectItem(member, "sha256")->valuestring);
  shoal_encoder_write(net->encoder, json, "encoder");
  shoal_json_close(json, '}');
}

/* The file "m" as version 1 had it, as "old". */
static void put_inline_version(const trained *t) {
  shoal_safetensors *file;
  shoal_text text;
  shoal_json json;
  shoal_error err;
  assert_int_equal(shoal_safetensors_load(&file, "m", &err), SHOAL_OK);
  cJSON *meta = cJSON_Parse(shoal_safetensors_meta(file, "shoal.predictor"));
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "version", 1);
  shoal_json_text(&json, "metric", cJSON_GetObjectItem(meta, "metric")->valuestring);
  shoal_target_write(&t->brief.target, &json, "target");
  shoal_profile_write(&t->brief.profile, &json, "profile");
  shoal_json_open(&json, "members", '[');
  uint32_t member = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(meta, "members"))
      write_inline_member(item, shoal_predictor_member(t->predictor, member++, NULL), &json);
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_tensor *tensors = calloc(file->tensors_count, sizeof *tensors);
  size_t count = 0;
  for (size_t i = 0; i < file->tensors_count; i++) {
    const char *name = file->tensors[i].name;
    if (strstr(name, ".encoder.") == NULL && strcmp(name, "profile") != 0)
      tensors[count++] = file->tensors[i];
  }
  const shoal_meta old = {"shoal.predictor", text.bytes};
  assert_int_equal(shoal_safetensors_save("old", tensors, count, &old, 1, &err), SHOAL_OK);
  free(tensors);
  cJSON_Delete(meta);
  shoal_text_release(&text);
  shoal_safetensors_destroy(file);
}

static void files_of_version_1_answer_the_same(void **state) {
  (void)state;
  trained t;
  shoal_error err;
  shoal_predictor *old;
  train(&t, false, small_space);
  assert_int_equal(shoal_predictor_save(t.predictor, "m", &err), SHOAL_OK);
  put_inline_version(&t);
  if (shoal_predictor_load(&old, "old", &err) != SHOAL_OK) fail_msg("%s", err.text);
  const shoal_rows *rows = shoal_bench_rows(t.bench);
  double *a = predict(&t, t.predictor, rows, 1), *b = predict(&t, old, rows, 1);
  assert_memory_equal(a, b, shoal_rows_count(rows) * 2 * sizeof *a);
  free(a);
  free(b);
  shoal_predictor_destroy(old);
  end(&t);
}

/* A table of very many columns, each of few rows. */
static void put_wide_table(uint32_t columns, uint32_t rows) {
  shoal_text csv;
  shoal_text_init(&csv);
  for (uint32_t c = 0; c < columns; c++) shoal_text_addf(&csv, "a column with a name %u,", c);
  shoal_text_addf(&csv, "y\n");
  for (uint32_t r = 0; r < rows; r++) {
    for (uint32_t c = 0; c < columns; c++) shoal_text_addf(&csv, "%u.5,", (r * 7919 + c * 104729) % 1009);
    shoal_text_addf(&csv, "%s\n", r % 2 ? "yes" : "no");
  }
  put("t.csv", csv.bytes, csv.length);
  shoal_text_release(&csv);
}

/* The header has a limit; what grows with the columns stands behind it. */
static void ten_thousand_columns_are_saved_and_load_again(void **state) {
  (void)state;
  enum { COLUMNS = 10000, HEADER_MAX = 100000 };
  shoal_brief brief;
  shoal_error err;
  shoal_predictor *predictor, *again;
  shoal_trial_net nets[SHOAL_FOLDS_MAX];
  uint32_t count;
  put_wide_table(COLUMNS, 60);
  brief_of(&brief, "t.csv", 1,
           "layers 1\nwidth 2\nshape brick\nresidual no\nactivation relu\ndropout 0\nnormalise none\n"
           "optimizer adamw\nrate 0.01\nbatch 32\ndecay 1e-4\nnumbers pieces\npieces 8\n"
           "categories one-hot\nembedding 4\nbalance no\n");
  shoal_bench *bench = bench_of(&brief, "t.csv");
  assert_int_equal(shoal_predictor_create(&predictor, &brief.profile, &brief.target, brief.metric, &err),
                   SHOAL_OK);
  shoal_unit unit = unit_of(&brief, 1, 0, 1);
  free(run_unit(bench, &unit, "state"));
  if (shoal_trial_load(bench, &unit.values, 1, "state", nets, &count, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  assert_int_equal(shoal_predictor_add(predictor, &nets[0], 1, 1, &err), SHOAL_OK);
  if (shoal_predictor_save(predictor, "m", &err) != SHOAL_OK) fail_msg("%s", err.text);
  uint64_t header = 0;
  FILE *file = fopen("m", "rb");
  assert_int_equal(fread(&header, sizeof header, 1, file), 1);
  fclose(file);
  assert_true(header < HEADER_MAX);
  if (shoal_predictor_load(&again, "m", &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(shoal_predictor_profile(again)->columns_count, COLUMNS + 1);
  double a[120], b[120];
  assert_int_equal(shoal_predictor_run(predictor, shoal_bench_rows(bench), NULL, 1, a, &err), SHOAL_OK);
  assert_int_equal(shoal_predictor_run(again, shoal_bench_rows(bench), NULL, 2, b, &err), SHOAL_OK);
  assert_memory_equal(a, b, sizeof a);
  shoal_predictor_destroy(predictor);
  shoal_predictor_destroy(again);
  shoal_bench_close(bench);
  shoal_brief_release(&brief);
}

static void a_damaged_encoder_is_refused(void **state) {
  (void)state;
  static const char *const names[] = {"0.encoder.numbers", "1.encoder.features", "profile"};
  trained t;
  shoal_error err;
  shoal_predictor *p;
  shoal_safetensors *file;
  train(&t, false, small_space);
  assert_int_equal(shoal_predictor_save(t.predictor, "m", &err), SHOAL_OK);
  assert_int_equal(shoal_safetensors_load(&file, "m", &err), SHOAL_OK);
  const shoal_meta meta = {"shoal.predictor", shoal_safetensors_meta(file, "shoal.predictor")};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    shoal_tensor *tensor = (shoal_tensor *)shoal_safetensors_find(file, names[i]);
    assert_non_null(tensor);
    const void *before = tensor->data;
    uint8_t *changed = malloc(tensor->bytes);
    memcpy(changed, before, tensor->bytes);
    changed[0] ^= 1;
    tensor->data = changed;
    assert_int_equal(shoal_safetensors_save("bad", file->tensors, file->tensors_count, &meta, 1, &err),
                     SHOAL_OK);
    assert_int_equal(shoal_predictor_load(&p, "bad", &err), SHOAL_CORRUPT);
    tensor->data = before;
    free(changed);
  }
  shoal_safetensors_destroy(file);
  end(&t);
}

static void rows_without_a_target_are_predicted(void **state) {
  (void)state;
  trained t;
  shoal_error err;
  shoal_rows *rows;
  train(&t, false, small_space);
  put_text("new.csv", "colour,b,a\nred,0.5,1\nviolet,,-1\n,1e300,\n");
  const shoal_rows_options options = {
      .path = "new.csv", .profile = &t.brief.profile, .target = t.brief.target.column, .unlabeled = true};
  if (shoal_rows_open(&rows, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  double *out = predict(&t, t.predictor, rows, 2);
  for (int r = 0; r < 3; r++) assert_true(fabs(out[2 * r] + out[2 * r + 1] - 1) < 1e-6);
  shoal_scores scores;
  assert_int_equal(shoal_predictor_scores(t.predictor, rows, NULL, 1, &scores, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "'y'");
  free(out);
  shoal_rows_close(rows);
  end(&t);
}

/* Every byte of the header in turn is changed: an error or a model that answers, never more. */
static void damaged_files_are_refused_or_harmless(void **state) {
  (void)state;
  trained t;
  shoal_error err;
  train(&t, false, small_space);
  assert_int_equal(shoal_predictor_save(t.predictor, "m", &err), SHOAL_OK);
  FILE *file = fopen("m", "rb");
  static uint8_t bytes[1 << 20];
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  shoal_predictor *p;
  int refused = 0, tried = 0;
  for (size_t at = 0; at < length; at += at < 20000 ? 37 : 997) {
    uint8_t before = bytes[at];
    bytes[at] = before == '9' ? '-' : '9';
    put("bad", bytes, length);
    tried++;
    if (shoal_predictor_load(&p, "bad", &err) != SHOAL_OK) {
      refused++;
      assert_true(strlen(err.text) > 10);
    } else {
      free(predict(&t, p, shoal_bench_rows(t.bench), 1));
      shoal_predictor_destroy(p);
    }
    bytes[at] = before;
  }
  assert_true(refused > tried / 2);
  for (size_t cut = 0; cut < length; cut += 1 + length / 50) {
    put("bad", bytes, cut);
    assert_int_not_equal(shoal_predictor_load(&p, "bad", &err), SHOAL_OK);
  }
  end(&t);
}

static void a_small_file_cannot_ask_for_much(void **state) {
  (void)state;
  trained t;
  shoal_error err;
  shoal_predictor *p;
  train(&t, false, small_space);
  assert_int_equal(shoal_predictor_save(t.predictor, "m", &err), SHOAL_OK);
  shoal_safetensors *file;
  assert_int_equal(shoal_safetensors_load(&file, "m", &err), SHOAL_OK);
  static const char *const changes[][2] = {
      {"dense 16 relu", "dense 900000000 relu"},
      {"dense 16 relu\\n", "dense 16 relu\\nrepeat 1000000\\nflatten\\n"},
      {"loss cross-entropy", "loss mean-squared"},
  };
  const char *meta = shoal_safetensors_meta(file, "shoal.predictor");
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    const char *at = strstr(meta, changes[i][0]);
    assert_non_null(at);
    shoal_text text;
    shoal_text_init(&text);
    shoal_text_add(&text, meta, (size_t)(at - meta));
    shoal_text_addf(&text, "%s%s", changes[i][1], at + strlen(changes[i][0]));
    const shoal_meta changed = {"shoal.predictor", text.bytes};
    assert_int_equal(shoal_safetensors_save("bad", file->tensors, file->tensors_count, &changed, 1, &err),
                     SHOAL_OK);
    assert_int_not_equal(shoal_predictor_load(&p, "bad", &err), SHOAL_OK);
    shoal_text_release(&text);
  }
  shoal_safetensors_destroy(file);
  end(&t);
}

static void other_files_are_told_apart(void **state) {
  (void)state;
  shoal_error err;
  shoal_predictor *p;
  const float one = 1;
  const shoal_tensor tensor = {
      .name = "w", .dtype = SHOAL_F32, .dims_count = 1, .dims = {1}, .data = &one, .bytes = sizeof one};
  assert_int_equal(shoal_safetensors_save("other", &tensor, 1, NULL, 0, &err), SHOAL_OK);
  assert_false(shoal_predictor_is("other"));
  assert_false(shoal_predictor_is("nowhere"));
  assert_int_equal(shoal_predictor_load(&p, "other", &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "other", "shoal search");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_file_answers_as_before),
      IN_FOLDER(a_file_of_numbers_answers_as_before),
      IN_FOLDER(a_file_with_learned_categories_answers_as_before),
      IN_FOLDER(files_of_version_1_answer_the_same),
      IN_FOLDER(ten_thousand_columns_are_saved_and_load_again),
      IN_FOLDER(a_damaged_encoder_is_refused),
      IN_FOLDER(rows_without_a_target_are_predicted),
      IN_FOLDER(damaged_files_are_refused_or_harmless),
      IN_FOLDER(a_small_file_cannot_ask_for_much),
      IN_FOLDER(other_files_are_told_apart),
  };
  return RUN_TESTS(tests);
}
