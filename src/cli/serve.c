/* serve.c: shoal serve: the platform's server. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_at.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/queue_url.h"
#include "cli/stop.h"
#include "server/server.h"
#include "wire/certificate.h"
#include "wire/here.h"
#include "wire/link.h"

typedef struct serve_options {
  const char *listen, *data_dir, *sets, *store, *queue, *public_url, *certificate, *key, *open, *names;
  shoal_role_level level; /* of those without a token */
  uint64_t threads;
  double lease_s;
  bool tls, json, quiet;
} serve_options;

static bool parse(serve_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "listen",
       .value = "HOST:PORT",
       .text = &o->listen,
       .help =
           "where to listen; 127.0.0.1:8080 by default, which only this machine can reach; :8080 for all"},
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data_dir,
       .help = "where jobs, models and data sets are kept; shoal-server in this folder by default"},
      {.name = "store",
       .value = "URL",
       .text = &o->store,
       .help = "postgresql://USER@HOST/NAME; by default SQLite in the data folder"},
      {.name = "sets",
       .value = "FOLDER",
       .text = &o->sets,
       .help = "where named sets are, as for 'shoal data'"},

      {.name = "Searches"},
      {.name = "queue",
       .value = "URL",
       .text = &o->queue,
       .help = "amqp://USER:PASSWORD@HOST/VHOST: also gives units of searches to the machines that run "
               "'shoal work' with "
               "the same URL, through that RabbitMQ broker"},
      {.name = "public-url",
       .value = "URL",
       .text = &o->public_url,
       .help = "how those machines reach this server, such as http://10.0.0.5:8080; by default the address "
               "where it "
               "listens"},
      {.name = "lease",
       .value = "SECONDS",
       .real = &o->lease_s,
       .real_min = 2,
       .real_max = 3600,
       .help = "give a unit to another worker if its own was not heard of for this long; 30 by default"},

      {.name = "Access"},
      {.name = "open",
       .value = "ROLE",
       .text = &o->open,
       .help = "what those without a token may do: nobody, metrics, viewer, volunteer, host or admin; by "
               "default admin "
               "on an address that only this machine can reach, else nobody"},
      {.name = "tls",
       .flag = &o->tls,
       .help = "use TLS, with a certificate that the server makes for all addresses of this machine; links "
               "contain the fingerprint of its key"},
      {.name = "names",
       .value = "LIST",
       .text = &o->names,
       .help =
           "further names of this machine, separated by commas: links use the first one; with --tls the "
           "certificate covers all of them and is renewed when a name is added; existing links stay valid"},
      {.name = "certificate",
       .value = "FILE",
       .text = &o->certificate,
       .help = "TLS, with this certificate (PEM)"},
      {.name = "key", .value = "FILE", .text = &o->key, .help = "and its key"},

      {.name = "Run"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "to evaluate models with; by default one for every processor"},
      {.name = "json", .flag = &o->json, .help = "print the log as JSON lines"},
      {.name = "quiet", .flag = &o->quiet, .help = "print nothing but errors"},
  };
  const shoal_usage usage = {
      .command = "serve",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about =
          "Runs the server: a page where people host trainings, and a port where others lend their machines "
          "with 'shoal work'. Everything that is submitted is kept; a server that is stopped or killed goes "
          "on where it was when it is started again with the same --data-dir.",
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal serve\n"
                  "  shoal serve --listen :8080 --tls\n"
                  "  shoal serve --store postgresql://shoal@localhost/shoal\n"
                  "  shoal serve --listen :8080 --queue amqp://shoal:PASSWORD@10.0.0.5/shoal\n",
  };
  shoal_operands operands;
  return shoal_cli_parse(&usage, argc, argv, &operands, status);
}

static bool only_here(const char *listen) {
  return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "localhost:", 10) == 0 ||
         strncmp(listen, "[::1]:", 6) == 0;
}

