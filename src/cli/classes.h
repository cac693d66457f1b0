/* classes.h: how a classifier fares class by class, for people to read.
 *
 * A table of precision, recall and F1; the confusion matrix where it fits the width, else the pairs of classes
 * that are confused most; and the samples that are most wrong. With many classes only the weakest are listed.
 *
 * Ownership: nothing is kept. Threads: any. */
#ifndef SHOAL_CLI_CLASSES_H
#define SHOAL_CLI_CLASSES_H

#include "base/text.h"
#include "cli/progress.h"
#include "data/sample.h"
#include "train/confusion.h"

/* Adds lines, each with "\n". `unit` is what samples are called: "samples", "rows". A person finds one by its
 * `place`, "sample" or "line", whose number `number` gives; NULL: it is the sample's. Pure. */
typedef struct shoal_classes_view {
  const char *unit, *place;
  uint64_t (*number)(const void *self, uint64_t sample); /* self: of the words */
  /* Returns the file of a sample, which is printed instead of `place` and its number. May be NULL or return NULL: the
   * sample has no file. */
  const char *(*file)(const void *self, uint64_t sample);
  uint32_t width;
} shoal_classes_view;
void shoal_classes_text(shoal_text *out, const shoal_confusion *confusion, const shoal_confusion_words *words,
                        const shoal_classes_view *view);

/* Pictures side by side, in half blocks (U+2580), each `columns` wide; with colours of 24 bits, or in five
 * shades. Adds lines. Pure. */
void shoal_classes_pictures(shoal_text *out, const shoal_sample_picture *pictures, uint32_t count,
                            uint32_t columns, bool colour);

#endif
