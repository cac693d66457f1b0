#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/env.h"
#include "agent/vector.h"
#include "base/random.h"

enum { OBSERVATION_MAX = 64, STATE_MAX = 512, WIDTH_MAX = 2 };

static shoal_vector *make(const char *name, uint64_t seed) {
  shoal_vector *vector;
  shoal_error err;
  assert_non_null(shoal_env_find(name));
  assert_int_equal(shoal_vector_create(&vector, shoal_env_find(name), 1, &err), SHOAL_OK);
  shoal_vector_reset(vector, seed);
  return vector;
}

static void near(const float *seen, const float *wanted, int count) {
  for (int i = 0; i < count; i++) assert_true(fabsf(seen[i] - wanted[i]) <= 1e-8f * (1 + fabsf(wanted[i])));
}

/* ---- what Gymnasium does ---- */

static void cartpole_takes_the_known_steps(void **state) {
  (void)state;
  shoal_vector *vector = make("CartPole-v1", 42);
  near(shoal_vector_observations(vector), (float[]){.0273956042f, -.00611215597f, .0358597934f, .0197368022f},
       4);
  float action = 1, reward;
  uint8_t end;
  shoal_vector_step(vector, &action, &reward, &end);
  near(shoal_vector_observations(vector), (float[]){.0272733625f, .188477665f, .0362545289f, -.261419773f},
       4);
  assert_true(reward == 1 && end == SHOAL_GOES_ON);
  shoal_vector_destroy(vector);
}

/* x, speed, angle, turn; as the original has it, with the C library's sine and cosine. */
static void push_cart(double s[4], double force) {
  double sine = sin(s[2]), cosine = cos(s[2]), length = 0.1 * 0.5;
  double push = (force + length * (s[3] * s[3]) * sine) / 1.1;
  double turning = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * (cosine * cosine) / 1.1));
  double moving = push - length * turning * cosine / 1.1;
  s[0] += 0.02 * s[1];
  s[1] += 0.02 * moving;
  s[2] += 0.02 * s[3];
  s[3] += 0.02 * turning;
}

/* Processors have ways of their own for eight carts, and for blocks of 256: there are one of them, several, and
 * rests. */
static void cartpole_is_the_plain_formula_to_the_last_bit(void **state) {
  (void)state;
  enum { COUNT = 300, ROUNDS = 330 };
  static const uint32_t counts[] = {1, 7, 8, 9, 15, 16, 255, 256, 257, 264, COUNT - 1};
  static double carts[COUNT][4], plain[COUNT][4];
  static float actions[COUNT], rewards[COUNT];
  static bool ended[COUNT];
  static shoal_pcg64 randoms[COUNT];
  const shoal_env_kind *kind = shoal_env_find("CartPole-v1");
  assert_int_equal(kind->bytes, sizeof carts[0]);
  shoal_pcg64_seed(&randoms[0], 9);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < COUNT; i++) {
      for (int d = 0; d < 4; d++) carts[i][d] = shoal_pcg64_uniform(&randoms[0], -2.5, 2.5);
      carts[i][2] *= round % 3 == 0 ? 1 : round % 3 == 1 ? 0.1 : 0.02;
      actions[i] = (float)shoal_pcg64_below(&randoms[0], 2);
    }
    memcpy(plain, carts, sizeof plain);
    uint32_t count = counts[(size_t)round % (sizeof counts / sizeof counts[0])];
    kind->step(carts, count, actions, randoms, rewards, ended);
    assert_memory_equal(carts[count], plain[count], (COUNT - count) * sizeof plain[0]);
    for (uint32_t i = 0; i < count; i++) {
      push_cart(plain[i], actions[i] == 1 ? 10 : -10);
      assert_memory_equal(carts[i], plain[i], sizeof plain[i]);
      assert_int_equal(ended[i], fabs(plain[i][0]) > 2.4 || fabs(plain[i][2]) > 24 * M_PI / 360);
    }
  }
}

