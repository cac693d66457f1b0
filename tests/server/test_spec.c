/* test_spec.c: what a host submits is read field by field, and what is written is read again. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "server/spec.h"

#define MODEL "input 4\\ndense 3\\nloss cross-entropy\\n"

static shoal_status parse(shoal_spec *spec, const char *json, shoal_spec_fault *fault, shoal_error *err) {
  return shoal_spec_parse(spec, json, strlen(json), fault, err);
}

static void fields_go_into_the_model(void **state) {
  (void)state;
  shoal_spec spec;
  shoal_spec_fault fault;
  shoal_error err;
  assert_int_equal(
      parse(&spec,
            "{\"model\":\"" MODEL "\",\"data\":\"iris\",\"epochs\":7,\"optimizer\":\"adam\",\"rate\":0.5,"
            "\"early_stop\":2,\"workers_min\":3,\"mode\":\"local:20\",\"wire\":\"int8\",\"private\":true}",
            &fault, &err),
      SHOAL_OK);
  assert_int_equal(spec.parsed->recipe.epochs, 7);
  assert_int_equal(spec.parsed->recipe.early_stop, 2);
  assert_true(spec.parsed->recipe.rate == 0.5f);
  assert_int_equal(spec.workers_min, 3);
  assert_true(spec.is_private);
  assert_string_equal(spec.mode, "local:20");
  assert_string_equal(spec.wire, "int8");
  assert_string_equal(spec.name.bytes, "iris");
  assert_non_null(strstr(spec.model.bytes, "adam"));

  shoal_text text = {0};
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_spec_write(&spec, true, &json);
  shoal_json_close(&json, '}');
  shoal_spec again;
  assert_int_equal(parse(&again, text.bytes, &fault, &err), SHOAL_OK);
  assert_string_equal(again.model.bytes, spec.model.bytes);
  assert_int_equal(again.workers_max, spec.workers_max);
  assert_int_equal(shoal_spec_set_epochs(&again, 9, &err), SHOAL_OK);
  assert_non_null(strstr(again.model.bytes, "epochs 9"));
  shoal_spec_release(&again);
  shoal_spec_release(&spec);
  shoal_text_release(&text);
}

static void a_fault_names_its_field(void **state) {
  (void)state;
  static const struct {
    const char *json, *field;
    uint32_t line;
  } cases[] = {
      {"{\"data\":\"iris\"}", "model", 0},
      {"{\"model\":\"" MODEL "\"}", "data", 0},
      {"{\"model\":\"input 4\\ndens 3\\n\",\"data\":\"iris\"}", "model", 2},
      {"{\"model\":\"" MODEL "\",\"data\":\"iris\",\"rate\":-1}", "rate", 0},
      {"{\"model\":\"" MODEL "\",\"data\":\"iris\",\"batch\":true}", "batch", 0},
      {"{\"model\":\"" MODEL "\",\"data\":\"iris\",\"workers_max\":0}", "workers_max", 0},
      {"{\"model\":\"" MODEL "\",\"data\":\"iris\",\"name\":\"a\\u0007b\"}", "name", 0},
      {"{\"model\":\"" MODEL "\",\"data\":\"iris\",\"nmae\":\"a\"}", "nmae", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_spec spec;
    shoal_spec_fault fault;
    shoal_error err;
    assert_int_equal(parse(&spec, cases[i].json, &fault, &err), SHOAL_INVALID);
    assert_string_equal(fault.field, cases[i].field);
    assert_int_equal(fault.line, cases[i].line);
    assert_true(err.text[0] != 0);
  }
}

static void names_are_fit_for_files(void **state) {
  (void)state;
  static const char *const good[] = {"a", "LeNet-5", "wine quality", "Übung 3", "mnist.v2"};
  static const char *const bad[] = {"",    ".",    "..",  ".hidden", " a",   "a ",
                                    "a/b", "a\\b", "a:b", "a\nb",    "\xff", "50%"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_true(shoal_spec_name_is_good(good[i]));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(shoal_spec_name_is_good(bad[i]));
}

static void a_default_name_that_is_too_long_ends_in_an_ellipsis(void **state) {
  (void)state;
  static const char *const names[][2] = {{"", ""},
                                         {"fits-1234", "fits-1234"},
                                         {"one-too-long", "one-to…"},
                                         {"üüüüü", "üüü…"}}; /* not cut inside a character */
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char out[10];
    shoal_spec_name_shorten(out, sizeof out, names[i][0], strlen(names[i][0]));
    assert_string_equal(out, names[i][1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_go_into_the_model),
      cmocka_unit_test(a_fault_names_its_field),
      cmocka_unit_test(names_are_fit_for_files),
      cmocka_unit_test(a_default_name_that_is_too_long_ends_in_an_ellipsis),
  };
  return RUN_TESTS(tests);
}
