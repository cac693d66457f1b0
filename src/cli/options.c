/* options.c: see options.h. Parsing first, then the help. */
#include "cli/options.h"

#include <string.h>

#include "base/assert.h"

enum { OPTIONS_MAX = 64 };

static bool is_heading(const shoal_option *option) {
  return !option->flag && !option->text && !option->whole && !option->real;
}

/* ---- parsing ------------------------------------------------------------------------ */

static const shoal_option *find(const shoal_usage *usage, const char *name, size_t length) {
  for (size_t i = 0; i < usage->options_count; i++) {
    const shoal_option *option = &usage->options[i];
    if (!is_heading(option) && strlen(option->name) == length && memcmp(option->name, name, length) == 0)
      return option;
  }
  return NULL;
}

/* Whether a word is one of the command's options and not, say, a negative number. */
static bool is_known_option(const shoal_usage *usage, const char *word) {
  if (strncmp(word, "--", 2) != 0) return false;
  size_t length = strcspn(word + 2, "=");
  return find(usage, word + 2, length) != NULL || strcmp(word, "--help") == 0;
}

int shoal_options_shown(const char *word) { return (int)strcspn(word, "#"); }

static void unknown_option(const shoal_usage *usage, const char *word, shoal_error *err) {
  const char *names[OPTIONS_MAX];
  size_t count = 0;
  for (size_t i = 0; i < usage->options_count; i++) {
    if (!is_heading(&usage->options[i])) names[count++] = usage->options[i].name;
  }
  names[count++] = "help";
  size_t dashes = strspn(word, "-");
  size_t length = strcspn(word, "=#");
  const char *near = length > dashes ? shoal_nearest(word + dashes, length - dashes, names, count) : NULL;
  if (near)
    shoal_fail(err, SHOAL_INVALID, "unknown option '%.*s'; did you mean '--%s'?", (int)length, word, near);
  else
    shoal_fail(err, SHOAL_INVALID, "unknown option '%.*s'", (int)length, word);
}

static bool store_choice(const shoal_option *option, const char *value, shoal_error *err) {
  shoal_text list;
  shoal_text_init(&list);
  for (size_t i = 0; option->choices[i]; i++) {
    if (strcmp(option->choices[i], value) == 0) {
      *option->text = option->choices[i];
      shoal_text_release(&list);
      return true;
    }
    const char *between = i == 0 ? "" : option->choices[i + 1] ? ", " : " or ";
    shoal_text_addf(&list, "%s%s", between, option->choices[i]);
  }
  shoal_fail(err, SHOAL_INVALID, "--%s: '%.*s' is not one of %s", option->name, shoal_options_shown(value),
             value, list.bytes ? list.bytes : "");
  shoal_text_release(&list);
  return false;
}

static bool store_whole(const shoal_option *option, const char *value, shoal_error *err) {
  uint64_t number;
  size_t digits = strspn(value, "0123456789");
  bool is_whole = digits > 0 && value[digits] == 0;
  if (!is_whole) {
    shoal_fail(err, SHOAL_INVALID, "--%s: '%.*s' is not a whole number", option->name,
               shoal_options_shown(value), value);
    return false;
  }
  if (!shoal_read_u64(value, digits, &number) || number < option->whole_min || number > option->whole_max) {
    shoal_fail(err, SHOAL_INVALID, "--%s: %s is out of range; it takes %llu to %llu", option->name, value,
               (unsigned long long)option->whole_min, (unsigned long long)option->whole_max);
    return false;
  }
  *option->whole = number;
  return true;
}

static bool store_real(const shoal_option *option, const char *value, shoal_error *err) {
  double number;
  if (!shoal_read_f64(value, strlen(value), &number)) {
    shoal_fail(err, SHOAL_INVALID, "--%s: '%.*s' is not a number", option->name, shoal_options_shown(value),
               value);
    return false;
  }
  if (number < option->real_min || number > option->real_max) {
    shoal_fail(err, SHOAL_INVALID, "--%s: %s is out of range; it takes %.15g to %.15g", option->name, value,
               option->real_min, option->real_max);
    return false;
  }
  *option->real = number;
  return true;
}

static bool store(const shoal_option *option, const char *value, shoal_error *err) {
  if (option->whole) return store_whole(option, value, err);
  if (option->real) return store_real(option, value, err);
  if (option->choices) return store_choice(option, value, err);
  if (!value[0]) {
    shoal_fail(err, SHOAL_INVALID, "--%s: the value is empty", option->name);
    return false;
  }
  *option->text = value;
  return true;
}

/* Whoever says two lists means both, and would get the second. */
static bool is_second_list(const shoal_usage *usage, const shoal_option *option, bool given[OPTIONS_MAX],
                           shoal_error *err) {
  bool *is_given = &given[option - usage->options];
  if (*is_given && strcmp(option->value, "LIST") == 0) {
    shoal_fail(err, SHOAL_INVALID, "--%s was given twice; put all of it into one, with commas", option->name);
    return true;
  }
  *is_given = true;
  return false;
}

