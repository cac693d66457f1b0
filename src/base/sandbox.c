/* sandbox.c: see sandbox.h.
 *
 * The headers of Debian's kernel may be older than the kernel that runs this, so Landlock's numbers and
 * structures are written down here; they are fixed for ever. */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

/* ---- seccomp: the filter ---- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

static const uint32_t X32_CALLS = 0x40000000; /* the other ABI of x86-64, with numbers of its own */

/* Never made by a process that computes and talks to a server. */
static const int killing[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_open_by_handle_at,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_setns,
    SYS_unshare,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_pidfd_getfd,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
#ifdef SYS_modify_ldt
    SYS_modify_ldt,
#endif
};

/* Harmless to try, and of no use here. */
static const int failing[] = {
    SYS_name_to_handle_at,
    SYS_syslog,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_capset,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_mknodat,
    SYS_personality,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
    SYS_mknod,
#endif
};

static const uint32_t FAIL = SECCOMP_RET_ERRNO | EPERM, KILL = SECCOMP_RET_KILL_PROCESS;

typedef struct program {
  struct sock_filter *code;
  size_t length;
} program;

static void put(program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t value) {
  SHOAL_ASSERT(p->length < SHOAL_SANDBOX_FILTER_MAX);
  p->code[p->length++] = (struct sock_filter){code, yes, no, value};
}

static void load(program *p, size_t offset) { put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset); }
static void answer(program *p, uint32_t verdict) { put(p, BPF_RET | BPF_K, 0, 0, verdict); }

/* The low half of an argument; both machines are little-endian. */
static size_t argument(int i) { return offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (size_t)i; }

static void answer_call(program *p, int call, uint32_t verdict) {
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)call);
  answer(p, verdict);
}

/* socket: the two families of the internet are allowed. Landlock does not keep anybody from a socket that lies
 * among the files, such as a container engine's. (socketpair is another call.) */
static void check_socket(program *p) {
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, SYS_socket);
  load(p, argument(0));
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, AF_INET);
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_INET6);
  answer(p, FAIL);
  answer(p, SECCOMP_RET_ALLOW);
}

/* clone: threads, not processes. clone3 has its flags in memory, where a filter does not see them; the C
 * library takes clone where clone3 is not there. */
static void check_clone(program *p) {
  static const uint32_t thread = 0x00010000;
  answer_call(p, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone);
  load(p, argument(0));
  put(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, thread);
  answer(p, FAIL);
  answer(p, SECCOMP_RET_ALLOW);
}

/* ioctl: not the two that type on the terminal; the second does it by pasting. */
static void check_ioctl(program *p) {
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, SYS_ioctl);
  load(p, argument(1));
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, TIOCSTI);
  put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, TIOCLINUX);
  answer(p, FAIL);
  answer(p, SECCOMP_RET_ALLOW);
}

size_t shoal_sandbox_filter(struct sock_filter out[SHOAL_SANDBOX_FILTER_MAX]) {
  program p = {.code = out};
  load(&p, offsetof(struct seccomp_data, arch));
  put(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE);
  answer(&p, KILL);
  load(&p, offsetof(struct seccomp_data, nr));
  put(&p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_CALLS);
  answer(&p, KILL);
  for (size_t i = 0; i < sizeof killing / sizeof *killing; i++) answer_call(&p, killing[i], KILL);
  for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) answer_call(&p, failing[i], FAIL);
  check_socket(&p);
  check_clone(&p);
  check_ioctl(&p);
  answer(&p, SECCOMP_RET_ALLOW);
  return p.length;
}

#ifndef SANITIZED

static bool enter_seccomp(void) {
  if (ARCHITECTURE == 0) return false;
  struct sock_filter code[SHOAL_SANDBOX_FILTER_MAX];
  struct sock_fprog filter = {.len = (unsigned short)shoal_sandbox_filter(code), .filter = code};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

/* ---- Landlock ---- */

enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 }; /* on every machine */
enum { LANDLOCK_VERSION = 1, LANDLOCK_BENEATH = 1, LANDLOCK_PORT = 2 };

