/* date.c: see date.h. One scanner walks over the text; each way of writing a day is a function that takes
 * what it knows and moves on, or leaves the scanner where it was. */
#include "data/date.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { LENGTH_MAX = 48, SECONDS_A_DAY = 86400 };

typedef struct scanner {
  const char *at, *end;
} scanner;

typedef struct day {
  int year, month, day;
} day;

static bool is_digit(const scanner *s) { return s->at < s->end && *s->at >= '0' && *s->at <= '9'; }

static bool take(scanner *s, char c) {
  if (s->at == s->end || *s->at != c) return false;
  s->at++;
  return true;
}

static void skip_spaces(scanner *s) {
  while (s->at < s->end && *s->at == ' ') s->at++;
}

/* A number of at most `digits_max` digits; how many there were, 0: none, or more than that. */
static int take_number(scanner *s, int digits_max, int *out) {
  scanner from = *s;
  int digits = 0;
  *out = 0;
  for (; is_digit(s) && digits <= digits_max; digits++) *out = *out * 10 + (*s->at++ - '0');
  if (digits > 0 && digits <= digits_max) return digits;
  *s = from;
  return 0;
}

static char take_separator(scanner *s) {
  if (s->at == s->end || !strchr("-/.", *s->at) || *s->at == 0) return 0;
  return *s->at++;
}

/* A month by its first three letters, or all of them. */
static bool take_month(scanner *s, int *out) {
  static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                       "july",    "august",   "september", "october", "november", "december"};
  size_t letters = 0;
  while (s->at + letters < s->end && isalpha((unsigned char)s->at[letters])) letters++;
  for (int i = 0; letters >= 3 && i < 12; i++) {
    if (strncasecmp(s->at, months[i], letters) != 0) continue;
    s->at += letters;
    take(s, '.');
    *out = i + 1;
    return true;
  }
  return false;
}

static bool take_year(scanner *s, int *out) {
  int digits = take_number(s, 4, out);
  if (digits == 2) *out += *out < 70 ? 2000 : 1900;
  return digits == 2 || digits == 4;
}

/* 2020-01-31, 2020-01 */
static bool year_first(scanner *s, day *out) {
  scanner from = *s;
  char separator = 0;
  if (take_number(s, 4, &out->year) == 4 && (separator = take_separator(s)) &&
      take_number(s, 2, &out->month)) {
    out->day = 1;
    scanner short_form = *s;
    if (take(s, separator) && take_number(s, 2, &out->day)) return true;
    *s = short_form;
    if (separator != '.' && s->at == s->end) return true;
  }
  *s = from;
  return false;
}

/* 31.1.2020, 31/1/2020, 1/31/2020 */
static bool year_last(scanner *s, bool day_first, day *out) {
  scanner from = *s;
  int first, second;
  char separator = 0;
  if (take_number(s, 2, &first) && (separator = take_separator(s)) && take_number(s, 2, &second) &&
      take(s, separator) && take_year(s, &out->year)) {
    day_first |= separator == '.';
    out->day = day_first ? first : second;
    out->month = day_first ? second : first;
    return true;
  }
  *s = from;
  return false;
}

static void skip_between(scanner *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '-' || *s->at == ',')) s->at++;
}

/* 31 Jan 2020, January 31, 2020 */
static bool month_by_name(scanner *s, day *out) {
  scanner from = *s;
  if (take_number(s, 2, &out->day)) {
    take(s, '.');
    skip_between(s);
    if (take_month(s, &out->month)) {
      skip_between(s);
      if (take_year(s, &out->year)) return true;
    }
  } else if (take_month(s, &out->month)) {
    skip_between(s);
    if (take_number(s, 2, &out->day)) {
      skip_between(s);
      if (take_year(s, &out->year)) return true;
    }
  }
  *s = from;
  return false;
}

static bool take_word(scanner *s, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(s->end - s->at) < length || strncasecmp(s->at, word, length) != 0) return false;
  s->at += length;
  return true;
}

/* 14:05, 14:05:59.25, 2:05 pm, each with Z or +01:00 behind it. */
static bool take_time(scanner *s, double *seconds) {
  int hour, minute, second = 0;
  if (!take_number(s, 2, &hour) || !take(s, ':') || take_number(s, 2, &minute) != 2) return false;
  double fraction = 0;
  if (take(s, ':')) {
    if (take_number(s, 2, &second) != 2) return false;
    if (take(s, '.') || take(s, ',')) {
      for (double unit = 0.1; is_digit(s); unit /= 10) fraction += (*s->at++ - '0') * unit;
    }
  }
  skip_spaces(s);
  if (take_word(s, "am") || take_word(s, "a.m.")) {
    if (hour < 1 || hour > 12) return false;
    hour %= 12;
  } else if (take_word(s, "pm") || take_word(s, "p.m.")) {
    if (hour < 1 || hour > 12) return false;
    hour = hour % 12 + 12;
  }
  if (hour > 24 || minute > 59 || second > 60) return false;
  *seconds = hour * 3600 + minute * 60 + second + fraction;
  skip_spaces(s);
  if (take_word(s, "Z") || take_word(s, "UTC") || take_word(s, "GMT")) return true;
  int sign = take(s, '+') ? 1 : take(s, '-') ? -1 : 0, zone_hour, zone_minute = 0;
  if (sign == 0) return true;
  if (take_number(s, 2, &zone_hour) != 2 || zone_hour > 18) return false;
  take(s, ':');
  if (is_digit(s) && (take_number(s, 2, &zone_minute) != 2 || zone_minute > 59)) return false;
  *seconds -= sign * (zone_hour * 3600 + zone_minute * 60);
  return true;
}

static bool is_day(const day *d) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (d->year < 1 || d->month < 1 || d->month > 12 || d->day < 1) return false;
  bool leap = (d->year % 4 == 0 && d->year % 100 != 0) || d->year % 400 == 0;
  return d->day <= lengths[d->month - 1] + (leap && d->month == 2);
}

/* Days since 1970. A year begins in March here, so that the leap day is its last. */
static int64_t days_of(const day *d) {
  int64_t year = d->month <= 2 ? d->year - 1 : d->year, month = (d->month + 9) % 12;
  return year * 365 + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + d->day - 1 - 719468;
}

bool shoal_date_read(const char *text, size_t length, bool day_first, double *seconds) {
  if (length < 4 || length > LENGTH_MAX) return false;
  scanner s = {text, text + length};
  double time = 0;
  if (take_time(&s, &time) && s.at == s.end) {
    *seconds = time;
    return true;
  }
  s.at = text;
  day d = {0};
  if (!year_first(&s, &d) && !year_last(&s, day_first, &d) && !month_by_name(&s, &d)) return false;
  if (!is_day(&d)) return false;
  time = 0;
  if (s.at < s.end) {
    if (!take(&s, 'T')) {
      if (*s.at != ' ' && *s.at != ',') return false;
      take(&s, ',');
      skip_spaces(&s);
    }
    if (!take_time(&s, &time) || s.at < s.end) return false;
  }
  *seconds = (double)days_of(&d) * SECONDS_A_DAY + time;
  return true;
}
