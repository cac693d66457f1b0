/* access.c: see access.h.
 *
 * Two token buckets an address: one is emptied by requests, one by wrong tokens. The buckets are kept in a
 * table of sets of a few places each; an address belongs to one set, by a hash with a secret in it, and
 * takes the place there that was not used for longest. Tokens that were right stand in a table of one place
 * each, by their hash. */
#include "server/access.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/secret.h"
#include "base/text.h"
#include "server/spec.h"

enum {
  SETS = 512,
  WAYS = 8,
  TOKEN_BYTES = 16,
  RETRY_MAX_S = 3600,
  DAYS_MAX = 36500,
  HOST_MAX = 256,
  KNOWN_MAX = 1024,
  TOKENS_AT_ONCE = 256
};
static const double KNOWN_S = 5; /* how long a right token is taken for right without asking */

static const char LOCAL[] = "local", ANYONE[] = "anyone";
static const char DIGITS64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

typedef struct bucket_pair {
  uint64_t key; /* of the address; 0: empty */
  double seen;
  double requests, wrong; /* how many more it may have now */
} bucket_pair;

/* A token that was right. */
typedef struct known_token {
  char hash[SHOAL_SHA256_HEX];
  shoal_caller caller; /* its token is 0 for an empty place */
  double until;        /* monotonic */
} known_token;

struct shoal_access {
  shoal_access_config config;
  known_token known[KNOWN_MAX];
  shoal_secret secret;
  bucket_pair buckets[SETS][WAYS];
};

/* ---- roles ---- */

static const char *const level_names[] = {"nobody", "metrics", "viewer", "volunteer", "host", "admin"};

const char *shoal_role_level_name(shoal_role_level level) {
  return level >= SHOAL_NOBODY && level <= SHOAL_ADMIN ? level_names[level] : level_names[SHOAL_NOBODY];
}

bool shoal_role_level_parse(const char *word, shoal_role_level *out) {
  for (int level = SHOAL_METRICS; level <= SHOAL_ADMIN; level++) {
    if (strcmp(word, level_names[level]) != 0) continue;
    *out = (shoal_role_level)level;
    return true;
  }
  return false;
}

/* ---- open and close ---- */