/* A wrong address is a slip of the hand, and nothing is made because of it. */
static shoal_status check_listen(const char *listen, shoal_error *err) {
  const char *colon = strrchr(listen, ':');
  uint64_t port;
  if (colon == NULL || !shoal_read_u64(colon + 1, strlen(colon + 1), &port) || port > UINT16_MAX)
    return shoal_fail(err, SHOAL_INVALID,
                      "--listen: '%s' is no address; one looks like 127.0.0.1:8080, or :8080 for all",
                      listen);
  size_t brackets = colon - listen >= 2 && listen[0] == '[' && colon[-1] == ']' ? 1 : 0;
  char *host = strndup(listen + brackets, (size_t)(colon - listen) - 2 * brackets);
  if (host == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  struct addrinfo *found = NULL;
  int wrong = host[0] != 0 ? getaddrinfo(host, NULL, NULL, &found) : 0;
  if (found != NULL) freeaddrinfo(found);
  free(host);
  if (wrong == 0) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "--listen: '%s' is no address of this machine: %s", listen,
                    gai_strerror(wrong));
}

/* Files and folders that must be there. */
static shoal_status check_places(const serve_options *o, shoal_error *err) {
  const struct {
    const char *option, *path;
    bool folder;
  } places[] = {
      {"--certificate", o->certificate, false}, {"--key", o->key, false}, {"--sets", o->sets, true}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    struct stat about;
    if (places[i].path == NULL) continue;
    if (stat(places[i].path, &about) != 0 || S_ISDIR(about.st_mode) != places[i].folder)
      return shoal_fail(err, SHOAL_NOT_FOUND, "%s: there is no %s %s", places[i].option,
                        places[i].folder ? "folder" : "file", places[i].path);
  }
  return SHOAL_OK;
}

/* Made for its owner alone; one that was there stays as it is. */
static shoal_status make_data_dir(const char *path, shoal_error *err) {
  if (shoal_file_exists(path)) return SHOAL_OK;
  shoal_status status = shoal_make_folder(path, err);
  if (status == SHOAL_OK && chmod(path, 0700) != 0)
    status = shoal_fail(err, SHOAL_IO, "%s: its rights cannot be set", path);
  return status;
}

static void warn_of_access(const serve_options *o) {
  if (only_here(o->listen)) return;
  if (o->level == SHOAL_ADMIN)
    shoal_cli_warn("serve",
                   "everybody who reaches %s is an admin, without a token; --open nobody asks for one",
                   o->listen);
  if (!o->tls && o->certificate == NULL)
    shoal_cli_warn("serve", "tokens travel in the clear; --tls encrypts");
}

static shoal_status choose_level(serve_options *o, shoal_error *err) {
  o->level = only_here(o->listen) ? SHOAL_ADMIN : SHOAL_NOBODY;
  if (o->open == NULL) return SHOAL_OK;
  if (strcmp(o->open, "nobody") == 0) {
    o->level = SHOAL_NOBODY;
    return SHOAL_OK;
  }
  if (shoal_role_level_parse(o->open, &o->level)) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "--open: '%s' is none of nobody, metrics, viewer, volunteer, host and admin", o->open);
}

/* ---- what the server tells ---- */

static void print_ready(const char *url, const char *admin_file) {
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, "ready");
  shoal_json_text(&json, "url", url);
  if (admin_file != NULL) shoal_json_text(&json, "admin_link_file", admin_file);
  shoal_cli_event_end(&json);
}

/* The admin's link, for nobody but the owner to read. What is printed may end in a log. */
static shoal_status keep_link(const char *path, const char *link, shoal_error *err) {
  shoal_writer *writer;
  shoal_status status = shoal_writer_create_secret(&writer, path, err);
  if (status != SHOAL_OK) return status;
  shoal_writer_add(writer, link, strlen(link));
  shoal_writer_add(writer, "\n", 1);
  return shoal_writer_commit(writer, err);
}

/* How to work for an open server. With TLS nobody else vouches for its certificate: its key's fingerprint
 * does. */
