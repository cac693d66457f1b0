/* outgoing.c: see outgoing.h. */
#include "queue/outgoing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

static const double REST_S = 0.05, REST_MOST_S = 1;

/* ---- lists ---- */

static void begin(shoal_letters *list) { *list = (shoal_letters){.end = &list->first}; }

static void append(shoal_letters *list, shoal_letter *letter) {
  letter->next = NULL;
  *list->end = letter;
  list->end = &letter->next;
  list->count++;
  list->bytes += letter->length;
}

/* Takes out the letter that *at leads to. */
static shoal_letter *unlink_at(shoal_letters *list, shoal_letter **at) {
  shoal_letter *letter = *at;
  *at = letter->next;
  if (list->end == &letter->next) list->end = at;
  list->count--;
  list->bytes -= letter->length;
  return letter;
}

/* Puts all of `front` before what is in the list, and leaves it empty. */
static void prepend(shoal_letters *list, shoal_letters *front) {
  if (front->first == NULL) return;
  *front->end = list->first;
  if (list->first == NULL) list->end = front->end;
  list->first = front->first;
  list->count += front->count;
  list->bytes += front->bytes;
  begin(front);
}

static void empty(shoal_letters *list) {
  while (list->first != NULL) free(unlink_at(list, &list->first));
}

static bool has(const shoal_letters *list, uint64_t added) {
  const shoal_letter *letter = list->first;
  while (letter != NULL && letter->number > added) letter = letter->next;
  return letter != NULL;
}

/* ---- what becomes of a letter ---- */

void shoal_outgoing_init(shoal_outgoing *outgoing) {
  begin(&outgoing->waiting);
  begin(&outgoing->sent);
  begin(&outgoing->refused);
  outgoing->added = 0;
}

void shoal_outgoing_release(shoal_outgoing *outgoing) {
  empty(&outgoing->waiting);
  empty(&outgoing->sent);
  empty(&outgoing->refused);
}

uint64_t shoal_outgoing_count(const shoal_outgoing *outgoing) {
  return outgoing->waiting.count + outgoing->sent.count + outgoing->refused.count;
}

uint64_t shoal_outgoing_bytes(const shoal_outgoing *outgoing) {
  return outgoing->waiting.bytes + outgoing->sent.bytes + outgoing->refused.bytes;
}

bool shoal_outgoing_add(shoal_outgoing *outgoing, const char *queue, const void *bytes, size_t length) {
  const size_t name = strlen(queue) + 1;
  uint64_t size;
  if (!shoal_add_u64(length, sizeof(shoal_letter) + name, &size)) return false;
  shoal_letter *letter = malloc(size);
  if (letter == NULL) return false;
  *letter = (shoal_letter){.number = ++outgoing->added, .rest_s = REST_S, .length = length};
  if (length > 0) memcpy(letter->bytes, bytes, length);
  letter->queue = (char *)letter->bytes + length;
  memcpy(letter->queue, queue, name);
  append(&outgoing->waiting, letter);
  return true;
}

/* Those that have rested long enough go before the others: they are older. */
static void wake_rested(shoal_outgoing *outgoing, double now) {
  shoal_letters rested;
  begin(&rested);
  for (shoal_letter **at = &outgoing->refused.first; *at != NULL;)
    if ((*at)->rests_until <= now)
      append(&rested, unlink_at(&outgoing->refused, at));
    else
      at = &(*at)->next;
  prepend(&outgoing->waiting, &rested);
}

const shoal_letter *shoal_outgoing_next(shoal_outgoing *outgoing, double now) {
  if (outgoing->refused.first != NULL) wake_rested(outgoing, now);
  return outgoing->waiting.first;
}

void shoal_outgoing_sent(shoal_outgoing *outgoing, uint64_t tag) {
  SHOAL_ASSERT(outgoing->waiting.first != NULL);
  shoal_letter *letter = unlink_at(&outgoing->waiting, &outgoing->waiting.first);
  letter->tag = tag;
  append(&outgoing->sent, letter);
}

/* Takes the next one with that tag, or up to it, out of those that were sent, which are in the order of their
 * tags. NULL: there is none (more). */
static shoal_letter *answered(shoal_outgoing *outgoing, uint64_t tag, bool and_before) {
  shoal_letter **at = &outgoing->sent.first;
  while (*at != NULL && !and_before && (*at)->tag < tag) at = &(*at)->next;
  if (*at == NULL || (*at)->tag > tag) return NULL;
  return unlink_at(&outgoing->sent, at);
}

uint64_t shoal_outgoing_confirm(shoal_outgoing *outgoing, uint64_t tag, bool and_before) {
  uint64_t count = 0;
  for (shoal_letter *letter; (letter = answered(outgoing, tag, and_before)) != NULL; count++) free(letter);
  return count;
}

uint64_t shoal_outgoing_refuse(shoal_outgoing *outgoing, uint64_t tag, bool and_before, double now) {
  uint64_t count = 0;
  for (shoal_letter *letter; (letter = answered(outgoing, tag, and_before)) != NULL; count++) {
    letter->rests_until = now + letter->rest_s;
    letter->rest_s = fmin(2 * letter->rest_s, REST_MOST_S);
    append(&outgoing->refused, letter);
  }
  return count;
}

void shoal_outgoing_lost(shoal_outgoing *outgoing) { prepend(&outgoing->waiting, &outgoing->sent); }

double shoal_outgoing_due(const shoal_outgoing *outgoing) {
  double due = INFINITY;
  for (const shoal_letter *letter = outgoing->refused.first; letter != NULL; letter = letter->next)
    due = fmin(due, letter->rests_until);
  return due;
}

bool shoal_outgoing_has(const shoal_outgoing *outgoing, uint64_t added) {
  return has(&outgoing->waiting, added) || has(&outgoing->sent, added) || has(&outgoing->refused, added);
}
