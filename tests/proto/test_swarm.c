/* The core of a swarm's member: what it asks of whom, whom it gives what, and that nobody from outside harms
 * it. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "proto/swarm.h"

enum { CHUNKS = 20, CHUNK_BYTES = 16, SERVER = 1, ANY = -1 };

static shoal_swarm *create(shoal_swarm_config config) {
  shoal_swarm *swarm;
  if (config.chunks == 0) config.chunks = CHUNKS;
  config.chunk_bytes = CHUNK_BYTES;
  assert_int_equal(shoal_swarm_create(&swarm, &config, NULL), SHOAL_OK);
  return swarm;
}

static void receive(shoal_swarm *swarm, uint64_t peer, shoal_message message, double now) {
  shoal_swarm_receive(swarm, peer, &message, now);
}

static void have(shoal_swarm *swarm, uint64_t peer, uint32_t first, uint32_t count, double now) {
  receive(swarm, peer, (shoal_message){.kind = SHOAL_MSG_HAVE, .shard = first, .count = count}, now);
}

static void want(shoal_swarm *swarm, uint64_t peer, uint32_t chunk, uint64_t number, bool sole) {
  receive(swarm, peer,
          (shoal_message){.kind = SHOAL_MSG_WANT, .shard = chunk, .lease = number, .count = sole ? 1 : 0}, 0);
}

static void answer(shoal_swarm *swarm, const shoal_letter *question, uint32_t chunk, double now) {
  uint8_t bytes[CHUNK_BYTES] = {0};
  receive(swarm, question->peer,
          (shoal_message){.kind = SHOAL_MSG_CHUNK,
                          .shard = chunk,
                          .lease = question->message.lease,
                          .payload = shoal_blob_of(bytes, sizeof bytes)},
          now);
}

static void not_now(shoal_swarm *swarm, const shoal_letter *question, double now) {
  receive(swarm, question->peer,
          (shoal_message){
              .kind = SHOAL_MSG_CHUNK, .shard = question->message.shard, .lease = question->message.lease},
          now);
}

/* The next letter of a kind; others before it are dropped. False: there is none. */
static bool letter(shoal_swarm *swarm, shoal_message_kind kind, shoal_letter *out) {
  while (shoal_outbox_take(shoal_swarm_outbox(swarm), out)) {
    shoal_message_release(&out->message);
    if (out->message.kind == kind) return true;
  }
  return false;
}

static shoal_letter asked(shoal_swarm *swarm, uint64_t peer, int chunk) {
  shoal_letter out = {0};
  if (!letter(swarm, SHOAL_MSG_WANT, &out)) fail_msg("nobody is asked");
  assert_int_equal(out.peer, peer);
  if (chunk != ANY) assert_int_equal(out.message.shard, chunk);
  return out;
}

static void nobody_asked(shoal_swarm *swarm) {
  shoal_letter out;
  if (letter(swarm, SHOAL_MSG_WANT, &out))
    fail_msg("peer %llu is asked for chunk %u", (unsigned long long)out.peer, out.message.shard);
}

static shoal_swarm_event event_of(shoal_swarm *swarm, shoal_swarm_event_kind kind) {
  shoal_swarm_event event = {0};
  if (!shoal_swarm_next(swarm, &event)) fail_msg("nothing happened");
  assert_int_equal(event.kind, kind);
  shoal_blob_release(event.payload);
  return event;
}

static void no_event(shoal_swarm *swarm) {
  shoal_swarm_event event;
  assert_false(shoal_swarm_next(swarm, &event));
}

/* ---- asking ---- */

static void the_rarest_chunk_is_asked_for_first(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){0});
  for (uint64_t peer = 2; peer <= 4; peer++) assert_true(shoal_swarm_join(s, peer, false, 0));
  have(s, 2, 0, CHUNKS, 0);
  have(s, 3, 0, CHUNKS - 1, 0);
  have(s, 4, 0, 7, 0);
  have(s, 4, 8, CHUNKS - 9, 0);
  nobody_asked(s);
  for (uint32_t c = 0; c < CHUNKS; c++) shoal_swarm_want(s, c, false, 0);
  assert_true(shoal_swarm_next_tick(s) == 0);
  shoal_swarm_tick(s, 0);
  asked(s, 2, CHUNKS - 1); /* which only it has */
  asked(s, 3, 7);          /* which 4 has not */
  asked(s, 4, ANY);
  nobody_asked(s);
  shoal_swarm_destroy(s);
}

