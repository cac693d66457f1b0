/* roles.c: chief, owner and worker: the drivers of the cores, as thin as the real ones.
 *
 * What they must get right, like any driver: a chief keeps what SAFE and BACK tell before it says
 * anything else; an owner keeps a version before it says that it has; after REFUSE one hangs up and
 * tries again; at a rest the chief asks the owners for what they have, then goes on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/life_internal.h"

static const double TIMER_S = 1e-6; /* no timer is finer */
enum { CHIEF_RECORD = 0, AUDITOR_KEY = 77 };

static void copy(float *to, const void *from, size_t count) {
  if (to != NULL) memcpy(to, from, count * sizeof *to);
}

/* ---- owner ---- */

static void start_owner(shoal_life *life, shoal_sim_node *node) {
  const shoal_sim_job *job = life->job;
  shoal_owner_config config = {.graph = job->graph,
                               .kernels = shoal_kernels_get(),
                               .slice = job->slices[node->index],
                               .slice_index = node->index,
                               .parts = job->parts,
                               .rounds = job->rounds,
                               .mode = job->config.mode,
                               .guarded = life->plan.guarded,
                               .format = job->config.format};
  shoal_status status = shoal_owner_create(&node->owner, &config, NULL);
  SHOAL_ASSERT(status == SHOAL_OK);
}

/* A record: weights, then slots. What nobody goes back to is gone first. */
static void save(shoal_life *life, shoal_sim_node *node) {
  uint64_t keeps[SHOAL_OWNER_KEEPS_MAX];
  shoal_disk_these(&node->disk, keeps, shoal_owner_keeps(node->owner, keeps));
  const shoal_owner_state *state = shoal_owner_state_of(node->owner);
  size_t count = life->job->slices[node->index].count, bytes = count * sizeof(float);
  const float *vectors[3] = {state->weights, state->slot1, state->slot2};
  uint8_t *record = malloc((1 + life->job->slots) * bytes + 1);
  SHOAL_ASSERT(record != NULL);
  for (uint32_t i = 0; i <= life->job->slots; i++) memcpy(record + i * bytes, vectors[i], bytes);
  shoal_life_write(life, node, state->version, record, (1 + life->job->slots) * bytes);
  free(record);
}

/* Whether only the chief has it, from a rest: what is safe must be on disk. */
static bool is_held(const shoal_life *life, uint32_t slice, uint64_t version) {
  const shoal_sim_node *chief = &life->nodes[0];
  return chief->held[slice] != NULL && version == chief->held_version && version > life->check.safe;
}

static void restore(shoal_life *life, shoal_sim_node *node, uint64_t version) {
  const shoal_owner_state *state = shoal_owner_state_of(node->owner);
  size_t count = life->job->slices[node->index].count, bytes = count * sizeof(float);
  float *vectors[3] = {state->weights, state->slot1, state->slot2};
  shoal_blob *record = shoal_disk_read(&node->disk, version);
  shoal_check_found(life, node, version, record != NULL || is_held(life, node->index, version));
  for (uint32_t i = 0; record != NULL && i <= life->job->slots; i++)
    copy(vectors[i], shoal_blob_bytes(record) + i * bytes, count);
  shoal_disk_only(&node->disk, 0, version); /* later ones belong to a past that did not happen */
  shoal_owner_restored(node->owner, record != NULL);
  shoal_blob_release(record);
}

static void drive_owner(shoal_life *life, shoal_sim_node *node) {
  uint64_t version;
  shoal_check_owner(life, node);
  if (shoal_owner_restore(node->owner, &version)) restore(life, node, version);
  shoal_check_owner(life, node);
  while (shoal_owner_save(node->owner) && !node->writing && shoal_faults_full(life, node))
    shoal_owner_not_saved(node->owner, "no room");
  if (shoal_owner_save(node->owner) && !node->writing) save(life, node);
}

