/* HTTP on the port of a net, spoken by hand: what must be answered, and what becomes of those who are slow, large or
 * gone. */
#include "site.h"

/* ---- requests ---- */

static void a_request_is_seen_and_answered(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  int status =
      ask(&s, &c,
          "GET /api/v1/a%20b?x=1&y=%20z HTTP/1.1\r\nHost: here:80\r\nauthorization:  Bearer t \r\n"
          "Content-Type: a/b\r\nACCEPT-ENCODING: gzip\r\nIf-None-Match: \"e\"\r\nX-Other: 1\r\n\r\n");
  assert_int_equal(status, 200);
  assert_string_equal(s.seen, "0 /api/v1/a b ? x=1&y=%20z from 127.0.0.1 host here:80 auth Bearer t type a/b "
                              "accept gzip match \"e\" 0");
  assert_true(body_has(&c, "/api/v1/a b"));
  const char *head = c.in.bytes;
  assert_string_equal(find_field(head, "Content-Type"), "text/plain");
  assert_string_equal(find_field(head, "X-Content-Type-Options"), "nosniff");
  assert_string_equal(find_field(head, "Referrer-Policy"), "no-referrer");
  assert_non_null(strstr(find_field(head, "Content-Security-Policy"), "frame-ancestors 'none'"));
  assert_string_equal(find_field(head, "Cache-Control"), "no-cache");
  assert_non_null(strstr(find_field(head, "Date"), " GMT"));
  assert_null(find_field(head, "Server"));
  assert_null(find_field(head, "Connection"));
  leave(&c);
  check_status(&s, "GET http://here/x?y HTTP/1.1\r\nHost: here\r\n\r\n", 200);
  assert_non_null(strstr(s.seen, "0 /x ? y"));
  check_status(&s, "PATCH /x HTTP/1.1\r\nHost: here\r\n\r\n", 200);
  assert_int_equal(s.seen[0], '0' + SHOAL_METHOD_OTHER);
  check_status(&s, "DELETE /none HTTP/1.1\r\nHost: here\r\n\r\n", 204);
  assert_int_equal(s.seen[0], '0' + SHOAL_DELETE);
  assert_int_equal(ask(&s, &c, "GET /busy HTTP/1.0\r\n\r\n"), 503);
  assert_string_equal(find_field(c.in.bytes, "Retry-After"), "7");
  assert_string_equal(find_field(c.in.bytes, "Connection"), "close");
  UNTIL(&s, &c, c.ended);
  leave(&c);
  assert_int_equal(s.left + s.opened + s.closed, 0); /* they are no peers */
  stop(&s);
}

