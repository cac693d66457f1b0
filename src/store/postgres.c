/* postgres.c: PostgreSQL behind db.h, with libpq.
 *
 * Values and columns travel in binary, so reals keep all their bits. A statement's whole result is fetched at
 * once: the store's lists have an end.
 *
 * A lost connection (the server was restarted, a firewall forgot us) shows when it is used next, and one whose
 * server stands still when it has not answered for a while: it is given up then. Both are for `mend` to open
 * again. When it is lost during a COMMIT nobody knows what the server has done, and the error says so.
 *
 * libpq's errors quote what stands in the place of a host, port or name. A password with an '@' or '/' that
 * was not written as %40 or %2F can end up there, so such a URL is refused before libpq sees it. */
#include <endian.h>
#include <libpq-fe.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/driver.h"

enum { OID_INT8 = 20, OID_TEXT = 25, OID_FLOAT8 = 701 }; /* of the server's types, since ever */

/* The server's loop waits for a statement; only changes of the tables may take longer. PostgreSQL ends a long
 * statement itself; a PostgreSQL that does not even do that is given up a little later. */
static const char SET_UP[] = "SET statement_timeout = 4000; SET client_encoding TO 'UTF8'";
static const double PATIENCE_S = 5, PATIENCE_ALONE_S = 65;
static const char URL_FORM[] =
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %2F for / and %3F "
    "for ? in a password";

typedef struct postgres_db {
  shoal_db db;
  PGconn *connection;
  char *label; /* for errors: the database and where it is */
  const char *statements[SHOAL_DB_STATEMENTS_MAX];
  size_t statements_count; /* prepared on this connection */
  bool in_transaction;
  double patience_s;    /* how long an answer may take */
  bool given_up;        /* it took longer */
  bool claims, claimed; /* this connection is to have the database to itself; and has it */
  PGresult *result;     /* between start and end */
  int row;
  uint64_t changed;
} postgres_db;

static postgres_db *self(shoal_db *db) { return (postgres_db *)db; }

/* ---- errors ---- */

static shoal_status meaning_of(const char *state) {
  if (strcmp(state, "23505") == 0) return SHOAL_CONFLICT;
  if (strcmp(state, "23503") == 0) return SHOAL_NOT_FOUND;
  if (strcmp(state, "53200") == 0) return SHOAL_NO_MEMORY;
  if (strncmp(state, "54", 2) == 0) return SHOAL_LIMIT;
  if (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0) return SHOAL_INVALID;
  return strcmp(state, "XX001") == 0 ? SHOAL_CORRUPT : SHOAL_IO;
}

/* libpq's text as one line. */
static void one_line(const char *text, char *out, size_t size) {
  snprintf(out, size, "%s", text);
  for (size_t end = strlen(out); end > 0 && out[end - 1] == '\n'; end--) out[end - 1] = 0;
  for (char *at = out; *at != 0; at++)
    if (*at == '\n' || *at == '\t') *at = ' ';
  shoal_text_plain(out, size, out, strlen(out));
}

/* What went wrong with the result, which may be NULL. The row itself is not shown: it is somebody's data. */
static shoal_status trouble(postgres_db *p, const PGresult *result, shoal_error *err) {
  char line[512];
  const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (p->given_up) text = "it does not answer";
  one_line(text != NULL ? text : PQerrorMessage(p->connection), line, sizeof line);
  return shoal_fail(err, state != NULL ? meaning_of(state) : SHOAL_IO, "%s: %s", p->label, line);
}