static void ties_are_broken_by_the_seed(void **state) {
  (void)state;
  uint32_t seen[CHUNKS] = {0}, different = 0;
  for (uint64_t seed = 0; seed < 50; seed++) {
    shoal_swarm *s = create((shoal_swarm_config){.wants_all = true, .seed = seed});
    shoal_swarm_join(s, 2, false, 0);
    have(s, 2, 0, CHUNKS, 0);
    if (seen[asked(s, 2, ANY).message.shard]++ == 0) different++;
    shoal_swarm_destroy(s);
  }
  assert_true(different > CHUNKS / 2);
}

static void urgent_chunks_come_before_rarer_ones(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){0});
  shoal_swarm_join(s, 2, false, 0);
  shoal_swarm_join(s, 3, false, 0);
  have(s, 3, 0, 10, 0);
  for (uint32_t c = 0; c < CHUNKS; c++) shoal_swarm_want(s, c, c == 4, 0);
  have(s, 2, 0, CHUNKS, 0);
  asked(s, 2, 4);
  shoal_swarm_destroy(s);
}

static void a_quick_neighbour_gets_more_questions(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.wants_all = true, .chunks = 500, .ahead = 8});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, 500, 0);
  shoal_letter first = asked(s, 2, ANY);
  nobody_asked(s);
  answer(s, &first, first.message.shard, 0.01);
  assert_true(shoal_swarm_count(s).asked == 8);
  shoal_swarm_destroy(s);
}

static void a_slow_neighbour_gets_one_question(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.wants_all = true, .chunks = 500});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, 500, 0);
  shoal_letter first = asked(s, 2, ANY);
  answer(s, &first, first.message.shard, 3);
  assert_int_equal(shoal_swarm_count(s).asked, 1);
  shoal_swarm_destroy(s);
}

static void a_late_question_is_asked_elsewhere_and_taken_back(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.chunks = 1, .wants_all = true, .patience_s = 1});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, 1, 0);
  shoal_letter slow = asked(s, 2, 0);
  shoal_swarm_join(s, 3, false, 0);
  have(s, 3, 0, 1, 0);
  nobody_asked(s);
  shoal_swarm_tick(s, 0.5);
  nobody_asked(s);
  for (double now = 0.75; now < 30; now += 0.25) shoal_swarm_tick(s, now);
  shoal_letter quick = asked(s, 3, 0);
  answer(s, &quick, 0, 30);
  event_of(s, SHOAL_SWARM_ARRIVED);
  shoal_swarm_checked(s, 3, 0, true, 30);
  shoal_letter back;
  assert_true(letter(s, SHOAL_MSG_HAVE, &back));
  assert_int_equal(back.peer, 2);
  assert_int_equal(shoal_swarm_count(s).asked, 0);
  answer(s, &slow, 0, 31); /* it was under way already */
  no_event(s);
  assert_int_equal(shoal_swarm_count(s).twice, 1);
  shoal_swarm_destroy(s);
}

static void the_last_chunk_is_asked_of_a_quicker_neighbour_too(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.chunks = 3, .wants_all = true});
  shoal_swarm_join(s, 2, false, 0);
  shoal_swarm_join(s, 3, false, 0);
  have(s, 2, 0, 3, 0);
  have(s, 3, 0, 3, 0);
  shoal_letter slow = asked(s, 2, ANY), quick = asked(s, 3, ANY);
  for (double now = 0.01; now < 0.05; now += 0.01) {
    answer(s, &quick, quick.message.shard, now);
    shoal_swarm_event event = event_of(s, SHOAL_SWARM_ARRIVED);
    shoal_swarm_checked(s, 3, event.chunk, true, now);
    if (!letter(s, SHOAL_MSG_WANT, &quick)) break;
    assert_int_equal(quick.peer, 3);
  }
  shoal_swarm_tick(s, 2);
  asked(s, 3, (int)slow.message.shard);
  shoal_swarm_destroy(s);
}

