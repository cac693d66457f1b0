/* life.c: a life: its plan, drawn from the seed, and the loop that lives it. */
#include "sim/life.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "proto/codec.h"
#include "sim/life_internal.h"

/* ---- the plan ---- */

/* The plan has random numbers of its own, so that it can be drawn before there is a world. */
typedef struct dice {
  shoal_key key;
  uint64_t next;
} dice;

static uint32_t draw(dice *d, uint32_t below) {
  return (uint32_t)shoal_random_below(d->key, d->next++, below);
}
static double share(dice *d) { return shoal_random_uniform(d->key, d->next++); }
static double between(dice *d, double low, double high) { return low + (high - low) * share(d); }
static double scale(dice *d, double low, double high) { return exp(between(d, log(low), log(high))); }

enum { PIECE_BYTES = 65536, PIECES_MAX = 32 }; /* of a message, where times are measured */
enum { MANY = 16 }; /* workers: from here on a life has more parts and fewer rounds */

static shoal_mode draw_mode(dice *d) {
  char text[24] = "sync";
  uint32_t face = draw(d, 20);
  if (face >= 11) snprintf(text, sizeof text, "local:%u", 1 + draw(d, 20));
  if (face >= 14) snprintf(text, sizeof text, "stale:%u", 1 + draw(d, 4));
  if (face >= 18) snprintf(text, sizeof text, "async");
  shoal_mode mode;
  shoal_status status = shoal_mode_parse(text, &mode, NULL);
  SHOAL_ASSERT(status == SHOAL_OK);
  return mode;
}

static void plan_job(shoal_sim_plan *p, const shoal_sim_config *config, dice *d) {
  bool many = p->workers > MANY;
  p->job = (shoal_sim_job_config){.seed = config->seed, .owners = p->owners};
  p->job.mode = draw_mode(d);
  if (config->mode != NULL) p->job.mode = *config->mode;
  const bool sync = p->job.mode.kind == SHOAL_SYNC;
  if (sync && !many && draw(d, 6) == 0) p->job.net = SHOAL_SIM_DENSE + draw(d, 3);
  p->job.recipe = draw(d, 2) == 0 ? 0 : 1 + draw(d, 3);
  p->job.carry = sync && draw(d, 4) == 0 && p->job.net == SHOAL_SIM_CHEAP;
  p->job.format = draw(d, 10) == 0 ? SHOAL_WIRE_BF16 + draw(d, 3) : SHOAL_WIRE_F32;
  p->job.parts = many ? p->workers : 1 + draw(d, 12);
  if (many && p->job.mode.kind == SHOAL_ASYNC) p->job.parts = 1 + draw(d, 4); /* a unit is all of them */
  p->job.rounds = many ? 3 : 2 + draw(d, 8);
  p->job.epochs = 1 + draw(d, many ? 2 : 4);
}

static void plan_times(shoal_sim_plan *p, dice *d) {
  double latency = scale(d, 0.0002, 0.04);
  p->server = (shoal_world_link){
      .rate = scale(d, 1e6, 1e9), .latency_s = latency, .jitter_s = latency * between(d, 0, 3)};
  p->worker = p->server;
  p->worker.rate = scale(d, 1e5, 1e8);
  p->rules.push_scale = p->rules.pull_scale = 1;
  if (draw(d, 5) == 0) p->rules.twice = p->rules.late = between(d, 0.01, 0.1);
  p->part_s = scale(d, 0.05, 0.5);
  p->part_spread = between(d, 0, 0.5);
  p->byte_s = 1e-9;
  p->write_s = scale(d, 0.002, 0.3);
  p->eval_s = between(d, 0, 1);
  p->beat = (shoal_beat_rules){.every_s = 1, .silence_s = between(d, 4, 8)};
  p->lost_s = between(d, 4, 10);
  p->save_s = scale(d, 0.5, 5);
  p->leases = (shoal_lease_rules){.holders_max = 2 + draw(d, 2),
                                  .patience = between(d, 1.5, 4),
                                  .first_s = between(d, 2, 10),
                                  .least_s = between(d, 0.3, 1)};
  p->rests = draw(d, 4) == 0 ? 0.02 : 0;
}

