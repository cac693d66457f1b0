/* check_guard.c: rules about liars: what of theirs counts, and who is banned. */
#include <stdlib.h>

#include "base/assert.h"
#include "sim/life_internal.h"

/* Who lies always, and so often before it is banned, is not watched. */
enum { LIES_SEEN_MAX = 2 * SHOAL_TRUST_PROVES };

/* Liars whose every result is wrong from the first on. */
static bool lies_always(const shoal_sim_node *node) {
  return node->lie == SHOAL_LIE_ALWAYS || node->lie == SHOAL_LIE_PAIR || node->lie == SHOAL_LIE_DIGEST;
}

void shoal_check_lie(shoal_life *life, const shoal_message *m) {
  shoal_check *check = &life->check;
  if (check->lies_count == check->lies_size) {
    check->lies_size = check->lies_size == 0 ? 64 : 2 * check->lies_size;
    check->lies = realloc(check->lies, check->lies_size * sizeof *check->lies);
    SHOAL_ASSERT(check->lies != NULL);
  }
  check->lies[check->lies_count++] = (shoal_check_lie_told){m->lease, m->round};
}

static const shoal_check_lie_told *find_lie(const shoal_check *check, uint64_t lease) {
  for (uint32_t i = check->lies_count; i > 0; i--)
    if (check->lies[i - 1].lease == lease) return &check->lies[i - 1];
  return NULL;
}

/* A proven worker's lie may count; it is undone when it is found. */
void shoal_check_accept(shoal_life *life, const shoal_message *m) {
  shoal_check *check = &life->check;
  const shoal_check_lie_told *lie = find_lie(check, m->lease);
  if (lie == NULL) return;
  const uint64_t round = lie->round;
  bool newcomers = life->config.agreed < SHOAL_TRUST_PROVES;
  for (uint32_t i = 0; i < life->nodes_count; i++)
    newcomers &= life->nodes[i].lie == SHOAL_LIE_NONE || lies_always(&life->nodes[i]);
  const double recheck = life->plan.recheck;
  if (recheck > 0 ? recheck >= 1 : newcomers)
    shoal_check_violated(life, SHOAL_SIM_GUARD, "a lie counts in round %llu, and nobody who lies is believed",
                         (unsigned long long)round);
  if (m->slice == 0) life->report->lies_used++;
  if (round < check->taint) check->taint = round;
}

bool shoal_check_is_clean(const shoal_life *life, uint64_t generation, uint64_t version) {
  return generation >= life->check.clean_from && version <= life->check.taint;
}

void shoal_check_lie_seen(shoal_life *life, shoal_sim_node *worker) {
  uint64_t generation = shoal_chief_generation(life->nodes[0].chief);
  worker->lies_seen = worker->lies_generation == generation ? worker->lies_seen + 1 : 1;
  worker->lies_generation = generation;
  if (!life->plan.audited || life->plan.recheck > 0 || !lies_always(worker) ||
      life->config.agreed >= SHOAL_TRUST_PROVES || worker->lies_seen <= LIES_SEEN_MAX + 2 * life->plan.units)
    return;
  shoal_check_violated(life, SHOAL_SIM_GUARD, "%s lies for the %lluth time, and is not banned", worker->name,
                       (unsigned long long)worker->lies_seen);
}

void shoal_check_banned(shoal_life *life, const shoal_chief_event *event) {
  for (uint32_t i = 0; i < life->nodes_count; i++) {
    shoal_sim_node *node = &life->nodes[i];
    if (node->role != SHOAL_SIM_WORKER || shoal_lies_who(node) != event->standing.who) continue;
    if (node->lie == SHOAL_LIE_NONE || node->lie == SHOAL_LIE_STRANGER || node->lies_told == 0)
      shoal_check_violated(life, SHOAL_SIM_GUARD, "%s is honest, and is banned: %s", node->name, event->text);
    if (!node->banned && node->index == 1)
      life->report->caught_after = node->units_done - node->first_lie + 1;
    life->report->banned += !node->banned;
    node->banned = true;
  }
}

void shoal_check_liars(shoal_life *life) {
  if (life->check.taint == UINT64_MAX) return;
  life->report->lies_stayed++;
  shoal_life_log(life, NULL, "a lie of round %llu stays", (unsigned long long)life->check.taint);
}