static bool is_good(const PGresult *result) {
  ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static bool is_lost(const postgres_db *p) { return PQstatus(p->connection) != CONNECTION_OK; }

/* ---- asking and waiting ---- */

/* Sends what is left, and takes what is there or comes by the deadline. A connection whose other end is silent
 * is cut, so that libpq sees that it is lost. */
static void wait_a_while(postgres_db *p, double deadline) {
  int unsent = PQflush(p->connection), left_ms = (int)(1000 * (deadline - shoal_clock_seconds()));
  struct pollfd socket = {.fd = PQsocket(p->connection),
                          .events = (short)(unsent > 0 ? POLLIN | POLLOUT : POLLIN)};
  if (left_ms <= 0 || poll(&socket, 1, left_ms) == 0) {
    p->given_up = true;
    shutdown(socket.fd, SHUT_RDWR);
  }
  (void)PQconsumeInput(p->connection); /* what fails here shows in the result */
}

/* The last result of what was sent; NULL: the connection does not even take it. */
static PGresult *answer(postgres_db *p, int sent) {
  double deadline = shoal_clock_seconds() + p->patience_s;
  PGresult *last = NULL, *next;
  if (sent == 0) return NULL;
  for (;;) {
    while (PQisBusy(p->connection) && !is_lost(p)) wait_a_while(p, deadline);
    next = PQgetResult(p->connection);
    if (next == NULL) return last;
    PQclear(last);
    last = next;
  }
}

static PGresult *ask(postgres_db *p, const char *sql) { return answer(p, PQsendQuery(p->connection, sql)); }

/* ---- the connection ---- */

static void swallow(void *context, const char *text) {
  (void)context;
  (void)text;
}

/* The lock is the session's: it goes with the connection. */
static shoal_status take_claim(postgres_db *p, shoal_error *err) {
  PGresult *result = ask(p, "SELECT pg_try_advisory_lock(7163394860466)");
  shoal_status status = is_good(result) ? SHOAL_OK : trouble(p, result, err);
  p->claimed = status == SHOAL_OK && PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
  PQclear(result);
  if (status == SHOAL_OK && !p->claimed)
    return shoal_fail(err, SHOAL_CONFLICT, "another server uses the %s", p->label);
  return status;
}

/* A connection that was opened again may have come too late. */
static shoal_status keep_claim(postgres_db *p, shoal_error *err) {
  if (!p->claims || p->claimed) return SHOAL_OK;
  shoal_status status = take_claim(p, err);
  /* A conflict of rows is something else. */
  return status == SHOAL_CONFLICT ? shoal_fail(err, SHOAL_IO, "another server uses the %s", p->label)
                                  : status;
}

static shoal_status set_up(postgres_db *p, shoal_error *err) {
  p->statements_count = 0;
  p->in_transaction = p->claimed = p->given_up = false;
  p->patience_s = PATIENCE_S;
  if (is_lost(p) || PQsetnonblocking(p->connection, 1) != 0) return trouble(p, NULL, err);
  PQsetNoticeProcessor(p->connection, swallow, NULL);
  PGresult *result = ask(p, SET_UP);
  shoal_status status = is_good(result) ? SHOAL_OK : trouble(p, result, err);
  PQclear(result);
  return status == SHOAL_OK ? keep_claim(p, err) : status;
}

static shoal_status mend(shoal_db *db, shoal_error *err) {
  postgres_db *p = self(db);
  if (!is_lost(p)) return keep_claim(p, err);
  PQreset(p->connection);
  return set_up(p, err);
}

static void close_db(shoal_db *db) {
  postgres_db *p = self(db);
  PQclear(p->result);
  PQfinish(p->connection);
  free(p->label);
  free(p);
}

static const char *label(const shoal_db *db) { return ((const postgres_db *)db)->label; }

static shoal_status claim(shoal_db *db, shoal_error *err) {
  postgres_db *p = self(db);
  if (p->claimed) return SHOAL_OK;
  shoal_status status = take_claim(p, err);
  p->claims = p->claimed;
  return status;
}

/* ---- statements ---- */

static shoal_status script(shoal_db *db, const char *sql, shoal_error *err) {
  postgres_db *p = self(db);
  PGresult *result = ask(p, sql);
  shoal_status status = is_good(result) ? SHOAL_OK : trouble(p, result, err);
  PQclear(result);
  return status;
}

static shoal_status begin(shoal_db *db, shoal_db_mode mode, shoal_error *err) {
  postgres_db *p = self(db);
  SHOAL_ASSERT(!p->in_transaction);
  const char *sql =
      mode == SHOAL_DB_RELAXED ? "BEGIN; SET LOCAL synchronous_commit TO off"
      : mode == SHOAL_DB_ALONE
          ? "BEGIN; SET LOCAL statement_timeout = 60000; SELECT pg_advisory_xact_lock(7163394860465)"
          : "BEGIN";
  p->patience_s = mode == SHOAL_DB_ALONE ? PATIENCE_ALONE_S : PATIENCE_S;
  shoal_status status = script(db, sql, err);
  p->in_transaction = status == SHOAL_OK;
  if (status != SHOAL_OK && !is_lost(p)) PQclear(ask(p, "ROLLBACK"));
  return status;
}

static shoal_status commit(shoal_db *db, shoal_error *err) {
  postgres_db *p = self(db);
  p->in_transaction = false;
  PGresult *result = ask(p, "COMMIT");
  shoal_status status = SHOAL_OK;
  if (is_lost(p))
    status =
        shoal_fail(err, SHOAL_IO,
                   "%s: the connection was lost in the middle of a change; look whether it was done, and "
                   "repeat it if not",
                   p->label);
  else if (!is_good(result) || strcmp(PQcmdStatus(result), "COMMIT") != 0)
    status = trouble(p, result, err);
  PQclear(result);
  return status;
}

static void rollback(shoal_db *db) {
  postgres_db *p = self(db);
  p->in_transaction = false;
  if (!is_lost(p)) PQclear(ask(p, "ROLLBACK"));
}

/* Values as the server wants them. */
typedef struct bound {
  Oid types[SHOAL_DB_VALUES_MAX];
  const char *values[SHOAL_DB_VALUES_MAX];
  int lengths[SHOAL_DB_VALUES_MAX], formats[SHOAL_DB_VALUES_MAX];
  uint64_t words[SHOAL_DB_VALUES_MAX];
} bound;

static void bind_values(bound *b, const shoal_db_value *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const shoal_db_value *v = &values[i];
    b->formats[i] = v->type != SHOAL_DB_TEXT; /* 1: binary */
    b->lengths[i] = sizeof b->words[i];       /* not looked at for texts */
    b->values[i] = (const char *)&b->words[i];
    if (v->type == SHOAL_DB_INTEGER) {
      b->types[i] = OID_INT8;
      b->words[i] = htobe64((uint64_t)v->integer);
    } else if (v->type == SHOAL_DB_REAL) {
      b->types[i] = OID_FLOAT8;
      memcpy(&b->words[i], &v->real, sizeof v->real);
      b->words[i] = htobe64(b->words[i]);
      if (isnan(v->real)) b->values[i] = NULL;
    } else {
      b->types[i] = OID_TEXT;
      b->values[i] = v->text;
    }
  }
}