static void plan_faults(shoal_sim_plan *p, dice *d) {
  const shoal_mode_kind mode = p->job.mode.kind;
  p->quiet = draw(d, 12) == 0;
  p->fault_gap_s = scale(d, 0.3, 6);
  p->calm_s = between(d, 10, 120);
  if (p->workers > 1 && draw(d, 3) == 0) p->slow = 1 + draw(d, p->workers - 1);
  bool compared = mode == SHOAL_SYNC || mode == SHOAL_LOCAL;
  if (p->workers > 1 && compared && p->job.net == SHOAL_SIM_CHEAP && draw(d, 12) == 0)
    p->liars = 1 + draw(d, p->workers > 3 ? 2 : 1);
  uint64_t end = p->job.rounds * p->job.epochs;
  p->limit_s = p->calm_s + 300 + 20 * (double)end * p->job.parts * p->part_s;
}

/* Now and then disks are so slow that keeping a version takes longer than a loss takes to be noticed. */
static void plan_disks(shoal_sim_plan *p, const shoal_sim_config *config, dice *d) {
  p->slice_write_s = p->write_s;
  p->slow_disks = draw(d, 20) == 0 || config->slow_disks;
  if (!p->slow_disks) return;
  p->slice_write_s = p->lost_s * between(d, 1, 4);
  p->limit_s += 20 * p->slice_write_s;
}

/* Drawn last: what was drawn before is the same for all. Where results cannot be compared there are no liars: nobody
 * would find them. */
static void plan_guard(shoal_sim_plan *p, const shoal_sim_config *config, dice *d) {
  const shoal_mode_kind mode = p->job.mode.kind;
  p->guarded = draw(d, 4) == 0 || config->guarded;
  uint32_t liars = draw(d, 2) == 0 ? 0 : 1 + draw(d, SHOAL_SIM_LIARS_MAX);
  /* Each of the other rules is broken where the guard does not stand before it. */
  bool of_guard = config->sabotage == SHOAL_SABOTAGE_GULLIBLE || config->sabotage == SHOAL_SABOTAGE_SLANDER;
  if (config->sabotage != SHOAL_SABOTAGE_NONE) p->guarded = of_guard;
  if (!p->guarded) return;
  /* What is longer than others is scaled down there, which counters would not bear. */
  bool compared = mode == SHOAL_SYNC || mode == SHOAL_LOCAL;
  if (!compared && p->job.recipe == 0) p->job.recipe = 1;
  p->audited = compared && p->job.format != SHOAL_WIRE_TOPK;
  if (config->lie != SHOAL_LIE_NONE) liars = config->liars;
  p->liars = p->audited && p->workers > 1 ? liars : 0;
  if (p->liars >= p->workers) p->liars = p->workers - 1;
  for (uint32_t i = 0; i < SHOAL_SIM_LIARS_MAX; i++)
    p->lies[i] = config->lie != SHOAL_LIE_NONE ? config->lie : SHOAL_LIE_ALWAYS + draw(d, SHOAL_LIES - 1);
  if (draw(d, 4) == 0 && config->lie == SHOAL_LIE_NONE) p->lies[0] = p->lies[1] = SHOAL_LIE_PAIR;
  bool drawn = config->lie == SHOAL_LIE_NONE && !config->calm && config->sabotage == SHOAL_SABOTAGE_NONE;
  if (p->audited) p->recheck = config->recheck > 0 ? config->recheck : drawn && draw(d, 4) == 0 ? 1 : 0;
  /* Everything of a newcomer is computed twice, and what is undone again. */
  p->limit_s += 100 + 60 * (double)(p->job.rounds * p->job.epochs) * p->job.parts * p->part_s;
}

static shoal_sim_plan draw_plan(const shoal_sim_config *config) {
  dice d = {.key = shoal_key_make(config->seed, SHOAL_FOR_SIMULATION, 2, 0)};
  shoal_sim_plan p = {.workers = 1 + draw(&d, draw(&d, 5) == 0 ? MANY : 6)};
  if (draw(&d, 50) == 0) p.workers = MANY + 1 + draw(&d, 3 * MANY);
  if (config->workers > 0) p.workers = config->workers;
  p.owners = 1 + draw(&d, 3);
  if (config->owners > 0) p.owners = config->owners;
  p.units = 1 + draw(&d, 2);
  p.workers_first = 1 + draw(&d, p.workers);
  if (p.workers > MANY) p.workers_first = p.workers - draw(&d, p.workers / 4);
  p.workers_max = p.workers + (draw(&d, 2) == 0 ? 0 : 8);
  p.rules.seed = config->seed;
  plan_job(&p, config, &d);
  plan_times(&p, &d);
  plan_faults(&p, &d);
  plan_disks(&p, config, &d);
  if (config->end > 0) {
    p.job.rounds = config->end;
    p.job.epochs = 1;
  }
  if (config->calm) {
    p.quiet = true;
    p.slow = 0;
    p.rests = 0;
    p.rules.twice = p.rules.late = 0;
    p.job.format = SHOAL_WIRE_F32;
    p.job.net = SHOAL_SIM_CHEAP;
    p.job.parts = 2 * p.workers;
    p.workers_first = p.workers;
    p.job.carry = false;
    p.job.light = true; /* nothing is compared with one machine: it is long */
  }
  plan_guard(&p, config, &d);
  if (draw(&d, 6) == 0 && config->sabotage == SHOAL_SABOTAGE_NONE) p.full_s = between(&d, 2, 30);
  return p;
}

