/* cli.c: see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/human.h"
#include "base/pool.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "train/training.h"

enum { ASIDE_MAX = 1000 };

/* ---- parsing and messages ----------------------------------------------------------- */

/* Why standard output failed first; stdio itself remembers only that it did. */
static int output_errno;

static void print_output(const shoal_text *text) {
  errno = 0;
  bool whole = fwrite(text->bytes, 1, text->length, stdout) == text->length;
  if (!whole && !output_errno) output_errno = errno;
}

static void flush_output(void) {
  if (fflush(stdout) != 0 && !output_errno) output_errno = errno;
}

bool shoal_cli_parse(const shoal_usage *usage, int argc, char **argv, shoal_operands *operands, int *status) {
  shoal_error err;
  switch (shoal_options_parse(usage, argc, argv, operands, &err)) {
  case SHOAL_PARSED: return true;
  case SHOAL_PARSED_WRONG: *status = shoal_cli_misused(usage->command, &err); return false;
  case SHOAL_PARSED_HELP: break;
  }
  shoal_text help;
  shoal_text_init(&help);
  shoal_options_help(usage, shoal_terminal_of(stdout).width, &help);
  if (!help.failed) print_output(&help);
  shoal_text_release(&help);
  *status = shoal_cli_finish(usage->command, SHOAL_EXIT_OK);
  return false;
}

int shoal_cli_failed(const char *command, const shoal_error *err) {
  fflush(stdout);
  fprintf(stderr, "shoal %s: %s\n", command, err->text);
  int number = shoal_stop_signal();
  return number > 0 && err->status == SHOAL_FULL ? 128 + number : SHOAL_EXIT_FAILED;
}

int shoal_cli_misused(const char *command, const shoal_error *err) {
  shoal_cli_failed(command, err);
  fprintf(stderr, "Try 'shoal %s --help'.\n", command);
  return SHOAL_EXIT_USAGE;
}

int shoal_cli_stopped(const char *command) {
  int number = shoal_stop_signal();
  fflush(stdout);
  fprintf(stderr, "shoal %s: stopped by %s\n", command, shoal_stop_name(number));
  return number != 0 ? 128 + number : SHOAL_EXIT_FAILED;
}

/* In one piece: other threads and processes write there at the same time. */
void shoal_cli_warn(const char *command, const char *format, ...) {
  shoal_text text = {0};
  va_list args;
  va_start(args, format);
  shoal_text_addv(&text, format, args);
  va_end(args);
  fflush(stdout);
  fprintf(stderr, "shoal %s: %s\n", command, text.failed ? format : text.bytes);
  shoal_text_release(&text);
}

int shoal_cli_finish(const char *command, int status) {
  flush_output();
  if (!ferror(stdout)) return status;
  fprintf(stderr, "shoal %s: cannot write to standard output: %s\n", command,
          output_errno ? strerror(output_errno) : "some of it was lost");
  return status == SHOAL_EXIT_OK ? SHOAL_EXIT_FAILED : status;
}

void shoal_cli_print_line(shoal_text *line) {
  if (!line->failed && line->length > 0) {
    print_output(line);
    fputc('\n', stdout);
    flush_output();
  }
  shoal_text_clear(line);
}

void shoal_cli_event_begin(shoal_json *json, shoal_text *line, const char *event) {
  shoal_json_begin(json, line);
  shoal_json_open(json, NULL, '{');
  if (event) shoal_json_text(json, "event", event);
}

void shoal_cli_event_end(shoal_json *json) {
  shoal_json_close(json, '}');
  shoal_cli_print_line(json->out);
  shoal_text_release(json->out);
}

/* ---- the machine -------------------------------------------------------------------- */

uint32_t shoal_cli_threads(void) {
  uint32_t cores = shoal_pool_cores();
  return cores < 1 ? 1 : cores > SHOAL_THREADS_MAX ? SHOAL_THREADS_MAX : cores;
}

/* ---- commands to copy, and files ---------------------------------------------------- */

void shoal_cli_add_option(shoal_text *out, const char *name, const char *value) {
  if (!value) return;
  shoal_text_addf(out, " --%s ", name);
  shoal_human_quote(out, value);
}

bool shoal_cli_place_aside(const char *out, shoal_text *place) {
  char word[32] = "previous";
  for (int number = 2; number <= ASIDE_MAX; number++) {
    shoal_text_clear(place);
    shoal_training_path(place, out, word);
    if (place->failed) return false;
    if (!shoal_file_exists(place->bytes)) return true;
    snprintf(word, sizeof word, "previous-%d", number);
  }
  return false;
}

void shoal_cli_keep_previous(const char *command, const char *what, const char *out, bool quietly,
                             shoal_text *kept) {
  struct stat about;
  if (stat(out, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return;
  shoal_text place = {0};
  bool aside = shoal_cli_place_aside(out, &place);
  /* Where files have one name only it is moved at once. */
  if (aside && link(out, place.bytes) != 0) aside = rename(out, place.bytes) == 0;
  if (aside && !quietly)
    shoal_cli_warn(command, "the %s that was at %s is kept as %s", what, out, place.bytes);
  if (aside && kept) shoal_text_add(kept, place.bytes, place.length);
  shoal_text_release(&place);
}

static bool is_same_file(const char *a, const char *b) {
  struct stat one, other;
  return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

void shoal_cli_drop_previous(const char *out, const shoal_text *kept) {
  if (kept->length > 0 && !kept->failed && is_same_file(out, kept->bytes)) unlink(kept->bytes);
}

shoal_status shoal_cli_spare_inputs(const char *out, const char *const *inputs, size_t count,
                                    shoal_error *err) {
  for (size_t i = 0; out != NULL && i < count; i++) {
    const char *kind = inputs[i] != NULL ? strchr(inputs[i], ':') : NULL;
    if (inputs[i] != NULL && (is_same_file(out, inputs[i]) || (kind != NULL && is_same_file(out, kind + 1))))
      return shoal_fail(err, SHOAL_INVALID,
                        "%s would be overwritten, but it is read here; choose another name", out);
  }
  return SHOAL_OK;
}