static void who_leaves_is_replaced(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.chunks = 1, .wants_all = true});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, 1, 0);
  asked(s, 2, 0);
  shoal_swarm_join(s, 3, false, 0);
  have(s, 3, 0, 1, 0);
  nobody_asked(s);
  shoal_swarm_leave(s, 2, 0.1);
  asked(s, 3, 0);
  shoal_swarm_destroy(s);
}

static void not_now_is_asked_elsewhere_and_later_again(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.chunks = 1, .wants_all = true});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, 1, 0);
  shoal_letter question = asked(s, 2, 0);
  not_now(s, &question, 0.1);
  nobody_asked(s);
  shoal_swarm_join(s, 3, false, 0.1);
  have(s, 3, 0, 1, 0.1);
  question = asked(s, 3, 0);
  not_now(s, &question, 0.2);
  for (double now = 0.25; now < 2; now += 0.25) shoal_swarm_tick(s, now);
  asked(s, 2, 0);
  shoal_swarm_destroy(s);
}

/* ---- the server is asked ---- */

static void who_wants_all_takes_any_chunk_from_the_server(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.wants_all = true, .patience_s = 1});
  shoal_swarm_join(s, SERVER, true, 0);
  shoal_letter any = asked(s, SERVER, ANY);
  assert_int_equal(any.message.shard, UINT32_MAX);
  assert_int_equal(any.message.count, 0);
  nobody_asked(s);
  answer(s, &any, 7, 0.5);
  assert_int_equal(event_of(s, SHOAL_SWARM_ARRIVED).chunk, 7);
  any = asked(s, SERVER, ANY);
  not_now(s, &any, 1);
  nobody_asked(s);
  shoal_swarm_destroy(s);
}

static void only_who_was_refused_for_long_says_that_nobody_else_gives_it(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.chunks = 2, .patience_s = 1});
  shoal_swarm_join(s, SERVER, true, 0);
  shoal_swarm_join(s, 2, false, 0);
  shoal_swarm_want(s, 1, false, 0);
  shoal_swarm_tick(s, 0);
  shoal_letter question = asked(s, SERVER, 1);
  assert_int_equal(question.message.count, 0);
  double now = 0;
  while (question.message.count == 0 && now < 60) {
    not_now(s, &question, now);
    while (!letter(s, SHOAL_MSG_WANT, &question)) shoal_swarm_tick(s, now += 0.25);
    assert_int_equal(question.peer, SERVER);
  }
  assert_true(now >= 1 && now < 60);
  shoal_swarm_destroy(s);
}

/* The server has refused an urgent chunk long ago; but as long as others give what they have, it is not told that nobody
 * does. */
static void who_gets_chunks_from_others_does_not_press_the_server(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){0});
  shoal_swarm_join(s, SERVER, true, 0);
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 1, CHUNKS - 1, 0);
  for (uint32_t c = 0; c < CHUNKS; c++) shoal_swarm_want(s, c, true, 0); /* the first, nobody has */
  shoal_letter question, waiting[CHUNKS];
  uint32_t waiting_count = 0, got = 0;
  bool pressed = false;
  double now = 0, given = 0;
  for (; !pressed && now < 20; now += 0.125) {
    shoal_swarm_tick(s, now);
    if (waiting_count > 0 &&
        got < CHUNKS / 2) { /* the neighbour gives one at a time, and in the end no more */
      question = waiting[--waiting_count];
      answer(s, &question, question.message.shard, now);
      shoal_swarm_event event = event_of(s, SHOAL_SWARM_ARRIVED);
      shoal_swarm_checked(s, event.peer, event.chunk, true, now);
      got++;
      given = now;
    }
    while (letter(s, SHOAL_MSG_WANT, &question)) {
      pressed |= question.peer == SERVER && question.message.count == 1;
      if (question.peer == SERVER)
        not_now(s, &question, now);
      else if (waiting_count < CHUNKS)
        waiting[waiting_count++] = question;
    }
  }
  assert_int_equal(got, CHUNKS / 2);
  assert_true(pressed && given > 1 && now > given + 0.5);
  shoal_swarm_destroy(s);
}

