/* date.h: days and times as people write them.
 *
 * 2020-01-31, 2020/1/31, 2020-01, 31.1.2020, 31/1/2020 or 1/31/2020, 31 Jan 2020, January 31, 2020, each
 * with or without a time (T or a space, 14:05, 14:05:59.25, 2:05 pm, Z or +01:00), or a time alone. Years
 * of two digits are those from 1970 to 2069.
 *
 * Threads: any. */
#ifndef SHOAL_DATA_DATE_H
#define SHOAL_DATA_DATE_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds since 1970, in UTC; a time alone is on its first day. day_first: 3/4/2020 is in April. */
bool shoal_date_read(const char *text, size_t length, bool day_first, double *seconds);

#endif
