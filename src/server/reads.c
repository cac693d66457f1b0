/* reads.c: see reads.h. */
#include "server/reads.h"

#include <stdlib.h>

typedef struct reading {
  shoal_chunk_source source;
  shoal_blob *chunk;
  shoal_error err;
  void *self;
  uint64_t number;
  shoal_read_done done;
} reading;

static void read_it(void *self) {
  reading *r = self;
  (void)shoal_chunk_read(&r->source, &r->chunk, &r->err);
}

static void hand_over(void *self, bool ran) {
  reading *r = self;
  if (!ran) shoal_fail(&r->err, SHOAL_STOPPED, "the server is being stopped");
  r->done(r->self, r->number, r->chunk, &r->err);
  shoal_chunk_source_release(&r->source);
  free(r);
}

bool shoal_reads_begin(shoal_chores *chores, const shoal_chunk_source *source, void *self, uint64_t number,
                       shoal_read_done done) {
  reading *r = calloc(1, sizeof *r);
  if (r == NULL) return false;
  *r = (reading){.source = *source, .self = self, .number = number, .done = done};
  if (shoal_chores_add(chores, &(shoal_chore){"", r, read_it, hand_over})) return true;
  free(r);
  return false;
}
