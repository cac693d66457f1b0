/* check.c: rules about the order of things: leases, versions, comparison of results, bounds, time. */
#include "sim/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/life_internal.h"

enum { STANDING_MAX = 200000, RECORDS_MAX = 64, HURRIED_MAX = 1000, UNDER_WAY_MAX = 256 };

static const char *const names[SHOAL_SIM_CHECKERS] = {
    [SHOAL_SIM_NOTHING] = "nothing",   [SHOAL_SIM_SAMPLES] = "samples", [SHOAL_SIM_LEASES] = "leases",
    [SHOAL_SIM_VERSIONS] = "versions", [SHOAL_SIM_BITS] = "bits",       [SHOAL_SIM_STALENESS] = "staleness",
    [SHOAL_SIM_DIFFERS] = "differs",   [SHOAL_SIM_DURABLE] = "durable", [SHOAL_SIM_DEADLOCK] = "deadlock",
    [SHOAL_SIM_MEMORY] = "memory",     [SHOAL_SIM_GUARD] = "guard",
};

const char *shoal_sim_checker_name(shoal_sim_checker checker) { return names[checker]; }

void shoal_check_violated(shoal_life *life, shoal_sim_checker checker, const char *format, ...) {
  if (life->report->violated != SHOAL_SIM_NOTHING) return;
  life->report->violated = checker;
  va_list list;
  va_start(list, format);
  vsnprintf(life->report->text, sizeof life->report->text, format, list);
  va_end(list);
  shoal_life_log(life, NULL, "VIOLATION (%s): %s", names[checker], life->report->text);
}

void shoal_check_init(shoal_life *life) {
  life->check.units = calloc(life->job->parts, sizeof *life->check.units);
  SHOAL_ASSERT(life->check.units != NULL);
  life->check.taint = UINT64_MAX;
  for (uint32_t s = 0; s < life->plan.owners; s++) {
    life->check.slices[s].applied = calloc(life->job->end, 1);
    SHOAL_ASSERT(life->check.slices[s].applied != NULL);
  }
}

void shoal_check_release(shoal_life *life) {
  free(life->check.units);
  free(life->check.lies);
  for (uint32_t s = 0; s < life->plan.owners; s++) free(life->check.slices[s].applied);
}

/* ---- leases ---- */

void shoal_check_lease(shoal_life *life, uint64_t connection, const shoal_message *m) {
  shoal_check *check = &life->check;
  shoal_check_line *line = &shoal_life_line(life, connection)->check;
  uint64_t unit = m->round * life->job->parts + m->shard;
  life->report->leases++;
  if (m->generation == check->lease_generation && m->lease <= check->last_lease)
    shoal_check_violated(life, SHOAL_SIM_LEASES,
                         "lease %llu of round %llu, part %u is given out a second time",
                         (unsigned long long)m->lease, (unsigned long long)m->round, m->shard);
  check->lease_generation = m->generation;
  check->last_lease = m->lease;
  if (line->generation != m->generation) *line = (shoal_check_line){.generation = m->generation};
  for (uint32_t i = 0; i < line->count; i++)
    if (line->unit[i] == unit)
      shoal_check_violated(life, SHOAL_SIM_LEASES,
                           "one worker has leases %llu and %llu of round %llu, part %u",
                           (unsigned long long)line->lease[i], (unsigned long long)m->lease,
                           (unsigned long long)m->round, m->shard);
  if (line->count == SHOAL_CHECK_LEASES) {
    shoal_check_violated(life, SHOAL_SIM_LEASES, "a worker has more than %d leases", SHOAL_CHECK_LEASES);
    return;
  }
  line->lease[line->count] = m->lease;
  line->unit[line->count++] = unit;
}

/* Ends a lease of this connection; false when it has no such one. */
static bool end_lease(shoal_life *life, uint64_t connection, const shoal_message *m) {
  shoal_check_line *line = &shoal_life_line(life, connection)->check;
  uint64_t generation = shoal_chief_generation(life->nodes[0].chief);
  if (m->generation != generation || line->generation != generation) return false;
  for (uint32_t i = 0; i < line->count; i++)
    if (line->lease[i] == m->lease) {
      line->count--;
      line->lease[i] = line->lease[line->count];
      line->unit[i] = line->unit[line->count];
      return true;
    }
  return false;
}

void shoal_check_return(shoal_life *life, uint64_t connection, const shoal_message *m) {
  end_lease(life, connection, m);
}

