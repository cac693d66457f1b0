/* match.c: see match.h.
 *
 * What holds after every call:
 *
 *   1. A worker is idle only when every job that could take it has as many as it wants at most.
 *   2. A job lacks workers of its least only when none that it could take is idle, and those that others have
 *      beyond their least, with those of jobs that wait and of later jobs that lack some, would not fill it up.
 *   3. A job waits when it lacks workers and has not begun. It has workers only when no job that does not
 *      wait could take them.
 *
 * A change breaks these only for the workers and jobs that it touches, and `settle` mends them. Every step of
 * it leaves one job less that lacks some, or else one idle worker less, or else one worker less in a job that
 * waits, so it ends.
 *
 * Everything is found in rosters (roster.h). A worker is in one: of the job that it works for, or of the
 * idle ones who would go anywhere, to one host's jobs, or to one job; they are ordered by speed. A
 * public job that has room is in two, all and its host's, ordered by who is next to get a worker; a job
 * that has workers to spare likewise, the one with most first. So a worker that comes or goes costs a
 * few microseconds among 10,000 workers and 1,000 jobs, and some hundred while many of these lack workers, since
 * then it is seen whether others' would fill one up; a job that comes also walks over all workers. */
#include "proto/match.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"
#include "proto/places.h"
#include "proto/roster.h"

/* A host that a worker chose or a job has. */
typedef struct host {
  uint64_t digest;                 /* of its name, all of it */
  char name[SHOAL_MATCH_NAME_MAX]; /* cut to that */
  uint32_t uses;                   /* by workers and jobs; without any it goes */
  struct host *next;               /* with the same digest */
  shoal_roster idle;               /* workers who wait for a job of this host */
  shoal_roster room;               /* its jobs that have room */
  shoal_roster spare; /* its jobs that have more than their least, some of them workers for this host only */
} host;

typedef struct job {
  uint64_t id, serial;
  char name[SHOAL_MATCH_NAME_MAX];
  host *host;
  bool is_private, begun, lacks, waits, touched;
  uint32_t least, most, count, spares;
  uint64_t memory_bytes;
  shoal_roster idle;                /* workers who wait for this job */
  shoal_roster any, hosted, chosen; /* its workers: would go anywhere, to this host's jobs, nowhere else */
  shoal_roster_entry room, room_host, spare, spare_host;
  struct job *next_touched;
} job;

typedef struct worker {
  uint64_t id, serial;
  uint64_t chosen;
  bool invited, paused, queued;
  host *host;
  uint64_t memory_bytes;
  double speed;
  job *job;
  uint64_t told;            /* the job that next() last spoke of */
  shoal_roster_entry entry; /* in the roster that it belongs to */
  struct worker *before, *behind;
} worker;

/* Things found by their number, which each begins with. Jobs stay in the order of coming. */
typedef struct table {
  void **items;
  uint32_t count;
  shoal_places places;
} table;

/* Where things of one kind are taken from and given back to. */
typedef struct pool {
  char *block;
  void **spare;
  uint32_t spare_count;
  size_t bytes; /* of one */
} pool;

struct shoal_match {
  table workers, jobs, hosts;
  pool worker_pool, job_pool, host_pool;
  uint64_t serial;
  uint32_t lacking; /* jobs */
  uint64_t spares;  /* workers beyond the least of their jobs, who would go elsewhere */
  shoal_roster idle, room, spare;
  job *touched;
  job **givers;         /* for help_one: those that have workers for others */
  worker *first, *last; /* the queue of those to be told of */
};

/* ---- tables ---- */

static uint64_t number_of(const void *item) { return *(const uint64_t *)item; }

static bool table_init(table *t, uint32_t max) {
  t->items = calloc(max, sizeof *t->items);
  return t->items != NULL && shoal_places_init(&t->places, max);
}

static void table_release(table *t) {
  free(t->items);
  shoal_places_release(&t->places);
}

static void *table_find(const table *t, uint64_t number) {
  uint32_t place;
  return shoal_places_get(&t->places, number, &place) ? t->items[place] : NULL;
}

static void table_add(table *t, void *item) {
  shoal_places_put(&t->places, number_of(item), t->count);
  t->items[t->count++] = item;
}

