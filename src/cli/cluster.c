/* cluster.c: see cluster.h. */
#include "cli/cluster.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/human.h"
#include "cli/spawn.h"
#include "net/chief_node.h"
#include "net/owner_node.h"
#include "net/worker_node.h"
#include "proto/codec.h"

enum {
  WORKERS_MAX = 16384,
  LOCAL_MAX = 1024,
  REPORTED_MAX = 256,
  LINK_PORT = 7700, /* of every parameter server that has a machine of its own */
};
static const double SAVE_S = 2; /* how often a version is made safe within an epoch */

/* ---- options ---- */

static const char *const transports[] = {"tcp", "websocket", "tls", "threads", "mpi", NULL};
static const char *const job_names[] = {"ps", "worker", "chief", NULL};
static const char *const wires[] = {"f32", "bf16", "int8", "topk", NULL};

void shoal_cluster_declare(shoal_cluster_options *o, shoal_option lines[SHOAL_CLUSTER_OPTIONS]) {
  const shoal_option all[SHOAL_CLUSTER_OPTIONS] = {
      {.name = "More than one process (the guide's chapter \"Many machines\")"},
      {.name = "workers",
       .value = "N",
       .whole = &o->workers,
       .whole_min = 0,
       .whole_max = LOCAL_MAX,
       .help = "start so many workers on this machine"},
      {.name = "ps",
       .value = "K",
       .whole = &o->ps,
       .whole_min = 0,
       .whole_max = LOCAL_MAX,
       .help = "and so many parameter servers; 1 by default"},
      {.name = "mode",
       .value = "MODE",
       .text = &o->mode,
       .help = "sync (the same bits for any number of workers), stale:N, async, or local:H: see the guide"},
      {.name = "wire",
       .value = "FORMAT",
       .text = &o->wire,
       .choices = wires,
       .help = "how contributions travel: f32, or smaller and not exact: bf16, int8, topk"},
      {.name = "transport",
       .value = "HOW",
       .text = &o->transport,
       .choices = transports,
       .help =
           "tcp, websocket (through proxies), tls, threads (of this process, the fastest on one machine), "
           "or mpi under mpirun"},
      {.name = "ps-hosts",
       .value = "LIST",
       .text = &o->ps_hosts,
       .help = "by hand, one process a role: HOST:PORT of every parameter server, with commas"},
      {.name = "worker-hosts", .value = "LIST", .text = &o->worker_hosts, .help = "and of every worker"},
      {.name = "chief-host",
       .value = "HOST:PORT",
       .text = &o->chief_host,
       .help = "and of the chief; without it, worker 0 is the chief too"},
      {.name = "job-name",
       .value = "ROLE",
       .text = &o->job_name,
       .choices = job_names,
       .help = "what this process is: ps, worker or chief"},
      {.name = "task-index",
       .value = "I",
       .whole = &o->task_index,
       .whole_min = 0,
       .whole_max = WORKERS_MAX,
       .help = "and which of them, from 0"},
      {.name = "state-dir",
       .value = "FOLDER",
       .text = &o->state_dir,
       .help = "where chief and parameter servers keep what they need after a crash; by default shoal-state, "
               "with --workers OUT.state"},
      {.name = "certificate",
       .value = "FILE",
       .text = &o->certificate,
       .help = "tls: what chief and parameter servers show, PEM"},
      {.name = "key", .value = "FILE", .text = &o->key, .help = "tls: its key"},
      {.name = "fingerprint",
       .value = "SHA256",
       .text = &o->fingerprint,
       .help = "tls: trust this certificate alone"},
      {.name = "lifeline",
       .flag = &o->lifeline,
       .help = "end, in order, when standard input does: how 'shoal launch' leaves nothing behind"},
      {.name = "pretend",
       .value = "S",
       .real = &o->pretend_s,
       .real_min = 0,
       .real_max = 3600,
       .help =
           "for benchmarks: workers wait so many seconds a batch instead of computing it; trains nothing"},
  };
  memcpy(lines, all, sizeof all);
}

