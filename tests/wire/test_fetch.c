/* A client against a server that answers well, badly, slowly or not at all. */
#include "wire/fetch.h"

#include <signal.h>

#include "../nn/in_folder.h"
#include "base/clock.h"
#include "fake_server.h"

#define OK_TEXT(body, length) "HTTP/1.1 200 OK\r\nContent-Length: " length "\r\n\r\n" body
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static shoal_fetch *client_of(const fake_server *s, const char *token, double silence_s,
                              const volatile sig_atomic_t *stop) {
  char text[128];
  shoal_link link;
  shoal_fetch *fetch;
  snprintf(text, sizeof text, "http://127.0.0.1:%u/%s%s", s->port, token ? "#t=" : "", token ? token : "");
  assert_int_equal(shoal_link_parse(&link, text, NULL), SHOAL_OK);
  shoal_fetch_config config = {.link = &link, .connect_s = 5, .silence_s = silence_s, .stop = stop};
  assert_int_equal(shoal_fetch_create(&fetch, &config, NULL), SHOAL_OK);
  return fetch;
}

static void answers_of_all_shapes_are_read_on_one_connection(void **state) {
  (void)state;
  static const struct {
    fake_answer answer;
    const char *body;
  } cases[] = {
      {{.text = OK_TEXT("hello", "5")}, "hello"},
      {{.text = OK_TEXT("", "0")}, ""},
      {{.text = "HTTP/1.1 204 No Content\r\n\r\n"}, ""},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                "chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"},
       "abc0123456789"},
      {{.text = "HTTP/1.1 201\r\ntransfer-encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\nTrailer: 1\r\n\r\n"}, "x"},
      {{.text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\ncontent-LENGTH:   2  \n\nab"}, "ab"},
      {{.text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", .slow_bytes = 1},
       "hello"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0000002\r\nab\r\n0\r\n\r\n",
        .slow_bytes = 1},
       "ab"},
      {{.text = "HTTP/1.0 200 OK\r\n\r\nto the end", .closes = true}, "to the end"},
  };
  fake_answer answers[COUNT(cases)];
  for (int i = 0; i < COUNT(cases); i++) answers[i] = cases[i].answer;
  fake_server s;
  fake_start(&s, NULL, answers, COUNT(answers));
  shoal_fetch *fetch = client_of(&s, "secret-token", 5, NULL);
  for (int i = 0; i < COUNT(cases); i++) {
    shoal_reply reply;
    shoal_error err;
    if (shoal_fetch_ask(fetch, &(shoal_ask){.path = "/api/v1/server?x=1"}, &reply, &err) != SHOAL_OK)
      fail_msg("case %d: %s", i, err.text);
    assert_string_equal(reply.body.bytes ? reply.body.bytes : "", cases[i].body);
    shoal_reply_release(&reply);
  }
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
  assert_int_equal(s.connections, 1);
  fake_start(&s, NULL, answers, 1);
  fetch = client_of(&s, "secret-token", 5, NULL);
  shoal_reply reply;
  assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/p"}, &reply, NULL), SHOAL_OK);
  assert_int_equal(strncmp(s.asked[0], "GET /p HTTP/1.1\r\n", 17), 0);
  assert_non_null(strstr(s.asked[0], "\r\nAuthorization: Bearer secret-token\r\n"));
  shoal_reply_release(&reply);
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
}

