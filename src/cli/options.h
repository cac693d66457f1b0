/* options.h: the command line, read by a table.
 *
 * A command declares its options once; parsing, range checks, the help text and
 * suggestions for misspelt names all come from that table. The GNU way: --name=value or
 * --name value, options and operands in any order, `--` ends the options, the last of a
 * repeated option counts, but of a LIST there may be only one. Parsing is a pure function of
 * the table and the words.
 *
 * Ownership: values point into argv or the table's own words. Threads: none. */
#ifndef SHOAL_CLI_OPTIONS_H
#define SHOAL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

/* One line of the table. Exactly one of flag, text, whole and real says where the value
 * goes; what is there before parsing is the default. A line without a destination is a
 * heading of the help. */
typedef struct shoal_option {
  const char *name;  /* without the dashes; of a heading, its text */
  const char *value; /* what the help calls the value: "N", "FILE"; NULL for a flag */
  const char *help;

  bool *flag;
  const char **text;
  const char *const *choices; /* text: the words allowed, then NULL; or NULL for any text */
  uint64_t *whole;
  uint64_t whole_min, whole_max; /* both inclusive */
  double *real;
  double real_min, real_max; /* both inclusive */
} shoal_option;

typedef struct shoal_usage {
  const char *command;         /* "train"; "bench train" */
  const char *const *synopses; /* what follows "shoal train" in the help, one a form; then NULL */
  const char *about;           /* a paragraph or two */
  const char *operand;         /* what an operand is called: "MODEL.net" */
  size_t operands_min, operands_max;
  const shoal_option *options;
  size_t options_count;
  const char *examples; /* lines, ready to print */
} shoal_usage;

enum { SHOAL_OPERANDS_MAX = 16384 };

typedef struct shoal_operands {
  size_t count;
  const char *at[SHOAL_OPERANDS_MAX]; /* from count up to the usage's operands_max: NULL; beyond: not set */
} shoal_operands;

typedef enum shoal_parsed {
  SHOAL_PARSED,       /* every value is in its place */
  SHOAL_PARSED_HELP,  /* --help or -h was met */
  SHOAL_PARSED_WRONG, /* err says what and how to mend it */
} shoal_parsed;

/* argv[0] is the first word after the command's name. */
shoal_parsed shoal_options_parse(const shoal_usage *usage, int argc, char *const *argv,
                                 shoal_operands *operands, shoal_error *err);

/* How many characters of a word a complaint may repeat: behind a # stands the secret of a link. */
int shoal_options_shown(const char *word);

/* The value of an option that is a TIME: "90s", "10m", "2h", some years at most. A number without its letter is
 * refused, since people differ in what they take it for. (An option whose value is called SECONDS takes
 * the bare number, and is a real.) `flag` is what errors call it: "--budget". */
shoal_status shoal_options_read_time(const char *flag, const char *word, double *seconds, shoal_error *err);

/* The help, wrapped to `width` columns. */
void shoal_options_help(const shoal_usage *usage, uint32_t width, shoal_text *out);

#endif