static bool same_number(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* States may come from elsewhere. */
static void cartpole_is_the_plain_formula_for_wild_states_too(void **state) {
  (void)state;
  enum { COUNT = 21 };
  static const double wild[] = {0,    -0.0,  1e-320, 1e-12,    0.2,       3,  1e30,
                                1e60, 1e200, -1e308, INFINITY, -INFINITY, NAN};
  enum { WILD = sizeof wild / sizeof wild[0] };
  const shoal_env_kind *kind = shoal_env_find("CartPole-v1");
  shoal_pcg64 randoms[COUNT];
  shoal_pcg64_seed(&randoms[0], 10);
  for (int round = 0; round < 2000; round++) {
    double carts[COUNT][4], plain[COUNT][4];
    float actions[COUNT], rewards[COUNT];
    bool ended[COUNT];
    for (int i = 0; i < COUNT; i++) {
      actions[i] = (float)(i % 2);
      for (int d = 0; d < 4; d++)
        carts[i][d] = shoal_pcg64_below(&randoms[0], 2) ? wild[shoal_pcg64_below(&randoms[0], WILD)]
                                                        : shoal_pcg64_uniform(&randoms[0], -0.2, 0.2);
    }
    memcpy(plain, carts, sizeof plain);
    kind->step(carts, COUNT, actions, randoms, rewards, ended);
    for (int i = 0; i < COUNT; i++) {
      push_cart(plain[i], actions[i] == 1 ? 10 : -10);
      for (int d = 0; d < 4; d++) assert_true(same_number(carts[i][d], plain[i][d]));
      assert_int_equal(ended[i], !(fabs(plain[i][0]) <= 2.4 && fabs(plain[i][2]) <= 24 * M_PI / 360));
    }
  }
}

static void mountaincar_pushed_along_arrives_at_step_122(void **state) {
  (void)state;
  shoal_vector *vector = make("MountainCar-v0", 0);
  uint8_t end = SHOAL_GOES_ON;
  uint32_t steps = 0;
  for (float reward; end == SHOAL_GOES_ON; steps++) {
    float action = shoal_vector_observations(vector)[1] >= 0 ? 2 : 0;
    shoal_vector_step(vector, &action, &reward, &end);
  }
  assert_int_equal(steps, 122);
  assert_int_equal(end, SHOAL_TERMINATED);
  shoal_vector_destroy(vector);
}

/* The rule that the authors of the lander wrote: tilt towards the middle, come down slowly. */
static float lander_rule(const float *seen) {
  float angle = fmaxf(-0.4f, fminf(0.4f, seen[0] * 0.5f + seen[2]));
  float turn = (angle - seen[4]) * 0.5f - seen[5];
  float rise = (0.55f * fabsf(seen[0]) - seen[1]) * 0.5f - seen[3] * 0.5f;
  if (seen[6] + seen[7] > 0) {
    turn = 0;
    rise = -seen[3] * 0.5f;
  }
  if (rise > fabsf(turn) && rise > 0.05f) return 2;
  return turn < -0.05f ? 3 : turn > 0.05f ? 1 : 0;
}

/* ---- our own ---- */

/* Of the ways that leave room for its whole length, the one towards the food; else the one with most room. */
static float snake_rule(const float *seen) {
  const float *ahead = seen + 48, *room = seen + 55, length = seen[60];
  const float wanted[3] = {ahead[0], -ahead[1], ahead[1]};
  int best = 0;
  float best_worth = -INFINITY;
  for (int i = 0; i < 3; i++) {
    float worth = room[i] >= length ? 10 + wanted[i] : 5 * room[i];
    if (room[i] == 0) worth = -1;
    if (worth > best_worth) {
      best = i;
      best_worth = worth;
    }
  }
  return (float)best;
}

/* Where it has not been, towards the exit; else back. */
static float maze_rule(const float *seen) {
  const float *fresh = seen + 8, *back = seen + 16, *exit = seen + 20;
  const float wanted[4] = {exit[1], exit[0], -exit[1], -exit[0]};
  int best = -1;
  for (int w = 0; w < 4; w++)
    if (fresh[w] == 1 && (best < 0 || wanted[w] > wanted[best])) best = w;
  for (int w = 0; best < 0 && w < 4; w++)
    if (back[w] == 1) best = w;
  return best < 0 ? 0 : (float)best;
}

typedef struct score {
  double mean;
  uint32_t terminated;
} score;

static score play(const char *name, float (*rule)(const float *seen), uint32_t episodes) {
  score s = {0};
  for (uint32_t e = 0; e < episodes; e++) {
    shoal_vector *vector = make(name, e);
    float reward;
    uint8_t end = SHOAL_GOES_ON;
    while (end == SHOAL_GOES_ON) {
      float action = rule(shoal_vector_observations(vector));
      shoal_vector_step(vector, &action, &reward, &end);
      s.mean += (double)reward / episodes;
    }
    s.terminated += end == SHOAL_TERMINATED;
    shoal_vector_destroy(vector);
  }
  return s;
}

/* What is seen is enough to be good at it: a rule without memory solves it. */
static void a_snake_that_looks_lives_long(void **state) {
  (void)state;
  score s = play("Snake-v0", snake_rule, 100);
  print_message("snake: %.3f\n", s.mean);
  assert_true(s.mean >= shoal_env_find("Snake-v0")->solved);
}

static void a_maze_is_solved_without_memory(void **state) {
  (void)state;
  score s = play("Maze-v0", maze_rule, 1000);
  print_message("maze: %.3f\n", s.mean);
  assert_int_equal(s.terminated, 1000); /* every exit can be reached */
  assert_true(s.mean >= shoal_env_find("Maze-v0")->solved);
}

static float always_straight(const float *seen) {
  (void)seen;
  return 0;
}

static void a_lander_lands_by_the_known_rule(void **state) {
  (void)state;
  if (!shoal_env_find("LunarLander-v3")) skip();
  score s = play("LunarLander-v3", lander_rule, 100);
  print_message("lander: %.1f\n", s.mean);
  assert_true(s.mean >= 200);
  assert_true(play("LunarLander-v3", always_straight, 100).mean < 0);
}

static void who_does_not_look_fails(void **state) {
  (void)state;
  assert_true(play("Snake-v0", always_straight, 100).mean < 1);
  assert_true(play("Maze-v0", always_straight, 100).mean < 0);
}

static void a_snake_eats_and_grows(void **state) {
  (void)state;
  shoal_vector *vector = make("Snake-v0", 3);
  float length = shoal_vector_observations(vector)[60];
  assert_true(length == 3.0f / 144);
  for (uint32_t eaten = 0; eaten < 10;) {
    float action = snake_rule(shoal_vector_observations(vector)), reward;
    uint8_t end;
    shoal_vector_step(vector, &action, &reward, &end);
    assert_int_equal(end, SHOAL_GOES_ON);
    if (reward == 1.0f) eaten++;
    assert_true(shoal_vector_observations(vector)[60] == (float)(3 + eaten) / 144);
  }
  shoal_vector_destroy(vector);
}

/* Round and round on four fields: 144 steps, then it starves. */
static void a_snake_without_food_starves(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    shoal_vector *vector = make("Snake-v0", seed);
    uint32_t hungry = 0;
    for (;;) {
      float action = 2, reward;
      uint8_t end;
      shoal_vector_step(vector, &action, &reward, &end);
      hungry = reward == 1.0f ? 0 : hungry + 1;
      if (end == SHOAL_GOES_ON) continue;
      assert_int_equal(end, SHOAL_TERMINATED);
      assert_true(reward == -1.0f);
      assert_true(hungry <= 144);
      break;
    }
    if (seed == 0) assert_int_equal(hungry, 144);
    shoal_vector_destroy(vector);
  }
}

