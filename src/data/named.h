/* named.h: data sets that are known by name: what they are, where they are, how to get them.
 *
 * A set is looked for in $SHOAL_DATA/NAME, in NAME under the data folder (data_dir; by
 * default $XDG_DATA_HOME/shoal or ~/.local/share/shoal), in ./data/NAME and in
 * /usr/share/datasets/NAME, where Debian's packages put theirs.
 *
 * `get` lets curl or wget, whichever there is, bring the files into the data folder, and
 * compares checksums before a file gets its name. $SHOAL_DATA_MIRROR, a URL, replaces the
 * places of origin: FILE of the set NAME comes from $SHOAL_DATA_MIRROR/NAME/FILE.
 *
 * Ownership: the catalogue is constant; found folders are the caller's. Threads: any. */
#ifndef SHOAL_DATA_NAMED_H
#define SHOAL_DATA_NAMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct shoal_named_file {
  const char *name;   /* as it is downloaded; without .gz it is as good */
  const char *sha256; /* of what is in it, unzipped; NULL: not known */
} shoal_named_file;

enum { SHOAL_NAMED_FILES_MAX = 6 };

typedef struct shoal_named_set {
  const char *name;
  const char *what;
  const char *source;  /* where it comes from and its licence */
  const char *url;     /* the folder that holds the files, or the archive */
  const char *archive; /* the name of a .tar.gz with all of them, or NULL */
  const char *archive_sha256;
  const char *archive_folder; /* where the files lie in it */
  const char *package;        /* Debian's, or NULL */
  uint32_t files_count;
  shoal_named_file files[SHOAL_NAMED_FILES_MAX];
  uint32_t classes_count; /* 0 when they have no names */
  const char *const *classes;
} shoal_named_set;

size_t shoal_named_count(void);
const shoal_named_set *shoal_named_at(size_t i);
const shoal_named_set *shoal_named_set_of(const char *name); /* NULL when there is none */
/* The known name nearest to a word, or NULL. */
const char *shoal_named_nearest(const char *word);

/* Where `get` puts sets: data_dir, or the default place when that is NULL. The caller frees
 * it; NULL when there is no home folder or no memory. */
char *shoal_named_folder(const char *data_dir);
/* The folder that holds the set, for the caller to free; NULL when it was not found. */
char *shoal_named_find(const shoal_named_set *set, const char *data_dir);
/* The same; not finding it is an error that says where it was looked for and what to do. */
shoal_status shoal_named_locate(const shoal_named_set *set, const char *data_dir, char **folder,
                                shoal_error *err);
/* Reads all files of a folder and compares their checksums. */
shoal_status shoal_named_verify(const shoal_named_set *set, const char *folder, shoal_error *err);

/* Called a few times a second: the file that is on its way, and how much of it has come. */
typedef void (*shoal_named_progress)(void *context, const char *file, uint64_t bytes);

/* Downloads what is not there yet. progress may be NULL. */
shoal_status shoal_named_get(const shoal_named_set *set, const char *data_dir, shoal_named_progress progress,
                             void *context, shoal_error *err);

#endif