/* ---- addresses ---- */

typedef struct addresses {
  char (*at)[SHOAL_ADDRESS_MAX];
  uint32_t count;
} addresses;

bool shoal_cluster_is_address(const char *word, size_t length) {
  const char *colon = memrchr(word, ':', length);
  uint64_t port;
  return colon != NULL && colon > word && word[0] != '#' && length < SHOAL_ADDRESS_MAX &&
         memchr(word, ' ', length) == NULL &&
         shoal_read_u64(colon + 1, (size_t)(word + length - colon) - 1, &port) && port > 0 && port < 65536;
}

/* *out is to be freed whatever comes of it. */
static shoal_status read_addresses(const char *flag, const char *list, addresses *out, shoal_error *err) {
  *out = (addresses){.at = calloc(SHOAL_OWNERS_MAX, SHOAL_ADDRESS_MAX)};
  if (out->at == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  for (const char *from = list;;) {
    size_t length = strcspn(from, ",");
    if (!shoal_cluster_is_address(from, length))
      return shoal_fail(err, SHOAL_INVALID, "%s: '%.*s' is not HOST:PORT", flag, (int)length, from);
    if (out->count == SHOAL_OWNERS_MAX)
      return shoal_fail(err, SHOAL_INVALID, "%s: more than %d addresses", flag, SHOAL_OWNERS_MAX);
    memcpy(out->at[out->count], from, length);
    for (uint32_t i = 0; i < out->count; i++)
      if (strcmp(out->at[i], out->at[out->count]) == 0)
        return shoal_fail(err, SHOAL_INVALID, "%s: %s is there twice", flag, out->at[i]);
    out->count++;
    if (from[length] == '\0') return SHOAL_OK;
    from += length + 1;
  }
}

/* ---- roles ---- */

static shoal_status check_index(const char *flag, const shoal_cluster_options *o, const addresses *list,
                                shoal_error *err) {
  if (o->task_index < list->count) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "--task-index %" PRIu64 ": %s has %u address%s, counted from 0",
                    o->task_index, flag, list->count, list->count == 1 ? "" : "es");
}

/* The lists, and this process's place in them. */
static shoal_status check_lists(const shoal_cluster_options *o, shoal_error *err) {
  addresses ps = {0}, workers = {0};
  shoal_status status = read_addresses("--ps-hosts", o->ps_hosts, &ps, err);
  if (status == SHOAL_OK && o->worker_hosts != NULL)
    status = read_addresses("--worker-hosts", o->worker_hosts, &workers, err);
  if (status == SHOAL_OK && o->chief_host != NULL &&
      !shoal_cluster_is_address(o->chief_host, strlen(o->chief_host)))
    status = shoal_fail(err, SHOAL_INVALID, "--chief-host: '%s' is not HOST:PORT", o->chief_host);
  const char *chief = o->chief_host != NULL ? o->chief_host : workers.at != NULL ? workers.at[0] : "";
  for (uint32_t i = 0; status == SHOAL_OK && i < ps.count; i++)
    if (strcmp(ps.at[i], chief) == 0)
      status =
          shoal_fail(err, SHOAL_INVALID, "%s cannot be the chief's address and a parameter server's", chief);
  if (status == SHOAL_OK && strcmp(o->job_name, "ps") == 0) status = check_index("--ps-hosts", o, &ps, err);
  if (status == SHOAL_OK && strcmp(o->job_name, "worker") == 0 && workers.count > 0)
    status = check_index("--worker-hosts", o, &workers, err);
  if (status == SHOAL_OK && strcmp(o->job_name, "chief") == 0 && o->task_index > 0)
    status = shoal_fail(err, SHOAL_INVALID, "there is one chief; leave out --task-index");
  free(ps.at);
  free(workers.at);
  return status;
}

