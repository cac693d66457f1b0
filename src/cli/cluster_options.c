/* cluster_options.c: see cluster_options.h. */
#include "cli/cluster_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "proto/mode.h"

enum { LOCAL_MAX = 1024 };

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
       .help = "start N workers on this machine"},
      {.name = "ps",
       .value = "K",
       .whole = &o->ps,
       .whole_min = 0,
       .whole_max = LOCAL_MAX,
       .help = "start K parameter servers with them; 1 by default"},
      {.name = "mode",
       .value = "MODE",
       .text = &o->mode,
       .help = "sync (the same bits for any number of workers), stale:N, async, or local:H: see the guide"},
      {.name = "wire",
       .value = "FORMAT",
       .text = &o->wire,
       .choices = wires,
       .help = "how contributions travel: f32, or smaller and not exact: bf16, int8, topk"},
      {.name = "recheck",
       .value = "SHARE",
       .real = &o->recheck,
       .real_min = 0,
       .real_max = 1,
       .help = "compute this share of the workers' units a second time, such as 0.01, and dismiss a worker "
               "whose result was wrong: its machine may have faulty memory"},
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
       .whole_max = SHOAL_CLUSTER_WORKERS_MAX,
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
       .value = "SECONDS",
       .real = &o->pretend_s,
       .real_min = 0,
       .real_max = 3600,
       .help = "for benchmarks: workers wait this many seconds per batch instead of computing it; trains "
               "nothing"},
  };
  memcpy(lines, all, sizeof all);
}

/* ---- addresses ---- */

shoal_status shoal_cluster_check_address(const char *word, size_t length, shoal_error *err) {
  const char *colon = memrchr(word, ':', length);
  uint64_t port = 0;
  bool blank = memchr(word, ' ', length) != NULL;
  bool has_port = colon != NULL && shoal_read_u64(colon + 1, (size_t)(word + length - colon) - 1, &port);
  bool good = has_port && port > 0 && port <= UINT16_MAX && colon > word && word[0] != '#' && !blank &&
              length < SHOAL_ADDRESS_MAX;
  if (good) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "'%.*s' is not HOST:PORT%s", (int)length, word,
                    blank                         ? ": there is a blank in it"
                    : length >= SHOAL_ADDRESS_MAX ? ": it is too long"
                    : has_port && colon > word    ? ": a port is from 1 to 65535"
                                                  : "");
}

