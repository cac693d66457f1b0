/* sandbox.h: takes away from this process what it does not need, for good.
 *
 * A process that works with what strangers send should not be able to do more than its work, even if a mistake
 * in it were found. Two things of the kernel's are used, as far as it has them:
 *
 *   Landlock  files: reads below `reads`, reads and writes below `writes`, executes nothing; listens on
 *             no TCP port, or where it `listens` only on one that the kernel picks; signals nobody else
 *   seccomp   system calls: one that no such process ever makes (execve, ptrace, mount, bpf, ...) kills it;
 *             some that a library may try (fork, sockets other than INET and INET6) fail with EPERM
 *
 * What is open stays open. It holds for this thread and those it starts later, so it is entered before there
 * are others. A build with a sanitizer has none: sanitizers need such calls themselves.
 *
 * Threads: one, the only one. */
#ifndef SHOAL_BASE_SANDBOX_H
#define SHOAL_BASE_SANDBOX_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

enum { SHOAL_SANDBOX_TEXT_MAX = 160, SHOAL_SANDBOX_FILTER_MAX = 256 };

typedef struct shoal_sandbox_rules {
  const char *const *reads;  /* files and folders, then NULL; those that are missing are left out */
  const char *const *writes; /* folders, likewise */
  bool listens;              /* on TCP ports that the kernel picks */
} shoal_sandbox_rules;

/* Writes what holds from now on, for people: "Landlock, seccomp", or "none: ..." and why. */
void shoal_sandbox_enter(const shoal_sandbox_rules *rules, char text[SHOAL_SANDBOX_TEXT_MAX]);

/* The program of seccomp's filter; returns its length. Pure. */
size_t shoal_sandbox_filter(struct sock_filter out[SHOAL_SANDBOX_FILTER_MAX]);

#endif
