/* classes.c: see classes.h. */
#include "cli/classes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"

enum {
  NAME_MAX_COLUMNS = 24,
  LISTED_MAX = 30, /* classes that are all listed; of more, the weakest FEW */
  FEW = 10,
  WORST_SHOWN = 8,
  NUMBER = 4, /* columns of a class's number beside the matrix */
  GAP = 2,    /* between pictures */
};

/* Columns that a text takes, one a character. */
static uint32_t columns_of(const char *text) {
  uint32_t count = 0;
  for (; *text; text++) count += ((unsigned char)*text & 0xc0) != 0x80;
  return count;
}

static void add_padded(shoal_text *out, const char *text, uint32_t columns) {
  uint32_t has = columns_of(text);
  shoal_text_addf(out, "%s%*s", text, has < columns ? (int)(columns - has) : 0, "");
}

/* A name of at most NAME_MAX_COLUMNS characters. */
typedef struct name {
  char text[4 * NAME_MAX_COLUMNS + 8];
} name;

static name name_of(const shoal_confusion_words *words, uint32_t index) {
  name n;
  shoal_confusion_name(words, index, n.text, sizeof n.text);
  if (columns_of(n.text) <= NAME_MAX_COLUMNS) return n;
  size_t end = 0;
  for (uint32_t count = 0; count < NAME_MAX_COLUMNS - 1; count++)
    end += shoal_utf8_character(n.text + end, strlen(n.text + end));
  memcpy(n.text + end, "…", sizeof "…");
  return n;
}

static uint32_t widest_name(const shoal_confusion *c, const shoal_confusion_words *words, uint32_t least) {
  for (uint32_t i = 0; i < c->classes; i++) {
    uint32_t columns = columns_of(name_of(words, i).text);
    if (columns > least) least = columns;
  }
  return least;
}

/* ---- scores ---- */

static void add_scores(shoal_text *out, const char *text, uint32_t columns, const shoal_confusion_class *of) {
  add_padded(out, text, columns);
  shoal_text_addf(out, "  %9.4f  %6.4f  %6.4f  %9s\n", of->precision, of->recall, of->f1,
                  shoal_human_count(of->support).text);
}

typedef struct weak {
  double f1;
  uint32_t index;
} weak;

static int by_f1(const void *a, const void *b) {
  const weak *x = a, *y = b;
  if (x->f1 != y->f1) return x->f1 < y->f1 ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

/* The classes to list, in their order, or of many the weakest. */
static uint32_t choose(const shoal_confusion *c, weak *list, bool *many) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->classes; i++)
    if (c->of[i].support + c->of[i].said > 0) list[count++] = (weak){c->of[i].f1, i};
  *many = count > LISTED_MAX;
  if (!*many) return count;
  qsort(list, count, sizeof *list, by_f1);
  return FEW;
}

static void add_table(shoal_text *out, const shoal_confusion *c, const shoal_confusion_words *words,
                      const char *unit, uint32_t columns) {
  weak *list = malloc((c->classes + 1) * sizeof *list);
  bool many = false;
  uint32_t count = list != NULL ? choose(c, list, &many) : 0;
  if (many)
    shoal_text_addf(out, "\nThe weakest of %s classes (--json has all):", shoal_human_count(c->classes).text);
  shoal_text_addf(out, "\n");
  add_padded(out, "class", columns);
  shoal_text_addf(out, "  %9s  %6s  %6s  %9s\n", "precision", "recall", "f1", unit);
  for (uint32_t i = 0; i < count; i++)
    add_scores(out, name_of(words, list[i].index).text, columns, &c->of[list[i].index]);
  add_scores(out, "mean of the classes", columns, &c->mean);
  free(list);
}

/* ---- what is taken for what ---- */

static uint32_t digits(uint64_t number) {
  uint32_t count = 1;
  for (; number >= 10; number /= 10) count++;
  return count;
}

/* The width of a cell and the space in front of it. */
static uint32_t cell_columns(const shoal_confusion *c) {
  uint64_t most = c->classes;
  for (uint32_t i = 0; i < c->classes; i++)
    if (c->of[i].support > most) most = c->of[i].support;
  return digits(most) + 1;
}

static void add_matrix(shoal_text *out, const shoal_confusion *c, const shoal_confusion_words *words,
                       uint32_t columns, uint32_t cell) {
  uint64_t *matrix = malloc((size_t)c->classes * c->classes * sizeof *matrix);
  if (matrix == NULL) return;
  shoal_confusion_matrix(c, matrix);
  bool numbered = widest_name(c, words, 1) >= cell; /* else names stand above the columns themselves */
  shoal_text_addf(
      out, "\nConfusion matrix: one row per true class, one column per predicted class; a dot means 0\n");
  add_padded(out, "", columns + (numbered ? NUMBER : 0));
  for (uint32_t i = 0; i < c->classes; i++) {
    name head = name_of(words, i);
    if (numbered) snprintf(head.text, sizeof head.text, "%u", i + 1);
    add_padded(out, "", cell - columns_of(head.text));
    shoal_text_addf(out, "%s", head.text);
  }
  shoal_text_addf(out, "\n");
  for (uint32_t truth = 0; truth < c->classes; truth++) {
    add_padded(out, name_of(words, truth).text, columns);
    if (numbered) shoal_text_addf(out, "%*u", NUMBER, truth + 1);
    for (uint32_t guess = 0; guess < c->classes; guess++) {
      uint64_t count = matrix[(size_t)truth * c->classes + guess];
      if (count > 0)
        shoal_text_addf(out, "%*llu", (int)cell, (unsigned long long)count);
      else
        shoal_text_addf(out, "%*s", (int)cell, ".");
    }
    shoal_text_addf(out, "\n");
  }
  free(matrix);
}

