/* A training as data: what is written reads back, what is wrong is refused by name, and rounds are
 * cut so that every batch of an epoch belongs to exactly one unit. */
#include "check.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/job.h"
#include "nn/model.h"

static shoal_job make_job(const char *mode) {
  shoal_job job = {.valid_share = 0.1,
                   .samples = 60000,
                   .format = SHOAL_WIRE_INT8,
                   .owners_count = 2,
                   .owners = calloc(2, sizeof *job.owners)};
  shoal_text_addf(&job.model, "input 4\ndense 3 tanh\nloss cross-entropy # \"quoted\" \\ \xc3\xa9\n");
  shoal_text_addf(&job.data, "my 'data'.csv");
  shoal_text_addf(&job.target, "column");
  memset(job.fitted_sha256, 'a', sizeof job.fitted_sha256 - 1);
  snprintf(job.mode_text, sizeof job.mode_text, "%s", mode);
  assert_int_equal(shoal_mode_parse(mode, &job.mode, NULL), SHOAL_OK);
  snprintf(job.owners[0], sizeof job.owners[0], "ps0.example:7000");
  snprintf(job.owners[1], sizeof job.owners[1], "[::1]:7001");
  shoal_job_cut(&job, 8, 118, 3);
  job.lanes = job.parts;
  shoal_text_addf(&job.fitted, "{\"kind\":\"images\"}");
  return job;
}

static char *written(const shoal_job *job) {
  shoal_text json = {0};
  shoal_job_write(job, &json);
  assert_false(json.failed);
  return json.bytes;
}

static void a_job_reads_back_as_it_was_written(void **state) {
  (void)state;
  static const char *const modes[] = {"sync", "async", "stale:3", "local:20"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    shoal_job job = make_job(modes[i]), back;
    shoal_error err;
    char *json = written(&job);
    assert_int_equal(shoal_job_parse(&back, json, strlen(json), &err), SHOAL_OK);
    assert_string_equal(back.model.bytes, job.model.bytes);
    assert_string_equal(back.data.bytes, job.data.bytes);
    assert_string_equal(back.target.bytes, job.target.bytes);
    assert_true(back.valid_share == job.valid_share);
    assert_string_equal(back.fitted_sha256, job.fitted_sha256);
    assert_int_equal(back.samples, job.samples);
    assert_string_equal(back.mode_text, job.mode_text);
    assert_memory_equal(&back.mode, &job.mode, sizeof back.mode);
    assert_int_equal(back.format, job.format);
    assert_int_equal(back.parts, job.parts);
    assert_int_equal(back.rounds, job.rounds);
    assert_int_equal(back.inner_rounds, job.inner_rounds);
    assert_int_equal(back.lanes, job.lanes);
    assert_string_equal(back.fitted.bytes, job.fitted.bytes);
    assert_int_equal(back.owners_count, 2);
    for (uint32_t s = 0; s < 2; s++) assert_string_equal(back.owners[s], job.owners[s]);
    assert_int_equal(shoal_job_digest(&back), shoal_job_digest(&job));
    free(json);
    shoal_job_release(&back);
    shoal_job_release(&job);
  }
}

static void another_address_is_the_same_job_and_anything_else_is_not(void **state) {
  (void)state;
  shoal_job job = make_job("sync"), other = make_job("sync");
  snprintf(other.owners[0], sizeof other.owners[0], "elsewhere:1");
  assert_int_equal(shoal_job_digest(&job), shoal_job_digest(&other));
  other.samples++;
  assert_int_not_equal(shoal_job_digest(&job), shoal_job_digest(&other));
  other.samples--;
  shoal_text_clear(&other.fitted); /* follows from the rest */
  assert_int_equal(shoal_job_digest(&job), shoal_job_digest(&other));
  other.lanes = 0;
  assert_int_not_equal(shoal_job_digest(&job), shoal_job_digest(&other));
  other.lanes = other.parts;
  other.owners_count = 1;
  assert_int_not_equal(shoal_job_digest(&job), shoal_job_digest(&other));
  other.owners_count = 2;
  shoal_text_addf(&other.model, "batch 3\n");
  assert_int_not_equal(shoal_job_digest(&job), shoal_job_digest(&other));
  shoal_job_release(&job);
  shoal_job_release(&other);
}