static void name_of(size_t place, char name[32]) { snprintf(name, 32, "shoal_%zu", place); }

/* Sends a statement, prepared the first time, and fetches its result, which the caller clears. */
static PGresult *execute(postgres_db *p, const char *sql, const bound *b, size_t count) {
  size_t place = 0;
  char name[32];
  while (place < p->statements_count && p->statements[place] != sql && strcmp(p->statements[place], sql) != 0)
    place++;
  name_of(place, name);
  if (place == p->statements_count) {
    SHOAL_ASSERT(place < SHOAL_DB_STATEMENTS_MAX);
    PGresult *result = answer(p, PQsendPrepare(p->connection, name, sql, (int)count, b->types));
    if (!is_good(result)) return result;
    PQclear(result);
    p->statements[p->statements_count++] = sql;
  }
  return answer(p,
                PQsendQueryPrepared(p->connection, name, (int)count, b->values, b->lengths, b->formats, 1));
}

static shoal_status start(shoal_db *db, const char *sql, const shoal_db_value *values, size_t count,
                          shoal_error *err) {
  postgres_db *p = self(db);
  SHOAL_ASSERT(p->result == NULL);
  bound b;
  bind_values(&b, values, count);
  PGresult *result = execute(p, sql, &b, count);
  if (!is_good(result)) {
    shoal_status status = trouble(p, result, err);
    PQclear(result);
    return status;
  }
  p->result = result;
  p->row = -1;
  p->changed = strtoull(PQcmdTuples(result), NULL, 10);
  return SHOAL_OK;
}

static shoal_status step(shoal_db *db, bool *row, shoal_error *err) {
  (void)err;
  postgres_db *p = self(db);
  *row = ++p->row < PQntuples(p->result);
  return SHOAL_OK;
}