static shoal_status check_by_hand(const shoal_cluster_options *o, shoal_error *err) {
  if (o->workers > 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "--workers starts processes here and --job-name is one that was started by hand; "
                      "give one of them");
  if (o->ps_hosts == NULL)
    return shoal_fail(err, SHOAL_INVALID, "--job-name needs --ps-hosts: HOST:PORT of every parameter server");
  if (o->worker_hosts == NULL && o->chief_host == NULL)
    return shoal_fail(err, SHOAL_INVALID,
                      "--job-name needs --worker-hosts, whose first is the chief, or --chief-host");
  if (o->chief_host == NULL && strcmp(o->job_name, "chief") == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "--job-name chief needs --chief-host; without one, worker 0 is the chief");
  if (o->ps != UINT64_MAX)
    return shoal_fail(err, SHOAL_INVALID, "--ps starts processes here; --ps-hosts says who the servers are");
  return check_lists(o, err);
}

/* Makes fingerprint_digits, and checks that TLS is asked for with all it needs, or not at all. */
static shoal_status check_tls(shoal_cluster_options *o, bool tls, bool listens, shoal_error *err) {
  if (!tls && (o->certificate != NULL || o->key != NULL || o->fingerprint != NULL))
    return shoal_fail(err, SHOAL_INVALID,
                      "--certificate, --key and --fingerprint are for --transport tls; add it");
  if (tls && listens && (o->certificate == NULL || o->key == NULL))
    return shoal_fail(
        err, SHOAL_INVALID,
        "with --transport tls the chief and the parameter servers need --certificate and --key");
  size_t count = 0;
  for (const char *at = o->fingerprint; at != NULL && *at != 0; at++) {
    if (*at == ':') continue; /* as openssl prints it */
    if (count + 1 == sizeof o->fingerprint_digits || strchr("0123456789abcdefABCDEF", *at) == NULL) {
      count = 0;
      break;
    }
    o->fingerprint_digits[count++] = *at;
  }
  if (o->fingerprint != NULL && count + 1 != sizeof o->fingerprint_digits)
    return shoal_fail(err, SHOAL_INVALID, "--fingerprint: '%s' is no SHA-256 of 64 hexadecimal digits",
                      o->fingerprint);
  return SHOAL_OK;
}

static bool is_transport(const shoal_cluster_options *o, const char *name) {
  return o->transport != NULL && strcmp(o->transport, name) == 0;
}

static bool is_tls(const shoal_cluster_options *o) { return is_transport(o, "tls"); }

shoal_status shoal_cluster_role(shoal_cluster_options *o, shoal_role *out, shoal_error *err) {
  bool by_hand = o->job_name != NULL, mpi = is_transport(o, "mpi");
  shoal_mode mode;
  *out = SHOAL_ALONE;
  if (o->mode != NULL && shoal_mode_parse(o->mode, &mode, err) != SHOAL_OK) {
    shoal_error_prefix(err, "--mode: ");
    return SHOAL_INVALID;
  }
  if (mpi) {
    *out = SHOAL_MPI;
    bool sync = o->mode == NULL || strcmp(o->mode, "sync") == 0;
    bool exact = o->wire == NULL || strcmp(o->wire, "f32") == 0;
    if (by_hand || o->workers > 0 || !sync || !exact)
      return shoal_fail(err, SHOAL_INVALID,
                        "--transport mpi is synchronous, in f32, and mpirun starts the processes; leave out "
                        "--workers, --ps, --job-name, --mode and --wire");
    return SHOAL_OK;
  }
  if (!by_hand && o->task_index > 0)
    return shoal_fail(err, SHOAL_INVALID, "--task-index says which of its role a process is; add --job-name");
  if (!by_hand && (o->ps_hosts != NULL || o->worker_hosts != NULL || o->chief_host != NULL))
    return shoal_fail(err, SHOAL_INVALID, "which of these is this process? add --job-name and --task-index");
  if (!by_hand && o->workers == 0 &&
      (o->mode != NULL || o->wire != NULL || o->transport != NULL || (o->ps != UINT64_MAX && o->ps > 0)))
    return shoal_fail(err, SHOAL_INVALID,
                      "--ps, --mode, --wire and --transport are for training with workers; add --workers N");
  if (o->workers > 0 && o->ps == 0)
    return shoal_fail(err, SHOAL_INVALID, "workers need a parameter server; leave out --ps, or give --ps 1");
  if (is_tls(o) && o->workers > 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "on one machine nothing leaves it; --transport tls is for roles by hand");
  if (is_transport(o, "threads") && by_hand)
    return shoal_fail(err, SHOAL_INVALID,
                      "--transport threads is for --workers; roles by hand are processes of their own");
  if (!by_hand) {
    if (o->workers > 0) *out = SHOAL_CHIEF;
    return check_tls(o, false, false, err);
  }
  bool chief = strcmp(o->job_name, "chief") == 0;
  bool first = strcmp(o->job_name, "worker") == 0 && o->task_index == 0 && o->chief_host == NULL;
  bool worker = strcmp(o->job_name, "worker") == 0;
  *out = chief || first ? SHOAL_CHIEF : SHOAL_SERVES;
  shoal_status status = check_by_hand(o, err);
  if (status == SHOAL_OK) status = check_tls(o, is_tls(o), first || !worker, err);
  return status;
}

