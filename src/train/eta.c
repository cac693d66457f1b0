/* eta.c: see eta.h. */
#include "train/eta.h"

#include <math.h>

static const double MEMORY_S = 30; /* what is as long ago counts a third */
static const double FORWARD = 3;   /* scoring a sample takes a third of learning from it */
/* A round that took longer than this, and so many times as long as usual, has waited for somebody: that says
 * nothing about the rounds to come. */
static const double WAITING_S = 2, WAITING_TIMES = 10;

void shoal_eta_start(shoal_eta *eta, uint64_t held_out, uint64_t batch) {
  double rounds = batch > 0 ? (double)held_out / ((double)batch * FORWARD) : 0;
  *eta = (shoal_eta){.pause_s = NAN, .pause_rounds = rounds, .last = NAN};
}

static double round_s(const shoal_eta *eta) { return eta->rounds > 0 ? eta->seconds / eta->rounds : NAN; }

void shoal_eta_round(shoal_eta *eta, uint64_t rounds, bool ends_epoch, double now) {
  double took = now - eta->last, usual = round_s(eta) * (double)rounds;
  bool waited = took > WAITING_S && took > WAITING_TIMES * usual;
  bool is_known = took >= 0 && rounds > 0; /* not the first, and it did not go back */
  if (is_known && eta->pauses) {
    double pause = fmax(0, took - usual);
    if (!isnan(usual)) eta->pause_s = isnan(eta->pause_s) ? pause : (eta->pause_s + pause) / 2;
  } else if (is_known && !waited) {
    double kept = exp(-took / MEMORY_S);
    eta->rounds = eta->rounds * kept + (double)rounds;
    eta->seconds = eta->seconds * kept + took;
  }
  eta->last = now;
  eta->pauses = ends_epoch;
}

double shoal_eta_left(const shoal_eta *eta, uint64_t rounds_left, uint64_t epoch_rounds, double now) {
  double each = round_s(eta);
  if (isnan(each) || epoch_rounds == 0) return NAN;
  double pause = isnan(eta->pause_s) ? eta->pause_rounds * each : eta->pause_s;
  double pauses = ceil((double)rounds_left / (double)epoch_rounds) + (eta->pauses ? 1 : 0);
  /* What is under way goes by, until it takes longer than it should. */
  double gone = fmin(fmax(0, now - eta->last), eta->pauses ? pause : rounds_left > 0 ? each : 0);
  return fmax(0, (double)rounds_left * each + pauses * pause - gone);
}
