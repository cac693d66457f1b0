/* remote.h: a server's REST interface, for the commands that use it.
 *
 * Ownership: open, then close; answers are cJSON trees of the caller's. Threads: one. */
#ifndef SHOAL_CLI_REMOTE_H
#define SHOAL_CLI_REMOTE_H

#include <cjson/cJSON.h>
#include <signal.h>

#include "cli/options.h"
#include "wire/fetch.h"

#define SHOAL_DEFAULT_SERVER "http://127.0.0.1:8080"

/* What all these commands are told of the server. */
typedef struct shoal_remote_options {
  const char *server, *token_file; /* or NULL */
  bool patient;                    /* waits for a server whose store is unavailable, and says so */
} shoal_remote_options;

enum { SHOAL_REMOTE_OPTIONS = 2 };
/* Writes the options' lines of the table. */
void shoal_remote_declare(shoal_remote_options *options, shoal_option lines[SHOAL_REMOTE_OPTIONS]);

typedef struct shoal_remote {
  shoal_link link;
  shoal_fetch *fetch;
  bool has_waited;
  bool link_is_secret; /* as it was given: with a token or a fingerprint */
} shoal_remote;

/* SHOAL_INVALID: the link is wrong. `stop` may be NULL. */
shoal_status shoal_remote_open(shoal_remote *remote, const shoal_remote_options *options,
                               const volatile sig_atomic_t *stop, shoal_error *err);
void shoal_remote_close(shoal_remote *remote);

/* Asks for /api/v1 + path; *out is the answer, NULL for none. `json`, the body, may be NULL. */
shoal_status shoal_remote_ask(shoal_remote *remote, const char *method, const char *path, const char *json,
                              cJSON **out, shoal_error *err);

/* A server speaks of fields, set "valid" to 0.1, a person of flags, give --valid 0.1: changes a text in
 * place. Of an error also a field that it begins with. */
void shoal_remote_say_flags(char *text);
void shoal_remote_blame_flags(shoal_error *err);

/* As shoal_link_open; a link whose # was lost on the way is told apart, and nothing of it repeated. */
shoal_status shoal_remote_open_link(shoal_link *out, const char *text, const char *token_file,
                                    shoal_error *err);
/* Call this after a server failed to answer with the scheme of its link. Tries the other scheme. If the server
 * answers that, returns SHOAL_INVALID, since retrying cannot help, and err says which scheme to use. Otherwise
 * err mentions the other scheme and keeps its status. */
shoal_status shoal_remote_check_scheme(const shoal_link *link, const shoal_reply *reply, shoal_error *err);

/* Adds what a command needs to reach the same server again: " --server http://...", or " --server 'LINK'" for
 * one that is not repeated, which SHOAL_LINK_IS explains; nothing for the usual one. */
void shoal_remote_add_server(shoal_text *out, const shoal_remote *remote,
                             const shoal_remote_options *options);
#define SHOAL_LINK_IS "LINK is the one you gave"

/* Prints a line of JSON: {"event":"NAME","data":...}. */
void shoal_remote_event(const char *name, const cJSON *data);

#endif