static void tell_work(const serve_options *o, const char *url) {
  char fingerprint[SHOAL_SHA256_HEX] = "";
  if (o->certificate != NULL) (void)shoal_certificate_fingerprint(o->certificate, fingerprint, NULL);
  printf("To lend this machine: shoal work %s%s%s\n", url, fingerprint[0] != 0 ? "/#fp=" : "", fingerprint);
}

static void ready(void *self, const char *url, const char *admin_link) {
  const serve_options *o = self;
  shoal_text file = {0};
  shoal_error err;
  shoal_text_addf(&file, "%s/admin.link", o->data_dir);
  if (admin_link != NULL && !file.failed && keep_link(file.bytes, admin_link, &err) != SHOAL_OK)
    shoal_cli_warn("serve", "the admin's link cannot be kept: %s; this is it: %s", err.text, admin_link);
  if (o->json) {
    print_ready(url, admin_link != NULL ? file.bytes : NULL);
  } else {
    if (!o->quiet)
      printf("Serving at %s, keeping everything in %s. Ctrl-C stops, and loses nothing.\n", url, o->data_dir);
    if (admin_link != NULL)
      printf("The link in %s makes you its admin.\n", file.bytes != NULL ? file.bytes : o->data_dir);
    bool terminal = shoal_terminal_of(stdout).is_terminal;
    if (admin_link != NULL && terminal) printf("  %s\n", admin_link);
    if (admin_link == NULL && terminal && !file.failed && shoal_file_exists(file.bytes))
      printf("The admin's link is in %s.\n", file.bytes);
    if (strstr(url, "//localhost:") != NULL && !only_here(o->listen) && !o->quiet)
      printf("Links name localhost, which others cannot reach: give a name of this machine with --names.\n");
    if (o->level >= SHOAL_VOLUNTEER && !o->quiet) tell_work(o, url);
  }
  fflush(stdout);
  shoal_text_release(&file);
}

/* "00:12:04 job 1: ann is here" */
static void say_line(const char *what, const char *fields) {
  shoal_text object = {0};
  char clock[16] = "";
  time_t now = time(NULL);
  struct tm local;
  if (localtime_r(&now, &local) != NULL) strftime(clock, sizeof clock, "%H:%M:%S", &local);
  shoal_text_addf(&object, "{%s}", fields);
  cJSON *json = object.failed ? NULL : cJSON_Parse(object.bytes);
  const cJSON *job = cJSON_GetObjectItemCaseSensitive(json, "job");
  const char *who = shoal_find_text(json, "who"), *path = shoal_find_text(json, "path");
  const char *text =
      shoal_find_text(json, "text") != NULL ? shoal_find_text(json, "text") : shoal_find_text(json, "what");
  if (text == NULL)
    fprintf(stderr, "%s %s\n", clock, what);
  else if (cJSON_IsNumber(job))
    fprintf(stderr, "%s job %.0f: %s\n", clock, job->valuedouble, text);
  else if (who != NULL)
    fprintf(stderr, "%s %s: %s\n", clock, who, text);
  else
    fprintf(stderr, "%s %s: %s%s%s\n", clock, what, path != NULL ? path : "", path != NULL ? ": " : "", text);
  cJSON_Delete(json);
  shoal_text_release(&object);
}

/* What happens, one line each, in words on standard error or as JSON on standard output. */
static void log_line(void *self, const char *what, const char *fields) {
  const serve_options *o = self;
  if (o->json) {
    printf("{\"event\":\"%s\",\"time\":%.3f,%s}\n", what, shoal_clock_wall_seconds(), fields);
    fflush(stdout);
  } else if (!o->quiet) {
    say_line(what, fields);
  }
}

/* ---- the certificate that is made here ---- */

/* What it is for: all that links may name. */
typedef struct cert_names {
  /* One more shows that there are too many, and one character more that a name is too long. */
  char texts[SHOAL_CERTIFICATE_NAMES_MAX + 1][SHOAL_LINK_HOST_MAX + 1];
  const char *all[SHOAL_CERTIFICATE_NAMES_MAX + 1];
  size_t count;
} cert_names;