static void bad_answers_are_errors_that_say_so(void **state) {
  (void)state;
  char *huge = malloc(200000), *many = malloc(200000);
  memset(huge, 'x', 199999);
  memcpy(huge, "HTTP/1.1 200 OK\r\nX: ", 20);
  huge[199999] = 0;
  size_t length = (size_t)snprintf(many, 200000, "HTTP/1.1 200 OK\r\n");
  while (length < 100000) length += (size_t)snprintf(many + length, 200000 - length, "A: b\r\n");
  snprintf(many + length, 200000 - length, "\r\n");
  const struct {
    fake_answer answer;
    const char *says;
  } cases[] = {
      {{.text = "HTTP/1.1 200 OK\r\nContent-Le", .closes = true}, "in the middle of an answer"},
      {{.text = "", .closes = true}, "without an answer"},
      {{.text = "220 mail ready\r\n", .closes = true}, "does not speak HTTP/1.1"},
      {{.text = "HTTP/2 200\r\n\r\n", .closes = true}, "does not speak HTTP/1.1"},
      {{.text = "HTTP/1.1 2000 OK\r\n\r\n", .closes = true}, "does not speak HTTP/1.1"},
      {{.text = "HTTP/1.1 099 OK\r\n\r\n", .closes = true}, "does not speak HTTP/1.1"},
      {{.text = OK_TEXT("four", "5"), .closes = true}, "in the middle of an answer"},
      {{.text = OK_TEXT("x", "-1"), .closes = true}, "Content-Length is no number"},
      {{.text = OK_TEXT("x", "1x"), .closes = true}, "Content-Length is no number"},
      {{.text = OK_TEXT("x", "99999999999999999999"), .closes = true}, "Content-Length is no number"},
      {{.text = OK_TEXT("x", "9999999"), .closes = true}, "in the middle of an answer"},
      {{.text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", .closes = true},
       "two different lengths"},
      {{.text =
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        .closes = true},
       "a length and chunks"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .closes = true},
       "unknown encoding"},
      {{.text = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", .closes = true},
       "compresses"},
      {{.text = "HTTP/1.1 200 OK\r\n: nameless\r\n\r\n", .closes = true}, "a header has no name"},
      {{.text = "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", .closes = true}, "a header has no name"},
      {{.text = "HTTP/1.1 200 OK\r\nA: \0b\r\n\r\n", .length = 25, .closes = true}, "a zero in its head"},
      {{.text = huge, .closes = true}, "a line is too long"},
      {{.text = many, .closes = true}, "its head is too long"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", .closes = true},
       "a chunk has no size"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", .closes = true},
       "a chunk has no size"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        .closes = true},
       "a chunk has no size"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", .closes = true},
       "a chunk has no size, or another one"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", .closes = true},
       "in the middle of an answer"},
      {{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", .closes = true},
       "in the middle of an answer"},
      {{.text = "HTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\n"
                "HTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\n",
        .closes = true},
       "never comes to an answer"},
  };
  for (int i = 0; i < COUNT(cases); i++) {
    fake_server s;
    fake_start(&s, NULL, &cases[i].answer, 1);
    shoal_fetch *fetch = client_of(&s, "secret-token", 5, NULL);
    shoal_reply reply;
    shoal_error err;
    if (shoal_fetch_ask(fetch, &(shoal_ask){.path = "/"}, &reply, &err) == SHOAL_OK)
      fail_msg("case %d was taken", i);
    if (!strstr(err.text, cases[i].says)) fail_msg("case %d: '%s' is not in: %s", i, cases[i].says, err.text);
    assert_null(strstr(err.text, "secret-token"));
    shoal_reply_release(&reply);
    shoal_fetch_destroy(fetch);
    fake_stop(&s);
  }
  free(huge);
  free(many);
}

static void silence_ends_and_so_does_a_stop(void **state) {
  (void)state;
  static const fake_answer answers[] = {{.text = "", .silent = true}, {.text = "", .silent = true}};
  fake_server s;
  fake_start(&s, NULL, answers, 2);
  volatile sig_atomic_t stop = 0;
  shoal_fetch *fetch = client_of(&s, NULL, 0.3, &stop);
  shoal_reply reply;
  shoal_error err;
  assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/"}, &reply, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "does not answer"));
  stop = 1;
  assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/"}, &reply, &err), SHOAL_STOPPED);
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
}

static void nobody_listens(void **state) {
  (void)state;
  fake_server s;
  fake_start(&s, NULL, &(fake_answer){.text = ""}, 1);
  fake_stop(&s);
  shoal_fetch *fetch = client_of(&s, NULL, 5, NULL);
  shoal_reply reply;
  shoal_error err;
  assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/"}, &reply, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "Connection refused"));
  assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/a b"}, &reply, &err), SHOAL_INVALID);
  assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/a\r\nX: y"}, &reply, &err), SHOAL_INVALID);
  shoal_fetch_destroy(fetch);
}

static void errors_of_the_server_become_sentences(void **state) {
  (void)state;
#define ERROR(code, body) "HTTP/1.1 " code " no\r\nConnection: close\r\n\r\n" body
  static const struct {
    fake_answer answer;
    shoal_status status;
    int code;
    const char *text;
  } cases[] = {
      {{.text = ERROR("404", "{\"error\":{\"code\":\"not_found\",\"text\":\"there is no job 7\"}}"),
        .closes = true},
       SHOAL_NOT_FOUND,
       404,
       "there is no job 7"},
      {{.text = ERROR("422", "{\"error\":{\"text\":\"must be 1 or more\",\"field\":\"epochs\"}}"),
        .closes = true},
       SHOAL_INVALID,
       422,
       "epochs: must be 1 or more"},
      {{.text = ERROR("409", "{\"error\":{\"text\":\"the job\\u001b is running\"}}"), .closes = true},
       SHOAL_CONFLICT,
       409,
       "the job? is running"},
      {{.text = ERROR("413", "{}"), .closes = true}, SHOAL_LIMIT, 413, NULL},
      {{.text = ERROR("503", "<html>"), .closes = true}, SHOAL_IO, 503, NULL},
      {{.text = ERROR("302", ""), .closes = true}, SHOAL_IO, 302, NULL},
      {{.text = ERROR("404", "<html>"), .closes = true}, SHOAL_NOT_FOUND, 404, NULL},
  };
  for (int i = 0; i < COUNT(cases); i++) {
    fake_server s;
    fake_start(&s, NULL, &cases[i].answer, 1);
    shoal_fetch *fetch = client_of(&s, NULL, 5, NULL);
    shoal_reply reply;
    shoal_error err;
    assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/"}, &reply, &err), cases[i].status);
    assert_int_equal(reply.status, cases[i].code);
    if (cases[i].text) assert_string_equal(err.text, cases[i].text);
    if (cases[i].text == NULL) {
      assert_non_null(strstr(err.text, "answers with status"));
      assert_int_equal(strstr(err.text, "does not look like a Shoal server") != NULL, cases[i].code < 500);
    }
    shoal_reply_release(&reply);
    shoal_fetch_destroy(fetch);
    fake_stop(&s);
  }
}

static void a_closed_connection_is_made_again_but_a_post_is_sent_once(void **state) {
  (void)state;
  static const fake_answer answers[] = {{.text = OK_TEXT("a", "1"), .closes = true},
                                        {.text = OK_TEXT("b", "1")},
                                        {.text = OK_TEXT("c", "1")},
                                        {.text = "", .closes = true}};
  fake_server s;
  fake_start(&s, NULL, answers, 4);
  shoal_fetch *fetch = client_of(&s, NULL, 5, NULL);
  shoal_reply reply;
  shoal_error err;
  for (int i = 0; i < 2; i++) {
    if (shoal_fetch_ask(fetch, &(shoal_ask){.path = "/"}, &reply, &err) != SHOAL_OK) fail_msg("%s", err.text);
    assert_string_equal(reply.body.bytes, i ? "b" : "a");
    shoal_reply_release(&reply);
  }
  const shoal_ask post = {.method = "POST", .path = "/jobs", .json = "{\"a\":1}"};
  if (shoal_fetch_ask(fetch, &post, &reply, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_reply_release(&reply);
  assert_int_equal(s.connections, 3);
  assert_int_equal(shoal_fetch_ask(fetch, &post, &reply, &err), SHOAL_IO);
  shoal_reply_release(&reply);
  assert_non_null(strstr(s.asked[2], "\r\nContent-Length: 7\r\n\r\n{\"a\":1}"));
  assert_non_null(strstr(s.asked[2], "Content-Type: application/json"));
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
  assert_int_equal(s.asked_count, 4);
}

static void a_post_may_keep_the_connection_and_is_sent_once(void **state) {
  (void)state;
  static const fake_answer answers[] = {{.text = OK_TEXT("a", "1")},
                                        {.text = OK_TEXT("b", "1")},
                                        {.text = "", .closes = true},
                                        {.text = OK_TEXT("c", "1")}};
  fake_server s;
  fake_start(&s, NULL, answers, 4);
  shoal_fetch *fetch = client_of(&s, NULL, 5, NULL);
  shoal_reply reply;
  shoal_error err;
  const shoal_ask post = {
      .method = "POST", .path = "/play", .bytes = "a\0z", .bytes_count = 3, .keeps = true};
  for (int i = 0; i < 4; i++) {
    shoal_status status = shoal_fetch_ask(fetch, &post, &reply, &err);
    assert_int_equal(status, i == 2 ? SHOAL_IO : SHOAL_OK);
    assert_int_equal(reply.kept, i != 2);
    shoal_reply_release(&reply);
    assert_int_equal(s.connections, i < 3 ? 1 : 2);
    assert_int_equal(s.asked_count, i + 1);
  }
  const char *body = strstr(s.asked[3], "\r\nContent-Length: 3\r\n\r\n");
  assert_non_null(body);
  assert_memory_equal(strstr(body, "\r\n\r\n") + 4, "a\0z", 3);
  assert_non_null(strstr(s.asked[3], "Content-Type: application/octet-stream"));
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
}

static void an_answer_larger_than_allowed_is_refused(void **state) {
  (void)state;
  static const fake_answer answer = {.text = OK_TEXT("0123456789", "10")};
  fake_server s;
  fake_start(&s, NULL, &answer, 1);
  shoal_fetch *fetch = client_of(&s, NULL, 5, NULL);
  shoal_reply reply;
  shoal_error err;
  assert_int_equal(shoal_fetch_ask(fetch, &(shoal_ask){.path = "/", .answer_max = 9}, &reply, &err),
                   SHOAL_LIMIT);
  shoal_reply_release(&reply);
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
}

/* ---- files and events ---- */

static void count_sent(void *self, uint64_t done, uint64_t all) {
  assert_true(done <= all);
  *(uint64_t *)self = done;
}

static void write_file(const char *path, size_t length) {
  FILE *file = fopen(path, "wb");
  for (size_t i = 0; i < length; i++) fputc((int)(i * 7 % 251), file);
  fclose(file);
}

static void files_go_up_and_come_down(void **state) {
  (void)state;
  enum { BYTES = 3000000 };
  write_file("up", BYTES);
  static const fake_answer answers[] = {
      {.text = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"},
      {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
               "chunked\r\n\r\n4\r\ndown\r\n3\r\nhil\r\n1\r\nl\r\n0\r\n\r\n"},
      {.text = OK_TEXT("cut", "9"), .closes = true},
      {.text = "HTTP/1.1 413 Too Large\r\nContent-Length: 30\r\n\r\n{\"error\":{\"text\":\"too large\"}}",
       .unread = true},
  };
  fake_server s;
  fake_start(&s, NULL, answers, 4);
  shoal_fetch *fetch = client_of(&s, NULL, 5, NULL);
  shoal_reply reply;
  shoal_error err;
  uint64_t sent = 0;
  shoal_ask put = {.method = "PUT", .path = "/f", .file = "up", .self = &sent, .sent = count_sent};
  if (shoal_fetch_ask(fetch, &put, &reply, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_reply_release(&reply);
  assert_int_equal(sent, BYTES);
  assert_true(s.asked_bytes[0] > BYTES);
  if (shoal_fetch_file(fetch, "/f", "down", NULL, NULL, &err) != SHOAL_OK) fail_msg("%s", err.text);
  char text[16] = "";
  FILE *file = fopen("down", "rb");
  assert_int_equal(fread(text, 1, sizeof text, file), 8);
  fclose(file);
  assert_memory_equal(text, "downhill", 8);
  /* Half a file never appears. */
  assert_int_equal(shoal_fetch_file(fetch, "/f", "half", NULL, NULL, &err), SHOAL_IO);
  assert_int_equal(access("half", F_OK), -1);
  assert_int_equal(files_here(), 2);
  write_file("up", 40 << 20);
  assert_int_equal(shoal_fetch_ask(fetch, &put, &reply, &err), SHOAL_LIMIT);
  assert_string_equal(err.text, "too large");
  shoal_reply_release(&reply);
  put.file = "missing";
  assert_int_equal(shoal_fetch_ask(fetch, &put, &reply, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "missing"));
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
}

typedef struct heard {
  int count, most;
  char text[256];
} heard;

static bool hear(void *self, const char *name, const char *data) {
  heard *h = self;
  size_t length = strlen(h->text);
  snprintf(h->text + length, sizeof h->text - length, "%s=%s;", name, data);
  return ++h->count < h->most;
}

static void events_come_one_by_one(void **state) {
  (void)state;
  static const char events[] =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
      ": hello\n\nevent: job\ndata: {\"a\":1}\n\ndata: x\r\ndata:y\r\n\r\nevent: none\n\n"
      "event: log\ndata: last\n\ndata: cut off";
  const fake_answer answers[] = {{.text = events, .closes = true, .slow_bytes = 3},
                                 {.text = events, .closes = true}};
  fake_server s;
  fake_start(&s, NULL, answers, 2);
  shoal_fetch *fetch = client_of(&s, NULL, 5, NULL);
  shoal_error err;
  heard all = {.most = 100}, first = {.most = 1};
  if (shoal_fetch_events(fetch, "/live", &all, hear, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_string_equal(all.text, "job={\"a\":1};message=x\ny;log=last;");
  if (shoal_fetch_events(fetch, "/live", &first, hear, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_string_equal(first.text, "job={\"a\":1};");
  shoal_fetch_destroy(fetch);
  fake_stop(&s);
}

static void names_are_escaped(void **state) {
  (void)state;
  shoal_text out;
  shoal_text_init(&out);
  shoal_fetch_escape(&out, "a-Z_0.~/ ?#%\xc3\xa9");
  assert_string_equal(out.bytes, "a-Z_0.~%2F%20%3F%23%25%C3%A9");
  shoal_text_release(&out);
}

/* ---- TLS ---- */

static void make_certificate(char fingerprint[65]) {
  assert_int_equal(system("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                          "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2> openssl.log && "
                          "openssl x509 -in cert.pem -noout -fingerprint -sha256 > fingerprint"),
                   0);
  char line[200] = "";
  FILE *file = fopen("fingerprint", "r");
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  int count = 0;
  for (const char *c = strchr(line, '=') + 1; *c && count < 64; c++)
    if (*c != ':' && *c != '\n') fingerprint[count++] = *c;
  fingerprint[64] = 0;
  assert_int_equal(count, 64);
}

static shoal_status ask_tls(const char *host, uint16_t port, const char *fingerprint, shoal_reply *reply,
                            shoal_error *err) {
  char text[200];
  shoal_link link;
  shoal_fetch *fetch;
  snprintf(text, sizeof text, "https://%s:%u/#t=secret-token%s%s", host, port, fingerprint ? "&fp=" : "",
           fingerprint ? fingerprint : "");
  assert_int_equal(shoal_link_parse(&link, text, err), SHOAL_OK);
  shoal_fetch_config config = {.link = &link, .connect_s = 5, .silence_s = 5};
  assert_int_equal(shoal_fetch_create(&fetch, &config, NULL), SHOAL_OK);
  shoal_status status = shoal_fetch_ask(fetch, &(shoal_ask){.path = "/"}, reply, err);
  shoal_fetch_destroy(fetch);
  return status;
}

static void tls_takes_the_right_certificate_only(void **state) {
  (void)state;
  char right[65], wrong[65];
  make_certificate(right);
  memcpy(wrong, right, sizeof wrong);
  wrong[9] = wrong[9] == '1' ? '2' : '1';
  static const fake_answer answers[] = {
      {.text = OK_TEXT("hello", "5")}, {.text = OK_TEXT("again", "5")}, {.text = OK_TEXT("", "0")}};
  signal(SIGPIPE, SIG_IGN); /* for the server of this test */
  fake_server s;
  fake_start(&s, "cert.pem", answers, 3);
  shoal_reply reply;
  shoal_error err;
  if (ask_tls("127.0.0.1", s.port, right, &reply, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_string_equal(reply.body.bytes, "hello");
  shoal_reply_release(&reply);
  assert_int_equal(ask_tls("127.0.0.1", s.port, wrong, &reply, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "does not have the link's fingerprint"));
  assert_int_equal(ask_tls("127.0.0.1", s.port, NULL, &reply, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "is not valid"));
  /* The same certificate is good once the system trusts it, for its host alone. */
  setenv("SSL_CERT_FILE", "cert.pem", 1);
  if (ask_tls("127.0.0.1", s.port, NULL, &reply, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_string_equal(reply.body.bytes, "again");
  shoal_reply_release(&reply);
  assert_int_equal(ask_tls("localhost", s.port, NULL, &reply, &err), SHOAL_INVALID);
  unsetenv("SSL_CERT_FILE");
  /* Nothing was said to a server before its certificate was seen. */
  assert_int_equal(s.asked_count, 2);
  fake_stop(&s);
  fake_start(&s, NULL, answers, 1);
  assert_int_equal(ask_tls("127.0.0.1", s.port, right, &reply, &err), SHOAL_IO);
  fake_stop(&s);
}

static void an_answer_to_the_end_is_read_over_tls(void **state) {
  (void)state;
  char right[65];
  make_certificate(right);
  fake_server s;
  static const fake_answer answer = {.text = "HTTP/1.1 200 OK\r\n\r\nwhole", .closes = true};
  fake_start(&s, "cert.pem", &answer, 1);
  shoal_reply reply;
  shoal_error err;
  if (ask_tls("127.0.0.1", s.port, right, &reply, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_string_equal(reply.body.bytes, "whole");
  shoal_reply_release(&reply);
  fake_stop(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_of_all_shapes_are_read_on_one_connection),
      cmocka_unit_test(bad_answers_are_errors_that_say_so),
      cmocka_unit_test(silence_ends_and_so_does_a_stop),
      cmocka_unit_test(nobody_listens),
      cmocka_unit_test(errors_of_the_server_become_sentences),
      cmocka_unit_test(a_closed_connection_is_made_again_but_a_post_is_sent_once),
      cmocka_unit_test(a_post_may_keep_the_connection_and_is_sent_once),
      cmocka_unit_test(an_answer_larger_than_allowed_is_refused),
      IN_FOLDER(files_go_up_and_come_down),
      cmocka_unit_test(events_come_one_by_one),
      cmocka_unit_test(names_are_escaped),
      IN_FOLDER(tls_takes_the_right_certificate_only),
      IN_FOLDER(an_answer_to_the_end_is_read_over_tls),
  };
  return RUN_TESTS(tests);
}
