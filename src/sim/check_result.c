/* check_result.c: rules about what comes of a training: every part once, the bits of one machine,
 * nothing from too old a version, nothing lost that was safe. */
#include <math.h>
#include <string.h>

#include "sim/life_internal.h"

/* ---- samples ---- */

/* In async mode the two counters tell which round was applied. */
static void count_round(shoal_life *life, uint32_t slice, double change, double change_of_second) {
  static const double tolerance = 0.01; /* of floats that were added up */
  shoal_check_slice *seen = &life->check.slices[slice];
  double exact = shoal_sim_job_round(change, change_of_second), round = floor(exact + 0.5);
  if (!(fabs(exact - round) < tolerance) || round < 0 || round >= (double)life->job->end) {
    shoal_check_violated(life, SHOAL_SIM_SAMPLES, "slice %u was changed by what is no round (%g)", slice,
                         exact);
    return;
  }
  if (seen->applied[(size_t)round]++ > 0)
    shoal_check_violated(life, SHOAL_SIM_SAMPLES, "round %.0f was applied twice to slice %u", round, slice);
}

static void check_counter(shoal_life *life, uint32_t slice, const shoal_owner_state *state,
                          uint64_t generation) {
  shoal_check_slice *seen = &life->check.slices[slice];
  const shoal_sim_job *job = life->job;
  size_t place;
  if (!shoal_sim_job_counter(job, slice, &place)) return;
  const float *at = &state->weights[place - job->slices[slice].offset];
  float counter = at[0];
  if (job->config.mode.kind != SHOAL_ASYNC) {
    if (counter != shoal_sim_job_counted(job))
      shoal_check_violated(life, SHOAL_SIM_SAMPLES,
                           "version %llu of slice %u does not have every part of round %llu once: %.0f "
                           "instead of %.0f",
                           (unsigned long long)state->version, slice, (unsigned long long)state->version - 1,
                           (double)-counter, (double)-shoal_sim_job_counted(job));
    return;
  }
  if (generation != seen->generation)
    memset(seen->applied, 0, job->end); /* what was applied since the safe version may count again */
  else if (state->version == seen->version + 1)
    count_round(life, slice, (double)(seen->counter - counter), (double)(seen->second - at[1]));
  seen->counter = counter;
  seen->second = at[1];
}

/* Without going back, async too has every round once. */
static void check_all_rounds(shoal_life *life) {
  if (life->job->config.mode.kind != SHOAL_ASYNC || life->report->backs != 1) return;
  for (uint32_t s = 0; s < life->plan.owners; s++) {
    size_t place;
    if (!shoal_sim_job_counter(life->job, s, &place)) continue;
    for (uint64_t r = 0; r < life->job->end; r++)
      if (life->check.slices[s].applied[r] != 1)
        shoal_check_violated(life, SHOAL_SIM_SAMPLES, "round %llu is %u times in slice %u",
                             (unsigned long long)r, life->check.slices[s].applied[r], s);
  }
}

void shoal_check_end(shoal_life *life) {
  check_all_rounds(life);
  shoal_check_liars(life);
}

/* ---- bits ---- */

static bool exact(const shoal_life *life, uint64_t generation, uint64_t version) {
  if (!life->plan.guarded) return life->job->exact && life->plan.liars == 0;
  return life->job->exact && shoal_check_is_clean(life, generation, version);
}

static void check_bits(shoal_life *life, uint32_t slice, uint64_t generation, uint64_t version,
                       const float *weights, const char *where) {
  const shoal_sim_job *job = life->job;
  if (!exact(life, generation, version)) return;
  const shoal_slice *s = &job->slices[slice];
  if (version > job->end) {
    shoal_check_violated(life, SHOAL_SIM_BITS, "slice %u is at version %llu, past the end", slice,
                         (unsigned long long)version);
    return;
  }
  const float *expected = job->versions + version * job->weights_count + s->offset;
  if (memcmp(weights, expected, s->count * sizeof *weights) == 0) return;
  size_t at = 0;
  while (memcmp(&weights[at], &expected[at], sizeof *weights) == 0) at++;
  shoal_check_violated(life, SHOAL_SIM_BITS,
                       "%s: slice %u at version %llu is not what one machine has: weight %zu is %.9g instead "
                       "of %.9g",
                       where, slice, (unsigned long long)version, s->offset + at, (double)weights[at],
                       (double)expected[at]);
}

