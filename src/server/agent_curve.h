/* agent_curve.h: the curve of an agent's training as a file: points as lines of JSON, in the order of steps.
 *
 * Points are added as they happen, and served as they are. A training that goes on from its file goes back to
 * where that was written: points beyond it never were, and are cut off. A line that is no point, as a full
 * disk or a machine that lost its power may leave one, counts for nothing.
 *
 * Threads: any, on different paths; reading beside adding or cutting is fine. */
#ifndef SHOAL_SERVER_AGENT_CURVE_H
#define SHOAL_SERVER_AGENT_CURVE_H

#include "base/json.h"
#include "base/status.h"

enum { SHOAL_CURVE_BYTES_MAX = 64 << 20 };

/* Lines, each with its newline, to the end of the file, which is made where there is none: all of them, or, when
 * that fails, none. What stands there without a newline stays a line of its own. */
shoal_status shoal_agent_curve_add(const char *path, const shoal_text *lines, shoal_error *err);
/* Drops all points behind so many steps. *seconds: of the last that is left; 0 without one. */
shoal_status shoal_agent_curve_cut(const char *path, uint64_t steps, double *seconds, shoal_error *err);
/* At most so many points from number `from` on, into an array that is open; *next is the number behind them.
 * Without a file there are none. */
shoal_status shoal_agent_curve_read(const char *path, uint64_t from, uint64_t most, shoal_json *json,
                                    uint64_t *next, shoal_error *err);

#endif
