/* What a process in the sandbox can do no more. Each try is made by a child of its own. */
#include "base/sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../nn/in_folder.h"

/* ---- the filter, by a small machine that runs it ---- */

static uint32_t verdict_of(uint32_t arch, int call, uint64_t first, uint64_t second) {
  struct sock_filter code[SHOAL_SANDBOX_FILTER_MAX];
  size_t length = shoal_sandbox_filter(code);
  struct seccomp_data data = {.nr = call, .arch = arch, .args = {first, second}};
  uint32_t a = 0;
  for (size_t at = 0; at < length; at++) {
    const struct sock_filter *f = &code[at];
    switch (f->code) {
    case BPF_LD | BPF_W | BPF_ABS:
      assert_true(f->k + 4 <= sizeof data);
      memcpy(&a, (char *)&data + f->k, 4);
      break;
    case BPF_JMP | BPF_JEQ | BPF_K: at += a == f->k ? f->jt : f->jf; break;
    case BPF_JMP | BPF_JGE | BPF_K: at += a >= f->k ? f->jt : f->jf; break;
    case BPF_JMP | BPF_JSET | BPF_K: at += a & f->k ? f->jt : f->jf; break;
    case BPF_RET | BPF_K: return f->k;
    default: fail_msg("an instruction that is not expected: %x", f->code);
    }
  }
  fail_msg("the filter ends without a verdict");
  return 0;
}

#if defined(__x86_64__)
static const uint32_t HERE = AUDIT_ARCH_X86_64, ELSEWHERE = AUDIT_ARCH_I386;
#else
static const uint32_t HERE = AUDIT_ARCH_AARCH64, ELSEWHERE = AUDIT_ARCH_ARM;
#endif
static const uint32_t EPERM_IT = SECCOMP_RET_ERRNO | EPERM;