static void what_a_neighbour_has_is_not_asked_of_the_server(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){0});
  shoal_swarm_join(s, SERVER, true, 0);
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 5, 1, 0);
  shoal_swarm_want(s, 5, false, 0);
  shoal_swarm_want(s, 6, false, 0);
  shoal_swarm_tick(s, 0);
  shoal_letter one, two;
  assert_true(letter(s, SHOAL_MSG_WANT, &one) && letter(s, SHOAL_MSG_WANT, &two));
  if (one.peer == 2) {
    shoal_letter swap = one;
    one = two;
    two = swap;
  }
  assert_int_equal(one.peer, SERVER);
  assert_int_equal(one.message.shard, 6);
  assert_int_equal(two.message.shard, 5);
  nobody_asked(s);
  shoal_swarm_destroy(s);
}

/* ---- bad chunks ---- */

static void a_bad_chunk_is_reported_and_its_sender_never_asked_again(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.wants_all = true});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, CHUNKS, 0);
  shoal_letter question = asked(s, 2, ANY);
  answer(s, &question, question.message.shard, 0.1);
  shoal_swarm_event event = event_of(s, SHOAL_SWARM_ARRIVED);
  shoal_letter more;
  while (letter(s, SHOAL_MSG_WANT, &more)) assert_int_equal(more.peer, 2);
  shoal_swarm_checked(s, 2, event.chunk, false, 0.1);
  event = event_of(s, SHOAL_SWARM_BAD);
  assert_int_equal(event.peer, 2);
  assert_int_equal(event.chunk, question.message.shard);
  assert_false(shoal_swarm_is_here(s, event.chunk));
  have(s, 2, 0, CHUNKS, 0.2);
  for (double now = 0.25; now < 100; now += 0.25) shoal_swarm_tick(s, now);
  nobody_asked(s);
  shoal_swarm_join(s, 3, false, 100);
  have(s, 3, event.chunk, 1, 100);
  asked(s, 3, (int)event.chunk);
  shoal_swarm_destroy(s);
}

static void a_chunk_that_is_too_long_is_bad(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.wants_all = true});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, CHUNKS, 0);
  shoal_letter question = asked(s, 2, ANY);
  uint8_t bytes[CHUNK_BYTES + 1] = {0};
  receive(s, 2,
          (shoal_message){.kind = SHOAL_MSG_CHUNK,
                          .shard = question.message.shard,
                          .lease = question.message.lease,
                          .payload = shoal_blob_of(bytes, sizeof bytes)},
          0.1);
  event_of(s, SHOAL_SWARM_BAD);
  no_event(s);
  nobody_asked(s);
  shoal_swarm_destroy(s);
}

/* ---- giving ---- */

static shoal_swarm *giver(uint32_t slots, uint32_t peers) {
  shoal_swarm *s = create((shoal_swarm_config){.slots = slots, .ahead = 4});
  for (uint32_t c = 0; c < CHUNKS; c++) shoal_swarm_has(s, c, 0);
  for (uint32_t p = 0; p < peers; p++) assert_true(shoal_swarm_join(s, 2 + p, false, 0));
  return s;
}

static void give(shoal_swarm *s, const shoal_swarm_event *event) {
  shoal_swarm_give(s, event->peer, event->question, event->chunk, shoal_blob_of("x", 1), 0);
}

/* Gives a chunk that has left after so long. */
static void give_in(shoal_swarm *s, uint64_t peer, double from, double to) {
  receive(s, peer, (shoal_message){.kind = SHOAL_MSG_WANT, .shard = 9, .lease = 7}, from);
  shoal_swarm_event event = event_of(s, SHOAL_SWARM_GIVE);
  give(s, &event);
  shoal_swarm_sent(s, peer, to);
  shoal_letter sent;
  assert_true(letter(s, SHOAL_MSG_CHUNK, &sent));
}