static void owner_written(shoal_life *life, shoal_sim_node *node) {
  uint64_t version = shoal_owner_state_of(node->owner)->version;
  bool forgets = life->config.sabotage == SHOAL_SABOTAGE_SHORT_MEMORY;
  if (forgets) shoal_disk_only(&node->disk, version, version);
  shoal_owner_saved(node->owner);
}

static void owner_receives(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                           shoal_packet *packet) {
  shoal_message *m = &packet->message;
  if (m->kind == SHOAL_MSG_PUSH) {
    shoal_check_push(life, node, packet);
    if (m->payload != NULL)
      shoal_life_work(node, life->plan.byte_s * life->plan.rules.push_scale *
                                (double)shoal_blob_length(m->payload));
  }
  bool refused = m->kind == SHOAL_MSG_REFUSE;
  shoal_owner_receive(node->owner, connection, m);
  if (refused) shoal_life_hang_up(life, node, connection);
}

/* ---- worker ---- */

static void start_worker(shoal_life *life, shoal_sim_node *node) {
  shoal_worker_config config = {.name = node->name,
                                .units = life->plan.units,
                                .threads = 1,
                                .slices = life->job->slices,
                                .owners = life->plan.owners,
                                .weights_count = life->job->weights_count,
                                .mode = life->job->config.mode,
                                .format = life->job->config.format,
                                .guarded = life->plan.guarded,
                                .key = node->auditor ? AUDITOR_KEY : 0};
  shoal_status status = shoal_worker_create(&node->worker, &config, NULL);
  SHOAL_ASSERT(status == SHOAL_OK);
  node->task.running = false;
}

static void drive_worker(shoal_life *life, shoal_sim_node *node) {
  shoal_sim_task *task = &node->task;
  if (task->running || !shoal_worker_next(node->worker, &task->unit, &task->weights)) return;
  task->running = true;
  double spread = 1 + life->plan.part_spread * shoal_world_share(life->world);
  double seconds = life->plan.part_s * task->unit.count * node->slow * spread;
  shoal_world_wake(life->world, node->number, shoal_world_now(life->world) + seconds, SHOAL_TAG_COMPUTED);
}

/* The weights must have stayed as they were all the while: they are read only now. */
static void computed(shoal_life *life, shoal_sim_node *node) {
  shoal_sim_task *task = &node->task;
  SHOAL_ASSERT(task->running);
  task->running = false;
  node->note_version = shoal_check_computed(life, &task->unit, task->weights);
  shoal_work_result result = shoal_sim_job_compute(life->job, &task->unit, task->weights);
  shoal_lies_result(life, node, &result);
  node->note_digest = result.digest;
  shoal_blob_release(task->unit.carry);
  shoal_worker_done(node->worker, task->unit.lease, &result);
}

static void worker_opened(shoal_sim_node *node, uint64_t connection) {
  if (node->routes[0].connection == connection) {
    shoal_worker_chief(node->worker, connection, false);
    return;
  }
  for (uint32_t i = 1; i < node->routes_count; i++)
    if (node->routes[i].connection == connection) shoal_worker_owner(node->worker, i - 1, connection);
}

static void worker_receives(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                            shoal_packet *packet) {
  bool refused = packet->message.kind == SHOAL_MSG_REFUSE;
  shoal_worker_receive(node->worker, connection, &packet->message);
  if (refused) shoal_life_hang_up(life, node, connection);
}

/* ---- chief ---- */

/* Of the recurrent state of all parts. */
static size_t carry_bytes(const shoal_life *life) {
  return life->job->carry_floats * life->job->parts * sizeof(float);
}

/* A record: the state, recurrent state, then what the chief remembers. */
static void read_record(const shoal_life *life, shoal_blob *record, shoal_chief_config *config) {
  if (record == NULL) return;
  const uint8_t *at = shoal_blob_bytes(record);
  memcpy(&config->start, at, sizeof config->start);
  at += sizeof config->start;
  if (life->job->carry_floats > 0) config->carry = (const float *)(const void *)at;
  if (shoal_chief_memory_bytes(config) > 0) config->memory = at + carry_bytes(life);
}

