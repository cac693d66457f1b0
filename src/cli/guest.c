/* guest.c: see guest.h. Decisions first, then the machine. */
#include "cli/guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

/* ---- rules ---- */

static const double BUSY_S = 4, CALM_S = 20; /* before it pauses, and before it goes on */
static const double CALM_SHARE = 0.7;        /* of the load at which it pauses */

/* "22" or "22:30"; *end is behind it. */
static bool read_time(const char *text, const char **end, uint32_t *minute) {
  char *rest;
  if (*text < '0' || *text > '9') return false;
  unsigned long hour = strtoul(text, &rest, 10), minutes = 0;
  if (*rest == ':') {
    const char *digits = rest + 1;
    if (*digits < '0' || *digits > '9') return false;
    minutes = strtoul(digits, &rest, 10);
    if (rest - digits != 2) return false;
  }
  if (hour > 24 || minutes > 59 || (hour == 24 && minutes > 0)) return false;
  *minute = (uint32_t)(hour * 60 + minutes) % 1440;
  *end = rest;
  return true;
}

shoal_status shoal_guest_read_hours(const char *text, shoal_guest_rules *out, shoal_error *err) {
  const char *end = text;
  bool good = read_time(text, &end, &out->from_minute) && *end == '-' &&
              read_time(end + 1, &end, &out->to_minute) && *end == 0;
  if (!good)
    return shoal_fail(err, SHOAL_INVALID,
                      "--hours: '%.40s' is no time of the day; it looks like 22-7 or 8:30-17", text);
  out->has_hours = out->from_minute != out->to_minute;
  return SHOAL_OK;
}

shoal_status shoal_guest_read_memory(const char *text, uint64_t *out, shoal_error *err) {
  static const struct {
    const char *name;
    double bytes;
  } units[] = {{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1099511627776.0}};
  size_t digits = strspn(text, "0123456789.");
  double number, bytes = 0;
  if (digits > 0 && shoal_read_f64(text, digits, &number))
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
      const char *unit = text + digits;
      if (strncasecmp(unit, units[i].name, 1) == 0 && (unit[1] == 0 || strcasecmp(unit + 1, "b") == 0))
        bytes = number * units[i].bytes;
    }
  static const double least = 64 << 20, most = 1e15;
  if (!(bytes >= least && bytes <= most))
    return shoal_fail(err, SHOAL_INVALID,
                      "--memory: '%.40s' is no size; it takes 64M or more, such as 512M or 4G", text);
  *out = (uint64_t)bytes;
  return SHOAL_OK;
}

/* ---- the decision ---- */

static bool is_time(const shoal_guest_rules *rules, uint32_t minute) {
  if (!rules->has_hours) return true;
  bool over_midnight = rules->from_minute > rules->to_minute;
  bool after = minute >= rules->from_minute, before = minute < rules->to_minute;
  return over_midnight ? after || before : after && before;
}

static void count_load(const shoal_guest_rules *rules, double load, double now, shoal_guest_mood *mood) {
  bool busy = load > rules->pause_load, calm = !(load > CALM_SHARE * rules->pause_load);
  if (!busy)
    mood->busy_since = 0;
  else if (mood->busy_since == 0)
    mood->busy_since = now;
  if (!calm)
    mood->calm_since = 0;
  else if (mood->calm_since == 0)
    mood->calm_since = now;
}

/* Once it has paused for the load, it stays so until the load was low for long enough. */
static bool is_busy(double now, const shoal_guest_mood *mood) {
  if (mood->reason == SHOAL_GUEST_LOAD) return mood->calm_since == 0 || now - mood->calm_since < CALM_S;
  return mood->busy_since != 0 && now - mood->busy_since >= BUSY_S;
}

shoal_guest_reason shoal_guest_decide(const shoal_guest_rules *rules, const shoal_guest_sight *sight,
                                      double now, shoal_guest_mood *mood) {
  bool counts = rules->pause_load > 0 && isfinite(sight->others_load);
  if (counts) count_load(rules, sight->others_load, now, mood);
  if (!is_time(rules, sight->minute))
    mood->reason = SHOAL_GUEST_HOURS;
  else if (sight->battery && !rules->on_battery)
    mood->reason = SHOAL_GUEST_BATTERY;
  else
    mood->reason = counts && is_busy(now, mood) ? SHOAL_GUEST_LOAD : SHOAL_GUEST_WORKS;
  return mood->reason;
}