shoal_status shoal_addresses_read(const char *flag, const char *list, shoal_addresses *out,
                                  shoal_error *err) {
  *out = (shoal_addresses){.at = calloc(SHOAL_OWNERS_MAX, SHOAL_ADDRESS_MAX)};
  if (out->at == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  for (const char *from = list;;) {
    size_t length = strcspn(from, ",");
    if (shoal_cluster_check_address(from, length, err) != SHOAL_OK) {
      shoal_error_prefix(err, "%s: ", flag);
      return SHOAL_INVALID;
    }
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

static bool is_given(const shoal_cluster_options *o) { return o->task_index != UINT64_MAX; }

static shoal_status check_index(const char *flag, const shoal_cluster_options *o, const shoal_addresses *list,
                                shoal_error *err) {
  if (!is_given(o) && list->count > 1)
    return shoal_fail(err, SHOAL_INVALID,
                      "which of the %u in %s is this process? add --task-index, counted from 0", list->count,
                      flag);
  if (!is_given(o) || o->task_index < list->count) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "--task-index %" PRIu64 ": %s has %u address%s, counted from 0",
                    o->task_index, flag, list->count, list->count == 1 ? "" : "es");
}

/* The lists, and this process's place in them. */
static shoal_status check_lists(const shoal_cluster_options *o, shoal_error *err) {
  shoal_addresses ps = {0}, workers = {0};
  shoal_status status = shoal_addresses_read("--ps-hosts", o->ps_hosts, &ps, err);
  if (status == SHOAL_OK && o->worker_hosts != NULL)
    status = shoal_addresses_read("--worker-hosts", o->worker_hosts, &workers, err);
  if (status == SHOAL_OK && o->chief_host != NULL) {
    status = shoal_cluster_check_address(o->chief_host, strlen(o->chief_host), err);
    if (status != SHOAL_OK) shoal_error_prefix(err, "--chief-host: ");
  }
  const char *chief = o->chief_host != NULL ? o->chief_host : workers.at != NULL ? workers.at[0] : "";
  for (uint32_t i = 0; status == SHOAL_OK && i < ps.count; i++)
    if (strcmp(ps.at[i], chief) == 0)
      status =
          shoal_fail(err, SHOAL_INVALID, "%s cannot be the chief's address and a parameter server's", chief);
  if (status == SHOAL_OK && strcmp(o->job_name, "ps") == 0) status = check_index("--ps-hosts", o, &ps, err);
  if (status == SHOAL_OK && strcmp(o->job_name, "worker") == 0 && workers.count > 0)
    status = check_index("--worker-hosts", o, &workers, err);
  if (status == SHOAL_OK && strcmp(o->job_name, "chief") == 0 && is_given(o) && o->task_index > 0)
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

bool shoal_cluster_uses(const shoal_cluster_options *o, const char *transport) {
  return strcmp(o->transport != NULL ? o->transport : "tcp", transport) == 0;
}

shoal_status shoal_cluster_role(shoal_cluster_options *o, shoal_role *out, shoal_error *err) {
  bool by_hand = o->job_name != NULL, mpi = shoal_cluster_uses(o, "mpi");
  shoal_mode mode;
  *out = SHOAL_ALONE;
  if (o->mode != NULL && shoal_mode_parse(o->mode, &mode, err) != SHOAL_OK) {
    shoal_error_prefix(err, "--mode: ");
    return SHOAL_INVALID;
  }
  bool compared = o->mode == NULL || mode.kind == SHOAL_SYNC || mode.kind == SHOAL_LOCAL;
  if (o->recheck > 0 && (!compared || (o->wire != NULL && strcmp(o->wire, "topk") == 0)))
    return shoal_fail(
        err, SHOAL_INVALID,
        "--recheck compares results, and those of async, stale and topk depend on when they were "
        "computed; leave it out");
  if (mpi) {
    *out = SHOAL_MPI;
    bool sync = o->mode == NULL || strcmp(o->mode, "sync") == 0;
    bool exact = o->wire == NULL || strcmp(o->wire, "f32") == 0;
    if (by_hand || o->workers > 0 || o->ps != UINT64_MAX || !sync || !exact || o->recheck > 0)
      return shoal_fail(err, SHOAL_INVALID,
                        "--transport mpi is synchronous, in f32, and mpirun starts the processes; leave out "
                        "--workers, --ps, --job-name, --mode, --wire and --recheck");
    return SHOAL_OK;
  }
  if (!by_hand && is_given(o) && o->task_index > 0)
    return shoal_fail(err, SHOAL_INVALID, "--task-index says which of its role a process is; add --job-name");
  if (!by_hand && (o->ps_hosts != NULL || o->worker_hosts != NULL || o->chief_host != NULL))
    return shoal_fail(err, SHOAL_INVALID, "which of these is this process? add --job-name and --task-index");
  if (!by_hand && o->workers == 0 &&
      (o->mode != NULL || o->wire != NULL || o->transport != NULL || o->recheck > 0 ||
       (o->ps != UINT64_MAX && o->ps > 0)))
    return shoal_fail(
        err, SHOAL_INVALID,
        "--ps, --mode, --wire, --recheck and --transport are for training with workers; add --workers N");
  if (o->workers > 0 && o->ps == 0)
    return shoal_fail(err, SHOAL_INVALID, "workers need a parameter server; leave out --ps, or give --ps 1");
  if (shoal_cluster_uses(o, "tls") && o->workers > 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "on one machine nothing leaves it; --transport tls is for roles by hand");
  if (shoal_cluster_uses(o, "threads") && by_hand)
    return shoal_fail(err, SHOAL_INVALID,
                      "--transport threads is for --workers; roles by hand are processes of their own");
  if (!by_hand) {
    if (o->workers > 0) *out = SHOAL_CHIEF;
    return check_tls(o, false, false, err);
  }
  bool chief = strcmp(o->job_name, "chief") == 0;
  bool first =
      strcmp(o->job_name, "worker") == 0 && (!is_given(o) || o->task_index == 0) && o->chief_host == NULL;
  bool worker = strcmp(o->job_name, "worker") == 0;
  *out = chief || first ? SHOAL_CHIEF : SHOAL_SERVES;
  shoal_status status = check_tls(o, shoal_cluster_uses(o, "tls"), first || !worker, err);
  if (status == SHOAL_OK) status = check_by_hand(o, err);
  if (!is_given(o)) o->task_index = 0; /* the only one of its role */
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
  if (o->recheck > 0) shoal_text_addf(out, ", %g%% of units computed twice", 100 * o->recheck);
}

void shoal_cluster_add_options(const shoal_cluster_options *o, bool roles, shoal_text *out) {
  if (roles && o->workers > 0) shoal_text_addf(out, " --workers %" PRIu64, o->workers);
  if (roles && o->workers > 0 && o->ps != UINT64_MAX) shoal_text_addf(out, " --ps %" PRIu64, o->ps);
  if (roles) {
    shoal_cli_add_option(out, "job-name", o->job_name);
    if (o->job_name != NULL) shoal_text_addf(out, " --task-index %" PRIu64, o->task_index);
    shoal_cli_add_option(out, "ps-hosts", o->ps_hosts);
    shoal_cli_add_option(out, "worker-hosts", o->worker_hosts);
    shoal_cli_add_option(out, "chief-host", o->chief_host);
  }
  shoal_cli_add_option(out, "mode", o->mode);
  shoal_cli_add_option(out, "wire", o->wire);
  if (o->recheck > 0) shoal_text_addf(out, " --recheck %g", o->recheck);
  shoal_cli_add_option(out, "transport", o->transport);
  shoal_cli_add_option(out, "state-dir", o->state_dir);
  shoal_cli_add_option(out, "certificate", o->certificate);
  shoal_cli_add_option(out, "key", o->key);
  shoal_cli_add_option(out, "fingerprint", o->fingerprint);
}
