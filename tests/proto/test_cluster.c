/* Chief, owners and workers together, on a network that delivers in any order between
 * connections, with every part of the cluster killed again and again: the weights end up equal
 * to those of one machine, to the last bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../nn/synthetic.h"
#include "check.h"
#include "nn/trainer.h"
#include "proto/chief.h"
#include "proto/owner.h"
#include "proto/worker.h"

enum { OWNERS = 2, WORKERS = 3, NODES = 1 + OWNERS + WORKERS, CHIEF = 0, LINKS_MAX = 64, QUEUE = 4096 };
enum { BATCH = 40, SAMPLES = 200, EPOCHS = 3, SNAPSHOTS = 64, STEPS_MAX = 400000 };

/* A connection between two nodes; messages in flight each way. */
typedef struct link {
  uint64_t id; /* 0: free */
  int node[2];
  shoal_message queue[2][QUEUE]; /* towards node[0], towards node[1] */
  uint32_t first[2], count[2];
} link;

typedef struct snapshot {
  bool used;
  uint64_t version;
  float *weights, *slot1, *slot2;
} snapshot;

typedef struct world {
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *alone, *computer;
  synthetic made_up;
  shoal_source source;
  shoal_slice slices[OWNERS];
  const char *mode;
  shoal_chief *chief;
  shoal_chief_state disk; /* the chief's */
  shoal_owner *owners[OWNERS];
  snapshot snapshots[OWNERS][SNAPSHOTS];
  shoal_worker *workers[WORKERS];
  bool alive[NODES];
  float *first_weights;
  float *disk_carry; /* the chief's too */
  size_t carry_count;
  link *links;
  uint64_t next_id, draws, seed;
  double now;
  bool ended;
  uint32_t kills, backs;
} world;

static uint32_t draw(world *w, uint32_t below) {
  return (uint32_t)shoal_random_below(shoal_key_make(w->seed, SHOAL_FOR_TOY, 7, 7), w->draws++, below);
}

static void drive_chief(world *w);

/* ---- nodes ---- */

static void start_chief(world *w) {
  shoal_error err;
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse(w->mode, &mode, &err), SHOAL_OK);
  shoal_chief_config config = {.parts = shoal_trainer_shards(w->computer),
                               .rounds = shoal_trainer_rounds(w->computer),
                               .end = EPOCHS * shoal_trainer_rounds(w->computer),
                               .mode = mode,
                               .clip = w->model->recipe.clip,
                               .owners = OWNERS,
                               .workers_max = 16,
                               .beat = {.every_s = 30, .silence_s = 1e9},
                               .lost_s = 60,
                               .save_s = 20,
                               .leases = {.holders_max = 3, .patience = 3, .first_s = 50, .least_s = 20},
                               .job = "{}",
                               .start = w->disk,
                               .carry_floats = shoal_trainer_carry_floats(w->computer),
                               .carry = w->disk_carry};
  assert_int_equal(shoal_chief_create(&w->chief, &config, &err), SHOAL_OK);
  drive_chief(w);
}

static void start_owner(world *w, int s) {
  shoal_error err;
  shoal_owner_config config = {.graph = w->graph,
                               .kernels = shoal_kernels_get(),
                               .slice = w->slices[s],
                               .slice_index = (uint32_t)s,
                               .parts = shoal_trainer_shards(w->computer),
                               .rounds = shoal_trainer_rounds(w->computer)};
  assert_int_equal(shoal_mode_parse(w->mode, &config.mode, &err), SHOAL_OK);
  assert_int_equal(shoal_owner_create(&w->owners[s], &config, &err), SHOAL_OK);
}

static void start_worker(world *w, int i) {
  static const char *const names[] = {"ada", "bob", "cleo"};
  shoal_error err;
  shoal_worker_config config = {.name = names[i],
                                .units = 1 + (uint32_t)i % 2,
                                .slices = w->slices,
                                .owners = OWNERS,
                                .weights_count = w->graph->weights_count};
  assert_int_equal(shoal_mode_parse(w->mode, &config.mode, &err), SHOAL_OK);
  assert_int_equal(shoal_worker_create(&w->workers[i], &config, &err), SHOAL_OK);
}