static void many_requests_on_one_connection(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  for (int i = 1; i <= 200; i++) {
    char request[100];
    snprintf(request, sizeof request, "GET /%d HTTP/1.%d\r\nHost: x\r\n%s\r\n", i, i % 2,
             i % 2 ? "" : "Connection: keep-alive\r\n");
    say(&s, &c, request);
    UNTIL(&s, &c, answers(&c) == i);
    snprintf(request, sizeof request, "0 /%d ?", i);
    assert_true(body_has(&c, request));
  }
  say(&s, &c,
      "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, c.ended);
  assert_int_equal(answers(&c), 201);
  assert_int_equal(s.asked, 201);
  leave(&c);
  stop(&s);
}

static void requests_sent_at_once_are_answered_in_order(void **state) {
  (void)state;
  enum { COUNT = 6000 };
  site s;
  client c;
  shoal_text all;
  start(&s);
  join(&c, &s);
  shoal_text_init(&all);
  for (int i = 0; i < COUNT; i++) {
    if (i % 3 == 0)
      shoal_text_addf(&all, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n%08d\r\n", i);
    else if (i % 3 == 1)
      shoal_text_addf(&all,
                      "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3;x=y\r\n%.3s\r\n5\r\n%05d\r\n0\r\nTrailer: 1\r\n\r\n",
                      "000", i);
    else
      shoal_text_addf(&all, "GET /%08d HTTP/1.1\r\nHost: x\r\n\r\n", i);
  }
  assert_true(all.length > 200000); /* more than is kept before no more is read */
  say_bytes(&s, &c, all.bytes, all.length);
  UNTIL(&s, &c, s.asked == COUNT);
  UNTIL(&s, &c, answers(&c) == COUNT);
  const char *at = c.in.bytes;
  for (int i = 0; i < COUNT; i++) {
    char number[16];
    snprintf(number, sizeof number, "%08d", i);
    at = strstr(at, number);
    if (at == NULL) fail_msg("answer %d is missing or out of order", i);
  }
  assert_int_equal(s.asked, COUNT);
  shoal_text_release(&all);
  leave(&c);
  stop(&s);
}

static void a_request_byte_by_byte_is_understood(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  const char *request =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n\r\nPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
      "\r\nabc";
  for (size_t i = 0; i < strlen(request); i++) {
    say_bytes(&s, &c, request + i, 1);
    pump(&s, &c);
  }
  UNTIL(&s, &c, answers(&c) == 2);
  assert_true(body_has(&c, "abc"));
  assert_non_null(strstr(c.in.bytes, "\r\n\r\nhello"));
  leave(&c);
  stop(&s);
}

static void head_sends_no_body(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  say(&s, &c, "HEAD /big HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, c.in.length > 0 && strstr(c.in.bytes, "\r\n\r\n") != NULL);
  assert_int_equal(strtoul(find_field(c.in.bytes, "Content-Length"), NULL, 10), BIG_BYTES);
  assert_int_equal(s.seen[0], '0' + SHOAL_GET);
  shoal_text_clear(&c.in);
  say(&s, &c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  assert_int_equal(status_of(c.in.bytes), 200);
  leave(&c);
  stop(&s);
}

static void what_is_no_http_is_refused(void **state) {
  (void)state;
  site s;
  start(&s);
  check_status(&s, "GET / HTTP/1.1\r\n\r\n", 400);
  check_status(&s, "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505);
  check_status(&s, "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400);
  check_status(&s, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501);
  assert_int_equal(s.begun, 0);
  client c;
  assert_int_equal(ask(&s, &c, "GET /.. HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  assert_true(body_has(&c, "{\"error\":{\"code\":\"bad_request\",\"text\":\""));
  UNTIL(&s, &c, c.ended);
  leave(&c);
  check_status(&s, "GET //a///b/./c/. HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  assert_non_null(strstr(s.seen, "0 /a/b/c/ ?"));
  stop(&s);
}

static void a_head_that_is_too_long_is_refused(void **state) {
  (void)state;
  site s;
  client c;
  shoal_text text;
  start(&s);
  shoal_text_init(&text);
  shoal_text_addf(&text, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: ");
  while (text.length < SHOAL_HTTP_HEAD_MAX) shoal_text_addf(&text, "0123456789");
  shoal_text_addf(&text, "\r\n\r\n");
  assert_int_equal(ask(&s, &c, text.bytes), 431);
  leave(&c);
  shoal_text_clear(&text);
  shoal_text_addf(&text, "GET / HTTP/1.1\r\nHost: x\r\n");
  for (int i = 0; i < SHOAL_HTTP_FIELDS_MAX; i++) shoal_text_addf(&text, "X-%d: y\r\n", i);
  shoal_text_addf(&text, "\r\n");
  assert_int_equal(ask(&s, &c, text.bytes), 400);
  leave(&c);
  shoal_text_release(&text);
  stop(&s);
}

/* ---- bodies ---- */

/* Sends a body that comes back. */
static void check_echo(site *s, size_t length, bool chunked) {
  client c;
  shoal_text text;
  shoal_text_init(&text);
  join(&c, s);
  shoal_text_addf(&text, "POST /echo HTTP/1.1\r\nHost: x\r\n");
  if (!chunked) shoal_text_addf(&text, "Content-Length: %zu\r\n\r\n", length);
  if (chunked) shoal_text_addf(&text, "Transfer-Encoding: chunked\r\n\r\n");
  for (size_t i = 0, part; i < length; i += part) {
    part = length - i < 70001 ? length - i : 70001;
    if (chunked) shoal_text_addf(&text, "%zX\r\n", part);
    for (size_t k = 0; k < part; k++) shoal_text_add(&text, &(uint8_t){pattern(i + k)}, 1);
    if (chunked) shoal_text_addf(&text, "\r\n");
  }
  if (chunked) shoal_text_addf(&text, "0\r\n\r\n");
  say_bytes(s, &c, text.bytes, text.length);
  UNTIL(s, &c, answers(&c) == 1 || c.ended);
  const char *body = NULL;
  size_t got = 0;
  assert_int_equal(count_answers(&c, NULL, &body, &got), 1);
  assert_int_equal(status_of(c.in.bytes), 200);
  assert_int_equal(got, length);
  for (size_t i = 0; i < length; i++)
    if ((uint8_t)body[i] != pattern(i)) fail_msg("byte %zu of %zu is wrong", i, length);
  shoal_text_release(&text);
  leave(&c);
}

static void bodies_come_whole(void **state) {
  (void)state;
  site s;
  start(&s);
  static const size_t LENGTHS[] = {0, 1, 16383, 16384, 16385, 100000, BODY_MAX};
  for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
    check_echo(&s, LENGTHS[i], false);
    check_echo(&s, LENGTHS[i], true);
  }
  client c;
  join(&c, &s);
  say(&s, &c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  assert_int_equal(status_of(c.in.bytes), 100);
  say(&s, &c, "hi");
  UNTIL(&s, &c, answers(&c) == 2);
  assert_true(body_has(&c, "hi"));
  leave(&c);
  assert_int_equal(s.left, 0);
  stop(&s);
}

static void bodies_that_are_too_large_are_refused(void **state) {
  (void)state;
  site s;
  start(&s);
  check_status(&s, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n", 413);
  check_status(&s, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n",
               413);
  check_status(
      &s, "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n", 413);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n", 413);
  assert_int_equal(s.asked, 0);
  assert_int_equal(s.left, 4); /* who saw them begin hears that they are over */
  check_status(
      &s, "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhello worl\r\n0\r\n\r\n",
      200);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", 400);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", 400);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000001\r\n",
               400);
  assert_int_equal(s.left, 7);
  /* Who is answered before the body has come is not listened to any longer. */
  client c;
  assert_int_equal(ask(&s, &c, "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc"), 403);
  UNTIL(&s, &c, c.ended);
  assert_string_equal(find_field(c.in.bytes, "Connection"), "close");
  leave(&c);
  assert_int_equal(s.left, 7);
  assert_int_equal(s.asked, 1);
  stop(&s);
}

static void uploads_go_to_a_file(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, (shoal_net_config){.connections_max = 100, .hello_s = 10, .stall_s = 0.4});
  check_status(&s, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 201);
  assert_int_equal(files_here(), 0); /* not moved away: removed */
  s.keep_upload = true;
  check_status(&s,
               "PUT /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
               201);
  assert_int_equal(files_here(), 1);
  assert_int_equal(system("test \"$(cat upload)\" = hello"), 0);
  /* Half of one, by one who leaves, and by one who stays. */
  join(&c, &s);
  say(&s, &c, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhello");
  UNTIL(&s, &c, s.begun == 3 && files_here() == 2);
  leave(&c);
  UNTIL(&s, NULL, s.left == 1);
  assert_int_equal(files_here(), 1);
  check_status(&s, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhello", 408);
  assert_int_equal(files_here(), 1);
  check_status(&s, "PUT /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhello", 507);
  limit_files(3);
  check_status(&s, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 507);
  limit_files(0);
  assert_int_equal(files_here(), 1);
  assert_int_equal(s.left, 4);
  stop(&s);
}

/* ---- files ---- */

/* Asks for a part of a file of so many bytes. */
static void check_range(site *s, const char *fields, int status, size_t first, size_t end) {
  client c;
  char request[200];
  snprintf(request, sizeof request, "GET /file?data HTTP/1.1\r\nHost: x\r\n%s\r\n", fields);
  int got = ask(s, &c, request);
  if (got != status) fail_msg("%d instead of %d for %s", got, status, fields);
  const char *body = NULL;
  size_t length = 0;
  assert_int_equal(count_answers(&c, NULL, &body, &length), 1);
  if (status == 200 || status == 206) {
    assert_int_equal(length, end - first);
    for (size_t i = 0; i < length; i++)
      if ((uint8_t)body[i] != pattern(first + i)) fail_msg("%s: byte %zu is wrong", fields, i);
  }
  if (status == 206) {
    char wanted[100];
    snprintf(wanted, sizeof wanted, "bytes %zu-%zu/300000", first, end - 1);
    assert_string_equal(find_field(c.in.bytes, "Content-Range"), wanted);
  }
  if (status == 416) assert_string_equal(find_field(c.in.bytes, "Content-Range"), "bytes */300000");
  leave(&c);
}

static void files_are_sent_whole_and_in_part(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  make_file("data", 300000);
  check_range(&s, "", 200, 0, 300000);
  check_range(&s, "Range: bytes=0-0\r\n", 206, 0, 1);
  check_range(&s, "Range: bytes=70000-\r\n", 206, 70000, 300000);
  check_range(&s, "Range: bytes=299999-400000\r\n", 206, 299999, 300000);
  check_range(&s, "Range: bytes=-5\r\n", 206, 299995, 300000);
  check_range(&s, "Range: bytes=-500000\r\n", 206, 0, 300000);
  check_range(&s, "Range: bytes=300000-\r\n", 416, 0, 0);
  check_range(&s, "Range: bytes=-0\r\n", 416, 0, 0);
  check_range(&s, "Range: bytes=5-4\r\n", 200, 0, 300000);
  check_range(&s, "Range: bytes=1-2,5-6\r\n", 200, 0, 300000);
  check_range(&s, "Range: lines=1-2\r\n", 200, 0, 300000);
  check_range(&s, "Range: bytes=7-8\r\nIf-Range: \"v1\"\r\n", 206, 7, 9);
  check_range(&s, "Range: bytes=7-8\r\nIf-Range: \"v2\"\r\n", 200, 0, 300000);
  assert_int_equal(ask(&s, &c, "GET /file?data HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  assert_string_equal(find_field(c.in.bytes, "Accept-Ranges"), "bytes");
  assert_string_equal(find_field(c.in.bytes, "ETag"), "\"v1\"");
  assert_non_null(strstr(find_field(c.in.bytes, "Cache-Control"), "immutable"));
  assert_string_equal(find_field(c.in.bytes, "Content-Disposition"),
                      "attachment; filename=\"a _b___c__.bin\"; "
                      "filename*=UTF-8''a%20%22b%22%0D%0Ac%C3%A4.bin");
  leave(&c);
  make_file("empty", 0);
  check_status(&s, "GET /file?empty HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  check_status(&s, "GET /file?empty HTTP/1.1\r\nHost: x\r\nRange: bytes=0-\r\n\r\n", 416);
  check_status(&s, "GET /file?missing HTTP/1.1\r\nHost: x\r\n\r\n", 404);
  check_status(&s, "GET /file?. HTTP/1.1\r\nHost: x\r\n\r\n", 404);
  /* After an error the connection goes on. */
  join(&c, &s);
  say(&s, &c, "GET /file?missing HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 2);
  leave(&c);
  stop(&s);
}

static void a_file_that_shrinks_ends_the_connection(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  make_file("data", 40 << 20);
  join(&c, &s);
  say(&s, &c, "GET /file?data HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, NULL, s.asked == 1);
  for (int i = 0; i < 20; i++) pump(&s, NULL); /* the socket is full */
  assert_int_equal(truncate("data", 10), 0);
  UNTIL(&s, &c, c.ended);
  assert_true(c.in.length < 40 << 20);
  check_status(&s, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  leave(&c);
  stop(&s);
}

static void large_answers_come_whole(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  assert_int_equal(ask(&s, &c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  const char *body = NULL;
  size_t length = 0;
  assert_int_equal(count_answers(&c, NULL, &body, &length), 1);
  assert_int_equal(length, BIG_BYTES);
  for (size_t i = 0; i < length; i++)
    if ((uint8_t)body[i] != pattern(i)) fail_msg("byte %zu is wrong", i);
  leave(&c);
  stop(&s);
}

/* ---- those who are slow or silent ---- */

static const shoal_net_config HASTY = {.connections_max = 100, .hello_s = 0.3, .stall_s = 0.5, .idle_s = 0.5};

static void who_says_nothing_is_closed(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  UNTIL(&s, &c, c.ended);
  assert_int_equal(c.in.length, 0);
  leave(&c);
  /* Between two requests, there is more time. */
  join(&c, &s);
  say(&s, &c, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  double begin = shoal_clock_seconds();
  UNTIL(&s, &c, c.ended);
  assert_true(shoal_clock_seconds() - begin > 0.7);
  leave(&c);
  stop(&s);
}

static void half_a_head_is_answered_with_408(void **state) {
  (void)state;
  site s;
  start_with(&s, HASTY);
  check_status(&s, "GET / HTTP/1.1\r\nHo", 408);
  check_status(&s, "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", 200);
  client c;
  join(&c, &s);
  say(&s, &c, "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT");
  UNTIL(&s, &c, c.ended);
  assert_int_equal(answers(&c), 2);
  assert_true(body_has(&c, "did not come in time"));
  leave(&c);
  assert_int_equal(s.left, 0);
  stop(&s);
}

static void half_a_body_is_answered_with_408(void **state) {
  (void)state;
  site s;
  start_with(&s, HASTY);
  check_status(&s, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello", 408);
  check_status(&s, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", 408);
  assert_int_equal(s.left, 2);
  assert_int_equal(s.asked, 0);
  stop(&s);
}

/* Sends a body bit by bit, until it is out or was answered. */
static void trickle(site *s, client *c, size_t length, size_t part, double pause_s) {
  char request[100], bytes[4096] = {0};
  snprintf(request, sizeof request, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", length);
  join(c, s);
  say(s, c, request);
  for (size_t sent = 0; sent < length && answers(c) == 0; sent += part) {
    say_bytes(s, c, bytes, part);
    double until = shoal_clock_seconds() + pause_s;
    while (shoal_clock_seconds() < until) pump(s, c);
  }
  UNTIL(s, c, answers(c) == 1);
}

static void a_body_that_trickles_is_refused_and_a_slow_one_is_not(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  trickle(&s, &c, 2000, 4, 0.02);
  assert_int_equal(status_of(c.in.bytes), 408);
  leave(&c);
  stop(&s);
  /* Where the machine itself stands still for longer than may be, it is tried with more patience. */
  for (double slower = 1;; slower *= 4) {
    start_with(&s, (shoal_net_config){.connections_max = 100,
                                      .hello_s = 0.3 * slower,
                                      .stall_s = 0.5 * slower,
                                      .idle_s = 0.5 * slower});
    double begin = shoal_clock_seconds();
    trickle(&s, &c, 64000, 1000, 0.03 * slower);
    bool taken = status_of(c.in.bytes) == 200;
    assert_true(taken || slower < 16);
    if (taken) assert_true(shoal_clock_seconds() > begin + slower); /* much longer than hello_s and stall_s */
    leave(&c);
    stop(&s);
    if (taken) break;
  }
}

static void who_takes_nothing_of_an_answer_is_closed(void **state) {
  (void)state;
  site s;
  client c;
  /* A machine that is busy may need longer to see it. */
  for (double waits_s = 1.5;; waits_s *= 4) {
    start_with(&s, HASTY);
    join(&c, &s);
    for (int i = 0; i < 4; i++) say(&s, &c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    double begin = shoal_clock_seconds();
    while (shoal_clock_seconds() < begin + waits_s) pump(&s, NULL);
    UNTIL(&s, &c, c.ended || c.in.length >= 4u * BIG_BYTES);
    bool closed = c.in.length < 4u * BIG_BYTES;
    assert_true(closed ? s.asked < 4 : waits_s < 20);
    leave(&c);
    stop(&s);
    if (closed) break;
  }
}

/* ---- answers that come later, and streams ---- */

static void an_answer_may_come_later(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  say(&s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.asked == 1);
  uint64_t id = s.id;
  double begin = shoal_clock_seconds();
  while (shoal_clock_seconds() < begin + 1.2) pump(&s, &c); /* longer than anybody may be silent */
  assert_int_equal(answers(&c), 0);
  assert_int_equal(s.asked, 1);
  give(&s, id, 200, "late", 4);
  give(&s, id, 200, "again", 5); /* once is enough */
  UNTIL(&s, &c, answers(&c) == 2);
  assert_true(body_has(&c, "/second"));
  assert_non_null(strstr(c.in.bytes, "\r\n\r\nlate"));
  assert_null(strstr(c.in.bytes, "again"));
  assert_true(s.id != id);
  leave(&c);
  assert_int_equal(s.left, 0);
  stop(&s);
}

/* What is kept back, and what the other end has closed behind it, must not keep the loop busy. */
static void a_request_that_waits_costs_nothing(void **state) {
  (void)state;
  site s;
  client c;
  static char more[600000];
  start(&s);
  join(&c, &s);
  say(&s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.asked == 1);
  (void)!send(c.fd, more, sizeof more, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(c.fd, SHUT_WR);
  double begin = shoal_clock_seconds();
  clock_t before = clock();
  while (shoal_clock_seconds() < begin + 1) shoal_net_run(s.net, 0.1);
  assert_true(clock() - before < CLOCKS_PER_SEC / 4);
  give(&s, s.id, 200, "late", 4);
  UNTIL(&s, &c, c.ended);
  assert_non_null(strstr(c.in.bytes, "\r\n\r\nlate"));
  leave(&c);
  stop(&s);
}

static void who_leaves_before_the_answer_is_told_once(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  say(&s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.asked == 1);
  uint64_t id = s.id;
  leave(&c);
  UNTIL(&s, NULL, s.left == 1);
  assert_int_equal(s.left_id, id);
  give(&s, id, 200, "nobody", 6);
  shoal_http_push(s.net, id, "x", 1);
  shoal_http_end(s.net, id);
  for (uint64_t other = 0; other < 500; other++) give(&s, other, 200, "nobody", 6);
  check_status(&s, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  assert_int_equal(s.left, 1);
  /* Who leaves in the middle of an answer was answered. */
  join(&c, &s);
  say(&s, &c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, NULL, s.asked == 3);
  leave(&c);
  for (int i = 0; i < 20; i++) pump(&s, NULL);
  assert_int_equal(s.left, 1);
  stop(&s);
}

static void streams_bring_what_is_pushed(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  say(&s, &c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, c.in.length > 0 && strstr(c.in.bytes, "\r\n\r\n") != NULL);
  assert_string_equal(find_field(c.in.bytes, "Content-Type"), "text/event-stream");
  assert_string_equal(find_field(c.in.bytes, "Transfer-Encoding"), "chunked");
  assert_null(find_field(c.in.bytes, "Content-Length"));
  uint64_t id = s.streams[0];
  shoal_http_push(s.net, id, "data: 1\n\n", 9);
  UNTIL(&s, &c, strstr(c.in.bytes, "\r\n\r\n9\r\ndata: 1\n\n\r\n") != NULL);
  double begin = shoal_clock_seconds();
  while (shoal_clock_seconds() < begin + 2) pump(&s, &c); /* it may be silent for long */
  assert_false(c.ended);
  shoal_http_push(s.net, id, "data: 2\n\n", 9);
  shoal_http_push(s.net, id, "", 0); /* which would be the end */
  UNTIL(&s, &c, strstr(c.in.bytes, "9\r\ndata: 2\n\n\r\n") != NULL);
  shoal_http_end(s.net, id);
  shoal_http_push(s.net, id, "too late", 8);
  UNTIL(&s, &c, strstr(c.in.bytes, "\r\n0\r\n\r\n") != NULL);
  assert_int_equal(s.left, 0);
  /* The connection goes on. */
  shoal_text_clear(&c.in);
  say(&s, &c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  leave(&c);
  /* To HTTP/1.0 it is bytes up to the end. */
  join(&c, &s);
  say(&s, &c, "GET /stream HTTP/1.0\r\n\r\n");
  UNTIL(&s, &c, s.streams_count == 2);
  shoal_http_push(s.net, s.streams[1], "data: 3\n\n", 9);
  shoal_http_end(s.net, s.streams[1]);
  UNTIL(&s, &c, c.ended);
  assert_non_null(strstr(c.in.bytes, "\r\n\r\ndata: 3\n\n"));
  leave(&c);
  stop(&s);
}

static void a_stream_whose_reader_leaves_is_told_once(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  say(&s, &c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.streams_count == 1);
  leave(&c);
  UNTIL(&s, NULL, s.left == 1);
  assert_int_equal(s.left_id, s.streams[0]);
  shoal_http_push(s.net, s.streams[0], "x", 1);
  shoal_http_end(s.net, s.streams[0]);
  /* Of one of which only the head was wanted, the same is said. */
  assert_int_equal(ask(&s, &c, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  UNTIL(&s, &c, s.left == 2);
  say(&s, &c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 2);
  leave(&c);
  for (int i = 0; i < 10; i++) pump(&s, NULL);
  assert_int_equal(s.left, 2);
  stop(&s);
}

static void a_stream_that_is_not_taken_is_closed(void **state) {
  (void)state;
  site s;
  client c, other;
  static char event[10000];
  start(&s);
  join(&c, &s);
  join(&other, &s);
  say(&s, &c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.streams_count == 1);
  say(&s, &other, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &other, s.streams_count == 2);
  memset(event, 'e', sizeof event);
  int pushed = 0;
  while (s.left == 0 && pushed < 10000) {
    for (int i = 0; i < 2; i++) shoal_http_push(s.net, s.streams[i], event, sizeof event);
    pushed++;
    pump(&s, &other);
  }
  assert_int_equal(s.left, 1);
  assert_int_equal(s.left_id, s.streams[0]);
  assert_true(pushed > 100); /* a million bytes may wait */
  UNTIL(&s, &other, other.in.length > (size_t)pushed * sizeof event);
  UNTIL(&s, &c, c.ended);
  assert_int_equal(s.left, 1);
  leave(&c);
  leave(&other);
  stop(&s);
}

/* ---- many ---- */

static void a_thousand_connections(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 2 * COUNT + 100) skip();
  site s;
  static client c[COUNT];
  start_with(&s, (shoal_net_config){.connections_max = COUNT, .hello_s = 60, .stall_s = 60});
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < COUNT; i++) {
      if (round == 0) join(&c[i], &s);
      say(&s, &c[i], "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
      if (i % 50 == 0) pump(&s, &c[i]);
    }
  UNTIL(&s, NULL, s.asked == 3 * COUNT);
  for (int i = 0; i < COUNT; i++) UNTIL(&s, &c[i], answers(&c[i]) == 3);
  /* They are all that are allowed. */
  client more;
  join(&more, &s);
  UNTIL(&s, &more, more.ended);
  leave(&more);
  for (int i = 0; i < COUNT; i++) leave(&c[i]);
  double limit_s = shoal_clock_seconds() + LIMIT_S;
  for (bool through = false; !through; leave(&more)) { /* as soon as places are free */
    assert_true(shoal_clock_seconds() < limit_s);
    for (int i = 0; i < 20; i++) pump(&s, NULL);
    through = ask(&s, &more, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n") == 200;
  }
  stop(&s);
}

/* Requests with bytes changed, cut and doubled: whatever is said to them, the next one is answered. */
static void garbage_harms_nobody(void **state) {
  (void)state;
  static const char *const SEEDS[] = {
      "GET /a/b%20c?d=e HTTP/1.1\r\nHost: x\r\nRange: bytes=1-2\r\nConnection: keep-alive\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: "
      "b\r\n\r\n",
      "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: "
      "shoal\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: "
      "13\r\n\r\n\x82\x85\1\2\3\4hello\x89\x80",
  };
  site s;
  start_with(&s, (shoal_net_config){.connections_max = 100, .hello_s = 5, .stall_s = 5});
  uint32_t random = 1;
  for (int i = 0; i < 3000; i++) {
    char text[800];
    const char *seed = SEEDS[i % 4];
    size_t length = strlen(seed);
    memcpy(text, seed, length);
    for (int changes = 0; changes < 1 + i % 5; changes++) {
      random = random * 1664525 + 1013904223;
      size_t at = (random >> 8) % length;
      if (random & 1)
        text[at] = (char)(random >> 24);
      else if (random & 2)
        length = at + 1;
      else
        memmove(text + at / 2, text + at, length - at);
    }
    client c;
    join(&c, &s);
    say_bytes(&s, &c, text, length);
    pump(&s, &c);
    leave(&c);
    if (i % 50 == 0) check_status(&s, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  }
  stop(&s);
}

int main(void) {
  alarm(600); /* whatever happens, it ends */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_request_is_seen_and_answered),
      cmocka_unit_test(many_requests_on_one_connection),
      cmocka_unit_test(requests_sent_at_once_are_answered_in_order),
      cmocka_unit_test(a_request_byte_by_byte_is_understood),
      cmocka_unit_test(head_sends_no_body),
      cmocka_unit_test(what_is_no_http_is_refused),
      cmocka_unit_test(a_head_that_is_too_long_is_refused),
      cmocka_unit_test(bodies_come_whole),
      cmocka_unit_test(bodies_that_are_too_large_are_refused),
      IN_FOLDER(uploads_go_to_a_file),
      IN_FOLDER(files_are_sent_whole_and_in_part),
      IN_FOLDER(a_file_that_shrinks_ends_the_connection),
      cmocka_unit_test(large_answers_come_whole),
      cmocka_unit_test(who_says_nothing_is_closed),
      cmocka_unit_test(half_a_head_is_answered_with_408),
      cmocka_unit_test(half_a_body_is_answered_with_408),
      cmocka_unit_test(a_body_that_trickles_is_refused_and_a_slow_one_is_not),
      cmocka_unit_test(who_takes_nothing_of_an_answer_is_closed),
      cmocka_unit_test(an_answer_may_come_later),
      cmocka_unit_test(a_request_that_waits_costs_nothing),
      cmocka_unit_test(who_leaves_before_the_answer_is_told_once),
      cmocka_unit_test(streams_bring_what_is_pushed),
      cmocka_unit_test(a_stream_whose_reader_leaves_is_told_once),
      cmocka_unit_test(a_stream_that_is_not_taken_is_closed),
      cmocka_unit_test(a_thousand_connections),
      cmocka_unit_test(garbage_harms_nobody),
  };
  return RUN_TESTS(tests);
}
