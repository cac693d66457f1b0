/* manners.h: manners of a volunteer: how much of a machine it takes, and when it steps aside.
 *
 * What is seen of the machine (the time of day, how busy it is with other things, whether it runs on its
 * battery) goes into a decision, which is a pure function of that, the owner's rules and what was decided
 * before: it pauses soon, and continues only after things have been calm for a while.
 *
 * How busy the others are is counted in processors, from the kernel's own account. Time of programs that are
 * nice does not count: nobody waits for them. Nor does the work of Shoal itself, under any user: the time of every
 * process whose command is `shoal work` or `shoal serve` is found in /proc, which a sandboxed process may read, and
 * subtracted. So volunteers on one machine do not pause each other.
 *
 * Ownership: plain storage of the caller's. Threads: one. */
#ifndef SHOAL_WORK_MANNERS_H
#define SHOAL_WORK_MANNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { SHOAL_MANNERS_TEXT_MAX = 64, SHOAL_MANNERS_SEEN_MAX = 64 };

typedef struct shoal_manners_rules {
  bool has_hours;
  uint32_t from_minute, to_minute; /* of the day; it works from one to the other, over midnight too */
  double pause_load;               /* processors busy with other things at which it pauses; 0: never */
  bool on_battery;                 /* works then, too */
} shoal_manners_rules;

/* What is seen of the machine. */
typedef struct shoal_manners_sight {
  uint32_t minute;    /* of the day, 0 .. 1439 */
  double others_load; /* processors that others keep busy; NaN: not known */
  double shoal_load;  /* processors that Shoal keeps busy without being nice; not in others_load */
  bool battery;       /* it runs on its battery */
} shoal_manners_sight;

typedef enum shoal_manners_reason {
  SHOAL_MANNERS_WORKS,
  SHOAL_MANNERS_HOURS,
  SHOAL_MANNERS_BATTERY,
  SHOAL_MANNERS_LOAD,
} shoal_manners_reason;

/* What was decided last; zeroed at first. */
typedef struct shoal_manners_mood {
  shoal_manners_reason reason;
  double busy_since, calm_since; /* of the load; 0: not so */
} shoal_manners_mood;

/* "22-7", "22:30-6:15"; SHOAL_INVALID says what is wrong. */
shoal_status shoal_manners_read_hours(const char *text, shoal_manners_rules *out, shoal_error *err);
/* "512M", "4G", "2GB", "1.5G": bytes. */
shoal_status shoal_manners_read_memory(const char *text, uint64_t *out, shoal_error *err);

/* Whether it works from now on, or why not. Pure. */
shoal_manners_reason shoal_manners_decide(const shoal_manners_rules *rules, const shoal_manners_sight *sight,
                                          double now, shoal_manners_mood *mood);
/* Why it pauses, with the figures: "load 1.6, more than 1.5", "on battery", "outside the hours 22-6"; "" when it
 * works. */
void shoal_manners_describe(shoal_manners_reason reason, const shoal_manners_rules *rules,
                            const shoal_manners_sight *sight, char out[SHOAL_MANNERS_TEXT_MAX]);

/* ---- this machine ---- */

/* A process of Shoal's, and what the kernel has counted for it that is not nice. */
typedef struct shoal_manners_process {
  long pid;
  uint64_t started, ticks; /* started: a number that another process of the same pid does not have */
} shoal_manners_process;

/* Where counting continues; zeroed at first. */
typedef struct shoal_manners_watch {
  double at;
  uint64_t busy_ticks;
  shoal_manners_process seen[SHOAL_MANNERS_SEEN_MAX]; /* more than these count as others */
  uint32_t seen_count;
  double others_load, shoal_load;
} shoal_manners_watch;

void shoal_manners_look(shoal_manners_watch *watch, double now, shoal_manners_sight *out);
uint64_t shoal_manners_memory(void); /* of the machine, bytes */

/* Takes the last place in every queue: processor and disk. For this thread and those it starts later. */
void shoal_manners_step_back(void);
/* Limits the memory for data to `bytes` bytes. */
void shoal_manners_limit_memory(uint64_t bytes);

#endif