static void the_filter_judges_every_call(void **state) {
  (void)state;
  static const struct {
    int call;
    uint64_t first, second;
    uint32_t verdict;
  } cases[] = {
      {SYS_read, 0, 0, SECCOMP_RET_ALLOW},
      {SYS_openat, 0, 0, SECCOMP_RET_ALLOW},
      {SYS_futex, 0, 0, SECCOMP_RET_ALLOW},
      {SYS_execve, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_execveat, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_ptrace, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_mount, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_bpf, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_keyctl, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_init_module, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_perf_event_open, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_process_vm_writev, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_open_by_handle_at, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_io_uring_setup, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {SYS_setuid, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {SYS_socket, AF_INET, SOCK_STREAM, SECCOMP_RET_ALLOW},
      {SYS_socket, AF_INET6, SOCK_STREAM, SECCOMP_RET_ALLOW},
      {SYS_socket, AF_UNIX, SOCK_STREAM, SECCOMP_RET_ERRNO | EPERM},
      {SYS_socketpair, AF_UNIX, SOCK_STREAM, SECCOMP_RET_ALLOW},
      {SYS_socket, AF_NETLINK, SOCK_RAW, SECCOMP_RET_ERRNO | EPERM},
      {SYS_socket, AF_PACKET, SOCK_RAW, SECCOMP_RET_ERRNO | EPERM},
      {SYS_socket, AF_VSOCK, SOCK_STREAM, SECCOMP_RET_ERRNO | EPERM},
      {SYS_clone, 0x3d0f00, 0, SECCOMP_RET_ALLOW}, /* what pthread_create asks for */
      {SYS_clone, SIGCHLD, 0, SECCOMP_RET_ERRNO | EPERM},
      {SYS_clone3, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
      {SYS_ioctl, 0, TIOCGWINSZ, SECCOMP_RET_ALLOW},
      {SYS_ioctl, 0, TIOCSTI, SECCOMP_RET_ERRNO | EPERM},
      {SYS_ioctl, 0, TIOCLINUX, SECCOMP_RET_ERRNO | EPERM},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (verdict_of(HERE, cases[i].call, cases[i].first, cases[i].second) != cases[i].verdict)
      fail_msg("case %zu, call %d", i, cases[i].call);
  assert_int_equal(verdict_of(ELSEWHERE, SYS_read, 0, 0), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(verdict_of(HERE, 0x40000000 | SYS_read, 0, 0), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(verdict_of(HERE, -1, 0, 0), SECCOMP_RET_KILL_PROCESS);
  assert_int_equal(verdict_of(HERE, SYS_setgroups, 0, 0), EPERM_IT);
}

/* ---- real processes ---- */

/* How a child ends that enters the sandbox and tries: its exit status, or minus its signal. */
static int ends(int (*attempt)(void), bool listens, bool *landlock, bool *seccomp) {
  int pipe_of[2];
  assert_int_equal(pipe(pipe_of), 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    static const char *const reads[] = {"/usr", "/lib", "/lib64", "/etc", "/proc", "/no/such/place", NULL};
    static const char *const writes[] = {"mine", NULL};
    char text[SHOAL_SANDBOX_TEXT_MAX];
    shoal_sandbox_enter(&(shoal_sandbox_rules){.reads = reads, .writes = writes, .listens = listens}, text);
    if (write(pipe_of[1], text, strlen(text) + 1) < 0) _exit(99);
    _exit(attempt());
  }
  char text[SHOAL_SANDBOX_TEXT_MAX] = "";
  int status;
  assert_true(read(pipe_of[0], text, sizeof text) > 0);
  close(pipe_of[0]);
  close(pipe_of[1]);
  assert_int_equal(waitpid(child, &status, 0), child);
  *landlock = strstr(text, "Landlock") != NULL && strncmp(text, "none", 4) != 0;
  *seccomp = strstr(text, "seccomp") != NULL && strncmp(text, "none", 4) != 0;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int number_of(int result) { return result < 0 ? errno : 0; }

static void *nothing(void *self) { return self; }

static int work(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, nothing, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  int fd = open("mine/file", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0 || write(fd, "x", 1) != 1) return 2;
  close(fd);
  if (rename("mine/file", "mine/other") != 0 || unlink("mine/other") != 0) return 3;
  if (mkdir("mine/folder", 0777) != 0 || rmdir("mine/folder") != 0) return 4;
  fd = open("/etc/passwd", O_RDONLY);
  if (fd < 0) return 5;
  close(fd);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  return fd < 0 ? 6 : 0;
}

static int execute(void) {
  execl("/bin/true", "true", (char *)NULL);
  return 1;
}
static int trace(void) { return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 1 : 2; }
static int become_two(void) { return number_of(fork()); }
static int open_unix(void) { return number_of(socket(AF_UNIX, SOCK_STREAM, 0)); }
static int open_netlink(void) { return number_of(socket(AF_NETLINK, SOCK_RAW, 0)); }
static int write_elsewhere(void) { return number_of(open("elsewhere", O_WRONLY | O_CREAT, 0666)); }
static int overwrite(void) { return number_of(open("secret", O_WRONLY)); }
static int read_elsewhere(void) { return number_of(open("secret", O_RDONLY)); }
static int climb_out(void) { return number_of(open("mine/../secret", O_RDONLY)); }
static int bind_to(uint16_t port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return number_of(bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof at));
}
static int bind_to_one(void) { return bind_to(23456); }
static int bind_to_any(void) { return bind_to(0); }
static int list_elsewhere(void) { return number_of(open(".", O_RDONLY | O_DIRECTORY)); }

static void processes_can_do_their_work_and_nothing_else(void **state) {
  (void)state;
  static const struct {
    const char *what;
    int (*attempt)(void);
    int expected;
    bool by_landlock, listens;
  } cases[] = {
      {"work", work, 0, false, false},
      {"execute", execute, -SIGSYS, false, false},
      {"trace", trace, -SIGSYS, false, false},
      {"fork", become_two, EPERM, false, false},
      {"open a socket to a file", open_unix, EPERM, false, false},
      {"open a netlink socket", open_netlink, EPERM, false, false},
      {"write elsewhere", write_elsewhere, EACCES, true, false},
      {"overwrite", overwrite, EACCES, true, false},
      {"read elsewhere", read_elsewhere, EACCES, true, false},
      {"climb out", climb_out, EACCES, true, false},
      {"list a folder", list_elsewhere, EACCES, true, false},
      {"listen", bind_to_any, EACCES, true, false},
      {"listen where it may", bind_to_any, 0, true, true},
      {"listen on a certain port", bind_to_one, EACCES, true, true},
  };
  assert_int_equal(mkdir("mine", 0777), 0);
  FILE *file = fopen("secret", "w");
  fclose(file);
  int tried = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool landlock, seccomp;
    int end = ends(cases[i].attempt, cases[i].listens, &landlock, &seccomp);
    if (i > 0 && !(cases[i].by_landlock ? landlock : seccomp)) continue; /* this kernel has it not */
    tried++;
    if (end != cases[i].expected) fail_msg("%s: %d instead of %d", cases[i].what, end, cases[i].expected);
  }
  print_message("%d of %zu tried\n", tried, sizeof cases / sizeof *cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_filter_judges_every_call),
      IN_FOLDER(processes_can_do_their_work_and_nothing_else),
  };
  return RUN_TESTS(tests);
}
