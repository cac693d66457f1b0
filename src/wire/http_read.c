/* http_read.c: see http_read.h. */
#include "wire/http_read.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

/* ---- characters ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/* Of methods and names of fields. */
static bool is_token_character(char c) {
  return is_letter(c) || is_digit(c) || (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* %41 at the front of text, or -1. */
static int percent_byte(const char *text) {
  if (text[0] != '%' || hex_digit(text[1]) < 0 || hex_digit(text[2]) < 0) return -1;
  return hex_digit(text[1]) * 16 + hex_digit(text[2]);
}

/* ---- the first line ---- */

/* Decodes a path in place and takes "//" and "/./" out of it. False: it is none that anybody may ask for. */
static bool decode_path(char *path) {
  char *to = path;
  for (const char *at = path; *at != 0;) {
    int c = (unsigned char)*at;
    bool coded = c == '%';
    if (coded && (c = percent_byte(at)) < 0) return false;
    if (c < 0x20 || c == 0x7f || (coded && c == '/')) return false;
    at += coded ? 3 : 1;
    if (c == '/' && to > path && to[-1] == '/') continue;
    if (c == '/' && to > path + 1 && to[-1] == '.' && to[-2] == '/') {
      to--;
      continue;
    }
    *to++ = (char)c;
  }
  if (to > path + 1 && to[-1] == '.' && to[-2] == '/') to--;
  *to = 0;
  return path[0] == '/' && strstr(path, "..") == NULL && shoal_utf8_valid(path, (size_t)(to - path));
}

/* "/path?query", or the same behind "http://host". */
static bool read_target(shoal_http_head *head, char *target) {
  for (const char *at = target; *at != 0; at++)
    if (*at <= 0x20 || *at >= 0x7f || *at == '#') return false;
  if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
    target = strchr(strchr(target, ':') + 3, '/');
    if (target == NULL) return false;
  }
  char *query = strchr(target, '?');
  if (query != NULL) *query++ = 0;
  head->query = query != NULL ? query : target + strlen(target);
  head->path = target;
  return decode_path(target);
}

static int read_first_line(shoal_http_head *head, char *line, const char **why) {
  char *target = strchr(line, ' '), *version = strrchr(line, ' ');
  *why = "a request begins with a method, a path and HTTP/1.1";
  if (target == NULL || target == version || target - line > SHOAL_HTTP_METHOD_MAX) return 400;
  *target++ = 0;
  *version++ = 0;
  for (const char *at = line; *at != 0; at++)
    if (!is_token_character(*at)) return 400;
  head->method = line;
  head->is_1_1 = strcmp(version, "HTTP/1.1") == 0;
  if (!head->is_1_1 && strcmp(version, "HTTP/1.0") != 0) {
    bool other = strncmp(version, "HTTP/", 5) == 0;
    if (other) *why = "this server speaks HTTP/1.1";
    return other ? 505 : 400;
  }
  *why = "a path that nobody may ask for";
  return read_target(head, target) ? 0 : 400;
}

/* ---- fields ---- */

bool shoal_http_list_has(const char *list, const char *word) {
  size_t length = strlen(word);
  while (*list != 0) {
    list += strspn(list, " \t,");
    size_t item = strcspn(list, " \t,");
    if (item == length && strncasecmp(list, word, length) == 0) return true;
    list += item;
  }
  return false;
}

/* The fields that this server looks at, and where their texts go. */
typedef struct fields {
  char *host, *origin, *authorization, *content_type, *accept_encoding, *if_none_match, *range, *if_range;
  char *connection, *length, *coding, *expect, *upgrade, *key, *version, *protocols;
} fields;

typedef struct field {
  const char *name;
  size_t offset;
} field;

static const field KNOWN[] = {
    {"host", offsetof(fields, host)},
    {"origin", offsetof(fields, origin)},
    {"authorization", offsetof(fields, authorization)},
    {"content-type", offsetof(fields, content_type)},
    {"accept-encoding", offsetof(fields, accept_encoding)},
    {"if-none-match", offsetof(fields, if_none_match)},
    {"range", offsetof(fields, range)},
    {"if-range", offsetof(fields, if_range)},
    {"connection", offsetof(fields, connection)},
    {"content-length", offsetof(fields, length)},
    {"transfer-encoding", offsetof(fields, coding)},
    {"expect", offsetof(fields, expect)},
    {"upgrade", offsetof(fields, upgrade)},
    {"sec-websocket-key", offsetof(fields, key)},
    {"sec-websocket-version", offsetof(fields, version)},
    {"sec-websocket-protocol", offsetof(fields, protocols)},
};

/* Fields by their names, and where their texts go. */
typedef struct table {
  const field *rows;
  size_t count;
  void *into;
} table;

static char **find_field(const table *known, const char *name) {
  for (size_t i = 0; i < known->count; i++)
    if (strcasecmp(known->rows[i].name, name) == 0)
      return (char **)((char *)known->into + known->rows[i].offset);
  return NULL;
}

/* "Name: value". Of those that are looked at, none may come twice: whoever sends two is up to something. */
static bool read_field(const table *known, char *line) {
  char *colon = line;
  while (is_token_character(*colon)) colon++;
  if (colon == line || *colon != ':') return false;
  *colon = 0;
  char *value = colon + 1 + strspn(colon + 1, " \t"), *end = value + strlen(value);
  while (end > value && (end[-1] == ' ' || end[-1] == '\t')) end--;
  *end = 0;
  for (const char *at = value; *at != 0; at++)
    if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f) return false;
  char **place = find_field(known, line);
  if (place == NULL) return true;
  if (*place != NULL) return false;
  *place = value;
  return true;
}

