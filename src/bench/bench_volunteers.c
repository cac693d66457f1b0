/* bench_volunteers.c: see bench_volunteers.h. */
#include "bench/bench_volunteers.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/version.h"
#include "cluster/node.h"
#include "cluster/worker_node.h"
#include "proto/places.h"
#include "wire/line.h"

enum { DIALS_AT_ONCE = 64, NAME_MAX_BYTES = 32, DATA_MAX = 128, CHIEF_MAX = SHOAL_LINK_ADDRESS_MAX + 40 };
static const double TURN_S = 0.05;

typedef struct volunteer {
  shoal_bench_volunteers *crowd;
  shoal_line line;
  char name[NAME_MAX_BYTES], data[DATA_MAX], chief[CHIEF_MAX];
  char assigned_data[DATA_MAX]; /* of `assigned`; `data` is the thread's while it works */
  uint64_t assigned, job;       /* job: that the thread works for; 0: there is none */
  double reported_at;
  pthread_t thread;
  volatile sig_atomic_t stop, over;
  shoal_worker_count count;
} volunteer;

struct shoal_bench_volunteers {
  shoal_bench_volunteers_config config;
  char address[SHOAL_LINK_ADDRESS_MAX + 8];
  shoal_way way;
  shoal_net *net;
  shoal_places places; /* from peers to volunteers */
  volunteer *all;
  pthread_t thread;
  volatile sig_atomic_t stop;
  uint32_t connected, working;
  uint64_t lost;
};

/* ---- at work ---- */