void shoal_check_lost(shoal_life *life, uint64_t connection) {
  shoal_life_line(life, connection)->check.count = 0;
}

/* ---- differs ---- */

void shoal_check_done(shoal_life *life, uint64_t connection, const shoal_packet *packet) {
  const shoal_message *m = &packet->message;
  shoal_check *check = &life->check;
  check->differs = false;
  check->differs_told = 0;
  shoal_mode_kind mode = life->job->config.mode.kind;
  bool held = end_lease(life, connection, m);
  if (!held || m->round < shoal_chief_version(life->nodes[0].chief) || m->shard >= life->job->parts) return;
  shoal_check_report(life, packet);
  if ((mode != SHOAL_SYNC && mode != SHOAL_LOCAL) || life->plan.guarded) return;
  shoal_check_unit *unit = &check->units[m->shard];
  if (unit->generation != m->generation || unit->round != m->round)
    *unit = (shoal_check_unit){.generation = m->generation, .round = m->round, .digest = packet->digest};
  else
    check->differs = unit->digest != packet->digest;
}

void shoal_check_differs(shoal_life *life) {
  if (life->check.differs_told != (life->check.differs ? 1 : 0))
    shoal_check_violated(life, SHOAL_SIM_DIFFERS,
                         life->check.differs ? "two results of a unit differ, and nobody is told"
                                             : "two results of a unit are equal, but told to differ");
  life->check.differs = false;
  life->check.differs_told = 0;
}

/* ---- versions ---- */

/* A generation that nobody was told of may be lost with the chief. One that was said belongs to that
 * start of the chief for ever. */
void shoal_check_said(shoal_life *life, const shoal_sim_node *node, const shoal_message *m) {
  shoal_check *check = &life->check;
  if (m->generation > check->generation) {
    check->generation = m->generation;
    check->generation_of = check->starts;
    check->version = 0;
  }
  if (check->generation_of != check->starts)
    shoal_check_violated(life, SHOAL_SIM_VERSIONS,
                         "generation %llu comes after generation %llu of an earlier chief",
                         (unsigned long long)m->generation, (unsigned long long)check->generation);
  if (shoal_chief_generation(node->chief) != check->generation) return;
  uint64_t version = shoal_chief_version(node->chief);
  if (version < check->version)
    shoal_check_violated(
        life, SHOAL_SIM_VERSIONS, "the chief went from version %llu to %llu in generation %llu",
        (unsigned long long)check->version, (unsigned long long)version, (unsigned long long)m->generation);
  check->version = version;
}

void shoal_check_back(shoal_life *life, const shoal_chief_event *event) {
  shoal_check *check = &life->check;
  if (event->state.generation <= check->back_generation)
    shoal_check_violated(life, SHOAL_SIM_VERSIONS, "generation %llu begins after generation %llu",
                         (unsigned long long)event->state.generation,
                         (unsigned long long)check->back_generation);
  check->back_generation = event->state.generation;
  check->goes_back = true;
  check->goes_back_to = event->version;
  check->goes_back_in = event->state.generation;
  if (event->undoes && event->version < check->safe) check->safe = event->version;
  if (event->version < check->safe)
    shoal_check_violated(life, SHOAL_SIM_DURABLE, "all go back to version %llu, but %llu was safe",
                         (unsigned long long)event->version, (unsigned long long)check->safe);
}

void shoal_check_kept(shoal_life *life) {
  shoal_check *check = &life->check;
  if (check->goes_back && check->taint != UINT64_MAX && check->goes_back_to <= check->taint) {
    check->taint = UINT64_MAX;
    check->clean_from = check->goes_back_in;
  }
  check->goes_back = false;
}

/* ---- memory ---- */

/* The most that one call of a core may leave in its outbox. */
static uint32_t outbox_bound(const shoal_life *life, const shoal_sim_node *node) {
  uint32_t owners = life->plan.owners, units = life->plan.units;
  switch (node->role) {
  case SHOAL_SIM_CHIEF: /* everybody: a BEAT, a WAIT or all their leases; owners some orders */
    return (life->plan.workers_max + owners) * (units + 2) + 4 * owners + 8 +
           (life->plan.guarded ? owners * (4 * life->job->parts + 64) : 0);
  case SHOAL_SIM_OWNER: /* an answer each, and what the chief is told of a few rounds */
    return node->lines_count + 2 * life->job->config.mode.stale + 8 +
           (life->plan.guarded ? 16 * life->nodes_count : 0);
  default: /* a unit's slices, the next pulls, and returns */ return 2 * owners * (units + 2) + 2 * units + 8;
  }
}

