/* search_shelf.c: see search_shelf.h. The list is under the lock; what is opened or closed belongs to one
 * thread then. */
#include "work/search_shelf.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "data/chunk_store.h"
#include "wire/fetch.h"

enum { IDLE_MAX = 3, MANIFEST_BYTES_MAX = 64 << 20 };
static const double first_pause_s = 0.2, longest_pause_s = 5;

typedef struct place {
  shoal_link link;
  uint64_t job;
  bool open, over;
  uint32_t users;
  uint64_t used; /* the larger the later */
  shoal_manifest *manifest;
  shoal_chunk_store *store;
  shoal_search_worker *worker;
  char *table;
  shoal_text folder;
  struct place *next;
} place;

struct shoal_search_shelf {
  shoal_search_shelf_config config;
  pthread_mutex_t mutex;
  pthread_cond_t news;
  place *first;
  uint64_t uses, places;
  uint64_t fetched;
};

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
}

static bool stops(const shoal_search_shelf *s) {
  return __atomic_load_n(s->config.stop, __ATOMIC_RELAXED) != 0;
}

/* ---- data ---- */

/* Asks until there is an answer; a server that is away or busy is asked again. */
static shoal_status ask(const shoal_search_shelf *s, shoal_fetch *fetch, const shoal_ask *question,
                        shoal_reply *reply, shoal_error *err) {
  double pause = first_pause_s;
  while (true) {
    shoal_status status = shoal_fetch_ask(fetch, question, reply, err);
    bool passing = reply->status == 0 || reply->status == 429 || reply->status >= 500;
    if (status == SHOAL_OK || status == SHOAL_NO_MEMORY || !passing) return status;
    if (stops(s)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    shoal_reply_release(reply);
    double end = shoal_clock_seconds() + pause;
    while (!stops(s) && shoal_clock_seconds() < end) shoal_clock_sleep(0.05);
    pause = pause * 2 < longest_pause_s ? pause * 2 : longest_pause_s;
  }
}

static shoal_status get_manifest(const shoal_search_shelf *s, place *p, shoal_fetch *fetch, const char *data,
                                 shoal_error *err) {
  shoal_text path = {0};
  shoal_text_addf(&path, "/api/v1/datasets/");
  shoal_fetch_escape(&path, data);
  shoal_text_addf(&path, "/manifest");
  shoal_reply reply = {0};
  p->manifest = calloc(1, sizeof *p->manifest);
  shoal_status status =
      path.failed || p->manifest == NULL
          ? fail_memory(err)
          : ask(s, fetch, &(shoal_ask){.path = path.bytes, .answer_max = MANIFEST_BYTES_MAX}, &reply, err);
  if (status == SHOAL_NOT_FOUND)
    status = shoal_fail(err, SHOAL_INVALID, "the server has no data set '%.64s'", data);
  if (status == SHOAL_OK)
    status =
        shoal_manifest_parse(p->manifest, reply.body.bytes ? reply.body.bytes : "", reply.body.length, err);
  shoal_reply_release(&reply);
  shoal_text_release(&path);
  return status;
}

static shoal_status get_chunk(shoal_search_shelf *s, place *p, shoal_fetch *fetch, uint32_t chunk,
                              shoal_error *err) {
  char path[16 + SHOAL_SHA256_HEX];
  shoal_reply reply = {0};
  snprintf(path, sizeof path, "/chunks/%s", shoal_chunk_store_hash_of(p->store, chunk));
  shoal_status status =
      ask(s, fetch, &(shoal_ask){.path = path, .answer_max = shoal_chunk_store_bytes_of(p->store, chunk)},
          &reply, err);
  if (status == SHOAL_NOT_FOUND)
    status = shoal_fail(err, SHOAL_INVALID, "the server has lost a part of the data");
  if (status == SHOAL_OK)
    status = shoal_chunk_store_put(p->store, chunk, reply.body.bytes ? reply.body.bytes : "",
                                   reply.body.length, err);
  if (status == SHOAL_OK) __atomic_add_fetch(&s->fetched, reply.body.length, __ATOMIC_RELAXED);
  shoal_reply_release(&reply);
  return status;
}

static shoal_status get_data(shoal_search_shelf *s, place *p, shoal_fetch *fetch, const char *data,
                             shoal_error *err) {
  const shoal_chunk_store_options options = {.cache = s->config.cache,
                                             .cache_bytes_max = s->config.cache_bytes_max,
                                             .data_dir = s->config.data_dir,
                                             .stop = s->config.stop};
  shoal_status status = get_manifest(s, p, fetch, data, err);
  if (status == SHOAL_OK) status = shoal_chunk_store_open(&p->store, p->manifest, &options, err);
  if (status != SHOAL_OK) return status;
  for (uint32_t i = 0; i < shoal_chunk_store_count(p->store) && status == SHOAL_OK; i++)
    if (!shoal_chunk_store_has(p->store, i)) status = get_chunk(s, p, fetch, i, err);
  if (status != SHOAL_OK) return status;
  /* The first file of the set: a second one is for the server's last score. */
  const char *files = shoal_chunk_store_data(p->store), *comma = strstr(files, ".csv,");
  p->table = comma ? strndup(files, (size_t)(comma - files) + strlen(".csv")) : strdup(files);
  return p->table ? SHOAL_OK : fail_memory(err);
}

/* ---- places ---- */

static void close_place(place *p) {
  shoal_search_worker_close(p->worker);
  shoal_chunk_store_close(p->store);
  if (p->manifest) shoal_manifest_release(p->manifest);
  free(p->manifest);
  free(p->table);
  shoal_text_release(&p->folder);
  explicit_bzero(&p->link, sizeof p->link);
  free(p);
}

static shoal_status open_place(shoal_search_shelf *s, place *p, const char *data,
                               shoal_search_worker **worker, shoal_error *err) {
  shoal_fetch *fetch;
  shoal_status status =
      shoal_fetch_create(&fetch, &(shoal_fetch_config){.link = &p->link, .stop = s->config.stop}, err);
  if (status != SHOAL_OK) return status;
  status = get_data(s, p, fetch, data, err);
  shoal_fetch_destroy(fetch);
  if (status != SHOAL_OK) return status;
  const shoal_search_worker_config config = {.link = &p->link,
                                             .job = p->job,
                                             .name = s->config.name,
                                             .table = p->table,
                                             .folder = p->folder.bytes,
                                             .threads = s->config.threads,
                                             .count = s->config.count,
                                             .notes = s->config.notes,
                                             .stop = s->config.stop};
  return shoal_search_worker_open(worker, &config, err);
}

static place *find_place(const shoal_search_shelf *s, const shoal_link *link, uint64_t job) {
  for (place *p = s->first; p; p = p->next)
    if (p->job == job && !p->over && strcmp(p->link.address, link->address) == 0) return p;
  return NULL;
}

static void unlink_place(shoal_search_shelf *s, const place *gone) {
  place **at = &s->first;
  while (*at != gone) at = &(*at)->next;
  *at = gone->next;
}

/* Takes one off the list that nobody uses: one that is over, or the one that was not used for longest of
 * more than are kept; or NULL. */
static place *take_idle(shoal_search_shelf *s) {
  place *oldest = NULL;
  uint32_t idle = 0;
  for (place *p = s->first; p; p = p->next) {
    if (p->users > 0) continue;
    idle++;
    if (!oldest || (p->over && !oldest->over) || (p->over == oldest->over && p->used < oldest->used))
      oldest = p;
  }
  if (!oldest || (!oldest->over && idle <= IDLE_MAX)) return NULL;
  unlink_place(s, oldest);
  return oldest;
}

static void close_idle(shoal_search_shelf *s) {
  while (true) {
    pthread_mutex_lock(&s->mutex);
    place *p = take_idle(s);
    pthread_mutex_unlock(&s->mutex);
    if (p == NULL) return;
    close_place(p);
  }
}

/* Under the lock. A place that is being opened, in the list; NULL: no memory. */
static place *add_place(shoal_search_shelf *s, const shoal_link *link, uint64_t job) {
  place *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->link = *link;
  p->job = job;
  p->users = 1;
  p->used = ++s->uses;
  shoal_text_addf(&p->folder, "%s/search/q%" PRIu64 "-%ld", s->config.cache, ++s->places, (long)getpid());
  if (p->folder.failed) {
    close_place(p);
    return NULL;
  }
  p->next = s->first;
  s->first = p;
  return p;
}

/* Under the lock: until something happens, or for a moment. */
static void wait_a_little(shoal_search_shelf *s) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 100000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  pthread_cond_timedwait(&s->news, &s->mutex, &until);
}