static uint64_t count_of(const char *list) {
  uint64_t count = list != NULL;
  for (; list != NULL && *list != '\0'; list++) count += *list == ',';
  return count;
}

void shoal_cluster_describe(const shoal_cluster_options *o, shoal_role role, shoal_text *out) {
  if (role != SHOAL_CHIEF) return;
  uint64_t workers = o->workers > 0 ? o->workers : count_of(o->worker_hosts);
  uint64_t ps = o->workers == 0 ? count_of(o->ps_hosts) : o->ps == UINT64_MAX ? 1 : o->ps;
  if (workers > 0) shoal_text_addf(out, "%" PRIu64 " worker%s, ", workers, workers == 1 ? "" : "s");
  shoal_text_addf(out, "%" PRIu64 " parameter server%s, mode %s", ps, ps == 1 ? "" : "s",
                  o->mode != NULL ? o->mode : "sync");
  if (o->wire != NULL) shoal_text_addf(out, ", contributions as %s", o->wire);
}

/* ---- addresses of our own ---- */

/* Where to listen for an address that others dial: on loopback when it is one, else everywhere, since
 * the name may be that of a proxy or service in front of this machine. */
static const char *listen_at(const char *address) {
  bool here = strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
              strncmp(address, "[::1]:", 6) == 0 || strncmp(address, "#:", 2) == 0;
  return here ? address : strrchr(address, ':');
}

/* A port of this machine that nobody uses at the moment; 0: none. */
static uint16_t free_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
               getsockname(fd, (struct sockaddr *)&at, &length) == 0;
  if (fd >= 0) close(fd);
  return bound ? ntohs(at.sin_port) : 0;
}

static shoal_way way_of(const shoal_cluster_options *o) {
  return (shoal_way){.wire = is_transport(o, "websocket") ? SHOAL_WIRE_WEBSOCKET : SHOAL_WIRE_RAW,
                     .tls = is_tls(o),
                     .fingerprint = o->fingerprint != NULL ? o->fingerprint_digits : NULL};
}

static const char *state_dir_of(const shoal_cluster_options *o) {
  return o->state_dir != NULL ? o->state_dir : "shoal-state";
}

/* ---- workers and parameter servers ---- */

static shoal_status serve_owner(const shoal_cluster_options *o, const char *chief, const addresses *ps,
                                const shoal_notes *notes, const volatile sig_atomic_t *stop,
                                shoal_error *err) {
  char name[32];
  snprintf(name, sizeof name, "ps %" PRIu64, o->task_index);
  const shoal_owner_node_config config = {.listen = listen_at(ps->at[o->task_index]),
                                          .chief = chief,
                                          .slice = (uint32_t)o->task_index,
                                          .name = name,
                                          .folder = state_dir_of(o),
                                          .way = way_of(o),
                                          .certificate = o->certificate,
                                          .key = o->key,
                                          .notes = *notes,
                                          .stop = stop};
  shoal_status status = shoal_owner_node_run(&config, err);
  rmdir(config.folder); /* when nothing is left in it */
  return status;
}

