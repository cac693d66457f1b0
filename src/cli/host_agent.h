/* host_agent.h: shoal host --env: an agent that a server is asked for, as its own JSON
 * (server/agent_spec.h).
 *
 * Ownership: everything is borrowed. Threads: one. */
#ifndef SHOAL_CLI_HOST_AGENT_H
#define SHOAL_CLI_HOST_AGENT_H

#include "base/json.h"
#include "cli/agent_options.h"

typedef struct shoal_host_agent {
  shoal_agent_options said;
  bool exact;
  /* What shoal_host_agent_read makes of it. */
  shoal_agent_settings settings;
  bool has_body; /* one was said */
} shoal_host_agent;

enum { SHOAL_HOST_AGENT_OPTIONS = SHOAL_AGENT_OPTIONS + 2 }; /* a heading among them */
/* Writes the options' lines of the table. */
void shoal_host_agent_declare(shoal_host_agent *agent, shoal_option lines[SHOAL_HOST_AGENT_OPTIONS]);
/* The first option of an agent that was given, but for --env; NULL: none. */
const char *shoal_host_agent_given(const shoal_host_agent *agent);

/* Environment, algorithm, settings and body, checked as far as that can be done here. */
shoal_status shoal_host_agent_read(shoal_host_agent *agent, shoal_error *err);
/* The fields, into an object that is open. */
void shoal_host_agent_write(const shoal_host_agent *agent, shoal_json *json);
/* What the server would say of the whole object. */
shoal_status shoal_host_agent_check(const shoal_host_agent *agent, const shoal_text *json, shoal_error *err);

#endif
