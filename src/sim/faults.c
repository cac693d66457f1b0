/* faults.c: what goes wrong in a life: one thing after the other, until the faults are over. */
#include <math.h>

#include "base/assert.h"
#include "sim/life_internal.h"

enum { TEARS = SHOAL_TAG_CALM + 1 }; /* a tag: a crash in the middle of a write */

static const char *const names[SHOAL_FAULTS] = {
    [SHOAL_FAULT_CUT] = "connections cut",          [SHOAL_FAULT_CRASH] = "processes killed",
    [SHOAL_FAULT_POWER] = "machines without power", [SHOAL_FAULT_TORN] = "of these while writing",
    [SHOAL_FAULT_PARTITION] = "partitions",         [SHOAL_FAULT_SLOW] = "workers slowed down",
    [SHOAL_FAULT_CLOCK] = "clocks that jump",       [SHOAL_FAULT_LEAVE] = "workers that leave",
    [SHOAL_FAULT_JOIN] = "workers that join",       [SHOAL_FAULT_LIAR] = "lying workers",
    [SHOAL_FAULT_TWICE] = "messages twice",         [SHOAL_FAULT_LATE] = "messages overtaken",
    [SHOAL_FAULT_FULL] = "writes to full disks",
};

const char *shoal_sim_fault_name(shoal_sim_fault fault) { return names[fault]; }

static const struct {
  shoal_sim_fault kind;
  uint32_t weight;
} odds[] = {
    {SHOAL_FAULT_CUT, 25},  {SHOAL_FAULT_CRASH, 18}, {SHOAL_FAULT_POWER, 10}, {SHOAL_FAULT_PARTITION, 10},
    {SHOAL_FAULT_SLOW, 10}, {SHOAL_FAULT_CLOCK, 10}, {SHOAL_FAULT_LEAVE, 8},  {SHOAL_FAULT_JOIN, 9},
};
enum { ODDS_COUNT = sizeof odds / sizeof odds[0] };

static double now_of(const shoal_life *life) { return shoal_world_now(life->world); }

static double between(shoal_life *life, double low, double high) {
  return low + (high - low) * shoal_world_share(life->world);
}

static void later(shoal_life *life, double seconds, uint64_t tag) {
  shoal_world_wake(life->world, SHOAL_WORLD_NOBODY, now_of(life) + seconds, tag);
}

static void next_fault(shoal_life *life) {
  double gap = -log(1 - shoal_world_share(life->world)) * life->plan.fault_gap_s;
  if (now_of(life) + gap < life->plan.calm_s) later(life, gap, SHOAL_TAG_FAULT);
}

void shoal_faults_start(shoal_life *life) {
  if (life->plan.quiet) return;
  next_fault(life);
  later(life, life->plan.calm_s, SHOAL_TAG_CALM);
}

/* Any node, the chief and the owners more often than their number. */
static shoal_sim_node *any_node(shoal_life *life) {
  uint64_t dice = shoal_world_draw(life->world, 10);
  uint32_t owners = life->plan.owners;
  if (dice < 2) return &life->nodes[0];
  if (dice < 5) return &life->nodes[1 + shoal_world_draw(life->world, owners)];
  return &life->nodes[1 + owners + shoal_world_draw(life->world, life->plan.workers)];
}

static shoal_sim_node *any_worker(shoal_life *life) {
  return &life->nodes[1 + life->plan.owners + shoal_world_draw(life->world, life->plan.workers)];
}

static void count(shoal_life *life, shoal_sim_fault fault) { life->report->faults[fault]++; }

static void crash(shoal_life *life, shoal_sim_node *node, bool power, double away_s) {
  if (!node->up) return;
  count(life, power ? SHOAL_FAULT_POWER : SHOAL_FAULT_CRASH);
  if (node->writing) count(life, SHOAL_FAULT_TORN);
  shoal_life_log(life, node, "%s%s", power ? "loses its power" : "is killed",
                 node->writing ? " while writing" : "");
  shoal_life_stop_node(life, node, power);
  later(life, away_s, SHOAL_TAG(SHOAL_TAG_RESTART, node->number));
}

static void cut(shoal_life *life) {
  uint64_t last = shoal_world_connections(life->world);
  for (int tries = 0; tries < 8 && last > 0; tries++) {
    /* Old connections are mostly gone: look among the newest. */
    uint64_t recent = last < 64 ? last : 64 + last / 4;
    if (recent > last) recent = last;
    uint64_t connection = last - shoal_world_draw(life->world, recent);
    if (!shoal_world_cut(life->world, connection)) continue;
    count(life, SHOAL_FAULT_CUT);
    shoal_life_log(life, NULL, "connection %llu is cut", (unsigned long long)connection);
    return;
  }
}

static void partition(shoal_life *life) {
  if (life->partitions > 0) return;
  life->partitions = 1;
  count(life, SHOAL_FAULT_PARTITION);
  uint32_t many = 0;
  uint64_t share = shoal_world_draw(life->world, 2) == 0 ? 2 : 5;
  for (uint32_t i = 0; i < life->nodes_count; i++) {
    bool apart = shoal_world_draw(life->world, share) == 0;
    many += apart;
    shoal_world_group(life->world, i, apart ? 1 : 0);
  }
  shoal_life_log(life, NULL, "%u nodes cannot reach the others", many);
  later(life, between(life, 0.5, 20), SHOAL_TAG_HEAL);
}

