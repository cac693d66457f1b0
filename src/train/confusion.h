/* confusion.h: how a classifier fares class by class: which classes it confuses, and where it is most wrong.
 *
 * Samples are added one by one; what is counted fits any number of classes, since of the matrix only cells off
 * the diagonal that occur are kept. Precision, recall and F1 are as scikit-learn has them: 0 where they are 0/0,
 * and means over the classes that occur, as an answer or as what is right.
 *
 * Where each output is decided for itself (binary cross-entropy with several), every output is a class of its
 * own that a sample has or has not; there is no matrix then.
 *
 * Ownership: init, add, finish, then read and release; clear starts over. Threads: one. */
#ifndef SHOAL_TRAIN_CONFUSION_H
#define SHOAL_TRAIN_CONFUSION_H

#include "base/json.h"
#include "base/status.h"

/* Limits of the JSON: the most classes for which it has the whole matrix, and how many confused pairs and worst
 * samples it lists. */
enum { SHOAL_CONFUSION_MATRIX_MAX = 100, SHOAL_CONFUSION_PAIRS = 20, SHOAL_CONFUSION_WORST = 16 };

typedef struct shoal_confusion_class {
  uint64_t support;             /* samples that are of the class, */
  uint64_t said;                /* that were said to be, */
  uint64_t right;               /* and both */
  double precision, recall, f1; /* after finish */
} shoal_confusion_class;

typedef struct shoal_confusion_cell {
  uint32_t truth, guess;
  uint64_t count;
} shoal_confusion_cell;

/* A sample that was answered wrongly, with the probabilities of the answer and of what would have been right. */
typedef struct shoal_confusion_sample {
  uint64_t sample;
  uint32_t truth, guess;
  double guess_probability, truth_probability;
} shoal_confusion_sample;

typedef struct shoal_confusion {
  uint32_t classes;
  bool each;        /* outputs are decided each for itself */
  bool failed;      /* memory ran out: cells are missing */
  uint64_t samples; /* added */
  uint64_t right;   /* of them, in all that was asked */
  shoal_confusion_class *of;
  shoal_confusion_class mean;  /* over the classes that occur, after finish */
  shoal_confusion_cell *cells; /* off the diagonal; after finish the largest counts first */
  size_t cells_count, cells_capacity;
  shoal_confusion_sample worst[SHOAL_CONFUSION_WORST]; /* least probable truth first */
  uint32_t worst_count;
} shoal_confusion;

shoal_status shoal_confusion_init(shoal_confusion *out, uint32_t classes, bool each, shoal_error *err);
void shoal_confusion_release(shoal_confusion *confusion);
void shoal_confusion_clear(shoal_confusion *confusion);

/* One sample; truth and guess are classes. */
void shoal_confusion_add(shoal_confusion *confusion, const shoal_confusion_sample *sample);
/* With `each`: one sample by the probability of each class and whether it has it (above one half). */
void shoal_confusion_add_each(shoal_confusion *confusion, uint64_t sample, const float *probability,
                              const float *has);
void shoal_confusion_finish(shoal_confusion *confusion);
/* classes x classes counts: one row per true class, one column per predicted class. */
void shoal_confusion_matrix(const shoal_confusion *confusion, uint64_t *out);

/* What things are called. */
typedef struct shoal_confusion_words {
  const void *self;
  const char *(*name)(const void *self, uint32_t index); /* of a class; NULL: its number is its name */
  /* Adds to an open object what a sample looks like; or NULL. */
  void (*show)(const void *self, uint64_t sample, shoal_json *json);
} shoal_confusion_words;

/* The name of a class, fit for a terminal: at most size - 1 bytes. */
void shoal_confusion_name(const shoal_confusion_words *words, uint32_t index, char *out, size_t size);
/* Adds to an open object: "macro", "classes", "matrix" (unless there are too many), "confused" and "worst". Matrix
 * and confused are left out where `failed`. */
void shoal_confusion_write(const shoal_confusion *confusion, const shoal_confusion_words *words,
                           shoal_json *json);

#endif
