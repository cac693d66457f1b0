/* timeline.c: see timeline.h. */
#include "server/timeline.h"

#include <stdio.h>

static shoal_timeline_bar *bar_at(shoal_timeline *t, uint64_t number) {
  return &t->bars[number % SHOAL_TIMELINE_BARS];
}

static uint64_t oldest(const shoal_timeline *t) {
  return t->made > SHOAL_TIMELINE_BARS ? t->made - SHOAL_TIMELINE_BARS : 0;
}

static void begin(shoal_timeline *t, const char *worker, const shoal_message *m, double now) {
  bool again = false;
  for (uint64_t i = oldest(t); i < t->made && !again; i++) {
    const shoal_timeline_bar *bar = bar_at(t, i);
    again = bar->round == m->round && bar->first == m->shard && bar->count == m->count && bar->end == 0;
  }
  if (again) t->again++;
  shoal_timeline_bar *bar = bar_at(t, t->made++);
  *bar = (shoal_timeline_bar){.lease = m->lease,
                              .round = m->round,
                              .first = m->shard,
                              .count = m->count,
                              .start = now,
                              .again = again};
  snprintf(bar->worker, sizeof bar->worker, "%s", worker);
}

static void end(shoal_timeline *t, const shoal_message *m, double now) {
  for (uint64_t i = t->made; i-- > oldest(t);) {
    shoal_timeline_bar *bar = bar_at(t, i);
    if (bar->lease != m->lease || bar->end != 0) continue;
    bar->end = now;
    return;
  }
}

void shoal_timeline_see(shoal_timeline *t, const char *worker, const shoal_message *m, double now) {
  if (m->kind == SHOAL_MSG_LEASE) begin(t, worker, m, now);
  if (m->kind == SHOAL_MSG_DONE || m->kind == SHOAL_MSG_RETURN) end(t, m, now);
}

void shoal_timeline_write(const shoal_timeline *t, shoal_json *json) {
  shoal_json_open(json, "units", '[');
  for (uint64_t i = oldest(t); i < t->made; i++) {
    const shoal_timeline_bar *bar = &t->bars[i % SHOAL_TIMELINE_BARS];
    shoal_json_open(json, NULL, '{');
    shoal_json_int(json, "round", (int64_t)bar->round);
    shoal_json_int(json, "first", bar->first);
    shoal_json_int(json, "count", bar->count);
    shoal_json_text(json, "worker", bar->worker);
    shoal_json_real(json, "start", bar->start);
    if (bar->end > 0)
      shoal_json_real(json, "end", bar->end);
    else
      shoal_json_null(json, "end");
    shoal_json_bool(json, "again", bar->again);
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
}
