/* confusion.c: see confusion.h. Cells are a list with repetitions, which is put in order and added up when it is
 * full, so it grows with the different cells and not with the samples. */
#include "train/confusion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_AT_FIRST = 256 };

shoal_status shoal_confusion_init(shoal_confusion *out, uint32_t classes, bool each, shoal_error *err) {
  *out = (shoal_confusion){.classes = classes, .each = each};
  out->of = calloc(classes > 0 ? classes : 1, sizeof *out->of);
  return out->of != NULL ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_confusion_release(shoal_confusion *c) {
  free(c->of);
  free(c->cells);
  *c = (shoal_confusion){0};
}

void shoal_confusion_clear(shoal_confusion *c) {
  memset(c->of, 0, c->classes * sizeof *c->of);
  c->samples = c->right = c->cells_count = c->worst_count = 0;
  c->failed = false;
}

/* ---- counting ---- */

static int by_place(const void *a, const void *b) {
  const shoal_confusion_cell *x = a, *y = b;
  if (x->truth != y->truth) return x->truth < y->truth ? -1 : 1;
  return (x->guess > y->guess) - (x->guess < y->guess);
}

static int by_count(const void *a, const void *b) {
  const shoal_confusion_cell *x = a, *y = b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return by_place(a, b);
}

/* Makes one of cells with the same place. */
static void add_up(shoal_confusion *c) {
  if (c->cells_count == 0) return;
  qsort(c->cells, c->cells_count, sizeof *c->cells, by_place);
  size_t last = 0;
  for (size_t i = 1; i < c->cells_count; i++) {
    if (by_place(&c->cells[last], &c->cells[i]) == 0)
      c->cells[last].count += c->cells[i].count;
    else
      c->cells[++last] = c->cells[i];
  }
  c->cells_count = last + 1;
}

static void add_cell(shoal_confusion *c, uint32_t truth, uint32_t guess) {
  bool full = c->cells_count == c->cells_capacity;
  if (full) add_up(c);
  if (full && c->cells_count >= c->cells_capacity / 2) {
    size_t capacity = c->cells_capacity > 0 ? 2 * c->cells_capacity : CELLS_AT_FIRST;
    shoal_confusion_cell *grown = realloc(c->cells, capacity * sizeof *grown);
    if (grown != NULL) {
      c->cells = grown;
      c->cells_capacity = capacity;
    }
  }
  if (c->cells_count == c->cells_capacity)
    c->failed = true;
  else
    c->cells[c->cells_count++] = (shoal_confusion_cell){truth, guess, 1};
}

/* Whether a sample is more wrong than another: what is right is less probable, or the answer is surer; of
 * equals the first is. */
static bool is_worse(const shoal_confusion_sample *a, const shoal_confusion_sample *b) {
  if (a->truth_probability != b->truth_probability) return a->truth_probability < b->truth_probability;
  if (a->guess_probability != b->guess_probability) return a->guess_probability > b->guess_probability;
  return a->sample < b->sample;
}

static void keep_worst(shoal_confusion *c, const shoal_confusion_sample *sample) {
  uint32_t at = c->worst_count;
  while (at > 0 && is_worse(sample, &c->worst[at - 1])) at--;
  if (at == SHOAL_CONFUSION_WORST) return;
  if (c->worst_count < SHOAL_CONFUSION_WORST) c->worst_count++;
  memmove(&c->worst[at + 1], &c->worst[at], (c->worst_count - at - 1) * sizeof c->worst[0]);
  c->worst[at] = *sample;
}

void shoal_confusion_add(shoal_confusion *c, const shoal_confusion_sample *s) {
  if (s->truth >= c->classes || s->guess >= c->classes) return;
  bool right = s->truth == s->guess;
  c->samples++;
  c->right += right;
  c->of[s->truth].support++;
  c->of[s->guess].said++;
  c->of[s->guess].right += right;
  if (right) return;
  add_cell(c, s->truth, s->guess);
  keep_worst(c, s);
}

void shoal_confusion_add_each(shoal_confusion *c, uint64_t sample, const float *probability,
                              const float *has) {
  bool right = true;
  uint32_t truth = 0, guess = 0;
  for (uint32_t i = 0; i < c->classes; i++) {
    bool is = has[i] > 0.5f, said = probability[i] > 0.5f;
    c->of[i].support += is;
    c->of[i].said += said;
    c->of[i].right += is && said;
    right &= is == said;
    if (has[i] > has[truth]) truth = i;
    if (probability[i] > probability[guess]) guess = i;
  }
  c->samples++;
  c->right += right;
  if (right || truth == guess) return;
  keep_worst(c, &(shoal_confusion_sample){sample, truth, guess, probability[guess], probability[truth]});
}

/* ---- the end ---- */

static double share(uint64_t part, uint64_t of) { return of > 0 ? (double)part / (double)of : 0; }

void shoal_confusion_finish(shoal_confusion *c) {
  uint32_t occur = 0;
  c->mean = (shoal_confusion_class){0};
  for (uint32_t i = 0; i < c->classes; i++) {
    shoal_confusion_class *of = &c->of[i];
    of->precision = share(of->right, of->said);
    of->recall = share(of->right, of->support);
    of->f1 = share(2 * of->right, of->said + of->support);
    if (of->said + of->support == 0) continue;
    occur++;
    c->mean.precision += of->precision;
    c->mean.recall += of->recall;
    c->mean.f1 += of->f1;
    c->mean.support += of->support;
  }
  c->mean.precision /= occur > 0 ? occur : 1;
  c->mean.recall /= occur > 0 ? occur : 1;
  c->mean.f1 /= occur > 0 ? occur : 1;
  add_up(c);
  if (c->cells_count > 0) qsort(c->cells, c->cells_count, sizeof *c->cells, by_count);
}

void shoal_confusion_matrix(const shoal_confusion *c, uint64_t *out) {
  memset(out, 0, (size_t)c->classes * c->classes * sizeof *out);
  for (uint32_t i = 0; i < c->classes; i++) out[(size_t)i * c->classes + i] = c->of[i].right;
  for (size_t i = 0; i < c->cells_count; i++)
    out[(size_t)c->cells[i].truth * c->classes + c->cells[i].guess] = c->cells[i].count;
}

/* ---- in words ---- */

void shoal_confusion_name(const shoal_confusion_words *words, uint32_t index, char *out, size_t size) {
  const char *name = words->name(words->self, index);
  if (name == NULL)
    snprintf(out, size, "%u", index);
  else
    shoal_text_plain(out, size, name, strlen(name));
}

static void write_name(const shoal_confusion_words *words, const char *key, uint32_t index,
                       shoal_json *json) {
  char number[16];
  const char *name = words->name(words->self, index);
  snprintf(number, sizeof number, "%u", index);
  shoal_json_text(json, key, name != NULL ? name : number);
}

static void write_scores(const shoal_confusion_class *of, shoal_json *json) {
  shoal_json_real(json, "precision", of->precision);
  shoal_json_real(json, "recall", of->recall);
  shoal_json_real(json, "f1", of->f1);
}

static void write_classes(const shoal_confusion *c, const shoal_confusion_words *words, shoal_json *json) {
  shoal_json_open(json, "macro", '{');
  write_scores(&c->mean, json);
  shoal_json_close(json, '}');
  shoal_json_open(json, "classes", '[');
  for (uint32_t i = 0; i < c->classes; i++) {
    shoal_json_open(json, NULL, '{');
    write_name(words, "class", i, json);
    shoal_json_int(json, "support", (int64_t)c->of[i].support);
    shoal_json_int(json, "predicted", (int64_t)c->of[i].said);
    write_scores(&c->of[i], json);
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
}

static void write_matrix(const shoal_confusion *c, shoal_json *json) {
  uint64_t *matrix = malloc((size_t)c->classes * c->classes * sizeof *matrix);
  if (matrix == NULL) return;
  shoal_confusion_matrix(c, matrix);
  shoal_json_open(json, "matrix", '[');
  for (uint32_t truth = 0; truth < c->classes; truth++) {
    shoal_json_open(json, NULL, '[');
    for (uint32_t guess = 0; guess < c->classes; guess++)
      shoal_json_int(json, NULL, (int64_t)matrix[(size_t)truth * c->classes + guess]);
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, ']');
  free(matrix);
}

static void write_confused(const shoal_confusion *c, const shoal_confusion_words *words, shoal_json *json) {
  shoal_json_open(json, "confused", '[');
  for (size_t i = 0; i < c->cells_count && i < SHOAL_CONFUSION_PAIRS; i++) {
    shoal_json_open(json, NULL, '{');
    write_name(words, "label", c->cells[i].truth, json);
    write_name(words, "class", c->cells[i].guess, json);
    shoal_json_int(json, "count", (int64_t)c->cells[i].count);
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
}

void shoal_confusion_write(const shoal_confusion *c, const shoal_confusion_words *words, shoal_json *json) {
  write_classes(c, words, json);
  if (!c->each && !c->failed && c->classes <= SHOAL_CONFUSION_MATRIX_MAX) write_matrix(c, json);
  if (!c->each && !c->failed) write_confused(c, words, json);
  shoal_json_open(json, "worst", '[');
  for (uint32_t i = 0; i < c->worst_count; i++) {
    const shoal_confusion_sample *s = &c->worst[i];
    shoal_json_open(json, NULL, '{');
    shoal_json_int(json, "sample", (int64_t)s->sample);
    write_name(words, "label", s->truth, json);
    write_name(words, "class", s->guess, json);
    shoal_json_real(json, "probability", s->guess_probability);
    shoal_json_real(json, "label_probability", s->truth_probability);
    if (words->show != NULL) words->show(words->self, s->sample, json);
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
}