/* Cuts off the line at *at and moves behind it. NULL: it does not end, or not with CR and LF. */
static char *cut_line(char **at, char *end) {
  char *line = *at, *feed = memchr(line, '\n', (size_t)(end - line));
  if (feed == NULL || feed == line || feed[-1] != '\r') return NULL;
  feed[-1] = 0;
  *at = feed + 1;
  bool whole = strlen(line) == (size_t)(feed - 1 - line) && strchr(line, '\r') == NULL;
  return whole ? line : NULL;
}

static bool read_fields(const table *known, char *at, char *end) {
  for (int count = 0; count <= SHOAL_HTTP_FIELDS_MAX; count++) {
    char *line = cut_line(&at, end);
    if (line == NULL) return false;
    if (line[0] == 0) return at == end;
    if (!read_field(known, line)) return false;
  }
  return false;
}

static char *or_empty(char *text) {
  static char empty[1];
  return text != NULL ? text : empty;
}

/* How long the body is. */
static int read_length(shoal_http_head *head, const fields *known, const char **why) {
  *why = "a request with a length that is none, or with two";
  if (known->length != NULL && known->coding != NULL) return 400;
  if (known->length != NULL)
    return shoal_read_u64(known->length, strlen(known->length), &head->length) ? 0 : 400;
  if (known->coding == NULL) return 0;
  head->chunked = strcasecmp(known->coding, "chunked") == 0;
  *why = "a Transfer-Encoding other than chunked";
  return head->chunked && head->is_1_1 ? 0 : 501;
}

int shoal_http_head_read(shoal_http_head *head, char *text, size_t length, const char **why) {
  *head = (shoal_http_head){0};
  fields known = {0};
  char *at = text, *line = cut_line(&at, text + length);
  *why = "a request whose first line is none";
  if (line == NULL) return 400;
  int status = read_first_line(head, line, why);
  if (status != 0) return status;
  *why = "a request with a field that is none, with one twice, or with too many";
  const table all = {KNOWN, sizeof KNOWN / sizeof *KNOWN, &known};
  if (!read_fields(&all, at, text + length)) return 400;
  *why = "a request without the field Host";
  if (head->is_1_1 && known.host == NULL) return 400;
  const char *connection = or_empty(known.connection);
  head->keep = head->is_1_1 ? !shoal_http_list_has(connection, "close")
                            : shoal_http_list_has(connection, "keep-alive");
  head->waits = head->is_1_1 && strcasecmp(or_empty(known.expect), "100-continue") == 0;
  head->websocket = shoal_http_list_has(connection, "upgrade") &&
                    shoal_http_list_has(or_empty(known.upgrade), "websocket") &&
                    strcmp(head->method, "GET") == 0 && head->is_1_1;
  head->host = or_empty(known.host);
  head->origin = or_empty(known.origin);
  head->authorization = or_empty(known.authorization);
  head->content_type = or_empty(known.content_type);
  head->accept_encoding = or_empty(known.accept_encoding);
  head->if_none_match = or_empty(known.if_none_match);
  head->range = or_empty(known.range);
  head->if_range = or_empty(known.if_range);
  head->key = or_empty(known.key);
  head->version = or_empty(known.version);
  head->protocols = or_empty(known.protocols);
  return read_length(head, &known, why);
}

