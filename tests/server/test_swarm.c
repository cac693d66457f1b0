/* The server's side of a swarm, with members that are made up here: chunks that are read later, and what is
 * told of who got what from whom. */
#include "server/swarm.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check.h"
#include "cluster/node.h"
#include "cluster/swarm_words.h"
#include "data/specimen.h"
#include "proto/swarm.h"

enum { CHUNKS = 3, BYTES = CHUNKS * SHOAL_CHUNK_BYTES, TICKETS_MAX = 64 };

typedef struct world {
  uint8_t *bytes;
  shoal_specimen specimen;
  shoal_net *net;
  shoal_swarms *swarms;
  bool busy; /* nothing can be read now */
  uint64_t tickets[TICKETS_MAX];
  uint32_t chunks[TICKETS_MAX];
  int count; /* of reads that were begun */
  int asked;
  int blames; /* that the server was told of */
} world;

static shoal_status copy_manifest(void *self, const char *set, shoal_manifest *out, shoal_error *err) {
  (void)set;
  return shoal_specimen_copy_manifest(&((world *)self)->specimen, out, err);
}

static bool begin_read(void *self, const char *sha256, uint64_t ticket) {
  world *w = self;
  w->asked++;
  if (w->busy) return false;
  assert_true(w->count < TICKETS_MAX);
  assert_true(shoal_specimen_find(&w->specimen, sha256, &w->chunks[w->count]));
  w->tickets[w->count++] = ticket;
  return true;
}

static void blamed(void *self, const char *set, const char *who, const char *by, uint32_t chunk) {
  (void)set, (void)who, (void)by, (void)chunk;
  ((world *)self)->blames++;
}

static void opened(void *self, uint64_t peer, const char *address) { (void)self, (void)peer, (void)address; }
static void received(void *self, uint64_t peer, shoal_message *message) {
  (void)self, (void)peer;
  shoal_message_release(message);
}
static void closed(void *self, uint64_t peer, const char *reason) { (void)self, (void)peer, (void)reason; }