shoal_status shoal_access_create(shoal_access **out, const shoal_access_config *config, shoal_error *err) {
  *out = NULL;
  shoal_access *access = calloc(1, sizeof *access);
  if (access == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  access->config = *config;
  if (!(config->requests_per_s > 0)) access->config.requests_per_s = 50;
  if (config->requests_at_once == 0) access->config.requests_at_once = 200;
  if (config->wrong_per_minute == 0) access->config.wrong_per_minute = 20;
  shoal_status status = shoal_secret_draw(&access->secret, err);
  if (status != SHOAL_OK) {
    free(access);
    return status;
  }
  *out = access;
  return SHOAL_OK;
}

void shoal_access_destroy(shoal_access *access) { free(access); }

/* ---- limits ---- */

/* What an address is counted under. Whoever has one address of IPv6 has all with the same first half. */
static uint64_t key_of(const shoal_access *access, const char *address) {
  struct in6_addr six;
  struct in_addr four;
  const void *bytes = address;
  size_t length = strlen(address);
  if (inet_pton(AF_INET6, address, &six) == 1) {
    bool is_mapped = IN6_IS_ADDR_V4MAPPED(&six);
    bytes = is_mapped ? six.s6_addr + 12 : six.s6_addr;
    length = is_mapped ? sizeof four : 8;
  } else if (inet_pton(AF_INET, address, &four) == 1) {
    bytes = &four;
    length = sizeof four;
  }
  return shoal_secret_number(&access->secret, bytes, length);
}

/* The buckets of an address, filled up for the time since they were last seen. */
static bucket_pair *buckets_of(shoal_access *access, const char *address, double clock) {
  uint64_t key = key_of(access, address);
  bucket_pair *set = access->buckets[key % SETS], *found = NULL, *oldest = &set[0];
  for (int i = 0; i < WAYS && found == NULL; i++) {
    if (set[i].key == key) found = &set[i];
    if (set[i].key == 0 || (oldest->key != 0 && set[i].seen < oldest->seen)) oldest = &set[i];
  }
  const shoal_access_config *config = &access->config;
  if (found == NULL) {
    *oldest = (bucket_pair){key, clock, config->requests_at_once, config->wrong_per_minute};
    return oldest;
  }
  double passed = fmax(0, clock - found->seen);
  found->requests = fmin(config->requests_at_once, found->requests + passed * config->requests_per_s);
  found->wrong = fmin(config->wrong_per_minute, found->wrong + passed * config->wrong_per_minute / 60);
  found->seen = fmax(found->seen, clock);
  return found;
}

/* Takes one out; where there is none, says how long it takes until there is. */
static bool take(double *bucket, double per_s, uint32_t *retry_s) {
  if (*bucket >= 1) {
    *bucket -= 1;
    return true;
  }
  double wait = ceil((1 - *bucket) / per_s);
  *retry_s = wait < 1 ? 1 : wait > RETRY_MAX_S ? RETRY_MAX_S : (uint32_t)wait;
  return false;
}

bool shoal_access_is_loopback(const char *address) {
  struct in6_addr six;
  struct in_addr four;
  if (address[0] == 0) return true;
  if (inet_pton(AF_INET, address, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, address, &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

/* ---- tokens ---- */

static void encode64(const uint8_t bytes[TOKEN_BYTES], char out[SHOAL_TOKEN_CHARS + 1]) {
  for (int i = 0; i < SHOAL_TOKEN_CHARS; i++) {
    unsigned bit = 6u * (unsigned)i, at = bit / 8;
    unsigned pair = (unsigned)bytes[at] << 8 | (at + 1 < TOKEN_BYTES ? bytes[at + 1] : 0u);
    out[i] = DIGITS64[pair >> (10 - bit % 8) & 63];
  }
  out[SHOAL_TOKEN_CHARS] = 0;
}

/* The token of "Bearer TOKEN", or NULL. The last digit has two bits only, the other four are zero. */
static const char *token_in(const char *authorization) {
  static const char scheme[] = "Bearer ";
  const size_t skip = sizeof scheme - 1;
  if (strncasecmp(authorization, scheme, skip) != 0) return NULL;
  const char *token = authorization + skip;
  if (strlen(token) != SHOAL_TOKEN_CHARS || strspn(token, DIGITS64) != SHOAL_TOKEN_CHARS) return NULL;
  return strchr("AQgw", token[SHOAL_TOKEN_CHARS - 1]) != NULL ? token : NULL;
}

static known_token *known_place(shoal_access *access, const char *hash) {
  return &access->known[shoal_digest(hash, strlen(hash)) % KNOWN_MAX];
}

static bool is_valid(double expires, double now) { return expires == 0 || now < expires; }

/* 0, 401 or 503. */
static int check_token(shoal_access *access, const char *token, double now, double clock, shoal_caller *out) {
  char hash[SHOAL_SHA256_HEX];
  shoal_sha256_hex(token, SHOAL_TOKEN_CHARS, hash);
  known_token *known = known_place(access, hash);
  bool knows = known->caller.token != 0 && CRYPTO_memcmp(known->hash, hash, sizeof hash - 1) == 0;
  shoal_token_row row = {0};
  shoal_status status = SHOAL_UNAVAILABLE;
  if (!knows || clock >= known->until) status = shoal_store_token(access->config.store, hash, &row, NULL);
  if (knows && status == SHOAL_UNAVAILABLE) { /* while the store is away, who was known is */
    *out = known->caller;
    return is_valid(out->expires, now) ? 0 : 401;
  }
  if (status != SHOAL_OK) return status == SHOAL_NOT_FOUND ? 401 : 503;
  bool right = CRYPTO_memcmp(row.hash, hash, sizeof hash - 1) == 0;
  right = right && is_valid(row.expires, now);
  right = right && row.role != NULL && shoal_role_level_parse(row.role, &out->level);
  out->token = row.id;
  out->job = row.job;
  out->expires = row.expires;
  snprintf(out->name, sizeof out->name, "%s", row.name != NULL ? row.name : "");
  shoal_token_rows_free(&row, 1);
  if (right) {
    *known = (known_token){.caller = *out, .until = clock + KNOWN_S};
    memcpy(known->hash, hash, sizeof hash);
  }
  return right ? 0 : 401;
}

void shoal_access_forget(shoal_access *access, uint64_t token) {
  for (int i = 0; i < KNOWN_MAX; i++)
    if (access->known[i].caller.token == token) access->known[i] = (known_token){0};
}

static int ask(shoal_access *access, const char *authorization, const char *address, double now, double clock,
               shoal_caller *out, uint32_t *retry_s) {
  bucket_pair *buckets = buckets_of(access, address, clock);
  bool here = shoal_access_is_loopback(address);
  if (!here && !take(&buckets->requests, access->config.requests_per_s, retry_s)) return 429;
  if (authorization[0] == 0) {
    out->level = access->config.open;
    snprintf(out->name, sizeof out->name, "%s", here ? LOCAL : ANYONE);
    return 0;
  }
  const char *token = token_in(authorization);
  int answer = token != NULL ? check_token(access, token, now, clock, out) : 401;
  if (answer == 0) return 0;
  *out = (shoal_caller){.level = SHOAL_NOBODY};
  if (answer == 401 && !take(&buckets->wrong, access->config.wrong_per_minute / 60.0, retry_s)) return 429;
  return answer;
}

int shoal_access_ask(shoal_access *access, const char *authorization, const char *address, double now,
                     double clock, shoal_caller *out, uint32_t *retry_s) {
  *out = (shoal_caller){.level = SHOAL_NOBODY};
  *retry_s = 0;
  return ask(access, authorization, address, now, clock, out, retry_s);
}

int shoal_access_ask_often(shoal_access *access, const char *authorization, const char *address, double now,
                           double clock, shoal_caller *out, uint32_t *retry_s) {
  *out = (shoal_caller){.level = SHOAL_NOBODY};
  *retry_s = 0;
  const char *token = token_in(authorization);
  /* Whoever shows wrong ones is not let look for right ones without a limit. */
  bool trusted = buckets_of(access, address, clock)->wrong >= 1;
  if (token != NULL && trusted && check_token(access, token, now, clock, out) == 0) return 0;
  *out = (shoal_caller){.level = SHOAL_NOBODY};
  return ask(access, authorization, address, now, clock, out, retry_s);
}

/* ---- whose is what ---- */

bool shoal_access_owns(const shoal_caller *caller, const char *owner) {
  return caller->level >= SHOAL_HOST && strcmp(caller->name, owner) == 0;
}

bool shoal_access_invited(const shoal_caller *caller, uint64_t job, const char *host) {
  return (job != 0 && caller->job == job) || caller->level == SHOAL_ADMIN || shoal_access_owns(caller, host);
}

bool shoal_access_may_see(const shoal_caller *caller, uint64_t job, bool is_private, const char *host) {
  bool bound_elsewhere = caller->job != 0 && caller->job != job;
  return !bound_elsewhere && (!is_private || shoal_access_invited(caller, job, host));
}

/* ---- minting ---- */

void shoal_access_numbered(const char *name, uint32_t number, char out[SHOAL_CALLER_NAME_MAX]) {
  if (number == 0)
    snprintf(out, SHOAL_CALLER_NAME_MAX, "%s", name);
  else
    snprintf(out, SHOAL_CALLER_NAME_MAX, "%.59s %u", name, number % 1000);
}

/* What is to be minted: one token of this name, or, with a count, "NAME 1" to "NAME COUNT". */
typedef struct minted_names {
  const char *name;
  uint32_t count; /* 0: the name itself */
} minted_names;

static bool is_among(const minted_names *names, const char *name) {
  size_t length = strlen(names->name);
  uint64_t number;
  if (names->count == 0) return strcmp(name, names->name) == 0;
  return strncmp(name, names->name, length) == 0 && name[length] == ' ' &&
         shoal_read_u64(name + length + 1, strlen(name + length + 1), &number) && number >= 1 &&
         number <= names->count;
}

/* How many tokens there are, and how many valid ones of a level at least; names NULL: of any. */
static shoal_status count_tokens(shoal_access *access, shoal_role_level least, const minted_names *names,
                                 double now, size_t *all, size_t *fitting, shoal_error *err) {
  shoal_token_row rows[TOKENS_AT_ONCE];
  uint64_t after = 0;
  size_t count = 0;
  *all = *fitting = 0;
  do {
    shoal_status status = shoal_store_tokens(access->config.store, after, rows, TOKENS_AT_ONCE, &count, err);
    if (status != SHOAL_OK) return status;
    for (size_t i = 0; i < count; i++) {
      shoal_role_level level;
      bool fits = is_valid(rows[i].expires, now) && shoal_role_level_parse(rows[i].role, &level) &&
                  level >= least && (names == NULL || is_among(names, rows[i].name));
      *fitting += fits;
      after = rows[i].id;
    }
    *all += count;
    shoal_token_rows_free(rows, count);
  } while (count == TOKENS_AT_ONCE);
  return SHOAL_OK;
}

shoal_status shoal_access_has_admin(shoal_access *access, double now, bool *has, shoal_error *err) {
  size_t all, admins;
  shoal_status status = count_tokens(access, SHOAL_ADMIN, NULL, now, &all, &admins, err);
  *has = status == SHOAL_OK && admins > 0;
  return status;
}

/* What a host or an admin has is theirs by name, so no two may have the same. */
static shoal_status check_unique(shoal_access *access, shoal_role_level level, const minted_names *names,
                                 double now, shoal_error *err) {
  size_t count, named, more = names->count > 0 ? names->count : 1;
  shoal_status status = count_tokens(access, SHOAL_HOST, names, now, &count, &named, err);
  bool taken = level >= SHOAL_HOST && (named > 0 || is_among(names, LOCAL) || is_among(names, ANYONE));
  if (status == SHOAL_OK && taken)
    return shoal_fail(err, SHOAL_CONFLICT, "there is a host or an admin called '%s%s'; choose another name",
                      names->name, names->count > 0 ? " NUMBER" : "");
  if (status == SHOAL_OK && count + more > SHOAL_TOKENS_MAX)
    return shoal_fail(err, SHOAL_LIMIT,
                      "there are %zu tokens, and at most %d are allowed; delete some that are not used",
                      count, SHOAL_TOKENS_MAX);
  return status;
}

static shoal_status check_mint(shoal_role_level level, const char *name, uint64_t job, double days,
                               shoal_error *err) {
  if (level <= SHOAL_NOBODY || level > SHOAL_ADMIN)
    return shoal_fail(err, SHOAL_INVALID,
                      "the role of a token must be metrics, viewer, volunteer, host or admin");
  if (!shoal_spec_name_is_good(name) || strlen(name) >= SHOAL_CALLER_NAME_MAX)
    return shoal_fail(
        err, SHOAL_INVALID,
        "the name of a token has 1 to %d bytes, none of them / \\ : * ? \" < > | %% #, and does "
        "not begin with a dot",
        SHOAL_CALLER_NAME_MAX - 1);
  if (job != 0 && level >= SHOAL_HOST)
    return shoal_fail(err, SHOAL_INVALID, "a token for one job is for a viewer or a volunteer");
  if (!(days >= 0 && days <= DAYS_MAX))
    return shoal_fail(err, SHOAL_INVALID, "a token is good for 0 (no end) to %d days", DAYS_MAX);
  return SHOAL_OK;
}

static shoal_status draw_token(char token[SHOAL_TOKEN_CHARS + 1], shoal_error *err) {
  uint8_t random[TOKEN_BYTES];
  shoal_status status = shoal_draw(random, sizeof random, err);
  if (status != SHOAL_OK) return status;
  encode64(random, token);
  OPENSSL_cleanse(random, sizeof random);
  return SHOAL_OK;
}

static shoal_status make_row(shoal_token_row *row, const char *name, shoal_role_level level,
                             char token[SHOAL_TOKEN_CHARS + 1], shoal_error *err) {
  shoal_status status = draw_token(token, err);
  if (status != SHOAL_OK) return status;
  row->role = strdup(shoal_role_level_name(level));
  row->name = strdup(name);
  shoal_sha256_hex(token, SHOAL_TOKEN_CHARS, row->hash);
  return row->role != NULL && row->name != NULL ? SHOAL_OK
                                                : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static shoal_status mint(shoal_access *access, shoal_role_level level, const minted_names *names,
                         uint64_t job, double days, double now, char (*tokens)[SHOAL_TOKEN_CHARS + 1],
                         uint64_t *ids, shoal_error *err) {
  size_t count = names->count > 0 ? names->count : 1;
  char name[SHOAL_CALLER_NAME_MAX];
  shoal_status status = shoal_store_purge_tokens(access->config.store, now, err);
  if (status == SHOAL_OK) status = check_unique(access, level, names, now, err);
  if (status != SHOAL_OK) return status;
  shoal_token_row *rows = calloc(count, sizeof *rows);
  if (rows == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (size_t i = 0; i < count && status == SHOAL_OK; i++) {
    shoal_access_numbered(names->name, names->count > 0 ? (uint32_t)i + 1 : 0, name);
    rows[i] = (shoal_token_row){.job = job, .created = now, .expires = days > 0 ? now + days * 86400 : 0};
    status = make_row(&rows[i], name, level, tokens[i], err);
  }
  if (status == SHOAL_OK) status = shoal_store_add_tokens(access->config.store, rows, count, ids, err);
  shoal_token_rows_free(rows, count);
  free(rows);
  return status;
}

shoal_status shoal_access_mint(shoal_access *access, shoal_role_level level, const char *name, uint64_t job,
                               double days, double now, char token[SHOAL_TOKEN_CHARS + 1], uint64_t *id,
                               shoal_error *err) {
  *id = 0;
  shoal_status status = check_mint(level, name, job, days, err);
  if (status == SHOAL_OK)
    status = mint(access, level, &(minted_names){name, 0}, job, days, now,
                  (char(*)[SHOAL_TOKEN_CHARS + 1]) token, id, err);
  if (status != SHOAL_OK) token[0] = 0;
  return status;
}

shoal_status shoal_access_mint_many(shoal_access *access, shoal_role_level level, const char *name,
                                    uint64_t job, double days, double now, uint32_t count,
                                    char (*tokens)[SHOAL_TOKEN_CHARS + 1], uint64_t *ids, shoal_error *err) {
  enum { ROOM = 4 }; /* for a blank and the largest number */
  shoal_status status = check_mint(level, name, job, days, err);
  if (status == SHOAL_OK && strlen(name) + ROOM >= SHOAL_CALLER_NAME_MAX)
    status = shoal_fail(err, SHOAL_INVALID, "names that are numbered have %d bytes at most",
                        SHOAL_CALLER_NAME_MAX - 1 - ROOM);
  if (status == SHOAL_OK && (count < 1 || count > SHOAL_TOKENS_AT_ONCE_MAX))
    status = shoal_fail(err, SHOAL_INVALID, "1 to %d tokens are made at once", SHOAL_TOKENS_AT_ONCE_MAX);
  if (status == SHOAL_OK)
    status = mint(access, level, &(minted_names){name, count}, job, days, now, tokens, ids, err);
  return status;
}

void shoal_access_link(shoal_text *out, const char *url, const char *token, const char *fingerprint) {
  shoal_text_addf(out, "%s/#t=%s", url, token);
  if (fingerprint != NULL) shoal_text_addf(out, "&fp=%s", fingerprint);
}

void shoal_access_describe(const shoal_caller *caller, const char *address, char out[SHOAL_CALLER_TEXT_MAX]) {
  char name[SHOAL_CALLER_NAME_MAX], from[46]; /* an address has 45 characters at most */
  shoal_text_plain(name, sizeof name, caller->name, strnlen(caller->name, sizeof caller->name));
  shoal_text_plain(from, sizeof from, address, strlen(address));
  bool here = address[0] == 0;
  if (caller->token != 0)
    snprintf(out, SHOAL_CALLER_TEXT_MAX, "token %llu (%s)%s%s", (unsigned long long)caller->token, name,
             here ? "" : " from ", from);
  else if (shoal_access_is_loopback(address))
    snprintf(out, SHOAL_CALLER_TEXT_MAX, "%s", LOCAL);
  else
    snprintf(out, SHOAL_CALLER_TEXT_MAX, "no token, from %s", from);
}

/* ---- origins ---- */

/* A host and port in lower case, without the port that the scheme has anyway. */
static bool read_host(const char *text, const char *default_port, char out[HOST_MAX]) {
  size_t length = strlen(text);
  if (length == 0 || length >= HOST_MAX) return false;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (!isalnum(c) && strchr(".-_:[]", c) == NULL) return false;
    out[i] = (char)tolower(c);
  }
  out[length] = 0;
  size_t port = strlen(default_port);
  if (length > port && strcmp(out + length - port, default_port) == 0) out[length - port] = 0;
  return true;
}

bool shoal_access_same_origin(const char *host, const char *origin) {
  if (origin[0] == 0) return true;
  const char *port = NULL, *rest = NULL;
  if (strncasecmp(origin, "http://", 7) == 0) {
    rest = origin + 7;
    port = ":80";
  } else if (strncasecmp(origin, "https://", 8) == 0) {
    rest = origin + 8;
    port = ":443";
  }
  char from[HOST_MAX], to[HOST_MAX];
  return rest != NULL && read_host(rest, port, from) && read_host(host, port, to) && strcmp(from, to) == 0;
}

/* Nothing, or ":" and a number. */
static bool is_port(const char *text) {
  uint64_t number;
  return text[0] == 0 ||
         (text[0] == ':' && shoal_read_u64(text + 1, strlen(text + 1), &number) && number < 65536);
}

bool shoal_access_host_is_local(const char *host) {
  static const char tail[] = ".localhost";
  char name[HOST_MAX];
  if (!read_host(host, "", name)) return false;
  if (strncmp(name, "[::1]", 5) == 0) return is_port(name + 5);
  char *colon = strchr(name, ':');
  if (colon != NULL && !is_port(colon)) return false;
  if (colon != NULL) *colon = 0;
  size_t length = strlen(name), skip = sizeof tail - 1;
  struct in_addr four;
  if (inet_pton(AF_INET, name, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  return strcmp(name, "localhost") == 0 || (length > skip && strcmp(name + length - skip, tail) == 0);
}

void shoal_access_link_base(shoal_text *out, const char *url, const char *host, const char *origin) {
  char name[HOST_MAX];
  if (!read_host(host, "", name) || shoal_access_host_is_local(host))
    shoal_text_addf(out, "%s", url);
  else if (origin[0] != 0 && shoal_access_same_origin(host, origin)) /* it knows of a TLS that is not ours */
    shoal_text_addf(out, "%s", origin);
  else
    shoal_text_addf(out, "%s://%s", strncmp(url, "https:", 6) == 0 ? "https" : "http", name);
}
