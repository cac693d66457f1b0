/* Heads of requests, bodies in chunks, ranges and queries: what is understood, and what is refused. */
#include "wire/http_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "wire/http.h"

/* Reads a head from memory that ends where the head does. Returns the status; *text is to be freed. */
static int read_head(const char *request, shoal_http_head *head, char **text) {
  const char *why = NULL;
  size_t length = strlen(request);
  *text = malloc(length);
  assert_non_null(*text);
  memcpy(*text, request, length);
  int status = shoal_http_head_read(head, *text, length, &why);
  if (status != 0) assert_non_null(why);
  return status;
}

static void a_head_is_understood(void **state) {
  (void)state;
  shoal_http_head head;
  char *text;
  assert_int_equal(
      read_head("POST /a%20b/%c3%a4?x=%20&y HTTP/1.1\r\nHost:here:80\r\nORIGIN: \t http://o \t\r\n"
                "Authorization: Bearer t\r\nContent-type: a/b\r\nAccept-Encoding: gzip, br\r\n"
                "If-None-Match: \"e\"\r\nRange: bytes=1-\r\nIf-Range: \"f\"\r\nX-Other:\r\n"
                "Content-Length: 18446744073709551615\r\nExpect: 100-Continue\r\n\r\n",
                &head, &text),
      0);
  assert_string_equal(head.method, "POST");
  assert_string_equal(head.path, "/a b/\xc3\xa4");
  assert_string_equal(head.query, "x=%20&y");
  assert_string_equal(head.host, "here:80");
  assert_string_equal(head.origin, "http://o");
  assert_string_equal(head.authorization, "Bearer t");
  assert_string_equal(head.content_type, "a/b");
  assert_string_equal(head.accept_encoding, "gzip, br");
  assert_string_equal(head.if_none_match, "\"e\"");
  assert_string_equal(head.range, "bytes=1-");
  assert_string_equal(head.if_range, "\"f\"");
  assert_string_equal(head.key, "");
  assert_true(head.is_1_1 && head.keep && head.waits && !head.chunked && !head.websocket);
  assert_true(head.length == UINT64_MAX);
  free(text);
}

