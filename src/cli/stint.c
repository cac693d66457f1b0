/* stint.c: see stint.h. What both threads see is `view`, under the lock, and `stop`. */
#include "cli/stint.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/chunks.h"
#include "net/fetch.h"

enum { CHIEF_MAX = SHOAL_LINK_ADDRESS_MAX + 40, MANIFEST_BYTES_MAX = 64 << 20 };

struct shoal_stint {
  shoal_stint_config config;
  char *worker, *data, *cache, *data_dir;
  char chief[CHIEF_MAX];
  volatile sig_atomic_t stop;
  pthread_t thread;
  pthread_mutex_t lock;
  shoal_stint_view view;
};

/* ---- the thread ---- */

static void note(void *self, const char *text) {
  shoal_stint *s = self;
  pthread_mutex_lock(&s->lock);
  s->view.notes++;
  shoal_text_plain(s->view.note, sizeof s->view.note, text, strlen(text));
  pthread_mutex_unlock(&s->lock);
}

static void set_phase(shoal_stint *s, shoal_stint_phase phase) {
  pthread_mutex_lock(&s->lock);
  s->view.phase = phase;
  pthread_mutex_unlock(&s->lock);
}

/* Where its chunks come from. */
typedef struct supply {
  shoal_stint *stint;
  shoal_fetch *fetch;
} supply;

typedef struct filling {
  uint8_t *into;
  size_t room, filled;
} filling;

static shoal_status fill(void *self, const void *bytes, size_t length, shoal_error *err) {
  filling *f = self;
  if (length > f->room - f->filled)
    return shoal_fail(err, SHOAL_CORRUPT, "the server sends a chunk that is too long");
  memcpy(f->into + f->filled, bytes, length);
  f->filled += length;
  return SHOAL_OK;
}

static shoal_status get_chunk(void *self, const char *sha256, uint8_t *into, size_t bytes, shoal_error *err) {
  supply *from = self;
  char path[16 + SHOAL_SHA256_HEX];
  snprintf(path, sizeof path, "/chunks/%s", sha256);
  filling f = {.into = into, .room = bytes};
  shoal_reply reply;
  shoal_status status =
      shoal_fetch_ask(from->fetch, &(shoal_ask){.path = path, .self = &f, .take = fill}, &reply, err);
  shoal_reply_release(&reply);
  if (status == SHOAL_OK && f.filled != bytes)
    status = shoal_fail(err, SHOAL_CORRUPT, "the server sends a chunk that is too short");
  return status;
}

static void show_progress(void *self, uint64_t done, uint64_t all) {
  shoal_stint *s = ((supply *)self)->stint;
  pthread_mutex_lock(&s->lock);
  s->view.bytes_done = done;
  s->view.bytes_all = all;
  pthread_mutex_unlock(&s->lock);
}

static shoal_status get_manifest(shoal_stint *s, shoal_fetch *fetch, shoal_manifest *out, shoal_error *err) {
  shoal_text path;
  shoal_text_init(&path);
  shoal_text_addf(&path, "/api/v1/datasets/");
  shoal_fetch_escape(&path, s->data);
  shoal_text_addf(&path, "/manifest");
  shoal_reply reply = {0};
  shoal_status status =
      path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                  : shoal_fetch_ask(fetch, &(shoal_ask){.path = path.bytes, .answer_max = MANIFEST_BYTES_MAX},
                                    &reply, err);
  if (status == SHOAL_OK)
    status = shoal_manifest_parse(out, reply.body.bytes ? reply.body.bytes : "", reply.body.length, err);
  shoal_reply_release(&reply);
  shoal_text_release(&path);
  return status;
}

static shoal_status get_data(shoal_stint *s, shoal_chunk_set *out, shoal_error *err) {
  supply from = {.stint = s};
  shoal_fetch_config config = {.link = s->config.link, .stop = &s->stop};
  shoal_manifest *manifest = calloc(1, sizeof *manifest);
  *out = (shoal_chunk_set){.lock = -1};
  shoal_status status = manifest ? shoal_fetch_create(&from.fetch, &config, err)
                                 : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  if (status == SHOAL_OK) status = get_manifest(s, from.fetch, manifest, err);
  if (status == SHOAL_OK) {
    const shoal_chunk_options options = {.cache = s->cache,
                                         .cache_bytes_max = s->config.cache_bytes_max,
                                         .data_dir = s->data_dir,
                                         .stop = &s->stop};
    const shoal_chunk_source source = {&from, get_chunk, show_progress};
    status = shoal_chunk_set_open(out, manifest, &options, &source, err);
  }
  if (manifest) shoal_manifest_release(manifest);
  free(manifest);
  shoal_fetch_destroy(from.fetch);
  return status;
}

static shoal_status compute(shoal_stint *s, const char *data, shoal_error *err) {
  const shoal_link *link = s->config.link;
  const shoal_worker_node_config config = {
      .chief = s->chief,
      .name = s->worker,
      .way = {.wire = SHOAL_WIRE_WEBSOCKET,
              .tls = link->tls,
              .fingerprint = link->fingerprint[0] ? link->fingerprint : NULL,
              .token = link->token[0] ? link->token : NULL},
      .compute = {.data = data, .data_dir = s->data_dir, .threads = s->config.threads},
      .notes = {s, note},
      .count = s->config.count,
      .stop = &s->stop,
  };
  return shoal_worker_node_run(&config, err);
}

static void *run(void *self) {
  shoal_stint *s = self;
  shoal_error err = {0};
  shoal_chunk_set set;
  shoal_status status = get_data(s, &set, &err);
  if (status == SHOAL_OK) {
    set_phase(s, SHOAL_STINT_COMPUTING);
    status = compute(s, set.data.bytes, &err);
  }
  shoal_chunk_set_close(&set);
  pthread_mutex_lock(&s->lock);
  s->view.phase = SHOAL_STINT_OVER;
  s->view.status = status == SHOAL_STOPPED && s->stop ? SHOAL_OK : status;
  s->view.error = err;
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* ---- the caller's side ---- */

static void release(shoal_stint *s) {
  pthread_mutex_destroy(&s->lock);
  free(s->worker);
  free(s->data);
  free(s->cache);
  free(s->data_dir);
  free(s);
}

shoal_status shoal_stint_start(shoal_stint **out, const shoal_stint_config *config, shoal_error *err) {
  *out = NULL;
  shoal_stint *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  pthread_mutex_init(&s->lock, NULL);
  s->config = *config;
  s->worker = strdup(config->worker);
  s->data = strdup(config->data);
  s->cache = strdup(config->cache);
  s->data_dir = config->data_dir ? strdup(config->data_dir) : NULL;
  snprintf(s->chief, sizeof s->chief, "%s/jobs/%" PRIu64 "/chief", config->link->address, config->job);
  bool has_all = s->worker && s->data && s->cache && (s->data_dir || !config->data_dir);
  if (!has_all || pthread_create(&s->thread, NULL, run, s) != 0) {
    release(s);
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  }
  *out = s;
  return SHOAL_OK;
}

void shoal_stint_look(shoal_stint *s, shoal_stint_view *out) {
  pthread_mutex_lock(&s->lock);
  *out = s->view;
  pthread_mutex_unlock(&s->lock);
}

void shoal_stint_leave(shoal_stint *s) { __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED); }

void shoal_stint_end(shoal_stint *s) {
  if (s == NULL) return;
  shoal_stint_leave(s);
  pthread_join(s->thread, NULL);
  release(s);
}
