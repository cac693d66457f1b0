/* cluster.c: see cluster.h. */
#include "cli/cluster.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/spawn.h"
#include "cluster/chief_node.h"
#include "cluster/owner_node.h"
#include "cluster/worker_node.h"

enum {
  REPORTED_MAX = 256,
  LINK_PORT = 7700, /* of every parameter server that has a machine of its own */
  /* Where ports are looked for: below those that the kernel gives to outgoing connections, which begin at
   * 32768 unless somebody has changed that (ip_local_port_range). */
  PORT_FIRST = 10000,
  PORT_END = 32000,
};
static const double SAVE_S = 2; /* how often a version is made safe within an epoch */

/* ---- addresses of our own ---- */

/* Where to listen for an address that others dial: on loopback when it is one, else everywhere, since
 * the name may be that of a proxy or service in front of this machine. */
static const char *listen_at(const char *address) {
  bool here = strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
              strncmp(address, "[::1]:", 6) == 0 || strncmp(address, "#:", 2) == 0;
  return here ? address : strrchr(address, ':');
}

/* A socket that holds the port on all addresses of this machine; -1: somebody else has it. */
static int hold_port(uint16_t port) {
  struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY), .sin_port = htons(port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) == 0) return fd;
  close(fd);
  return -1;
}

/* Ports that nobody uses at the moment. All are held until the last one is found, so that no two are the
 * same; the search begins somewhere else each time, so that two programs seldom find the same ones. */