void shoal_check_owner(shoal_life *life, shoal_sim_node *node) {
  shoal_check_slice *seen = &life->check.slices[node->index];
  const shoal_owner_state *state = shoal_owner_state_of(node->owner);
  uint64_t generation = shoal_owner_generation(node->owner);
  if (generation == 0) return; /* it has not been told yet where to begin */
  if (generation == seen->generation && state->version == seen->version) return;
  if (generation < seen->generation || (generation == seen->generation && state->version < seen->version))
    shoal_check_violated(life, SHOAL_SIM_VERSIONS,
                         "%s went from version %llu of generation %llu to version %llu of generation %llu",
                         node->name, (unsigned long long)seen->version, (unsigned long long)seen->generation,
                         (unsigned long long)state->version, (unsigned long long)generation);
  check_counter(life, node->index, state, generation);
  check_bits(life, node->index, generation, state->version, state->weights, node->name);
  seen->generation = generation;
  seen->version = state->version;
}

void shoal_check_round(shoal_life *life, const shoal_chief_event *event) {
  life->report->rounds++;
  if (!exact(life, event->state.generation, event->version) || life->job->sums == NULL) return;
  const shoal_sums *expected = &life->job->sums[event->version - 1];
  if (memcmp(expected, &event->sums, sizeof *expected) != 0)
    shoal_check_violated(life, SHOAL_SIM_BITS,
                         "the chief's loss of round %llu is %.17g, one machine's is %.17g",
                         (unsigned long long)event->version - 1, event->sums.loss, expected->loss);
}

void shoal_check_rest(shoal_life *life, const shoal_message *m) {
  const shoal_slice *s = &life->job->slices[m->slice];
  size_t bytes = (1 + life->job->slots) * s->count * sizeof(float);
  if (m->payload == NULL || shoal_blob_length(m->payload) != bytes) {
    shoal_check_violated(life, SHOAL_SIM_BITS, "slice %u comes with %zu bytes at a rest", m->slice,
                         m->payload != NULL ? shoal_blob_length(m->payload) : 0);
    return;
  }
  check_bits(life, m->slice, m->generation, m->version,
             (const float *)(const void *)shoal_blob_bytes(m->payload), "at a rest");
}

/* ---- staleness ---- */

void shoal_check_weights(shoal_life *life, const shoal_message *m) {
  shoal_check_slice *slice = &life->check.slices[m->slice];
  const shoal_mode_kind mode = life->job->config.mode.kind;
  const shoal_check_made *last = &slice->made[(slice->made_next + SHOAL_CHECK_MADE - 1) % SHOAL_CHECK_MADE];
  bool known = slice->made_count > 0 && last->version == m->version && last->generation == m->generation;
  /* In stale mode workers get weights that look ahead, and a rest gets them as they are. */
  if (mode == SHOAL_ASYNC || (known && mode != SHOAL_STALE)) return;
  uint64_t hash = shoal_sim_hash((const float *)(const void *)shoal_blob_bytes(m->payload),
                                 life->job->slices[m->slice].count);
  if (known && last->hash == hash) return;
  slice->made[slice->made_next] =
      (shoal_check_made){.hash = hash, .generation = m->generation, .version = m->version};
  slice->made_next = (slice->made_next + 1) % SHOAL_CHECK_MADE;
  if (slice->made_count < SHOAL_CHECK_MADE) slice->made_count++;
}

/* The newest version that was sent with these weights, or the one that the worker names if it was (what
 * is left of a contribution in a lossy format may change nothing); UINT64_MAX when there is none. */