/* ---- the answer to a request for a WebSocket ---- */

typedef struct reply_fields {
  char *connection, *upgrade, *accept, *protocol, *extensions;
} reply_fields;

static const field KNOWN_OF_REPLY[] = {
    {"connection", offsetof(reply_fields, connection)},
    {"upgrade", offsetof(reply_fields, upgrade)},
    {"sec-websocket-accept", offsetof(reply_fields, accept)},
    {"sec-websocket-protocol", offsetof(reply_fields, protocol)},
    {"sec-websocket-extensions", offsetof(reply_fields, extensions)},
};

/* "HTTP/1.1 101 Switching Protocols". */
static bool read_status(const char *line, int *status) {
  uint64_t number;
  if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ') return false;
  if (strlen(line) < 12 || !shoal_read_u64(line + 9, 3, &number) || number < 100) return false;
  *status = (int)number;
  return line[12] == 0 || line[12] == ' ';
}

const char *shoal_http_reply_read(shoal_http_reply *reply, char *text, size_t length) {
  enum { SWITCHING_PROTOCOLS = 101 };
  *reply = (shoal_http_reply){0};
  reply_fields known = {0};
  const table all = {KNOWN_OF_REPLY, sizeof KNOWN_OF_REPLY / sizeof *KNOWN_OF_REPLY, &known};
  char *at = text, *line = cut_line(&at, text + length);
  if (line == NULL || !read_status(line, &reply->status)) return "its answer is no HTTP";
  if (reply->status != SWITCHING_PROTOCOLS) return NULL;
  if (!read_fields(&all, at, text + length)) return "the head of its answer is none of HTTP's";
  reply->websocket = strncmp(line, "HTTP/1.1", 8) == 0 &&
                     shoal_http_list_has(or_empty(known.connection), "upgrade") &&
                     strcasecmp(or_empty(known.upgrade), "websocket") == 0;
  if (!reply->websocket || known.extensions != NULL) return "it opens something else than was asked for";
  reply->accept = or_empty(known.accept);
  reply->protocol = or_empty(known.protocol);
  return NULL;
}

/* ---- a body in chunks ---- */

enum {
  AT_SIZE,
  AT_EXTENSION,
  AT_SIZE_FEED,
  IN_DATA,
  AT_DATA_RETURN,
  AT_DATA_FEED,
  AT_TRAILER,
  IN_TRAILER,
  AT_TRAILER_FEED,
  AT_LAST_FEED,
  AT_END
};
enum { EXTENSION_MAX = 256, TRAILER_MAX = 4096 };

