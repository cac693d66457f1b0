/* human.h: numbers as people read them.
 *
 * Each gives a small piece of text by value, to be used within the same expression:
 *   printf("%s samples\n", shoal_human_count(n).text);
 * Threads: any. */
#ifndef SHOAL_BASE_HUMAN_H
#define SHOAL_BASE_HUMAN_H

#include <stdint.h>

#include "base/text.h"

typedef struct shoal_human {
  char text[40];
} shoal_human;

shoal_human shoal_human_count(uint64_t count);                   /* 12,345 */
shoal_human shoal_human_bytes(double bytes);                     /* 812 B, 1.2 MB */
shoal_human shoal_human_amount(double amount, const char *unit); /* 812 FLOP, 13.2 MFLOP */
shoal_human shoal_human_seconds(double seconds);                 /* 0.42s, 7.3s, 12s, 3m 12s, 2h 05m, 3d 4h */
shoal_human shoal_human_number(double number);                   /* four figures: 0.3312, 12.35, 1.3e-07 */

/* The double with the fewest figures that is the same float: 0.02 and not 0.0199999995529652. */
double shoal_human_float(float value);

/* A word for the shell: as it stands, or in quotes where the shell would change it. */
void shoal_human_quote(shoal_text *out, const char *word);

#endif
