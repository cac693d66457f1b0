/* job_work.c: see job_work.h. What both threads see is under the lock, and `stop`. */
#include "work/job_work.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "cluster/swarm_node.h"
#include "cluster/swarm_words.h"
#include "data/chunk_store.h"
#include "data/dataset.h"
#include "wire/certificate.h"
#include "wire/fetch.h"
#include "work/agent_worker.h"
#include "work/search_worker.h"

enum { PATH_MAX_BYTES = SHOAL_LINK_ADDRESS_MAX + 80, MANIFEST_BYTES_MAX = 64 << 20 };

struct shoal_job_work {
  shoal_job_work_config config;
  char *worker, *data, *cache, *data_dir;
  char chief[PATH_MAX_BYTES], swarm[PATH_MAX_BYTES];
  volatile sig_atomic_t stop;
  pthread_t thread;

  /* The thread's own. */
  shoal_manifest *manifest;
  char *certificate, *key; /* for members of the swarm that connect here; NULL without TLS */

  pthread_mutex_t lock;
  shoal_chunk_store *store; /* set and unset by the thread */
  shoal_swarm_node *node;   /* likewise; uses the store, so it goes first */
  shoal_job_work_view view;
  uint64_t units_before; /* of the count, when it began to compute */
};

/* ---- the thread ---- */

static void note(void *self, const char *text) {
  shoal_job_work *s = self;
  pthread_mutex_lock(&s->lock);
  s->view.notes++;
  shoal_text_plain(s->view.note, sizeof s->view.note, text, strlen(text));
  pthread_mutex_unlock(&s->lock);
}

static uint64_t units_of(const shoal_job_work *s) {
  return __atomic_load_n(&s->config.count->units, __ATOMIC_RELAXED);
}

static void begin_to_compute(shoal_job_work *s) {
  pthread_mutex_lock(&s->lock);
  s->view.phase = SHOAL_JOB_WORK_COMPUTING;
  s->units_before = units_of(s);
  pthread_mutex_unlock(&s->lock);
}

static shoal_way way_to(const shoal_link *link) {
  return (shoal_way){.wire = SHOAL_WIRE_RAW,
                     .tls = link->tls,
                     .fingerprint = link->fingerprint[0] ? link->fingerprint : NULL,
                     .token = link->token[0] ? link->token : NULL};
}

static shoal_status ask_for_manifest(shoal_job_work *s, shoal_fetch *fetch, shoal_error *err) {
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
    status =
        shoal_manifest_parse(s->manifest, reply.body.bytes ? reply.body.bytes : "", reply.body.length, err);
  shoal_reply_release(&reply);
  shoal_text_release(&path);
  return status;
}

