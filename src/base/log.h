/* log.h: lines for people on standard error. Threads: any. */
#ifndef SHOAL_BASE_LOG_H
#define SHOAL_BASE_LOG_H

typedef enum shoal_log_level {
  SHOAL_LOG_ERROR,
  SHOAL_LOG_WARN,
  SHOAL_LOG_INFO,
  SHOAL_LOG_DEBUG
} shoal_log_level;

void shoal_log_set_level(shoal_log_level level); /* SHOAL_LOG_INFO at start */
void shoal_log(shoal_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
