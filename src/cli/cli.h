/* cli.h: what the commands have in common.
 *
 * A command is a name, a line for the overview and a function. It gets the words after its
 * name and returns the exit status: 0 for success, 1 for failure, 2 for wrong usage.
 * Every message on standard error starts with "shoal COMMAND: " and says what to do.
 *
 * Threads: none. */
#ifndef SHOAL_CLI_CLI_H
#define SHOAL_CLI_CLI_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/options.h"

enum {
  SHOAL_EXIT_OK = 0,
  SHOAL_EXIT_FAILED = 1,
  SHOAL_EXIT_USAGE = 2,
  SHOAL_EXIT_CHIEF_STOPPED = 75, /* of a worker or parameter server, which continues with the chief */
};

typedef struct shoal_command {
  const char *name, *summary;
  int (*run)(int argc, char **argv);
} shoal_command;

extern const shoal_command shoal_command_train, shoal_command_eval, shoal_command_predict,
    shoal_command_inspect, shoal_command_export, shoal_command_data, shoal_command_launch,
    shoal_command_bench, shoal_command_sim, shoal_command_version, shoal_command_serve, shoal_command_work,
    shoal_command_host, shoal_command_job, shoal_command_status, shoal_command_search, shoal_command_agent;

/* Parses, and prints the help or the complaint. False: the command ends with *status. */
bool shoal_cli_parse(const shoal_usage *usage, int argc, char **argv, shoal_operands *operands, int *status);

/* Each prints "shoal COMMAND: what err says" and returns the exit status: of a failure, or of
 * wrong usage, which also points at --help. After a signal that has ended the waiting for room on a full disk it is
 * the signal's. */
int shoal_cli_failed(const char *command, const shoal_error *err);
int shoal_cli_misused(const char *command, const shoal_error *err);
/* "shoal COMMAND: stopped by SIGINT", for a command that a signal has ended before it was done; returns what
 * a shell would say: 128 + the signal's number. */
int shoal_cli_stopped(const char *command);
/* A remark in the same style that ends nothing. */
void shoal_cli_warn(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last step of a command that prints: flushes standard output and returns `status`, or
 * a failure when what was printed did not arrive (a full disk behind `>`). */
int shoal_cli_finish(const char *command, int status);

/* Prints the text and a newline on standard output at once, and clears it. */
void shoal_cli_print_line(shoal_text *line);

/* An object as one line on standard output: begin, add fields, end, which prints it and releases the text.
 * Its first field is "event"; with NULL there is none. */
void shoal_cli_event_begin(shoal_json *json, shoal_text *line, const char *event);
void shoal_cli_event_end(shoal_json *json);

/* The first name aside of `out` that is free: with ".previous" in it, or ".previous-2" and on. False: none. */
bool shoal_cli_place_aside(const char *out, shoal_text *place);

/* Before something new may be saved as `out`: a file that is there gets a second name, aside, which stays its
 * own when the first is taken from it; that is told unless `quietly`. `what` it is: "model". `kept`, which may
 * be NULL, has that name then; where nothing was saved, it goes again. */
void shoal_cli_keep_previous(const char *command, const char *what, const char *out, bool quietly,
                             shoal_text *kept);
void shoal_cli_drop_previous(const char *out, const shoal_text *kept);

/* SHOAL_INVALID where `out`, unless NULL, is one of the files that are read: paths, or data sets such as chars:FILE. Those
 * that are NULL are passed over. */
shoal_status shoal_cli_spare_inputs(const char *out, const char *const *inputs, size_t count,
                                    shoal_error *err);

/* The processors that this process may use, at least 1: the default of --threads. */
uint32_t shoal_cli_threads(void);
enum { SHOAL_THREADS_MAX = 1024 };

/* Adds " --name value" to a command line that a person will copy, the value quoted where the
 * shell needs it; nothing when value is NULL. */
void shoal_cli_add_option(shoal_text *out, const char *name, const char *value);

#endif