static void add_name(cert_names *names, const char *name, size_t length, size_t max) {
  if (length == 0 || names->count >= max) return;
  if (length > SHOAL_LINK_HOST_MAX) length = SHOAL_LINK_HOST_MAX;
  for (size_t i = 0; i < names->count; i++)
    if (strlen(names->all[i]) == length && memcmp(names->all[i], name, length) == 0) return;
  char *text = names->texts[names->count];
  memcpy(text, name, length);
  text[length] = 0;
  names->all[names->count++] = text;
}

/* Those of --names. */
static void add_said_names(const serve_options *o, cert_names *names) {
  for (const char *at = o->names; at != NULL && *at != 0;) {
    size_t length = strcspn(at, ",");
    add_name(names, at, length, SHOAL_CERTIFICATE_NAMES_MAX + 1);
    at += length + (at[length] == ',');
  }
}

static bool is_everywhere(const char *host) {
  return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* What links use without being asked, as far as there is room. */
static void add_usual_names(const serve_options *o, cert_names *names) {
  const size_t max = SHOAL_CERTIFICATE_NAMES_MAX;
  static const char *const local[] = {"localhost", "127.0.0.1", "::1"};
  shoal_here_address addresses[SHOAL_CERTIFICATE_NAMES_MAX];
  char host[SHOAL_LINK_HOST_MAX];
  shoal_link link;
  if (o->public_url != NULL && shoal_link_parse(&link, o->public_url, NULL) == SHOAL_OK)
    add_name(names, link.host, strlen(link.host), max);
  for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
    add_name(names, local[i], strlen(local[i]), max);
  if (shoal_link_parse(&link, o->listen, NULL) == SHOAL_OK && !is_everywhere(link.host))
    add_name(names, link.host, strlen(link.host), max);
  /* What this machine calls itself may be no name at all. */
  char address[SHOAL_LINK_HOST_MAX + 8] = "";
  if (gethostname(host, sizeof host) == 0)
    snprintf(address, sizeof address, "%.*s:1", (int)sizeof host, host);
  if (shoal_link_parse(&link, address, NULL) == SHOAL_OK) add_name(names, link.host, strlen(link.host), max);
  size_t count = shoal_here_addresses(addresses, max);
  for (size_t i = 0; i < count; i++) add_name(names, addresses[i].text, strlen(addresses[i].text), max);
}

/* Makes it where that is due. One that an earlier version made stays as long as it has all of --names: links to it
 * have its own fingerprint, and would be void. */
static shoal_status ensure_certificate(const serve_options *o, char **certificate, char **key,
                                       shoal_error *err) {
  cert_names names = {.count = 0};
  char path[PATH_MAX];
  add_said_names(o, &names);
  snprintf(path, sizeof path, "%s/certificate.pem", o->data_dir);
  bool stays = shoal_certificate_is_early(path);
  for (size_t i = 0; i < names.count && stays; i++)
    (void)shoal_certificate_is_for(path, names.all[i], &stays, NULL);
  if (!stays) add_usual_names(o, &names);
  return shoal_certificate_ensure(o->data_dir, names.all, names.count, certificate, key, err);
}

static ino_t file_number(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? about.st_ino : 0;
}

/* This machine may have got another address, and the certificate's time may end. */
static bool renew(void *self) {
  const serve_options *o = self;
  char *certificate = NULL, *key = NULL;
  ino_t before = file_number(o->certificate);
  shoal_error err;
  if (ensure_certificate(o, &certificate, &key, &err) != SHOAL_OK)
    shoal_cli_warn("serve", "the certificate cannot be made again: %s", err.text);
  free(certificate);
  free(key);
  return file_number(o->certificate) != before;
}

static shoal_status check_public_url(const serve_options *o, shoal_error *err) {
  shoal_link link;
  if (o->public_url == NULL) return SHOAL_OK;
  if (o->queue == NULL)
    return shoal_fail(err, SHOAL_INVALID, "--public-url is for --queue, which is not given");
  bool whole = strstr(o->public_url, "://") != NULL && strchr(o->public_url, '#') == NULL;
  if (whole && shoal_link_parse(&link, o->public_url, err) == SHOAL_OK) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "--public-url: '%.80s' is no address; one looks like http://10.0.0.5:8080",
                    o->public_url);
}

