/* agent_options.c: see agent_options.h. */
#include "cli/agent_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static void name_algorithms(shoal_agent_options *o) {
  char names[SHOAL_ALGORITHM_NAMES_MAX];
  shoal_algorithm_names(names);
  snprintf(o->algorithm_help, sizeof o->algorithm_help, "%s; by default what suits the environment", names);
  for (int i = 0; i < SHOAL_ALGORITHMS; i++) o->algorithms[i] = shoal_algorithm_name((shoal_algorithm)i);
  o->algorithms[SHOAL_ALGORITHMS] = NULL;
}

void shoal_agent_options_declare(shoal_agent_options *o, const char *env_help,
                                 shoal_option lines[SHOAL_AGENT_OPTIONS]) {
  name_algorithms(o);
  const shoal_option own[SHOAL_AGENT_OPTIONS] = {
      {.name = "env", .value = "NAME", .text = &o->env, .help = env_help},
      {.name = "algorithm",
       .value = "NAME",
       .text = &o->algorithm,
       .choices = o->algorithms,
       .help = o->algorithm_help},
      {.name = "seconds",
       .value = "SECONDS",
       .real = &o->seconds,
       .real_min = 0.001,
       .real_max = 1e8,
       .help = "end after this many seconds"},
      {.name = "steps",
       .value = "N",
       .whole = &o->steps,
       .whole_min = 1,
       .whole_max = 1000000000000000,
       .help = "end after N steps of environments; by default as many as usually suffice"},
      {.name = "full",
       .flag = &o->full,
       .help = "continue to the end, even when the environment is solved before"},
      {.name = "set",
       .value = "LIST",
       .text = &o->set,
       .help = "settings as name=value,name=value: rate=0.001,epochs=4; docs/agents.md lists them"},
      {.name = "model",
       .value = "FILE",
       .text = &o->model,
       .help = "the layers between what is seen and what is done, as in model texts; 'dense 64 tanh' twice, "
               "or what suits"},
  };
  memcpy(lines, own, sizeof own);
}

/* Whether a part of the list before `end` has this name. */
static bool is_said(const char *list, const char *end, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; at < end; at += strcspn(at, ",") + 1)
    if (strcspn(at, "=,") == length && strncmp(at, name, length) == 0) return true;
  return false;
}

static shoal_status check_said(const shoal_agent_options *o, size_t offset, const char *name,
                               shoal_error *err) {
  if (is_said(o->set, o->set + offset, name))
    return shoal_fail(err, SHOAL_INVALID, "%.64s is given twice", name);
  if (o->model && strcmp(name, "body") == 0)
    return shoal_fail(err, SHOAL_INVALID, "the body is in %s already: give one of --model and body",
                      o->model);
  return SHOAL_OK;
}

shoal_status shoal_agent_options_each(const shoal_agent_options *o, void *self, shoal_agent_options_take take,
                                      shoal_error *err) {
  if (o->set == NULL) return SHOAL_OK;
  char *words = strdup(o->set), *rest;
  if (words == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = SHOAL_OK;
  for (char *part = strtok_r(words, ",", &rest); part && status == SHOAL_OK;
       part = strtok_r(NULL, ",", &rest)) {
    char *equals = strchr(part, '=');
    if (equals) *equals = 0;
    status = equals ? check_said(o, (size_t)(part - words), part, err)
                    : shoal_fail(err, SHOAL_INVALID, "'%.64s' is not name=value", part);
    if (status == SHOAL_OK) status = take(self, part, equals + 1, err);
  }
  free(words);
  if (status != SHOAL_OK) shoal_error_prefix(err, "--set: ");
  return status;
}

shoal_status shoal_agent_options_body(const shoal_agent_options *o, const shoal_env_kind *kind,
                                      shoal_agent_settings *settings, shoal_error *err) {
  uint8_t *text;
  size_t length;
  if (o->model == NULL) return SHOAL_OK;
  shoal_status status = shoal_file_read(o->model, sizeof settings->body - 1, false, &text, &length, err);
  if (status != SHOAL_OK) return status;
  memcpy(settings->body, text, length);
  settings->body[length] = 0;
  free(text);
  if (strlen(settings->body) < length)
    return shoal_fail(err, SHOAL_INVALID, "%s: found a zero byte; a model is plain text", o->model);
  const shoal_brain_config config = {.name = "policy",
                                     .where = o->model,
                                     .body = settings->body,
                                     .inputs = kind->observation,
                                     .outputs = 1,
                                     .steps = 1};
  uint64_t weights;
  uint32_t state_floats;
  return shoal_brain_measure(&config, &weights, &state_floats, err);
}
