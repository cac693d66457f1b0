/* agent_options.h: what is said of an agent's training, to `shoal agent train` and to `shoal host --env`.
 *
 * Ownership: texts are borrowed. Threads: one. */
#ifndef SHOAL_CLI_AGENT_OPTIONS_H
#define SHOAL_CLI_AGENT_OPTIONS_H

#include "agent/learner.h"
#include "cli/options.h"

/* NULL, 0 or false where nothing is said. */
typedef struct shoal_agent_options {
  const char *env, *algorithm, *set, *model;
  uint64_t steps;
  double seconds;
  bool full;
  /* what the lines of the table point to */
  const char *algorithms[SHOAL_ALGORITHMS + 1];
  char algorithm_help[SHOAL_ALGORITHM_NAMES_MAX + 64];
} shoal_agent_options;

enum { SHOAL_AGENT_OPTIONS = 7 };
/* Writes the options' lines of the table, which points into `options`; env_help: which environments there
 * are. */
void shoal_agent_options_declare(shoal_agent_options *options, const char *env_help,
                                 shoal_option lines[SHOAL_AGENT_OPTIONS]);

/* The settings of --set, one after the other, until one is not SHOAL_OK. SHOAL_INVALID: also when one is said
 * twice, or a body beside --model. */
typedef shoal_status (*shoal_agent_options_take)(void *self, const char *name, const char *value,
                                                 shoal_error *err);
shoal_status shoal_agent_options_each(const shoal_agent_options *options, void *self,
                                      shoal_agent_options_take take, shoal_error *err);
/* The file of --model into the settings' body; without one that is left as it is. It is checked here already,
 * where errors can name the file. */
shoal_status shoal_agent_options_body(const shoal_agent_options *options, const shoal_env_kind *kind,
                                      shoal_agent_settings *settings, shoal_error *err);

#endif
