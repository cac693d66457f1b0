/* serve.c: shoal serve: the platform's server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "net/certificate.h"
#include "server/server.h"

typedef struct serve_options {
  const char *listen, *data_dir, *sets, *store, *certificate, *key, *open, *names;
  shoal_role_level level; /* of those without a token */
  uint64_t threads;
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

      {.name = "Access"},
      {.name = "open",
       .value = "ROLE",
       .text = &o->open,
       .help =
           "what those without a token may do: nobody, viewer, volunteer, host or admin; by default admin "
           "on an address that only this machine can reach, else nobody"},
      {.name = "tls",
       .flag = &o->tls,
       .help = "TLS, with a certificate made here; its fingerprint is in the links"},
      {.name = "names",
       .value = "LIST",
       .text = &o->names,
       .help = "with --tls: names and addresses of this machine, with commas, for the certificate when it is "
               "made"},
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
                  "  shoal serve --store postgresql://shoal@localhost/shoal\n",
  };
  shoal_operands operands;
  return shoal_cli_parse(&usage, argc, argv, &operands, status);
}

static bool only_here(const char *listen) {
  return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "localhost:", 10) == 0 ||
         strncmp(listen, "[::1]:", 6) == 0;
}

static shoal_status choose_level(serve_options *o, shoal_error *err) {
  o->level = only_here(o->listen) ? SHOAL_ADMIN : SHOAL_NOBODY;
  if (o->open == NULL) return SHOAL_OK;
  if (strcmp(o->open, "nobody") == 0) {
    o->level = SHOAL_NOBODY;
    return SHOAL_OK;
  }
  if (shoal_role_level_parse(o->open, &o->level)) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "--open: '%s' is none of nobody, viewer, volunteer, host and admin",
                    o->open);
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

/* How to work for an open server. With TLS nobody else vouches for its certificate: its fingerprint does. */
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
    if (admin_link != NULL && shoal_terminal_of(stdout).is_terminal) printf("  %s\n", admin_link);
    if (o->level >= SHOAL_VOLUNTEER && !o->quiet) tell_work(o, url);
  }
  fflush(stdout);
  shoal_text_release(&file);
}

/* What happens, one line each, on standard error or as JSON on standard output. */
static void log_line(void *self, const char *what, const char *fields) {
  const serve_options *o = self;
  if (o->json) {
    printf("{\"event\":\"%s\",\"time\":%.3f,%s}\n", what, shoal_clock_wall_seconds(), fields);
    fflush(stdout);
  } else if (!o->quiet) {
    fprintf(stderr, "%s: {%s}\n", what, fields);
  }
}

enum { NAMES_READ_MAX = SHOAL_CERTIFICATE_NAMES_MAX + 1 }; /* one more shows that there are too many */

/* "a,b" as a list; the commas of `text` become ends. */
static size_t split_names(char *text, const char *out[NAMES_READ_MAX]) {
  size_t count = 0;
  char *rest = NULL;
  for (char *name = strtok_r(text, ",", &rest); name != NULL && count < NAMES_READ_MAX;
       name = strtok_r(NULL, ",", &rest))
    out[count++] = name;
  return count;
}

/* A certificate that was made earlier keeps its names, since another one would have another fingerprint. */
static shoal_status check_names(const char *path, const char *const *names, size_t count, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  bool is_for = true;
  for (size_t i = 0; i < count && status == SHOAL_OK; i++) {
    status = shoal_certificate_is_for(path, names[i], &is_for, err);
    if (status == SHOAL_OK && !is_for)
      return shoal_fail(
          err, SHOAL_CONFLICT,
          "--names: %s was made earlier, and not for %s; leave --names out, or remove that file to have "
          "a new one made, after which links with the old fingerprint are void",
          path, names[i]);
  }
  return status;
}

static shoal_status check_tls(const serve_options *o, shoal_error *err) {
  if ((o->certificate == NULL) != (o->key == NULL))
    return shoal_fail(err, SHOAL_INVALID, "--certificate and --key go together");
  if (o->names != NULL && (!o->tls || o->certificate != NULL))
    return shoal_fail(err, SHOAL_INVALID, "--names is for the certificate that --tls makes");
  return SHOAL_OK;
}

/* The one that was given, or with --tls one that is made here. Paths that are made are the caller's. */
static shoal_status find_certificate(serve_options *o, char **certificate, char **key, shoal_error *err) {
  if (!o->tls || o->certificate != NULL) return SHOAL_OK;
  char *list = strdup(o->names != NULL ? o->names : "localhost,127.0.0.1,::1");
  const char *names[NAMES_READ_MAX];
  if (list == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  size_t count = split_names(list, names);
  shoal_status status = shoal_certificate_ensure(o->data_dir, names, count, certificate, key, err);
  if (status == SHOAL_OK && o->names != NULL) status = check_names(*certificate, names, count, err);
  free(list);
  if (status != SHOAL_OK) return status;
  o->certificate = *certificate;
  o->key = *key;
  return SHOAL_OK;
}

static int serve(int argc, char **argv) {
  serve_options o = {.listen = "127.0.0.1:8080", .data_dir = "shoal-server", .threads = shoal_cli_threads()};
  int exit_status;
  shoal_error err;
  char *certificate = NULL, *key = NULL;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  if (choose_level(&o, &err) != SHOAL_OK || check_tls(&o, &err) != SHOAL_OK)
    return shoal_cli_misused("serve", &err);
  shoal_status status = find_certificate(&o, &certificate, &key, &err);
  if (status == SHOAL_OK) {
    shoal_stop_catch();
    const shoal_server_config config = {.listen = o.listen,
                                        .folder = o.data_dir,
                                        .store = o.store,
                                        .certificate = o.certificate,
                                        .key = o.key,
                                        .named_dir = o.sets,
                                        .open = o.level,
                                        .threads = (uint32_t)o.threads,
                                        .stop = shoal_stop_flag(),
                                        .self = &o,
                                        .ready = ready,
                                        .log = log_line};
    status = shoal_server_run(&config, &err);
  }
  free(certificate);
  free(key);
  if (status != SHOAL_OK) return shoal_cli_failed("serve", &err);
  return shoal_cli_finish("serve", SHOAL_EXIT_OK);
}

const shoal_command shoal_command_serve = {"serve", "run the platform's server with its web page", serve};
