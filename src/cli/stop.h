/* stop.h: signals that ask this process to end: SIGINT, SIGTERM and SIGHUP, caught and then looked at.
 *
 * The first of each kind sets a flag, so that a command can end in order; another of the same kind ends the
 * process at once, unless it comes within half a second: that is the same wish, which a program such as
 * timeout has sent to the process and to its group. SIGHUP stays ignored where it was (nohup). A deadline
 * sets the same flag, as SIGALRM.
 *
 * Threads: the flag may be read from any; the functions are for one caller. */
#ifndef SHOAL_CLI_STOP_H
#define SHOAL_CLI_STOP_H

#include <signal.h>
#include <stdbool.h>

/* Before it makes anything that must be taken down, a command catches signals. Once is enough. */
void shoal_stop_catch(void);

/* What the first signal writes to standard error when that is a terminal; borrowed for ever. */
void shoal_stop_says(const char *text);

/* The number of the signal that came last; 0: none. */
int shoal_stop_signal(void);
/* As if this signal had come, unless one has. */
void shoal_stop_by(int number);
/* "SIGINT" of the number. */
const char *shoal_stop_name(int number);
/* The same as a variable, for those who wait: not 0 once a signal has come. */
const volatile sig_atomic_t *shoal_stop_flag(void);

/* Sets the flag in so many seconds, unless a signal does so before; 0: not any more, and a flag that only
 * the deadline has set is down again. */
void shoal_stop_after(unsigned seconds);
bool shoal_stop_was_late(void); /* the deadline has set it */

#endif
