/* dataset.h: data sets by name or path, and the sources that feed the engine.
 *
 * --data takes:  fashion-mnist, mnist, cifar-10, ptb      named sets, see `shoal data list`
 *                text:FILE, chars:FILE                    words or characters of a text file
 *                toy:reverse, toy:wave                    made up on the spot
 *                toy:noise, toy:noise:SAMPLES             of any shape, to measure speed with
 *                FILE.csv                                 a table, numbers and a target column
 *                TRAIN.csv,TEST.csv                       the same with test rows of their own
 *                FILE-images-idx3-ubyte[.gz]              one file of images, labels beside it
 *                FOLDER                                   IDX files (train-images..., t10k-...),
 *                                                         CIFAR-10 binary batches,
 *                                                         ptb.train.txt-like text files, or
 *                                                         PNG and JPEG files, a subfolder for each
 *                                                         class, also below train/ and test/
 *
 * A named set goes before a file or folder of the same name; that is ./NAME.
 *
 * A data set is opened for a model, because the model says what it expects: an image or
 * a vector, labels or numbers, how many steps. What had to be fitted to the training part
 * (scales, class names, vocabulary) can be written as JSON and given back later, so that
 * eval and predict see the data as training did.
 *
 * Ownership: open, then close; sources belong to the data set and live as long as it does.
 * Threads: one to open and to make sources; what sources do is for any. */
#ifndef SHOAL_DATA_DATASET_H
#define SHOAL_DATA_DATASET_H

#include "base/text.h"
#include "data/chunk_store.h"
#include "data/lanes.h"
#include "nn/model.h"
#include "nn/source.h"

typedef struct shoal_dataset shoal_dataset;

typedef enum shoal_split { SHOAL_TRAIN, SHOAL_VALID, SHOAL_TEST, SHOAL_SPLITS } shoal_split;

typedef struct shoal_dataset_options {
  const char *data;        /* as given to --data */
  const char *target;      /* CSV: column name or number; NULL is the last column */
  bool *no_target;         /* becomes true where opening fails since there is no such column; or NULL */
  double valid_share;      /* hold out this part of the training samples: 0 .. 0.9 */
  const char *fitted_json; /* what an earlier shoal_dataset_fitted wrote, or NULL */
  const char *data_dir;    /* where `data get` keeps sets; NULL is the default place */
  bool unlabeled;          /* to predict from: answers may be absent and are not read */
  const char *const *more; /* unlabeled images: files and folders besides `data`; or NULL */
  size_t more_count;
  void *progress_self; /* told now and then, by the caller's thread, how many image files are read; or NULL */
  void (*progress)(void *self, uint64_t done, uint64_t all);
  shoal_chunk_store *store; /* where the data is, or comes to; `data` is shoal_chunk_store_data. Or NULL */
  const volatile sig_atomic_t *stop; /* ends waiting for the store; or NULL */
} shoal_dataset_options;

/* With a store, opening waits for the chunks that it reads. Folders of images (IDX, CIFAR-10) with
 * fitted_json are opened piece by piece: training samples alone, and before any is fetched
 * shoal_dataset_wait must have waited for its chunks. All else is read as a whole. */

/* Waits for what opening a data set over this store would wait for (with fitted_json), to show how far it
 * is. */
shoal_status shoal_dataset_prepare(shoal_chunk_store *store, const volatile sig_atomic_t *stop,
                                   shoal_error *err);

/* Which samples are for what: named sets and folders say it themselves; of a CSV file one row
 * in five is for TEST, and of a folder of image files without test/ one file in five; of a text
 * the last twentieth, and the one before that for VALID.
 * VALID of the others is valid_share of TRAIN. With fitted_json, a CSV file other than the
 * one that was fitted, a text file likewise, a folder of image files without test/ that has other files, and
 * a file of images are all TEST; so is a file of a table or of images that is unlabeled. */
shoal_status shoal_dataset_open(shoal_dataset **out, const shoal_dataset_options *options,
                                const shoal_model *model, shoal_error *err);
void shoal_dataset_close(shoal_dataset *dataset);

