/* What learner and actors say to each other through a broker: read as it was written, or refused. */
#include "cli/agent_queue.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static void messages_are_read_as_they_were_written(void **state) {
  (void)state;
  shoal_text text = {0};
  shoal_agent_message m;
  shoal_agent_message_begin(&text, SHOAL_SAY_ROLLOUT, 0x0123456789abcdef, "host-1-ab");
  shoal_text_add(&text, "body", 4);
  assert_true(shoal_agent_message_read(&m, text.bytes, text.length));
  assert_int_equal(m.say, SHOAL_SAY_ROLLOUT);
  assert_true(m.life == 0x0123456789abcdef);
  assert_string_equal(m.actor, "host-1-ab");
  assert_int_equal(m.length, 4);
  assert_memory_equal(m.body, "body", 4);
  shoal_agent_message_begin(&text, SHOAL_SAY_OVER, 7, NULL);
  assert_true(shoal_agent_message_read(&m, text.bytes, text.length));
  assert_true(m.say == SHOAL_SAY_OVER && m.life == 7 && m.actor[0] == 0 && m.length == 0);
  shoal_text_release(&text);
}

static void what_is_no_message_is_refused(void **state) {
  (void)state;
  shoal_text text = {0};
  shoal_agent_message m;
  shoal_agent_message_begin(&text, SHOAL_SAY_HELLO, 1, "host-1-ab");
  for (size_t length = 0; length < text.length; length++) {
    uint8_t *cut = malloc(length + 1); /* so that reading on is seen */
    memcpy(cut, text.bytes, length);
    assert_false(shoal_agent_message_read(&m, cut, length));
    free(cut);
  }
  text.bytes[0] = 0;
  assert_false(shoal_agent_message_read(&m, text.bytes, text.length));
  text.bytes[0] = SHOAL_SAY_OVER + 1;
  assert_false(shoal_agent_message_read(&m, text.bytes, text.length));
  static const char *const names[] = {"a/b", "a b", "shoal.agent.x.policy.*",
                                      "a-name-that-is-longer-than-any-that-an-actor-may-have"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    shoal_agent_message_begin(&text, SHOAL_SAY_HELLO, 1, names[i]);
    assert_false(shoal_agent_message_read(&m, text.bytes, text.length));
  }
  shoal_text_release(&text);
}

static void names_fit_into_those_of_queues(void **state) {
  (void)state;
  char name[SHOAL_AGENT_NAME_MAX + 1], actor[SHOAL_AGENT_ACTOR_MAX], queue[SHOAL_QUEUE_NAME_MAX];
  shoal_agent_names names;
  memset(name, 'n', sizeof name);
  memset(actor, 'a', sizeof actor);
  actor[sizeof actor - 1] = 0;
  name[SHOAL_AGENT_NAME_MAX] = 0;
  assert_int_equal(shoal_agent_names_of(&names, name, NULL), SHOAL_INVALID);
  name[SHOAL_AGENT_NAME_MAX - 1] = 0;
  assert_int_equal(shoal_agent_names_of(&names, name, NULL), SHOAL_OK);
  shoal_agent_policy_queue(queue, name, actor);
  assert_string_equal(queue + strlen(queue) - strlen(actor), actor);
  assert_int_equal(shoal_agent_names_of(&names, "", NULL), SHOAL_INVALID);
  assert_int_equal(shoal_agent_names_of(&names, "a b", NULL), SHOAL_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_are_read_as_they_were_written),
      cmocka_unit_test(what_is_no_message_is_refused),
      cmocka_unit_test(names_fit_into_those_of_queues),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
