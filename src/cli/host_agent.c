/* host_agent.c: see host_agent.h. */
#include "cli/host_agent.h"

#include <string.h>

#include "agent/bridge.h"
#include "server/agent_spec.h"

void shoal_host_agent_declare(shoal_host_agent *a, shoal_option lines[SHOAL_HOST_AGENT_OPTIONS]) {
  lines[0] = (shoal_option){.name = "Agent (as in shoal agent train)"};
  shoal_agent_options_declare(&a->said, "have an agent trained there: a name of 'shoal agent list'",
                              lines + 1);
  lines[SHOAL_AGENT_OPTIONS + 1] = (shoal_option){
      .name = "exact",
      .flag = &a->exact,
      .help = "in rounds that wait for all their parts, to the bits of one machine; by default "
              "nobody waits for anybody"};
}

const char *shoal_host_agent_given(const shoal_host_agent *a) {
  const shoal_agent_options *said = &a->said;
  const struct {
    const char *name;
    bool given;
  } all[] = {{"--algorithm", said->algorithm},
             {"--seconds", said->seconds > 0},
             {"--steps", said->steps > 0},
             {"--full", said->full},
             {"--set", said->set},
             {"--model", said->model},
             {"--exact", a->exact}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i].given) return all[i].name;
  return NULL;
}

static shoal_status set(void *self, const char *name, const char *value, shoal_error *err) {
  shoal_host_agent *a = self;
  if (strcmp(name, "body") == 0) a->has_body = true;
  return shoal_agent_set(&a->settings, name, value, err);
}

shoal_status shoal_host_agent_read(shoal_host_agent *a, shoal_error *err) {
  const shoal_env_kind *kind;
  shoal_algorithm algorithm = SHOAL_ALGORITHMS;
  shoal_agent_settings *settings = &a->settings;
  if (shoal_env_is_bridged(a->said.env))
    return shoal_fail(
        err, SHOAL_INVALID,
        "--env: %.64s is played by Python, and volunteers run nothing but environments that are "
        "built in; 'shoal agent train' trains it on this machine",
        a->said.env);
  if (a->said.algorithm) shoal_algorithm_parse(a->said.algorithm, &algorithm);
  shoal_status status = shoal_env_need(&kind, a->said.env, err);
  if (status != SHOAL_OK) {
    shoal_error_prefix(err, "--env: ");
    return status;
  }
  status = shoal_agent_defaults(kind, algorithm, settings, err);
  if (status != SHOAL_OK) shoal_error_prefix(err, "--algorithm: ");
  if (status == SHOAL_OK) status = shoal_agent_options_body(&a->said, kind, settings, err);
  a->has_body = a->said.model != NULL;
  return status == SHOAL_OK ? shoal_agent_options_each(&a->said, a, set, err) : status;
}

/* The body is a field of its own. */
static shoal_status write_setting(void *self, const char *name, const char *value, shoal_error *err) {
  (void)err;
  if (strcmp(name, "body") != 0) shoal_json_text(self, name, value);
  return SHOAL_OK;
}

void shoal_host_agent_write(const shoal_host_agent *a, shoal_json *json) {
  const shoal_agent_options *said = &a->said;
  shoal_json_text(json, "kind", "agent");
  shoal_json_text(json, "env", said->env);
  if (said->algorithm) shoal_json_text(json, "algorithm", said->algorithm);
  if (said->seconds > 0) shoal_json_real(json, "seconds", said->seconds);
  if (said->steps > 0) shoal_json_int(json, "steps", (int64_t)said->steps);
  if (said->full) shoal_json_bool(json, "until_solved", false);
  if (a->exact) shoal_json_bool(json, "exact", true);
  if (a->has_body) shoal_json_text(json, "body", a->settings.body);
  if (said->set == NULL) return;
  shoal_json_open(json, "settings", '{');
  shoal_agent_options_each(said, json, write_setting, NULL);
  shoal_json_close(json, '}');
}

shoal_status shoal_host_agent_check(const shoal_host_agent *a, const shoal_text *json, shoal_error *err) {
  shoal_agent_spec spec;
  shoal_spec_fault fault;
  shoal_status status = shoal_agent_spec_parse(&spec, json->bytes, json->length, &fault, err);
  if (status != SHOAL_OK) return status;
  status = shoal_agent_spec_try(&spec, &fault, err);
  bool of_body = strcmp(fault.field, "body") == 0;
  if (status != SHOAL_OK && fault.field[0])
    shoal_error_prefix(err, of_body && a->said.model ? "--model: " : "--set: ");
  shoal_agent_spec_release(&spec);
  return status;
}
