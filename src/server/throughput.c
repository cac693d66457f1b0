/* throughput.c: see throughput.h. */
#include "server/throughput.h"

bool shoal_throughput_is_due(const shoal_throughput *t, double now) {
  return now >= t->next || now < t->next - 2 * SHOAL_THROUGHPUT_EVERY_S;
}

void shoal_throughput_add(shoal_throughput *t, double now, double samples_per_s) {
  t->points[t->made++ % SHOAL_THROUGHPUT_POINTS] = (struct shoal_throughput_point){now, samples_per_s};
  t->next = now + SHOAL_THROUGHPUT_EVERY_S;
}

void shoal_throughput_write(const shoal_throughput *t, shoal_json *json) {
  shoal_json_open(json, "points", '[');
  for (uint64_t i = t->made > SHOAL_THROUGHPUT_POINTS ? t->made - SHOAL_THROUGHPUT_POINTS : 0; i < t->made;
       i++) {
    const struct shoal_throughput_point *point = &t->points[i % SHOAL_THROUGHPUT_POINTS];
    shoal_json_open(json, NULL, '[');
    shoal_json_real(json, NULL, point->time);
    shoal_json_real(json, NULL, point->samples_per_s);
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, ']');
}