const char *shoal_guest_reason_text(shoal_guest_reason reason) {
  static const char *const texts[] = {
      [SHOAL_GUEST_WORKS] = "",
      [SHOAL_GUEST_HOURS] = "outside the hours that its owner set",
      [SHOAL_GUEST_BATTERY] = "this machine runs on its battery",
      [SHOAL_GUEST_LOAD] = "other programs keep this machine busy",
  };
  return texts[reason];
}

/* ---- the machine ---- */

/* The whole of a small file of the kernel's; "" when it cannot be read. */
static void read_small(const char *path, char *out, size_t size) {
  out[0] = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t n = read(fd, out, size - 1);
  out[n > 0 ? n : 0] = 0;
  out[strcspn(out, "\n")] = 0;
  close(fd);
}

/* Ticks that all processors spent on what is not nice: the first line is "cpu user nice system idle iowait
 * irq softirq steal ...". */
static bool read_busy(uint64_t *ticks) {
  char line[512];
  unsigned long long user, nice, system, idle, wait, irq, soft;
  read_small("/proc/stat", line, sizeof line);
  if (sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &irq,
             &soft) != 7)
    return false;
  *ticks = user + system + irq + soft;
  return true;
}

/* Of this process, what is in there: the kernel's work for it. Its own is nice. */
static bool read_own(uint64_t *ticks) {
  char line[1024];
  unsigned long long user, system;
  read_small("/proc/self/stat", line, sizeof line);
  const char *rest = strrchr(line, ')'); /* the name before it may have anything in it */
  if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
    return false;
  *ticks = system;
  return true;
}

static void look_at_load(shoal_guest_watch *w, double now) {
  static const double window_s = 1, weight = 0.4;
  uint64_t busy, own;
  if (!read_busy(&busy) || !read_own(&own)) {
    w->others_load = NAN;
    return;
  }
  double passed = now - w->at;
  if (w->at > 0 && passed < window_s) return;
  if (w->at > 0) {
    double others = (double)(busy - w->busy_ticks) - (double)(own - w->own_ticks);
    double load = fmax(0, others / (double)sysconf(_SC_CLK_TCK) / passed);
    w->others_load = isfinite(w->others_load) ? (1 - weight) * w->others_load + weight * load : load;
  } else {
    w->others_load = NAN;
  }
  w->at = now;
  w->busy_ticks = busy;
  w->own_ticks = own;
}

/* There is a battery that gives power, and no mains. */
static bool is_on_battery(void) {
  static const char folder[] = "/sys/class/power_supply";
  bool battery = false, mains = false;
  DIR *here = opendir(folder);
  for (struct dirent *entry; here && (entry = readdir(here));) {
    char path[400], text[64];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s/type", folder, entry->d_name);
    read_small(path, text, sizeof text);
    bool is_battery = strcmp(text, "Battery") == 0;
    snprintf(path, sizeof path, "%s/%s/%s", folder, entry->d_name, is_battery ? "status" : "online");
    read_small(path, text, sizeof text);
    if (is_battery && strcmp(text, "Discharging") == 0) battery = true;
    if (!is_battery && strcmp(text, "1") == 0) mains = true;
  }
  if (here) closedir(here);
  return battery && !mains;
}

void shoal_guest_look(shoal_guest_watch *watch, double now, shoal_guest_sight *out) {
  look_at_load(watch, now);
  time_t seconds = time(NULL);
  struct tm local;
  localtime_r(&seconds, &local);
  *out = (shoal_guest_sight){.minute = (uint32_t)(local.tm_hour * 60 + local.tm_min),
                             .others_load = watch->others_load,
                             .battery = is_on_battery()};
}

uint64_t shoal_guest_memory(void) {
  struct sysinfo about;
  return sysinfo(&about) == 0 ? (uint64_t)about.totalram * about.mem_unit : 0;
}

void shoal_guest_step_back(void) {
  static const int of_process = 1, idle_class = 3 << 13; /* of ioprio_set */
  const struct sched_param none = {0};
  (void)setpriority(PRIO_PROCESS, 0, 19);
  (void)sched_setscheduler(0, SCHED_IDLE, &none);
  (void)syscall(SYS_ioprio_set, of_process, 0, idle_class);
}

/* What counts already: the sixth number of /proc/self/statm, in pages. A sanitizer's is larger than any
 * limit. */
static uint64_t data_bytes(void) {
  char line[256];
  unsigned long long pages = 0;
  read_small("/proc/self/statm", line, sizeof line);
  if (sscanf(line, "%*u %*u %*u %*u %*u %llu", &pages) != 1) return 0;
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void shoal_guest_limit_memory(uint64_t bytes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || data_bytes() >= bytes) return;
  limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
  (void)setrlimit(RLIMIT_DATA, &limit);
}