/* Reads the option at argv[*i], which starts with two dashes, and its value. */
static bool parse_option(const shoal_usage *usage, int argc, char *const *argv, int *i,
                         bool given[OPTIONS_MAX], shoal_error *err) {
  const char *name = argv[*i] + 2;
  size_t length = strcspn(name, "=");
  const char *value = name[length] == '=' ? name + length + 1 : NULL;
  const shoal_option *option = find(usage, name, length);
  if (!option) {
    unknown_option(usage, argv[*i], err);
    return false;
  }
  if (option->flag) {
    if (value) {
      shoal_fail(err, SHOAL_INVALID, "--%s takes no value", option->name);
      return false;
    }
    *option->flag = true;
    return true;
  }
  if (!value) {
    /* A value may start with dashes, but taking the next option for one would only put
     * the complaint in the wrong place. */
    bool missing = *i + 1 >= argc || is_known_option(usage, argv[*i + 1]);
    if (missing) {
      shoal_fail(err, SHOAL_INVALID, "--%s needs a value: --%s %s", option->name, option->name,
                 option->value);
      return false;
    }
    value = argv[++*i];
  }
  return !is_second_list(usage, option, given, err) && store(option, value, err);
}

static bool add_operand(const shoal_usage *usage, const char *word, shoal_operands *operands,
                        shoal_error *err) {
  if (operands->count == usage->operands_max) {
    shoal_fail(err, SHOAL_INVALID, "unexpected argument '%.*s'", shoal_options_shown(word), word);
    return false;
  }
  operands->at[operands->count++] = word;
  return true;
}

shoal_parsed shoal_options_parse(const shoal_usage *usage, int argc, char *const *argv,
                                 shoal_operands *operands, shoal_error *err) {
  SHOAL_ASSERT(usage->options_count < OPTIONS_MAX);
  SHOAL_ASSERT(usage->operands_max <= SHOAL_OPERANDS_MAX);
  *operands = (shoal_operands){0};
  bool only_operands = false, given[OPTIONS_MAX] = {false};
  for (int i = 0; i < argc; i++) {
    const char *word = argv[i];
    bool is_operand = only_operands || word[0] != '-' || word[1] == 0;
    if (is_operand) {
      if (!add_operand(usage, word, operands, err)) return SHOAL_PARSED_WRONG;
    } else if (strcmp(word, "--") == 0) {
      only_operands = true;
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
      return SHOAL_PARSED_HELP;
    } else if (word[1] != '-') {
      unknown_option(usage, word, err);
      return SHOAL_PARSED_WRONG;
    } else if (!parse_option(usage, argc, argv, &i, given, err)) {
      return SHOAL_PARSED_WRONG;
    }
  }
  if (operands->count < usage->operands_min) {
    shoal_fail(err, SHOAL_INVALID, "%s is missing", usage->operand);
    return SHOAL_PARSED_WRONG;
  }
  return SHOAL_PARSED;
}

/* ---- help --------------------------------------------------------------------------- */

/* Adds words, breaking lines at `width` and starting each new one at `indent`. `column` is
 * where the current line stands. A newline in the words ends the line too. */
static void add_wrapped(shoal_text *out, const char *words, uint32_t column, uint32_t indent,
                        uint32_t width) {
  bool line_is_empty = true;
  while (*words) {
    size_t length = strcspn(words, " \n");
    if (!line_is_empty && column + 1 + length > width) {
      shoal_text_addf(out, "\n%*s", (int)indent, "");
      column = indent;
      line_is_empty = true;
    }
    if (!line_is_empty) {
      shoal_text_add(out, " ", 1);
      column++;
    }
    shoal_text_add(out, words, length);
    column += (uint32_t)length;
    line_is_empty = false;
    words += length;
    if (*words == '\n' && words[1]) {
      shoal_text_addf(out, "\n%*s", words[1] == '\n' ? 0 : (int)indent, "");
      column = indent;
      line_is_empty = true;
    }
    if (*words) words++;
  }
  shoal_text_add(out, "\n", 1);
}

static void add_option(shoal_text *out, const shoal_option *option, uint32_t indent, uint32_t width) {
  size_t start = out->length;
  shoal_text_addf(out, "  --%s", option->name);
  if (option->value) shoal_text_addf(out, " %s", option->value);
  size_t length = out->length - start;
  if (length + 2 > indent) {
    shoal_text_add(out, "\n", 1);
    length = 0;
  }
  shoal_text_addf(out, "%*s", (int)(indent - length), "");
  add_wrapped(out, option->help, indent, indent, width);
}

bool shoal_options_read_time(const char *word, double *seconds) {
  static const double seconds_max = 1e8;
  size_t length = strlen(word);
  double number, unit = 60;
  if (length > 0 && strchr("smh", word[length - 1])) {
    char letter = word[--length];
    unit = letter == 's' ? 1 : letter == 'm' ? 60 : 3600;
  }
  if (!shoal_read_f64(word, length, &number) || !(number > 0 && number * unit <= seconds_max)) return false;
  *seconds = number * unit;
  return true;
}

void shoal_options_help(const shoal_usage *usage, uint32_t width, shoal_text *out) {
  enum { INDENT = 23 };
  if (width > 100) width = 100;
  if (width < INDENT + 20) width = INDENT + 20;

  for (size_t i = 0; usage->synopses[i]; i++)
    shoal_text_addf(out, "%s shoal %s %s\n", i == 0 ? "Usage:" : "   or:", usage->command,
                    usage->synopses[i]);
  shoal_text_add(out, "\n", 1);
  add_wrapped(out, usage->about, 0, 0, width);

  bool any_heading = usage->options_count > 0 && is_heading(&usage->options[0]);
  if (!any_heading) shoal_text_addf(out, "\nOptions:\n");
  for (size_t i = 0; i < usage->options_count; i++) {
    if (is_heading(&usage->options[i]))
      shoal_text_addf(out, "\n%s:\n", usage->options[i].name);
    else
      add_option(out, &usage->options[i], INDENT, width);
  }
  add_option(out, &(shoal_option){.name = "help", .help = "this text"}, INDENT, width);
  shoal_text_addf(out, "\nExamples:\n%s", usage->examples);
}