/* Units of all rounds that may be under way; in async mode a round is one. */
static void check_book(shoal_life *life, const shoal_sim_node *chief) {
  const shoal_mode *mode = &life->job->config.mode;
  shoal_lease_counts leases = shoal_chief_leases(chief->chief);
  uint64_t units = (uint64_t)leases.free + leases.leased + leases.finished;
  uint64_t bound = (mode->stale + 1) * (uint64_t)life->job->parts;
  if (mode->kind == SHOAL_ASYNC)
    bound = life->job->end < SHOAL_ASYNC_WINDOW_MAX ? life->job->end : SHOAL_ASYNC_WINDOW_MAX;
  if (units > bound)
    shoal_check_violated(life, SHOAL_SIM_MEMORY, "the lease book has %llu units", (unsigned long long)units);
}

void shoal_check_memory(shoal_life *life, shoal_sim_node *node) {
  uint32_t count = shoal_life_outbox(node)->count, bound = outbox_bound(life, node);
  if (count > bound)
    shoal_check_violated(life, SHOAL_SIM_MEMORY, "%s wants to say %u things at once; at most %u make sense",
                         node->name, count, bound);
  if (node->disk.count > RECORDS_MAX)
    shoal_check_violated(life, SHOAL_SIM_MEMORY, "%s keeps %u records", node->name, node->disk.count);
  uint64_t under_way = shoal_world_count(life->world).under_way_max;
  /* On a link that many share, what an owner says to the chief waits for its turn behind all of them. */
  if (under_way > UNDER_WAY_MAX + 2 * (uint64_t)life->plan.workers)
    shoal_check_violated(life, SHOAL_SIM_MEMORY, "%llu messages are under way on one connection",
                         (unsigned long long)under_way);
  if (node->role == SHOAL_SIM_CHIEF) check_book(life, node);
}

/* ---- time ---- */

static void describe(shoal_life *life, char *text, size_t size) {
  size_t length = 0;
  const shoal_sim_node *chief = &life->nodes[0];
  shoal_lease_counts leases = shoal_chief_leases(chief->chief);
  length += (size_t)snprintf(
      text, size, "chief: version %llu of %llu, %s, %s, units %u free %u leased %u finished",
      (unsigned long long)shoal_chief_version(chief->chief), (unsigned long long)life->job->end,
      shoal_chief_running(chief->chief) ? "running" : "waits for parameter servers",
      chief->resting ? "rests" : "leases", leases.free, leases.leased, leases.finished);
  for (uint32_t i = 1; i < life->nodes_count && length < size; i++) {
    const shoal_sim_node *n = &life->nodes[i];
    if (!n->up) continue;
    bool connected = true;
    for (uint32_t r = 0; r < n->routes_count; r++) connected &= n->routes[r].open;
    const char *state = !connected ? "connects" : n->task.running ? "computes" : "waits";
    if (n->role == SHOAL_SIM_OWNER)
      length += (size_t)snprintf(text + length, size - length, "; %s: version %llu, %s", n->name,
                                 (unsigned long long)shoal_owner_state_of(n->owner)->version, state);
    else
      length += (size_t)snprintf(text + length, size - length, "; %s %s", n->name, state);
  }
}

void shoal_check_stuck(shoal_life *life) {
  char text[400] = "the chief is down";
  if (life->nodes[0].up) describe(life, text, sizeof text);
  shoal_check_violated(life, SHOAL_SIM_DEADLOCK, "no end after %.0f s: %s", shoal_world_now(life->world),
                       text);
}

void shoal_check_timer(shoal_life *life, bool later) {
  life->check.hurried = later ? 0 : life->check.hurried + 1;
  if (life->check.hurried > HURRIED_MAX)
    shoal_check_violated(life, SHOAL_SIM_DEADLOCK,
                         "at %.3f s the chief asks for a tick at once, again and again",
                         shoal_world_now(life->world));
}

void shoal_check_time(shoal_life *life) {
  shoal_check *check = &life->check;
  double now = shoal_world_now(life->world);
  check->standing = now > check->last_time ? 0 : check->standing + 1;
  check->last_time = now;
  if (check->standing > STANDING_MAX + 100 * (uint64_t)life->nodes_count)
    shoal_check_violated(life, SHOAL_SIM_DEADLOCK, "at %.3f s so much happens that time stands still", now);
  if (now > life->plan.limit_s) shoal_check_stuck(life);
}