static void open_world(world *w) {
  shoal_error err;
  *w = (world){.bytes = malloc(BYTES)};
  const shoal_net_calls calls = {w, opened, received, closed, NULL};
  const shoal_net_config net = shoal_node_net(&calls, 8, NULL, NULL);
  const shoal_swarms_calls swarms = {w, copy_manifest, begin_read, blamed};
  if (shoal_specimen_init(&w->specimen, w->bytes, BYTES, &err) != SHOAL_OK ||
      shoal_net_create(&w->net, &net, &err) != SHOAL_OK ||
      shoal_swarms_create(&w->swarms, w->net, &swarms, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

static void close_world(world *w) {
  shoal_net_destroy(w->net);
  shoal_swarms_destroy(w->swarms);
  shoal_specimen_release(&w->specimen);
  free(w->bytes);
}

static void say_as(world *w, uint64_t peer, uint64_t person, shoal_message message, const char *text) {
  if (text != NULL) message.payload = shoal_blob_of(text, strlen(text));
  shoal_swarms_received(w->swarms, peer, &message, NULL, person);
}

static void say(world *w, uint64_t peer, shoal_message message, const char *text) {
  say_as(w, peer, 0, message, text);
}

static void tick(world *w) { shoal_swarms_tick(w->swarms, shoal_clock_seconds()); }

/* A member, whose number in the swarm is that of its connection as long as they come in order. */
static void come_as(world *w, uint64_t peer, uint64_t person) {
  char id[SHOAL_SHA256_HEX];
  shoal_manifest_id(w->specimen.manifest, id);
  assert_int_equal(shoal_swarms_admit(w->swarms, peer, "noise", 0, "127.0.0.1"), 0);
  say_as(
      w, peer, person,
      (shoal_message){
          .kind = SHOAL_MSG_HELLO, .count = SHOAL_ROLE_PEER, .round = shoal_swarm_set_of(id), .version = 1},
      "{\"name\":\"x\",\"port\":1}");
}

static void come(world *w, uint64_t peer) { come_as(w, peer, 0); }

static void want(world *w, uint64_t peer, uint32_t chunk) {
  say(w, peer, (shoal_message){.kind = SHOAL_MSG_WANT, .lease = 1, .shard = chunk, .count = 1}, NULL);
  tick(w);
}

static shoal_blob *chunk_of(const world *w, uint32_t chunk) {
  uint32_t length;
  const uint8_t *bytes = shoal_specimen_chunk(&w->specimen, chunk, &length);
  return shoal_blob_of(bytes, length);
}

static uint64_t sent(const world *w) {
  uint64_t out, in;
  shoal_swarms_moved(w->swarms, &out, &in);
  return out;
}

static void a_chunk_is_given_when_it_has_been_read(void **state) {
  (void)state;
  world w;
  open_world(&w);
  come(&w, 1);
  want(&w, 1, 2);
  assert_int_equal(w.count, 1);
  assert_int_equal(w.chunks[0], 2);
  for (int i = 0; i < 5; i++) tick(&w);
  assert_int_equal(w.count, 1);
  assert_int_equal(sent(&w), 0);
  shoal_swarms_take(w.swarms, w.tickets[0], chunk_of(&w, 2));
  assert_int_equal(sent(&w), SHOAL_CHUNK_BYTES);
  shoal_swarms_take(w.swarms, w.tickets[0], chunk_of(&w, 2)); /* nobody waits for it any more */
  assert_int_equal(sent(&w), SHOAL_CHUNK_BYTES);
  close_world(&w);
}

static void what_cannot_be_read_now_is_asked_for_again(void **state) {
  (void)state;
  world w;
  open_world(&w);
  come(&w, 1);
  w.busy = true;
  want(&w, 1, 0);
  come(&w, 2);
  want(&w, 2, 1);
  assert_int_equal(w.count, 0);
  assert_true(w.asked >= 2);
  w.busy = false;
  tick(&w);
  assert_int_equal(w.count, 2);
  assert_int_equal(w.chunks[0], 0); /* in their order */
  assert_int_equal(w.chunks[1], 1);
  shoal_swarms_take(w.swarms, w.tickets[1], chunk_of(&w, 1));
  shoal_swarms_take(w.swarms, w.tickets[0], NULL); /* damaged, say */
  assert_int_equal(sent(&w), SHOAL_CHUNK_BYTES);
  close_world(&w);
}

static void who_leaves_meanwhile_gets_nothing(void **state) {
  (void)state;
  world w;
  open_world(&w);
  come(&w, 1);
  come(&w, 2);
  want(&w, 1, 0);
  want(&w, 2, 0);
  assert_int_equal(w.count, 2);
  shoal_swarms_closed(w.swarms, 1);
  shoal_swarms_closed(w.swarms, 2);
  shoal_swarms_take(w.swarms, w.tickets[0], chunk_of(&w, 0));
  tick(&w);
  assert_int_equal(sent(&w), 0);
  shoal_swarms_tick(w.swarms, shoal_clock_seconds() + 1e6); /* the swarm is forgotten */
  shoal_swarms_take(w.swarms, w.tickets[1], chunk_of(&w, 0));
  assert_int_equal(sent(&w), 0);
  close_world(&w);
}

static void what_is_being_read_at_the_end_is_no_leak(void **state) {
  (void)state;
  world w;
  open_world(&w);
  come(&w, 1);
  want(&w, 1, 0);
  assert_int_equal(w.count, 1);
  close_world(&w);
}

/* Every member says that it got `peer` bytes from each of 40 others. */
static void report(world *w, uint64_t peer) {
  shoal_text text = {0};
  shoal_swarm_report all = {.count = SHOAL_SWARM_NEIGHBOURS_MAX};
  for (uint32_t i = 0; i < all.count; i++) all.from[i] = (shoal_swarm_flow){i + 1, peer};
  shoal_swarm_report_write(&all, &text);
  say(w, peer, (shoal_message){.kind = SHOAL_MSG_REPORT}, text.bytes);
  shoal_text_release(&text);
}

static cJSON *look(const world *w) {
  shoal_text text = {0};
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_swarms_write(w->swarms, "noise", 0, &json);
  cJSON *out = cJSON_ParseWithLength(text.bytes, text.length);
  shoal_text_release(&text);
  assert_non_null(out);
  return out;
}

static double number_of(const cJSON *json, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(json, key)->valuedouble;
}

static void of_too_many_flows_the_largest_are_written(void **state) {
  (void)state;
  enum { MEMBERS = 60, WRITTEN = 2000, SHOWN = WRITTEN / SHOAL_SWARM_NEIGHBOURS_MAX };
  world w;
  open_world(&w);
  for (uint64_t peer = 1; peer <= MEMBERS; peer++) come(&w, peer);
  for (uint64_t peer = 1; peer <= MEMBERS; peer++) report(&w, peer);
  cJSON *json = look(&w);
  const cJSON *flows = cJSON_GetObjectItemCaseSensitive(json, "flows"), *flow;
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "members")), MEMBERS);
  assert_int_equal(cJSON_GetArraySize(flows), WRITTEN);
  double before = MEMBERS;
  cJSON_ArrayForEach(flow, flows) {
    double bytes = number_of(flow, "bytes");
    assert_true(bytes <= before && bytes > MEMBERS - SHOWN);
    assert_true(bytes == number_of(flow, "to"));
    before = bytes;
  }
  cJSON_Delete(json);
  close_world(&w);
}