/* The item in place of another with the same number. */
static void table_replace(table *t, void *item) {
  uint32_t place;
  SHOAL_ASSERT(shoal_places_get(&t->places, number_of(item), &place));
  t->items[place] = item;
}

/* The last item takes its place, or with `ordered` all behind it move up. */
static void table_remove(table *t, uint64_t number, bool ordered) {
  uint32_t place;
  SHOAL_ASSERT(shoal_places_get(&t->places, number, &place));
  shoal_places_remove(&t->places, number);
  t->count--;
  if (!ordered && place < t->count) t->items[place] = t->items[t->count];
  for (uint32_t i = place; i < t->count; i++) {
    if (ordered) t->items[i] = t->items[i + 1];
    shoal_places_put(&t->places, number_of(t->items[i]), i);
    if (!ordered) break;
  }
}

/* ---- pools ---- */

static bool pool_init(pool *p, uint32_t max, size_t bytes) {
  p->block = calloc(max, bytes);
  p->spare = calloc(max, sizeof *p->spare);
  p->bytes = bytes;
  if (p->block == NULL || p->spare == NULL) return false;
  for (uint32_t i = max; i > 0; i--) p->spare[p->spare_count++] = p->block + (i - 1) * bytes;
  return true;
}

static void pool_release(pool *p) {
  free(p->block);
  free(p->spare);
}

/* Zeroed; NULL when all are taken. */
static void *pool_take(pool *p) {
  if (p->spare_count == 0) return NULL;
  return memset(p->spare[--p->spare_count], 0, p->bytes);
}

static void pool_give(pool *p, void *item) { p->spare[p->spare_count++] = item; }

/* ---- hosts ---- */

static uint64_t digest_of(const char *name) { return shoal_digest(name, strlen(name)) | 1; }

/* The host of that name, used once more. There is one for every worker and job, and one more for a change. */
static host *take_host(shoal_match *match, const char *name) {
  char cut[SHOAL_MATCH_NAME_MAX];
  shoal_text_plain(cut, sizeof cut, name, strlen(name));
  host *first = table_find(&match->hosts, digest_of(name));
  for (host *h = first; h != NULL; h = h->next) {
    if (strcmp(h->name, cut) != 0) continue;
    h->uses++;
    return h;
  }
  host *h = pool_take(&match->host_pool);
  SHOAL_ASSERT(h != NULL);
  *h = (host){.digest = digest_of(name), .uses = 1, .next = first};
  memcpy(h->name, cut, sizeof cut);
  if (first != NULL)
    table_replace(&match->hosts, h);
  else
    table_add(&match->hosts, h);
  return h;
}

static void give_host(shoal_match *match, host *h) {
  if (h == NULL || --h->uses > 0) return;
  host *first = table_find(&match->hosts, h->digest);
  if (first != h) {
    while (first->next != h) first = first->next;
    first->next = h->next;
  } else if (h->next != NULL) {
    table_replace(&match->hosts, h->next);
  } else {
    table_remove(&match->hosts, h->digest, false);
  }
  pool_give(&match->host_pool, h);
}

/* ---- who may work for what ---- */

/* Whether a worker may work for a job, but for its memory. */
static bool suits(const worker *w, const job *j) {
  if (w->paused || (w->chosen != 0 && w->chosen != j->id) || (w->host != NULL && w->host != j->host))
    return false;
  return !j->is_private || (w->invited && w->chosen == j->id);
}

static bool may_work(const worker *w, const job *j) {
  return suits(w, j) && w->memory_bytes >= j->memory_bytes;
}

/* ---- rosters ---- */

/* Where a worker belongs; NULL when nothing that is open would ever take it. */
static shoal_roster *roster_of(shoal_match *match, const worker *w) {
  if (w->paused) return NULL;
  if (w->job != NULL) return w->chosen != 0 ? &w->job->chosen : w->host ? &w->job->hosted : &w->job->any;
  if (w->chosen == 0) return w->host != NULL ? &w->host->idle : &match->idle;
  job *j = table_find(&match->jobs, w->chosen);
  return j != NULL && suits(w, j) ? &j->idle : NULL;
}

/* Positive numbers are ordered as their bits are; the fastest comes first. */
static uint64_t slowness(double speed) {
  uint64_t bits;
  if (!(speed > 0)) speed = 0;
  memcpy(&bits, &speed, sizeof bits);
  return ~bits;
}

