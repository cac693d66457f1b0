/* log.c: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic int level_max = SHOAL_LOG_INFO;

void shoal_log_set_level(shoal_log_level level) { level_max = (int)level; }

void shoal_log(shoal_log_level level, const char *format, ...) {
  static const char *const prefixes[] = {"error: ", "warning: ", "", "debug: "};
  if ((int)level > level_max) return;
  /* One write for the whole line, so that lines of different threads do not mix. */
  char line[4096];
  int start = snprintf(line, sizeof line, "%s", prefixes[level]);
  va_list args;
  va_start(args, format);
  vsnprintf(line + start, sizeof line - 1 - (size_t)start, format, args);
  va_end(args);
  size_t length = strlen(line);
  line[length] = '\n';
  fwrite(line, 1, length + 1, stderr);
}
