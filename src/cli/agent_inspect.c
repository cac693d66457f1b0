/* agent_inspect.c: what is in an agent's file, for `shoal inspect`; see agent.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/learner.h"
#include "base/human.h"
#include "cli/agent.h"
#include "cli/cli.h"

/* The body in one line: "dense 64 tanh, dense 64 tanh". */
static void add_layers(const char *body, shoal_text *out) {
  for (const char *at = body; *at;) {
    size_t length = strcspn(at, "\n");
    char plain[256];
    shoal_text_plain(plain, sizeof plain, at, length);
    shoal_text_addf(out, "%s%s", at == body ? "" : ", ", plain);
    at += length + (at[length] == '\n');
  }
}

static void print_text(const shoal_agent_file *file, const char *layers) {
  printf("%-11s %s\n", "environment", file->env);
  printf("%-11s %s: %s\n", "algorithm", shoal_algorithm_name(file->algorithm),
         shoal_algorithm_says(file->algorithm));
  printf("%-11s %s", "steps", shoal_human_count(file->steps).text);
  if (file->steps_all > 0) printf(" of %s", shoal_human_count(file->steps_all).text);
  printf(", seed %llu\n", (unsigned long long)file->seed);
  if (isnan(file->return_mean))
    printf("%-11s not known: it was not scored\n", "return");
  else
    printf("%-11s %.5g, the mean of its last score\n", "return", file->return_mean);
  printf("%-11s %s\n", "layers", layers);
  printf("%-11s %s in the policy\n", "weights", shoal_human_count(file->weights).text);
  printf("%-11s %s\n", "training",
         file->whole ? "can go on from here: shoal agent train --resume --out FILE"
                     : "cannot go on: the file has the policy alone");
}

static void print_json(const shoal_agent_file *file, const char *path) {
  shoal_text line, settings = {0};
  shoal_json json;
  shoal_agent_settings_write(&file->settings, &settings);
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_text(&json, "model", path);
  shoal_json_text(&json, "env", file->env);
  shoal_json_text(&json, "algorithm", shoal_algorithm_name(file->algorithm));
  shoal_json_int(&json, "seed", (int64_t)file->seed);
  shoal_json_int(&json, "steps", (int64_t)file->steps);
  shoal_json_int(&json, "steps_all", (int64_t)file->steps_all);
  shoal_json_real(&json, "return_mean", file->return_mean);
  shoal_json_bool(&json, "whole", file->whole);
  shoal_json_int(&json, "weights", (int64_t)file->weights);
  shoal_json_text(&json, "body", file->settings.body);
  shoal_json_text(&json, "settings", settings.bytes ? settings.bytes : "");
  shoal_cli_event_end(&json);
  shoal_text_release(&settings);
}

int shoal_cli_agent_inspect(const char *path, bool json) {
  shoal_error err;
  shoal_agent_file file;
  if (shoal_agent_open(path, &file, NULL, &err) != SHOAL_OK) return shoal_cli_failed("inspect", &err);
  shoal_text layers = {0};
  add_layers(file.settings.body, &layers);
  if (json)
    print_json(&file, path);
  else
    print_text(&file, layers.bytes ? layers.bytes : "");
  shoal_text_release(&layers);
  return shoal_cli_finish("inspect", SHOAL_EXIT_OK);
}
