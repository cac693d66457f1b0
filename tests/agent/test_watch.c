/* How an episode ended can be seen, although the next one begins in the same step. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/coach.h"
#include "agent/vector.h"
#include "check.h"

enum { STEPS = 1500, WIDTH_MAX = 8 };

static void json_of(const shoal_canvas *canvas, shoal_text *out) {
  shoal_text_clear(out);
  shoal_canvas_json(canvas, out);
  assert_false(out->failed || canvas->failed);
}

static void choose(const shoal_env_kind *kind, uint32_t t, float *action) {
  for (uint32_t i = 0; i < kind->action_width; i++)
    action[i] = kind->choices ? (float)((t * t + t / 3) % kind->choices) : (t / 20 + i) % 2 ? 1.0f : -1.0f;
}

/* Draws what one step makes of a state, without the vector; only where a state is its bytes. */
static void draw_next(const shoal_env_kind *kind, const shoal_vector *vector, const float *action,
                      shoal_canvas *canvas) {
  float reward;
  bool ended;
  uint8_t *bytes = malloc(shoal_vector_bytes(vector));
  void *state = aligned_alloc(64, (kind->bytes + 63) / 64 * 64);
  shoal_pcg64 random;
  assert_true(bytes != NULL && state != NULL);
  shoal_vector_save(vector, bytes);
  memcpy(state, shoal_vector_state(vector, 0), kind->bytes);
  memcpy(&random, bytes + 16 + kind->bytes, sizeof random);
  kind->step(state, 1, action, &random, &reward, &ended);
  kind->draw(state, canvas);
  free(state);
  free(bytes);
}

static void watch(const shoal_env_kind *kind) {
  shoal_vector *vector;
  shoal_canvas end, wanted, next;
  shoal_text a = {0}, b = {0}, c = {0};
  uint32_t episodes = 0;
  assert_int_equal(shoal_vector_create(&vector, kind, 1, NULL), SHOAL_OK);
  shoal_canvas_init(&end);
  shoal_canvas_init(&wanted);
  shoal_canvas_init(&next);
  shoal_vector_reset(vector, 3);
  shoal_vector_watch(vector, &end);
  for (uint32_t t = 0; t < STEPS && episodes < 5; t++) {
    float action[WIDTH_MAX], reward;
    uint8_t over;
    choose(kind, t, action);
    if (kind->release == NULL) draw_next(kind, vector, action, &wanted);
    shoal_vector_step(vector, action, &reward, &over);
    if (over == SHOAL_GOES_ON) {
      assert_true(episodes > 0 || end.shapes_count == 0);
      continue;
    }
    episodes++;
    kind->draw(shoal_vector_state(vector, 0), &next);
    json_of(&end, &a);
    json_of(&wanted, &b);
    json_of(&next, &c);
    if (kind->release == NULL) assert_string_equal(a.bytes, b.bytes);
    assert_string_not_equal(a.bytes, c.bytes);
  }
  assert_true(episodes > 0);
  shoal_text_release(&a);
  shoal_text_release(&b);
  shoal_text_release(&c);
  shoal_canvas_release(&end);
  shoal_canvas_release(&wanted);
  shoal_canvas_release(&next);
  shoal_vector_destroy(vector);
}

static void the_end_of_an_episode_is_drawn(void **state) {
  (void)state;
  for (int k = 0; shoal_env_kinds[k]; k++) watch(shoal_env_kinds[k]);
}

static uint32_t count_of(const char *text, const char *what) {
  uint32_t count = 0;
  for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) count++;
  return count;
}

/* Pictures of an episode that is told to the page: one before every step, and the end. */
static void the_page_sees_the_end(void **state) {
  (void)state;
  char path[] = "/tmp/shoal-test-watch-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  shoal_learner_config config = {.kind = shoal_env_find("CartPole-v1"), .seed = 3, .threads = 1};
  shoal_error err = {0};
  shoal_learner *learner;
  assert_int_equal(shoal_agent_defaults(config.kind, SHOAL_PPO, &config.settings, &err), SHOAL_OK);
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_OK);
  assert_int_equal(shoal_learner_save(learner, path, false, &err), SHOAL_OK);
  shoal_text json = {0};
  assert_int_equal(shoal_coach_episode(path, 5, 1000, &json, &err), SHOAL_OK);
  assert_non_null(strstr(json.bytes, "\"end\":\"terminated\""));
  uint32_t pictures = count_of(json.bytes, "\"view\":"), steps = 1;
  for (const char *at = strstr(json.bytes, "\"rewards\":["); *at != ']'; at++) steps += *at == ',';
  assert_int_equal(pictures, steps + 1);
  shoal_text_clear(&json);
  assert_int_equal(shoal_coach_episode(path, 5, 4, &json, &err), SHOAL_OK);
  assert_non_null(strstr(json.bytes, "\"end\":\"goes on\""));
  assert_int_equal(count_of(json.bytes, "\"view\":"), 4);
  shoal_text_release(&json);
  shoal_learner_destroy(learner);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_end_of_an_episode_is_drawn),
      cmocka_unit_test(the_page_sees_the_end),
  };
  return RUN_TESTS(tests);
}