static void enrol(shoal_match *match, worker *w) {
  shoal_roster *roster = roster_of(match, w);
  shoal_roster_remove(&w->entry);
  w->entry.number = slowness(w->speed);
  w->entry.serial = w->serial;
  w->entry.amount = w->memory_bytes;
  w->entry.owner = w;
  if (roster != NULL) shoal_roster_add(roster, &w->entry);
}

static void list(shoal_roster *roster, shoal_roster_entry *e, job *j, uint64_t number, uint64_t serial,
                 uint64_t amount) {
  e->number = number;
  e->serial = serial;
  e->amount = amount;
  e->owner = j;
  shoal_roster_add(roster, e);
}

static void unlist(job *j) {
  shoal_roster_remove(&j->room);
  shoal_roster_remove(&j->room_host);
  shoal_roster_remove(&j->spare);
  shoal_roster_remove(&j->spare_host);
}

/* A worker must have at least a job's memory: the other way round, a job must have at least the
 * complement of a worker's. */
static uint64_t fit(uint64_t memory_bytes) { return ~memory_bytes; }

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* A job's workers or wishes have changed. */
static void relist(shoal_match *match, job *j) {
  unlist(j);
  match->lacking -= j->lacks;
  j->lacks = j->count < j->least;
  j->waits = j->lacks && !j->begun;
  match->lacking += j->lacks;
  match->spares -= j->spares;
  j->spares = j->lacks ? 0 : smaller(j->count - j->least, (uint32_t)(j->any.count + j->hosted.count));
  match->spares += j->spares;
  if (!j->is_private && j->count < j->most) {
    /* First jobs that lack workers and can work with one more; last those that would wait on with it. */
    bool first = j->lacks && (j->begun || j->least - j->count == 1);
    uint64_t turn = first ? 0 : j->lacks ? UINT64_MAX : 1 + (uint64_t)(j->count - j->least);
    list(&match->room, &j->room, j, turn, j->serial, fit(j->memory_bytes));
    list(&j->host->room, &j->room_host, j, turn, j->serial, fit(j->memory_bytes));
  }
  if (j->count <= j->least) return;
  uint64_t turn = UINT32_MAX - (j->count - j->least);
  if (j->any.count > 0) list(&match->spare, &j->spare, j, turn, ~j->serial, j->any.root->largest);
  if (j->hosted.count > 0)
    list(&j->host->spare, &j->spare_host, j, turn, ~j->serial, j->hosted.root->largest);
}

/* ---- moves ---- */

static void touch(shoal_match *match, job *j) {
  if (j->touched) return;
  j->touched = true;
  j->next_touched = match->touched;
  match->touched = j;
}

static void enqueue(shoal_match *match, worker *w) {
  if (w->queued) return;
  w->queued = true;
  w->before = match->last;
  w->behind = NULL;
  if (match->last != NULL)
    match->last->behind = w;
  else
    match->first = w;
  match->last = w;
}

static void dequeue(shoal_match *match, worker *w) {
  if (!w->queued) return;
  w->queued = false;
  if (w->before != NULL)
    w->before->behind = w->behind;
  else
    match->first = w->behind;
  if (w->behind != NULL)
    w->behind->before = w->before;
  else
    match->last = w->before;
}

/* To a job, or with NULL to none. */
static void move(shoal_match *match, worker *w, job *to) {
  job *from = w->job;
  w->job = to;
  enrol(match, w);
  enqueue(match, w);
  if (from != NULL) {
    from->count--;
    relist(match, from);
    touch(match, from);
  }
  if (to != NULL) {
    to->count++;
    relist(match, to);
    touch(match, to);
  }
}

/* An idle worker goes to the first job that lacks some and can then work, or else to the one with fewest beyond
 * its least, or else to the first that waits. */
static void place(shoal_match *match, worker *w) {
  if (w->job != NULL || w->paused) return;
  job *j;
  if (w->chosen != 0) {
    j = table_find(&match->jobs, w->chosen);
    if (j != NULL && (!may_work(w, j) || j->count >= j->most)) j = NULL;
  } else {
    j = shoal_roster_first(w->host != NULL ? &w->host->room : &match->room, fit(w->memory_bytes));
  }
  if (j != NULL) move(match, w, j);
}

