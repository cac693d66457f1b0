/* agent.c: shoal agent: learning to act. */
#include "cli/agent.h"

#include <string.h>

#include "cli/cli.h"

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
} verbs[] = {{"train", shoal_cli_agent_train},
             {"act", shoal_cli_agent_act},
             {"play", shoal_cli_agent_play},
             {"list", shoal_cli_agent_list}};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static int unknown(const char *word) {
  const char *names[VERBS];
  for (int i = 0; i < VERBS; i++) names[i] = verbs[i].name;
  const char *near = shoal_nearest(word, strlen(word), names, VERBS);
  shoal_error err;
  shoal_fail(&err, SHOAL_INVALID, "'%.*s' is not one of train, act, play and list%s%s%s",
             shoal_options_shown(word), word, near ? "; did you mean '" : "", near ? near : "",
             near ? "'?" : "");
  return shoal_cli_misused("agent", &err);
}

static int overview(int argc, char **argv) {
  const shoal_usage usage = {
      .command = "agent",
      .synopses = (const char *[]){"train --env NAME [OPTION...]", "act --queue URL [OPTION...]",
                                   "play FILE [OPTION...]", "list [--json]", NULL},
      .about = "Trains an agent to act in an environment, plays for one that is trained elsewhere, shows it "
               "at play, or lists what environments and "
               "algorithms there are. Each has --help of its own: shoal agent train --help.",
      .operand = "what to do (train, act, play or list)",
      .operands_min = 1,
      .operands_max = 1,
      .examples = "  shoal agent list\n"
                  "  shoal agent train --env CartPole-v1\n"
                  "  shoal agent play CartPole-v1.safetensors\n",
  };
  shoal_operands operands;
  int status;
  return shoal_cli_parse(&usage, argc, argv, &operands, &status) ? unknown(operands.at[0]) : status;
}

static int run(int argc, char **argv) {
  for (int i = 0; argc > 0 && i < VERBS; i++)
    if (strcmp(argv[0], verbs[i].name) == 0) return verbs[i].run(argc - 1, argv + 1);
  return argc > 0 && argv[0][0] != '-' ? unknown(argv[0]) : overview(argc, argv);
}

const shoal_command shoal_command_agent = {"agent", "train an agent to act, and watch it play", run};