static void start_chief(shoal_life *life, shoal_sim_node *node) {
  const shoal_sim_job *job = life->job;
  const shoal_sim_plan *plan = &life->plan;
  shoal_chief_config config = {.parts = job->parts,
                               .rounds = job->rounds,
                               .end = job->end,
                               .mode = job->config.mode,
                               .clip = job->model->recipe.clip,
                               .owners = plan->owners,
                               .workers_max = plan->workers_max,
                               .beat = plan->beat,
                               .lost_s = plan->lost_s,
                               .save_s = plan->save_s,
                               .leases = plan->leases,
                               .job = "{}",
                               .carry_floats = job->carry_floats};
  const bool gullible = life->config.sabotage == SHOAL_SABOTAGE_GULLIBLE;
  shoal_standing proven[SHOAL_SIM_LIARS_MAX + 1];
  if (plan->guarded)
    config.guard = (shoal_chief_guard){.on = true,
                                       .audits = plan->audited,
                                       .recheck = plan->recheck,
                                       .secret = {life->config.seed, life->check.starts},
                                       .key = AUDITOR_KEY,
                                       .standings = life->standings,
                                       .standings_count = plan->workers};
  if (plan->guarded && gullible) {
    for (uint32_t i = 0; i <= SHOAL_SIM_LIARS_MAX; i++)
      proven[i] = (shoal_standing){.who = shoal_lies_who(&life->nodes[1 + plan->owners + i % plan->workers]),
                                   .agreed = 1000000};
    config.guard.standings = proven;
    config.guard.standings_count = SHOAL_SIM_LIARS_MAX + 1;
  }
  shoal_blob *record = shoal_disk_read(&node->disk, CHIEF_RECORD);
  read_record(life, record, &config);
  shoal_check_start(life, record != NULL, config.start.version);
  life->check.goes_back = false;
  shoal_status status = shoal_chief_create(&node->chief, &config, NULL);
  SHOAL_ASSERT(status == SHOAL_OK);
  shoal_blob_release(record);
  node->resting = false;
  node->tick_at = INFINITY;
  node->safe_pending = 0;
  shoal_chief_tick(node->chief, shoal_life_clock(life, node));
}

static void keep_state(shoal_life *life, shoal_sim_node *node, const shoal_chief_state *state) {
  shoal_blob *memory = shoal_chief_memory(node->chief);
  size_t carry = carry_bytes(life), remembered = memory != NULL ? shoal_blob_length(memory) : 0;
  uint8_t *record = malloc(sizeof *state + carry + remembered);
  SHOAL_ASSERT(record != NULL);
  memcpy(record, state, sizeof *state);
  if (carry > 0) memcpy(record + sizeof *state, shoal_chief_safe_carry(node->chief), carry);
  if (memory != NULL) memcpy(record + sizeof *state + carry, shoal_blob_bytes(memory), remembered);
  shoal_life_write(life, node, CHIEF_RECORD, record, sizeof *state + carry + remembered);
  shoal_blob_release(memory);
  free(record);
}

/* The beginning is on nobody's disk: first weights, slots of zeros. Nor is a rest when a disk was full then. */
static void give(shoal_life *life, shoal_sim_node *node, uint32_t slice, uint64_t version) {
  if (version > 0) {
    shoal_chief_give(node->chief, slice, shoal_blob_share(node->held[slice]));
    return;
  }
  const shoal_slice *s = &life->job->slices[slice];
  size_t bytes = (1 + life->job->slots) * s->count * sizeof(float);
  shoal_blob *blob = shoal_blob_create(bytes);
  SHOAL_ASSERT(blob != NULL);
  memset(shoal_blob_bytes(blob), 0, bytes);
  memcpy(shoal_blob_bytes(blob), life->job->first + s->offset, s->count * sizeof(float));
  shoal_chief_give(node->chief, slice, blob);
}

/* What the owners have at a rest, slots too. When one is lost before it has answered, the core tells
 * the rest again. */