static bool is_owner(int node) { return node >= 1 && node <= OWNERS; }

static void start_node(world *w, int node) {
  w->alive[node] = true;
  if (node == CHIEF)
    start_chief(w);
  else if (is_owner(node))
    start_owner(w, node - 1);
  else
    start_worker(w, node - 1 - OWNERS);
}

static void stop_node(world *w, int node) {
  w->alive[node] = false;
  if (node == CHIEF)
    shoal_chief_destroy(w->chief);
  else if (is_owner(node))
    shoal_owner_destroy(w->owners[node - 1]);
  else
    shoal_worker_destroy(w->workers[node - 1 - OWNERS]);
}

/* ---- connections ---- */

static shoal_outbox *outbox_of(world *w, int node) {
  if (node == CHIEF) return shoal_chief_outbox(w->chief);
  return is_owner(node) ? shoal_owner_outbox(w->owners[node - 1])
                        : shoal_worker_outbox(w->workers[node - 1 - OWNERS]);
}

static link *find_link(world *w, uint64_t id) {
  for (int i = 0; i < LINKS_MAX; i++)
    if (w->links[i].id == id) return &w->links[i];
  return NULL;
}

static bool connected(world *w, int a, int b) {
  for (int i = 0; i < LINKS_MAX; i++)
    if (w->links[i].id != 0 && w->links[i].node[0] == a && w->links[i].node[1] == b) return true;
  return false;
}

static void post(link *l, int towards, shoal_message m) {
  assert_true(l->count[towards] < QUEUE);
  l->queue[towards][(l->first[towards] + l->count[towards]++) % QUEUE] = m;
}

/* What nodes want to say goes on its way; to a connection that is gone, nowhere. */
static void collect(world *w) {
  for (int node = 0; node < NODES; node++) {
    if (!w->alive[node]) continue;
    shoal_letter letter;
    while (shoal_outbox_take(outbox_of(w, node), &letter)) {
      link *l = find_link(w, letter.peer);
      if (letter.peer == 0 || l == NULL) {
        shoal_message_release(&letter.message);
        continue;
      }
      post(l, l->node[0] == node ? 1 : 0, letter.message);
    }
  }
}

static void node_gone(world *w, int node, uint64_t id) {
  if (!w->alive[node]) return;
  if (node == CHIEF)
    shoal_chief_gone(w->chief, id, "test", w->now);
  else if (is_owner(node))
    shoal_owner_gone(w->owners[node - 1], id);
  else
    shoal_worker_gone(w->workers[node - 1 - OWNERS], id);
}

static void cut(world *w, link *l) {
  uint64_t id = l->id;
  for (int side = 0; side < 2; side++)
    while (l->count[side] > 0) {
      shoal_message_release(&l->queue[side][l->first[side]]);
      l->first[side] = (l->first[side] + 1) % QUEUE;
      l->count[side]--;
    }
  l->id = 0;
  node_gone(w, l->node[0], id);
  node_gone(w, l->node[1], id);
}

static void join(world *w, int a, int b) {
  link *l = find_link(w, 0);
  assert_non_null(l);
  *l = (link){.id = ++w->next_id, .node = {a, b}};
  if (is_owner(a)) {
    post(l, 1, shoal_owner_hello(w->owners[a - 1], "owner"));
  } else if (b == CHIEF) {
    shoal_worker_chief(w->workers[a - 1 - OWNERS], l->id, false);
  } else {
    shoal_worker_owner(w->workers[a - 1 - OWNERS], (uint32_t)(b - 1), l->id);
  }
}

/* One connection that is missing is made. */
static void reconnect(world *w) {
  int a = 1 + (int)draw(w, NODES - 1), b = is_owner(a) ? CHIEF : (int)draw(w, 1 + OWNERS);
  if (w->alive[a] && w->alive[b] && !connected(w, a, b)) join(w, a, b);
}

