/* manifest.h: the files of a data set on this server, their manifest, and chunks by their hash.
 *
 * A manifest is made by reading every file once, a chunk at a time, and kept in a file whose first line is
 * the stamp of the files: names, sizes and times. When the stamp is another one, it is made again.
 *
 * The table of chunks says in which file a chunk lies. What is read is compared with its hash, so a
 * damaged disk, or a file that was changed, is an error and never wrong bytes.
 *
 * Ownership: files and tables are released by the caller; what is added to a table is copied. Threads: one
 * for a table, any for the rest. */
#ifndef SHOAL_SERVER_MANIFEST_H
#define SHOAL_SERVER_MANIFEST_H

#include "base/json.h"
#include "data/manifest.h"
#include "proto/message.h"

typedef struct shoal_set_file {
  char name[SHOAL_FILE_NAME_MAX];
  uint64_t bytes;
  int64_t changed_s, changed_ns;
} shoal_set_file;

typedef struct shoal_set_files {
  char *folder;
  uint32_t count;
  shoal_set_file files[SHOAL_MANIFEST_FILES_MAX];
  uint64_t bytes; /* of all */
} shoal_set_files;

/* All plain files of a folder whose names do not begin with a dot, by name. SHOAL_NOT_FOUND without the
 * folder, SHOAL_LIMIT for too many. */
shoal_status shoal_set_files_list(shoal_set_files *out, const char *folder, shoal_error *err);
/* One more; one that is not there is left out. */
shoal_status shoal_set_files_add(shoal_set_files *files, const char *name, shoal_error *err);
void shoal_set_files_release(shoal_set_files *files);
void shoal_set_files_stamp(const shoal_set_files *files, char out[SHOAL_SHA256_HEX]);

/* What was kept at `path` under that stamp, added to *out; false where there is none. */
bool shoal_kept_read(const char *path, const char *stamp, shoal_text *out);
shoal_status shoal_kept_write(const char *path, const char *stamp, const shoal_text *text, shoal_error *err);

/* Whether a file of that name is to be served unpacked: "x.gz", as x. *plain: its name then, or the same. */
bool shoal_set_is_zipped(const char *name, char plain[SHOAL_FILE_NAME_MAX]);
/* Copies a file, unpacked where it is gzip's. At most *room bytes come out, which are taken off; more is
 * SHOAL_LIMIT. */
shoal_status shoal_set_unpack(const char *from, const char *to, uint64_t *room, shoal_error *err);

/* Reads all files and adds the manifest (JSON) to *out. SHOAL_CONFLICT: one changed meanwhile. */
shoal_status shoal_manifest_make(const shoal_set_files *files, const char *name, const char *kind,
                                 shoal_text *out, shoal_error *err);

typedef struct shoal_chunk_table shoal_chunk_table;

shoal_chunk_table *shoal_chunk_table_create(void); /* NULL without memory */
void shoal_chunk_table_destroy(shoal_chunk_table *table);
void shoal_chunk_table_clear(shoal_chunk_table *table);
/* Whether a set is in it, with that stamp or any other. */
bool shoal_chunk_table_has(const shoal_chunk_table *table, const char *set, const char *stamp);
bool shoal_chunk_table_has_any(const shoal_chunk_table *table, const char *set);
shoal_status shoal_chunk_table_add(shoal_chunk_table *table, const char *folder, const char *stamp,
                                   const shoal_manifest *manifest, shoal_error *err);
/* Where a chunk lies, in one file or in several. */
enum { SHOAL_CHUNK_COPIES_MAX = 4 };
typedef struct shoal_chunk_copy {
  char *path, *set;
  uint64_t offset;
  uint32_t bytes;
} shoal_chunk_copy;

typedef struct shoal_chunk_source {
  uint8_t hash[SHOAL_SHA256_BYTES];
  uint32_t count;
  shoal_chunk_copy copies[SHOAL_CHUNK_COPIES_MAX];
} shoal_chunk_source;

/* SHOAL_NOT_FOUND: it is in no set of the table. Release *out only after success. */
shoal_status shoal_chunk_table_find(const shoal_chunk_table *table, const uint8_t hash[SHOAL_SHA256_BYTES],
                                    shoal_chunk_source *out, shoal_error *err);
void shoal_chunk_source_release(shoal_chunk_source *source);
/* The bytes of a chunk, from the first copy that is whole: the caller's. SHOAL_CORRUPT: what is on the disk
 * is something else. */
shoal_status shoal_chunk_read(const shoal_chunk_source *source, shoal_blob **out, shoal_error *err);

#endif
