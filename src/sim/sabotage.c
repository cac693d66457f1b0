/* sabotage.c: rules broken on purpose, at the seam between a core and the world, so that the cores
 * carry no code for it. tests/sim/test_checkers.c shows that each is caught, and by whom. */
#include <string.h>

#include "nn/tree.h"
#include "sim/life_internal.h"

enum { FLOOD = 100, ECHO = 1000 };

static bool one_in(shoal_life *life, uint64_t n) { return shoal_world_draw(life->world, n) == 0; }

shoal_disk_care shoal_sabotage_care(const shoal_life *life, const shoal_sim_node *node) {
  if (life->config.sabotage == SHOAL_SABOTAGE_NO_FLUSH && node->role == SHOAL_SIM_OWNER)
    return SHOAL_DISK_NO_FLUSH;
  if (life->config.sabotage == SHOAL_SABOTAGE_IN_PLACE && node->role == SHOAL_SIM_CHIEF)
    return SHOAL_DISK_IN_PLACE;
  return SHOAL_DISK_CAREFUL;
}

bool shoal_sabotage_keeps(const shoal_life *life, const shoal_chief_event *event) {
  return life->config.sabotage != SHOAL_SABOTAGE_SAME_GENERATION || event->kind != SHOAL_CHIEF_BACK;
}

/* The same sum, as if it were the neighbour's. */
static void push_twice(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                       const shoal_packet *packet) {
  uint32_t width, parts = life->job->parts;
  const shoal_message *m = &packet->message;
  if (!shoal_tree_is_node(parts, m->shard, m->count, &width) || width >= parts) return;
  uint32_t other = m->shard ^ width;
  if (other >= parts || shoal_tree_count(parts, other, width) != m->count) return;
  shoal_packet copy = *packet;
  copy.message.shard = other;
  copy.message.payload = shoal_blob_share(m->payload);
  shoal_life_send(life, node, connection, copy);
}

static void lease_twice(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                        const shoal_packet *packet) {
  for (uint32_t i = 0; i < node->lines_count; i++) {
    uint64_t other = node->lines[i];
    if (other == connection || shoal_life_line(life, other)->role != SHOAL_ROLE_WORKER) continue;
    shoal_packet copy = *packet;
    copy.message.payload = shoal_blob_share(packet->message.payload);
    shoal_check_lease(life, other, &copy.message);
    shoal_life_send(life, node, other, copy);
    return;
  }
}

/* The last weight of a slice is never its counter, if the slice has more than one. */
static void flip_bit(shoal_packet *packet) {
  shoal_blob *payload = packet->message.payload;
  if (payload == NULL || shoal_blob_length(payload) < 8 * sizeof(float)) return;
  shoal_blob *copy = shoal_blob_of(shoal_blob_bytes(payload), shoal_blob_length(payload));
  shoal_blob_bytes(copy)[5 * sizeof(float)] ^= 1;
  shoal_blob_release(payload);
  packet->message.payload = copy;
}

static void pull_again(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                       const shoal_packet *packet) {
  for (int k = 0; k < ECHO; k++) shoal_life_send(life, node, connection, *packet);
}

bool shoal_sabotage_letter(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                           shoal_packet *packet) {
  shoal_message *m = &packet->message;
  uint64_t stale = life->job->config.mode.stale;
  switch (life->config.sabotage) {
  case SHOAL_SABOTAGE_PART_TWICE:
    if (m->kind == SHOAL_MSG_PUSH && life->job->counts && one_in(life, 2))
      push_twice(life, node, connection, packet);
    break;
  case SHOAL_SABOTAGE_TWO_HOLDERS:
    if (m->kind == SHOAL_MSG_LEASE && one_in(life, 10)) lease_twice(life, node, connection, packet);
    break;
  case SHOAL_SABOTAGE_FLIP_BIT:
    if (m->kind == SHOAL_MSG_PUSH && one_in(life, 20)) flip_bit(packet);
    break;
  case SHOAL_SABOTAGE_OLD_WEIGHTS:
    if (m->kind == SHOAL_MSG_LEASE && m->round > stale) m->version = m->round - stale - 1;
    break;
  case SHOAL_SABOTAGE_BLIND:
    if (m->kind == SHOAL_MSG_DONE) m->version = 0;
    break;
  case SHOAL_SABOTAGE_ECHO:
    if (m->kind == SHOAL_MSG_PULL && node->role == SHOAL_SIM_WORKER)
      pull_again(life, node, connection, packet);
    break;
  case SHOAL_SABOTAGE_LOST_DONE:
    if (m->kind == SHOAL_MSG_DONE && m->round == life->job->end / 2 && m->shard == 0) return false;
    break;
  default: break;
  }
  return true;
}

void shoal_sabotage_outbox(shoal_life *life, shoal_sim_node *node) {
  if (life->config.sabotage != SHOAL_SABOTAGE_FLOOD || node->role != SHOAL_SIM_CHIEF) return;
  for (uint32_t i = 0; i < node->lines_count; i++)
    for (int k = 0; k < FLOOD; k++)
      shoal_outbox_put(shoal_life_outbox(node), node->lines[i], (shoal_message){.kind = SHOAL_MSG_BEAT});
}
