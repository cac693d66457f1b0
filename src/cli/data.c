/* data.c: shoal data: the data sets that are known by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "data/named.h"

typedef struct data_options {
  const char *action, *name, *data_dir;
  bool json, quiet;
} data_options;

static bool parse(data_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data_dir,
       .help = "where sets are kept; ~/.local/share/shoal by default"},
      {.name = "json", .flag = &o->json, .help = "JSON, one line a set"},
      {.name = "quiet", .flag = &o->quiet, .help = "print nothing but errors"},
  };
  const shoal_usage usage = {
      .command = "data",
      .synopses = (const char *[]){"list", "info NAME", "get NAME", NULL},
      .about = "Lists the data sets that --data knows by name, says where one is and whether its files are "
               "whole, or downloads it. Sets are also found in $SHOAL_DATA/NAME, in ./data/NAME and in "
               "/usr/share/datasets/NAME, where Debian's packages put theirs.",
      .operand = "what to do (list, info or get)",
      .operands_min = 1,
      .operands_max = 2,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal data list\n"
                  "  shoal data get fashion-mnist\n"
                  "  shoal data info mnist\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  o->action = operands.at[0];
  o->name = operands.at[1];

  static const char *const actions[] = {"list", "info", "get"};
  bool known = false, is_list = strcmp(o->action, "list") == 0;
  for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
    known = known || strcmp(o->action, actions[i]) == 0;
  shoal_error err;
  if (!known)
    shoal_fail(&err, SHOAL_INVALID, "unknown action '%s'; there are list, info and get", o->action);
  else if (!is_list && !o->name)
    shoal_fail(&err, SHOAL_INVALID,
               "the name of a set is missing: shoal data %s NAME; 'shoal data list' shows them", o->action);
  else if (is_list && o->name)
    shoal_fail(&err, SHOAL_INVALID, "unexpected argument '%s'; for one set: shoal data info %s", o->name,
               o->name);
  else
    return true;
  *status = shoal_cli_misused("data", &err);
  return false;
}

static void print_json(const shoal_named_set *set, const char *folder) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_json json;
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", set->name);
  shoal_json_text(&json, "what", set->what);
  shoal_json_text(&json, "source", set->source);
  shoal_json_text(&json, "url", set->url);
  shoal_json_bool(&json, "here", folder != NULL);
  if (folder) shoal_json_text(&json, "folder", folder);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

/* ---- list --------------------------------------------------------------------------- */

static int list(const data_options *o) {
  bool any_missing = false;
  for (size_t i = 0; i < shoal_named_count(); i++) {
    const shoal_named_set *set = shoal_named_at(i);
    char *folder = shoal_named_find(set, o->data_dir);
    if (o->json) {
      print_json(set, folder);
    } else {
      printf("%-14s %s\n", set->name, set->what);
      printf("%-14s %s\n", "", folder ? folder : "not on this machine yet");
      any_missing = any_missing || !folder;
    }
    free(folder);
  }
  if (any_missing) printf("\nTo download a set: shoal data get NAME\n");
  return shoal_cli_finish("data", SHOAL_EXIT_OK);
}

/* ---- info --------------------------------------------------------------------------- */

static int info(const data_options *o, const shoal_named_set *set) {
  char *folder = shoal_named_find(set, o->data_dir);
  if (o->json) {
    print_json(set, folder);
    free(folder);
    return shoal_cli_finish("data", SHOAL_EXIT_OK);
  }
  printf("%-8s %s\n%-8s %s\n%-8s %s\n%-8s %s\n", "name", set->name, "what", set->what, "source", set->source,
         "url", set->url);
  if (set->package) printf("%-8s apt install %s\n", "Debian", set->package);
  for (uint32_t i = 0; i < set->classes_count; i++)
    printf("%s%s%s", i == 0 ? "classes  " : ", ", set->classes[i], i + 1 == set->classes_count ? "\n" : "");
  if (!folder) {
    printf("%-8s not on this machine yet; to download it: shoal data get %s\n", "folder", set->name);
    return shoal_cli_finish("data", SHOAL_EXIT_OK);
  }
  printf("%-8s %s\n", "folder", folder);
  fflush(stdout);
  shoal_error err;
  shoal_status status = shoal_named_verify(set, folder, &err);
  free(folder);
  if (status != SHOAL_OK) return shoal_cli_failed("data", &err);
  printf("%-8s whole: every checksum is right\n", "files");
  return shoal_cli_finish("data", SHOAL_EXIT_OK);
}

/* ---- get ---------------------------------------------------------------------------- */

static void show_download(void *context, const char *file, uint64_t bytes) {
  (void)context;
  fprintf(stderr, "\r%s  %s\x1b[K", file, shoal_human_bytes((double)bytes).text);
  fflush(stderr);
}

static int get(const data_options *o, const shoal_named_set *set) {
  char *folder = shoal_named_find(set, o->data_dir);
  /* A download that was stopped in the middle goes on. */
  if (folder && shoal_named_verify(set, folder, NULL) == SHOAL_OK) {
    if (!o->quiet) printf("%s is here already: %s\n", set->name, folder);
    free(folder);
    return shoal_cli_finish("data", SHOAL_EXIT_OK);
  }
  free(folder);
  bool watched = !o->quiet && shoal_terminal_of(stderr).is_terminal;
  shoal_error err;
  shoal_status status = shoal_named_get(set, o->data_dir, watched ? show_download : NULL, NULL, &err);
  if (watched) fprintf(stderr, "\r\x1b[K");
  if (status != SHOAL_OK) return shoal_cli_failed("data", &err);
  folder = shoal_named_find(set, o->data_dir);
  if (!o->quiet)
    printf("%s: %s\nNext: shoal train MODEL.net --data %s\n", set->name, folder ? folder : "downloaded",
           set->name);
  free(folder);
  return shoal_cli_finish("data", SHOAL_EXIT_OK);
}

static int run(int argc, char **argv) {
  data_options o = {0};
  int status;
  if (!parse(&o, argc, argv, &status)) return status;
  if (strcmp(o.action, "list") == 0) return list(&o);
  const shoal_named_set *set = shoal_named_set_of(o.name);
  if (!set) {
    shoal_error err;
    const char *near = shoal_named_nearest(o.name);
    shoal_fail(&err, SHOAL_NOT_FOUND, "there is no set called '%s'; %s%s%s", o.name,
               near ? "did you mean '" : "'shoal data list' shows those there are", near ? near : "",
               near ? "'?" : "");
    return shoal_cli_failed("data", &err);
  }
  return strcmp(o.action, "info") == 0 ? info(&o, set) : get(&o, set);
}

const shoal_command shoal_command_data = {"data", "list, check and download data sets", run};