static void kill(world *w, int node) {
  w->kills++;
  stop_node(w, node);
  for (int i = 0; i < LINKS_MAX; i++)
    if (w->links[i].id != 0 && (w->links[i].node[0] == node || w->links[i].node[1] == node))
      cut(w, &w->links[i]);
}

/* ---- drivers ---- */

static void copy(float *to, const float *from, size_t count) {
  if (to != NULL && from != NULL) memcpy(to, from, count * sizeof *to);
}

static snapshot *snapshot_of(world *w, int s, uint64_t version) {
  for (int i = 0; i < SNAPSHOTS; i++)
    if (w->snapshots[s][i].used && w->snapshots[s][i].version == version) return &w->snapshots[s][i];
  return NULL;
}

static void keep(world *w, int s) {
  shoal_owner_state *state = shoal_owner_state_of(w->owners[s]);
  snapshot *place = snapshot_of(w, s, state->version);
  for (int i = 0; i < SNAPSHOTS && place == NULL; i++)
    if (!w->snapshots[s][i].used) place = &w->snapshots[s][i];
  assert_non_null(place);
  size_t count = w->slices[s].count;
  if (!place->used) {
    *place = (snapshot){.used = true,
                        .weights = malloc(count * sizeof(float)),
                        .slot1 = malloc(count * sizeof(float)),
                        .slot2 = malloc(count * sizeof(float))};
  }
  place->version = state->version;
  copy(place->weights, state->weights, count);
  copy(place->slot1, state->slot1, count);
  copy(place->slot2, state->slot2, count);
}

static void drive_owner(world *w, int s) {
  shoal_owner *o = w->owners[s];
  shoal_owner_state *state = shoal_owner_state_of(o);
  size_t count = w->slices[s].count;
  uint64_t version;
  if (shoal_owner_save(o)) {
    keep(w, s);
    shoal_owner_saved(o);
  }
  if (!shoal_owner_restore(o, &version)) return;
  snapshot *from = snapshot_of(w, s, version);
  assert_true(from != NULL || version == 0); /* the beginning is on nobody's disk */
  if (from != NULL) {
    copy(state->weights, from->weights, count);
    copy(state->slot1, from->slot1, count);
    copy(state->slot2, from->slot2, count);
  }
  shoal_owner_restored(o, from != NULL);
}

/* The first weights, and slots of zeros. */
static void give(world *w, uint32_t s) {
  uint32_t slots = shoal_optimizer_rows[w->model->recipe.optimizer].slots;
  size_t count = w->slices[s].count;
  shoal_blob *blob = shoal_blob_create((1 + slots) * count * sizeof(float));
  memset(shoal_blob_bytes(blob), 0, (1 + slots) * count * sizeof(float));
  shoal_graph_init_weights(w->graph, w->model->recipe.seed, w->first_weights);
  memcpy(shoal_blob_bytes(blob), w->first_weights + w->slices[s].offset, count * sizeof(float));
  shoal_chief_give(w->chief, s, blob);
}

static void drive_worker(world *w, int i) {
  shoal_work_unit unit;
  const float *weights;
  if (!shoal_worker_next(w->workers[i], &unit, &weights)) return;
  uint64_t rounds = shoal_trainer_rounds(w->computer);
  size_t carry = shoal_trainer_carry_floats(w->computer);
  shoal_blob *carry_out = carry > 0 ? shoal_blob_create(unit.count * carry * sizeof(float)) : NULL;
  const float *carry_in = unit.carry ? (const float *)(const void *)shoal_blob_bytes(unit.carry) : NULL;
  for (uint32_t p = 0; carry > 0 && p < unit.count; p++)
    shoal_trainer_set_carry(w->computer, unit.first + p, carry_in ? carry_in + p * carry : NULL);
  shoal_work_result result = {.gradient = shoal_blob_create(w->graph->weights_count * sizeof(float)),
                              .digest = unit.round * 31 + unit.first,
                              .carry = carry_out};
  shoal_trainer_node(w->computer, weights, &w->source, unit.round / rounds, unit.round % rounds, unit.first,
                     unit.count, (float *)(void *)shoal_blob_bytes(result.gradient), &result.sums);
  for (uint32_t p = 0; carry > 0 && p < unit.count; p++)
    shoal_trainer_get_carry(w->computer, unit.first + p,
                            (float *)(void *)shoal_blob_bytes(carry_out) + p * carry);
  shoal_blob_release(unit.carry);
  shoal_worker_done(w->workers[i], unit.lease, &result);
}

