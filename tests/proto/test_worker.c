/* The worker alone. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "proto/worker.h"

enum { CHIEF = 1, CHIEF_AGAIN = 2, OWNER = 10, WEIGHTS = 8 };

static const shoal_slice SLICE = {.count = WEIGHTS, .runs_count = 1};

static shoal_worker *worker_with(uint32_t units, shoal_wire_format format) {
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse("sync", &mode, NULL), SHOAL_OK);
  shoal_worker_config config = {.name = "ada",
                                .units = units,
                                .threads = 1,
                                .slices = &SLICE,
                                .owners = 1,
                                .weights_count = WEIGHTS,
                                .mode = mode,
                                .format = format};
  shoal_worker *worker;
  assert_int_equal(shoal_worker_create(&worker, &config, NULL), SHOAL_OK);
  return worker;
}

static shoal_worker *worker_of(uint32_t units) { return worker_with(units, SHOAL_WIRE_F32); }

static void receive(shoal_worker *worker, uint64_t peer, shoal_message m) {
  shoal_worker_receive(worker, peer, &m);
}

static shoal_blob *zeros(void) { return shoal_blob_of((const float[WEIGHTS]){0}, WEIGHTS * sizeof(float)); }

/* How many letters of this kind there were; the outbox is empty afterwards. */
static uint32_t said(shoal_worker *worker, shoal_message_kind kind) {
  shoal_letter letter;
  uint32_t count = 0;
  while (shoal_outbox_take(shoal_worker_outbox(worker), &letter)) {
    count += letter.message.kind == kind;
    shoal_message_release(&letter.message);
  }
  return count;
}

static void send_weights(shoal_worker *worker, uint64_t generation, uint64_t version) {
  float weights[WEIGHTS] = {0};
  receive(worker, OWNER,
          (shoal_message){.kind = SHOAL_MSG_WEIGHTS,
                          .generation = generation,
                          .version = version,
                          .payload = shoal_blob_of(weights, sizeof weights)});
}

static void send_lease(shoal_worker *worker, uint64_t chief, uint64_t generation, uint64_t lease,
                       uint64_t round, uint32_t count) {
  receive(worker, chief,
          (shoal_message){.kind = SHOAL_MSG_LEASE,
                          .generation = generation,
                          .lease = lease,
                          .round = round,
                          .version = round,
                          .count = count});
}

/* A chief that starts anew gives out the same numbers. What was computed for the old one must not pass
 * for the new one's unit. */
static void a_result_for_the_old_chief_is_not_for_the_new(void **state) {
  (void)state;
  shoal_worker *worker = worker_of(1);
  shoal_work_unit old, new;
  const float *weights;
  shoal_worker_owner(worker, 0, OWNER);
  shoal_worker_chief(worker, CHIEF, false);
  receive(worker, CHIEF, (shoal_message){.kind = SHOAL_MSG_WELCOME, .generation = 1});
  send_lease(worker, CHIEF, 1, 1, 0, 3);
  send_weights(worker, 1, 0);
  assert_true(shoal_worker_next(worker, &old, &weights));
  shoal_worker_gone(worker, CHIEF);
  shoal_worker_chief(worker, CHIEF_AGAIN, false);
  receive(worker, CHIEF_AGAIN, (shoal_message){.kind = SHOAL_MSG_WELCOME, .generation = 2});
  send_lease(worker, CHIEF_AGAIN, 2, 1, 0, 2);
  said(worker, SHOAL_MSG_ASK);
  assert_false(shoal_worker_done(worker, old.lease, &(shoal_work_result){.gradient = zeros()}));
  assert_int_equal(said(worker, SHOAL_MSG_PUSH), 0);
  send_weights(worker, 2, 0);
  assert_true(shoal_worker_next(worker, &new, &weights));
  assert_int_equal(new.count, 2);
  assert_true(shoal_worker_done(worker, new.lease, &(shoal_work_result){.gradient = zeros()}));
  assert_int_equal(said(worker, SHOAL_MSG_PUSH), 1);
  shoal_worker_destroy(worker);
}