static void every_maze_is_another(void **state) {
  (void)state;
  shoal_vector *a = make("Maze-v0", 1), *b = make("Maze-v0", 2);
  const shoal_env_kind *kind = shoal_env_find("Maze-v0");
  assert_memory_not_equal(shoal_vector_state(a, 0), shoal_vector_state(b, 0), 64);
  shoal_vector_reset(b, 1);
  assert_memory_equal(shoal_vector_state(a, 0), shoal_vector_state(b, 0), kind->bytes);
  shoal_vector_destroy(a);
  shoal_vector_destroy(b);
}

/* ---- all of them ---- */

static void kinds_are_found_by_their_names(void **state) {
  (void)state;
  const shoal_env_kind *found;
  shoal_error err;
  for (int k = 0; shoal_env_kinds[k]; k++) {
    const shoal_env_kind *kind = shoal_env_kinds[k];
    assert_ptr_equal(shoal_env_find(kind->name), kind);
    assert_int_equal(shoal_env_need(&found, kind->name, &err), SHOAL_OK);
    assert_ptr_equal(found, kind);
    assert_true(kind->observation > 0 && kind->observation <= OBSERVATION_MAX && kind->bytes <= STATE_MAX);
    assert_true(kind->choices ? kind->choices >= 2 && kind->action_width == 1
                              : kind->action_low < kind->action_high && kind->action_width <= WIDTH_MAX);
  }
  assert_null(shoal_env_find("CartPole"));
  assert_int_equal(shoal_env_need(&found, "CartPole-v2", &err), SHOAL_NOT_FOUND);
  assert_non_null(strstr(err.text, "did you mean 'CartPole-v"));
  if (shoal_env_find("LunarLander-v3")) return;
  assert_int_equal(shoal_env_need(&found, "LunarLander-v3", &err), SHOAL_UNSUPPORTED);
  assert_non_null(strstr(err.text, "libbox2d-dev"));
}

