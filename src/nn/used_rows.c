/* used_rows.c: see used_rows.h. A bit a row, table after table. */
#include "nn/used_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct shoal_used_rows {
  const shoal_graph *graph;
  bool is_known;
  size_t words_count;
  uint64_t words[];
};

static bool has(const shoal_used_rows *rows, size_t bit) {
  return (rows->words[bit / 64] >> bit % 64 & 1) != 0;
}

shoal_status shoal_used_rows_create(shoal_used_rows **out, const shoal_graph *graph, shoal_error *err) {
  *out = NULL;
  size_t bits = 0;
  for (uint32_t i = 0; i < graph->params_count; i++)
    if (graph->params[i].by_rows) bits = graph->params[i].first_row + graph->params[i].dims[0];
  if (bits == 0) return SHOAL_OK;
  size_t words_count = (bits + 63) / 64;
  *out = calloc(1, sizeof **out + words_count * sizeof *(*out)->words);
  if (*out == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the rows of embeddings");
  (*out)->graph = graph;
  (*out)->words_count = words_count;
  return SHOAL_OK;
}

void shoal_used_rows_destroy(shoal_used_rows *rows) { free(rows); }

void shoal_used_rows_forget(shoal_used_rows *rows) {
  if (rows != NULL) rows->is_known = false;
}

/* Makes the rows of the set zero. */
static void zero_rows(const shoal_used_rows *rows, const shoal_device *device, float *gradient) {
  for (uint32_t i = 0; i < rows->graph->params_count; i++) {
    const shoal_param *p = &rows->graph->params[i];
    if (!p->by_rows) continue;
    if (!rows->is_known) {
      device->kernels->zero(p->count, gradient + p->offset);
      continue;
    }
    for (uint32_t row = 0; row < p->dims[0]; row++)
      if (has(rows, p->first_row + row))
        device->kernels->zero(p->dims[1], gradient + p->offset + (size_t)row * p->dims[1]);
  }
}

void shoal_used_rows_clear(shoal_used_rows *rows, const shoal_device *device, float *gradient) {
  zero_rows(rows, device, gradient);
  memset(rows->words, 0, rows->words_count * sizeof *rows->words);
  rows->is_known = true;
}

void shoal_used_rows_use(shoal_used_rows *rows, const int32_t *tokens, size_t count) {
  for (uint32_t i = 0; i < rows->graph->params_count; i++) {
    const shoal_param *p = &rows->graph->params[i];
    if (!p->by_rows) continue;
    for (size_t k = 0; k < count; k++) {
      SHOAL_ASSERT((uint32_t)tokens[k] < p->dims[0]); /* data is checked when it is opened */
      size_t bit = p->first_row + (uint32_t)tokens[k];
      rows->words[bit / 64] |= (uint64_t)1 << bit % 64;
    }
  }
}

static uint64_t union_of(shoal_used_rows *const *parts, uint32_t parts_count, size_t word) {
  uint64_t all = 0;
  for (uint32_t v = 0; v < parts_count; v++) all |= parts[v]->words[word];
  return all;
}

void shoal_used_rows_unite(shoal_used_rows *rows, shoal_used_rows *const *parts, uint32_t parts_count,
                           const shoal_device *device, float *sum) {
  for (uint32_t v = 0; v < parts_count; v++) SHOAL_ASSERT(parts[v]->is_known);
  for (size_t i = 0; i < rows->words_count; i++) rows->words[i] &= ~union_of(parts, parts_count, i);
  zero_rows(rows, device, sum);
  for (size_t i = 0; i < rows->words_count; i++) rows->words[i] = union_of(parts, parts_count, i);
  rows->is_known = true;
}

bool shoal_used_rows_next(const shoal_used_rows *rows, const shoal_run *run, size_t *at, shoal_run *stretch) {
  if (rows == NULL) {
    if (*at == run->count) return false;
    *at = run->count;
    *stretch = *run;
    return true;
  }
  SHOAL_ASSERT(rows->is_known);
  const shoal_param *p = &rows->graph->params[run->param];
  size_t width = p->dims[1], first = run->offset - p->offset;
  for (size_t place = first + *at, last = first + run->count, end; place < last; place = end) {
    bool is_used = has(rows, p->first_row + place / width);
    for (end = place; end < last && has(rows, p->first_row + end / width) == is_used;)
      end = (end / width + 1) * width;
    if (end > last) end = last;
    *at = end - first;
    if (!is_used) continue;
    *stretch = (shoal_run){p->offset + place, (uint32_t)(end - place), run->kind, run->param};
    return true;
  }
  return false;
}