static void add_pairs(shoal_text *out, const shoal_confusion *c, const shoal_confusion_words *words,
                      uint32_t columns) {
  if (c->cells_count > 0) shoal_text_addf(out, "\nConfused most:\n");
  for (size_t i = 0; i < c->cells_count && i < FEW; i++) {
    add_padded(out, name_of(words, c->cells[i].truth).text, columns);
    shoal_text_addf(out, "  taken for ");
    add_padded(out, name_of(words, c->cells[i].guess).text, columns);
    shoal_text_addf(out, "  %s of %s\n", shoal_human_count(c->cells[i].count).text,
                    shoal_human_count(c->of[c->cells[i].truth].support).text);
  }
}

/* ---- the whole ---- */

void shoal_classes_text(shoal_text *out, const shoal_confusion *c, const shoal_confusion_words *words,
                        const shoal_classes_view *view) {
  uint32_t columns = widest_name(c, words, 5), cell = cell_columns(c);
  add_table(out, c, words, view->unit, widest_name(c, words, sizeof "mean of the classes" - 1));
  if (c->failed)
    shoal_text_addf(out, "\nThere was not enough memory to count which class is taken for which.\n");
  else if (!c->each && (uint64_t)columns + NUMBER + (uint64_t)cell * c->classes < view->width)
    add_matrix(out, c, words, columns, cell);
  else
    add_pairs(out, c, words, columns);
  if (c->worst_count > 0) shoal_text_addf(out, "\nMost wrong:\n");
  uint32_t file_columns = 0;
  shoal_text plain = {0};
  for (uint32_t i = 0; view->file != NULL && i < c->worst_count && i < WORST_SHOWN; i++) {
    const char *file = view->file(words->self, c->worst[i].sample);
    uint32_t has = file != NULL ? shoal_text_add_plain(&plain, file, 0) : 0;
    if (has > file_columns) file_columns = has;
  }
  shoal_text_release(&plain);
  for (uint32_t i = 0; i < c->worst_count && i < WORST_SHOWN; i++) {
    const shoal_confusion_sample *s = &c->worst[i];
    uint64_t sample = view->number != NULL ? view->number(words->self, s->sample) : s->sample;
    const char *file = view->file != NULL ? view->file(words->self, s->sample) : NULL;
    if (file != NULL)
      shoal_text_add_plain(out, file, file_columns + 2);
    else
      shoal_text_addf(out, "%s %-7llu ", view->place, (unsigned long long)sample);
    add_padded(out, name_of(words, s->guess).text, columns);
    shoal_text_addf(out, " %.4f   it is %s, %.2g\n", s->guess_probability, name_of(words, s->truth).text,
                    s->truth_probability);
  }
}

/* ---- pictures ---- */

/* The pixel of a picture that a place of a smaller or larger one shows. */
static const uint8_t *pixel_at(const shoal_sample_picture *p, uint32_t x, uint32_t y, uint32_t columns,
                               uint32_t rows) {
  uint32_t u = x * p->width / columns, v = y * p->height / rows;
  return p->pixels + ((size_t)v * p->width + u) * p->channels;
}

static uint32_t grey(const shoal_sample_picture *p, const uint8_t *pixel) {
  return p->channels == 3 ? (299u * pixel[0] + 587u * pixel[1] + 114u * pixel[2]) / 1000 : pixel[0];
}

static void add_colour(shoal_text *out, int layer, const shoal_sample_picture *p, const uint8_t *pixel) {
  bool rgb = p->channels == 3;
  shoal_text_addf(out, "\x1b[%d;2;%u;%u;%um", layer, pixel[0], pixel[rgb ? 1 : 0], pixel[rgb ? 2 : 0]);
}

static uint32_t rows_of(const shoal_sample_picture *p, uint32_t columns) {
  uint32_t rows = p->height * columns / p->width / 2;
  return rows > 0 ? rows : 1;
}

static void add_line(shoal_text *out, const shoal_sample_picture *p, uint32_t columns, uint32_t row,
                     bool colour) {
  static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
  uint32_t rows = rows_of(p, columns);
  if (row >= rows) {
    shoal_text_addf(out, "%*s", (int)columns, "");
    return;
  }
  for (uint32_t x = 0; x < columns; x++) {
    const uint8_t *upper = pixel_at(p, x, 2 * row, columns, 2 * rows);
    const uint8_t *lower = pixel_at(p, x, 2 * row + 1, columns, 2 * rows);
    if (!colour) {
      shoal_text_addf(out, "%s", shades[(grey(p, upper) + grey(p, lower)) / 2 * 5 / 256]);
      continue;
    }
    add_colour(out, 38, p, upper);
    add_colour(out, 48, p, lower);
    shoal_text_addf(out, "▀");
  }
  if (colour) shoal_text_addf(out, "\x1b[0m");
}

void shoal_classes_pictures(shoal_text *out, const shoal_sample_picture *pictures, uint32_t count,
                            uint32_t columns, bool colour) {
  uint32_t rows = 0;
  for (uint32_t i = 0; i < count; i++)
    if (rows_of(&pictures[i], columns) > rows) rows = rows_of(&pictures[i], columns);
  for (uint32_t row = 0; row < rows; row++) {
    for (uint32_t i = 0; i < count; i++) {
      if (i > 0) shoal_text_addf(out, "%*s", GAP, "");
      add_line(out, &pictures[i], columns, row, colour);
    }
    shoal_text_addf(out, "\n");
  }
}
