/* chores.c: see chores.h.
 *
 * A ring of chores: those before `run` have been run and wait, from `first` on, to be handed back; the one
 * at `run` is being run, or will be next; the others up to `end` wait. All three numbers only grow. */
#include "server/chores.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
  shoal_chore chore;
  char subject[SHOAL_CHORE_SUBJECT_MAX];
} place;

struct shoal_chores {
  void *self;
  void (*wake)(void *self);
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool quits;
  place ring[SHOAL_CHORES_MAX];
  uint64_t first, run, end;
};

static place *at(shoal_chores *c, uint64_t number) { return &c->ring[number % SHOAL_CHORES_MAX]; }

static void *work(void *self) {
  shoal_chores *c = self;
  pthread_mutex_lock(&c->lock);
  while (!c->quits) {
    if (c->run == c->end) {
      pthread_cond_wait(&c->changed, &c->lock);
      continue;
    }
    shoal_chore chore = at(c, c->run)->chore;
    pthread_mutex_unlock(&c->lock);
    chore.run(chore.self);
    pthread_mutex_lock(&c->lock);
    c->run++;
    c->wake(c->self);
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

shoal_status shoal_chores_create(shoal_chores **out, void *self, void (*wake)(void *self), shoal_error *err) {
  *out = NULL;
  shoal_chores *c = calloc(1, sizeof *c);
  if (c == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  c->self = self;
  c->wake = wake;
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->changed, NULL);
  if (pthread_create(&c->thread, NULL, work, c) != 0) {
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  }
  *out = c;
  return SHOAL_OK;
}

void shoal_chores_destroy(shoal_chores *c) {
  if (c == NULL) return;
  pthread_mutex_lock(&c->lock);
  c->quits = true;
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->lock);
  pthread_join(c->thread, NULL);
  shoal_chores_tick(c);
  for (; c->first < c->end; c->first++) at(c, c->first)->chore.done(at(c, c->first)->chore.self, false);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

bool shoal_chores_add(shoal_chores *c, const shoal_chore *chore) {
  pthread_mutex_lock(&c->lock);
  bool fits = c->end - c->first < SHOAL_CHORES_MAX;
  if (fits) {
    place *new = at(c, c->end++);
    new->chore = *chore;
    snprintf(new->subject, sizeof new->subject, "%s", chore->subject);
    new->chore.subject = new->subject;
    pthread_cond_signal(&c->changed);
  }
  pthread_mutex_unlock(&c->lock);
  return fits;
}

bool shoal_chores_has(shoal_chores *c, const char *subject) {
  bool has = false;
  pthread_mutex_lock(&c->lock);
  for (uint64_t i = c->first; i < c->end; i++) has |= strcmp(at(c, i)->subject, subject) == 0;
  pthread_mutex_unlock(&c->lock);
  return has;
}

/* The next one that was run, taken out. */
static bool take(shoal_chores *c, shoal_chore *out) {
  pthread_mutex_lock(&c->lock);
  bool there = c->first < c->run;
  if (there) *out = at(c, c->first++)->chore;
  pthread_mutex_unlock(&c->lock);
  return there;
}

void shoal_chores_tick(shoal_chores *c) {
  shoal_chore chore;
  while (take(c, &chore)) chore.done(chore.self, true);
}