static void drive_chief(world *w) {
  shoal_chief_tick(w->chief, w->now);
  shoal_chief_event event;
  while (w->alive[CHIEF] && shoal_chief_next_event(w->chief, &event)) {
    if (event.kind == SHOAL_CHIEF_SAFE || event.kind == SHOAL_CHIEF_BACK) w->disk = event.state;
    if (event.kind == SHOAL_CHIEF_BACK) w->backs++;
    if (event.kind == SHOAL_CHIEF_SAFE) copy(w->disk_carry, shoal_chief_safe_carry(w->chief), w->carry_count);
    if (event.kind == SHOAL_CHIEF_LACKS) give(w, event.slice);
    if (event.kind == SHOAL_CHIEF_REST && event.version == EPOCHS * shoal_trainer_rounds(w->computer))
      w->ended = true;
    if (event.kind == SHOAL_CHIEF_REST) shoal_chief_go_on(w->chief, w->now);
    assert_int_not_equal(event.kind, SHOAL_CHIEF_FAILED);
    assert_int_not_equal(event.kind, SHOAL_CHIEF_DIFFERS);
  }
}

static void drive(world *w) {
  for (int s = 0; s < OWNERS; s++)
    if (w->alive[1 + s]) drive_owner(w, s);
  for (int i = 0; i < WORKERS; i++)
    if (w->alive[1 + OWNERS + i] && draw(w, 3) == 0) drive_worker(w, i);
  if (w->alive[CHIEF]) drive_chief(w);
}

/* One message of one connection arrives. */
static void deliver(world *w) {
  link *l = &w->links[draw(w, LINKS_MAX)];
  int side = (int)draw(w, 2);
  if (l->id == 0 || l->count[side] == 0) return;
  shoal_message m = l->queue[side][l->first[side]];
  l->first[side] = (l->first[side] + 1) % QUEUE;
  l->count[side]--;
  int node = l->node[side];
  if (node == CHIEF)
    shoal_chief_receive(w->chief, l->id, &m, w->now);
  else if (is_owner(node))
    shoal_owner_receive(w->owners[node - 1], l->id, &m);
  else
    shoal_worker_receive(w->workers[node - 1 - OWNERS], l->id, &m);
}

/* ---- lives ---- */

