/* bench_data_process.c: see bench_data.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench_data.h"
#include "cluster/swarm_node.h"
#include "cluster/swarm_words.h"
#include "server/swarm_hall.h"

enum { PORT = 7000, CONNECTIONS_MAX = 4 * SHOAL_BENCH_DATA_WORKERS_MAX };
static const double TURN_S = 0.01;

typedef struct process {
  const shoal_data_run *run;
  uint32_t number;
  shoal_data_slot *slot;
  uint8_t *here; /* a byte a chunk */
  uint32_t here_count;
} process;

_Noreturn static void fail(process *p, const char *what) {
  snprintf(p->slot->text, sizeof p->slot->text, "%s", what);
  atomic_store(&p->slot->failed, 1);
  _exit(1);
}

static void enter_network(process *p) {
  int fd = open(shoal_links_network(p->run->links, p->number).text, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail(p, "cannot enter its network");
  close(fd);
}

static void wait_for_go(process *p) {
  atomic_store(&p->slot->ready, 1);
  while (atomic_load(&p->run->board->go) == 0) shoal_clock_sleep(0.001);
}

static bool is_over(const process *p) { return atomic_load(&p->run->board->over) != 0; }

/* ---- chunks ---- */

/* What came, compared with its hash; and, for the record, with what it should be. */
static shoal_status take_chunk(process *p, uint32_t chunk, const void *bytes, size_t length,
                               shoal_error *err) {
  uint32_t wanted;
  const uint8_t *right = shoal_specimen_chunk(p->run->specimen, chunk, &wanted);
  if (!shoal_specimen_is_chunk(p->run->specimen, chunk, bytes, length))
    return shoal_fail(err, SHOAL_CORRUPT, "chunk %u is not what its hash says", chunk);
  if (memcmp(bytes, right, length) != 0) atomic_fetch_add(&p->slot->wrong, 1);
  if (p->here[chunk]) return SHOAL_OK;
  p->here[chunk] = 1;
  atomic_store(&p->slot->here, ++p->here_count);
  if (p->here_count == p->run->specimen->manifest->chunks_count) {
    p->slot->done_at = shoal_clock_seconds();
    atomic_store(&p->slot->done, 1);
  }
  return SHOAL_OK;
}

/* ---- a member of a swarm ---- */

static bool has(void *self, uint32_t chunk) { return ((process *)self)->here[chunk] != 0; }

static size_t length_of(void *self, uint32_t chunk) {
  uint32_t length;
  shoal_specimen_chunk(((const process *)self)->run->specimen, chunk, &length);
  return length;
}

static shoal_status put(void *self, uint32_t chunk, const void *bytes, size_t length, shoal_error *err) {
  return take_chunk(self, chunk, bytes, length, err);
}

static shoal_status read_chunk(void *self, uint32_t chunk, void *into, shoal_error *err) {
  (void)err;
  process *p = self;
  uint32_t length;
  const uint8_t *bytes = shoal_specimen_chunk(p->run->specimen, chunk, &length);
  memcpy(into, bytes, length);
  if (p->number > p->run->workers - p->run->bad) ((uint8_t *)into)[length / 2] ^= 1;
  return SHOAL_OK;
}

static void gave_up(void *self, const shoal_error *err) { fail(self, err->text); }

static void tell_view(process *p, shoal_swarm_node *node) {
  shoal_swarm_view view;
  shoal_swarm_node_look(node, &view);
  atomic_store(&p->slot->from_server, view.from_server);
  atomic_store(&p->slot->from_peers, view.from_peers);
  atomic_store(&p->slot->sent, view.to_peers);
  atomic_store(&p->slot->bad, view.bad);
}

static void be_member(process *p) {
  char server[SHOAL_LINKS_TEXT_MAX + 16], name[32], id[SHOAL_SHA256_HEX];
  const shoal_manifest *manifest = p->run->specimen->manifest;
  snprintf(server, sizeof server, "%s:%d/data", shoal_links_address(p->run->links, 0).text, PORT);
  snprintf(name, sizeof name, "worker %u", p->number);
  shoal_manifest_id(manifest, id);
  const shoal_swarm_node_config config = {
      .server = server,
      .way = {.wire = SHOAL_WIRE_RAW},
      .name = name,
      .set = shoal_swarm_set_of(id),
      .shelf = {p, (uint32_t)manifest->chunks_count, has, length_of, put, read_chunk, NULL, gave_up},
      .all = true,
      .seed = p->number,
  };
  shoal_swarm_node *node;
  shoal_error err;
  wait_for_go(p);
  if (shoal_swarm_node_start(&node, &config, &err) != SHOAL_OK) fail(p, err.text);
  while (!is_over(p)) {
    shoal_clock_sleep(TURN_S);
    tell_view(p, node);
  }
  tell_view(p, node);
  shoal_swarm_node_end(node);
}

/* ---- the server of a swarm ---- */

static void note_blame(void *self, const char *who, const char *by, uint32_t chunk) {
  (void)who, (void)by, (void)chunk;
  atomic_fetch_add(&((process *)self)->slot->bad, 1);
}

static void be_server(process *p) {
  char address[SHOAL_LINKS_TEXT_MAX + 8];
  shoal_hall *hall;
  shoal_error err;
  snprintf(address, sizeof address, "%s:%d", shoal_links_address(p->run->links, 0).text, PORT);
  const shoal_hall_config config = {.specimen = p->run->specimen,
                                    .listen = address,
                                    .connections_max = CONNECTIONS_MAX,
                                    .self = p,
                                    .blamed = note_blame};
  if (shoal_hall_create(&hall, &config, &err) != SHOAL_OK) fail(p, err.text);
  atomic_store(&p->slot->ready, 1);
  while (!is_over(p)) {
    shoal_hall_run(hall, TURN_S);
    atomic_store(&p->slot->sent, shoal_hall_sent(hall));
  }
  shoal_hall_destroy(hall);
}

/* ---- one server, and the tree ---- */

static int listen_plain(process *p) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, shoal_links_address(p->run->links, p->number).text, &at.sin_addr);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, CONNECTIONS_MAX) != 0)
    fail(p, "cannot listen");
  return fd;
}

