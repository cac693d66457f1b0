/* access.h: who may do what.
 *
 * A caller shows a token ("Authorization: Bearer TOKEN") or none. Tokens have a role and may be good for one
 * job only; the store has their SHA-256 alone, compared in constant time. Without a token a caller has the
 * role that the server is open to, if any. A caller that asks too often has to wait, and one that shows wrong
 * tokens too often is not told any more that they are wrong: limits are counted for every address (of IPv6, for the
 * first 64 bits), in a table of fixed size from which those go first that were not heard of for longest. A
 * right token is never refused because others at the same address have shown wrong ones: 128 random bits
 * cannot be guessed, and a whole lab may be behind one address. Tokens that were right are remembered for a
 * few seconds, so that the store is not asked at every request.
 *
 * Ownership: create, then destroy; the store is borrowed. Threads: one. */
#ifndef SHOAL_SERVER_ACCESS_H
#define SHOAL_SERVER_ACCESS_H

#include "base/text.h"
#include "store/store.h"

/* Each may do what those before it may. */
typedef enum shoal_role_level {
  SHOAL_NOBODY,
  SHOAL_METRICS, /* for what gathers them: /metrics and nothing else */
  SHOAL_VIEWER,
  SHOAL_VOLUNTEER,
  SHOAL_HOST,
  SHOAL_ADMIN,
} shoal_role_level;
const char *shoal_role_level_name(shoal_role_level level);            /* "viewer"; "nobody" */
bool shoal_role_level_parse(const char *word, shoal_role_level *out); /* not "nobody" */

enum {
  SHOAL_TOKEN_CHARS = 22, /* base64url of 128 bits */
  SHOAL_TOKENS_MAX = 10000,
  SHOAL_TOKENS_AT_ONCE_MAX = 500,
  SHOAL_CALLER_NAME_MAX = 64,    /* with the final zero */
  SHOAL_VOLUNTEER_SAID_MAX = 33, /* the name that a volunteer gives itself; likewise */
  SHOAL_CALLER_TEXT_MAX = 160,
};

typedef struct shoal_caller {
  shoal_role_level level;
  uint64_t token; /* its number; 0: none */
  uint64_t job;   /* the only one that it may see; 0: all */
  double expires; /* wall time; 0: never */
  /* Of the token: the host of what it submits. Without one "local" on this machine, "anyone" elsewhere. */
  char name[SHOAL_CALLER_NAME_MAX];
} shoal_caller;

/* Whether what belongs to `owner` is the caller's own. Names of hosts and admins are theirs alone; a viewer
 * or volunteer may be called anything. */
bool shoal_access_owns(const shoal_caller *caller, const char *owner);
/* Whether a caller may see, and work for, a private job of that host's. */
bool shoal_access_invited(const shoal_caller *caller, uint64_t job, const char *host);
/* Whether it may see any job of that host's, private or not. */
bool shoal_access_may_see(const shoal_caller *caller, uint64_t job, bool is_private, const char *host);

typedef struct shoal_access shoal_access;
typedef struct shoal_access_config {
  shoal_store *store;
  shoal_role_level open;     /* what those without a token may do */
  double requests_per_s;     /* of one address, on average; 0: 50 */
  uint32_t requests_at_once; /* more than that on average; 0: 200 */
  uint32_t wrong_per_minute; /* tokens; 0: 20 */
} shoal_access_config;

shoal_status shoal_access_create(shoal_access **out, const shoal_access_config *config, shoal_error *err);
void shoal_access_destroy(shoal_access *access);

/* Who asks, from the header's value ("" without one). 0: *out is filled, where there is no token with the
 * level that the server is open to, which may be SHOAL_NOBODY; else the HTTP status: 401 for a token that
 * is wrong, malformed or expired, 429 with *retry_s (at least 1) for one who has to wait, 503 when the
 * store cannot be asked. loopback addresses have no limits on requests, but on wrong tokens. now: wall
 * time; clock: monotonic. */
int shoal_access_ask(shoal_access *access, const char *authorization, const char *address, double now,
                     double clock, shoal_caller *out, uint32_t *retry_s);

/* Likewise for what is asked for by the hundred, as chunks are: with a right token it counts for nothing. */
int shoal_access_ask_often(shoal_access *access, const char *authorization, const char *address, double now,
                           double clock, shoal_caller *out, uint32_t *retry_s);
/* A token was deleted: it is good for nothing from now on. */
void shoal_access_forget(shoal_access *access, uint64_t token);

/* A new token, from the kernel's random numbers. days 0: it never expires. Tokens that have expired are
 * removed from the store first. SHOAL_CONFLICT: a host or admin of that name exists already, or it is
 * "local" or "anyone". SHOAL_INVALID: the name, the days, or a job for a host or an admin. SHOAL_LIMIT:
 * there are SHOAL_TOKENS_MAX. */
shoal_status shoal_access_mint(shoal_access *access, shoal_role_level level, const char *name, uint64_t job,
                               double days, double now, char token[SHOAL_TOKEN_CHARS + 1], uint64_t *id,
                               shoal_error *err);

/* So many at once, all or none: SHOAL_TOKENS_AT_ONCE_MAX at most, called "NAME 1", "NAME 2" and so on. Fills in as
 * many tokens and numbers. */
shoal_status shoal_access_mint_many(shoal_access *access, shoal_role_level level, const char *name,
                                    uint64_t job, double days, double now, uint32_t count,
                                    char (*tokens)[SHOAL_TOKEN_CHARS + 1], uint64_t *ids, shoal_error *err);
/* "NAME NUMBER"; of 0, the name itself. */
void shoal_access_numbered(const char *name, uint32_t number, char out[SHOAL_CALLER_NAME_MAX]);

/* The link that gives access with a token: "http://HOST:PORT/#t=TOKEN", and the fingerprint of a certificate
 * unless it is NULL. */
void shoal_access_link(shoal_text *out, const char *url, const char *token, const char *fingerprint);
/* Whether a token of an admin is valid now. */
shoal_status shoal_access_has_admin(shoal_access *access, double now, bool *has, shoal_error *err);

/* "token 3 (Ann) from 192.0.2.7", "local" for one without a token on this machine, "no token, from
 * 192.0.2.7" for one elsewhere; for the audit log: never the token. */
void shoal_access_describe(const shoal_caller *caller, const char *address, char out[SHOAL_CALLER_TEXT_MAX]);

/* "127.0.0.1", "::1", with or without "::ffff:" before it, or "" (no network between). */
bool shoal_access_is_loopback(const char *address);

/* Whether a request comes from a page of this server or from no page at all: a page of somebody else's
 * must not use what a browser on this machine may do. host and origin are the headers, "" where missing:
 * "localhost:8080", "http://localhost:8080". */
bool shoal_access_same_origin(const char *host, const char *origin);
/* A server that is open without tokens also wants the host header to be one of its own names (DNS
 * rebinding). This answers for the loopback names: localhost and what ends in .localhost, 127.x.x.x,
 * [::1], each with a port or without. Other names of its own are the caller's to compare. */
bool shoal_access_host_is_local(const char *host);
/* What a link begins with that somebody asked for with these headers: where they found the server, others
 * will find it, too. url is the server's own, which it is for those who are on its machine. */
void shoal_access_link_base(shoal_text *out, const char *url, const char *host, const char *origin);

#endif