static void open_world(world *w, const char *net, const char *mode, uint64_t seed) {
  shoal_error err = {0};
  *w = (world){.mode = mode, .seed = seed};
  if (shoal_model_parse(&w->model, "test", net, strlen(net), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&w->graph, w->model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_trainer_config config = {.graph = w->graph, .threads = 1, .batch = BATCH, .samples = SAMPLES};
  assert_int_equal(shoal_trainer_create(&w->alone, &config, &err), SHOAL_OK);
  assert_int_equal(shoal_trainer_create(&w->computer, &config, &err), SHOAL_OK);
  w->made_up = (synthetic){.graph = w->graph, .seed = 3};
  w->source = synthetic_source(&w->made_up, SAMPLES);
  shoal_slices_cut(w->graph->runs, w->graph->runs_count, w->graph->weights_count, OWNERS, w->slices);
  w->first_weights = calloc(w->graph->weights_count, sizeof *w->first_weights);
  w->carry_count = shoal_trainer_carry_floats(w->computer) * shoal_trainer_shards(w->computer);
  w->disk_carry = calloc(w->carry_count + 1, sizeof *w->disk_carry);
  w->links = calloc(LINKS_MAX, sizeof *w->links);
  for (int node = 0; node < NODES; node++) start_node(w, node);
}

static void close_world(world *w) {
  for (int i = 0; i < LINKS_MAX; i++)
    if (w->links[i].id != 0) cut(w, &w->links[i]);
  for (int node = 0; node < NODES; node++)
    if (w->alive[node]) stop_node(w, node);
  for (int s = 0; s < OWNERS; s++)
    for (int i = 0; i < SNAPSHOTS; i++) {
      free(w->snapshots[s][i].weights);
      free(w->snapshots[s][i].slot1);
      free(w->snapshots[s][i].slot2);
    }
  free(w->links);
  free(w->first_weights);
  free(w->disk_carry);
  shoal_trainer_destroy(w->alone);
  shoal_trainer_destroy(w->computer);
  shoal_graph_destroy(w->graph);
  shoal_model_destroy(w->model);
}

/* Lives through a whole training; about one step in `mishap` something dies or is cut. */
static void live(world *w, uint32_t mishap) {
  for (uint32_t step = 0; !w->ended; step++) {
    if (step == STEPS_MAX)
      fail_msg("seed %llu: still at version %llu after %u steps, %u kills, %u times back",
               (unsigned long long)w->seed, (unsigned long long)w->disk.version, step, w->kills, w->backs);
    w->now += 0.1;
    deliver(w);
    collect(w);
    if (draw(w, 4) == 0) drive(w);
    collect(w);
    if (draw(w, 8) == 0) reconnect(w);
    if (mishap > 0 && draw(w, mishap) == 0) {
      int node = (int)draw(w, NODES);
      link *l = &w->links[draw(w, LINKS_MAX)];
      if (draw(w, 2) == 0 && w->alive[node])
        kill(w, node);
      else if (l->id != 0)
        cut(w, l);
    }
    int node = (int)draw(w, NODES);
    if (!w->alive[node] && draw(w, 20) == 0) start_node(w, node);
  }
}

static void check_weights(world *w) {
  shoal_result result;
  shoal_error err;
  for (uint64_t r = 0; r < EPOCHS * shoal_trainer_rounds(w->alone); r++)
    assert_int_equal(shoal_trainer_round(w->alone, &w->source, &result, &err), SHOAL_OK);
  for (int s = 0; s < OWNERS; s++) {
    assert_true(w->alive[1 + s]);
    assert_memory_equal(shoal_owner_state_of(w->owners[s])->weights,
                        shoal_trainer_state(w->alone)->weights + w->slices[s].offset,
                        w->slices[s].count * sizeof(float));
  }
}

static const char SMALL[] = "input 6\ndense 9 tanh\ndense 3\nloss cross-entropy\n"
                            "optimizer momentum rate 0.1 momentum 0.9\nshards 4\n";
static const char CLIPPED[] = "input 6\ndense 9 tanh\ndense 3\nloss cross-entropy\n"
                              "optimizer adam rate 0.01\nclip 0.3\nshards 3\n";

static const char RECURRENT[] = "input tokens 4 carry\nembed 9 5\nlstm 6\ndense 9\nloss cross-entropy\n"
                                "optimizer sgd rate 0.5\nshards 3\n";

static void a_quiet_life_equals_one_machine(void **state) {
  (void)state;
  const char *const nets[] = {SMALL, CLIPPED, RECURRENT};
  for (int n = 0; n < 3; n++) {
    world *w = malloc(sizeof *w);
    open_world(w, nets[n], "sync", 1);
    live(w, 0);
    check_weights(w);
    close_world(w);
    free(w);
  }
}

static void lives_full_of_mishaps_equal_one_machine(void **state) {
  (void)state;
  const char *const nets[] = {SMALL, CLIPPED, RECURRENT};
  for (uint64_t seed = 0; seed < 100; seed++) {
    world *w = malloc(sizeof *w);
    open_world(w, nets[seed % 3], "sync", seed);
    live(w, 1500);
    check_weights(w);
    close_world(w);
    free(w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_quiet_life_equals_one_machine),
      cmocka_unit_test(lives_full_of_mishaps_equal_one_machine),
  };
  return RUN_TESTS(tests);
}