static shoal_worker_node_config worker_config(const shoal_cluster_options *o, const shoal_cluster_data *data,
                                              const char *chief, const char *name, const shoal_notes *notes,
                                              const volatile sig_atomic_t *stop) {
  return (shoal_worker_node_config){.chief = chief,
                                    .name = name,
                                    .way = way_of(o),
                                    .compute = {.data = data->data,
                                                .target = data->target,
                                                .data_dir = data->data_dir,
                                                .threads = data->threads},
                                    .pretend_s = o->pretend_s,
                                    .notes = *notes,
                                    .stop = stop};
}

static shoal_status serve_worker(const shoal_cluster_options *o, const shoal_cluster_data *data,
                                 const char *chief, const shoal_notes *notes,
                                 const volatile sig_atomic_t *stop, shoal_error *err) {
  char name[32];
  snprintf(name, sizeof name, "worker %" PRIu64, o->task_index);
  const shoal_worker_node_config config = worker_config(o, data, chief, name, notes, stop);
  return shoal_worker_node_run(&config, err);
}

shoal_status shoal_cluster_serve(const shoal_cluster_options *o, const shoal_cluster_data *data,
                                 const shoal_notes *notes, const volatile sig_atomic_t *stop,
                                 shoal_error *err) {
  addresses ps = {0}, workers = {0};
  shoal_status status = read_addresses("--ps-hosts", o->ps_hosts, &ps, err);
  if (status == SHOAL_OK && o->worker_hosts != NULL)
    status = read_addresses("--worker-hosts", o->worker_hosts, &workers, err);
  const char *chief = o->chief_host != NULL ? o->chief_host : workers.count > 0 ? workers.at[0] : "";
  if (status == SHOAL_OK && strcmp(o->job_name, "ps") == 0)
    status = serve_owner(o, chief, &ps, notes, stop, err);
  else if (status == SHOAL_OK)
    status = serve_worker(o, data, chief, notes, stop, err);
  free(ps.at);
  free(workers.at);
  return status;
}

/* ---- the chief ---- */

/* A worker or parameter server that is a thread of this process. */
typedef struct member {
  shoal_cluster *cluster;
  shoal_cluster_options options; /* the cluster's, but for the role */
  pthread_t thread;
} member;

struct shoal_cluster {
  shoal_cluster_options options;
  shoal_cluster_data data;
  shoal_job job;
  addresses ps, workers;
  char chief_address[SHOAL_ADDRESS_MAX];
  shoal_text state_dir;
  shoal_chief_node *node;
  shoal_spawn *spawn; /* or NULL */
  member *members;
  uint32_t members_count;
  volatile sig_atomic_t members_stop;
};