static void heal(shoal_life *life) {
  if (life->partitions == 0) return;
  life->partitions = 0;
  for (uint32_t i = 0; i < life->nodes_count; i++) shoal_world_group(life->world, i, 0);
  shoal_life_log(life, NULL, "all nodes can reach each other again");
}

static void slow_down(shoal_life *life) {
  shoal_sim_node *node = any_worker(life);
  if (node->slow > 1) return;
  node->slow = exp(between(life, log(2), log(50)));
  count(life, SHOAL_FAULT_SLOW);
  shoal_life_log(life, node, "becomes %.0f times slower", node->slow);
  later(life, between(life, 1, 30), SHOAL_TAG(SHOAL_TAG_RECOVER, node->number));
}

static void jump(shoal_life *life) {
  shoal_sim_node *node = any_node(life);
  if (!node->up) return;
  double by = shoal_world_draw(life->world, 3) == 0 ? -between(life, 0.1, 10) : between(life, 0.1, 60);
  node->clock_shift += by;
  count(life, SHOAL_FAULT_CLOCK);
  shoal_life_log(life, node, "its clock jumps by %.1f s", by);
}

/* The first worker always comes back, and is never slow for good: somebody must do the work. */
static void leave(shoal_life *life) {
  shoal_sim_node *node = any_worker(life);
  if (!node->up) return;
  node->gone = node->index > 0 && shoal_world_draw(life->world, 10) < 3;
  count(life, SHOAL_FAULT_LEAVE);
  shoal_life_log(life, node, "leaves%s", node->gone ? " for good" : "");
  shoal_life_stop_node(life, node, false);
  if (!node->gone) later(life, between(life, 1, 20), SHOAL_TAG(SHOAL_TAG_RESTART, node->number));
}

static void start(shoal_life *life, shoal_sim_node *node) {
  if (node->up || node->gone) return;
  shoal_life_log(life, node, "starts");
  shoal_life_start_node(life, node);
}

static void join(shoal_life *life) {
  uint32_t first = 1 + life->plan.owners;
  for (uint32_t i = first + life->plan.workers_first; i < first + life->plan.workers; i++) {
    if (life->nodes[i].up || life->nodes[i].gone || life->nodes[i].joined) continue;
    life->nodes[i].joined = true;
    count(life, SHOAL_FAULT_JOIN);
    start(life, &life->nodes[i]);
    return;
  }
}

static void strike(shoal_life *life) {
  uint32_t total = 0, kind = 0;
  for (uint32_t i = 0; i < ODDS_COUNT; i++) total += odds[i].weight;
  uint32_t dice = (uint32_t)shoal_world_draw(life->world, total);
  while (dice >= odds[kind].weight) dice -= odds[kind++].weight;
  switch (odds[kind].kind) {
  case SHOAL_FAULT_CUT: cut(life); break;
  case SHOAL_FAULT_CRASH: crash(life, any_node(life), false, between(life, 0.1, 6)); break;
  case SHOAL_FAULT_POWER: crash(life, any_node(life), true, between(life, 0.5, 15)); break;
  case SHOAL_FAULT_PARTITION: partition(life); break;
  case SHOAL_FAULT_SLOW: slow_down(life); break;
  case SHOAL_FAULT_CLOCK: jump(life); break;
  case SHOAL_FAULT_LEAVE: leave(life); break;
  case SHOAL_FAULT_JOIN: join(life); break;
  default: SHOAL_ASSERT(false);
  }
  next_fault(life);
}

static void calm(shoal_life *life) {
  life->calm = true;
  shoal_life_log(life, NULL, "the faults are over");
  heal(life);
  for (uint32_t i = 0; i < life->nodes_count; i++) start(life, &life->nodes[i]);
}

/* For some time, then there is room again. */
bool shoal_faults_full(shoal_life *life, const shoal_sim_node *node) {
  double full_s = life->plan.full_s;
  bool full =
      full_s > 0 && !life->calm && fmod(now_of(life) + 0.3 * full_s * node->index, 2 * full_s) < full_s;
  if (full) count(life, SHOAL_FAULT_FULL);
  return full;
}

/* Now and then a write is where it crashes. */
void shoal_faults_write(shoal_life *life, shoal_sim_node *node) {
  if (life->calm || shoal_world_draw(life->world, 25) != 0) return;
  later(life, node->write_s * shoal_world_share(life->world), SHOAL_TAG(TEARS, node->number));
}

void shoal_faults_woken(shoal_life *life, uint64_t tag) {
  shoal_sim_node *node = &life->nodes[tag >> 32];
  switch ((uint32_t)tag) {
  case SHOAL_TAG_FAULT: strike(life); break;
  case SHOAL_TAG_RESTART: start(life, node); break;
  case SHOAL_TAG_HEAL: heal(life); break;
  case SHOAL_TAG_RECOVER: node->slow = 1; break;
  case SHOAL_TAG_CALM: calm(life); break;
  case TEARS:
    if (node->up && node->writing)
      crash(life, node, shoal_world_draw(life->world, 2) == 0, between(life, 0.1, 6));
    break;
  default: SHOAL_ASSERT(false);
  }
}
