/* lock.c: see lock.h. */
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

shoal_status shoal_lock_take(int *lock, const char *path, long *holder, shoal_error *err) {
  char text[24] = {0};
  *lock = SHOAL_NO_LOCK;
  *holder = 0;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    int why = errno;
    if (pread(fd, text, sizeof text - 1, 0) > 0) *holder = strtol(text, NULL, 10);
    close(fd);
    return why == EWOULDBLOCK ? shoal_fail(err, SHOAL_CONFLICT, "%s: process %ld has it", path, *holder)
                              : shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(why));
  }
  int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length) {
    /* A full disk: the lock holds all the same, only without a name. */
  }
  *lock = fd;
  return SHOAL_OK;
}

void shoal_lock_give(int lock) {
  if (lock >= 0) close(lock);
}