/* 0: no such split. A text's samples are its tokens; a source's are windows of them. */
uint64_t shoal_dataset_samples(const shoal_dataset *dataset, shoal_split split);
bool shoal_dataset_is_text(const shoal_dataset *dataset);
bool shoal_dataset_is_images(const shoal_dataset *dataset);
/* What it reads from, for those who show samples (sample.h); NULL where it is of another kind. */
const struct shoal_images *shoal_dataset_images(const shoal_dataset *dataset);
const struct shoal_table *shoal_dataset_table(const shoal_dataset *dataset);
/* Whether a source of it gives images in lanes, as convolutions want them, and not one after the other. */
bool shoal_dataset_is_in_lanes(const shoal_dataset *dataset);
uint32_t shoal_dataset_classes(const shoal_dataset *dataset); /* 0 for numbers */
/* "t-shirt", "7", a word of the vocabulary; NULL when the class has no name. */
const char *shoal_dataset_class_name(const shoal_dataset *dataset, uint32_t class_index);
/* Returns the image file of the sample at `position` in epoch 0 of the source, or NULL if the sample is not from
 * an image file. */
const char *shoal_dataset_sample_file(const shoal_dataset *dataset, const shoal_source *source,
                                      uint64_t position);
/* Writes images, which must be here as a whole, as IDX files (idx.h) into a folder. Opened from there they are the
 * same set, with the names of its classes. */
shoal_status shoal_dataset_pack(const shoal_dataset *dataset, const char *folder, shoal_error *err);
/* What was done to image files to fit the model, and which files were left out, in a line each; NULL: nothing. */
const char *shoal_dataset_note(const shoal_dataset *dataset);
uint64_t shoal_dataset_class_count(const shoal_dataset *dataset, uint32_t class_index); /* in TRAIN */

/* batch: rows of a round (streams of a text). seed orders the training part; VALID and TEST
 * keep their order. A source of a text is padded so that every token counts once. */
shoal_status shoal_dataset_source(shoal_dataset *dataset, shoal_split split, uint32_t batch, uint64_t seed,
                                  shoal_source *out, shoal_error *err);

/* Orders a training source by lanes (lanes.h), for `shuffle lanes`. Texts and noise keep their order. */
shoal_status shoal_dataset_deal(shoal_dataset *dataset, const shoal_source *source, uint32_t batch,
                                const shoal_deal *deal, shoal_error *err);

/* Has a training source of images flip and move them at random, for `augment`. */
void shoal_dataset_augment(shoal_dataset *dataset, const shoal_source *source, const shoal_augment *augment);

/* Whether the data set is opened piece by piece. The functions below do nothing where it is not. */
bool shoal_dataset_is_lazy(const shoal_dataset *dataset);
/* Wants the chunks of n training samples, from position `first` of an epoch, urgently; true when all are
 * here. */
bool shoal_dataset_want(const shoal_dataset *dataset, const shoal_source *source, uint64_t epoch,
                        uint64_t first, uint64_t n);
shoal_status shoal_dataset_wait(const shoal_dataset *dataset, const shoal_source *source, uint64_t epoch,
                                uint64_t first, uint64_t n, const volatile sig_atomic_t *stop,
                                shoal_error *err);
/* Wants what the lane of a position needs next, as far as a few chunks: in this epoch, and at its end in
 * the next one, where there is one before epoch `end`. Without lanes that is all that is for training. */
void shoal_dataset_expect(const shoal_dataset *dataset, const shoal_source *source, uint64_t epoch,
                          uint64_t position, uint64_t end);

/* What was fitted, as JSON for the checkpoint. */
void shoal_dataset_fitted(const shoal_dataset *dataset, shoal_text *json);

/* Text models: from text to token numbers and back. encode gives at most max tokens and
 * answers how many; an unknown word becomes <unk>, or is an error where there is none. */
shoal_status shoal_dataset_encode(const shoal_dataset *dataset, const char *text, int32_t *tokens, size_t max,
                                  size_t *count, shoal_error *err);
/* Something to begin a prompt with, from the training text; nothing where it is no text. */
void shoal_dataset_opening(const shoal_dataset *dataset, shoal_text *out);
/* The same vocabulary without the text's own files: from fitted JSON alone. */
shoal_status shoal_dataset_open_fitted(shoal_dataset **out, const char *fitted_json, shoal_error *err);

#endif
