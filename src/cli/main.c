/* main.c: finds the command and hands the rest of the words to it. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const shoal_command *const commands[] = {
    &shoal_command_train,   &shoal_command_search, &shoal_command_agent,   &shoal_command_launch,
    &shoal_command_serve,   &shoal_command_work,   &shoal_command_host,    &shoal_command_job,
    &shoal_command_status,  &shoal_command_eval,   &shoal_command_predict, &shoal_command_inspect,
    &shoal_command_export,  &shoal_command_data,   &shoal_command_bench,   &shoal_command_sim,
    &shoal_command_version,
};
enum { COMMANDS_COUNT = sizeof commands / sizeof commands[0] };

static const shoal_command *find(const char *name) {
  for (size_t i = 0; i < COMMANDS_COUNT; i++) {
    if (strcmp(commands[i]->name, name) == 0) return commands[i];
  }
  return NULL;
}

static int overview(void) {
  printf("shoal trains neural networks.\n\n"
         "Usage: shoal COMMAND [ARGUMENT...]\n\n"
         "Commands:\n");
  for (size_t i = 0; i < COMMANDS_COUNT; i++) printf("  %-9s  %s\n", commands[i]->name, commands[i]->summary);
  printf("  %-9s  %s\n", "help", "explain a command: shoal help train");
  printf("\nA first run:\n"
         "  shoal train examples/lenet5.net --data fashion-mnist\n"
         "  shoal predict lenet5.safetensors --data fashion-mnist --count 5\n"
         "\nEvery command has --help with examples.\n");
  return shoal_cli_finish("help", SHOAL_EXIT_OK);
}

static int unknown(const char *name) {
  const char *names[COMMANDS_COUNT + 1];
  for (size_t i = 0; i < COMMANDS_COUNT; i++) names[i] = commands[i]->name;
  names[COMMANDS_COUNT] = "help";
  static const shoal_synonyms synonyms[] = {
      {"train", "fit run learn"},
      {"eval", "evaluate test validate score"},
      {"predict", "infer inference generate sample apply"},
      {"inspect", "summary show info describe plot"},
      {"export", "convert save onnx"},
      {"search", "tune automl hpo optimize"},
      {"data", "dataset datasets download"},
      {"serve", "server start web ui"},
      {"work", "worker volunteer join"},
      {"host", "submit"},
      {"agent", "rl gym"},
      {"version", "v"},
  };
  const char *near = shoal_synonym(name, strlen(name), synonyms, sizeof synonyms / sizeof synonyms[0], names,
                                   COMMANDS_COUNT + 1);
  if (!near) near = shoal_nearest(name, strlen(name), names, COMMANDS_COUNT + 1);
  const char *what = name[0] == '-' ? "option" : "command";
  if (near)
    fprintf(stderr, "shoal: unknown %s '%.*s'; did you mean '%s'?\n", what, shoal_options_shown(name), name,
            near);
  else
    fprintf(stderr, "shoal: unknown %s '%.*s'\n", what, shoal_options_shown(name), name);
  fprintf(stderr, "Try 'shoal help'.\n");
  return SHOAL_EXIT_USAGE;
}

static int help(int argc, char **argv) {
  if (argc == 0) return overview();
  const shoal_command *command = find(argv[0]);
  if (argc == 2 && (command == &shoal_command_agent || command == &shoal_command_bench))
    return command->run(2, (char *[]){argv[1], "--help", NULL});
  if (argc > 1) {
    fprintf(stderr, "shoal help: explains one command at a time: shoal help %s\n", argv[0]);
    return SHOAL_EXIT_USAGE;
  }
  if (!command)
    return strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0 ? overview() : unknown(argv[0]);
  return command->run(1, (char *[]){"--help", NULL});
}

int main(int argc, char **argv) {
  if (argc < 2) return overview();
  const char *name = argv[1];
  int rest = argc - 2;
  char **words = argv + 2;
  if (strcmp(name, "help") == 0) return help(rest, words);
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return overview();
  if (strcmp(name, "--version") == 0) return shoal_command_version.run(0, words);
  const shoal_command *command = find(name);
  return command ? command->run(rest, words) : unknown(name);
}
