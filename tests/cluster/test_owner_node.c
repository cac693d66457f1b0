/* A parameter server in a thread of this process, and a chief and a worker that are this test: a full disk
 * holds up nothing and is told, and what a chief says is shown without what controls a terminal. */
#include "nn/in_folder.h"

#include <pthread.h>

#include "base/clock.h"
#include "cluster/job.h"
#include "cluster/owner_node.h"
#include "cluster/shares.h"
#include "nn/model.h"
#include "proto/chief.h"

enum { LIMIT_S = PATIENCE_S, GENERATION = 5 };
static const char MODEL[] = "input 4\ndense 3\nloss cross-entropy\noptimizer momentum rate 0.1\n";

/* The chief and the worker, on one loop, and what the parameter server told them. */
typedef struct world {
  shoal_net *net;
  uint64_t server; /* the server's connection to the chief */
  uint64_t worker; /* the worker's to the server */
  int count[SHOAL_MSG_KINDS];
  shoal_message last[SHOAL_MSG_KINDS]; /* without payload */
  int order[SHOAL_MSG_KINDS];          /* when each kind came last */
  int came;
  /* The server's own. */
  pthread_t thread;
  shoal_owner_node_config config;
  volatile sig_atomic_t stop;
  shoal_status ended;
  shoal_error error;
  pthread_mutex_t lock; /* over these two */
  char note[300];
  int notes;
} world;

static void opened(void *self, uint64_t peer, const char *address) { (void)self, (void)peer, (void)address; }

static void received(void *self, uint64_t peer, shoal_message *m) {
  world *w = self;
  if (m->kind == SHOAL_MSG_HELLO) w->server = peer;
  w->count[m->kind]++;
  w->order[m->kind] = ++w->came;
  shoal_message_release(m);
  m->payload = NULL;
  w->last[m->kind] = *m;
}

static void closed(void *self, uint64_t peer, const char *reason) { (void)self, (void)peer, (void)reason; }

static void note(void *self, const char *text) {
  world *w = self;
  pthread_mutex_lock(&w->lock);
  snprintf(w->note, sizeof w->note, "%s", text);
  w->notes++;
  pthread_mutex_unlock(&w->lock);
}

/* How many notes there were. With `part`: and the last one must have that in it. */
static int notes_of(world *w, const char *part) {
  pthread_mutex_lock(&w->lock);
  int count = w->notes;
  bool right = part == NULL || strstr(w->note, part) != NULL;
  pthread_mutex_unlock(&w->lock);
  if (!right) fail_msg("'%s' is not in '%s'", part, w->note);
  return count;
}

static void *serve(void *self) {
  world *w = self;
  w->ended = shoal_owner_node_run(&w->config, &w->error);
  return NULL;
}

