/* http_write.c: heads of answers, and errors as JSON. */
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "wire/net_internal.h"

typedef struct status_name {
  int status;
  const char *text, *code; /* the code of an error's JSON, or NULL */
} status_name;

static const status_name NAMES[] = {
    {101, "Switching Protocols", NULL},
    {200, "OK", NULL},
    {201, "Created", NULL},
    {202, "Accepted", NULL},
    {204, "No Content", NULL},
    {206, "Partial Content", NULL},
    {301, "Moved Permanently", NULL},
    {302, "Found", NULL},
    {303, "See Other", NULL},
    {304, "Not Modified", NULL},
    {400, "Bad Request", "bad_request"},
    {401, "Unauthorized", "unauthorized"},
    {403, "Forbidden", "forbidden"},
    {404, "Not Found", "not_found"},
    {405, "Method Not Allowed", "method_not_allowed"},
    {408, "Request Timeout", "timeout"},
    {409, "Conflict", "conflict"},
    {410, "Gone", "not_found"},
    {413, "Content Too Large", "too_large"},
    {415, "Unsupported Media Type", "bad_request"},
    {416, "Range Not Satisfiable", "bad_request"},
    {422, "Unprocessable Content", "unprocessable"},
    {426, "Upgrade Required", "bad_request"},
    {429, "Too Many Requests", "too_many"},
    {431, "Request Header Fields Too Large", "too_large"},
    {500, "Internal Server Error", "internal"},
    {501, "Not Implemented", "bad_request"},
    {503, "Service Unavailable", "unavailable"},
    {505, "HTTP Version Not Supported", "bad_request"},
    {507, "Insufficient Storage", "internal"},
};

static const status_name *find_status(int status) {
  static const status_name other = {0, "Other", "internal"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (NAMES[i].status == status) return &NAMES[i];
  return &other;
}

void net_http_write_error(shoal_text *out, int status, const char *why) {
  shoal_json json;
  const char *code = find_status(status)->code;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "error", '{');
  shoal_json_text(&json, "code", code != NULL ? code : "internal");
  shoal_json_text(&json, "text", why);
  shoal_json_close(&json, '}');
  shoal_json_close(&json, '}');
  shoal_text_add(out, "\n", 1);
}

/* A field, without what would begin another one. */
static void add_field(shoal_text *out, const char *name, const char *value) {
  shoal_text_addf(out, "%s: ", name);
  for (; *value != 0; value++)
    if ((unsigned char)*value >= 0x20 && *value != 0x7f) shoal_text_add(out, value, 1);
  shoal_text_add(out, "\r\n", 2);
}

/* The name of a file to be saved: once for those who read ASCII, once as it is. */
static void add_download(shoal_text *out, const char *name) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  shoal_text_addf(out, "Content-Disposition: attachment; filename=\"");
  for (const char *at = name; *at != 0; at++)
    shoal_text_add(out, strchr(plain, *at) != NULL || *at == ' ' ? at : "_", 1);
  shoal_text_addf(out, "\"; filename*=UTF-8''");
  for (const char *at = name; *at != 0; at++) {
    if (strchr(plain, *at) != NULL)
      shoal_text_add(out, at, 1);
    else
      shoal_text_addf(out, "%%%02X", (unsigned char)*at);
  }
  shoal_text_add(out, "\r\n", 2);
}

static void add_date(shoal_text *out) {
  char date[64];
  time_t now = time(NULL);
  struct tm parts;
  static const char *const DAYS[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static const char *const MONTHS[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (gmtime_r(&now, &parts) == NULL) return;
  snprintf(date, sizeof date, "%s, %02d %s %d %02d:%02d:%02d GMT", DAYS[parts.tm_wday], parts.tm_mday,
           MONTHS[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  add_field(out, "Date", date);
}

/* How many bytes come, and which. */
static void add_length(shoal_text *out, const net_http_reply *reply) {
  unsigned long long first = reply->first, end = reply->end, size = reply->size;
  if (reply->is_file) add_field(out, "Accept-Ranges", "bytes");
  if (reply->status == 206)
    shoal_text_addf(out, "Content-Range: bytes %llu-%llu/%llu\r\n", first, end - 1, size);
  if (reply->status == 416) shoal_text_addf(out, "Content-Range: bytes */%llu\r\n", size);
  if (reply->chunked) add_field(out, "Transfer-Encoding", "chunked");
  if (reply->has_length) shoal_text_addf(out, "Content-Length: %llu\r\n", end - first);
}

/* What browsers are told to do, or rather not to do, with everything. */
static void add_safety(shoal_text *out) {
  add_field(out, "X-Content-Type-Options", "nosniff");
  add_field(out, "Referrer-Policy", "no-referrer");
  add_field(out, "Content-Security-Policy",
            "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
            "frame-ancestors 'none'");
}

void net_http_write_head(shoal_text *out, const net_http_reply *reply) {
  const shoal_answer *answer = reply->answer;
  shoal_text_addf(out, "HTTP/1.1 %d %s\r\n", reply->status, find_status(reply->status)->text);
  add_date(out);
  if (answer->type != NULL) add_field(out, "Content-Type", answer->type);
  add_length(out, reply);
  if (answer->download != NULL) add_download(out, answer->download);
  if (answer->encoding != NULL) {
    add_field(out, "Content-Encoding", answer->encoding);
    add_field(out, "Vary", "Accept-Encoding");
  }
  if (answer->etag != NULL) add_field(out, "ETag", answer->etag);
  add_field(out, "Cache-Control", answer->immutable ? "private, max-age=31536000, immutable" : "no-cache");
  if (answer->retry_after_s > 0) shoal_text_addf(out, "Retry-After: %u\r\n", answer->retry_after_s);
  if (answer->allow != NULL) add_field(out, "Allow", answer->allow);
  if (reply->status == 401) add_field(out, "WWW-Authenticate", "Bearer");
  if (reply->status == 426) add_field(out, "Sec-WebSocket-Version", "13");
  add_safety(out);
  if (!reply->keep)
    add_field(out, "Connection", "close");
  else if (!reply->is_1_1)
    add_field(out, "Connection", "keep-alive");
  shoal_text_add(out, "\r\n", 2);
}
