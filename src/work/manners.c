/* manners.c: see manners.h. Decisions first, then the machine. */
#include "work/manners.h"

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

shoal_status shoal_manners_read_hours(const char *text, shoal_manners_rules *out, shoal_error *err) {
  const char *end = text;
  bool good = read_time(text, &end, &out->from_minute) && *end == '-' &&
              read_time(end + 1, &end, &out->to_minute) && *end == 0;
  if (!good)
    return shoal_fail(err, SHOAL_INVALID,
                      "--hours: '%.40s' is no time of the day; it looks like 22-7 or 8:30-17", text);
  out->has_hours = out->from_minute != out->to_minute;
  return SHOAL_OK;
}

shoal_status shoal_manners_read_memory(const char *text, uint64_t *out, shoal_error *err) {
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

static bool is_time(const shoal_manners_rules *rules, uint32_t minute) {
  if (!rules->has_hours) return true;
  bool over_midnight = rules->from_minute > rules->to_minute;
  bool after = minute >= rules->from_minute, before = minute < rules->to_minute;
  return over_midnight ? after || before : after && before;
}

static void count_load(const shoal_manners_rules *rules, double load, double now, shoal_manners_mood *mood) {
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
static bool is_busy(double now, const shoal_manners_mood *mood) {
  if (mood->reason == SHOAL_MANNERS_LOAD) return mood->calm_since == 0 || now - mood->calm_since < CALM_S;
  return mood->busy_since != 0 && now - mood->busy_since >= BUSY_S;
}

shoal_manners_reason shoal_manners_decide(const shoal_manners_rules *rules, const shoal_manners_sight *sight,
                                          double now, shoal_manners_mood *mood) {
  bool counts = rules->pause_load > 0 && isfinite(sight->others_load);
  if (counts) count_load(rules, sight->others_load, now, mood);
  if (!is_time(rules, sight->minute))
    mood->reason = SHOAL_MANNERS_HOURS;
  else if (sight->battery && !rules->on_battery)
    mood->reason = SHOAL_MANNERS_BATTERY;
  else
    mood->reason = counts && is_busy(now, mood) ? SHOAL_MANNERS_LOAD : SHOAL_MANNERS_WORKS;
  return mood->reason;
}

typedef struct time_words {
  char text[8];
} time_words;

/* "22", "22:30"; midnight is 24 as an end. */
static time_words words_of_time(uint32_t minute, bool is_end) {
  time_words out;
  uint32_t hour = is_end && minute == 0 ? 24 : minute / 60 % 24;
  snprintf(out.text, sizeof out.text, minute % 60 > 0 ? "%u:%02u" : "%u", hour, minute % 60);
  return out;
}

void shoal_manners_describe(shoal_manners_reason reason, const shoal_manners_rules *rules,
                            const shoal_manners_sight *sight, char out[SHOAL_MANNERS_TEXT_MAX]) {
  double load = ceil(sight->others_load * 10) / 10; /* 1.52 is not more than 1.5 once it is rounded down */
  out[0] = 0;
  if (reason == SHOAL_MANNERS_HOURS) {
    snprintf(out, SHOAL_MANNERS_TEXT_MAX, "outside the hours %s-%s",
             words_of_time(rules->from_minute, false).text, words_of_time(rules->to_minute, true).text);
  } else if (reason == SHOAL_MANNERS_BATTERY) {
    snprintf(out, SHOAL_MANNERS_TEXT_MAX, "on battery");
  } else if (reason == SHOAL_MANNERS_LOAD) {
    bool busy = sight->others_load > rules->pause_load;
    snprintf(out, SHOAL_MANNERS_TEXT_MAX, "load %.1f%s, more than %.3g%s", load, busy ? "" : " now",
             rules->pause_load, busy ? "" : " before");
  }
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

/* Whether the process's command is `shoal work` or `shoal serve`. Its name alone is cheap to read, and settles
 * it for nearly all. */
static bool is_shoal(const char *pid) {
  char path[64], name[32], words[512] = {0};
  snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
  read_small(path, name, sizeof name);
  if (strncmp(name, "shoal", 5) != 0) return false;
  snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
  read_small(path, words, sizeof words); /* each ends with a zero */
  const char *command = words + strnlen(words, sizeof words - 2) + 1;
  return strcmp(command, "work") == 0 || strcmp(command, "serve") == 0;
}

/* What counts as busy of a process: the kernel's work for it, and its own where it is not nice. */
static bool read_process(const char *pid, shoal_manners_process *out) {
  char path[64], line[1024];
  unsigned long long user, system, started;
  long nice;
  snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  read_small(path, line, sizeof line);
  const char *rest = strrchr(line, ')'); /* the name before it may have anything in it */
  if (!rest ||
      sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %ld %*d %*d %llu",
             &user, &system, &nice, &started) != 4)
    return false;
  *out = (shoal_manners_process){
      .pid = strtol(pid, NULL, 10), .started = started, .ticks = system + (nice > 0 ? 0 : user)};
  return true;
}

/* What a process has used since it was seen last; all of it, where it began since then. */
static uint64_t used_since(const shoal_manners_watch *w, const shoal_manners_process *now) {
  for (uint32_t i = 0; i < w->seen_count; i++)
    if (w->seen[i].pid == now->pid && w->seen[i].started == now->started)
      return now->ticks > w->seen[i].ticks ? now->ticks - w->seen[i].ticks : 0;
  return now->ticks;
}

/* Ticks of all of Shoal's processes since the last call; this one is one of them, whatever it is called. */
static uint64_t count_shoal(shoal_manners_watch *w) {
  shoal_manners_process found[SHOAL_MANNERS_SEEN_MAX];
  uint32_t count = 0;
  uint64_t ticks = 0;
  if (read_process("self", &found[0])) {
    found[0].pid = getpid();
    ticks = used_since(w, &found[count++]);
  }
  DIR *all = opendir("/proc");
  for (struct dirent *entry; all && count < SHOAL_MANNERS_SEEN_MAX && (entry = readdir(all));) {
    const char *pid = entry->d_name;
    bool is_other = pid[0] >= '1' && pid[0] <= '9' && strtol(pid, NULL, 10) != getpid();
    if (is_other && is_shoal(pid) && read_process(pid, &found[count]))
      ticks += used_since(w, &found[count++]);
  }
  if (all) closedir(all);
  memcpy(w->seen, found, count * sizeof *found);
  w->seen_count = count;
  return ticks;
}

static void look_at_load(shoal_manners_watch *w, double now) {
  static const double window_s = 1, weight = 0.4;
  uint64_t busy;
  double passed = now - w->at;
  if (w->at > 0 && passed < window_s) return;
  bool known = read_busy(&busy);
  double hertz = (double)sysconf(_SC_CLK_TCK);
  double shoal = (double)count_shoal(w) / hertz / passed;
  if (known && w->at > 0) {
    double load = fmax(0, (double)(busy - w->busy_ticks) / hertz / passed - shoal);
    w->others_load = isfinite(w->others_load) ? (1 - weight) * w->others_load + weight * load : load;
    w->shoal_load = shoal;
  } else {
    w->others_load = NAN;
    w->shoal_load = 0;
  }
  w->at = known ? now : 0;
  w->busy_ticks = known ? busy : 0;
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

void shoal_manners_look(shoal_manners_watch *watch, double now, shoal_manners_sight *out) {
  look_at_load(watch, now);
  time_t seconds = time(NULL);
  struct tm local;
  localtime_r(&seconds, &local);
  *out = (shoal_manners_sight){.minute = (uint32_t)(local.tm_hour * 60 + local.tm_min),
                               .others_load = watch->others_load,
                               .shoal_load = watch->shoal_load,
                               .battery = is_on_battery()};
}

uint64_t shoal_manners_memory(void) {
  struct sysinfo about;
  return sysinfo(&about) == 0 ? (uint64_t)about.totalram * about.mem_unit : 0;
}

void shoal_manners_step_back(void) {
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

void shoal_manners_limit_memory(uint64_t bytes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || data_bytes() >= bytes) return;
  limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
  (void)setrlimit(RLIMIT_DATA, &limit);
}