static void connections_are_kept_or_not(void **state) {
  (void)state;
  static const struct {
    bool keep, websocket;
    const char *request;
  } CASES[] = {
      {true, false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
      {false, false, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n"},
      {false, false, "GET / HTTP/1.1\r\nHost: x\r\nConnection: te , close\r\n\r\n"},
      {true, false, "GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n"},
      {false, false, "GET / HTTP/1.0\r\n\r\n"},
      {true, false, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"},
      {true, true,
       "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n"},
      {true, false, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n"},
      {true, false, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"},
      {true, false, "PUT / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    shoal_http_head head;
    char *text;
    assert_int_equal(read_head(CASES[i].request, &head, &text), 0);
    if (head.keep != CASES[i].keep || head.websocket != CASES[i].websocket) fail_msg("%s", CASES[i].request);
    free(text);
  }
}

static void what_is_no_head_is_refused(void **state) {
  (void)state;
  static const struct {
    int status;
    const char *request;
  } CASES[] = {
      {400, "GET /\r\n\r\n"},
      {400, "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET / HTTX/1.1\r\nHost: x\r\n\r\n"},
      {505, "GET / HTTP/2.0\r\nHost: x\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\nbad name: y\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost : x\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\001b\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
      {400, "GET /../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a/%2e%2e/b HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a/..%2fb HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%2fb HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%0d%0ab HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%7f HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%ff HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a% HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%4 HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET a HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET * HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET http://x HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    shoal_http_head head;
    char *text;
    int got = read_head(CASES[i].request, &head, &text);
    if (got != CASES[i].status) fail_msg("%d instead of %d for: %s", got, CASES[i].status, CASES[i].request);
    free(text);
  }
}

/* A zero is no end of anything. */
static void zeros_in_a_head_are_refused(void **state) {
  (void)state;
  const char request[] = "GET /abc HTTP/1.1\r\nHost: xyz\r\nOther: one\r\n\r\n";
  for (size_t at = 0; at < sizeof request - 1; at++) {
    char text[sizeof request];
    shoal_http_head head;
    const char *why;
    memcpy(text, request, sizeof request);
    text[at] = 0;
    if (shoal_http_head_read(&head, text, sizeof request - 1, &why) == 0) fail_msg("with a zero at %zu", at);
  }
}

/* ---- bodies in chunks ---- */

/* Takes a body in pieces of so many bytes. Returns the result at its end; what it was goes to `out`. */
static shoal_chunks_result take_chunks(const char *text, size_t piece, char out[200]) {
  shoal_http_chunks chunks = {0};
  shoal_chunks_result result = SHOAL_CHUNKS_MORE;
  size_t length = strlen(text), filled = 0;
  for (size_t at = 0; at < length && result == SHOAL_CHUNKS_MORE;) {
    size_t part = length - at < piece ? length - at : piece, used, count;
    result = shoal_http_chunks_take(&chunks, (const uint8_t *)text + at, part, &used, &count);
    assert_true(used > 0 && used <= part && count <= used && filled + count < 200);
    memcpy(out + filled, text + at + used - count, count);
    filled += count;
    at += used;
    if (result == SHOAL_CHUNKS_END) assert_int_equal(at, length);
  }
  out[filled] = 0;
  return result;
}

static void chunks_are_put_together_however_they_come(void **state) {
  (void)state;
  const char *text =
      "5\r\nhello\r\nA;name=value\r\n, wide wor\r\n2 \r\nld\r\n0\r\nTrailer: x\r\nAnother: y\r\n\r\n";
  for (size_t piece = 1; piece <= strlen(text); piece++) {
    char out[200];
    assert_int_equal(take_chunks(text, piece, out), SHOAL_CHUNKS_END);
    assert_string_equal(out, "hello, wide world");
  }
}

static void chunks_that_are_none_are_refused(void **state) {
  (void)state;
  static const char *const CASES[] = {
      "\r\n",
      "x\r\n",
      "-5\r\nhello",
      "5\nhello",
      "5\r\rhello",
      "5\r\nhello!",
      "5\r\nhello\n",
      "5\r\nhello\r5",
      "0\r\nA: b\n",
      "0\r\nA: b\rC",
      "0\r\n\rX",
      "0x5\r\nhello\r\n",
      "1000000000000000\r\n",
      "5,\r\nhello",
      ";\r\n",
      "0\r\n\n",
      "5;a\nb\r\nhello",
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    for (size_t piece = 1; piece < 20; piece++) {
      char out[200];
      if (take_chunks(CASES[i], piece, out) != SHOAL_CHUNKS_BAD) fail_msg("%s", CASES[i]);
    }
}

/* ---- ranges and queries ---- */

static void ranges_are_parts_of_what_is_there(void **state) {
  (void)state;
  static const struct {
    const char *range;
    shoal_range_result result;
    uint64_t first, end;
  } CASES[] = {
      {"", SHOAL_RANGE_ALL, 0, 100},
      {"bytes=0-", SHOAL_RANGE_PART, 0, 100},
      {"Bytes=5-5", SHOAL_RANGE_PART, 5, 6},
      {"bytes=99-1000", SHOAL_RANGE_PART, 99, 100},
      {"bytes=0-18446744073709551615", SHOAL_RANGE_PART, 0, 100},
      {"bytes=-1", SHOAL_RANGE_PART, 99, 100},
      {"bytes=-101", SHOAL_RANGE_PART, 0, 100},
      {"bytes=100-", SHOAL_RANGE_NONE, 0, 100},
      {"bytes=-0", SHOAL_RANGE_NONE, 0, 100},
      {"bytes=-", SHOAL_RANGE_ALL, 0, 100},
      {"bytes=6-5", SHOAL_RANGE_ALL, 0, 100},
      {"bytes=1-2,4-5", SHOAL_RANGE_ALL, 0, 100},
      {"bytes=1", SHOAL_RANGE_ALL, 0, 100},
      {"bytes=a-b", SHOAL_RANGE_ALL, 0, 100},
      {"bytes=99999999999999999999-", SHOAL_RANGE_ALL, 0, 100},
      {"lines=1-2", SHOAL_RANGE_ALL, 0, 100},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    uint64_t first, end;
    if (shoal_http_range(CASES[i].range, 100, &first, &end) != CASES[i].result || first != CASES[i].first ||
        end != CASES[i].end)
      fail_msg("%s", CASES[i].range);
  }
  uint64_t first, end;
  assert_int_equal(shoal_http_range("bytes=0-", 0, &first, &end), SHOAL_RANGE_NONE);
  assert_int_equal(shoal_http_range("bytes=-5", 0, &first, &end), SHOAL_RANGE_NONE);
}

static void values_are_found_in_queries(void **state) {
  (void)state;
  char value[16];
  const char *query =
      "state=running&before=3&name=a%20b+c&empty=&flag&bad=%zz&zero=%00&long=0123456789012345";
  assert_true(shoal_query_value(query, "state", value, sizeof value));
  assert_string_equal(value, "running");
  assert_true(shoal_query_value(query, "before", value, sizeof value));
  assert_string_equal(value, "3");
  assert_true(shoal_query_value(query, "name", value, sizeof value));
  assert_string_equal(value, "a b c");
  assert_true(shoal_query_value(query, "empty", value, sizeof value));
  assert_string_equal(value, "");
  assert_true(shoal_query_value(query, "flag", value, sizeof value));
  assert_string_equal(value, "");
  assert_false(shoal_query_value(query, "bad", value, sizeof value));
  assert_false(shoal_query_value(query, "zero", value, sizeof value));
  assert_false(shoal_query_value(query, "long", value, sizeof value));
  assert_false(shoal_query_value(query, "tate", value, sizeof value));
  assert_false(shoal_query_value(query, "stat", value, sizeof value));
  assert_false(shoal_query_value("", "a", value, sizeof value));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_head_is_understood),
      cmocka_unit_test(connections_are_kept_or_not),
      cmocka_unit_test(what_is_no_head_is_refused),
      cmocka_unit_test(zeros_in_a_head_are_refused),
      cmocka_unit_test(chunks_are_put_together_however_they_come),
      cmocka_unit_test(chunks_that_are_none_are_refused),
      cmocka_unit_test(ranges_are_parts_of_what_is_there),
      cmocka_unit_test(values_are_found_in_queries),
  };
  return RUN_TESTS(tests);
}