enum {
  CAN_EXECUTE = 1 << 0,
  CAN_WRITE = 1 << 1,
  CAN_READ = 1 << 2,
  CAN_LIST = 1 << 3,
  CAN_REMOVE_FOLDER = 1 << 4,
  CAN_REMOVE = 1 << 5,
  CAN_MAKE_FOLDER = 1 << 7,
  CAN_MAKE = 1 << 8,
  CAN_TRUNCATE = 1 << 14,
  ALL_OF_1 = (1 << 13) - 1, /* of the first version; others came later */
  ALL_OF_2 = ALL_OF_1 | 1 << 13,
  ALL_OF_3 = ALL_OF_2 | CAN_TRUNCATE,
  FOR_FILES = CAN_EXECUTE | CAN_WRITE | CAN_READ | CAN_TRUNCATE,
  FOR_READING = CAN_READ | CAN_LIST,
  FOR_WRITING =
      FOR_READING | CAN_WRITE | CAN_REMOVE_FOLDER | CAN_REMOVE | CAN_MAKE_FOLDER | CAN_MAKE | CAN_TRUNCATE,
};

typedef struct ruleset {
  uint64_t files, network, scopes;
} ruleset;

typedef struct __attribute__((packed)) beneath {
  uint64_t allowed;
  int32_t folder;
} beneath;

typedef struct port_rule {
  uint64_t allowed, port;
} port_rule;

static void allow_beneath(int rules, const char *path, uint64_t allowed, uint64_t handled) {
  int fd = open(path, O_PATH | O_CLOEXEC);
  struct stat about;
  if (fd < 0) return;
  if (fstat(fd, &about) == 0 && !S_ISDIR(about.st_mode)) allowed &= FOR_FILES;
  beneath rule = {.allowed = allowed & handled, .folder = fd};
  (void)syscall(LANDLOCK_ADD, rules, LANDLOCK_BENEATH, &rule, 0);
  close(fd);
}

static bool enter_landlock(const shoal_sandbox_rules *rules) {
  static const uint64_t bind_tcp = 1, abstract_sockets = 1, signals = 2;
  long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
  if (version < 1) return false;
  ruleset set = {.files = version >= 3   ? ALL_OF_3
                          : version == 2 ? ALL_OF_2
                                         : ALL_OF_1,
                 .network = version >= 4 ? bind_tcp : 0,
                 .scopes = version >= 6 ? abstract_sockets | signals : 0};
  size_t known = version >= 6 ? sizeof set : version >= 4 ? offsetof(ruleset, scopes) : sizeof set.files;
  int fd = (int)syscall(LANDLOCK_CREATE, &set, known, 0);
  if (fd < 0) return false;
  for (const char *const *path = rules->reads; *path; path++)
    allow_beneath(fd, *path, FOR_READING, set.files);
  for (const char *const *path = rules->writes; *path; path++)
    allow_beneath(fd, *path, FOR_WRITING, set.files);
  const port_rule any_free = {.allowed = set.network, .port = 0};
  if (rules->listens && set.network != 0) (void)syscall(LANDLOCK_ADD, fd, LANDLOCK_PORT, &any_free, 0);
  bool entered = syscall(LANDLOCK_RESTRICT, fd, 0) == 0;
  close(fd);
  return entered;
}

#endif

void shoal_sandbox_enter(const shoal_sandbox_rules *rules, char text[SHOAL_SANDBOX_TEXT_MAX]) {
#ifdef SANITIZED
  (void)rules;
  snprintf(text, SHOAL_SANDBOX_TEXT_MAX, "none: this build has a sanitizer");
#else
  bool calm = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  bool landlock = calm && enter_landlock(rules);
  bool seccomp = calm && enter_seccomp();
  if (landlock || seccomp)
    snprintf(text, SHOAL_SANDBOX_TEXT_MAX, "%s%s%s", landlock ? "Landlock" : "",
             landlock && seccomp ? ", " : "", seccomp ? "seccomp" : "");
  else
    snprintf(text, SHOAL_SANDBOX_TEXT_MAX, "none: this kernel has neither Landlock nor seccomp");
#endif
}
