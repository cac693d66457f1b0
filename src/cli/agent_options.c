/* agent_options.c: see agent_options.h. */
#include "cli/agent_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char *const algorithms[] = {"ppo", "vtrace", "dqn", "sac", "clone", NULL};

void shoal_agent_options_declare(shoal_agent_options *o, const char *env_help,
                                 shoal_option lines[SHOAL_AGENT_OPTIONS]) {
  const shoal_option own[SHOAL_AGENT_OPTIONS] = {
      {.name = "env", .value = "NAME", .text = &o->env, .help = env_help},
      {.name = "algorithm",
       .value = "NAME",
       .text = &o->algorithm,
       .choices = algorithms,
       .help = "ppo, vtrace, dqn, sac or clone; by default what suits the environment"},
      {.name = "seconds",
       .value = "S",
       .real = &o->seconds,
       .real_min = 0.001,
       .real_max = 1e8,
       .help = "end after so many seconds"},
      {.name = "steps",
       .value = "N",
       .whole = &o->steps,
       .whole_min = 1,
       .whole_max = 1000000000000000,
       .help = "end after so many steps of environments; by default what usually suffices"},
      {.name = "full", .flag = &o->full, .help = "go on to the end, even when it is solved before"},
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
    status = equals ? take(self, part, equals + 1, err)
                    : shoal_fail(err, SHOAL_INVALID, "'%.64s' is not name=value", part);
  }
  free(words);
  if (status != SHOAL_OK) shoal_error_prefix(err, "--set: ");
  return status;
}

shoal_status shoal_agent_options_body(const shoal_agent_options *o, char *body, size_t size,
                                      shoal_error *err) {
  uint8_t *text;
  size_t length;
  if (o->model == NULL) return SHOAL_OK;
  shoal_status status = shoal_file_read(o->model, size - 1, false, &text, &length, err);
  if (status != SHOAL_OK) return status;
  memcpy(body, text, length);
  body[length] = 0;
  free(text);
  return SHOAL_OK;
}