static shoal_status check_tls(const serve_options *o, shoal_error *err) {
  if ((o->certificate == NULL) != (o->key == NULL))
    return shoal_fail(err, SHOAL_INVALID, "--certificate and --key go together");
  return SHOAL_OK;
}

/* The one that was given, or with --tls one that is made here. Paths that are made are the caller's. */
static shoal_status find_certificate(serve_options *o, char **certificate, char **key, shoal_error *err) {
  if (!o->tls || o->certificate != NULL) return SHOAL_OK;
  shoal_status status = ensure_certificate(o, certificate, key, err);
  if (status != SHOAL_OK) return status;
  if (!o->quiet && shoal_certificate_is_early(*certificate))
    shoal_cli_warn(
        "serve",
        "%s was made by an earlier version of Shoal. Renewing it would invalidate the links that contain its "
        "fingerprint, so it is kept, although it may lack names of this machine. To get a certificate with "
        "all "
        "names, remove this file",
        *certificate);
  o->certificate = *certificate;
  o->key = *key;
  return SHOAL_OK;
}

static shoal_status check(serve_options *o, shoal_error *err) {
  shoal_status status = choose_level(o, err);
  if (status == SHOAL_OK) status = check_tls(o, err);
  if (status == SHOAL_OK) status = check_public_url(o, err);
  return status == SHOAL_OK ? check_listen(o->listen, err) : status;
}

static int serve_as_told(serve_options o) {
  shoal_error err;
  char *certificate = NULL, *key = NULL;
  if (check(&o, &err) != SHOAL_OK) return shoal_cli_misused("serve", &err);
  shoal_status status = check_places(&o, &err);
  if (status == SHOAL_OK) status = make_data_dir(o.data_dir, &err);
  if (status == SHOAL_OK) status = find_certificate(&o, &certificate, &key, &err);
  char *name = o.names != NULL ? strndup(o.names, strcspn(o.names, ",")) : NULL;
  if (status == SHOAL_OK && o.names != NULL && name == NULL)
    status = shoal_fail(&err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) {
    shoal_stop_catch();
    if (!o.quiet) shoal_stop_says("stopping; again to stop at once");
    if (!o.quiet) warn_of_access(&o);
    const shoal_server_config config = {.listen = o.listen,
                                        .folder = o.data_dir,
                                        .store = o.store,
                                        .queue = o.queue,
                                        .public_url = o.public_url,
                                        .lease_s = o.lease_s,
                                        .certificate = o.certificate,
                                        .key = o.key,
                                        .named_dir = o.sets,
                                        .name = name,
                                        .open = o.level,
                                        .threads = (uint32_t)o.threads,
                                        .stop = shoal_stop_flag(),
                                        .self = &o,
                                        .ready = ready,
                                        .log = log_line,
                                        .renew = certificate != NULL ? renew : NULL};
    status = shoal_server_run(&config, &err);
  }
  free(certificate);
  free(key);
  free(name);
  if (status != SHOAL_OK) return shoal_cli_failed("serve", &err);
  return shoal_cli_finish("serve", SHOAL_EXIT_OK);
}

static int serve(int argc, char **argv) {
  serve_options o = {.listen = "127.0.0.1:8080", .data_dir = "shoal-server", .threads = shoal_cli_threads()};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  char *queue = o.queue != NULL ? shoal_queue_url_take(o.queue, argc, argv) : NULL;
  if (o.queue != NULL && queue == NULL)
    return shoal_cli_failed("serve", &(shoal_error){.status = SHOAL_NO_MEMORY, .text = "out of memory"});
  o.queue = queue;
  exit_status = serve_as_told(o);
  shoal_queue_url_free(queue);
  return exit_status;
}

const shoal_command shoal_command_serve = {"serve", "run the platform's server with its web page", serve};
