/* What a volunteer who plays does when its server is away, has another life of the training afterwards, does
 * not want it, or answers nonsense. */
#include "work/agent_worker.h"

#include "agent/bytes.h"
#include "agent/coach.h"
#include "agent/libm_digest.h"
#include "wire/fake_server.h"

enum { ENVS = 2, STEPS = 8 };
#define NOTHING "HTTP/1.1 204 No Content\r\n\r\n"
#define OVER "HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n{}"
#define OTHER_LIFE \
  "HTTP/1.1 409 Conflict\r\nContent-Length: 37\r\n\r\n{\"error\":{\"text\":\"x\",\"field\":\"life\"}}"
#define OTHER_MATH                                                                   \
  "HTTP/1.1 409 Conflict\r\nContent-Length: 46\r\n\r\n{\"error\":{\"text\":\"other " \
  "math\",\"field\":\"math\"}}"

/* What a real learner says to an actor, as answers of a server. */
typedef struct lesson {
  shoal_text brief, brief_anew, unit,
      unit_alone; /* of lives 11 and 12; the unit with its policy, and without */
} lesson;

static void wrap(shoal_text *out, const shoal_text *first, const shoal_text *second,
                 const shoal_text *third) {
  size_t length = first->length + (second ? second->length : 0) + (third ? third->length : 0);
  shoal_text_addf(out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
  shoal_text_add(out, first->bytes, first->length);
  if (second) shoal_text_add(out, second->bytes, second->length);
  if (third) shoal_text_add(out, third->bytes, third->length);
}

static void wrap_brief(shoal_text *out, const shoal_text *brief, int life) {
  shoal_text whole = {0};
  shoal_text_addf(&whole, "%.*s,\"life\":%d}", (int)brief->length - 1, brief->bytes, life);
  wrap(out, &whole, NULL, NULL);
  shoal_text_release(&whole);
}

static lesson prepare(void) {
  shoal_coach_config config = {.learner = {.kind = shoal_env_find("CartPole-v1"), .seed = 3, .threads = 1}};
  shoal_agent_settings *settings = &config.learner.settings;
  shoal_coach *coach;
  shoal_error err;
  assert_int_equal(shoal_agent_defaults(config.learner.kind, SHOAL_VTRACE, settings, &err), SHOAL_OK);
  settings->envs = ENVS;
  settings->steps = STEPS;
  if (shoal_coach_start(&coach, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  lesson l = {0};
  shoal_text brief = {0}, unit = {0}, policy = {0}, length = {0};
  shoal_coach_brief(coach, 0, &brief);
  assert_int_equal(shoal_coach_take(coach, "test", UINT64_MAX, &unit, &policy), SHOAL_COACH_UNIT);
  shoal_put_u32(&length, (uint32_t)unit.length);
  wrap_brief(&l.brief, &brief, 11);
  wrap_brief(&l.brief_anew, &brief, 12);
  wrap(&l.unit, &length, &unit, &policy);
  wrap(&l.unit_alone, &length, &unit, NULL);
  shoal_coach_stop(coach);
  shoal_coach_wait(coach);
  shoal_coach_destroy(coach);
  shoal_text_release(&brief);
  shoal_text_release(&unit);
  shoal_text_release(&policy);
  shoal_text_release(&length);
  return l;
}

static void release(lesson *l) {
  shoal_text_release(&l->brief);
  shoal_text_release(&l->brief_anew);
  shoal_text_release(&l->unit);
  shoal_text_release(&l->unit_alone);
}

static fake_answer say(const char *text) { return (fake_answer){.text = text}; }
static fake_answer give(const shoal_text *bytes) {
  return (fake_answer){.text = bytes->bytes, .length = bytes->length};
}

/* Notes that were made, one behind the other. */
static char notes[512];
static void note(void *self, const char *text) {
  (void)self;
  size_t used = strlen(notes);
  snprintf(notes + used, sizeof notes - used, "%s\n", text);
}

static shoal_status work(fake_server *s, const fake_answer *answers, int count, shoal_worker_count *done,
                         shoal_error *err) {
  shoal_link link;
  char address[40];
  static const volatile sig_atomic_t stop = 0;
  notes[0] = 0;
  fake_start(s, NULL, answers, count);
  snprintf(address, sizeof address, "http://127.0.0.1:%u", s->port);
  assert_int_equal(shoal_link_parse(&link, address, err), SHOAL_OK);
  const shoal_agent_worker_config config = {.link = &link,
                                            .job = 7,
                                            .number = 4,
                                            .name = "ann b",
                                            .threads = 1,
                                            .count = done,
                                            .notes = {.note = note},
                                            .stop = &stop};
  return shoal_agent_worker_run(&config, err);
}

static bool asked(const fake_server *s, int request, const char *words) {
  return strstr(s->asked[request], words) != NULL;
}

static bool has_body(const fake_server *s, int request) {
  return !asked(s, request, "Content-Length: 0\r\n");
}

/* ---- tests ---- */

static void a_unit_is_played_and_sent_with_the_next_question(void **state) {
  (void)state;
  lesson l = prepare();
  const fake_answer answers[] = {give(&l.brief), give(&l.unit), say(NOTHING), give(&l.unit_alone), say(OVER)};
  fake_server s;
  shoal_worker_count done = {0};
  shoal_error err;
  char math[SHOAL_LIBM_DIGEST_MAX], path[128];
  shoal_libm_digest(math);
  snprintf(path, sizeof path, "POST /api/v1/jobs/7/play?number=4&math=%s&worker=ann%%20b&life=11 HTTP", math);
  assert_int_equal(work(&s, answers, 5, &done, &err), SHOAL_OK);
  assert_true(asked(&s, 0, "GET /api/v1/jobs/7/brief "));
  assert_true(asked(&s, 1, path) && !has_body(&s, 1));
  assert_true(asked(&s, 2, "&life=11&version=0 HTTP") && has_body(&s, 2));
  assert_true(asked(&s, 3, "&version=0 HTTP") && !has_body(&s, 3));
  assert_true(has_body(&s, 4));
  assert_int_equal(s.connections, 2); /* the brief's, and one that is kept */
  assert_true(done.units == 1 && done.samples == ENVS * STEPS);
  assert_string_equal(notes, "");
  fake_stop(&s);
  release(&l);
}

/* A proxy may answer each question over a connection of its own. */
static void what_was_played_is_sent_again_after_a_connection_broke(void **state) {
  (void)state;
  lesson l = prepare();
  const fake_answer answers[] = {give(&l.brief),
                                 {.text = l.unit.bytes, .length = l.unit.length, .closes = true},
                                 {.text = "", .closes = true},
                                 say(OVER)};
  fake_server s;
  shoal_worker_count done = {0};
  shoal_error err;
  assert_int_equal(work(&s, answers, 4, &done, &err), SHOAL_OK);
  assert_true(has_body(&s, 2) && asked(&s, 2, "&life=11&version=0 HTTP"));
  assert_true(has_body(&s, 3) && asked(&s, 3, "&life=11&version=0 HTTP"));
  fake_stop(&s);
  release(&l);
}

static void another_life_of_the_training_gets_nothing_of_the_one_before(void **state) {
  (void)state;
  lesson l = prepare();
  const fake_answer answers[] = {give(&l.brief),      give(&l.unit), say(OTHER_LIFE),
                                 give(&l.brief_anew), give(&l.unit), say(OVER)};
  fake_server s;
  shoal_worker_count done = {0};
  shoal_error err;
  assert_int_equal(work(&s, answers, 6, &done, &err), SHOAL_OK);
  assert_true(has_body(&s, 2) && asked(&s, 2, "&life=11&version=0 HTTP"));
  assert_true(asked(&s, 3, "GET /api/v1/jobs/7/brief "));
  assert_true(!has_body(&s, 4) && asked(&s, 4, "&life=12 HTTP"));
  assert_true(has_body(&s, 5) && asked(&s, 5, "&life=12&version=0 HTTP"));
  assert_int_equal(done.units, 0);
  fake_stop(&s);
  release(&l);
}

static void a_machine_whose_sines_are_others_does_not_ask_again(void **state) {
  (void)state;
  lesson l = prepare();
  const fake_answer answers[] = {give(&l.brief), say(OTHER_MATH), say(OVER)};
  fake_server s;
  shoal_error err = {0};
  assert_int_equal(work(&s, answers, 3, NULL, &err), SHOAL_UNSUPPORTED);
  assert_non_null(strstr(err.text, "other math"));
  assert_int_equal(s.asked_count, 2);
  fake_stop(&s);
  release(&l);
}

static void a_server_that_is_busy_or_not_ready_is_asked_again(void **state) {
  (void)state;
  lesson l = prepare();
  const fake_answer answers[] = {say("HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n"),
                                 say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
                                 give(&l.brief),
                                 say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
                                 say("HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n"),
                                 give(&l.unit),
                                 say("HTTP/1.1 429 Slowly\r\nContent-Length: 0\r\n\r\n"),
                                 say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
                                 say(OVER)};
  fake_server s;
  shoal_worker_count done = {0};
  shoal_error err;
  assert_int_equal(work(&s, answers, 9, &done, &err), SHOAL_OK);
  assert_int_equal(s.asked_count, 9);
  assert_true(has_body(&s, 6) && has_body(&s, 7) && has_body(&s, 8));
  assert_string_equal(notes,
                      "the server is away, or busy; asking until it answers\nthe server answers again\n");
  fake_stop(&s);
  release(&l);
}

static void a_job_that_is_over_is_no_failure(void **state) {
  (void)state;
  static const fake_answer gone = {.text = OVER};
  fake_server s;
  shoal_error err;
  assert_int_equal(work(&s, &gone, 1, NULL, &err), SHOAL_OK);
  fake_stop(&s);
}

static void nonsense_ends_it_with_a_sentence(void **state) {
  (void)state;
  lesson l = prepare();
  shoal_text cut = {0};
  shoal_text_addf(&cut, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n%c%c%c%cabcd", 40, 1, 1, 1);
  const fake_answer lies[] = {say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"), give(&cut),
                              give(&l.unit_alone), /* a policy that was never sent */
                              say("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")};
  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    const fake_answer answers[] = {give(&l.brief), lies[i]};
    fake_server s;
    shoal_error err = {0};
    shoal_status status = work(&s, answers, 2, NULL, &err);
    assert_true(status != SHOAL_OK && status != SHOAL_STOPPED && err.text[0] != 0);
    fake_stop(&s);
  }
  const fake_answer no_brief =
      say("HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n{\"env\":\"gym:CartPole-v1\"  }");
  fake_server s;
  shoal_error err = {0};
  assert_true(work(&s, &no_brief, 1, NULL, &err) != SHOAL_OK && err.text[0] != 0);
  fake_stop(&s);
  shoal_text_release(&cut);
  release(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_unit_is_played_and_sent_with_the_next_question),
      cmocka_unit_test(what_was_played_is_sent_again_after_a_connection_broke),
      cmocka_unit_test(another_life_of_the_training_gets_nothing_of_the_one_before),
      cmocka_unit_test(a_machine_whose_sines_are_others_does_not_ask_again),
      cmocka_unit_test(a_server_that_is_busy_or_not_ready_is_asked_again),
      cmocka_unit_test(a_job_that_is_over_is_no_failure),
      cmocka_unit_test(nonsense_ends_it_with_a_sentence),
  };
  return RUN_TESTS(tests);
}