/* An idle worker for a job: rather one who would go nowhere else. */
static worker *idle_for(shoal_match *match, const job *j) {
  worker *w = shoal_roster_first(&j->idle, j->memory_bytes);
  if (w == NULL && !j->is_private) w = shoal_roster_first(&j->host->idle, j->memory_bytes);
  if (w == NULL && !j->is_private) w = shoal_roster_first(&match->idle, j->memory_bytes);
  return w;
}

/* The slowest worker that another job has beyond its least, of the job that has most of these. */
static worker *spare_for(shoal_match *match, const job *j) {
  if (j->is_private) return NULL;
  const job *a = shoal_roster_first(&match->spare, j->memory_bytes);
  const job *b = shoal_roster_first(&j->host->spare, j->memory_bytes);
  if (a != NULL && b != NULL && b->count - b->least > a->count - a->least) a = NULL;
  if (a != NULL) return shoal_roster_last(&a->any, j->memory_bytes);
  return b != NULL ? shoal_roster_last(&b->hosted, j->memory_bytes) : NULL;
}

static worker *slowest_for(const job *from, const job *to) {
  worker *w = shoal_roster_last(&from->any, to->memory_bytes);
  return w == NULL && from->host == to->host ? shoal_roster_last(&from->hosted, to->memory_bytes) : w;
}

/* An idle worker for this job, if there is one. */
static bool mend(shoal_match *match, job *j) {
  worker *w = j->count < j->most ? idle_for(match, j) : NULL;
  if (w == NULL) return false;
  move(match, w, j);
  return true;
}

/* ---- jobs that lack workers, and others that have some to spare or in vain ---- */

/* How many of a job's workers another could take, counted no further than `most`. */
static uint32_t takeable(const job *from, const job *to, uint32_t most) {
  uint32_t count = shoal_roster_count(&from->any, to->memory_bytes, most);
  if (from->host == to->host) count += shoal_roster_count(&from->hosted, to->memory_bytes, most - count);
  return count;
}

/* How many of a giver's workers a job could take to get its least, counted no further than `most`: those beyond
 * the giver's least, or all of one that waits, or that lacks some itself and came later. */
static uint32_t gives(const job *from, const job *to, uint32_t most) {
  if (from == to || (from->lacks && !from->waits && from->serial < to->serial)) return 0;
  return takeable(from, to, from->lacks ? most : smaller(from->count - from->least, most));
}

static bool can_be_filled(const shoal_match *match, const job *to, uint32_t givers) {
  uint32_t wanted = to->least - to->count, found = 0;
  for (uint32_t i = 0; i < givers && found < wanted; i++)
    found += gives(match->givers[i], to, wanted - found);
  return found == wanted;
}

/* First those of jobs that wait, then of others that lack some, of the last job first; then those whom others
 * have beyond their least. */
static void fill(shoal_match *match, job *to, uint32_t givers) {
  worker *w;
  for (int waits = 1; waits >= 0; waits--)
    for (uint32_t i = givers; i-- > 0 && to->lacks;) {
      const job *j = match->givers[i];
      if (!j->lacks || j->waits != waits) continue;
      while (to->lacks && gives(j, to, 1) > 0) move(match, slowest_for(j, to), to);
    }
  while (to->lacks && (w = spare_for(match, to)) != NULL) move(match, w, to);
}

/* Fills up the first job that lacks workers and can be helped; false: there is none. */
static bool help_one(shoal_match *match) {
  if (match->lacking == 0) return false;
  uint32_t givers = 0;
  uint64_t given = match->spares;
  for (uint32_t i = 0; i < match->jobs.count; i++) {
    job *j = match->jobs.items[i];
    uint32_t in_vain = j->lacks ? j->any.count + j->hosted.count : 0;
    if (in_vain + j->spares > 0) match->givers[givers++] = j;
    given += in_vain;
  }
  for (uint32_t i = 0; i < match->jobs.count && given > 0; i++) {
    job *j = match->jobs.items[i];
    if (!j->lacks || j->is_private || given < j->least - j->count || !can_be_filled(match, j, givers))
      continue;
    fill(match, j, givers);
    return true;
  }
  return false;
}

/* The first job with room that can use one of these workers now; NULL: none. One that waits and could begin with
 * it would have been filled up. */
