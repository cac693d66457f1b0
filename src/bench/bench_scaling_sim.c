/* bench_scaling_sim.c: a row of the table in the simulator: the same chief, parameter servers and
 * workers, in virtual time, with what was measured on this machine as costs.
 *
 * A life has a beginning (all dial and say hello) and an end. What is wanted is the speed in between,
 * so two lives of different lengths are lived and their difference counts. */
#include <math.h>

#include "bench/bench_scaling.h"
#include "sim/life.h"

enum { TURNS_SHORT = 4, TURNS_LONG = 12 }; /* rounds, or in async mode batches of every worker */
static const double UNSHAPED_RATE = 1e12;

/* Seconds of a life of so many turns, and its batches. */
static double live(const shoal_scaling *s, const shoal_mode *mode, uint32_t workers, uint32_t turns,
                   double *batches, shoal_error *err) {
  double rate = s->rate_mbit > 0 ? s->rate_mbit * 1e6 / 8 : UNSHAPED_RATE;
  bool async = mode->kind == SHOAL_ASYNC;
  shoal_sim_costs costs = {.owners = s->ps,
                           .parts = async ? 1 : workers,
                           .rounds = async ? (uint64_t)workers * turns : turns,
                           .server = {.rate = rate, .latency_s = s->latency_s},
                           .worker = {.rate = rate, .latency_s = s->latency_s},
                           .part_s = s->batch_s * mode->local,
                           .push_bytes = s->push_bytes,
                           .pull_bytes = s->pull_bytes,
                           .byte_s = s->contribution_s / s->push_bytes};
  const shoal_sim_config config = {.seed = 1, .workers = workers, .mode = mode, .costs = &costs};
  shoal_sim_report report;
  shoal_sim_live(&config, &report);
  *batches = (double)workers * turns * mode->local;
  if (report.violated == SHOAL_SIM_NOTHING) return report.virtual_s;
  shoal_fail(err, SHOAL_INVALID, "the simulator found the rule '%s' broken: %s",
             shoal_sim_checker_name(report.violated), report.text);
  return NAN;
}

double shoal_scaling_simulate(const shoal_scaling *s, const shoal_mode *mode, uint32_t workers,
                              shoal_error *err) {
  double batches[2], seconds[2];
  seconds[0] = live(s, mode, workers, TURNS_SHORT, &batches[0], err);
  if (isnan(seconds[0])) return NAN;
  seconds[1] = live(s, mode, workers, TURNS_LONG, &batches[1], err);
  return (batches[1] - batches[0]) / (seconds[1] - seconds[0]);
}