static void act_at_random(const shoal_env_kind *kind, shoal_key key, uint64_t t, float *action) {
  for (uint32_t i = 0; i < kind->action_width; i++) {
    float u = shoal_random_uniform(key, t * WIDTH_MAX + i);
    action[i] = kind->choices ? floorf(u * (float)kind->choices) : 3 * (u - 0.5f) * kind->action_high;
  }
}

static void episodes_are_a_function_of_seed_and_actions(void **state) {
  (void)state;
  for (int k = 0; shoal_env_kinds[k]; k++) {
    const shoal_env_kind *kind = shoal_env_kinds[k];
    shoal_vector *a = make(kind->name, 12), *b = make(kind->name, 11);
    shoal_vector_reset(b, 12);
    for (uint64_t t = 0; t < 500; t++) {
      float action[WIDTH_MAX], reward[2];
      uint8_t end[2];
      act_at_random(kind, shoal_key_make(4, SHOAL_FOR_TOY, 0, 0), t, action);
      shoal_vector_step(a, action, &reward[0], &end[0]);
      shoal_vector_step(b, action, &reward[1], &end[1]);
      assert_true(reward[0] == reward[1] && end[0] == end[1]);
      assert_memory_equal(shoal_vector_observations(a), shoal_vector_observations(b),
                          kind->observation * sizeof(float));
      for (uint32_t i = 0; i < kind->observation; i++) assert_true(isfinite(shoal_vector_observations(a)[i]));
    }
    shoal_vector_destroy(a);
    shoal_vector_destroy(b);
  }
}

/* Whole eights and a rest, more than go in one block, and some that no episode ever had. */
static void what_is_seen_at_once_is_what_observe_says(void **state) {
  (void)state;
  enum { COUNT = 277, STEPS = 40, WIDE_MAX = 16 };
  static uint8_t states[2][COUNT * STATE_MAX];
  static float actions[COUNT * WIDTH_MAX], rewards[2][COUNT], seen[2][COUNT * WIDE_MAX];
  static bool ended[2][COUNT];
  static shoal_pcg64 randoms[2][COUNT];
  uint32_t compared = 0;
  for (int k = 0; shoal_env_kinds[k]; k++) {
    const shoal_env_kind *kind = shoal_env_kinds[k];
    assert_true((kind->step_seen != NULL) == (kind->reset_seen != NULL));
    if (!kind->step_seen) continue;
    assert_in_range(kind->observation, 1, WIDE_MAX);
    size_t bytes = COUNT * kind->bytes, wide = COUNT * kind->observation * sizeof(float);
    memset(states, 0, sizeof states);
    for (uint32_t i = 0; i < COUNT; i++) {
      shoal_pcg64_seed(&randoms[0][i], i);
      randoms[1][i] = randoms[0][i];
      kind->reset(states[0] + i * kind->bytes, &randoms[0][i]);
      kind->reset_seen(states[1] + i * kind->bytes, &randoms[1][i], seen[1] + i * kind->observation);
    }
    for (uint64_t t = 0; t < STEPS; t++) {
      kind->observe(states[0], COUNT, seen[0]);
      assert_memory_equal(seen[0], seen[1], wide);
      assert_memory_equal(states[0], states[1], bytes);
      assert_memory_equal(randoms[0], randoms[1], sizeof randoms[0]);
      const double huge = 1e60;
      for (uint32_t i = 0; t == STEPS / 2 && i < 2 * COUNT; i++)
        if (i % COUNT % 20 == 3)
          memcpy(states[i / COUNT] + (i % COUNT + 1) * kind->bytes - sizeof huge, &huge, sizeof huge);
      for (uint32_t i = 0; i < COUNT; i++)
        act_at_random(kind, shoal_key_make(8, SHOAL_FOR_TOY, t, 0), i, actions + i * kind->action_width);
      kind->step(states[0], COUNT, actions, randoms[0], rewards[0], ended[0]);
      kind->step_seen(states[1], COUNT, actions, randoms[1], rewards[1], ended[1], seen[1]);
      assert_memory_equal(rewards[0], rewards[1], sizeof rewards[0]);
      assert_memory_equal(ended[0], ended[1], sizeof ended[0]);
    }
    compared++;
  }
  assert_true(compared > 0);
}