static job *user_of(const shoal_roster *workers, const shoal_roster *room) {
  job *to = workers->count > 0 ? shoal_roster_first(room, fit(workers->root->largest)) : NULL;
  return to != NULL && !to->waits ? to : NULL;
}

/* Gives whom jobs hold that wait to those that can use them now; false: there was nobody to give. */
static bool lend(shoal_match *match) {
  bool lent = false;
  for (uint32_t i = 0; i < match->jobs.count && match->lacking > 0; i++) {
    job *from = match->jobs.items[i], *to;
    if (!from->waits || from->any.count + from->hosted.count == 0) continue;
    unlist(from); /* it has room itself */
    while ((to = user_of(&from->any, &match->room)) != NULL) {
      move(match, shoal_roster_first(&from->any, to->memory_bytes), to);
      unlist(from);
      lent = true;
    }
    while ((to = user_of(&from->hosted, &from->host->room)) != NULL) {
      move(match, shoal_roster_first(&from->hosted, to->memory_bytes), to);
      unlist(from);
      lent = true;
    }
    relist(match, from);
  }
  return lent;
}

static void mend_touched(shoal_match *match) {
  while (match->touched != NULL) {
    job *j = match->touched;
    match->touched = j->next_touched;
    j->touched = false;
    if (mend(match, j)) touch(match, j);
  }
}

static void settle(shoal_match *match) {
  do mend_touched(match);
  while (help_one(match) || lend(match));
}

/* ---- what happens ---- */

shoal_status shoal_match_create(shoal_match **out, const shoal_match_config *config, shoal_error *err) {
  uint32_t workers = config->workers_max, jobs = config->jobs_max, hosts = workers + jobs + 1;
  SHOAL_ASSERT(workers > 0 && jobs > 0 && hosts > workers);
  shoal_match *match = *out = calloc(1, sizeof *match);
  if (match != NULL) match->givers = calloc(jobs, sizeof *match->givers);
  bool reserved = match != NULL && match->givers != NULL && table_init(&match->workers, workers) &&
                  table_init(&match->jobs, jobs) && table_init(&match->hosts, hosts) &&
                  pool_init(&match->worker_pool, workers, sizeof(worker)) &&
                  pool_init(&match->job_pool, jobs, sizeof(job)) &&
                  pool_init(&match->host_pool, hosts, sizeof(host));
  if (reserved) return SHOAL_OK;
  shoal_match_destroy(match);
  *out = NULL;
  return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory to match %u workers with %u jobs", workers,
                    jobs);
}

void shoal_match_destroy(shoal_match *match) {
  if (match == NULL) return;
  table_release(&match->workers);
  table_release(&match->jobs);
  table_release(&match->hosts);
  pool_release(&match->worker_pool);
  pool_release(&match->job_pool);
  pool_release(&match->host_pool);
  free(match->givers);
  free(match);
}

static shoal_status full(shoal_error *err, const shoal_match *match) {
  return shoal_fail(err, SHOAL_LIMIT, "there are %u workers and %u jobs here, and no room for more",
                    match->workers.count, match->jobs.count);
}

static worker *add_worker(shoal_match *match, uint64_t id) {
  worker *w = pool_take(&match->worker_pool);
  if (w == NULL) return NULL;
  w->id = id;
  w->serial = ++match->serial;
  table_add(&match->workers, w);
  return w;
}

shoal_status shoal_match_put_worker(shoal_match *match, const shoal_match_worker *says, shoal_error *err) {
  if (says->id == 0) return shoal_fail(err, SHOAL_INVALID, "a worker's number is above 0");
  worker *w = table_find(&match->workers, says->id);
  if (w == NULL) w = add_worker(match, says->id);
  if (w == NULL) return full(err, match);
  host *h = says->host != NULL ? take_host(match, says->host) : NULL;
  host *old = w->host;
  w->chosen = says->job;
  w->invited = says->invited;
  w->host = h;
  w->memory_bytes = says->memory_bytes;
  w->speed = says->speed;
  w->paused = says->paused;
  if (w->job != NULL && may_work(w, w->job)) {
    enrol(match, w);
    relist(match, w->job);
    touch(match, w->job);
  } else if (w->job != NULL) {
    move(match, w, NULL);
  } else {
    enrol(match, w);
  }
  give_host(match, old);
  place(match, w);
  settle(match);
  return SHOAL_OK;
}