static void slots_are_bounded(void **state) {
  (void)state;
  shoal_swarm *s = giver(2, 5);
  give_in(s, 2, -1, -0.99);
  for (uint64_t peer = 2; peer < 7; peer++) want(s, peer, 3, 100 + peer, false);
  shoal_swarm_event one = event_of(s, SHOAL_SWARM_GIVE), two = event_of(s, SHOAL_SWARM_GIVE);
  no_event(s);
  give(s, &one);
  shoal_letter sent;
  assert_true(letter(s, SHOAL_MSG_CHUNK, &sent));
  assert_int_equal(sent.peer, one.peer);
  assert_int_equal(sent.message.shard, 3);
  assert_int_equal(sent.message.lease, 100 + one.peer);
  no_event(s);
  shoal_swarm_sent(s, two.peer, 0); /* nothing was given to it yet */
  no_event(s);
  shoal_swarm_sent(s, one.peer, 0);
  event_of(s, SHOAL_SWARM_GIVE);
  no_event(s);
  shoal_swarm_leave(s, two.peer, 0);
  event_of(s, SHOAL_SWARM_GIVE);
  no_event(s);
  shoal_swarm_destroy(s);
}

static void a_slow_uplink_sends_to_few_at_a_time(void **state) {
  (void)state;
  static const struct {
    double took_s;
    int at_a_time;
  } cases[] = {{0.1, 8}, {4, 4}, {60, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_swarm *s = giver(8, 10);
    give_in(s, 2, -100, cases[i].took_s - 100);
    for (uint64_t peer = 2; peer < 12; peer++) want(s, peer, 3, 100 + peer, false);
    for (int k = 0; k < cases[i].at_a_time; k++) event_of(s, SHOAL_SWARM_GIVE);
    no_event(s);
    shoal_swarm_destroy(s);
  }
}

static void who_takes_long_does_not_keep_others_waiting(void **state) {
  (void)state;
  shoal_swarm *s = giver(8, 3);
  give_in(s, 2, -100, -40); /* so that one is sent to at a time, for about 60 s */
  for (uint64_t peer = 2; peer < 5; peer++) want(s, peer, 3, 100 + peer, false);
  event_of(s, SHOAL_SWARM_GIVE);
  shoal_swarm_tick(s, 100);
  no_event(s);
  assert_true(shoal_swarm_next_tick(s) <= 121);
  shoal_swarm_tick(s, 121);
  event_of(s, SHOAL_SWARM_GIVE);
  no_event(s);
  shoal_swarm_destroy(s);
}

static void who_asks_for_more_gets_no_more_than_others(void **state) {
  (void)state;
  shoal_swarm *s = giver(1, 3);
  uint32_t turns[5] = {0};
  uint64_t number = 0;
  for (uint32_t c = 0; c < 4; c++) want(s, 2, c, ++number, false);
  want(s, 3, 0, ++number, false);
  want(s, 4, 0, ++number, false);
  for (uint32_t turn = 0; turn < 30; turn++) {
    shoal_swarm_event event = event_of(s, SHOAL_SWARM_GIVE);
    turns[event.peer]++;
    give(s, &event);
    shoal_swarm_sent(s, event.peer, 0);
    want(s, event.peer, 5 + turn % 10, ++number, false);
  }
  for (int peer = 2; peer <= 4; peer++) assert_in_range(turns[peer], 9, 11);
  shoal_swarm_destroy(s);
}

static void questions_of_one_peer_are_bounded(void **state) {
  (void)state;
  shoal_swarm *s = giver(1, 1);
  for (uint32_t c = 0; c < CHUNKS; c++) want(s, 2, c, c, false);
  shoal_swarm_peer peer;
  assert_true(shoal_swarm_peer_at(s, 0, &peer));
  assert_int_equal(peer.asks, 4);
  assert_int_equal(shoal_swarm_count(s).not_now, CHUNKS - 5); /* one is being given */
  shoal_swarm_destroy(s);
}

static void a_question_is_taken_back_by_having(void **state) {
  (void)state;
  shoal_swarm *s = giver(1, 2);
  want(s, 2, 0, 1, false);
  want(s, 3, 1, 2, false);
  have(s, 3, 1, 1, 0);
  shoal_swarm_event event = event_of(s, SHOAL_SWARM_GIVE);
  give(s, &event);
  shoal_swarm_sent(s, 2, 0);
  no_event(s);
  shoal_swarm_destroy(s);
}

static void what_cannot_be_read_is_not_now(void **state) {
  (void)state;
  shoal_swarm *s = giver(1, 2);
  want(s, 2, 0, 1, false);
  want(s, 3, 0, 2, false);
  shoal_swarm_event event = event_of(s, SHOAL_SWARM_GIVE);
  shoal_swarm_give(s, event.peer, event.question, event.chunk, NULL, 0);
  shoal_letter answered;
  assert_true(letter(s, SHOAL_MSG_CHUNK, &answered));
  assert_int_equal(answered.peer, event.peer);
  assert_null(answered.message.payload);
  event_of(s, SHOAL_SWARM_GIVE); /* the slot is free again */
  shoal_swarm_destroy(s);
}

/* ---- the server gives ---- */

static uint32_t serve(shoal_swarm *s, uint64_t peer, uint32_t chunk, bool sole) {
  static uint64_t number = 1000;
  want(s, peer, chunk, ++number, sole);
  shoal_swarm_event event;
  if (!shoal_swarm_next(s, &event)) {
    shoal_letter no;
    assert_true(letter(s, SHOAL_MSG_CHUNK, &no));
    assert_int_equal(no.message.lease, number);
    return UINT32_MAX;
  }
  give(s, &event);
  shoal_swarm_sent(s, peer, 0);
  shoal_letter sent;
  assert_true(letter(s, SHOAL_MSG_CHUNK, &sent));
  return sent.message.shard;
}

static void the_server_gives_every_chunk_once_before_any_twice(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.serves = true, .peers_max = 10});
  for (uint64_t peer = 2; peer < 6; peer++) shoal_swarm_join(s, peer, false, 0);
  bool given[CHUNKS] = {0};
  for (uint32_t i = 0; i < CHUNKS; i++) {
    uint32_t chunk = serve(s, 2 + i % 4, UINT32_MAX, false);
    assert_true(chunk < CHUNKS && !given[chunk]);
    given[chunk] = true;
  }
  assert_int_equal(serve(s, 2, UINT32_MAX, false), UINT32_MAX);
  shoal_swarm_destroy(s);
}