static shoal_status get_manifest(shoal_job_work *s, shoal_error *err) {
  shoal_fetch *fetch;
  const shoal_fetch_config config = {.link = s->config.link, .stop = &s->stop};
  s->manifest = calloc(1, sizeof *s->manifest);
  if (s->manifest == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  shoal_status status = shoal_fetch_create(&fetch, &config, err);
  if (status != SHOAL_OK) return status;
  status = ask_for_manifest(s, fetch, err);
  shoal_fetch_destroy(fetch);
  return status;
}

/* ---- the store, as the swarm sees it ---- */

static bool has_chunk(void *self, uint32_t chunk) { return shoal_chunk_store_has(self, chunk); }

static size_t length_of_chunk(void *self, uint32_t chunk) { return shoal_chunk_store_bytes_of(self, chunk); }

static shoal_status put_chunk(void *self, uint32_t chunk, const void *bytes, size_t length,
                              shoal_error *err) {
  return shoal_chunk_store_put(self, chunk, bytes, length, err);
}

static shoal_status read_chunk(void *self, uint32_t chunk, void *into, shoal_error *err) {
  return shoal_chunk_store_read(self, chunk, into, err);
}

static bool next_want(void *self, uint32_t *chunk, bool *urgent) {
  return shoal_chunk_store_next_want(self, chunk, urgent);
}

static void data_failed(void *self, const shoal_error *err) {
  shoal_chunk_store_fail(self, err->status, err->text);
}

/* ---- the data ---- */

/* More is wanted of the store. */
static void wanted(void *self) {
  shoal_job_work *s = self;
  pthread_mutex_lock(&s->lock);
  if (s->node) shoal_swarm_node_wake(s->node);
  pthread_mutex_unlock(&s->lock);
}

/* Members speak TLS with each other where the server does; it tells them each other's fingerprints. */
static shoal_status make_certificate(shoal_job_work *s, shoal_error *err) {
  static const char *const names[] = {"localhost"};
  if (!s->config.link->tls || s->config.alone) return SHOAL_OK;
  shoal_text folder;
  shoal_text_init(&folder);
  shoal_text_addf(&folder, "%s/peer", s->cache);
  shoal_status status = folder.failed
                            ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                            : shoal_certificate_ensure(folder.bytes, names, 1, &s->certificate, &s->key, err);
  shoal_text_release(&folder);
  return status;
}

static shoal_status join_swarm(shoal_job_work *s, bool all, shoal_error *err) {
  char id[SHOAL_SHA256_HEX];
  shoal_swarm_node *node;
  shoal_manifest_id(s->manifest, id);
  shoal_status status = make_certificate(s, err);
  if (status != SHOAL_OK) return status;
  const shoal_swarm_node_config config = {
      .server = s->swarm,
      .way = way_to(s->config.link),
      .name = s->worker,
      .set = shoal_swarm_set_of(id),
      .shelf = {s->store, shoal_chunk_store_count(s->store), has_chunk, length_of_chunk, put_chunk,
                read_chunk, next_want, data_failed},
      .all = all,
      .alone = s->config.alone,
      .certificate = s->certificate,
      .key = s->key,
      .seed = shoal_digest(s->worker, strlen(s->worker)) ^ (uint64_t)getpid(),
      .notes = {.self = s, .note = note},
  };
  status = shoal_swarm_node_start(&node, &config, err);
  if (status != SHOAL_OK) return status;
  pthread_mutex_lock(&s->lock);
  s->node = node;
  pthread_mutex_unlock(&s->lock);
  return SHOAL_OK;
}

static shoal_status open_store(shoal_job_work *s, shoal_error *err) {
  shoal_chunk_store *store;
  const shoal_chunk_store_options options = {.cache = s->cache,
                                             .cache_bytes_max = s->config.cache_bytes_max,
                                             .data_dir = s->data_dir,
                                             .stop = &s->stop,
                                             .self = s,
                                             .wanted = wanted};
  shoal_status status = shoal_chunk_store_open(&store, s->manifest, &options, err);
  if (status != SHOAL_OK) return status;
  pthread_mutex_lock(&s->lock);
  s->store = store;
  bool is_here = s->view.is_here = shoal_chunk_store_is_whole(store);
  pthread_mutex_unlock(&s->lock);
  if (is_here && shoal_chunk_store_count(store) > 0) {
    char text[SHOAL_JOB_WORK_NOTE_MAX];
    snprintf(text, sizeof text, "%.100s is on this machine, and is used as it is: nothing is fetched",
             s->data);
    note(s, text);
  }
  return SHOAL_OK;
}

static shoal_status open_data(shoal_job_work *s, shoal_error *err) {
  shoal_status status = get_manifest(s, err);
  if (status == SHOAL_OK) status = open_store(s, err);
  if (status != SHOAL_OK) return status;
  uint32_t count = shoal_chunk_store_count(s->store);
  if (count == 0) return SHOAL_OK; /* made up here */
  /* What is read as a whole is wanted by all as a whole; of images only what units need. */
  bool by_parts = strcmp(s->manifest->kind, "idx") == 0 || strcmp(s->manifest->kind, "cifar") == 0;
  status = join_swarm(s, s->config.all_data || !by_parts, err);
  /* What opening reads, before there is a chief who waits. */
  return status == SHOAL_OK ? shoal_dataset_prepare(s->store, &s->stop, err) : status;
}

/* Under the lock. */
static void look_at_data(shoal_job_work *s) {
  shoal_swarm_view swarm;
  if (s->store) {
    shoal_chunk_progress progress = shoal_chunk_store_progress(s->store);
    s->view.bytes_done = progress.bytes_here;
    s->view.bytes_all = s->config.all_data ? progress.bytes_all : progress.bytes_wanted;
  }
  if (!s->node) return;
  shoal_swarm_node_look(s->node, &swarm);
  s->view.from_server = swarm.from_server;
  s->view.from_peers = swarm.from_peers;
  s->view.to_peers = swarm.to_peers;
}

static void close_data(shoal_job_work *s) {
  pthread_mutex_lock(&s->lock);
  look_at_data(s);
  shoal_swarm_node *node = s->node;
  shoal_chunk_store *store = s->store;
  s->node = NULL;
  s->store = NULL;
  pthread_mutex_unlock(&s->lock);
  shoal_swarm_node_end(node);
  shoal_chunk_store_close(store);
  if (s->manifest) shoal_manifest_release(s->manifest);
  free(s->manifest);
  free(s->certificate);
  free(s->key);
}

static shoal_status compute(shoal_job_work *s, shoal_error *err) {
  const shoal_worker_node_config config = {
      .chief = s->chief,
      .name = s->worker,
      .way = way_to(s->config.link),
      .compute = {.data = shoal_chunk_store_data(s->store),
                  .data_dir = s->data_dir,
                  .threads = s->config.threads,
                  .store = s->store,
                  .stop = &s->stop},
      .notes = {.self = s, .note = note},
      .count = s->config.count,
      .stop = &s->stop,
  };
  return shoal_worker_node_run(&config, err);
}

/* The first file of the set: a second one is for the server's last score. */
static char *table_of(const shoal_job_work *s) {
  const char *data = shoal_chunk_store_data(s->store), *comma = strstr(data, ".csv,");
  return comma ? strndup(data, (size_t)(comma - data) + strlen(".csv")) : strdup(data);
}

static shoal_status compute_search(shoal_job_work *s, shoal_error *err) {
  char *table = table_of(s);
  shoal_text folder;
  shoal_text_init(&folder);
  shoal_text_addf(&folder, "%s/search/%" PRIu64 "-%ld", s->cache, s->config.job, (long)getpid());
  const shoal_search_worker_config config = {.link = s->config.link,
                                             .job = s->config.job,
                                             .name = s->worker,
                                             .table = table,
                                             .folder = folder.bytes,
                                             .threads = s->config.threads,
                                             .count = s->config.count,
                                             .notes = {.self = s, .note = note},
                                             .stop = &s->stop};
  shoal_search_worker *worker = NULL;
  shoal_status status = table && !folder.failed ? shoal_search_worker_open(&worker, &config, err)
                                                : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  if (status == SHOAL_OK) status = shoal_search_worker_run(worker, err);
  if (status == SHOAL_NOT_FOUND) status = SHOAL_OK; /* it was over before it began */
  shoal_search_worker_close(worker);
  shoal_text_release(&folder);
  free(table);
  return status;
}

static shoal_status play(shoal_job_work *s, shoal_error *err) {
  const shoal_agent_worker_config config = {.link = s->config.link,
                                            .job = s->config.job,
                                            .number = s->config.number,
                                            .name = s->worker,
                                            .threads = s->config.threads,
                                            .count = s->config.count,
                                            .notes = {.self = s, .note = note},
                                            .stop = &s->stop};
  return shoal_agent_worker_run(&config, err);
}

static shoal_status work(shoal_job_work *s, shoal_error *err) {
  shoal_job_work_kind kind = s->config.kind;
  shoal_status status = kind == SHOAL_JOB_WORK_AGENT ? SHOAL_OK : open_data(s, err);
  if (status != SHOAL_OK) return status;
  begin_to_compute(s);
  if (kind == SHOAL_JOB_WORK_AGENT) return play(s, err);
  return kind == SHOAL_JOB_WORK_SEARCH ? compute_search(s, err) : compute(s, err);
}

static void *run(void *self) {
  shoal_job_work *s = self;
  shoal_error err = {0};
  shoal_status status = work(s, &err);
  bool stopped = __atomic_load_n(&s->stop, __ATOMIC_RELAXED) != 0, job_over = status == SHOAL_OK && !stopped;
  close_data(s);
  pthread_mutex_lock(&s->lock);
  s->view.job_over = job_over;
  s->view.phase = SHOAL_JOB_WORK_OVER;
  s->view.status = status == SHOAL_STOPPED && stopped ? SHOAL_OK : status;
  s->view.error = err;
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* ---- the caller's side ---- */

static void release(shoal_job_work *s) {
  pthread_mutex_destroy(&s->lock);
  free(s->worker);
  free(s->data);
  free(s->cache);
  free(s->data_dir);
  free(s);
}

shoal_status shoal_job_work_start(shoal_job_work **out, const shoal_job_work_config *config,
                                  shoal_error *err) {
  *out = NULL;
  shoal_job_work *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  pthread_mutex_init(&s->lock, NULL);
  s->config = *config;
  if (config->kind == SHOAL_JOB_WORK_AGENT) s->view.phase = SHOAL_JOB_WORK_COMPUTING;
  s->worker = strdup(config->worker);
  s->data = strdup(config->data);
  s->cache = strdup(config->cache);
  s->data_dir = config->data_dir ? strdup(config->data_dir) : NULL;
  snprintf(s->chief, sizeof s->chief, "%s/jobs/%" PRIu64 "/chief?worker=%" PRIu64, config->link->address,
           config->job, config->number);
  snprintf(s->swarm, sizeof s->swarm, "%s/jobs/%" PRIu64 "/data?worker=%" PRIu64, config->link->address,
           config->job, config->number);
  bool has_all = s->worker && s->data && s->cache && (s->data_dir || !config->data_dir);
  if (!has_all || pthread_create(&s->thread, NULL, run, s) != 0) {
    release(s);
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  }
  *out = s;
  return SHOAL_OK;
}

void shoal_job_work_look(shoal_job_work *s, shoal_job_work_view *out) {
  pthread_mutex_lock(&s->lock);
  look_at_data(s);
  *out = s->view;
  bool waits = s->view.bytes_done < s->view.bytes_all && units_of(s) == s->units_before;
  if (out->phase == SHOAL_JOB_WORK_COMPUTING && waits) out->phase = SHOAL_JOB_WORK_FETCHING;
  pthread_mutex_unlock(&s->lock);
}

void shoal_job_work_leave(shoal_job_work *s) { __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED); }

void shoal_job_work_end(shoal_job_work *s) {
  if (s == NULL) return;
  shoal_job_work_leave(s);
  pthread_join(s->thread, NULL);
  release(s);
}