void shoal_match_drop_worker(shoal_match *match, uint64_t id) {
  worker *w = table_find(&match->workers, id);
  if (w == NULL) return;
  if (w->job != NULL) move(match, w, NULL);
  dequeue(match, w);
  shoal_roster_remove(&w->entry);
  table_remove(&match->workers, id, false);
  give_host(match, w->host);
  pool_give(&match->worker_pool, w);
  settle(match);
}

/* What a job wants of a worker has changed: those go who may not work for it any more. */
static void part(shoal_match *match, const job *j) {
  for (uint32_t i = 0; i < match->workers.count; i++) {
    worker *w = match->workers.items[i];
    if (w->job == j && !may_work(w, j))
      move(match, w, NULL);
    else if (w->job == NULL && w->chosen == j->id)
      enrol(match, w);
  }
}

/* Those go whom a job has no room for. */
static void shrink(shoal_match *match, job *j) {
  while (j->count > j->most) {
    worker *w = shoal_roster_last(&j->any, 0);
    if (w == NULL) w = shoal_roster_last(&j->hosted, 0);
    if (w == NULL) w = shoal_roster_last(&j->chosen, 0);
    move(match, w, NULL);
  }
}

/* Finds a place for all who were just left without a job. */
static void place_all(shoal_match *match) {
  for (worker *w = match->first; w != NULL; w = w->behind) place(match, w);
}

static job *add_job(shoal_match *match, uint64_t id) {
  job *j = pool_take(&match->job_pool);
  if (j == NULL) return NULL;
  j->id = id;
  j->serial = ++match->serial;
  table_add(&match->jobs, j);
  return j;
}

shoal_status shoal_match_put_job(shoal_match *match, const shoal_match_job *says, shoal_error *err) {
  if (says->id == 0) return shoal_fail(err, SHOAL_INVALID, "a job's number is above 0");
  if (says->least < 1 || says->least > says->most)
    return shoal_fail(err, SHOAL_INVALID,
                      "job %" PRIu64 " wants %u to %u workers: it must be 1 or more, and no "
                      "less at most than at least",
                      says->id, says->least, says->most);
  job *j = table_find(&match->jobs, says->id);
  if (j == NULL) j = add_job(match, says->id);
  if (j == NULL) return full(err, match);
  host *h = take_host(match, says->host);
  host *old = j->host;
  bool wants_others = h != old || says->is_private != j->is_private || says->memory_bytes != j->memory_bytes;
  unlist(j);
  j->host = h;
  shoal_text_plain(j->name, sizeof j->name, says->name, strlen(says->name));
  j->is_private = says->is_private;
  j->begun = says->begun;
  j->least = says->least;
  j->most = says->most;
  j->memory_bytes = says->memory_bytes;
  if (wants_others) part(match, j);
  shrink(match, j);
  relist(match, j);
  touch(match, j);
  give_host(match, old);
  place_all(match);
  settle(match);
  return SHOAL_OK;
}

void shoal_match_drop_job(shoal_match *match, uint64_t id) {
  job *j = table_find(&match->jobs, id);
  if (j == NULL) return;
  table_remove(&match->jobs, id, true);
  for (uint32_t i = 0; i < match->workers.count; i++) {
    worker *w = match->workers.items[i];
    if (w->job != j && w->chosen != id) continue;
    if (w->job == j) enqueue(match, w);
    w->job = NULL;
    enrol(match, w);
  }
  unlist(j);
  match->lacking -= j->lacks;
  match->spares -= j->spares;
  give_host(match, j->host);
  pool_give(&match->job_pool, j);
  place_all(match);
  settle(match);
}

bool shoal_match_next(shoal_match *match, uint64_t *who, uint64_t *what) {
  while (match->first != NULL) {
    worker *w = match->first;
    dequeue(match, w);
    uint64_t now = w->job != NULL ? w->job->id : 0;
    if (now == w->told) continue;
    w->told = now;
    *who = w->id;
    *what = now;
    return true;
  }
  return false;
}

uint64_t shoal_match_job_of(const shoal_match *match, uint64_t id) {
  const worker *w = table_find(&match->workers, id);
  return w != NULL && w->job != NULL ? w->job->id : 0;
}