/* A world to measure in: nothing goes wrong, nobody is given up, nothing is kept before the end. */
static shoal_sim_plan plan_of_costs(const shoal_sim_config *config) {
  const shoal_sim_costs *c = config->costs;
  const double never = 1e12;
  shoal_mode mode = {.kind = SHOAL_SYNC, .local = 1};
  if (config->mode != NULL) mode = *config->mode;
  return (shoal_sim_plan){.owners = c->owners,
                          .workers = config->workers,
                          .workers_first = config->workers,
                          .workers_max = config->workers,
                          .units = 1, /* as the real ones */
                          .job = {.seed = config->seed,
                                  .mode = mode,
                                  .owners = c->owners,
                                  .parts = c->parts,
                                  .rounds = c->rounds,
                                  .epochs = 1,
                                  .light = true},
                          .server = c->server,
                          .worker = c->worker,
                          .rules = {.seed = config->seed, .push_scale = 1, .pull_scale = 1},
                          .part_s = c->part_s,
                          .part_spread = c->part_spread,
                          .byte_s = c->byte_s,
                          .beat = {.every_s = never, .silence_s = never},
                          .lost_s = never,
                          .save_s = never,
                          .leases = {.holders_max = 2, .patience = 1000, .first_s = never, .least_s = 1},
                          .limit_s = never,
                          .quiet = true};
}

/* ---- the loop ---- */

static void add_node(shoal_life *life, shoal_sim_role role, uint32_t index) {
  const shoal_sim_plan *plan = &life->plan;
  shoal_sim_node *n = &life->nodes[life->nodes_count++];
  *n = (shoal_sim_node){.role = role, .index = index, .slow = 1};
  if (role == SHOAL_SIM_CHIEF)
    snprintf(n->name, sizeof n->name, "chief");
  else
    snprintf(n->name, sizeof n->name, role == SHOAL_SIM_OWNER ? "ps-%u" : "worker-%u", index);
  n->auditor = role == SHOAL_SIM_WORKER && index == plan->workers;
  if (n->auditor) snprintf(n->name, sizeof n->name, "auditor");
  n->number = shoal_world_add(life->world, role == SHOAL_SIM_WORKER ? &plan->worker : &plan->server);
  n->routes_count = role == SHOAL_SIM_CHIEF ? 0 : role == SHOAL_SIM_OWNER ? 1 : 1 + plan->owners;
  n->routes = calloc(n->routes_count + 1, sizeof *n->routes);
  SHOAL_ASSERT(n->routes != NULL);
  for (uint32_t i = 0; i < n->routes_count; i++) n->routes[i].to = i; /* the chief, then the owners */
  if (role != SHOAL_SIM_WORKER || n->auditor) return;
  if (index > 0 && index <= plan->liars) n->lie = plan->guarded ? plan->lies[index - 1] : SHOAL_LIE_ALWAYS;
  bool slow = index > 0 && index >= plan->workers - plan->slow;
  if (slow) n->slow = exp(log(2) + log(25) * shoal_world_share(life->world));
}

