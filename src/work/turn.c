/* turn.c: see turn.h. */
#include "work/turn.h"

#include <stdio.h>

static const double LOAD_AGAIN_S = 600; /* between two notes that others keep the machine busy */
static const double RATE_S = 2, TEXT_S = 10;

static bool note_rest(shoal_work_rest *r, const shoal_work_config *config, double load, double now,
                      char note[SHOAL_WORK_TEXT_MAX]) {
  bool for_load = r->reason == SHOAL_MANNERS_LOAD;
  r->told = !for_load || r->load_told_at == 0 || now - r->load_told_at >= LOAD_AGAIN_S;
  if (!r->told) return false;
  if (for_load) r->load_told_at = now;
  if (for_load)
    snprintf(note, SHOAL_WORK_TEXT_MAX,
             "pausing: other programs keep %.1f of %u processors busy (limit %.1f, --pause-load); --no-pause "
             "works on",
             load, config->cores, config->rules.pause_load);
  else
    snprintf(note, SHOAL_WORK_TEXT_MAX, "pausing: %s", r->text);
  return true;
}

bool shoal_work_rest_look(shoal_work_rest *r, const shoal_work_config *config, double every_s, double now,
                          char note[SHOAL_WORK_TEXT_MAX]) {
  if (now - r->looked_at < every_s) return false;
  r->looked_at = now;
  shoal_manners_sight sight;
  shoal_manners_look(&r->watch, now, &sight);
  shoal_manners_reason before = r->reason;
  r->reason = shoal_manners_decide(&config->rules, &sight, now, &r->mood);
  if (r->reason != before || now - r->text_at >= TEXT_S) {
    shoal_manners_describe(r->reason, &config->rules, &sight, r->text);
    r->text_at = now;
  }
  if (r->reason == before) return false;
  if (r->reason != SHOAL_MANNERS_WORKS) return note_rest(r, config, sight.others_load, now, note);
  snprintf(note, SHOAL_WORK_TEXT_MAX, "going on");
  return r->told;
}

void shoal_work_rate_measure(shoal_work_rate *rate, const shoal_worker_count *count, double now) {
  double passed = now - rate->at;
  if (passed < RATE_S) return;
  uint64_t samples = __atomic_load_n(&count->samples, __ATOMIC_RELAXED);
  rate->samples_per_s = rate->at > 0 ? (double)(samples - rate->samples) / passed : 0;
  rate->at = now;
  rate->samples = samples;
}
