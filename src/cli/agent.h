/* agent.h: the commands under `shoal agent`, one function each: the words after its name in, the exit status
 * out. Threads: none. */
#ifndef SHOAL_CLI_AGENT_H
#define SHOAL_CLI_AGENT_H

#include <stdbool.h>

int shoal_cli_agent_train(int argc, char **argv);
int shoal_cli_agent_act(int argc, char **argv);
int shoal_cli_agent_play(int argc, char **argv);
int shoal_cli_agent_list(int argc, char **argv);

/* For `shoal inspect`: what is in an agent's file. */
int shoal_cli_agent_inspect(const char *path, bool json);

#endif