static void the_server_leaves_to_others_what_they_have(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.serves = true, .peers_max = 10});
  shoal_swarm_join(s, 2, false, 0);
  shoal_swarm_join(s, 3, false, 0);
  assert_int_equal(serve(s, 2, 5, false), 5);
  assert_int_equal(serve(s, 3, 5, false), UINT32_MAX);
  assert_int_equal(serve(s, 3, 5, true), 5);
  assert_int_equal(serve(s, 2, 6, false), 6);
  shoal_swarm_leave(s, 2, 0); /* and nobody has it any more */
  assert_int_equal(serve(s, 3, 6, false), 6);
  shoal_swarm_destroy(s);
}

/* Two want the same chunk, which nobody has, while the server is busy: only one of them gets it there. */
static void what_two_wait_for_is_given_once(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.serves = true, .peers_max = 10, .slots = 1});
  for (uint64_t peer = 2; peer < 5; peer++) shoal_swarm_join(s, peer, false, 0);
  want(s, 4, 9, 1, false); /* it is busy with that */
  shoal_swarm_event event = event_of(s, SHOAL_SWARM_GIVE);
  want(s, 2, 5, 2, false);
  want(s, 3, 5, 3, false);
  want(s, 3, 6, 4, false);
  uint32_t given[CHUNKS] = {0};
  for (bool more = true; more; more = shoal_swarm_next(s, &event)) {
    give(s, &event);
    shoal_swarm_sent(s, event.peer, 0);
    given[event.chunk]++;
  }
  assert_int_equal(given[9], 1);
  assert_int_equal(given[5], 1);
  assert_int_equal(given[6], 1);
  assert_int_equal(shoal_swarm_count(s).not_now, 1);
  shoal_swarm_destroy(s);
}

/* ---- telling ---- */

