/* image_reading.c: see image_reading.h. */
#include "cli/image_reading.h"

#include <math.h>

#include "base/clock.h"

static void show(void *self, uint64_t done, uint64_t all) {
  shoal_image_reading *r = self;
  double now = shoal_clock_seconds(), passed = now - r->started;
  if (!shoal_progress_due(&r->progress, now) || done == 0) return;
  const shoal_progress_view view = {.share = (double)done / (double)all,
                                    .per_s = (double)done / passed,
                                    .unit = "images",
                                    .loss = NAN,
                                    .eta_s = passed * (double)(all - done) / (double)done};
  shoal_progress_show(&r->progress, &view, now);
}

void shoal_image_reading_begin(shoal_image_reading *r, shoal_dataset_options *options, FILE *stream) {
  r->started = shoal_clock_seconds();
  shoal_progress_init(&r->progress, stream, r->started);
  options->progress_self = r;
  options->progress = show;
}

void shoal_image_reading_end(shoal_image_reading *r, const shoal_dataset *dataset) {
  const char *note = dataset ? shoal_dataset_note(dataset) : NULL;
  shoal_progress_clear(&r->progress);
  if (note && r->progress.stream) fprintf(r->progress.stream, "%s\n", note);
}
