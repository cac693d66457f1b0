/* nodes.c: what all nodes of a life do: see life_internal.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/life_internal.h"

static const double TICK_S = SHOAL_SIM_TICK_MS / 1000.0;
static const double WAIT_FIRST_S = 0.2, WAIT_MOST_S = 5; /* between dials */

void shoal_life_log(shoal_life *life, const shoal_sim_node *node, const char *format, ...) {
  if (life->config.log == NULL) return;
  char text[400];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  shoal_text_addf(life->config.log, "%10.3f  %-10s %s\n", shoal_world_now(life->world),
                  node != NULL ? node->name : "-", text);
}

shoal_sim_node *shoal_life_node(shoal_life *life, uint32_t number) {
  SHOAL_ASSERT(number < life->nodes_count);
  return &life->nodes[number];
}

/* A clock that jumped back stands still until it is where it was: that is what drivers make of it. */
double shoal_life_clock(shoal_life *life, shoal_sim_node *node) {
  double raw = shoal_world_now(life->world) + node->clock_shift;
  if (raw > node->clock_last) node->clock_last = raw;
  return node->clock_last;
}

shoal_outbox *shoal_life_outbox(shoal_sim_node *node) {
  if (node->role == SHOAL_SIM_CHIEF) return shoal_chief_outbox(node->chief);
  return node->role == SHOAL_SIM_OWNER ? shoal_owner_outbox(node->owner) : shoal_worker_outbox(node->worker);
}

/* ---- connections ---- */

shoal_sim_line *shoal_life_line(shoal_life *life, uint64_t connection) {
  if (connection > life->lines_size) {
    uint64_t size = life->lines_size == 0 ? 64 : life->lines_size;
    while (size < connection) size *= 2;
    life->lines = realloc(life->lines, size * sizeof *life->lines);
    SHOAL_ASSERT(life->lines != NULL);
    memset(life->lines + life->lines_size, 0, (size - life->lines_size) * sizeof *life->lines);
    life->lines_size = size;
  }
  return &life->lines[connection - 1];
}

/* Which end of the connection the node is: those who have a route of it have dialled. */
static int end_of(const shoal_sim_node *node, uint64_t connection) {
  for (uint32_t i = 0; i < node->routes_count; i++)
    if (node->routes[i].connection == connection) return 0;
  return 1;
}

static shoal_sim_route *route_of(shoal_sim_node *node, uint64_t connection) {
  for (uint32_t i = 0; i < node->routes_count; i++)
    if (node->routes[i].connection == connection) return &node->routes[i];
  return NULL;
}

static void dial(shoal_life *life, shoal_sim_node *node) {
  double now = shoal_world_now(life->world);
  for (uint32_t i = 0; i < node->routes_count; i++) {
    shoal_sim_route *route = &node->routes[i];
    if (route->connection == 0 && now >= route->retry_at)
      route->connection = shoal_world_dial(life->world, node->number, route->to);
  }
}

static void opened(shoal_life *life, shoal_sim_node *node, uint64_t connection) {
  int end = end_of(node, connection);
  shoal_sim_line *line = shoal_life_line(life, connection);
  double now = shoal_life_clock(life, node);
  line->open[end] = true;
  line->beat[end] = (shoal_beat){.said = now, .heard = now};
  if (node->lines_count == node->lines_size) {
    node->lines_size = node->lines_size == 0 ? 8 : 2 * node->lines_size;
    node->lines = realloc(node->lines, node->lines_size * sizeof *node->lines);
    SHOAL_ASSERT(node->lines != NULL);
  }
  node->lines[node->lines_count++] = connection;
  shoal_sim_route *route = route_of(node, connection);
  if (route != NULL) {
    route->open = true;
    route->wait_s = WAIT_FIRST_S;
  }
  shoal_role_opened(life, node, connection);
}

/* The node has lost a connection, or never got it. */
static void lost(shoal_life *life, shoal_sim_node *node, uint64_t connection) {
  shoal_sim_line *line = shoal_life_line(life, connection);
  bool was_open = line->open[end_of(node, connection)];
  line->open[end_of(node, connection)] = false;
  for (uint32_t i = 0; i < node->lines_count; i++)
    if (node->lines[i] == connection) node->lines[i--] = node->lines[--node->lines_count];
  shoal_sim_route *route = route_of(node, connection);
  if (was_open) shoal_role_gone(life, node, connection);
  if (route == NULL) return;
  double wait = route->wait_s * (0.75 + 0.5 * shoal_world_share(life->world));
  *route = (shoal_sim_route){.to = route->to,
                             .retry_at = shoal_world_now(life->world) + wait,
                             .wait_s = 2 * route->wait_s < WAIT_MOST_S ? 2 * route->wait_s : WAIT_MOST_S};
}

void shoal_life_hang_up(shoal_life *life, shoal_sim_node *node, uint64_t connection) {
  if (!shoal_life_line(life, connection)->open[end_of(node, connection)]) return;
  shoal_world_close(life->world, connection, node->number);
  lost(life, node, connection);
}