static void what_came_is_told_to_those_who_lack_it(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.chunks = 2000});
  shoal_swarm_join(s, SERVER, true, 0);
  shoal_swarm_join(s, 2, false, 0);
  shoal_swarm_join(s, 3, false, 0);
  have(s, 3, 10, 1, 0);
  shoal_swarm_has(s, 10, 0);
  shoal_swarm_has(s, 12, 0);
  shoal_swarm_has(s, 1900, 0);
  shoal_swarm_tick(s, 1);
  uint32_t told[4] = {0};
  shoal_letter out;
  while (shoal_outbox_take(shoal_swarm_outbox(s), &out)) {
    assert_int_equal(out.message.kind, SHOAL_MSG_HAVE);
    for (uint32_t i = 0; i < out.message.count; i++)
      if (out.message.payload == NULL || shoal_blob_bytes(out.message.payload)[i / 8] >> (i % 8) & 1)
        told[out.peer]++;
    shoal_message_release(&out.message);
  }
  assert_int_equal(told[SERVER], 3);
  assert_int_equal(told[2], 3);
  assert_int_equal(told[3], 2);
  shoal_swarm_join(s, 4, false, 1);
  assert_true(shoal_outbox_take(shoal_swarm_outbox(s), &out));
  assert_int_equal(out.message.count, 2000);
  assert_int_equal(shoal_blob_length(out.message.payload), 250);
  assert_int_equal(shoal_blob_bytes(out.message.payload)[1], 1 << 2 | 1 << 4);
  shoal_message_release(&out.message);
  shoal_swarm_destroy(s);
}

/* ---- nonsense from outside ---- */

static void messages_that_make_no_sense_do_nothing(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.wants_all = true});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 0, CHUNKS, 0);
  shoal_letter question = asked(s, 2, ANY);
  const uint8_t bits[4] = {255, 255, 255, 255};
  const shoal_message nonsense[] = {
      {.kind = SHOAL_MSG_HAVE, .shard = CHUNKS, .count = 1},
      {.kind = SHOAL_MSG_HAVE, .shard = 0, .count = 0},
      {.kind = SHOAL_MSG_HAVE, .shard = 1, .count = CHUNKS},
      {.kind = SHOAL_MSG_HAVE, .shard = UINT32_MAX, .count = UINT32_MAX},
      {.kind = SHOAL_MSG_HAVE, .shard = 0, .count = CHUNKS, .payload = shoal_blob_of(bits, 4)},
      {.kind = SHOAL_MSG_HAVE, .shard = 0, .count = CHUNKS, .payload = shoal_blob_of(bits, 2)},
      {.kind = SHOAL_MSG_WANT, .shard = CHUNKS, .lease = 1},
      {.kind = SHOAL_MSG_WANT, .shard = UINT32_MAX, .lease = 2},
      {.kind = SHOAL_MSG_CHUNK, .shard = 0, .lease = 77, .payload = shoal_blob_of(bits, 4)},
      {.kind = SHOAL_MSG_PUSH, .shard = 0},
  };
  uint32_t count = sizeof nonsense / sizeof nonsense[0];
  for (uint32_t i = 0; i < count; i++) {
    receive(s, 2, nonsense[i], 0);
    assert_int_equal(shoal_swarm_count(s).strange, i + 1);
  }
  no_event(s);
  /* An answer with another chunk, or one that does not exist, is none. */
  answer(s, &question, (question.message.shard + 1) % CHUNKS, 0);
  no_event(s);
  assert_int_equal(shoal_swarm_count(s).got, 0);
  /* From strangers nothing is taken. */
  have(s, 99, 0, 1, 0);
  receive(s, 99, (shoal_message){.kind = SHOAL_MSG_WANT}, 0);
  shoal_letter out;
  while (letter(s, SHOAL_MSG_CHUNK, &out)) assert_int_equal(out.peer, 2);
  shoal_swarm_checked(s, 2, 0, true, 0); /* which never arrived */
  shoal_swarm_checked(s, 2, CHUNKS, true, 0);
  assert_int_equal(shoal_swarm_count(s).here, 0);
  shoal_swarm_give(s, 2, 5, 0, shoal_blob_of("x", 1), 0);
  shoal_swarm_sent(s, 2, 0);
  shoal_swarm_leave(s, 99, 0);
  assert_false(letter(s, SHOAL_MSG_CHUNK, &out));
  shoal_swarm_destroy(s);
}