static uint64_t version_of(const shoal_check_slice *slice, uint64_t hash, uint64_t named) {
  uint64_t newest = UINT64_MAX;
  for (uint32_t i = 1; i <= slice->made_count; i++) {
    const shoal_check_made *made = &slice->made[(slice->made_next + SHOAL_CHECK_MADE - i) % SHOAL_CHECK_MADE];
    if (made->hash != hash) continue;
    if (made->version == named) return named;
    if (newest == UINT64_MAX) newest = made->version;
  }
  return newest;
}

uint64_t shoal_check_computed(shoal_life *life, const shoal_work_unit *unit, const float *weights) {
  uint64_t version = UINT64_MAX;
  if (life->job->config.mode.kind == SHOAL_ASYNC) return unit->version;
  for (uint32_t s = 0; s < life->plan.owners; s++) {
    const shoal_slice *slice = &life->job->slices[s];
    if (slice->count == 0) continue;
    uint64_t hash = shoal_sim_hash(weights + slice->offset, slice->count);
    uint64_t found = version_of(&life->check.slices[s], hash, unit->version);
    if (found == UINT64_MAX)
      shoal_check_violated(life, SHOAL_SIM_BITS, "a worker computes round %llu with weights that nobody sent",
                           (unsigned long long)unit->round);
    else if (version != UINT64_MAX && found != version)
      shoal_check_violated(
          life, SHOAL_SIM_STALENESS, "a worker computes round %llu with versions %llu and %llu mixed",
          (unsigned long long)unit->round, (unsigned long long)version, (unsigned long long)found);
    if (found < version) version = found;
  }
  return version;
}

/* What was computed from `version` for `round` is about to be used. */
static void check_age(shoal_life *life, const char *what, uint64_t round, uint64_t version) {
  const shoal_mode *mode = &life->job->config.mode;
  if (mode->kind == SHOAL_ASYNC || (version + mode->stale >= round && version <= round)) return;
  shoal_check_violated(life, SHOAL_SIM_STALENESS,
                       "a %s for round %llu was computed from version %llu; %u behind is allowed", what,
                       (unsigned long long)round, (unsigned long long)version, mode->stale);
}

void shoal_check_push(shoal_life *life, shoal_sim_node *node, const shoal_packet *packet) {
  const shoal_message *m = &packet->message;
  uint64_t at = shoal_owner_state_of(node->owner)->version;
  bool taken = m->generation == shoal_owner_generation(node->owner) && m->round >= at &&
               m->round <= at + life->job->config.mode.stale;
  if (taken) check_age(life, "contribution", m->round, packet->version);
}

void shoal_check_report(shoal_life *life, const shoal_packet *packet) {
  check_age(life, "report", packet->message.round, packet->version);
}

/* ---- durable ---- */

void shoal_check_safe(shoal_life *life, uint64_t version) {
  if (version < life->check.safe)
    shoal_check_violated(life, SHOAL_SIM_DURABLE, "version %llu becomes safe after version %llu",
                         (unsigned long long)version, (unsigned long long)life->check.safe);
  life->check.safe = version;
}

void shoal_check_found(shoal_life *life, const shoal_sim_node *node, uint64_t version, bool found) {
  if (version > 0 && !found)
    shoal_check_violated(life, SHOAL_SIM_DURABLE, "%s should go back to version %llu and does not have it",
                         node->name, (unsigned long long)version);
}

void shoal_check_start(shoal_life *life, bool found, uint64_t version) {
  life->check.starts++;
  life->check.back_generation = 0;
  if (!found && life->check.kept > 0)
    shoal_check_violated(life, SHOAL_SIM_DURABLE, "the chief's record is gone");
  if (found && version < life->check.safe)
    shoal_check_violated(life, SHOAL_SIM_DURABLE, "the chief starts at version %llu, but %llu was safe",
                         (unsigned long long)version, (unsigned long long)life->check.safe);
}
