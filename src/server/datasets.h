/* datasets.h: the data sets of a server: named ones that this machine has, and uploaded ones; their
 * chunks.
 *
 * An upload is a draft, a folder of files, until it is sealed: then it is read as a training would read
 * it, and becomes a data set with a description and a manifest; zipped files are unpacked. Manifests
 * (data/manifest.h) list files and the SHA-256 of the chunks that volunteers fetch.
 *
 *   FOLDER/drafts/NAME/FILE         a draft; .owner in it says whose
 *   FOLDER/drafts/.incoming-...     a body on its way; removed when the server starts
 *   FOLDER/sets/NAME/FILE           a set, with a row in the store; .manifest in it is kept
 *   FOLDER/named/NAME.manifest      what is kept of a named set, and NAME.description
 *   FOLDER/named/NAME/FILE          of one that has zipped files: all of them unpacked, as they are served
 *
 * What a server leaves that is killed at any moment is a draft or a set, whole. Sealing marks the draft,
 * adds the row and moves the folder; when the row is there and the folder is not, opening moves it.
 * Deleting marks the folder, removes the row, then the folder; opening removes a marked folder that has no
 * row. A folder without a row or a mark stays as it is: it may be another store's.
 *
 * A draft whose files are found wrong stays: it may be right when it is read in another way. The next upload
 * of that name takes its place, so that nothing of it gets in there. A draft goes when nobody has touched it
 * for a day.
 *
 * Ownership: open, then close; the store is borrowed. Threads: one, but shoal_datasets_check, which is
 * slow, may be called from any with a draft that nobody else touches. (When a file is uploaded into it
 * meanwhile, sealing fails.) */
#ifndef SHOAL_SERVER_DATASETS_H
#define SHOAL_SERVER_DATASETS_H

#include "base/json.h"
#include "server/manifest.h"
#include "store/store.h"

enum {
  SHOAL_DATASETS_MAX = 1000, /* uploaded ones, drafts with them */
  SHOAL_DATASET_FILES_MAX = SHOAL_MANIFEST_FILES_MAX,
  SHOAL_DATASET_FILE_NAME_MAX = 100,
};

typedef struct shoal_datasets shoal_datasets;

typedef struct shoal_datasets_config {
  shoal_store *store;
  const char *folder;    /* of the server's own: FOLDER/sets/NAME, FOLDER/drafts/NAME */
  const char *named_dir; /* where `shoal data` keeps named sets; NULL: the usual place */
  uint64_t bytes_max;    /* of one upload, all its files together; 0: 4 GiB */
} shoal_datasets_config;

shoal_status shoal_datasets_open(shoal_datasets **out, const shoal_datasets_config *config, shoal_error *err);
void shoal_datasets_close(shoal_datasets *sets);

/* {"datasets":[...]} and one DATASET, as in the API. SHOAL_NOT_FOUND. A description has two fields more:
 * "target", the column of a table that was chosen, and "vocabulary", how many words or characters a text
 * has. Reading a named set for the first time takes up to a second. One that cannot be read is not listed;
 * describing it says why. */
shoal_status shoal_datasets_list(shoal_datasets *sets, shoal_json *json, shoal_error *err);
shoal_status shoal_datasets_describe(shoal_datasets *sets, const char *name, shoal_json *json,
                                     shoal_error *err);
/* What --data would have on this machine: "fashion-mnist", "FOLDER/sets/wine/wine.csv", "text:..." */
shoal_status shoal_datasets_path(shoal_datasets *sets, const char *name, shoal_text *out, shoal_error *err);
/* Where named sets are; NULL: in the usual place. */
const char *shoal_datasets_named_dir(const shoal_datasets *sets);
/* Takes out of a text, for those who host, where sets lie on this machine. */
void shoal_datasets_cut_folder(const shoal_datasets *sets, char *text);
/* What a search needs to know of a table: where its file is (of two the first), and, both empty where
 * there is none, how it was said to be written and its profile (JSON) as it was read when it was sealed.
 * SHOAL_INVALID: the set is no table. Ownership: release, also after a failure. */
typedef struct shoal_set_table {
  shoal_text path, dialect, profile;
} shoal_set_table;
shoal_status shoal_datasets_table(shoal_datasets *sets, const char *name, shoal_set_table *out,
                                  shoal_error *err);