static void pictures_show_what_changes(void **state) {
  (void)state;
  enum { SIDE = 100 };
  static uint8_t before[SIDE * SIDE], after[SIDE * SIDE];
  shoal_canvas canvas;
  shoal_canvas_init(&canvas);
  for (int k = 0; shoal_env_kinds[k]; k++) {
    const shoal_env_kind *kind = shoal_env_kinds[k];
    shoal_vector *vector = make(kind->name, 6);
    kind->draw(shoal_vector_state(vector, 0), &canvas);
    shoal_canvas_pixels(&canvas, SIDE, SIDE, before);
    bool inks[1 + SHOAL_INKS] = {false};
    for (int i = 0; i < SIDE * SIDE; i++) inks[before[i]] = true;
    assert_true(inks[0] && inks[1 + SHOAL_INK_BODY]);
    for (uint64_t t = 0; t < 7; t++) {
      float action[WIDTH_MAX], reward;
      uint8_t end;
      act_at_random(kind, shoal_key_make(5, SHOAL_FOR_TOY, 0, 0), t, action);
      shoal_vector_step(vector, action, &reward, &end);
    }
    kind->draw(shoal_vector_state(vector, 0), &canvas);
    shoal_canvas_pixels(&canvas, SIDE, SIDE, after);
    assert_memory_not_equal(before, after, sizeof before);
    shoal_vector_destroy(vector);
  }
  shoal_canvas_release(&canvas);
}

/* Bytes that no episode ever had; doubles among them that are huge, tiny or none. */
static void spoil(uint8_t *bytes, size_t count, shoal_key key, uint64_t round) {
  static const double strange[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 1e18, 5e-324, -0.0};
  for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)shoal_random_u32(key, round * STATE_MAX + i);
  if (round % 2 == 0) return;
  for (size_t at = 0; at + sizeof(double) <= count; at += sizeof(double))
    memcpy(bytes + at, &strange[shoal_random_u32(key, round * STATE_MAX + at) % 8], sizeof(double));
}

static void any_bytes_are_a_state_that_does_no_harm(void **state) {
  (void)state;
  enum { COUNT = 3, HEAD = 16 };
  static uint8_t pixels[64 * 48];
  shoal_canvas canvas;
  shoal_text text;
  shoal_canvas_init(&canvas);
  shoal_text_init(&text);
  for (int k = 0; shoal_env_kinds[k]; k++) {
    const shoal_env_kind *kind = shoal_env_kinds[k];
    shoal_vector *vector;
    assert_int_equal(shoal_vector_create(&vector, kind, COUNT, NULL), SHOAL_OK);
    size_t length = shoal_vector_bytes(vector);
    uint8_t *bytes = malloc(length + 1);
    for (uint64_t round = 0; length > 0 && round < 400; round++) {
      shoal_vector_reset(vector, round);
      shoal_vector_save(vector, bytes);
      spoil(bytes + HEAD, COUNT * kind->bytes, shoal_key_make(6, SHOAL_FOR_TOY, (uint64_t)k, 0), round);
      assert_true(shoal_vector_load(vector, bytes, length));
      for (int t = 0; t < 5; t++) {
        static const float wild[] = {NAN, -1, INFINITY, 1e30f, 2};
        float actions[COUNT * WIDTH_MAX], rewards[COUNT];
        uint8_t ends[COUNT];
        for (int i = 0; i < COUNT * WIDTH_MAX; i++) actions[i] = wild[(t + i + (int)round) % 5];
        kind->draw(shoal_vector_state(vector, 0), &canvas);
        shoal_canvas_pixels(&canvas, 64, 48, pixels);
        shoal_text_clear(&text);
        shoal_canvas_json(&canvas, &text);
        shoal_vector_step(vector, actions, rewards, ends);
      }
    }
    free(bytes);
    shoal_vector_destroy(vector);
  }
  shoal_text_release(&text);
  shoal_canvas_release(&canvas);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cartpole_takes_the_known_steps),
      cmocka_unit_test(cartpole_is_the_plain_formula_to_the_last_bit),
      cmocka_unit_test(cartpole_is_the_plain_formula_for_wild_states_too),
      cmocka_unit_test(mountaincar_pushed_along_arrives_at_step_122),
      cmocka_unit_test(a_snake_that_looks_lives_long),
      cmocka_unit_test(a_maze_is_solved_without_memory),
      cmocka_unit_test(who_does_not_look_fails),
      cmocka_unit_test(a_lander_lands_by_the_known_rule),
      cmocka_unit_test(a_snake_eats_and_grows),
      cmocka_unit_test(a_snake_without_food_starves),
      cmocka_unit_test(every_maze_is_another),
      cmocka_unit_test(kinds_are_found_by_their_names),
      cmocka_unit_test(episodes_are_a_function_of_seed_and_actions),
      cmocka_unit_test(what_is_seen_at_once_is_what_observe_says),
      cmocka_unit_test(pictures_show_what_changes),
      cmocka_unit_test(any_bytes_are_a_state_that_does_no_harm),
  };
  return RUN_TESTS(tests);
}