shoal_status shoal_search_shelf_take(shoal_search_shelf *s, const shoal_link *link, uint64_t job,
                                     const char *data, shoal_search_worker **out, shoal_error *err) {
  pthread_mutex_lock(&s->mutex);
  place *p = find_place(s, link, job);
  while (p && !p->open && !stops(s)) {
    wait_a_little(s);
    p = find_place(s, link, job);
  }
  /* A server that has lost its token has made another one. */
  if (p && p->open && p->users == 0 && strcmp(p->link.token, link->token) != 0) {
    p->over = true;
    p = NULL;
  }
  bool there = p && p->open;
  if (there) p->users++;
  if (there) p->used = ++s->uses;
  place *made = p ? NULL : add_place(s, link, job);
  pthread_mutex_unlock(&s->mutex);
  close_idle(s);
  if (there) *out = p->worker;
  if (there) return SHOAL_OK;
  if (p) return shoal_fail(err, SHOAL_STOPPED, "stopped");
  if (made == NULL) return fail_memory(err);
  *out = NULL;
  shoal_status status = open_place(s, made, data, out, err);
  pthread_mutex_lock(&s->mutex);
  made->worker = *out;
  made->open = status == SHOAL_OK;
  if (status != SHOAL_OK) unlink_place(s, made);
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->mutex);
  if (status != SHOAL_OK) close_place(made);
  return status;
}