static shoal_status find_addresses(shoal_cluster *c, shoal_error *err) {
  const shoal_cluster_options *o = &c->options;
  if (o->job_name != NULL) {
    shoal_status status = read_addresses("--ps-hosts", o->ps_hosts, &c->ps, err);
    if (status == SHOAL_OK && o->worker_hosts != NULL)
      status = read_addresses("--worker-hosts", o->worker_hosts, &c->workers, err);
    if (status != SHOAL_OK) return status;
    snprintf(c->chief_address, sizeof c->chief_address, "%s",
             o->chief_host != NULL ? o->chief_host : c->workers.at[0]);
    return SHOAL_OK;
  }
  uint32_t ps = o->ps == UINT64_MAX ? 1 : (uint32_t)o->ps;
  c->ps = (addresses){.at = calloc(ps, SHOAL_ADDRESS_MAX), .count = ps};
  if (c->ps.at == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  bool threads = is_transport(o, "threads");
  for (uint32_t s = 0; s < ps; s++)
    if (threads)
      snprintf(c->ps.at[s], SHOAL_ADDRESS_MAX, "#:%u", s + 2);
    else if (o->links != NULL)
      snprintf(c->ps.at[s], SHOAL_ADDRESS_MAX, "%s:%d", shoal_links_address(o->links, s).text, LINK_PORT);
    else
      snprintf(c->ps.at[s], SHOAL_ADDRESS_MAX, "127.0.0.1:%u", free_port());
  if (threads)
    snprintf(c->chief_address, sizeof c->chief_address, "#:1");
  else
    snprintf(c->chief_address, sizeof c->chief_address, "%s:%u",
             o->links != NULL ? shoal_links_here(o->links).text : "127.0.0.1", free_port());
  return SHOAL_OK;
}

static shoal_status describe_job(shoal_cluster *c, const shoal_task *task, shoal_error *err) {
  const shoal_cluster_options *o = &c->options;
  shoal_job *job = &c->job;
  const char *mode = o->mode != NULL ? o->mode : "sync";
  shoal_status status = shoal_mode_parse(mode, &job->mode, err);
  if (status != SHOAL_OK) return status;
  if (o->wire != NULL) shoal_codec_named(o->wire, &job->format);
  snprintf(job->mode_text, sizeof job->mode_text, "%s", mode);
  shoal_model_write(task->model, &job->model);
  shoal_text_addf(&job->data, "%s", c->data.data);
  if (c->data.target != NULL) shoal_text_addf(&job->target, "%s", c->data.target);
  job->valid_share = c->data.valid_share;
  shoal_task_fingerprint(task, job->fitted_sha256);
  job->samples = task->sources[SHOAL_TRAIN].samples;
  job->owners_count = c->ps.count;
  job->owners = calloc(c->ps.count, sizeof *job->owners);
  if (job->model.failed || job->data.failed || job->owners == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  memcpy(job->owners, c->ps.at, c->ps.count * sizeof *job->owners);
  uint32_t workers = o->workers > 0 ? (uint32_t)o->workers : c->workers.count;
  shoal_job_cut(job, shoal_trainer_shards(task->trainer), shoal_trainer_rounds(task->trainer), workers);
  return SHOAL_OK;
}

/* ---- processes on this machine ---- */

static void note_from_spawn(void *self, const char *text) { shoal_chief_node_note(self, text); }

static void add_process(shoal_cluster *c, const char *role, uint32_t index, const char *ps_list,
                        const char *threads) {
  char name[32], number[16];
  snprintf(name, sizeof name, "%s %u", role, index);
  snprintf(number, sizeof number, "%u", index);
  const char *transport = c->options.transport != NULL ? c->options.transport : "tcp";
  const char *words[SHOAL_SPAWN_ARGUMENTS_MAX] = {"train",
                                                  "--job-name",
                                                  role,
                                                  "--task-index",
                                                  number,
                                                  "--ps-hosts",
                                                  ps_list,
                                                  "--chief-host",
                                                  c->chief_address,
                                                  "--transport",
                                                  transport,
                                                  "--state-dir",
                                                  state_dir_of(&c->options),
                                                  "--threads",
                                                  threads,
                                                  "--quiet"};
  uint32_t count = 0;
  while (words[count] != NULL) count++;
  if (c->data.data_dir != NULL) {
    words[count++] = "--data-dir";
    words[count++] = c->data.data_dir;
  }
  char pretend[32];
  snprintf(pretend, sizeof pretend, "%.9g", c->options.pretend_s);
  if (c->options.pretend_s > 0) {
    words[count++] = "--pretend";
    words[count++] = pretend;
  }
  shoal_spawn_add(c->spawn, name, words);
  uint32_t machine = strcmp(role, "ps") == 0 ? index : c->ps.count + index;
  if (c->options.links != NULL)
    shoal_spawn_in_network(c->spawn, shoal_links_network(c->options.links, machine).text);
}

static uint32_t threads_of_a_worker(const shoal_cluster *c) {
  uint32_t workers = (uint32_t)c->options.workers;
  return c->data.threads > workers ? c->data.threads / workers : 1;
}

static shoal_status start_processes(shoal_cluster *c, shoal_error *err) {
  uint32_t workers = (uint32_t)c->options.workers;
  shoal_notes notes = {.self = c->node, .note = note_from_spawn};
  shoal_status status = shoal_spawn_create(&c->spawn, workers + c->ps.count, &notes, err);
  if (status != SHOAL_OK) return status;
  shoal_text list;
  shoal_text_init(&list);
  for (uint32_t s = 0; s < c->ps.count; s++) shoal_text_addf(&list, s == 0 ? "%s" : ",%s", c->ps.at[s]);
  char threads[16];
  snprintf(threads, sizeof threads, "%u", threads_of_a_worker(c));
  if (list.failed) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  } else {
    for (uint32_t s = 0; s < c->ps.count; s++) add_process(c, "ps", s, list.bytes, threads);
    for (uint32_t w = 0; w < workers; w++) add_process(c, "worker", w, list.bytes, threads);
    status = shoal_spawn_start(c->spawn, err);
  }
  shoal_text_release(&list);
  return status;
}

/* ---- threads of this process ---- */

static void *run_member(void *self) {
  member *m = self;
  shoal_cluster *c = m->cluster;
  const shoal_notes notes = {.self = c->node, .note = note_from_spawn};
  shoal_cluster_data data = c->data;
  if (c->options.workers > 0) data.threads = threads_of_a_worker(c);
  shoal_error err;
  shoal_status status =
      strcmp(m->options.job_name, "ps") == 0
          ? serve_owner(&m->options, c->chief_address, &c->ps, &notes, &c->members_stop, &err)
          : serve_worker(&m->options, &data, c->chief_address, &notes, &c->members_stop, &err);
  if (status != SHOAL_OK) shoal_chief_node_note(c->node, err.text);
  return NULL;
}

static shoal_status start_member(shoal_cluster *c, const char *role, uint32_t index, shoal_error *err) {
  member *m = &c->members[c->members_count];
  *m = (member){.cluster = c, .options = c->options};
  m->options.job_name = role;
  m->options.task_index = index;
  if (pthread_create(&m->thread, NULL, run_member, m) != 0)
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  c->members_count++;
  return SHOAL_OK;
}

/* All, or worker 0 alone where it is the chief as well. */
static shoal_status start_members(shoal_cluster *c, uint32_t ps, uint32_t workers, shoal_error *err) {
  c->members = calloc((size_t)ps + workers, sizeof *c->members);
  if (c->members == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  shoal_status status = SHOAL_OK;
  for (uint32_t s = 0; s < ps && status == SHOAL_OK; s++) status = start_member(c, "ps", s, err);
  for (uint32_t w = 0; w < workers && status == SHOAL_OK; w++) status = start_member(c, "worker", w, err);
  return status;
}

static shoal_status start_others(shoal_cluster *c, shoal_error *err) {
  const shoal_cluster_options *o = &c->options;
  if (o->job_name != NULL) return strcmp(o->job_name, "worker") == 0 ? start_members(c, 0, 1, err) : SHOAL_OK;
  if (is_transport(o, "threads")) return start_members(c, c->ps.count, (uint32_t)o->workers, err);
  return start_processes(c, err);
}

shoal_status shoal_cluster_open(shoal_cluster **out, const shoal_cluster_options *options,
                                const shoal_cluster_data *data, shoal_task *task, const char *out_path,
                                const shoal_notes *notes, const volatile sig_atomic_t *stop,
                                shoal_rounds *rounds, shoal_error *err) {
  *out = NULL;
  shoal_cluster *c = calloc(1, sizeof *c);
  if (c == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  c->options = *options;
  c->data = *data;
  if (options->workers > 0 && options->state_dir == NULL) {
    shoal_text_addf(&c->state_dir, "%s.state", out_path);
    c->options.state_dir = c->state_dir.bytes;
  }
  shoal_status status =
      c->state_dir.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory") : find_addresses(c, err);
  if (status == SHOAL_OK) status = describe_job(c, task, err);
  shoal_chief_node_config config = {.listen = listen_at(c->chief_address),
                                    .certificate = options->certificate,
                                    .key = options->key,
                                    .task = task,
                                    .job = &c->job,
                                    .folder = state_dir_of(&c->options),
                                    .save_s = options->save_s > 0 ? options->save_s : SAVE_S,
                                    .workers_max = WORKERS_MAX,
                                    .notes = *notes,
                                    .stop = stop};
  if (status == SHOAL_OK) status = shoal_chief_node_create(&c->node, &config, err);
  if (status == SHOAL_OK) status = start_others(c, err);
  if (status != SHOAL_OK) {
    shoal_cluster_close(c, "the chief could not start", false);
    return status;
  }
  *rounds = shoal_chief_node_rounds(c->node);
  *out = c;
  return SHOAL_OK;
}

uint64_t shoal_cluster_went_on(const shoal_cluster *c) { return shoal_chief_node_went_on(c->node); }

/* ---- reports ---- */

static void report_json(const shoal_chief_peer *peer) {
  shoal_text line;
  shoal_json json;
  shoal_text_init(&line);
  shoal_json_init(&json, &line);
  bool worker = peer->role == SHOAL_ROLE_WORKER;
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "event", worker ? "worker" : "ps");
  shoal_json_text(&json, "name", peer->name);
  if (worker) {
    shoal_json_int(&json, "parts", (int64_t)peer->parts_done);
    shoal_json_real(&json, "unit_seconds", peer->unit_s);
    shoal_json_real(&json, "lag_seconds", peer->held_s);
  } else {
    shoal_json_int(&json, "bytes_in", (int64_t)peer->bytes_in);
    shoal_json_int(&json, "bytes_out", (int64_t)peer->bytes_out);
  }
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

/* Workers first, then by number: names are "worker 2" and "ps 0". */
static int by_name(const void *a, const void *b) {
  const shoal_chief_peer *one = a, *other = b;
  if (one->role != other->role) return one->role < other->role ? -1 : 1;
  return strverscmp(one->name, other->name);
}

static void report_text(shoal_report *report, const shoal_chief_peer *peer, uint64_t parts) {
  if (peer->role == SHOAL_ROLE_WORKER)
    shoal_report_note(report, "  %-12s %12s parts  %3.0f%%   %.4g ms a unit", peer->name,
                      shoal_human_count(peer->parts_done).text,
                      parts > 0 ? 100.0 * (double)peer->parts_done / (double)parts : 0, 1e3 * peer->unit_s);
  else
    shoal_report_note(report, "  %-12s %12s in, %s out", peer->name,
                      shoal_human_bytes((double)peer->bytes_in).text,
                      shoal_human_bytes((double)peer->bytes_out).text);
}

uint32_t shoal_cluster_peers(shoal_cluster *c, shoal_chief_peer *out, uint32_t max) {
  return shoal_chief_node_peers(c->node, out, max);
}

void shoal_cluster_report(shoal_cluster *c, shoal_report *report) {
  static shoal_chief_peer peers[REPORTED_MAX];
  uint32_t count = shoal_cluster_peers(c, peers, REPORTED_MAX);
  uint64_t parts = 0;
  qsort(peers, count, sizeof *peers, by_name);
  for (uint32_t i = 0; i < count; i++) parts += peers[i].parts_done;
  for (uint32_t i = 0; i < count; i++) {
    if (report->json) report_json(&peers[i]);
    report_text(report, &peers[i], parts);
  }
}

void shoal_cluster_close(shoal_cluster *c, const char *reason, bool forget) {
  if (c == NULL) return;
  if (c->node != NULL) shoal_chief_node_end(c->node, reason, forget);
  __atomic_store_n(&c->members_stop, 1, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < c->members_count; i++) pthread_join(c->members[i].thread, NULL);
  shoal_spawn_end(c->spawn);
  shoal_chief_node_destroy(c->node);
  rmdir(state_dir_of(&c->options)); /* when nothing is left in it */
  shoal_text_release(&c->state_dir);
  shoal_job_release(&c->job);
  free(c->ps.at);
  free(c->workers.at);
  free(c->members);
  free(c);
}