void shoal_life_send(shoal_life *life, shoal_sim_node *node, uint64_t connection, shoal_packet packet) {
  shoal_sim_line *line = shoal_life_line(life, connection);
  int end = end_of(node, connection);
  if (!line->open[end]) {
    shoal_message_release(&packet.message);
    return;
  }
  line->beat[end].said = shoal_life_clock(life, node);
  shoal_world_send(life->world, connection, node->number, packet);
}

/* Beats on all connections, and an end to those on which nothing comes. The chief's core says its
 * own beats. */
static void beat(shoal_life *life, shoal_sim_node *node) {
  const shoal_beat_rules *rules = &life->plan.beat;
  double now = shoal_life_clock(life, node);
  for (uint32_t i = 0; i < node->lines_count;) {
    uint64_t connection = node->lines[i];
    const shoal_beat *b = &shoal_life_line(life, connection)->beat[end_of(node, connection)];
    if (shoal_beat_lost(b, rules, now)) {
      shoal_life_log(life, node, "gives up a silent connection (%llu)", (unsigned long long)connection);
      shoal_life_hang_up(life, node, connection);
      continue;
    }
    if (node->role != SHOAL_SIM_CHIEF && shoal_beat_due(b, rules, now))
      shoal_life_send(life, node, connection, (shoal_packet){.message = {.kind = SHOAL_MSG_BEAT}});
    i++;
  }
}

/* ---- starting and stopping ---- */

static void settle(shoal_life *life, shoal_sim_node *node);

void shoal_life_start_node(shoal_life *life, shoal_sim_node *node) {
  SHOAL_ASSERT(!node->up);
  double now = shoal_world_now(life->world);
  node->up = true;
  node->busy = node->writing = false;
  node->clock_shift = node->clock_last = 0;
  shoal_world_up(life->world, node->number);
  for (uint32_t i = 0; i < node->routes_count; i++)
    node->routes[i] = (shoal_sim_route){.to = node->routes[i].to, .wait_s = WAIT_FIRST_S};
  shoal_role_start(life, node);
  dial(life, node);
  if (life->config.costs == NULL) /* where nothing goes wrong there is nothing to look after */
    shoal_world_wake(life->world, node->number, now + TICK_S * (1 + shoal_world_share(life->world)),
                     SHOAL_TAG_TICK);
  settle(life, node);
}

void shoal_life_stop_node(shoal_life *life, shoal_sim_node *node, bool silently) {
  SHOAL_ASSERT(node->up);
  double done = node->writing && node->write_s > 0
                    ? (shoal_world_now(life->world) - node->write_began) / node->write_s
                    : 0;
  shoal_disk_crash(&node->disk, silently, done < 1 ? done : 1, shoal_world_share(life->world));
  shoal_world_down(life->world, node->number, silently);
  for (uint32_t i = 0; i < node->lines_count; i++)
    shoal_life_line(life, node->lines[i])->open[end_of(node, node->lines[i])] = false;
  node->lines_count = 0;
  for (; node->inbox_count > 0; node->inbox_count--) {
    shoal_message_release(&node->inbox[node->inbox_first].packet.message);
    node->inbox_first = (node->inbox_first + 1) % node->inbox_size;
  }
  if (node->role == SHOAL_SIM_CHIEF) {
    uint64_t units, checks, rejected;
    life->report->again += shoal_chief_leases(node->chief).again;
    shoal_chief_audits(node->chief, &units, &checks, &rejected);
    life->report->units += units;
    life->report->checks += checks;
  }
  shoal_role_stop(node);
  node->up = false;
}

/* ---- happenings ---- */

void shoal_life_work(shoal_sim_node *node, double seconds) { node->busy_s += seconds; }

void shoal_life_write(shoal_life *life, shoal_sim_node *node, uint64_t name, const void *bytes,
                      size_t length) {
  SHOAL_ASSERT(!node->writing);
  shoal_disk_begin(&node->disk, name, bytes, length);
  node->writing = true;
  node->write_began = shoal_world_now(life->world);
  double usual = node->role == SHOAL_SIM_OWNER ? life->plan.slice_write_s : life->plan.write_s;
  node->write_s = usual * (0.5 + shoal_world_share(life->world));
  node->busy_s += node->write_s;
}

