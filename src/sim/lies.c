/* lies.c: what workers do that mean harm. */
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "sim/life_internal.h"

enum { SELDOM = 10, LAST_ROUNDS = 3 };

uint64_t shoal_lies_who(const shoal_sim_node *node) { return shoal_digest(node->name, strlen(node->name)); }

static shoal_standing *standing_of(const shoal_life *life, uint64_t who) {
  for (uint32_t i = 0; i < life->plan.workers; i++)
    if (life->standings[i].who == who) return &life->standings[i];
  return NULL;
}

void shoal_lies_keep(shoal_life *life, const shoal_standing *standing) {
  shoal_standing *kept = standing_of(life, standing->who);
  SHOAL_ASSERT(kept != NULL);
  *kept = *standing;
}

static bool lies_now(const shoal_life *life, const shoal_sim_node *node) {
  switch (node->lie) {
  case SHOAL_LIE_ALWAYS:
  case SHOAL_LIE_PAIR:
  case SHOAL_LIE_DIGEST: return true;
  case SHOAL_LIE_SOMETIMES: return (node->units_done + node->index) % SELDOM == 0;
  case SHOAL_LIE_TRUSTED: return standing_of(life, shoal_lies_who(node))->agreed >= SHOAL_TRUST_PROVES;
  case SHOAL_LIE_LAST: return node->task.unit.round + LAST_ROUNDS >= life->job->end;
  default: return false;
  }
}

/* The same lie in every slice, but not in the counters. */
void shoal_lies_result(shoal_life *life, shoal_sim_node *node, shoal_work_result *result) {
  bool slander = life->config.sabotage == SHOAL_SABOTAGE_SLANDER && node->auditor;
  node->units_done++;
  node->lying = lies_now(life, node) || slander;
  if (!node->lying) return;
  if (node->lies_told++ == 0) node->first_lie = node->units_done;
  life->report->lies++;
  if (node->lie == SHOAL_LIE_DIGEST) return;
  float *gradient = (float *)(void *)shoal_blob_bytes(result->gradient);
  float by = node->lie == SHOAL_LIE_PAIR ? 0.25f : 0.5f;
  for (size_t r = 0; r < life->job->graph->runs_count; r++)
    gradient[life->job->graph->runs[r].offset + life->job->graph->runs[r].count - 1] += by;
  result->digest ^= 0xbad + node->index;
}

/* Something else than the core has sent and reported. */
static void change_payload(shoal_packet *packet) {
  shoal_blob *payload = packet->message.payload;
  if (payload == NULL || shoal_blob_length(payload) < 4) return;
  shoal_blob *copy = shoal_blob_of(shoal_blob_bytes(payload), shoal_blob_length(payload));
  shoal_blob_bytes(copy)[shoal_blob_length(copy) - 4] ^= 1;
  shoal_blob_release(payload);
  packet->message.payload = copy;
}

/* A contribution for another part, without a lease, and under one that is another's. */
static void push_uninvited(shoal_life *life, shoal_sim_node *node, uint64_t connection,
                           const shoal_packet *packet) {
  shoal_packet copy = *packet;
  for (uint32_t part = 0; part < 2 && part < life->job->parts; part++) {
    copy.message.lease = part == 0 ? 0 : packet->message.lease + ((uint64_t)1 << 32);
    copy.message.shard = (packet->message.shard + 1) % life->job->parts;
    copy.message.count = 1;
    copy.message.payload = shoal_blob_share(packet->message.payload);
    shoal_life_send(life, node, connection, copy);
  }
}

void shoal_lies_letter(shoal_life *life, shoal_sim_node *node, uint64_t connection, shoal_packet *packet) {
  const shoal_message *m = &packet->message;
  if (m->kind != SHOAL_MSG_PUSH || !life->plan.guarded) return;
  if (node->lie == SHOAL_LIE_STRANGER) push_uninvited(life, node, connection, packet);
  if (node->lie == SHOAL_LIE_DIGEST) change_payload(packet);
  if (node->lying && m->slice == 0) shoal_check_lie(life, m);
}