static void end(shoal_db *db) {
  postgres_db *p = self(db);
  PQclear(p->result);
  p->result = NULL;
}

static uint64_t changed(shoal_db *db) { return self(db)->changed; }

/* The bits of a column of 4 or 8 bytes, the sign carried on; false for NULL. */
static bool bits_of(const postgres_db *p, int column, int64_t *out) {
  if (PQgetisnull(p->result, p->row, column)) return false;
  const char *bytes = PQgetvalue(p->result, p->row, column);
  uint32_t half;
  uint64_t whole;
  if (PQgetlength(p->result, p->row, column) == (int)sizeof half) {
    memcpy(&half, bytes, sizeof half);
    *out = (int32_t)be32toh(half);
    return true;
  }
  SHOAL_ASSERT(PQgetlength(p->result, p->row, column) == (int)sizeof whole); /* our tables, our statements */
  memcpy(&whole, bytes, sizeof whole);
  *out = (int64_t)be64toh(whole);
  return true;
}

static int64_t get_integer(shoal_db *db, int column) {
  int64_t value;
  return bits_of(self(db), column, &value) ? value : 0;
}

static double get_real(shoal_db *db, int column) {
  int64_t bits;
  double value;
  if (!bits_of(self(db), column, &bits)) return NAN;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static const char *get_text(shoal_db *db, int column) {
  const postgres_db *p = self(db);
  return PQgetvalue(p->result, p->row, column);
}

static const shoal_db_driver driver = {
    .kind = "postgresql",
    .close = close_db,
    .label = label,
    .claim = claim,
    .mend = mend,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .script = script,
    .start = start,
    .step = step,
    .end = end,
    .changed = changed,
    .get_integer = get_integer,
    .get_real = get_real,
    .get_text = get_text,
};

/* ---- opening ---- */

/* Whether the only '@' stands before the host, so that no part of a password is taken for something else. */
static bool has_clear_password(const char *url) {
  const char *authority = strstr(url, "://") + 3;
  const char *rest = authority + strcspn(authority, "/?");
  const char *at = strchr(authority, '@');
  return at == NULL || (at < rest && strchr(at + 1, '@') == NULL);
}

/* Whether libpq can read the URL and its ports are numbers: without a host, a password stands there. */
static bool is_readable(const char *url) {
  PQconninfoOption *options = PQconninfoParse(url, NULL);
  bool good = options != NULL;
  for (const PQconninfoOption *o = options; good && o->keyword != NULL; o++)
    if (strcmp(o->keyword, "port") == 0 && o->val != NULL)
      good = strspn(o->val, "0123456789,") == strlen(o->val);
  PQconninfoFree(options);
  return good;
}

static char *label_of(const PGconn *connection) {
  shoal_text text;
  shoal_text_init(&text);
  const char *host = PQhost(connection), *name = PQdb(connection);
  shoal_text_addf(&text, "PostgreSQL database %s at %s", name != NULL && name[0] ? name : "(of the user)",
                  host != NULL && host[0] ? host : "this machine");
  if (!text.failed) return text.bytes;
  shoal_text_release(&text);
  return NULL;
}

shoal_status shoal_postgres_open(shoal_db **out, const char *url, shoal_error *err) {
  if (!has_clear_password(url) || !is_readable(url))
    return shoal_fail(err, SHOAL_INVALID, "the PostgreSQL URL cannot be read; its form is %s", URL_FORM);
  /* What comes after the URL would overrule it; what comes before is there for it to overrule. */
  const char *const keywords[] = {"fallback_application_name", "connect_timeout", "tcp_user_timeout",
                                  "dbname", NULL};
  const char *const values[] = {"shoal", "5", "30000", url, NULL};
  postgres_db *p = calloc(1, sizeof *p);
  if (p == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  p->db.driver = &driver;
  p->connection = PQconnectdbParams(keywords, values, 1);
  p->label = p->connection != NULL ? label_of(p->connection) : NULL;
  shoal_status status =
      p->label != NULL ? set_up(p, err) : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  if (status != SHOAL_OK) {
    close_db(&p->db);
    return status;
  }
  *out = &p->db;
  return SHOAL_OK;
}