void shoal_set_table_release(shoal_set_table *table);
/* The target column that was chosen when a table was sealed, for jobs that do not say; empty for all
 * others. */
shoal_status shoal_datasets_target(shoal_datasets *sets, const char *name, shoal_text *out, shoal_error *err);
/* {"name","kind","chunk_bytes","files":[{"name","bytes","head"?,"record"?,"sha256","chunks":[...]}],"root"}.
 * Made once, then kept,
 * and made again when a file's size or time is another. For an uploaded set shoal_datasets_check has made
 * it. */
shoal_status shoal_datasets_manifest(shoal_datasets *sets, const char *name, shoal_json *json,
                                     shoal_error *err);
/* Where a chunk lies of any manifest that was asked for: read by shoal_chunk_read, which is slow, and which
 * any thread may call. SHOAL_NOT_FOUND. Release *out only after success. */
shoal_status shoal_datasets_chunk(shoal_datasets *sets, const char *sha256, shoal_chunk_source *out,
                                  shoal_error *err);

/* Whether a file of an upload may be called that: 1 to 100 of A-Z a-z 0-9 . _ -, not beginning with a dot. */
bool shoal_datasets_file_is_good(const char *file);
/* How many bytes a file may have, with what else is in the draft. */
uint64_t shoal_datasets_room(shoal_datasets *sets, const char *name, const char *file);
/* Where the body of an upload is put while it comes (a new name in the drafts' folder, malloced), and then
 * its place in the draft: moves `from` there; when that fails, `from` stays where it is. SHOAL_CONFLICT: a
 * set of that name exists, or somebody else's draft. SHOAL_INVALID: the name of the set or the file.
 * SHOAL_LIMIT: more bytes, files or sets than allowed. */
shoal_status shoal_datasets_incoming(shoal_datasets *sets, const char *name, const char *file, char **path,
                                     shoal_error *err);
shoal_status shoal_datasets_uploaded(shoal_datasets *sets, const char *name, const char *file,
                                     const char *from, const char *owner, shoal_error *err);
/* What its owner says of an upload. */
typedef struct shoal_set_said {
  const char *kind;    /* "csv", "table", "idx", "cifar", "text", "chars" */
  const char *target;  /* csv: a column's name or number; NULL: the last */
  const char *dialect; /* table: how it is written, as in data/dialect.h; NULL: that is guessed */
} shoal_set_said;
/* Reads the draft as that and writes what it found into `description` (JSON), or says which file, line and
 * column is wrong: SHOAL_INVALID, "FILE:LINE:COLUMN: ..." where there is a place, else "FILE: ...". Also puts
 * the files safely on the disk and makes the manifest. */
shoal_status shoal_datasets_check(const char *draft_folder, const shoal_set_said *said,
                                  shoal_text *description, shoal_error *err);
/* The draft's folder, to be checked, which counts as touching it. SHOAL_NOT_FOUND. SHOAL_CONFLICT: it is
 * somebody else's (NULL: whoever's). */
shoal_status shoal_datasets_draft(shoal_datasets *sets, const char *name, const char *owner, shoal_text *out,
                                  shoal_error *err);
/* The draft's files were found wrong: they stay, to be read in another way, until more are uploaded; the
 * owner as above. */
shoal_status shoal_datasets_refuse(shoal_datasets *sets, const char *name, const char *owner,
                                   shoal_error *err);
/* Removes a draft; the owner as above. */
shoal_status shoal_datasets_discard(shoal_datasets *sets, const char *name, const char *owner,
                                    shoal_error *err);
/* Removes drafts that nobody has touched for a day before `now` (seconds since 1970); opening does so,
 * too. */
void shoal_datasets_tidy(shoal_datasets *sets, double now);
/* Makes the draft a data set, of the draft's owner. description is what shoal_datasets_check wrote.
 * SHOAL_CONFLICT: a file was uploaded since then, it is somebody else's draft, or there is a set of that
 * name. */
shoal_status shoal_datasets_seal(shoal_datasets *sets, const char *name, const char *owner,
                                 const char *description, shoal_error *err);
/* A set, or a draft where there is no set of that name. SHOAL_INVALID for one that is not its owner's (NULL:
 * whoever's), or a named one. Whether a job uses it is for the caller to know. */
shoal_status shoal_datasets_delete(shoal_datasets *sets, const char *name, const char *owner,
                                   shoal_error *err);

#endif
