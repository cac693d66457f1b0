/* swarm_hall.c: see swarm_hall.h. */
#include "server/swarm_hall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/node.h"
#include "wire/http.h"

static const char SET[] = "noise";

struct shoal_hall {
  shoal_hall_config config;
  shoal_net *net;
  shoal_http_calls http;
  shoal_swarms *swarms;
  uint16_t port;
};

/* ---- what the net tells ---- */

static void opened(void *self, uint64_t peer, const char *address) { (void)self, (void)peer, (void)address; }

static void received(void *self, uint64_t peer, shoal_message *message) {
  shoal_swarms_received(((shoal_hall *)self)->swarms, peer, message, NULL, 0);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  (void)reason;
  shoal_swarms_closed(((shoal_hall *)self)->swarms, peer);
}

static uint64_t begins(void *self, const shoal_request *request, char **file) {
  (void)self, (void)request, (void)file;
  return 0;
}

static void asked(void *self, const shoal_request *request) {
  shoal_http_answer(((shoal_hall *)self)->net, request->id, &(shoal_answer){.status = 404});
}

static void left(void *self, uint64_t id) { (void)self, (void)id; }

static int admits(void *self, uint64_t peer, const shoal_request *request) {
  if (strcmp(request->path, "/data") != 0) return 403;
  return shoal_swarms_admit(((shoal_hall *)self)->swarms, peer, SET, 0, request->address);
}

/* ---- what the swarm wants ---- */

static shoal_status copy_manifest(void *self, const char *set, shoal_manifest *out, shoal_error *err) {
  (void)set;
  return shoal_specimen_copy_manifest(((shoal_hall *)self)->config.specimen, out, err);
}

/* As a real server does: by hash, compared before it is sent. */
static bool read_chunk(void *self, const char *sha256, uint64_t ticket) {
  const shoal_hall *h = self;
  const shoal_specimen *specimen = h->config.specimen;
  uint32_t chunk, length;
  shoal_blob *blob = NULL;
  if (shoal_specimen_find(specimen, sha256, &chunk)) {
    const uint8_t *bytes = shoal_specimen_chunk(specimen, chunk, &length);
    blob = shoal_blob_create(length);
    if (blob != NULL) memcpy(shoal_blob_bytes(blob), bytes, length);
    if (blob != NULL && !shoal_specimen_is_chunk(specimen, chunk, shoal_blob_bytes(blob), length)) {
      shoal_blob_release(blob);
      blob = NULL;
    }
  }
  shoal_swarms_take(h->swarms, ticket, blob);
  return true;
}

static void blamed(void *self, const char *set, const char *who, const char *by, uint32_t chunk) {
  (void)set;
  const shoal_hall_config *c = &((shoal_hall *)self)->config;
  c->blamed(c->self, who, by, chunk);
}

/* ---- create and destroy ---- */

shoal_status shoal_hall_create(shoal_hall **out, const shoal_hall_config *config, shoal_error *err) {
  *out = NULL;
  shoal_hall *h = calloc(1, sizeof *h);
  if (h == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  h->config = *config;
  h->http = (shoal_http_calls){h, begins, asked, left, admits};
  const shoal_net_calls calls = {h, opened, received, closed, NULL};
  shoal_net_config net = shoal_node_net(&calls, config->connections_max, config->certificate, config->key);
  net.http = &h->http;
  net.upgrade_only = true;
  const shoal_swarms_calls swarms = {h, copy_manifest, read_chunk, blamed};
  shoal_status status = shoal_net_create(&h->net, &net, err);
  if (status == SHOAL_OK) status = shoal_swarms_create(&h->swarms, h->net, &swarms, err);
  if (status == SHOAL_OK) status = shoal_net_listen(h->net, config->listen, &h->port, err);
  if (status == SHOAL_OK)
    *out = h;
  else
    shoal_hall_destroy(h);
  return status;
}

void shoal_hall_destroy(shoal_hall *h) {
  if (h == NULL) return;
  shoal_net_destroy(h->net);
  shoal_swarms_destroy(h->swarms);
  free(h);
}

uint16_t shoal_hall_port(const shoal_hall *h) { return h->port; }

void shoal_hall_run(shoal_hall *h, double seconds) {
  double now = shoal_clock_seconds(), next = shoal_swarms_tick(h->swarms, now);
  shoal_net_run(h->net, fmin(seconds, fmax(0, next - now)));
}

uint64_t shoal_hall_sent(const shoal_hall *h) {
  uint64_t in, out;
  shoal_net_moved(h->net, &in, &out);
  return out;
}

void shoal_hall_write(const shoal_hall *h, shoal_json *json) { shoal_swarms_write(h->swarms, SET, 0, json); }