static void pull(shoal_life *life, shoal_sim_node *node) {
  for (uint32_t s = 0; s < life->plan.owners; s++)
    shoal_life_send(life, node, shoal_chief_owner(node->chief, s),
                    (shoal_packet){.message = {.kind = SHOAL_MSG_PULL,
                                               .version = node->rest_version,
                                               .generation = shoal_chief_generation(node->chief),
                                               .slice = s,
                                               .count = 1}});
}

static void end_life(shoal_life *life) {
  shoal_check_end(life);
  life->ended = true;
}

/* The last rest is what the chief can give an owner that lacks it. */
static void hold_pulled(const shoal_life *life, shoal_sim_node *node) {
  for (uint32_t s = 0; s < life->plan.owners; s++) {
    shoal_blob_release(node->held[s]);
    node->held[s] = shoal_blob_share(node->pulling[s]);
  }
  node->held_version = node->rest_version;
}

static void take_pulled(shoal_life *life, shoal_sim_node *node, const shoal_message *m) {
  if (!node->resting || m->version != node->rest_version || m->slice >= life->plan.owners ||
      m->generation != shoal_chief_generation(node->chief) || node->pulled[m->slice])
    return;
  shoal_check_rest(life, m);
  shoal_blob_release(node->pulling[m->slice]);
  node->pulling[m->slice] = shoal_blob_share(m->payload);
  node->pulled[m->slice] = true;
  if (++node->pulled_count < life->plan.owners) return;
  hold_pulled(life, node);
  if (node->rest_version < life->job->end) {
    shoal_world_wake(life->world, node->number,
                     shoal_world_now(life->world) + life->plan.eval_s * shoal_world_share(life->world),
                     SHOAL_TAG_GO_ON);
    return;
  }
  end_life(life);
  shoal_life_log(life, node, "the training is over");
}

/* Unless all went back meanwhile: then there will be another rest, with another end. */
static void go_on(shoal_life *life, shoal_sim_node *node) {
  if (!node->resting || node->pulled_count < life->plan.owners) return;
  node->resting = false;
  shoal_chief_go_on(node->chief, shoal_life_clock(life, node));
}

static void begin_rest(shoal_life *life, shoal_sim_node *node, const shoal_chief_event *event) {
  node->resting = true;
  node->rest_version = event->version;
  memset(node->pulled, 0, sizeof node->pulled);
  node->pulled_count = 0;
  pull(life, node);
  shoal_life_log(life, node, "rests at version %llu", (unsigned long long)event->version);
}

static void went_back(shoal_life *life, shoal_sim_node *node, const shoal_chief_event *event) {
  shoal_check_back(life, event);
  node->resting = false;
  life->report->backs++;
  shoal_life_log(life, node, "back to version %llu, generation %llu: %s%s%s",
                 (unsigned long long)event->version, (unsigned long long)event->state.generation, event->name,
                 event->name[0] != 0 ? " " : "", event->text);
}

/* A peer that was only silent still has its connection. */
static void lost_peer(shoal_life *life, shoal_sim_node *node, const shoal_chief_event *event) {
  shoal_life_log(life, node, "lost %s: %s", event->name, event->text);
  shoal_check_lost(life, event->peer);
  shoal_life_hang_up(life, node, event->peer);
}

/* The core has told it already that it is not welcome, which goes out before the end of the connection. */
static void banned(shoal_life *life, shoal_sim_node *node, const shoal_chief_event *event) {
  shoal_life_log(life, node, "%s is banned: %s", event->name, event->text);
  shoal_lies_keep(life, &event->standing);
  shoal_check_banned(life, event);
  if (event->peer != 0) shoal_check_lost(life, event->peer);
}

