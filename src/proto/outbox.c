/* outbox.c: see outbox.h. */
#include "proto/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void shoal_outbox_release(shoal_outbox *box) {
  shoal_letter letter;
  while (shoal_outbox_take(box, &letter)) shoal_message_release(&letter.message);
  free(box->letters);
  *box = (shoal_outbox){0};
}

static void grow(shoal_outbox *box) {
  uint32_t size = box->size == 0 ? 16 : 2 * box->size;
  shoal_letter *letters = calloc(size, sizeof *letters);
  SHOAL_ASSERT(letters != NULL);
  for (uint32_t i = 0; i < box->count; i++) letters[i] = box->letters[(box->first + i) % box->size];
  free(box->letters);
  box->letters = letters;
  box->size = size;
  box->first = 0;
}

void shoal_outbox_put(shoal_outbox *box, uint64_t peer, shoal_message message) {
  if (box->count == box->size) grow(box);
  box->letters[(box->first + box->count++) % box->size] = (shoal_letter){peer, message};
}

bool shoal_outbox_take(shoal_outbox *box, shoal_letter *out) {
  if (box->count == 0) return false;
  *out = box->letters[box->first];
  box->first = (box->first + 1) % box->size;
  box->count--;
  return true;
}
