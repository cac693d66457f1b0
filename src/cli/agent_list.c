/* agent_list.c: shoal agent list: what environments and algorithms there are. */
#include <math.h>
#include <stdio.h>

#include "agent/learner.h"
#include "base/human.h"
#include "cli/agent.h"
#include "cli/cli.h"

static void describe_actions(const shoal_env_kind *kind, char *out, size_t size) {
  if (kind->choices > 0)
    snprintf(out, size, "one of %u", kind->choices);
  else
    snprintf(out, size, "%u from %g to %g", kind->action_width, (double)kind->action_low,
             (double)kind->action_high);
}

static const char *usual_algorithm(const shoal_env_kind *kind) {
  shoal_agent_settings settings;
  shoal_status status = shoal_agent_defaults(kind, SHOAL_ALGORITHMS, &settings, NULL);
  return status == SHOAL_OK ? shoal_algorithm_name(settings.algorithm) : "none";
}

static void print_text(void) {
  printf("%-26s  %4s  %-14s  %6s  %6s  %-6s  %s\n", "environment", "sees", "does", "steps", "goal", "usual",
         "what is to be done");
  for (const shoal_env_kind *const *at = shoal_env_kinds; *at; at++) {
    const shoal_env_kind *kind = *at;
    char actions[64], goal[16] = "-", limit[16] = "-";
    describe_actions(kind, actions, sizeof actions);
    if (!isnan(kind->solved)) snprintf(goal, sizeof goal, "%g", kind->solved);
    if (kind->limit > 0) snprintf(limit, sizeof limit, "%u", kind->limit);
    printf("%-26s  %4u  %-14s  %6s  %6s  %-6s  %s\n", kind->name, kind->observation, actions, limit, goal,
           usual_algorithm(kind), kind->says);
  }
  printf("\n");
  for (int i = 0; i < SHOAL_ALGORITHMS; i++)
    printf("%-8s  %s\n", shoal_algorithm_name((shoal_algorithm)i), shoal_algorithm_says((shoal_algorithm)i));
  printf("\nEnvironments of Gymnasium's are called gym:NAME; they need Python with that package.\n");
}

static void print_json(void) {
  shoal_json json;
  shoal_text line;
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_open(&json, "environments", '[');
  for (const shoal_env_kind *const *at = shoal_env_kinds; *at; at++) {
    const shoal_env_kind *kind = *at;
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "name", kind->name);
    shoal_json_text(&json, "says", kind->says);
    shoal_json_int(&json, "observation", kind->observation);
    shoal_json_int(&json, "choices", kind->choices);
    shoal_json_int(&json, "action_width", kind->action_width);
    if (kind->choices == 0) {
      shoal_json_real(&json, "action_low", shoal_human_float(kind->action_low));
      shoal_json_real(&json, "action_high", shoal_human_float(kind->action_high));
    }
    shoal_json_int(&json, "limit", kind->limit);
    shoal_json_real(&json, "goal", kind->solved);
    shoal_json_text(&json, "algorithm", usual_algorithm(kind));
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_open(&json, "algorithms", '[');
  for (int i = 0; i < SHOAL_ALGORITHMS; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "name", shoal_algorithm_name((shoal_algorithm)i));
    shoal_json_text(&json, "says", shoal_algorithm_says((shoal_algorithm)i));
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_cli_event_end(&json);
}

int shoal_cli_agent_list(int argc, char **argv) {
  bool as_json = false;
  const shoal_option options[] = {{.name = "json", .flag = &as_json, .help = "one line of JSON"}};
  const shoal_usage usage = {
      .command = "agent list",
      .synopses = (const char *[]){"[--json]", NULL},
      .about =
          "Lists the environments that are built in: how many numbers an agent sees, what it may do, after "
          "how many steps an episode is cut off, the mean return of 100 episodes that counts as solved, and "
          "the algorithm that is used unless another is named; then the algorithms.",
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal agent list\n"
                  "  shoal agent list --json\n",
  };
  shoal_operands operands;
  int status;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, &status)) return status;
  if (as_json)
    print_json();
  else
    print_text();
  return shoal_cli_finish("agent list", SHOAL_EXIT_OK);
}