static void chief_event(shoal_life *life, shoal_sim_node *node, const shoal_chief_event *event) {
  bool held;
  switch (event->kind) {
  case SHOAL_CHIEF_ROUND:
    shoal_check_round(life, event);
    if (life->config.calm && life->plan.liars > 0 && life->report->banned == life->plan.liars)
      end_life(life); /* nothing more is measured */
    break;
  case SHOAL_CHIEF_REST: begin_rest(life, node, event); break;
  case SHOAL_CHIEF_SAFE:
    node->safe_pending = event->version + 1;
    shoal_life_log(life, node, "version %llu is safe", (unsigned long long)event->version);
    break;
  case SHOAL_CHIEF_BACK: went_back(life, node, event); break;
  case SHOAL_CHIEF_LACKS:
    held = event->version == 0 || is_held(life, event->slice, event->version);
    shoal_check_found(life, node, event->version, held);
    if (held) give(life, node, event->slice, event->version);
    break;
  case SHOAL_CHIEF_DIFFERS:
    life->check.differs_told++;
    life->report->differs++;
    shoal_life_log(life, node, "a result of %s differs", event->name);
    break;
  case SHOAL_CHIEF_JOINED: shoal_life_log(life, node, "%s joined", event->name); break;
  case SHOAL_CHIEF_LOST: lost_peer(life, node, event); break;
  case SHOAL_CHIEF_REFUSED:
  case SHOAL_CHIEF_LEFT:
  case SHOAL_CHIEF_LATE:
  case SHOAL_CHIEF_AGAIN:
  case SHOAL_CHIEF_REJECTED: break;
  case SHOAL_CHIEF_AUDITED: shoal_lies_keep(life, &event->standing); break;
  case SHOAL_CHIEF_BANNED: banned(life, node, event); break;
  case SHOAL_CHIEF_FAILED: SHOAL_ASSERT(!"a cheap loss is always a number"); break;
  }
}

/* Events in the order they are told; the last state of them is kept. */
static void chief_events(shoal_life *life, shoal_sim_node *node) {
  shoal_chief_event event;
  shoal_chief_state state;
  bool keep = false;
  while (shoal_chief_next_event(node->chief, &event)) {
    chief_event(life, node, &event);
    bool to_keep = event.kind == SHOAL_CHIEF_SAFE || event.kind == SHOAL_CHIEF_BACK;
    if (!to_keep || !shoal_sabotage_keeps(life, &event)) continue;
    state = event.state;
    keep = true;
  }
  shoal_check_differs(life);
  if (!keep) return;
  node->recorded = state.version;
  keep_state(life, node, &state);
}

static void drive_chief(shoal_life *life, shoal_sim_node *node) {
  if (node->writing) return;
  chief_events(life, node);
  double clock = shoal_life_clock(life, node), next = shoal_chief_next_tick(node->chief);
  double at = shoal_world_now(life->world) + fmax(next - clock, TIMER_S);
  if (node->ticked) shoal_check_timer(life, next > clock);
  node->ticked = false;
  if (at < node->tick_at) {
    node->tick_at = at;
    shoal_world_wake(life->world, node->number, at, SHOAL_TAG_CHIEF);
  }
}

static void chief_written(shoal_life *life, shoal_sim_node *node) {
  life->check.kept++;
  shoal_check_kept(life);
  shoal_chief_recorded(node->chief, node->recorded);
  if (node->safe_pending > 0) shoal_check_safe(life, node->safe_pending - 1);
  node->safe_pending = 0;
}

static void chief_receives(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                           shoal_packet *packet) {
  shoal_message *m = &packet->message;
  shoal_sim_line *line = shoal_life_line(life, connection);
  if (m->kind == SHOAL_MSG_HELLO) {
    line->role = m->count;
    line->slice = m->slice;
  }
  if (m->kind == SHOAL_MSG_DONE) shoal_check_done(life, connection, packet);
  if (m->kind == SHOAL_MSG_DONE && m->round >= shoal_chief_version(node->chief) &&
      m->generation == shoal_chief_generation(node->chief)) {
    shoal_sim_node *worker = &life->nodes[shoal_world_other(life->world, connection, node->number)];
    if (worker->lies_told > 0) shoal_check_lie_seen(life, worker);
  }
  if (m->kind == SHOAL_MSG_RETURN) shoal_check_return(life, connection, m);
  if (m->kind == SHOAL_MSG_WEIGHTS) take_pulled(life, node, m);
  shoal_chief_receive(node->chief, connection, m, shoal_life_clock(life, node));
}

