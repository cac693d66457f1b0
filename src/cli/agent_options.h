/* agent_options.h: what is said of an agent's training, to `shoal agent train` and to `shoal host --env`.
 *
 * Ownership: texts are borrowed. Threads: one. */
#ifndef SHOAL_CLI_AGENT_OPTIONS_H
#define SHOAL_CLI_AGENT_OPTIONS_H

#include "agent/learner.h"
#include "cli/options.h"

/* NULL, 0 or false where nothing is. */
typedef struct shoal_agent_options {
  const char *env, *algorithm, *set, *model;
  uint64_t steps;
  double seconds;
  bool full;
} shoal_agent_options;

enum { SHOAL_AGENT_OPTIONS = 7 };
/* Writes the options' lines of the table; env_help: which environments there are. */
void shoal_agent_options_declare(shoal_agent_options *options, const char *env_help,
                                 shoal_option lines[SHOAL_AGENT_OPTIONS]);

/* The settings of --set, one after the other, until one is not SHOAL_OK. */
typedef shoal_status (*shoal_agent_options_take)(void *self, const char *name, const char *value,
                                                 shoal_error *err);
shoal_status shoal_agent_options_each(const shoal_agent_options *options, void *self,
                                      shoal_agent_options_take take, shoal_error *err);
/* The file of --model into a body; without one the body is left as it is. */
shoal_status shoal_agent_options_body(const shoal_agent_options *options, char *body, size_t size,
                                      shoal_error *err);

#endif
