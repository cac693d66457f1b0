/* image_list.h: PNG and JPEG files as a data set: which there are, of which class, and all of them decoded.
 *
 *   FOLDER/CLASS/FILE.png                                 one subfolder a class; or
 *   FOLDER/train/CLASS/FILE.png, FOLDER/test/CLASS/...    the same with test images of their own
 *
 * Classes are numbered in the order of their names, files come in the order of theirs (byte by byte), so that
 * all machines number them alike. Without test/, one file in five is held out for test, but never the first of a
 * class. Names that begin with a dot are passed over; links are followed; what is neither a PNG nor a JPEG file
 * by its name is left out and named in the note.
 *
 * Decoded images stay bytes, in memory, fitted to one shape (image_file.h).
 *
 * Ownership: init, then release; the decoded bytes go to the shoal_images. Threads: one; decoding starts some of
 * its own. */
#ifndef SHOAL_DATA_IMAGE_LIST_H
#define SHOAL_DATA_IMAGE_LIST_H

#include "base/hash.h"
#include "base/text.h"
#include "data/images.h"
#include "data/names.h"

typedef struct shoal_image_entry {
  char *path;
  uint8_t label;
  bool is_test;
} shoal_image_entry;

typedef struct shoal_image_list {
  shoal_image_entry *entries; /* those for training first */
  uint64_t count, capacity, training;
  bool has_test; /* test/ was there */
  bool labeled;
  shoal_names classes;
  char sha256[SHOAL_SHA256_HEX]; /* of the names and sizes of all files */
  uint64_t others;               /* left out */
  shoal_text other_names;        /* the first few of them */
  shoal_text about;              /* what sha256 is made of */
} shoal_image_list;

void shoal_image_list_init(shoal_image_list *list);
void shoal_image_list_release(shoal_image_list *list);

/* True when one of its subfolders, or one of its subfolder train, holds image files. */
bool shoal_image_list_is_folder(const char *folder);
/* True when it holds image files itself. */
bool shoal_image_list_is_flat(const char *folder);
/* Adds "; FOLDER/CLASS/a.webp is a WebP image: convert it to PNG" where such a file is in the folder, or up to
 * `depth` folders below. Returns whether one is. */
bool shoal_image_list_add_hint(const char *folder, int depth, shoal_text *out);

/* Adds the files of such a folder. If `classes` is not 0, every subfolder must be a known class, called by its
 * name in `known` or by its number below `classes`; known classes keep their numbers. All files are for training
 * but those below test/, until shoal_image_list_hold_out. */
shoal_status shoal_image_list_classes(shoal_image_list *list, const char *folder, const shoal_names *known,
                                      uint32_t classes, shoal_error *err);
/* Files without classes, all for test; of a folder, the files in it. */
shoal_status shoal_image_list_add(shoal_image_list *list, const char *path, shoal_error *err);
/* One file in five becomes one for test; or all do. */
shoal_status shoal_image_list_hold_out(shoal_image_list *list, bool all, shoal_error *err);

/* Decodes all files into images, whose c, h and w say the shape. The note gets a line on what was done to them,
 * and one on what was left out, where there is anything to say. `progress` (or NULL) is called by this thread. */
shoal_status shoal_image_list_decode(const shoal_image_list *list, shoal_images *images,
                                     void (*progress)(void *self, uint64_t done, uint64_t all), void *self,
                                     shoal_text *note, shoal_error *err);

#endif
