/* A search that cannot begin with its table is refused before it is submitted, by the field that is wrong. */
#include "server/search_check.h"

#include "../search/tables.h"
#include "check.h"

static void put_shop(void) {
  shoal_text text = {0};
  shoal_text_addf(&text, "age,city,price,stars,day\n");
  for (int i = 0; i < 60; i++)
    shoal_text_addf(&text, "%d,%s,%d.5,%d,2024-01-%02d\n", 20 + i, i % 2 ? "Rome" : "Oslo", 7 * i, i % 5,
                    1 + i % 28);
  put_text("shop.csv", text.bytes);
  shoal_text_release(&text);
}

/* What is wrong with {"kind":"search","data":"shop",FIELDS}: the field, or "". */
static const char *fault_of(const shoal_profile *profile, const char *fields, shoal_error *err) {
  static shoal_spec_fault fault;
  shoal_search_spec spec;
  shoal_text json = {0};
  shoal_text_addf(&json, "{\"kind\":\"search\",\"data\":\"shop\",%s}", fields);
  *err = (shoal_error){0};
  if (shoal_search_spec_parse(&spec, json.bytes, json.length, &fault, err) != SHOAL_OK)
    fail_msg("%s: %s", fields, err->text);
  shoal_status status = shoal_search_check(&spec, profile, &fault, err);
  assert_int_equal(status == SHOAL_OK, fault.field[0] == 0);
  shoal_search_spec_release(&spec);
  shoal_text_release(&json);
  return fault.field;
}

static void what_does_not_fit_is_named(void **state) {
  (void)state;
  static const struct {
    const char *fields, *fault, *words;
  } cases[] = {
      {"\"target\":\"city\"", "", ""},
      {"\"target\":\"city\",\"metric\":\"auc\"", "", ""},
      {"\"target\":\"price\",\"metric\":\"mae\"", "", ""},
      {"\"target\":\"stars\",\"metric\":\"rmse\"", "", ""}, /* the rows will tell */
      {"\"target\":\"3\",\"metric\":\"r2\"", "", ""},
      {"\"target\":\"citty\"", "target", "did you mean 'city'"},
      {"\"target\":\"city\",\"metric\":\"rmse\"", "metric", "the usual one is accuracy"},
      {"\"target\":\"price\",\"metric\":\"accuracy\"", "metric", "the usual one is rmse"},
      {"\"target\":\"stars\",\"problem\":\"classes\",\"metric\":\"rmse\"", "metric", "rmse does not fit"},
      {"\"target\":\"city\",\"problem\":\"regression\"", "problem", "needs numbers"},
      {"\"target\":\"price\",\"columns\":{\"price\":\"category\"},\"metric\":\"rmse\"", "metric", "accuracy"},
      {"\"target\":\"city\",\"columns\":{\"aeg\":\"skip\"}", "columns", "did you mean 'age'"},
      {"\"target\":\"city\",\"time_column\":\"day\"", "", ""},
      {"\"target\":\"city\",\"time_column\":\"dya\"", "time_column", "did you mean 'day'"},
      {"\"target\":\"price\",\"time_column\":\"city\"", "time_column", "need a date or a number"},
      {"\"target\":\"city\",\"scheduler\":\"grid\"", "space", "without end"},
  };
  put_shop();
  shoal_profile profile = profile_of("shop.csv");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_error err;
    const char *fault = fault_of(&profile, cases[i].fields, &err);
    if (strcmp(fault, cases[i].fault) != 0) fail_msg("%s: '%s', %s", cases[i].fields, fault, err.text);
    if (strstr(err.text, cases[i].words) == NULL) fail_msg("%s: %s", cases[i].fields, err.text);
  }
  shoal_profile_release(&profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_does_not_fit_is_named),
  };
  return RUN_TESTS(tests);
}