static shoal_status find_ports(uint16_t *out, uint32_t count, shoal_error *err) {
  const uint32_t range = PORT_END - PORT_FIRST;
  uint64_t start = (uint64_t)getpid() * 7919 + (uint64_t)(1e6 * shoal_clock_wall_seconds());
  int *held = calloc(count, sizeof *held);
  if (held == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  uint32_t found = 0;
  for (uint32_t tried = 0; found < count && tried < range; tried++) {
    out[found] = (uint16_t)(PORT_FIRST + (start + tried) % range);
    held[found] = hold_port(out[found]);
    if (held[found] >= 0) found++;
  }
  for (uint32_t i = 0; i < found; i++) close(held[i]);
  free(held);
  return found == count ? SHOAL_OK : shoal_fail(err, SHOAL_IO, "no free port on this machine");
}

static shoal_way way_of(const shoal_cluster_options *o) {
  return (shoal_way){.wire = shoal_cluster_uses(o, "websocket") ? SHOAL_WIRE_WEBSOCKET : SHOAL_WIRE_RAW,
                     .tls = shoal_cluster_uses(o, "tls"),
                     .fingerprint = o->fingerprint != NULL ? o->fingerprint_digits : NULL};
}

static const char *state_dir_of(const shoal_cluster_options *o) {
  return o->state_dir != NULL ? o->state_dir : "shoal-state";
}

/* ---- listening ---- */

/* The library that reads them says no more than that it could not. */
static shoal_status check_certificate(const shoal_cluster_options *o, shoal_error *err) {
  const char *files[] = {o->certificate, o->key}, *flags[] = {"--certificate", "--key"};
  for (int i = 0; i < 2; i++)
    if (files[i] != NULL && access(files[i], R_OK) != 0)
      return shoal_fail(err, SHOAL_IO, "%s: %s: %s", flags[i], files[i], strerror(errno));
  return SHOAL_OK;
}

/* Adds what is most likely the reason. */
static void explain_listening(shoal_error *err) {
  size_t length = strlen(err->text);
  if (strstr(err->text, "cannot listen") != NULL && strstr(err->text, strerror(EADDRINUSE)) != NULL)
    snprintf(err->text + length, sizeof err->text - length, "; is this role running already?");
}

/* ---- workers and parameter servers ---- */

static shoal_status serve_owner(const shoal_cluster_options *o, const char *chief, const shoal_addresses *ps,
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
  shoal_status status = check_certificate(o, err);
  if (status == SHOAL_OK) status = shoal_owner_node_run(&config, err);
  if (status != SHOAL_OK) explain_listening(err);
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

#ifdef SHOAL_FAULTS
/* For tests: SHOAL_FAULTY=1:3 has worker 1 compute its third unit wrongly, and all that follow. */
static uint64_t faulty_from(uint64_t index) {
  const char *said = getenv("SHOAL_FAULTY"), *colon = said != NULL ? strchr(said, ':') : NULL;
  uint64_t worker, unit;
  bool read = colon != NULL && shoal_read_u64(said, (size_t)(colon - said), &worker) &&
              shoal_read_u64(colon + 1, strlen(colon + 1), &unit);
  return read && worker == index ? unit : 0;
}
#endif

static shoal_status serve_worker(const shoal_cluster_options *o, const shoal_cluster_data *data,
                                 const char *chief, bool beside_chief, const shoal_notes *notes,
                                 const volatile sig_atomic_t *stop, shoal_error *err) {
  char name[32];
  snprintf(name, sizeof name, "worker %" PRIu64, o->task_index);
  shoal_worker_node_config config = worker_config(o, data, chief, name, notes, stop);
  config.beside_chief = beside_chief;
#ifdef SHOAL_FAULTS
  config.faulty_from = faulty_from(o->task_index);
  if (config.faulty_from > 0)
    shoal_note(notes, "%s: SHOAL_FAULTY is set: results are wrong from unit %" PRIu64 " on", name,
               config.faulty_from);
#endif
  return shoal_worker_node_run(&config, err);
}

shoal_status shoal_cluster_serve(const shoal_cluster_options *o, const shoal_cluster_data *data,
                                 const shoal_notes *notes, const volatile sig_atomic_t *stop,
                                 shoal_error *err) {
  shoal_addresses ps = {0}, workers = {0};
  shoal_status status = shoal_addresses_read("--ps-hosts", o->ps_hosts, &ps, err);
  if (status == SHOAL_OK && o->worker_hosts != NULL)
    status = shoal_addresses_read("--worker-hosts", o->worker_hosts, &workers, err);
  const char *chief = o->chief_host != NULL ? o->chief_host : workers.count > 0 ? workers.at[0] : "";
  if (status == SHOAL_OK && strcmp(o->job_name, "ps") == 0)
    status = serve_owner(o, chief, &ps, notes, stop, err);
  else if (status == SHOAL_OK)
    status = serve_worker(o, data, chief, false, notes, stop, err);
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
  const shoal_links *links; /* or NULL */
  shoal_job job;
  shoal_addresses ps, workers;
  char chief_address[SHOAL_ADDRESS_MAX];
  shoal_text state_dir;
  shoal_chief_node *node;
  shoal_spawn *spawn; /* or NULL */
  member *members;
  uint32_t members_count;
  volatile sig_atomic_t members_stop;
};

static shoal_status read_lists(shoal_cluster *c, shoal_error *err) {
  const shoal_cluster_options *o = &c->options;
  shoal_status status = shoal_addresses_read("--ps-hosts", o->ps_hosts, &c->ps, err);
  if (status == SHOAL_OK && o->worker_hosts != NULL)
    status = shoal_addresses_read("--worker-hosts", o->worker_hosts, &c->workers, err);
  if (status != SHOAL_OK) return status;
  snprintf(c->chief_address, sizeof c->chief_address, "%s",
           o->chief_host != NULL ? o->chief_host : c->workers.at[0]);
  return SHOAL_OK;
}

/* Threads have addresses of this process; processes ports of this machine, or of machines with links. */
static void make_addresses(shoal_cluster *c, const uint16_t *ports) {
  bool threads = shoal_cluster_uses(&c->options, "threads");
  for (uint32_t s = 0; s < c->ps.count; s++)
    if (threads)
      snprintf(c->ps.at[s], SHOAL_ADDRESS_MAX, "#:%u", s + 2);
    else if (c->links != NULL)
      snprintf(c->ps.at[s], SHOAL_ADDRESS_MAX, "%s:%d", shoal_links_address(c->links, s).text, LINK_PORT);
    else
      snprintf(c->ps.at[s], SHOAL_ADDRESS_MAX, "127.0.0.1:%u", ports[1 + s]);
  if (threads)
    snprintf(c->chief_address, sizeof c->chief_address, "#:1");
  else
    snprintf(c->chief_address, sizeof c->chief_address, "%s:%u",
             c->links != NULL ? shoal_links_here(c->links).text : "127.0.0.1", ports[0]);
}

static shoal_status find_addresses(shoal_cluster *c, shoal_error *err) {
  const shoal_cluster_options *o = &c->options;
  if (o->job_name != NULL) return read_lists(c, err);
  uint32_t ps = o->ps == UINT64_MAX ? 1 : (uint32_t)o->ps;
  c->ps = (shoal_addresses){.at = calloc(ps, SHOAL_ADDRESS_MAX), .count = ps};
  uint16_t *ports = calloc(1 + (size_t)ps, sizeof *ports);
  shoal_status status = SHOAL_OK;
  if (c->ps.at == NULL || ports == NULL)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  else if (!shoal_cluster_uses(o, "threads"))
    status = find_ports(ports, 1 + ps, err);
  if (status == SHOAL_OK) make_addresses(c, ports);
  free(ports);
  return status;
}

static shoal_status describe_job(shoal_cluster *c, const shoal_task *task, shoal_error *err) {
  const shoal_cluster_options *o = &c->options;
  const shoal_job_plan plan = {.data = c->data.data,
                               .target = c->data.target,
                               .valid_share = c->data.valid_share,
                               .mode = o->mode,
                               .wire = o->wire,
                               .guarded = o->recheck > 0,
                               .owners = c->ps.at,
                               .owners_count = c->ps.count,
                               .workers = o->workers > 0 ? (uint32_t)o->workers : c->workers.count};
  return shoal_job_make(&c->job, task, &plan, err);
}

/* ---- processes on this machine ---- */

static void note_in_node(void *self, const char *text) { shoal_chief_node_note(self, text); }

static void process_failed(void *self, const shoal_error *err) { shoal_chief_node_fail(self, err); }

static void add_process(shoal_cluster *c, const char *role, uint32_t index, const char *ps_list,
                        const char *threads) {
  char name[32], number[16], pretend[32];
  snprintf(name, sizeof name, "%s %u", role, index);
  snprintf(number, sizeof number, "%u", index);
  snprintf(pretend, sizeof pretend, "%.9g", c->options.pretend_s);
  bool works = strcmp(role, "worker") == 0;
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
  if (works && c->options.pretend_s > 0) {
    words[count++] = "--pretend";
    words[count++] = pretend;
  }
  shoal_spawn_add(c->spawn,
                  &(shoal_spawn_process){.name = name, .words = words, .vital = !works, .works = works});
  if (c->links != NULL)
    shoal_spawn_in_network(c->spawn, shoal_links_network(c->links, works ? c->ps.count + index : index).text);
}

static uint32_t threads_of_a_worker(const shoal_cluster *c) {
  uint32_t workers = (uint32_t)c->options.workers;
  return c->data.threads > workers ? c->data.threads / workers : 1;
}

static shoal_status start_processes(shoal_cluster *c, shoal_error *err) {
  uint32_t workers = (uint32_t)c->options.workers;
  const shoal_spawn_calls calls = {
      .notes = {.self = c->node, .note = note_in_node}, .self = c->node, .failed = process_failed};
  shoal_status status = shoal_spawn_create(&c->spawn, workers + c->ps.count, &calls, err);
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

/* The one that computes units a second time, with the chief's own data. */
static const char AUDITOR[] = "auditor";
static bool is_auditor(const shoal_cluster_options *o) { return o->job_name == AUDITOR; }

static shoal_status serve_auditor(shoal_cluster *c, const shoal_cluster_options *o,
                                  const shoal_cluster_data *data, const shoal_notes *notes,
                                  shoal_error *err) {
  shoal_worker_node_config config =
      worker_config(o, data, c->chief_address, AUDITOR, notes, &c->members_stop);
  config.beside_chief = true;
  config.key = shoal_chief_node_key(c->node);
  return shoal_worker_node_run(&config, err);
}

/* Nobody starts a thread again: its failure is the training's, but for a worker beside others that were
 * started by hand. */
static void member_failed(shoal_cluster *c, const shoal_cluster_options *o, const shoal_error *err) {
  shoal_error failure;
  shoal_fail(&failure, SHOAL_IO, "%s %" PRIu64 ": %s", o->job_name, o->task_index, err->text);
  bool worker = strcmp(o->job_name, "worker") == 0;
  bool others = c->options.recheck > 0 && c->options.workers > 1; /* one that was dismissed is not missed */
  if (is_auditor(o) || (c->options.job_name == NULL && !(worker && others)))
    shoal_chief_node_fail(c->node, &failure);
  else
    shoal_chief_node_note(c->node, failure.text);
}

static void *run_member(void *self) {
  member *m = self;
  shoal_cluster *c = m->cluster;
  const shoal_notes notes = {.self = c->node, .note = note_in_node};
  shoal_cluster_data data = c->data;
  if (c->options.workers > 0) data.threads = threads_of_a_worker(c);
  shoal_error err;
  shoal_status status =
      is_auditor(&m->options) ? serve_auditor(c, &m->options, &data, &notes, &err)
      : strcmp(m->options.job_name, "ps") == 0
          ? serve_owner(&m->options, c->chief_address, &c->ps, &notes, &c->members_stop, &err)
          : serve_worker(&m->options, &data, c->chief_address, true, &notes, &c->members_stop, &err);
  if (status != SHOAL_OK && status != SHOAL_STOPPED) member_failed(c, &m->options, &err);
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

/* All, or worker 0 alone where it is the chief as well; and the auditor where there is one. */
static shoal_status start_members(shoal_cluster *c, uint32_t ps, uint32_t workers, shoal_error *err) {
  c->members = calloc((size_t)ps + workers + 1, sizeof *c->members);
  if (c->members == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  shoal_status status = SHOAL_OK;
  if (c->options.recheck > 0) status = start_member(c, AUDITOR, 0, err);
  for (uint32_t s = 0; s < ps && status == SHOAL_OK; s++) status = start_member(c, "ps", s, err);
  for (uint32_t w = 0; w < workers && status == SHOAL_OK; w++) status = start_member(c, "worker", w, err);
  return status;
}

static shoal_status start_others(shoal_cluster *c, shoal_error *err) {
  const shoal_cluster_options *o = &c->options;
  if (o->job_name != NULL) return start_members(c, 0, strcmp(o->job_name, "worker") == 0, err);
  if (shoal_cluster_uses(o, "threads")) return start_members(c, c->ps.count, (uint32_t)o->workers, err);
  shoal_status status = start_members(c, 0, 0, err);
  return status == SHOAL_OK ? start_processes(c, err) : status;
}

static shoal_status create_node(shoal_cluster *c, const shoal_cluster_config *config, shoal_error *err) {
  const shoal_chief_node_config node = {
      /* Machines with links are on a network of their own, where nobody else need hear of the chief. */
      .listen = c->links != NULL ? c->chief_address : listen_at(c->chief_address),
      .certificate = c->options.certificate,
      .key = c->options.key,
      .task = config->task,
      .job = &c->job,
      .folder = state_dir_of(&c->options),
      .save_s = config->save_s > 0 ? config->save_s : SAVE_S,
      .workers_max = SHOAL_CLUSTER_WORKERS_MAX,
      .recheck = c->options.recheck,
      .notes = config->notes,
      .stop = config->stop};
  shoal_status status = check_certificate(&c->options, err);
  if (status == SHOAL_OK) status = shoal_chief_node_create(&c->node, &node, err);
  if (status != SHOAL_OK) explain_listening(err);
  return status;
}

/* A record of a chief whose training had other settings: it stays, and somebody may have meant to go on. */
static void say_what_lies_there(const shoal_cluster *c, const shoal_notes *notes) {
  static const char mark[] = ".chief.";
  char own[32];
  snprintf(own, sizeof own, "%016" PRIx64, shoal_job_digest(&c->job));
  DIR *folder = opendir(state_dir_of(&c->options));
  bool found = false;
  for (struct dirent *entry; folder != NULL && !found && (entry = readdir(folder)) != NULL;) {
    const char *end = strstr(entry->d_name, mark);
    found = end != NULL && strspn(end + sizeof mark - 1, "0123456789") > 0 &&
            strncmp(entry->d_name, own, strlen(own)) != 0;
  }
  if (folder != NULL) closedir(folder);
  if (found)
    shoal_note(notes,
               "%s holds an unfinished training with other settings; only the command that started that "
               "training continues it",
               state_dir_of(&c->options));
}

static void say_who_is_too_many(const shoal_cluster *c, const shoal_model *model, const shoal_notes *notes) {
  bool together = c->job.mode.kind == SHOAL_SYNC && c->options.workers > c->job.parts;
  if (together)
    shoal_note(notes, "%" PRIu64 " workers, but a round has %u part%s: the others only stand by%s",
               c->options.workers, c->job.parts, c->job.parts == 1 ? "" : "s",
               shoal_model_takes_whole_batch(model) ? ", as `batchnorm batch` needs it" : "; see --shards");
}

shoal_status shoal_cluster_open(shoal_cluster **out, const shoal_cluster_config *config, shoal_rounds *rounds,
                                shoal_error *err) {
  *out = NULL;
  shoal_cluster *c = calloc(1, sizeof *c);
  if (c == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  c->options = *config->options;
  c->data = config->data;
  c->links = config->links;
  if (c->options.workers > 0 && c->options.state_dir == NULL) {
    shoal_text_addf(&c->state_dir, "%s.state", config->out_path);
    c->options.state_dir = c->state_dir.bytes;
  }
  shoal_status status =
      c->state_dir.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory") : find_addresses(c, err);
  if (status == SHOAL_OK) status = describe_job(c, config->task, err);
  if (status == SHOAL_OK) status = create_node(c, config, err);
  if (status == SHOAL_OK) status = start_others(c, err);
  if (status != SHOAL_OK) {
    shoal_cluster_close(c, SHOAL_ENDS_SILENTLY, "");
    return status;
  }
  say_what_lies_there(c, &config->notes);
  say_who_is_too_many(c, config->task->model, &config->notes);
  *rounds = shoal_chief_node_rounds(c->node);
  *out = c;
  return SHOAL_OK;
}

const char *shoal_cluster_state_dir(const shoal_cluster *c) { return state_dir_of(&c->options); }

/* Parameter servers that were started by hand look after their own. */
uint64_t shoal_cluster_room(const shoal_cluster *c) {
  return c->options.job_name == NULL ? shoal_chief_node_room(c->node) : 0;
}

bool shoal_cluster_is_behind(shoal_cluster *c, uint64_t *safe) {
  return shoal_chief_node_is_behind(c->node, safe);
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
    shoal_json_real(&json, "held_seconds", peer->held_s);
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

static void report_checks(shoal_cluster *c, shoal_report *report) {
  uint64_t units, checks, rejected;
  shoal_chief_node_audits(c->node, &units, &checks, &rejected);
  shoal_report_note(report, "  %s of %s units were computed twice", shoal_human_count(checks).text,
                    shoal_human_count(units).text);
}

void shoal_cluster_report(shoal_cluster *c, shoal_report *report) {
  static shoal_chief_peer peers[REPORTED_MAX];
  uint32_t found = shoal_cluster_peers(c, peers, REPORTED_MAX), count = 0;
  uint64_t parts = 0;
  for (uint32_t i = 0; i < found; i++)
    if (peers[i].role != SHOAL_ROLE_AUDITOR) peers[count++] = peers[i];
  count += shoal_chief_node_past(c->node, peers + count, REPORTED_MAX - count);
  for (uint32_t i = 0; i < count; i++) peers[i].parts_done += peers[i].parts_before;
  qsort(peers, count, sizeof *peers, by_name);
  for (uint32_t i = 0; i < count; i++) parts += peers[i].parts_done;
  for (uint32_t i = 0; i < count; i++) {
    if (report->json) report_json(&peers[i]);
    report_text(report, &peers[i], parts);
  }
  if (c->options.recheck > 0) report_checks(c, report);
}

void shoal_cluster_close(shoal_cluster *c, shoal_chief_ending how, const char *reason) {
  if (c == NULL) return;
  if (c->node != NULL) shoal_chief_node_end(c->node, how, reason);
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
