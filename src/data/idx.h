/* idx.h: the IDX files of MNIST and its kin, plain or gzip.
 *
 *   offset   bytes
 *   0        2       zero
 *   2        1       type of the values; 0x08, unsigned byte, is the only one taken
 *   3        1       d, the number of dimensions: 1 to 4
 *   4        4 d     the dimensions, big-endian; the first counts the samples
 *   4 + 4 d          the values, in row-major order, to the end of the file
 *
 * Images have 4 dimensions (count, channels, height, width), 3 (count, height, width) or
 * 2 (count, values); labels have 1.
 *
 * A folder of them may hold about.json: {"classes":[NAME...],"files_sha256":HEX}, both of which may be absent. The
 * second is of the image files that were packed into the folder (image_list.h). */
#ifndef SHOAL_DATA_IDX_H
#define SHOAL_DATA_IDX_H

#include "data/images.h"
#include "data/manifest.h"
#include "data/names.h"

enum { SHOAL_IDX_DIMS_MAX = 4 };

typedef struct shoal_idx {
  uint32_t dims_count;
  uint32_t dims[SHOAL_IDX_DIMS_MAX];
  uint64_t sample_values; /* of one sample */
  const uint8_t *values;  /* inside the bytes that were parsed */
} shoal_idx;

/* `name` is the file, for the error. */
shoal_status shoal_idx_parse(shoal_idx *out, const char *name, const uint8_t *bytes, size_t length,
                             shoal_error *err);

/* How a file that begins with these bytes is cut into chunks: between images, or as it comes. */
void shoal_idx_cut(shoal_cut *cut, const uint8_t *bytes, size_t length);

/* True when the folder holds training images. */
bool shoal_idx_is_folder(const char *folder);
/* True when the (unzipped) file begins like one with images. False for what is no plain file. */
bool shoal_idx_is_images(const char *path);

/* With a store, waits for what opening a folder reads: the header of the training images, and their labels.
 * False: it has no such files that can be read piece by piece. */
bool shoal_idx_prepare(shoal_chunk_store *store, const volatile sig_atomic_t *stop, shoal_status *status,
                       shoal_error *err);

/* The four files of a folder: {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz], also with
 * a dot before "idx". NOT_FOUND without the training images; the test files may be absent. */
shoal_status shoal_idx_open_folder(shoal_images *images, const char *folder, const shoal_chunk_store *store,
                                   shoal_error *err);

/* Adds what about.json of a folder says, if there is one, to empty *classes and *files_sha256. There must be a name
 * for each class of the images; for more names there are more classes. */
shoal_status shoal_idx_read_about(shoal_images *images, const char *folder, shoal_names *classes,
                                  char files_sha256[SHOAL_SHA256_HEX], shoal_error *err);
/* Writes such a folder, which exists. */
shoal_status shoal_idx_write_folder(const shoal_images *images, const shoal_names *classes,
                                    const char *files_sha256, const char *folder, shoal_error *err);

/* One file of images; its labels are beside it under the name with "labels-idx1" for
 * "images-idx3", unless `unlabeled`. They are the training part, or the test part. */
shoal_status shoal_idx_open_file(shoal_images *images, const char *path, bool unlabeled, bool as_test,
                                 shoal_error *err);

#endif
