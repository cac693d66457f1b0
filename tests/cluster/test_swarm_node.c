/* Members of a swarm, with the server's side of it in a thread: data flows between them and is right whoever
 * lies, leaves or cannot be reached. */
#include "cluster/swarm_node.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../nn/in_folder.h"
#include "base/clock.h"
#include "cluster/node.h"
#include "cluster/swarm_words.h"
#include "proto/swarm.h"
#include "server/swarm_hall.h"
#include "wire/certificate.h"

enum { CHUNKS = 24, BYTES = (CHUNKS - 1) * SHOAL_CHUNK_BYTES + 1000 };
static const double LIMIT_S = PATIENCE_S;

/* ---- the data ---- */

static uint8_t *data;
static shoal_specimen specimen;

static int make_data(void **state) {
  (void)state;
  shoal_error err;
  data = malloc(BYTES);
  if (shoal_specimen_init(&specimen, data, BYTES, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(specimen.manifest->chunks_count, CHUNKS);
  return 0;
}

static int free_data(void **state) {
  (void)state;
  shoal_specimen_release(&specimen);
  free(data);
  return 0;
}

/* ---- a server, in a thread ---- */

typedef struct hall {
  pthread_t thread;
  _Atomic bool stop;
  shoal_hall *server;
  _Atomic int blames;
  char blamed[64];
  pthread_mutex_t lock;
  shoal_text json; /* what shoal_hall_write says, as last looked at */
} hall;

static void note_blame(void *self, const char *who, const char *by, uint32_t chunk) {
  hall *h = self;
  assert_true(chunk < CHUNKS && strcmp(who, by) != 0);
  snprintf(h->blamed, sizeof h->blamed, "%s", who);
  h->blames++;
}

static void *run_hall(void *self) {
  hall *h = self;
  while (!h->stop) {
    shoal_hall_run(h->server, 0.05);
    pthread_mutex_lock(&h->lock);
    shoal_text_clear(&h->json);
    shoal_json json;
    shoal_json_init(&json, &h->json);
    shoal_hall_write(h->server, &json);
    pthread_mutex_unlock(&h->lock);
  }
  return NULL;
}

static void open_hall(hall *h, const char *certificate, const char *key) {
  shoal_error err;
  memset(h, 0, sizeof *h);
  pthread_mutex_init(&h->lock, NULL);
  const shoal_hall_config config = {.specimen = &specimen,
                                    .listen = "127.0.0.1:0",
                                    .connections_max = 64,
                                    .certificate = certificate,
                                    .key = key,
                                    .self = h,
                                    .blamed = note_blame};
  if (shoal_hall_create(&h->server, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(pthread_create(&h->thread, NULL, run_hall, h), 0);
}

static void close_hall(hall *h) {
  h->stop = true;
  pthread_join(h->thread, NULL);
  shoal_hall_destroy(h->server);
  shoal_text_release(&h->json);
  pthread_mutex_destroy(&h->lock);
}

static bool hall_says(hall *h, const char *text) {
  pthread_mutex_lock(&h->lock);
  bool says = h->json.bytes != NULL && strstr(h->json.bytes, text) != NULL;
  pthread_mutex_unlock(&h->lock);
  return says;
}

/* ---- a member ---- */

typedef struct guest {
  shoal_swarm_node *node;
  char server[64], name[16];
  uint8_t *bytes; /* what it has */
  _Atomic uint8_t has[CHUNKS];
  _Atomic int count;
  _Atomic bool lies, full; /* no room on its disk */
  uint32_t wants;          /* the first so many chunks, where it does not want all */
  uint32_t told;
  char failure[200];
} guest;

static bool has(void *self, uint32_t chunk) { return ((guest *)self)->has[chunk]; }
static size_t length_of(void *self, uint32_t chunk) {
  (void)self;
  uint32_t length;
  shoal_specimen_chunk(&specimen, chunk, &length);
  return length;
}
static shoal_status put(void *self, uint32_t chunk, const void *bytes, size_t length, shoal_error *err) {
  guest *g = self;
  if (!shoal_specimen_is_chunk(&specimen, chunk, bytes, length))
    return shoal_fail(err, SHOAL_CORRUPT, "not it");
  if (g->full) return shoal_fail(err, SHOAL_IO, "no space left");
  memcpy(g->bytes + (size_t)chunk * SHOAL_CHUNK_BYTES, bytes, length);
  if (!g->has[chunk]) g->count++;
  g->has[chunk] = 1;
  return SHOAL_OK;
}
static shoal_status read_chunk(void *self, uint32_t chunk, void *into, shoal_error *err) {
  guest *g = self;
  (void)err;
  memcpy(into, g->bytes + (size_t)chunk * SHOAL_CHUNK_BYTES, length_of(g, chunk));
  if (g->lies) ((uint8_t *)into)[17] ^= 4;
  return SHOAL_OK;
}
static bool next_want(void *self, uint32_t *chunk, bool *urgent) {
  guest *g = self;
  if (g->told == g->wants) return false;
  *chunk = g->told++;
  *urgent = true;
  return true;
}
static void failed(void *self, const shoal_error *err) {
  guest *g = self;
  snprintf(g->failure, sizeof g->failure, "%.150s", err->text);
}

typedef struct manners {
  const char *name, *listen, *certificate, *key, *fingerprint, *path;
  bool alone, full;
  uint32_t wants; /* 0: all */
} manners;

static void come(guest *g, const hall *h, const manners *how) {
  char id[SHOAL_SHA256_HEX];
  shoal_error err;
  shoal_manifest_id(specimen.manifest, id);
  memset(g, 0, sizeof *g);
  g->bytes = calloc(1, BYTES);
  g->wants = how->wants;
  g->full = how->full;
  snprintf(g->name, sizeof g->name, "%s", how->name);
  snprintf(g->server, sizeof g->server, "127.0.0.1:%u%s", shoal_hall_port(h->server),
           how->path ? how->path : "/data");
  const shoal_swarm_node_config config = {
      .server = g->server,
      .way = {.wire = SHOAL_WIRE_RAW, .tls = how->fingerprint != NULL, .fingerprint = how->fingerprint},
      .name = g->name,
      .set = shoal_swarm_set_of(id),
      .shelf = {g, CHUNKS, has, length_of, put, read_chunk, how->wants > 0 ? next_want : NULL, failed},
      .all = how->wants == 0,
      .alone = how->alone,
      .listen = how->listen != NULL ? how->listen : "127.0.0.1:0",
      .certificate = how->certificate,
      .key = how->key,
      .seed = (uint64_t)how->name[0],
  };
  if (shoal_swarm_node_start(&g->node, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void leave(guest *g) {
  shoal_swarm_node_end(g->node);
  free(g->bytes);
}

static shoal_swarm_view look(const guest *g) {
  shoal_swarm_view view;
  shoal_swarm_node_look(g->node, &view);
  return view;
}

static void wait_for(const guest *g, int count) {
  double until = shoal_clock_seconds() + LIMIT_S;
  while (g->count < count && shoal_clock_seconds() < until) shoal_clock_sleep(0.01);
  if (g->count < count) fail_msg("%s has %d of %d chunks; %s", g->name, g->count, count, g->failure);
}

/* Also until it shows that, and has told the server, which may be a moment later. */
static void wait_for_all(const guest *g, hall *h) {
  char here[64];
  wait_for(g, CHUNKS);
  assert_memory_equal(g->bytes, data, BYTES);
  snprintf(here, sizeof here, "\"name\":\"%s\",\"here\":%d", g->name, CHUNKS);
  EVENTUALLY(hall_says(h, here) && look(g).from_server + look(g).from_peers >= BYTES);
}

/* ---- the tests ---- */

static void the_second_gets_most_from_the_first(void **state) {
  (void)state;
  hall h;
  guest a, b;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna"});
  wait_for_all(&a, &h);
  assert_int_equal(look(&a).from_server, BYTES);
  come(&b, &h, &(manners){.name = "bert"});
  wait_for_all(&b, &h);
  shoal_swarm_view seen = look(&b);
  assert_true(seen.from_peers + seen.from_server == BYTES);
  assert_true(seen.from_peers >= BYTES / 10 * 9);
  EVENTUALLY(look(&a).to_peers >= seen.from_peers);
  EVENTUALLY(hall_says(&h, "\"name\":\"anna\",\"here\":24,\"cells\":\"999999999999999999999999\""));
  EVENTUALLY(hall_says(&h, "\"from\":1,\"to\":2,\"bytes\":"));
  leave(&b);
  leave(&a);
  close_hall(&h);
}

static void one_that_lies_is_left_and_reported_and_all_get_the_right_data(void **state) {
  (void)state;
  hall h;
  guest liar, a, b;
  open_hall(&h, NULL, NULL);
  come(&liar, &h, &(manners){.name = "liar"});
  wait_for_all(&liar, &h);
  liar.lies = true;
  come(&a, &h, &(manners){.name = "anna"});
  come(&b, &h, &(manners){.name = "bert"});
  wait_for_all(&a, &h);
  wait_for_all(&b, &h);
  assert_true(look(&a).bad + look(&b).bad >= 1);
  assert_true(look(&a).bad <= CHUNKS / 2 && look(&b).bad <= CHUNKS / 2);
  EVENTUALLY(h.blames >= 1);
  assert_string_equal(h.blamed, "liar");
  assert_int_equal(look(&a).status, SHOAL_OK);
  leave(&a);
  leave(&b);
  leave(&liar);
  close_hall(&h);
}

static void who_cannot_write_gives_up_and_blames_nobody(void **state) {
  (void)state;
  hall h;
  guest a, b;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna"});
  wait_for_all(&a, &h);
  come(&b, &h, &(manners){.name = "bert", .full = true});
  EVENTUALLY(look(&b).status != SHOAL_OK);
  assert_int_equal(look(&b).status, SHOAL_IO);
  leave(&b);
  assert_string_equal(b.failure, "no space left");
  shoal_clock_sleep(0.2);
  assert_int_equal(h.blames, 0);
  assert_true(hall_says(&h, "\"blamed\":0"));
  assert_false(hall_says(&h, "\"blamed\":1"));
  leave(&a);
  close_hall(&h);
}

static void what_one_has_begun_to_give_comes_from_others_when_it_leaves(void **state) {
  (void)state;
  hall h;
  guest a, b;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna"});
  wait_for_all(&a, &h);
  come(&b, &h, &(manners){.name = "bert"});
  wait_for(&b, 3);
  leave(&a);
  wait_for_all(&b, &h);
  leave(&b);
  close_hall(&h);
}

static void who_cannot_be_dialled_is_served_by_the_server(void **state) {
  (void)state;
  hall h;
  guest a, b;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna", .listen = "127.0.0.2:0"}); /* others look for it at 127.0.0.1 */
  come(&b, &h, &(manners){.name = "bert", .listen = "127.0.0.2:0"});
  wait_for_all(&a, &h);
  wait_for_all(&b, &h);
  assert_int_equal(look(&a).from_peers + look(&b).from_peers, 0);
  leave(&a);
  leave(&b);
  close_hall(&h);
}

static void who_wants_to_be_alone_neither_dials_nor_is_dialled(void **state) {
  (void)state;
  hall h;
  guest a, b;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna"});
  come(&b, &h, &(manners){.name = "bert", .alone = true});
  wait_for_all(&a, &h);
  wait_for_all(&b, &h);
  assert_int_equal(look(&b).port, 0);
  assert_int_equal(look(&b).from_server, BYTES);
  assert_int_equal(look(&a).peers, 0);
  leave(&a);
  leave(&b);
  close_hall(&h);
}

static void only_what_is_wanted_comes(void **state) {
  (void)state;
  hall h;
  guest a, b;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna", .wants = 5});
  come(&b, &h, &(manners){.name = "bert", .wants = 7});
  wait_for(&a, 5);
  wait_for(&b, 7);
  shoal_clock_sleep(0.5);
  assert_int_equal(a.count, 5);
  assert_int_equal(b.count, 7);
  for (uint32_t i = 0; i < CHUNKS; i++) assert_int_equal(b.has[i], i < 7);
  leave(&a);
  leave(&b);
  close_hall(&h);
}

static void members_speak_tls_where_the_server_does(void **state) {
  (void)state;
  static const char *const names[] = {"localhost"};
  char *paths[6], prints[3][SHOAL_SHA256_HEX];
  static const char *const folders[] = {"server", "a", "b"};
  shoal_error err;
  for (int i = 0; i < 3; i++)
    if (shoal_certificate_ensure(folders[i], names, 1, &paths[2 * i], &paths[2 * i + 1], &err) != SHOAL_OK ||
        shoal_certificate_fingerprint(paths[2 * i], prints[i], &err) != SHOAL_OK)
      fail_msg("%s", err.text);
  hall h;
  guest a, b;
  open_hall(&h, paths[0], paths[1]);
  come(&a, &h,
       &(manners){.name = "anna", .certificate = paths[2], .key = paths[3], .fingerprint = prints[0]});
  wait_for_all(&a, &h);
  come(&b, &h,
       &(manners){.name = "bert", .certificate = paths[4], .key = paths[5], .fingerprint = prints[0]});
  wait_for_all(&b, &h);
  assert_true(look(&b).from_peers >= BYTES / 10 * 9);
  leave(&a);
  leave(&b);
  close_hall(&h);
  for (int i = 0; i < 6; i++) free(paths[i]);
}

static void who_is_refused_by_the_server_gives_up_and_says_why(void **state) {
  (void)state;
  hall h;
  guest a;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna", .path = "/private"});
  EVENTUALLY(look(&a).status != SHOAL_OK);
  assert_int_equal(look(&a).status, SHOAL_INVALID);
  assert_non_null(strstr(look(&a).error.text, "403"));
  leave(&a);
  assert_non_null(strstr(a.failure, "403"));
  close_hall(&h);
}

/* ---- somebody whom the server has not named ---- */

typedef struct stranger {
  bool refused, closed;
} stranger;

static void stranger_received(void *self, uint64_t peer, shoal_message *message) {
  (void)peer;
  stranger *s = self;
  s->refused |= message->kind == SHOAL_MSG_REFUSE;
  assert_int_not_equal(message->kind, SHOAL_MSG_CHUNK);
  shoal_message_release(message);
}
static void stranger_closed(void *self, uint64_t peer, const char *reason) {
  (void)peer, (void)reason;
  ((stranger *)self)->closed = true;
}

static void stranger_opened(void *self, uint64_t peer, const char *address) {
  (void)self, (void)peer, (void)address;
}

static void strangers_get_nothing(void **state) {
  (void)state;
  hall h;
  guest a, b;
  char id[SHOAL_SHA256_HEX], address[32];
  shoal_error err;
  open_hall(&h, NULL, NULL);
  come(&a, &h, &(manners){.name = "anna"});
  come(&b, &h, &(manners){.name = "bert"});
  wait_for_all(&a, &h);
  shoal_manifest_id(specimen.manifest, id);
  snprintf(address, sizeof address, "127.0.0.1:%u", look(&a).port);
  for (int turn = 0; turn < 3; turn++) {
    stranger s = {0};
    shoal_net *net;
    const shoal_net_calls calls = {&s, stranger_opened, stranger_received, stranger_closed, NULL};
    const shoal_net_config config = shoal_node_net(&calls, 4, NULL, NULL);
    if (shoal_net_create(&net, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
    uint64_t peer = shoal_net_dial(net, address, &(shoal_way){.wire = SHOAL_WIRE_RAW});
    /* Nobody with a guessed key, the right name of another with a guessed key, and one that just asks. */
    if (turn < 2)
      shoal_net_send(net, peer,
                     (shoal_message){.kind = SHOAL_MSG_HELLO,
                                     .count = SHOAL_ROLE_PEER,
                                     .round = shoal_swarm_set_of(id),
                                     .version = turn == 0 ? 77 : 2,
                                     .lease = 12345,
                                     .payload = shoal_blob_of("me", 2)});
    shoal_net_send(net, peer, (shoal_message){.kind = SHOAL_MSG_WANT, .lease = 1, .shard = 3});
    double until = shoal_clock_seconds() + LIMIT_S;
    while (!s.closed && shoal_clock_seconds() < until) shoal_net_run(net, 0.05);
    assert_true(s.closed && s.refused);
    shoal_net_destroy(net);
  }
  wait_for_all(&b, &h);
  leave(&a);
  leave(&b);
  close_hall(&h);
}

/* ---- words ---- */

static void words_come_back_as_they_were(void **state) {
  (void)state;
  shoal_text text = {0};
  shoal_swarm_hello hello = {.name = "anna", .address = "::1", .port = 65535}, read;
  memset(hello.fingerprint, 'a', SHOAL_SHA256_HEX - 1);
  shoal_swarm_hello_write(&hello, &text);
  assert_int_equal(shoal_swarm_hello_read(&read, text.bytes, text.length, NULL), SHOAL_OK);
  assert_memory_equal(&read, &hello, sizeof read);
  shoal_text_clear(&text);
  shoal_swarm_contacts *peers = calloc(2, sizeof *peers);
  peers[0] = (shoal_swarm_contacts){.you = 7, .count = 1};
  peers[0].list[0] = (shoal_swarm_contact){.id = 3,
                                           .key = UINT64_MAX,
                                           .name = "b\"ert",
                                           .addresses_count = 2,
                                           .addresses = {"[::1]:1", "1.2.3.4:5"}};
  shoal_swarm_contacts_write(&peers[0], &text);
  assert_int_equal(shoal_swarm_contacts_read(&peers[1], text.bytes, text.length, NULL), SHOAL_OK);
  assert_memory_equal(&peers[0], &peers[1], sizeof *peers);
  free(peers);
  shoal_text_clear(&text);
  shoal_swarm_report report = {.to_peers = 5, .count = 2, .from = {{0, 1}, {9, 1000000000000}}}, again;
  shoal_swarm_report_write(&report, &text);
  assert_int_equal(shoal_swarm_report_read(&again, text.bytes, text.length, NULL), SHOAL_OK);
  assert_memory_equal(&report, &again, sizeof again);
  shoal_text_release(&text);
}

static void wrong_words_are_refused(void **state) {
  (void)state;
  static const char *const lists[] = {
      "",
      "{}",
      "[]",
      "{\"you\":1}",
      "{\"you\":-1,\"peers\":[]}",
      "{\"you\":1.5,\"peers\":[]}",
      "{\"you\":1,\"peers\":[{}]}",
      "{\"you\":1,\"peers\":[{\"id\":0,\"name\":\"x\",\"key\":\"0123456789abcdef\",\"addresses\":[]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"name\":\"x\",\"key\":\"0123456789abcde\",\"addresses\":[]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"name\":\"x\",\"key\":\"0123456789abcdeg\",\"addresses\":[]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"key\":\"0123456789abcdef\",\"addresses\":[\"host.example:80\"]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"key\":\"0123456789abcdef\",\"addresses\":[\"1.2.3.4:0\"]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"key\":\"0123456789abcdef\",\"addresses\":[\"1.2.3.4:80/x\"]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"key\":\"0123456789abcdef\",\"addresses\":[\"#:9\"]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"key\":\"0123456789abcdef\",\"addresses\":[7]}]}",
      "{\"you\":1,\"peers\":[{\"id\":2,\"key\":\"0123456789abcdef\",\"fingerprint\":\"ab\"}]}",
  };
  shoal_swarm_contacts *peers = calloc(1, sizeof *peers);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (shoal_swarm_contacts_read(peers, lists[i], strlen(lists[i]), NULL) == SHOAL_OK)
      fail_msg("%s", lists[i]);
  free(peers);
  shoal_swarm_hello hello;
  shoal_swarm_report report;
  const char *far = "{\"name\":\"x\",\"port\":65536}", *odd = "{\"to_peers\":1,\"from\":[[1]]}";
  assert_int_not_equal(shoal_swarm_hello_read(&hello, far, strlen(far), NULL), SHOAL_OK);
  assert_int_not_equal(shoal_swarm_report_read(&report, odd, strlen(odd), NULL), SHOAL_OK);
  const char *named = "{\"name\":\"a\\u001bb\",\"port\":1,\"address\":\"evil.example\"}";
  assert_int_equal(shoal_swarm_hello_read(&hello, named, strlen(named), NULL), SHOAL_OK);
  assert_string_equal(hello.name, "a?b");
  assert_string_equal(hello.address, ""); /* never a name that would be looked up */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_come_back_as_they_were),
      cmocka_unit_test(wrong_words_are_refused),
      cmocka_unit_test(the_second_gets_most_from_the_first),
      cmocka_unit_test(one_that_lies_is_left_and_reported_and_all_get_the_right_data),
      cmocka_unit_test(who_cannot_write_gives_up_and_blames_nobody),
      cmocka_unit_test(what_one_has_begun_to_give_comes_from_others_when_it_leaves),
      cmocka_unit_test(who_cannot_be_dialled_is_served_by_the_server),
      cmocka_unit_test(who_wants_to_be_alone_neither_dials_nor_is_dialled),
      cmocka_unit_test(only_what_is_wanted_comes),
      IN_FOLDER(members_speak_tls_where_the_server_does),
      cmocka_unit_test(who_is_refused_by_the_server_gives_up_and_says_why),
      cmocka_unit_test(strangers_get_nothing),
  };
  return cmocka_run_group_tests(tests, make_data, free_data);
}