static void nobody_is_believed_to_have_got_more_than_all(void **state) {
  (void)state;
  world w;
  open_world(&w);
  come(&w, 1);
  say(&w, 1, (shoal_message){.kind = SHOAL_MSG_REPORT}, "{\"to_peers\":0,\"from\":[[2,9e15]]}");
  cJSON *json = look(&w);
  assert_true(number_of(json, "received") == BYTES);
  cJSON_Delete(json);
  close_world(&w);
}

/* What is said of a member, by its number. */
static double blames_of(const world *w, uint64_t id) {
  cJSON *json = look(w);
  const cJSON *one;
  double blames = -1;
  cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(json, "members")) {
    if (number_of(one, "id") == (double)id) blames = number_of(one, "blamed");
  }
  cJSON_Delete(json);
  return blames;
}

static void blame(world *w, uint64_t by, uint64_t who) {
  say(w, by, (shoal_message){.kind = SHOAL_MSG_BLAME, .lease = who}, NULL);
}

static void one_accuser_counts_once_however_often_it_comes(void **state) {
  (void)state;
  enum { ANNA = 71, BERT };
  world w;
  open_world(&w);
  come(&w, 1);
  come_as(&w, 2, ANNA);
  come_as(&w, 3, ANNA);
  blame(&w, 2, 1);
  blame(&w, 2, 1);
  blame(&w, 3, 1); /* another machine of the same person */
  shoal_swarms_closed(w.swarms, 2);
  come_as(&w, 4, ANNA); /* and the first one again */
  blame(&w, 4, 1);
  assert_int_equal(w.blames, 1);
  assert_true(blames_of(&w, 1) == 1);
  come_as(&w, 5, BERT);
  blame(&w, 5, 1);
  assert_int_equal(w.blames, 2);
  assert_true(blames_of(&w, 1) == 2);
  come(&w, 6); /* which is not told of the one that is left out: */
  blame(&w, 6, 1);
  assert_int_equal(w.blames, 2);
  close_world(&w);
}

/* A set that was deleted may come again with other content. */
static void a_set_that_is_deleted_is_not_found_again(void **state) {
  (void)state;
  world w;
  open_world(&w);
  come(&w, 1);
  cJSON *json = look(&w);
  assert_true(number_of(json, "chunks") == CHUNKS);
  cJSON_Delete(json);
  shoal_swarms_forget(w.swarms, "another");
  json = look(&w);
  assert_true(number_of(json, "chunks") == CHUNKS);
  cJSON_Delete(json);
  shoal_swarms_forget(w.swarms, "noise");
  json = look(&w);
  assert_true(number_of(json, "chunks") == 0);
  cJSON_Delete(json);
  shoal_swarms_closed(w.swarms, 1);
  tick(&w);
  come(&w, 2);
  json = look(&w);
  assert_true(number_of(json, "chunks") == CHUNKS);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "members")), 1);
  cJSON_Delete(json);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chunk_is_given_when_it_has_been_read),
      cmocka_unit_test(what_cannot_be_read_now_is_asked_for_again),
      cmocka_unit_test(who_leaves_meanwhile_gets_nothing),
      cmocka_unit_test(what_is_being_read_at_the_end_is_no_leak),
      cmocka_unit_test(of_too_many_flows_the_largest_are_written),
      cmocka_unit_test(nobody_is_believed_to_have_got_more_than_all),
      cmocka_unit_test(one_accuser_counts_once_however_often_it_comes),
      cmocka_unit_test(a_set_that_is_deleted_is_not_found_again),
  };
  return RUN_TESTS(tests);
}
