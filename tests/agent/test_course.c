/* The course: what waits for what, actors that are lost or late, bounded memory, restarts, and the same
 * training whoever plays it. */
#include "agent/course.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "check.h"

enum { STREAMS = 4 };

static shoal_course *course_for(uint32_t lag, bool eager, uint32_t behind_max) {
  shoal_course_config config = {
      .shape = {.kind = shoal_env_find("CartPole-v1"), .envs = 1, .steps = 1, .memory_floats = 0},
      .streams = STREAMS,
      .lag = lag,
      .eager = eager,
      .seed = 7,
      .lease_s = 10,
      .behind_max = behind_max};
  shoal_course *course;
  shoal_error err = {0};
  if (shoal_course_create(&course, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return course;
}

static shoal_course *course_of(uint32_t lag, bool eager) { return course_for(lag, eager, 0); }

/* What an actor makes of a unit: its number, its version and where it began are in where it ends. */
static shoal_rollout *play(const shoal_play_unit *unit) {
  shoal_rollout_shape shape = {.kind = shoal_env_find("CartPole-v1"), .envs = 1, .steps = 1};
  shoal_rollout *rollout;
  assert_int_equal(shoal_rollout_create(&rollout, &shape, NULL), SHOAL_OK);
  rollout->number = unit->number;
  rollout->version = unit->version;
  rollout->stream = unit->stream;
  uint64_t before = shoal_digest(unit->state.bytes, unit->state.length);
  shoal_text_addf(&rollout->state, "%llu %llu %llx", (unsigned long long)unit->number,
                  (unsigned long long)unit->version, (unsigned long long)before);
  return rollout;
}

static shoal_play_unit take(shoal_course *course, const char *actor, double now) {
  const shoal_play_unit *unit;
  assert_true(shoal_course_take(course, actor, now, &unit));
  return *unit;
}

static bool has_nothing(shoal_course *course, double now) {
  const shoal_play_unit *unit;
  return !shoal_course_take(course, "idle", now, &unit);
}

static void play_round(shoal_course *course) {
  const shoal_play_unit *unit;
  for (int i = 0; i < STREAMS; i++) {
    assert_true(shoal_course_take(course, "actor", 0, &unit));
    assert_true(shoal_course_done(course, play(unit), "actor", 0));
  }
}

static shoal_course_view look(const shoal_course *course) {
  shoal_course_view view;
  shoal_course_look(course, &view);
  return view;
}

static void without_lag_actors_wait_for_the_learner(void **state) {
  (void)state;
  shoal_course *course = course_of(0, false);
  uint32_t count;
  for (uint64_t round = 0; round < 5; round++) {
    assert_null(shoal_course_round(course, &count));
    play_round(course);
    assert_true(has_nothing(course, 0));
    shoal_rollout *const *rollouts = shoal_course_round(course, &count);
    assert_non_null(rollouts);
    assert_int_equal(count, STREAMS);
    for (uint32_t i = 0; i < count; i++) {
      assert_int_equal(rollouts[i]->number, round * STREAMS + i);
      assert_int_equal(rollouts[i]->version, round);
    }
    shoal_course_learned(course, round + 1);
  }
  shoal_course_destroy(course);
}

static void with_lag_one_round_more_is_played(void **state) {
  (void)state;
  shoal_course *course = course_of(1, false);
  uint32_t count;
  play_round(course); /* round 0, version 0 */
  play_round(course); /* round 1, version 0 */
  assert_true(has_nothing(course, 0));
  shoal_course_learned(course, 1);
  assert_int_equal(shoal_course_oldest(course), 0); /* for round 1, should it be played again */
  play_round(course);                               /* round 2, version 1 */
  assert_true(has_nothing(course, 0));
  for (uint64_t round = 1; round < 3; round++) {
    shoal_rollout *const *rollouts = shoal_course_round(course, &count);
    assert_non_null(rollouts);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(rollouts[i]->version, round - 1);
    shoal_course_learned(course, round + 1);
  }
  shoal_course_destroy(course);
}

static void a_lost_actors_units_are_played_by_others(void **state) {
  (void)state;
  shoal_course *course = course_of(0, false);
  shoal_play_unit first = take(course, "gone", 0), second = take(course, "gone", 0);
  take(course, "here", 0);
  assert_int_equal(look(course).running, 3);
  shoal_course_lost(course, "gone", 1);
  assert_int_equal(look(course).running, 1);
  assert_int_equal(take(course, "here", 1).number, first.number);
  assert_int_equal(take(course, "here", 1).number, second.number);
  assert_int_equal(look(course).given_again, 2);
  shoal_course_destroy(course);
}

static void a_silent_actor_loses_its_unit(void **state) {
  (void)state;
  shoal_course *course = course_of(0, false);
  shoal_play_unit silent = take(course, "silent", 0);
  take(course, "slow", 8);
  assert_float_equal(shoal_course_tick(course, 1), 10, 0);
  assert_float_equal(shoal_course_tick(course, 10), 18, 0);
  assert_int_equal(take(course, "other", 10).number, silent.number);
  assert_true(isinf(shoal_course_tick(course, 100)));
  shoal_course_destroy(course);
}

static void the_first_rollout_counts_and_the_second_is_late(void **state) {
  (void)state;
  shoal_course *course = course_of(0, false);
  shoal_play_unit unit = take(course, "slow", 0);
  shoal_rollout *slow = play(&unit), *again = play(&unit);
  shoal_course_tick(course, 20);
  assert_int_equal(take(course, "quick", 20).number, unit.number);
  assert_true(shoal_course_done(course, slow, "slow", 21)); /* overdue, but first */
  assert_false(shoal_course_done(course, again, "quick", 22));
  assert_int_equal(look(course).late, 1);
  assert_int_equal(look(course).units, 1);
  shoal_course_destroy(course);
}

static void what_nobody_asked_for_is_refused(void **state) {
  (void)state;
  shoal_course *course = course_of(0, false);
  shoal_play_unit unit = take(course, "actor", 0), strange = unit;
  strange.number += STREAMS; /* the next round's */
  assert_false(shoal_course_done(course, play(&strange), "actor", 0));
  strange = unit;
  strange.version = 1;
  assert_false(shoal_course_done(course, play(&strange), "actor", 0));
  strange = unit;
  strange.stream = STREAMS;
  assert_false(shoal_course_done(course, play(&strange), "actor", 0));
  strange = unit;
  strange.stream = strange.number = 2; /* not given out yet */
  assert_false(shoal_course_done(course, play(&strange), "actor", 0));
  assert_int_equal(look(course).late, 4);
  assert_true(shoal_course_done(course, play(&unit), "actor", 0));
  shoal_course_destroy(course);
}

static void eager_units_have_the_newest_version_and_rounds_are_what_comes_first(void **state) {
  (void)state;
  shoal_course *course = course_of(0, true);
  uint32_t count;
  shoal_play_unit slow = take(course, "slow", 0);
  assert_int_equal(slow.number, 0);
  shoal_rollout *old = play(&slow);
  for (int i = 0; i < STREAMS; i++) {
    shoal_play_unit unit = take(course, "quick", 0);
    assert_int_not_equal(unit.stream, 0);
    assert_true(shoal_course_done(course, play(&unit), "quick", 0));
  }
  shoal_rollout *const *rollouts = shoal_course_round(course, &count);
  assert_non_null(rollouts);
  assert_int_equal(rollouts[3]->stream, 1); /* its second */
  shoal_course_learned(course, 5);
  assert_int_equal(take(course, "quick", 0).version, 5);
  assert_true(shoal_course_done(course, old, "slow", 0)); /* version 0: the learner's to judge */
  shoal_course_destroy(course);
}

static void memory_is_bounded_however_quick_actors_are(void **state) {
  (void)state;
  shoal_course *course = course_of(0, true);
  const shoal_play_unit *unit;
  uint32_t played = 0, count;
  while (shoal_course_take(course, "quick", 0, &unit)) {
    assert_true(shoal_course_done(course, play(unit), "quick", 0));
    played++;
    assert_true(played <= 2 * STREAMS);
  }
  assert_int_equal(played, 2 * STREAMS);
  assert_non_null(shoal_course_round(course, &count));
  shoal_course_learned(course, 1);
  played = 0;
  for (; shoal_course_take(course, "quick", 0, &unit); played++)
    assert_true(shoal_course_done(course, play(unit), "quick", 0));
  assert_int_equal(played, STREAMS);
  shoal_course_destroy(course);
}

/* A digest of all that is learned in so many rounds. Actors are chosen by chance, and with `faults` they are
 * lost, silent, late and twofold; now and then the course is written and read again. */
static uint64_t train(uint32_t lag, uint64_t rounds, bool faults, uint64_t seed) {
  shoal_course *course = course_of(lag, false);
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_SIMULATION, 0, 0);
  uint64_t digest = 0, draw = 0;
  double now = 0;
  shoal_text learned = {0};
  for (uint64_t round = 0; round < rounds;) {
    char actor[16];
    snprintf(actor, sizeof actor, "a%u", (unsigned)shoal_random_below(key, draw++, 5));
    const shoal_play_unit *unit;
    uint32_t count;
    uint64_t fault = faults ? shoal_random_below(key, draw++, 8) : 7;
    now += fault == 0 ? 11 : 0.5;
    if (fault == 1) shoal_course_lost(course, actor, now);
    if (shoal_course_take(course, actor, now, &unit) && fault != 2) {
      shoal_rollout *rollout = play(unit), *twin = play(unit);
      shoal_course_done(course, rollout, actor, now);
      if (fault == 3)
        assert_false(shoal_course_done(course, twin, actor, now));
      else
        shoal_rollout_destroy(twin);
    }
    shoal_rollout *const *rollouts = shoal_course_round(course, &count);
    if (rollouts && (!faults || fault > 4)) {
      for (uint32_t i = 0; i < count; i++)
        shoal_text_add(&learned, rollouts[i]->state.bytes, rollouts[i]->state.length + 1);
      shoal_course_learned(course, ++round);
    }
    if (fault == 4) {
      shoal_text bytes = {0};
      shoal_error err = {0};
      shoal_course_write(course, &bytes);
      shoal_course_destroy(course);
      course = course_of(lag, false);
      if (shoal_course_read(course, bytes.bytes, bytes.length, &err) != SHOAL_OK) fail_msg("%s", err.text);
      shoal_text_release(&bytes);
    }
  }
  digest = shoal_digest(learned.bytes, learned.length);
  shoal_text_release(&learned);
  shoal_course_destroy(course);
  return digest;
}

static void what_is_learned_does_not_depend_on_who_plays(void **state) {
  (void)state;
  for (uint32_t lag = 0; lag < 3; lag++) {
    uint64_t calm = train(lag, 30, false, 1);
    for (uint64_t seed = 1; seed <= 50; seed++) assert_int_equal(train(lag, 30, true, seed), calm);
    assert_int_not_equal(train(lag, 29, false, 1), calm);
  }
}

static void damaged_bytes_are_refused(void **state) {
  (void)state;
  shoal_course *course = course_of(0, false);
  shoal_text bytes = {0};
  play_round(course);
  shoal_course_learned(course, 1);
  shoal_course_write(course, &bytes);
  shoal_course_destroy(course);
  for (size_t length = 0; length < bytes.length; length++) {
    course = course_of(0, false);
    assert_int_equal(shoal_course_read(course, bytes.bytes, length, NULL), SHOAL_INVALID);
    shoal_course_destroy(course);
  }
  shoal_text_release(&bytes);
}

static shoal_course *reread(shoal_course *course, uint32_t lag, bool eager) {
  shoal_text bytes = {0};
  shoal_error err = {0};
  shoal_course_write(course, &bytes);
  shoal_course_destroy(course);
  course = course_of(lag, eager);
  if (shoal_course_read(course, bytes.bytes, bytes.length, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_text_release(&bytes);
  return course;
}

static uint64_t learn_round(shoal_course *course, uint64_t version) {
  uint32_t count;
  assert_non_null(shoal_course_round(course, &count));
  shoal_course_learned(course, ++version);
  return version;
}

/* Streams that are ahead of others, and back to rounds that wait for all: versions are those that there are,
 * also where it is written again before old ones are out of use. */
static void it_goes_on_in_the_other_way(void **state) {
  (void)state;
  enum { LAG = 2 };
  shoal_course *course = course_of(0, true);
  uint64_t version = 0;
  for (int i = 0; i < 3 * STREAMS; i++) { /* the first stream is given to nobody else, and never comes in */
    if (i == 0) (void)take(course, "slow", 0);
    shoal_play_unit unit = take(course, "quick", 0);
    assert_true(unit.stream != 0 && shoal_course_done(course, play(&unit), "quick", 0));
    if (i % STREAMS == STREAMS - 1) version = learn_round(course, version);
  }
  assert_int_equal(version, 3);
  for (uint64_t round = 3; round < 8; round++) {
    course = reread(course, LAG, false);
    for (uint32_t i = 0; i < STREAMS; i++) {
      shoal_play_unit unit = take(course, "actor", 0);
      assert_int_equal(unit.number, round * STREAMS + i);
      assert_int_equal(unit.version, round < 3 + LAG ? 3 : round - LAG);
      assert_true(unit.version >= shoal_course_oldest(course));
      assert_true(i == 0 || round > 3 || unit.state.length > 0);
      assert_true(shoal_course_done(course, play(&unit), "actor", 0));
    }
    version = learn_round(course, version);
  }
  course = reread(course, 0, true);
  assert_int_equal(take(course, "actor", 0).version, version);
  shoal_course_destroy(course);
}

static void leases_that_prove_too_short_become_longer(void **state) {
  (void)state;
  shoal_course *course = course_of(0, true);
  const shoal_play_unit *unit;
  uint32_t count;
  shoal_play_unit slow = take(course, "slow", 0);
  shoal_rollout *first = play(&slow), *second = play(&slow);
  assert_int_equal(take(course, "other", 11).number, slow.number);
  assert_true(shoal_course_done(course, first, "slow", 15));
  (void)take(course, "slow", 40);
  assert_true(shoal_course_tick(course, 59) == 60); /* 20 seconds, and not 10 */
  shoal_course_lost(course, "slow", 59);
  assert_false(shoal_course_done(course, second, "other", 59));
  (void)take(course, "slow", 60);
  assert_true(shoal_course_tick(course, 61) == 100);
  shoal_course_lost(course, "slow", 61);
  /* While all come in time, the first length is enough. */
  for (int i = 0; i < 300; i++) {
    if (shoal_course_round(course, &count)) shoal_course_learned(course, (uint64_t)i);
    assert_true(shoal_course_take(course, "quick", 100, &unit));
    assert_true(shoal_course_done(course, play(unit), "quick", 100));
  }
  if (shoal_course_round(course, &count)) shoal_course_learned(course, 300);
  (void)take(course, "slow", 200);
  assert_true(shoal_course_tick(course, 201) == 210);
  /* Who left, and sends what it had played, was not slow. */
  shoal_play_unit left = take(course, "left", 200);
  shoal_rollout *last = play(&left);
  shoal_course_lost(course, "left", 201);
  assert_true(shoal_course_done(course, last, "left", 202));
  shoal_course_lost(course, "slow", 202);
  (void)take(course, "slow", 203);
  assert_true(shoal_course_tick(course, 204) == 213);
  shoal_course_destroy(course);
}

/* Only those who were given it: with others' numbers anybody could send what it likes. */
static void who_never_had_a_unit_cannot_hand_it_in(void **state) {
  (void)state;
  shoal_course *course = course_of(0, true);
  shoal_play_unit unit = take(course, "ann", 0);
  assert_false(shoal_course_done(course, play(&unit), "eve", 1));
  assert_true(shoal_course_done(course, play(&unit), "ann", 2));
  assert_int_equal(look(course).late, 1);
  /* Nor is anything overdue of theirs: leases stay as long as they were. */
  for (int i = 0; i < 50; i++) assert_false(shoal_course_done(course, play(&unit), "eve", 10.0 * i));
  (void)take(course, "ann", 1000);
  assert_float_equal(shoal_course_tick(course, 1001), 1010, 0);
  shoal_course_destroy(course);
}

static void versions_that_cannot_be_checked_do_not_count(void **state) {
  (void)state;
  shoal_course *course = course_for(0, true, 3);
  uint64_t version = 0;
  for (; version < 5; version++) {
    play_round(course);
    shoal_course_learned(course, version + 1);
  }
  shoal_play_unit unit = take(course, "ann", 0), older = unit;
  assert_int_equal(unit.version, 5);
  older.version = 4; /* there was no reason to play it with that */
  assert_false(shoal_course_done(course, play(&older), "ann", 0));
  older.version = 0;
  assert_false(shoal_course_done(course, play(&older), "ann", 0));
  older.version = 6;
  assert_false(shoal_course_done(course, play(&older), "ann", 0));
  shoal_play_unit slow = take(course, "slow", 0);
  shoal_rollout *late = play(&slow);
  assert_true(shoal_course_done(course, play(&unit), "ann", 0));
  for (int i = 1; version < 9; i++) { /* four versions further, it is too far behind */
    shoal_play_unit next = take(course, "ann", 0);
    assert_true(shoal_course_done(course, play(&next), "ann", 0));
    if (i % STREAMS == STREAMS - 1) shoal_course_learned(course, ++version);
  }
  assert_false(shoal_course_done(course, late, "slow", 0));
  /* Given to another, it may be played with either version until it was given first, and not before. */
  shoal_course_lost(course, "slow", 0);
  shoal_play_unit again = take(course, "other", 0);
  assert_int_equal(again.number, slow.number);
  assert_true(shoal_course_done(course, play(&again), "other", 0));
  shoal_course_destroy(course);
}

/* What somebody said about where a stream stands is forgotten with the liar, and what others play of it. */
static void a_liars_streams_begin_anew(void **state) {
  (void)state;
  for (int eager = 0; eager < 2; eager++) {
    shoal_course *course = course_of(1, eager);
    shoal_play_unit first = take(course, "liar", 0), good = take(course, "ann", 0);
    assert_true(shoal_course_done(course, play(&first), "liar", 0));
    assert_true(shoal_course_done(course, play(&good), "ann", 0));
    (void)take(course, "bob", 0);
    (void)take(course, "bob", 0);
    shoal_play_unit poisoned = take(course, "cid", 0);
    assert_int_equal(poisoned.stream, first.stream);
    assert_true(poisoned.state.length > 0);
    shoal_rollout *played = play(&poisoned);
    shoal_course_lied(course, "liar", 0);
    assert_int_equal(look(course).anew, 1);
    assert_false(shoal_course_done(course, played, "cid", 0)); /* no lie, and of no use */
    shoal_play_unit anew = take(course, "cid", 0);
    assert_int_equal(anew.stream, first.stream);
    assert_int_equal(anew.state.length, 0);
    assert_int_not_equal(anew.number, poisoned.number);
    assert_int_equal(anew.number % STREAMS, first.stream);
    shoal_play_unit others = take(course, "cid", 0);
    assert_true(others.stream == good.stream && others.state.length > 0);
    assert_true(shoal_course_done(course, play(&anew), "cid", 0));
    shoal_course_lied(course, "liar", 0); /* it has left nothing more */
    assert_int_equal(look(course).anew, 1);
    shoal_course_destroy(course);
  }
}

/* Nor does anybody go on from there after a restart, whether it had been learned from by then or not. */
static void a_liars_streams_begin_anew_after_a_restart(void **state) {
  (void)state;
  for (int later = 0; later < 2; later++) {
    shoal_course *course = course_of(0, false);
    for (int i = 0; i < STREAMS; i++) {
      const char *actor = i == 0 ? "liar" : "ann";
      shoal_play_unit unit = take(course, actor, 0);
      assert_int_equal(unit.stream, i);
      assert_true(shoal_course_done(course, play(&unit), actor, 0));
    }
    if (!later) shoal_course_lied(course, "liar", 0);
    shoal_course_learned(course, 1);
    if (later) shoal_course_lied(course, "liar", 0);
    course = reread(course, 0, false);
    for (int i = 0; i < STREAMS; i++) {
      shoal_play_unit unit = take(course, "ann", 0);
      assert_int_equal(unit.stream, i);
      assert_true(i == 0 ? unit.state.length == 0 : unit.state.length > 0);
      assert_true(shoal_course_done(course, play(&unit), "ann", 0));
    }
    shoal_course_learned(course, 2);
    course = reread(course, 0, false);
    assert_true(take(course, "ann", 0).state.length > 0);
    shoal_course_destroy(course);
  }
}

static void a_unit_that_three_cannot_play_begins_anew(void **state) {
  (void)state;
  shoal_course *course = course_of(0, false);
  uint32_t count;
  play_round(course);
  shoal_course_learned(course, 1);
  shoal_play_unit unit = take(course, "a", 0);
  assert_true(unit.state.length > 0);
  for (int i = 0; i < 3; i++) shoal_course_back(course, unit.number, "stranger", true);
  shoal_course_back(course, unit.number, "a", true);
  shoal_course_back(course, unit.number, "a", true); /* it has it no more */
  assert_int_equal(take(course, "b", 0).number, unit.number);
  shoal_course_back(course, unit.number, "b", false); /* no fault of the unit */
  assert_false(shoal_course_done(course, play(&unit), "b", 0));
  assert_int_equal(take(course, "b", 0).number, unit.number);
  shoal_course_back(course, unit.number, "b", true);
  assert_int_equal(take(course, "c", 0).number, unit.number);
  assert_int_equal(look(course).anew, 0);
  shoal_course_back(course, unit.number, "c", true);
  assert_int_equal(look(course).anew, 1);
  assert_int_equal(look(course).running, 0);
  shoal_play_unit anew = take(course, "d", 0);
  assert_true(anew.stream == unit.stream && anew.number != unit.number && anew.state.length == 0);
  assert_true(shoal_course_done(course, play(&anew), "d", 0));
  /* The round is complete as ever, and it goes on after a restart. */
  for (int i = 1; i < STREAMS; i++) {
    shoal_play_unit other = take(course, "d", 0);
    assert_int_equal(other.number, STREAMS + i);
    assert_true(shoal_course_done(course, play(&other), "d", 0));
  }
  assert_non_null(shoal_course_round(course, &count));
  shoal_course_learned(course, 2);
  course = reread(course, 0, false);
  play_round(course);
  assert_non_null(shoal_course_round(course, &count));
  shoal_course_destroy(course);
}

/* Who is alone and cannot play a unit tries it again, but takes its time: nobody can undo a stream at will. */
static void a_unit_that_one_cannot_play_waits_for_others(void **state) {
  (void)state;
  shoal_course *course = course_of(0, true);
  shoal_play_unit unit = take(course, "a", 0);
  for (int i = 0; i < 2; i++) {
    shoal_course_back(course, unit.number, "a", true);
    for (int other = 1; other < STREAMS; other++)
      assert_int_not_equal(take(course, "a", 10 * i + 1).number, unit.number);
    assert_false(has_nothing(course, 10 * i + 1)); /* it is there for somebody else */
    shoal_course_lost(course, "idle", 0);
    shoal_course_lost(course, "a", 0);
    assert_int_equal(take(course, "a", 10 * (i + 1)).number, unit.number);
  }
  assert_int_equal(look(course).anew, 0);
  shoal_course_back(course, unit.number, "a", true);
  assert_int_equal(look(course).anew, 1);
  shoal_course_destroy(course);
}

static void nobody_holds_more_than_it_may(void **state) {
  (void)state;
  shoal_course *course = course_of(0, true);
  shoal_play_unit first = {0};
  for (int i = 0; i < 20; i++) {
    shoal_course_bound(course, "greedy", 2);
    shoal_play_unit unit = take(course, "greedy", 0.1 * i);
    if (i == 0) first = unit;
    assert_true(look(course).running <= 2);
  }
  shoal_play_unit longest = take(course, "ann", 3);
  take(course, "ann", 4);
  shoal_course_bound(course, "ann", 2);
  assert_int_equal(look(course).running, 3); /* ann's longest; the greedy one's are its own */
  assert_int_equal(take(course, "bob", 4).number, longest.number);
  /* What it had played of one that it has no more counts, if it is the first. */
  assert_true(shoal_course_done(course, play(&first), "greedy", 3));
  shoal_course_destroy(course);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_lag_actors_wait_for_the_learner),
      cmocka_unit_test(with_lag_one_round_more_is_played),
      cmocka_unit_test(a_lost_actors_units_are_played_by_others),
      cmocka_unit_test(a_silent_actor_loses_its_unit),
      cmocka_unit_test(leases_that_prove_too_short_become_longer),
      cmocka_unit_test(the_first_rollout_counts_and_the_second_is_late),
      cmocka_unit_test(what_nobody_asked_for_is_refused),
      cmocka_unit_test(eager_units_have_the_newest_version_and_rounds_are_what_comes_first),
      cmocka_unit_test(memory_is_bounded_however_quick_actors_are),
      cmocka_unit_test(what_is_learned_does_not_depend_on_who_plays),
      cmocka_unit_test(damaged_bytes_are_refused),
      cmocka_unit_test(it_goes_on_in_the_other_way),
      cmocka_unit_test(who_never_had_a_unit_cannot_hand_it_in),
      cmocka_unit_test(versions_that_cannot_be_checked_do_not_count),
      cmocka_unit_test(a_liars_streams_begin_anew),
      cmocka_unit_test(a_liars_streams_begin_anew_after_a_restart),
      cmocka_unit_test(a_unit_that_three_cannot_play_begins_anew),
      cmocka_unit_test(a_unit_that_one_cannot_play_waits_for_others),
      cmocka_unit_test(nobody_holds_more_than_it_may),
  };
  return RUN_TESTS(tests);
}