static void *work(void *self) {
  volunteer *v = self;
  const shoal_worker_node_config config = {.chief = v->chief,
                                           .name = v->name,
                                           .way = v->crowd->way,
                                           .compute = {.data = v->data, .threads = 1},
                                           .pretend_s = v->crowd->config.batch_s,
                                           .count = &v->count,
                                           .stop = &v->stop};
  (void)shoal_worker_node_run(&config, NULL);
  __atomic_store_n(&v->over, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void say(volunteer *v, shoal_message_kind kind, shoal_text *text) {
  v->line.beat.said = shoal_clock_seconds();
  shoal_net_send(v->crowd->net, v->line.peer,
                 (shoal_message){.kind = kind, .payload = shoal_blob_of(text->bytes, text->length)});
  shoal_text_release(text);
}

static void say_report(volunteer *v, double now) {
  shoal_text text = {0};
  v->reported_at = now;
  shoal_text_addf(&text, "{\"state\":\"%s\",\"text\":\"\"}", v->job != 0 ? "computing" : "idle");
  if (v->line.open && !text.failed)
    say(v, SHOAL_MSG_REPORT, &text);
  else
    shoal_text_release(&text);
}

static void begin_work(volunteer *v, double now) {
  v->job = v->assigned;
  memcpy(v->data, v->assigned_data, sizeof v->data);
  v->stop = v->over = 0;
  snprintf(v->chief, sizeof v->chief, "%s/jobs/%" PRIu64 "/chief", v->crowd->config.link->address, v->job);
  if (pthread_create(&v->thread, NULL, work, v) != 0) {
    v->job = 0;
    return;
  }
  __atomic_fetch_add(&v->crowd->working, 1, __ATOMIC_RELAXED);
  say_report(v, now);
}

static void end_work(volunteer *v, double now) {
  pthread_join(v->thread, NULL);
  if (v->assigned == v->job) v->assigned = 0; /* it is over */
  v->job = 0;
  __atomic_fetch_sub(&v->crowd->working, 1, __ATOMIC_RELAXED);
  say_report(v, now);
}

static void follow(volunteer *v, double now) {
  if (v->job == 0) {
    if (v->assigned != 0) begin_work(v, now);
    return;
  }
  if (v->assigned != v->job) __atomic_store_n(&v->stop, 1, __ATOMIC_RELAXED);
  if (__atomic_load_n(&v->over, __ATOMIC_ACQUIRE)) end_work(v, now);
}

/* ---- control connections ---- */

static volunteer *volunteer_of(shoal_bench_volunteers *crowd, uint64_t peer) {
  uint32_t place;
  return shoal_places_get(&crowd->places, peer, &place) ? &crowd->all[place] : NULL;
}

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  shoal_bench_volunteers *crowd = self;
  volunteer *v = volunteer_of(crowd, peer);
  double now = shoal_clock_seconds();
  if (v == NULL || !shoal_line_opened(&v->line, peer, now)) return;
  __atomic_fetch_add(&crowd->connected, 1, __ATOMIC_RELAXED);
  uint64_t number = (uint64_t)(v - crowd->all);
  shoal_text text = {0};
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", v->name);
  shoal_json_text(&json, "version", SHOAL_VERSION);
  shoal_json_int(&json, "cores", (int64_t)(1 + number % 16));
  shoal_json_int(&json, "threads", (int64_t)(1 + number % 16));
  shoal_json_int(&json, "memory_bytes", INT64_C(1) << 30);
  shoal_json_text(&json, "kernels", "avx2");
  shoal_json_real(&json, "speed", 10 + (double)(number % 97));
  shoal_json_close(&json, '}');
  say(v, SHOAL_MSG_REGISTER, &text);
  say_report(v, now);
}

static void hear_assign(volunteer *v, const shoal_message *m) {
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  cJSON *json = cJSON_ParseWithLength(text, length);
  const cJSON *job = cJSON_GetObjectItemCaseSensitive(json, "job");
  const cJSON *data = cJSON_GetObjectItemCaseSensitive(json, "data");
  v->assigned = cJSON_IsNumber(job) && job->valuedouble >= 1 ? (uint64_t)job->valuedouble : 0;
  snprintf(v->assigned_data, sizeof v->assigned_data, "%s", cJSON_IsString(data) ? data->valuestring : "");
  cJSON_Delete(json);
}

static void received(void *self, uint64_t peer, shoal_message *m) {
  volunteer *v = volunteer_of(self, peer);
  if (v != NULL && shoal_line_heard(&v->line, peer, shoal_clock_seconds()) && m->kind == SHOAL_MSG_ASSIGN)
    hear_assign(v, m);
  shoal_message_release(m);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  (void)reason;
  shoal_bench_volunteers *crowd = self;
  volunteer *v = volunteer_of(crowd, peer);
  if (v == NULL) return;
  bool was_open = v->line.open;
  shoal_places_remove(&crowd->places, peer);
  if (!shoal_line_closed(&v->line, peer, shoal_clock_seconds()) || !was_open) return;
  __atomic_fetch_sub(&crowd->connected, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&crowd->lost, 1, __ATOMIC_RELAXED);
}

/* Some dial at a time: a server's queue of those who knock is short. */
static void tick(shoal_bench_volunteers *crowd, double now) {
  uint32_t dialling = 0;
  for (uint32_t i = 0; i < crowd->config.count; i++) {
    volunteer *v = &crowd->all[i];
    bool knocks = !v->line.open;
    follow(v, now);
    if (knocks && dialling >= DIALS_AT_ONCE) continue;
    dialling += knocks;
    uint64_t before = v->line.peer;
    shoal_line_tick(&v->line, crowd->net, &crowd->way, now);
    if (v->line.peer != before && v->line.peer != 0) shoal_places_put(&crowd->places, v->line.peer, i);
    if (v->line.open && now - v->reported_at >= crowd->config.report_s) say_report(v, now);
  }
}

static bool stops(const shoal_bench_volunteers *crowd) {
  return __atomic_load_n(&crowd->stop, __ATOMIC_RELAXED) != 0;
}

static void *loop(void *self) {
  shoal_bench_volunteers *crowd = self;
  double next = 0;
  while (!stops(crowd)) {
    double now = shoal_clock_seconds();
    if (now >= next) {
      tick(crowd, now);
      next = now + TURN_S;
    }
    shoal_net_run(crowd->net, TURN_S);
  }
  return NULL;
}

/* ---- start and end ---- */

static void release(shoal_bench_volunteers *crowd) {
  shoal_net_destroy(crowd->net);
  shoal_places_release(&crowd->places);
  free(crowd->all);
  free(crowd);
}

static shoal_status prepare(shoal_bench_volunteers *crowd, shoal_error *err) {
  const shoal_link *link = crowd->config.link;
  uint32_t count = crowd->config.count;
  crowd->way = (shoal_way){.wire = SHOAL_WIRE_RAW,
                           .tls = link->tls,
                           .fingerprint = link->fingerprint[0] != 0 ? link->fingerprint : NULL,
                           .token = link->token[0] != 0 ? link->token : NULL};
  snprintf(crowd->address, sizeof crowd->address, "%s/work", link->address);
  crowd->all = calloc(count, sizeof *crowd->all);
  if (crowd->all == NULL || !shoal_places_init(&crowd->places, 2 * count))
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u volunteers", count);
  for (uint32_t i = 0; i < count; i++) {
    volunteer *v = &crowd->all[i];
    v->crowd = crowd;
    snprintf(v->name, sizeof v->name, "guest-%05u", i + 1);
    shoal_line_init(&v->line, crowd->address, shoal_clock_seconds());
  }
  const shoal_net_calls calls = {crowd, opened, received, closed, NULL};
  shoal_net_config net = shoal_node_net(&calls, count + 8, NULL, NULL);
  net.payload_max = SHOAL_TEXT_PAYLOAD_MAX;
  return shoal_net_create(&crowd->net, &net, err);
}

shoal_status shoal_bench_volunteers_start(shoal_bench_volunteers **out,
                                          const shoal_bench_volunteers_config *config, shoal_error *err) {
  shoal_bench_volunteers *crowd = calloc(1, sizeof *crowd);
  if (crowd == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  crowd->config = *config;
  shoal_status status = prepare(crowd, err);
  if (status == SHOAL_OK && pthread_create(&crowd->thread, NULL, loop, crowd) != 0)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  if (status != SHOAL_OK) {
    release(crowd);
    return status;
  }
  *out = crowd;
  return SHOAL_OK;
}

void shoal_bench_volunteers_look(shoal_bench_volunteers *crowd, shoal_bench_volunteers_view *out) {
  *out = (shoal_bench_volunteers_view){
      .connected = __atomic_load_n(&crowd->connected, __ATOMIC_RELAXED),
      .working = __atomic_load_n(&crowd->working, __ATOMIC_RELAXED),
      .lost = __atomic_load_n(&crowd->lost, __ATOMIC_RELAXED),
  };
  for (uint32_t i = 0; i < crowd->config.count; i++)
    out->units += __atomic_load_n(&crowd->all[i].count.units, __ATOMIC_RELAXED);
}

void shoal_bench_volunteers_end(shoal_bench_volunteers *crowd) {
  if (crowd == NULL) return;
  __atomic_store_n(&crowd->stop, 1, __ATOMIC_RELAXED);
  shoal_net_wake(crowd->net);
  pthread_join(crowd->thread, NULL);
  for (uint32_t i = 0; i < crowd->config.count; i++)
    __atomic_store_n(&crowd->all[i].stop, 1, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < crowd->config.count; i++)
    if (crowd->all[i].job != 0) pthread_join(crowd->all[i].thread, NULL);
  release(crowd);
}