static void send_all(process *p, int fd) {
  const uint8_t *at = p->run->specimen->bytes;
  for (uint64_t left_bytes = p->run->specimen->manifest->bytes; left_bytes > 0;) {
    ssize_t n = send(fd, at, left_bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    at += n;
    left_bytes -= (uint64_t)n;
    atomic_fetch_add(&p->slot->sent, (uint64_t)n);
  }
  close(fd);
}

typedef struct sending {
  process *p;
  int fd;
} sending;

static void *send_in_thread(void *self) {
  sending *s = self;
  send_all(s->p, s->fd);
  free(s);
  return NULL;
}

static void serve_all(process *p, int listener) {
  for (uint32_t i = 0; i < p->run->workers; i++) {
    int fd = accept(listener, NULL, NULL);
    sending *s = malloc(sizeof *s);
    pthread_t thread;
    if (fd < 0 || s == NULL) fail(p, "cannot serve a worker");
    *s = (sending){p, fd};
    if (pthread_create(&thread, NULL, send_in_thread, s) != 0) fail(p, "cannot start a thread");
    pthread_detach(thread);
  }
}

/* Node j gets everything from j - 2^r, where 2^r is the largest power of two up to j; so node i has the
 * children i + 2^r for all 2^r > i. They are served one after another, in that order. */
static uint32_t parent_in_tree(uint32_t number) {
  uint32_t power = 1;
  while (2 * power <= number) power *= 2;
  return number - power;
}

static void serve_children(process *p, int listener) {
  int waiting[SHOAL_BENCH_DATA_WORKERS_MAX + 1];
  for (uint32_t i = 0; i <= p->run->workers; i++) waiting[i] = -1;
  for (uint32_t power = 1; power <= p->run->workers; power *= 2) {
    uint32_t child = p->number + power, who;
    if (power <= p->number || child > p->run->workers) continue;
    while (waiting[child] < 0) {
      int fd = accept(listener, NULL, NULL);
      if (fd < 0 || recv(fd, &who, sizeof who, MSG_WAITALL) != (ssize_t)sizeof who || who > p->run->workers)
        fail(p, "cannot serve a worker");
      waiting[who] = fd;
    }
    send_all(p, waiting[child]);
  }
}

static int dial_plain(process *p, uint32_t whom) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, shoal_links_address(p->run->links, whom).text, &at.sin_addr);
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) fail(p, "cannot connect");
  return fd;
}

static void fetch_plain(process *p, uint32_t from, int fd) {
  uint8_t *buffer = malloc(SHOAL_CHUNK_BYTES);
  if (buffer == NULL) fail(p, "out of memory");
  for (uint32_t i = 0; i < p->run->specimen->manifest->chunks_count; i++) {
    uint32_t length;
    shoal_error err;
    shoal_specimen_chunk(p->run->specimen, i, &length);
    if (recv(fd, buffer, length, MSG_WAITALL) != (ssize_t)length) fail(p, "the connection was closed");
    if (take_chunk(p, i, buffer, length, &err) != SHOAL_OK) fail(p, err.text);
    atomic_fetch_add(from == 0 ? &p->slot->from_server : &p->slot->from_peers, length);
  }
  free(buffer);
  close(fd);
}

static void be_plain(process *p) {
  bool tree = p->run->way == SHOAL_DATA_TREE;
  int listener = tree || p->number == 0 ? listen_plain(p) : -1;
  wait_for_go(p);
  if (p->number > 0) {
    uint32_t from = tree ? parent_in_tree(p->number) : 0;
    int fd = dial_plain(p, from);
    if (tree && send(fd, &p->number, sizeof p->number, MSG_NOSIGNAL) < 0) fail(p, "cannot ask");
    fetch_plain(p, from, fd);
  }
  if (tree)
    serve_children(p, listener);
  else if (p->number == 0)
    serve_all(p, listener);
  while (!is_over(p)) shoal_clock_sleep(TURN_S);
}

_Noreturn void shoal_data_process(const shoal_data_run *run, uint32_t number) {
  process p = {.run = run, .number = number, .slot = &run->board->slots[number]};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN); /* the parent ends all */
  p.here = calloc(run->specimen->manifest->chunks_count, 1);
  if (p.here == NULL) fail(&p, "out of memory");
  enter_network(&p);
  if (run->way != SHOAL_DATA_SWARM)
    be_plain(&p);
  else if (number == 0)
    be_server(&p);
  else
    be_member(&p);
  _exit(0);
}