#define UNTIL(w, condition)                                                                        \
  for (double until_limit = shoal_clock_seconds() + LIMIT_S; !(condition);) {                      \
    if (shoal_clock_seconds() > until_limit) fail_msg("not within %d s: %s", LIMIT_S, #condition); \
    shoal_net_run((w)->net, 0.01);                                                                 \
  }

static void say(world *w, uint64_t peer, shoal_message m) { shoal_net_send(w->net, peer, m); }

static void start(world *w) {
  *w = (world){.lock = PTHREAD_MUTEX_INITIALIZER};
  const shoal_net_config net = {.calls = {w, opened, received, closed, NULL},
                                .payload_max = 1 << 20,
                                .connections_max = 8,
                                .hello_s = 10,
                                .stall_s = 10};
  shoal_error err;
  uint16_t port;
  if (shoal_net_create(&w->net, &net, &err) != SHOAL_OK ||
      shoal_net_listen(w->net, "#:1", &port, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  w->config = (shoal_owner_node_config){.listen = "#:2",
                                        .chief = "#:1",
                                        .name = "ps 0",
                                        .folder = "state",
                                        .notes = {.self = w, .note = note},
                                        .stop = &w->stop};
  assert_int_equal(pthread_create(&w->thread, NULL, serve, w), 0);
  UNTIL(w, w->count[SHOAL_MSG_HELLO] == 1);
}

static void stop(world *w) {
  __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
  pthread_join(w->thread, NULL);
  shoal_net_destroy(w->net);
  if (w->ended != SHOAL_OK) fail_msg("%s", w->error.text);
}

static shoal_blob *job_text(void) {
  shoal_job job = {.samples = 60, .owners_count = 1, .owners = calloc(1, sizeof *job.owners)};
  shoal_text json = {0};
  shoal_text_addf(&job.model, "%s", MODEL);
  shoal_text_addf(&job.data, "none");
  memset(job.fitted_sha256, 'a', sizeof job.fitted_sha256 - 1);
  snprintf(job.mode_text, sizeof job.mode_text, "sync");
  assert_int_equal(shoal_mode_parse("sync", &job.mode, NULL), SHOAL_OK);
  snprintf(job.owners[0], sizeof job.owners[0], "#:2");
  shoal_job_cut(&job, 2, 10, 1);
  shoal_job_write(&job, &json);
  shoal_blob *blob = shoal_blob_of(json.bytes, json.length);
  shoal_text_release(&json);
  shoal_job_release(&job);
  return blob;
}

static size_t weights_count(void) {
  shoal_model *model;
  shoal_graph *graph;
  assert_int_equal(shoal_model_parse(&model, "model", MODEL, strlen(MODEL), NULL), SHOAL_OK);
  assert_int_equal(shoal_graph_create(&graph, model, NULL), SHOAL_OK);
  size_t count = graph->weights_count;
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
  return count;
}

/* Makes it the owner of version 0, whose weights and slots are zeros. */
static void give_weights(world *w) {
  say(w, w->server,
      (shoal_message){.kind = SHOAL_MSG_WELCOME, .generation = GENERATION, .payload = job_text()});
  say(w, w->server, (shoal_message){.kind = SHOAL_MSG_RESTORE, .generation = GENERATION});
  UNTIL(w, w->count[SHOAL_MSG_RESTORED] == 1);
  assert_int_equal(w->last[SHOAL_MSG_RESTORED].count, 1); /* it has none */
  size_t bytes = 2 * weights_count() * sizeof(float);
  shoal_blob *zeros = shoal_blob_create(bytes);
  memset(shoal_blob_bytes(zeros), 0, bytes);
  say(w, w->server, (shoal_message){.kind = SHOAL_MSG_GIVE, .generation = GENERATION, .payload = zeros});
  UNTIL(w, w->count[SHOAL_MSG_RESTORED] == 2);
  assert_int_equal(w->last[SHOAL_MSG_RESTORED].count, 0);
}

static void a_full_disk_is_told_to_the_chief_and_holds_up_nothing(void **state) {
  (void)state;
  world w;
  start(&w);
  give_weights(&w);
  const shoal_message save = {.kind = SHOAL_MSG_SAVE, .generation = GENERATION};
  limit_files(16);
  say(&w, w.server, save);
  UNTIL(&w, w.count[SHOAL_MSG_SAVED] == 1);
  assert_int_equal(w.last[SHOAL_MSG_SAVED].count, SHOAL_SAVED_NOT);
  w.worker = shoal_net_dial(w.net, "#:2", &(shoal_way){.wire = SHOAL_WIRE_RAW});
  say(&w, w.worker, (shoal_message){.kind = SHOAL_MSG_PULL, .generation = GENERATION});
  UNTIL(&w, w.count[SHOAL_MSG_WEIGHTS] == 1);
  say(&w, w.server, (shoal_message){.kind = SHOAL_MSG_PULL, .generation = GENERATION, .count = 1});
  UNTIL(&w, w.count[SHOAL_MSG_WEIGHTS] == 2); /* with slots, for the chief */
  say(&w, w.server, save);
  UNTIL(&w, w.count[SHOAL_MSG_SAVED] == 2);
  assert_int_equal(w.last[SHOAL_MSG_SAVED].count, SHOAL_SAVED_NOT);
  limit_files(0);
  say(&w, w.server, save);
  UNTIL(&w, w.count[SHOAL_MSG_SAVED] == 3);
  assert_int_equal(w.last[SHOAL_MSG_SAVED].count, 0);
  stop(&w);
}

static void a_refusal_cannot_speak_to_the_terminal(void **state) {
  (void)state;
  world w;
  start(&w);
  static const char text[] = "\033]0;owned\a no \xff";
  say(&w, w.server,
      (shoal_message){.kind = SHOAL_MSG_REFUSE,
                      .count = SHOAL_REFUSED_FOR_NOW,
                      .payload = shoal_blob_of(text, sizeof text - 1)});
  UNTIL(&w, notes_of(&w, NULL) == 1);
  notes_of(&w, "waiting for the chief: #:1 refuses: ?]0;owned? no ?; trying for 10 minutes");
  stop(&w);
}

/* A HELLO for another parameter server, another job, another chief or a chief is refused, on both sides by
 * name; one that is right is not. */
static void who_is_at_the_wrong_parameter_server_is_told(void **state) {
  (void)state;
  enum { INSTANCE = 9 };
  world w;
  start(&w);
  say(&w, w.server,
      (shoal_message){
          .kind = SHOAL_MSG_WELCOME, .generation = GENERATION, .lease = INSTANCE, .payload = job_text()});
  say(&w, w.server, (shoal_message){.kind = SHOAL_MSG_RESTORE, .generation = GENERATION});
  UNTIL(&w, w.count[SHOAL_MSG_RESTORED] == 1);
  shoal_job job;
  shoal_blob *text = job_text();
  assert_int_equal(shoal_job_parse(&job, (const char *)shoal_blob_bytes(text), shoal_blob_length(text), NULL),
                   SHOAL_OK);
  const uint64_t digest = shoal_job_digest(&job);
  shoal_job_release(&job);
  shoal_blob_release(text);
  const struct {
    shoal_message hello;
    const char *told; /* NULL: it is right */
    bool quietly;     /* without a note for people */
  } cases[] = {
      {{.count = 1, .slice = 1, .round = digest, .lease = INSTANCE}, "this is ps 0, not ps 1", false},
      {{.count = 1, .round = digest + 1, .lease = INSTANCE},
       "this is ps 0 of another training, whose chief",
       false},
      {{.count = 1, .round = digest, .lease = INSTANCE + 1}, "this is ps 0 of another training", true},
      {{.count = 1}, "this is ps 0, not the chief", false},
      {{.count = 2}, "this is ps 0, not the chief", false},
      {{.count = 1, .round = digest, .lease = INSTANCE}, NULL, false},
  };
  w.worker = shoal_net_dial(w.net, "#:2", &(shoal_way){.wire = SHOAL_WIRE_RAW});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[16];
    int refused = w.count[SHOAL_MSG_REFUSE], beats = w.count[SHOAL_MSG_BEAT], notes = notes_of(&w, NULL);
    shoal_message hello = cases[i].hello;
    hello.kind = SHOAL_MSG_HELLO;
    hello.payload = shoal_blob_of(name, (size_t)snprintf(name, sizeof name, "ada %zu", i));
    say(&w, w.worker, hello);
    if (cases[i].told == NULL) {
      say(&w, w.worker, (shoal_message){.kind = SHOAL_MSG_BEAT});
      UNTIL(&w, w.count[SHOAL_MSG_BEAT] > beats);
      assert_int_equal(w.count[SHOAL_MSG_REFUSE], refused);
      continue;
    }
    UNTIL(&w, w.count[SHOAL_MSG_REFUSE] == refused + 1);
    if (cases[i].quietly) {
      assert_int_equal(notes_of(&w, NULL), notes);
      continue;
    }
    notes_of(&w, name);
    notes_of(&w, cases[i].told);
  }
  stop(&w);
}

int main(void) {
  alarm(600); /* whatever happens, it ends */
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_full_disk_is_told_to_the_chief_and_holds_up_nothing),
      IN_FOLDER(a_refusal_cannot_speak_to_the_terminal),
      IN_FOLDER(who_is_at_the_wrong_parameter_server_is_told),
  };
  return RUN_TESTS(tests);
}
