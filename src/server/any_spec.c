/* any_spec.c: see any_spec.h. */
#include "server/any_spec.h"

#include <cjson/cJSON.h>
#include <string.h>

static const char *const names[] = {
    [SHOAL_JOB_TRAIN] = "train", [SHOAL_JOB_SEARCH] = "search", [SHOAL_JOB_AGENT] = "agent"};
enum { KINDS = sizeof names / sizeof names[0] };

const char *shoal_job_kind_name(shoal_job_kind kind) { return names[kind]; }

shoal_job_kind shoal_job_kind_of(const char *json, size_t length) {
  cJSON *tree = cJSON_ParseWithLength(json, length);
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "kind"));
  shoal_job_kind kind = SHOAL_JOB_TRAIN;
  for (int i = 0; name != NULL && i < KINDS; i++)
    if (strcmp(names[i], name) == 0) kind = (shoal_job_kind)i;
  cJSON_Delete(tree);
  return kind;
}

static shoal_status parse(shoal_any_spec *out, const char *json, size_t length, shoal_spec_fault *fault,
                          shoal_error *err) {
  switch (out->kind) {
  case SHOAL_JOB_SEARCH: return shoal_search_spec_parse(&out->search, json, length, fault, err);
  case SHOAL_JOB_AGENT: return shoal_agent_spec_parse(&out->agent, json, length, fault, err);
  default: return shoal_spec_parse(&out->train, json, length, fault, err);
  }
}

shoal_status shoal_any_spec_parse(shoal_any_spec *out, const char *json, size_t length,
                                  shoal_spec_fault *fault, shoal_error *err) {
  *out = (shoal_any_spec){.kind = shoal_job_kind_of(json, length)};
  shoal_status status = parse(out, json, length, fault, err);
  if (status != SHOAL_OK) *out = (shoal_any_spec){0};
  return status;
}

void shoal_any_spec_release(shoal_any_spec *spec) {
  shoal_spec_release(&spec->train);
  shoal_search_spec_release(&spec->search);
  shoal_agent_spec_release(&spec->agent);
}

void shoal_any_spec_write(const shoal_any_spec *spec, shoal_json *json) {
  switch (spec->kind) {
  case SHOAL_JOB_TRAIN: shoal_spec_write(&spec->train, true, json); return;
  case SHOAL_JOB_SEARCH: shoal_search_spec_write(&spec->search, json); return;
  case SHOAL_JOB_AGENT: shoal_agent_spec_write(&spec->agent, json); return;
  }
}

const char *shoal_any_spec_name(const shoal_any_spec *spec) {
  switch (spec->kind) {
  case SHOAL_JOB_SEARCH: return spec->search.name.bytes;
  case SHOAL_JOB_AGENT: return spec->agent.name.bytes;
  default: return spec->train.name.bytes;
  }
}

const char *shoal_any_spec_data(const shoal_any_spec *spec) {
  switch (spec->kind) {
  case SHOAL_JOB_SEARCH: return spec->search.data.bytes;
  case SHOAL_JOB_AGENT: return "";
  default: return spec->train.data.bytes;
  }
}

bool shoal_any_spec_is_private(const shoal_any_spec *spec) {
  switch (spec->kind) {
  case SHOAL_JOB_SEARCH: return spec->search.is_private;
  case SHOAL_JOB_AGENT: return spec->agent.is_private;
  default: return spec->train.is_private;
  }
}
