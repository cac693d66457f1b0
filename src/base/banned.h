/* banned.h: functions that no file under src/ may call; the build includes it first everywhere.
 *
 * Each is a buffer overrun, a hidden global or a number that differs between machines.
 * The headers that declare them come first, or the macros would spoil the declarations. */
#ifndef SHOAL_BASE_BANNED_H
#define SHOAL_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOAL_BANNED(name) sorry_##name##_is_banned_see_base_banned_h

#undef strcpy
#define strcpy(to, from) SHOAL_BANNED(strcpy) /* shoal_text, or memcpy with a known length */
#undef strcat
#define strcat(to, from) SHOAL_BANNED(strcat)
#undef sprintf
#define sprintf(...) SHOAL_BANNED(sprintf) /* snprintf or shoal_text_addf */
#undef vsprintf
#define vsprintf(...) SHOAL_BANNED(vsprintf)
#undef gets
#define gets(to) SHOAL_BANNED(gets)
#undef strtok
#define strtok(text, stops) SHOAL_BANNED(strtok)
#undef rand
#define rand() SHOAL_BANNED(rand) /* base/random.h */
#undef srand
#define srand(seed) SHOAL_BANNED(srand)

#endif