/* The job with one field replaced by this JSON, or left out, must be refused, and the field named. */
static void refuse(const char *field, const char *value) {
  shoal_job job = make_job("sync"), out;
  char *text = written(&job);
  cJSON *json = cJSON_Parse(text);
  cJSON_DeleteItemFromObjectCaseSensitive(json, field);
  if (value != NULL) {
    cJSON *item = cJSON_Parse(value);
    assert_non_null(item);
    cJSON_AddItemToObject(json, field, item);
  }
  char *wrong = cJSON_PrintUnformatted(json), expected[128];
  snprintf(expected, sizeof expected, "%s is wrong", field);
  shoal_error err;
  assert_int_equal(shoal_job_parse(&out, wrong, strlen(wrong), &err), SHOAL_INVALID);
  if (strstr(err.text, expected) == NULL) fail_msg("%s = %s: %s", field, value, err.text);
  assert_null(out.owners);
  assert_null(out.model.bytes);
  cJSON_free(wrong);
  cJSON_Delete(json);
  free(text);
  shoal_job_release(&job);
}

static void every_field_that_is_wrong_is_refused_by_name(void **state) {
  (void)state;
  static const char *const needed[] = {"model", "data",  "valid",  "fitted",       "samples", "mode",
                                       "wire",  "parts", "rounds", "inner_rounds", "ps"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    refuse(needed[i], NULL);
    refuse(needed[i], "null");
    refuse(needed[i], "{}");
    refuse(needed[i], "true");
  }
  static const char *const texts[] = {"model", "data", "fitted", "mode", "wire"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) refuse(texts[i], "3");
  static const char *const numbers[] = {"samples", "parts", "rounds", "inner_rounds"};
  static const char *const bad_numbers[] = {"0", "-1", "1.5", "1e300", "\"8\"", "[8]"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    for (size_t k = 0; k < sizeof bad_numbers / sizeof *bad_numbers; k++) refuse(numbers[i], bad_numbers[k]);
  refuse("lanes", "7");
  refuse("lanes", "\"8\"");
  refuse("parts", "1000000000");
  refuse("inner_rounds", "117"); /* fewer than rounds */
  refuse("valid", "-0.1");
  refuse("valid", "0.91");
  refuse("fitted", "\"abc\"");
  refuse("fitted", "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg\"");
  refuse("mode", "\"fast\"");
  refuse("mode", "\"stale:99999999999999999999999999999999999999\"");
  refuse("wire", "\"f16\"");
  refuse("ps", "[]");
  refuse("ps", "[3]");
  refuse("ps", "[\"a:1\",null]");
  char *long_address = calloc(SHOAL_ADDRESS_MAX + 8, 1);
  snprintf(long_address, SHOAL_ADDRESS_MAX + 8, "[\"%0*d\"]", SHOAL_ADDRESS_MAX, 1);
  refuse("ps", long_address);
  free(long_address);
}

static void half_a_job_is_none(void **state) {
  (void)state;
  shoal_job job = make_job("sync"), out;
  char *json = written(&job);
  size_t length = strlen(json);
  for (size_t cut = 0; cut < length; cut++) {
    shoal_error err;
    assert_int_equal(shoal_job_parse(&out, json, cut, &err), SHOAL_INVALID);
  }
  assert_int_equal(shoal_job_parse(&out, "[1,2]", 5, NULL), SHOAL_INVALID);
  json[strcspn(json, "4")] = '\xff'; /* not UTF-8, inside a text */
  assert_int_equal(shoal_job_parse(&out, json, length, NULL), SHOAL_INVALID);
  free(json);
  shoal_job_release(&job);
}

/* ---- rounds ---- */

static shoal_job cut(const char *mode, uint32_t shards, uint64_t inner_rounds, uint32_t workers) {
  shoal_job job = {0};
  assert_int_equal(shoal_mode_parse(mode, &job.mode, NULL), SHOAL_OK);
  shoal_job_cut(&job, shards, inner_rounds, workers);
  assert_int_equal(job.inner_rounds, inner_rounds);
  assert_in_range(job.parts, 1, SHOAL_SHARDS_MAX);
  assert_in_range(job.rounds, 1, inner_rounds);
  return job;
}

/* Units of an epoch, in order, cover its inner rounds without gap or overlap, with at most H each, or two
 * where there are fewer rounds than units. */
static void check_units(const shoal_job *job, uint64_t epoch) {
  uint64_t next = 0;
  for (uint64_t round = 0; round < job->rounds; round++) {
    for (uint32_t part = 0; part < job->parts; part++) {
      uint64_t first, count = shoal_job_unit(job, epoch * job->rounds + round, part, &first);
      assert_int_equal(first, next);
      assert_in_range(count, 1, job->mode.local > 2 ? job->mode.local : 2);
      next += count;
    }
    assert_int_equal(shoal_job_step(job, epoch * job->rounds + round + 1), epoch * job->inner_rounds + next);
  }
  assert_int_equal(next, job->inner_rounds);
}

/* Versions and steps are each other's inverse, and steps between two versions have none. */
static void check_versions(const shoal_job *job) {
  uint64_t found = 0;
  for (uint64_t step = 0; step <= 2 * job->inner_rounds; step++) {
    uint64_t version;
    if (!shoal_job_version(job, step, &version)) continue;
    assert_int_equal(version, found);
    assert_int_equal(shoal_job_step(job, version), step);
    found++;
  }
  assert_int_equal(found, 2 * job->rounds + 1);
}

static void local_units_have_every_round_exactly_once(void **state) {
  (void)state;
  static const uint32_t workers[] = {0, 1, 2, 3, 5, 7, 64, 1000, 100000};
  static const char *const modes[] = {"local:1", "local:2", "local:3", "local:4", "local:20", "local:100000"};
  for (uint64_t inner = 1; inner <= 130; inner += inner < 24 ? 1 : 7)
    for (size_t w = 0; w < sizeof workers / sizeof *workers; w++)
      for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        shoal_job job = cut(modes[m], 8, inner, workers[w]);
        assert_in_range(job.parts, 1, workers[w] > 1 ? workers[w] : 1);
        for (uint64_t epoch = 0; epoch < 2; epoch++) check_units(&job, epoch);
        check_versions(&job);
      }
}

static void other_modes_are_cut_as_one_machine_is(void **state) {
  (void)state;
  static const char *const modes[] = {"sync", "async", "stale:2"};
  for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
    for (uint32_t shards = 1; shards <= 9; shards++)
      for (uint64_t inner = 1; inner < 40; inner++) {
        shoal_job job = cut(modes[m], shards, inner, 5);
        assert_int_equal(job.parts, shards);
        assert_int_equal(job.rounds, inner);
        for (uint64_t version = 0; version < 3 * inner; version++) {
          uint64_t back;
          assert_int_equal(shoal_job_step(&job, version), version);
          assert_true(shoal_job_version(&job, version, &back));
          assert_int_equal(back, version);
        }
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_job_reads_back_as_it_was_written),
      cmocka_unit_test(another_address_is_the_same_job_and_anything_else_is_not),
      cmocka_unit_test(every_field_that_is_wrong_is_refused_by_name),
      cmocka_unit_test(half_a_job_is_none),
      cmocka_unit_test(local_units_have_every_round_exactly_once),
      cmocka_unit_test(other_modes_are_cut_as_one_machine_is),
  };
  return RUN_TESTS(tests);
}