/* All that the core wants to be said goes on its way. */
static void post(shoal_life *life, shoal_sim_node *node) {
  shoal_sabotage_outbox(life, node);
  shoal_check_memory(life, node);
  shoal_letter letter;
  while (shoal_outbox_take(shoal_life_outbox(node), &letter)) {
    shoal_packet packet = {
        .message = letter.message, .version = node->note_version, .digest = node->note_digest};
    if (letter.peer == 0 || !shoal_sabotage_letter(life, node, letter.peer, &packet)) {
      shoal_message_release(&packet.message);
      continue;
    }
    if (node->role == SHOAL_SIM_WORKER) shoal_lies_letter(life, node, letter.peer, &packet);
    letter.message = packet.message;
    if (letter.message.kind == SHOAL_MSG_ACCEPT) shoal_check_accept(life, &letter.message);
    if (node->role == SHOAL_SIM_CHIEF) shoal_check_said(life, node, &letter.message);
    if (letter.message.kind == SHOAL_MSG_LEASE) shoal_check_lease(life, letter.peer, &letter.message);
    if (letter.message.kind == SHOAL_MSG_WEIGHTS) shoal_check_weights(life, &letter.message);
    shoal_life_send(life, node, letter.peer, packet);
  }
}

/* After a core was called: its driver does what it asks for, then what it says goes out, unless
 * the node has work to do first. */
static void settle(shoal_life *life, shoal_sim_node *node) {
  shoal_role_drive(life, node);
  if (node->busy_s > 0 || node->writing) {
    node->busy = true;
    shoal_world_wake(life->world, node->number, shoal_world_now(life->world) + node->busy_s, SHOAL_TAG_FREE);
    node->busy_s = 0;
    if (node->writing) shoal_faults_write(life, node);
    return;
  }
  post(life, node);
}

static void woken(shoal_life *life, shoal_sim_node *node, uint64_t tag) {
  if (tag != SHOAL_TAG_TICK) {
    shoal_role_woken(life, node, tag);
    return;
  }
  beat(life, node);
  dial(life, node);
  shoal_role_tick(life, node);
  shoal_world_wake(life->world, node->number, shoal_world_now(life->world) + TICK_S, SHOAL_TAG_TICK);
}

static void trace(shoal_life *life, const shoal_sim_node *node, const shoal_happening *h) {
  const shoal_message *m = &h->packet.message;
  if (m->kind == SHOAL_MSG_BEAT) return;
  shoal_life_log(
      life, node, "%s from %s (%llu): generation %llu lease %llu round %llu version %llu %u+%u slice %u",
      shoal_message_name(m->kind),
      life->nodes[shoal_world_other(life->world, h->connection, node->number)].name,
      (unsigned long long)h->connection, (unsigned long long)m->generation, (unsigned long long)m->lease,
      (unsigned long long)m->round, (unsigned long long)m->version, m->shard, m->count, m->slice);
}

static void handle(shoal_life *life, shoal_sim_node *node, shoal_happening *h) {
  switch (h->kind) {
  case SHOAL_WORLD_ARRIVED: {
    shoal_sim_line *line = shoal_life_line(life, h->connection);
    int end = end_of(node, h->connection);
    if (!line->open[end]) {
      shoal_message_release(&h->packet.message);
      return;
    }
    line->beat[end].heard = shoal_life_clock(life, node);
    if (life->config.trace) trace(life, node, h);
    shoal_role_receive(life, node, h->connection, &h->packet);
    break;
  }
  case SHOAL_WORLD_OPENED: opened(life, node, h->connection); break;
  case SHOAL_WORLD_CLOSED: lost(life, node, h->connection); break;
  case SHOAL_WORLD_WOKEN: woken(life, node, h->tag); break;
  }
  if (node->up) settle(life, node);
}

static void put_off(shoal_sim_node *node, const shoal_happening *h) {
  if (node->inbox_count == node->inbox_size) {
    uint32_t size = node->inbox_size == 0 ? 16 : 2 * node->inbox_size;
    shoal_happening *inbox = calloc(size, sizeof *inbox);
    SHOAL_ASSERT(inbox != NULL);
    for (uint32_t i = 0; i < node->inbox_count; i++)
      inbox[i] = node->inbox[(node->inbox_first + i) % node->inbox_size];
    free(node->inbox);
    node->inbox = inbox;
    node->inbox_size = size;
    node->inbox_first = 0;
  }
  node->inbox[(node->inbox_first + node->inbox_count++) % node->inbox_size] = *h;
}

/* The node is free again: what it wanted to say, then what came meanwhile. */
static void resume(shoal_life *life, shoal_sim_node *node) {
  node->busy = false;
  if (node->writing) {
    shoal_disk_finish(&node->disk);
    node->writing = false;
    shoal_role_written(life, node);
  }
  settle(life, node);
  while (node->up && !node->busy && node->inbox_count > 0 && !life->ended) {
    shoal_happening h = node->inbox[node->inbox_first];
    node->inbox_first = (node->inbox_first + 1) % node->inbox_size;
    node->inbox_count--;
    handle(life, node, &h);
  }
}

void shoal_life_happens(shoal_life *life, shoal_happening *h) {
  shoal_sim_node *node = shoal_life_node(life, h->node);
  SHOAL_ASSERT(node->up);
  if (h->kind == SHOAL_WORLD_WOKEN && h->tag == SHOAL_TAG_FREE)
    resume(life, node);
  else if (node->busy)
    put_off(node, h);
  else
    handle(life, node, h);
}
