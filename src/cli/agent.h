/* agent.h: the commands under `shoal agent`, one function each: the words after its name in, the exit status
 * out. Threads: none. */
#ifndef SHOAL_CLI_AGENT_H
#define SHOAL_CLI_AGENT_H

int shoal_cli_agent_train(int argc, char **argv);
int shoal_cli_agent_act(int argc, char **argv);
int shoal_cli_agent_play(int argc, char **argv);
int shoal_cli_agent_list(int argc, char **argv);

#endif