void shoal_search_shelf_give(shoal_search_shelf *s, shoal_search_worker *worker, bool over) {
  pthread_mutex_lock(&s->mutex);
  for (place *p = s->first; p; p = p->next) {
    if (p->worker != worker) continue;
    p->users--;
    p->over = p->over || over;
  }
  pthread_mutex_unlock(&s->mutex);
  close_idle(s);
}

bool shoal_search_shelf_opens(shoal_search_shelf *s) {
  bool opens = false;
  pthread_mutex_lock(&s->mutex);
  for (const place *p = s->first; p; p = p->next) opens = opens || !p->open;
  pthread_mutex_unlock(&s->mutex);
  return opens;
}

uint64_t shoal_search_shelf_fetched(shoal_search_shelf *s) {
  return __atomic_load_n(&s->fetched, __ATOMIC_RELAXED);
}

shoal_status shoal_search_shelf_create(shoal_search_shelf **out, const shoal_search_shelf_config *config,
                                       shoal_error *err) {
  shoal_search_shelf *s = calloc(1, sizeof *s);
  *out = s;
  if (s == NULL) return fail_memory(err);
  s->config = *config;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->news, NULL);
  return SHOAL_OK;
}

void shoal_search_shelf_destroy(shoal_search_shelf *s) {
  if (s == NULL) return;
  while (s->first) {
    place *p = s->first;
    s->first = p->next;
    close_place(p);
  }
  pthread_cond_destroy(&s->news);
  pthread_mutex_destroy(&s->mutex);
  free(s);
}
