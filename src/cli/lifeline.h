/* lifeline.h: a process that ends when the one that started it is gone, over any distance.
 *
 * ssh passes on neither signals nor the end of its own life, but it does pass on standard input. So
 * whoever starts a process keeps the other end of its standard input open. A line there that is the
 * name of a signal (SIGINT, SIGTERM) is that signal; the end of the input is SIGTERM. Who has not
 * ended some minutes later is killed.
 *
 * Threads: one, of its own. */
#ifndef SHOAL_CLI_LIFELINE_H
#define SHOAL_CLI_LIFELINE_H

#include "base/status.h"

shoal_status shoal_lifeline_hold(shoal_error *err);

#endif