/* ---- all ---- */

void shoal_role_start(shoal_life *life, shoal_sim_node *node) {
  node->disk.care = shoal_sabotage_care(life, node);
  if (node->role == SHOAL_SIM_CHIEF)
    start_chief(life, node);
  else if (node->role == SHOAL_SIM_OWNER)
    start_owner(life, node);
  else
    start_worker(life, node);
}

void shoal_role_stop(shoal_sim_node *node) {
  if (node->role == SHOAL_SIM_CHIEF) {
    for (uint32_t s = 0; s < SHOAL_SIM_OWNERS_MAX; s++) {
      shoal_blob_release(node->pulling[s]);
      shoal_blob_release(node->held[s]);
      node->pulling[s] = node->held[s] = NULL;
    }
    shoal_chief_destroy(node->chief);
  } else if (node->role == SHOAL_SIM_OWNER)
    shoal_owner_destroy(node->owner);
  else {
    if (node->task.running) shoal_blob_release(node->task.unit.carry);
    node->task.running = false;
    shoal_worker_destroy(node->worker);
  }
}

void shoal_role_opened(shoal_life *life, shoal_sim_node *node, uint64_t connection) {
  if (node->role == SHOAL_SIM_WORKER) worker_opened(node, connection);
  if (node->role == SHOAL_SIM_OWNER && node->routes[0].connection == connection)
    shoal_life_send(life, node, connection,
                    (shoal_packet){.message = shoal_owner_hello(node->owner, node->name)});
}

void shoal_role_gone(shoal_life *life, shoal_sim_node *node, uint64_t connection) {
  if (node->role == SHOAL_SIM_WORKER) shoal_worker_gone(node->worker, connection);
  if (node->role == SHOAL_SIM_OWNER) shoal_owner_gone(node->owner, connection);
  if (node->role != SHOAL_SIM_CHIEF) return;
  shoal_chief_gone(node->chief, connection, "its connection closed", shoal_life_clock(life, node));
}

void shoal_role_receive(shoal_life *life, shoal_sim_node *node, uint64_t connection, shoal_packet *packet) {
  if (node->role == SHOAL_SIM_CHIEF)
    chief_receives(life, node, connection, packet);
  else if (node->role == SHOAL_SIM_OWNER)
    owner_receives(life, node, connection, packet);
  else
    worker_receives(life, node, connection, packet);
}

void shoal_role_woken(shoal_life *life, shoal_sim_node *node, uint64_t tag) {
  if (tag == SHOAL_TAG_COMPUTED) computed(life, node);
  if (tag == SHOAL_TAG_GO_ON) go_on(life, node);
  if (tag != SHOAL_TAG_CHIEF) return;
  node->tick_at = INFINITY;
  node->ticked = true;
  shoal_chief_tick(node->chief, shoal_life_clock(life, node));
}

void shoal_role_tick(shoal_life *life, shoal_sim_node *node) {
  if (node->role != SHOAL_SIM_CHIEF || life->plan.rests <= 0 || life->calm) return;
  if (shoal_world_share(life->world) < life->plan.rests)
    shoal_chief_rest(node->chief, shoal_life_clock(life, node));
}

void shoal_role_drive(shoal_life *life, shoal_sim_node *node) {
  if (node->role == SHOAL_SIM_CHIEF)
    drive_chief(life, node);
  else if (node->role == SHOAL_SIM_OWNER)
    drive_owner(life, node);
  else
    drive_worker(life, node);
}

void shoal_role_written(shoal_life *life, shoal_sim_node *node) {
  if (node->role == SHOAL_SIM_CHIEF)
    chief_written(life, node);
  else
    owner_written(life, node);
}