/* It has newer weights already: the round is over, the lease goes back, and it asks for another. */
static void a_lease_that_is_over_when_it_comes_is_followed_by_an_ask(void **state) {
  (void)state;
  shoal_worker *worker = worker_of(1);
  shoal_work_unit unit;
  const float *weights;
  shoal_worker_owner(worker, 0, OWNER);
  shoal_worker_chief(worker, CHIEF, false);
  receive(worker, CHIEF, (shoal_message){.kind = SHOAL_MSG_WELCOME, .generation = 1});
  send_lease(worker, CHIEF, 1, 1, 0, 3);
  send_weights(worker, 1, 0);
  assert_true(shoal_worker_next(worker, &unit, &weights));
  assert_true(shoal_worker_done(worker, unit.lease, &(shoal_work_result){.gradient = zeros()}));
  send_weights(worker, 1, 1); /* pulled ahead */
  said(worker, SHOAL_MSG_ASK);
  send_lease(worker, CHIEF, 1, 2, 0, 1);
  shoal_letter letter;
  assert_true(shoal_outbox_take(shoal_worker_outbox(worker), &letter));
  assert_int_equal(letter.message.kind, SHOAL_MSG_RETURN);
  assert_int_equal(letter.message.lease, 2);
  assert_int_equal(said(worker, SHOAL_MSG_ASK), 1);
  shoal_worker_destroy(worker);
}

/* The loss that the chief is told of a unit with this in its gradient. */
static double loss_told(shoal_wire_format format, float in_gradient) {
  shoal_worker *worker = worker_with(1, format);
  shoal_work_unit unit;
  const float *weights;
  shoal_worker_owner(worker, 0, OWNER);
  shoal_worker_chief(worker, CHIEF, false);
  receive(worker, CHIEF, (shoal_message){.kind = SHOAL_MSG_WELCOME, .generation = 1});
  send_lease(worker, CHIEF, 1, 1, 0, 3);
  send_weights(worker, 1, 0);
  assert_true(shoal_worker_next(worker, &unit, &weights));
  shoal_work_result result = {.gradient = zeros(), .sums = {.loss = 5, .weight = 1}};
  memcpy(shoal_blob_bytes(result.gradient) + 3 * sizeof(float), &in_gradient, sizeof in_gradient);
  assert_true(shoal_worker_done(worker, unit.lease, &result));
  shoal_letter letter;
  shoal_sums sums = {0};
  while (shoal_outbox_take(shoal_worker_outbox(worker), &letter)) {
    if (letter.message.kind == SHOAL_MSG_DONE)
      memcpy(&sums, shoal_blob_bytes(letter.message.payload), sizeof sums);
    shoal_message_release(&letter.message);
  }
  shoal_worker_destroy(worker);
  return sums.loss;
}

/* Owners refuse such a contribution, so without this the round would be waited for, taken back and computed
 * again for ever. */
static void a_gradient_that_owners_refuse_is_told_to_the_chief(void **state) {
  (void)state;
  const float wrong[] = {NAN, INFINITY, -INFINITY};
  for (int format = SHOAL_WIRE_F32; format < SHOAL_WIRE_FORMATS; format++) {
    assert_true(loss_told((shoal_wire_format)format, 1e38f) == 5);
    for (int i = 0; i < 3; i++) {
      double loss = loss_told((shoal_wire_format)format, wrong[i]);
      assert_true(format == SHOAL_WIRE_F32 ? loss == 5 : isnan(loss)); /* f32 is not refused */
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_result_for_the_old_chief_is_not_for_the_new),
      cmocka_unit_test(a_lease_that_is_over_when_it_comes_is_followed_by_an_ask),
      cmocka_unit_test(a_gradient_that_owners_refuse_is_told_to_the_chief),
  };
  return RUN_TESTS(tests);
}