/* The next state after a byte that is not of the body, or -1. */
static int next_state(shoal_http_chunks *c, char byte) {
  int digit = hex_digit(byte);
  switch (c->state) {
  case AT_SIZE:
    if (digit >= 0) {
      c->left = c->left * 16 + (unsigned)digit;
      return ++c->digits > 15 ? -1 : AT_SIZE;
    }
    if (c->digits == 0) return -1;
    c->digits = c->line_bytes = 0;
    if (byte == '\r') return AT_SIZE_FEED;
    return byte == ';' || byte == ' ' || byte == '\t' ? AT_EXTENSION : -1;
  case AT_EXTENSION:
    if (byte == '\n' || ++c->line_bytes > EXTENSION_MAX) return -1;
    return byte == '\r' ? AT_SIZE_FEED : AT_EXTENSION;
  case AT_SIZE_FEED: return byte != '\n' ? -1 : c->left > 0 ? IN_DATA : AT_TRAILER;
  case AT_DATA_RETURN: return byte == '\r' ? AT_DATA_FEED : -1;
  case AT_DATA_FEED: return byte == '\n' ? AT_SIZE : -1;
  case AT_TRAILER: return byte == '\r' ? AT_LAST_FEED : byte == '\n' ? -1 : IN_TRAILER;
  case IN_TRAILER:
    if (byte == '\n' || ++c->trailer_bytes > TRAILER_MAX) return -1;
    return byte == '\r' ? AT_TRAILER_FEED : IN_TRAILER;
  case AT_TRAILER_FEED: return byte == '\n' ? AT_TRAILER : -1;
  case AT_LAST_FEED: return byte == '\n' ? AT_END : -1;
  default: return -1;
  }
}

shoal_chunks_result shoal_http_chunks_take(shoal_http_chunks *chunks, const uint8_t *bytes, size_t length,
                                           size_t *used, size_t *count) {
  *used = *count = 0;
  while (*used < length && chunks->state != IN_DATA) {
    chunks->state = next_state(chunks, (char)bytes[(*used)++]);
    if (chunks->state < 0) return SHOAL_CHUNKS_BAD;
    if (chunks->state == AT_END) return SHOAL_CHUNKS_END;
  }
  if (chunks->state != IN_DATA) return SHOAL_CHUNKS_MORE;
  size_t rest = length - *used;
  *count = chunks->left < rest ? (size_t)chunks->left : rest;
  *used += *count;
  chunks->left -= *count;
  if (chunks->left == 0) chunks->state = AT_DATA_RETURN;
  return SHOAL_CHUNKS_MORE;
}

/* ---- ranges and queries ---- */

shoal_range_result shoal_http_range(const char *range, uint64_t size, uint64_t *first, uint64_t *end) {
  *first = 0;
  *end = size;
  if (strncasecmp(range, "bytes=", 6) != 0) return SHOAL_RANGE_ALL;
  const char *from = range + 6, *dash = strchr(from, '-');
  if (dash == NULL) return SHOAL_RANGE_ALL;
  uint64_t low = 0, high = UINT64_MAX;
  size_t low_length = (size_t)(dash - from), high_length = strlen(dash + 1);
  if (low_length > 0 && !shoal_read_u64(from, low_length, &low)) return SHOAL_RANGE_ALL;
  if (high_length > 0 && !shoal_read_u64(dash + 1, high_length, &high)) return SHOAL_RANGE_ALL;
  if (low_length == 0 && high_length == 0) return SHOAL_RANGE_ALL;
  if (low_length == 0) { /* the last so many */
    if (high == 0 || size == 0) return SHOAL_RANGE_NONE;
    *first = high < size ? size - high : 0;
    return SHOAL_RANGE_PART;
  }
  if (high < low) return SHOAL_RANGE_ALL;
  if (low >= size) return SHOAL_RANGE_NONE;
  *first = low;
  if (high < size) *end = high + 1;
  return SHOAL_RANGE_PART;
}

/* Decodes a value up to the next "&" into out. */
static bool decode_value(const char *at, char *out, size_t size) {
  size_t count = 0;
  if (size == 0) return false;
  for (; *at != 0 && *at != '&'; at++) {
    int c = *at == '+' ? ' ' : (unsigned char)*at;
    if (*at == '%') {
      c = percent_byte(at);
      if (c <= 0) return false;
      at += 2;
    }
    if (count + 1 >= size) return false;
    out[count++] = (char)c;
  }
  out[count] = 0;
  return shoal_utf8_valid(out, count);
}

bool shoal_query_value(const char *query, const char *name, char *out, size_t size) {
  size_t length = strlen(name);
  for (const char *at = query; at != NULL; at = strchr(at, '&')) {
    if (*at == '&') at++;
    if (strncmp(at, name, length) != 0) continue;
    if (at[length] == '=') return decode_value(at + length + 1, out, size);
    if (at[length] == 0 || at[length] == '&') return decode_value("", out, size);
  }
  return false;
}