static void an_answer_comes_once(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.wants_all = true});
  shoal_swarm_join(s, 2, false, 0);
  have(s, 2, 3, 1, 0);
  shoal_letter question = asked(s, 2, 3);
  answer(s, &question, 3, 0.1);
  answer(s, &question, 3, 0.1);
  event_of(s, SHOAL_SWARM_ARRIVED);
  no_event(s);
  shoal_swarm_checked(s, 2, 3, true, 0.1);
  answer(s, &question, 3, 0.2);
  no_event(s);
  assert_int_equal(shoal_swarm_count(s).got, 1);
  assert_int_equal(shoal_swarm_count(s).here, 1);
  shoal_swarm_destroy(s);
}

static void neighbours_are_bounded(void **state) {
  (void)state;
  shoal_swarm *s = create((shoal_swarm_config){.peers_max = 2});
  assert_true(shoal_swarm_join(s, 2, false, 0));
  assert_false(shoal_swarm_join(s, 2, false, 0));
  assert_false(shoal_swarm_join(s, 0, false, 0));
  assert_true(shoal_swarm_join(s, 3, false, 0));
  assert_false(shoal_swarm_join(s, 4, false, 0));
  shoal_swarm_leave(s, 3, 0);
  assert_true(shoal_swarm_join(s, 4, false, 0));
  shoal_swarm_destroy(s);
  shoal_error err;
  assert_int_equal(shoal_swarm_create(&s, &(shoal_swarm_config){.chunks = 0}, &err), SHOAL_LIMIT);
  assert_int_equal(shoal_swarm_create(&s, &(shoal_swarm_config){.chunks = UINT32_MAX}, &err), SHOAL_LIMIT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_rarest_chunk_is_asked_for_first),
      cmocka_unit_test(ties_are_broken_by_the_seed),
      cmocka_unit_test(urgent_chunks_come_before_rarer_ones),
      cmocka_unit_test(a_quick_neighbour_gets_more_questions),
      cmocka_unit_test(a_slow_neighbour_gets_one_question),
      cmocka_unit_test(a_late_question_is_asked_elsewhere_and_taken_back),
      cmocka_unit_test(the_last_chunk_is_asked_of_a_quicker_neighbour_too),
      cmocka_unit_test(who_leaves_is_replaced),
      cmocka_unit_test(not_now_is_asked_elsewhere_and_later_again),
      cmocka_unit_test(who_wants_all_takes_any_chunk_from_the_server),
      cmocka_unit_test(only_who_was_refused_for_long_says_that_nobody_else_gives_it),
      cmocka_unit_test(who_gets_chunks_from_others_does_not_press_the_server),
      cmocka_unit_test(what_two_wait_for_is_given_once),
      cmocka_unit_test(what_a_neighbour_has_is_not_asked_of_the_server),
      cmocka_unit_test(a_bad_chunk_is_reported_and_its_sender_never_asked_again),
      cmocka_unit_test(a_chunk_that_is_too_long_is_bad),
      cmocka_unit_test(slots_are_bounded),
      cmocka_unit_test(a_slow_uplink_sends_to_few_at_a_time),
      cmocka_unit_test(who_takes_long_does_not_keep_others_waiting),
      cmocka_unit_test(who_asks_for_more_gets_no_more_than_others),
      cmocka_unit_test(questions_of_one_peer_are_bounded),
      cmocka_unit_test(a_question_is_taken_back_by_having),
      cmocka_unit_test(what_cannot_be_read_is_not_now),
      cmocka_unit_test(the_server_gives_every_chunk_once_before_any_twice),
      cmocka_unit_test(the_server_leaves_to_others_what_they_have),
      cmocka_unit_test(what_came_is_told_to_those_who_lack_it),
      cmocka_unit_test(messages_that_make_no_sense_do_nothing),
      cmocka_unit_test(an_answer_comes_once),
      cmocka_unit_test(neighbours_are_bounded),
  };
  return RUN_TESTS(tests);
}