static void begin(shoal_life *life, const shoal_sim_config *config, shoal_sim_report *report) {
  *life = (shoal_life){.config = *config, .report = report};
  life->plan = config->costs != NULL ? plan_of_costs(config) : draw_plan(config);
  shoal_sim_plan *plan = &life->plan;
  life->calm = plan->quiet;
  life->job = shoal_sim_job_create(&plan->job);
  plan->job.parts = life->job->parts;
  if (config->costs != NULL) {
    const double own_bytes = (double)life->job->weights_count * sizeof(float);
    const double push = config->costs->push_bytes, pull = config->costs->pull_bytes;
    if (push > 0) plan->rules.push_scale = push / own_bytes;
    if (pull > 0) plan->rules.pull_scale = pull / own_bytes;
    plan->rules.piece_bytes = fmax(PIECE_BYTES, fmax(push, pull) / plan->owners / PIECES_MAX);
  }
  uint32_t nodes = 1 + plan->owners + plan->workers + plan->guarded;
  life->world = shoal_world_create(&plan->rules, nodes);
  life->nodes = calloc(nodes, sizeof *life->nodes);
  SHOAL_ASSERT(life->nodes != NULL);
  add_node(life, SHOAL_SIM_CHIEF, 0);
  for (uint32_t s = 0; s < plan->owners; s++) add_node(life, SHOAL_SIM_OWNER, s);
  for (uint32_t i = 0; i < plan->workers + plan->guarded; i++) add_node(life, SHOAL_SIM_WORKER, i);
  life->standings = calloc(plan->workers, sizeof *life->standings);
  SHOAL_ASSERT(life->standings != NULL);
  for (uint32_t i = 0; i < plan->workers; i++) {
    bool known = config->proven == 0 || (i > 0 && i <= config->proven);
    life->standings[i] = (shoal_standing){.who = shoal_lies_who(&life->nodes[1 + plan->owners + i]),
                                          .agreed = known ? config->agreed : 0};
  }
  shoal_check_init(life);
}

static void describe(const shoal_life *life) {
  static const char *const modes[] = {"sync", "stale", "async", "local"};
  static const char *const nets[] = {"cheap", "dense", "clipped", "recurrent"};
  const shoal_sim_plan *p = &life->plan;
  char extra[24] = "";
  if (p->job.mode.kind == SHOAL_STALE) snprintf(extra, sizeof extra, ":%u", p->job.mode.stale);
  if (p->job.mode.kind == SHOAL_LOCAL) snprintf(extra, sizeof extra, ":%u", p->job.mode.local);
  snprintf(life->report->what, sizeof life->report->what,
           "%s%s, %s, %s, %u workers, %u parameter servers, %llu rounds of %u parts%s%s%s%s%s",
           modes[p->job.mode.kind], extra, nets[p->job.net], shoal_codec_name(p->job.format), p->workers,
           p->owners, (unsigned long long)life->job->end, life->job->parts, p->quiet ? ", no faults" : "",
           p->liars > 0 ? ", liars" : "", p->slow_disks ? ", slow disks" : "",
           p->full_s > 0 ? ", full disks" : "", p->guarded ? p->audited ? ", audited" : ", guarded" : "");
  life->report->guarded = p->guarded;
  life->report->liars = p->liars;
  life->report->workers = p->workers;
  life->report->owners = p->owners;
}

static void end(shoal_life *life) {
  shoal_world_counts counts = shoal_world_count(life->world);
  shoal_sim_report *r = life->report;
  r->messages = counts.messages;
  r->bytes = counts.bytes;
  r->faults[SHOAL_FAULT_TWICE] = counts.twice;
  r->faults[SHOAL_FAULT_LATE] = counts.late;
  r->faults[SHOAL_FAULT_LIAR] = life->plan.liars;
  r->virtual_s = shoal_world_now(life->world);
  for (uint32_t i = 0; i < life->nodes_count; i++) {
    shoal_sim_node *n = &life->nodes[i];
    if (n->up) shoal_life_stop_node(life, n, true);
    shoal_disk_release(&n->disk);
    free(n->routes);
    free(n->lines);
    free(n->inbox);
  }
  shoal_check_release(life);
  shoal_world_destroy(life->world);
  shoal_sim_job_destroy(life->job);
  free(life->nodes);
  free(life->standings);
  free(life->lines);
}

void shoal_sim_live(const shoal_sim_config *config, shoal_sim_report *report) {
  *report = (shoal_sim_report){0};
  shoal_life life;
  begin(&life, config, report);
  describe(&life);
  shoal_life_log(&life, NULL, "%s", report->what);
  uint32_t first = 1 + life.plan.owners + life.plan.workers_first;
  for (uint32_t i = 0; i < first; i++) shoal_life_start_node(&life, &life.nodes[i]);
  if (life.plan.guarded) shoal_life_start_node(&life, &life.nodes[life.nodes_count - 1]);
  shoal_faults_start(&life);
  while (!life.ended && report->violated == SHOAL_SIM_NOTHING) {
    shoal_happening h;
    if (!shoal_world_next(life.world, &h)) {
      shoal_check_stuck(&life);
      break;
    }
    shoal_check_time(&life);
    if (h.node == SHOAL_WORLD_NOBODY)
      shoal_faults_woken(&life, h.tag);
    else
      shoal_life_happens(&life, &h);
  }
  end(&life);
}