uint32_t shoal_match_workers_of(const shoal_match *match, uint64_t id) {
  const job *j = table_find(&match->jobs, id);
  return j != NULL ? j->count : 0;
}

/* ---- for people ---- */

enum { ROOMY = 2 * SHOAL_MATCH_REASON_MAX };

static const char *megabytes(uint64_t bytes, char out[SHOAL_GROUPED_MAX]) {
  return shoal_grouped(bytes / 1000000 + (bytes % 1000000 > 0), out);
}

static void say_memory(char out[ROOMY], const char *what, uint64_t need, uint64_t has) {
  char needs[SHOAL_GROUPED_MAX], lends[SHOAL_GROUPED_MAX];
  snprintf(out, ROOMY, "%s %s MB of memory and this worker lends %s MB", what, megabytes(need, needs),
           shoal_grouped(has / 1000000, lends));
}

static void reason_of_chosen(const shoal_match *match, const worker *w, char out[ROOMY]) {
  const job *j = table_find(&match->jobs, w->chosen);
  char what[SHOAL_MATCH_NAME_MAX + 40];
  if (j == NULL) {
    snprintf(out, ROOMY, "job %" PRIu64 " is not open; this worker waits for it", w->chosen);
    return;
  }
  snprintf(what, sizeof what, "job %" PRIu64 " (%s)", j->id, j->name);
  if (j->is_private && !w->invited)
    snprintf(out, ROOMY, "%s is private; this worker needs an invitation to it", what);
  else if (w->host != NULL && w->host != j->host)
    snprintf(out, ROOMY, "%s is not of the host that this worker chose", what);
  else if (w->memory_bytes < j->memory_bytes) {
    snprintf(what, sizeof what, "job %" PRIu64 " (%s) needs", j->id, j->name);
    say_memory(out, what, j->memory_bytes, w->memory_bytes);
  } else
    snprintf(out, ROOMY, "%s has all the workers that it takes; this one waits for a place", what);
}

static void reason_of_any(const shoal_match *match, const worker *w, char out[ROOMY]) {
  char of[SHOAL_MATCH_NAME_MAX + 8] = "", name[SHOAL_MATCH_NAME_MAX], what[SHOAL_MATCH_NAME_MAX + 40];
  uint32_t theirs = 0, open = 0;
  uint64_t least_memory = UINT64_MAX;
  for (uint32_t i = 0; i < match->jobs.count; i++) {
    const job *j = match->jobs.items[i];
    if (w->host != NULL && w->host != j->host) continue;
    theirs++;
    if (j->is_private) continue;
    open++;
    if (j->memory_bytes < least_memory) least_memory = j->memory_bytes;
  }
  if (w->host != NULL) {
    shoal_text_plain(name, sizeof name, w->host->name, strlen(w->host->name));
    snprintf(of, sizeof of, " of %s", name);
  }
  if (theirs == 0)
    snprintf(out, ROOMY, "no job%s is open; there will be work when %s hosts one", of,
             w->host != NULL ? "that host" : "somebody");
  else if (open == 0)
    snprintf(out, ROOMY, "every job%s is private; this worker needs an invitation to one", of);
  else if (w->memory_bytes < least_memory) {
    snprintf(what, sizeof what, "every job%s needs at least", of);
    say_memory(out, what, least_memory, w->memory_bytes);
  } else
    snprintf(out, SHOAL_MATCH_REASON_MAX,
             "every job%s that this worker could do has all that it takes; it waits "
             "for a place",
             of);
}

void shoal_match_reason(const shoal_match *match, uint64_t id, char out[SHOAL_MATCH_REASON_MAX]) {
  const worker *w = table_find(&match->workers, id);
  char text[ROOMY];
  if (w == NULL)
    snprintf(text, sizeof text, "there is no such worker here");
  else if (w->job != NULL)
    snprintf(text, sizeof text, "works for job %" PRIu64 " (%s)", w->job->id, w->job->name);
  else if (w->paused)
    snprintf(text, sizeof text, "this worker is paused");
  else if (w->chosen != 0)
    reason_of_chosen(match, w, text);
  else
    reason_of_any(match, w, text);
  shoal_text_plain(out, SHOAL_MATCH_REASON_MAX, text, strlen(text));
}
